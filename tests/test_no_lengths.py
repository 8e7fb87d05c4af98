"""Bodies whose bones have no lengths, as in files that store only rotations: each verb works, or says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from conftest import REPO

pytestmark = pytest.mark.compiled
NO_LENGTH = "length of the legs: expected a number above 0, got 0.0. Its bones have no lengths"


def shrunk(name: str) -> sy.Skeleton:
    """A bundled body whose joints are at one point."""
    body = sy.bundled(name)
    joints = []
    for joint, parent in zip(body.joints, body.parents, strict=True):
        rest = np.array(joint.rest)
        rest[:3, 3] = 0.0
        joints.append(replace(joint, parent=parent if parent >= 0 else None, rest=rest))
    return body.with_joints(joints)


@pytest.fixture(scope="module")
def walk() -> sy.Motion:
    return sy.load_motion(REPO / "examples" / "walk.bvh")[:40]


@pytest.fixture
def clip(tmp_path: Path) -> sy.Motion:
    text = re.sub(r"OFFSET.*", "OFFSET 0 0 0", (REPO / "examples" / "walk.bvh").read_text())
    (tmp_path / "zero.bvh").write_text(text)
    return sy.load_motion(tmp_path / "zero.bvh")[:40]


def test_what_compares_lengths_says_that_there_are_none(clip: sy.Motion, walk: sy.Motion) -> None:
    body = sy.bundled("humanoid")

    def live(source: sy.Motion, target: sy.Skeleton) -> None:
        follower = sy.LiveRetarget(source.skeleton, target, rate=30, learn=0.1)
        for k in range(10):
            follower.step(source.q[k], k / 30)

    calls: list[Callable[[], Any]] = [
        lambda: sy.retarget(clip, body), lambda: sy.retarget(walk, shrunk("humanoid")), lambda: sy.judge(clip),
        lambda: live(clip, body), lambda: live(walk, shrunk("humanoid")),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(sy.InputError, match=NO_LENGTH):
            call()


@pytest.mark.parametrize("name", ["humanoid", "arm7"])
def test_other_verbs_take_a_body_of_size_0(name: str, tmp_path: Path) -> None:
    body = shrunk(name)
    tip = body.joint_names[-1]
    clip = sy.Motion(body, np.array([body.random_pose(k).q for k in range(12)]), 30.0)
    assert body.size == 0.0
    for x in (0.0, 1.0):
        solution = sy.solve(body, sy.PositionGoal(tip, (x, 0, 0)))
        assert solution.reached == (x == 0.0)
        assert solution.explain()
    path = np.zeros((4, 3))
    assert sy.IK(body, sy.PositionGoal(tip)).track(path).reached.all()
    assert sy.IK(body, sy.PositionGoal(tip)).track(path, smoothness=0.1).reached.all()
    servo = sy.Servo(body, sy.PositionGoal(tip), rate=100, velocity=1.0, acceleration=5.0)
    servo.reset()
    assert servo.step((0.0, 0.0, 0.1)).explain()
    np.testing.assert_allclose(sy.fit_positions(clip.positions(), body, body.joint_names).errors, 0.0, atol=1e-12)
    edited = sy.edit(clip, [sy.Layer({tip: (0, 0, 0)}, frames=(3, 6), blend=2)])
    assert len(edited.motion) == 12
    for ending in (".bvh", ".glb", ".csv", ".npz"):
        sy.save_motion(clip, tmp_path / f"a{ending}")
        assert len(sy.load_motion(tmp_path / f"a{ending}", skeleton=body if ending == ".csv" else None)) == 12


def test_nothing_moves_in_a_fixed_body() -> None:
    body = sy.Skeleton([sy.Joint("a"), sy.Joint("b", 0)])
    for more in ({}, {"smoothness": 0.1}):
        assert sy.IK(body, sy.PositionGoal("b")).track(np.zeros((4, 3)), **more).reached.all()


def test_the_command_line_says_so(clip: sy.Motion) -> None:
    source = clip.skeleton.source
    assert source is not None
    done = run("retarget", str(source), "humanoid", "-o", str(source.with_name("out.csv")))
    assert done.code == 3
    assert "length of the legs" in done.err
