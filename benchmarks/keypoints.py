"""Landmarks of pose detectors to motions: tables made from real clips, as detectors would write them.

    python benchmarks/keypoints.py [--frames N]

Each clip of ../shared/data/motion and examples/walk.bvh gives tables of MediaPipe, COCO and OpenPose, made by
``tests/landmark_tables.py``. The motion of a body made to measure is compared with the clip: mean angle between the
directions of limbs and trunk, after the best turn about the vertical axis.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait for each other where others work too
from common import machine, needed_data, save, table, verdicts

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import synovia as sy
from landmark_tables import angles, landmarks, seen_by_camera

PIXELS = 850.0  # in a metre


def main():
    """Fit every clip by every preset, in metres and in pixels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=90, metavar="N", help="most frames of a clip, at 30 a second")
    most = parser.parse_args().frames
    clips = [Path(__file__).parents[1] / "examples" / "walk.bvh", *sorted((needed_data() / "motion").glob("*.bvh"))]
    where, rows = machine(), []
    for path in clips:
        motion = sy.load_motion(path)
        every = max(round(motion.fps / 30.0), 1)
        motion = sy.Motion(motion.skeleton, motion.q[::every][:most], motion.fps / every)
        for preset in ("mediapipe", "coco", "openpose"):
            for label, scale in (("m", 1.0), ("px", PIXELS)):
                begun = time.perf_counter()
                try:
                    fitted = sy.fit_keypoints(seen_by_camera(landmarks(motion, preset), scale), fps=motion.fps)
                except sy.InputError as error:
                    rows.append([path.stem, preset, label, len(motion), "refused", "", "", ""])
                    print(path.stem, preset, error, file=sys.stderr, flush=True)
                    continue
                off = angles(motion, fitted)
                seconds = time.perf_counter() - begun
                rows.append([path.stem, preset, label, len(motion), off[:-1].mean(), off[:-1].max(), off[-1], seconds])
                print(rows[-1], file=sys.stderr, flush=True)
    head = ["clip", "preset", "unit", "frames", "limbs deg", "worst limb deg", "trunk deg", "seconds"]
    fitted = [row for row in rows if row[4] != "refused"]
    lines, held = verdicts([
        (f"every limb within 10 degrees, mean over the clip: {len(fitted)} of {len(rows)} tables fitted",
         all(row[5] <= 10.0 for row in fitted)),
        ("upright: trunk within 10 degrees", all(row[6] <= 10.0 for row in fitted)),
    ])  # fmt: skip
    cells = [[f"{v:.2g}" if isinstance(v, float) else v for v in row] for row in rows]
    del sys.argv[1:]
    save("keypoints", "Landmarks to motions", {"rows": rows}, f"{table(head, cells)}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
