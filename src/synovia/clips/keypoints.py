"""Fit the motion of a body to landmarks, such as those of a pose detector, for any body and any units.

``upright`` rotates the landmarks upright. ``measured`` gives the body the bone lengths of the landmarks, so that its
joints can reach them. ``fit_positions`` fits this measured body; the resulting joint values then move the given body.
If the hips are at the origin in all frames, ``travel`` computes the path from planted feet and gravity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress
from synovia.bodies.soles import sole_of
from synovia.clips.fit import Fitted, fit_positions, positive
from synovia.clips.hands.bones import hands_of_body
from synovia.clips.hands.measured import FitHand, palm_points
from synovia.clips.hands.onto import moved_hand, needs_body, turned_hands
from synovia.clips.landmarks import (
    HANDS,
    NEEDED,
    OF_ROLES,
    PRESETS,
    SIDES,
    TITLES,
    Landmarks,
    as_landmarks,
    bone_spread,
)
from synovia.clips.loosened import loosened
from synovia.clips.markerfile import joints_of_markers
from synovia.clips.measured import measured, roles_of, size_ratio, upward
from synovia.clips.points import confidence_of
from synovia.clips.resting import Rest, UnseenLimbs, kept_values
from synovia.clips.seen import hidden_limbs, only_seen
from synovia.clips.travel import find_travel, middle_of_hips
from synovia.clips.upright import SURE, body_up, check_sides, forward_by_frame, forwardness, make_upright, to_y_up
from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.anatomy.contacts import LOW
from synovia.model.anatomy.feet import feet_of, frames_text
from synovia.model.anatomy.hands.landmarks import COUNT, FINGER_POINTS, WRIST, side_of
from synovia.model.geometry import Array, Bools, as_numbers, axis_name
from synovia.model.motion import Motion
from synovia.model.pose import world_frames
from synovia.model.root import free_root
from synovia.text import DOUBT, counted
from synovia.tracking.trajectory import part_of

_TURN: Final = np.cos(np.radians(110.0))  # cosine of an angle that no body rotates by between two frames
# degrees per second that no body reaches; at low frame rates, a flip must rotate at least this fast
_FASTEST: Final = 1000.0
_WIDE: Final = 0.05  # fraction of the body's length: a shorter line across shoulders or hips shows no direction
# cosine between left × up and the direction of face and toes: if its median exceeds this, frames below its negative
# value are flipped
_MIRRORED: Final = 0.5
ONE_HAND: Final = "hand"  # name of the preset of 21 landmarks of one hand
UNITS: Final = {"metres": 1.0, "centimetres": 0.01, "millimetres": 0.001}
PERSON: Final = (0.4, 1.35)  # range of sizes of people, relative to an adult of 1.75 m
OWN_SIZE: Final = 1.15  # largest ratio of sizes between a body and the points of its own joints
CENTRED: Final = 0.01  # fraction of the body's size: hips that move by less count as fixed at the origin
FIRST: Final = 0.6  # fraction of the progress for the fit within limits; a second fit with wider limits may follow
STRETCHY: Final = 0.25  # relative variation of bone lengths over time above which a note reports it
LIFTED: Final = 0.05  # fraction of the body's size: a clip whose floor is farther from height 0 is shifted vertically


def fit_keypoints(
    positions: Any,
    names: Sequence[str] | None = None,
    *,
    body: Skeleton | None = None,
    preset: str | None = None,
    confidence: Any = None,
    offsets: Any = None,
    up: str | None = None,
    mirror: str | None = None,
    fps: float = 30.0,
    meters_per_unit: float | None = None,
    smoothness: float | None = None,
    side: str | None = None,
    finger_limits: bool = True,
    rest: Rest | None = None,
    name: str = "fitted",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Fit the motion of a body to landmarks of a person, such as those of a pose detector.

    Landmarks are rotated upright, whatever their axes. The body follows their directions with its own bone lengths. If
    all names are joints of ``body``, or if there are no names and as many points as joints, the points are those of the
    joints: these follow them as in ``fit_positions``, and only the upward axis is corrected. If the hips are at the
    frames, the path is computed from planted feet and, in flight, from gravity. ``notes`` of the result lists what was
    recognised and changed, and which parts of a path are uncertain.

    With ``"holistic"`` (33 landmarks of the body, then 21 of the left and 21 of the right hand, as in MediaPipe
    Holistic), hands and fingers follow their landmarks. With ``"hand"`` (21 landmarks of one hand), the fingers of that
    hand of ``body`` bend; a body that is only a hand also moves as a whole. Bones of the hand have constant lengths.
    Fingers bend about the flexion axes of the body's fingers. A knuckle also moves sideways and twists a little; the
    following segments do not twist. A finger without points follows its neighbour.

    Args:
        positions: (T, K, 3), in any unit, NaN where a landmark was not seen.
        names: Names of the landmarks, such as ``left_knee``, ``LKnee`` or ``knee.L``; None with a preset.
        body: The body to move; None for a body with the lengths of the landmarks, in metres, with y up.
        preset: Order of the landmarks: ``"mediapipe"``, ``"coco"``, ``"openpose"``, ``"h36m"``, ``"smpl"``,
            ``"holistic"`` or ``"hand"``. None to find it from the names, or from the number of landmarks and the
            lengths between them.
        confidence: Weight of each landmark, (K,) or (T, K); 0 for an unseen one. Landmarks of low confidence are not
            used: limbs that are never seen, or whose names are missing, are at rest. Both shoulders or both hips
            suffice.
        offsets: Points in the frames of their joints, (K, 3), if the points belong to joints of ``body``.
        up: Axis of the landmarks' coordinates that points up, such as ``"-y"``; None to find it.
        mirror: How to undo a mirror image: ``"x"``, ``"y"`` or ``"z"`` negates an axis, ``"names"`` exchanges left and
            right, ``"none"`` changes nothing. None to undo a mirror image whose cause is clear.
        fps: Frames per second.
        meters_per_unit: Unit of the landmarks; None to find it from the size of the person.
        smoothness: As for ``fit_positions``.
        side: Side of the hand of 21 landmarks, ``"left"`` or ``"right"``; None to derive it from how the fingers bend.
        finger_limits: Whether fingers stay within human ranges: knuckles bend by -30 to 95° and move sideways by 25°,
            the next joints bend by -5 to 115° and -5 to 85°; a thumb has its own ranges.
        rest: What limbs do while they are not seen, such as the legs of a person at a desk. ``"rest"``, a ``Pose`` or a
            pose file: take that pose, of ``body`` or else of ``sy.bundled("humanoid")``. ``"keep"`` or None: stay near
            the poses in which they are seen; limbs that are never seen are at rest.
        name: Name of the motion.
        threads: Number of threads; None for all cores. Results are identical for any number.
        progress: Called with (steps done, number of steps).

    Raises:
        InputError: If the landmarks are not those of a body, have no depth, are not upright along any axis, or are
            mirrored for an unknown reason.
        UnknownNameError: If there is no such preset.

    Example:
        >>> import synovia as sy
        >>> fitted = sy.fit_keypoints(points, preset="mediapipe", fps=30.0)  # doctest: +SKIP
        >>> sy.save_motion(fitted, "person.bvh")  # doctest: +SKIP
    """
    from synovia.io.bundled import bundled

    places = as_numbers(positions, (-1, -1, 3), "positions", finite=False)
    places = np.where(np.isfinite(places).all(2, keepdims=True), places, np.nan)
    if not np.isfinite(places).any():
        raise InputError("no point was seen in any frame")
    weights = confidence_of(confidence, *places.shape[:2])
    if names is not None and (len(names) != places.shape[1] or not all(isinstance(one, str) for one in names)):
        raise InputError("names do not match the positions", value=names, expected=f"{places.shape[1]} texts")
    fps = positive(fps, "fps")
    given = body if body is not None else bundled("humanoid")
    kept_values(rest, given, given)  # validates ``rest`` before the work begins
    if meters_per_unit is not None:
        meters_per_unit = positive(meters_per_unit, "meters_per_unit")
    settings: dict[str, Any] = {
        "fps": fps, "smoothness": smoothness, "name": name, "threads": threads, "progress": progress
    }  # fmt: skip
    fit_fingers = FitHand(fps, smoothness, threads, limits=finger_limits)
    joints = body is not None and preset is None and _are_joints(body, names, places.shape[1])
    if preset == ONE_HAND or (preset is None and names is None and places.shape[1] == COUNT and not joints):
        return _fit_one_hand(needs_body(body), (places, weights), side, fit_fingers, name)
    if side is not None:
        raise InputError(
            "side", value=side, expected="None: only the 21 points of one hand have a side",
            hint="preset='hand' (--preset hand) selects them",
        )  # fmt: skip
    found: Landmarks | None = None
    if body is not None and joints:
        marks = _joint_marks(body, names, places, weights)
        if marks is not None and offsets is None and not 1.0 / OWN_SIZE < size_ratio(body, marks) < OWN_SIZE:
            found = marks  # size or unit differ, so the body follows only the directions of the points
    else:
        found = _recognised(places, names, weights, preset)
        marks = None
    if body is not None and found is None:
        turn, notes = _joints_upright(body, marks, up, mirror)
        flips = () if marks is None else find_flips(marks.turned(_from_y_up(body).T @ turn), fps)
        if meters_per_unit is not None and body.meters_per_unit is not None:
            turn = turn * (meters_per_unit / body.meters_per_unit)
        fitted = fit_positions(places @ turn.T, body, names, offsets=offsets, confidence=weights, **settings)
        return Fitted.made(fitted, fitted.errors, fitted.smoothness, notes + _flip_notes(flips), flips)
    if found is None:
        raise InputError(
            "the points are not recognised", value=f"{places.shape[1]} points",
            expected="names such as left_shoulder, left_hip and left_knee, joints of the body, or a preset",
            hint=f"presets are {', '.join((*PRESETS, ONE_HAND))} (--preset)",
        )  # fmt: skip
    if offsets is not None:
        raise InputError("offsets", expected="points of joints of the body", hint="leave them out for landmarks")
    if body is not None:
        roles_of(body)  # raises an error for unsuitable bodies before the work begins
    hands = _hands(places, weights, found, mirror)
    seen = only_seen(found, up)
    found = seen.marks
    upright = make_upright(found, up, mirror)
    notes = [TITLES[found.preset]] if found.preset else []
    notes += [*seen.notes, *upright.notes]
    flips = find_flips(upright.marks, fps)
    notes += _flip_notes(flips)
    spread = bone_spread(upright.marks.places)
    if spread > STRETCHY:
        notes.append(f"{DOUBT}bone lengths vary by {100 * spread:.0f} %: coordinates of an image are not to scale")
    own, marks, metre = _to_scale(upright.marks, body, meters_per_unit, notes, fingers=bool(hands))
    fit = measured(own, marks)

    def fitted_to(skeleton: Skeleton, progress: Progress | None) -> Fitted:
        """Fit a skeleton to the points, and return its motion; its joints are those of the measured body."""
        points: dict[str, Any] = {**settings, "offsets": fit.offsets, "confidence": fit.weights, "progress": progress}
        return fit_positions(fit.places, skeleton, fit.rows, **points)

    if body is None and progress is not None:
        fitted = fitted_to(fit.skeleton, part_of(progress, 0.0, FIRST))
    else:
        fitted = fitted_to(fit.skeleton, progress)
    if body is None:
        after = None if progress is None else part_of(progress, FIRST, 1.0)
        fitted, widened = loosened(fitted, fit.skeleton, lambda skeleton: fitted_to(skeleton, after))
        notes += widened
        if progress is not None:
            part_of(progress, FIRST, 1.0)(1, 1)
    moving, q = fitted.skeleton, fitted.q
    if body is None:
        moving = Skeleton(moving.joints, name="measured", meters_per_unit=1.0, up="y", forward="z")
    else:
        moving, q = body.with_root("free"), q.copy()
        q[:, _path_of(moving)] /= fit.ratio
    apart: list[Array] = []
    kept, stays = kept_values(rest, given, moving)
    q, rests = _resting(moving, q, hidden_limbs(upright.marks), kept, fps, stays=stays)
    notes += rests
    hips = marks.places["hips"]
    if hands:
        turn = _from_y_up(own) @ upright.turn
        scale = marks.length(marks.places["neck"], hips) / found.length(found.places["neck"], found.places["hips"])
        q, apart, more = _with_hands(moving, q, hands, (turn, scale), fit_fingers)
        notes += more
    centred = bool(np.nanstd(hips, axis=0).max() < CENTRED * own.size)
    if not seen.legs:
        q = _at_rest_height(moving, q, kept, centred=centred)
    elif centred:
        travel = find_travel(moving, q, fps, metre)
        q, _ = _on_floor(moving, _shifted(moving, q, travel.path - middle_of_hips(moving, q)), 0.0)
        notes += travel.notes()
        if not any(f"{side}_toe" in marks.places for side in SIDES):
            notes.append("uncertain path: without points of toes, it is unknown when a foot leaves the floor")
    else:
        q, lift = _on_floor(moving, q, LIFTED)
        if lift:
            notes.append(f"the floor was moved to height 0 (by {lift:.3g})")
    errors = np.concatenate([fitted.errors, *apart], axis=1)
    return Fitted.made(Motion(moving, q, fitted.fps, name=name), errors, fitted.smoothness, notes, flips)


def _fit_one_hand(body: Skeleton, points: tuple[Array, Array], side: str | None, fit: FitHand, name: str) -> Fitted:
    """Return the motion of a body whose fingers follow a hand's landmarks; ``points``: positions and confidence."""
    places, weights = points
    if places.shape[1] != COUNT:
        raise InputError(f"preset {ONE_HAND!r} has {COUNT} points", value=places.shape[1], expected=f"(T, {COUNT}, 3)")
    if side is not None and side not in SIDES:
        raise InputError("side", value=side, expected="'left', 'right' or None")
    own = hands_of_body(body)
    if side is None and len(own) == 1:
        side = next(iter(own))
    seen = side_of(places)
    fitted = fit.of(places, weights, side or seen)
    moving, q, hand, more = moved_hand(body, fitted, fit.fps)
    notes = [f"MediaPipe, {COUNT} landmarks of a hand", *more]
    if fitted.side != seen:
        notes.append(f"{DOUBT}the points look like those of a {seen} hand, but were treated as a {fitted.side} one")
    size = float(np.linalg.norm(hand.hand.frame[:3, 3])) / fitted.size
    return Fitted.made(Motion(moving, q, fit.fps, name=name), size * fitted.seen_errors, 0.0, notes, ())


def _hands(places: Array, weights: Array, marks: Landmarks, mirror: str | None) -> dict[str, tuple[Array, Array]]:
    """Return the landmarks (T, 21, 3) and the confidence of each hand that is seen, by side.

    In ``marks``, all landmarks of the hands but the wrists are coarse; the knuckles of the 21 landmarks replace them.

    Args:
        places: Positions of all points.
        weights: Confidence of all points.
        marks: The landmarks of the body; changed in place.
        mirror: How to undo a mirror image.
    """
    out: dict[str, tuple[Array, Array]] = {}
    for side, part in HANDS.items() if marks.preset == "holistic" else ():
        points, seen = places[:, part], weights[:, part]
        if len(palm_points(points, seen)) < 3:
            continue
        wrist = marks.places[f"{side}_wrist"]
        for name, k in (("index", FINGER_POINTS["index"][0]), ("pinky", FINGER_POINTS["little"][0])):
            mark = f"{side}_{name}"
            near = wrist + points[:, k] - points[:, WRIST]
            here = np.logical_and(np.isfinite(near).all(1), np.minimum(seen[:, k], seen[:, WRIST]) > 0.0)
            marks.places[mark] = np.where(here[:, None], near, marks.places[mark])
            marks.weights[mark] = np.where(here, seen[:, k], marks.weights[mark])
        out[SIDES[1 - SIDES.index(side)] if mirror == "names" else side] = points, seen
    return out


def _with_hands(
    body: Skeleton, q: Array, hands: Mapping[str, tuple[Array, Array]], to_body: tuple[Array, float], fit: FitHand
) -> tuple[Array, list[Array], list[str]]:
    """Return joint values with hands and fingers that follow their landmarks, their distances from these, and notes.

    Args:
        body: The body.
        q: Its joint values, (T, nq).
        hands: Landmarks and confidence of the hands, by side.
        to_body: Rotation from the axes of the points to those of the body, (3, 3); and the scale of lengths.
        fit: Settings of the fit of hands.
    """
    turn, scale = to_body
    fits = {side: fit.of(points @ turn.T, weights, side) for side, (points, weights) in hands.items()}
    q, notes = turned_hands(body, q, fits, fit.fps)
    notes += [f"the {side} hand is never seen: its fingers stay at rest" for side in SIDES if side not in fits]
    return q, [scale * fitted.seen_errors for fitted in fits.values()], notes


def _flip_notes(flips: Sequence[int]) -> list[str]:
    """Return a sentence about the frames in which the points are flipped; an empty list without such frames."""
    if not flips:
        return []
    count = counted(len(flips), "frame")
    return [f"upside down, turned round or mirrored in {count}, unlike the others: {frames_text(flips)}"]


def _recognised(places: Array, names: Sequence[str] | None, weights: Array, preset: str | None) -> Landmarks | None:
    """Return points as landmarks, identified as markers, by name or by order; None if they are not recognised."""
    if names is not None and preset is None:
        markers = joints_of_markers(names, places, weights)
        if markers is not None:
            return markers
    return as_landmarks(places, names, weights, preset)


def _are_joints(body: Skeleton, names: Sequence[str] | None, count: int) -> bool:
    """Return whether points belong to joints of a body: by the names of joints or links, or by number if unnamed."""
    if names is None:
        return count == len(body)
    return all(body.knows(name, roles=False) for name in names)


def _joint_marks(body: Skeleton, names: Sequence[str] | None, places: Array, weights: Array) -> Landmarks | None:
    """Return the points of a body's own joints as landmarks; None if shoulders, hips or knees are missing."""
    rows = range(len(body)) if names is None else [body.locate(name)[0] for name in names]
    column = {row: k for k, row in enumerate(rows)}
    columns = {
        OF_ROLES[role]: column[row] for role, row in body.role_rows.items() if role in OF_ROLES and row in column
    }
    if not all(mark in columns for mark in NEEDED):
        return None
    found = {mark: places[:, k] for mark, k in columns.items()}
    return Landmarks(found, {mark: weights[:, k] for mark, k in columns.items()}).with_middles()


def _joints_upright(
    body: Skeleton, marks: Landmarks | None, up: str | None, mirror: str | None
) -> tuple[Array, list[str]]:
    """Return the matrix (3, 3) that rotates points of a body's own joints upright, with notes.

    The matrix is the identity for bodies that are not human, and for points without a clear upward axis.

    Raises:
        InputError: If the points are mirrored for an unknown reason, or ``up`` or ``mirror`` cannot be applied.
    """
    asked = up is not None or mirror is not None
    if marks is not None and mirror is None:
        check_sides(marks)
    if marks is None:
        if asked:
            raise InputError("up or mirror", expected="points of shoulders, hips and knees", hint="leave them out")
        return np.eye(3), []
    try:
        back = _from_y_up(body)
        upright = make_upright(marks, up, mirror)
    except InputError:
        if asked or forwardness(marks) < -SURE:
            raise
        return np.eye(3), []
    turn = back @ upright.turn
    if np.allclose(turn, np.eye(3)):
        return np.eye(3), []
    return turn, upright.notes or ["turned to the upward axis of the body"]


def _to_scale(
    marks: Landmarks, body: Skeleton | None, meters_per_unit: float | None, notes: list[str], *, fingers: bool
) -> tuple[Skeleton, Landmarks, float]:
    """Return the body to measure, the landmarks in its unit and axes, and a scale; append to ``notes``.

    The scale is the number of the body's length units per metre of the person.
    """
    from synovia.io.bundled import bundled

    adult = bundled("humanoid_hands" if fingers else "humanoid")
    unit = "given"
    if meters_per_unit is None:
        ratio = size_ratio(adult, marks)
        unit = next((label for label, metres in UNITS.items() if PERSON[0] < ratio * metres < PERSON[1]), "")
        meters_per_unit = UNITS[unit] if unit else 1.0 / ratio
    if body is not None:
        ratio = size_ratio(body, marks)
        if not PERSON[0] < ratio < PERSON[1]:
            notes.append(f"scaled by {1.0 / ratio:.3g} to the size of the body")
        return body, marks.turned(_from_y_up(body), 1.0 / ratio), 1.0 / (ratio * meters_per_unit)
    if unit != "given":
        notes.append(f"assumed to be in {unit}" if unit else "their unit is unknown: the body has the size of an adult")
    return adult, marks.turned(np.eye(3), meters_per_unit), 1.0


def _from_y_up(body: Skeleton) -> Array:
    """Return the rotation (3, 3) from y to the upward axis of a body."""
    return to_y_up(axis_name(upward(body))).T


def _path_of(body: Skeleton) -> slice:
    """Return the slice of q that holds the position of a body's free root."""
    at = body.q_slice(free_root(body.joints, body.parents) or 0).start
    return slice(at, at + 3)


def _shifted(body: Skeleton, q: Array, path: Array) -> Array:
    """Return joint values (T, nq) whose free root is displaced by a path in the world, (T, 3)."""
    row = free_root(body.joints, body.parents) or 0
    parent = body.parents[row]
    above = np.array(body.rest_pose().frames[parent, :9]).reshape(3, 3) if parent >= 0 else np.eye(3)
    out = q.copy()
    out[:, _path_of(body)] += path @ above @ body.joints[row].rest[:3, :3]
    return out


def _resting(
    body: Skeleton, q: Array, hidden: Mapping[str, Bools], kept: Array, fps: float, *, stays: bool
) -> tuple[Array, list[str]]:
    """Return joint values (T, nq) in which hidden limbs rest, and a note on limbs that are hidden only sometimes.

    Args:
        body: The body.
        q: Its joint values, (T, nq).
        hidden: For each limb, the mask of the frames in which it is hidden, (T,).
        kept: Joint values at rest, (nq,).
        fps: Frames per second.
        stays: Whether limbs that are seen in some frames stay where they are seen, so that only the others rest.
    """
    used = {limb: gone for limb, gone in hidden.items() if gone.all() or (gone.any() and not stays)}
    if not used:
        return q, []
    first = {limb: body.role_rows["{}_upper_{}".format(*limb.split("_"))] for limb in used}
    shares = {limb.replace("_", " "): gone.mean() for limb, gone in used.items() if not gone.all()}
    listed = ", ".join(f"{limb} in {100.0 * share:.0f} % of the frames" for limb, share in shares.items())
    out = UnseenLimbs(body, first, kept, fps).follow(q, np.stack(list(used.values()), axis=1))
    return out, [f"at rest while hidden for 0.3 s or more: {listed}"] if listed else []


def _at_rest_height(body: Skeleton, q: Array, rest_q: Array, *, centred: bool) -> Array:
    """Return joint values (T, nq) with the rest height of the hips as their median; ``centred`` hips stay at rest."""
    rest, now = middle_of_hips(body, rest_q[None]), middle_of_hips(body, q)
    if centred:
        return _shifted(body, q, rest - now)
    up = upward(body)
    return _shifted(body, q, np.tile(((rest[0] - np.median(now, axis=0)) @ up) * up, (len(q), 1)))


def _on_floor(body: Skeleton, q: Array, least: float) -> tuple[Array, float]:
    """Return joint values (T, nq) shifted to put the floor at height 0, and by how much they were raised.

    Args:
        body: The body.
        q: Its joint values, (T, nq).
        least: Fraction of the body's size: the clip is not shifted if its floor is nearer to height 0.
    """
    up, frames = upward(body), world_frames(body, q)
    soles = [sole_of(body, foot, up).lowest(frames, up) for foot in feet_of(body)]
    parts = frames[:, list(body.role_rows.values()), 9:] @ up
    floor = float(np.percentile(np.column_stack([parts, *soles]).min(1), LOW))
    if abs(floor) < least * body.size:
        return q, 0.0
    return _shifted(body, q, np.tile(-floor * up, (len(q), 1))), -floor


def find_flips(marks: Landmarks, fps: float) -> tuple[int, ...]:
    """Return the frames in which the landmarks are flipped relative to most other frames.

    Args:
        marks: The landmarks, with y up.
        fps: Frames per second.
    """
    up = body_up(marks)
    pairs = [marks.middle(f"left_{part}") - marks.middle(f"right_{part}") for part in ("hip", "shoulder")]
    left = np.sum(pairs, axis=0)
    length = float(np.nanmedian(np.linalg.norm(up, axis=1)))
    flipped = np.zeros(len(up), bool)
    for way in (up, left):
        flipped |= _turned(way, length, fps)
    ahead = forward_by_frame(marks)
    if np.isfinite(ahead).any() and np.nanmedian(ahead) > _MIRRORED:
        flipped |= np.nan_to_num(ahead, nan=1.0) < -_MIRRORED
    return tuple(np.flatnonzero(flipped).tolist())


def _turned(way: Array, length: float, fps: float) -> NDArray[np.bool_]:
    """Return a mask of the frames in which a vector (T, 3) is flipped, relative to most of the frames.

    Args:
        way: The vector; NaN where it is unknown.
        length: Length of the body.
        fps: Frames per second.
    """
    size = np.linalg.norm(way, axis=1)
    seen = np.flatnonzero(np.nan_to_num(size) > _WIDE * length)
    out = np.zeros(len(way), bool)
    if len(seen) < 2 or _FASTEST / fps > 170.0:
        return out
    line = way[seen] / size[seen, None]
    least = min(_TURN, np.cos(np.radians(_FASTEST / fps)))
    turns = (np.sum(line[1:] * line[:-1], axis=1) < least) & (np.diff(seen) * _FASTEST / fps < 170.0)
    other = np.cumsum(np.append(0, turns)) % 2 == 1
    if 2 * int(other.sum()) > len(other):
        other = ~other
    out[seen[other]] = True
    return out
