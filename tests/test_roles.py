"""Roles: the parts of a body that names tell, and how they address joints."""

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import rigs
import synovia as sy
from cli_runs import run
from shared_files import shared_data_folder
from synovia.errors import InputError
from synovia.files.roles import with_roles_of
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body
from synovia.retargeting.judging import sides_of_clip

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
    with pytest.raises(sy.errors.UnknownNameError, match=r"several joints .*anna:LeftHand.*bert:LeftHand"):
        pair.index("left_hand")
    with pytest.raises(sy.errors.UnknownNameError, match="several joints"):
        pair.index("left_wrist")


def test_a_body_that_is_not_recognized_has_no_roles():
    arm = sy.bundled("arm7")
    assert not arm.roles
    assert "left_hand" not in arm.roles
    with pytest.raises(sy.errors.UnknownNameError, match="no joint named 'left_hand'"):
        arm.index("left_hand")


def test_a_name_that_is_nearly_a_role_is_suggested():
    with pytest.raises(sy.errors.UnknownNameError, match="Did you mean 'left_hand'"):
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
    found, known = nameless(body).role_rows, body.role_rows
    assert {role: found[role] for role in LIMBS} == {role: known[role] for role in LIMBS}
    assert abs(found["head"] - known["head"]) <= 1  # the top of the head is a joint in some


def posed(body, *, arms=1.0, hang=0.0, size=1.0, turn=None, up="y"):
    """A body with longer arms that hang by some degrees, of another size, turned in its world."""
    joints = []
    for row, (joint, above) in enumerate(zip(body.joints, body.parents, strict=True)):
        rest, limb = np.array(joint.rest), ROLES_OF_ROW.get((id(body), row), "")
        rest[:3, 3] *= size * (arms if limb.endswith(("lower_arm", "hand")) else 1.0)
        if limb.endswith("upper_arm"):
            side = -1.0 if limb.startswith("left") else 1.0
            rest[:3, :3] = sy.Rotation.from_euler("z", side * hang, degrees=True).as_matrix() @ rest[:3, :3]
        if above < 0 and turn is not None:
            rest[:3] = turn.as_matrix() @ rest[:3]
        parent = above if above >= 0 else None
        joints.append(
            dataclasses.replace(joint, rest=rest, role=None, body=None, name=f"bone{row}", bind=None, parent=parent)
        )
    return sy.Skeleton(joints, up=up)


EXAMPLES = Path(__file__).parent.parent / "examples"
BODIES = {name: sy.bundled(name) for name in ("humanoid", "humanoid_hands")} | {
    "character": sy.load_skeleton(EXAMPLES / "character.glb"),
    "walk": sy.load_motion(EXAMPLES / "walk.bvh").skeleton,
}
ROLES_OF_ROW = {(id(body), row): role for body in BODIES.values() for role, row in body.role_rows.items()}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("arms", [0.8, 1.0, 1.5])
@pytest.mark.parametrize("hang", [0.0, 45.0, 80.0])
@pytest.mark.parametrize("up", ["y", "z", "-x", None])
def test_legs_are_the_limbs_that_stand_however_long_the_arms_are(name, arms, hang, up):
    turns = {"z": ("x", 90.0), "-x": ("z", 90.0), None: ("z", 90.0)}
    turn = sy.Rotation.from_euler(*turns[up], degrees=True) if up in turns else None
    body = BODIES[name]
    found = posed(body, arms=arms, hang=hang, size=100.0 if arms > 1.0 else 1.0, turn=turn, up=up).role_rows
    parts = [f"{part}_{limb}" for limb in ("leg", "arm") for part in ("upper", "lower")]
    sided = [f"{side}_{part}" for side in ("left", "right") for part in (*parts, "foot", "hand")]
    known = {role: body.role_rows[role] for role in ("hips", "head", *sided)}
    if up in ("-x", None) and found["left_upper_leg"] != known["left_upper_leg"]:
        swap = {"left": "right", "right": "left"}  # such a file does not tell where the body faces
        known = {"_".join([swap.get(role.split("_")[0], role.split("_")[0]), *role.split("_")[1:]]): row
                 for role, row in known.items()}  # fmt: skip
    assert {role: found.get(role) for role in known} == known


def test_a_character_without_names_walks_upright():
    walk = sy.load_motion(EXAMPLES / "walk.bvh")
    answer = sy.retarget(walk, posed(BODIES["character"]))
    assert answer.verdict == "good"
    head, hips = (answer.motion.positions()[:, answer.target.roles[role], 1] for role in ("head", "hips"))
    assert (head > hips).all()


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
        found = nameless(body).role_rows
        assert body.joint_names[found["left_upper_leg"]] == f"{left}0.00"
        assert body.joint_names[found["left_hand"]] == f"{left}0.52"


def arm_of_hinges(*hinges):
    """A body of hinges: legs of four, and arms of ``hinges``: name, way from the one before, axis."""
    joints = [sy.Joint("base", None, sy.Kind.FREE)]
    legs = (("hip", (0.0, 0.1, 0.0), (0, 0, 1)), ("knee", (0.0, 0.0, -0.4), (0, 1, 0)),
            ("ankle", (0.0, 0.0, -0.4), (0, 1, 0)), ("sole", (0.0, 0.0, -0.1), (1, 0, 0)))  # fmt: skip
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for parts in (legs, hinges):
            above = "base"
            for name, (x, y, z), axis in parts:
                rest = np.eye(4)
                rest[:3, 3] = x, sign * y, z
                limit = sy.Interval(-0.1 if name == "knee" else -2.0, 2.0)
                joints.append(sy.Joint(f"{side}_{name}", above, sy.Kind.HINGE, rest, axis=axis, limit=limit))
                above = joints[-1].name
    return sy.Skeleton(joints, name="hinges", up="z")


SHOULDER = (("pitch", (0.0, 0.2, 0.5), (0, 1, 0)), ("roll", (0.0, 0.05, 0.0), (1, 0, 0)))


@pytest.mark.parametrize(
    ("hinges", "upper", "lower", "hand"),
    [
        ((*SHOULDER, ("yaw", (0, 0, -0.15), (0, 0, 1)), ("elbow", (0, 0, -0.13), (0, 1, 0)),
          ("twist", (0, 0, -0.12), (0, 0, 1)), ("wrist", (0, 0, -0.1), (1, 0, 0)), ("last", (0, 0, -0.02), (0, 1, 0))),
         "yaw", "elbow", "last"),  # the forearm in two pieces
        ((*SHOULDER, ("yaw", (0, 0, -0.1), (0, 0, 1)), ("elbow", (0, 0, -0.1), (0, 1, 0)),
          ("twist", (0.15, 0, 0), (1, 0, 0)), ("tip", (0.1, 0, 0), (0, 0, 1))), "yaw", "elbow", "tip"),  # bent at rest
        ((*SHOULDER, ("twist", (0, 0.1, 0), (0, 1, 0)), ("elbow", (0, 0.15, 0), (0, 0, 1)),
          ("hand", (0, 0.2, 0), (0, 1, 0))), "twist", "elbow", "hand"),  # stretched out; a twist carries the upper arm
    ],
)  # fmt: skip
def test_elbows_of_robots_are_found_by_their_hinges(hinges, upper, lower, hand):
    body = arm_of_hinges(*hinges)
    found = nameless(body).role_rows
    parts = {"upper_arm": upper, "lower_arm": lower, "hand": hand, "upper_leg": "hip", "lower_leg": "knee"}
    for part, name in parts.items():
        assert body.joint_names[found[f"left_{part}"]] == f"left_{name}", part


def test_a_hinge_at_the_shoulder_is_no_collar_bone():
    body = arm_of_hinges(("shoulder_pitch", (0, 0.2, 0.5), (0, 1, 0)), ("shoulder_roll", (0, 0.03, 0), (1, 0, 0)),
                         ("upper_arm", (0, 0, -0.1), (0, 0, 1)), ("elbow", (0, 0, -0.1), (0, 1, 0)))  # fmt: skip
    assert body.roles["left_upper_arm"] == "left_upper_arm"
    assert "left_shoulder" not in body.roles


def test_a_hinge_that_moves_the_shoulder_is_not_where_the_upper_arm_begins():
    """A collar of one hinge before the three of the shoulder, as Talos has."""
    body = arm_of_hinges(("shoulder_yaw", (0, 0.15, 0.5), (0, 0, 1)), ("shoulder_roll", (0, 0.13, 0.05), (1, 0, 0)),
                         ("upper_arm", (0, 0, 0), (0, 0, 1)), ("elbow", (0.02, 0, -0.27), (0, 1, 0)),
                         ("hand", (-0.02, 0, -0.26), (0, 0, 1)))  # fmt: skip
    one = Body.of(body)
    np.testing.assert_allclose(one.rest_position("left_upper_arm"), (0.0, 0.28, 0.55), atol=1e-4)
    assert body.joint_names[one.first_row("left_upper_arm")] == "left_shoulder_yaw"


def test_heads_turn_with_their_last_hinge():
    joints = [*arm_of_hinges(*SHOULDER, ("elbow", (0, 0, -0.2), (0, 1, 0)), ("hand", (0, 0, -0.2), (0, 1, 0))).joints]
    for name, above, z in (("head_1_joint", "base", 0.6), ("head_2_joint", "head_1_joint", 0.0)):
        rest = np.eye(4)
        rest[2, 3] = z
        joints.append(sy.Joint(name, above, sy.Kind.HINGE, rest, axis=(0, 1, 0)))
    assert sy.Skeleton(joints).roles["head"] == "head_2_joint"


def test_hinges_named_by_anatomy_are_those_of_the_limb():
    """Names tell the legs of a bird (Digit), whose shape shows other parts; the last hinge carries the bone."""
    joints = [sy.Joint("torso", None, sy.Kind.FREE)]
    legs = (("hip_abduction", 0.1, 0.0), ("hip_rotation", 0.0, 0.0), ("hip_flexion", 0.0, 0.0),
            ("knee_joint", 0.0, -0.1), ("shin_to_tarsus", 0.0, -0.35), ("toe_pitch", 0.0, -0.4),
            ("toe_roll", 0.0, 0.0))  # fmt: skip
    for side, sign in (("left", 1.0), ("right", -1.0)):
        above = "torso"
        for part, y, z in legs:
            rest = np.eye(4)
            rest[:3, 3] = 0.0, sign * y, z
            joints.append(sy.Joint(f"{part}_{side}", above, sy.Kind.HINGE, rest, axis=(0, 1, 0)))
            above = joints[-1].name
    roles = sy.Skeleton(joints, up="z").roles
    assert roles["hips"] == "torso"
    assert (roles["left_upper_leg"], roles["right_lower_leg"]) == ("hip_flexion_left", "knee_joint_right")


def test_the_link_named_head_is_the_head_and_not_what_spins_on_it():
    """Joints with other names carry a link "head" over a fixed joint; a scanner turns on it (Valkyrie)."""
    arms = *SHOULDER, ("elbow", (0, 0, -0.2), (0, 1, 0)), ("hand", (0, 0, -0.2), (0, 1, 0))
    joints = [*arm_of_hinges(*arms).joints]
    for name, above, z, link in (
        ("nod", "base", 0.6, None),
        ("root", "nod", 0.05, "head"),
        ("scan", "root", 0.1, None),
    ):
        rest = np.eye(4)
        rest[2, 3] = z
        kind = sy.Kind.FIXED if link else sy.Kind.HINGE
        joints.append(sy.Joint(name, above, kind, rest, axis=(0, 1, 0), body=link))
    assert sy.Skeleton(joints).roles["head"] == "nod"


@pytest.mark.parametrize("head", ["C_head01_bind_JNT", "crown"])
def test_bones_of_the_face_are_not_the_head(head):
    """Eyes on fixed bones below the head, with words of riggers in the names, or with no word for the head."""
    body = mixamo()
    renamed = {name: head if name == MIXAMO["head"] else f"b{row}" for row, name in enumerate(body.joint_names)}
    joints = [dataclasses.replace(joint, name=renamed[joint.name], parent=joint.parent and renamed[joint.parent])
              for joint in body.joints]  # fmt: skip
    for side, x in (("L", 0.03), ("R", -0.03)):
        rest = np.eye(4)
        rest[:3, 3] = x, 0.1, 0.1
        joints.append(sy.Joint(f"{side}_face_base", head, sy.Kind.FIXED, rest))
        for part, y in (("brow", 0.12), ("socket", 0.02)):
            rest = np.eye(4)
            rest[:3, 3] = x, y, 0.05
            joints.append(sy.Joint(f"{side}_{part}", f"{side}_face_base", sy.Kind.BALL, rest))
    assert sy.Skeleton(joints, up="y", forward="z").roles["head"] == head


def beside(body, x, second, first="", nested=False):
    """A scene: the body, and the same body again, ``x`` to the left, with another prefix of its names."""
    joints = [sy.Joint("scene")]
    for prefix, place in ((first, 0.0), (second, x)):
        for row, joint in enumerate(body.joints):
            rest = joint.rest.copy()
            above = prefix + body.joint_names[body.parents[row]] if row else "scene"
            if row == 0 and prefix == second:
                above = first + "hips" if nested else above
                rest = np.eye(4) if nested else rest
                rest[0, 3] += place
            bind = np.eye(3) if prefix == second else None
            joints.append(
                dataclasses.replace(joint, name=prefix + joint.name, parent=above, role=None, rest=rest, bind=bind)
            )
    return sy.Skeleton(joints)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("x", [0.0, 0.03])
def test_two_rigs_of_one_person_are_one_person(x, nested):
    """Control bones beside bones of the skin, whatever their names: the parts are those of the skin."""
    one = sy.bundled("humanoid")
    body = Body.of(beside(one, x, "b_", nested=nested))
    names = {role: body.skeleton.joint_names[row] for role, row in body.roles.items()}
    assert {role: names[role] for role in LIMBS} == {role: "b_" + one.roles[role] for role in LIMBS}


def test_two_people_without_namespaces_are_two_people():
    with pytest.raises(InputError, match="has 2 people"):
        Body.of(beside(sy.bundled("humanoid"), 1.0, "b_"))


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
    with pytest.raises(InputError, match="has 2 people"):  # both at the origin at rest
        Body.of(beside(one, 0.0, "bert:", "anna:"))
    assert Body.of(rigs.skeleton_of("rigify, deforming bones")).roles["left_upper_leg"]


@pytest.mark.parametrize("exchanged", ["body", "arm"])
def test_a_clip_shows_left_and_right_where_names_do_not(exchanged):
    """From toes and bent knees, and arms beside legs; names with a side are never overruled."""
    walk = sy.load_motion("examples/walk.bvh")
    known = walk.skeleton.role_rows
    bare = sy.Motion(nameless(walk.skeleton), walk.q, walk.fps)
    turned = {
        role if exchanged not in ("body", role.rpartition("_")[2]) and role.rpartition("_")[2] != "hand" else
        role.replace("left", "X").replace("right", "left").replace("X", "right"): row
        for role, row in known.items() if role in LIMBS
    }  # fmt: skip
    turned |= {"hips": known["hips"]}
    assert {role: sides_of_clip(bare, turned)[role] for role in LIMBS} == {role: known[role] for role in LIMBS}
    assert sides_of_clip(walk, turned) == turned
    right = {role: known[role] for role in turned}
    assert sides_of_clip(bare, right) == right


def test_shoulders_and_neck_are_found_by_shape():
    body = rigs.skeleton_of("mixamo")
    found, known = nameless(body).role_rows, body.role_rows
    for role in ("left_shoulder", "right_shoulder", "neck"):
        assert found[role] == known[role]


def test_a_zero_pose_along_one_axis_has_arms_and_legs_on_one_side():
    """As LAFAN1's: the line between the legs is along the axis that would be forward."""
    joints = [sy.Joint("hips", None, sy.Kind.FREE)]

    def add(name, parent, *at):
        rest = np.eye(4)
        rest[:3, 3] = at
        joints.append(sy.Joint(name, parent, sy.Kind.BALL, rest))

    add("spine", "hips", 0.3, 0.0, 0.0)
    add("head", "spine", 0.2, 0.0, 0.0)
    for side, z in (("left", 0.1), ("right", -0.1)):
        for parent, names, lengths in (("hips", ("thigh", "shin", "foot"), (0.0, 0.45, 0.42)),
                                       ("spine", ("arm", "forearm", "hand"), (0.1, 0.3, 0.25))):  # fmt: skip
            above = parent
            for name, length in zip(names, lengths, strict=True):
                add(f"{side}_{name}", above, length, 0.0, z if above == parent else 0.0)
                above = f"{side}_{name}"
    body = sy.Skeleton(joints)
    found = nameless(body).role_rows
    sides = {body.joint_names[found[f"left_{part}"]].partition("_")[0] for part in ("upper_leg", "upper_arm", "hand")}
    assert len(sides) == 1


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["rokoko_jesse_dance", "lafan1_walk1_head", "bandai2_walk_turn", "cmu_jumping_jacks"])
def test_sides_of_real_clips_without_names(shared_data, name):
    clip = sy.load_motion(shared_data / "motion" / f"{name}.bvh")
    bare = sy.Motion(nameless(clip.skeleton), clip.q[:200], clip.fps)
    found, known = sides_of_clip(bare, bare.skeleton.role_rows), clip.skeleton.role_rows
    assert {role: found[role] for role in LIMBS} == {role: known[role] for role in LIMBS}


@pytest.mark.shared_data
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name", ["character/mannequiny.glb", "motion/lafan1_walk1_head.bvh", "motion/cmu_07_01_walk.bvh",
             "motion/cmu_jumping_jacks.bvh", "motion/pymo_8walk.bvh", "motion/fair_wave_hello.bvh"],
)  # fmt: skip
def test_limbs_of_real_files_are_found_by_their_shape(name):
    body = sy.load_skeleton(shared_data_folder() / name)
    found, known = nameless(body).role_rows, body.role_rows
    assert {role: found[role] for role in LIMBS} == {role: known[role] for role in LIMBS}


def test_long_chains_without_names_are_looked_through():
    rope = sy.Skeleton.chain([(0.0, 0.01 * k, 0.0) for k in range(1500)])
    assert rope.role_rows == {}


def renamed(body, names):
    """The body with other names of some joints, and without roles."""
    called = [names.get(name, name) for name in body.joint_names]
    return body.with_joints(
        dataclasses.replace(joint, name=called[row], role=None, parent=called[above] if above >= 0 else None)
        for row, (joint, above) in enumerate(zip(body.joints, body.parents, strict=True))
    )


@pytest.mark.parametrize(
    "names",
    [
        {"left_lower_leg": "LeftLowrLg", "right_lower_leg": "RightLowrLg"},  # the middle of a limb
        {"left_upper_arm": "one", "left_lower_arm": "two", "left_hand": "three"},  # a whole limb of one side
        {"left_upper_leg": "a", "right_upper_leg": "b", "left_foot": "c", "right_foot": "d"},
        {f"{side}_{part}": f"{side}_leg_{k}" for side in ("left", "right")
         for k, part in enumerate(("upper_leg", "lower_leg", "foot"))},  # numbers alone
        {f"{side}_{part}": f"{side} {word}" for side in ("left", "right")
         for part, word in (("upper_leg", "leg"), ("lower_leg", "knee"), ("foot", "ankle"))},
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["mixamo", "vrm", "humanoid"])
def test_names_that_tell_a_part_of_the_body_are_completed_by_its_shape(name, names):
    body = sy.bundled("humanoid") if name == "humanoid" else rigs.skeleton_of(name)
    names = {body.roles[role]: word for role, word in names.items()}
    found = renamed(body, names).role_rows
    assert {role: found.get(role) for role in LIMBS} == {role: body.role_rows[role] for role in LIMBS}


@pytest.mark.parametrize("ends", [("left_hand",), ("right_hand",), ("left_hand", "right_hand")])
def test_an_arm_without_a_hand_does_not_hide_the_other_parts(ends):
    body = sy.bundled("humanoid")
    lost = {row for end in ends for row in range(len(body)) if body.index(end) in ancestors(body.parents, row)}
    kept = [row for row in range(len(body)) if row not in lost]
    short = sy.Skeleton(
        [dataclasses.replace(body.joints[row], role=None, name=f"bone{row}", mimic=None,
                             parent=kept.index(body.parents[row]) if row else None) for row in kept],
        up="y",
    )  # fmt: skip
    found = {role: short.joint_names[row] for role, row in short.role_rows.items()}
    wanted = {role: f"bone{body.index(role)}" for role in LIMBS if role not in ends}
    assert {role: found.get(role) for role in wanted} == wanted


def test_given_roles_come_first_and_the_others_are_found_beside_them():
    body = mixamo()
    assert body.with_roles({}).role_rows == body.role_rows
    other = body.with_roles({"left_wrist": "mixamorig:LeftForeArm", "head": 0})
    assert other.roles["left_hand"] == "mixamorig:LeftForeArm"
    assert other.roles["head"] == body.joint_names[0]
    assert other.roles["right_foot"] == body.roles["right_foot"]
    assert body.roles["left_hand"] == "mixamorig:LeftHand"  # a new skeleton
    again = other.with_roles({"left_hand": "mixamorig:LeftHand"})
    assert again.index("left_hand") == body.index("left_hand")
    with pytest.raises(sy.errors.UnknownNameError, match=r"no role named 'left_hnd'.*Did you mean 'left_hand'"):
        body.with_roles({"left_hnd": 0})
    with pytest.raises(sy.errors.UnknownNameError, match="no joint named 'mixamorig:LeftHnd'"):
        body.with_roles({"left_hand": "mixamorig:LeftHnd"})
    with pytest.raises(InputError, match="has two roles"):
        body.with_roles({"left_hand": 3, "right_hand": 3})
    with pytest.raises(InputError, match="each role"):
        body.with_roles({"left_hand": 3, "left_wrist": 4})


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_role_files(tmp_path, ending):
    body, path = tmp_path / "arm.toml", tmp_path / f"roles.{ending}"
    sy.formats.write_skeleton(sy.bundled("arm7"), body)
    pairs = {"right_upper_arm": "joint3", "right_lower_arm": "joint4", "right_hand": "joint7"}
    text = "\n".join(f'{role} = "{joint}"' for role, joint in pairs.items())
    path.write_text(text if ending == "toml" else json.dumps(pairs), encoding="utf-8")
    ran = run("inspect", body, "--roles", path, "--json")
    assert (ran.code, ran.data["roles"]) == (0, pairs)
    assert "is right_hand" in run("inspect", body, "--roles", path).out
    assert run("solve", body, "-t", "right_wrist=0.3,0.1,0.5", "--roles", path, "--json").code == 0
    assert run("convert", body, tmp_path / "out.toml", "--roles", path).code == 0
    assert dict(sy.load_skeleton(tmp_path / "out.toml").roles) == pairs
    assert run("convert", sy.__file__, tmp_path / "out.csv", "--roles", path).code in (2, 3)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('left_hnd = "joint7"', "Did you mean 'left_hand'"),
        ('left_hand = "joint77"', "Did you mean 'joint7'"),
        ("left_hand = 7", "expected the name of a joint"),
        ('schema = "synovia.map/1"\nleft_hand = "joint7"', "is not a role file"),
        ("[roles]", "expected the name of a joint"),
    ],
)
def test_role_files_that_do_not_fit(tmp_path, text, told):
    path = tmp_path / "roles.toml"
    path.write_text(text, encoding="utf-8")
    ran = run("inspect", "arm7", "--roles", path)
    assert ran.code == 3
    assert "roles.toml" in ran.err
    assert told in ran.err


@pytest.mark.parametrize("turn", [0.0, 90.0, 180.0, 270.0])
def test_the_body_tells_where_it_faces(turn):
    body = sy.bundled("humanoid")
    rest = body.joints[0].rest.copy()
    rest[:3, :3] = sy.Rotation.from_euler("y", turn, degrees=True).as_matrix()
    joints = [dataclasses.replace(body.joints[0], rest=rest), *body.joints[1:]]
    turned = sy.Skeleton(joints, up="y", forward="z")
    assert turned.forward == {0.0: "z", 90.0: "x", 180.0: "-z", 270.0: "-x"}[turn]
    assert turned.with_root("free").forward == turned.forward
    arm = sy.Skeleton(sy.bundled("arm7").joints, up="z", forward="-y")
    assert arm.forward == "-y"  # that of the file


def test_a_hand_has_no_legs():
    """Fingers of equal lengths in a row are pairs of branches, but no legs and arms."""
    joints = [sy.Joint("palm")]
    for finger in range(4):
        above = "palm"
        for k, (x, y) in enumerate(((0.02 * finger, 0.09), (0.0, 0.04), (0.0, 0.03), (0.0, 0.02))):
            rest = np.eye(4)
            rest[:2, 3] = x, y
            joints.append(sy.Joint(f"f{finger}{k}", above, sy.Kind.HINGE, rest, axis=(1, 0, 0)))
            above = joints[-1].name
    assert not sy.Skeleton(joints).roles


def test_roles_are_sought_when_they_are_asked_for(monkeypatch):
    def fail(*_):
        raise AssertionError("sought")

    monkeypatch.setattr("synovia.model.skeleton.recognize", fail)
    body = sy.bundled("humanoid").with_root("free")
    assert body.index("left_hand") > 0
    sy.Pose(body, body.rest_q).position("left_hand")
    with pytest.raises(AssertionError, match="sought"):
        assert body.roles


VRM = {
    "hips": "hips", "spine": "spine", "head": "head",
    **{f"{side}{part}": f"{side}_{role}" for side in ("left", "right")
       for part, role in (("UpperLeg", "upper_leg"), ("LowerLeg", "lower_leg"), ("Foot", "foot"),
                          ("UpperArm", "upper_arm"), ("LowerArm", "lower_arm"), ("Hand", "hand"))},
}  # fmt: skip


def vrm(path, version, *, skin=True, decoys=True):
    """Write a VRM of the bundled person whose names mislead: its table alone tells the parts."""
    body = sy.bundled("humanoid")
    rows = {role: body.index(role) for role in VRM.values()}
    names = [f"bone{row}" for row in range(len(body))]
    nodes = [
        {"name": name, "translation": joint.rest[:3, 3].tolist()}
        for name, joint in zip(names, body.joints, strict=True)
    ]
    for row, parent in enumerate(body.parents):
        if parent >= 0:
            nodes[parent].setdefault("children", []).append(row)
    if decoys:  # meshes with the names of bones
        for role, row in rows.items():
            nodes[row].setdefault("children", []).append(len(nodes))
            nodes.append({"name": role})
    bones = {bone: rows[role] for bone, role in VRM.items()}
    bones["leftThumbMetacarpal" if version else "leftThumbProximal"] = len(nodes)
    nodes[rows["left_hand"]].setdefault("children", []).append(len(nodes))
    nodes.append({"name": "finger", "translation": [0.02, 0.0, 0.0]})
    if version:
        humanoid = {"VRMC_vrm": {"humanoid": {"humanBones": {bone: {"node": node} for bone, node in bones.items()}}}}
    else:
        pairs = [{"bone": bone, "node": node} for bone, node in bones.items()]
        humanoid = {"VRM": {"humanoid": {"humanBones": pairs}}}
    data = {"asset": {"version": "2.0"}, "nodes": nodes, "scenes": [{"nodes": [0]}], "extensions": humanoid}
    if skin:  # no hand moves the skin
        hands = {rows["left_hand"], rows["right_hand"]}
        data["skins"] = [
            {"joints": [row for row in range(len(body)) if row not in hands and body.parents[row] not in hands]}
        ]
    path.write_text(json.dumps(data), encoding="utf-8")
    return rows


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("skin", [False, True])
def test_the_table_of_a_vrm_comes_first(tmp_path, version, skin):
    path = tmp_path / "person.vrm"
    rows = vrm(path, version, skin=skin)
    body = sy.load_skeleton(path)
    for role, row in rows.items():
        assert body.roles[role] == f"bone{row}"
        assert body.joint(f"bone{row}").kind is sy.Kind.BALL  # a hand too that no skin uses
    assert body.roles["left_thumb_1"] == "finger"
    assert body.joint("finger").role == "left_thumb_1"
    assert not body.notes


@pytest.mark.parametrize("node", [-1, 10**6, None, "hips", 2.5])
def test_bones_of_a_vrm_without_a_node_are_told(tmp_path, node):
    path = tmp_path / "person.vrm"
    vrm(path, 1)
    data = json.loads(path.read_text(encoding="utf-8"))
    data["extensions"]["VRMC_vrm"]["humanoid"]["humanBones"]["jaw"] = {"node": node}
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.warns(UserWarning, match="Humanoid bones 'jaw' have no node"):
        body = sy.load_skeleton(path)
    assert "jaw" not in body.roles
    data["extensions"]["VRMC_vrm"]["humanoid"]["humanBones"] = ["hips"]
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(sy.errors.FormatError, match=r"humanBones: is not an object"):
        sy.load_skeleton(path)


@pytest.mark.parametrize("schema", ["", 'schema = "synovia.roles/1"\n'])
def test_a_role_file_may_have_a_header(tmp_path, schema):
    path = tmp_path / "roles.toml"
    path.write_text(f'{schema}[roles]\nleft_hand = "joint7"\n', encoding="utf-8")
    assert with_roles_of(sy.bundled("arm7"), path).roles["left_hand"] == "joint7"


def test_limbs_of_several_trees_are_no_body():
    """Arms of one tree and legs of another, such as a robot's fingers beside those of a recording, have no roles."""
    body = sy.bundled("humanoid")
    names = {joint.name: f"j{row}" for row, joint in enumerate(body.joints)}
    joints = [
        dataclasses.replace(one, name=names[one.name], parent=names.get(one.parent), role=None) for one in body.joints
    ]
    assert "left_hand" in sy.Skeleton(joints, up="y").roles
    legs = {names["left_upper_leg"], names["right_upper_leg"]}
    parted = [dataclasses.replace(joint, parent="other") if joint.name in legs else joint for joint in joints]
    other = sy.Joint("other", None, joints[0].kind, joints[0].rest)
    assert not sy.Skeleton([other, *parted], up="y").roles
