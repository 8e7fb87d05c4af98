"""Motors of LeRobot as joints of a model: values in degrees or length units, and limits in degrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, as_numbers, is_number
from synovia.model.simulators import JointOrder
from synovia.text import counted

AWAY: Final = 15.0  # degrees or length units; the motion restarts if a robot deviates more from the last answer
_MOVING: Final = (Kind.HINGE, Kind.SLIDE)


class Motors:
    """Joints of a model in the order of the motors of a robot.

    Args:
        skeleton: The model.
        names: Joints in the order of the values; None for all hinges and slides that are no mimic joints.

    Attributes:
        skeleton: The model.
        names: Names of the joints.
        rows: Rows of the joints.

    Raises:
        InputError: If a joint is neither a hinge nor a slide, or follows another joint.
        UnknownNameError: If a joint does not exist.
    """

    def __init__(self, skeleton: Skeleton, names: Sequence[str] | None) -> None:
        """Find the joints."""
        self.skeleton, joints = skeleton, skeleton.joints
        if names is None:
            names = [joint.name for joint in joints if joint.kind in _MOVING and joint.mimic is None]
        self.names = list(names)
        self.rows = list(skeleton.by_row([(name, name) for name in self.names], "value"))
        for name, row in zip(self.names, self.rows, strict=True):
            joint = joints[row]
            if joint.kind not in _MOVING or joint.mimic is not None:
                found = "a mimic joint" if joint.mimic is not None else joint.kind.name
                raise InputError(
                    f"joint {name!r}", value=found, expected="a hinge or slide that follows no other joint"
                )
        self._order = JointOrder(skeleton, self.names, degrees=True)

    def pose(self, values: Any) -> tuple[Pose, Array]:
        """Return the pose for values of the motors, with other joints at rest, and all values as an array.

        Args:
            values: Degrees, or length units for slides; additional values are ignored in the pose.

        Raises:
            InputError: If there are too few values, or a value is not finite.
        """
        given = as_numbers(values, (-1,), "joint values")
        if len(given) < len(self.rows):
            raise InputError("joint values", value=len(given), expected=counted(len(self.rows), "number"))
        return self._order.pose(given[: len(self.rows)]), given

    def values(self, q: Array) -> Array:
        """Return the values of the motors for joint values (nq,), or for a difference of joint values."""
        return self._order.values(q)


def in_radians(skeleton: Skeleton, name: str, given: Any) -> Any:
    """Return a motion limit by row, in radians for hinges; None and texts such as ``"30%"`` stay unchanged.

    Args:
        skeleton: The model.
        name: Name of the limit, for messages.
        given: A value for all joints, or values by joint; degrees for hinges.

    Raises:
        UnknownNameError: If a joint does not exist.
        InputError: If a limit is no number.
    """
    if given is None or isinstance(given, str):
        return given
    joints = skeleton.joints
    if not isinstance(given, Mapping):
        if not is_number(given):
            raise InputError(name, value=given, expected="a number, or numbers by joint")
        return {row: given / _per(joint.kind) for row, joint in enumerate(joints) if joint.kind in _MOVING}
    by_row = skeleton.by_row(cast("Mapping[Any, Any]", given), name)
    return {
        row: float(as_numbers(value, (), f"{name} of {joints[row].name!r}")) / _per(joints[row].kind)
        for row, value in by_row.items()
    }


def _per(kind: Kind) -> float:
    """Return the factor from values of the model to values of motors, which are degrees for hinges."""
    return float(np.degrees(1.0)) if kind is Kind.HINGE else 1.0
