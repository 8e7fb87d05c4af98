"""Kinematics for the processor steps of LeRobot, as a replacement for its ``RobotKinematics``, which needs placo.

LeRobot finds plug-ins by name only for robots, cameras, teleoperators and policies. Its steps between joints and end
effectors, such as ``InverseKinematicsEEToJoints``, accept an object with the two methods of ``Kinematics``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, Unpack

import numpy as np

from synovia.arguments import completed, takes
from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.ik.solution import Solution
from synovia.io.load import load_model
from synovia.lerobot.motors import AWAY, Motors, in_radians
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, as_numbers
from synovia.options import MotionLimits
from synovia.servo import Servo, Tick
from synovia.solver import FullBody

_USUAL: Final = True, True, 1  # key of a problem with priority for the position, see ``Kinematics._problem``


class Kinematics:
    """Forward and inverse kinematics with the interface of ``lerobot.model.kinematics.RobotKinematics``.

    Hinges are in degrees, slides in the length unit of the file.

    With ``fps``, each call of ``inverse_kinematics`` is one tick of a ``Servo``: joints move to the newest pose within
    limits of velocity, acceleration and jerk, for any sequence of poses. Without ``fps``, each call solves until the
    pose is reached.

    Args:
        urdf_path: The robot: a skeleton, a file, or the name of a bundled model.
        target_frame_name: Link, joint or site that is the end effector. If a link and a joint with this name have
            different frames, write ``link:NAME`` or ``joint:NAME``.
        joint_names: Joints in the order of the values, such as the motors of the robot including a gripper; None for
            all hinges and slides that are no mimic joints, in the order of the file.
        fps: Calls per second, for example of the policy or the teleoperator; None for no limits on the motion.
        velocity: Highest velocity with ``fps``, degrees/s (slides: length units/s), for all joints or by joint;
            ``"30%"`` for a fraction of the file's limits; None for the file's limits.
        acceleration: Highest acceleration with ``fps``, in the same form, per s².
        jerk: Highest jerk with ``fps``, in the same form, per s³; None for no limit.
        window: Largest deviation of the current joints from the last answer, degrees or length units. Beyond this,
            motion restarts at rest from the current joints: as in a new episode, or after the arm was moved by hand.

    Attributes:
        solution: The last solution, with its status and errors; None before the first call. With ``fps``, the solution
            of the last tick; with a jerk limit, the solution to which the joints move.
        command: The last command of the servo, with the current joint values of the motion; None without ``fps``.

    Raises:
        FileError: If the file cannot be read.
        InputError: If a joint is neither a hinge nor a slide, or follows another joint, or a limit cannot be used.
        UnknownNameError: If the frame or a joint does not exist, or the name of the frame is ambiguous.

    Example:
        >>> import numpy as np
        >>> arm = Kinematics("arm7", "tool")
        >>> there = arm.forward_kinematics(np.array([10.0, 20.0, 0.0, -60.0, 0.0, 30.0, 0.0]))
        >>> values = arm.inverse_kinematics(np.array([0.0, 25.0, 0.0, -50.0, 0.0, 30.0, 0.0]), there)
        >>> arm.solution.status.name, bool(np.allclose(arm.forward_kinematics(values), there, atol=1e-3))
        ('REACHED', True)
    """

    @takes(MotionLimits)
    def __init__(
        self,
        urdf_path: Skeleton | str | os.PathLike[str],
        target_frame_name: str = "gripper_frame_link",
        joint_names: Sequence[str] | None = None,
        *,
        fps: float | None = None,
        window: float = AWAY,
        **limits: Unpack[MotionLimits],
    ) -> None:
        """Read the model and find the joints."""
        self.skeleton = urdf_path if isinstance(urdf_path, Skeleton) else load_model(urdf_path)
        self.target_frame_name = target_frame_name
        self.skeleton.locate(target_frame_name)  # raises an error for an unknown or ambiguous name
        self._motors = motors = Motors(self.skeleton, joint_names)
        self.joint_names = motors.names
        self._problems: dict[tuple[bool, bool, int], IK] = {}
        self._servos: dict[tuple[bool, bool, int], Servo] = {}
        self.solution: Solution | None = None
        self.command: Tick | None = None
        self._window = float(as_numbers(window, (), "window"))
        self._limits: dict[str, Any] | None = None
        given: dict[str, Any] = completed(MotionLimits, limits, type(self).__name__).__dict__
        if fps is not None:
            if given["acceleration"] is None:
                raise InputError("acceleration", expected="a limit, degrees per s²", hint="fps= needs acceleration=")
            own = {name: in_radians(self.skeleton, name, limit) for name, limit in given.items()}
            self._limits = {"rate": fps, **own}
            self._servo = self._servo_of(_USUAL)
        elif any(limit is not None for limit in given.values()):
            raise InputError("velocity, acceleration, jerk", expected="fps= as well", hint="limits need a frame rate")

    def reset(self) -> None:
        """Restart: the next call with ``fps`` starts at rest from its current joints."""
        self.solution = self.command = None

    def forward_kinematics(self, joint_pos_deg: Any) -> Array:
        """Return the pose of the end effector in the frame of the model, (4, 4).

        Args:
            joint_pos_deg: Value of each joint; further values, such as a gripper's, are ignored.

        Raises:
            InputError: If there are too few values, or one is not finite.
        """
        return self._motors.pose(joint_pos_deg)[0].transform(self.target_frame_name)

    def inverse_kinematics(
        self,
        current_joint_pos: Any,
        desired_ee_pose: Any,
        position_weight: float = 1.0,
        orientation_weight: float = 0.01,
    ) -> Array:
        """Return joint values near the current values that bring the end effector to a pose.

        The part with the larger weight has priority: an arm with five joints reaches the position, then rotates the
        tool as near to the orientation as possible. With equal weights, both share the remaining error. ``solution``
        says whether the pose is reached.

        With ``fps``, the answer is one tick after the previous answer. The current values only matter at the start, and
        if they deviate by more than ``window`` from the previous answer.

        Args:
            current_joint_pos: Value of each joint; further values, and those of joints that do not move the end
                effector, are returned unchanged.
            desired_ee_pose: Pose in the frame of the model, (4, 4).
            position_weight: Weight of the position; 0 to leave it free.
            orientation_weight: Weight of the orientation; 0 to leave it free.

        Raises:
            InputError: If a value cannot be used.
        """
        pose, given = self._motors.pose(current_joint_pos)
        weights = (
            float(as_numbers(position_weight, (), "position_weight")),
            float(as_numbers(orientation_weight, (), "orientation_weight")),
        )
        if min(weights) < 0.0 or max(weights) == 0.0:
            raise InputError(
                "position_weight, orientation_weight", value=weights, expected="numbers from 0, one above 0"
            )
        target = as_numbers(desired_ee_pose, (4, 4), "desired_ee_pose")
        key = weights[0] > 0.0, weights[1] > 0.0, int(np.sign(weights[0] - weights[1]))
        targets: dict[str, Any] = {}
        if key[0]:
            targets["position"] = target[:3, 3]
        if key[1]:
            targets["orientation"] = target[:3, :3]
        out = given.copy()
        if self._limits is None:
            self.solution = self._problem(key).solve(targets, pose, follow=True)
            out[: len(self.joint_names)] = self._motors.values(self.solution.q)
            return out
        return self._tick(key, targets, pose, out)

    def _tick(self, key: tuple[bool, bool, int], targets: dict[str, Any], pose: Pose, out: Array) -> Array:
        """Run one tick towards the targets of a problem, see ``_problem``, and write the joint values into ``out``."""
        servo, command, start = self._servo_of(key), self.command, self.solution
        moving = np.isin(self._motors.rows, list(servo.ik.moving))
        if command is None or np.abs(self._motors.values(pose.q - command.q)[moving]).max(initial=0.0) > self._window:
            servo.reset(pose)
            start = None
        elif servo is not self._servo:  # the weights changed: the new servo continues the motion
            servo.reset(command.pose, command.velocity, command.acceleration)
        self._servo = servo
        if self._smooth:
            self.solution = self._problem(key).solve(targets, pose if start is None else start.pose, follow=True)
            self.command = servo.step(self.solution.pose.transform(self.target_frame_name))
        else:
            self.command = servo.step(targets)
            self.solution = self.command.solution
        out[: len(moving)][moving] = self._motors.values(self.command.q)[moving]
        return out

    @property
    def _smooth(self) -> bool:
        """Whether the jerk is limited; the servo then follows the end effector's pose in a separate solution."""
        return self._limits is not None and self._limits["jerk"] is not None

    def _servo_of(self, key: tuple[bool, bool, int]) -> Servo:
        """Return the servo for a position, an orientation, or both, see ``_problem``."""
        key = _USUAL if self._smooth else key
        if key not in self._servos:
            goals = IK(self.skeleton, PoseGoal(self.target_frame_name)) if self._smooth else self._problem(key)
            limits: Any = self._limits or {}
            self._servos[key] = Servo(goals, **limits)
        return self._servos[key]

    def _problem(self, key: tuple[bool, bool, int]) -> IK:
        """Return the problem for a key: whether to use the position and the orientation, and the sign of the priority.

        The sign is 1 for priority of the position, -1 of the orientation, 0 for equal priority.
        """
        if key not in self._problems:
            place, turn, first = key
            goals: list[Goal] = []
            if place:
                goals.append(PositionGoal(self.target_frame_name, name="position", priority=int(turn and first < 0)))
            if turn:
                goals.append(
                    RotationGoal(self.target_frame_name, name="orientation", priority=int(place and first > 0))
                )
            self._problems[key] = IK(self.skeleton, goals, FullBody())
        return self._problems[key]
