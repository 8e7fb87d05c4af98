"""Steps of hinges from frame to frame: every clip of the data folder on every humanoid robot, beside its source.

    python benchmarks/retarget_steps.py [--clips NAME ...]

A step is the turn of a hinge from one frame to the next. It is compared with that of the joint of the source that turns
the same part, relative to the part above it: 1.5 times as far, plus 5 degrees. A robot has other hinges in its leg than
the source, and a foot that stands fixes them all, so the hinges of a leg may also turn as far as the fastest joint of
that leg; where they do, the row says so. Clips inside glTF files count as well.
"""

import argparse

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy
from synovia.io.load import load_motions
from synovia.model.tree import ancestors

ROBOTS = {"g1_urdf": "robot/g1_29dof.urdf", "g1_mjcf": "robot/g1_menagerie_nomesh.xml"}
FACTOR, MORE = 1.5, 5.0
LEG = ("upper_leg", "lower_leg", "foot")


def source_steps(body, frames):
    """Return the turns of the source's parts, (T - 1,) degrees, by role."""
    rows, out = set(body.roles.values()), {}
    for role, row in body.roles.items():
        above = next((k for k in ancestors(body.skeleton.parents, row)[1:] if k in rows), None)
        R = frames[:, row, :9].reshape(-1, 3, 3)
        if above is not None:
            R = np.swapaxes(frames[:, above, :9].reshape(-1, 3, 3), 1, 2) @ R
        off = np.linalg.norm((R[1:] - R[:-1]).reshape(-1, 9), axis=1)
        out[role] = np.degrees(2.0 * np.arcsin(np.minimum(off / np.sqrt(8.0), 1.0)))
    return out


def part_of_hinge(body, row):
    """Return the part that a hinge turns: its own, or that of the next joint below; "" if there is none."""
    parts, children = {at: role for role, at in body.roles.items()}, body.skeleton.children
    while row not in parts and len(children[row]) == 1:
        row = children[row][0]
    return parts.get(row, "")


def measure(motion, skeleton):
    """Return the figures of one clip on one robot."""
    answer = sy.retarget(motion, skeleton)
    steps = source_steps(answer.source, motion.frames())
    shared = {role: step for role, step in steps.items() if role in answer.target.roles}
    fastest = np.max(list(shared.values()), axis=0)
    worst, beyond, least = ("", 0.0, 0.0, 0), -np.inf, -np.inf
    for row, joint in enumerate(answer.motion.skeleton.joints):
        if joint.kind is not sy.Kind.HINGE:
            continue
        turned = np.degrees(np.abs(np.diff(answer.motion.q[:, answer.motion.skeleton.q_slice(row).start])))
        role = part_of_hinge(answer.target, row)
        own = shared.get(role, fastest)
        side, _, part = role.partition("_")
        limb = own
        if part in LEG:
            limb = np.max([shared[name] for end in LEG if (name := f"{side}_{end}") in shared], axis=0)
        excess = turned - FACTOR * own - MORE
        frame = int(excess.argmax())
        if excess[frame] > beyond:
            beyond = float(excess[frame])
            worst = (joint.name, float(turned[frame]), float(own[frame]), frame + 1)
        least = max(least, float((turned - FACTOR * limb - MORE).max()))
    name, step, own, frame = worst
    return {
        "largest_source_step": float(fastest.max()), "joint": name, "frame": frame, "step": step, "source_step": own,
        "beyond_own": beyond, "beyond_leg": least, "verdict": answer.verdict,
    }  # fmt: skip


def main():
    """Measure every clip on every robot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", nargs="+", help="only clips whose names contain one of these")
    options = parser.parse_args()
    where, data = machine(), needed_data()
    files = [*sorted((data / "motion").glob("*.bvh")), *sorted((data / "character").glob("*.glb"))]
    robots = {name: sy.load_skeleton(data / path) for name, path in ROBOTS.items()}
    rows, refused = [], []
    for path in files:
        for motion in load_motions(path):
            name = motion.name if path.suffix == ".glb" else path.stem
            if len(motion) < 2 or (options.clips and not any(word in name for word in options.clips)):
                continue
            for robot, skeleton in robots.items():
                try:
                    rows.append({"clip": name, "robot": robot, "frames": len(motion), **measure(motion, skeleton)})
                except sy.SynoviaError as error:
                    refused.append(f"{path.name}: {name} on {robot}: {error}")
    head = list(rows[0])
    cells = [[f"{v:.1f}" if isinstance(v := row[key], float) else v for key in head] for row in rows]
    own = [row for row in rows if row["beyond_own"] > 0.0]
    most = max((row["beyond_own"] for row in own), default=0.0)
    bound = f"{FACTOR} times that of the source's joint, of a leg its fastest, plus {MORE:g} degrees"
    lines, held = verdicts([
        (f"no step beyond {bound}, in {len(rows)} clips", all(row["beyond_leg"] <= 0.0 for row in rows)),
    ])  # fmt: skip
    text = f"{table([name.replace('_', ' ') for name in head], cells)}\n\n{lines}"
    if own:
        text += f"\n\nBeyond the step of the very joint of a leg, by {most:.1f} degrees at most: {len(own)} clips."
    if refused:
        text += "\n\nRefused:\n\n" + "\n".join(f"- {line}" for line in refused)
    save("retarget_steps", "Steps of hinges of retargeted clips", {"rows": rows, "refused": refused}, text, where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
