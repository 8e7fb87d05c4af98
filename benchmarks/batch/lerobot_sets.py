"""Data sets that LeRobot's own package writes: joints become poses of the end effector, and come back.

    python benchmarks/batch/lerobot_sets.py [--episodes 5] [--frames 300]

LeRobot records data sets of an SO-100 and a Panda. Synovia adds the poses of their tools, then joints that follow these
poses through ``track`` from the first frame of each episode. LeRobot opens the results again. Joints of the SO-100 must
come back within 1e-4 rad; the Panda has a joint to spare, so its tool must. No frame may be out by a jump. Needs
``pip install lerobot==0.4.4 "synovia[data]"``, in an environment of its own.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset

import synovia as sy
from synovia.lerobot import Arm, add_joints, add_poses

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import machine, needed_data, save, table

CLOSE = 1e-4  # radians
FPS = 30
SO100 = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")


def record(root, motors, low, high, share, degrees, episodes, frames):
    """Let LeRobot write a data set of smooth random motions over a share of the joints' ranges, about their middle."""
    feature = {"dtype": "float32", "shape": (len(motors),), "names": list(motors)}
    features = {"action": feature, "observation.state": feature}
    dataset = LeRobotDataset.create("local/made", FPS, features, root=root, use_videos=False)
    rng = np.random.default_rng(3)
    t = np.arange(frames)[:, None] / FPS
    for _ in range(episodes):
        waves = np.sin(rng.uniform(0.3, 1.2, len(low)) * t + rng.uniform(0.0, 6.3, len(low)))
        q = (low + high + share * (high - low) * waves) / 2.0
        rows = np.column_stack([np.degrees(q) if degrees else q, np.full(frames, 20.0)]).astype(np.float32)
        for row in rows:
            dataset.add_frame({"action": row, "observation.state": row, "task": "wave"})
        dataset.save_episode()
    dataset.finalize()


def column_of(root, name):
    """Return a column as LeRobot reads it."""
    dataset = LeRobotDataset("local/made", root=root)
    return torch.stack([dataset[k][name] for k in range(len(dataset))]).numpy(), dataset


def main():
    """Record, convert, open again and compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--frames", type=int, default=300)
    given = parser.parse_args()
    where, data = machine(), needed_data()
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, count, degrees in (("so100", 5, True), ("panda", 7, False)):
            body = sy.load_skeleton(data / "robot" / f"{name}.urdf")
            chain = [row for row, joint in enumerate(body.joints) if joint.kind is sy.Kind.HINGE][:count]
            joints = [body.joints[row].name for row in chain]
            motors = [f"{motor}.pos" for motor in (SO100 if name == "so100" else [*joints, "hand"])]
            at = [body.q_slice(row).start for row in chain]
            arm = Arm(
                body, joints[-1], None if name == "so100" else dict(zip(motors, joints, strict=False)), degrees=degrees
            )
            made, posed, back = (Path(folder) / f"{name}{part}" for part in ("", "_ee", "_back"))
            low, high = (limit[at] for limit in body.limits)
            share = 0.6 if name == "so100" else 0.3  # a Panda that moves farther passes singular poses
            record(made, motors, low, high, share, degrees, given.episodes, given.frames)
            add_poses(made, posed, arm, column="action", into="action.ee")
            done = add_joints(posed, back, arm, column="action.ee", into="action.ik", start="action")
            before, _ = column_of(made, "action")
            again, dataset = column_of(back, "action.ik")
            unit = np.degrees(1.0) if degrees else 1.0
            away = np.abs(again - before)[:, :count] / unit
            q = np.tile(body.rest_q, (2, len(before), 1))
            q[0][:, at], q[1][:, at] = before[:, :count] / unit, again[:, :count] / unit
            frames = [sy.Motion(body, each, FPS).frames()[:, body.index(joints[-1])] for each in q]
            tool = np.abs(frames[0][:, 9:] - frames[1][:, 9:]).max()
            steps = np.abs(np.diff(q[1].reshape(given.episodes, given.frames, -1), axis=1)).max()
            mean = np.abs(dataset.meta.stats["action.ik"]["mean"] - again.mean(axis=0)).max()
            reached = done.statuses == {"REACHED": len(before)}
            wrong += not reached or bool(done.jumps) or tool > CLOSE or mean > CLOSE * unit
            wrong += name == "so100" and away.max() > CLOSE
            rows.append(
                [name, len(before), str(reached), len(done.jumps), f"{away.max():.1e}", f"{tool:.1e}", f"{steps:.2f}"]
            )
    head = ["", "frames", "all reached", "jumps", "joints away, rad", "tool away, m", "largest step, rad"]
    save("batch_lerobot", "Data sets of LeRobot", {"rows": rows}, table(head, rows), where)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
