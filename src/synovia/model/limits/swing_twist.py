"""Limits of ball joints: the direction of the bone (swing) and the rotation about it (twist)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from synovia.errors import InputError
from synovia.kernels import layout
from synovia.model.geometry import Array, as_direction, as_matrix, as_numbers, matrix_to_quat
from synovia.model.limits.base import Limit

# radians: replaces a half-angle of 0, for which the ellipse is not defined; below the slack of 1e-9
_SMALLEST: Final = 1e-10
_Frame = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class SwingTwist(Limit):
    """Allowed rotations of a ball joint, relative to its rest: q = swing · twist.

    The swing is a rotation vector (sx, sy) normal to the twist axis, allowed if (sx / a)² + (sy / b)² <= 1, with a
    separate half-angle for each direction; the twist about the bone is allowed in an interval.

    Without ``frame``, the twist axis is the rest direction of the joint's bone, which leads to the child. With several
    children, it is the sum of the bones to them; without a child, it continues the bone from the parent. The x axis
    points to the left of the body, so that a leg swings forward towards -x and back towards +x. For a bone that points
    sideways, such as an arm in a T pose, it points up. In both cases x is made normal to the bone, and y = z × x. A
    skeleton without ``up`` and ``forward`` has y up and faces z. ``skeleton.joint(name).limit`` shows the frame.

    Args:
        x: Half-angles (towards -x, towards +x) of the swing about the frame's x axis, radians, each 0 to pi.
        y: Half-angles (towards -y, towards +y) of the swing about the frame's y axis.
        twist: Lower and upper twist, radians, within [-pi, pi].
        frame: Rotation matrix whose columns are the frame's x, y and z axes in the joint's rest frame; z is the twist
            axis. ``SwingTwist.about`` builds it from a direction. None for the bone of the joint, as above.

    Raises:
        InputError: If an angle is out of range or the frame is not a rotation.

    Example:
        >>> import synovia as sy
        >>> hip = sy.SwingTwist(x=(1.8, 0.3), y=(0.4, 0.4))  # radians: forward and back, to each side
        >>> body = sy.bundled("humanoid").with_limits({"left_upper_leg": hip})
        >>> body.joint("left_upper_leg").limit.axes[:, 2]  # the bone points down
        array([ 0., -1.,  0.])

    References:
        Yamane & Nakamura (2002), *Natural Motion Animation through Constraining and Deconstraining at Will*.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    twist: tuple[float, float] = (-math.pi, math.pi)
    frame: _Frame | None = None

    def __post_init__(self) -> None:
        """Raise an error for invalid angles; convert arrays and lists to tuples, which can be compared and hashed."""
        for name in ("x", "y", "twist"):
            pair = tuple(as_numbers(getattr(self, name), (2,), f"limit {name}").tolist())
            object.__setattr__(self, name, pair)
            if name != "twist" and not all(0.0 <= angle <= math.pi + 1e-12 for angle in pair):
                raise InputError(
                    f"swing limit {name}",
                    value=pair,
                    expected="two half-angles from 0 to pi radians",
                    hint=_degrees(pair),
                )
        low, high = self.twist
        if not -math.pi - 1e-12 <= low <= high <= math.pi + 1e-12:
            raise InputError(
                "twist limit",
                value=self.twist,
                expected="-pi <= lower <= upper <= pi radians",
                hint=_degrees(self.twist),
            )
        if self.frame is not None:
            # exactly orthonormal, because kernels read it as a quaternion
            matrix = as_matrix(self.frame, "limit frame")
            object.__setattr__(self, "frame", tuple(tuple(row) for row in matrix.tolist()))

    @classmethod
    def about(
        cls,
        bone: ArrayLike,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        twist: tuple[float, float] = (-math.pi, math.pi),
        x_axis: ArrayLike | None = None,
    ) -> SwingTwist:
        """Create a limit whose twist axis is the direction of a bone.

        Args:
            bone: Direction of the bone in the joint's rest frame, any length but 0.
            x: Half-angles about the x axis, as in the class.
            y: Half-angles about the y axis.
            twist: Lower and upper twist.
            x_axis: Direction whose part normal to the bone becomes the x axis. By default, the coordinate axis most
                normal to the bone.
        """
        z = as_direction(bone, "the bone")
        wanted = np.eye(3)[int(np.argmin(np.abs(z)))] if x_axis is None else as_direction(x_axis, "x_axis")
        across = wanted - (wanted @ z) * z
        length = np.linalg.norm(across)
        if not length > 1e-9:
            raise InputError("x_axis", value=x_axis, expected="a direction that is not parallel to the bone")
        across = across / length
        return cls(x=x, y=y, twist=twist).in_frame(np.column_stack([across, np.cross(z, across), z]))

    def in_frame(self, frame: Array) -> SwingTwist:
        """Return the limit with another frame, (3, 3)."""
        return replace(self, frame=tuple(tuple(row) for row in frame.tolist()))

    @property
    def axes(self) -> Array:
        """The frame as an array (3, 3) with the axes x, y and z as columns; the identity until a joint sets it."""
        return np.eye(3) if self.frame is None else np.array(self.frame)

    def components(self, quats: Array) -> tuple[Array, Array]:
        """Return the swing vectors (n, 2) about the frame's x and y axes, and the twists (n,), of rotations q (n, 4).

        Twists are in [-pi, pi]. At a swing of a half turn the twist is undefined, and set to 0.
        """
        x, y, z = (quats[:, :3] @ self.axes).T
        half = np.arctan2(z, quats[:, 3])
        c, s = np.cos(half), np.sin(half)
        u, v = x * c - y * s, x * s + y * c  # components of the quaternion of the swing, where q = swing · twist
        sine = np.hypot(u, v)
        angle = 2.0 * np.arctan2(sine, np.hypot(quats[:, 3], z))
        factor = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
        twist = (2.0 * half + np.pi) % (2.0 * np.pi) - np.pi
        return np.stack([factor * u, factor * v], axis=1), twist

    def row(self) -> Array:
        """Return the row of the limit table: frame as a quaternion (xyzw), half-angles, twist interval and flag."""
        row = np.zeros(layout.LIMIT_WIDTH)
        row[layout.LIMIT_FRAME : layout.LIMIT_FRAME + 4] = matrix_to_quat(self.axes)
        row[[layout.SWING_X_BACK, layout.SWING_X, layout.SWING_Y_BACK, layout.SWING_Y]] = np.maximum(
            (*self.x, *self.y), _SMALLEST
        )
        row[[layout.TWIST_LOWER, layout.TWIST_UPPER]] = self.twist
        row[layout.IS_LIMITED] = 1.0
        return row

    def describe(self) -> str:
        """Return the half-angles and the twist in degrees."""
        x, y, t = (tuple(round(math.degrees(angle), 1) for angle in pair) for pair in (self.x, self.y, self.twist))
        return f"swing x -{x[0]:g}/+{x[1]:g}, y -{y[0]:g}/+{y[1]:g}, twist {t[0]:g} to {t[1]:g} deg"


def _degrees(pair: tuple[float, ...]) -> str | None:
    """Return a hint if two angles are out of range as radians, but plausible as degrees."""
    if math.pi < max(abs(angle) for angle in pair) <= 180.0:
        return f"did you mean degrees, ({', '.join(f'{math.radians(angle):.4g}' for angle in pair)})?"
    return None
