"""Landmarks that come from the very hand that follows them: find the pose of its base.

Knuckles of robot hands can move. Then wrist and knuckles do not show the orientation of the palm, and the wrist of the
landmarks moves. If the lengths between landmarks are those of the hand itself, the whole hand is fitted to them on a
free base. This gives the orientation of the palm and the position of the wrist.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.model import Pose, Skeleton
from synovia.model.anatomy.hands.hand import Hand
from synovia.model.anatomy.hands.landmarks import FINGER_POINTS, WRIST, palm_of
from synovia.model.anatomy.hands.pointed import landmarks_in
from synovia.model.geometry import Array, magnitudes
from synovia.model.tree import ancestors
from synovia.solver import FullBody

SAME_LENGTHS: Final = 0.01  # relative difference up to which segment lengths are those of the same hand
_OFF: Final = 0.02  # fraction of the hand's size: points come from the hand if it fits them within this distance
_FINGERS: Final = 2  # least number of fingers whose lengths are compared
_ATTEMPTS: Final = 8  # number of attempts for a first frame


def own_scale(skeleton: Skeleton, hand: Hand, places: Array, known: list[str]) -> float | None:
    """Return the scale that gives points the segment lengths of a hand's own landmarks; None if no scale does.

    Args:
        skeleton: The skeleton.
        hand: Its hand.
        places: The points, (T, 21, 3).
        known: Names of the fingers that are seen.
    """
    own = landmarks_in(skeleton, hand, np.array(skeleton.rest_pose().frames)[None])
    fingers = [name for name in known if hand.finger(name) is not None]
    if len(fingers) < _FINGERS:
        return None
    rows = [FINGER_POINTS[name] for name in fingers]
    mine, theirs = (np.median(magnitudes(np.diff(one[:, rows], axis=2)), axis=0) for one in (own, places))
    if not theirs.min() > 0.0:
        return None
    ratios = mine / theirs
    scale = float(np.median(ratios))
    return scale if float(np.abs(ratios / scale - 1.0).max()) < SAME_LENGTHS else None


class OwnHand:
    """A hand on a free base that is fitted to its own landmarks.

    Args:
        skeleton: The skeleton.
        hand: Its hand.
        known: Names of the fingers that are seen.
        axes: Frame of the points in the world, (4, 4), see ``Aims.place``.
        scale: Length on the hand per unit of the points.
        side: Side of the landmarks, whose palm is then laid on the hand's palm; None to use ``axes`` as they are.

    Attributes:
        axes: The argument of this name.
        q: Joint values (nq,) of the last fit, with the base at rest.
        wrist: Position of the hand's own wrist at rest, (3,).
    """

    def __init__(
        self, skeleton: Skeleton, hand: Hand, known: list[str], axes: Array, scale: float, side: str | None
    ) -> None:
        """Compile the problem."""
        self._skeleton, self.axes, self._scale, self._side = skeleton, axes, scale, side
        rest = skeleton.rest_pose()
        frames = np.array(rest.frames)
        own = landmarks_in(skeleton, hand, frames[None])[0]
        self._palm = palm = skeleton.value_index(hand.palm)
        carriers = {WRIST: palm}
        for name in known:
            if (finger := hand.finger(name)) is not None:
                carriers |= _carriers(skeleton, own, FINGER_POINTS[name], finger.joints)
        goals = [
            PositionGoal(row, offset=frames[row, :9].reshape(3, 3).T @ (own[k] - frames[row, 9:]), name=str(k))
            for k, row in carriers.items()
        ]
        self._points, self.wrist, self.q = list(carriers), own[WRIST], np.array(rest.q)
        self._far = _OFF * float(magnitudes(own[self._points] - own[WRIST]).max())
        root = "x,y,z" if side is None else "free"
        self._added = len(skeleton.with_root(root)) - len(skeleton)
        self._ik = IK(skeleton, goals, FullBody(attempts=_ATTEMPTS), root=root)
        self._before: Pose | None = None
        self._back = np.eye(4)  # transform that moves the base of the last fit to rest

    def laid(self, points: Array) -> tuple[Array, bool]:
        """Return points (21, 3) laid on the hand at rest, and whether a pose of the hand has these landmarks.

        If points are hidden or no pose has them, the base stays where it was.
        """
        if self._side is None:
            local = points - points[WRIST]
        else:
            palm = palm_of(points[None], self._side)[0]
            local = (points - palm[:3, 3]) @ palm[:3, :3]
        placed = self.axes[:3, 3] + self._scale * (local @ self.axes[:3, :3].T)
        fits = bool(np.isfinite(placed[self._points]).all()) and self._fit(placed)
        return placed @ self._back[:3, :3].T + self._back[:3, 3], fits

    def _fit(self, placed: Array) -> bool:
        """Fit the hand to landmarks (21, 3) near its rest pose; return whether a pose of the hand has them."""
        targets: dict[Any, Any] = {str(k): placed[k] for k in self._points}
        for start in (self._before, None) if self._before is not None else (None,):
            found = self._ik.solve(targets, start=start, follow=start is not None)
            if max(error.position for error in found.errors) <= self._far:
                break
        else:
            return False
        self._before = found.pose
        self.q = np.array(found.q[len(found.q) - self._skeleton.nq :])
        if self._side is not None:  # the palm and the joints that carry it are at rest
            for row in ancestors(self._skeleton.parents, self._palm):
                at = self._skeleton.q_slice(row)
                self.q[at] = self._skeleton.rest_q[at]
        rest, now = Pose(self._skeleton, self.q).transform(self._palm), found.pose.transform(self._palm + self._added)
        self._back = rest @ np.linalg.inv(now)
        return True


def _carriers(skeleton: Skeleton, own: Array, points: tuple[int, ...], joints: tuple[str | int, ...]) -> dict[int, int]:
    """Return the joint at each landmark of a finger, by landmark; the tip belongs to the last joint."""
    rows = [skeleton.value_index(key) for key in joints]
    at = np.array(skeleton.rest_pose().frames)[rows, 9:]
    out = {points[-1]: rows[-1]}
    for k in points[:-1]:
        near = np.flatnonzero(magnitudes(at - own[k]) < 1e-6 * skeleton.size)
        if len(near):
            out[k] = rows[int(near[-1])]
    return out
