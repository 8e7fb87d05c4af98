"""Joint variables: clamp, check, step and sample the blocks of q that can move.

A block has one row in the table ``variables`` and one in ``limits``; ``layout`` names their columns. A SCALAR block is
a hinge, a slide or one coordinate of a free joint, with a lower and an upper limit. A TURN block is a unit quaternion,
which may have a swing-twist limit (see ``swing_twist``).
"""

import math

import numpy as np

from synovia.kernels.compiler.jit import F, device, inline, inline_exact
from synovia.kernels.compiler.views import bits
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    IS_ANGLE,
    IS_LIMITED,
    LOWER,
    OFFSET,
    RATIO,
    SCALAR,
    STATE,
    TWIST_LOWER,
    TWIST_UPPER,
    UPPER,
)
from synovia.kernels.math.rotations import PI, load_quat, quat_exp, quat_mul, quat_normalize, store_quat
from synovia.kernels.math.swing_twist import from_limit_frame, half_angles, join, project, signed_excess
from synovia.kernels.math.trigonometry import sincos


@inline_exact
def follower_value(coupling, k, value):
    """Return the value of the mimic joint k for its leader's value, bit for bit as ``Skeleton.follow``."""
    return coupling[k, RATIO] * value + coupling[k, OFFSET]


@inline
def uniform(state):
    """Return the next value of a xorshift64 generator, uniform in [0, 1); state is one uint64."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return F(x >> np.uint64(11)) * F(1.1102230246251565e-16)


@inline
def seed_state(state, seed, attempt):
    """Start the generator for one attempt of one seed (both below 2^32; the products fit, so nothing overflows)."""
    high = (np.uint64(seed) + np.uint64(1)) * np.uint64(0x9E3779B1)
    low = (np.uint64(attempt) + np.uint64(1)) * np.uint64(0x85EBCA6B)
    state[0] = (high << np.uint64(32)) ^ low ^ np.uint64(0x2545F4914F6CDD1D)
    if state[0] == np.uint64(0):  # one (seed, attempt) gives zero, at which the generator would remain
        state[0] = np.uint64(0x2545F4914F6CDD1D)
    for _ in range(8):  # spread each bit of the seed over all bits
        uniform(state)


@inline
def start_random(problem, work, attempt):
    """Seed the generator for one attempt at a problem; the random numbers are the same every time."""
    seed_state(bits(work.watch, STATE, 1), problem.seed, attempt)


@inline
def draw(work):
    """Return the next random number, uniform in [0, 1)."""
    return uniform(bits(work.watch, STATE, 1))


@inline
def block_size(table, k):
    """Return the number of elements of variable k in q: one, or four for a quaternion."""
    return 1 if table[k, BLOCK] == SCALAR else 4


@inline
def step_unit(limit, k, reach):
    """Return the unit of steps of scalar k in the units of q: 1 (radian) for an angle, ``reach`` for a length."""
    return F(1) if limit[k, IS_ANGLE] != F(0) else reach


@inline
def is_limited(limit, k):
    """Return whether the quaternion block k has a limit."""
    return limit[k, IS_LIMITED] != F(0)


@inline
def random_side(low, high, u):
    """Return -low or high, with probabilities proportional to low and high. u is uniform in [0, 1)."""
    return high if u * (low + high) < high else -low


@device
def clamp_block(table, limit, k, q):
    """Clamp block k of q to the nearest allowed value."""
    at = table[k, BLOCK_Q]
    if table[k, BLOCK] == SCALAR:
        q[at] = min(max(q[at], limit[k, LOWER]), limit[k, UPPER])
    elif is_limited(limit, k):
        store_quat(q, at, project(limit, k, load_quat(q, at)))


@device
def clamp(table, limit, q):
    """Clamp all blocks of q to the nearest allowed values."""
    for k in range(table.shape[0]):
        clamp_block(table, limit, k, q)


@inline
def block_excess(table, limit, k, q):
    """Return how far block k of q lies beyond its limit; negative inside, -inf without a limit."""
    at = table[k, BLOCK_Q]
    if table[k, BLOCK] == SCALAR:
        return max(limit[k, LOWER] - q[at], q[at] - limit[k, UPPER])
    if is_limited(limit, k):
        return signed_excess(limit, k, load_quat(q, at))
    return F(-np.inf)


@device
def step(table, limit, q, dq, size):
    """Move q by size * dq: scalars by addition, quaternions by q ← q · exp(w); then clamp."""
    for k in range(table.shape[0]):
        at = table[k, BLOCK_Q]
        v = table[k, BLOCK_COLUMN]
        if table[k, BLOCK] == SCALAR:
            q[at] += size * dq[v]
        else:
            w = (size * dq[v], size * dq[v + 1], size * dq[v + 2])
            store_quat(q, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))
        clamp_block(table, limit, k, q)


@inline
def randomize_number(limit, k, q, at, state):
    """Fill one scalar with a value uniform within its limits.

    An unlimited hinge is uniform on the circle; an unlimited slide or coordinate of a free joint keeps its value.
    """
    lower, upper = limit[k, LOWER], limit[k, UPPER]
    u = uniform(state)
    if upper - lower < F(1e30):
        q[at] = lower + u * (upper - lower)
    elif limit[k, IS_ANGLE] != F(0):
        lower, upper = max(lower, min(-PI, upper - F(2) * PI)), min(upper, max(PI, lower + F(2) * PI))
        q[at] = lower + u * (upper - lower)


@device
def randomize_ball(table, limit, k, q, at, state):
    """Fill one quaternion: uniform in swing and twist inside its limit, or on all rotations (Shoemake 1992)."""
    if is_limited(limit, k):
        s, c = sincos(F(0.5) * PI * uniform(state))
        # a quarter ellipse has the area a b pi / 4, so the signs of x and y are independent
        back, front = half_angles(limit, k, F(-1), F(-1)), half_angles(limit, k, F(1), F(1))
        a = random_side(back[0], front[0], uniform(state))
        b = random_side(back[1], front[1], uniform(state))
        r = math.sqrt(uniform(state))
        twist = limit[k, TWIST_LOWER] + uniform(state) * (limit[k, TWIST_UPPER] - limit[k, TWIST_LOWER])
        store_quat(q, at, from_limit_frame(limit, k, join(r * a * c, r * b * s, twist)))
        clamp_block(table, limit, k, q)
    else:
        u = uniform(state)
        s1, c1 = sincos(F(2) * PI * uniform(state))
        s2, c2 = sincos(F(2) * PI * uniform(state))
        a, b = math.sqrt(F(1) - u), math.sqrt(u)
        store_quat(q, at, (a * s1, a * c1, b * s2, b * c2))


@device
def randomize(table, limit, q, state):
    """Fill the blocks of q with values uniform within their limits."""
    for k in range(table.shape[0]):
        if table[k, BLOCK] == SCALAR:
            randomize_number(limit, k, q, table[k, BLOCK_Q], state)
        else:
            randomize_ball(table, limit, k, q, table[k, BLOCK_Q], state)


@device
def perturb(problem, work, q, size):
    """Move every variable by a random step of at most ``size`` (radians, length scales), within the limits.

    The steps are the same every time.
    """
    start_random(problem, work, 0)
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        if problem.variables[k, BLOCK] == SCALAR:
            q[at] += size * step_unit(problem.limits, k, problem.reach) * (F(2) * draw(work) - F(1))
        else:
            w = (
                size * (F(2) * draw(work) - F(1)),
                size * (F(2) * draw(work) - F(1)),
                size * (F(2) * draw(work) - F(1)),
            )
            store_quat(q, at, quat_normalize(quat_mul(load_quat(q, at), quat_exp(w))))
        clamp_block(problem.variables, problem.limits, k, q)


@inline
def rotated(q, c, h):
    """Return q · exp(h e_c): the quaternion q after a rotation by h about axis c of its own frame."""
    return quat_mul(q, quat_exp((h * F(c == 0), h * F(c == 1), h * F(c == 2))))


@device
def displace(problem, q, k, c, h):
    """Move component c of variable k by h (radians, length scales), ignoring its limits; for central differences."""
    at = problem.variables[k, BLOCK_Q]
    if problem.variables[k, BLOCK] == SCALAR:
        q[at] += h * step_unit(problem.limits, k, problem.reach)
    else:
        store_quat(q, at, quat_normalize(rotated(load_quat(q, at), c, h)))
