"""Candidates of closed forms and sweeps of heuristics, part by part, against forward kinematics and geometry."""

import numpy as np
import pytest

import synovia as sy
from beyond import beyond_limits
from parts import Parts
from synovia.kernels import layout
from synovia.kernels.closed_form import nearest_aim, segments_seven
from synovia.kernels.compiler.jit import perform
from synovia.kernels.heuristic import ccd, fabrik, fabrik_chain
from synovia.kernels.jacobian import methods
from synovia.kernels.math import linear, swing_twist, trigonometric_polynomials
from synovia.kernels.tree import branches, chart
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.turn import turn_ball

pytestmark = pytest.mark.parts


def at(x, y, z):
    """Return a translation."""
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def seven(wrist=0.0, apart=0.0):
    """Return an arm of seven hinges with a spherical shoulder, or one whose third axis passes beside the others."""
    y, z = (0, 1, 0), (0, 0, 1)
    places = [(z, 0.34), (y, 0), (z, 0.2), (y, 0.2), (z, 0.2), (y, 0.2), (z, 0)]
    joints = [
        sy.Joint(
            f"j{i}",
            f"j{i - 1}" if i else None,
            sy.Kind.HINGE,
            at((wrist if i == 6 else apart if i == 4 else 0.0), 0, height),
            axis=axis,
            limit=sy.Interval(-2.9, 2.0 + 0.1 * i),
        )
        for i, (axis, height) in enumerate(places)
    ]
    return sy.Skeleton([*joints, sy.Joint("tool", "j6", rest=at(0.02, 0.01, 0.1))])


def opened_seven(arm, target, start):
    """Return the problem, opened at the start."""
    return Parts(arm, [sy.PoseGoal("tool", transform=target)], sy.Segments(), start)


@pytest.mark.parametrize("wrist", [0.0, 0.08])
@pytest.mark.parametrize("seed", range(3))
def test_every_candidate_of_seven_hinges_is_exact(seed, wrist):
    """With the last turn given, each candidate has the target's frame within its limits; the true one is there."""
    arm = seven(wrist)
    pose, start = arm.random_pose(seed), arm.random_pose(seed + 50)
    parts = opened_seven(arm, pose.transform("tool"), start.q)
    a = segments_seven.seven_of(parts.problem, parts.work.frames, parts.targets)
    table = np.zeros(7 * 64)
    count = segments_seven.candidates_at(parts.problem, parts.q, a, pose.q[6] - start.q[6], table)
    found = table.reshape(-1, 7)[:count]
    assert count >= 1
    for q in found:
        np.testing.assert_allclose(sy.Pose(arm, q).transform("tool"), pose.transform("tool"), atol=1e-7)
        assert beyond_limits(parts.problem, q) < 1e-9
        assert q[6] == pytest.approx(pose.q[6])
    assert np.abs(found - pose.q).max(1).min() < 1e-5
    assert len(np.unique(np.round(found, 5), axis=0)) == count


@pytest.mark.parametrize("wrist", [0.0, 0.08])
def test_a_last_turn_is_found_wherever_its_window_is(wrist):
    """Targets all over the workspace have candidates, near the stretched arm as well; the start does not move."""
    arm = seven(wrist)
    poses = [arm.random_pose(k).q for k in range(6)]
    poses += [np.array([0.3, 0.4, 0.2, bend, 0.1, 0.3, 1.5]) for bend in (0.02, 0.2)]
    for q in poses:
        start = arm.random_pose(77).q
        parts = opened_seven(arm, sy.Pose(arm, q).transform("tool"), start)
        count, _ = perform(segments_seven.branches, *parts.call)
        assert count >= 1
        np.testing.assert_array_equal(parts.q, start)
        for row in np.array(parts.work.solver_scratch[: 7 * count]).reshape(-1, 7):
            np.testing.assert_allclose(
                sy.Pose(arm, row).transform("tool"), sy.Pose(arm, q).transform("tool"), atol=1e-6
            )


def test_no_candidates_out_of_reach():
    """An elbow that would have to be longer, and an elbow at its limit, give none."""
    arm = seven()
    target = at(0, 0, 9.0)
    parts = opened_seven(arm, target, arm.rest_pose().q + 0.1)
    a = segments_seven.seven_of(parts.problem, parts.work.frames, parts.targets)
    assert segments_seven.candidates_at(parts.problem, parts.q, a, 0.3, np.zeros(7 * 64)) == 0


def test_parallel_first_and_third_axes_share_their_turn():
    """With the second hinge at zero only the sum of its neighbours counts; the third stays where it was."""
    arm = seven()
    q = np.array([0.4, 0.0, 0.3, 0.9, 0.2, 0.7, 0.5])
    start = np.array([0.1, 0.0, 0.3, 0.8, 0.1, 0.6, 0.5])
    parts = opened_seven(arm, sy.Pose(arm, q).transform("tool"), start)
    a = segments_seven.seven_of(parts.problem, parts.work.frames, parts.targets)
    table = np.zeros(7 * 64)
    count = segments_seven.candidates_at(parts.problem, parts.q, a, 0.0, table)
    rows = table.reshape(-1, 7)[:count]
    assert count >= 1
    for row in rows:
        np.testing.assert_allclose(sy.Pose(arm, row).transform("tool"), sy.Pose(arm, q).transform("tool"), atol=1e-6)
    assert np.abs(rows - q).max(1).min() < 1e-5


def test_a_turn_is_the_shortest_that_the_limits_hold():
    """Of all turns that differ by whole turns the one within the limits that is nearest; else clamped, and told."""
    arm = sy.Skeleton([
        sy.Joint("a", None, sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-1.0, 4.0)),
        sy.Joint("tip", "a", rest=at(1, 0, 0)),
    ])  # fmt: skip
    parts = Parts(arm, [sy.PositionGoal("tip", (0, 1, 0))], sy.LevenbergMarquardt(), [0.5])
    for turn, expected in ((1.0, (1.0, True)), (-3.5, (2 * np.pi - 3.5, True)), (-2.0, (-1.5, False)),
                           (7.0, (7.0 - 2 * np.pi, True)), (3.6, (3.5, False))):  # fmt: skip
        found, fits = segments_seven.clamped_turn(parts.problem, parts.q, 0, turn)
        if expected[1]:
            assert found == pytest.approx(expected[0])
        assert bool(fits) == expected[1]
        assert -1.0 <= 0.5 + found <= 4.0


# --- FABRIK ---------------------------------------------------------------------------------------------------------


def balls(*lengths, limit=None, slide=False):
    """Return balls in a row along x from an immobile one at (1, 0, 0), with a tip."""
    joints, reach = [sy.Joint("base", rest=at(1, 0, 0))], 0.0
    for i, length in enumerate(lengths):
        joints.append(sy.Joint(f"b{i}", joints[-1].name, sy.Kind.BALL, at(reach, 0, 0), limit=limit))
        reach = length
    if slide:
        rail = {"axis": (1, 0, 0), "limit": sy.Interval(-1, 1)}
        joints.append(sy.Joint("rail", joints[-1].name, sy.Kind.SLIDE, at(reach, 0, 0), **rail))
        reach = 0.5
    return sy.Skeleton([*joints, sy.Joint("tip", joints[-1].name, rest=at(reach, 0, 0))])


def pointed(body, goals, q=None):
    """Return an opened problem with its points and their branches."""
    parts = Parts(body, goals, sy.Fabrik(), q)
    branches.link_children(parts.problem, parts.work.points)
    fabrik.mark_immobile(parts.problem, parts.work.points)
    return parts


@pytest.mark.parametrize(
    ("goal", "fixed"),
    [
        (sy.PositionGoal("b1", (1, 1, 0)), True),
        (sy.PositionGoal("b1", (1, 1, 0), offset=(0, 0.1, 0)), False),
        (sy.PoseGoal("b1", (1, 1, 0), sy.Rotation.identity()), True),
        (sy.PoseGoal("b1", (1, 1, 0), sy.Rotation.identity(), offset=at(0, 0.1, 0)), True),
        (sy.RotationGoal("b1", np.eye(3)), False),
    ],
)
def test_places_that_a_target_sets_alone(goal, fixed):
    """A joint at its goal's point, or carried rigidly by a pose; not where an offset may turn about it."""
    parts = pointed(balls(1.0, 1.0), [goal])
    n = len(parts.problem.tree.ints)
    assert bool(fabrik.has_fixed_place(parts.problem, parts.work.points, n - 1)) == fixed
    assert not fabrik.has_fixed_place(parts.problem, parts.work.points, 0)  # carries no goal itself
    assert fabrik.has_fixed_place(parts.problem, parts.work.points, n)  # the goal's own point


def test_no_place_is_set_where_two_goals_or_a_slide_are():
    """Two goals on one joint, or a joint that slides."""
    goals = [sy.PositionGoal("b1", (1, 1, 0)), sy.PositionGoal("b1", (1, 1, 1))]
    parts = pointed(balls(1.0, 1.0), goals)
    assert not fabrik.has_fixed_place(parts.problem, parts.work.points, len(parts.problem.tree.ints) - 1)
    parts = pointed(balls(1.0, 1.0, slide=True), [sy.PoseGoal("rail", (1, 1, 0), sy.Rotation.identity())])
    assert not fabrik.has_fixed_place(parts.problem, parts.work.points, len(parts.problem.tree.ints) - 1)


def test_which_rows_cannot_move():
    """The first ball's origin, and nothing below it; nothing below a slide or on a free root."""
    parts = pointed(balls(1.0, 1.0), [sy.PositionGoal("tip", (1, 1, 0))])
    np.testing.assert_array_equal(parts.work.points[: len(parts.problem.tree.ints), layout.IN_PLACE], [1, 0])
    rail = sy.Skeleton([
        sy.Joint("rail", None, sy.Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(-1, 1)),
        sy.Joint("b", "rail", sy.Kind.BALL), sy.Joint("tip", "b", rest=at(1, 0, 0)),
    ])  # fmt: skip
    parts = pointed(rail, [sy.PositionGoal("tip", (1, 1, 0))])
    np.testing.assert_array_equal(parts.work.points[: len(parts.problem.tree.ints), layout.IN_PLACE], [0, 0])


def test_balls_without_limits_turn_freely():
    """Both have to be balls that may turn anywhere."""
    wide = sy.SwingTwist(x=(1, 1), y=(1, 1), twist=(-1, 1))
    for limit, free in ((None, True), (wide, False)):
        parts = pointed(balls(1.0, 1.0, limit=limit), [sy.PositionGoal("tip", (1, 1, 0))])
        assert bool(fabrik.turns_freely(parts.problem, 0, 1)) == free
    mixed = sy.Skeleton([
        sy.Joint("a", None, sy.Kind.BALL), sy.Joint("h", "a", sy.Kind.HINGE, at(1, 0, 0), axis=(0, 0, 1)),
        sy.Joint("tip", "h", rest=at(1, 0, 0)),
    ])  # fmt: skip
    parts = pointed(mixed, [sy.PositionGoal("tip", (1, 1, 0))])
    assert not fabrik.turns_freely(parts.problem, 0, 1)
    assert not fabrik.turns_freely(parts.problem, 1, 0)


def test_a_point_on_the_line():
    """At the bone's length from the end, towards where the joint is; the joint's own place where both are one."""
    np.testing.assert_allclose(fabrik.on_line((1.0, 1.0, 0.0), (1.0, 4.0, 4.0), 2.0), (1.0, 2.2, 1.6))
    assert fabrik.on_line((1.0, 1.0, 0.0), (1.0, 1.0, 0.0), 2.0) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_backward_pass_of_a_limb_puts_its_middle_on_both_spheres(seed):
    """Between an immobile ball and a target, the middle has both bones' lengths, as near to where it is as can be."""
    rng = np.random.default_rng(seed)
    body = balls(1.0, 0.8)
    q = body.random_pose(seed).q
    pose = sy.Pose(body, q)
    way = rng.normal(size=3)
    target = np.array([1.0, 0, 0]) + way / np.linalg.norm(way) * rng.uniform(0.4, 1.7)
    parts = pointed(body, [sy.PositionGoal("tip", tuple(target))], q)
    fabrik.backward_pass(parts.problem, parts.work.frames, parts.targets, parts.work.points)
    middle = parts.work.points[1, layout.PLACE : layout.PLACE + 3]
    assert np.linalg.norm(middle - [1, 0, 0]) == pytest.approx(1.0)
    assert np.linalg.norm(middle - target) == pytest.approx(0.8)
    n = target - [1.0, 0, 0]
    n /= np.linalg.norm(n)
    here = pose.position("b1") - [1.0, 0, 0]
    side, other = here - n * (n @ here), middle - [1.0, 0, 0] - n * (n @ (middle - [1.0, 0, 0]))
    assert side @ other == pytest.approx(np.linalg.norm(side) * np.linalg.norm(other))


def test_a_place_with_several_goals_is_their_weighted_mean():
    """Each goal proposes a place for the joint that carries it; squares of weights count."""
    body = sy.Skeleton([
        sy.Joint("a", None, sy.Kind.BALL), sy.Joint("b", "a", sy.Kind.BALL, at(1, 0, 0)),
        sy.Joint("l", "b", rest=at(1, 0, 0)), sy.Joint("r", "b", rest=at(0, 1, 0)),
    ])  # fmt: skip
    goals = [sy.PositionGoal("l", (3.0, 0, 0), weight=1.0), sy.PositionGoal("r", (1, 3.0, 0), weight=0.25)]
    parts = pointed(body, goals)
    fabrik.backward_pass(parts.problem, parts.work.frames, parts.targets, parts.work.points)
    place = parts.work.points[1, layout.PLACE : layout.PLACE + 3]
    first, second = np.array([2.0, 0, 0]), np.array([1.0, 2.0, 0])
    np.testing.assert_allclose(place, (first + 0.25 * second) / 1.25, atol=1e-9)
    assert parts.work.points[1, layout.WEIGHT_SUM] == pytest.approx(1.25)


# --- limits of balls ------------------------------------------------------------------------------------------------


def excess_of(vector, **limit):
    """Return how far a rotation is beyond a limit."""
    body = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL, limit=sy.SwingTwist(**limit))])
    parts = Parts(body, [sy.PositionGoal("b", (0, 0, 1), offset=(1, 0, 1))], sy.LevenbergMarquardt())
    q = sy.Rotation.from_rotvec(vector).as_quat()
    return swing_twist.signed_excess(parts.problem.limits, 0, tuple(q)), swing_twist.excess(
        parts.problem.limits, 0, tuple(q)
    )


def test_how_far_a_rotation_is_beyond_its_limit():
    """The larger of swing and twist, negative inside; a twist of a whole turn has no ends."""
    whole = (-np.pi, np.pi)
    cases = [
        ((0, 0, 3.1), {"x": (0.3, 0.3), "y": (0.4, 0.4), "twist": whole}, -0.3),
        ((0, 0, -3.1), {"x": (0.3, 0.3), "y": (0.4, 0.4), "twist": whole}, -0.3),
        ((0, 0, 0.15), {"x": (0.3, 0.3), "y": (0.4, 0.4), "twist": (-0.1, 0.2)}, -0.05),
        ((0, 0, 0.5), {"x": (0.3, 0.3), "y": (0.4, 0.4), "twist": (-0.1, 0.2)}, 0.3),
        ((0, 0, -0.5), {"x": (0.3, 0.3), "y": (0.4, 0.4), "twist": (-0.1, 0.2)}, 0.4),
        ((0.5, 0, 0), {"x": (0.3, 0.3), "y": (0.4, 0.4), "twist": whole}, 0.2),
        ((0, -0.5, 0), {"x": (0.3, 0.3), "y": (0.4, 0.6), "twist": whole}, 0.1),
        ((0, 0.5, 0), {"x": (0.3, 0.3), "y": (0.4, 0.6), "twist": whole}, -0.05),
        ((0.15, 0, 0), {"x": (0.3, 0.3), "y": (0.4, 0.4), "twist": whole}, -0.15),
    ]
    for vector, limit, expected in cases:
        signed, out = excess_of(vector, **limit)
        assert signed == pytest.approx(expected, abs=1e-9)
        assert out == max(0.0, signed)


def test_the_distance_from_a_thin_ellipse_is_the_true_one():
    """Beside the flat side, and beyond its tip, by brute force."""
    limit = {"x": (0.02, 0.02), "y": (1.2, 1.2), "twist": (-np.pi, np.pi)}
    angles = np.linspace(0, 2 * np.pi, 200001)
    ellipse = np.column_stack([0.02 * np.cos(angles), 1.2 * np.sin(angles)])
    for s in ((0.1, 0.6), (-0.3, 1.0), (0.05, -1.4), (0.0, 1.3), (0.5, 0.0)):
        assert excess_of((*s, 0.0), **limit)[0] == pytest.approx(np.linalg.norm(ellipse - s, axis=1).min(), abs=1e-6)


# --- CCD ------------------------------------------------------------------------------------------------------------


def test_a_free_root_shifts_as_well_as_turns():
    """A sweep over a body that is one free joint brings a lone point onto its target, and frames are up to date."""
    body = sy.Skeleton([sy.Joint("root", None, sy.Kind.FREE), sy.Joint("tip", "root", rest=at(0.3, 0, 0))])
    start = np.array([0.1, 0.2, 0.3, 0, 0, 0, 1.0])
    for target in ((2.0, -1.0, 0.5), (0.4, 0.2, 0.3)):
        parts = Parts(body, [sy.PositionGoal("tip", target)], sy.Ccd(), start, "free")
        moved, _ = perform(ccd.sweep, *parts.call)
        assert moved >= 0
        for _ in range(3):
            perform(ccd.sweep, *parts.call)
        assert parts.errors()[0, 0] < 1e-3
        frames = np.zeros_like(parts.work.frames)
        forward(parts.problem.tree, parts.q, frames)
        n = len(parts.problem.tree.ints)
        np.testing.assert_allclose(parts.work.frames[:n], frames[:n], atol=1e-12)


def test_a_slide_goes_to_the_weighted_mean_of_what_its_goals_ask():
    """One sweep of a lone slide is the least squares along its axis, within its limits."""
    axis = np.array([1.0, 2.0, 2.0]) / 3
    for low, high in ((-9.0, 9.0), (-0.1, 0.2)):
        body = sy.Skeleton([
            sy.Joint("s", None, sy.Kind.SLIDE, axis=tuple(axis), limit=sy.Interval(low, high)),
            sy.Joint("a", "s", rest=at(1, 0, 0)),
            sy.Joint("b", "s", rest=at(0, 1, 0)),
        ])  # fmt: skip
        targets = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, -1.0]])
        weights = np.array([1.0, 0.4])
        goals = [sy.PositionGoal(n, tuple(t), weight=w) for n, t, w in zip("ab", targets, weights, strict=True)]
        parts = Parts(body, goals, sy.Ccd(), [0.0])
        for _ in range(3):
            perform(ccd.sweep, *parts.call)
        want = weights @ ((targets - np.eye(3)[:2]) @ axis) / weights.sum()
        assert parts.q[0] == pytest.approx(np.clip(want, low, high), abs=1e-9)


def test_a_hinge_turns_to_the_best_of_all_angles():
    """One sweep of a lone hinge has the least weighted error over a circle of angles."""
    body = sy.Skeleton([
        sy.Joint("h", None, sy.Kind.HINGE, axis=(0, 0, 1)),
        sy.Joint("a", "h", rest=at(1, 0, 0)),
        sy.Joint("b", "h", rest=at(0, 2, 0)),
    ])  # fmt: skip
    targets = np.array([[0.5, 1.5, 0.0], [-2.5, 1.0, 0.0]])
    weights = np.array([1.0, 0.3])
    goals = [sy.PositionGoal(n, tuple(t), weight=w) for n, t, w in zip("ab", targets, weights, strict=True)]
    parts = Parts(body, goals, sy.Ccd(), [0.1])
    perform(ccd.sweep, *parts.call)
    angles = np.linspace(-np.pi, np.pi, 20001)
    c, s = np.cos(angles), np.sin(angles)
    cost = weights[0] * ((c - 0.5) ** 2 + (s - 1.5) ** 2) + weights[1] * ((-2 * s + 2.5) ** 2 + (2 * c - 1.0) ** 2)
    assert np.angle(np.exp(1j * (parts.q[0] - angles[np.argmin(cost)]))) == pytest.approx(0.0, abs=1e-3)
    assert parts.work.points.shape[1] == layout.POINT_WIDTH


@pytest.mark.parametrize("size", [0.0, 1e-9, 3e-4, 9e-4, 1.1e-3, 0.5, 2.5])
def test_the_angular_velocity_of_a_ball_in_its_own_coordinates(size):
    """The series of the right Jacobian, to the last digits on both sides of where the short form ends."""
    limit = sy.SwingTwist.about((1, 2, 3), x=(1.0, 1.0), y=(1.0, 1.0), twist=(-1, 1))
    body = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL, limit=limit)])
    parts = Parts(body, [sy.PositionGoal("b", (0, 0, 1), offset=(1, 0, 1))], sy.LevenbergMarquardt())
    frame = sy.Rotation.from_quat(parts.problem.limits[0, :4]).as_matrix()
    rng = np.random.default_rng(3)
    for _ in range(4):
        heading = rng.uniform(-np.pi, np.pi)
        s = size * np.array([np.cos(heading), np.sin(heading), 0.0])
        twist, rate = rng.uniform(-2, 2), rng.normal(size=3)
        cross = np.array([[0, -s[2], s[1]], [s[2], 0, -s[0]], [-s[1], s[0], 0]])
        term = np.array([rate[0], rate[1], 0.0])
        total = term.copy()
        for k in range(1, 60):  # Σ (-1)^k / (k + 1)! [s]^k
            term = -cross @ term / (k + 1)
            total += term
        total = sy.Rotation.from_rotvec([0, 0, -twist]).apply(total) + np.array([0, 0, rate[2]])
        found = chart.velocity(parts.problem.limits, 0, (s[0], s[1]), twist, tuple(rate))
        np.testing.assert_allclose(found, frame @ total, rtol=0, atol=3e-13)


# --- chains of points -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bones", [2, 3, 5])
def test_a_straight_chain_leaves_its_line(bones):
    """One attempt reaches a target on the line of a straight chain, where every pull is along it."""
    body = sy.Skeleton.chain([(float(i), 0, 0) for i in range(bones + 1)])
    parts = Parts(body, [sy.PositionGoal(f"joint{bones}", (0.6 * bones, 0, 0))], sy.Fabrik(max_steps=200))
    perform(fabrik_chain.attempt, *parts.call)
    assert parts.errors()[0, 0] < 10 * parts.problem.tolerance


def test_a_chain_stretches_towards_what_is_beyond_its_reach():
    """In a straight line, whatever it looked like before."""
    body = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0), (2.5, 0, 0)])
    parts = Parts(body, [sy.PositionGoal("joint3", (3.0, 4.0, 0))], sy.Fabrik(), body.random_pose(3).q)
    perform(fabrik_chain.attempt, *parts.call)
    np.testing.assert_allclose(sy.Pose(body, parts.q).position("joint3"), [1.5, 2.0, 0.0], atol=1e-6)


# --- aims that limits hold back -------------------------------------------------------------------------------------


def limited_ball(seed):
    """Return the limits of a ball, and the limit itself."""
    rng = np.random.default_rng(seed)
    limit = sy.SwingTwist.about(
        rng.normal(size=3), x=tuple(rng.uniform(0.2, 1.0, 2)), y=tuple(rng.uniform(0.2, 1.0, 2)), twist=(-0.4, 0.9)
    )
    body = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL, limit=limit)])
    parts = Parts(body, [sy.PositionGoal("b", (0, 0, 1), offset=(1, 0, 1))], sy.LevenbergMarquardt())
    return rng, parts.problem.limits, limit


def gap(turns, axis, eye, target):
    """Return the angles between the turned axis and the way from its turned point to the target."""
    way = np.asarray(target) - turns.apply(eye)
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    return 2 * np.arcsin(np.clip(0.5 * np.linalg.norm(turns.apply(axis) - way, axis=-1), 0, 1))


@pytest.mark.parametrize("seed", range(6))
def test_the_twist_that_aims_best(seed):
    """Of all allowed twists, with the axis through the joint's centre or beside it."""
    rng, limits, _ = limited_ball(seed)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    eye, d = (seed % 2) * 0.3 * rng.normal(size=3), 2.0 * rng.normal(size=3)
    sight = nearest_aim.Sight(tuple(axis), tuple(eye), tuple(d), 0.1)
    twist, found = nearest_aim.best_twist(limits, 0, sight, tuple(d))
    grid = np.linspace(-0.4, 0.9, 4001)
    gaps = gap(sy.Rotation.from_rotvec(np.outer(grid, [0, 0, 1])), axis, eye, d)
    assert -0.4 <= twist <= 0.9
    assert nearest_aim.angle_of(found) == pytest.approx(gap(sy.Rotation.from_rotvec([0, 0, twist]), axis, eye, d))
    assert nearest_aim.angle_of(found) <= gaps.min() + (5e-3 if seed % 2 else 1e-6)  # beside the centre: nearly


@pytest.mark.parametrize("seed", range(4))
def test_the_allowed_rotation_that_aims_best(seed):
    """No swing and twist on a fine grid within the limit points nearer to the target."""
    rng, limits, limit = limited_ball(seed)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    eye, target = (seed % 2) * 0.2 * rng.normal(size=3), 2.0 * rng.normal(size=3)
    wanted, q = (tuple(sy.Rotation.from_quat(rng.normal(size=4)).as_quat()) for _ in range(2))
    start = swing_twist.project(limits, 0, q)
    found = nearest_aim.nearest_aim(limits, 0, start, wanted, tuple(axis), tuple(eye), tuple(target))
    assert swing_twist.excess(limits, 0, found) < 1e-9
    angle, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 40), np.linspace(0, 1, 11))
    u, v = (radius * np.cos(angle)).ravel(), (radius * np.sin(angle)).ravel()
    a, b = np.where(u >= 0, limit.x[1], limit.x[0]), np.where(v >= 0, limit.y[1], limit.y[0])
    swings = np.column_stack([a * u, b * v, 0 * u])
    frame = sy.Rotation.from_quat(limits[0, :4])
    best = np.inf
    for twist in np.linspace(-0.4, 0.9, 40):
        turns = frame * sy.Rotation.from_rotvec(swings) * sy.Rotation.from_rotvec([0, 0, twist]) * frame.inv()
        best = min(best, gap(turns, axis, eye, target).min())
    least = gap(sy.Rotation.from_quat(found), axis, eye, target)
    assert least <= best + 1e-3
    for size in (1e-2, 1e-3, 1e-4):  # nor does one nearby
        for turn in size * rng.normal(size=(40, 3)):
            near = sy.Rotation.from_quat(found) * sy.Rotation.from_rotvec(turn)
            near = sy.Rotation.from_quat(swing_twist.project(limits, 0, tuple(near.as_quat())))
            assert gap(near, axis, eye, target) >= least - 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_regularity_is_what_the_trace_of_the_inverse_says(seed):
    J = np.random.default_rng(seed).normal(size=(4, 6))
    A = J @ J.T
    factors = A.copy()
    linear.solve_ldl(factors, np.zeros(4), 4)
    assert methods.regularity(factors) == pytest.approx(1.0 / np.trace(np.linalg.inv(A)), rel=1e-9)
    singular = np.outer(J[0], J[0])
    linear.solve_ldl(singular, np.zeros(6), 6)
    assert methods.regularity(singular) < 1e-12


@pytest.mark.parametrize("wanted", [[], [0.3], [-2.0, 0.1], [1.0, 2.0, -0.5, 3.0]])
@pytest.mark.parametrize("degree", [2, 4])
def test_the_roots_of_a_polynomial_of_a_lower_degree(wanted, degree):
    """Roots of sin((θ - r) / 2) in pairs: the leading coefficients are zero but for rounding."""
    wanted = wanted if len(wanted) % 2 == 0 else [*wanted, wanted[0] + 1.5]
    if len(wanted) > 2 * degree:
        return
    theta = np.array([trigonometric_polynomials.sample_angle(j, degree) for j in range(2 * degree + 1)])
    samples = np.prod([np.sin(0.5 * (theta - root)) for root in wanted], axis=0) * np.ones(len(theta))
    angles = np.zeros(2 * degree)
    count = trigonometric_polynomials.real_angles(
        samples, degree, np.zeros(trigonometric_polynomials.SCRATCH_SIZE), angles
    )
    np.testing.assert_allclose(sorted(angles[:count]), sorted(wanted), atol=1e-7)


@pytest.mark.parametrize("axis", np.eye(3).tolist())
def test_a_ball_turns_half_a_turn_to_what_is_opposite(axis):
    body = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL), sy.Joint("tip", "b", rest=at(*axis))])
    parts = Parts(body, [sy.PositionGoal("tip", tuple(-np.array(axis)))], sy.Ccd())
    perform(ccd.sweep, *parts.call)
    np.testing.assert_allclose(sy.Pose(body, parts.q).position("tip"), -np.array(axis), atol=1e-9)


def test_stiffness_holds_a_ball_back_from_turns_away_from_the_rest_alone():
    body = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL), sy.Joint("tip", "b", rest=at(1, 0, 0))])
    turned = sy.Rotation.from_rotvec((0, 0, 0.8))
    for start, end, share in ((turned, sy.Rotation.identity(), 1.0), (sy.Rotation.identity(), turned, 0.5)):
        parts = Parts(body, [sy.PositionGoal("tip", tuple(end.apply((1, 0, 0))))], sy.Ccd(), start.as_quat())
        R = tuple(start.as_matrix().ravel())
        M = tuple(np.outer(start.apply((1.0, 0.0, 0.0)), end.apply((1.0, 0.0, 0.0))).ravel())
        turn_ball(parts.problem, 0, parts.q, 0, R, M, 1e-12, 1.0)
        moved = start.inv() * sy.Rotation.from_quat(parts.q)
        assert moved.magnitude() == pytest.approx(share * 0.8)


def test_a_ball_whose_swing_is_free_has_no_bounds_but_those_of_the_twist():
    limit = sy.SwingTwist.about((0, 0, 1), x=(np.pi, np.pi), y=(np.pi, np.pi), twist=(-0.4, 0.9))
    body = sy.Skeleton([sy.Joint("b", None, sy.Kind.BALL, limit=limit)])
    parts = Parts(body, [sy.RotationGoal("b")], sy.LevenbergMarquardt())
    box = np.zeros_like(parts.work.box)
    chart.write_ball_bounds(parts.problem.limits, 0, 0, (0.1, 0.2, 0.0, np.sqrt(0.95)), box)
    bounds = box[:3, [layout.BOX_LOWER, layout.BOX_UPPER]]
    assert (bounds[:2, 0] < -1e10).all()
    assert (bounds[:2, 1] > 1e10).all()
    np.testing.assert_allclose(bounds[2], (-0.4, 0.9), atol=1e-9)
