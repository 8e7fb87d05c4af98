"""What hidden limbs cost at least when keypoints become rotations: an oracle beside the clips of ``fit_positions.py``.

    python benchmarks/fit_positions_floor.py [file=metres per unit ...]

A foot that is hidden together with its toes has a place that no bone and no other point tells; only other frames do.
The oracle knows all else exactly: every point of every other frame, also those that are hidden there, and in the same
frame every point above the hidden one. It predicts the direction of the bone from the frames nearest in time by one
rule: as in the nearest frame (hold), on by a part of the last turn (half, line), or on a parabola; in the world, or
relative to the limb above. Ratios are root mean squares over all points by that of the noise, as in the table
of ``fit_positions.py``; points that are seen count as exact. So a fit that guesses by such a rule is no better.
"""

import argparse
import sys

import numpy as np
from common import machine, needed_data, save, table
from fit_positions import MISSING, NOISE, UNITS

from synovia.io.load import load_motions

RULES = {"hold": (1, 0.0), "half": (2, 0.5), "line": (2, 1.0), "parabola": (3, 1.0)}  # frames, part of the way on
BAR = 0.7
NO_LENGTH = 1e-6  # a shorter bone has no direction; as a part of the longest


def predicted(ways, t, count, part):
    """Return the direction of a bone in frame t, unit (3,), from its directions (T, 3) in the frames nearest to t."""
    others = np.array([k for k in range(len(ways)) if k != t])
    near = others[np.argsort(np.abs(others - t), kind="stable")][:count]
    way = np.zeros(3)
    for k in near:  # the polynomial through the frames
        way += ways[k] * np.prod([(t - j) / (k - j) for j in near if j != k])
    way = part * way + (1.0 - part) * ways[near[0]] if count > 1 else way
    return way / max(float(np.linalg.norm(way)), 1e-300)


def errors(motion, hidden, relative, rule):
    """Return squared errors (T, n) of the points of hidden ends of limbs, predicted by one rule."""
    frames, parents = motion.frames(), motion.skeleton.parents
    places, turns = frames[..., 9:], frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    ends = hidden.copy()  # hidden with all that is below
    for row in reversed(range(len(parents))):
        for child in motion.skeleton.children[row]:
            ends[:, row] &= hidden[:, child] & ends[:, child]
    out = np.zeros(hidden.shape)
    for row, parent in enumerate(parents):
        if parent < 0:
            continue
        bone = places[:, row] - places[:, parent]
        length = np.linalg.norm(bone, axis=1)
        if length.max() <= NO_LENGTH * motion.skeleton.size:
            continue
        above = turns[:, max(parents[parent], 0)] if relative else np.eye(3)[None].repeat(len(places), axis=0)
        ways = np.einsum("tji,tj->ti", above, bone / np.maximum(length, 1e-300)[:, None])
        for t in np.flatnonzero(ends[:, row]):
            guess = length[t] * above[t] @ predicted(ways, t, *rule)
            out[t, row] = np.sum((guess - bone[t]) ** 2)
    return out


def measure(motion, unit):
    """Return the ratio of each rule for one clip, with the noise and the hidden points of ``fit_positions.py``."""
    shape = (len(motion), len(motion.skeleton), 3)
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, NOISE / unit, shape)
    hidden = rng.random(shape[:2]) < MISSING
    hidden[0] &= hidden[1:].any(0) | (len(motion) == 1)
    whole = np.mean(np.sum(noise**2, axis=-1))
    found = {
        f"{name}, {'limb' if relative else 'world'}": errors(motion, hidden, relative, rule)
        for name, rule in RULES.items()
        for relative in (False, True)
    }
    found["best for each point"] = np.min(list(found.values()), axis=0)
    return {"clip": motion.name, "frames": len(motion)} | {
        k: float(np.sqrt(e.mean() / whole)) for k, e in found.items()
    }


def main():
    """Measure every clip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", nargs="*", metavar="FILE=METRES")
    given = [text.rpartition("=")[::2] for text in parser.parse_args().clips]
    folders = [needed_data() / "motion", needed_data() / "character"]
    found = [(path, UNITS[path.name]) for folder in folders for path in sorted(folder.iterdir()) if path.name in UNITS]
    rows = [measure(motion, float(unit)) for path, unit in given or found for motion in load_motions(path)]
    rules = [key for key in rows[0] if key not in ("clip", "frames")]
    cells = [[row["clip"], row["frames"], *(f"{row[rule]:.2f}" for rule in rules)] for row in rows]
    counts = {rule: sum(row[rule] <= BAR for row in rows) for rule in rules[:-1]}
    best = max(counts, key=lambda rule: counts[rule])
    text = f"{table(['clip', 'frames', *rules], cells)}\n\nOf one rule for all clips, that with the most clips at {BAR}"
    text += f" or below is *{best}*: {counts[best]} of {len(rows)}."
    del sys.argv[1:]
    save("fit_positions_floor", "Hidden limbs: what an oracle still misses", {"rows": rows}, text, machine())


if __name__ == "__main__":
    main()
