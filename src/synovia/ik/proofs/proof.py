"""The proof that a target is out of reach: its claim in words, its file, and its check."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError
from synovia.io.base import as_path
from synovia.io.npz import read_arrays, texts_of, write_archive
from synovia.model.geometry import Array
from synovia.text import length_text

SCHEMA: Final = "synovia.proof/2"
_TEXTS: Final = ("kind", "measure", "goal", "given", "held", "digest")
_FLOATS: Final = ("near", "found", "unit")
_ARRAYS: Final = {
    "margins": ("f8", 1), "targets": ("f8", 2), "fixed": ("f8", 4), "kinds": ("f8", 2), "low": ("f8", 1),
    "high": ("f8", 1), "tokens": ("i4", 1), "cells": ("u1", 2), "plane": ("f8", 1),
}  # fmt: skip
_CHORDS: Final = ("angle", "direction")
_CLAIMS: Final = {
    "length": "brings {0} nearer than {1} to its target",
    "bounds": "brings {0} nearer than {1} to the bounds of its target",
    "angle": "turns {0} nearer than {1} to its target",
    "direction": "points {0} nearer than {1} to its direction",
    "aim": "aims {0} so that its axis passes the point at less than {1}",
}
_KIND: Final = "a proof that Proof.save wrote"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Proof:
    """A proof that no pose within the joint limits brings a goal to its target.

    The proof has its own copy of the joints, so it can be checked without the body. ``solution.proof`` returns one.

    A proof has one part or more. A part is a point, or a direction as a point at distance 1 from the origin; it has a
    target and a distance from it. No pose brings all parts within their distances.

    Args:
        kind: What proves the claim: "length" (the lengths of the links), "limits" (one bound that uses the limits),
            "search" (a search of boxes of joint values), or "map" (a map of what the last joints reach).
        measure: What ``near`` measures: "length", a distance from the target; "bounds", from the bounds about the
            target; "aim", the distance at which an axis passes the point; "angle" and "direction", the chord
            2 sin(θ / 2) of the angle θ that a rotation or a direction is off.
        goal: Label of the goal.
        given: Text about the other tolerances that the excluded poses keep.
        held: Text about joints that stay in place; empty if all joints may move.
        near: No pose brings the goal nearer than this to the target.
        found: Distance of the best pose found from the target.
        unit: Metres per length unit; NaN if unknown.
        group: Number of parts, the first ones, that measure the goal's own miss. Their allowed distance is ``near``
            plus a margin.
        margins: (parts,) margins of these parts; for the other parts, their allowed distances from their targets.
        targets: (parts, 3) target of each part, length units, in the world.
        fixed: (parts, n + 1, 3, 4) transforms: before each joint, and from the last joint to the part.
        kinds: (parts, n) 0 if the joint turns the part about its z axis, 1 if it slides it, -1 if it does not move it.
        low: (n,) lower limits, radians or length units.
        high: (n,) upper limits.
        tokens: (t,) the proof; ``synovia.ik.proofs.check`` reads it. Empty if the lengths alone prove it.
        cells: Cells that the last joints reach, see ``excludes_by_map`` there, packed to bits; empty without a map.
        plane: (3,) index of the joint of the map, size of a cell, and height of the point to which distances are.
        digest: Hash of all other values.

    Example:
        >>> import synovia as sy
        >>> proof = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (3.0, 0.0, 0.5))).proof
        >>> proof.check(), proof.bound > 1.6
        (True, True)
    """

    kind: str
    measure: str
    goal: str
    given: str
    held: str
    near: float
    found: float
    unit: float
    group: int
    margins: Array
    targets: Array
    fixed: Array
    kinds: Array
    low: Array
    high: Array
    tokens: NDArray[np.int32]
    cells: NDArray[np.uint8]
    plane: Array
    digest: str = ""

    @property
    def bound(self) -> float:
        """A lower bound of the miss: length units, or radians for a rotation or a direction."""
        return 2.0 * math.asin(min(0.5 * self.near, 1.0)) if self.measure in _CHORDS else self.near

    @property
    def claim(self) -> str:
        """The claim in a sentence, with figures."""
        unit = None if np.isnan(self.unit) else self.unit
        least = at_least(self.bound, unit, angle=self.measure in _CHORDS)
        claim = _CLAIMS[self.measure].format(repr(self.goal), least)
        text = f"No pose within the joint limits{self.given} {claim}{self.held}."
        if self.given or self.measure not in ("length", "bounds"):
            return text
        return f"{text} The best pose found is {length_text(self.found, unit)} away."

    def check(self) -> bool:
        """Check the proof with a short program that shares no code with the search; see ``synovia.ik.proofs.check``.

        It takes milliseconds; for a map or a long search some seconds.

        Returns:
            Whether the proof holds and is the one that was saved.
        """
        from synovia.ik.proofs.check import Plane, excludes, excludes_by_map, out_of_lengths

        if self.digest != self._digest() or not self._makes_sense():
            return False
        limits = np.stack([self.low, self.high], axis=1)
        near = self.margins + self.near * (np.arange(len(self.margins)) < self.group)
        single = self.fixed[0], self.kinds[0], limits
        if self.cells.size and len(near) == 1:
            k, size, height = self.plane.tolist()
            plane = Plane(np.unpackbits(self.cells, axis=1), size, height)
            return excludes_by_map(single, int(k), self.targets[0], float(near[0]), self.tokens, plane)
        if self.kind == "length" and not self.tokens.size and len(near) == 1:
            return out_of_lengths(*single, self.targets[0], float(near[0]))
        return excludes(self.fixed, self.kinds, limits, self.targets, near, self.tokens)

    def _makes_sense(self) -> bool:
        """Return whether the numbers state a claim: parts, known kinds of joints, valid limits and a valid map."""
        k, size, height = self.plane.tolist()
        known = bool(np.isin(self.kinds, (-1.0, 0.0, 1.0)).all() and (self.low <= self.high).all())
        drawn = not self.cells.size or (0 <= k < len(self.low) and 0.0 < size < math.inf and math.isfinite(height))
        return known and drawn and 1 <= self.group <= len(self.margins)

    def sealed(self) -> Self:
        """Return the proof with its hash."""
        return replace(self, digest=self._digest())

    def _digest(self) -> str:
        """Return the hash of all other values."""
        values = [getattr(self, name) for name in self.__dataclass_fields__ if name != "digest"]
        simple = [value if isinstance(value, str | int | float) else (value.dtype.str, value.shape) for value in values]
        found = blake2b(repr(simple).encode(), digest_size=32)
        for value in values:
            if isinstance(value, np.ndarray):
                found.update(value.tobytes())
        return found.hexdigest()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the proof as a compressed NumPy archive, without pickle.

        Args:
            path: The file, ``.npz``.
            force: Whether an existing file may be replaced.

        Raises:
            FileError: If the file exists and ``force`` is not set, or it cannot be written.
            FormatError: If the file name has another suffix.
        """
        write_proof(path, SCHEMA, {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}, force=force)

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
        numbers = {name: found[name] for name in (*_FLOATS, "group")}
        good = all(text is not None and len(text) == 1 for text in texts.values()) and all(
            found[name].dtype == np.dtype(kind) and found[name].ndim == dimensions
            for name, (kind, dimensions) in _ARRAYS.items()
        )
        good = good and all(value.ndim == 0 and value.dtype.kind in "fi" for value in numbers.values())
        good = good and (texts["measure"] or [""])[0] in _CLAIMS
        p, n = found["kinds"].shape if good else (0, 0)
        shapes = {
            "margins": (p,), "targets": (p, 3), "fixed": (p, n + 1, 3, 4), "low": (n,), "high": (n,), "plane": (3,),
        }  # fmt: skip
        if not good or not p or any(found[name].shape != shape for name, shape in shapes.items()):
            raise FormatError("proof is damaged", where=str(where), expected=_KIND)
        values: dict[str, Any] = {name: found[name] for name in _ARRAYS}
        values |= {name: float(numbers[name]) for name in _FLOATS} | {"group": int(numbers["group"])}
        values |= {name: text[0] for name, text in texts.items() if text}
        return cls(**values)

    def __repr__(self) -> str:
        """Return the kind and the claim."""
        return f"<Proof by {self.kind}: {self.claim}>"


def at_least(value: float, unit: float | None, *, angle: bool) -> str:
    """Return a length or an angle as text, rounded down."""
    scale, digits = (math.degrees(1.0), 3) if angle else (1.0, 4) if unit is None else (unit, 3)
    shown = value * scale
    if shown > 0.0:
        step = 10.0 ** (math.floor(math.log10(shown)) + 1 - digits)
        shown = math.floor(shown / step) * step
    return f"{shown:.3g} deg" if angle else length_text(shown / scale, unit)


def write_proof(path: str | os.PathLike[str], schema: str, content: dict[str, Any], *, force: bool) -> None:
    """Write the arrays of a proof to a file; see ``Proof.save``."""
    where = as_path(path)
    if where.suffix.lower() != ".npz":
        raise FormatError("proofs are saved as .npz", where=str(where), value=where.suffix, expected=".npz")
    write_archive(where, {"schema": np.array(schema), **content}, force=force)
