"""Skeletons, joints, limits and poses."""

from synovia.model.joint import Joint, Kind, Mimic, Site
from synovia.model.pose import Pose
from synovia.model.skeleton import LONGEST_COUPLING, MAX_JOINTS, Skeleton

__all__ = ["LONGEST_COUPLING", "MAX_JOINTS", "Joint", "Kind", "Mimic", "Pose", "Site", "Skeleton"]
