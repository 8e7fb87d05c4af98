"""Bones on the floor below a body, as characters for game engines have them: which part of a motion they take."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.errors import InputError

FRAMES = 60


def with_root_bone(body, turn=None, name="root"):
    """Return a body whose hips hang below a bone on the floor; its axes may be turned."""
    frame = np.eye(4)
    frame[:3, :3] = np.eye(3) if turn is None else turn.as_matrix()
    joints = [sy.Joint(name, rest=frame, kind=sy.Kind.BALL)]
    for joint in body.joints:
        own = joint if joint.parent is not None else replace(joint, parent=name, rest=np.linalg.inv(frame) @ joint.rest)
        joints.append(own)
    return sy.Skeleton(joints, name="character", meters_per_unit=1.0, up="y", forward="z")


@pytest.fixture(scope="module")
def walk():
    """Return a clip that goes around a circle, turns as it goes, and bows."""
    body = sy.bundled("humanoid").with_root("free")
    q = np.tile(body.rest_q, (FRAMES, 1))
    angle = np.linspace(0.0, 1.5 * np.pi, FRAMES)
    hips, spine = (body.q_slice(name) for name in (0, "spine"))
    q[:, hips.start : hips.start + 3] += 2.0 * np.stack([1.0 - np.cos(angle), 0.0 * angle, np.sin(angle)], axis=1)
    bow = 0.3 * np.sin(3.0 * angle)
    q[:, hips.start + 3 : hips.stop] = (
        sy.Rotation.from_euler("y", angle[:, None]) * sy.Rotation.from_euler("x", 0.5 * bow[:, None])
    ).as_quat()
    q[:, spine] = sy.Rotation.from_euler("x", bow[:, None]).as_quat()
    return sy.Motion(body, q, 30.0, name="circle")


@pytest.fixture(scope="module")
def character():
    return with_root_bone(sy.bundled("humanoid"), sy.Rotation.from_euler("x", -90, degrees=True))


@pytest.fixture(scope="module")
def answers(walk, character):
    return {mode: sy.retarget(walk, character, root_motion=mode) for mode in ("root", "hips", "none")}


def places(answer, name):
    """Return the positions (T, 3) and rotations (T, 3, 3) of a joint."""
    motion = answer.motion
    frames = motion.frames()[:, motion.skeleton.index(name)]
    return frames[:, 9:], frames[:, :9].reshape(-1, 3, 3)


def test_the_root_takes_path_and_heading_on_the_floor(walk, answers):
    place, turn = places(answers["root"], "root")
    hips, _ = places(answers["root"], "hips")
    np.testing.assert_allclose(place[:, 1], 0.0, atol=1e-9)
    assert np.linalg.norm((hips - place)[:, [0, 2]], axis=1).max() < 0.06  # the hips are above the heels at rest
    rest = answers["root"].motion.skeleton.rest_pose().rotation("root").as_matrix()
    since = turn @ rest.T
    np.testing.assert_allclose(since[:, 1, 1], 1.0, atol=1e-9)
    heading = np.unwrap(np.arctan2(since[:, 0, 2], since[:, 2, 2]))
    np.testing.assert_allclose(heading - heading[0], np.linspace(0.0, 1.5 * np.pi, FRAMES), atol=0.02)
    assert answers["root"].verdict == answers["hips"].verdict


def test_the_body_is_where_it_was_for_root_and_hips(answers):
    for name in ("hips", "head", "left_foot", "right_hand"):
        for one, other in zip(places(answers["root"], name), places(answers["hips"], name), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
    place, turn = places(answers["hips"], "root")
    assert np.ptp(place, axis=0).max() == np.ptp(turn, axis=0).max() == 0.0


@pytest.mark.parametrize("kinds", [("FREE", "BALL"), ("BALL", "FREE"), ("FREE", "FREE")])
def test_any_of_the_two_may_be_free_in_the_file(walk, answers, kinds):
    """Files in which clips move the hips, the root, or both."""
    body = with_root_bone(sy.bundled("humanoid"))
    joints = [replace(j, kind=sy.Kind[kind]) for j, kind in zip(body.joints, kinds, strict=False)]
    answer = sy.retarget(walk, body.with_joints([*joints, *body.joints[2:]]))
    for name in ("root", "hips", "left_hand"):
        np.testing.assert_allclose(places(answer, name)[0], places(answers["root"], name)[0], atol=1e-6)


@pytest.mark.compiled
def test_on_a_world_the_root_is_on_what_is_below(character):
    """Onto a platform: the bone rises with the ground below the hips, and the hips are where they were."""
    clip = sy.load_motion(Path(__file__).parents[1] / "examples" / "walk.bvh")
    flat = sy.retarget(clip, character)
    path, _ = places(flat, "root")
    way = path[-1] - path[0]
    length, axis = float(np.abs(way).max()), int(np.abs(way).argmax())
    size, center = np.array([50.0, 0.2, 50.0]), 0.5 * (path[0] + path[-1]) + [0.0, 0.1, 0.0]
    center[axis] += 25.0 * np.sign(way[axis])
    world = sy.World({"floor": sy.HalfSpace(normal=(0, 1, 0)), "platform": sy.Box(center=center, size=size)})
    answers = [sy.retarget(clip, character, world=world, root_motion=mode) for mode in ("root", "hips")]
    assert length > 1.0
    assert answers[0].footholds
    bone, hips = (places(answers[0], name)[0] for name in ("root", "hips"))
    np.testing.assert_allclose(hips, places(answers[1], "hips")[0], atol=1e-9)
    assert bone[0, 1] == pytest.approx(0.0, abs=1e-9)
    assert bone[-1, 1] == pytest.approx(0.2, abs=1e-9)
    assert np.abs(np.diff(bone[:, 1])).max() < 0.05
    np.testing.assert_allclose(bone[:, [0, 2]], hips[:, [0, 2]], atol=0.15)


@pytest.mark.compiled
@pytest.mark.parametrize("mode", ["root", "hips", "none"])
def test_rows_of_a_batch_have_the_same_root_motion(character, mode):
    path = Path(__file__).parents[1] / "examples" / "walk.bvh"
    found = sy.batch.Retarget(character, root_motion=mode)({"path": [str(path)]})
    own = sy.retarget(sy.load_motion(path), character, root_motion=mode)
    np.testing.assert_array_equal(np.array(list(map(list, found["q"][0]))), own.motion.q)


def test_without_root_motion_the_body_stays_in_its_place(answers):
    place, turn = places(answers["none"], "hips")
    assert np.ptp(place[:, [0, 2]], axis=0).max() < 0.06
    ahead = turn[:, :, 2]
    assert np.degrees(np.arctan2(np.abs(ahead[:, 0]), ahead[:, 2])).max() < 1.0
    np.testing.assert_allclose(place[:, 1], places(answers["root"], "hips")[0][:, 1], atol=1e-9)


@pytest.mark.parametrize("kind", ["itself", "renamed", "turned", "half as large"])
def test_the_root_of_a_body_that_is_built_alike_is_carried_over(walk, character, kind):
    """Wherever the source has it: not below the hips, and not upright."""
    body = with_root_bone(sy.bundled("humanoid")).with_root("free")
    answer = sy.retarget(walk, body)
    moving = answer.motion.skeleton
    q = answer.motion.q.copy()
    root, hips = moving.q_slice(0), moving.q_slice("hips")
    way = 0.2 * np.sin(np.linspace(0, 5, FRAMES))[:, None] * (1.0, 0.3, -1.0)
    q[:, root.start : root.start + 3] += way
    q[:, hips.start : hips.start + 3] -= sy.Rotation.from_quat(q[:, root.stop - 4 : root.stop]).inv().apply(way)
    clip = sy.Motion(moving, q, 30.0)
    target, size = moving, 1.0
    if kind == "renamed":
        target = sy.Skeleton(
            [replace(j, name=f"b {j.name}", parent=None if k < 0 else k)
             for j, k in zip(moving.joints, moving.parents, strict=True)],
            name="renamed", meters_per_unit=1.0, up="y", forward="z",
        )  # fmt: skip
    if kind == "half as large":
        size = 0.5
        frames = [np.block([[j.rest[:3, :3], 0.5 * j.rest[:3, 3:]], [np.zeros((1, 3)), 1.0]]) for j in moving.joints]
        target = moving.with_joints([replace(j, rest=f) for j, f in zip(moving.joints, frames, strict=True)])
    if kind == "turned":
        target = character
    found = sy.retarget(clip, target).motion
    mine, own = found.frames(), clip.frames()
    named = [(found.skeleton.index(f"b {name}" if kind == "renamed" else name), moving.index(name))
             for name in ("root", "hips", "head", "left_hand", "right_foot")]  # fmt: skip
    for a, b in named:
        np.testing.assert_allclose(mine[:, a, 9:], size * own[:, b, 9:], atol=1e-9)


def test_a_body_without_such_a_bone_stays_in_its_place_too(walk):
    body = sy.bundled("humanoid")
    answers = {mode: sy.retarget(walk, body, root_motion=mode) for mode in ("root", "hips", "none")}
    np.testing.assert_array_equal(answers["root"].motion.q, answers["hips"].motion.q)
    place, turn = places(answers["none"], "hips")
    assert np.ptp(place[:, [0, 2]], axis=0).max() < 1e-9
    assert np.degrees(np.arctan2(np.abs(turn[:, 0, 2]), turn[:, 2, 2])).max() < 1.0
    np.testing.assert_allclose(place[:, 1], places(answers["root"], "hips")[0][:, 1], atol=1e-9)
    assert answers["none"].verdict == answers["root"].verdict
    back = answers["none"].motion.with_root_motion()
    np.testing.assert_allclose(back.positions(), answers["root"].motion.positions(), atol=1e-9)


def test_a_body_in_its_place_is_judged_with_its_way(walk, answers):
    """As a clip of ``Motion.in_place``: the way is in the result, and brings it back."""
    none = answers["none"]
    assert none.verdict == answers["root"].verdict
    assert [one.cause for one in none.findings if one.level == "note"].count("in place") == 1
    np.testing.assert_allclose(
        none.motion.with_root_motion().positions(), answers["root"].motion.positions(), atol=1e-9
    )
    part = none[10:40]
    assert part.verdict == answers["root"][10:40].verdict
    np.testing.assert_allclose(
        part.motion.with_root_motion().positions(), answers["root"].motion.positions()[10:40], atol=1e-9
    )


def below_frames(*above, hips="FREE"):
    """Return a body whose hips hang below bones of names and kinds, from the top one on."""
    body = sy.bundled("humanoid")
    turn = np.eye(4)
    turn[:3, :3] = sy.Rotation.from_euler("x", 90, degrees=True).as_matrix()
    joints = [
        sy.Joint(name, above[row - 1][0] if row else None, rest=np.eye(4) if row else turn, kind=sy.Kind[kind])
        for row, (name, kind) in enumerate(above)
    ]
    first = body.joints[0]
    joints.append(replace(first, parent=above[-1][0], rest=np.linalg.inv(turn) @ first.rest, kind=sy.Kind[hips]))
    return sy.Skeleton([*joints, *body.joints[1:]], name="character", meters_per_unit=1.0, up="y", forward="z")


@pytest.mark.parametrize(
    ("above", "hips", "bone"),
    [
        ([("root", "FIXED"), ("root.001", "FIXED")], "FREE", "root"),
        ([("Armature", "FIXED"), ("Root", "FIXED")], "FREE", "Root"),
        ([("rig:root", "FIXED")], "BALL", "rig:root"),
        ([("frame", "FIXED"), ("root", "BALL")], "BALL", "root"),
        ([("frame", "BALL"), ("root", "BALL")], "FREE", "root"),
        ([("frame", "FREE"), ("root", "BALL")], "BALL", "root"),
    ],
)
def test_the_path_is_on_the_bone_though_no_clip_of_the_file_moves_it(walk, answers, above, hips, bone):
    body = below_frames(*above, hips=hips)
    for mode in ("root", "hips", "none"):
        answer = sy.retarget(walk, body, root_motion=mode)
        skeleton = answer.motion.skeleton
        assert skeleton.joint_names == body.joint_names
        assert {skeleton.joint(name).kind for name in (bone, "hips")} == {sy.Kind.FREE}
        assert skeleton.joint(bone).kind is sy.Kind.FREE
        for name, _ in above[: [name for name, _ in above].index(bone)]:
            own = skeleton.q_slice(name)
            np.testing.assert_array_equal(answer.motion.q[:, own], np.tile(skeleton.rest_q[own], (FRAMES, 1)))
        for joint in ("hips", "left_hand"):
            np.testing.assert_allclose(places(answer, joint)[0], places(answers[mode], joint)[0], atol=1e-9)
        np.testing.assert_allclose(places(answer, bone)[0], places(answers[mode], "root")[0], atol=1e-9)
        assert answer.verdict == answers[mode].verdict
        assert {row for pair in answer.joint_map().values() for row in pair[1:]} <= set(body.joint_names)
        if mode == "none":
            back = answer.motion.with_root_motion().positions()
            for name, other in ((bone, "root"), ("head", "head")):
                np.testing.assert_allclose(back[:, skeleton.index(name)], places(answers["root"], other)[0], atol=1e-9)


def test_an_armature_takes_no_path(walk):
    """The node above the bones of many characters: engines read the path of their hips."""
    answer = sy.retarget(walk, below_frames(("Armature", "FIXED")))
    assert answer.motion.skeleton.joint("Armature").kind is sy.Kind.FIXED
    assert np.ptp(places(answer, "hips")[0], axis=0).max() > 2.0


def test_a_bone_that_its_source_leaves_behind_takes_the_path_again(answers):
    for mode in ("hips", "root"):
        again = sy.retarget(answers[mode].motion, answers[mode].motion.skeleton)
        for name in ("root", "hips", "head"):
            np.testing.assert_allclose(places(again, name)[0], places(answers["root"], name)[0], atol=0.01)
    again = sy.retarget(answers["hips"].motion, answers["hips"].motion.skeleton, root_motion="none")
    assert np.ptp(places(again, "hips")[0][:, [0, 2]], axis=0).max() < 0.06


@pytest.mark.parametrize("ending", ["glb", "bvh", "fbx"])
def test_files_hold_the_root(tmp_path, answers, ending):
    path = tmp_path / f"walk.{ending}"
    sy.save_motion(answers["root"].motion, path)
    back = sy.load_motion(path)
    place, _ = places(answers["root"], "root")
    found = back.frames()[:, back.skeleton.index("root"), 9:]
    np.testing.assert_allclose(found * (back.skeleton.meters_per_unit or 1.0), place, atol=1e-4)


def test_wrong_values_are_refused(walk, character):
    with pytest.raises(InputError, match="root_motion: expected 'root', 'hips' or 'none', got 'feet'"):
        sy.retarget(walk, character, root_motion="feet")
    with pytest.raises(InputError, match="root_motion: expected"):
        sy.batch.Retarget(character, root_motion="feet")
    assert_refused(run("retarget", "a.bvh", "b.glb", "--root-motion", "feet"), "root-motion", code=2)


def test_the_heading_is_kept_while_the_body_rolls():
    """A forward roll: the front of the hips points down, back and up; the root keeps its heading."""
    body = sy.bundled("humanoid").with_root("free")
    q = np.tile(body.rest_q, (FRAMES, 1))
    angle = np.linspace(0.0, 0.5 * np.pi, FRAMES)
    q[:, 3:7] = sy.Rotation.from_euler("x", angle[:, None]).as_quat()
    answer = sy.retarget(sy.Motion(body, q, 30.0), with_root_bone(sy.bundled("humanoid")), hold_feet=False)
    _, turn = places(answer, "root")
    np.testing.assert_allclose(turn, np.broadcast_to(np.eye(3), turn.shape), atol=1e-6)


def test_a_free_root_that_is_added_is_no_bone_of_the_body():
    """Hips that only turn in the file get a free root for their path; they are not moved relative to it."""
    human = sy.bundled("humanoid")
    hips = human.index("hips")
    joints = [replace(joint, kind=sy.Kind.BALL) if row == hips else joint for row, joint in enumerate(human.joints)]
    body = human.with_joints(joints)
    answer = sy.retarget(sy.Motion(human, [human.random_pose(k).q for k in range(3)], 30.0), body)
    assert answer.motion.skeleton.joint_names == body.with_root("free").joint_names
    assert answer.motion.skeleton.joint("hips").kind is sy.Kind.BALL
