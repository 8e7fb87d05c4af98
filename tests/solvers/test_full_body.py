"""Full body: strict priorities on whole skeletons, moving roots, closed loops, and reasons that hold on trial."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from beyond import beyond_limits
from synovia.diagnosis import reasons_as_json as as_json
from synovia.errors import InputError
from synovia.kernels.layout import MOST_WORK
from synovia.model import Joint, Kind, change
from trees import random_tree

HUMANOID = sy.bundled("humanoid")
compiled = pytest.mark.compiled  # whole bodies take interpreted kernels many seconds


def planar(*lengths, limit=None):
    """Return hinges about z in a row along x, with a tip."""
    joints, at = [], 0.0
    for i, length in enumerate(lengths):
        rest = np.eye(4)
        rest[0, 3] = at
        joints.append(Joint(f"j{i}", f"j{i - 1}" if i else None, Kind.HINGE, rest, axis=(0, 0, 1), limit=limit))
        at = length
    rest = np.eye(4)
    rest[0, 3] = at
    return sy.Skeleton([*joints, Joint("tip", f"j{len(lengths) - 1}", Kind.FIXED, rest)])


def test_a_limit_that_holds_a_goal_back_is_told():
    """One level alone: its gradient has nowhere to go but through a limit."""
    arm = planar(1.0, limit=sy.Interval(-0.5, 0.5))
    solution = sy.solve(arm, sy.PositionGoal("tip", (np.cos(2.0), np.sin(2.0), 0.0)), sy.FullBody())
    assert solution.status is sy.Status.LIMITED
    assert solution.pose.q[0] == pytest.approx(0.5)


def test_the_higher_of_two_goals_that_exclude_each_other_is_met():
    """Whichever hand comes first arrives; the other is as near as that leaves it, and says CONFLICT."""
    arm = planar(1.0, 1.0, 1.0)
    for first, second in (("tip", "j2"), ("j2", "tip")):
        places = {"tip": (0.5, 1.0, 0.0), "j2": (-1.2, -0.9, 0.0)}
        goals = [sy.PositionGoal(first, places[first], priority=0), sy.PositionGoal(second, places[second], priority=3)]
        solution = sy.solve(arm, goals, sy.FullBody())
        assert solution.status.name == "CONFLICT"
        assert solution.errors[0].position < 1e-3
        assert solution.missed == (1,)


def some_goal(rng, joint, wanted, **given):
    """Return a goal for a joint's place, its orientation or both."""
    kind = rng.integers(0, 3)
    if kind == 0:
        return sy.PositionGoal(joint, wanted[:3, 3], offset=0.3 * rng.normal(size=3), **given)
    return (
        sy.RotationGoal(joint, wanted[:3, :3], **given) if kind == 1 else sy.PoseGoal(joint, transform=wanted, **given)
    )


def some_problem(seed):
    """Return (body, root, goals): a random tree, limits, a root that may move, shared joints, targets out of reach."""
    rng = np.random.default_rng(seed)
    free = bool(rng.random() < 0.5)
    body = random_tree(rng, joints=int(rng.integers(4, 16)), free=free, limits=True, mimic=bool(rng.random() < 0.3))
    pose, goals = body.random_pose(seed), []
    for i in range(int(rng.integers(2, 5))):
        joint = int(rng.integers(len(body) // 3, len(body)))
        wanted = pose.transform(joint).copy()
        wanted[:3, 3] += rng.normal(size=3) * rng.choice([0.0, 0.2, 3.0])
        level, weight = int(rng.integers(0, 3)), float(rng.choice([1.0, 0.01, 30.0]))
        goals.append(some_goal(rng, joint, wanted, priority=level, weight=weight, name=f"goal{i}"))
    return body, "free" if free or rng.random() < 0.3 else "fixed", goals


def level_errors(solution, goals, reach):
    """Return the error of each level of some goals, the first ones of a solution, as the solver counts it."""
    out = {}
    for level in sorted({goal.priority for goal in goals}):
        own = [(goal, error) for goal, error in zip(goals, solution, strict=True) if goal.priority == level]
        most = max(goal.weight for goal, _ in own)
        squares = (g.weight / most * ((e.position / reach) ** 2 + e.angle**2) for g, e in own)
        out[level] = np.sqrt(sum(squares))
    return out


@compiled
def test_a_miss_that_is_asked_for_again_stays():
    """Neither a little push nor a restart finds a reason to leave it, but a level that gains."""
    missed = stayed = 0
    for seed in range(30, 60):
        body, root, goals = some_problem(seed)
        ik = sy.IK(body, goals, sy.FullBody(attempts=2), root=root)
        solution = ik.solve()
        if solution.reached:
            continue
        again = ik.solve(start=solution.pose)
        before, after = (level_errors(one.errors, goals, ik.reach) for one in (solution, again))
        gains = [before[level] - after[level] for level in before]
        missed += 1
        if np.abs(again.pose.q - solution.pose.q).max() < 1e-9:
            stayed += 1
        else:
            first = next((gain for gain in gains if abs(gain) > 1e-9), 0.0)
            assert first > 0.0, seed
    assert missed > 15
    assert stayed >= 0.8 * missed


@compiled
@settings(max_examples=25)
@given(seed=st.integers(0, 2**31 - 1))
def test_upper_levels_alone_gain_nothing_from_the_final_pose(seed):
    """Running the levels above the lowest from the answer lowers their errors by no more than 1e-6; limits hold."""
    body, root, goals = some_problem(seed)
    ik = sy.IK(body, goals, sy.FullBody(attempts=2), root=root)
    solution = ik.solve()
    assert beyond_limits(ik.skeleton.tables, solution.pose.q) <= 1e-9
    for last in sorted({goal.priority for goal in goals})[:-1]:
        upper = [i for i, goal in enumerate(goals) if goal.priority <= last]
        few = [goals[i] for i in upper]
        alone = sy.IK(body, few, sy.FullBody(attempts=1), root=root, tolerance=ik.tolerance).solve(start=solution.pose)
        before = level_errors([solution.errors[i] for i in upper], few, ik.reach)
        after = level_errors(alone.errors, few, ik.reach)
        for level in before:
            assert before[level] - after[level] < 1e-6
            if after[level] - before[level] > 1e-6:
                break  # a level that lost to one above it may do anything


def hands_and_feet(seed):
    """Return goals for the hands and feet of the humanoid, where a random pose has them; some are then moved away."""
    rng, ends = np.random.default_rng(seed), ("left_hand", "right_hand", "left_foot", "right_foot")
    pose, goals = HUMANOID.random_pose(seed), []
    lost = rng.permutation(ends)[: 1 + int(rng.random() < 0.3)]
    for end in ends:
        T = pose.transform(end).copy()
        T[:3, 3] += 0.5 * rng.normal(size=3) * (end in lost)
        level = int(rng.integers(0, 3)) if end in lost else 0
        goal = sy.PoseGoal(end, transform=T, priority=level)
        goals.append(goal if rng.random() < 0.3 else sy.PositionGoal(end, T[:3, 3], priority=level))
    return goals


@compiled
@pytest.mark.parametrize("work", [3e4, 1e5])
def test_upper_levels_gain_nothing_though_the_work_limit_ended_the_solve_or_the_status_says_so(work):
    spent = 0
    for seed in range(70, 150):
        goals = hands_and_feet(seed)
        levels = sorted({goal.priority for goal in goals})
        ik = sy.IK(HUMANOID, goals, sy.FullBody())
        ik.problem.floats[MOST_WORK] = work
        solution = ik.solve()
        spent += solution.status is sy.Status.MAX_STEPS
        if solution.status is sy.Status.MAX_STEPS or solution.reached:
            continue
        for last in levels[:-1]:
            upper = [i for i, goal in enumerate(goals) if goal.priority <= last]
            few = [goals[i] for i in upper]
            alone = sy.IK(HUMANOID, few, sy.FullBody(attempts=1), tolerance=ik.tolerance).solve(start=solution.pose)
            before = level_errors([solution.errors[i] for i in upper], few, ik.reach)
            after = level_errors(alone.errors, few, ik.reach)
            changed = [before[level] - after[level] for level in before if abs(before[level] - after[level]) > 1e-6]
            assert not changed or changed[0] < 0.0, (seed, solution.status)
    assert spent > 0


@compiled
def test_an_upper_level_stays_in_no_minimum_that_suits_the_levels_below():
    """The search from random starts is repeated for the missed upper levels alone, which then find nothing better."""
    body, root, goals = some_problem(810)
    ik = sy.IK(body, goals, sy.FullBody(), root=root)
    solution = ik.solve()
    upper = [i for i, goal in enumerate(goals) if goal.priority <= 1]
    few = [goals[i] for i in upper]
    alone = sy.IK(body, few, sy.FullBody(), root=root, tolerance=ik.tolerance).solve(start=solution.pose)
    before = level_errors([solution.errors[i] for i in upper], few, ik.reach)
    after = level_errors(alone.errors, few, ik.reach)
    assert before[1] > 0.01
    assert before[1] - after[1] < 1e-6


def test_a_small_arm_with_everything():
    """A wall, a softened edge and a largest move on three hinges with limits, also where kernels are interpreted."""
    arm = planar(1.0, 0.8, 0.5, limit=sy.Interval(-2.0, 2.0))
    wall = sy.PlaneGoal("tip", (0.0, 0.3, 0.0), (0.0, 1.0, 0.0))
    below = sy.solve(arm, [wall, sy.PositionGoal("tip", (1.2, -0.4, 0.0), priority=1)], sy.FullBody(attempts=1))
    np.testing.assert_allclose(below.pose.position("tip"), (1.2, 0.3, 0.0), atol=1e-3)
    assert beyond_limits(arm.tables, below.pose.q) <= 1e-9
    far = sy.solve(arm, sy.PositionGoal("tip", (1.4, 1.7, 0.0)), sy.FullBody(attempts=1, softening=0.05))
    assert not far.reached
    assert 0.0 < 2.3 - np.linalg.norm(far.pose.position("tip")) < 0.05 * 2.3
    slow = sy.solve(arm, sy.PositionGoal("tip", (0.9, 1.2, 0.0)), sy.FullBody(attempts=1, largest_move=0.1))
    assert np.abs(slow.pose.q).max() == pytest.approx(0.1)
    assert slow.status.name == "MAX_STEPS"


def test_a_rest_goal_fills_what_is_left():
    """The elbow goes to its reference as far as the hand allows; the hand does not move for it."""
    arm = planar(1.0, 1.0, 1.0, 1.0)
    reference = np.array([0.9, -0.5, 0.4, 0.2])
    goals = [sy.PositionGoal("tip", (1.5, 1.2, 0.0)), sy.RestGoal(reference)]
    found = sy.solve(arm, goals, sy.FullBody(rest_step=1e-9), tolerance=(1e-9, 1e-3)).pose
    J = np.array([[-(found.position("tip")[1] - found.position(f"j{i}")[1]) for i in range(4)],
                  [found.position("tip")[0] - found.position(f"j{i}")[0] for i in range(4)]])  # fmt: skip
    left = reference - found.q
    np.testing.assert_allclose(left - np.linalg.pinv(J) @ (J @ left), 0.0, atol=1e-4)
    assert np.linalg.norm(left) > 0.1


@compiled
@pytest.mark.parametrize(
    ("root", "free"), [("x", {0}), ("xy", {0, 1}), (("z", "yaw"), {2}), ("x,y,yaw", {0, 1}), ("free", {0, 1, 2})]
)
def test_the_root_moves_along_its_axes_alone(root, free):
    """A target far away is met in the directions that the root may slide in, and missed in the others."""
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PositionGoal("tool"), sy.FullBody(attempts=1), root=root)
    first = arm.joint_names[0]
    before = ik.problem.default_start.position(first)
    solution = ik.solve({"tool": (30.0, 40.0, 50.0)})
    moved = np.abs(solution.pose.position(first) - before) > 1e-6
    assert {i for i in range(3) if moved[i]} == free
    again = ik.solve({"tool": (0.3, 0.1, 0.6)}, start=np.zeros(arm.nq))
    assert again.pose.q.shape == (ik.skeleton.nq,)


def test_axes_that_are_none_are_refused():
    """Unknown axes, and the same twice."""
    for bad in ("w", "xx", ("x", "x"), (), 3):
        with pytest.raises(InputError, match="root: expected 'fixed'"):
            sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"), root=bad)


def turns(skeleton, q):
    """Return how far each variable goes between rows of q, radians or length units, (T - 1, variables)."""
    out = []
    for kind, at, _ in skeleton.tables.variables:
        if kind == 1:
            a, b = (sy.Rotation.from_quat(part) for part in (q[:-1, at : at + 4], q[1:, at : at + 4]))
            out.append((a.inv() * b).magnitude())
        else:
            out.append(np.abs(np.diff(q[:, at])))
    return np.array(out).T


@compiled
def test_a_move_is_limited_in_every_frame_and_level():
    """No joint, ball or root goes further in a frame than it may while targets jump; the explanation says so."""
    body = sy.bundled("humanoid")
    goals = [sy.PositionGoal("left_hand", priority=1), sy.PositionGoal("right_foot", priority=0)]
    ik = sy.IK(body, goals, sy.FullBody(attempts=1, largest_move=0.05), root="free")
    rng = np.random.default_rng(3)
    hands = ik.problem.default_start.position("left_hand") + rng.normal(size=(12, 3)) * 0.6
    feet = ik.problem.default_start.position("right_foot") + rng.normal(size=(12, 3)) * 0.3
    clip = ik.track({"left_hand": hands, "right_foot": feet})
    q = np.vstack([ik.problem.default_start.q, clip.q])
    moves = turns(ik.skeleton, q)
    assert 0.04 < moves[:, 3:].max() <= 0.05 + 1e-9
    assert moves[:, :3].max() <= 0.05 * ik.reach + 1e-9
    assert beyond_limits(body.tables, q) <= 1e-9
    slow = next(answer for answer in clip if not answer.reached)
    assert any("largest_move" in line for line in slow.explain())
    assert "solve again from this pose" in slow.explain()[0]
    with pytest.raises(InputError, match="restart"):
        sy.FullBody(largest_move=0.1)


@compiled
@pytest.mark.parametrize("far", [False, True])
def test_a_limited_move_arrives_where_an_unlimited_one_would(far):
    """Frame by frame it comes to the target, or to the best below planted feet, and rests there with a verdict."""
    feet = [sy.ContactGoal("left_foot"), sy.ContactGoal("right_foot")]
    goals = [*feet, sy.PositionGoal("left_hand", priority=1), sy.RestGoal()]
    target = np.array([1.2, 1.9, 0.6] if far else [0.2, 0.4, 1.2])
    free = sy.IK(sy.bundled("humanoid"), goals, sy.FullBody(attempts=1), root="free")
    best = free.solve({"left_hand": target}).errors[2].position
    ik = sy.IK(sy.bundled("humanoid"), goals, sy.FullBody(attempts=1, largest_move=0.1), root="free")
    clip = ik.track({"left_hand": np.tile(target, (60, 1))})
    assert clip.errors[-1, 2, 0] < best + 2e-3
    assert clip.errors[:, :2, 0].max() < 2e-4
    assert np.abs(np.diff(clip.q[-3:], axis=0)).max() < 1e-5
    assert clip[0].status is sy.Status.MAX_STEPS
    assert clip[-1].status is (sy.Status.CONFLICT if far else sy.Status.REACHED)


@compiled
def test_a_goal_that_comes_and_goes_blends_in():
    """From two goals to three and back: no joint jumps, the new one is met in the end, the others all the time."""
    body = sy.bundled("humanoid")
    hand = np.add(body.rest_pose().position("left_hand"), (-0.2, 0.2, 0.3))
    feet = [sy.PositionGoal("left_foot"), sy.PositionGoal("right_foot")]
    few, more = (
        sy.IK(body, goals, sy.FullBody(attempts=1, largest_move=0.05), root="free")
        for goals in (feet, [*feet, sy.PositionGoal("left_hand", hand, priority=1)])
    )
    places = {goal.joint: np.tile(body.rest_pose().position(goal.joint), (25, 1)) for goal in feet}
    clips = [few.track(places)]
    for ik in (more, few):
        clips.append(ik.track(places, start=clips[-1][-1].pose))
    q = np.vstack([clip.q for clip in clips])
    assert turns(few.skeleton, q)[:, 3:].max() <= 0.05 + 1e-9
    assert clips[0].reached.all()
    assert clips[2].reached.all()
    assert not clips[1].reached[0]
    assert clips[1].reached[-1]
    assert max(error.position for answer in clips[1] for error in answer.errors[:2]) <= few.tolerance[0]


@compiled
def test_a_closed_loop_stays_closed():
    """Two hands on one tool: their relative pose holds to tolerance while one of them follows a path."""
    body = sy.bundled("humanoid")
    start = body.rest_pose()
    path = start.position("left_hand") + np.linspace((0, 0, 0), (0.1, 0.2, 0.1), 6)
    goals = [
        sy.RelativeGoal("right_hand", "left_hand", parts="position", name="tool"),
        sy.PositionGoal("left_hand", priority=1),
    ]
    ik = sy.IK(body, goals, sy.FullBody())
    between = np.linalg.norm(start.position("left_hand") - start.position("right_hand"))
    for answer in ik.track({"left_hand": path}, start=start):
        a, b = answer.pose.position("left_hand"), answer.pose.position("right_hand")
        assert abs(np.linalg.norm(a - b) - between) <= ik.tolerance[0]


@compiled
def test_a_limit_that_a_follower_narrows_is_a_reason():
    """Without the limits of the leader, the follower binds it no more."""
    slide = {"kind": sy.Kind.SLIDE, "axis": (0, 0, 1)}
    tip = np.eye(4)
    tip[2, 3] = 0.5
    lift = sy.Skeleton(
        [
            sy.Joint("leader", limit=sy.Interval(-1, 1), **slide),
            sy.Joint("led", 0, limit=sy.Interval(-0.2, 0.2), mimic=sy.Mimic("leader", binds=True), **slide),
            sy.Joint("tip", 1, rest=tip),
        ]
    )
    solution = sy.solve(lift, sy.PositionGoal("tip", (0, 0, 1.5)), sy.FullBody())
    np.testing.assert_allclose(solution.pose.q, 0.2)
    (reason,) = solution.reasons
    assert [relief.name for relief in reason.limits] == ["leader"]
    assert reason.limits[0].error.position < 1e-3


@compiled
def test_reasons_hold_when_acted_upon():
    """The rival is the higher goal, the limit named costs most, and the move that is told makes all goals hold."""
    arm = planar(1.0, 1.0, 1.0, limit=sy.Interval(-1.0, 1.0))
    goals = [sy.PositionGoal("j2", (1.4, 1.1, 0.0)), sy.PositionGoal("tip", (-0.5, 1.5, 0.0), priority=1)]
    solution = sy.solve(arm, goals, sy.FullBody())
    assert not solution.reached
    (reason,) = [r for r in solution.reasons if r.goal == 1]
    assert reason.move is not None
    told = [goals[0], sy.PositionGoal("tip", np.array([-0.5, 1.5, 0.0]) + reason.move, priority=1)]
    if 0 not in solution.missed:
        assert sy.solve(arm, told, sy.FullBody(attempts=40)).reached
        short = [goals[0], sy.PositionGoal("tip", np.array([-0.5, 1.5, 0.0]) + 0.9 * reason.move, priority=1)]
        assert not sy.solve(arm, short, sy.FullBody(attempts=40)).reached
    for relief in reason.limits[:1]:
        assert relief.error.position < solution.errors[1].position
    assert any("tip" in line and "would have to move" in line for line in solution.explain())


@compiled
def test_targets_that_only_together_can_move_are_told_so():
    """Two tips out of reach on different arms: each by its own miss, in words, in values and as JSON."""
    body = sy.bundled("humanoid")
    goals = [sy.PositionGoal("left_hand", (2.0, 1.5, 0.3)), sy.PositionGoal("right_hand", (-2.0, 1.2, 0.1), priority=1)]
    solution = sy.solve(body, goals, sy.FullBody(attempts=2))
    assert [reason.along for reason in solution.reasons] == [("right_hand",), ("left_hand",)]
    moved = [
        sy.PositionGoal(goal.joint, goal.target[:3, 3] + reason.move)
        for goal, reason in zip(goals, solution.reasons, strict=True)
    ]
    assert sy.solve(body, moved, sy.FullBody(), solution.pose).reached
    assert sy.solve(body, moved, sy.FullBody(attempts=1), solution.reasons[0].pose).steps == 0
    assert any("together with 'right_hand'" in line for line in solution.explain())
    told = as_json(solution, solution.reasons)
    assert told[0]["along"] == ["right_hand"]
    assert told[0]["move"] == solution.reasons[0].move.tolist()
    assert told[0]["q"]["left_lower_arm"] == solution.reasons[0].pose["left_lower_arm"]


@compiled
def test_a_wall_is_met_and_not_crossed():
    """A lower goal is as near as the plane above it allows, and stays there, to the bit, when asked again."""
    body = sy.bundled("humanoid")
    hand = body.rest_pose().position("left_hand")
    plane = sy.PlaneGoal("left_hand", point=np.add(hand, (0, -0.05, 0)), normal=(0, 1, 0), priority=0)
    ik = sy.IK(body, [plane, sy.PositionGoal("left_hand", np.add(hand, (0.0, -0.4, 0.2)), priority=1)], sy.FullBody())
    solution = ik.solve()
    assert solution.status.name == "CONFLICT"
    np.testing.assert_allclose(solution.pose.position("left_hand") - hand, (0.0, -0.05, 0.2), atol=1e-4)
    np.testing.assert_array_equal(ik.solve(start=solution.pose).pose.q, solution.pose.q)


def test_balance_rests_in_a_corner_of_its_polygon():
    """Both edges hold there, so a lower goal neither leaves through one of them nor creeps along the other."""
    arm = planar(1.0, 0.8, 0.5)
    heavy = sy.Skeleton([replace(joint, mass=1.0, com=(0.3, 0.0, 0.0)) for joint in arm.joints[:-1]] + [arm.joints[-1]])
    corner = np.array([0.9, 0.3, 0.0])
    stands = sy.CenterOfMassGoal(polygon=np.add(corner, [(0, 0, 0), (-2, 0.3, 0), (-2, -0.5, 0)]), up=(0, 0, 1))
    ik = sy.IK(heavy, [stands, sy.PositionGoal("tip", (2.2, 0.45, 0.0), priority=1)], sy.FullBody(attempts=1))
    solution = ik.solve(start=sy.Pose(heavy, np.array([0.3, 0.5, -0.4])))
    assert solution.status.name == "CONFLICT"
    np.testing.assert_allclose(solution.pose.center_of_mass()[:2], corner[:2], atol=1e-9)
    np.testing.assert_array_equal(ik.solve(start=solution.pose).pose.q, solution.pose.q)


@compiled
@pytest.mark.parametrize("least", [0.2, 0.6])
def test_a_distance_keeps_two_joints_apart(least):
    """Both ways: the hand stays out of a ball around the head, and inside a larger one."""
    body = sy.bundled("humanoid")
    head = body.rest_pose().position("head")
    apart = sy.DistanceGoal("left_hand", "head", minimum=least, maximum=least + 0.1)
    for way in ((0.0, 0.05, 0.1), (2.0, 0.3, 0.1)):
        to = np.add(head, way)
        ik = sy.IK(body, [apart, sy.PositionGoal("left_hand", to, priority=1)], sy.FullBody())
        pose = ik.solve().pose
        between = np.linalg.norm(pose.position("left_hand") - pose.position("head"))
        assert least - ik.tolerance[0] < between < least + 0.1 + ik.tolerance[0]


def test_a_range_holds_back_what_comes_below_it_as_a_limit_would():
    """Above a place it is a limit; below, it takes what the place leaves; with room in it, nothing is other."""
    target, bounds = (-0.6, 1.4, 0.0), (-0.3, 0.4)
    arm, settings = planar(1.0, 1.0, 0.5), sy.FullBody(attempts=1)
    place, free = sy.PositionGoal("tip", target, priority=1), sy.solve(arm, sy.PositionGoal("tip", target), settings)
    assert free.pose["j0"] > 0.8
    held = sy.solve(arm, [sy.RangeGoal("j0", *bounds), place], settings)
    assert held.status.name == "CONFLICT"
    assert held.errors[0].angle < 1e-6
    assert held.pose["j0"] == pytest.approx(bounds[1], abs=1e-6)
    limited = sy.Skeleton([replace(arm.joints[0], limit=sy.Interval(*bounds)), *arm.joints[1:]])
    least = sy.solve(limited, sy.PositionGoal("tip", target), settings)
    assert held.errors[1].position == pytest.approx(least.errors[0].position, abs=1e-5)
    first = sy.solve(arm, [sy.RangeGoal("j0", *bounds, priority=2), place], settings)
    assert first.missed == (0,)
    assert first.errors[1].position < 1e-3
    assert first.errors[0].angle < free.pose["j0"] - bounds[1]
    assert any("deg outside its range, -17.2 deg to 22.9 deg" in line for line in first.explain())
    roomy = sy.solve(arm, [sy.RangeGoal("j0", -3.0, 3.0), place], settings)
    np.testing.assert_allclose(roomy.pose.q, free.pose.q, atol=1e-5)


@compiled
def test_the_edge_of_reach_is_soft_and_quiet():
    """Through the edge and back no joint of an arm with limits jumps; at rest nothing moves; what is left is a miss."""
    body = sy.bundled("humanoid")
    shoulder, reach = body.rest_pose().position("left_upper_arm"), body.lengths[body.index("left_lower_arm")]
    reach += body.lengths[body.index("left_hand")]
    far = reach * np.concatenate([np.linspace(0.8, 1.05, 150), np.linspace(1.05, 0.8, 150)])
    path = shoulder + np.outer(far, np.array([0.6, 0.5, 0.62]) / np.linalg.norm([0.6, 0.5, 0.62]))
    ik = sy.IK(body, [sy.PositionGoal("left_hand", ancestors=2)], sy.FullBody(softening=0.02))
    clip = ik.track({"left_hand": path}, start=ik.solve({"left_hand": path[0]}).pose)
    moves = turns(body, clip.q).max(1)
    assert moves.max() < 3.0 * moves[(far < 0.9 * reach)[1:]].max()
    assert beyond_limits(body.tables, clip.q) <= 1e-9
    assert not clip[int(np.argmax(far > 0.99 * reach))].reached
    still = ik.track({"left_hand": np.repeat(path[149][None], 20, 0)}, start=clip[149].pose)
    assert np.abs(np.diff(still.q, axis=0)).max() < 1e-6


@pytest.mark.parametrize("level", [0, 1])
def test_goals_of_one_level_that_pull_apart_are_a_conflict_on_any_level(level):
    """The tip of one branch is wanted at two places at once; the tip of the other is where it should be."""
    bone = np.eye(4)
    bone[0, 3] = 1.0
    joints = [sy.Joint("root")]
    for side in "ab":
        joints += [sy.Joint(f"{side}0", "root", sy.Kind.BALL), sy.Joint(f"{side}1", f"{side}0", sy.Kind.BALL, bone)]
        joints.append(sy.Joint(f"{side}2", f"{side}1", rest=bone, tip=True))
    body = sy.Skeleton(joints)
    apart = [
        sy.PositionGoal("a2", place, priority=level, name=name)
        for name, place in (("l", (1, 0.6, 0)), ("r", (1, -0.6, 0)))
    ]
    goals = [sy.PositionGoal("b2", (0.5, 0.5, 1.0), priority=1 - level), *apart]
    solution = sy.solve(body, goals, "full-body")
    assert solution.status is sy.Status.CONFLICT
    assert solution.errors[0].position < 1e-3
    np.testing.assert_allclose(solution.pose.position("a2"), (1, 0, 0), atol=1e-3)


def test_the_rest_goal_has_the_last_say_whatever_its_weight():
    """Nothing is below it: only the shares of its joints count among each other."""
    arm = sy.bundled("arm7")
    liked = arm.rest_pose().with_values({"joint2": 0.5, "joint4": -1.5})
    goal = sy.PositionGoal("tool", (0.4, 0.1, 0.5))
    found = [sy.solve(arm, [goal, sy.RestGoal(liked, weight=w)], "full-body") for w in (1.0, 1e-4, 1e4)]
    assert all(solution.reached for solution in found)
    for other in found[1:]:
        np.testing.assert_allclose(other.q, found[0].q, atol=1e-4)


@compiled
def test_near_targets_get_near_poses_from_straight_legs_though_the_first_attempt_misses():
    body = sy.bundled("humanoid")
    rest, ends = body.rest_pose(), ("left_foot", "right_foot", "left_hand", "right_hand")
    ik = sy.IK(body, [sy.PoseGoal(end) for end in ends], sy.FullBody())
    restarted, near = 0, 0
    for seed in range(250):
        rng = np.random.default_rng(seed)
        share = rng.uniform(0.03, 0.1)  # of the way to a random pose, so that knees bend the way they can
        other = body.random_pose(seed).q.copy()
        other[:7] = rest.q[:7]
        known = sy.Pose(body, change.blend(body, rest.q, other, share))
        solution = ik.solve({end: known.transform(end) for end in ends}, rest)
        assert solution.reached
        if solution.attempt > 0:
            restarted += 1
            near += farthest(body, rest.q, solution.q) <= 2 * farthest(body, rest.q, known.q)
    assert restarted >= 4  # else the law is not tested
    assert near >= 0.75 * restarted


def farthest(body, a, b):
    """Return the largest angle by which a joint turns between two poses."""
    moved, at = change.change_between(body, a, b), change.turns(body)
    rotations = 2.0 * np.arctan2(np.linalg.norm(moved[at[:, :3]], axis=1), np.abs(moved[at[:, 3]]))
    return max(np.abs(np.delete(moved, at.ravel())).max(), rotations.max())
