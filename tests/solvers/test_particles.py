"""Particles: distance constraints in turn, then joint values; what its published form would do, and its traps."""

import numpy as np
import pytest

import synovia as sy
from synovia.model import Joint, Kind


def dynamics(points, target, rounds):
    """Return particles after rounds of Mueller et al. (2007), eq. 10-11: both ends pinned, inward and outward."""
    p = np.array(points, float)
    d = np.linalg.norm(np.diff(p, axis=0), axis=1)
    light = np.ones(len(p))
    light[[0, -1]] = 0.0
    p[-1] = target
    for _ in range(rounds):
        for bones in (range(len(d) - 1, -1, -1), range(len(d))):
            for i in bones:
                n = p[i + 1] - p[i]
                k = (np.linalg.norm(n) - d[i]) / np.linalg.norm(n) / max(light[i] + light[i + 1], 1e-300)
                p[i] += light[i] * k * n
                p[i + 1] -= light[i + 1] * k * n
    return p


def laid_out(particles, points):
    """Return a chain with the bones of ``points`` that points its bones as the particles lie, from joint to joint."""
    d = np.linalg.norm(np.diff(points, axis=0), axis=1)
    out = [np.array(points[0])]
    for i in range(len(d)):
        way = particles[i + 1] - out[-1]
        out.append(out[-1] + d[i] * way / np.linalg.norm(way))
    return np.array(out)


@pytest.mark.parametrize("rounds", [1, 4, 15])
def test_an_iteration_is_the_published_constraints_in_turn_and_then_the_turns_of_joints(rounds):
    """Positions after one and two iterations, on chains without limits."""
    for seed in range(5):
        points = np.cumsum(np.random.default_rng(seed).normal(size=(6, 3)), axis=0)
        chain = sy.Skeleton.chain(points)
        start, target = chain.random_pose(seed), chain.random_pose(seed + 9).positions[-1]
        wanted = start.positions
        for iterations in (1, 2):
            wanted = laid_out(dynamics(wanted, target, rounds), wanted)
            solver = sy.Particles(rounds=rounds, max_steps=iterations, attempts=1)
            solution = sy.solve(chain, sy.PositionGoal(5, target), solver, start, tolerance=(1e-12, 1e-3))
            np.testing.assert_allclose(solution.pose.positions, wanted, atol=1e-9)


def test_particles_in_one_place_divide_by_nothing():
    """Bones of length zero, and a target on the root."""
    chain = sy.Skeleton.chain([(0, 0, 0), (0, 0, 1), (0, 0, 1), (0, 0, 2), (0, 0, 3)])
    for target in ((0.0, 0.0, 0.0), (0.5, 0.5, 1.0)):
        solution = sy.solve(chain, sy.PositionGoal(4, target), sy.Particles(), chain.random_pose(2))
        assert np.isfinite(solution.pose.q).all()
    assert solution.reached


def test_the_tree_keeps_its_shape_and_its_limits():
    """Branches on one joint stay at their angles, and limits hold, because joint values are the answer."""
    body = sy.bundled("humanoid")
    ends = ("left_hand", "right_hand", "head")
    for seed in range(5):
        wanted = body.random_pose(seed)
        goals = [sy.PositionGoal(end, wanted.position(end)) for end in ends]
        solution = sy.solve(body, goals, sy.Particles(), body.random_pose(seed + 70))
        assert solution.reached
        np.testing.assert_allclose(solution.pose.q, sy.Pose(body, solution.pose.q).inside[0], atol=1e-9)


def test_rotation_goals_and_joints_that_slide():
    """A hand on a rail: the place by the slide and the balls, the rotation by the last ball."""

    def rest(x):
        out = np.eye(4)
        out[0, 3] = x
        return out

    body = sy.Skeleton(
        [
            Joint("rail", kind=Kind.SLIDE, axis=(0, 1, 0), limit=sy.Interval(-1.0, 1.0)),
            Joint("shoulder", "rail", Kind.BALL),
            Joint("elbow", "shoulder", Kind.BALL, rest(0.5)),
            Joint("hand", "elbow", Kind.BALL, rest(0.5)),
        ]
    )
    for seed in range(5):
        wanted = body.random_pose(seed).transform("hand")
        assert sy.solve(body, sy.PoseGoal("hand", transform=wanted), sy.Particles()).reached


def arm_with_slides(rng, kinds):
    """Return an arm of hinges and slides in this order, with random bones, axes and limits, and a tip."""
    joints, parent = [], None
    for i, kind in enumerate([*kinds, Kind.FIXED]):
        rest = np.eye(4)
        rest[:3, :3] = sy.Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
        rest[:3, 3] = rng.uniform(0.1, 0.5) * rest[:3, 2]
        ends = {Kind.HINGE: (-2.0, 2.5), Kind.SLIDE: (-0.2, 0.5)}
        moving = {} if kind is Kind.FIXED else {"axis": rng.normal(size=3), "limit": sy.Interval(*ends[kind])}
        joints.append(Joint(f"j{i}", parent, kind, rest, **moving))
        parent = f"j{i}"
    return sy.Skeleton(joints)


@pytest.mark.compiled
@pytest.mark.parametrize("solver", ["fabrik", "particles", "ccd"])
def test_arms_with_slides_reach(solver):
    """A slide moves its bones without a turn, so the places of joints do not tell how far; the goals do."""
    rng = np.random.default_rng(7)
    reached = []
    for hinges, slides in ((1, 2), (2, 1), (3, 1), (3, 2), (5, 1)):
        for _ in range(8):
            kinds = [Kind.SLIDE if k < slides else Kind.HINGE for k in rng.permutation(hinges + slides)]
            arm = arm_with_slides(rng, kinds)
            tip = arm.joint_names[-1]
            ik = sy.IK(arm, sy.PositionGoal(tip), solver)
            reached += [ik.solve({tip: arm.random_pose(seed).position(tip)}).reached for seed in range(3)]
    assert np.mean(reached) > 0.95


def test_rounds_are_a_whole_number():
    """Half a round means nothing."""
    with pytest.raises(sy.InputError, match="rounds is out of range"):
        sy.Particles(rounds=0)
    with pytest.raises(sy.InputError, match="whole number"):
        sy.Particles(rounds=1.5)


def arc(bones):
    """Return a chain of unit bones on an arc of two radians."""
    angles = 2.0 * np.arange(1, bones + 1) / bones
    return sy.Skeleton.chain(
        np.vstack([np.zeros(3), np.cumsum(np.column_stack([np.sin(angles), np.cos(angles), 0 * angles]), axis=0)])
    )


@pytest.mark.compiled
@pytest.mark.parametrize("bones", [50, 100])
def test_rounds_follow_the_length_of_the_chain(bones):
    """A pull spreads along a chain like heat: with a fixed number of rounds a hundred bones hardly move."""
    target = bones * np.array([1.0, 1.2, 0.3]) / 3.0
    solution = sy.solve(arc(bones), sy.PositionGoal(bones, target), sy.Particles())
    assert solution.reached
    assert solution.attempts == 1


@pytest.mark.compiled
def test_a_miss_that_says_no_step_helps_stays_when_it_is_asked_for_again():
    """Long chains with few rounds gain a little for a long time: until then the status is that the steps were spent."""
    for rounds, attempts in ((1, 50), (2, 5)):
        solver = sy.Particles(rounds=rounds, attempts=attempts)
        ik = sy.IK(arc(100), sy.PositionGoal(100, (100 / 3, 40.0, 10.0)), solver)
        solution = ik.solve()
        for _ in range(20):
            if solution.status is not sy.Status.MAX_STEPS:
                break
            assert solution.steps >= attempts * solver.max_steps
            solution = ik.solve(start=solution.pose)
        assert solution.status is sy.Status.STALLED
        assert ik.solve(start=solution.pose).errors[0].position == solution.errors[0].position
