"""Solvers that step along the Jacobian of the goals."""
