"""Soles: the lowest surface that a foot carries, and bodies that stand on it."""

import dataclasses

import numpy as np
import pytest

import synovia as sy
from synovia.model.anatomy.feet import feet_of
from synovia.model.anatomy.soles import sole_of

UP = np.array([0.0, 1.0, 0.0])


def raised(skeleton, height):
    """Return a skeleton whose rest pose is higher."""
    rest = skeleton.joints[0].rest.copy()
    rest[1, 3] += height
    return skeleton.with_joints([dataclasses.replace(skeleton.joints[0], rest=rest), *skeleton.joints[1:]])


def shod(skeleton, depth):
    """Return a skeleton without shapes but blocks below its feet, which reach below their lowest point by a depth."""
    bare = [dataclasses.replace(joint, shapes=()) for joint in skeleton.joints]
    body = skeleton.with_joints(bare)
    joints = list(body.joints)
    for foot in feet_of(body):
        row, rest = foot.points[0], body.rest_pose()
        low = float(rest.positions[list(foot.points), 1].min()) - depth
        at = rest.position(row) * (1.0, 0.0, 1.0) + (0.0, low + 0.01, 0.05)
        block = sy.Box(size=(0.08, 0.02, 0.2)).moved(np.linalg.inv(rest.transform(row)) @ placed(at))
        joints[row] = dataclasses.replace(joints[row], shapes=(block,))
    return body.with_joints(joints)


def placed(at):
    out = np.eye(4)
    out[:3, 3] = at
    return out


def test_shapes_below_the_joints_are_the_sole():
    body = shod(raised(sy.bundled("humanoid"), 0.5), 0.03)
    lowest = body.rest_pose().positions[:, 1].min()
    for foot in feet_of(body):
        sole = sole_of(body, foot, UP)
        assert sole.source == "shapes"
        assert sole.height == pytest.approx(lowest - 0.03, abs=1e-9)


def test_a_rest_pose_on_the_floor_shows_its_soles():
    """Capsules that reach through the floor do not count; at another height, nothing shows a floor."""
    body = sy.bundled("humanoid")
    assert all(sole_of(body, foot, UP).source == "floor" for foot in feet_of(body))
    assert all(sole_of(body, foot, UP).height == 0.0 for foot in feet_of(body))
    bare = body.with_joints([dataclasses.replace(joint, shapes=()) for joint in raised(body, 0.5).joints])
    assert all(sole_of(bare, foot, UP).source == "points" for foot in feet_of(bare))


@pytest.mark.parametrize("depth", [0.01, 0.04])
def test_a_standing_clip_stands_on_the_soles_of_its_target(depth):
    source = sy.bundled("humanoid").with_root("free")
    still = sy.Motion(source, np.tile(source.rest_q, (20, 1)), 30.0)
    target = shod(raised(sy.bundled("humanoid"), 0.4), depth)
    answer = sy.retarget(still, target)
    assert answer.verdict == "good"
    heights = [
        shape.moved(pose.transform(row)).bounds[0, 1]
        for pose in (answer.motion[0], answer.motion[19])
        for row, joint in enumerate(answer.motion.skeleton.joints)
        for shape in joint.shapes
    ]
    assert min(heights) == pytest.approx(0.0, abs=0.003)
