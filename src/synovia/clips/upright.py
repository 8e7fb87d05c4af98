"""Find which axis of landmarks points up, whether the landmarks are mirrored, and whether they have any depth.

The direction from feet to shoulders, and lines that stay horizontal, show which axis points up. Toes, nose and bent
knees show the forward direction; left × up distinguishes a body from its mirror image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from synovia.clips.landmarks import CAMERA, SIDES, Landmarks
from synovia.errors import InputError
from synovia.model.anatomy.up import SHOWN, Lines
from synovia.model.geometry import AXES, Array, axis_vector

MIRRORS: Final = ("x", "y", "z", "names", "none")
# prior probability that an axis points up, for landmarks from camera images
_FROM_CAMERA: Final = {"-y": 0.3, "y": 0.25}
_FROM_SPACE: Final = {"y": 0.3, "z": 0.25, "-y": 0.0, "-z": 0.0}
# mirrored points are recognised if expected and observed forward directions have at least this mean cosine, in absolute
# value
SURE: Final = 0.3
TINY: Final = 0.02  # fraction of the body's length: shorter vectors do not show the forward direction
_LINES: Final = ("shoulder", "hip")  # pairs of joints; the lines from right to left have about the same direction
_CHAINS: Final = (("shoulder", "elbow", "wrist"), ("hip", "knee", "ankle"))
# median cosine between the lines of shoulders and hips: if smaller, left and right of one pair are exchanged
_OPPOSITE: Final = -0.5
# exchanged ends are closer if the bone is then shorter than this fraction of its length as named
_NEARER: Final = 0.97
_NEARLY_ALWAYS: Final = 0.95  # exchanged ends are closer in more than this fraction of the frames
_RIGID: Final = 0.05  # largest relative standard deviation over time of a length that counts as constant
# relative standard deviation of a bone's length over time: if larger, its ends may be exchanged
_UNSTEADY: Final = 0.1
_STEADIER: Final = 0.4  # ends are exchanged if the exchange reduces this deviation to less than this fraction
_SEEN: Final = 5  # least number of frames that show both bones, to detect exchanged ends
FLAT: Final = 0.02  # fraction of the body's length: points with less depth lie in a plane


@dataclass(frozen=True, slots=True, eq=False)
class Upright:
    """Upright landmarks.

    Args:
        marks: The landmarks with y up, right-handed.
        turn: Matrix (3, 3) from the original coordinates to those of ``marks``.
        notes: Sentences about what was changed.
    """

    marks: Landmarks
    turn: Array
    notes: list[str]


def to_y_up(up: str) -> Array:
    """Return the rotation (3, 3), about one coordinate axis, from the ``up`` axis of a file to y."""
    turns = {
        "y": ((1, 0, 0), (0, 1, 0), (0, 0, 1)), "-y": ((1, 0, 0), (0, -1, 0), (0, 0, -1)),
        "z": ((1, 0, 0), (0, 0, 1), (0, -1, 0)), "-z": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
        "x": ((0, -1, 0), (1, 0, 0), (0, 0, 1)), "-x": ((0, 1, 0), (-1, 0, 0), (0, 0, 1)),
    }  # fmt: skip
    return np.array(turns[up], np.float64)


def make_upright(marks: Landmarks, up: str | None = None, mirror: str | None = None) -> Upright:
    """Rotate landmarks so that y is up, and undo a mirror image if its cause is clear.

    Args:
        marks: The landmarks.
        up: Axis of the points that points up, such as ``"-y"``; None to find it.
        mirror: How to undo a mirror image: the axis to negate, ``"names"`` to exchange left and right, ``"none"`` to
            keep the points as they are; None to detect the cause.

    Raises:
        InputError: If the points lie in a plane, the up axis is uncertain, or the points are mirrored and several
            causes are possible.

    """
    for value, name, known in ((up, "up", AXES), (mirror, "mirror", MIRRORS)):
        if value is not None and value not in known:
            raise InputError(name, value=value, expected=f"one of {', '.join(known)}")
    _check_depth(marks)
    notes: list[str] = []
    turn = np.eye(3)
    if mirror == "names":
        marks = marks.swapped()
        notes.append("left and right landmarks were exchanged")
    elif mirror in ("x", "y", "z"):
        turn = np.diag(1.0 - 2.0 * np.abs(axis_vector(mirror)))
        marks = marks.turned(turn)
        notes.append(f"{mirror} was negated")
    axis = up or _up_of(marks)
    if mirror is None:
        check_sides(marks)
    score = forwardness(marks) if mirror is None else 1.0
    if score < -SURE:
        if not axis.startswith("-"):
            raise InputError(
                "the points are a mirror image: toes, nose or knees point backwards where left and right are as named",
                expected="right-handed coordinates",
                hint="say what to undo: mirror='x', 'y' or 'z' negates an axis, mirror='names' exchanges left and"
                " right, mirror='none' keeps all (--mirror)",
            )
        axis = axis[1:]
        # negating one axis resolves both the up axis and the mirror image
        flip = np.diag(1.0 - 2.0 * np.abs(axis_vector(axis)))
        notes.append(f"{axis} pointed down and the points were a mirror image, so {axis} was negated")
        turn, marks = flip @ turn, marks.turned(flip)
    own = to_y_up(axis)
    if axis != "y":
        notes.append(f"{axis} of the points is up; they were turned upright")
    return Upright(marks.turned(own), own @ turn, notes)


def check_sides(marks: Landmarks) -> None:
    """Raise an error if left and right of arms or legs are exchanged.

    Signs of an exchange: the lines of shoulders and hips have opposite directions; bone lengths vary, but would be
    constant with exchanged ends; elbows or knees are nearly always closer to the other shoulder or hip.

    Raises:
        InputError: If left and right are exchanged.
    """
    lines = [marks.places[f"left_{part}"] - marks.places[f"right_{part}"] for part in ("shoulder", "hip")
             if {f"left_{part}", f"right_{part}"} <= marks.places.keys()]  # fmt: skip
    parts: list[str] = []
    if len(lines) == len(_LINES):
        sizes = np.linalg.norm(lines, axis=2).prod(axis=0)
        cosines = np.sum(lines[0] * lines[1], axis=1) / np.maximum(sizes, 1e-300)
        if np.isfinite(cosines).any() and float(np.nanmedian(cosines)) < _OPPOSITE:
            arms = forwardness(marks.swapped(("shoulder", "elbow", "wrist", "hand")))
            parts.append("the arms" if arms > 0.0 else "the legs" if arms < 0.0 else "the arms or the legs")
    for chain in _CHAINS:
        parts += [f"the {lower}s" for upper, lower in pairwise(chain) if _bones_cross(marks, upper, lower)]
    if parts:
        raise InputError(
            f"left and right of {' and '.join(parts)} are exchanged in the points",
            expected="names of the correct sides",
            hint="exchange the names of these points, or keep them with mirror='none' (--mirror none)",
        )


def _bones_cross(marks: Landmarks, upper: str, lower: str) -> bool:
    """Return whether left and right lower ends are exchanged: swapped, they give shorter, more constant bones."""
    ends = [[f"{side}_{part}" for side in SIDES] for part in (upper, lower)]
    if not {*ends[0], *ends[1]} <= marks.places.keys():
        return False
    a, b = (np.stack([marks.places[name] for name in names]) for names in ends)
    own, other = (np.linalg.norm(a - far, axis=2) for far in (b, b[::-1]))
    seen = np.isfinite(own).all(0) & np.isfinite(other).all(0)
    if int(seen.sum()) < _SEEN:
        return False
    own, other = own[:, seen], other[:, seen]
    spread, across = (float((far.std(1) / far.mean(1)).mean()) for far in (own, other))
    nearer = upper in _LINES and float((other < _NEARER * own).mean()) > _NEARLY_ALWAYS
    steadier = spread > _UNSTEADY and across < _STEADIER * spread and float(other.mean()) < float(own.mean())
    return (nearer and across < _RIGID) or steadier


def _body_length(marks: Landmarks) -> float:
    """Return the median distance from the lowest leg joints that are seen to the shoulders."""
    return marks.length(marks.places["neck"], _low(marks))


def body_up(marks: Landmarks) -> Array:
    """Return vectors from the lowest leg joints that are seen to the shoulders, (T, 3)."""
    return marks.places["neck"] - _low(marks)


def _low(marks: Landmarks) -> Array:
    """Return the middle of the lowest leg joints that are seen, (T, 3)."""
    low: Array = np.mean([_lowest(marks, side) for side in SIDES], axis=0)
    return low


def _lowest(marks: Landmarks, side: str) -> Array:
    """Return the ankle of a side, (T, 3); the knee in frames without both ankles, the hip without both knees."""
    out = np.full((len(marks.places["neck"]), 3), np.nan)
    for part in ("ankle", "knee", "hip"):
        hidden = np.isnan(out) & np.isfinite(marks.middle(f"left_{part}", f"right_{part}"))
        out = np.where(hidden, marks.middle(f"{side}_{part}"), out)
    return out


def _check_depth(marks: Landmarks) -> None:
    """Raise an error if points lie in a plane, such as those of an image.

    Raises:
        InputError: If all points lie in a plane that is normal to an axis, or shoulders and legs are never seen
            together.
    """
    length = _body_length(marks)
    if not (np.isfinite(length) and length > 0.0):
        raise InputError("shoulders and legs are never seen together", expected="both shoulders, or both hips")
    every = np.concatenate(list(marks.places.values()))
    depth = np.nanmax(every, axis=0) - np.nanmin(every, axis=0)
    if depth.min() < FLAT * length:
        axis = "xyz"[int(depth.argmin())]
        raise InputError(
            f"the points are flat: {axis} hardly varies", value=f"{depth.min():.3g} for a body of {length:.3g}",
            expected="positions in space", hint="points of an image need depth first, from a detector or a lifter",
        )  # fmt: skip


def _up_of(marks: Landmarks) -> str:
    """Return the axis that points up; the criteria are those of ``find_up`` for bodies.

    Raises:
        InputError: If the axis is uncertain, or the body lies.
    """
    low = [_lowest(marks, side) for side in SIDES]
    ends = [marks.middle(f"{side}_{part}") for part in ("hip", "shoulder") for side in SIDES]
    places = np.stack([*ends, *low], axis=1)
    places = places[np.isfinite(places).all((1, 2))]
    bones = [marks.length(marks.middle(f"{side}_{a}"), marks.middle(f"{side}_{b}"))
             for side in SIDES for a, b in pairwise(("hip", "knee", "ankle"))]  # fmt: skip
    size = _body_length(marks)
    lines = Lines(size, max(0.5 * float(np.nansum(bones)), FLAT * size), (0, 1), (4, 5), (2, 3))
    usual = _FROM_CAMERA if marks.preset in CAMERA else _FROM_SPACE
    found = lines.up_in(lambda frames: places[frames], len(places), usual=usual)
    if found.certainty < SHOWN or found.lies:
        mean = ", ".join(f"{v:.2f}" for v in lines.upright(places).mean(0))
        raise InputError(
            "cannot find which axis points up", value=f"({mean}) as the mean direction from feet to shoulders",
            expected="a body that stands in most frames",
            hint=f"name the axis: up='{found.nearest}' (--up={found.nearest}) to keep it as it is, or another one",
        )  # fmt: skip
    return found.nearest


def forwardness(marks: Landmarks) -> float:
    """Return how well toes, face and knees agree that left × up is forward: 1 for a body, -1 for its mirror image.

    It is the weighted mean of cosines between left × up and these three directions, over all frames; 0 if none is seen.
    """
    up, ahead, length = body_up(marks), _ahead(marks), _body_length(marks)
    total = weights = 0.0
    for weight, sign in (*_toes_and_face(marks), *_knees(marks)):
        along = up / np.maximum(np.linalg.norm(up, axis=1, keepdims=True), 1e-300)
        level = sign - np.sum(sign * along, axis=1, keepdims=True) * along
        far = np.linalg.norm(level, axis=1)
        known = np.isfinite(far) & np.isfinite(ahead).all(1) & (far > TINY * length)
        if np.mean(known) < 0.1:
            continue
        total += weight * float(np.sum(level[known] * ahead[known]) / np.sum(far[known]))
        weights += weight
    return total / weights if weights else 0.0


def forward_by_frame(marks: Landmarks) -> Array:
    """Return the cosine between left × up and the sum of toe and face directions, (T,); NaN if neither is seen."""
    up, ahead = body_up(marks), _ahead(marks)
    sign = np.nansum([way for _, way in _toes_and_face(marks)], axis=0)
    along = up / np.maximum(np.linalg.norm(up, axis=1, keepdims=True), 1e-300)
    level = sign - np.sum(sign * along, axis=1, keepdims=True) * along
    far = np.linalg.norm(level, axis=1)
    seen = np.nan_to_num(far) > TINY * _body_length(marks)
    return np.where(seen, np.sum(level * ahead, axis=1) / np.where(seen, far, 1.0), np.nan)


def _ahead(marks: Landmarks) -> Array:
    """Return left × up as unit vectors, (T, 3)."""
    left = np.nansum([marks.middle(f"left_{part}") - marks.middle(f"right_{part}") for part in ("hip", "shoulder")], 0)
    ahead = np.cross(left, body_up(marks))
    return ahead / np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), 1e-300)


def _toes_and_face(marks: Landmarks) -> Iterator[tuple[float, Array]]:
    """Yield the weight and direction (T, 3) of each foot and the face; all point forward."""
    for side in SIDES:
        ankle, heel, toe = (marks.middle(f"{side}_{part}") for part in ("ankle", "heel", "toe"))
        yield 2.0, toe - np.where(np.isnan(heel), ankle, heel)
    yield 1.0, marks.middle("nose") - marks.middle("left_ear", "right_ear")


def _knees(marks: Landmarks) -> Iterator[tuple[float, Array]]:
    """Yield weight and vector (T, 3) from the middle of hip and ankle to the knee, for each leg; all point forward."""
    for side in SIDES:
        hip, knee, ankle = (marks.middle(f"{side}_{part}") for part in ("hip", "knee", "ankle"))
        yield 1.0, knee - 0.5 * (hip + ankle)
