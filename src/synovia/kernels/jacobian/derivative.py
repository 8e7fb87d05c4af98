"""The Jacobian in the form that was asked for: by cross products or by partial derivatives."""

from synovia.kernels.compiler.jit import device
from synovia.kernels.goals.partial import partial_jacobian
from synovia.kernels.goals.residuals import jacobian
from synovia.kernels.jacobian.workspace import PARTIAL
from synovia.kernels.layout import FORM


@device
def write_jacobian(problem, work, targets, q):
    """Write J at the frames of q."""
    if problem.own[FORM] == PARTIAL:
        partial_jacobian(problem, q, work.frames, targets, work.J)
    else:
        jacobian(problem, q, work.frames, targets, work.J)
