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

MOST_TOKENS: Final = 200_000  # length of the longest proof: a tenth of a second, 800 kB
_PORTION: Final = 2_000  # boxes between two looks at the clock: about a millisecond
_DEPTH: Final = 1024  # boxes on the stack


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
        parts: The parts; the first is the one of the claim.
    """

    low: Array
    high: Array
    parts: tuple[Part, ...]

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
        most: Length of the longest proof.
    """
    from synovia.kernels.proofs import boxes

    m = Memory([(part.fixed, part.kinds) for part in parts.parts], parts.low, parts.high)
    tokens = np.empty((most, 2), np.int32)
    numbers = np.array([[*part.target, part.near, np.abs(part.fixed[:, :, 3]).sum(), _PORTION] for part in parts.parts])
    while True:
        code = boxes.search_boxes(m.fixed, m.kinds, numbers, m.stack, m.memory, tokens, m.state)
        if code != boxes.MORE or watch.passed:
            break
    nearest, spent = float(m.state[boxes.NEAREST]), int(m.state[boxes.TOKENS])
    if code == boxes.FOUND:
        return Found(None, m.memory[: len(parts.low), boxes.CENTRE].copy(), nearest, spent)
    if code != boxes.PROVED:
        return Found(None, None, nearest, spent)
    return Found(levels(tokens, m.state), None, nearest, spent)


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
        self.memory = np.empty((n + boxes.MEMORY_ROWS, boxes.MEMORY_WIDTH))
        self.state = np.array([1.0, 0.0, math.inf])


def levels(tokens: NDArray[np.int32], state: Array) -> NDArray[np.int32]:
    """Return the tokens of a finished search level by level; the search writes them depth first."""
    from synovia.kernels.proofs.boxes import TOKENS

    written = tokens[: int(state[TOKENS])]
    return written[np.argsort(written[:, 1], kind="stable"), 0]
