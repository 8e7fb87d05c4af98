"""Limbs of hinges: swing planes of a clip on a robot, bounded steps, and the least squares behind them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.spatial.transform import Rotation

import synovia as sy
from beyond import beyond_limits
from cli_runs import assert_refused, run
from synovia.errors import InputError
from synovia.io.toml import write_skeleton
from synovia.model.anatomy.planting import FootPlaces
from synovia.model.pose import world_frames
from synovia.tracking.chains import Chain, Direction, Orientation, Place, base_frames, within_steps

X, Y, Z = np.eye(3)
BODY = sy.bundled("humanoid")
FPS = 30.0


def robot():
    """Return a humanoid of hinges without hands: hips and shoulders turn about three axes, elbows and knees about one.

    At rest its arms hang and its forearms point forward, as those of many robots do.
    """
    joints = [sy.Joint(name="pelvis", body="pelvis")]

    def add(name, parent, at, axis, low=-2.9, high=2.9):
        rest = np.eye(4)
        rest[:3, 3] = at
        limit = sy.Interval(low, high)
        joints.append(sy.Joint(name=name, parent=parent, kind=sy.Kind.HINGE, rest=rest, axis=axis, limit=limit))

    add("waist_yaw_joint", "pelvis", (0, 0, 0.1), Z)
    for side, y in (("left", 1.0), ("right", -1.0)):
        above = "pelvis"
        leg = (("hip_pitch", (0, 0.1 * y, 0), Y), ("hip_roll", (0, 0, 0), X), ("hip_yaw", (0, 0, -0.1), Z))
        for part, at, axis in leg:
            add(f"{side}_{part}_joint", above, at, axis)
            above = f"{side}_{part}_joint"
        add(f"{side}_knee_joint", above, (0, 0, -0.25), Y, low=-0.1)
        add(f"{side}_ankle_pitch_joint", f"{side}_knee_joint", (0, 0, -0.3), Y)
        add(f"{side}_ankle_roll_joint", f"{side}_ankle_pitch_joint", (0, 0, 0), X)
        toe = np.eye(4)
        toe[:3, 3] = 0.12, 0, -0.04
        joints.append(sy.Joint(name=f"{side}_toe_joint", parent=f"{side}_ankle_roll_joint", rest=toe))
        above = "waist_yaw_joint"
        arm = (("pitch", (0, 0.15 * y, 0.3), Y), ("roll", (0, 0.03 * y, 0), X), ("yaw", (0, 0, -0.1), Z))
        for part, at, axis in arm:
            add(f"{side}_shoulder_{part}_joint", above, at, axis)
            above = f"{side}_shoulder_{part}_joint"
        add(f"{side}_elbow_joint", above, (0, 0, -0.1), Y, low=-1.2, high=1.7)
        palm = np.eye(4)
        palm[:3, 3] = 0.2, 0, 0
        joints.append(sy.Joint(name=f"{side}_palm", parent=f"{side}_elbow_joint", rest=palm, tip=True))
    return sy.Skeleton(joints, name="hinges", up="z", meters_per_unit=1.0)


def waving(frames=60):
    """Return a clip of the bundled body whose left arm goes up sideways over the shoulder's first axis and bends."""
    body = BODY.with_root("free")
    q = np.tile(body.rest_q, (frames, 1))
    for t in range(frames):
        u = np.sin(2.0 * np.pi * t / frames)
        for side, sign in (("left", 1.0), ("right", -1.0)):
            arm = Rotation.from_euler("zyx", [sign * (-0.9 + 1.1 * u), -0.5 * u, 0.4 + 0.6 * u])
            q[t, body.q_slice(f"{side}_upper_arm")] = arm.as_quat()
            elbow = body.q_slice(f"{side}_lower_arm")
            low, high = (limit[elbow.start] for limit in body.limits)
            bend = 0.45 + 0.4 * np.sin(2.0 * np.pi * t / frames + 1.0)
            q[t, elbow] = bend * (low if -low > high else high)
    return sy.Motion(body, q, FPS, name="wave")


def bones(motion, body, ends):
    """Return unit vectors (T, bones, 3) between points in the axes of a body."""
    places = motion.positions()
    ways = np.stack([places[:, b] - places[:, a] for a, b in ends], axis=1) @ body.basis
    return ways / np.linalg.norm(ways, axis=-1, keepdims=True)


def angles(a, b):
    return np.degrees(np.arccos(np.clip(np.sum(a * b, axis=-1), -1.0, 1.0)))


@pytest.fixture(scope="module")
def waved():
    clip = waving()
    return clip, sy.retarget(clip, robot())


@pytest.mark.compiled
def test_forearms_of_hinges_point_as_those_of_the_clip(waved):
    """No hand is known of the robot, and its elbow is one hinge: shoulders turn so that the forearm points there."""
    clip, answer = waved
    body, target = answer.source, answer.target
    index = answer.motion.skeleton.index
    for side in ("left", "right"):
        s = [body.skeleton.index(f"{side}_{part}") for part in ("upper_arm", "lower_arm", "hand")]
        r = [index(f"{side}_{part}") for part in ("shoulder_pitch_joint", "elbow_joint", "palm")]
        source = bones(clip, body, [(s[0], s[1]), (s[1], s[2])])
        robotic = bones(answer.motion, target, [(r[0], r[1]), (r[1], r[2])])
        assert angles(source, robotic).mean(0).max() < 2.0
        assert angles(source, robotic).max() < 10.0  # where a shoulder passes its singular pose


@pytest.mark.compiled
def test_an_overstretched_elbow_does_not_turn_the_arm():
    """The elbows of a clip bend by a few degrees to their outer side: the plane of the bones is that of no elbow."""
    body = sy.bundled("humanoid")
    lower = body.index("left_lower_arm")
    axis = body.joints[lower].axis
    joints = [
        dataclasses.replace(
            joint, parent=body.parents[row] if row else None, kind=sy.Kind.BALL if row == lower else joint.kind,
            limit=None,
        )
        for row, joint in enumerate(body.joints)
    ]  # fmt: skip
    source = body.with_joints(joints).with_root("free")
    lower, upper = (source.index(f"left_{part}_arm") for part in ("lower", "upper"))
    t = np.arange(60)
    q = np.tile(source.rest_q, (60, 1))
    q[:, source.q_slice(lower)] = Rotation.from_rotvec(
        np.radians(-7.0 + 3.0 * np.sin(2.1 * t))[:, None] * axis
    ).as_quat()
    q[:, source.q_slice(upper)] = Rotation.from_rotvec(0.4 * np.sin(0.1 * t)[:, None] * (1.0, 0.0, 0.0)).as_quat()
    answer = sy.retarget(sy.Motion(source, q, 30.0), body)
    quats = answer.motion.q[:, answer.motion.skeleton.q_slice("left_upper_arm")]
    steps = (Rotation.from_quat(quats[1:]).inv() * Rotation.from_quat(quats[:-1])).magnitude()
    assert steps.max() < np.radians(10.0)


def test_hinges_step_no_farther_than_joints_of_the_clip(waved):
    clip, answer = waved
    body = answer.motion.skeleton
    hinges = [body.q_slice(row).start for row, joint in enumerate(body.joints) if joint.kind is sy.Kind.HINGE]
    steps = np.degrees(np.abs(np.diff(answer.motion.q[:, hinges], axis=0)).max(1))
    quats = [clip.q[:, clip.skeleton.q_slice(f"{side}_upper_arm")] for side in ("left", "right")]
    source = np.degrees(max((2 * np.arccos(np.abs(np.sum(q[1:] * q[:-1], axis=1)))).max() for q in quats))
    assert steps.max() <= 1.5 * source + 5.0
    assert beyond_limits(body.tables, answer.motion.q) <= 1e-9


@pytest.mark.compiled
def test_straight_legs_turn_with_their_feet():
    """Recordings turn straight thighs about their own bones, and ankles back; only the hip of a robot can do that."""
    body = BODY.with_root("free")
    q = np.tile(body.rest_q, (30, 1))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        q[:, body.q_slice(f"{side}_upper_leg")] = Rotation.from_rotvec([0.0, 0.8 * sign, 0.0]).as_quat()
        q[:, body.q_slice(f"{side}_foot")] = Rotation.from_rotvec([0.0, -0.8 * sign, 0.0]).as_quat()
    figures = sy.retarget(sy.Motion(body, q, FPS, name="twisted"), robot(), hold_feet=False).judgement.figures
    off = {limb.limb: np.degrees(limb.mean) for limb in figures.limbs}
    assert max(off[f"{side}_foot"] for side in ("left", "right")) < 10.0


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["bvhtoolbox_walk01", "lafan1_walk1_head"])
def test_a_leg_whose_foot_stands_steps_no_farther_than_that_of_the_clip(shared_data, name):
    """In each frame, a hinge turns at most one and a half times as far as the part of the clip that it follows."""
    clip = sy.load_motion(shared_data / "motion" / f"{name}.bvh")
    answer = sy.retarget(clip, sy.load_skeleton(shared_data / "robot" / "g1_29dof.urdf"))
    robot_body, frames = answer.motion.skeleton, clip.frames()
    for side in ("left", "right"):
        for above, part in (("hips", "upper_leg"), ("upper_leg", "lower_leg"), ("lower_leg", "foot")):
            roles = above if above == "hips" else f"{side}_{above}", f"{side}_{part}"
            one, two = (frames[:, answer.source.roles[role], :9].reshape(-1, 3, 3) for role in roles)
            turns = Rotation.from_matrix(np.swapaxes(one, 1, 2) @ two)
            source = np.degrees((turns[:-1].inv() * turns[1:]).magnitude())
            last = answer.target.roles[roles[1]]
            for row in range(answer.target.first_row(roles[1]), last + 1):
                if robot_body.joints[row].kind is sy.Kind.HINGE:
                    steps = np.degrees(np.abs(np.diff(answer.motion.q[:, robot_body.q_slice(row).start])))
                    assert (steps <= 1.5 * source + 5.0).all(), (robot_body.joint_names[row], steps.max())
    assert answer.worst < 1e-4
    assert not answer.missed_frames


@pytest.mark.compiled
def test_hinges_keep_velocities(waved):
    """Those that the call gives, for all joints or some; else those of the skeleton."""
    clip, answer = waved
    row, body = "left_shoulder_roll_joint", answer.motion.skeleton
    at = body.q_slice(row).start
    fastest = np.abs(np.diff(answer.motion.q[:, at])).max() * FPS
    assert fastest > 1.5
    hinges = [body.q_slice(k).start for k, joint in enumerate(body.joints) if joint.kind is sy.Kind.HINGE]
    made = {
        given: sy.retarget(clip, robot(), velocity=value).motion.q
        for given, value in {"all": 0.5, "one": {row: 1.0}}.items()
    }
    assert np.abs(np.diff(made["all"][:, hinges], axis=0)).max() * FPS <= 0.5 + 1e-6
    assert np.abs(np.diff(made["one"][:, at])).max() * FPS <= 1.0 + 1e-6
    slow = [dataclasses.replace(joint, velocity=0.8 if joint.name == row else None) for joint in robot().joints]
    other = "right_shoulder_roll_joint"
    for velocity in (None, {other: 0.5}):  # other joints keep those of the file
        kept = sy.retarget(clip, robot().with_joints(slow), velocity=velocity).motion
        assert np.abs(np.diff(kept.q[:, at])).max() * FPS <= 0.8 + 1e-6
    assert np.abs(np.diff(kept.q[:, body.q_slice(other).start])).max() * FPS <= 0.5 + 1e-6
    assert other in sy.retarget(clip, robot(), velocity={other: 0.5}).held_back
    slowed = sy.retarget(clip, robot(), velocity=0.5)
    assert max(slowed.held_back.values()) > 0.1
    assert "at their velocity limits" in slowed.report()
    assert not sy.retarget(clip, robot(), velocity=100.0).held_back
    with pytest.raises(InputError, match="velocity"):
        sy.retarget(clip, robot(), velocity=-1.0)


@pytest.mark.compiled
def test_velocities_on_the_command_line(waved, tmp_path):
    """A number, numbers by joint, or a share of those of the file."""
    sy.save_motion(waved[0], tmp_path / "clip.npz")
    body = robot().with_joints([dataclasses.replace(joint, velocity=2.0) for joint in robot().joints])
    write_skeleton(body, tmp_path / "robot.toml")
    write_skeleton(robot(), tmp_path / "free.toml")
    row = "left_shoulder_roll_joint"
    for text, most in (("0.5", 0.5), (f"{row}=0.7", 0.7), ("40%", 0.8)):
        out = tmp_path / "out.npz"
        run("retarget", tmp_path / "clip.npz", tmp_path / "robot.toml", "--velocity", text, "-o", out, "--force")
        made = sy.load_motion(out)
        steps = np.abs(np.diff(made.q[:, made.skeleton.q_slice(row).start]))
        assert 0.9 * most < steps.max() * FPS <= most + 1e-6
    for text in ("fast", "x%"):
        ran = run("retarget", tmp_path / "clip.npz", tmp_path / "robot.toml", "--velocity", text)
        assert_refused(ran, "--velocity", code=2)
    assert_refused(
        run("retarget", tmp_path / "clip.npz", tmp_path / "free.toml", "--velocity", "50%"), "no velocity limits"
    )


def test_velocity_limits_of_a_file(tmp_path):
    """A URDF has them; 0 means that none is known; the native file keeps them."""
    path = tmp_path / "arm.urdf"
    joint = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="1" velocity="{3}"/></joint>"""
    links = "".join(f'<link name="{name}"/>' for name in "abc")
    path.write_text(
        f'<robot name="arm">{links}{joint.format("one", "a", "b", 3.5)}{joint.format("two", "b", "c", 0)}</robot>'
    )
    with pytest.warns(UserWarning, match="Velocity"):
        arm = sy.load_skeleton(path)
    assert [arm.joint(name).velocity for name in ("one", "two")] == [3.5, None]
    write_skeleton(arm, tmp_path / "arm.toml")
    with pytest.warns(UserWarning, match="Velocity"):
        again = sy.load_skeleton(tmp_path / "arm.toml")
    assert [again.joint(name).velocity for name in ("one", "two")] == [3.5, None]


def chain():
    """Return four hinges of the robot's arm as a chain, and their skeleton."""
    skeleton = robot()
    rows = [skeleton.index(f"left_{name}") for name in (
        "shoulder_pitch_joint", "shoulder_roll_joint", "shoulder_yaw_joint", "elbow_joint")]  # fmt: skip
    return skeleton, Chain(skeleton, rows)


def test_residuals_of_a_chain_and_their_derivative():
    """Positions are those of the skeleton, and derivatives those of finite differences."""
    skeleton, arm = chain()
    rng = np.random.default_rng(2)
    x = rng.uniform(-1.0, 1.0, (5, 4))
    q = np.tile(skeleton.rest_q, (5, 1))
    q[:, arm.at] = x
    frames = world_frames(skeleton, q)
    base = base_frames(skeleton, q, arm.base)
    for k, row in enumerate(arm.rows):
        e, _ = arm.residuals(base, x, [Place(k, np.zeros(3), frames[:, row, 9:], 1.0)])
        np.testing.assert_allclose(e, 0.0, atol=1e-12)
    rotations = frames[:, arm.rows[3], :9].reshape(5, 3, 3)
    aim = rng.normal(size=(5, 3))
    terms = [
        Direction(0, 3, np.array([0.2, 0.0, 0.0]), aim / np.linalg.norm(aim, axis=1)[:, None], 1.3),
        Direction(2, 3, np.zeros(3), aim / np.linalg.norm(aim, axis=1)[:, None], 1.0),
        Place(3, np.array([0.1, 0.0, 0.1]), aim, 2.0),
    ]
    e, slopes = arm.residuals(base, x, terms)
    for k in range(4):
        move = np.zeros(4)
        move[k] = 1e-6
        up, down = (arm.residuals(base, x + sign * move, terms)[0] for sign in (1.0, -1.0))
        np.testing.assert_allclose(-(up - down) / 2e-6, slopes[:, :, k], atol=1e-8)
    turned = Rotation.from_rotvec([0.3, -0.2, 0.4]).as_matrix() @ rotations
    e, _ = arm.residuals(base, x, [Orientation(3, turned, 1.0)])
    np.testing.assert_allclose(e, np.tile([0.3, -0.2, 0.4], (5, 1)), atol=1e-9)
    half = Rotation.from_rotvec([0.0, np.pi - 1e-4, 0.0]).as_matrix() @ rotations
    e, _ = arm.residuals(base, x, [Orientation(3, half, 1.0)])
    np.testing.assert_allclose(e, np.tile([0.0, np.pi - 1e-4, 0.0], (5, 1)), atol=1e-7)


def test_a_step_of_the_terms_is_spread_over_frames():
    """A direction that jumps is followed before and after, and on the way each hinge keeps its bound."""
    skeleton, arm = chain()

    def way_of(x):
        """Return the directions from the first to the last joint of the chain, with its base in the world."""
        rows = [arm.base, *arm.rows]
        q = np.tile(skeleton.rest_q, (len(x), 1))
        q[:, arm.at] = x
        frames = world_frames(skeleton, q)[:, rows]
        way = frames[:, 4, 9:] - frames[:, 1, 9:]
        way = np.einsum("tji,tj->ti", frames[:, 0, :9].reshape(-1, 3, 3), way)
        return way / np.linalg.norm(way, axis=1)[:, None]

    base = np.tile((*np.eye(3).ravel(), 0.0, 0.0, 0.0), (30, 1))
    x = np.zeros((30, 4))
    x[15:] = 0.9, 0.8, -0.5, 0.4
    wanted = way_of(x)
    bounds = np.full((29, 4), 0.15)
    found, _ = arm.follow(
        base, np.zeros((30, 4)), [Direction(0, 3, np.zeros(3), wanted, 1.0)], bounds=bounds, smoothness=1e-4
    )
    assert np.abs(np.diff(found, axis=0)).max() <= 0.15 + 1e-9
    off = angles(way_of(found), wanted)
    assert off[[0, 5, 24, 29]].max() < 1.0
    assert off[14:16].max() > 5.0


@pytest.mark.parametrize("seed", range(4))
def test_no_clip_near_the_answer_costs_less(seed):
    """Many steps are at their bounds. SciPy, which starts at the answer, lowers the cost by at most 1 %."""
    skeleton, arm = chain()
    rng = np.random.default_rng(seed)
    low, high = arm.lower, arm.upper
    way = np.cumsum(rng.normal(scale=0.2, size=(60, 4)), axis=0)
    q = np.tile(skeleton.rest_q, (60, 1))
    q[:, arm.at] = np.clip(way, 0.9 * low, 0.9 * high)
    frames, base = world_frames(skeleton, q), base_frames(skeleton, q, arm.base)
    turned = frames[:, arm.rows[3], :9].reshape(-1, 3, 3)
    terms = [Orientation(3, turned, 1.0), Place(3, np.zeros(3), frames[:, arm.rows[3], 9:], 0.3)]
    bounds, smooth = np.full((59, 4), 0.3), 1e-3
    found, cost = arm._clip(base, terms, smooth).follow(np.clip(q[:, arm.at], low, high), bounds)

    def whole(x):
        """Return the cost and its gradient."""
        x = x.reshape(found.shape)
        e, slopes = arm.residuals(base, x, terms)
        step = np.diff(x, axis=0)
        beyond = np.sign(step) * np.maximum(np.abs(step) - bounds, 0.0)
        pulls = 2.0 * (smooth * step + 100.0 * beyond)
        slope = -2.0 * np.einsum("tr,trh->th", e, slopes)
        slope[1:] += pulls
        slope[:-1] -= pulls
        return float((e * e).sum() + smooth * (step * step).sum() + 100.0 * (beyond * beyond).sum()), slope.ravel()

    assert whole(found)[0] == pytest.approx(cost, rel=1e-9)
    box = list(zip(np.tile(low, 60), np.tile(high, 60), strict=True))
    least = minimize(whole, found.ravel(), jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 500}).fun
    assert least >= 0.99 * cost
    assert (np.abs(np.diff(found, axis=0)) > 0.29).sum() > 20


@given(st.integers(0, 10**6))
def test_bounded_steps_change_values_as_little_as_possible(seed):
    """As a linear program finds it: the smallest largest change."""
    rng = np.random.default_rng(seed)
    x, bounds = rng.normal(size=(6, 1)), rng.uniform(0.05, 1.0, (5, 1))
    y = within_steps(x, bounds)
    assert (np.abs(np.diff(y, axis=0)) <= bounds + 1e-12).all()
    assert y.min() >= x.min() - 1e-12
    assert y.max() <= x.max() + 1e-12
    rows, right = [], []
    for t in range(6):
        for sign in (1.0, -1.0):
            row = np.zeros(7)
            row[t], row[6] = sign, -1.0
            rows.append(row)
            right.append(sign * x[t, 0])
            if t < 5:
                row = np.zeros(7)
                row[t + 1], row[t] = sign, -sign
                rows.append(row)
                right.append(bounds[t, 0])
    best = linprog(np.eye(7)[6], A_ub=rows, b_ub=right, bounds=[(None, None)] * 6 + [(0, None)])
    assert np.abs(y - x).max() <= best.fun + 1e-7


def test_a_toe_stands_while_its_heel_lifts():
    """Ankle and toe stand as long as those of the source, the foot keeps its length, and nothing jumps."""
    frames, length = 60, 0.15
    ankle, toe = np.zeros((2, frames, 3))
    lift = np.clip((np.arange(frames) - 25) / 15.0, 0.0, 1.0)  # the heel lifts from frame 25 to 40, then the foot goes
    ankle[:, 0] = 0.002 * np.arange(frames)  # which slides
    toe[:, 0] = ankle[:, 0] + length * np.cos(lift)
    ankle[:, 2] = length * np.sin(lift)
    ankle[40:, 0] += 0.03 * np.arange(20)
    toe[40:, 0] += 0.03 * np.arange(20)
    stands = np.zeros((frames, 2), bool)
    stands[5:25, 0] = stands[5:40, 1] = True
    feet = FootPlaces(np.array([0.0, 0.0, 1.0]), 1.0, [1, 0], FPS, causal=False)
    a, b = np.swapaxes(feet.follow(np.stack([ankle, toe], axis=1), stands), 0, 1)
    np.testing.assert_allclose(np.linalg.norm(b - a, axis=1), length, atol=1e-9)
    np.testing.assert_allclose(np.ptp(a[5:25], axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.ptp(b[5:40], axis=0), 0.0, atol=1e-9)
    assert np.linalg.norm(np.diff(a - ankle, axis=0), axis=1).max() < 0.015
    assert np.linalg.norm(np.diff(b - toe, axis=0), axis=1).max() < 0.015


def torso_of_hinges(first, rest, signs):
    """A torso with two arms of five hinges that all turn as far to both sides, with arms that hang or stretch out."""

    def shifted(x, y, z):
        place = np.eye(4)
        place[:3, 3] = x, y, z
        return place

    range_of = sy.Interval(-2.8, 2.8)
    joints = [
        sy.Joint("torso_yaw", None, sy.Kind.HINGE, shifted(0.0, 0.0, 0.8), axis=(0, 0, 1), limit=range_of),
        sy.Joint("head_yaw", "torso_yaw", sy.Kind.HINGE, shifted(0.0, 0.0, 0.55), axis=(0, 0, 1), limit=range_of),
    ]
    for side, y in (("left", 1.0), ("right", -1.0)):
        out = np.array([0.0, 0.0, -1.0] if rest == "hanging" else [0.0, y, 0.0])
        axes = {"pitch": [0, 1, 0] if rest == "hanging" else [0, 0, 1], "roll": [1, 0, 0]}
        axes["yaw"] = [0, 0, 1] if rest == "hanging" else [0, 1, 0]
        turn = signs if side == "right" else 1
        above, place = "torso_yaw", shifted(0.0, 0.2 * y, 0.45)
        for name in (*first, "yaw"):
            axis = turn * np.array(axes[name])
            joints.append(sy.Joint(f"{side}_shoulder_{name}", above, sy.Kind.HINGE, place, axis=axis, limit=range_of))
            above, place = f"{side}_shoulder_{name}", np.eye(4)
        for name, axis, length in (("elbow", "pitch", 0.28), ("wrist", "yaw", 0.25)):
            joints.append(sy.Joint(f"{side}_{name}", above, sy.Kind.HINGE, shifted(*(length * out)),
                                axis=turn * np.array(axes[axis]), limit=range_of))  # fmt: skip
            above = f"{side}_{name}"
        joints.append(sy.Joint(f"{side}_gripper", above, sy.Kind.FIXED, shifted(*(0.12 * out))))
    return sy.Skeleton(joints, up="z", forward="x")


@pytest.mark.parametrize("first", [("pitch", "roll"), ("roll", "pitch")])
@pytest.mark.parametrize("rest", ["hanging", "stretched out"])
@pytest.mark.parametrize("signs", [1, -1])
def test_arms_that_could_turn_half_a_turn_further_are_alike(first, rest, signs):
    """Elbows that bend to both sides, with a half turn at shoulder and wrist, reach the same directions."""
    body = sy.bundled("humanoid").with_root("free")
    q = np.tile(body.rest_q, (40, 1))
    for t, u in enumerate(np.linspace(0.0, 2.0 * np.pi, len(q))):
        for side, y in (("left", 1.0), ("right", -1.0)):
            euler = [-y * (1.2 + 0.2 * np.sin(u)), 0.3 * y * np.sin(u), 0.3 * np.cos(u) - 0.3]
            q[t, body.q_slice(f"{side}_upper_arm")] = Rotation.from_euler("zyx", euler).as_quat()
            q[t, body.q_slice(f"{side}_lower_arm")] = 0.6 + 0.4 * np.sin(u)
    answer = sy.retarget(sy.Motion(body, q, 30.0), torso_of_hinges(first, rest, signs))
    assert answer.verdict == "good"
    own = answer.motion.skeleton
    sizes = {name: np.abs(answer.motion.q[:, own.q_slice(name)]).mean() for name in own.joint_names[:-1]
             if own.joint(name).kind is sy.Kind.HINGE}  # fmt: skip
    for name in ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist"):
        assert sizes[f"left_{name}"] == pytest.approx(sizes[f"right_{name}"], abs=0.05), name
    assert max(sizes.values()) < 1.5
    assert sizes["left_wrist"] < 0.1
