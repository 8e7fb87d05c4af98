"""Can the judge of clips be trusted? Clips spoiled on purpose, and the same clips as they are.

    python benchmarks/judge_clips.py [--count 210] [--list] [--pictures FOLDER]

Takes the motions of ../shared/data and retargets them to bodies on which they come out right; all pairs were looked at
(``--pictures`` draws them). First the judge sees every pair unspoiled: whole, in halves, and at half the frame rate.
Then each pair is spoiled in seven ways, with random limbs, angles and frames from a fixed seed, partly in the result
and partly in the input of ``retarget``. A spoiled clip counts as found if the verdict is not "good" and a warning
names the limb or the cause. A mirrored limb counts as spoiled only if one of its bones changes its direction by 20
degrees on average, because the mirror image of a straight leg is the same leg.
"""

import argparse
import itertools
import time
from collections import defaultdict

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy
from synovia.io.load import load_motions
from synovia.model import Kind
from synovia.model.geometry import matrix_to_quat, quat_product

ONTO = {
    "humanoid": ("bvhtoolbox_walk01", "cmu_07_01_walk", "fair_wave_hello", "pymo_8walk", "idle_root.001"),
    "mannequiny": ("bvhtoolbox_walk01", "cmu_07_01_walk", "fair_wave_hello", "pymo_8walk"),
    "g1": ("bvhtoolbox_walk01", "pymo_8walk"),
    "itself": ("bvhtoolbox_walk01", "cmu_07_01_walk", "cmu_jumping_jacks", "fair_wave_hello", "pymo_8walk",
               "idle_root.001", "lafan1_walk1_head", "bandai2_walk_turn", "bandai2_walk_turn_lafan1",
               "rokoko_jesse_dance"),
}  # fmt: skip
LIMBS = [f"{side}_{part}" for side in ("left", "right") for part in ("arm", "leg")]
CHANGED = np.radians(20.0)  # a mirrored limb differs by this


def main():
    """Judge the clips as they are, then spoiled."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=210, help="spoiled clips")
    parser.add_argument("--list", action="store_true", help="print every clip that was not found")
    parser.add_argument("--pictures", help="folder for sheets of stills: source and result side by side")
    options = parser.parse_args()
    where, pairs = machine(), pairs_of(needed_data())
    if options.pictures:
        for name, (source, answer) in pairs.items():
            sy.render(answer.motion, f"{options.pictures}/{name.replace(' ', '_')}.png", next_to=source, force=True)
    warned, rows = [], []
    begun, frames = time.perf_counter(), 0
    for name, (source, answer) in pairs.items():
        joints = joint_map(answer)
        for kind, pick in cuts(len(source)).items():
            one, other = part(source, pick), part(answer.motion, pick)
            frames += len(other)
            opinion = sy.judge(other, one, joints)
            if opinion.verdict != "good":
                warned.append(f"{name}, {kind}: {'; '.join(map(str, opinion.warnings))}")
            if kind == "whole":
                rows.append([name, len(source), opinion.verdict, *figures(opinion)])
    speed = frames / (time.perf_counter() - begun)
    unspoiled = sum(len(cuts(len(source))) for source, _ in pairs.values())
    cases = spoiled(pairs, options.count)
    found, missed = defaultdict(list), []
    for kind, name, expected, opinion in cases:
        hit = opinion.verdict != "good" and any(fits(one, expected) for one in opinion.warnings)
        found[kind].append(hit)
        if not hit:
            missed.append(f"{kind}: {name}, expected {expected}: {'; '.join(map(str, opinion.warnings)) or 'good'}")
    if options.list:
        print("\n".join([*warned, *missed]))
    hits, total = sum(map(sum, found.values())), sum(map(len, found.values()))
    kinds = [[kind, len(hit), sum(hit)] for kind, hit in found.items()]
    head = ["clip, body", "frames", "verdict", "trunk", "worst limb", "off", "slide", "slide of the source"]
    lines, held = verdicts([
        (f"finds and names at least 95 % of {total} spoiled clips: {100 * hits / total:.1f} %", hits >= 0.95 * total),
        (f"warns in at most 2 % of {unspoiled} clips as they are: {len(warned)}", len(warned) <= 0.02 * unspoiled),
        (f"a second for 1,000 frames at most: {speed:,.0f} frames a second", speed >= 1000),
    ])  # fmt: skip
    text = "\n\n".join([table(["spoiled by", "clips", "found and named"], kinds), table(head, rows), lines])
    if missed or warned:
        text += "\n\n" + "\n".join(f"- {line}" for line in [*missed, *warned])
    result = {"kinds": kinds, "clips": rows, "unspoiled": unspoiled, "warned": warned, "missed": missed}
    save("judge_clips", "The judge of clips, tried on clips spoiled on purpose", result, text, where)
    raise SystemExit(0 if held else 1)


def pairs_of(data):
    """Return source and result of each pair, by name."""
    bodies = {
        "humanoid": sy.bundled("humanoid"),
        "mannequiny": sy.load_skeleton(data / "character/mannequiny.glb"),
        "g1": sy.load_skeleton(data / "robot/g1_29dof.urdf"),
    }
    clips = {path.stem: sy.load_motion(path) for path in sorted((data / "motion").glob("*.bvh"))}
    clips |= {clip.name: clip for clip in load_motions(data / "character/mannequiny.glb")}
    out = {}
    for body, names in ONTO.items():
        for name in names:
            target = bodies.get(body, clips[name].skeleton)
            out[f"{name} {body}"] = clips[name], sy.retarget(clips[name], target, threads=1)
    return out


def joint_map(answer):
    """Return the rows of the parts that both bodies have, by role."""
    source, target = answer.source.roles, answer.target.roles
    return {role: (row, target[role]) for role, row in source.items() if role in target}


def figures(opinion):
    """Return trunk, worst limb and feet of a clip, as text."""
    limbs = [one for one in opinion.figures.limbs if one.limb not in ("trunk", "head") and "foot" not in one.limb]
    worst = max(limbs, key=lambda one: one.mean)
    trunk = next(one for one in opinion.figures.limbs if one.limb == "trunk")
    feet = opinion.figures.feet
    slides = [f"{max((getattr(foot, name) for foot in feet), default=0.0):.3f}" for name in ("slide", "source_slide")]
    return [f"{np.degrees(trunk.mean):.1f}°", worst.limb.replace("_", " "), f"{np.degrees(worst.mean):.1f}°", *slides]


def cuts(count):
    """Return the frames of a clip as it is, of its halves, and of every second frame."""
    every = np.arange(count)
    out = {"whole": every}
    if count >= 60:
        out |= {"first half": every[: count // 2], "second half": every[count // 2 :]}
    if count >= 90:
        out["half the rate"] = every[::2]
    return out


def part(motion, pick):
    """Return some frames of a clip."""
    rate = motion.fps / (pick[1] - pick[0])
    return sy.Motion(motion.skeleton, motion.q[pick], rate, name=motion.name)


# --- spoiling -------------------------------------------------------------------------------------------------------


def spoiled(pairs, count):
    """Yield (kind, name, expected words, judgement) of every spoiled clip."""
    rng = np.random.default_rng(7)
    ways = {"limb mirrored": mirrored, "map swapped": swapped, "up axis turned": turned, "scale x100": scaled,
            "arm's rest 30° off": off_rest, "jump of one frame": jumped, "feet drifting": drifted}  # fmt: skip
    names, each = list(pairs), -(-count // len(ways))
    for kind, way in ways.items():
        done = tries = 0
        while done < each:
            name = names[tries % len(names)]
            tries += 1
            if tries > 20 * each:
                raise RuntimeError(f"{kind}: no clip can be spoiled so")
            case = way(rng, *pairs[name], done)
            if case is not None:
                done += 1
                yield kind, f"{name}, {case[0]}", case[1], case[2]


def fits(finding, expected):
    """Return whether a warning names the limb or the cause of a case: any of its words, and its frame if it has one."""
    words, frame = expected
    named = any(word == finding.cause or word in finding.limb for word in words)
    return named and (frame is None or frame in finding.frames)


def mirrored(rng, source, answer, _):
    """Mirror one limb of the result: its joints turn as the mirror images of theirs."""
    motion, roles = answer.motion, answer.target.roles
    for limb in rng.permutation(LIMBS):
        side, kind = limb.split("_")
        rows = [row for piece in ("upper", "lower") for row in group(motion.skeleton, roles, f"{side}_{piece}_{kind}")]
        if not rows or f"{side}_lower_{kind}" not in roles:
            continue
        for normal in rng.permutation(3):
            q = mirror_joints(motion, rows, np.eye(3)[normal])
            bad = sy.Motion(motion.skeleton, q, motion.fps, name=motion.name)
            if changed(motion, bad, roles, side, kind) >= CHANGED:
                return (
                    f"{limb} in {'xyz'[normal]}",
                    ([f"{side}_upper_{kind}", f"{side}_lower_{kind}"], None),
                    judged(bad, source, answer),
                )
    return None


def changed(motion, bad, roles, side, kind):
    """Return the larger mean change of direction of the two bones of a limb, radians."""
    ends = [roles[f"{side}_upper_{kind}"], roles[f"{side}_lower_{kind}"]]
    end = roles.get(f"{side}_{'hand' if kind == 'arm' else 'foot'}")
    ends += [] if end is None else [end]
    out = []
    a, b = motion.positions(), bad.positions()
    for first, last in itertools.pairwise(ends):
        u, v = a[:, last] - a[:, first], b[:, last] - b[:, first]
        cosine = np.sum(u * v, 1) / np.maximum(np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1), 1e-12)
        out.append(np.arccos(np.clip(cosine, -1, 1)).mean())
    return max(out)


def group(skeleton, roles, role):
    """Return the joints that turn a part: its own, and for robots the hinges above it."""
    if role not in roles:
        return []
    rows, above, others = [roles[role]], skeleton.parents[roles[role]], set(roles.values())
    while skeleton.joints[rows[-1]].kind is Kind.HINGE and above not in others and \
            skeleton.joints[above].kind is Kind.HINGE:  # fmt: skip
        rows.append(above)
        above = skeleton.parents[above]
    return rows


def mirror_joints(motion, rows, normal):
    """Return joint values in which some joints turn as in a mirror with a normal in the axes of the rest pose."""
    skeleton, q = motion.skeleton, motion.q.copy()
    rest = np.array(skeleton.rest_pose().frames)[:, :9].reshape(-1, 3, 3)
    for row in rows:
        place = skeleton.q_slice(row)
        n = rest[row].T @ normal
        if skeleton.joints[row].kind is Kind.HINGE:
            if abs(skeleton.joints[row].axis @ n) < 0.7:
                q[:, place] *= -1.0
        else:
            at = slice(place.stop - 4, place.stop - 1)  # the rotation vector is mirrored, and the sense of rotation too
            q[:, at] = 2.0 * np.outer(q[:, at] @ n, n) - q[:, at]
    return q


def swapped(rng, source, answer, number):
    """Exchange left and right in the joint map: of the whole body, of the arms, or of the legs."""
    which = ("body", "arm", "leg")[rng.integers(3)]
    if which == "arm" and "left_upper_arm" not in answer.target.roles:
        return None
    words = {"body": ("",), "arm": ("arm", "shoulder", "hand"), "leg": ("leg", "foot", "toes")}[which]
    joints = joint_map(answer)
    crossed = {}
    for role, (own, other) in joints.items():
        side, _, piece = role.partition("_")
        opposite = {"left": "right", "right": "left"}.get(side, side) + "_" + piece
        swap = side in ("left", "right") and opposite in joints and any(word in role for word in words)
        crossed[role] = (joints[opposite][0], other) if swap else (own, other)
    names = source.skeleton.joint_names, answer.motion.skeleton.joint_names
    named = {role: (names[0][a], names[1][b]) for role, (a, b) in crossed.items()}
    if len(set(names[0])) < len(names[0]) or len(set(names[1])) < len(names[1]):
        named = crossed
    bad = sy.retarget(source, answer.motion.skeleton, named, threads=1)
    if number % 2 and which == "body":
        return "map of the result", (["sides swapped", "mirrored"], None), judged(bad.motion, source, answer)
    return f"map of the {which}", (["sides swapped"], None), bad.judgement


def turned(rng, source, answer, number):
    """Turn the up axis of the result, or of the source before it is retargeted (if its file does not state one)."""
    axis = "xyz"[rng.integers(3)]
    angle = (90, -90, 180)[rng.integers(3)]
    turn = sy.Rotation.from_euler(axis, angle, degrees=True).as_matrix()
    before = number % 2 and source.skeleton.up is None and carrier(source) is not None
    up = sy.judge(answer.motion, source, joint_map(answer)).figures
    vertical = (up.origin if before else up.result).up
    if abs(vertical @ (turn @ vertical)) > 0.9 and turn @ vertical @ vertical > 0:
        return None  # about the vertical: nothing is wrong
    words = (["up axis", "upside down", "rest pose"], None)
    if before:
        moved = turn_root(source, turn)
        try:
            bad = sy.retarget(moved, answer.motion.skeleton, threads=1)
        except sy.InputError:
            return None  # upside down along y or z: the user is asked, and there is no clip
        if bad.verdict == "good" and upright(bad):
            return None  # the body was put on its feet again
        return f"source by {angle}° about {axis}", words, bad.judgement
    bad = turn_root(answer.motion, turn)
    return f"result by {angle}° about {axis}", words, judged(bad, source, answer)


def upright(answer):
    """Return whether the trunk of a result is upright where that of its original clip is."""
    trunk = next(one for one in answer.judgement.figures.limbs if one.limb == "trunk")
    return trunk.mean < np.radians(15.0)


def carrier(motion):
    """Return the row of the free joint whose position changes most, and its rotation and position at rest."""
    skeleton = motion.skeleton
    rows, row = [], skeleton.role_rows["hips"]
    while row >= 0:
        rows += [row] if skeleton.joints[row].kind is Kind.FREE else []
        row = skeleton.parents[row]
    if not rows:
        return None
    moved = [np.ptp(motion.q[:, skeleton.q_slice(row)][:, :3], axis=0).max() for row in rows]
    row = rows[int(np.argmax(moved))]
    frame = np.array(skeleton.rest_pose().frames)[row]
    return row, frame[:9].reshape(3, 3), frame[9:]


def turn_root(motion, turn):
    """Return a clip turned as a whole, in the axes of its file."""
    row, A, at = carrier(motion)
    q, place = motion.q.copy(), motion.skeleton.q_slice(row)
    own = A.T @ turn @ A
    q[:, place.start : place.start + 3] = q[:, place.start : place.start + 3] @ own.T + A.T @ (turn @ at - at)
    quat = np.tile(matrix_to_quat(own), (len(q), 1))
    q[:, place.start + 3 : place.stop] = quat_product(quat, q[:, place.start + 3 : place.stop])
    return sy.Motion(motion.skeleton, q, motion.fps, name=motion.name)


def scaled(rng, source, answer, number):
    """Scale the path of the result or of the source by 100, as with a wrong unit; the body keeps its size."""
    motion = source if number % 2 else answer.motion
    if carrier(motion) is None:
        return None
    row = carrier(motion)[0]
    q, place = motion.q.copy(), motion.skeleton.q_slice(row)
    q[:, place.start : place.start + 3] *= 100.0
    bad = sy.Motion(motion.skeleton, q, motion.fps, name=motion.name)
    words = (["scale"], None)
    if number % 2:
        return "path of the source", words, sy.retarget(bad, answer.motion.skeleton, threads=1).judgement
    return "path of the result", words, judged(bad, source, answer)


def off_rest(rng, source, answer, _):
    """Turn one upper arm of the result by 30 degrees from its rest pose, normal to the bone."""
    motion, roles = answer.motion, answer.target.roles
    side = ("left", "right")[rng.integers(2)]
    role = f"{side}_upper_arm"
    if role not in roles or f"{side}_lower_arm" not in roles:
        return None
    rows = group(motion.skeleton, roles, role)
    q = motion.q.copy()
    if motion.skeleton.joints[rows[0]].kind is Kind.HINGE:  # a robot: the first hinge of its shoulder
        q[:, motion.skeleton.q_slice(rows[-1])] += np.radians(30.0) * rng.choice([-1, 1])
    else:
        places = np.array(motion.skeleton.rest_pose().frames)
        bone = places[roles[f"{side}_lower_arm"], 9:] - places[rows[0], 9:]
        bone = places[rows[0], :9].reshape(3, 3).T @ bone
        normal = np.cross(bone, rng.normal(size=3))
        delta = sy.Rotation.from_rotvec(np.radians(30.0) * normal / np.linalg.norm(normal)).as_quat()
        at = slice(motion.skeleton.q_slice(rows[0]).stop - 4, motion.skeleton.q_slice(rows[0]).stop)
        q[:, at] = quat_product(q[:, at], np.tile(delta, (len(q), 1)))
    bad = sy.Motion(motion.skeleton, q, motion.fps, name=motion.name)
    return role, ([role, "rest pose"], None), judged(bad, source, answer)


def jumped(rng, source, answer, number):
    """Let one frame jump: a joint by 25 to 60 degrees, the hips by a quarter of a leg, or the pose of another frame."""
    way = number % 4
    motion = source if way == 3 else answer.motion
    skeleton, q = motion.skeleton, motion.q.copy()
    frame = int(rng.integers(4, len(q) - 4))
    if way == 1:
        row = carrier(motion)[0]
        leg = answer.target.leg
        way_off = rng.normal(size=3)
        q[frame, skeleton.q_slice(row).start : skeleton.q_slice(row).start + 3] += (
            0.25 * leg * way_off / np.linalg.norm(way_off)
        )
        what = "hips"
    elif way == 2:
        other = (frame + len(q) // 2) % len(q)
        root = skeleton.q_slice(carrier(motion)[0])
        keep = q[frame, root].copy()
        q[frame] = q[other]
        q[frame, root] = keep
        gap = np.abs(q[frame] - motion.q[frame]).max()
        if gap < 0.3:
            return None  # a pose that returns is no jump
        what = "pose"
    else:
        roles = answer.source.roles if way == 3 else answer.target.roles
        joints = [role for role in roles if role.endswith(("_arm", "_leg"))]
        role = joints[rng.integers(len(joints))]
        angle = np.radians(rng.uniform(25.0, 60.0))
        row = roles[role]
        place = skeleton.q_slice(row)
        if skeleton.joints[row].kind is Kind.HINGE:
            q[frame, place] += angle
        else:
            axis = rng.normal(size=3)
            delta = sy.Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_quat()
            at = slice(place.stop - 4, place.stop)
            q[frame, at] = quat_product(q[frame : frame + 1, at], delta[None])[0]
        what = f"{role} by {np.degrees(angle):.0f}°"
    bad = sy.Motion(skeleton, q, motion.fps, name=motion.name)
    words = (["jump", "step"], frame)
    if way == 3:
        return f"source, {what}", words, sy.retarget(bad, answer.motion.skeleton, threads=1).judgement
    return what, words, judged(bad, source, answer)


def drifted(rng, source, answer, number):
    """Let the result drift over the ground by 0.08 to 0.2 legs a second: the whole body, or one leg in its contacts."""
    motion = answer.motion
    skeleton, q, (row, A, _) = motion.skeleton, motion.q.copy(), carrier(motion)
    rate, seen = rng.uniform(0.08, 0.2), sy.judge(answer.motion, source, joint_map(answer)).figures
    if sum(one.end - one.first for foot in seen.feet for one in foot.held) < 0.3 * motion.fps:
        return None  # no foot stands
    if number % 2 == 0:
        across = np.cross(seen.result.up, rng.normal(size=3))
        step = rate * answer.target.leg * across / np.linalg.norm(across)
        own = A.T @ step
        at = skeleton.q_slice(row).start
        q[:, at : at + 3] += np.arange(len(q))[:, None] / motion.fps * own
        words, what = ["slide"], f"body at {rate:.2f} legs/s"
    else:
        foot = seen.feet[rng.integers(len(seen.feet))]
        stands = np.zeros(len(q), bool)
        for one in foot.held:
            stands[one.first : one.end] = True
        if stands.sum() < 0.3 * motion.fps:
            return None
        angle = np.zeros(len(q))
        for t in range(1, len(q)):  # the angle grows while the foot stands, and goes back while it swings
            angle[t] = angle[t - 1] + rate / motion.fps if stands[t] else 0.9 * angle[t - 1]
        leg = foot.role.replace("foot", "upper_leg")
        rows = group(skeleton, answer.target.roles, leg)
        turn_leg(motion, q, rows, seen.result.up, angle, rng)
        words, what = [foot.role, "slide"], f"{foot.role} at {rate:.2f} legs/s"
    bad = sy.Motion(skeleton, q, motion.fps, name=motion.name)
    return what, (words, None), judged(bad, source, answer)


def turn_leg(motion, q, rows, up, angle, rng):
    """Turn a leg about a level axis by an angle that changes over time; in a robot its first hinge."""
    skeleton = motion.skeleton
    if skeleton.joints[rows[0]].kind is Kind.HINGE:
        q[:, skeleton.q_slice(rows[-1])] += angle[:, None]
        return
    row = rows[0]
    place = skeleton.q_slice(row)
    at = slice(place.stop - 4, place.stop)
    axis = np.cross(up, rng.normal(size=3))
    axis /= np.linalg.norm(axis)
    world = motion.frames()[:, row, :9].reshape(-1, 3, 3)
    local = np.einsum("tji,j->ti", world, axis)
    q[:, at] = quat_product(q[:, at], sy.Rotation.from_rotvec(angle[:, None] * local).as_quat())


def judged(bad, source, answer):
    """Return the judgement of a spoiled result."""
    return sy.judge(bad, source, joint_map(answer))


if __name__ == "__main__":
    main()
