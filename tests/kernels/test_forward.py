"""Forward kinematics against a product of 4x4 matrices that shares no code with it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from synovia.kernels.tree.forward import forward_many
from synovia.model import Joint, Kind, Mimic, Pose, Skeleton
from synovia.model.pose import world_frames

AXES = [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -1, 0), (1e-5, 2e-5, -1), (1e-7, 0, -1), (0, 1e-12, -1), (1e-16, 0, -1)]


def random_tree(seed, n=9, free_only_root=False):
    rng = np.random.default_rng(seed)
    joints = []
    for i in range(n):
        rest = np.eye(4)
        rest[:3, :3] = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
        rest[:3, 3] = rng.normal(size=3) * 10.0 ** rng.integers(-2, 3)
        kind = Kind(int(rng.integers(5)))
        axis = AXES[rng.integers(len(AXES))] if rng.random() < 0.6 else rng.normal(size=3)
        leaders = [j for j in joints if j.kind in (Kind.HINGE, Kind.SLIDE)]
        mimic = None
        if leaders and kind in (Kind.HINGE, Kind.SLIDE) and rng.random() < 0.4:
            mimic = Mimic(leaders[rng.integers(len(leaders))].name, float(rng.normal()), float(rng.normal()))
        parent = None if i == 0 or rng.random() < 0.1 else f"j{rng.integers(i)}"
        joints.append(Joint(f"j{i}", parent, kind, rest, np.array(axis, float), mimic=mimic))
    return Skeleton([joints[i] for i in rng.permutation(n)], name="random")


def random_q(skeleton, rng):
    q = rng.uniform(-3, 3, skeleton.nq)
    for row, joint in enumerate(skeleton.joints):
        if joint.kind in (Kind.BALL, Kind.FREE):
            at = skeleton.q_slice(row).stop
            q[at - 4 : at] /= np.linalg.norm(q[at - 4 : at])
    return skeleton.follow(q)


def reference(skeleton, q):
    """World transforms by name, from the description alone."""
    out = {}
    for row, joint in enumerate(skeleton.joints):
        v, motion = q[skeleton.q_slice(row)], np.eye(4)
        if joint.kind is Kind.HINGE:
            motion[:3, :3] = Rotation.from_rotvec(v[0] * joint.axis).as_matrix()
        elif joint.kind is Kind.SLIDE:
            motion[:3, 3] = v[0] * joint.axis
        elif joint.kind is Kind.BALL:
            motion[:3, :3] = Rotation.from_quat(v).as_matrix()
        elif joint.kind is Kind.FREE:
            motion[:3, 3] = v[:3]
            motion[:3, :3] = Rotation.from_quat(v[3:]).as_matrix()
        above = out[skeleton.parents[row]] if skeleton.parents[row] >= 0 else np.eye(4)
        out[row] = above @ joint.rest @ motion
    return out


@given(st.integers(0, 2**32 - 1))
def test_frames_match_a_product_of_matrices(seed):
    skeleton = random_tree(seed)
    q = random_q(skeleton, np.random.default_rng(seed))
    pose = Pose(skeleton, q)
    for row, wanted in reference(skeleton, q).items():
        size = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(pose.transform(row), wanted, rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("kind", [Kind.HINGE, Kind.SLIDE])
def test_axes_close_to_minus_z_stay_rigid(axis, kind):
    joints = [
        Joint("a", None, kind, axis=np.array(axis, float)),
        Joint("b", "a", Kind.HINGE, axis=np.array(axis, float)),
    ]
    skeleton = Skeleton(joints)
    q = np.array([0.7, -1.1])
    pose = Pose(skeleton, q)
    for row, wanted in reference(skeleton, q).items():
        np.testing.assert_allclose(pose.transform(row), wanted, atol=1e-14)
        np.testing.assert_allclose(pose.matrix(row).T @ pose.matrix(row), np.eye(3), atol=1e-14)


def test_column_two_of_the_folded_frame_is_the_axis():
    skeleton = random_tree(3)
    t = skeleton.tables
    q = random_q(skeleton, np.random.default_rng(3))[None]
    folded, own = np.empty((1, len(skeleton), 12)), world_frames(skeleton, q)[0]
    no_unfold = np.tile(np.eye(3).ravel(), (len(skeleton), 1))
    forward_many(t.ints, t.fixed, t.couple, no_unfold, q, folded)
    for row, joint in enumerate(skeleton.joints):
        if joint.kind in (Kind.HINGE, Kind.SLIDE):
            axis = own[row, :9].reshape(3, 3) @ joint.axis
            np.testing.assert_allclose(folded[0, row, [2, 5, 8]], axis, atol=1e-13)
        np.testing.assert_allclose(folded[0, row, 9:], own[row, 9:], atol=1e-13)


def test_rows_are_independent_and_repeatable():
    skeleton = random_tree(8)
    rng = np.random.default_rng(1)
    q = np.array([random_q(skeleton, rng) for _ in range(5)])
    together = world_frames(skeleton, q)
    for t in range(5):
        np.testing.assert_array_equal(together[t], world_frames(skeleton, q[t : t + 1])[0])


def test_a_skeleton_that_cannot_move_still_has_frames():
    rest = np.eye(4)
    rest[:3, 3] = 1.0, 2.0, 3.0
    pose = Skeleton([Joint("a", rest=rest), Joint("b", "a", rest=rest)]).rest_pose()
    np.testing.assert_array_equal(pose.positions, [[1, 2, 3], [2, 4, 6]])


def test_no_rows():
    assert world_frames(random_tree(2), np.empty((0, random_tree(2).nq))).shape == (0, 9, 12)
