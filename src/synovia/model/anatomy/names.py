"""Find roles (body parts) from joint names, for the naming conventions of common files.

The roles are those of VRM in snake case. Names are compared without side, numbers and words for kinds of motion. So
``mixamorig:LeftUpLeg``, ``thigh_l``, ``J_Bip_L_UpperLeg``, ``DEF-thigh.L``, ``L_Hip`` and ``left_hip_yaw_joint`` all
mean the left upper leg.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

SIDES: Final = ("left", "right")
_DIGITS: Final = 9  # largest number of digits that are read from a name; damaged files may have thousands
# Words by role, the most specific first: "shoulder" is an upper arm only without a better match. "leg" is an upper leg
# only together with a better word for the lower leg.
CENTRE: Final[dict[str, tuple[str, ...]]] = {"neck": ("neck", "lowerneck"), "head": ("head",)}
HIPS: Final = ("hips", "pelvis")  # names of hips without known legs; with legs, the hips are where the legs meet
LIMBS: Final[dict[str, tuple[str, ...]]] = {
    "upper_arm": ("upperarm", "uparm", "arm", "humerus", "shoulder", "shldr", "sho", "armshx", "armshz"),
    "shoulder": ("clavicle", "collar", "collarbone", "shoulder"),
    "lower_arm": ("lowerarm", "lowarm", "forearm", "loarm", "elbow", "radius", "armelx", "armely"),
    "hand": ("wrist", "hand", "palm", "armwry", "armwrx"),
    "upper_leg": ("upperleg", "upleg", "thigh", "femur", "hip", "leghpy", "leghpx", "leghpz", "leg"),
    "lower_leg": ("lowerleg", "lowleg", "loleg", "leg", "calf", "shin", "knee", "tibia", "legkny"),
    "foot": ("ankle", "ank", "foot", "legakx", "legaky"),
    "toes": ("toes", "toebase", "toe", "ball", "foot"),
}
LIMB_WORDS: Final = frozenset(word for words in LIMBS.values() for word in words)
# matches a name whose words, joined, end in "eye" or "eyeball", but not "eyelid" or "eyebrow"
EYE: Final = re.compile(r".*eye(ball)?")
FINGERS: Final = {
    "thumb": "thumb", "index": "index", "middle": "middle", "ring": "ring", "pinky": "little", "little": "little",
}  # fmt: skip
# words for robot limbs whose joints only have numbers, such as leg_left_1 to leg_left_6
NUMBERED: Final = {
    ("upper_leg", "lower_leg", "foot"): ("leg", "zleg"), ("upper_arm", "lower_arm", "hand"): ("arm", "zarm"),
}  # fmt: skip

_ALIASES: Final = {
    "hip": "upper_leg", "knee": "lower_leg", "ankle": "foot", "elbow": "lower_arm", "wrist": "hand",
}  # fmt: skip
# other names of roles: names of the joint at which a part begins
ALIASES: Final = {"pelvis": "hips"} | {
    f"{side}_{a}": f"{side}_{part}" for side in SIDES for a, part in _ALIASES.items()
}
_FOUR_LEGS: Final = ("upper_leg", "lower_leg", "pastern", "paw")
# roles of people, as in VRM, in snake case
PERSON: Final = (
    "hips", "spine", "chest", "upper_chest", "neck", "head", "jaw",
    *(f"{side}_{part}" for side in SIDES for part in ("eye", "shoulder", "upper_arm", "lower_arm", "hand")),
    *(f"{side}_{part}" for side in SIDES for part in ("upper_leg", "lower_leg", "foot", "toes")),
    *(f"{side}_{finger}_{k}" for side in SIDES for finger in dict.fromkeys(FINGERS.values()) for k in (1, 2, 3)),
)  # fmt: skip
# all roles: of people, and of bodies with four legs
ROLES: Final = (
    *PERSON,
    *(f"{side}_{end}_{part}" for side in SIDES for end in ("fore", "hind") for part in _FOUR_LEGS),
    *(f"{side}_scapula" for side in SIDES), "tail",
)  # fmt: skip

_PREFIX: Final = re.compile(
    r"^(?:.*[:|/]|(?:def|org|mch|b|bn|ctrl|ctl|fk|bip\d*|biped|j_bip|cc_base|valvebiped|mixamorig\d*|skel)[ _.\-])+",
    re.IGNORECASE,
)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MOTION: Final = frozenset({
    "pitch", "roll", "yaw", "joint", "link", "jnt", "jt", "bone", "x", "y", "z", "c", "rot", "bip", "bend", "prosup",
    "bind", "bnd", "skin", "abduction", "adduction", "flexion", "extension", "rotation",
})  # fmt: skip
_LIMB_SIDES: Final = {"lleg": "left", "rleg": "right", "larm": "left", "rarm": "right"}  # LLEG_HIP_R: left, roll
_REMEMBERED: Final = 4096  # number of cached names, enough for a few skeletons
_FIRST: Final = re.compile(r"^[A-Za-z]+\d*[ _.\-]")  # first word of a name, with its separator
_COMMON: Final = 0.8  # share of the joints from which on a first word in common counts as a prefix
_FINGER_BONE: Final = re.compile(r"(finger|metacarpal|proximal|intermediate|distal|phalanx)+$")
_METACARPAL: Final = re.compile(r"^inhand|metacarpal$")
_NO_JOINT: Final = frozenset(
    {"end", "nub", "site", "twist", "tip", "ik", "pole", "helper", "socket", "contour", "imu", "mocap"}
)


class Word(NamedTuple):
    """Content of a joint's name: side (``""`` for none), word and number."""

    side: str
    word: str
    number: int


def common_prefix(names: Sequence[str]) -> str:
    """Return the first word that nearly all names have in common, such as ``Character1_``; "" if there is none."""
    words = [found[0] for name in names if (found := _FIRST.match(name))]
    most = max(set(words), key=words.count, default="")
    return most if len(names) > 1 and words.count(most) >= _COMMON * len(names) else ""


def finger_of(word: str) -> str | None:
    """Return the finger that a word means, such as ``handindex`` or ``littleproximal``; None for other words.

    Metacarpal bones lie in the palm, so they are not joints of fingers; the thumb's is one.
    """
    bare = _FINGER_BONE.sub("", word)
    finger = next((role for ending, role in FINGERS.items() if bare.endswith(ending)), None)
    return None if finger != "thumb" and _METACARPAL.search(word) else finger


def is_finger(role: str) -> bool:
    """Return whether a role is that of a finger joint with some number, such as ``left_index_1``."""
    side, _, rest = role.partition("_")
    finger, _, number = rest.rpartition("_")
    return side in SIDES and finger in FINGERS.values() and number.isascii() and number.isdigit()


def split_name(name: str) -> list[str]:
    """Split a name into words and numbers, at changes of case and at other characters."""
    return _WORDS.findall(name)


@lru_cache(_REMEMBERED)
def words_of(name: str) -> frozenset[str]:
    """Return the set of words in a name, in lower case."""
    return frozenset(word.lower() for word in split_name(name))


@lru_cache(_REMEMBERED)
def read_name(name: str, prefix: str = "") -> Word | None:
    """Parse a joint's name; return None for end sites, twist bones and helpers.

    Args:
        name: The name.
        prefix: First word that all names have in common; it is left out.
    """
    bare = _PREFIX.sub("", name.removeprefix(prefix))
    words = [word.lower() for word in split_name(bare)]
    side = ""
    number = 0
    limb = False
    kept: list[str] = []
    for word in words:
        if word in ("left", "right"):
            side = word
        elif word in _LIMB_SIDES:
            side, limb = _LIMB_SIDES[word], True
        elif limb and word in ("p", "r", "y"):  # letters for pitch, roll and yaw
            continue
        elif word in ("l", "r") and not side:
            side = "left" if word == "l" else "right"
        elif word.isdecimal():
            number = int(word[-_DIGITS:])
        elif word in _NO_JOINT:
            return None
        elif word not in _MOTION:
            kept.append(word)
    text = "".join(kept)
    # l or r is a side, as in lThigh
    if not side and text[:1] in ("l", "r") and (text[1:] in LIMB_WORDS or EYE.fullmatch(text[1:])):
        side, text = ("left" if text[0] == "l" else "right"), text[1:]
    return Word(side, text, number) if text else None
