"""Models as they are found: MJCF, URDF and glTF files of public repositories, read here and by their own programs.

    python benchmarks/files/found.py FOLDER [--only mjcf|urdf|gltf] [--poses 5] [--match PATTERN]

FOLDER holds a checkout ``OWNER+NAME`` of each repository of REPOSITORIES (``--clone`` makes those that are missing,
with git). A file counts if the program that the format is of reads it: MuJoCo for MJCF, Pinocchio for URDF. It is then
read here, and the frames of all bodies are compared at random values of all joints, relative to the size of the model
(the largest coordinate, at least 1). For glTF, every file that is JSON of version 2 with nodes counts.

Prints the share that is read for each repository and format, every refusal with its reason, and the largest
difference. A process that a file ends, or that takes longer than a minute, is a refusal of the program that it was in.
"""

import argparse
import fnmatch
import json
import multiprocessing
import os
import re
import struct
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from common import machine, save, table, verdicts  # noqa: E402

REPOSITORIES = (  # what was compared last
    "DexRobot/dexrobot_urdf", "FFTAI/teleoperation", "Farama-Foundation/Gymnasium",
    "Farama-Foundation/Gymnasium-Robotics", "Farama-Foundation/Metaworld", "Gepetto/example-robot-data",
    "KhronosGroup/glTF-Blender-IO", "PKU-EPIC/DexGraspNet", "PickNikRobotics/ros2_robotiq_gripper",
    "RobotLocomotion/drake", "TetherIA/aero-hand-open", "bulletphysics/bullet3", "carlosferrazza/humanoid-bench",
    "deepmind/mujoco_menagerie", "dexsuite/dex-urdf", "gkjohnson/nasa-urdf-robots", "gkjohnson/urdf-loaders",
    "google-deepmind/dm_control", "google-deepmind/mujoco", "linker-bot/linkerhand-urdf", "openai/gym",
    "orcahand/orcahand_description", "pixiv/three-vrm", "pollen-robotics/AmazingHand", "robotology/icub-models",
    "ros-industrial/universal_robot", "ros-naoqi/pepper_robot", "shadow-robot/sr_common",
    "unitreerobotics/avp_teleoperate", "unitreerobotics/unitree_ros", "vikashplus/Adroit", "vikashplus/mj_envs",
    "vikashplus/robohive", "vrm-c/vrm-specification",
)  # fmt: skip
ENOUGH = 0.98  # share of the files
EXACT = 1e-12  # of the size of the model
MOST_SECONDS = 60.0
ENDINGS = {"mjcf": (".xml", ".mjcf"), "urdf": (".urdf", ".xml"), "gltf": (".gltf", ".glb", ".vrm")}
ROOTS = {"mjcf": re.compile(rb"<mujoco[\s>]"), "urdf": re.compile(rb"<robot[\s>]")}


def files(folder, kind):
    """Yield the files of a kind, by their endings and their root elements."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in ENDINGS[kind] or not path.is_file():
            continue
        if kind == "gltf" or ROOTS[kind].search(path.read_bytes()[:20_000]):
            yield path


def random_values(skeleton, seed):
    """Return a random pose in which free joints and slides without limits move as well."""
    import synovia as sy
    from synovia.model import Kind

    rng = np.random.default_rng(seed)
    q = skeleton.random_pose(seed).q.copy()
    for row, joint in enumerate(skeleton.joints):
        place = skeleton.q_slice(row)
        if joint.kind is Kind.FREE:
            quat = rng.normal(size=4)
            q[place] = [*rng.normal(size=3), *(quat / np.linalg.norm(quat))]
        elif joint.kind is Kind.SLIDE and joint.limit is None:
            q[place] = rng.normal()
    return sy.Pose(skeleton, skeleton.follow(q))


def body_rows(skeleton):
    """Return the row of each body by its name: the last of those that carry it."""
    return {joint.body: row for row, joint in enumerate(skeleton.joints) if joint.body}


def mjcf_frames(path):
    """Return a function that gives the frames of all bodies by name, (position, rotation); None if MuJoCo refuses."""
    import mujoco

    from synovia.model.simulators import mujoco_names, to_qpos

    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except Exception as error:  # noqa: BLE001  MuJoCo raises several types
        return None, " ".join(str(error).split())
    data, bodies = mujoco.MjData(model), mujoco_names(model)[0]

    def frames(pose):
        data.qpos[:] = to_qpos(pose, model)
        mujoco.mj_kinematics(model, data)
        return {name: (data.xpos[k], data.xmat[k].reshape(3, 3)) for k, name in enumerate(bodies)}

    return frames, ""


def urdf_frames(path):
    """Return a function that gives the frames of all links by name; None if Pinocchio refuses."""
    import pinocchio as pin

    from synovia.model.simulators import to_qpos

    try:
        model = pin.buildModelFromXML(path.read_text(errors="replace"))
    except Exception as error:  # noqa: BLE001  Pinocchio raises several types
        return None, " ".join(str(error).split())
    data = model.createData()
    links = {frame.name: k for k, frame in enumerate(model.frames) if frame.type == pin.FrameType.BODY}

    def frames(pose):
        pin.framesForwardKinematics(model, data, to_qpos(pose, model))
        return {name: (data.oMf[k].translation, data.oMf[k].rotation) for name, k in links.items()}

    return frames, ""


def gltf_counts(path):
    """Return whether a file is glTF 2 with nodes."""
    data = path.read_bytes()
    try:
        if data[:4] == b"glTF":
            (length,) = struct.unpack_from("<I", data, 12)
            data = data[20 : 20 + length]
        content = json.loads(data.decode("utf-8-sig"))
        return bool(content.get("nodes")) and str(content["asset"]["version"]).startswith("2")
    except (ValueError, KeyError, TypeError, AttributeError, struct.error):
        return False


def look(kind, path, poses):
    """Return what became of one file: a word and a reason, and the largest difference."""
    import synovia as sy

    frames = None
    if kind == "gltf":
        if not gltf_counts(path):
            return "elsewhere", "", 0.0
    else:
        frames, why = (mjcf_frames if kind == "mjcf" else urdf_frames)(path)
        if frames is None:
            return "elsewhere", why, 0.0
    yield_here()
    try:
        skeleton = sy.load_skeleton(path)
    except sy.SynoviaError as error:
        return "refused", str(error), 0.0
    if frames is None:
        from synovia.io.load import load_motions

        try:
            load_motions(path)
        except sy.SynoviaError as error:
            return "refused", str(error), 0.0
        return "read", "", 0.0
    skeleton = skeleton.with_loops(())  # random values leave loops open, in MuJoCo too
    rows, worst = body_rows(skeleton), 0.0
    for seed in range(poses):
        pose = random_values(skeleton, seed)
        there = frames(pose)
        missing = set(there) - set(rows)
        if missing:
            return "differs", f"bodies are missing: {sorted(missing)[:3]}", float("inf")
        size = max(1.0, *(float(np.abs(place).max()) for place, _ in there.values()))
        for name, (place, turn) in there.items():
            off = np.abs(pose.position(rows[name]) - place).max() / size
            worst = max(worst, float(off), float(np.abs(pose.matrix(rows[name]) - turn).max()))
    return ("read" if worst <= EXACT else "differs"), "", worst


def yield_here():
    """Tell the parent that the other program is done with the file."""
    PIPE.send("here")


PIPE = None


def serve(pipe, poses):
    """Answer for files until the pipe is closed."""
    global PIPE  # noqa: PLW0603  one pipe for a process
    PIPE = pipe
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stdout.fileno(), 2)
    while (asked := pipe.recv()) is not None:
        kind, path = asked
        try:
            pipe.send(look(kind, Path(path), poses))
        except Exception as error:  # noqa: BLE001  anything else is a mistake of ours
            pipe.send(("broken", f"{type(error).__name__}: {error}", float("inf")))


class Worker:
    """A process that may die of a file."""

    def __init__(self, poses):
        """Start the process."""
        self.poses = poses
        self.start()

    def start(self):
        """Start a new process."""
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.poses), daemon=True)
        self.process.start()
        other.close()

    def ask(self, kind, path):
        """Return what became of a file."""
        self.pipe.send((kind, str(path)))
        here = False
        try:
            while self.pipe.poll(MOST_SECONDS):
                answer = self.pipe.recv()
                if answer != "here":
                    return answer
                here = True
            reason = "takes longer than a minute"
        except EOFError:
            reason = "ends the process"
        self.process.kill()
        self.start()
        return ("broken" if here else "elsewhere"), reason, 0.0


def main():
    """Read everything, compare, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=[*ENDINGS])
    parser.add_argument("--match", default="*", help="only files whose path fits this pattern")
    parser.add_argument("--poses", type=int, default=5)
    parser.add_argument("--clone", action="store_true")
    options = parser.parse_args()
    where = machine()
    rows, bars, result, text = [], [], {}, []
    if options.clone:
        for name in REPOSITORIES:
            place = options.folder / name.replace("/", "+")
            if not place.exists():
                subprocess.run(["git", "clone", "--depth", "1", f"https://github.com/{name}", str(place)], check=False)
    worker = Worker(options.poses)
    for kind in [options.only] if options.only else [*ENDINGS]:
        total, trouble, worst = Counter(), [], 0.0
        for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
            count = Counter()
            for path in files(folder, kind):
                name = str(path.relative_to(options.folder))
                if not fnmatch.fnmatch(name, options.match):
                    continue
                what, why, off = worker.ask(kind, path)
                count[what] += 1
                if what == "read":
                    worst = max(worst, off)
                elif what != "elsewhere":
                    why = why.replace(f"{options.folder}/", "")
                    trouble.append((name, what, f"{why} {off:.1e}" if what == "differs" else why))
            total += count
            counted = sum(count.values()) - count["elsewhere"]
            if counted or count["elsewhere"]:
                rows.append([folder.name.replace("+", "/"), kind, counted, count["read"], count["elsewhere"]])
                print(rows[-1], file=sys.stderr, flush=True)
        counted = sum(total.values()) - total["elsewhere"]
        share = total["read"] / max(counted, 1)
        result[kind] = {"files": counted, "read": total["read"], "share": share, "worst": worst, "trouble": trouble}
        bars.append((f"{kind}: {total['read']} of {counted} files ({100 * share:.2f} %)", share >= ENOUGH))
        if kind != "gltf":
            bars.append((f"{kind}: frames within {worst:.1e} of the size", worst <= EXACT))
        text += ["\n".join(f"{kind} {name}: {what}: {why}" for name, what, why in trouble)] if trouble else []
    text.insert(
        0,
        table(["repository", "format", "files", "read", "refused by the other program, not counted"], rows),
    )
    lines, held = verdicts(bars)
    save("found", "Models as they are found", result, "\n\n".join([*text, lines]), where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
