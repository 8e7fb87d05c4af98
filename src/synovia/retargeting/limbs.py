"""Solve arms and legs made of hinges for a whole clip: both bones follow the source, with bounded steps.

A robot's elbow is one hinge, and the three hinges of its shoulder lose an axis where the arm points along the first of
them. So orientations of single frames are a poor guide: the swing plane of the limb (the plane of its two bones) is
lost, and angles jump. Here the directions of both bones are followed in all frames at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model import Kind
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, cross, unit
from synovia.model.tree import ancestors
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import Body, point_at
from synovia.tracking.chains import (
    Chain,
    Direction,
    Orientation,
    Place,
    Term,
    base_frames,
    is_hinge,
    keeps_steps,
    within_steps,
)

PLACE: Final = 300.0  # weight of a foot's position, in leg lengths, relative to orientations
FAR: Final = 2e-5  # distance of a foot from its target beyond which its leg may move faster, as a fraction of the leg
HAND: Final = 0.2  # weight of a hand's orientation, relative to the directions of the bones
ARMS: Final = tuple((f"{side}_upper_arm", f"{side}_lower_arm", f"{side}_hand") for side in SIDES)
Bools = NDArray[np.bool_]
TRUNK: Final = (("spine", "chest", "upper_chest"), ("neck", "head"))
# Weight of squared steps at 30 frames per second; it leads a straight limb through its singular pose
SMOOTHNESS: Final = 1e-3
STEP: Final = (1.4, np.radians(4.0))  # largest step of a hinge: factor for its part's step in the source, plus radians
SLOW: Final = 30.0  # frames per second; above, the added angle is smaller in proportion
# Cut of a clip: a step larger than this angle (radians) and than this multiple of the steps before and after
_CUT: Final = (0.5, 3.0)
_ALONG: Final = 0.8  # cosine between hinge and forearm; above, the hinge twists the forearm and does not bend the elbow
_ALIKE: Final = 0.7  # smallest ratio of the two ranges of an elbow that may bend to both sides
_BENT: Final = 0.3  # radians; a larger bend at rest shows to which side the elbow bends
_AHEAD: Final = 0.3  # cosine above which the lower part clearly moves forwards or backwards as it bends
_ELBOW: Final = (0.07, 0.2)  # sines of the bend: below, a limb is straight; above, its plane is clear
_KNEE: Final = (0.2, 0.6)  # knees bend less than rest poses differ
SURE: Final = (0.42, 0.26)  # sines of bends that are surely to the allowed side: 25°, or 15° if no frame bends that far
_APART: Final = 1e-3  # fraction of the skeleton's size; smaller distances do not determine a direction
_HALF: Final = 0.5  # fraction of the distance from elbow to hand: the first joint beyond it is the wrist
_MISSED: Final = np.radians(15.0)  # error of a bone above which other starts are tried


_AT_BOUND: Final = 0.999  # fraction of the bound; a larger step counts as at its bound
_LATE: Final = 3  # frames before and after such a step whose errors do not lead to other starts


@dataclass(frozen=True, eq=False)
class Limb:
    """A limb whose lower part is moved by hinges, and the directions that its bones should have.

    Args:
        roles: Upper part, lower part, end.
        bones: Directions of both bones at rest, (2, 3), world.
        end: Row of the joint that moves the end of the lower bone.
        offset: Position of that end in the frame of this row, (3,).
        points: Points of the source that define the directions of both bones: the rows where upper and lower part
            begin, the row that moves the end of the lower bone, and the end in its frame; None if bones follow the
            orientations of their parts.
    """

    roles: tuple[str, str, str]
    bones: Array
    end: int
    offset: Array
    points: tuple[int, int, int, Array] | None = None

    def ways(self, source: Body, target: Body, frames: Array) -> tuple[Array, Array]:
        """Return the directions (T, 3) that both bones should have, for world frames (T, n, 12) of the source."""
        upper, lower = _lines(self.points, frames) if self.points is not None else (np.zeros((0, 3)),) * 2
        across = target.basis @ source.basis.T
        return unit(upper) @ across.T, unit(lower) @ across.T


def _lines(points: tuple[int, int, int, Array], frames: Array) -> tuple[Array, Array]:
    """Return the vectors (T, 3) along both bones of a limb of the source; see ``Limb.points``."""
    middle = frames[:, points[1], 9:]
    return middle - frames[:, points[0], 9:], point_at(frames, *points[2:]) - middle


def limbs_of(source: Body, target: Body, roles: Sequence[str]) -> list[Limb]:
    """Return the target's limbs whose lower part is moved by hinges.

    Arms take the directions of the source's bones, unless the source has none, such as a forearm without a hand. Legs
    keep the small differences between the rest poses, which come from the hip joints; so their bones follow the
    orientations of their parts.

    Args:
        source: The body that moves.
        target: The body that follows.
        roles: The parts that both have.
    """
    out: list[Limb] = []
    for side in SIDES:
        for names in (("upper_arm", "lower_arm", "hand"), ("upper_leg", "lower_leg", "foot")):
            upper, lower, end = (f"{side}_{name}" for name in names)
            if upper not in roles or lower not in roles:
                continue
            row, offset = lower_end(target, lower, end)
            begin, middle = target.rest_position(upper), target.rest_position(lower)
            bones = unit(np.array([middle - begin, point_at(target.rest, row, offset) - middle]))
            points = None
            if names[0] == "upper_arm":
                points = source.joint_row(upper), source.joint_row(lower), *lower_end(source, lower, end)
                lines = _lines(points, source.rest[None])
                if any(float(np.linalg.norm(line)) <= _APART * source.skeleton.size for line in lines):
                    points = None
            out.append(Limb((upper, lower, end), bones, row, offset, points))
    return out


@dataclass(frozen=True, eq=False)
class Plane:
    """The swing plane of a limb that bends about a hinge, and the data that places upper and lower part in it.

    Args:
        limb: The limb.
        axis: Axis at rest, (3,), about which the limb bends to the side with the larger range.
        both: Whether the limb bends to both sides, so that the source decides the side.
        bones: Directions of both bones at rest, (2, 3); for a leg, only the part normal to the hinge.
        rests: Orientations of both parts at rest, (2, 3, 3).
        foot: Orientation of the foot at rest, (3, 3), if the foot sets the heading of the leg; None otherwise.
        clear: Sines of the bend: below, the limb is straight; above, its plane is clear.
    """

    limb: Limb
    axis: Array
    both: bool
    bones: Array
    rests: Array
    foot: Array | None
    clear: tuple[float, float]

    @classmethod
    def of(cls, limb: Limb, target: Body, roles: Collection[str]) -> Plane | None:
        """Return the plane of a limb, or None if it has no hinge.

        Args:
            limb: The limb.
            target: The body that follows.
            roles: The parts that both bodies have.
        """
        axis, both = bending_axis(target, limb)
        if axis is None:
            return None
        rests = np.array([target.rest[target.roles[role], :9].reshape(3, 3) for role in limb.roles[:2]])
        bones, clear, foot = limb.bones, _ELBOW, None
        if limb.points is None:  # a hip may lie sideways of the knee, so only the part normal to the hinge is used
            bones, clear = unit(bones - (bones @ axis)[:, None] * axis), _KNEE
            end = target.roles.get(limb.roles[2])
            if limb.roles[2] in roles and end is not None and is_hinge(target.skeleton.joints[end]):
                foot = target.rest[end, :9].reshape(3, 3)  # this ankle cannot turn the foot's heading: the hip does
        return cls(limb, axis, both, bones, rests, foot, clear)

    @property
    def frames(self) -> Array:
        """Rotations (2, 3, 3) from the frame of each bone and the hinge (see ``_frames``) to the part."""
        return np.swapaxes(_frames(self.bones, np.tile(self.axis, (2, 1))), 1, 2) @ self.rests

    def turned(self) -> Plane:
        """Return the plane for a limb that bends to the other side."""
        return replace(self, axis=-self.axis)


def bending_axis(target: Body, limb: Limb) -> tuple[Array | None, bool]:
    """Return the axis at rest about which a limb bends to the side with the larger range, or None without a hinge.

    A limb that bends to both sides bends as at rest, or else a forearm moves forwards and a shin backwards. The second
    value is True for a limb that bends to both sides and is nearly straight at rest.
    """
    skeleton = target.skeleton
    first, last = target.first_row(limb.roles[1]), target.roles[limb.roles[1]]
    rows = ancestors(skeleton.parents, last)[::-1]
    rows = rows[rows.index(first) :]
    joints = [skeleton.joints[row] for row in rows]
    if not all(joint.kind is Kind.FIXED or is_hinge(joint) for joint in joints):
        return None, False
    bone, lower = limb.bones
    for row, joint in zip(rows, joints, strict=True):
        axis = target.rest[row, :9].reshape(3, 3) @ joint.axis
        if is_hinge(joint) and abs(axis @ lower) < _ALONG:
            a, b = (v - (v @ axis) * axis for v in (bone, lower))
            bend = float(np.arctan2(cross(a, b) @ axis, a @ b))  # at rest
            at = skeleton.q_slice(row).start
            low, high = (float(limit[at] - skeleton.rest_q[at]) + bend for limit in skeleton.limits)
            wide = high >= -low
            both = min(high, -low) >= _ALIKE * max(high, -low)
            if both:
                ahead = float(cross(axis, lower) @ target.basis[:, 2]) * (1.0 if "arm" in limb.roles[1] else -1.0)
                wide = bend > 0.0 if abs(bend) > _BENT else ahead > 0.0 if abs(ahead) > _AHEAD else wide
            return axis if wide else -axis, both and abs(bend) <= _BENT
    return None, False


def _frames(x: Array, y: Array) -> Array:
    """Return rotations (T, 3, 3) whose first column is x, and whose second is y as far as it is normal to x."""
    y = unit(y - np.sum(x * y, axis=1, keepdims=True) * x)
    return np.stack([x, y, cross(x, y)], axis=2)


@dataclass(frozen=True, eq=False)
class Follower:
    """A body that follows the parts of another one.

    Args:
        body: The body.
        parts: The parts that both have.
        bounds: Largest steps of its hinges.
        fps: Frames per second.
    """

    body: Body
    parts: Sequence[Part]
    bounds: Bounds
    fps: float

    @property
    def places(self) -> dict[str, int]:
        """Index of each part in ``parts``, by role."""
        return {part.role: k for k, part in enumerate(self.parts)}


def follow_arms(
    limbs: Sequence[Limb], source: Body, frames: Array, follower: Follower, wanted: Array, q: Array
) -> None:
    """Solve arms of hinges for the directions of their bones and the orientations of their hands; change q in place.

    Args:
        limbs: The limbs.
        source: The body that moves.
        frames: World frames of the source, (T, n, 12).
        follower: The body that follows.
        wanted: World orientations of the parts, (T, parts, 3, 3).
        q: (T, nq) joint values of the body, the start of the search.
    """
    target, number = follower.body, follower.places
    for limb in limbs:
        roles = tuple(role for role in limb.roles if role in number)
        chain = None if limb.points is None else chain_of(target, roles)
        if chain is None or limb.end not in chain.rows:
            continue
        ways = limb.ways(source, target, frames)
        shoulder = chain.rows.index(target.joint_row(limb.roles[0]))
        elbow = chain.rows.index(target.first_row(limb.roles[1]))
        terms: list[Term] = [
            Direction(shoulder, elbow, np.zeros(3), ways[0], 1.0),
            Direction(elbow, chain.rows.index(limb.end), limb.offset, ways[1], 1.0),
        ]
        if len(roles) > 2:
            terms.append(Orientation(len(chain.rows) - 1, wanted[:, number[roles[2]]], HAND))
        q[:, chain.at] = best_follow(chain, follower, q, terms, hinge_bounds(chain, follower, roles))
        target.skeleton.follow(q)


def best_follow(chain: Chain, follower: Follower, q: Array, terms: Sequence[Term], most: Array) -> Array:
    """Return the angles (T, hinges) of a chain that best meet its terms; try other starts if a bone misses.

    Args:
        chain: The hinges.
        follower: The body.
        q: (T, nq) joint values of the body.
        terms: Goals of the chain.
        most: Largest steps, (T - 1, hinges) radians.
    """
    base = base_frames(follower.body.skeleton, q, chain.base)
    smoothness = SMOOTHNESS * (follower.fps / 30.0) ** 2
    best, least = chain.follow(base, q[:, chain.at], terms, bounds=most, smoothness=smoothness)
    bones = [n for n, term in enumerate(terms) if term.weight == 1.0]
    e, _ = chain.residuals(base, best, terms)
    off = np.linalg.norm(e.reshape(len(e), -1, 3)[:, bones], axis=2)
    free = ~_around_fast(best, most)
    if (off.max(axis=1) > _MISSED)[free].any():
        for start in _starts(chain, follower.body):
            x, cost = chain.follow(base, np.tile(start, (len(q), 1)), terms, bounds=most, smoothness=smoothness)
            if cost < least:
                best, least = x, cost
    return best


def _around_fast(x: Array, most: Array) -> Bools:
    """Return which frames (T,) are close to a step at its bound, where errors come from the bound."""
    fast = np.pad((np.abs(np.diff(x, axis=0)) >= _AT_BOUND * most).any(axis=1), (0, 1))
    out = np.zeros(len(x), bool)
    for t in np.flatnonzero(fast).tolist():
        out[max(0, t - _LATE + 1) : t + 1 + _LATE] = True
    return out


def hinge_bounds(chain: Chain, follower: Follower, roles: Sequence[str]) -> Array:
    """Return the largest step of each hinge of a chain, (T - 1, hinges) radians: the bound of the part that it moves.

    Args:
        chain: The hinges.
        follower: The body.
        roles: Parts along the chain, from its base.
    """
    bounds = follower.bounds
    ends = [(chain.rows.index(follower.body.roles[role]), role) for role in roles if role in bounds.parts]
    roles_of = [next((role for end, role in ends if end >= k), ends[-1][1]) for k in chain.hinges]
    return np.minimum(np.stack([bounds.parts[role] for role in roles_of], axis=1), _velocity(chain, bounds))


def _velocity(chain: Chain, bounds: Bounds) -> Array:
    """Return the largest step of each hinge of a chain, (T - 1, hinges) radians, from its velocity limit."""
    return bounds.rows[:, [chain.rows[k] for k in chain.hinges]]


def smooth_steps(
    groups: Iterable[Sequence[str]],
    follower: Follower,
    wanted: Array,
    q: Array,
    places: Mapping[str, Array] | None = None,
) -> None:
    """Solve limbs of hinges with too large steps again, in all frames at once; change q in place.

    Args:
        groups: Consecutive parts, from the base of a limb to its end; missing parts are left out.
        follower: The body.
        wanted: World orientations of the parts, (T, parts, 3, 3).
        q: (T, nq) joint values.
        places: Positions (T, 3) of some parts, by role; they have more weight than orientations.
    """
    target, bounds, number = follower.body, follower.bounds, follower.places
    for group in groups:
        roles = tuple(role for role in group if role in number)
        chain = chain_of(target, roles) if roles else None
        if chain is None:
            continue
        most = hinge_bounds(chain, follower, roles)
        if keeps_steps(q[:, chain.at], most):
            continue
        terms: list[Term] = []
        for role in roles:
            row = chain.rows.index(target.roles[role])
            terms.append(Orientation(row, wanted[:, number[role]], 1.0))
            if places is not None and role in places:
                terms.append(Place(row, np.zeros(3), places[role], PLACE))
        x = best_follow(chain, follower, q, terms, most)
        if places is not None and _misses(chain, target, q, x, terms):  # a planted foot may need a faster leg
            for parts_of in (roles, list(bounds.parts)):  # first as fast as its own parts, then as any part
                fastest = np.max([bounds.parts[role] for role in parts_of if role in bounds.parts], axis=0)[:, None]
                most = np.minimum(np.maximum(most, fastest), _velocity(chain, bounds))
                kept = keeps_steps(q[:, chain.at], most)
                x = q[:, chain.at] if kept else best_follow(chain, follower, q, terms, most)
                if kept or not _misses(chain, target, q, x, terms):
                    break
        q[:, chain.at] = x
        target.skeleton.follow(q)


def _misses(chain: Chain, target: Body, q: Array, x: Array, terms: Sequence[Term]) -> bool:
    """Return whether angles ``x`` of a chain miss a position, in any frame, that the joint values q reach."""
    places = [term for term in terms if isinstance(term, Place)]
    if not places:
        return False
    base = base_frames(target.skeleton, q, chain.base)
    off, before = (np.abs(chain.residuals(base, y, places)[0]) for y in (x, q[:, chain.at]))
    return bool((off - before).max() * chain.length > FAR * PLACE * target.leg)


def _starts(chain: Chain, target: Body) -> list[Array]:
    """Return start poses of a chain: rest, and the middle of the limits."""
    rest = target.skeleton.rest_q[chain.at]
    low, high = np.maximum(chain.lower, -np.pi), np.minimum(chain.upper, np.pi)
    return [rest, 0.5 * (low + high)]


@lru_cache(maxsize=64)
def chain_of(target: Body, roles: tuple[str, ...]) -> Chain | None:
    """Return the hinges that move some consecutive parts, or None if other joints do; the last results are cached."""
    skeleton = target.skeleton
    rows = ancestors(skeleton.parents, target.roles[roles[-1]])[::-1]
    ends = [target.first_row(roles[0]), *(target.roles[role] for role in roles)]
    if not all(row in rows for row in ends):
        return None
    rows = rows[rows.index(ends[0]) :]
    joints = [skeleton.joints[row] for row in rows]
    plain = all(joint.kind is Kind.FIXED or is_hinge(joint) for joint in joints)
    return Chain(skeleton, rows) if plain and any(is_hinge(joint) for joint in joints) else None


def lower_end(body: Body, lower: str, end: str) -> tuple[int, Array]:
    """Return the row of the joint that moves the end of a lower bone, and that end in its frame, (3,).

    It is the first joint of the part at the end that is apart from the start of the bone; a wrist may begin with a
    hinge in the elbow.
    """
    row = body.roles[lower]
    if end not in body.roles:
        return row, _tip(body, row)
    start, last = body.rest_position(lower), body.rest[body.roles[end], 9:]
    rows = ancestors(body.skeleton.parents, body.roles[end])[::-1]
    for k in rows[rows.index(row) + 1 :] if row in rows else []:
        if np.linalg.norm(body.rest[k, 9:] - start) >= _HALF * np.linalg.norm(last - start):
            return k, np.zeros(3)
    return body.roles[end], np.zeros(3)


def _tip(body: Body, row: int) -> Array:
    """Return the end of a part without a joint there, in its frame: centre of mass, else mean of the joints below."""
    skeleton = body.skeleton
    if skeleton.joints[row].mass > 0.0 and np.linalg.norm(skeleton.joints[row].com) > _APART * skeleton.size:
        return skeleton.joints[row].com
    below = [k for k in range(row + 1, len(skeleton)) if row in ancestors(skeleton.parents, k)]
    if below:
        return body.rest[row, :9].reshape(3, 3).T @ (body.rest[below, 9:].mean(0) - body.rest[row, 9:])
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Largest steps of joints from one frame to the next.

    Args:
        parts: (T - 1,) radians of the hinges of each part, by role.
        rows: (T - 1, n) radians of each joint of the target.
    """

    parts: Mapping[str, Array]
    rows: Array


def keep_velocity(target: Body, q: Array, bounds: Bounds) -> Array:
    """Return joint values (T, nq) in which hinges outside chains also keep their velocity limits."""
    rows = [
        row
        for row, joint in enumerate(target.skeleton.joints)
        if is_hinge(joint) and np.isfinite(bounds.rows[:, row]).any()
    ]
    if not rows:
        return q
    at = [target.skeleton.q_slice(row).start for row in rows]
    q[:, at] = within_steps(q[:, at], bounds.rows[:, rows])
    return target.skeleton.follow(q)


def largest_steps(source: Body, target: Body, frames: Array, fps: float, velocity: Array, *, strict: bool) -> Bounds:
    """Return how far joints may rotate in one frame.

    A hinge may rotate a little farther than the source's part does relative to the part above it, and at most as fast
    as its velocity limit.

    Args:
        source: The body that moves.
        target: The body that follows.
        frames: (T, n, 12) world frames of the source.
        fps: Frames per second.
        velocity: (m,) highest velocity of each joint of the target, radians per second.
        strict: Whether velocity limits also hold across cuts of the clip, such as the one after a first frame in
            T-pose.
    """
    factor, more = STEP[0], STEP[1] * min(1.0, SLOW / fps)
    rows = set(source.roles.values())
    out: dict[str, Array] = {}
    for role, row in source.roles.items():
        if role not in target.roles:
            continue
        above = next((k for k in ancestors(source.skeleton.parents, row)[1:] if k in rows), -1)
        turn = frames[:, row, :9].reshape(-1, 3, 3)
        if above >= 0:
            turn = np.swapaxes(frames[:, above, :9].reshape(-1, 3, 3), 1, 2) @ turn
        cosine = 0.5 * (np.einsum("tij,tij->t", turn[1:], turn[:-1]) - 1.0)
        out[role] = factor * np.arccos(np.clip(cosine, -1.0, 1.0)) + more
    steps = np.tile(velocity / fps, (len(frames) - 1, 1))
    if not strict and len(steps):
        fastest = np.max(list(out.values()), axis=0)
        around = np.pad(fastest, 1)
        steps[(fastest > _CUT[0]) & (fastest > _CUT[1] * np.maximum(around[:-2], around[2:]))] = np.inf
    return Bounds(out, steps)
