"""Joint centres from markers on the skin, by the names of Plug-in Gait and similar marker sets.

Hip joints lie behind and below the markers of the pelvis, at fixed fractions of its width. Knees, ankles and elbows are
between their two markers. If only the outer marker exists, they are half a joint's width from it, towards the middle.

References:
    Bell, Pedersen, Brand (1990), *A comparison of the accuracy of several hip center location prediction methods*.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from synovia.clips.landmarks import SIDES, Landmarks
from synovia.model.geometry import Array, unit

# Names of markers in capitals without punctuation, with "*" for L or R; of several names, the first in the file is used
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "front": ("*ASI", "*ASIS"), "back": ("*PSI", "*PSIS", "SACR", "SACRAL", "VSACRAL"),
    "knee": ("*KNE", "*KNEELAT", "*KNEE", "*LKNE"), "inner_knee": ("*KNM", "*KNEM", "*KNEEMED", "*MKNE"),
    "ankle": ("*ANK", "*ANKLELAT", "*ANKLE"), "inner_ankle": ("*MED", "*ANM", "*ANKM", "*ANKLEMED", "*MANK"),
    "toe": ("*TOE", "*TOETIP", "*TOEMID", "*MT2"), "heel": ("*HEE", "*HEEL"),
    "shoulder": ("*SHO", "*SHOULDER", "*ACROMIUM", "*ACROMION", "*ACR"),
    "elbow": ("*ELB", "*ELBOWLAT", "*ELBL", "*ELBOW"), "inner_elbow": ("*ELBM", "*ELBOWMED", "*MELB"),
    "wrist": ("*WRA", "*WRISTLAT", "*WRIST", "*WRR"), "inner_wrist": ("*WRB", "*WRISTMED", "*WRU"),
    "hand": ("*FIN", "*HAND"), "temple": ("*FHD",), "nape": ("*BHD",),
}  # fmt: skip
# Fractions of the distance between the front markers of the pelvis
_HIP: Final = (0.36, 0.30, 0.19)  # position of the hip joint: sideways, down, back (Bell et al. 1990)
_INWARD: Final = {"knee": 0.21, "ankle": 0.15, "elbow": 0.0}  # half the width of each joint
_BELOW: Final = 0.16  # distance of the shoulder joint below the marker on the shoulder


def joints_of_markers(names: Sequence[str], positions: Array, weights: Array) -> Landmarks | None:
    """Return the landmarks at joint centres from markers; None if the pelvis, a knee or a shoulder has no markers.

    Args:
        names: Name of each marker; a person's name before a colon is ignored.
        positions: (T, K, 3), NaN where a marker was not seen.
        weights: Confidence, (T, K).
    """
    bare = [re.sub(r"[^A-Z0-9]", "", name.rpartition(":")[2].upper()) for name in names]
    at: dict[str, int] = {}
    for side in SIDES:
        for part, known in _NAMES.items():
            letter = side[0].upper()
            own = [name.replace("*", letter) for name in known]
            own += [name.removeprefix("*") + letter for name in known if name.startswith("*")]  # such as ASISl
            if (name := next((name for name in own if name in bare), None)) is not None:
                at[f"{side}_{part}"] = bare.index(name)
    if not all(f"{side}_{part}" in at for side in SIDES for part in ("front", "back", "knee", "shoulder")):
        return None
    places: dict[str, Array] = {}
    own_weights: dict[str, Array] = {}
    front = [positions[:, at[f"{side}_front"]] for side in SIDES]
    width = float(np.nanmedian(np.linalg.norm(front[0] - front[1], axis=1)))
    left, up, ahead = _pelvis(front, [positions[:, at[f"{side}_back"]] for side in SIDES])
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):

        def add(part: str, place: Array, *markers: str, side: str = side) -> None:
            places[f"{side}_{part}"] = place
            own_weights[f"{side}_{part}"] = np.min([weights[:, at[f"{side}_{one}"]] for one in markers], axis=0)

        aside, below, behind = (share * width for share in _HIP)
        add("hip", 0.5 * (front[0] + front[1]) + sign * aside * left - below * up - behind * ahead, "front", "back")
        for part, inward in _INWARD.items():
            if f"{side}_{part}" not in at:
                continue
            outer = positions[:, at[f"{side}_{part}"]]
            if f"{side}_inner_{part}" in at:
                add(part, 0.5 * (outer + positions[:, at[f"{side}_inner_{part}"]]), part, f"inner_{part}")
            else:
                add(part, outer - sign * inward * width * left, part)
        add("shoulder", positions[:, at[f"{side}_shoulder"]] - _BELOW * width * up, "shoulder")
        for part, markers in {
            "toe": ("toe",), "heel": ("heel",), "wrist": ("wrist", "inner_wrist"), "hand": ("hand",),
            "ear": ("temple", "nape"),
        }.items():  # fmt: skip
            seen = [one for one in markers if f"{side}_{one}" in at]
            if seen and (part != "ear" or len(seen) == len(markers)):
                add(part, np.mean([positions[:, at[f"{side}_{one}"]] for one in seen], axis=0), *seen)
    return Landmarks(places, own_weights, "markers").with_middles()


def _pelvis(front: Sequence[Array], back: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return unit vectors (T, 3) of the pelvis to the left, up and ahead."""
    left = unit(front[0] - front[1])
    ahead = 0.5 * (front[0] + front[1]) - 0.5 * (back[0] + back[1])
    ahead = unit(ahead - np.sum(ahead * left, axis=1, keepdims=True) * left)
    return left, np.cross(ahead, left), ahead
