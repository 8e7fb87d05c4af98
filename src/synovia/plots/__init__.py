"""Plots of clips, models and solvers."""

from synovia.plots.clips import plot_clearance, plot_errors, plot_feet, plot_joints, plot_judgement
from synovia.plots.models import plot_convergence, plot_starts
from synovia.plots.reach import map_reach, plot_reach
from synovia.plots.redundancy import plot_redundancy

__all__ = [
    "map_reach",
    "plot_clearance",
    "plot_convergence",
    "plot_errors",
    "plot_feet",
    "plot_joints",
    "plot_judgement",
    "plot_reach",
    "plot_redundancy",
    "plot_starts",
]
