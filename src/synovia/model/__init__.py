"""Skeletons, joints, limits and poses."""

from synovia.model.joint import Joint, Kind, Mimic, Site
from synovia.model.skeleton import LONGEST_COUPLING, MAX_JOINTS, Pose, Skeleton

__all__ = ["LONGEST_COUPLING", "MAX_JOINTS", "Joint", "Kind", "Mimic", "Pose", "Site", "Skeleton"]
