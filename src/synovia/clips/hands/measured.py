"""Fit fingers to the 21 landmarks of a hand, with bones of constant lengths and joint ranges of human fingers.

The fit uses a hand made to measure: palm and bones have the median lengths between the points. A knuckle bends,
abducts, and twists its finger slightly; the other joints are hinges. So noise cannot twist segments or bend fingers far
backwards. ``fit_positions`` fits the hand to all frames together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.clips.fit import fit_positions
from synovia.clips.hands.palms import Palms, palms_of
from synovia.errors import InputError
from synovia.model import Joint, Kind, Skeleton
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, KNUCKLES, WRIST
from synovia.model.geometry import Array, rigid, unit
from synovia.model.limits.interval import Interval
from synovia.model.pose import world_frames

_Range = tuple[float, float]
_X, _Y, _Z = np.eye(3)
# degrees: ranges of a finger's joints for flexion, abduction, and rotation of the flexion plane about the finger
_FLEXION: Final[tuple[_Range, ...]] = (-30.0, 95.0), (-5.0, 115.0), (-5.0, 85.0)
_ABDUCTION: Final[_Range] = -25.0, 25.0
_PLANE: Final[_Range] = -15.0, 15.0
# degrees from the thumb's rest direction: the base also opposes and rotates the thumb; all joints can bend backwards
_THUMB: Final[tuple[_Range, ...]] = (-45.0, 50.0), (-20.0, 75.0), (-25.0, 90.0)
_THUMB_ASIDE: Final[_Range] = -45.0, 45.0
_THUMB_PLANE: Final[_Range] = -40.0, 40.0
_THUMB_REST: Final = (0.6, 0.75, 0.3)  # direction of a right thumb at rest in the frame of the palm
_SPREAD: Final = (
    # fraction of the angle between the palm's middle line and a finger's bone in the palm: the finger's angle at rest
    0.5
)
# relative bone lengths of a typical hand: of fingers from the knuckle, of a thumb from its joint at the wrist
_USUAL: Final[Mapping[str, tuple[float, float, float]]] = {
    "thumb": (46.0, 32.0, 25.0), "index": (43.0, 26.0, 21.0), "middle": (47.0, 30.0, 22.0),
    "ring": (44.0, 29.0, 22.0), "little": (35.0, 21.0, 20.0),
}  # fmt: skip
_FREE: Final[_Range] = -180.0, 180.0


@dataclass(frozen=True, eq=False)
class HandFit:
    """Fitted fingers over time.

    Args:
        side: The side of the hand.
        ways: For each finger by name, directions of its segments in the frame of the palm, (T, 3, 3).
        lengths: For each finger by name, lengths of its segments, (3,).
        palm: Axes of the palm in the coordinates of the points, (T, 3, 3).
        wrist: Positions of the wrist, (T, 3).
        size: Distance from the wrist to the middle of the knuckles.
        errors: Distances of the points from the fit, (T, 21); NaN in frames in which a point was not seen.
    """

    side: str
    ways: Mapping[str, Array]
    lengths: Mapping[str, Array]
    palm: Array
    wrist: Array
    size: float
    errors: Array

    @property
    def seen_errors(self) -> Array:
        """Errors of the points that are seen in at least one frame, (T, K)."""
        kept = np.flatnonzero(np.isfinite(self.errors).any(axis=0))
        return self.errors[:, kept]


@dataclass(frozen=True)
class FitHand:
    """Settings for the fit of fingers to landmarks.

    Args:
        fps: Frames per second.
        smoothness: As for ``fit_positions``.
        threads: Number of threads; None for all cores.
        limits: Whether joints are limited to the ranges of human fingers.
    """

    fps: float
    smoothness: float | None = None
    threads: int | None = None
    limits: bool = True

    def of(self, points: Array, weights: Array, side: str) -> HandFit:
        """Fit fingers to 21 landmarks; the result has no fingers that are never seen.

        Args:
            points: The landmarks, (T, 21, 3); NaN where a landmark was not seen.
            weights: Confidence of the landmarks, (T, 21).
            side: The side of the hand.

        Raises:
            InputError: If wrist and knuckles are never seen together.
        """
        palm, seen = palm_points(points, weights), np.where((weights > 0.0)[:, :, None], points, np.nan)
        palms = palms_of(seen, palm, side) if len(palm) > 2 else None
        if palms is None:
            raise InputError(
                "the palm of a hand is never seen", expected="three points of wrist and knuckles together in some frame"
            )
        hand, rows = _hand_to_measure(seen, palms, side, limits=self.limits)
        every = [k for k in range(COUNT) if k in rows and (weights[:, k] > 0.0).any()]
        fitted = fit_positions(
            points[:, every],
            hand,
            [rows[k] for k in every],
            confidence=weights[:, every],
            fps=self.fps,
            smoothness=self.smoothness,
            threads=self.threads,
        )
        world = world_frames(fitted.skeleton, fitted.q)
        added = len(fitted.skeleton) - len(hand)
        turned = world[:, added, :9].reshape(-1, 3, 3)
        ways: dict[str, Array] = {}
        lengths: dict[str, Array] = {}
        for name, numbers in FINGER_POINTS.items():
            if numbers[-1] not in rows:
                continue
            places = world[:, [rows[k] + added for k in numbers], 9:]
            steps = np.diff(places, axis=1)
            ways[name], lengths[name] = unit(steps) @ turned, np.linalg.norm(steps[0], axis=1)
        errors = np.full(points.shape[:2], np.nan)
        errors[:, every] = fitted.errors
        size = float(np.linalg.norm(np.mean([place for k, place in palms.places.items() if k != WRIST], axis=0)))
        return HandFit(side, ways, lengths, turned, world[:, added, 9:], size, errors)


def palm_points(points: Array, weights: Array) -> list[int]:
    """Return the palm's landmarks that are seen in some frame, the wrist first; empty if the wrist is never seen."""
    known = np.logical_and(np.isfinite(points).all(2), weights > 0.0)
    seen = set(np.flatnonzero(known.any(0)).tolist())
    return [k for k in (WRIST, *KNUCKLES) if k in seen] if WRIST in seen else []


def _hand_to_measure(points: Array, palms: Palms, side: str, *, limits: bool) -> tuple[Skeleton, dict[int, int]]:
    """Return a hand with the median lengths between landmarks, and for each landmark the row of its joint.

    Args:
        points: The landmarks, (T, 21, 3); NaN where a landmark was not seen.
        palms: The palm.
        side: Side of the hand.
        limits: Whether joints have the ranges of human fingers.
    """
    middle = _median(palms.inside(points))
    for number, place in palms.places.items():
        middle[number] = place
    joints = [Joint("palm", kind=Kind.FREE)]
    rows = {WRIST: 0}
    lengths = _lengths(points)
    for name, numbers in FINGER_POINTS.items():
        place = middle[numbers[0]]
        if name not in lengths or not np.isfinite(place).all():
            if name != "thumb" and np.isfinite(place).all():
                _fixed(joints, rows, numbers[0], place)  # the finger is left out, but its knuckle is part of the palm
            continue
        steps = lengths[name]
        thumb = name == "thumb"
        way = unit(np.array(_THUMB_REST) * (1.0 if side == "right" else -1.0, 1.0, 1.0)) if thumb else _rest_way(place)
        aside, plane, bends = (_THUMB_ASIDE, _THUMB_PLANE, _THUMB) if thumb else (_ABDUCTION, _PLANE, _FLEXION)
        turn = _across(way, side) if thumb else _perpendicular(way)
        parent = "palm"
        for kind, axis, span in (("bend", _X, bends[0]), ("aside", _Z, aside), ("plane", _Y, plane)):
            rest = rigid(place, turn) if kind == "bend" else np.eye(4)
            parent = _hinged(joints, f"{name}_{kind}", parent, (rest, axis, span if limits else _FREE))
        rows[numbers[0]] = len(joints) - 1
        for k, span in enumerate(bends[1:]):
            rest = rigid((0.0, steps[k], 0.0))
            parent = _hinged(joints, f"{name}_{k + 2}", parent, (rest, _X, span if limits else _FREE))
            rows[numbers[k + 1]] = len(joints) - 1
        joints.append(Joint(f"{name}_tip", parent, rest=rigid((0.0, steps[2], 0.0))))
        rows[numbers[3]] = len(joints) - 1
    return Skeleton(joints, name=f"{side} hand"), rows


def _lengths(points: Array) -> dict[str, Array]:
    """Return the median bone lengths, (3,), of each finger by name; only of fingers whose points are all seen.

    A bone whose two ends were never seen together gets the relative length of a typical hand.
    """
    found = {
        name: _median(np.linalg.norm(np.diff(points[:, numbers], axis=1), axis=2))
        for name, numbers in FINGER_POINTS.items()
    }
    sizes = {name: float(np.nanmean([*(steps / _USUAL[name]), np.nan])) if np.isfinite(steps).any() else np.nan
             for name, steps in found.items()}  # fmt: skip
    size = float(np.nanmean([*sizes.values()])) if any(np.isfinite(one) for one in sizes.values()) else np.nan
    out: dict[str, Array] = {}
    for name, numbers in FINGER_POINTS.items():
        own = sizes[name] if np.isfinite(sizes[name]) else size
        steps = np.where(np.isfinite(found[name]), found[name], own * np.array(_USUAL[name]))
        if np.isfinite(points[:, numbers, 0]).any(0).all() and np.isfinite(steps).all() and steps.min() > 0.0:
            out[name] = steps
    return out


def _hinged(joints: list[Joint], name: str, parent: str, how: tuple[Array, Array, _Range]) -> str:
    """Append a hinge to ``joints`` and return its name; ``how``: rest transform, axis, and range in degrees."""
    rest, axis, (low, high) = how
    limit = Interval(float(np.radians(low)), float(np.radians(high)))
    joints.append(Joint(name, parent, kind=Kind.HINGE, rest=rest, axis=axis, limit=limit))
    return name


def _median(values: Array) -> Array:
    """Return the median of seen values (T, ...) over the frames; NaN for values that were never seen."""
    seen = np.isfinite(values).any(0)
    return np.where(seen, np.nanmedian(np.where(seen, values, 0.0), axis=0), np.nan)


def _fixed(joints: list[Joint], rows: dict[int, int], number: int, place: Array) -> None:
    """Append a fixed joint at a landmark of the palm."""
    joints.append(Joint(f"point_{number}", "palm", rest=rigid(place)))
    rows[number] = len(joints) - 1


def _rest_way(knuckle: Array) -> Array:
    """Return the direction, (3,), of a finger without abduction, given its knuckle; fingers fan out at rest."""
    angle = _SPREAD * float(np.arctan2(knuckle[0], knuckle[1]))
    return np.array([np.sin(angle), np.cos(angle), 0.0])


def _perpendicular(way: Array) -> Array:
    """Return the axes of a finger that points along ``way`` in the plane of the palm, (3, 3)."""
    return np.stack([np.cross(way, _Z), way, _Z], axis=1)


def _across(way: Array, side: str) -> Array:
    """Return the axes of a thumb that points along ``way`` and bends across the palm, (3, 3)."""
    axis = unit(np.cross(way, unit(np.array([-0.8 if side == "right" else 0.8, 0.0, 0.6]))))
    return np.stack([axis, way, np.cross(axis, way)], axis=1)
