"""Forward kinematics against engines that we did not write: Pinocchio on URDF, MuJoCo on MJCF."""

import random
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from shared_files import shared_data_folder
from synovia.io.load import load_skeleton
from synovia.model import Kind, Pose, Skeleton

mujoco = pytest.importorskip("mujoco")

EXACT = 1e-12  # metres, or of the distance from the origin where that is more; and entries of rotation matrices
POSES = 100


def real_files(*endings: str) -> list[Path]:
    """Files of real models; those that are made to be read with notes have tests of their own."""
    folder = shared_data_folder()
    return sorted(
        path for path in folder.rglob("*") if path.suffix in endings and folder / "reports" not in path.parents
    )


def wild_pose(skeleton: Skeleton, seed: int) -> Pose:
    """A random pose in which free joints and unlimited slides move too."""
    rng = np.random.default_rng(seed)
    q = skeleton.random_pose(seed).q.copy()
    for joint in skeleton.joints:
        place = skeleton.q_slice(skeleton.joint_names.index(joint.name))
        if joint.kind is Kind.FREE:
            quat = rng.normal(size=4)
            q[place] = [*rng.normal(size=3), *(quat / np.linalg.norm(quat))]
        elif joint.kind is Kind.SLIDE and joint.limit is None:
            q[place] = rng.normal()
    return Pose(skeleton, skeleton.follow(q))


def close(skeleton: Skeleton, pose: Pose, body: str, position: np.ndarray, rotation: np.ndarray) -> None:
    row = max(i for i, joint in enumerate(skeleton.joints) if joint.body == body)
    far = max(
        1.0, np.abs(position).max()
    )  # a slide without real limits goes a million metres, where doubles are coarser
    assert np.abs(pose.position(row) - position).max() <= EXACT * far, body
    assert np.abs(pose.matrix(row) - rotation).max() <= EXACT, body


# --- Pinocchio ------------------------------------------------------------------------------------------------------


def compare_with_pinocchio(path: Path, poses: int) -> None:
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    skeleton = load_skeleton(path)
    moving = {name for name in skeleton.joint_names if name in set(model.names)}
    links = [joint.body for joint in skeleton.joints if joint.body]
    assert len(links) == sum(frame.type == pin.FrameType.BODY for frame in model.frames)
    for seed in range(poses):
        pose = wild_pose(skeleton, seed)
        q = pin.neutral(model)
        for name in moving:
            at = model.joints[model.getJointId(name)]
            value = np.atleast_1d(pose[name])
            if at.shortname() == "JointModelPlanar":
                value = np.array([pose[f"{name}_x"], pose[f"{name}_y"], np.cos(value[0]), np.sin(value[0])])
            elif at.nq == 2:  # a hinge without limits is a point of the circle there
                value = np.array([np.cos(value[0]), np.sin(value[0])])
            q[at.idx_q : at.idx_q + at.nq] = value
        pin.framesForwardKinematics(model, data, q)
        for link in links:
            frame = data.oMf[model.getFrameId(link, pin.FrameType.BODY)]
            close(skeleton, pose, link, frame.translation, frame.rotation)


@pytest.mark.shared_data
@pytest.mark.parametrize("path", real_files(".urdf"), ids=lambda path: path.name)
def test_real_urdf_as_pinocchio_has_it(path: Path) -> None:
    compare_with_pinocchio(path, POSES)


COUPLED = ("robotiq_arg2f_85_model", "irb6700_235_265", "schunk_svh_hand_left", "panda", "frankie")
IN_ORDER = ("robotiq_arg2f_85_model", "panda", "frankie")  # Pinocchio wants leaders before their followers


@pytest.mark.shared_data
@pytest.mark.parametrize("name", COUPLED)
def test_followers_leave_their_leaders_the_range_that_pinocchio_gives_them(name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    path = shared_data_folder() / "robot" / f"{name}.urdf"
    skeleton, model = load_skeleton(path), pin.buildModelFromUrdf(str(path), mimic=name in IN_ORDER)
    values = np.array([skeleton.random_pose(seed).q for seed in range(200)])
    for joint in skeleton.joints:
        if joint.kind not in (Kind.HINGE, Kind.SLIDE):
            continue
        at = skeleton.q_slice(joint.name).start
        lower, upper = skeleton.limits[0][at], skeleton.limits[1][at]
        if joint.mimic is not None:
            assert (lower, upper) == (-np.inf, np.inf)
            assert joint.limit is not None
            continue
        there = model.idx_qs[model.getJointId(joint.name)]
        assert (lower, upper) == (model.lowerPositionLimit[there], model.upperPositionLimit[there])
        assert lower <= values[:, at].min() <= lower + 0.1 * (upper - lower)
        assert upper - 0.1 * (upper - lower) <= values[:, at].max() <= upper


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "tip", "leader", "value"),
    [
        ("robotiq_arg2f_85_model", "left_inner_finger_pad", "finger_joint", 0.7),
        ("irb6700_235_265", "joint_3", "joint_2", np.radians(80.0)),
        ("schunk_svh_hand_left", "left_hand_z", "left_hand_Thumb_Opposition", 0.9),
    ],
)
def test_goals_beyond_a_followers_limits_are_reached(name: str, tip: str, leader: str, value: float) -> None:
    skeleton = load_skeleton(shared_data_folder() / "robot" / f"{name}.urdf")
    there = skeleton.rest_pose().with_values({leader: value})
    goal = sy.PoseGoal(tip, transform=there.transform(tip))
    solution = sy.solve(skeleton, goal)
    assert solution.reached
    assert solution.pose[leader] == pytest.approx(value, abs=0.01)


def random_urdf(seed: int) -> str:
    """A tree of 14 links with every joint type, random frames and axes."""
    rng = random.Random(seed)
    types = ["revolute", "continuous", "prismatic", "fixed", "floating", "planar"] * 2 + ["mimic"]
    rng.shuffle(types)
    text = '<link name="l0"/>'
    for i, kind in enumerate(types):
        xyz, rpy, axis = (" ".join(f"{rng.uniform(-2, 2):.9f}" for _ in range(3)) for _ in range(3))
        axis = "0 0 1" if kind == "planar" else axis  # Pinocchio knows no other plane
        more = '<limit lower="-1.5" upper="0.5" effort="1" velocity="1"/>'
        if kind == "mimic":
            more += '<mimic joint="lead" multiplier="-0.7" offset="0.1"/>'
        text += f"""<link name="l{i + 1}"/><joint name="j{i}" type="{"revolute" if kind == "mimic" else kind}">
        <parent link="l{rng.randrange(i + 1)}"/><child link="l{i + 1}"/><origin xyz="{xyz}" rpy="{rpy}"/>
        <axis xyz="{axis}"/>{more if kind in ("revolute", "prismatic", "mimic") else ""}</joint>"""
    more = '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/>'
    text += '<link name="tail"/><joint name="lead" type="revolute"><parent link="l1"/><child link="tail"/>'
    return f'<robot name="r">{text}{more}</joint></robot>'


@pytest.mark.parametrize("seed", range(6))
def test_random_urdf_as_pinocchio_has_it(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(random_urdf(seed))
    compare_with_pinocchio(path, 10)


# --- MuJoCo ---------------------------------------------------------------------------------------------------------


def as_qpos(model: "mujoco.MjModel", skeleton: Skeleton, pose: Pose) -> np.ndarray:
    """Our joint values in MuJoCo's order and form; the names of all joints are in the file."""
    qpos = np.array(model.qpos0)
    for j in range(model.njnt):
        name = model.joint(j).name
        row = skeleton.joint_names.index(name)
        value = pose.q[skeleton.q_slice(row)]
        at = model.jnt_qposadr[j]
        if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            start, turn = qpos[at : at + 3].copy(), skeleton.joints[row].rest[:3, :3]
            world = np.empty(4)
            mujoco.mju_mulQuat(world, model.qpos0[at + 3 : at + 7], np.roll(value[3:], 1))
            qpos[at : at + 7] = [*(start + turn @ value[:3]), *world]
        elif len(value) == 4:
            qpos[at : at + 4] = np.roll(value, 1)
        else:
            qpos[at] = value[0]
    return qpos


def compare_with_mujoco(path: Path, poses: int) -> None:
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    skeleton = load_skeleton(path)
    for seed in range(poses):
        pose = wild_pose(skeleton, seed)
        data.qpos[:] = as_qpos(model, skeleton, pose)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        for body in range(model.nbody):
            close(skeleton, pose, model.body(body).name, data.xpos[body], data.xmat[body].reshape(3, 3))
        mass = np.array([joint.mass for joint in skeleton.joints])
        points = np.array([pose.matrix(i) @ joint.com + pose.position(i) for i, joint in enumerate(skeleton.joints)])
        assert mass.sum() == pytest.approx(model.body_mass.sum())
        assert np.abs(mass @ points / mass.sum() - data.subtree_com[0]).max() < 1e-11


@pytest.mark.shared_data
@pytest.mark.filterwarnings("ignore:.*<connect>.* was not kept:UserWarning")
@pytest.mark.parametrize("path", real_files(".xml", ".mjcf"), ids=lambda path: path.name)
def test_real_mjcf_as_mujoco_has_it(path: Path) -> None:
    compare_with_mujoco(path, POSES)


def random_mjcf(seed: int) -> str:
    """A tree with every joint type, several joints a body, anchors off the origin, and references that are not 0."""
    rng = random.Random(seed)
    made = iter(range(1000))

    def numbers(n: int) -> str:
        return " ".join(f"{rng.uniform(-2, 2):.9f}" for _ in range(n))

    def joint() -> str:
        kind, name = rng.choice(["hinge", "slide", "ball", "hinge"]), f"j{next(made)}"
        at = f'pos="{numbers(3)}"' if rng.random() < 0.7 else ""
        if kind == "ball":
            return f'<joint name="{name}" type="ball" {at}/>'
        ref = f'ref="{rng.uniform(-2, 2):.9f}"' if rng.random() < 0.5 else ""
        limit = 'range="-1.5 1"' if rng.random() < 0.5 else ""
        return f'<joint name="{name}" type="{kind}" axis="{numbers(3)}" {at} {ref} {limit}/>'

    def body(depth: int) -> str:
        name = f"b{next(made)}"
        inside = f'<geom type="sphere" size="0.1" pos="{numbers(3)}" mass="{rng.uniform(0.1, 3):.6f}"/>'
        if depth == 0 and rng.random() < 0.5:
            inside += f'<freejoint name="f{name}"/>'
        else:
            kinds = [joint() for _ in range(rng.choice([0, 1, 1, 2, 3]))]
            kinds = kinds[:1] if any("ball" in kind for kind in kinds) else kinds
            inside += "".join(kinds)
        inside += "".join(body(depth + 1) for _ in range(rng.choice([1, 2]) if depth < 3 else 0))
        return f'<body name="{name}" pos="{numbers(3)}" quat="{numbers(4)}">{inside}</body>'

    bodies = "".join(body(0) for _ in range(2))
    return f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody></mujoco>'


@pytest.mark.parametrize("seed", range(8))
def test_random_mjcf_as_mujoco_has_it(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(random_mjcf(seed))
    compare_with_mujoco(path, 10)
