"""Solve whole trajectories at once: goals at every frame, and terms that connect the frames."""

from synovia.tracking.trajectory.model import Model, all_variables
from synovia.tracking.trajectory.solve import (
    Effort,
    Terms,
    one_blas_thread,
    part_of,
    solve_in_windows,
    spread,
)

__all__ = [
    "Effort",
    "Model",
    "Terms",
    "all_variables",
    "one_blas_thread",
    "part_of",
    "solve_in_windows",
    "spread",
]
