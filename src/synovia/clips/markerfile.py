"""Files of motion capture markers: TRC, which is text, and C3D, which the package ``ezc3d`` reads."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.errors import FormatError
from synovia.io.base import file_rate, most_numbers, optional_package, read_bytes, read_text
from synovia.model.geometry import Array
from synovia.text import UNITS

METERS: Final = {**UNITS, "meters": 1.0, "metres": 1.0, "dm": 0.1}
# labels of computed results that C3D files store as points
DERIVED: Final = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS")

# seconds: time limit of a read; on POSIX, the processor time has a lower limit that depends on the file's size
LONGEST_READ: Final = 300.0
_LEAST: Final = 5, 2**30  # limits for any C3D file: seconds of processor time, bytes of memory
_SHARE: Final = 2.0**-18, 100  # added to these limits per byte of the file: seconds, bytes of memory


class Markers(NamedTuple):
    """Markers: names, positions (T, K, 3) with NaN for gaps, frames per second, metres per unit (None if unknown).

    The notes name parts of the file that were not kept.
    """

    names: list[str]
    positions: Array
    fps: float | None
    meters_per_unit: float | None
    notes: tuple[str, ...] = ()


def read_trc(path: Path) -> Markers:
    """Read the markers of a TRC file (Motion Analysis, OpenSim).

    Raises:
        FileError: If the file cannot be read.
        FormatError: If a line is malformed; the message names the line.
    """
    text = read_text(path)
    lines = text.splitlines()
    if len(lines) < 5 or not lines[0].startswith("PathFileType"):
        raise FormatError("is not a TRC file", where=str(path), expected="a first line with PathFileType")
    apart = "\t" if "\t" in lines[3] else ","  # some programs write commas instead of tabs
    fields = dict(zip(re.split(r"[\t, ]+", lines[1]), re.split(r"[\t, ]+", lines[2]), strict=False))
    names = [name.strip() for name in lines[3].split(apart)[2:] if name.strip()]
    if not names or not lines[3].startswith("Frame"):
        raise FormatError(
            "no markers are named", where=f"{path}, line 4", value=lines[3][:40], expected="Frame#, Time, names"
        )
    rows = [(number, line) for number, line in enumerate(lines[5:], 6) if line.split(apart)[0].strip()]
    if not rows:
        raise FormatError("file has no frames", where=str(path))
    if 3 * len(names) * len(rows) > most_numbers(len(text)):
        raise FormatError(
            "file names more markers than it has values for", where=str(path), expected="three cells for each marker"
        )
    places = np.full((len(rows), 3 * len(names)), np.nan)
    for k, (number, line) in enumerate(rows):
        cells = [cell.strip() for cell in line.split(apart)[2 : 2 + 3 * len(names)]]
        try:
            places[k, : len(cells)] = [float(cell) if cell else np.nan for cell in cells]
        except ValueError as error:
            raise FormatError(f"cell is not a number ({error})", where=f"{path}, line {number}") from None
    try:
        rate = float(fields.get("DataRate", "nan"))
    except ValueError:
        rate = float("nan")
    unit = METERS.get(fields.get("Units", "").lower())
    fps, notes = file_rate(rate, path) if rate > 0.0 else (None, ())
    return Markers(names, _gaps(places.reshape(len(rows), -1, 3)), fps, unit, notes)


def read_c3d(path: Path) -> Markers:
    """Read the labelled markers of a C3D file; analog channels, computed results and unlabelled points are ignored.

    The package runs in a separate process, because damaged files can crash it.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If it is damaged or has no labelled markers.
        MissingExtraError: If ``ezc3d`` is not installed.
    """
    if read_bytes(path)[1:2] != b"\x50":
        raise FormatError("is not a C3D file", where=str(path), expected="0x50 as its second byte")
    optional_package("ezc3d", "reading C3D needs the package ezc3d", "c3d", str(path))
    code = "import sys; from synovia.clips.markerfile import unpack_c3d; unpack_c3d(sys.argv[1])"
    paths = os.pathsep.join(part for part in sys.path if part)
    try:
        done = subprocess.run(  # noqa: S603  the interpreter itself, with fixed code
            [sys.executable, "-c", code, str(path.resolve())],
            capture_output=True, timeout=LONGEST_READ, check=False, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise FormatError("is not a readable C3D file", where=str(path), hint="it took too long to read") from error
    if done.returncode or not done.stdout:
        raise FormatError("is not a readable C3D file", where=str(path), hint="it may be damaged or cut off")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as content:
        labels, points, rate = content["labels"].tolist(), content["points"], float(content["rate"])
        unit, derived, analog = str(content["unit"]), set(content["derived"].tolist()), int(content["analog"])
    keep = [
        k
        for k, name in enumerate(labels[: points.shape[1]])
        if name and not name.startswith("*") and name not in derived
    ]
    if not keep:
        raise FormatError("no marker has a label", where=str(path), expected="labelled markers")
    places = np.moveaxis(points, 0, 2)[keep].swapaxes(0, 1)
    named = [name for name in labels[: points.shape[1]] if name and not name.startswith("*")]
    left = [
        (f"{points.shape[1] - len(named)} points without a label", points.shape[1] > len(named)),
        (f"{len(named) - len(keep)} computed results (angles, forces, ...)", len(named) > len(keep)),
        (f"{analog} analog channels", analog > 0),
    ]
    lost = ", ".join(text for text, there in left if there)
    notes = (f"Only labelled markers were read; not kept: {lost}.",) if lost else ()
    fps, said = file_rate(rate, path) if rate > 0.0 else (None, ())
    return Markers([labels[k] for k in keep], _gaps(places), fps, METERS.get(unit), notes + said)


def unpack_c3d(path: str) -> None:
    """Write the points of a C3D file to the standard output, as a NumPy archive; ``read_c3d`` calls it in a process."""
    ezc3d: Any = import_module("ezc3d")
    _limit(os.path.getsize(path))  # noqa: PTH202
    content: Any = ezc3d.c3d(path)
    point: Any = content["parameters"]["POINT"]
    labels = [str(label).strip() for key in sorted(point) if _is_labels(key) for label in point[key]["value"]]
    points = np.asarray(content["data"]["points"], np.float64)[:3]
    residuals = np.asarray(content["data"]["meta_points"]["residuals"], np.float64)[0]
    unit = str(point["UNITS"]["value"][0]).strip().lower() if "UNITS" in point and point["UNITS"]["value"] else ""
    derived = [str(name).strip() for key in DERIVED if key in point for name in point[key]["value"]]
    np.savez(
        sys.stdout.buffer, labels=np.array(labels, np.str_), points=np.where(residuals < 0.0, np.nan, points),
        rate=float(content["header"]["points"]["frame_rate"]), unit=np.array(unit),
        derived=np.array(derived, np.str_), analog=np.shape(content["data"]["analogs"])[1],
    )  # fmt: skip


def _limit(size: int) -> None:
    """Limit processor time and memory of this process by a file's size, because damaged files may need any amount."""
    try:
        resource: Any = import_module("resource")
    except ImportError:  # Windows has no such limits
        return
    spent = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    seconds = int(spent + _LEAST[0] + _SHARE[0] * size) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        memory = used + _LEAST[1] + _SHARE[1] * size
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _is_labels(key: str) -> bool:
    """Return whether a parameter holds labels of points: LABELS, LABELS2, ..."""
    return key == "LABELS" or (key.startswith("LABELS") and key[6:].isdigit())


def _gaps(places: Array) -> Array:
    """Return positions with NaN where a marker was not seen: a value is missing, or it is exactly at the origin."""
    lost = ~np.isfinite(places).all(2) | (places == 0.0).all(2)
    return np.where(lost[:, :, None], np.nan, places)
