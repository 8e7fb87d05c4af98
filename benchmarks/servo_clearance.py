"""Ticks of a servo that keeps whole bodies clear of themselves: their time beside ticks without, and the least gap.

    python benchmarks/servo_clearance.py [--ticks 25000]

A Unitree G1 and the bundled humanoid stand on both feet, with a free root. Their hands are dragged: to random places
around the rest pose (jumps), along curves across the chest (drift), and to the place of the other hand, through the
chest, and behind the back (against itself). Of 500 ticks, the targets stop for the last 200, so that a body that is
pressed against itself has to stand still.

The gap is that of the nearest pair in each tick, measured apart from the servo. Times are CPU time of the process; both
servos take the same ticks, one after the other.
"""

import argparse
import time

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy
from synovia.ik.contacts import nearest_contacts

RATE, KEPT = 100, 0.005
LIMITS = {"velocity": 3.0, "acceleration": 20.0}
JERK = 200.0
DEEPEST = 1e-4  # metres
STILL = 1e-6  # radians in a tick
PERIOD, PAUSE = 500, 200  # ticks


def bodies(data):
    """Yield a name, a body, its hands and its feet."""
    g1 = sy.with_shapes(sy.load_skeleton(data / "robot" / "g1_29dof.urdf"))
    ends = [[f"{side}_{part}_joint" for side in ("left", "right")] for part in ("hand_palm", "ankle_roll")]
    yield "G1", g1, *ends
    yield (
        "humanoid",
        sy.bundled("humanoid"),
        *([f"{side}_{part}" for side in ("left", "right")] for part in ("hand", "foot")),
    )


def places(rest, hands, way, ticks, seed):
    """Return the targets of both hands in each tick, (ticks, 2, 3)."""
    rng = np.random.default_rng(seed)
    home = np.array([rest.position(hand) for hand in hands])
    middle, size = home.mean(axis=0), np.linalg.norm(home[0] - home[1])
    t = np.arange(ticks)[:, None, None] / RATE
    if way == "jumps":
        jumps = home + 0.5 * size * rng.normal(size=(ticks // 50 + 1, 2, 3))
        out = np.repeat(jumps, 50, axis=0)[:ticks]
    elif way == "drift":
        phases = rng.uniform(0.0, 6.3, (1, 2, 3))
        out = home + 0.5 * size * np.sin(np.array([1.0, 1.3, 0.7]) * t + phases)
    else:
        spots = [home[::-1], np.stack([middle, middle]), home[::-1] + rng.normal(size=3) * size, 2.0 * middle - home]
        order = rng.integers(len(spots), size=ticks // 80 + 1)
        out = np.repeat(np.array(spots)[order], 80, axis=0)[:ticks] + 0.1 * size * np.sin(3.0 * t)
    for first in range(PERIOD - PAUSE, ticks, PERIOD):
        out[first : first + PAUSE] = out[first]
    return out


def dragged(body, goals, hands, targets, jerk):
    """Return the times of ticks (µs), the commands (ticks, nq), and the servo."""
    servo = sy.Servo(body, goals, rate=RATE, root="free", jerk=jerk, **LIMITS)
    servo.reset()
    spent, q = np.empty(len(targets)), []
    for k, pair in enumerate(targets):
        wanted = dict(zip(hands, pair, strict=True))
        begun = time.process_time_ns()
        command = servo.step(wanted)
        spent[k] = 1e-3 * (time.process_time_ns() - begun)
        q.append(command.q)
    return spent, np.array(q), servo


def main():
    """Run all bodies and ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--ticks", type=int, default=2500, help="of each body and way, with and without a limit of jerk"
    )
    options = parser.parse_args()
    where, data = machine(), needed_data()
    rows, bars, total = [], [], 0
    for name, body, hands, feet in bodies(data):
        fixed = [*(sy.ContactGoal(foot) for foot in feet), *(sy.PositionGoal(hand, priority=1) for hand in hands)]
        for seed, way in enumerate(("jumps", "drift", "against itself")):
            targets = places(body.rest_pose(), hands, way, options.ticks, seed)
            for jerk in (None, JERK):
                plain, _, _ = dragged(body, fixed, hands, targets, jerk)
                spent, q, servo = dragged(body, [*fixed, sy.ClearanceGoal(KEPT)], hands, targets, jerk)
                total += len(q)
                gaps = [nearest_contacts(servo.ik.problem, sy.Pose(servo.skeleton, one))[0].distance for one in q]
                still = [np.abs(np.diff(q[k - 10 : k], axis=0)).max() for k in range(PERIOD, len(q) + 1, PERIOD)]
                at, beside = np.quantile(spent, [0.5, 0.99]), np.quantile(plain, [0.5, 0.99])
                case = f"{name}, {way}" + ("" if jerk is None else ", jerk")
                rows.append(
                    [case, len(q), f"{beside[0]:.0f}", f"{at[0]:.0f}", f"{at[0] / beside[0]:.2f}", f"{beside[1]:.0f}",
                     f"{at[1]:.0f}", f"{1e3 * min(gaps):.3f}", f"{max(still):.1e}"]
                )  # fmt: skip
                bars.append(
                    (f"{case}: {at[0] / beside[0]:.2f} times the tick without, at most 2", at[0] <= 2.0 * beside[0])
                )
                bars.append((f"{case}: least gap {1e3 * min(gaps):.3f} mm, no overlap of 0.1", min(gaps) >= -DEEPEST))
    heads = [
        "body and way",
        "ticks",
        "without µs",
        "with µs",
        "ratio",
        "without p99",
        "with p99",
        "least gap mm",
        "step at rest rad",
    ]
    told, held = verdicts(bars)
    found = {"ticks": total, "rows": [dict(zip(heads, row, strict=True)) for row in rows]}
    save("servo_clearance", "Servos of whole bodies that keep clear", found, f"{table(heads, rows)}\n\n{told}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
