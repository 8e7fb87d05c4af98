"""What is decided over a whole track: the best path through several, and what happens to it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.ik.interrupts import Watch
from synovia.ik.parallel import Progress
from synovia.ik.rows import kept_targets
from synovia.ik.solution import CUT, STATUS, WINNER, mark_cut
from synovia.ik.solutions import Tracked
from synovia.ik.status import Status
from synovia.model.geometry import Array, as_numbers
from synovia.tracking.flips import flips
from synovia.tracking.jumps import Bools, Follow, branch_switches, changes
from synovia.tracking.postprocessing import slowed, smoothed, velocity_limits

if TYPE_CHECKING:
    from synovia.facade import IK
    from synovia.model import Pose

_MISS: Final = 1e6  # squared radians: a miss counts more than any motion
_FAR: Final = 9.0  # times the squared change of a track by itself: a jump


def tracked(
    ik: IK,
    table: Array,
    pose: Pose,
    follow: Follow,
    fps: float,
    starts: int,
    both_ways: bool,
    smoothness: float,
    velocity: Any,
    threads: int,
    progress: Progress | None,
    watch: Watch,
) -> Tracked:
    """Return the answers of targets over time; see ``IK.track``.

    Raises:
        InputError: If an option cannot be used.
    """
    rate = float(as_numbers(fps, (), "fps"))
    seconds = float(as_numbers(smoothness, (), "smoothness"))
    if rate <= 0.0:
        raise InputError("fps is not positive", value=fps, expected="frames per second above 0")
    if seconds < 0.0:
        raise InputError("smoothness is negative", value=smoothness, expected="seconds from 0")
    if isinstance(starts, bool) or not isinstance(starts, (int, np.integer)) or starts < 1:
        raise InputError("starts is out of range", value=starts, expected="a whole number from 1")
    most = None if velocity is None else velocity_limits(ik, velocity)
    parts = int(starts) * (2 if both_ways else 1) + (seconds > 0.0)
    shared = SharedProgress(progress, parts, len(table), watch)
    rows, jumped = follow_best(ik, table, pose, follow, int(starts), both_ways, threads, shared)
    held = np.full(len(rows), None, object)  # what made a miss of a frame that was reached
    whole = starts > 1 or both_ways or ik.solver.closed  # something has looked at all frames
    if seconds > 0.0 and len(rows) > 2:
        whole = True
        with suppress(TooLateError):
            held[smoothed(ik, rows, rate, seconds, threads, shared.part(parts - 1, in_time=True))] = "smoothness"
    if whole and watch.passed:
        rows[:, CUT] = 1.0
        mark_cut(rows)
    if most is not None:
        held[slowed(ik, rows, rate, most)] = "velocity"
    return Tracked(ik, rows, pose.values.reshape(1, -1), rate, jumped, tuple(held))


class TooLateError(Exception):
    """The deadline has passed: what is being done is left out."""


class SharedProgress:
    """Reports the progress of several tracks as that of one piece of work, from whichever thread follows them.

    Args:
        progress: Called with (frames done, all), one call after the other.
        parts: Number of tracks.
        frames: Frames of each.
        watch: Stopped when one of them fails.
    """

    def __init__(self, progress: Progress | None, parts: int, frames: int, watch: Watch) -> None:
        """Begin with nothing done."""
        self._progress = progress
        self._done = [0.0] * parts
        self._all = parts * frames
        self._frames = frames
        self._lock = Lock()
        self._watch = watch
        self._stopped = False

    def stop(self) -> None:
        """End all tracks: one has failed or was interrupted."""
        self._stopped = True
        self._watch.stop()

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self._watch.passed

    def part(self, number: int, *, in_time: bool = False) -> Callable[..., None]:
        """Return what one track calls with (frames done, all) or the share that is done.

        Args:
            number: Of the track.
            in_time: Whether it is to end at the deadline.

        Raises:
            InterruptedError: From that call, if another track has failed or was interrupted.
            TooLateError: From that call, with ``in_time``, once the deadline has passed.
        """

        def tell(done: float, of: float = 1.0) -> None:
            if self._stopped:
                raise InterruptedError
            if in_time and self.late:
                raise TooLateError
            with self._lock:
                self._done[number] = done * self._frames / max(of, 1)
                if self._progress is not None:
                    self._progress(round(sum(self._done)), self._all)

        return tell


def follow_best(
    ik: IK, table: Array, pose: Pose, follow: Follow, starts: int, both_ways: bool, threads: int, shared: SharedProgress
) -> tuple[Array, Bools]:
    """Return the rows of the best path through the tracks that are asked for, and where it jumps.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        pose: The first start.
        follow: Returns the rows of one track, from targets, a start, and what it tells of its progress.
        starts: Starts, the first one included.
        both_ways: Whether the last frame of each track is a start of the way back.
        threads: How many tracks are followed at once.
        shared: Told of the progress of each.
    """
    first = follow(ik, table, pose.inside, shared.part(0))
    if len(table) < 2 or (starts == 1 and not both_ways) or shared.late:
        return first, jumps_of(ik, table, pose.inside, first, follow, shared)
    full = complete(ik, table, first)

    def there_and_back(k: int) -> list[tuple[Array, Bools]]:
        start = pose.inside if k == 0 else ik.skeleton.random_pose(k).inside
        rows = first if k == 0 else follow(ik, full, start, shared.part(k))
        found = [(rows, jumps_of(ik, full, start, rows, follow, shared))]
        if both_ways:
            end = rows[-1:, ik.places].copy()
            reverse = np.ascontiguousarray(full[::-1])
            back = follow(ik, reverse, end, shared.part(starts + k))
            jumped = np.concatenate([[False], jumps_of(ik, reverse, end, back, follow, shared)[::-1][:-1]])
            found.append((back[::-1].copy(), jumped))
        return found

    with ThreadPoolExecutor(min(threads, starts)) as pool:
        try:
            found = list(pool.map(there_and_back, range(starts)))
        except BaseException:
            shared.stop()
            raise
    pairs = [one for way in zip(*found, strict=True) for one in way]
    return best_path(ik, [rows for rows, _ in pairs], [jumped for _, jumped in pairs])


def complete(ik: IK, table: Array, rows: Array) -> Array:
    """Return a table of targets in which those hold that a first track has kept at its start."""
    out = table.copy()
    given = np.array([goal.what for goal in ik.goals])
    plain = given > 0
    kept = kept_targets(ik, rows)
    out[:, plain, :16] = kept[:, plain]
    out[:, plain, 16] = given[plain]
    return out


def jumps_of(ik: IK, table: Array, start: Array, rows: Array, follow: Follow, shared: SharedProgress) -> Bools:
    """Return which frames do not follow from the one before: restarts, flips, switches of a closed form's branch."""
    jumped = (rows[:, WINNER] > 0) | flips(ik, rows)
    if ik.solver.closed and len(rows) > 1 and not shared.late:
        jumped |= branch_switches(ik, complete(ik, table, rows), start, rows, follow)
    jumped[:1] = False
    return jumped


def best_path(ik: IK, tracks: Sequence[Array], jumps: Sequence[Bools]) -> tuple[Array, Bools]:
    """Return the rows of the path through several tracks that misses least, and moves least; and where it jumps.

    Dynamic programming over the frames (Viterbi 1967): from each frame of a track the path may go on in any.
    """
    count, size = len(tracks[0]), len(tracks)
    values = [rows[:, ik.places] for rows in tracks]
    misses = np.array([_MISS * (rows[:, STATUS] != Status.REACHED) for rows in tracks])
    cost = misses[:, 0].copy()
    came = np.zeros((count, size), np.int64)
    steps = np.array([[changes(ik, a[:-1], b[1:]) for b in values] for a in values])  # (from, to, frame)
    own = np.array([steps[k, k] for k in range(size)])  # what each track moves by itself
    change = np.where(np.eye(size, dtype=bool), 0.0, float(np.median(own)))  # no switch between equals
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
    jumped[1:] |= (a != b) & far  # tracks that have met may be changed without a jump
    return rows, jumped
