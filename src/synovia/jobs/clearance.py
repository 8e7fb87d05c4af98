"""Clearance in jobs: the options with which a body keeps clear of obstacles and of itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from synovia.errors import InputError
from synovia.jobs.base import Host
from synovia.jobs.options import Number, Option, described, option
from synovia.jobs.shared import OBSTACLE_FILES, WORLD

if TYPE_CHECKING:
    from synovia.goals import ClearanceGoal, Goal
    from synovia.layers import Layer
    from synovia.model import Skeleton
    from synovia.model.shapes.world import World

AVOIDED: Final = replace(
    WORLD, help=f"Obstacles that the body keeps clear of, as it then does of itself: {OBSTACLE_FILES}."
)
CLEARANCE: Final = Option(
    "Keep the links at least this far apart from each other, and from the obstacles of --world.", Number(),
    metavar="DISTANCE", shown="0 with --world", unit="length units of the model",
)  # fmt: skip
_CLEAR: Final = "clearance"  # label of the layer of an edit that only keeps clear


def check_shapes(skeleton: Skeleton) -> None:
    """Check that a body has shapes.

    Raises:
        InputError: If it has none.
    """
    if not skeleton.shapes:
        hint = "--shapes fits capsules to it"
        raise InputError(skeleton.name, where="clearance", expected="a body with shapes", hint=hint)


def fitted(skeleton: Skeleton, host: Host) -> Skeleton:
    """Return a body with capsules in place of missing shapes, and report that they are used."""
    from synovia.covers import fitted_text, with_shapes

    found = with_shapes(skeleton)
    if (text := fitted_text(skeleton, found)) is not None:
        host.say(text, skeleton.name)
    return found


@described
class Clear:
    """What the body keeps clear of."""

    world: str | None = option(default=None, like=AVOIDED)
    clearance: float | None = option(default=None, like=CLEARANCE)
    shapes: bool = option(
        default=False,
        help="Fit capsules to a body without shapes, which keeping clear needs, or to links whose shapes are missing.",
    )

    @cached_property
    def obstacles(self) -> World | None:
        """The obstacles of the file; None without one."""
        from synovia.io.worlds import read_world

        return None if self.world is None else read_world(Path(self.world))

    def keep_clear(self, skeleton: Skeleton, goals: Sequence[Goal], host: Host) -> tuple[Skeleton, list[Goal]]:
        """Return a body with shapes if it needs them, and the goals with those that keep it clear.

        Args:
            skeleton: The body.
            goals: The other goals; clearance goals of a file have the world already.
            host: Gets the notes of the world.

        Raises:
            InputError: If the body has no shapes and may get none.
        """
        wanted = [*goals, *self.clearance_goals(goals)]
        return self._fit_for(skeleton, wanted, host), wanted

    def keep_layers_clear(
        self, skeleton: Skeleton, layers: Sequence[Layer], host: Host
    ) -> tuple[Skeleton, list[Layer]]:
        """Return a body with shapes if it needs them, and layers that each keep it clear.

        Without layers, one keeps the whole clip clear, if the options say so.

        Args:
            skeleton: The body.
            layers: The layers; those of a file have the world already.
            host: Gets the notes of the world.

        Raises:
            InputError: If the body has no shapes and may get none.
        """
        from synovia.layers import Layer

        wanted = [
            layer.replace(goals=[*layer.goals, *own], name=layer.label)
            if (own := self.clearance_goals(layer.goals))
            else layer
            for layer in layers
        ]
        if not layers and (alone := self.clearance_goals()):
            wanted = [Layer(goals=alone, name=_CLEAR)]
        goals = [goal for layer in wanted if not layer.empty for goal in layer.goals]
        return self._fit_for(skeleton, goals, host), wanted

    def _fit_for(self, skeleton: Skeleton, goals: Iterable[Goal], host: Host) -> Skeleton:
        """Return a body with shapes if some of its goals need them, and report the notes of the world."""
        if self.obstacles is not None:
            host.note_model(self.obstacles.notes)
        return self.covered(skeleton, host) if any(goal.takes_world for goal in goals) else skeleton

    def covered(self, skeleton: Skeleton, host: Host) -> Skeleton:
        """Return a body with shapes: those that it has, and if it may get some, capsules in place of missing ones.

        Raises:
            InputError: If it has none and may get none.
        """
        if not self.shapes:
            check_shapes(skeleton)
            return skeleton
        if skeleton not in self._fitted:
            self._fitted[skeleton] = fitted(skeleton, host)
        return self._fitted[skeleton]

    @cached_property
    def _fitted(self) -> dict[Skeleton, Skeleton]:
        """Bodies with the shapes that were fitted to them."""
        return {}

    def clearance_goals(self, goals: Iterable[Goal] = ()) -> list[ClearanceGoal]:
        """Return the goal of the options; without a distance, it is left out if a goal keeps clear of the world."""
        from synovia.goals import ClearanceGoal

        if self.clearance is not None:
            return [ClearanceGoal(self.clearance, world=self.obstacles)]
        known = any(isinstance(goal, ClearanceGoal) and goal.avoids_world for goal in goals)
        return [] if self.obstacles is None or known else [ClearanceGoal(world=self.obstacles)]
