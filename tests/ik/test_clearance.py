"""Clearance goals: every distance, measured apart from the solver; starts in collision, misses, refusals."""

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

import synovia as sy
from cli_runs import run
from conftest import UNCOMPILED
from probes import random_q
from synovia.ik.contacts import MOST, nearest_contacts
from synovia.ik.ways import ClearWays
from synovia.kernels.layout import BLOCK_Q
from synovia.model.clip_tools.chart import Chart
from synovia.model.geometry import rotation_between
from trees import random_tree

TARGETS = 3 if UNCOMPILED else 40
SLACK = 1e-9
CLEAR = ("full-body", "lm", "dls", "pinv", "segments", "hinges")


def at(x=0.0, y=0.0, z=0.0):
    """Return the transform of a translation."""
    T = np.eye(4)
    T[:3, 3] = (x, y, z)
    return T


def hinge(name, parent, rest, shapes=(), axis=(0, 0, 1), **options):
    """Return a hinge."""
    return sy.Joint(name, parent, sy.Kind.HINGE, rest, axis=axis, shapes=shapes, **options)


BONE = sy.Capsule(a=(0, 0, 0), b=(1, 0, 0), radius=0.1)


def chain(count=4, shapes=(BONE,)):
    """Return links one unit long in a plane."""
    joints = [hinge("l0", None, np.eye(4), shapes)]
    joints += [hinge(f"l{k}", f"l{k - 1}", at(1.0), shapes) for k in range(1, count)]
    return sy.Skeleton([*joints, sy.Joint("tip", f"l{count - 1}", rest=at(1.0))])


def gaps(pose, world=None, pairs=None):
    """Return the distance of each pair that counts, by ``sy.shapes.distance`` and the world alone."""
    body = pose.skeleton
    found = {}
    for a, b in sy.shapes.self_pairs(body).pairs if pairs is None else pairs:
        T, S = pose.transform(a), pose.transform(b)
        found[a, b] = min(
            sy.shapes.distance(u, v, transform_a=T, transform_b=S).distance
            for u in body.shapes[a]
            for v in body.shapes[b]
        )
    for link, shapes in body.shapes.items() if world is not None else ():
        if body.parents[body.index(link)] < 0 and body.joints[body.index(link)].kind is sy.Kind.FIXED:
            continue
        for shape in shapes:
            for name, contact in world.distances(shape, transform=pose.transform(link)).items():
                found[link, name] = min(contact.distance, found.get((link, name), np.inf))
    return found


WALL = sy.World({"wall": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 0.3, 0.8))})
MIXED = sy.World(
    {
        "floor": sy.HalfSpace(point=(0, 0, -0.3), normal=(0, 0, 1)),
        "post": sy.Cylinder(center=(0.4, 0.3, 0.4), radius=0.05, length=0.9),
        "ball": sy.Sphere(center=(-0.4, 0.2, 0.6), radius=0.12),
        "rod": sy.Capsule(a=(0.3, -0.4, 0.2), b=(0.3, -0.4, 0.9), radius=0.03),
        "rock": sy.ConvexHull(points=np.array([(0, -0.5, 0.9), (0.2, -0.6, 0.9), (0, -0.6, 1.1), (0.1, -0.4, 1.0)])),
        "points": sy.PointCloud(points=[(-0.4, -0.4, z) for z in np.linspace(0.2, 0.8, 9)], radius=0.04),
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("world", [None, WALL, MIXED], ids=["self", "wall", "mixed"])
def test_reached_poses_keep_every_distance(world):
    """Of each pair, measured by ``sy.shapes.distance``; within the limits."""
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, [sy.PositionGoal("tool"), sy.ClearanceGoal(0.01, world=world)])
    reached = 0
    for seed in range(TARGETS):
        solution = ik.solve({"tool": arm.random_pose(seed).position("tool")})
        low, high = arm.limits
        assert (low - SLACK <= solution.q).all()
        assert (solution.q <= high + SLACK).all()
        if solution.reached:
            reached += 1
            found = gaps(solution.pose, world)
            assert min(found.values()) >= 0.01 - SLACK
            nearest = solution.contacts[0]
            assert nearest.distance == pytest.approx(min(found.values()), abs=1e-9)
            pair = nearest.pair if nearest.pair in found else nearest.pair[::-1]
            assert found[pair] == pytest.approx(nearest.distance, abs=1e-9)
    assert reached > 0.5 * TARGETS


def test_contacts_have_the_nearest_pairs_among_many():
    """Also beside large obstacles, whose bounding spheres contain the body, and among points that are dense."""
    arm = sy.bundled("arm7")
    points = np.random.default_rng(0).normal(size=(1000, 3)) * 0.003 + (0.5, 0.0, 0.4)
    world = sy.World(
        {f"plate {k}": sy.Box(center=(0.9 + 0.02 * k, 0, 0.4), size=(0.005, 40, 40)) for k in range(60)}
        | {"cloud": sy.PointCloud(points=points, radius=0.02)}
    )
    ik = sy.IK(arm, sy.ClearanceGoal(0.0, world=world))
    found = nearest_contacts(ik.problem, pose := arm.random_pose(3))
    every = sorted(gaps(pose, world).values())
    np.testing.assert_allclose([contact.distance for contact in found], every[: len(found)], atol=1e-9)
    assert len(found) == min(len(every), MOST)


def test_a_start_in_collision_comes_out_of_it():
    """All joints move if the goal is the only one."""
    body = chain()
    start = sy.Pose(body, [0.0, 2.5, 2.5, 0.0])
    assert min(gaps(start).values()) < 0.0
    solution = sy.solve(body, sy.ClearanceGoal(0.05), start=start)
    assert solution.reached
    assert min(gaps(solution.pose).values()) >= 0.05 - SLACK


def test_a_constraint_comes_before_every_priority():
    """A target behind a wall is missed by what the wall takes, also with priority 0; as a goal of priority 1, not."""
    wall = sy.World({"wall": sy.HalfSpace(point=(2.0, 0, 0), normal=(-1, 0, 0))})
    body = chain(2)
    far = sy.PositionGoal("tip", (1.99, 0.0, 0.0))
    first = sy.solve(body, [far, sy.ClearanceGoal(0.0, world=wall, pairs="world")])
    tip = first.pose.position("tip")
    assert not first.reached
    assert first.status.name in ("CONFLICT", "LIMITED", "UNREACHABLE", "STALLED")
    assert min(gaps(first.pose, wall, pairs=()).values()) >= -SLACK
    assert tip[0] == pytest.approx(1.9, abs=1e-3)
    later = sy.solve(body, [far, sy.ClearanceGoal(0.0, world=wall, pairs="world", priority=1)])
    assert later.errors[0].position < later.ik.tolerance[0]
    assert later.errors[1].position > 0.05


def test_joints_that_no_goal_moves_stay_and_are_told():
    """The other arm overlaps itself at the start: the answer is not reached and says which links are too near."""
    arms = []
    for side in ("a", "b"):
        arms += [
            hinge(
                f"{side}0",
                "root",
                at(y=2.0 if side == "a" else -2.0),
                (BONE,),
            )
        ]
        arms += [hinge(f"{side}{k}", f"{side}{k - 1}", at(1.0), (BONE,)) for k in (1, 2)]
    body = sy.Skeleton([sy.Joint("root"), *arms])
    folded = sy.Pose(body, {"b1": 2.6, "b2": 2.6})
    goals = [sy.PositionGoal("a2", (1.5, 3.0, 0.0)), sy.ClearanceGoal(0.01)]
    solution = sy.solve(body, goals, start=folded)
    assert not solution.reached
    np.testing.assert_array_equal([solution.pose["b1"], solution.pose["b2"]], [2.6, 2.6])
    assert any("Too near" in line and "'b0' against 'b2'" in line for line in solution.explain())


def test_a_goal_that_sees_nothing_says_so():
    """A body with one link that has a shape has no pairs; shapes of the file that were not kept are told."""
    bone = sy.Capsule(a=(0, 0, 0), b=(1, 0, 0), radius=0.1)
    body = sy.Skeleton(
        [hinge("l0", None, np.eye(4), (bone,)), sy.Joint("tip", "l0", rest=at(1.0))],
        notes=["Shapes were not kept: l1."],
    )
    solution = sy.solve(body, [sy.PositionGoal("tip", (0.0, 1.0, 0.0)), sy.ClearanceGoal()])
    assert solution.reached
    assert solution.contacts == ()
    assert any("keeps nothing apart" in note for note in solution.explain())
    assert "Shapes were not kept: l1." in solution.explain()


def test_named_pairs_alone_count():
    """A pair of a link and an obstacle keeps apart; other links may pass."""
    body = chain(3)
    world = sy.World(
        {"ball": sy.Sphere(center=(1.5, 0.0, 0.0), radius=0.2), "other": sy.Sphere(center=(9, 9, 9), radius=1)}
    )
    goal = sy.ClearanceGoal(0.1, world=world, pairs=[("ball", "l2")])
    solution = sy.solve(body, [sy.PositionGoal("tip", (1.0, 0.6, 0.0)), goal])
    assert solution.reached
    assert {contact.pair for contact in solution.contacts} == {("l2", "ball")}
    assert solution.contacts[0].distance >= 0.1 - SLACK


def test_pairs_may_be_those_of_self_pairs():
    """By name, or by the rows of their joints."""
    arm = sy.bundled("arm7")
    found = sy.shapes.self_pairs(arm)
    for pairs in (found.pairs, [tuple(pair) for pair in found.rows]):
        solution = sy.solve(arm, [sy.PositionGoal("tool", (0.3, 0.2, 0.5)), sy.ClearanceGoal(0.01, pairs=pairs)])
        assert solution.reached
        assert min(gaps(solution.pose).values()) >= 0.01 - SLACK


def test_obstacles_that_are_far_away_change_nothing():
    """Ten thousand of them, and the same bits as without."""
    arm = sy.bundled("arm7")
    rng = np.random.default_rng(0)
    boxes = [sy.Box(center=c, size=(0.1, 0.2, 0.3)) for c in rng.uniform(50, 90, (200 if UNCOMPILED else 2000, 3))]
    reach = sy.PositionGoal("tool", (0.3, 0.2, 0.5))
    alone = sy.solve(arm, [reach, sy.ClearanceGoal(0.01)])
    among = sy.solve(arm, [reach, sy.ClearanceGoal(0.01, world=sy.World(boxes))])
    np.testing.assert_array_equal(alone.q, among.q)


def test_a_batch_equals_single_solves():
    """Bit for bit, from fresh memory and after other problems."""
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, [sy.PositionGoal("tool"), sy.ClearanceGoal(0.01, world=WALL)], sy.FullBody(attempts=2))
    targets = np.array([arm.random_pose(seed).position("tool") for seed in range(2 if UNCOMPILED else 8)])
    many = ik.solve_many(targets, threads=2)
    for k, target in enumerate(targets):
        np.testing.assert_array_equal(many.q[k], ik.solve({"tool": target}).q)


@pytest.mark.compiled
def test_frames_of_a_track_keep_the_distance_without_trembling():
    """A target moves behind a wall: every frame is clear, and steps are as small as the target's."""
    arm = sy.bundled("arm7")
    wall = sy.World({"wall": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 3, 3))})
    ik = sy.IK(arm, [sy.PositionGoal("tool"), sy.ClearanceGoal(0.01, world=wall)])
    path = np.stack([np.full(40, 0.5), np.linspace(-0.1, 0.1, 40), np.full(40, 0.4)], axis=1)
    clip = ik.track({"tool": path})
    for solution in list(clip)[::5]:
        assert min(gaps(solution.pose, wall).values()) >= 0.01 - SLACK
    assert np.abs(np.diff(clip.q, axis=0)).max() < 0.1
    still = ik.track({"tool": np.repeat(path[:1], 5, axis=0)})
    assert np.abs(np.diff(still.q, axis=0)).max() < 1e-6


def flat_hand(word):
    """A shape with flat sides for a hand, and points whose hull it is, or nearly so."""
    half, turn = np.array([0.03, 0.1, 0.05]), np.linspace(0, 2 * np.pi, 64, endpoint=False)
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    rims = [np.stack([0.06 * np.cos(turn), 0.06 * np.sin(turn), np.full(64, z)], axis=1) for z in (-0.05, 0.05)]
    return {
        "box": (sy.Box(size=2 * half), corners),
        "hull": (sy.ConvexHull(corners), corners),
        "cylinder": (sy.Cylinder(radius=0.06, length=0.1), np.concatenate(rims)),
    }[word]


@pytest.mark.parametrize("word", ["box", "hull", "cylinder"])
@pytest.mark.parametrize("seed", range(4))
def test_a_flat_hand_lies_on_a_wall_as_near_as_a_descent_brings_it(word, seed):
    """Several corners touch there at once; SciPy, which knows all of them, finds nothing better nearby."""
    rng = np.random.default_rng(seed)
    shape, points = flat_hand(word)
    arm = sy.with_shapes(sy.bundled("arm7"), {"hand": [shape]})
    wall = sy.World({"wall": sy.HalfSpace(point=(0.45, 0, 0), normal=(-1, 0.2 * rng.normal(), 0.2 * rng.normal()))})
    normal = wall["wall"].solids()[0].place()[:3, 2]
    target = rng.uniform([0.5, -0.2, 0.3], [0.6, 0.2, 0.5])
    goals = [sy.PositionGoal("tool"), sy.ClearanceGoal(0.01, world=wall, pairs=[("hand", "wall")])]
    ik = sy.IK(arm, goals)
    solution = ik.solve({"tool": target}, arm.random_pose(seed))

    def gaps(q):
        T = sy.Pose(arm, q).transform("hand")
        return (points @ T[:3, :3].T + T[:3, 3] - (0.45, 0, 0)) @ normal - 0.01

    def error(q):
        return float(np.sum((sy.Pose(arm, q).position("tool") - target) ** 2))

    assert gaps(solution.q).min() > -1e-6
    near = [(max(q - 0.1, low), min(q + 0.1, high)) for q, low, high in zip(solution.q, *arm.limits, strict=True)]
    best = minimize(error, solution.q, bounds=near, constraints={"type": "ineq", "fun": gaps}, method="SLSQP")
    if best.success and gaps(best.x).min() > -1e-6:
        assert np.sqrt(error(solution.q)) <= np.sqrt(best.fun) + 1e-3 * ik.problem.reach


def test_a_track_tells_where_it_passes_through_a_thin_wall():
    """Two frames on both sides of a plate are clear; the way between them is not."""
    bone = sy.Capsule(a=(0, 0, 0), b=(1, 0, 0), radius=0.02)
    body = sy.Skeleton([hinge("l0", None, np.eye(4), (bone,)), sy.Joint("tip", "l0", rest=at(1.0))])
    plate = sy.World({"plate": sy.Box(center=(0.6, 0.0, 0.0), size=(0.3, 0.01, 0.3))})
    ik = sy.IK(body, [sy.PositionGoal("tip"), sy.ClearanceGoal(0.0, world=plate, pairs="world")])
    angles = np.array([0.8, 0.4, 0.2, -0.2, -0.4])
    clip = ik.track({"tip": np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)}, start=[0.8])
    assert clip.reached.all()
    assert clip.blocked == (3,)
    assert sy.IK(body, sy.PositionGoal("tip")).track({"tip": [(1, 0, 0)]}).blocked == ()


def sizes_of_axes(body, q, end):
    """Return how far each axis goes between two poses; a rotation has all of it in its first component."""
    turns = {int(at[0]) for at in Chart.of(body).turns}
    sizes = []
    for at in body.tables.variables[:, BLOCK_Q].tolist():
        if at in turns:
            part = slice(at, at + 4)
            sizes += [float(np.linalg.norm(rotation_between(q[part], end[part]))), 0.0, 0.0]
        else:
            sizes.append(abs(float(end[at] - q[at])))
    return np.array(sizes)


@pytest.mark.parametrize("seed", range(2 if UNCOMPILED else 10))
def test_bounds_of_ways_hold(seed):
    """No pair comes nearer than the bound says, on bodies with every kind of joint, beside an obstacle."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, free=bool(seed % 2), bounded=False)
    body = sy.with_shapes(body, {row: [sy.Sphere(center=rng.normal(size=3), radius=0.1)] for row in range(len(body))})
    world = sy.World({"ball": sy.Sphere(center=(3.0, 0.0, 0.0), radius=0.1)})
    ik = sy.IK(body, sy.ClearanceGoal(world=world))
    ways, chart = ClearWays(ik.problem, 0.0), Chart.of(body)
    q, end = random_q(body, rng), random_q(body, rng)
    step = chart.between(q, end)
    ways.reach_to(np.maximum(np.abs(q), np.abs(end)))
    length = (ways.tables["levers"] @ sizes_of_axes(body, q, end)).max()
    found = []
    for share in np.linspace(0.0, 1.0, 9):
        pose = sy.Pose(body, body.follow(chart.stepped(q, share * step)))
        found.append({contact.pair: contact.distance for contact in nearest_contacts(ik.problem, pose)})
    for before, after in pairwise(found):
        for pair in before.keys() & after.keys():
            if min(before[pair], after[pair]) > 0.0:
                assert abs(after[pair] - before[pair]) <= length / 8 + 1e-9


@pytest.mark.compiled
def test_a_whole_body_keeps_its_hand_out_of_its_chest():
    """A target inside the chest: the hand stops in front of it."""
    body = sy.bundled("humanoid")
    inside = body.rest_pose().position("chest")
    goals = [sy.PositionGoal("left_hand", inside), sy.ClearanceGoal(0.0)]
    solution = sy.solve(body, goals, sy.FullBody(attempts=1))
    assert not solution.reached
    assert min(gaps(solution.pose).values()) >= -SLACK
    free = sy.solve(body, goals[0], sy.FullBody(attempts=1))
    assert min(gaps(free.pose).values()) < -0.01


@pytest.mark.compiled
def test_a_world_has_its_own_unit_and_axes():
    """A wall in centimetres with z up stands where it should in a body in metres with y up."""
    body = sy.bundled("humanoid")
    wall = sy.World({"wall": sy.HalfSpace(point=(0, -30, 0), normal=(0, 1, 0))}, meters_per_unit=0.01, up="z")
    goals = [sy.PositionGoal("left_hand", (0.2, 1.2, 0.6)), sy.ClearanceGoal(0.0, world=wall, pairs="world")]
    ik = sy.IK(body, goals, sy.FullBody(attempts=1))
    assert ik.goals[1].world.up == "y"
    assert min(gaps(ik.solve().pose, ik.goals[1].world, pairs=()).values()) >= -SLACK


@pytest.mark.parametrize("solver", sorted(set(sy.solvers) - {*CLEAR, "aim"}))
def test_other_solvers_refuse(solver):
    """When the problem is built, with the solver that supports it."""
    with pytest.raises(sy.errors.UnsupportedError, match="'full-body', 'lm', 'dls', 'pinv'"):
        sy.IK(sy.bundled("arm7"), [sy.PositionGoal("tool", (0.4, 0, 0.5)), sy.ClearanceGoal()], solver)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": float("nan")}, "distance"),
        ({"world": "wall"}, "World"),
        ({"pairs": "world"}, "world="),
        ({"pairs": "selfish"}, "pairs"),
        ({"pairs": [("a",)]}, "pairs"),
        ({"pairs": []}, "pairs"),
        ({"priority": -1}, "None for a constraint"),
        ({"priority": True}, "priority"),
        ({"weight": 0}, "weight"),
    ],
)
def test_bad_values_are_refused(options, message):
    """With the argument and what is expected."""
    with pytest.raises(sy.InputError, match=message):
        sy.ClearanceGoal(**options)


def test_unknown_and_unfit_pairs_are_refused():
    """With the names that exist."""
    arm, world = sy.bundled("arm7"), WALL
    with pytest.raises(sy.errors.UnknownNameError, match=r"wal.*wall"):
        sy.IK(arm, sy.ClearanceGoal(world=world, pairs=("joint3", "wal")))
    with pytest.raises(sy.InputError, match="clearance goal: pairs: expected two different links"):
        sy.IK(arm, sy.ClearanceGoal(pairs=("joint3", "joint3")))
    with pytest.raises(sy.InputError, match="with_shapes"):
        sy.IK(sy.Skeleton.chain([(0, 0, 0), (1, 0, 0)]), sy.ClearanceGoal())


def test_goal_files_keep_what_they_can(tmp_path):
    """Distance, priority and pairs; a world stands beside the file."""
    goals = [sy.ClearanceGoal(0.02), sy.ClearanceGoal(0.01, priority=0), sy.ClearanceGoal(priority=2)]
    sy.write_goals(goals, tmp_path / "goals.toml")
    read = sy.read_goals(tmp_path / "goals.toml")
    assert [(goal.distance, goal.priority) for goal in read] == [(0.02, None), (0.01, 0), (0.0, 2)]
    named = sy.ClearanceGoal(pairs=["self", ("joint3", "hand")])
    sy.write_goals([named], tmp_path / "named.toml")
    (again,) = sy.read_goals(tmp_path / "named.toml", sy.bundled("arm7"), world=WALL)
    assert again.pairs == named.pairs
    assert again.world is WALL
    with pytest.raises(sy.errors.UnsupportedError, match="world="):
        sy.write_goals([sy.ClearanceGoal(world=WALL)], tmp_path / "other.toml")
    text = (tmp_path / "named.toml").read_text()
    (tmp_path / "wall.toml").write_text(text.replace('"self"', '"world"').replace('"hand"', '"wall"'))
    (walled,) = sy.read_goals(tmp_path / "wall.toml", sy.bundled("arm7"), world=WALL)
    assert walled.pairs == ("world", ("joint3", "wall"))
    with pytest.raises(sy.errors.FormatError, match="--world"):
        sy.read_goals(tmp_path / "wall.toml")


@pytest.fixture
def selves(tmp_path):
    """A URDF whose links have the names of the two words, with an SRDF that excludes their pair, and a world."""
    links = "".join(
        f'<link name="{name}"><collision><origin xyz="0.1 0 0"/><geometry><sphere radius="0.03"/></geometry>'
        "</collision></link>"
        for name in ("world", "arm", "hand", "self")
    )
    joints = "".join(
        f'<joint name="{a}_{b}" type="revolute"><parent link="{a}"/><child link="{b}"/><origin xyz="0.2 0 0"/>'
        '<axis xyz="0 0 1"/><limit lower="-2.8" upper="2.8" effort="1" velocity="1"/></joint>'
        for a, b in (("world", "arm"), ("arm", "hand"), ("hand", "self"))
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{links}{joints}</robot>')
    (tmp_path / "arm.srdf").write_text(
        '<robot name="arm"><disable_collisions link1="self" link2="world" reason="Never"/></robot>'
    )
    return tmp_path


@pytest.mark.parametrize("pair", [("hand", "world"), ("world", "hand"), ["world", "hand"]])
@pytest.mark.parametrize("world", [None, WALL])
def test_in_a_pair_the_words_are_names(selves, pair, world):
    """Of links here; alone, they mean the sets."""
    arm = sy.load_skeleton(selves / "arm.urdf", srdf=selves / "arm.srdf")
    goal = sy.ClearanceGoal(0.01, world=world, pairs=[pair])
    assert goal.pairs == (tuple(pair),)
    solution = sy.solve(arm, [sy.PositionGoal("self", (0.25, 0.2, 0.0)), goal])
    assert {frozenset(contact.pair) for contact in solution.contacts} == {frozenset(("world", "hand"))}
    if isinstance(pair, tuple):
        assert sy.ClearanceGoal(pairs=pair).pairs == (pair,)
    own = sy.solve(arm, sy.ClearanceGoal(pairs="self")).contacts
    assert {contact.pair for contact in own} == set(sy.shapes.self_pairs(arm).pairs)


def test_an_obstacle_may_have_the_name_of_a_word():
    """In a pair with a link."""
    arm = sy.bundled("arm7")
    world = sy.World({"self": sy.Sphere(center=(0.5, 0, 0.5), radius=0.05), "other": sy.Sphere(radius=0.01)})
    solution = sy.solve(arm, sy.ClearanceGoal(0.1, world=world, pairs=("hand", "self")))
    assert solution.reached
    assert {contact.pair for contact in solution.contacts} == {("hand", "self")}
    both = sy.ClearanceGoal(0.1, world=world, pairs=("self", "world"))  # no link is called world: the two sets
    assert len({contact.pair for contact in sy.solve(arm, both).contacts}) > 1


def test_ambiguous_pairs_are_refused(selves):
    """Two words by themselves where they may be names, too; and a word in a pair that no link has."""
    named = sy.load_skeleton(selves / "arm.urdf")
    for goal in (
        sy.ClearanceGoal(pairs=("self", "world"), world=WALL),
        sy.ClearanceGoal(pairs=["world", "self"], world=WALL),
    ):
        with pytest.raises(sy.InputError, match=r"pairs: expected \[\('.*'\)\] for the pair"):
            sy.solve(named, goal)
    assert sy.solve(named, sy.ClearanceGoal(pairs=[("self", "world")])).contacts
    assert sy.solve(named, sy.ClearanceGoal(world=WALL)).contacts
    for world in (None, WALL):
        with pytest.raises(
            sy.errors.UnknownNameError, match="'world' outside of a pair means all links and all obstacles"
        ):
            sy.solve(sy.bundled("arm7"), sy.ClearanceGoal(world=world, pairs=("hand", "world")))
    twice = sy.World({"hand": sy.Sphere(center=(0.5, 0, 0.5), radius=0.05)})
    with pytest.raises(sy.InputError, match="'joint:hand' is the link"):
        sy.solve(sy.bundled("arm7"), sy.ClearanceGoal(world=twice, pairs=("hand", "joint3")))
    assert sy.solve(sy.bundled("arm7"), sy.ClearanceGoal(world=twice, pairs=("joint:hand", "joint3"))).contacts


@pytest.mark.parametrize("form", ["toml", "json"])
def test_files_and_reports_name_links_that_are_called_like_words(selves, form):
    """Goal files, ``inspect --pairs`` and SRDF."""
    goals = [sy.PositionGoal("self", (0.25, 0.2, 0.0)), sy.ClearanceGoal(0.01, pairs=["self", ("hand", "world")])]
    if form == "toml":
        sy.write_goals(goals, selves / "goals.toml")
    else:
        clear = {"kind": "clearance", "distance": 0.01, "pairs": ["self", ["hand", "world"]]}
        reach = {"kind": "position", "joint": "self", "position": [0.25, 0.2, 0.0]}
        text = json.dumps({"schema": "synovia.goals/1", "goals": [reach, clear]})
        (selves / "goals.json").write_text(text)
    assert sy.read_goals(selves / f"goals.{form}")[1].pairs == ("self", ("hand", "world"))
    ran = run("solve", selves / "arm.urdf", "-g", selves / f"goals.{form}", "--json")
    assert ["hand", "world"] in [contact["pair"] for contact in ran.data["contacts"]]
    found = run("inspect", selves / "arm.urdf", "--srdf", selves / "arm.srdf", "--pairs", "--json").data["self_pairs"]
    (excluded,) = [pair["links"] for pair in found["left_out"] if pair["reason"] == "excluded by the file"]
    assert excluded == ["world", "self"]
    assert ["world", "hand"] in [pair["links"] for pair in found["pairs"]]


def test_pairs_that_cannot_be_so_far_apart_only_must_not_touch():
    """The hand of the arm is at most 23 mm from the link above it; a note names the pair."""
    arm = sy.bundled("arm7")
    solution = sy.solve(arm, [sy.PositionGoal("tool", arm.random_pose(0).position("tool")), sy.ClearanceGoal(0.05)])
    assert solution.reached
    assert any("'joint6' and 'hand'" in note for note in solution.notes)
    assert gaps(solution.pose, pairs=[("joint6", "hand")])["joint6", "hand"] > 0.0
    named = sy.ClearanceGoal(0.05, pairs=("joint6", "hand"))
    assert not sy.solve(arm, [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), named]).reached
