"""Find which landmarks are seen: detectors also estimate hidden landmarks, with a low confidence.

A landmark counts as seen from the frame in which its confidence becomes high until it becomes low; this hysteresis
avoids flicker. Hips that are hidden in a whole clip, for example behind a desk, are placed below the shoulders of an
upright body; hidden shoulders are placed above the hips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synovia.clips.landmarks import SIDES, Landmarks
from synovia.errors import InputError
from synovia.model.geometry import Array, Bools, axis_name, axis_vector, unit

_HIGH: Final = 0.4  # fraction of the confidence of clearly seen points: above this, a point becomes seen
_LOW: Final = 0.2  # fraction of the confidence of clearly seen points: below this, a point is no longer seen
_WELL: Final = 0.95  # this quantile of all confidences is the confidence of clearly seen points
_NEVER: Final = 0.05  # fraction of the frames: a point seen in no more of them counts as never seen
_TRUNK: Final = 1.42  # length of an adult's trunk from hip to shoulder joints, in shoulder widths
_WIDTH: Final = 0.5  # distance of the hip joints, in shoulder widths
_DOUBTED: Final = 0.3  # weight of added hips or shoulders; the points that determine them have weight 1
_LISTED: Final = 4  # largest number of landmarks that a note lists
_HEAD: Final = ("left_ear", "right_ear", "nose", "head_top", "head")
LIMBS: Final = {"arm": ("elbow", "wrist"), "leg": ("knee", "ankle", "heel", "toe")}
_LEGS: Final = tuple(f"{side}_{part}" for side in SIDES for part in LIMBS["leg"])


@dataclass(frozen=True, eq=False)
class Seen:
    """Landmarks in which hidden positions are NaN.

    Args:
        marks: The seen landmarks. Hips that are never seen are placed below the shoulders, and shoulders above the
            hips.
        notes: Sentences about landmarks that were not seen.
        legs: Whether at least one leg is seen.
    """

    marks: Landmarks
    notes: tuple[str, ...]
    legs: bool


def only_seen(marks: Landmarks, up: str | None = None) -> Seen:
    """Return landmarks in which hidden positions are NaN.

    Args:
        marks: The landmarks.
        up: Axis of the points that points up; None to find it from head or legs.

    Raises:
        InputError: If hips or shoulders are hidden, and no other landmark shows which axis points up.
    """
    known = np.concatenate([weights[np.isfinite(marks.places[name]).all(1)] for name, weights in marks.weights.items()])
    well = float(np.quantile(known, _WELL)) if len(known) else 1.0
    seen = {name: _seen(weights / max(well, 1e-12)) for name, weights in marks.weights.items()}
    places = {name: np.where(seen[name][:, None], place, np.nan) for name, place in marks.places.items()}
    weights = {name: np.where(seen[name], own, 0.0) for name, own in marks.weights.items()}
    found = replace(marks, places=places, weights=weights)
    legs = any(_shown(found, name) for name in _LEGS)
    notes = [] if legs else ["the legs are not seen: they are at rest"]
    left_out = {
        name: float((~seen[name] & (own > 0.0)).mean())
        for name, own in marks.weights.items()
        if legs or name not in _LEGS
    }
    hidden = {name: share for name, share in left_out.items() if share > _NEVER}
    hips, shoulders = (all(_shown(found, f"{side}_{part}") for side in SIDES) for part in ("hip", "shoulder"))
    if shoulders and not hips and not legs:
        heads = [name for name in _HEAD if _shown(found, name)]
        found = _with_pair(found, "hip", -_upwards(found, "shoulder", heads, up))
        notes = ["hips and legs are not seen: the trunk is upright, and the legs are at rest"]
        hidden = {name: share for name, share in hidden.items() if "hip" not in name}
    elif hips and not shoulders:
        ends = [name for name in _LEGS if _shown(found, name)]
        found = _with_pair(found, "shoulder", _upwards(found, "hip", ends, up))
        notes.append("shoulders are not seen: the trunk is upright, and the arms are at rest")
        hidden = {name: share for name, share in hidden.items() if "shoulder" not in name}
    for limb, parts in LIMBS.items():
        known = any(f"{side}_{part}" in marks.places for side in SIDES for part in parts)
        for side in SIDES:
            own = [f"{side}_{part}" for part in parts]
            if any(_shown(found, name) for name in own):
                continue
            if known and (shoulders if limb == "arm" else legs):
                notes.append(f"the {side} {limb} is not seen: it is at rest")
                hidden = {name: share for name, share in hidden.items() if name not in own}
    if hidden:
        most = sorted(hidden, key=lambda name: -hidden[name])
        listed = ", ".join(f"{name.replace('_', ' ')} in {100.0 * hidden[name]:.0f} %" for name in most[:_LISTED])
        more = f" and {len(most) - _LISTED} more" if len(most) > _LISTED else ""
        notes.append(f"landmarks of low confidence were left out: {listed}{more} of the frames")
    return Seen(found.with_middles(), tuple(notes), legs)


def hidden_limbs(marks: Landmarks) -> dict[str, Bools]:
    """Return, for each arm and leg, a mask of the frames in which all its landmarks are hidden, (T,)."""
    out: dict[str, Bools] = {}
    count = len(next(iter(marks.places.values())))
    for limb, parts in LIMBS.items():
        for side in SIDES:
            seen = np.zeros(count, bool)
            for name in (f"{side}_{part}" for part in parts):
                if _shown(marks, name):
                    seen |= np.isfinite(marks.places[name]).all(1)
            out[f"{side}_{limb}"] = ~seen
    return out


def _seen(share: Array) -> Bools:
    """Return a mask of the frames in which a point is seen, (T,).

    Args:
        share: Confidence of the point, divided by the confidence of clearly seen points, (T,).
    """
    decides = (share >= _HIGH) | (share < _LOW)
    last = np.maximum.accumulate(np.where(decides, np.arange(len(share)), -1))
    return np.where(last < 0, True, share[np.maximum(last, 0)] >= _HIGH)


def still_seen(share: Array, before: Bools) -> Bools:
    """Return a mask of the points that are seen in the next frame, (K,).

    Args:
        share: Confidence of each point, divided by the confidence of clearly seen points, (K,).
        before: Mask of points that were seen in the previous frame, (K,).
    """
    return (share >= _HIGH) | (before & (share >= _LOW))


def _shown(marks: Landmarks, name: str) -> bool:
    """Return whether a landmark is seen in more than a few frames."""
    return name in marks.places and float(np.isfinite(marks.places[name]).all(1).mean()) > _NEVER


def _upwards(marks: Landmarks, part: str, others: Sequence[str], up: str | None) -> Array:
    """Return the upward unit vector, (3,): ``up`` if given, else from shoulders to head or from legs to hips.

    Raises:
        InputError: If neither head nor legs are seen.
    """
    if up is not None:
        return axis_vector(up)
    middle = marks.middle(*(f"{side}_{part}" for side in SIDES))
    ways = np.concatenate([marks.places[name] - middle for name in others] or [np.empty((0, 3))])
    ways = ways[np.isfinite(ways).all(1)]
    if not len(ways):
        raise InputError(
            "cannot find which axis points up", value=f"{part}s without head and legs", expected="an axis",
            hint="name it: up='y', '-y', 'z', ... (--up)",
        )  # fmt: skip
    return axis_vector(axis_name(ways.mean(0) if part == "shoulder" else -ways.mean(0)))


def _with_pair(marks: Landmarks, part: str, along: Array) -> Landmarks:
    """Return landmarks with added hips or shoulders, at the other end of an upright trunk; ``along`` points there."""
    other = "shoulder" if part == "hip" else "hip"
    left, right = (marks.places[f"{side}_{other}"] for side in SIDES)
    across = left - right
    widths = {other: marks.length(left, right)}
    widths[part] = widths[other] * (_WIDTH if part == "hip" else 1.0 / _WIDTH)
    level = unit(across - (across @ along)[:, None] * along)
    middle = 0.5 * (left + right) + _TRUNK * widths["shoulder"] * along
    places, weights = dict(marks.places), dict(marks.weights)
    for side, sign in zip(SIDES, (0.5, -0.5), strict=True):
        places[f"{side}_{part}"] = middle + sign * widths[part] * level
        weights[f"{side}_{part}"] = _DOUBTED * np.minimum(*(weights[f"{one}_{other}"] for one in SIDES))
    return replace(marks, places=places, weights=weights)
