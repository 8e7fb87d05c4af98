"""An outside judge of velocity and acceleration: differences of joint values alone."""

import numpy as np

import synovia as sy


def faster_than(skeleton, q, rate, velocity, acceleration, leg):
    """Return by how much joint values (T, nq) exceed limits, as parts of them: differences of rotations and places."""
    worst = -np.inf
    for row, joint in enumerate(skeleton.joints):
        at = skeleton.q_slice(row)
        parts = []
        if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
            R = sy.Rotation.from_quat(q[:, at][:, -4:])
            parts.append(((R[:-1].inv() * R[1:]).as_rotvec() * rate, 1.0))
        if joint.kind is sy.Kind.FREE:
            parts.append((np.diff(q[:, at][:, :3], axis=0) * rate, leg))
        if joint.kind in (sy.Kind.HINGE, sy.Kind.SLIDE):
            parts.append((np.diff(q[:, at], axis=0) * rate, 1.0))
        for v, scale in parts:
            a = np.diff(v, axis=0) * rate
            for found, most in ((v, velocity), (a, acceleration)):
                size = np.linalg.norm(found, axis=1).max(initial=0.0)
                worst = max(worst, size / (scale * most) - 1.0)
    return worst
