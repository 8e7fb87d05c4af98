"""Close a pose: Newton's method on the closure error of its loops, by the smallest step within the limits.

Each step minimises the rows of all loops within the bounds of the joints, as a level of the hierarchy. Rows that
depend on others, such as those of a planar loop in space, add nothing. So a pose moves as little as the limits allow.
Along a path of nearly closed poses, the assembly branch stays the same.

If the closure error is large, the step is damped and bounded. A loop that cannot close ends at its smallest gap.
"""

from synovia.kernels.compiler.jit import F, apart, device, entry, inline
from synovia.kernels.hierarchy.basis import open_levels, reset_column, reset_columns
from synovia.kernels.hierarchy.largest_move import restrict_step, save_pose
from synovia.kernels.hierarchy.levels import solve_level
from synovia.kernels.layout import (
    BASIS_COUNT,
    BASIS_STALE,
    BLOCK,
    BLOCK_Q,
    BOX_LOWER,
    BOX_UPPER,
    POSE_COLUMN,
    REFERENCE,
    SCALAR,
    SOLVES,
    STEP,
    STEP_STIFFNESS,
)
from synovia.kernels.loops.ties import lack_of, loop_residual, loop_rows
from synovia.kernels.math.rotations import (
    load_quat,
    quat_conj,
    quat_exp,
    quat_log,
    quat_mul,
    quat_normalize,
    store_quat,
)
from synovia.kernels.math.vectors import scale
from synovia.kernels.tree.chart import move, to_box, write_bounds
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_mechanism
from synovia.kernels.tree.variables import clamp_block

CLOSED = F(1e-12)  # largest closure error of a closed pose (length scales, radians), if rounding allows it
NEARLY = F(1e-10)  # largest closure error (length scales, radians) where rounding prevents a smaller one
STEPS = 20  # largest number of Newton steps to close a pose again after a step of the body
DAMPING, ERROR_DAMPING = F(1e-15), F(1e-2)
LARGEST_STEP = F(0.3)  # largest change of a column (radians, or length scales)
WAY = 16  # number of steps on the path to a random pose
GROWS = F(4)  # factor by which the closure error may grow during Newton's steps; if it grows more, the steps end


@apart
def newton_step(loops, problem, q, limited):
    """Move q by one Newton step that closes its loops; ``loops.frames`` and the residual rows are those of q."""
    m, n = loops.J.shape
    h = open_levels(loops.scratch, m, n)
    loops.J[:, :] = F(0)
    loop_rows(loops, problem, q, loops.frames, loops.J)
    write_bounds(problem, q, loops.box)
    if limited:
        restrict_step(problem, q, loops.box, loops.start)
    to_box(problem, loops.box, loops.J)
    for k in range(n):
        reset_column(h, k, min(loops.box[k, BOX_LOWER], F(0)), max(loops.box[k, BOX_UPPER], F(0)))
        h.v[REFERENCE, k] = F(0)
        h.v[STEP_STIFFNESS, k] = F(1)
        for i in range(m):
            h.G[i, k] = loops.J[i, k]
    reset_columns(h)
    for i in range(m):
        h.constrains[i] = F(1)
    h.state[SOLVES] = F(0)
    h.state[BASIS_COUNT] = F(0)
    h.state[BASIS_STALE] = F(0)
    solve_level(h, 0, m, DAMPING, ERROR_DAMPING, LARGEST_STEP, True)
    for k in range(n):
        loops.step[int(h.v[POSE_COLUMN, k])] = h.v[STEP, k]
    move(problem, q, loops.step, F(1))


@apart
def close(loops, problem, q, limited, steps):
    """Close the pose q; return the remaining closure error.

    Args:
        loops: The loops of the problem, if any; None if their tables were not opened.
        problem: The problem.
        q: The pose, within the limits.
        limited: Whether each joint must stay within its largest move from the pose of ``remember_start``.
        steps: Largest number of steps.
    """
    if loops is None:
        return F(0)
    if loops.ints.shape[0] == 0:
        return F(0)
    h = open_levels(loops.scratch, loops.J.shape[0], loops.J.shape[1])
    best = F(0)
    first = F(0)
    for k in range(steps + 1):
        forward(problem.tree, q, loops.frames)
        lack = loop_residual(loops, problem, q, loops.frames, h.e)
        if k == 0:
            first = lack
        if k == 0 or lack < best:
            best = lack
            copy(q, loops.nearest)
        elif best <= NEARLY:
            break
        if best <= CLOSED or k == steps or lack > GROWS * first + F(1):
            break
        newton_step(loops, problem, q, limited)
    copy(loops.nearest, q)
    return best


@apart
def remember_start(loops, problem, q):
    """Store the pose from which joint moves are limited."""
    if loops is None:
        return
    if loops.ints.shape[0] > 0:
        save_pose(problem, q, loops.start)


@inline
def keep_pose(loops, q):
    """Store a closed pose before a step, to return to if the step opens the loops."""
    if loops is None:
        return
    if loops.ints.shape[0] > 0:
        copy(q, loops.before)


@device
def close_again(loops, problem, q, limited):
    """Close q after a step, or restore the stored pose if q cannot be closed; return whether it was closed."""
    if loops is None:
        return True
    if loops.ints.shape[0] == 0 or close(loops, problem, q, limited, STEPS) <= NEARLY:
        return True
    copy(loops.before, q)
    return False


@apart
def go_closed(loops, problem, q, begin):
    """Replace the random values in q by a closed pose near them, on a path from the closed pose ``begin``.

    The loops stay closed along the path, so the assembly branch stays the same. The path ends where they cannot close.
    """
    if loops is None:
        return
    if loops.ints.shape[0] == 0:
        return
    copy(q, loops.end)
    copy(begin, q)
    for step in range(WAY):
        keep_pose(loops, q)
        share = F(1) / F(WAY - step)
        for k in range(problem.variables.shape[0]):
            at = problem.variables[k, BLOCK_Q]
            if problem.variables[k, BLOCK] == SCALAR:
                q[at] += share * (loops.end[at] - q[at])
                continue
            p = load_quat(q, at)
            turn = quat_log(quat_mul(quat_conj(p), load_quat(loops.end, at)))
            store_quat(q, at, quat_normalize(quat_mul(p, quat_exp(scale(share, turn)))))
            clamp_block(problem.variables, problem.limits, k, q)
        if not close_again(loops, problem, q, False):
            return


@entry
def close_rows(ints, floats, q, scratch, lacks, most, limited):
    """Close each row of q (T, nq) by at most ``most`` steps; write the final closure errors to ``lacks`` (T, loops).

    The closure error of a loop is the largest of its rows, in radians or length scales. Mimic joints are not updated.
    With ``limited``, each variable stays within its largest move.
    """
    problem = open_mechanism(ints, floats, scratch)
    loops = problem.loops
    h = open_levels(loops.scratch, loops.J.shape[0], loops.J.shape[1])
    for t in range(q.shape[0]):
        remember_start(loops, problem, q[t])
        close(loops, problem, q[t], limited, most)
        forward(problem.tree, q[t], loops.frames)
        for k in range(loops.ints.shape[0]):
            lacks[t, k] = lack_of(problem, q[t], loops.frames, k, h.e)


@entry
def write_rows(ints, floats, q, scratch, e, J):
    """Write the loop residual e (T, rows) and minus its derivative J (T, rows, columns) of each row of q (T, nq).

    Lengths are in length scales.
    """
    problem = open_mechanism(ints, floats, scratch)
    for t in range(q.shape[0]):
        forward(problem.tree, q[t], problem.loops.frames)
        loop_residual(problem.loops, problem, q[t], problem.loops.frames, e[t])
        J[t] = F(0)
        loop_rows(problem.loops, problem, q[t], problem.loops.frames, J[t])
