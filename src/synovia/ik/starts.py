"""Starts that users give, for the skeleton as it was given, checked and brought to the skeleton that is solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from synovia.errors import InputError
from synovia.ik.targets import shape_of
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array, as_numbers, dimensions
from synovia.model.pose import JointValues, Numbers, checked_q
from synovia.model.root import with_root_at_rest

Start = Pose | Literal["rest"] | Numbers | JointValues
Starts = Start | Sequence[Sequence[float]]  # one for all, or (B, nq)


def as_start(start: Any, skeleton: Skeleton, given: Skeleton) -> Pose:
    """Return a start as a pose of the skeleton that is solved.

    Args:
        start: A pose, ``"rest"``, or joint values: (nq,), or some of them by joint.
        skeleton: The skeleton that is solved.
        given: The skeleton before a moving root was put before it.

    Raises:
        InputError: If it is a pose of another skeleton, or a value cannot be used.
    """
    if isinstance(start, Pose):
        if start.skeleton is skeleton:
            return start
        if start.skeleton.joint_names not in (given.joint_names, skeleton.joint_names):
            raise InputError("start is a pose of another skeleton", value=start.skeleton, expected=repr(skeleton))
        start = start.q
    elif isinstance(start, str):
        if start != "rest":
            raise InputError("start is not known", value=start, expected="'rest', a pose, or joint values")
        return skeleton.rest_pose()
    if shape_of(start) == (given.nq,) and given is not skeleton:
        start = with_root_at_rest(as_numbers(start, (given.nq,), "start"), skeleton.nq - given.nq)
    return Pose(skeleton, start)


def start_rows(starts: Any, count: int, skeleton: Skeleton, given: Skeleton) -> Array:
    """Return the starts of many problems: (count, nq), or (1, nq) for one start for all.

    Raises:
        InputError: As ``as_start``, and if their number does not fit.
    """
    if isinstance(starts, Pose | str | Mapping) or dimensions(starts) == 1:
        return as_start(starts, skeleton, given).values.reshape(1, -1)
    if given is not skeleton and shape_of(starts)[1:] == (given.nq,):
        starts = with_root_at_rest(as_numbers(starts, (-1, given.nq), "starts"), skeleton.nq - given.nq)
    rows = checked_q(skeleton, starts, "starts")
    if rows.shape != (count, skeleton.nq):
        raise InputError(f"starts have shape {rows.shape}", expected=f"({count}, {skeleton.nq})")
    return np.ascontiguousarray(rows)


def joints_beyond(skeleton: Skeleton, pose: Pose, margin: float) -> tuple[str, ...]:
    """Return the joints whose value in a pose lies further beyond its limit than a margin."""
    from synovia.kernels.tree.tables import excesses

    t = skeleton.tables
    out = np.empty(len(t.variables))
    excesses(t.variables, t.limits, pose.values, out)
    rows = dict.fromkeys(int(row) for row in t.owner[out > margin])
    return tuple(skeleton.joint_names[row] for row in rows)
