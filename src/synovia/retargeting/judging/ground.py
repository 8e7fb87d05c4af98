"""Feet and the ground: contacts of ankles and toe ends, and how far these slide, hover and sink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.bodies.soles import soles_in
from synovia.model.anatomy.contacts import LOW, Contacts, find_contacts
from synovia.model.anatomy.feet import feet_of, runs
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, Bools
from synovia.model.shapes.world import World
from synovia.retargeting.judging.actor import Actor

Pieces = Sequence[tuple[int, int]]
HEIGHT: Final = 2  # index of the vertical coordinate in axes with z up
_UP: Final = np.array([0.0, 0.0, 1.0])
_LOW: Final = 0.1  # leg lengths: a point that may be in contact is at most this far above or below the ground
_SLOW: Final = 0.5  # leg lengths per second: a point that may be in contact is at most this fast
_NEAR_ZERO: Final = 0.15  # leg lengths: if soles stand nearer to height 0, the floor is at height 0
_FAR: Final = 0.05  # leg lengths from the ankle: if the end of a foot is nearer, it shows no toes
_SPAN: Final = 0.02  # seconds on each side for measuring speeds; shorter spans measure noise
_EDGE: Final = 0.05  # seconds by which contacts of two clips may differ
_NEAR_FLOOR: Final = 0.1  # leg lengths: a foot is on the floor if it is at most this far above its lowest positions
_ON_FLOOR: Final = 0.2  # share of frames on the floor that is needed to measure gliding
_AVERAGED: Final = 0.5  # seconds over which paths are averaged, because the hips sway with each step
_STEPS: Final = 0.2  # leg lengths: steps whose path has a smaller root mean square extent show no path
_ALIKE: Final = 0.6  # correlation of path and steps: if smaller, they do not differ only in scale
_ENOUGH: Final = 0.2  # seconds: with less contact, contacts are not compared


@dataclass(frozen=True, slots=True)
class Held:
    """A contact of a point of the source, and how far the result's point moves during this contact.

    Args:
        first: First frame.
        end: The frame after the last one.
        way: Horizontal displacement of the result's point from the first frame to the last, (2,), leg lengths.
        source: Displacement of the source's point, rotated to the result's heading, (2,), its leg lengths; 0 without a
            source.
    """

    first: int
    end: int
    way: Array
    source: Array

    @property
    def excess(self) -> float:
        """Length of the displacement minus that of the source's displacement."""
        return float(np.linalg.norm(self.way) - np.linalg.norm(self.source))


@dataclass(frozen=True, eq=False)
class Foot:
    """One foot of a clip; all lengths are in leg lengths.

    Args:
        role: Role of the foot, such as ``"left_foot"``.
        contact: Mask of the frames in which the result's foot is in contact, (T,).
        source_contact: The same in the source; without a source, contacts of the result with a looser speed threshold.
        near: Mask of the frames in which the result's foot is nearly in contact, with looser thresholds, (T,).
        source_near: The same in the source.
        held: Contacts of the source's ankle and toe end, with displacements.
        slide: Mean speed of the result's points over these contacts, leg lengths per second.
        source_slide: The same in the source; 0 without one.
        height: Height of ankle or toe end, whichever is lower, above the ground, (T,).
        depths: Depth of the sole below the floor, (T,); negative if it is above.
        source_depths: The same in the source; zeros without one.
        ground: Height of the ground below this foot in the file's axes, from its contacts.
        source_ground: The same in the source.
    """

    role: str
    contact: Bools
    source_contact: Bools
    near: Bools
    source_near: Bools
    held: tuple[Held, ...]
    slide: float
    source_slide: float
    height: Array
    depths: Array
    source_depths: Array
    ground: float
    source_ground: float

    @property
    def hover(self) -> float:
        """Mean distance from the ground, above or below, during contacts of the source; leg lengths."""
        return float(np.abs(self.height[self.source_contact]).mean()) if self.source_contact.any() else 0.0

    @property
    def depth(self) -> float:
        """Largest depth of the sole below the floor; 0 if it stays above."""
        return max(0.0, float(self.depths.max(initial=0.0)))

    def agreement(self, fps: float) -> tuple[float, float] | None:
        """Return precision and recall of the contacts, compared with the source; None if the source has too few.

        A contact counts as correct if the other clip is nearly in contact, because small differences are allowed.
        """
        edge = max(1, round(_EDGE * fps))
        own, other = self.contact, self.source_contact
        if int(other.sum()) < _ENOUGH * fps:
            return None
        precision = float(_wider(self.source_near | other, edge)[own].mean()) if own.any() else 1.0
        return precision, float(_wider(self.near | own, edge)[other].mean())


def feet(result: Actor, source: Actor | None, turn: float, world: World | None = None) -> list[Foot]:
    """Return the feet of a clip, with contacts, slides and heights.

    A point is in contact while it is low and slow. While a point of the source is in contact, the same point of the
    result should not move; otherwise it slides.

    Args:
        result: The clip.
        source: Its source; None without one.
        turn: Rotation about the vertical from the source to the result, radians.
        world: What the result stands on, in its unit; heights are measured from the surface below each point. None for
            a level floor.
    """
    out: list[Foot] = []
    c, s = np.cos(turn), np.sin(turn)
    turned = np.array([[c, s], [-s, c]]) if source is not None else np.zeros((2, 2))
    for side in SIDES:
        role = f"{side}_foot"
        if role not in result.rows or (source is not None and role not in source.rows):
            continue
        own = _points(result, role, world)
        other = own if source is None else _points(source, role)[:, : own.shape[1]]  # ankles with ankles
        fps = result.motion.fps
        pieces = result.pieces
        found = _contacts(other, fps, pieces)
        ground, source_ground = (found.ground(points[..., HEIGHT]) for points in (own, other))
        held = tuple(
            Held(
                first,
                end,
                own[end - 1, k, :2] - own[first, k, :2],
                (other[end - 1, k, :2] - other[first, k, :2]) @ turned,
            )
            for k in range(other.shape[1])
            for a, b in pieces
            for first, end in ((a + first, a + end) for first, end in runs(found.stands[a:b, k]))
        )
        seconds = sum(one.end - 1 - one.first for one in held) / fps
        stands, height = _contacts(own, fps, pieces).any, (own[..., HEIGHT] - ground).min(1)
        source_height = (other[..., HEIGHT] - source_ground).min(1)
        foot = Foot(
            role,
            stands,
            found.any,
            np.any(_near(own, fps, ground, pieces), axis=1),
            np.any(_near(other, fps, source_ground, pieces), axis=1),
            held,
            float(sum(np.linalg.norm(one.way) for one in held)) / seconds if seconds else 0.0,
            float(sum(np.linalg.norm(one.source) for one in held)) / seconds if seconds else 0.0,
            height,
            _depths(result, role, stands, height, world),
            np.zeros(len(own)) if source is None else _depths(source, role, found.any, source_height),
            float(ground.min()),
            float(source_ground.min()),
        )
        out.append(foot)
    return out


def _depths(actor: Actor, role: str, stands: Bools, height: Array, world: World | None = None) -> Array:
    """Return the depth of a sole below the floor, (T,), leg lengths.

    The floor is the world; without a world, height 0 if the sole stands near it, else the height at which the sole
    stands. If the sole is unknown, ankle and toe end are used.

    Args:
        actor: The clip.
        role: Role of the foot.
        stands: Mask of the frames in which the foot stands, (T,).
        height: Height of the foot's lower point above the ground, (T,).
        world: What the foot stands on; None for a level floor.
    """
    skeleton, up = actor.motion.skeleton, actor.up
    foot = feet_of(skeleton, [actor.rows[role]])
    sole = soles_in(skeleton, foot, actor.frames, stands[:, None], up, actor.rows)[0]
    if sole.source == "points":
        return -height
    places = sole.places(actor.frames)
    heights = places @ up
    if world is not None:
        below = world.ground(places.reshape(-1, 3), up).heights.reshape(heights.shape)
        heights = heights - np.where(np.isfinite(below), below, 0.0)
    low = heights.min(1) / actor.leg
    ground = float(Contacts(stands[:, None]).ground(low[:, None])[0])
    known = world is not None or (stands.any() and abs(ground) < _NEAR_ZERO)
    return (0.0 if known else ground) - low


def speeds(actor: Actor) -> tuple[float, tuple[float, float]]:
    """Return the median speed of the hips, and how much the feet glide along with them.

    A walking body moves its feet relative to its hips as fast as the hips move. If path and body differ in unit, feet
    and hips move together. They also move together in a jump. So gliding is measured horizontally, in frames with a
    foot on the floor.

    Returns:
        The median speed, leg lengths per second; and a pair: the horizontal speed of the hips while a foot is on the
        floor, and the speed of the feet relative to the hips divided by it. The pair is (0, 1) without such frames.
    """
    way = np.diff(actor.hips, axis=0)
    usual = float(np.median(np.linalg.norm(way, axis=1))) * actor.motion.fps / actor.leg
    feet = [actor.at(role) for side in SIDES if (role := f"{side}_foot") in actor.rows]
    if not feet:
        return usual, (0.0, 1.0)
    lowest = np.min([foot[:, HEIGHT] for foot in feet], axis=0)
    low = lowest < np.percentile(lowest, LOW) + _NEAR_FLOOR * actor.leg
    low = low[1:] & low[:-1]
    if float(low.mean()) < _ON_FLOOR:
        return usual, (0.0, 1.0)
    speed = float(np.median(np.linalg.norm(way[low, :2], axis=1)))
    apart = [float(np.median(np.linalg.norm((np.diff(foot, axis=0) - way)[low, :2], axis=1))) for foot in feet]
    return usual, (speed * actor.motion.fps / actor.leg, max(apart) / speed if speed > 0.0 else 1.0)


def path_factor(actor: Actor) -> float | None:
    """Return the factor that scales the path of the hips to the steps of the legs; None if the clip does not show it.

    Relative to the hips, the lower foot moves backwards as far as the hips move forwards. So the steps give a path with
    the shape of the hips' path. The lengths of both paths differ if bones and path have different units, or if the body
    walks on the spot.
    """
    found = _path_and_steps(actor)
    if found is None:
        return None
    path, steps = found
    sizes, both = (float(np.sum(path * path)), float(np.sum(steps * steps))), float(np.sum(path * steps))
    if both < _ALIKE * np.sqrt(sizes[0] * sizes[1]):
        return None
    return both / sizes[0] if sizes[0] > 0.0 else None


def on_the_spot(actor: Actor) -> float:
    """Return the length of the steps' path divided by that of the hips' path; 0 for steps that lead nowhere.

    The ratio is large for a clip in place; it is infinite if the hips do not move over the ground.
    """
    found = _path_and_steps(actor)
    if found is None:
        return 0.0
    path, steps = (float(np.linalg.norm(one)) for one in found)
    return steps / path if path > 0.0 else float("inf")


def _path_and_steps(actor: Actor) -> tuple[Array, Array] | None:
    """Return averaged paths of hips and steps, (n, 2) each; None for short clips, and for steps that lead nowhere."""
    ends = [f"{side}_{'toes' if f'{side}_toes' in actor.rows else 'foot'}" for side in SIDES]
    feet = [actor.at(role) for role in ends if role in actor.rows]
    window = max(1, round(_AVERAGED * actor.motion.fps))
    if len(feet) < 2 or len(actor.motion) < 2 * window + 2:
        return None
    lower = feet[0][:, HEIGHT] < feet[1][:, HEIGHT]
    same = (lower[1:] == lower[:-1])[:, None]
    joined = np.ones((len(same), 1))
    joined[np.array(actor.breaks, int) - 1] = 0.0
    step = actor.hips - np.where(lower[:, None], *feet)
    path, steps = (
        _averaged(np.cumsum(joined * same * np.diff(v[:, :2], axis=0), axis=0), window) for v in (actor.hips, step)
    )
    return None if float(np.sum(steps * steps)) < len(steps) * (_STEPS * actor.leg) ** 2 else (path, steps)


def _averaged(path: Array, window: int) -> Array:
    """Return the moving average of a path (T, 2), relative to its mean."""
    sums = np.cumsum(np.pad(path, ((1, 0), (0, 0))), axis=0)
    mean = (sums[window:] - sums[:-window]) / window
    return mean - mean.mean(0)


def _points(actor: Actor, role: str, world: World | None = None) -> Array:
    """Return positions of the ankle and, if there is one, the toe end, (T, points, 3), leg lengths.

    With a world, heights are measured from the surface below each point, or from 0 if there is none.
    """
    rows, below = [actor.rows[role]], actor.below(role)[1:]
    if below:
        start = actor.places[0, rows[0]]
        far = [float(np.linalg.norm(actor.places[0, row] - start)) for row in below]
        if max(far) > _FAR * actor.leg:
            rows.append(below[int(np.argmax(far))])
    places = actor.places[:, rows]
    if world is not None:
        points = actor.frames[:, rows, 9:].reshape(-1, 3)
        heights = world.ground(points, actor.up).heights.reshape(places.shape[:2])
        places[..., HEIGHT] -= np.where(np.isfinite(heights), heights, 0.0)
    return places / actor.leg


def _contacts(points: Array, fps: float, pieces: Pieces) -> Contacts:
    """Return the contacts of points (T, points, 3), leg lengths, found in each piece of consecutive frames."""
    return Contacts(np.concatenate([find_contacts(points[a:b], _UP, fps, 1.0).stands for a, b in pieces]))


def _near(points: Array, fps: float, ground: Array, pieces: Pieces) -> Bools:
    """Return a mask of where points (T, points, 3) may be in contact, (T, points): they are rather low and slow."""
    speed = np.concatenate([_speeds(points[a:b], fps) for a, b in pieces])
    return (speed < _SLOW) & (np.abs(points[..., HEIGHT] - ground) < _LOW)


def _speeds(places: Array, fps: float) -> Array:
    """Return the speeds of points (T, points, k), (T, points), measured over a few frames on each side."""
    count = len(places)
    if count < 2:
        return np.zeros(places.shape[:2])
    span = max(1, round(_SPAN * fps))
    after, before = np.minimum(np.arange(count) + span, count - 1), np.maximum(np.arange(count) - span, 0)
    way = np.linalg.norm(places[after] - places[before], axis=-1)
    return way * fps / (after - before)[:, None]


def _wider(flags: Bools, by: int) -> Bools:
    """Extend each run of set flags (T,) by ``by`` frames at both ends."""
    padded = np.concatenate([[0], np.cumsum(np.pad(flags, by).astype(np.int64))])
    return padded[2 * by + 1 :] > padded[: len(flags)]


def held_frames(contacts: Sequence[Held], count: int) -> Bools:
    """Return a mask of the frames that belong to contacts, (count,)."""
    out = np.zeros(count, bool)
    for one in contacts:
        out[one.first : one.end] = True
    return out
