"""Relative goal: a frame on a joint has a target position, a rotation, or both, in the frame of another joint."""

from synovia.kernels.compiler.jit import device, inline
from synovia.kernels.goals.frames import add_frame_rows, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, other_frame
from synovia.kernels.layout import ANGLES, FIRST, GOAL, GOAL_ROW, LENGTHS, OTHER_ROW, POSITION, ROTATION, WEIGHT
from synovia.kernels.math.rotations import apply, apply_t, log_rotation, matmul, matmul_t, transposed
from synovia.kernels.math.vectors import add, sub


@inline
def wanted(problem, frames, targets, term):
    """Return the world frame (R, p) of the target, which is given in the frame of the other joint."""
    R, p = other_frame(problem, frames, term)
    T, t = target_frame(targets, problem.general.ints[term, GOAL])
    return matmul(R, T), add(p, apply(R, t))


@inline
def error(problem, frames, targets, term):
    """Return the vector to the target position and the rotation vector to the target, 0 for a part without a target."""
    general = problem.general
    R, p = goal_frame(problem, frames, general.ints[term, GOAL])
    T, t = wanted(problem, frames, targets, term)
    w = log_rotation(matmul_t(T, R)) if general.ints[term, ANGLES] > 0 else NOTHING
    return sub(t, p) if general.ints[term, LENGTHS] > 0 else NOTHING, w


@device
def rows(problem, q, frames, targets, term, J):
    """Write the Jacobian rows: the rows for a fixed target, minus the motion of the target with the other joint."""
    general = problem.general
    g, k, w = general.ints[term, GOAL], general.ints[term, FIRST], general.data[term, WEIGHT]
    parts = (POSITION if general.ints[term, LENGTHS] > 0 else 0) | (ROTATION if general.ints[term, ANGLES] > 0 else 0)
    _, p = goal_frame(problem, frames, g)
    _, t = wanted(problem, frames, targets, term)
    add_frame_rows(problem, q, frames, problem.goals[g, GOAL_ROW], p, parts, k, w / problem.reach, w, J)
    add_frame_rows(problem, q, frames, general.ints[term, OTHER_ROW], t, parts, k, -w / problem.reach, -w, J)


@inline
def start_target(problem, frames, term):
    """Return the target that keeps the start: the present frame, in the frame of the other joint."""
    R, p = goal_frame(problem, frames, problem.general.ints[term, GOAL])
    S, s = other_frame(problem, frames, term)
    return matmul(transposed(S), R), apply_t(S, sub(p, s))
