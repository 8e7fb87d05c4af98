"""Fingers of bodies in clips: directions in the frame of the palm, and joint values for these directions."""
