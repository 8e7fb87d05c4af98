"""A solve in parts, for residuals that are Python: what the kernels do between two calls of a user's function."""

import numpy as np

from synovia.kernels.compiler.jit import entry, perform
from synovia.kernels.compiler.views import bits
from synovia.kernels.goals.reach import prove
from synovia.kernels.goals.residuals import (
    complete_targets,
    measure,
    refused_target,
    replace_targets,
    residual,
    to_units,
)
from synovia.kernels.jacobian.clamps import clamp_errors, clamp_largest
from synovia.kernels.jacobian.derivative import write_jacobian
from synovia.kernels.jacobian.descent import PUSHES, hold_at_limits, largest, length
from synovia.kernels.jacobian.methods import limited_step
from synovia.kernels.jacobian.null_space import first_gain, free_motion
from synovia.kernels.jacobian.secondary import write_wish
from synovia.kernels.jacobian.workspace import open_room
from synovia.kernels.layout import LARGEST_ERROR, LARGEST_TURN, STATE
from synovia.kernels.math.linear import times_t
from synovia.kernels.search.multistart import follow
from synovia.kernels.search.restarts import scatter
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import copy, open_any, open_work
from synovia.kernels.tree.variables import seed_state, step


@entry
def begin(ints, floats, targets, q, kept, scratch, follows):
    """Complete the targets of one problem from its start, with ``follows`` over those kept; return who is refused."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    refused = refused_target(problem, targets)
    if refused < 0:
        if follows:
            replace_targets(problem, targets, kept)
        else:
            forward(problem.tree, q, work.frames)
            complete_targets(problem, work.frames, targets, kept)
    return refused


@entry
def assess(ints, floats, q, kept, scratch, e, J, errors):
    """Write residual, Jacobian and errors of the built-in goals at q; return the largest error in tolerances."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    forward(problem.tree, q, work.frames)
    residual(problem, q, work.frames, kept, work.e)
    copy(work.e, e)
    write_jacobian(problem, work, kept, q)
    for i in range(J.shape[0]):
        copy(work.J[i], J[i])
    return measure(problem, q, work.frames, kept, errors)


@entry
def advance(ints, floats, q, scratch, e, J, method, damping):
    """Step q by a method of the family from any residual and Jacobian, within the limits; return the largest part."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    copy(e, work.e)
    for i in range(J.shape[0]):
        copy(J[i], work.J[i])
    clamp_errors(problem, work.e, problem.own[LARGEST_ERROR])
    limited_step(problem, work, open_room(work), q, np.int64(method), damping, problem.own[LARGEST_TURN])
    size = largest(work.dq)
    to_units(problem, work.dq)
    step(problem.variables, problem.limits, q, work.dq, 1.0)
    follow(problem, q)
    return size


@entry
def wish_at(ints, floats, q, kept, scratch, wish):
    """Write ∇H of rest goals and of the null space's own terms at q, by column; return the first gain of a slide."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    write_wish(problem, work, kept, q, wish)
    return first_gain(problem)


@entry
def slip(ints, floats, q, scratch, J, wish, gain, most):
    """Step q by -gain (1 - J⁺J) ∇H, no part larger than ``most``, within the limits; return what the largest was."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    room = open_room(work)
    for i in range(J.shape[0]):
        copy(J[i], work.J[i])
    copy(wish, room.wish)
    free_motion(problem, work, room, q, gain)
    size = largest(room.z)
    clamp_largest(room.z, most)
    copy(room.z, work.dq)
    to_units(problem, work.dq)
    step(problem.variables, problem.limits, q, work.dq, 1.0)
    follow(problem, q)
    return size


@entry
def proved(ints, floats, q, kept, scratch):
    """Return 1 if a target is out of reach whatever the limits, else 0."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    forward(problem.tree, q, work.frames)
    return perform(prove, problem, work, kept, q)[0]


@entry
def restart(ints, floats, q, kept, scratch, attempt):
    """Fill q with the random start of an attempt."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    seed_state(bits(work.watch, STATE, 1), problem.seed, attempt)
    perform(scatter, problem, work, kept, q)
    follow(problem, q)


@entry
def held_back(ints, floats, q, scratch, e, J):
    """Take what limits hold out of J; return (largest part of Jᵀe that is left, largest that a limit holds)."""
    problem, work = open_any(ints, floats), open_work(ints, scratch)
    times_t(J, e, work.g)
    most, _ = hold_at_limits(problem, q, J, work.g, PUSHES * length(e), False)
    return largest(work.g), most
