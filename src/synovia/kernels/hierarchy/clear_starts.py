"""Where a restart with clearance goals begins: at a pose that meets the other goals and is as clear as possible.

A descent that keeps its distance and begins at a random pose often ends in front of an obstacle. On an arm among 20
obstacles it reached 28 % of the harder targets. So the other goals are met first, without clearance, from several
random poses; this takes few and cheap steps. The attempt starts at the pose that lacks the least distance. From such
poses, it reached 77 %, mostly within five steps.
"""

import math

from synovia.kernels.compiler.jit import F, apart, perform
from synovia.kernels.compiler.views import matrix
from synovia.kernels.compiler.watch import halted
from synovia.kernels.goals.clearance import clearance_residual, ignore_contacts
from synovia.kernels.hierarchy.descent import descend_levels, open_hierarchy
from synovia.kernels.hierarchy.step import evaluate_levels
from synovia.kernels.layout import FINALISTS, NO_POSTURE, OTHERS, POSE_MORE
from synovia.kernels.search.restarts import random_start
from synovia.kernels.tree.problem import copy, with_steps

DRAWS = 24  # random poses of one restart, at most; the first one that keeps its distance is the last
STEPS = 25  # of each descent without clearance: 97 % of those that meet the goals take fewer
HOPELESS = 16  # draws one after the other that missed other goals; then a restart has one draw
MISSED_DRAWS = OTHERS + 1  # place in the watch of their number, after that of the next restart
MISSED = F(1e30)  # in place of the distance that a pose lacks, in tolerances, if it misses another goal
GIVEN, CLEAREST = 1, 2  # rows of the stored poses, which only finishing needs: the start of the problem, the best pose


@apart
def begin_draws(work):
    """Begin to count the draws that miss."""
    work.watch[MISSED_DRAWS] = F(0)


@apart
def draw_clear(problem, work, targets, q):
    """Write the start of a restart to q, which holds the start of the problem; return the steps that this took."""
    poses = matrix(work.watch, OTHERS, FINALISTS + 1, q.shape[0] + POSE_MORE)
    h = open_hierarchy(problem, work)
    copy(q, poses[GIVEN])
    copy(q, poses[CLEAREST])
    least = F(math.inf)
    steps = 0
    for _ in range(DRAWS if work.watch[MISSED_DRAWS] < F(HOPELESS) else 1):
        for i in range(q.shape[0]):
            q[i] = poses[GIVEN, i]
        perform(random_start, problem, work, targets, q)
        ignore_contacts(problem.clear, True)
        h.state[NO_POSTURE] = F(1)
        steps += descend_levels(with_steps(problem, STEPS), work, targets, q, h, problem.levels.shape[0])[0]
        met = evaluate_levels(problem, work, targets, q, h) <= F(1)
        h.state[NO_POSTURE] = F(0)
        ignore_contacts(problem.clear, False)
        lack = clearance_residual(problem.clear, problem, work.frames, work.e)[1] if met else MISSED
        work.watch[MISSED_DRAWS] = F(0) if met else work.watch[MISSED_DRAWS] + F(1)
        if lack < least:
            least = lack
            copy(q, poses[CLEAREST])
        if least <= F(1) or halted(work.watch):
            break
    for i in range(q.shape[0]):
        q[i] = poses[CLEAREST, i]
    return steps
