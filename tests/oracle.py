"""A second opinion on answers: forward kinematics, goals and limits in plain NumPy, from their descriptions alone.

Nothing of the package's own arithmetic is used, so that an error there cannot hide itself. Everything works on many
rows of joint values at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import synovia as sy
from synovia.model import Kind

Array = NDArray[np.float64]
FADES = 2e-3  # of a limb's length: nearer to the line its bend has no plane, and a pole asks for less than all


def turn_matrix(quat: Array) -> Array:
    """Return matrices (..., 3, 3) of quaternions xyzw (..., 4), which are made unit first."""
    x, y, z, w = np.moveaxis(quat / np.sqrt((quat * quat).sum(-1, keepdims=True)), -1, 0)
    out = np.empty((*x.shape, 3, 3))
    out[..., 0, 0], out[..., 0, 1], out[..., 0, 2] = (
        w * w + x * x - y * y - z * z,
        2 * (x * y - w * z),
        2 * (x * z + w * y),
    )
    out[..., 1, 0], out[..., 1, 1], out[..., 1, 2] = (
        2 * (x * y + w * z),
        w * w - x * x + y * y - z * z,
        2 * (y * z - w * x),
    )
    out[..., 2, 0], out[..., 2, 1], out[..., 2, 2] = (
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        w * w - x * x - y * y + z * z,
    )
    return out


def about(axis: Array, angle: Array) -> Array:
    """Return matrices (B, 3, 3) of turns by angles (B,) about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.eye(3) + s * K + (1.0 - c) * (K @ K)


def frames(skeleton: sy.Skeleton, q: Array) -> Array:
    """Return the world transforms (B, n, 4, 4) of all joints at rows of joint values (B, nq)."""
    out = np.zeros((len(q), len(skeleton), 4, 4))
    for row, joint in enumerate(skeleton.joints):
        motion = np.tile(np.eye(4), (len(q), 1, 1))
        v = q[:, skeleton.q_slice(row)]
        if joint.kind is Kind.HINGE:
            motion[:, :3, :3] = about(joint.axis, v[:, 0])
        elif joint.kind is Kind.SLIDE:
            motion[:, :3, 3] = v * joint.axis
        elif joint.kind is Kind.BALL:
            motion[:, :3, :3] = turn_matrix(v)
        elif joint.kind is Kind.FREE:
            motion[:, :3, 3] = v[:, :3]
            motion[:, :3, :3] = turn_matrix(v[:, 3:])
        above = skeleton.parents[row]
        out[:, row] = (joint.rest if above < 0 else out[:, above] @ joint.rest) @ motion
    return out


def center_of_mass(skeleton: sy.Skeleton, world: Array) -> Array:
    """Return the centre of mass (B, 3)."""
    masses = np.array([joint.mass for joint in skeleton.joints])
    places = np.stack([world[:, i, :3, :3] @ j.com + world[:, i, :3, 3] for i, j in enumerate(skeleton.joints)], axis=1)
    return (masses / masses.sum()) @ places


def length(v: Array) -> Array:
    """Return the lengths of vectors (..., 3)."""
    return np.sqrt((v * v).sum(-1))


def angle_between(R: Array, T: Array) -> Array:
    """Return the angles between rotations (..., 3, 3), from |R - T|² = 8 sin²(angle / 2)."""
    off = np.sqrt(((R - T) ** 2).sum((-1, -2)) / 8.0)
    return 2.0 * np.arcsin(np.minimum(off, 1.0))


def angle_to(u: Array, d: Array) -> Array:
    """Return the angles (B,) between vectors; 0 where one has no length."""
    return np.arctan2(length(np.cross(u, d)), (u * d).sum(-1))


def errors(ik: sy.IK, world: Array, targets: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return what each goal lacks, lengths and angles (B, goals), where joints stand at ``world`` (B, n, 4, 4).

    ``targets``: of each goal by name, (B, 4, 4), of which the goal reads what it takes.
    """
    skeleton = ik.skeleton
    lengths = np.zeros((len(world), len(ik.goals)))
    angles = np.zeros_like(lengths)
    for g, (goal, joints) in enumerate(zip(ik.goals, ik.problem.goal_joints, strict=True)):
        F = world[:, joints[0]] @ goal.offset if joints else world[:, 0]
        T = targets.get(goal.label, np.zeros((len(world), 4, 4)))
        p, t = F[:, :3, 3], T[:, :3, 3]
        if isinstance(goal, sy.AimGoal):
            d = t - p
            off = angle_to(F[:, :3, 2], d)
            angles[:, g] = np.where(length(d) > 1e-6 * ik.reach, off, 0.0)
        elif isinstance(goal, sy.DirectionGoal):
            angles[:, g] = angle_to(F[:, :3, 2], t)
        elif isinstance(goal, sy.PoleGoal):
            root, tip = world[:, joints[1], :3, 3], world[:, joints[2], :3, 3]
            line = tip - root
            long = length(line)
            a = line / np.maximum(long, 1e-300)[:, None]
            u, v = ((x - root) - ((x - root) * a).sum(-1)[:, None] * a for x in (p, t))
            thin = FADES * (length(p - root) + length(tip - p))
            clear = (long > thin) & (length(u) > thin) & (length(v) > thin)
            angles[:, g] = np.where(clear, angle_to(u, v), 0.0)
        elif isinstance(goal, sy.DistanceGoal):
            o = t if len(joints) == 1 else (world[:, joints[1]] @ goal.other_offset)[:, :3, 3]
            far = length(p - o)
            lengths[:, g] = np.maximum(np.maximum(goal.minimum - far, far - goal.maximum), 0.0)
        elif isinstance(goal, sy.PlaneGoal):
            lengths[:, g] = np.maximum((T[:, :3, 2] * (t - p)).sum(-1), 0.0)
        elif isinstance(goal, sy.CenterOfMassGoal):
            lengths[:, g] = length(t - center_of_mass(skeleton, world))
        elif isinstance(goal, sy.RelativeGoal):
            T = world[:, joints[1]] @ goal.other_offset @ T
            lengths[:, g] = length(T[:, :3, 3] - p)
            angles[:, g] = angle_between(F[:, :3, :3], T[:, :3, :3])
        elif isinstance(goal, sy.ContactGoal):
            lengths[:, g] = length(t - p)
            if goal.keep == "normal":
                angles[:, g] = angle_to(F[:, :3, 2], T[:, :3, 2])
            elif goal.keep == "pose":
                angles[:, g] = angle_between(F[:, :3, :3], T[:, :3, :3])
        elif isinstance(goal, sy.PositionGoal | sy.RotationGoal | sy.PoseGoal):
            if goal.pose_parts & 1:
                lengths[:, g] = length(t - p)
            if goal.pose_parts & 2:
                angles[:, g] = angle_between(F[:, :3, :3], T[:, :3, :3])
        elif not isinstance(goal, sy.RangeGoal | sy.RestGoal):
            raise TypeError(f"no judge for {goal!r}")
    return lengths, angles


def range_errors(ik: sy.IK, q: Array) -> Array:
    """Return by how much joint values are outside the intervals of range goals (B, goals)."""
    out = np.zeros((len(q), len(ik.goals)))
    for g, (goal, joints) in enumerate(zip(ik.goals, ik.problem.goal_joints, strict=True)):
        if isinstance(goal, sy.RangeGoal):
            v = q[:, ik.skeleton.q_slice(joints[0])]
            x = v[:, 0] if v.shape[1] == 1 else 2.0 * np.arctan2(length(v[:, :3]), np.abs(v[:, 3]))
            out[:, g] = np.maximum(np.maximum(goal.lower - x, x - goal.upper), 0.0)
    return out


def beyond_ellipse(x: Array, y: Array, a: Array, b: Array) -> Array:
    """Return the distances of points from ellipses with half-axes a and b >= 0, 0 inside (by bisection)."""
    x, y = np.abs(x), np.abs(y)
    a, b = np.maximum(a, 1e-30), np.maximum(b, 1e-30)
    far = np.zeros_like(x)
    outside = ~((x / a) ** 2 + (y / b) ** 2 <= 1.0)  # few of many, and what is no number
    x, y, a, b = x[outside], y[outside], a[outside], b[outside]
    low, high = np.zeros_like(x), a * x + b * y
    for _ in range(200):
        t = 0.5 * (low + high)
        if not ((low < t) & (t < high)).any():
            break  # no number lies between
        out = (a * x / (t + a * a)) ** 2 + (b * y / (t + b * b)) ** 2 > 1.0
        low, high = np.where(out, t, low), np.where(out, high, t)
    u, v = a * a * x / (high + a * a), b * b * y / (high + b * b)
    far[outside] = np.hypot(x - u, y - v)
    return far


def beyond_limit(limit: sy.SwingTwist, quat: Array) -> Array:
    """Return how far (radians) rotations (B, 4) are beyond a limit: the larger of swing and twist, in long double."""
    long = np.longdouble
    q = quat.astype(long)
    q /= np.sqrt((q * q).sum(-1, keepdims=True))
    z, w = (q[:, :3] @ np.asarray(limit.frame, long)).T, q[:, 3]  # the vector part in the limit's frame
    sign = np.where(w < 0, long(-1), long(1))
    (x, y, z), w = z * sign, w * sign
    c = np.hypot(w, z)
    known = c > 0
    cos, sin = np.where(known, w, 1) / np.where(known, c, 1), np.where(known, z, 0) / np.where(known, c, 1)
    u, v = x * cos - y * sin, x * sin + y * cos
    s = np.hypot(u, v)
    k = np.where(s > 0, 2 * np.arctan2(s, c) / np.where(s > 0, s, 1), 2)
    sx, sy_ = k * u, k * v
    (left, right), (down, up) = limit.x, limit.y
    a, b = np.where(sx >= 0, long(right), long(left)), np.where(sy_ >= 0, long(up), long(down))
    twist = 2 * np.arctan2(sin, cos)
    low, high = limit.twist
    turn = 2 * long(np.pi)
    ends = [np.abs(d - turn * np.rint(d / turn)) for d in (twist - low, twist - high)]
    turned = np.where((twist >= low) & (twist <= high), 0, np.minimum(*ends))
    return np.maximum(beyond_ellipse(sx, sy_, a, b), turned).astype(np.float64)


def beyond_limits(skeleton: sy.Skeleton, q: Array) -> Array:
    """Return the largest distance beyond a limit of each row (B,), over the larger of 1 and the value."""
    worst = np.zeros(len(q))
    for row, joint in enumerate(skeleton.joints):
        v = q[:, skeleton.q_slice(row)]
        if joint.mimic is not None and not joint.mimic.binds:
            continue  # its leader alone is bound
        if isinstance(joint.limit, sy.Interval):
            out = np.maximum(joint.limit.lower - v[:, 0], v[:, 0] - joint.limit.upper)
            worst = np.maximum(worst, out / np.maximum(np.abs(v[:, 0]), 1.0))
        elif isinstance(joint.limit, sy.SwingTwist):
            worst = np.maximum(worst, beyond_limit(joint.limit, v[:, -4:]))
    return worst
