"""Soles: the lowest surface that a foot carries, and bodies that stand on it."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.bodies.soles import sole_of
from synovia.model.anatomy.contacts import ContactWatch, find_contacts
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


@pytest.mark.parametrize("depth", [0.02, 0.05])
def test_a_standing_body_balances_above_what_its_feet_carry(depth):
    """The support reaches to the edges of the shoes, which are wider and longer than the bones of the feet."""
    body = shod(raised(sy.bundled("humanoid"), 0.4), depth)
    polygon = next(goal.polygon for goal in sy.standing_goals(body) if isinstance(goal, sy.CenterOfMassGoal))
    bounds = np.array(
        [
            shape.moved(body.rest_pose().transform(row)).bounds
            for row, joint in enumerate(body.joints)
            for shape in joint.shapes
        ]
    )
    edges = np.array([bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)])[:, [0, 2]]
    middle = edges.mean(axis=0)
    found = np.array([polygon.min(axis=0), polygon.max(axis=0)])[:, [0, 2]]
    assert found == pytest.approx(middle + 0.95 * (edges - middle), abs=1e-6)


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


def longer(skeleton, factor):
    """Return a body with longer shins."""
    joints = list(skeleton.joints)
    for side in ("left", "right"):
        row = skeleton.index(f"{side}_foot")
        rest = joints[row].rest.copy()
        rest[:3, 3] *= factor
        joints[row] = dataclasses.replace(joints[row], rest=rest)
    return skeleton.with_joints(joints)


def corners(motion):
    """Return the heights of the lowest corner of all boxes of a body, (T,)."""
    out = []
    for pose in motion:
        shapes = [(row, shape) for row, joint in enumerate(motion.skeleton.joints) for shape in joint.shapes]
        out.append(min(shape.moved(pose.transform(row)).bounds[0, 1] for row, shape in shapes))
    return np.array(out)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_walk_does_not_sink_into_the_floor(factor):
    """The toes of the walk are rigid, and reach 5 cm below its floor; the shoes of another body do not."""
    walk = sy.load_motion(PROJECT / "examples" / "walk.bvh")
    target = longer(shod(raised(sy.bundled("humanoid"), 0.4), 0.02), factor)
    answer = sy.retarget(walk, target)
    assert answer.verdict == "good"
    heights = corners(answer.motion)
    assert np.quantile(heights, 0.01) > -0.005
    assert np.median(heights) < 0.03


@pytest.mark.parametrize("frames", [10, 20, 30])
def test_toes_of_a_body_that_gets_up_do_not_jump(frames):
    """The legs of the clip swing through the floor; toes that bend up there come and go within some frames."""
    body = sy.bundled("humanoid").with_root("free")
    turns = np.radians(np.concatenate([np.full(30, 90.0), np.linspace(90.0, 0.0, frames), np.zeros(10)]))
    q = np.tile(body.rest_q, (len(turns), 1))
    q[:, 3:7] = [sy.Rotation.from_rotvec((turn, 0.0, 0.0)).as_quat() for turn in turns]
    hips = sy.Motion(body, q, 30.0).positions()[:, body.index("hips")]
    stands = body.rest_pose().positions[body.index("hips")]
    q[:, :3] += np.array([0.0, 0.14, 0.0]) + np.outer(1.0 - turns / turns[0], stands - (0.0, 0.14, 0.0)) - hips
    answer = sy.retarget(sy.Motion(body, q, 30.0), longer(sy.bundled("humanoid"), 0.9), up="y")
    for side in ("left", "right"):
        bends = np.degrees(answer.motion.q[:, answer.motion.skeleton.q_slice(f"{side}_toes")])
        assert np.ptp(bends) > 5.0
        assert np.abs(np.diff(bends, axis=0)).max() < 11.0


@pytest.mark.parametrize("depth", [0.04, 0.08])
def test_a_body_that_stands_in_the_floor_is_a_finding(depth):
    """The joints of the body are above the floor; its shoes are not."""
    source = sy.bundled("humanoid").with_root("free")
    still = sy.Motion(source, np.tile(source.rest_q, (20, 1)), 30.0)
    answer = sy.retarget(still, shod(raised(sy.bundled("humanoid"), 0.4), depth))
    joint_map = {role: (role, row) for role, row in answer.target.roles.items() if role in still.skeleton.joint_names}
    assert sy.judge(answer.motion, still, joint_map).verdict == "good"
    q = answer.motion.q.copy()
    q[:, 1] -= depth
    sunk = sy.judge(sy.Motion(answer.motion.skeleton, q, 30.0), still, joint_map)
    found = [one for one in sunk.warnings if one.cause == "height"]
    assert sunk.verdict == "look"
    assert {one.limb for one in found} == {"left_foot", "right_foot"}
    assert all(one.frames == tuple(range(20)) and "below the floor" in one.text for one in found)


def test_contacts_as_they_happen_are_those_of_a_watch():
    """A live foot is watched by the rule of the function; both find the stands of a walk."""
    walk = sy.load_motion(PROJECT / "examples" / "walk.bvh")
    rows = [walk.skeleton.index(foot.joints[0]) for foot in feet_of(walk.skeleton)]
    places, leg = walk.positions()[:, rows], 0.85 / (walk.skeleton.meters_per_unit or 1.0)
    now = find_contacts(places, UP, walk.fps, leg, causal=True).stands
    later = find_contacts(places, UP, walk.fps, leg).stands
    assert now.shape == later.shape
    assert np.mean(now[later]) > 0.8
    half = len(places) // 2  # what follows changes nothing but the heights of the ground
    grounds = np.percentile(places @ UP, 5.0, axis=0)
    watch = ContactWatch(grounds, UP, leg, walk.fps)
    np.testing.assert_array_equal([watch.look(points).copy() for points in places[:half]], now[:half])
