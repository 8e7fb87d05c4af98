"""Tracking: targets over time, solved one frame after the other, and clips solved as a whole (``trajectory``)."""

from synovia.tracking.track import Tracked, track

__all__ = ["Tracked", "track"]
