"""Two hands on one prop: where the source keeps the distance of its hands while they move, so does the target."""

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
_LASTS: Final = 1.0  # seconds for which hands hold a prop at least
_CONSTANT: Final = 0.02  # of a leg: the distance of hands on a prop changes less
_MOVES: Final = 8.0  # times this, both hands move relative to the trunk
_KEPT: Final = 0.02  # of the distance that the hands should have: the finding permits it, and what the source does
_EXACT: Final = 0.002  # of a leg: hands whose distance changes less, apart from that of the source, are not moved
_FADES: Final = 0.2  # seconds in which the hands come to their distance and leave it


@dataclass(frozen=True, eq=False)
class Prop:
    """Two hands that hold one prop.

    Args:
        span: First frame and end.
        distance: Distance that the hands of the target should have, length units.
        spread: How far the distance of the source's hands changes, length units of the target.
    """

    span: tuple[int, int]
    distance: float
    spread: float = 0.0

    def lost(self, target: Body, frames: Array) -> tuple[tuple[int, ...], float]:
        """Return the frames in which hands are not as far apart, and by how much they are off at most, length units.

        Args:
            target: The body.
            frames: Its world frames (T, n, 12).
        """
        first, end = self.span
        off = np.abs(_distance(frames[first:end], _hands(target) or (0, 0)) - self.distance)
        most = min(_CONSTANT * target.leg, max(_KEPT * self.distance, self.spread + _EXACT * target.leg))
        return tuple((first + np.flatnonzero(off > most)).tolist()), float(off.max(initial=0.0))


def props_held(source: Body, frames: Array, fps: float) -> Spans:
    """Return the spans (first frame, end) in which the hands hold one prop: constantly apart, while both move.

    Args:
        source: The body that moves.
        frames: Its world frames (T, n, 12).
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
    """Return the distance of the hands, (T,), in lengths of a leg, for world frames (T, n, 12); 0 without hands."""
    hands = _hands(body)
    return np.zeros(len(frames)) if hands is None else _distance(frames, hands) / body.leg


def keep_props(target: Body, q: Array, fps: float, spans: Spans, held: Array) -> tuple[Array, tuple[Prop, ...]]:
    """Return joint values (T, nq) in which the hands stay apart by one distance in each span, and all props.

    It is the distance that they have most of the time. Both hands give way by half, and only arms move. Where the
    distance changes no more than that of the source, they are left as they are.

    Args:
        target: The body that follows.
        q: Joint values, (T, nq).
        fps: Frames per second.
        spans: See ``props_held``.
        held: Distance of the source's hands; see ``hands_apart``.
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
    """Return the rows of both hands; None without both arms, each with its own hand."""
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
