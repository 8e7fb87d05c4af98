"""Clearance by every solver that keeps it: distances by closed forms of spheres, boxes and planes in NumPy."""

import numpy as np
import pytest

import synovia as sy

SLACK = 1e-9
CLEAR = ("lm", "dls", "pinv", "full-body")
each = pytest.mark.parametrize("solver", CLEAR)
GAP, RADIUS = 0.02, 0.08
pytestmark = pytest.mark.compiled  # the kernels are those of tests/ik/test_clearance.py

FEW = {"attempts": 10}


def at(x=0.0, y=0.0, z=0.0):
    """Return the transform of a translation."""
    T = np.eye(4)
    T[:3, 3] = (x, y, z)
    return T


def settings(solver, **options):
    """Return settings of a solver by its name."""
    return sy.solvers[solver](**(FEW | options))


def snake(count=5, kind=sy.Kind.HINGE, **options):
    """Return links of half a unit, each with two spheres; hinges turn about z and y by turns."""
    beads = [sy.Sphere(center=(x, 0, 0), radius=RADIUS) for x in (0.15, 0.4)]
    joints = [
        sy.Joint(f"l{k}", f"l{k - 1}" if k else None, kind, at(0.5) if k else np.eye(4), axis=(0, k % 2, 1 - k % 2),
                 shapes=beads, **options)
        for k in range(count)
    ]  # fmt: skip
    return sy.Skeleton([*joints, sy.Joint("tip", f"l{count - 1}", rest=at(0.5))])


def middles(pose):
    """Return the middles of all spheres, by link."""
    found = {}
    for link, shapes in pose.skeleton.shapes.items():
        T = pose.transform(link)
        found[link] = np.array([T[:3, :3] @ shape.center + T[:3, 3] for shape in shapes])
    return found


def own_gap(pose):
    """Return the least distance of two links that are not neighbours."""
    at_link = middles(pose)
    pairs = sy.shapes.self_pairs(pose.skeleton).pairs
    return min((np.linalg.norm(at_link[a][:, None] - at_link[b], axis=-1).min() for a, b in pairs)) - 2 * RADIUS


def box_gap(pose, center, size):
    """Return the least distance to an upright box, inside it negative."""
    d = np.abs(np.concatenate([*middles(pose).values()]) - center) - 0.5 * np.asarray(size)
    return (np.linalg.norm(np.maximum(d, 0.0), axis=1) + np.minimum(d.max(axis=1), 0.0)).min() - RADIUS


def ball_gap(pose, center, radius):
    """Return the least distance to a sphere."""
    return np.linalg.norm(np.concatenate([*middles(pose).values()]) - center, axis=1).min() - radius - RADIUS


def plane_gap(pose, point, normal):
    """Return the least distance to a half-space."""
    return ((np.concatenate([*middles(pose).values()]) - point) @ normal).min() - RADIUS


def assert_within_limits(pose):
    """Check the limits of hinges."""
    low, high = pose.skeleton.limits
    assert (low - SLACK <= pose.q).all()
    assert (pose.q <= high + SLACK).all()


@each
@pytest.mark.parametrize("gap", [0.0, GAP])
def test_reached_poses_keep_every_distance(solver, gap):
    """Among a ball, a box and a floor; targets are those of poses that are clear, so nearly all are reached."""
    body = snake(limit=sy.Interval(-2.0, 2.0))
    ball, box, floor = ((1.2, 0.4, 0.2), 0.2), ((0.7, -0.6, 0.0), (0.3, 0.4, 0.5)), ((0, 0, -0.6), (0, 0, 1))
    world = sy.World(
        {
            "ball": sy.Sphere(center=ball[0], radius=ball[1]),
            "box": sy.Box(center=box[0], size=box[1]),
            "floor": sy.HalfSpace(point=floor[0], normal=floor[1]),
        }
    )

    def least(pose):
        return min(own_gap(pose), ball_gap(pose, *ball), box_gap(pose, *box), plane_gap(pose, *floor))

    ik = sy.IK(body, [sy.PositionGoal("tip"), sy.ClearanceGoal(gap, world=world)], settings(solver))
    clear = [pose for pose in map(body.random_pose, range(60)) if least(pose) >= gap]
    tried = clear[:12]
    reached = 0
    for pose in tried:
        solution = ik.solve(pose.position("tip"), start=body.random_pose(1000))
        assert_within_limits(solution.pose)
        assert solution.reached == (
            np.linalg.norm(solution.pose.position("tip") - pose.position("tip")) <= ik.tolerance[0]
            and least(solution.pose) >= gap - SLACK
        )
        assert solution.contacts[0].distance == pytest.approx(least(solution.pose), abs=1e-9)
        reached += solution.reached
    assert reached >= len(tried) - 1


@each
def test_a_start_in_collision_comes_out(solver):
    """Also if the clearance is the only goal."""
    body = snake()
    world = sy.World({"ball": sy.Sphere(center=(1.2, 0.1, 0.05), radius=0.3)})
    assert ball_gap(body.rest_pose(), (1.2, 0.1, 0.05), 0.3) < -0.2
    for goals in ([sy.PositionGoal("tip", (0.5, 1.2, 0.6))], []):
        solution = sy.solve(body, [*goals, sy.ClearanceGoal(GAP, world=world)], settings(solver))
        assert solution.reached
        assert min(own_gap(solution.pose), ball_gap(solution.pose, (1.2, 0.1, 0.05), 0.3)) >= GAP - SLACK


@each
def test_an_answer_says_that_it_could_not_come_out(solver):
    """No pose takes the first link out of a ball around the root."""
    body = snake(3)
    world = sy.World({"ball": sy.Sphere(center=(0, 0, 0), radius=0.5)})
    solution = sy.solve(
        body, [sy.PositionGoal("tip", (1.2, 0.5, 0.0)), sy.ClearanceGoal(world=world)], settings(solver)
    )
    assert not solution.reached
    assert solution.errors[1].position == pytest.approx(0.5 + RADIUS - 0.15 + solution.ik.tolerance[0], abs=1e-6)
    assert any("Too near: 'l0' against 'ball'" in line for line in solution.explain())


@each
def test_a_target_inside_an_obstacle_is_missed_by_what_it_takes(solver):
    """The tip, half a bead before the last sphere's edge, stops at the surface; the reasons name the clearance."""
    body = snake()
    world = sy.World({"ball": sy.Sphere(center=(1.5, 0.6, 0.2), radius=0.3)})
    goals = [sy.PositionGoal("tip", (1.5, 0.6, 0.2)), sy.ClearanceGoal(GAP, world=world)]
    solution = sy.solve(body, goals, solver)
    assert not solution.reached
    assert solution.status.name in ("CONFLICT", "LIMITED", "STALLED")
    assert min(own_gap(solution.pose), ball_gap(solution.pose, (1.5, 0.6, 0.2), 0.3)) >= GAP - SLACK
    nearest = 0.3 + GAP + RADIUS - 0.1  # the tip is 0.1 beyond the middle of the last bead, straight at the target
    assert solution.errors[0].position == pytest.approx(nearest, abs=2e-3)
    assert [rival.name for rival in solution.reasons[0].rivals] == ["clearance"]
    assert any("'clearance', of a higher priority, prevents 'tip'" in line for line in solution.explain())


@each
def test_walls_that_meet_in_a_corner_hold_both(solver):
    """The target is behind both; the answer is the same when it is solved again from there."""
    body = snake()
    walls = ((1.4, 0, 0), (-1, 0, 0)), ((0, 0.5, 0), (0, -1, 0))
    world = sy.World({f"w{k}": sy.HalfSpace(point=p, normal=n) for k, (p, n) in enumerate(walls)})
    ik = sy.IK(body, [sy.PositionGoal("tip", (1.8, 0.9, 0.1)), sy.ClearanceGoal(GAP, world=world)], solver)
    solution = ik.solve()
    assert not solution.reached
    for wall in walls:
        assert plane_gap(solution.pose, *wall) >= GAP - SLACK
    again = ik.solve(start=solution.pose)
    np.testing.assert_allclose(again.q, solution.q, atol=1e-6)


@each
def test_only_the_joint_that_a_goal_moves_moves(solver):
    """All others keep their values bit for bit; the one goes as far as a ball at its target allows."""
    body = snake()
    start = sy.Pose(body, [0.3, -0.2, 0.1, 0.2, 0.1])
    turned = sy.Pose(body, [0.3, -0.2, 0.1, 0.2, 0.9])
    ball = middles(turned)["l4"][1], 0.05
    world = sy.World({"ball": sy.Sphere(center=ball[0], radius=ball[1])})
    goals = [sy.PositionGoal("tip", turned.position("tip"), ancestors=1), sy.ClearanceGoal(GAP, world=world)]
    solution = sy.solve(body, goals, settings(solver, attempts=1), start=start)
    np.testing.assert_array_equal(solution.q[:4], start.q[:4])
    assert 0.2 < solution.q[4] < 0.9
    assert GAP - SLACK <= ball_gap(solution.pose, *ball) <= GAP + 2 * solution.ik.tolerance[0]


@each
def test_followers_stay_consistent(solver):
    """A joint that follows another one, with a ratio and an offset."""
    plain = snake(4)
    joints = [*plain.joints]
    joints[2] = sy.Joint(
        "l2", "l1", sy.Kind.HINGE, at(0.5), axis=(0, 0, 1), shapes=joints[2].shapes, mimic=sy.Mimic("l0", -1.5, 0.2)
    )
    body = sy.Skeleton(joints)
    world = sy.World({"ball": sy.Sphere(center=(0.9, 0.5, 0.0), radius=0.15)})
    ik = sy.IK(body, [sy.PositionGoal("tip"), sy.ClearanceGoal(GAP, world=world)], settings(solver))
    reached = 0
    for seed in range(8):
        solution = ik.solve(body.random_pose(seed).position("tip"))
        assert solution.pose["l2"] == pytest.approx(-1.5 * solution.pose["l0"] + 0.2, abs=1e-12)
        if solution.reached:
            reached += 1
            assert min(own_gap(solution.pose), ball_gap(solution.pose, (0.9, 0.5, 0.0), 0.15)) >= GAP - SLACK
    assert reached > 0


@each
def test_ball_joints_keep_their_limits(solver):
    """Of swing and twist, while they avoid a ball."""
    body = snake(4, sy.Kind.BALL, limit=sy.SwingTwist.about((1, 0, 0), x=(0.9, 0.9), y=(0.9, 0.9), twist=(-0.3, 0.3)))
    center = (1.0, 0.2, 0.1)
    world = sy.World({"ball": sy.Sphere(center=center, radius=0.2)})
    assert ball_gap(body.rest_pose(), center, 0.2) < 0.0
    target = (1.4, 0.6, 0.5)
    solution = sy.solve(body, [sy.PositionGoal("tip", target), sy.ClearanceGoal(GAP, world=world)], settings(solver))
    assert solution.reached
    assert min(own_gap(solution.pose), ball_gap(solution.pose, center, 0.2)) >= GAP - SLACK
    for turn in map(sy.Rotation.from_quat, solution.q.reshape(-1, 4)):
        twist = 2.0 * np.arctan2(turn.as_quat()[0], turn.as_quat()[3])
        swing = turn * sy.Rotation.from_rotvec((-twist, 0, 0))
        assert abs((twist + np.pi) % (2 * np.pi) - np.pi) <= 0.3 + SLACK
        assert swing.magnitude() <= 0.9 + SLACK


@each
def test_as_a_goal_of_a_priority_weights_count(solver):
    """With priority 0 it is weighed against the target behind a wall: the heavier it is, the less it lacks."""
    body = snake(3)
    world = sy.World({"wall": sy.HalfSpace(point=(1.2, 0, 0), normal=(-1, 0, 0))})
    reach = sy.PositionGoal("tip", (1.45, 0.0, 0.0))
    lacking = []
    for weight in (0.1, 1.0, 10.0):
        clear = sy.ClearanceGoal(world=world, pairs="world", priority=0, weight=weight)
        solution = sy.solve(body, [reach, clear], settings(solver))
        assert not solution.reached
        lacking.append(solution.errors[1].position)
        assert plane_gap(solution.pose, (1.2, 0, 0), (-1, 0, 0)) == pytest.approx(
            solution.ik.tolerance[0] - lacking[-1], abs=1e-9
        )
    assert lacking[0] > lacking[1] > lacking[2] > 0.0


@each
def test_a_batch_equals_single_solves(solver):
    """Bit for bit, for one thread and for two, and with restarts."""
    body = snake()
    world = sy.World({"ball": sy.Sphere(center=(1.2, 0.3, 0.2), radius=0.25)})
    ik = sy.IK(body, [sy.PositionGoal("tip"), sy.ClearanceGoal(GAP, world=world)], settings(solver, attempts=3))
    targets = np.array([body.random_pose(seed).position("tip") for seed in range(10)])
    many, one = ik.solve_many(targets, threads=2), ik.solve_many(targets, threads=1)
    np.testing.assert_array_equal(many.q, one.q)
    for k, target in enumerate(targets):
        np.testing.assert_array_equal(many.q[k], ik.solve(target).q)
        assert many.reached[k] == ik.solve(target).reached


@each
def test_frames_of_a_track_keep_the_distance_without_trembling(solver):
    """The target of the last sphere moves into a wall, along it, and stops."""
    body = snake()
    start = sy.Pose(body, [0.6, -0.3, -0.8, 0.2, 0.3])
    goal = sy.PositionGoal("l4", offset=(0.4, 0, 0))
    p = middles(start)["l4"][1]
    wall = np.add(p, (0.2, 0, 0)), (-1, 0, 0)
    world = sy.World({"wall": sy.HalfSpace(point=wall[0], normal=wall[1])})
    ik = sy.IK(body, [goal, sy.ClearanceGoal(GAP, world=world)], settings(solver, attempts=1))
    into = p + np.stack([np.linspace(0, 0.2, 40), np.zeros(40), np.zeros(40)], axis=1)
    along = into[-1] + np.stack([np.zeros(40), np.linspace(0, -0.2, 40), np.zeros(40)], axis=1)
    clip = ik.track({"l4": np.concatenate([into, along, np.repeat(along[-1:], 10, axis=0)])}, start=start)
    lacking = [GAP - plane_gap(solution.pose, *wall) for solution in clip]
    assert max(lacking) <= SLACK
    steps = np.abs(np.diff(clip.q, axis=0)).max(axis=1)
    assert clip.reached.tolist() == [True] * 20 + [False] * 70
    assert steps.max() < 0.1
    assert steps[-8:].max() < 1e-6
    assert clip.blocked == ()


@pytest.mark.parametrize("solver", ["lm", "dls", "pinv"])
def test_without_a_goal_that_keeps_clear_the_kernels_are_their_own(solver):
    """A clearance goal takes those of full-body, with this damping; without one nothing of it is used."""
    arm, goal = sy.bundled("arm7"), sy.PositionGoal("tool")
    alone, beside = sy.IK(arm, goal, solver).problem, sy.IK(arm, [goal, sy.ClearanceGoal()], solver).problem
    assert alone.method is alone.solver
    assert isinstance(beside.method, sy.FullBody)
    assert beside.solver == alone.solver
    assert beside.method.attempts == alone.solver.attempts


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"null_space": sy.NullSpace()}, "null_space"),
        ({"jacobian": "partial"}, "jacobian"),
        ({"largest_error": 0.1}, "largest_error"),
    ],
)
def test_settings_that_would_have_no_effect_are_refused(options, name):
    """When the problem is built, with the setting."""
    goals = [sy.PositionGoal("tool", (0.4, 0, 0.5)), sy.ClearanceGoal()]
    with pytest.raises(sy.errors.UnsupportedError, match=f"no {name} with a clearance goal"):
        sy.IK(sy.bundled("arm7"), goals, sy.LevenbergMarquardt(**options))


@pytest.mark.parametrize("solver", ["lm", "dls", "pinv"])
def test_lower_priorities_and_goals_of_python_are_refused(solver):
    """With the solver that has priorities, or the goal."""
    arm, reach = sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0, 0.5))
    with pytest.raises(sy.errors.UnsupportedError, match="full-body"):
        sy.IK(arm, [reach, sy.ClearanceGoal(priority=1)], solver)
    low = sy.CustomGoal(lambda pose: [pose.position("tool")[2]])
    with pytest.raises(sy.errors.UnsupportedError, match="with a clearance goal"):
        sy.IK(arm, [reach, low, sy.ClearanceGoal()], solver)


def test_a_rest_goal_beside_it_keeps_the_posture():
    """It is met as far as the other goals leave it."""
    arm = sy.bundled("arm7")
    goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.ClearanceGoal(GAP)]
    rest = sy.Pose(arm, arm.random_pose(3).q)
    near, alone = (sy.solve(arm, more, settings("lm")) for more in ([*goals, sy.RestGoal(rest)], goals))
    assert near.reached
    assert np.linalg.norm(near.q - rest.q) < np.linalg.norm(alone.q - rest.q)


WORLD = sy.World({"box": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 0.3, 0.8)), "ball": sy.Sphere(radius=0.1)}).moved(
    {"ball": (0.3, 0.3, 0.5)}
)


def is_clear(pose, gap):
    """Return whether links of an arm keep a distance from the obstacles and each other, by ``sy.shapes.distance``."""
    body = pose.skeleton
    placed = {link: pose.transform(link) for link in body.shapes}
    for link, shapes in body.shapes.items():
        if body.parents[body.index(link)] >= 0:
            for shape in shapes:
                if min(c.distance for c in WORLD.distances(shape, transform=placed[link]).values()) < gap:
                    return False
    return all(
        sy.shapes.distance(u, v, transform_a=placed[a], transform_b=placed[b]).distance >= gap
        for a, b in sy.shapes.self_pairs(body).pairs
        for u in body.shapes[a]
        for v in body.shapes[b]
    )


@pytest.mark.slow
def test_branches_are_those_that_are_clear():
    """Of an arm in closed form; ``solve`` returns the nearest of them, and else goes on with the same joints."""
    arm, pose = sy.bundled("arm7"), sy.PoseGoal("tool")
    ik, plain = sy.IK(arm, [sy.ClearanceGoal(0.01, world=WORLD), pose], "segments"), sy.IK(arm, pose, "segments")
    assert (ik.reach, ik.tolerance, ik.moving) == (plain.reach, plain.tolerance, plain.moving)
    blocked = 0
    targets = [arm.random_pose(seed).transform("tool") for seed in range(30)]
    for target in targets:
        clear = [branch.q for branch in plain.branches({"tool": target}) if is_clear(branch.pose, 0.01)]
        found = ik.branches({"tool": target})
        np.testing.assert_allclose(found.q, np.reshape(clear, found.q.shape), atol=1e-12)
        assert found.reached.all()
        solution = ik.solve({"tool": target})
        if clear:
            np.testing.assert_array_equal(solution.q, found.q[0])
        else:
            blocked += 1
        assert not solution.reached or is_clear(solution.pose, 0.01 - SLACK)
    assert blocked > 0
    many = ik.solve_many({"tool": np.array(targets)}, threads=2)
    np.testing.assert_array_equal(many.q, [ik.solve({"tool": target}).q for target in targets])


def test_a_closed_form_moves_its_joints_alone():
    """The limb goes aside, and all others stay, also if they are too near, which is told."""
    body = sy.bundled("humanoid")
    target = body.rest_pose().transform("left_hand").copy()
    target[:3, 3] += (-0.1, 0.05, 0.2)
    goals = [sy.PoseGoal("left_hand"), sy.ClearanceGoal()]
    ik = sy.IK(body, goals, "segments")
    assert ik.solve({"left_hand": target}).reached
    start = sy.solve(body, sy.PositionGoal("right_hand", body.rest_pose().position("chest")), "lm").pose
    solution = ik.solve({"left_hand": target}, start=start)
    assert not solution.reached
    held = [row for row in range(len(body)) if row not in ik.moving and body.q_slice(row).stop]
    for row in held:
        np.testing.assert_array_equal(solution.q[body.q_slice(row)], start.q[body.q_slice(row)])
    assert any("Too near" in line for line in solution.explain())
    assert solution.reasons == ()


def test_a_track_in_closed_form_goes_aside():
    """Frames are clear and follow each other; a goal without a target keeps that of the first frame."""
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, [sy.PoseGoal("tool"), sy.ClearanceGoal(0.01, world=WORLD)], "segments")
    path = np.repeat(arm.random_pose(3).transform("tool")[None], 40, axis=0)
    path[:, 0, 3] += np.linspace(0, 0.08, 40)
    clip = ik.track({"tool": path})
    assert clip.reached.all()
    assert all(is_clear(solution.pose, 0.01 - SLACK) for solution in list(clip)[::4])
    assert np.abs(np.diff(clip.q, axis=0)).max() < 0.1
    pose = clip[0].pose
    for target in path[1:]:
        pose = (following := ik.solve({"tool": target}, start=pose, follow=True)).pose
        assert following.reached
    assert np.abs(pose.q - clip.q[-1]).max() < 0.1
    still = ik.track({"tool": (path[:5, :3, 3])}, start=clip[0].pose)
    turned = [sy.Rotation.from_matrix(s.pose.transform("tool")[:3, :3] @ path[0, :3, :3].T).magnitude() for s in still]
    assert max(turned) < 2 * ik.tolerance[1]


def test_hinges_list_clear_branches():
    """Two hinges reach a point in two ways; a ball blocks one."""
    first, _, tip = snake(2).joints
    second = sy.Joint("l1", "l0", sy.Kind.HINGE, at(0.5), axis=(0, 0, 1), shapes=first.shapes)
    body = sy.Skeleton([first, second, tip])
    target = sy.Pose(body, [0.6, 0.9]).position("tip")
    goal = sy.PositionGoal("tip", target)
    both = sy.IK(body, goal, "hinges").branches()
    assert len(both) > 1
    ball = middles(both[0].pose)["l0"][1]
    world = sy.World({"ball": sy.Sphere(center=ball, radius=0.05)})
    ik = sy.IK(body, [goal, sy.ClearanceGoal(world=world)], "hinges")
    clear = [branch.q for branch in both if ball_gap(branch.pose, ball, 0.05) >= 0.0]
    np.testing.assert_allclose(ik.branches().q, np.reshape(clear, (-1, 2)))
    assert len(clear) < len(both)
    with pytest.raises(sy.InputError, match="'tip'"):
        ik.solve({"tip": (np.nan, 0, 0)})
