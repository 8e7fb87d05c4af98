"""Entry points that clamp, check and sample whole rows of q: radians, length units, quaternions.

``variables`` (k, 3) and ``limits`` (k, 11) are the tables of all variables of a skeleton, see ``variables``.
"""

import math

from synovia.kernels.compiler.jit import F, device, entry
from synovia.kernels.compiler.views import vector
from synovia.kernels.layout import BLOCK, BLOCK_Q, FOLLOWER, LEADER, SCALAR
from synovia.kernels.tree.variables import block_excess, clamp, follower_value, randomize, seed_state

LARGEST = F(1e15)  # largest value in q; equals ``LONGEST`` of ``model.geometry``
EXACT = F(4e-16)  # relative error that counts as rounding


@entry
def clamp_rows(variables, limits, q):
    """Clamp each row of q (T, nq) to the nearest allowed values."""
    for t in range(q.shape[0]):
        clamp(variables, limits, q[t])


@entry
def random_rows(variables, limits, q, seed, state):
    """Fill the rows of q (T, nq) with samples within the limits. Row t is attempt t of the seed.

    ``state`` (1,) uint64 is scratch memory for the generator.
    """
    for t in range(q.shape[0]):
        seed_state(state, seed, t)
        randomize(variables, limits, q[t], state)


@entry
def excesses(variables, limits, q, out):
    """Write to ``out`` (k,) how far each variable of one q (nq,) is beyond its limit (radians, length units).

    The value is negative inside the limit, and -inf without a limit.
    """
    for k in range(variables.shape[0]):
        out[k] = block_excess(variables, limits, k, q)


@device
def validate_one(variables, limits, followers, coupling, q, inside):
    """Clamp one q (nq,) into ``inside`` and return whether it was valid; see ``validate``."""
    verdict = 1
    for k in range(variables.shape[0]):
        if variables[k, BLOCK] != SCALAR:
            i = variables[k, BLOCK_Q]
            size2 = q[i] * q[i] + q[i + 1] * q[i + 1] + q[i + 2] * q[i + 2] + q[i + 3] * q[i + 3]
            if abs(math.sqrt(size2) - F(1)) > EXACT:
                verdict = -1
    for i in range(q.shape[0]):
        if not abs(q[i]) <= LARGEST:
            verdict = -1
        inside[i] = q[i]
    clamp(variables, limits, inside)
    for i in range(q.shape[0]):
        if inside[i] != q[i]:
            verdict = min(verdict, 0 if followers.shape[0] == 0 else -1)
    for k in range(followers.shape[0]):
        led = follower_value(coupling, k, q[followers[k, LEADER]])
        if abs(q[followers[k, FOLLOWER]] - led) > EXACT * abs(led):
            verdict = -1
        inside[followers[k, FOLLOWER]] = led
    return verdict


@entry
def validate(variables, limits, followers, coupling, nq, q, inside):
    """Validate joint values, one or more q end to end (T * nq,), and write them clamped to the limits into ``inside``.

    ``followers`` (m, 2) and ``coupling`` (m, 2) describe the mimic joints, see ``layout``. One entry point serves one q
    and many: compiled twice, the same sums may round differently.

    Returns:
        1 if all values are within their limits, 0 if some were clamped. -1 if a value is not finite or too large, a
        quaternion is not of unit length, a mimic joint contradicts its leader, or a skeleton with mimic joints needed
        clamping.
    """
    verdict = 1
    for at in range(0, q.shape[0], max(nq, 1)):
        one, clamped = vector(q, at, nq), vector(inside, at, nq)
        verdict = min(verdict, validate_one(variables, limits, followers, coupling, one, clamped))
    return verdict
