"""Data sets of LeRobot: poses of an end effector from joint values, and joint values from such poses."""

from synovia.lerobot.convert import Arm, Converted, add_joints, add_poses

__all__ = ["Arm", "Converted", "add_joints", "add_poses"]
