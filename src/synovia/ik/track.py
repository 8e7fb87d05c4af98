"""What is decided over a whole track: the best of several, smoothness, and how fast joints may move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.batch import Progress
from synovia.errors import InputError, UnsupportedError
from synovia.geometry import Array, as_numbers
from synovia.ik.solution import HEAD, STATUS, WINNER
from synovia.ik.solutions import Tracked
from synovia.ik.status import Status
from synovia.trajectory import Model, Terms, solve_in_windows
from synovia.trajectory.model import turn_between

if TYPE_CHECKING:
    from synovia.ik.ik import IK
    from synovia.skeleton import Pose

Bools = NDArray[np.bool_]
Follow = Callable[[Array, Array, Callable[..., None]], Array]
_PULL: Final = 1e-6  # of the track as it was, on what no goal shows
_MISS: Final = 1e6  # squared radians: a miss counts more than any motion
_FAR: Final = 9.0  # times the squared change of a track by itself: a jump
_STEPS: Final = 20
_ENOUGH: Final = 1e-4


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
    most = None if velocity is None else _velocities(ik, velocity)
    parts = int(starts) * (2 if both_ways else 1) + (seconds > 0.0)
    told = Told(progress, parts, len(table))
    rows, jumped = follow_best(ik, table, pose, follow, int(starts), both_ways, threads, told)
    if seconds > 0.0 and len(rows) > 2:
        smoothed(ik, rows, rate, seconds, threads, told.part(parts - 1))
    if most is not None:
        slowed(ik, rows, rate, most)
    return Tracked(ik, rows, pose.values.reshape(1, -1), rate, jumped)


class Told:
    """Tells of the progress of several tracks as of one, from whichever thread follows them.

    Args:
        progress: Called with (frames done, all), one call after the other.
        parts: Number of tracks.
        frames: Frames of each.
    """

    def __init__(self, progress: Progress | None, parts: int, frames: int) -> None:
        """Begin with nothing done."""
        self._progress = progress
        self._done = [0.0] * parts
        self._all = parts * frames
        self._frames = frames
        self._lock = Lock()
        self.stopped = False

    def part(self, number: int) -> Callable[..., None]:
        """Return what one track calls with (frames done, all) or the share that is done.

        Raises:
            InterruptedError: From that call, if another track has failed or was interrupted.
        """

        def tell(done: float, of: float = 1.0) -> None:
            if self.stopped:
                raise InterruptedError
            with self._lock:
                self._done[number] = done * self._frames / max(of, 1)
                if self._progress is not None:
                    self._progress(round(sum(self._done)), self._all)

        return tell


def follow_best(
    ik: IK, table: Array, pose: Pose, follow: Follow, starts: int, both_ways: bool, threads: int, told: Told
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
        told: Hears of the progress.
    """
    first = follow(table, pose.inside, told.part(0))
    if len(table) < 2 or (starts == 1 and not both_ways):
        return first, restarted(first)
    full = complete(ik, table, first)

    def there_and_back(k: int) -> list[tuple[Array, Bools]]:
        rows = first if k == 0 else follow(full, ik.skeleton.random_pose(k).inside, told.part(k))
        found = [(rows, restarted(rows))]
        if both_ways:
            end = rows[-1:, HEAD : HEAD + ik.skeleton.nq].copy()
            back = follow(np.ascontiguousarray(full[::-1]), end, told.part(starts + k))
            jumped = np.concatenate([[False], restarted(back)[::-1][:-1]])
            found.append((back[::-1].copy(), jumped))
        return found

    with ThreadPoolExecutor(min(threads, starts)) as pool:
        try:
            found = list(pool.map(there_and_back, range(starts)))
        except BaseException:
            told.stopped = True
            raise
    pairs = [one for way in zip(*found, strict=True) for one in way]
    return best_path(ik, [rows for rows, _ in pairs], [jumped for _, jumped in pairs])


def complete(ik: IK, table: Array, rows: Array) -> Array:
    """Return a table of targets in which those hold that a first track has kept at its start."""
    out = table.copy()
    given = np.array([goal.what for goal in ik.goals])
    plain = given > 0
    kept = rows[:, HEAD + ik.skeleton.nq + 2 * len(ik.goals) :].reshape(len(rows), -1, 16)
    out[:, plain, :16] = kept[:, plain]
    out[:, plain, 16] = given[plain]
    return out


def restarted(rows: Array) -> Bools:
    """Return which frames do not follow from the one before."""
    jumped = rows[:, WINNER] > 0
    jumped[:1] = False
    return jumped


def best_path(ik: IK, tracks: Sequence[Array], jumps: Sequence[Bools]) -> tuple[Array, Bools]:
    """Return the rows of the path through several tracks that misses least, and moves least; and where it jumps.

    Dynamic programming over the frames (Viterbi 1967): from each frame of a track the path may go on in any.
    """
    count, size = len(tracks[0]), len(tracks)
    values = [rows[:, HEAD : HEAD + ik.skeleton.nq] for rows in tracks]
    misses = np.array([_MISS * (rows[:, STATUS] != Status.REACHED) for rows in tracks])
    cost = misses[:, 0].copy()
    came = np.zeros((count, size), np.int64)
    steps = np.array([[_changes(ik, a[:-1], b[1:]) for b in values] for a in values])  # (from, to, frame)
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


def _changes(ik: IK, a: Array, b: Array) -> Array:
    """Return the squared change of all joints, radians and reaches, between rows of joint values."""
    variables = ik.skeleton.tables.variables
    angles = ik.skeleton.tables.limits[:, 10] != 0.0
    total = np.zeros(len(a))
    for (block, at, _), angle in zip(variables.tolist(), angles.tolist(), strict=True):
        if block == 0:
            total += ((b[:, at] - a[:, at]) / (1.0 if angle else ik.reach)) ** 2
        else:
            total += np.sum(turn_between(a[:, at : at + 4], b[:, at : at + 4]) ** 2, axis=1)
    return total


def _model(ik: IK, threads: int) -> Model:
    """Return the problem of each frame.

    Raises:
        UnsupportedError: If a goal asks for more than a place or a rotation.
    """
    for goal in ik.goals:
        if goal.what == 0:
            raise UnsupportedError("a track can be smoothed for places and rotations alone", value=goal)
    free = ik.root == "free"
    return Model(ik.skeleton, ik.goals, ik.hangs, free_root=free, tolerance=ik.tolerance, threads=threads)


def smoothed(ik: IK, rows: Array, fps: float, seconds: float, threads: int, progress: Any = None) -> None:
    """Smooth the answers of a track, in place: all frames at once, accelerations beside what the goals are off."""
    model = _model(ik, threads)
    q, targets = _parts(ik, rows)
    terms = Terms(
        targets=targets,
        weights=np.ones((len(q), model.rows)),
        side=np.zeros(model.rows),
        reference=q.copy(),
        pull=np.full(model.columns, _PULL),
        smooth=np.full(model.columns, (seconds * fps) ** 4),
    )
    _replace(ik, model, rows, solve_in_windows(model, terms, q, steps=_STEPS, enough=_ENOUGH, progress=progress),
             Status.CONFLICT)  # fmt: skip


def slowed(ik: IK, rows: Array, fps: float, most: Array) -> None:
    """Hold joints to their velocities, in place: each frame goes towards its answer only as far as they allow."""
    model = _model(ik, threads=1)
    variables = ik.skeleton.tables.variables.tolist()
    owner = ik.skeleton.tables.owner.tolist()
    q, _ = _parts(ik, rows)
    for t in range(1, len(q)):
        for (block, at, _), row in zip(variables, owner, strict=True):
            step = float(most[row]) / fps
            if block == 0:
                q[t, at] = q[t - 1, at] + np.clip(q[t, at] - q[t - 1, at], -step, step)
                continue
            before, turn = q[t - 1, at : at + 4], turn_between(q[t - 1, at : at + 4], q[t, at : at + 4])
            angle = float(np.linalg.norm(turn))
            if angle > step:
                q[t, at : at + 4] = _part_way(before, q[t, at : at + 4], step / angle, angle)
    _replace(ik, model, rows, ik.skeleton.follow(q), Status.LIMITED)


def _part_way(a: Array, b: Array, share: float, angle: float) -> Array:
    """Return the rotation that is a share of the way from a to b, which are ``angle`` apart (Shoemake 1985)."""
    b = -b if float(a @ b) < 0.0 else b
    half = 0.5 * angle
    out = (np.sin((1.0 - share) * half) * a + np.sin(share * half) * b) / np.sin(half)
    return out / np.linalg.norm(out)


def _velocities(ik: IK, limits: Any) -> Array:
    """Return the highest velocity of each joint, radians or length units per second.

    Raises:
        InputError: If one is not positive.
    """
    most = np.full(len(ik.skeleton), np.inf)
    if isinstance(limits, Mapping):
        for joint, value in cast("Mapping[Any, Any]", limits).items():
            most[ik.skeleton.index(joint)] = as_numbers(value, (), f"velocity of {joint!r}")
    else:
        most[:] = as_numbers(limits, (), "velocity")
    if not (most > 0.0).all():
        raise InputError("velocity is not positive", value=most.min(), expected="radians or length units per second")
    return most


def _parts(ik: IK, rows: Array) -> tuple[Array, Array]:
    """Return joint values (T, nq) and targets (T, goals, 16) of rows of answers."""
    nq = ik.skeleton.nq
    targets = rows[:, HEAD + nq + 2 * len(ik.goals) :].reshape(len(rows), -1, 16)
    return rows[:, HEAD : HEAD + nq].copy(), np.ascontiguousarray(targets)


def _replace(ik: IK, model: Model, rows: Array, q: Array, why: Status) -> None:
    """Write other joint values into rows of answers, with their errors; a new miss has a reason."""
    _, targets = _parts(ik, rows)
    _, _, errors = model.evaluate(q, targets, derivative=False)
    nq = ik.skeleton.nq
    rows[:, HEAD : HEAD + nq] = q
    rows[:, HEAD + nq : HEAD + nq + 2 * len(ik.goals)] = errors.reshape(len(rows), -1)
    reached = (errors <= np.array(ik.tolerance)).all((1, 2))
    was = rows[:, STATUS] == Status.REACHED
    rows[:, STATUS] = np.where(reached, Status.REACHED, np.where(was, why, rows[:, STATUS]))
