"""Fingers of characters: carried from hand to hand, judged, and fitted to landmarks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import synovia as sy
from beyond import beyond_limits
from cli_runs import run

Array = NDArray[np.float64]
FINGERS = ("thumb", "index", "middle", "ring", "little")
SIDES = ("left", "right")


def rows_of(body: sy.Skeleton, side: str) -> dict[str, list[int]]:
    """Return the joints of each finger, and the end of the last one where the file marks it."""
    out: dict[str, list[int]] = {}
    for finger in FINGERS:
        names = [f"{side}_{finger}_{k}" for k in (1, 2, 3)]
        rows = [body.role_rows[name] for name in names if name in body.role_rows]
        if rows:
            out[finger] = [*rows, *body.children[rows[-1]][:1]]
    return out


def directions(motion: sy.Motion, side: str) -> dict[str, Array]:
    """Return the directions of the bones of fingers, (T, n, 3), in axes of wrist and knuckles in each frame."""
    places, rows = motion.positions(), rows_of(motion.skeleton, side)
    wrist = places[:, motion.skeleton.role_rows[f"{side}_hand"]]
    knuckles = places[:, [rows[finger][0] for finger in FINGERS[1:] if finger in rows]]
    y = knuckles.mean(1) - wrist
    z = np.cross(knuckles[:, 0] - knuckles[:, -1], y) * (1.0 if side == "right" else -1.0)
    axes = np.stack([np.cross(y, z), y, z], axis=1)
    axes /= np.linalg.norm(axes, axis=2, keepdims=True)
    out: dict[str, Array] = {}
    for finger, chain in rows.items():
        ways = np.diff(places[:, chain], axis=1) @ np.swapaxes(axes, 1, 2)
        out[finger] = ways / np.linalg.norm(ways, axis=2, keepdims=True)
    return out


def off(a: Array, b: Array) -> float:
    """Return the mean angle between directions, degrees."""
    return float(np.degrees(np.arccos(np.clip(np.sum(a * b, axis=-1), -1.0, 1.0))).mean())


def character(*, seed: int | None = None, without: tuple[str, ...] = (), hands: bool = True) -> sy.Skeleton:
    """Return a body whose fingers are balls without limits, as those of characters.

    Args:
        seed: Joints of fingers are bent and twisted at rest by this seed; None for straight ones.
        without: Words in the names of joints that are left out.
        hands: Whether it has fingers at all.
    """
    rng = np.random.default_rng(seed)
    joints = []
    for joint in sy.bundled("humanoid_hands").joints:
        finger = any(f"_{name}_" in joint.name for name in FINGERS)
        if any(word in joint.name for word in without) or (finger and not hands):
            continue
        if finger and not joint.name.endswith("tip"):
            rest = joint.rest.copy()
            if seed is not None:
                rest[:3, :3] = rest[:3, :3] @ sy.Rotation.from_rotvec(rng.uniform(-0.4, 0.4, 3)).as_matrix()
            joint = dataclasses.replace(joint, rest=rest, kind=sy.Kind.BALL, limit=None, preferred=None)
        joints.append(joint)
    return sy.Skeleton(joints, name="character", meters_per_unit=1.0, up="y", forward="z")


def grasping(body: sy.Skeleton, count: int = 60) -> sy.Motion:
    """Return a clip of a body of hinges that closes its hands to fists and opens them."""
    q = np.tile(body.rest_q, (count, 1))
    closed = 0.5 - 0.5 * np.cos(np.linspace(0.0, 2.0 * np.pi, count))
    low, high = body.limits
    for row, joint in enumerate(body.joints):
        if joint.kind is sy.Kind.HINGE and any(f"_{name}_" in joint.name for name in FINGERS):
            at = body.q_slice(row).start
            q[:, at] = np.clip(1.3 * closed, low[at], high[at])
    return sy.Motion(body, q, 30.0, name="grasp")


@pytest.fixture(scope="module")
def grasp() -> sy.Motion:
    return grasping(sy.bundled("humanoid_hands"))


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_fist_stays_a_fist_whatever_the_rest_poses(grasp: sy.Motion, seed: int | None) -> None:
    """Balls point exactly as the source; back again, hinges do."""
    answer = sy.retarget(grasp, character(seed=seed))
    for side in SIDES:
        source, result = directions(grasp, side), directions(answer.motion, side)
        assert max(off(source[finger], result[finger]) for finger in FINGERS) < 0.5
    assert not [one for one in answer.findings if one.cause == "fingers"]
    assert {f"{side} {finger}" for side in SIDES for finger in FINGERS} <= {
        line.split("  ")[0] for line in answer.report().splitlines()
    }
    back = sy.retarget(answer.motion, sy.bundled("humanoid_hands"))
    assert not beyond_limits(back.motion.skeleton.tables, back.motion.q)
    for side in SIDES:
        source, result = directions(grasp, side), directions(back.motion, side)
        assert max(off(source[finger], result[finger]) for finger in FINGERS) < 6.0


def test_fingers_bend_about_their_own_axes(grasp: sy.Motion) -> None:
    """Joints of a character with straight fingers turn as the hinges they were made from: about x, without twist."""
    answer = sy.retarget(grasp, character())
    body = answer.motion.skeleton
    for side in SIDES:
        for finger in FINGERS[1:]:
            for k in (2, 3):
                joint = grasp.skeleton.joints[grasp.skeleton.role_rows[f"{side}_{finger}_{k}"]]
                q = answer.motion.q[:, body.q_slice(body.role_rows[f"{side}_{finger}_{k}"])]
                turns = sy.Rotation.from_quat(q).as_rotvec()
                aside = turns - np.outer(turns @ joint.axis, joint.axis)
                assert np.degrees(np.abs(aside).max()) < 6.0


def test_other_numbers_of_fingers_and_segments(grasp: sy.Motion) -> None:
    """A finger that the source lacks follows its neighbour; fewer segments follow the same parts of the finger."""
    few = character(without=("_little_",))
    to_few = sy.retarget(grasp, few)
    answer = sy.retarget(to_few.motion, character())
    for side in SIDES:
        result = directions(answer.motion, side)
        ways = result["ring"], result["little"]
        assert off(ways[0][:, :1], ways[1][:, :1]) < 1.0  # little as ring
        assert off(directions(grasp, side)["index"], result["index"]) < 6.0  # palms of three knuckles differ a little
    short = character(without=("_3", "_tip"))
    fewer = sy.retarget(grasp, short)
    assert not [one for one in fewer.findings if one.cause == "fingers"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "mitten"])
def test_mittens_follow_the_middle_of_the_fingers(grasp: sy.Motion, name: str) -> None:
    """One chain beside a thumb stands for four fingers, whatever its name; back again, all four follow it."""

    def renamed(joint: str | None) -> str | None:
        return None if joint is None else joint.replace("_middle_", f"_{name}_")

    full = character(without=("_index_", "_ring_", "_little_"))
    joints = [
        dataclasses.replace(joint, name=renamed(joint.name), parent=renamed(joint.parent), role=None)
        for joint in full.joints
    ]
    body = sy.Skeleton(joints, name="mittens", meters_per_unit=1.0, up="y", forward="z")
    hand = sy.hand_of(body, "right")
    assert [finger.joints[0] for finger in hand.fingers] == ["right_thumb_1", f"right_{name}_1"]
    assert any("a mitten" in note for note in hand.notes)
    q = np.array(grasp.q)
    for finger in ("ring", "little"):  # these stay open
        for k in (1, 2, 3):
            at = grasp.skeleton.q_slice(f"right_{finger}_{k}")
            q[:, at] = grasp.q[0, at]
    half = sy.Motion(grasp.skeleton, q, 30.0)
    fitted = sy.fit_keypoints(landmarks(half, "right"), body=body, preset="hand", side="right", fps=30.0)
    fist, *halves = (
        np.degrees(sy.Rotation.from_quat(clip.q[30, clip.skeleton.q_slice(f"right_{name}_2")]).magnitude())
        for clip in (sy.retarget(grasp, body).motion, sy.retarget(half, body).motion, fitted)
    )
    assert fist > 70.0
    for one in halves:
        assert 0.4 * fist < one < 0.65 * fist
    back = sy.retarget(sy.retarget(grasp, body).motion, character())
    assert off(directions(grasp, "right")["ring"], directions(back.motion, "right")["ring"]) < 15.0


def test_bones_in_the_palm_and_ends_without_marks(grasp: sy.Motion) -> None:
    """Metacarpals stay, and fingers without a mark of their tips follow with the bones that they show."""
    joints = []
    for joint in character(without=("_tip",)).joints:
        inside = next((name for name in FINGERS[1:] if joint.name.endswith(f"_{name}_1")), None)
        if inside is not None:
            bone = f"{joint.name[:-2]}_metacarpal"
            rest, rest_of_bone = joint.rest.copy(), np.eye(4)
            rest_of_bone[:3, 3], rest[:3, 3] = 0.15 * joint.rest[:3, 3], 0.85 * joint.rest[:3, 3]
            joints.append(sy.Joint(bone, joint.parent, kind=sy.Kind.BALL, rest=rest_of_bone))
            joint = dataclasses.replace(joint, parent=bone, rest=rest)
        joints.append(joint)
    body = sy.Skeleton(joints, name="with metacarpals", meters_per_unit=1.0, up="y", forward="z")
    answer = sy.retarget(grasp, body)
    for side in SIDES:
        source, result = directions(grasp, side), directions(answer.motion, side)
        assert max(off(source[finger][:, :2], result[finger]) for finger in FINGERS) < 0.5
        bone = answer.motion.skeleton.q_slice(f"{side}_index_metacarpal")
        assert np.ptp(answer.motion.q[:, bone], axis=0).max() < 1e-12


def test_the_judge_compares_fingers(grasp: sy.Motion) -> None:
    """Open hands beside fists are not good, and a robot says why it cannot follow."""
    answer = sy.retarget(grasp, character())
    q = np.array(answer.motion.q)
    body = answer.motion.skeleton
    for finger in FINGERS:
        for k in (1, 2, 3):
            q[:, body.q_slice(body.role_rows[f"left_{finger}_{k}"])] = (0.0, 0.0, 0.0, 1.0)
    found = sy.judge(sy.Motion(body, q, 30.0), grasp)
    told = [one for one in found.findings if one.cause == "fingers"]
    assert [one.limb for one in told] == ["left_hand"]
    assert "index" in told[0].text
    assert found.verdict == told[0].level == "failed"  # half of the time by nearly 200°
    spread = np.array(answer.motion.q)
    for finger, angle in zip(FINGERS[1:], (0.5, 0.3, -0.3, -0.5), strict=True):
        at = body.q_slice(body.role_rows[f"right_{finger}_1"])
        across = grasp.skeleton.joints[grasp.skeleton.role_rows[f"right_{finger}_1"]].axis
        aside = np.cross(across, (1.0, 0.0, 0.0) if abs(across[0]) < 0.5 else (0.0, 1.0, 0.0))
        spread[:, at] = sy.Rotation.from_rotvec(angle * aside).as_quat()
    robot = sy.retarget(sy.Motion(body, spread, 30.0), sy.bundled("humanoid_hands"))
    whys = [one.text for one in robot.findings if one.cause == "fingers" and one.limb == "right_hand"]
    assert len(whys) == 1
    assert "hold it" in whys[0] or "do not move it sideways" in whys[0]


def test_hands_without_motion_may_be_relaxed(tmp_path: Path) -> None:
    """Fingers of a source that has none stay at rest, or bend a little."""
    still = character(hands=False).with_root("free")
    clip = sy.Motion(still, [still.rest_q] * 5, 30.0)
    body = sy.bundled("humanoid_hands")
    flat, calm = (sy.retarget(clip, body, idle_hands=how) for how in ("rest", "relaxed"))
    for side in SIDES:
        bends = [np.degrees(np.arccos(directions(one.motion, side)["middle"][0, 2, 1])) for one in (flat, calm)]
        assert bends[0] < 30.0 < 45.0 < bends[1]
    assert not beyond_limits(calm.motion.skeleton.tables, calm.motion.q)
    with pytest.raises(sy.InputError, match="idle_hands"):
        sy.retarget(clip, body, idle_hands="flat")  # pyright: ignore[reportArgumentType]
    source, output = tmp_path / "still.npz", tmp_path / "calm.npz"
    sy.save_motion(clip, source)
    assert run("retarget", source, "humanoid_hands", "--idle-hands", "relaxed", "-o", output).code == 0
    np.testing.assert_allclose(sy.load_motion(output).q, calm.motion.q, atol=1e-6)


def landmarks(motion: sy.Motion, side: str, noise: float = 0.0) -> Array:
    """Return the 21 landmarks of a hand in a clip, with noise in metres."""
    places, body = motion.positions(), motion.skeleton
    rows = [body.role_rows[f"{side}_hand"], *(row for chain in rows_of(body, side).values() for row in chain)]
    return places[:, rows] + np.random.default_rng(4).normal(scale=noise or 1e-12, size=(len(motion), len(rows), 3))


def finger_errors(a: sy.Motion, b: sy.Motion, side: str) -> tuple[Array, Array]:
    """Return the angles between the rotations of fingers in two clips, and the steps of the second one, degrees."""
    found: list[list[sy.Rotation]] = []
    for motion in (a, b):
        turns = motion.frames()[..., :9].reshape(len(motion), -1, 3, 3)
        rows = [chain[k] for chain in rows_of(motion.skeleton, side).values() for k in (0, 1, 2)]
        above = [motion.skeleton.parents[row] for row in rows]
        local = np.swapaxes(turns[:, above], 2, 3) @ turns[:, rows]
        found.append([sy.Rotation.from_matrix(local[:, k]) for k in range(len(rows))])
    errors = np.degrees([(one.inv() * two).magnitude() for one, two in zip(*found, strict=True)])
    steps = np.degrees([(one[:-1].inv() * one[1:]).magnitude() for one in found[1]])
    return errors, steps


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_fingers_are_fitted_to_21_points(grasp: sy.Motion, side: str) -> None:
    """From points with 2 mm of noise, rotations come back within 5° (median), without jumps and backward bends."""
    clip = sy.retarget(grasp, character()).motion
    points = landmarks(clip, side, 0.002)
    moved = 1000.0 * (points @ sy.Rotation.from_rotvec((0.3, -1.0, 0.4)).as_matrix().T + (0.1, 2.0, 0.3))
    for given in (points, moved):
        fitted = sy.fit_keypoints(given, body=character(), preset="hand", side=side, fps=30.0)
        errors, steps = finger_errors(clip, fitted, side)
        assert np.median(errors) < 5.0
        assert steps.max() < 20.0
        assert any("only the fingers move" in note for note in fitted.notes)
        ways = directions(fitted, side)
        for finger in FINGERS[1:]:
            bends = np.cross(ways[finger][:, :-1], ways[finger][:, 1:])[..., 0]
            assert np.degrees(np.arcsin(bends.min())) > -8.0


@pytest.mark.slow
def test_short_clips_and_points_that_come_and_go(grasp: sy.Motion) -> None:
    """Six frames are enough; no frame has to show the whole palm, and no bone has to show both ends at once."""
    clip = sy.retarget(grasp, character()).motion
    short = sy.Motion(clip.skeleton, clip.q[20:26], 30.0)
    fitted = sy.fit_keypoints(landmarks(short, "right", 0.002), body=character(), preset="hand", side="right", fps=30.0)
    errors, steps = finger_errors(short, fitted, "right")
    assert np.median(errors) < 5.5
    assert steps.max() < 20.0
    part = sy.Motion(clip.skeleton, clip.q[:20], 30.0)
    points = landmarks(part, "right", 0.0005)
    hidden = np.random.default_rng(2).random(points.shape[:2]) < 0.4
    hidden[np.arange(20), np.array([0, 5, 9, 13, 17])[np.arange(20) % 5]] = True
    hidden[::2, 7] = hidden[1::2, 8] = True  # the last bone of the index finger
    points[hidden] = np.nan
    fitted = sy.fit_keypoints(points, body=character(), preset="hand", side="right", fps=30.0)
    errors, steps = finger_errors(part, fitted, "right")
    assert np.median(errors) < 5.0
    assert steps.max() < 20.0
    points[:, 0] = np.nan
    with pytest.raises(sy.InputError, match="the palm of a hand is never seen"):
        sy.fit_keypoints(points, body=character(), preset="hand", side="right", fps=30.0)


@pytest.mark.slow
def test_a_file_of_a_hand_alone_moves_with_its_points(grasp: sy.Motion) -> None:
    """Its palm follows the points, in the unit of its own file."""
    body = sy.bundled("humanoid_hands")
    top = body.index("left_hand")
    joints = [
        dataclasses.replace(body.joints[row], parent=None if row == top else body.joints[row].parent, role=None)
        for row, name in enumerate(body.joint_names)
        if row == top or any(f"left_{finger}_" in name for finger in FINGERS)
    ]
    hand = sy.Skeleton(joints, name="left hand", meters_per_unit=1.0)
    points = landmarks(grasp, "left")
    fitted = sy.fit_keypoints(points, body=hand, preset="hand", fps=30.0)  # it has 21 joints too
    names = ["left_hand", *(f"left_{finger}_{k}" for finger in FINGERS for k in (1, 2, 3))]
    want = grasp.positions()[:, [body.index(name) for name in names]]
    got = fitted.positions()[:, [fitted.skeleton.index(name) for name in names]]
    assert np.linalg.norm(want - got, axis=2).max() < 0.006


@pytest.mark.slow
@pytest.mark.parametrize("mirrored", [False, True])
def test_body_and_hands_together(grasp: sy.Motion, mirrored: bool) -> None:
    """33 landmarks of the body and 21 of each hand: hands turn and fingers bend, also with the axes of an image."""
    import landmark_tables as tables

    body = tables.landmarks(grasp, "mediapipe", centred=False, metre=1.0)
    points = np.concatenate([body, landmarks(grasp, "left", 0.002), landmarks(grasp, "right", 0.002)], axis=1)
    if mirrored:
        points = points * (1.0, -1.0, 1.0)
    fitted = sy.fit_keypoints(points, body=sy.bundled("humanoid_hands"), fps=30.0)
    assert fitted.notes[0] == "MediaPipe Holistic, 33 + 21 + 21 landmarks"
    for side in SIDES:
        errors, steps = finger_errors(grasp, fitted, side)
        assert np.median(errors) < 5.0
        assert steps.max() < 20.0
        row = grasp.skeleton.index(f"{side}_hand")
        turns = [
            m.frames()[:, m.skeleton.index(f"{side}_hand"), :9].reshape(-1, 3, 3) for m in (grasp, fitted)
        ]  # world axes of both are y up, z ahead
        apart = sy.Rotation.from_matrix(np.swapaxes(turns[0], 1, 2) @ turns[1]).magnitude()
        assert np.degrees(np.median(apart)) < 4.0, row
    points[:, 33:54] = np.nan
    one = sy.fit_keypoints(points, fps=30.0)
    assert "the left hand is never seen: its fingers stay at rest" in one.notes
    assert len(one.skeleton) > 40  # a body with hands, made to measure


def test_what_the_points_of_a_hand_need(grasp: sy.Motion) -> None:
    """A body with that hand, 21 points, a palm, and a side that exists."""
    points = landmarks(grasp, "left")[:6]
    with pytest.raises(sy.InputError, match="a skeleton with a hand"):
        sy.fit_keypoints(points)
    with pytest.raises(sy.errors.UnsupportedError, match="left hand, which the body does not have"):
        sy.fit_keypoints(points, body=sy.bundled("humanoid"), preset="hand")
    with pytest.raises(sy.InputError, match="21 points"):
        sy.fit_keypoints(points[:, :20], body=sy.bundled("humanoid_hands"), preset="hand")
    with pytest.raises(sy.InputError, match="side"):
        sy.fit_keypoints(points, body=sy.bundled("humanoid_hands"), side="middle")
    points[:, 5:18] = np.nan
    with pytest.raises(sy.InputError, match="palm of a hand is never seen"):
        sy.fit_keypoints(points, body=sy.bundled("humanoid_hands"), side="left")


@pytest.mark.shared_data
def test_a_fist_of_a_real_character(shared_data: Path) -> None:
    """The fist of a punch arrives on another rig whose bones all lie along one axis at rest."""
    punch = sy.load_motion(shared_data / "character" / "mannequiny.glb", clip="fight_punch_root.001")
    answer = sy.retarget(punch, sy.load_skeleton(shared_data / "motion" / "rokoko_jesse_dance.bvh"))
    for side in SIDES:
        source, result = directions(punch, side), directions(answer.motion, side)
        for finger in source:
            assert off(source[finger], result[finger][:, : source[finger].shape[1]]) < 2.0
