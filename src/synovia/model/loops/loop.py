"""Loops and couplings: constraints between two frames of a body, or between values of its joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, Protocol, cast

import numpy as np

from synovia.arguments import ChecksArguments
from synovia.errors import InputError, UnknownNameError, did_you_mean
from synovia.kernels.layout import ABOUT_AXIS, ANY_TURN, AT_DISTANCE, AT_RIGHT_ANGLE, NO_TURN
from synovia.model.geometry import LONGEST, Array, as_numbers, as_transform, dimensions, is_number, rigid
from synovia.model.joint import Joint, Kind
from synovia.model.pose import Posable

LARGEST_POWER: Final = 4  # largest power of a joint value in a coupling, as in MuJoCo


class Ties(NamedTuple):
    """What a kind of loop ties: axes of the first frame (bits), a code for the rotation, and the number of rows."""

    place: int
    turn: int
    rows: int


KINDS: Final = {
    "point": Ties(7, ANY_TURN, 3),
    "weld": Ties(7, NO_TURN, 6),
    "hinge": Ties(7, ABOUT_AXIS, 5),
    "universal": Ties(7, AT_RIGHT_ANGLE, 4),
    "slide": Ties(3, NO_TURN, 5),
    "cylindrical": Ties(3, ABOUT_AXIS, 4),
    "distance": Ties(AT_DISTANCE, ANY_TURN, 1),
}


class Tied(Posable, Protocol):
    """The parts of a skeleton that its loops use."""

    name: str
    joints: tuple[Joint, ...]
    parents: tuple[int, ...]
    loops: tuple[Tie, ...]

    @cached_property
    def rest_q(self) -> Array:
        """Joint values of the rest pose."""
        ...

    @cached_property
    def size(self) -> float:
        """Length of the longest chain."""
        ...

    @cached_property
    def leader_rows(self) -> Mapping[int, int]:
        """Row of the leader of each mimic joint."""
        ...

    def locate(self, frame: str | int) -> tuple[int, Array | None]:
        """Return the row of the joint that carries a frame, and the frame on it; None for the joint's own frame."""
        ...

    def value_index(self, joint: str | int) -> int:
        """Return the row of the joint whose value has this name."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Loop(ChecksArguments):
    """Two frames that are tied to each other, so that the joints between them form a closed loop.

    The kinds, named after joints: ``"point"`` (a ball joint: equal origins), ``"weld"`` (equal frames), ``"hinge"``
    (equal origins and z axes), ``"universal"`` (equal origins, orthogonal z axes), ``"slide"`` (the second frame moves
    along the first z axis without rotation), ``"cylindrical"`` (it also rotates about that axis) and ``"distance"``
    (the origins are a given distance apart, like the ends of a rod).

    Args:
        first: Name of a joint, link or site.
        second: Name of another joint, link or site; None for the world.
        kind: Kind of the constraint.
        offset: Point (3,) or frame (4, 4) on the first, in its frame.
        other_offset: Point (3,) or frame (4, 4) on the second, in its frame, or in the world.
        distance: Distance of both origins, length units; only for ``"distance"``.
        name: Name in messages; None for the names of both frames.

    Raises:
        InputError: If a value cannot be used; when a skeleton is created, if a frame does not exist or both are on
            bodies that do not move relative to each other.

    Example:
        >>> import synovia as sy
        >>> hinge = dict(kind=sy.Kind.HINGE, axis=(0, 0, 1))
        >>> def bar(name, parent, x):
        ...     return sy.Joint(name, parent, rest=[[1, 0, 0, x], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], **hinge)
        >>> bars = sy.Skeleton([bar("crank", None, 0), bar("coupler", "crank", 1), bar("rocker", None, 3)])
        >>> closed = bars.with_loops([sy.Loop("coupler", "rocker", offset=(3, 0, 0), other_offset=(1, 0, 0))])
        >>> round(closed.rest_pose()["rocker"], 6)
        0.0
    """

    first: str
    second: str | None = None
    kind: str = "point"
    _: KW_ONLY
    offset: Any = None
    other_offset: Any = None
    distance: float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Check the values; convert offsets to frames."""
        for what, value in (("first", self.first), ("second", self.second), ("name", self.name)):
            optional = what != "first"
            given: Any = value
            if not (isinstance(given, str) and given) and not (optional and given is None):
                raise InputError(f"{what} of a loop", value=given, expected="text" + " or None" * optional)
        if self.kind not in KINDS:
            hint = did_you_mean(str(self.kind), KINDS)
            raise UnknownNameError(f"no kind of loop {self.kind!r}", where=self.label, hint=hint)
        object.__setattr__(self, "offset", _as_frame(self.offset, f"offset of loop {self.label!r}"))
        object.__setattr__(self, "other_offset", _as_frame(self.other_offset, f"other_offset of loop {self.label!r}"))
        far: Any = self.distance
        if (self.kind == "distance") != (far is not None):
            expected = "a number above 0" if far is None else "none, because only the kind 'distance' has one"
            raise InputError(f"distance of loop {self.label!r}", value=far, expected=expected)
        if far is not None and not (is_number(far) and 0.0 < far <= LONGEST):
            raise InputError(f"distance of loop {self.label!r}", value=far, expected="a number above 0")

    @property
    def label(self) -> str:
        """Name of the loop; without one, the names of both frames."""
        return self.name or f"{self.first} - {self.second or 'world'}"

    @property
    def rows(self) -> int:
        """Number of constraint rows."""
        return KINDS[self.kind].rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tied frames."""
        return (self.first,) if self.second is None else (self.first, self.second)

    def ends(self, skeleton: Tied) -> tuple[tuple[int, Array], tuple[int, Array]]:
        """Return both frames: the row of the joint that carries each (-1 for the world), and the frame (4, 4) on it.

        Raises:
            UnknownNameError: If a frame does not exist.
        """
        out: list[tuple[int, Array]] = []
        for name, offset in ((self.first, self.offset), (self.second, self.other_offset)):
            row, place = (-1, None) if name is None else skeleton.locate(name)
            out.append((row, offset if place is None else place @ offset))
        return out[0], out[1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the arguments, so that the arrays stay read-only."""
        named = {"offset": self.offset, "other_offset": self.other_offset, "distance": self.distance, "name": self.name}
        return partial(Loop, **named), (self.first, self.second, self.kind)

    def __repr__(self) -> str:
        """Return the tied frames and the kind."""
        return f"Loop({self.first!r}, {self.second!r}, {self.kind!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Coupling(ChecksArguments):
    """A constraint between joint values: the sum of a polynomial of each value is constant.

    ``Mimic`` is the simple case of one joint that follows another linearly. A coupling ties any number of hinges and
    slides, and its terms may be polynomials: ``Coupling({"a": 1, "b": (-2, 0.5)})`` keeps a - 2 b + 0.5 b² = 0.

    Args:
        terms: By joint: a factor of its value, or the factors of its first, second, third and fourth power; radians and
            length units.
        equals: The constant.
        name: Name in messages; None for the names of the joints.

    Raises:
        InputError: If a value cannot be used; when a skeleton is created, if a joint does not exist or is not a hinge
            or slide.

    Example:
        >>> import synovia as sy
        >>> sy.Coupling({"thumb": 1.0, "index": (-0.5, 0.1)}).label
        'thumb - index'
    """

    terms: Mapping[str, Any]
    equals: float = 0.0
    _: KW_ONLY
    name: str | None = None

    def __post_init__(self) -> None:
        """Check the values; convert each polynomial to a tuple."""
        given: Any = self.terms
        if not isinstance(given, Mapping) or not given:
            raise InputError(
                "terms of a coupling", value=repr(self.terms), expected="factors by joint, such as {'a': 1, 'b': -2}"
            )
        terms: dict[str, tuple[float, ...]] = {}
        for joint, value in cast("Mapping[Any, Any]", given).items():
            if not isinstance(joint, str):
                raise InputError("joint of a coupling", value=joint, expected="a name")
            factors = as_numbers([value] if dimensions(value) == 0 else value, (-1,), f"factors of {joint!r}").tolist()
            if not 0 < len(factors) <= LARGEST_POWER or not any(factors):
                expected = f"one to {LARGEST_POWER} factors, not all of them 0"
                raise InputError(f"factors of {joint!r} in a coupling", value=factors, expected=expected)
            terms[joint] = tuple(factors)
        constant: Any = self.equals
        if not is_number(constant) or not abs(constant) <= LONGEST:
            raise InputError("constant of a coupling", value=constant, expected="a finite number")
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "equals", float(constant))

    @property
    def label(self) -> str:
        """Name of the coupling; without one, the names of its joints."""
        return self.name or " - ".join(self.terms)

    @property
    def rows(self) -> int:
        """Number of constraint rows."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tied joints."""
        return tuple(self.terms)

    def joint_rows(self, skeleton: Tied) -> tuple[int, ...]:
        """Return the rows of its joints.

        Raises:
            UnknownNameError: If a joint does not exist.
            InputError: If a joint is not a hinge or slide, or is named twice.
        """
        rows = tuple(skeleton.value_index(joint) for joint in self.terms)
        for joint, row in zip(self.terms, rows, strict=True):
            if skeleton.joints[row].kind not in (Kind.HINGE, Kind.SLIDE):
                what = f"joint {joint!r} of coupling {self.label!r}"
                raise InputError(what, value=skeleton.joints[row].kind.name, expected="a HINGE or SLIDE")
        if len(set(rows)) < len(rows):
            raise InputError(f"joints of coupling {self.label!r}", value=list(self.terms), expected="each joint once")
        return rows

    def __repr__(self) -> str:
        """Return its terms."""
        return f"Coupling({self.terms!r}, {self.equals:g})"


Tie = Loop | Coupling


def _as_frame(value: Any, what: str) -> Array:
    """Return a read-only frame (4, 4) from None (the identity), a point or a transform."""
    if value is None:
        frame = rigid()
    elif dimensions(value) == 2:
        frame = as_transform(value, what)
    else:
        frame = rigid(as_numbers(value, (3,), what))
    if np.abs(frame[:3, 3]).max() > LONGEST:
        raise InputError(what, value=frame[:3, 3].tolist(), expected=f"lengths of at most {LONGEST:g}")
    frame.setflags(write=False)
    return frame
