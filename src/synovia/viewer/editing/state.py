"""The state of a page: all data that the user edits, with a lock and a signal for changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from typing import Final

import numpy as np

from synovia.errors import SynoviaError
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import checked_tolerance
from synovia.model import Pose, Skeleton
from synovia.model.change import blend
from synovia.model.geometry import Array
from synovia.model.loops.closing import closed_near
from synovia.model.motion import Motion
from synovia.model.rooted import Rooted, rooted, with_root_values
from synovia.model.shapes.world import World
from synovia.solver import FullBody, Solver, as_solver
from synovia.viewer.editing.clip.play import LayerDrag, Play, sample, together
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.editor_values import place_at_current
from synovia.viewer.editing.limits import SpeedLimits

# Solver for dragging; the largest move is in radians per frame, 7 rad/s, so that limbs without goals swing slowly
DRAGGED: Final = FullBody(attempts=1, largest_move=0.12)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The part of a state that undo restores."""

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
    """A body with its goals, solver, clip and pose library; hold the lock to change any of them.

    Args:
        given: The given skeleton; a moving root of the clips is added before its joints.
        clips: Clips to choose from.
        wanted: Settings of the solver; None for the default with one attempt, so that the body moves without jumps.
        mode: Initial root mode, see ``rooted``.
        tolerance: As in ``IK``.
        world: The obstacles around the body, in its unit and with its axis; None without any.

    Attributes:
        solver: Settings of the solver.
        limits: Speed limits of the body.
        size: Size of the body, length units.
        rooted: The skeleton with the current root mode.
        pose: The current pose.
        base: Joint values with which the clip is blended, (nq,).
        editors: The goals, in order.
        play: The clip that plays.
        refused: Reason why the last drag on a clip had no effect, until the page has shown it; empty without one.
        reach: The joints that a drag on a clip may move: "limb", "upper body" or "whole body".
        library: Poses of the given skeleton by name.
        lock: Lock for all attributes.
        changed: Event that wakes the thread that solves and shows.
        version: Number that changes whenever the problem must be packed again.
        first_world: The obstacles at their initial positions.
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
    refused: str = field(init=False, default="")
    reach: str = field(init=False, default="whole body")
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
        """The solved skeleton: the joints of a moving root, then the given skeleton."""
        return self.rooted.skeleton

    @property
    def added(self) -> frozenset[str | int]:
        """Names of the root joints that the page has added."""
        return frozenset(map(self.skeleton.address, range(self.rooted.added)))

    def finish(self, solved: Play | None = None) -> None:
        """End the drag on the clip: all frames then show its layer. A layer that cannot be solved is dropped.

        Args:
            solved: The clip with the solved layer; None to solve it here.
        """
        play, drag = self.play, self.play.drag
        if drag is None:
            return
        play.drag = None
        with suppress(SynoviaError):
            play.become(self.without_drag(play, drag).solved(self.added) if solved is None else solved)
        for editor in self.editors:
            if editor.key == drag.editor:
                editor.follows = True
        self.touch()

    def without_drag(self, play: Play, drag: LayerDrag) -> Play:
        """Return the clip with the dragged layer among its layers; they still have to be solved."""
        layers, above = drag.placed
        return replace(play, layers=layers, above=above, drag=None)

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
        """Change the root mode, with joint values of the new skeleton, (nq,)."""
        self.rooted, self.mode = to, to.mode
        self.put(q)
        self.touch(structure=True)

    def to_current(self, editor: GoalEditor) -> None:
        """Set an editor's target to the current pose of its joint."""
        place_at_current(editor, self.pose, self.rooted.added, self.size)
        editor.given = POSITION | ROTATION
        self.touch()

    def start(self, seconds: float | None = None) -> Pose:
        """Return the pose to solve from: the pose of the clip, blended by its weight; without a clip, the current pose.

        Args:
            seconds: Time of the clip; a layer that is being dragged then has no effect. None for the current time,
                with this layer.
        """
        play = self.play
        if play.motion is None:
            return self.pose
        if seconds is None and play.drag is not None:
            return Pose.trusted(self.skeleton, with_root_values(play.drag.pose().q, self.rooted))
        time = play.time if seconds is None else seconds
        frame = np.array([time * play.motion.fps])
        q: Array = play.keyed(self.skeleton, frame, self._blended(play, play.top, time)[None])[0]
        if self.skeleton.mechanism is not None:  # blending and added changes may open loops
            q = closed_near(self.skeleton, q, self.pose.q)
        return Pose.trusted(self.skeleton, q)

    def clip_values(self, seconds: float, play: Play | None = None) -> Array:
        """Return the joint values, (nq,), of the clip with the layers below its keys, blended by its weight.

        Args:
            seconds: Time of the clip.
            play: The clip and its layers; None for those of the state.
        """
        play = self.play if play is None else play
        return self._blended(play, play.below, seconds)

    def _blended(self, play: Play, motion: Motion | None, seconds: float) -> Array:
        """Return joint values, (nq,), of a motion at a time, blended with ``base`` by the clip's weight."""
        if motion is None:
            return self.base
        return blend(self.skeleton, self.base, with_root_values(sample(motion, seconds), self.rooted), play.weight)

    def place(self, editors: Iterable[GoalEditor], start: Pose) -> None:
        """Move the targets that follow: targets of free goals to the body, others to the clip's pose ``start``."""
        for editor in editors:
            if editor.free or (editor.follows and self.play.motion is not None):
                pose = self.pose if self.play.motion is None else start
                place_at_current(editor, pose, self.rooted.added, self.size)

    def snapshot(self) -> Snapshot:
        """Return a copy of the data that undo restores, after the end of a drag."""
        self.finish()
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
        """Restore the data of a snapshot."""
        self.library, self.world = snapshot.library, snapshot.world
        self.editors = [editor.copy() for editor in snapshot.editors]
        for editor in self.editors:
            editor.snap()
        self.solver, self.limits, clip = snapshot.solver, snapshot.limits, snapshot.play
        same = self.play.motion is clip.motion  # if the clip was not changed, it keeps its time
        kept = {name: getattr(self.play, name) for name in ("time", "playing", "shuttle", "loop")}
        self.play = replace(clip, **kept) if same else replace(clip)
        self.set_root(snapshot.root, snapshot.q)
        self.base = snapshot.base
