"""Targets that sweep beyond reach: does the tip slide along, without a rest and without a hop that is not listed?

    python benchmarks/sliding.py [--sweeps 200] [--frames 60] [--seed 1] [--only TEXT]

Each sweep is an arc about the centre of reach (the place of the first joint that moves), 1.05 to 3 reaches away, which
turns by 1e-4 to 0.1 radians a frame; it goes to ``fabrik``, ``ccd`` and ``particles``, from the rest pose or a random
one. Bodies: random chains of balls and of hinges, the bundled models, and robots and characters of ../shared/data.

- least: the smallest step of a tip beside its target's; half: steps below half of the median of their sweep;
- rests: frames whose tip moves by less than a thousandth of its target, although ``lm`` from the same pose comes
  nearer by more than a thousandth of the target's step. (In a corner of limits, or where a target moves straight away
  from a tip, the nearest place itself hardly moves.)
- above: steps above three times the target's; listed: how many of these are in ``jumps``.
"""

import argparse

import numpy as np
from common import data_folder, machine, save, table, verdicts

import synovia as sy

SOLVERS = ("fabrik", "ccd", "particles")
LARGEST = 3.0  # steps of the tip, in its target's
SMALL = 1e-3
TURN = 1e-4  # radians a frame: the slowest sweep
FILES = {
    "robot/panda.urdf": "panda_link8", "robot/ur5_robot.urdf": "ee_link", "robot/ur5e_nomesh.xml": "wrist_3_link",
    "robot/irb6700_235_265.urdf": "tool0", "robot/so100.urdf": "link:gripper",
    "robot/g1_29dof.urdf": "left_hand", "character/mannequiny.glb": "right_hand",
    "motion/rokoko_jesse_dance.bvh": "left_hand", "motion/lafan1_walk1_head.bvh": "right_foot",
}  # fmt: skip


def chain(seed):
    """Return a random chain, and its tip."""
    rng = np.random.default_rng(seed)
    joints = []
    for k in range(int(rng.integers(3, 9)) + 1):
        kind = sy.Kind.HINGE if seed % 2 else sy.Kind.BALL
        frame = np.eye(4)
        frame[:3, 3] = rng.normal(size=3) * (k > 0)
        axis = rng.normal(size=3)
        joints.append(sy.Joint(f"j{k}", f"j{k - 1}" if k else None, kind, frame, axis=axis / np.linalg.norm(axis)))
    return sy.Skeleton(joints), joints[-1].name


def bodies():
    """Return bodies and their tips by name."""
    out = {f"chain {k}": chain(k) for k in range(8)}
    out |= {
        "arm7": (sy.bundled("arm7"), "tool"),
        "humanoid, hand": (sy.bundled("humanoid"), "left_hand"),
        "humanoid, foot": (sy.bundled("humanoid"), "right_foot"),
    }
    for path, tip in FILES.items():
        if (data_folder() / path).exists():
            skeleton = sy.load_skeleton(data_folder() / path)
            out[path.split("/")[1]] = (skeleton, tip)
    return out


def sweep(ik, start, rng, frames):
    """Return targets on an arc about the centre of reach, and its turn in a frame."""
    a, b = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
    turn = TURN * 10 ** rng.uniform(0.02, 3.0)
    angle = turn * np.arange(frames)[:, None]
    center = start.position(ik.skeleton.joint_names[min(ik.moving)])
    return center + rng.uniform(1.05, 3.0) * ik.reach * (np.cos(angle) * a + np.sin(angle) * b), turn


def nearer(lm, clip, tip, targets, frame):
    """Return how much nearer to its target ``lm`` brings the tip of a frame, in steps of the target."""
    pose = sy.Pose(lm.skeleton, clip.q[frame])
    found = lm.solve({tip: targets[frame]}, start=pose, follow=True).pose
    off = [np.linalg.norm(targets[frame] - one.position(tip)) for one in (pose, found)]
    return (off[0] - off[1]) / np.linalg.norm(targets[frame] - targets[frame - 1])


def main():
    """Track all sweeps with all solvers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=200, help="of each solver")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="bodies whose name contains this")
    options = parser.parse_args()
    where, all_bodies = machine(), [(n, *one) for n, one in bodies().items() if options.only in n]
    rows, bad = [], []
    for solver in SOLVERS:
        total = {"frames": 0, "least": np.inf, "half": 0, "rests": 0, "above": 0, "listed": 0}
        for k in range(options.sweeps):
            name, body, tip = all_bodies[k % len(all_bodies)]
            rng = np.random.default_rng((options.seed, k))
            ik = sy.IK(body, sy.PositionGoal(tip), solver)
            start = body.rest_pose() if rng.random() < 0.3 else body.random_pose(k)
            targets, turn = sweep(ik, start, rng, options.frames)
            clip = ik.track({tip: targets}, start)
            tips = np.array([sy.Pose(ik.skeleton, q).position(tip) for q in clip.q])
            steps = np.linalg.norm(np.diff(tips, axis=0), axis=1) / np.linalg.norm(np.diff(targets, axis=0), axis=1)
            above = {*(np.flatnonzero(steps > LARGEST) + 1).tolist()}
            still = (np.flatnonzero(steps < SMALL) + 1).tolist()
            lm = sy.IK(body, sy.PositionGoal(tip), "lm") if still else None
            rests = [frame for frame in still if nearer(lm, clip, tip, targets, frame) > SMALL]
            hidden = sorted(above - {*clip.jumps})
            total["frames"] += len(steps)
            total["least"] = min(total["least"], float(steps.min()))
            total["half"] += int(np.sum(steps < 0.5 * np.median(steps)))
            total["rests"] += len(rests)
            total["above"] += len(above)
            total["listed"] += len(above) - len(hidden)
            if rests or hidden or clip.reached.any():
                bad.append([k, name, solver, f"{turn:.1e}", len(rests), len(above), len(hidden), f"{steps.max():.1f}"])
                print(*bad[-1], sep=" | ", flush=True)
        rows.append([solver, options.sweeps, total["frames"], f"{total['least']:.1e}", *list(total.values())[2:]])
        print(*rows[-1], sep=" | ", flush=True)
    rest, hidden = sum(row[5] for row in rows), sum(row[6] - row[7] for row in rows)
    lines, held = verdicts([
        (f"the tip is never still: {rest} rests", not rest),
        (f"steps above {LARGEST:.0f} times the target's are listed in jumps: {hidden} are not", not hidden),
    ])  # fmt: skip
    text = f"Bodies: {', '.join(name for name, *_ in all_bodies)}.\n\n"
    text += table(["solver", "sweeps", "frames", "least", "half", "rests", "above", "listed"], rows)
    head = ["sweep", "body", "solver", "turn", "rests", "above", "hidden", "largest"]
    text += (f"\n\n{table(head, bad)}" if bad else "") + f"\n\n{lines}"
    save("sliding", "Sweeps beyond reach", {"rows": rows, "bad": bad}, text, where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
