"""Entry points over whole variable tables: clamping, checking and sampling rows of q."""

from synovia.kernels._jit import entry
from synovia.kernels.variables import clamp, margin, randomize, seed_state, violation


@entry
def clamp_rows(variables, limits, q):
    """Bring each row of q (T, nq) to the nearest allowed values."""
    for t in range(q.shape[0]):
        clamp(variables, limits, q[t])


@entry
def violations(variables, limits, q, worst, where):
    """Write, for each row of q, the largest distance beyond a limit (radians, length units) and the variable where."""
    for t in range(q.shape[0]):
        worst[t], where[t] = violation(variables, limits, q[t])


@entry
def random_rows(variables, limits, q, seed, state):
    """Fill the rows of q (T, nq) with samples within the limits; row t is attempt t of the seed.

    ``state``: room for one uint64.
    """
    for t in range(q.shape[0]):
        seed_state(state, seed, t)
        randomize(variables, limits, q[t], state)


@entry
def excesses(variables, limits, q, out):
    """Write how far each variable of one q (nq,) is beyond its limit; negative inside (radians, length units)."""
    for k in range(variables.shape[0]):
        out[k] = margin(variables, limits, k, q)
