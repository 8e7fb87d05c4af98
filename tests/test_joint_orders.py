"""Joint values in the orders and units of others: names, degrees, and controls with which MuJoCo holds a pose."""

import numpy as np
import pytest

import synovia as sy

ARM = sy.bundled("arm7")
MODEL = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0" timestep="0.002"/>
  <worldbody>
    <body name="base">
      <geom size="0.1" mass="1"/>
      <body name="upper" pos="0 0 0.2">
        <joint name="shoulder" axis="0 1 0" range="-2 2" damping="2"/>
        <geom size="0.05" mass="0.5"/>
        <body name="slide" pos="0 0 0.3">
          <joint name="lift" type="slide" axis="0 0 1" range="-0.2 0.4" damping="5"/>
          <geom size="0.05" mass="0.5"/>
          <body name="left" pos="0 0.1 0"><joint name="left" axis="1 0 0" range="-1 1" damping="0.5"/>
            <geom size="0.02" mass="0.1"/></body>
          <body name="right" pos="0 -0.1 0"><joint name="right" axis="1 0 0" range="-1 1" damping="0.5"/>
            <geom size="0.02" mass="0.1"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="split"><joint joint="left" coef="0.5"/><joint joint="right" coef="0.5"/></fixed></tendon>
  <actuator>
    <position name="lift" joint="lift" kp="200"/>
    <position name="shoulder" joint="shoulder" kp="40" gear="3"/>
    <general name="grip" tendon="split" biastype="affine" gainprm="0.4 0 0" biasprm="1 -20 -1"/>
  </actuator>
</mujoco>
"""


def test_names_degrees_and_the_way_back():
    names = ["joint5", "joint2", "joint7"]
    pose = ARM.random_pose(2)
    order = sy.skeletons.JointOrder(ARM, names, degrees=True)
    assert order.names == tuple(names)
    assert np.allclose(order.values(pose), [np.degrees(pose[name]) for name in names])
    assert np.allclose(order.values(np.stack([pose.q, pose.q]))[1], order.values(pose))
    again = order.pose(order.values(pose), start=ARM.random_pose(3))
    assert all(again[name] == pytest.approx(pose[name]) for name in names)
    assert again["joint1"] == ARM.random_pose(3)["joint1"]
    lerobot = sy.skeletons.JointOrder(ARM, "lerobot")
    assert np.allclose(lerobot.values(pose), np.degrees(pose.q))
    assert repr(lerobot) == "JointOrder('arm7', 7 values)"


@pytest.mark.parametrize("kind", [sy.Kind.HINGE, sy.Kind.SLIDE])
def test_lerobot_has_a_gripper_from_0_to_100_between_its_limits(kind):
    jaw = sy.Joint("gripper_joint", "tool", kind, axis=(0, 0, 1), limit=sy.Interval(-0.2, 1.8))
    order = sy.skeletons.JointOrder(ARM.with_joints([*ARM.joints, jaw]), "lerobot")
    for value, percent in ((-0.2, 0.0), (0.8, 50.0), (1.8, 100.0)):
        values = order.values(sy.Pose(order.skeleton, {"gripper_joint": value, "joint1": 0.5}))
        assert values[-1] == pytest.approx(percent)
        assert values[0] == pytest.approx(np.degrees(0.5))
        assert order.pose(values)["gripper_joint"] == pytest.approx(value)


def test_isaac_goes_by_breadth_and_mujoco_by_depth():
    hinge = {"kind": sy.Kind.HINGE, "axis": (0, 0, 1)}
    tree = [("a", None), ("a1", "a"), ("a2", "a1"), ("b", None), ("b1", "b")]
    body = sy.Skeleton([sy.Joint("base"), *(sy.Joint(name, above or "base", **hinge) for name, above in tree)])
    assert sy.skeletons.JointOrder(body, "isaac").names == ("a", "b", "a1", "b1", "a2")
    assert (
        sy.skeletons.JointOrder(body, "mujoco").names
        == sy.skeletons.JointOrder(body, "unitree").names
        == ("a", "a1", "a2", "b", "b1")
    )


def test_controls_hold_the_pose_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "model.xml").write_text(MODEL)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "model.xml"))
    body = sy.load_skeleton(tmp_path / "model.xml")
    order = sy.skeletons.JointOrder(body, model)
    assert order.names == ("lift", "shoulder", "grip")
    pose = sy.Pose(body, {"shoulder": 0.7, "lift": 0.15, "left": 0.3, "right": 0.3})
    data = mujoco.MjData(model)
    data.ctrl[:] = order.values(pose)
    mujoco.mj_step(model, data, 8000)
    assert np.allclose(data.qpos, sy.to_qpos(pose, model), atol=1e-4)
    with pytest.raises(sy.errors.UnsupportedError, match="grip"):
        order.pose(order.values(pose))
    with pytest.raises(sy.InputError, match="degrees"):
        sy.skeletons.JointOrder(body, model, degrees=True)


@pytest.mark.shared_data
def test_a_trajectory_is_played_by_position_actuators(shared_data):
    mujoco = pytest.importorskip("mujoco")
    path = str(shared_data / "robot/ur5e_nomesh.xml")
    model, body = mujoco.MjModel.from_xml_path(path), sy.load_skeleton(path)
    model.opt.gravity[:] = 0.0
    order = sy.skeletons.JointOrder(body, model)
    share = np.linspace(0, 1, 401)[:, None]
    share = share**3 * (10 - 15 * share + 6 * share**2)
    start = body.rest_pose().q
    motion = sy.Motion(body, start + share * 0.5 * (body.random_pose(1).q - start), fps=100)
    data, off = mujoco.MjData(model), []
    data.qpos[:] = sy.to_qpos(motion[0], model)
    steps = round(0.01 / model.opt.timestep)
    for values, pose in zip(order.values(motion), motion, strict=True):
        data.ctrl[:] = values
        mujoco.mj_step(model, data, steps)
        off.append(np.abs(data.qpos - sy.to_qpos(pose, model)).max())
    data.ctrl[:] = order.values(motion[-1])
    mujoco.mj_step(model, data, 2000)
    assert max(off) < 0.2  # the actuators lag behind what moves
    assert np.allclose(data.qpos, sy.to_qpos(motion[-1], model), atol=1e-3)


def test_motors_and_balls_are_refused(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "model.xml").write_text(
        MODEL.replace('<position name="lift" joint="lift" kp="200"/>', '<motor joint="lift"/>')
    )
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "model.xml"))
    with pytest.raises(sy.errors.UnsupportedError, match="is not a position actuator"):
        sy.skeletons.JointOrder(sy.load_skeleton(tmp_path / "model.xml"), model)
    human = sy.bundled("humanoid")
    with pytest.raises(sy.errors.UnsupportedError, match="several values"):
        sy.skeletons.JointOrder(human, ["spine"])
    with pytest.raises(sy.errors.UnsupportedError, match="hinges and slides"):
        sy.skeletons.JointOrder(human, "isaac")
    with pytest.raises(sy.InputError, match="'gazebo'"):
        sy.skeletons.JointOrder(ARM, "gazebo")
    with pytest.raises(sy.InputError, match="each joint once"):
        sy.skeletons.JointOrder(ARM, ["joint1", "joint1"])
    with pytest.raises(sy.errors.UnknownNameError, match="joint9"):
        sy.skeletons.JointOrder(ARM, ["joint9"])
    with pytest.raises(sy.InputError, match="q"):
        sy.skeletons.JointOrder(ARM, ["joint1"]).values([1.0])
    with pytest.raises(sy.InputError, match="pose"):
        sy.skeletons.JointOrder(ARM, ["joint1"]).values(human.rest_pose())
