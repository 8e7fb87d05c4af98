"""A robot that follows a tracked body tick by tick, in the units of LeRobot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from synovia.arguments import options_in, takes
from synovia.errors import InputError
from synovia.io.load import load_model
from synovia.lerobot.motors import AWAY, Motors, in_radians
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, as_numbers
from synovia.options import MotionLimits
from synovia.retargeting import LiveRetarget
from synovia.retargeting.options import FollowOptions
from synovia.servo import Tick


class BodyToJoints:
    """Compute joint values of a robot with arms, or arms and legs, that follows a tracked person.

    Each call is a tick of a ``LiveRetarget`` with a fixed base. Limbs get the directions of the person's limbs, as far
    as the joints and their motion limits allow. Hinges are in degrees, slides in the length unit of the file.
    ``synovia.lerobot.steps`` has the processor step of LeRobot.

    For an arm that is not built like a human's, follow a tracked wrist with ``Kinematics`` and ``fps`` instead.

    Args:
        robot: The robot: a skeleton, a file, or the name of a bundled model.
        source: The tracked body, such as ``VmcSource.skeleton``.
        motor_names: Joints in the order of the values, without grippers; None for all hinges and slides that are no
            mimic joints, in the order of the file.
        fps: Calls per second.
        acceleration: Highest acceleration, degrees/s² (slides: length units/s²), for all joints or by joint.
        velocity: Highest velocity in the same form, per s; ``"30%"`` for a fraction of the file's limits; None for the
            file's limits.
        jerk: Highest jerk in the same form, per s³; None for no limit.
        window: Largest deviation of the current joints from the last answer, degrees or length units. Beyond this,
            motion restarts at rest from the current joints.
        options: As in ``LiveRetarget``.

    Attributes:
        live: The ``LiveRetarget``; ``live.report()`` judges its motion, ``live.calibration`` can be saved.
        pose: The pose of the last call, with its ``status`` and ``limited``; None before the first call.

    Raises:
        FileError: If a file cannot be read.
        InputError: If a value cannot be used.
        UnknownNameError: If a joint does not exist.

    Example:
        >>> import synovia as sy
        >>> from synovia.lerobot import BodyToJoints
        >>> arm = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)])
        >>> BodyToJoints(arm, arm, fps=30, acceleration=500.0)
        Traceback (most recent call last):
        ...
        synovia.errors.InputError: motors of chain: expected at least one hinge or slide, got 0
    """

    @takes(FollowOptions)
    def __init__(
        self,
        robot: Skeleton | str | os.PathLike[str],
        source: Skeleton,
        motor_names: Sequence[str] | None = None,
        *,
        fps: float,
        window: float = AWAY,
        **options: Unpack[FollowOptions],
    ) -> None:
        """Read the robot and find its motors."""
        self.skeleton = skeleton = robot if isinstance(robot, Skeleton) else load_model(robot)
        self._motors = Motors(skeleton, motor_names)
        self.motor_names = self._motors.names
        if not self.motor_names:
            raise InputError(f"motors of {skeleton.name}", value=0, expected="at least one hinge or slide")
        if options.get("acceleration") is None:
            raise InputError("acceleration", expected="a limit, degrees per s²")
        limits = {name: in_radians(skeleton, name, options.get(name)) for name in options_in(MotionLimits)}
        given: Any = {**options, **limits}
        self._window = float(as_numbers(window, (), "window"))
        self.live = LiveRetarget(source, skeleton, rate=fps, root="fixed", **given)
        self.pose: Tick | None = None

    def reset(self) -> None:
        """Restart: the next call starts at rest from its current joints."""
        self.pose = None

    def receive(self, pose: Pose | Array | None, time: float | None = None) -> None:
        """Receive a sample of the person without a tick; trackers may send more often than the robot moves.

        Args:
            pose: As in ``LiveRetarget.step``.
            time: Time stamp on the clock of the tracker, seconds; None for a sample that applies at once.

        Raises:
            InputError: If the sample has another shape, or is a pose of another skeleton.
        """
        self.live.receive(pose, time)

    def step(self, current: Any, pose: Pose | Array | None = None, time: float | None = None) -> Array:
        """Return the values of the motors after a tick.

        Args:
            current: Current values of the motors; used at the start, and if they deviate by more than ``window`` from
                the last answer.
            pose: A sample of the person, as in ``LiveRetarget.step``; None if there is none.
            time: Time stamp of the sample.

        Raises:
            InputError: If a value cannot be used.
        """
        here, _ = self._motors.pose(current)
        if self.pose is None or np.abs(self._motors.values(here.q - self.pose.q)).max() > self._window:
            self.live.reset(here)
        self.pose = self.live.step(pose, time)
        return self._motors.values(self.pose.q)
