"""Code shared by PyTorch and JAX: solves and forward kinematics of batches as arrays, and their gradients.

A gradient by joint values has the shape of joint values, but only includes changes that are motions: the gradient by a
unit quaternion is tangent to the unit sphere. Likewise, the gradient by a transform only includes its rotation and
translation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind
from synovia.errors import InputError, UnknownNameError, UnsupportedError
from synovia.facade import IK
from synovia.goals import RestGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.derivative import check_differentiable, target_parts, tool_goals
from synovia.ik.pull_back import Wrenches, frame_of_goal, left_jacobian
from synovia.ik.solution import Solutions
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, exp_matrix, quat_product, rigid
from synovia.model.pose import world_frames

_F = TypeVar("_F", bound=Callable[..., Any])
_SHAPES = {POSITION: (3,), ROTATION: (3, 3), POSITION | ROTATION: (4, 4)}


class Solves:
    """Solves of one ``IK`` with an array of targets for each goal that takes targets, and with parameters.

    Args:
        ik: The problem.
        targets: A dict from goals to their targets, or the target of the only goal that takes one.
        parameters: A dict from kinds of parameters to their values, or None; see ``described``.

    Attributes:
        targets: The targets as given.
        parameters: The values of the parameters as given.

    Raises:
        InputError: If the goals are not those that take a target, or a kind of parameters is unknown.
        UnsupportedError: If the answers have no derivative.
    """

    def __init__(self, ik: Any, targets: Any, parameters: Any) -> None:
        """Match the targets with the goals."""
        check_kind("ik", ik, IK, "sy.IK(skeleton, goals) makes one")
        self.ik: IK = ik
        problem = ik.problem
        check_differentiable(problem, "targets")
        parts = target_parts(problem)
        labels = {goal.label: g for g, (goal, part) in enumerate(zip(problem.goals, parts, strict=True)) if part}
        if not isinstance(targets, Mapping):
            if len(labels) != 1:
                raise InputError("targets", expected=f"a dict with {', '.join(map(repr, labels))}")
            targets = dict.fromkeys(labels, targets)
        named = cast("Mapping[str, Any]", targets)
        for name in named:
            if name not in labels:
                known = ", ".join(map(repr, labels))
                raise UnknownNameError(f"no goal {name!r} takes a target; the goals are {known}")
        self.names, self.targets = list(named), list(named.values())
        self.shapes = [_SHAPES[parts[labels[name]]] for name in named]
        starts = np.cumsum([0, *(3 * part.bit_count() for part in parts)])
        self._parts = [(labels[name], parts[labels[name]], int(starts[labels[name]])) for name in named]
        self.nq = problem.skeleton.nq
        self._joints = Joints.of(problem.skeleton)
        given = cast("Mapping[str, Any]", {} if parameters is None else parameters)
        self.kinds, self.parameters = list(given), list(given.values())
        goals, n = len(problem.goals), len(problem.given)
        shapes = {"weights": (goals,), "posture": (problem.given.nq,), "offsets": (n, 6), "tools": (goals, 6)}
        for kind, value in given.items():
            if kind not in shapes:
                raise InputError("parameters", value=kind, expected=", ".join(map(repr, shapes)))
            if tuple(np.shape(value)) != shapes[kind]:
                raise InputError(f"shape of {kind}", value=tuple(np.shape(value)), expected=str(shapes[kind]))
        if "posture" in given and not any(isinstance(goal, RestGoal) for goal in problem.goals):
            raise UnsupportedError("the problem has no posture", where="parameters", expected="a RestGoal")
        if "offsets" in given and not problem.reduced.pose_only:
            raise UnsupportedError("offsets", where="parameters", expected="goals for positions and rotations only")
        self._changed: tuple[list[bytes], IK] | None = None

    def changed(self, parameters: Sequence[Array]) -> IK:
        """Return the problem with the values of its parameters; the length scale stays the same."""
        if not self.kinds:
            return self.ik
        key = [value.tobytes() for value in parameters]
        if self._changed is None or self._changed[0] != key:
            problem = self.ik.problem
            goals, skeleton = list(problem.goals), problem.given
            for kind, value in zip(self.kinds, parameters, strict=True):
                if kind == "offsets":
                    skeleton = skeleton.with_offsets(value)
                for g, goal in enumerate(goals):
                    if kind == "weights":
                        goals[g] = goal.changed(weight=float(value[g]))
                    elif kind == "tools" and value[g].any():
                        goals[g] = goal.changed(offset=goal.offset @ rigid(value[g, :3], exp_matrix(value[g, 3:])))
                    elif kind == "posture" and isinstance(goal, RestGoal):
                        goals[g] = RestGoal(
                            value, joints=goal.parts, root=goal.root, weight=goal.weight, name=goal.name
                        )
            new = problem.with_parts(
                goals, problem.solver, skeleton=skeleton, tolerance=problem.tolerance, reach=problem.reach
            )
            self._changed = key, IK.of(new)
        return self._changed[1]

    def rows(
        self, targets: Sequence[Array], starts: Array | None, parameters: Sequence[Array], threads: int | None = None
    ) -> Array:
        """Return the rows of results for targets (B, ...), see ``CompiledProblem.new_rows``."""
        given = {
            name: _transforms(values) if parts == ROTATION else np.ascontiguousarray(values)
            for name, (_, parts, _), values in zip(self.names, self._parts, targets, strict=True)
        }
        return self.changed(parameters).solve_many(given, starts, threads=threads).table

    def q(self, rows: Array) -> Array:
        """Return the joint values in rows of results, (B, nq)."""
        return rows[:, self.ik.problem.places].copy()

    def gradients(
        self, rows: Array, gradient: Array, parameters: Sequence[Array] = (), threads: int | None = None
    ) -> list[Array]:
        """Return gradients of each row by targets and parameters, given the gradients by joint values, (B, nq)."""
        problem = self.changed(parameters).problem
        many = Solutions(problem, rows, problem.rest)
        v = self._joints.to_velocities(rows[:, problem.places], gradient)
        found, _ = many.pull_back(v, threads=threads)
        out: list[Array] = []
        for (g, parts, at), shape in zip(self._parts, self.shapes, strict=True):
            if parts == POSITION:
                out.append(found[:, at : at + 3])
                continue
            first = at + (3 if parts & POSITION else 0)
            R = problem.targets_in(rows)[:, g].reshape(-1, 4, 4)[:, :3, :3]
            turned = by_matrix(found[:, first : first + 3], R)
            if parts == ROTATION:
                out.append(turned)
                continue
            T = np.zeros((len(rows), *shape))
            T[:, :3, :3], T[:, :3, 3] = turned, found[:, at : at + 3]
            out.append(T)
        return out + [
            self._by_parameter(many, v, kind, value, threads)
            for kind, value in zip(self.kinds, parameters, strict=True)
        ]

    def _by_parameter(self, many: Solutions, v: Array, kind: str, value: Array, threads: int | None) -> Array:
        """Return each row's gradients by one kind of parameters, (B, ...), in the shape of their values."""
        problem = many.ik
        found = many.pull_back(v, kind, threads=threads)[0]
        if kind == "weights":
            return found
        if kind == "posture":
            q = np.broadcast_to(value, (len(found), len(value)))
            return Joints.of(problem.given).to_values(q, found[:, problem.skeleton.nv - problem.given.nv :])
        if kind == "offsets":
            return self._by_offsets(many, found, many.pull_back(v, "tools", threads=threads)[0], value)
        out = np.zeros((len(found), *value.shape))
        for k, g in enumerate(tool_goals(problem)):  # from the axes of the moved frame to the original ones
            out[:, g, :3] = found[:, 6 * k : 6 * k + 3] @ exp_matrix(value[g, 3:]).T
            out[:, g, 3:] = found[:, 6 * k + 3 : 6 * k + 6] @ left_jacobian(value[g, 3:]).T
        return out

    def _by_offsets(self, many: Solutions, found: Array, tools: Array, value: Array) -> Array:
        """Return the gradients by the offsets of all joints, (B, n, 6).

        The offset of a fixed joint moves all goals and moving joints below it that no other moving joint separates from
        it. So its gradient follows from the gradients of their offsets and frames.

        Args:
            many: The solutions.
            found: Gradients by the offsets of moving joints.
            tools: Gradients by the frames of goals on their joints.
            value: The offsets, (n, 6).
        """
        problem = many.ik
        skeleton, moving = problem.skeleton, problem.reduced.joints.tolist()
        before = len(skeleton) - len(problem.given)
        frames = world_frames(skeleton, many.q)
        whole = Wrenches(skeleton, frames)
        for k, g in enumerate(tool_goals(problem)):
            R, place = frame_of_goal(problem, frames, g)
            force, torque = (np.einsum("bij,bj->bi", R, tools[:, at : at + 3]) for at in (6 * k, 6 * k + 3))
            whole.add(problem.rows[g], force, torque, place)
        for row in range(len(skeleton) - 1, -1, -1):
            if row in moving:
                axes, place = whole.parent_frame(row)
                at = 6 * moving.index(row)
                whole.force[:, row], whole.torque[:, row] = 0.0, 0.0
                force, torque = (np.einsum("bij,bj->bi", axes, found[:, k : k + 3]) for k in (at, at + 3))
                whole.add(row, force, torque, place)
            parent = skeleton.parents[row]
            if parent >= 0:
                whole.force[:, parent] += whole.force[:, row]
                whole.torque[:, parent] += whole.torque[:, row]
        out = whole.by_offsets()[:, before:]
        for row, step in enumerate(value):
            out[:, row, 3:] = out[:, row, 3:] @ left_jacobian(step[3:])
        return out


def described(form: str) -> Callable[[_F], _F]:
    """Return a decorator that adds the text shared by PyTorch and JAX to the docstring of a function.

    Args:
        form: Type of the values in words, with an article, such as ``a tensor``.
    """

    def with_text(function: _F) -> _F:
        """Add the text."""
        if function.__doc__:
            function.__doc__ += "\n" + _TEXTS[function.__name__].format(form)
        return function

    return with_text


_TEXTS: Final = {
    "solve": """
    The derivative is that of ``Solution.derivative``; at a kink it is that of one side. Second derivatives are refused.

    Args:
        ik: The problem. A small ``tolerance`` gives exact derivatives.
        targets: {} (..., 3) for a position, (..., 3, 3) for a rotation, (..., 4, 4) for both; if several goals take
            targets, a dict of them by goal.
        starts: Joint values (nq,) or (..., nq); the rest pose by default. Not differentiated.
        parameters: A dict of further values to differentiate by, which all problems share: ``"weights"`` of the goals
            (goals,); ``"posture"``, the joint values of a ``RestGoal`` (nq,); ``"offsets"`` of the joints (n, 6), as
            in ``forward``; ``"tools"`` (goals, 6), changes of each goal's frame on its joint: a translation, then a
            rotation vector, in its own axes. The length scale of the problem stays that of ``ik``.
        threads: Number of threads; all cores by default.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a target belongs to no goal.
        UnsupportedError: If the answers have no derivative.
    """,
    "forward": """
    Args:
        skeleton: The skeleton.
        q: Joint values (..., nq), {}. Quaternions are normalised.
        joints: Names, roles or rows of joints, links or sites; None for all joints.
        offsets: Changes of the joints' places (n, 6), for calibration: a translation (length units) and a rotation
            vector, both in the axes of the parent, that are applied to ``rest`` of each joint;
            ``skeleton.with_offsets`` makes the changed skeleton.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a joint does not exist.
    """,
}


def distinct(values: Sequence[Array]) -> list[tuple[list[Array], NDArray[np.int64]]]:
    """Return the distinct combinations of parameter values (B, ...), each with the rows in which it occurs."""
    count = len(values[0]) if values else 0
    if count == 0 or all((value == value[:1]).all() for value in values):
        return [([value[0] if count else np.zeros(value.shape[1:]) for value in values], np.arange(count))]
    flat = np.concatenate([value.reshape(count, -1) for value in values], axis=1)
    _, first, which = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    return [([value[b] for value in values], np.flatnonzero(which.ravel() == k)) for k, b in enumerate(first.tolist())]


def _transforms(R: Array) -> Array:
    """Return rotation matrices as transforms (B, 4, 4)."""
    out = np.tile(np.eye(4), (len(R), 1, 1))
    out[:, :3, :3] = R
    return out


def batch_shape(shapes: Sequence[tuple[int, ...]], solves: Solves) -> tuple[int, ...]:
    """Return the leading axes of targets.

    Raises:
        InputError: If a target has another shape, or their leading axes differ.
    """
    leads: set[tuple[int, ...]] = set()
    for name, shape, form in zip(solves.names, shapes, solves.shapes, strict=True):
        if shape[len(shape) - len(form) :] != form:
            raise InputError(f"shape of the target of {name!r}", value=shape, expected=f"(..., {str(form)[1:-1]})")
        leads.add(shape[: len(shape) - len(form)])
    if len(leads) != 1:
        raise InputError("leading axes of targets", value=sorted(leads), expected="the same for all")
    return leads.pop()


def by_matrix(w: Array, R: Array) -> Array:
    """Return gradients by rotation matrices, (B, 3, 3), given the gradients by world rotation vectors, (B, 3).

    The solvers make matrices orthonormal by Gram-Schmidt. So column 0 turns the frame about y and z, column 1 about x.
    """
    x, y, z = np.einsum("bij,bi->jb", R, w)
    out = np.zeros(R.shape)
    out[:, :, 0] = z[:, None] * R[:, :, 1] - y[:, None] * R[:, :, 2]
    out[:, :, 1] = x[:, None] * R[:, :, 2]
    return out


class Joints:
    """Converts gradients by joint values to gradients by velocities, and back."""

    def __init__(self, skeleton: Skeleton) -> None:
        """Find the scalars and the quaternions."""
        self.nq, self.nv = skeleton.nq, skeleton.nv
        self._scalars: list[tuple[int, int]] = []
        self.quats: list[tuple[int, int]] = []
        at_v = 0
        for row, joint in enumerate(skeleton.joints):
            at_q, size = skeleton.q_slice(row).start, joint.kind.v_size
            turns = joint.kind in (Kind.BALL, Kind.FREE)
            self._scalars += [(at_q + c, at_v + c) for c in range(size - 3 * turns)]
            if turns:
                self.quats.append((at_q + size - 3, at_v + size - 3))
            at_v += size
        self.scalars_only = self._scalars == [(k, k) for k in range(self.nq)] and self.nq == self.nv

    @classmethod
    def of(cls, skeleton: Skeleton) -> Joints:
        """Return the ``Joints`` of a skeleton, from a cache."""
        known = _joints.get(skeleton)
        if known is None:
            known = _joints[skeleton] = cls(skeleton)
        return known

    def to_velocities(self, q: Array, gradient: Array) -> Array:
        """Return gradients by velocities, (B, nv), given gradients by joint values, (B, nq)."""
        if self.scalars_only:
            return gradient
        out = np.zeros((len(q), self.nv))
        for a, b in self._scalars:
            out[:, b] = gradient[:, a]
        for a, b in self.quats:
            for c in range(3):
                out[:, b + c] = 0.5 * (gradient[:, a : a + 4] * _rate(q[:, a : a + 4], c)).sum(1)
        return out

    def to_values(self, q: Array, v: Array) -> Array:
        """Return gradients by joint values, (B, nq), given gradients by velocities, (B, nv)."""
        out = np.zeros((len(q), self.nq))
        for a, b in self._scalars:
            out[:, a] = v[:, b]
        for a, b in self.quats:
            for c in range(3):
                out[:, a : a + 4] += 2.0 * v[:, b + c, None] * _rate(q[:, a : a + 4], c)
        return out


_joints: WeakKeyDictionary[Skeleton, Joints] = WeakKeyDictionary()


def _rate(quats: Array, c: int) -> Array:
    """Return q · (e_c, 0): twice the rate of quaternions that rotate about their axis c."""
    return quat_product(quats, np.broadcast_to(np.eye(4)[c], quats.shape))


class Kinematics:
    """Forward kinematics of a batch, and its gradients by joint values and by offsets (changes of fixed transforms).

    Args:
        skeleton: The skeleton.
        joints: The joints whose transforms are returned; None for all.

    Raises:
        UnknownNameError: If a joint does not exist.
    """

    def __init__(self, skeleton: Any, joints: Sequence[str | int] | None) -> None:
        """Find the joints."""
        check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
        self.skeleton: Skeleton = skeleton
        named = range(len(skeleton)) if joints is None else joints
        places = [skeleton.locate(joint) for joint in named]
        self._rows = [row for row, _ in places]
        self._places = [np.eye(4) if place is None else place for _, place in places]
        self.joints, self.count = Joints.of(skeleton), len(places)

    def batch_shape(self, shape: tuple[int, ...], offsets: tuple[int, ...] | None) -> tuple[int, ...]:
        """Return the leading axes of joint values.

        Raises:
            InputError: If the joint values or the offsets have another shape.
        """
        if shape[-1:] != (self.joints.nq,):
            raise InputError("shape of q", value=shape, expected=f"(..., {self.joints.nq})")
        if offsets is not None and offsets != (len(self.skeleton), 6):
            raise InputError("shape of offsets", value=offsets, expected=f"({len(self.skeleton)}, 6)")
        return shape[:-1]

    @cached_property
    def _followers(self) -> dict[int, tuple[int, float]]:
        """First velocity and ratio of the joint that drives each row."""
        return dict(enumerate(self.skeleton.dof_columns))

    def frames(self, q: Array, offsets: Array | None) -> Array:
        """Return the world frames of all joints, (B, n, 12), after changes ``offsets`` (n, 6) of their transforms."""
        return world_frames(self.skeleton, self.skeleton.follow(np.array(q, np.float64)), offsets)

    def transforms(self, frames: Array) -> Array:
        """Return the transforms of the chosen joints, (B, joints, 4, 4)."""
        out = np.zeros((len(frames), len(self._rows), 4, 4))
        for k, (row, place) in enumerate(zip(self._rows, self._places, strict=True)):
            R = frames[:, row, :9].reshape(-1, 3, 3)
            out[:, k, :3, :3] = R @ place[:3, :3]
            out[:, k, :3, 3] = frames[:, row, 9:] + R @ place[:3, 3]
        out[:, :, 3, 3] = 1.0
        return out

    def gradients(
        self, q: Array, frames: Array, gradient: Array, offsets: Array | None, *, each: bool = False
    ) -> tuple[Array, Array | None]:
        """Return the gradients by joint values, (B, nq), and by offsets, given the gradients by the transforms.

        The gradients by offsets are summed over the batch, (n, 6); with ``each``, each pose has its own, (B, n, 6).
        """
        skeleton, count = self.skeleton, len(q)
        whole = Wrenches(skeleton, frames, offsets)
        T = self.transforms(frames)
        for k, row in enumerate(self._rows):
            turned = np.cross(T[:, k, :3, :3], gradient[:, k, :3, :3], axis=1).sum(2)
            whole.add(row, gradient[:, k, :3, 3], turned, T[:, k, :3, 3])
        whole.accumulate()
        v = np.zeros((count, skeleton.nv))
        at_v = np.cumsum([0, *(joint.kind.v_size for joint in skeleton.joints)])
        for row, joint in enumerate(skeleton.joints):
            F = whole.force[:, row]
            R = frames[:, row, :9].reshape(-1, 3, 3)
            about = whole.torque[:, row] - np.cross(frames[:, row, 9:], F)
            first, ratio = self._followers[row]
            if joint.kind is Kind.HINGE:
                v[:, first] += ratio * np.einsum("bi,bi->b", R @ joint.axis, about)
            elif joint.kind is Kind.SLIDE:
                v[:, first] += ratio * np.einsum("bi,bi->b", R @ joint.axis, F)
            elif joint.kind in (Kind.BALL, Kind.FREE):
                at = int(at_v[row]) + (3 if joint.kind is Kind.FREE else 0)
                v[:, at : at + 3] += np.einsum("bij,bi->bj", R, about)
            if joint.kind is Kind.FREE:
                at = int(at_v[row])
                axes = whole.parent_frame(row)[0]
                v[:, at : at + 3] += np.einsum("bij,bi->bj", axes @ whole.turned(row), F)
        moved = None if offsets is None else whole.by_offsets()
        return self.joints.to_values(q, v), moved if each or moved is None else moved.sum(0)
