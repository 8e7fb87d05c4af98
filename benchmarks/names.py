"""What names mean in every URDF and MJCF file of some folders, beside Pinocchio and MuJoCo.

In random poses, each joint, link (body) and site must be where the other library has it, under ``joint:NAME``,
``link:NAME`` and ``site:NAME``. A bare name that fits two different frames must be refused, and every other bare name
must mean its one frame. Files that a library refuses are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, machine, table

import synovia as sy

SEEDS = (1, 2, 3)
CLOSE = 1e-9  # of the size of the model, and radians
Frames = dict[tuple[str, str], list[np.ndarray]]  # by kind and name: a transform in each pose


def urdf_frames(path: Path, poses: list[sy.Pose]) -> Frames:
    """Return the frames of links and joints by Pinocchio."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    out: Frames = {}
    for pose in poses:
        q = pin.neutral(model)
        for name, joint in zip(list(model.names)[1:], list(model.joints)[1:], strict=True):
            value = pose[f"joint:{name}"]
            if joint.nq == 1:
                q[joint.idx_q] = value
            elif joint.nq == 2:  # a hinge without limits: its direction
                q[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            elif joint.nq == 7:
                q[joint.idx_q : joint.idx_q + 7] = value
            elif joint.nq == 4:  # planar: two slides before the hinge
                moved = [pose[pose.skeleton.value_index(f"joint:{name}") - k] for k in (2, 1)]
                q[joint.idx_q : joint.idx_q + 4] = *moved, np.cos(value), np.sin(value)
        pin.framesForwardKinematics(model, data, q)
        for frame, at in zip(model.frames, data.oMf, strict=True):
            kind = "link" if frame.type == pin.FrameType.BODY else "joint"
            if frame.name != "universe":
                out.setdefault((kind, frame.name), []).append(at.homogeneous)
    return out


def mjcf_frames(path: Path, poses: list[sy.Pose]) -> Frames:
    """Return the frames of bodies, joints and sites by MuJoCo.

    MuJoCo has an anchor and an axis for a joint, no frame. So a joint counts as where Synovia has it, if the anchor is
    on its axis there.
    """
    import mujoco

    from synovia.io.mjcf.model import read_model

    try:
        model: Any = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:  # a mesh is missing: kinematics does not depend on it
        model, _ = read_model(path)
    data = mujoco.MjData(model)
    skeleton = poses[0].skeleton
    rows = [row for row, joint in enumerate(skeleton.joints) if joint.kind is not sy.Kind.FIXED]
    out: Frames = {}
    for pose in poses:
        mujoco.mj_resetData(model, data)
        for j, row in enumerate(rows):
            at, kind = model.jnt_qposadr[j], skeleton.joints[row].kind
            if kind is sy.Kind.BALL:
                data.qpos[at : at + 4] = np.roll(pose[row], 1)
            elif kind is not sy.Kind.FREE:  # random poses have free joints at rest
                data.qpos[at] = pose[row]
        mujoco.mj_kinematics(model, data)
        for kind, count, place, turn in (
            (model.body, model.nbody, data.xpos, data.xmat),
            (model.site, model.nsite, data.site_xpos, data.site_xmat),
        ):
            for k in range(count):
                if name := kind(k).name:
                    frame = np.eye(4)
                    frame[:3, :3], frame[:3, 3] = turn[k].reshape(3, 3), place[k]
                    out.setdefault(("link" if kind == model.body else "site", name), []).append(frame)
        for j, row in enumerate(rows):
            if (name := model.joint(j).name) and pose[row] is not None:
                frame = pose.transform(row)
                if skeleton.joints[row].kind in (sy.Kind.HINGE, sy.Kind.BALL):
                    off = frame[:3, 3] - data.xanchor[j]
                    along = data.xaxis[j] if skeleton.joints[row].kind is sy.Kind.HINGE else np.zeros(3)
                    frame[:3, 3] -= off - (off @ along) * along
                out.setdefault(("joint", name), []).append(frame)
    return out


def differs(a: list[np.ndarray], b: list[np.ndarray], size: float) -> bool:
    """Return whether frames differ in one of the poses."""
    off = np.abs(np.array(a) - np.array(b))
    return bool((off[:, :3, 3] > CLOSE * size).any() or (off[:, :3, :3] > CLOSE).any())


def check(path: Path, frames_of: Callable[[Path, list[sy.Pose]], Frames], count: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with the names of a file, and count them."""
    try:
        skeleton = sy.load_skeleton(path)
    except sy.SynoviaError:
        count["files refused"] += 1
        return
    poses = [skeleton.random_pose(seed) for seed in SEEDS]
    try:
        frames = frames_of(path, poses)
    except (ValueError, RuntimeError, sy.SynoviaError):
        count["files that the other library refuses"] += 1
        return
    count["files"] += 1
    size = max(1.0, skeleton.size, *(float(np.abs(each).max()) for each in frames.values()))
    for (kind, name), there in frames.items():
        count[f"{kind}s"] += 1
        here = [pose.transform(f"{kind}:{name}") for pose in poses]
        if differs(here, there, size):
            yield f"{kind} {name!r} is elsewhere"
    for name in dict.fromkeys(name for _, name in frames):
        meant = [there for (_, own), there in frames.items() if own == name]
        several = any(differs(meant[0], other, size) for other in meant[1:])
        count["names of two different frames" if several else "names of one frame"] += 1
        try:
            here = [pose.transform(name) for pose in poses]
        except sy.errors.UnknownNameError:
            if several:
                count["  of these, refused"] += 1
            else:
                yield f"{name!r} has one frame, but is refused"
            continue
        if several:
            yield f"{name!r} fits two frames, and one is taken"
        elif differs(here, meant[0], size):
            yield f"{name!r} means another frame"


def main() -> int:
    """Check every file, print the counts, and return 1 if a name is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with URDF and MJCF files")
    folders: list[Path] = parser.parse_args().folders
    warnings.simplefilter("ignore")
    wrong: list[str] = []
    counts: dict[str, Counter[str]] = {}
    for folder in folders:
        for ending, frames_of in (("urdf", urdf_frames), ("xml", mjcf_frames)):
            count = counts[f"{folder.name}, {ending}"] = Counter()
            for path in sorted(folder.rglob(f"*.{ending}")):
                if path.is_file() and (ending == "urdf" or b"<mujoco" in path.read_bytes()[:20000]):
                    wrong += [f"{path}: {text}" for text in check(path, frames_of, count)]
    words = list(dict.fromkeys(word for count in counts.values() for word in count))
    text = table(["", *counts], [[word, *(count[word] for count in counts.values())] for word in words])
    print(text, *wrong, f"\n{len(wrong)} wrong", sep="\n")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "names.json").write_text(
        json.dumps({"machine": machine(), "counts": counts, "wrong": wrong}, indent=2) + "\n", encoding="utf-8"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
