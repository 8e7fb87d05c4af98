"""Motion capture markers: files (TRC, which is text; C3D, read by ``ezc3d``), and joint centres from skin markers.

Hip joints lie behind and below the pelvis markers, at fixed fractions of the pelvis width. Knees, ankles and elbows lie
between their two markers. If there is only the outer marker, they lie half a joint's width inwards from it.

References:
    Bell, Pedersen, Brand (1990), *A comparison of the accuracy of several hip center location prediction methods*.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.clips.landmarks import SIDES, Landmarks
from synovia.errors import FormatError
from synovia.io.base import file_rate, most_numbers, optional_package, read_bytes, read_text
from synovia.model.geometry import Array, unit
from synovia.text import UNITS

METERS: Final = {**UNITS, "meters": 1.0, "metres": 1.0, "dm": 0.1}
# labels of computed results that C3D files store as points
DERIVED: Final = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS")

# seconds: time limit of a read; on POSIX, a lower limit on processor time depends on the file's size
LONGEST_READ: Final = 300.0
_LEAST: Final = 5, 2**30  # limits for a C3D file of any size: seconds of processor time, bytes of memory
_SHARE: Final = 2.0**-18, 100  # additions to ``_LEAST`` for each byte of the file: seconds, bytes of memory


class Markers(NamedTuple):
    """Markers: names, positions (T, K, 3) with NaN for gaps, frames per second, metres per unit (None if unknown).

    The notes name contents of the file that were not kept.
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

    ``ezc3d`` runs in a separate process, because damaged files can crash it.

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
    """Write the points of a C3D file to standard output as a NumPy archive; ``read_c3d`` runs this in a process."""
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
    """Limit this process's time and memory for a file of ``size`` bytes, because damaged files may need any amount."""
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
    """Return whether the name of a parameter is that of point labels: LABELS, LABELS2, ..."""
    return key == "LABELS" or (key.startswith("LABELS") and key[6:].isdigit())


def _gaps(places: Array) -> Array:
    """Return positions with NaN in gaps, where values are missing or the marker is exactly at the origin."""
    lost = ~np.isfinite(places).all(2) | (places == 0.0).all(2)
    return np.where(lost[:, :, None], np.nan, places)


# names of markers in capitals without punctuation, "*" for L or R; if a file has several of them, the first counts
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "front": ("*ASI", "*ASIS"), "back": ("*PSI", "*PSIS", "SACR", "SACRAL", "VSACRAL"),
    "knee": ("*KNE", "*KNEELAT", "*KNEE", "*LKNE"), "inner_knee": ("*KNM", "*KNEM", "*KNEEMED", "*MKNE"),
    "ankle": ("*ANK", "*ANKLELAT", "*ANKLE"), "inner_ankle": ("*MED", "*ANM", "*ANKM", "*ANKLEMED", "*MANK"),
    "toe": ("*TOE", "*TOETIP", "*TOEMID", "*MT2"), "heel": ("*HEE", "*HEEL"),
    "shoulder": ("*SHO", "*SHOULDER", "*ACROMIUM", "*ACROMION", "*ACR"),
    "elbow": ("*ELB", "*ELBOWLAT", "*ELBL", "*ELBOW"), "inner_elbow": ("*ELBM", "*ELBOWMED", "*MELB"),
    "wrist": ("*WRA", "*WRISTLAT", "*WRIST", "*WRR"), "inner_wrist": ("*WRB", "*WRISTMED", "*WRU"),
    "hand": ("*FIN", "*HAND"), "temple": ("*FHD",), "nape": ("*BHD",),
}  # fmt: skip
# fractions of the distance between the two front markers of the pelvis
_HIP: Final = (0.36, 0.30, 0.19)  # position of the hip joint: sideways, down, back (Bell et al. 1990)
_INWARD: Final = {"knee": 0.21, "ankle": 0.15, "elbow": 0.0}  # half the width of each joint
_BELOW: Final = 0.16  # distance of the shoulder joint below the marker on the shoulder


def joints_of_markers(names: Sequence[str], positions: Array, weights: Array) -> Landmarks | None:
    """Return the landmarks at joint centres, from markers; None if pelvis, a knee or a shoulder lacks markers.

    Args:
        names: Name of each marker; a prefix that ends in a colon, such as a person's name, is ignored.
        positions: (T, K, 3), NaN where a marker was not seen.
        weights: Confidence, (T, K).
    """
    bare = [re.sub(r"[^A-Z0-9]", "", name.rpartition(":")[2].upper()) for name in names]
    at: dict[str, int] = {}
    for side in SIDES:
        for part, known in _NAMES.items():
            letter = side[0].upper()
            own = [name.replace("*", letter) for name in known]
            own += [name.removeprefix("*") + letter for name in known if name.startswith("*")]  # such as ASISl
            if (name := next((name for name in own if name in bare), None)) is not None:
                at[f"{side}_{part}"] = bare.index(name)
    if not all(f"{side}_{part}" in at for side in SIDES for part in ("front", "back", "knee", "shoulder")):
        return None
    places: dict[str, Array] = {}
    own_weights: dict[str, Array] = {}
    front = [positions[:, at[f"{side}_front"]] for side in SIDES]
    width = float(np.nanmedian(np.linalg.norm(front[0] - front[1], axis=1)))
    left, up, ahead = _pelvis(front, [positions[:, at[f"{side}_back"]] for side in SIDES])
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):

        def add(part: str, place: Array, *markers: str, side: str = side) -> None:
            places[f"{side}_{part}"] = place
            own_weights[f"{side}_{part}"] = np.min([weights[:, at[f"{side}_{one}"]] for one in markers], axis=0)

        aside, below, behind = (share * width for share in _HIP)
        add("hip", 0.5 * (front[0] + front[1]) + sign * aside * left - below * up - behind * ahead, "front", "back")
        for part, inward in _INWARD.items():
            if f"{side}_{part}" not in at:
                continue
            outer = positions[:, at[f"{side}_{part}"]]
            if f"{side}_inner_{part}" in at:
                add(part, 0.5 * (outer + positions[:, at[f"{side}_inner_{part}"]]), part, f"inner_{part}")
            else:
                add(part, outer - sign * inward * width * left, part)
        add("shoulder", positions[:, at[f"{side}_shoulder"]] - _BELOW * width * up, "shoulder")
        for part, markers in {
            "toe": ("toe",), "heel": ("heel",), "wrist": ("wrist", "inner_wrist"), "hand": ("hand",),
            "ear": ("temple", "nape"),
        }.items():  # fmt: skip
            seen = [one for one in markers if f"{side}_{one}" in at]
            if seen and (part != "ear" or len(seen) == len(markers)):
                add(part, np.mean([positions[:, at[f"{side}_{one}"]] for one in seen], axis=0), *seen)
    return Landmarks(places, own_weights, "markers").with_middles()


def _pelvis(front: Sequence[Array], back: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return the unit vectors (T, 3) that point left, up and ahead in the frame of the pelvis."""
    left = unit(front[0] - front[1])
    ahead = 0.5 * (front[0] + front[1]) - 0.5 * (back[0] + back[1])
    ahead = unit(ahead - np.sum(ahead * left, axis=1, keepdims=True) * left)
    return left, np.cross(ahead, left), ahead
