"""Answers over time for the corpus: tracks, pursued targets, ticks of a servo, edits, retargeted and live frames.

Each function here returns blocks of frames as ``corpus.py`` keeps them, so that frames are compared as problems are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import synovia as sy

FRAMES = 16  # of a track
TICKS = 60  # of a live body or a servo
SPAN = 0.25  # of the way from one random pose to another that a track goes
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TRACKED = ("position", "pose", "ends", "free", "levels", "pole", "rest", "contact")  # kinds of problems with tracks
Frames = tuple[Any, np.ndarray, list[str]]  # skeleton, joint values (T, nq) and the name of each status


def way_between(body: Any, first: np.ndarray, last: np.ndarray, count: int = FRAMES) -> np.ndarray:
    """Return joint values (count, nq) from one pose towards another, rotations by normalised sums."""
    share = SPAN * np.linspace(0.0, 1.0, count)[:, None]
    out = np.array((1.0 - share) * first + share * last)
    for row, kind in enumerate(body.kinds):
        if kind in ("BALL", "FREE"):
            at = slice(body.skeleton.q_slice(row).stop - 4, body.skeleton.q_slice(row).stop)
            a, b = first[at], last[at] * (1.0 if first[at] @ last[at] >= 0.0 else -1.0)
            turn = (1.0 - share) * a + share * b
            out[:, at] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    return np.round(out, 12)


def pursued(ik: Any, targets: dict[str, np.ndarray], start: np.ndarray) -> Frames:
    """Return the frames of single solves, each from the pose before."""
    pose, found = ik.solve({name: some[0] for name, some in targets.items()}, start).pose, []
    for k in range(len(next(iter(targets.values())))):
        found.append(ik.solve({name: some[k] for name, some in targets.items()}, pose, follow=True))
        pose = found[-1].pose
    return ik.skeleton, np.array([one.pose.q for one in found]), [one.status.name for one in found]


def served(ik: Any, targets: dict[str, np.ndarray], start: np.ndarray) -> Frames:
    """Return the ticks of a servo whose targets are the first of some, then the last."""
    servo = sy.Servo(ik, rate=60, velocity=2.0, acceleration=20.0)
    servo.reset(start)
    found = [servo.step({name: some[-(k > TICKS // 3)] for name, some in targets.items()}) for k in range(TICKS)]
    return ik.skeleton, np.array([one.q for one in found]), [one.status.name for one in found]


# --- whole clips ----------------------------------------------------------------------------------------------------


def _walk(*, shapes: bool = False) -> Any:
    walk = sy.load_motion(EXAMPLES / "walk.bvh")
    return sy.Motion(sy.with_shapes(walk.skeleton), walk.q, walk.fps) if shapes else walk


def _layers(name: str, walk: Any) -> list[Any]:
    """Return the layers of an edit."""
    length = 0.05 * walk.skeleton.size
    hand = sy.Layer({"left_hand": (0, 3 * length, 0)}, frames=(30, 50), blend=8, relative=True)
    lower = sy.Layer({"hips": (0, -2 * length, 0)}, frames=(25, 45), blend=10, relative=True)
    other = sy.Layer({"right_hand": (length, length, 0)}, frames=(30, 40), blend=6, relative=True)
    if name == "clear":
        box = sy.World([sy.Sphere(center=walk[40].position("left_hand"), radius=length)])
        return [sy.Layer(goals=[sy.ClearanceGoal(distance=0.2 * length, world=box)], frames=(35, 45), blend=4)]
    if name == "head":
        looks = sy.AimGoal("head", (0.0, 30 * length, 60 * length))
        return [sy.Layer(goals=[looks], frames=(10, 25), blend=5)]
    return {
        "hand": [hand],
        "far": [sy.Layer({"right_hand": (0, 40 * length, 0)}, frames=(60, 66), blend=5)],
        "foot": [sy.Layer({"left_foot": (0, length, length)}, frames=(20, 34), blend=6, relative=True)],
        "keys": [sy.Layer(pose={45: {"left_lower_arm": walk[10]["left_lower_arm"]}}, blend=10)],
    }.get(name, [lower, other])


def edits() -> Iterator[tuple[str, Callable[[], Frames]]]:
    """Yield edits of a walk by name."""

    def edited(name: str) -> Frames:
        walk = _walk(shapes=name == "clear")
        options: dict[str, Any] = {"feet": ()} if "without feet" in name else {}
        found = sy.edit(walk, _layers(name, walk), **options)
        return walk.skeleton, found.motion.q, ["REACHED" if on else "STALLED" for on in found.reached]

    for name in ("hand", "far", "foot", "head", "keys", "clear", "two", "two, without feet"):
        yield name, lambda name=name: edited(name)


def others() -> Iterator[tuple[str, Callable[[], Frames]]]:
    """Yield clips of other bodies by name."""

    def carried(skeleton: Any) -> Frames:
        motion = sy.retarget(_walk(), skeleton).motion
        return motion.skeleton, motion.q, ["REACHED"] * len(motion)

    yield "character", lambda: carried(sy.load_skeleton(EXAMPLES / "character.glb"))
    yield "humanoid", lambda: carried(sy.bundled("humanoid"))


def live() -> Iterator[tuple[str, Callable[[], Frames]]]:
    """Yield live bodies and hands by name."""

    def body(skeleton: Any, **options: Any) -> Frames:
        walk = _walk()
        made = sy.LiveRetarget(walk.skeleton, skeleton, rate=walk.fps, **options)
        found = [made.step(walk[k % len(walk)]) for k in range(TICKS)]
        return found[0].skeleton, np.array([one.q for one in found]), [one.status.name for one in found]

    def hand(side: str, **options: Any) -> Frames:
        skeleton = sy.bundled("humanoid_hands")
        points = sy.hands.hand_landmarks(skeleton.rest_pose(), "right")
        points = np.repeat((points * 0.09 / np.linalg.norm(points[9] - points[0]))[None], TICKS, axis=0)
        share = np.interp(np.arange(TICKS), [5, 20, 39, 54], [0.0, 1.0, 1.0, 0.0])[:, None]
        middle = 0.5 * (points[:, 8] + points[:, 4])
        for k in (4, 8):
            points[:, k] += share * (middle - points[:, k])
        made = sy.hands.LiveHand(skeleton, rate=30, side=side, source_side="right", **options)
        found = [made.step(frame) for frame in points]
        return skeleton, np.array([one.q for one in found]), [one.status.name for one in found]

    character = EXAMPLES / "character.glb"
    yield "character", lambda: body(sy.load_skeleton(character), learn=0.5)
    yield "character, limits", lambda: body(sy.load_skeleton(character), learn=0, velocity=8.0, acceleration=80.0)
    yield "humanoid", lambda: body(sy.bundled("humanoid"), learn=0)
    yield "left hand", lambda: hand("left")
    yield "right hand, slow", lambda: hand("right", velocity=4.0)


CLIPS: dict[str, Callable[[], Iterable[tuple[str, Callable[[], Frames]]]]] = {
    "edit": edits, "retarget": others, "live": live,
}  # fmt: skip
