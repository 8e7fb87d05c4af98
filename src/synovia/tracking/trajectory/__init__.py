"""Whole trajectories solved at once: goals at every frame, and what ties the frames together."""

from synovia.tracking.trajectory.model import Model
from synovia.tracking.trajectory.solve import Terms, spread
from synovia.tracking.trajectory.windows import Progress, part_of, solve_in_windows

__all__ = ["Model", "Progress", "Terms", "part_of", "solve_in_windows", "spread"]
