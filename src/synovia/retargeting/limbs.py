"""Solve arms and legs made of hinges for a whole clip, so that both bones follow the source with bounded steps.

A robot's elbow is one hinge, and the three hinges of its shoulder lose an axis if the arm points along the first of
them. So frames cannot be solved one by one for orientations: the swing plane of the limb (the plane of its two bones)
is then lost, and angles jump. Here the directions of both bones are followed in all frames together.
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

PLACE: Final = 300.0  # weight of a foot's position (leg lengths); orientations have weight 1
FAR: Final = 2e-5  # fraction of the leg: if a foot is farther from its target, its leg may move faster
HAND: Final = 0.2  # weight of a hand's orientation; the directions of the bones have weight 1
ARMS: Final = tuple((f"{side}_upper_arm", f"{side}_lower_arm", f"{side}_hand") for side in SIDES)
Bools = NDArray[np.bool_]
TRUNK: Final = (("spine", "chest", "upper_chest"), ("neck", "head"))
# weight of squared steps at 30 frames per second; it leads a straight limb through its singular pose
SMOOTHNESS: Final = 1e-3
STEP: Final = (1.4, np.radians(4.0))  # largest step of a hinge: factor of its part's step in the source, plus radians
SLOW: Final = 30.0  # frames per second: at higher rates, the added angle is smaller in proportion
# at a cut of a clip, a step exceeds this angle (radians) and this multiple of the steps before and after
_CUT: Final = (0.5, 3.0)
_ALONG: Final = 0.8  # cosine between hinge and forearm, above which the hinge twists and does not bend the elbow
_ALIKE: Final = 0.7  # an elbow may bend to both sides if the ratio of the two ranges is at least this
_BENT: Final = 0.3  # radians: a larger bend at rest shows the side to which an elbow bends
_AHEAD: Final = 0.3  # cosine above which a lower part clearly moves forwards or backwards when it bends
_ELBOW: Final = (0.07, 0.2)  # sines of the bend: below, a limb is straight; above, its plane is clear
_KNEE: Final = (0.2, 0.6)  # as ``_ELBOW``, for knees, which bend less than rest poses differ
SURE: Final = (0.42, 0.26)  # sines of bends that are surely to the allowed side: 25°, or 15° if no frame bends so far
_APART: Final = 1e-3  # fraction of the skeleton's size: smaller distances do not determine a direction
_HALF: Final = 0.5  # fraction of the distance from elbow to hand: the wrist is the first joint that is farther away
_MISSED: Final = np.radians(15.0)  # radians: if a bone's error is larger, other start poses are tried


_AT_BOUND: Final = 0.999  # fraction of the bound: larger steps count as at the bound
_LATE: Final = 3  # frames before and after such a step in which errors do not lead to other start poses


@dataclass(frozen=True, eq=False)
class Limb:
    """A limb whose lower part hinges move, and the directions that its bones should have.

    Args:
        roles: Roles of the upper part, the lower part, and the end.
        bones: Directions of both bones at rest, (2, 3), world.
        end: Row of the joint that moves the end of the lower bone.
        offset: Position of that end in the frame of the joint ``end``, (3,).
        points: Points of the source that define the directions of both bones: the rows at which upper and lower part
            begin, the row of the joint that moves the end of the lower bone, and this end in the joint's frame. None if
            bones follow the orientations of their parts.
    """

    roles: tuple[str, str, str]
    bones: Array
    end: int
    offset: Array
    points: tuple[int, int, int, Array] | None = None

    def ways(self, source: Body, target: Body, frames: Array) -> tuple[Array, Array]:
        """Return the directions that both bones should have, (T, 3) each, for world frames (T, n, 12) of the source."""
        upper, lower = _lines(self.points, frames) if self.points is not None else (np.zeros((0, 3)),) * 2
        across = target.basis @ source.basis.T
        return unit(upper) @ across.T, unit(lower) @ across.T


def _lines(points: tuple[int, int, int, Array], frames: Array) -> tuple[Array, Array]:
    """Return the vectors along both bones of a source's limb, (T, 3) each; see ``Limb.points``."""
    middle = frames[:, points[1], 9:]
    return middle - frames[:, points[0], 9:], point_at(frames, *points[2:]) - middle


def limbs_of(source: Body, target: Body, roles: Sequence[str]) -> list[Limb]:
    """Return the target's limbs whose lower parts are moved by hinges.

    Arms take the directions of the source's bones if the source has both bones (a forearm without a hand has none).
    Legs keep small differences between the rest poses, which come from the hip joints. So leg bones follow the
    orientations of their parts.

    Args:
        source: The body whose motion is retargeted.
        target: The body that follows.
        roles: Roles of the parts that both bodies have.
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
    """The swing plane of a limb that bends about a hinge, with the data that places both parts of the limb in it.

    Args:
        limb: The limb.
        axis: Axis at rest, (3,), about which the limb bends to the side with the larger range.
        both: Whether the limb can bend to both sides, so that the source decides to which.
        bones: Directions of both bones at rest, (2, 3); for legs, only their parts normal to the hinge, normalized.
        rests: Orientations of both parts at rest, (2, 3, 3).
        foot: Orientation of the foot at rest, (3, 3), if the foot determines the heading of the leg; else None.
        clear: Sines of the bend: below the first, the limb is straight; above the second, its plane is clear.
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
        """Return the plane of a limb; None if the limb has no hinge.

        Args:
            limb: The limb.
            target: The body that follows.
            roles: Roles of the parts that both bodies have.
        """
        axis, both = bending_axis(target, limb)
        if axis is None:
            return None
        rests = np.array([target.rest[target.roles[role], :9].reshape(3, 3) for role in limb.roles[:2]])
        bones, clear, foot = limb.bones, _ELBOW, None
        if limb.points is None:  # a hip may lie sideways of its knee
            bones, clear = unit(bones - (bones @ axis)[:, None] * axis), _KNEE
            end = target.roles.get(limb.roles[2])
            if limb.roles[2] in roles and end is not None and is_hinge(target.skeleton.joints[end]):
                foot = target.rest[end, :9].reshape(3, 3)  # this ankle cannot rotate the foot's heading: the hip does
        return cls(limb, axis, both, bones, rests, foot, clear)

    @property
    def frames(self) -> Array:
        """Rotations (2, 3, 3) from the frame of each bone and the hinge (see ``_frames``) to the part."""
        return np.swapaxes(_frames(self.bones, np.tile(self.axis, (2, 1))), 1, 2) @ self.rests

    def turned(self) -> Plane:
        """Return the plane of a limb that bends to the other side."""
        return replace(self, axis=-self.axis)


def bending_axis(target: Body, limb: Limb) -> tuple[Array | None, bool]:
    """Return the axis at rest about which a limb bends to the side with the larger range; None without a hinge.

    A limb that can bend to both sides bends as at rest; if it is straight at rest, a forearm moves forwards and a shin
    backwards. The second value is True for limbs that can bend to both sides and are nearly straight at rest.
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
            bend = float(np.arctan2(cross(a, b) @ axis, a @ b))  # angle at rest
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
    """Return rotations (T, 3, 3) whose first column is x; the second is the part of y normal to x, normalized."""
    y = unit(y - np.sum(x * y, axis=1, keepdims=True) * x)
    return np.stack([x, y, cross(x, y)], axis=2)


@dataclass(frozen=True, eq=False)
class Follower:
    """A body that follows parts of another one, with bounds.

    Args:
        body: The body.
        parts: The parts that both bodies have.
        bounds: Largest steps of the body's joints.
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
        source: The body whose motion is retargeted.
        frames: World frames of the source, (T, n, 12).
        follower: The body that follows.
        wanted: Wanted world orientations of the parts, (T, parts, 3, 3).
        q: Joint values of the body, (T, nq), at which the solve starts.
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
    """Return the angles of a chain, (T, hinges), that best meet its terms; try other start poses if a bone misses.

    Args:
        chain: The hinges.
        follower: The body.
        q: Joint values of the body, (T, nq).
        terms: Terms of the least-squares problem.
        most: Largest steps, (T - 1, hinges), radians.
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
    """Return a mask of the frames (T,) close to a step at its bound; errors there come from the bound."""
    fast = np.pad((np.abs(np.diff(x, axis=0)) >= _AT_BOUND * most).any(axis=1), (0, 1))
    out = np.zeros(len(x), bool)
    for t in np.flatnonzero(fast).tolist():
        out[max(0, t - _LATE + 1) : t + 1 + _LATE] = True
    return out


def hinge_bounds(chain: Chain, follower: Follower, roles: Sequence[str]) -> Array:
    """Return the largest step of each hinge of a chain, (T - 1, hinges), radians: the bound of the part that it moves.

    Args:
        chain: The hinges.
        follower: The body.
        roles: Roles of the parts along the chain, from its base.
    """
    bounds = follower.bounds
    ends = [(chain.rows.index(follower.body.roles[role]), role) for role in roles if role in bounds.parts]
    roles_of = [next((role for end, role in ends if end >= k), ends[-1][1]) for k in chain.hinges]
    return np.minimum(np.stack([bounds.parts[role] for role in roles_of], axis=1), _velocity(chain, bounds))


def _velocity(chain: Chain, bounds: Bounds) -> Array:
    """Return the largest step of each hinge of a chain, (T - 1, hinges), radians, from its velocity limit."""
    return bounds.rows[:, [chain.rows[k] for k in chain.hinges]]


def smooth_steps(
    groups: Iterable[Sequence[str]],
    follower: Follower,
    wanted: Array,
    q: Array,
    places: Mapping[str, Array] | None = None,
) -> None:
    """Solve limbs of hinges again if their steps are too large, in all frames together; change q in place.

    Args:
        groups: Roles of consecutive parts, from the base of a limb to its end; missing parts are left out.
        follower: The body.
        wanted: Wanted world orientations of the parts, (T, parts, 3, 3).
        q: Joint values, (T, nq).
        places: Wanted positions of some parts, (T, 3), by role; they have more weight than orientations.
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
            for parts_of in (roles, list(bounds.parts)):  # first as fast as its own parts, then as fast as any part
                fastest = np.max([bounds.parts[role] for role in parts_of if role in bounds.parts], axis=0)[:, None]
                most = np.minimum(np.maximum(most, fastest), _velocity(chain, bounds))
                kept = keeps_steps(q[:, chain.at], most)
                x = q[:, chain.at] if kept else best_follow(chain, follower, q, terms, most)
                if kept or not _misses(chain, target, q, x, terms):
                    break
        q[:, chain.at] = x
        target.skeleton.follow(q)


def _misses(chain: Chain, target: Body, q: Array, x: Array, terms: Sequence[Term]) -> bool:
    """Return whether a chain's angles ``x`` miss, in at least one frame, a position that q reaches."""
    places = [term for term in terms if isinstance(term, Place)]
    if not places:
        return False
    base = base_frames(target.skeleton, q, chain.base)
    off, before = (np.abs(chain.residuals(base, y, places)[0]) for y in (x, q[:, chain.at]))
    return bool((off - before).max() * chain.length > FAR * PLACE * target.leg)


def _starts(chain: Chain, target: Body) -> list[Array]:
    """Return start poses of a chain: the rest pose, and the middle of the limits."""
    rest = target.skeleton.rest_q[chain.at]
    low, high = np.maximum(chain.lower, -np.pi), np.minimum(chain.upper, np.pi)
    return [rest, 0.5 * (low + high)]


@lru_cache(maxsize=64)
def chain_of(target: Body, roles: tuple[str, ...]) -> Chain | None:
    """Return the hinges that move consecutive parts; None if other joints move them. The last results are cached."""
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
    """Return the row of the joint that moves the end of a lower bone, and the end in the joint's frame, (3,).

    It is the first joint of the part at the end that is far enough from the start of the bone, because a wrist may
    begin with a hinge in the elbow.
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
        parts: Largest steps of the hinges of each part, (T - 1,), radians, by role.
        rows: Largest steps of each joint of the target, (T - 1, n), radians.
    """

    parts: Mapping[str, Array]
    rows: Array


def keep_velocity(target: Body, q: Array, bounds: Bounds) -> Array:
    """Return joint values (T, nq) in which also hinges outside chains respect their velocity limits."""
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
    """Return how far joints may rotate from frame to frame.

    A hinge may rotate a little farther than the source's part rotates relative to the part above it, but not faster
    than its velocity limit.

    Args:
        source: The body whose motion is retargeted.
        target: The body that follows.
        frames: World frames of the source, (T, n, 12).
        fps: Frames per second.
        velocity: Highest velocity of each joint of the target, (m,), radians per second.
        strict: Whether velocity limits also hold at cuts of the clip, such as after a first frame in T-pose.
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
