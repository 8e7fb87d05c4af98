"""A recorded hand on robot hands beside dex_retargeting, judged by Pinocchio; pinches made by forward kinematics.

    python benchmarks/hands.py --peers FOLDER [--pinches 200]

FOLDER holds ``judge.py``, which measures answers with Pinocchio and tells their origins and scales, and ``answers``:
those of dex_retargeting's methods ``vector`` and ``dexpilot`` to the recording of the data folder, with their times.
Each hand gets the recording as a whole clip (``retarget_hand``) and frame by frame (``LiveHand``), without a file about
it. Clock: a whole call, hand and problem found and packed anew, divided by the frames; or one ``step``. Times of the
peer are those stored with its answers: make them again on this machine before a comparison.

Pinches: random poses of each hand in which the tips of thumb and a finger meet, whose landmarks then are a recording of
twelve frames. Each has to close.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
from common import data_folder, machine, save, table, verdicts

import synovia as sy

ROUNDS = 5
FPS = 30
CLOSED = 1e-3  # metres between tips that touch
MORE_VECTOR, MORE_PINCH, MORE_STEP = (1.03, 0.3), 3.0, 1.05  # millimetres
FALSE = 3
FASTER = {"clip": 50.0, "live": 20.0}
PALM = 0.09  # metres, of the recordings of pinches


def judge_of(folder):
    """Return the judge of a folder as a module."""
    spec = importlib.util.spec_from_file_location("judge", folder / "judge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def values(skeleton, q):
    """Return joint values (T, n) and the names of the joints that have one."""
    rows = [row for row, joint in enumerate(skeleton.joints) if joint.kind.q_size == 1]
    return q[:, [skeleton.q_slice(row).start for row in rows]], [skeleton.joint_names[row] for row in rows]


def whole(points, skeleton, how):
    """Return the joint values of a whole clip, and microseconds a frame."""
    best = np.inf
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        answer = sy.retarget_hand(points, skeleton, fps=FPS, **how)
        best = min(best, time.perf_counter() - begun)
    return answer.motion.q, 1e6 * best / len(points)


def frame_by_frame(points, skeleton, how):
    """Return the joint values of a live hand, and the median microseconds of a frame."""
    live, q, spent = sy.hands.LiveHand(skeleton, rate=FPS, source_side="right", **how), [], []
    for frame in points:
        begun = time.perf_counter()
        pose = live.step(frame)
        spent.append(time.perf_counter() - begun)
        q.append(pose.q)
    return np.array(q), 1e6 * float(np.median(spent))


def pinches(skeleton, count):
    """Return how many of ``count`` pinches of a hand close, and the largest distance of their tips in metres."""
    hand = sy.hand_of(skeleton)
    thumb, others = hand.fingers[0], hand.fingers[1:]
    closed, worst, made, seed = 0, 0.0, 0, 0
    while made < count:
        seed += 1
        finger = others[seed % len(others)]
        meet = sy.RelativeGoal(finger.tip, thumb.tip, (0, 0, 0), offset=finger.offset, other_offset=thumb.offset)
        found = sy.solve(skeleton, meet, start=skeleton.random_pose(seed))
        if not found.reached:
            continue
        made += 1
        points = sy.hands.hand_landmarks(found.pose)
        if np.isnan(points[17]).any():  # a hand of four fingers: the little one is beside the third
            points[17:] = points[13:17] + (points[13] - points[9])
        points *= PALM / np.linalg.norm(points[9] - points[0])
        answer = sy.retarget_hand(np.repeat(points[None], 12, axis=0), skeleton, fps=FPS, source_side=hand.side)
        k = answer.fingers.index(finger.name)
        gap = float(np.linalg.norm(answer.tips[-1, k] - answer.tips[-1, 0]))
        closed, worst = closed + (gap <= CLOSED), max(worst, gap)
    return closed, worst


def main():
    """Measure all hands and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, required=True, help="folder of the judge and of the peer's answers")
    parser.add_argument("--pinches", type=int, default=200, help="pinches of each hand")
    options = parser.parse_args()
    where, data, judge = machine(), data_folder() / "hands", judge_of(options.peers)
    points = np.load(data / "human_right_hand.npz")["joints"]
    rows, made, bars, found = [], [], [], {}
    for name, (origin, _, scale) in judge.HANDS.items():
        skeleton = sy.load_skeleton(data / f"{name}_hand_right.urdf")
        how = {"frame": "given", "origin": origin, "scale": scale}
        theirs = {}
        for method in ("vector", "dexpilot"):
            stored = np.load(options.peers / "answers" / f"{name}_{method}.npz")
            theirs[method] = judge.judge(data, name, stored["q"], stored["names"], stored["seconds"])
        fastest = min(one["median_us"] for one in theirs.values())
        for kind, run in (("clip", whole), ("live", frame_by_frame)):
            q, spent = run(points, skeleton, how)
            one = judge.judge(data, name, *values(skeleton, q))
            one |= {"us": spent, "faster": fastest / spent}
            found[f"{name}, {kind}"] = {key: float(value) for key, value in one.items()}
            rows.append([
                f"{name}, {kind}", f"{one['vector_mean']:.1f}", f"{theirs['vector']['vector_mean']:.1f}",
                f"{one['pinch_mean']:.2f}", f"{theirs['dexpilot']['pinch_mean']:.1f}", one["false_pinch"],
                f"{one['step']:.2f}", f"{theirs['vector']['step']:.2f}", f"{spent:.0f}", f"{fastest / spent:.0f}",
            ])  # fmt: skip
            most = MORE_VECTOR[0] * theirs["vector"]["vector_mean"] + MORE_VECTOR[1]
            near, step = theirs["dexpilot"]["pinch_mean"] + MORE_PINCH, MORE_STEP * theirs["vector"]["step"]
            label = f"{name}, {kind}"
            bars += [
                (f"{label}: vectors {one['vector_mean']:.1f} mm, at most {most:.1f}", one["vector_mean"] <= most),
                (f"{label}: pinches {one['pinch_mean']:.2f} mm, at most {near:.1f}", one["pinch_mean"] <= near),
                (f"{label}: {one['false_pinch']} false pinches, at most {FALSE}", one["false_pinch"] <= FALSE),
                (f"{label}: largest step {one['step']:.2f} rad, at most {step:.2f}", one["step"] <= step),
                (f"{label}: limits exceeded by {one['limits']:.0e} rad", one["limits"] <= 1e-9),
                (f"{label}: {one['faster']:.0f} times as fast, at least {FASTER[kind]:.0f}",
                 one["faster"] >= FASTER[kind]),
            ]  # fmt: skip
        if name in ("allegro", "shadow", "leap"):
            closed, worst = pinches(skeleton, options.pinches)
            made.append([name, options.pinches, closed, f"{1e3 * worst:.1e}"])
            bars.append((f"{name}: {closed} of {options.pinches} made pinches close", closed == options.pinches))
    heads = ["hand", "vector mm", "peer", "pinch mm", "peer", "false", "step rad", "peer", "µs", "faster"]
    told, held = verdicts(bars)
    text = "\n\n".join([table(heads, rows), table(["hand", "pinches", "closed", "worst mm"], made), told])
    save("hands", "Recorded hands on robot hands", {**found, "held": held}, text, where)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
