"""Shapes of bodies and obstacles, and distances between them."""
