"""Loops of a body that follows a source: close them in each frame, and let joints without a role follow the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, matrix_to_quat, rotation_between
from synovia.model.loops.tables import moved_by
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body

_FASTER: Final = 1.0 + 1e-6  # a joint is too fast above this factor of its velocity limit


class Closer:
    """Closes the loops of a body; joints without a role, such as rods, follow the retargeted parts.

    These joints start from their values in the previous frame. If they cannot close a loop, joints of the parts change.

    Args:
        target: The body.
        roles: Roles of the retargeted parts.
    """

    def __init__(self, target: Body, roles: Iterable[str]) -> None:
        """Find the joints that move the retargeted parts."""
        self._skeleton, self._mechanism = target.skeleton, target.skeleton.mechanism
        self._ends = [target.roles[role] for role in roles]
        self._rows = {above for row in self._ends for above in ancestors(target.skeleton.parents, row)}

    def closed(self, q: Array, before: Array | None = None) -> tuple[Array, Array]:
        """Return joint values (T, nq) with closed loops, and how far closing them rotates parts, (T,), radians.

        Args:
            q: Joint values of consecutive frames, (T, nq).
            before: The closed pose of the previous frame, (nq,), for a single frame; None to start at the rest pose.
        """
        if self._mechanism is None:
            return q, np.zeros(len(q))
        out = self._mechanism.shut_clip(q, self._rows, anchors=None if before is None else before[None])
        turns = (
            matrix_to_quat(world_frames(self._skeleton, values)[:, self._ends, :9].reshape(len(q), -1, 3, 3))
            for values in (q, out)
        )
        return out, np.linalg.norm(rotation_between(*turns), axis=-1).max(axis=1, initial=0.0)


def looped_rows(skeleton: Skeleton) -> list[int]:
    """Return the rows of the hinges and slides that loops move."""
    rows = sorted({row for tie in skeleton.loops for row in moved_by(skeleton, tie)})
    return [row for row in rows if skeleton.joints[row].kind in (Kind.HINGE, Kind.SLIDE)]


def hurried(skeleton: Skeleton, q: Array, largest: Array) -> dict[str, Array]:
    """Return joints in loops whose steps exceed the allowed ones: the ratio of both in each frame, (T,), by name.

    Args:
        skeleton: The body.
        q: Joint values, (T, nq).
        largest: Largest step of each joint, (T - 1, n) or (n,); infinite for joints without one.
    """
    out: dict[str, Array] = {}
    for row in looped_rows(skeleton):
        most = largest[..., row]
        if np.isfinite(most).any():
            step = np.abs(np.diff(q[:, skeleton.q_slice(row).start]))
            ratio = np.concatenate([[0.0], step / most])
            if ratio.max() > _FASTER:
                out[skeleton.joint_names[row]] = np.where(ratio > _FASTER, ratio, np.minimum(ratio, 1.0))
    return out
