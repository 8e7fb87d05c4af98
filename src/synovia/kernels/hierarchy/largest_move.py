"""The largest move: how far any joint may go in one solve, all its steps together, as a bound of every step.

A ball turns by no more than that in any direction. In the three directions d of a step, where it has turned by t_d so
far, it may go as far as ±√(t_d² + (most² - |t|²) / 3): whatever the three do together, the turn stays within ``most``.
That is exact for small steps. What a large one goes too far is taken back along the ball's own coordinates, in which
its limits are convex.
"""

import math

from synovia.kernels.compiler.jit import F, apart, inline
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    IS_ANGLE,
    LARGEST_MOVE,
    SCALAR,
    VELOCITY,
)
from synovia.kernels.math.rotations import load_quat, quat_conj, quat_exp, quat_log, quat_mul, store_quat
from synovia.kernels.math.swing_twist import from_limit_frame, join, split, to_limit_frame
from synovia.kernels.math.vectors import axpy, dot, load, norm, scale, sub
from synovia.kernels.tree.variables import is_limited

HALVINGS = 30
REST = F(1e-3)  # of the largest move: who goes less far stands still, but for rounding and tolerances


@apart
def put_down(problem, q, began):
    """Keep the values of all variables: those from which moves count, or to return to."""
    for k in range(problem.variables.shape[0]):
        for i in range(1 if problem.variables[k, BLOCK] == SCALAR else 4):
            began[k, i] = q[problem.variables[k, BLOCK_Q] + i]


@apart
def take_up(problem, q, began):
    """Return to the values that were put down."""
    for k in range(problem.variables.shape[0]):
        for i in range(1 if problem.variables[k, BLOCK] == SCALAR else 4):
            q[problem.variables[k, BLOCK_Q] + i] = began[k, i]


@inline
def tighten(box, v, low, high):
    """Narrow the bounds of a column; where it has gone too far already, it may come back."""
    box[v, BOX_LOWER] = max(box[v, BOX_LOWER], min(low, F(0)))
    box[v, BOX_UPPER] = min(box[v, BOX_UPPER], max(high, F(0)))


@inline
def turned_from(p, q):
    """Return the rotation vector from one rotation to another."""
    return quat_log(quat_mul(quat_conj(p), q))


@apart
def slow_down(problem, q, box, began):
    """Narrow the bounds of a step to what is left of the largest move."""
    most = problem.params[LARGEST_MOVE]
    for k in range(problem.variables.shape[0]):
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else F(1) / problem.reach
            gone = unit * (q[at] - began[k, 0])
            tighten(box, v, -most - gone, most - gone)
            continue
        turned = turned_from(load_quat(began[k], 0), load_quat(q, at))
        left = max(most * most - dot(turned, turned), F(0)) / F(3)
        for c in range(3):
            way = (F(c == 0), F(c == 1), F(c == 2))
            if is_limited(problem.limits, k):
                way = load(box, v + c, VELOCITY)
            size = norm(way)
            gone = dot(turned, way) / size
            room = math.sqrt(gone * gone + left)
            tighten(box, v + c, (-room - gone) / size, (room - gone) / size)


@apart
def is_at_rest(problem, q, start):
    """Return whether every joint stands where it started: then it is not the largest move that holds the pose back."""
    most = REST * problem.params[LARGEST_MOVE]
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) if problem.limits[k, IS_ANGLE] != F(0) else F(1) / problem.reach
            gone = unit * abs(q[at] - start[at])
        else:
            gone = norm(turned_from(load_quat(start, at), load_quat(q, at)))
        if gone > most:
            return False
    return True


@apart
def hold_back(problem, q, began):
    """Bring every ball that has turned too far back to where it may be."""
    most = problem.params[LARGEST_MOVE]
    for k in range(problem.variables.shape[0]):
        if problem.variables[k, BLOCK] == SCALAR:
            continue
        at = problem.variables[k, BLOCK_Q]
        p = load_quat(began[k], 0)
        turned = turned_from(p, load_quat(q, at))
        far = norm(turned)
        if far <= most:
            continue
        if not is_limited(problem.limits, k):
            store_quat(q, at, quat_mul(p, quat_exp(scale(most / far, turned))))
            continue
        first = split(to_limit_frame(problem.limits, k, p))
        way = sub(split(to_limit_frame(problem.limits, k, load_quat(q, at))), first)
        low, high = F(0), F(1)
        for _ in range(HALVINGS):
            share = F(0.5) * (low + high)
            x, y, twist = axpy(share, way, first)
            if norm(turned_from(p, from_limit_frame(problem.limits, k, join(x, y, twist)))) <= most:
                low = share
            else:
                high = share
        x, y, twist = axpy(low, way, first)
        store_quat(q, at, from_limit_frame(problem.limits, k, join(x, y, twist)))
