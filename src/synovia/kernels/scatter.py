"""Where a restart begins: a random pose within the limits, the same one for the same seed and attempt."""

from synovia.kernels._jit import F, algorithm
from synovia.kernels.variables import randomize, randomize_number


@algorithm
def scatter(problem, work, targets, q):
    """Fill every variable of q."""
    randomize(problem.variables, problem.limits, q, work.state)
    return 0, F(0)


@algorithm
def scatter_numbers(problem, work, targets, q):
    """Fill every variable of an arm, which has numbers alone; arms need not wait for ball joints to be compiled."""
    for k in range(problem.variables.shape[0]):
        randomize_number(problem.limits, k, q, problem.variables[k, 1], work.state)
    return 0, F(0)
