"""Two hands on one prop: if the source's hands keep their distance while they move, the target's hands keep theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from synovia.clips.editing import edit
from synovia.goals import Goal, PositionGoal, RotationGoal
from synovia.layers import Layer
from synovia.model.anatomy.contacts import Spans
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body

_TRUNK: Final = ("upper_chest", "chest", "spine", "hips")
_LASTS: Final = 1.0  # seconds: hands hold a prop at least this long
_CONSTANT: Final = 0.02  # leg lengths: largest change of the hands' distance
_MOVES: Final = 8.0  # both hands move relative to the trunk by more than this many times ``_CONSTANT``
_KEPT: Final = 0.02  # fraction of the hands' distance: smaller deviations are not reported, nor those of the source
_EXACT: Final = 0.002  # leg lengths: hands stay if their distance changes by less than this beyond the source's change
_FADES: Final = 0.2  # seconds over which the hands' correction fades in and out


@dataclass(frozen=True, eq=False)
class Prop:
    """Two hands that hold one prop.

    Args:
        span: First frame, and the frame after the last.
        distance: Distance of the target's hands, length units.
        spread: Change of the distance of the source's hands, length units of the target.
    """

    span: tuple[int, int]
    distance: float
    spread: float = 0.0

    def lost(self, target: Body, frames: Array) -> tuple[tuple[int, ...], float]:
        """Return the frames in which the hands' distance is wrong, and the largest deviation, length units.

        Args:
            target: The body that follows.
            frames: World frames of the target, (T, n, 12).
        """
        first, end = self.span
        off = np.abs(_distance(frames[first:end], _hands(target) or (0, 0)) - self.distance)
        most = min(_CONSTANT * target.leg, max(_KEPT * self.distance, self.spread + _EXACT * target.leg))
        return tuple((first + np.flatnonzero(off > most)).tolist()), float(off.max(initial=0.0))


def props_held(source: Body, frames: Array, fps: float) -> Spans:
    """Return the spans (first frame, end) in which both hands hold one prop: they move, but keep their distance.

    Args:
        source: The body whose motion is retargeted.
        frames: World frames of the source, (T, n, 12).
        fps: Frames per second.
    """
    hands, least = _hands(source), max(round(_LASTS * fps), 2)
    trunk = next((source.roles[role] for role in _TRUNK if role in source.roles), None)
    if hands is None or trunk is None or len(frames) < least:
        return []
    apart = _distance(frames, hands)
    most = _CONSTANT * source.leg
    windows = sliding_window_view(apart, least)
    steady = np.ptp(windows, axis=1) <= most
    if not steady.any():
        return []
    turn, place = frames[:, trunk, :9].reshape(-1, 3, 3), frames[:, trunk, 9:]
    own = [np.einsum("tji,tj->ti", turn, frames[:, row, 9:] - place) for row in hands]
    out: Spans = []
    first = 0
    while first + least <= len(apart):
        if not steady[first]:
            first += 1
            continue
        end = first + least
        low, high = float(windows[first].min()), float(windows[first].max())
        while end < len(apart) and max(high, apart[end]) - min(low, apart[end]) <= most:
            low, high, end = min(low, float(apart[end])), max(high, float(apart[end])), end + 1
        if all(float(np.linalg.norm(np.ptp(place[first:end], axis=0))) > _MOVES * most for place in own):
            out.append((first, end))
            first = end
        else:
            first += 1
    return out


def hands_apart(body: Body, frames: Array) -> Array:
    """Return the distance of the hands, (T,), leg lengths, for world frames (T, n, 12); 0 without two hands."""
    hands = _hands(body)
    return np.zeros(len(frames)) if hands is None else _distance(frames, hands) / body.leg


def keep_props(target: Body, q: Array, fps: float, spans: Spans, held: Array) -> tuple[Array, tuple[Prop, ...]]:
    """Return joint values (T, nq) in which the hands keep one distance in each span, and the props of all spans.

    The distance is the median over the span. Each hand moves by half of the correction, and only arms move. If the
    distance changes no more than the source's does, the hands stay as they are.

    Args:
        target: The body that follows.
        q: Joint values, (T, nq).
        fps: Frames per second.
        spans: See ``props_held``.
        held: Distance of the source's hands in each frame, (T,), leg lengths; see ``hands_apart``.
    """
    hands, props = _hands(target), list[Prop]()
    if hands is None:
        return q, ()
    skeleton = target.skeleton
    arms: list[str | int] = []
    for side, hand in zip(SIDES, hands, strict=True):
        line = ancestors(skeleton.parents, hand)
        arms += [skeleton.address(row) for row in line[: line.index(target.first_row(f"{side}_upper_arm")) + 1]]
    for first, end in spans:
        motion = Motion(skeleton, q, fps)
        frames = motion.frames()[first:end][:, list(hands)]
        way = frames[:, 0, 9:] - frames[:, 1, 9:]
        apart = np.linalg.norm(way, axis=1)
        distance, spread = float(np.median(apart)), float(np.ptp(held[first:end])) * target.leg
        if not apart.min() > 0.0:
            continue
        props.append(Prop((first, end), distance, spread))
        if np.ptp(apart) <= spread + _EXACT * target.leg:
            continue
        half, middle = 0.5 * (distance / apart)[:, None] * way, frames[:, :, 9:].mean(axis=1)
        goals: list[Goal] = []
        targets: dict[str, Array] = {}
        for k, row in enumerate(hands):
            goals += [PositionGoal(row, name=f"place {k}"), RotationGoal(row, name=f"turn {k}", priority=1)]
            targets[f"place {k}"] = middle + (half if k == 0 else -half)
            targets[f"turn {k}"] = frames[:, k, :9].reshape(-1, 3, 3)
        layer = Layer(targets, goals, frames=(first, end - 1), blend=round(_FADES * fps), moving=arms)
        q = np.array(edit(motion, layer, feet=()).motion.q)
    return q, tuple(props)


def _hands(body: Body) -> tuple[int, int] | None:
    """Return the rows of both hands; None if the body lacks an arm or a hand."""
    needed = [f"{side}_{part}" for side in SIDES for part in ("upper_arm", "lower_arm", "hand")]
    if any(role not in body.roles for role in needed):
        return None
    hands = body.roles["left_hand"], body.roles["right_hand"]
    lines = [ancestors(body.skeleton.parents, hand) for hand in hands]
    arms = [body.first_row(f"{side}_upper_arm") for side in SIDES]
    return hands if all(arm in line for arm, line in zip(arms, lines, strict=True)) else None


def _distance(frames: Array, hands: tuple[int, int]) -> Array:
    """Return the distance of the hands, (T,), for world frames (T, n, 12)."""
    return np.linalg.norm(frames[:, hands[0], 9:] - frames[:, hands[1], 9:], axis=1)
