"""Capsules around the surface of a bundled model, written into its file.

A body with a left and a right side gets mirrored capsules. Its surface counts together with its mirror image. The left
side is fitted and mirrored. A joint of the middle has one capsule, or some around the left half and their mirror
images, unless others stand out much less.
"""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

import synovia as sy
from synovia.covers.fit import MOST, OVERHANG, fit_capsules
from synovia.covers.measure import measured
from synovia.covers.skin import Skin, skin_of
from synovia.surface import surface_of_skeleton

DIGITS = 4  # of a metre
STEP = 10.0**-DIGITS
ALIKE = 1.2  # overhangs that differ less: fewer capsules, or mirrored ones, are better
MIRROR = np.array((-1.0, 1.0, 1.0))


def write_capsules(path: Path) -> sy.Skeleton:
    """Write capsules around the surface of a model into its file, in place of those there; return the model."""
    path.write_text(_without(path.read_text(encoding="utf-8")), encoding="utf-8")
    body = sy.load_skeleton(path)
    skin = skin_of(surface_of_skeleton(body), body)
    two_sided = any(name.startswith("left_") for name in body.joint_names)
    found = _mirrored(skin, body) if two_sided else fit_capsules(skin, OVERHANG * skin.extent)
    blocks = {
        body.joint_names[row]: "shapes = [\n" + "".join(map(_line, shapes)) + "]\n" for row, shapes in found.items()
    }
    path.write_text(_with(path.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    return sy.load_skeleton(path)


def _mirrored(skin: Skin, body: sy.Skeleton) -> dict[int, list[sy.Capsule]]:
    """Return the capsules of a body with two sides, by row, in the frame of the joint."""
    names = list(body.joint_names)
    other = np.array([names.index(_swapped(name)) for name in names])
    count, overhang = len(names), OVERHANG * skin.extent
    corners = np.concatenate([skin.corners, (skin.corners * MIRROR)[:, ::-1]])
    rows = np.concatenate([skin.rows, other[skin.rows]])
    middle = [row for row in range(count) if other[row] == row]
    right = np.isin(rows, middle) & (corners[:, :, 0].mean(axis=1) < 0.0)
    halves = Skin(corners, np.where(right, rows + count, rows), np.concatenate([skin.frames, skin.frames]))
    both = Skin(corners, rows, skin.frames)
    found = fit_capsules(both, overhang)
    half = fit_capsules(halves, overhang, MOST // 2)
    for row, name in enumerate(names):
        if row in found and name.startswith("right_"):
            found[row] = _reflected(found[other[row]], skin.frames[other[row]], skin.frames[row])
        if row in found and row in half and row in middle:
            half[row] = half[row] + _reflected(half[row], skin.frames[row], skin.frames[row])
    single = fit_capsules(both, overhang, 1)
    kinds = [{**found, **{row: kind[row] for row in middle if row in found}} for kind in (single, half, found)]
    fits = [measured(skin, body.with_joints(_with_shapes(body, kind)), 20_000, 0).links for kind in kinds]
    for row in middle:
        if row in found:
            one, two, many = (fit[body.link_key(row)].overhang for fit in fits)
            found[row] = (single if one <= ALIKE * min(two, many) else half if two <= ALIKE * many else found)[row]
    return found


def _with_shapes(body: sy.Skeleton, shapes: dict[int, list[sy.Capsule]]) -> list[sy.Joint]:
    """Return the joints of a body with shapes by row."""
    return [replace(joint, shapes=shapes.get(row, ())) for row, joint in enumerate(body.joints)]


def _swapped(name: str) -> str:
    """Return the name of the joint on the other side."""
    side, _, rest = name.partition("_")
    return {"left": f"right_{rest}", "right": f"left_{rest}"}.get(side, name)


def _reflected(shapes: list[sy.Capsule], frame: np.ndarray, onto: np.ndarray) -> list[sy.Capsule]:
    """Return the mirror images of capsules in one frame, in another frame."""
    placed = [shape.moved(frame) for shape in shapes]
    images = [sy.Capsule(a=MIRROR * shape.a, b=MIRROR * shape.b, radius=shape.radius) for shape in placed]
    return [image.moved(np.linalg.inv(onto)) for image in images]


def _line(shape: sy.Capsule) -> str:
    """Return a capsule as a line; its radius has room for what rounding takes."""
    a, b = (", ".join(f"{round(float(x), DIGITS) + 0.0:g}" for x in end) for end in (shape.a, shape.b))
    radius = STEP * math.ceil((shape.radius + math.sqrt(3.0) * STEP / 2.0) / STEP)
    return f'    {{ kind = "capsule", a = [{a}], b = [{b}], radius = {radius:.{DIGITS}f} }},\n'


def _without(text: str) -> str:
    """Return the text of a model without its shapes."""
    return re.sub(r"^shapes = \[\n(?: .*\n)*\]\n", "", text, flags=re.MULTILINE)


def _with(text: str, blocks: dict[str, str]) -> str:
    """Return the text of a model with shapes at the end of the tables of joints, by name."""
    parts = re.split(r"^(?=\[\[joint\]\]\n)", text, flags=re.MULTILINE)
    for number, part in enumerate(parts):
        name = re.search(r'^name = "(.*)"$', part, flags=re.MULTILINE)
        table = re.match(r"\[\[joint\]\]\n(?:[^\n#]+\n)+", part)
        if name is not None and table is not None and name.group(1) in blocks:
            parts[number] = part[: table.end()] + blocks[name.group(1)] + part[table.end() :]
    return "".join(parts)
