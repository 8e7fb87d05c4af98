"""``IK.track``: solve targets over time frame by frame, with options for the whole track."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.arguments import Progress
from synovia.errors import InputError
from synovia.ik.compiled import CompiledProblem, HoldsProblem, Start
from synovia.ik.interrupts import Watch, deadline_of
from synovia.ik.parallel import Workers, checked_threads
from synovia.ik.solution import Frame, Solution, Solutions
from synovia.ik.status import mark_interrupted, reached
from synovia.ik.targets import Targets
from synovia.ik.ways import ClearWays
from synovia.model import Pose
from synovia.model.geometry import Array, as_numbers
from synovia.model.motion import Motion
from synovia.model.pose import inside_limits
from synovia.tracking.frames import solve_frames
from synovia.tracking.jumps import Bools, Follow, changes, complete, find_jumps
from synovia.tracking.postprocessing import check_smoothness, limit_velocity, smooth, velocity_limits

_MISS: Final = 1e6  # cost of a miss, squared radians; larger than the cost of any motion
_FAR: Final = 9.0  # smallest ratio of a jump between tracks to the change within a track, of squared changes


class Tracked(Solutions):
    """The solutions of targets over time, frame by frame.

    The arrays are those of ``Solutions`` with a leading axis of T frames. ``IK.track`` returns this class.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> line = np.linspace((0.4, -0.2, 0.5), (0.4, 0.2, 0.5), 20)
        >>> clip = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool")).track({"tool": line}, fps=30)
        >>> clip.missed_frames, clip.jumps, len(clip.motion)
        ((), (), 20)
    """

    def __init__(
        self,
        ik: CompiledProblem,
        rows: Array,
        start: Array,
        fps: float,
        jumped: Bools,
        held: Sequence[str | None],
        *,
        name: str = "motion",
    ) -> None:
        """Store the rows of results, the start of the first frame or of all frames, the rate and the name.

        ``jumped`` marks the frames that jump. ``held`` has the option of ``track`` that caused the miss of each frame.
        """
        super().__init__(ik, rows, start)
        self._many_starts = len(start) > 1
        self.fps = fps
        self.name = name
        self._jumped = jumped
        self._held = held

    def _start(self, b: int) -> Pose:
        """Return the start of frame b: the pose of the previous frame, or the pose of the clip in this frame."""
        return super()._start(b) if b == 0 or self._many_starts else Solution(self.ik, self._rows, b=b - 1).pose

    def _frame(self, b: int) -> Frame:
        """Return the data of frame b for its solution."""
        return Frame(b > 0, None if self.reached[b] else self._held[b])

    @property
    def motion(self) -> Motion:
        """The poses of all frames as a motion."""
        return Motion(self.ik.skeleton, self.q, self.fps, name=self.name)

    @property
    def missed_frames(self) -> tuple[int, ...]:
        """Frames that miss a goal."""
        return tuple(np.flatnonzero(~self.reached).tolist())

    @property
    def smoothed_off(self) -> tuple[int, ...]:
        """Frames that reached their goals until ``smoothness`` was applied."""
        return self._missed_by("smoothness")

    @property
    def late(self) -> tuple[int, ...]:
        """Frames that reached their goals until ``velocity`` was applied."""
        return self._missed_by("velocity")

    def _missed_by(self, option: str) -> tuple[int, ...]:
        """Return the frames whose miss is caused by an option of ``track``."""
        return tuple(frame for frame in self.missed_frames if self._held[frame] == option)

    @property
    def jumps(self) -> tuple[int, ...]:
        """Frames after the first that jump from the previous one.

        A frame is a jump if it was solved from another start, if a closed form switched to a distant branch, if a joint
        rotated by far more than the motion of its targets explains, such as an elbow whose pole crosses the limb, or if
        a joint rotated by more than 0.7 rad and far more than in the adjacent frames, whatever the cause. A frame is
        also a jump if the point of a missed goal moved more than three times as far as any target.
        """
        return tuple(np.flatnonzero(self._jumped).tolist())

    @cached_property
    def blocked(self) -> tuple[int, ...]:
        """Frames whose path from the previous frame violates a clearance, if all joints move simultaneously.

        Only clearance goals that are constraints are checked, by bounds of how far each joint moves its shapes. A pair
        that is too near in a frame may be as near on the paths to and from this frame. Moving obstacles move straight
        between frames, with the shortest rotations.
        """
        if not any(goal.needs == "clearance" and goal.rank < 0 for goal in self.ik.goals):
            return ()
        ways = ClearWays(self.ik, self.ik.tolerance[0])
        return tuple(np.flatnonzero(ways.blocked(self.q, self.ik.obstacle_places)).tolist())


def track(
    ik: HoldsProblem,
    targets: Targets,
    start: Start | Motion | None = None,
    *,
    fps: float | None = None,
    name: str = "motion",
    warm_start: bool = True,
    candidates: int = 1,
    both_ways: bool = False,
    smoothness: float = 0.0,
    velocity: Any = None,
    threads: int | None = None,
    progress: Progress | None = None,
    deadline: float | None = None,
) -> Tracked:
    """Solve targets over time, each frame from the pose of the previous one.

    A frame may take the steps of ten attempts from that pose. If it misses, it is restarted from other poses; a restart
    that reaches the goals is used, and the frame is listed in ``jumps``. ``jumps`` also lists frames in which a closed
    form switches to a distant branch, a joint rotates by far more than the motion of its targets explains or than in
    the adjacent frames, or the point of a missed goal moves more than three times as far as any target.

    Args:
        ik: The problem.
        targets: As in ``solve_many``, with one target for each frame.
        start: Pose before the first frame; the rest pose by default. With a ``Motion``, each frame starts from its pose
            in that clip, not from the previous solution. So joints that no goal needs move as in the clip, and frames
            whose goals the clip meets keep its values.
        fps: Frames per second of the resulting motion; by default those of ``start`` if it is a clip, else 30.
        name: Name of the resulting motion.
        warm_start: Whether a frame starts from the previous one; otherwise each starts from ``start``.
        candidates: Number of starts, random ones after ``start``. The path that moves least is used.
        both_ways: Whether to track the clip backwards as well, for the best path through both tracks.
        smoothness: Seconds; faster motion is removed, even if goals are then slightly missed.
        velocity: Highest velocity, radians or length units per second, as in ``Motion.slowed``. All joints of a loop
            slow down together, so that the loop stays closed.
        threads: Number of threads, for several candidates or without ``warm_start``; all cores by default. Results are
            identical for any number.
        progress: Called with (frames done, number of frames), counted over all tracks. Calls come from any thread, one
            at a time.
        deadline: Seconds after which the track ends, as in ``solve``. Frames not begun hold the last pose, and steps
            that need all frames (several candidates, smoothness, jumps of a closed form) are skipped.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a target belongs to no goal.
        UnsupportedError: If ``smoothness`` or ``velocity`` is given and a goal is not a position, rotation or pose, or
            if ``smoothness`` is given and joints are in loops.
    """
    problem, targets, table = ik.problem.table_of_many(targets)
    starts = _starts_of(problem, start, len(table), candidates, both_ways) if isinstance(start, Motion) else None
    if start is None:
        given = problem.default_start.values.reshape(1, -1)
    else:
        given = problem.as_near_start(start).values.reshape(1, -1) if starts is None else starts
    if (path := problem.reduced.path) is not None:
        if len(path) != len(table):
            raise InputError("frames of RestGoal(motion)", value=len(path), expected=f"{len(table)}, as of the targets")
        warm_start, starts = True, starts if warm_start or starts is not None else np.repeat(given, len(table), axis=0)
    pose = Pose.trusted(problem.skeleton, given[0].copy())
    workers = checked_threads(threads)
    watch = Watch(deadline_of(deadline))
    own_rate = start.fps if isinstance(start, Motion) else 30.0
    rate = own_rate if fps is None else float(as_numbers(fps, (), "fps"))
    seconds = float(as_numbers(smoothness, (), "smoothness"))
    if rate <= 0.0:
        raise InputError("fps", value=fps, expected="frames per second above 0")
    if seconds < 0.0:
        raise InputError("smoothness", value=smoothness, expected="seconds, 0 or more")
    if isinstance(candidates, bool) or not isinstance(candidates, (int, np.integer)) or candidates < 1:
        raise InputError("candidates", value=candidates, expected="a whole number from 1")
    if seconds > 0.0:
        check_smoothness(problem)
    most = None if velocity is None else velocity_limits(problem, velocity)
    follow: Follow = partial(CompiledProblem.solve_rows, targets=targets, workers=Workers(workers, watch))
    if warm_start:
        follow = partial(solve_frames, targets=targets, watch=watch)
    ways = _Ways(int(candidates), both_ways, workers)
    parts = ways.tracks + (seconds > 0.0)
    shared = _SharedProgress(progress, parts, len(table), watch)
    if starts is None:
        rows, jumped = _follow_best(problem, table, pose, follow, ways, shared)
    else:
        inside = np.ascontiguousarray(inside_limits(problem.skeleton, starts))
        rows = solve_frames(problem, table, inside[:1], shared.part(0), targets=targets, watch=watch, starts=inside)
        jumped = find_jumps(
            problem, table, inside[:1], rows, partial(solve_frames, targets=targets, watch=watch), switches=False
        )
    held = np.full(len(rows), None, object)  # option that caused the miss of each frame
    # whether a later step, such as smoothing, needs all frames
    whole = candidates > 1 or both_ways or problem.solver.closed
    if seconds > 0.0 and len(rows) > 2:
        whole = True
        with suppress(_TooLateError):
            held[smooth(problem, rows, rate, seconds, workers, shared.part(parts - 1, in_time=True))] = "smoothness"
    if whole and watch.passed:
        mark_interrupted(rows, all_of_them=True)
    if most is not None:
        held[limit_velocity(problem, rows, rate, most)] = "velocity"
    return Tracked(problem, rows, given if starts is None else starts, rate, jumped, tuple(held), name=name)


def _starts_of(ik: CompiledProblem, motion: Motion, count: int, candidates: int, both_ways: bool) -> Array:
    """Return the poses of a clip as starts of a track, (T, nq).

    Raises:
        InputError: If the clip belongs to another skeleton, has another number of frames, or options need other starts.
    """
    if motion.skeleton.joint_names not in (ik.given.joint_names, ik.skeleton.joint_names):
        raise InputError("skeleton of start", value=motion.skeleton, expected=repr(ik.skeleton))
    if len(motion) != count:
        raise InputError("frames of start", value=len(motion), expected=f"{count}, as of the targets")
    if candidates != 1 or both_ways:
        option = "both_ways" if both_ways else "candidates"
        raise InputError(option, value=both_ways or candidates, expected="the default with start=motion")
    return ik.as_starts(np.array(motion.q), count)


class _TooLateError(Exception):
    """Raised if the deadline has passed; the current step is then skipped."""


class _SharedProgress:
    """Reports the progress of several tracks, solved on any threads, as the progress of one task.

    Args:
        progress: Called with (frames done, number of frames), one call at a time.
        parts: Number of tracks.
        frames: Number of frames of each track.
        watch: Stopped when a track fails.
    """

    def __init__(self, progress: Progress | None, parts: int, frames: int, watch: Watch) -> None:
        """Begin with no frames done."""
        self._progress = progress
        self._done = [0.0] * parts
        self._all = parts * frames
        self._frames = frames
        self._lock = Lock()
        self._watch = watch
        self._stopped = False

    def stop(self) -> None:
        """Stop all tracks after one track has failed or was interrupted."""
        self._stopped = True
        self._watch.stop()

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self._watch.passed

    def part(self, number: int, *, in_time: bool = False) -> Callable[..., None]:
        """Return the function that one track calls with (frames done, number of frames) or a fraction.

        Args:
            number: Index of the track.
            in_time: Whether the track must end at the deadline.

        Raises:
            InterruptedError: From that call, if another track has failed or was interrupted.
            _TooLateError: From that call, with ``in_time``, once the deadline has passed.
        """

        def report(done: float, of: float = 1.0) -> None:
            if self._stopped:
                raise InterruptedError
            if in_time and self.late:
                raise _TooLateError
            with self._lock:
                self._done[number] = done * self._frames / max(of, 1)
                if self._progress is not None:
                    self._progress(round(sum(self._done)), self._all)

        return report


class _Ways(NamedTuple):
    """The candidate tracks of a problem.

    Args:
        candidates: Number of starts, the first one included.
        both_ways: Whether to track backwards from the last frame of each track as well.
        threads: Number of tracks at the same time.
    """

    candidates: int
    both_ways: bool
    threads: int

    @property
    def tracks(self) -> int:
        """Number of tracks."""
        return self.candidates * (2 if self.both_ways else 1)


def _follow_best(
    ik: CompiledProblem, table: Array, pose: Pose, follow: Follow, ways: _Ways, shared: _SharedProgress
) -> tuple[Array, Bools]:
    """Return the rows of the best path through all candidate tracks, and its jumps.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        pose: The first start.
        follow: Returns the rows of one track, given targets, a start and a progress callback.
        ways: The tracks to follow.
        shared: Collects the progress of the tracks.
    """
    first = follow(ik, table, pose.inside, shared.part(0))
    if len(table) < 2 or ways.tracks == 1 or shared.late:
        return first, find_jumps(ik, table, pose.inside, first, follow, switches=not shared.late)
    full = complete(ik, table, first)

    def there_and_back(k: int) -> list[tuple[Array, Bools]]:
        start = pose.inside if k == 0 else ik.skeleton.random_pose(k).inside
        rows = first if k == 0 else follow(ik, full, start, shared.part(k))
        found = [(rows, find_jumps(ik, full, start, rows, follow, switches=not shared.late))]
        if ways.both_ways:
            end = rows[-1:, ik.places].copy()
            reverse = np.ascontiguousarray(full[::-1])
            other = ik if ik.obstacle_places is None else ik.with_obstacle_places(ik.obstacle_places[::-1])
            back = follow(other, reverse, end, shared.part(ways.candidates + k))
            jumped = find_jumps(other, reverse, end, back, follow, switches=not shared.late)
            jumped = np.concatenate([[False], jumped[::-1][:-1]])
            found.append((back[::-1].copy(), jumped))
        return found

    with ThreadPoolExecutor(min(ways.threads, ways.candidates)) as pool:
        try:
            found = list(pool.map(there_and_back, range(ways.candidates)))
        except BaseException:
            shared.stop()
            raise
    pairs = [one for way in zip(*found, strict=True) for one in way]
    return best_path(ik, [rows for rows, _ in pairs], [jumped for _, jumped in pairs])


def best_path(ik: CompiledProblem, tracks: Sequence[Array], jumps: Sequence[Bools]) -> tuple[Array, Bools]:
    """Return the rows of the path through several tracks with the fewest misses and the least motion, and its jumps.

    Use dynamic programming over the frames (Viterbi 1967): after each frame, the path may change to any track.
    """
    count, size = len(tracks[0]), len(tracks)
    values = [rows[:, ik.places] for rows in tracks]
    misses = np.array([_MISS * np.logical_not(reached(rows)) for rows in tracks])
    cost = misses[:, 0].copy()
    came = np.zeros((count, size), np.int64)
    steps = np.array([[changes(ik, a[:-1], b[1:]) for b in values] for a in values])  # (from track, to track, frame)
    own = np.array([steps[k, k] for k in range(size)])  # squared change within each track
    # cost of a change of tracks, which avoids changes between equal tracks
    change = np.where(np.eye(size, dtype=bool), 0.0, float(np.median(own)))
    for t in range(1, count):
        ways = cost[:, None] + steps[:, :, t - 1] + change
        came[t] = ways.argmin(0)
        cost = ways.min(0) + misses[:, t]
    path = np.zeros(count, np.int64)
    path[-1:] = cost.argmin()
    for t in range(count - 1, 0, -1):
        path[t - 1] = came[t, path[t]]
    at = np.arange(count)
    rows: Array = np.stack(tracks)[path, at].copy()
    jumped: Bools = np.stack(jumps)[path, at].copy()
    a, b = path[:-1], path[1:]
    far = steps[a, b, at[:-1]] > _FAR * np.maximum(own[a, at[:-1]], own[b, at[:-1]])
    jumped[1:] |= (a != b) & far  # a change of tracks at one pose is not a jump
    return rows, jumped
