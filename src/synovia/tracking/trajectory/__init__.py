"""Whole trajectories solved at once: goals at every frame, and what ties the frames together."""

from synovia.tracking.trajectory.model import Model
from synovia.tracking.trajectory.solve import Progress, Terms, part_of, solve_in_windows, spread

__all__ = ["Model", "Progress", "Terms", "part_of", "solve_in_windows", "spread"]
