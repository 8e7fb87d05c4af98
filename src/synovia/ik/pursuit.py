"""Call the kernels that follow goals frame by frame with selected joints of a skeleton (``kernels.pursuit``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from synovia.goals import Goal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import new_scratch
from synovia.ik.targets import transforms
from synovia.kernels.layout import (
    GIVEN,
    N_COLUMNS,
    N_GOALS,
    N_RESIDUALS,
    N_VARIABLES,
    POSITION,
    PURSUED,
    PURSUIT_DAMPING,
    PURSUIT_REST_STEP,
    PURSUIT_SETTINGS,
    PURSUIT_STAY,
    PURSUIT_STEPS,
    TARGET_WIDTH,
    size_of_all,
)
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.problem.pack import table_of
from synovia.solver import FullBody

REST_STEP: Final = 1e-3  # radians: the steps of a frame end after a step smaller than this
STAY: Final = 0.01  # weight that pulls joint values to the previous frame
_DAMPING: Final = 0.02
_FIRST_STEPS: Final = 200


class Pursuit:
    """Goals that selected joints follow frame by frame, see ``kernels.pursuit``.

    Args:
        skeleton: The skeleton.
        goals: The goals; those of priority 0 come first.
        rows: Rows of the joints that move.
        moves: Largest move of each joint in a frame, as for ``FullBody``; None for no bound.

    Attributes:
        ik: The packed problem.
    """

    def __init__(self, skeleton: Skeleton, goals: Sequence[Goal], rows: Sequence[int], moves: Any = None) -> None:
        """Pack the problem and load its kernel."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.pursuit.follow import pursue

        self.skeleton = skeleton
        largest = math.pi if moves is None else moves
        self.ik = CompiledProblem(skeleton, goals, FullBody(attempts=1, largest_move=largest), moving=rows)
        ints, floats = self.ik.ints, self.ik.floats
        self._floats, self._unbound = floats.copy(), floats.copy()
        table_of(ints, self._unbound, "moves")[...] = math.inf
        if moves is None:
            self._floats = self._unbound
        sizes = {
            "residuals": int(ints[N_RESIDUALS]), "columns": int(ints[N_COLUMNS]), "variables": int(ints[N_VARIABLES]),
            "goals": int(ints[N_GOALS]),
        }  # fmt: skip
        self._memory = np.zeros(size_of_all(PURSUED, sizes))
        self._scratch = new_scratch(self.ik.scratch_size)
        self._first = pursuit_settings(_FIRST_STEPS, 0.1 * REST_STEP, 1e-3 * STAY)
        table, weights = self.table(0)
        none = np.zeros((1, skeleton.nq))
        self._call = ready(pursue, ints, floats, table, weights, self._first, self._memory, self._scratch, none)

    @property
    def packed(self) -> tuple[Ints, Array, Array, Array]:
        """Arguments of the kernels: integers and floats of the problem, scratch memory of pursuit and of problem."""
        return self.ik.ints, self._floats, self._memory, self._scratch

    def table(self, count: int) -> tuple[Array, Array]:
        """Return targets (T, goals, 17) and zero weights (T, goals), which switch all goals off."""
        goals = int(self.ik.ints[N_GOALS])
        table = np.zeros((count, goals, TARGET_WIDTH))
        transforms(table)[...] = np.eye(4)
        table[:, :, GIVEN] = POSITION
        return table, np.zeros((count, goals))

    def first(self, table: Array, weights: Array, start: Array, settings: Array | None = None) -> Array:
        """Solve the first frame from a start that may be far away; return its pose (nq,)."""
        chosen = self._first if settings is None else settings
        return self._run(self._unbound, chosen, table[:1], weights[:1], start)[0]

    def follow(self, table: Array, weights: Array, start: Array, settings: Array) -> Array:
        """Solve consecutive frames from the pose (nq,) of the previous frame; return their poses (T, nq)."""
        return self._run(self._floats, settings, table, weights, start)

    def _run(self, floats: Array, settings: Array, table: Array, weights: Array, start: Array) -> Array:
        """Call the kernel and return the poses, (T, nq)."""
        out = np.zeros((len(table) + 1, self.skeleton.nq))
        out[0] = start
        self._call(self.ik.ints, floats, table, weights, settings, self._memory, self._scratch, out)
        return out[1:]


def pursuit_settings(steps: int, rest_step: float = REST_STEP, stay: float = STAY) -> Array:
    """Return the settings of a pursuit as kernels read them.

    Args:
        steps: Largest number of steps of a frame.
        rest_step: The steps of a frame end after a step smaller than this, radians.
        stay: Weight that pulls joint values to the previous frame, relative to a goal of weight 1, per length scale or
            radian.
    """
    out = np.zeros(PURSUIT_SETTINGS)
    out[PURSUIT_STEPS], out[PURSUIT_REST_STEP], out[PURSUIT_STAY], out[PURSUIT_DAMPING] = (
        steps,
        rest_step,
        stay,
        _DAMPING,
    )
    return out


class PackedHand:
    """The tables of a hand that follows tracked points, and calls of its kernels (``kernels.pursuit.hand``).

    Args:
        pursuit: Goals and joints of the hand.
        fingers: Number of fingers of the hand.

    Attributes:
        numbers: Placement of the points on the hand, (HAND_WIDTH,), see ``kernels.layout``.
        landmarks: The tracked points, (21, 3); NaN for hidden points.
        confidence: (21,), above 0 for visible points.
        fingers: (fingers, FINGER_NUMBERS), thumb first.
        targets: Targets of a frame, (goals, 17); the caller sets the targets of goals that are not fingers.
        weights: Weights of the goals, (goals,).
        settings: Settings of a frame without pinches, and of a frame with pinches, (2, PURSUIT_SETTINGS).
        q: The pose without pinches, the pose of the hand, and the pose of the previous frame, (3, nq).
        aim: Sets the targets of a frame, without pinches.
        step: Follows a frame; returns its result code, see ``layout.NO_PALM``.
        follow: Follows a clip of targets; see ``kernels.pursuit.hand.follow_hand``.
        judge: Classifies the frame again after its pose was changed; returns its result code.
    """

    def __init__(self, pursuit: Pursuit, fingers: int) -> None:
        """Allocate memory and load the kernels."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.pursuit.hand import SIZES, TABLES, aim_hand, follow_hand, judge_hand, step_hand

        ints, floats, memory, scratch = pursuit.packed
        goals = pursuit.table(0)[0].shape[1]
        sizes: dict[str, int] = dict(zip(SIZES, (fingers, goals, pursuit.skeleton.nq), strict=True))
        hand, start = np.zeros(size_of_all(TABLES, sizes)), 0
        parts = dict[str, Array]()
        for one in TABLES:
            shape = [sizes[size] if isinstance(size, str) else size for size in one.shape]
            size = math.prod(shape)
            parts[one.name] = hand[start : start + size].reshape(shape)
            start += size
        self.numbers, self.landmarks, self.confidence = (parts[key] for key in ("numbers", "landmarks", "confidence"))
        self.fingers, self.targets, self.weights = (parts[key] for key in ("fingers", "targets", "weights"))
        self.settings, self.q = parts["settings"], parts["q"]
        packed = ints, floats, fingers, hand
        self.aim = partial(ready(aim_hand, *packed), *packed)
        self.step = partial(ready(step_hand, *packed, memory, scratch), *packed, memory, scratch)
        table, weights = pursuit.table(0)
        follow = ready(follow_hand, *packed, memory, scratch, table, weights)
        self.follow = partial(follow, *packed, memory, scratch)
        self.judge = partial(ready(judge_hand, *packed, scratch), *packed, scratch)
