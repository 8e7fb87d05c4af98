"""Clearance: keep links apart from each other and from obstacles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, UnknownNameError, unknown_name
from synovia.goals import describe
from synovia.goals.base import POSITION, Goal, goal_class
from synovia.goals.describe import Sketch, View
from synovia.model.address import JOINT, LINK
from synovia.model.geometry import LONGEST, is_number
from synovia.model.shapes.body import packed_shapes
from synovia.model.shapes.pairs import self_pairs
from synovia.model.shapes.within import pairs_within
from synovia.model.shapes.world import World
from synovia.text import counted, first_few

if TYPE_CHECKING:
    from synovia.model import Skeleton

Rows = NDArray[np.int64]
SELF: Final = "self"
WORLD: Final = "world"
_MEANS: Final = {SELF: "the pairs of links that can collide", WORLD: "all links and all obstacles"}
_MOST_SLOTS: Final = 24  # largest number of contacts that a goal measures at once
_SPARE_SLOTS: Final = 6  # number of contacts in addition to one for each degree of freedom
_FURTHER_POINTS: Final = 3  # number of contacts of a pair of shapes with flat faces in addition to the first
_COVERS: Final = "sy.with_shapes(skeleton), or --shapes on the command line, covers them with capsules"
_PAIRS: Final = '"self", "world" or pairs such as ("left_hand", "head")'


class Apart(NamedTuple):
    """The pairs that a resolved clearance goal keeps apart. Links are given by the rows of their joints.

    Args:
        links: Pairs of links that can collide or are named, (n, 2).
        avoiding: Links to keep apart from all obstacles, (m,).
        single: Pairs of a link and a row of the world's obstacles, (k, 2).
        slots: Largest number of simultaneous contacts of the pairs above.
        close: Pairs of links that cannot keep the distance, so only contact is excluded, (c, 2).
        close_slots: Largest number of simultaneous contacts of the close pairs.
    """

    links: Rows
    avoiding: Rows
    single: Rows
    slots: int
    close: Rows = np.zeros((0, 2), np.int64)
    close_slots: int = 0


def _pairs_in_file(goal: Any) -> list[Any] | None:
    """Return the pairs of a goal that a file can store.

    Raises:
        UnsupportedError: If the goal has a world, which a goal file cannot store.
    """
    if goal.world is not None:
        expected = "a clearance goal without world; save_world stores obstacles, and read_goals(world=) adds them"
        raise describe.cannot_store(goal, "a world", expected)
    return None if goal.pairs is None else [pair if isinstance(pair, str) else list(pair) for pair in goal.pairs]


@goal_class
class ClearanceGoal(Goal):
    """Links of the body should stay apart from each other, and from the obstacles of a world.

    By default this is a constraint, like joint limits: it comes before goals of every priority. A start in collision is
    resolved. Joints that no other goal moves stay in place, unless this is the only goal.

    Obstacles can move without packing the goal again: targets give their places under the name of the goal
    (``"clearance"`` by default). Each place is the new frame of an obstacle in the world, as in ``World.moved``, in the
    unit and axes of the body, like all targets. The place applies to this problem or frame; in a ``Servo``, from this
    tick on.

    The error is ``distance`` plus the tolerance, minus the distance of the nearest pair. So a goal that is met within
    the tolerance keeps the whole distance.

    Args:
        distance: Least distance between the shapes, length units; a negative value allows an overlap.
        world: The obstacles, a ``World``, in the world's own unit and axes if they are known.
        pairs: What stays apart: ``"self"`` for the pairs of links that can collide (see ``self_pairs``), ``"world"``
            for all links and all obstacles, pairs of names of links and obstacles such as ``("left_hand", "table")``,
            or a list of these; None for ``"self"`` and, with a world, ``"world"``. In a pair, ``"self"`` and
            ``"world"`` mean links or obstacles of that name. Links that no joint moves are left out of ``"world"``: the
            base of a robot may stand on a table. For pairs of ``"self"`` that are nearer than the distance in 95 % of
            random poses, only contact is excluded; ``solution.notes`` names them.
        priority: None for a constraint; a number makes it a goal of that priority.

    Raises:
        InputError: If a value cannot be used; when an ``IK`` is built, if the body has no shapes, if shapes of a link
            of the goal could not be read (``with_shapes`` covers such links), or a pair is unknown.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> wall = sy.World({"wall": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 0.3, 0.8))})
        >>> goals = [sy.PositionGoal("tool", (0.6, 0.1, 0.4)), sy.ClearanceGoal(0.01, world=wall)]
        >>> solution = sy.solve(arm, goals)
        >>> solution.reached, solution.contacts[0].distance >= 0.01
        (True, True)
        >>> ik = sy.IK(arm, goals)
        >>> moved = ik.solve({"clearance": {"wall": (0.05, 0, 0)}})  # the wall of above, 5 cm farther away
        >>> bool(moved.contacts[0].distance >= 0.01)
        True
    """

    kind = "clearance"
    needs = "clearance"
    summary = "Links stay apart from each other and from the obstacles of a world."
    fields = (
        describe.Field(
            name="distance",
            form="number",
            text="Least distance between the shapes, length units.",
            take=lambda goal: goal.distance,
            default=0.0,
            control=True,
        ),
        describe.Field(
            name="pairs",
            form="pairs",
            text='What stays apart: "self" for pairs of links that can collide, "world" for all links and obstacles,'
            " pairs of names of links and obstacles, which may be self and world, too. If left out, self and world. The"
            " world is given in addition to the file.",
            take=_pairs_in_file,
            held=lambda goal: goal.pairs,
        ),
    )
    on_joint = False
    is_constraint = True
    takes_world = True

    joint: None = field(default=None, init=False)
    distance: float = 0.0
    _: KW_ONLY
    world: World | None = None
    pairs: Any = None
    priority: int | None = None  # pyright: ignore[reportIncompatibleVariableOverride]  # None is above all
    apart: Apart | None = field(default=None, init=False)  # pairs in rows; set when the goal is resolved

    def __post_init__(self) -> None:
        """Check the values."""
        super().__post_init__()
        world: Any = self.world
        if world is not None and not isinstance(world, World):
            raise InputError("world", value=world, expected="a World; sy.load_world(path) reads one")
        pairs = None if self.pairs is None else _checked_pairs(self.pairs)
        if world is None and pairs is not None and WORLD in pairs:
            raise InputError("pairs", value=WORLD, expected="a world, too: world=, or --world on the command line")
        if not is_number(self.distance) or not abs(self.distance) <= LONGEST:
            raise InputError("distance", value=self.distance, expected=f"a number of at most {LONGEST:g}")
        self._keep(distance=float(self.distance), pairs=pairs)

    @property
    def rows(self) -> int:
        """Number of residual rows, which is the largest number of simultaneous contacts."""
        return 0 if self.apart is None else self.apart.slots + self.apart.close_slots

    @property
    def measures(self) -> int:
        """Return POSITION, because the error is a length."""
        return POSITION

    @property
    def avoids_world(self) -> bool:
        """Whether the goal may keep links apart from obstacles."""
        return self.world is not None and self.pairs != (SELF,)

    @property
    def avoids_itself(self) -> bool:
        """Whether the goal keeps apart all pairs of links that can collide, also if ``on_rows`` lists them by row."""
        return self.pairs is None or any(one == SELF or _is_of_rows(one) for one in self.pairs)

    @property
    def is_about_all(self) -> bool:
        """Whether the goal applies to all links, not only to named pairs."""
        return self.avoids_itself or WORLD in self.pairs

    @property
    def can_move(self) -> bool:
        """Return False, because the goal has no target to move."""
        return False

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with its pairs of links and obstacles, in the unit of the skeleton.

        Raises:
            InputError: If the body has no shapes, or shapes of a link of the goal could not be read.
            UnknownNameError: If there is no link or obstacle of a name.
        """
        rows = [row for row, joint in enumerate(skeleton.joints) if joint.shapes]
        if not rows:
            raise InputError(
                skeleton.name,
                where="clearance goal",
                expected="a body with shapes",
                hint="sy.with_shapes(skeleton) makes them from the bones",
            )
        world = None if self.world is None else self.world.matched(skeleton)
        pairs = self._chosen(skeleton)
        named = [_find(pair, skeleton, world) for pair in pairs if not isinstance(pair, str)]
        _check_lost(skeleton, _subjects(skeleton, pairs, world))
        links = [pair for pair, is_obstacle in named if not is_obstacle]
        single = [pair for pair, is_obstacle in named if is_obstacle]
        close: list[tuple[int, int]] = []
        if SELF in pairs:
            own = self_pairs(skeleton).rows
            near = pairs_within(skeleton, self.distance)
            close = [pair for pair in map(tuple, own[near].tolist()) if pair not in {*links, *(p[::-1] for p in links)}]
            links = [*own[~near].tolist(), *links]
        avoiding = rows if WORLD in pairs else []
        body = packed_shapes(skeleton)
        sizes = body.packed.counts(body.owners, len(skeleton))
        others = np.zeros((0, 2), np.int64)
        if world is not None:
            others = world.packed.shapes.counts(world.packed.owners, len(world))
        most = min(_SPARE_SLOTS + len(skeleton.dof_names), _MOST_SLOTS)
        total = sum(_contacts(sizes[a], sizes[b]) for a, b in links)
        total += _contacts(sizes[avoiding].sum(axis=0), others.sum(axis=0))
        total += sum(_contacts(sizes[a], others[b]) for a, b in single)
        close_slots = min(sum(_contacts(sizes[a], sizes[b]) for a, b in close), most)
        found = Apart(
            _table(links), np.array(avoiding, np.int64), _table(single), min(total, most), _table(close), close_slots
        )
        return self._with(world=world, apart=found)

    def _chosen(self, skeleton: Skeleton) -> tuple[Any, ...]:
        """Return the given pairs, or the default: ``"self"`` and, with a world, ``"world"``.

        Raises:
            InputError: If ``"self"`` and ``"world"`` are also names of links or obstacles.
        """
        if self.pairs is None:
            return (SELF,) if self.world is None else (SELF, WORLD)
        if sorted(map(str, self.pairs)) == [SELF, WORLD] and all(
            _has_shapes(name, skeleton, self.world) for name in self.pairs
        ):
            hint = 'None means both of "self" and "world"'
            expected = f"[{self.pairs}] for the pair of these two names"
            raise InputError("pairs", where="clearance goal", value=self.pairs, expected=expected, hint=hint)
        return self.pairs

    def among(self, world: World) -> ClearanceGoal:
        """Return the resolved goal with the obstacles of its world in other places."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, world=world)
        return new

    def on_rows(self, skeleton: Skeleton) -> ClearanceGoal:
        """Return the goal with pairs as rows, so that the pairs stay the same after limits of the body change."""
        given = self._chosen(skeleton)
        pairs = [pair for pair in given if pair != SELF]
        if SELF in given:
            pairs += [tuple(pair) for pair in self_pairs(skeleton).rows.tolist()]
        return self._with(pairs=tuple(pairs) or (SELF,))

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return the violation of the required distance as text."""
        return f"lacks {say(length)} of its distance"

    def sketch(self, view: View) -> Sketch:
        """Return no marks, because contacts are drawn separately."""
        return Sketch(on_joint=False)


def _subjects(skeleton: Skeleton, pairs: Sequence[Any], world: World | None) -> set[int]:
    """Return the rows of the links named in ``pairs``; all rows for ``"self"`` or ``"world"``. Ignore pairs of rows."""
    if any(isinstance(pair, str) for pair in pairs):
        return set(range(len(skeleton)))
    names = [name for pair in pairs for name in pair if isinstance(name, str)]
    return {skeleton.locate(name)[0] for name in names if world is None or name not in world}


def _check_lost(skeleton: Skeleton, rows: set[int]) -> None:
    """Raise an error for links with unreadable shapes, which the goal could not keep apart.

    Raises:
        InputError: If a link in ``rows`` has unreadable shapes.
    """
    lost = [str(skeleton.link_key(row)) for row in sorted(rows) if skeleton.joints[row].shapes_lost]
    if lost:
        raise InputError(
            f"shapes of {counted(len(lost), 'link')} of {skeleton.name} could not be read",
            where="clearance goal",
            value=first_few(lost),
            expected="a body whose shapes are all known",
            hint=f"{_COVERS}; sy.with_shapes(skeleton, {{{lost[0]!r}: []}}) says that a link needs none",
        )


def _contacts(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Return how many contacts two sets of shapes can have at once; a, b: numbers of shapes and of non-spheres."""
    return int(a[0] * b[0] + _FURTHER_POINTS * a[1] * b[1])


def _table(pairs: Sequence[Sequence[int]]) -> Rows:
    """Return pairs of rows as an array (n, 2) without duplicates."""
    return np.array([*dict.fromkeys(tuple(pair) for pair in pairs)], np.int64).reshape(-1, 2)


def _checked_pairs(given: Any) -> tuple[Any, ...]:
    """Return the argument ``pairs`` as a tuple of words and pairs of names.

    Raises:
        InputError: If ``pairs`` cannot be used.
    """
    if isinstance(given, str) or (isinstance(given, tuple) and _is_pair(given) and {*given} - {SELF, WORLD}):
        given = [given]
    if not isinstance(given, Sequence) or not len(cast("Sequence[Any]", given)):
        raise InputError("pairs", value=cast("Any", given), expected=f"{_PAIRS}, or a list of these")
    found: list[Any] = []
    for one in cast("Sequence[Any]", given):
        if one not in (SELF, WORLD) if isinstance(one, str) else not _is_pair(one):
            raise InputError("pairs", value=one, expected=_PAIRS)
        found.append(one if isinstance(one, str) else tuple(k if isinstance(k, str) else int(k) for k in one))
    return tuple(found)


def _is_of_rows(one: Any) -> bool:
    """Return whether a word or pair is a pair of rows."""
    return not isinstance(one, str) and not any(isinstance(name, str) for name in one)


def _is_pair(one: Any) -> bool:
    """Return whether a value is a pair of names or rows."""
    if not isinstance(one, Sequence) or isinstance(one, str) or len(cast("Sequence[Any]", one)) != 2:
        return False
    names = cast("Sequence[Any]", one)
    return all(isinstance(name, str | int | np.integer) and not isinstance(name, bool) for name in names)


def _find(pair: tuple[str | int, str | int], skeleton: Skeleton, world: World | None) -> tuple[tuple[int, int], bool]:
    """Return the rows of a pair, and whether the second one is an obstacle; the link comes first.

    Raises:
        InputError: If both are obstacles, one is both a link and an obstacle, or both are the same link.
        UnknownNameError: If there is no link or obstacle of a name.
    """
    obstacles = [world is not None and isinstance(name, str) and name in world for name in pair]
    for name, is_obstacle in zip(pair, obstacles, strict=True):
        if is_obstacle and _is_link(skeleton, name):
            longer = (f"{frame}:{name}" for frame in (LINK, JOINT))
            raise InputError(
                "pairs",
                where="clearance goal",
                value=name,
                expected="a name of a link or of an obstacle, and not of both",
                hint=next((f"'{one}' is the link" for one in longer if _is_link(skeleton, one)), None),
            )
    if all(obstacles):
        raise InputError("pairs", where="clearance goal", value=pair, expected="a link of the body and an obstacle")
    first, second = pair if not obstacles[0] else pair[::-1]
    row = _link(skeleton, first, world)
    if any(obstacles):
        return (row, cast("World", world).index(cast("str", second))), True
    other = _link(skeleton, second, world)
    if row == other:
        raise InputError("pairs", where="clearance goal", value=pair, expected="two different links")
    return (row, other), False


def _is_link(skeleton: Skeleton, name: str | int) -> bool:
    """Return whether a link has this name."""
    try:
        skeleton.locate(name)
    except UnknownNameError:
        return False
    return True


def _has_shapes(name: str, skeleton: Skeleton, world: World | None) -> bool:
    """Return whether an obstacle, or a link with shapes, has this name."""
    is_obstacle = world is not None and name in world
    return is_obstacle or (_is_link(skeleton, name) and bool(skeleton.joints[skeleton.locate(name)[0]].shapes))


def _link(skeleton: Skeleton, name: str | int, world: World | None) -> int:
    """Return the row of the link with this name, and check that it has shapes.

    Raises:
        InputError: If the link has no shapes.
        UnknownNameError: If no link or several links have this name.
    """
    keys = [str(key) for key in skeleton.shapes]
    hint = f"'{name}' outside of a pair means {_MEANS[name]}" if name in _MEANS else None
    try:
        row = skeleton.locate(name)[0]
    except UnknownNameError as error:
        if hint is not None:
            raise UnknownNameError(f"no link or obstacle named {name!r}", where="pairs", hint=hint) from error
        if world is None:
            raise
        raise unknown_name("link or obstacle", name, [*world.names, *keys]) from None
    if not skeleton.joints[row].shapes:
        expected = f"a link with shapes: {first_few(keys)}"
        hint = hint or (_COVERS if skeleton.joints[row].shapes_lost else None)
        raise InputError("pairs", where="clearance goal", value=name, expected=expected, hint=hint)
    return row
