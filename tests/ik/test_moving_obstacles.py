"""Obstacles that move: verdicts equal those of a problem that is packed anew, and ways among them are judged truly."""

import pickle

import numpy as np
import pytest

import synovia as sy
from conftest import UNCOMPILED
from synovia.kernels.layout import FIRST_POINT
from synovia.problem import table_of

pytestmark = pytest.mark.compiled  # interpreted, a search among obstacles takes minutes

COUNT = 3 if UNCOMPILED else 40
DISTANCE = 0.01
SLACK = 1e-9
ARM = sy.bundled("arm7")


def transform(rng, far=0.6):
    """Return a random frame."""
    T = np.eye(4)
    T[:3, :3] = sy.Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    T[:3, 3] = rng.uniform(-far, far, 3)
    return T


def scene(rng):
    """Return a world of all kinds of obstacles."""
    hull = sy.ConvexHull(rng.normal(scale=0.05, size=(12, 3)))
    cloud = sy.PointCloud(rng.normal(scale=0.1, size=(20, 3)), radius=0.02)
    return sy.World({
        "floor": sy.HalfSpace(point=(0, 0, -0.3)),
        "box": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 0.3, 0.8)),
        "cup": [sy.Cylinder(radius=0.05, length=0.2), sy.Sphere(center=(0.1, 0, 0), radius=0.05)],
        "stone": sy.Obstacle(hull, transform=(0.3, -0.4, 0.2)),
        "cloud": sy.Obstacle(cloud, transform=(-0.5, 0.0, 0.4)),
        "rod": sy.Capsule(a=(0, 0, 0), b=(0, 0, 0.3), radius=0.02),
        "far": sy.Sphere(center=(5, 0, 0), radius=0.1),
    })  # fmt: skip


def goals(world, **options):
    """Return a goal for the tool and one that keeps clear."""
    return [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.ClearanceGoal(DISTANCE, world=world, **options)]


def assert_same(found, anew):
    """Check that two solutions have the same verdict, and contacts in the same places where their poses agree."""
    assert found.status is anew.status
    assert np.allclose(found.errors, anew.errors, atol=2e-3) or not anew.reached
    again = sy.Solution(anew.ik, found._rows, b=found._b)  # the same pose among the obstacles of the other problem
    assert [contact.pair for contact in found.contacts] == [contact.pair for contact in again.contacts]
    gaps = [contact.distance for contact in found.contacts], [contact.distance for contact in again.contacts]
    assert np.allclose(*gaps, atol=1e-12)
    if found.reached:
        assert min(gaps[1]) >= DISTANCE - SLACK


def test_many_problems_in_which_no_obstacle_moves():
    ik = sy.IK(ARM, goals(scene(np.random.default_rng(0))))
    targets = [ARM.random_pose(k).position("tool") for k in range(3)]
    plain, none = ik.solve_many({"tool": targets}), ik.solve_many({"tool": targets, "clearance": {}})
    np.testing.assert_array_equal(plain.q, none.q)


@pytest.mark.parametrize("pairs", [None, ["world", ("hand", "cup"), ("hand", "floor"), ("joint5", "cloud")]])
def test_tables_are_those_of_a_problem_packed_anew(pairs):
    """Shapes may be in another order, as their tree keeps its own; each of its boxes encloses the two below it."""
    rng = np.random.default_rng(0)
    world = scene(rng)
    ik = sy.IK(ARM, goals(world, pairs=pairs))
    for _ in range(5):
        places = {name: transform(rng) for name in world.names}
        moved = ik.problem.read_obstacles({"clearance": places})[0]
        anew = sy.IK(ARM, goals(world.moved(places), pairs=pairs)).problem
        shapes = [table_of(one.ints, one.floats, "clear.shapes")[:, :FIRST_POINT] for one in (moved, anew)]
        assert np.allclose(*[table[np.lexsort(table.round(9).T)] for table in shapes], atol=1e-12)
        nodes = table_of(moved.ints, moved.floats, "clear.nodes")
        assert np.allclose(nodes[1], table_of(anew.ints, anew.floats, "clear.nodes")[1], atol=1e-12)
        below = nodes[2:].reshape(-1, 2, 6)
        assert (nodes[1 : len(nodes) // 2, :3] == below[:, :, :3].min(axis=1)).all()
        assert (nodes[1 : len(nodes) // 2, 3:] == below[:, :, 3:].max(axis=1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [None, [("hand", "cup"), ("joint5", "floor"), "self"]])
def test_a_moved_obstacle_gives_the_verdict_of_a_problem_packed_anew(pairs):
    rng = np.random.default_rng(1)
    world = scene(rng)
    ik = sy.IK(ARM, goals(world, pairs=pairs))
    for _ in range(COUNT):
        places = {name: transform(rng) for name in rng.choice(world.names[1:], 3, replace=False)}
        places["floor"] = (0.0, 0.0, rng.uniform(-0.2, 0.1))
        target = rng.uniform((-0.5, -0.5, 0.1), (0.6, 0.5, 0.8))
        found = ik.solve({"tool": target, "clearance": places})
        anew = sy.IK(ARM, goals(world.moved(places), pairs=pairs)).solve({"tool": target})
        assert_same(found, anew)
    still, first = ik.solve({"tool": target}), sy.IK(ARM, goals(world, pairs=pairs)).solve({"tool": target})
    assert (still.q == first.q).all()  # the problem itself stays as it is


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["lm", "segments"])
def test_other_solvers_see_moved_obstacles(solver):
    rng = np.random.default_rng(2)
    world = sy.World({"ball": sy.Sphere(radius=0.1)})
    pose = [sy.PoseGoal("tool"), sy.ClearanceGoal(DISTANCE, world=world)]
    ik = sy.IK(ARM, pose, solver)
    for _ in range(COUNT // 2):
        target, ball = ARM.random_pose(int(rng.integers(1000))).transform("tool"), rng.uniform(-0.5, 0.5, 3)
        found = ik.solve({"tool": target, "clearance": {"ball": ball}})
        moved = [pose[0], sy.ClearanceGoal(DISTANCE, world=world.moved({"ball": ball}))]
        assert_same(found, sy.IK(ARM, moved, solver).solve({"tool": target}))


@pytest.mark.slow
def test_a_batch_equals_single_solves():
    rng = np.random.default_rng(3)
    world = scene(rng)
    ik = sy.IK(ARM, goals(world))
    targets = rng.uniform((-0.5, -0.5, 0.1), (0.6, 0.5, 0.8), (COUNT, 3))
    cups, balls = np.array([transform(rng) for _ in range(COUNT)]), rng.uniform(-0.6, 0.6, (COUNT, 3))
    turned = sy.Rotation.from_matrix(cups[:, :3, :3])
    cups[:, :3, :3] = turned.as_matrix()
    many = ik.solve_many({"tool": targets, "clearance": {"cup": (cups[:, :3, 3], turned), "far": balls}})
    for k in range(COUNT):
        alone = ik.solve({"tool": targets[k], "clearance": {"cup": cups[k], "far": balls[k]}})
        assert many[k].status is alone.status
        assert (many[k].q == alone.q).all()
        gaps = [[contact.distance for contact in one.contacts] for one in (many[k], alone)]
        assert np.allclose(*gaps, atol=1e-12)
    one_thread = ik.solve_many({"tool": targets, "clearance": {"cup": cups, "far": balls}}, threads=1)
    assert (one_thread.q == many.q).all()


@pytest.mark.slow
def test_obstacles_alone_may_move():
    rng = np.random.default_rng(4)
    ik = sy.IK(ARM, goals(scene(rng)))
    balls = rng.uniform(-0.6, 0.6, (COUNT, 3))
    many = ik.solve_many({"clearance": {"far": balls}})
    assert len(many) == COUNT
    assert all((many[k].q == ik.solve({"clearance": {"far": balls[k]}}).q).all() for k in range(COUNT))


@pytest.mark.slow
def test_a_thrown_ball_is_evaded_in_a_track():
    count = 20 if UNCOMPILED else 200
    world = sy.World({"ball": sy.Sphere(radius=0.05), "post": sy.Box(center=(0.4, 0.4, 0.3), size=(0.05, 0.05, 0.6))})
    ik = sy.IK(ARM, [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=world)])
    line = np.linspace((0.4, -0.2, 0.5), (0.4, 0.2, 0.5), count)
    ball = np.linspace((0.3, -0.6, 0.6), (0.2, 0.6, 0.5), count)
    start = ik.solve({"tool": line[0], "clearance": {"ball": ball[0]}}).pose
    clip = ik.track({"tool": line, "clearance": {"ball": ball}}, start=start)
    assert clip.reached.mean() > 0.9
    for k in range(count):
        placed = world.moved({"ball": ball[k]})
        own = sy.IK(ARM, [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=placed)])
        gaps = [contact.distance for contact in sy.Solution(own.problem, clip._rows, b=k).contacts]
        assert np.allclose(gaps, [contact.distance for contact in clip[k].contacts], atol=1e-12)
        if clip.reached[k]:
            assert min(gaps) >= DISTANCE - SLACK
    both = ik.track({"tool": line, "clearance": {"ball": ball}}, start=start, both_ways=True)
    assert both.reached.sum() >= clip.reached.sum()
    for k in np.flatnonzero(both.reached).tolist():
        assert min(contact.distance for contact in both[k].contacts) >= DISTANCE - SLACK


def test_a_plate_that_goes_through_the_arm_between_two_frames_is_listed():
    world = sy.World({"plate": sy.Box(size=(0.3, 0.3, 0.005)), "wall": sy.HalfSpace(point=(0, 0, -0.3))})
    ik = sy.IK(ARM, [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=world)])
    hand = np.tile((0.4, 0.0, 0.5), (4, 1))
    beside, beyond = (-0.4, 0.0, 0.35), (0.9, 0.0, 0.35)
    through = ik.track({"tool": hand, "clearance": {"plate": np.array([beside, beside, beyond, beyond])}})
    assert through.reached.all()
    assert through.blocked == (2,)
    stays = ik.track({"tool": hand, "clearance": {"plate": np.tile(beside, (4, 1))}})
    assert stays.blocked == ()
    turns = np.tile(np.eye(4), (3, 1, 1))  # a wall that turns over the body, about its own origin far away
    turns[:, :3, :3] = sy.Rotation.from_euler("y", [[0], [170], [170]], degrees=True).as_matrix()
    turns[0, 2, 3], turns[1:, 2, 3] = -0.3, 3.0
    over = ik.track({"tool": hand[:3], "clearance": {"wall": turns, "plate": np.tile(beside, (3, 1))}})
    assert 1 in over.blocked


@pytest.mark.slow
def test_ways_among_moving_obstacles_are_clear_where_no_frame_is_listed():
    rng = np.random.default_rng(6)
    world = sy.World({"box": sy.Box(size=(0.2, 0.1, 0.05)), "rod": sy.Capsule(a=(0, 0, -1), b=(0, 0, 1), radius=0.02)})
    ik = sy.IK(ARM, [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=world)])
    clear = blocked = 0
    for _ in range(COUNT):
        ends = np.array([ARM.random_pose(int(rng.integers(10_000))).q for _ in range(2)])
        ends[1] = ends[0] + 0.2 * (ends[1] - ends[0])
        boxes, rods = np.array([[transform(rng), transform(rng)] for _ in range(2)])
        boxes[1], rods[1] = _part(boxes[0], boxes[1], 0.6), _part(rods[0], rods[1], 0.4)
        clip = ik.track({"tool": np.zeros((2, 3)), "clearance": {"box": boxes, "rod": rods}})
        clip._rows[:, ik.problem.places] = ends
        gaps = []
        for share in np.linspace(0.0, 1.0, 60):
            placed = {"box": _part(boxes[0], boxes[1], share), "rod": _part(rods[0], rods[1], share)}
            row = clip._rows[:1].copy()
            row[0, ik.problem.places] = ends[0] + share * (ends[1] - ends[0])
            moved = sy.IK(ARM, [sy.PositionGoal("tool"), sy.ClearanceGoal(DISTANCE, world=world.moved(placed))])
            gaps.append(min(one.distance for one in sy.Solution(moved.problem, row).contacts))
        if min(gaps[0], gaps[-1]) < DISTANCE:  # ends that are too near allow as much between them
            continue
        is_blocked = 1 in clip.blocked
        clear, blocked = clear + (not is_blocked), blocked + is_blocked
        # a way is not divided below half a percent of the reach: so deep may what is listed as clear be grazed
        assert is_blocked or min(gaps) >= DISTANCE - 0.005 * ik.reach
        assert not is_blocked or min(gaps) < DISTANCE + 0.005 * ik.reach
    assert UNCOMPILED or (clear > 3 and blocked > 0)


def _part(a, b, share):
    """Return the frame at a share of the straight way and the shortest turn from a to b."""
    T = np.eye(4)
    turn = sy.Rotation.from_matrix(a[:3, :3].T @ b[:3, :3]).as_rotvec()
    T[:3, :3] = a[:3, :3] @ sy.Rotation.from_rotvec(share * turn).as_matrix()
    T[:3, 3] = a[:3, 3] + share * (b[:3, 3] - a[:3, 3])
    return T


def test_copies_keep_the_obstacles():
    world = sy.World({"ball": sy.Sphere(radius=0.1), "floor": sy.HalfSpace(point=(0, 0, -0.5))})
    ik = sy.IK(ARM, goals(world))
    balls = np.array([(0.3, 0.3, 0.3), (0.3, 0.3, 0.6)])
    many = ik.solve_many({"clearance": {"ball": balls}})
    again = pickle.loads(pickle.dumps(many.ik))
    for k, one in enumerate(many):
        for copied in (again.single(k), pickle.loads(pickle.dumps(one.ik))):
            other = sy.Solution(copied, many._rows, b=k)
            assert [c.distance for c in other.contacts] == [c.distance for c in one.contacts]
    assert len(ik.track({"tool": np.zeros((0, 3)), "clearance": {"ball": np.zeros((0, 3))}})) == 0


def test_goals_with_names_have_obstacles_of_their_own():
    world = sy.World({"ball": sy.Sphere(radius=0.1)})
    far = {"ball": (3.0, 0.0, 0.0)}
    named = [sy.ClearanceGoal(0.01, world=world, name="near"), sy.ClearanceGoal(0.02, world=world, name="wide")]
    ik = sy.IK(ARM, [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), *named])
    found = ik.solve({"near": far, "wide": {"ball": (0.2, 0.3, 0.6)}})
    assert [goal.world["ball"].transform[0, 3] for goal in found.goals[1:]] == [3.0, 0.2]
    unnamed = sy.IK(ARM, [goal.__class__(goal.distance, world=world) for goal in named])
    with pytest.raises(sy.errors.UnknownNameError, match="'clearance' means 2 goals"):
        unnamed.solve({"clearance": far})


BAD = np.eye(4)
BAD[0, 0] = 2.0


@pytest.mark.parametrize(("targets", "message"), [
    ({"clearance": {"bal": (0, 0, 1)}}, "no obstacle named 'bal'.*'ball'"),
    ({"clearence": {"ball": (0, 0, 1)}}, "no clearance goal with a world named 'clearence'"),
    ({"clearance": {"ball": (0, np.nan, 1)}}, "transform of obstacle 'ball'"),
    ({"clearance": {"ball": (0, 1e200, 1)}}, "transform of obstacle 'ball'"),
    ({"clearance": {"ball": BAD}}, "transform of obstacle 'ball'"),
    ({"clearance": {"ball": np.eye(3)}}, "transform of obstacle 'ball'"),
    ({"clearance": (0, 0, 1)}, "positions of its obstacles"),
])  # fmt: skip
def test_bad_places_are_refused(targets, message):
    ik = sy.IK(ARM, goals(sy.World({"ball": sy.Sphere(radius=0.1)})))
    with pytest.raises(sy.SynoviaError, match=message):
        ik.solve(targets)


def test_bad_rows_of_many_are_named_or_skipped():
    ik = sy.IK(ARM, goals(sy.World({"ball": sy.Sphere(radius=0.1)})))
    hand, balls = np.tile((0.4, 0.1, 0.5), (5, 1)), np.tile((3.0, 0, 0), (5, 1))
    with pytest.raises(sy.InputError, match="lengths of targets"):
        ik.track({"tool": hand, "clearance": {"ball": balls[:4]}})
    with pytest.raises(sy.InputError, match="takes many"):
        ik.solve_many({"tool": hand, "clearance": {"ball": (0, 0, 1)}})
    balls[3, 1] = np.nan
    with pytest.raises(sy.InputError, match=r"targets\[3\].*obstacle 'ball'"):
        ik.solve_many({"tool": hand, "clearance": {"ball": balls}})
    many = ik.solve_many({"tool": hand, "clearance": {"ball": balls}}, on_error="skip")
    assert [one.status.name for one in many] == ["REACHED"] * 3 + ["INVALID", "REACHED"]
    assert "obstacle 'ball'" in str(many[3])
    with pytest.raises(sy.errors.UnknownNameError, match="ball"):
        sy.IK(ARM, goals(None)).solve({"ball": (0, 0, 1)})


def test_places_are_in_the_unit_and_axes_of_the_body():
    world = sy.World({"ball": sy.Sphere(radius=100)}, meters_per_unit=0.001, up="z")
    ik = sy.IK(ARM, goals(world))
    found = ik.solve({"clearance": {"ball": (0.3, 0.4, 0.5)}})
    ball = found.goals[1].world["ball"]
    assert np.allclose(ball.transform[:3, 3], (0.3, 0.4, 0.5))
    assert np.isclose(ball.solids()[0].radius, 0.1)
