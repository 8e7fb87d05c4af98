"""The kernel that follows targets that no pose meets: its bounded steps, its first level, and its edges."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

import synovia as sy
from synovia.retargeting.hands.follower import HandFollower, Moving


def _at(*place):
    """The transform of a place."""
    out = np.eye(4)
    out[:3, 3] = place
    return out


def _hand(limit=1.4):
    """A hand of three fingers of three hinges each, with its palm at the origin."""
    joints = [sy.Joint("palm", kind=sy.Kind.FIXED)]
    for finger, x in (("thumb", 0.05), ("index", 0.03), ("middle", 0.0)):
        parent = "palm"
        place, axis = ((x, 0.0, 0.02), (0, 0, 1)) if finger == "thumb" else ((x, 0.09, 0.0), (1, 0, 0))
        for k, length in enumerate((0.045, 0.03, 0.02)):
            joints.append(
                sy.Joint(
                    f"{finger}_{k + 1}", parent, kind=sy.Kind.HINGE, axis=axis if k == 0 else (1, 0, 0),
                    rest=_at(*place), limit=sy.Interval(-0.3, limit),
                )
            )  # fmt: skip
            parent, place = f"{finger}_{k + 1}", (0.0, length, 0.0)
        joints.append(sy.Joint(f"{finger}_tip", parent, kind=sy.Kind.FIXED, rest=_at(*place)))
    return sy.Skeleton(joints, name="right_hand_of_three")


@pytest.fixture(scope="module")
def follower():
    skeleton = _hand()
    return HandFollower(skeleton, Moving(sy.hand_of(skeleton).fingers), 30.0, None)


def _cost(follower, q, tips):
    return float(np.sum((follower.tips_at(q[None])[0][0] - tips) ** 2))


def _aims(follower, tips):
    trust = np.ones((len(tips), follower.count))
    ways = np.tile([0.0, 1.0, 0.0], (len(tips), follower.count, 1))
    table, weights = follower.table(tips, ways, trust)
    weights[:, follower.count :] = 0.0  # directions are off
    return table, weights


def test_a_frame_ends_where_bounded_least_squares_does(follower):
    skeleton, rng = follower.skeleton, np.random.default_rng(1)
    lower = np.array([skeleton.joints[row].limit.lower for row in follower.rows])
    upper = np.array([skeleton.joints[row].limit.upper for row in follower.rows])
    for _ in range(5):
        tips = follower.tips_at(np.array(skeleton.rest_q)[None])[0] + rng.normal(0.0, 0.06, (1, follower.count, 3))
        table, weights = _aims(follower, tips)
        q = follower.first(table, weights, np.array(skeleton.rest_q))
        values = q[: len(lower)]
        assert (values >= lower - 1e-12).all()
        assert (values <= upper + 1e-12).all()
        best = minimize(
            lambda x, tips=tips: _cost(follower, x, tips[0]), values, bounds=list(zip(lower, upper, strict=True)),
            method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-12},
        )  # fmt: skip
        assert _cost(follower, q, tips[0]) <= best.fun * 1.02 + 1e-6  # the pulls to rest and to the start cost a little


def test_the_first_level_holds_where_it_can_and_is_nearest_where_not(follower):
    skeleton = follower.skeleton
    rest = np.array(skeleton.rest_q)
    tips = follower.tips_at(rest[None])[0]
    table, weights = _aims(follower, tips)
    weights[0, 2 * follower.count] = follower.pinch_weight  # of the first pinch, whose tips meet
    assert follower.pinching(weights)[0].tolist() == [False, True, *[False] * (follower.count - 2)]
    q = follower.first(table, weights, rest)
    found = follower.tips_at(q[None])[0][0]
    goal = sy.RelativeGoal("index_tip", "thumb_tip", (0, 0, 0))
    known = sy.solve(skeleton, goal, sy.FullBody(), start=q)
    gap = float(np.linalg.norm(found[1] - found[0]))
    assert gap <= known.errors[0].position + 1e-6
    pulled = np.linalg.norm(found[2] - tips[0, 2])
    assert pulled < 1e-3  # the finger that does not pinch stays


def test_no_joint_moves_farther_in_a_frame_than_it_may():
    skeleton = _hand()
    follower = HandFollower(skeleton, Moving(sy.hand_of(skeleton).fingers), 30.0, 3.0)
    rng = np.random.default_rng(2)
    tips = follower.tips_at(np.array(skeleton.rest_q)[None])[0] + rng.normal(0.0, 0.05, (40, follower.count, 3))
    table, weights = _aims(follower, tips)
    q = follower.follow(table, weights, np.array(skeleton.rest_q))
    steps = np.abs(np.diff(np.vstack([skeleton.rest_q, q]), axis=0))
    assert steps.max() <= 3.0 / 30.0 + 1e-9


def test_goals_of_no_weight_do_nothing(follower):
    rest = np.array(follower.skeleton.rest_q)
    table, weights = _aims(follower, np.full((3, follower.count, 3), 5.0))
    weights[:] = 0.0
    q = follower.follow(table, weights, rest)
    np.testing.assert_allclose(q, np.tile(rest, (3, 1)), atol=1e-6)


@pytest.mark.parametrize("place", [0.0, 1e-12, 5.0], ids=["at the palm", "beside the palm", "far out of reach"])
def test_targets_at_edges_give_poses_within_limits(follower, place):
    skeleton = follower.skeleton
    table, weights = _aims(follower, np.full((4, follower.count, 3), place))
    q = follower.follow(table, weights, np.array(skeleton.rest_q))
    assert np.isfinite(q).all()
    assert all(sy.Pose(skeleton, row) is not None for row in q)
    lower = np.array([skeleton.joints[row].limit.lower for row in follower.rows])
    assert (q >= lower - 1e-12).all()


def test_a_linear_problem_is_solved_in_one_step():
    """Slides are linear in their values, so that scipy's bounded least squares has the answer."""
    joints = [sy.Joint("palm", kind=sy.Kind.FIXED)]
    for finger, y in (("thumb", 0.0), ("index", 0.1)):
        one, two = sy.Interval(-0.1, 0.1), sy.Interval(0.0, 0.05)
        slide = sy.Kind.SLIDE
        joints.append(sy.Joint(f"{finger}_1", "palm", kind=slide, axis=(1, 0, 0), rest=_at(0.0, y, 0.0), limit=one))
        joints.append(
            sy.Joint(f"{finger}_2", f"{finger}_1", kind=slide, axis=(1, 1, 0), rest=_at(0.0, 0.02, 0.0), limit=two)
        )
        joints.append(sy.Joint(f"{finger}_tip", f"{finger}_2", kind=sy.Kind.FIXED, rest=_at(0, 0.1, 0)))
    skeleton = sy.Skeleton(joints, name="gripper")
    fingers = sy.hand_of(skeleton).fingers
    follower = HandFollower(skeleton, Moving(fingers), 1.0, 1e6)
    rest = np.array(skeleton.rest_q)
    start = follower.tips_at(rest[None])[0]
    tips = start + np.array([0.09, 0.02, 0.0])
    table, weights = _aims(follower, tips)
    q = follower.first(table, weights, rest)
    J = np.stack([[1.0, 0.0, 0.0], np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)], axis=1)
    own = lsq_linear(J, np.array([0.09, 0.02, 0.0]), bounds=([-0.1, 0.0], [0.1, 0.05])).x
    np.testing.assert_allclose(q, np.tile(own, 2), atol=2e-4)
