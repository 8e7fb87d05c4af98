"""Limbs that do not pass through the body: where shapes of a transferred motion overlap, limbs move out of each other.

First, the frames in which limbs overlap are solved: joints of the limbs stay as near to the transferred pose as the
clearance permits, and everything else stays. Their change is then spread over the frames before and after, so that
limbs leave and return smoothly, and all these frames are solved once more around the pose with the spread change. So
the clearance holds in each of them.

Feet that stand keep their places during the whole contact. Where both stand and overlap, the places themselves move
apart along the floor before the legs are solved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.editing.problems import EditSolver, table_of
from synovia.goals import ClearanceGoal, Goal, PositionGoal, RestGoal, RotationGoal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch
from synovia.kernels import layout
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.feet import runs
from synovia.model.anatomy.names import SIDES
from synovia.model.change import change_between, changed, no_change, turns
from synovia.model.geometry import Array, frames_to_transforms, rotation_between, times_exp, unit
from synovia.model.pose import inside_limits, world_frames
from synovia.model.shapes.body import Ints
from synovia.model.shapes.over_time import near_shapes
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body
from synovia.retargeting.feet import FootPath, eased, stand_frames
from synovia.retargeting.judging.shaped import ARMS, LEGS, PARTS, limb_of_rows, limb_pairs, limb_tops
from synovia.tracking.around import Around

Bools = NDArray[np.bool_]
EARLY: Final = 0.1  # seconds over which a change is spread to both sides, twice
TOLERANCE: Final = 1e-5  # of the leg: how exactly the distance is kept
_SHORT: Final = 1e-3  # of the leg: what is nearer than the distance by less is not reported
_TURNED: Final = 1e-3  # radians; no goal is a rotation
_LEVEL: Final = 0.2  # horizontal part of a normal below which feet are one above the other
_ROUNDS: Final = 6  # in which feet move apart until they do not overlap
_ASIDE: Final = 1.02  # times the overlap by which feet move apart


@dataclass(frozen=True, slots=True)
class TooNear:
    """Two links of different limbs that could not be kept apart.

    Args:
        pair: The links, named as in ``Skeleton.shapes``.
        distance: Their least distance in the clip, length units; negative where they overlap.
        frames: The frames in which they are too near.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 30, 30.0)
        >>> sy.retarget(still, sy.bundled("humanoid")).too_near
        ()
    """

    pair: tuple[str | int, str | int]
    distance: float
    frames: tuple[int, ...]


def pairs_too_near(target: Body, q: Array, distance: float) -> list[TooNear]:
    """Return the pairs of links of different limbs that are too near in a clip, the nearest first.

    Args:
        target: The body, with shapes.
        q: Joint values of the clip, (T, nq).
        distance: The distance that they should have, length units.
    """
    skeleton, out = target.skeleton, list[TooNear]()
    pairs = limb_pairs(skeleton, target.roles)
    near = near_shapes(skeleton, world_frames(skeleton, q), pairs, distance - _SHORT * target.leg)
    gaps = near.contacts[:, layout.GAP_SIZE]
    for k in np.unique(near.pairs).tolist():
        own = near.pairs == k
        a, b = pairs[k].tolist()
        frames = tuple(np.unique(near.poses[own]).tolist())
        out.append(TooNear((skeleton.link_key(a), skeleton.link_key(b)), float(gaps[own].min()), frames))
    return sorted(out, key=lambda one: one.distance)


class Apart:
    """The limbs of a body whose shapes stay apart.

    Args:
        target: The body, with shapes.
        roles: The parts that are carried over; only limbs of these parts move.
        distance: Least distance between shapes of different limbs, length units.
    """

    def __init__(self, target: Body, roles: Collection[str], distance: float) -> None:
        """Find which joints move, and which pairs of links they can keep apart."""
        self.target, self.distance = target, distance
        self._moving = {limb: rows for limb in PARTS if (rows := _moving_rows(target, limb, roles))}
        limbs = limb_of_rows(target.skeleton, target.roles)
        self._pairs = [((limbs[a], limbs[b]), (a, b)) for a, b in limb_pairs(target.skeleton, target.roles).tolist()]
        self._problems: dict[tuple[tuple[str, ...], tuple[tuple[int, bool], ...]], _Problem | None] = {}

    def pairs_of(self, limbs: Collection[str], others: Collection[str] = ()) -> Ints:
        """Return the pairs of links of which one belongs to ``limbs``, and none to ``others``, (n, 2)."""
        found = [
            pair
            for both, pair in self._pairs
            if any(limb in limbs for limb in both) and not any(limb in others for limb in both)
        ]
        return np.array(found, np.int32).reshape(-1, 2)

    def problem(self, limbs: tuple[str, ...], ankles: tuple[tuple[int, bool], ...]) -> _Problem | None:
        """Return the problem in which some limbs move; None if none of them can move, or none can collide.

        Args:
            limbs: The limbs. Legs are kept apart from all but the arms, which move out of their way.
            ankles: Row of each ankle that keeps its place, and whether the foot stands.
        """
        key = limbs, ankles
        if key not in self._problems:
            moving = {row for limb in limbs for row in self._moving.get(limb, ())}
            able = [limb for limb in limbs if limb in self._moving]
            pairs = self.pairs_of(able, () if limbs == ARMS else ARMS)
            self._problems[key] = _Problem(self, moving, pairs, ankles) if len(pairs) else None
        return self._problems[key]

    def moved(self, q: Array, fps: float, paths: Mapping[str, FootPath]) -> Array:
        """Return joint values (T, nq) in which limbs are apart, as far as they can be.

        Args:
            q: Joint values, (T, nq).
            fps: Frames per second.
            paths: Target path of each foot, by role.
        """
        rows = [self.target.roles[role] for role in paths]
        q = self._out(LEGS, q, fps, rows, stand_frames(paths, len(q)))
        return self._out(ARMS, q, fps, [], np.zeros((len(q), 0), bool))

    def _out(self, limbs: tuple[str, ...], q: Array, fps: float, ankles: Sequence[int], stands: Bools) -> Array:
        """Return joint values (T, nq) in which some limbs have moved out of others."""
        skeleton = self.target.skeleton
        whole = self.problem(limbs, tuple((row, False) for row in ankles))
        bad = None if whole is None else whole.overlapping(q)
        if bad is None or not bad.any():
            return q
        places = world_frames(skeleton, q)[:, list(ankles)]
        first = self._solved(limbs, q, runs(bad), places, ankles, stands)
        change = spread(skeleton, change_between(skeleton, q, first), round(EARLY * fps))
        moves = (change != no_change(skeleton)).any(axis=1)
        around = np.where(moves[:, None], changed(skeleton, q, change), q)
        return self._solved(limbs, around, runs(moves), places, ankles, stands)

    def _solved(
        self,
        limbs: tuple[str, ...],
        q: Array,
        spans: Sequence[tuple[int, int]],
        places: Array,
        ankles: Sequence[int],
        stands: Bools,
    ) -> Array:
        """Return joint values (T, nq) of which those of some spans are solved, each frame around its own pose.

        Args:
            limbs: The limbs that move.
            q: Joint values, (T, nq).
            spans: Spans (first frame, end).
            places: World frames of the ankles that keep their places, (T, ankles, 12).
            ankles: Their rows.
            stands: In which frames each of these feet stands, (T, ankles).
        """
        out, reference = q.copy(), inside_limits(self.target.skeleton, q)
        for first, end in spans:
            before: tuple[Array, Array] | None = None
            for a, b in _alike(stands[first:end]):
                part = slice(first + a, first + b)
                problem = self.problem(limbs, tuple(zip(ankles, stands[part.start].tolist(), strict=True)))
                if problem is not None:
                    out[part] = problem.around(reference[part], places[part], before)
                    before = reference[part.stop - 1], out[part.stop - 1]
        return out


@lru_cache(maxsize=8)
def _apart(target: Body, roles: frozenset[str], distance: float) -> Apart:
    """Return the limbs of a body that stay apart; they are kept for further clips."""
    return Apart(target, roles, distance)


def keep_apart(
    target: Body, roles: Collection[str], q: Array, fps: float, paths: Mapping[str, FootPath], distance: float
) -> Array:
    """Return joint values (T, nq) in which the limbs of a body do not pass through it, as far as possible.

    Args:
        target: The body, with shapes.
        roles: The parts that are carried over; only limbs of these parts move.
        q: Joint values, (T, nq).
        fps: Frames per second.
        paths: Target path of each foot, by role.
        distance: Least distance between shapes of different limbs, length units.
    """
    return _apart(target, frozenset(roles), distance).moved(q, fps, paths)


def feet_apart(
    target: Body, frames: Array, paths: Mapping[str, FootPath], fps: float, distance: float
) -> Mapping[str, FootPath]:
    """Return target paths of feet whose shapes do not overlap while both stand.

    In each contact, a foot stands farther to the side, by half of the largest overlap. Between contacts, its path eases
    from one place to the next.

    Args:
        target: The body, with shapes.
        frames: World frames of its joints before the feet are corrected, (T, n, 12).
        paths: Target path of each foot, by role.
        fps: Frames per second.
        distance: Least distance between the feet, length units.
    """
    parents, roles = target.skeleton.parents, [f"{side}_foot" for side in SIDES]
    if not all(role in paths for role in roles):
        return paths
    feet = [{row for row in range(len(parents)) if target.roles[role] in ancestors(parents, row)} for role in roles]
    found = limb_pairs(target.skeleton, target.roles).tolist()
    pairs = [pair if pair[0] in feet[0] else pair[::-1] for pair in found if _on_both(pair, feet)]
    stands = np.array([paths[role].stands for role in roles])
    both = np.flatnonzero(stands.all(axis=0))
    if not pairs or not len(both):
        return paths
    placed = frames[both]
    for role, rows in zip(roles, feet, strict=True):
        _place_foot(placed, target.roles[role], sorted(rows), paths[role], both)
    left, right = sorted(feet[0]), sorted(feet[1])
    up = target.basis[:, 1]
    aside, ways = np.zeros(len(both)), np.zeros((len(both), 3))
    rows = np.array(pairs, np.int32)
    for _ in range(_ROUNDS):
        moved = placed.copy()
        moved[:, left, 9:] += (0.5 * aside[:, None] * ways)[:, None]
        moved[:, right, 9:] -= (0.5 * aside[:, None] * ways)[:, None]
        near = near_shapes(target.skeleton, moved, rows, distance)
        if not len(near.poses):
            break
        order = np.argsort(near.contacts[:, layout.GAP_SIZE], kind="stable")
        at, first = np.unique(near.poses[order], return_index=True)
        deepest = near.contacts[order[first]]
        normals = deepest[:, layout.CONTACT_NORMAL : layout.CONTACT_NORMAL + 3]
        new = aside[at] == 0.0
        flat = normals - (normals @ up)[:, None] * up
        across = moved[at, left[0], 9:] - moved[at, right[0], 9:]
        across -= (across @ up)[:, None] * up
        steep = np.linalg.norm(flat, axis=1, keepdims=True) < _LEVEL
        ways[at[new]] = unit(np.where(steep, across, flat))[new]
        along = np.maximum(np.sum(normals * ways[at], axis=1), _LEVEL)
        aside[at] += _ASIDE * (distance - deepest[:, layout.GAP_SIZE]) / along
    if not aside.any():
        return paths
    whole = np.zeros((len(frames), 3)), np.zeros(len(frames))
    whole[0][both], whole[1][both] = ways * aside[:, None], aside
    signs = dict(zip(roles, (0.5, -0.5), strict=True))
    return {role: _shifted(path, signs[role] * whole[0], whole[1], fps) for role, path in paths.items()}


def _on_both(pair: Sequence[int], feet: Sequence[Collection[int]]) -> bool:
    """Return whether one link of a pair belongs to the left foot, and the other one to the right foot."""
    a, b = pair
    return (a in feet[0] and b in feet[1]) or (a in feet[1] and b in feet[0])


def _place_foot(frames: Array, ankle: int, rows: Sequence[int], path: FootPath, at: NDArray[np.intp]) -> None:
    """Move the joints of a foot rigidly to its path, so that ankle and toe are in place; change world frames in place.

    Args:
        frames: World frames of all joints in some frames of the clip, (n, joints, 12).
        ankle: Row of the ankle.
        rows: Rows of the foot.
        path: Its path.
        at: The frames of the clip, (n,).
    """
    start = frames[:, ankle, 9:].copy()
    turn = np.broadcast_to(np.eye(3), (len(at), 3, 3))
    if path.toe_row is not None:
        a, b = unit(frames[:, path.toe_row, 9:] - start), unit(path.toe[at] - path.ankle[at])
        turn = _turns(a, b)
    own = frames[:, rows]
    turned = turn[:, None] @ own[..., :9].reshape(*own.shape[:2], 3, 3)
    places = ((own[..., 9:] - start[:, None]) @ np.swapaxes(turn, 1, 2)) + path.ankle[at][:, None]
    frames[:, rows] = np.concatenate([turned.reshape(*own.shape[:2], 9), places], axis=2)


def _turns(a: Array, b: Array) -> Array:
    """Return the smallest rotations (n, 3, 3) that turn unit vectors a to b, (n, 3), which are less than half a turn apart.

    R = 1 + [v] + [v]² / (1 + a·b) with v = a × b.
    """
    v = np.cross(a, b)
    K = np.zeros((len(v), 3, 3))
    K[:, [2, 0, 1], [1, 2, 0]], K[:, [1, 2, 0], [2, 0, 1]] = v, -v
    return np.eye(3) + K + K @ K / (1.0 + np.maximum(np.sum(a * b, axis=1), -0.99))[:, None, None]


def _shifted(path: FootPath, ways: Array, sizes: Array, fps: float) -> FootPath:
    """Return the path of a foot that stands aside in each contact, by the largest of the ways (T, 3) in it."""
    spans, shift = runs(path.stands), np.zeros_like(ways)
    for first, end in spans:
        shift[first:end] = ways[first + int(np.argmax(sizes[first:end]))]
    shift = eased(shift, spans, fps)
    return replace(path, ankle=path.ankle + shift, toe=path.toe + shift)


class _Problem:
    """The packed problem of a frame in which some limbs move out of others.

    Feet that stand come first, then the clearance, then the rotation of these feet and the places of others; finally
    joints stay near the pose of the frame. Without feet, the clearance is a constraint.

    Args:
        apart: The body and the distance.
        moving: Rows of the joints that move.
        pairs: The pairs of links that are apart, (n, 2).
        ankles: Row of each ankle that keeps its place, and whether the foot stands.
    """

    def __init__(self, apart: Apart, moving: Collection[int], pairs: Ints, ankles: Sequence[tuple[int, bool]]) -> None:
        """Pack the problem."""
        skeleton = apart.target.skeleton
        ends: list[Goal] = [PositionGoal(row, priority=0 if stands else 2) for row, stands in ankles]
        ends += [RotationGoal(row, priority=2) for row, stands in ankles if stands]
        self._ankles = [*range(len(ankles)), *(k for k, (_, stands) in enumerate(ankles) if stands)]
        clear = ClearanceGoal(
            apart.distance, pairs=[tuple(pair) for pair in pairs.tolist()], priority=1 if ankles else None
        )
        rest = RestGoal(skeleton.rest_q, joints=sorted(moving))
        tolerance = TOLERANCE * apart.target.leg, _TURNED
        solver = EditSolver(attempts=1, only=frozenset(moving))
        self._ik = CompiledProblem(skeleton, [*ends, clear, rest], solver, tolerance=tolerance)
        self._clear, self._takes = len(ends), [goal.takes for goal in ends]
        self._around = Around(self._ik)

    def overlapping(self, q: Array) -> Bools:
        """Return in which poses (T, nq) a pair of links is too near, (T,)."""
        ik, ints = self._ik, self._ik.ints.copy()
        ints[layout.MAX_STEPS] = 0
        table = self._table(np.tile(np.eye(4)[:3].ravel(), (len(q), len(self._ankles), 1)))
        rows, starts = ik.new_rows(len(q)), np.ascontiguousarray(inside_limits(ik.skeleton, q))
        ik.kernel(ints, ik.floats, table, starts, rows, ik.new_workspace().scratch, layout.COLD, 0)
        return rows[:, ik.places.stop + 2 * self._clear] > ik.tolerance[0]

    def around(self, reference: Array, places: Array, before: tuple[Array, Array] | None) -> Array:
        """Return the poses (n, nq) of frames in order, each near its own.

        Args:
            reference: Their poses, (n, nq).
            places: World frames of the ankles, (n, ankles, 12).
            before: Pose and answer of the frame before the first one, (nq,) each; None for the pose itself.
        """
        rows = self._around.solve(reference, self._table(places), Watch(), before, must=np.zeros(len(places), bool))
        return reference if rows is None else rows[:, self._ik.places]

    def _table(self, places: Array) -> Array:
        """Return the table of targets for world frames of the ankles, (n, goals, 17)."""
        own = frames_to_transforms(places)
        none = np.broadcast_to(np.eye(4), (len(places), 4, 4))
        wanted = [*(own[:, k] for k in self._ankles), none, none]
        return table_of(wanted, [*self._takes, 0, 0])


def _moving_rows(target: Body, limb: str, roles: Collection[str]) -> list[int]:
    """Return the joints that turn a limb, from its first one to the last part that is carried over."""
    carried = [part for part in PARTS[limb] if part in roles and part in target.roles]
    top = limb_tops(target.skeleton, target.roles).get(limb)
    if not carried or top is None:
        return []
    joints = target.skeleton.joints
    line = ancestors(target.skeleton.parents, target.roles[carried[-1]])
    if top not in line:
        return []
    return [row for row in line[: line.index(top) + 1] if joints[row].kind.v_size and joints[row].kind is not Kind.FREE]


def spread(skeleton: Skeleton, change: Array, width: int) -> Array:
    """Return changes over time (T, nq) that are at least as large as the given ones, and begin and end slowly.

    Each value takes the largest one within ``width`` frames, positive and negative ones by themselves, and then the
    weighted mean over as many frames. So where a value has one sign, it becomes no smaller.

    Args:
        skeleton: The skeleton.
        change: The changes, as ``change_between`` returns them.
        width: Frames on each side.
    """
    at = turns(skeleton)
    numbers = np.ones(skeleton.nq, bool)
    numbers[at.ravel()] = False
    identity = np.broadcast_to((0.0, 0.0, 0.0, 1.0), change[:, at].shape)
    turned = rotation_between(identity, change[:, at])
    flat = np.concatenate([change[:, numbers], turned.reshape(len(change), -1)], axis=1)
    used = np.flatnonzero(flat.any(axis=0))
    window = np.hanning(2 * width + 3)[1:-1]
    window /= window.sum()
    wide = np.zeros(flat.shape)
    for sign in (1.0, -1.0):
        one_sided = np.pad(np.maximum(sign * flat[:, used], 0.0), ((2 * width, 2 * width), (0, 0)))
        largest = np.lib.stride_tricks.sliding_window_view(one_sided, 2 * width + 1, axis=0).max(axis=-1)
        wide[:, used] += sign * (np.lib.stride_tricks.sliding_window_view(largest, 2 * width + 1, axis=0) @ window)
    out = np.tile(no_change(skeleton), (len(change), 1))
    out[:, numbers] = wide[:, : int(numbers.sum())]
    out[:, at] = times_exp(out[:, at], wide[:, int(numbers.sum()) :].reshape(len(change), -1, 3))
    return out


def _alike(stands: Bools) -> list[tuple[int, int]]:
    """Return spans (first frame, end) in which the same feet stand."""
    cuts = np.flatnonzero((stands[1:] != stands[:-1]).any(axis=1)) + 1
    edges = [0, *cuts.tolist(), len(stands)]
    return list(zip(edges[:-1], edges[1:], strict=True))
