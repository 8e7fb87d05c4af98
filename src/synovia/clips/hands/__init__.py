"""Fingers in clips: directions of their segments in the frame of the palm, and joint values for these directions."""
