"""Loops of a mechanism: frames and joint values that are tied, and poses in which they close."""
