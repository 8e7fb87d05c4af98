"""Soles above the floor: how far a body rises, and feet and toes that turn up where they are below it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from synovia.model import Kind
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.planting import raising_angles
from synovia.model.geometry import Array, Bools, quat_product
from synovia.model.pose import clamped, world_frames
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body
from synovia.retargeting.feet import toe_row

_BELOW: Final = 0.002  # leg lengths: accepted depth of a sole below the floor
_EASE: Final = 0.06  # seconds before and after in which a foot begins and ends to turn or rise, twice
_HIGHEST: Final = 0.3  # leg lengths: a body rises at most by this because soles are below the floor in many frames
_USUALLY: Final = 0.9  # share of the frames in which no sole is below the floor after that
_RISES: Final = 0.03  # leg lengths by which it rises at most because of few frames
_MOSTLY: Final = 0.98  # share of the frames in which no sole is below the floor after that
_FOOT: Final = 0.8  # radians by which a foot turns at most, towards level
_TOES: Final = 1.2  # radians by which toes bend up at most
_QUICK: Final = 0.2  # radians by which a foot or toes turn at any speed, as steps of a walk require
_FASTEST: Final = 3.0  # radians per second by which they turn farther, as those of a body that gets up
_NONE: Final = 1e-6  # radians; smaller angles of a live foot count as zero
_ACROSS: Final = 0.7  # cosine between the line across a body and the axis of a hinge that raises toes or heel


def rise_of(target: Body, roles: Collection[str], frames: Array) -> float:
    """Return how far a body has to rise so that its soles are hardly ever below the floor, length units.

    Args:
        target: The body.
        roles: Its feet, by role.
        frames: World frames of the body, (T, m, 12).
    """
    lowest = [sole.lowest(frames, target.basis[:, 1]) for role, sole in target.soles.items() if role in roles]
    if not lowest or target.carrier is None:
        return 0.0
    most, usual = -np.quantile(np.min(lowest, axis=0), (1.0 - _MOSTLY, 1.0 - _USUALLY)) / target.leg - _BELOW
    usual = np.clip(usual, 0.0, _HIGHEST)
    return target.leg * float(usual + np.clip(most - usual, 0.0, _RISES))


def soles_raised(target: Body, roles: Collection[str], q: Array, fps: float) -> tuple[Array, Array]:
    """Turn the feet of a body at the ankles, and bend its toes up, where they are below the floor.

    Feet only turn towards level.

    Args:
        target: The body.
        roles: Its feet, by role.
        q: Joint values, (T, nq); they are returned if no foot turns.
        fps: Frames per second.

    Returns:
        Joint values (T, nq), and the world frames of the body, (T, m, 12).
    """
    return _turned(target, _levers(target, roles), q, world_frames(target.skeleton, q), partial(_smoothed, fps=fps))


class LiveSoles:
    """Feet of a live body that turn, and toes that bend up, where they are below the floor, tick by tick.

    They turn as ``soles_raised`` has it, but as soon as they are below the floor, and return within some ticks.

    Args:
        target: The body.
        roles: Its feet, by role.
        rate: Ticks per second.

    Attributes:
        moves_ankles: Whether turning a foot moves its ankle; it then turns before it is placed.
    """

    def __init__(self, target: Body, roles: Collection[str], rate: float) -> None:
        """Find the joints that turn."""
        self._target, self._levers = target, _levers(target, roles)
        every = [one for part in self._levers for one in part]
        needs = np.zeros((len(every), 4))
        self._each, self._needs = [(one, needs[k : k + 1]) for k, one in enumerate(every)], needs[:, :2]
        self.moves_ankles = any(one.row != target.roles[one.role] for one in self._levers[0])
        self._step, self._left = _FASTEST / rate, float(np.exp(-1.0 / (_EASE * rate)))
        self.reset()

    def reset(self) -> None:
        """Start with feet that do not turn."""
        self._angles: dict[_Lever, Array] = {}
        self._quick = np.inf  # a foot may turn by any angle in the first tick

    def raised(self, q: Array, frames: Array) -> tuple[Array, Array]:
        """Return joint values (nq,) and world frames (m, 12) with feet and toes turned up where they are too low."""
        if not self._angles:
            for lever, out in self._each:
                lever.write_needs(frames[None], out)
            if not self._needs.any():
                self._quick = _QUICK
                return q, frames
        out, turned = _turned(self._target, self._levers, q[None], frames[None], self._next)
        self._quick = _QUICK
        return out[0], turned[0]

    def _next(self, lever: _Lever, needs: Array, rooms: Array) -> Array | None:
        """Return the angle (1,) of a lever in this tick; None for 0."""
        before = self._angles.get(lever)
        if before is None:
            if not needs.any():
                return None
            before = np.zeros((2, 1))
        quick = np.minimum(needs, np.maximum(self._quick, before + self._step))
        angles = np.minimum(np.maximum(quick, self._left * before), rooms)
        if angles.max() < _NONE:
            self._angles.pop(lever, None)
            return None
        self._angles[lever] = angles
        return angles[0] - angles[1]


def _levers(target: Body, roles: Collection[str]) -> tuple[list[_Lever], list[_Lever]]:
    """Return the joints that turn the feet of a body, and those that bend its toes up."""
    heels: list[_Lever] = []
    toes: list[_Lever] = []
    for side in SIDES:
        role = f"{side}_foot"
        if role in roles:
            row = toe_row(target, side)
            ahead = None if row is None else _turning(target, row)
            of_toes = np.isin(target.soles[role].rows, [] if ahead is None else _below(target, ahead))
            ankle = _turning(target, target.roles[role], target.first_row(role))
            heels += [] if ankle is None else [_Lever(target, role, ankle, ~of_toes, _FOOT)]
            toes += [] if ahead is None else [_Lever(target, role, ahead, of_toes, _TOES)]
    return heels, toes


def _turned(
    target: Body,
    levers: tuple[list[_Lever], list[_Lever]],
    q: Array,
    frames: Array,
    chosen: Callable[[_Lever, Array, Array], Array | None],
) -> tuple[Array, Array]:
    """Return joint values (T, nq) and world frames with levers turned by the angles (T,) that ``chosen`` returns."""
    for part in levers:
        before, out = q, q
        for lever in part:
            angle = chosen(lever, *lever.needs(frames))
            if angle is not None:
                out = lever.turned(frames, out, angle)
        if out is not before:
            q = target.skeleton.follow(out)
            frames = world_frames(target.skeleton, q)
    return q, frames


def _smoothed(lever: _Lever, needs: Array, rooms: Array, fps: float) -> Array | None:
    """Return the angles (T,) of a lever in a clip, which begin before they are needed and end after it; None for 0."""
    del lever
    if not needs.any():
        return None
    out = np.zeros(needs.shape[1])
    for sign, need, room in zip((1.0, -1.0), needs, rooms, strict=True):
        if need.any():
            most = _inside(room)
            need = np.minimum(_inside(need), most)
            need = np.minimum(need, _QUICK + _slower(np.maximum(need - _QUICK, 0.0), _FASTEST / fps))
            out += sign * np.minimum(_spread(need, fps), most)
    return out


def _below(target: Body, top: int) -> list[int]:
    """Return a row and those below it."""
    parents = target.skeleton.parents
    return [row for row in range(top, len(parents)) if top in ancestors(parents, row)]


class _Lever:
    """A joint that raises points of a sole.

    Args:
        target: The body.
        role: The foot.
        row: Row of the joint.
        points: Mask of the points of the sole that it raises.
        most: Largest angle by which it turns, radians.

    Attributes:
        role: As given.
        row: As given.
        write_needs: Writes the angles of ``needs`` for world frames to an array, (T, 4).
    """

    def __init__(self, target: Body, role: str, row: int, points: Bools, most: float) -> None:
        """Fill the tables of the kernel."""
        self.role, self.row, self._target, self._axis = role, row, target, _axis(target, row)
        ahead, bounds = target.rest[row, :9].reshape(3, 3).T @ target.basis[:, 2], (-_BELOW * target.leg, most, 0.0)
        numbers, sole = np.array([self._axis, ahead, target.basis[:, 1], bounds]), target.soles[role]
        rows = sole.rows[points].astype(np.int32)
        self.write_needs = raising_angles(row, rows, sole.points[points], numbers)

    def turned(self, frames: Array, q: Array, angle: Array) -> Array:
        """Return joint values (T, nq) with the joint turned by angles (T,), for world frames (T, m, 12)."""
        skeleton, row, local = self._target.skeleton, self.row, self._axis
        joint, at = skeleton.joints[row], skeleton.q_slice(row)
        out = q.copy()
        if joint.kind is Kind.BALL:
            base = frames[:, skeleton.parents[row], :9].reshape(-1, 3, 3) @ joint.rest[:3, :3]
            axis = frames[:, row, :9].reshape(-1, 3, 3) @ local
            half = np.einsum("tji,tj->ti", base, axis) * np.sin(0.5 * angle)[:, None]
            out[:, at] = quat_product(np.concatenate([half, np.cos(0.5 * angle)[:, None]], axis=1), q[:, at])
        else:
            out[:, at.start] += np.sign(joint.axis @ local) * angle
        turned = np.flatnonzero(angle)
        out[turned, at] = clamped(skeleton, out[turned])[:, at]
        return out

    def needs(self, frames: Array) -> tuple[Array, Array]:
        """Return the angles by which the joint has to raise toes and heel, and those by which it can, (2, T) each."""
        out = np.empty((len(frames), 4))
        self.write_needs(frames, out)
        return out[:, :2].T, out[:, 2:].T


def _axis(target: Body, row: int) -> Array:
    """Return the axis about which a joint raises what is ahead of it, (3,) in its frame: of a hinge, its own."""
    right = -(target.rest[row, :9].reshape(3, 3).T @ target.basis[:, 0])
    joint = target.skeleton.joints[row]
    return right if joint.kind is Kind.BALL else np.copysign(1.0, joint.axis @ right) * joint.axis


def _turning(target: Body, row: int, first: int | None = None) -> int | None:
    """Return the row of the joint, of those from ``first`` to a row, that raises what is ahead; None without one."""
    skeleton, right = target.skeleton, -target.basis[:, 0]
    if skeleton.joints[row].kind is Kind.BALL and skeleton.parents[row] >= 0:
        return row
    line = ancestors(skeleton.parents, row)
    line = line[: line.index(row if first is None else first) + 1]
    hinges = [k for k in line if skeleton.joints[k].kind is Kind.HINGE and skeleton.joints[k].mimic is None]
    across = {k: float(target.rest[k, :9].reshape(3, 3) @ _axis(target, k) @ right) for k in hinges}
    best = max(hinges, key=lambda k: across[k], default=None)
    return None if best is None or across[best] < _ACROSS else best


def _slower(values: Array, step: float) -> Array:
    """Return the largest values (T,) up to the given ones that change by at most a step from frame to frame."""
    ramp = step * np.arange(len(values))
    rising = np.minimum.accumulate(values - ramp) + ramp
    return np.asarray(np.minimum.accumulate((rising + ramp)[::-1])[::-1] - ramp, np.float64)


def _spread(values: Array, fps: float) -> Array:
    """Return values (T,) of at least 0 that begin and end earlier and later, and are no smaller anywhere."""
    half = max(1, round(_EASE * fps))
    window = np.hanning(2 * half + 3)[1:-1]
    largest = sliding_window_view(np.pad(values, 2 * half, mode="edge"), 2 * half + 1).max(-1)
    return np.asarray(np.convolve(largest, window / window.sum(), mode="valid"), np.float64)


def _inside(values: Array) -> Array:
    """Return values (T,) whose first and last are as those next to them: clips often begin with a T-pose."""
    return np.pad(values[1:-1], 1, mode="edge") if len(values) > 2 else values
