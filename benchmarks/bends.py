"""Do knees bend forward and elbows back? Random squats and reaches of bodies with straight limbs, in every solver.

    python benchmarks/bends.py [--count 1000] [--seed 1] [--only TEXT]

Bodies: made ones in T-pose in several worlds (y up, z up, centimetres, knees and elbows as hinges, without names), the
bundled characters, and every character and every clip's body of ../shared/data that has all limbs; limbs that are
not straight at rest are made straight. Each problem goes to every solver: a squat (the feet stay, the hips go
down), a leg or an arm that reaches alone, an arm that reaches with the trunk. ``two-bone`` solves those of one limb.

By this script's own arithmetic, from 1 to -1:

- trunk: of the middle joint's distance from the line between the ends of its limb, the part that is forward of the
  trunk (knees) or behind it (elbows). A limb that is nearly straight, or that points forward or back itself, has no
  side;
- joint: the same about the axes of the upper bone, however its shoulder or hip has rolled.

A bend is against its role if one of them is below 0; where the trunk moves too, if the second is: there a shoulder may
roll. In some BVH files the zero pose is no pose: a leg points up along the trunk. There forward is undefined, and so is
each of these figures: every bend of such a body has to be told by a note.
"""

import argparse
from collections import defaultdict
from dataclasses import replace

import numpy as np
from common import data_folder, machine, save, table, verdicts

import synovia as sy

SOLVERS = ("lm", "dls", "pinv", "transpose", "sdls", "full-body", "fabrik", "ccd", "particles", "two-bone")
SIDES = {"left": 1.0, "right": -1.0}
LEG, ARM = ("upper_leg", "lower_leg", "foot"), ("upper_arm", "lower_arm", "hand")
KINDS = ("squat", "leg", "arm", "arm and trunk")
BENT = 0.02  # smallest distance of the middle joint from the line, in lengths of the limb, that has a side
ACROSS = 0.3  # smallest part of the way ahead that is across the limb
STRAIGHT = 1e-3  # radians: what is bent more at rest is made straight
WIDE = np.radians(40.0)  # largest angle between the rest direction of a limb and a target's


def unit(v):
    """Return a vector of length 1."""
    return v / np.linalg.norm(v)


def at(place):
    """Return a transform without a rotation."""
    frame = np.eye(4)
    frame[:3, 3] = place
    return frame


def made(turn, scale=1.0, hinges=False, named=True, travels=False):
    """Return a body in T-pose with straight limbs, y up and facing z before the turn of its world."""
    R = turn.as_matrix()
    rows = [("hips", None, (0, 0.96, 0)), ("spine", "hips", (0, 0.1, 0)), ("chest", "spine", (0, 0.16, 0))]
    rows += [("neck", "chest", (0, 0.26, 0)), ("head", "neck", (0, 0.09, 0))]
    for side, x in SIDES.items():
        for role, parent, place in (
            ("upper_leg", "hips", (0.09 * x, -0.03, 0)), ("lower_leg", "upper_leg", (0, -0.43, 0)),
            ("foot", "lower_leg", (0, -0.43, 0)), ("toes", "foot", (0, -0.06, 0.13)),
            ("shoulder", "chest", (0.03 * x, 0.2, 0)), ("upper_arm", "shoulder", (0.14 * x, 0, 0)),
            ("lower_arm", "upper_arm", (0.28 * x, 0, 0)), ("hand", "lower_arm", (0.27 * x, 0, 0)),
            ("tip", "hand", (0.18 * x, 0, 0)),
        ):  # fmt: skip
            rows.append((f"{side}_{role}", parent if parent in {"hips", "chest"} else f"{side}_{parent}", place))
    joints = []
    for name, parent, place in rows:
        kind, axis = sy.Kind.FREE if parent is None else sy.Kind.BALL, (0.0, 0.0, 1.0)
        if name.endswith(("tip", "toes")):
            kind = sy.Kind.FIXED
        if hinges and name.endswith(("lower_leg", "lower_arm")):
            kind, axis = sy.Kind.HINGE, R[:, 0] if name.endswith("leg") else R[:, 1]
        if travels and kind is sy.Kind.BALL:
            kind = sy.Kind.FREE
        joints.append(sy.Joint(name, parent, kind, at(scale * R @ np.array(place, float)), axis=axis))
    if not named:
        new = {joint.name: f"bone{k}" for k, joint in enumerate(joints)}
        joints = [replace(joint, name=new[joint.name], parent=new.get(joint.parent)) for joint in joints]
    ends = {"up": R[:, 1], "forward": R[:, 2]}
    words = {what: "-" * int(v.sum() < 0.0) + "xyz"[int(np.argmax(np.abs(v)))] for what, v in ends.items()}
    return sy.Skeleton(joints, **words, meters_per_unit=1.0 / scale)


def straightened(skeleton):
    """Return the body with limbs that are straight at rest."""
    for side in SIDES:
        for roles in (LEG, ARM):
            rest, rows = skeleton.rest_pose(), [skeleton.role_rows[f"{side}_{role}"] for role in roles]
            u, m, e = rest.positions[rows]
            upper, lower = unit(m - u), unit(e - m)
            axis, row = np.cross(lower, upper), rows[1]
            angle = np.arctan2(np.linalg.norm(axis), lower @ upper)
            if angle > STRAIGHT:
                turn = sy.Rotation.from_rotvec(angle * unit(axis)).as_matrix()
                above = rest.frames[skeleton.parents[row], :9].reshape(3, 3)
                frame = skeleton.joints[row].rest.copy()
                frame[:3, :3] = above.T @ turn @ above @ frame[:3, :3]
                joints = [replace(joint, rest=frame) if k == row else joint for k, joint in enumerate(skeleton.joints)]
                skeleton = skeleton.with_joints(joints)
    return skeleton


def bodies():
    """Return the bodies by name."""
    turn = sy.Rotation.from_euler
    out = {
        "y up": made(turn("x", 0.0)),
        "z up": made(turn("x", np.pi / 2)),
        "z up, faces x": made(turn("xz", (np.pi / 2, np.pi / 2))),
        "centimetres": made(turn("y", np.pi / 2), scale=100.0),
        "hinges": made(turn("x", 0.0), hinges=True),
        "hinges, z up": made(turn("x", np.pi / 2), hinges=True),
        "free joints": made(turn("x", 0.0), travels=True),
        "without names": made(turn("x", 0.0), named=False),
        "without names, z up, cm": made(turn("x", np.pi / 2), scale=100.0, named=False),
        **{name: straightened(sy.bundled(name)) for name in ("humanoid", "humanoid_hands")},
    }
    folder = data_folder()
    for path in sorted([*folder.glob("character/*.gl*"), *folder.glob("motion/*.bvh")]):
        skeleton = sy.load_skeleton(path)
        if all(f"{side}_{role}" in skeleton.role_rows for side in SIDES for role in LEG + ARM):
            out[path.stem] = straightened(skeleton)
    return out


class Body:
    """A body with its directions at rest: ``R`` has left, up and ahead as columns."""

    def __init__(self, skeleton):
        self.skeleton, self.rest = skeleton, skeleton.rest_pose()
        legs = [self.rest.position(f"{side}_upper_leg") for side in SIDES]
        arms = [self.rest.position(f"{side}_upper_arm") for side in SIDES]
        up = unit(arms[0] + arms[1] - legs[0] - legs[1])
        left = unit(legs[0] - legs[1] - ((legs[0] - legs[1]) @ up) * up)
        self.R = np.column_stack([left, up, np.cross(left, up)])
        trunk, legs = arms[0] + arms[1] - legs[0] - legs[1], zip(legs, SIDES, strict=True)
        legs = [self.rest.position(f"{side}_foot") - hip for hip, side in legs]
        self.stands = all(leg @ trunk < 0.5 * np.linalg.norm(leg) * np.linalg.norm(trunk) for leg in legs)
        self.chest = next(role for role in ("chest", "spine", "hips") if role in skeleton.role_rows)

    def length(self, side, roles):
        """Return the length of a limb."""
        u, m, e = (self.rest.position(f"{side}_{role}") for role in roles)
        return float(np.linalg.norm(m - u) + np.linalg.norm(e - m))

    def problem(self, kind, side, rng):
        """Return goals, and options of ``solve``."""
        if kind == "squat":
            hips, leg = self.rest.transform("hips").copy(), self.length("left", LEG)
            way = rng.uniform(-0.05, 0.05), -rng.uniform(0.04, 0.55), rng.uniform(-0.05, 0.05)
            hips[:3, 3] += leg * self.R @ way
            goals = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot"), sy.PoseGoal("hips", transform=hips)]
            return goals, {"root": "free"}
        roles = LEG if kind == "leg" else ARM
        first, end = (self.rest.position(f"{side}_{role}") for role in (roles[0], roles[2]))
        axis = unit(np.cross(end - first, rng.normal(size=3)))
        way = sy.Rotation.from_rotvec(rng.uniform(0.0, WIDE) * axis).apply(unit(end - first))
        place = first + rng.uniform(0.5, 0.98) * self.length(side, roles) * way
        held = {} if kind == "arm and trunk" else {"ancestors": 2}
        return [sy.PositionGoal(f"{side}_{roles[2]}", place, **held)], {}

    def share(self, pose, side, roles):
        """Return the part of a limb's bend that is to its side, None if it has no side here."""
        u, m, e = (pose.position(f"{side}_{role}") for role in roles)
        line, trunk = unit(e - u), "hips" if roles is LEG else self.chest
        off = (m - u) - ((m - u) @ line) * line
        turned = pose.rotation(trunk).as_matrix() @ self.rest.rotation(trunk).as_matrix().T
        ahead = turned @ self.R[:, 2]
        ahead = ahead - (ahead @ line) * line
        if np.linalg.norm(off) < BENT * self.length(side, roles) or np.linalg.norm(ahead) < ACROSS:
            return None
        return (1.0 if roles is LEG else -1.0) * float(unit(off) @ unit(ahead))

    def hinge(self, pose, side, roles):
        """Return the same share as the joint itself has it: about the axes of the upper bone, however it is turned."""
        sign = 1.0 if roles is LEG else -1.0
        u, m, e = (self.rest.position(f"{side}_{role}") for role in roles)
        wanted = unit(np.cross(m - u, -sign * self.R[:, 2]))
        turn = pose.rotation(f"{side}_{roles[0]}").as_matrix() @ self.rest.rotation(f"{side}_{roles[0]}").as_matrix().T
        u, m, e = (pose.position(f"{side}_{role}") for role in roles)
        return float(unit(np.cross(m - u, e - m)) @ turn @ wanted)


def main():
    """Solve all problems with all solvers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="problems")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="bodies whose name contains this")
    options = parser.parse_args()
    where, rows = machine(), [(name, Body(one)) for name, one in bodies().items() if options.only in name]
    counts, wrong = defaultdict(lambda: defaultdict(int)), []
    for k in range(options.count):
        rng = np.random.default_rng((options.seed, k))
        name, body = rows[k % len(rows)]
        kind, side = KINDS[k // len(rows) % len(KINDS)], ("left", "right")[int(rng.integers(2))]
        goals, others = body.problem(kind, side, rng)
        roles = ARM if kind.startswith("arm") else LEG
        for solver in SOLVERS:
            if solver == "two-bone" and kind not in {"leg", "arm"}:
                continue
            solution = sy.solve(body.skeleton, goals, solver, **others)
            count = counts[solver]
            count["solves"] += 1
            count["reached"] += solution.reached
            for one in SIDES if kind == "squat" else (side,):
                share = body.share(solution.pose, one, roles)
                count["limbs"] += 1
                if share is None:
                    continue
                middle = body.skeleton.joint_names[body.skeleton.role_rows[f"{one}_{roles[1]}"]]
                told = any(repr(middle) in note for note in solution.notes)
                if not body.stands:
                    count["undefined"] += 1
                    count["undefined, told"] += told
                    continue
                joint = body.hinge(solution.pose, one, roles)
                count["bent"] += 1
                count["rolled"] += share < 0.0 <= joint and kind == "arm and trunk"
                if joint < 0.0 or (share < 0.0 and kind != "arm and trunk"):
                    count["against"] += 1
                    count["against, told"] += told
                    status, shares = solution.status.name, (f"{share:.2f}", f"{joint:.2f}")
                    wrong.append([k, name, kind, solver, status, *shares, "yes" if told else "no"])
                    print(*wrong[-1], sep=" | ", flush=True)
    columns = (
        "solves",
        "reached",
        "limbs",
        "bent",
        "against",
        "against, told",
        "rolled",
        "undefined",
        "undefined, told",
    )
    summary = [[solver, *(counts[solver][column] for column in columns)] for solver in SOLVERS]
    total = {column: sum(counts[solver][column] for solver in SOLVERS) for column in columns}
    silent = total["undefined"] - total["undefined, told"]
    lines, held = verdicts([
        (f"no knee or elbow bends against its role: {total['against']} of {total['bent']} do", not total["against"]),
        (f"undefined bends are told: {silent} of {total['undefined']} are not", not silent),
    ])  # fmt: skip
    head = ["problem", "body", "kind", "solver", "status", "trunk", "joint", "told"]
    lying = ", ".join(name for name, body in rows if not body.stands)
    text = f"{options.count} problems on {len(rows)} bodies ({', '.join(name for name, _ in rows)}).\n"
    text += f"Zero poses in which a leg points up along the trunk: {lying or 'none'}.\n\n"
    text += table(["solver", *columns], summary) + (f"\n\n{table(head, wrong)}" if wrong else "") + f"\n\n{lines}"
    result = {"count": options.count, "seed": options.seed, "solvers": counts, "against": wrong}
    save("bends", "Sides to which straight limbs bend", result, text, where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
