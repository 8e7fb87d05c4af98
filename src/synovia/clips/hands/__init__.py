"""Fingers of bodies in clips: their directions in the frame of the palm, and the joint values that give directions."""
