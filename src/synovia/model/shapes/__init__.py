"""Shapes of bodies and obstacles, and how far they are apart."""
