"""Motions as robot learners' programs write and read them: archives for trackers, Unitree's tables, AMASS."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from archives import read_archive
from cli_runs import run
from synovia.errors import FormatError, UnsupportedError
from synovia.io.smpl.model import NAMES
from synovia.io.unitree import read_unitree

# A base that is turned and shifted below the first link, and two limbs, so that the orders of joints differ.
URDF = """<robot name="two">
<link name="world_link"/><link name="base"/><link name="arm1"/><link name="arm2"/><link name="leg1"/><link name="leg2"/>
<link name="camera"/>
<joint name="mount" type="fixed"><parent link="base"/><child link="camera"/><origin xyz="0.1 0 0.2"/></joint>
{joints}</robot>"""
_JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="{3}" rpy="0.3 0 1"/>
<axis xyz="{4}"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>"""
JOINTS = "".join(
    _JOINT.format(*values)
    for values in (
        ("a1", "base", "arm1", "0.1 0.2 0.3", "1 0 0"),
        ("a2", "arm1", "arm2", "0 0.5 0", "0 1 0"),
        ("l1", "base", "leg1", "0.2 -0.3 0", "0 0 1"),
        ("l2", "leg1", "leg2", "0.4 0.1 0", "0 1 0"),
    )
)
MODELS = {
    "first link": URDF.replace('<link name="world_link"/>', "").format(joints=JOINTS),
    "inner link": URDF.format(
        joints='<joint name="fix" type="fixed"><parent link="world_link"/><child link="base"/></joint>' + JOINTS
    ),
}


@pytest.fixture(params=sorted(MODELS))
def robot(request, tmp_path):
    path = tmp_path / "two.urdf"
    path.write_text(MODELS[request.param], encoding="utf-8")
    return sy.load_skeleton(path)


def walk(robot, frames=40, fps=50.0):
    """Return a smooth motion of a robot, its root included."""
    body = robot.with_root("free")
    rng = np.random.default_rng(5)
    t = np.arange(frames)[:, None] / fps
    q = np.tile(body.rest_q, (frames, 1))
    q[:, 7:] = np.sin(2.0 * t + rng.uniform(0, 6, body.nq - 7)) * 0.8
    q[:, :3] = t * (0.3, 0.1, 0.0) + (0, 0, 0.7)
    q[:, 3:7] = Rotation.from_rotvec(t * (0.2, 0.5, 1.5)).as_quat()
    return sy.Motion(body, q, fps, name="walk")


@pytest.mark.parametrize("ending", ["isaac.npz", "mujoco.npz", "unitree.csv"])
def test_motions_of_robots_come_back(tmp_path, robot, ending):
    motion = walk(robot, fps=30.0)
    path = tmp_path / f"walk.{ending}"
    sy.save_motion(motion, path)
    again = sy.load_motion(path, skeleton=robot)
    np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-6)
    assert (again.name, again.fps) == ("walk", 30.0)


@pytest.mark.parametrize("ending", ["isaac.npz", "mujoco.npz", "unitree.csv"])
def test_a_robot_whose_base_stays_keeps_it_fixed(tmp_path, robot, ending):
    q = np.stack([robot.random_pose(seed).q for seed in range(5)])
    path = tmp_path / f"arm.{ending}"
    sy.save_motion(sy.Motion(robot, q, 30.0), path)
    again = sy.load_motion(path, skeleton=robot)
    assert again.skeleton is robot
    np.testing.assert_allclose(again.q, q, atol=1e-6)
    floats = robot.with_root("free")
    assert sy.load_motion(path, skeleton=floats).skeleton is floats


def test_archives_for_trackers_have_names_orders_and_velocities(tmp_path, robot):
    motion = walk(robot)
    sy.save_motion(motion, tmp_path / "w.isaac.npz")
    sy.save_motion(motion, tmp_path / "w.mujoco.npz")
    isaac, mujoco = (read_archive(tmp_path / f"w.{kind}.npz") for kind in ("isaac", "mujoco"))
    base = ["base"] if motion.skeleton.joints[1].body == "base" else ["world_link"]
    assert isaac["joint_names"].tolist() == ["a1", "l1", "a2", "l2"]
    assert isaac["body_names"].tolist() == [*base, "arm1", "leg1", "arm2", "leg2"]
    assert mujoco["joint_names"].tolist() == ["a1", "a2", "l1", "l2"]
    for frame in (0, 7, 39):
        pose = motion.pose(frame)
        quat = np.roll(isaac["body_quat_w"][frame, 3], -1)
        assert (pose.rotation("arm2").inv() * sy.Rotation.from_quat(quat)).magnitude() < 1e-6
        np.testing.assert_allclose(isaac["body_pos_w"][frame, 3], pose.position("arm2"), atol=1e-6)
    # the same motion in much finer steps around frame 7
    step, t = 1e-5, 7 / 50.0
    early, late = (walk(robot, frames=2, fps=1.0 / time).pose(1) for time in (t - step, t + step))
    linear = (late.position("leg2") - early.position("leg2")) / (2 * step)
    angular = (late.rotation("leg2") * early.rotation("leg2").inv()).as_rotvec() / (2 * step)
    np.testing.assert_allclose(isaac["body_lin_vel_w"][7, 4], linear, atol=5e-3)
    np.testing.assert_allclose(isaac["body_ang_vel_w"][7, 4], angular, atol=5e-3)
    np.testing.assert_allclose(isaac["joint_vel"][7], np.gradient(isaac["joint_pos"], axis=0)[7] * 50, atol=1e-4)


def test_a_single_frame_has_no_velocities(tmp_path, robot):
    motion = walk(robot, frames=1)
    sy.save_motion(motion, tmp_path / "one.isaac.npz")
    arrays = read_archive(tmp_path / "one.isaac.npz")
    for name in ("joint_vel", "body_lin_vel_w", "body_ang_vel_w"):
        np.testing.assert_array_equal(arrays[name], 0.0)
    again = sy.load_motion(tmp_path / "one.isaac.npz", skeleton=robot)
    np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-6)


@pytest.mark.parametrize("kind", ["isaac", "mujoco"])
def test_archives_without_names_find_their_order(tmp_path, robot, kind):
    motion = walk(robot)
    sy.save_motion(motion, tmp_path / f"w.{kind}.npz")
    arrays = read_archive(tmp_path / f"w.{kind}.npz")
    del arrays["joint_names"], arrays["body_names"]
    np.savez(tmp_path / "bare.npz", **arrays)
    again = sy.load_motion(tmp_path / "bare.npz", skeleton=robot)
    np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-6)


def test_other_kinds_of_archives(tmp_path, robot):
    motion = walk(robot)
    sy.save_motion(motion, tmp_path / "w.isaac.npz")
    arrays = read_archive(tmp_path / "w.isaac.npz")
    amp = {
        "fps": np.array(50),
        "dof_names": arrays["joint_names"][::-1],
        "body_names": arrays["body_names"],
        "dof_positions": arrays["joint_pos"][:, ::-1],
        "body_positions": arrays["body_pos_w"],
        "body_rotations": arrays["body_quat_w"],
    }
    np.savez(tmp_path / "amp.npz", **amp)
    base = np.concatenate([arrays["body_pos_w"][:, 0], arrays["body_quat_w"][:, 0]], axis=1)
    arrays["joint_pos"] = np.concatenate([base, arrays["joint_pos"]], axis=1)
    np.savez(tmp_path / "holo.npz", **arrays)
    for name in ("amp.npz", "holo.npz"):
        again = sy.load_motion(tmp_path / name, skeleton=robot)
        np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint_names": np.array(["a1", "l1", "b2", "l2"])}, "'b2' is not of this model"),
        ({"joint_names": np.array(["a2", "l2", "a1", "l1"])}, "positions of bodies do not match the model"),
        ({"body_names": np.array(["x", "y", "z", "u", "v"])}, "lacks the base"),
        ({"body_quat_w": np.zeros((40, 5, 4))}, "no unit quaternions"),
        ({"body_pos_w": np.zeros((40, 4, 3))}, "do not fit each other"),
        ({"joint_pos": np.array(1.0)}, "do not fit each other"),
        ({"joint_pos": np.full((40, 4), np.nan)}, "not finite"),
        ({"joint_pos": np.zeros((40, 3))}, "file has 3 joints"),
        ({"fps": np.array([-1.0])}, "the frame rate cannot be used"),
        ({"fps": np.array(["fifty"])}, "has no numbers"),
        ({"joint_pos": np.array([{}], dtype=object)}, "Pickled"),
    ],
)
def test_wrong_archives(tmp_path, robot, change, message):
    sy.save_motion(walk(robot), tmp_path / "w.isaac.npz")
    arrays = read_archive(tmp_path / "w.isaac.npz") | change
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(FormatError, match=message):
        sy.load_motion(tmp_path / "bad.npz", skeleton=robot)


def test_tables_in_unitrees_order(tmp_path, robot):
    motion = walk(robot, frames=3)
    path = tmp_path / "walk.csv"
    with pytest.warns(UserWarning, match="cannot hold the rate of 50 frames per second"):
        sy.save_motion(motion, tmp_path / "walk.unitree.csv")
    assert read_unitree(tmp_path / "walk.unitree.csv", robot, fps=50.0).fps == 50.0
    path.write_bytes((tmp_path / "walk.unitree.csv").read_bytes())
    rows = np.loadtxt(path, delimiter=",")
    assert rows.shape == (3, 11)
    np.testing.assert_allclose(rows[:, :3], motion.q[:, :3], atol=1e-12)
    np.testing.assert_allclose(rows[:, 3:7] * np.sign(rows[:, 6:7]), motion.q[:, 3:7], atol=1e-12)
    np.testing.assert_allclose(sy.load_motion(path, skeleton=robot).q[:, 7:], motion.q[:, 7:])
    text = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n\n".join(text), encoding="utf-8")  # blank lines are passed over
    assert len(sy.load_motion(path, skeleton=robot)) == 3
    for bad, message in (
        ([text[0] + ",1", *text[1:]], "line 1: row has 12 numbers"),
        ([text[0], "x" + text[1]], "line 2: line is not a row"),
        ([text[0], ",".join(["nan"] * 11)], "line 2"),
        ([text[0], ",".join(["0.5"] * 2 + ["0"] * 9)], "row 2: columns 4 to 7"),
    ):
        path.write_text("\n".join(bad), encoding="utf-8")
        with pytest.raises(FormatError, match=message):
            sy.load_motion(path, skeleton=robot)


def test_bodies_of_balls_are_refused(tmp_path):
    motion = sy.Motion(sy.bundled("humanoid"), [sy.bundled("humanoid").rest_q], 30.0)
    for ending in ("isaac.npz", "unitree.csv"):
        with pytest.raises(UnsupportedError, match="Retarget the clip"):
            sy.save_motion(motion, tmp_path / f"a.{ending}")
    assert not list(tmp_path.iterdir())


def test_commands_take_and_make_these_files(tmp_path, robot):
    model = str(tmp_path / "two.urdf")
    sy.save_motion(walk(robot, fps=30.0), tmp_path / "w.npz")
    done = run("convert", str(tmp_path / "w.npz"), str(tmp_path / "w.isaac.npz"))
    assert done.code == 0, done.err
    done = run("convert", str(tmp_path / "w.isaac.npz"), str(tmp_path / "w.unitree.csv"))
    assert done.code == 3
    assert "--model" in done.err
    done = run("convert", str(tmp_path / "w.isaac.npz"), str(tmp_path / "w.unitree.csv"), "--model", model)
    assert done.code == 0, done.err
    again = sy.load_motion(tmp_path / "w.unitree.csv", skeleton=model)
    np.testing.assert_allclose(again.positions(), walk(robot, fps=30.0).positions(), atol=1e-6)


def test_lafan1_of_g1_has_the_order_of_its_model(tmp_path, shared_data):
    g1 = sy.load_skeleton(shared_data / "robot" / "g1_29dof.urdf")
    motion = walk(g1, frames=5, fps=30.0)
    sy.save_motion(motion, tmp_path / "w.isaac.npz")
    arrays = read_archive(tmp_path / "w.isaac.npz")
    assert arrays["body_names"][0] == "pelvis"
    assert arrays["body_pos_w"].shape == (5, 30, 3)
    first = ("left_hip_pitch", "right_hip_pitch", "waist_yaw", "left_hip_roll", "right_hip_roll", "waist_roll")
    assert arrays["joint_names"][:6].tolist() == [f"{name}_joint" for name in first]
    sy.save_motion(sy.Motion(motion.skeleton, motion.q, 30.0), tmp_path / "w.unitree.csv")
    assert np.loadtxt(tmp_path / "w.unitree.csv", delimiter=",").shape == (5, 36)


def parents_of(count):
    """Return the parents of the joints of an SMPL model with so many joints."""
    body = {"pelvis": None, "left_hip": "pelvis", "right_hip": "pelvis", "spine1": "pelvis", "neck": "spine3"}
    body |= {"left_collar": "spine3", "right_collar": "spine3", "head": "neck", "spine2": "spine1", "spine3": "spine2"}
    chains = (("hip", "knee", "ankle", "foot"), ("collar", "shoulder", "elbow", "wrist", "hand"))
    for side in ("left", "right"):
        for chain in chains:
            body |= {f"{side}_{b}": f"{side}_{a}" for a, b in pairwise(chain)}
    body |= {"jaw": "head", "left_eye": "head", "right_eye": "head"}
    names = NAMES[count]
    for name in names:
        if name not in body:
            body[name] = f"{name.split('_')[0]}_wrist" if name[-1] == "1" else f"{name[:-1]}{int(name[-1]) - 1}"
    return [-1 if body[name] is None else names.index(body[name]) for name in names]


def smpl(path, count, **change):
    """Write a file of the form of an SMPL model; return its joints at a shape."""
    rng = np.random.default_rng(count)
    vertices, directions = rng.normal(size=(90, 3)), 0.1 * rng.normal(size=(90, 3, 16))
    regressor = rng.random((count, 90))
    regressor /= regressor.sum(axis=1, keepdims=True)
    table = np.array([[2**32 - 1, *parents_of(count)[1:]], range(count)], np.uint32)
    arrays = {"v_template": vertices, "shapedirs": directions, "J_regressor": regressor, "kintree_table": table}
    np.savez(path, **(arrays | {"part2num": np.array({"a": 1}, dtype=object)} | change))
    return lambda betas: regressor @ (vertices + directions @ betas)


def amass(path, count, frames=6, **change):
    """Write a file of the form of an AMASS clip; return its arrays."""
    rng = np.random.default_rng(count + 1)
    arrays = {
        "trans": rng.normal(size=(frames, 3)),
        "gender": np.array("female"),
        "mocap_framerate": np.array(120.0),
        "betas": rng.normal(size=16),
        "dmpls": rng.normal(size=(frames, 8)),
        "poses": rng.normal(size=(frames, 3 * count)),
    } | change
    np.savez(path, **arrays)
    return arrays


@pytest.mark.parametrize("count", sorted(NAMES))
def test_clips_of_amass(tmp_path, count):
    joints = smpl(tmp_path / "SMPL.npz", count)
    clip = amass(tmp_path / "clip.npz", count)
    motion = sy.load_motion(tmp_path / "clip.npz", skeleton=tmp_path / "SMPL.npz")
    assert (motion.fps, motion.skeleton.up, motion.skeleton.joint_names) == (120.0, "z", NAMES[count])
    assert motion.notes == ("Arrays that were not read: 'gender', 'dmpls'.",)
    places, parents = joints(clip["betas"]), parents_of(count)
    turns = Rotation.from_rotvec(clip["poses"].reshape(-1, 3)).as_matrix().reshape(-1, count, 3, 3)
    for frame in range(len(motion)):  # the forward kinematics of SMPL, written down again
        found: list[tuple] = []
        for joint, parent in enumerate(parents):
            turn, place = found[parent] if joint else (np.eye(3), np.zeros(3))
            found.append(
                (turn @ turns[frame, joint], place + turn @ (places[joint] - (places[parent] if joint else 0)))
            )
        want = np.array([place for _, place in found]) + clip["trans"][frame]
        np.testing.assert_allclose(motion.pose(frame).positions, want, atol=1e-12)
    other = sy.load_skeleton(tmp_path / "SMPL.npz")  # the mean shape, for those who want it
    assert not np.allclose(other.lengths, motion.skeleton.lengths)
    place = (joints(np.zeros(16))[15] @ np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])).tolist()
    np.testing.assert_allclose(other.rest_pose().position("head"), place, atol=1e-12)


def test_clips_of_one_smpl_model_on_another_keep_the_body(tmp_path):
    smpl(tmp_path / "SMPL.npz", 24)
    amass(tmp_path / "clip.npz", 52)
    small = sy.load_motion(tmp_path / "clip.npz", skeleton=tmp_path / "SMPL.npz")
    smpl(tmp_path / "SMPLH.npz", 52)
    whole = sy.load_motion(tmp_path / "clip.npz", skeleton=tmp_path / "SMPLH.npz")
    for name in NAMES[24][:22]:
        turn = small.pose(3).rotation(name).inv() * whole.pose(3).rotation(name)
        assert turn.magnitude() < 1e-12
    assert whole.notes == ("Arrays that were not read: 'gender', 'dmpls'.",)
    hands = "'left_index1', 'left_index2', 'left_index3', 'left_middle1' and 26 more"
    assert small.notes == (
        "Joints without values in the file stay at rest: 'left_hand', 'right_hand'.",
        f"Rotations of joints that the model lacks were not kept: {hands}.",
        "Arrays that were not read: 'gender', 'dmpls'.",
    )


@pytest.mark.parametrize(
    ("model", "clip", "message"),
    [
        ({"kintree_table": np.zeros((2, 24), np.uint32)[:, :23]}, {}, "not those of SMPL"),
        ({"kintree_table": np.full((2, 24), 5, np.uint32)}, {}, "parent of joint 1: expected a joint before it"),
        ({"kintree_table": np.full((2, 24), np.nan)}, {}, "'kintree_table' has numbers that are not finite"),
        ({"kintree_table": np.full((2, 24), 0.5)}, {}, "parent of joint 1: .*got 0.5"),
        ({"J_regressor": np.array(1.0)}, {}, "not those of SMPL"),
        ({"J_regressor": np.array([{}], dtype=object)}, {}, "Pickled"),
        ({"v_template": np.full((90, 3), np.nan)}, {}, "'v_template' has numbers that are not finite"),
        ({"v_template": np.full((90, 3), 1e300)}, {}, "positions of joints are not finite"),
        ({"shapedirs": np.full((90, 3, 16), 0x7F800001, np.uint32).view(np.float32)}, {}, "not finite"),  # a signal
        ({}, {"poses": np.zeros((6, 70))}, "do not fit each other"),
        ({}, {"poses": np.full((6, 72), np.inf)}, "poses"),
        ({}, {"betas": np.full(16, np.nan)}, "betas"),
        ({}, {"mocap_framerate": np.array("fast")}, "mocap_framerate"),
        ({}, {"trans": np.zeros((5, 3))}, "do not fit each other"),
    ],
)
def test_wrong_files_of_amass(tmp_path, model, clip, message):
    smpl(tmp_path / "SMPL.npz", 24, **model)
    amass(tmp_path / "clip.npz", 24, **clip)
    with pytest.raises(FormatError, match=message):
        sy.load_motion(tmp_path / "clip.npz", skeleton=tmp_path / "SMPL.npz")


def test_what_amass_needs_is_said(tmp_path, robot):
    amass(tmp_path / "clip.npz", 52)
    with pytest.raises(FormatError, match="SMPL model"):
        sy.load_motion(tmp_path / "clip.npz")
    with pytest.raises(FormatError, match="is not an SMPL model"):
        sy.load_motion(tmp_path / "clip.npz", skeleton=robot)

    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("opened").touch, ())

    (tmp_path / "SMPL.pkl").write_bytes(pickle.dumps({"v_template": Trap()}, protocol=2))
    with pytest.raises(FormatError, match="pickle"):
        sy.load_skeleton(tmp_path / "SMPL.pkl")
    assert not (tmp_path / "opened").exists()


def test_commands_give_an_smpl_body_the_shape_of_the_clip(tmp_path):
    joints = smpl(tmp_path / "SMPL.npz", 24)
    clip = amass(tmp_path / "clip.npz", 24)
    done = run("convert", str(tmp_path / "clip.npz"), str(tmp_path / "c.npz"), "--model", str(tmp_path / "SMPL.npz"))
    assert done.code == 0, done.err
    motion = sy.load_motion(tmp_path / "c.npz")
    np.testing.assert_allclose(motion.pose(0).position(0), joints(clip["betas"])[0] + clip["trans"][0], atol=1e-9)
    done = run("inspect", str(tmp_path / "clip.npz"), "--model", str(tmp_path / "SMPL.npz"), "--json")
    assert done.code == 0, done.err


def test_the_page_shows_an_smpl_body_in_the_shape_of_the_clip(tmp_path, monkeypatch):
    from synovia import viewer

    smpl(tmp_path / "SMPL.npz", 24)
    amass(tmp_path / "clip.npz", 24)
    seen = []

    def view(model, goals, **options):
        seen.append((model, options["clip"]))
        raise FormatError("enough")

    monkeypatch.setattr(viewer, "view", view)
    assert run("view", str(tmp_path / "clip.npz"), "--model", str(tmp_path / "SMPL.npz"), "--no-browser").code == 3
    assert seen[0][0] is seen[0][1].skeleton
