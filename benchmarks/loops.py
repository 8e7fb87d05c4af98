"""Mechanisms with loops: closed in every answer, reached targets, and times beside the same trees without loops.

    python benchmarks/loops.py [--targets 10000] [--frames 10000]

The mechanisms are those of ``tests/mechanisms.py``, the xArm hand of the real models, and, with ``--model FILE JOINT``,
others. Targets are places of a point in random closed poses; one in ten is moved far away, so that it is missed. The
same targets are solved for the tree without loops. Tracks follow a point on a way through random closed poses, and of
linkages with equal bars through or close to poses where their assemblies meet (change points).

A frame of a track changes its assembly if no fine way leads to it from the frame before. Two ways are tried: targets
that move there in small steps, each solved from the one before, must end in the same pose; or poses on the straight way
of the joints, closed one after the other, keep the point within a step of its path. Fast motion, and motion through a
pose where assemblies meet, has such a way; a leap to another assembly has none. Frames are judged so where a sign of
the assembly changes (of the determinant of the loops' derivative by the joints that follow), and where steps are the
largest.

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
from synovia.kernels.layout import BLOCK, SCALAR
from synovia.model.change import blend
from synovia.model.pose import random_values

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mechanisms import MECHANISMS, five_bar, four_bar, slider_crank

CLOSED = 1e-9
FINE = 20  # steps of a fine way from one frame to the next
ANOTHER = 0.05  # radians or length units: poses that differ by more are of different assemblies
ONE = 0.5  # of the step of a frame: a fine step that is larger is a change of assembly
STEPS = 25  # frames from one random pose to the next


def change_points():
    """Return linkages with poses where assemblies meet: body, joint and point by name."""
    return {
        "parallelogram": (four_bar(2.0, 1.0, 2.0, 1.0), "coupler", (1.0, 0.3, 0.0)),
        "equal slider-crank": (slider_crank(1.0, 1.0), "rod", (0.5, 0.2, 0.0)),
    }


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


def sides(mechanism, q):
    """Return the sign of the assembly at poses (T, nq): of the determinant of the derivative by dependent joints."""
    _, J = mechanism.rows(q)
    sizes = [1 if block == SCALAR else 3 for block in mechanism.variables[:, BLOCK]]
    follows = np.repeat(mechanism.mobility.dependent, sizes)
    count = int(follows.sum())
    turns, values, _ = np.linalg.svd(J[:, :, follows])
    general = turns[int(np.argmax(values[:, count - 1]))][:, :count]  # rows that others do not depend on, there
    return np.linalg.slogdet(np.swapaxes(general, 0, 1) @ J[:, :, follows])[0]


def largest_change(body, a, b):
    """Return the largest change of a joint value between poses (..., nq); quaternions of either sign are the same."""
    change = np.abs(a - b)
    for block, at, _ in body.tables.variables.tolist():
        if block != SCALAR:
            part = slice(at, at + 4)
            change[..., part] = np.minimum(change[..., part], np.abs(a + b)[..., part])
    return change.max(axis=-1)


def branch_changes(ik, path, track):
    """Return the frames in which a track of a path (T, 3) changes its assembly and that are not listed as jumps."""
    body, q = ik.skeleton, np.array(track.q)
    signs, step = sides(body.mechanism, q), largest_change(body, q[1:], q[:-1])
    asked = (signs[1:] != signs[:-1]) | (step > max(np.quantile(step, 0.99), ANOTHER))
    out = []
    for k in np.flatnonzero(asked & (step > ANOTHER)).tolist():
        share = np.linspace(0.0, 1.0, FINE + 1)[1:]
        line = path[k] + share[:, None] * (path[k + 1] - path[k])
        fine = np.array(ik.track(line, start=sy.Pose.trusted(body, q[k].copy())).q)
        ends = np.repeat(q[k : k + 1], FINE, axis=0), np.repeat(q[k + 1 : k + 2], FINE, axis=0)
        straight = body.mechanism.shut_clip(blend(body, *ends, share), anchors=ends[0])
        off = np.linalg.norm(points_of(ik, straight) - line, axis=1).max()
        steps = [largest_change(body, one, np.concatenate([q[k : k + 1], one[:-1]])).max() for one in (fine, straight)]
        same = largest_change(body, fine[-1], q[k + 1]) <= ANOTHER and steps[0] <= ONE * step[k]
        through = off <= np.linalg.norm(path[k + 1] - path[k]) and steps[1] <= ONE * step[k]
        if not (same or through) and k + 1 not in track.jumps:
            out.append(k + 1)
    return out


def points_of(ik, q):
    """Return where the point of a goal is at poses (T, nq), (T, 3)."""
    goal = ik.goals[0]
    return np.array([sy.Pose.trusted(ik.skeleton, one.copy()).transform(goal.joint) @ goal.frame[:, 3] for one in q])[
        :, :3
    ]


def way_through(body, joint, offset, frames):
    """Return the path of a point on a way through random closed poses, (frames, 3)."""
    mechanism = body.mechanism
    ways = random_values(body, frames // STEPS + 2, 23)
    poses, free = [ways[0]], ~mechanism.mobility.dependent
    for end in ways[1:]:
        begin = poses[-1]
        for k in range(1, STEPS + 1):
            there = blend(body, begin, end, k / STEPS)
            poses.append(mechanism.way(poses[-1][None], there[None], free)[0][0])
    path = [sy.Pose.trusted(body, q.copy()).transform(joint) @ (*offset, 1.0) for q in poses[:frames]]
    return np.array(path)[:, :3]


def judge_track(name, body, goal, path, found, bars, start=None):
    """Follow a path (T, 3), and note whether the track is closed and changes its assembly only in jumps."""
    ik = sy.IK(body, goal)
    track = ik.track(path, start=start)
    lack, changes = float(body.mechanism.lacks(np.array(track.q)).max()), branch_changes(ik, path, track)
    told = (
        f"{len(changes)} changes of assembly not listed, {len(track.jumps)} jumps,"
        f" {100 * track.reached.mean():.2f} % reached"
    )
    bars.append((f"{name}, track of {len(track.q)} frames: {told}, {lack:.1e} open", not changes and lack <= CLOSED))
    found[f"{name} track"] = {"unlisted": len(changes), "jumps": len(track.jumps), "lack": lack}


def near_singular(frames, found, bars):
    """Judge tracks through poses where assemblies meet, and past poses in which both arms of a five-bar are folded."""
    for name, (body, joint, offset) in change_points().items():
        path = way_through(body, joint, offset, frames)
        judge_track(name, body, sy.PositionGoal(joint, offset=offset), path, found, bars)
    body = five_bar()  # its arms are folded, and its forearms in a line, where the point is in the middle of both bases
    start = sy.close_loops(body, {"left": 3.0, "left_forearm": -2.7, "right": 0.14, "right_forearm": 2.7})
    path = np.zeros((frames, 3))
    path[:, 0] = 0.5
    path[:, 1] = np.cos(np.linspace(0.0, 2.0 * np.pi * frames / 400.0, frames))
    judge_track(
        "folded five-bar", body, sy.PositionGoal("left_forearm", offset=(1.5, 0.0, 0.0)), path, found, bars, start
    )


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
        judge_track(name, body, goal, way_through(body, joint, offset, options.frames), found, bars)
    near_singular(options.frames, found, bars)
    heads = ["mechanism", "targets", "reached", "µs", "tree µs", "ratio", "to full-body", "open", "MuJoCo"]
    told, held = verdicts(bars)
    save("loops", "Mechanisms with loops", {**found, "held": held}, f"{table(heads, rows)}\n\n{told}", where)


if __name__ == "__main__":
    main()
