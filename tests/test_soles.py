"""Soles: the lowest surface that a foot carries, and bodies that stand on it."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.bodies.soles import sole_of
from synovia.model.anatomy.feet import feet_of
from synovia.surface import surface_of_skeleton

PROJECT = Path(__file__).parents[1]
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


def bent(skeleton, degrees):
    """Return a skeleton that crouches at rest: thighs go forward, shins back, and the feet stay level."""
    joints = list(skeleton.joints)
    turns = {"upper_leg": -degrees, "lower_leg": 2.0 * degrees, "foot": -degrees}
    for side in ("left", "right"):
        for part, angle in turns.items():
            row = skeleton.index(f"{side}_{part}")
            rest = joints[row].rest.copy()
            rest[:3, :3] = rest[:3, :3] @ sy.Rotation.from_euler("x", angle, degrees=True).as_matrix()
            joints[row] = dataclasses.replace(joints[row], rest=rest)
    return skeleton.with_joints(joints)


@pytest.mark.parametrize("degrees", [0.0, 20.0, 35.0])
def test_hips_are_as_high_as_the_legs_of_the_target_reach(degrees):
    """A target that crouches at rest stretches its legs as its source does; its soles stay on the floor."""
    source = sy.bundled("humanoid").with_root("free")
    still = sy.Motion(source, np.tile(source.rest_q, (5, 1)), 30.0)
    target = bent(shod(raised(sy.bundled("humanoid"), 0.7), 0.02), degrees)
    answer = sy.retarget(still, target, hold_feet=False)
    soles = [sole_of(answer.target.skeleton, foot, UP) for foot in feet_of(answer.target.skeleton)]
    frames = answer.motion.frames()[-1]
    assert [float(sole.lowest(frames, UP)) for sole in soles] == pytest.approx([0.0, 0.0], abs=0.003)


def test_skin_shows_the_soles_of_a_character(tmp_path):
    path = tmp_path / "skinned.glb"
    body = sy.load_skeleton(PROJECT / "examples" / "character.glb")
    sy.save_pose(body.rest_pose(), path, into=PROJECT / "examples" / "character.glb")
    for source in (body, sy.load_skeleton(path)):
        for foot in feet_of(source):
            sole = sole_of(source, foot, UP)
            assert sole.source == "skin"
            low = min(
                float(part.placed(source.rest_pose().frames)[:, 1].min()) for part in surface_of_skeleton(source).parts
            )
            assert sole.height == pytest.approx(low, abs=1e-3)


def test_feet_are_locked_on_their_soles():
    """A body stands 5 mm deep in a floor that the user gives: its shoes rise above it, and not only its joints."""
    body = shod(raised(sy.bundled("humanoid"), 0.4), 0.03).with_root("free")
    q = np.tile(body.rest_q, (30, 1))
    still = sy.Motion(body, q, 30.0)
    lowest = min(sole_of(body, foot, UP).lowest(still.frames(), UP).min() for foot in feet_of(body))
    assert sy.foot_lock(still).floor == pytest.approx(lowest, abs=1e-9)
    locked = sy.foot_lock(still, floor=lowest + 0.005)
    assert locked.depth_before == pytest.approx(0.005, abs=1e-6)
    assert locked.depth == pytest.approx(0.0, abs=1e-4)
    after = min(sole_of(body, foot, UP).lowest(locked.motion.frames(), UP).min() for foot in feet_of(body))
    assert after == pytest.approx(lowest + 0.005, abs=1e-3)
