"""Relative: a frame on a joint has a position, a rotation or both in the frame of another joint."""

from synovia.kernels.compiler.jit import device, inline
from synovia.kernels.goals.frames import climb, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, second_frame
from synovia.kernels.layout import ANGLES, FIRST, GOAL, GOAL_ROW, LENGTHS, POSITION, ROTATION, SECOND, WEIGHT
from synovia.kernels.math.rotations import apply, log_rotation, matmul, matmul_t
from synovia.kernels.math.vectors import add, sub


@inline
def wanted(problem, frames, targets, h):
    """Return in the world the target (R, p) that is given in the frame of the other joint."""
    R, p = second_frame(problem, frames, h)
    T, t = target_frame(targets, problem.general.ints[h, GOAL])
    return matmul(R, T), add(p, apply(R, t))


@inline
def error(problem, frames, targets, h):
    """Return the vector to the place and the rotation vector onto the orientation, as far as the goal has them."""
    f = problem.general
    R, p = goal_frame(problem, frames, f.ints[h, GOAL])
    T, t = wanted(problem, frames, targets, h)
    w = log_rotation(matmul_t(T, R)) if f.ints[h, ANGLES] > 0 else NOTHING
    return sub(t, p) if f.ints[h, LENGTHS] > 0 else NOTHING, w


@device
def rows(problem, q, frames, targets, h, J):
    """Write the rows: as of a target in the world, less what the other joint does to the target."""
    f = problem.general
    g, k, w = f.ints[h, GOAL], f.ints[h, FIRST], f.data[h, WEIGHT]
    what = (POSITION if f.ints[h, LENGTHS] > 0 else 0) | (ROTATION if f.ints[h, ANGLES] > 0 else 0)
    _, p = goal_frame(problem, frames, g)
    _, t = wanted(problem, frames, targets, h)
    climb(problem, q, frames, problem.goals[g, GOAL_ROW], p, what, k, w / problem.reach, w, J)
    climb(problem, q, frames, f.ints[h, SECOND], t, what, k, -w / problem.reach, -w, J)


@inline
def kept(problem, frames, h):
    """Return where the frame is now, in the frame of the other joint."""
    R, p = goal_frame(problem, frames, problem.general.ints[h, GOAL])
    S, s = second_frame(problem, frames, h)
    back = (S[0], S[3], S[6], S[1], S[4], S[7], S[2], S[5], S[8])
    return matmul(back, R), apply(back, sub(p, s))
