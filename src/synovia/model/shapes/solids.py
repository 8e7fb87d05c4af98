"""Shapes of bodies and obstacles: spheres, capsules, boxes, cylinders, convex hulls and half-spaces."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from synovia.arguments import ChecksArguments, as_call
from synovia.errors import InputError
from synovia.kernels import layout
from synovia.model.geometry import (
    LONGEST,
    Array,
    align_z,
    as_direction,
    as_matrix,
    as_numbers,
    as_transform,
    is_number,
    largest_number,
    rigid,
)

_ORIGIN: Final = np.zeros(3)
_EYE: Final = np.eye(3)
_Z: Final = np.array((0.0, 0.0, 1.0))
for _array in (_ORIGIN, _EYE, _Z):
    _array.setflags(write=False)
MOST_POINTS: Final = 100_000  # of a hull as it is given
MOST_CLOUD: Final = 1_000_000  # points of a cloud


class Shape(ChecksArguments, ABC):
    """Something in space: one solid, or many of one size.

    Shapes are immutable. Two shapes are equal if they are of one kind and have the same numbers.
    """

    __slots__ = ()
    word: str  # the name of the kind in files and messages

    @abstractmethod
    def solids(self) -> tuple[Solid, ...]:
        """Return the solids that the shape consists of."""

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Least and largest coordinates of the shape, (2, 3); infinite where it has no end."""

    @abstractmethod
    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion.

        Args:
            transform: 4x4 transform from the frame that the shape is given in to another one.
        """

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the shape with all lengths times a factor above 0, about the origin of its frame."""

    def __eq__(self, other: object) -> bool:
        """Return whether another shape is the same."""
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(_values(self), _values(other), strict=True))

    def __hash__(self) -> int:
        """Return a hash of the numbers."""
        return hash((self.word, *(value.tobytes() for value in map(np.asarray, _values(self)))))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the values, so that arrays stay read-only."""
        return _restored, (type(self), _values(self))


class Solid(Shape):
    """A convex shape: of a body, in the frame of its link, or an obstacle in the world.

    Shapes are immutable. Two shapes are equal if they are of one kind and have the same numbers.

    Example:
        >>> import synovia as sy
        >>> isinstance(sy.Sphere(radius=0.1), sy.Solid)
        True
    """

    __slots__ = ()
    code: int  # the number of the kind in kernels

    @abstractmethod
    def place(self) -> Array:
        """Return the transform (4, 4) from the shape's own frame to the frame that it is given in."""

    @abstractmethod
    def sizes(self) -> tuple[float, float, float, float]:
        """Return the numbers that kernels read after the frame: three half sizes and a radius."""

    def extent(self) -> float:
        """Return the radius of a sphere about the origin of the shape's own frame that holds the shape."""
        x, y, z, radius = self.sizes()
        return math.hypot(x, y, z) + radius

    def corners(self) -> Array:
        """Return the points (n, 3) of a hull in its own frame; none for the other kinds."""
        return np.empty((0, 3))

    def solids(self) -> tuple[Solid, ...]:
        """Return the solid itself."""
        return (self,)


def _values(shape: object) -> tuple[Any, ...]:
    """Return the values of the fields of a shape."""
    return tuple(getattr(shape, each.name) for each in fields(cast("Any", shape)))


def _restored(kind: type[Shape], values: Sequence[Any]) -> Shape:
    """Return a copied shape; its values were checked before."""
    shape = object.__new__(kind)
    for each, value in zip(fields(cast("Any", kind)), values, strict=True):
        object.__setattr__(shape, each.name, value)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return shape


def _keep(shape: Shape, **arrays: Array) -> None:
    """Store arrays in a frozen shape, read-only."""
    for name, array in arrays.items():
        own = np.array(array, dtype=np.float64)
        if largest_number(own) > LONGEST:
            raise InputError(f"{type(shape).__name__}.{name}", value=own, expected=f"numbers of at most {LONGEST:g}")
        own.setflags(write=False)
        object.__setattr__(shape, name, own)


def _length(shape: Shape, name: str) -> None:
    """Check a length, and store it as a float."""
    value = getattr(shape, name)
    if not (is_number(value) and 0.0 <= value <= LONGEST):
        raise InputError(f"{type(shape).__name__}.{name}", value=value, expected=f"a number from 0 to {LONGEST:g}")
    object.__setattr__(shape, name, float(value))


def _point(shape: Shape, name: str) -> Array:
    """Return a point that was given."""
    return as_numbers(getattr(shape, name), (3,), f"{type(shape).__name__}.{name}")


def _turn(shape: Solid) -> Array:
    """Return a rotation that was given."""
    return as_matrix(cast("Any", shape).rotation, f"{type(shape).__name__}.rotation")


def _positive(factor: float) -> float:
    """Return a factor of lengths.

    Raises:
        InputError: If it is not above 0.
    """
    if not (is_number(factor) and 0.0 < factor <= LONGEST):
        raise InputError("factor", value=factor, expected="a number above 0")
    return float(factor)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sphere(Solid):
    """A sphere.

    Args:
        center: Its centre, length units.
        radius: Its radius, length units; 0 for a point.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> sy.Sphere(center=(0, 0, 1), radius=0.1)
        Sphere(center=(0, 0, 1), radius=0.1)
    """

    code = layout.SPHERE
    word = "sphere"
    center: Array = field(default_factory=lambda: _ORIGIN)
    radius: float

    def __post_init__(self) -> None:
        """Check the values."""
        _length(self, "radius")
        _keep(self, center=_point(self, "center"))

    def place(self) -> Array:
        """Return the transform from the shape's own frame."""
        return rigid(self.center)

    def sizes(self) -> tuple[float, float, float, float]:
        """Return the numbers that kernels read."""
        return 0.0, 0.0, 0.0, self.radius

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return _about(self.center, np.full(3, self.radius))

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion."""
        return type(self)(center=_applied(as_transform(transform), self.center), radius=self.radius)

    def scaled(self, factor: float) -> Self:
        """Return the shape with all lengths times a factor."""
        k = _positive(factor)
        return type(self)(center=k * self.center, radius=k * self.radius)


@dataclass(frozen=True, eq=False, kw_only=True)
class Capsule(Solid):
    """All points within a radius of a segment: a cylinder with round ends.

    Args:
        a: One end of the segment, length units.
        b: Its other end.
        radius: The radius, length units; 0 for the segment itself.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> sy.Capsule(a=(0, 0, 0), b=(0, 0, 0.4), radius=0.05)
        Capsule(a=(0, 0, 0), b=(0, 0, 0.4), radius=0.05)
    """

    code = layout.CAPSULE
    word = "capsule"
    a: Array
    b: Array
    radius: float

    def __post_init__(self) -> None:
        """Check the values."""
        _length(self, "radius")
        _keep(self, a=_point(self, "a"), b=_point(self, "b"))

    def place(self) -> Array:
        """Return the transform from the shape's own frame: its z axis goes from a to b."""
        way = self.b - self.a
        return rigid(0.5 * self.a + 0.5 * self.b, align_z(_direction(way)))

    def sizes(self) -> tuple[float, float, float, float]:
        """Return the numbers that kernels read."""
        return 0.0, 0.0, 0.5 * math.hypot(*(self.b - self.a).tolist()), self.radius

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return np.stack([np.minimum(self.a, self.b) - self.radius, np.maximum(self.a, self.b) + self.radius])

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion."""
        T = as_transform(transform)
        return type(self)(a=_applied(T, self.a), b=_applied(T, self.b), radius=self.radius)

    def scaled(self, factor: float) -> Self:
        """Return the shape with all lengths times a factor."""
        k = _positive(factor)
        return type(self)(a=k * self.a, b=k * self.b, radius=k * self.radius)


@dataclass(frozen=True, eq=False, kw_only=True)
class Box(Solid):
    """A box.

    Args:
        center: Its centre, length units.
        size: Its whole lengths along its own x, y and z axes, length units; one may be 0, for a plate.
        rotation: Its orientation: a ``Rotation`` or a matrix (3, 3); None for the axes of its frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> table = sy.Box(center=(0.5, 0, 0.35), size=(0.6, 1.2, 0.05))
        >>> sy.distance(table, sy.Sphere(center=(0.5, 0, 0.6), radius=0.1)).distance
        0.125
    """

    code = layout.BOX
    word = "box"
    center: Array = field(default_factory=lambda: _ORIGIN)
    size: Array
    rotation: Array = field(default_factory=lambda: _EYE)

    def __post_init__(self) -> None:
        """Check the values."""
        if self.rotation is None:  # pyright: ignore[reportUnnecessaryComparison]
            object.__setattr__(self, "rotation", _EYE)
        size = _point(self, "size")
        if size.min() < 0.0:
            raise InputError("Box.size", value=size, expected="three lengths, none below 0")
        _keep(self, center=_point(self, "center"), size=size, rotation=_turn(self))

    def place(self) -> Array:
        """Return the transform from the shape's own frame."""
        return rigid(self.center, self.rotation)

    def sizes(self) -> tuple[float, float, float, float]:
        """Return the numbers that kernels read."""
        x, y, z = (0.5 * self.size).tolist()
        return x, y, z, 0.0

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return _about(self.center, np.abs(self.rotation) @ (0.5 * self.size))

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion."""
        T = as_transform(transform)
        return type(self)(center=_applied(T, self.center), size=self.size, rotation=T[:3, :3] @ self.rotation)

    def scaled(self, factor: float) -> Self:
        """Return the shape with all lengths times a factor."""
        k = _positive(factor)
        return type(self)(center=k * self.center, size=k * self.size, rotation=self.rotation)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cylinder(Solid):
    """A cylinder with flat ends.

    Args:
        center: Its centre, length units.
        radius: Its radius, length units.
        length: Its whole length along its axis, length units.
        rotation: Its orientation, a ``Rotation`` or a matrix (3, 3): its axis is the z axis of that; None for the axes
            of its frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> can = sy.Cylinder(radius=0.1, length=0.4)
        >>> sy.distance(can, sy.Sphere(center=(0, 0, 1), radius=0.3)).distance
        0.5
    """

    code = layout.CYLINDER
    word = "cylinder"
    center: Array = field(default_factory=lambda: _ORIGIN)
    radius: float
    length: float
    rotation: Array = field(default_factory=lambda: _EYE)

    def __post_init__(self) -> None:
        """Check the values."""
        if self.rotation is None:  # pyright: ignore[reportUnnecessaryComparison]
            object.__setattr__(self, "rotation", _EYE)
        _length(self, "radius")
        _length(self, "length")
        _keep(self, center=_point(self, "center"), rotation=_turn(self))

    def place(self) -> Array:
        """Return the transform from the shape's own frame."""
        return rigid(self.center, self.rotation)

    def sizes(self) -> tuple[float, float, float, float]:
        """Return the numbers that kernels read."""
        return 0.0, 0.0, 0.5 * self.length, self.radius

    def extent(self) -> float:
        """Return the distance of the rims."""
        return math.hypot(0.5 * self.length, self.radius)

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        axis = self.rotation[:, 2]
        across = np.sqrt(np.maximum(1.0 - axis * axis, 0.0))
        return _about(self.center, 0.5 * self.length * np.abs(axis) + self.radius * across)

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion."""
        T = as_transform(transform)
        return type(self)(
            center=_applied(T, self.center),
            radius=self.radius,
            length=self.length,
            rotation=T[:3, :3] @ self.rotation,
        )

    def scaled(self, factor: float) -> Self:
        """Return the shape with all lengths times a factor."""
        k = _positive(factor)
        return type(self)(
            center=k * self.center, radius=k * self.radius, length=k * self.length, rotation=self.rotation
        )


@dataclass(frozen=True, eq=False)
class ConvexHull(Solid):
    """The convex hull of points. Points inside the hull are dropped.

    Args:
        points: The points, (n, 3), length units; at least one. They may lie in a plane or on a line.

    Raises:
        InputError: If they cannot be used.

    Example:
        >>> import synovia as sy
        >>> roof = sy.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)])
        >>> len(roof.points)
        4
    """

    code = layout.HULL
    word = "hull"
    points: Array

    def __post_init__(self) -> None:
        """Check the points."""
        points = as_numbers(cast("ArrayLike", self.points), (-1, 3), "ConvexHull.points")
        if not 0 < len(points) <= MOST_POINTS:
            raise InputError("ConvexHull.points", value=len(points), expected=f"1 to {MOST_POINTS} points")
        _keep(self, points=_outer(points))

    @classmethod
    def around(cls, points: Array) -> Self:
        """Return the hull of any number of finite points, such as the corners of a mesh.

        Raises:
            InputError: If the hull itself has too many corners.
        """
        while len(points) > MOST_POINTS:
            blocks = np.array_split(points, len(points) // MOST_POINTS + 1)
            outer = np.concatenate([_outer(block) for block in blocks])
            if len(outer) == len(points):
                break
            points = outer
        return cls(points)

    @classmethod
    def later(cls, read: Callable[[], ArrayLike], matrix: Array | None = None) -> Self:
        """Return the hull of points that are read when they are first used, such as those of a mesh file.

        Args:
            read: Returns the points, (n, 3). It can be pickled.
            matrix: Affine transform (4, 4) of these points; None for none.
        """
        shape = object.__new__(cls)
        object.__setattr__(shape, "_source", (read, rigid() if matrix is None else matrix))
        return shape

    @property
    def read(self) -> bool:
        """Whether the points are in memory; False if their first use opens a file."""
        return "points" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        """Read the points at their first use."""
        if name != "points" or "_source" not in self.__dict__:
            raise AttributeError(f"ConvexHull has no attribute {name!r}")
        read, matrix = self.__dict__["_source"]
        made = type(self)(_applied(matrix, np.asarray(read(), np.float64)))
        object.__setattr__(self, "points", made.points)
        return self.points

    def __repr__(self) -> str:
        """Return the constructor call; it does not read the points."""
        return as_call(self) if self.read else f"ConvexHull(<{self.__dict__['_source'][0]}>)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle without reading the points."""
        return super().__reduce__() if self.read else (type(self).later, self.__dict__["_source"])

    def place(self) -> Array:
        """Return the transform from the shape's own frame: its origin is the middle of the points."""
        return rigid(0.5 * self.points.min(0) + 0.5 * self.points.max(0))

    def sizes(self) -> tuple[float, float, float, float]:
        """Return the numbers that kernels read."""
        return 0.0, 0.0, 0.0, 0.0

    def extent(self) -> float:
        """Return the distance of the farthest point."""
        return float(np.linalg.norm(self.corners(), axis=1).max())

    def corners(self) -> Array:
        """Return the points in the shape's own frame, (n, 3)."""
        return self.points - self.place()[:3, 3]

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return np.stack([self.points.min(0), self.points.max(0)])

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion."""
        return self._with(as_transform(transform))

    def scaled(self, factor: float) -> Self:
        """Return the shape with all lengths times a factor."""
        return self._with(np.diag((*(3 * [_positive(factor)]), 1.0)))

    def _with(self, matrix: Array) -> Self:
        """Return the hull after a transform (4, 4): corners stay corners."""
        if not self.read:
            read, before = self.__dict__["_source"]
            return self.later(read, matrix @ before)
        points = _applied(matrix, self.points)
        if largest_number(points) > LONGEST:
            raise InputError("ConvexHull.points", value=points, expected=f"numbers of at most {LONGEST:g}")
        return cast("Self", _restored(type(self), (points,)))


@dataclass(frozen=True, eq=False, kw_only=True)
class HalfSpace(Solid):
    """Everything behind a plane, as a floor or a wall. Only obstacles can be half-spaces.

    Args:
        point: A point of the plane, length units.
        normal: Direction that points out of the half-space, to the free side; made unit length.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> floor = sy.HalfSpace(point=(0, 0, 0), normal=(0, 0, 1))
        >>> sy.distance(sy.Sphere(center=(0, 0, 1), radius=0.25), floor).distance
        0.75
    """

    code = layout.HALF_SPACE
    word = "half-space"
    point: Array = field(default_factory=lambda: _ORIGIN)
    normal: Array = field(default_factory=lambda: _Z)

    def __post_init__(self) -> None:
        """Check the values."""
        _keep(self, point=_point(self, "point"), normal=as_direction(self.normal, "HalfSpace.normal"))

    def place(self) -> Array:
        """Return the transform from the shape's own frame: its z axis is the normal."""
        return rigid(self.point, align_z(self.normal))

    def extent(self) -> float:
        """Return infinity."""
        return math.inf

    def sizes(self) -> tuple[float, float, float, float]:
        """Return the numbers that kernels read."""
        return 0.0, 0.0, 0.0, 0.0

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        ends = np.array([[-np.inf] * 3, [np.inf] * 3])
        axis = int(np.argmax(np.abs(self.normal)))
        if abs(float(self.normal[axis])) == 1.0:
            ends[1 if self.normal[axis] > 0.0 else 0, axis] = self.point[axis]
        return ends

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion."""
        T = as_transform(transform)
        return type(self)(point=_applied(T, self.point), normal=T[:3, :3] @ self.normal)

    def scaled(self, factor: float) -> Self:
        """Return the shape with all lengths times a factor."""
        return type(self)(point=_positive(factor) * self.point, normal=self.normal)


@dataclass(frozen=True, eq=False)
class PointCloud(Shape):
    """Points with a radius, such as those of a depth camera: many spheres of one size.

    A point cloud can be an obstacle. It is no solid, and a body cannot have one.

    Args:
        points: The points, (n, 3), length units; at least one.
        radius: Radius of the sphere about each point, length units. Half the spacing of the points leaves no gaps
            along a line of neighbours.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> cloud = sy.PointCloud([(0, 0, 0), (0, 0, 0.1)], radius=0.05)
        >>> len(cloud.points), cloud.solids()[1]
        (2, Sphere(center=(0, 0, 0.1), radius=0.05))
    """

    word = "cloud"
    points: Array
    radius: float = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check the values."""
        points = as_numbers(cast("ArrayLike", self.points), (-1, 3), "PointCloud.points")
        if not 0 < len(points) <= MOST_CLOUD:
            raise InputError("PointCloud.points", value=len(points), expected=f"1 to {MOST_CLOUD} points")
        if float(np.abs(points).max()) > LONGEST:
            raise InputError("PointCloud.points", expected=f"numbers of at most {LONGEST:g}")
        _length(self, "radius")
        points.setflags(write=False)
        object.__setattr__(self, "points", points)

    def solids(self) -> tuple[Sphere, ...]:
        """Return the spheres."""
        return tuple(Sphere(center=point, radius=self.radius) for point in self.points)

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return np.stack([self.points.min(0) - self.radius, self.points.max(0) + self.radius])

    def moved(self, transform: ArrayLike) -> Self:
        """Return the points after a rigid motion."""
        return type(self)(_applied(as_transform(transform), self.points), radius=self.radius)

    def scaled(self, factor: float) -> Self:
        """Return the points with all lengths times a factor."""
        k = _positive(factor)
        return type(self)(k * self.points, radius=k * self.radius)


KINDS: Final = {kind.word: kind for kind in (Sphere, Capsule, Box, Cylinder, ConvexHull, HalfSpace)}


def check_solids(shapes: object, what: str) -> tuple[Solid, ...]:
    """Return the shapes of a body.

    Args:
        shapes: A sequence of shapes.
        what: What they are, for the message.

    Raises:
        InputError: If it is something else, or one of them is a half-space.
    """
    given = (shapes,) if isinstance(shapes, Solid) else shapes
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(what, value=type(shapes), expected="a list of shapes, such as [Sphere(radius=0.1)]")
    for i, shape in enumerate(cast("Sequence[object]", given)):
        if not isinstance(shape, Solid) or isinstance(shape, HalfSpace):
            expected = "a Sphere, Capsule, Box, Cylinder or ConvexHull"
            raise InputError(f"{what}[{i}]", value=type(shape), expected=expected)
    return tuple(cast("Sequence[Solid]", given))


def _applied(transform: Array, points: Array) -> Array:
    """Return points (..., 3) after a rigid motion (4, 4)."""
    return points @ transform[:3, :3].T + transform[:3, 3]


def _about(middle: Array, half: Array) -> Array:
    """Return the least and largest coordinates, (2, 3), of what reaches so far from its middle."""
    return np.stack([middle - half, middle + half])


def _direction(way: Array) -> Array:
    """Return the unit vector along a way; z if it has no length."""
    largest = float(np.abs(way).max())
    if largest == 0.0:
        return _Z
    shrunk = way / largest
    return shrunk / np.linalg.norm(shrunk)


def _outer(points: Array) -> Array:
    """Return the corners of the convex hull of points; all different points if they are flat."""
    points = np.unique(points, axis=0)
    if len(points) > 4:
        from scipy.spatial import ConvexHull as Hull
        from scipy.spatial import QhullError

        try:
            return points[np.sort(Hull(points - points.mean(0)).vertices)]
        except (QhullError, ValueError):
            return points
    return points
