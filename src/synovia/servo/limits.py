"""Limits of motion: from user inputs to one value for each axis of the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.goals import Goal
from synovia.kernels.layout import (
    AT_ACCELERATION,
    AT_JERK,
    AT_POSITION,
    AT_VELOCITY,
    AXIS_WIDTH,
    BLOCK,
    BLOCK_COLUMN,
    BLOCK_Q,
    EMERGENCY,
    FIRST_Q,
    IS_ANGLE,
    IS_LIMITED,
    LOWER,
    REASON,
    RECOVERING,
    SCALAR,
    TOP_ACCELERATION,
    TOP_JERK,
    TOP_SPEED,
    UPPER,
)
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, Bools, as_numbers, is_number, rotation_between, times_exp
from synovia.model.motion_limits import share_of
from synovia.model.tables import Ints
from synovia.model.tree import ancestors

_NO_LIMIT: Final = 1e9  # per second: a larger velocity limit counts as no limit
_INSCRIBED: Final = 3.0**-0.5  # component limit (half an edge of the cube in the unit ball) that bounds the norm by 1
_MOST: Final = 1e12  # largest limit
_SHOWN: Final = 6  # largest number of joints that a message names
_NEAREST: Final = 3  # number of joints in a report of those nearest to a limit
_RESTS: Final = 1e-9  # fraction of a limit: a joint that uses less counts as at rest
_UNUSED: Final = 1.0  # stand-in for the missing limit of a joint that the solver does not move
_COLUMNS: Final = {"velocity": TOP_SPEED, "acceleration": TOP_ACCELERATION, "jerk": TOP_JERK}
_REASONS: Final = {
    AT_POSITION: "position",
    AT_VELOCITY: "velocity",
    AT_ACCELERATION: "acceleration",
    AT_JERK: "jerk",
    RECOVERING: "recovering",
    EMERGENCY: "recovering",
}
REASONS: Final = tuple(dict.fromkeys(_REASONS.values()))  # names of limits that hold a joint back
_UNITS: Final = {
    "velocity": "per s", "acceleration": "per s²", "jerk": "per s³", "following_error": "radians or length units",
}  # fmt: skip


class Axes:
    """The axes of a body: one for each scalar variable, three for each rotation.

    Args:
        skeleton: The skeleton that is solved.
        moving: Rows of the skeleton that the solver moves.
        reach: Length scale of the problem, length units.

    Attributes:
        skeleton: The skeleton.
        table: The state of all axes, (n, AXIS_WIDTH); see ``kernels.layout``.
        whole: ``table`` and one more row, the state of the path coordinate; see ``kernels.servo.path``.
        joints: Joint of each axis, rows of the skeleton.
        firsts: First axis of each variable.
        lengths: Whether the coordinate of each axis is a length, not an angle.
        limits_turns: Whether a rotation has limits.
        axis: Axis of each velocity of the skeleton; ``factor`` has the ratio of a mimic joint to its axis.
        rows: Limits of all joints, (joints, 2), by name of the limit.
        followers: Row of each mimic joint, the axis of its leader, and the ratio.
    """

    def __init__(self, skeleton: Skeleton, moving: Any, reach: float) -> None:
        """Collect the axes of all variables."""
        t = skeleton.tables
        self.skeleton, self._reach, self._moving = skeleton, reach, {int(row) for row in moving}
        sizes = np.where(t.variables[:, BLOCK] == SCALAR, 1, 3)
        self.variable = np.repeat(np.arange(len(sizes)), sizes)
        self.joints: Ints = t.owner[self.variable]
        self._moves: Bools = np.isin(self.joints, list(self._moving))
        self.rows: dict[str, Array] = {}
        self.whole = np.zeros((len(self.joints) + 1, AXIS_WIDTH))
        self.table = self.whole[:-1]
        self.firsts: NDArray[np.int64] = np.cumsum([0, *sizes])[:-1]
        firsts = self.firsts
        numbers = t.variables[:, BLOCK] == SCALAR
        at_q = t.variables[:, BLOCK_Q].astype(np.int64)
        self.numbers, self.number_q = firsts[numbers], at_q[numbers]
        self._at, self._at_q = _as_slice(self.numbers), _as_slice(self.number_q)
        self.low, self.high = t.limits[numbers, LOWER], t.limits[numbers, UPPER]
        self.limits_turns = bool(t.limits[~numbers, IS_LIMITED].any())
        self._turns, self._turn_q = firsts[~numbers, None] + np.arange(3), at_q[~numbers, None] + np.arange(4)
        part = np.arange(len(self.joints)) - firsts[self.variable]
        column = t.variables[self.variable, BLOCK_COLUMN] + part
        free = np.array([joint.kind is Kind.FREE for joint in skeleton.joints], bool)
        scalar = t.variables[self.variable, BLOCK] == SCALAR
        self._norm: Bools = ~scalar | free[self.joints]  # the limit bounds the norm of three axes
        self.lengths: Bools = scalar & (t.limits[self.variable, IS_ANGLE] == 0.0)
        self.axis = np.zeros(len(skeleton.dof_names), np.int64)  # axis of each velocity of the skeleton
        self.factor = np.ones(len(self.axis))
        self.axis[column] = np.arange(len(column))
        row_at = {
            int(at): row for row, at in enumerate(t.ints[:, FIRST_Q].tolist()) if skeleton.joints[row].kind.q_size
        }
        first_of = {int(t.variables[k, BLOCK_Q]): int(firsts[k]) for k in range(len(firsts))}
        own = np.cumsum([0, *(joint.kind.v_size for joint in skeleton.joints)])
        self.followers: list[tuple[int, int, float]] = []
        for (follower, leader), ratio in zip(t.followers.tolist(), t.coupling[:, 0].tolist(), strict=True):
            row = row_at[follower]
            self.axis[own[row]], self.factor[own[row]] = first_of[leader], ratio
            self.followers.append((row, first_of[leader], ratio))
        self._of_velocity = _as_slice(self.axis)

    def set_limits(self, velocity: Any, acceleration: Any, jerk: Any) -> None:
        """Write the limits into the table; see ``Servo``.

        Raises:
            InputError: If a limit cannot be used, or a joint that moves has none.
            UnknownNameError: If a joint does not exist.
        """
        rows = {"velocity": self.pairs("velocity", velocity), "acceleration": self.pairs("acceleration", acceleration)}
        if jerk is not None:
            rows["jerk"] = self.pairs("jerk", jerk)
        self._write(rows)

    @property
    def top_speeds(self) -> Array:
        """Velocity limit of each joint, (joints,): that of its last axis, infinite without an axis."""
        out = np.full(len(self.skeleton), np.inf)
        out[self.joints] = self.table[:, TOP_SPEED]
        return out

    def change_limits(self, **given: Any) -> None:
        """Write the limits that are not None into the table; omitted joints keep their limits.

        Raises:
            InputError: If a limit cannot be used, or a joint that moves has none.
            UnknownNameError: If a joint does not exist.
        """
        new = {name: self.pairs(name, value, self.rows.get(name)) for name, value in given.items() if value is not None}
        self._write(self.rows | new)

    def _write(self, rows: dict[str, Array]) -> None:
        """Write limits of all joints, by name, into the table.

        Raises:
            InputError: If one is missing for a joint that moves.
        """
        columns = {name: self._limit(name, pairs) for name, pairs in rows.items()}
        for name, column in _COLUMNS.items():
            self.table[:, column] = columns.get(name, np.inf)
        self.rows = rows

    def _limit(self, name: str, rows: Array) -> Array:
        """Return a limit of all axes, (n,), from the limits of all joints, (joints, 2).

        Raises:
            InputError: If the limit is missing for a joint that moves.
        """
        self._check_complete(name, rows)
        out = rows[self.joints, self.lengths.astype(np.int64)]
        out[np.isnan(out)] = _UNUSED
        for row, axis, ratio in self.followers:
            limit = rows[row, int(self.skeleton.joints[row].kind is Kind.SLIDE)]
            if ratio != 0.0 and not np.isnan(limit):
                out[axis] = min(out[axis], limit / abs(ratio))
        return np.where(self._norm, _INSCRIBED * out, out)

    def pairs(self, name: str, given: Any, before: Array | None = None) -> Array:
        """Return a limit of all joints, (joints, 2): angular and linear, NaN without a limit.

        Args:
            name: Name of the limit.
            given: Value that the user passed.
            before: The limits so far; joints that are left out keep them.

        Raises:
            InputError: If the value cannot be used.
            UnknownNameError: If a joint does not exist.
        """
        skeleton = self.skeleton
        rows = np.full((len(skeleton), 2), np.nan) if before is None or given is None else before.copy()
        scales = np.array([(1.0, self._reach if joint.kind is Kind.FREE else 1.0) for joint in skeleton.joints])
        if given is None or isinstance(given, Mapping | str):
            share = 1.0 if not isinstance(given, str) else share_of(name, given)
            if name == "velocity" and (before is None or isinstance(given, str)):
                for row, joint in enumerate(skeleton.joints):
                    rows[row] = rows[row] if joint.velocity is None else share * joint.velocity
            given = {} if given is None or isinstance(given, str) else cast("Mapping[Any, Any]", given)
            for row, value in skeleton.by_row(given, name).items():
                rows[row] = scales[row] * _pair(value, name, f"{name} of {skeleton.joint_names[row]!r}")
        else:
            rows[:] = scales * _pair(given, name, name)
        return rows

    def let_move(self, rows: Iterable[int]) -> None:
        """Add other joints to those that move.

        Raises:
            InputError: If one of them has no limit.
        """
        others = [int(row) for row in rows if row not in self._moving]
        for row in others:
            self.check_limits_of(row)
        self._moving |= {*others}
        self._moves |= np.isin(self.joints, others)

    def check_limits_of(self, row: int) -> None:
        """Check that a joint has all limits.

        Raises:
            InputError: If a limit is missing.
        """
        for name, rows in self.rows.items():
            self._check_complete(name, rows, [row])

    def drive(self, axis: int) -> None:
        """Mark an axis as moving, even if no goal needs it."""
        self._moves[axis] = True

    def _check_complete(self, name: str, rows: Array, there: Sequence[int] | None = None) -> None:
        """Check that the joints ``there``, or all joints that move, have a limit.

        Raises:
            InputError: If one has none; the message names it.
        """
        if there is None:
            there = [int(row) for row in dict.fromkeys(self.joints.tolist()) if row in self._moving]
        missing = [self.skeleton.joint_names[row] for row in there if np.isnan(rows[row]).any()]
        if missing:
            shown = ", ".join(repr(joint) for joint in missing[:_SHOWN]) + ", …" * (len(missing) > _SHOWN)
            where, hint = "there is none for", f"pass {name}=number"
            if name == "velocity":
                where = "the file has none for"
                hint += f", or {name}={{{missing[0]!r}: number}}, which leaves those of the file to the others"
            raise InputError(name, expected=f"a limit for every joint that moves; {where} {shown}", hint=hint)

    def way(self, q: Array, to: Array) -> Array:
        """Return the displacement of each axis from joint values q to others, radians or length units, (n,)."""
        out = np.empty(len(self.joints))
        out[self._at] = to[self._at_q] - q[self._at_q]
        if len(self._turns):
            out[self._turns] = rotation_between(q[self._turn_q], to[self._turn_q])
        return out

    def ways(self, q: Array, to: Array) -> Array:
        """Return the displacement of each axis from joint values (T, nq) to others, radians or length units, (T, n)."""
        out = np.empty((len(to), len(self.joints)))
        out[:, self.numbers] = to[:, self.number_q] - q[:, self.number_q]
        if len(self._turns):
            out[:, self._turns] = rotation_between(q[:, self._turn_q], to[:, self._turn_q])
        return out

    def shifted(self, q: Array, offset: Array) -> Array:
        """Return joint values q (..., nq) shifted by a displacement of each axis, (..., n)."""
        out = q.copy()
        out[..., self.number_q] += offset[..., self.numbers]
        if len(self._turns):
            out[..., self._turn_q] = times_exp(out[..., self._turn_q], offset[..., self._turns])
        return self.skeleton.follow(out)

    def by_joint(self, values: Array) -> dict[str, int]:
        """Convert reasons by axis to reasons by joint: the largest of each joint's axes; zeros are left out.

        Joints that the solver does not move are left out, unless a reset gave them a velocity: then they recover.
        """
        keys = self.skeleton.joint_keys
        out: dict[str, int] = {}
        for i in np.flatnonzero(values * (self._moves | (values >= RECOVERING))).tolist():
            key = keys[int(self.joints[i])]
            out[key] = max(out.get(key, 0), int(values[i]))
        return out

    def limits_of(self, values: Array) -> dict[str, str]:
        """Return the limit that holds a joint back, by joint, from reasons by axis; see ``Tick.limited``."""
        return {joint: _REASONS[reason] for joint, reason in self.by_joint(values).items()}

    @property
    def reasons(self) -> Array:
        """Codes of the limits that held each axis back in the last tick, (n,); see ``limits_of``."""
        return self.table[:, REASON]

    def speeds_of(self, velocity: Array) -> dict[str, float]:
        """Return a velocity (nv,) as fractions of the limits of moving joints that have one, by joint."""
        top, out = self.table[:, TOP_SPEED], dict[str, float]()
        shares = np.abs(self.of_motion(velocity, "velocity")) / np.maximum(top, 1e-300)
        for k in np.flatnonzero(self._moves & (top < _NO_LIMIT)).tolist():
            key = self.skeleton.joint_keys[int(self.joints[k])]
            out[key] = max(out.get(key, 0.0), float(shares[k]))
        return out

    def nearest(self, velocity: Array, acceleration: Array) -> list[tuple[str, str, float]]:
        """Return the joints nearest to a limit of their motion, the name of the limit, and the fraction in use.

        Both arguments are (nv,), in the order of ``skeleton.dof_names``. Joints at rest are left out.
        """
        found: dict[str, tuple[str, str, float]] = {}
        keys, widen = self.skeleton.joint_keys, np.where(self._norm, _INSCRIBED, 1.0)
        for name, values in (("velocity", velocity), ("acceleration", acceleration)):
            for k, value in enumerate((np.abs(values) * widen[self.axis]).tolist()):
                axis = int(self.axis[k])
                share = value / max(abs(self.factor[k]) * self.table[axis, _COLUMNS[name]], 1e-300)
                key = keys[int(self.joints[axis])]
                if self._moves[axis] and share > (found[key][2] if key in found else _RESTS):
                    found[key] = key, name, float(share)
        return sorted(found.values(), key=lambda one: -one[2])[:_NEAREST]

    def as_velocity(self, values: Array) -> Array:
        """Return values of all axes, (n,), as a velocity of the skeleton, (nv,)."""
        return values[self._of_velocity] * self.factor

    def of_motion(self, motion: Any, name: str) -> Array:
        """Return the velocity or acceleration of each axis from those of the skeleton, (nv,), or by joint.

        Raises:
            InputError: If they cannot be used.
        """
        skeleton = self.skeleton
        size = len(self.axis)
        if isinstance(motion, Mapping):
            full = np.zeros(size)
            for row, value in skeleton.by_row(cast("Mapping[Any, Any]", motion), name).items():
                first, _ = skeleton.dof_columns[row]
                count = skeleton.joints[row].kind.v_size
                full[first : first + count] = as_numbers(value, () if count == 1 else (count,), name)
        else:
            full = as_numbers(motion, (size,), name)
        out = np.zeros(len(self.joints))
        own = self.factor == 1.0
        out[self.axis[own]] = full[own]
        return out


def concerned_joints(skeleton: Skeleton, goals: Iterable[Goal]) -> frozenset[str]:
    """Return the keys of the joints whose values change a goal's error; rest goals have no error."""
    rows: set[int] = set()
    for goal in goals:
        if goal.preference is not None:
            continue
        if not goal.joints or goal.moves_mass or skeleton.mechanism is not None:
            return frozenset(skeleton.joint_keys)
        for row in goal.located(skeleton)[1]:
            rows.update(ancestors(skeleton.parents, row))
    return frozenset(skeleton.joint_keys[skeleton.leader_rows.get(row, row)] for row in rows)


def _pair(value: Any, name: str, what: str) -> Array:
    """Return a limit as a pair (angular, linear).

    Raises:
        InputError: If it is not positive.
    """
    unit, both = _UNITS[name], [value, value] if is_number(value) else value
    if not isinstance(both, list | tuple | np.ndarray):
        raise InputError(what, value=value, expected=f"a number above 0, {unit}")
    both = cast("Any", both)
    if len(both) != 2:
        raise InputError(
            what, value=both, expected=f"a number above 0, {unit}, or a pair: of turns and of lengths",
            hint="numbers by joint are a dict, such as {'joint1': 2.0}",
        )  # fmt: skip
    pair = as_numbers(both, (2,), what)
    if not ((pair > 0.0) & (pair <= _MOST)).all():
        raise InputError(what, value=value, expected=f"above 0 and at most {_MOST:g}, {unit}")
    return pair


def _as_slice(rows: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Return the slice with the same elements as an array of increasing indices, if there is one, else the array."""
    first, count = (int(rows[0]), len(rows)) if len(rows) else (0, 0)
    return slice(first, first + count) if np.array_equal(rows, np.arange(first, first + count)) else rows


_SLACK: Final = 1e-9  # fraction of a limit: a smaller excess is a rounding error
_TOLD: Final = 0.9  # fraction of a limit: higher speeds are reported


class ToolSpeed:
    """Speed limits of end effectors.

    Args:
        axes: The axes of the body.
        limits: By joint, link or site: a linear limit, length units/s, or a pair: linear and angular, rad/s.

    Raises:
        InputError: If a limit cannot be used.
        UnknownNameError: If there is no such end effector.

    Attributes:
        limits: Linear and angular limits, by end effector.
        reasons: By end effector, "tool speed" if its limit slowed the last tick, "recovering" if it was too fast.
    """

    def __init__(self, axes: Axes, limits: Any) -> None:
        """Find the end effectors."""
        self.limits = _checked(limits)
        for name in self.limits:
            axes.skeleton.locate(name)  # refuses unknown names
        self.reasons: dict[str, str] = {}

    def note_shares(self, shares: Array, slows: Array, *, leads: bool) -> None:
        """Record in ``reasons`` which end effectors slowed the last tick, or were too fast.

        Args:
            shares: Fraction of its speed limit that each end effector used, (tools,); above 1 is too fast.
            slows: Nonzero for each end effector that slows the body down, (tools,).
            leads: Whether the body follows a path on which it keeps these limits. Then an end effector near its limit
                counts as slowing, too.
        """
        self.reasons = {}
        for name, share, slow in zip(self.limits, shares.tolist(), slows.tolist(), strict=True):
            if share > 1.0 + _SLACK:
                self.reasons[name] = "recovering"
            elif slow or (leads and share > _TOLD):
                self.reasons[name] = "tool speed"


def _checked(limits: Any) -> dict[str, tuple[float, float]]:
    """Return linear and angular limits by end effector.

    Raises:
        InputError: If they cannot be used.
    """
    if not isinstance(limits, Mapping) or not len(cast("Mapping[Any, Any]", limits)):
        raise InputError(
            "tool_speed", value=cast("Any", limits), expected="limits by joint, such as {'tool': (0.25, 1.0)}"
        )
    out: dict[str, tuple[float, float]] = {}
    for name, value in cast("Mapping[Any, Any]", limits).items():
        where = f"tool_speed of {name!r}"
        pair = [value, None] if is_number(value) else value
        if not isinstance(pair, list | tuple) or len(cast("list[Any]", pair)) != 2:
            raise InputError(where, value=value, expected="a linear limit, or a pair: linear and angular")
        found = as_numbers([_MOST if one is None else one for one in cast("list[Any]", pair)], (2,), where)
        if not ((found > 0.0) & (found <= _MOST)).all():
            raise InputError(where, value=value, expected=f"above 0 and at most {_MOST:g}, per s")
        out[name] = (float(found[0]), float(found[1]))
    return out
