"""Second derivatives of residuals: the Hessian of the cost against second differences, at every edge of an angle."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import synovia as sy
from conftest import UNCOMPILED
from probes import Probe, random_q
from synovia.kernels.compiler.jit import entry
from synovia.kernels.goals.curvature import curvature
from synovia.kernels.tree import problem as kp
from synovia.kernels.tree.forward import forward
from trees import random_frame, random_tree

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone


@entry
def curvature_at(ints, floats, scratch, targets, q, H):
    """Write what the Jacobian leaves out of the Hessian."""
    problem, work = kp.open_general(ints, floats), kp.open_work(ints, scratch)
    forward(problem.tree, q, work.frames)
    curvature(problem, q, work.frames, targets, H)


def hessian(probe):
    """Return the Hessian of e·e / 2: that of the kernel and JᵀJ."""
    H = np.full((probe.columns, probe.columns), np.nan)
    curvature_at(*probe.packed, probe.q.copy(), H)
    np.testing.assert_allclose(H, H.T, atol=1e-12 * (1 + np.abs(H).max()))
    J, _ = probe.jacobian()
    return H + J.T @ J


def bend(probe, way, h=3e-4):
    """Return the second derivative of e·e / 2 along a direction."""
    low, middle, high = (probe.residual(t * way) for t in (-h, 0.0, h))
    return (low @ low - 2 * middle @ middle + high @ high) / (2 * h * h)


def check(probe, rng, count=12):
    """The Hessian is that of second differences, along every column and along random directions."""
    H = hessian(probe)
    ways = np.concatenate([np.eye(probe.columns), rng.normal(size=(count, probe.columns))])
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)  # shorter ones would show the rounding of the residuals
    for way in ways:
        np.testing.assert_allclose(way @ H @ way, bend(probe, way), atol=1e-4 * (1 + np.abs(H).max()))


@pytest.mark.parametrize("free", [False, True], ids=["fixed root", "free root"])
@settings(max_examples=4 if UNCOMPILED else 30)
@given(seed=st.integers(0, 2**31 - 1))
@example(seed=15461)  # one column, and directions near zero
def test_the_hessian_is_that_of_second_differences(free, seed):
    """On trees of all kinds of joints, with coupled ones, where several goals with other weights share joints."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=6, free=free, bounded=False)
    rows = rng.integers(1, len(body), size=3)
    frame, turn = random_frame(rng), random_frame(rng)[:3, :3]
    goals = [
        sy.PositionGoal(int(rows[0]), 2 * rng.normal(size=3), weight=3.0, offset=rng.normal(size=3), name="a"),
        sy.RotationGoal(int(rows[1]), turn, name="b"),
        sy.PoseGoal(int(rows[2]), transform=frame, weight=0.5, offset=rng.normal(size=3), name="c"),
    ]
    ik = sy.IK(body, goals, root="free" if free else "fixed")
    probe = Probe(ik, random_q(ik.skeleton, rng))
    _, errors = probe.jacobian()
    if probe.columns == 0 or errors[:, 1].max() > 2.9:
        return  # at half a turn the cost has an edge
    check(probe, rng)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 2e-4, 1e-3, 1.0, 2.5])
@pytest.mark.parametrize("goal", ["rotation", "pose"])
def test_the_hessian_where_a_rotation_is_off_by_hardly_anything_or_by_much(angle, goal):
    """A chain of a ball, a hinge and two coupled slides, off by a turn about an axis of no joint."""
    joints = [
        sy.Joint("ball", kind=sy.Kind.BALL),
        sy.Joint("hinge", "ball", sy.Kind.HINGE, placed(1.0, 0.2, 0.0), axis=(0, 1, 0)),
        sy.Joint("slide", "hinge", sy.Kind.SLIDE, placed(0.5, 0.0, 0.3), axis=(0, 0, 1)),
        sy.Joint("more", "slide", sy.Kind.SLIDE, placed(0.2, 0.1, 0.3), axis=(1, 0, 0), mimic=sy.Mimic("slide", -0.5)),
        sy.Joint("tip", "more", rest=placed(0.4, 0.0, 0.1), tip=True),
    ]
    body = sy.Skeleton(joints)
    pose = body.random_pose(3)
    off = sy.Rotation.from_rotvec(angle * np.array([2.0, -1.0, 2.0]) / 3.0).as_matrix()
    T = pose.transform("tip").copy()
    T[:3, :3] = off @ T[:3, :3]
    if goal == "pose":
        T[:3, 3] += (0.3, -0.2, 0.1)
    wanted = sy.PoseGoal("tip", transform=T) if goal == "pose" else sy.RotationGoal("tip", T[:3, :3])
    check(Probe(sy.IK(body, wanted), pose.q.copy()), np.random.default_rng(0))


@pytest.mark.parametrize("frame", ["target", "tool"])
@settings(max_examples=4 if UNCOMPILED else 30)
@given(seed=st.integers(0, 2**31 - 1))
def test_the_hessian_of_goals_with_bounds(frame, seed):
    """What lies outside the bounds, along the axes of the target or of the frame itself."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=6, free=False, bounded=False)
    row, target = int(rng.integers(1, len(body))), random_frame(rng)
    entries = [0, None, float(rng.uniform(0, 0.5)), tuple(np.sort(rng.normal(size=2)))]
    bounds = [entries[k] for k in rng.permutation([0, 1, 1, 2, 2, 3])]
    goal = sy.PoseGoal(row, transform=target, offset=rng.normal(size=3), bounds=bounds, bounds_frame=frame)
    ik = sy.IK(body, goal)
    probe = Probe(ik, random_q(ik.skeleton, rng))
    turned = sy.Pose(body, probe.q).transform(row)[:3, :3]
    if probe.columns == 0 or np.diag(target[:3, :3].T @ turned).min() < -0.9:
        return  # an axis against its target has no direction to go
    around = [probe.residual(d) != 0 for h in (-3e-4, 3e-4) for d in h * np.eye(probe.columns)]
    if any((other != around[0]).any() for other in around):
        return  # at a bound the cost has a kink
    check(probe, rng)


@pytest.mark.parametrize("aims", [False, True], ids=["direction", "point"])
@settings(max_examples=4 if UNCOMPILED else 30)
@given(seed=st.integers(0, 2**31 - 1))
def test_the_hessian_of_cones(aims, seed):
    """What of the angle lies outside a cone about a direction, or about the direction of a point."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=6, free=False, bounded=False)
    row, axis, place = int(rng.integers(1, len(body))), rng.normal(size=3), rng.normal(size=3)
    goal = sy.AimGoal(row, place, axis=axis, cone=0.2) if aims else sy.DirectionGoal(row, axis, place, cone=0.2)
    probe = Probe(sy.IK(body, goal), random_q(body, rng))
    frame = sy.Pose(body, probe.q).transform(row)
    to = place - frame[:3, 3] if aims else place
    angle = np.arccos(np.clip(frame[:3, :3] @ axis @ to / np.linalg.norm(axis) / np.linalg.norm(to), -1, 1))
    if probe.columns and 0.25 < angle < 2.8 and np.linalg.norm(to) > 0.1:  # no kink, and a smooth angle
        check(probe, rng)


def placed(x, y, z):
    """Return a transform that only shifts."""
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T
