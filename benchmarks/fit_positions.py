"""Keypoints to rotations on real clips: how near the fitted joints are, clean, with gaps, and with noise and gaps.

    python benchmarks/fit_positions.py [file=metres per unit ...]

Without files, every clip of ../shared/data. Noise is Gaussian with 5 mm on each axis; a fifth of the points is missing.
Ratios are root mean squares over all points, missing ones included, by that of the noise; ``gaps`` has no noise at all.
"""

import argparse
import sys
import time

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy
from synovia.io.load import load_motions

NOISE = 0.005
MISSING = 0.2
UNITS = {
    "bvhtoolbox_walk01.bvh": 0.01, "cmu_07_01_walk.bvh": 0.056444, "cmu_jumping_jacks.bvh": 0.01,
    "pymo_8walk.bvh": 0.0254, "greenman.glb": 1.0, "mannequiny.glb": 1.0,
}  # fmt: skip


def off(motion, positions, unit):
    """Return distances (T, n) of fitted joints from where they are, millimetres, and seconds."""
    begun = time.perf_counter()
    fitted = sy.fit_positions(positions, motion.skeleton, fps=motion.fps)
    seconds = time.perf_counter() - begun
    before = len(fitted.skeleton) - len(motion.skeleton)
    return 1e3 * unit * np.linalg.norm(fitted.positions()[:, before:] - motion.positions(), axis=-1), seconds


def rms(values):
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def measure(motion, unit):
    """Return the figures of one clip."""
    places = motion.positions()
    clean, clean_seconds = off(motion, places, unit)
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, NOISE / unit, places.shape)
    missing = rng.random(places.shape[:2]) < MISSING
    missing[0] &= missing[1:].any(0) | (len(places) == 1)
    whole = 1e3 * unit * rms(np.linalg.norm(noise, axis=-1))
    gaps, _ = off(motion, np.where(missing[..., None], np.nan, places), unit)
    noisy, seconds = off(motion, np.where(missing[..., None], np.nan, places + noise), unit)
    speed = 1e3 * unit * np.linalg.norm(np.diff(places, axis=0), axis=-1)
    return {
        "clip": motion.name, "frames": len(places), "fps": motion.fps,
        "fastest_mm_per_frame": float(speed.max(initial=0.0)),
        "clean_median_mm": float(np.median(clean)), "clean_p99_mm": float(np.quantile(clean, 0.99)),
        "gaps": rms(gaps) / whole, "noisy": rms(noisy) / whole, "noisy_seen": rms(noisy[~missing]) / whole,
        "clean_seconds": clean_seconds, "seconds": seconds,
    }  # fmt: skip


def main():
    """Fit every clip of every file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", nargs="*", metavar="FILE=METRES")
    given = [text.rpartition("=")[::2] for text in parser.parse_args().clips]
    folders = [needed_data() / "motion", needed_data() / "character"]
    found = [(path, UNITS[path.name]) for folder in folders for path in sorted(folder.iterdir()) if path.name in UNITS]
    where, rows = machine(), []
    for path, unit in given or found:
        for motion in load_motions(path):
            rows.append(measure(motion, float(unit)))
            print(rows[-1], file=sys.stderr, flush=True)
    head = ["clip", "frames", "fps", "fastest_mm_per_frame", "clean_median_mm", "clean_p99_mm", "gaps", "noisy",
            "noisy_seen", "seconds"]  # fmt: skip
    cells = [[f"{v:.2g}" if isinstance(v := row[key], float) else v for key in head] for row in rows]
    calm = [row for row in rows if row["noisy"] <= 0.7]
    lines, held = verdicts([
        ("points come back within 1 mm, median", max(row["clean_median_mm"] for row in rows) < 1.0),
        ("and 5 mm, 99 %", max(row["clean_p99_mm"] for row in rows) < 5.0),
        (f"noise is 30 % less, gaps filled: {len(calm)} of {len(rows)} clips", len(calm) == len(rows)),
    ])  # fmt: skip
    text = table([name.replace("_", " ") for name in head], cells)
    del sys.argv[1:]
    save("fit_positions", "Keypoints to rotations", {"rows": rows}, f"{text}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
