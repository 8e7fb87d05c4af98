"""Points over time in files: comma-separated text, NumPy arrays and archives.

CSV   a first row of names: ``time`` in seconds, then ``JOINT.x``, ``JOINT.y``, ``JOINT.z`` and, where it is known,
      ``JOINT.confidence``; a cell that is empty or ``nan`` was not seen
npz   ``positions`` (T, K, 3), and where they are known ``joints`` (K,) names, ``offsets`` (K, 3), ``confidence``
      (K,) or (T, K), and ``fps``
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

from synovia.errors import FormatError, unknown_name
from synovia.io.base import read_bytes
from synovia.io.csvfile import frame_rate, numbers_of, read_table

_PARTS: Final = ("x", "y", "z", "confidence")


@dataclass(frozen=True, slots=True, eq=False)
class PointFile:
    """What a file of points says; None where it is silent. Shapes are those of ``fit_positions``, which checks them."""

    positions: Any
    joints: list[str] | None = None
    offsets: Any = None
    confidence: Any = None
    fps: float | None = None

    def chosen(self, pairs: Mapping[str, str] | None, path: Path) -> PointFile:
        """Return the points that some joints follow, given the name of its point by joint; all points for None.

        Raises:
            InputError: If there is no such point, or points without names do not match.
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
    """Return whether a file holds points; other files may hold a clip."""
    if path.suffix.lower() != ".npz":
        return path.suffix.lower() in (".csv", ".npy")
    try:
        with zipfile.ZipFile(path) as archive:
            return "positions.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False  # a reader says what is wrong with it


def read_points(path: Path) -> PointFile:
    """Return the points of a file.

    Raises:
        FileError: If it cannot be read.
        FormatError: If it is no file of points.
    """
    if path.suffix.lower() == ".csv":
        return _from_csv(path)
    data = io.BytesIO(read_bytes(path))
    try:
        loaded: Any = np.load(data, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return PointFile(_shaped({"positions": loaded}, path)["positions"])
        content = {key: loaded[key] for key in loaded.files}
    except FormatError:
        raise
    except Exception as error:  # damaged archives raise a dozen types
        raise FormatError(f"is no NumPy file ({error})", where=str(path), expected=".csv, .npz or .npy") from error
    if "positions" not in content:
        raise FormatError("archive has no positions", where=str(path), expected="an array 'positions' (T, K, 3)")
    joints = _shaped(content, path).get("joints")
    fps = content.get("fps")
    if fps is not None and (fps.ndim or fps.dtype.kind not in "fiu"):
        raise FormatError("fps is no number", where=str(path), value=fps, expected="frames per second")
    return PointFile(
        content["positions"],
        None if joints is None else [str(name) for name in joints.tolist()],
        content.get("offsets"),
        content.get("confidence"),
        None if fps is None else float(fps),
    )


def _shaped(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return arrays whose shapes fit those of the positions.

    Raises:
        FormatError: If one does not.
    """
    shape = content["positions"].shape
    if len(shape) != 3 or shape[2] != 3:
        raise FormatError(
            "positions have the wrong shape", where=str(path), value=shape, expected="(T, K, 3): frames, points, x y z"
        )
    frames, points = shape[:2]
    for name, fitting in (
        ("joints", [(points,)]),
        ("offsets", [(points, 3)]),
        ("confidence", [(points,), (frames, points)]),
    ):
        if name in content and content[name].shape not in fitting:
            raise FormatError(
                f"{name} has the wrong shape for positions of shape {shape}",
                where=str(path),
                value=content[name].shape,
                expected=" or ".join(map(str, fitting)),
            )
    return content


def _from_csv(path: Path) -> PointFile:
    """Return the points of comma-separated text; messages name the line."""
    head, rows = read_table(path, expected="time, then JOINT.x, JOINT.y, ...")
    columns: dict[str, dict[str, int]] = {}
    for at, name in enumerate(head[1:], 1):
        joint, _, part = name.rpartition(".")
        if not joint or part not in _PARTS or part in columns.get(joint, {}):
            raise FormatError(
                "column is no part of a point",
                where=f"{path}, line 1",
                value=name,
                expected="JOINT.x, .y, .z once each",
            )
        columns.setdefault(joint, {})[part] = at
    lacking = next((f"{joint}.{part}" for joint, parts in columns.items() for part in "xyz" if part not in parts), None)
    if lacking is not None or not columns:
        raise FormatError(
            "a column is missing", where=f"{path}, line 1", expected=lacking or "JOINT.x, JOINT.y, JOINT.z"
        )
    values = numbers_of(rows, len(head), path, gap=np.nan)
    places = np.stack([values[:, [parts[axis] for axis in "xyz"]] for parts in columns.values()], axis=1)
    confidence = np.stack(
        [
            values[:, parts["confidence"]] if "confidence" in parts else np.ones(len(values))
            for parts in columns.values()
        ],
        axis=1,
    )
    return PointFile(places, list(columns), None, confidence, frame_rate(values[:, 0], path))
