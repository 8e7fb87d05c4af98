"""Search for a proof that no joint values within the limits bring points and directions of a body to their targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import Chain
from synovia.kernels.layout import FRAME_WIDTH
from synovia.model.geometry import Array

MOST_TOKENS: Final = 200_000  # most tokens of a proof: a tenth of a second, 800 kB
MOST_WORK: Final = 40_000_000  # most tokens of a proof for several goals, times ``Parts.size``: about a second
_PORTION: Final = 2_000  # boxes between two readings of the clock: about a millisecond
_DEPTH: Final = 1024  # largest number of boxes on the stack
_FITS: Final = 30  # largest number of evaluations of a fit in ``pose_near``
_THINNEST: Final = 1e-12  # radians, length units: least width of an interval of joint values in ``pose_near``


class Found(NamedTuple):
    """The result of a search.

    Args:
        tokens: The proof, for ``check.excludes``; None if there is none.
        q: Joint values that bring all parts near their targets; None without them.
        nearest: The smallest distance of the first part from its target in a searched pose, length units.
        spent: Number of tokens that were written, also without a proof.
    """

    tokens: NDArray[np.int32] | None
    q: Array | None
    nearest: float
    spent: int = 0


class Part(NamedTuple):
    """A point that joints move, or a direction as a point at distance 1 from the origin, with a target.

    Args:
        fixed: (n + 1, 3, 4) transforms: before each joint, and from the last joint to the point.
        kinds: (n,) 0 if the joint turns the part, 1 if it slides it, -1 if it does not move it.
        target: The target (3,).
        near: The distance that counts as near, length units.
    """

    fixed: Array
    kinds: Array
    target: Array
    near: float


class Parts(NamedTuple):
    """Parts that have to be near their targets at the same time.

    Args:
        low: (n,) lower limits of the joints that move them.
        high: (n,) upper limits.
        parts: The parts; the claim is about the first.
    """

    low: Array
    high: Array
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Number of parts times the squared number of joints, to which the time of a token is about proportional."""
        return len(self.parts) * len(self.low) ** 2

    def within(self, near: Array) -> Parts:
        """Return the parts with other distances for the first ones."""
        first = tuple(part._replace(near=float(x)) for part, x in zip(self.parts[: len(near)], near, strict=True))
        return self._replace(parts=(*first, *self.parts[len(near) :]))

    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return the arguments of ``check.excludes`` but for the tokens."""
        fixed, kinds, targets, near = (np.array(values) for values in zip(*self.parts, strict=True))
        return fixed, kinds, np.stack([self.low, self.high], axis=1), targets, near


def single(chain: Chain, target: Array, near: float) -> Parts:
    """Return the tip of a chain as the only part."""
    return Parts(chain.low, chain.high, (Part(chain.fixed, chain.kinds, target, near),))


def search(parts: Parts, watch: Watch, most: int = MOST_TOKENS) -> Found:
    """Search for a proof that no joint values within the limits bring all parts near their targets.

    Equal arguments give equal results, unless the deadline stops the search.

    Args:
        parts: The parts.
        watch: The deadline.
        most: Largest number of tokens of a proof.
    """
    from synovia.kernels.proofs import boxes

    m = Memory([(part.fixed, part.kinds) for part in parts.parts], parts.low, parts.high)
    n, tokens = len(parts.low), np.empty((most, 2), np.int32)
    numbers = np.zeros((len(parts.parts), boxes.NUMBERS))
    for row, part in zip(numbers, parts.parts, strict=True):
        row[: boxes.AWAY] = *part.target, part.near, np.abs(part.fixed[:, :, 3]).sum(), _PORTION
    rows = np.empty((3 * len(numbers) + 1, (n + 1) * (n + 2) // 2))
    arrays = m.fixed, m.kinds, numbers, m.stack, m.memory, rows, tokens, m.state
    while True:
        code = boxes.search_boxes(*arrays)
        if code != boxes.MORE or watch.passed:
            break
    nearest, spent = float(m.state[boxes.NEAREST]), int(m.state[boxes.TOKENS])
    if code == boxes.FOUND:
        return Found(None, m.memory[: len(parts.low), boxes.CENTRE].copy(), nearest, spent)
    if code != boxes.PROVED:
        return Found(None, None, nearest, spent)
    return Found(levels(tokens[:spent]), None, nearest, spent)


def pose_near(parts: Parts, q: Array) -> Array | None:
    """Return joint values near q within the limits that bring all parts near their targets; None if none are found.

    A solver minimises a weighted error of lengths and angles, which can leave one of them above its tolerance although
    another pose is within both. Here each error counts as a fraction of its tolerance.
    """
    from scipy.optimize import least_squares

    near = np.array([part.near for part in parts.parts])

    def errors(q: Array, power: int) -> Array:
        away = np.array([_tip(part, q) - part.target for part in parts.parts]) / near[:, None]
        return (away * np.linalg.norm(away, axis=1, keepdims=True) ** power).ravel()

    low, high = parts.low, np.maximum(parts.high, parts.low + _THINNEST)
    best: Array = np.clip(q, parts.low, parts.high)
    for power in (0, 3):  # power 3 gives the largest error the most weight
        best = least_squares(errors, np.clip(best, low, high), bounds=(low, high), args=(power,), max_nfev=_FITS).x
        best = np.clip(best, parts.low, parts.high)
        if np.linalg.norm(errors(best, 0).reshape(-1, 3), axis=1).max() <= 1.0:
            return best
    return None


def _tip(part: Part, q: Array) -> Array:
    """Return the point, or the direction, at joint values q."""
    p = part.fixed[-1, :, 3]
    for frame, kind, x in zip(part.fixed[-2::-1], part.kinds[::-1], q[::-1].tolist(), strict=True):
        if kind == 1.0:
            p = p + np.array([0.0, 0.0, x])
        elif kind == 0.0:
            c, s = math.cos(x), math.sin(x)
            p = np.array([c * p[0] - s * p[1], s * p[0] + c * p[1], p[2]])
        p = frame[:, :3] @ p + frame[:, 3]
    return p


class Memory:
    """Joints and parts as kernels read them, and the memory of a search; see ``kernels.proofs.boxes.search_boxes``."""

    def __init__(self, parts: Sequence[tuple[Array, Array]], low: Array, high: Array) -> None:
        """Put the box of all joint values on the stack.

        Args:
            parts: (fixed, kinds) of each part.
            low: Lower limits.
            high: Upper limits.
        """
        from synovia.kernels.proofs import boxes

        n = len(low)
        fixed = np.concatenate([fixed for fixed, _ in parts])
        self.fixed = np.empty((len(fixed), FRAME_WIDTH))
        self.fixed[:, :9], self.fixed[:, 9:] = fixed[:, :, :3].reshape(-1, 9), fixed[:, :, 3]
        self.kinds = np.array([kinds for _, kinds in parts], np.float64)
        self.stack = np.empty((_DEPTH, 2 * n + 1))
        self.stack[0, :n], self.stack[0, n : 2 * n], self.stack[0, 2 * n] = (low + high) / 2, (high - low) / 2, 0.0
        self.memory = np.empty((n, boxes.MEMORY_WIDTH + n + 1))
        self.state = np.array([1.0, 0.0, math.inf])


def levels(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return tokens (t, 2) of a finished search level by level; the search writes them depth first, with depths."""
    if len(tokens) == 1:
        return tokens[:, 0].copy()
    return tokens[np.argsort(tokens[:, 1].astype(np.int16), kind="stable"), 0]  # a fast radix sort
