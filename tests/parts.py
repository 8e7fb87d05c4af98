"""Problems opened for single parts of kernels, which tests call as plain Python."""

import numpy as np

import synovia as sy
from synovia.kernels import layout
from synovia.kernels.goals.residuals import jacobian, measure, residual
from synovia.kernels.tree import chart
from synovia.kernels.tree import problem as packed
from synovia.kernels.tree.forward import forward


class Parts:
    """A packed problem with its scratch memory, at joint values.

    Args:
        skeleton: The body.
        goals: What is asked for.
        solver: Whose scratch memory and parameters are opened.
        q: Joint values; those of rest without any.
        root: How the root may move, as in ``IK``.
    """

    def __init__(self, skeleton, goals, solver, q=None, root="fixed"):
        """Open the problem."""
        self.ik = sy.IK(skeleton, goals, solver, root=root)
        self.problem = packed.open_general(self.ik.ints, self.ik.floats)
        self.work = packed.open_work(self.ik.ints, np.zeros(self.ik.scratch_size))
        self.targets = np.ascontiguousarray(self.ik.writer.own[0][:, : layout.TRANSFORM_WIDTH])
        self.q = np.array(skeleton.rest_pose().q if q is None else q, float)
        self.update()

    def update(self, q=None):
        """Write the frames and residuals of joint values; return the cost and the largest error in tolerances."""
        q = self.q if q is None else q
        forward(self.problem.tree, q, self.work.frames)
        return residual(self.problem, q, self.work.frames, self.targets, self.work.e)

    def residual(self, q=None):
        """Return the residuals at joint values."""
        self.update(q)
        return self.work.e.copy()

    def errors(self, q=None):
        """Return distance and angle of every goal."""
        out = np.zeros(2 * len(self.problem.goals))
        self.update(q)
        measure(self.problem, self.q if q is None else q, self.work.frames, self.targets, out)
        return out.reshape(-1, 2)

    def jacobian(self):
        """Return the Jacobian."""
        self.update()
        jacobian(self.problem, self.q, self.work.frames, self.targets, self.work.J)
        return self.work.J.copy()

    def moved(self, y):
        """Return the joint values after a step in the directions of the box."""
        q = self.q.copy()
        chart.move(self.problem, q, np.asarray(y, float), 1.0)
        return q

    @property
    def call(self):
        """The first arguments of most kernels: problem, work, targets, joint values."""
        return self.problem, self.work, self.targets, self.q
