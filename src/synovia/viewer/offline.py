"""Write a motion as one HTML file that plays it without a network: scrub, play, turn and zoom."""

from __future__ import annotations

import base64
import json
import os
from importlib.resources import files
from typing import Any

import numpy as np

from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.draw.theme import THEMES
from synovia.io.base import as_path, write_bytes
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.viewer.bodies import ahead_of, build


def write_page(
    motion: Motion, path: str | os.PathLike[str], *, targets: Array | None = None, force: bool = False
) -> None:
    """Write a motion as one HTML file that needs neither a network nor Synovia.

    Args:
        motion: The motion.
        path: The file, usually with the extension ``.html``.
        targets: World positions to mark, (k, 3), length units.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    write_bytes(as_path(path), page_text(motion, targets).encode(), force=force)


def page_text(motion: Motion, targets: Array | None = None) -> str:
    """Return the text of the page."""
    skeleton, theme = motion.skeleton, THEMES["light"]
    shape = build(skeleton, theme, 1.0)
    positions = motion.positions()
    shown = positions[:, shape.joints]
    low, high = shown.min(axis=(0, 1)), shown.max(axis=(0, 1))
    up = direction(up_of(skeleton), "y")
    first = shown[0]
    size = max(float(np.linalg.norm(np.ptp(first, axis=0))), 0.6 * float(np.linalg.norm(high - low))) or 1.0
    round_of = dict(zip(shape.joints.tolist(), shape.round.tolist(), strict=True))
    bones = [
        [parent, row, thick, 0.62 * thick, *colour]
        for parent, row, thick, colour in zip(
            shape.parents.tolist(), shape.bones.tolist(), shape.thick.tolist(), shape.bone_colours.tolist(), strict=True
        )
    ]
    balls = [
        [row, round_of[row], *colour]
        for row, colour in zip(shape.joints.tolist(), shape.joint_colours.tolist(), strict=True)
    ]
    content: dict[str, Any] = {
        "name": f"{skeleton.name}: {motion.name}",
        "fps": motion.fps,
        "frames": len(motion),
        "joints": len(skeleton),
        "up": up.tolist(),
        "ahead": ahead_of(skeleton).tolist(),
        "middle": ((low + high) / 2.0).tolist(),
        "size": size,
        "floor": float((shown @ up).min()) - 0.01 * size,
        "bones": bones,
        "balls": balls,
        "targets": [] if targets is None else [[*place.tolist(), *theme.reached] for place in targets],
        "positions": base64.b64encode(positions.astype("<f4").tobytes()).decode(),
    }
    text = json.dumps(content, allow_nan=False)
    for sign in "<>&\u2028\u2029":  # so that a name from a file cannot end the script
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    page = files("synovia.viewer").joinpath("offline.html").read_text(encoding="utf-8")
    return page.replace("/*DATA*/", text)
