"""Search for a proof that no joint values within the limits of a chain bring its tip to a target."""

from __future__ import annotations

import math
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
        q: Joint values of the chain within the distance of the target; None if there are none.
        nearest: The smallest distance of a searched pose from the target, length units.
        spent: Number of tokens that were written, also without a proof.
    """

    tokens: NDArray[np.int32] | None
    q: Array | None
    nearest: float
    spent: int = 0


def search(chain: Chain, target: Array, near: float, watch: Watch, most: int = MOST_TOKENS) -> Found:
    """Search for a proof that the tip of a chain stays farther than ``near`` from a target.

    Equal arguments give equal results, unless the deadline stops the search.

    Args:
        chain: The chain.
        target: The target (3,).
        near: Distance to exclude, length units.
        watch: The deadline.
        most: Length of the longest proof.
    """
    from synovia.kernels.proofs import boxes

    m = Memory(chain)
    tokens = np.empty((most, 2), np.int32)
    numbers = np.array([*target, near, chain.scale, _PORTION])
    while True:
        code = boxes.search_boxes(m.fixed, m.joints, numbers, m.stack, m.memory, tokens, m.state)
        if code != boxes.MORE or watch.passed:
            break
    nearest, spent = float(m.state[boxes.NEAREST]), int(m.state[boxes.TOKENS])
    if code == boxes.FOUND:
        return Found(None, m.memory[: len(chain.slides), boxes.CENTRE].copy(), nearest, spent)
    if code != boxes.PROVED:
        return Found(None, None, nearest, spent)
    return Found(levels(tokens, m.state), None, nearest, spent)


class Memory:
    """The chain as kernels read it, and the memory of a search; see ``kernels.proofs.boxes.search_boxes``."""

    def __init__(self, chain: Chain) -> None:
        """Put the box of all joint values on the stack."""
        from synovia.kernels.proofs import boxes

        n = len(chain.slides)
        self.fixed = np.empty((n + 1, FRAME_WIDTH))
        self.fixed[:, :9], self.fixed[:, 9:] = chain.fixed[:, :, :3].reshape(n + 1, 9), chain.fixed[:, :, 3]
        self.joints = np.stack([chain.slides.astype(np.float64), chain.low, chain.high], axis=1)
        self.stack = np.empty((_DEPTH, 2 * n + 1))
        self.stack[0] = np.concatenate([(chain.low + chain.high) / 2, (chain.high - chain.low) / 2, [0.0]])
        self.memory = np.empty((n + boxes.MEMORY_ROWS, boxes.MEMORY_WIDTH))
        self.state = np.array([1.0, 0.0, math.inf])


def levels(tokens: NDArray[np.int32], state: Array) -> NDArray[np.int32]:
    """Return the tokens of a finished search level by level; the search writes them depth first."""
    from synovia.kernels.proofs.boxes import TOKENS

    written = tokens[: int(state[TOKENS])]
    return written[np.argsort(written[:, 1], kind="stable"), 0]
