"""Joints: how each moves, its limit, its body, and its coupling to another joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np

from synovia.arguments import ChecksArguments, as_call
from synovia.errors import InputError, restated
from synovia.model.geometry import (
    LONGEST,
    ORTHONORMAL,
    Array,
    as_direction,
    as_matrix,
    as_numbers,
    as_transform,
    is_number,
    largest_number,
)
from synovia.model.limits import Interval, Limit, SwingTwist

if TYPE_CHECKING:
    from synovia.model.shapes.solids import Solid


class Kind(IntEnum):
    """How a joint moves. The kernels use the same values.

    Example:
        >>> import synovia as sy
        >>> sy.bundled("arm7").joints[1].kind.name
        'HINGE'
        >>> sy.Kind.BALL.q_size  # a quaternion
        4
    """

    FIXED = 0
    HINGE = 1
    SLIDE = 2
    BALL = 3
    FREE = 4

    @property
    def q_size(self) -> int:
        """Number of values in q: 1 for a hinge or slide, 4 for a ball (xyzw), 7 for a free joint (xyz, xyzw)."""
        return (0, 1, 1, 4, 7)[self]

    @property
    def v_size(self) -> int:
        """Degrees of freedom: 0, 1, 1, 3 or 6."""
        return len(DOF_NAMES[self])


_LIMITS: Final = {Kind.HINGE: Interval, Kind.SLIDE: Interval, Kind.BALL: SwingTwist, Kind.FREE: SwingTwist}
# Suffixes of the names of degrees of freedom, by kind.
_TURNS: Final = (".rx", ".ry", ".rz")
DOF_NAMES: Final = ((), ("",), ("",), _TURNS, (".x", ".y", ".z", *_TURNS))


@dataclass(frozen=True, slots=True)
class Mimic(ChecksArguments):
    """The coupling of a joint to another joint: value = ratio * leader + offset (URDF mimic, MJCF equality).

    A mimic joint may exceed its own limits: as in ROS, MoveIt and Pinocchio, only its leader is limited. In URDF, the
    limits of a mimic joint are often placeholders, because the format requires them.

    Args:
        leader: Name of the other joint.
        ratio: Radians or length units of this joint per radian or length unit of the leader.
        offset: Value of this joint if the leader's value is 0.
        binds: Whether the limits of this joint restrict its leader, as in MuJoCo.

    Example:
        >>> import synovia as sy
        >>> import numpy as np
        >>> grip = sy.Interval(0.0, 0.04)
        >>> left = sy.Joint("left", kind=sy.Kind.SLIDE, axis=(1, 0, 0), limit=grip)
        >>> right = sy.Joint("right", parent=0, kind=sy.Kind.SLIDE, axis=(-1, 0, 0), mimic=sy.Mimic("left", ratio=2.0))
        >>> hand = sy.Skeleton([left, right])
        >>> sy.Pose(hand, hand.follow(np.array([0.03, 0.0])))["right"]
        0.06
    """

    leader: str
    ratio: float = 1.0
    offset: float = 0.0
    binds: bool = False


_EYE: Final = np.eye(4)
_EYE.setflags(write=False)  # read-only, because all joints without a rest transform share it


@dataclass(frozen=True, eq=False)
class Site(ChecksArguments):
    """A named frame on the body that a joint carries, such as a tool centre; goals can name it (MJCF site).

    A site is not a joint: it has no row, no bone and no value.

    Args:
        name: Name of the site.
        rest: Rigid 4x4 transform from the site's frame to the joint's frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> place = np.eye(4)
        >>> place[:3, 3] = (0.0, 0.0, 0.1)
        >>> wrist = sy.Joint("wrist", kind=sy.Kind.HINGE, axis=(1, 0, 0), sites=(sy.skeletons.Site("tcp", place),))
        >>> sy.Skeleton([wrist]).rest_pose().position("tcp")
        array([0. , 0. , 0.1])
    """

    name: str
    rest: Array = field(default_factory=lambda: _EYE)

    def __post_init__(self) -> None:
        """Check the values."""
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("name of a site", value=self.name, expected="text")
        if self.rest is not _EYE:
            object.__setattr__(self, "rest", as_transform(self.rest, "rest transform"))
        if largest_number(self.rest[:3, 3]) > LONGEST:
            raise InputError("place of a site", value=self.rest[:3, 3].tolist(), expected=f"at most {LONGEST:g}")
        self.rest.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the values, so that the array stays read-only."""
        return Site, (self.name, self.rest)

    def __repr__(self) -> str:
        """Return its name."""
        return f"Site({self.name!r})"


@dataclass(frozen=True, slots=True, eq=False)
class Joint(ChecksArguments):
    """A joint and the rigid body that it carries.

    Args:
        name: Name of the joint.
        parent: Name of the parent joint, or of the parent's link, or index of the parent in the list; None for a root.
        kind: How the joint moves.
        rest: Rigid 4x4 transform from this joint's frame, at zero motion, to the parent joint's frame.
        axis: Axis of a hinge or slide in this joint's frame; made unit length.
        limit: ``Interval`` for a hinge or slide, ``SwingTwist`` for a ball or the rotation of a free joint. The limit
            of a mimic joint is kept, but has an effect only with ``mimic.binds``.
        preferred: Preferred value of a hinge or slide, radians or length units; None for the rest value.
        stiffness: Additional weight of the preferred value in rest goals; 0 for none.
        mass: Mass of the body, kg.
        com: Centre of mass of the body in this joint's frame, length units.
        mimic: Coupling to another hinge or slide.
        body: Name of the body that the joint carries (URDF link, MJCF body); another name for the same frame.
        role: Role in the body, for example ``left_upper_leg`` (VRM names in snake case).
        tip: Whether the joint only marks a point (BVH end site, tool frame).
        channels: Channels of its body in a BVH file, in the order of the file, for example ``("Zrotation",
            "Xrotation", "Yrotation")``; only for the body's last joint. None for joints from other formats.
        bind: Orientation (3, 3) relative to the parent joint in the pose in which the skin was bound; None without a
            skin.
        velocity: Highest velocity of a hinge or slide, radians or length units per second; None if unknown.
            ``retarget`` keeps it.
        sites: Named frames on its body (MJCF sites).
        shapes: Shapes of its body in this joint's frame, such as ``[Capsule(...)]``; half-spaces are refused.
        shapes_lost: Whether the file has shapes of its body that could not be read, such as missing meshes: any
            collision shape or, without collision shapes, any visual shape. ``with_shapes`` covers such a body, and a
            ``ClearanceGoal`` refuses it.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> up = np.eye(4)
        >>> up[:3, 3] = (0.0, 0.0, 1.0)  # one unit above the parent
        >>> base = sy.Joint("base")
        >>> elbow = sy.Joint("elbow", "base", sy.Kind.HINGE, up, axis=(0, 1, 0), limit=sy.Interval(-1.5, 1.5))
        >>> sy.Skeleton([base, elbow]).dof_names
        ('elbow',)
    """

    name: str
    parent: str | int | None = None
    kind: Kind = Kind.FIXED
    rest: Array = field(default_factory=lambda: _EYE)
    axis: Array = field(default_factory=lambda: np.zeros(3))
    limit: Limit | None = None
    preferred: float | None = None
    stiffness: float = 0.0
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    mimic: Mimic | None = None
    body: str | None = None
    role: str | None = None
    tip: bool = False
    channels: tuple[str, ...] | None = None
    bind: Array | None = None
    velocity: float | None = None
    sites: tuple[Site, ...] = ()
    shapes: tuple[Solid, ...] = ()
    shapes_lost: bool = False

    def __post_init__(self) -> None:
        """Check the values of this joint; the skeleton checks relations to other joints."""
        try:
            self._check()
        except InputError as error:
            raise restated(error, InputError, f"joint {self.name!r}") from error
        self._protect()

    def _check(self) -> None:
        """Check the values and convert arrays.

        Raises:
            InputError: If a value cannot be used; the message does not name the joint.
        """
        if not isinstance(self.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("name", value=self.name, expected="text")
        if not isinstance(self.kind, Kind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("kind", value=self.kind, expected="a Kind, such as Kind.HINGE")
        if self.rest is not _EYE:
            object.__setattr__(self, "rest", as_transform(self.rest, "rest transform", rounded=ORTHONORMAL))
        if self.bind is not None:
            object.__setattr__(self, "bind", as_matrix(self.bind, "bind rotation", rounded=ORTHONORMAL))
        scalar = self.kind in (Kind.HINGE, Kind.SLIDE)
        axis = as_direction(self.axis, "axis") if scalar else as_numbers(self.axis, (3,), "axis")
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "com", as_numbers(self.com, (3,), "centre of mass"))
        for what, place in (("rest position", self.rest[:3, 3]), ("com", self.com)):
            if largest_number(place) > LONGEST:
                raise InputError(what, value=place.tolist(), expected=f"numbers of at most {LONGEST:g}")
        if self.limit is not None and not isinstance(self.limit, _LIMITS.get(self.kind, ())):
            expected = _LIMITS[self.kind].__name__ if self.kind in _LIMITS else "none"
            raise InputError(f"limit of a {self.kind.name} joint", value=type(self.limit), expected=expected)
        if self.mimic is not None and not isinstance(self.mimic, Mimic):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("mimic", value=self.mimic, expected="a Mimic, such as Mimic('leader')")
        if self.mimic is not None and not scalar:
            raise InputError("mimic", value=self.kind.name, expected="a HINGE or SLIDE joint")
        sites = cast("Sequence[object]", self.sites)
        if not isinstance(self.sites, Sequence) or not all(isinstance(site, Site) for site in sites):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("sites", value=sites, expected="a list of Site")
        object.__setattr__(self, "sites", tuple(sites))
        # avoids loading the module of shapes for joints without shapes
        if type(self.shapes) is not tuple or self.shapes:
            from synovia.model.shapes.solids import check_solids

            object.__setattr__(self, "shapes", check_solids(self.shapes, "shapes"))
        if self.velocity is not None and not (is_number(self.velocity) and 0.0 < self.velocity <= LONGEST):
            raise InputError("velocity", value=self.velocity, expected=f"above 0, at most {LONGEST:g}")
        numbers = [self.stiffness, self.mass, 0.0 if self.preferred is None else self.preferred]
        if self.mimic is not None:
            numbers += [self.mimic.ratio, self.mimic.offset]
        usable = all(is_number(number) and abs(number) <= LONGEST for number in numbers)
        if not usable or self.mass < 0.0 or self.stiffness < 0.0:
            raise InputError(
                "mass, stiffness, preferred value or coupling",
                value=numbers,
                expected=f"numbers of at most {LONGEST:g}, mass and stiffness not negative",
            )

    def __repr__(self) -> str:
        """Return the constructor call, without defaults and arrays."""
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        return as_call(self, {name: value for name, value in known.items() if not isinstance(value, np.ndarray)})

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the values.

        Until Python 3.11.4, a frozen dataclass with slots replaces ``__setstate__`` by a version that leaves the arrays
        writable.
        """
        return self._restored, (tuple(getattr(self, each.name) for each in fields(self)),)

    @classmethod
    def _restored(cls, values: Sequence[object]) -> Self:
        """Return a joint from values that are already checked, for copy and pickle."""
        joint = object.__new__(cls)
        for each, value in zip(fields(cls), values, strict=True):
            object.__setattr__(joint, each.name, value)
        joint._protect()
        return joint

    def _protect(self) -> None:
        """Make the arrays read-only."""
        for array in (self.rest, self.axis, self.com, self.bind):
            if array is not None:
                array.setflags(write=False)
