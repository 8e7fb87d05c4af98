"""FABRIK against the published algorithm, and the traps of its originals, each by name."""

import numpy as np
import pytest

import synovia as sy
from synovia.model import Joint, Kind


def published(points, target, iterations):
    """Return joint positions after so many iterations of Aristidou & Lasenby (2011), algorithm 1."""
    p = np.array(points, float)
    base = p[0].copy()
    d = np.linalg.norm(np.diff(p, axis=0), axis=1)
    for _ in range(iterations):
        p[-1] = target
        for i in range(len(p) - 2, -1, -1):
            p[i] = p[i + 1] + d[i] / np.linalg.norm(p[i] - p[i + 1]) * (p[i] - p[i + 1])
        p[0] = base
        for i in range(len(p) - 1):
            p[i + 1] = p[i] + d[i] / np.linalg.norm(p[i + 1] - p[i]) * (p[i + 1] - p[i])
    return p


def straight(lengths):
    """Return a chain along z with bones of these lengths."""
    z = np.concatenate([[0.0], np.cumsum(lengths)])
    return sy.Skeleton.chain(np.column_stack([0 * z, 0 * z, z]))


def solve(skeleton, target, start=None, solver=None, **given):
    """Return the answer for a position goal on the last joint."""
    return sy.solve(skeleton, sy.PositionGoal(len(skeleton) - 1, target), solver or sy.Fabrik(), start, **given)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("iterations", [1, 2, 3, 6])
def test_unlimited_chains_follow_the_published_algorithm_iteration_by_iteration(seed, iterations):
    """Positions after each iteration are the paper's."""
    rng = np.random.default_rng(seed)
    points = np.cumsum(rng.normal(size=(rng.integers(4, 12), 3)), axis=0)  # two bones take the short cut
    chain = sy.Skeleton.chain(points)
    start, target = chain.random_pose(seed), chain.random_pose(seed + 100).positions[-1]
    wanted = [published(start.positions, target, k) for k in range(iterations + 1)]
    errors = [np.linalg.norm(p[-1] - target) for p in wanted]
    tolerance = 1e-6
    last = next((k for k, error in enumerate(errors) if error <= tolerance), iterations)
    once = sy.Fabrik(max_steps=iterations, attempts=1)
    solution = solve(chain, target, start, once, tolerance=(tolerance, 1e-3))
    assert solution.steps == last
    np.testing.assert_allclose(solution.pose.positions, wanted[last], rtol=0, atol=1e-9 * np.abs(points).max() + 1e-9)


def test_unreachable_targets_are_reached_for_in_a_straight_line():
    """Beyond the sum of the lengths: the chain lies straight towards the target, at once, and says so."""
    chain = sy.Skeleton.chain(np.cumsum(np.random.default_rng(1).normal(size=(6, 3)), axis=0))
    base = chain.rest_pose().positions[0]
    target = base + np.array([20.0, -30.0, 10.0])
    solution = solve(chain, target, chain.random_pose(2))
    total = sum(np.linalg.norm(joint.rest[:3, 3]) for joint in chain.joints[1:])
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(np.linalg.norm(target - base) - total, abs=1e-9)
    direction = (target - base) / np.linalg.norm(target - base)
    along = (solution.pose.positions - base) @ direction
    np.testing.assert_allclose(solution.pose.positions - base, along[:, None] * direction, atol=1e-9)


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd(), sy.Particles()])
def test_target_at_the_root_divides_by_nothing(solver):
    """r = 0: reachable by folding when the lengths allow it, inside the hole when they do not."""
    even, uneven = straight([1.0, 1.0, 1.0]), straight([3.0, 1.0, 1.0])
    assert solve(even, (0, 0, 0), even.random_pose(1), solver).reached
    solution = solve(uneven, (0, 0, 0), uneven.random_pose(1), solver)
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd(), sy.Particles()])
def test_the_inner_hole_is_unreachable_and_the_best_pose_is_at_its_rim(solver):
    """Lengths 3, 1, 1 cannot come nearer than 1: a target at 0.51 is missed by 0.49."""
    chain = straight([3.0, 1.0, 1.0])
    solution = solve(chain, (0.0, 0.51, 0.0), chain.random_pose(4), solver)
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(0.49, abs=1e-3)


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd(), sy.Particles()])
@pytest.mark.parametrize("target", [(0.0, 0.0, 100.0), (0.0, 0.0, 60.0), (0.0, 0.0, -50.0)])
def test_a_collinear_start_bends_and_always_in_the_same_way(solver, target):
    """Chain and target on one line: the plain method never leaves it."""
    chain = straight([40.0, 40.0, 40.0])
    first = solve(chain, target, None, solver)
    assert first.reached
    np.testing.assert_array_equal(first.pose.q, solve(chain, target, None, solver).pose.q)


def test_straight_and_folded_poses_are_reached_from_each_other():
    """The whole length straight ahead is at the edge of reach; the fold is at the other."""
    chain = straight([1.0, 1.0, 1.0, 1.0])
    for target in ((0.0, 4.0, 0.0), (0.0, 0.0, 4.0), (0.0, 1e-9, 0.0)):
        assert solve(chain, target, chain.random_pose(3)).reached


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd(), sy.Particles()])
def test_zero_length_bones_are_kept_and_do_no_harm(solver):
    """Two joints in one place."""
    chain = straight([1.0, 0.0, 1.0, 0.0, 1.0])
    for seed in range(5):
        target = chain.random_pose(seed).positions[-1]
        solution = solve(chain, target, chain.random_pose(seed + 50), solver)
        assert solution.reached
        assert np.isfinite(solution.pose.q).all()


def branched():
    """Return a trunk with two driven arms and a tail that nothing drives."""

    def ball(name, parent, x, y, z):
        rest = np.eye(4)
        rest[:3, 3] = x, y, z
        return Joint(name, parent, Kind.BALL, rest)

    return sy.Skeleton(
        [
            ball("root", None, 0, 0, 0), ball("chest", "root", 0, 0, 1), ball("arm0", "chest", 1, 0, 0),
            ball("end0", "arm0", 1, 0, 0), ball("arm1", "chest", -1, 0, 0), ball("end1", "arm1", -1, 0, 0),
            ball("tail", "chest", 0, 1, 0), ball("tuft", "tail", 0, 1, 0.3),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd(), sy.Particles(), sy.LevenbergMarquardt()])
def test_branches_that_nothing_drives_do_not_vote_and_follow_rigidly(solver):
    """The tail keeps its joint values, and its goals' answers are those of a body without it."""
    body = branched()
    bare = sy.Skeleton([j for j in body.joints if j.name not in ("tail", "tuft")])
    goals = [sy.PositionGoal("end0"), sy.PositionGoal("end1")]
    start, wanted = body.random_pose(1), body.random_pose(2)
    targets = {end: wanted.position(end) for end in ("end0", "end1")}
    solution = sy.IK(body, goals, solver).solve(targets, start)
    without = sy.IK(bare, goals, solver).solve(targets, sy.Pose(bare, start.q[: bare.nq]))
    assert solution.reached
    np.testing.assert_array_equal(solution.pose.q[: bare.nq], without.pose.q)
    np.testing.assert_array_equal(solution.pose.q[bare.nq :], start.q[bare.nq :])
    carried = np.linalg.inv(start.transform("chest")) @ start.transform("tuft")
    np.testing.assert_allclose(
        np.linalg.inv(solution.pose.transform("chest")) @ solution.pose.transform("tuft"), carried, atol=1e-12
    )


@pytest.mark.compiled
def test_nested_sub_bases_go_to_the_weighted_centroid_of_what_their_branches_want():
    """Two sub-bases, one on the other: after one iteration the inner bones point as the published passes have it."""

    def shift(v):
        out = np.eye(4)
        out[:3, 3] = v
        return out

    def unit(v):
        return v / np.linalg.norm(v)

    rng = np.random.default_rng(4)
    parents = {
        "root": None, "spine": "root", "outer": "spine", "a": "outer", "inner": "outer", "b": "inner", "c": "inner"
    }  # fmt: skip
    joints = [Joint(name, above, Kind.BALL, shift(rng.normal(size=3) + 1.0)) for name, above in parents.items()]
    joints += [Joint(f"end {arm}", arm, rest=shift(rng.normal(size=3))) for arm in "abc"]
    body = sy.Skeleton(joints)
    start, weights = body.random_pose(1), {"a": 3.0, "b": 1.0, "c": 2.0}
    p = {joint.name: start.position(joint.name) for joint in joints}
    targets = {arm: p[f"end {arm}"] + 0.3 * rng.normal(size=3) for arm in "abc"}

    def pulled(place, joint, child):
        """Return where a joint wants to be when its child is at a place: at the bone's length, on the line to it."""
        way = p[joint] - place
        return place + np.linalg.norm(p[child] - p[joint]) / np.linalg.norm(way) * way

    wanted = {arm: pulled(targets[arm], arm, f"end {arm}") for arm in "abc"}
    votes = dict(weights)
    for joint, branches in (("inner", "bc"), ("outer", ("a", "inner"))):
        votes[joint] = sum(votes[branch] for branch in branches)
        wanted[joint] = sum(votes[b] * pulled(wanted[b], joint, b) for b in branches) / votes[joint]
    wanted["spine"] = pulled(wanted["outer"], "spine", "outer")
    spine = p["root"] + np.linalg.norm(p["spine"] - p["root"]) * unit(wanted["spine"] - p["root"])
    outer = spine + np.linalg.norm(p["outer"] - p["spine"]) * unit(wanted["outer"] - spine)
    goals = [sy.PositionGoal(f"end {arm}", targets[arm], weight=weights[arm]) for arm in "abc"]
    pose = sy.solve(body, goals, sy.Fabrik(attempts=1, max_steps=1), start).pose
    np.testing.assert_allclose(pose.position("spine"), spine, atol=1e-9)
    np.testing.assert_allclose(pose.position("outer"), outer, atol=1e-9)


@pytest.mark.compiled
def test_an_iteration_costs_in_proportion_to_the_joints():
    """Ten times the joints cost ten times the time, not a hundred or a thousand times."""
    import time

    def seconds(n):
        chain = straight(np.ones(n))
        rng = np.random.default_rng(0)
        q = np.concatenate([sy.Rotation.from_rotvec(0.05 * rng.normal(size=3)).as_quat() for _ in range(n)])
        ik = sy.IK(chain, sy.PositionGoal(n), sy.Fabrik(max_steps=20, attempts=1), tolerance=(1e-12, 1e-3))
        best = np.inf
        for _ in range(5):
            before = time.process_time()
            ik.solve({n: np.array([0.3, 0.2, 0.4]) * n}, q)
            best = min(best, time.process_time() - before)
        return best

    assert seconds(1000) < 40 * seconds(100)


def walking(points):
    """Return a chain of balls through points whose root may go elsewhere, and its goals: root and tip."""
    joints = [Joint("root", kind=Kind.FREE)]
    for i, offset in enumerate(np.diff(points, axis=0)):
        rest = np.eye(4)
        rest[:3, 3] = offset
        last = i == len(points) - 2
        joints.append(Joint("tip" if last else f"j{i}", joints[-1].name, Kind.FIXED if last else Kind.BALL, rest))
    return sy.Skeleton(joints), [sy.PositionGoal("root"), sy.PositionGoal("tip")]


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_a_moving_root_starts_the_second_stage_at_its_wanted_place(iterations):
    """As the published algorithm with another base: the root is there after one iteration, not in between."""
    points = np.cumsum(np.random.default_rng(3).normal(size=(6, 3)), axis=0)
    points -= points[0]
    body, goals = walking(points)
    start = body.random_pose(5)
    base = np.array([0.4, -0.3, 0.2])
    target = base + 0.5 * np.linalg.norm(np.diff(points, axis=0), axis=1).sum() * np.array([0.6, 0.0, 0.8])
    p = start.positions.copy()
    d = np.linalg.norm(np.diff(points, axis=0), axis=1)
    for _ in range(iterations):
        p[-1] = target
        for i in range(len(p) - 2, -1, -1):
            p[i] = p[i + 1] + d[i] / np.linalg.norm(p[i] - p[i + 1]) * (p[i] - p[i + 1])
        p[0] = base
        for i in range(len(p) - 1):
            p[i + 1] = p[i] + d[i] / np.linalg.norm(p[i + 1] - p[i]) * (p[i + 1] - p[i])
    once = sy.Fabrik(max_steps=iterations, attempts=1)
    ik = sy.IK(body, goals, once, root="free", tolerance=(1e-9, 1e-3))
    solution = ik.solve({"root": base, "tip": target}, start)
    np.testing.assert_allclose(solution.pose.position("root"), base, atol=1e-12)
    np.testing.assert_allclose(solution.pose.positions, p, atol=1e-9)


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Particles(), sy.LevenbergMarquardt()])
def test_reach_is_measured_from_where_the_root_should_be(solver):
    """Out of reach from the old place and within it from the new one, and the other way round."""
    body, goals = walking([(0, 0, 0), (1, 0, 0), (2, 0.1, 0), (3, 0, 0)])
    ik = sy.IK(body, goals, solver, root="free")
    start = body.random_pose(2)
    assert ik.solve({"root": (4.0, 0.0, 0.0), "tip": (6.0, 0.5, 0.0)}, start).reached
    away = ik.solve({"root": (4.0, 0.0, 0.0), "tip": (0.5, 0.0, 0.0)}, start)
    assert away.status is sy.Status.UNREACHABLE
    if isinstance(solver, sy.Fabrik):  # straight from the root's place towards the target
        np.testing.assert_allclose(away.pose.position("root"), (4.0, 0.0, 0.0), atol=1e-9)
        assert away.errors[1].position == pytest.approx(3.5 - 1.0 - 2.0 * np.hypot(1.0, 0.1), abs=1e-6)


def limb(bend):
    """Return two bones of 0.4 from the origin that bend by so much at rest, to the side of +y."""
    return sy.Skeleton.chain([(0, 0, 0), (0.4 * np.cos(bend), 0.4 * np.sin(bend), 0), (0.8 * np.cos(bend), 0, 0)])


def test_a_joint_between_two_fixed_neighbours_goes_to_the_nearest_point_of_the_circle():
    """Two spheres: one step, whatever the target, and no turn about the line beyond what it takes."""
    chain = limb(0.3)
    for seed in range(20):
        start, wanted = chain.random_pose(seed), chain.random_pose(seed + 50)
        target = wanted.positions[2]
        solution = solve(chain, target, start, sy.Fabrik(attempts=1), tolerance=(1e-9, 1e-3))
        assert solution.reached
        assert solution.steps == 1
        elbow, axis = solution.pose.positions[1], target / np.linalg.norm(target)
        middle = axis * (axis @ elbow)
        before = start.positions[1] - axis * (axis @ start.positions[1])
        np.testing.assert_allclose(
            elbow - middle, before / np.linalg.norm(before) * np.linalg.norm(elbow - middle), atol=1e-9
        )


@pytest.mark.parametrize("hand", [False, True])
def test_limbs_of_a_tree_take_the_circle_too(hand):
    """Two arms on one root, each a shoulder, an elbow and a tip or a hand: both reach in one step."""
    joints = [Joint("root", kind=Kind.FIXED)]
    for side in (-1.0, 1.0):
        for name, parent, rest in ((f"upper{side}", "root", 0.3), (f"lower{side}", f"upper{side}", 0.4)):
            joints.append(Joint(name, parent, Kind.BALL, moved_by(side * rest)))
        joints.append(Joint(f"end{side}", f"lower{side}", Kind.BALL if hand else Kind.FIXED, moved_by(side * 0.5)))
    body = sy.Skeleton(joints)
    goals = [sy.PositionGoal("end-1.0"), sy.PositionGoal("end1.0")]
    for seed in range(5):
        wanted = body.random_pose(seed)
        targets = {goal.joint: wanted.position(goal.joint) for goal in goals}
        ik = sy.IK(body, goals, sy.Fabrik(attempts=1), tolerance=(1e-9, 1e-3))
        solution = ik.solve(targets, body.random_pose(seed + 30))
        assert solution.reached
        assert solution.steps == 1


@pytest.mark.parametrize("target", [(0.8, 0, 0), (0, 0, 0.8), (0, -0.8, 0)])
def test_a_tangent_circle_is_a_straight_limb(target):
    """The whole length: the circle is a point."""
    solution = solve(limb(0.3), target, limb(0.3).random_pose(1), sy.Fabrik(attempts=1))
    assert solution.reached
    np.testing.assert_allclose(solution.pose.positions[1], np.multiply(0.5, target), atol=1e-4)


def test_an_empty_circle_leaves_the_nearest_pose():
    """Bones of 3 and 1 around a target at 0.5, and at 5: as near as it gets, and proved."""
    chain = straight([3.0, 1.0])
    for target, missed in (((0.0, 0.5, 0.0), 1.5), ((0.0, 3.0, 4.0), 1.0)):
        solution = solve(chain, target, chain.random_pose(7))
        assert solution.status is sy.Status.UNREACHABLE
        assert solution.errors[0].position == pytest.approx(missed, abs=1e-9)


def test_an_elbow_on_the_axis_bends_to_the_side_of_the_rest_pose():
    """A straight arm whose target lies on its own line: the side is that of the rest pose, turned with the arm."""
    chain = limb(0.3)
    to = sy.Rotation.from_rotvec((0.3, -1.1, 0.6))
    arm = sy.Rotation.from_euler("z", -0.3)  # so that the first bone points along x
    stretched = sy.Pose(chain, np.concatenate([(to * arm).as_quat(), sy.Rotation.from_euler("z", 0.6).as_quat()]))
    line = to.apply((1.0, 0.0, 0.0))
    np.testing.assert_allclose(stretched.positions[2], 0.8 * line, atol=1e-12)
    elbow = solve(chain, 0.6 * line, stretched, sy.Fabrik(attempts=1)).pose.positions[1]
    side = sy.Rotation.align_vectors([line], [(1.0, 0.0, 0.0)])[0].apply((0.0, 1.0, 0.0))
    np.testing.assert_allclose(elbow - 0.3 * line, np.sqrt(0.16 - 0.09) * side, atol=1e-6)


def handed(n=5):
    """Return a chain of balls that ends in a ball: a hand."""
    joints = [Joint("root", kind=Kind.BALL)]
    for i in range(1, n):
        rest = np.eye(4)
        rest[:3, 3] = np.random.default_rng(i).normal(size=3)
        joints.append(Joint("hand" if i == n - 1 else f"j{i}", joints[-1].name, Kind.BALL, rest))
    return sy.Skeleton(joints)


def test_the_last_joint_takes_the_target_rotation_and_the_chain_does_not_notice():
    """Target rotation: exact after one iteration, and the positions are those without it."""
    body = handed()
    start, wanted = body.random_pose(3), body.random_pose(4)
    place, turn = wanted.position("hand"), wanted.transform("hand")[:3, :3]
    once = sy.Fabrik(max_steps=2, attempts=1)
    with_turn = sy.IK(body, sy.PoseGoal("hand", place, turn), once, tolerance=(1e-9, 1e-9)).solve(start=start)
    np.testing.assert_allclose(with_turn.pose.transform("hand")[:3, :3], turn, atol=1e-9)
    np.testing.assert_allclose(with_turn.pose.positions, published(start.positions, place, 2), atol=1e-9)


def test_each_bone_turns_by_the_smallest_rotation_on_top_of_its_own():
    """Rotations from positions: no twist about the bone is added or lost, also for a turn of almost 180 degrees."""
    chain = sy.Skeleton.chain([(0, 0, 0), (0, 0, 1)])
    for seed, angle in [(0, 0.5), (1, 2.0), (2, 3.141)]:
        start = chain.random_pose(seed)
        bone = start.positions[1].copy()
        axis = np.cross(bone, np.random.default_rng(seed).normal(size=3))
        turn = sy.Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
        solution = solve(chain, turn.apply(bone), start, sy.Fabrik(attempts=1), tolerance=(1e-9, 1e-3))
        expected = turn * sy.Rotation.from_quat(start.q.copy())
        assert (sy.Rotation.from_quat(solution.pose.q).inv() * expected).magnitude() < 1e-7


def test_all_three_stops_and_the_reason_is_told():
    """The tolerance, an end effector that no longer moves, the cap; each gives the best pose so far."""
    chain = straight([1.0, 1.0, 1.0])
    start = chain.random_pose(3)
    target = chain.random_pose(8).positions[-1]
    loose = solve(chain, target, start, sy.Fabrik(attempts=1), tolerance=(0.3, 1e-3))
    tight = solve(chain, target, start, sy.Fabrik(attempts=1), tolerance=(1e-6, 1e-3))
    assert loose.steps < tight.steps
    capped = solve(chain, target, start, sy.Fabrik(attempts=1, max_steps=2), tolerance=(1e-9, 1e-3))
    assert capped.status is sy.Status.MAX_STEPS
    assert capped.steps == 2
    hinge = sy.Skeleton([Joint("h", kind=Kind.HINGE, axis=(0, 0, 1)), Joint("tip", "h", rest=moved_by(1.0))])
    still = sy.solve(hinge, sy.PositionGoal("tip", (0.6, 0.6, 0.529)), sy.Fabrik(attempts=1, max_steps=500))
    assert still.status is sy.Status.STALLED
    assert still.steps < 50


def moved_by(x):
    """Return a transform along x."""
    rest = np.eye(4)
    rest[0, 3] = x
    return rest


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [sy.Fabrik, sy.Ccd, sy.Particles])
def test_another_method_finishes_only_when_asked_and_says_so(kind):
    """``finish="lm"``: what one attempt misses Newton's method ends, and the solution tells by how many steps."""
    arm = sy.bundled("arm7")
    alone, helped = kind(attempts=1, max_steps=40), kind(attempts=1, max_steps=40, finish="lm")
    gained = 0
    for seed in range(8):
        goal = sy.PoseGoal("tool", transform=arm.random_pose(seed).transform("tool"))
        without, with_it = sy.solve(arm, goal, alone), sy.solve(arm, goal, helped)
        assert without.finish_steps == 0
        if without.reached:
            assert with_it.finish_steps == 0
            np.testing.assert_array_equal(with_it.pose.q, without.pose.q)
            continue
        assert 0 < with_it.finish_steps < with_it.steps
        assert any("finish='lm'" in line for line in with_it.explain())
        gained += with_it.reached
    assert gained > 0


@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Ccd(), sy.Particles(), sy.LevenbergMarquardt()])
def test_a_chain_is_a_leaf_and_a_number_of_ancestors(solver):
    """Only the joint and so many above it move; the rest of the body stays where the start has it."""
    body = handed(6)
    start = body.random_pose(3)
    for count in (2, 5):
        wanted = start.q.copy()
        wanted[4 * (5 - count) :] = body.random_pose(7).q[4 * (5 - count) :]
        target = sy.Pose(body, wanted).position("hand")
        solution = sy.solve(body, sy.PositionGoal("hand", target, ancestors=count), solver, start)
        assert solution.reached
        np.testing.assert_array_equal(solution.pose.q[: 4 * (5 - count)], start.q[: 4 * (5 - count)])
    far = start.position("j2") + 2.0 * (start.position("hand") - start.position("j2")) + 1.0
    away = sy.solve(body, sy.PositionGoal("hand", far, ancestors=1), solver, start)
    assert away.status is sy.Status.UNREACHABLE
    assert any("'j4'" in line for line in away.explain())


def test_too_few_ancestors_name_the_joint_and_how_many_it_has():
    """The error of a chain that is longer than its tree."""
    with pytest.raises(sy.InputError, match=r"joint 'hand' has 5 ancestors.*got 6"):
        sy.IK(handed(6), sy.PositionGoal("hand", ancestors=6))
    with pytest.raises(sy.InputError, match="ancestors: expected a whole number"):
        sy.PositionGoal("hand", ancestors=-1)


def test_goals_with_and_without_a_length_share_a_body():
    """What one goal holds another may move."""
    body = sy.bundled("humanoid")
    start, wanted = body.rest_pose(), body.random_pose(5)
    goals = [
        sy.PositionGoal("left_hand", wanted.position("left_hand"), ancestors=3),
        sy.PositionGoal("right_foot", wanted.position("right_foot")),
    ]
    solution = sy.solve(body, goals, sy.Fabrik(attempts=2), start)
    for name in ("spine", "chest"):
        np.testing.assert_array_equal(solution.pose[name], start[name])


def shifted(x, y, z):
    """Return a translation."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def hinged_limb(hand):
    """Return a ball without limits that carries a hinge with one: the commonest leg, or arm with a ball for a hand."""
    swing = sy.Interval(0.0, 2.6)
    return sy.Skeleton(
        [
            Joint("root", kind=Kind.BALL),
            Joint("middle", "root", Kind.HINGE, shifted(0, -0.4, 0), axis=(1, 0, 0), limit=swing),
            Joint("end", "middle", Kind.BALL if hand else Kind.FIXED, shifted(0, -0.4, 0)),
        ]
    )


@pytest.mark.compiled
@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Particles()])
def test_a_free_ball_above_a_hinge_turns_about_its_bone(solver):
    """The bone alone never asks for that turn, and without it a hinge bends in one plane only."""
    leg, arm = hinged_limb(hand=False), hinged_limb(hand=True)
    assert sy.solve(leg, sy.PositionGoal("end", (0.3, -0.3, 0.3)), solver).reached
    for seed in range(20):
        assert sy.solve(leg, sy.PositionGoal("end", leg.random_pose(seed).position("end")), solver).reached
        assert sy.solve(arm, sy.PoseGoal("end", transform=arm.random_pose(seed).transform("end")), solver).reached


@pytest.mark.compiled
@pytest.mark.parametrize("solver", [sy.Fabrik(), sy.Particles()])
def test_balls_hinges_and_limits_in_any_order_reach_what_newton_reaches(solver):
    """Random chains of free balls, balls with limits and hinges, each with a bone of its own."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        joints = []
        for i in range(5):
            kind = (Kind.BALL, Kind.BALL, Kind.HINGE)[rng.integers(3)]
            restrict = sy.SwingTwist(x=(1.5, 1.2), y=(1.0, 1.6)) if kind is Kind.BALL and rng.random() < 0.5 else None
            rest, axis = shifted(*rng.normal(size=3)), rng.normal(size=3)
            joints.append(Joint(f"j{i}", f"j{i - 1}" if i else None, kind, rest, axis=axis, limit=restrict))
        joints.append(Joint("end", "j4", rest=shifted(*rng.normal(size=3))))
        body = sy.Skeleton(joints)
        goal = sy.PositionGoal("end", body.random_pose(seed).position("end"))
        assert sy.solve(body, goal).reached
        assert sy.solve(body, goal, solver).reached


@pytest.mark.parametrize("solver", ["fabrik", "particles"])
def test_a_slide_that_no_place_asks_for_stays_where_it_is(solver):
    """A rotation is met by turning alone."""
    rail = sy.Joint("rail", kind=sy.Kind.SLIDE, axis=(0.6, 0.8, 0.0), limit=sy.Interval(-1.0, 1.0))
    bone = np.eye(4)
    bone[:3, 3] = 0.5, 0.1, 0.2
    body = sy.Skeleton([rail, sy.Joint("ball", "rail", sy.Kind.BALL, bone), sy.Joint("tip", "ball", rest=bone)])
    start = body.rest_pose().with_values({"rail": 0.3})
    wanted = sy.Rotation.from_rotvec((0.4, -1.1, 0.7))
    solution = sy.solve(body, sy.RotationGoal("tip", wanted), solver, start)
    assert solution.reached
    assert solution.pose["rail"] == 0.3
