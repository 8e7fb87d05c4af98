"""Where a restart begins: a random pose within the limits, the same one for the same seed and attempt."""

import numpy as np

from synovia.kernels._jit import F, algorithm
from synovia.kernels.rotations import load_quat, quat_exp, quat_log, store_quat
from synovia.kernels.variables import TURN, is_limited, randomize, randomize_number, uniform
from synovia.kernels.vectors import scale

GENTLER = F(0.2)  # factor on the turns of free balls, never, once or twice
MANNERS = 3


@algorithm
def scatter(problem, work, targets, q):
    """Fill every variable of q.

    Balls without limits are turned fully, a fifth or a twenty-fifth of it: a chain of a hundred of them turned fully is
    a coil from which nothing far is reached (31 of 40 targets, with gentler ones all 40).
    """
    randomize(problem.variables, problem.limits, q, work.state)
    share = GENTLER ** np.int64(MANNERS * uniform(work.state))
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, 0] == TURN and not is_limited(problem.limits, k):
            at = problem.variables[k, 1]
            store_quat(q, at, quat_exp(scale(share, quat_log(load_quat(q, at)))))
    return 0, F(0)


@algorithm
def scatter_numbers(problem, work, targets, q):
    """Fill every variable of an arm, which has numbers alone; arms need not wait for ball joints to be compiled."""
    for k in range(problem.variables.shape[0]):
        randomize_number(problem.limits, k, q, problem.variables[k, 1], work.state)
    return 0, F(0)
