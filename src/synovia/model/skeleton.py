"""The skeleton, an immutable tree of joints with units, names and limits; and poses, which are joint values."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synovia.errors import InputError, SynoviaError, UnknownNameError, unknown_name
from synovia.kernels import layout
from synovia.model.address import JOINT, LINK, AddressBook, Meaning, kind_and_name
from synovia.model.anatomy.axes import faced_axis
from synovia.model.anatomy.limbs import Shape
from synovia.model.anatomy.names import ALIASES, ROLES
from synovia.model.anatomy.people import of_one_rig, several_people
from synovia.model.anatomy.roles import Found, Roles, recognize
from synovia.model.degrees import FAR, warn_of_degrees, warn_of_limit_in_degrees
from synovia.model.geometry import (
    AXES,
    Array,
    as_numbers,
    axis_vector,
    dimensions,
    exp_matrix,
    frames_to_transforms,
    is_number,
    rigid,
)
from synovia.model.joint import DOF_NAMES, Joint, Kind
from synovia.model.limit_frames import with_limit_frames
from synovia.model.limits import Interval, Limit, SwingTwist
from synovia.model.pose import checked_q, inside_limits, random_values, world_frames
from synovia.model.root import Root, as_root, free_root, root_joints
from synovia.model.tables import Tables, pack, validator_of, writable
from synovia.model.tree import ancestors, topological
from synovia.notebook import Pictured
from synovia.text import UNITS, counted

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

    from synovia.model.loops.loop import Tie
    from synovia.model.loops.mechanism import Mechanism
    from synovia.model.shapes.solids import Solid

MAX_JOINTS: Final = 20_000  # largest number of joints: far more than any body has; stops files that exhaust memory
LONGEST_COUPLING: Final = 100  # largest number of mimic joints in a chain of leaders
Numbers = NDArray[Any] | Sequence[float]
_Value = float | Numbers
# values by joint; all other joints are at rest
JointValues = Mapping[str, _Value] | Mapping[int, _Value] | Mapping[str | int, _Value]
_DOUBLE = np.dtype(np.float64)
_PACKED = (8,)  # bytes: strides of a contiguous float64 array
_new, _empty, _ndarray = object.__new__, np.empty, np.ndarray  # local names save an attribute lookup in each call
_V = TypeVar("_V")


class Skeleton(Pictured):
    """An immutable tree of joints.

    Args:
        joints: The joints in any order; they are sorted so that parents come before children.
        name: Name in messages and pictures, usually the file's name.
        meters_per_unit: Length of the file's unit in metres; None if unknown.
        up: Axis that points up, for example ``"y"``; None if unknown.
        forward: Axis that the body faces, for example ``"-z"``; None if unknown. The attribute ``forward`` has another
            axis if hips or shoulders show it.
        notes: Parts of the file that were not read, one sentence each.
        source: File from which the skeleton was read; pictures and the live page read the surface of the body from it.
        excluded_pairs: Pairs of joints or links whose shapes may touch or overlap, by name (MJCF ``<exclude>`` and
            contact masks, SRDF ``<disable_collisions>``).
        loops: Constraints between frames or joint values of the body: ``Loop`` and ``Coupling``.

    Raises:
        InputError: If there is no joint, parents or mimic joints are missing or form a cycle, or an excluded pair does
            not name two joints. At the first use of a pose, if a loop cannot be closed near the rest pose.
        UnknownNameError: If an excluded pair or a loop names no joint or link.

    Example:
        >>> arm = Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])
        >>> arm.joint_names
        ('joint0', 'joint1', 'joint2')
    """

    name: str
    meters_per_unit: float | None
    up: str | None
    _forward: str | None
    notes: tuple[str, ...]
    source: Path | None
    excluded_pairs: tuple[tuple[str, str], ...]
    loops: tuple[Tie, ...]
    joints: tuple[Joint, ...]
    parents: tuple[int, ...]
    joint_names: tuple[str, ...]
    nq: int
    nv: int
    tables: Tables

    def __init__(
        self,
        joints: Iterable[Joint],
        *,
        name: str = "skeleton",
        meters_per_unit: float | None = None,
        up: str | None = None,
        forward: str | None = None,
        notes: Iterable[str] = (),
        source: Path | None = None,
        excluded_pairs: Iterable[tuple[str, str]] = (),
        loops: Iterable[Tie] = (),
    ) -> None:
        """Sort, check and pack the joints."""
        given = list(joints)
        if not given:
            raise InputError("joints", where=name, expected="at least one joint")
        if len(given) > MAX_JOINTS:
            raise InputError("number of joints", where=name, value=len(given), expected=f"at most {MAX_JOINTS}")
        for i, joint in enumerate(given):
            if not isinstance(joint, Joint):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"joints[{i}]", where=name, value=type(joint), expected="a Joint")
        if meters_per_unit is not None and not (is_number(meters_per_unit) and 0.0 < meters_per_unit < math.inf):
            raise InputError("meters_per_unit", where=name, value=meters_per_unit, expected="a number above 0")
        for what, axis in (("up", up), ("forward", forward)):
            if axis is not None and axis not in AXES:
                raise InputError(what, where=name, value=axis, expected=f"one of {', '.join(AXES)}, or None")
        ordered, parents = topological(given, name)
        joints = with_limit_frames(ordered, parents, up, forward)
        # written directly, because attributes cannot be set; cached values are stored in the same way
        self.__dict__.update(
            name=name,
            meters_per_unit=meters_per_unit,
            up=up,
            _forward=forward,
            notes=tuple(notes),
            source=source,
            parents=parents,
            joints=joints,
            joint_names=tuple(joint.name for joint in joints),
            nq=sum(joint.kind.q_size for joint in joints),
            nv=sum(joint.kind.v_size for joint in joints),
        )
        self.__dict__["tables"] = pack(joints, parents, self._leaders())
        # loops are checked below, because their names may be roles, which need the rest pose
        self.__dict__["loops"] = ()
        pairs = tuple(excluded_pairs)
        self.__dict__["excluded_pairs"] = self._checked_pairs(pairs) if pairs else ()
        ties = tuple(loops)
        if ties:
            self.__dict__["loops"] = self._checked_loops(ties)
            for known in ("mechanism", "rest_q"):  # cached before the loops were known
                self.__dict__.pop(known, None)

    def __setattr__(self, name: str, value: object) -> None:
        """Raise an error, because problems and poses have packed copies of the skeleton's values."""
        raise _immutable(name)

    def __delattr__(self, name: str) -> None:
        """Raise an error, because attributes cannot be deleted."""
        raise _immutable(name)

    @classmethod
    def chain(
        cls,
        points: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        limits: Sequence[SwingTwist | None] | None = None,
        name: str = "chain",
        meters_per_unit: float | None = None,
    ) -> Skeleton:
        """Return a chain of ball joints through points; the last point is its tip.

        Args:
            points: Joint positions at rest, (n, 3), n >= 2.
            names: Names of the n joints; None for ``joint0``, ``joint1`` and so on.
            limits: One swing-twist limit (or None) for each of the n - 1 balls.
            name: Name of the skeleton.
            meters_per_unit: Length of the points' unit in metres.
        """
        p = as_numbers(points, (-1, 3), "points")
        n = len(p)
        if n < 2:
            raise InputError("number of points", value=n, expected="at least 2")
        called = list(names) if names is not None else [f"joint{i}" for i in range(n)]
        bounds = list(limits) if limits is not None else [None] * (n - 1)
        if len(called) != n or len(bounds) != n - 1:
            raise InputError(
                "numbers of names and limits",
                value=(len(called), len(bounds)),
                expected=f"{n} names and {n - 1} limits",
            )
        offsets = np.diff(p, axis=0, prepend=np.zeros((1, 3)))
        joints = [
            Joint(
                name=called[i],
                parent=i - 1 if i else None,
                kind=Kind.BALL if i < n - 1 else Kind.FIXED,
                rest=rigid(offsets[i]),
                limit=bounds[i] if i < n - 1 else None,
                tip=i == n - 1,
            )
            for i in range(n)
        ]
        return cls(joints, name=name, meters_per_unit=meters_per_unit)

    def with_joints(self, joints: Iterable[Joint], notes: Iterable[str] = ()) -> Skeleton:
        """Return a skeleton of other joints with the name, unit, axes, notes and source of this skeleton.

        Excluded pairs and loops are kept if the other joints have their names; a note lists removed loops.

        Args:
            joints: The joints.
            notes: Further notes.
        """
        return self._with(joints, self.loops, notes)

    def with_loops(self, loops: Iterable[Tie]) -> Skeleton:
        """Return the skeleton with other loops in place of its own; ``[]`` removes all loops.

        Args:
            loops: ``Loop`` and ``Coupling``.

        Raises:
            InputError: If the parts that a loop ties cannot move relative to each other, or the loop cannot be closed
                near the rest pose.
            UnknownNameError: If a loop names no joint, link or site.

        Example:
            >>> from synovia.model.loops.loop import Coupling
            >>> hinge = dict(kind=Kind.HINGE, axis=(0, 0, 1), limit=Interval(-1.0, 1.0))
            >>> hand = Skeleton([Joint("a", **hinge), Joint("b", "a", **hinge)])
            >>> hand = hand.with_loops([Coupling({"a": 1, "b": (-1, 0.5)})])
            >>> a, b = hand.random_pose(1).q
            >>> bool(abs(a - b + 0.5 * b**2) < 1e-9)
            True
        """
        out = self._with(self.joints, tuple(loops))
        _ = out.rest_q  # computed here to close the loops, or to raise an error
        return out

    def with_unit(self, unit: str | float) -> Skeleton:
        """Return the skeleton with another length unit; its numeric values do not change.

        Args:
            unit: ``"m"``, ``"cm"``, ``"mm"``, ``"in"``, ``"ft"``, or the length of the unit in metres.

        Raises:
            InputError: If the unit is none of these.

        Example:
            >>> leg = Skeleton.chain([(0, 90, 0), (0, 50, 0), (0, 8, 0)])
            >>> leg.meters_per_unit, leg.with_unit("cm").meters_per_unit
            (None, 0.01)
        """
        meters = UNITS.get(unit, unit) if isinstance(unit, str) else unit
        if not is_number(meters) or not 0.0 < float(meters) < math.inf:
            expected = f"one of {', '.join(UNITS)}, or a length in metres above 0"
            raise InputError("unit", where=self.name, value=unit, expected=expected)
        return self._with(self.joints, self.loops, unit=float(meters))

    def _with(
        self, joints: Iterable[Joint], loops: tuple[Tie, ...], more: Iterable[str] = (), unit: float | None = None
    ) -> Skeleton:
        """Return a skeleton with other joints, loops and unit, and with further notes; see ``with_joints``."""
        joints, pairs, notes = tuple(joints), self.excluded_pairs, (*self.notes, *more)
        if pairs or loops:
            known = {name for joint in joints for name in (joint.name, joint.body)}
            known |= {site.name for joint in joints for site in joint.sites}
            pairs = tuple(pair for pair in pairs if all(kind_and_name(name)[1] in known for name in pair))
            if joints is not self.joints:
                gone = [tie for tie in loops if not all(kind_and_name(name)[1] in known for name in tie.names)]
                loops = tuple(tie for tie in loops if tie not in gone)
                notes += tuple(f"Loop {tie.label!r} was left out with the joints that it ties." for tie in gone)
        return Skeleton(
            joints,
            name=self.name,
            meters_per_unit=self.meters_per_unit if unit is None else unit,
            up=self.up,
            forward=self._forward,
            notes=notes,
            source=self.source,
            excluded_pairs=pairs,
            loops=loops,
        )

    def with_limits(self, limits: Mapping[str | int, Limit | tuple[float, float] | None]) -> Skeleton:
        """Return the skeleton with new limits of some joints.

        Args:
            limits: By joint: ``(lower, upper)`` or an ``Interval`` for a hinge (radians) or slide (length units), a
                ``SwingTwist`` for a ball or free joint, None for no limit. The limit of a mimic joint restricts its
                leader, as with ``Mimic(binds=True)``.

        Raises:
            InputError: If a joint cannot have such a limit, a joint is named twice, or the limits of a mimic joint and
                its leader do not overlap.
            UnknownNameError: If there is no such joint.

        Example:
            >>> finger = Skeleton([Joint("knuckle", kind=Kind.HINGE, axis=(1, 0, 0))])
            >>> finger.with_limits({"knuckle": (0.0, 1.5)}).limits
            (array([0.]), array([1.5]))
        """
        joints = list(self.joints)
        for row, given in self.by_row(limits, "limits").items():
            limit = given
            if limit is not None and not isinstance(limit, Limit):
                if is_number(limit):
                    where, only = f"limit of joint {joints[row].name!r}", float(cast("float", limit))
                    hint = f"to lock the joint there, write ({only:g}, {only:g})"
                    raise InputError(where, value=only, expected="(lower, upper)", hint=hint)
                lower, upper = as_numbers(limit, (2,), f"limit of joint {joints[row].name!r}", finite=False).tolist()
                limit = Interval(lower, upper)
            if isinstance(limit, Interval) and self.joints[row].kind is Kind.HINGE:
                warn_of_limit_in_degrees(joints[row].name, (limit.lower, limit.upper), self.value_range(row))
            mimic = joints[row].mimic
            if mimic is not None:
                mimic = replace(mimic, binds=True)
            joints[row] = replace(joints[row], limit=limit, mimic=mimic)
        return self.with_joints(joints)

    def with_offsets(self, offsets: ArrayLike) -> Skeleton:
        """Return the skeleton with joints at slightly other places, as a calibration finds them.

        Args:
            offsets: A translation (length units) and a rotation vector for each joint, (n, 6), both in the axes of the
                parent; they are applied to ``rest``.

        Raises:
            InputError: If the shape or a value cannot be used.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> arm = sy.bundled("arm7")
            >>> offsets = np.zeros((len(arm), 6))
            >>> offsets[-1, 2] = 0.01
            >>> print(f"{arm.with_offsets(offsets).joints[-1].rest[2, 3] - arm.joints[-1].rest[2, 3]:.3f}")
            0.010
        """
        given = as_numbers(offsets, (len(self), 6), "offsets")
        joints: list[Joint] = []
        for joint, step in zip(self.joints, given, strict=True):
            turn, place = exp_matrix(step[3:]) @ joint.rest[:3, :3], joint.rest[:3, 3] + step[:3]
            joints.append(replace(joint, rest=rigid(place, turn)) if step.any() else joint)
        return self.with_joints(joints)

    def with_roles(self, roles: Mapping[str, str | int]) -> Skeleton:
        """Return the skeleton with other roles of some joints; the remaining roles are found again.

        Args:
            roles: Joint by role, such as ``{"left_hand": "Wrist.L"}``. Roles have the names of VRM in snake case; see
                ``roles``.

        Raises:
            InputError: If two roles have the same joint.
            UnknownNameError: If there is no such role or joint.

        Example:
            >>> arm = Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)], names=["a", "b", "c"])
            >>> arm.with_roles({"left_upper_arm": "a", "left_elbow": "b"}).roles
            {'left_upper_arm': 'a', 'left_lower_arm': 'b'}
        """
        rows: dict[int, str] = {}
        for name, joint in roles.items():
            role = ALIASES.get(name, name)
            if role not in ROLES:
                raise unknown_name("role", name, [*ROLES, *ALIASES], self.name)
            row = self.value_index(joint)
            if row in rows or role in rows.values():
                what = f"joint {self.joint_names[row]!r} has two roles" if row in rows else f"role {role!r}"
                value = (rows[row], name) if row in rows else joint
                raise InputError(what, where=self.name, value=value, expected="each role and each joint once")
            rows[row] = role
        given = set(rows.values())
        return self.with_joints(
            replace(joint, role=rows[row])
            if row in rows
            else replace(joint, role=None)
            if joint.role in given
            else joint
            for row, joint in enumerate(self.joints)
        )

    def with_root(self, root: Root) -> Skeleton:
        """Return the skeleton with a moving root, as with ``root=`` of ``solve`` and ``IK``.

        Args:
            root: ``"free"`` adds a free joint before a skeleton that has none. Axes such as ``"xy"``, ``"x,y,yaw"`` or
                ``("x", "yaw")`` add a slide or a hinge for each: x, y and z along the world axes, roll, pitch and yaw
                about them, through the first joint at rest. ``"fixed"`` fixes a free root at rest.

        Raises:
            InputError: If the root has another value.

        Example:
            >>> arm = Skeleton.chain([(0, 0, 0), (0, 1, 0)])
            >>> arm.with_root("x,yaw").joint_names
            ('root_x', 'root_yaw', 'joint0', 'joint1')
        """
        root = as_root(root)
        joints, free = list(self.joints), free_root(self.joints, self.parents)
        if root in ("fixed", "free") and (root == "free") == (free is not None):
            return self
        if root == "fixed" and free is not None:
            joints[free] = replace(joints[free], kind=Kind.FIXED, limit=None, preferred=None, channels=None)
            return self.with_joints(joints)
        return self._with_free_root if root == "free" else self._with_root(root)

    @cached_property
    def _with_free_root(self) -> Skeleton:
        """The skeleton with a free root. Cached, because retargeting uses it once for each clip."""
        return self._with_root("free")

    def _with_root(self, root: str) -> Skeleton:
        """Return the skeleton with root joints before its own joints: a free joint, or one joint for each axis."""
        joints = list(self.joints)
        pivot = self.rest_pose().position(0)
        taken = {name for joint in joints for name in (joint.name, joint.body, joint.role)} | {*self.site_names}
        before = root_joints(root, pivot, taken)
        back = rigid() if root == "free" else rigid(-pivot)
        for row, parent in enumerate(self.parents):
            rest = joints[row].rest if parent >= 0 else back @ joints[row].rest
            joints[row] = replace(joints[row], parent=parent + len(before), rest=rest)
        return self.with_joints([*before, *joints])

    @cached_property
    def validate(self) -> Callable[[Array, Array], int]:
        """Compiled function that checks one or more q; see ``tables.validator_of``."""
        return validator_of(self.tables, self.nq)

    def __getstate__(self) -> dict[str, object]:
        """Return the state without cached values, because copies of cached arrays would be writable."""
        cached = {name for name, value in vars(type(self)).items() if isinstance(value, cached_property)}
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    def __len__(self) -> int:
        """Return the number of joints."""
        return len(self.joints)

    def __repr__(self) -> str:
        """Return name, joints and degrees of freedom."""
        return f"Skeleton({self.name!r}, {counted(len(self), 'joint')}, {counted(self.nv, 'degree')} of freedom)"

    def up_vector(self, instead: str) -> Array:
        """Return the unit vector (3,) that points up in the world.

        Args:
            instead: Alternative argument to name in the message, such as ``"axis="``.

        Raises:
            InputError: If the upward direction is unknown.
        """
        if self.up is None:
            expected = f"a skeleton whose up axis is known, or {instead}"
            raise InputError("up", where=self.name, expected=expected)
        return axis_vector(self.up)

    def index(self, joint: str | int) -> int:
        """Return the row of the joint whose own frame has this name; see ``locate``.

        Args:
            joint: Name of a joint or link, else a role, or a row. A site has no row, unless it is its joint's frame.

        Raises:
            InputError: If the name is that of a site with a frame of its own.
            UnknownNameError: If no frame has this name, or several have it.
        """
        row, place = self.locate(joint)
        if place is not None:
            own = f"use its joint, {self.address(row)!r}"
            raise InputError(f"{joint!r} is a site", where=self.name, expected="a joint or a link", hint=own)
        return row

    def locate(self, frame: str | int) -> tuple[int, Array | None]:
        """Return the joint that carries a frame, and the frame (4, 4) on this joint; None for the joint's own frame.

        A name means the frame of the joint, the link (URDF link, MJCF body) or the site of this name, else of the joint
        with this role. If a joint, a link or a site of one name have different frames, ``joint:NAME``, ``link:NAME`` or
        ``site:NAME`` selects one of them.

        Args:
            frame: Name, role or row.

        Raises:
            UnknownNameError: If no frame has this name, or several have it.
        """
        found = self._located.get(frame) if isinstance(frame, str) else None
        if found is None:
            found = self._locate(frame)
            if isinstance(frame, str):
                self._located[frame] = found
        return found

    def value_index(self, joint: str | int) -> int:
        """Return the row of the joint whose value has this name.

        Unlike in ``index``, the name always means a joint: the joint of this name, else the joint that carries the link
        of this name, else the joint with this role. Values, limits and velocities use this lookup.

        Args:
            joint: Name, body, role or row of the joint; also ``joint:NAME``, ``link:NAME`` and names of ``joint_keys``.

        Raises:
            InputError: If the name is that of a site.
            UnknownNameError: If no joint has this name, or several have it.
        """
        row = self._valued.get(joint) if isinstance(joint, str) else self._checked_row(joint)
        if row is None:
            row = self._valued[str(joint)] = self._value_index(str(joint))
        return row

    def by_row(self, values: Mapping[Any, _V] | Iterable[tuple[str | int, _V]], what: str) -> dict[int, _V]:
        """Convert values by joint to values by row.

        Args:
            values: By name, body, role or row of the joint (see ``value_index``), or pairs of a joint and its value.
            what: Noun for the values in the message, such as ``"limits"``.

        Raises:
            InputError: If two names mean the same joint, or a name is that of a site.
            UnknownNameError: If there is no such joint.
        """
        pairs = list(cast("Mapping[str | int, _V]", values).items() if isinstance(values, Mapping) else values)
        rows = [self.value_index(joint) for joint, _ in pairs]
        out = {row: value for row, (_, value) in zip(rows, pairs, strict=True)}
        if len(out) < len(rows):
            row = next(row for row in rows if rows.count(row) > 1)
            same = [joint for at, (joint, _) in zip(rows, pairs, strict=True) if at == row]
            what = f"{what} of joint {self.joint_keys[row]!r}"
            raise InputError(what, where=self.name, value=same, expected="each joint once")
        return out

    def knows(self, name: object, *, roles: bool = True) -> bool:
        """Return whether at least one frame has this name; without ``roles``, roles do not count as names."""
        return isinstance(name, str) and bool(self._book.frames(name) or (roles and self._rows_of_role(name)))

    def knows_value(self, name: str) -> bool:
        """Return whether at least one joint has this name; see ``value_index``."""
        return bool(self._book.joints(name)) or name in self._row_of_key or bool(self._rows_of_role(name))

    def address(self, row: int) -> str | int:
        """Return the shortest name of a joint's frame for goals, targets and files; the row if no name is unique.

        Example:
            >>> Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)]).address(1)
            'joint1'
        """
        name = self.joint_names[row]
        for meant in (name, f"{JOINT}:{name}"):
            found = self._book.frames(meant)
            if len(found) == 1 and found[0].is_at(row, rigid()):
                return meant
        return row

    @cached_property
    def frame_names(self) -> tuple[str, ...]:
        """Name of each joint's frame for goals and files: its own name, or ``joint:NAME`` if a link or site shares it.

        If several joints share a name, the list has the bare name, which is ambiguous: use their rows.
        """
        return tuple(
            str(at) if isinstance(at := self.address(row), str) else name for row, name in enumerate(self.joint_names)
        )

    @property
    def site_names(self) -> tuple[str, ...]:
        """Names of the sites: frames on joints that goals can name (see ``Joint.sites``)."""
        return self._book.site_names

    @cached_property
    def _book(self) -> AddressBook:
        """The meanings of all names in the skeleton."""
        return AddressBook(self.joints, self.parents)

    @cached_property
    def _located(self) -> dict[str, tuple[int, Array | None]]:
        """Cache of frames that were looked up by name."""
        return {}

    @cached_property
    def _valued(self) -> dict[str, int]:
        """Cache of joints whose value was looked up by name."""
        return {}

    def _value_index(self, joint: str) -> int:
        """Return the row of the joint whose value has this name; see ``value_index``."""
        found = self._book.joints(joint)
        if not found and (rows := self._rows_of_role(joint)):
            found = [Meaning(JOINT, joint, row) for row in rows]
        if not found and joint in self._row_of_key:
            return self._row_of_key[joint]
        if not found:
            if sites := self._book.sites(joint):
                own = f"use its joint, {self.joint_names[sites[0].row]!r}"
                raise InputError(f"{joint!r} is a site", where=self.name, expected="a joint", hint=own)
            raise self._unknown(joint)
        if len(found) > 1:
            raise self._ambiguous(joint, found)
        return found[0].row

    def _locate(self, frame: str | int) -> tuple[int, Array | None]:
        """Return the joint and the frame of a name; see ``locate``."""
        if not isinstance(frame, str):
            return self._checked_row(frame), None
        found = self._book.frames(frame)
        if not found and (rows := self._rows_of_role(frame)):
            found = [Meaning(JOINT, frame, row) for row in rows]
        if not found:
            raise self._unknown(frame)
        if len(found) > 1:
            raise self._ambiguous(frame, found)
        return found[0].row, found[0].place

    def _checked_row(self, given: object) -> int:
        """Return a row as an integer, after a check that it exists."""
        if not isinstance(given, (int, np.integer)) or isinstance(given, bool):
            raise self._unknown(given)
        row = int(cast("int", given))
        if 0 <= row < len(self):
            return row
        raise UnknownNameError("joint", where=self.name, value=row, expected=f"a row from 0 to {len(self) - 1}")

    def _rows_of_role(self, role: str) -> Sequence[int]:
        """Return the rows of the joints with a role or alias. Names in the file have precedence over roles."""
        return self._parts.get(role) or self._parts.get(ALIASES.get(role, role)) or ()

    def _unknown(self, name: object) -> UnknownNameError:
        """Return the error for an unknown name."""
        return unknown_name("joint", name, dict.fromkeys([*self._book.names, *self._parts]), self.name)

    def _ambiguous(self, name: str, found: Sequence[Meaning]) -> UnknownNameError:
        """Return the error for a name that means several frames, or several joints."""
        counts = Counter(meaning.address for meaning in found)
        if max(counts.values()) > 1:
            listed = ", ".join(f"{self.path(meaning.row)} (joint {meaning.row})" for meaning in found[:4])
            what, hint = "joints", "use the row of one of them"
        else:
            meanings = {meaning.address: f" (of joint {self.joint_names[meaning.row]!r})" for meaning in found}
            listed = ", ".join(at + ("" if at == f"{JOINT}:{name}" else of) for at, of in meanings.items())
            what, hint = (
                "frames",
                f"say which, for example {(found[-1] if found[-1].kind == LINK else found[0]).address!r}",
            )
        return UnknownNameError(f"{name!r} means several {what} of {self.name}: {listed}", hint=hint)

    def joint(self, joint: str | int) -> Joint:
        """Return a joint by name, body, role or row; see ``value_index``."""
        return self.joints[self.value_index(joint)]

    def path(self, joint: str | int) -> str:
        """Return the names from the root to a joint, joined by slashes."""
        return "/".join(self.joint_names[row] for row in reversed(ancestors(self.parents, self.value_index(joint))))

    @cached_property
    def roles(self) -> Roles:
        """Names of the joints by role in the body: from the file, else by joint names, else by the shape of the body.

        Roles are those of VRM in snake case, such as ``"hips"``, ``"left_hand"`` or ``"right_lower_leg"``, and
        ``"left_index_1"`` for fingers. Each can be used as the name of its joint, and so can ``"left_elbow"``,
        ``"left_wrist"``, ``"left_hip"``, ``"left_knee"``, ``"left_ankle"`` and ``"pelvis"``. Empty if no part is
        recognized. If the file has several bodies, the roles are those of the first. ``with_roles`` sets other roles.
        """
        return Roles(self.joint_names, self.role_rows)

    @cached_property
    def role_rows(self) -> Mapping[str, int]:
        """Row of the joint of each role, as in ``roles``."""
        return MappingProxyType(of_one_rig(self, self._parts))

    @cached_property
    def _parts(self) -> Found:
        """The rows of the joints of each role; several rows if the file has several bodies."""
        return recognize(self, self._shape)

    def _shape(self) -> Shape:
        """Return the shape of the body at rest."""
        return Shape(self, np.array(self.rest_pose().frames), self._forward, self.up)

    @cached_property
    def people(self) -> tuple[int, ...]:
        """First row of each person in a scene; at most one row without several people."""
        return tuple(several_people(self, self._parts, np.array(self.rest_pose().positions)))

    @cached_property
    def forward(self) -> str | None:
        """Axis that the body faces, for example ``"-z"``; None if unknown.

        Hips or shoulders at rest determine it if the body stands along ``up``; else it is the axis of the file.
        """
        if self.up is None or not self.roles:
            return self._forward
        return faced_axis(self._places, axis_vector(self.up)) or self._forward

    @property
    def _places(self) -> dict[str, Array]:
        """Rest position (3,) of the joint of each role."""
        places = np.array(self.rest_pose().positions)
        return {role: places[row] for role, row in self.role_rows.items()}

    @cached_property
    def face(self) -> Array | None:
        """Facing direction of the head at rest, (3,), in the frame of the head.

        The direction is ``forward``, else that shown by hips or shoulders. None without a head, or if unknown.
        """
        head = self.role_rows.get("head")
        ahead = None if head is None else self.forward or faced_axis(self._places, None)
        if head is None or ahead is None:
            return None
        face = np.round(self.rest_pose().matrix(head).T @ axis_vector(ahead), 12)
        face.setflags(write=False)
        return face

    @cached_property
    def dof_names(self) -> tuple[str, ...]:
        """Names of the degrees of freedom, (nv,), in the order of the columns of ``Pose.jacobian``.

        A hinge or slide has its joint's name. A ball has ``NAME.rx``, ``.ry`` and ``.rz``; a free joint has ``NAME.x``,
        ``.y`` and ``.z`` before these. If several joints share a name, the row is added: ``"hand (joint 7).rx"``.
        """
        keyed = zip(self.joint_keys, self.joints, strict=True)
        return tuple(key + ending for key, joint in keyed for ending in DOF_NAMES[joint.kind])

    @cached_property
    def dof_columns(self) -> tuple[tuple[int, float], ...]:
        """Index of each joint's first velocity and factor 1; for a mimic joint, index of its leader and its ratio."""
        firsts = np.cumsum([0, *(joint.kind.v_size for joint in self.joints)]).tolist()
        columns = [(first, 1.0) for first in firsts[: len(self)]]
        for row, (leader, ratio, _) in self._leaders().items():
            columns[row] = (firsts[leader], ratio)
        return tuple(columns)

    @cached_property
    def joint_keys(self) -> tuple[str, ...]:
        """Name of each joint in files: its own name, with the row if several joints share it."""
        counts = Counter(self.joint_names)
        named = enumerate(self.joint_names)
        return tuple(name if counts[name] == 1 else f"{name} (joint {row})" for row, name in named)

    @cached_property
    def _row_of_key(self) -> dict[str, int]:
        """Row of each joint by its name in files."""
        return {key: row for row, key in enumerate(self.joint_keys)}

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Rows of each joint's children."""
        below: list[list[int]] = [[] for _ in self.joints]
        for row, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent].append(row)
        return tuple(tuple(rows) for rows in below)

    @cached_property
    def tips(self) -> tuple[str, ...]:
        """Names of the joints without children."""
        return tuple(self.joint_names[row] for row in self.tip_rows)

    @cached_property
    def tip_rows(self) -> tuple[int, ...]:
        """Rows of the joints without children."""
        return tuple(row for row, below in enumerate(self.children) if not below)

    @cached_property
    def lengths(self) -> Array:
        """Distance of each joint from its parent at rest, (n,), length units; 0 for roots."""
        moved = np.array([math.hypot(*joint.rest[:3, 3].tolist()) for joint in self.joints])
        moved[np.array(self.parents) < 0] = 0.0
        moved.setflags(write=False)
        return moved

    @cached_property
    def size(self) -> float:
        """Longest sum of bone lengths from a root to a tip, length units."""
        total = np.zeros(len(self))
        for row, parent in enumerate(self.parents):
            total[row] = self.lengths[row] + (total[parent] if parent >= 0 else 0.0)
        return float(total.max())

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """(lower, upper), (nq,) each, radians or length units; every solution is inside.

        They are infinite for joints without limits, for balls, and for mimic joints, which follow their leader. The
        limits in the file are available as ``joint.limit``.
        """
        lower, upper = np.full(self.nq, -np.inf), np.full(self.nq, np.inf)
        t = self.tables
        scalars = t.variables[:, layout.BLOCK] == layout.SCALAR
        at = t.variables[scalars, layout.BLOCK_Q]
        lower[at], upper[at] = t.limits[scalars, layout.LOWER], t.limits[scalars, layout.UPPER]
        lower.setflags(write=False)
        upper.setflags(write=False)
        return lower, upper

    def moves_in(self, seconds: float) -> dict[str | int, float]:
        """Return the largest move of each joint in a time at its highest velocity (``Joint.velocity``).

        ``FullBody(attempts=1, largest_move=skeleton.moves_in(1 / 100))`` keeps the velocity limits of the file in a
        loop of 100 cycles per second.

        Args:
            seconds: The time.

        Returns:
            By joint, or by row where several joints share a name: radians or length units. Joints without a velocity
            are omitted.

        Raises:
            InputError: If the time is not above 0.
        """
        time = float(as_numbers(seconds, (), "seconds"))
        if time <= 0.0:
            raise InputError("seconds", where=self.name, value=seconds, expected="a time above 0")
        counts = Counter(self.joint_names)
        return {
            joint.name if counts[joint.name] == 1 else row: joint.velocity * time
            for row, joint in enumerate(self.joints)
            if joint.velocity is not None
        }

    def q_slice(self, joint: str | int) -> slice:
        """Return the slice of q with the values of a joint."""
        row = self.value_index(joint)
        start = int(self.tables.ints[row, layout.FIRST_Q])
        return slice(start, start + self.joints[row].kind.q_size)

    def value_range(self, joint: str | int) -> tuple[float, float]:
        """Return the lowest and highest value of a hinge or slide, radians or length units.

        For a mimic joint, these follow from the limits of its leader.

        Raises:
            InputError: If the joint is of another kind.
        """
        row = self.value_index(joint)
        if self.joints[row].kind not in (Kind.HINGE, Kind.SLIDE):
            what = f"joint {self.joint_names[row]!r} has no single value"
            raise InputError(what, where=self.name, value=self.joints[row].kind.name, expected="a HINGE or SLIDE")
        t, at = self.tables, int(self.tables.ints[row, layout.FIRST_Q])
        ratio, offset = 1.0, 0.0
        for k in np.flatnonzero(t.followers[:, layout.FOLLOWER] == at).tolist():
            at, (ratio, offset) = int(t.followers[k, layout.LEADER]), t.coupling[k].tolist()
        if ratio == 0.0:
            return offset, offset
        ends = sorted(ratio * float(end[at]) + offset for end in self.limits)
        return ends[0], ends[1]

    def follow(self, q: Array) -> Array:
        """Set the values of mimic joints in place; q is (..., nq)."""
        t = self.tables
        if len(t.followers):
            q[..., t.followers[:, layout.FOLLOWER]] = (
                q[..., t.followers[:, layout.LEADER]] * t.coupling[:, layout.RATIO] + t.coupling[:, layout.OFFSET]
            )
        return q

    @property
    def mechanism(self) -> Mechanism | None:
        """Mechanism that closes the loops; None without loops."""
        return self._mechanism if self.loops else None

    @cached_property
    def _mechanism(self) -> Mechanism:
        """Mechanism of the loops; cached."""
        from synovia.model.loops.mechanism import Mechanism

        return Mechanism(self)

    @cached_property
    def leader_rows(self) -> Mapping[int, int]:
        """Row of each mimic joint's leader, by row of the mimic joint."""
        return {row: leader for row, (leader, _, _) in self._leaders().items()}

    @cached_property
    def rest_q(self) -> Array:
        """Joint values of the rest pose, read-only: zero motion, clamped to the limits, with closed loops.

        Raises:
            InputError: If a loop cannot be closed near zero motion.
        """
        if self.mechanism is None:
            return self.zero_q
        q = self.mechanism.shut(self.zero_q[None])[0]
        q.setflags(write=False)
        return q

    @cached_property
    def zero_q(self) -> Array:
        """Joint values of zero motion, clamped to the limits, read-only; loops may be open there."""
        q = np.zeros(self.nq)
        t = self.tables
        turns = t.variables[t.variables[:, layout.BLOCK] == layout.TURN, layout.BLOCK_Q]
        q[turns + 3] = 1.0
        scalars = t.variables[:, layout.BLOCK] == layout.SCALAR
        at = t.variables[scalars, layout.BLOCK_Q]
        q[at] = np.clip(q[at], t.limits[scalars, layout.LOWER], t.limits[scalars, layout.UPPER])
        if np.any((t.limits[~scalars, layout.TWIST_LOWER] > 0.0) | (t.limits[~scalars, layout.TWIST_UPPER] < 0.0)):
            from synovia.kernels.tree.tables import clamp_rows

            clamp_rows(*writable(t.variables, t.limits), q.reshape(1, -1))
        q = self.follow(q)
        q.setflags(write=False)
        return q

    def rest_pose(self) -> Pose:
        """Return the pose with every joint at rest, clamped to the limits, and closed if it has loops."""
        return Pose(self, self.rest_q)

    def random_pose(self, seed: int) -> Pose:
        """Return a random pose, uniform within the limits, the same for the same seed.

        A hinge without limits is uniform in (-pi, pi), a ball without limits uniform on all rotations; free joints and
        slides without limits stay at rest. With loops, the pose is reached on a closed path from the rest pose, so it
        stays in the rest pose's assembly branch unless the path meets a singular pose. The independent joints are
        uniform. If such loops hardly ever close, the path leads towards a random pose of all joints instead.

        Args:
            seed: From 0 to 2^32 - 1.
        """
        try:
            number = operator.index(seed)
        except TypeError:
            number = -1
        if not 0 <= number < 2**32:
            raise InputError("seed", value=seed, expected="a whole number from 0 to 2^32 - 1")
        return Pose(self, random_values(self, 1, number)[0])

    @cached_property
    def shapes(self) -> Mapping[str | int, tuple[Solid, ...]]:
        """Shapes of the body by the name of the link, or of the joint without one; see ``Joint.shapes``.

        Each shape is in the frame of its link: ``shape.moved(pose.transform(link))`` is in the world. A joint whose
        name and link are shared is named by its row. A ``ClearanceGoal`` keeps the shapes apart.

        Example:
            >>> ball = __import__("synovia").Sphere(radius=0.1)
            >>> Skeleton([Joint("hand", shapes=(ball,))]).shapes["hand"] == (ball,)
            True
        """
        owners = [row for row, joint in enumerate(self.joints) if joint.shapes]
        return MappingProxyType({self.link_key(row): self.joints[row].shapes for row in owners})

    def link_key(self, row: int) -> str | int:
        """Return the name of a joint's link if it denotes the joint's frame; else the result of ``address``."""
        body = self.joints[row].body
        for name in (body, f"{LINK}:{body}") if body else ():
            found = self._book.frames(name)
            if len(found) == 1 and found[0].is_at(row, rigid()):
                return name
        return self.address(row)

    def _checked_pairs(self, pairs: Sequence[object]) -> tuple[tuple[str, str], ...]:
        """Return excluded pairs with the smaller row first and without duplicates."""
        rows: set[tuple[int, int]] = set()
        names: dict[int, str] = {}
        for i, pair in enumerate(pairs):
            both = tuple(cast("Sequence[object]", pair)) if isinstance(pair, (tuple, list)) else (pair,)
            if len(both) != 2 or not all(isinstance(name, str) for name in both):
                expected = "the names of two joints or links"
                raise InputError(f"excluded_pairs[{i}]", where=self.name, value=both, expected=expected)
            first, second = (self.index(cast("str", name)) for name in both)
            if first == second:
                expected = "two different joints or links"
                raise InputError(f"excluded_pairs[{i}]", where=self.name, value=both, expected=expected)
            names.setdefault(first, cast("str", both[0]))
            names.setdefault(second, cast("str", both[1]))
            rows.add((min(first, second), max(first, second)))
        return tuple((names[a], names[b]) for a, b in sorted(rows))

    def _checked_loops(self, ties: Sequence[object]) -> tuple[Tie, ...]:
        """Return loops, after a check that their frames and joints exist and can move relative to each other."""
        from synovia.model.loops.loop import Coupling, Loop
        from synovia.model.loops.tables import moved_by

        found: list[Tie] = []
        for i, tie in enumerate(ties):
            if not isinstance(tie, Loop | Coupling):
                raise InputError(f"loops[{i}]", where=self.name, value=type(tie), expected="a Loop or a Coupling")
            if not moved_by(self, tie):
                what = f"loop {tie.label!r}"
                raise InputError(
                    what, where=self.name, value=tie.names, expected="frames that joints move relative to each other"
                )
            found.append(tie)
        return tuple(found)

    def _leaders(self) -> dict[int, tuple[int, float, float]]:
        """Return the first leader of each mimic joint as a dict: row → (row of the leader, ratio, offset)."""
        out: dict[int, tuple[int, float, float]] = {}
        for row, joint in enumerate(self.joints):
            ratio, offset, at, seen = 1.0, 0.0, row, {row}
            while (mimic := self.joints[at].mimic) is not None:
                offset += ratio * mimic.offset
                ratio *= mimic.ratio
                if not self._book.joints(mimic.leader):  # a leader cannot be a role, because roles are found later
                    raise unknown_name("joint", mimic.leader, self.joint_names, self.name)
                at = self.value_index(mimic.leader)
                if at in seen:
                    raise InputError(f"joint {joint.name!r} follows itself", where=self.name)
                seen.add(at)
                if len(seen) > LONGEST_COUPLING + 1:
                    what = f"joint {joint.name!r} follows a chain of more than {LONGEST_COUPLING} joints"
                    raise InputError(what, where=self.name)
            if at != row:
                if self.joints[at].kind not in (Kind.HINGE, Kind.SLIDE):
                    what = f"joint {joint.name!r} follows {self.joints[at].name!r}, a {self.joints[at].kind.name} joint"
                    raise InputError(what, where=self.name, expected="a HINGE or SLIDE")
                out[row] = (at, ratio, offset)
        return out


def _immutable(name: str) -> AttributeError:
    """Return the error for setting or deleting an attribute."""
    changed = "with_joints, with_limits, with_loops, with_roles and with_root return a changed one"
    return AttributeError(f"skeletons are immutable; {changed} (tried {name!r})")


class Pose(Pictured):
    """Joint values of a skeleton. Immutable; world transforms are computed at their first use.

    Args:
        skeleton: The skeleton.
        q: Joint values, (nq,): radians and length units; balls as unit quaternions xyzw; free joints as position and
            quaternion relative to their rest place, unlike MuJoCo's ``qpos`` (``from_qpos`` converts). Or values by
            joint, as in ``with_values``; the other joints are at rest. Limits are not checked; a ``UserWarning`` names
            a hinge whose value seems to be in degrees, because it is far outside its limits.

    Raises:
        InputError: If q has the wrong shape, is not finite, has a quaternion that is not of length 1, or contradicts a
            mimic joint.

    Example:
        >>> arm = Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])  # doctest: +SKIP
        >>> arm.rest_pose().position("joint2")  # doctest: +SKIP
        array([0., 2., 0.])
    """

    __slots__ = ("_frames", "_inside", "_q", "ready", "skeleton")

    def __init__(self, skeleton: Skeleton, q: Numbers | JointValues) -> None:
        """Check and copy the values."""
        self.skeleton = skeleton
        if isinstance(q, Mapping):
            self._q = skeleton.rest_pose().with_values(q).values
        else:
            if dimensions(q) != 1:
                as_numbers(q, (skeleton.nq,), "q")
            self._q = checked_q(skeleton, q)
        self._frames: Array | None = None
        self._inside: Array | None = None
        self.ready: Array | None = None  # cache of ``inside``; reading a slot takes a third of the time of a property

    @classmethod
    def trusted(cls, skeleton: Skeleton, q: Array, inside: bool = False, frames: Array | None = None) -> Pose:
        """Return a pose without checks; q must be contiguous float64, not shared; ``inside``: within the limits."""
        pose = _new(cls)
        pose.skeleton = skeleton
        pose._q = q
        pose._frames = frames
        pose._inside = q if inside else None
        pose.ready = None
        return pose

    @classmethod
    def quick(cls, skeleton: Skeleton, q: Any) -> Pose | None:
        """Return a pose of float64 values (nq,) after one compiled check; None if the values need a full check.

        This function is for loops over joint values. It loads the kernels, which other poses do not need.
        """
        kind: type[object] = type(q)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
        if skeleton.loops or kind is not _ndarray or q.dtype != _DOUBLE or q.ndim != 1 or len(q) != skeleton.nq:
            return None
        if q.strides != _PACKED:
            q = q.copy()
        inside = _empty(skeleton.nq)
        code = skeleton.validate(q, inside)
        if code < 0:
            return None
        if not code and np.abs(q).max(initial=0.0) > FAR:  # values so large are far outside the limits
            warn_of_degrees(skeleton, q)
        pose = _new(cls)
        pose.skeleton = skeleton
        pose._q = inside if code else q.copy()
        pose._frames = None
        pose._inside = inside
        pose.ready = None
        return pose

    @property
    def q(self) -> Array:
        """Joint values, (nq,), read-only. Those of a free joint are relative to its rest place; see ``to_qpos``."""
        view = self._q.view()
        view.setflags(False)  # pyright: ignore[reportCallIssue]  # a keyword argument is slower
        return view

    @property
    def values(self) -> Array:
        """Joint values, (nq,), as the writable array that kernels need; do not change it."""
        return self._q

    @property
    def inside(self) -> Array:
        """Joint values clamped to the limits, (1, nq), for kernels; do not change the array."""
        ready = self.ready
        if ready is None:
            known = self._inside
            self.ready = ready = inside_limits(self.skeleton, self._q.reshape(1, -1)) if known is None else known[None]
        return ready

    @property
    def frames(self) -> Array:
        """World frames of all joints, (n, 12): rotation row-major (9), position (3); read-only."""
        if self._frames is None:
            frames: Array = world_frames(self.skeleton, self._q.reshape(1, -1))[0]
            frames.setflags(write=False)
            self._frames = frames
        return self._frames

    @property
    def positions(self) -> Array:
        """World positions of all joints, (n, 3), length units of the file; read-only."""
        return self.frames[:, 9:]

    def check_finite(self, what: str = "pose") -> None:
        """Raise an error for values that are not finite, such as those of a problem that ``solve_many`` skipped.

        Args:
            what: The argument, for the message.

        Raises:
            InputError: If a value is not finite.
        """
        if not np.isfinite(self._q).all():
            raise self._not_finite(what)

    def _not_finite(self, what: str) -> InputError:
        """Return the error for values that are not finite."""
        expected = "finite joint values"
        return InputError(what, where=self.skeleton.name, value=self._q, expected=expected)

    def position(self, joint: str | int) -> Array:
        """Return the world position of a joint, link or site, (3,), length units of the file."""
        row, place = self.skeleton.locate(joint)
        return self.frames[row, 9:].copy() if place is None else self._placed(row, place)[:3, 3].copy()

    def matrix(self, joint: str | int) -> Array:
        """Return the world rotation of a joint, link or site as a matrix (3, 3)."""
        row, place = self.skeleton.locate(joint)
        return (self.frames[row, :9].reshape(3, 3) if place is None else self._placed(row, place)[:3, :3]).copy()

    def rotation(self, joint: str | int) -> Rotation:
        """Return the world rotation of a joint, link or site as a SciPy ``Rotation``."""
        from scipy.spatial.transform import Rotation

        return Rotation.from_matrix(self.matrix(joint))

    def transform(self, joint: str | int) -> Array:
        """Return the 4x4 transform from the frame of a joint, link or site to the world."""
        row, place = self.skeleton.locate(joint)
        return frames_to_transforms(self.frames[row]) if place is None else self._placed(row, place)

    def _placed(self, row: int, place: Array) -> Array:
        """Return the world transform (4, 4) of a frame on a joint; the joint's own frame if ``place`` is None."""
        return frames_to_transforms(self.frames[row]) @ place

    def jacobian(self, joint: str | int) -> Array:
        """Return the Jacobian of the world frame of a joint, link or site for the velocities of all joints, (6, nv).

        Rows 0 to 2 are the velocity of its origin (length units), rows 3 to 5 the angular velocity of its frame
        (radians), both in world axes. The columns are in the order of ``skeleton.dof_names``:

        - a hinge (per radian) or slide (per length unit) has one column;
        - a ball has three, the angular velocity in its own frame after its motion: q becomes q · exp(w);
        - a free joint has six: the velocity of its origin in the axes of its rest frame, which is fixed to its parent
          (the world axes for a root without rotation at rest), then the angular velocity as for a ball.

        The column of a mimic joint is zero: its motion is part of its leader's column.

        Args:
            joint: Name of a joint, link or site, else a role, or a row.

        Example:
            >>> arm = Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])  # doctest: +SKIP
            >>> arm.rest_pose().jacobian("joint2")[:3, 2]  # doctest: +SKIP
            array([-2., 0., 0.])
        """
        skeleton, frames = self.skeleton, self.frames
        target, place = skeleton.locate(joint)
        point = frames[target, 9:] if place is None else self._placed(target, place)[:3, 3]
        out = np.zeros((6, skeleton.nv))
        for row in ancestors(skeleton.parents, target):
            moving = skeleton.joints[row]
            if not moving.kind.v_size:
                continue
            first, ratio = skeleton.dof_columns[row]
            turned = frames[row, :9].reshape(3, 3)
            scalar = moving.kind.v_size == 1
            axes = ratio * (turned @ moving.axis)[:, None] if scalar else turned
            if moving.kind is Kind.SLIDE:
                out[:3, first] += axes[:, 0]
                continue
            if moving.kind is Kind.FREE:
                above = skeleton.parents[row]
                outer = np.eye(3) if above < 0 else frames[above, :9].reshape(3, 3)
                out[:3, first : first + 3] = outer @ moving.rest[:3, :3]
                first += 3
            columns = slice(first, first + axes.shape[1])
            out[:3, columns] += np.cross(axes.T, point - frames[row, 9:]).T
            out[3:, columns] += axes
        return out

    def center_of_mass(self) -> Array:
        """Return the centre of mass in the world, (3,), length units of the file.

        Raises:
            InputError: If no joint carries a mass.
        """
        masses = np.array([joint.mass for joint in self.skeleton.joints])
        if not masses.any():
            raise InputError("masses", where=self.skeleton.name, expected="joints with masses")
        inner = np.array([joint.com for joint in self.skeleton.joints])
        places = np.einsum("nij,nj->ni", self.frames[:, :9].reshape(-1, 3, 3), inner) + self.positions
        return masses @ places / masses.sum()

    def __getitem__(self, joint: str | int) -> float | Array:
        """Return a joint's value: a float for a hinge or slide, else an array (empty for a fixed joint)."""
        values = self._q[self.skeleton.q_slice(joint)]
        return float(values[0]) if len(values) == 1 else values.copy()

    def with_values(self, values: JointValues) -> Pose:
        """Return a pose with new values of some joints; mimic joints follow.

        Args:
            values: By joint: a number for a hinge or slide, four (xyzw) for a ball, seven for a free joint.

        Raises:
            InputError: If a value has the wrong shape or is not finite, a joint is named twice, or a mimic joint
                contradicts its leader.
        """
        q = self._q.copy()
        rows = self.skeleton.by_row(values, "values")
        for row, value in rows.items():
            place = self.skeleton.q_slice(row)
            numbers: Any = [value] if dimensions(value) == 0 else value
            name = self.skeleton.joint_keys[row]
            q[place] = as_numbers(numbers, (place.stop - place.start,), f"value of joint {name!r}")
        wanted = q.copy()
        with np.errstate(over="ignore"):  # infinity is refused below
            self.skeleton.follow(q)
        for row in rows:
            place = self.skeleton.q_slice(row)
            q[place] = wanted[place]  # a value that contradicts the leader is refused below
        return Pose(self.skeleton, q)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Return all values for copy and pickle, including those of a derived class, without cached frames."""
        names: list[str] = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
        values = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return None, {**values, "_frames": None, "_inside": None, "ready": None}

    def __repr__(self) -> str:
        """Return the name of the skeleton and the first values."""
        return f"Pose({self.skeleton.name!r}, q={np.array2string(self._q, precision=4, threshold=8)})"


class SkippedPose(Pose):
    """The pose of a problem that a batch skipped: all values are NaN, and functions that use the pose raise an error.

    Args:
        skeleton: The skeleton.
        row: Index of the problem.
        why: Error for which the problem was skipped.
    """

    __slots__ = ("_row", "_why")

    def __init__(self, skeleton: Skeleton, row: int, why: SynoviaError) -> None:
        """Store the error for which the problem was skipped."""
        self.skeleton = skeleton
        self._q = np.full(skeleton.nq, np.nan)
        self._frames = None
        self._inside = None
        self.ready = None
        self._row, self._why = row, why

    def _not_finite(self, what: str) -> InputError:
        """Return the error for which the problem was skipped."""
        return InputError(f"row {self._row} of the batch is invalid: {self._why}", where=what)
