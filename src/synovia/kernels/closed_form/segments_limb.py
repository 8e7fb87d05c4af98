"""Limbs in closed form: shoulder and elbow place the wrist, the wrist takes the rotation, the swivel is free.

Ball, hinge and ball have seven degrees of freedom for the six of a pose. The seventh is the swivel, a turn of the whole
limb about the line from shoulder to wrist (Tolani, Goswami & Badler 2000). For each bend that brings the wrist to its
distance, the swivel is as near to the pole, or to the start pose, as the limits of shoulder and wrist allow.
The code calls the three joints root, mid and tip.
"""

from synovia.kernels.closed_form.limbs import bend_joint, limb_of, pole_swivel, prove_limbs, wrist_of
from synovia.kernels.closed_form.selection import choose, list_branches, open_branches, put_candidate
from synovia.kernels.compiler.jit import F, algorithm, device, entry, perform
from synovia.kernels.goals.frames import goal_frame, target_frame
from synovia.kernels.layout import LIST, PARTS, POSITION
from synovia.kernels.math.rotations import matmul_t, matrix_quat, quat_apply, quat_mul
from synovia.kernels.math.two_segments import FLAT, aim_limb, branch_turn, distance_curve, turn_about, turn_to_distance
from synovia.kernels.math.vectors import add, norm, normalize, sub
from synovia.kernels.search.multistart import Begins, Search, solve_rows
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.ball import nearest_allowed_swivel, rotate_ball
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_general, open_work


@device
def one_branch(problem, work, targets, q, g, limb, turn):
    """Write the joint values of a limb whose bend changes by ``turn``.

    work.frames are those of the start; they are overwritten.
    """
    way = sub(limb.t, limb.A)
    if norm(way) <= FLAT * problem.reach:
        way = add(limb.U, limb.V)
    line = normalize(way, normalize(limb.U, limb.n))
    bent = bend_joint(problem, work.frames, q, limb, turn)
    aimed = aim_limb(limb.U, limb.V, quat_apply(bent, limb.V), limb.n, line)
    wanted, _ = pole_swivel(problem, limb, targets, aimed, line, F(0))
    wrist = wrist_of(problem, work.frames, targets, q, limb, g, quat_mul(aimed, bent))
    swivel, _ = nearest_allowed_swivel(problem, work.frames, q, limb.root, aimed, line, wrist, wanted)
    rotate_ball(problem, work.frames, q, limb.root, quat_mul(turn_about(line, swivel), aimed))
    if limb.tip >= 0:
        forward(problem.tree, q, work.frames)
        T, _ = target_frame(targets, g)
        R, _ = goal_frame(problem, work.frames, g)
        rotate_ball(problem, work.frames, q, limb.tip, matrix_quat(matmul_t(T, R)))


@algorithm
def branches(problem, work, targets, q):
    """Write all candidates to the scratch memory; return how many. q is unchanged."""
    copy(q, work.trial)
    g = 0
    while not problem.goals[g, PARTS] & POSITION:
        g += 1
    forward(problem.tree, q, work.frames)
    limb = limb_of(problem, work.frames, targets, q, g)
    bend = distance_curve(limb.U, limb.V, limb.n, limb.lower, limb.upper)
    d = norm(sub(limb.t, limb.A))
    count = 0
    for side in (F(1), F(-1)):
        turn, found = branch_turn(bend, d, side, F(0))
        if found or (count == 0 and side < F(0)):  # if no bend gives the distance, use the nearest bend
            one_branch(problem, work, targets, q, g, limb, turn if found else turn_to_distance(bend, d, F(0)))
            put_candidate(problem, q, open_branches(work).candidates, count)
            count += 1
            copy(work.trial, q)
            forward(problem.tree, q, work.frames)
    return count, F(0)


@algorithm
def attempt(problem, work, targets, q):
    """Take the best of the candidates and q itself, see ``selection.pick``."""
    count, _ = perform(branches, problem, work, targets, q)
    return choose(problem, work, targets, q, open_branches(work).candidates, count)


SEARCH = Search(attempt, random_start, prove_limbs)


@entry
def segments_limb(ints, floats, targets, starts, out, scratch, warm, first):
    """Solve problems (see ``search.multistart``) or, if ``first`` is LIST, list branches (see ``list_branches``)."""
    problem, work = open_general(ints, floats), open_work(ints, scratch)
    if first == LIST:
        return list_branches(branches, problem, work, targets, starts, out)
    return solve_rows(SEARCH, problem, work, targets, Begins(starts, ints, floats), out, warm, first)
