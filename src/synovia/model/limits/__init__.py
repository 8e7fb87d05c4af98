"""Hard bounds of joints: an interval for hinges and slides, swing and twist for balls."""

from synovia.model.limits.base import Limit
from synovia.model.limits.interval import Interval
from synovia.model.limits.swing_twist import SwingTwist

__all__ = ["Interval", "Limit", "SwingTwist"]
