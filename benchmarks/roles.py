"""Count the bodies whose parts are found as their files declare them, or as their names tell.

    python benchmarks/roles.py FOLDER...

For each model below the folders that can be read: a VRM declares its parts, so they are compared with those found from
names and shape without its table, and from shape alone. For other bodies whose joints' names tell all of the core
(upper and lower parts and ends of all limbs), those are compared with what the shape alone shows.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import synovia as sy
from synovia.model.anatomy.limbs import PARTS
from synovia.model.anatomy.roles import recognize

CORE = [f"{side}_{part}" for side in ("left", "right") for parts in PARTS.values() for part in parts[:3]]
ENDINGS = {".vrm", ".glb", ".gltf", ".bvh", ".urdf", ".xml", ".mjcf", ".toml"}


def without(skeleton: sy.Skeleton, *, names: bool) -> sy.Skeleton:
    """Return the body without declared parts; without names too if they shall not tell."""
    above = [None if parent < 0 else parent for parent in skeleton.parents]
    return skeleton.with_joints(
        replace(joint, role=None, parent=parent) if names
        else replace(joint, role=None, body=None, name=f"joint{row}", mimic=None, parent=parent)
        for row, (joint, parent) in enumerate(zip(skeleton.joints, above, strict=True))
    )  # fmt: skip


def expected(skeleton: sy.Skeleton) -> tuple[str, dict[str, int]]:
    """Return who tells the core of a body ("" if nobody does), and its rows by role."""
    declared = {joint.role: row for row, joint in enumerate(skeleton.joints) if joint.role in CORE}
    if declared:
        return "declared", declared
    asked: list[bool] = []
    bare = skeleton.with_joints(skeleton.joints)

    def shape() -> object:
        asked.append(True)
        return bare._shape()

    found = recognize(bare, shape)
    return ("" if asked else "named"), {role: rows[0] for role, rows in found.items() if role in CORE}


def main(folders: list[str]) -> None:
    """Print a line for each body that differs, and the counts."""
    warnings.simplefilter("ignore")
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    seen: set[object] = set()
    slowest = 0.0
    for path in sorted(
        path for folder in folders for path in Path(folder).rglob("*") if path.suffix.lower() in ENDINGS
    ):
        try:
            skeleton = sy.load_skeleton(path)
        except sy.SynoviaError:
            continue
        key = (skeleton.joint_names, skeleton.parents, skeleton.lengths.round(4).tobytes())
        if key in seen or len(skeleton) < 8:
            continue
        seen.add(key)
        skeleton.rest_pose()
        before = time.perf_counter()
        roles = skeleton.role_rows
        slowest = max(slowest, 1e3 * (time.perf_counter() - before))
        teller, wanted = expected(skeleton)
        if not teller:
            some = sum(role in roles for role in CORE)
            counts[
                "neither declared nor named: core found"
                if some == len(CORE)
                else "neither declared nor named: some parts"
                if some
                else "no parts found"
            ][0] += 1
            print(f"{'core' if some == len(CORE) else some or '-'} {path}")
            continue
        ways = {"as used": roles, "shape alone": without(skeleton, names=False).role_rows}
        if teller == "declared":
            ways["names and shape"] = without(skeleton, names=True).role_rows
        for way, found in ways.items():
            wrong = [role for role, row in wanted.items() if found.get(role) != row]
            count = counts[f"{teller}, {way}"]
            count[0] += not wrong
            count[1] += 1
            if wrong:
                print(f"{path} ({teller}, {way}): {', '.join(wrong)}")
    for what, (right, every) in sorted(counts.items()):
        print(f"{what}: {right}" + (f" of {every}" if every else ""))
    print(f"slowest search: {slowest:.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
