"""Mechanisms with loops beside closed-chain-ik and Drake: time of a solve, targets reached, and what loops lack.

    python benchmarks/loops_peers.py --node FOLDER --env venvs/drake/bin/python

FOLDER has ``npm install closed-chain-ik``. The mechanisms are those of ``tests/mechanisms.py``, and the xArm hand of
the real models. Targets are places of a point in random closed poses. Each library gets the same targets and the same
starts: the rest pose (``cold``), or a closed pose beside the one of the target (``warm``). Each runs in a process of
its own; they take turns.

Answers are judged by NumPy kinematics of this script: an answer counts if the point is within 1e-4 of the reach of its
target, all loops and couplings lack at most 1e-4 of the reach, and joints are within their limits, but for 1e-6. Clock:
from the call with a target to its answer, without setting the start. closed-chain-ik computes in single precision, and
couples no joints: the mimic joint of the hand is not asked of it, and not judged there.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

NEAR = 1e-4  # of the reach
SLACK = 1e-6
AIM = 0.5  # of NEAR: where peers stop
MOST = 300  # iterations of closed-chain-ik
ASIDE = 0.1  # of the way to another random pose: the start of a warm solve
ROUNDS = 2
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PEERS = ("closed-chain-ik", "Drake")


# --- what is solved -------------------------------------------------------------------------------------------------


def described(body, goal_row, offset):
    """Return a body with loops as plain values."""
    joints = []
    for row, joint in enumerate(body.joints):
        at = body.q_slice(row)
        low, high = (ends[at].tolist() for ends in body.limits)
        known = [[None if abs(x) > 1e15 else x for x in ends] for ends in (low, high)]
        joints.append({
            "name": f"j{row}", "parent": body.parents[row], "kind": joint.kind.name, "rest": joint.rest.tolist(),
            "axis": joint.axis.tolist(), "at": at.start, "low": known[0], "high": known[1],
        })  # fmt: skip
    loops = []
    for tie in body.loops:
        (a, first), (b, second) = tie.ends(body)
        loops.append([a, first[:3, 3].tolist(), b, second[:3, 3].tolist(), tie.kind, tie.distance or 0.0])
    t = body.tables
    mimics = [[int(f), int(a), *map(float, c)] for (f, a), c in zip(t.followers, t.coupling, strict=True)]
    return {"joints": joints, "loops": loops, "mimics": mimics, "nq": body.nq, "goal": [goal_row, list(offset)],
            "reach": body.mechanism.reach}  # fmt: skip


def about(axis, angle):
    """Return rotations about an axis, (n, 3, 3)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.eye(3) + s * K + (1.0 - c) * (K @ K)


def of_quaternion(q):
    """Return rotations of quaternions xyzw, (n, 3, 3)."""
    x, y, z, w = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def forward(model, q):
    """Return the world frames of all joints at poses (n, nq), (n, joints, 4, 4)."""
    out = np.empty((len(q), len(model["joints"]), 4, 4))
    for row, joint in enumerate(model["joints"]):
        T, at = np.tile(np.array(joint["rest"]), (len(q), 1, 1)), joint["at"]
        if joint["kind"] == "HINGE":
            T[:, :3, :3] = T[:, :3, :3] @ about(joint["axis"], q[:, at])
        elif joint["kind"] == "SLIDE":
            T[:, :3, 3] += q[:, at, None] * (T[0, :3, :3] @ joint["axis"])
        elif joint["kind"] == "FREE":
            T[:, :3, 3] += q[:, at : at + 3] @ T[0, :3, :3].T
            T[:, :3, :3] = T[:, :3, :3] @ of_quaternion(q[:, at + 3 : at + 7])
        out[:, row] = T if joint["parent"] < 0 else out[:, joint["parent"]] @ T
    return out


def points(frames, row, local):
    """Return a point on a joint, (n, 3); row -1 is the world."""
    if row < 0:
        return np.tile(local, (len(frames), 1))
    return frames[:, row, :3, :3] @ np.array(local) + frames[:, row, :3, 3]


def judged(model, q, targets, *, couples=True):
    """Return which poses (n, nq) reach their targets, and what loops and couplings lack, reaches, (n,)."""
    frames = forward(model, q)
    gaps = [np.zeros(len(q))]
    for a, p, b, r, kind, far in model["loops"]:
        away = np.linalg.norm(points(frames, a, p) - points(frames, b, r), axis=1)
        gaps.append((np.abs(away - far) if kind == "distance" else away) / model["reach"])
    for follower, leader, ratio, shift in model["mimics"] if couples else ():
        gaps.append(np.abs(q[:, follower] - ratio * q[:, leader] - shift))
    gap = np.max(gaps, axis=0)
    off = np.linalg.norm(points(frames, *model["goal"]) - targets, axis=1) / model["reach"]
    inside = np.ones(len(q), bool)
    for joint in model["joints"]:
        for k, (low, high) in enumerate(zip(joint["low"], joint["high"], strict=True)):
            value = q[:, joint["at"] + k]
            inside &= (low is None or value >= low - SLACK) & (high is None or value <= high + SLACK)
    return (off <= NEAR) & (gap <= NEAR) & inside, gap


# --- libraries, each in a process of its own ------------------------------------------------------------------------


def drake(model):
    """Return what solves a model by Drake's optimisation (SNOPT), from its own description of the mechanism."""
    from pydrake.all import (
        FixedOffsetFrame,
        InverseKinematics,
        MultibodyPlant,
        PrismaticJoint,
        RevoluteJoint,
        RigidTransform,
        SnoptSolver,
        SpatialInertia,
        WeldJoint,
    )

    plant, bodies = MultibodyPlant(0.0), []
    for joint in model["joints"]:
        body = plant.AddRigidBody(joint["name"], SpatialInertia.SolidSphereWithMass(1.0, 0.1))
        above = plant.world_body() if joint["parent"] < 0 else bodies[joint["parent"]]
        bodies.append(body)
        rest = RigidTransform(np.array(joint["rest"]))
        if joint["kind"] == "FREE":
            continue
        frame = plant.AddFrame(FixedOffsetFrame(f"{joint['name']}_rest", above.body_frame(), rest))
        if joint["kind"] == "FIXED":
            plant.AddJoint(WeldJoint(joint["name"], frame, body.body_frame(), RigidTransform()))
            continue
        kind = RevoluteJoint if joint["kind"] == "HINGE" else PrismaticJoint
        ends = [-np.inf if joint["low"][0] is None else joint["low"][0]]
        ends.append(np.inf if joint["high"][0] is None else joint["high"][0])
        plant.AddJoint(kind(joint["name"], frame, body.body_frame(), np.array(joint["axis"]), *ends))
    plant.Finalize()
    places = {}  # of each number of ours in Drake's
    free = next((row for row, joint in enumerate(model["joints"]) if joint["kind"] == "FREE"), None)
    for row, joint in enumerate(model["joints"]):
        if joint["kind"] in ("HINGE", "SLIDE"):
            places[joint["at"]] = plant.GetJointByName(joint["name"]).position_start()
        elif joint["kind"] == "FREE":
            begin = bodies[row].floating_positions_start()
            places |= {joint["at"] + k: begin + to for k, to in enumerate((4, 5, 6, 1, 2, 3, 0))}
    ours, theirs = np.array(list(places)), np.array(list(places.values()))
    shift = np.zeros(model["nq"])
    if free is not None:  # rest frames of free joints are not turned
        at = model["joints"][free]["at"]
        shift[at : at + 3] = np.array(model["joints"][free]["rest"])[:3, 3]
    world, snopt = plant.world_frame(), SnoptSolver()

    def frame_of(row):
        return world if row < 0 else bodies[row].body_frame()

    half = AIM * NEAR * model["reach"] / np.sqrt(3.0)

    def solve(target, start):
        ik = InverseKinematics(plant)
        program, q = ik.get_mutable_prog(), ik.q()
        for a, p, b, r, kind, far in model["loops"]:
            if kind == "distance":
                ik.AddPointToPointDistanceConstraint(frame_of(a), np.array(p), frame_of(b), np.array(r), far, far)
            else:
                ik.AddPositionConstraint(frame_of(b), np.array(r), frame_of(a), np.array(p), np.array(p))
        for follower, leader, ratio, more in model["mimics"]:
            row = np.array([[1.0, -ratio]])
            program.AddLinearEqualityConstraint(row, [more], [q[places[follower]], q[places[leader]]])
        row, local = model["goal"]
        ik.AddPositionConstraint(frame_of(row), np.array(local), world, target - half, target + half)
        first = np.zeros(len(q))
        first[theirs] = (start + shift)[ours]
        result = snopt.Solve(program, first, None)
        out = np.zeros(model["nq"])
        out[ours] = result.GetSolution(q)[theirs]
        return out - shift

    return solve, np.array


def synovia(model):
    """Return what solves a model by this library."""
    import synovia as sy

    body, joint, offset = bodies()[model["name"]]
    ik = sy.IK(body, sy.PositionGoal(joint, offset=offset), tolerance=(AIM * NEAR * model["reach"], 1e-3))

    def solve(target, start):
        return ik.solve(target, start=start).pose.q

    return solve, lambda q: sy.Pose(body, q)


def bodies():
    """Return the mechanisms: body, joint and point by name."""
    from common import data_folder

    import synovia as sy

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from mechanisms import MECHANISMS

    out = {name: (make(), joint, offset) for name, (make, joint, offset) in MECHANISMS.items()}
    hand = data_folder() / "robot" / "xarm7_hand_nomesh.xml"
    if hand.exists():
        out["xArm hand"] = sy.load_skeleton(hand), "right_finger", (0.0, 0.0, 0.0)
    return out


def child(name):
    """Be the process of one library: read models with targets and starts, write answers and times (µs)."""
    out = []
    for task in json.load(sys.stdin):
        model, targets, starts = task["model"], np.array(task["targets"]), np.array(task["starts"])
        solve, pose = {"Drake": drake, "synovia": synovia}[name](model)
        q, times, poses = [], [], [pose(start) for start in starts]
        solve(targets[0], poses[0])  # compiles, caches
        for target, start in zip(targets, poses, strict=True):
            begun = time.perf_counter_ns()
            q.append(solve(target, start).tolist())
            times.append(1e-3 * (time.perf_counter_ns() - begun))
        out.append({"q": q, "times": times})
    print(json.dumps(out))


# --- the run --------------------------------------------------------------------------------------------------------


def tasks(count):
    """Return the models with targets and starts, for each case and mechanism."""
    import synovia as sy
    from synovia.model.change import blend
    from synovia.model.pose import random_values

    out = []
    for name, (body, joint, offset) in bodies().items():
        model = described(body, body.locate(joint)[0], offset)
        model["name"] = name
        q = random_values(body, 2 * count, 17)
        poses, others = q[:count], q[count:]
        targets = [(sy.Pose(body, one).transform(joint) @ (*offset, 1.0))[:3].tolist() for one in poses]
        aside = body.mechanism.shut_clip(blend(body, poses, others, ASIDE), anchors=poses)
        for case, starts in (("cold", np.repeat(body.rest_q[None], count, axis=0)), ("warm", aside)):
            out.append({"case": case, "model": model, "targets": targets, "starts": starts.tolist()})
    return out


def main():
    """Measure and save."""
    from common import machine, save, table, verdicts

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default=None, help="Python of an environment with Drake")
    parser.add_argument("--node", default=None, help="folder with closed-chain-ik in its node_modules")
    parser.add_argument("--targets", type=int, default=200, help="of each mechanism and case")
    options = parser.parse_args()
    where, todo = machine(), tasks(options.targets)
    commands = {"synovia": [sys.executable, __file__, "--child", "synovia"]}
    if options.node:
        commands["closed-chain-ik"] = [
            "node",
            str(Path(__file__).parent / "peers" / "loops.mjs"),
            options.node,
            str(MOST),
        ]
    if options.env:
        commands["Drake"] = [options.env, __file__, "--child", "Drake"]
    rows, found, bars = [], {}, []
    text = json.dumps([{**task, "tolerance": AIM * NEAR * task["model"]["reach"]} for task in todo])
    answers = {}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            done = subprocess.run(
                command, input=text, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"{name}: {done.stderr[-1500:]}", flush=True)
                continue
            answers.setdefault(name, []).append(json.loads(done.stdout.splitlines()[-1]))
    for k, task in enumerate(todo):
        model, label = task["model"], f"{task['model']['name']}, {task['case']}"
        row = [label]
        for name in commands:
            if name not in answers:
                row += ["", "", ""]
                continue
            rounds = [one[k] for one in answers[name]]
            q = np.array(rounds[0]["q"])
            good, gap = judged(model, q, np.array(task["targets"]), couples=name != "closed-chain-ik")
            median = float(np.median(np.min([one["times"] for one in rounds], axis=0)))
            found[f"{label}, {name}"] = {
                "reached": float(good.mean()),
                "median_us": median,
                "gap": float(np.median(gap)),
            }
            row += [f"{100 * good.mean():.1f} %", f"{median:.0f}", f"{np.median(gap):.0e}"]
        rows.append(row)
        ours = found[f"{label}, synovia"]
        bars.append((f"{label}: {100 * ours['reached']:.1f} % reached, at least 99 %", ours["reached"] >= 0.99))
        for name in set(commands) - {"synovia"}:
            theirs = found.get(f"{label}, {name}")
            if theirs is not None:
                told = f"{label}: {ours['median_us']:.0f} µs, less than {theirs['median_us']:.0f} µs of {name}"
                bars.append((told, ours["median_us"] < theirs["median_us"]))
    heads = ["mechanism"] + [f"{name} {what}" for name in commands for what in ("reached", "µs", "open")]
    told, held = verdicts(bars)
    save("loops_peers", "Mechanisms with loops beside peers", {**found, "held": held},
         f"{table(heads, rows)}\n\n{told}", where)  # fmt: skip
    return 0 if held else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        sys.exit(main())
