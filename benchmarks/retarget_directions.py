"""Directions of limbs and trunk of retargeted clips, beside those of their sources.

    python benchmarks/retarget_directions.py [--clips NAME ...] [--bodies NAME ...] [--pictures FOLDER]

Every clip of ``shared/data/motion`` goes to every body. One turn about the vertical is taken out for each clip. Then:

- trunk: mean angle between the directions from the hips to the neck (the middle of the shoulders without a neck);
- limbs: mean angle between the directions of upper arms, forearms, thighs and shins, from joint centre to joint centre;
- joints: the same from joint to joint, the offsets between the hinges of a robot's hip or shoulder included;
- worst: the limb with the largest mean, and its mean;
- crossed: share of the frames in which the left ankle is to the right of the right one, in the result and the source.

The axis that points up is written below for each clip; the figures do not depend on what ``sy.retarget`` finds.
"""

import argparse
from pathlib import Path

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy

UP = {"cmu_07_01_walk": "z", "fair_wave_hello": "z"}  # the others: y
BODIES = {
    "humanoid": None,
    "mannequiny": "character/mannequiny.glb",
    "g1_urdf": "robot/g1_29dof.urdf",
    "g1_mjcf": "robot/g1_menagerie_nomesh.xml",
}
ROBOTS = ("g1_urdf", "g1_mjcf")
BONES = (
    ("upper_arm", "lower_arm"), ("lower_arm", "hand"), ("upper_leg", "lower_leg"), ("lower_leg", "foot"),
)  # fmt: skip
TO_Y_UP = {"y": np.eye(3), "z": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])}


class Side:
    """The source or the result: its body, and its motion with y up."""

    def __init__(self, body, motion, up):
        """Compute all frames."""
        self.body, self.skeleton, self.axes = body, motion.skeleton, TO_Y_UP[up]
        self.frames = motion.frames()
        self.places = self.frames[..., 9:] @ self.axes.T

    def joint(self, role, centres):
        """Return the positions of a part, (T, 3)."""
        return self.body.position(role, self.frames) @ self.axes.T if centres else self.places[:, self.body.roles[role]]

    def bone(self, start, end, centres):
        """Return the directions of a bone, (T, 3); None where the body does not have it."""
        roles = self.body.roles
        if start not in roles:
            return None
        last = [self.joint(end, centres)] if end in roles else [self.places[:, row] for row in self.below(roles[start])]
        return unit(np.mean(last, axis=0) - self.joint(start, centres)) if last else None

    def below(self, row):
        """Return the nearest joints below a row that are apart from it: the fingers of a hand without a wrist."""
        rows = self.skeleton.children[row]
        while rows:
            apart = [
                at for at in rows if np.linalg.norm(self.places[0, at] - self.places[0, row]) > 1e-2 * self.body.leg
            ]
            if apart:
                return apart
            rows = [child for at in rows for child in self.skeleton.children[at]]
        return []

    def trunk(self, top):
        """Return the directions from the hips to the mean of some parts, (T, 3)."""
        return unit(np.mean([self.joint(role, True) for role in top], axis=0) - self.joint("hips", False))

    def crossed(self):
        """Return the share of frames in which the ankles are crossed, seen from the hips."""
        left = self.joint("left_upper_leg", True) - self.joint("right_upper_leg", True)
        left = unit(left * (1.0, 0.0, 1.0))
        ankles = self.joint("left_foot", True) - self.joint("right_foot", True)
        return float(np.mean(np.einsum("ti,ti->t", ankles, left) < 0.0))


def unit(v):
    """Return v / |v|, where v is not 0."""
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12)


def best_turn(a, b):
    """Return the rotation about y that brings directions b (n, 3) closest to a."""
    angle = np.arctan2((b[:, 2] * a[:, 0] - b[:, 0] * a[:, 2]).sum(), (a * b)[:, [0, 2]].sum())
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def differences(source, result, centres):
    """Return the mean angle between the directions of each bone, degrees, by bone."""
    necks = all("neck" in one.body.roles for one in (source, result))
    top = ("neck",) if necks else ("left_upper_arm", "right_upper_arm")
    lines = {"trunk": (source.trunk(top), result.trunk(top))}
    for side in ("left", "right"):
        for start, end in BONES:
            pair = [one.bone(f"{side}_{start}", f"{side}_{end}", centres) for one in (source, result)]
            if all(way is not None for way in pair):
                lines[f"{side}_{start}"] = pair
    turn = best_turn(*(np.concatenate([pair[k] for pair in lines.values()]) for k in (0, 1)))
    return {
        name: float(np.degrees(np.arccos(np.clip(np.einsum("ti,ti->t", a, b @ turn.T), -1.0, 1.0))).mean())
        for name, (a, b) in lines.items()
    }


def measure(motion, skeleton, up):
    """Return source and result, and the figures of one clip on one body."""
    answer = sy.retarget(motion, skeleton)
    source = Side(answer.source, motion, up)
    result = Side(answer.target, answer.motion, answer.motion.skeleton.up or "y")
    off, rows = differences(source, result, True), differences(source, result, False)
    trunk = off.pop("trunk")
    rows.pop("trunk")
    worst = max(off, key=off.get)
    return source, result, {
        "trunk": trunk, "limbs": float(np.mean(list(off.values()))), "joints": float(np.mean(list(rows.values()))),
        "worst": f"{worst} {off[worst]:.0f}", "crossed": result.crossed(), "source_crossed": source.crossed(),
        "rest": answer.stance.rest.name, "certainty": answer.stance.rest.certainty,
    }  # fmt: skip


def picture(sides, path):
    """Draw source and result at six moments, seen from ahead and a little from the right."""
    from PIL import Image, ImageDraw

    sheet = Image.new("RGB", (6 * 220, 2 * 300), "white")
    draw = ImageDraw.Draw(sheet)
    for line, one in enumerate(sides):
        size, floor = 250.0 / (2.1 * one.body.leg), one.places[..., 1].min()
        roles = {row: role for role, row in one.body.roles.items()}
        hips = one.body.roles["hips"]
        for k, frame in enumerate(np.linspace(0, len(one.places) - 1, 6).round().astype(int)):
            p = one.places[frame]
            left = unit((p[one.body.roles["left_upper_leg"]] - p[one.body.roles["right_upper_leg"]]) * (1, 0, 1))
            across = unit(left - 0.5 * np.cross(left, [0.0, 1.0, 0.0]))
            for row in range(len(p)):
                above, trail = one.skeleton.parents[row], row
                while trail >= 0 and trail != hips:
                    trail = one.skeleton.parents[trail]
                if trail < 0 or row == hips:
                    continue
                ends = [
                    (
                        110 + 220 * k + size * float((p[j] - p[hips]) @ across),
                        300 * line + 290 - size * (p[j, 1] - floor),
                    )
                    for j in (above, row)
                ]
                name = (one.skeleton.joint_names[row] + roles.get(row, "")).lower()
                draw.line(ends, fill="red" if "left" in name else "blue" if "right" in name else "black", width=3)
    sheet.save(path)


def main():
    """Carry every clip over to every body."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", nargs="+")
    parser.add_argument("--bodies", nargs="+", default=list(BODIES), choices=list(BODIES))
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    where, data = machine(), needed_data()
    names = options.clips or sorted(path.stem for path in (data / "motion").glob("*.bvh"))
    rows = []
    for name in names:
        motion = sy.load_motion(data / "motion" / f"{name}.bvh")
        for body in options.bodies:
            skeleton = sy.load_skeleton(data / BODIES[body]) if BODIES[body] else sy.bundled(body)
            *sides, row = measure(motion, skeleton, UP.get(name, "y"))
            rows.append({"clip": name, "body": body, **row})
            if options.pictures:
                options.pictures.mkdir(parents=True, exist_ok=True)
                picture(sides, options.pictures / f"{name}-{body}.png")
    head = list(rows[0])
    cells = [[f"{v:.3g}" if isinstance(v := row[key], float) else v for key in head] for row in rows]
    people = [row for row in rows if row["body"] not in ROBOTS]
    robots = [row for row in rows if row["body"] in ROBOTS]
    lines, held = verdicts([
        ("trunks within 10 degrees", all(row["trunk"] <= 10.0 for row in rows)),
        ("limbs of characters within 10 degrees", all(row["joints"] <= 10.0 for row in people)),
        ("limbs of robots within 15 degrees", all(row["joints"] <= 15.0 for row in robots)),
        ("no more crossed ankles than the source", all(row["crossed"] <= row["source_crossed"] + 0.01 for row in rows)),
    ])  # fmt: skip
    text = table([name.replace("_", " ") for name in head], cells)
    save("retarget_directions", "Directions of limbs of retargeted clips", {"rows": rows}, f"{text}\n\n{lines}", where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
