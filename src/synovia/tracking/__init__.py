"""Tracking: one frame after the other."""
