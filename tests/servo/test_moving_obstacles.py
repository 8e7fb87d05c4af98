"""Servos among obstacles that move: each tick is judged by coal, with obstacles where they stand in that tick."""

import numpy as np
import pytest

import synovia as sy

DISTANCE, RATE = 0.01, 100
ARM = sy.bundled("arm7")
HOME = (0.2, 0.2, 0.5)
WORLD = sy.World(
    {
        "wall": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 0.3, 0.8)),
        "ball": sy.Obstacle(sy.Sphere(radius=0.08), transform=(0.6, 0.6, 0.6)),
        "box": sy.Obstacle(sy.Box(size=(0.2, 0.1, 0.1)), transform=(-0.6, -0.6, 0.6)),
    }
)


def arm_servo(world=WORLD, goals=(), **options):
    """Return a servo at a pose that is clear."""
    clear = sy.ClearanceGoal(DISTANCE, world=world)
    limits = {"velocity": 2.0, "acceleration": 10.0}
    servo = sy.Servo(ARM, [sy.PositionGoal("tool"), *goals, clear], rate=RATE, **(limits | options))
    servo.reset(servo.ik.solve({"tool": HOME}).pose)
    return servo


def judged_by_coal():
    """Return a function of a pose and the places of obstacles: the distance of each pair, by coal."""
    coal = pytest.importorskip("coal")
    makers = {
        "sphere": lambda x, y, z, radius: coal.Sphere(radius),
        "capsule": lambda x, y, z, radius: coal.Capsule(radius, 2 * z),
        "box": lambda x, y, z, radius: coal.Box(2 * x, 2 * y, 2 * z),
        "cylinder": lambda x, y, z, radius: coal.Cylinder(radius, 2 * z),
    }

    def solids(shapes):
        return [(makers[shape.word](*shape.sizes()), shape.place()) for shape in shapes]

    links = {link: solids(shapes) for link, shapes in ARM.shapes.items()}
    things = {thing.name: (solids(thing.shapes), thing.transform) for thing in WORLD}
    pairs = [*sy.shapes.self_pairs(ARM).pairs]
    moving = [link for link in links if ARM.parents[ARM.index(link)] >= 0]

    def gap(a, b, T, S):
        found = []
        for one, place in a:
            for other, spot in b:
                frames = [coal.Transform3s(M[:3, :3], M[:3, 3]) for M in (T @ place, S @ spot)]
                request, result = coal.DistanceRequest(), coal.DistanceResult()
                found.append(coal.distance(one, frames[0], other, frames[1], request, result))
        return min(found)

    def judge(pose, places):
        T = {link: pose.transform(link) for link in links}
        out = {pair: gap(links[pair[0]], links[pair[1]], T[pair[0]], T[pair[1]]) for pair in pairs}
        for name, (thing, S) in things.items():
            S = S.copy()
            if name in places:
                S = places[name] if np.shape(places[name]) == (4, 4) else np.eye(4)
                S[:3, 3] = places[name] if np.shape(places[name]) == (3,) else S[:3, 3]
            out |= {(link, name): gap(links[link], thing, T[link], S) for link in moving}
        return out

    return judge


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("speed", "ticks"), [(0.0, 1000), (0.1, 1500), pytest.param(0.1, 6000, marks=pytest.mark.nightly), (0.6, 3000)]
)
def test_ticks_only_come_nearer_where_they_have_to_brake(speed, ticks):
    """A pair that is clear among the obstacles of a tick stays clear, and one that is not comes no nearer.

    A body that moves, and finds an obstacle where it would brake, brakes: that may take it nearer. So may the way out
    of another pair that is deeper, where it is squeezed.
    """
    judge, servo, rng = judged_by_coal(), arm_servo(), np.random.default_rng(int(10 * speed))
    near = servo.ik.tolerance[0]
    places = {"ball": np.array((0.6, 0.6, 0.6)), "box": np.eye(4)}
    places["box"][:3, 3] = (-0.6, -0.6, 0.6)
    before, braked, checked = servo.step({"clearance": places}), 0, 0
    ways = {name: np.zeros(3) for name in places}
    for tick in range(ticks):
        if tick % 40 == 0:
            target = ARM.random_pose(int(rng.integers(1000))).position("tool")
            for name, place in places.items():
                here = place if name == "ball" else place[:3, 3]
                way = rng.uniform((-0.5, -0.5, 0.2), (0.5, 0.5, 0.9)) - here
                ways[name] = speed / RATE * way / np.linalg.norm(way)
        turn = np.eye(4)
        turn[:3, :3] = sy.Rotation.from_rotvec((0, 0, speed / RATE)).as_matrix()
        places = {"ball": places["ball"] + ways["ball"], "box": places["box"] @ turn}
        places["box"][:3, 3] += ways["box"]
        command = servo.step({"tool": target, "clearance": places})
        if tick % 10 == 0:
            gaps = judge(command.pose, places)
            told = {contact.pair: contact.distance for contact in command.solution.contacts}
            assert min(gaps.values()) == pytest.approx(min(told.values()), abs=2e-5)  # coal's own tolerance
            assert command.reached <= (min(gaps.values()) >= DISTANCE - 2e-5)
            first = judge(before.pose, places)
            nearer = {pair: gaps[pair] - min(first[pair], DISTANCE) for pair in gaps}
            pair = min(nearer, key=nearer.get)
            worse = nearer[pair]
            squeezed = any(first[other] < gaps[pair] and gaps[other] > first[other] for other in gaps)
            slows = (np.abs(command.velocity) <= np.abs(before.velocity) + 1e-9).all()
            checked, braked = checked + 1, braked + (worse < -2.0 * near)
            assert worse >= -2.0 * near or (speed > 0.0 and (slows or squeezed))
        before = command
    assert braked <= 0.2 * checked


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("jerk", [None, 100.0])
def test_a_thrown_ball_pushes_a_body_that_stands(jerk):
    """It goes aside as fast as it may, and comes back; contacts and status tell where it is too near."""
    servo = arm_servo(jerk=jerk)
    lowest, seen = np.inf, False
    for tick in range(500):
        ball = np.array((0.2, 0.7, 0.6)) + tick / RATE * np.array((0.0, -0.15, 0.0)) * (tick < 200)
        ball = ball if tick < 200 else np.array((0.6, 0.6, 0.6))
        command = servo.step({"tool": HOME, "clearance": {"ball": ball}})
        contact = command.solution.contacts[0]
        lowest = min(lowest, contact.distance)
        if contact.distance < DISTANCE - 2.0 * servo.ik.tolerance[0]:
            seen = True
            assert contact.pair[1] == "ball"
            assert not command.reached
            assert any("ball" in line for line in command.explain())
    assert seen == (lowest < DISTANCE - 2.0 * servo.ik.tolerance[0])
    assert lowest > -0.02
    assert command.reached


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("offset", [(0.0, 0.0, 0.08), (-0.05, -0.05, 0.05), (0.05, 0.05, 0.0)])
def test_an_obstacle_put_into_a_body_is_left_as_from_a_start_in_collision(offset):
    """In each tick as by a servo whose world has it there."""
    servo = arm_servo()
    start = servo.step().pose
    ball = start.position("tool") + offset
    still = arm_servo(WORLD.moved({"ball": ball}))
    still.reset(start)
    last = None
    for _ in range(300):
        command = servo.step({"tool": (0.1, 0.3, 0.6), "clearance": {"ball": ball}})
        other = still.step({"tool": (0.1, 0.3, 0.6)})
        now = command.solution.contacts[0].distance
        assert last is None or now >= min(last, DISTANCE) - 2.0 * servo.ik.tolerance[0]
        assert np.allclose(command.q, other.q, atol=1e-6)
        assert command.status is other.status
        last = now
    assert command.reached == (offset[2] > 0.0)


@pytest.mark.compiled
def test_a_goal_of_a_priority_and_a_pole_see_obstacles_that_move():
    """Without a constraint there is no guard; goals of several levels have a body ahead."""
    world = sy.World({"ball": sy.Sphere(radius=0.08)})
    clear = sy.ClearanceGoal(DISTANCE, world=world, priority=1)
    goals = [sy.PositionGoal("tool"), sy.RotationGoal("tool", priority=2), clear]
    for late in ("deviate", "slow"):
        servo = sy.Servo(ARM, goals, rate=RATE, velocity=2.0, acceleration=10.0, late=late)
        start = servo.ik.solve({"tool": HOME, "clearance": {"ball": (2.0, 0, 0)}}).pose
        servo.reset(start)
        beside = start.position("joint4") + np.array((0.0, 0.0, 0.1))
        for _ in range(300):
            command = servo.step({"tool": HOME, "clearance": {"ball": beside}})
        anew = sy.IK(ARM, [goals[0], sy.ClearanceGoal(DISTANCE, world=world.moved({"ball": beside}))])
        assert anew.solve({"tool": HOME}, start=command.pose).steps <= 2
        assert command.errors[-1].position < servo.ik.tolerance[0]


@pytest.mark.compiled
def test_a_command_keeps_the_obstacles_of_its_tick():
    servo = arm_servo()
    above = servo.step().pose.position("tool") + np.array((0.0, 0.0, 0.2))
    first = servo.step({"tool": HOME, "clearance": {"ball": above}})
    second = servo.step({"clearance": {"ball": (2.0, 0.0, 0.0)}})
    third = servo.step()  # it stays where it was told
    assert first.solution.goals[-1].world["ball"].transform[2, 3] == above[2]
    assert [one.solution.goals[-1].world["ball"].transform[0, 3] for one in (second, third)] == [2.0, 2.0]
    servo.reset(first.pose)
    assert servo.step().solution.goals[-1].world["ball"].transform[0, 3] == 0.6


@pytest.mark.compiled
def test_a_refused_tick_changes_nothing():
    servo, other = arm_servo(), arm_servo()
    places = {"ball": (0.3, 0.3, 0.7)}
    for one in (servo, other):
        one.step({"tool": HOME, "clearance": places})
    for targets in ({"tool": (0, np.inf, 0), "clearance": {"ball": (0.0, 0.3, 0.6)}}, {"clearance": {"bal": HOME}},
                    {"clearance": {"ball": (np.inf, 0, 0)}}):  # fmt: skip
        with pytest.raises(sy.SynoviaError):
            servo.step(targets)
    with pytest.raises(sy.InputError, match="Pass places of obstacles to step"):
        servo.schedule({"clearance": {"ball": [HOME, HOME]}}, [1.0, 2.0])
    for _ in range(20):
        a, b = servo.step({"tool": (0.1, 0.4, 0.5)}), other.step({"tool": (0.1, 0.4, 0.5)})
        assert (a.q == b.q).all()
        assert a.solution.contacts[0].distance == b.solution.contacts[0].distance


@pytest.mark.compiled
def test_obstacles_that_stay_change_nothing():
    """Places that are told in every tick, and are the same, give the ticks of a world that has them."""
    places = {"ball": (0.3, 0.3, 0.8), "box": (-0.3, 0.3, 0.5)}
    servo, still = arm_servo(), arm_servo(WORLD.moved(places))
    start = still.ik.solve({"tool": HOME}).pose
    for one in (servo, still):
        one.reset(start)
    for tick in range(200):
        target = (0.2 + 0.1 * np.sin(tick / 20), 0.3, 0.5)
        a, b = servo.step({"tool": target, "clearance": places}), still.step({"tool": target})
        assert np.allclose(a.q, b.q, atol=1e-5)
