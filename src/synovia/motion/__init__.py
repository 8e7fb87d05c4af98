"""Motions: joint values over time."""

from synovia.motion.motion import Motion

__all__ = ["Motion"]
