"""Landmarks without noise determine the limbs: how far off are those of the body made to measure, and is it told?

    python benchmarks/clean_keypoints.py [--frames 300] [--only TEXT]

Each clip of ../shared/data/motion and examples/walk.bvh, at 30 frames a second, gives tables of MediaPipe, COCO and
OpenPose as ``keypoints.py`` has them, but with no noise and no gaps. Angles between the directions of the eight limbs
in the clip and in the fitted motion, after the best turn about the vertical: the mean over limbs and frames, the worst
limb in its worst frame. The verdict is that of ``sy.judge`` on the fitted motion.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait for each other where others work too
import numpy as np
from common import machine, needed_data, save, table, verdicts

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import synovia as sy
from landmark_tables import directions, landmarks

MEAN, WORST = 1.0, 10.0  # degrees


def angles(source, answer):
    """Return the angle of each limb in each frame between two clips, (T, 8), degrees."""
    a, b = directions(source), directions(answer)
    sine = np.sum(a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2])
    turn = np.arctan2(sine, np.sum(a[..., 0] * b[..., 0] + a[..., 2] * b[..., 2]))
    turned = sy.Rotation.from_rotvec((0.0, turn, 0.0)).apply(a.reshape(-1, 3)).reshape(a.shape)
    across = np.linalg.norm(np.cross(turned, b), axis=2)
    return np.degrees(np.arctan2(across, np.sum(turned * b, axis=2)))[:, :8]


def main():
    """Fit every clip by every preset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=300, help="most frames of a clip, at 30 a second")
    parser.add_argument("--only", default="", help="clips whose name contains this")
    options = parser.parse_args()
    clips = [Path(__file__).parents[1] / "examples" / "walk.bvh", *sorted((needed_data() / "motion").glob("*.bvh"))]
    where, rows, wrong = machine(), [], []
    for path in (path for path in clips if options.only in path.stem):
        motion = sy.load_motion(path)
        every = max(round(motion.fps / 30.0), 1)
        motion = sy.Motion(motion.skeleton, motion.q[::every][: options.frames], motion.fps / every)
        for preset in ("mediapipe", "coco", "openpose"):
            begun = time.perf_counter()
            seen = landmarks(motion, preset) * [1.0, -1.0, -1.0]
            fitted = sy.fit_keypoints(seen, preset=preset, fps=motion.fps)
            seconds, off = time.perf_counter() - begun, angles(motion, fitted)
            judgement = sy.judge(fitted)
            mean, worst = float(off.mean()), float(off.max())
            cells = [f"{mean:.2f}", f"{worst:.1f}", f"{100.0 * fitted.errors.max():.1f}", judgement.verdict]
            rows.append([path.stem, preset, len(motion), *cells, f"{seconds:.1f}"])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
            if (mean > MEAN or worst > WORST) and judgement.verdict == "good":
                wrong.append(f"{path.stem} {preset}")
    near = sum(float(row[3]) <= MEAN and float(row[4]) <= WORST for row in rows)
    bar = f"limbs within {MEAN:.0f} degree on average and {WORST:.0f} at worst ({near} of {len(rows)}), or not good"
    lines, held = verdicts([(bar, not wrong)])
    head = ["clip", "preset", "frames", "mean deg", "worst deg", "missed by cm", "verdict", "seconds"]
    text = f"{table(head, rows)}\n\n{lines}" + (f": {', '.join(wrong)}" if wrong else "")
    save("clean_keypoints", "Landmarks without noise", {"rows": rows, "wrong": wrong}, text, where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
