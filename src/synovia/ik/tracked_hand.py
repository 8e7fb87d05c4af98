"""A hand that follows tracked points, packed for the kernels that take a frame of them (``kernels.pursuit.hand``)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from synovia.ik.pursuit import Pursuit
from synovia.kernels.layout import size_of_all
from synovia.model.geometry import Array


class PackedHand:
    """The tables of a hand that follows tracked points, and calls of its kernels.

    Args:
        pursuit: Its goals and joints.
        fingers: Number of its fingers.

    Attributes:
        numbers: How the points lie on the hand, (HAND_WIDTH,), see ``kernels.layout``.
        landmarks: The tracked points, (21, 3); NaN where one is not seen.
        confidence: (21,), above 0 where a point is seen.
        fingers: (fingers, FINGER_NUMBERS), thumb first.
        targets: Those of a frame, (goals, 17); the caller sets those that are not of fingers.
        weights: Of the goals, (goals,).
        settings: Of a frame without pinches, and of one with them, (2, PURSUIT_SETTINGS).
        q: The pose that would follow without pinches, that of the hand, and the one of the frame before, (3, nq).
        aim: Sets the targets of a frame, without pinches.
        step: Follows a frame; returns what became of it, see ``layout.NO_PALM``.
        judge: Judges the pose again after it was changed; returns what became of the frame.
    """

    def __init__(self, pursuit: Pursuit, fingers: int) -> None:
        """Take memory and load the kernels."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.pursuit.hand import SIZES, TABLES, aim_hand, judge_hand, step_hand

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
        self.judge = partial(ready(judge_hand, *packed, scratch), *packed, scratch)
