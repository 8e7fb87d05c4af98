"""Relative goal: a frame on a joint has a target position, rotation or both in the frame of another joint."""

from synovia.kernels.compiler.jit import device, inline
from synovia.kernels.goals.frames import add_frame_rows, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, second_frame
from synovia.kernels.layout import ANGLES, FIRST, GOAL, GOAL_ROW, LENGTHS, POSITION, ROTATION, SECOND, WEIGHT
from synovia.kernels.math.rotations import apply, apply_t, log_rotation, matmul, matmul_t, transposed
from synovia.kernels.math.vectors import add, sub


@inline
def wanted(problem, frames, targets, h):
    """Return the target (R, p), given in the frame of the other joint, in the world."""
    R, p = second_frame(problem, frames, h)
    T, t = target_frame(targets, problem.general.ints[h, GOAL])
    return matmul(R, T), add(p, apply(R, t))


@inline
def error(problem, frames, targets, h):
    """Return the vector to the target position and the rotation vector onto the target, each 0 if not part of it."""
    f = problem.general
    R, p = goal_frame(problem, frames, f.ints[h, GOAL])
    T, t = wanted(problem, frames, targets, h)
    w = log_rotation(matmul_t(T, R)) if f.ints[h, ANGLES] > 0 else NOTHING
    return sub(t, p) if f.ints[h, LENGTHS] > 0 else NOTHING, w


@device
def rows(problem, q, frames, targets, h, J):
    """Write the Jacobian rows: those for a fixed target, less the motion of the target with the other joint."""
    f = problem.general
    g, k, w = f.ints[h, GOAL], f.ints[h, FIRST], f.data[h, WEIGHT]
    parts = (POSITION if f.ints[h, LENGTHS] > 0 else 0) | (ROTATION if f.ints[h, ANGLES] > 0 else 0)
    _, p = goal_frame(problem, frames, g)
    _, t = wanted(problem, frames, targets, h)
    add_frame_rows(problem, q, frames, problem.goals[g, GOAL_ROW], p, parts, k, w / problem.reach, w, J)
    add_frame_rows(problem, q, frames, f.ints[h, SECOND], t, parts, k, -w / problem.reach, -w, J)


@inline
def start_target(problem, frames, h):
    """Return the target that keeps the start: the present frame, in the frame of the other joint."""
    R, p = goal_frame(problem, frames, problem.general.ints[h, GOAL])
    S, s = second_frame(problem, frames, h)
    return matmul(transposed(S), R), apply_t(S, sub(p, s))
