"""The bundled models: a person, an arm and a dog, each of the right size, weight, symmetry and bend."""

import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from beyond import beyond_limits
from synovia.errors import UnknownNameError
from synovia.io.bundled import bundled, bundled_names
from synovia.model import Joint, Kind, Pose, Skeleton
from synovia.model.limits import Interval, SwingTwist

NAMES = ("arm7", "humanoid", "humanoid_hands", "quadruped")
MASS = {"arm7": 17.42, "humanoid": 75.0, "humanoid_hands": 75.0, "quadruped": 30.0}
VRM = (
    *("hips", "spine", "chest", "neck", "head"),
    *("shoulder", "upper_arm", "lower_arm", "hand", "upper_leg", "lower_leg", "foot", "toes"),
)
MIRROR = np.array([-1.0, 1.0, 1.0])  # of a point, across the plane x = 0
TURNED = -MIRROR  # of a rotation vector or axis


def turn(*rotvec_deg: float) -> np.ndarray:
    return Rotation.from_rotvec(rotvec_deg, degrees=True).as_quat()


def test_names() -> None:
    assert bundled_names() == NAMES
    assert [bundled(name).name for name in NAMES] == list(NAMES)
    with pytest.raises(UnknownNameError, match=r"'humanoide'. Did you mean 'humanoid', "):
        bundled("humanoide")
    with pytest.raises(UnknownNameError, match="There are 'arm7', 'humanoid', 'humanoid_hands', 'quadruped'"):
        bundled("../secret")


def test_loading_is_light() -> None:
    code = (
        "import sys\nfrom synovia.io.bundled import bundled, bundled_names\n"
        "for name in bundled_names(): bundled(name)\n"
        "print(sorted({'scipy', 'numba', 'matplotlib', 'mujoco'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_masses(name: str) -> None:
    model = bundled(name)
    assert sum(joint.mass for joint in model.joints) == pytest.approx(MASS[name], abs=0.01)
    for joint in model.joints:  # a body's centre lies within the reach of its bones
        assert np.linalg.norm(joint.com) <= 0.35
        assert joint.mass > 0.0 or not joint.com.any()


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_bends_has_a_limit_that_holds_rest(name: str) -> None:
    model = bundled(name)
    for joint in model.joints:
        assert (joint.limit is None) == (joint.kind in (Kind.FIXED, Kind.FREE)), joint.name
        if joint.preferred is not None:
            assert isinstance(joint.limit, Interval)
            assert joint.limit.contains(joint.preferred)
    assert beyond_limits(model.tables, model.rest_pose().q) == 0.0
    if name != "arm7":
        zero = np.zeros(model.nq)
        for joint in model.joints:
            if joint.kind.q_size >= 4:
                zero[model.q_slice(model.joint_names.index(joint.name)).stop - 1] = 1.0
        np.testing.assert_array_equal(model.rest_q, zero)


@pytest.mark.parametrize("name", NAMES)
def test_random_poses_are_inside_limits(name: str) -> None:
    model = bundled(name)
    count = 50
    q = np.array([model.random_pose(seed).q for seed in range(count)])
    assert beyond_limits(model.tables, q) <= 1e-9
    assert len(np.unique(q.round(6), axis=0)) == count


def test_roles_are_those_of_vrm() -> None:
    roles = bundled("humanoid").roles
    wanted = {role for part in VRM for role in ([part] if part in VRM[:5] else [f"left_{part}", f"right_{part}"])}
    assert set(roles) == wanted
    assert {"hips", "spine", "chest", "neck", "head", "left_fore_paw", "right_hind_paw"} <= set(
        bundled("quadruped").roles
    )


@pytest.mark.parametrize("name", ["humanoid", "humanoid_hands", "quadruped"])
def test_left_is_on_the_left_and_mirrors_right(name: str) -> None:
    model = bundled(name)
    rest = model.rest_pose()
    lefts = [joint for joint in model.joints if joint.name.startswith("left_")]
    assert 2 * len(lefts) == sum(joint.name.startswith(("left_", "right_")) for joint in model.joints)
    for left in lefts:
        right = model.joint(left.name.replace("left_", "right_"))
        assert rest.position(left.name)[0] > 0.0  # left of someone who looks along +z with y up
        np.testing.assert_allclose(rest.position(right.name), rest.position(left.name) * MIRROR, atol=1e-12)
        np.testing.assert_allclose(right.com, left.com * MIRROR, atol=1e-12)
        for key in ("kind", "mass", "stiffness", "preferred", "tip"):
            assert getattr(left, key) == getattr(right, key)
        assert (left.role or "").replace("left_", "right_") == (right.role or "")
        if left.kind is Kind.HINGE:
            np.testing.assert_array_equal(right.axis, left.axis * TURNED)
            assert left.limit == right.limit
        if isinstance(left.limit, SwingTwist):
            assert_mirrored_limits(model, left, right)
    for joint in model.joints:
        if not joint.name.startswith(("left_", "right_")):
            assert rest.position(joint.name)[0] == 0.0
            if isinstance(joint.limit, SwingTwist):
                assert_mirrored_limits(model, joint, joint)


def assert_mirrored_limits(model: Skeleton, left: Joint, right: Joint) -> None:
    """The limits of both sides are the same distance away from mirrored rotations."""
    for quat in Rotation.from_quat(np.random.default_rng(7).normal(size=(40, 4))).as_quat():
        a, b = model.rest_q.copy(), model.rest_q.copy()
        a[model.q_slice(left.name)] = quat
        b[model.q_slice(right.name)] = np.append(quat[:3] * TURNED, quat[3])
        assert beyond_limits(model.tables, a) == pytest.approx(beyond_limits(model.tables, b), abs=1e-9)


def test_humanoid_is_a_person() -> None:
    body = bundled("humanoid")
    rest = body.rest_pose()
    assert (body.meters_per_unit, body.up, body.forward) == (1.0, "y", "z")
    assert body.joints[0].kind is Kind.FREE
    assert rest.position("head_top")[1] == pytest.approx(1.75, abs=1e-9)
    assert 0.0 <= rest.positions[:, 1].min() < 0.03
    span = rest.position("left_fingertips")[0] - rest.position("right_fingertips")[0]
    assert 1.0 < span / 1.75 < 1.06
    assert all(rest.position(f"{side}_toe_tips")[2] > 0.15 for side in ("left", "right"))
    mass = np.array([joint.mass for joint in body.joints])
    com = np.array([rest.transform(i)[:3] @ [*joint.com, 1.0] for i, joint in enumerate(body.joints)])
    assert (mass @ com / mass.sum())[1] / 1.75 == pytest.approx(0.57, abs=0.02)  # arms raised to the sides


def test_the_humanoid_with_fingers_begins_with_the_joints_of_the_humanoid() -> None:
    body, hands = bundled("humanoid"), bundled("humanoid_hands")
    assert hands.joint_names[: len(body)] == body.joint_names
    for own, other in zip(hands.joints, body.joints, strict=False):
        assert (own.kind, own.limit, own.role, own.mass) == (other.kind, other.limit, other.role, other.mass)
        np.testing.assert_array_equal(own.rest, other.rest)


@pytest.mark.parametrize("side", ["left", "right"])
def test_hands_close(side: str) -> None:
    body = bundled("humanoid_hands")
    rest = body.rest_pose()
    names = ("index", "middle", "ring", "little")
    bends = [body.joint(f"{side}_{name}_{k}") for name in names for k in (1, 2, 3)]
    fist = rest.with_values({joint.name: joint.limit.upper for joint in bends if isinstance(joint.limit, Interval)})
    hand = rest.position(f"{side}_hand")
    for name in names:
        knuckle, opened, closed = (
            pose.position(f"{side}_{name}_{end}") for pose, end in ((rest, 1), (rest, "tip"), (fist, "tip"))
        )
        assert np.linalg.norm(opened - hand) > 0.14
        assert np.linalg.norm(closed - knuckle) < 0.045  # in the palm
        assert knuckle[1] - 0.06 < closed[1] < knuckle[1]  # below, on the side of the palm
    bent = rest.with_values({f"{side}_thumb_{k}": math.radians(50) for k in (2, 3)})
    little = rest.position(f"{side}_little_1")
    far, near = (np.linalg.norm(pose.position(f"{side}_thumb_tip") - little) for pose in (rest, bent))
    assert near < far - 0.015  # across the palm


@pytest.mark.parametrize("side", ["left", "right"])
def test_elbows_and_knees_bend_the_right_way(side: str) -> None:
    body = bundled("humanoid")
    rest = body.rest_pose()
    elbow, knee = body.joint(f"{side}_lower_arm").limit, body.joint(f"{side}_lower_leg").limit
    assert isinstance(elbow, Interval)
    assert isinstance(knee, Interval)
    assert elbow.lower == knee.lower == 0.0  # neither bends backwards
    bent = rest.with_values({f"{side}_lower_arm": elbow.upper, f"{side}_lower_leg": knee.upper})
    hand, shoulder = bent.position(f"{side}_hand"), bent.position(f"{side}_upper_arm")
    assert np.linalg.norm(hand - shoulder) < 0.17
    assert hand[2] > shoulder[2] + 0.1  # in front
    foot, hip = bent.position(f"{side}_foot"), bent.position(f"{side}_upper_leg")
    assert np.linalg.norm(foot - hip) < 0.3
    assert foot[2] < -0.2  # behind
    toes = rest.with_values({f"{side}_toes": math.radians(60)})
    assert toes.position(f"{side}_toe_tips")[1] > rest.position(f"{side}_toes")[1] + 0.03


@pytest.mark.parametrize(
    ("joint", "rotvec", "allowed"),
    [
        ("left_upper_arm", (0, 0, -85), True),  # arm hangs
        ("left_upper_arm", (0, 0, 85), True),  # arm raised
        ("left_upper_arm", (0, -120, 0), True),  # across the chest
        ("left_upper_arm", (0, 60, 0), False),  # behind the back
        ("left_upper_leg", (-115, 0, 0), True),  # knee to the chest
        ("left_upper_leg", (30, 0, 0), False),  # leg far behind
        ("left_upper_leg", (0, 0, 40), True),  # leg to the side
        ("left_upper_leg", (0, 0, -40), False),  # leg through the other
        ("left_hand", (0, 0, -70), True),  # palm towards the forearm
        ("left_hand", (-130, 0, 0), True),  # palm up
        ("left_hand", (40, 0, 0), False),  # palm turned beyond down
        ("left_foot", (40, 0, 0), True),  # toes pointed
        ("left_foot", (-40, 0, 0), False),  # toes to the shin
        ("spine", (40, 0, 0), True),  # bow
        ("spine", (-40, 0, 0), False),  # bend backwards
        ("head", (0, 35, 0), True),
        ("head", (0, 60, 0), False),
    ],
)
def test_limits_are_anatomical(joint: str, rotvec: tuple[float, float, float], allowed: bool) -> None:
    body = bundled("humanoid")
    assert (beyond_limits(body.tables, body.rest_pose().with_values({joint: turn(*rotvec)}).q) <= 1e-9) is allowed


def test_quadruped_stands_and_bends_like_a_dog() -> None:
    dog = bundled("quadruped")
    rest = dog.rest_pose()
    for side in ("left", "right"):
        for paw in ("fore_toes", "hind_toes"):
            assert rest.position(f"{side}_{paw}")[1] == pytest.approx(0.01, abs=1e-9)
        ends = {
            f"{side}_{joint}": dog.joint(f"{side}_{joint}").limit.upper
            for joint in ("fore_lower_leg", "fore_pastern", "hind_lower_leg", "hind_pastern")
        }
        knee = rest.with_values({f"{side}_hind_lower_leg": ends[f"{side}_hind_lower_leg"]})
        assert knee.position(f"{side}_hind_pastern")[2] < rest.position(f"{side}_hind_pastern")[2] - 0.05
        elbow = rest.with_values({f"{side}_fore_lower_leg": ends[f"{side}_fore_lower_leg"]})
        assert elbow.position(f"{side}_fore_pastern")[2] > rest.position(f"{side}_fore_pastern")[2] + 0.1
        for leg, top in (("fore", "fore_upper_leg"), ("hind", "hind_upper_leg")):
            bent = rest.with_values({joint: value for joint, value in ends.items() if f"_{leg}_" in joint})
            near, far = (
                np.linalg.norm(p.position(f"{side}_{leg}_toes") - p.position(f"{side}_{top}")) for p in (bent, rest)
            )
            assert near < 0.75 * far  # flexion folds the leg


def panda_frames(path: Path, values: np.ndarray) -> dict[str, np.ndarray]:
    """Evaluate the arm of the URDF straight from its numbers, with SciPy."""
    frames = {"panda_link0": np.eye(4)}
    for joint in ET.parse(path).getroot().findall("joint"):
        origin, axis, child = joint.find("origin"), joint.find("axis"), joint.find("child")
        local = np.eye(4)
        local[:3, 3] = np.fromstring(origin.get("xyz"), sep=" ")
        local[:3, :3] = Rotation.from_euler("xyz", np.fromstring(origin.get("rpy"), sep=" ")).as_matrix()
        number = joint.get("name").removeprefix("panda_joint")
        if joint.get("type") == "revolute":
            turned = np.eye(4)
            vector = np.fromstring(axis.get("xyz"), sep=" ") * values[int(number) - 1]
            turned[:3, :3] = Rotation.from_rotvec(vector).as_matrix()
            local = local @ turned
        frames[child.get("link")] = frames[joint.find("parent").get("link")] @ local
    return frames


@pytest.mark.shared_data
def test_arm7_moves_like_the_panda(shared_data: Path) -> None:
    path = shared_data / "robot" / "panda.urdf"
    arm = bundled("arm7")
    twins = {f"joint{i}": f"panda_link{i}" for i in range(1, 8)}
    twins |= {"base": "panda_link0", "flange": "panda_link8", "hand": "panda_hand", "tool": "panda_hand_tcp"}
    assert set(twins) == set(arm.joint_names)
    for seed in range(100):
        pose = arm.random_pose(seed)
        frames = panda_frames(path, pose.q)
        for mine, theirs in twins.items():
            np.testing.assert_allclose(pose.transform(mine), frames[theirs], rtol=0, atol=1e-12)
    limits = [joint.find("limit") for joint in ET.parse(path).getroot().findall("joint[@type='revolute']")]
    np.testing.assert_array_equal(arm.limits[0], [float(limit.get("lower")) for limit in limits])
    np.testing.assert_array_equal(arm.limits[1], [float(limit.get("upper")) for limit in limits])


def test_arm7_rests_inside_limits_that_exclude_zero() -> None:
    arm = bundled("arm7")
    assert isinstance(arm.rest_pose(), Pose)
    assert arm.rest_pose()["joint4"] == -0.0698
    ready = arm.rest_pose().with_values(
        {joint.name: joint.preferred for joint in arm.joints if joint.preferred is not None}
    )
    np.testing.assert_allclose(ready.position("flange"), [0.3069, 0.0, 0.5903], atol=1e-3)


def test_a_file_is_read_with_a_root_that_may_move(tmp_path):
    path = tmp_path / "arm.toml"
    sy.formats.write_skeleton(sy.bundled("arm7"), path)
    assert sy.load_skeleton(path, root="free").nq == sy.load_skeleton(path).nq + 7
    assert sy.load_skeleton(path, root="x,yaw").joint_names[:2] == ("root_x", "root_yaw")
