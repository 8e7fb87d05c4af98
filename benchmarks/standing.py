"""How bodies stand while a hand reaches for random near points: lean of the trunk, balance, feet.

    python benchmarks/standing.py [--count 200] [--limits] [character.glb ...]

A point is in front, at 0.5 to 1.25 arms' lengths from the shoulder; for a hand without an arm, within 0.15 sizes of the
body from the hand; for an animal, within a tenth of its size from the head. A reach is good if the trunk leans below
30 degrees or the explanation says by how much, the centre of mass is above the feet, and the feet stay, or if the
status says that it missed.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import synovia as sy
from rigs import nameless, skeleton_of

ANIMAL, HANDED = 0.1, 0.15  # sizes of the body
NEAR = 0.5, 1.25  # arms' lengths


def measure(name, body, count, limits, seed):
    """Print the figures of one body."""
    if not any(joint.mass for joint in body.joints):
        body = sy.with_body_masses(body)
    if limits and "left_upper_leg" in body.roles:
        body = sy.with_human_limits(body)
    roles, rest = body.role_rows, body.rest_pose()
    goals = sy.standing_goals(body)
    hand = roles.get("left_hand", roles.get("head"))
    ik = sy.IK(body, [*goals, sy.PositionGoal(hand, name="reach", priority=1)], "full-body", root="free")
    feet = [k for k, goal in enumerate(ik.goals) if isinstance(goal, sy.ContactGoal)]
    balance = next(k for k, goal in enumerate(ik.goals) if isinstance(goal, sy.CenterOfMassGoal))
    up = ik.goals[balance].up
    ahead = np.eye(3)["xyz".index((body.forward or "z")[-1])] * (-1.0 if "-" in (body.forward or "") else 1.0)
    top = roles.get("neck", max(range(len(body)), key=lambda row: rest.position(row) @ up))
    # A body without known hips in its middle leans with what carries its top.
    low = roles["hips"] if "neck" in roles else next(r for r in body.children[roles["hips"]] if r <= top)
    upright = rest.position(top) - rest.position(low)
    added = len(ik.skeleton) - len(body)
    random, leans, outside, slides, seconds, bad = np.random.default_rng(seed), [], [], [], [], 0
    reached = 0
    for _ in range(count):
        way = random.normal(size=3)
        way *= np.sign(way @ ahead) / np.linalg.norm(way)
        if "left_upper_arm" in roles:
            shoulder = rest.position("left_upper_arm")
            target = shoulder + way * random.uniform(*NEAR) * np.linalg.norm(rest.position(hand) - shoulder)
        else:
            part = HANDED if "left_hand" in roles else ANIMAL
            target = rest.position(hand) + way * random.uniform(0.0, part) * body.size
        begin = time.perf_counter()
        solution = ik.solve({"reach": target})
        seconds.append(time.perf_counter() - begin)
        trunk = solution.pose.position(top + added) - solution.pose.position(low + added)
        cosine = trunk @ upright / np.linalg.norm(trunk) / np.linalg.norm(upright)
        lean = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
        out = solution.errors[balance].position
        slide = max(solution.errors[k].position for k in feet)
        reached += solution.reached
        wrong = lean >= 30.0 and not any("leans by" in line for line in solution.explain())
        bad += bool(solution.reached and (wrong or max(out, slide) > ik.tolerance[0]))
        leans.append(lean)
        outside.append(out)
        slides.append(slide)
    print(
        f"{name:20} reached {reached:3d} of {count}; lean median {np.median(leans):4.1f}, most {max(leans):5.1f} deg "
        f"({sum(lean >= 30.0 for lean in leans)} from 30); most out of balance {max(outside) / body.size:.0e}, "
        f"most slide {max(slides) / body.size:.0e} sizes; not good and not told {bad}; "
        f"{1e3 * np.median(seconds):.1f} ms",
        flush=True,
    )
    return bad


def main():
    """Measure the bodies that come with Synovia, rigs of common tools, and given files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="more models")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limits", action="store_true", help="give characters human limits")
    options = parser.parse_args()
    bodies = {
        "humanoid": sy.bundled("humanoid"),
        "quadruped": sy.bundled("quadruped"),
        "without names": nameless(),
        "mixamo": skeleton_of("mixamo"),
    }
    bodies |= {Path(path).name: sy.load_skeleton(path) for path in options.models}
    return (
        1
        if sum(measure(name, body, options.count, options.limits, options.seed) for name, body in bodies.items())
        else 0
    )


if __name__ == "__main__":
    raise SystemExit(main())
