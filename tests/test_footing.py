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


def walk(fps=30.0, count=120):
    """Return a walk along z on a floor: each foot stands for half a second, and then goes 0.6 m ahead."""
    body = sy.bundled("humanoid").with_root("free")
    rest, t = body.rest_pose(), np.arange(count) / fps
    targets = {"hips": rest.position("hips") + np.column_stack([0 * t, 0 * t - 0.06, 0.6 * t])}
    for side, phase in (("left_foot", 0.0), ("right_foot", 0.5)):
        cycle = t + phase
        part = np.clip(2.0 * (cycle % 1.0) - 1.0, 0.0, 1.0)
        ahead = 0.6 * (np.floor(cycle) + part * part * (3.0 - 2.0 * part)) - 0.3
        targets[side] = rest.position(side) + np.column_stack([0 * t, 0.08 * np.sin(np.pi * part) ** 2, ahead])
    ik = sy.IK(body, [sy.PositionGoal(joint) for joint in targets], "full-body", root="free")
    return sy.Motion(body, ik.track(targets, start=rest).q, fps)


STEPS = {"floor": sy.HalfSpace(normal=(0, 1, 0))} | {
    f"step {k}": sy.Box(center=(0, 0.0625 * k, 0.75 * k + 1.5), size=(3, 0.125 * k, 3)) for k in (1, 2)
}


def held(clip, **more):
    """Return a clip whose feet are held, and its footholds."""
    found = sy.foot_lock(clip, floor=0.0, **more)
    return found, found.footholds


def carried(clip, **more):
    """Return a clip on another body, and its footholds."""
    found = sy.retarget(clip, sy.bundled("humanoid"), **more)
    return found, tuple(found.footholds.values())


@pytest.mark.compiled
@pytest.mark.parametrize("make", [held, carried])
def test_a_walk_goes_up_steps_and_the_body_with_it(make):
    clip, world = walk(), sy.World(STEPS, up="y")
    (flat, none), (found, holds) = make(clip), make(clip, world=world)
    assert sum(map(len, none)) == 0
    assert len(found.missed_frames) <= 3  # ankles of a person bend little
    assert {hold.obstacle for own in holds for hold in own} == {"floor", "step 1", "step 2"}
    body, at, before = found.motion.skeleton, found.motion.positions(), flat.motion.positions()
    rise = (at - before)[:, body.index("hips"), 1]
    assert rise[0] == pytest.approx(0.0, abs=0.02)
    assert rise[-1] == pytest.approx(0.25, abs=0.05)
    sudden, before_that = (
        np.linalg.norm(np.diff(p[:, body.index("hips")], 2, axis=0), axis=1).max() for p in (at, before)
    )
    assert sudden < before_that + 0.02
    for side in ("left", "right"):
        foot, knee, hip = (at[:, body.index(f"{side}_{part}")] for part in ("foot", "lower_leg", "upper_leg"))
        assert np.cross(knee - hip, foot - knee)[:, 0].min() > -1e-3  # knees bend forwards
        ground = np.maximum(world.ground(foot).heights, 0.0)
        usual = before[:, body.index(f"{side}_foot"), 1]
        stands = usual <= np.quantile(usual, 0.3)
        assert np.median(np.abs(foot[:, 1] - ground - usual)[stands]) < 5e-3


@pytest.mark.compiled
def test_the_judge_sees_steps_under_the_feet():
    clip, world = walk(), sy.World(STEPS, up="y")
    found = sy.retarget(clip, sy.bundled("humanoid"), world=world)
    assert not any("ground" in str(one) for one in found.judgement.warnings)
    assert any("ground" in str(one) for one in sy.judge(found.motion, clip).warnings)


@pytest.mark.compiled
def test_a_level_world_changes_nothing():
    clip = walk(count=60)
    body = sy.bundled("humanoid")
    flat = sy.World({"floor": sy.HalfSpace(normal=(0, 1, 0))}, up="y")
    steps: list[tuple[int, int]] = []
    on_it = sy.retarget(clip, body, world=flat, progress=lambda done, of: steps.append((done, of)))
    assert (sy.retarget(clip, body).motion.q == on_it.motion.q).all()
    assert steps[-1][0] == steps[-1][1], "progress ends where it should"
    locked = sy.foot_lock(clip, floor=0.0)
    assert (locked.motion.q == sy.foot_lock(clip, floor=0.0, world=flat).motion.q).all()
    assert (locked.motion.q == sy.foot_lock(clip, floor=0.0, world=sy.World()).motion.q).all()
