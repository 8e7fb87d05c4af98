"""Vector-Jacobian products of batches of answers, on all cores: the backward pass of a solve."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.derivative import (
    OF,
    Chart,
    check_differentiable,
    derivative_of_many,
    missed_goals,
    target_parts,
    tool_goals,
)
from synovia.ik.interrupts import new_scratch
from synovia.ik.parallel import checked_threads
from synovia.kernels import layout
from synovia.kernels.packing import table_of
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, exp_matrix
from synovia.model.pose import world_frames
from synovia.model.tables import Ints

_BLOCK: Final = 256  # rows: a further thread is used only if each thread gets this many
_UNSURE: Final = 2.0  # mark of a row that the kernel leaves to ``derivative``


class _Plan(NamedTuple):
    """Values that all products with derivatives of a problem use.

    Args:
        plain: Whether the kernel differentiates its answers: positions and rotations, all of one level.
        to_v: (nv, columns) matrix from the Jacobian columns to velocities.
        columns: Indices of the targets' parameters among six columns for each goal.
    """

    plain: bool
    to_v: Array
    columns: Ints


_known: WeakKeyDictionary[CompiledProblem, _Plan] = WeakKeyDictionary()


def _plan(ik: CompiledProblem) -> _Plan:
    """Return the plan of a problem, from a cache."""
    known = _known.get(ik)
    if known is None:
        known = _known[ik] = _Plan(_is_plain(ik), Chart(ik).to_v, target_columns(ik))
    return known


def _is_plain(ik: CompiledProblem) -> bool:
    """Return whether the kernel differentiates the answers of a problem."""
    reduced = ik.reduced
    limited_balls = (reduced.variables[:, layout.BLOCK] != layout.SCALAR) & (
        reduced.limits[:, layout.IS_LIMITED] != 0.0
    )
    return (
        reduced.pose_only
        and len(reduced.goals.levels) == 2
        and not reduced.posture[:, layout.REST_WEIGHT].any()
        and 0 < reduced.columns <= layout.NEWTON_COLUMNS
        and not (ik.method.supports_priorities and limited_balls.any())
    )


def pull_back(
    ik: CompiledProblem, rows: Array, gradient: Array, of: str = "targets", threads: int | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Return gradients by the parameters, (B, parameters), given gradients by velocities, (B, nv), and kinks (B,).

    The kernel returns gradients by the targets, and the motion H⁻¹ v of misses. Moving a goal's frame acts like moving
    its target back, so the gradients by tools and offsets follow from those by the targets. At a miss, the errors pull
    at the goals, and a displaced joint changes the motion below it; see ``_by_frames``.

    Args:
        ik: The problem.
        rows: Rows of results, (B, m). Rows that are not finite get gradients of NaN.
        gradient: Gradient of each problem by the velocities of ``skeleton.dof_names``.
        of: The parameters, as in ``Solution.derivative``.
        threads: Number of threads; None for all cores.

    Raises:
        InputError: If the kind of parameters is unknown.
        UnsupportedError: If the problem is not supported.
    """
    check_differentiable(ik, of)
    if of == "posture" or not _plan(ik).plain:
        whole = derivative_of_many(ik, rows, of)
        return np.einsum("bv,bvp->bp", gradient, np.asarray(whole)), np.asarray(whole.kink, bool)
    by_targets, marks, motion = _pulled(ik, rows, gradient, checked_threads(threads))
    kinks, unsure = marks[:, 1] == 1.0, marks[:, 1] == _UNSURE
    if of == OF[0]:
        columns = _plan(ik).columns
        out = by_targets if len(columns) == by_targets.shape[1] else by_targets[:, columns]
    else:
        kinks &= of != "weights"
        out = _by_frames(ik, rows, by_targets, np.where(marks[:, :1] != 0.0, motion, 0.0), of)
    again = np.flatnonzero(unsure)
    if len(again):
        some = derivative_of_many(ik, rows[again], of)
        out[again] = np.einsum("bv,bvp->bp", gradient[again], np.asarray(some))
        kinks[again] = some.kink
    return out, kinks


def _pulled(ik: CompiledProblem, rows: Array, gradient: Array, threads: int) -> tuple[Array, Array, Array]:
    """Return gradients by target positions and rotations, (B, 6 goals); marks (missed, kink), (B, 2); motions H⁻¹ v."""
    from synovia.kernels.jacobian.pull_back import pull_back as kernel

    count, goals = len(rows), len(ik.goals)
    first = rows.shape[1] - layout.TRANSFORM_WIDTH * goals
    targets = np.ascontiguousarray(rows[:, first:]).reshape(count, goals, layout.TRANSFORM_WIDTH)
    q = np.ascontiguousarray(rows[:, layout.OUT_HEAD : first - 2 * goals])
    v = np.ascontiguousarray(gradient @ _plan(ik).to_v)
    marks = np.zeros((count, 2))
    marks[:, 0] = missed_goals(ik, rows).any(axis=1)
    out = np.empty((count, 6 * goals))
    size = -(-count // max(1, min(threads, count // _BLOCK)))

    def block(begin: int) -> None:
        """Pull back one block."""
        part = slice(begin, begin + size)
        scratch = new_scratch(ik.scratch_size)
        kernel(ik.ints, ik.floats, targets[part], q[part], scratch, v[part], marks[part], out[part])

    if count > size:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(block, range(0, count, size)))
    elif count:
        block(0)
    return out, marks, v


def target_columns(ik: CompiledProblem) -> Ints:
    """Return the indices, among six columns for each goal, of those that are parameters of targets."""
    parts = target_parts(ik)
    return np.array(
        [
            6 * g + 3 * turns + c
            for g, given in enumerate(parts)
            for turns, part in enumerate((POSITION, ROTATION))
            if given & part
            for c in range(3)
        ],
        np.int32,
    )


def _by_frames(ik: CompiledProblem, rows: Array, by_targets: Array, motion: Array, of: str) -> Array:
    """Return the gradients by weights, tools or offsets, given those by the targets.

    ``motion`` is y = H⁻¹ v at misses, by the columns, and zero elsewhere. There the gradient is the derivative of the
    power of the errors' pull (F, τ) along y. A displacement changes the errors, which is the part of the targets. It
    also moves all joints below it, so the power changes by the spatial cross product of the pull and the twist of y.
    """
    count, goals = len(rows), ik.goals
    frames = world_frames(ik.skeleton, rows[:, ik.places])
    omega, V = twists(ik.skeleton, frames, motion @ _plan(ik).to_v.T)
    data = table_of(ik.ints, ik.floats, "goal_data")
    factors = (data[:, layout.POSITION_WEIGHT] / ik.reach) ** 2, data[:, layout.ROTATION_WEIGHT] ** 2
    targets, parts = ik.targets_in(rows).reshape(count, -1, 4, 4), target_parts(ik)
    whole, pulls = Wrenches(ik.skeleton, frames), Wrenches(ik.skeleton, frames)
    tools = tool_goals(ik)
    weights, out = np.zeros((count, len(goals))), np.zeros((count, 6 * len(tools)))
    for k, g in enumerate(tools):
        R, p = frame_of_goal(ik, frames, g)
        row, T = ik.rows[g], targets[:, g]
        w, velocity = omega[:, row], V[:, row] + np.cross(omega[:, row], p)
        force = factors[0][g] * (T[:, :3, 3] - p) if parts[g] & POSITION else np.zeros_like(p)
        turn = _rotation_vectors(T[:, :3, :3] @ R.transpose(0, 2, 1)) if parts[g] & ROTATION else np.zeros_like(p)
        torque = factors[1][g] * turn
        weights[:, g] = ((force * velocity).sum(1) + (torque * w).sum(1)) / goals[g].weight
        by_place, by_turn = -by_targets[:, 6 * g : 6 * g + 3], -by_targets[:, 6 * g + 3 : 6 * g + 6]
        out[:, 6 * k : 6 * k + 3] = np.einsum("bij,bi->bj", R, by_place + np.cross(force, w))
        out[:, 6 * k + 3 : 6 * k + 6] = np.einsum("bij,bi->bj", R, by_turn + np.cross(torque, w))
        whole.add(row, by_place, by_turn + np.cross(velocity, force), p)
        pulls.add(row, force, torque, p)
    if of != "offsets":
        return weights if of == "weights" else out
    whole.accumulate()
    pulls.accumulate()
    for row, parent in enumerate(ik.skeleton.parents):
        if parent >= 0:
            w, force = omega[:, parent], pulls.force[:, row]
            whole.force[:, row] += np.cross(force, w)
            whole.torque[:, row] += np.cross(pulls.torque[:, row], w) + np.cross(force, V[:, parent])
    return whole.by_offsets()[:, ik.reduced.joints].reshape(count, 6 * len(ik.reduced.joints))


def twists(skeleton: Skeleton, frames: Array, v: Array) -> tuple[Array, Array]:
    """Return angular velocities, and velocities at the world origin, of all bodies, (B, n, 3), for v (B, nv)."""
    omega, V = np.zeros((2, *frames.shape[:2], 3))
    at = 0
    for row, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        size, kind = joint.kind.v_size, joint.kind
        own, R, place = v[:, at : at + size], frames[:, row, :9].reshape(-1, 3, 3), frames[:, row, 9:]
        at += size
        if parent >= 0:
            omega[:, row], V[:, row] = omega[:, parent], V[:, parent]
        if kind is Kind.FREE:
            outer = np.eye(3) if parent < 0 else frames[:, parent, :9].reshape(-1, 3, 3)
            V[:, row] += np.einsum("...ij,...j->...i", outer @ joint.rest[:3, :3], own[:, :3])
        if kind is Kind.SLIDE:
            V[:, row] += own * (R @ joint.axis)
        elif size:
            turn = own * (R @ joint.axis) if kind is Kind.HINGE else np.einsum("bij,bj->bi", R, own[:, -3:])
            omega[:, row] += turn
            V[:, row] += np.cross(place, turn)
    return omega, V


def _rotation_vectors(R: Array) -> Array:
    """Return rotations (B, 3, 3) as rotation vectors (B, 3)."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def frame_of_goal(ik: CompiledProblem, frames: Array, g: int) -> tuple[Array, Array]:
    """Return the rotation (B, 3, 3) and the position (B, 3) of a goal's frame, given the world frames of all joints."""
    row, frame = ik.rows[g], ik.goals[g].frame
    R = frames[:, row, :9].reshape(-1, 3, 3)
    return R @ frame[:3, :3], frames[:, row, 9:] + R @ frame[:3, 3]


class Wrenches:
    """Gradients by motions of the joints' frames, as forces and torques about the origin of the world.

    Args:
        skeleton: The skeleton.
        frames: World frames of all joints, (B, n, 12).
        offsets: Changes of the joints' fixed offsets, (n, 6), with which ``frames`` were computed; None for no change.
    """

    def __init__(self, skeleton: Skeleton, frames: Array, offsets: Array | None = None) -> None:
        """Start with zero forces and torques."""
        self._skeleton, self._frames = skeleton, frames
        self.offsets = np.zeros((len(skeleton), 6)) if offsets is None else offsets
        self.force, self.torque = np.zeros((2, *frames.shape[:2], 3))

    def add(self, row: int, force: Array, torque: Array, place: Array) -> None:
        """Add a force at a world point ``place``, and a torque, (B, 3) each, that act on a joint."""
        self.force[:, row] += force
        self.torque[:, row] += torque + np.cross(place, force)

    def accumulate(self) -> None:
        """Add each joint's force and torque to its parent, so that a joint has the sum over its descendants."""
        for row in range(len(self._skeleton) - 1, 0, -1):
            parent = self._skeleton.parents[row]
            if parent >= 0:
                self.force[:, parent] += self.force[:, row]
                self.torque[:, parent] += self.torque[:, row]

    def parent_frame(self, row: int) -> tuple[Array, Array]:
        """Return the axes of a joint's parent, (B, 3, 3), and the joint's position for its rest value, (B, 3)."""
        parent, frames = self._skeleton.parents[row], self._frames
        rest = self._skeleton.joints[row].rest[:3, 3] + self.offsets[row, :3]
        if parent < 0:
            return np.broadcast_to(np.eye(3), (len(frames), 3, 3)), np.broadcast_to(rest, (len(frames), 3))
        axes = frames[:, parent, :9].reshape(-1, 3, 3)
        return axes, frames[:, parent, 9:] + axes @ rest

    def by_offsets(self) -> Array:
        """Return the gradients by the offsets, (B, n, 6)."""
        out = np.empty((*self.force.shape[:2], 6))
        for row in range(len(self._skeleton)):
            axes, place = self.parent_frame(row)
            force = self.force[:, row]
            local = np.einsum("bij,bi->bj", axes, self.torque[:, row] - np.cross(place, force))
            out[:, row, :3] = np.einsum("bij,bi->bj", axes, force)
            out[:, row, 3:] = local @ left_jacobian(self.offsets[row, 3:])
        return out

    def turned(self, row: int) -> Array:
        """Return the rotation from the parent's axes to a joint's axes at rest."""
        turn: Array = exp_matrix(self.offsets[row, 3:]) @ self._skeleton.joints[row].rest[:3, :3]
        return turn


def left_jacobian(w: Array) -> Array:
    """Return J with exp(w + d) = exp(J d) exp(w) to first order."""
    angle = float(np.linalg.norm(w))
    K = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    b = 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2
    c = (1.0 - np.sinc(angle / np.pi)) / angle**2 if angle > 1e-3 else 1.0 / 6.0 - angle**2 / 120.0
    return np.eye(3) + b * K + c * K @ K
