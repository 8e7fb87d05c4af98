"""Derivatives of answers agree with central differences of answers that are solved again from the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import mechanisms
import synovia as sy
from answers_again import differences
from synovia.errors import InputError, UnsupportedError

TIGHT = (1e-12, 1e-12)
ARM = sy.bundled("arm7")
MAN = sy.bundled("humanoid")


def by_targets(ik: sy.IK, solution: sy.Solution, step: float) -> np.ndarray:
    """Return the derivative by the targets from central differences, extrapolated from two steps."""
    near, far = differences(ik, solution, step), differences(ik, solution, 3.0 * step)
    return (9.0 * near - far) / 8.0


def agree(ik: sy.IK, make: Callable[[int], sy.Solution], seeds: range, step: float, bar: float) -> int:
    """Check derivatives without a kink; return their number."""
    count = 0
    for seed in seeds:
        solution = make(seed)
        found = solution.derivative()
        if not found.kink:
            count += 1
            wanted = by_targets(ik, solution, step)
            assert np.abs(found - wanted).max() <= bar * np.abs(wanted).max(), (seed, solution)
    return count


@pytest.mark.parametrize("solver", ["lm", "full-body"])
@pytest.mark.parametrize("goal", [sy.PositionGoal, sy.PoseGoal])
def test_answers_that_reach(solver: str, goal: type[sy.Goal]) -> None:
    ik = sy.IK(ARM, goal("tool"), solver, tolerance=TIGHT)

    def make(seed: int) -> sy.Solution:
        T = ARM.random_pose(seed).transform("tool")
        return ik.solve({"tool": T if goal is sy.PoseGoal else T[:3, 3]}, start=ARM.random_pose(1000 + seed))

    assert agree(ik, make, range(8), 1e-5, 1e-5) >= 3


def test_misses_have_the_curvature_of_their_error() -> None:
    ik = sy.IK(ARM, sy.PositionGoal("tool"), "lm", tolerance=TIGHT)

    def make(seed: int) -> sy.Solution:
        return ik.solve(2.5 * ARM.random_pose(seed).position("tool"), start=ARM.random_pose(500 + seed))

    assert agree(ik, make, range(4), 1e-4, 2e-4) >= 2


@pytest.mark.parametrize("far", [1.3, 3.0])  # close misses, where the first steps of the solver matter, and far ones
def test_misses_turn_limited_balls_no_more_than_the_goals_need(far: float) -> None:
    ik = sy.IK(MAN, sy.PositionGoal("left_hand"), "lm", tolerance=TIGHT)
    count = 0
    for seed in range(12):
        target = MAN.random_pose(2 * seed).position("left_hand")
        solution = ik.solve(far * target, start=MAN.random_pose(2 * seed + 1))
        found = solution.derivative()
        if not solution.reached and not found.kink:
            count += 1
            wanted = differences(ik, solution, 1e-5)
            assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max(), seed
    assert count >= 3


def test_a_miss_near_the_seam_of_a_swing_limit_has_the_curvature_of_its_quadrant() -> None:
    ik = sy.IK(MAN, sy.PoseGoal("left_hand"), "lm", tolerance=TIGHT)
    T = MAN.random_pose(501078).transform("left_hand").copy()
    T[:3, 3] *= 1.3
    solution = ik.solve(T, start=MAN.random_pose(501079))
    found, wanted = solution.derivative(), differences(ik, solution, 1e-4)
    assert not found.kink  # the hand's swing is 2e-4 from the seam, and its half-angles there are 20 and 35 degrees
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_limits_of_balls_that_a_miss_presses_against_have_a_curvature() -> None:
    ik = sy.IK(MAN, sy.PoseGoal("left_hand"), "lm", tolerance=TIGHT)
    T = MAN.random_pose(500050).transform("left_hand").copy()
    T[:3, 3] *= 1.3
    solution = ik.solve(T, start=MAN.random_pose(500051))
    assert {"spine", "chest", "left_shoulder"} <= set(solution.active_limits)
    found, wanted = solution.derivative(), differences(ik, solution, 1e-4)
    assert not found.kink
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_limited_balls_and_a_free_root() -> None:
    ik = sy.IK(MAN, [sy.PositionGoal("left_hand"), sy.PositionGoal("right_hand")], tolerance=TIGHT, root="free")

    def make(seed: int) -> sy.Solution:
        pose = ik.skeleton.random_pose(seed)
        hands = {name: pose.position(name) for name in ("left_hand", "right_hand")}
        return ik.solve(hands, start=ik.skeleton.random_pose(500 + seed))

    assert agree(ik, make, range(3), 1e-5, 1e-5) >= 1


def test_loops_stay_closed() -> None:
    body = mechanisms.five_bar()
    ik = sy.IK(body, sy.PositionGoal("right_forearm"), tolerance=TIGHT)

    def make(seed: int) -> sy.Solution:
        return ik.solve(body.random_pose(seed).position("right_forearm"), start=body.random_pose(100 + seed))

    assert agree(ik, make, range(4), 1e-5, 1e-5) >= 2


def test_a_clearance_that_a_missed_goal_presses_against_is_kept() -> None:
    body = sy.with_shapes(ARM)
    world = sy.World([sy.Sphere(center=(0.3, 0.0, 0.4), radius=0.15)])
    goals = [sy.PoseGoal("tool"), sy.ClearanceGoal(0.02, world=world)]
    ik = sy.IK(body, goals, "full-body", tolerance=(1e-9, 1e-9))
    T = ARM.random_pose(2).transform("tool").copy()
    T[:3, 3] = (0.3, 0.05, 0.43)
    solution = ik.solve({"tool": T}, start=ARM.random_pose(102))
    assert not solution.reached
    assert not solution.derivative().kink
    wanted = by_targets(ik, solution, 1e-3)
    assert np.abs(solution.derivative() - wanted).max() <= 0.03 * np.abs(wanted).max()


def test_a_lower_level_moves_only_where_the_upper_one_stays() -> None:
    goals = [sy.PositionGoal("tool", priority=0), sy.PositionGoal("joint4", priority=1)]
    ik = sy.IK(ARM, goals, "full-body", tolerance=TIGHT)
    pose = ARM.random_pose(3)
    targets = {"tool": pose.position("tool"), "joint4": 1.5 * pose.position("joint4")}
    solution = ik.solve(targets, start=ARM.random_pose(103))
    found = solution.derivative()
    J = solution.pose.jacobian("tool")[:3]
    assert not found.kink
    assert J @ np.asarray(found) == pytest.approx(np.eye(6)[:3], abs=1e-6)


def test_weights() -> None:
    def ik(weight: float) -> sy.IK:
        goals = [sy.PositionGoal("tool", (0.9, 0.2, 0.9)), sy.PositionGoal("joint4", (-0.3, 0.1, 0.5), weight=weight)]
        return sy.IK(ARM, goals, "lm", tolerance=TIGHT)

    solution = ik(0.5).solve(start=ARM.random_pose(1))
    found = solution.derivative("weights")
    ahead, behind = (ik(0.5 + h).solve(start=solution.pose, follow=True).q for h in (1e-4, -1e-4))
    assert not found.kink
    assert found.parameters == ("tool", "joint4")
    assert found[:, 1] == pytest.approx((ahead - behind) / 2e-4, rel=1e-3, abs=2e-4)
    assert found[:, 0] == pytest.approx(-0.5 * found[:, 1], abs=1e-6)  # only the ratio of the weights counts


def test_posture() -> None:
    goals = sy.PositionGoal("tool", ARM.random_pose(0).position("tool"))
    reference = ARM.rest_pose().q + 0.2

    def ik(q: np.ndarray) -> sy.IK:
        return sy.IK(ARM, [goals, sy.RestGoal(sy.Pose(ARM, q))], sy.FullBody(rest_step=1e-6), tolerance=(1e-6, 1e-6))

    solution = ik(reference).solve(start=ARM.rest_pose())
    found = solution.derivative("posture")
    J = solution.pose.jacobian("tool")[:3]
    assert found.parameters == ARM.dof_names
    assert J @ np.asarray(found) == pytest.approx(0.0, abs=1e-6)
    step = np.full(7, 0.02)
    ahead, behind = (ik(reference + s * step).solve(start=solution.pose).q for s in (1.0, -1.0))
    assert not found.kink
    assert np.asarray(found) @ step == pytest.approx((ahead - behind) / 2.0, abs=3e-3)


@pytest.mark.parametrize("goal", [sy.PositionGoal, sy.PoseGoal])
def test_link_offsets_and_tool_frames(goal: type[sy.Goal]) -> None:
    solution = next(
        answer
        for seed in range(20)
        if not (answer := answered(ARM, goal, np.eye(4), ARM.random_pose(1000 + seed), seed)).derivative().kink
    )
    target = solution.targets[0]
    offsets, tools = solution.derivative("offsets"), solution.derivative("tools")
    moving = [row for row, joint in enumerate(ARM.joints) if joint.kind is not sy.Kind.FIXED]
    assert offsets.shape == (7, 6 * len(moving))
    assert tools.shape == (7, 6)
    h = 1e-5
    for k, row in enumerate(moving):
        for c in range(6):
            q = []
            for s in (1.0, -1.0):
                rest = ARM.joints[row].rest.copy()
                if c < 3:
                    rest[c, 3] += s * h
                else:
                    rest[:3, :3] = sy.Rotation.from_rotvec(s * h * np.eye(3)[c - 3]).as_matrix() @ rest[:3, :3]
                joints = list(ARM.joints)
                joints[row] = replace(joints[row], rest=rest)
                q.append(answered(sy.Skeleton(joints), goal, np.eye(4), solution.q, target).q)
            assert offsets[:, 6 * k + c] == pytest.approx((q[0] - q[1]) / (2.0 * h), abs=2e-4), (k, c)
    for c in range(6):
        q = []
        for s in (1.0, -1.0):
            frame = np.eye(4)
            if c < 3:
                frame[c, 3] = s * h
            else:
                frame[:3, :3] = sy.Rotation.from_rotvec(s * h * np.eye(3)[c - 3]).as_matrix()
            q.append(answered(ARM, goal, frame, solution.q, target).q)
        assert tools[:, c] == pytest.approx((q[0] - q[1]) / (2.0 * h), abs=2e-4), c


def answered(body: sy.Skeleton, goal: type[sy.Goal], frame: np.ndarray, start: object, target: object) -> sy.Solution:
    """Return the answer for a tool frame; a target that is a number is that of a random pose."""
    T = body.random_pose(target).transform("tool") if isinstance(target, int) else np.asarray(target)
    given = sy.PoseGoal("tool", transform=T, offset=frame)
    if goal is sy.PositionGoal:
        given = sy.PositionGoal("tool", T[:3, 3], offset=frame[:3, 3])
    return sy.IK(body, given, "lm", tolerance=TIGHT).solve(start=start)


def test_a_limit_that_nothing_presses_against_is_a_kink() -> None:
    body = ARM.with_limits({"joint2": (-0.5, 0.5)})
    q = body.random_pose(4).q.copy()
    q[1] = 0.5
    ik = sy.IK(body, sy.PositionGoal("tool"), "lm", tolerance=TIGHT)
    target = sy.Pose(body, q).position("tool")
    found = ik.solve(target, start=q).derivative()
    assert found.kink
    assert np.abs(found[1]).max() == 0.0


def test_a_limit_that_a_miss_presses_against_is_held() -> None:
    body = ARM.with_limits({"joint2": (-0.3, 0.3)})
    ik = sy.IK(body, sy.PoseGoal("tool"), "lm", tolerance=TIGHT)
    T = np.eye(4)
    T[:3, 3] = (0.9, 0.1, 0.2)
    solution = ik.solve(T, start=body.random_pose(1))
    found = solution.derivative()
    assert "joint2" in solution.active_limits
    assert np.abs(found[1]).max() <= 1e-9


def test_a_batch_has_the_derivatives_of_its_problems() -> None:
    ik = sy.IK(ARM, sy.PoseGoal("tool"), tolerance=TIGHT)
    targets = np.array([ARM.random_pose(seed).transform("tool") for seed in range(5)])
    targets[3, :3, 3] *= 3.0
    many = ik.solve_many(targets)
    found = many.derivative()
    assert found.shape == (5, 7, 6)
    assert found.kink.shape == (5,)
    for b, one in enumerate(many):
        assert found[b] == pytest.approx(np.asarray(one.derivative()), abs=1e-12)
        assert found.kink[b] == one.derivative().kink
    assert ik.solve_many(targets[:0]).derivative().shape == (0, 7, 6)
    targets[1, 0, 3] = np.nan
    skipped = ik.solve_many(targets, on_error="skip")
    assert np.isnan(skipped.derivative()[1]).all()
    assert np.isfinite(skipped.derivative()[0]).all()
    with pytest.raises(InputError):
        skipped[1].derivative()


def test_a_track_has_the_derivative_of_each_frame() -> None:
    clip = sy.IK(ARM, sy.PositionGoal("tool")).track({"tool": np.linspace((0.4, 0.0, 0.5), (0.4, 0.1, 0.5), 4)}, fps=30)
    assert clip.derivative().shape == (4, 7, 3)


def test_what_has_no_derivative_is_refused() -> None:
    solution = sy.solve(ARM, sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
    with pytest.raises(InputError, match="'targets' or 'weights'"):
        solution.derivative("start")
    with pytest.raises(UnsupportedError, match="RestGoal"):
        solution.derivative("posture")
    with pytest.raises(UnsupportedError, match="null_space"):
        sy.solve(ARM, solution.goals, sy.LevenbergMarquardt(null_space=sy.NullSpace())).derivative()
    with pytest.raises(UnsupportedError, match="softening"):
        sy.solve(ARM, solution.goals, sy.FullBody(softening=0.02)).derivative()


@pytest.mark.parametrize(
    ("body", "goals", "solver"),
    [
        (ARM, [sy.PoseGoal("tool")], "lm"),
        (ARM, [sy.PositionGoal("tool")], "full-body"),
        (MAN, [sy.PoseGoal("left_hand"), sy.PositionGoal("right_hand")], "lm"),
        (MAN, [sy.PositionGoal("left_hand", priority=0), sy.PositionGoal("right_hand", priority=1)], "full-body"),
    ],
)
def test_products_in_compiled_code_are_those_of_the_derivative(
    body: sy.Skeleton, goals: list[sy.Goal], solver: str
) -> None:
    ik = sy.IK(body, goals, solver, tolerance=TIGHT)
    poses = [body.random_pose(seed) for seed in range(8)]
    targets = {
        str(goal.joint): np.array(
            [p.transform(goal.joint) if isinstance(goal, sy.PoseGoal) else p.position(goal.joint) for p in poses]
        )
        for goal in goals
    }
    first = targets[str(goals[0].joint)]
    place = first[6:, :3, 3] if first.ndim == 3 else first[6:]
    place *= 3.0  # out of reach
    many = ik.solve_many(targets, np.array([body.random_pose(100 + seed).q for seed in range(8)]))
    v = np.random.default_rng(0).normal(size=(8, body.nv))
    gradient, kinks = many.pull_back(v)
    found = many.derivative()
    wanted = np.einsum("bv,bvp->bp", v, np.asarray(found))
    good = ~found.kink
    assert (kinks == found.kink).all()
    assert gradient[good] == pytest.approx(wanted[good], rel=1e-4, abs=1e-4 * np.abs(wanted[good]).max(initial=1.0))
    for of in ("weights", "offsets", "tools"):
        gradient, kinks = many.pull_back(v, of)
        whole = many.derivative(of)
        wanted = np.einsum("bv,bvp->bp", v, np.asarray(whole))
        assert gradient.shape == wanted.shape
        assert (kinks == whole.kink).all()
        size = 1e-4 * np.abs(wanted[good]).max(initial=1.0)
        assert gradient[good] == pytest.approx(wanted[good], rel=1e-4, abs=size), of
