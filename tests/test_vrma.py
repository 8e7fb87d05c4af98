"""VRM animations: a clip of a humanoid on a T-pose without turned bones, and back."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError
from synovia.io.gltf.vrm import bone_of
from synovia.io.save import write_motion
from synovia.model import Joint, Kind
from synovia.model.anatomy.names import PERSON
from synovia.model.geometry import matrix_to_quat, quat_to_matrix, rigid

WALK = Path(__file__).parent.parent / "examples" / "walk.bvh"


def humanoid_clip(frames=5):
    body = sy.bundled("humanoid").with_root("free")
    q = np.array([body.random_pose(k).q for k in range(frames)])
    q[:, :3] = np.random.default_rng(1).normal(size=(frames, 3))
    return sy.Motion(body, q, 30.0, name="dance")


def content_of(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[20 : 20 + length])


def test_bones_have_the_names_of_the_format():
    assert [bone_of(role) for role in ("hips", "left_upper_arm", "right_index_1", "left_little_3")] == [
        "hips", "leftUpperArm", "rightIndexProximal", "leftLittleDistal",
    ]  # fmt: skip
    assert [bone_of(f"left_thumb_{k}") for k in (1, 2, 3)] == [
        "leftThumbMetacarpal",
        "leftThumbProximal",
        "leftThumbDistal",
    ]
    assert len({bone_of(role) for role in PERSON}) == len(PERSON)


def test_a_humanoid_goes_out_and_comes_back_with_its_roles(tmp_path):
    motion, path = humanoid_clip(), tmp_path / "dance.vrma"
    sy.save_motion(motion, path, verify=True)
    content = content_of(path)
    assert content["extensions"]["VRMC_vrm_animation"]["specVersion"] == "1.0"
    assert all("rotation" not in node for node in content["nodes"])  # a T-pose in which no bone is turned
    again = sy.load_motion(path)
    assert (again.name, again.fps, len(again)) == ("dance", 30.0, 5)
    roles = [role for role in motion.skeleton.roles if role in PERSON]
    assert set(again.skeleton.roles) == set(roles)
    rest = again.skeleton.rest_pose()
    for side, x in (("left", 1.0), ("right", -1.0)):
        for part, after, aim in (("upper_arm", "lower_arm", (x, 0, 0)), ("upper_leg", "lower_leg", (0, -1, 0))):
            along = rest.position(f"{side}_{after}") - rest.position(f"{side}_{part}")
            np.testing.assert_allclose(along / np.linalg.norm(along), aim, atol=1e-6)
    here = motion.positions()[:, [motion.skeleton.index(role) for role in roles]]
    there = again.positions()[:, [again.skeleton.index(role) for role in roles]]
    own = np.linalg.norm(here[:, :, None] - here[:, None], axis=-1)  # whatever the axes
    np.testing.assert_allclose(np.linalg.norm(there[:, :, None] - there[:, None], axis=-1), own, atol=1e-5)
    sy.save_motion(again, tmp_path / "again.vrma", verify=True)
    third = sy.load_motion(tmp_path / "again.vrma")
    np.testing.assert_allclose(third.positions(), again.positions(), atol=1e-5)


def leaning(up="z"):
    """A body that says nothing of its axes, with arms that hang, and turned joints."""
    turn = quat_to_matrix(np.array([0.5, 0.5, 0.5, 0.5]))
    places = {
        "hips": (0, 0, 90), "spine": (0, 0, 100), "head": (0, 0, 150), "left_upper_arm": (0, 20, 140),
        "left_lower_arm": (0, 25, 110), "left_hand": (5, 25, 85), "right_upper_arm": (0, -20, 140),
        "right_lower_arm": (0, -25, 110), "right_hand": (5, -25, 85), "left_upper_leg": (0, 10, 88),
        "left_lower_leg": (0, 11, 45), "left_foot": (0, 11, 8), "right_upper_leg": (0, -10, 88),
        "right_lower_leg": (0, -11, 45), "right_foot": (0, -11, 8),
    }  # fmt: skip
    above = {"spine": "hips", "head": "spine"}
    for side in ("left", "right"):
        above |= {f"{side}_upper_arm": "spine", f"{side}_upper_leg": "hips"}
        for part, after in (
            ("upper_arm", "lower_arm"),
            ("lower_arm", "hand"),
            ("upper_leg", "lower_leg"),
            ("lower_leg", "foot"),
        ):
            above[f"{side}_{after}"] = f"{side}_{part}"
    names, worlds, joints = list(places), {}, []
    for number, name in enumerate(names):
        worlds[name] = rigid(places[name], turn if number % 2 else np.eye(3))
        parent = names.index(above[name]) if name in above else None
        rest = worlds[name] if parent is None else np.linalg.inv(worlds[above[name]]) @ worlds[name]
        joints.append(Joint(name, parent, Kind.FREE if parent is None else Kind.BALL, rest, role=name))
    return sy.Skeleton(joints, name="leaning", meters_per_unit=0.01, up=up)


@pytest.mark.parametrize("up", ["z", None])
def test_hanging_arms_and_other_axes_become_a_t_pose(tmp_path, up):
    body = leaning(up)
    motion = sy.Motion(body, [body.rest_pose().q, body.random_pose(1).q], 30.0)
    sy.save_motion(motion, tmp_path / "a.vrma", verify=True)
    again = sy.load_motion(tmp_path / "a.vrma")
    assert again[0].position("left_hand")[1] < again.skeleton.rest_pose().position("left_hand")[1] - 0.4
    np.testing.assert_allclose(again[0].position("left_hand"), (0.25, 0.85, 0.05), atol=1e-6)
    rest = again.skeleton.rest_pose()
    assert rest.position("left_hand")[0] > rest.position("left_upper_arm")[0] + 0.5
    np.testing.assert_allclose(rest.position("hips"), (0.0, 0.9, 0.0), atol=1e-6)


def test_what_is_no_standing_humanoid_is_refused(tmp_path):
    arm = sy.bundled("arm7")
    with pytest.raises(InputError, match=r"needs a humanoid.*synovia retarget"):
        sy.save_motion(sy.Motion(arm, [arm.rest_pose().q], 30.0), tmp_path / "a.vrma")
    body = leaning(None)
    joints = [
        Joint(j.name, j.parent, j.kind, rigid(np.roll(j.rest[:3, 3], 1)) if k else j.rest, role=j.role)
        for k, j in enumerate(body.joints)
    ]
    lying = body.with_joints(joints)
    with pytest.raises(InputError, match=r"stand|known"):
        sy.save_motion(sy.Motion(lying, [lying.rest_pose().q], 30.0), tmp_path / "a.vrma")
    assert not (tmp_path / "a.vrma").exists()


def test_what_is_missing_is_told(tmp_path):
    body = leaning()
    kept = [joint for joint in body.joints if joint.name != "right_foot"]
    tail = Joint("tail", 0, Kind.BALL, rigid((0.0, 5.0, 0.0)))
    part = sy.Skeleton([*kept, tail], name="part", up="z")
    notes = write_motion(sy.Motion(part, [part.rest_pose().q, part.random_pose(2).q], 30.0), tmp_path / "a.vrma")
    assert notes[0] == "Bones that every VRM character has are missing: 'rightFoot'."
    assert notes[1] == "Joints without a role are not in the file: 'tail'."
    assert "is unknown: assumed to be " in notes[2]


def test_a_body_that_lies_at_rest_stands_up(tmp_path, monkeypatch):
    """Rest rotations say nothing: the pose is found from the clip, and joints stay where they are."""
    from synovia.cli import main

    walk = sy.load_motion(WALK)
    rng = np.random.default_rng(3)
    body, q, joints = walk.skeleton, np.array(walk.q), []
    for row, joint in enumerate(body.joints):
        at, rest = body.q_slice(row), joint.rest.copy()
        if joint.kind is Kind.BALL:
            turn = rng.normal(size=4)
            rest[:3, :3] = quat_to_matrix(turn / np.linalg.norm(turn))
            q[:, at] = matrix_to_quat(rest[:3, :3].T @ joint.rest[:3, :3] @ quat_to_matrix(q[:, at]))
        joints.append(replace(joint, rest=rest, limit=None))
    lying = sy.Motion(sy.Skeleton(joints, name="lying"), q, walk.fps, name="walk")
    assert np.abs(lying.positions() - walk.positions()).max() < 1e-9
    with pytest.raises(InputError, match="stand_at_rest"):
        sy.save_motion(lying, tmp_path / "lying.vrma")
    standing = sy.skeletons.stand_at_rest(lying)
    assert np.abs(standing.positions() - walk.positions()).max() < 1e-9
    rest = standing.skeleton.rest_pose()
    assert rest.position("head")[1] - rest.position("hips")[1] > 0.4
    monkeypatch.chdir(tmp_path)
    sy.save_motion(lying, "lying.npz")
    assert main(["convert", "lying.npz", "lying.vrma", "--verify"]) == 0
    seen = sy.load_motion("lying.vrma")
    for one, other in (("hips", "left_foot"), ("left_hand", "right_hand"), ("head", "right_foot")):
        own, there = (_apart(motion, one, other) for motion in (walk, seen))
        np.testing.assert_allclose(own, there, atol=1e-5)


def _apart(motion, one, other):
    """Return the distance of two parts of the body over time."""
    rows = [motion.skeleton.index(motion.skeleton.roles[role]) for role in (one, other)]
    return np.linalg.norm(np.diff(motion.positions()[:, rows], axis=1)[:, 0], axis=-1)
