"""Make a folder of clips from real ones by cuts, scales and noise; 3 % of them are spoiled in ten ways.

    python benchmarks/batch/clips.py FOLDER [--count 10000] [--seed 1] [--frames 60 240]

``FOLDER/made.json`` lists each spoiled clip and how it was spoiled, and the words that a reason must have one of. Every
clip comes from its number and the seed alone.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

import synovia as sy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import needed_data

CLIPS = ("cmu_07_01_walk", "pymo_8walk", "bandai2_walk_turn", "cmu_jumping_jacks", "rokoko_jesse_dance")


def _cut(text):
    return text[: len(text) * 2 // 3].rsplit("\n", 1)[0][:-3]


def _with(text, old, new):
    return text.replace(old, new, 1)


def _one_number(text, value):
    head, _, frames = text.partition("Frame Time:")
    lines = frames.split("\n")
    cells = lines[3].split()
    cells[4] = value
    lines[3] = " ".join(cells)
    return head + "Frame Time:" + "\n".join(lines)


def _frames_gone(text):
    return text[: text.index("MOTION")] + "MOTION\nFrames: 0\nFrame Time: 0.033333\n"


def _without_legs(text):
    """Return a clip of a chain without legs."""
    head = "HIERARCHY\nROOT arm\n{\n OFFSET 0 0 0\n CHANNELS 3 Zrotation Xrotation Yrotation\n End Site\n {\n"
    return head + "  OFFSET 0 1 0\n }\n}\nMOTION\nFrames: 2\nFrame Time: 0.03\n0 0 0\n0 10 0\n"


def _count_of_gigabytes(text):
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("Frames:"))
    lines[at] = "Frames: 2000000000"
    return "\n".join(lines)


WAYS = {
    "empty file": (lambda text: "", ["empty"]),
    "cut in the middle of a line": (_cut, ["frame", "numbers", "line", "Frames"]),
    "not a number": (lambda text: _one_number(text, "nan"), ["nan", "finite", "number"]),
    "a word for a number": (lambda text: _one_number(text, "fast"), ["fast", "number"]),
    "binary noise": (None, ["format", "HIERARCHY", "line 1", "expected"]),
    "no frames": (_frames_gone, ["no frames", "Frames", "frame"]),
    "a channel that does not exist": (lambda text: _with(text, "Zrotation", "Wrotation"), ["Wrotation"]),
    "a bracket too few": (lambda text: _with(text, "}", ""), ["{", "}", "line", "MOTION"]),
    "a body without legs": (_without_legs, ["hips", "leg"]),
    "more frames announced than there are": (_count_of_gigabytes, ["frame", "Frames", "2000000000"]),
}


def vary(motion, random, frames):
    """Return a cut of a clip with noise on the joints, and the factor of its lengths."""
    count = int(random.integers(*frames))
    first = int(random.integers(0, max(len(motion) - count, 1)))
    q = motion.q[first : first + count].copy()
    q += 0.004 * np.cumsum(random.standard_normal(q.shape), axis=0) / np.sqrt(len(q))
    body = motion.skeleton
    for row, joint in enumerate(body.joints):
        place = body.q_slice(row)
        if joint.kind.q_size in (4, 7):
            turns = slice(place.stop - 4, place.stop)
            q[:, turns] /= np.linalg.norm(q[:, turns], axis=1)[:, None]
    return sy.Motion(body, q, motion.fps, name=motion.name)


def _scaled(text, factor):
    """Return BVH text with all lengths of the skeleton and the root's path times a factor."""
    out, in_motion, channels = [], False, None
    for line in text.split("\n"):
        word = line.split()
        if word[:1] == ["OFFSET"]:
            line = "OFFSET " + " ".join(f"{factor * float(x):.6f}" for x in word[1:4])
        elif word[:1] == ["CHANNELS"] and channels is None:
            channels = word[2:]
        elif in_motion and word and word[0] not in ("Frames:", "Frame"):
            for i, name in enumerate(channels):
                if name.endswith("position"):
                    word[i] = f"{factor * float(word[i]):.6f}"
            line = " ".join(word)
        in_motion = in_motion or word[:1] == ["MOTION"]
        out.append(line)
    return "\n".join(out)


def make(folder, count, seed, frames, data, share=0.03):
    """Write the clips; return the spoiled ones by name."""
    sources = [sy.load_motion(data / "motion" / f"{name}.bvh") for name in CLIPS]
    folder.mkdir(parents=True)
    scratch = folder / ".one.bvh"
    spoiled = {}
    ways = list(WAYS)
    bad = {int(k) for k in np.random.default_rng(seed).permutation(count)[: round(share * count)]}
    for k in range(count):
        random = np.random.default_rng((seed, k))
        motion = vary(sources[k % len(sources)], random, frames)
        sy.formats.write_bvh(motion, scratch, force=True)
        text = _scaled(scratch.read_text(), float(random.uniform(0.8, 1.25)))
        name = f"{k // 100:03}/{CLIPS[k % len(sources)]}_{k:05}.bvh"
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if k in bad:
            way = ways[len(spoiled) % len(ways)]
            change = WAYS[way][0]
            spoiled[name] = way
            path.write_bytes(random.bytes(5000) if change is None else change(text).encode())
        else:
            path.write_text(text)
    scratch.unlink()
    (folder / "made.json").write_text(json.dumps({"count": count, "seed": seed, "spoiled": spoiled}, indent=1))
    return spoiled


def main():
    """Make the folder of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, nargs=2, default=(60, 240))
    parser.add_argument("--share", type=float, default=0.03, help="share of spoiled clips")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    spoiled = make(given.folder, given.count, given.seed, tuple(given.frames), needed_data(), given.share)
    size = sum(path.stat().st_size for path in given.folder.rglob("*.bvh"))
    print(f"{given.count} clips, {size / 2**20:.0f} MiB, {len(spoiled)} spoiled, in {os.fspath(given.folder)}")


if __name__ == "__main__":
    main()
