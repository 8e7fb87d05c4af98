"""Data sets of LeRobot: poses of an end effector from joint values and back; kinematics for its processor steps."""

from synovia.lerobot.convert import Arm, Converted, add_joints, add_poses
from synovia.lerobot.kinematics import Kinematics

__all__ = ["Arm", "Converted", "Kinematics", "add_joints", "add_poses"]
