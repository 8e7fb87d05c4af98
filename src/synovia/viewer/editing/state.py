"""The state of a page: what a person edits, and the lock and the signal of its changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Final

import numpy as np

from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import checked_tolerance
from synovia.model import Pose, Skeleton
from synovia.model.change import blend, changed
from synovia.model.geometry import Array
from synovia.model.loops.closing import closed_near
from synovia.model.motion import Motion
from synovia.model.shapes.world import World
from synovia.solver import FullBody, Solver, as_solver
from synovia.viewer.editing.clip.play import Play, sample, together
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.editor_values import place_at_current
from synovia.viewer.editing.limits import SpeedLimits
from synovia.viewer.editing.root import Rooted, rooted, with_root_values

# A body that is dragged; radians in a frame, 7 a second: limbs that no goal holds swing no faster
DRAGGED: Final = FullBody(attempts=1, largest_move=0.12)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What undo restores of a state."""

    editors: tuple[GoalEditor, ...]
    root: Rooted
    q: Array
    base: Array
    solver: Solver
    limits: SpeedLimits
    play: Play
    library: Mapping[str, Pose]
    world: World | None = None


@dataclass(slots=True, eq=False)
class State:
    """A body, its goals, its solver, its clip and the poses that were kept; whoever changes something holds the lock.

    Args:
        given: The given skeleton; the root of a clip that moves stands before its joints.
        clips: Clips to choose from.
        wanted: Settings of the solver; None: the default ones with one attempt, so that the body moves without jumps.
        mode: How the root moves at first, see ``rooted``.
        tolerance: As in ``IK``.
        world: The obstacles around the body, in its unit and with its axis; None without any.

    Attributes:
        solver: Settings of the solver.
        limits: Speed limits within which the body follows.
        size: Size of the body, length units.
        rooted: The skeleton with the present root mode.
        pose: The present pose.
        base: Joint values underneath the clip, (nq,).
        editors: The goals, in order.
        play: The clip that plays.
        key_due: Whether the pose becomes a key once the body rests.
        library: Poses of the given skeleton by name.
        lock: Lock of all of this.
        changed: Event that wakes what solves and shows.
        version: Number that changes whenever the problem must be packed again.
        first_world: The obstacles where they were at first.
    """

    given: Skeleton
    clips: Sequence[Motion] = ()
    wanted: InitVar[Solver | None] = None
    mode: str = "fixed"
    tolerance: tuple[float, float] | None = None
    world: World | None = None
    solver: Solver = field(init=False)
    limits: SpeedLimits = field(init=False, default=SpeedLimits())
    size: float = field(init=False)
    rooted: Rooted = field(init=False)
    pose: Pose = field(init=False)
    base: Array = field(init=False)
    editors: list[GoalEditor] = field(init=False, default_factory=list[GoalEditor])
    play: Play = field(init=False, default_factory=Play)
    key_due: bool = field(init=False, default=False)
    library: Mapping[str, Pose] = field(init=False, default_factory=dict[str, Pose])
    lock: threading.RLock = field(init=False, default_factory=threading.RLock)
    changed: threading.Event = field(init=False, default_factory=threading.Event)
    version: int = field(init=False, default=0)
    first_world: World | None = field(init=False, default=None)

    def __post_init__(self, wanted: Solver | None) -> None:
        """Check the arguments, and set the rest pose."""
        self.solver = as_solver(None).without_restarts() if wanted is None else wanted
        self.first_world = self.world
        self.given, self.clips = together(self.given, self.clips)
        self.size = self.given.size or 1.0
        if self.tolerance is not None:
            self.tolerance = checked_tolerance(self.tolerance, self.size)
        self.rooted = rooted(self.given, self.mode)
        self.mode = self.rooted.mode
        self.pose = Pose(self.skeleton, with_root_values(self.given.rest_q, self.rooted))
        self.base = self.pose.q.copy()

    @property
    def skeleton(self) -> Skeleton:
        """The solved skeleton: the given one, after the joints of a root that moves."""
        return self.rooted.skeleton

    def touch(self, *, structure: bool = False) -> None:
        """Signal a change; with ``structure``, the problem must be packed again."""
        self.version += structure
        self.changed.set()

    def put(self, q: Array) -> None:
        """Set the pose by joint values of the solved skeleton, (nq,), clamped to its limits."""
        with self.lock:
            near = self.pose.q if self.pose.skeleton is self.skeleton else self.skeleton.rest_q
            inside = closed_near(self.skeleton, np.array(q).reshape(-1), near)
            self.base = np.array(inside)
            self.pose = Pose(self.skeleton, inside)
            self.touch()

    def set_root(self, to: Rooted, q: Array) -> None:
        """Change to another root, with joint values for it, (nq,)."""
        self.rooted, self.mode = to, to.mode
        self.put(q)
        self.touch(structure=True)

    def to_current(self, editor: GoalEditor) -> None:
        """Set an editor's target to the present pose of its joint."""
        place_at_current(editor, self.pose, self.rooted.added, self.size)
        editor.given = POSITION | ROTATION
        self.touch()

    def start(self, seconds: float | None = None) -> Pose:
        """Return the pose to solve from: that of the clip, blended by its weight, or the present pose without a clip.

        Args:
            seconds: Time of the clip; None for the present one.
        """
        if self.play.motion is None:
            return self.pose
        time = self.play.time if seconds is None else seconds
        frame = np.array([time * self.play.motion.fps])
        q: Array = self.play.keyed(self.skeleton, frame, self.clip_values(time)[None])[0]
        if self.play.loose is not None:
            q = changed(self.skeleton, q, self.play.loose)
        if self.skeleton.mechanism is not None:  # frames are blended, and changes are added
            q = closed_near(self.skeleton, q, self.pose.q)
        return Pose.trusted(self.skeleton, q)

    def clip_values(self, seconds: float) -> Array:
        """Return the joint values of the clip with its layers, blended by its weight, without its keys, (nq,)."""
        below = self.play.below
        if below is None:
            return self.base
        clip = with_root_values(sample(below, seconds), self.rooted)
        return blend(self.skeleton, self.base, clip, self.play.weight)

    def place(self, editors: Iterable[GoalEditor], start: Pose) -> None:
        """Move the targets that follow: those of free goals to the body, others to the clip's pose ``start``."""
        for editor in editors:
            if editor.free or (editor.follows and self.play.motion is not None):
                pose = self.pose if editor.free else start
                place_at_current(editor, pose, self.rooted.added, self.size)

    def snapshot(self) -> Snapshot:
        """Return what undo restores."""
        editors = tuple(editor.copy() for editor in self.editors)
        play = replace(self.play)
        return Snapshot(
            editors,
            self.rooted,
            self.pose.q.copy(),
            self.base,
            self.solver,
            self.limits,
            play,
            self.library,
            self.world,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Restore what ``snapshot`` has returned."""
        self.key_due, self.library, self.world = False, snapshot.library, snapshot.world
        self.editors = [editor.copy() for editor in snapshot.editors]
        for editor in self.editors:
            editor.snap()
        self.solver, self.limits, clip = snapshot.solver, snapshot.limits, snapshot.play
        same = self.play.motion is clip.motion  # a clip that was not changed keeps its time
        self.play = replace(clip, time=self.play.time, playing=self.play.playing) if same else replace(clip)
        self.set_root(snapshot.root, snapshot.q)
        self.base = snapshot.base
