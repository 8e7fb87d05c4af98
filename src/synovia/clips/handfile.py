"""Files of a recorded hand: 21 points over time, as detectors and data sets store them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.clips.pointfile import POINT_ENDINGS, read_points
from synovia.errors import FormatError, SynoviaError
from synovia.io.npz import read_arrays, unread_notes
from synovia.model.anatomy.hands.landmarks import COUNT

HAND_ENDINGS: Final = (".npz", ".npy", ".csv", ".tsv")
FPS: Final = 30.0  # of a file without a rate
_NAMES: Final = ("joints", "points", "landmarks", "keypoints", "positions", "hand", "arr_0")
_BESIDE: Final = ("confidence", "fps", "side")


@dataclass(frozen=True, slots=True, eq=False)
class HandFile:
    """The contents of a file of a hand; None for missing parts.

    Attributes:
        points: (T, 21, 3).
        confidence: (T, 21) or (T,).
        fps: Frames per second.
        side: ``"left"`` or ``"right"``.
        notes: What of the file was not kept.
    """

    points: Any
    confidence: Any = None
    fps: float | None = None
    side: str | None = None
    notes: tuple[str, ...] = ()


def holds_hand(path: Path) -> bool:
    """Return whether a file holds 21 points of a hand."""
    if path.suffix.lower() not in HAND_ENDINGS:
        return False
    try:
        if not path.is_file():  # a pipe would never end
            return False
        read_hand(path)
    except (SynoviaError, OSError):  # such as a name that is too long; who reads the file reports it
        return False
    return True


def read_hand(path: Path) -> HandFile:
    """Read the points of a hand: an archive with an array (T, 21, 3), or what ``read_points`` reads, of 21 points.

    In an archive, the array is called ``joints``, ``points``, ``landmarks``, ``keypoints`` or ``positions``, and
    ``confidence``, ``fps`` and ``side`` may be beside it.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it does not hold 21 points.
    """
    if path.suffix.lower() == ".npz":
        content = read_arrays(path, (*_NAMES, *_BESIDE), ".npz with an array (T, 21, 3)")
        fitting = [name for name in _NAMES if name in content and _fits(content[name])]
        if not fitting:
            shapes = {name: content[name].shape for name in _NAMES if name in content}
            raise FormatError(
                "archive has no points of a hand", where=str(path), value=shapes or None,
                expected=f"an array of shape (T, {COUNT}, 3), such as 'joints'",
            )  # fmt: skip
        rate = content.get("fps")
        fps = None if rate is None else float(np.asarray(rate).reshape(-1)[0])
        if fps is not None and not 0.0 < fps < math.inf:
            raise FormatError("fps cannot be used", where=str(path), value=fps, expected="frames per second above 0")
        side = content.get("side")
        notes = unread_notes(path, (fitting[0], *_BESIDE))
        return HandFile(
            content[fitting[0]], content.get("confidence"), fps, None if side is None else str(np.asarray(side).item()),
            tuple(notes),
        )  # fmt: skip
    if path.suffix.lower() not in POINT_ENDINGS:
        raise FormatError("is no file of points", where=str(path), expected=", ".join(HAND_ENDINGS))
    found = read_points(path)
    if not _fits(found.positions):
        raise FormatError(
            "does not hold a hand", where=str(path), value=np.shape(found.positions), expected=f"(T, {COUNT}, 3) points"
        )
    return HandFile(found.positions, found.confidence, found.fps, notes=found.notes)


def _fits(array: Any) -> bool:
    """Return whether an array holds 21 points over time."""
    found = np.asarray(array)
    return found.ndim == 3 and found.shape[1:] == (COUNT, 3) and found.dtype.kind == "f"
