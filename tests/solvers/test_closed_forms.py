"""Hinges, aim and segments against brute force, and every branch that they report."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import synovia as sy
from synovia.kernels.compiler import compiled
from synovia.model import Joint, Kind, Mimic
from synovia.problem.structure import meet

SCAN = 4001 if compiled() else 401  # values of a joint
DESCENTS = 20 if compiled() else 4  # from random poses, to a branch that the closed form must know


def at(x, y, z, rotvec=(0.0, 0.0, 0.0)):
    """Return a transform."""
    out = np.eye(4)
    out[:3, :3] = sy.Rotation.from_rotvec(rotvec).as_matrix()
    out[:3, 3] = x, y, z
    return out


def unit(v):
    """Return v at length one."""
    return np.asarray(v) / np.linalg.norm(v)


def pair(rng, kinds, parallel, limited):
    """Return two random joints, their axes skew or parallel."""
    first = rng.normal(size=3)
    limits = [sy.Interval(*np.sort(rng.uniform(-2.5, 2.5, 2))) if limited else None for _ in kinds]
    return sy.Skeleton(
        [
            Joint("a", kind=kinds[0], axis=first, rest=at(*rng.normal(size=3), rng.normal(size=3)), limit=limits[0]),
            Joint(
                "b", "a", kinds[1], at(*rng.normal(size=3), (0, 0, 0) if parallel else rng.normal(size=3)),
                axis=first if parallel else rng.normal(size=3), limit=limits[1],
            ),
            Joint("tip", "b", rest=at(*rng.normal(size=3))),
        ]
    )  # fmt: skip


def least(skeleton, target, rng):
    """Return the smallest distance of the tip to a target within the limits, by descents from many starts."""
    lower, upper = skeleton.limits
    box = list(zip(np.maximum(lower, -3.2), np.minimum(upper, 3.2), strict=True))

    def cost(q):
        return ((sy.Pose(skeleton, q).position("tip") - target) ** 2).sum()

    found = [minimize(cost, [rng.uniform(*b) for b in box], bounds=box, tol=1e-13).fun for _ in range(8)]
    return np.sqrt(min(found))


@pytest.mark.parametrize("kinds", [(Kind.HINGE, Kind.HINGE), (Kind.SLIDE, Kind.SLIDE)])
def test_two_joints_come_as_near_as_anything_does(kinds):
    """Skew and parallel, with limits and without, targets in and out of reach: never farther than brute force."""
    rng = np.random.default_rng(7)
    for k in range(12 if compiled() else 6):
        skeleton = pair(rng, kinds, parallel=k % 4 == 0, limited=k % 2 == 1 or kinds[0] is Kind.SLIDE)
        own = skeleton.random_pose(k)
        target = own.position("tip") + (rng.normal(size=3) if k % 3 else 0.0)
        solution = sy.IK(skeleton, sy.PositionGoal("tip"), "hinges").solve(
            {"tip": target}, skeleton.random_pose(90 + k)
        )
        distance = np.linalg.norm(solution.pose.position("tip") - target)
        assert distance <= least(skeleton, target, rng) + 1e-6
        assert solution.status is (sy.Status.UNREACHABLE if k % 3 else sy.Status.REACHED)


def test_every_branch_of_two_hinges_is_listed_the_nearest_first():
    """A planar arm has elbow up and elbow down; the limits may leave one, or none."""
    for limit, count in ((None, 2), (sy.Interval(0.0, 3.0), 1), (sy.Interval(0.0, 0.1), 0)):
        arm = sy.Skeleton(
            [
                Joint("a", kind=Kind.HINGE, axis=(0, 0, 1)),
                Joint("b", "a", Kind.HINGE, at(0.5, 0, 0), axis=(0, 0, 1), limit=limit),
                Joint("tip", "b", rest=at(0.4, 0, 0)),
            ]
        )
        ik = sy.IK(arm, sy.PositionGoal("tip"), "hinges", tolerance=(1e-9, 1e-9))
        for start in (arm.rest_pose(), sy.Pose(arm, [2.0, 0.05])):
            branches = ik.branches({"tip": (0.3, 0.5, 0.0)}, start)
            assert len(branches) == count
            elbow = np.arccos((0.34 - 0.25 - 0.16) / 0.4)  # the law of cosines
            np.testing.assert_allclose(sorted(abs(branches.q[:, 1])), [elbow] * count, atol=1e-12)
            away = np.linalg.norm(branches.q - start.q, axis=1)
            assert (np.diff(away) >= 0.0).all()
            if count:
                nearest = ik.solve({"tip": (0.3, 0.5, 0.0)}, start)  # by another entry: not to the last bit
                np.testing.assert_allclose(nearest.pose.q, branches.q[0], atol=1e-12)


def test_one_hinge_takes_a_position_or_a_rotation_as_near_as_it_can():
    """By a scan of the whole circle; and the same turn that the start has, where there are several."""
    rng = np.random.default_rng(2)
    for k in range(8):
        limit = sy.Interval(-7.0, 7.0) if k % 2 else sy.Interval(-1.0, 0.5)
        arm = sy.Skeleton(
            [
                Joint("a", kind=Kind.HINGE, axis=rng.normal(size=3), rest=at(*rng.normal(size=3)), limit=limit),
                Joint("tip", "a", rest=at(*rng.normal(size=3))),
            ]
        )
        turn = sy.Rotation.from_rotvec(rng.normal(size=3))
        point = rng.normal(size=3)
        for goal, error in ((sy.PositionGoal("tip", point), "position"), (sy.RotationGoal("tip", turn), "angle")):
            ik = sy.IK(arm, goal, "hinges")
            solution = ik.solve(start=[0.4])
            best = _errors(arm, np.linspace(limit.lower, limit.upper, SCAN), goal, error).min()
            assert getattr(solution.errors[0], error) <= best + 1e-9
            assert abs(solution.pose["a"] - 0.4) <= np.pi + 1e-9 or not k % 2


def _errors(arm, values, goal, which):
    """Return by how much a goal is missed at each value of the joint."""
    frames = sy.Motion(arm, values[:, None], 1.0).frames()[:, arm.index("tip")]
    if which == "position":
        return np.linalg.norm(frames[:, 9:] - goal.target[:3, 3], axis=1)
    turns = sy.Rotation.from_matrix(frames[:, :9].reshape(-1, 3, 3))
    return (sy.Rotation.from_matrix(goal.target[:3, :3]) * turns.inv()).magnitude()


def head(rest=None):
    """Return spine, neck and head, balls, and an eye beside the head's centre."""
    return sy.Skeleton(
        [
            Joint("spine", kind=Kind.BALL, rest=at(0.1, 1.0, 0.2, (0.1, 0.2, 0.3)) if rest is None else rest),
            Joint("neck", "spine", Kind.BALL, at(0.0, 0.4, 0.0)),
            Joint("head", "neck", Kind.BALL, at(0.0, 0.1, 0.02, (0.0, 0.2, 0.1))),
            Joint("eye", "head", rest=at(0.03, 0.08, 0.1, (0.1, 0.0, 0.0))),
        ]
    )


AXIS, EYE = np.array([0.1, 0.2, 1.0]), np.array([0.03, 0.08, 0.1])


@pytest.mark.parametrize("shares", [(1.0,), (3, 2, 1)])
@pytest.mark.parametrize("up", [None, (0.0, 1.0, 0.2)])
def test_an_axis_beside_the_joint_points_exactly_and_rolls_up(shares, up):
    """The ray from the eye passes through the target to 1e-9; no roll is higher, no smaller turn aims."""
    skeleton = head()
    rng = np.random.default_rng(5)
    ik = sy.IK(skeleton, sy.AimGoal("head", axis=AXIS, offset=EYE), sy.Aim(shares=shares, up=up, top=(0, 1, 0)))
    for k in range(8):
        start, target = skeleton.random_pose(k), np.array([0.0, 1.4, 0.0]) + rng.normal(size=3) * 2.0
        solution = ik.solve({"head": target}, start)
        pose = solution.pose
        assert solution.reached
        turn, centre = pose.rotation("head"), pose.position("head")
        ray, way = turn.apply(unit(AXIS)), target - (centre + turn.apply(EYE))
        np.testing.assert_allclose(np.cross(ray, way), 0.0, atol=1e-9)
        assert ray @ way > 0.0
        line = unit(target - centre)
        rolls = sy.Rotation.from_rotvec(np.linspace(-np.pi, np.pi, 721)[:, None] * line)
        if up is not None:
            heights = (rolls * turn).apply([0, 1, 0]) @ np.array(up)
            assert turn.apply([0, 1, 0]) @ np.array(up) >= heights.max() - 1e-12
        elif len(shares) == 1:
            turned = (rolls * turn * start.rotation("head").inv()).magnitude()
            assert (turn * start.rotation("head").inv()).magnitude() <= turned.min() + 1e-12


def test_shares_divide_the_turn_and_weight_takes_a_part_of_it():
    """Far away the joints turn in the ratio of their shares; half the weight is half of each turn."""
    skeleton = head(at(0, 1, 0))
    start = skeleton.rest_pose()
    goal = sy.AimGoal("head", axis=start.rotation("head").inv().apply([0, 0, 1.0]))
    far = np.array([3e6, 0.0, 4e6])
    whole = sy.IK(skeleton, goal, sy.Aim(shares=(3, 2, 1))).solve({"head": far}).pose
    turns = [sy.Rotation.from_quat(whole.q[skeleton.q_slice(joint)]).magnitude() for joint in ("head", "neck", "spine")]
    np.testing.assert_allclose(np.array(turns) / sum(turns), [3 / 6, 2 / 6, 1 / 6], atol=1e-5)
    half = sy.IK(skeleton, goal, sy.Aim(shares=(3, 2, 1), weight=0.5)).solve({"head": far}).pose
    for joint in ("head", "neck", "spine"):
        s = skeleton.q_slice(joint)
        one, two = sy.Rotation.from_quat(whole.q[s]), sy.Rotation.from_quat(half.q[s])
        np.testing.assert_allclose(2.0 * two.as_rotvec(), one.as_rotvec(), atol=1e-9)


def test_a_hinge_aims_as_near_as_a_scan_and_in_its_limits():
    """A barrel beside the axis of its turret, level with the target or not, the limit in the way or not."""
    for limit in (None, sy.Interval(-0.5, 0.6)):
        turret = sy.Skeleton(
            [
                Joint("pan", kind=Kind.HINGE, axis=(0, 1, 0), rest=at(0.1, 0.2, 0.3, (0.1, 0.4, 0.2)), limit=limit),
                Joint("barrel", "pan", rest=at(0.2, 0.1, 0.3)),
            ]
        )
        ik = sy.IK(turret, sy.AimGoal("barrel", axis=(0, 0, 1)), "aim")
        for target in ((1.0, 0.4, 2.0), (-2.0, 3.0, 0.5), (0.3, -4.0, -1.0)):

            def miss(x, turret=turret, target=target):
                pose = sy.Pose(turret, [x])
                ray, way = pose.rotation("barrel").apply([0, 0, 1]), np.array(target) - pose.position("barrel")
                return np.arctan2(np.linalg.norm(np.cross(ray, way)), ray @ way)

            low, high = (limit.lower, limit.upper) if limit else (-np.pi, np.pi)
            scan = np.linspace(low, high, 121)
            near = min(scan, key=miss)
            best = minimize_scalar(
                miss, bounds=(max(low, near - 0.06), min(high, near + 0.06)), method="bounded", options={"xatol": 1e-12}
            )
            solution = ik.solve({"barrel": target}, [0.1])
            assert solution.errors[0].angle <= min(best.fun, miss(near)) + 1e-6


def six(kind):
    """Return an arm of six hinges of a kind, with limits."""
    limit = sy.Interval(-3.0, 2.9)

    def hinge(name, parent, axis, *rest):
        return Joint(name, parent, Kind.HINGE, at(*rest), axis=axis, limit=limit)

    y, z = (0, 1, 0), (0, 0, 1)
    if kind == "parallel":
        joints = [
            hinge("j1", "base", z, 0, 0, 0.16), hinge("j2", "j1", y, 0, 0.13, 0), hinge("j3", "j2", y, 0, -0.12, 0.42),
            hinge("j4", "j3", y, 0, 0, 0.39), hinge("j5", "j4", z, 0, 0.1, 0), hinge("j6", "j5", y, 0, 0, 0.1),
        ]  # fmt: skip
    else:
        lift = {"offset": (0.1, 0.15, 0.1), "meeting": (0.0, 0.0, 0.2), "skew": (0.1, 0.15, 0.1)}[kind]
        joints = [
            hinge("j1", "base", z, 0, 0, 0.3), hinge("j2", "j1", (0.3, 1, 0.4) if kind == "skew" else y, *lift),
            hinge("j3", "j2", y, 0, 0, 0.5), hinge("j4", "j3", z, 0.02, 0, 0.2), hinge("j5", "j4", y, 0, 0, 0.2),
            hinge("j6", "j5", z, 0, 0, 0),
        ]  # fmt: skip
    return sy.Skeleton(
        [
            Joint("base", rest=at(0.2, -0.1, 0.05, (0.3, 0.1, 0.2))),
            *joints,
            Joint("tool", "j6", rest=at(0.02, 0.01, 0.1, (0.1, 0.2, 0.3))),
        ]
    )


def exact_branches(ik, pose):
    """Return the branches of a pose's own target: the pose is the first, each is exact and within the limits."""
    lower, upper = pose.skeleton.limits
    target = pose.transform("tool")
    branches = ik.branches({"tool": target}, pose)
    np.testing.assert_allclose(branches.q[0], pose.q, atol=1e-6)
    assert ((branches.q >= lower - 1e-12) & (branches.q <= upper + 1e-12)).all()
    for branch in branches:
        np.testing.assert_allclose(branch.pose.transform("tool"), target, atol=1e-8)
    for i, q in enumerate(branches.q):  # each once
        assert np.abs(np.delete(branches.q, i, axis=0) - q).max(axis=1, initial=0.0).min(initial=np.inf) > 1e-9
    return branches


def missed_by(branches, other, target):
    """Whether descents from random poses find what is no branch; near a double root their tolerance is a long way."""
    starts = [other.skeleton.random_pose(900 + i).q for i in range(DESCENTS)]
    found = other.solve_many({"tool": np.tile(target, (DESCENTS, 1, 1))}, starts, threads=1)
    return any(np.abs(branches.q - q).max(axis=1).min() >= 1e-3 for q in found.q[found.reached])


@pytest.mark.parametrize("kind", ["parallel", "offset", "meeting", "skew"])
def test_arms_of_six_hinges_list_every_branch(kind):
    """The pose that made the target is among them, each is exact and within the limits, no descent finds another."""
    arm = six(kind)
    ik = sy.IK(arm, sy.PoseGoal("tool"), "segments", tolerance=(1e-9, 1e-9))
    other = sy.IK(arm, sy.PoseGoal("tool"), sy.LevenbergMarquardt(attempts=1), tolerance=(1e-10, 1e-10))
    most = 0
    for k in range(12 if compiled() else 3):
        pose = arm.random_pose(k)
        target = pose.transform("tool")
        branches = exact_branches(ik, pose)
        most = max(most, len(branches))
        start = arm.random_pose(500 + k)
        nearest = ik.solve({"tool": target}, start)
        assert nearest.reached
        away = np.linalg.norm(branches.q - start.q, axis=1)
        assert np.linalg.norm(nearest.pose.q - start.q) <= away.min() + 1e-6
        assert not missed_by(branches, other, target)
    assert most > (6 if compiled() else 3)


def seven(kind):
    """Return the bundled arm of seven hinges, or one with a spherical shoulder and wrist; ``apart``: without."""
    if kind == "offset":
        return sy.bundled("arm7")
    y, z = (0, 1, 0), (0, 0, 1)
    aside = 0.01 if kind == "apart" else 0.0
    places = [
        (z, 0, 0, 0.34),
        (y, 0, 0, 0),
        (z, aside, 0, 0.2),
        (y, 0, 0, 0.2),
        (z, 0, 0, 0.2),
        (y, 0, 0, 0.2),
        (z, 0, 0, 0),
    ]
    joints = [
        Joint(
            f"j{i}",
            f"j{i - 1}" if i else None,
            Kind.HINGE,
            at(*place),
            axis=axis,
            limit=sy.Interval(-2.9, 2.0 + 0.1 * i),
        )
        for i, (axis, *place) in enumerate(places)
    ]
    return sy.Skeleton([*joints, Joint("tool", "j6", rest=at(0.02, 0.01, 0.1, (0.1, 0.2, 0.3)))])


@pytest.mark.parametrize("kind", ["offset", "spherical"])
def test_arms_of_seven_hinges_list_every_branch_of_a_last_turn(kind):
    """The pose that made the target is among them, each is exact and within the limits, no descent finds another."""
    arm = seven(kind)
    ik = sy.IK(arm, sy.PoseGoal("tool"), "segments", tolerance=(1e-9, 1e-9))
    last = arm.joints[arm.index("j6" if kind == "spherical" else "joint7")]
    most = 0
    for k in range(8 if compiled() else 3):
        pose = arm.random_pose(k)
        target = pose.transform("tool")
        branches = exact_branches(ik, pose)
        most = max(most, len(branches))
        start = arm.random_pose(500 + k)
        assert ik.solve({"tool": target}, start).reached
        x = pose[last.name]
        held = sy.Skeleton([replace(j, limit=sy.Interval(x, x)) if j is last else j for j in arm.joints])
        other = sy.IK(held, sy.PoseGoal("tool"), sy.LevenbergMarquardt(attempts=1), tolerance=(1e-10, 1e-10))
        assert not missed_by(branches, other, target)
    assert most > (2 if kind == "offset" else 3)


@pytest.mark.parametrize("kind", ["offset", "spherical"])
def test_seven_hinges_reach_all_that_they_can_and_follow_without_a_jump(kind):
    """Whatever the windows of the free turn: every target; on a way of small steps every step is small."""
    arm = seven(kind)
    ik = sy.IK(arm, sy.PoseGoal("tool"), "segments", tolerance=(1e-8, 1e-8))
    poses = np.array([arm.random_pose(i).q for i in range(1000 if compiled() else 30)])
    targets = np.array([sy.Pose(arm, q).transform("tool") for q in poses])
    many = ik.solve_many({"tool": targets}, threads=1)
    assert many.reached.all()
    assert not any(ik.problem.outside(solution.pose) for solution in many)
    frames = 200 if compiled() else 40
    way = poses[0] + np.linspace(0.0, 0.0015 * frames, frames)[:, None] * np.clip(poses[1] - poses[0], -1, 1)
    clip = ik.track({"tool": np.array([sy.Pose(arm, q).transform("tool") for q in way])}, poses[0])
    assert clip.reached.all()
    assert np.abs(np.diff(clip.q, axis=0)).max() < 0.15
    still = ik.solve({"tool": targets[0]}, many[0].pose)
    np.testing.assert_array_equal(still.pose.q, many.q[0])


def test_an_arm_out_of_reach_gives_the_least_squares_answer_and_says_so():
    """Beyond reach: UNREACHABLE, within the limits, and the answer stays when it is asked for again."""
    for kind in ("parallel", "offset"):
        arm = six(kind)
        ik = sy.IK(arm, sy.PoseGoal("tool"), "segments")
        for k in range(3):
            target = arm.random_pose(k).transform("tool")
            target[:3, 3] += 1.5 * unit(target[:3, 3])
            solution = ik.solve({"tool": target}, arm.random_pose(70 + k))
            assert solution.status is sy.Status.UNREACHABLE
            again = ik.solve({"tool": target}, solution.pose)
            assert np.abs(again.pose.q - solution.pose.q).max() < 1e-5
            assert not ik.problem.outside(solution.pose)


def test_a_limb_of_a_body_takes_its_swivel_from_limits_and_pole():
    """Seven degrees of freedom for six: what the limb can meet is met, and so is the pole where the elbow was."""
    body = sy.bundled("humanoid")
    start = body.rest_pose()
    plain = sy.IK(body, sy.PoseGoal("left_hand"), "segments")
    poled = sy.IK(body, [sy.PoseGoal("left_hand"), sy.PoleGoal("left_lower_arm")], "segments")
    met = 0
    for k in range(20):
        q, other = start.q.copy(), body.random_pose(k)
        for row in plain.moving:
            q[body.q_slice(row)] = other.q[body.q_slice(row)]
        pose = sy.Pose(body, q)
        target = {"left_hand": pose.transform("left_hand")}
        solution = plain.solve(target, start)
        assert solution.reached
        assert not plain.problem.outside(solution.pose)
        branches = plain.branches(target, start)
        np.testing.assert_allclose(branches.q[0], solution.pose.q, rtol=0, atol=1e-12)  # of another kernel
        towards = poled.solve({**target, "left_lower_arm": pose.position("left_lower_arm")}, start)
        assert towards.errors[0].position < 1e-9
        met += towards.reached
    assert met == 20  # the pole is where the elbow was, so the pose that made the target meets it


def test_structures_without_a_closed_form_are_refused_with_the_reason():
    """What was found, what is needed, what to use instead."""
    panda, body = sy.bundled("arm7"), sy.bundled("humanoid")
    follower = sy.Skeleton(
        [
            Joint("a", kind=Kind.HINGE, axis=(0, 0, 1)),
            Joint("b", "a", Kind.HINGE, at(0.5, 0, 0), axis=(0, 0, 1), mimic=Mimic("a", -0.5, 0.1)),
            Joint("tip", "b", rest=at(0.4, 0, 0)),
        ]
    )
    for skeleton, goals, solver in (
        (panda, sy.PositionGoal("tool"), "segments"),
        (seven("apart"), sy.PoseGoal("tool"), "segments"),
        (six("parallel"), sy.PositionGoal("tool"), "segments"),
        (six("parallel"), sy.PositionGoal("tool"), "hinges"),
        (body, [sy.PoseGoal("left_hand"), sy.PoseGoal("right_hand")], "segments"),
        (follower, sy.PositionGoal("tip"), "hinges"),
        (panda, sy.PoseGoal("tool"), "hinges"),
        (panda, sy.PoseGoal("tool"), "aim"),
        (body, [sy.AimGoal("head"), sy.AimGoal("neck")], sy.Aim(shares=(1, 1))),
    ):
        name = solver if isinstance(solver, str) else solver.name
        with pytest.raises(sy.errors.UnsupportedError, match=name):
            sy.IK(skeleton, goals, solver)
    with pytest.raises(sy.errors.UnsupportedError, match="lists no branches"):
        sy.IK(panda, sy.PositionGoal("tool"), "lm").branches()
    for bad in (
        {"shares": ()},
        {"shares": (0.0, 1.0)},
        {"up": (0, 0, 0)},
        {"twist": 1.0},
        {"top": (1, 2)},
        {"top": (0, 0, 1)},
        {"up": (1.0, float("nan"), 0.0)},
    ):
        with pytest.raises(sy.InputError):
            sy.Aim(**bad)


@pytest.mark.parametrize("tilt", [1.1e-9, 3e-9, 1e-8, 2e-8, 1e-6, 1e-3, 1.0])
def test_axes_that_are_almost_parallel_meet_where_they_do(tilt):
    """What a file writes with eight digits is neither parallel nor a division by zero."""
    place, away = np.array((0.2, -0.1, 0.3)), np.array((1e-3, 0.0, 0.0))
    u, v = unit((0.3, 0.5, 1.0)), unit((0.3, 0.5, 1.0)) + tilt * unit((1.0, 1.0, -0.8))
    v = v / np.linalg.norm(v)
    for scale in (1e-6, 1.0, 1e6):
        met = meet(u, scale * (place - 0.4 * u), v, scale * (place + 0.3 * v), scale)
        assert met is not None
        # rounding of the places moves lines at this angle apart along each other
        assert np.linalg.norm(met - scale * place) < 1e-15 / tilt * scale
        assert meet(u, scale * (place - 0.4 * u), v, scale * (place + np.cross(u, v) / tilt + away), scale) is None
    assert meet(u, place, u, place + 0.1 * u, 1.0) is None


@pytest.mark.parametrize("joints", [6, 7])
def test_arms_with_axes_that_are_almost_parallel_are_taken_or_refused(joints):
    rng = np.random.default_rng(joints)
    for _ in range(80):
        directions = np.repeat(rng.normal(size=(1, 3)), joints, axis=0)
        directions += 10.0 ** rng.uniform(-10.0, -7.0, (joints, 1)) * rng.normal(size=(joints, 3))
        places = rng.normal(size=(joints, 3)) * rng.choice((0.0, 1.0), (joints, 1))
        arm = sy.Skeleton(
            [
                Joint(f"j{i}", f"j{i - 1}" if i else None, Kind.HINGE, at(*place), axis=unit(axis))
                for i, (axis, place) in enumerate(zip(directions, places, strict=True))
            ]
        )
        with suppress(sy.errors.UnsupportedError):
            sy.IK(arm, sy.PoseGoal(f"j{joints - 1}"), "segments")


@pytest.mark.parametrize("kind", ["parallel", "offset"])
def test_arms_of_six_hinges_on_what_does_not_move_reach_all_that_they_do_alone(kind):
    """A free root that is held stands before the arm's joints."""
    arm = six(kind)
    joints = [Joint("world", kind=Kind.FREE), *(replace(j, parent=j.parent or "world") for j in arm.joints)]
    ik = sy.IK(sy.Skeleton(joints), sy.PoseGoal("tool"), "segments", tolerance=(1e-8, 1e-8))
    for k in range(20 if compiled() else 3):
        pose = arm.random_pose(k)
        solution = ik.solve({"tool": pose.transform("tool")})
        assert solution.reached
        assert len(ik.branches({"tool": pose.transform("tool")})) > 0
        np.testing.assert_allclose(solution.pose.transform("tool"), pose.transform("tool"), atol=1e-7)


def test_an_arm_refuses_a_pole():
    with pytest.raises(sy.errors.UnsupportedError, match="a pole on an arm of hinges"):
        sy.IK(six("offset"), [sy.PoseGoal("tool"), sy.PoleGoal("j3", (1.0, 0.0, 0.0))], "segments")


@pytest.mark.parametrize("seed", range(8))
def test_branches_of_a_limb_come_nearest_first(seed):
    """An elbow that bends both ways: how far a branch is counts the turns of the balls too."""
    bone = np.eye(4)
    bone[0, 3] = 0.4
    limb = sy.Skeleton(
        [
            sy.Joint("shoulder", kind=Kind.BALL),
            sy.Joint("elbow", "shoulder", Kind.HINGE, bone, axis=(0, 0, 1), limit=sy.Interval(-2.5, 2.5)),
            sy.Joint("wrist", "elbow", Kind.BALL, bone),
        ]
    )
    start, there = limb.random_pose(seed), limb.random_pose(seed + 100)
    ik = sy.IK(limb, sy.PoseGoal("wrist"), "segments")
    target = {"wrist": there.transform("wrist")}
    branches = ik.branches(target, start)
    assert len(branches) == 2
    turns = [limb.q_slice(row) for row in (0, 2)]

    def away(q):
        cosines = [abs(q[part] @ start.q[part]) for part in turns]
        return np.sum((2.0 * np.arccos(np.minimum(cosines, 1.0))) ** 2) + (q[4] - start.q[4]) ** 2

    first, second = map(away, branches.q)
    assert first <= second
    np.testing.assert_allclose(ik.solve(target, start).q, branches.q[0], atol=1e-9)


def test_branches_of_a_target_that_cannot_be_used_are_refused_by_its_name():
    """The pole's, which comes second, as well as the hand's."""
    body = sy.bundled("humanoid")
    ik = sy.IK(body, [sy.PoseGoal("left_hand"), sy.PoleGoal("left_lower_arm", name="elbow")], "segments")
    hand, nowhere = body.rest_pose().transform("left_hand"), np.full(3, np.nan)
    with pytest.raises(sy.InputError, match="elbow"):
        ik.branches({"left_hand": hand, "elbow": nowhere})
    with pytest.raises(sy.InputError, match="left_hand"):
        ik.branches({"left_hand": hand * np.nan, "elbow": np.zeros(3)})
