"""Recorded walks on a character and on a robot: feet, limits, hands, how far links turn in a frame, frames a second.

    python benchmarks/retarget.py [--rounds 5]

Reads the models of ../shared/data. One thread. Times are processor times of ``sy.retarget`` from motion to
motion, the fastest of the rounds; contact is what the source's feet do.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from common import machine, needed_data, save, table, verdicts

import synovia as sy
from beyond import beyond_limits

CLIPS = ("cmu_07_01_walk", "pymo_8walk")
BODIES = ("character/mannequiny.glb", "robot/g1_29dof.urdf")


def turns(frames):
    """Return the rotation of every joint from frame to frame, (T - 1, n), radians."""
    R = frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    traces = np.einsum("tnij,tnij->tn", R[1:], R[:-1])
    return np.arccos(np.clip((traces - 1.0) / 2.0, -1.0, 1.0))


def judge(motion, skeleton, rounds):
    """Return the figures of one clip on one body."""
    seconds = []
    for _ in range(rounds + 1):  # the first compiles
        begun = time.process_time()
        answer = sy.retarget(motion, skeleton, threads=1)
        seconds.append(time.process_time() - begun)
    out, body = answer.motion, answer.motion.skeleton
    places, unit = out.positions(), body.meters_per_unit or 1.0
    slips = []
    for role, spans in answer.contacts.items():
        foot = places[:, answer.target.roles[role]]
        slips += [np.linalg.norm(foot[a:b] - np.median(foot[a:b], axis=0), axis=1).max() for a, b in spans]
    free = sy.retarget(motion, skeleton, hold_feet=False, threads=1).motion.positions()
    hands = [answer.target.roles[role] for role in ("left_hand", "right_hand") if role in answer.target.roles]
    way = np.linalg.norm(places[:, hands] - free[:, hands], axis=-1)
    before, after = turns(motion.frames()).max(0), turns(out.frames()).max(0)
    ratios = {part.role: after[part.target] / before[part.source] for part in answer.parts}
    most = max(ratios, key=ratios.get)
    return {
        "frames": len(out), "missed": len(answer.missed_frames), "foot_mm": 1e3 * unit * max(slips),
        "off_mm": 1e3 * unit * answer.worst, "hand_mm": 1e3 * unit * float(np.quantile(way, 0.99)),
        "violation": beyond_limits(body.tables, out.q), "turn_ratio": float(ratios[most]), "turn_part": most,
        "frames_per_second": len(out) / min(seconds[1:]),
    }  # fmt: skip


def main():
    """Carry every walk over to every body."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    where, data = machine(), needed_data()
    rows = []
    for body in BODIES:
        for clip in CLIPS:
            motion = sy.load_motion(data / "motion" / f"{clip}.bvh")
            rows.append({"clip": clip, "body": body, **judge(motion, sy.load_skeleton(data / body), options.rounds)})
    head = ["clip", "body", "frames", "missed", "foot_mm", "off_mm", "hand_mm", "violation", "turn_ratio", "turn_part",
            "frames_per_second"]  # fmt: skip
    cells = [[f"{v:.3g}" if isinstance(v := row[key], float) else v for key in head] for row in rows]
    robots = [row["frames_per_second"] for row in rows if row["body"].endswith(".urdf")]
    lines, held = verdicts([
        ("every frame is solved", not any(row["missed"] for row in rows)),
        ("feet stay within 5 mm while they stand", max(row["foot_mm"] for row in rows) < 5),
        ("no limit is violated", max(row["violation"] for row in rows) <= 1e-9),
        ("no link turns in a frame more than 1.5 times its source", max(r["turn_ratio"] for r in rows) <= 1.5),
        (f"2,000 frames a second on one core for the robot: {min(robots):,.0f}", min(robots) >= 2000),
    ])  # fmt: skip
    text = table([name.replace("_", " ") for name in head], cells)
    save("retarget", "Walks on other bodies", {"rows": rows}, f"{text}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
