"""Random joint values by NumPy alone: they stay the same when the package's own random numbers or solvers change."""

from __future__ import annotations

from typing import Any

import numpy as np

INSIDE = 0.999  # of a limit: rounding, or another way to measure a ball's limit, must not put a draw outside


def quaternions(turns: np.ndarray) -> np.ndarray:
    """Return unit quaternions xyzw (n, 4) of rotation vectors (n, 3)."""
    angle = np.linalg.norm(turns, axis=1, keepdims=True)
    axis = turns / np.where(angle > 0.0, angle, 1.0)
    return np.hstack([axis * np.sin(0.5 * angle), np.cos(0.5 * angle)])


def products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the products of unit quaternions xyzw (n, 4): turned by b first."""
    v = a[:, 3:] * b[:, :3] + b[:, 3:] * a[:, :3] + np.cross(a[:, :3], b[:, :3])
    return np.hstack([v, a[:, 3:] * b[:, 3:] - (a[:, :3] * b[:, :3]).sum(axis=1, keepdims=True)])


def ball(limit: Any, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return rotations of a ball joint within its limit, (n, 4); without one, anywhere."""
    if limit is None:
        q = rng.normal(size=(n, 4))
        return q / np.linalg.norm(q, axis=1, keepdims=True)
    way, far = rng.uniform(-np.pi, np.pi, n), INSIDE * np.sqrt(rng.uniform(0.0, 1.0, n))
    x, y = far * np.cos(way), far * np.sin(way)
    swing = np.column_stack([
        x * np.where(x < 0.0, limit.x[0], limit.x[1]), y * np.where(y < 0.0, limit.y[0], limit.y[1]), 0.0 * x
    ])  # fmt: skip
    low, high = limit.twist
    middle = 0.5 * (low + high)
    twist = middle + INSIDE * (rng.uniform(low, high, n) - middle)
    frame = np.asarray(limit.frame)
    about = np.column_stack([0.0 * x, 0.0 * x, twist])
    return products(quaternions(swing @ frame.T), quaternions(about @ frame.T))


def size_of(skeleton: Any) -> float:
    """Return the length that problems are scaled by: the longest way from a root to a joint, along the bones."""
    far: list[float] = []
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        far.append(float(np.linalg.norm(joint.rest[:3, 3])) + far[parent] if parent >= 0 else 0.0)
    return max(far) or 1.0


def joint_values(skeleton: Any, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return joint values (n, nq) within the limits; free joints and slides without limits stay at rest."""
    q = np.repeat(np.asarray(skeleton.rest_pose().q)[None], n, axis=0)
    joints = skeleton.joints
    for row, joint in enumerate(joints):
        at, kind = skeleton.q_slice(row), joint.kind.name
        if kind == "BALL":
            q[:, at] = ball(joint.limit, rng, n)
        elif kind in ("HINGE", "SLIDE") and joint.mimic is None:
            low, high = (-np.inf, np.inf) if joint.limit is None else (joint.limit.lower, joint.limit.upper)
            wide = np.pi if kind == "HINGE" else 0.0
            low, high = (low if np.isfinite(low) else min(-wide, high)), (high if np.isfinite(high) else max(wide, low))
            middle = 0.5 * (low + high)
            q[:, at] = middle + INSIDE * (rng.uniform(low, high, (n, 1)) - middle)
    for _ in range(len(joints)):  # followers of followers
        before = q.copy()
        for row, joint in enumerate(joints):
            if joint.mimic is not None:
                leader = q[:, skeleton.q_slice(skeleton.index(joint.mimic.leader))]
                q[:, skeleton.q_slice(row)] = joint.mimic.ratio * leader + joint.mimic.offset
        if np.array_equal(before, q):
            break
    return q
