"""Edits of parts of clips: 12 clips on five bodies, six kinds of edit each, measured from the two clips alone.

    python benchmarks/edits.py [--only "walk01 on g1"] [--kinds pin,look]

Reads clips and bodies of ../shared/data. For each edit:

- frames of no layer: largest difference of a joint value (bar: none, bit for bit);
- frames that miss a goal by the edit's own account, and goals that are off without being told (bar: none);
- other limbs: median angle from the clip in the frames of the layers (bar: 3 degrees, unless a goal is of the trunk);
- fades: largest acceleration of a joint beside that of a smoothstep of its change, and the clip's own (bar: 2);
- feet: how much faster a foot that stands in the clip moves than there (bar: 0.02 legs a second, unless it is told);
- milliseconds of a frame: of the solves, of the whole edit, and of `track` of the same goals, feet and a `RestGoal`.

The bodies are mannequiny and greenman (characters), the bundled humanoid, a Unitree G1 (robot), and that of the file.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import machine, needed_data, save, table, verdicts

import synovia as sy
from synovia.model.anatomy.contacts import find_contacts
from synovia.model.anatomy.feet import feet_of
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import rotation_between
from synovia.model.tree import ancestors
from synovia.tracking.around import Around

PAIRS = [  # clip, body; None for the body of the file
    ("bvhtoolbox_walk01", "mannequiny"),
    ("bvhtoolbox_walk01", "g1"),
    ("cmu_07_01_walk", None),
    ("cmu_07_01_walk", "greenman"),
    ("cmu_jumping_jacks", "humanoid"),
    ("fair_wave_hello", "mannequiny"),
    ("lafan1_walk1_head", None),
    ("lafan1_walk1_head", "g1"),
    ("pymo_8walk", "greenman"),
    ("bandai2_walk_turn", "humanoid"),
    ("bandai2_walk_turn", None),
    ("rokoko_jesse_dance", "mannequiny"),
]
KINDS = ("pin", "offset", "look", "key", "contact", "two")
MOST_FRAMES = 600  # of a clip; longer ones are cut
SECONDS = (0.5, 0.35)  # of an edit and of each of its fades
BARS = {
    "leaks": "every bit is kept where no layer acts",
    "untold": "goals hold, or the edit says that they do not",
    "limbs": "other limbs stay within 3 degrees",
    "fade": "no joint accelerates in a fade beyond twice a smoothstep, or the clip",
    "slide": "standing feet slide no faster than in the clip, or by 0.02 legs a second, or are told",
}
LIMBS = ("head", "left_hand", "right_hand", "left_foot", "right_foot", "chest")


def bodies(data: Path) -> dict[str, sy.Skeleton]:
    return {
        "mannequiny": sy.load_skeleton(data / "character" / "mannequiny.glb"),
        "greenman": sy.load_skeleton(data / "character" / "greenman.glb"),
        "humanoid": sy.bundled("humanoid"),
        "g1": sy.load_skeleton(data / "robot" / "g1_29dof.urdf"),
    }


def clips(data: Path, only: str | None) -> Iterator[tuple[str, sy.Motion]]:
    known = bodies(data)
    for name, body in PAIRS:
        label = f"{name} on {body or 'its own body'}"
        if only is not None and only not in label:
            continue
        motion = sy.load_motion(data / "motion" / f"{name}.bvh")
        short = motion.q[: min(len(motion), MOST_FRAMES)]
        motion = sy.Motion(motion.skeleton, short, motion.fps, name=motion.name)
        yield label, motion if body is None else sy.retarget(motion, known[body]).motion


def standing(motion: sy.Motion) -> tuple[list[int], np.ndarray, float]:
    """Rows of feet, frames in which each stands (T, feet), and the length of a leg."""
    try:
        feet = feet_of(motion.skeleton)
    except sy.errors.UnsupportedError:
        return [], np.zeros((len(motion), 0), bool), 1.0
    axis, places = find_up(motion.skeleton, motion.q).vector, motion.positions()
    leg = 1.0
    out = np.zeros((len(motion), len(feet)), bool)
    for k, foot in enumerate(feet):
        line = ancestors(motion.skeleton.parents, foot.joints[0])
        leg = float(motion.skeleton.lengths[list(line[:2])].sum())
        out[:, k] = find_contacts(places[:, list(foot.joints)], axis, motion.fps, leg).any
    return [foot.joints[0] for foot in feet], out, leg


def layers_of(kind: str, motion: sy.Motion, first: int, last: int, blend: int) -> list[sy.Layer]:
    """An edit of one kind in frames first to last."""
    body, size = motion.skeleton, motion.skeleton.size
    up = find_up(body, motion.q).vector
    frames, roles = (first, last), body.roles
    hand, hips = roles["left_hand"], roles["hips"]
    head = roles.get("head", roles.get("neck"))
    reach = 0.08 * size
    raised = sy.Layer({hand: reach * up}, frames=frames, blend=blend, relative=True)
    lowered = sy.Layer({hips: -0.02 * size * up}, frames=frames, blend=blend, relative=True)
    if kind == "pin":
        return [sy.Layer(goals=[sy.PositionGoal(hand)], frames=frames, blend=blend)]
    if kind == "offset":
        return [lowered]
    if kind == "look":
        row = body.index(head) if head is not None else body.index(roles.get("chest", hips))
        frame = motion.frames()[(first + last) // 2, row]
        turn = sy.Rotation.from_rotvec(0.4 * up)
        axis = turn.as_matrix() @ frame[:9].reshape(3, 3)[:, 2]
        goal = sy.AimGoal(row, frame[9:] + size * axis, axis=(0, 0, 1))
        return [sy.Layer(goals=[goal], frames=frames, blend=blend)]
    if kind == "key":
        arm = roles.get("left_upper_arm", hand)
        kind_of = body.joint(arm).kind
        value = sy.Rotation.from_rotvec((0.0, 0.0, 0.5)) if kind_of in (sy.Kind.BALL, sy.Kind.FREE) else 0.3
        return [sy.Layer(pose={arm: value}, frames=frames, blend=blend, relative=True)]
    if kind == "contact":
        heads, stands, _ = standing(motion)
        if not heads:
            return [sy.Layer(goals=[sy.ContactGoal(roles["left_lower_leg"], keep="point")], frames=frames, blend=blend)]
        k = int(np.argmax(stands[first : last + 1].sum(axis=0)))
        on = np.flatnonzero(stands[first : last + 1, k]) + first
        span = (int(on[0]), int(on[-1])) if len(on) else frames
        return [sy.Layer(goals=[sy.ContactGoal(heads[k])], frames=span, blend=blend)]
    return [raised, lowered]


def accelerations(motion: sy.Motion, q: np.ndarray) -> dict[int, np.ndarray]:
    """Second differences of each joint's value, radians, by row."""
    out = {}
    for row, joint in enumerate(motion.skeleton.joints):
        at = motion.skeleton.q_slice(row)
        if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
            quats = q[:, at][:, -4:]
            out[row] = np.linalg.norm(np.diff(rotation_between(quats[:-1], quats[1:]), axis=0), axis=1)
        elif joint.kind is sy.Kind.HINGE:
            out[row] = np.abs(np.diff(q[:, at.start], 2))
    return out


def changes(motion: sy.Motion, q: np.ndarray) -> dict[int, np.ndarray]:
    """How far each joint is from the clip, radians, by row."""
    out = {}
    for row, joint in enumerate(motion.skeleton.joints):
        at = motion.skeleton.q_slice(row)
        if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
            out[row] = np.linalg.norm(rotation_between(motion.q[:, at][:, -4:], q[:, at][:, -4:]), axis=1)
        elif joint.kind is sy.Kind.HINGE:
            out[row] = np.abs(q[:, at.start] - motion.q[:, at.start])
    return out


def fade_jerk(motion: sy.Motion, edited: sy.Motion, layers: list[sy.Layer]) -> float:
    """Largest acceleration of a joint in a fade, in parts of that of a smoothstep of its change, or of the clip's."""
    before, after, change = accelerations(motion, motion.q), accelerations(motion, edited.q), changes(motion, edited.q)
    worst, count = 0.0, len(motion)
    for layer in layers:
        first, last = layer.bounds(count)
        fades = (*range(first - layer.blend, first + 1), *range(last, last + layer.blend + 1))
        at = np.array([k - 1 for k in fades if 1 <= k < count - 1])
        for row, own in before.items():
            limit = max(own.max(), 6.0 * change[row].max() / layer.blend**2, 1e-9)
            worst = max(worst, float(after[row][at].max(initial=0.0)) / limit)
    return worst


def untold(motion: sy.Motion, edited: sy.results.Edited, layers: list[sy.Layer]) -> int:
    """Frames of the last layer whose targets are off, though the edit says that they are reached."""
    layer, count = layers[-1], len(motion)
    motion = sy.edit(motion, layers[:-1]).motion  # a layer sees those before it
    first, last = layer.bounds(count)
    off = np.zeros(count, bool)
    for joint, target in layer.targets.items():
        row = motion.skeleton.index(joint)
        way = (edited.motion.positions() - motion.positions())[:, row]
        off[first : last + 1] |= (
            np.linalg.norm(way - target.position[0], axis=1)[first : last + 1] > 5e-4 * motion.skeleton.size
        )
    for goal in layer.goals:
        if isinstance(goal, sy.PositionGoal | sy.ContactGoal):
            row = motion.skeleton.index(goal.joint)
            way = edited.motion.positions()[first : last + 1, row] - motion.positions()[first, row]
            off[first : last + 1] |= np.linalg.norm(way, axis=1) > 5e-4 * motion.skeleton.size
    return int((off & edited.reached).sum())


def limbs_off(motion: sy.Motion, edited: sy.results.Edited, layers: list[sy.Layer]) -> float:
    """Median angle of the limbs without goals in the frames of the layers, degrees."""
    body, frames = motion.skeleton, [m.frames() for m in (motion, edited.motion)]
    about = {body.index(goal.joint) for layer in layers for goal, _ in layer.all_goals() if goal.joint is not None}
    about |= {body.index(joint) for layer in layers for key in layer.keys for joint in key.values}
    angles = []
    for role in LIMBS:
        row = body.role_rows.get(role)
        if row is None or any(
            other in ancestors(body.parents, row) and other not in body_trunk(body) for other in about
        ):
            continue
        a, b = (f[edited.acts, row, :9].reshape(-1, 3, 3) for f in frames)
        angles.append(np.degrees((sy.Rotation.from_matrix(a).inv() * sy.Rotation.from_matrix(b)).magnitude()))
    return float(np.median(angles)) if angles else 0.0


def moving_above(body: sy.Skeleton, row: int) -> int:
    """The joint that turns what is at a row."""
    while row > 0 and not body.joints[row].kind.v_size:
        row = body.parents[row]
    return row


def body_trunk(body: sy.Skeleton) -> set[int]:
    return {row for role, row in body.role_rows.items() if role in ("hips", "spine", "chest", "upper_chest")}


def slide_beyond(motion: sy.Motion, edited: sy.Motion, layers: list[sy.Layer]) -> float:
    """Largest speed of a standing foot without goal beyond the clip's own, leg lengths a second."""
    heads, stands, leg = standing(motion)
    about = {
        motion.skeleton.index(goal.joint) for layer in layers for goal, _ in layer.all_goals() if goal.joint is not None
    }
    worst = 0.0
    for k, head in enumerate(heads):
        if head in about:
            continue
        own, new = (np.linalg.norm(np.diff(m.positions()[:, head], axis=0), axis=1) for m in (motion, edited))
        both = stands[1:, k] & stands[:-1, k]
        if both.any():
            worst = max(worst, float((new - own)[both].max()) * motion.fps / leg)
    return worst


def tracked_ms(motion: sy.Motion, layers: list[sy.Layer], edited: sy.results.Edited) -> float:
    """Milliseconds of a frame of `track` of the same goals with a rest goal."""
    layer, body = layers[0], motion.skeleton
    goals = [goal for goal, _ in layer.all_goals()]
    if not goals:
        return float("nan")
    feet = [row for row in standing(motion)[0] if row not in {body.index(goal.joint) for goal in goals}]
    frames = np.flatnonzero(edited.acts)
    free = len(body.with_root("free")) == len(body)
    ik = sy.IK(
        body, [*goals, *(sy.PoseGoal(row) for row in feet), sy.RestGoal()], "full-body",
        root="free" if free else "fixed",
    )  # fmt: skip
    world = edited.motion.frames()[frames]
    targets = {}
    for goal in goals:
        if isinstance(goal, sy.AimGoal):
            targets[goal.joint] = np.repeat(goal.target[None, :3, 3], len(frames), axis=0)
        elif isinstance(goal, sy.ContactGoal | sy.PoseGoal):
            targets[goal.joint] = transforms(world[:, body.index(goal.joint)])
        else:
            targets[goal.joint] = world[:, body.index(goal.joint), 9:]
    targets |= {row: transforms(motion.frames()[frames, row]) for row in feet}
    best = np.inf
    for _ in range(3):
        begin = time.process_time()
        ik.track(targets, motion.pose(int(frames[0])), fps=motion.fps)
        best = min(best, time.process_time() - begin)
    return 1e3 * best / len(frames)


def transforms(frames: np.ndarray) -> np.ndarray:
    out = np.tile(np.eye(4), (len(frames), 1, 1))
    out[:, :3, :3], out[:, :3, 3] = frames[:, :9].reshape(-1, 3, 3), frames[:, 9:]
    return out


def solving_ms(motion: sy.Motion, layers: list[sy.Layer], count: int) -> tuple[float, float]:
    """Milliseconds of a frame: of the solves alone, and of the whole edit."""
    solve, spent = Around.solve, [0.0]

    def timed(self, *args, **named):
        begin = time.process_time()
        try:
            return solve(self, *args, **named)
        finally:
            spent[0] += time.process_time() - begin

    best, whole = np.inf, np.inf
    for _ in range(3):
        spent[0] = 0.0
        Around.solve = timed
        begin = time.process_time()
        try:
            sy.edit(motion, layers)
        finally:
            Around.solve = solve
        whole, best = min(whole, time.process_time() - begin), min(best, spent[0])
    return 1e3 * best / max(count, 1), 1e3 * whole / max(count, 1)


HEAD = [
    "clip",
    "edit",
    "leaks",
    "missed",
    "untold",
    "limbs, deg",
    "fade",
    "slide",
    "ms solving",
    "ms whole",
    "ms track",
]


def measured(label: str, kind: str, motion: sy.Motion) -> tuple[list[object], list[str], float, float]:
    """The row of an edit, its faults, and the milliseconds of a frame: solves alone, and of `track`."""
    half, blend = round(0.5 * SECONDS[0] * motion.fps), max(round(SECONDS[1] * motion.fps), 4)
    middle = len(motion) // 2
    layers = layers_of(kind, motion, middle - half, middle + half, blend)
    edited = sy.edit(motion, layers)
    leaks = float(np.abs(edited.motion.q[~edited.acts] - motion.q[~edited.acts]).max(initial=0.0))
    limbs, jerk = limbs_off(motion, edited, layers), fade_jerk(motion, edited.motion, layers)
    lies, slide = untold(motion, edited, layers), slide_beyond(motion, edited.motion, layers)
    told = {finding.cause for finding in edited.findings}
    asked = [goal.joint for layer in layers for goal, _ in layer.all_goals()]
    about = {moving_above(motion.skeleton, motion.skeleton.index(joint)) for joint in asked if joint is not None}
    faults = {
        "leaks": leaks > 0.0,
        "untold": lies > 0,
        "limbs": limbs > 3.0 and not about & body_trunk(motion.skeleton),
        "fade": jerk > 2.0,
        "slide": slide > 0.02 and "feet" not in told,
    }
    ms, whole = solving_ms(motion, layers, int(edited.acts.sum()))
    track = tracked_ms(motion, layers, edited) if kind != "two" else float("nan")
    row: list[object] = [label, kind, f"{leaks:.0e}", int((~edited.reached).sum()), lies, f"{limbs:.1f}", f"{jerk:.2f}"]
    row += [f"{slide:.3f}", f"{ms:.3f}", f"{whole:.2f}", f"{track:.3f}"]
    return row, [name for name, wrong in faults.items() if wrong], ms, track


def main() -> None:
    """Edit, measure, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="part of the name of a clip and a body, such as 'walk01 on g1'")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of edits")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    where, rows, faults, ratios = machine(), [], [], []
    for label, motion in clips(needed_data(), options.only):
        for kind in options.kinds.split(","):
            row, wrong, ms, track = measured(label, kind, motion)
            rows.append(row)
            faults += [f"{label}, {kind}: {', '.join(wrong)}"] * bool(wrong)
            if ms > 0.0 and np.isfinite(track):
                ratios.append(track / ms)
            print(*row, *wrong, file=sys.stderr, flush=True)
    found = {name: sum(name in fault.rpartition(": ")[2] for fault in faults) for name in BARS}
    lines, held = verdicts([(f"{text}: {len(rows) - found[name]} of {len(rows)} edits", not found[name])
                            for name, text in BARS.items()])  # fmt: skip
    shown = [table(HEAD, rows), lines, *faults]
    if ratios:
        shown.append(f"A frame is solved {np.median(ratios):.1f} times as fast as by `track` in the median.")
    save("edits", "Parts of clips changed", {"rows": rows, "faults": faults}, "\n\n".join(shown), where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
