"""Prove that several goals exclude each other, by boxes of the joints that their chains share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import Chain, held_text
from synovia.ik.proofs.conditions import conditions_of, join
from synovia.ik.proofs.search import Parts, search

_MOST_BOXES: Final = 2_000
_MOST_TOKENS: Final = 2_000_000  # of all searches together: some seconds
_TOKENS: Final = 2_000  # length of the proof for one goal in one box: a longer one costs more than halving the box


class Aim(NamedTuple):
    """One goal.

    Args:
        label: Its label.
        chain: The joints that move it.
        parts: What it brings to targets, with its tolerances.
    """

    label: str
    chain: Chain
    parts: Parts


class Step(NamedTuple):
    """What happens to a box of the shared joints.

    Args:
        joint: The shared joint whose interval is halved; -1 if the box is excluded.
        goal: The goal that no pose of the box meets, if it is excluded.
        tokens: The proof for this goal, see ``check.excludes``.
    """

    joint: int
    goal: int
    tokens: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SharedProof:
    """A proof that no pose within the joint limits meets several goals together.

    ``solution.find_conflict`` returns it. The boxes of the joints that all chains share are halved until one of the
    goals cannot be met in each of them.

    Args:
        aims: The goals.
        shared: (s, goals) index of each shared joint in each chain.
        steps: What happens to each box, depth first, the lower half first.

    Example:
        >>> import synovia as sy
        >>> goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.PositionGoal("joint6", (-0.4, 0.1, 0.5))]
        >>> solution = sy.solve(sy.bundled("arm7"), goals, "full-body")
        >>> solution.find_conflict().proof.claim  # doctest: +SKIP
        "No pose within the joint limits meets 'tool' and 'joint6' together."
    """

    aims: tuple[Aim, ...]
    shared: NDArray[np.int64]
    steps: tuple[Step, ...]

    @property
    def claim(self) -> str:
        """The claim in a sentence."""
        names = " and ".join(repr(aim.label) for aim in self.aims)
        held = dict.fromkeys(name for aim in self.aims for name in aim.chain.held)
        return f"No pose within the joint limits meets {names} together{held_text([*held])}."

    def check(self) -> bool:
        """Check the proof with a short program that shares no code with the search; see ``Proof.check``."""
        from synovia.ik.proofs.check import excludes_together

        return excludes_together([aim.parts.arrays() for aim in self.aims], self.shared, self.steps)

    def __repr__(self) -> str:
        """Return the claim."""
        return f"<SharedProof: {self.claim}>"


def aims_of(solution: Any, places: Sequence[int]) -> list[Aim]:
    """Return those goals of a solution that proofs know.

    Args:
        solution: The solution.
        places: Indices of the goals.
    """
    found = [(solution.ik.goals[g].label, conditions_of(solution, g)) for g in places]
    return [Aim(label, *join(conditions)) for label, conditions in found if conditions]


def exclude_together(aims: list[Aim], watch: Watch) -> SharedProof | None:
    """Search for a proof that several goals exclude each other; None without one.

    Args:
        aims: The goals.
        watch: The deadline.
    """
    if len(aims) < 2:
        return None
    common = sorted(key for key in aims[0].chain.keys if all(key in aim.chain.keys for aim in aims))
    if not common:
        return None
    shared = np.array([[aim.chain.keys.index(key) for aim in aims] for key in common], np.int64)
    first = aims[0].parts
    limits = np.stack([first.low[shared[:, 0]], first.high[shared[:, 0]]], axis=1)
    stack, steps, order = [limits], list[Step](), list(range(len(aims)))
    spent = 0
    for _ in range(_MOST_BOXES):
        if not stack:
            return SharedProof(tuple(aims), shared, tuple(steps))
        if watch.passed or spent > _MOST_TOKENS:
            return None
        box = stack.pop()
        for g in order:
            low, high = aims[g].parts.low.copy(), aims[g].parts.high.copy()
            low[shared[:, g]], high[shared[:, g]] = box.T
            found = search(aims[g].parts._replace(low=low, high=high), watch, _TOKENS)
            spent += found.spent
            if found.tokens is not None:
                steps.append(Step(-1, g, found.tokens))
                order.remove(g)
                order.insert(0, g)  # neighbours are often excluded by the same goal
                break
        else:
            k = int(np.argmax(box[:, 1] - box[:, 0]))
            lower, upper = box.copy(), box.copy()
            lower[k, 1] = upper[k, 0] = box[k].mean()
            stack += [upper, lower]
            steps.append(Step(k, -1, np.zeros(0, np.int32)))
    return None
