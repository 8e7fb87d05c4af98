"""One compiled problem: skeleton, goals, tolerances and settings in two flat arrays, and its answer in one flat row.

Python packs a problem once into ``ints`` and ``floats`` (an argument costs 50 ns a call, so few arrays are passed); the
kernels open them as named tables, which costs nothing inside compiled code. The tree of a problem holds only what its
goals need: joints on the way from the root to a goal, fixed joints merged into their neighbours. q stays whole.

Position and rotation goals are the plain part. Further goals (see ``general``) have tables of their own, which only
``open_any`` opens: a kernel that opens its problem with ``open_problem`` is compiled without a line of them.

Lengths inside the solvers are divided by the reach: a residual of 1 is as far as the body reaches, or one radian.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.compiler.views import matrix, vector
from synovia.kernels.compiler.watch import WATCH, begin_watch
from synovia.kernels.tree.forward import Tree

# Places in the head of ``ints``
N_ROWS, N_VARIABLES, N_GOALS, N_RESIDUALS, N_COLUMNS, N_Q, N_FOLLOWERS = 0, 1, 2, 3, 4, 5, 6
MAX_STEPS, ATTEMPTS, SEED, PATIENCE, COUPLED = 7, 8, 9, 10, 11
N_LEVELS, N_FURTHER, N_MASSES, N_VERTICES, FURTHER_INTS, FURTHER_FLOATS = 12, 13, 14, 15, 16, 17  # the last two: places
INT_HEAD = 18
NEWTON_COLUMNS = 128  # with more, second derivatives cost more than the steps that they save
# Places in the head of ``floats``; the solver's own settings follow from OWN on
TOLERANCE, TOLERANCE_ANGLE, REACH, MOST_WORK, OWN = 0, 1, 2, 3, 4
FLOAT_HEAD = 20
# Places in the head of a row of the answer; then q, errors (2 a goal), targets (16 a goal)
STATUS, STEPS, TRIES, WINNER, COST = 0, 1, 2, 3, 4
FINISH, CUT = 5, 6  # steps of the last descent, by another method; what ended it early, see ``watch``: 0 if nothing
RESTED = -1.0  # at CUT: the last attempt gained nothing, so the steps that were spent are not what held it up
OUT_HEAD = 7
# What a goal asks for
POSITION, ROTATION = 1, 2
# How a solve ends; a negative number -1 - g refuses the target of goal g
REACHED, UNREACHABLE, CONFLICT, LIMITED, STALLED, STEPS_SPENT = 0, 1, 2, 3, 4, 5
TARGET = (
    17  # numbers of a target: a 4x4 transform, and which parts are given (POSITION, ROTATION; 0: stay at the start)
)
GOAL = (
    14  # numbers of a goal: weights of position and rotation, rotation (9) and position (3) of its point on the joint
)


STATE = WATCH  # places in the beginning of the scratch memory, see ``Work.watch``
OTHERS = STATE + 1
FRAME = 12  # numbers of a row's frame in scratch memory; with 16, LLVM takes twice as long
ASK = 5  # integers of a goal
POSTURE = 5  # numbers of a variable's part in a rest goal
FINALISTS = 3  # poses that the search for the best of a miss takes to the end, see ``lowest``
FURTHER_ASK, FURTHER = 10, 24  # integers and numbers of a further goal


class Further(NamedTuple):
    """What goals ask for beyond a position and a rotation in the world; see ``general``.

    ``ints[h]``: kind, its goal, first residual row, residual rows of lengths and of angles, parts of its target that
    can be given, rows of a second and a third joint (-1: the world), first vertex and number of vertices.
    ``data[h]``: root of the weight, frame on the second joint (12), point on the third (3), numbers of the kind (8).
    ``masses[i]``: of all that row i carries rigidly, as a part of the whole: mass, then mass times its place in the
    row's frame (3); the last row is what nothing moves. Empty without a goal for the centre of mass.
    ``vertices``: corners of support polygons, counterclockwise about up.
    """

    ints: NDArray[np.int32]
    data: NDArray[np.float64]
    masses: NDArray[np.float64]
    vertices: NDArray[np.float64]


class Problem(NamedTuple):
    """A skeleton with goals, as the solvers read it.

    ``tree.ints`` has a sixth column: the variable of the row's hinge, slide or rotation, -1 if held (a free joint's
    translation is the three variables before it).
    ``variables``, ``limits``: what may move (see ``variables``).
    ``likes[k]``: preferred value of a variable (a ball prefers its rest), and its stiffness.
    ``goals[g]``: what it asks for, row of its joint (-1: the world), first residual row, level, residual rows.
    ``levels``: first residual row of each level of priority, 0 the highest, then the number of rows: the rows of a
    level stand together.
    ``goal_data[g]``: square roots of the weights (2), then the goal's frame on its joint: rotation (9), position (3).
    Weights are relative to the largest of their level.
    ``posture[k]``: what rest goals ask of variable k: weight (0: nothing), then the number or quaternion to be near.
    ``further``: None, or the tables of further goals.
    ``most_work``: how much one row of the answer may take, see ``watch``.
    """

    tree: Tree
    variables: NDArray[np.int32]
    limits: NDArray[np.float64]
    goals: NDArray[np.int32]
    goal_data: NDArray[np.float64]
    followers: NDArray[np.int32]
    coupling: NDArray[np.float64]
    likes: NDArray[np.float64]
    own: NDArray[np.float64]
    residuals: np.int64
    columns: np.int64
    nq: np.int64
    max_steps: np.int64
    attempts: np.int64
    seed: np.int64
    patience: np.int64
    coupled: np.int64
    tolerance: float
    tolerance_angle: float
    reach: float
    levels: NDArray[np.int32]
    posture: NDArray[np.float64]
    further: Further | None
    most_work: float


class Work(NamedTuple):
    """Scratch memory of one thread; sizes in ``work_size``."""

    frames: NDArray[np.float64]  # (2 rows, 12) world frames, then mass and first moment of what hangs on each row
    J: NDArray[np.float64]  # (residuals, columns)
    A: NDArray[np.float64]  # (d, d), d = min(residuals, columns)
    e: NDArray[np.float64]  # (residuals,)
    y: NDArray[np.float64]  # (d,)
    dq: NDArray[np.float64]  # (columns,)
    g: NDArray[np.float64]  # (columns,)
    best: NDArray[np.float64]  # (nq,)
    trial: NDArray[np.float64]  # (nq,)
    points: NDArray[np.float64]  # (rows + goals, 14) for solvers that move positions
    H: NDArray[np.float64]  # (columns, columns), (0, 0) if many: what the Jacobian leaves out of the Hessian
    K: NDArray[np.float64]  # the same size: the Hessian's factor
    box: NDArray[np.float64]  # (columns, 7) bounds of a step and directions of ball joints, see ``chart``
    spare: NDArray[np.float64]  # what the solver asked for beyond (``Solver.spare``), for it to cut
    # The beginning of the memory: when to stop (see ``watch``); at STATE the random numbers' state, one uint64; at
    # OTHERS poses beside q, (FINALISTS + 1, nq + 2). One array, because each field is passed to every function that is
    # not inlined. No function can return a view, so whoever needs one makes it with ``bits`` or ``matrix``.
    watch: NDArray[np.float64]


def work_size(ints: NDArray[np.int32], spare: int = 0) -> int:
    """Return how many float64 the scratch memory of a problem needs, with so many for the solver's own use."""
    n, g, m, v, nq = (int(ints[i]) for i in (N_ROWS, N_GOALS, N_RESIDUALS, N_COLUMNS, N_Q))
    d = min(m, v)
    h = v if v <= NEWTON_COLUMNS else 0
    others = (FINALISTS + 1) * (nq + 2)
    named = 2 * FRAME * n + m * v + d * d + m + d + 2 * v + 2 * nq + 14 * (n + g) + 2 * h * h + 7 * v
    return OTHERS + others + named + spare


@inline
def open_problem(ints, floats):
    """Return the tables packed in two flat arrays, without those of further goals."""
    return open_with(ints, floats, None)


@inline
def open_any(ints, floats):
    """Return the tables packed in two flat arrays, those of further goals included."""
    h, m, v = np.int64(ints[N_FURTHER]), np.int64(ints[N_MASSES]), np.int64(ints[N_VERTICES])
    i0, f0 = np.int64(ints[FURTHER_INTS]), np.int64(ints[FURTHER_FLOATS])
    f1 = f0 + FURTHER * h
    f2 = f1 + 4 * m
    further = Further(
        matrix(ints, i0, h, FURTHER_ASK),
        matrix(floats, f0, h, FURTHER),
        matrix(floats, f1, m, 4),
        matrix(floats, f2, v, 3),
    )
    return open_with(ints, floats, further)


@inline
def open_with(ints, floats, further):
    """Return the tables packed in two flat arrays, with those of further goals or None."""
    n, k, g = np.int64(ints[N_ROWS]), np.int64(ints[N_VARIABLES]), np.int64(ints[N_GOALS])
    m = np.int64(ints[N_FOLLOWERS])
    i0 = INT_HEAD
    i1 = i0 + 6 * n
    i2 = i1 + 3 * k
    i3 = i2 + ASK * g
    i4 = i3 + 2 * m
    f0 = FLOAT_HEAD
    f1 = f0 + 12 * n
    f2 = f1 + 2 * n
    f3 = f2 + 11 * k
    f4 = f3 + GOAL * g
    f5 = f4 + 2 * m
    f6 = f5 + 2 * k
    tree = Tree(matrix(ints, i0, n, 6), matrix(floats, f0, n, 12), matrix(floats, f1, n, 2))
    return Problem(
        tree,
        matrix(ints, i1, k, 3),
        matrix(floats, f2, k, 11),
        matrix(ints, i2, g, ASK),
        matrix(floats, f3, g, GOAL),
        matrix(ints, i3, m, 2),
        matrix(floats, f4, m, 2),
        matrix(floats, f5, k, 2),
        vector(floats, OWN, FLOAT_HEAD - OWN),
        np.int64(ints[N_RESIDUALS]),
        np.int64(ints[N_COLUMNS]),
        np.int64(ints[N_Q]),
        np.int64(ints[MAX_STEPS]),
        np.int64(ints[ATTEMPTS]),
        np.int64(ints[SEED]),
        np.int64(ints[PATIENCE]),
        np.int64(ints[COUPLED]),
        floats[TOLERANCE],
        floats[TOLERANCE_ANGLE],
        floats[REACH],
        vector(ints, i4, np.int64(ints[N_LEVELS]) + 1),
        matrix(floats, f6, k, POSTURE),
        further,
        floats[MOST_WORK],
    )


@inline
def with_steps(problem, max_steps):
    """Return the same problem with another number of steps to an attempt."""
    return changed(problem, max_steps, problem.further)


@inline
def places_alone(problem):
    """Return the same problem without its further goals."""
    return changed(problem, problem.max_steps, None)


@inline
def changed(problem, max_steps, further):
    """Return the same problem with another number of steps and other tables of further goals."""
    return Problem(
        problem.tree,
        problem.variables,
        problem.limits,
        problem.goals,
        problem.goal_data,
        problem.followers,
        problem.coupling,
        problem.likes,
        problem.own,
        problem.residuals,
        problem.columns,
        problem.nq,
        np.int64(max_steps),
        problem.attempts,
        problem.seed,
        problem.patience,
        problem.coupled,
        problem.tolerance,
        problem.tolerance_angle,
        problem.reach,
        problem.levels,
        problem.posture,
        further,
        problem.most_work,
    )


@inline
def open_work(ints, work):
    """Return scratch memory cut into named parts."""
    n, g, nq = np.int64(ints[N_ROWS]), np.int64(ints[N_GOALS]), np.int64(ints[N_Q])
    m, v = np.int64(ints[N_RESIDUALS]), np.int64(ints[N_COLUMNS])
    d = min(m, v)
    h = v if v <= NEWTON_COLUMNS else np.int64(0)
    a0 = OTHERS + (FINALISTS + 1) * (nq + 2)
    a1 = a0 + 2 * FRAME * n
    a2 = a1 + m * v
    a3 = a2 + d * d
    a4 = a3 + m
    a5 = a4 + d
    a6 = a5 + v
    a7 = a6 + v
    a8 = a7 + nq
    a9 = a8 + nq
    a10 = a9 + 14 * (n + g)
    a11 = a10 + h * h
    a12 = a11 + h * h
    a13 = a12 + 7 * v
    watch = vector(work, 0, a0)
    begin_watch(watch)
    return Work(
        matrix(work, a0, 2 * n, FRAME),
        matrix(work, a1, m, v),
        matrix(work, a2, d, d),
        vector(work, a3, m),
        vector(work, a4, d),
        vector(work, a5, v),
        vector(work, a6, v),
        vector(work, a7, nq),
        vector(work, a8, nq),
        matrix(work, a9, n + g, 14),
        matrix(work, a10, h, h),
        matrix(work, a11, h, h),
        matrix(work, a12, v, 7),
        vector(work, a13, work.shape[0] - a13),
        watch,
    )


@inline
def work_of_step(problem):
    """Return about how much work a step with a Jacobian is, see ``watch``."""
    m, v = F(problem.residuals), F(problem.columns)
    d = min(m, v)
    return F(problem.tree.ints.shape[0]) + m * v / F(32) + d * d * v / F(512)


@inline
def work_of_newton(problem):
    """Return about how much work a step with second derivatives is."""
    v = F(problem.columns)
    if v > NEWTON_COLUMNS:
        return work_of_step(problem)
    return v + v * v / F(4) + v * v * v / F(512)


@inline
def open_row(problem, row):
    """Return (q, errors, targets) of one row of the answer."""
    g = problem.goals.shape[0]
    first = OUT_HEAD + problem.nq
    return vector(row, OUT_HEAD, problem.nq), vector(row, first, 2 * g), matrix(row, first + 2 * g, g, 16)


@inline
def copy(source, to):
    """Copy a vector."""
    for i in range(source.shape[0]):
        to[i] = source[i]
