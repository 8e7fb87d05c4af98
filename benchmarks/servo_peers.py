"""An arm that follows a circle and a figure of eight under limits of velocity that bind, beside other libraries.

    python benchmarks/servo_peers.py --env /path/to/venv/bin/python --env /path/to/another/bin/python [--ticks 1000]

Each library runs in a process of its own, in the first environment that has it. A Panda starts on the path at rest. The
limit of the velocity of every joint is a share of what the path needs. Peers honour limits of velocity and of joints;
the servo here has a limit of the acceleration, too, which is so high that it hardly binds: it has to brake in front
of limits of joints. Errors are distances of the tip from the target of the tick, by NumPy kinematics of the same URDF.
A library that goes faster than the limit, as it is called here, does not count for errors.
Clock: processor time of the thread around each call, from a target as the library takes it to joint values.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RATE, TIP = 500.0, "panda_hand"
SHARES = (1.2, 0.8)  # of the largest velocity that the path needs: one that binds hardly, and one that does
START = np.array([0.0, -0.4, 0.0, -2.2, 0.0, 1.9, 0.7])
MOVES = {"circle": (1.0, 1.0, 0.0), "eight": (1.0, 0.0, 1.0)}


def embodik(urdf, limit):
    import embodik as ek

    model = ek.RobotModel(urdf)
    solver = ek.KinematicsSolver(model)
    solver.dt = 1.0 / RATE
    solver.enable_velocity_limits(True)
    for axis in range(model.nv):
        solver.set_joint_velocity_limit(axis, limit)
    task = solver.add_frame_task("tip", TIP)
    task.priority, task.weight = 0, 1.0
    solver.set_damping(1e-3)

    def step(q, target):
        task.set_target_pose(target[:3, 3], np.asfortranarray(target[:3, :3]))
        return q + np.asarray(solver.solve_velocity_dq(q))

    return step, model.nq


def pink(urdf, _):
    import pink as library
    import pinocchio as pin

    model = pin.buildModelFromUrdf(urdf)
    task = library.tasks.FrameTask(TIP, position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6, gain=1.0)
    limits = (library.limits.ConfigurationLimit(model, config_limit_gain=1.0), library.limits.VelocityLimit(model))
    state = library.Configuration(model, model.createData(), pin.neutral(model))

    def step(q, target):
        state.update(q)
        task.set_target(pin.SE3(target))
        v = library.solve_ik(state, (task,), 1.0 / RATE, solver="quadprog", limits=limits, safety_break=False)
        return state.integrate(v, 1.0 / RATE)

    return step, model.nq


def synovia(urdf, limit):
    import synovia as sy

    body = sy.load_skeleton(urdf)
    servo = sy.Servo(body, sy.PoseGoal(TIP), rate=RATE, velocity=limit, acceleration=100.0 * limit)
    begun = []

    def step(q, target):
        if not begun:
            begun.append(servo.reset(sy.Pose(body, q)))
        return servo.step({TIP: target}).q

    return step, body.nq


LIBRARIES = {"synovia": synovia, "embodik": embodik, "pink": pink}


def path_of(move, count, home):
    """Return the targets (T, 4, 4) of a path: two times around in the time."""
    angle = 2.0 * np.pi * 2.0 * np.arange(count) / count
    radius, round_, double = MOVES[move]
    out = np.tile(home, (count, 1, 1))
    out[:, 0, 3] += 0.12 * radius * (np.cos(angle) - 1.0)
    out[:, 1, 3] += 0.12 * (round_ * np.sin(angle) + double * np.sin(2.0 * angle))
    return out


def child(name, task):
    """Be the process of one library: print joint values and times."""
    given = np.load(task)
    step, n = LIBRARIES[name](str(given["urdf"]), float(given["limit"]))
    q = np.zeros(n)
    q[:7] = START
    qs, times = [], []
    for target in given["targets"]:
        begun = time.thread_time_ns()
        q = np.asarray(step(q, target))
        times.append(time.thread_time_ns() - begun)
        qs.append(q[:7].copy())
    np.savez(str(task) + ".out.npz", q=np.array(qs), times=np.array(times))


def main():
    from common import machine, needed_data, save, table, verdicts
    from panda import Arm

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--ticks", type=int, default=1000)
    options = parser.parse_args()
    where = machine()
    text = (needed_data() / "robot/panda.urdf").read_text(encoding="utf-8")
    text = text.replace('type="prismatic"', 'type="fixed"')  # the fingers
    rows, figures, bars = [], {}, []
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "panda.urdf"
        urdf.write_text(text, encoding="utf-8")
        arm = Arm(urdf, "panda_link0", TIP)
        home = arm.forward(START[None])[0]
        python = {"synovia": sys.executable}
        for env in options.env:
            for name in LIBRARIES.keys() - python.keys():
                if subprocess.run([env, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0:
                    python[name] = env
        for move in MOVES:
            targets = path_of(move, options.ticks, home)
            task = Path(folder) / "task.npz"

            def run(name, limit, targets=targets, task=task):
                written = re.sub(r'velocity="[^"]*"', f'velocity="{limit:.17g}"', text)
                urdf.write_text(written, encoding="utf-8")
                np.savez(task, urdf=str(urdf), limit=limit, targets=targets)
                done = subprocess.run(
                    [python[name], __file__, "--child", name, str(task)], capture_output=True, text=True, check=False
                )
                if done.returncode:
                    sys.exit(f"{name}: {done.stderr[-800:]}")
                with np.load(str(task) + ".out.npz") as answer:
                    return answer["q"], answer["times"]

            free, _ = run("synovia", 50.0)
            needed = float(np.abs(np.diff(free[20:], axis=0)).max() * RATE)
            for share in SHARES:
                for name in python:
                    q, times = run(name, share * needed)
                    errors = np.linalg.norm(arm.forward(q)[:, :3, 3] - targets[:, :3, 3], axis=1)
                    speed = float(np.abs(np.diff(q, axis=0)).max() * RATE / (share * needed))
                    tick = float(np.median(times[20:])) * 1e-3
                    figures[move, share, name] = errors.mean() if speed <= 1.01 else np.inf, tick
                    cells = [1e3 * errors.mean(), 1e3 * errors.max(), speed]
                    rows.append([f"{move}, {share:g}", name, *(f"{cell:.3f}" for cell in cells), f"{tick:.1f}"])
                    print(*rows[-1], sep=" | ", flush=True)
                peers = [figures[move, share, name] for name in python if name != "synovia"]
                error, tick = figures[move, share, "synovia"]
                case = f"{move}, {share:g}"
                bars += [
                    (f"{case}: mean error at most each peer's", all(error <= 1.001 * p[0] + 1e-5 for p in peers)),
                    (f"{case}: a tick takes half of the fastest peer's", all(tick <= 0.5 * p[1] for p in peers)),
                ]
    lines, kept = verdicts(bars)
    head = ["path, share of its speed", "library", "mean error, mm", "largest, mm", "speed / limit", "tick, µs"]
    shown = table(head, rows)
    save("servo_peers", "An arm on a path, beside other libraries", {"rows": rows}, f"{shown}\n\n{lines}", where)
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(*sys.argv[2:4])
    else:
        main()
