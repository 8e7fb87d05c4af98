"""Clips of bodies with loops: whatever returns poses or clips keeps every frame closed, or refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synovia as sy
from mechanisms import MECHANISMS, NAMES, at, five_bar, four_bar, mechanism_of, slide
from synovia.kernels.compiler import compiled
from synovia.model.change import blend

FPS = 30.0


def closed_clip(body: sy.Skeleton, frames: int = 40, seed: int = 3) -> sy.Motion:
    """Return a clip from the rest pose through two random closed poses."""
    mechanism = mechanism_of(body)
    free, q = ~mechanism.mobility.dependent, [body.rest_q]
    for end in mechanism.random(2, seed):
        begin, steps = q[-1], frames // 2
        for k in range(1, steps + 1):
            q.append(mechanism.way(q[-1][None], blend(body, begin, end, k / steps)[None], free)[0][0])
    return sy.Motion(body, np.array(q), FPS, name="through the workspace")


def gap(motion: sy.Motion) -> float:
    """Return what the loops of a clip lack, reaches or radians."""
    return float(mechanism_of(motion.skeleton).lacks(np.array(motion.q)).max())


def person(*, tied_hand: bool = False) -> sy.Skeleton:
    """Return a humanoid with a piston beside each knee, and a rod from the chest to the left hand if asked for."""
    body = sy.bundled("humanoid")
    joints, loops = list(body.joints), list[sy.Loop]()
    for side in ("left", "right"):
        joints += [
            sy.Joint(f"{side}_cylinder", f"{side}_upper_leg", kind=sy.Kind.BALL, rest=at(0, -0.05, -0.05)),
            slide(f"{side}_piston", f"{side}_cylinder", at(0, -0.3), (0, -1, 0)),
        ]
        loops.append(sy.Loop(f"{side}_piston", f"{side}_lower_leg", other_offset=(0, -0.05, -0.05)))
    if tied_hand:
        rest = body.rest_pose()
        far = float(np.linalg.norm(rest.position("left_hand") - rest.position("chest")))
        loops.append(sy.Loop("left_hand", "chest", "distance", distance=far))
    return body.with_joints(joints).with_loops(loops)


def walk(frames: int = 60) -> sy.Motion:
    """Return a humanoid that marches on the spot."""
    body = sy.bundled("humanoid").with_root("free")
    q = np.repeat(body.rest_q[None], frames, axis=0)
    for side, phase in (("left", 0.0), ("right", np.pi)):
        lift = 0.5 * np.maximum(np.sin(2.0 * np.pi * np.arange(frames) / 30.0 + phase), 0.0)
        hip, knee = body.q_slice(f"{side}_upper_leg"), body.q_slice(f"{side}_lower_leg")
        q[:, hip.start], q[:, hip.stop - 1] = -np.sin(0.5 * lift), np.cos(0.5 * lift)
        if knee.stop - knee.start == 1:
            q[:, knee.start] = lift
    return sy.Motion(body, q, FPS, name="march")


@pytest.mark.parametrize("name", NAMES)
def test_edits_are_closed(name: str) -> None:
    """Goals that are met, goals that are missed, fades and keys: every frame is closed; others keep every bit."""
    make, joint, offset = MECHANISMS[name]
    body = make()
    clip = closed_clip(body, 40 if compiled() else 16)
    last = len(clip) - 1
    near = (clip[last // 2].transform(joint) @ (*offset, 1.0))[:3]
    first, end = last // 3, 2 * last // 3
    key = next(one.name for one in body.joints if one.kind in (sy.Kind.HINGE, sy.Kind.SLIDE))
    layers = {
        "met": sy.Layer(goals=[sy.PositionGoal(joint, near, offset=offset)], frames=(first, end), blend=4),
        "far": sy.Layer(goals=[sy.PositionGoal(joint, (50.0, 0.0, 0.0), offset=offset)], frames=(first, end), blend=4),
        "key": sy.Layer(pose={key: float(clip[last // 2][key]) + 0.05}, frames=(first, end), blend=4),
    }
    for case, layer in layers.items():
        edited = sy.edit(clip, layer)
        assert gap(edited.motion) <= 1e-9
        assert np.array_equal(edited.motion.q[~edited.acts], clip.q[~edited.acts])
        assert edited.reached[first : end + 1].all() == (case != "far")
        if case == "key":
            assert edited.motion.q[last // 2, body.q_slice(key)] == pytest.approx(clip[last // 2][key] + 0.05)


def test_a_key_that_loops_do_not_allow_is_told() -> None:
    """A rocker that cannot go as far as its key stays as near as it can; the finding names it."""
    body = four_bar()
    clip = sy.Motion(body, [body.rest_q] * 12, FPS)
    edited = sy.edit(clip, sy.Layer(pose={"rocker": -3.0}, frames=(4, 7), blend=2))
    assert gap(edited.motion) <= 1e-9
    assert [one.cause for one in edited.findings] == ["limits"]
    assert "rocker" in edited.findings[0].text
    assert "loops" in edited.findings[0].text


def test_edits_beside_loops_are_those_of_the_tree() -> None:
    """A layer that moves no joint of a loop gives the same clip as on the tree without loops."""
    body = person()
    tree = body.with_loops([])
    clip = sy.Motion(body, [body.rest_q] * 20, FPS)
    layer = sy.Layer({"left_hand": (0.0, 0.1, 0.0)}, frames=(6, 12), blend=4, relative=True)
    one, two = (sy.edit(motion, layer, feet=()) for motion in (clip, sy.Motion(tree, clip.q, FPS)))
    assert one.reached.all()
    np.testing.assert_allclose(one.motion.q, two.motion.q, atol=1e-9)


@pytest.mark.slow
@pytest.mark.compiled
def test_retargeted_feet_and_pistons() -> None:
    """Pistons follow the legs: the parts move as without them, and later edits of legs and feet stay closed."""
    motion, body = walk(), person()
    answer, plain = sy.retarget(motion, body), sy.retarget(motion, sy.bundled("humanoid"))
    assert gap(answer.motion) <= 1e-9
    assert answer.verdict == plain.verdict
    assert answer.missed_frames == plain.missed_frames == ()
    assert not any(one.cause == "loops" for one in answer.findings)
    assert answer.forced.max() < 0.02
    count = plain.motion.skeleton.nq
    assert np.abs(answer.motion.q[:, :count] - plain.motion.q).max() < 0.05
    assert gap(answer[10:20].motion) <= 1e-9
    assert gap(sy.foot_lock(answer.motion).motion) <= 1e-9
    raised = sy.edit(answer.motion, sy.Layer({"left_foot": (0, 0.05, 0)}, frames=(20, 30), blend=5, relative=True))
    assert gap(raised.motion) <= 1e-9
    assert raised.reached.all()
    assert not raised.findings


@pytest.mark.compiled
def test_rods_that_have_to_be_too_fast_are_told() -> None:
    """A piston follows its leg whatever its velocity limit is; a finding names it, and the verdict is not good."""
    body = person()
    joints = [replace(joint, velocity=0.05) if joint.name == "left_piston" else joint for joint in body.joints]
    answer = sy.retarget(walk(), body.with_joints(joints))
    assert gap(answer.motion) <= 1e-9
    assert [*answer.too_fast] == ["left_piston"]
    piston = answer.motion.q[:, answer.motion.skeleton.q_slice("left_piston").start]
    fastest = float(np.abs(np.diff(piston)).max()) * FPS / 0.05
    assert answer.too_fast["left_piston"].max() == pytest.approx(fastest)
    finding = next(one for one in answer.findings if one.cause == "loops")
    assert finding.level == "look"
    assert "'left_piston'" in str(finding) or "left_piston" in finding.text
    assert answer.verdict != "good"
    assert len(answer[10:20].too_fast.get("left_piston", np.zeros(10))) == 10
    assert not sy.retarget(walk(), body).too_fast


@pytest.mark.compiled
def test_a_loop_that_does_not_allow_the_pose_of_the_source_is_told() -> None:
    """A hand that a rod holds away from where the source has it: closed, and no good verdict."""
    clip = walk()
    q = np.array(clip.q)
    arm = clip.skeleton.q_slice("left_lower_arm")
    q[:, arm] = [1.8] if arm.stop - arm.start == 1 else (0.0, np.sin(0.9), 0.0, np.cos(0.9))
    answer = sy.retarget(sy.Motion(clip.skeleton, q, FPS), person(tied_hand=True))
    assert gap(answer.motion) <= 1e-9
    assert answer.verdict != "good"
    finding = next(one for one in answer.findings if one.cause == "loops")
    assert finding.level == "look"
    assert "loops" in answer.report()


def test_closing_a_clip_stays_in_its_branch() -> None:
    """Noise on a clip is closed again beside each frame; rods that were left at rest follow to where they were."""
    body = five_bar()
    mechanism, clip = mechanism_of(body), closed_clip(body)
    noisy = clip.q + np.random.default_rng(0).normal(size=clip.q.shape) * 0.05
    shut = mechanism.shut_clip(noisy)
    assert mechanism.lacks(shut).max() <= 1e-9
    assert np.abs(shut - clip.q).max() < 0.5
    driven = body.tables.owner[~mechanism.mobility.dependent].tolist()
    left = np.array(clip.q)
    for row in set(range(len(body))) - set(driven):
        left[:, body.q_slice(row)] = body.rest_q[body.q_slice(row)]
    np.testing.assert_allclose(mechanism.shut_clip(left, driven), clip.q, atol=1e-8)
    assert np.array_equal(mechanism.shut_clip(np.array(clip.q)), clip.q)


def test_a_frame_that_cannot_close_goes_as_far_as_it_can() -> None:
    """A rocker beyond its dead centre: closed at the end of the way, and loops elsewhere keep their own values."""
    bars = [*four_bar().joints, *(sy.Joint(f"{one.name}2", one.parent and f"{one.parent}2", kind=one.kind,
            rest=one.rest, axis=one.axis) for one in four_bar().joints)]  # fmt: skip
    loops = [
        sy.Loop(f"coupler{k}", f"rocker{k}", offset=(3, 0, 0), other_offset=(2, 0, 0), name=f"loop{k}")
        for k in ("", "2")
    ]
    body = sy.Skeleton(bars).with_loops(loops)
    mechanism, clip = mechanism_of(body), closed_clip(body, 16)
    q = np.array(clip.q)
    q[5, body.q_slice("rocker")] = 3.0
    shut = mechanism.shut_clip(q, [body.index("rocker")])
    assert mechanism.lacks(shut).max() <= 1e-9
    for name in ("crank2", "coupler2", "rocker2"):
        np.testing.assert_allclose(shut[:, body.q_slice(name)], clip.q[:, body.q_slice(name)], atol=1e-9)


TOOLS: dict[str, Callable[[sy.Motion, Path], Any]] = {
    "slice": lambda clip, _: clip[3:20:2],
    "pose": lambda clip, _: clip[3],
    "at": lambda clip, _: clip.at([0.31, 0.62]),
    "resample": lambda clip, _: clip.resample(47),
    "retimed": lambda clip, _: clip.retimed(1.3),
    "slowed": lambda clip, _: clip.slowed(velocity=0.8),
    "reversed": lambda clip, _: clip.reversed(),
    "smoothed": lambda clip, _: clip.smoothed(4),
    "mirrored": lambda clip, _: clip.mirrored(),
    "looped": lambda clip, _: clip.looped(6, cut=False),
    "moved": lambda clip, _: _free(clip).moved(origin=(1, 0, 0)),
    "in_place": lambda clip, _: _free(clip).in_place(),
    "on": lambda clip, _: _free(clip),
    "with_added": lambda clip, _: clip.with_added(clip.additive(clip[0]), 0.4),
    "concatenate": lambda clip, _: sy.concatenate([clip, clip.reversed()], blend=6),
    "edit": lambda clip, _: sy.edit(clip, sy.Layer(pose={"left": 0.3}, frames=(6, 10), blend=3)).motion,
    "foot_lock": lambda clip, _: sy.foot_lock(clip, feet=["left_forearm"], up="z").motion,
    "fit_positions": lambda clip, _: sy.fit_positions(clip.positions(), clip.skeleton, fps=FPS),
    "retarget": lambda clip, _: (
        sy.retarget(
            clip,
            clip.skeleton,
            {"left_upper_arm": ("left", "left"), "left_lower_arm": ("left_forearm", "left_forearm")},
        ).motion
    ),
    "rest_pose": lambda clip, _: clip.skeleton.rest_pose(),
    "random_pose": lambda clip, _: clip.skeleton.random_pose(4),
    "with_values": lambda clip, _: clip[3].with_values({"left": 0.7}),
    "with_joints": lambda clip, _: clip.skeleton.with_joints(clip.skeleton.joints).rest_pose(),
    "with_limits": lambda clip, _: clip.skeleton.with_limits({"left": (-1.0, 1.0)}).rest_pose(),
    "with_root": lambda clip, _: clip.skeleton.with_root("free").random_pose(2),
    "close_loops": lambda clip, _: sy.close_loops(clip.skeleton, {"left": 0.7}),
    "solve": lambda clip, _: sy.solve(clip.skeleton, sy.PositionGoal("left_forearm", (0.3, 0.9, 0))).pose,
    "solve_many": lambda clip, _: sy.IK(clip.skeleton, _hand()).solve_many(_path(clip)).q,
    "track": lambda clip, _: sy.IK(clip.skeleton, _hand()).track(_path(clip)).motion,
    "branches": lambda clip, _: sy.IK(clip.skeleton, _hand()).branches(_path(clip)[5]),
    "npz": lambda clip, folder: _read_back(clip, folder / "clip.npz"),
    "csv": lambda clip, folder: _read_back(clip, folder / "clip.csv"),
    "save_pose": lambda clip, folder: _pose_back(clip[4], folder / "pose.json"),
}


def _free(clip: sy.Motion) -> sy.Motion:
    """Return the clip on a body with a free root, and an axis that points up."""
    body = clip.skeleton
    upright = sy.Skeleton(body.joints, name=body.name, up="z", loops=body.loops)
    return sy.Motion(upright, clip.q, clip.fps).on(upright.with_root("free"))


def _hand() -> sy.PositionGoal:
    """Return the goal of the point in which the forearms meet."""
    return sy.PositionGoal("left_forearm", offset=(1.5, 0.0, 0.0))


def _path(clip: sy.Motion) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the way of that point."""
    return np.array([(pose.transform("left_forearm") @ (1.5, 0.0, 0.0, 1.0))[:3] for pose in clip])


def _read_back(clip: sy.Motion, path: Path) -> sy.Motion:
    """Return a clip that was saved; formats that need the body get it."""
    sy.save_motion(clip, path)
    return sy.load_motion(path) if path.suffix == ".npz" else sy.formats.read_csv(path, clip.skeleton)


def _pose_back(pose: sy.Pose, path: Path) -> sy.Pose:
    """Return a pose that was saved."""
    sy.save_pose(pose, path)
    return sy.load_pose(path, pose.skeleton)


def _poses(found: Any) -> list[sy.Pose]:
    """Return all poses of what a function has returned."""
    if isinstance(found, sy.Pose):
        return [found]
    if isinstance(found, sy.Motion):
        return list(found)
    if isinstance(found, np.ndarray):
        return [sy.Pose(five_bar(), q) for q in found]
    return [pose for one in found for pose in _poses(getattr(one, "pose", one))]


@pytest.mark.compiled
@pytest.mark.parametrize("name", TOOLS)
def test_what_returns_poses_keeps_loops_closed_or_refuses(name: str, tmp_path: Path) -> None:
    """Each public function that returns poses or clips returns closed ones, or refuses with a reason."""
    clip = closed_clip(five_bar())
    if name in REFUSED:
        with pytest.raises(sy.SynoviaError, match=REFUSED[name]):
            TOOLS[name](clip, tmp_path)
        return
    poses = _poses(TOOLS[name](clip, tmp_path))
    assert poses
    for pose in poses:
        assert mechanism_of(pose.skeleton).lacks(pose.q[None]).max() <= 1e-9


REFUSED: dict[str, str] = {
    "branches": "lists no branches",
    "with_values": "all loops are closed",
}


def live_clip(body: sy.Skeleton, motion: sy.Motion, **options: Any) -> tuple[sy.LiveRetarget, sy.Motion]:
    """Return a live body with loops that has followed a clip pose by pose, and its poses."""
    live = sy.LiveRetarget(motion.skeleton, body, rate=motion.fps, learn=0, **options)
    poses = [live.step(pose) for pose in motion]
    return live, sy.Motion(live.skeleton, np.array([pose.q for pose in poses]), motion.fps)


@pytest.mark.compiled
def test_pistons_of_a_live_body_follow_its_legs() -> None:
    """Every tick is closed, the parts move as without loops, and pistons are where ``retarget`` has them."""
    motion, body = walk(), person()
    live, found = live_clip(body, motion, hold_feet=False)
    _, plain = live_clip(sy.bundled("humanoid"), motion, hold_feet=False)
    assert gap(found) <= 1e-9
    count = plain.skeleton.nq
    np.testing.assert_allclose(found.q[:, :count], plain.q, atol=0.02)
    assert not any(one["cause"] == "loops" for one in live.report().facts["findings"])
    answer = sy.retarget(motion, body, hold_feet=False).motion
    for name in ("left_piston", "right_piston"):
        at = answer.skeleton.q_slice(name).start
        np.testing.assert_allclose(found.q[:, at], answer.q[:, at], atol=0.01)


@pytest.mark.compiled
def test_a_live_body_that_stands_and_goes_over_to_its_source_stays_closed() -> None:
    """With feet that stand, a lost source, and limits of velocity."""
    motion, body = walk(), person()
    live = sy.LiveRetarget(motion.skeleton, body, rate=FPS, learn=0, velocity=3.0, acceleration=60.0, timeout=0.1)
    samples = [*motion][:25] + [None] * 10 + [*motion][40:]
    q = np.array([live.step(pose).q for pose in samples])
    assert gap(sy.Motion(live.skeleton, q, FPS)) <= 1e-9
    live.reset(sy.Pose(live.skeleton, q[-1]))
    assert gap(sy.Motion(live.skeleton, live.step().q[None], FPS)) <= 1e-9


@pytest.mark.compiled
def test_what_loops_force_on_a_live_body_is_reported() -> None:
    """A hand that is tied to the chest gives way, and a piston is faster than its limit."""
    motion, body = walk(), person(tied_hand=True)
    q, arm = motion.q.copy(), motion.skeleton.q_slice("left_upper_arm")
    q[:, arm] = sy.Rotation.from_euler("z", np.linspace(0.0, 1.2, len(q))[:, None]).as_quat()
    reached = sy.Motion(motion.skeleton, q, FPS)
    joints = [replace(joint, velocity=0.05) if joint.name == "left_piston" else joint for joint in body.joints]
    live, found = live_clip(body.with_joints(joints), reached, hold_feet=False)
    assert gap(found) <= 1e-9
    said = [one["text"] for one in live.report().facts["findings"] if one["cause"] == "loops"]
    assert any("rotates parts" in text for text in said)
    assert any("left_piston" in text for text in said)
    assert live.report().verdict == sy.retarget(reached, live.skeleton, hold_feet=False).verdict
