"""Whether lower levels disturb the goals above them in a tick of a servo: random problems from random states.

    python benchmarks/servo_law.py [--problems 1000] [--seed 1] [--only BODY]

From one state (pose, velocity, acceleration), a tick is taken with the first k levels of goals and with all of them,
for each k. The errors of level k where the body stops, in length scales and radians, may differ by 1 % of its step (how
far its goals move until then) and 1e-6. The stop is straight: all velocities fall evenly to zero, in the same time for
both ticks. A third of the problems begins at rest, half of its goals met.
"""

import argparse

import numpy as np
from common import data_folder, machine, save, table, verdicts
from scipy.spatial.transform import Rotation

import synovia as sy

RATE, LIMITS = 100.0, {"velocity": 2.0, "acceleration": 10.0, "jerk": 200.0}
BODIES = {  # file, joints that get goals, root
    "arm7": (None, ("tool", "joint4", "joint6"), "fixed"),
    "cart": (None, ("tool", "joint4", "joint6"), "x,y,yaw"),
    "Panda": ("robot/panda.urdf", ("panda_hand", "panda_link4", "panda_link6"), "fixed"),
    "quadruped": (None, ("left_fore_paw", "right_fore_paw", "head"), "fixed"),
    "humanoid": (None, ("left_foot", "right_foot", "left_hand", "right_hand"), "free"),
    "G1": ("robot/g1_29dof.urdf", ("left_foot", "right_foot", "left_hand", "right_hand"), "free"),
}
SLACK, LEAST = 0.01, 1e-6


def load(name):
    """Return a body; None without its file."""
    path = BODIES[name][0]
    if path is None:
        return sy.bundled("arm7" if name == "cart" else name)
    return sy.load_skeleton(data_folder() / path) if (data_folder() / path).exists() else None


def near(body, q, rng, far):
    """Return a pose whose joints are displaced at random, inside their limits."""
    other = body.random_pose(int(rng.integers(1 << 30))).q
    out = q + far * (other - q)
    for row, joint in enumerate(body.joints):
        where = body.q_slice(row)
        if joint.kind is sy.Kind.FREE:
            out[where] = q[where]
        elif joint.kind is sy.Kind.BALL:
            turn = q[where] + far * (np.copysign(1.0, q[where] @ other[where]) * other[where] - q[where])
            out[where] = turn / np.linalg.norm(turn)
    return sy.Pose(body, sy.Pose(body, body.follow(out)).inside[0])


def draw(name, body, rng, jerk):
    """Return goals by level, a state, and the targets of a random problem."""
    joints, root = BODIES[name][1:]
    levels = int(rng.integers(2, 5))
    kinds = [(joint, kind) for joint in joints for kind in (sy.PositionGoal, sy.RotationGoal)]
    picked = rng.permutation(len(kinds))[: levels + int(rng.integers(0, 2))]
    goals = [
        kinds[k][1](kinds[k][0], name=f"{kinds[k][0]}{kinds[k][1].__name__}", priority=min(n, levels - 1))
        for n, k in enumerate(picked)
    ]
    limits = LIMITS if jerk else {key: LIMITS[key] for key in ("velocity", "acceleration")}
    servo = sy.Servo(body, goals, sy.FullBody(), rate=RATE, root=root, **limits)
    skeleton = servo.skeleton
    start = near(skeleton, skeleton.rest_pose().q, rng, 0.5)
    rests = rng.random() < 1 / 3
    kinds = [joint.kind for joint in skeleton.joints for _ in range(joint.kind.v_size)]
    hinge, nv = np.array([kind in (sy.Kind.HINGE, sy.Kind.SLIDE) for kind in kinds]), len(kinds)
    v = np.zeros(nv) if rests else hinge * rng.uniform(-0.4, 0.4, nv) * LIMITS["velocity"]
    a = hinge * rng.uniform(-0.2, 0.2, nv) * LIMITS["acceleration"] if jerk and not rests else np.zeros(nv)
    targets = {}
    for goal in goals:
        there = start if rests and rng.random() < 0.5 else near(skeleton, start.q, rng, rng.choice([0.02, 0.1, 0.5]))
        at = there.position if goal.kind == "position" else there.rotation
        targets[goal.name] = at(goal.joint)
    return servo, goals, (start, v, a), targets, limits, root


def ticked(servo, state, targets):
    """Return the tick after one step from a state."""
    servo.reset(*state)
    return servo.step(targets)


def stopped(tick, lasts):
    """Return the pose where a body stops if all its velocities fall evenly to zero in some seconds."""
    body, way, q = tick.skeleton, tick.velocity * lasts**2 / (2.0 * lasts + 1.0 / RATE), tick.q.copy()
    at = 0
    for row, joint in enumerate(body.joints):
        where, size = body.q_slice(row), joint.kind.v_size
        move, at = way[at : at + size], at + size
        if size in (3, 6):
            turn = slice(where.stop - 4, where.stop)
            q[where.start : turn.start] += move[:-3] if size == 6 else 0.0
            q[turn] = (Rotation.from_quat(q[turn]) * Rotation.from_rotvec(move[-3:])).as_quat()
        elif size:
            q[where] += move
    return sy.Pose(body, body.follow(q))


def residuals(pose, goals, targets, reach):
    """Return the errors of goals at a pose, as one vector: length scales and radians."""
    out = []
    for goal in goals:
        if goal.kind == "position":
            out.append((pose.position(goal.joint) - targets[goal.name]) / reach)
        else:
            out.append((targets[goal.name].inv() * pose.rotation(goal.joint)).as_rotvec())
    return np.concatenate(out)


def law(name, body, seed, jerk):
    """Return how far each upper level of a random problem is worse than allowed, and by how much with the slack."""
    rng = np.random.default_rng(seed)
    servo, goals, state, targets, limits, root = draw(name, body, rng, jerk)
    reach, found = servo.ik.reach, []
    full = ticked(servo, state, targets)
    lasts = max(np.abs(full.velocity).max() / LIMITS["acceleration"] - 0.5 / RATE, 0.0)
    for level in sorted({goal.priority for goal in goals})[:-1]:
        upper = [goal for goal in goals if goal.priority <= level]
        own = [goal for goal in upper if goal.priority == level]
        alone = sy.Servo(body, upper, sy.FullBody(), rate=RATE, root=root, **limits)
        one = ticked(alone, state, {goal.name: targets[goal.name] for goal in upper})
        poses = state[0], stopped(one, lasts), stopped(full, lasts)
        old, new, both = (residuals(pose, own, targets, reach) for pose in poses)
        worse = np.linalg.norm(both) - np.linalg.norm(new)
        found.append(worse - SLACK * np.linalg.norm(new - old) - LEAST)
    return found


def main():
    """Print and save how often lower levels disturb the goals above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="a body")
    args = parser.parse_args()
    bodies = {name: body for name in BODIES if args.only in (None, name) and (body := load(name)) is not None}
    where, rows = machine(), []
    for jerk in (False, True):
        for name, body in bodies.items():
            count = max(args.problems // (2 * len(bodies)), 1)
            excess = [x for k in range(count) for x in law(name, body, args.seed * 100_000 + k, jerk)]
            over = np.array(excess)
            bad = int((over > 0.0).sum())
            rows.append([
                f"{name}, {'jerk' if jerk else 'acceleration'}", count, len(over), bad,
                f"{max(over.max(), 0.0):.1e}", f"{np.median(over[over > 0.0]) if bad else 0.0:.1e}",
            ])  # fmt: skip
            print(rows[-1], flush=True)
    head = ["body, limits of", "problems", "upper levels", "worse than allowed", "largest excess", "median excess"]
    lines, kept = verdicts([("lower levels make no upper level worse", all(row[3] == 0 for row in rows))])
    save("servo_law", "Lower levels of a servo", {"rows": rows}, f"{table(head, rows)}\n\n{lines}", where)
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    main()
