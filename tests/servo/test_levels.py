"""Goals of a tick by levels: limits hold, held goals stay until the body rests, upper goals are not left."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import synovia as sy
from conftest import UNCOMPILED
from servo.judge import differences, excesses
from synovia.kernels import layout as L
from synovia.kernels.servo.tick import servo_reset
from synovia.servo.levels import TickLevels
from synovia.servo.limits import Axes

H = 0.01
EXAMPLES = 2 if UNCOMPILED else 25


class Ticks:
    """A body with goals that goes by the kernel of a tick."""

    def __init__(self, body, goals, *, velocity=2.0, acceleration=10.0, root="fixed"):
        self.ik = sy.IK(body, goals, sy.FullBody(), root=root).problem
        self.axes = Axes(self.ik.skeleton, self.ik.moving, self.ik.reach)
        self.axes.set_limits(velocity, acceleration, None)
        self.levels = TickLevels(self.ik, self.axes)
        self.table = self.ik.writer.own[0].copy()

    def reset(self, pose, velocity=None):
        self.q = np.asarray(pose.q).copy()
        servo_reset(self.axes.table, np.zeros(len(self.axes.table)) if velocity is None else velocity, H)
        self.before = self.q.copy()
        for goal, row in zip(self.ik.goals, self.table, strict=True):
            if goal.takes:
                row[: L.TRANSFORM_WIDTH] = pose.transform(goal.joint).ravel()
                row[L.GIVEN] = goal.takes
        self.levels.reset(self.table, self.q, rests=velocity is None)

    def aim(self, goal, transform):
        self.table[goal, : L.TRANSFORM_WIDTH] = transform.ravel()

    def step(self, wanted, parts=0):
        out = np.empty_like(self.q)
        self.levels.step(self.table, (self.q, self.q), (wanted, self.before), out, (H, parts))
        self.before = wanted.copy()
        self.q = out
        return out


BODIES = {
    "arm": (lambda: sy.bundled("arm7"), [sy.PositionGoal("tool"), sy.RotationGoal("tool", name="turn", priority=1)]),
    "humanoid": (
        lambda: sy.bundled("humanoid"),
        [
            sy.PoseGoal("left_foot"),
            sy.PoseGoal("right_foot"),
            sy.PositionGoal("right_hand", priority=1),
            sy.PositionGoal("left_hand", priority=2),
        ],
    ),
}


def adversary(rng, ticks, moving, home):
    """Move targets: jumps, steady motion, noise, or back home."""
    for g in moving:
        u = rng.uniform()
        T = ticks.table[g, : L.TRANSFORM_WIDTH].reshape(4, 4).copy()
        if u < 0.03:
            T = home[g].copy()
            T[:3, 3] += 0.4 * ticks.ik.reach * rng.normal(size=3)
        elif u < 0.06:
            T = home[g].copy()
        elif u < 0.5:
            T[:3, 3] += 0.004 * ticks.ik.reach * rng.normal(size=3)
        T[:3, :3] = Rotation.from_rotvec(0.02 * rng.normal(size=3)).as_matrix() @ T[:3, :3]
        ticks.aim(g, T)


@pytest.mark.compiled
@pytest.mark.parametrize("name", BODIES)
@given(seed=st.integers(0, 2**31))
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_tick_keeps_all_limits(name, seed):
    rng = np.random.default_rng(seed)
    make, goals = BODIES[name]
    ticks = Ticks(make(), goals, root="free" if name == "humanoid" else "fixed")
    skeleton = ticks.ik.skeleton
    ticks.reset(skeleton.rest_pose() if name == "humanoid" else skeleton.random_pose(seed))
    moving = [g for g, goal in enumerate(ticks.ik.goals) if "foot" not in str(goal.joint)]
    home = {g: ticks.table[g, : L.TRANSFORM_WIDTH].reshape(4, 4).copy() for g in moving}
    wanted, samples = ticks.q, [ticks.q]
    for k in range(200):
        if k < 150:
            adversary(rng, ticks, moving, home)
            if rng.uniform() < 0.03:
                wanted = skeleton.random_pose(int(rng.integers(1 << 30))).q
            samples.append(ticks.step(wanted))
        else:
            samples.append(ticks.step(wanted, L.STOP))
        assert np.isfinite(samples[-1]).all()
    q = np.array(samples)
    ways = np.array([ticks.axes.way(a, b) for a, b in itertools.pairwise(q)])
    places = np.concatenate([np.zeros((1, ways.shape[1])), np.cumsum(ways, axis=0)])
    table, h = ticks.axes.table, np.full(len(ways), H)
    limits = table[:, L.TOP_SPEED], table[:, L.TOP_ACCELERATION], None
    moves = np.isin(ticks.axes.joints, list(ticks.ik.moving))
    limits = tuple(None if one is None else one[moves] for one in limits)
    assert excesses(differences(places[:, moves], h), limits, np.full(moves.sum(), 1e-12), H) <= 1e-9
    low, high = skeleton.limits
    assert max((q - high).max(), (low - q).max()) <= 1e-9
    assert np.abs(ways[-1]).max() < 1e-9  # it has come to rest


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_held_feet_stay_while_the_body_is_led_and_brakes(seed):
    """Feet stay within a tenth of a millimetre, also while the body stops from full motion."""
    rng = np.random.default_rng(seed)
    make, goals = BODIES["humanoid"]
    ticks = Ticks(make(), goals, velocity=4.0, acceleration=20.0, root="free")
    rest = ticks.ik.skeleton.rest_pose()
    ticks.reset(rest)
    home = {g: ticks.table[g, : L.TRANSFORM_WIDTH].reshape(4, 4).copy() for g in (2, 3)}
    way, slip = 0.3 * rng.normal(size=(2, 3)), 0.0
    for k in range(160):
        for g, speed in zip((2, 3), way, strict=True):
            T = home[g].copy()
            T[:3, 3] += speed * min(k, 100) * H * 0.5
            ticks.aim(g, T)
        ticks.step(ticks.before, (L.STOP if k > 100 else 0))
        pose = sy.Pose.trusted(ticks.ik.skeleton, ticks.q)
        slip = max(slip, *(np.linalg.norm(pose.position(f) - rest.position(f)) for f in ("left_foot", "right_foot")))
    assert slip < 1e-4


PLANTED = {
    "humanoid": (("left_foot", "right_foot"), sy.PoseGoal("right_hand", name="led", priority=1)),
    "quadruped": (
        tuple(f"{side}_{part}_paw" for side in ("left", "right") for part in ("fore", "hind")),
        sy.PositionGoal("head", name="led", priority=1),
    ),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("seed", range(2))
def test_planted_feet_stay_while_a_goal_goes_out_of_reach_and_back(name, seed):
    """Balls come to their limits on the way, where they slide along."""
    feet, led = PLANTED[name]
    goals = [*(sy.PoseGoal(foot) for foot in feet), led]
    servo = sy.Servo(sy.bundled(name), goals, rate=60, velocity=4.0, acceleration=20.0, root="free")
    rest = servo.skeleton.rest_pose()
    servo.reset(rest)
    home = rest.transform(led.joint) if isinstance(led, sy.PoseGoal) else rest.position(led.joint)
    way = np.random.default_rng(seed).normal(size=3)
    way *= 1.5 * servo.ik.reach / np.linalg.norm(way)
    slip = 0.0
    for k in range(300):
        target = home.copy()
        place = target[:3, 3] if target.ndim == 2 else target
        place += way * (np.clip(k / 60, 0.0, 1.0) - np.clip((k - 90) / 60, 0.0, 1.0))
        command = servo.step({"led": target})
        slip = max(slip, *(np.linalg.norm(command.pose.position(foot) - rest.position(foot)) for foot in feet))
    assert slip < 1e-4
    assert command.reached


TWISTED = {
    "direction": sy.DirectionGoal("tool", (0.0, 0.6, 0.8), (0.9, 0.3, -0.3), name="other", priority=1),
    "elbow": sy.PositionGoal("joint4", name="other", priority=1),
    "rest": sy.RestGoal(),
}


@pytest.mark.compiled
@pytest.mark.parametrize("other", TWISTED)
@pytest.mark.parametrize("seed", range(3))
def test_a_twist_stays_on_its_line_above_a_goal_that_is_far(other, seed):
    """It goes and stops as a twist without another goal does, however far the joints go for the goal below."""
    arm, rng = sy.bundled("arm7"), np.random.default_rng(seed)
    start = sy.Pose(arm, np.radians([10.0, 40.0, 10.0, -80.0, 10.0, 40.0, 10.0]) + rng.uniform(-0.3, 0.3, 7))
    linear = rng.normal(size=3)
    linear *= 0.05 / np.linalg.norm(linear)
    goals = [sy.PositionGoal("tool", name="led"), TWISTED[other]]
    servo = sy.Servo(arm, goals, rate=100, velocity=2.0, acceleration=10.0)
    servo.reset(start)
    place, line = start.position("tool"), linear / 0.05
    off, moved = 0.0, 0.0
    for k in range(150):
        command = servo.step({"led": sy.Twist(linear if k < 80 else (0.0, 0.0, 0.0))})
        way = command.pose.position("tool") - place
        off = max(off, np.linalg.norm(way - (way @ line) * line))
        moved = max(moved, np.abs(command.q - start.q).max())
    assert off < 5e-3
    assert way @ line == pytest.approx(0.04, abs=5e-3)
    assert moved > 0.1  # the goal below has moved the arm


@pytest.mark.compiled
def test_a_servo_changes_over_when_the_jerk_is_limited_on_the_way():
    arm = sy.bundled("arm7")
    goals = [sy.PositionGoal("tool", name="place"), sy.RotationGoal("tool", name="turn", priority=1)]
    servo = sy.Servo(arm, goals, rate=100, velocity=1.5, acceleration=8.0)
    servo.reset(start := sy.Pose(arm, np.radians([10.0, 40.0, 10.0, -70.0, 10.0, 40.0, 10.0])))
    frame = start.transform("tool")
    targets = {"place": frame[:3, 3] + (0.05, -0.1, 0.05), "turn": frame[:3, :3]}
    q = [servo.step(targets).q for _ in range(30)]
    servo.change(jerk=80.0)
    last = [servo.step(targets) for _ in range(400)]
    q = np.array([*q, *(command.q for command in last)])
    assert last[-1].reached
    assert excesses(differences(q, np.full(len(q) - 1, H)), (1.5, 8.0, None), np.full(7, 1e-12), H) <= 1e-9
    assert np.abs(np.diff(q[40:], 3, axis=0)).max() / H**3 <= 80.0 * (1 + 1e-6)


@pytest.mark.compiled
def test_a_body_with_goals_of_two_levels_holds_to_the_bit():
    """``hold`` stops it wherever it is, and then it does not move at all."""
    arm, rng = sy.bundled("arm7"), np.random.default_rng(5)
    goals = [sy.PositionGoal("tool", name="place"), sy.RotationGoal("tool", name="turn", priority=1)]
    for _ in range(5):
        servo = sy.Servo(arm, goals, rate=100, velocity=2.0, acceleration=10.0)
        servo.reset(arm.random_pose(int(rng.integers(1000))))
        there = arm.random_pose(int(rng.integers(1000))).transform("tool")
        for _ in range(int(rng.integers(5, 80))):
            servo.step({"place": there[:3, 3], "turn": there[:3, :3]})
        commands = [servo.hold() for _ in range(100)]
        assert (commands[-1].q == commands[-30].q).all()
        assert (commands[-1].velocity == 0.0).all()


@pytest.mark.compiled
@given(seed=st.integers(0, 2**31))
@settings(max_examples=2 * EXAMPLES, deadline=None)
def test_an_arm_with_a_limit_of_the_jerk_keeps_its_limits_and_comes_to_rest(seed):
    """Targets jump, drift or move by themselves, ticks are uneven, and in the end ``hold`` stops it to the bit."""
    arm, rng = sy.bundled("arm7"), np.random.default_rng(seed)
    kind = [sy.PositionGoal, sy.RotationGoal, sy.PoseGoal][int(rng.integers(3))]
    limits = 2.0, 10.0 ** rng.uniform(0.5, 1.5), 10.0 ** rng.uniform(1.5, 3.0)
    servo = sy.Servo(arm, kind("tool"), rate=100, velocity=2.0, acceleration=limits[1], jerk=limits[2])
    start = sy.Pose(arm, np.radians([10.0, 40.0, 10.0, -70.0, 10.0, 40.0, 10.0]) + rng.uniform(-0.3, 0.3, 7))
    servo.reset(start)
    q, times, moves = [start.q] * 3, [H, H], 0
    for _ in range(6):
        there = arm.random_pose(int(rng.integers(10**6))).transform("tool")
        whole = kind is sy.PoseGoal
        target = there if whole else there[:3, :3] if kind is sy.RotationGoal else there[:3, 3]
        jogs = rng.uniform() < 0.4
        for _ in range(int(rng.integers(2, 60))):
            times.append(H * rng.uniform(0.7, 1.4))
            linear, angular = 0.1 * rng.normal(size=3), 0.3 * rng.normal(size=3)
            linear *= kind is not sy.RotationGoal
            angular *= kind is not sy.PositionGoal
            aim = sy.Twist(linear, angular) if jogs else target
            command = servo.step(aim, dt=times[-1])
            moves += bool(command.velocity.any())
            q.append(command.q)
            assert "recovering" not in command.limited.values()
    for _ in range(400):
        times.append(H)
        q.append(servo.hold().q)
    assert (q[-1] == q[-20]).all()
    assert moves > 6
    found = differences(np.array(q), np.array(times))
    assert excesses(found, limits, np.full(7, 1e-15), 0.7 * H) <= 0.0


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_with_a_limit_of_the_jerk_other_joints_make_up_for_a_slow_one(seed):
    """So the tool stays nearer to its target than it would if each joint went to the answer for itself."""
    arm, rng = sy.bundled("arm7"), np.random.default_rng(seed)
    start = sy.Pose(arm, np.radians([10.0, 40.0, 10.0, -80.0, 10.0, 40.0, 10.0]) + rng.uniform(-0.3, 0.3, 7))
    slow = dict.fromkeys(arm.joint_names, 2.0) | {"joint1": 0.02}
    servo = sy.Servo(arm, sy.PositionGoal("tool"), rate=100, velocity=slow, acceleration=20.0, jerk=400.0)
    servo.reset(start)
    errors, turned = [], start.q[0]
    for k in range(400):
        swing = 0.06 * np.sin(0.02 * max(k - 50, 0))
        target = start.position("tool") + np.array([0.0, swing, 0.0])
        command = servo.step(target)
        errors.append(np.linalg.norm(command.pose.position("tool") - target))
    assert abs(command.q[0] - turned) <= 0.02 * 4.0 + 1e-6
    assert max(errors) < 0.01


def spherical_wrist():
    """Return an arm of six hinges whose last three axes meet."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)]
    places = [(0, 0, 0.3), (0.1, 0, 0.1), (0, 0, 0.5), (0.2, 0, 0.05), (0.3, 0, 0), (0, 0, 0), (0.15, 0, 0)]
    rests = np.repeat(np.eye(4)[None], 7, axis=0)
    rests[:, :3, 3] = places
    joints = [
        sy.Joint(f"j{k + 1}", f"j{k}" if k else None, sy.Kind.HINGE, rests[k], axis=np.array(axes[k], float),
                 limit=sy.Interval(-2.9, 2.9)) for k in range(6)
    ]  # fmt: skip
    return sy.Skeleton([*joints, sy.Joint("tool", "j6", rest=rests[6], tip=True)], name="wrist", meters_per_unit=1.0)


@pytest.mark.compiled
@pytest.mark.parametrize("jerk", [None, 100.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_turn_about_the_axis_that_a_wrist_has_lost_keeps_the_place(seed, jerk):
    """The wrist turns first, as that moves nothing; then the tool turns, and does not leave its place or its axis."""
    arm, rng = spherical_wrist(), np.random.default_rng(seed)
    start = sy.Pose(arm, np.array([0.0, 0.3, 0.9, 0.0, 0.0, 0.0]) + rng.uniform(-0.4, 0.4, 6) * (1, 1, 1, 1, 0, 1))
    lost = np.linalg.svd(start.jacobian("tool"))[0][:, -1][3:]
    lost /= np.linalg.norm(lost)
    servo = sy.Servo(arm, sy.PoseGoal("tool"), rate=125, velocity=1.5, acceleration=8.0, jerk=jerk)
    servo.reset(start)
    first, off, beside = start.transform("tool"), 0.0, 0.0
    for _ in range(400):
        T = servo.step({"tool": sy.Twist((0, 0, 0), 0.2 * lost)}).pose.transform("tool")
        off = max(off, np.linalg.norm(T[:3, 3] - first[:3, 3]))
        turn = Rotation.from_matrix(T[:3, :3] @ first[:3, :3].T).as_rotvec()
        beside = max(beside, np.linalg.norm(turn - (turn @ lost) * lost))
    assert off < 0.02
    assert beside < 0.06
    assert turn @ lost > 0.2


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_the_only_goal_is_followed_exactly_again_after_limits_have_held_the_body(seed):
    """What limits take from it, a body with more joints than it needs does not try to make up for ever."""
    arm, rng = sy.bundled("arm7"), np.random.default_rng(seed)
    start = sy.Pose(arm, np.radians([10.0, 40.0, 10.0, -80.0, 10.0, 40.0, 10.0]) + rng.uniform(-0.3, 0.3, 7))
    servo = sy.Servo(arm, sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=6.0)
    servo.reset(start)
    a, b = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    late, errors, fastest = 0, [], []
    for k in range(600):
        pace = 9.0 if k < 150 else 1.5  # too fast for the limits, then slow
        angle = 0.01 * (9.0 * min(k, 150) + pace * max(k - 150, 0))
        target = start.position("tool") + 0.06 * (np.sin(angle) * a + (1.0 - np.cos(angle)) * b)
        command = servo.step(target)
        late += bool(command.limited)
        if k >= 400:
            errors.append(np.linalg.norm(command.pose.position("tool") - target))
            fastest.append(np.abs(command.velocity).max())
    assert late > 20
    assert max(errors) < 1e-3
    assert max(fastest) < 0.9


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(8))
def test_a_tool_comes_back_after_its_target_was_out_of_reach(seed):
    """Also where joints at their limits bar its way: then it goes to the answer by its joints."""
    arm, rng = sy.bundled("arm7"), np.random.default_rng(seed)
    low, high = arm.limits
    start = sy.Pose(arm, 0.5 * (low + high) + 0.35 * (high - low) * rng.uniform(-1.0, 1.0, 7))
    servo = sy.Servo(arm, sy.PoseGoal("tool"), rate=100, velocity=2.0, acceleration=20.0)
    servo.reset(start)
    home = start.transform("tool")
    out = rng.normal(size=3)
    out *= rng.uniform(1.5, 2.5) * servo.ik.reach / np.linalg.norm(out)
    for tick in range(1100):
        s = np.clip((tick - 100) / 200, 0, 1) - np.clip((tick - 400) / 200, 0, 1)
        target = home.copy()
        target[:3, 3] += s * s * (3.0 - 2.0 * s) * out
        command = servo.step({"tool": target})
    assert command.reached
