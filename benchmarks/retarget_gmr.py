"""Clips in LAFAN1's skeleton on a Unitree G1 beside GMR (YanjieZe/GMR): directions of limbs, steps, feet, time.

    python benchmarks/retarget_gmr.py [--answers DIR] [--pair ANSWER.npz CLIP.bvh ...] [--rounds 5]

``--answers`` is the folder of GMR's answers (else ../shared/peers/retarget): joint values ``Q``, positions ``P`` of the
bodies ``names``, the source's joints ``S_*``, and ``fps``, its frames a second on this machine. Clips and the robot are
those of the data folder; ``--pair`` names other answers with their clips. One thread; processor time, the fastest of
the rounds.

Directions are those of upper arms, forearms, thighs and shins, from joint to joint, after the best turn about the
vertical of the whole clip. A step is the turn of a hinge in one frame. Feet slide while the source's ankle stands.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from common import machine, needed_data, save, table, verdicts

import synovia as sy
from beyond import beyond_limits
from synovia.model.anatomy.contacts import find_contacts

PAIRS = (
    ("gmr_walk1_subject1_head.npz", "lafan1_walk1_head.bvh"),
    ("gmr_lafan_bandai2_walkturn.npz", "bandai2_walk_turn_lafan1.bvh"),
)
BONES = (  # begin and end, in the robot and in the source
    ("shoulder_pitch_link", "elbow_link", "Arm", "ForeArm"),
    ("elbow_link", "wrist_yaw_link", "ForeArm", "Hand"),
    ("hip_pitch_link", "knee_link", "UpLeg", "Leg"),
    ("knee_link", "ankle_roll_link", "Leg", "Foot"),
)
SIDES = ("left", "right")
UP = np.array([0.0, 0.0, 1.0])
LEG = 0.8  # metres, about, of people who are recorded


def directions(positions, pairs):
    """Return the directions (T, bones, 3) between joints of positions by name."""
    ways = np.stack([positions[b] - positions[a] for a, b in pairs], axis=1)
    return ways / np.linalg.norm(ways, axis=-1, keepdims=True)


def off(source, robot):
    """Return the mean angle, degrees, between directions (T, bones, 3) after the best turn about the vertical."""
    c = np.sum(source * robot) - np.sum((source @ UP) * (robot @ UP))
    s = np.sum(np.cross(source, robot) @ UP)
    turn = sy.Rotation.from_rotvec(np.arctan2(s, c) * UP).as_matrix()
    return float(np.degrees(np.arccos(np.clip(np.sum((source @ turn.T) * robot, axis=-1), -1.0, 1.0))).mean())


def slide(positions, contacts, fps):
    """Return the mean speed of the ankles in contact, millimetres a second."""
    speeds = [
        1e3 * fps * np.linalg.norm(np.diff(positions[f"{side}_ankle_roll_link"][a:b], axis=0), axis=1)
        for side in SIDES
        for a, b in contacts[side]
    ]
    return float(np.concatenate(speeds).mean()) if speeds else 0.0


def figures(positions, hinges, source, contacts, fps):
    """Return direction error, largest step and slide of one answer."""
    pairs = [(f"{side}_{a}", f"{side}_{b}") for side in SIDES for a, b, _, _ in BONES]
    return {
        "direction_deg": off(source, directions(positions, pairs)),
        "step_deg": float(np.degrees(np.abs(np.diff(hinges, axis=0)).max())),
        "slide_mm_s": slide(positions, contacts, fps),
    }


def source_step(motion):
    """Return the largest turn of a joint of the source in one frame, degrees."""
    most = 0.0
    for row, joint in enumerate(motion.skeleton.joints):
        if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
            quats = motion.q[:, motion.skeleton.q_slice(row)][:, -4:]
            cosine = np.abs(np.sum(quats[1:] * quats[:-1], axis=1))
            most = max(most, float(2.0 * np.arccos(np.clip(cosine, 0.0, 1.0)).max()))
    return np.degrees(most)


def compare(answer, clip, robot, rounds):
    """Return the figures of GMR's answer and of Synovia's for one clip."""
    data, motion = np.load(answer), sy.load_motion(clip)
    joints = {name[2:]: data[name] for name in data.files if name.startswith("S_")}
    pairs = [(side.title() + a, side.title() + b) for side in SIDES for _, _, a, b in BONES]
    source = directions(joints, pairs)
    contacts = {
        side: find_contacts(joints[f"{side.title()}Foot"][:, None], UP, motion.fps, LEG).spans[0] for side in SIDES
    }
    theirs = dict(zip(data["names"].tolist(), np.moveaxis(data["P"], 1, 0), strict=True))
    gmr = figures(theirs, data["Q"][:, 7:], source, contacts, motion.fps) | {"fps": float(data["fps"])}
    seconds = []
    for _ in range(rounds + 1):  # the first compiles
        begun = time.process_time()
        made = sy.retarget(motion, robot, threads=1)
        seconds.append(time.process_time() - begun)
    out, body = made.motion, made.motion.skeleton
    places = out.positions()
    ours = {joint.body: places[:, row] for row, joint in enumerate(body.joints) if joint.body}
    hinges = [body.q_slice(row).start for row, joint in enumerate(body.joints) if joint.kind is sy.Kind.HINGE]
    mine = figures(ours, out.q[:, hinges], source, contacts, motion.fps) | {"fps": len(out) / min(seconds[1:])}
    extra = {"clip": Path(clip).stem, "frames": len(out), "source_step_deg": source_step(motion)}
    return extra | {"violation": beyond_limits(body.tables, out.q), "gmr": gmr, "synovia": mine}


def main():
    """Compare every clip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = Path(os.environ.get("SYNOVIA_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data").parent
    parser.add_argument("--answers", type=Path, default=shared / "peers" / "retarget")
    parser.add_argument("--pair", nargs=2, action="append", type=Path, metavar=("ANSWER.npz", "CLIP.bvh"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    where, data = machine(), needed_data()
    pairs = options.pair or [(options.answers / a, data / "motion" / b) for a, b in PAIRS]
    if missing := [str(path) for pair in pairs for path in pair if not Path(path).is_file()]:
        raise SystemExit(f"retarget_gmr: no file {', '.join(missing)}; name answers and clips with --pair")
    robot = sy.load_skeleton(data / "robot" / "g1_29dof.urdf")
    rows = [compare(answer, clip, robot, options.rounds) for answer, clip in pairs]
    head = ["clip", "frames", "", "directions °", "largest step °", "feet slide mm/s", "frames a second"]
    cells = [
        [row["clip"], row["frames"], name, *(f"{row[key][k]:.3g}" for k in ("direction_deg", "step_deg", "slide_mm_s")),
         f"{row[key]['fps']:,.0f}"]
        for row in rows
        for key, name in (("gmr", "GMR"), ("synovia", "Synovia"))
    ]  # fmt: skip
    both = [(row["gmr"], row["synovia"]) for row in rows]
    steps = [row["synovia"]["step_deg"] <= max(row["gmr"]["step_deg"], row["source_step_deg"]) for row in rows]
    lines, held = verdicts([
        ("directions are at most as far off as GMR's", all(s["direction_deg"] <= g["direction_deg"] for g, s in both)),
        ("no step is larger than GMR's largest or the source's", all(steps)),
        ("feet slide at most a tenth of GMR's", all(s["slide_mm_s"] <= 0.1 * g["slide_mm_s"] for g, s in both)),
        ("ten times its frames a second", all(s["fps"] >= 10.0 * g["fps"] for g, s in both)),
        ("no limit is violated", max(row["violation"] for row in rows) <= 1e-9),
    ])  # fmt: skip
    text = table(head, cells)
    save("retarget_gmr", "Clips on a Unitree G1 beside GMR", {"rows": rows}, f"{text}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
