"""Files of points over time: comma-separated text, NumPy arrays and archives.

CSV   a first row of names: ``time`` in seconds, then ``JOINT.x``, ``JOINT.y``, ``JOINT.z`` and, optionally,
      ``JOINT.confidence``; an empty cell or ``nan`` means that the point was not seen
npz   ``positions`` (T, K, 3), and optionally ``joints`` (K,) names, ``offsets`` (K, 3), ``confidence`` (K,) or (T, K),
      and ``fps``
npy   positions (T, K, 3) of all joints of the skeleton, in its order
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError, unknown_name
from synovia.io.base import read_bytes
from synovia.io.csvfile import frame_rate, read_table
from synovia.io.npz import read_array, read_arrays, texts_of

_SHAPE: Final = "(T, K, 3): frames, points, x y z"
_ARRAY: Final = b"\x93NUMPY"
_PARTS: Final = ("x", "y", "z", "confidence")


@dataclass(frozen=True, slots=True, eq=False)
class PointFile:
    """The contents of a file of points; None for missing parts. ``fit_positions`` checks the shapes."""

    positions: Any
    joints: list[str] | None = None
    offsets: Any = None
    confidence: Any = None
    fps: float | None = None

    def chosen(self, pairs: Mapping[str, str] | None, path: Path) -> PointFile:
        """Return the points for some joints.

        Args:
            pairs: Name of the point, by joint; None for all points.
            path: The file, for messages.

        Raises:
            UnknownNameError: If the file has no such point.
        """
        if pairs is None:
            return self
        if self.joints is None:
            return replace(self, joints=list(pairs))
        known = self.joints
        for name in pairs.values():
            if name not in known:
                raise unknown_name("point", name, known, str(path))
        wanted = set(pairs.values())
        own = {other: joint for joint, other in pairs.items()}
        at = [k for k, name in enumerate(known) if name in wanted]
        confidence = None if self.confidence is None else np.asarray(self.confidence)[..., at]
        offsets = None if self.offsets is None else np.asarray(self.offsets)[at]
        places = np.asarray(self.positions)[:, at]
        return PointFile(places, [own[known[k]] for k in at], offsets, confidence, self.fps)


def holds_points(path: Path) -> bool:
    """Return whether a file holds points; another file may hold a clip."""
    if path.suffix.lower() != ".npz":
        return path.suffix.lower() in (".csv", ".npy")
    try:
        if not path.is_file():  # a pipe would never end
            return False
        with zipfile.ZipFile(path) as archive:
            return "positions.npy" in archive.namelist()
    except Exception:  # noqa: BLE001  damaged archives raise a dozen exception types; a reader reports the error
        return False


def read_points(path: Path) -> PointFile:
    """Read the points of a file.

    Raises:
        FileError: If it cannot be read.
        FormatError: If it is not a file of points.
    """
    if path.suffix.lower() == ".csv":
        return _from_csv(path)
    data = read_bytes(path)
    if data.startswith(_ARRAY):
        try:
            positions = read_array(io.BytesIO(data), str(path), len(data))
        except FormatError:
            raise
        except Exception as error:  # damaged headers raise a dozen exception types
            raise FormatError(f"is not a NumPy file ({error})", where=str(path), expected="an array as .npy") from error
        _check_shapes({"positions": positions}, path)
        return PointFile(positions)
    content = read_arrays(path, ("positions", "joints", "offsets", "confidence", "fps"), ".csv, .npz or .npy")
    if "positions" not in content:
        raise FormatError("archive has no positions", where=str(path), expected="an array 'positions' (T, K, 3)")
    _check_shapes(content, path)
    names = texts_of(content["joints"]) if "joints" in content else None
    if names is None and "joints" in content:
        raise FormatError("a joint name is not text", where=str(path), expected="joints (K,) as texts")
    rate = content.get("fps")
    return PointFile(
        content["positions"],
        names,
        content.get("offsets"),
        content.get("confidence"),
        None if rate is None else float(rate),
    )


def _check_shapes(content: dict[str, NDArray[Any]], path: Path) -> None:
    """Refuse arrays with contradictory shapes."""
    shape = content["positions"].shape
    if len(shape) != 3 or shape[2] != 3:
        raise FormatError("positions have the wrong shape", where=str(path), value=shape, expected=_SHAPE)
    allowed = {
        "joints": (shape[1:2],), "offsets": ((shape[1], 3),), "confidence": (shape[1:2], shape[:2]), "fps": ((),)
    }  # fmt: skip
    for name, array in content.items():
        if array.shape not in allowed.get(name, (shape,)) or (array.dtype.kind not in "fiu") == (name != "joints"):
            raise FormatError(
                f"{name} has the wrong shape or type for positions of shape {shape}",
                where=str(path),
                value=f"{array.dtype} {array.shape}",
                expected=f"{'texts' if name == 'joints' else 'numbers'} {' or '.join(map(str, allowed[name]))}"
                if name in allowed
                else "numbers (T, K, 3)",
            )


def _from_csv(path: Path) -> PointFile:
    """Read the points of comma-separated text; error messages name the line."""
    columns: dict[str, dict[str, int]] = {}  # of each point by its name: the column of each part

    def check(head: list[str], place: str) -> None:
        for at, name in enumerate(head[1:], 1):
            joint, _, part = name.rpartition(".")
            if not joint or part not in _PARTS or part in columns.get(joint, {}):
                what = "column does not belong to a point"
                raise FormatError(what, where=place, value=name, expected="JOINT.x, .y, .z once each")
            columns.setdefault(joint, {})[part] = at
        missing = [f"{joint}.{part}" for joint, parts in columns.items() for part in "xyz" if part not in parts]
        if missing or not columns:
            expected = missing[0] if missing else "JOINT.x, JOINT.y, JOINT.z"
            raise FormatError("a column is missing", where=place, expected=expected)

    _, values = read_table(path, check, expected="time, then JOINT.x, JOINT.y, ...", gap=np.nan)
    places = np.stack([values[:, [parts[axis] for axis in "xyz"]] for parts in columns.values()], axis=1)
    confidence = np.stack(
        [
            values[:, parts["confidence"]] if "confidence" in parts else np.ones(len(values))
            for parts in columns.values()
        ],
        axis=1,
    )
    return PointFile(places, list(columns), None, confidence, frame_rate(values[:, 0], path))
