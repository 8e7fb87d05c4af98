"""Limits of velocity are given in the same way to every function that takes them."""

from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.model.motion_limits import by_joint

ARM = sy.bundled("arm7")
FAST = ARM.with_joints([replace(one, velocity=2.0 if one.kind.q_size else None) for one in ARM.joints])
CLIP = sy.Motion(FAST, np.linspace(FAST.rest_q, FAST.random_pose(1).q, 12), 30.0)
BODY = sy.bundled("humanoid")
HALF = {one.name: 1.0 for one in FAST.joints if one.velocity}


def servo(skeleton, velocity):
    return sy.Servo(skeleton, sy.PositionGoal("tool"), rate=100, velocity=velocity, acceleration=9.0)


TAKERS = {
    "track": lambda skeleton, velocity: sy.IK(skeleton, sy.PositionGoal("tool")).track(
        {"tool": CLIP.positions()[:, -1]}, fps=30.0, velocity=velocity
    ),
    "slowed": lambda skeleton, velocity: CLIP.on(skeleton).slowed(velocity=velocity),
    "servo": servo,
}


def test_a_share_is_of_the_velocities_of_the_file():
    assert by_joint(FAST, "50%", "velocity").tolist() == [1.0 if one.velocity else np.inf for one in FAST.joints]
    assert by_joint(FAST, "file", "velocity").tolist() == [one.velocity or np.inf for one in FAST.joints]
    assert np.isinf(by_joint(ARM, "file", "velocity")).all()


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("velocity", [1.0, HALF, "50%", "file"], ids=["number", "by joint", "share", "file"])
def test_numbers_numbers_by_joint_and_shares_are_taken(name, velocity):
    assert TAKERS[name](FAST, velocity) is not None


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("velocity", ["half", "200%", "-3%", 0.0, {"joint1": -1.0}, np.nan])
def test_others_are_refused_with_the_name_of_the_argument(name, velocity):
    with pytest.raises(sy.InputError, match="velocity"):
        TAKERS[name](FAST, velocity)


@pytest.mark.parametrize("name", TAKERS)
def test_a_share_needs_a_file_with_velocities(name):
    with pytest.raises(sy.InputError, match="velocity"):
        TAKERS[name](ARM, "50%")


def test_a_share_and_its_numbers_give_the_same_clip():
    by_share, by_name = (CLIP.slowed(velocity=given) for given in ("50%", HALF))
    np.testing.assert_array_equal(by_share.q, by_name.q)
    assert len(by_share) > len(CLIP)


def test_retargeting_takes_shares():
    slow = BODY.with_joints([replace(one, velocity=4.0) for one in BODY.joints])
    still = sy.Motion(BODY, np.repeat(BODY.rest_q[None], 5, axis=0), 30.0)
    assert sy.retarget(still, slow, velocity="50%").verdict == sy.retarget(still, slow).verdict
    assert sy.LiveRetarget(BODY, slow, rate=30, velocity="50%") is not None
