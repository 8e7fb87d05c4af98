"""FBX files as found: are all joints where ufbx itself puts the nodes, in each take, and is every other file refused?

    python benchmarks/fbx_files.py FOLDER...

Needs the extra ``fbx``. For each ``.fbx`` below the folders, the joints at rest and in twenty frames of each take are
compared with the world matrices of the scene that ufbx evaluates at that time, read without any conversion of units,
axes or inherited scale; units and axes are converted here. ufbx runs in a process of its own, as damaged files may
crash it. A file is right if all places agree to 1e-5 of the size of the body, the largest extent of its joints. Files
from which ufbx itself gets no node are counted as refused.
"""

import argparse
import ctypes
import functools
import json
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from common import machine, save, table, verdicts

import synovia as sy
from synovia.io.fbx import read
from synovia.io.load import guarded

read.unpacked = functools.lru_cache(maxsize=1)(read.unpacked)  # once for a file
CLOSE = 1e-5
TIMES = 20
LONGEST = 120.0  # seconds for a file
ENOUGH = 0.99  # share of the files
AXES = "+x", "-x", "+y", "-y", "+z", "-z"


def oracle(path):
    """Print the places of all nodes at rest and in frames of each take, as ufbx evaluates them."""
    import ufbx

    count = ctypes.pythonapi.Py_IncRef  # ufbx 0.0.5 does not count references to its elements
    count.argtypes = [ctypes.py_object]

    def held(element):
        if element is not None:
            count(element)
        return element

    scenes = []

    def places(scene):
        scenes.append(held(scene))
        return {held(node).element_id: list(node.node_to_world.c3) for node in scene.nodes}

    data = path.read_bytes()
    plain = ufbx.load_memory(data, file_format=ufbx.FileFormat.FBX, ignore_geometry=True)
    numbers = {held(node).element_id: node.typed_id for node in plain.nodes}
    rate = plain.settings.frames_per_second
    takes = {}
    for stack in plain.anim_stacks:
        held(stack)
        times = []
        length = round((stack.time_end - stack.time_begin) * rate)
        frames = sorted({round(k) for k in np.linspace(0, min(length, 2**20), TIMES)})
        for frame in frames:
            scene = ufbx.evaluate_scene(plain, stack.anim, stack.time_begin + frame / rate)
            times.append([frame, places(scene)])
        takes.setdefault(stack.name, []).append(times)
    axes = plain.settings.axes
    print(
        json.dumps(
            {
                "numbers": numbers, "rest": places(plain), "takes": takes,
                "axes": [int(axis) for axis in (axes.right, axes.up, axes.front)],
                "metres": plain.settings.unit_meters, "left_out": [],
            }
        )
    )  # fmt: skip
    sys.stdout.flush()
    import os

    os._exit(0)


def turned(axes):
    """Return the matrix from coordinates of a file to those with x to the right, y up and z to the front."""
    matrix = np.zeros((3, 3))
    for row, axis in enumerate(axes):
        if axis > 5:
            return np.eye(3)
        matrix[row, axis // 2] = -1.0 if axis % 2 else 1.0
    return matrix


def judged(path):
    """Return what came of a file and the largest difference, as a part of the size."""
    ran = subprocess.run(
        [sys.executable, __file__, "--oracle", path], capture_output=True, text=True, check=False, timeout=LONGEST
    )
    known = json.loads(ran.stdout) if ran.returncode == 0 else None
    try:
        contents = guarded(path, lambda: read.read_fbx(path))
        skeleton, motions = contents.skeleton, guarded(path, contents.motions)
    except sy.SynoviaError as error:
        if known is None or len(known["rest"]) < 2:
            return "refused, as by ufbx", 0.0, str(error)
        return "refused", np.inf, str(error)
    if known is None:
        return "read, and ufbx refuses", np.inf, ran.stderr.strip().splitlines()[-1:]
    tree = read.node_tree(read.unpacked(path))
    matrix = turned(known["axes"]) * known["metres"]
    rows, nodes = [], []
    for node, number in known["numbers"].items():
        if number in tree.row_of:
            rows.append(tree.row_of[number])
            nodes.append(node)
    if not rows:
        return "no node in common", np.inf, ""
    moved = len(skeleton) - len(tree.names)
    rows = np.array(rows) + moved

    def there(places):
        return np.array([places[node] for node in nodes]) @ matrix.T

    pairs = [("rest", skeleton.rest_pose().positions[rows], there(known["rest"]))]
    said = list(skeleton.notes)
    left = {name: list(takes) for name, takes in known["takes"].items()}
    for motion in motions:
        takes = left.get(motion.name) or []
        if not takes:
            continue
        said += motion.notes
        own = motion.positions()
        for frame, places in takes.pop(0):
            if frame < len(own):
                pairs.append((f"{motion.name} {frame}", own[frame][rows], there(places)))
    all_places = np.concatenate([expected for _, _, expected in pairs])
    size = float(np.linalg.norm(all_places.max(0) - all_places.min(0))) if len(all_places) else 0.0
    size = max(size, float(np.abs(all_places).max()), 1e-9)
    worst, where = 0.0, ""
    for name, own, expected in pairs:
        off = np.linalg.norm(own - expected, axis=1)
        if not off.max() / size <= worst:
            worst, where = float(off.max()) / size, f"{name}: {skeleton.joint_names[rows[int(off.argmax())]]}"
    if worst <= CLOSE:
        return "right", worst, f"{len(pairs)} poses"
    return "wrong", worst, f"{where} {said}"


def main():
    """Compare all files, and save what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--oracle", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--every", type=int, default=1, help="only every so many files")
    options = parser.parse_args()
    if options.oracle:
        oracle(options.oracle)
        return 0
    warnings.simplefilter("ignore")
    paths = sorted(path for folder in options.folders for path in folder.rglob("*.[fF][bB][xX]"))[:: options.every]
    where = machine()
    counts, slowest, worst, trouble = Counter(), (0.0, ""), 0.0, []
    for path in paths:
        begun = time.perf_counter()
        try:
            outcome, off, why = judged(path)
        except Exception as error:  # noqa: BLE001  counted
            outcome, off, why = "failed", np.inf, f"{type(error).__name__}: {error}"
        slowest = max(slowest, (time.perf_counter() - begun, path.name))
        counts[outcome] += 1
        if outcome == "right":
            worst = max(worst, off)
        elif outcome != "refused, as by ufbx":
            trouble.append([path.name, outcome, f"{off:.1e}", str(why).replace(str(path), path.name)])
            print(*trouble[-1], file=sys.stderr, flush=True)
    with_nodes = sum(counts.values()) - counts["refused, as by ufbx"]
    share = counts["right"] / max(with_nodes, 1)
    bars = [
        (f"{counts['right']} of {with_nodes} files with nodes are right ({share:.2%})", share >= ENOUGH),
        (f"largest difference of those {worst:.1e} of the size", worst <= CLOSE),
        (f"slowest file {slowest[0]:.1f} s, {slowest[1]}", slowest[0] <= LONGEST),
    ]
    lines, held = verdicts(bars)
    others = f"{counts['refused, as by ufbx']} more are refused by ufbx too."
    text = "\n\n".join([table(["file", "outcome", "off", "why"], trouble), others, lines])
    result = {"counts": dict(counts), "share": share, "worst": worst, "slowest": slowest, "trouble": trouble}
    save("fbx_files", "FBX files as found", result, text, where)
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
