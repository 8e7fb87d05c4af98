"""Keypoints to rotations on real clips: how near the fitted joints are, clean and with noise and gaps.

    python benchmarks/fit_positions.py clip.bvh=0.01 [character.glb=1 ...]    # file=metres per unit

Noise is Gaussian with 5 mm on each axis; a fifth of the points is missing. Both ratios compare root mean squares over
all points, missing ones included.
"""

import argparse
import time

import numpy as np

import synovia as sy
from synovia.io.load import load_motions

NOISE = 0.005
MISSING = 0.2


def distances(fitted, places, before, unit):
    """Return distances (T, n) of fitted joints from where they were, millimetres."""
    return 1e3 * unit * np.linalg.norm(fitted.positions()[:, before:] - places, axis=-1)


def fit(motion, positions):
    """Return the fit and its seconds."""
    begun = time.perf_counter()
    fitted = sy.fit_positions(motion.skeleton, positions, fps=motion.fps)
    return fitted, time.perf_counter() - begun


def main():
    """Fit every clip of every file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", nargs="+", metavar="FILE=METRES")
    for text in parser.parse_args().clips:
        path, _, unit = text.rpartition("=")
        for motion in load_motions(path):
            if len(motion) < 8:
                continue
            unit, places = float(unit), motion.positions()
            clean, seconds = fit(motion, places)
            before = len(clean.skeleton) - len(motion.skeleton)
            off = distances(clean, places, before, unit)
            print(f"{motion.name}: {len(motion)} frames; clean: median {np.median(off):.4f} mm,", end=" ")
            print(f"p99 {np.quantile(off, 0.99):.4f} mm, {seconds:.1f} s", flush=True)
            rng = np.random.default_rng(0)
            noise = rng.normal(0.0, NOISE / unit, places.shape)
            seen = places + noise
            seen[rng.random(places.shape[:2]) < MISSING] = np.nan
            fitted, seconds = fit(motion, seen)
            rms = np.sqrt(np.mean(distances(fitted, places, before, unit) ** 2))
            whole = 1e3 * unit * np.sqrt(np.mean(np.sum(noise**2, axis=-1)))
            print(f"    noise {whole:.2f} mm -> {rms:.2f} mm (x {rms / whole:.2f}),", end=" ")
            print(f"smoothness {fitted.smoothness:g}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
