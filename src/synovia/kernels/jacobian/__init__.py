"""Solvers that compute their steps from the Jacobian of the goals."""
