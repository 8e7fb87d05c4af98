"""Poses: the joint values of a skeleton, and its world frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError, SynoviaError
from synovia.kernels.layout import BLOCK, BLOCK_Q, FIRST_Q, TURN, VARIABLE
from synovia.model.degrees import FAR, warn_of_degrees
from synovia.model.geometry import UNIT_SLACK, Array, as_numbers, dimensions, frames_to_transforms
from synovia.model.joint import LONGEST, Kind
from synovia.model.tree import ancestors
from synovia.notebook import Pictured

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

    from synovia.model.skeleton import Skeleton

Numbers = NDArray[Any] | Sequence[float]
_Value = float | Numbers
JointValues = Mapping[str, _Value] | Mapping[int, _Value] | Mapping[str | int, _Value]  # the others are at rest
_CLOSE = 1e-6  # largest error of a mimic joint's value
_ROUNDING = 1e-15  # error of a normalized length
_DOUBLE = np.dtype(np.float64)
_PACKED = (8,)  # strides of contiguous float64
_new, _empty, _ndarray = object.__new__, np.empty, np.ndarray  # one look-up less in each call


def world_frames(skeleton: Skeleton, q: Array) -> Array:
    """Return the world frames (T, n, 12) at joint values (T, nq): rotation row-major (9), then position (3)."""
    t = skeleton.tables
    frames = np.empty((len(q), len(skeleton), 12))
    _forward_kinematics()(t.ints, t.fixed, t.couple, t.unfold, np.ascontiguousarray(q, np.float64), frames)
    return frames


@cache
def _forward_kinematics() -> Callable[..., Any]:
    """Return the compiled function of ``world_frames``."""
    from synovia.kernels.compiler.jit import ready
    from synovia.kernels.tree.forward import forward_many

    floats = (np.empty((0, width)) for width in (12, 2, 9, 0))
    return ready(forward_many, np.empty((0, VARIABLE), np.int32), *floats, np.empty((0, 0, 12)))


def inside_limits(skeleton: Skeleton, q: Array) -> Array:
    """Return joint values (T, nq) clamped to the limits; the same array if all are inside."""
    inside = np.empty(q.shape)
    skeleton.validate(np.ascontiguousarray(q).reshape(-1), inside.reshape(-1))
    return q if np.array_equal(inside, q) else skeleton.follow(inside)


def checked_q(skeleton: Skeleton, q: Any, what: str = "q") -> Array:
    """Return joint values (..., nq) as a new float64 array with exact quaternions and couplings.

    Values that seem to be in degrees bring a warning.

    Raises:
        InputError: If the shape is wrong, a number is not finite, a quaternion is not of length 1, or a mimic joint
            contradicts its leader.
    """
    shape = (-1,) * (dimensions(q) - 1) + (skeleton.nq,)
    out = as_numbers(q, shape, what)
    largest = float(np.abs(out).max(initial=0.0))
    if largest > LONGEST:
        raise InputError(
            what,
            value=float(out.flat[np.argmax(np.abs(out))]),
            expected=f"numbers of at most {LONGEST:g}",
        )
    if largest > FAR:
        warn_of_degrees(skeleton, out, what)
    t = skeleton.tables
    turns = np.flatnonzero(t.variables[:, BLOCK] == TURN)
    if len(turns):
        columns = t.variables[turns, BLOCK_Q, None] + np.arange(4)
        quats = out[..., columns]
        length = np.linalg.norm(quats, axis=-1)
        off = np.abs(length - 1.0)
        if off.size and not off.max() <= UNIT_SLACK:
            first = int(np.argmax((off.reshape(-1, len(turns)) > UNIT_SLACK).any(0)))
            raise InputError(
                f"{what} of joint {skeleton.joint_names[t.owner[turns[first]]]!r}",
                value=quats[..., first, :].reshape(-1, 4)[np.argmax(off[..., first])].tolist(),
                expected="a unit quaternion x, y, z, w",
            )
        length[off < _ROUNDING] = 1.0  # so that values of a pose do not change
        out[..., columns] = quats / length[..., None]
    if not len(t.followers):
        return out
    before = out.copy()
    skeleton.follow(out)
    off = np.abs(out - before) / np.maximum(1.0, np.abs(out))
    if off.size and not off.max() <= _CLOSE:  # NaN too
        frame, at = divmod(int(np.argmax(off)), skeleton.nq)
        row = int(np.flatnonzero(t.ints[:, FIRST_Q] <= at)[-1])
        raise InputError(
            f"{what} of joint {skeleton.joint_names[row]!r}, which follows another",
            value=float(before.reshape(-1, skeleton.nq)[frame, at]),
            expected=f"{out.reshape(-1, skeleton.nq)[frame, at]:.9g}",
        )
    return out


def refused_rows(check: Callable[[Array], object], rows: Array) -> list[int]:
    """Return the rows of an array that a check refuses, by halving: few calls if few rows are refused.

    Args:
        check: Raises an ``InputError`` if one of some rows cannot be used.
        rows: The rows, (n, ...).
    """
    found: list[int] = []
    parts = [(0, len(rows))]
    while parts:
        first, last = parts.pop()
        try:
            check(rows[first:last].copy())
        except InputError:
            middle = (first + last) // 2
            if last - first == 1:
                found.append(first)
            else:
                parts += [(middle, last), (first, middle)]
    return found


class Pose(Pictured):
    """Joint values of a skeleton; world transforms are computed at their first use. Immutable.

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
        self.ready: Array | None = None  # ``inside`` after its first use; a slot is three times as fast as a property

    @classmethod
    def trusted(cls, skeleton: Skeleton, q: Array, inside: bool = False) -> Pose:
        """Return a pose without checks; q is contiguous float64 and not shared. ``inside``: q is within the limits."""
        pose = _new(cls)
        pose.skeleton = skeleton
        pose._q = q
        pose._frames = None
        pose._inside = q if inside else None
        pose.ready = None
        return pose

    @classmethod
    def quick(cls, skeleton: Skeleton, q: Any) -> Pose | None:
        """Return a pose of float64 values (nq,), checked by one compiled call; None if they need a full check.

        Meant for loops over joint values. It loads the kernels, which other poses do not need.
        """
        kind: type[object] = type(q)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
        if kind is not _ndarray or q.dtype is not _DOUBLE or q.ndim != 1 or len(q) != skeleton.nq:
            return None
        if q.strides != _PACKED:
            q = q.copy()
        inside = _empty(skeleton.nq)
        code = skeleton.validate(q, inside)
        if code < 0:
            return None
        if not code and np.abs(q).max(initial=0.0) > FAR:  # outside the limits
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
        view.setflags(False)  # pyright: ignore[reportCallIssue]  # by place, which its types leave out: a name takes longer
        return view

    @property
    def values(self) -> Array:
        """Joint values, (nq,), for kernels: writable, but do not write to them."""
        return self._q

    @property
    def inside(self) -> Array:
        """Joint values clamped to the limits, (1, nq), for kernels; do not write to them."""
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
        """Refuse values that are not finite, as those of a problem that ``solve_many`` skipped.

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
        """Return the world transform (4, 4) of a place on a joint."""
        return frames_to_transforms(self.frames[row]) @ place

    def jacobian(self, joint: str | int) -> Array:
        """Return the derivative of the world frame of a joint, link or site by the velocities of all joints, (6, nv).

        Rows 0 to 2 are the velocity of its origin (length units), rows 3 to 5 the angular velocity of its frame
        (radians), both in world axes. The columns are in the order of ``skeleton.dof_names``:

        - a hinge (per radian) or slide (per length unit) has one;
        - a ball has three, the angular velocity in its own frame after its motion: q becomes q · exp(w);
        - a free joint has six: the velocity of its origin in its rest frame, carried by its parent (world axes, unless
          that frame is rotated), then the angular velocity as for a ball.

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
        """Return a joint's own value: a number for a hinge or slide, else an array (empty for a fixed joint)."""
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by value; frames are computed again."""
        return Pose.trusted, (self.skeleton, self._q)

    def __repr__(self) -> str:
        """Return the skeleton's name and the first values."""
        return f"Pose({self.skeleton.name!r}, q={np.array2string(self._q, precision=4, threshold=8)})"


class SkippedPose(Pose):
    """The pose of a problem of a batch that was skipped: all NaN, and refused where a pose is used.

    Args:
        skeleton: The skeleton.
        row: The problem.
        why: Why it was skipped.
    """

    __slots__ = ("_row", "_why")

    def __init__(self, skeleton: Skeleton, row: int, why: SynoviaError) -> None:
        """Keep the reason."""
        self.skeleton = skeleton
        self._q = np.full(skeleton.nq, np.nan)
        self._frames = None
        self._inside = None
        self.ready = None
        self._row, self._why = row, why

    def _not_finite(self, what: str) -> InputError:
        """Return the error with the reason."""
        return InputError(f"row {self._row} of the batch is invalid: {self._why}", where=what)
