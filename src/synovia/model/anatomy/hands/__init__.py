"""Hands: their palm, side and fingers, found by structure and shape, then by names."""
