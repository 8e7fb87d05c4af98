"""Joint values of MuJoCo and Pinocchio: the same world frames on both sides, for every kind of joint."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError, UnsupportedError
from synovia.io.load import load_model
from synovia.model.geometry import frames_to_transforms

mujoco = pytest.importorskip("mujoco")
pinocchio = pytest.importorskip("pinocchio")
NEAR = 1e-9  # metres, and of the entries of rotations

MJCF = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="crate" pos="1 2 3" euler="0.3 0.2 0.1"><freejoint name="drop"/><geom size="0.1"/></body>
  <body name="pelvis" pos="0 0 0.8" quat="0.6 0 0.8 0"><freejoint/><geom size="0.1"/>
    <body name="z_leg" pos="0 0.1 -0.1"><joint name="hip" axis="0 1 0" ref="0.4"/><geom size="0.1"/>
      <body pos="0.1 0 -0.3"><joint axis="1 1 0"/><joint name="lift" type="slide" axis="0 0 1" ref="0.1"/>
        <geom size="0.1"/></body></body>
    <body name="a_arm" pos="0 0.1 0.4"><joint name="shoulder" type="ball" pos="0 0 0.05"/><geom size="0.1"/>
      <body name="hand" pos="0.3 0 0"><joint name="wrist" axis="0 0 1" pos="0.1 0 0"/><geom size="0.1"/></body></body>
  </body></worldbody></mujoco>"""

LINK = '<link name="{}"/>'
JOINT = (
    '<joint name="{name}" type="{type}"><parent link="{a}"/><child link="{b}"/><origin xyz="0.1 0.2 0.3" rpy="1 2 3"/>'
    '<axis xyz="{axis}"/>{more}</joint>'
)
LIMIT = '<limit lower="-1" upper="2" effort="1" velocity="1"/>'
URDF = (
    '<robot name="r">'
    + "".join(LINK.format(name) for name in "abcdefghi")
    + JOINT.format(name="z_turn", type="continuous", a="a", b="b", axis="0 1 1", more="")
    + JOINT.format(name="m_slide", type="prismatic", a="a", b="c", axis="1 0 0", more=LIMIT)
    + JOINT.format(name="b_plane", type="planar", a="b", b="d", axis="0 0 1", more="")
    + JOINT.format(name="a_turn", type="revolute", a="b", b="e", axis="1 0 0", more=LIMIT)
    + JOINT.format(name="c_follow", type="revolute", a="e", b="f", axis="0 1 0",
                   more=LIMIT + '<mimic joint="a_turn" multiplier="-0.5" offset="0.1"/>')
    + JOINT.format(name="q_fixed", type="fixed", a="a", b="g", axis="0 1 0", more="")
    + JOINT.format(name="y_turn", type="revolute", a="g", b="h", axis="0 0 1", more=LIMIT)
    + JOINT.format(name="k_float", type="floating", a="c", b="i", axis="0 0 1", more="")
    + "</robot>"
)  # fmt: skip


STIFF = URDF.replace("planar", "continuous").replace("floating", "continuous")


def load(folder: Path, text: str, name: str) -> sy.Skeleton:
    path = folder / name
    path.write_text(text)
    return sy.load_skeleton(path)


def some_pose(skeleton: sy.Skeleton, seed: int) -> sy.Pose:
    """Return a random pose with free joints anywhere."""
    rng = np.random.default_rng(seed)
    q = skeleton.random_pose(seed).q.copy()
    for row, joint in enumerate(skeleton.joints):
        if joint.kind is sy.Kind.FREE:
            values = rng.normal(size=7)
            values[3:] /= np.linalg.norm(values[3:])
            q[skeleton.q_slice(row)] = values
        elif joint.kind is sy.Kind.SLIDE and joint.limit is None:
            q[skeleton.q_slice(row)] = rng.normal()
    return sy.Pose(skeleton, skeleton.follow(q))


def check_mujoco(model: Any, skeleton: sy.Skeleton, which: Any, seed: int = 1) -> None:
    """Compare the frames of all bodies with those of MuJoCo, one way and back."""
    pose = some_pose(skeleton, seed)
    data = mujoco.MjData(model)
    data.qpos[:] = qpos = sy.to_qpos(pose, which)
    mujoco.mj_kinematics(model, data)
    compared = 0
    for row, joint in enumerate(skeleton.joints):
        body = -1 if joint.body is None else mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, joint.body)
        inner = any(skeleton.joints[child].body == joint.body for child in skeleton.children[row])
        if body > 0 and not inner:
            here = frames_to_transforms(pose.frames[row])
            np.testing.assert_allclose(here[:3, 3], data.xpos[body], atol=NEAR)
            np.testing.assert_allclose(here[:3, :3], data.xmat[body].reshape(3, 3), atol=NEAR)
            compared += 1
    assert compared > 2
    back = sy.from_qpos(skeleton, qpos, which)
    np.testing.assert_allclose(back.frames, pose.frames, atol=NEAR)


def check_pinocchio(model: Any, skeleton: sy.Skeleton, which: Any, seed: int = 1) -> None:
    """Compare the frames of all links with those of Pinocchio, one way and back."""
    pose = some_pose(skeleton, seed)
    q = sy.to_qpos(pose, which)
    assert q.shape == (model.nq,)
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, q)
    for row, joint in enumerate(skeleton.joints):
        if joint.body is not None:
            place = data.oMf[model.getFrameId(joint.body, pinocchio.FrameType.BODY)].homogeneous
            np.testing.assert_allclose(frames_to_transforms(pose.frames[row]), place, atol=NEAR)
    back = sy.from_qpos(skeleton, q, which)
    np.testing.assert_allclose(back.frames, pose.frames, atol=NEAR)


@pytest.mark.parametrize("seed", range(5))
def test_mujoco_has_every_body_at_the_same_place(tmp_path: Path, seed: int) -> None:
    skeleton = load(tmp_path, MJCF, "robot.xml")
    model = mujoco.MjModel.from_xml_string(MJCF)
    check_mujoco(model, skeleton, model, seed)
    check_mujoco(model, skeleton, "mujoco", seed)


@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(5))
def test_pinocchio_has_every_link_at_the_same_place(tmp_path: Path, root: str, seed: int) -> None:
    skeleton = load(tmp_path, URDF, "robot.urdf").with_root(root)
    model = pinocchio.buildModelFromXML(URDF, *([pinocchio.JointModelFreeFlyer()] if root == "free" else []))
    check_pinocchio(model, skeleton, model, seed)
    check_pinocchio(model, skeleton, "pinocchio", seed)


def test_a_urdf_in_mujoco_is_the_same_robot(tmp_path: Path) -> None:
    text = STIFF
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = text.replace('"/><link', f'">{inertia}</link><link').replace(
        '<link name="i"/>', f'<link name="i">{inertia}</link>'
    )
    extra = '<mujoco><compiler fusestatic="false"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(text.replace('<robot name="r">', '<robot name="r">' + extra))
    check_mujoco(model, load(tmp_path, text, "robot.urdf"), model)


@pytest.mark.parametrize(
    "name", ["robot/panda.urdf", "robot/g1_29dof.urdf", "robot/frankie.urdf", "hands/shadow_hand_left.urdf"]
)
@pytest.mark.parametrize("root", ["fixed", "free"])
def test_real_robots_in_pinocchio(shared_data: Path, name: str, root: str) -> None:
    path = shared_data / name
    skeleton = load_model(path).with_root(root)
    model = pinocchio.buildModelFromUrdf(str(path), *([pinocchio.JointModelFreeFlyer()] if root == "free" else []))
    check_pinocchio(model, skeleton, model)
    check_pinocchio(model, skeleton, "pinocchio")


@pytest.mark.parametrize("name", ["g1_menagerie_nomesh", "ur5e_nomesh", "xarm7_hand_nomesh"])
def test_real_robots_in_mujoco(shared_data: Path, name: str) -> None:
    path = shared_data / "robot" / f"{name}.xml"
    skeleton, model = load_model(path), mujoco.MjModel.from_xml_path(str(path))
    check_mujoco(model, skeleton, model)
    check_mujoco(model, skeleton, "mujoco")


def test_mimic_joints_may_be_in_the_model_or_not(tmp_path: Path) -> None:
    text = STIFF
    skeleton = load(tmp_path, text, "robot.urdf")
    model = pinocchio.buildModelFromXML(text, mimic=True)
    assert model.nq == skeleton.nq + 2  # one joint is not there, three continuous ones have two numbers
    pose = some_pose(skeleton, 3)
    q = sy.to_qpos(pose, model)
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, q)
    place = data.oMf[model.getFrameId("f", pinocchio.FrameType.BODY)].homogeneous
    np.testing.assert_allclose(pose.transform("f"), place, atol=NEAR)
    np.testing.assert_allclose(sy.from_qpos(skeleton, q, model).frames, pose.frames, atol=NEAR)
    plain = pinocchio.buildModelFromXML(text)
    values = np.tile(sy.to_qpos(pose, plain), (2, 1))
    at = plain.joints[plain.getJointId("c_follow")].idx_q
    values[1, at] += 0.25
    motion = sy.from_qpos(skeleton, values, plain, fps=10)
    np.testing.assert_allclose(motion.q[0], motion.q[1], atol=NEAR)
    assert motion.notes == ("Mimic joints follow their leaders; values of 'c_follow', up to 0.25 away, were not kept.",)
    with pytest.warns(UserWarning, match="values of 'c_follow', up to 0.25 away, were not kept") as caught:
        one = sy.from_qpos(skeleton, values[1], plain)
    assert len(caught) == 1
    assert np.array_equal(one.q, motion.q[1])
    short = sy.from_qpos(skeleton, np.tile(q, (2, 1)), model, fps=10)  # without values of the follower
    assert short.notes == ()


def test_an_equality_of_mujoco_that_is_not_kept_is_told(tmp_path: Path) -> None:
    text = """<mujoco><worldbody><body name="A"><joint name="a" axis="0 1 0"/><geom size=".05"/>
      <body name="B" pos=".1 0 0"><joint name="b" axis="0 1 0"/><geom size=".05"/></body></body></worldbody>
      <equality><joint joint1="b" joint2="a" polycoef="0.1 2 0 0 0"/></equality></mujoco>"""
    skeleton, model = load(tmp_path, text, "two.xml"), mujoco.MjModel.from_xml_string(text)
    with pytest.warns(UserWarning, match="values of 'b', up to 1.2 away"):
        assert sy.from_qpos(skeleton, [0.2, -0.7], model)["b"] == pytest.approx(0.5)
    assert sy.from_qpos(skeleton, [0.2, 0.5], model)["b"] == pytest.approx(0.5)  # as it follows: no warning


@pytest.mark.parametrize("model", ["mujoco", "pinocchio"])
def test_only_poses_and_motions_are_converted(model: str) -> None:
    arm = sy.bundled("arm7")
    solution = sy.solve(arm, sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
    with pytest.raises(InputError, match=r"content: expected a Pose or a Motion, got Solution\. Pass its \.pose"):
        sy.to_qpos(solution, model)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a Pose or a Motion, got ndarray"):
        sy.to_qpos(solution.q, model)  # type: ignore[arg-type]
    body = sy.bundled("humanoid")
    moved = sy.retarget(sy.Motion(body, [body.rest_pose().q] * 3, 30.0), body)
    with pytest.raises(InputError, match=r"expected a Pose or a Motion, got \w+\. Pass its \.motion"):
        sy.to_qpos(moved, model)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="skeleton: expected a Skeleton, got str"):
        sy.from_qpos("arm7", solution.q, model)  # type: ignore[arg-type]
    many = sy.IK(arm, sy.PositionGoal("tool")).solve_many([(np.nan,) * 3], on_error="skip")
    with pytest.raises(InputError, match="row 0 of the batch is invalid"):
        sy.to_qpos(many[0].pose, model)


def test_motions_are_converted_frame_by_frame(tmp_path: Path) -> None:
    skeleton = load(tmp_path, MJCF, "robot.xml")
    model = mujoco.MjModel.from_xml_string(MJCF)
    poses = [some_pose(skeleton, seed) for seed in range(4)]
    motion = sy.Motion(skeleton, np.array([pose.q for pose in poses]), 25.0)
    qpos = sy.to_qpos(motion, model)
    assert qpos.shape == (4, model.nq)
    for row, pose in zip(qpos, poses, strict=True):
        np.testing.assert_allclose(
            np.abs(row), np.abs(sy.to_qpos(pose, model)), atol=NEAR
        )  # quaternions may change sign
    back = sy.from_qpos(skeleton, qpos, model, fps=25.0, name="walk")
    assert (back.fps, back.name, len(back)) == (25.0, "walk", 4)
    np.testing.assert_allclose(back.frames(), motion.frames(), atol=NEAR)
    turning = load(tmp_path, URDF, "robot.urdf")
    q = np.tile(turning.rest_q, (50, 1))
    q[:, turning.q_slice("z_turn")] = np.linspace(-2.0, 9.0, 50)[:, None]
    values = sy.to_qpos(sy.Motion(turning, q, 30.0), "pinocchio")
    np.testing.assert_allclose(sy.from_qpos(turning, values, "pinocchio", fps=30.0).q, q, atol=NEAR)


def test_a_fixed_skeleton_gets_the_free_root_of_the_model(tmp_path: Path) -> None:
    skeleton = load(tmp_path, URDF, "robot.urdf")
    model = pinocchio.buildModelFromXML(STIFF, pinocchio.JointModelFreeFlyer())
    still = load(tmp_path, STIFF, "still.urdf")
    values = sy.to_qpos(still.rest_pose(), model)
    assert values[:7].tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert sy.from_qpos(still, values, model).skeleton is still
    values[:3] = (1.0, 2.0, 3.0)
    pose = sy.from_qpos(still, values, model)
    assert pose.skeleton.joints[0].kind is sy.Kind.FREE
    np.testing.assert_allclose(pose.position("a"), (1.0, 2.0, 3.0), atol=NEAR)
    np.testing.assert_allclose(sy.to_qpos(pose, model), values, atol=NEAR)
    fixed = pinocchio.buildModelFromXML(URDF)
    moved = skeleton.with_root("free").rest_pose().with_values({"root": (1, 0, 0, 0, 0, 0, 1)})
    with pytest.raises(InputError, match=r"joint 'root' moves, and the model has no such joint; .* the same root"):
        sy.to_qpos(moved, fixed)


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    skeleton = load(tmp_path, MJCF, "robot.xml")
    other = mujoco.MjModel.from_xml_string(MJCF.replace('"hip"', '"hipp"'))
    with pytest.raises(InputError, match=r"joint 'hipp' of the model is not in the skeleton.*Did you mean 'hip'"):
        sy.to_qpos(skeleton.rest_pose(), other)
    other = mujoco.MjModel.from_xml_string(MJCF.replace('"pelvis"', '"waist"'))
    with pytest.raises(InputError, match=r"body 'waist' of the model's free joint .* is not in the skeleton"):
        sy.to_qpos(skeleton.rest_pose(), other)
    other = mujoco.MjModel.from_xml_string(MJCF.replace('name="lift" type="slide"', 'name="lift" type="hinge"'))
    with pytest.raises(InputError, match=r"joint 'lift': expected HINGE as in the model, got 'SLIDE'"):
        sy.from_qpos(skeleton, np.zeros(other.nq), other)
    model = mujoco.MjModel.from_xml_string(MJCF)
    qpos = sy.to_qpos(skeleton.rest_pose(), model)
    with pytest.raises(InputError, match=r"qpos: expected shape .*and fps"):
        sy.from_qpos(skeleton, qpos[None], model)
    with pytest.raises(InputError, match="qpos"):
        sy.from_qpos(skeleton, qpos[1:], model)
    with pytest.raises(InputError, match="qpos of joint 'drop': expected a unit quaternion"):
        sy.from_qpos(skeleton, np.zeros(model.nq), model)
    with pytest.raises(InputError, match="model: expected a MjModel"):
        sy.to_qpos(skeleton.rest_pose(), "bullet")
    with pytest.raises(InputError, match="model: expected a MjModel"):
        sy.to_qpos(skeleton.rest_pose(), 3)
    tilted = load(tmp_path, URDF.replace('"planar"', '"planar" ', 1), "robot.urdf")
    assert sy.to_qpos(tilted.rest_pose(), "pinocchio").shape == (tilted.nq + 2,)
    text = URDF.replace('<child link="d"/><origin xyz="0.1 0.2 0.3" rpy="1 2 3"/><axis xyz="0 0 1"/>',
                        '<child link="d"/><axis xyz="0 1 0"/>')  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"joint 'b_plane' does not move in the xy plane"):
        sy.to_qpos(load(tmp_path, text, "tilted.urdf").rest_pose(), "pinocchio")
