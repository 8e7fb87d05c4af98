"""Residuals and Jacobians of goals at joint values, for the tests of their kernels."""

import numpy as np

import synovia as sy
from synovia.kernels import compiler, layout
from synovia.kernels.compiler.jit import entry
from synovia.kernels.goals.residuals import jacobian, measure, residual, to_units
from synovia.kernels.tree import problem as kp
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.variables import step


def from_python(helper):
    """Return a helper of kernels in a form that Python can call; numba compiles helpers without a wrapper for it."""
    if compiler.mode != "jit":
        return helper
    import numba

    return numba.njit(lambda *arguments: helper(*arguments))


@entry
def residual_after(ints, floats, scratch, targets, q, dq, e):
    """Write the residual after a step in the solvers' units (q is moved)."""
    problem, work = kp.open_general(ints, floats), kp.open_work(ints, scratch)
    to_units(problem, dq)
    step(problem.variables, problem.limits, q, dq, 1.0)
    for k in range(problem.followers.shape[0]):
        q[problem.followers[k, 0]] = problem.coupling[k, 0] * q[problem.followers[k, 1]] + problem.coupling[k, 1]
    forward(problem.tree, q, work.frames)
    return residual(problem, q, work.frames, targets, e)


@entry
def rows_at(ints, floats, scratch, targets, q, J, errors):
    """Write Jacobian and errors; return the largest in units of its tolerance."""
    problem, work = kp.open_general(ints, floats), kp.open_work(ints, scratch)
    forward(problem.tree, q, work.frames)
    jacobian(problem, q, work.frames, targets, J)
    return measure(problem, q, work.frames, targets, errors)


class Probe:
    """Residuals and Jacobian of the goals of an ``IK`` at joint values."""

    def __init__(self, ik, q):
        """Keep the packed problem and its own targets."""
        own = ik.problem.writer.own[0][:, : layout.TRANSFORM_WIDTH]
        self.packed = ik.problem.ints, ik.problem.floats, np.zeros(ik.problem.scratch_size), np.ascontiguousarray(own)
        self.q = q
        self.goals = len(ik.goals)
        self.rows, self.columns = int(ik.problem.ints[layout.N_RESIDUALS]), int(ik.problem.ints[layout.N_COLUMNS])

    def residual(self, dq=None):
        """Return the residuals after a step."""
        e = np.zeros(self.rows)
        dq = np.zeros(self.columns) if dq is None else dq.copy()
        residual_after(*self.packed, self.q.copy(), dq, e)
        return e

    def jacobian(self):
        """Return the Jacobian and the errors."""
        J, errors = np.zeros((self.rows, self.columns)), np.zeros(2 * self.goals)
        rows_at(*self.packed, self.q, J, errors)
        return J, errors.reshape(-1, 2)

    def differences(self):
        """Return minus the derivative of the residuals by central differences, and the gradient of e·e / 2."""
        steps = 1e-6 * np.eye(self.columns)
        ends = [(self.residual(d), self.residual(-d)) for d in steps]
        slopes = np.array([(b - a) / 2e-6 for a, b in ends]).T
        return slopes, np.array([(a @ a - b @ b) / 4e-6 for a, b in ends])


def random_q(skeleton, rng):
    """Return joint values with a moved root."""
    q = skeleton.random_pose(int(rng.integers(2**20))).q.copy()
    if skeleton.joints[0].kind is sy.Kind.FREE:
        q[:3] = rng.normal(size=3)
        q[3:7] = sy.Rotation.from_rotvec(rng.normal(size=3)).as_quat()
    return q
