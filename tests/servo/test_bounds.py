"""Goals with bounds in a servo: limits stay exact, and the body comes to rest within the bounds."""

import numpy as np
import pytest

import synovia as sy

ARM = sy.bundled("arm7")
RATE, SPEED, ACCELERATION = 200, 1.5, 8.0


def driven(goal, start, targets, jerk=None):
    """Return the commands towards targets, tick by tick, after a check of the limits."""
    servo = sy.Servo(ARM, goal, rate=RATE, velocity=SPEED, acceleration=ACCELERATION, jerk=jerk)
    servo.reset(start)
    commands = [servo.step({"tool": target}) for target in targets]
    q = np.array([start.q, *(command.q for command in commands)])
    velocity = np.diff(q, axis=0) * RATE
    assert np.abs(velocity).max() <= SPEED * (1 + 1e-9)
    assert np.abs(np.diff(velocity, axis=0)).max() * RATE <= ACCELERATION * (1 + 1e-8)
    return commands


@pytest.mark.parametrize("jerk", [None, 100.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_body_comes_to_rest_within_bounds(seed, jerk):
    rng = np.random.default_rng(seed)
    entries = [0, None, 0.03, (-0.02, 0.05)]
    bounds = [0.01, *(entries[k] for k in rng.integers(4, size=5))]
    goal = sy.PoseGoal("tool", bounds=bounds, bounds_frame=["target", "tool"][seed % 2])
    target = ARM.random_pose(seed + 100).transform("tool")
    commands = driven(goal, ARM.random_pose(seed), [target] * 1000, jerk)
    assert all(command.reached for command in commands[-50:])
    assert np.ptp([command.q for command in commands[-50:]], axis=0).max() < 1e-6


def test_a_target_that_moves_within_the_bounds_moves_nothing():
    """The target slides along a free axis, and shakes within the bounds of the others."""
    start = ARM.random_pose(3)
    rng, T = np.random.default_rng(0), start.transform("tool")
    targets = np.repeat(T[None], 300, axis=0)
    targets[:, :3, 3] += np.linspace(0, 0.3, 300)[:, None] * T[:3, 1] + rng.uniform(-0.004, 0.004, (300, 3))
    goal = sy.PoseGoal("tool", bounds=(0.02, None, 0.02, 0.05, 0.05, 0.05))
    commands = driven(goal, start, targets)
    assert all(command.reached for command in commands)
    assert np.abs(np.array([command.q for command in commands]) - start.q).max() < 1e-6


def test_an_axis_is_held_in_its_cone_below_a_goal():
    """The tool follows a moving point, and its axis may lean by the cone."""
    down = sy.Rotation.from_euler("x", 180, degrees=True)
    start = sy.solve(ARM, sy.PoseGoal("tool", (0.45, 0.1, 0.3), down)).pose
    goals = [
        sy.PositionGoal("tool", name="place"),
        sy.DirectionGoal("tool", direction=(0, 0, -1), cone=0.3, name="axis"),
    ]
    servo = sy.Servo(ARM, goals, rate=RATE, velocity=SPEED, acceleration=ACCELERATION)
    servo.reset(start)
    for k in range(800):
        place = start.position("tool").copy()
        place[1] += 0.15 * np.sin(0.01 * k) * min(k / 100, 1.0)
        command = servo.step({"place": place})
        assert -command.pose.matrix("tool")[2, 2] > np.cos(0.302)
        assert command.errors[0].position < 3e-3
