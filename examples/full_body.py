"""A whole body with strict priorities: balance, hands and feet, and what happens when they cannot all be met.

python examples/full_body.py                       # the bundled humanoid, three orders of priority in one picture
python examples/full_body.py g1.urdf               # or g1.xml, a humanoid robot: feet, centre of mass, hands, posture
python examples/full_body.py mannequiny.glb        # a character: five places and orientations at once
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import synovia as sy

OUT = Path("full_body.png")


def orders() -> None:
    """Draw a body that is asked for more than it can do, three times: each limb comes first once."""
    from PIL import Image

    body = sy.bundled("humanoid")
    rest = body.rest_pose()
    places = {
        "left_hand": np.add(rest.position("left_hand"), (0.9, 0.5, 0.3)),
        "right_hand": np.add(rest.position("right_hand"), (-0.9, 0.4, 0.3)),
        "feet": None,
    }
    pictures: list[Image.Image] = []
    for first, second, third in (
        ("feet", "left_hand", "right_hand"),
        ("left_hand", "right_hand", "feet"),
        ("right_hand", "feet", "left_hand"),
    ):
        goals: list[sy.Goal] = [sy.RestGoal()]
        for level, limb in enumerate((first, second, third)):
            if limb == "feet":
                goals += [sy.PoseGoal(foot, priority=level) for foot in ("left_foot", "right_foot")]
            else:
                goals.append(sy.PositionGoal(limb, places[limb], priority=level))
        solution = sy.solve(body, goals, sy.FullBody(), root="free")
        title = f"{first} > {second} > {third}".replace("_", " ")
        pictures.append(sy.picture(solution, size=(560, 520), title=title, view="front"))
        tell(f"{title}:", solution)
    sheet = Image.new("RGB", (sum(p.width for p in pictures), pictures[0].height))
    for i, one in enumerate(pictures):
        sheet.paste(one, (i * one.width, 0))
    sheet.save(OUT)
    print(f"drawn into {OUT}")


HANDS = ("left_rubber_hand", "left_elbow_roll_link")  # what the models of one robot call it
FOOT = "left_ankle_roll_link"


def robot(path: str) -> None:
    """Keep the feet where they are and the weight above them, and move the hands."""
    body = sy.load_skeleton(path)
    known = {name for joint in body.joints for name in (joint.name, joint.body)}
    hand = next(name for name in HANDS if name in known)
    hands, feet = ((name, name.replace("left", "right")) for name in (hand, FOOT))
    rest = body.rest_pose()
    soles = np.array(
        [np.add(rest.position(foot), (x, y, 0.0)) for foot in feet for x in (-0.05, 0.1) for y in (-0.03, 0.03)]
    )
    goals = [
        *(sy.ContactGoal(foot, priority=0) for foot in feet),
        sy.CenterOfMassGoal(polygon=soles, up=(0, 0, 1), priority=1),
        *(sy.PositionGoal(hand, np.add(rest.position(hand), (0.25, 0.0, 0.15)), priority=2) for hand in hands),
        sy.RestGoal(),
    ]
    solution = sy.solve(body, goals, sy.FullBody(), root="free")
    tell(f"{body.name}: feet, balance, hands", solution)
    sy.picture(solution, path=OUT, force=True)


def character(path: str) -> None:
    """Take hands, feet and head of a character to places and orientations of another pose."""
    body = sy.load_skeleton(path)
    ends = [name for name in body.joint_names if name.lower().startswith(("hand", "foot", "head"))]
    q = body.rest_pose().q.copy()
    rng = np.random.default_rng(2)
    for kind, at, _ in body.tables.variables:
        if kind == 1 and at >= 7:
            turn = sy.Rotation.from_rotvec(0.3 * rng.normal(size=3))
            q[at : at + 4] = (sy.Rotation.from_quat(q[at : at + 4]) * turn).as_quat()
    wanted = sy.Pose(body, q)
    goals = [sy.PoseGoal(end, transform=wanted.transform(end)) for end in ends]
    solution = sy.solve(body, goals, sy.FullBody())
    tell(f"{body.name}: {', '.join(ends)}", solution)
    sy.picture(solution, path=OUT, force=True)


def tell(title: str, solution: sy.Solution) -> None:
    """Print what came out, and why."""
    print(title, *solution.explain(), sep="\n  ")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        orders()
    elif sys.argv[1].endswith((".glb", ".gltf")):
        character(sys.argv[1])
    else:
        robot(sys.argv[1])
