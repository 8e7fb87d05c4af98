"""Apply fitted fingers to the hands of a body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from synovia.clips.hands.bones import FingerBones, HandBones, hands_of_body
from synovia.clips.hands.carrying import matched, middle_of, partners
from synovia.clips.hands.measured import HandFit
from synovia.clips.hands.pursuing import turn
from synovia.errors import InputError, UnsupportedError
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, matrix_to_quat
from synovia.model.pose import clamped, world_frames
from synovia.model.root import free_root
from synovia.model.tree import ancestors
from synovia.text import listed


def turned_hands(skeleton: Skeleton, q: Array, fits: Mapping[str, HandFit], fps: float) -> tuple[Array, list[str]]:
    """Return joint values (T, nq) with hands and fingers that follow fits, and notes about fingers that cannot rotate.

    Args:
        skeleton: The body.
        q: Joint values of the body, (T, nq).
        fits: Fits of the hands by side, in the axes of the body's world.
        fps: Frames per second.
    """
    q, notes = q.copy(), list[str]()
    own = hands_of_body(skeleton)
    for side, fit in fits.items():
        if side not in own:
            notes.append(f"the {side} hand of the points has no counterpart: {skeleton.name} has no fingers there")
            continue
        hand = own[side]
        if skeleton.joints[hand.palm].kind is Kind.BALL:
            above = skeleton.parents[hand.palm]
            over = np.eye(3) if above < 0 else world_frames(skeleton, q)[:, above, :9].reshape(-1, 3, 3)
            before = over @ skeleton.joints[hand.palm].rest[:3, :3]
            where = skeleton.q_slice(hand.palm)
            q[:, where] = matrix_to_quat(np.swapaxes(before, -1, -2) @ (fit.palm @ hand.axes.T))
            q[:, where] = clamped(skeleton, q)[:, where]
        notes += turned_fingers(skeleton, q, hand, fit, fps)
    return q, notes


def turned_fingers(skeleton: Skeleton, q: Array, hand: HandBones, fit: HandFit, fps: float) -> list[str]:
    """Rotate a hand's fingers to their fitted directions; change q (T, nq) in place. Return notes on other fingers."""
    wanted: dict[str, Array] = {}
    for name, finger in hand.fingers.items():
        others = partners(name, hand.fingers, fit.ways)
        if others:
            wanted[name] = middle_of([matched(fit.ways[other], _as_bones(fit, other), finger) for other in others])
    left = turn(skeleton, hand, wanted, q, fps)
    return [f"{listed(left)} of the {hand.side} hand stay at rest: their joints do not turn"] if left else []


def moved_hand(skeleton: Skeleton, fit: HandFit, fps: float) -> tuple[Skeleton, Array, HandBones, list[str]]:
    """Return a body, its joint values (T, nq) with one hand that follows a fit, the bones of this hand, and notes.

    If the file holds only a hand, its root also moves, so that the palm follows the fit. Other bodies stay at rest.

    Raises:
        UnsupportedError: If the body has no hand of the side of the fit.
    """
    own = hands_of_body(skeleton)
    if fit.side not in own:
        hands = [f"{side} at {hand.hand.palm!r}" for side, hand in own.items()] or "no hand with fingers"
        raise UnsupportedError(
            f"the points are of a {fit.side} hand, which the body does not have", where=skeleton.name, value=hands,
            expected=f"a {fit.side} hand with fingers", hint="side='left' or 'right' sets the side of the points",
        )  # fmt: skip
    palm = own[fit.side].palm
    alone = all(palm in ancestors(skeleton.parents, row) or row in ancestors(skeleton.parents, palm)
                for row in range(len(skeleton)))  # fmt: skip
    body = skeleton.with_root("free") if alone else skeleton
    hand = _below_root(own[fit.side], len(body) - len(skeleton))
    q = np.repeat(body.rest_q[None], len(fit.palm), axis=0)
    notes: list[str] = []
    root = free_root(body.joints, body.parents) if alone else None
    if root is None:
        notes.append("only the fingers move: the points of one hand do not show how the body stands")
    else:
        rest = np.array(body.rest_pose().frames)
        size = float(np.linalg.norm(hand.hand.frame[:3, 3]))
        scale = size / fit.size if size > 0.0 else 1.0
        # rotation of the whole model relative to rest
        turn = fit.palm @ hand.axes.T @ rest[hand.palm, :9].reshape(3, 3).T
        place = scale * fit.wrist - np.einsum("tij,j->ti", turn, rest[hand.palm, 9:])
        joint, above = body.joints[root], body.parents[root]
        base = np.eye(3) if above < 0 else rest[above, :9].reshape(3, 3)
        start = np.zeros(3) if above < 0 else rest[above, 9:]
        own_turn, own_place = base @ joint.rest[:3, :3], start + base @ joint.rest[:3, 3]
        at = body.q_slice(root).start
        q[:, at : at + 3] = (turn @ own_place + place - own_place) @ own_turn
        q[:, at + 3 : at + 7] = matrix_to_quat(own_turn.T @ turn @ own_turn)
    notes += turned_fingers(body, q, hand, fit, fps)
    return body, q, hand, notes


def _below_root(hand: HandBones, added: int) -> HandBones:
    """Return a hand with its rows shifted by the number of joints that were added above its skeleton.

    The hand is not searched for again, because a hand with a free root could be mistaken for a whole body.
    """
    fingers = {
        name: replace(
            one, rows=tuple(row + added for row in one.rows), end=one.end + added,
            groups=tuple(tuple(row + added for row in group) for group in one.groups),
        ) for name, one in hand.fingers.items()
    }  # fmt: skip
    return replace(hand, palm=hand.palm + added, fingers=fingers)


def _as_bones(fit: HandFit, name: str) -> FingerBones:
    """Return a fitted finger as bones, so that their lengths assign its segments to those of another finger."""
    ways = fit.ways[name][0]
    return FingerBones(name, (0,) * len(ways), ((),) * len(ways), 0, np.zeros(3), ways, ways, fit.lengths[name])


def needs_body(body: Skeleton | None) -> Skeleton:
    """Return the body whose hand follows 21 points, if it is given.

    Raises:
        InputError: If no body is given.
    """
    if body is None:
        raise InputError(
            "body", value=None, expected="a skeleton with a hand, which the 21 points move",
            hint='sy.bundled("humanoid_hands") is one',
        )  # fmt: skip
    return body
