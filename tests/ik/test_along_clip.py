"""Frames that are solved around the poses of a clip: all in one call, or one by one."""

from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.goals.base import POSITION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch
from synovia.ik.targets import table_of
from synovia.solver import FullBody
from synovia.tracking.around import Around

pytestmark = pytest.mark.compiled  # a whole body in many frames

FRAMES = 40


def swaying(body, straight):
    """Joint values (T, nq) of a body whose left elbow and knee are straight in some frames."""
    phase = np.linspace(0.0, 2.0 * np.pi, FRAMES)
    q = np.tile(body.rest_q, (FRAMES, 1))
    for name, size in (("left_upper_arm", 0.5), ("spine", 0.2), ("right_upper_leg", 0.3)):
        turn = sy.Rotation.from_rotvec(size * np.sin(phase)[:, None] * (1.0, 0.3, 0.0))
        q[:, body.q_slice(name)] = turn.as_quat()
    for name in ("left_lower_arm", "right_lower_arm", "left_lower_leg", "right_lower_leg"):
        q[:, body.q_slice(name)] = 0.4 * (1.0 - np.cos(phase))[:, None] if straight else 0.6
    return q


def problem(body, q, offset):
    """The problem that left hand and right foot are off by some lengths, and its targets, (T, goals, 17)."""
    ends = ["left_hand", "right_foot"]
    goals = [*(sy.PositionGoal(end) for end in ends), sy.RestGoal(q[0])]
    ik = CompiledProblem(body, goals, FullBody(attempts=1))
    frames = sy.Motion(body, q, 30.0).frames()
    wanted = np.tile(np.eye(4), (2, FRAMES, 1, 1))
    for k, end in enumerate(ends):
        wanted[k, :, :3, 3] = frames[:, body.index(end), 9:] + offset
    return ik, table_of(list(wanted), [POSITION, POSITION], rest=1)


def one_by_one(around, q, table, must):
    rows, before = [], None
    for k in range(FRAMES):
        row = around.solve(q[k : k + 1], table[k : k + 1], Watch(), before, must=must[k : k + 1])
        rows.append(row)
        before = q[k], row[0, around.ik.places]
    return np.concatenate(rows)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("offset", [(0.0, 0.05, 0.02), (0.0, 0.6, 0.0)])
def test_frames_of_one_call_are_those_of_many(straight, offset):
    body = sy.bundled("humanoid")
    q = swaying(body, straight)
    ik, table = problem(body, q, np.array(offset))
    around, must = Around(ik), np.zeros(FRAMES, bool)
    done = []
    rows = around.solve(q, table, Watch(), must=must, progress=done.append)
    assert sum(done) == FRAMES
    each = one_by_one(around, q, table, must)
    assert np.array_equal(around.missed(rows), around.missed(each))
    near = 1e-3 if offset[1] < 0.5 else 0.3  # a miss ends where its steps end
    assert rows[:, ik.places] == pytest.approx(each[:, ik.places], abs=near)
    if not straight:
        assert around.missed(rows).any() == (offset[1] > 0.5)


def test_a_frame_that_needs_no_change_keeps_its_pose_and_a_miss_that_must_not_be_ends_the_solve():
    body = sy.bundled("humanoid")
    q = swaying(body, straight=False)
    ik, table = problem(body, q, np.zeros(3))
    around = Around(ik)
    rows = around.solve(q, table, Watch(), must=np.ones(FRAMES, bool))
    assert rows[:, ik.places] == pytest.approx(q, abs=1e-6)
    far = table.copy()
    far[FRAMES // 2, 0, 7] += 9.0
    assert around.solve(q, far, Watch(), must=np.ones(FRAMES, bool)) is None
    must = np.arange(FRAMES) != FRAMES // 2
    rows = around.solve(q, far, Watch(), must=must)
    assert np.flatnonzero(around.missed(rows)).tolist() == [FRAMES // 2]


def test_mimic_joints_follow_in_each_frame():
    body = sy.bundled("humanoid")
    joints = list(body.joints)
    led = body.index("right_lower_arm")
    joints[led] = replace(joints[led], mimic=sy.Mimic("left_lower_arm", 0.5, 0.1), limit=None)
    body = body.with_joints(joints)
    q = body.follow(swaying(body, straight=False))
    ik, table = problem(body, q, np.array((0.0, 0.05, 0.02)))
    rows = Around(ik).solve(q, table, Watch())
    own = rows[:, ik.places]
    leader = own[:, body.q_slice("left_lower_arm")]
    assert own[:, body.q_slice(led)] == pytest.approx(0.5 * leader + 0.1)
    assert np.ptp(leader - q[:, body.q_slice("left_lower_arm")]) > 1e-4
