"""Custom goals: the residual is a Python function, which kernels call for its value and derivatives.

Custom goals use the same solvers, search and classification of misses as all other goals.
"""

from synovia.kernels.compiler.callback import call_python
from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import CALLBACK, GOAL, KIND, NUMBERS, WEIGHT

CUSTOM = 0  # kind of a general goal; ``general`` has the other kinds
# Quantities that a call computes. RESIDUAL writes the rows -√weight·r, JACOBIAN their derivatives, and GRADIENT the
# gradient of a secondary objective. CURVATURE adds Σ rᵢ∇²rᵢ, the part of the Hessian that Gauss-Newton drops. RESIDUAL
# and LENGTH return the norm of r without the weight.
RESIDUAL, LENGTH, JACOBIAN, GRADIENT, CURVATURE = 0, 1, 2, 3, 4


@inline
def custom_residual(problem, q, term, e):
    """Write the weighted residual rows of a custom goal; return (their cost, the error in units of its tolerance)."""
    general = problem.general
    length = call_python(problem.params[CALLBACK], RESIDUAL, general.ints[term, GOAL], q, e)
    weighted = general.data[term, WEIGHT] * length
    return weighted * weighted, length / general.data[term, NUMBERS]  # the only parameter of the term is its tolerance


@inline
def custom_length(problem, q, term):
    """Return the norm of the residual of a custom goal, without its weight; write nothing."""
    return call_python(problem.params[CALLBACK], LENGTH, problem.general.ints[term, GOAL], q, q)


@device
def write_custom(general, problem, quantity, q, out):
    """Write the JACOBIAN rows of all custom goals, or add their CURVATURE to the Hessian."""
    if general is None:
        return
    for term in range(general.ints.shape[0]):
        if general.ints[term, KIND] == CUSTOM:
            call_python(problem.params[CALLBACK], quantity, general.ints[term, GOAL], q, out)


@inline
def custom_gradient(problem, q, gradient):
    """Add the gradient of the user's secondary objective H; return H up to a constant."""
    return call_python(problem.params[CALLBACK], GRADIENT, 0, q, gradient) + F(0)
