"""The nearest pairs of links and obstacles, shown in a picture by lines between their nearest points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from synovia.errors import InputError
from synovia.ik.compiled import CompiledProblem
from synovia.ik.contacts import WatchedPairs, watched_pairs
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, is_number
from synovia.model.shapes.distances import Contact
from synovia.model.shapes.world import Obstacle, World

_AWAY: Final = 0.1  # fraction of the body's size: pairs that exceed their required distance by more are not drawn
_MOST: Final = 4  # largest number of drawn pairs; pairs that are too near are always drawn
_NAMED: Final = 3  # largest number of labelled pairs that are too near


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """Two nearby objects in a picture.

    Args:
        points: The nearest points of both objects, (2, 3).
        distance: Distance of the objects, length units; below 0 for an overlap.
        is_near: Whether the objects are nearer than the required distance.
        names: Names of both objects.
        labelled: Whether names and distance are written next to the line.
    """

    points: Array
    distance: float
    is_near: bool
    names: tuple[str, str]
    labelled: bool = False

    def text(self, say: Callable[[float], str]) -> str:
        """Return a text with names and distance; ``say`` formats a length."""
        first, second = self.names
        size = say(abs(self.distance))
        return f"{first} to {second} {size}" if self.distance >= 0.0 else f"{first} {size} into {second}"


class Gaps:
    """The pairs of links and obstacles that pictures of a body show.

    Args:
        pairs: The pairs to check.
        size: Size of the body, length units.
    """

    def __init__(self, pairs: Sequence[WatchedPairs], size: float) -> None:
        """Store the arguments."""
        self._pairs, self._size = pairs, size

    @classmethod
    def of_goals(cls, ik: CompiledProblem) -> Gaps:
        """Return the pairs that the clearance goals of a problem keep apart."""
        return cls(watched_pairs(ik), ik.skeleton.size)

    @classmethod
    def of_body(cls, skeleton: Skeleton, clearance: float, world: World | None) -> Gaps:
        """Return the pairs of links, and of a link and an obstacle, that can collide.

        Args:
            skeleton: The body.
            clearance: The required distance, length units.
            world: The obstacles; None without any.

        Raises:
            InputError: If the body has no shapes, or the distance is no number.
        """
        if not is_number(clearance):
            raise InputError("clearance", value=clearance, expected="a distance, or None")
        return cls(WatchedPairs.of(skeleton, world, clearance), skeleton.size)

    @property
    def world(self) -> World | None:
        """World with all obstacles of the pairs; None without obstacles."""
        worlds = [pairs.world for pairs in self._pairs if pairs.world is not None and not pairs.close]
        found: list[Obstacle] = []
        for world in worlds:
            found += [obstacle for obstacle in world if obstacle not in found]
        names = [obstacle.name for obstacle in found]
        if len(set(names)) < len(names):  # if obstacles of several worlds have the same name
            found = [Obstacle(one.shapes, transform=one.transform) for one in found]
        return World(tuple(found), meters_per_unit=worlds[0].meters_per_unit, up=worlds[0].up) if worlds else None

    def at(self, pose: Pose) -> list[Gap]:
        """Return the pairs to draw in a pose, sorted by the distance minus the required distance."""
        found = [(contact, pairs.distance) for pairs in self._pairs for contact in pairs.at(pose)]
        found.sort(key=lambda one: one[0].distance - one[1])
        gaps: list[Gap] = []
        for contact, wanted in found:
            near = contact.distance < wanted
            if not near and (len(gaps) >= _MOST or contact.distance > wanted + _AWAY * self._size):
                break
            labelled = not gaps or (near and len(gaps) < _NAMED)
            gaps.append(Gap(contact.points, contact.distance, near, _names(contact), labelled))
        return gaps


def _names(contact: Contact) -> tuple[str, str]:
    """Return the names of a pair with spaces instead of underscores."""
    first, second = (str(name).replace("_", " ") for name in contact.pair or ("", ""))
    return first, second
