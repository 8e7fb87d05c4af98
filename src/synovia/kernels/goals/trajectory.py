"""Evaluate goals over whole trajectories, for solvers that see all frames."""

from synovia.kernels.compiler.jit import entry
from synovia.kernels.goals.residuals import jacobian, measure, residual
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_problem, open_work


@entry
def evaluate_rows(ints, floats, targets, q, scratch, e, J, errors):
    """Write residuals, Jacobians and errors of the goals at each row of q (T, nq).

    ``e`` (T, residuals) and its negative derivative ``J`` (T, residuals, columns) are weighted, with lengths in
    reaches; a J without rows is skipped. ``errors`` (T, 2 goals) are distance and angle; ``targets`` (T, goals, 16).
    """
    problem = open_problem(ints, floats)
    work = open_work(ints, scratch)
    for t in range(q.shape[0]):
        forward(problem.tree, q[t], work.frames)
        residual(problem, q[t], work.frames, targets[t], e[t])
        measure(problem, q[t], work.frames, targets[t], errors[t])
        if J.shape[0] > 0:
            jacobian(problem, q[t], work.frames, targets[t], J[t])
