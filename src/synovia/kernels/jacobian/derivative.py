"""The Jacobian in the form that was asked for: by cross products or by partial derivatives."""

from synovia.kernels.compiler.jit import device
from synovia.kernels.goals.custom import JACOBIAN, write_custom
from synovia.kernels.goals.partial import partial_jacobian
from synovia.kernels.goals.residuals import geometric_jacobian
from synovia.kernels.jacobian.shared import PARTIAL
from synovia.kernels.layout import FORM


@device
def write_jacobian(problem, work, targets, q):
    """Write J at the frames of q."""
    write_built_in(problem, work, targets, q)
    write_custom(problem.general, problem, JACOBIAN, q, work.J)


@device
def write_built_in(problem, work, targets, q):
    """Write the rows of J at the frames of q of all goals but custom ones."""
    if problem.params[FORM] == PARTIAL:
        partial_jacobian(problem, q, work.frames, targets, work.J)
    else:
        geometric_jacobian(problem, q, work.frames, targets, work.J)
