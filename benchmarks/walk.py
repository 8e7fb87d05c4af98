"""A recorded walk solved once more from four end effectors: frames a second on one core, and how many are met.

    python benchmarks/walk.py [--rounds 9]

Reads cmu_07_01_walk.bvh of ../shared/data: 317 frames, 45 joints, a free root; hands and feet follow the recording.
"""

import argparse
import time

from common import machine, needed_data, save, table, verdicts

import synovia as sy

ENDS = ("LeftHand", "RightHand", "LeftFoot", "RightFoot")
SOLVERS = ("lm", "full-body")


def main():
    """Track, time, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    where, rows = machine(), []
    walk = sy.load_motion(needed_data() / "motion" / "cmu_07_01_walk.bvh")
    targets = sy.targets_from(walk, ENDS)
    iks = [sy.IK(walk.skeleton, [sy.PositionGoal(name) for name in ENDS], solver, root="free") for solver in SOLVERS]
    best = [float("inf")] * len(iks)
    for _ in range(options.rounds + 1):  # the first compiles what a miss needs
        for k, ik in enumerate(iks):
            begun = time.perf_counter()
            clip = ik.track(targets, walk.pose(0), fps=walk.fps, threads=1)
            best[k] = min(best[k], time.perf_counter() - begun)
            if len(rows) < len(iks):
                rows.append({"solver": ik.solver.name, "frames": len(clip), "missed": len(clip.missed_frames),
                             "jumps": len(clip.jumps), "mean_steps": float(clip.steps.mean())})  # fmt: skip
    for row, seconds in zip(rows, best, strict=True):
        row["frames_per_second"] = row["frames"] / seconds
    text = table(
        ["solver", "frames", "missed", "jumps", "mean steps", "frames a second"],
        [[r["solver"], r["frames"], r["missed"], r["jumps"], f"{r['mean_steps']:.2f}", f"{r['frames_per_second']:,.0f}"]
         for r in rows],
    )  # fmt: skip
    fastest = max(row["frames_per_second"] for row in rows)
    lines, held = verdicts([
        (f"5,000 frames a second on one core: {fastest:,.0f}", fastest >= 5000),
        ("every frame is met without a jump", not any(row["missed"] or row["jumps"] for row in rows)),
    ])  # fmt: skip
    save("walk", "A walk solved once more", {"rows": rows}, f"{text}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
