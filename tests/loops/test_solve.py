"""Solvers keep loops closed: targets of closed poses, misses, tracks, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import synovia as sy
from mechanisms import MECHANISMS, NAMES, delta_robot, four_bar, mechanism_of, stewart_platform
from servo.judge import turn_differences
from synovia.kernels.compiler import compiled
from synovia.model.pose import random_values
from synovia.solver import SolverName

SOLVERS: tuple[SolverName, ...] = ("full-body", "lm", "dls", "pinv")


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["full-body", "lm"])
@pytest.mark.parametrize("name", NAMES)
def test_targets_of_closed_poses(name: str, solver: SolverName) -> None:
    """Targets of closed poses are reached, and all answers are closed, misses included."""
    make, joint, offset = MECHANISMS[name]
    body = make()
    poses = random_values(body, 25 if compiled() else 3, 8)
    targets = np.array([sy.Pose.trusted(body, q.copy()).transform(joint) @ (*offset, 1.0) for q in poses])[:, :3]
    ik = sy.IK(body, sy.PositionGoal(joint, offset=offset), solver)
    answers = [ik.solve(target) for target in targets]
    assert all(answer.reached for answer in answers)
    misses = [ik.solve(3.0 * target + (0.0, 0.0, 0.3)) for target in targets[: 6 if compiled() else 1]]
    assert not any(miss.reached for miss in misses)
    q = np.array([answer.pose.q for answer in (*answers, *misses)])
    assert mechanism_of(body).lacks(q).max() <= 1e-9
    for answer in (*answers, *misses):
        assert np.array_equal(answer.pose.inside[0], answer.pose.q)


@pytest.mark.compiled
@pytest.mark.parametrize("solver", SOLVERS)
def test_solve_many_and_pose_goals(solver: SolverName) -> None:
    """A platform takes poses, many at once; each answer is closed."""
    body = stewart_platform()
    targets = np.array([pose.transform("platform") for pose in (body.random_pose(k) for k in range(8))])
    many = sy.IK(body, sy.PoseGoal("platform"), solver).solve_many(targets)
    assert many.reached.all()
    assert mechanism_of(body).lacks(many.q).max() <= 1e-9


@pytest.mark.compiled
def test_solved_again_it_stays() -> None:
    """An answer that is solved again is returned, hits and misses alike."""
    body = delta_robot()
    ik = sy.IK(body, sy.PositionGoal("platform"))
    for target in ((0.05, 0.1, -0.7), (0.6, 0.2, -0.4)):
        answer = ik.solve(target)
        again = ik.solve(target, start=answer.pose)
        assert np.abs(again.pose.q - answer.pose.q).max() < 1e-9


def test_track_keeps_its_branch() -> None:
    """Along a track, the assembly branch changes in no frame that is not listed as a jump."""
    body = four_bar()
    angles = np.linspace(0.0, 4.0 * np.pi, 400 if compiled() else 100)
    start = body.rest_pose()
    path: list[np.ndarray[Any, Any]] = []
    q = start.q.copy()
    held = np.array([True, False, False])
    for angle in angles:
        end = q.copy()
        end[0] = start["crank"] + angle
        found, closes = mechanism_of(body).way(q[None], end[None], held)
        assert closes[0]
        q = found[0]
        path.append((sy.Pose.trusted(body, q.copy()).transform("coupler") @ (1.5, 0.5, 0.0, 1.0))[:3])
    track = sy.IK(body, sy.PositionGoal("coupler", offset=(1.5, 0.5, 0.0))).track(np.array(path))
    assert track.reached.all()
    assert mechanism_of(body).lacks(track.q).max() <= 1e-9
    assert np.abs(np.diff(track.q[:, 2])).max() < 0.2 or track.jumps


def test_largest_move_holds() -> None:
    """With a largest move, joints of a loop move no farther, and the loop stays closed."""
    body = four_bar()
    solver = sy.FullBody(attempts=1, largest_move=0.05)
    answer = sy.IK(body, sy.PositionGoal("coupler", offset=(1.5, 0.5, 0.0)), solver).solve((2.0, 1.0, 0.0))
    assert np.abs(answer.pose.q - body.rest_q).max() <= 0.05 + 1e-9
    assert mechanism_of(body).lacks(answer.pose.q[None]).max() <= 1e-9


@pytest.mark.parametrize("solver", ["fabrik", "ccd", "particles", "sdls", "transpose", "hinges", "two-bone"])
def test_refused(solver: SolverName) -> None:
    """Solvers that would open loops refuse, and say which ones do not."""
    with pytest.raises(sy.errors.UnsupportedError, match=r"full-body|expected"):
        sy.solve(four_bar(), sy.PositionGoal("coupler", (1.0, 0.5, 0.0)), solver)


def test_joints_outside_loops_solve_plainly() -> None:
    """A goal that moves no joint of a loop leaves the loop as it is, with any solver."""
    body = four_bar()
    answer = sy.solve(body.with_loops(body.loops), sy.RotationGoal("crank", np.eye(3)))
    assert mechanism_of(body).lacks(answer.pose.q[None]).max() <= 1e-9


def test_what_would_open_loops_refuses() -> None:
    """Smoothing of a track refuses, names the loops, and says what to do instead."""
    body = four_bar()
    with pytest.raises(
        sy.errors.UnsupportedError, match=r"smoothness= does not keep loops closed(.|\n)*Motion.smoothed"
    ):
        sy.IK(body, sy.PositionGoal("coupler")).track(np.tile((1.0, 0.5, 0.0), (4, 1)), smoothness=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_velocity_of_a_track_keeps_loops_closed(name: str) -> None:
    """Joints of loops keep limits of velocity in every frame, closed; what comes late is told, and arrives."""
    make, joint, offset = MECHANISMS[name]
    body = make()
    places = [(body.random_pose(seed).transform(joint) @ (*offset, 1.0))[:3] for seed in (0, 1)]
    count = 120 if compiled() else 12
    targets, most = np.repeat(places, count, axis=0), 1.5
    ik = sy.IK(body, sy.PositionGoal(joint, offset=offset))
    plain, slow = ik.track(targets, fps=30.0), ik.track(targets, fps=30.0, velocity=most)
    assert mechanism_of(body).lacks(slow.q).max() <= 1e-9
    low, high = body.limits
    assert (slow.q >= low - 1e-9).all()
    assert (slow.q <= high + 1e-9).all()
    for row, one in enumerate(body.joints):
        q = slow.q[:, body.q_slice(row)]
        free = one.kind is sy.Kind.FREE
        turned = turn_differences(q[:, 3:], np.full(len(q) - 1, 1 / 30.0))[0] if free else np.zeros((0, 3))
        moved = np.diff(q[:, :3] if free else q, axis=0) * 30.0
        assert np.abs(moved).max(initial=0.0) <= most * (1 + 1e-9)
        assert np.linalg.norm(turned, axis=-1).max(initial=0.0) <= most * (1 + 1e-9)
    assert set(slow.late) == set(slow.missed_frames) - set(plain.missed_frames)
    goal_of = np.array([(sy.Pose(body, q).transform(joint) @ (*offset, 1.0))[:3] for q in slow.q])
    off = np.linalg.norm(goal_of - targets, axis=1)
    assert ((off <= ik.tolerance[0] * (1 + 1e-6)) == slow.reached).all()
    if compiled() and len(plain.jumps) == 0:
        assert slow.reached[-1] == plain.reached[-1]


def test_explanation_names_the_loop() -> None:
    """A miss says which loop ties which joints, at which values."""
    body = four_bar()
    miss = sy.solve(body, sy.PositionGoal("coupler", (2.0, 3.0, 0.0), offset=(1.5, 0.5, 0.0)))
    text = " ".join(miss.explain())
    assert not miss.reached
    assert "Loop 'four-bar' ties 'crank' at " in text
