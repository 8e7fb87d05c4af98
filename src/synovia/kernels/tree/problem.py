"""The packed problem: skeleton, goals, tolerances and settings in two flat arrays, and the answer in one flat row.

Python packs a problem once into ``ints`` and ``floats``: an argument costs 50 ns a call, so kernels take few arrays.
``open_problem`` gives views of them as named tables, which costs nothing in compiled code. The tree of a problem holds
only what its goals need: the joints between the root and a goal, with fixed joints merged into their neighbours. The
vector q keeps the values of all joints.

Position and rotation goals have tables of their own. All other goals are general goals (see ``general``), whose tables
only ``open_general`` opens. A kernel that uses ``open_problem`` is compiled without any code for general goals.

Solvers divide lengths by the reach of the body: a residual of 1 is one reach or one radian.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.compiler.views import matrix, vector
from synovia.kernels.compiler.watch import begin_watch
from synovia.kernels.layout import (
    ATTEMPTS,
    BOX_WIDTH,
    COST,
    COUPLED,
    COUPLING_WIDTH,
    FINALISTS,
    FINISH,
    FLOAT_HEAD,
    FOLLOWER_WIDTH,
    FRAME_WIDTH,
    GENERAL_DATA_WIDTH,
    GENERAL_FLOATS,
    GENERAL_INTS,
    GENERAL_WIDTH,
    GOAL_DATA_WIDTH,
    GOAL_WIDTH,
    INT_HEAD,
    LIMIT_WIDTH,
    MASS_WIDTH,
    MAX_STEPS,
    MOST_WORK,
    N_COLUMNS,
    N_FOLLOWERS,
    N_GENERAL,
    N_GOALS,
    N_LEVELS,
    N_MASSES,
    N_Q,
    N_RESIDUALS,
    N_ROWS,
    N_VARIABLES,
    N_VERTICES,
    OTHERS,
    OUT_HEAD,
    PARAMS,
    PATIENCE,
    POINT_WIDTH,
    PREFERENCE_WIDTH,
    REACH,
    REST_WIDTH,
    ROW_WIDTH,
    SEED,
    STATUS,
    STEPS,
    STOPPED_BY,
    TOLERANCE,
    TOLERANCE_ANGLE,
    TRANSFORM_WIDTH,
    TRIES,
    VARIABLE_WIDTH,
    WINNER,
)
from synovia.kernels.tree.forward import Tree

NEWTON_COLUMNS = 128  # with more, second derivatives cost more than the steps that they save


class GeneralGoals(NamedTuple):
    """The tables of general goals, which are more than a position and a rotation in the world; see ``general``.

    ``ints[h]``, ``data[h]``: term h of a general goal.
    ``masses[i]``: mass and moment of what row i carries rigidly, in its frame. The last row is what no joint moves. The
    table is empty without a goal for the centre of mass.
    ``vertices``: corners of support polygons, counterclockwise about up.
    """

    ints: NDArray[np.int32]
    data: NDArray[np.float64]
    masses: NDArray[np.float64]
    vertices: NDArray[np.float64]


class Problem(NamedTuple):
    """A skeleton with goals, as the solvers read it. ``layout`` names the columns of all tables.

    ``tree``: the rows, their fixed transforms and their couplings.
    ``variables[k]``, ``limits[k]``: joint variable k, see ``variables``.
    ``preferences[k]``: preferred value of variable k (a ball prefers its rest rotation), and its stiffness.
    ``goals[g]``, ``goal_data[g]``: goal g. Weights are relative to the largest of their level.
    ``followers``, ``coupling``: mimic joints of the whole q.
    ``levels``: first residual row of each priority level, 0 the highest, then the number of rows. The rows of a level
    are contiguous.
    ``posture[k]``: weight and reference of rest goals for variable k.
    ``moves[k]``: largest move of variable k in one solve, radians or reaches; only solvers that bound motion read it.
    ``max_steps``, ``attempts``: limits of the steps of an attempt, and of attempts. ``seed``: of random starts.
    ``patience``: the number of steps after which the cost must have fallen enough, see ``search.descent``.
    ``coupled``: 1 if several joints follow one variable, so that moving one joint moves others, else 0.
    ``tolerance``, ``tolerance_angle``: errors (length units, radians) up to which a goal counts as reached.
    ``reach``: the length (length units) by which lengths are divided.
    ``general``: None, or the tables of general goals.
    ``most_work``: work limit of one row of the answer, see ``watch``.
    """

    tree: Tree
    variables: NDArray[np.int32]
    limits: NDArray[np.float64]
    goals: NDArray[np.int32]
    goal_data: NDArray[np.float64]
    followers: NDArray[np.int32]
    coupling: NDArray[np.float64]
    preferences: NDArray[np.float64]
    params: NDArray[np.float64]
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
    moves: NDArray[np.float64]
    general: GeneralGoals | None
    most_work: float


class Work(NamedTuple):
    """Scratch memory of one thread; see ``work_size`` for its size."""

    frames: NDArray[np.float64]  # (2 rows, 12) world frames, then mass and moment of the subtree of each row
    J: NDArray[np.float64]  # (residuals, columns)
    A: NDArray[np.float64]  # (d, d), d = min(residuals, columns)
    e: NDArray[np.float64]  # (residuals,)
    y: NDArray[np.float64]  # (d,)
    dq: NDArray[np.float64]  # (columns,)
    g: NDArray[np.float64]  # (columns,)
    best: NDArray[np.float64]  # (nq,)
    trial: NDArray[np.float64]  # (nq,)
    points: NDArray[np.float64]  # (rows + goals, 14) see ``layout``
    H: NDArray[np.float64]  # (columns, columns), (0, 0) if many: the Hessian less JᵀJ
    K: NDArray[np.float64]  # same size: factor of the Hessian
    box: NDArray[np.float64]  # (columns, 7) bounds of a step and directions of ball joints, see ``chart``
    solver_scratch: NDArray[np.float64]  # of the size that the solver asked for (``Solver.extra_scratch``)
    # The head of the memory: when to stop (see ``watch``); at STATE the state of the random numbers, one uint64; at
    # OTHERS further poses, (FINALISTS + 1, nq + 2). One array, because each field is passed to every function that is
    # not inlined. No function can return a view, so callers make theirs with ``bits`` or ``matrix``.
    watch: NDArray[np.float64]


def work_size(ints: NDArray[np.int32], solver_scratch: int = 0) -> int:
    """Return the size of a problem's scratch memory in float64, with ``solver_scratch`` for the solver's own use."""
    n, g, m, v, nq = (int(ints[i]) for i in (N_ROWS, N_GOALS, N_RESIDUALS, N_COLUMNS, N_Q))
    d = min(m, v)
    h = v if v <= NEWTON_COLUMNS else 0
    others = (FINALISTS + 1) * (nq + 2)
    named = (
        2 * FRAME_WIDTH * n + m * v + d * d + m + d + 2 * v + 2 * nq + POINT_WIDTH * (n + g) + 2 * h * h + BOX_WIDTH * v
    )
    return OTHERS + others + named + solver_scratch


@inline
def open_problem(ints, floats):
    """Open a packed problem without its general goals."""
    return open_with(ints, floats, None)


@inline
def open_general(ints, floats):
    """Open a packed problem with its general goals."""
    h, m, v = np.int64(ints[N_GENERAL]), np.int64(ints[N_MASSES]), np.int64(ints[N_VERTICES])
    i0, f0 = np.int64(ints[GENERAL_INTS]), np.int64(ints[GENERAL_FLOATS])
    f1 = f0 + GENERAL_DATA_WIDTH * h
    f2 = f1 + MASS_WIDTH * m
    general = GeneralGoals(
        matrix(ints, i0, h, GENERAL_WIDTH),
        matrix(floats, f0, h, GENERAL_DATA_WIDTH),
        matrix(floats, f1, m, MASS_WIDTH),
        matrix(floats, f2, v, 3),
    )
    return open_with(ints, floats, general)


@inline
def open_with(ints, floats, general):
    """Open a packed problem with these tables of general goals, or None."""
    n, k, g = np.int64(ints[N_ROWS]), np.int64(ints[N_VARIABLES]), np.int64(ints[N_GOALS])
    m = np.int64(ints[N_FOLLOWERS])
    i0 = INT_HEAD
    i1 = i0 + ROW_WIDTH * n
    i2 = i1 + VARIABLE_WIDTH * k
    i3 = i2 + GOAL_WIDTH * g
    i4 = i3 + FOLLOWER_WIDTH * m
    f0 = FLOAT_HEAD
    f1 = f0 + FRAME_WIDTH * n
    f2 = f1 + COUPLING_WIDTH * n
    f3 = f2 + LIMIT_WIDTH * k
    f4 = f3 + GOAL_DATA_WIDTH * g
    f5 = f4 + COUPLING_WIDTH * m
    f6 = f5 + PREFERENCE_WIDTH * k
    tree = Tree(
        matrix(ints, i0, n, ROW_WIDTH), matrix(floats, f0, n, FRAME_WIDTH), matrix(floats, f1, n, COUPLING_WIDTH)
    )
    return Problem(
        tree,
        matrix(ints, i1, k, VARIABLE_WIDTH),
        matrix(floats, f2, k, LIMIT_WIDTH),
        matrix(ints, i2, g, GOAL_WIDTH),
        matrix(floats, f3, g, GOAL_DATA_WIDTH),
        matrix(ints, i3, m, FOLLOWER_WIDTH),
        matrix(floats, f4, m, COUPLING_WIDTH),
        matrix(floats, f5, k, PREFERENCE_WIDTH),
        vector(floats, PARAMS, FLOAT_HEAD - PARAMS),
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
        matrix(floats, f6, k, REST_WIDTH),
        vector(floats, f6 + REST_WIDTH * k, k),
        general,
        floats[MOST_WORK],
    )


@inline
def with_steps(problem, max_steps):
    """Return the problem with another limit of steps for an attempt."""
    return changed(problem, max_steps, problem.general)


@inline
def pose_goals_only(problem):
    """Return the problem without its general goals."""
    return changed(problem, problem.max_steps, None)


@inline
def changed(problem, max_steps, general):
    """Return the problem with another step limit and other tables of general goals."""
    return Problem(
        problem.tree,
        problem.variables,
        problem.limits,
        problem.goals,
        problem.goal_data,
        problem.followers,
        problem.coupling,
        problem.preferences,
        problem.params,
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
        problem.moves,
        general,
        problem.most_work,
    )


@inline
def open_work(ints, work):
    """Open scratch memory as named arrays."""
    n, g, nq = np.int64(ints[N_ROWS]), np.int64(ints[N_GOALS]), np.int64(ints[N_Q])
    m, v = np.int64(ints[N_RESIDUALS]), np.int64(ints[N_COLUMNS])
    d = min(m, v)
    h = v if v <= NEWTON_COLUMNS else np.int64(0)
    a0 = OTHERS + (FINALISTS + 1) * (nq + 2)
    a1 = a0 + 2 * FRAME_WIDTH * n
    a2 = a1 + m * v
    a3 = a2 + d * d
    a4 = a3 + m
    a5 = a4 + d
    a6 = a5 + v
    a7 = a6 + v
    a8 = a7 + nq
    a9 = a8 + nq
    a10 = a9 + POINT_WIDTH * (n + g)
    a11 = a10 + h * h
    a12 = a11 + h * h
    a13 = a12 + BOX_WIDTH * v
    watch = vector(work, 0, a0)
    begin_watch(watch)
    return Work(
        matrix(work, a0, 2 * n, FRAME_WIDTH),
        matrix(work, a1, m, v),
        matrix(work, a2, d, d),
        vector(work, a3, m),
        vector(work, a4, d),
        vector(work, a5, v),
        vector(work, a6, v),
        vector(work, a7, nq),
        vector(work, a8, nq),
        matrix(work, a9, n + g, POINT_WIDTH),
        matrix(work, a10, h, h),
        matrix(work, a11, h, h),
        matrix(work, a12, v, BOX_WIDTH),
        vector(work, a13, work.shape[0] - a13),
        watch,
    )


@inline
def work_of_step(problem):
    """Estimate the work of a step with a Jacobian, in the units of ``watch``."""
    m, v = F(problem.residuals), F(problem.columns)
    d = min(m, v)
    return F(problem.tree.ints.shape[0]) + m * v / F(32) + d * d * v / F(512)


@inline
def work_of_newton(problem):
    """Estimate the work of a step with second derivatives, in the units of ``watch``."""
    v = F(problem.columns)
    if v > NEWTON_COLUMNS:
        return work_of_step(problem)
    return v + v * v / F(4) + v * v * v / F(512)


@inline
def open_row(problem, row):
    """Return (q, errors, targets) of one row of the answer."""
    g = problem.goals.shape[0]
    first = OUT_HEAD + problem.nq
    return vector(row, OUT_HEAD, problem.nq), vector(row, first, 2 * g), matrix(row, first + 2 * g, g, TRANSFORM_WIDTH)


@inline
def write_head(row, status, steps, tries, winner, cost, stopped_by):
    """Write the head of a row of the answer, see ``layout``; no final descent has taken a step yet."""
    row[STATUS], row[STEPS], row[TRIES], row[WINNER], row[COST] = status, steps, tries, winner, cost
    row[FINISH], row[STOPPED_BY] = F(0), stopped_by


@inline
def copy(source, to):
    """Copy a vector."""
    for i in range(source.shape[0]):
        to[i] = source[i]
