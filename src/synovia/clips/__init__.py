"""Clips: joint values from points over time, correction of sliding feet, and calibration frames at the ends."""

from synovia.clips.editing import EditChange, EditClearance, Edited, edit
from synovia.clips.ends import Ends, find_ends, find_shared_ends
from synovia.clips.fit import Fitted, fit_positions
from synovia.clips.footlock import FootLocked, foot_lock
from synovia.clips.keypoints import fit_keypoints

__all__ = [
    "EditChange",
    "EditClearance",
    "Edited",
    "Ends",
    "Fitted",
    "FootLocked",
    "edit",
    "find_ends",
    "find_shared_ends",
    "fit_keypoints",
    "fit_positions",
    "foot_lock",
]
