"""Soles above the floor: how far a body rises, and feet and toes that turn up where they are below it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from synovia.model import Kind
from synovia.model.anatomy.names import SIDES
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
    heels: list[_Lever] = []
    toes: list[_Lever] = []
    for side in SIDES:
        role = f"{side}_foot"
        if role in roles:
            row = toe_row(target, side)
            ahead = None if row is None else _turning(target, row)
            of_toes = np.isin(target.soles[role].rows, [] if ahead is None else _below(target, ahead))
            ankle = _turning(target, target.roles[role], target.first_row(role))
            heels += [] if ankle is None else [_Lever(role, ankle, ~of_toes, _FOOT)]
            toes += [] if ahead is None else [_Lever(role, ahead, of_toes, _TOES)]
    frames = world_frames(target.skeleton, q)
    for levers in (heels, toes):
        before, out = q, q
        for lever in levers:
            out = lever.turned(target, frames, out, fps)
        if out is not before:
            q = target.skeleton.follow(out)
            frames = world_frames(target.skeleton, q)
    return q, frames


def _below(target: Body, top: int) -> list[int]:
    """Return a row and those below it."""
    parents = target.skeleton.parents
    return [row for row in range(top, len(parents)) if top in ancestors(parents, row)]


@dataclass(frozen=True, eq=False)
class _Lever:
    """A joint that raises points of a sole.

    Args:
        role: The foot.
        row: Row of the joint.
        points: Mask of the points of the sole that it raises.
        most: Largest angle by which it turns, radians.
    """

    role: str
    row: int
    points: Bools
    most: float

    def turned(self, target: Body, frames: Array, q: Array, fps: float) -> Array:
        """Return joint values (T, nq) where the joint has raised its points above the floor, for world frames."""
        skeleton, row = target.skeleton, self.row
        joint, at, local = skeleton.joints[row], skeleton.q_slice(row), _axis(target, row)
        angle = self.angle(target, frames, fps)
        if not angle.any():
            return q
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

    def angle(self, target: Body, frames: Array, fps: float) -> Array:
        """Return by how much the joint turns, (T,), radians; positive angles raise the toes."""
        up, sole, low, row = target.basis[:, 1], target.soles[self.role], _BELOW * target.leg, self.row
        out, heights = np.zeros(len(frames)), sole.heights(frames, up)
        at, which = np.nonzero((heights < -low) & self.points)
        if not len(at):
            return out
        turns = frames[:, row, :9].reshape(-1, 3, 3)
        ahead = turns @ (target.rest[row, :9].reshape(3, 3).T @ target.basis[:, 2])
        pitch = np.arcsin(np.clip(ahead @ up, -1.0, 1.0))
        able = np.minimum(np.abs(pitch), self.most)
        own, taken = (turns @ _axis(target, row))[at], frames[at, sole.rows[which]]
        point = np.einsum("mij,mj->mi", taken[:, :9].reshape(-1, 3, 3), sole.points[which]) + taken[:, 9:]
        point = point - frames[at, row, 9:]
        w = np.sum(point * np.cross(up, own), axis=1)
        base = frames[at, row, 9:] @ up + np.sum(point * own, axis=1) * (own @ up)
        v = heights[at, which] - base  # the height is base + v cos + w sin of the angle
        far = np.arccos(np.clip((-low - base) / np.maximum(np.hypot(v, w), 1e-12), -1.0, 1.0))
        least = np.abs(np.arctan2(w, v)) - far  # angle at which a point is at the floor; at its highest if it is lower
        for sign in (1.0, -1.0):
            need = np.zeros(len(frames))
            np.maximum.at(need, at, np.where(sign * w > 0.0, least, 0.0))
            if need.any():
                room = _inside(np.where(sign * pitch < 0.0, able, 0.0))
                need = np.minimum(_inside(need), room)
                need = np.minimum(need, _QUICK + _slower(np.maximum(need - _QUICK, 0.0), _FASTEST / fps))
                out += sign * np.minimum(_spread(need, fps), room)
        return out


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
