"""How still feet stand in a clip, how deep they sink, and what holding them costs the rest of the body.

Knows nothing of how feet are locked: contact is read from the original clip alone. A foot or toe joint is in contact
where its height is among the lowest 30 % of its heights and its speed among the lowest 30 % of its speeds. The floor is
the median height of the lowest point of a foot during contact.
"""

import math

import numpy as np

import synovia as sy

LOWEST = 0.30


def foot_joints(skeleton, pattern=("foot", "toe", "ankle", "ball")):
    """Return rows of the foot and toe joints, without their tips, and rows of all points of the feet."""
    named = [r for r, name in enumerate(skeleton.joint_names) if any(word in name.lower() for word in pattern)]
    points = set(named)
    for row, parent in enumerate(skeleton.parents):
        if parent in points:
            points.add(row)
    return [r for r in named if not skeleton.joints[r].tip], sorted(points)


def speeds(positions, fps):
    """Return speeds (T, n) by central differences."""
    return np.linalg.norm(np.gradient(positions, axis=0), axis=-1) * fps


def accelerations(positions, fps):
    """Return the largest acceleration of each joint, (n,)."""
    return np.linalg.norm(np.diff(positions, 2, axis=0), axis=-1).max(0) * fps**2


def local_turns(motion):
    """Return the joints' own rotations as quaternions (T, n, 4); the unit where a joint has none."""
    skeleton = motion.skeleton
    out = np.zeros((len(motion), len(skeleton), 4))
    out[..., 3] = 1.0
    for row, joint in enumerate(skeleton.joints):
        at = skeleton.q_slice(row)
        if joint.kind.q_size >= 4:
            out[:, row] = motion.q[:, at.stop - 4 : at.stop]
        elif joint.kind is sy.Kind.HINGE:
            half = 0.5 * motion.q[:, at.start, None]
            out[:, row] = np.concatenate([np.sin(half) * joint.axis, np.cos(half)], axis=1)
    return out


def angles_between(a, b):
    """Return the angles (T, n) between rotations, degrees."""
    return np.degrees(2.0 * np.arccos(np.clip(np.abs(np.sum(a * b, axis=-1)), 0.0, 1.0)))


def turn_accelerations(turns, fps):
    """Return the largest angular acceleration of each joint's own rotation, (n,), rad/s²."""
    a, b = turns[:-1] * (-1.0, -1.0, -1.0, 1.0), turns[1:]
    w = np.concatenate([a[..., 3:] * b[..., :3] + b[..., 3:] * a[..., :3] + np.cross(a[..., :3], b[..., :3])], axis=-1)
    c = np.abs(np.sum(turns[:-1] * turns[1:], axis=-1, keepdims=True))
    sign = np.sign(np.sum(turns[:-1] * turns[1:], axis=-1, keepdims=True))
    size = np.linalg.norm(w, axis=-1, keepdims=True)
    w = sign * w * np.where(size > 1e-12, 2.0 * np.arctan2(size, c) / np.maximum(size, 1e-12), 2.0)
    return np.linalg.norm(np.diff(w, axis=0), axis=-1).max(0) * fps**2


def foot_figures(before, after, up, unit):
    """Return the figures of one clip, with the ``up`` axis and the metres of its unit."""
    skeleton, fps = before.skeleton, before.fps
    axis = "xyz".index(up)
    rows, points = foot_joints(skeleton)
    old, new = before.positions() * unit, after.positions() * unit
    contact = {}
    for row in rows:
        height, speed = old[:, row, axis], speeds(old[:, row], fps)
        contact[row] = (height <= np.quantile(height, LOWEST)) & (speed <= np.quantile(speed, LOWEST))
    was = np.concatenate([speeds(old[:, row], fps)[contact[row]] for row in rows])
    now = np.concatenate([speeds(new[:, row], fps)[contact[row]] for row in rows])
    sides = [[p for p in points if p == r or r in _above(skeleton, p)] for r in rows]
    lows = [old[contact[r]][:, side, axis].min(1) for r, side in zip(rows, sides, strict=True) if len(side) > 1]
    floor = float(np.median(np.concatenate(lows)))
    turned = angles_between(local_turns(before), local_turns(after))
    shift = np.linalg.norm(new - old, axis=-1)
    moving = [r for r, joint in enumerate(skeleton.joints) if joint.kind.q_size]
    other = [r for r in moving if r not in points]
    old_peak, new_peak = accelerations(old, fps), accelerations(new, fps)
    old_turn, new_turn = (turn_accelerations(local_turns(m), fps) for m in (before, after))
    turning = [r for r in moving if old_turn[r] > 1e-3 * old_turn.max()]
    return {
        "contact_frames": {skeleton.joint_names[r]: int(c.sum()) for r, c in contact.items()},
        "speed_before_mm_s": 1e3 * float(was.mean()),
        "speed_after_mm_s": 1e3 * float(now.mean()),
        "speed_ratio": float(was.mean() / max(now.mean(), 1e-12)),
        "worst_joint_ratio": min(
            float(speeds(old[:, r], fps)[c].mean() / max(speeds(new[:, r], fps)[c].mean(), 1e-12))
            for r, c in contact.items()
        ),
        "penetration_before_mm": 1e3 * max(0.0, floor - float(old[:, points, axis].min())),
        "penetration_after_mm": 1e3 * max(0.0, floor - float(new[:, points, axis].min())),
        "mean_change_of_other_joints_deg": float(turned[:, other].mean(0).max()),
        "mean_change_of_any_joint_deg": float(turned[:, moving].mean(0).max()),
        "largest_change_deg": float(turned.max()),
        "largest_shift_mm": 1e3 * float(shift.max()),
        "acceleration_peak_ratio": float((new_peak / np.maximum(old_peak, 1e-9)).max()),
        "acceleration_peak_joint": skeleton.joint_names[int(np.argmax(new_peak / np.maximum(old_peak, 1e-9)))],
        "angular_acceleration_peak_ratio": float((new_turn[turning] / old_turn[turning]).max()),
        "angular_acceleration_peak_joint": skeleton.joint_names[
            turning[int(np.argmax(new_turn[turning] / old_turn[turning]))]
        ],
        "finite": math.isfinite(float(new.sum())),
    }


def _above(skeleton, row):
    """Return the ancestors of a joint."""
    out = []
    while (row := skeleton.parents[row]) >= 0:
        out.append(row)
    return out
