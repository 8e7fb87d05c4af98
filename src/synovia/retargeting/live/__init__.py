"""Retarget motions to other bodies live, pose by pose."""

from synovia.retargeting.live.calibration import LiveCalibration
from synovia.retargeting.live.live import LivePose, LiveRetarget
from synovia.retargeting.live.report import LiveReport

__all__ = ["LiveCalibration", "LivePose", "LiveReport", "LiveRetarget"]
