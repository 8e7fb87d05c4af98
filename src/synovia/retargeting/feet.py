"""Planted feet: contacts of the source become fixed positions of the target's feet."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.ik.parallel import Progress
from synovia.model.anatomy.feet import contact_spans, runs
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.retargeting.body import LEGS, Body
from synovia.retargeting.limbs import ARMS, TRUNK, Follower, calm, keep_velocity
from synovia.solver import FullBody

Spans = list[tuple[int, int]]
_APART: Final = 1e-3  # a shorter bone has no direction; a fraction of the skeleton's size
EXACT: Final = 1e-5  # tolerance of a foot, lengths of the leg; it appears as a slide of as much in each frame
TURNED: Final = 1e-3  # radians; no goal is a rotation
BENT: Final = np.array([0.1])  # sine: a limb that bends less in a frame may keep the side that the clip has
MISSED: Final = 1e-3  # lengths of the leg from its target at which a foot is missed
FASTEST: Final = 0.75  # lengths of the leg per second; a faster foot does not stand
SWING: Final = 0.5  # seconds in which a foot leaves its own path before the first contact, and returns after the last
TURN: Final = 0.1  # seconds in which a foot turns from its own direction to that in which it stands, and back


@dataclass(frozen=True, eq=False)
class FootPath:
    """The target path of a foot.

    Args:
        ankle: Positions of the ankle, (T, 3).
        spans: Contacts (first frame, end) of the ankle.
        toe_row: Row of the target's toe; None if it has none.
        toe: Positions of the toe, (T, 3).
        toe_spans: Contacts of the toe.
    """

    ankle: Array
    spans: Spans
    toe_row: int | None
    toe: Array
    toe_spans: Spans

    @property
    def stands(self) -> NDArray[np.bool_]:
        """In which frames the foot stands, on its ankle or its toe, (T,)."""
        out = np.zeros(len(self.ankle), bool)
        for first, end in (*self.spans, *self.toe_spans):
            out[first:end] = True
        return out


def planted_path(points: Array, spans: Spans, fps: float) -> Array:
    """Return a path (T, 3) that is constant during contacts and follows the given one between them.

    During a contact, the path is at the mean of the given one. Between two contacts, the difference of both paths eases
    from one value to the next over the whole swing, so that the shape of the swing is kept. Before the first and after
    the last contact, it eases to 0.
    """
    shift = np.zeros_like(points)
    for a, b in spans:
        shift[a:b] = points[a:b].mean(0) - points[a:b]
    return points + eased(shift, spans, fps)


def eased(shift: Array, spans: Spans, fps: float) -> Array:
    """Fill the shift (T, 3) of a path between its spans: it eases from one to the next over the frames between."""
    shift = shift.copy()
    if not spans:
        return shift
    first, last = spans[0][0], spans[-1][1]
    before, after = np.arange(first, 0, -1), np.arange(1, len(shift) - last + 1)
    for part, end, frames in ((slice(0, first), first, before), (slice(last, None), last - 1, after)):
        shift[part] = (1.0 - _ease(np.minimum(frames / (SWING * fps), 1.0)))[:, None] * shift[end]
    for (_, b), (a, _) in itertools.pairwise(spans):
        u = np.linspace(0.0, 1.0, a - b + 2)[1:-1, None]
        shift[b:a] = shift[b - 1] + _ease(u) * (shift[a] - shift[b - 1])
    return shift


def _ease(u: Array) -> Array:
    """Return a step from 0 to 1 whose speed and acceleration are 0 at both ends."""
    return u * u * u * (u * (6.0 * u - 15.0) + 10.0)


def planted_foot(ankle: Array, toe: Array, spans: Spans, toe_spans: Spans, fps: float) -> tuple[Array, Array]:
    """Return the paths (T, 3) of ankle and toe of a rigid foot, each constant during its own contacts.

    While only the toe stands, the foot turns about it, so that the heel can lift. While both stand, the foot does not
    turn; it turns to its own direction and back within ``TURN``.

    Args:
        ankle: Path of the ankle, (T, 3).
        toe: Path of the toe, (T, 3).
        spans: Contacts of the ankle.
        toe_spans: Contacts of the toe.
        fps: Frames per second.
    """
    count = len(ankle)
    ankle_at: Array = np.full((count, 3), np.nan)
    toe_at, flat = ankle_at.copy(), ankle_at.copy()  # flat: from ankle to toe while both stand
    own: Array = toe - ankle
    length = float(np.linalg.norm(own, axis=1).mean())
    for a, b in toe_spans:
        toe_at[a:b] = toe[a:b].mean(0)
    for a, b in spans:
        place = ankle[a:b].mean(0)
        both = np.flatnonzero(np.isfinite(toe_at[a:b, 0])) + a
        if len(both):
            flat[both] = _scaled(toe_at[both].mean(0) - place, length)
            place = (toe_at[both] - flat[both]).mean(0)
        ankle_at[a:b] = place
    known = np.flatnonzero(np.isfinite(flat[:, 0]))
    if len(known):
        at = np.arange(count)
        after = np.clip(np.searchsorted(known, at), 0, len(known) - 1)
        before = np.maximum(after - 1, 0)
        near = np.where(np.abs(known[before] - at) <= np.abs(known[after] - at), known[before], known[after])
        share = _ease(np.clip(np.abs(near - at) / (TURN * fps), 0.0, 1.0))[:, None]
        own = _scaled((1.0 - share) * flat[near] + share * own, length)
    stands, steps = np.isfinite(ankle_at[:, :1]), np.isfinite(toe_at[:, :1])
    shift = np.where(stands, ankle_at, np.where(steps, toe_at - own, ankle)) - ankle
    moved = ankle + eased(shift, runs((stands | steps)[:, 0]), fps)
    return moved, moved + own


def _scaled(v: Array, length: float) -> Array:
    """Return vectors (..., 3) of a length."""
    return v * (length / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12))


def foot_paths(
    source: Body, target: Body, roles: Collection[str], frames: Array, own: Array, fps: float
) -> dict[str, FootPath]:
    """Return, for each foot that is carried over, its target path and its contacts.

    Args:
        source: The body that moves.
        target: The body that follows.
        roles: The parts that are carried over.
        frames: (T, n, 12) world frames of the source.
        own: (T, m, 12) world frames of the target before its feet are corrected.
        fps: Frames per second.
    """
    out: dict[str, FootPath] = {}
    both = (source.roles, target.roles, roles)
    sides = [side for side in SIDES if all(f"{side}_foot" in known for known in both)]
    toes = {side: (toe_row(source, side), toe_row(target, side)) for side in sides}
    rows = [source.roles[f"{side}_foot"] for side in sides]
    rows += [row for row, other in toes.values() if row is not None and other is not None]
    found = contact_spans(frames[:, rows, 9:], source.basis[:, 1], fps, FASTEST * source.leg, source.leg)
    spans_of = dict(zip(rows, found, strict=True))
    for side in sides:
        role = f"{side}_foot"
        ankle, spans = own[:, target.roles[role], 9:], spans_of[source.roles[role]]
        source_toe, toe = toes[side]
        if toe is None or source_toe is None:
            out[role] = FootPath(planted_path(ankle, spans, fps), spans, None, ankle, [])
            continue
        toe_spans = spans_of[source_toe]
        places = planted_foot(ankle, own[:, toe, 9:], spans, toe_spans, fps)
        out[role] = FootPath(places[0], spans, toe, places[1], toe_spans)
    return out


@lru_cache(maxsize=8)
def _problem(target: Body, ankles: tuple[int, ...], below: tuple[int, ...]) -> IK:
    """Return the problem of a frame, with goals at some rows; it is kept for further clips."""
    goals = [PositionGoal(row) for row in ankles] + [PositionGoal(row, priority=1) for row in below]
    ik = IK(target.skeleton, goals, FullBody(attempts=1), tolerance=(EXACT * target.leg, TURNED), root="free")
    ik.bent = BENT
    return ik


def toe_row(body: Body, side: str) -> int | None:
    """Return the row of a toe: the joint of that part, else the lowest point below the foot that is apart from it."""
    if f"{side}_toes" in body.roles:
        return body.roles[f"{side}_toes"]
    foot = body.roles[f"{side}_foot"]
    below = [k for k in body.skeleton.children[foot] if body.skeleton.lengths[k] > _APART * body.skeleton.size]
    return min(below, key=lambda k: float(body.rest[k, 9:] @ body.basis[:, 1]), default=None)


def solve_feet(
    follower: Follower,
    q: Array,
    paths: Mapping[str, FootPath],
    threads: int | None,
    progress: Progress | None,
) -> tuple[Array, Array, float]:
    """Solve for the feet.

    Ankles have the highest priority. Toes follow, and hands stay where they were, as far as the ankles permit. The rest
    of the pose changes as little as possible. Limbs of hinges with a step beyond its bound are solved once more.

    Args:
        follower: The body.
        q: Joint values before, (T, nq).
        paths: Target path of each foot, by role.
        threads: Number of threads; None for all cores.
        progress: Called with (frames done, all).

    Returns:
        Joint values (T, nq), the error of each foot (T, feet), and the error above which a foot is missed.
    """
    target, skeleton = follower.body, follower.body.skeleton
    frames = world_frames(skeleton, q)
    hands = [target.roles[f"{side}_hand"] for side in SIDES if f"{side}_hand" in target.roles]
    places = {target.roles[role]: path.ankle for role, path in paths.items()}
    below = {path.toe_row: path.toe for path in paths.values() if path.toe_row is not None}
    below |= {row: frames[:, row, 9:] for row in hands}
    ik = _problem(target, tuple(places), tuple(below))
    answer = ik.solve_many({**places, **below}, q, threads=threads, progress=progress)
    out = answer.q
    frames = world_frames(skeleton, out)
    wanted = np.stack([frames[:, part.target, :9].reshape(-1, 3, 3) for part in follower.parts], axis=1)
    calm((*TRUNK, *ARMS, *LEGS), follower, wanted, out, {role: path.ankle for role, path in paths.items()})
    out = keep_velocity(target, out, follower.bounds)
    return out, distances_off(target, out, paths), MISSED * target.leg


def distances_off(target: Body, q: Array, paths: Mapping[str, FootPath]) -> Array:
    """Return the distance of each ankle from its target path, (T, feet), for joint values (T, nq)."""
    frames = world_frames(target.skeleton, q)
    off = [np.linalg.norm(frames[:, target.roles[role], 9:] - path.ankle, axis=1) for role, path in paths.items()]
    return np.stack(off, axis=1) if off else np.zeros((len(q), 0))


def stand_frames(paths: Mapping[str, FootPath], count: int) -> NDArray[np.bool_]:
    """Return in which frames each foot stands, (T, feet)."""
    return np.array([path.stands for path in paths.values()], bool).reshape(len(paths), count).T
