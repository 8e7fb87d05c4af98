"""Sizes, targets and limits at the ends of what numbers hold: no NaN, no false REACHED, no limit broken."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import oracle
import random_problems
import synovia as sy
from synovia.model import Joint, Kind

EVERY = sorted(sy.solvers)
GENERAL = [name for name in EVERY if sy.solvers[name].restrict is sy.Solver.restrict]
BLOCKS, BLOCK = 8, 12  # random bodies with goals, and problems of each; CI solves thousands more (benchmarks/soak.py)


@pytest.mark.compiled
@pytest.mark.parametrize("solver", EVERY)
def test_every_goal_at_every_size_is_judged_alike_from_outside(solver, monkeypatch):
    """Random goals of all kinds, models from 1e-12 to 1e12 of their size, degenerate limits; judged in plain NumPy."""
    monkeypatch.setattr(random_problems, "BLOCK", BLOCK)
    known = [("bundled", sy.bundled(name)) for name in ("arm7", "humanoid")] + [("odd", random_problems.odd())]
    for k in range(BLOCKS):
        case = random_problems.make_wide_case(k, 5, known, [solver])
        broken = random_problems.check(case, case.ik.solve_many(case.targets, case.starts))
        assert not {what: rows.tolist() for what, rows in broken.items() if len(rows)}, (k, case.model, case.ik.goals)


def test_targets_and_sizes_whose_squares_overflow_are_refused():
    """They were REACHED with an error of NaN."""
    chain = sy.Skeleton.chain(1e9 * np.array([(0, 0, 0), (0, 0, 1), (0, 1, 2), (0, 0, 3)]))
    with pytest.raises(sy.InputError, match=r"at most 1e\+15"):
        sy.DistanceGoal("joint3", point=(0, 1e155, 0), minimum=1e8, maximum=1e9)
    for goal in (sy.PositionGoal("joint3"), sy.DistanceGoal("joint3", point=(0, 0, 0), maximum=1e9)):
        ik = sy.IK(chain, goal)
        assert ik.solve({"joint3": np.array([6e14, -6e14, 5e14])}).status is not sy.Status.REACHED  # 9.8e14 away
        for far in (1e155, 2e15, -3e300):
            with pytest.raises(sy.InputError, match=r"within 1e\+15 length units"):
                ik.solve({"joint3": np.array([0.0, far, 0.0])})
    with pytest.raises(sy.InputError, match=r"at most 1e\+15"):
        sy.Skeleton.chain(1e77 * np.array([(0, 0, 0), (0, 0, 1), (0, 1, 2)]))
    with pytest.raises(sy.InputError, match="com: expected numbers"):
        Joint("a", com=(1e155, 0, 0))


def test_a_body_too_small_to_square_is_refused():
    """Its reach underflowed, and everything was REACHED."""
    chain = sy.Skeleton.chain(1e-170 * np.array([(0, 0, 0), (0, 0, 1), (0, 1, 2)]))
    with pytest.raises(sy.InputError, match="too close together"):
        sy.IK(chain, sy.PositionGoal("joint2"))


def test_starts_beyond_all_sizes_are_refused():
    """By the compiled check and by the long way."""
    rail = sy.Skeleton([Joint("rail", kind=Kind.SLIDE, axis=(1, 0, 0)), Joint("tip", "rail")])
    for start in (np.array([1e200]), [1e200], np.array([-2e15])):
        with pytest.raises(sy.InputError, match=r"at most 1e\+15"):
            sy.IK(rail, sy.PositionGoal("tip", (1, 0, 0))).solve(start=start)


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e200, 5e-324])
def test_directions_of_any_length_keep_their_direction(size):
    """An axis of 1e300 became that of a hinge about z."""
    hinge = Joint("a", kind=Kind.HINGE, axis=(size, 0, 0))
    np.testing.assert_array_equal(hinge.axis, (1, 0, 0))
    limit = sy.SwingTwist.about((0, 0, size), x=(1, 1), y=(1, 1), x_axis=(0, size, 0))
    np.testing.assert_allclose(np.array(limit.frame)[:, 0], (0, 1, 0))


def test_limits_that_no_value_has_are_none():
    """The largest number that a file can hold stands for infinity."""
    rail = sy.Skeleton([Joint("rail", kind=Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(-sys.float_info.max, 3.0))])
    assert rail.tables.limits[0, :2].tolist() == [-math.inf, 3.0]


def gantry(travel, link=0.5):
    """Return an arm of three links on two crossed rails."""
    T = np.eye(4)
    T[0, 3] = link
    along = None if travel is None else sy.Interval(-travel, travel)
    return sy.Skeleton(
        [
            Joint("x", kind=Kind.SLIDE, axis=(1, 0, 0), limit=along),
            Joint("y", "x", Kind.SLIDE, axis=(0, 1, 0), limit=along),
            Joint("turn", "y", Kind.HINGE, axis=(0, 0, 1)),
            Joint("elbow", "turn", Kind.HINGE, T, axis=(0, 1, 0), limit=sy.Interval(-2, 2)),
            Joint("tip", "elbow", rest=T),
        ]
    )


@pytest.mark.parametrize(("travel", "reach"), [(0.1, 1.4), (0.5, 3.0), (999999.0, 3.0), (None, 3.0)])
def test_a_rail_counts_up_to_the_links_that_it_carries(travel, reach):
    """A rail of 2,000 km made the default tolerance 200 m."""
    ik = sy.IK(gantry(travel), sy.PositionGoal("tip"))
    assert ik.reach == pytest.approx(reach)
    assert ik.tolerance[0] == pytest.approx(1e-4 * reach)


def test_rails_without_links_count_as_the_shortest():
    """Where nothing but rails moves the goal, their own ranges are the measure; without any, the skeleton's size."""

    def rails(*ranges):
        joints = [
            Joint(f"r{i}", f"r{i - 1}" if i else None, Kind.SLIDE, axis=np.eye(3)[i], limit=r and sy.Interval(0, r))
            for i, r in enumerate(ranges)
        ]
        return sy.IK(sy.Skeleton(joints), sy.PositionGoal(f"r{len(ranges) - 1}")).reach

    assert rails(0.3, 1e6, None) == pytest.approx(0.9)
    assert rails(None, None) == 1.0


@pytest.mark.compiled
@pytest.mark.parametrize("travel", [999999.0, None])
@pytest.mark.parametrize("solver", [name for name in GENERAL if name != "transpose"])  # which creeps with slides
def test_goals_along_a_long_rail_are_reached(solver, travel):
    """Far away, and to the tolerance that the arm alone would have."""
    ik = sy.IK(gantry(travel), sy.PositionGoal("tip"), solver)
    for target in ((4.0, 0.2, 0.3), (-300.0, 200.0, 0.4), (0.6, -7.0, -0.2)):
        solution = ik.solve({"tip": np.array(target)})
        assert solution.reached
        assert np.linalg.norm(solution.pose.position("tip") - target) < 3.1e-4


def test_a_proof_counts_the_whole_rail():
    """The reach counts a part of it; a target at its end is not called unreachable."""
    ik = sy.IK(gantry(50.0), sy.PositionGoal("tip"), "lm")
    for x, proved in ((49.0, False), (50.5, False), (120.0, True)):
        assert (ik.solve({"tip": np.array([x, 0.0, 0.1])}).status is sy.Status.UNREACHABLE) == proved


HALVES = (0.0, 1e-9, 1e-6, 0.3, 3.0, math.pi - 1e-9, math.pi)


@pytest.mark.parametrize("twist", [(0.0, 0.0), (-1e-9, 1e-9), (-0.5, 1.0), (math.pi, math.pi), (-math.pi, math.pi)])
def test_what_is_brought_into_a_degenerate_limit_is_inside_by_any_measure(twist):
    """Half-angles of nothing to half a turn, near which the twist hangs on the last bits of a quaternion.

    Judged in long double, by the description of the limit alone.
    """
    rng = np.random.default_rng(3)
    for k in range(12):
        frame = oracle.turn_matrix(rng.normal(size=4))
        x, y = rng.choice(HALVES, size=(2, 2)).tolist()
        if k % 3 == 0:
            x, y = (math.pi, math.pi - 1e-9), [(math.pi, math.pi), (1e-9, 0.0)][k % 2]
        limit = sy.SwingTwist(x=x, y=y, twist=twist, frame=frame)
        ball = sy.Skeleton([Joint("ball", kind=Kind.BALL, limit=limit), Joint("tip", "ball")])
        given = rng.normal(size=(40, 4))
        given[::2, 2:] *= 10.0 ** rng.uniform(-12, -3, size=(20, 1))  # about half a turn of swing
        given[:, :3] = given[:, :3] @ frame.T
        given /= np.linalg.norm(given, axis=1, keepdims=True)
        inside = np.concatenate([sy.Pose(ball, q).inside for q in given])
        assert oracle.beyond_limits(ball, inside).max() <= 1e-9


def three_balls(*limits):
    """Return a chain of balls, a unit apart, and its tip."""
    up = np.eye(4)
    up[2, 3] = 1.0
    above = [None, *(f"j{i}" for i in range(len(limits)))]
    joints = [
        Joint(f"j{i}", above[i], Kind.BALL, up if i else np.eye(4), limit=limit) for i, limit in enumerate(limits)
    ]
    return sy.Skeleton([*joints, Joint("tip", above[-1], rest=up)])


@pytest.mark.compiled
def test_a_bound_that_turns_away_holds_no_joint():
    """Half of the swings had no end and the others little room: a ball was held at a bound at infinity."""
    body = three_balls(
        sy.SwingTwist(x=(1.5, math.pi), y=(math.pi, 0.0)),
        sy.SwingTwist(x=(math.pi, math.pi), y=(0.0, 0.3), twist=(-0.5, 1.0)),
        sy.SwingTwist(x=(0.3, 0.3), y=(math.pi, 0.3), twist=(0.0, 0.0)),
    )
    targets = np.random.default_rng(0).normal(size=(60, 3))
    targets *= 4.0 / np.linalg.norm(targets, axis=1, keepdims=True)
    answers = sy.IK(body, sy.PositionGoal("tip"), sy.FullBody(attempts=8)).solve_many({"tip": targets})
    assert np.isfinite(answers.q).all()
    assert np.isfinite(answers.errors).all()
    assert (answers.status == sy.Status.UNREACHABLE).all()


LOSES = """
import numpy as np, synovia as sy
from synovia.kernels.compiler.jit import algorithm, perform
from synovia.kernels.hierarchy import full_body
from synovia.kernels.jacobian import levenberg

for name, module in ("lm", levenberg), ("full-body", full_body):
    right = module.SEARCH.attempt
    for broken in 1, 9:
        calls = []

        def attempt(problem, work, targets, q):
            calls.append(1)
            taken, cost = perform(right, problem, work, targets, q)
            if len(calls) <= broken:
                q[:], cost = np.nan, np.nan
            return taken, cost

        module.SEARCH = module.SEARCH._replace(attempt=algorithm(attempt))
        ik = sy.IK(sy.bundled("humanoid"), sy.PositionGoal("left_hand"), sy.solvers[name](attempts=2, max_steps=5))
        solution = ik.solve({"left_hand": np.array([-0.1, 0.9, -0.1])})
        assert calls
        print(name, broken, np.isfinite(solution.pose.q).all(), np.isfinite(solution.errors).all())
"""


def test_an_attempt_that_ends_in_no_number_is_thrown_away():
    """Whatever an algorithm may do, with kernels as plain Python, where one can be replaced."""
    told = subprocess.run(
        [sys.executable, "-c", LOSES],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert told == [f"{solver} {broken} True True" for solver in ("lm", "full-body") for broken in (1, 9)]


@pytest.mark.compiled
def test_aim_stays_inside_degenerate_limits():
    """The allowed rotation that points nearest may lie at half a turn of swing, where a twist is hard to tell."""
    rng = np.random.default_rng(1)
    for x, y, twist in [
        ((0.001, 0.0), (math.pi, 0.0), (1.0, 1.0)),
        ((0.0, math.pi), (1e-6, 0.001), (-0.5, 1.0)),
        ((0.0, 1e-9), (0.0, math.pi), (0.0, 0.0)),
    ]:
        limit = sy.SwingTwist(x=x, y=y, twist=twist, frame=oracle.turn_matrix(rng.normal(size=4)))
        ball = sy.Skeleton([Joint("ball", kind=Kind.BALL, limit=limit), Joint("tip", "ball")])
        ik = sy.IK(ball, sy.AimGoal("ball", axis=rng.normal(size=3)), "aim")
        answers = ik.solve_many({"ball": rng.normal(size=(300, 3))})
        assert oracle.beyond_limits(ball, answers.q).max() <= 1e-9


def test_the_frame_of_a_limit_is_what_the_solvers_use():
    """Rounded to six digits it is not a rotation; solvers and limit now hold the nearest one."""
    exact = sy.Rotation.from_rotvec((0.3, -1.0, 0.8)).as_matrix()
    limit = sy.SwingTwist(x=(1, 1), y=(1, 1), frame=np.round(exact, 6))
    frame = np.array(limit.frame)
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(frame, exact, atol=2e-6)
