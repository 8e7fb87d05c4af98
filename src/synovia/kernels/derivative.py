"""The Jacobian in the form that was asked for: by cross products or by partial derivatives."""

from synovia.kernels._jit import device
from synovia.kernels.goals import jacobian
from synovia.kernels.partial import partial_jacobian
from synovia.kernels.room import FORM, PARTIAL


@device
def write_jacobian(problem, work, targets, q):
    """Write J at the frames of q."""
    if problem.own[FORM] == PARTIAL:
        partial_jacobian(problem, q, work.frames, targets, work.J)
    else:
        jacobian(problem, q, work.frames, targets, work.J)
