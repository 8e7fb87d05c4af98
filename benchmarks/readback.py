"""Does every file show what the memory holds? Random bodies, clips and glTF files, and all glTF files of folders.

    python benchmarks/readback.py [-n 100] [FOLDER...]

Each file is read back by readers that share no code with the package (``tests/readback.py``). A difference beyond
1e-6 of the size and float32's rounding must be said: by a note of what was read, or a warning of what was written.
Prints, for each kind of file, how many agree, how many differences are said, and how many are silent.
"""

import argparse
import sys
import tempfile
import warnings
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import readback
import synovia as sy
from synovia.io.load import load_motions

FOUND: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])  # agree, said, silent
WORST: dict[str, float] = defaultdict(float)


def count(kind, difference, said, what):
    """Count one file; print it if a difference is silent."""
    bad = not difference <= 1.0
    FOUND[kind][2 if bad and not said else 1 if bad else 0] += 1
    if not bad:
        WORST[kind] = max(WORST[kind], difference)
    if bad and not said:
        print("SILENT", kind, what, f"{difference:.3g} of what is allowed")


def save(motion, path, **options):
    """Write a motion; return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sy.save_motion(motion, path, force=True, **options)
    return [str(one.message) for one in caught]


def check_bodies(folder, number):
    """Clips of random bodies in every format but glTF; skeletons and poses."""
    for case in range(number):
        rng = np.random.default_rng(case)
        body = readback.random_body(rng, case)
        clip = readback.random_clip(
            body, rng, fps=float(rng.uniform(10, 120)), stretched=case % 6 == 5, far=case % 7 * 100.0
        )
        for ending in (".bvh", ".npz", ".csv"):
            path = folder / f"a{ending}"
            said = save(clip, path)
            count(ending, readback.differs(clip, path), said, case)
        sy.formats.write_skeleton(body, folder / "a.toml", force=True)
        own = body.rest_pose().positions
        off = np.linalg.norm(own - readback.read_toml(folder / "a.toml", body)[1][0], axis=-1).max()
        count(".toml", off / readback.allowed(body, own), False, case)
        pose = body.random_pose(case)
        sy.save_pose(pose, folder / "a.json", force=True)
        off = np.linalg.norm(pose.positions - readback.read_pose(folder / "a.json", body)[1][0], axis=-1).max()
        count(".json", off / readback.allowed(body, pose.positions), False, case)


def check_robots(folder, number):
    """Clips of hinges on a base that moves, in the formats of robots."""
    for case in range(number):
        rng = np.random.default_rng(case)
        joints = [sy.Joint("base", None, sy.Kind.FREE, readback.random_tree(rng, 1).joints[0].rest)]
        for i in range(int(rng.integers(2, 9))):
            rest = np.eye(4)
            rest[:3, 3] = rng.normal(size=3)
            kind = sy.Kind.HINGE if rng.random() < 0.8 else sy.Kind.SLIDE
            parent = "base" if i == 0 else f"j{i - 1}"
            joints.append(sy.Joint(f"j{i}", parent, kind, rest, axis=rng.normal(size=3)))
        body = sy.Skeleton(joints)
        clip = readback.random_clip(body, rng, fps=30.0 if case % 4 else 50.0, far=case % 3 * 50.0)
        for ending in (".unitree.csv", ".isaac.npz", ".mujoco.npz"):
            said = save(clip, folder / f"a{ending}")
            count(ending, readback.differs(clip, folder / f"a{ending}"), said, case)


def check_gltf(path, kind, rng, folder, *, made=4):
    """The clips of a glTF file, new clips of its skeleton, and posed copies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            body = sy.load_skeleton(path)
        except sy.SynoviaError as error:
            print("not read:", path, str(error)[:100])
            return
        file = readback.Gltf(path)
        try:
            motions = load_motions(path)
        except sy.SynoviaError as error:
            print("no clips read:", path, str(error)[:100])
            return
    names = body.joint_names
    rows = [file.names.index(name) for name in names]
    if len(set(file.names)) < len(file.names):
        print("names repeat:", path)
        return
    own = body.rest_pose().positions
    rest = file.places()[0][0]
    off = np.linalg.norm(own - rest[rows], axis=-1).max()
    count(f"{kind}: rest read", off / readback.allowed(body, own), False, path)
    for number, motion in enumerate(motions):
        keys = [times for _, _, times, _, _ in file.clip(number)]
        start = min((times[0] for times in keys), default=0.0)
        times = start + motion.times
        nearest = np.unique(np.concatenate(keys)) if keys else times
        at = np.abs(nearest[None] - times[:, None]).argmin(1)  # keys near frames are on them
        near = np.abs(nearest[at] - times) < 0.01 / motion.fps
        times = np.where(near, nearest[at], times)
        shown = file.places(number, times)[0][:, rows]
        off = np.linalg.norm(motion.positions() - shown, axis=-1).max()
        count(f"{kind}: clips read", off / readback.allowed(body, shown), motion.notes, f"{path} {motion.name}")
        save_and_check(motion, path, kind, folder)
    for case in range(made):
        rooted = body.with_root("free") if case % 2 else body
        clip = readback.random_clip(rooted, rng, stretched=case == 2, far=10.0 * case)
        save_and_check(clip, path, kind, folder)
        pose = clip.pose(0)
        still = sy.Motion(rooted, pose.q[None], 30.0)
        with warnings.catch_warnings(record=True) as caught, beside(path) as out:
            warnings.simplefilter("always")
            sy.save_pose(pose, out, into=path, force=True)
            again = sy.load_pose(out, rooted)
            count(f"{kind}: poses written", readback.differs(still, out, readback.read_posed), caught, path)
        apart = (again.positions - pose.positions)[len(rooted) - len(body) :]  # a root that was added is in no file
        off = np.linalg.norm(apart, axis=-1).max() / readback.allowed(body, pose.positions)
        count(f"{kind}: poses read", off, caught, path)


def save_and_check(clip, path, kind, folder):
    """A clip in a copy of its file, and as BVH and npz."""
    with beside(path) as out:
        said = save(clip, out, into=path)
        count(f"{kind}: clips written", readback.differs(clip, out), said, path)
    for ending in (".bvh", ".npz"):
        said = save(clip, folder / f"out{ending}")
        if ending == ".npz" or all(name.strip() == name and name for name in clip.skeleton.joint_names):
            count(f"{kind}: as {ending}", readback.differs(clip, folder / f"out{ending}"), said, path)


@contextmanager
def beside(path):
    """The name of a file beside another, which may refer to files there; it is removed."""
    out = Path(path).parent / "synovia readback.glb"
    try:
        yield out
    finally:
        out.unlink(missing_ok=True)


def main():
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100, help="random bodies and files")
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_bodies(folder, options.n)
        check_robots(folder, options.n)
        for case in range(options.n):
            rng = np.random.default_rng(case)
            check_gltf(readback.random_gltf(folder / "in.gltf", rng, case), "random glTF", rng, folder)
        for root in options.folders:
            for path in sorted(root.rglob("*")):
                if path.suffix.lower() in (".gltf", ".glb", ".vrm"):
                    check_gltf(path, root.name, np.random.default_rng(1), folder)
    print(f"{'':40} agree  said silent  largest agreeing")
    for kind, (agree, said, silent) in FOUND.items():
        print(f"{kind:40} {agree:5} {said:5} {silent:6}  {WORST[kind]:.2g}")
    return int(any(silent for _, _, silent in FOUND.values()))


if __name__ == "__main__":
    sys.exit(main())
