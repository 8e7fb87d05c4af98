"""Retarget motions to other bodies live, pose by pose."""

from synovia.retargeting.live.calibration import LiveCalibration
from synovia.retargeting.live.live import LiveRetarget
from synovia.retargeting.live.report import LiveReport

__all__ = ["LiveCalibration", "LiveReport", "LiveRetarget"]
