"""The Jacobian of a pose: against differences, Pinocchio and MuJoCo."""

import numpy as np
import pytest

import synovia as sy
from shared_files import shared_data_folder
from synovia.model.geometry import rotation_between, times_exp
from trees import random_tree

STEP = 1e-6


def moved(pose: sy.Pose, column: int, size: float) -> sy.Pose:
    """The pose after a small velocity along one degree of freedom."""
    skeleton, q = pose.skeleton, pose.q.copy()
    first = np.cumsum([0, *(joint.kind.v_size for joint in skeleton.joints)])
    row = int(np.searchsorted(first, column, side="right")) - 1
    at, inside = skeleton.q_slice(row).start, column - int(first[row])
    kind = skeleton.joints[row].kind
    if kind.v_size == 1 or (kind is sy.Kind.FREE and inside < 3):
        q[at + inside] += size
    else:
        at, inside = (at + 3, inside - 3) if kind is sy.Kind.FREE else (at, inside)
        q[at : at + 4] = times_exp(q[at : at + 4], size * np.eye(3)[inside])
    return sy.Pose(skeleton, skeleton.follow(q))


def by_differences(pose: sy.Pose) -> np.ndarray:
    """The Jacobians of all joints by central differences, (joints, 6, nv); the columns of followers are zero."""
    out = np.zeros((len(pose.skeleton), 6, pose.skeleton.nv))
    for column in range(pose.skeleton.nv):
        ahead, behind = (moved(pose, column, size) for size in (STEP, -STEP))
        for row, one in enumerate(out):
            one[:3, column] = (ahead.position(row) - behind.position(row)) / (2 * STEP)
            turn = rotation_between(behind.rotation(row).as_quat(), ahead.rotation(row).as_quat())
            one[3:, column] = pose.matrix(row) @ turn / (2 * STEP)
    return out


@pytest.mark.parametrize("seed", range(6))  # three with a free root
def test_it_is_what_differences_say_for_joints_of_every_kind(seed):
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, joints=10, free=seed % 2 == 0, mimic=True)
    q = skeleton.random_pose(seed).q.copy()
    if seed % 2 == 0:
        quat = rng.normal(size=4)
        q[:7] = [*rng.normal(size=3), *(quat / np.linalg.norm(quat))]
    pose = sy.Pose(skeleton, q)
    for row, wanted in enumerate(by_differences(pose)):
        np.testing.assert_allclose(pose.jacobian(row), wanted, atol=2e-8)


def test_a_follower_moves_in_its_leaders_column_alone():
    z = (0.0, 0.0, 1.0)
    out = np.eye(4)
    out[0, 3] = 1.0
    skeleton = sy.Skeleton(
        [
            sy.Joint("lead", None, sy.Kind.HINGE, axis=z),
            sy.Joint("follow", "lead", sy.Kind.HINGE, out, z, mimic=sy.Mimic("lead", -2.0, 0.3)),
            sy.Joint("tip", "follow", rest=out),
        ]
    )
    jacobian = skeleton.rest_pose().jacobian("tip")
    assert skeleton.dof_names == ("lead", "follow")
    assert jacobian[5].tolist() == [-1.0, 0.0]
    assert not jacobian[:, 1].any()


def test_degrees_of_freedom_have_names():
    free = sy.Joint("root", None, sy.Kind.FREE)
    ball = sy.Joint("hip", "root", sy.Kind.BALL)
    twins = [sy.Joint("knee", "hip", sy.Kind.HINGE, axis=(1, 0, 0)) for _ in range(2)]
    skeleton = sy.Skeleton([free, ball, *twins, sy.Joint("end", "hip")])
    root = [f"root.{word}" for word in ("x", "y", "z", "rx", "ry", "rz")]
    hip = [f"hip.{word}" for word in ("rx", "ry", "rz")]
    assert skeleton.dof_names == (*root, *hip, "knee (joint 2)", "knee (joint 3)")
    assert len(skeleton.dof_names) == skeleton.nv == skeleton.rest_pose().jacobian("end").shape[1]


@pytest.mark.shared_data
def test_it_is_what_pinocchio_says():
    pin = pytest.importorskip("pinocchio")
    path = shared_data_folder() / "robot" / "g1_29dof.urdf"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    skeleton = sy.load_skeleton(path)
    order = [model.joints[model.getJointId(name)].idx_v for name in skeleton.dof_names]
    for seed in range(3):
        pose = skeleton.random_pose(seed)
        q = pin.neutral(model)
        for name in skeleton.dof_names:
            q[model.joints[model.getJointId(name)].idx_q] = pose[name]
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        for joint in skeleton.joints:
            frame = model.getFrameId(joint.body)
            theirs = pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[:, order]
            np.testing.assert_allclose(pose.jacobian(joint.name), theirs, atol=1e-12)


def test_it_is_what_mujoco_says(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><worldbody>
      <body name="trunk" pos="0 0 1" quat="0.9 0.1 0.3 0.2"><freejoint/><geom size="0.1"/>
        <body name="arm" pos="0.3 0.1 0" quat="0.5 0.5 -0.5 0.5"><joint name="shoulder" type="ball"/><geom size="0.1"/>
          <body name="hand" pos="0 0.4 0.1"><joint name="wrist" axis="1 2 0"/><joint name="reach" type="slide"/>
            <geom size="0.1"/></body></body></body>
    </worldbody></mujoco>"""
    path = tmp_path / "body.xml"
    path.write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    skeleton = sy.load_skeleton(path)
    rng = np.random.default_rng(0)
    turns = rng.normal(size=(2, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    free = next(joint for joint in skeleton.joints if joint.kind is sy.Kind.FREE)
    values = {free.name: [0.1, 0.2, -0.3, *turns[0]], "shoulder": turns[1], "wrist": 0.4, "reach": 0.2}
    pose = skeleton.rest_pose().with_values(values)
    at_rest = sy.Rotation.from_matrix(free.rest[:3, :3])
    data.qpos[:3] = pose.position("trunk")
    data.qpos[3:7] = np.roll(pose.rotation("trunk").as_quat(), 1)
    data.qpos[7:11] = np.roll(turns[1], 1)
    data.qpos[11:] = 0.4, 0.2
    mujoco.mj_forward(model, data)
    places, angles = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacBody(model, data, places, angles, model.body("hand").id)
    np.testing.assert_allclose(data.body("hand").xpos, pose.position("hand"), atol=1e-12)
    theirs = np.vstack([places, angles])
    theirs[:, :3] = theirs[:, :3] @ at_rest.as_matrix()  # MuJoCo moves a free joint along world axes, we from its rest
    np.testing.assert_allclose(pose.jacobian("hand"), theirs, atol=1e-12)
