"""Goals whose residual is a function of Python: kernels call it back wherever they need its value or derivative.

All else is the same as for the other goals, so custom goals have the same solvers, searches and verdicts.
"""

from synovia.kernels.compiler.callback import call_python
from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import CALLBACK, GOAL, KIND, NUMBERS, WEIGHT

CUSTOM = 10  # kind of a general goal
# What is wanted: weighted residual rows; the length of the residual alone; rows of the Jacobian; ∇H of a wish; the part
# of the Hessian of half the squared residual that the Jacobian leaves out
RESIDUAL, LENGTH, JACOBIAN, GRADIENT, CURVATURE = 0, 1, 2, 3, 4


@inline
def custom_residual(problem, q, h, e):
    """Write the weighted rows of custom goal h into e; return (their cost, the error in units of its tolerance)."""
    f = problem.general
    far = call_python(problem.params[CALLBACK], RESIDUAL, f.ints[h, GOAL], q, e)
    weighted = f.data[h, WEIGHT] * far
    return weighted * weighted, far / f.data[h, NUMBERS]


@inline
def custom_length(problem, q, h):
    """Return the length of the residual of custom goal h."""
    return call_python(problem.params[CALLBACK], LENGTH, problem.general.ints[h, GOAL], q, q)


@device
def write_custom(general, problem, what, q, out):
    """Write for all custom goals the rows of the Jacobian, or add to the Hessian what those leave out."""
    if general is None:
        return
    for h in range(general.ints.shape[0]):
        if general.ints[h, KIND] == CUSTOM:
            call_python(problem.params[CALLBACK], what, general.ints[h, GOAL], q, out)


@inline
def custom_gradient(problem, q, gradient):
    """Add to a wish the gradient of the user's function H; return H up to a constant."""
    return call_python(problem.params[CALLBACK], GRADIENT, 0, q, gradient) + F(0)
