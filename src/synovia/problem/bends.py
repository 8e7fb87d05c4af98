"""Bending sides of limbs: knees bend forward and elbows back; other limbs bend as in the rest pose.

If a limb is straight, a small step of a solver does not determine the side to which it bends. So this module chooses
the side for all solvers: by the role of the joint, else by the bend of the rest pose, however slight. A limb with a
pole bends towards its pole. If none of these is known, the side is undefined, and the solution reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.goals import Goal
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.axes import body_axes, is_folded
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, axis_vector, cross
from synovia.model.tree import ancestors
from synovia.problem.reduced import Reduced
from synovia.problem.structure import TURNING

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
_UNDEFINED: Final = (
    "The side to which {0!r} bends is undefined: its limb is straight, and neither a bend at rest nor a role defines "
    "it (a role does if the rest pose stands). Add a PoleGoal, or bend the rest pose a little."
)
_WRONG: Final = "{0!r} does not bend to the side that its role and the rest pose define: the solver found no such pose."
_LIMBS: Final = (("upper_leg", "lower_leg", "foot", -1.0), ("upper_arm", "lower_arm", "hand", 1.0))
_SLIGHTEST: Final = 1e-6  # sine of the angle between the bones at rest: smaller bends are rounding errors
# cosine between a hinge's axis and the axis about which the limb should bend; at larger values, the hinge defines the
# side
_ACROSS: Final = 0.5
_SHORT: Final = 1e-6  # fraction of the skeleton's size: shorter bones have no direction
# radians: bends of a start, tried in this order; the smallest that bends the limb to its side is best
SIZES: Final = (5e-3, 0.1, 0.5, 1.2, 2.0)
BENT: Final = np.array([0.04])  # sine of the angle between the bones; at smaller angles, a limb counts as straight
_PLAY: Final = 0.02  # radians: a hinge that can bend past straight by less than this can bend to one side only
# smallest share of a bend that must be to the correct side, if the role, or the rest pose, defines this side
_WELL: Final = (0.95, 0.7)


@dataclass(frozen=True, slots=True, eq=False)
class _Limb:
    """Rows of the joints at the beginning, in the middle and at the end of a limb, and its bending directions.

    ``ways`` are directions, (3,), in which the lower bone moves as it bends, world axes at rest; the first one that is
    not along the upper bone applies. Without directions, the rest pose defines the side if its bend exceeds ``least``,
    a sine.
    """

    first: int
    middle: int
    end: int
    ways: tuple[Array, ...]
    least: float = _SLIGHTEST


@dataclass(frozen=True, eq=False)
class Bends:
    """The limbs of a problem with a known bending side, as tables of ``kernels.tree.bends``, and the other limbs.

    Args:
        skeleton: The skeleton.
        places: (k, 3) integers of limbs with a known side.
        shapes: (k, 17) floats of these limbs.
        names: Middle joints of these limbs.
        undefined: Middle joints of limbs that are straight at rest, without a role and a pole.
        unknown: Tables of the undefined limbs, to detect whether they have bent.
    """

    skeleton: Skeleton
    places: Ints
    shapes: Array
    names: tuple[str, ...]
    undefined: tuple[str, ...]
    unknown: tuple[Ints, Array]

    def bent(self, q: Array, size: float, which: Array) -> Array | None:
        """Return joint values (T, nq) with straight limbs bent to the correct sides; None if no limb can be bent.

        Args:
            q: Joint values, inside the limits.
            size: Angle of the bend, radians.
            which: 1 for each limb to bend, else 0, (T, k).
        """
        out, t = np.empty(q.shape), self.skeleton.tables
        bend = _loaded("bend_straight")
        given = self.places, self.shapes, t.variables, t.limits
        return out if bend(*given, size * which, np.ascontiguousarray(q), out) else None

    def shares(self, starts: Array, q: Array, least: Array = BENT) -> Array | None:
        """Return how much of each limb's bend is to the side to which the limb should bend.

        The share is from 1 (the whole bend) to -1 (the limb bends to the opposite side). It is also 1 for limbs that
        bend to the correct side well enough, that were not straight at the start, or whose bend is not checked.

        Args:
            starts: Joint values at the start of the solve, (T or 1, nq).
            q: Joint values after it, (T, nq).
            least: Sine of the smallest bend that is checked, (1,).

        Returns:
            (T, k) for k limbs; None if all limbs bend to the correct sides.
        """
        out = np.empty((len(q), len(self.places)))
        starts, q = np.ascontiguousarray(starts), np.ascontiguousarray(q)
        return out if _loaded("bend_shares")(self.places, self.shapes, least, starts, q, out) else None

    def notes(self, start: Array, q: Array) -> tuple[str, ...]:
        """Return a sentence for each limb that is straight at the start (nq,) and bends to a wrong or unknown side."""
        from synovia.kernels.tree.bends import bend_shares

        start, q = start[None].copy(), q[None].copy()
        shares = self.shares(start, q)
        wrong = () if shares is None else tuple(np.array(self.names)[shares[0] < 0.0].tolist())
        # the axes of undefined limbs are 0, so that any bend gives a share below 1
        out = np.empty((1, len(self.undefined)))
        bend_shares(*self.unknown, BENT, start, q, out)
        chosen = [name for name, share in zip(self.undefined, out[0].tolist(), strict=True) if share < 1.0]
        return (*(_UNDEFINED.format(name) for name in chosen), *(_WRONG.format(name) for name in wrong))


@cache
def _loaded(name: str) -> Callable[..., int]:
    """Return a function of ``kernels.tree.bends``, cached for all problems."""
    from synovia.kernels.compiler.jit import ready
    from synovia.kernels.tree import bends

    tables = np.empty((0, bends.LIMB_PLACE_WIDTH), np.int32), np.empty((0, 1))
    more: tuple[Array | Ints, ...] = (BENT,) if name == "bend_shares" else tables
    return ready(getattr(bends, name), *tables, *more, *[np.empty((0, 1))] * 3)


def find_bends(
    skeleton: Skeleton, reduced: Reduced, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
) -> Bends | None:
    """Return the limbs of a problem that may bend to a wrong side; None without such limbs."""
    moving = {row for row in reduced.moving if skeleton.joints[row].kind in (Kind.HINGE, *TURNING)}
    poles = {row for goal, rows in zip(goals, goal_joints, strict=True) if goal.turns_limb for row in rows}
    limbs = _limbs_by_role(skeleton, moving)
    known = {limb.middle for limb in limbs}
    limbs += [limb for limb in _limbs_by_shape(skeleton, moving, goal_joints) if limb.middle not in known]
    tables = [_tables(skeleton, limb, moving) for limb in limbs if limb.middle not in poles]
    tables = [row for row in tables if row is not None]
    sure = [(name, place, shape) for name, place, shape, defined in tables if defined]
    unsure = [(name, place, shape) for name, place, shape, defined in tables if not defined]
    if not sure and not unsure:
        return None
    places, shapes = _stacked(sure)
    names, undefined = (tuple(name for name, _, _ in rows) for rows in (sure, unsure))
    return Bends(skeleton, places, shapes, names, undefined, _stacked(unsure))


def _stacked(rows: Sequence[tuple[str, list[int], Array]]) -> tuple[Ints, Array]:
    """Return the tables of limbs with these names, integers and floats."""
    from synovia.kernels.tree.bends import LIMB_PLACE_WIDTH, LIMB_SHAPE_WIDTH

    places = np.array([place for _, place, _ in rows], np.int32).reshape(-1, LIMB_PLACE_WIDTH)
    return places, np.array([shape for _, _, shape in rows], np.float64).reshape(-1, LIMB_SHAPE_WIDTH)


def _limbs_by_role(skeleton: Skeleton, moving: Collection[int]) -> list[_Limb]:
    """Return the legs and arms whose middle joint moves."""
    from synovia.kernels.tree.bends import STRAIGHT_LIMB

    named = skeleton.role_rows
    axes = _axes(skeleton, named)
    if axes is None:
        return []
    up, ahead = axes
    places = skeleton.rest_pose().positions
    folded = is_folded({role: places[row] for role, row in named.items()})
    out: list[_Limb] = []
    for side in SIDES:
        for upper, lower, end, sign in _LIMBS:
            first, last = named.get(f"{side}_{upper}"), named.get(f"{side}_{lower}")
            if first is None or last is None:
                continue
            tip = named.get(f"{side}_{end}") or max(
                skeleton.children[last], key=skeleton.lengths.__getitem__, default=-1
            )
            line = ancestors(skeleton.parents, last)[::-1]
            if first not in line or tip < 0:
                continue
            for row in line[line.index(first) + 1 :]:
                limb = _Limb(first, row, tip, (sign * ahead, sign * up))
                if folded:  # in a folded body, axes are undefined, and small bends are rounding errors
                    limb = _Limb(first, row, tip, (), STRAIGHT_LIMB)
                if row in moving and _bends(skeleton, limb):
                    out.append(limb)
                    break
    return out


def _axes(skeleton: Skeleton, roles: Mapping[str, int]) -> tuple[Array, Array] | None:
    """Return the upward and forward directions of a body at rest; None if unknown."""
    places = skeleton.rest_pose().positions
    try:
        axes = body_axes({role: places[row] for role, row in roles.items()}, skeleton.size, skeleton.up, skeleton.name)
    except (KeyError, InputError):
        if skeleton.up is None or skeleton.forward is None:
            return None
        return axis_vector(skeleton.up), axis_vector(skeleton.forward)
    return axes[:, 1], axes[:, 2]


def _limbs_by_shape(skeleton: Skeleton, moving: Collection[int], goal_joints: Sequence[Sequence[int]]) -> list[_Limb]:
    """Return the chains of goals that have two bones, with a ball at the beginning of the first bone."""
    out: dict[int, _Limb] = {}
    places = skeleton.rest_pose().positions
    for rows in goal_joints:
        if not rows or rows[0] < 0:
            continue
        line = [row for row in ancestors(skeleton.parents, rows[0]) if row in moving]
        line = [row for row in line if np.linalg.norm(places[row] - places[rows[0]]) > _SHORT * skeleton.size]
        if len(line) == 2 and skeleton.joints[line[1]].kind in TURNING:
            limb = _Limb(line[1], line[0], rows[0], ())
            if _bends(skeleton, limb):
                out[line[0]] = limb
    return list(out.values())


def _bones(skeleton: Skeleton, limb: _Limb) -> tuple[Array, Array]:
    """Return the vectors of the upper and the lower bone at rest, (3,) each, in world axes."""
    places = skeleton.rest_pose().positions
    return places[limb.middle] - places[limb.first], places[limb.end] - places[limb.middle]


def _bends(skeleton: Skeleton, limb: _Limb) -> bool:
    """Return whether a limb has two bones, and its middle joint can fold one bone onto the other."""
    joint, (upper, lower) = skeleton.joints[limb.middle], _bones(skeleton, limb)
    if min(float(np.linalg.norm(bone)) for bone in (upper, lower)) <= _SHORT * skeleton.size or joint.mimic is not None:
        return False
    if joint.kind is Kind.HINGE:
        axis = skeleton.rest_pose().frames[limb.middle, :9].reshape(3, 3) @ joint.axis
        return abs(float(axis @ upper)) < _ACROSS * float(np.linalg.norm(upper))
    return True


def _turn_at(skeleton: Skeleton, row: int) -> int:
    """Return the index in q of a hinge's value, or of the first value of another joint's quaternion."""
    values = skeleton.q_slice(row)
    return values.stop - 4 if skeleton.joints[row].kind in TURNING else values.start


def _play(skeleton: Skeleton, limb: _Limb, hinge: Array, side: float) -> float:
    """Return how far the limits of a hinge let a limb bend past straight to the wrong side, radians.

    Args:
        skeleton: The skeleton.
        limb: The limb.
        hinge: Axis of the hinge at rest, (3,), world axes.
        side: Positive if the limb should bend about this axis, negative for the opposite axis.
    """
    upper, lower = _bones(skeleton, limb)
    at = skeleton.q_slice(limb.middle).start
    turned = float(np.arctan2(hinge @ cross(lower, upper), lower @ upper - (hinge @ lower) * (hinge @ upper)))
    straight = float(skeleton.rest_q[at]) + turned
    low, high = (float(end[at]) for end in skeleton.limits)
    return straight - low if side > 0.0 else high - straight


def _tables(skeleton: Skeleton, limb: _Limb, moving: Collection[int]) -> tuple[str, list[int], Array, bool] | None:
    """Return a limb's name, its rows in the tables of ``kernels.tree.bends``, and whether its side is known.

    Return None if the limits of a hinge let the limb bend only to its side.
    """
    from synovia.kernels.tree.bends import STRAIGHT_LIMB

    joint, at = skeleton.joints[limb.middle], _turn_at(skeleton, limb.middle)
    is_hinge = joint.kind is Kind.HINGE
    upper, lower = (bone / np.linalg.norm(bone) for bone in _bones(skeleton, limb))
    frames = skeleton.rest_pose().frames[:, :9].reshape(-1, 3, 3)
    after, above = frames[limb.middle], int(skeleton.parents[limb.middle])
    before = (frames[above] if above >= 0 else np.eye(3)) @ joint.rest[:3, :3]
    turned, defined = cross(upper, lower), True
    wanted = next((axis for way in limb.ways if np.linalg.norm(axis := cross(upper, way)) > _ACROSS), None)
    bent = float(np.linalg.norm(turned))
    if wanted is not None and (bent < STRAIGHT_LIMB or float(turned @ wanted) <= 0.0):
        turned = wanted
    else:  # the rest pose defines the side
        defined = bent > limb.least
    hinge = after @ joint.axis if is_hinge else np.zeros(3)
    if is_hinge:
        side = float(hinge @ turned)
        # the hinge is normal to the wanted axis: use the side with the wider limits
        if abs(side) <= _ACROSS * float(np.linalg.norm(turned)):
            side = float(np.sum(np.clip([end[at] for end in skeleton.limits], -np.pi, np.pi)))
            defined = side != 0.0
        if defined and _play(skeleton, limb, hinge, side) < _PLAY:
            return None
        axis = np.sign(side or 1.0) * (hinge - (hinge @ upper) * upper)
    else:
        axis = turned if defined else np.zeros(3)
    length = float(np.linalg.norm(axis))
    axis = axis / length if length > 0.0 else axis
    carrier, own = -1, np.zeros(3)
    if limb.first in moving and skeleton.joints[limb.first].kind in TURNING:
        carrier, own = _turn_at(skeleton, limb.first), frames[limb.first].T @ axis
    lengths = [float(np.linalg.norm(bone)) for bone in _bones(skeleton, limb)]
    numbers = np.array([lengths[1] / lengths[0], _WELL[0 if limb.ways else 1]])
    parts = [before.T @ upper, after.T @ lower, before.T @ axis, before.T @ hinge, own, numbers]
    return skeleton.joint_names[limb.middle], [at, int(is_hinge), carrier], np.concatenate(parts), defined
