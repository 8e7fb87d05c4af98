"""Retarget motions to other bodies live, pose by pose."""

from synovia.retargeting.live.calibration import LiveCalibration
from synovia.retargeting.live.live import LiveRetarget

__all__ = ["LiveCalibration", "LiveRetarget"]
