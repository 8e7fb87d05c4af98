"""CCD on one chain of unlimited balls with one position goal (Wang & Chen 1991; Welman 1993).

From the tip to the root, each ball takes the smallest rotation that points the effector at the target. A rotation moves
only the joints below, so a sweep needs only the frames at its start and the present effector. ``ccd`` does the same on
any tree, with limits and stiffness.
"""

import math

from synovia.kernels.compiler.jit import F, algorithm, entry, step
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.heuristic.loop import iterate_from, solve_and_finish
from synovia.kernels.layout import FIRST_Q, SMALLEST_TURN
from synovia.kernels.math.rotations import (
    apply_t,
    load_quat,
    origin_of,
    quat_between,
    quat_mul,
    quat_normalize,
    rotation_of,
    store_quat,
)
from synovia.kernels.math.vectors import TINY, axpy, dot, sub
from synovia.kernels.search.multistart import Begins
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work


@step
def sweep(problem, work, targets, q):
    """Rotate every joint once, from the tip to the root; return the largest angle (radians)."""
    tree = problem.tree
    smallest = problem.params[SMALLEST_TURN]
    _, tip = goal_frame(problem, work.frames, 0)
    _, t = target_frame(targets, 0)
    most = F(0)
    for i in range(tree.ints.shape[0] - 1, -1, -1):
        o = origin_of(work.frames, i)
        lever, wanted = sub(tip, o), sub(t, o)
        size2, away2 = dot(lever, lever), dot(wanted, wanted)
        if min(size2, away2) <= TINY * problem.reach * problem.reach:
            continue
        x, y, z, w = quat_between(lever, wanted)
        angle = F(2) * math.atan2(math.sqrt(x * x + y * y + z * z), w)
        if angle <= smallest:
            continue
        most = max(most, angle)
        at = tree.ints[i, FIRST_Q]
        turn = apply_t(rotation_of(work.frames, i), (x, y, z))
        store_quat(q, at, quat_normalize(quat_mul(load_quat(q, at), (turn[0], turn[1], turn[2], w))))
        tip = axpy(math.sqrt(size2 / away2), wanted, o)
    forward(tree, q, work.frames)
    return most, F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Sweep until the goal is met or sweeps gain too little."""
    return iterate_from(sweep, problem, work, targets, q)


@entry
def ccd_chain(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems of one chain; see ``search.multistart``."""
    problem, work = open_problem(ints, floats), open_work(ints, scratch)
    return solve_and_finish(attempt, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
