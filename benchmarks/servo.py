"""Commands of a servo under targets that no one should send, judged from outside by the joint values alone.

    python benchmarks/servo.py [--ticks 1000000] [--seed 1] [--only TEXT] [--jumps 200]

Each episode has a body, a rate, limits with or without a jerk, and targets that jump, drift, shake, are lost, lie out
of reach or at singular poses; ticks are late, and limits change. The judge shares no code with the servo. Velocity,
acceleration and jerk are divided differences of the values, with the times of the ticks; of balls the length of the
angular velocity counts. Slack: 1e-9 of the limit and rounding. Ticks in which the command says that it recovers do not
count. Then the body holds: it has to come to rest inside the limits of its joints.

With ``ruckig`` installed, jumps of arms between two poses are timed beside it.
"""

import argparse
import contextlib
import time

import numpy as np
from common import data_folder, machine, save, table, verdicts
from scipy.spatial.transform import Rotation

import synovia as sy

SLACK = 1e-9
STANDS = 1e-3  # rad/s, of a body that has arrived
BODIES = {
    "Panda": ("robot/panda.urdf", ("panda_hand",), "fixed"),
    "UR5e": ("robot/ur5e_nomesh.xml", ("wrist_3_link",), "fixed"),
    "SO-100": ("robot/so100.urdf", ("link:gripper",), "fixed"),
    "G1": ("robot/g1_29dof.urdf", ("left_hand", "right_hand", "left_foot", "right_foot"), "free"),
    "humanoid": (None, ("left_hand", "right_hand", "left_foot", "right_foot"), "free"),
}


def load(name):
    """Return a body, its goals and how its root moves; None without its file."""
    path, joints, root = BODIES[name]
    if path is not None and not (data_folder() / path).exists():
        return None
    body = sy.bundled("humanoid") if path is None else sy.load_skeleton(data_folder() / path)
    if len(joints) == 1:
        kind = sy.PositionGoal if name == "SO-100" else sy.PoseGoal
        return body, [kind(joints[0])], root
    goals = [sy.PoseGoal(joint, priority=int("hand" in joint)) for joint in joints]
    return body, goals, root


def parts_of(skeleton):
    """Return the columns of q of every joint that is a number, and of every rotation, and places of free joints."""
    numbers, turns, places = [], [], []
    for row, joint in enumerate(skeleton.joints):
        where = skeleton.q_slice(row)
        if joint.kind is sy.Kind.BALL:
            turns.append(where.start)
        elif joint.kind is sy.Kind.FREE:
            places.append(where.start)
            turns.append(where.start + 3)
        elif joint.kind is not sy.Kind.FIXED:
            numbers.append(where.start)
    return numbers, turns, places


def sizes(skeleton, q, h, limits, scale):
    """Return how far each difference of q, (T, nq), exceeds its limit, by tick; limits (T, 3)."""
    numbers, turns, places = parts_of(skeleton)
    worst = np.full((3, len(q)), -np.inf)

    def add(first, factor, ulp):
        v = first
        a = 2.0 * np.diff(v, axis=0) / (h[1:] + h[:-1])[:, None]
        j = 3.0 * np.diff(a, axis=0) / (h[2:] + h[1:-1] + h[:-2])[:, None]
        for k, (d, r) in enumerate(((v, 4 * ulp / h), (a, 4 * ulp / h[1:] ** 2), (j, 8 * ulp / h[2:] ** 3))):
            size = np.linalg.norm(d, axis=1)
            at = slice(k + 1, None)
            least = np.minimum.reduce([h[i : len(h) - k + i] for i in range(k + 1)])
            r = (4 if k < 2 else 8) * ulp / least ** (k + 1)
            top = factor * limits[at, k]
            over = size - top * (1 + SLACK) - r
            over = np.divide(over, top, out=np.full_like(over, -np.inf), where=np.isfinite(top))
            worst[k, at] = np.maximum(worst[k, at], over)

    for at in numbers:
        add(np.diff(q[:, at : at + 1], axis=0) / h[:, None], 1.0, np.spacing(np.abs(q[:, at]).max()))
    for at in turns:
        R = Rotation.from_quat(q[:, at : at + 4])
        add((R[:-1].inv() * R[1:]).as_rotvec() / h[:, None], 1.0, np.spacing(1.0))
    for at in places:
        add(np.diff(q[:, at : at + 3], axis=0) / h[:, None], scale, np.spacing(np.abs(q[:, at : at + 3]).max()))
    return worst


def outside(skeleton, q):
    """Return how far poses (T, nq) are outside the limits of joints that are numbers, and of balls by a clamp."""
    low, high = skeleton.limits
    numbers, turns, _ = parts_of(skeleton)
    out = max((np.maximum(low[at] - q[:, at], q[:, at] - high[at]).max() for at in numbers), default=-np.inf)
    for row in q[:: max(1, len(q) // 200)]:
        inside = sy.Pose(skeleton, row).inside[0]
        for at in turns:
            out = max(out, 2.0 * np.linalg.norm(inside[at : at + 4] - row[at : at + 4]))
    return out


class Episode:
    """Some seconds of one body, with one seed."""

    def __init__(self, name, seed, servos):
        self.rng = rng = np.random.default_rng(seed)
        body, goals, root = load(name)
        self.rate = float(rng.choice([60, 100, 250, 500, 1000]))
        self.top = np.array([rng.uniform(0.5, 3.0), 0.0, np.inf])
        self.top[1] = self.top[0] * 10 ** rng.uniform(0.3, 1.2)
        if rng.uniform() < 0.5:
            self.top[2] = self.top[1] * 10 ** rng.uniform(0.5, 1.5)
        jerk = None if np.isinf(self.top[2]) else self.top[2]
        self.servo = sy.Servo(body, goals, rate=self.rate, velocity=self.top[0], acceleration=self.top[1], jerk=jerk,
                              root=root, timeout=float(rng.choice([0.05, 0.3])))  # fmt: skip
        self.start = self.servo.skeleton.random_pose(int(rng.integers(1 << 30)))
        if len(goals) > 1:
            self.start = self.servo.skeleton.rest_pose()
        self.servo.reset(self.start)
        self.live = [goal for goal in self.servo.ik.goals if "foot" not in str(goal.joint)]
        self.places = {goal.joint: self.start.transform(goal.joint).copy() for goal in self.live}
        self.speed = {joint: np.zeros(3) for joint in self.places}

    def targets(self, h):
        """Return the next targets, or None."""
        rng, reach = self.rng, self.servo.ik.reach
        out = {}
        for joint, place in self.places.items():
            u = rng.uniform()
            if u < 0.004:  # a jump to a place that can be reached
                pose = self.servo.skeleton.random_pose(int(rng.integers(1 << 30)))
                place[:] = pose.transform(joint)
            elif u < 0.006:  # far away
                place[:3, 3] = rng.normal(size=3) * 2.0 * reach
            elif u < 0.012:
                self.speed[joint] = rng.normal(size=3) * 0.3 * reach * (rng.uniform() < 0.7)
            elif u < 0.014:
                place[:] = self.start.transform(joint)
            place[:3, 3] += self.speed[joint] * h
            seen = place.copy()
            if self.shakes:
                seen[:3, 3] += 1e-3 * reach * rng.normal(size=3)
            position = isinstance(next(goal for goal in self.live if goal.joint == joint), sy.PositionGoal)
            out[joint] = seen[:3, 3] if position else seen
        return out

    def run(self, ticks):
        """Return joint values, times, limits and recoveries of all ticks, and the values while it holds."""
        rng, servo = self.rng, self.servo
        q, h, limits, recovers = [servo.step(dt=0.0).q], [], [self.top.copy()], [True]
        self.shakes, lost, n = False, False, len(q[0])
        for _ in range(ticks):
            if rng.uniform() < 0.01:
                self.shakes = rng.uniform() < 0.3
            if rng.uniform() < 0.01:
                lost = rng.uniform() < 0.4
            if rng.uniform() < 0.003:
                top = self.top * rng.uniform(0.5, 1.0, 3)
                servo.change(velocity=top[0], acceleration=top[1], jerk=None if np.isinf(top[2]) else top[2])
                now = top
            else:
                now = limits[-1]
            dt = 10 ** rng.uniform(-0.4, 0.4) / self.rate if rng.uniform() < 0.3 else 1.0 / self.rate
            command = servo.step(None if lost else self.targets(dt), dt)
            assert command.q.shape == (n,)
            assert np.isfinite(command.q).all(), "a command has NaN"
            q.append(command.q)
            h.append(dt)
            limits.append(now)
            recovers.append("recovering" in command.limited.values())
        held = []
        for _ in range(int(8.0 * self.rate)):
            held.append(servo.hold().q)
            if len(held) > 5 and np.array_equal(held[-1], held[-5]):
                break
        return np.array(q), np.array(h), np.array(limits), np.array(recovers), np.array(held)


def judged(name, seed, ticks):
    """Return counts of one episode: exceeded velocities, accelerations, jerks, positions, and what did not hold."""
    episode = Episode(name, seed, None)
    q, h, limits, recovers, held = episode.run(ticks)
    skeleton = episode.servo.skeleton
    worst = sizes(skeleton, q, h, limits, episode.servo.ik.reach)
    counts = []
    for k in range(3):
        free = ~recovers.copy()
        for i in range(k + 1):  # differences that no recovery touches
            free[i + 1 :] &= ~recovers[: len(recovers) - i - 1] | (np.arange(i + 1, len(recovers)) <= i + 1)
        counts.append(int(np.sum((worst[k] > 0) & free & np.isfinite(worst[k]))))
    beyond = int(outside(skeleton, q) > SLACK) + int(outside(skeleton, held) > SLACK)
    restless = int(np.abs(held[-1] - held[-2]).max() > 1e-12)
    return [*counts, beyond, restless, int(recovers[1:].sum())], [
        float(np.nanmax(w[np.isfinite(w)], initial=0)) for w in worst
    ]


def jumps(name, count, seed):
    """Return the times of jumps between two poses of an arm, beside ruckig (inf: it never arrives); None without it."""
    with contextlib.suppress(ImportError):
        import ruckig

        body, goals, _ = load(name)
        rng = np.random.default_rng(seed)
        servo = sy.Servo(body, goals, rate=500, velocity=1.5, acceleration=8.0, jerk=80.0)
        moving = [servo.skeleton.q_slice(int(row)).start for row in servo.ik.moving]
        n, ratios, over = len(moving), [], 0.0
        otg = ruckig.Ruckig(n)
        while len(ratios) < count:
            first = servo.skeleton.random_pose(int(rng.integers(1 << 30)))
            second = servo.skeleton.random_pose(int(rng.integers(1 << 30)))
            servo.reset(first)
            place = second.transform(goals[0].joint)
            path = [first.q]
            for _ in range(5000):
                command = servo.step({goals[0].joint: place[:3, 3] if isinstance(goals[0], sy.PositionGoal) else place})
                path.append(command.q)
                if command.reached and np.abs(command.velocity).max() < STANDS:
                    break
            else:
                ratios.append(np.inf)
                continue
            path = np.array(path)[:, moving]
            given = ruckig.InputParameter(n)
            given.current_position, given.target_position = path[0].tolist(), path[-1].tolist()
            given.max_velocity, given.max_acceleration, given.max_jerk = [1.5] * n, [8.0] * n, [80.0] * n
            trajectory = ruckig.Trajectory(n)
            otg.calculate(given, trajectory)
            ratios.append((len(path) - 1) / 500 / trajectory.duration)
            side = np.sign(path[-1] - path[0])
            over = max(over, float((side * (path - path[-1])).max()))
        return np.array(ratios), over
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=int, default=1_000_000)
    parser.add_argument("--episode", type=int, default=2000)
    parser.add_argument("--jumps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    where = machine()
    names = [name for name in BODIES if options.only.lower() in name.lower() and load(name) is not None]
    rows, bad, arrivals, held = [], 0, [], True
    for name in names:
        total, largest, begun, episodes = np.zeros(6, int), np.zeros(3), time.process_time(), 0
        while episodes * options.episode < options.ticks / len(names):
            found, worst = judged(name, options.seed * 100_000 + episodes, options.episode)
            if sum(found[:5]):
                print(name, options.seed * 100_000 + episodes, found, worst, flush=True)
            total += found
            largest = np.maximum(largest, worst)
            episodes += 1
        rows.append([name, episodes * options.episode, *total.tolist(), f"{time.process_time() - begun:.0f}"])
        bad += int(total[:5].sum())
        print(*rows[-1], sep=" | ", flush=True)
        if name in ("Panda", "UR5e", "SO-100") and options.jumps:
            found = jumps(name, options.jumps, options.seed)
            if found is not None:
                ratios, over = found
                arrivals.append([name, len(ratios), f"{np.median(ratios):.3f}", f"{ratios.max():.3f}", f"{over:.1e}"])
                held = held and np.median(ratios) <= 1.25
                print(*arrivals[-1], sep=" | ", flush=True)
    lines, kept = verdicts([
        (f"no limit is exceeded outside recoveries, and every body comes to rest: {bad}", not bad),
        ("an arm arrives in at most 1.25 times the time of ruckig (median)", held),
    ])  # fmt: skip
    head = ["body", "ticks", "velocity", "acceleration", "jerk", "position", "restless", "recovering", "seconds"]
    text = table(head, rows)
    if arrivals:
        text += "\n\n" + table(["arm", "jumps", "time / ruckig's", "largest", "overshoot"], arrivals)
    save("servo", "Commands of a servo", {"rows": rows, "arrivals": arrivals}, f"{text}\n\n{lines}", where)
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    main()
