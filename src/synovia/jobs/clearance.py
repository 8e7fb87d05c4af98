"""Clearance in jobs: options that keep a body clear of obstacles and of itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from synovia import options
from synovia.errors import InputError
from synovia.jobs.base import Host
from synovia.jobs.options import Number, Option, described, option
from synovia.jobs.shared import WORLD
from synovia.options import OBSTACLE_FILES

if TYPE_CHECKING:
    from synovia.goals import ClearanceGoal, Goal
    from synovia.layers import Layer
    from synovia.model import Skeleton
    from synovia.model.shapes.world import World

AVOIDED: Final = replace(WORLD, help=f"Obstacles for the body to avoid, along with self-collisions: {OBSTACLE_FILES}.")
CLEARANCE: Final = Option(
    "Keep the links at least this far apart from each other, and from the obstacles of --world.", Number(),
    metavar="DISTANCE", shown="0 with --world", unit="length units of the model",
)  # fmt: skip
_CLEAR: Final = "clearance"  # label of an edit layer whose only goal is clearance


def check_shapes(skeleton: Skeleton) -> None:
    """Check that a body has shapes.

    Raises:
        InputError: If the body has none.
    """
    if not skeleton.shapes:
        hint = "--shapes fits capsules to it"
        raise InputError(skeleton.name, where="clearance", expected="a body with shapes", hint=hint)


def fitted(skeleton: Skeleton, host: Host) -> Skeleton:
    """Return a body with capsules in place of its missing shapes, and report that capsules are used."""
    from synovia.covers import fitted_text, with_shapes

    found = with_shapes(skeleton)
    if (text := fitted_text(skeleton, found)) is not None:
        host.say(text, skeleton.name)
    return found


@described
class Clear:
    """Options for the obstacles and the distance that the body keeps from them and from itself."""

    world: str | None = option(default=None, like=AVOIDED)
    clearance: float | None = option(default=None, like=CLEARANCE)
    shapes: bool = option(
        default=..., like=options.FITTED,
        help="Fit capsules to the links that have no shapes; without shapes, collisions cannot be avoided.",
    )  # fmt: skip

    @cached_property
    def obstacles(self) -> World | None:
        """The obstacles of the file; None if no file is given."""
        from synovia.io.worlds import read_world

        return None if self.world is None else read_world(Path(self.world))

    def keep_clear(self, skeleton: Skeleton, goals: Sequence[Goal], host: Host) -> tuple[Skeleton, list[Goal]]:
        """Return the body, with shapes if the goals need them, and the goals with added clearance goals.

        Args:
            skeleton: The body.
            goals: The other goals; clearance goals of a file already have the world.
            host: Gets the notes of the world.

        Raises:
            InputError: If the goals need shapes, the body has none, and the option ``shapes`` is not set.
        """
        wanted = [*goals, *self.clearance_goals(goals)]
        return self._fit_for(skeleton, wanted, host), wanted

    def keep_layers_clear(
        self, skeleton: Skeleton, layers: Sequence[Layer], host: Host
    ) -> tuple[Skeleton, list[Layer]]:
        """Return the body, with shapes if the goals need them, and the layers, each with a clearance goal.

        If there are no layers but the options ask for clearance, one layer keeps the whole clip clear.

        Args:
            skeleton: The body.
            layers: The layers; clearance goals of a file already have the world.
            host: Gets the notes of the world.

        Raises:
            InputError: If the goals need shapes, the body has none, and the option ``shapes`` is not set.
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
        """Return the body, with shapes if a goal needs them, and report the notes of the world."""
        if self.obstacles is not None:
            host.note_model(self.obstacles.notes)
        return self.covered(skeleton, host) if any(goal.takes_world for goal in goals) else skeleton

    def covered(self, skeleton: Skeleton, host: Host) -> Skeleton:
        """Return the body with shapes; with the option ``shapes``, fit capsules in place of missing shapes.

        Raises:
            InputError: If the body has no shapes, and the option is not set.
        """
        if not self.shapes:
            check_shapes(skeleton)
            return skeleton
        if skeleton not in self._fitted:
            self._fitted[skeleton] = fitted(skeleton, host)
        return self._fitted[skeleton]

    @cached_property
    def _fitted(self) -> dict[Skeleton, Skeleton]:
        """Cache of bodies with fitted shapes, by the original body."""
        return {}

    def clearance_goals(self, goals: Iterable[Goal] = ()) -> list[ClearanceGoal]:
        """Return the clearance goal of the options; none if only a world is given and a goal already avoids it."""
        from synovia.goals import ClearanceGoal

        if self.clearance is not None:
            return [ClearanceGoal(self.clearance, world=self.obstacles)]
        known = any(isinstance(goal, ClearanceGoal) and goal.avoids_world for goal in goals)
        return [] if self.obstacles is None or known else [ClearanceGoal(world=self.obstacles)]
