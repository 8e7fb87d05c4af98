"""Landmarks of pose detectors to motions: tables made from real clips, as detectors would write them.

    python benchmarks/keypoints.py [--frames N]

Each clip of ../shared/data/motion and examples/walk.bvh gives tables of MediaPipe, COCO and OpenPose, made by
``tests/landmark_tables.py``, in metres, in pixels, and (MediaPipe) as one camera sees them. The hips are at the origin
in all tables. The motion of a body made to measure is compared with the clip: mean angle between the directions of
limbs and trunk, after the best turn about the vertical axis; largest distance from the path of the hips, beside the
range of that path; largest error of how far the hips rise in a flight. "told" are paths of which a note says
"uncertain path".
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait for each other where others work too
from common import machine, needed_data, save, table, verdicts

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np

import synovia as sy
from landmark_tables import angles, flights, landmarks, leg, monocular, path, rises, seen_by_camera

PIXELS = 850.0  # in a metre
METRES = {
    "walk": 1.0,
    "cmu_jumping_jacks": 1.0 / 0.056444,
    "cmu_07_01_walk": 1.0 / 0.056444,
    "pymo_8walk": 1.0 / 0.0254,
}
NEAR, KEPT = 0.15, 0.03  # of the path's range; metres that a flight may be lower or higher


def travelled(motion, fitted, metre):
    """Return the range of the true path, the largest distance from it, and the largest error of a flight, metres."""
    truth, found = path(motion) / metre, path(fitted) * leg(motion) / leg(fitted) / metre
    away = (found - found.mean(0)) - (truth - truth.mean(0))
    spans = flights(motion, metre)
    high = np.abs(rises(found, spans) - rises(truth, spans)).max() if spans else 0.0
    return float(np.ptp(truth, axis=0).max()), float(np.linalg.norm(away, axis=1).max()), len(spans), float(high)


UNITS = {"m": 1.0, "px": PIXELS}
TABLES = [("mediapipe", "m"), ("mediapipe", "px"), ("mediapipe", "camera"), ("coco", "px"), ("openpose", "m")]


def main():
    """Fit every clip by every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=90, metavar="N", help="most frames of a clip, at 30 a second")
    most = parser.parse_args().frames
    clips = [Path(__file__).parents[1] / "examples" / "walk.bvh", *sorted((needed_data() / "motion").glob("*.bvh"))]
    where, rows = machine(), []
    for file in clips:
        motion = sy.load_motion(file)
        every = max(round(motion.fps / 30.0), 1)
        motion = sy.Motion(motion.skeleton, motion.q[::every][:most], motion.fps / every)
        metre = METRES.get(file.stem, 100.0)
        for preset, label in TABLES:
            seen = landmarks(motion, preset, metre=metre)
            seen = monocular(seen, motion.fps) if label == "camera" else seen_by_camera(seen, UNITS[label])
            begun = time.perf_counter()
            try:
                fitted = sy.fit_keypoints(seen, fps=motion.fps)
            except sy.InputError as error:
                rows.append([file.stem, preset, label, len(motion), "refused", *[""] * 8])
                print(file.stem, preset, error, file=sys.stderr, flush=True)
                continue
            seconds, off = time.perf_counter() - begun, angles(motion, fitted)
            told = "told" if any("uncertain path" in note for note in fitted.notes) else ""
            way = [float(off[:-1].mean()), float(off[:-1].max()), float(off[-1]), *travelled(motion, fitted, metre)]
            rows.append([file.stem, preset, label, len(motion), *way, told, seconds])
            print(rows[-1], file=sys.stderr, flush=True)
    head = ["clip", "preset", "unit", "frames", "limbs deg", "worst limb deg", "trunk deg", "range m", "path off m"]
    head += ["flights", "flight off m", "", "seconds"]
    fitted = [row for row in rows if row[4] != "refused"]
    near = [row for row in fitted if row[8] <= NEAR * row[7]]
    kept = [row for row in fitted if row[9] and row[10] <= KEPT]
    lines, held = verdicts([
        (f"every limb within 10 degrees, mean over the clip: {len(fitted)} of {len(rows)} tables fitted",
         all(row[5] <= 10.0 for row in fitted)),
        ("upright: trunk within 10 degrees", all(row[6] <= 10.0 for row in fitted)),
        (f"path of the hips within {NEAR:.0%} of its range ({len(near)}), or told, or within {KEPT:.2f} m",
         all(row[8] <= max(NEAR * row[7], KEPT) or row[11] for row in fitted)),
        (f"flights within {KEPT:.2f} m ({len(kept)} of {sum(bool(row[9]) for row in fitted)} tables with any), or told",
         all(row[10] <= KEPT or row[11] for row in fitted)),
    ])  # fmt: skip
    cells = [[f"{v:.2g}" if isinstance(v, float) else v for v in row] for row in rows]
    del sys.argv[1:]
    save("keypoints", "Landmarks to motions", {"rows": rows}, f"{table(head, cells)}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
