"""Move limbs apart in frames of a retargeted motion in which their shapes overlap.

First, the frames in which limbs overlap are solved. Joints of the limbs stay as near to the retargeted pose as the
clearance permits; all other joints keep their values. This change is then spread over the frames before and after, so
that limbs move away and return smoothly. All these frames are solved again near the pose with the spread change, so
that the clearance holds in each of them.

Planted feet keep their positions during the whole contact. If both feet are planted and overlap, their positions are
moved apart along the floor before the legs are solved.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from synovia.errors import InputError
from synovia.goals import ClearanceGoal, Goal, PositionGoal, RestGoal, RotationGoal
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch
from synovia.ik.parallel import checked_threads
from synovia.ik.targets import table_of
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.feet import runs
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.planting import eased
from synovia.model.change import turns
from synovia.model.geometry import LONGEST, Array, frames_to_transforms, is_number, rotation_between, times_exp, unit
from synovia.model.pose import clamped, inside_limits, world_frames
from synovia.model.shapes.body import Ints
from synovia.model.shapes.over_time import TooNear, are_near, near_shapes
from synovia.model.tree import ancestors
from synovia.problem.structure import with_tied
from synovia.retargeting.body import Body
from synovia.retargeting.feet import FootPath, stand_frames
from synovia.retargeting.judging.shaped import ARMS, LEGS, PARTS, limb_of_rows, limb_pairs, limb_tops
from synovia.solver import FullBody
from synovia.tracking.around import Around

Bools = NDArray[np.bool_]
EARLY: Final = 0.1  # seconds on each side over which a change is spread, applied twice
TOLERANCE: Final = 1e-5  # leg lengths: tolerance of the clearance
SHORT: Final = 1e-3  # leg lengths: distances that are too small by less are not reported
_FEET: Final = tuple(f"{side}_foot" for side in SIDES)
_TURNED: Final = 1e-3  # radians: tolerance of the rotation of a foot
_FOOT: Final = 0.25  # leg lengths: length of a foot; rotating it in the air costs as much as displacing its tip
_LEAST: Final = 50  # smallest number of poses per thread
_LEVEL: Final = 0.2  # length of the horizontal part of a unit normal: if shorter, one foot is above the other
_ROUNDS: Final = 6  # largest number of rounds that move feet apart
_ASIDE: Final = 1.02  # displacement per overlap, slightly above 1 so that rounds end


def checked_clearance(clearance: Any) -> float | None:
    """Check the argument ``clearance`` of ``retarget``, and return it.

    Raises:
        InputError: If ``clearance`` is neither a number in range nor None.
    """
    if clearance is None:
        return None
    if not is_number(clearance) or not abs(clearance) <= LONGEST:
        raise InputError("clearance", value=clearance, expected=f"a number of at most {LONGEST:g}, or None")
    return float(clearance)


def pairs_too_near(target: Body, q: Array, distance: float) -> list[TooNear]:
    """Return the pairs of links of different limbs whose distance is too small in a clip, the nearest first.

    Args:
        target: The body, with shapes.
        q: Joint values of the clip, (T, nq).
        distance: The distance that they should have, length units.
    """
    pairs = limb_pairs(target.skeleton, target.roles)
    return links_too_near(target.skeleton, q, pairs, distance, SHORT * target.leg)


def links_too_near(skeleton: Skeleton, q: Array, pairs: Ints, distance: float, slack: float = 0.0) -> list[TooNear]:
    """Return the pairs of links (n, 2) that are too near in poses (T, nq), the nearest first.

    Distances that are too small by at most ``slack`` are ignored.
    """
    out: list[TooNear] = []
    near = near_shapes(skeleton, world_frames(skeleton, q), pairs, distance - slack)
    gaps = near.gaps
    for k in np.unique(near.pairs).tolist():
        own = near.pairs == k
        a, b = pairs[k].tolist()
        names = skeleton.link_key(a), skeleton.link_key(b)
        out.append(TooNear.of(names, distance, gaps[own].tolist(), near.poses[own].tolist()))
    return sorted(out, key=lambda one: one.distance)


class Apart:
    """Keeps shapes of a body's limbs apart.

    Args:
        target: The body; it has shapes.
        roles: Roles of the retargeted parts; only their limbs move.
        distance: Least distance between shapes of different limbs, length units.
    """

    def __init__(self, target: Body, roles: Collection[str], distance: float) -> None:
        """Find the joints that move, and the pairs of links that they can keep apart."""
        self.target, self.distance = target, distance
        self._moving = {limb: rows for limb in PARTS if (rows := _moving_rows(target, limb, roles))}
        limbs = limb_of_rows(target.skeleton, target.roles)
        self._pairs: list[tuple[tuple[str, str], tuple[int, int]]] = [
            ((limbs[a], limbs[b]), (a, b)) for a, b in limb_pairs(target.skeleton, target.roles).tolist()
        ]
        self._problems: dict[tuple[tuple[str, ...], tuple[tuple[int, bool], ...]], _Problem | None] = {}

    def pairs_of(self, limbs: Collection[str], others: Collection[str] = ()) -> Ints:
        """Return the pairs of links, (n, 2), with at least one in ``limbs`` and none in ``others``."""
        found = [
            pair
            for both, pair in self._pairs
            if any(limb in limbs for limb in both) and not any(limb in others for limb in both)
        ]
        return np.array(found, np.int32).reshape(-1, 2)

    def problem(self, limbs: tuple[str, ...], ankles: tuple[tuple[int, bool], ...]) -> _Problem | None:
        """Return the problem that moves given limbs; None if none of them can move or collide.

        Args:
            limbs: The limbs. Legs ignore the arms, because the arms avoid the legs.
            ankles: For each ankle that keeps its position, its row and whether the foot is planted.
        """
        key = limbs, ankles
        if key not in self._problems:
            moving = {row for limb in limbs for row in self._moving.get(limb, ())}
            able = [limb for limb in limbs if limb in self._moving]
            pairs = self.pairs_of(able, () if limbs == ARMS else ARMS)
            self._problems[key] = _Problem(self, moving, pairs, ankles) if len(pairs) else None
        return self._problems[key]

    def feet_apart(self, frames: Array, paths: Mapping[str, FootPath], fps: float) -> Mapping[str, FootPath]:
        """Return paths of feet in which the shapes of two planted feet do not overlap.

        In each contact, each foot moves aside by half of the largest overlap. Between contacts, its displacement
        changes smoothly.

        Args:
            frames: World frames of the target's joints before the feet are corrected, (T, n, 12).
            paths: Target path of each foot, by role.
            fps: Frames per second.
        """
        pairs, feet = self._feet
        if not len(pairs) or not all(role in paths for role in _FEET):
            return paths
        both = np.flatnonzero(np.all([paths[role].stands for role in _FEET], axis=0))
        placed = frames[both]
        for role, rows in zip(_FEET, feet, strict=True):
            _place_foot(placed, self.target.roles[role], rows, paths[role], both)
        ways = self._ways_apart(placed)
        sizes = np.linalg.norm(ways, axis=1)
        if not sizes.any():
            return paths
        whole = np.zeros((len(frames), 3))
        whole[both] = ways
        signs = dict(zip(_FEET, (0.5, -0.5), strict=True))
        return {role: _shifted(path, signs[role] * whole, fps) for role, path in paths.items()}

    def _ways_apart(self, frames: Array) -> Array:
        """Return the displacement along the floor, (n, 3), that moves the left foot out of the right one in each pose.

        Args:
            frames: World frames of the joints, (n, joints, 12).
        """
        pairs, (left, right) = self._feet
        up = self.target.basis[:, 1]
        size, ways = np.zeros(len(frames)), np.zeros((len(frames), 3))
        for _ in range(_ROUNDS):
            moved = frames.copy()
            moved[:, left, 9:] += (size[:, None] * ways)[:, None]
            near = near_shapes(self.target.skeleton, moved, pairs, self.distance)
            if not len(near.poses):
                break
            order = np.argsort(near.gaps, kind="stable")
            at, first = np.unique(near.poses[order], return_index=True)
            normals, gaps = near.normals[order[first]], near.gaps[order[first]]
            across = moved[at, left[0], 9:] - moved[at, right[0], 9:]
            flat, across = (way - (way @ up)[:, None] * up for way in (normals, across))
            steep = np.linalg.norm(flat, axis=1, keepdims=True) < _LEVEL
            new = size[at] == 0.0
            ways[at[new]] = unit(np.where(steep, across, flat))[new]
            along = np.maximum(np.sum(normals * ways[at], axis=1), _LEVEL)
            size[at] += _ASIDE * (self.distance - gaps) / along
        return size[:, None] * ways

    @cached_property
    def _feet(self) -> tuple[Ints, tuple[list[int], list[int]]]:
        """Pairs of links of both feet, the left link first, (n, 2), and the rows of each foot, its ankle first."""
        parents, roles = self.target.skeleton.parents, self.target.roles
        left, right = (
            [row for row in range(len(parents)) if roles[role] in ancestors(parents, row)] if role in roles else []
            for role in _FEET
        )
        both = [sorted(pair, key=lambda row: row in right) for _, pair in self._pairs]
        pairs = [pair for pair in both if pair[0] in left and pair[1] in right]
        return np.array(pairs, np.int32).reshape(-1, 2), (left, right)

    def moved(
        self, q: Array, fps: float, paths: Mapping[str, FootPath], threads: int | None = None
    ) -> Generator[None, None, Array]:
        """Move limbs so that they keep the distance, as far as possible; yield after each stage, and return (T, nq).

        Args:
            q: Joint values, (T, nq).
            fps: Frames per second.
            paths: Target path of each foot, by role.
            threads: Number of threads; None for all cores. Results are identical for any number.
        """
        rows = [self.target.roles[role] for role in paths]
        standing, count = stand_frames(paths, len(q)), checked_threads(threads)
        with ThreadPoolExecutor(count) if count > 1 else InTurn() as pool:
            for limbs, ankles, stands in ((LEGS, rows, standing), (ARMS, [], standing[:, :0])):
                whole = self.problem(limbs, tuple((row, False) for row in ankles))
                if whole is None:
                    continue
                bad = whole.overlapping(q, pool, count)
                if not bad.any():
                    continue
                places = world_frames(self.target.skeleton, q)[:, ankles]
                stage = _Stage(self, limbs, ankles, stands, places)
                yield
                around, moves = spread(self.target.skeleton, q, stage.solved(q, bad, pool), round(EARLY * fps))
                yield
                if not ankles:  # legs keep all frames, so that ankles return to their positions
                    moves[moves] = whole.overlapping(around[moves], pool, count)
                    yield
                q = stage.solved(around, moves, pool)
                yield
        return q


class InTurn:
    """Has the methods of a thread pool, but runs the work in the calling thread."""

    map = staticmethod(map)

    def __enter__(self) -> InTurn:
        """Return this object."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


@dataclass(frozen=True, eq=False)
class _Stage:
    """A stage that moves some limbs of a clip apart from others.

    Args:
        apart: The body and the distance.
        limbs: The limbs that move.
        ankles: Rows of the ankles that keep their positions.
        stands: Masks of the frames in which each of these feet is planted, (T, ankles).
        places: World frames of these ankles, (T, ankles, 12).
    """

    apart: Apart
    limbs: tuple[str, ...]
    ankles: Sequence[int]
    stands: Bools
    places: Array

    def solved(self, q: Array, frames: Bools, pool: ThreadPoolExecutor | InTurn) -> Array:
        """Return joint values (T, nq) in which given frames are solved, each near its pose in ``q``.

        Args:
            q: Joint values, (T, nq).
            frames: Mask of the frames to solve, (T,).
            pool: Threads.
        """
        reference, spans, out = inside_limits(self.apart.target.skeleton, q), runs(frames), q.copy()
        for (first, end), found in zip(spans, pool.map(partial(self._of_span, reference), spans), strict=True):
            out[first:end] = found
        return out

    def _of_span(self, reference: Array, span: tuple[int, int]) -> Array:
        """Return the solved poses (n, nq) of frames (first, end), each near its pose in ``reference``, (T, nq)."""
        before: tuple[Array, Array] | None = None
        out = reference[slice(*span)].copy()
        for a, b in _alike(self.stands[slice(*span)]):
            part = slice(span[0] + a, span[0] + b)
            stands = self.stands[part.start].tolist()
            problem = self.apart.problem(self.limbs, tuple(zip(self.ankles, stands, strict=True)))
            if problem is not None:
                out[a:b] = problem.around(reference[part], self.places[part], before)
                before = reference[part.stop - 1], out[b - 1]
        return out


@lru_cache(maxsize=8)
def apart_of(target: Body, roles: frozenset[str], distance: float) -> Apart:
    """Return ``Apart`` for these arguments; the last results are cached."""
    return Apart(target, roles, distance)


def _place_foot(frames: Array, ankle: int, rows: Sequence[int], path: FootPath, at: NDArray[np.intp]) -> None:
    """Move the joints of a foot rigidly so that ankle and toe are on the foot's path; change world frames in place.

    Args:
        frames: World frames of all joints in some frames of the clip, (n, joints, 12).
        ankle: Row of the ankle.
        rows: Rows of all joints of the foot.
        path: Target path of the foot.
        at: Indices of these frames in the clip, (n,).
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
    """Return the smallest rotations (n, 3, 3) between unit vectors a and b, (n, 3), at angles below 180°.

    R = 1 + [v] + [v]² / (1 + a·b) with v = a × b.
    """
    v = np.cross(a, b)
    K = np.zeros((len(v), 3, 3))
    K[:, [2, 0, 1], [1, 2, 0]], K[:, [1, 2, 0], [2, 0, 1]] = v, -v
    return np.eye(3) + K + K @ K / (1.0 + np.maximum(np.sum(a * b, axis=1), -0.99))[:, None, None]


def _shifted(path: FootPath, ways: Array, fps: float) -> FootPath:
    """Return a foot's path, moved aside in each contact by the largest displacement in it; ``ways`` has all, (T, 3)."""
    spans, shift, sizes = runs(path.stands), np.zeros_like(ways), np.linalg.norm(ways, axis=1)
    for first, end in spans:
        shift[first:end] = ways[first + int(np.argmax(sizes[first:end]))]
    shift = eased(shift, spans, fps)
    return replace(path, ankle=path.ankle + shift, toe=path.toe + shift)


class _Problem:
    """The compiled problem that moves some limbs of a frame apart from others.

    The priorities are: positions of planted feet; the clearance; rotations of all feet (otherwise feet would rotate
    suddenly) and positions of other feet; the distance to the reference pose. Without feet, the clearance is a
    constraint.

    Args:
        apart: The body and the distance.
        moving: Rows of the joints that move.
        pairs: The pairs of links to keep apart, (n, 2).
        ankles: For each ankle that keeps its position, its row and whether the foot is planted.
    """

    def __init__(self, apart: Apart, moving: Collection[int], pairs: Ints, ankles: Sequence[tuple[int, bool]]) -> None:
        """Compile the problem."""
        self._apart, self._pairs = apart, pairs
        skeleton = apart.target.skeleton
        ends: list[Goal] = [PositionGoal(row, priority=0 if stands else 2) for row, stands in ankles]
        swings = _FOOT * apart.target.leg
        ends += [RotationGoal(row, weight=1.0 if stands else swings, priority=2) for row, stands in ankles]
        self._ankles = 2 * [*range(len(ankles))]
        clear = ClearanceGoal(
            apart.distance, pairs=[tuple(pair) for pair in pairs.tolist()], priority=1 if ankles else None
        )
        rest = RestGoal(skeleton.rest_q, joints=sorted(moving))
        tolerance = TOLERANCE * apart.target.leg, _TURNED
        self._ik = CompiledProblem(
            skeleton, [*ends, clear, rest], FullBody(attempts=1),
            tolerance=tolerance, moving=with_tied(skeleton, moving),
        )  # fmt: skip
        self._takes = [goal.takes for goal in ends]
        self._idle: list[Around] = []  # one for each thread

    def overlapping(self, q: Array, pool: ThreadPoolExecutor | InTurn, threads: int) -> Bools:
        """Return a mask of the poses (T, nq) in which a pair of links is too near, (T,)."""
        blocks = np.array_split(q, max(1, min(threads, len(q) // _LEAST)))
        return np.concatenate([*pool.map(self._overlapping, blocks)])

    def _overlapping(self, q: Array) -> Bools:
        """Return a mask of the poses (n, nq) in which a pair of links is too near, (n,)."""
        skeleton = self._apart.target.skeleton
        return are_near(skeleton, world_frames(skeleton, q), self._pairs, self._apart.distance)

    def around(self, reference: Array, places: Array, before: tuple[Array, Array] | None) -> Array:
        """Return the solved poses (n, nq) of consecutive frames, each near its reference.

        Args:
            reference: Poses to stay near, (n, nq).
            places: World frames of the ankles, (n, ankles, 12).
            before: Reference and solved pose of the previous frame, (nq,) each; None to start at the first reference.
        """
        try:
            around = self._idle.pop()
        except IndexError:
            around = Around(self._ik)
        rows = around.solve(reference, self._table(places), Watch(), before, must=np.zeros(len(places), bool))
        self._idle.append(around)
        return reference if rows is None else rows[:, self._ik.places]

    def _table(self, places: Array) -> Array:
        """Return the table of targets, (n, goals, 17), from world frames of the ankles, (n, ankles, 12)."""
        own = frames_to_transforms(places)
        none = np.broadcast_to(np.eye(4), (len(places), 4, 4))
        wanted = [*(own[:, k] for k in self._ankles), none, none]
        return table_of(wanted, [*self._takes, 0, 0])


def _moving_rows(target: Body, limb: str, roles: Collection[str]) -> list[int]:
    """Return the rows of the joints that move a limb, from its last retargeted part up to its first joint."""
    carried = [part for part in PARTS[limb] if part in roles and part in target.roles]
    top = limb_tops(target.skeleton, target.roles).get(limb)
    if not carried or top is None:
        return []
    joints = target.skeleton.joints
    line = ancestors(target.skeleton.parents, target.roles[carried[-1]])
    if top not in line:
        return []
    return [row for row in line[: line.index(top) + 1] if joints[row].kind.v_size and joints[row].kind is not Kind.FREE]


def spread(skeleton: Skeleton, q: Array, moved: Array, width: int) -> tuple[Array, Bools]:
    """Spread a change of a clip over frames before and after, so that the change begins and ends slowly.

    A component is a joint value or a component of a rotation vector. Each component takes its largest change within
    ``width`` frames, separately for positive and negative changes, and then a weighted mean over as many frames. So a
    change becomes nowhere smaller where it has one sign.

    Args:
        skeleton: The skeleton.
        q: Joint values of the clip before the change, (T, nq).
        moved: Joint values of the clip after the change, (T, nq).
        width: Number of frames on each side.

    Returns:
        Joint values with the spread change, (T, nq), and a mask of the frames that it affects, (T,).
    """
    differs = (q != moved).any(axis=0)
    quats = turns(skeleton)
    numbers = differs.copy()
    numbers[quats.ravel()] = False
    quats = quats[differs[quats].any(axis=1)]
    turned = rotation_between(q[:, quats], moved[:, quats]).reshape(len(q), -1)
    change = np.concatenate([(moved - q)[:, numbers], turned], axis=1)
    window = np.hanning(2 * width + 3)[1:-1]
    window /= window.sum()
    wide = np.zeros(change.shape)
    for sign in (1.0, -1.0):
        one_sided = np.pad(np.maximum(sign * change, 0.0), ((2 * width, 2 * width), (0, 0)))
        largest = sliding_window_view(one_sided, 2 * width + 1, axis=0).max(axis=-1)
        wide += sign * (sliding_window_view(largest, 2 * width + 1, axis=0) @ window)
    moves: Bools = np.asarray(wide.any(axis=1))
    out = q.copy()
    count = int(numbers.sum())
    out[np.ix_(moves, numbers)] += wide[moves, :count]
    at = np.ix_(moves, quats.ravel())
    starts = q[moves][:, quats]
    out[at] = times_exp(starts, wide[moves, count:].reshape(*starts.shape[:2], 3)).reshape(len(starts), quats.size)
    out[moves] = clamped(skeleton, skeleton.follow(out[moves]))
    if skeleton.mechanism is not None:
        out = skeleton.mechanism.shut_clip(out)
    return out, moves


def _alike(stands: Bools) -> list[tuple[int, int]]:
    """Return spans (first frame, end) in which the set of planted feet is constant."""
    cuts = np.flatnonzero((stands[1:] != stands[:-1]).any(axis=1)) + 1
    edges = [0, *cuts.tolist(), len(stands)]
    return list(itertools.pairwise(edges))
