"""Servos with clearance goals: no tick comes too near, measured apart from them; they slide, stop, and stay still."""

import numpy as np
import pytest

import synovia as sy
from synovia.ik.contacts import nearest_contacts

WORLD = sy.World(
    {
        "wall": sy.Box(center=(0.35, 0, 0.4), size=(0.02, 0.5, 0.8)),
        "ball": sy.Sphere(center=(-0.3, 0.3, 0.6), radius=0.1),
    }
)
LIMITS = {"velocity": 2.0, "acceleration": 10.0}
DISTANCE = 0.01


def gap(ik, q):
    """Return how far the nearest pair is apart."""
    return nearest_contacts(ik.problem, sy.Pose(ik.skeleton, q))[0].distance


def arm_servo(world=WORLD, **options):
    """Return a servo of an arm at a pose that is clear."""
    arm = sy.bundled("arm7")
    goals = [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=world)]
    servo = sy.Servo(arm, goals, rate=100, **(LIMITS | options))
    start = servo.ik.solve({"tool": (0.2, 0.2, 0.5)})
    assert start.reached
    servo.reset(start.pose)
    return servo


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("jerk", [None, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_tick_comes_too_near(seed, jerk):
    """Targets jump and drift, also into obstacles and into the body; at the end the body is told to hold."""
    servo = arm_servo(jerk=jerk)
    rng = np.random.default_rng(seed)
    near = servo.ik.tolerance[0]
    target, drift = np.zeros(3), np.zeros(3)
    before = servo.step().q
    for tick in range(500):
        if tick % 50 == 0:
            target = sy.bundled("arm7").random_pose(int(rng.integers(1000))).position("tool")
            drift = 0.3 * rng.normal(size=3)
        target = target + 0.01 * drift
        command = servo.step({"tool": target}) if tick < 300 else servo.hold()
        assert gap(servo.ik, command.q) >= DISTANCE - 2.0 * near
        assert np.abs(command.q - before).max() <= 0.01 * LIMITS["velocity"] * (1.0 + 1e-9)
        before = command.q
    assert np.abs(command.velocity).max() < 1e-6


@pytest.mark.compiled
@pytest.mark.parametrize(("jerk", "nudge"), [(None, 0.0), (100.0, 0.0), (None, 1e-9), (None, -1e-9)])
def test_a_target_behind_a_wall_is_approached_without_trembling(jerk, nudge):
    """The body slides along the wall to the best place, stands still there, says why, and goes on afterwards.

    So it does if a target is elsewhere by no more than rounding could be.
    """
    wall = sy.World({"wall": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 3, 3))})
    servo = arm_servo(wall, jerk=jerk)
    for target in ((0.6, 0.1 + nudge, 0.4), (0.6, -0.3, 0.4 - nudge)):
        for _ in range(3000):  # sliding takes time
            command = servo.step({"tool": target})
        best = servo.ik.solve({"tool": target}, start=command.pose).errors[0].position
        assert command.errors[0].position <= best + 0.01 * servo.ik.reach
        still = np.array([servo.step({"tool": target}).q for _ in range(20)])
        assert np.abs(np.diff(still, axis=0)).max() < 1e-6
        assert any("against 'wall'" in line for line in command.explain())
    for _ in range(500):
        command = servo.step({"tool": (0.3, -0.2, 0.6)})
    assert command.status.name == "REACHED"


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("seed", [0, 3])
def test_a_fast_body_with_long_ticks_brakes_in_time(seed):
    """The way on which it brakes is the one that it takes, also if a joint turns far in a tick."""
    limits = {"velocity": 2.0, "acceleration": 40.0, "jerk": 100.0}
    servo = sy.Servo(sy.bundled("arm7"), [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=WORLD)],
                     rate=20, **limits)  # fmt: skip
    servo.reset(servo.ik.solve({"tool": (0.2, 0.2, 0.5)}).pose)
    rng = np.random.default_rng(seed)
    for _ in range(8):
        target = sy.bundled("arm7").random_pose(int(rng.integers(1000))).position("tool")
        drift = 0.003 * rng.normal(size=3)
        for _ in range(50):
            target = target + drift
            assert gap(servo.ik, servo.step({"tool": target}).q) >= DISTANCE - servo.ik.tolerance[0]


@pytest.mark.compiled
@pytest.mark.parametrize("limit", [None, sy.Interval(-999999, 999999)])
def test_a_slide_without_an_end_below_a_hinge(limit):
    """As in a mobile robot: how far the hinge moves things follows from where the slide is."""
    ball = sy.Sphere(radius=0.1)
    out = np.eye(4)
    out[0, 3] = 1.0
    body = sy.Skeleton(
        [
            sy.Joint("turn", kind=sy.Kind.HINGE, axis=(0, 0, 1), shapes=[ball]),
            sy.Joint("slide", "turn", sy.Kind.SLIDE, out, axis=(1, 0, 0), limit=limit, shapes=[ball]),
            sy.Joint("tip", "slide", rest=out),
        ]
    )
    wall = sy.World({"wall": sy.HalfSpace(point=(2.0, 0, 0), normal=(-1, 0, 0))})
    servo = sy.Servo(body, [sy.PositionGoal("tip"), sy.ClearanceGoal(DISTANCE, world=wall)], rate=100, **LIMITS)
    servo.reset(sy.Pose(body, [1.5, 0.0]))
    for tick in range(200):
        command = servo.step({"tip": (4.0, np.sin(tick / 30), 0.0)})
        assert gap(servo.ik, command.q) >= DISTANCE - servo.ik.tolerance[0]
    assert command.solution.contacts[0].distance < DISTANCE + 0.01


@pytest.mark.compiled
def test_a_body_that_is_too_near_comes_away():
    """It is hardly ever nearer than before, and then goes on."""
    start = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool")).solve({"tool": (0.3, 0.2, 0.5)}).pose
    ball = sy.Sphere(center=start.position("tool") + np.array((0.05, 0.05, 0.0)), radius=0.05)
    servo = arm_servo(sy.World({"ball": ball}))
    servo.reset(start)
    last = gap(servo.ik, start.q)
    assert last < 0.0
    for _ in range(600):
        command = servo.step({"tool": (0.1, 0.3, 0.6)})
        now = gap(servo.ik, command.q)
        assert now >= min(last, DISTANCE) - 2.0 * servo.ik.tolerance[0]
        last = now
    assert command.status.name == "REACHED"


@pytest.mark.slow
@pytest.mark.compiled
def test_a_whole_body_keeps_its_hands_apart_and_its_feet_planted():
    """Both hands are sent into the chest and through each other."""
    body = sy.bundled("humanoid")
    hands = [sy.PositionGoal(f"{side}_hand", priority=1) for side in ("left", "right")]
    feet = [sy.ContactGoal(f"{side}_foot") for side in ("left", "right")]
    servo = sy.Servo(
        body, [*feet, *hands, sy.ClearanceGoal(0.005)], rate=100, velocity=3.0, acceleration=20.0, root="free"
    )
    servo.reset()
    rest = body.rest_pose()
    for tick in range(150):
        swapped = tick >= 75
        targets = {
            "left_hand": rest.position("right_hand") if swapped else rest.position("chest"),
            "right_hand": rest.position("left_hand") if swapped else rest.position("chest") + 0.05,
        }
        command = servo.step(targets)
        assert gap(servo.ik, command.q) >= -1e-4
        assert max(error.position for error in command.errors[:2]) < 2.0 * servo.ik.tolerance[0]


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_priorities_hold_along_obstacles(seed):
    """A tool that is held keeps its place while a goal of lower priority pushes the arm against a wall and itself."""
    arm = sy.bundled("arm7")
    wall = sy.World({"wall": sy.Box(center=(0.0, 0.45, 0.4), size=(2, 0.02, 2))})
    goals = [sy.PositionGoal("tool"), sy.PositionGoal("joint4", priority=1), sy.ClearanceGoal(DISTANCE, world=wall)]
    servo = sy.Servo(arm, goals, rate=100, **LIMITS)
    start = servo.ik.solve({"tool": (0.3, 0.2, 0.5), "joint4": (0.1, 0.0, 0.6)}).pose
    servo.reset(start)
    rng, tool = np.random.default_rng(seed), start.position("tool")
    for tick in range(300):
        if tick % 60 == 0:
            elbow = start.position("joint4") + rng.uniform(-0.4, 0.4, 3)
        command = servo.step({"tool": tool, "joint4": elbow})
        assert command.errors[0].position <= 2.0 * servo.ik.tolerance[0]
        assert gap(servo.ik, command.q) >= DISTANCE - 2.0 * servo.ik.tolerance[0]


def test_a_path_that_would_break_the_promise_is_refused():
    """With a constraint; with a priority, clearance is an ordinary goal."""
    goals = [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE)]
    with pytest.raises(sy.errors.UnsupportedError, match="priority="):
        sy.Servo(sy.bundled("arm7"), goals, rate=100, **LIMITS, late="slow")


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_a_lower_acceleration_comes_when_the_body_can_brake_with_it(seed):
    """It is lowered on the way towards obstacles and the body; at rest it is there."""
    servo = arm_servo(acceleration=40.0)
    rng = np.random.default_rng(seed)
    for tick in range(300):
        if tick % 30 == 0:
            target = sy.bundled("arm7").random_pose(int(rng.integers(1000))).position("tool")
        if tick % 30 == 12:
            servo.change(acceleration=2.0)
        if tick % 30 == 25:
            servo.change(acceleration=40.0)
        command = servo.step({"tool": target})
        assert gap(servo.ik, command.q) >= DISTANCE - 2.0 * servo.ik.tolerance[0]
    for _ in range(300):
        command = servo.hold()
    assert np.abs(command.velocity).max() < 1e-6
    servo.change(acceleration=2.0)
    for _ in range(30):
        command = servo.step({"tool": (0.2, 0.2, 0.5)})
        assert np.abs(command.acceleration).max() <= 2.0 * (1.0 + 1e-6)


@pytest.mark.compiled
def test_what_is_left_is_known_after_every_tick():
    """Also where the body has to brake although it is too near, and where the robot is beside its commands."""
    servo = arm_servo()
    rng = np.random.default_rng(7)
    for tick in range(300):
        if tick % 40 == 0:
            target = sy.bundled("arm7").random_pose(int(rng.integers(1000))).position("tool")
        command = servo.step({"tool": target}) if tick % 100 < 80 else servo.hold()
        if 100 < tick < 200:
            servo.measured(command.q + 0.01)
        guard = servo._parts[0]._guard
        assert (guard.left <= guard.ways.left(command._details.body) + servo.ik.tolerance[0]).all()


@pytest.mark.compiled
def test_a_base_in_its_table_does_not_count():
    """No joint moves it, so the hand still keeps out of the wall."""
    arm = sy.bundled("arm7")
    table = sy.Box(center=(0, 0, -0.02), size=(0.4, 0.4, 0.045))
    world = sy.World({"wall": sy.Box(center=(0.45, 0, 0.5), size=(0.02, 2, 1)), "table": table})
    servo = sy.Servo(arm, [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=world)], rate=100, **LIMITS)
    servo.reset(servo.ik.solve({"tool": (0.25, 0.2, 0.5)}).pose)
    for _ in range(200):
        command = servo.step({"tool": (0.7, 0.2, 0.5)})
        assert gap(servo.ik, command.q) >= DISTANCE - servo.ik.tolerance[0]


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("jerk", [None, 200.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_pair_that_stays_too_near_leaves_the_others_their_distance(seed, jerk):
    """A pedestal overlaps a link that cannot leave it; the hand is sent into a wall."""
    arm = sy.bundled("arm7")
    obstacles = {
        "pedestal": sy.Box(center=(0, 0, 0.3), size=(0.12, 0.12, 0.12)),
        "wall": sy.HalfSpace(point=(0.4, 0, 0), normal=(-1, 0, 0)),
    }
    goals = [sy.PositionGoal("tool"), sy.ClearanceGoal(0.0, world=sy.World(obstacles))]
    servo = sy.Servo(arm, goals, rate=100, velocity=3.0, acceleration=6.0, jerk=jerk)
    servo.reset(servo.ik.solve({"tool": (0.2, 0.2, 0.5)}).pose)
    slack = servo.ik.tolerance[0]
    first = {contact.pair: contact.distance for contact in nearest_contacts(servo.ik.problem, servo.step().pose)}
    assert min(first.values()) < -0.01
    rng = np.random.default_rng(seed)
    for tick in range(300):
        if tick % 50 == 0:
            target = rng.uniform((0.2, -0.6, 0.1), (0.8, 0.6, 0.9))
        command = servo.step({"tool": target})
        for contact in nearest_contacts(servo.ik.problem, sy.Pose(servo.skeleton, command.q)):
            assert contact.distance >= min(first.get(contact.pair, 0.0), 0.0) - 2.0 * slack
