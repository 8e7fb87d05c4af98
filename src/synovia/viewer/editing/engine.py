"""The engine: ease the targets of a session, solve, and return a frame to show; ``worker`` runs the engine."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

import numpy as np

from synovia.clips.editing import EditStack
from synovia.compiling import needed_next
from synovia.draw.gaps import Gap, Gaps
from synovia.errors import SynoviaError
from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.ik import Solution
from synovia.ik.nudges import Nudges
from synovia.ik.solution import GoalError
from synovia.ik.status import Status
from synovia.layers import Layer
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.servo import Servo, Tick
from synovia.solver import FullBody
from synovia.viewer.editing.clip.play import LayerDrag, Play
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.editor_values import tip_of
from synovia.viewer.editing.limits import SpeedLimits
from synovia.viewer.editing.state import State

_EASE: Final = 0.035  # time constant of eased targets, seconds
_SOLVE: Final = 0.012  # time limit of one solve, seconds; after a miss, the next frame continues the solve
_UNFINISHED: Final = 120  # largest number of consecutive frames that continue an unfinished solve
_MOVES: Final = 1e-3  # radians or length units: if a joint value changes by more, the next frame continues the motion
_TIMED: Final = 60  # number of solves for the median time
_FIRST_PACK: Final = threading.Lock()  # held while a session packs its first problem
_POLL: Final = 0.1  # seconds between two checks whether the session has stopped, while waiting for the lock


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """State of the page at one moment.

    Args:
        pose: Pose of the body.
        added: Number of root rows in front of the rows of the given skeleton.
        editors: Copies of all editors.
        errors: Errors of the enabled editors, by key.
        missed: Keys of the editors whose goals are missed.
        solution: The last solution; None if no editor is enabled.
        milliseconds: Median time of the last solves.
        trouble: Reason why the problem cannot be solved; empty if it can.
        busy: Whether the solver is not ready yet.
        compiling: Description of the current compilation, seconds since it began, and its estimated seconds (0 if
            unknown).
        time: Time of the clip, seconds.
        moved: Joints that the goals move, rows of the given skeleton.
        still: Whether the page has been at rest for a moment, so that slow work may start.
        following: The servo's tick, if the body moves within speed limits; None without limits.
        gaps: The nearest pairs of clearance goals.
    """

    pose: Pose
    added: int
    editors: tuple[GoalEditor, ...]
    errors: dict[int, GoalError]
    missed: frozenset[int]
    solution: Solution | None
    milliseconds: float
    trouble: str
    busy: bool
    time: float
    moved: frozenset[int] = frozenset()
    still: bool = False
    compiling: tuple[str, float, float] = ("", 0.0, 0.0)
    following: Tick | None = None
    gaps: tuple[Gap, ...] = ()

    @property
    def late(self) -> bool:
        """Whether the body is still moving to its targets within speed limits."""
        return self.following is not None and self.following.status is Status.LATE

    def state(self, editor: GoalEditor) -> str:
        """Return the state of a goal: ``reached``, ``missed`` or ``quiet`` (not solved, or still moving).

        These are names of theme colours.
        """
        if editor.key in self.missed:
            return "quiet" if self.late else "missed"
        return "reached" if editor.enabled and editor.key in self.errors else "quiet"


class Engine:
    """Solves a session, step by step.

    Args:
        state: The state of the page.
        stopped: Event that is set when the session ends.
    """

    def __init__(self, state: State, stopped: threading.Event | None = None) -> None:
        """Set up the state. The first step packs the problem."""
        self.state = state
        self._stopped = stopped or threading.Event()
        self.ik: IK | None = None
        self.active: tuple[int, ...] = ()
        self._skeleton: Skeleton | None = None
        self._moved: frozenset[int] = frozenset()
        self._version = -1
        self._trouble = ""
        self._warm = False
        self._times: deque[float] = deque(maxlen=_TIMED)
        self._nudges: Nudges | None = None  # None without a problem
        self._unfinished = 0  # number of consecutive frames with unfinished solves
        self._left: Pose | None = None  # pose after the last step
        self._limits = SpeedLimits()
        self._gaps: Gaps | None = None
        self._servo: Servo | None = None  # moves the body within speed limits
        self._compiled = False  # whether the solver of layers has been used

    @property
    def stale(self) -> bool:
        """Whether the problem must be packed again."""
        return self._version != self.state.version

    def prepare(self) -> None:
        """Pack the problem if its structure has changed; the first use of a solver compiles the solver for seconds.

        The compiler serves one thread at a time, and a thread that waits for it cannot be interrupted. The browser may
        disconnect before the session's first problem is packed. So the thread waits here, and returns if the session
        stops.
        """
        if self._version >= 0:
            self._pack()
            return
        while not _FIRST_PACK.acquire(timeout=_POLL):
            if self._stopped.is_set():
                return
        try:
            if not self._stopped.is_set():
                self._pack()
        finally:
            _FIRST_PACK.release()

    def _pack(self) -> None:
        """Pack the problem if its structure has changed."""
        state = self.state
        with state.lock:
            version, solver, rooted, tolerance = state.version, state.solver, state.rooted, state.tolerance
            motion, limits = state.play.motion, state.limits
            if limits.on and isinstance(solver, FullBody):
                solver = replace(solver, largest_move=FullBody().largest_move)
            editors = [editor.copy() for editor in state.editors if editor.enabled and motion is None]
        if version == self._version:
            return
        self._times.clear()
        self._warm = False
        self.ik, self._trouble, self._left, self._nudges, self._unfinished = None, "", None, None, 0
        self._servo, self._limits, self._gaps = None, limits, None
        if motion is not None and not self._compiled:
            with suppress(SynoviaError), needed_next(misses=True):
                _compile_layers(motion)
            self._compiled = True
        if editors:
            try:
                goals = [editor.goal(state.given.address) for editor in editors]
                with needed_next(misses=True):
                    self.ik = IK(rooted.held, goals, solver, tolerance=tolerance, root=rooted.mode)
                self._gaps = Gaps.of_goals(self.ik.problem)
                self._moved = frozenset(row - rooted.added for row in self.ik.moving)
                self._skeleton = rooted.skeleton  # the same joints as in ``ik.skeleton``
                self.ik.precompile()  # compile now, while the page shows that it is busy, and not during a drag
                if limits.on:
                    self._servo = limits.servo(self.ik, _SOLVE)
                self._nudges = Nudges(self.ik.problem)
            except SynoviaError as error:
                self._trouble = str(error)
        self.active = tuple(editor.key for editor in editors)
        self._version = version

    def targets(self, editors: Iterable[GoalEditor]) -> dict[str, Any]:
        """Return the eased targets of the enabled editors for ``IK.solve``."""
        targets = {editor.label: editor.target() for editor in editors if editor.key in self.active}
        return {label: target for label, target in targets.items() if target is not None}

    def step(self, seconds: float) -> tuple[Frame, bool]:
        """Advance the page by some seconds and solve; return the frame, and whether anything still moves.

        The solve runs outside the session's lock, so that edits never wait for a solve.
        """
        state = self.state
        self.prepare()
        if state.play.motion is not None:
            return self._clip_step(seconds)
        with state.lock:
            state.changed.clear()
            start, editors, moving = self._advance(seconds)
            version, before, clock = state.version, state.pose, state.play.time
        if version != self._version:  # an edit after ``prepare``; the next step packs the problem again
            return self._frame(before, editors, None, clock), True
        solution, command = None, None
        pose = start
        if self.ik is not None and self._nudges is not None and start.skeleton is self._skeleton:
            targets = self.targets(editors)
            if moving or before is not self._left:
                self._nudges.begin()
            try:
                begun = time.perf_counter()
                if self._servo is None:
                    solution = self._solved(self.ik, self._nudges, targets, start)
                else:
                    command = self._followed(self._servo, targets, start, seconds)
                    self._nudges.end()
                    solution = command.solution
                if self._warm:  # the first solve fills caches
                    self._times.append(time.perf_counter() - begun)
                self._warm = True
                pose, self._trouble = self.own(solution), ""
            except SynoviaError as error:
                self._trouble = str(error)
                self._nudges.end()
        self._keep(pose, before, version)
        self._left = pose
        return self._frame(pose, editors, solution, clock, command), (moving or self._nudged or self._unfinished > 0)

    def _clip_step(self, seconds: float) -> tuple[Frame, bool]:
        """Advance the clip, and solve the layer that is dragged; see ``step``."""
        state = self.state
        if (drag := state.play.drag) is not None:
            begun = time.perf_counter()
            drag.pose()  # outside the lock
            self._times.append(time.perf_counter() - begun)
            if drag.ended:
                self._end(drag)
        with state.lock:
            state.changed.clear()
            pose, editors, _ = self._advance(seconds)
            state.pose, play = pose, replace(state.play)
        self._trouble = "" if play.drag is None else play.drag.trouble
        frame = self._frame(pose, editors, None, play.time)
        if play.drag is not None and play.drag.editor is not None:
            missed, errors = play.drag.pose()[1:]
            dragged = next(editor for editor in editors if editor.key == play.drag.editor)
            error = tuple(errors[0].tolist()) if len(errors) else (self._distance(pose, dragged), 0.0)
            frame = replace(
                frame,
                errors={dragged.key: GoalError(*error)},
                missed=frozenset([dragged.key] if missed else []),
            )
        return frame, play.playing

    def _distance(self, pose: Pose, editor: GoalEditor) -> float:
        """Return the distance of a goal's joint from its target, length units; 0 without a position."""
        place = tip_of(pose, editor, self.state.rooted.added)[0]
        return float(np.linalg.norm(place - editor.position)) if editor.has_position else 0.0

    def _end(self, drag: LayerDrag) -> None:
        """Solve all frames of a layer whose drag has ended, outside the lock."""
        state = self.state
        with state.lock:
            if state.play.drag is not drag:
                return
            layer, play, added = drag.layer, state.without_drag(state.play, drag), state.added
        try:
            solved: Play | None = play.solved(added)
        except SynoviaError:
            solved = None
        with state.lock:
            if state.play.drag is drag and drag.layer is layer and drag.ended:
                state.finish(solved)

    def _advance(self, seconds: float) -> tuple[Pose, tuple[GoalEditor, ...], bool]:
        """Advance the clip and ease the targets; the caller holds the session's lock.

        Returns:
            The pose to solve from, copies of the editors, and whether a target still moves.
        """
        state = self.state
        state.play.advance(seconds)
        start = state.start()
        state.place(state.editors, start)
        part = 1.0 - math.exp(-seconds / _EASE) if state.play.motion is None else 1.0  # no easing on a clip
        eased = [editor.ease(part, 1e-5 * state.size) for editor in state.editors]
        return start, tuple(editor.copy() for editor in state.editors), any(eased)

    def _keep(self, pose: Pose, before: Pose, version: int) -> None:
        """Store a solved pose in the session, unless an edit has replaced ``before``, the pose at the start."""
        with self.state.lock:
            if self.state.version == version and self.state.pose is before:
                self.state.pose = pose

    def own(self, solution: Solution) -> Pose:
        """Return the pose of a solution on the session's skeleton."""
        if self._skeleton is None or solution.pose.skeleton is self._skeleton:
            return solution.pose
        return Pose.trusted(self._skeleton, solution.pose.q)

    def unsolved(self, seconds: float = 0.0) -> Frame:
        """Return the frame while the solver is not ready, in which targets have been eased for some seconds."""
        state = self.state
        with state.lock:
            if state.play.motion is None:
                start, editors, _ = self._advance(seconds)
            else:
                start, editors = state.start(state.play.time), tuple(editor.copy() for editor in state.editors)
            return self._frame(start, editors, None, state.play.time)

    @property
    def _nudged(self) -> bool:
        """Whether the next step tries another nudge, a slightly changed start pose."""
        return self._nudges is not None and self._nudges.left > 0

    def _solved(self, ik: IK, nudges: Nudges, targets: dict[str, Any], start: Pose) -> Solution:
        """Return the solution from a start, or a better solution from a nudged start."""
        found = ik.solve(targets, start, _SOLVE, follow=self._left is not None)
        moves = self._moved_on(
            found, start
        )  # the move per frame is limited by ``largest_move``, also after the goals are reached
        if ((found.missed and found.interrupted) or moves) and self._unfinished < _UNFINISHED:
            self._unfinished += 1
            return found
        self._unfinished = 0
        return nudges.improved(found, lambda q: ik.solve(targets, q, _SOLVE, follow=True))

    def _followed(self, servo: Servo, targets: dict[str, Any], start: Pose, seconds: float) -> Tick:
        """Run one servo tick and return its command; if the pose was edited, restart the servo there at rest."""
        if start is not self._left:
            servo.reset(start)
        command = servo.step(targets, seconds)
        if np.abs(command.velocity).max(initial=0.0) > 0.0:
            self._unfinished = 1
        else:  # the body is at rest, but further ticks may still reach a missed goal
            self._unfinished = 0 if command.reached or self._unfinished >= _UNFINISHED else self._unfinished + 1
        return command

    def _moved_on(self, solution: Solution, start: Pose) -> bool:
        """Return whether a solution differs from the pose of the last step, or from the start in the first step."""
        left = start if self._left is None else self._left
        return left.skeleton is self._skeleton and float(np.abs(solution.pose.q - left.q).max()) > _MOVES

    def _frame(
        self,
        pose: Pose,
        editors: tuple[GoalEditor, ...],
        solution: Solution | None,
        clock: float,
        command: Tick | None = None,
    ) -> Frame:
        """Return the state of the page as a frame."""
        errors: dict[int, GoalError] = {}
        missed: frozenset[int] = frozenset()
        if solution is not None:
            errors = dict(zip(self.active, solution.errors, strict=True))
            missed = frozenset(self.active[i] for i in solution.missed)
        spent = 1e3 * median(self._times) if self._times else 0.0
        moved = self._moved if solution is not None else frozenset[int]()
        added = len(pose.skeleton) - len(self.state.given)
        frame = Frame(pose, added, editors, errors, missed, solution, spent, self._trouble, False, clock, moved)
        if self._gaps is not None and solution is not None:
            frame = replace(frame, gaps=tuple(self._gaps.at(pose)))
        if command is None:
            return frame
        _ = command.errors, command.status  # evaluated in this thread, as the servo goes on while pages show them
        return replace(frame, following=command)


def _compile_layers(motion: Motion) -> None:
    """Apply a small layer to a clip, so that the solver of layers is compiled before the first drag."""
    short = Motion(motion.skeleton, motion.q[:1], motion.fps)
    row = len(motion.skeleton) - 1
    EditStack(short).on_top([], Layer(goals=[PositionGoal(row, np.zeros(3))], frames=(0, 0))).pose(
        Layer(goals=[PositionGoal(row, np.zeros(3))], frames=(0, 0))
    )
