"""Clips: joint values from points over time, and feet that do not slide."""

from synovia.clips.fit import Fitted, fit_positions
from synovia.clips.footlock import FootLocked, foot_lock
from synovia.clips.keypoints import fit_keypoints

__all__ = ["Fitted", "FootLocked", "fit_keypoints", "fit_positions", "foot_lock"]
