"""Hard bounds of joints: an interval for hinges and slides, swing and twist for balls."""

from synovia.limits.base import Limit
from synovia.limits.interval import Interval
from synovia.limits.swing_twist import SwingTwist

__all__ = ["Interval", "Limit", "SwingTwist"]
