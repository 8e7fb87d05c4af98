"""Edits of parts of clips: 12 clips on five bodies, six kinds of edit each, measured from the two clips alone.

For each edit:
- frames of no layer: largest difference of a joint value (bar: none, bit for bit);
- frames that miss a goal by the edit's own account, and goals that are off without being told (bar: none);
- other limbs: median angle from the clip in the frames of the layer (bar: 3 degrees, unless the whole body had to help);
- fades: largest acceleration of a joint beside that of a smoothstep of its change, and the clip's (bar: 2);
- feet: the largest speed of a foot that stands in the clip beside its own in the clip (bar: that, or 0.02 legs a second);
- time of a frame beside `track` of the same goals with a rest goal (bar: a fifth), without packing the problems.

The bodies are mannequiny and greenman (characters), the bundled humanoid, a Unitree G1 (robot), and that of the file.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import data_folder

import synovia as sy
from synovia.clips.feet import contact_spans, feet_of, up_axis
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
LIMBS = ("head", "left_hand", "right_hand", "left_foot", "right_foot", "chest")


class Figures(NamedTuple):
    """What one edit of one clip has led to."""

    leaks: float
    missed: int
    untold: int
    limbs: float  # degrees
    jerk: float
    slide: float  # leg lengths a second beyond the clip's
    helped: bool  # whether more than the limbs with goals moved
    ms: float  # a frame


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
    except sy.UnsupportedError:
        return [], np.zeros((len(motion), 0), bool), 1.0
    axis, places = np.eye(3)[up_axis(motion, feet)], motion.positions()
    leg = 1.0
    out = np.zeros((len(motion), len(feet)), bool)
    for k, foot in enumerate(feet):
        line = ancestors(motion.skeleton.parents, foot.joints[0])
        leg = float(motion.skeleton.lengths[list(line[:2])].sum())
        for spans in contact_spans(places[:, list(foot.joints)], axis, motion.fps, leg=leg):
            for first, end in spans:
                out[first:end, k] = True
    return [foot.joints[0] for foot in feet], out, leg


def layers_of(kind: str, motion: sy.Motion, first: int, last: int, blend: int) -> list[sy.Layer]:
    """An edit of one kind in frames first to last."""
    body, size = motion.skeleton, motion.skeleton.size
    up = body.up_vector("") if body.up is not None else np.eye(3)[up_axis(motion, feet_of(body))]
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
        goal = sy.AimGoal(row, frame[9:] + size * axis)
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
    """Largest acceleration of a joint in a fade, in parts of that of a smoothstep of its change, or of the clip's own."""
    before, after, change = accelerations(motion, motion.q), accelerations(motion, edited.q), changes(motion, edited.q)
    worst, count = 0.0, len(motion)
    for layer in layers:
        first, last = layer.bounds(count)
        fades = [k for k in (*range(first - layer.blend, first + 1), *range(last, last + layer.blend + 1))]
        at = np.array([k - 1 for k in fades if 1 <= k < count - 1])
        for row, own in before.items():
            limit = max(own.max(), 6.0 * change[row].max() / layer.blend**2, 1e-9)
            worst = max(worst, float(after[row][at].max(initial=0.0)) / limit)
    return worst


def untold(motion: sy.Motion, edited: sy.Edited, layers: list[sy.Layer]) -> int:
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


def limbs_off(motion: sy.Motion, edited: sy.Edited, layers: list[sy.Layer]) -> tuple[float, bool]:
    """Median angle of the limbs without goals in the frames of the layers, degrees; and whether the trunk moved."""
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
    chest = body.role_rows.get("chest", body.role_rows["hips"])
    a, b = (f[edited.acts, chest, :9].reshape(-1, 3, 3) for f in frames)
    return float(np.median(angles)) if angles else 0.0, bool(np.abs(a - b).max() > 1e-9)


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


def tracked_ms(motion: sy.Motion, layers: list[sy.Layer], edited: sy.Edited) -> float:
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="part of the name of a clip and a body")
    parser.add_argument("--kinds", default=",".join(KINDS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    data = data_folder()
    bad: list[str] = []
    ratios = []
    print(f"{'clip':44s} {'kind':8s} leaks missed untold limbs  jerk slide helped  ms/frame whole  track ratio")
    for label, motion in clips(data, asked.only):
        count = len(motion)
        half, blend = round(0.5 * SECONDS[0] * motion.fps), max(round(SECONDS[1] * motion.fps), 4)
        middle = count // 2
        for kind in asked.kinds.split(","):
            layers = layers_of(kind, motion, middle - half, middle + half, blend)
            edited = sy.edit(motion, layers)
            still = ~edited.acts
            leaks = float(np.abs(edited.motion.q[still] - motion.q[still]).max(initial=0.0))
            limbs, helped = limbs_off(motion, edited, layers)
            jerk = fade_jerk(motion, edited.motion, layers)
            missed, lies = int((~edited.reached).sum()), untold(motion, edited, layers)
            slide = slide_beyond(motion, edited.motion, layers)
            of_trunk = any(
                goal.joint is not None and motion.skeleton.index(goal.joint) in body_trunk(motion.skeleton)
                for layer in layers
                for goal, _ in layer.all_goals()
            )
            told = {finding.cause for finding in edited.findings}
            ms, whole = solving_ms(motion, layers, int(edited.acts.sum()))
            track = tracked_ms(motion, layers, edited) if kind != "two" else float("nan")
            ratio = track / ms if ms > 0.0 else float("nan")
            if np.isfinite(ratio):
                ratios.append(ratio)
            line = (
                f"{label:44s} {kind:8s} {leaks:5.0e} {missed:6d} {lies:6d} {limbs:5.1f} {jerk:5.2f} {slide:5.3f}"
                f" {helped!s:6s} {ms:9.3f} {whole:5.2f} {track:6.3f} {ratio:5.1f}"
            )
            faults = [
                name
                for name, wrong in (
                    ("leaks", leaks > 0.0),
                    ("untold", lies > 0),
                    ("limbs", limbs > 3.0 and kind not in ("offset", "two") and not of_trunk),
                    ("jerk", jerk > 2.0),
                    ("slide", slide > 0.02 and "feet" not in told),
                )
                if wrong
            ]
            bad += [f"{label} {kind}: {', '.join(faults)}"] * bool(faults)
            print(line, *faults, flush=True)
    print(f"{len(bad)} edits with faults; solving is {np.median(ratios):.1f} times as fast as track in the median")
    for line in bad:
        print(" ", line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
