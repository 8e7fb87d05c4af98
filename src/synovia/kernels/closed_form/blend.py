"""Blending of answers with the start pose (the setting ``weight``), and the motion of the goals from frame to frame.

Each frame of a track starts from the last unblended answer; all blend with the first start pose. So the weight means
the same in every frame, and the blend does not accumulate.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.compiler.records import cutter, record
from synovia.kernels.compiler.watch import interrupted
from synovia.kernels.layout import BLEND_VALUES, BLOCK, BLOCK_Q, MISSED, ROWS_AT, SCALAR
from synovia.kernels.math.rotations import (
    load_quat,
    quat_conj,
    quat_exp,
    quat_log,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.vectors import norm, scale
from synovia.kernels.search.multistart import solve_rows
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.variables import block_size, clamp_block

Values = record("Values", BLEND_VALUES)
_open = cutter(Values, BLEND_VALUES, ("variables",))


@inline
def open_values(problem, work):
    """Return the scratch memory of solvers that blend: the tables of ``layout.BLEND_VALUES``."""
    return _open(work.solver_scratch, (problem.variables.shape[0],))


@inline
def save_values(problem, q, values):
    """Write the variables in q to the rows of ``values`` (variables, 4)."""
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        for c in range(block_size(problem.variables, k)):
            values[k, c] = q[at + c]


@inline
def load_values(problem, q, values):
    """Write the rows of ``values`` (variables, 4) to the variables in q."""
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        for c in range(block_size(problem.variables, k)):
            q[at + c] = values[k, c]


@device
def blend(problem, q, values, weight):
    """Interpolate from the saved values to q: hinges linearly, balls about one axis."""
    for k in range(problem.variables.shape[0]):
        at = problem.variables[k, BLOCK_Q]
        if problem.variables[k, BLOCK] == SCALAR:
            q[at] = values[k, 0] + weight * (q[at] - values[k, 0])
        else:
            a = load_quat(values[k], 0)
            turn = quat_log(quat_mul(quat_conj(a), load_quat(q, at)))
            store_quat(q, at, quat_normalize(quat_mul(a, quat_exp(scale(weight, turn)))))
        clamp_block(problem.variables, problem.limits, k, q)


@device
def load_start(problem, work, q):
    """Write the last answer of a track to q; in its first frame, or without a track, save the start instead."""
    values = open_values(problem, work)
    if values.motion[0] < np.inf:
        load_values(problem, q, values.last)
    else:
        save_values(problem, q, values.start)


@device
def blend_answer(problem, work, q, weight):
    """Save the answer, then blend it with the first start; work.frames are those of q."""
    values = open_values(problem, work)
    save_values(problem, q, values.last)
    if weight < F(1):
        blend(problem, q, values.start, weight)
        forward(problem.tree, q, work.frames)


@inline
def motion_of(targets, b):
    """Return the sum of the displacements of all targets from frame b - 1 to frame b (length units)."""
    total = F(0)
    for g in range(targets.shape[1]):
        now, before = targets[b, g], targets[b - 1, g]
        total += norm((now[3] - before[3], now[7] - before[7], now[11] - before[11]))
    return total


@inline
def solve_in_order(search, problem, work, targets, begins, out, warm, first):
    """Solve problems in turn by ``multistart.solve_rows``; before each, write the motion of its targets."""
    missed = 0
    for b in range(first, out.shape[0]):
        open_values(problem, work).motion[0] = motion_of(targets, b) if warm and b > 0 else F(np.inf)
        code = solve_rows(search, problem, work, targets, begins, out[: b + 1], warm, b)
        if code < 0 or (warm and code & MISSED and not interrupted(work.watch)):
            return code
        missed |= code & MISSED
    return out.shape[0] << ROWS_AT | missed
