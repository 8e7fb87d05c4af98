"""Feet on uneven ground: where they stand, and bodies that stand there."""

import numpy as np
import pytest

import synovia as sy
from synovia.bodies.footing import ENOUGH, Sole, foothold

UP = np.array((0.0, 0.0, 1.0))
STAIRS = sy.World(
    {
        "first": sy.Box(center=(0.5, 0, 0.075), size=(1, 2, 0.15)),
        "second": sy.Box(center=(0.65, 0, 0.225), size=(0.7, 2, 0.15)),
    }
)
HEIGHTS = {None: 0.0, "first": 0.15, "second": 0.3}


def sole_at(x, floor=0.0):
    """Return a sole of 24 cm ahead of and behind an ankle at x."""
    return Sole.below(np.array((x, 0.0, 0.1)), np.array((x + 0.18, 0.0, 0.02)), floor, UP, 0.2)


@pytest.mark.parametrize("x", np.linspace(-0.4, 0.6, 41))
def test_a_foot_stands_level_on_one_step_and_nothing_is_inside_it(x):
    """Wherever it comes down on stairs: most of it is on the step, and it moves by at most half its length."""
    sole = sole_at(x)
    hold = foothold(STAIRS, sole, 0.0, 0.0, 0.45)
    assert (hold.normal == UP).all()
    assert hold.height == pytest.approx(HEIGHTS[hold.obstacle], abs=1e-12)
    assert hold.moved <= 0.5 * sole.length + 1e-12
    points = sole.points(61, 7) @ hold.motion[:3, :3].T + hold.motion[:3, 3]
    ground = STAIRS.ground(points + 0.4 * UP, UP)
    high = np.maximum(ground.heights, 0.0)
    assert (high <= hold.height + 1e-9).mean() > 0.98  # between the points that are tried, an edge may be inside
    assert (high >= hold.height - 1e-9).mean() >= ENOUGH - 0.06


def test_a_foot_lies_on_a_ramp():
    world = sy.World({"ramp": sy.Box(size=(4, 2, 0.2))})
    world = world.moved({"ramp": ((0, 0, 0), sy.Rotation.from_euler("y", -15, degrees=True))})
    sole = sole_at(0.2)
    hold = foothold(world, sole, 0.0, 0.0, 0.45)
    points = sole.points() @ hold.motion[:3, :3].T + hold.motion[:3, 3]
    assert np.allclose(world.ground(points + UP, UP).heights, points[:, 2], atol=1e-12)
    assert hold.share == 1.0
    assert hold.obstacle == "ramp"


def test_a_foot_rests_on_stones_without_sinking_in():
    rng = np.random.default_rng(0)
    stones = [sy.Sphere(center=(*rng.uniform(-0.5, 0.5, 2), -0.05), radius=0.1) for _ in range(60)]
    world, sole = sy.World(stones), sole_at(0.0)
    hold = foothold(world, sole, 0.0, 0.0, 0.45)
    points = sole.points() @ hold.motion[:3, :3].T + hold.motion[:3, 3]
    depth = world.ground(points + UP, UP).heights - points[:, 2]
    assert depth.max() < 3e-3
    assert depth.max() > -3e-3


def test_a_wall_is_no_step():
    wall = sy.World({"wall": sy.Box(center=(0, 0, 1), size=(4, 4, 2))})
    hold = foothold(wall, sole_at(0.0), 0.0, 0.0, 0.45)
    assert hold.level


@pytest.mark.compiled
def test_a_body_stands_with_one_foot_on_a_step_and_on_a_ramp():
    body = sy.bundled("humanoid").with_root("free")
    step = sy.World({"step": sy.Box(center=(0.5, 0.1, 0), size=(1, 0.2, 1))}, up="y")
    ramp = sy.World({"ramp": sy.Box(center=(0, -0.1, 0), size=(3, 0.2, 3))}, up="y")
    ramp = ramp.moved({"ramp": ((0, 0, 0), sy.Rotation.from_euler("x", -15, degrees=True))})
    for world in (step, ramp):
        solution = sy.solve(body, sy.standing_goals(body, world=world), "full-body", root="free")
        assert solution.reached
        for side in ("left_foot", "right_foot"):
            row, rest = body.role_rows[side], body.rest_pose()
            under = rest.matrix(row).T @ (0, -rest.position(row)[1], 0)  # the sole below the ankle at rest
            sole = solution.pose.matrix(row) @ under + solution.pose.position(row)
            height = max(world.ground(sole[None] + np.array((0, 0.1, 0))).heights[0], 0.0)
            assert sole[1] == pytest.approx(height, abs=1e-3)
    assert solution.pose.position("hips")[1] > 0.5 * rest.position("hips")[1]


def test_goals_on_a_flat_floor_are_those_without_a_world():
    body = sy.bundled("humanoid")
    flat = sy.World({"floor": sy.HalfSpace(normal=(0, 1, 0))})
    for one, other in zip(sy.standing_goals(body), sy.standing_goals(body, world=flat), strict=True):
        assert one.target is None or (one.target == other.target).all()
