"""The largest move of joints in one solve: numbers by joint, velocities of the model, starts outside the limits."""

import math

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError, UnknownNameError
from synovia.ik.status import Status
from synovia.model import Joint, Kind, Mimic
from synovia.model.geometry import rigid, rotation_between

LIMITS = {"rail": (-2.0, 2.0), "arm": (-1.5, 1.5), "grip": (-1.0, 1.0)}


def machine():
    """Return a rail, a hinge with a velocity, a ball, and a hinge that a second one follows twice as far."""
    ball = sy.SwingTwist(x=(1.2, 1.0), y=(0.8, 1.2), twist=(-1.0, 1.0))
    return sy.Skeleton(
        [
            Joint("base"),
            Joint("rail", "base", Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(*LIMITS["rail"]), velocity=0.5),
            Joint("arm", "rail", Kind.HINGE, rigid((0, 0, 1)), (0, 1, 0), sy.Interval(*LIMITS["arm"]), velocity=3.0),
            Joint("ball", "arm", Kind.BALL, rigid((0, 0, 2)), limit=ball),
            Joint("grip", "ball", Kind.HINGE, rigid((0, 0, 1.5)), (1, 0, 0), sy.Interval(*LIMITS["grip"])),
            Joint("finger", "grip", Kind.HINGE, rigid((0, 0, 1)), (1, 0, 0), mimic=Mimic("grip", -2.0, 0.1)),
            Joint("tip", "finger", rest=rigid((0, 0, 1))),
        ]
    )


BODY = machine()


def moves(body, before, after):
    """Return how far each joint has moved, radians or length units."""
    out = {}
    for name in body.joint_names:
        part = body.q_slice(name)
        a, b = before[part], after[part]
        if len(a) == 4:
            out[name] = float(np.linalg.norm(rotation_between(a[None], b[None])))
        elif len(a) == 1:
            out[name] = float(abs(b - a)[0])
    return out


def solver(largest_move):
    return sy.FullBody(attempts=1, largest_move=largest_move)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "most",
    [
        {"arm": 0.05},
        {"rail": 0.2, "ball": 0.1},
        {"rail": 0.0, "arm": 0.02, "ball": 0.03, "grip": 0.5},
        {"finger": 0.04},
        {"finger": 10.0, "grip": 0.03},
    ],
)
def test_each_joint_has_a_largest_move_of_its_own(seed, most):
    ik = sy.IK(BODY, [sy.PoseGoal("tip"), sy.RestGoal()], solver(most))
    start, target = BODY.random_pose(seed), BODY.random_pose(seed + 50).transform("tip")
    answer = ik.solve(target, start)
    moved = moves(BODY, start.q, answer.q)
    assert all(moved[name] <= value + 1e-9 for name, value in most.items())
    free = [name for name in ("rail", "arm", "ball") if name not in most]
    assert not free or max(moved[name] for name in free) > 1e-3  # the others go as far as they like
    many = ik.solve_many(np.array([target, target]), start)
    np.testing.assert_array_equal(many.q[1], answer.q)
    clip = ik.track(np.repeat(target[None], 5, 0), start)
    before = start.q
    for q in clip.q:
        moved = moves(BODY, before, q)
        assert all(moved[name] <= value + 1e-9 for name, value in most.items())
        before = q


@pytest.mark.compiled
def test_one_number_for_all_holds_for_mimic_joints_too():
    ik = sy.IK(BODY, sy.PoseGoal("tip"), solver(0.05))
    for seed in range(5):
        start = BODY.random_pose(seed)
        answer = ik.solve(BODY.random_pose(seed + 50).transform("tip"), start)
        moved = moves(BODY, start.q, answer.q)
        assert moved["rail"] <= 0.05 * ik.reach + 1e-9
        assert max(moved[name] for name in ("arm", "ball", "grip", "finger")) <= 0.05 + 1e-9


@pytest.mark.compiled
def test_the_velocities_of_a_model_become_largest_moves():
    assert BODY.moves_in(0.01) == pytest.approx({"rail": 0.005, "arm": 0.03})
    twins = sy.Skeleton([Joint("a"), *(Joint("b", 0, Kind.HINGE, axis=(1, 0, 0), velocity=k) for k in (1.0, 2.0))])
    assert twins.moves_in(0.5) == {1: 0.5, 2: 1.0}
    for bad in (0.0, -1.0, math.nan, "a"):
        with pytest.raises(InputError, match="seconds"):
            BODY.moves_in(bad)
    ik = sy.IK(BODY, sy.PoseGoal("tip"), solver(BODY.moves_in(0.01)))
    moved = moves(BODY, BODY.rest_q, ik.solve(BODY.random_pose(1).transform("tip")).q)
    assert moved["rail"] <= 0.005 + 1e-9
    assert moved["arm"] <= 0.03 + 1e-9
    assert not solver({}).bounds_motion  # a model without velocities
    assert sy.FullBody(largest_move={}).attempts > 1


@pytest.mark.compiled
@pytest.mark.parametrize("most", [0.1, {"arm": 0.1}, {"arm": 0.1, "ball": 0.1, "rail": 5.0}])
@pytest.mark.parametrize(("outside", "allowed"), [(0.04, True), (0.1, True), (0.11, False), (1.0, False)])
def test_a_start_outside_its_limits_moves_no_farther_or_is_refused(most, outside, allowed):
    """What the limits move it is part of its move."""
    ik = sy.IK(BODY, sy.PoseGoal("tip"), solver(most))
    target = BODY.random_pose(1).transform("tip")
    q = BODY.rest_q.copy()
    at = BODY.q_slice("arm")
    q[at] = LIMITS["arm"][1] + outside
    calls = (
        lambda: ik.solve(target, q),
        lambda: ik.solve_many(target[None], q)[0],
        lambda: ik.solve_many(np.array([target, target]), [BODY.rest_q, q])[1],
    )
    if allowed:
        for call in calls:
            answer = call()
            assert answer.start_clamped == ("arm",)
            assert moves(BODY, q, answer.q)["arm"] <= 0.1 + 1e-9
        return
    for call in (*calls, lambda: ik.track(target[None], q)):
        with pytest.raises(InputError, match=r"start of joint 'arm': .*largest_move"):
            call()
    with pytest.raises(InputError, match=r"^starts\[1\]: start of joint 'arm'"):
        ik.solve_many(np.array([target, target]), [BODY.rest_q, q])
    some = ik.solve_many(np.array([target, target]), [BODY.rest_q, q], on_error="skip")
    assert (some.status == Status.INVALID).tolist() == [False, True]
    assert "'arm'" in some[1].explain()[1]


@pytest.mark.compiled
def test_a_ball_outside_its_limit_and_joints_without_bounds():
    ik = sy.IK(BODY, sy.PoseGoal("tip"), solver({"ball": 0.1}))
    target = BODY.random_pose(1).transform("tip")
    q = BODY.rest_q.copy()
    q[BODY.q_slice("ball")] = sy.Rotation.from_rotvec((1.9, 0, 0)).as_quat()
    with pytest.raises(InputError, match="start of joint 'ball'"):
        ik.solve(target, q)
    q = BODY.rest_q.copy()
    q[BODY.q_slice("arm")] = 3.0  # without a bound it may come from anywhere
    assert ik.solve(target, q).start_clamped == ("arm",)


def test_settings_compare_print_and_change():
    most = {"arm": 0.1, 2: 0.2}
    one = solver(most)
    most["arm"] = 9.0
    assert one == solver({"arm": 0.1, 2: 0.2})
    assert hash(one) == hash(solver({"arm": 0.1, 2: 0.2}))
    assert one.replace(max_steps=9).largest_move == one.largest_move
    assert "'arm', 0.1" in repr(one)
    assert not one.for_diagnosis().bounds_motion
    assert one.reasons([]) == ["No joint moves more than its largest_move in one solve."]


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "fast", True, {"arm": -1.0}, {"arm": "a"}, {"arm": None}])
def test_moves_that_mean_nothing_are_refused(bad):
    with pytest.raises(InputError, match=r"largest_move.* is out of range"):
        solver(bad)


def test_joints_of_moves_exist_and_restarts_are_refused():
    with pytest.raises(UnknownNameError, match="no joint named 'arn'"):
        sy.IK(BODY, sy.PoseGoal("tip"), solver({"arn": 0.1}))
    with pytest.raises(InputError, match="attempts=1"):
        sy.FullBody(largest_move={"arm": 0.1})
