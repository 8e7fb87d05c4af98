"""The proof that a target is out of reach: its claim in words, its file, and its check."""

from __future__ import annotations

import io
import math
import os
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.base import as_path, write_bytes
from synovia.io.npz import read_arrays, texts_of
from synovia.model.geometry import Array, Bools
from synovia.text import length_text

SCHEMA: Final = "synovia.proof/1"
_TEXTS: Final = ("kind", "goal", "held", "digest")
_NUMBERS: Final = {
    "near": 0,
    "found": 0,
    "unit": 0,
    "slack": 0,
    "target": 1,
    "fixed": 3,
    "low": 1,
    "high": 1,
    "plane": 1,
}
_KIND: Final = "a proof that Proof.save wrote"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Proof:
    """A proof that no pose within the joint limits brings a goal's point to its target.

    The proof has its own copy of the chain, so it can be checked without the body. ``solution.proof`` returns one.

    Args:
        kind: "length" if the lengths of the links prove it, "limits" if one bound of the limits does, "search" if a
            search of boxes of joint values does, "map" if a map of what the last joints reach does.
        goal: Label of the goal.
        held: Text about joints that stay in place; empty if all joints of the chain may move.
        near: No pose brings the point nearer than this to the target, length units.
        found: Distance of the best pose found from the target, length units.
        unit: Metres per length unit; NaN if unknown.
        slack: For a proof of a pose: how far its rotation, within the tolerance, moves the point, length units. The
            point is then a point of the wrist. 0 for a proof of a position.
        target: The target (3,), length units, in the world.
        fixed: (n + 1, 3, 4) transforms: before each joint of the chain, and from the last joint to the point.
        slides: (n,) whether each joint slides along its z axis; else it turns about it.
        low: (n,) lower limits, radians or length units.
        high: (n,) upper limits.
        tokens: (t,) the proof; ``synovia.ik.proofs.check`` reads it. Empty if the lengths alone prove it.
        cells: Cells that the last joints reach, see ``excludes_by_map`` there; empty without a map.
        plane: (3,) index of the joint of the map, size of a cell, and smallest height.
        digest: Hash of all other values.

    Example:
        >>> import synovia as sy
        >>> proof = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.5))).proof
        >>> proof.check(), proof.near > 1.6
        (True, True)
    """

    kind: str
    goal: str
    held: str
    near: float
    found: float
    unit: float
    slack: float
    target: Array
    fixed: Array
    slides: Bools
    low: Array
    high: Array
    tokens: NDArray[np.int32]
    cells: NDArray[np.uint8]
    plane: Array
    digest: str = ""

    @property
    def claim(self) -> str:
        """The claim in a sentence, with figures."""
        unit = None if np.isnan(self.unit) else self.unit
        if self.slack:
            least = _at_least(self.near - self.slack, unit)
            return (
                f"No pose within the joint limits that has the rotation of {self.goal!r} brings it nearer than {least} "
                f"to its target{self.held}."
            )
        return (
            f"No pose within the joint limits brings {self.goal!r} nearer than {_at_least(self.near, unit)} to its "
            f"target{self.held}. The best pose found is {length_text(self.found, unit)} away."
        )

    def check(self) -> bool:
        """Check the proof with a short program that shares no code with the search; see ``synovia.ik.proofs.check``.

        It takes milliseconds; for a map up to some seconds.

        Returns:
            Whether the proof holds and is the one that was saved.
        """
        from synovia.ik.proofs.check import Plane, excludes, excludes_by_map, out_of_lengths

        if self.digest != self._digest():
            return False
        limits = np.stack([self.low, self.high], axis=1)
        k, size, lowest = self.plane.tolist()
        if self.cells.size:
            chain, plane = (self.fixed, self.slides, limits), Plane(self.cells, size, lowest)
            return excludes_by_map(chain, int(k), self.target, self.near, self.tokens, plane)
        if self.kind == "length" and not self.tokens.size:
            return out_of_lengths(self.fixed, self.slides, limits, self.target, self.near)
        return excludes(self.fixed, self.slides, limits, self.target, self.near, self.tokens)

    def sealed(self) -> Self:
        """Return the proof with its hash."""
        return replace(self, digest=self._digest())

    def _digest(self) -> str:
        """Return the hash of all other values."""
        values = (getattr(self, one.name) for one in fields(self) if one.name != "digest")
        data = [np.asarray(value) for value in values]
        return sha256(b"".join(b"%r %r " % (one.dtype.str, one.shape) + one.tobytes() for one in data)).hexdigest()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the proof as a compressed NumPy archive, without pickle.

        Args:
            path: The file, ``.npz``.
            force: Whether an existing file may be replaced.

        Raises:
            FileError: If the file exists and ``force`` is not set, or it cannot be written.
            FormatError: If the file name has another suffix.
        """
        where = as_path(path)
        if where.suffix.lower() != ".npz":
            raise FormatError("proofs are saved as .npz", where=str(where), value=where.suffix, expected=".npz")
        data = io.BytesIO()
        values: dict[str, Any] = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}
        np.savez_compressed(data, schema=np.array(SCHEMA), **values)
        write_bytes(where, data.getvalue(), force=force)

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
        names = [one.name for one in fields(cls)]
        found = read_arrays(where, ("schema", *names), _KIND)
        if texts_of(found.get("schema", np.zeros(1))) != [SCHEMA] or any(name not in found for name in names):
            raise FormatError("archive has no proof of this version", where=str(where), expected=f"schema {SCHEMA!r}")
        texts = {name: texts_of(found[name]) for name in _TEXTS}
        types = {**dict.fromkeys(_NUMBERS, "f8"), "slides": "b1", "tokens": "i4", "cells": "u1"}
        dimensions = {**_NUMBERS, "slides": 1, "tokens": 1, "cells": 2}
        good = all(text is not None and len(text) == 1 for text in texts.values()) and all(
            found[name].dtype == np.dtype(kind) and found[name].ndim == dimensions[name] for name, kind in types.items()
        )
        n = len(found["slides"]) if good else 0
        shapes = {"target": (3,), "fixed": (n + 1, 3, 4), "low": (n,), "high": (n,), "plane": (3,)}
        if not good or any(found[name].shape != shape for name, shape in shapes.items()):
            raise FormatError("proof is damaged", where=str(where), expected=_KIND)
        values: dict[str, Any] = {name: found[name] for name in types}
        values |= {name: float(found[name]) for name in ("near", "found", "unit", "slack")}
        values |= {name: text[0] for name, text in texts.items() if text}
        return cls(**values)

    def __repr__(self) -> str:
        """Return the kind and the claim."""
        return f"<Proof by {self.kind}: {self.claim}>"


def _at_least(length: float, unit: float | None) -> str:
    """Return a length as text, rounded down."""
    scale, digits = (1.0, 4) if unit is None else (unit, 3)
    shown = length * scale
    if shown > 0.0:
        step = 10.0 ** (math.floor(math.log10(shown)) + 1 - digits)
        shown = math.floor(shown / step) * step
    return length_text(shown / scale, unit)
