"""Files of points over time: comma-separated text, NumPy arrays and archives, and files of markers.

CSV   a wide or long table (``pointtable``)
npz   ``positions`` (T, K, 3), and optionally ``joints`` (K,) names, ``offsets`` (K, 3), ``confidence`` (K,) or (T, K),
      and ``fps``; or a single array as in npy; ``joints`` may be the positions themselves, as in files of a hand
npy   positions (T, K, 3), or (T, K, 4) with confidence, of landmarks in the order of a preset or of all joints of the
      skeleton in its order
TRC, C3D   markers (``markerfile``)
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.markerfile import read_c3d, read_trc
from synovia.clips.pointtable import read_point_table
from synovia.errors import FormatError, unknown_name
from synovia.io.base import file_rate, read_bytes
from synovia.io.npz import read_arrays, read_npy, texts_of, unread_notes

_SHAPE: Final = "(T, K, 3): frames, points, x y z"
_ARRAY: Final = b"\x93NUMPY"
POINT_ENDINGS: Final = (".csv", ".tsv", ".npz", ".npy", ".trc", ".c3d")
_OPTIONAL: Final = ("joints", "offsets", "confidence", "fps")
_NAMES: Final = ("positions", "keypoints", "landmarks", "points", "arr_0")  # names of the array of points in an archive


@dataclass(frozen=True, slots=True, eq=False)
class PointFile:
    """The contents of a file of points. Attributes are None if the file lacks them; ``fit_positions`` checks shapes.

    ``notes`` are sentences about contents of the file that were not kept.
    """

    positions: Any
    joints: list[str] | None = None
    offsets: Any = None
    confidence: Any = None
    fps: float | None = None
    meters_per_unit: float | None = None
    notes: tuple[str, ...] = ()

    def chosen(self, pairs: Mapping[str, str] | None, path: Path) -> PointFile:
        """Return the points of given joints.

        Args:
            pairs: For each joint, the name of its point; None for all points.
            path: The file, for messages.

        Raises:
            UnknownNameError: If the file has no such point.
        """
        if pairs is None:
            return self
        if self.joints is None:
            return replace(self, joints=list(pairs))
        for name in pairs.values():
            if name not in self.joints:
                raise unknown_name("point", name, self.joints, str(path))
        chosen = [(k, joint) for k, name in enumerate(self.joints) for joint, own in pairs.items() if own == name]
        at = [k for k, _ in chosen]
        return replace(
            self,
            positions=np.asarray(self.positions)[:, at],
            joints=[joint for _, joint in chosen],
            offsets=None if self.offsets is None else np.asarray(self.offsets)[at],
            confidence=None if self.confidence is None else np.asarray(self.confidence)[..., at],
        )


def holds_points(path: Path) -> bool:
    """Return whether a file holds points over time, and not a clip."""
    if path.suffix.lower() != ".npz":
        return path.suffix.lower() in POINT_ENDINGS
    try:
        if not path.is_file():  # reading from a pipe would never end
            return False
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            return any(f"{name}.npy" in names for name in _NAMES) or ("joints.npy" in names and "q.npy" not in names)
    except Exception:  # noqa: BLE001  damaged archives raise a dozen exception types; the reader reports the error
        return False


def read_points(path: Path) -> PointFile:
    """Read the points of a file.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file does not contain points.
    """
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        table = read_point_table(path)
        return PointFile(table.positions, table.names, None, table.confidence, table.fps, notes=tuple(table.notes))
    if ending in (".trc", ".c3d"):
        markers = read_trc(path) if ending == ".trc" else read_c3d(path)
        return PointFile(
            markers.positions,
            markers.names,
            fps=markers.fps,
            meters_per_unit=markers.meters_per_unit,
            notes=markers.notes,
        )
    if read_bytes(path)[: len(_ARRAY)] == _ARRAY:
        content, notes = {"positions": read_npy(path)}, list[str]()
    else:
        content = read_arrays(path, (*_NAMES, *_OPTIONAL), ".csv, .npz or .npy")
        first = next((name for name in _NAMES if name in content), None)
        if first is None and "joints" in content and content["joints"].dtype.kind in "fiu":
            first, content["positions"] = "positions", content.pop("joints")
        if first is None:
            raise FormatError("archive has no positions", where=str(path), expected=f"an array 'positions' {_SHAPE}")
        content = {"positions": content[first]} | {k: v for k, v in content.items() if k not in _NAMES}
        notes = unread_notes(path, (first, *_OPTIONAL))
    content = _with_confidence(content)
    _check_shapes(content, path)
    names = texts_of(content["joints"]) if "joints" in content else None
    if names is None and "joints" in content:
        raise FormatError("a joint name is not text", where=str(path), expected="joints (K,) as texts")
    fps, said = (None, ()) if "fps" not in content else file_rate(float(content["fps"]), path)
    return PointFile(
        content["positions"],
        names,
        content.get("offsets"),
        content.get("confidence"),
        fps,
        notes=(*notes, *said),
    )


def _with_confidence(content: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return arrays in which the fourth column of positions, (T, K, 4), has become the confidence."""
    positions = content["positions"]
    if positions.ndim != 3 or positions.shape[2] != 4 or "confidence" in content:
        return content
    return {**content, "positions": positions[..., :3], "confidence": positions[..., 3]}


def _check_shapes(content: dict[str, NDArray[Any]], path: Path) -> None:
    """Check that the shapes of the arrays fit each other."""
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
