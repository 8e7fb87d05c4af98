"""Full body: goals in strict priorities, hard limits in every level, the posture in what is left."""

from synovia.kernels._jit import algorithm, entry
from synovia.kernels.drive import drive_any
from synovia.kernels.full_body_basis import open_levels
from synovia.kernels.full_body_descend import descend
from synovia.kernels.full_body_walls import wall_count
from synovia.kernels.reach import prove
from synovia.kernels.scatter import scatter


@algorithm
def attempt(problem, work, targets, q):
    """Descend from q in all levels; see ``full_body_descend``."""
    h = open_levels(work.spare, work.J.shape[0], work.J.shape[1] + wall_count(problem.further))
    return descend(problem, work, targets, q, h, problem.levels.shape[0])


@entry
def full_body(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems with any goals; see ``drive``."""
    return drive_any(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)
