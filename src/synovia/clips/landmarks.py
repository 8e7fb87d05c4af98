"""Landmarks of the human body, such as those of pose detectors: presets of common detectors, and names of landmarks.

A landmark has the name of its place on the body: ``left_shoulder`` is where the upper arm begins, ``left_hip`` where
the thigh begins, ``hips`` the middle of the hips, ``neck`` the middle of the shoulders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.errors import InputError, unknown_name
from synovia.model.geometry import Array

SIDES: Final = ("left", "right")
_ARM: Final = ("shoulder", "elbow", "wrist")
_LEG: Final = ("hip", "knee", "ankle")


def _both(*parts: str) -> tuple[str, ...]:
    """Return the landmarks with these names on both sides: for each name, left then right."""
    return tuple(f"{side}_{part}" for part in parts for side in SIDES)


def _of(side: str, *parts: str) -> tuple[str, ...]:
    """Return the landmarks of one side with these names."""
    return tuple(f"{side}_{part}" for part in parts)


# landmarks of each preset, in the order of its arrays; "" for points that are not used
PRESETS: Final[dict[str, tuple[str, ...]]] = {
    "mediapipe": (
        "nose", "", "left_eye", "", "", "right_eye", "", *_both("ear"), "", "",
        *_both(*_ARM, "pinky", "index", "thumb", *_LEG, "heel", "toe"),
    ),
    "coco": ("nose", *_both("eye", "ear", *_ARM, *_LEG)),
    "openpose": (
        "nose", "neck", *_of("right", *_ARM), *_of("left", *_ARM), "hips", *_of("right", *_LEG), *_of("left", *_LEG),
        "right_eye", "left_eye", "right_ear", "left_ear", *_of("left", "toe", "small_toe", "heel"),
        *_of("right", "toe", "small_toe", "heel"),
    ),
    "h36m": (
        "hips", *_of("right", *_LEG), *_of("left", *_LEG), "spine", "neck", "nose", "head_top", *_of("left", *_ARM),
        *_of("right", *_ARM),
    ),
    "smpl": (
        "hips", *_both("hip"), "spine", *_both("knee"), "spine", *_both("ankle"), "chest", *_both("toe"), "neck",
        *_both("collar"), "head", *_both("shoulder", "elbow", "wrist", "hand"),
    ),
}  # fmt: skip
PRESETS["holistic"] = (*PRESETS["mediapipe"], *("",) * 42)  # 21 landmarks of the left hand, then 21 of the right one
HANDS: Final = {"left": slice(33, 54), "right": slice(54, 75)}  # landmarks of the hands in "holistic"
TITLES: Final = {
    "mediapipe": "MediaPipe, 33 landmarks", "coco": "COCO, 17 keypoints", "openpose": "OpenPose, 25 keypoints",
    "h36m": "Human3.6M, 17 joints", "smpl": "SMPL, 24 joints", "holistic": "MediaPipe Holistic, 33 + 21 + 21 landmarks",
    "markers": "markers of motion capture",
}  # fmt: skip
CAMERA: Final = ("mediapipe", "coco", "openpose", "holistic")  # detectors that work on images, in which y points down

# landmark at which the bone of each role begins
OF_ROLES: Final = {"head": "head"} | {
    f"{side}_{role}": f"{side}_{part}"
    for side in SIDES
    for role, part in (
        ("upper_arm", "shoulder"), ("lower_arm", "elbow"), ("hand", "wrist"), ("upper_leg", "hip"),
        ("lower_leg", "knee"), ("foot", "ankle"), ("toes", "toe"),
    )
}  # fmt: skip

# pairs of landmarks whose distance stays constant while the body moves
BONES: Final = (
    *((f"{side}_{a}", f"{side}_{b}") for side in SIDES for limb in (_ARM, _LEG) for a, b in zip(limb, limb[1:])),  # noqa: B905, RUF007
    ("left_hip", "right_hip"), ("left_shoulder", "right_shoulder"),
)  # fmt: skip
NEEDED: Final = _both("shoulder", "hip", "knee")

# words in names of landmarks: first for landmarks in the middle of the body, then for those on both sides
_MIDDLE: Final[dict[str, tuple[str, ...]]] = {
    "hips": ("hips", "pelvis", "midhip", "hip", "root", "hipscenter", "hipcenter", "centerhip", "midhips"),
    "spine": ("spine", "spine1", "belly", "torso"),
    "chest": ("chest", "thorax", "spine3", "upperchest"),
    "neck": ("neck", "midshoulder", "shouldercenter", "shoulders", "necknose"),
    "head": ("head",),
    "head_top": ("headtop", "tophead", "topofhead", "vertex"),
    "nose": ("nose",),
}
_SIDED: Final[dict[str, tuple[str, ...]]] = {
    "eye": ("eye",), "ear": ("ear",), "shoulder": ("shoulder", "upperarm", "arm", "sho"),
    "elbow": ("elbow", "forearm", "lowerarm", "elb"), "wrist": ("wrist", "wri"), "hand": ("hand",),
    "index": ("index", "indexfinger"), "pinky": ("pinky", "pinkyfinger", "littlefinger"), "thumb": ("thumb",),
    "hip": ("hip", "upleg", "upperleg", "thigh"), "knee": ("knee", "leg", "lowerleg", "shin", "calf", "kne"),
    "ankle": ("ankle", "ank"), "heel": ("heel",), "foot": ("foot",),
    "toe": ("toe", "toes", "bigtoe", "footindex", "toebase", "halluxtoe"), "small_toe": ("smalltoe", "littletoe"),
    "collar": ("collar", "clavicle"),
}  # fmt: skip
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OF_MIDDLE: Final = {word: part for part, words in _MIDDLE.items() for word in words}
_OF_SIDE: Final = {word: part for part, words in _SIDED.items() for word in words}


@dataclass(frozen=True, slots=True, eq=False)
class Landmarks:
    """Landmarks of a person over T frames.

    Args:
        places: World positions (T, 3) by landmark; NaN in frames in which it was not seen.
        weights: Confidence (T,) by landmark.
        preset: Name of the preset; "" if names identified the landmarks.
    """

    places: dict[str, Array]
    weights: dict[str, Array]
    preset: str = ""

    def turned(self, turn: Array, scale: float = 1.0) -> Landmarks:
        """Return the landmarks with all positions multiplied by a matrix (3, 3) and a scale."""
        return Landmarks({key: scale * (p @ turn.T) for key, p in self.places.items()}, self.weights, self.preset)

    def with_middles(self) -> Landmarks:
        """Set "hips" and "neck" to the middle of hips and shoulders, because detectors place these two differently."""
        for name, part in (("hips", "hip"), ("neck", "shoulder")):
            self.places[name] = self.middle(*_both(part))
            self.weights[name] = np.minimum(*(self.weights[one] for one in _both(part)))
        return self

    def swapped(self, parts: Sequence[str] = ()) -> Landmarks:
        """Return the landmarks with left and right exchanged, of all parts, or only of parts such as ``"elbow"``."""
        other = {
            key: re.sub("^(left|right)_", _other_side, key) if not parts or key.endswith(tuple(parts)) else key
            for key in self.places
        }
        return Landmarks(
            {key: self.places.get(name, self.places[key]) for key, name in other.items()},
            {key: self.weights.get(name, self.weights[key]) for key, name in other.items()},
            self.preset,
        )

    def middle(self, *names: str) -> Array:
        """Return the mean position of given landmarks, (T, 3); NaN where one of them is not seen or does not exist."""
        if any(name not in self.places for name in names):
            return np.full((len(next(iter(self.places.values()))), 3), np.nan)
        return np.mean([self.places[name] for name in names], axis=0)

    def length(self, a: Array, b: Array) -> float:
        """Return the median distance of points a and b over time; NaN if they are never seen together."""
        far = np.linalg.norm(a - b, axis=1)
        return float(np.nanmedian(far)) if np.isfinite(far).any() else float("nan")


def _other_side(found: re.Match[str]) -> str:
    """Return the prefix of the opposite side."""
    return "right_" if found[1] == "left" else "left_"


def named_landmarks(names: Sequence[str]) -> list[str]:
    """Return the landmark with the name of each point; "" for points that are not landmarks.

    ``LShoulder``, ``left_shoulder`` and ``shoulder.L`` are equivalent. A foot means the toes if another point is the
    ankle, else the ankle. A hand means the wrist if no other point is.
    """
    found: list[str] = []
    for name in names:
        words = [word.lower() for word in _WORDS.findall(name.rpartition(":")[2])]
        side = next((s for s in SIDES if s in words or s[0] in words), "")
        text = "".join(word for word in words if not side or word not in (side, side[0]))
        if not side and text[:1] in ("l", "r") and text[1:] in _OF_SIDE:  # such as lshoulder
            side, text = ("left" if text[0] == "l" else "right"), text[1:]
        part = _OF_SIDE.get(text) if side else _OF_MIDDLE.get(text)
        found.append("" if part is None else f"{side}_{part}" if side else part)
    for side in SIDES:
        for word, first, then in (("foot", "ankle", "toe"), ("hand", "wrist", "hand")):
            if f"{side}_{word}" in found:
                part = f"{side}_{then if f'{side}_{first}' in found else first}"
                found[found.index(f"{side}_{word}")] = part
    return [part if part not in found[:k] else "" for k, part in enumerate(found)]


def as_landmarks(
    positions: Array, names: Sequence[str] | None, confidence: Array | None, preset: str | None = None
) -> Landmarks | None:
    """Return points as landmarks; None if neither names nor number and bone lengths identify the points.

    Args:
        positions: (T, K, 3), NaN where a point was not seen.
        names: Name of each point; None without names. Names that are numbers are indices into a preset.
        confidence: (T, K); None for 1.
        preset: Name of a preset; None to find it.

    Raises:
        InputError: If the number of points differs from that of the preset, or two presets fit equally well.
        UnknownNameError: If there is no such preset.
    """
    if preset is not None and preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    count = positions.shape[1]
    weights = np.ones(positions.shape[:2]) if confidence is None else confidence
    order = list(range(count))
    if names is not None and all(name.isdecimal() for name in names):
        order, names = list(np.argsort([int(name) for name in names])), None
    if names is not None:
        chosen, found = preset or "", named_landmarks(names)
        if not any(found.count(f"left_{part}") and found.count(f"right_{part}") for part in ("shoulder", "hip")):
            return None
    else:
        chosen = preset or _by_lengths(positions[:, order])
        if not chosen:
            return None
        found = list(PRESETS[chosen])
        if len(found) != count:
            raise InputError(
                f"preset {chosen!r} has {len(found)} points", value=count, expected=f"positions (T, {len(found)}, 3)"
            )
    places: dict[str, Array] = {}
    own: dict[str, Array] = {}
    for k, part in zip(order, found, strict=True):
        if part and part not in places:
            places[part] = positions[:, k]
            own[part] = weights[:, k]
    for part in NEEDED:
        places.setdefault(part, np.full((len(positions), 3), np.nan))
        own.setdefault(part, np.zeros(len(positions)))
    return Landmarks(places, own, chosen).with_middles()


def _by_lengths(positions: Array) -> str:
    """Return the preset that has this number of points and the most constant bone lengths; "" if there is none.

    Raises:
        InputError: If two presets fit equally well.
    """
    fits = [name for name, order in PRESETS.items() if len(order) == positions.shape[1]]
    if len(fits) < 2:
        return fits[0] if fits else ""
    spreads = {name: bone_spread(dict(zip(PRESETS[name], np.moveaxis(positions, 1, 0), strict=True))) for name in fits}
    best, second = sorted(fits, key=lambda name: spreads[name])[:2]
    if not spreads[best] < 0.5 * spreads[second]:
        raise InputError(
            f"the points may be {' or '.join(TITLES[name] for name in fits)}", value=f"{positions.shape[1]} points",
            expected="a preset", hint=f"name it: preset={best!r} (--preset {best})",
        )  # fmt: skip
    return best


def bone_spread(places: Mapping[str, Array]) -> float:
    """Return the relative variation of bone lengths over time plus that between left and right; 0 for a rigid body."""
    lengths = {
        (a, b): np.linalg.norm(places[a] - places[b], axis=1) for a, b in BONES if a in places and b in places
    }  # fmt: skip
    seen = {key: far[np.isfinite(far)] for key, far in lengths.items() if np.isfinite(far).any()}
    middle = {key: float(np.median(far)) for key, far in seen.items()}
    if not middle or min(middle.values()) <= 0.0:
        return float("inf")
    over_time = [float(np.median(np.abs(far - middle[key]))) / middle[key] for key, far in seen.items()]
    pairs = [((a, b), (a.replace("left", "right"), b.replace("left", "right"))) for a, b in middle]
    sides = [abs(np.log(middle[key] / middle[other])) for key, other in pairs if other != key and other in middle]
    return float(np.mean(over_time) + (np.mean(sides) if sides else 0.0))
