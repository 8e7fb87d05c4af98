"""Prove that several goals exclude each other, by boxes of the joints that their chains share."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import held_text
from synovia.ik.proofs.conditions import conditions_of, join
from synovia.ik.proofs.proof import write_proof
from synovia.ik.proofs.search import MOST_WORK, Part, Parts, search
from synovia.io.base import as_path
from synovia.io.npz import read_arrays, texts_of
from synovia.model.geometry import Array

_SCHEMA: Final = "synovia.shared-proof/1"
_NAMES: Final = ("labels", "held", "sizes", "numbers", "shared", "steps", "tokens")
_KIND: Final = "a proof that SharedProof.save wrote"

_MOST_BOXES: Final = 2_000
_TOKENS: Final = 2_000  # most tokens of the proof for one goal in one box: more would cost more than halving the box


class Aim(NamedTuple):
    """One goal.

    Args:
        label: Its label.
        held: Names of joints that stay in place.
        parts: Its points and directions, with targets and tolerances.
        keys: Keys of its joints, see ``Chain``; not in a proof that was read from a file.
    """

    label: str
    held: tuple[str, ...]
    parts: Parts
    keys: tuple[tuple[int, int], ...] = ()


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
        held = dict.fromkeys(name for aim in self.aims for name in aim.held)
        return f"No pose within the joint limits meets {names} together{held_text([*held])}."

    def check(self) -> bool:
        """Check the proof with a short program that shares no code with the search; see ``Proof.check``."""
        from synovia.ik.proofs.check import excludes_together

        return excludes_together([aim.parts.arrays() for aim in self.aims], self.shared, self.steps)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the proof as a compressed NumPy archive, without pickle.

        Args:
            path: The file, ``.npz``.
            force: Whether an existing file may be replaced.

        Raises:
            FileError: If the file exists and ``force`` is not set, or it cannot be written.
            FormatError: If the file name has another suffix.
        """
        held = dict.fromkeys(name for aim in self.aims for name in aim.held)
        arrays = [aim.parts.arrays() for aim in self.aims]
        content: dict[str, Any] = {
            "labels": np.array([aim.label for aim in self.aims], np.str_),
            "held": np.array([*held], np.str_),
            "sizes": np.array([kinds.shape for _, kinds, *_ in arrays], np.int64),
            "numbers": np.concatenate([part.ravel() for several in arrays for part in several]),
            "shared": self.shared,
            "steps": np.array([(step.joint, step.goal, len(step.tokens)) for step in self.steps], np.int64),
            "tokens": np.concatenate([step.tokens for step in self.steps]).astype(np.int32),
        }
        write_proof(path, _SCHEMA, {**content, "digest": np.array(_digest(content))}, force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a proof that ``save`` wrote; ``check`` then says whether it holds.

        Args:
            path: The file, ``.npz``.

        Raises:
            FileError: If the file cannot be read.
            FormatError: If the file is damaged, or of another kind.
        """
        where = as_path(path)
        found = read_arrays(where, ("schema", *_NAMES, "digest"), _KIND)
        if texts_of(found.get("schema", np.zeros(1))) != [_SCHEMA] or len(found) != len(_NAMES) + 2:
            raise FormatError("archive has no such proof", where=str(where), expected=f"schema {_SCHEMA!r}")
        labels, held = texts_of(found["labels"]), texts_of(found["held"])
        known = texts_of(found["digest"]) == [_digest({name: found[name] for name in _NAMES})]
        if not known or labels is None or held is None:
            raise FormatError("proof is damaged", where=str(where), expected=_KIND)
        numbers, first, aims = found["numbers"], 0, list[Aim]()
        for label, (p, n) in zip(labels, found["sizes"].tolist(), strict=True):
            values: list[Array] = []
            for shape in ((p, n + 1, 3, 4), (p, n), (n, 2), (p, 3), (p,)):
                values.append(numbers[first : first + math.prod(shape)].reshape(shape))
                first += math.prod(shape)
            fixed, kinds, limits, targets, near = values
            each = zip(fixed, kinds, targets, near.tolist(), strict=True)
            aims.append(Aim(label, tuple(held), Parts(limits[:, 0], limits[:, 1], tuple(Part(*one) for one in each))))
        ends = np.cumsum(found["steps"][:, 2])[:-1]
        tokens = np.split(found["tokens"], ends)
        steps = (Step(j, g, part) for (j, g, _), part in zip(found["steps"].tolist(), tokens, strict=True))
        return cls(tuple(aims), found["shared"], tuple(steps))

    def __repr__(self) -> str:
        """Return the claim."""
        return f"<SharedProof: {self.claim}>"


def _digest(content: dict[str, Any]) -> str:
    """Return the hash of the content of a file."""
    parts = (b"%r %r " % (one.dtype.str, one.shape) + one.tobytes() for one in content.values())
    return blake2b(b"".join(parts), digest_size=32).hexdigest()


def aims_of(solution: Any, places: Sequence[int]) -> list[Aim]:
    """Return those goals of a solution that proofs support.

    Args:
        solution: The solution.
        places: Indices of the goals.
    """
    found = [(solution.ik.goals[g].label, conditions_of(solution, g)) for g in places]
    joined = [(label, join(conditions)) for label, conditions in found if conditions]
    return [Aim(label, chain.held, parts, chain.keys) for label, (chain, parts) in joined]


def exclude_together(aims: list[Aim], watch: Watch) -> SharedProof | None:
    """Search for a proof that several goals exclude each other; None without one.

    Args:
        aims: The goals.
        watch: The deadline.
    """
    if len(aims) < 2:
        return None
    common = sorted(key for key in aims[0].keys if all(key in aim.keys for aim in aims))
    if not common:
        return None
    shared = np.array([[aim.keys.index(key) for aim in aims] for key in common], np.int64)
    first = aims[0].parts
    limits = np.stack([first.low[shared[:, 0]], first.high[shared[:, 0]]], axis=1)
    stack, steps, order = [limits], list[Step](), list(range(len(aims)))
    spent = 0
    for _ in range(_MOST_BOXES):
        if not stack:
            return SharedProof(tuple(aims), shared, tuple(steps))
        if watch.passed or spent > MOST_WORK:
            return None
        box = stack.pop()
        for g in order:
            low, high = aims[g].parts.low.copy(), aims[g].parts.high.copy()
            low[shared[:, g]], high[shared[:, g]] = box.T
            found = search(aims[g].parts._replace(low=low, high=high), watch, _TOKENS)
            spent += found.spent * aims[g].parts.size
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
