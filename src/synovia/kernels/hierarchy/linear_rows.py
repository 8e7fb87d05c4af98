"""Rows of a problem at several poses, with the bounds of its one-sided goals, to differentiate answers.

At an answer, a one-sided goal that rests on its bound acts as an equation, and one inside its bounds does not act. So
its row is written in both cases, with the smallest and the largest allowed change of its value. All poses use the
contacts and the polygon edges of the first pose: central differences need the same rows at each pose.
"""

from synovia.kernels.compiler.jit import F, apart, entry
from synovia.kernels.compiler.records import changer
from synovia.kernels.goals.clearance import clearance_residual, forget_contacts, has_contact, lacking, measure_again
from synovia.kernels.goals.general import SUPPORT
from synovia.kernels.goals.residuals import jacobian, residual
from synovia.kernels.goals.term import NEVER, unit_weight
from synovia.kernels.hierarchy.inequalities import choose_edges, inequality_rows, slack_bounds, slots
from synovia.kernels.layout import CLEAR_ROW, CLEAR_WEIGHT, FIRST, FIRST_SLOT, KIND, SLOTS
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import Problem, open_all, open_work

_with_clear = changer(Problem, "clear")


@apart
def general_bounds(problem, q, frames, targets, edges, e, low, high):
    """Write residuals and bounds of the rows of one-sided general goals; rows of unused polygon edges are free."""
    general = problem.general
    slot = 0
    for i in range(general.ints.shape[0]):
        w, row = unit_weight(problem, i), general.ints[i, FIRST]
        is_polygon = general.ints[i, KIND] == SUPPORT and (edges[slot] >= F(0) or edges[slot + 1] >= F(0))
        for side in range(slots(general, i)):
            least, most, active = slack_bounds(problem, q, frames, targets, i, side, edges[slot + side])
            if active:
                low[row + side], high[row + side] = w * least, w * most
            elif is_polygon:
                low[row + side], high[row + side] = -NEVER, NEVER
            else:
                continue
            e[row + side] = max(low[row + side], F(0)) + min(high[row + side], F(0))
        slot += slots(general, i)


@apart
def contact_bounds(clear, problem, e, low, high):
    """Write residuals and bounds of the rows of contacts; rows without a contact are free."""
    for t in range(clear.ints.shape[0]):
        w, row = clear.data[t, CLEAR_WEIGHT] / problem.reach, clear.ints[t, CLEAR_ROW]
        for slot in range(clear.ints[t, FIRST_SLOT], clear.ints[t, FIRST_SLOT] + clear.ints[t, SLOTS]):
            low[row] = w * lacking(clear, problem, t, slot) if has_contact(clear, slot) else -NEVER
            high[row] = NEVER
            e[row] = max(low[row], F(0))
            row += 1


@entry
def linear_rows(ints, floats, targets, q, scratch, edges, values, J):
    """Write residuals, bounds and Jacobians at each row of q (T, nq); the first row is the pose of the answer.

    Args:
        ints: Integers of the packed problem.
        floats: Floats of the packed problem.
        targets: (T, goals, 16) complete targets.
        q: (T, nq) joint values.
        scratch: Scratch memory of the problem.
        edges: (3 terms,) polygon edge of each row of a one-sided goal; written.
        values: (3, T, residuals) weighted residuals, with lengths divided by the length scale; then the bounds of the
            allowed change of each value, which are the residual itself for goals that are equations; written.
        J: (T, residuals, columns) minus the derivative of the values of all rows, also of goals inside their bounds;
            written.
    """
    problem, work = open_all(ints, floats, scratch), open_work(ints, scratch)
    others = _with_clear(problem, (None,))
    e, low, high = values[0], values[1], values[2]
    for t in range(q.shape[0]):
        forward(problem.tree, q[t], work.frames)
        residual(others, q[t], work.frames, targets[t], e[t])
        if t == 0:
            forget_contacts(problem.clear)
            clearance_residual(problem.clear, problem, work.frames, e[t])
            choose_edges(problem.general, problem, work.frames, edges)
        else:
            measure_again(problem.clear, work.frames)
        jacobian(problem, q[t], work.frames, targets[t], J[t])
        inequality_rows(problem.general, problem, q[t], work.frames, targets[t], edges, J[t])
        for i in range(e.shape[1]):
            low[t, i] = high[t, i] = e[t, i]
        general_bounds(problem, q[t], work.frames, targets[t], edges, e[t], low[t], high[t])
        contact_bounds(problem.clear, problem, e[t], low[t], high[t])
    return 0
