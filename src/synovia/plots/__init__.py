"""Plots: numbers of clips, models and solvers as pictures that people can read."""

from synovia.plots.convergence import plot_convergence
from synovia.plots.errors import plot_errors
from synovia.plots.feet import plot_feet
from synovia.plots.joints import plot_joints
from synovia.plots.reach import plot_reach

__all__ = ["plot_convergence", "plot_errors", "plot_feet", "plot_joints", "plot_reach"]
