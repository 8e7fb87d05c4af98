"""Full body for places alone, positions and rotations in the world: half as much to compile."""

from synovia.kernels._jit import entry
from synovia.kernels.drive import drive
from synovia.kernels.full_body import attempt
from synovia.kernels.reach import prove
from synovia.kernels.scatter import scatter


@entry
def full_body_plain(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve rows of problems; see ``drive``."""
    return drive(attempt, scatter, prove, ints, floats, targets, starts, out, scratch, warm, first)
