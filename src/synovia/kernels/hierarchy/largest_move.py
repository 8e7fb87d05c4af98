"""Limit how far each joint moves from its start, over all steps: its largest move L becomes bounds of each step.

A ball rotates by at most L from its start. Let r be its rotation vector so far. Along each of its three directions d,
it may go to ±√(r_d² + (L² - |r|²) / 3): if the directions are orthogonal, its rotation stays within L for any
combination of the three. This is exact for small steps. After a large step, ``enforce_largest_move`` moves the ball
back along its own coordinates, in which its limits are convex.
"""

import math

from synovia.kernels.compiler.jit import F, apart, inline
from synovia.kernels.layout import BLOCK, BLOCK_COLUMN, BLOCK_Q, BOX_LOWER, BOX_UPPER, LARGEST_MOVE, SCALAR, VELOCITY
from synovia.kernels.math.rotations import load_quat, quat_conj, quat_exp, quat_log, quat_mul, store_quat
from synovia.kernels.math.swing_twist import from_limit_frame, join, split, to_limit_frame, twist_step
from synovia.kernels.math.vectors import axpy, dot, load, norm, scale
from synovia.kernels.tree.variables import block_size, is_limited, step_unit

HALVINGS = 30  # number of bisections in the search for the largest allowed part of a move
NO_MOVE = F(1e-3)  # fraction of the tightest limit of a joint's move; smaller moves are rounding or within tolerances


@apart
def save_pose(problem, q, saved):
    """Store the values of all variables in ``saved`` (variables, 4), to return to or to measure moves from."""
    for k in range(problem.variables.shape[0]):
        for i in range(block_size(problem.variables, k)):
            saved[k, i] = q[problem.variables[k, BLOCK_Q] + i]


@apart
def restore_pose(problem, q, saved):
    """Restore the stored values of all variables."""
    for k in range(problem.variables.shape[0]):
        for i in range(block_size(problem.variables, k)):
            q[problem.variables[k, BLOCK_Q] + i] = saved[k, i]


@inline
def tighten(box, v, low, high):
    """Tighten the bounds of a column; if it has moved too far already, it may come back."""
    box[v, BOX_LOWER] = max(box[v, BOX_LOWER], min(low, F(0)))
    box[v, BOX_UPPER] = min(box[v, BOX_UPPER], max(high, F(0)))


@inline
def rotation_vector_between(p, q):
    """Return the rotation vector from one unit quaternion to another, in the frame of the first."""
    return quat_log(quat_mul(quat_conj(p), q))


@apart
def restrict_step(problem, q, box, saved):
    """Tighten the bounds of a step to the remaining part of the largest move.

    Afterwards no hinge or slide can exceed its largest move. A ball can, if the step is large or its three directions
    are not orthogonal; ``enforce_largest_move`` then moves it back.
    """
    for k in range(problem.variables.shape[0]):
        largest = problem.moves[k]
        at, v = problem.variables[k, BLOCK_Q], problem.variables[k, BLOCK_COLUMN]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) / step_unit(problem.limits, k, problem.reach)
            moved = unit * (q[at] - saved[k, 0])
            tighten(box, v, -largest - moved, largest - moved)
            continue
        rotation = rotation_vector_between(load_quat(saved[k], 0), load_quat(q, at))
        left = max(largest * largest - dot(rotation, rotation), F(0)) / F(3)
        for c in range(3):
            direction = (F(c == 0), F(c == 1), F(c == 2))
            if is_limited(problem.limits, k):
                direction = load(box, v + c, VELOCITY)
            length = norm(direction)
            moved = dot(rotation, direction) / length
            span = math.sqrt(moved * moved + left)
            tighten(box, v + c, (-span - moved) / length, (span - moved) / length)


@apart
def is_near_start(problem, q, start):
    """Return whether every joint is so near its start that the largest move does not restrict the pose."""
    near = NO_MOVE * problem.params[LARGEST_MOVE]
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        if problem.variables[k, BLOCK] == SCALAR:
            unit = F(1) / step_unit(problem.limits, k, problem.reach)
            moved = unit * abs(q[at] - start[at])
        else:
            moved = norm(rotation_vector_between(load_quat(start, at), load_quat(q, at)))
        if moved > near:
            return False
    return True


@apart
def enforce_largest_move(problem, q, saved):
    """Rotate every ball that exceeds its largest move back to this limit."""
    for k in range(problem.variables.shape[0]):
        largest = problem.moves[k]
        if problem.variables[k, BLOCK] == SCALAR:
            continue
        at = problem.variables[k, BLOCK_Q]
        p = load_quat(saved[k], 0)
        rotation = rotation_vector_between(p, load_quat(q, at))
        angle = norm(rotation)
        if angle <= largest:
            continue
        if not is_limited(problem.limits, k):
            store_quat(q, at, quat_mul(p, quat_exp(scale(largest / angle, rotation))))
            continue
        first = split(to_limit_frame(problem.limits, k, p))
        last = split(to_limit_frame(problem.limits, k, load_quat(q, at)))
        direction = last[0] - first[0], last[1] - first[1], twist_step(problem.limits, k, first[2], last[2])
        low, high = F(0), F(1)
        for _ in range(HALVINGS):
            share = F(0.5) * (low + high)
            x, y, twist = axpy(share, direction, first)
            if norm(rotation_vector_between(p, from_limit_frame(problem.limits, k, join(x, y, twist)))) <= largest:
                low = share
            else:
                high = share
        x, y, twist = axpy(low, direction, first)
        store_quat(q, at, from_limit_frame(problem.limits, k, join(x, y, twist)))
