"""Files of a recorded hand: 21 points over time, as detectors and data sets store them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.pointfile import POINT_ENDINGS, read_points
from synovia.errors import FormatError, SynoviaError
from synovia.io.base import file_rate
from synovia.io.npz import read_arrays, read_npy, texts_of, unread_notes
from synovia.model.anatomy.hands.landmarks import COUNT
from synovia.model.rates import Rate
from synovia.text import listed

HAND_ENDINGS: Final = (".npz", ".npy", ".csv", ".tsv")
FPS: Final = 30.0  # frames per second of a file without a rate
_NAMES: Final = ("joints", "points", "landmarks", "keypoints", "positions", "hand", "arr_0")
_SHAPE: Final = f"(T, {COUNT}, 3) or (T, {3 * COUNT})"
_OTHERS: Final = "for other points, synovia animate --points fits a body"
_CLIP: Final = frozenset({"schema", "q", "skeleton"})  # names of arrays in the archive of a clip, not of a hand
_MOST: Final = 16  # largest number of arrays that are read from an archive
_DIMENSIONS: Final = 3  # dimensions of an array (T, K, 3), and also the size of its last dimension
_OPTIONAL: Final = ("confidence", "fps", "side")
_ARCHIVE: Final = ".npz with an array (T, 21, 3)"
# Most values in an archive: a fixed number (over four minutes at 30 frames per second) plus a number per file byte
_ROOM: Final = (2**19, 2)


@dataclass(frozen=True, slots=True, eq=False)
class HandFile:
    """The contents of a file of a hand. Attributes are None if the file lacks them.

    Attributes:
        points: Positions of the points, (T, 21, 3).
        confidence: Confidence of each point, (T, 21), or of each frame, (T,).
        fps: Frames per second.
        side: ``"left"`` or ``"right"``.
        notes: Sentences about parts of the file that were not kept.
    """

    points: Any
    confidence: Any = None
    fps: float | None = None
    side: str | None = None
    notes: tuple[str, ...] = ()


def holds_hand(path: Path) -> bool:
    """Return whether a file holds 21 points of a hand, or points over time that only ``read_hand`` can report on."""
    if path.suffix.lower() not in HAND_ENDINGS:
        return False
    try:
        if not path.is_file():  # reading from a pipe would never end
            return False
        read_hand(path)
    except (SynoviaError, OSError):  # for example, the name is too long; the reader of the file reports the error
        return _has_points(path)
    return True


def _has_points(path: Path) -> bool:
    """Return whether a file that is not a hand holds points over time; ``read_hand`` can then say what is wrong."""
    if path.suffix.lower() == ".npy":
        return True
    try:
        names = _names_in(path) if path.suffix.lower() == ".npz" else []
        content = {} if _CLIP & set(names) else read_arrays(path, names[:_MOST], "", _ROOM)
    except (SynoviaError, OSError):
        return False
    return any(one.ndim == _DIMENSIONS and one.shape[-1] == _DIMENSIONS for one in content.values())


def read_hand(path: Path) -> HandFile:
    """Read the points of a hand: an array (T, 21, 3) of an archive, or other files with ``read_points``.

    The array of an archive is called ``joints``, ``points``, ``landmarks``, ``keypoints`` or ``positions``, or it is
    the only array of this shape. The archive may also have ``confidence``, ``fps`` and ``side``. An array may also have
    one row per frame, (T, 63).

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file does not hold 21 points.
    """
    if path.suffix.lower() == ".npz":
        content = read_arrays(path, (*_NAMES, *_OPTIONAL), _ARCHIVE, _ROOM)
        fitting = [name for name in _NAMES if name in content and _fits(content[name])]
        if not fitting:
            others = [name for name in _names_in(path) if name not in content][:_MOST]
            content |= read_arrays(path, others, _ARCHIVE, _ROOM)
            fitting = [name for name in others if _fits(content[name])]
        if len(fitting) != 1 and not set(fitting) & set(_NAMES):
            shapes = {name: one.shape for name, one in content.items() if name not in _OPTIONAL}
            problem = "archive has several arrays that may be a hand" if fitting else "archive has no points of a hand"
            raise FormatError(
                problem, where=str(path), value=shapes or None, hint=_OTHERS,
                expected=f"an array {_SHAPE}, called {listed([*_NAMES[:-2]])}, or the only one of this shape",
            )  # fmt: skip
        notes = unread_notes(path, (fitting[0], *_OPTIONAL))
        rate = _rate(content, path)
        if rate is not None:
            notes += rate.notes
        confidence = content.get("confidence")
        if confidence is not None and confidence.dtype.kind not in "bfiu":
            raise FormatError("confidence cannot be used", where=str(path), value=confidence.dtype, expected="numbers")
        fps = None if rate is None else rate.fps
        return HandFile(_points(content[fitting[0]]), confidence, fps, _side(content, path), tuple(notes))
    if path.suffix.lower() not in POINT_ENDINGS:
        raise FormatError("is not a file of points", where=str(path), expected=", ".join(HAND_ENDINGS))
    if path.suffix.lower() == ".npy" and _fits(flat := read_npy(path)):
        return HandFile(_points(flat))
    found = read_points(path)
    if not _fits(found.positions):
        raise FormatError(
            "does not hold a hand", where=str(path), value=np.shape(found.positions), expected=f"points {_SHAPE}",
            hint=_OTHERS,
        )  # fmt: skip
    return HandFile(_points(found.positions), found.confidence, found.fps, notes=found.notes)


def _names_in(path: Path) -> list[str]:
    """Return the names of the arrays of an archive; none if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [entry.removesuffix(".npy") for entry in archive.namelist() if entry.endswith(".npy")]
    except Exception:  # noqa: BLE001  damaged archives raise a dozen exception types
        return []


def _rate(content: Mapping[str, NDArray[Any]], path: Path) -> Rate | None:
    """Return the frame rate that an archive stores; None if it stores none."""
    rate = content.get("fps")
    if rate is None:
        return None
    if rate.size != 1 or rate.dtype.kind not in "fiu":
        raise FormatError("fps cannot be used", where=str(path), value=rate, expected="one number")
    return file_rate(float(rate.reshape(-1)[0]), path)


def _side(content: Mapping[str, NDArray[Any]], path: Path) -> str | None:
    """Return the side of the hand that an archive stores; None if it stores none."""
    if "side" not in content:
        return None
    found = texts_of(content["side"])
    if found not in (["left"], ["right"]):
        raise FormatError("side cannot be used", where=str(path), value=content["side"], expected="'left' or 'right'")
    return found[0]


def _points(array: Any) -> Any:
    """Return points as an array of floats, (T, 21, 3)."""
    return np.asarray(array, np.float64).reshape(-1, COUNT, 3)


def _fits(array: Any) -> bool:
    """Return whether an array holds 21 points over time, with one row per point or per frame."""
    found = np.asarray(array)
    shapes = found.shape[1:] in ((COUNT, 3), (3 * COUNT,))
    return shapes and found.ndim > 1 and found.dtype.kind in "fiu"
