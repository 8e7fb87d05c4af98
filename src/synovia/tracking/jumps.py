"""Find the jumps of a track: restarts, leaps, hops, flips, and switches of a closed form to another branch.

**Leaps.** A joint rotates far in one frame, and much farther than in the frames before and after it. The cause does not
matter: the target may have jumped as well.

**Hops.** The point of a missed goal is at the nearest reachable place. As its target moves, the point slides along the
edge of the workspace, hardly ever faster than the target. If the point moves much farther, another place has become the
nearest. With a solver that bounds motion, the point only catches up with an earlier motion of the target.

**Flips.** A pose may flip although its targets move little: an elbow whose pole crosses the limb, or a wrist. A target
that moves by δ at a distance d from a joint rotates the joint by about δ / d, or a few times that near a straight limb.
A joint that rotates by much more has flipped. In fast motion, the targets move fast as well, so it is not a flip. A
limb has flipped as well if it swings about the line between its ends while its pole crosses that line or is close to
it. There a small motion of the pole would explain any swing. Iterative solvers may swing a frame later.

**Switches.** A closed form takes the branch nearest to the previous frame. Where that branch ends, at a limit or a
singular pose, the next branch may be far away. To distinguish a switch from fast motion, a frame with a large step is
solved again with targets that move there in small steps. In fast motion, the joints then move in small steps too; a
switch remains one large step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.frame import complete
from synovia.ik.status import restarted
from synovia.ik.targets import transforms
from synovia.model import Pose
from synovia.model.geometry import (
    Array,
    frames_to_transforms,
    matrix_to_quat,
    quat_to_matrix,
    rotation_between,
    times_exp,
)
from synovia.model.pose import world_frames
from synovia.tracking.trajectory import all_variables

Bools = NDArray[np.bool_]
Follow = Callable[[CompiledProblem, Array, Array, Callable[..., None]], Array]
"""Solves the frames of one track: follow(problem, targets, first start, progress callback)."""

_FLIP: Final = 0.7  # radians: smallest rotation of a joint in one frame that can be a flip or a leap
_ALONE: Final = 5.0  # smallest ratio of a leap to the rotations of the joint in the adjacent frames
# smallest ratio of a hop of a goal's point to the motion of targets; a hop is also larger than the tolerance
_HOP: Final = 3.0
_SEEN: Final = 0.15  # smallest change of a joint value in a flip; quaternions change by at least 0.17
# smallest ratio of a flip's rotation to that of its targets; for a limb that begins to bend, it is about 4
_MORE: Final = 10.0
_SWING: Final = 1.2  # radians: smallest swing of a limb that is a flip if its pole crosses the limb
# A pole crosses a limb if, between two frames, it comes close to the limb's line: nearer than 0.75 of its smaller, or
# 0.25 of its larger distance in these frames, or than ``_NEAR`` limb lengths
_CLOSE: Final = (0.75, 0.25)
_NEAR: Final = 0.1
# fraction of a limb's length: smallest distance of the middle of a bent limb from the line between its ends
_STRAIGHT: Final = 1e-3
_LARGE: Final = 0.2  # radians and length scales: smallest norm of joint steps that can be a switch
_PARTS: Final = (4, 32)  # numbers of small steps that are tried; four suffice for most frames without a switch
_WHOLE: Final = 0.5  # fraction of the large step: if one of the small steps is larger, the large step is a switch
_SAME: Final = 0.25  # fraction of the large step: poses at a smaller distance count as equal


def find_jumps(
    ik: CompiledProblem, table: Array, start: Array, rows: Array, follow: Follow, *, switches: bool
) -> Bools:
    """Return a mask of the frames of a track that jump from the previous one.

    Args:
        ik: The problem.
        table: Targets, (T, goals, 17).
        start: The first start, (1, nq).
        rows: Rows of results.
        follow: The function that solved the track.
        switches: Whether to detect switches of a closed form, which takes more solves.
    """
    jumped = restarted(rows) | _leaps(ik, rows) | _hops(ik, rows) | _flips(ik, rows) | _crossings(ik, rows)
    if switches and ik.solver.closed and len(rows) > 1:
        jumped |= _branch_switches(ik, complete(ik, table, rows), start, rows, follow)
    jumped[:1] = False
    return jumped


def changes(ik: CompiledProblem, a: Array, b: Array) -> Array:
    """Return the sum of squared changes of all joints, radians and length scales, between rows of joint values."""
    return np.sum(all_variables(ik.skeleton, ik.reach).difference(a, b) ** 2, axis=1)


def _leaps(ik: CompiledProblem, rows: Array) -> Bools:
    """Return a mask of frames in which a joint rotates far, and much farther than in the adjacent frames."""
    out = np.zeros(len(rows), bool)
    q, variables = rows[:, ik.places], all_variables(ik.skeleton)
    if len(q) < 2:
        return out
    turned = variables.angles(variables.difference(q[:-1], q[1:]))
    if not turned.size or turned.max() <= _FLIP:
        return out
    still = np.zeros((1, turned.shape[1]))
    around = np.maximum(np.concatenate([still, turned[:-1]]), np.concatenate([turned[1:], still]))
    out[1:] = ((turned > _FLIP) & (turned > _ALONE * around)).any(axis=1)
    return out


def _hops(ik: CompiledProblem, rows: Array) -> Bools:
    """Return a mask of frames in which the point of a missed goal moves much farther than any target."""
    out = np.zeros(len(rows), bool)
    most = ik.tolerance[0]
    errors = rows[:, ik.places.stop : ik.places.stop + 2 * len(ik.goals) : 2]
    missed = (errors[1:] > most) | (errors[:-1] > most)
    goals = [g for g, goal in enumerate(ik.goals) if goal.pose_parts & POSITION and missed[:, g].any()]
    if ik.solver.bounds_motion or not goals:
        return out
    frames = world_frames(ik.skeleton, np.ascontiguousarray(rows[:, ik.places]))
    targets = ik.targets_in(rows).reshape(len(rows), -1, 4, 4)
    moved = np.linalg.norm(np.diff(targets[..., :3, 3], axis=0), axis=2)
    turned = np.linalg.norm(np.diff(targets[..., :3, :3], axis=0), axis=(2, 3))
    explained = np.maximum(_HOP * (moved + ik.reach * turned).max(axis=1), most)
    for g in goals:
        points = (frames_to_transforms(frames[:, ik.goal_joints[g][0]]) @ ik.goals[g].place(0))[:, :3, 3]
        out[1:] |= missed[:, g] & (np.linalg.norm(np.diff(points, axis=0), axis=1) > explained)
    return out


def _flips(ik: CompiledProblem, rows: Array) -> Bools:
    """Return a mask of frames in which a joint rotates by far more than its targets explain."""
    out = np.zeros(len(rows), bool)
    q, targets, variables = rows[:, ik.places], ik.targets_in(rows), all_variables(ik.skeleton)
    tables = ik.skeleton.tables
    # rows of joints, in the order of ``angles``
    owners = [*tables.owner[tables.is_angle], *tables.owner[~tables.is_number]]
    suspects = np.flatnonzero(np.abs(np.diff(q, axis=0)).max(axis=1, initial=0.0) > _SEEN) + 1
    turned = variables.angles(variables.difference(q[suspects - 1], q[suspects]))
    for i, joint in np.argwhere(turned > _FLIP).tolist():
        t = int(suspects[i])
        if not out[t]:
            place = Pose.trusted(ik.skeleton, q[t - 1].copy()).position(owners[joint])
            out[t] = turned[i, joint] > _MORE * _explained(ik, place, targets[t - 1], targets[t])
    return out


def _crossings(ik: CompiledProblem, rows: Array) -> Bools:
    """Return a mask of frames in which a limb swings round because its pole crosses the limb's line."""
    out = np.zeros(len(rows), bool)
    poles = [g for g, goal in enumerate(ik.goals) if goal.turns_limb]
    if not poles or len(rows) < 2:
        return out
    targets = ik.targets_in(rows).reshape(len(rows), -1, 4, 4)
    frames = world_frames(ik.skeleton, np.ascontiguousarray(rows[:, ik.places]))
    for g in poles:
        middle, root, tip = (
            (frames_to_transforms(frames[:, row]) @ ik.goals[g].place(k))[:, :3, 3]
            for k, row in enumerate(ik.goal_joints[g][:3])
        )
        way = tip - root
        length = np.linalg.norm(middle - root, axis=1) + np.linalg.norm(tip - middle, axis=1)
        line = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), _STRAIGHT * length[:, None])
        side, pole = (
            p - np.sum(p * line, axis=1, keepdims=True) * line for p in (middle - root, targets[:, g, :3, 3] - root)
        )
        bends = np.linalg.norm(side, axis=1) > _STRAIGHT * length
        a, b = (_carried(v[:-1], line[:-1], line[1:]) for v in (side, pole))
        swing = np.arctan2(np.linalg.norm(np.cross(a, side[1:]), axis=1), np.sum(a * side[1:], axis=1))
        out[1:] |= (swing > _SWING) & bends[1:] & bends[:-1] & _passes(b, pole[1:], _NEAR * length[1:])
    return out


def _carried(v: Array, a: Array, b: Array) -> Array:
    """Return vectors v, (T, 3), after the smallest rotations from directions a to directions b, (T, 3) each."""
    axis = np.cross(a, b)
    cosine = np.sum(a * b, axis=1, keepdims=True)
    along = np.sum(axis * v, axis=1, keepdims=True) / np.maximum(1.0 + cosine, _STRAIGHT)
    return cosine * v + np.cross(axis, v) + along * axis


def _passes(a: Array, b: Array, near: Array) -> Bools:
    """Return whether segments from a to b (T, 3) pass the origin closer than their ends, or than ``near`` (T,)."""
    way = b - a
    share = np.clip(-np.sum(a * way, axis=1) / np.maximum(np.sum(way * way, axis=1), np.finfo(float).tiny), 0.0, 1.0)
    nearest = np.linalg.norm(a + share[:, None] * way, axis=1)
    ends = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
    return (nearest < _CLOSE[0] * np.minimum(*ends)) | (nearest < _CLOSE[1] * np.maximum(*ends)) | (nearest < near)


def _explained(ik: CompiledProblem, joint: Array, before: Array, after: Array) -> float:
    """Return the largest rotation of a joint, radians, that the motion of a single target explains.

    Args:
        ik: The problem.
        joint: Position of the joint, (3,).
        before: Targets of the previous frame, (goals, 16).
        after: Targets of the frame, (goals, 16).
    """
    most = 0.0
    for goal, one, other in zip(ik.goals, before, after, strict=True):
        A, B = one.reshape(4, 4), other.reshape(4, 4)
        turn = 0.0
        if goal.takes & ROTATION:
            turn += float(np.arccos(np.clip(0.5 * (np.sum(A[:3, :3] * B[:3, :3]) - 1.0), -1.0, 1.0)))
        if goal.takes & POSITION and (moved := float(np.linalg.norm(B[:3, 3] - A[:3, 3]))) > 0.0:
            center = joint if goal.vector == "position" else np.zeros(3)
            lever = min(float(np.linalg.norm(T[:3, 3] - center)) for T in (A, B))
            turn += moved / lever if lever > 0.0 else np.inf
        most = max(most, turn)
    return most


def _branch_switches(ik: CompiledProblem, table: Array, start: Array, rows: Array, follow: Follow) -> Bools:
    """Return a mask of frames in which a closed form switches branches; ``table`` has complete targets."""
    values = rows[:, ik.places]
    large = np.flatnonzero(np.sqrt(changes(ik, values[:-1], values[1:])) > _LARGE) + 1
    if len(large) and getattr(ik.solver, "weight", 1.0) < 1.0:  # blending would hide switches, so it is turned off
        ik = ik.with_solver(ik.solver.replace(weight=1.0))
        values = follow(ik, table, start, _ignore)[:, ik.places]
    out = np.zeros(len(rows), bool)
    for t in large.tolist():
        out[t] = all(
            _is_switch(ik.single(t), _between(table[t - 1], table[t], parts), values[t - 1 : t + 1], follow)
            for parts in _PARTS
        )
    return out


def _is_switch(ik: CompiledProblem, table: Array, ends: Array, follow: Follow) -> bool:
    """Return whether a large step between poses ``ends`` stays large if the targets move in the small steps of a table.

    The step is also a switch if the small steps end on another branch than the large step.
    """
    step = float(np.sqrt(changes(ik, ends[:1], ends[1:])[0]))
    if step <= _LARGE:
        return False
    path = follow(ik, table, ends[:1].copy(), _ignore)[:, ik.places]
    if np.sqrt(changes(ik, path[:-1], path[1:]).max()) > _WHOLE * step:
        return True
    first, last = np.sqrt(changes(ik, path[[0, -1]], ends))
    return bool(first < _SAME * step and last > _WHOLE * step)


def _between(a: Array, b: Array, parts: int) -> Array:
    """Return targets (parts + 1, goals, 17), interpolated evenly from one frame to the next."""
    share = np.linspace(0.0, 1.0, parts + 1)
    out = np.repeat(b[None], parts + 1, axis=0)
    for g in range(len(a)):
        A, B = (transforms(row)[g] for row in (a, b))
        p, q = matrix_to_quat(A[:3, :3]), matrix_to_quat(B[:3, :3])
        frames = transforms(out)[:, g]
        frames[:, :3, :3] = quat_to_matrix(times_exp(p[None], share[:, None] * rotation_between(p, q)))
        frames[:, :3, 3] = A[:3, 3] + share[:, None] * (B[:3, 3] - A[:3, 3])
    return out


def _ignore(*_: Any) -> None:
    """Ignore progress reports."""
