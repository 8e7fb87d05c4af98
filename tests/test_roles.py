"""Roles: the parts of a body that names tell, and how they address joints."""

import dataclasses
import pickle

import numpy as np
import pytest

import rigs
import synovia as sy
from conftest import shared_data_folder
from synovia.errors import InputError
from synovia.retargeting.body import Body
from synovia.retargeting.shape import find_roles

MIXAMO = {
    "hips": "mixamorig:Hips", "chest": "mixamorig:Spine", "neck": "mixamorig:Neck", "head": "mixamorig:Head",
    "left_shoulder": "mixamorig:LeftShoulder", "left_upper_arm": "mixamorig:LeftArm",
    "left_lower_arm": "mixamorig:LeftForeArm", "left_hand": "mixamorig:LeftHand",
    "right_upper_arm": "mixamorig:RightArm", "left_upper_leg": "mixamorig:LeftUpLeg",
    "right_upper_leg": "mixamorig:RightUpLeg", "right_lower_leg": "mixamorig:RightLeg",
    "right_foot": "mixamorig:RightFoot", "right_toes": "mixamorig:RightToeBase",
}  # fmt: skip
FILES = {
    "motion/cmu_07_01_walk.bvh": {"hips": "Hips", "left_hand": "LeftHand", "left_elbow": "LeftForeArm"},
    "motion/lafan1_walk1_head.bvh": {"hips": "Hips", "right_hand": "RightHand", "right_knee": "RightLeg"},
    "motion/cmu_jumping_jacks.bvh": {"left_hand": "LeftWrist", "left_shoulder": "LeftCollar", "left_hip": "LeftHip"},
    "motion/rokoko_jesse_dance.bvh": {"left_hand": "LeftHand", "left_index_1": "LeftHandIndex1"},
    "character/mannequiny.glb": {"hips": "pelvis", "left_hand": "hand.l", "left_elbow": "lowerarm.l"},
    "robot/g1_29dof.urdf": {"hips": "pelvis", "left_hand": "left_wrist_yaw_joint", "left_elbow": "left_elbow_joint"},
    "robot/panda.urdf": {},
    "robot/schunk_svh_hand_left.urdf": {},
    "robot/ur5_robot.urdf": {},
}


def mixamo(names=None):
    """The bundled person under the names of a Mixamo character, without roles."""
    body = sy.bundled("humanoid")
    other = {sy.bundled("humanoid").roles[role]: name for role, name in (names or MIXAMO).items()}
    rename = {name: other.get(name, f"bone{row}") for row, name in enumerate(body.joint_names)}
    joints = [
        dataclasses.replace(
            joint, name=rename[joint.name], role=None, parent=rename[body.joint_names[above]] if above >= 0 else None
        )
        for joint, above in zip(body.joints, body.parents, strict=True)
    ]
    return sy.Skeleton(joints, up="y", forward="z")


def test_a_body_with_other_names_is_addressed_by_role():
    body = mixamo()
    for role, name in MIXAMO.items():
        assert body.roles[role] == name
        assert body.joint_names[body.index(role)] == name
    for word, role in (("left_elbow", "left_lower_arm"), ("left_wrist", "left_hand"), ("pelvis", "hips")):
        assert body.index(word) == body.index(role)
        assert body.roles[word] == body.roles[role]
        assert word not in list(body.roles)
    assert pickle.loads(pickle.dumps(body)).roles == body.roles


def test_goals_and_targets_take_roles():
    body = mixamo()
    ik = sy.IK(body, [sy.PositionGoal("left_hand"), sy.PositionGoal("left_elbow")])
    pose = body.random_pose(1)
    solution = ik.solve({"left_wrist": pose.position("left_hand"), "left_lower_arm": pose.position("left_elbow")})
    assert solution.reached
    np.testing.assert_allclose(solution.pose.position(MIXAMO["left_hand"]), pose.position("left_hand"), atol=1e-3)


def test_a_joints_own_name_wins_then_its_body_then_a_role():
    x = (1.0, 0.0, 0.0)
    arm = [
        sy.Joint("LeftArm", None, sy.Kind.BALL),
        sy.Joint("LeftForeArm", "LeftArm", sy.Kind.HINGE, axis=x),
        sy.Joint("LeftHand", "LeftForeArm", sy.Kind.BALL),
    ]
    assert sy.Skeleton(arm).index("left_hand") == 2
    held = sy.Joint("tool", "LeftHand", body="left_hand")
    assert sy.Skeleton([*arm, held]).index("left_hand") == 3
    named = sy.Joint("left_hand", "tool")
    assert sy.Skeleton([*arm, held, named]).index("left_hand") == 4


def test_a_role_that_several_bodies_have_is_refused_with_all_of_them():
    arms = [sy.Joint(f"{who}:LeftHand", None, sy.Kind.BALL) for who in ("anna", "bert")]
    pair = sy.Skeleton(arms)
    with pytest.raises(sy.UnknownNameError, match=r"several joints .*anna:LeftHand.*bert:LeftHand"):
        pair.index("left_hand")
    with pytest.raises(sy.UnknownNameError, match="several joints"):
        pair.index("left_wrist")


def test_a_body_that_is_not_recognized_has_no_roles():
    arm = sy.bundled("arm7")
    assert not arm.roles
    assert "left_hand" not in arm.roles
    with pytest.raises(sy.UnknownNameError, match="no joint named 'left_hand'"):
        arm.index("left_hand")


def test_a_name_that_is_nearly_a_role_is_suggested():
    with pytest.raises(sy.UnknownNameError, match="Did you mean 'left_hand'"):
        mixamo().index("left_hnd")


@pytest.mark.shared_data
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_real_files(name):
    body = sy.load_skeleton(shared_data_folder() / name)
    for role, joint in FILES[name].items():
        assert body.joint_names[body.index(role)] == body.roles[role] == joint
    assert bool(body.roles) == bool(FILES[name])


@pytest.mark.parametrize("name", rigs.RIGS)
def test_rigs_of_common_tools_and_robots(name):
    """Limbs, hands with fingers, neck and head have their roles; other joints that look alike have none."""
    found = rigs.skeleton_of(name).roles
    expected = rigs.roles_of(name)
    assert {role: found.get(role) for role in expected} == expected


LIMBS = [f"{side}_{part}" for side in ("left", "right")
         for part in ("upper_leg", "lower_leg", "foot", "upper_arm", "lower_arm", "hand")]  # fmt: skip


def nameless(body):
    """The body with numbers for names."""
    joints = [
        dataclasses.replace(joint, name=f"joint{row}", role=None, body=None, parent=above if above >= 0 else None)
        for row, (joint, above) in enumerate(zip(body.joints, body.parents, strict=True))
    ]
    return body.with_joints(joints)


@pytest.mark.parametrize("name", ["mixamo", "unreal", "vrm", "smpl", "xsens", "bandai"])
def test_limbs_without_names_are_found_by_their_shape(name):
    body = rigs.skeleton_of(name)
    found, known = find_roles(nameless(body)), find_roles(body)
    assert {role: found[role] for role in LIMBS} == {role: known[role] for role in LIMBS}
    assert abs(found["head"] - known["head"]) <= 1  # the top of the head is a joint in some


def test_knees_tell_what_is_in_front_of_a_robot():
    """Legs of hinges, without toes and names: the knee bends backwards."""
    for bend, left in ((1.0, "a"), (-1.0, "b")):
        joints = [sy.Joint("base", None, sy.Kind.FREE)]
        for name, side in (("a", 1.0), ("b", -1.0)):
            for up, (x, z), (mid, low) in ((0.0, (0.1, 0.0), (-0.4, -0.4)), (0.5, (0.2, 0.5), (-0.25, -0.25))):
                above = "base"
                for k, way in enumerate(((0.0, side * x, z), (0.0, 0.0, mid), (0.0, 0.0, low))):
                    rest = np.eye(4)
                    rest[:3, 3] = way
                    limit = sy.Interval(min(0.0, 2.0 * bend), max(0.0, 2.0 * bend))
                    joints.append(
                        sy.Joint(f"{name}{up}{k}", above, sy.Kind.HINGE, rest, axis=(0.0, 1.0, 0.0), limit=limit)
                    )
                    above = joints[-1].name
        body = sy.Skeleton(joints)
        found = find_roles(nameless(body))
        assert body.joint_names[found["left_upper_leg"]] == f"{left}0.00"
        assert body.joint_names[found["left_hand"]] == f"{left}0.52"


def test_a_scene_of_two_people_is_refused_and_two_rigs_of_one_person_are_not():
    one = sy.bundled("humanoid")
    both = [sy.Joint("scene")]
    for who, x in (("anna", 0.0), ("bert", 2.0)):
        for row, joint in enumerate(one.joints):
            rest = joint.rest.copy()
            rest[0, 3] += x if row == 0 else 0.0
            above = f"{who}:{one.joint_names[one.parents[row]]}" if row else "scene"
            both.append(dataclasses.replace(joint, name=f"{who}:{joint.name}", parent=above, role=None, rest=rest))
    with pytest.raises(InputError, match=r"has 2 people: expected one person, got .*anna:hips.*bert:hips.*joint map"):
        Body.of(sy.Skeleton(both))
    assert Body.of(rigs.skeleton_of("rigify, deforming bones")).roles["left_upper_leg"]


@pytest.mark.shared_data
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name", ["character/mannequiny.glb", "motion/cmu_07_01_walk.bvh", "motion/cmu_jumping_jacks.bvh",
             "motion/pymo_8walk.bvh", "motion/fair_wave_hello.bvh"],
)  # fmt: skip
def test_limbs_of_real_files_are_found_by_their_shape(name):
    body = sy.load_skeleton(shared_data_folder() / name)
    found, known = find_roles(nameless(body)), find_roles(body)
    assert {role: found[role] for role in LIMBS} == {role: known[role] for role in LIMBS}
