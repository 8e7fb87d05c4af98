"""Entry points over whole variable tables: clamping, checking and sampling rows of q."""

import math

from synovia.kernels.compiler.jit import F, device, entry
from synovia.kernels.compiler.views import vector
from synovia.kernels.layout import BLOCK, BLOCK_Q, FOLLOWER, LEADER, SCALAR
from synovia.kernels.tree.variables import clamp, follower_value, margin, randomize, seed_state, violation

LARGEST = F(1e15)  # number in q; ``LONGEST`` of the joints
EXACT = F(4e-16)  # relative: so far from what it should be a value is taken as it is


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


@device
def admit_one(variables, limits, followers, coupling, q, inside):
    """Write one q (nq,) brought inside the limits; see ``admit``."""
    told = 1
    for k in range(variables.shape[0]):
        if variables[k, BLOCK] != SCALAR:
            i = variables[k, BLOCK_Q]
            size2 = q[i] * q[i] + q[i + 1] * q[i + 1] + q[i + 2] * q[i + 2] + q[i + 3] * q[i + 3]
            if abs(math.sqrt(size2) - F(1)) > EXACT:
                told = -1
    for i in range(q.shape[0]):
        if not abs(q[i]) <= LARGEST:
            told = -1
        inside[i] = q[i]
    clamp(variables, limits, inside)
    for i in range(q.shape[0]):
        if inside[i] != q[i]:
            told = min(told, 0 if followers.shape[0] == 0 else -1)
    for k in range(followers.shape[0]):
        led = follower_value(coupling, k, q[followers[k, LEADER]])
        if abs(q[followers[k, FOLLOWER]] - led) > EXACT * abs(led):
            told = -1
        inside[followers[k, FOLLOWER]] = led
    return told


@entry
def validate(variables, limits, followers, coupling, nq, q, inside):
    """Write values of one or more q, end to end in an array (T * nq,), brought inside the limits.

    One entry point for one and for many: compiled twice, the same sums may round differently.

    Returns:
        Whether all were inside them; -1 if a number is not finite or too large, the length of a quaternion is not 1 to
        rounding, a joint does not stand where the one that it follows has it, or would have to follow one into its
        limits.
    """
    told = 1
    for at in range(0, q.shape[0], max(nq, 1)):
        told = min(told, admit_one(variables, limits, followers, coupling, vector(q, at, nq), vector(inside, at, nq)))
    return told
