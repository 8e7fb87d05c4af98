"""Poles of the heuristics: after an attempt at the pose goals, limbs rotate about their lines from root to tip.

Root and tip keep their positions. No error of a pose goal grows beyond its tolerance, or beyond the largest error
before if that is larger. Each rotation brings the middle joint to the point of its circle that is nearest to the pole.
With a pole for every inner joint of a chain, sweeps in the order of the goals lower the sum of the squared distances to
the poles. The ball at the root of the limb makes the rotation; a limb with another joint as its root does not rotate.
The ball at the tip of the limb rotates back, so that the joints below keep their orientation. If a limit cuts the
rotation of the root, a ball in the middle points at the old position of the tip. If this does not help, the limb
rotates as far as it can.

Letters: ``r``, ``m`` and ``t`` are the root, the middle and the tip of a limb.
"""

from synovia.kernels.compiler.jit import F, device, inline, perform
from synovia.kernels.compiler.watch import stopped
from synovia.kernels.goals.general import POLE, general_residual
from synovia.kernels.goals.residuals import residual
from synovia.kernels.goals.swivel import limb, pole_is_held, swivel_to_pole
from synovia.kernels.goals.term import tip_point
from synovia.kernels.layout import BALL, BLOCK_Q, FREE, GOAL, GOAL_ROW, KIND, OTHER_ROW, TIP_POINT, TIP_ROW, VARIABLE
from synovia.kernels.math.rotations import (
    apply_t,
    frame_of,
    load_quat,
    log_rotation,
    matmul_t,
    quat_exp,
    quat_mul,
    quat_normalize,
    rotation_of,
    store_quat,
)
from synovia.kernels.math.swing_twist import project
from synovia.kernels.math.vectors import load, norm, scale, sub
from synovia.kernels.search.descent import INSIDE
from synovia.kernels.search.multistart import set_followers
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, pose_goals_only
from synovia.kernels.tree.turn import add_direction, turn_ball, zero_covariance
from synovia.kernels.tree.variables import is_limited

TRIALS = 30  # number of bisections in the search for the largest angle that limits and pose goals allow
DONE = F(0.99)  # fraction of the wanted angle; below it, a limit has cut the rotation
SMALLEST_SWEEP = F(1e-3)  # fraction of the angle tolerance: sweeps end when the largest rotation is smaller
AT_JOINT = F(1e-9)  # fraction of the length scale: a tip nearer to its joint counts as at the joint
LEAST_TURN = F(1e-12)  # radians: smaller rotations are skipped
NOT_MADE = F(1e300)  # cost of an attempt that was skipped


@inline
def turns_as_ball(problem, row):
    """Return whether a row is a ball or a free joint that can rotate; False for row -1, the world."""
    kind = problem.tree.ints[row, KIND] if row >= 0 else -1
    return (kind == BALL or kind == FREE) and problem.tree.ints[row, VARIABLE] >= 0


@device
def turn_row(problem, q, frames, row, w):
    """Rotate the ball of a row by the world rotation vector w, as far as its limit allows; update the frames."""
    k = problem.tree.ints[row, VARIABLE]
    at = problem.variables[k, BLOCK_Q]
    new = quat_normalize(quat_mul(load_quat(q, at), quat_exp(apply_t(rotation_of(frames, row), w))))
    store_quat(q, at, project(problem.limits, k, new) if is_limited(problem.limits, k) else new)
    forward(problem.tree, q, frames)


@device
def swivel_limb(problem, work, targets, q, term, angle):
    """Rotate the limb of a pole goal about its line by an angle (radians), within the limits."""
    ints, frames = problem.general.ints, work.frames
    root, middle, tip_row = ints[term, OTHER_ROW], problem.goals[ints[term, GOAL], GOAL_ROW], ints[term, TIP_ROW]
    r, _, t, _ = limb(problem, frames, targets, term)
    line = sub(t, r)
    is_joint = norm(load(problem.general.data, term, TIP_POINT)) <= AT_JOINT * problem.reach  # else it moves the tip
    turns_back = is_joint and tip_row != root and tip_row != middle and turns_as_ball(problem, tip_row)
    before = rotation_of(frames, tip_row if turns_back else root)  # unused unless turns_back
    turn_row(problem, q, frames, root, scale(angle / norm(line), line))
    if middle != root and middle != tip_row and turns_as_ball(problem, middle):
        k = problem.tree.ints[middle, VARIABLE]
        R, o = frame_of(frames, middle)
        covariance = add_direction(zero_covariance(), F(1), sub(tip_point(problem, frames, term), o), sub(t, o))
        turn_ball(problem, k, q, problem.variables[k, BLOCK_Q], R, covariance, LEAST_TURN, F(0))
        forward(problem.tree, q, frames)
    if turns_back:
        turn_row(problem, q, frames, tip_row, log_rotation(matmul_t(before, rotation_of(frames, tip_row))))


@device
def approach_pole(problem, work, targets, q, term):
    """Rotate the limb of a pole goal towards its pole, as far as limits and pose goals allow; return the angle.

    The angle is in radians. If the whole rotation is not allowed, bisect its share.
    """
    wanted = swivel_to_pole(problem, work, targets, term)
    if wanted == F(0) or not turns_as_ball(problem, problem.general.ints[term, OTHER_ROW]):
        return F(0)
    pose_only = pose_goals_only(problem)
    _, worst = residual(pose_only, q, work.frames, targets, work.e)
    copy(q, work.trial)
    low = F(0)
    high = F(1)
    share = F(1)
    for _ in range(TRIALS):
        swivel_limb(problem, work, targets, q, term, share * wanted)
        _, now = residual(pose_only, q, work.frames, targets, work.e)
        left = abs(swivel_to_pole(problem, work, targets, term))
        if now <= max(worst, INSIDE) and left <= (F(1) - DONE * share) * abs(wanted):
            if share == F(1):
                return abs(wanted)
            low = share
        else:
            high = share
        share = F(0.5) * (low + high)
        copy(work.trial, q)
        forward(problem.tree, q, work.frames)
    if low > F(0):
        swivel_limb(problem, work, targets, q, term, low * wanted)
    return low * abs(wanted)


@inline
def attempt_with_poles(attempt, problem, work, targets, q):
    """Meet the pose goals by a separate attempt, then rotate the limbs to their poles in sweeps.

    Returns:
        (steps and sweeps, cost). In the cost, one radian of a pole weighs as much as the tolerance of a position.
    """
    if pole_is_held(problem, work):
        return 0, NOT_MADE
    steps, cost = perform(attempt, pose_goals_only(problem), work, targets, q)
    set_followers(problem, q)
    forward(problem.tree, q, work.frames)
    while (
        steps < problem.max_steps
        and not stopped(work.watch, problem.general.ints.shape[0] * TRIALS * problem.tree.ints.shape[0])
        and general_residual(problem.general, problem, q, work.frames, targets, work.e)[1] > INSIDE
    ):
        steps += 1
        most = F(0)
        for term in range(problem.general.ints.shape[0]):
            if problem.general.ints[term, KIND] == POLE:
                most = max(most, approach_pole(problem, work, targets, q, term))
        set_followers(problem, q)
        if most <= SMALLEST_SWEEP * problem.tolerance_angle:
            break
    cost, _ = residual(pose_goals_only(problem), q, work.frames, targets, work.e)
    pole_cost, _ = general_residual(problem.general, problem, q, work.frames, targets, work.e)
    small = problem.tolerance / problem.reach
    return steps, cost + small * small * pole_cost
