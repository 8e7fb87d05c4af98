"""The laws that every solver keeps, on every kind of body: a new row in the registry is a new row here."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import synovia as sy
from beyond import beyond_limits
from synovia.model import Joint, Kind, Mimic
from synovia.problem import reduce
from synovia.solver import Solver

EVERY = sorted(sy.solvers)
PROBLEMS = 3 if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else 12  # of each law, solver and body
FEW = min(PROBLEMS, 6)  # of laws that hold to the last bit, where one problem tells as much as many
LIMBS = ("left_hand", "right_hand", "left_foot", "right_foot", "head")


def at(x, y, z, rotvec=(0.0, 0.0, 0.0)):
    """Return a transform."""
    out = np.eye(4)
    out[:3, :3] = sy.Rotation.from_rotvec(rotvec).as_matrix()
    out[:3, 3] = x, y, z
    return out


def chain():
    """Return seven balls through points that lie on no line or plane."""
    points = np.cumsum(np.random.default_rng(5).normal(size=(8, 3)), axis=0)
    return sy.Skeleton.chain(points), ("joint7",)


def long_chain():
    """Return twelve balls on a line that bends."""
    points = np.cumsum(np.random.default_rng(8).normal(size=(13, 3)) + np.array([1.0, 0.0, 0.0]), axis=0)
    return sy.Skeleton.chain(points), ("joint12",)


def tree(arms):
    """Return a spine of balls with so many driven arms, and one branch that nothing drives."""
    joints = [Joint("s0", kind=Kind.BALL, rest=at(0.3, -0.2, 0.1, (0.2, 0.4, 0.1)))]
    joints += [Joint(f"s{i}", f"s{i - 1}", Kind.BALL, at(0, 0, 0.4, (0.1, 0.0, 0.2))) for i in (1, 2)]
    for a in range(arms + 1):
        turn = 2.0 * np.pi * a / (arms + 1)
        joints.append(Joint(f"a{a}", "s2", Kind.BALL, at(0.2 * np.cos(turn), 0.2 * np.sin(turn), 0.1)))
        joints.append(Joint(f"b{a}", f"a{a}", Kind.BALL, at(0.5 * np.cos(turn), 0.5 * np.sin(turn), 0.2)))
        joints.append(Joint(f"end{a}", f"b{a}", Kind.FIXED, at(0.4 * np.cos(turn), 0.4 * np.sin(turn), -0.1)))
    return sy.Skeleton(joints), tuple(f"end{a}" for a in range(arms))


def mixed():
    """Return a slide, hinges of which one follows another, and a ball with a limit."""
    return sy.Skeleton(
        [
            Joint("rail", kind=Kind.SLIDE, axis=(1.0, 0.2, 0.0), rest=at(0.1, 0.2, 0.3), limit=sy.Interval(-0.4, 0.5)),
            Joint("turret", "rail", Kind.HINGE, at(0, 0, 0.3), axis=(0.1, 0.0, 1.0)),
            Joint("elbow", "turret", Kind.HINGE, at(0.5, 0, 0), axis=(0, 1, 0), limit=sy.Interval(-2.0, 2.0)),
            Joint("wrist", "elbow", Kind.HINGE, at(0.4, 0, 0), axis=(0, 1, 0), mimic=Mimic("elbow", -0.5, 0.1)),
            Joint(
                "palm",
                "wrist",
                Kind.BALL,
                at(0.2, 0, 0),
                limit=sy.SwingTwist(x=(0.8, 1.0), y=(0.6, 0.9), twist=(-1, 1)),
            ),
            Joint("tip", "palm", Kind.FIXED, at(0.1, 0.05, 0.2)),
        ]
    ), ("tip",)


def limb():
    """Return a shoulder, an elbow and a wrist with limits on a spine, of which the limb alone moves for two-bone."""
    swing = sy.SwingTwist(x=(2.4, 2.6), y=(2.2, 2.5), twist=(-3.0, 3.0))
    return sy.Skeleton(
        [
            Joint("spine", kind=Kind.BALL, rest=at(0.3, -0.2, 0.1, (0.2, 0.4, 0.1))),
            Joint("shoulder", "spine", Kind.BALL, at(0.1, 0.5, 0.0, (0.3, 0.1, -0.4)), limit=swing),
            Joint(
                "elbow", "shoulder", Kind.HINGE, at(0.4, 0.02, 0.0), axis=(0.1, 1, 0.2), limit=sy.Interval(-0.1, 2.6)
            ),
            Joint("wrist", "elbow", Kind.BALL, at(0.35, 0.0, 0.03)),
            Joint("tip", "wrist", Kind.FIXED, at(0.1, 0.0, 0.02)),
        ]
    ), ("wrist",)


def pan_and_tilt():
    """Return two hinges with limits, their axes skew."""
    return sy.Skeleton(
        [
            Joint("pan", kind=Kind.HINGE, axis=(0.1, 0.2, 1.0), rest=at(0.2, 0.1, 0.4), limit=sy.Interval(-2.5, 2.0)),
            Joint("tilt", "pan", Kind.HINGE, at(0.1, 0.0, 0.3), axis=(0.1, 1.0, 0.0), limit=sy.Interval(-1.5, 1.8)),
            Joint("tip", "tilt", Kind.FIXED, at(0.5, 0.1, 0.2)),
        ]
    ), ("tip",)


CLOSED = {
    "limb": ("two-bone", "segments"),
    "pan and tilt": ("hinges",),
}  # bodies for those alone that have a closed form of them
BODIES = {
    "limb": limb,
    "pan and tilt": pan_and_tilt,
    "chain": chain,
    "long chain": long_chain,
    "two ends": lambda: tree(2),
    "three ends": lambda: tree(3),
    "arm": lambda: (sy.bundled("arm7"), ("tool",)),
    "humanoid": lambda: (sy.bundled("humanoid"), LIMBS),
    "mixed": mixed,
}
BUILT = {name: build() for name, build in BODIES.items()}


def takes(solver, body):
    """Return whether a solver is made for a body: it says so itself."""
    if solver not in CLOSED.get(body, EVERY):
        return False
    skeleton, ends = BUILT[body]
    goals, method = goals_on(ends), settings(solver)
    rows = [[skeleton.index(end)] for end in ends]
    try:
        method.check(goals)
        method.restrict(reduce(skeleton, goals, rows), skeleton, goals, rows)
    except sy.errors.UnsupportedError:
        return False
    return True


def settings(solver, **given):
    """Return settings of a solver by name; closed forms have fewer of them."""
    kind = sy.solvers[solver]
    return kind(**{name: value for name, value in given.items() if hasattr(kind, name)})


def usual(solver):
    """Return settings as they come; few steps of steepest descent, whose rounding grows threefold with each."""
    return settings(solver, **({"max_steps": 10, "attempts": 1} if solver == "transpose" else {}))


def goals_on(ends):
    """Return a position goal on each end, the first with an offset."""
    return [sy.PositionGoal(end, offset=(0.02, 0.01, -0.03) if i == 0 else None) for i, end in enumerate(ends)]


def small(solver, body):
    """Return whether interpreted kernels solve it in a second or so."""
    if solver == "full-body":
        return False  # that has small tests of its own
    return body in ("limb", "pan and tilt", "mixed") or (body == "two ends" and solver in ("fabrik", "ccd", "lm"))


def solvers_on(*bodies):
    """Return every pair of a solver and one of these bodies that it is made for."""
    return pytest.mark.parametrize(
        ("solver", "body"),
        [
            pytest.param(s, b, id=f"{s}-{b}", marks=() if small(s, b) else pytest.mark.compiled)
            for s in EVERY
            for b in bodies
            if takes(s, b)
        ],
    )


solver_and_body = solvers_on(*BODIES)


def place(pose, goal):
    """Return where a pose has the point of a goal, by forward kinematics of the whole skeleton."""
    return (pose.transform(goal.joint) @ goal.offset)[:3, 3]


def targets_of(goals, pose):
    """Return targets that a pose meets."""
    return {goal.joint: place(pose, goal) for goal in goals}


def bones(pose):
    """Return the length of every bone whose joint does not slide."""
    s = pose.skeleton
    rows = [i for i, p in enumerate(s.parents) if p >= 0 and s.joints[i].kind not in (Kind.SLIDE, Kind.FREE)]
    return np.array([np.linalg.norm(pose.position(i) - pose.position(int(s.parents[i]))) for i in rows])


@cache
def moving(body, solver):
    """Return the rows of the joints that a solver moves."""
    skeleton, ends = BUILT[body]
    return sy.IK(skeleton, goals_on(ends), solver).moving


@cache
def reach(body):
    """Return how far a body reaches."""
    skeleton, ends = BUILT[body]
    return sy.IK(skeleton, goals_on(ends)).reach


def problems(body, count, first=0, solver="lm"):
    """Yield (goals, targets, start), none of them the rest pose; every third target is out of reach.

    The others are met by a pose that differs from the start in what the solver moves.
    """
    goals = goals_on(BUILT[body][1])
    for i in range(first, first + count):
        targets, start = problem(body, i, tuple(moving(body, solver)))
        yield goals, dict(targets), start


@cache
def problem(body, i, rows):
    """Return (targets, start) of a problem for solvers that move these joints."""
    skeleton, ends = BUILT[body]
    other, start = skeleton.random_pose(100 + i), skeleton.random_pose(200 + i)
    q = start.q.copy()
    for row in rows:
        q[skeleton.q_slice(row)] = other.q[skeleton.q_slice(row)]
    targets = targets_of(goals_on(ends), sy.Pose(skeleton, skeleton.follow(q)))
    if i % 3 == 2:
        targets[ends[0]] = targets[ends[0]] + np.array([2.0, -3.0, 2.5]) * reach(body)
    return targets, start


def assert_errors_are_those_of_the_pose(goals, targets, solution):
    """Errors are what forward kinematics of the whole skeleton measures; REACHED if and only if all are small."""
    for goal, error in zip(goals, solution.errors, strict=True):
        measured = np.linalg.norm(place(solution.pose, goal) - targets[goal.joint])
        assert abs(measured - error.position) < 1e-9 * solution.ik.reach
    assert solution.reached == all(e.position <= solution.ik.tolerance[0] for e in solution.errors)


def assert_limits_hold_and_bones_are_rigid(solution, lengths):
    """No value beyond its limit by more than 1e-9; no bone that stretches; checked by building the pose anew."""
    skeleton = solution.pose.skeleton
    assert beyond_limits(skeleton.tables, solution.pose.q) <= 1e-9
    np.testing.assert_allclose(bones(sy.Pose(skeleton, solution.pose.q)), lengths, rtol=1e-9, atol=1e-12)


@solver_and_body
def test_errors_status_limits_and_bones_of_an_answer_are_true(solver, body):
    """UNREACHABLE only for the targets that were moved out of reach; what a pose has is never called so."""
    skeleton, ends = BUILT[body]
    lengths = bones(skeleton.random_pose(3))
    ik = sy.IK(skeleton, goals_on(ends), settings(solver, attempts=3))
    for i, (goals, targets, start) in enumerate(problems(body, PROBLEMS, solver=solver)):
        solution = ik.solve(targets, start)
        assert_errors_are_those_of_the_pose(goals, targets, solution)
        assert_limits_hold_and_bones_are_rigid(solution, lengths)
        assert (solution.status is sy.Status.UNREACHABLE) == (i % 3 == 2)


def moved(skeleton, frame):
    """Return the skeleton with a fixed joint before its root."""
    joints = [Joint("before", rest=frame)]
    for i, joint in enumerate(skeleton.joints):
        parent = skeleton.parents[i]
        joints.append(replace(joint, parent="before" if parent < 0 else skeleton.joint_names[parent]))
    return sy.Skeleton(joints)


def scaled(skeleton, factor):
    """Return the skeleton in another unit, and its joint values as a function."""
    joints = []
    slides = np.ones(skeleton.nq)
    for i, joint in enumerate(skeleton.joints):
        rest = joint.rest.copy()
        rest[:3, 3] *= factor
        limit = joint.limit
        if joint.kind is Kind.SLIDE:
            limit = limit and sy.Interval(limit.lower * factor, limit.upper * factor)
            slides[skeleton.tables.ints[i, 2]] = factor
        parent = skeleton.parents[i]
        joints.append(
            replace(
                joint, rest=rest, limit=limit, com=joint.com * factor,
                parent=None if parent < 0 else skeleton.joint_names[parent],
            )
        )  # fmt: skip
    return sy.Skeleton(joints), slides


def same_turns(a, b):
    """Return the largest difference of two rows of q; quaternions may differ by their sign."""
    return np.minimum(np.abs(a - b), np.abs(a + b) if a.size else 0.0).max()


def batch(body, solver, first):
    """Return (goals, targets, starts) of the problems of one law, as arrays."""
    trials = list(problems(body, PROBLEMS, first=first, solver=solver))
    goals = trials[0][0]
    targets = {goal.joint: np.array([t[goal.joint] for _, t, _ in trials]) for goal in goals}
    return goals, targets, np.array([start.q for _, _, start in trials])


def missed_by(answers, unit=1.0):
    """Return the root of what solvers minimise, of each problem: of the sum of the squared distances."""
    return np.sqrt(((answers.errors[:, :, 0] / unit) ** 2).sum(axis=1))


def assert_same_outcomes(then, here, unit=1.0):
    """Compare answers that differ by rounding alone: what is reached, what is proved, how far a miss is off.

    Joint values may differ: along a flat valley, or after hundreds of steps, rounding leads to another pose as good. It
    may also choose between two minima, each within a hundredth of the reach of the best. ``MAX_STEPS`` claims nothing.
    Limits and tolerances hold.
    """
    first, second, reach = missed_by(here), missed_by(then, unit), here.ik.reach
    spent = np.array([answers.status == sy.Status.MAX_STEPS for answers in (then, here)])
    other = then.status != here.status
    assert (other & spent.any(axis=0)).mean() <= 0.1  # a method that creeps may or may not arrive before its last step
    told = ~(other & spent.any(axis=0))
    alike = told & (here.reached | (abs(first - second) <= 1e-6 * first + 1e-5 * reach))  # one and the same minimum
    for proof in (sy.Status.REACHED, sy.Status.UNREACHABLE):
        np.testing.assert_array_equal(then.status[told] == proof, here.status[told] == proof)
    np.testing.assert_array_equal(then.status[alike], here.status[alike])
    missed = told & ~here.reached
    np.testing.assert_allclose(second[missed], first[missed], rtol=0, atol=0.01 * reach)
    for answers in (then, here):
        assert beyond_limits(answers.ik.skeleton.tables, answers.q) <= 1e-9
        close = (answers.errors[:, :, 0] <= answers.ik.tolerance[0]).all(axis=1)
        np.testing.assert_array_equal(answers.reached, close)


def elsewhere(skeleton, goals, targets, starts):
    """Return a problem in a moved and turned world: nothing depends on its origin and its axes."""
    frame = at(3.0, -2.0, 1.5, (0.7, -1.9, 0.4))
    there = {joint: p @ frame[:3, :3].T + frame[:3, 3] for joint, p in targets.items()}
    return moved(skeleton, frame), goals, there, starts


def in_unit(factor, skeleton, goals, targets, starts):
    """Return a problem in another unit of length."""
    larger, slides = scaled(skeleton, factor)
    resized = [sy.PositionGoal(g.joint, offset=g.offset[:3, 3] * factor) for g in goals]
    return larger, resized, {joint: p * factor for joint, p in targets.items()}, starts * slides


@solver_and_body
def test_place_and_unit_of_the_world_and_the_order_of_goals_do_not_matter(solver, body):
    """A moved and turned world; metres, millimetres and kilometres; sums in another order: all differ by rounding."""
    skeleton, _ = BUILT[body]
    goals, targets, starts = batch(body, solver, 20)
    here = sy.IK(skeleton, goals, usual(solver)).solve_many(targets, starts)

    def assert_same_answers(skeleton, goals, targets, starts, unit=1.0):
        assert_same_outcomes(sy.IK(skeleton, goals, usual(solver)).solve_many(targets, starts), here, unit)

    assert_same_answers(*elsewhere(skeleton, goals, targets, starts))
    for factor in (1000.0, 0.001):
        assert_same_answers(*in_unit(factor, skeleton, goals, targets, starts), factor)
    if len(goals) > 1:
        assert_same_answers(skeleton, goals[::-1], targets, starts)


@pytest.mark.compiled  # threads and bits concern no line of a kernel
@solver_and_body
def test_batch_single_and_repeated_calls_give_the_same_bits(solver, body):
    """For 1, 2 and 5 threads, for one by one, and for a second time in another order."""
    skeleton, _ = BUILT[body]
    trials = list(problems(body, FEW, first=40, solver=solver))
    goals = trials[0][0]
    ik = sy.IK(skeleton, goals, settings(solver, attempts=4))
    targets = {goal.joint: np.array([t[goal.joint] for _, t, _ in trials]) for goal in goals}
    starts = np.array([start.q for _, _, start in trials])
    singles = [ik.solve(t, start) for _, t, start in trials]
    second = sy.IK(skeleton, goals, settings(solver, attempts=4))
    again = [second.solve(t, start) for _, t, start in trials[::-1]][::-1]
    for threads in (1, 2, 5):
        answers = ik.solve_many(targets, starts, threads=threads)
        for answer, single, second in zip(answers, singles, again, strict=True):
            np.testing.assert_array_equal(answer.pose.q, single.pose.q)
            np.testing.assert_array_equal(answer.pose.q, second.pose.q)
            assert answer.errors == single.errors == second.errors
            assert answer.status == single.status == second.status
            assert answer.steps == single.steps == second.steps


@solver_and_body
def test_the_best_pose_out_of_reach_is_near_the_optimum_and_stays(solver, body):
    """As near as many descents get, within five parts in a hundred; solving again from there does not move it."""
    skeleton, ends = BUILT[body]
    ik = sy.IK(skeleton, goals_on(ends), settings(solver))
    for i, (_, targets, start) in enumerate(problems(body, 9, solver=solver)):
        if i % 3 != 2:
            continue
        solution = ik.solve(targets, start)
        again = ik.solve(targets, solution.pose)
        assert same_turns(again.pose.q, solution.pose.q) < 1e-6
        assert again.status is solution.status is sy.Status.UNREACHABLE
        if ik.moving == moving(body, "lm"):  # the best of all joints is no measure for a limb
            assert squares(solution) < 1.1 * best_of_descents(body, i)


@cache
def best_of_descents(body, i):
    """Return the smallest sum of squares that Levenberg-Marquardt finds from five random poses."""
    skeleton, ends = BUILT[body]
    targets, _ = problem(body, i, tuple(moving(body, "lm")))
    oracle = sy.IK(skeleton, goals_on(ends), sy.LevenbergMarquardt())
    return min(squares(oracle.solve(targets, skeleton.random_pose(k))) for k in range(5))


def squares(solution):
    """Return what solvers minimise: the sum of the squared distances."""
    return sum(error.position**2 for error in solution.errors)


STRAIGHT = ((0.0, 0, 0), (1.0, 0, 0), (2.0, 0, 0))
HOLLOW = ((0.0, 0, 0), (10.0, 0, 0), (11.0, 0, 0), (12.0, 0, 0))  # reaches from 8 to 12


@pytest.mark.parametrize("solver", [s for s in EVERY if sy.solvers[s].restrict is Solver.restrict])
@pytest.mark.parametrize(
    ("points", "x", "missed"), [(STRAIGHT, -3.0, 1.0), (HOLLOW, -20.0, 8.0), (HOLLOW, 1.0, 7.0), (HOLLOW, 20.0, 8.0)]
)
def test_a_start_that_points_straight_away_is_no_answer(solver, points, x, missed):
    """No gradient leads away from there, yet it is the worst pose of all: out of reach, and in the hole behind it."""
    chain = sy.Skeleton.chain(points)
    ik = sy.IK(chain, sy.PositionGoal(f"joint{len(points) - 1}", (x, 0, 0)), solver)
    solution = ik.solve()
    assert solution.status is sy.Status.UNREACHABLE
    assert solution.errors[0].position == pytest.approx(missed, rel=1e-3)
    again = ik.solve(start=solution.pose)
    assert again.errors[0].position == pytest.approx(solution.errors[0].position, rel=1e-6)
    if solver not in ("fabrik", "ccd", "particles"):  # those creep along the hole's edge
        np.testing.assert_array_equal(again.pose.q, solution.pose.q)


@pytest.mark.parametrize("solver", [s for s in EVERY if sy.solvers[s].restrict is Solver.restrict])
def test_one_attempt_reaches_a_target_straight_behind(solver):
    """Without a restart: what stands still is nudged off its line."""
    chain = sy.Skeleton.chain(STRAIGHT)
    solution = sy.solve(chain, sy.PositionGoal("joint2", (-1.5, 0, 0)), sy.solvers[solver](attempts=1))
    assert solution.reached
    assert solution.attempts == 1
