"""Mechanisms with loops: closed in every answer, reached targets, and times beside the same trees without loops.

    python benchmarks/loops.py [--targets 10000] [--frames 10000]

The mechanisms are those of ``tests/mechanisms.py``, the xArm hand of the real models, and, with ``--model FILE JOINT``,
others. Targets are places of a point in random closed poses; one in ten is moved far away, so that it is missed. The
same targets are solved for the tree without loops. Tracks follow a point on a way through random closed poses.

What the loops lack is measured apart from the solver, in reaches or radians. For models that MuJoCo reads, its own
residual of the constraints is measured too.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from common import data_folder, machine, save, table, verdicts

import synovia as sy
from synovia.model.change import blend
from synovia.model.pose import random_values

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mechanisms import MECHANISMS

CLOSED = 1e-9
BRANCH = 0.5  # radians or reaches of a joint in a frame of a track, above which it must be a listed jump
STEPS = 25  # frames from one random pose to the next


def bodies(models):
    """Yield a name, a skeleton, a joint, a point on it, and the file."""
    for name, (make, joint, offset) in MECHANISMS.items():
        yield name, make(), joint, offset, None
    hand = data_folder() / "robot" / "xarm7_hand_nomesh.xml"
    if hand.exists():
        yield "xArm hand", sy.load_skeleton(hand), "right_finger", (0.0, 0.0, 0.0), hand
    for file, joint in models:
        yield Path(file).stem, sy.load_skeleton(file), joint, (0.0, 0.0, 0.0), Path(file)


def timed(ik, targets):
    """Return the solutions of targets, and the median time of a solve, µs."""
    ik.solve(targets[0])
    times, found = [], []
    for target in targets:
        begun = time.perf_counter()
        found.append(ik.solve(target))
        times.append(time.perf_counter() - begun)
    return found, 1e6 * float(np.median(times))


def branch_changes(track):
    """Return the frames in which a joint goes far and that are not listed as jumps."""
    far = np.abs(np.diff(track.q, axis=0)).max(axis=1) > BRANCH
    return sorted({k + 1 for k in np.flatnonzero(far).tolist()} - set(track.jumps))


def mujoco_lack(file, q):
    """Return MuJoCo's largest residual of equalities at poses of its model."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    skeleton = sy.load_skeleton(file)
    worst = 0.0
    for values in q:
        data.qpos[:] = sy.to_qpos(sy.Pose(skeleton, values), model)
        mujoco.mj_forward(model, data)
        equal = data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        worst = max(worst, float(np.abs(data.efc_pos[: data.nefc][equal]).max(initial=0.0)))
    return worst


def main():
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10000, help="of each mechanism and solver")
    parser.add_argument("--frames", type=int, default=10000, help="of the track of each mechanism")
    parser.add_argument(
        "--model", nargs=2, action="append", default=[], metavar=("FILE", "JOINT"), help="another model"
    )
    options = parser.parse_args()
    where = machine()
    rows, found, bars = [], {}, []
    for name, body, joint, offset, file in bodies(options.model):
        mechanism = body.mechanism
        poses = random_values(body, options.targets, 17)
        places = np.array([sy.Pose.trusted(body, q.copy()).transform(joint) @ (*offset, 1.0) for q in poses])[:, :3]
        targets = places.copy()
        targets[::10] += 3.0 * mechanism.reach
        goal = sy.PositionGoal(joint, offset=offset)
        within = np.arange(len(targets)) % 10 != 0
        tree = body.with_loops([])
        for solver in ("lm", "full-body"):
            answers, median = timed(sy.IK(body, goal, solver), targets)
            _, plain = timed(sy.IK(tree, goal, solver), targets[within][:2000])
            _, levels = timed(sy.IK(tree, goal, "full-body"), targets[within][:2000])
            q = np.array([answer.pose.q for answer in answers])
            lack = float(mechanism.lacks(q).max())
            share = float(np.mean([a.reached for a, inside in zip(answers, within, strict=True) if inside]))
            inside = timed(sy.IK(body, goal, solver), targets[within][:2000])[1]
            residual = mujoco_lack(file, q[:2000]) if file else None
            row = [f"{name}, {solver}", len(targets), f"{100 * share:.2f} %", f"{inside:.0f}", f"{plain:.0f}"]
            row += [f"{inside / plain:.2f}", f"{inside / levels:.2f}", f"{lack:.1e}"]
            rows.append([*row, "" if residual is None else f"{residual:.1e}"])
            found[f"{name} {solver}"] = {
                "reached": share, "median_us": median, "plain_us": plain, "lack": lack, "mujoco": residual,
            }  # fmt: skip
            bars.append((f"{name}, {solver}: {lack:.1e} of the reach open, at most {CLOSED:g}", lack <= CLOSED))
            bars.append((f"{name}, {solver}: {100 * share:.2f} % reached, at least 99 %", share >= 0.99))
            bars.append(
                (f"{name}, {solver}: {inside / plain:.2f} times the tree without loops, at most 3", inside <= 3 * plain)
            )
        ways = random_values(body, options.frames // STEPS + 2, 23)
        track_poses = [ways[0]]
        free = ~mechanism.mobility.dependent
        for end in ways[1:]:
            begin = track_poses[-1]
            for k in range(1, STEPS + 1):
                there = blend(body, begin, end, k / STEPS)
                track_poses.append(mechanism.way(track_poses[-1][None], there[None], free)[0][0])
        path = np.array([sy.Pose.trusted(body, q.copy()).transform(joint) @ (*offset, 1.0) for q in track_poses])[:, :3]
        track = sy.IK(body, goal).track(path[: options.frames])
        lack, changes = float(mechanism.lacks(track.q).max()), branch_changes(track)
        told = (
            f"{len(changes)} far moves not listed, {len(track.jumps)} jumps, {100 * track.reached.mean():.2f} % reached"
        )
        bars.append(
            (f"{name}, track of {len(track.q)} frames: {told}, {lack:.1e} open", not changes and lack <= CLOSED)
        )
        found[f"{name} track"] = {"unlisted": len(changes), "jumps": len(track.jumps), "lack": lack}
    heads = ["mechanism", "targets", "reached", "µs", "tree µs", "ratio", "to full-body", "open", "MuJoCo"]
    told, held = verdicts(bars)
    save("loops", "Mechanisms with loops", {**found, "held": held}, f"{table(heads, rows)}\n\n{told}", where)


if __name__ == "__main__":
    main()
