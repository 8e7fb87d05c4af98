"""Call the kernels that learn starts: random poses, their targets, and starts for other targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.parallel import Batch, Packed, Workers, run_rows
from synovia.ik.starts import Learnable
from synovia.kernels.layout import PROPOSAL_FORM, TARGET_WIDTH
from synovia.model.geometry import Array
from synovia.model.tables import writable


class Proposer:
    """Computes proposals, which are starts for targets, from poses of a problem, and solves from these starts.

    Args:
        problem: The problem, with one attempt.
        learnable: The parts of the problem that its starts depend on.
        workers: The threads.
    """

    def __init__(self, problem: CompiledProblem, learnable: Learnable, workers: Workers) -> None:
        """Mark, in the packed problem, the joints that are computed from the target."""
        self._problem, self._learnable, self._workers = problem, learnable, workers
        self._ints = problem.ints.copy()
        self._ints[PROPOSAL_FORM] = learnable.form

    def draw(self, count: int, seed: int) -> Array:
        """Return random poses (count, nq)."""
        from synovia.kernels.tree.tables import random_rows

        reduced, q = self._problem.reduced, np.repeat(self._problem.rest, count, axis=0)
        random_rows(*writable(reduced.variables, reduced.limits), q, seed, np.empty(1, np.uint64))
        self._problem.skeleton.follow(q)
        return q

    def describe(self, q: Array) -> tuple[Array, Array, Array]:
        """Return the targets (N, goals, 17) that poses (N, nq) meet, the proposals, and the targets' features."""
        from synovia.kernels.proposals.propose import describe_poses

        one, problem = self._learnable, self._problem
        targets = np.zeros((len(q), len(one.ends), TARGET_WIDTH))
        out = np.zeros((len(q), one.width + one.features))
        describe_poses(self._ints, problem.floats, q, targets, out, new_scratch(problem.scratch_size))
        return targets, out[:, : one.width], out[:, one.width :]

    def place(self, targets: Array, proposals: Array) -> tuple[Array, Array]:
        """Return the starts (N, nq) that proposals give for targets, and the fit of each, (N,), negative for no fit."""
        from synovia.kernels.proposals.propose import place_proposals

        starts, rooms = np.repeat(self._problem.rest, len(targets), axis=0), np.empty(len(targets))
        place_proposals(self._ints, self._problem.floats, targets, proposals, starts, rooms)
        self._problem.skeleton.follow(starts)
        return starts, rooms

    def solve(self, targets: Array, starts: Array) -> Array:
        """Return a row of results of one attempt for each target; misses are not polished."""
        problem = self._problem
        out = problem.new_rows(len(targets))

        def leave(*_: Any) -> None:
            """Do not polish misses."""

        packed = Packed(problem.kernel, *problem.packed())
        run_rows(packed, Batch(targets, starts, out), problem.scratch_size, leave, self._workers)
        return out
