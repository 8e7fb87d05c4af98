"""Loops: frames of the body that are tied to each other, and how a pose is closed."""
