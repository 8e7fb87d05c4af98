"""What the functions of PyTorch and JAX share: solves and forward kinematics of batches as arrays, and their gradients.

Gradients by joint values are those by velocities, written as joint values: for a unit quaternion, the gradient that is
tangent to the sphere. Gradients by a transform are those by its motion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind
from synovia.errors import InputError, UnknownNameError
from synovia.facade import IK
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.derivative import check_differentiable, target_parts
from synovia.ik.solution import Solutions
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, exp_matrix, quat_product
from synovia.model.pose import world_frames

_SHAPES = {POSITION: (3,), ROTATION: (3, 3), POSITION | ROTATION: (4, 4)}


class Solves:
    """Solves of one ``IK`` with targets as arrays, one for each goal that takes a target.

    Args:
        ik: The problem.
        names: The goals of the targets; None if the only goal that takes one gets it.

    Raises:
        InputError: If the goals are not those that take a target.
        UnsupportedError: If the answers have no derivative.
    """

    def __init__(self, ik: Any, names: Sequence[str] | None) -> None:
        """Match the targets with the goals."""
        check_kind("ik", ik, IK, "sy.IK(skeleton, goals) makes one")
        self.ik: IK = ik
        problem = ik.problem
        check_differentiable(problem, "targets")
        parts = target_parts(problem)
        labels = {goal.label: g for g, (goal, part) in enumerate(zip(problem.goals, parts, strict=True)) if part}
        if names is None:
            if len(labels) != 1:
                raise InputError("targets", expected=f"a dict with {', '.join(map(repr, labels))}")
            names = list(labels)
        for name in names:
            if name not in labels:
                known = ", ".join(map(repr, labels))
                raise UnknownNameError(f"no goal {name!r} takes a target; the goals are {known}")
        self.names = list(names)
        self.shapes = [_SHAPES[parts[labels[name]]] for name in names]
        starts = np.cumsum([0, *(3 * part.bit_count() for part in parts)])
        self._parts = [(labels[name], parts[labels[name]], int(starts[labels[name]])) for name in names]
        self.nq = problem.skeleton.nq
        self._joints = Joints(problem.skeleton)

    def rows(self, targets: Sequence[Array], starts: Array | None, threads: int | None = None) -> Array:
        """Return the rows of results for targets (B, ...), see ``CompiledProblem.new_rows``."""
        given = {
            name: _transforms(values) if parts == ROTATION else np.ascontiguousarray(values)
            for name, (_, parts, _), values in zip(self.names, self._parts, targets, strict=True)
        }
        return self.ik.solve_many(given, starts, threads=threads).table

    def q(self, rows: Array) -> Array:
        """Return the joint values in rows of results, (B, nq)."""
        return rows[:, self.ik.problem.places].copy()

    def gradients(
        self, rows: Array, gradient: Array, threads: int | None = None
    ) -> tuple[list[Array], NDArray[np.bool_]]:
        """Return the gradients by the targets given those by the joint values (B, nq), and which rows have a kink."""
        many = Solutions(self.ik.problem, rows, self.ik.problem.rest)
        found, kinks = many.pull_back(self._joints.to_velocities(many.q, gradient), threads=threads)
        transforms = many.targets
        out: list[Array] = []
        for (g, parts, at), shape in zip(self._parts, self.shapes, strict=True):
            if parts == POSITION:
                out.append(found[:, at : at + 3])
                continue
            first = at + (3 if parts & POSITION else 0)
            turned = by_matrix(found[:, first : first + 3], transforms[:, g, :3, :3])
            if parts == ROTATION:
                out.append(turned)
                continue
            T = np.zeros((len(rows), *shape))
            T[:, :3, :3], T[:, :3, 3] = turned, found[:, at : at + 3]
            out.append(T)
        return out, kinks


def _transforms(R: Array) -> Array:
    """Return rotation matrices as transforms (B, 4, 4)."""
    out = np.tile(np.eye(4), (len(R), 1, 1))
    out[:, :3, :3] = R
    return out


def by_goal(targets: Any) -> tuple[list[str] | None, list[Any]]:
    """Return the names and the values of targets: a dict of them by goal, or one without a name."""
    if not isinstance(targets, Mapping):
        return None, [targets]
    named = cast("Mapping[str, Any]", targets)
    return list(named), list(named.values())


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
    """Return gradients by matrices (B, 3, 3) near rotations R, given those by rotation vectors in the world, (B, 3).

    The solvers make matrices orthonormal by Gram-Schmidt. So column 0 turns the frame about y and z, column 1 about x.
    """
    x, y, z = np.einsum("bij,bi->jb", R, w)
    out = np.zeros(R.shape)
    out[:, :, 0] = z[:, None] * R[:, :, 1] - y[:, None] * R[:, :, 2]
    out[:, :, 1] = x[:, None] * R[:, :, 2]
    return out


class Joints:
    """Converts gradients by joint values to those by velocities, and back."""

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

    def to_velocities(self, q: Array, gradient: Array) -> Array:
        """Return gradients by velocities (B, nv), given those by joint values (B, nq)."""
        out = np.zeros((len(q), self.nv))
        for a, b in self._scalars:
            out[:, b] = gradient[:, a]
        for a, b in self.quats:
            for c in range(3):
                out[:, b + c] = 0.5 * (gradient[:, a : a + 4] * _rate(q[:, a : a + 4], c)).sum(1)
        return out

    def to_values(self, q: Array, v: Array) -> Array:
        """Return gradients by joint values (B, nq), given those by velocities (B, nv)."""
        out = np.zeros((len(q), self.nq))
        for a, b in self._scalars:
            out[:, a] = v[:, b]
        for a, b in self.quats:
            for c in range(3):
                out[:, a : a + 4] += 2.0 * v[:, b + c, None] * _rate(q[:, a : a + 4], c)
        return out


def _rate(quats: Array, c: int) -> Array:
    """Return q · (e_c, 0): twice the rate of quaternions that rotate about their axis c."""
    return quat_product(quats, np.broadcast_to(np.eye(4)[c], quats.shape))


class Kinematics:
    """Forward kinematics of a batch, and its gradients by the joint values and by offsets of the joints' places.

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
        self.joints, self.count = Joints(skeleton), len(places)

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
        """Return the world frames of all joints, (B, n, 12), with offsets (n, 6) of their places."""
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
        """Return the gradients by joint values (B, nq), and by offsets, given those by the transforms.

        Those by offsets are summed over the batch, (n, 6), or with ``each`` those of each pose, (B, n, 6).
        """
        skeleton, count = self.skeleton, len(q)
        force, torque = np.zeros((count, len(skeleton), 3)), np.zeros((count, len(skeleton), 3))
        T = self.transforms(frames)
        for k, row in enumerate(self._rows):
            f = gradient[:, k, :3, 3]
            turned = np.cross(T[:, k, :3, :3], gradient[:, k, :3, :3], axis=1).sum(2)
            force[:, row] += f
            torque[:, row] += turned + np.cross(T[:, k, :3, 3], f)  # about the origin of the world
        by_offsets = None if offsets is None else np.zeros((count, len(skeleton), 6))
        v = np.zeros((count, skeleton.nv))
        at_v = np.cumsum([0, *(joint.kind.v_size for joint in skeleton.joints)])
        for row in range(len(skeleton) - 1, -1, -1):
            joint, parent = skeleton.joints[row], skeleton.parents[row]
            F, N, o = force[:, row], torque[:, row], frames[:, row, 9:]
            R = frames[:, row, :9].reshape(-1, 3, 3)
            about = N - np.cross(o, F)
            first, ratio = self._followers[row]
            if joint.kind is Kind.HINGE:
                v[:, first] += ratio * np.einsum("bi,bi->b", R @ joint.axis, about)
            elif joint.kind is Kind.SLIDE:
                v[:, first] += ratio * np.einsum("bi,bi->b", R @ joint.axis, F)
            elif joint.kind in (Kind.BALL, Kind.FREE):
                at = int(at_v[row]) + (3 if joint.kind is Kind.FREE else 0)
                v[:, at : at + 3] += np.einsum("bij,bi->bj", R, about)
            outer = np.broadcast_to(np.eye(3), R.shape) if parent < 0 else frames[:, parent, :9].reshape(-1, 3, 3)
            place = np.zeros((count, 3)) if parent < 0 else frames[:, parent, 9:]
            if joint.kind is Kind.FREE:
                at = int(at_v[row])
                turn = np.eye(3) if offsets is None else exp_matrix(offsets[row, 3:])
                v[:, at : at + 3] += np.einsum("bij,bi->bj", outer @ turn @ joint.rest[:3, :3], F)
            if by_offsets is not None and offsets is not None:
                by_offsets[:, row, :3] = np.einsum("bij,bi->bj", outer, F)
                shifted = place + np.einsum("bij,j->bi", outer, joint.rest[:3, 3] + offsets[row, :3])
                local = np.einsum("bij,bi->bj", outer, N - np.cross(shifted, F))
                by_offsets[:, row, 3:] = local @ left_jacobian(offsets[row, 3:])
            if parent >= 0:
                force[:, parent] += F
                torque[:, parent] += N
        return self.joints.to_values(q, v), by_offsets if each or by_offsets is None else by_offsets.sum(0)


def left_jacobian(w: Array) -> Array:
    """Return J with exp(w + d) = exp(J d) exp(w) to first order."""
    angle = float(np.linalg.norm(w))
    K = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    b = 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2
    c = (1.0 - np.sinc(angle / np.pi)) / angle**2 if angle > 1e-3 else 1.0 / 6.0 - angle**2 / 120.0
    return np.eye(3) + b * K + c * K @ K
