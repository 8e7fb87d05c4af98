"""The fingers of the bundled humanoid: where they are at rest, and the joints of ``humanoid_hands``.

``python packaging/bodies humanoid_hands`` writes humanoid_hands.toml: the joints of humanoid.toml, and after them those
of the fingers. So the first joints of both models are the same.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from field import turned

# Finger, knuckle x and z from the wrist, length (metres), radius, spread (degrees)
FINGERS = (
    ("index", 0.090, 0.0300, 0.079, 0.0092, 5.0),
    ("middle", 0.094, 0.0098, 0.087, 0.0095, 1.0),
    ("ring", 0.091, -0.0105, 0.081, 0.0091, -3.5),
    ("little", 0.083, -0.0290, 0.063, 0.0080, -8.0),
)
SHARES = (0.45, 0.30, 0.25)  # of the bones in the length of a finger
FLEXION = ((-15, 90), (0, 105), (0, 75))  # ranges of motion of adults, rounded, degrees
TOWARDS = np.array((0.15, -0.55, -0.82))  # where the thumb's tip goes when the thumb bends


@dataclass(frozen=True)
class Finger:
    """A finger of the left hand at rest: four points from the knuckle to the tip, and the axis about which it bends."""

    name: str
    points: np.ndarray  # (4, 3), metres
    radii: tuple[tuple[float, float], ...]  # of each bone at its start and end, metres
    axis: np.ndarray  # (3, 3), of each joint


def fingers(wrist: np.ndarray) -> list[Finger]:
    """Return the four fingers, which curl a little downwards, and the thumb."""
    out: list[Finger] = []
    for k, (name, x, z, length, radius, spread) in enumerate(FINGERS):
        points, bend = [wrist + (x, -0.003, z)], 3.0 + 2.0 * k
        for share in SHARES:
            points.append(points[-1] + turned(0, -spread, 0) @ turned(0, 0, -bend) @ (share * length, 0.0, 0.0))
            bend += 8.0 + 2.0 * k
        axis = turned(0, -spread, 0) @ (0.0, 0.0, -1.0)
        thick = [radius * (1.0 - 0.09 * part) for part in range(3)]
        out.append(Finger(name, np.array(points), tuple((r, 0.93 * r) for r in thick), np.tile(axis, (3, 1))))
    base = wrist + (0.022, -0.008, 0.028)
    end = base + (0.056, -0.013, 0.038)
    thumb = np.array([base, base + (0.03, -0.008, 0.027), end, end + (0.022, -0.005, 0.004)])
    axes = np.array([np.cross(b - a, TOWARDS) for a, b in pairwise(thumb)])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return [*out, Finger("thumb", thumb, ((0.0135, 0.0112), (0.0112, 0.0102), (0.0102, 0.0086)), axes)]


def joints_text(wrists: dict[str, np.ndarray]) -> str:
    """Return the joints of the fingers as they stand in the file, for the wrist of each side, the left one first."""
    parts: list[str] = []
    for side, wrist in wrists.items():
        flip = np.array((-1.0, 1.0, 1.0)) if side == "right" else np.ones(3)
        parts.append(f"# --- fingers of the {side} hand: bending towards the palm is positive {'-' * 60}"[:120])
        for finger in fingers(wrist * flip):
            above, start = f"{side}_hand", wrist * flip
            for number, point in enumerate(finger.points[:3]):
                name = f"{side}_{finger.name}_{number + 1}"
                whole = finger.name == "thumb" and number == 0
                kind = _ball(finger, side, flip) if whole else _hinge(finger, number, flip)
                lines = [f'name = "{name}"', f'role = "{name}"', f'parent = "{above}"', *kind]
                lines.insert(4, f"position = {_row((point - start) * flip)}")
                parts.append("\n".join(["[[joint]]", *lines, "stiffness = 0.02"]))
                above, start = name, point
            tip = [f'name = "{side}_{finger.name}_tip"', f'parent = "{above}"', 'kind = "fixed"', "tip = true"]
            parts.append("\n".join(["[[joint]]", *tip, f"position = {_row((finger.points[3] - start) * flip)}"]))
    return "\n\n".join(parts) + "\n"


def _hinge(finger: Finger, number: int, flip: np.ndarray) -> list[str]:
    low, high = ((0, 55), (0, 75))[number - 1] if finger.name == "thumb" else FLEXION[number]
    turn = -flip if flip[0] < 0.0 else flip  # an axis of rotation is mirrored the other way
    return ['kind = "hinge"', f"axis = {_row(finger.axis[number] * turn)}", f"limit_deg = [{low}, {high}]",
            "preferred_deg = 0"]  # fmt: skip


def _ball(finger: Finger, side: str, flip: np.ndarray) -> list[str]:
    bone, turn = finger.points[1] - finger.points[0], -flip if flip[0] < 0.0 else flip
    swing, twist = ((-20, 25), (-10, 30)) if side == "left" else ((-25, 20), (-30, 10))
    return ['kind = "ball"', f"bone = {_row(bone / np.linalg.norm(bone) * flip)}",
            f"x_axis = {_row(finger.axis[0] * turn)}", "swing_x_deg = [-15, 50]",
            f"swing_y_deg = [{swing[0]}, {swing[1]}]", f"twist_deg = [{twist[0]}, {twist[1]}]"]  # fmt: skip


def _row(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{value + 0.0:.9g}" for value in values.round(9)) + "]"
