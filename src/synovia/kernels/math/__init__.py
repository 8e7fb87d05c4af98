"""Vectors, rotations, small linear systems and geometry, without joints or goals."""
