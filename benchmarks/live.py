"""Live retargeting beside ``retarget``: directions of limbs, feet that stand, limits, losses of the source, time.

    python benchmarks/live.py [--clips NAME ...] [--bodies NAME ...] [--rounds 5] [--answers DIR]

Every clip of ``shared/data/motion`` goes to every body, pose by pose. The bodies are learned from the first second of
the clip; then the clip begins.

- joints, limbs: mean angle between the directions of arms and legs in source and result, degrees, as in
  ``retarget_directions.py``: from joint to joint, and between the centres of groups of hinges; beside ``retarget``;
- slide: mean speed of feet during contacts of the source, by the judge, leg lengths per second;
- limits: ticks that exceed a limit of velocity (of the file, else 8 rad/s), acceleration (100 rad/s²) or position,
  by the judge of ``servo.py``, which shares no code with the servo. Free joints may go 3.2 legs/s and 40 legs/s²;
- lost: the same while the source is lost again and again, for up to a minute, and comes back elsewhere; whether the
  body holds still meanwhile, and follows again at the end;
- frames a second: processor time of one thread, the first frame apart, on the clips and the robot of GMR
  (YanjieZe/GMR), beside its own figures, and those of ``retarget``. The fastest of the rounds.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from common import machine, needed_data, save, table, verdicts
from retarget_directions import BODIES, UP, Side, differences

import synovia as sy
from servo import SLACK, outside, sizes

ROBOT = "g1_urdf"
LIVE = {name: path for name, path in BODIES.items() if name in ("humanoid", "mannequiny", ROBOT)}
GMR = {
    "lafan1_walk1_head": 288.0,
    "bandai2_walk_turn_lafan1": 170.0,
}  # its frames a second, where its answer is missing
ANSWERS = {
    "bandai2_walk_turn_lafan1": "gmr_lafan_bandai2_walkturn.npz",
    "lafan1_walk1_head": "gmr_walk1_subject1_head.npz",
}
SPEED, ACCELERATION = 8.0, 100.0  # rad/s, rad/s²
WAY = 0.4  # the same of lengths of free joints, legs for each radian
TOLD = 0.05  # of the mean error of directions that live retargeting may add
TIMES = 10.0


def off(body, source, motion, up):
    """Return the mean angles between directions of limbs, degrees: from joint to joint, and between centres."""
    sides = Side(body[0], source, up), Side(body[1], motion, motion.skeleton.up or "y")
    out = []
    for centres in (False, True):
        found = differences(*sides, centres)
        found.pop("trunk")
        out.append(float(np.mean(list(found.values()))))
    return out


def slide(motion, source, shared):
    """Return the mean speed of feet during contacts of the source, leg lengths per second."""
    return max((foot.slide for foot in sy.judge(motion, source, shared).figures.feet), default=0.0)


def limits_of(skeleton):
    """Return limits of velocity and of acceleration by row; those of lengths are in legs."""
    rows = [row for row, joint in enumerate(skeleton.joints) if joint.kind is not sy.Kind.FIXED]
    free = {row for row in rows if skeleton.joints[row].kind is sy.Kind.FREE}
    speed = {row: skeleton.joints[row].velocity or SPEED for row in rows}
    speed |= dict.fromkeys(free, (SPEED, WAY * SPEED))
    return speed, {row: (ACCELERATION, WAY * ACCELERATION) if row in free else ACCELERATION for row in rows}


def exceeded(skeleton, q, rate, velocity, leg):
    """Return how many ticks exceed a limit, and how far the worst does, by the judge of ``servo.py``."""
    h, bad, worst, groups = np.full(len(q) - 1, 1.0 / rate), 0, -np.inf, {}
    for row, top in velocity.items():
        groups.setdefault(top[0] if isinstance(top, tuple) else top, []).append(row)
    for top, rows in groups.items():
        found = sizes(_Part(skeleton, rows), q, h, np.tile([top, ACCELERATION, np.inf], (len(q), 1)), WAY * leg)
        found = found[np.isfinite(found)]
        bad += int((found > 0.0).sum())
        worst = max(worst, found.max(initial=-np.inf))
    beyond = outside(skeleton, q)
    return bad + int(beyond > SLACK), max(worst, beyond)


class _Part:
    """Some joints of a skeleton, as the judge looks at it."""

    def __init__(self, skeleton, rows):
        self._skeleton, self._rows, self.joints = skeleton, rows, [skeleton.joints[row] for row in rows]

    def q_slice(self, k):
        return self._skeleton.q_slice(self._rows[k])


def lossy(live, poses, rng, seconds):
    """Return joint values of a body whose source is lost again and again, and how far it moves while it holds."""
    q, k, restless = [live.step(poses[0]).q], 0, 0.0
    while len(q) < seconds * live.rate:
        for _ in range(int(rng.integers(0.2 * live.rate, 3.0 * live.rate))):
            k = (k + 1) % len(poses)
            q.append(live.step(poses[k]).q)
        away = float(rng.choice([0.02, 0.3, 1.0, 5.0]))
        q += [live.step(None).q for _ in range(int(away * live.rate))]
        if away >= 5.0:
            restless = max(restless, float(np.abs(q[-1] - q[-2]).max()))
        k = int(rng.integers(len(poses)))  # it comes back elsewhere
    q += [live.step(None).q for _ in range(int(60.0 * live.rate))]
    restless = max(restless, float(np.abs(q[-1] - q[-2]).max()))
    for _ in range(int(20.0 * live.rate)):
        pose = live.step(poses[0])
        q.append(pose.q)
    return np.array(q), restless, pose.status is sy.Status.REACHED


def speed(live, poses, rounds):
    """Return frames a second of the fastest round, the first frame apart."""
    best = np.inf
    for _ in range(rounds):
        live.reset()
        live.step(poses[0])
        begun = time.process_time()
        for pose in poses[1:]:
            live.step(pose)
        best = min(best, time.process_time() - begun)
    return (len(poses) - 1) / best


def clip_speed(motion, skeleton, rounds):
    """Return the frames a second of ``retarget`` without a clearance, in the fastest round."""
    best = np.inf
    for _ in range(rounds):
        begun = time.process_time()
        sy.retarget(motion, skeleton, clearance=None, threads=1)
        best = min(best, time.process_time() - begun)
    return len(motion) / best


def measure(name, motion, skeleton, rng, rounds):
    """Return the figures of one clip on one body."""
    up = UP.get(name, "y")
    made = sy.retarget(motion, skeleton, clearance=None)
    shared = {role: (made.source.roles[role], made.target.roles[role]) for role in made.carried}
    known = sy.live.LiveCalibration.learn(motion[: max(2, round(motion.fps))], skeleton)
    bodies = known.pairing.source, known.pairing.target
    poses = [motion[k] for k in range(len(motion))]
    live = sy.LiveRetarget(motion.skeleton, skeleton, rate=motion.fps, calibration=known)
    result = sy.Motion(live.skeleton, np.array([live.step(pose).q for pose in poses]), motion.fps)
    ours, theirs = off(bodies, motion, result, up), off((made.source, made.target), motion, made.motion, up)
    row = {
        "joints": ours[0], "joints_retarget": theirs[0], "limbs": ours[1], "limbs_retarget": theirs[1],
        "slide": slide(result, motion, shared),
        "slide_retarget": max((foot.slide for foot in made.judgement.figures.feet), default=0.0),
        "fps": speed(live, poses, rounds), "fps_retarget": clip_speed(motion, skeleton, rounds),
    }  # fmt: skip
    velocity, acceleration = limits_of(live.skeleton)
    bound = sy.LiveRetarget(
        motion.skeleton, skeleton, rate=motion.fps, calibration=known, velocity=velocity, acceleration=acceleration
    )
    leg = known.pairing.target.leg
    q = np.array([bound.step(pose).q for pose in poses])
    row["exceeded"], row["worst"] = exceeded(bound.skeleton, q, motion.fps, velocity, leg)
    bound.reset()
    q, row["restless"], row["back"] = lossy(bound, poses, rng, 30.0)
    row["exceeded_lost"], row["worst_lost"] = exceeded(bound.skeleton, q, motion.fps, velocity, leg)
    return row


def main():
    """Carry every clip over to every body, pose by pose."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", nargs="+")
    parser.add_argument("--bodies", nargs="+", default=list(LIVE), choices=list(LIVE))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    shared = Path(os.environ.get("SYNOVIA_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data").parent
    parser.add_argument("--answers", type=Path, default=shared / "peers" / "retarget")
    options = parser.parse_args()
    where, data, rng = machine(), needed_data(), np.random.default_rng(options.seed)
    names = options.clips or sorted(path.stem for path in (data / "motion").glob("*.bvh"))
    rows = []
    for name in names:
        motion = sy.load_motion(data / "motion" / f"{name}.bvh")
        for body in options.bodies:
            skeleton = sy.load_skeleton(data / LIVE[body]) if LIVE[body] else sy.bundled(body)
            rows.append({"clip": name, "body": body, **measure(name, motion, skeleton, rng, options.rounds)})
            print(*rows[-1].values(), sep=" | ", flush=True)
    bars = []
    for body in options.bodies:
        own = [row for row in rows if row["body"] == body]
        for what, key, most in (("directions", "joints", 1.0 + TOLD), ("slide of feet", "slide", 2.0)):
            live, made = (float(np.mean([row[name] for row in own])) for name in (key, f"{key}_retarget"))
            text = f"{body}: mean {what} at most {most:g} times that of retarget: {live:.3g} to {made:.3g}"
            bars.append((text, live <= most * made))
    bad = sum(row["exceeded"] + row["exceeded_lost"] for row in rows)
    bars.append((f"no limit is exceeded: {bad}", not bad))
    calm = max((row["restless"] for row in rows), default=0.0)
    bars.append((f"without a source the body stands still: {calm:.1e}", calm <= SLACK))
    bars.append(("it follows again after each loss", all(row["back"] for row in rows)))
    for row in rows:
        if row["body"] == ROBOT and row["clip"] in GMR:
            answer = options.answers / ANSWERS[row["clip"]]
            fps = float(np.load(answer)["fps"]) if answer.is_file() else GMR[row["clip"]]
            text = f"{row['clip']}: ten times the {fps:.0f} frames a second of GMR: {row['fps']:,.0f}"
            bars.append((text, row["fps"] >= TIMES * fps))
    lines, held = verdicts(bars)
    head = ["clip", "body", "joints °", "by retarget", "limbs °", "by retarget", "slide", "by retarget",
            "frames a second", "by retarget", "exceeded", "lost: exceeded", "back"]  # fmt: skip
    cells = [
        [row["clip"], row["body"], *(f"{row[key]:.3g}" for key in (
            "joints", "joints_retarget", "limbs", "limbs_retarget", "slide", "slide_retarget")),
         *(f"{row[key]:,.0f}" for key in ("fps", "fps_retarget")), row["exceeded"], row["exceeded_lost"],
         "yes" if row["back"] else "no"]
        for row in rows
    ]  # fmt: skip
    save("live", "Live retargeting", {"rows": rows}, f"{table(head, cells)}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
