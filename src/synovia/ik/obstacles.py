"""Moving obstacles: places of the obstacles of clearance goals in each problem, frame or tick.

The target of a clearance goal with obstacles gives the places of its obstacles. The places are written into the packed
floats of a problem, so that the problem is not packed again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, SynoviaError, UnknownNameError, restated, unknown_name
from synovia.goals import ClearanceGoal, Goal
from synovia.kernels import layout
from synovia.model.geometry import (
    LONGEST,
    Array,
    Bools,
    as_numbers,
    dimensions,
    frames_to_transforms,
    rigid,
    with_exact_rotations,
)
from synovia.model.shapes.world import World, as_place
from synovia.model.tables import Ints
from synovia.problem import Reduced

_EXAMPLE: Final = "positions of its obstacles, such as {'cup': (0.5, 0, 0.8)}"


@dataclass(frozen=True, eq=False)
class Places:
    """Places of moved obstacles, for each problem of a batch or frame of a track.

    Args:
        obstacles: All obstacles of the problem.
        moved: Rows of the moved obstacles, ascending, with their frames in each problem, (B, k, 14); ``kernels.layout``
            names the columns.
    """

    obstacles: Obstacles
    moved: Array

    def __len__(self) -> int:
        """Return the number of problems or frames."""
        return len(self.moved)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the moved obstacles, (k,)."""
        return self.moved[:1, :, layout.MOVED_OBSTACLE].ravel().astype(np.int64)

    def __getitem__(self, some: Any) -> Places:
        """Return the places for selected problems; ``some`` is a slice, an array of indices or one index."""
        at = slice(some, some + 1) if isinstance(some, int) else some
        return replace(self, moved=np.ascontiguousarray(self.moved[at]))

    def put(self, floats: Array, b: int = 0) -> None:
        """Write the places of problem b into the packed floats of a problem."""
        self.obstacles.call(floats, self.moved[b])

    def put_into(self, obstacles: Obstacles | None, floats: Array) -> None:
        """Write the places of problem 0 into the packed floats of another problem with the same goals."""
        if obstacles is not None:
            obstacles.call(floats, self.moved[0])

    def each(self, floats: Array, first: int, last: int) -> Generator[tuple[int, int, Array]]:
        """Yield (b, b + 1, floats with the places of problem b) for b in range(first, last); all share one array."""
        own = floats.copy()
        for b in range(first, last):
            self.put(own, b)
            yield b, b + 1, own

    def then(self, places: Places) -> Places:
        """Merge the places of two single problems. An obstacle in both has its place from ``places``."""
        if np.array_equal(self.rows, places.rows):
            return places
        rows = np.union1d(self.rows, places.rows)
        moved = np.empty((1, len(rows), layout.MOVED_WIDTH))
        for one in (self, places):
            moved[:, np.searchsorted(rows, one.rows)] = one.moved
        return replace(self, moved=moved)

    @property
    def home(self) -> Places:
        """These obstacles at the places that the worlds of the goals give them."""
        return self.obstacles.placed({row: self.obstacles.frames[row][None] for row in self.rows.tolist()})

    def of(self, obstacles: Obstacles, goals: Sequence[int] | None = None) -> Places:
        """Return the same places with the obstacle rows of another problem.

        Args:
            obstacles: Obstacles of the other problem.
            goals: Indices of the other problem's goals among the goals of this problem; None if the goals are the same.
        """
        if goals is None:
            return replace(self, obstacles=obstacles)
        mine, found = {row: k for k, row in enumerate(self.rows.tolist())}, dict[int, int]()
        for new, g in enumerate(goals):
            for k in range(self.obstacles.count(g)):
                if self.obstacles.first[g] + k in mine:
                    found[obstacles.first[new] + k] = mine[self.obstacles.first[g] + k]
        moved = np.ascontiguousarray(self.moved[:, [*found.values()]])
        moved[..., layout.MOVED_OBSTACLE] = [*found]
        return Places(obstacles, moved)

    def goals(self, goals: Sequence[Goal], b: int = 0) -> tuple[Goal, ...]:
        """Return the goals, with the obstacles of their worlds at the places of problem b."""
        out = list(goals)
        transforms = frames_to_transforms(self.moved[b, :, : layout.FRAME_WIDTH])
        transforms.setflags(write=False)
        moved: dict[int, dict[int, Array]] = {}
        for row, transform in zip(self.rows.tolist(), transforms, strict=True):
            g = int(self.obstacles.owners[row])
            moved.setdefault(g, {})[row - self.obstacles.first[g]] = transform
        for g, places in moved.items():
            goal = cast("ClearanceGoal", out[g])
            out[g] = goal.among(cast("World", goal.world).standing(places))
        return tuple(out)


class Obstacles:
    """The obstacles of all clearance goals of a problem, in the order of the goals.

    Args:
        goals: The goals of the problem, resolved.
        ints: Integers of the packed problem.
        floats: Floats of the packed problem.
        reduced: The reduced problem that was packed.

    Attributes:
        first: Row of the first obstacle of each goal, by index of the goal.
        owners: Index of the goal of each obstacle.
    """

    def __init__(self, goals: Sequence[Goal], ints: Ints, floats: Array, reduced: Reduced) -> None:
        """Find the goals with obstacles, and the keys by which targets address these goals."""
        self._ints, self._floats, self._reduced = ints, floats, reduced
        self._worlds: dict[int, World] = {}
        self._by_key: dict[str, list[int]] = {}
        for g, goal in enumerate(goals):
            if isinstance(goal, ClearanceGoal) and goal.world is not None:
                self._worlds[g] = goal.world
                self._by_key.setdefault(goal.label, []).append(g)
        counts = [len(world) for world in self._worlds.values()]
        starts = np.cumsum([0, *counts]).tolist()
        self.first: dict[int, int] = dict(zip(self._worlds, starts[:-1], strict=True))
        self.owners: NDArray[np.int32] = np.repeat(np.array([*self._worlds], np.int32), counts)

    def count(self, g: int) -> int:
        """Return the number of obstacles of goal g."""
        return len(self._worlds[g]) if g in self._worlds else 0

    @cached_property
    def frames(self) -> Array:
        """Frame of each obstacle in the worlds of the goals, (n, 12)."""
        return _frames_of(np.concatenate([np.empty((0, 4, 4)), *(world.transforms for world in self._worlds.values())]))

    @property
    def none(self) -> Places:
        """Empty places, in which no obstacle moves. The first use loads the kernel that writes places."""
        _ = self.call
        return self.placed({})

    @cached_property
    def pieces(self) -> Array:
        """The pieces of all obstacles in the packed problem, (n, 16), as ``kernels.goals.obstacles`` reads them."""
        parts = [np.zeros((0, layout.PIECE_WIDTH))]
        clear = self._reduced.clearance
        for part in () if clear is None else clear.obstacles:
            packed, count = self._worlds[part.goal].packed, np.arange(len(part.shapes))
            table = np.zeros((len(count), layout.PIECE_WIDTH))
            table[:, : layout.FRAME_WIDTH] = packed.shapes.shapes[part.shapes, : layout.FRAME_WIDTH]
            table[:, layout.PIECE_OBSTACLE] = packed.owners[part.shapes] + self.first[part.goal]
            table[:, layout.PIECE_ROW], table[:, layout.PIECE_TOP] = part.first + count, part.top
            table[:, layout.PIECE_NODE] = part.leaves + count if part.leaves else 0
            parts.append(table)
            if part.link >= 0 and clear is not None:
                home = packed.transforms[packed.owners[part.shapes[0]]]
                ball = table[:1].copy()
                center = clear.balls[part.link, layout.BALL_CENTER : layout.BALL_RADIUS] - home[:3, 3]
                ball[0, layout.ORIGIN : layout.FRAME_WIDTH] = home[:3, :3].T @ center
                ball[0, [layout.PIECE_ROW, layout.PIECE_NODE]] = part.link, -1
                parts.append(ball)
        whole = np.concatenate(parts)
        return whole[np.argsort(whole[:, layout.PIECE_OBSTACLE], kind="stable")]

    @cached_property
    def call(self) -> Any:
        """Function that writes moved obstacles, rows (k, 14), into packed floats."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.goals.obstacles import put_obstacles

        none, pieces = np.zeros((0, layout.MOVED_WIDTH)), self.pieces
        kernel = ready(put_obstacles, self._ints, self._floats, none, pieces)

        def put(floats: Array, moved: Array) -> None:
            kernel(self._ints, floats, moved, pieces)

        return put

    def radii(self, farthest: float) -> Array:
        """Return the distance of the farthest point of each obstacle from its origin, (n,).

        Args:
            farthest: Distance of the farthest point of the body from the origin of the world, which bounds half-spaces.
        """
        out = np.zeros(len(self.owners))
        for g, world in self._worlds.items():
            packed = world.packed
            table = packed.shapes.shapes
            middles = np.linalg.norm(table[:, layout.ORIGIN : layout.HALF_SIZES], axis=1)
            np.maximum.at(out, packed.owners + self.first[g], middles + np.minimum(table[:, layout.EXTENT], farthest))
        return out

    def knows(self, targets: Any) -> bool:
        """Return whether the targets contain obstacle places.

        Raises:
            InputError: If a clearance goal has another target.
            UnknownNameError: If there is no obstacle or goal of a name.
        """
        return self._given(targets) is not None

    def read(self, targets: Any) -> tuple[Mapping[Any, Any], Places] | None:
        """Separate the obstacle places from the other targets of one problem.

        Args:
            targets: As in ``IK.solve``.

        Returns:
            The other targets, and the places; None if targets contain no places.

        Raises:
            InputError: If a place cannot be used.
            UnknownNameError: If there is no obstacle or goal of a name.
        """
        found = self._given(targets)
        if found is None:
            return None
        others, given = found
        frames = {row: _frames_of(as_place(value, what)[None]) for row, what, value in given}
        return others, self.placed(frames)

    def read_many(self, targets: Any) -> tuple[Mapping[Any, Any], Places | None, Bools | None] | None:
        """Separate the obstacle places from the other targets of a batch; all have a leading axis.

        Args:
            targets: As in ``IK.solve_many``.

        Returns:
            The other targets, the places, and a mask of problems with unusable places. Places and mask are None if no
            obstacle moves; the result is None if the targets have no entry of a clearance goal.

        Raises:
            InputError: If places have no usable form, or their numbers differ.
            UnknownNameError: If there is no obstacle or goal of a name.
        """
        found = self._given(targets)
        if found is None:
            return None
        others, given = found
        if not given:
            return others, None, None
        read = {row: (what, *_many(value, what)) for row, what, value in given}
        counts = {what: len(frames) for what, frames, _ in read.values()}
        if len({*counts.values()}) > 1:
            raise InputError("lengths of targets", value=counts, expected="the same for all")
        odd = np.logical_or.reduce([bad for _, _, bad in read.values()])
        return others, self.placed({row: frames for row, (_, frames, _) in read.items()}), odd

    def error_of(self, targets: Any, b: int) -> SynoviaError | None:
        """Return the error of the obstacle places in problem b of a batch; None if they can be used."""
        found = self._given(targets)
        for _, what, value in () if found is None else found[1]:
            try:
                as_place(tuple(part[b] for part in value) if _is_pair(value) else value[b], what)
            except InputError as error:
                return restated(error, InputError, f"targets[{b}]")
        return None

    def placed(self, frames: Mapping[int, Array]) -> Places:
        """Return places from frames (B, 12) by obstacle row; for an empty dict, empty places of one problem."""
        rows = sorted(frames)
        moved = np.zeros((len(frames[rows[0]]) if rows else 1, len(rows), layout.MOVED_WIDTH))
        moved[..., layout.MOVED_OBSTACLE] = rows
        for k, row in enumerate(rows):
            moved[:, k, : layout.FRAME_WIDTH] = frames[row]
        return Places(self, moved)

    def _given(self, targets: Any) -> tuple[dict[Any, Any], list[tuple[int, str, Any]]] | None:
        """Return the targets of all other goals, and a list with the row, description and place of each given obstacle.

        Raises:
            InputError: If a clearance goal has another target.
            UnknownNameError: If there is no obstacle or goal of a name.
        """
        if not isinstance(targets, Mapping):
            return None
        whole = cast("Mapping[Any, Any]", targets)
        keys = [key for key, value in whole.items() if isinstance(value, Mapping) or self._is_key(key)]
        if not keys:
            return None
        given: list[tuple[int, str, Any]] = []
        for key in keys:
            value = whole[key]
            if not self._is_key(key):
                raise unknown_name("clearance goal with a world", key, [*self._by_key])
            if not isinstance(value, Mapping):
                raise InputError(f"target of {key!r}", value=value, expected=_EXAMPLE)
            g = self._goal(key)
            for name, place in cast("Mapping[str, Any]", value).items():
                row = self.first[g] + self._worlds[g].index(name)
                given.append((row, f"transform of obstacle {name!r}", place))
        return {key: value for key, value in whole.items() if key not in keys}, given

    def _is_key(self, key: Any) -> bool:
        """Return whether a key of targets names a clearance goal with obstacles."""
        return isinstance(key, str) and key in self._by_key

    def _goal(self, key: str) -> int:
        """Return the index of the goal with this key.

        Raises:
            UnknownNameError: If several goals have this key.
        """
        found = self._by_key[key]
        if len(found) > 1:
            raise UnknownNameError(f"{key!r} means {len(found)} goals", hint="give each of them a name, and use those")
        return found[0]


def _frames_of(transforms: Array) -> Array:
    """Return the frames (..., 12) of transforms (..., 4, 4)."""
    turns = transforms[..., :3, :3].reshape(*transforms.shape[:-2], 9)
    return np.concatenate([turns, transforms[..., :3, 3]], axis=-1)


def _is_pair(value: Any) -> bool:
    """Return whether a value is a pair of positions and rotations, and not a list of two places."""
    if not isinstance(value, tuple | list) or len(cast("Sequence[Any]", value)) != 2:
        return False
    rotations = cast("Sequence[Any]", value)[1]
    return hasattr(rotations, "as_matrix") or dimensions(rotations) == 3


def _many(value: Any, what: str) -> tuple[Array, Bools]:
    """Return the frames (B, 12) of a batch of places, and a mask of unusable ones.

    Raises:
        InputError: If the places have another form.
    """
    if _is_pair(value):
        rotations: Any = value[1].as_matrix() if hasattr(value[1], "as_matrix") else value[1]
        turns = as_numbers(rotations, (-1, 3, 3), f"rotations of {what}", finite=False)
        whole = _at(as_numbers(value[0], (len(turns), 3), f"positions of {what}", finite=False))
        whole[:, :3, :3] = turns
    elif dimensions(value) == 2:
        whole = _at(as_numbers(value, (-1, 3), what, finite=False))
    elif dimensions(value) == 3:
        whole = as_numbers(value, (-1, 4, 4), what, finite=False)
    else:
        raise InputError(
            what, value=value, expected="positions (B, 3), transforms (B, 4, 4), or a pair of positions and rotations",
            hint="solve() takes one position, this method takes many",
        )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):
        exact, usable = with_exact_rotations(whole)
        usable &= np.abs(whole[:, :3, 3]).max(axis=1, initial=0.0) <= LONGEST
    return _frames_of(exact), ~usable


def _at(positions: Array) -> Array:
    """Return translations (B, 4, 4) to positions (B, 3)."""
    out = np.repeat(rigid()[None], len(positions), axis=0)
    out[:, :3, 3] = positions
    return out
