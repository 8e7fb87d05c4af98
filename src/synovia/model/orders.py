"""Joint values in the order and units of simulators, policies and controllers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast

import numpy as np

from synovia.arguments import ChecksArguments
from synovia.errors import InputError, UnsupportedError
from synovia.model.anatomy.names import words_of
from synovia.model.geometry import Array, as_numbers, dimensions
from synovia.model.joint import Kind
from synovia.model.motion import Motion
from synovia.model.robot import robot_of
from synovia.model.simulators import mujoco_names
from synovia.model.skeleton import Pose, Skeleton
from synovia.text import counted, listed

Named = Literal["mujoco", "unitree", "isaac", "lerobot"]
_NAMED: Final = ("mujoco", "unitree", "isaac", "lerobot")
_SCALAR: Final = (Kind.HINGE, Kind.SLIDE)
_JOINT, _IN_PARENT, _TENDON = 0, 1, 3  # values of MuJoCo's mjtTrn for transmissions
_AFFINE: Final = 1  # value of MuJoCo's mjtBias for position actuators
_OF_JOINT: Final = 1  # value of MuJoCo's mjtWrap for a fixed tendon


class JointOrder(ChecksArguments):
    """The order and units of joint values in a simulator, a policy or a controller.

    Args:
        skeleton: The robot.
        order: ``"isaac"`` (Isaac Lab: the joints nearest to the base first), ``"mujoco"`` or ``"unitree"`` (limb by
            limb, as in the file), ``"lerobot"`` (the same in degrees, without mimic joints; joints named "gripper" from
            0 to 100 between their limits, as motors with the norm mode ``RANGE_0_100``), the names of the joints in any
            other order, or a ``mujoco.MjModel``, for its controls (``data.ctrl``).
        degrees: Whether hinges have degrees; None for radians, and degrees with ``"lerobot"``.

    Attributes:
        skeleton: The robot.
        names: Name of the joint or actuator of each value.

    Raises:
        InputError: If there is no such order, a name is repeated, or a joint of the model is not in the skeleton.
        UnknownNameError: If a joint does not exist.
        UnsupportedError: If a joint has several values, or an actuator does not hold a position.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> order = sy.skeletons.JointOrder(arm, ["joint7", "joint1"], degrees=True)
        >>> order.values(sy.Pose(arm, {"joint1": 0.5})).round(3)
        array([ 0.   , 28.648])
    """

    def __init__(self, skeleton: Skeleton, order: Named | Sequence[str] | Any, *, degrees: bool | None = None) -> None:
        """Find the joints of the order."""
        self.skeleton = skeleton
        controls = hasattr(order, "actuator_trntype")
        if controls:
            names, rows = _controls(skeleton, order)
        else:
            names, rows = _joints(skeleton, order)
        self.names: tuple[str, ...] = tuple(names)
        in_degrees = order == "lerobot" if degrees is None and isinstance(order, str) else bool(degrees)
        if controls and in_degrees:
            raise InputError("degrees", value=degrees, expected="None for a MjModel, whose actuators have units")
        self._matrix, self._offset = np.zeros((skeleton.nq, len(rows))), np.zeros(len(rows))
        for k, (parts, offset) in enumerate(rows):
            self._offset[k] = offset
            for row, factor in parts:
                percent = order == "lerobot" and _is_gripper(skeleton, row)
                turns = in_degrees and not percent and skeleton.joints[row].kind is Kind.HINGE
                self._matrix[skeleton.q_slice(row).start, k] += factor * (float(np.degrees(1.0)) if turns else 1.0)
        self._alone = [parts[0][0] if len(parts) == 1 else None for parts, _ in rows]

    def __repr__(self) -> str:
        """Return the robot and the number of values."""
        return f"JointOrder({self.skeleton.name!r}, {counted(len(self.names), 'value')})"

    def values(self, content: Pose | Motion | Any) -> Array:
        """Return joint values in this order: (n,) for a pose or q (nq,), (T, n) for a motion or q (T, nq).

        Raises:
            InputError: If the pose belongs to another skeleton, or q has another shape.
        """
        if isinstance(content, Pose | Motion):
            if content.skeleton.joint_names != self.skeleton.joint_names:
                raise InputError("pose", value=content.skeleton.name, expected=f"a pose of {self.skeleton.name!r}")
            q = content.q
        else:
            shape = (-1, self.skeleton.nq) if dimensions(content) == 2 else (self.skeleton.nq,)
            q = as_numbers(content, shape, "q")
        out: Array = q @ self._matrix + self._offset
        return out

    def pose(self, values: Any, start: Pose | None = None) -> Pose:
        """Convert values in this order to a pose.

        Args:
            values: The values, (n,).
            start: Pose that gives the values of other joints; None for the rest pose. Mimic joints follow.

        Raises:
            InputError: If the number of values differs.
            UnsupportedError: If a value belongs to several joints, such as that of an actuator with a tendon.
        """
        given = as_numbers(values, (len(self.names),), "values")
        if None in self._alone:
            several = [name for name, row in zip(self.names, self._alone, strict=True) if row is None]
            raise UnsupportedError(f"{listed(several)} moves several joints", where=self.skeleton.name)
        q = (self.skeleton.rest_q if start is None else start.q).copy()
        for k, row in enumerate(cast("list[int]", self._alone)):
            at = self.skeleton.q_slice(row).start
            q[at] = (given[k] - self._offset[k]) / self._matrix[at, k]
        return Pose(self.skeleton, self.skeleton.follow(q))


_Row = tuple[list[tuple[int, float]], float]  # joints with their factors, and a constant, of a linear function


def _joints(skeleton: Skeleton, order: Any) -> tuple[list[str], list[_Row]]:
    """Return the names of the values of an order, and each value as a linear function of joint values."""
    where = skeleton.name
    if isinstance(order, str):
        if order not in _NAMED:
            raise InputError("order", value=order, expected=f"{listed(_NAMED)}, names of joints, or a MjModel")
        rows = robot_of(skeleton, "breadth" if order == "isaac" else "depth", where).joints
        if order == "lerobot":
            rows = [row for row in rows if skeleton.joints[row].mimic is None]
        percent = {row: _percent(skeleton, row) for row in rows if order == "lerobot" and _is_gripper(skeleton, row)}
        scaled = [percent.get(row, (1.0, 0.0)) for row in rows]
        found = [([(row, factor)], offset) for row, (factor, offset) in zip(rows, scaled, strict=True)]
        return [skeleton.joint_keys[row] for row in rows], found
    if not isinstance(order, Sequence) or not all(isinstance(name, str) for name in cast("Sequence[object]", order)):
        kind = type(cast("object", order))
        raise InputError("order", value=kind, expected=f"{listed(_NAMED)}, names of joints, or a MjModel")
    names = list(cast("Sequence[str]", order))
    rows = list(skeleton.by_row([(name, name) for name in names], "values"))
    wrong = [name for name, row in zip(names, rows, strict=True) if skeleton.joints[row].kind not in _SCALAR]
    if wrong:
        raise UnsupportedError(f"{listed(wrong)} has several values or none", where=where, expected="hinges and slides")
    return names, [([(row, 1.0)], 0.0) for row in rows]


def _is_gripper(skeleton: Skeleton, row: int) -> bool:
    """Return whether a joint opens a gripper: it has "gripper" in its name, and two limits."""
    at = skeleton.q_slice(row).start
    lower, upper = (float(limit[at]) for limit in skeleton.limits)
    return "gripper" in words_of(skeleton.joint_names[row]) and 0.0 < upper - lower < np.inf


def _percent(skeleton: Skeleton, row: int) -> tuple[float, float]:
    """Return factor and offset that map the lower limit of a joint to 0 and the upper limit to 100."""
    lower, upper = (float(limit[skeleton.q_slice(row).start]) for limit in skeleton.limits)
    factor = 100.0 / (upper - lower)
    return factor, -factor * lower


def _controls(skeleton: Skeleton, model: Any) -> tuple[list[str], list[_Row]]:
    """Return the controls of a MuJoCo model that hold joints in place, as linear functions of joint values.

    The force of an actuator is ``gain ctrl + b0 + b1 length + b2 velocity``; at rest without load it is zero.
    """
    _, joints = mujoco_names(model)
    names: list[str] = []
    rows: list[_Row] = []
    for k in range(int(model.nu)):
        name = model.actuator(k).name or f"actuator{k}"
        gain, bias = float(model.actuator_gainprm[k, 0]), [float(b) for b in model.actuator_biasprm[k, :3]]
        if int(model.actuator_biastype[k]) != _AFFINE or gain == 0.0 or bias[1] == 0.0:
            raise UnsupportedError(f"actuator {name!r} is not a position actuator", where=skeleton.name)
        lengths = _lengths(model, k, name, lambda j: _scalar(skeleton, joints[j]))
        names.append(name)
        rows.append(([(row, -bias[1] * factor / gain) for row, factor in lengths], -bias[0] / gain))
    return names, rows


def _lengths(model: Any, k: int, name: str, row_of: Callable[[int], int]) -> list[tuple[int, float]]:
    """Return the joints and factors whose weighted sum is the length of an actuator."""
    kind, target, gear = (
        int(model.actuator_trntype[k]),
        int(model.actuator_trnid[k, 0]),
        float(model.actuator_gear[k, 0]),
    )
    if kind in (_JOINT, _IN_PARENT):
        return [(row_of(target), gear)]
    first = int(model.tendon_adr[target]) if kind == _TENDON else 0
    wraps = range(first, first + int(model.tendon_num[target])) if kind == _TENDON else range(0)
    if not wraps or any(int(model.wrap_type[w]) != _OF_JOINT for w in wraps):
        raise UnsupportedError(f"actuator {name!r} moves neither joints nor a fixed tendon")
    return [(row_of(int(model.wrap_objid[w])), gear * float(model.wrap_prm[w])) for w in wraps]


def _scalar(skeleton: Skeleton, name: str) -> int:
    """Return the row of a hinge or slide of the model."""
    row = skeleton.value_index(f"joint:{name}")
    if skeleton.joints[row].kind not in _SCALAR:
        raise UnsupportedError(f"joint {name!r} has several values", where=skeleton.name, expected="a hinge or slide")
    return row
