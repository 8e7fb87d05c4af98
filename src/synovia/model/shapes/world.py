"""The world around a body: named obstacles of one or several shapes, each with a transform."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synovia.arguments import ChecksArguments, check_kind
from synovia.errors import InputError, unknown_name
from synovia.kernels import layout
from synovia.model.geometry import (
    AXES,
    LONGEST,
    Array,
    align_z,
    as_direction,
    as_matrix,
    as_numbers,
    as_transform,
    axis_turn,
    axis_vector,
    dimensions,
    frames_to_transforms,
    is_number,
    largest_number,
    rigid,
)
from synovia.model.shapes.body import unchecked_links
from synovia.model.shapes.distances import (
    Contact,
    PackedShapes,
    contact_of,
    contact_rows,
    join_shapes,
    pack_cloud,
    pack_shapes,
)
from synovia.model.shapes.ground import Ground, ground_under
from synovia.model.shapes.solids import PointCloud, Shape, Solid, Sphere
from synovia.text import counted, first_few, listed

if TYPE_CHECKING:
    from synovia.model.skeleton import Pose, Skeleton

_EYE: Final = np.eye(4)
_EYE.setflags(write=False)  # read-only, because all obstacles without a transform share it


class PackedWorld(NamedTuple):
    """Obstacles in the form that kernels read: constant shapes, and transforms of obstacles, which may change.

    Args:
        shapes: Shapes of all obstacles, each in the frame of its obstacle.
        owners: Row of the obstacle of each shape, (n,), ascending.
        transforms: Frame of each obstacle in the world, (k, 4, 4).
    """

    shapes: PackedShapes
    owners: NDArray[np.int32]
    transforms: Array

    def in_world(self) -> PackedShapes:
        """Return the shapes in the frame of the world."""
        return self.shapes.in_frames(self.transforms[self.owners])


@dataclass(frozen=True, eq=False)
class Obstacle(ChecksArguments):
    """An obstacle in the world: one or several shapes that move together.

    Args:
        shapes: A shape, a point cloud, or a list of them, in the obstacle's own frame. Half-spaces are allowed.
        name: Name of the obstacle; None for a name that the world generates, such as ``"box"`` or ``"box 2"``.
        transform: Frame of the obstacle in the world: a 4x4 transform, a position, or a pair of a position and a
            rotation; None for the frame of the world.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> cup = sy.Obstacle(sy.Cylinder(radius=0.04, length=0.1), name="cup", transform=(0.5, 0, 0.8))
        >>> cup.name, cup.transform[:3, 3]
        ('cup', array([0.5, 0. , 0.8]))
    """

    shapes: tuple[Shape, ...]
    name: str | None = field(default=None, kw_only=True)
    transform: Array = field(default_factory=lambda: _EYE, kw_only=True)

    def __post_init__(self) -> None:
        """Check the values."""
        where = "obstacle" if self.name is None else f"obstacle {_checked_name(self.name)!r}"
        object.__setattr__(self, "shapes", _checked_shapes(self.shapes, f"{where}: shapes"))
        if self.transform is None:  # pyright: ignore[reportUnnecessaryComparison]
            object.__setattr__(self, "transform", _EYE)
        if self.transform is not _EYE:
            object.__setattr__(self, "transform", as_place(self.transform, f"{where}: transform"))

    def placed(self, transform: Any) -> Obstacle:
        """Return the obstacle in another place.

        Args:
            transform: The new frame of the obstacle in the world, as in ``Obstacle``.
        """
        what = "transform" if self.name is None else f"transform of obstacle {self.name!r}"
        return self.standing(as_place(transform, what))

    def standing(self, transform: Array) -> Obstacle:
        """Return the obstacle in another place, without checks; the transform must be rigid and read-only."""
        return self._with(transform=transform)

    def scaled(self, factor: float) -> Obstacle:
        """Return the obstacle scaled by a factor above 0, about the origin of the world."""
        transform = self.transform.copy()
        shapes = tuple(shape.scaled(factor) for shape in self.shapes)
        transform[:3, 3] *= factor
        return self._with(shapes=shapes, transform=_kept(transform, "transform"))

    @property
    def bounds(self) -> Array:
        """Least and largest coordinates of the obstacle in the world, (2, 3); infinite for half-spaces.

        Example:
            >>> import synovia as sy
            >>> sy.Obstacle(sy.Cylinder(radius=1, length=4), transform=(0, 0, 3)).bounds
            array([[-1., -1.,  1.],
                   [ 1.,  1.,  5.]])
        """
        ends = np.array([shape.moved(self.transform).bounds for shape in self.shapes])
        return np.stack([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)])

    def solids(self) -> tuple[Solid, ...]:
        """Return all solids of the obstacle in the world; a point cloud has one for each point."""
        still = self.transform is _EYE
        return tuple(
            solid if still else solid.moved(self.transform) for shape in self.shapes for solid in shape.solids()
        )

    def _with(self, **values: Any) -> Obstacle:
        """Return a copy with checked values replaced."""
        new = object.__new__(Obstacle)
        new.__dict__.update({**self.__dict__, **values})
        return new

    def __eq__(self, other: object) -> bool:
        """Return whether another obstacle has the same name, shapes and transform."""
        if not isinstance(other, Obstacle):
            return NotImplemented
        return (
            self.name == other.name and self.shapes == other.shapes and np.array_equal(self.transform, other.transform)
        )

    def __hash__(self) -> int:
        """Return a hash of the values."""
        return hash((self.name, self.shapes, self.transform.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the values, so that the array stays read-only."""
        return _obstacle, (self.shapes, self.name, self.transform)

    def __repr__(self) -> str:
        """Return name and kinds of shapes."""
        return f"Obstacle({self.name!r}: {self.kinds})"

    @property
    def kinds(self) -> str:
        """Kinds of the shapes in words, such as ``"box"`` or ``"2 boxes, 1 sphere"``."""
        if len(self.shapes) == 1:
            return self.shapes[0].word
        counts: dict[str, int] = {}
        for shape in self.shapes:
            counts[shape.word] = counts.get(shape.word, 0) + 1
        return ", ".join(counted(count, word) for word, count in counts.items())


@dataclass(frozen=True, eq=False)
class World(ChecksArguments):
    """Obstacles around a body, by name.

    A world is immutable. ``moved``, ``with_obstacles`` and ``without`` return a new world that shares all unchanged
    parts, so moving an obstacle costs little.

    A ``ClearanceGoal`` keeps a body apart from the obstacles. ``distances`` measures the distance of a shape from each
    obstacle.

    Args:
        obstacles: Shapes, point clouds and obstacles; or a mapping from names to these or to lists of shapes. Obstacles
            without a name are named after their kind: ``"box"``, ``"box 2"``.
        meters_per_unit: Length of the unit in metres; None for the unit of the body with which it is used.
        up: Axis that points up, such as ``"z"``; None for that of the body with which it is used.
        notes: Parts of the file that were not kept, one sentence each.
        source: File from which the world was read.

    Raises:
        InputError: If a value cannot be used, or two obstacles have the same name.

    Example:
        >>> import synovia as sy
        >>> world = sy.World({
        ...     "floor": sy.HalfSpace(normal=(0, 0, 1)),
        ...     "table": [
        ...         sy.Box(center=(0.5, 0, 0.7), size=(0.6, 1, 0.04)),
        ...         sy.Cylinder(center=(0.5, 0, 0.34), radius=0.05, length=0.68),
        ...     ],
        ...     "cup": sy.Cylinder(radius=0.04, length=0.1),
        ... })
        >>> world = world.moved({"cup": (0.5, 0.2, 0.77)})
        >>> world
        World('floor': half-space, 'table': 1 box, 1 cylinder, 'cup': cylinder)
        >>> hand = sy.Sphere(center=(0.5, 0.2, 1.0), radius=0.05)
        >>> name, contact = next(iter(world.distances(hand).items()))
        >>> name, round(contact.distance, 9)
        ('cup', 0.13)
    """

    obstacles: tuple[Obstacle, ...] = ()
    meters_per_unit: float | None = field(default=None, kw_only=True)
    up: str | None = field(default=None, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    source: Path | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check the values and name the obstacles."""
        unit = self.meters_per_unit
        if unit is not None and not (is_number(unit) and 0.0 < unit < math.inf):
            raise InputError("World.meters_per_unit", value=unit, expected="a number above 0")
        if self.up is not None and self.up not in AXES:
            raise InputError("World.up", value=self.up, expected=f"one of {', '.join(AXES)}, or None")
        object.__setattr__(self, "obstacles", _named(_checked_obstacles(self.obstacles), ()))
        object.__setattr__(self, "notes", tuple(self.notes))

    @classmethod
    def of(cls, pose: Pose) -> World:
        """Return the shapes of a body in a pose as obstacles, one for each link, such as those of a second robot.

        ``notes`` names the links without known shapes, which are left out.

        Args:
            pose: The pose; its skeleton has shapes.

        Example:
            >>> import synovia as sy
            >>> sy.World.of(sy.bundled("arm7").rest_pose()).names[:2]
            ('base', 'joint1')
        """
        body = pose.skeleton
        unseen = unchecked_links(body)
        places = frames_to_transforms(pose.frames)
        return cls(
            tuple(
                Obstacle(joint.shapes, name=str(body.link_key(row)), transform=places[row])
                for row, joint in enumerate(body.joints)
                if joint.shapes
            ),
            meters_per_unit=body.meters_per_unit,
            up=body.up,
            notes=(f"Links without known shapes are not obstacles: {listed(unseen)}.",) if unseen else (),
            source=body.source,
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the obstacles, in their order."""
        return tuple(cast("str", obstacle.name) for obstacle in self.obstacles)

    @cached_property
    def transforms(self) -> Array:
        """Frame of each obstacle in the world, (n, 4, 4), read-only."""
        table = np.array([obstacle.transform for obstacle in self.obstacles], np.float64).reshape(-1, 4, 4)
        table.setflags(write=False)
        return table

    @cached_property
    def _rows(self) -> dict[str, int]:
        """Row of each obstacle, by name."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def _shapes(self) -> tuple[PackedShapes, NDArray[np.int32]]:
        """All shapes as kernels read them, each in the frame of its obstacle, and the row of each shape's obstacle."""
        return _packed(self.obstacles)

    @property
    def packed(self) -> PackedWorld:
        """The obstacles in the form that kernels read. Worlds that differ only in transforms share the shapes."""
        return PackedWorld(*self._shapes, self.transforms)

    def index(self, name: str) -> int:
        """Return the row of an obstacle.

        Raises:
            UnknownNameError: If there is no obstacle of this name.
        """
        row = self._rows.get(name)
        if row is None:
            raise unknown_name("obstacle", name, self.names, None if self.source is None else str(self.source))
        return row

    def __getitem__(self, name: str) -> Obstacle:
        """Return the obstacle with this name."""
        return self.obstacles[self.index(name)]

    def __contains__(self, name: object) -> bool:
        """Return whether there is an obstacle of this name."""
        return name in self._rows

    def __iter__(self) -> Iterator[Obstacle]:
        """Iterate over the obstacles."""
        return iter(self.obstacles)

    def __len__(self) -> int:
        """Return the number of obstacles."""
        return len(self.obstacles)

    def moved(self, transforms: Mapping[str, Any]) -> World:
        """Return the world with obstacles in other places.

        Args:
            transforms: The new frame of each obstacle that moves, in the world, by name: a 4x4 transform, a position,
                or a pair of a position and a rotation. It replaces the obstacle's frame.

        Raises:
            InputError: If a transform cannot be used.
            UnknownNameError: If there is no obstacle of a name.

        Example:
            >>> import synovia as sy
            >>> world = sy.World({"ball": sy.Sphere(radius=0.1)})
            >>> world.moved({"ball": (0, 0, 2)})["ball"].solids()
            (Sphere(center=(0, 0, 2), radius=0.1),)
        """
        check_kind("transforms", transforms, Mapping, "such as {'ball': (0, 0, 1)}")
        return self.standing(
            {
                (row := self.index(name)): self.obstacles[row].placed(given).transform
                for name, given in transforms.items()
            }
        )

    def standing(self, transforms: Mapping[int, Array]) -> World:
        """Return the world with obstacles in other places, like ``moved``, but without checks.

        Args:
            transforms: The new frame of each obstacle that moves, (4, 4), rigid and read-only, by row of the obstacle.
        """
        obstacles, table = list(self.obstacles), self.transforms.copy()
        for row, transform in transforms.items():
            obstacles[row] = obstacles[row].standing(transform)
            table[row] = transform
        table.setflags(write=False)
        new = self._with(tuple(obstacles))
        kept = ("names", "_rows", "_shapes")
        new.__dict__.update({each: self.__dict__[each] for each in kept if each in self.__dict__}, transforms=table)
        return new

    def with_obstacles(self, obstacles: Mapping[str, Any] | Iterable[Any]) -> World:
        """Return the world with further obstacles; an obstacle with an existing name replaces the old one.

        Args:
            obstacles: As in ``World``.

        Raises:
            InputError: If an obstacle cannot be used, or two have the same name.

        Example:
            >>> import synovia as sy
            >>> world = sy.World([sy.HalfSpace()]).with_obstacles([sy.Box(size=(1, 1, 1))])
            >>> world.with_obstacles({"box": sy.Sphere(radius=1)})
            World('half-space': half-space, 'box': sphere)
        """
        added = _named(_checked_obstacles(obstacles), self.names)
        found: dict[str | None, Obstacle] = {obstacle.name: obstacle for obstacle in self.obstacles}
        return self._with(tuple({**found, **{obstacle.name: obstacle for obstacle in added}}.values()))

    def without(self, *names: str) -> World:
        """Return the world without some obstacles.

        Raises:
            UnknownNameError: If there is no obstacle of a name.

        Example:
            >>> import synovia as sy
            >>> sy.World([sy.HalfSpace(), sy.Sphere(radius=1)]).without("sphere")
            World('half-space': half-space)
        """
        gone = {self.index(name) for name in names}
        return self._with(tuple(obstacle for row, obstacle in enumerate(self.obstacles) if row not in gone))

    def scaled(self, factor: float) -> World:
        """Return the world with all lengths multiplied by a factor above 0, about the origin.

        The unit is divided by the factor, so that the physical size does not change.
        """
        if not (is_number(factor) and 0.0 < factor <= LONGEST):
            raise InputError("factor", value=factor, expected="a number above 0")
        unit = None if self.meters_per_unit is None else self.meters_per_unit / factor
        return replace(self, obstacles=tuple(each.scaled(factor) for each in self.obstacles), meters_per_unit=unit)

    def matched(self, skeleton: Skeleton, *, up: str | None = None) -> World:
        """Return the world in the unit of a skeleton, with its axis that points up.

        An unknown unit or axis is assumed to be that of the other.

        Args:
            skeleton: The skeleton.
            up: Axis that points up, such as ``"y"``, for a skeleton whose axis is unknown.

        Raises:
            InputError: If there is no such axis.

        Example:
            >>> import synovia as sy
            >>> body = sy.bundled("humanoid")  # metres, y points up
            >>> world = sy.World({"ball": sy.Sphere(center=(0, 0, 150), radius=10)}, meters_per_unit=0.01, up="z")
            >>> world.matched(body)["ball"].solids()
            (Sphere(center=(0, 1.5, 0), radius=0.1),)
        """
        if up is not None and up not in AXES:
            raise InputError("up", value=up, expected=f"one of {', '.join(AXES)}, or None")
        new, unit, up = self, skeleton.meters_per_unit, skeleton.up or up
        if None not in (unit, self.meters_per_unit) and unit != self.meters_per_unit:
            new = replace(new.scaled(cast("float", self.meters_per_unit) / cast("float", unit)), meters_per_unit=unit)
        if None not in (up, self.up) and up != self.up:
            turn = rigid(rotation=axis_turn(cast("str", self.up), cast("str", up)))
            new = replace(new, obstacles=tuple(each.placed(turn @ each.transform) for each in new.obstacles), up=up)
        return new

    def distances(self, shape: Solid, *, transform: ArrayLike | None = None) -> dict[str, Contact]:
        """Return the contact of a shape with each obstacle by name, the nearest one first.

        For an obstacle of several shapes, this is the contact of the nearest shape.

        Args:
            shape: The shape; half-spaces are refused.
            transform: 4x4 transform from the frame of the shape to the world; None if the shape is given in the world.

        Raises:
            InputError: If an argument cannot be used.

        Example:
            >>> import synovia as sy
            >>> world = sy.World([sy.HalfSpace(), sy.Sphere(center=(0, 0, 5), radius=1)])
            >>> found = world.distances(sy.Sphere(center=(0, 0, 3), radius=0.5))
            >>> [(name, contact.distance) for name, contact in found.items()]
            [('sphere', 0.5), ('half-space', 2.5)]
        """
        check_kind("shape", shape, Solid, "such as Sphere(radius=0.1)")
        if shape.endless:
            raise InputError("shape", value=type(shape), expected="a bounded shape")
        if not self.obstacles:
            return {}
        own = pack_shapes([shape if transform is None else shape.moved(transform)])
        both = join_shapes([own, self.packed.in_world()])
        count = len(both.shapes) - 1
        pairs = np.stack([np.zeros(count, np.int32), np.arange(1, count + 1, dtype=np.int32)], axis=1)
        rows = contact_rows(both, pairs)
        owners = self._shapes[1]
        order = np.argsort(rows[:, layout.GAP_SIZE], kind="stable")
        _, first = np.unique(owners[order], return_index=True)
        return {self.names[owners[row]]: contact_of(rows[row]) for row in order[np.sort(first)]}

    def ground(self, points: ArrayLike, up: Any = None) -> Ground:
        """Return the surface under points: its height, its normal, and the obstacle that it belongs to.

        Consider the vertical line through each point. Obstacles that overlap or touch on this line form one piece, such
        as the steps of stairs. The ground is the top of the highest piece that begins at or below the point. So a free
        point gets the surface below it, regardless of obstacles above; a point inside an obstacle gets the top of this
        obstacle.

        Heights are exact for every kind of shape, up to rounding. A plate on its edge, a line and a point are no
        ground.

        Args:
            points: The points, (n, 3).
            up: The axis that points up, such as ``"z"``, or a direction (3,); None for that of the world.

        Raises:
            InputError: If the points or the direction cannot be used, or no direction is known.

        Example:
            >>> import synovia as sy
            >>> world = sy.World({"floor": sy.HalfSpace(), "step": sy.Box(center=(1, 0, 0.1), size=(1, 1, 0.2))})
            >>> ground = world.ground([(0, 0, 1), (1, 0, 1), (1, 0, 0.1)], up="z")
            >>> ground.heights, ground.obstacles
            (array([0. , 0.2, 0.2]), ('floor', 'step', 'step'))
        """
        at = as_numbers(points, (-1, 3), "points")
        axis = up if up is not None else self.up
        if axis is None or (isinstance(axis, str) and axis not in AXES):
            raise InputError("up", value=up, expected=f"a direction, or one of {', '.join(AXES)}")
        way = axis_vector(axis) if isinstance(axis, str) else as_direction(axis, "up")
        shapes, names = self._in_world
        heights, normals, rows = ground_under(shapes, at, way)
        return Ground(heights, normals, tuple(None if row < 0 else names[row] for row in map(int, rows)))

    def planes(self, points: ArrayLike, obstacle: str | None = None) -> Array:
        """Return the plane that separates each point from its nearest obstacle, as frames (n, 4, 4).

        The origin of a frame is the point of the obstacle's surface nearest to the point. The z axis points outwards:
        to a point outside, or from a point inside to the surface. On a flat face, the plane is that of the face.
        Shapes are convex, so everything in front of the plane is outside the shape. Such frames are targets of a
        ``PlaneGoal``, one for each frame of a track.

        Args:
            points: The points, (n, 3).
            obstacle: Name of the obstacle; None for the obstacle nearest to each point.

        Raises:
            InputError: If the points cannot be used, or the world has no obstacles.
            UnknownNameError: If there is no obstacle of this name.

        Example:
            >>> import synovia as sy
            >>> world = sy.World({"box": sy.Box(size=(2, 2, 2))})
            >>> plane = world.planes([(0.2, 0.3, 1.5)])[0]
            >>> plane[:3, 3], plane[:3, 2]
            (array([0.2, 0.3, 1. ]), array([0., 0., 1.]))
        """
        at = as_numbers(points, (-1, 3), "points")
        if obstacle is not None:
            self.index(obstacle)
        elif not self.obstacles:
            raise InputError("World.planes", expected="at least one obstacle")
        world = self if obstacle is None else self._with((self[obstacle],))
        out = np.empty((len(at), 4, 4))
        for frame, point in zip(out, at, strict=True):
            contact = next(iter(world.distances(Sphere(center=point, radius=0.0)).values()))
            frame[...] = rigid(contact.points[1], align_z(contact.normal))
        return out

    @cached_property
    def _in_world(self) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
        """All shapes, in the frame of the world, and the name of each shape's obstacle."""
        found = [
            (shape if each.transform is _EYE else shape.moved(each.transform), cast("str", each.name))
            for each in self.obstacles
            for shape in each.shapes
        ]
        return tuple(shape for shape, _ in found), tuple(name for _, name in found)

    def _with(self, obstacles: tuple[Obstacle, ...]) -> World:
        """Return a world with other obstacles, whose names are already checked."""
        new = object.__new__(World)
        new.__dict__.update({name: self.__dict__[name] for name in _FIELDS}, obstacles=obstacles)
        return new

    def __eq__(self, other: object) -> bool:
        """Return whether another world has the same obstacles in the same order, unit and axis."""
        if not isinstance(other, World):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        """Return a hash of the values."""
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        """Return the values that define equality, without notes and source."""
        return self.obstacles, self.meters_per_unit, self.up

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds a copy from the values."""
        return _world, tuple(getattr(self, each.name) for each in fields(self))

    def __repr__(self) -> str:
        """Return names and kinds of the obstacles."""
        if not self.obstacles:
            return "World()"
        return f"World({first_few([f'{each.name!r}: {each.kinds}' for each in self.obstacles])})"


_FIELDS: Final = tuple(each.name for each in fields(World))


def unlike(names: Iterable[str | None]) -> list[str | None]:
    """Return names of obstacles for a file: numbers are appended to repeated names; None stays None."""
    used: set[str] = set()
    found: list[str | None] = []
    count: dict[str, int] = {}
    for name in names:
        new = name or None
        while new is not None and new in used:
            count[str(name)] = count.get(str(name), 1) + 1
            new = f"{name} {count[str(name)]}"
        used.add(new or "")
        found.append(new)
    return found


def as_place(value: Any, what: str) -> Array:
    """Return a transform, read-only, from a 4x4 transform, a position, or a pair of a position and a rotation.

    Raises:
        InputError: If the value is none of these.
    """
    given: Any = value
    if isinstance(value, tuple | list) and len(given) == 2:
        place = rigid(as_numbers(given[0], (3,), f"position of {what}"), as_matrix(given[1], f"rotation of {what}"))
    elif dimensions(given) == 1:
        place = rigid(as_numbers(given, (3,), what))
    else:
        place = as_transform(given, what)
    return _kept(place, what)


def _kept(transform: Array, what: str) -> Array:
    """Return a transform as a read-only array, after a check of the range of its position."""
    if largest_number(transform[:3, 3]) > LONGEST:
        raise InputError(what, value=transform[:3, 3], expected=f"numbers of at most {LONGEST:g}")
    transform.setflags(write=False)
    return transform


def _checked_name(name: Any) -> str:
    """Check and return the name of an obstacle.

    Raises:
        InputError: If the name is not a text, or empty.
    """
    if not isinstance(name, str) or not name:
        raise InputError("name of an obstacle", value=name, expected="text")
    return name


def _checked_shapes(given: object, what: str) -> tuple[Shape, ...]:
    """Check and return the shapes of an obstacle.

    Raises:
        InputError: If the value is something else, or there is no shape.
    """
    if isinstance(given, Shape):
        return (given,)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InputError(
            what, value=type(cast("object", given)), expected="a shape or a list of shapes, such as Sphere(radius=0.1)"
        )
    shapes = tuple(cast("Iterable[object]", given))
    for i, shape in enumerate(shapes):
        if not isinstance(shape, Shape):
            raise InputError(f"{what}[{i}]", value=type(shape), expected="a shape, such as Sphere(radius=0.1)")
    if not shapes:
        raise InputError(what, expected="at least one shape")
    return cast("tuple[Shape, ...]", shapes)


def _checked_obstacles(given: object) -> list[Obstacle]:
    """Check and return obstacles; they may still have no names.

    Raises:
        InputError: If a value is something else.
    """
    if isinstance(given, Mapping):
        named: list[Obstacle] = []
        for name, value in cast("Mapping[Any, Any]", given).items():
            if isinstance(value, Obstacle):
                named.append(replace(value, name=_checked_name(name)))
            else:
                named.append(Obstacle(value, name=_checked_name(name)))
        return named
    if isinstance(given, Obstacle | Shape):
        given = (given,)
    if isinstance(given, str) or not isinstance(given, Iterable):
        expected = "a list of shapes and obstacles, or a mapping from names to them"
        raise InputError("obstacles", value=type(given), expected=expected)
    found: list[Obstacle] = []
    for i, one in enumerate(cast("Iterable[object]", given)):
        if not isinstance(one, Obstacle | Shape):
            hint = "several shapes that move together are Obstacle([...])" if isinstance(one, list | tuple) else None
            raise InputError(
                f"obstacles[{i}]", value=type(cast("object", one)), expected="a shape or an Obstacle", hint=hint
            )
        found.append(one if isinstance(one, Obstacle) else Obstacle((one,)))
    return found


def _named(obstacles: Sequence[Obstacle], taken: Sequence[str]) -> tuple[Obstacle, ...]:
    """Return the obstacles, with generated names for those without a name.

    Args:
        obstacles: The obstacles.
        taken: Names of other obstacles in the world, which generated names must differ from.

    Raises:
        InputError: If two obstacles have the same name.
    """
    given = [obstacle.name for obstacle in obstacles if obstacle.name is not None]
    if len({*given}) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InputError("names of obstacles", value=twice, expected="each name once")
    used = {*given, *taken}
    last: dict[str, int] = {}
    found: list[Obstacle] = []
    for obstacle in obstacles:
        if obstacle.name is not None:
            found.append(obstacle)
            continue
        word = obstacle.shapes[0].word if len(obstacle.shapes) == 1 else "obstacle"
        number = last.get(word, 0) + 1
        while (name := word if number == 1 else f"{word} {number}") in used:
            number += 1
        last[word] = number
        used.add(name)
        found.append(replace(obstacle, name=name))
    return tuple(found)


def _packed(obstacles: Sequence[Obstacle]) -> tuple[PackedShapes, NDArray[np.int32]]:
    """Return the shapes of obstacles as kernels read them, each in the frame of its obstacle, and their owners."""
    parts: list[PackedShapes] = []
    owners: list[NDArray[np.int32]] = []
    solids: list[Solid] = []  # solids that are not packed yet; they are packed together
    rows: list[int] = []

    def pack_waiting() -> None:
        if solids:
            parts.append(pack_shapes(solids))
            owners.append(np.array(rows, np.int32))
            solids.clear()
            rows.clear()

    for row, obstacle in enumerate(obstacles):
        for shape in obstacle.shapes:
            if isinstance(shape, PointCloud):
                pack_waiting()
                parts.append(pack_cloud(shape.points, shape.radius))
                owners.append(np.full(len(shape.points), row, np.int32))
            else:
                solids += shape.solids()
                rows.append(row)
    pack_waiting()
    packed = join_shapes(parts)
    for array in packed:
        array.setflags(write=False)
    return packed, np.concatenate([np.empty(0, np.int32), *owners])


def _obstacle(shapes: tuple[Shape, ...], name: str | None, transform: Array) -> Obstacle:
    """Return an obstacle from values that are already checked, for copy and pickle."""
    new = object.__new__(Obstacle)
    transform.setflags(write=False)
    new.__dict__.update(shapes=shapes, name=name, transform=transform)
    return new


def _world(*values: Any) -> World:
    """Return a world from values that are already checked, for copy and pickle."""
    new = object.__new__(World)
    new.__dict__.update(zip([each.name for each in fields(World)], values, strict=True))
    return new
