"""``late="slow"``: bodies stay on the path of their targets, as fast as their limits allow."""

import numpy as np
import pytest

import synovia as sy
from servo.judge import differences, excesses
from synovia.kernels.compiler.jit import entry
from synovia.kernels.layout import GIVEN, TARGET_WIDTH
from synovia.kernels.servo.path import write_path
from synovia.servo.path import Path

REACH = 2.0
MOVES = [((0.2, 0.0, 0.0), (0.0, 0.3, 0.0)), ((0.0, 0.2, 0.1), (0.2, 0.0, 0.1)), ((0.0, 0.2, 0.1), (0.2, 0.0, 0.1))]
LIMITS = {"velocity": 1.5, "acceleration": 8.0}
LEFT = "The body could not go on along its path, and has left it."


@entry
def _write(path, s, out):
    write_path(path, s, out)


def targets(moves):
    """Return tables of targets of one goal, each moved and turned from the one before."""
    frame, out = np.eye(4), []
    for shift, turn in [((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), *moves]:
        frame = frame.copy()
        frame[:3, 3] += shift
        frame[:3, :3] = frame[:3, :3] @ sy.Rotation.from_rotvec(turn).as_matrix()
        table = np.zeros((1, 1, TARGET_WIDTH))
        table[0, 0, :16], table[0, 0, GIVEN] = frame.ravel(), 3
        out.append(table)
    return out


def path_of(tables):
    """Return a path through tables of targets, and a function that returns its frame at a coordinate."""
    path = Path(REACH)
    path.begin(tables[0])
    for table in tables[1:]:
        path.extend(table)

    def at(s):
        out = np.zeros((1, TARGET_WIDTH))
        _write(path.table, s, out)
        return out[0, :16].reshape(4, 4)

    return path, at


def test_a_path_goes_straight_from_target_to_target_and_rounds_corners():
    tables = targets(MOVES)
    path, at = path_of(tables)
    places, arms = path.table[:, 0], path.table[1:-1, 1]
    assert (np.diff(places) >= np.linalg.norm([shift for shift, _ in MOVES], axis=1) / REACH - 1e-12).all()
    frames = [table[0, 0, :16].reshape(4, 4) for table in tables]
    np.testing.assert_allclose(at(0.0), frames[0], atol=1e-15)
    np.testing.assert_allclose(at(places[-1]), frames[-1], atol=1e-14)
    np.testing.assert_allclose(at(places[-1] + 1.0), frames[-1], atol=1e-14)
    np.testing.assert_allclose(at(places[2]), frames[2], atol=1e-14)  # no corner: both parts have the same direction
    middle = at(0.5 * places[1])
    np.testing.assert_allclose(middle[:3, 3], (0.1, 0.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(middle[:3, :3], sy.Rotation.from_rotvec((0, 0.15, 0)).as_matrix(), atol=1e-14)
    cut = np.linalg.norm(at(places[1])[:3, 3] - frames[1][:3, 3])
    assert 0.0 < cut < 0.5 * arms[0] * REACH


def test_the_second_derivative_of_a_path_is_continuous():
    path, at = path_of(targets(MOVES))
    corner, arm = path.table[1, :2]
    d = 0.01 * arm
    s = np.arange(corner - 1.5 * arm, corner + 1.5 * arm, d)
    frames = np.array([at(one) for one in s])
    bends = np.diff(frames[:, :3, :].reshape(len(s), -1), n=2, axis=0) / d**2
    assert np.abs(bends).max() > 1.0
    assert np.abs(np.diff(bends, axis=0)).max() < 0.05 * np.abs(bends).max()


def test_a_path_that_is_extended_stays_where_the_known_stop_is():
    tables = targets(MOVES)
    path, at = path_of(tables[:2])
    end = path.table[-1, 0]
    path.along[3] = end - 0.001  # the known stop ends a little before the end
    before = [at(s) for s in np.linspace(0.0, end - 0.001, 50)]
    path.extend(tables[2])
    after = [at(s) for s in np.linspace(0.0, end - 0.001, 50)]
    np.testing.assert_allclose(after, before, atol=1e-14)


def off_line(points, a, b):
    """Return the largest distance of points from the line through a and b."""
    way = (b - a) / np.linalg.norm(b - a)
    return np.linalg.norm(np.cross(points - a, way), axis=1).max()


def off_segment(points, a, b):
    """Return the distances of points from the straight line from a to b."""
    part = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return np.linalg.norm(points - a - part[:, None] * (b - a), axis=1)


def commands_of(servo, aims, ticks, reached=lambda command: command.reached):
    """Return joint values and places of the tool until the last target is reached."""
    commands = [servo.step(dt=0)]
    for k in range(ticks):
        commands.append(servo.step({"tool": aims[min(k, len(aims) - 1)]}))
        if k >= len(aims) - 1 and reached(commands[-1]):
            break
    assert reached(commands[-1]), commands[-1].explain()
    q, places = np.array([c.q for c in commands]), np.array([c.pose.position("tool") for c in commands])
    return q, places


@pytest.mark.parametrize("jerk", [None, 80.0])
@pytest.mark.parametrize("seed", range(3))
def test_an_arm_stays_on_a_line_within_its_limits_and_uses_them(jerk, seed):
    body, rng = sy.bundled("arm7"), np.random.default_rng(seed)
    servo = sy.Servo(body, sy.PoseGoal("tool"), rate=100, late="slow", jerk=jerk, **LIMITS)
    first = np.array([0.2, 0.6, 0.1, -1.2, 0.1, 0.9, 0.2]) + rng.uniform(-0.2, 0.2, 7)
    last = sy.Pose(body, first + rng.uniform(-0.4, 0.4, 7))
    servo.reset(sy.Pose(body, first))
    q, places = commands_of(servo, [last.transform("tool")], 800)
    assert off_line(places, places[0], last.position("tool")) <= servo.ik.tolerance[0]
    h = np.full(len(q) - 1, 0.01)
    assert excesses(differences(q, h), (1.5, 8.0, jerk), np.spacing(np.abs(q).max()), 0.01) <= 0.0
    v, a, _ = differences(q, h)
    used = np.maximum(np.abs(v[1:]).max(1) / 1.5, np.abs(a).max(1) / 8.0)
    assert np.median(used) > (0.5 if jerk is None else 0.3)


@pytest.mark.parametrize("jerk", [None, 80.0])
def test_an_arm_goes_round_a_circle_that_is_led_too_fast(jerk):
    body = sy.bundled("arm7")
    servo = sy.Servo(body, sy.PoseGoal("tool"), rate=100, late="slow", jerk=jerk, **LIMITS)
    servo.reset(sy.Pose(body, [0.2, 0.6, 0.1, -1.2, 0.1, 0.9, 0.2]))
    home = servo.step(dt=0).pose.transform("tool")
    aims = []
    for angle in np.linspace(0.0, 2.0 * np.pi, 41)[1:]:
        aims.append(home.copy())
        aims[-1][:3, 3] += 0.08 * np.array([0.0, np.sin(angle), np.cos(angle) - 1.0])
    q, places = commands_of(servo, aims, 1500)
    shift = places - home[:3, 3] + (0.0, 0.0, 0.08)
    assert np.abs(np.linalg.norm(shift, axis=1) - 0.08).max() < 1e-3  # the chords are 0.25 mm off
    assert np.abs(shift[:, 0]).max() < servo.ik.tolerance[0]
    h = np.full(len(q) - 1, 0.01)
    assert excesses(differences(q, h), (1.5, 8.0, jerk), np.spacing(np.abs(q).max()), 0.01) <= 0.0


def test_a_path_beyond_the_reach_ends_where_the_body_can_go_and_the_body_says_so():
    body = sy.bundled("arm7")
    servo = sy.Servo(body, sy.PositionGoal("tool"), rate=100, late="slow", **LIMITS)
    servo.reset(sy.Pose(body, [0.2, 0.6, 0.1, -1.2, 0.1, 0.9, 0.2]))
    far = (1.5, 0.3, 0.6)
    begin, off = servo.step(dt=0).pose.position("tool"), False
    for _ in range(600):
        command = servo.step({"tool": far})
        off = off or LEFT in command.explain()
        assert off or off_line(command.pose.position("tool")[None], begin, np.array(far)) <= servo.ik.tolerance[0]
    assert off
    assert LEFT in command.explain()
    best = sy.solve(body, sy.PositionGoal("tool", position=far), start=command.pose)
    assert command.status is not sy.Status.LATE
    assert command.errors[0].position <= best.errors[0].position + 1e-3
    near = (0.4, 0.2, 0.5)
    for _ in range(600):
        command = servo.step({"tool": near})
    assert command.status is sy.Status.REACHED
    assert LEFT not in command.explain()


def test_goals_of_lower_priority_yield_on_a_path():
    goals = [sy.PositionGoal("tool"), sy.PoseGoal("joint5", name="forearm", priority=1)]
    servo = sy.Servo(sy.bundled("arm7"), goals, rate=100, late="slow", **LIMITS)
    servo.reset(sy.Pose(servo.skeleton, [0.2, 0.6, 0.1, -1.2, 0.1, 0.9, 0.2]))
    begin = servo.step(dt=0).pose.position("tool")
    aim = begin + np.array((0.0, 0.1, -0.2))
    _, places = commands_of(servo, [aim], 600, reached=lambda command: command.states["tool"] == "reached")
    assert off_line(places, begin, aim) <= servo.ik.tolerance[0]


def test_a_body_follows_the_path_again_behind_a_part_that_is_out_of_reach():
    servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=100, late="slow", **LIMITS)
    servo.reset(sy.Pose(servo.skeleton, [0.2, 0.6, 0.1, -1.2, 0.1, 0.9, 0.2]))
    begin = servo.step(dt=0).pose.position("tool")
    far, last = begin + np.array((0.55, 0.0, 0.05)), begin + np.array((0.05, 0.3, 0.1))
    best = sy.solve(servo.skeleton, sy.PositionGoal("tool", position=far))
    beyond = best.errors[0].position
    assert beyond > 0.02
    q, places = commands_of(servo, [far, last], 2500)
    off = np.minimum(*(off_segment(places, a, b) for a, b in ((begin, far), (far, last))))
    assert off.max() < 2.0 * beyond
    near = np.linalg.norm(places - last, axis=1) < 0.1
    assert off[near].max() < 1e-3
    h = np.full(len(q) - 1, 0.01)
    assert excesses(differences(q, h), (1.5, 8.0, None), np.spacing(np.abs(q).max()), 0.01) <= 0.0
