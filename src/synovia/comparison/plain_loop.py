"""A control loop as it is often written: damped least squares of all goals at once, with velocities clipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from synovia.model import Pose
from synovia.model.geometry import Array, matrix_to_quat, rotation_between
from synovia.model.pose import inside_limits
from synovia.servo import Servo

_DAMPING: Final = 1e-4  # fraction of the largest diagonal entry of J Jᵀ that is added to its diagonal
_GAIN: Final = 0.5  # fraction of the error that one tick removes


class PlainLoop:
    """A loop that moves the body of a servo by damped least squares, without bounds on accelerations.

    Each tick takes one step of damped least squares (Wampler 1986) for the weighted errors of all goals, clips the
    velocity of each axis to its limit, and clips the pose to the limits of the joints.

    Args:
        servo: The servo whose body and velocity limits are used.
        weights: Weight of each goal, by the name of its joint.
        top: Largest velocity of each axis, rad/s or length units per second.
    """

    def __init__(self, servo: Servo, weights: Mapping[str, float], top: float) -> None:
        """Begin at the rest pose."""
        self._axes, self._dt, self._top = servo.axes, 1.0 / servo.rate, top
        self._weights = dict(weights)
        self._skeleton, self._size = servo.skeleton, servo.skeleton.size
        self.q: Array = servo.skeleton.rest_pose().q

    def step(self, targets: Mapping[str, Array]) -> Array:
        """Run one tick towards target transforms (4, 4) by joint; return the joint values (nq,)."""
        pose = Pose(self._skeleton, self.q)
        errors: list[Array] = []
        rows: list[Array] = []
        for name, target in targets.items():
            now, weight = pose.transform(name), self._weights[name]
            here, there = matrix_to_quat(now[:3, :3]), matrix_to_quat(target[:3, :3])
            turn = now[:3, :3] @ rotation_between(here, there)
            errors.append(weight * np.concatenate(((target[:3, 3] - now[:3, 3]) / self._size, turn)))
            own = pose.jacobian(name)
            own[:3] /= self._size
            rows.append(weight * self._by_axis(own))
        J, e = np.concatenate(rows), np.concatenate(errors)
        A = J @ J.T
        A.flat[:: len(A) + 1] += _DAMPING * float(A.diagonal().max())
        step = J.T @ np.linalg.solve(A, _GAIN * e)
        most = self._top * self._dt
        self.q = inside_limits(self._skeleton, self._axes.shifted(self.q, np.clip(step, -most, most))[None])[0]
        return self.q

    def _by_axis(self, J: Array) -> Array:
        """Return a Jacobian (6, nv) with a column for each axis."""
        out: Any = np.zeros((len(J), len(self._axes.joints)))
        np.add.at(out.T, self._axes.axis, (J * self._axes.factor).T)
        return out
