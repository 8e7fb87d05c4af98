"""Retargeted clips without and with shapes: how deep limbs are inside the body, how the hands accelerate, and time.

    python benchmarks/retarget_clearance.py [--rounds 5]

Reads the models of ../shared/data. The clips are jumping jacks, a dance, and one in which the hands touch hips, belly,
each other, the other arm and the head; the last one is made here. Depths are those of shapes of different limbs that
``sy.shapes.self_pairs`` counts. Where the source's limbs are apart, by its own shapes or by capsules around its bones,
no limb may be deeper than 5 mm. Times are wall times of ``sy.retarget`` on all cores, the fastest of the rounds.
"""

import argparse
import time

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy

PLACES = {  # of the left wrist, metres, of a body whose shoulders are at 1.43
    "down": (0.30, 0.90, 0.04), "hips": (0.23, 1.02, 0.05), "belly": (0.11, 1.08, 0.19),
    "clap": (0.06, 1.28, 0.42), "arms": (-0.10, 1.26, 0.22), "head": (0.15, 1.70, 0.06),
}  # fmt: skip
ORDER = ("down", "hips", "belly", "clap", "arms", "head", "down")
LOWER = (0.0, -0.12, 0.03)  # the right arm below the left one, where they cross
FPS, HOLD, MOVE = 60.0, 30, 42
ALLOWED = 0.005  # metres


def wrist_path(side, scale):
    """Return places of a wrist that goes from one place to the next, (T, 3)."""
    flip = np.array([1.0 if side == "left" else -1.0, 1.0, 1.0])
    points = [flip * PLACES[name] + (LOWER if name == "arms" and side == "right" else 0.0) for name in ORDER]
    out = []
    for k, point in enumerate(points):
        out += [point] * HOLD
        if k + 1 < len(points):
            u = np.linspace(0.0, 1.0, MOVE + 2)[1:-1, None]
            u = u * u * (3.0 - 2.0 * u)
            aside = 0.45 if {ORDER[k], ORDER[k + 1]} == {"head", "down"} else 0.15
            middle = (point + points[k + 1]) / 2.0 + flip * (aside, 0.0, 0.12)
            out += list((1.0 - u) ** 2 * point + 2.0 * u * (1.0 - u) * middle + u * u * points[k + 1])
    return scale * np.array(out)


def touching(body):
    """Return a clip of a body with shapes, y up, whose hands touch it and do not enter it."""
    arms = [body.roles[f"{side}_hand"] for side in ("left", "right")]
    scale = body.rest_pose().position(body.roles["left_upper_arm"])[1] / 1.43
    trunk = {body.roles[role]: 1.0 for role in ("spine", "chest") if role in body.roles}
    goals = [*(sy.PositionGoal(arm) for arm in arms), sy.ClearanceGoal(), sy.RestGoal(joints=trunk)]
    paths = {arm: wrist_path(side, scale) for arm, side in zip(arms, ("left", "right"), strict=True)}
    tracked = sy.IK(body, goals, sy.FullBody(attempts=1)).track(paths)
    return sy.Motion(body, tracked.q, FPS, name="hands on the body")


def depths(answer):
    """Return the deepest overlap, that where the source's limbs are apart, and the deepest pair; metres and names."""
    inside = answer.judgement.figures.inside
    if not inside:
        return 0.0, 0.0, "-"
    apart = max(float(np.max(np.where(one.source > 0.0, 0.0, one.depth))) for one in inside)
    return float(inside[0].depth.max()), apart, " in ".join(inside[0].parts).replace("_", " ")


def hand_acceleration(answer):
    """Return the largest acceleration of a hand, metres per second squared."""
    rows = [answer.target.roles[role] for role in ("left_hand", "right_hand")]
    places = answer.motion.positions()[:, rows]
    return float(np.linalg.norm(np.diff(places, 2, axis=0), axis=2).max()) * answer.motion.fps**2


def timed(motion, body, rounds, **options):
    """Return the answer and the seconds of the fastest round."""
    seconds = []
    for _ in range(rounds + 1):  # the first compiles
        begun = time.perf_counter()
        answer = sy.retarget(motion, body, **options)
        seconds.append(time.perf_counter() - begun)
    return answer, min(seconds[1:])


def main():
    """Carry every clip over to every body, without and with clearance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    where, data = machine(), needed_data()
    humanoid = sy.bundled("humanoid")
    mannequiny = sy.with_shapes(sy.load_skeleton(data / "character" / "mannequiny.glb"))
    bodies = {"G1": sy.load_skeleton(data / "robot" / "g1_29dof.urdf"), "Mannequiny": mannequiny, "humanoid": humanoid}
    clips = {
        "jumping jacks": sy.load_motion(data / "motion" / "cmu_jumping_jacks.bvh"),
        "dance": sy.load_motion(data / "motion" / "rokoko_jesse_dance.bvh"),
    }
    rows = []
    for name, body in bodies.items():
        for clip, motion in {
            **clips,
            "hands on the body": touching(mannequiny if body is humanoid else humanoid),
        }.items():
            before, slow = timed(motion, body, options.rounds, clearance=None)
            after, fast = timed(motion, body, options.rounds)
            (deep, apart, pair), (deep_after, apart_after, _) = depths(before), depths(after)
            rows.append({
                "clip": clip, "body": name, "frames": len(motion), "deepest_mm": 1e3 * deep, "pair": pair,
                "apart_mm": 1e3 * apart, "deepest_after_mm": 1e3 * deep_after, "apart_after_mm": 1e3 * apart_after,
                "verdict": before.verdict, "verdict_after": after.verdict,
                "hands": hand_acceleration(before), "hands_after": hand_acceleration(after),
                "us_per_frame": 1e6 * slow / len(motion), "us_after": 1e6 * fast / len(motion), "speed": slow / fast,
            })  # fmt: skip
    head = {
        "clip": "clip", "body": "body", "frames": "frames", "pair": "deepest pair", "deepest_mm": "mm deep",
        "apart_mm": "source apart", "deepest_after_mm": "mm deep, kept apart", "apart_after_mm": "source apart",
        "verdict": "verdict", "verdict_after": "kept apart", "hands": "hands m/s²", "hands_after": "kept apart",
        "us_per_frame": "µs/frame", "us_after": "kept apart", "speed": "speed",
    }  # fmt: skip
    cells = [[f"{v:.3g}" if isinstance(v := row[key], float) else v for key in head] for row in rows]
    deepest, slowest = max(row["apart_after_mm"] for row in rows), min(row["speed"] for row in rows)
    lines, held = verdicts([
        (f"no limb inside another by more than 5 mm where the source's are apart: {deepest:.2g} mm",
         deepest <= 1e3 * ALLOWED),
        (f"at a third of the speed without shapes or better: {slowest:.2f}", slowest >= 1.0 / 3.0),
    ])  # fmt: skip
    text = table(list(head.values()), cells)
    save(
        "retarget_clearance",
        "Retargeted limbs that keep clear of the body",
        {"rows": rows},
        f"{text}\n\n{lines}",
        where,
    )
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
