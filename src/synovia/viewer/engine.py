"""The engine: eases targets, solves, and says what came out, one step at a time; ``worker`` runs it."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from synovia.errors import SynoviaError
from synovia.facade import IK
from synovia.ik import Solution
from synovia.ik.solution import GoalError, length_text
from synovia.ik.status import Status
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.viewer.begin import place_at_current
from synovia.viewer.clip import blend
from synovia.viewer.editor import GoalEditor, address
from synovia.viewer.session import Session

_EASE: Final = 0.035  # seconds in which an eased target comes 63 % of the way nearer
_NUDGES: Final = 4
_NUDGE: Final = 0.06  # of the way to a random pose
_BETTER: Final = 0.8  # what the squared error must fall to
_REMEMBERED: Final = 60  # solves that the median time is taken from
_FIRST: Final = threading.Lock()  # held while a session's first problem is packed
_LOOK: Final = 0.1  # seconds after which a session that waits for it looks whether it is stopped


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What the page shows at one moment.

    Args:
        pose: The body.
        added: Rows of its pose before those of the skeleton that was given.
        editors: Copies of all editors.
        errors: How far each enabled editor is missed, by key.
        missed: Keys of the editors that are not met.
        solution: The last solve, None where no editor is enabled.
        milliseconds: Median time of the last solves.
        trouble: What stands in the way of solving, empty where nothing does.
        busy: Whether a solver is being compiled.
        time: Seconds of the clip.
        moved: Joints that the goals move, rows of the skeleton that was given.
        still: Whether nothing has moved for a moment: what takes long can be computed now.
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

    def state(self, editor: GoalEditor) -> str:
        """Return the state of a goal as a theme names its colour: ``reached``, ``missed`` or ``quiet``, not solved."""
        if editor.key in self.missed:
            return "missed"
        return "reached" if editor.enabled and editor.key in self.errors else "quiet"


class Engine:
    """Solves a session, step by step.

    Args:
        session: The session.
        stopped: Set when the session is no longer needed.
    """

    def __init__(self, session: Session, stopped: threading.Event | None = None) -> None:
        """Prepare nothing: the first step packs the problem."""
        self.session = session
        self._stopped = stopped or threading.Event()
        self.ik: IK | None = None
        self.active: tuple[int, ...] = ()
        self._skeleton: Skeleton | None = None
        self._moved: frozenset[int] = frozenset()
        self._version = -1
        self._trouble = ""
        self._warm = False
        self._times: deque[float] = deque(maxlen=_REMEMBERED)
        self._beside: list[Array] = []  # joint values of poses to be nudged towards
        self._nudge = self._nudges = 0  # the next of them, and how many are to be tried before there is rest
        self._left: Pose | None = None  # the pose that the last step ended with

    @property
    def stale(self) -> bool:
        """Whether the problem must be packed anew."""
        return self._version != self.session.version

    def prepare(self) -> None:
        """Pack the problem anew where its structure has changed; this may compile a solver, for seconds, once.

        The compiler works for one thread at a time, and who waits for it cannot be called off. So a session's first
        problem, which its browser may not stay for, waits here; it is not packed where the session is stopped.
        """
        if self._version >= 0:
            self._pack()
            return
        while not _FIRST.acquire(timeout=_LOOK):
            if self._stopped.is_set():
                return
        try:
            if not self._stopped.is_set():
                self._pack()
        finally:
            _FIRST.release()

    def _pack(self) -> None:
        """Pack the problem anew where its structure has changed."""
        session = self.session
        with session.lock:
            version, solver, rooted, tolerance = session.version, session.solver, session.rooted, session.tolerance
            editors = [editor.copy() for editor in session.editors if editor.enabled]
        if version == self._version:
            return
        self._times.clear()
        self._warm = False
        self.ik, self._trouble, self._left, self._nudges = None, "", None, 0
        if editors:
            try:
                goals = [editor.goal(partial(address, session.given)) for editor in editors]
                self.ik = IK(rooted.held, goals, solver, tolerance=tolerance, root=rooted.mode)
                self._moved = frozenset(row - rooted.added for row in self.ik.moving)
                self._skeleton = rooted.skeleton  # the same joints as those of ``ik.skeleton``
                self.ik.precompile()  # while the page says that it is busy, not in the middle of a drag
                self._beside = [rooted.skeleton.random_pose(seed).q for seed in range(_NUDGES)]
            except SynoviaError as error:
                self._trouble = str(error)
        self.active = tuple(editor.key for editor in editors)
        self._version = version

    def targets(self, editors: Iterable[GoalEditor] | None = None) -> dict[str, Any]:
        """Return the eased targets of the enabled editors, as ``IK.solve`` takes them."""
        chosen = self.session.editors if editors is None else editors
        targets = {editor.label: editor.target() for editor in chosen if editor.key in self.active}
        return {label: target for label, target in targets.items() if target is not None}

    def step(self, seconds: float) -> tuple[Frame, bool]:
        """Advance by some seconds and solve; return what to show, and whether anything still moves.

        The solve itself runs outside the session's lock, so that edits never wait for it.
        """
        session = self.session
        self.prepare()
        with session.lock:
            session.changed.clear()
            for editor in session.editors:
                if editor.free:
                    place_at_current(editor, session.pose, session.rooted.added, session.reach)
            part = 1.0 - math.exp(-seconds / _EASE)
            on_their_way = [editor.ease(part, 1e-5 * session.reach) for editor in session.editors]  # every one
            moving = any(on_their_way)
            session.play.advance(seconds)
            version, start = session.version, session.start()
            before = session.pose
            editors = tuple(editor.copy() for editor in session.editors)
            clock = session.play.time
            playing = session.play.playing and session.play.motion is not None
        if version != self._version:  # changed meanwhile: the next step packs it
            return self._frame(before, editors, None, clock), True
        solution = None
        pose = start
        if self.ik is not None and start.skeleton is self._skeleton:
            targets = self.targets(editors)
            if moving or before is not self._left:
                self._nudges = _NUDGES
            try:
                begun = time.perf_counter()
                solution = self._solved(self.ik, targets, start)
                if self._warm:  # the first one fills caches
                    self._times.append(time.perf_counter() - begun)
                self._warm = True
                pose, self._trouble = self.own(solution), ""
            except SynoviaError as error:
                self._trouble, self._nudges = str(error), 0
        with session.lock:
            # an edit of the body that came in during the solve goes first: this solve started from an older pose
            if session.version == version and session.pose is before:
                session.pose = pose
        self._left = pose
        return self._frame(pose, editors, solution, clock), moving or playing or self._nudges > 0

    def own(self, solution: Solution) -> Pose:
        """Return the pose of a solution as one of the session's skeleton."""
        if self._skeleton is None or solution.pose.skeleton is self._skeleton:
            return solution.pose
        return Pose.trusted(self._skeleton, solution.pose.q)

    def unsolved(self) -> Frame:
        """Return what there is to show before the first solve."""
        session = self.session
        with session.lock:
            return self._frame(
                session.start(), tuple(editor.copy() for editor in session.editors), None, session.play.time
            )

    def _solved(self, ik: IK, targets: dict[str, Any], start: Pose) -> Solution:
        """Return the solution from a start, or a better one from a start nearby.

        A straight limb that is asked to shorten has no slope to follow: a nudge shows it the way to bend. A nudge is
        taken only where it is clearly better, so that a body at the end of its reach does not tremble. Each step tries
        one of them: a body that misses while it is dragged would else cost five times as much as one that follows.
        """
        best = ik.solve(targets, start)
        if ik.solver.search.attempts > 1 or best.status in (Status.REACHED, Status.UNREACHABLE):
            self._nudges = 0
            return best
        self._nudges = max(self._nudges - 1, 0)
        self._nudge = (self._nudge + 1) % _NUDGES
        other = ik.solve(targets, blend(ik.skeleton, best.pose.q, self._beside[self._nudge], _NUDGE))
        if _total(other) < _BETTER * _total(best):
            self._nudges = _NUDGES
            return other
        return best

    def _frame(self, pose: Pose, editors: tuple[GoalEditor, ...], solution: Solution | None, clock: float) -> Frame:
        """Return what to show."""
        errors: dict[int, GoalError] = {}
        missed: frozenset[int] = frozenset()
        if solution is not None:
            errors = dict(zip(self.active, solution.errors, strict=True))
            missed = frozenset(self.active[i] for i in solution.missed)
        spent = 1e3 * median(self._times) if self._times else 0.0
        moved = self._moved if solution is not None else frozenset[int]()
        added = len(pose.skeleton) - len(self.session.given)
        return Frame(pose, added, editors, errors, missed, solution, spent, self._trouble, False, clock, moved)


def _total(solution: Solution) -> float:
    """Return the squared error of a solution: lengths per reach and radians."""
    reach = solution.pose.skeleton.size or 1.0
    return sum((error.position / reach) ** 2 + error.angle**2 for error in solution.errors)


_UNSEEN: Final = (1e-6, 1e-4)  # of a metre or unit, and radians: of two errors, one below is left out


def miss_text(error: GoalError, meters_per_unit: float | None) -> str:
    """Return the error of a goal as text."""
    far = error.position * (meters_per_unit or 1.0) > _UNSEEN[0]
    parts: list[str] = []
    if far or error.position > 0.0 >= error.angle:
        parts.append(length_text(error.position, meters_per_unit))
    if error.angle > _UNSEEN[1] or (error.angle > 0.0 and not far):
        parts.append(f"{math.degrees(error.angle):.2g}°")
    return ", ".join(parts)
