"""Retarget motions to other bodies."""

from synovia.retargeting.body import NEEDED
from synovia.retargeting.joint_map import draft_map, draft_to_save, read_map, write_map
from synovia.retargeting.judging import Judgement, judge
from synovia.retargeting.live import LiveCalibration, LiveRetarget
from synovia.retargeting.rest_pose import stand_at_rest, stands
from synovia.retargeting.retarget import Retargeted, retarget

__all__ = [
    "NEEDED",
    "Judgement",
    "LiveCalibration",
    "LiveRetarget",
    "Retargeted",
    "draft_map",
    "draft_to_save",
    "judge",
    "read_map",
    "retarget",
    "stand_at_rest",
    "stands",
    "write_map",
]
