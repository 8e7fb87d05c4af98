"""Tracking: targets over time, solved frame by frame, and clips solved as a whole (``trajectory``)."""

from synovia.tracking.track import Tracked, track

__all__ = ["Tracked", "track"]
