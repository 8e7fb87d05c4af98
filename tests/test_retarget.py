"""Retargeting: who is who in a body, rest poses laid over each other, and feet that stand where they were put."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from beyond import beyond_limits
from cli_runs import run
from synovia.errors import FormatError, InputError, UnknownNameError
from synovia.model import Joint, Kind
from synovia.model.anatomy.contacts import find_contacts
from synovia.model.anatomy.names import read_name
from synovia.model.anatomy.planting import FootPlaces
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors
from synovia.retargeting.alignment import Part
from synovia.retargeting.body import NEEDED, Body
from synovia.retargeting.bones import smallest_rotation
from synovia.retargeting.joint_map import draft_to_save
from synovia.retargeting.transfer import Orienter

UPPER_LEGS = (
    "mixamorig:LeftUpLeg", "thigh_l", "J_Bip_L_UpperLeg", "DEF-thigh.L", "L_Hip", "left_hip_yaw_joint", "lThigh",
    "Bip01 L Thigh", "CC_Base_L_Thigh", "LeftHip", "leftUpperLeg",
)  # fmt: skip


@pytest.mark.parametrize("name", UPPER_LEGS)
def test_conventions_of_naming(name):
    word = read_name(name)
    assert word is not None
    assert word.side == "left"
    assert word.word in ("upleg", "upperleg", "thigh", "hip")


@pytest.mark.parametrize("name", ["LeftToeBase_end", "ik_hand.l", "upperarm_twist_01_l", "mocap"])
def test_names_that_are_no_part(name):
    assert read_name(name) is None


@pytest.mark.parametrize("digits", ["7" * 5000, "\u00b2", "\u0663"])  # more than Python reads; superscript; Arabic
def test_any_digits_in_a_name(digits):
    assert read_name(f"LeftHand{digits}").side == "left"


def walk(humanoid, frames=60, fps=30.0):
    """A body that steps on the spot, one leg after the other, and turns."""
    q = np.tile(humanoid.rest_q, (frames, 1))
    body = sy.IK(humanoid, [sy.PositionGoal("left_foot"), sy.PositionGoal("right_foot")], root="free").skeleton
    q = np.tile(body.rest_q, (frames, 1))
    for t in range(frames):
        turn = Rotation.from_euler("yz", [0.5 * np.sin(t / 9.0), 0.05]).as_quat()
        q[t, body.q_slice("hips")] = turn if body.joint("hips").kind.name == "BALL" else np.r_[0, 0, 0, turn]
        for side, phase in (("left", 0.0), ("right", np.pi)):
            lift = max(0.0, np.sin(2 * np.pi * t / 30.0 + phase))
            q[t, body.q_slice(f"{side}_upper_leg")] = Rotation.from_euler("x", -0.8 * lift).as_quat()
            q[t, body.q_slice(f"{side}_upper_arm")] = Rotation.from_euler("zyx", [0.4, 0.2, lift]).as_quat()
    return sy.Motion(body, q, fps, name="steps")


def renamed(skeleton, names):
    """The same body under other names, without roles, as another file may have it."""
    joints = [
        dataclasses.replace(joint, name=names(joint.name), role=None, parent=parent if parent >= 0 else None)
        for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True)
    ]
    return sy.Skeleton(joints, up=skeleton.up, forward=skeleton.forward, meters_per_unit=1.0)


@pytest.fixture(scope="module")
def humanoid():
    return sy.bundled("humanoid")


@pytest.fixture(scope="module")
def clip(humanoid):
    return walk(humanoid)


@pytest.fixture(scope="module")
def other(humanoid):
    """Another body: its shins are longer."""
    joints = []
    for joint in humanoid.joints:
        rest = np.array(joint.rest)
        rest[:3, 3] *= 1.05 if joint.role in ("left_foot", "right_foot") else 1.0
        joints.append(dataclasses.replace(joint, rest=rest))
    return humanoid.with_joints(joints)


def test_a_body_is_known_by_its_shape_alone(humanoid):
    anonymous = renamed(humanoid, lambda name: f"bone{humanoid.index(name)}")
    by_shape = anonymous.role_rows
    for role in ("left_upper_leg", "left_lower_leg", "right_foot", "right_upper_arm", "left_lower_arm", "left_hand"):
        assert by_shape[role] == humanoid.index(role), role
    assert by_shape["hips"] == humanoid.index("hips")


def test_the_same_body_gets_the_same_motion(humanoid, clip):
    same = sy.retarget(clip, humanoid, hold_feet=False)
    assert same.scale == pytest.approx(1.0)
    a, b = clip.frames(), same.motion.frames()
    np.testing.assert_allclose(a[..., :9], b[..., :9], atol=1e-9)  # limits of the bundled body hold in the clip
    sideways = a[..., [9, 11]] - b[..., [9, 11]]
    np.testing.assert_allclose(sideways, np.broadcast_to(sideways[:1, :1], sideways.shape), atol=1e-9)


def test_clips_onto_a_body_that_is_known_already_do_not_depend_on_each_other(other, clip):
    """What follows from the bodies alone is kept for the next clip, and is that of the same body seen first."""
    first = sy.retarget(clip, other)
    parts = {role: pair for role, pair in first.joint_map().items() if "arm" not in role}
    mapped = sy.retarget(clip, other, parts)
    again = sy.retarget(sy.Motion(clip.skeleton, clip.q[:20], clip.fps), other)
    assert again.target is sy.retarget(clip, other).target
    assert mapped.target is not first.target
    anew = other.with_joints(other.joints)
    for known, motion, joints in ((first, clip, None), (mapped, clip, parts), (again, again.original, None)):
        fresh = sy.retarget(motion, anew, joints)
        assert fresh.target is not known.target
        np.testing.assert_array_equal(fresh.motion.q, known.motion.q)
        assert fresh.report() == known.report()


@pytest.mark.parametrize("b", [(0.0, 0.6, 0.8), (0.0, -0.6, 0.8), (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
def test_the_smallest_rotation_between_two_directions(b):
    a, b = np.array([1.0, 0.0, 0.0]), np.array(b)
    R = smallest_rotation(a, b)
    np.testing.assert_allclose(R @ a, b, atol=1e-12)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) > 0.0
    assert np.trace(R) == pytest.approx(1.0 + 2.0 * (a @ b))


def test_a_turned_and_scaled_world_makes_no_difference(humanoid, clip):
    """A body in another file's axes and unit moves its own way, seen in its own axes."""
    import dataclasses

    turn = Rotation.from_euler("x", 90, degrees=True).as_matrix()  # y up becomes z up
    joints = []
    for row, joint in enumerate(humanoid.joints):
        rest = joint.rest.copy()
        rest[:3, 3] *= 100.0
        if humanoid.parents[row] < 0:
            rest[:3, :3] = turn @ rest[:3, :3]
            rest[:3, 3] = turn @ rest[:3, 3]
        joints.append(dataclasses.replace(joint, rest=rest, com=joint.com * 100.0, parent=humanoid.parents[row]))
        if humanoid.parents[row] < 0:
            joints[-1] = dataclasses.replace(joints[-1], parent=None)
    other = sy.Skeleton(joints, up="z", forward="-y", meters_per_unit=0.01)
    there = sy.retarget(clip, other).motion.positions()
    here = sy.retarget(clip, humanoid).motion.positions()
    np.testing.assert_allclose(there / 100.0, here @ turn.T, atol=2e-4)


def test_arms_that_hang_and_arms_that_are_stretched_out_meet(humanoid, clip):
    """A target whose rest pose hangs its arms ends up with the bones where the source's are."""
    joints = []
    for row, joint in enumerate(humanoid.joints):
        rest = joint.rest.copy()
        if joint.role in ("left_upper_arm", "right_upper_arm"):
            side = 1.0 if joint.role.startswith("left") else -1.0
            rest[:3, :3] = Rotation.from_euler("z", -80 * side, degrees=True).as_matrix() @ rest[:3, :3]
        parent = humanoid.parents[row] if humanoid.parents[row] >= 0 else None
        joints.append(dataclasses.replace(joint, rest=rest, limit=None, parent=parent))
    hanging = sy.Skeleton(joints, up=humanoid.up, forward=humanoid.forward, meters_per_unit=1.0)
    answer = sy.retarget(clip, hanging, hold_feet=False)
    assert max(part.angle for part in answer.parts) > 1.0
    a, b = clip.positions(), answer.motion.positions()
    shift = 1 if len(answer.motion.skeleton) > len(humanoid) else 0
    base = len(clip.skeleton) - len(humanoid)
    for role in ("left_lower_arm", "left_hand", "right_hand"):
        row, above = humanoid.index(role), humanoid.index(role.split("_")[0] + "_upper_arm")
        np.testing.assert_allclose(
            b[:, row + shift] - b[:, above + shift], a[:, row + base] - a[:, above + base], atol=1e-6
        )


def test_feet_stand_still_and_limits_hold(other, clip):
    answer = sy.retarget(clip, other)
    assert answer.missed_frames == ()
    body = answer.motion.skeleton
    for role, spans in answer.contacts.items():
        assert spans
        foot = answer.motion.positions()[:, body.index(role)]
        for a, b in spans:
            assert np.ptp(foot[a:b], axis=0).max() < 1e-3
    assert beyond_limits(body.tables, answer.motion.q) <= 1e-9


def test_contacts_and_plants():
    t = np.linspace(0.0, 2.0, 240)
    stands = (t % 1.0) < 0.5
    path = np.zeros((240, 3))
    path[:, 0] = np.cumsum(np.where(stands, 0.001, 0.02))
    path[:, 1] = np.where(stands, 0.0, 0.2 * np.sin(np.pi * ((t % 1.0) - 0.5) / 0.5))
    spans = find_contacts(path[:, None], np.array([0.0, 1.0, 0.0]), 120.0).spans[0]
    assert 2 <= len(spans) <= 3
    stands = np.zeros((240, 1), bool)
    for a, b in spans:
        stands[a:b] = True
    feet = FootPlaces(np.array([0.0, 1.0, 0.0]), 1.0, [None], 120.0, causal=False)
    fixed = feet.follow(path[:, None], stands)[:, 0]
    for a, b in spans:
        np.testing.assert_allclose(fixed[a:b], np.broadcast_to(path[a:b].mean(0), (b - a, 3)), atol=1e-12)
    assert np.abs(np.diff(fixed - path, axis=0)).max() < 0.021  # what is added never jumps
    np.testing.assert_array_equal(feet.follow(path[:, None], np.zeros((240, 1), bool))[:, 0], path)


def test_hands_stay_while_feet_are_put_in_place(other, clip):
    """Where arms can make up for what the feet ask of the hips, hands are where turning alone has put them."""
    free, placed = (sy.retarget(clip, other, hold_feet=feet).motion for feet in (False, True))
    rows = [placed.skeleton.index(f"{side}_{part}") for part in ("hand", "foot") for side in ("left", "right")]
    way = np.linalg.norm(placed.positions()[:, rows] - free.positions()[:, rows], axis=-1).max(0)
    assert way[2:].max() > 0.005
    assert way[:2].max() < 5e-4


def test_one_thread_gives_the_same_bits_and_progress_goes_on(other, clip):
    told = []
    whole = sy.retarget(clip, other, progress=lambda *done: told.append(done))
    assert told == sorted(told)
    assert told[-1] == (2 * len(clip), 2 * len(clip))
    np.testing.assert_array_equal(sy.retarget(clip, other, threads=1).motion.q, whole.motion.q)


def test_orientations_in_parts_have_the_same_bits(other, clip):
    """A live body goes on from the pose before, as the next frame of a clip does."""
    answer = sy.retarget(clip, other)
    body, frames = answer.target, answer.motion.frames()
    paths = Orienter(body, answer.parts)
    turns = np.stack([frames[:, part.target, :9].reshape(-1, 3, 3) for part in answer.parts], axis=1)
    wanted = np.ascontiguousarray((turns[:, paths.ends] @ paths.onto).reshape(len(frames), -1, 9))
    whole, _ = paths.solved(wanted)
    found, before = [], None
    for first in range(0, len(wanted), 7):
        q, before = paths.solved(wanted[first : first + 7], before)
        found.append(q)
    np.testing.assert_array_equal(np.concatenate(found), whole)


def test_a_map_is_kept_edited_and_used(humanoid, clip, tmp_path):
    answer = sy.retarget(clip, humanoid)
    path = tmp_path / "map.toml"
    sy.formats.write_map(answer.joint_map(), path)
    joints = sy.formats.read_map(path)
    assert joints == answer.joint_map()
    again = sy.retarget(clip, humanoid, joints)
    np.testing.assert_array_equal(again.motion.q, answer.motion.q)
    del joints["left_hand"]
    fewer = sy.retarget(clip, humanoid, joints)
    assert "left_hand" not in fewer.joint_map()
    joints["hips"] = ("hips", "hipz")
    with pytest.raises(UnknownNameError, match="Did you mean 'hips'"):
        sy.retarget(clip, humanoid, joints)
    for text in (
        '[joints]\nhips = ["a", "b"]',
        'schema = "synovia.map/1"\njoints = 3',
        'schema = "synovia.map/1"\n[joints]',
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(sy.errors.FormatError, match="joint map"):
            sy.formats.read_map(path)
    path.write_text('schema = "synovia.map/1"\n[joints]\nhips = ["a"]\n', encoding="utf-8")
    with pytest.raises(FormatError, match="'hips' has no pair"):
        sy.formats.read_map(path)


def test_legs_that_begin_in_one_place(clip):
    """Left and right are then told by the knees; where these are in one place too, there is no telling."""
    for knee in (0.2, 0.0):
        joints = [sy.Joint(name="hips", kind=sy.Kind.BALL)]
        for side, sign in (("left", 1.0), ("right", -1.0)):
            joints.append(sy.Joint(name=f"{side}_upper_leg", parent=0, kind=sy.Kind.BALL, rest=shifted(0, 0, 0)))
            joints.append(
                sy.Joint(
                    name=f"{side}_lower_leg",
                    parent=len(joints) - 1,
                    kind=sy.Kind.BALL,
                    rest=shifted(sign * knee, -0.5, 0),
                )
            )
        body = sy.Skeleton(joints, name="dwarf", up="y")
        if knee:
            assert np.isfinite(sy.retarget(clip, body).motion.q).all()
        else:
            with pytest.raises(InputError, match="left and right limbs of dwarf coincide"):
                sy.retarget(clip, body)


@pytest.mark.parametrize("tip", [True, False])
def test_legs_without_feet_stand_on_the_ends_of_their_shins(humanoid, clip, tip):
    joints = []
    for joint in humanoid.joints:
        if joint.name.endswith("_foot") and tip:
            joint = sy.Joint(joint.name.replace("foot", "tip"), joint.parent, rest=joint.rest)
        if "foot" not in joint.name and "toe" not in joint.name:
            joints.append(joint)
    body = sy.Skeleton(joints, name="footless", up="y", forward="z")
    answer = sy.retarget(clip, body)
    assert answer.scale == (pytest.approx(1.0) if tip else pytest.approx(0.5, abs=0.05))
    low = answer.motion.positions()[..., 1].min(axis=1)
    assert np.abs(low).max() < 0.05
    assert not any(one.cause == "scale" for one in answer.findings)
    assert (answer.verdict == "good") == tip
    assert any("stands on its knees" in one.text for one in answer.findings) != tip
    back = sy.retarget(answer.motion, humanoid)
    assert back.scale == pytest.approx(1.0 / answer.scale)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0, -0.5, -2.0, -1.0])
def test_a_knee_of_coupled_hinges_bends_as_far_as_it_should(ratio):
    """A hinge that follows turns the shin too, but at -1 the two of them only move it."""
    joints = [sy.Joint("hips", kind=sy.Kind.FREE)]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        knee = f"{side}_knee"
        joints += [
            sy.Joint(f"{side}_upper_leg", "hips", kind=sy.Kind.BALL, rest=shifted(sign * 0.1, 0, 0)),
            sy.Joint(knee, f"{side}_upper_leg", kind=sy.Kind.HINGE, rest=shifted(0, -0.45, 0), axis=(1.0, 0.0, 0.0),
                     limit=sy.Interval(-0.5, 1.0)),
            sy.Joint(f"{side}_lower_leg", knee, kind=sy.Kind.HINGE, rest=shifted(0, -0.05, 0), axis=(1.0, 0.0, 0.0),
                     mimic=sy.Mimic(knee, ratio, 0.1)),
            sy.Joint(f"{side}_foot", f"{side}_lower_leg", kind=sy.Kind.BALL, rest=shifted(0, -0.45, 0)),
        ]  # fmt: skip
    body = Body.of(sy.Skeleton(joints, name="coupled", up="y", forward="z"))
    assert body.skeleton.joint_names[body.roles["left_lower_leg"]] == "left_lower_leg"
    q = np.tile(body.skeleton.rest_q, (20, 1))
    leaders = [body.skeleton.q_slice(f"{side}_knee").start for side in ("left", "right")]
    q[:, leaders] = np.random.default_rng(0).uniform(-0.4, 0.5, (20, 2))
    frames = world_frames(body.skeleton, body.skeleton.follow(q))
    parts = [Part(role, row, row, np.eye(3)) for role, row in body.roles.items()]
    wanted = np.stack([frames[:, part.target, :9].reshape(-1, 3, 3) for part in parts], axis=1)
    paths = Orienter(body, parts)
    found, _ = paths.solved((wanted[:, paths.ends] @ paths.onto).reshape(len(wanted), -1, 9))
    np.testing.assert_allclose(found, body.skeleton.follow(found.copy()), atol=1e-12)
    if ratio != -1.0:
        np.testing.assert_allclose(found[:, leaders], q[:, leaders], atol=1e-6)
    else:
        assert (found[:, leaders] == 0.0).all()


def shifted(x, y, z):
    rest = np.eye(4)
    rest[:3, 3] = x, y, z
    return rest


def test_what_is_no_body_is_refused(clip):
    with pytest.raises(InputError, match=r"no part of arm7 is recognised.*a map of some parts is enough"):
        sy.retarget(clip, sy.bundled("arm7"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"hips": "hips"}, r"joint_map\['hips'\]: expected a pair \(joint of the source, joint of the target\)"),
        ({"hips": ("hips",)}, "expected a pair"),
        ({"hips": None}, "expected a pair"),
        (["hips"], "expected a dict"),
        ({"tail": ("hips", "hips")}, "no part of the body named 'tail' in the joint map"),
        ({"left_uper_leg": ("left_upper_leg",) * 2}, "Did you mean 'left_upper_leg'"),
        ({3: ("hips", "hips")}, "no part of the body named 3"),
    ],
)
def test_maps_that_are_none(humanoid, clip, given, told):
    with pytest.raises((InputError, UnknownNameError), match=told):
        sy.retarget(clip, humanoid, given)
    with pytest.raises((InputError, UnknownNameError), match=told):
        sy.judge(clip, clip, given)


def test_parts_of_a_map_may_have_their_other_names(humanoid, clip):
    full = sy.retarget(clip, humanoid).joint_map()
    other = {"left_knee" if role == "left_lower_leg" else role: pair for role, pair in full.items()}
    assert sy.retarget(clip, humanoid, other).joint_map() == full
    dog = sy.bundled("quadruped").with_root("free")
    still = sy.Motion(dog, [dog.rest_q] * 5, 30.0)
    assert "tail" in sy.retarget(still, dog, {"hips": ("hips",) * 2, "tail": ("tail",) * 2}).joint_map()


@pytest.mark.parametrize("without", ["left_upper_leg", "left_lower_leg", "right_lower_leg"])
@pytest.mark.parametrize("one_is", ["source", "target"])
def test_a_body_without_a_leg_or_a_shin_takes_part(humanoid, clip, without, one_is):
    def without_limb(body):
        row = body.roles[without]
        rows = [k for k in range(len(body)) if body.index(row) not in ancestors(body.parents, k)]
        above = [None if body.parents[k] < 0 else rows.index(body.parents[k]) for k in rows]
        joints = [dataclasses.replace(body.joints[k], parent=at) for k, at in zip(rows, above, strict=True)]
        return sy.Skeleton(joints, up=body.up, forward=body.forward), [body.joint_names[k] for k in rows]

    if one_is == "target":
        answer = sy.retarget(clip, without_limb(humanoid)[0])
    else:
        body, names = without_limb(clip.skeleton)
        q = np.concatenate([clip.q[:, clip.skeleton.q_slice(name)] for name in names], axis=1)
        answer = sy.retarget(sy.Motion(body, q, clip.fps), humanoid)
    assert not answer.moves
    assert answer.verdict == "look"
    assert [one.limb for one in answer.findings if one.level == "look"] == [without]
    assert {"right_upper_arm", "left_upper_arm"} <= {part.role for part in answer.parts}
    assert any(one.cause == "not mapped" and "hips" in one.text for one in answer.findings)


@pytest.mark.parametrize("limb", ["leg", "arm"])
def test_a_limb_of_one_side_that_is_not_mapped_is_told_if_the_body_has_it(humanoid, clip, limb):
    parts = [f"left_upper_{limb}", f"left_lower_{limb}"]
    full = sy.retarget(clip, humanoid).joint_map()
    answer = sy.retarget(clip, humanoid, {role: pair for role, pair in full.items() if role not in parts})
    assert {one.limb for one in answer.findings if one.cause == "not mapped" and one.level == "look"} == set(parts)
    both = {role: pair for role, pair in full.items() if not role.endswith(("_leg", "foot", "toes"))}
    legs = [one for one in sy.retarget(clip, humanoid, both).findings if one.limb.endswith("leg")]
    assert {one.level for one in legs if one.cause == "not mapped"} == {"look"}


def test_a_body_that_lacks_an_arm_gets_a_note(humanoid, clip):
    arm = [k for k in range(len(humanoid)) if humanoid.index("left_shoulder") in ancestors(humanoid.parents, k)]
    rows = [k for k in range(len(humanoid)) if k not in arm]
    above = [None if humanoid.parents[k] < 0 else rows.index(humanoid.parents[k]) for k in rows]
    joints = [dataclasses.replace(humanoid.joints[k], parent=at) for k, at in zip(rows, above, strict=True)]
    answer = sy.retarget(clip, sy.Skeleton(joints, up="y", forward="z"))
    assert answer.verdict == "good"
    assert {one.level for one in answer.findings if one.cause == "not mapped"} == {"note"}
    strange = [dataclasses.replace(joint, name=f"x{k}" if k in arm else joint.name, parent=None if at < 0 else at,
                                   role=None if k in arm else joint.role,
                                   rest=joint.rest if k != humanoid.index("left_lower_arm") else shifted(0.5, 0.1, 0.0))
               for k, (joint, at) in enumerate(zip(humanoid.joints, humanoid.parents, strict=True))]  # fmt: skip
    told = sy.retarget(clip, sy.Skeleton(strange, up="y", forward="z"))
    assert told.verdict == "look" or "left_upper_arm" in told.joint_map()


def test_two_parts_in_one_joint_are_refused(clip):
    """As a map of a file with several bodies may have them; two goals would be on one joint."""
    body = Body.of(clip.skeleton)
    for one, other in (("left_hand", "right_hand"), ("left_foot", "left_hand"), ("hips", "right_upper_leg")):
        with pytest.raises(InputError, match=f"{one}.* and .*{other}|{other}.* and .*{one}"):
            Body(clip.skeleton, {**body.roles, one: body.roles[other]})


def test_command_line(humanoid, clip, tmp_path):
    source, out = tmp_path / "steps.npz", tmp_path / "out.bvh"
    sy.save_motion(clip, source)
    ran = run("retarget", source, "humanoid", "-o", out, "--save-map", tmp_path / "map.toml", "--json")
    assert (ran.code, ran.data["schema"], ran.data["frames"]) == (0, "synovia.retarget/1", len(clip))
    assert len(sy.load_motion(out)) == len(clip)
    assert run("retarget", source, "humanoid", "-o", out).code == 3  # the file exists
    ran = run("retarget", source, "humanoid", "--map", tmp_path / "map.toml")
    assert ran.code == 0
    assert "rest poses differ" in ran.out


def test_a_map_with_gaps_is_saved_to_be_filled_in(clip, tmp_path):
    """What was found is written, what is missing stays to be filled in; a map with a gap carries the other parts."""
    source, path = tmp_path / "steps.npz", tmp_path / "map.toml"
    sy.save_motion(clip, source)
    ran = run("retarget", source, "arm7", "--save-map", path)
    assert ran.code == 3
    assert "Fill in hips, left_upper_leg, left_lower_leg, right_upper_leg, right_lower_leg, or the parts" in ran.err
    assert "or the parts that both have, such as left_upper_arm and left_lower_arm, and try again" in ran.err
    assert "no part of arm7 is recognised" in ran.err
    assert '\n# left_upper_leg = ["left_upper_leg", ""]\n' in path.read_text(encoding="utf-8")
    part = "left_upper_leg"
    joints = {role: (role, role) for role in NEEDED} | {part: (part, "")}
    sy.formats.write_map(joints, path, force=True)
    assert sorted(sy.formats.read_map(path)) == sorted(set(NEEDED) - {part})
    ran = run("retarget", source, "humanoid", "--map", path, "--save-map", path, "--force")
    assert ran.code in (0, 1)
    assert "not mapped" in ran.out
    assert "left upper leg" in ran.out
    assert sorted(sy.formats.read_map(path)) == sorted(set(NEEDED) - {part})


@pytest.mark.parametrize("target", ["character/mannequiny.glb", "robot/g1_29dof.urdf"])
@pytest.mark.parametrize("source", ["cmu_07_01_walk.bvh", "pymo_8walk.bvh"])
@pytest.mark.slow
def test_real_walks_on_real_bodies(shared_data, source, target):
    motion = sy.load_motion(shared_data / "motion" / source)
    answer = sy.retarget(motion, sy.load_skeleton(shared_data / target))
    assert answer.missed_frames == ()
    assert answer.worst < 0.005  # metres
    body = answer.motion.skeleton
    assert beyond_limits(body.tables, answer.motion.q) <= 1e-9
    before, after = angles(motion.frames()), angles(answer.motion.frames())
    for part in answer.parts:
        assert after[:, part.target].max() <= 1.5 * before[:, part.source].max(), part.role


def angles(frames):
    """Rotation of every joint from frame to frame, (T - 1, n), radians."""
    R = frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    traces = np.einsum("tnij,tnij->tn", R[1:], R[:-1])
    return np.arccos(np.clip((traces - 1.0) / 2.0, -1.0, 1.0))


def test_a_character_gets_the_masses_of_a_grown_person(humanoid):
    """The bundled body, which has them: the same again from its roles, and a goal for balance is no longer refused."""
    bare = sy.Skeleton(
        [
            dataclasses.replace(joint, parent=int(parent) if parent >= 0 else None, mass=0.0, com=np.zeros(3))
            for joint, parent in zip(humanoid.joints, humanoid.parents, strict=True)
        ],
        up=humanoid.up,
    )
    with pytest.raises(InputError, match="with_body_masses"):
        sy.CenterOfMassGoal((0, 1, 0)).resolved(bare)
    body = sy.with_body_masses(bare, 60.0)
    assert sum(joint.mass for joint in body.joints) == pytest.approx(60.0)
    shares = np.array([[a.mass / 75.0, b.mass / 60.0] for a, b in zip(humanoid.joints, body.joints, strict=True)])
    np.testing.assert_allclose(shares[:, 1], shares[:, 0], atol=2e-3)
    for seed in range(3):
        q = humanoid.random_pose(seed).q
        near = np.linalg.norm(sy.Pose(body, q).center_of_mass() - sy.Pose(humanoid, q).center_of_mass())
        assert near < 0.03
    sy.CenterOfMassGoal((0, 1, 0)).resolved(body)


def test_masses_of_what_is_no_body_are_refused():
    """An arm has no legs; a mass is positive."""
    with pytest.raises(InputError, match="not a human body"):
        sy.with_body_masses(sy.bundled("arm7"))
    with pytest.raises(InputError, match="mass is not positive"):
        sy.with_body_masses(sy.bundled("humanoid"), 0.0)


def moving_joints(motion):
    """The joints whose values change."""
    values = {joint: motion.q[:, motion.skeleton.q_slice(joint)] for joint in motion.skeleton.joint_names}
    return {joint for joint, q in values.items() if q.size and float(np.ptp(q, axis=0).max()) > 1e-6}


def part_of(body, top, *, hinges=False):
    """The joints of a body from one on, fixed to the world; as hinges where the body has balls if asked."""
    rows = [row for row in range(len(body)) if body.index(top) in ancestors(body.parents, row)]
    place = np.eye(4)
    place[:3, 3] = body.rest_pose().position(top)
    joints = []
    for row in rows:
        joint = body.joints[row]
        parent = rows.index(body.parents[row]) if body.parents[row] in rows else None
        kind = Kind.BALL if joint.kind is Kind.FREE else joint.kind
        if hinges and kind is Kind.BALL:
            for k, axis in enumerate(np.eye(3)):
                rest = joint.rest if k == 0 else np.eye(4)
                above = (
                    f"{joint.name}{k - 1}" if k else body.joint_names[body.parents[row]] if parent is not None else None
                )
                name = joint.name if k == 2 else f"{joint.name}{k}"
                joints.append(Joint(name, above, Kind.HINGE, rest if parent is not None or k else place, axis=axis))
        else:
            above = None if parent is None else body.joint_names[body.parents[row]]
            joints.append(dataclasses.replace(joint, parent=above, kind=kind, role=None, mimic=None,
                                              rest=joint.rest if parent is not None else place))  # fmt: skip
    return sy.Skeleton(joints, name="part", up=body.up, forward=body.forward)


@pytest.mark.parametrize("hinges", [False, True])
def test_a_torso_without_legs_takes_over_trunk_and_arms(humanoid, clip, hinges):
    torso = part_of(humanoid, "chest", hinges=hinges)
    answer = sy.retarget(clip, torso)
    assert not answer.moves
    assert answer.motion.skeleton.joint_names == torso.joint_names  # no free root
    assert {"left_lower_arm", "right_lower_arm"} <= {part.role for part in answer.parts}
    limbs = {limb.limb: limb.mean for limb in answer.judgement.figures.limbs}
    assert {"left_upper_arm", "left_lower_arm", "right_upper_arm", "right_lower_arm"} <= limbs.keys()
    assert max(limbs.values()) < np.radians(10.0)
    assert any(one.cause == "part" for one in answer.findings)  # it says what was judged
    if not hinges:  # the same arms: their joints turn as those of the source
        for side in ("left", "right"):
            own, source = answer.motion.q, clip.q
            arm = f"{side}_lower_arm"
            np.testing.assert_allclose(own[:, torso.q_slice(arm)], source[:, clip.skeleton.q_slice(arm)], atol=0.03)


def test_a_body_without_legs_gives_its_motion_to_others(humanoid, clip):
    torso = sy.retarget(clip, part_of(humanoid, "chest")).motion
    answer = sy.retarget(torso, humanoid)
    assert not answer.moves
    moved = moving_joints(answer.motion)
    assert {"left_upper_arm", "right_upper_arm"} <= moved
    assert not {joint for joint in moved if "leg" in joint or "foot" in joint or joint == "hips"}
    assert max(limb.mean for limb in answer.judgement.figures.limbs) < np.radians(5.0)


def test_a_partial_map_carries_only_what_it_names(humanoid, clip, tmp_path):
    roles = ("right_upper_arm", "right_lower_arm")
    answer = sy.retarget(clip, humanoid, {role: (role, role) for role in roles})
    assert moving_joints(answer.motion) <= set(roles)
    assert moving_joints(answer.motion)
    told = next(one.text for one in answer.findings if one.cause == "not mapped")
    assert "left lower arm" in told
    assert "right upper leg" in told
    path, source = tmp_path / "map.toml", tmp_path / "steps.npz"
    sy.save_motion(clip, source)
    sy.formats.write_map({role: (role, role) for role in roles}, path)
    ran = run("retarget", source, "humanoid", "--map", path, "--json")
    assert ran.code == 0
    assert {part["part"] for part in ran.data["parts"]} == set(roles)


def test_arms_move_as_their_chest_sees_them(humanoid, clip):
    """A source that turns round and leans as a whole gives a fixed base the same arms."""
    arms = {
        f"{side}_{part}": (f"{side}_{part}",) * 2 for side in ("left", "right") for part in ("upper_arm", "lower_arm")
    }
    free = clip.skeleton.q_slice("hips")
    assert clip.skeleton.joint("hips").kind is Kind.FREE
    q = clip.q.copy()
    turn = Rotation.from_rotvec(np.outer(np.linspace(0.0, 5.0, len(q)), (0.0, 1.0, 0.0)))
    q[:, free.start + 3 : free.stop] = (turn * Rotation.from_quat(q[:, free.start + 3 : free.stop])).as_quat()
    one, other = (sy.retarget(motion, humanoid, arms).motion.q
                  for motion in (clip, sy.Motion(clip.skeleton, q, clip.fps)))  # fmt: skip
    np.testing.assert_allclose(other, one, atol=1e-6)


def test_a_single_arm_follows_by_its_roles(clip):
    """An arm of hinges without names takes over the arm that its user names."""
    arm = sy.bundled("arm7")
    named = arm.with_roles({"right_upper_arm": "joint3", "right_elbow": "joint4", "right_wrist": "joint7"})
    answer = sy.retarget(clip, named)
    assert {part.role for part in answer.parts} == {"right_upper_arm", "right_lower_arm", "right_hand"}
    assert moving_joints(answer.motion)
    lower, upper = answer.motion.skeleton.limits
    assert (answer.motion.q >= lower - 1e-9).all()
    assert (answer.motion.q <= upper + 1e-9).all()


def test_a_judge_that_compared_nothing_is_not_pleased(humanoid, clip):
    """Of two bodies that share the hips alone, no bone has a direction."""
    found = sy.judge(clip, clip, {"hips": ("hips", "hips")})
    assert found.verdict == "look"
    assert any(one.cause == "part" for one in found.findings)


def test_an_unlikely_rest_pose_of_the_target_is_told(humanoid, clip):
    limbs = [("upper_leg", "upper_arm"), ("lower_leg", "lower_arm"), ("foot", "hand")]
    known = {"hips": ("hips", "chest")}
    for side in ("left", "right"):  # arms taken for legs, and legs for arms
        for pair in limbs:
            known |= {f"{side}_{a}": (f"{side}_{a}", f"{side}_{b}") for a, b in (pair, pair[::-1])}
    answer = sy.retarget(clip, humanoid, known)
    assert answer.target_rest.certainty < 0.5
    assert [one.level for one in answer.findings if "rest pose of the target" in one.text] == ["look"]
    assert not any("rest pose of the target" in one.text for one in sy.retarget(clip, humanoid).findings)


def test_four_legs_are_told_beside_two(clip):
    """An animal by any names, whose fore legs have the roles of arms or their own."""
    animal = sy.bundled("quadruped")
    fore = {"upper_arm": "fore_upper_leg", "lower_arm": "fore_lower_leg", "hand": "fore_paw",
            "upper_leg": "hind_upper_leg", "lower_leg": "hind_lower_leg", "foot": "hind_paw"}  # fmt: skip
    bare = animal.with_joints(dataclasses.replace(joint, role=None) for joint in animal.joints)
    named = bare.with_roles(
        {f"{side}_{role}": animal.roles[f"{side}_{own}"] for side in ("left", "right") for role, own in fore.items()}
    )
    for body in (animal, named):
        answer = sy.retarget(clip, body)
        assert answer.verdict != "good"
        assert any(one.cause == "four legs" for one in answer.findings)


def _one_name(body):
    """Return a body all of whose joints have one name, and no roles."""
    joints = [
        dataclasses.replace(joint, name="bone", role=None, parent=parent if parent >= 0 else None)
        for joint, parent in zip(body.joints, body.parents, strict=True)
    ]
    return sy.Skeleton(joints, name="one name", up=body.up)


def test_a_saved_map_is_read_back_where_names_repeat(humanoid, clip, tmp_path):
    body = _one_name(humanoid)
    named = sy.retarget(clip, humanoid).joint_map()
    rows = {role: (source, humanoid.index(target)) for role, (source, target) in named.items()}
    answer = sy.retarget(clip, body, rows)
    assert answer.joint_map() == rows  # rows of the body that was given, whatever was added above its root
    assert "bone" in answer.report()
    path = tmp_path / "map.toml"
    sy.formats.write_map(answer.joint_map(), path)
    assert sy.formats.read_map(path) == rows
    again = sy.retarget(clip, body, sy.formats.read_map(path))
    np.testing.assert_array_equal(again.motion.q, answer.motion.q)
    sy.formats.write_map(draft_to_save(clip.skeleton, body, rows), path, force=True)
    assert sy.formats.read_map(path).items() >= rows.items()


def test_errors_on_maps_say_what_to_do(humanoid, clip, tmp_path):
    path = tmp_path / "map.toml"
    sy.formats.write_map({role: (role, "") for role in NEEDED}, path)
    with pytest.raises(FormatError, match=r"without parts.*remove the #"):
        sy.formats.read_map(path)
    path.write_text('schema = "synovia.map/1"\n[joints]\nhips = ["hips", ""]\n', encoding="utf-8")
    with pytest.raises(FormatError, match=r"'hips': expected a joint of the target.*Fill in the empty name"):
        sy.formats.read_map(path)
    with pytest.raises(InputError, match=r"sy\.formats\.read_map\(path\) reads a file"):
        sy.retarget(clip, humanoid, "map.toml")
    with pytest.raises(InputError, match=r"the map has only hips.*Add a limb of two joints, such as left_upper_arm"):
        sy.retarget(clip, sy.bundled("arm7"), {"hips": ("hips", 0)})


def test_a_map_of_few_limbs_is_never_good(humanoid, clip):
    """The hips and thighs of a body that ends at its knees: two bones are compared, and no foot."""
    kept = ["hips", *(f"{side}_{part}_leg" for side in ("left", "right") for part in ("upper", "lower"))]
    joints = [
        dataclasses.replace(humanoid.joint(name), parent=None if name == "hips" else humanoid.joint(name).parent)
        for name in humanoid.joint_names
        if name in kept
    ]
    stump = sy.Skeleton(joints, name="stump", up=humanoid.up)
    answer = sy.retarget(clip, stump, {name: (name, name) for name in kept})
    assert answer.verdict == "look"
    assert any("only 2 limbs could be compared" in one.text for one in answer.findings)
    assert "feet within" not in answer.report()
    assert "feet within" in sy.retarget(clip, humanoid).report()


def test_a_part_of_a_retargeted_motion_has_its_contacts_and_misses():
    body = sy.bundled("humanoid").with_root("free")
    whole = sy.retarget(sy.load_motion("examples/walk.bvh"), body)
    whole = dataclasses.replace(whole, missed_frames=(3, 30, 33))
    part = whole[20:60]
    assert np.array_equal(part.motion.q, whole.motion.q[20:60])
    assert np.array_equal(part.original.q, whole.original.q[20:60])
    assert part.missed_frames == (10, 13)
    for role, spans in whole.contacts.items():
        inside = {frame - 20 for first, end in spans for frame in range(first, end) if 20 <= frame < 60}
        assert {frame for first, end in part.contacts[role] for frame in range(first, end)} == inside
    assert part.verdict in ("good", "look")
    assert whole[59::-1].verdict in ("good", "look")
