"""The camera of the live page: it shows the whole body from its front, goes along, and looks past obstacles."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("viser")

import synovia as sy
from synovia.viewer.editing.session import Session
from synovia.viewer.scene.camera import Leash, facing, first_aim, viewpoint

WALK = Path(__file__).parents[2] / "examples" / "walk.bvh"
UP = np.array([0.0, 1.0, 0.0])


@pytest.fixture(scope="module")
def walk():
    return sy.load_motion(WALK)


@pytest.fixture(scope="module")
def session(walk):
    session = Session(walk.skeleton, [walk], mode="free")
    session.animation.set_clip(0)
    return session


def turned(motion, degrees):
    """A clip in which the body goes in another direction."""
    q = motion.q.copy()
    turn = sy.Rotation.from_euler("y", degrees, degrees=True)
    root = motion.skeleton.q_slice(0)
    q[:, root.start : root.start + 3] = turn.apply(q[:, root.start : root.start + 3])
    q[:, root.start + 3 : root.stop] = (turn * sy.Rotation.from_quat(q[:, root.start + 3 : root.stop])).as_quat()
    return sy.Motion(motion.skeleton, q, motion.fps, name="turned")


@pytest.mark.parametrize(("aspect", "low"), [(1.6, -1.0), (0.46, -0.1)])  # on a phone, the panel covers the lower part
def test_the_first_view_sees_the_whole_body_in_all_poses_of_a_clip(session, aspect, low):
    camera, target = viewpoint(session.state, aspect)
    away = (target - camera) / np.linalg.norm(target - camera)
    right = np.cross(away, UP) / np.linalg.norm(np.cross(away, UP))
    scale = 1.7 / np.linalg.norm(np.ptp(session.body.given.rest_pose().positions, axis=0))
    poses = [session.animation.start(time).positions for time in np.linspace(*session.animation.play.span, 9)]
    unit = session.body.given.meters_per_unit or scale
    joints = np.concatenate([(pose - pose.mean(axis=0) + poses[0].mean(axis=0)) * unit for pose in poses]) - camera
    depth = np.tan(0.4) * (joints @ away)
    high = joints @ np.cross(right, away) / depth
    assert np.abs(joints @ right / depth / aspect).max() < 1.0
    assert low < high.min() < high.max() < 1.0
    assert np.ptp(high) > 0.4 * (1.0 - low) * 0.5, "the body is small"


@pytest.mark.parametrize("degrees", [0.0, 90.0, -160.0])
def test_the_first_view_is_in_front_of_the_body(walk, degrees):
    clip = turned(walk, degrees)
    session = Session(clip.skeleton, [clip], mode="free")
    session.animation.set_clip(0)
    pose = session.animation.start()
    ahead = clip.pose(6).positions[0] - clip.pose(0).positions[0]  # a walk goes where the body faces
    ahead = (ahead - (ahead @ UP) * UP) / np.linalg.norm(ahead - (ahead @ UP) * UP)
    assert facing(clip.skeleton, pose.positions) @ ahead > 0.9
    camera, target = viewpoint(session.state, 1.5)
    assert (camera - target) @ ahead > 0.7 * np.linalg.norm(camera - target)


def test_no_obstacle_hides_the_body():
    body = sy.bundled("humanoid")
    free = first_aim(Session(body, mode="free").state)
    wall = sy.Box(center=(0.3, 1.0, 1.2), size=(3.0, 2.4, 0.1))
    world = sy.World({"floor": sy.HalfSpace(normal=(0.0, 1.0, 0.0)), "wall": wall}, up="y")
    seen = first_aim(Session(body, mode="free", world=world).state)
    middle = body.rest_pose().positions.mean(axis=0)

    def hidden(aim):
        points = aim.position + np.linspace(0.0, 1.0, 200)[:, None] * (middle - aim.position)
        return (np.abs((points - wall.center) / (0.5 * np.array(wall.size))) < 1.0).all(axis=1).any()

    assert hidden(free)
    assert not hidden(seen)
    around = sy.World({"wall": sy.Sphere(center=(0.0, 1.0, 0.0), radius=2.0)}, up="y")  # nothing helps
    np.testing.assert_allclose(first_aim(Session(body, mode="free", world=around).state).position, free.position)


def test_the_camera_goes_along_and_does_not_tremble():
    leash, rng = Leash(2.0), np.random.default_rng(0)
    body = rng.normal(size=(20, 3))
    for _ in range(50):
        leash.pull(body + rng.uniform(-0.05, 0.05, 3))
    np.testing.assert_array_equal(leash.moved, 0.0)
    for z in np.linspace(0.0, 5.0, 100):
        leash.pull(body + np.array([0.0, 0.0, z]))
    np.testing.assert_allclose(leash.moved, (0.0, 0.0, 4.8), atol=0.1)
    leash.pull(body)  # the clip begins again
    assert np.linalg.norm(leash.moved) <= 0.3
    leash.on = False
    before = leash.moved
    leash.pull(body + 9.0)
    np.testing.assert_array_equal(leash.moved, before)
    leash.on = True
    leash.pull(body + 9.0)
    np.testing.assert_array_equal(leash.moved, before)
