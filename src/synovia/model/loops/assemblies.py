"""Assemblies: the different closed poses of a mechanism with the same values of its independent joints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind, whole_number
from synovia.errors import InputError
from synovia.kernels import layout
from synovia.model.geometry import Array
from synovia.model.joint import Kind
from synovia.model.loops.mechanism import CLOSED, INDEPENDENT, Mechanism
from synovia.model.pose import as_values, drawn_values, world_frames
from synovia.model.skeleton import Pose, Skeleton

_SAME = 1e-6  # largest difference of the world frames of equal poses; positions in length scales
_BLOCK = 256  # number of starts that are closed in one call


def assemblies(
    skeleton: Skeleton,
    q: Any = None,
    leading: Iterable[str | int] | None = None,
    *,
    tries: int = 512,
    seed: int = 0,
) -> list[Pose]:
    """Return the assemblies of a mechanism: closed poses that differ only in dependent joints.

    The coupler of a four-bar linkage closes on two sides of its crank, and a platform on six legs in up to 40 places.
    Solvers stay in the assembly of their start, so use another pose of this list as start. Leading joints keep their
    values.

    The assemblies are found by closing the loops from random values of the other joints. A rare one may be missed;
    more ``tries`` find it.

    Args:
        skeleton: The skeleton, with loops.
        q: Joint values, (nq,), or a pose, with closed loops; the rest pose by default.
        leading: The leading joints, such as those with motors; by default independent joints near the root.
        tries: Number of random starts.
        seed: From 0 to 2^32 - 1.

    Returns:
        The poses within the limits, the nearest to q first, which is q itself.

    Raises:
        InputError: If the skeleton has no loops, an argument cannot be used, or the leading joints leave others free
            at q.

    References:
        Dietmaier (1998), *The Stewart-Gough platform of general geometry can have 40 real postures*.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> hinge = dict(kind=sy.Kind.HINGE, axis=np.array((0.0, 0.0, 1.0)))
        >>> far = np.eye(4)
        >>> far[0, 3] = 3.0
        >>> bars = sy.Skeleton([sy.Joint("crank", **hinge), sy.Joint("rocker", rest=far, **hinge)])
        >>> rod = sy.Loop("crank", "rocker", "distance", offset=(1, 0, 0), other_offset=(2, 0, 0), distance=3)
        >>> [round(float(pose["rocker"]), 2) for pose in sy.skeletons.assemblies(bars.with_loops([rod]))]
        [1.34, -1.62]
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    mechanism = skeleton.mechanism
    if mechanism is None:
        raise InputError("skeleton", where=skeleton.name, expected="a skeleton with loops, as of with_loops")
    count, seed = whole_number("tries", tries, 1, 1_000_000), whole_number("seed", seed, 0, 2**32 - 1)
    given = skeleton.rest_q if q is None else as_values(skeleton, q.q if isinstance(q, Pose) else q, "q")
    mechanism.refuse_open(given, "q")
    begin = mechanism.shut(given[None])[0]
    held = ~mechanism.mobility.dependent if leading is None else _held(skeleton, mechanism, begin, leading)
    stays = np.zeros(skeleton.nq, bool)
    for block, at, _ in mechanism.variables[held].tolist():
        stays[at : at + (1 if block == layout.SCALAR else 4)] = True
    starts = drawn_values(skeleton, count, seed)
    draw = np.random.default_rng(seed)
    for row, joint in enumerate(skeleton.joints):
        if joint.kind is Kind.FREE:
            place = skeleton.q_slice(row)
            starts[:, place.start : place.start + 3] = draw.uniform(-mechanism.reach, mechanism.reach, (count, 3))
            turns = draw.normal(size=(count, 4))
            starts[:, place.start + 3 : place.stop] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    starts[:, stays] = begin[stays]
    found = [begin]
    known = _places(skeleton, begin[None], mechanism.reach)
    for first in range(0, count, _BLOCK):
        closed, lacks = mechanism.run(skeleton.follow(starts[first : first + _BLOCK]), held=held)
        closed = closed[lacks.max(axis=1) <= CLOSED]
        for values, place in zip(closed, _places(skeleton, closed, mechanism.reach), strict=True):
            if np.abs(known - place).max(axis=(1, 2)).min() > _SAME:
                found.append(values)
                known = np.concatenate([known, place[None]])
    far = np.abs(known - known[0]).max(axis=(1, 2))
    return [Pose(skeleton, found[k]) for k in np.argsort(far, kind="stable").tolist()]


def _held(skeleton: Skeleton, mechanism: Mechanism, q: Array, leading: Iterable[str | int]) -> NDArray[np.bool_]:
    """Return a mask of the variables of the leading joints, (k,).

    Raises:
        InputError: If the loops leave other joints free at q.
    """
    rows = skeleton.by_row([(joint, None) for joint in leading], "leading")
    held = np.isin(skeleton.tables.owner, [skeleton.leader_rows.get(row, row) for row in rows])
    free = ~held[mechanism.columns] & ~mechanism.mobility.still[mechanism.columns]
    _, J = mechanism.rows(q[None])
    left = int(free.sum()) - int(np.linalg.matrix_rank(J[0][:, free], tol=INDEPENDENT))
    if left:
        raise InputError(
            "leading",
            where=skeleton.name,
            value=[skeleton.joint_keys[row] for row in rows],
            expected=f"joints that determine all others; {left} degrees of freedom are left at this pose",
        )
    return held


def _places(skeleton: Skeleton, q: Array, reach: float) -> Array:
    """Return world frames with positions in length scales, (T, n, 12); whole turns of a joint do not change them."""
    frames = world_frames(skeleton, q)
    frames[:, :, 9:] /= reach
    return frames
