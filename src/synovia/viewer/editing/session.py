"""A session: what one user edits on a page, divided by subject. Changes take its lock; it needs no browser."""

from __future__ import annotations

from collections.abc import Sequence

from synovia.model import Skeleton
from synovia.model.motion import Motion
from synovia.model.shapes.world import World
from synovia.solver import Solver
from synovia.viewer.editing.around import MovedObstacles
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.layers import ClipLayers
from synovia.viewer.editing.goals import Goals
from synovia.viewer.editing.hand import Hand
from synovia.viewer.editing.history import History
from synovia.viewer.editing.poses import Poses
from synovia.viewer.editing.solving import Solving
from synovia.viewer.editing.state import State


class Session:
    """What one person edits on one page: one state, and an object for each subject of it.

    Args:
        given: The given skeleton; the root of a clip that moves stands before its joints.
        clips: Clips to choose from.
        solver: Settings of the solver; None: the default ones with one attempt, so that the body moves without jumps.
        mode: How the root moves, see ``rooted``.
        tolerance: As in ``IK``.
        world: The obstacles around the body; None without any.

    Attributes:
        state: What all of them read and change: for those that only look, such as the solving loop and the files.
        history: Undo, redo, reset.
        body: The pose, joint by joint, and the root.
        goals: The goals.
        animation: The clip, and the keys on top of it.
        layers: The layers between them.
        poses: Whole poses: copied, mirrored, kept.
        solving: The solver and its problem.
        obstacles: The obstacles, which can be moved.
        hand: Edits by hand.
    """

    def __init__(
        self,
        given: Skeleton,
        clips: Sequence[Motion] = (),
        solver: Solver | None = None,
        mode: str = "fixed",
        tolerance: tuple[float, float] | None = None,
        *,
        world: World | None = None,
    ) -> None:
        """Check the arguments, and set the rest pose."""
        self.state = State(given, clips, solver, mode, tolerance, world)
        self.history = History(self.state)
        self.body = Body(self.state, self.history)
        self.goals = Goals(self.state, self.history)
        self.animation = Animation(self.state, self.history)
        self.layers = ClipLayers(self.state, self.history, self.animation, self.goals)
        self.poses = Poses(self.state, self.history, self.animation)
        self.solving = Solving(self.state, self.history)
        self.obstacles = MovedObstacles(self.state, self.history)
        self.hand = Hand(self.history, self.animation)
