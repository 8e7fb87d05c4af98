"""Two-bone limbs in closed form: the middle joint sets the distance of the tip, the root points the limb at the target.

The law of cosines gives the bend, the smallest rotation gives the direction, and one angle about the line from root to
tip gives the plane of the bend (pole, twist). The equations are in ``two_segments``. Each goal has its own limb.
The bend stays within the limits of its joint. The plane rotates by the smallest angle that brings the root within its
limits. If no angle does, root and middle joint alternately take their best rotations within the limits, as in cyclic
descent.
"""

import numpy as np

from synovia.kernels.closed_form.blend import blend_answer, load_start, open_values, solve_in_order
from synovia.kernels.closed_form.limbs import (
    bend_joint,
    descend_limb,
    limb_of,
    pole_swivel,
    prove_limbs,
    tip_of,
    wrist_of,
)
from synovia.kernels.compiler.jit import F, algorithm, device, entry
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.goals.residuals import residual
from synovia.kernels.layout import BLEND, PACE, PARTS, POSITION, SOFTEN, TWIST
from synovia.kernels.math.rotations import matmul_t, matrix_quat, quat_apply, quat_mul
from synovia.kernels.math.two_segments import (
    FLAT,
    aim_limb,
    distance_curve,
    distance_range,
    soften,
    turn_about,
    turn_to_distance,
)
from synovia.kernels.math.vectors import add, norm, normalize, scale, sub
from synovia.kernels.search.multistart import Begins, Search
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.ball import nearest_allowed_swivel, no_wrist, rotate_ball
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_general, open_work


@device
def solve_limb(problem, work, targets, q, g):
    """Write the joint values of goal g's limb; work.frames are at q."""
    limb = limb_of(problem, work.frames, targets, q, g)
    bend = distance_curve(limb.U, limb.V, limb.n, limb.lower, limb.upper)
    way = sub(limb.t, limb.A)
    d = soften(norm(way), distance_range(bend)[1], problem.params[SOFTEN])
    if norm(way) <= FLAT * problem.reach:  # the target is at the root: any direction is correct
        way = add(limb.U, limb.V)
    line = normalize(way, normalize(limb.U, limb.n))
    copy(q, work.trial)
    bent = bend_joint(problem, work.frames, q, limb, turn_to_distance(bend, d, F(0)))
    aimed = aim_limb(limb.U, limb.V, quat_apply(bent, limb.V), limb.n, line)
    first = open_values(problem, work).motion[0] == np.inf
    wanted, found = pole_swivel(problem, limb, targets, aimed, line, problem.params[TWIST])
    if found and not first:  # in a track the swivel per frame is bounded by the motion of the targets
        most = problem.params[PACE] * open_values(problem, work).motion[0] / problem.reach
        wanted = min(max(wanted, -most), most)
    elif not found and first:
        wanted = problem.params[TWIST]
    wrist = wrist_of(problem, work.frames, targets, q, limb, g, quat_mul(aimed, bent))
    turn, inside = nearest_allowed_swivel(problem, work.frames, q, limb.root, aimed, line, wrist, wanted)
    if limb.tip >= 0 and not inside:  # no swivel satisfies the wrist too: the position has priority
        turn, inside = nearest_allowed_swivel(problem, work.frames, q, limb.root, aimed, line, no_wrist(), wanted)
    rotate_ball(problem, work.frames, q, limb.root, quat_mul(turn_about(line, turn), aimed))
    forward(problem.tree, q, work.frames)
    if not inside:
        goal_at = add(limb.A, scale(d, line))
        if norm(sub(add(add(limb.A, limb.U), limb.V), goal_at)) <= norm(
            sub(tip_of(problem, work.frames, limb, g), goal_at)
        ):
            copy(work.trial, q)  # restore the start, so that solving an answer again returns it unchanged
        descend_limb(problem, work, q, limb, goal_at, g)
    if limb.tip >= 0:
        T, _ = target_frame(targets, g)
        R, _ = goal_frame(problem, work.frames, g)
        rotate_ball(problem, work.frames, q, limb.tip, matrix_quat(matmul_t(T, R)))
        forward(problem.tree, q, work.frames)


@algorithm
def attempt(problem, work, targets, q):
    """Solve each limb, beginning at the start or, in a track, at the last answer; then blend with the first start."""
    load_start(problem, work, q)
    forward(problem.tree, q, work.frames)
    for g in range(problem.goals.shape[0]):
        if problem.goals[g, PARTS] & POSITION:
            solve_limb(problem, work, targets, q, g)
    blend_answer(problem, work, q, problem.params[BLEND])
    cost, _ = residual(problem, q, work.frames, targets, work.e)
    return 1, cost


SEARCH = Search(attempt, random_start, prove_limbs)


@entry
def two_bone(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve a batch of problems, one after the other; see ``search.multistart``."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    return solve_in_order(SEARCH, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
