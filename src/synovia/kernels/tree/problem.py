"""The packed problem: skeleton, goals, tolerances and settings in two flat arrays, and the answer in one flat row.

Python packs a problem once into ``ints`` and ``floats``: an argument costs 50 ns per call, so kernels take few arrays.
``open_problem`` returns views of them as named tables, which cost nothing in compiled code. ``layout`` declares all
tables, and names their columns. The tree of a problem holds only what its goals need: the joints between the root and a
goal, with fixed joints merged into their neighbours. The vector q holds the values of all joints.

Position and rotation goals have their own tables. All other goals are general goals (see ``general``), whose tables
only ``open_general`` opens. A kernel that uses ``open_problem`` is compiled without any code for general goals.
Likewise only ``open_clear`` and ``open_all`` open the tables of clearance goals, and only ``open_all`` and
``open_mechanism`` those of loops.

Solvers divide lengths by the length scale of the body (``reach``): a residual of 1 is one length scale or one radian.
"""

import numpy as np

from synovia.kernels.compiler.jit import F, inline
from synovia.kernels.compiler.records import changer, cutter, opener, record, tables_of
from synovia.kernels.compiler.watch import begin_watch
from synovia.kernels.layout import (
    ANSWER,
    ATTEMPTS,
    COST,
    COUPLED,
    FINISH,
    MAX_STEPS,
    MOST_WORK,
    N_COLUMNS,
    N_Q,
    N_RESIDUALS,
    NEWTON_COLUMNS,
    PATIENCE,
    REACH,
    SEED,
    STATUS,
    STEPS,
    STOPPED_BY,
    TOLERANCE,
    TOLERANCE_ANGLE,
    TRIES,
    WINNER,
)
from synovia.kernels.tree.forward import Tree

# ``Problem`` has the tables of ``layout.PROBLEM``, named tuples with the tables of the tree and of general goals
# (``general``, ``clear`` and ``loops`` are None if they are not opened), and these values:
INTEGERS = {
    "residuals": N_RESIDUALS,
    "columns": N_COLUMNS,
    "nq": N_Q,
    "max_steps": MAX_STEPS,  # largest number of steps of an attempt
    "attempts": ATTEMPTS,
    "seed": SEED,  # seed of random starts
    "patience": PATIENCE,  # steps after which the cost must have fallen enough, see ``search.descent``
    "coupled": COUPLED,  # 1 if several joints follow one variable, so that they move together, else 0
}
REALS = {
    "tolerance": TOLERANCE,  # error (length units) up to which a goal counts as reached
    "tolerance_angle": TOLERANCE_ANGLE,  # the same, in radians
    "reach": REACH,  # length scale (length units), by which lengths are divided
    "most_work": MOST_WORK,  # work limit of one row of the answer, see ``watch``
}
GeneralGoals = record("GeneralGoals", tables_of("general"))
# The tables of clearance goals, then their scratch memory, so that one field of ``Problem`` holds both.
ClearanceGoals = record("ClearanceGoals", (*tables_of("clear"), *tables_of("meeting")))
# Likewise the tables of loops, then the scratch memory for closing them.
Loops = record("Loops", (*tables_of("loops"), *tables_of("closing")))
Problem = record("Problem", tables_of(""), *INTEGERS, *REALS, "tree", "general", "clear", "loops")
Work = record("Work", tables_of("work"))
Answer = record("Answer", ANSWER)

_open_tree = opener(Tree, "tree")
_open_general = opener(GeneralGoals, "general", changes=("ints",))
_open_clear = opener(ClearanceGoals, "clear", scratch="meeting")
_open_loops = opener(Loops, "loops", scratch="closing")
_open_problem = opener(Problem, "", (*INTEGERS.values(),), (*REALS.values(),), changes=("max_steps",))
_open_work = opener(Work, "work")
_open_answer = cutter(Answer, ANSWER, ("nq", "errors", "goals"))
_with_steps = changer(Problem, "max_steps")
_with_general = changer(Problem, "general")
_with_terms = changer(GeneralGoals, "ints")


@inline
def open_problem(ints, floats):
    """Return the tables of a packed problem, without those of general goals."""
    return _open_problem(ints, floats, (_open_tree(ints, floats, ()), None, None, None))


@inline
def open_general(ints, floats):
    """Return the tables of a packed problem, with those of general goals."""
    return _open_problem(ints, floats, (_open_tree(ints, floats, ()), _open_general(ints, floats, ()), None, None))


@inline
def open_clear(ints, floats, memory):
    """Return the tables of a packed problem, with those of all its goals and the scratch memory of clearance goals."""
    clear = _open_clear(ints, floats, (memory,))
    return _open_problem(ints, floats, (_open_tree(ints, floats, ()), _open_general(ints, floats, ()), clear, None))


@inline
def open_all(ints, floats, memory):
    """Return the tables of a packed problem, with those of all goals and loops.

    The tables of clearance goals and of loops include their scratch memory.
    """
    clear, loops = _open_clear(ints, floats, (memory,)), _open_loops(ints, floats, (memory,))
    return _open_problem(ints, floats, (_open_tree(ints, floats, ()), _open_general(ints, floats, ()), clear, loops))


@inline
def open_mechanism(ints, floats, memory):
    """Return the tables of a packed problem with loops, but without those of general goals and of clearance goals.

    The tables of loops include their scratch memory.
    """
    return _open_problem(ints, floats, (_open_tree(ints, floats, ()), None, None, _open_loops(ints, floats, (memory,))))


@inline
def open_work(ints, memory):
    """Return the tables in the scratch memory, and start to count time and work, see ``compiler.watch``."""
    work = _open_work(ints, memory, ())
    begin_watch(work.watch)
    return work


@inline
def with_steps(problem, max_steps):
    """Return the problem with another largest number of steps of an attempt."""
    return _with_steps(problem, (np.int64(max_steps),))


@inline
def first_terms_only(problem, count):
    """Return the problem with only the first ``count`` terms of its general goals."""
    return _with_general(problem, (_with_terms(problem.general, (problem.general.ints[:count],)),))


@inline
def pose_goals_only(problem):
    """Return the problem without the terms of its general goals."""
    return first_terms_only(problem, 0)


@inline
def work_of_step(problem):
    """Estimate the work of a step with a Jacobian, in visits of a joint, see ``compiler.watch``."""
    m, v = F(problem.residuals), F(problem.columns)
    d = min(m, v)
    return F(problem.tree.ints.shape[0]) + m * v / F(32) + d * d * v / F(512)


@inline
def work_of_newton(problem):
    """Estimate the work of a step with second derivatives, in visits of a joint, see ``compiler.watch``."""
    v = F(problem.columns)
    if v > NEWTON_COLUMNS:
        return work_of_step(problem)
    return v + v * v / F(4) + v * v * v / F(512)


@inline
def open_row(problem, row):
    """Return (q, errors, targets) of one row of the answer."""
    g = problem.goals.shape[0]
    answer = _open_answer(row, (problem.nq, 2 * g, g))
    return answer.q, answer.errors, answer.targets


@inline
def write_head(row, status, steps, tries, winner, cost, stopped_by):
    """Write the first numbers of a row of the answer, from STATUS on, see ``layout``; the final descent has 0 steps."""
    row[STATUS], row[STEPS], row[TRIES], row[WINNER], row[COST] = status, steps, tries, winner, cost
    row[FINISH], row[STOPPED_BY] = F(0), stopped_by


@inline
def copy(source, to):
    """Copy a vector."""
    for i in range(source.shape[0]):
        to[i] = source[i]
