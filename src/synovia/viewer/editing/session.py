"""A session: everything that one user edits on a page, divided by subject.

All changes hold the lock of the session. A session needs no browser.
"""

from __future__ import annotations

from collections.abc import Sequence

from synovia.model import Skeleton
from synovia.model.motion import Motion
from synovia.model.shapes.world import World
from synovia.solver import Solver
from synovia.viewer.editing.around import MovedObstacles
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.judging import Judging
from synovia.viewer.editing.clip.layers import ClipLayers
from synovia.viewer.editing.goals import Goals
from synovia.viewer.editing.hand import Hand
from synovia.viewer.editing.history import History
from synovia.viewer.editing.poses import Poses
from synovia.viewer.editing.solving import Solving
from synovia.viewer.editing.state import State


class Session:
    """Everything that one user edits on one page: a shared state, and an object for each subject.

    Args:
        given: The given skeleton. If the root of a clip moves, its root joints come before those of the skeleton.
        clips: Clips to choose from.
        solver: Settings of the solver; None for the default settings with one attempt, so that the body does not jump.
        mode: How the root moves, see ``rooted``.
        tolerance: As in ``IK``.
        world: The obstacles around the body; None if there are none.

    Attributes:
        state: The shared state. Code that only reads, such as the solving loop and the files, uses it directly.
        history: Undo, redo and reset.
        body: The pose, joint by joint, and the root.
        goals: The goals.
        animation: The clip, and the keys on top of it.
        layers: The layers between the clip and the keys.
        poses: Operations on whole poses: copy, mirror, keep.
        solving: The solver and its problem.
        judging: The findings about a retargeted clip.
        obstacles: The obstacles, which the user can move.
        hand: Start and end of edits by hand.
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
        self.judging = Judging(self.state)
        self.obstacles = MovedObstacles(self.state, self.history)
        self.hand = Hand(self.history, self.animation)
