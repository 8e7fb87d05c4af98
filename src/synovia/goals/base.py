"""The base class of goals: joint, weight, priority, offset and target."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from inspect import cleandoc, get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np

from synovia.arguments import ChecksArguments, as_call
from synovia.errors import InputError, restated
from synovia.goals.describe import (
    ANCESTORS,
    CONSTRAINT_PRIORITY,
    JOINT,
    NAME,
    POSITION,
    PRIORITY,
    ROTATION,
    WEIGHT,
    Field,
    Place,
    Sketch,
    View,
    degrees,
)
from synovia.model.geometry import (
    LONGEST,
    Array,
    as_matrix,
    as_numbers,
    as_transform,
    as_unit_quat,
    between_transforms,
    dimensions,
    is_number,
    largest_number,
    quat_to_matrix,
    rigid,
)

if TYPE_CHECKING:
    from synovia.model import Skeleton

_G = TypeVar("_G", bound="Goal")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Term:
    """A residual of a goal in addition to the residual of a world pose, in the form that kernels read.

    Args:
        kind: Name of the residual among the ``TERMS`` of ``kernels.goals.general``.
        lengths: Number of residual rows that are lengths.
        angles: Number of residual rows that are angles.
        takes: Parts of the target that the residual uses.
        frames: A 4x4 frame on each of the goal's joints except the first.
        numbers: Parameters of the kind, at most eight.
        points: Corners of a polygon, (n, 3).
    """

    kind: str
    lengths: int = 0
    angles: int = 0
    takes: int = 0
    frames: tuple[Array, ...] = ()
    numbers: tuple[float, ...] = ()
    points: Array = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def goal_class(cls: type[_G]) -> type[_G]:
    """Turn a kind of goal into a frozen dataclass whose constructor takes the common arguments and its own fields.

    A field of type ``InitVar`` is only an argument of ``__post_init__``, not an attribute of the goal. An error of
    ``__post_init__`` names the goal. The docstring of the class describes only the arguments of its own kind; this
    function adds the common arguments.
    """
    made = dataclass(frozen=True, eq=False, repr=False)(cls)
    if "__post_init__" in vars(made):
        made.__post_init__ = _with_name(made.__post_init__)
    made.__doc__ = _documented(made)
    names = [name for name, kind in get_annotations(cls).items() if str(kind).startswith("InitVar")]
    made.__init__.__annotations__ |= dict.fromkeys(names, "Any")  # type shown in signatures and documentation
    for name in {"__setattr__", *names} & vars(made).keys():
        delattr(made, name)
    return made


def _with_name(check: Callable[..., None]) -> Callable[..., None]:
    """Wrap the check of a goal's values so that errors of the check name the goal."""

    @wraps(check)
    def named(self: Goal, *arguments: Any) -> None:
        with self._named_in_errors():  # pyright: ignore[reportPrivateUsage]  # it becomes a method of the goal
            check(self, *arguments)

    return named


def _documented(cls: type[Goal]) -> str | None:
    """Return the docstring of a kind of goal, with the common arguments that it does not describe itself."""
    before, title, rest = cleandoc(cls.__doc__ or "").partition("Args:\n")
    own, gap, after = rest.partition("\n\n")
    if not title:  # Python runs without docstrings
        return cls.__doc__
    texts = {
        field.name: f"    {field.name}: {field.text}"
        for field in cls.entry_fields()
        if field in (JOINT, WEIGHT, PRIORITY, NAME, ANCESTORS) and f"    {field.name}: " not in own
    }
    joint = [texts.pop(JOINT.name)] if JOINT.name in texts else []
    return before + title + "\n".join([*joint, own, *texts.values()]) + gap + after


class _Immutable(ChecksArguments):
    """Base class whose objects cannot change: an ``IK`` packs its goals, so a later change would have no effect."""

    def __setattr__(self, name: str, value: object) -> None:
        """Raise an error, because attributes cannot be set."""
        raise AttributeError(f"goals are immutable; make a new one, or pass targets={{...}} to solve (tried {name!r})")


@goal_class
class Goal(_Immutable):
    """An objective for one joint or for the whole body. Immutable.

    Args:
        joint: Name of a joint, link or site, else a role, or a row; None for a goal of the whole body.
        weight: Factor of the squared error, relative to goals of the same priority; above 0.
        priority: 0 is the highest; a lower priority never worsens a higher one.
        name: Name of the goal; None for its joint's name.

    Raises:
        InputError: If a value cannot be used; the message names the goal's joint.

    Example:
        >>> import synovia as sy
        >>> goal = sy.PositionGoal("tool", (0.4, 0.1, 0.5))
        >>> isinstance(goal, sy.Goal), goal.weight, goal.priority
        (True, 1.0, 0)
    """

    kind: ClassVar[str] = ""  # name of the kind in files, settings and messages
    summary: ClassVar[str] = ""  # one-sentence description for the schema of goal files
    fields: ClassVar[tuple[Field, ...]] = ()  # fields of the kind in goal files, without fields that all kinds have
    pose_parts: ClassVar[int] = 0  # parts of a world pose that the goal constrains: POSITION, ROTATION or both
    on_joint: ClassVar[bool] = True  # whether the goal is about one joint, not the whole body
    has_priority: ClassVar[bool] = True  # whether the goal has a priority
    is_constraint: ClassVar[bool] = False  # whether ``priority=None`` is allowed, which comes before all priorities
    # whether the goal rotates a limb given by root, middle and tip joint, as poles do
    turns_limb: ClassVar[bool] = False
    moves_mass: ClassVar[bool] = False  # whether the goal depends on all joints that move masses
    in_python: ClassVar[bool] = False  # whether the residual is a Python function, which may depend on every joint
    within_other: ClassVar[bool] = False  # whether the target is in the frame of another joint
    bounds_value: ClassVar[bool] = False  # whether ``lower`` and ``upper`` bound the joint's own value
    takes_world: ClassVar[bool] = False  # whether the goal has the argument ``world``, which goal files omit
    vector: ClassVar[str] = "position"  # meaning of the three values of a target vector

    joint: str | int | None
    weight: float = field(default=1.0, kw_only=True)
    priority: int = field(default=0, kw_only=True)
    offset: Any = field(default=None, init=False)  # frame (4, 4) on the joint; an argument may also be a point (3,)
    name: str | None = field(default=None, kw_only=True)
    # number of ancestors of the goal's joint that may move for the goal; None for all
    ancestors: int | None = field(default=None, init=False)
    target: Array | None = field(default=None, init=False)  # transform (4, 4)
    needs: str = field(default="", init=False)  # what a solver must support; "rows": any residual that has a kernel
    preference: tuple[Array, Array, float] | None = field(
        default=None, init=False
    )  # resolved rest goals: weights of the joints (n,); reference joint values (nq,), or (T, nq) by frame of a clip;
    # weight of the joints that a moving root adds
    places: tuple[Array, ...] = field(
        default=(), init=False
    )  # resolved goals on sites: frame (4, 4) of each joint or site of the goal, on the row that moves it
    given: int = field(
        default=0, init=False
    )  # parts of the target that the goal itself gives; the start gives the others

    def __post_init__(self) -> None:
        """Check the common arguments, and convert the offset to a frame."""
        weight, priority, ancestors = self.weight, self.priority, self.ancestors
        if not is_number(weight) or not 0.0 < weight <= sys.float_info.max:
            raise InputError("weight", value=weight, expected="a finite number above 0")
        given: Any = priority
        if not _is_count(given) and not (self.is_constraint and given is None):
            none = ", or None for a constraint above all" if self.is_constraint else ""
            raise InputError("priority", value=priority, expected=f"a whole number from 0, the highest{none}")
        frame = as_offset(self.offset)
        if self.name is not None and not isinstance(self.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("name", value=self.name, expected="text, or None for the joint's name")
        if ancestors is not None and not _is_count(ancestors):
            raise InputError("ancestors", value=ancestors, expected="a whole number from 0, or None for all")
        ancestors = None if ancestors is None else int(ancestors)
        priority = priority if priority is None else int(priority)  # pyright: ignore[reportUnnecessaryComparison]
        self._keep(weight=float(weight), priority=priority, offset=frame, ancestors=ancestors)

    @contextmanager
    def _named_in_errors(self) -> Generator[None]:
        """Add the goal's name to errors that have no location."""
        try:
            yield
        except InputError as error:
            named = getattr(self, "name", None)  # not set in a derived class that never called __init__
            whole = f"goal {named!r}" if isinstance(named, str) else f"{self.kind} goal"
            place = whole if self.joint is None else f"goal on {self.joint!r}"
            raise restated(error, InputError, error.where or place) from error

    def _aim_at(self, position: Any = None, rotation: Any = None) -> None:
        """Set the target. A missing position or rotation keeps its value in the start."""
        place = None if position is None else as_lengths(position, (3,), "position")
        turn = None if rotation is None else as_matrix(rotation)
        if place is not None or turn is not None:
            given = POSITION * (place is not None) | ROTATION * (turn is not None)
            self._keep(target=rigid((0.0, 0.0, 0.0) if place is None else place, turn), given=given)

    def _keep(self, **values: Any) -> None:
        """Set attributes of this object; arrays become read-only."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def _with(self, **values: Any) -> Self:
        """Return a copy of the goal with other values of the named attributes."""
        return _restore(type(self), {**self._values(), **values})

    def changed(self, **values: Any) -> Self:
        """Return the same goal with other values of its weight, priority or world.

        Raises:
            InputError: If a value cannot be used.
        """
        new = self._with(**values)
        with self._named_in_errors():
            Goal.__post_init__(new)
        return new

    def at_priority(self, priority: int) -> Self:
        """Return the same goal with another priority."""
        return self._with(priority=priority)

    def lowered(self, levels: int) -> Self:
        """Return the same goal with its priority lowered by ``levels``; a constraint keeps its precedence."""
        return self if self.rank < 0 else self._with(priority=self.priority + levels)

    @property
    def rank(self) -> int:
        """Priority of the goal; -1 for a constraint, which comes before all priorities."""
        return -1 if self.priority is None else self.priority  # pyright: ignore[reportUnnecessaryComparison]

    def _values(self) -> dict[str, Any]:
        """Return all attributes, including the slots of classes derived from ``CustomGoal``."""
        slots = [slot for cls in type(self).__mro__ for slot in getattr(cls, "__slots__", ())]
        return {**vars(self), **{slot: getattr(self, slot) for slot in slots}}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a call that restores all values at once, for copy and pickle, because attributes cannot be set."""
        return _restore, (type(self), self._values())

    @property
    def label(self) -> str:
        """Name of the goal in messages, and its key among targets."""
        if self.name is not None:
            return self.name
        return self.kind if self.joint is None else str(self.joint)

    @property
    def has_point(self) -> bool:
        """Whether the goal has a point: on a joint, or the centre of mass."""
        return self.joint is not None or self.moves_mass

    @property
    def joints(self) -> tuple[str | int, ...]:
        """The joints that the goal depends on, its own joint first; empty for a goal of the whole body."""
        return (cast("str | int", self.joint),) if self.on_joint else ()  # the skeleton refuses other types

    def located(self, skeleton: Skeleton) -> tuple[Self, tuple[int, ...]]:
        """Resolve the names of joints and sites; return the goal with its sites' frames, and the row of each joint.

        Raises:
            UnknownNameError: If there is no such joint, or the name fits several frames.
        """
        look_up = skeleton.value_index if self.bounds_value else skeleton.locate
        found = [look_up(joint) for joint in self.joints]
        frames = [(one, None) if isinstance(one, int) else one for one in found]
        places = tuple(rigid() if place is None else place for _, place in frames)
        sited = any(place is not None for _, place in frames)
        goal = self if not sited and not self.places else self._with(places=places if sited else ())
        return goal, tuple(row for row, _ in frames)

    def place(self, k: int) -> Array:
        """Return the frame (4, 4) of joint k of ``joints`` on its row: the identity, except for sites."""
        return self.places[k] if self.places else rigid()

    @property
    def frame(self) -> Array:
        """Frame of the goal on the row of its joint, (4, 4): the offset, relative to the site for a goal on a site."""
        return self.place(0) @ self.offset if self.places else self.offset

    @property
    def constrained_parts(self) -> int:
        """Parts of a world pose that the goal constrains: POSITION, ROTATION, both or none."""
        return self.pose_parts

    @property
    def terms(self) -> tuple[Term, ...]:
        """Residuals of the goal in addition to the residual of a world pose."""
        return ()

    @property
    def takes(self) -> int:
        """Parts of a target that the goal uses: POSITION, ROTATION, both or none."""
        bits = self.constrained_parts
        for term in self.terms:
            bits |= term.takes
        return bits

    @property
    def usual_parts(self) -> int:
        """Parts that targets usually have; target arrays of this shape are written without checks."""
        return self.takes

    @property
    def measures(self) -> int:
        """Kinds of the error's values: a length (POSITION), an angle (ROTATION), both or none."""
        length, angle = (any(rows) for rows in ([t.lengths for t in self.terms], [t.angles for t in self.terms]))
        return self.constrained_parts | POSITION * length | ROTATION * angle

    @property
    def own_tolerance(self) -> float | None:
        """Largest norm of the residual at which the goal is met; None for the tolerance of the ``IK``."""
        return None

    @property
    def rows(self) -> int:
        """Number of residual rows."""
        return 3 * self.constrained_parts.bit_count() + sum(term.lengths + term.angles for term in self.terms)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal completed by values that depend on the skeleton.

        Raises:
            InputError: If the skeleton lacks what the goal needs.
        """
        return self

    @classmethod
    def entry_fields(cls) -> tuple[Field, ...]:
        """Return the fields of this kind of goal in goal files, including the common fields."""
        rank = CONSTRAINT_PRIORITY if cls.is_constraint else PRIORITY
        before, after = (JOINT,) if cls.on_joint else (), (rank,) if cls.has_priority else ()
        return (*before, *cls.fields, WEIGHT, *after, NAME)

    @property
    def other_joint(self) -> str | int | None:
        """The joint in whose frame the target is; None for the world."""
        return None

    @property
    def can_move(self) -> bool:
        """Whether the target is in the world, so that moving the target can help."""
        return self.constrained_parts > 0

    def met_at(self, now: Array, others: Sequence[Array]) -> Array | None:
        """Return the targets that n given poses meet, (n, 4, 4); None if a pose does not determine a target.

        Args:
            now: World frames of the goal in these poses, (n, 4, 4).
            others: World frames of the goal's other joints, each (n, 4, 4).
        """
        return now if self.takes else None

    def part_way(self, now: Array, others: Sequence[Array], target: Array, weight: Array) -> Array | None:
        """Interpolate from the targets that poses meet to given targets, (n, 4, 4); None if this is not possible.

        Args:
            now: As in ``met_at``.
            others: As in ``met_at``.
            target: The given targets, (n, 4, 4).
            weight: Fraction of the path, (n,), from 0 to 1.
        """
        own = self.met_at(now, others)
        return None if own is None else between_transforms(own, target, weight)

    def distances(self, target: Array, point: Array) -> tuple[float, float]:
        """Return the smallest and the largest distance of a point from the positions that meet a target (4, 4)."""
        away = float(np.linalg.norm(target[:3, 3] - point))
        return away, away

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return the predicate of a sentence about the size of the miss.

        Args:
            length: Error of the goal, length units; 0 within the tolerance.
            angle: Error of the goal, radians; 0 within the tolerance.
            say: Returns a length as text.
        """
        parts = [say(length)] * (length > 0.0) + [degrees(angle)] * (angle > 0.0)
        return f"is missed by {' and '.join(parts)}"

    def sketch(self, view: View) -> Sketch:
        """Return the marks of the goal in a picture."""
        placed, turned = self.measures & POSITION, self.measures & ROTATION
        return Sketch(
            target=view.target[:3, 3] if placed else None,
            rotation=view.at[:3, :3] if turned else None,
            target_rotation=view.target[:3, :3] if turned else None,
            on_joint=self.on_joint,
        )

    @classmethod
    def first_values(cls, skeleton: Skeleton, row: int, up: Array) -> dict[str, Any]:
        """Return the arguments of a new goal on the page.

        Args:
            skeleton: The skeleton.
            row: Row of the goal's joint. Other joints in the returned arguments are also given by row.
            up: Upward direction, (3,).
        """
        return {}

    @classmethod
    def first_target(cls, place: Place, values: dict[str, Any]) -> Array:
        """Return the first target (4, 4) of a new goal on the page; the current pose meets it.

        Args:
            place: The joint in the current pose.
            values: The goal's arguments, which this method may complete; other joints as rows of ``place``.
        """
        return place.at

    def __repr__(self) -> str:
        """Return the call that creates the goal, without defaults."""
        values = self._values()
        if self.target is not None:
            place = dict.fromkeys(("position", "point", "direction"), self.target[:3, 3])
            values = (place if self.given & POSITION else {}) | values
            if self.given & ROTATION:
                values |= {"rotation": self.target[:3, :3]} | dict.fromkeys(("up", "normal"), self.target[:3, 2])
        arguments = {field.name for field in self.fields}
        if "axis" in arguments and "offset_rotation" not in arguments:  # the axis is the z axis of the offset
            values.setdefault("axis", tuple((self.offset[:3, 2] + 0.0).tolist()))
            values["offset"] = rigid(self.offset[:3, 3])
        for name in {"offset", "other_offset"} & values.keys():
            place = values[name]
            if np.array_equal(place[:3, :3], np.eye(3)):
                values[name] = place[:3, 3] if place[:3, 3].any() else None
        return as_call(self, values)


def _restore(kind: type[_G], values: dict[str, Any]) -> _G:
    """Return a goal of this kind with given values, for copy and pickle."""
    goal = object.__new__(kind)
    goal._keep(**values)  # pyright: ignore[reportPrivateUsage]  # the class restores its own objects
    return goal


def as_lengths(value: Any, shape: tuple[int, ...], what: str) -> Array:
    """Return lengths as an array, and check that they are small enough to be squared.

    Raises:
        InputError: If the lengths cannot be used.
    """
    lengths = as_numbers(value, shape, what)
    if lengths.size and largest_number(lengths) > LONGEST:
        raise InputError(what, value=lengths.tolist(), expected=f"numbers of at most {LONGEST:g}")
    return lengths


def as_offset(value: Any, what: str = "offset") -> Array:
    """Return the 4x4 transform from a goal's frame to its joint's frame, from None, a point (3,) or a transform.

    Raises:
        InputError: If the value cannot be used.
    """
    if value is None:
        return rigid()
    if dimensions(value) == 2:
        frame = as_transform(value, what)
        as_lengths(frame[:3, 3], (3,), what)
        return frame
    return rigid(as_lengths(value, (3,), what))


def _is_count(value: Any) -> bool:
    """Return whether a value is an integer of at least 0."""
    return is_number(value) and not isinstance(value, float | np.floating) and value >= 0


def as_pose(
    position: Any = None, rotation: Any = None, transform: Any = None, quat_xyzw: Any = None, quat_wxyz: Any = None
) -> tuple[Any, Any]:
    """Return the position and the rotation given in one of several forms; None for a missing part.

    Raises:
        InputError: If a part is given twice, or a quaternion or transform cannot be used.
    """
    if sum(value is not None for value in (rotation, quat_xyzw, quat_wxyz)) > 1:
        raise InputError("rotation", expected="only one of rotation=, quat_xyzw= and quat_wxyz=")
    if quat_wxyz is not None:
        w, x, y, z = as_numbers(quat_wxyz, (4,), "quat_wxyz")
        rotation = quat_to_matrix(as_unit_quat((x, y, z, w), "quat_wxyz"))
    elif quat_xyzw is not None:
        rotation = quat_to_matrix(as_unit_quat(quat_xyzw, "quat_xyzw"))
    if transform is None:
        return position, rotation
    if position is not None or rotation is not None:
        raise InputError("transform", expected="either transform= or its position and rotation")
    frame = as_transform(transform)
    return frame[:3, 3], frame[:3, :3]


class GoalList(list[Goal]):
    """The goals of a file, with the joints that may move to meet them.

    Args:
        goals: The goals.
        moving: The joints that may move, as in ``IK``; None for all.
    """

    def __init__(self, goals: Iterable[Goal] = (), moving: Sequence[str | int] | None = None) -> None:
        """Store goals and joints."""
        super().__init__(goals)
        self.moving = moving
