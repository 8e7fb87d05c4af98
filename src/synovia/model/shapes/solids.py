"""Shapes of bodies and obstacles: spheres, capsules, boxes, cylinders, ellipsoids, convex hulls, half-spaces.

Each class describes everything about one kind except its support function. The kernels compute it: ``kernels.layout``
has the number of the kind, and ``kernels.collision.support`` its farthest points. The role of a field defines how the
field is checked, moved, scaled, read and written. ``word`` is the name of a kind in files of worlds and skeletons, and
in URDF.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Final, Self, cast

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
from synovia.model.shapes import lines, triangles
from synovia.model.shapes.lines import Spans
from synovia.model.shapes.triangles import Part

_ORIGIN: Final = np.zeros(3)
_EYE: Final = np.eye(3)
_Z: Final = np.array((0.0, 0.0, 1.0))
for _array in (_ORIGIN, _EYE, _Z):
    _array.setflags(write=False)
MOST_POINTS: Final = 100_000  # largest number of points from which a hull is computed
# fraction of the largest radius of an ellipsoid: thickness of a flat ellipsoid for intersections with lines
_THIN: Final = 1e-9
MOST_CLOUD: Final = 1_000_000  # largest number of points of a cloud


@dataclass(frozen=True, slots=True)
class Role:
    """The meaning of a field of a shape, which defines how its values are checked, moved and scaled.

    Args:
        size: Shape of the array; () for a scalar.
        checked: Checks and converts a value, given the name of the field for messages.
        moved: Returns the value after a rigid motion (4, 4); None if a motion does not change it.
        grows: Whether the value is a length or consists of lengths, which scaling changes.
    """

    size: tuple[int, ...]
    checked: Callable[[Any, str], Any]
    moved: Callable[[Array, Any], Any] | None = None
    grows: bool = True


def _length(value: Any, what: str) -> float:
    """Check and return a length."""
    if not (is_number(value) and 0.0 <= value <= LONGEST):
        raise InputError(what, value=value, expected=f"a number from 0 to {LONGEST:g}")
    return float(value)


def _lengths(value: Any, what: str) -> Array:
    """Check and return three lengths."""
    array = as_numbers(value, (3,), what)
    if array.min() < 0.0:
        raise InputError(what, value=array, expected="three lengths, none below 0")
    return array


def _corners(value: Any, what: str) -> Array:
    """Check points and return those that are corners of their convex hull."""
    return _outer(_points(value, what, MOST_POINTS))


def _points(value: Any, what: str, most: int) -> Array:
    """Check and return points."""
    points = as_numbers(value, (-1, 3), what)
    if not 0 < len(points) <= most:
        raise InputError(what, value=len(points), expected=f"1 to {most} points")
    return points


def _applied(transform: Array, points: Array) -> Array:
    """Return points (..., 3) after a rigid motion (4, 4)."""
    return points @ transform[:3, :3].T + transform[:3, 3]


def _turned(transform: Array, columns: Array) -> Array:
    """Return directions, a vector or the columns of a matrix, after a rigid motion (4, 4)."""
    return transform[:3, :3] @ columns


# Roles, as metadata of fields
_POINT: Final = {"role": Role((3,), lambda value, what: as_numbers(value, (3,), what), _applied)}
_POINTS: Final = {"role": Role((-1, 3), lambda value, what: _points(value, what, MOST_CLOUD), _applied)}
_CORNERS: Final = {"role": Role((-1, 3), _corners, _applied)}
_LENGTH: Final = {"role": Role((), _length)}
_LENGTHS: Final = {"role": Role((3,), _lengths)}
_NORMAL: Final = {"role": Role((3,), as_direction, _turned, grows=False)}
_ROTATION: Final = {
    "role": Role((3, 3), lambda value, what: _EYE if value is None else as_matrix(value, what), _turned, grows=False)
}


@cache
def roles_of(kind: type[Shape]) -> dict[str, Role]:
    """Return the roles of the fields of a kind of shape, by name."""
    return {each.name: each.metadata["role"] for each in fields(cast("Any", kind))}


class Shape(ChecksArguments, ABC):
    """A solid, or many solids of one size.

    Shapes are immutable. Two shapes are equal if they have the same kind and values.
    """

    __slots__ = ()
    word: str  # name of the kind in files and messages

    @abstractmethod
    def solids(self) -> tuple[Solid, ...]:
        """Return the solids of which the shape consists."""

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Least and largest coordinates of the shape, (2, 3); infinite where it is unbounded."""

    @abstractmethod
    def triangles(self) -> Iterator[Part]:
        """Yield vertices (v, 3), triangles (f, 3) and whether to shade them flat, for each part of the boundary.

        A half-space has no triangles.

        Raises:
            SynoviaError: If the mesh of a hull cannot be read.
        """

    @abstractmethod
    def spans(self, points: Array, direction: Array) -> list[Spans]:
        """Return the spans of lines in each solid: positions of begin and end, (n,), and the outward normal at the end.

        Args:
            points: A point of each line, (n, 3). Positions on a line are relative to this point.
            direction: Unit vector along all lines, (3,).
        """

    def __post_init__(self) -> None:
        """Check the values."""
        for name, role in roles_of(type(self)).items():
            what = f"{type(self).__name__}.{name}"
            value = role.checked(getattr(self, name), what)
            if role.size:
                if largest_number(value) > LONGEST:
                    raise InputError(what, value=value, expected=f"numbers of at most {LONGEST:g}")
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion.

        Args:
            transform: 4x4 transform from the frame of the shape's values to another frame.
        """
        T = as_transform(transform)
        values = dict(zip(roles_of(type(self)), _values(self), strict=True))
        for name, role in roles_of(type(self)).items():
            values[name] = values[name] if role.moved is None else role.moved(T, values[name])
        return type(self)(**values)

    def scaled(self, factor: float) -> Self:
        """Return the shape scaled by a factor above 0, about the origin of its frame."""
        k = _positive(factor)
        roles = roles_of(type(self)).items()
        return type(self)(**{name: (k if role.grows else 1.0) * getattr(self, name) for name, role in roles})

    def __eq__(self, other: object) -> bool:
        """Return whether another shape has the same kind and values."""
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(_values(self), _values(other), strict=True))

    def __hash__(self) -> int:
        """Return a hash of kind and values."""
        return hash((self.word, *(value.tobytes() for value in map(np.asarray, _values(self)))))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the values, so that arrays stay read-only."""
        return _restored, (type(self), _values(self))


class Solid(Shape):
    """A convex shape: part of a body, in the frame of its link, or part of an obstacle in the world.

    Shapes are immutable. Two shapes are equal if they have the same kind and values.

    Example:
        >>> import synovia as sy
        >>> isinstance(sy.Sphere(radius=0.1), sy.shapes.Solid)
        True
    """

    __slots__ = ()
    code: int  # number of the kind in kernels
    endless: ClassVar[bool] = False  # whether only obstacles can have this kind

    @classmethod
    def lengths(cls) -> dict[str, int]:
        """Return the names of the shape's lengths in files, with the number of values of each."""
        return {name: math.prod(role.size) for name, role in roles_of(cls).items() if role.grows and not role.moved}

    @classmethod
    def at(cls, place: Array, numbers: Iterable[float]) -> Self:
        """Create a shape from its lengths, with its centre at the origin and its axis along z of a frame (4, 4)."""
        given = iter(numbers)
        values: dict[str, Any] = {"center": place[:3, 3], "rotation": place[:3, :3]}
        values |= {
            name: [next(given) for _ in range(count)] if count > 1 else next(given)
            for name, count in cls.lengths().items()
        }
        return cls(**{name: values[name] for name in roles_of(cls)})

    def place(self) -> Array:
        """Return the transform (4, 4) from the shape's own frame to the frame of its values."""
        one = cast("Any", self)
        return rigid(one.center, one.rotation if "rotation" in roles_of(type(self)) else None)

    @abstractmethod
    def sizes(self) -> tuple[float, float, float, float]:
        """Return the values that follow the frame in kernels: three half sizes and a radius.

        The box of these half sizes about the origin, widened by the radius, contains the shape.
        """

    @abstractmethod
    def own_triangles(self) -> Iterator[Part]:
        """Yield the parts of ``triangles`` in the shape's own frame."""

    @abstractmethod
    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return ``spans`` in the shape's own frame. Lines that miss have ``low`` above ``high``, or NaN."""

    def extent(self) -> float:
        """Return the radius of the bounding sphere about the origin of the shape's own frame."""
        x, y, z, radius = self.sizes()
        return math.hypot(x, y, z) + radius

    def corners(self) -> Array:
        """Corners (n, 3) of a hull in its own frame; empty for other kinds."""
        return np.empty((0, 3))

    def farthest(self, directions: Array) -> Array:
        """Return the farthest points along directions (d, 3), at least one for each; for a hull, all corners."""
        place, points = self.place(), self.corners()
        if not len(points):
            points = self.own_farthest(directions @ place[:3, :3])
        return _applied(place, points)

    def own_farthest(self, directions: Array) -> Array:
        """Return the farthest points (d, 3) along unit vectors (d, 3), both in the shape's own frame.

        The default is the points of the box of ``sizes``, rounded by its radius.
        """
        *half, radius = self.sizes()
        return np.sign(directions) * half + radius * directions

    def solids(self) -> tuple[Solid, ...]:
        """Return the solid itself."""
        return (self,)

    def triangles(self) -> Iterator[Part]:
        """Yield vertices, triangles and whether to shade them flat, for each part of the boundary."""
        place = self.place()
        for vertices, faces, flat in self.own_triangles():
            yield _applied(place, vertices), faces, flat

    def spans(self, points: Array, direction: Array) -> list[Spans]:
        """Return the spans of lines inside, and the outward normal at the end."""
        place = self.place()
        R = place[:3, :3]
        low, high, normal = self.own_spans((points - place[:3, 3]) @ R, direction @ R)
        misses = ~(low <= high)
        low[misses] = high[misses] = np.nan
        return [Spans(low, high, normal @ R.T)]


def _values(shape: Shape) -> tuple[Any, ...]:
    """Return the values of the fields of a shape."""
    return tuple(getattr(shape, name) for name in roles_of(type(shape)))


def _restored(kind: type[Shape], values: Sequence[Any]) -> Shape:
    """Return a shape from values that are already checked, for copy and pickle."""
    shape = object.__new__(kind)
    for name, value in zip(roles_of(kind), values, strict=True):
        object.__setattr__(shape, name, value)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return shape


def _positive(factor: float) -> float:
    """Check and return a scale factor.

    Raises:
        InputError: If the factor is not above 0.
    """
    if not (is_number(factor) and 0.0 < factor <= LONGEST):
        raise InputError("factor", value=factor, expected="a number above 0")
    return float(factor)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sphere(Solid):
    """A sphere.

    Args:
        center: Centre of the shape, length units.
        radius: Radius of the sphere, length units; 0 for a point.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> sy.Sphere(center=(0, 0, 1), radius=0.1)
        Sphere(center=(0, 0, 1), radius=0.1)
    """

    code = layout.SPHERE
    word = "sphere"
    center: Array = field(default_factory=lambda: _ORIGIN, metadata=_POINT)
    radius: float = field(metadata=_LENGTH)

    def sizes(self) -> tuple[float, float, float, float]:
        """Return three half sizes and a radius, which kernels read."""
        return 0.0, 0.0, 0.0, self.radius

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return _about(self.center, np.full(3, self.radius))

    def own_triangles(self) -> Iterator[Part]:
        """Yield the triangulated boundary."""
        yield *triangles.ball(np.full(3, self.radius)), False

    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return the spans of lines inside the shape."""
        return lines.ball(_ORIGIN, self.radius, points, direction)


@dataclass(frozen=True, eq=False, kw_only=True)
class Capsule(Solid):
    """All points within a radius of a segment: a cylinder with round ends.

    Args:
        a: One end of the segment, length units.
        b: The other end of the segment.
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
    a: Array = field(metadata=_POINT)
    b: Array = field(metadata=_POINT)
    radius: float = field(metadata=_LENGTH)

    @classmethod
    def lengths(cls) -> dict[str, int]:
        """Return the names of the lengths that files have."""
        return {"radius": 1, "length": 1}

    @classmethod
    def at(cls, place: Array, numbers: Iterable[float]) -> Self:
        """Create a shape of these lengths in a frame."""
        radius, length = numbers
        half = 0.5 * length * place[:3, 2]
        return cls(a=place[:3, 3] - half, b=place[:3, 3] + half, radius=radius)

    def place(self) -> Array:
        """Return the transform from the shape's own frame, whose z axis points from a to b."""
        return rigid(0.5 * self.a + 0.5 * self.b, align_z(_direction(self.b - self.a)))

    def sizes(self) -> tuple[float, float, float, float]:
        """Return three half sizes and a radius, which kernels read."""
        return 0.0, 0.0, 0.5 * math.hypot(*(self.b - self.a).tolist()), self.radius

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return np.stack([np.minimum(self.a, self.b) - self.radius, np.maximum(self.a, self.b) + self.radius])

    def own_triangles(self) -> Iterator[Part]:
        """Yield the triangulated boundary."""
        yield *triangles.capsule(self.radius, 2.0 * self.sizes()[2]), False

    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return the spans of lines inside the shape."""
        return lines.capsule(self.radius, self.sizes()[2], points, direction)


@dataclass(frozen=True, eq=False, kw_only=True)
class Box(Solid):
    """A box.

    Args:
        center: Centre of the shape, length units.
        size: Full lengths of the box along its own x, y and z axes, length units; one may be 0, for a plate.
        rotation: Orientation of the shape: a ``Rotation`` or a matrix (3, 3); None for the axes of its frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> table = sy.Box(center=(0.5, 0, 0.35), size=(0.6, 1.2, 0.05))
        >>> sy.shapes.distance(table, sy.Sphere(center=(0.5, 0, 0.6), radius=0.1)).distance
        0.125
    """

    code = layout.BOX
    word = "box"
    center: Array = field(default_factory=lambda: _ORIGIN, metadata=_POINT)
    size: Array = field(metadata=_LENGTHS)
    rotation: Array = field(default_factory=lambda: _EYE, metadata=_ROTATION)

    def sizes(self) -> tuple[float, float, float, float]:
        """Return three half sizes and a radius, which kernels read."""
        x, y, z = (0.5 * self.size).tolist()
        return x, y, z, 0.0

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return _about(self.center, np.abs(self.rotation) @ (0.5 * self.size))

    def own_triangles(self) -> Iterator[Part]:
        """Yield the triangulated boundary."""
        yield *triangles.box(self.size), True

    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return the spans of lines inside the shape."""
        x, y, z = (lines.slab(half, points, direction, k) for k, half in enumerate(self.sizes()[:3]))
        return lines.both(lines.both(x, y), z)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cylinder(Solid):
    """A cylinder with flat ends.

    Args:
        center: Centre of the shape, length units.
        radius: Radius of the cylinder, length units.
        length: Distance of the two ends, length units.
        rotation: Orientation: a ``Rotation`` or a matrix (3, 3), whose z axis is the cylinder's axis; None for the axes
            of its frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> can = sy.Cylinder(radius=0.1, length=0.4)
        >>> sy.shapes.distance(can, sy.Sphere(center=(0, 0, 1), radius=0.3)).distance
        0.5
    """

    code = layout.CYLINDER
    word = "cylinder"
    center: Array = field(default_factory=lambda: _ORIGIN, metadata=_POINT)
    radius: float = field(metadata=_LENGTH)
    length: float = field(metadata=_LENGTH)
    rotation: Array = field(default_factory=lambda: _EYE, metadata=_ROTATION)

    def sizes(self) -> tuple[float, float, float, float]:
        """Return three half sizes and a radius, which kernels read."""
        return 0.0, 0.0, 0.5 * self.length, self.radius

    def extent(self) -> float:
        """Return the distance from the centre to the rims."""
        return math.hypot(0.5 * self.length, self.radius)

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        axis = self.rotation[:, 2]
        across = np.sqrt(np.maximum(1.0 - axis * axis, 0.0))
        return _about(self.center, 0.5 * self.length * np.abs(axis) + self.radius * across)

    def own_farthest(self, directions: Array) -> Array:
        """Return points on the rims, the farthest along each direction."""
        across = directions * (1.0, 1.0, 0.0)
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)
        return self.radius * across + np.sign(directions) * (0.0, 0.0, 0.5 * self.length)

    def own_triangles(self) -> Iterator[Part]:
        """Yield the parts of the boundary: the side, then the ends."""
        vertices, faces = triangles.cylinder(self.radius, self.length)
        ends = (faces >= len(vertices) - 2).any(axis=1)  # triangles at the centre of an end
        yield vertices, faces[~ends], False
        yield vertices, faces[ends], True

    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return the spans of lines inside the shape."""
        return lines.both(
            lines.tube(self.radius, points, direction), lines.slab(0.5 * self.length, points, direction, 2)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Ellipsoid(Solid):
    """An ellipsoid.

    Args:
        center: Centre of the shape, length units.
        radii: Half lengths of the ellipsoid along its own x, y and z axes, length units; one may be 0, for a disc.
        rotation: Orientation of the shape: a ``Rotation`` or a matrix (3, 3); None for the axes of its frame.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> head = sy.Ellipsoid(center=(0, 0, 1.6), radii=(0.08, 0.1, 0.12))
        >>> round(sy.shapes.distance(head, sy.Sphere(center=(0, 0, 2), radius=0.1)).distance, 9)
        0.18
    """

    code = layout.ELLIPSOID
    word = "ellipsoid"
    center: Array = field(default_factory=lambda: _ORIGIN, metadata=_POINT)
    radii: Array = field(metadata=_LENGTHS)
    rotation: Array = field(default_factory=lambda: _EYE, metadata=_ROTATION)

    def sizes(self) -> tuple[float, float, float, float]:
        """Return three half sizes and a radius, which kernels read."""
        x, y, z = self.radii.tolist()
        return x, y, z, 0.0

    def extent(self) -> float:
        """Return the largest of the three half lengths."""
        return float(self.radii.max())

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return _about(self.center, np.linalg.norm(self.rotation * self.radii, axis=1))

    def own_farthest(self, directions: Array) -> Array:
        """Return the points of the surface whose normals are along the directions."""
        stretched = directions * self.radii
        length = np.linalg.norm(stretched, axis=1, keepdims=True)
        return self.radii * stretched / np.maximum(length, 1e-300)

    def own_triangles(self) -> Iterator[Part]:
        """Yield the triangulated boundary."""
        yield *triangles.ball(self.radii), False

    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return the spans of lines inside: those in the unit ball, after dividing each axis by its radius."""
        radii = np.maximum(self.radii, max(_THIN * float(self.radii.max()), 1e-300))
        step = direction / radii
        stretch = float(np.linalg.norm(step))
        low, high, normal = lines.ball(_ORIGIN, 1.0, points / radii, step / stretch)
        normal = normal / radii
        return Spans(low / stretch, high / stretch, normal / np.linalg.norm(normal, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ConvexHull(Solid):
    """The convex hull of points. Points inside the hull are dropped.

    Args:
        points: The points, (n, 3), length units; at least one. They may lie in a plane or on a line.

    Raises:
        InputError: If the points cannot be used.

    Example:
        >>> import synovia as sy
        >>> roof = sy.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)])
        >>> len(roof.points)
        4
    """

    code = layout.HULL
    word = "hull"
    points: Array = field(metadata=_CORNERS)

    @classmethod
    def around(cls, points: Array) -> Self:
        """Return the hull of any number of finite points, such as the corners of a mesh.

        Raises:
            InputError: If the hull has too many corners.
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
        """Return the hull of points that are read at their first use, such as those of a mesh file.

        Args:
            read: Function that returns the points, (n, 3); it must be picklable.
            matrix: Affine transform (4, 4) of these points; None for the identity.
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
        """Return the constructor call, without reading the points."""
        return as_call(self) if self.read else f"ConvexHull(<{self.__dict__['_source'][0]}>)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy, without reading the points."""
        return super().__reduce__() if self.read else (type(self).later, self.__dict__["_source"])

    def place(self) -> Array:
        """Return the transform from the shape's own frame, whose origin is the centre of the points' box."""
        return rigid(0.5 * self.points.min(0) + 0.5 * self.points.max(0))

    def sizes(self) -> tuple[float, float, float, float]:
        """Return the values that kernels read: half sizes of the box around the points."""
        x, y, z = self.corners().max(0).tolist()
        return x, y, z, 0.0

    def extent(self) -> float:
        """Return the distance of the farthest corner from the origin of the shape's own frame."""
        return float(np.linalg.norm(self.corners(), axis=1).max())

    def corners(self) -> Array:
        """Return the points in the shape's own frame, (n, 3)."""
        return self.points - self.place()[:3, 3]

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return np.stack([self.points.min(0), self.points.max(0)])

    def own_triangles(self) -> Iterator[Part]:
        """Yield the triangulated boundary."""
        points = self.corners()
        faces = triangles.hull_faces(points)
        if len(faces):
            yield points, faces, True

    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return the spans of lines inside the shape."""
        return lines.hull(self.corners(), points, direction)

    def moved(self, transform: ArrayLike) -> Self:
        """Return the shape after a rigid motion."""
        return self._with(as_transform(transform))

    def scaled(self, factor: float) -> Self:
        """Return the shape scaled by a factor."""
        return self._with(np.diag((*(3 * [_positive(factor)]), 1.0)))

    def _with(self, matrix: Array) -> Self:
        """Return the hull after an affine transform (4, 4); images of corners are the corners of the result."""
        if not self.read:
            read, before = self.__dict__["_source"]
            return self.later(read, matrix @ before)
        points = _applied(matrix, self.points)
        if largest_number(points) > LONGEST:
            raise InputError("ConvexHull.points", value=points, expected=f"numbers of at most {LONGEST:g}")
        return cast("Self", _restored(type(self), (points,)))


@dataclass(frozen=True, eq=False, kw_only=True)
class HalfSpace(Solid):
    """Everything behind a plane, such as a floor or a wall. Only obstacles can be half-spaces.

    Args:
        point: A point of the plane, length units.
        normal: Direction that points out of the half-space, to the free side; made unit length.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> floor = sy.HalfSpace(point=(0, 0, 0), normal=(0, 0, 1))
        >>> sy.shapes.distance(sy.Sphere(center=(0, 0, 1), radius=0.25), floor).distance
        0.75
    """

    code = layout.HALF_SPACE
    word = "half-space"
    endless = True
    point: Array = field(default_factory=lambda: _ORIGIN, metadata=_POINT)
    normal: Array = field(default_factory=lambda: _Z, metadata=_NORMAL)

    def place(self) -> Array:
        """Return the transform from the shape's own frame, whose z axis is the normal."""
        return rigid(self.point, align_z(self.normal))

    def extent(self) -> float:
        """Return infinity, because a half-space is unbounded."""
        return math.inf

    def sizes(self) -> tuple[float, float, float, float]:
        """Return three half sizes and a radius, which kernels read."""
        return 0.0, 0.0, 0.0, 0.0

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        ends = np.array([[-np.inf] * 3, [np.inf] * 3])
        axis = int(np.argmax(np.abs(self.normal)))
        if abs(float(self.normal[axis])) == 1.0:
            ends[1 if self.normal[axis] > 0.0 else 0, axis] = self.point[axis]
        return ends

    def own_triangles(self) -> Iterator[Part]:
        """Yield no triangles."""
        yield from ()

    def own_spans(self, points: Array, direction: Array) -> Spans:
        """Return the spans of lines inside the shape."""
        return lines.below(points, direction)


@dataclass(frozen=True, eq=False)
class PointCloud(Shape):
    """Points with a radius, such as those of a depth camera: many spheres of one size.

    A point cloud can be an obstacle. It is not a solid, and a body cannot have one.

    Args:
        points: The points, (n, 3), length units; at least one.
        radius: Radius of the sphere about each point, length units. Half the spacing of the points closes the gaps
            between neighbours.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> cloud = sy.PointCloud([(0, 0, 0), (0, 0, 0.1)], radius=0.05)
        >>> len(cloud.points), cloud.solids()[1]
        (2, Sphere(center=(0, 0, 0.1), radius=0.05))
    """

    word = "cloud"
    points: Array = field(metadata=_POINTS)
    radius: float = field(kw_only=True, metadata=_LENGTH)

    def solids(self) -> tuple[Sphere, ...]:
        """Return the spheres."""
        return tuple(Sphere(center=point, radius=self.radius) for point in self.points)

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates, (2, 3)."""
        return np.stack([self.points.min(0) - self.radius, self.points.max(0) + self.radius])

    def triangles(self) -> Iterator[Part]:
        """Yield the triangles of the spheres; for a large cloud, only those of an even sample of the points."""
        yield triangles.spheres(self.points, self.radius)

    def spans(self, points: Array, direction: Array) -> list[Spans]:
        """Return the spans of lines inside the spheres that they intersect; span k of a line is in the k-th of them."""
        return lines.balls(self.points, self.radius, points, direction)


KINDS: Final = {kind.word: kind for kind in (Sphere, Capsule, Box, Cylinder, Ellipsoid, ConvexHull, HalfSpace)}
OF_BODIES: Final = {word: kind for word, kind in KINDS.items() if not kind.endless}


def check_solids(shapes: object, what: str) -> tuple[Solid, ...]:
    """Check and return the shapes of a body.

    Args:
        shapes: A sequence of shapes.
        what: Description of the argument, for the message.

    Raises:
        InputError: If the argument is something else, or a shape is a half-space.
    """
    given = (shapes,) if isinstance(shapes, Solid) else shapes
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(what, value=type(shapes), expected="a list of shapes, such as [Sphere(radius=0.1)]")
    for i, shape in enumerate(cast("Sequence[object]", given)):
        if not isinstance(shape, Solid) or shape.endless:
            *names, last = (kind.__name__ for kind in OF_BODIES.values())
            raise InputError(f"{what}[{i}]", value=type(shape), expected=f"a {', '.join(names)} or {last}")
    return tuple(cast("Sequence[Solid]", given))


def _about(middle: Array, half: Array) -> Array:
    """Return the least and largest coordinates, (2, 3), of a box with this centre and these half sizes."""
    return np.stack([middle - half, middle + half])


def _direction(displacement: Array) -> Array:
    """Return the unit vector along a displacement; the z axis for a displacement of 0."""
    largest = float(np.abs(displacement).max())
    if largest == 0.0:
        return _Z
    shrunk = displacement / largest
    return shrunk / np.linalg.norm(shrunk)


def _outer(points: Array) -> Array:
    """Return the corners of the convex hull of points; for coplanar points, all distinct points."""
    points = np.unique(points, axis=0)
    if len(points) > 4:
        from scipy.spatial import ConvexHull as Hull
        from scipy.spatial import QhullError

        try:
            return points[np.sort(Hull(points - points.mean(0)).vertices)]
        except (QhullError, ValueError):
            return points
    return points
