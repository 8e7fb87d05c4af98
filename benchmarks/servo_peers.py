"""Arms and a humanoid that follow paths under limits that bind, beside embodik, roboplan, pink and mink.

    python benchmarks/servo_peers.py --env venvs/embodik/bin/python --env venvs/pink/bin/python ... [--harness DIR]

``--harness`` is the folder of the peer benchmark (else ../shared/peers): models as URDF and MJCF, and ``kin.py``, the
NumPy kinematics by which all are judged. Each library runs in a process of its own, in the first environment that has
it; the processes take turns. All bodies begin at rest on the path, and get one target a tick.

The limit of the velocity is the one that a body would exceed in a third of the ticks if it followed exactly. In one
half of the cases, it is the only limit: the servo here then gets an acceleration with which it is at its full velocity
within a tick. In the other half, there is a limit of the acceleration, too, for libraries that have one: the largest
that the path needs, so it binds where a body catches up. A library that exceeds a limit by more than a fiftieth does
not count for errors.

Errors are means over all ticks, of the joint values that a call returned from the target that it got: of arms at the
tip, of the humanoid over hands and feet. Libraries weigh a metre like a radian; embodik minimises the error or, as it
does by default, scales the velocity down. Clock: processor time of the thread from 4 x 4 matrices to joint values, the
median over all ticks and then over the rounds.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

RATE, TICKS, BINDS = 500.0, 1500, 2.0 / 3.0
SLACK = 1e-6  # of a limit, for rounding
NEARLY = 0.02  # of a limit: a peer that exceeds it by less still counts for errors
EASE = 0.4  # seconds until a path has its full size
AT_ONCE = 2.0 * RATE  # an acceleration that does not bind, in limits of the velocity, per s
POSTURE = 3e-3  # cost of a radian away from the start, of whole bodies
EQUAL = 1e-5  # metres, radians: errors that differ by less are equal
BODIES = {
    "Panda": ("panda", ["panda_link8"], [0.0, -0.4, 0.0, -2.2, 0.0, 1.9, 0.7]),
    "UR5e": ("ur5e", ["tool0"], [0.0, -1.2, 1.6, -1.9, -1.57, 0.0]),
    "G1": ("g1", ["left_rubber_hand", "right_rubber_hand", "left_ankle_roll_link", "right_ankle_roll_link"], None),
}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
COSTS = {"position_cost": 1.0, "orientation_cost": 1.0}


def quaternion(base):
    """Return the quaternion, xyzw, of a rotation."""
    w = 0.5 * np.sqrt(max(1.0 + np.trace(base[:3, :3]), 1e-12))
    R = base[:3, :3]
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 4.0 * w * w]) / (4.0 * w)


def transform(place, turn):
    """Return the matrix of a place and a quaternion, xyzw."""
    x, y, z, w = turn / np.linalg.norm(turn)
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    T = np.eye(4)
    T[:3, :3] += 2.0 * w * K + 2.0 * K @ K
    T[:3, 3] = place
    return T


# Each library: from a case to a function from targets (F, 4, 4) and centre of mass to the state, and another from the
# state to joint values in the order of the case, and the base.


def embodik(case, scaled=False):
    import embodik as ek

    model = ek.RobotModel(case.urdf, floating_base=case.floating)
    solver = ek.KinematicsSolver(model)
    solver.dt = 1.0 / RATE
    first = 6 if case.floating else 0
    solver.enable_velocity_limits(True)
    for axis in range(first, model.nv):
        solver.set_joint_velocity_limit(axis, case.velocity)
    if case.acceleration:
        most = np.full(model.nv, 1e9)
        most[first:] = case.acceleration
        solver.set_acceleration_limits(most)
        solver.enable_acceleration_limits(True)
    solver.set_damping(1e-3)
    tasks = [solver.add_frame_task(frame, frame) for frame in case.frames]
    com = [solver.add_com_task("com")] if case.com is not None else []
    if case.floating:
        posture = solver.add_posture_task("posture")
        posture.priority, posture.weight = 1, 0.1
    for task in tasks + com:
        task.priority, task.weight = 0, RATE  # the error is gone after one tick
        if not scaled:
            task.solve_mode = ek.TaskSolveMode.MIN_ERROR
    at = [model.get_joint_config_index(name) for name in case.names]
    q = np.zeros(model.nq)
    q[at] = case.start
    if case.floating:
        q[:3], q[3:7] = case.base[:3, 3], quaternion(case.base)
        posture.set_target_configuration(q.copy())

    def step(targets, centre):
        nonlocal q
        for task, T in zip(tasks, targets, strict=True):
            task.set_target_pose(T[:3, 3], np.asfortranarray(T[:3, :3]))
        for task in com:
            task.set_target_position(centre)
        q = model.integrate(q, solver.solve_velocity_dq(q), 1.0 / RATE)
        return q

    return step, lambda q: (q[at], transform(q[:3], q[3:7]) if case.floating else np.eye(4))


def roboplan(case):
    import roboplan.core as core
    import roboplan.optimal_ik as ik

    scene = core.Scene("s", core.loadUrdfSceneDescription(case.urdf))
    scene.addGroupFromChain("arm", case.root, case.frames[0])
    oink = ik.Oink(scene, "arm")
    n = oink.num_variables
    goal = core.CartesianConfiguration(case.root, case.frames[0], np.asfortranarray(np.eye(4)))
    task = ik.FrameTask(oink, scene, goal, ik.FrameTaskOptions(**COSTS, task_gain=1.0, lm_damping=1e-6))
    limits = [ik.PositionLimit(oink, gain=1.0), ik.VelocityLimit(oink, 1.0 / RATE, np.full(n, case.velocity))]
    if case.acceleration:
        limits.append(ik.AccelerationLimit(oink, 1.0 / RATE, np.full(n, case.acceleration)))
        limits[-1].setLastVelocity(np.zeros(n))
    move, q = np.zeros(n), case.start.copy()

    def step(targets, _):
        nonlocal q
        scene.setJointPositions(q)
        task.setTargetFrameTransform(np.asfortranarray(targets[0]))
        oink.solveIk(scene, [task], limits, [], move, 1e-12)
        q = np.asarray(scene.integrate(q, move))
        if case.acceleration:
            limits[-1].setLastVelocity(move * RATE)
        return q

    return step, lambda q: (q, np.eye(4))


def pink(case):
    import pinocchio as pin
    from pink import Configuration, solve_ik
    from pink import limits as kinds
    from pink.tasks import ComTask, FrameTask, PostureTask

    model = pin.buildModelFromUrdf(case.urdf, *([pin.JointModelFreeFlyer()] if case.floating else []))
    first = 6 if case.floating else 0
    top = np.full(model.nv, 1e30)
    top[first:] = case.velocity
    model.velocityLimit = top
    limits = [kinds.ConfigurationLimit(model, config_limit_gain=1.0), kinds.VelocityLimit(model)]
    if case.acceleration:
        limits.append(kinds.AccelerationLimit(model, np.where(top < 1e20, case.acceleration, 1e30)))
        limits[-1].set_last_integration(np.zeros(model.nv), 1.0 / RATE)
    frames = [FrameTask(frame, **COSTS, lm_damping=1e-6, gain=1.0) for frame in case.frames]
    com = [ComTask(cost=1.0)] if case.com is not None else []
    at = [model.idx_qs[model.getJointId(name)] for name in case.names]
    q = pin.neutral(model)
    q[at] = case.start
    if case.floating:
        q[:3], q[3:7] = case.base[:3, 3], quaternion(case.base)
    state = Configuration(model, model.createData(), q)
    posture = [PostureTask(cost=POSTURE)] if case.floating else []
    for task in posture:
        task.set_target(q)

    def step(targets, centre):
        for task, T in zip(frames, targets, strict=True):
            task.set_target(pin.SE3(T))
        for task in com:
            task.set_target(centre)
        v = solve_ik(state, (*frames, *com, *posture), 1.0 / RATE, solver="quadprog", limits=limits, safety_break=False)
        state.integrate_inplace(v, 1.0 / RATE)
        if case.acceleration:
            limits[-1].set_last_integration(v, 1.0 / RATE)
        return state.q

    return step, lambda q: (q[at], transform(q[:3], q[3:7]) if case.floating else np.eye(4))


def mink(case):
    import mink as library
    import mujoco

    model = mujoco.MjModel.from_xml_path(case.mjcf)
    state = library.Configuration(model)
    kind = "body" if case.floating else "site"
    frames = [
        library.FrameTask(frame if case.floating else "tip", kind, **COSTS, lm_damping=1e-6) for frame in case.frames
    ]
    com = [library.ComTask(cost=1.0)] if case.com is not None else []
    limits = [
        library.ConfigurationLimit(model, gain=1.0),
        library.VelocityLimit(model, dict.fromkeys(case.names, case.velocity)),
    ]
    at = [model.joint(name).qposadr[0] for name in case.names]
    q = np.zeros(model.nq)
    q[at] = case.start
    free = slice(0, 7)
    if case.floating:
        begin = next(model.jnt_qposadr[j] for j in range(model.njnt) if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE)
        free = slice(begin, begin + 7)
        q[free] = np.concatenate([case.base[:3, 3], np.roll(quaternion(case.base), 1)])
    state.update(q)
    posture = [library.PostureTask(model, cost=POSTURE)] if case.floating else []
    for task in posture:
        task.set_target(q)

    def step(targets, centre):
        for task, T in zip(frames, targets, strict=True):
            task.set_target(library.SE3.from_matrix(T))
        for task in com:
            task.set_target(centre)
        v = library.solve_ik(state, [*frames, *com, *posture], 1.0 / RATE, "daqp", limits=limits)
        state.integrate_inplace(v, 1.0 / RATE)
        return state.q

    return step, lambda q: (q[at], transform(q[free][:3], np.roll(q[free][3:], -1)) if case.floating else np.eye(4))


def synovia(case):
    import synovia as sy

    body = sy.load_skeleton(case.urdf)
    body = body.with_root("free") if case.floating else body
    rows = [body.joint_names.index(name) for name in case.names]
    at = [body.q_slice(row).start for row in rows]
    most = case.acceleration or AT_ONCE * case.velocity
    base = {0: (1e4, 1e4)} if case.floating else {}
    q = body.rest_pose().q.copy()
    q[at] = case.start
    if case.floating:
        q[:3], q[3:7] = case.base[:3, 3], quaternion(case.base)
    start = sy.Pose(body, q)
    goals = [sy.PoseGoal(frame) for frame in case.frames]
    goals += [sy.CenterOfMassGoal(name="com")] if case.com is not None else []
    goals += [sy.RestGoal(start)] if case.floating else []
    servo = sy.Servo(
        body,
        goals,
        rate=RATE,
        velocity=dict.fromkeys(rows, case.velocity) | base,
        acceleration=dict.fromkeys(rows, most) | base,
        root="free" if case.floating else "fixed",
    )
    servo.reset(start)
    names = case.frames

    def step(targets, centre):
        given = dict(zip(names, targets, strict=True))
        if centre is not None:
            given["com"] = centre
        return servo.step(given).q

    return step, lambda q: (q[at], transform(q[:3], q[3:7]) if case.floating else np.eye(4))


LIBRARIES = {  # how each is made, its module, and whether it has limits of the acceleration and whole bodies
    "synovia": (synovia, "synovia", True, True),
    "embodik": (embodik, "embodik", True, True),
    "embodik, scaled": (lambda case: embodik(case, scaled=True), "embodik", True, True),
    "roboplan": (roboplan, "roboplan", True, False),
    "pink": (pink, "pink", True, True),
    "mink": (mink, "mink", False, True),
}


def takes(name, case):
    """Return whether a library has the limits and the goals of a case."""
    return (LIBRARIES[name][2] or not case.acceleration) and (LIBRARIES[name][3] or not case.floating)


def child(name, folder):
    """Be the process of one library: follow all cases of a folder."""
    for path in sorted(Path(folder).glob("case*.npz")):
        with np.load(path) as data:
            case = SimpleNamespace(
                **json.loads(str(data["case"])), **{k: data[k] for k in ("start", "base", "targets")}
            )
            case.com = data["com"] if case.floating else None
        if not takes(name, case):
            continue
        step, read = LIBRARIES[name][0](case)
        states, times = [], []
        for tick, targets in enumerate(case.targets):
            centre = None if case.com is None else case.com[tick]
            begun = time.thread_time_ns()
            q = step(targets, centre)
            times.append(time.thread_time_ns() - begun)
            states.append(np.array(q))
        qs, bases = zip(*map(read, states), strict=True)
        np.savez(path.with_name(f"{re.sub(r'[^a-z]', '', name)}-{path.name}"), q=qs, base=bases, times=times)


def paths(home, floating, wrist):
    """Return the displacements of the target, by name: places (T, 3) and rotation vectors (T, 3)."""
    t = np.arange(1, TICKS + 1) / RATE
    ease = np.clip(t / EASE, 0.0, 1.0)
    ease = (ease * ease * (3.0 - 2.0 * ease))[:, None]
    a, none = 2.0 * np.pi * t, np.zeros((TICKS, 3))
    eight = np.stack([0.12 * np.sin(a), 0.12 * np.sin(2.0 * a), 0.0 * a], axis=1)
    if floating:
        slow = np.stack([0.05 * np.sin(0.5 * a), 0.03 * np.sin(a), 0.0 * a], axis=1)
        return {"hands": (ease * slow, none)}
    circle = np.stack([0.12 * (np.cos(a) - 1.0), 0.12 * np.sin(a), 0.0 * a], axis=1)
    return {"circle": (ease * circle, none), "eight": (ease * eight, none)} | (
        {} if wrist is None else {"wrist": tuple(ease * part for part in wrist)}
    )


def recorded_wrist(data):
    """Return the way of a walker's wrist about the hips, in 0.3 m, and half of its turns; None without the clip."""
    clip = data / "motion" / "cmu_07_01_walk.bvh"
    if not clip.is_file():
        return None
    from scipy.interpolate import CubicSpline

    import synovia as sy

    motion = sy.load_motion(clip)
    poses = [motion.pose(frame) for frame in range(1, len(motion))]  # the first is a T-pose
    frames, roots = (np.array([pose.transform(name) for pose in poses]) for name in ("RightHand", "Hips"))
    way = frames[:, :3, 3] - roots[:, :3, 3]
    turns = (sy.Rotation.from_matrix(frames[:, :3, :3]) * sy.Rotation.from_matrix(frames[0, :3, :3]).inv()).as_rotvec()
    times = np.arange(len(way)) / motion.fps
    t = np.minimum(np.arange(1, TICKS + 1) / RATE, times[-1])
    way, turns = CubicSpline(times, way)(t), CubicSpline(times, turns)(t)
    way -= way[0]
    return 0.3 / np.ptp(way, axis=0).max() * way, 0.5 * turns


def exactly(model, case):
    """Return joint values (T, n) that follow a case without limits, near the start, by Gauss and Newton.

    It has every fifth tick. A miss above a millimetre or milliradian, or a joint outside its limits, is an error.
    """
    n, b = len(case.names), 6 if case.floating else 0
    q, base, out = case.start.copy(), case.base.copy(), []
    h = 1e-6
    moves = np.repeat(np.eye(4)[None], n + b + 1, axis=0)
    for k in range(b):
        axis = h * np.eye(3)[k % 3]
        moves[n + k] = (
            transform(axis, np.array([0.0, 0, 0, 1])) if k < 3 else transform(np.zeros(3), np.append(axis / 2, 1))
        )
    for tick in range(4, TICKS, 5):
        for _ in range(3):
            qs = np.repeat(q[None], n + b + 1, axis=0)
            qs[range(n), range(n)] += h
            frames = model.link_poses(qs, base @ moves)
            rows = []
            for frame, T in zip(case.frames, case.targets[tick], strict=True):
                M = frames[frame]
                rows += [M[:, :3, 3] - T[:3, 3], vector(M[:, :3, :3] @ T[:3, :3].T)]
            if case.floating:
                rows.append(model.com(frames) - case.com[tick])
            e = np.concatenate(rows, axis=1)
            J = ((e[:-1] - e[-1]) / h).T
            stay = POSTURE * np.eye(n, n + b)
            x = -np.linalg.lstsq(np.concatenate([J, stay]), np.append(e[-1], POSTURE * (q - case.start)), rcond=None)[0]
            q = q + x[:n]
            if b:
                base = base @ transform(x[n : n + 3], np.append(x[n + 3 :] / 2, 1.0))
        if np.abs(e[-1]).max() > 1e-3:
            raise ValueError(f"tick {tick} is not followed: {np.abs(e[-1]).max():.1e}")
        if ((q < model.lo) | (q > model.hi)).any():
            raise ValueError(f"tick {tick} is outside the limits of joints")
        out.append(q.copy())
    return np.array(out)


def vector(R):
    """Return the rotation vectors (N, 3) of small rotations (N, 3, 3)."""
    return 0.5 * np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=1)


def cases_of(kin, peers, wrist):
    """Yield the title of each case, its model, and the case."""
    for body, (file, frames, start) in BODIES.items():
        model = kin.Model(peers / "models" / f"{file}.urdf")
        floating, base = start is None, np.eye(4)
        if floating:
            with np.load(peers / "harness" / "problems" / "g1_wb.npz") as data:
                start, base = data["q0"], data["base0"]
        start = np.array(start)
        poses = model.link_poses(start, base)
        home = np.stack([poses[frame][0] for frame in frames])
        for move, (way, turn) in paths(home, floating, wrist).items():
            targets = np.repeat(home[None], TICKS, axis=0)
            moving = slice(0, 2 if floating else 1)
            targets[:, moving, :3, 3] += way[:, None]
            for tick in range(TICKS):
                turned = transform(np.zeros(3), np.append(_half(turn[tick]), np.cos(np.linalg.norm(turn[tick]) / 2)))
                targets[tick, moving, :3, :3] = turned[:3, :3] @ targets[tick, moving, :3, :3]
            case = SimpleNamespace(
                urdf=str(peers / "models" / f"{file}.urdf"), mjcf=str(peers / "models" / f"{file}_mj.xml"),
                frames=frames, names=model.names, root=model.root, floating=floating, start=start, base=base,
                targets=targets, com=np.repeat(model.com(poses), TICKS, axis=0) if floating else None,
            )  # fmt: skip
            speeds = np.diff(exactly(model, case), axis=0) * RATE / 5
            case.velocity = float(np.quantile(np.abs(speeds).max(1), BINDS))
            for acceleration in (0.0, float(np.abs(np.diff(speeds, axis=0)).max() * RATE / 5)):
                case.acceleration = acceleration
                yield f"{body}, {move}, {'velocity' if not acceleration else 'and acceleration'}", model, case


def _half(turn):
    """Return the vector part of the quaternion of a rotation vector."""
    angle = np.linalg.norm(turn)
    return 0.5 * turn if angle < 1e-9 else np.sin(angle / 2) / angle * turn


def judged(kin, model, case, q, base):
    """Return mean errors (metres, radians), of the centre of mass, and the largest share of each limit that is used."""
    poses = model.link_poses(q, base)
    errors = [kin.pose_err(poses[frame], case.targets[:, k]) for k, frame in enumerate(case.frames)]
    com = np.nan if case.com is None else np.linalg.norm(model.com(poses) - case.com, axis=1).mean()
    q = np.concatenate([case.start[None], case.start[None], q])
    v = np.diff(q, axis=0) * RATE
    speed = np.abs(v).max() / case.velocity
    push = np.abs(np.diff(v, axis=0)).max() * RATE / case.acceleration if case.acceleration else np.nan
    beyond = max((model.lo - q).max(), (q - model.hi).max())
    excess = max(speed - 1.0, -1.0 if np.isnan(push) else push - 1.0, beyond)
    return [np.mean([e[i].mean() for e in errors]) for i in range(2)], com, speed, push, excess


def main():
    from common import data_folder, machine, save, table, verdicts

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--harness", type=Path, default=data_folder().parent / "peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only cases whose title has this text")
    options = parser.parse_args()
    if not (options.harness / "harness" / "kin.py").is_file():
        sys.exit(f"servo_peers: no harness/kin.py in {options.harness}; name the folder of the peers with --harness")
    sys.path.insert(0, str(options.harness / "harness"))
    import kin

    where, python = machine(), {"synovia": sys.executable}
    for env in options.env:
        for name, (_, module, *_) in LIBRARIES.items():
            if name in python:
                continue
            if subprocess.run([env, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
                python[name] = env
    names = [name for name in LIBRARIES if name in python]
    rows, bars, results = [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        todo = []
        for title, model, case in cases_of(kin, options.harness.resolve(), recorded_wrist(data_folder())):
            if options.only.lower() not in title.lower():
                continue
            plain = {k: v for k, v in vars(case).items() if k not in ("start", "base", "targets", "com")}
            com = np.zeros(0) if case.com is None else case.com
            np.savez(folder / f"case{len(todo):02}.npz", case=json.dumps(plain), start=case.start, base=case.base,
                     targets=case.targets, com=com)  # fmt: skip
            todo.append((title, model, SimpleNamespace(**vars(case))))
        times = {(name, k): [] for name in names for k in range(len(todo))}
        answers = {}
        for turn in range(options.rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                done = subprocess.run(
                    [python[name], __file__, "--child", name, str(folder)], env=os.environ | ONE_THREAD,
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                if done.returncode:
                    sys.exit(f"{name}: {done.stderr[-800:]}")
                for k in range(len(todo)):
                    if takes(name, todo[k][2]):
                        with np.load(folder / f"{re.sub(r'[^a-z]', '', name)}-case{k:02}.npz") as answer:
                            times[name, k].append(float(np.median(answer["times"])) * 1e-3)
                            answers[name, k] = answer["q"], answer["base"]
        for k, (title, model, case) in enumerate(todo):
            figures = {}
            for name in names:
                if not takes(name, case):
                    continue
                (away, turned), com, speed, push, excess = judged(kin, model, case, *answers[name, k])
                tick = float(np.median(times[name, k]))
                figures[name] = away, turned, tick, excess
                result = {"case": title, "library": name, "position_m": away, "angle_rad": turned, "com_m": com,
                          "speed": speed, "acceleration": push, "excess": excess, "tick_us": tick}  # fmt: skip
                results.append({key: None if value != value else value for key, value in result.items()})
                cells = [
                    f"{1e3 * away:.3f}",
                    f"{np.degrees(turned):.3f}",
                    _cell(1e3 * com),
                    f"{speed:.3f}",
                    _cell(push),
                ]
                rows.append([title, name, *cells, "yes" if excess <= SLACK else f"+ {excess:.0e}", f"{tick:.1f}"])
                print(*rows[-1], sep=" | ", flush=True)
            peers = {name: found for name, found in figures.items() if name != "synovia"}
            away, turned, tick, excess = figures["synovia"]
            rivals = [found for found in peers.values() if found[3] <= NEARLY]
            if peers:
                fastest = min(found[2] for found in peers.values())
                bars += [
                    (f"{title}: the limits are kept", bool(excess <= SLACK)),
                    (f"{title}: position at most each peer's", all(away <= p[0] + EQUAL for p in rivals)),
                    (f"{title}: orientation at most each peer's", all(turned <= p[1] + EQUAL for p in rivals)),
                    (
                        f"{title}: a tick takes {tick / fastest:.2f} of the fastest peer's, at most 0.5",
                        tick <= 0.5 * fastest,
                    ),
                ]
    lines, held = verdicts(bars)
    head = ["body, path, limits of", "library", "position mm", "angle °", "centre of mass mm", "speed / limit",
            "acceleration / limit", "kept", "tick µs"]  # fmt: skip
    shown = f"{table(head, rows)}\n\n{lines}"
    save("servo_peers", "Servos on paths, beside other libraries", {"rows": results}, shown, where)
    raise SystemExit(0 if held else 1)


def _cell(value):
    return "" if np.isnan(value) else f"{value:.3f}"


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(*sys.argv[2:4])
    else:
        main()
