"""Close the loops of poses, and refuse bodies with loops for uses that would open their loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import UnsupportedError
from synovia.model.geometry import Array, as_numbers, dimensions
from synovia.model.loops.mechanism import CLOSED
from synovia.model.pose import as_values, checked_q, clamped
from synovia.model.skeleton import Pose, Skeleton


def close_loops(skeleton: Skeleton, q: Any) -> Pose:
    """Return the nearest pose within the limits in which all loops of a skeleton are closed.

    Newton's method moves all joints by the smallest steps (``Skeleton.with_loops``), so the result is the locally
    nearest pose. For a pose far from closed, it may be in another assembly branch.

    Args:
        skeleton: The skeleton.
        q: Joint values, (nq,), whose loops may be open, or values by joint; other joints are then at rest.

    Raises:
        InputError: If q cannot be used, or no pose near it closes all loops.

    Example:
        >>> import synovia as sy
        >>> hinge = dict(kind=sy.Kind.HINGE, axis=(0, 0, 1))
        >>> hand = sy.Skeleton([sy.Joint("a", **hinge), sy.Joint("b", "a", **hinge)])
        >>> hand = hand.with_loops([sy.Coupling({"a": 1, "b": -2})])
        >>> sy.close_loops(hand, (1.0, 0.0)).q.round(3)
        array([0.8, 0.4])
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    mechanism = skeleton.mechanism
    if isinstance(q, Mapping):
        values, _ = _with_given(skeleton, skeleton.rest_q, cast("Mapping[Any, Any]", q), "q")
    else:
        values = as_values(skeleton, q.q if isinstance(q, Pose) else q, "q")
    if mechanism is None:
        return Pose(skeleton, skeleton.follow(values))
    inside = np.empty_like(values)
    skeleton.validate(values, inside)
    return Pose(skeleton, mechanism.shut(skeleton.follow(inside)[None])[0])


def _with_given(skeleton: Skeleton, q: Array, given: Mapping[Any, Any], what: str) -> tuple[Array, list[int]]:
    """Set the values of some joints in q (nq,), which may open loops; return q and the rows of these joints.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a joint does not exist.
    """
    out, rows = q.copy(), skeleton.by_row(given, what)
    for row, value in rows.items():
        place = skeleton.q_slice(row)
        numbers: Any = [value] if dimensions(value) == 0 else value
        out[place] = as_numbers(numbers, (place.stop - place.start,), f"value of {skeleton.joint_keys[row]!r}")
    return out, list(rows)


def closed_reading(skeleton: Skeleton, given: Any, q: Array, what: str) -> Array:
    """Return measured joint values, (nq,), with loops closed as far as possible.

    Sensors are noisy, so measured values open loops a little. The nearest closed pose is returned. With values by name,
    other joints follow the given ones as far as loops tie them.

    Args:
        skeleton: The skeleton, with loops.
        given: Joint values, (nq,), or values by joint.
        q: Closed joint values near the measured values, (nq,).
        what: Name of the argument.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a joint does not exist.
    """
    mechanism, rows = skeleton.mechanism, list[int]()
    if isinstance(given, Mapping):
        values, rows = _with_given(skeleton, q, cast("Mapping[Any, Any]", given), what)
    else:
        values = as_values(skeleton, given, what)
    read = checked_q(skeleton, skeleton.follow(values), what, closed=False)
    if mechanism is None:
        return read
    inside = np.empty_like(read)
    skeleton.validate(read.copy(), inside)
    leaders = [skeleton.leader_rows.get(row, row) for row in rows]
    held = np.isin(skeleton.tables.owner, leaders)
    for fixed in (held, None) if rows else (None,):
        found, lacks = mechanism.run(inside[None], held=fixed)
        if lacks.max() <= CLOSED:
            return found[0]
    return read


def closed_near(skeleton: Skeleton, q: Array, near: Array, rows: Iterable[int] | None = None) -> Array:
    """Return joint values clamped to the limits, (nq,), with closed loops in the assembly branch of another pose.

    Args:
        skeleton: The skeleton.
        q: The joint values, (nq,).
        near: Closed pose, (nq,), from which to start if the values do not close by small steps.
        rows: Joints that keep their values as far as the loops allow, while other joints follow; None to move all.
    """
    inside = clamped(skeleton, q[None])
    if skeleton.mechanism is not None:
        inside = skeleton.mechanism.shut_clip(inside, rows, near[None])
    return inside[0]


def refuse_loops(skeleton: Skeleton, what: str, hint: str | None = None) -> None:
    """Raise an error for a skeleton with loops if a use does not keep them closed.

    Args:
        skeleton: The skeleton.
        what: The use, at the beginning of the message.
        hint: Alternative for the user; None for the hint to remove the loops.

    Raises:
        UnsupportedError: If the skeleton has loops.
    """
    if skeleton.loops:
        raise UnsupportedError(
            f"{what} does not keep loops closed",
            where=skeleton.name,
            value=[tie.label for tie in skeleton.loops],
            expected="a skeleton without loops",
            hint=hint or "skeleton.with_loops([]) leaves them out",
        )
