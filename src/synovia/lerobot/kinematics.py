"""Kinematics for the processor steps of LeRobot, in place of its own ``RobotKinematics``, which needs placo.

LeRobot finds plug-ins by their names only for robots, cameras, teleoperators and policies. Its steps between joints and
end effectors, such as ``InverseKinematicsEEToJoints``, get an object with the two methods of ``Kinematics``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.ik.solution import Solution
from synovia.io.load import load_model
from synovia.lerobot.motors import AWAY, Motors, in_radians
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, as_numbers
from synovia.servo import Command, Servo
from synovia.solver import FullBody

_USUAL: Final = True, True, 1  # the position before the orientation, see ``Kinematics._problem``


class Kinematics:
    """Forward and inverse kinematics with the interface of ``lerobot.model.kinematics.RobotKinematics``.

    Hinges are in degrees, slides in the length unit of the file.

    With ``fps``, each call of ``inverse_kinematics`` is one tick of a ``Servo``: joints go to the newest pose within
    limits of velocity, acceleration and jerk, whatever poses a policy or a teleoperator asks for. Without it, each call
    solves until the pose is reached.

    Args:
        urdf_path: The robot: a skeleton, a file, or the name of a bundled model.
        target_frame_name: Link, joint or site whose pose is the end effector's. If a link and a joint of this name have
            different frames, ``link:NAME`` or ``joint:NAME`` says which.
        joint_names: Joints in the order of the values, such as the motors of the robot, a gripper included; None for
            all hinges and slides that are no mimic joints, in the order of the file.
        fps: Calls per second, as of the policy or the teleoperator; None for answers without limits of motion.
        velocity: Highest velocity with ``fps``, degrees/s (slides: length units/s): of all joints, or by joint;
            ``"30%"`` for a share of the limits of the file; None for all of them.
        acceleration: Highest acceleration with ``fps``, likewise, per s².
        jerk: Highest jerk with ``fps``, likewise, per s³; None for no limit.
        window: How far the current joints may be from the last answer, degrees or length units. Beyond that, motion
            starts again from the current joints, at rest: as in a new episode, or after the arm was moved by hand.

    Attributes:
        solution: The last solution, with its status and errors; None before the first. With ``fps``, it is that of the
            last tick; with a limit of the jerk, where the joints go.
        command: The last command of the servo: how far the joints are on their way; None without ``fps``.

    Raises:
        FileError: If the file cannot be read.
        InputError: If a joint is neither a hinge nor a slide, or follows another joint, or a limit cannot be used.
        UnknownNameError: If the frame or a joint does not exist, or the name of the frame fits several.

    Example:
        >>> import numpy as np
        >>> arm = Kinematics("arm7", "tool")
        >>> there = arm.forward_kinematics(np.array([10.0, 20.0, 0.0, -60.0, 0.0, 30.0, 0.0]))
        >>> values = arm.inverse_kinematics(np.array([0.0, 25.0, 0.0, -50.0, 0.0, 30.0, 0.0]), there)
        >>> arm.solution.status.name, bool(np.allclose(arm.forward_kinematics(values), there, atol=1e-3))
        ('REACHED', True)
    """

    def __init__(
        self,
        urdf_path: Skeleton | str | os.PathLike[str],
        target_frame_name: str = "gripper_frame_link",
        joint_names: Sequence[str] | None = None,
        *,
        fps: float | None = None,
        velocity: Any = None,
        acceleration: Any = None,
        jerk: Any = None,
        window: float = AWAY,
    ) -> None:
        """Read the model and find the joints."""
        self.skeleton = urdf_path if isinstance(urdf_path, Skeleton) else load_model(urdf_path)
        self.target_frame_name = target_frame_name
        self.skeleton.locate(target_frame_name)  # an unknown or ambiguous name is an error here
        self._motors = motors = Motors(self.skeleton, joint_names)
        self.joint_names = motors.names
        self._problems: dict[tuple[bool, bool, int], IK] = {}
        self._servos: dict[tuple[bool, bool, int], Servo] = {}
        self.solution: Solution | None = None
        self.command: Command | None = None
        self._window = float(as_numbers(window, (), "window"))
        self._limits: dict[str, Any] | None = None
        limits = {"velocity": velocity, "acceleration": acceleration, "jerk": jerk}
        if fps is not None:
            if acceleration is None:
                raise InputError("acceleration", expected="a limit, degrees per s²", hint="fps takes one with it")
            limits = {name: in_radians(self.skeleton, name, given) for name, given in limits.items()}
            self._limits = {"rate": fps, **limits}
            self._servo = self._servo_of(_USUAL)
        elif any(given is not None for given in limits.values()):
            raise InputError("velocity, acceleration, jerk", expected="fps in addition", hint="limits need a rate")

    def reset(self) -> None:
        """Start again: the next call with ``fps`` starts from its current joints, at rest."""
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
        """Return joint values that bring the end effector to a pose, near the current ones.

        The part with the larger weight comes first: an arm of five joints reaches the position and turns the tool as
        near to the orientation as it then can. With equal weights, the two share what is left. ``solution`` says
        whether the pose is reached.

        With ``fps`` the answer is one tick from the answer before, and the current values matter only at the start and
        if they are farther than ``window`` from that answer.

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
            raise InputError("position_weight, orientation_weight", value=weights, expected="one of them above 0")
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
        """Take a tick towards the targets of a problem, see ``_problem``, and write its joint values into ``out``."""
        servo, command, start = self._servo_of(key), self.command, self.solution
        moving = np.isin(self._motors.rows, list(servo.ik.moving))
        if command is None or np.abs(self._motors.values(pose.q - command.q)[moving]).max(initial=0.0) > self._window:
            servo.reset(pose)
            start = None
        elif servo is not self._servo:  # other weights: the motion goes on
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
        """Whether the jerk is limited. Then the servo has a single goal, the pose of an answer of its own."""
        return self._limits is not None and self._limits["jerk"] is not None

    def _servo_of(self, key: tuple[bool, bool, int]) -> Servo:
        """Return the servo for a position, an orientation, or both, see ``_problem``."""
        key = _USUAL if self._smooth else key
        if key not in self._servos:
            goals = IK(self.skeleton, PoseGoal(self.target_frame_name)) if self._smooth else self._problem(key)
            self._servos[key] = Servo(goals, **(self._limits or {}))
        return self._servos[key]

    def _problem(self, key: tuple[bool, bool, int]) -> IK:
        """Return the problem for a position, an orientation, or both; last the sign of which has priority."""
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
