"""What a servo promises beyond the limits of each tick: it holds, follows, and does not drift or take long.

    python benchmarks/servo_bars.py [--only BODY] [--bars hold,near,still,feet,out,times] [--share 1.0] [--seed 1]

- hold: from sampled states, ``hold`` alone stays inside the limits of joints and comes to rest (10,000 in total);
- near: 1,000 near targets of each body, which other poses have, are reached within tolerance;
- still: a target is held for ten minutes of ticks: no joint moves more than 1e-9 of the reach;
- feet: planted feet of a body whose hands move for an hour of ticks stay within 0.2 mm;
- out: targets are out of reach for 30 s; then they come back: no limit is exceeded, and they are reached;
- times: ticks in processor time of the thread over 10^6 ticks: the median, 99.9 %, and growth of the memory.

A share below 1 takes that part of the counts and times.
"""

import argparse
import gc
import time
from pathlib import Path

import numpy as np
from common import machine, save, table, verdicts
from scipy.spatial.transform import Rotation

import synovia as sy
from servo import BODIES, Episode, load, outside, parts_of, sizes

ARM = ("shoulder", "elbow", "wrist", "arm", "hand", "clavicle")
LIMITS = {"velocity": 2.0, "acceleration": 10.0, "jerk": 100.0}


def servo_of(name, rate=100, *, jerk=True):
    """Return a servo of a body at moderate limits."""
    body, goals, root = load(name)
    limits = LIMITS if jerk else {k: v for k, v in LIMITS.items() if k != "jerk"}
    return sy.Servo(body, goals, rate=rate, root=root, **limits)


def near(servo, pose, rng, turn):
    """Return a pose near another one: of a body with several goals, only its arms move."""
    skeleton, q = servo.skeleton, pose.q.copy()
    low, high = skeleton.limits
    several = len(servo.ik.goals) > 1
    leading = {skeleton.q_slice(int(row)).start for row in servo.ik.moving}
    numbers, turns, _ = parts_of(skeleton)
    names = {skeleton.q_slice(row).start: str(skeleton.joint_names[row]).lower() for row in range(len(skeleton.joints))}
    for at in leading & {*numbers, *turns}:
        if several and not any(word in names.get(at, "") for word in ARM):
            continue
        if at in numbers:
            q[at] = np.clip(q[at] + rng.uniform(-turn, turn), low[at], high[at])
        else:
            q[at : at + 4] = (
                Rotation.from_quat(q[at : at + 4]) * Rotation.from_rotvec(rng.normal(size=3) * turn / 3)
            ).as_quat()
    return sy.Pose(skeleton, sy.Pose(skeleton, skeleton.follow(q)).inside[0])


def targets_of(servo, pose):
    """Return the targets that the goals of hands or of the tool have at a pose."""
    live = [goal for goal in servo.ik.goals if "foot" not in str(goal.joint)]
    return {
        g.joint: pose.position(g.joint) if isinstance(g, sy.PositionGoal) else pose.transform(g.joint) for g in live
    }


def start_of(servo, rng):
    """Return a pose to start from."""
    if len(servo.ik.goals) > 1:
        return servo.skeleton.rest_pose()
    return servo.skeleton.random_pose(int(rng.integers(1 << 30)))


def hold(name, seed, share):
    """Return how many sampled states do not hold, and the farthest way outside of the limits of joints."""
    bad, farthest, count, n = 0, -np.inf, int(2000 * share), 0
    episode_seed = seed * 100_000
    while n < count:
        episode = Episode(name, episode_seed, None)
        episode_seed += 1
        episode.shakes = False
        for _ in range(int(min(40, count - n))):
            for _ in range(int(episode.rng.integers(5, 60))):
                episode.servo.step(episode.targets(1.0 / episode.rate))
            held = []
            for _ in range(int(20.0 * episode.rate)):
                held.append(episode.servo.hold().q)
                if len(held) > 5 and np.array_equal(held[-1], held[-5]):
                    break
            still = np.abs(held[-1] - held[-2]).max() <= 1e-12
            out = outside(episode.servo.skeleton, np.array(held))
            farthest = max(farthest, out)
            if not still or out > 1e-9:
                print("hold", name, episode_seed - 1, n, still, out, flush=True)
                bad += 1
            n += 1
    return bad == 0, f"{n} states, {bad} do not hold", f"{farthest:.1e} beyond"


def nearby(name, seed, share):
    """Return how many near targets are reached."""
    rng, servo, count, missed, ticks = np.random.default_rng(seed), servo_of(name), int(1000 * share), 0, []
    for k in range(count):
        first = start_of(servo, rng)
        aim = targets_of(servo, near(servo, first, rng, 0.3))
        servo.reset(first)
        for tick in range(1000):
            command = servo.step(aim)
            if command.reached:
                ticks.append(tick + 1)
                break
        else:
            missed += 1
            errors = [(round(e.position, 5), round(e.angle, 5)) for e in command.errors]
            print("near", name, k, command.status.name, errors, command.limited, flush=True)
    return missed == 0, f"{count - missed} of {count}", f"median {np.median(ticks):.0f} ticks at 100 Hz"


def still(name, seed, share):
    """Return how far joint values move while a target is held for ten minutes."""
    rng, servo = np.random.default_rng(seed), servo_of(name)
    first = start_of(servo, rng)
    aim = targets_of(servo, near(servo, first, rng, 0.3))
    servo.reset(first)
    for _ in range(1000):
        command = servo.step(aim)
    begin, most = command.q, 0.0
    for _ in range(int(60_000 * share)):
        most = max(most, float(np.abs(servo.step(aim).q - begin).max()))
    return most <= 1e-9 * servo.ik.reach, f"{int(60_000 * share)} ticks", f"{most:.1e}"


def feet(name, seed, share):
    """Return how far planted feet are from their places during an hour of ticks."""
    rng, servo = np.random.default_rng(seed), servo_of(name)
    if len(servo.ik.goals) == 1:
        return None
    first = start_of(servo, rng)
    servo.reset(first)
    places = {g.joint: first.position(g.joint) for g in servo.ik.goals if "foot" in str(g.joint)}
    scale = 1.0 if first.skeleton.meters_per_unit is None else first.skeleton.meters_per_unit
    aim, most, count = targets_of(servo, first), 0.0, int(360_000 * share)
    for k in range(count):
        if k % 97 == 0:
            aim = targets_of(servo, near(servo, first, rng, 0.3))
        command = servo.step(aim)
        if k % 5 == 0:
            most = max(most, *(float(np.linalg.norm(command.pose.position(j) - at)) for j, at in places.items()))
    return 1000.0 * scale * most <= 0.2, f"{count} ticks", f"{1000.0 * scale * most:.3f} mm"


def out(name, seed, share):
    """Return whether a body keeps its limits and comes back after its target was out of reach for 30 s."""
    rng, count = np.random.default_rng(seed), max(int(20 * share), 2)
    servo, back, exceeded, restless = servo_of(name), 0, 0, 0
    for _ in range(count):
        first = start_of(servo, rng)
        servo.reset(first)
        home = targets_of(servo, near(servo, first, rng, 0.3))
        far = {j: t.copy() for j, t in home.items()}
        for t in far.values():
            place = t if t.ndim == 1 else t[:3, 3]
            place += rng.normal(size=3) * 3.0 * servo.ik.reach
        q = [first.q]
        q.extend(servo.step(far).q for _ in range(3000))
        restless += bool(np.abs(q[-1] - q[-100]).max() > 1e-4)
        for _ in range(1500):
            command = servo.step(home)
            q.append(command.q)
        back += command.reached
        h = np.full(len(q) - 1, 0.01)
        limits = np.tile([LIMITS["velocity"], LIMITS["acceleration"], LIMITS["jerk"]], (len(q), 1))
        worst = sizes(servo.skeleton, np.array(q), h, limits, servo.ik.reach)
        exceeded += int((worst[np.isfinite(worst)] > 0).sum())
    fine = exceeded == 0 and back == count and restless == 0
    return fine, f"{back} of {count} back", f"{exceeded} limits exceeded; {restless} restless"


def times(name, seed, share):
    """Return the times of ticks while the hands or the tool follow moving targets, and how the memory grows."""
    rng, servo, count = np.random.default_rng(seed), servo_of(name, 500), int(1_000_000 * share)
    first = servo.skeleton.rest_pose() if len(servo.ik.goals) > 1 else near(servo, servo.skeleton.rest_pose(), rng, 0.5)
    servo.reset(first)
    home, reach = targets_of(servo, first), servo.ik.reach
    period, taken = 2500, np.empty(count)
    path = []
    for k in range(period):
        angle = 2.0 * np.pi * k / period
        moved = {j: t.copy() for j, t in home.items()}
        for t in moved.values():
            place = t if t.ndim == 1 else t[:3, 3]
            place += 0.05 * reach * np.array([np.sin(angle), np.cos(angle) - 1.0, np.sin(2.0 * angle)])
        path.append(moved)
    clock, memory, begun = time.thread_time_ns, 0, min(period, count // 10)
    gc.collect()
    for k in range(count):
        aim = path[k % period]
        t0 = clock()
        servo.step(aim)
        taken[k] = clock() - t0
        if k == begun:
            memory = resident()
    grown = resident() - memory
    median, high = np.percentile(taken[begun:], [50, 99.9]) * 1e-3
    shown = f"{median:.1f} µs, 99.9 %: {high:.1f} µs ({high / median:.2f}), largest {taken[begun:].max() * 1e-3:.0f} µs"
    return high <= 4.0 * median and grown < 1 << 20, f"{count} ticks; memory {grown / 1024:+.0f} KiB", shown


def resident():
    """Return the resident memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


BARS = {"hold": hold, "near": nearby, "still": still, "feet": feet, "out": out, "times": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--bars", default=",".join(BARS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    where, rows, bars = machine(), [], []
    names = [name for name in BODIES if options.only.lower() in name.lower() and load(name) is not None]
    for bar in options.bars.split(","):
        held = []
        for name in names:
            begun = time.process_time()
            found = BARS[bar](name, options.seed, options.share)
            if found is not None:
                held.append(found[0])
                rows.append([bar, name, *found[1:], f"{time.process_time() - begun:.0f}"])
                print(*rows[-1], sep=" | ", flush=True)
        bars.append((f"{bar}: {sum(held)} of {len(held)} bodies", all(held)))
    lines, kept = verdicts(bars)
    text = table(["bar", "body", "what", "found", "seconds"], rows)
    save("servo_bars", "What a servo promises", {"rows": rows}, f"{text}\n\n{lines}", where)
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    main()
