"""The rest pose, the up axis and the sides of a clip: found where the file does not tell them, and told."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from cli_runs import run
from synovia.errors import FormatError, InputError
from synovia.model.geometry import matrix_to_quat
from synovia.model.pose import bind_frames
from synovia.retargeting.body import Body
from synovia.retargeting.bones import bone, trunk
from synovia.retargeting.rest_pose import examined, find_stance, own_up, standing_target, stands

LIMBS = [
    f"{side}_{part}" for side in ("left", "right") for part in ("upper_arm", "lower_arm", "upper_leg", "lower_leg")
]


@pytest.fixture(scope="module")
def humanoid():
    return sy.bundled("humanoid")


@pytest.fixture(scope="module")
def clip(humanoid):
    """A body that walks three steps, arms hanging and swinging; the lower foot stands still."""
    frames = 45
    q = np.tile(humanoid.rest_q, (frames, 1))
    phase = 2.0 * np.pi * np.arange(frames) / 30.0
    turn = Rotation.from_euler("yx", np.stack([0.1 * np.sin(phase), np.full(frames, 0.04)], axis=1))
    hips = humanoid.q_slice("hips").start
    q[:, hips + 3 : hips + 7] = turn.as_quat()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        swing, lift = sign * np.sin(phase), np.maximum(sign * np.cos(phase), 0.0)
        q[:, humanoid.q_slice(f"{side}_upper_leg")] = Rotation.from_euler("x", -0.4 * swing[:, None]).as_quat()
        q[:, humanoid.q_slice(f"{side}_lower_leg")] = (0.1 + 0.6 * lift)[:, None]
        arm = np.column_stack([0.4 * swing, np.full(frames, -1.3 * sign)])
        q[:, humanoid.q_slice(f"{side}_upper_arm")] = Rotation.from_euler("xz", arm).as_quat()
        q[:, humanoid.q_slice(f"{side}_lower_arm")] = (0.5 - 0.2 * swing)[:, None]
    feet = sy.Motion(humanoid, q, 30.0).positions()[:, [humanoid.index(f"{side}_toes") for side in ("left", "right")]]
    lower = np.argmin(feet[:, :, 1], axis=1)
    steps = [feet[t + 1, lower[t]] - feet[t, lower[t]] for t in range(frames - 1)]
    q[1:, hips : hips + 3] -= np.cumsum(steps, axis=0) * (1.0, 0.0, 1.0)
    return sy.Motion(humanoid, q, 30.0, name="steps")


def rerigged(motion, seed, *, turns=None):
    """The same motion in a file whose joints have other frames, so that its zero pose means nothing.

    Args:
        motion: The motion.
        seed: Seed of the orientations.
        turns: World rotation of the root in all frames, (3, 3).
    """
    skeleton, n = motion.skeleton, len(motion.skeleton)
    frames = motion.frames()
    R, P = frames[..., :9].reshape(-1, n, 3, 3), frames[..., 9:]
    if turns is not None:
        R, P = turns @ R, P @ turns.T
    R = R @ Rotation.random(n, random_state=seed).as_matrix()
    stored = Rotation.random(n, random_state=seed + 1).as_matrix()
    joints, values = [], []
    for row, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        above = R[:, parent] if parent >= 0 else np.eye(3)[None]
        offset = np.einsum("tji,tj->ti", above, P[:, row] - (P[:, parent] if parent >= 0 else 0.0))
        rest = np.eye(4)
        rest[:3, :3], rest[:3, 3] = stored[row], offset[0]
        kind = sy.Kind.FREE if parent < 0 else sy.Kind.BALL
        joints.append(sy.Joint(joint.name, parent if parent >= 0 else None, kind, rest, tip=joint.tip))
        if parent < 0:
            values.append((offset - offset[0]) @ stored[row])
        values.append(matrix_to_quat(stored[row].T @ np.swapaxes(above, 1, 2) @ R[:, row]))
    return sy.Motion(sy.Skeleton(joints, name="rerigged"), np.concatenate(values, axis=1), motion.fps, name="again")


def off(source, body, frames, other, result, turn=None):
    """The mean angle between the directions of each limb of two clips, degrees, by limb; the trunk as well."""
    out = {}
    for role in (*LIMBS, "trunk"):
        a = trunk(body, frames) if role == "trunk" else bone(body, role, frames)
        b = trunk(other, result) if role == "trunk" else bone(other, role, result)
        b = b if turn is None else b @ turn.T
        out[role] = float(np.degrees(np.arccos(np.clip(np.sum(a * b, axis=-1), -1.0, 1.0))).mean())
    return out


def compared(motion, answer, turn=None):
    return off(motion, answer.source, motion.frames(), answer.target, answer.motion.frames(), turn)


@pytest.mark.parametrize("seed", [1, 5])
def test_a_zero_pose_that_means_nothing_changes_nothing(humanoid, clip, seed):
    """The rest pose then follows from the motion: limbs point as before, and trunk, feet and hands lie as before."""
    again = rerigged(clip, seed)
    np.testing.assert_allclose(again.positions(), clip.positions(), atol=1e-9)
    answer = sy.retarget(again, humanoid)
    assert (answer.stance.rest.name, answer.stance.up.name) == ("tpose", "y")
    assert answer.stance.rest.certainty > 0.8
    assert {pose.name: pose.certainty < 0.2 for pose in answer.stance.considered}["file"]
    differences = compared(again, answer)
    assert max(differences.values()) < 10.0, differences
    usual = sy.retarget(clip, humanoid)
    for part in ("chest", "left_hand", "right_foot", "head"):
        row = usual.target.roles[part]
        pair = [one.motion.frames()[:, row, :9].reshape(-1, 3, 3) for one in (answer, usual)]
        cosine = (np.einsum("tij,tij->t", *pair) - 1.0) / 2.0
        assert np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).mean() < 26.0, part


def test_a_file_that_stands_is_taken_as_it_is(humanoid, clip):
    answer = sy.retarget(clip, humanoid)
    assert answer.stance.rest.name == "file"
    assert answer.stance.rest.certainty > 0.9
    np.testing.assert_array_equal(answer.source.rest, clip.skeleton.rest_pose().frames)
    assert "rest pose: file (certainty" in answer.report()


def test_a_t_pose_in_the_first_frame_is_taken(humanoid, clip):
    """As before recordings; the zero pose means nothing."""
    q = np.concatenate([humanoid.rest_q[None], clip.q])
    assert sy.retarget(rerigged(sy.Motion(humanoid, q, 30.0), 3), humanoid).stance.rest.name == "first"


@pytest.mark.parametrize("axis", ["x", "z"])
def test_another_axis_points_up(humanoid, clip, axis):
    """Rest pose and clip need not agree on it either."""
    turn = Rotation.from_euler("x", 90, degrees=True) if axis == "z" else Rotation.from_euler("z", -90, degrees=True)
    answer = sy.retarget(rerigged(clip, 2, turns=turn.as_matrix()), humanoid)
    assert answer.stance.up.name == axis
    assert answer.stance.up.certainty > 0.9 or axis == "x"  # a body along x may lie on its side
    level = answer.motion.positions()[:, [answer.target.roles["neck"], answer.target.roles["hips"]], 1]
    assert (level[:, 0] - level[:, 1] > 0.4).all()
    assert f"up: {axis} (" in answer.report()


def test_a_file_that_lies_while_its_clip_stands(humanoid, clip):
    """A rest pose with y up and a clip with z up, as some exporters write it."""
    frames = clip.frames()
    turn = Rotation.from_euler("x", 90, degrees=True)
    q = clip.q.copy()
    hips = humanoid.q_slice("hips")
    rest = humanoid.rest_pose().position("hips")
    q[:, hips.start : hips.start + 3] = turn.apply(frames[:, humanoid.index("hips"), 9:]) - rest
    q[:, hips.start + 3 : hips.stop] = (turn * Rotation.from_quat(q[:, hips.start + 3 : hips.stop])).as_quat()
    bare = [
        dataclasses.replace(joint, parent=parent if parent >= 0 else None)
        for joint, parent in zip(humanoid.joints, humanoid.parents, strict=True)
    ]
    motion = sy.Motion(sy.Skeleton(bare, name="lies"), q, 30.0)
    answer = sy.retarget(motion, humanoid, hold_feet=False)
    assert (answer.stance.rest.name, answer.stance.up.name) == ("file", "z")
    differences = compared(motion, answer, turn.as_matrix())
    assert max(differences.values()) < 1.0, differences


def test_a_body_upside_down_is_a_question(humanoid, clip):
    """The axis may point down, or the body may stand on its hands: the user tells which."""
    over = rerigged(clip, 4, turns=Rotation.from_euler("x", 180, degrees=True).as_matrix())
    with pytest.raises(InputError, match=r'head is below the feet along y in 100 %.*up="-y" \(--up=-y\)'):
        sy.retarget(over, humanoid)
    down = sy.retarget(over, humanoid, up="-y")
    assert down.stance.up.given
    height = down.motion.positions()[..., 1]
    assert (height[:, down.target.roles["head"]] > height[:, down.target.roles["hips"]]).all()
    hands = sy.retarget(over, humanoid, up="y", hold_feet=False).motion.positions()[..., 1]
    assert (hands[:, down.target.roles["head"]] < hands[:, down.target.roles["hips"]]).all()
    with pytest.raises(InputError, match="up: expected x, y, z"):
        sy.retarget(over, humanoid, up="w")


def test_a_tilted_world_is_set_upright(humanoid, clip):
    turn = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    answer = sy.retarget(rerigged(clip, 6, turns=turn), humanoid)
    assert answer.stance.up.certainty <= 0.5
    np.testing.assert_allclose(answer.stance.up.vector, turn[:, 1], atol=0.15)


@pytest.mark.parametrize(("axis", "angle"), [("x", 45), ("z", -40), ("x", -25)])
def test_a_tilted_world_is_corrected_told_and_questioned(clip, humanoid, axis, angle):
    """Also if the file stands along an axis: nobody leans so without falling."""
    turn = Rotation.from_euler(axis, angle, degrees=True)
    q, hips = clip.q.copy(), humanoid.q_slice("hips")
    rest = humanoid.rest_pose().position("hips")
    q[:, hips.start : hips.start + 3] = turn.apply(q[:, hips.start : hips.start + 3] + rest) - rest
    q[:, hips.start + 3 : hips.stop] = (turn * Rotation.from_quat(q[:, hips.start + 3 : hips.stop])).as_quat()
    tilted = sy.Motion(humanoid, q, 30.0)
    answer = sy.retarget(tilted, humanoid)
    up = answer.stance.up
    np.testing.assert_allclose(up.vector, turn.as_matrix()[:, 1], atol=0.1)
    assert up.axis == "y"
    assert abs(up.tilt - abs(angle)) < 5.0
    assert f"tilted by {up.tilt:.0f}° from y" in answer.report()
    places = answer.motion.positions()
    trunk = places[:, humanoid.index("head")] - places[:, humanoid.index("hips")]
    assert (trunk[:, 1] > 0.95 * np.linalg.norm(trunk, axis=1)).all()
    assert answer.verdict == "look"
    assert [one.cause for one in answer.judgement.warnings] == ["up axis"]
    kept = sy.retarget(tilted, humanoid, up="y", hold_feet=False).motion
    assert any("leans by" in one.text for one in sy.judge(kept).warnings)


def legs_of_one_bone(x=0.5):
    """A body like a bean: legs of one bone each, joined to the hips by a bone that goes aside and a little upwards."""
    joints = [sy.Joint("root", None, sy.Kind.FREE)]

    def add(name, parent, *at):
        rest = np.eye(4)
        rest[:3, 3] = at
        joints.append(sy.Joint(name, parent, sy.Kind.BALL, rest))

    add("body", "root", 0.0, 0.2, 0.0)
    add("hat", "body", 0.0, 1.6, 0.0)
    for side, sign in (("L", 1.0), ("R", -1.0)):
        add(f"hand_{side}", "body", sign * 0.8, 0.6, 0.0)
        add(f"hip_{side}", "root", 0.0, 0.2, 0.0)
        add(f"leg_{side}", f"hip_{side}", sign * x, 0.15, 0.0)
    return sy.Skeleton(joints, name="bean", up="y", forward="z")


def test_a_body_that_leans_while_it_walks_does_not_tilt_the_world(clip, humanoid):
    """Its whole body leans ahead by 22 degrees in all frames, as a runner's; the floor stays level."""
    q, at = clip.q.copy(), humanoid.q_slice("hips")
    lean = Rotation.from_euler("x", 22.0, degrees=True)
    q[:, at.stop - 4 : at.stop] = (lean * Rotation.from_quat(q[:, at.stop - 4 : at.stop])).as_quat()
    q[:, at.start : at.start + 3] *= (1.0, 1.0, 3.0)
    places = sy.Motion(humanoid, q, 30.0).positions()
    q[:, at.start + 1] -= places[..., 1].min(1) - places[0, :, 1].min()
    answer = sy.retarget(sy.Motion(humanoid, q, 30.0), humanoid, hold_feet=False)
    assert answer.stance.up.tilt == 0.0
    assert not any(one.cause == "up axis" and "source" in one.text for one in answer.findings)
    assert answer.judgement.trunk_tilt < np.radians(4.0)


def test_legs_of_one_bone_do_not_tell_that_a_body_is_upside_down(clip, humanoid):
    bean = legs_of_one_bone()
    answer = sy.retarget(clip, bean)
    assert answer.verdict != "failed"
    places = answer.motion.positions()
    assert (places[:, bean.index("hat"), 1] > places[:, bean.index("hip_L"), 1] + 1.0).all()
    still = sy.Motion(bean, np.tile(bean.rest_q, (30, 1)), 30.0)
    back = sy.retarget(still, humanoid)
    assert back.stance.up.name == "y"
    places = back.motion.positions()
    assert (places[:, humanoid.index("head"), 1] > places[:, humanoid.index("hips"), 1]).all()


@pytest.mark.shared_data
def test_a_real_body_with_legs_of_one_bone_stands(shared_data, clip, humanoid):
    path = shared_data / "character" / "greenman.glb"
    answer = sy.retarget(clip, sy.load_motion(path))
    places, body = answer.motion.positions(), answer.motion.skeleton
    assert (places[:, body.index("socket_hat"), 1] > places[:, body.index("hip_L"), 1] + 1.0).all()
    assert sy.retarget(sy.load_motion(path, "2_move"), humanoid, hold_feet=False).stance.up.name == "y"


def test_a_body_that_crawls_does_not_stand_along_its_way(humanoid, clip):
    """It goes far along the axis to which its trunk points; what its file stores tells the rest."""
    q = clip.q.copy()
    hips = humanoid.q_slice("hips")
    lean = Rotation.from_euler("x", 80, degrees=True)
    q[:, hips.start + 3 : hips.stop] = (lean * Rotation.from_quat(q[:, hips.start + 3 : hips.stop])).as_quat()
    q[:, hips.start : hips.start + 3] = np.linspace((0.0, -0.5, 0.0), (0.0, -0.5, 3.0), len(q))
    bare = [
        dataclasses.replace(joint, parent=parent if parent >= 0 else None)
        for joint, parent in zip(humanoid.joints, humanoid.parents, strict=True)
    ]
    crawl = sy.Motion(sy.Skeleton(bare, name="crawls"), q, 30.0)
    stance = sy.retarget(crawl, humanoid, hold_feet=False).stance
    assert (stance.rest.name, stance.up.name) == ("file", "y")
    alone = sy.retarget(rerigged(crawl, 11), humanoid, hold_feet=False).stance
    assert min(alone.rest.certainty, alone.up.certainty) < 0.5


def test_the_user_names_the_rest_pose(humanoid, clip, tmp_path):
    again = rerigged(clip, 7)
    frame = 8  # one leg stands
    path = tmp_path / "rest.json"
    sy.save_pose(again.pose(frame), path)
    cases = {"file": "file", "first": "first", "tpose": "tpose", frame: f"frame {frame}", path: "rest.json"}
    for rest, name in cases.items():
        assert find_stance(again, Body.of(again.skeleton), rest).rest.name == name
    by_frame, by_pose = (
        sy.retarget(again, humanoid, rest=rest, hold_feet=False) for rest in (frame, again.pose(frame))
    )
    for answer in (by_frame, by_pose, sy.retarget(again, humanoid, rest=str(path), hold_feet=False)):
        differences = compared(again, answer)
        assert max(value for role, value in differences.items() if role in LIMBS) < 15.0, differences
    for rest, message in (
        ("bind", "has no skin"), ("standing", 'expected "file", "bind"'), (1000, "expected 0 to 44"), (2.5, "expected"),
        (sy.bundled("arm7").rest_pose(), "expected a pose of rerigged"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            sy.retarget(again, humanoid, rest=rest)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(FormatError, match="schema"):
        sy.retarget(again, humanoid, rest=path)


def test_left_and_right_are_corrected_alike(humanoid, clip):
    """Legs spread by 14° and 16° at rest, on the two sides of any threshold: no leg stays behind."""
    joints = []
    for joint, parent in zip(humanoid.joints, humanoid.parents, strict=True):
        rest = joint.rest.copy()
        if joint.role in ("left_upper_leg", "right_upper_leg"):
            spread = 14.0 if joint.role.startswith("left") else -16.0
            rest[:3, :3] = Rotation.from_euler("z", spread, degrees=True).as_matrix() @ rest[:3, :3]
        joints.append(dataclasses.replace(joint, rest=rest, limit=None, parent=parent if parent >= 0 else None))
    spread = sy.Skeleton(joints, up="y", forward="z", meters_per_unit=1.0, name="spread")
    answer = sy.retarget(clip, spread, hold_feet=False)
    differences = compared(clip, answer)
    assert max(differences[role] for role in LIMBS) < 1e-3, differences
    angles = {part.role: np.degrees(part.angle) for part in answer.parts}
    assert angles["left_upper_leg"] == pytest.approx(14.0, abs=1e-6)
    assert angles["right_upper_leg"] == pytest.approx(16.0, abs=1e-6)


def test_joint_centres_of_hinges_are_where_their_axes_meet():
    """A robot's hip: the first hinge is beside the leg, and the thigh hangs straight below the others."""

    def hinge(name, parent, axis, *offset):
        rest = np.eye(4)
        rest[:3, 3] = offset
        return sy.Joint(name, parent, sy.Kind.HINGE, rest, axis=axis)

    joints = [sy.Joint("pelvis")]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        joints += [
            hinge(f"{side}_hip_pitch_joint", "pelvis", (0, 1, 0), 0.0, 0.06 * sign, -0.1),
            hinge(f"{side}_hip_roll_joint", f"{side}_hip_pitch_joint", (1, 0, 0), 0.02, 0.05 * sign, 0.0),
            hinge(f"{side}_hip_yaw_joint", f"{side}_hip_roll_joint", (0, 0, 1), -0.02, 0.0, -0.12),
            hinge(f"{side}_knee_joint", f"{side}_hip_yaw_joint", (0, 1, 0), 0.0, 0.0, -0.2),
            hinge(f"{side}_ankle_pitch_joint", f"{side}_knee_joint", (0, 1, 0), 0.0, 0.0, -0.3),
        ]
    body = Body.of(sy.Skeleton(joints, up="z", forward="x"))
    np.testing.assert_allclose(body.rest_position("left_upper_leg"), (0.0, 0.11, -0.1), atol=1e-5)
    np.testing.assert_allclose(bone(body, "left_upper_leg", body.rest), (0.0, 0.0, -1.0), atol=1e-4)
    np.testing.assert_allclose(body.rest_position("left_lower_leg"), (0.0, 0.11, -0.42), atol=1e-9)


def crouching(motion, lean=50.0):
    """The clip with its trunk pitched forward and its legs bent in every frame; the head looks ahead."""
    body, q = motion.skeleton, motion.q.copy()
    more = {"hips": lean, "left_upper_leg": -lean - 50.0, "right_upper_leg": -lean - 50.0, "neck": -lean}
    for name, angle in more.items():
        at = slice(body.q_slice(name).stop - 4, body.q_slice(name).stop)
        own = Rotation.from_quat(q[:, at])
        q[:, at] = (own * Rotation.from_euler("x", angle, degrees=True)).as_quat()
    for side in ("left", "right"):
        q[:, body.q_slice(f"{side}_lower_leg")] += np.radians(80.0)
    return sy.Motion(body, q, motion.fps, name="crouching")


@pytest.mark.parametrize("seed", [2, 9])
def test_a_rest_pose_is_chosen_by_its_result_where_none_is_certain(humanoid, clip, seed):
    """The zero pose means nothing, and the body never stands."""
    answer = sy.retarget(rerigged(crouching(clip), seed), humanoid, hold_feet=False)
    assert answer.stance.rest.certainty < 0.5
    assert len(answer.stance.tried) > 1
    assert answer.judgement.trunk_tilt < np.radians(8.0)
    told = next(one for one in answer.findings if one.cause == "rest pose" and one.limb == "body")
    assert "--rest" in told.text
    assert answer.stance.rest.name in told.text
    assert "the best result of" in answer.report()
    certain = sy.retarget(clip, humanoid, hold_feet=False)
    assert certain.stance.tried == ()
    assert not any("--rest" in one.text for one in certain.findings)
    given = sy.retarget(rerigged(crouching(clip), seed), humanoid, hold_feet=False, rest="first")
    assert given.stance.tried == ()


@pytest.mark.parametrize("angle", [-12.0, 12.0])
def test_trunks_that_lean_at_rest_are_aligned(humanoid, clip, angle):
    """Hips and shoulders of the source are farther ahead than those of the target; its trunk still leads alike."""
    joints = []
    for joint, parent in zip(humanoid.joints, humanoid.parents, strict=True):
        rest = joint.rest.copy()
        if joint.name in ("spine", "chest"):
            rest[:3, 3] = Rotation.from_euler("x", angle, degrees=True).apply(rest[:3, 3])
        joints.append(dataclasses.replace(joint, rest=rest, parent=parent if parent >= 0 else None))
    other = sy.Skeleton(joints, name="leaning", up="y", forward="z")
    assert sy.retarget(sy.Motion(other, clip.q, clip.fps), humanoid, hold_feet=False).judgement.trunk_tilt < np.radians(
        4.0
    )
    assert sy.retarget(clip, other, hold_feet=False).judgement.trunk_tilt < np.radians(4.0)


def test_exchanged_sides_are_told(humanoid, clip):
    names = {part: part for part in sy.retarget(clip, humanoid).joint_map()}
    other = {"left": "right", "right": "left"}
    swapped = {
        part: ("_".join([other.get(part.split("_")[0], part.split("_")[0]), *part.split("_")[1:]]), part)
        for part in names
    }
    answer = sy.retarget(clip, humanoid, swapped, hold_feet=False)
    assert answer.stance.exchanged
    assert answer.stance.rest.certainty < 0.5
    assert "left and right seem to be exchanged" in answer.report()
    assert not sy.retarget(clip, humanoid, hold_feet=False).stance.exchanged


def test_a_path_in_another_unit_than_the_bones_is_told(humanoid, clip):
    q = clip.q.copy()
    q[:, :3] *= 100.0
    plain = sy.retarget(clip, humanoid, hold_feet=False)
    answer = sy.retarget(sy.Motion(humanoid, q, 30.0), humanoid, hold_feet=False)
    assert 0.7 < plain.stance.path_scale < 1.4
    assert answer.stance.path_scale == pytest.approx(plain.stance.path_scale / 100.0, rel=1e-6)
    assert "the path fits the steps of the legs if it is multiplied by 0.0" in answer.report()
    still = sy.Motion(humanoid, np.tile(clip.q[:1], (30, 1)), 30.0)
    assert sy.retarget(still, humanoid, hold_feet=False).stance.path_scale is None


def skinned(humanoid, path, seed):
    """A glTF file of the body: bound in its T-pose, with nodes that hold another pose."""
    rest = humanoid.rest_pose().frames
    R, P = rest[:, :9].reshape(-1, 3, 3), rest[:, 9:]
    node_R = R.copy()
    turn = Rotation.random(len(humanoid), random_state=seed).as_matrix()
    nodes, matrices = [], []
    for row, (joint, parent) in enumerate(zip(humanoid.joints, humanoid.parents, strict=True)):
        node_R[row] = (node_R[parent] if parent >= 0 else np.eye(3)) @ (turn[row] if parent >= 0 else np.eye(3))
        offset = P[row] - (P[parent] if parent >= 0 else 0.0)
        local = matrix_to_quat((node_R[parent].T if parent >= 0 else np.eye(3)) @ node_R[row])
        nodes.append({"name": joint.name, "translation": offset.tolist(), "rotation": local.tolist()})
        if humanoid.children[row]:
            nodes[-1]["children"] = list(humanoid.children[row])
        inverse = np.eye(4)
        inverse[:3, :3], inverse[:3, 3] = R[row].T, -R[row].T @ P[row]
        matrices.append(inverse.T.ravel())
    data = np.array(matrices, "<f4").tobytes()
    path.with_suffix(".bin").write_bytes(data)
    content = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes,
        "skins": [{"joints": list(range(len(nodes))), "inverseBindMatrices": 0}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": len(nodes), "type": "MAT4"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(data)}],
        "buffers": [{"byteLength": len(data), "uri": path.with_suffix(".bin").name}],
    }  # fmt: skip
    path.write_text(json.dumps(content), encoding="utf-8")


def test_the_bind_pose_of_a_skin(humanoid, clip, tmp_path):
    """Nodes may hold any pose; the inverse bind matrices tell the one in which the skin was bound."""
    path = tmp_path / "body.gltf"
    skinned(humanoid, path, 8)
    body = sy.load_skeleton(path)
    np.testing.assert_allclose(bind_frames(body.joints, body.parents), humanoid.rest_pose().frames, atol=1e-6)
    target, rest = standing_target(Body.of(body.with_root("free")))
    assert rest.name == "bind"
    assert examined(target, "file", target.skeleton.rest_pose().frames, own_up(target, target.rest)).certainty < 0.2
    answer = sy.retarget(clip, body, hold_feet=False)
    assert "rest pose of the target: bind" in answer.report()
    differences = compared(clip, answer)
    assert max(differences[role] for role in LIMBS) < 1.0, differences
    moved = sy.Motion(body, np.tile(body.rest_q, (2, 1)), 30.0)
    assert find_stance(moved, Body.of(body), "bind").rest.name == "bind"
    sy.save_motion(moved, tmp_path / "moved.npz")
    again = sy.load_motion(tmp_path / "moved.npz").skeleton
    np.testing.assert_allclose(
        bind_frames(again.joints, again.parents), bind_frames(body.joints, body.parents), atol=1e-12
    )
    path.with_suffix(".bin").unlink()  # a skeleton alone does not need it
    assert all(joint.bind is None for joint in sy.load_skeleton(path).joints)


def test_a_target_whose_zero_pose_means_nothing(humanoid, clip):
    """A clip of it shows its rest pose; its bones alone show where limbs point, but not how they are turned."""
    again = rerigged(clip, 10)
    assert stands(humanoid)
    assert not stands(again.skeleton)
    shown = sy.retarget(clip, again, hold_feet=False)
    assert (shown.target_rest.name, shown.target_rest.certainty > 0.8) == ("tpose", True)
    differences = compared(clip, shown)
    assert max(differences.values()) < 8.0, differences
    same = sy.retarget(again, again, hold_feet=False)
    rows = [part.target for part in same.parts]
    np.testing.assert_allclose(same.motion.frames()[:, rows, :9], again.frames()[:, rows, :9], atol=1e-6)
    lined = in_line(humanoid)
    alone = sy.retarget(clip, lined, hold_feet=False)
    assert (alone.target_rest.name, 0.5 < alone.target_rest.certainty < 0.8) == ("tpose", True)
    assert "the twist of limbs about their bones is a guess" in alone.report()
    differences = compared(clip, alone)
    assert max(differences[role] for role in LIMBS) < 1e-3, differences
    assert differences["trunk"] < 10.0


def in_line(humanoid):
    """The body with joint frames whose x axis is the bone: at zero, limbs and trunk lie along x."""
    places = humanoid.rest_pose().positions
    turns = np.tile(np.eye(3), (len(humanoid), 1, 1))
    for row, children in enumerate(humanoid.children):
        if children:
            x = places[list(children)].mean(0) - places[row] if len(children) == 1 else np.array([0.0, 1.0, 0.0])
            turns[row] = Rotation.align_vectors(x[None], [[1.0, 0.0, 0.0]])[0].as_matrix()
    joints = []
    for row, (joint, parent) in enumerate(zip(humanoid.joints, humanoid.parents, strict=True)):
        rest = np.eye(4)
        rest[:3, 3] = turns[parent].T @ (places[row] - places[parent]) if parent >= 0 else places[row]
        joints.append(sy.Joint(joint.name, parent if parent >= 0 else None, sy.Kind.BALL, rest, tip=joint.tip))
    return sy.Skeleton(joints, name="in line")


def test_arms_that_point_ahead_on_a_trunk_that_holds_the_hips():
    """A robot whose root is its torso, with the hips on a hinge below it, and arms ahead at zero (Romeo)."""
    joints = [sy.Joint("torso", None, sy.Kind.FREE)]

    def add(name, above, way, kind=sy.Kind.BALL):
        rest = np.eye(4)
        rest[:3, 3] = way
        joints.append(sy.Joint(name, above, kind, rest, axis=(0, 0, 1)))

    add("waist", "torso", (0.0, 0.0, -0.2), sy.Kind.HINGE)
    add("neck", "torso", (0.0, 0.0, 0.2))
    add("head", "neck", (0.0, 0.0, 0.1))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        parts = [("upper_leg", (0.0, 0.1, -0.1)), ("lower_leg", (0.0, 0.0, -0.3)), ("foot", (0.0, 0.0, -0.3)),
                 ("toes", (0.1, 0.0, -0.04)), ("upper_arm", (0.0, 0.2, 0.15)), ("lower_arm", (0.25, 0.0, 0.0)),
                 ("hand", (0.25, 0.0, 0.0)), ("hand_end", (0.1, 0.0, 0.0))]  # fmt: skip
        above = ""
        for part, (x, y, z) in parts:
            first = {"upper_leg": "waist", "upper_arm": "torso"}.get(part, above)
            above = f"{side}_{part}"
            add(above, first, (x, sign * y, z))
    body = sy.Skeleton(joints, up="z", forward="x")
    assert body.roles["hips"] == "waist"
    target, rest = standing_target(Body.of(body))
    assert rest.name == "tpose"
    assert rest.certainty > 0.6
    np.testing.assert_allclose(bone(target, "left_lower_arm", rest.frames), (0.0, 1.0, 0.0), atol=1e-9)
    np.testing.assert_allclose(target.rest_position("head") - target.rest_position("hips"), (0.0, 0.0, 0.5), atol=1e-9)


def test_command_line(humanoid, clip, tmp_path):
    source = tmp_path / "clip.npz"
    sy.save_motion(rerigged(clip, 9), source)
    ran = run("retarget", source, "humanoid", "--json")
    assert ran.data["rest"]["pose"] == "tpose"
    assert ran.data["rest"]["certainty"] > 0.8
    assert ran.data["rest"]["considered"]["file"] < 0.2
    assert (ran.data["up"]["axis"], ran.data["facing"], ran.data["sides_exchanged"]) == ("y", "z", False)
    for options, name in ((("--rest", "3"), "frame 3"), (("--rest", "first", "--up", "y"), "first")):
        assert run("retarget", source, "humanoid", *options, "--json").data["rest"]["pose"] == name
    refused = run("retarget", source, "humanoid", "--rest", "standing")
    assert refused.code == 2
    assert "expected file, bind, first, tpose" in refused.err
    assert "rest pose: tpose (certainty" in run("retarget", source, "humanoid").out
    onto = run("retarget", source, source, "--json")  # the clip in the target's file shows its rest pose
    assert onto.data["target_rest"]["pose"] == "tpose"
    assert onto.data["target_rest"]["certainty"] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("target", ["humanoid", "character/mannequiny.glb", "robot/g1_29dof.urdf"])
@pytest.mark.parametrize(
    "source", ["lafan1_walk1_head", "bandai2_walk_turn", "rokoko_jesse_dance", "cmu_jumping_jacks"]
)
def test_real_clips_stay_upright(shared_data, source, target):
    motion = sy.load_motion(shared_data / "motion" / f"{source}.bvh")
    skeleton = sy.bundled(target) if target == "humanoid" else sy.load_skeleton(shared_data / target)
    answer = sy.retarget(motion, skeleton)
    B = [body.basis for body in (answer.source, answer.target)]
    differences = compared(motion, answer, B[0] @ B[1].T)
    assert differences["trunk"] < 10.0
    assert np.mean([differences[role] for role in LIMBS]) < 12.0
