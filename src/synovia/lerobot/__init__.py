"""Data sets of LeRobot: poses of an end effector from joint values and back; robots for its processor steps."""

from synovia.lerobot.body import BodyToJoints
from synovia.lerobot.convert import Arm, Converted, add_joints, add_poses
from synovia.lerobot.kinematics import Kinematics

__all__ = ["Arm", "BodyToJoints", "Converted", "Kinematics", "add_joints", "add_poses"]
