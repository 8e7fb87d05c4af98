"""Postprocess a track: the options ``smoothness`` and ``velocity``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import UnsupportedError
from synovia.ik.compiled import CompiledProblem
from synovia.ik.status import Status, restate
from synovia.model import Skeleton
from synovia.model.change import blend
from synovia.model.geometry import Array, rotation_between
from synovia.model.loops.closing import refuse_loops
from synovia.model.loops.mechanism import CLOSED
from synovia.model.motion_limits import by_joint
from synovia.model.pose import clamped
from synovia.tracking.trajectory import Effort, Model, Terms, solve_in_windows

Bools = NDArray[np.bool_]
_PULL: Final = 1e-6  # weight of the deviation from the original track; it determines joints that no goal determines
_STEPS: Final = 20  # largest number of least-squares steps over all frames
_ENOUGH: Final = 1e-4  # fraction of the cost: the descent stops if a step lowers the cost by less
_HALVINGS: Final = 40
_PARTS: Final = 30  # largest number of fractions of a loop's motion that are tried
_LESS: Final = 0.8  # ratio of each fraction to the previous one
_ROUNDED: Final = 1.0 + 1e-12  # factor of the largest step that allows for rounding errors
_NO_SPEED: Final = "sy.FullBody(attempts=1, largest_move=velocity / fps) limits velocities for all kinds of goals"


def check_goals(ik: CompiledProblem, option: str, hint: str | None = None) -> None:
    """Raise an error for goals that postprocessing does not support.

    Raises:
        UnsupportedError: If a goal is not a position, rotation or pose.
    """
    for goal in ik.goals:
        if goal.pose_parts == 0 or goal.terms:
            raise UnsupportedError(
                f"{option}=", value=goal, expected="only position, rotation and pose goals", hint=hint
            )


def _model(ik: CompiledProblem, threads: int) -> Model:
    """Return the least-squares problem of each frame."""
    free = ik.root == "free"
    return Model(
        ik.skeleton, ik.goals, ik.goal_joints, free_root=free, tolerance=ik.tolerance, threads=threads,
        allowed=None if ik.allowed is None else ik.moving,
    )  # fmt: skip


def smooth(ik: CompiledProblem, rows: Array, fps: float, seconds: float, threads: int, progress: Any = None) -> Bools:
    """Smooth a track in place: least squares of goal errors and accelerations over all frames.

    Returns:
        Mask of frames that were reached before and are missed now.
    """
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
    smoothed = solve_in_windows(model, terms, q, Effort(_STEPS, _ENOUGH), progress=progress)
    return _replace(ik, model, rows, smoothed, Status.CONFLICT)


def check_smoothness(ik: CompiledProblem) -> None:
    """Raise an error for problems that ``smooth`` does not support.

    Raises:
        UnsupportedError: If a goal is not a position, rotation or pose, or the joints are in loops.
    """
    if ik.reduced.loops is not None:
        refuse_loops(ik.skeleton, "smoothness=", "Motion.smoothed smooths a clip and closes its loops again")
    check_goals(ik, "smoothness")


def limit_velocity(ik: CompiledProblem, rows: Array, fps: float, most: Array) -> Bools:
    """Limit the joint velocities of a track in place: each frame moves towards its solution as far as the limits allow.

    Joints of a loop move by the same fraction, so that all of them keep their limits and the loop stays closed.

    Returns:
        Mask of frames that were reached before and are missed now.
    """
    model = _model(ik, threads=1)
    q, _ = _parts(ik, rows)
    tables = ik.skeleton.tables
    scalar, at, step = tables.is_number, tables.places, most[tables.owner] / fps
    numbers, largest = at[scalar], step[scalar]
    balls = list(zip(at[~scalar].tolist(), step[~scalar].tolist(), strict=True))
    mechanism = ik.skeleton.mechanism
    groups: Sequence[Bools] = () if mechanism is None else list(mechanism.groups)
    for t in range(1, len(q)):
        before, wanted = q[t - 1, numbers], q[t].copy()
        q[t, numbers] = before + np.clip(q[t, numbers] - before, -largest, largest)
        q[t] = _turned(ik, q[t - 1], q[t], balls)
        for group in groups:
            steps = [(k, one) for k, one in zip(numbers.tolist(), largest.tolist(), strict=True) if group[k]]
            turns = [ball for ball in balls if group[ball[0]]]
            q[t, group] = wanted[group]
            q[t] = _closed_within(ik.skeleton, q[t - 1], q[t].copy(), steps, turns)
    return _replace(ik, model, rows, ik.skeleton.follow(q), Status.LIMITED)


def _closed_within(
    skeleton: Skeleton,
    before: Array,
    after: Array,
    numbers: Sequence[tuple[int, float]],
    balls: Sequence[tuple[int, float]],
) -> Array:
    """Return joint values of a frame (nq,), with the motion of loops reduced to what all their joints allow.

    Args:
        skeleton: The skeleton.
        before: The previous frame, (nq,), closed.
        after: The frame, (nq,), closed, with the joints of these loops at their solution.
        numbers: Index in q and largest step of each hinge and slide of the loops.
        balls: Index in q and largest step, radians, of each ball of the loops.
    """
    mechanism = skeleton.mechanism

    def shares(there: Array) -> float:
        """Return the fraction of the motion that velocity limits allow."""
        ways = [(abs(float(there[at] - before[at])), step) for at, step in numbers]
        ways += [(_angle(before, there, at), step) for at, step in balls]
        return min((step / way for way, step in ways if way > step * _ROUNDED), default=1.0)

    share = shares(after)
    if mechanism is None or share == 1.0:
        return after
    places = np.zeros(len(after), bool)
    places[[at for at, _ in numbers]] = True
    for at, _ in balls:
        places[at : at + 4] = True
    for _ in range(_PARTS):
        part = blend(skeleton, before[None], after[None], share)
        found, lacks = mechanism.run(clamped(skeleton, np.where(places, part, after)))
        least = shares(found[0]) if lacks.max() <= CLOSED else _LESS
        if least == 1.0:
            return found[0]
        share *= min(least, _LESS)
    return skeleton.follow(np.where(places, before, after))


def _turned(ik: CompiledProblem, before: Array, after: Array, balls: Sequence[tuple[int, float]]) -> Array:
    """Return joint values of a frame (nq,), with each ball rotated from the previous frame by at most its largest step.

    The shortest path between two allowed rotations may leave the ball's limit. Then the ball is moved to the nearest
    rotation inside. If this exceeds the step, a smaller fraction of the rotation is used.

    Args:
        ik: The problem.
        before: The previous frame (nq,).
        after: The frame without velocity limits (nq,).
        balls: First joint value and step in radians of each ball.
    """
    angles = np.array([_angle(before, after, at) for at, _ in balls])
    far = angles > np.array([step for _, step in balls])
    if not far.any():
        return after
    late = [(*ball, angle) for ball, angle, is_far in zip(balls, angles.tolist(), far, strict=True) if is_far]

    def there(shares: Array) -> Array:
        out = after.copy()
        for (at, _, angle), share in zip(late, shares, strict=True):
            out[at : at + 4] = _part_way(before[at : at + 4], after[at : at + 4], share, angle)
        return clamped(ik.skeleton, out)

    def fits(out: Array) -> Bools:
        return np.array([_angle(before, out, at) <= step * _ROUNDED for at, step, _ in late])

    high = np.array([step / angle for _, step, angle in late])
    out = there(high)
    if (good := fits(out)).all():
        return out
    low = np.where(good, high, 0.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        good = fits(there(middle))
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return there(low)


def _angle(a: Array, b: Array, at: int) -> float:
    """Return the angle between the rotations of a ball in a and b, radians; ``at`` is the ball's first index in q."""
    return float(np.linalg.norm(rotation_between(a[at : at + 4], b[at : at + 4])))


def _part_way(a: Array, b: Array, share: float, angle: float) -> Array:
    """Interpolate between the rotations a and b, which differ by ``angle`` (Shoemake 1985)."""
    b = -b if float(a @ b) < 0.0 else b
    half = 0.5 * angle
    out = (np.sin((1.0 - share) * half) * a + np.sin(share * half) * b) / np.sin(half)
    return out / np.linalg.norm(out)


def velocity_limits(ik: CompiledProblem, limits: Any) -> Array:
    """Return the highest velocity of each joint, radians or length units per second.

    Raises:
        InputError: If a velocity is not positive.
        UnsupportedError: If a goal is not a position, rotation or pose.
    """
    most = joint_velocities(ik.skeleton, limits)
    check_goals(ik, "velocity", _NO_SPEED)
    return most


def joint_velocities(skeleton: Skeleton, limits: Any) -> Array:
    """Return the highest velocity of each joint, from one value or values by joint; infinite by default.

    A mimic joint moves only with its leader, so its velocity limits the leader.

    Raises:
        InputError: If a velocity is not positive, or a joint is named twice.
        UnknownNameError: If a joint does not exist.
    """
    most = by_joint(skeleton, limits, "velocity")
    t = skeleton.tables
    row_of = {skeleton.q_slice(row).start: row for row, joint in enumerate(skeleton.joints) if joint.kind.q_size == 1}
    for (follower, leader), ratio in zip(t.followers.tolist(), t.ratios.tolist(), strict=True):
        if ratio != 0.0:
            most[row_of[leader]] = min(most[row_of[leader]], most[row_of[follower]] / abs(ratio))
    return most


def _parts(ik: CompiledProblem, rows: Array) -> tuple[Array, Array]:
    """Return joint values (T, nq) and targets (T, goals, 16) of rows of results."""
    return rows[:, ik.places].copy(), np.ascontiguousarray(ik.targets_in(rows))


def _replace(ik: CompiledProblem, model: Model, rows: Array, q: Array, why: Status) -> Bools:
    """Write new joint values and their errors into rows of results; return a mask of new misses."""
    _, targets = _parts(ik, rows)
    _, _, errors = model.evaluate(q, targets, derivative=False)
    rows[:, ik.places] = q
    ik.errors_in(rows)[...] = errors
    return restate(rows, np.asarray((errors <= np.array(ik.tolerance)).all((1, 2))), why)
