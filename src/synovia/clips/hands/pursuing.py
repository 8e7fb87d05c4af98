"""Rotate fingers to given directions, frame by frame: for hinges and balls in any order, and for coupled joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from synovia.clips.hands.bones import HandBones
from synovia.clips.hands.turning import can_turn, turn_fingers
from synovia.goals import DirectionGoal, Goal, RestGoal
from synovia.ik.pursuit import Pursuit, pursuit_settings
from synovia.ik.targets import transforms
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array

_REST: Final = 1e-3  # weight of the rest pose; directions have weight 1
_STEPS: Final = 6


def can_pursue(skeleton: Skeleton, hand: HandBones, name: str) -> bool:
    """Return whether all joints of a finger are hinges or balls."""
    kinds = [skeleton.joints[row].kind for group in hand.fingers[name].groups for row in group]
    return all(kind in (Kind.HINGE, Kind.BALL) for kind in kinds)


class FingerPursuit:
    """Rotates fingers frame by frame so that their segments have given directions in the frames of their palms.

    Joint limits and couplings hold, and the twist of ball joints stays near that of the rest pose.

    Args:
        skeleton: The body.
        fingers: Hands of the body, each with the names of its fingers to rotate.

    Attributes:
        values: Indices into ``q`` of the values of the rotated joints.
    """

    def __init__(self, skeleton: Skeleton, fingers: Sequence[tuple[HandBones, Sequence[str]]]) -> None:
        """Compile the problem."""
        rest = np.array(skeleton.rest_pose().frames)[:, :9].reshape(-1, 3, 3)
        self._skeleton, self._fingers = skeleton, fingers
        goals, rows = list[Goal](), set[int]()
        for hand, names in fingers:
            for name in names:
                finger = hand.fingers[name]
                rows |= {row for group in finger.groups for row in group}
                goals += [
                    DirectionGoal(row, rest[row].T @ hand.rest @ way, name=f"{hand.side} {name} {k}")
                    for k, (row, way) in enumerate(zip(finger.rows, finger.ways, strict=True))
                ]
        rows |= {skeleton.leader_rows[row] for row in rows if row in skeleton.leader_rows}
        self._count = len(goals)
        goals.append(RestGoal(weight=_REST, joints=[skeleton.joint_keys[row] for row in sorted(rows)]))
        self._pursuit = Pursuit(skeleton, goals, sorted(rows))
        self._settings = pursuit_settings(_STEPS)
        followers = {row for row, leader in skeleton.leader_rows.items() if leader in rows}
        slices = [skeleton.q_slice(row) for row in sorted(rows | followers)]
        self.values = np.array([at for one in slices for at in range(one.start, one.stop)], np.intp)

    def turn(self, wanted: Sequence[Mapping[str, Array]], q: Array, start: Array | None = None) -> Array:
        """Rotate the fingers; change q (T, nq) in place, and return its last frame.

        The rest of the body is in its rest pose during the solve, because directions are relative to the palms.

        Args:
            wanted: For each hand, directions (T, n, 3) in the frame of its palm, by the name of the finger.
            q: Joint values of the body, (T, nq).
            start: Joint values (nq,) of the previous frame; None without a previous frame.
        """
        table, weights = self._pursuit.table(len(q))
        ways = [wanted[k][name] @ hand.rest.T for k, (hand, names) in enumerate(self._fingers) for name in names]
        transforms(table)[:, : self._count, :3, 3] = np.concatenate(ways, axis=1)
        weights[:, : self._count] = 1.0
        before = self._skeleton.rest_q.copy()
        if start is None:
            before = self._pursuit.first(table, weights, before)
        else:
            before[self.values] = start[self.values]
        found = self._pursuit.follow(table, weights, before, self._settings)
        q[:, self.values] = found[:, self.values]
        return q[-1]


def turn(skeleton: Skeleton, hand: HandBones, wanted: Mapping[str, Array], q: Array, fps: float) -> list[str]:
    """Rotate fingers so that their segments have given directions in the frame of the palm; change q (T, nq) in place.

    Args:
        skeleton: The body.
        hand: The hand of the body.
        wanted: Directions of the segments of each finger to rotate, (T, n, 3), by name.
        q: Joint values, (T, nq); the solve of hinges starts from them.
        fps: Frames per second.

    Returns:
        Names of the fingers that are not rotated, because they have joints other than hinges and balls.
    """
    exact = {name: ways for name, ways in wanted.items() if can_turn(skeleton, hand.fingers[name])}
    turn_fingers(skeleton, hand, exact, q, fps)
    others = [name for name in wanted if name not in exact]
    coupled = [name for name in others if can_pursue(skeleton, hand, name)]
    if coupled:
        FingerPursuit(skeleton, [(hand, coupled)]).turn([wanted], q)
    return [name for name in others if name not in coupled]
