"""Kernels of bounds and cones: values at the edges of angles, and Jacobians against finite differences."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from conftest import UNCOMPILED
from probes import Probe, random_q
from trees import random_frame, random_tree

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

BALL = sy.Skeleton([sy.Joint("ball", kind=sy.Kind.BALL), sy.Joint("tip", "ball", rest=np.eye(4), tip=True)])
PI = math.pi


def turned(*vectors):
    """Return the rotation by some rotation vectors, one after the other, each about fixed axes."""
    out = sy.Rotation.identity()
    for vector in vectors:
        out = sy.Rotation.from_rotvec(vector) * out
    return out


@pytest.mark.parametrize(
    ("bounds", "turns", "error"),
    [
        ((0.1, 0.1, None), [(0, 0, 3.0), (0.3, 0, 0)], (-0.2, 0, 0)),  # a twist leaves the tilt
        ((0.1, 0.1, None), [(0, 0, PI), (0, -0.3, 0)], (0, 0.2, 0)),
        ((0.1, 0.1, None), [(PI - 1e-9, 0, 0)], (0.1 - PI, 0, 0)),
        ((0, 0, None), [(0, 0, -2.0), (1e-9, 0, 0)], (-1e-9, 0, 0)),
        ((None, None, 0.1), [(0, 0, 0.3), (2.0, 1.0, 0)], (0, 0, -0.2)),  # a tilt leaves the twist
        ((0.1, None, 0.1), [(0, 2.5, 0), (0, 0, 0.5)], (0, 0, -0.4)),
        ((0, 0, (2.0, 3.1)), [(0, 0, -3.1)], (0, 0, -(2 * PI - 6.2))),  # the shorter way round
        ((0, 0, (2.0, 3.1)), [(0, 0, 1.0)], (0, 0, 1.0)),
        ((0, 0, (3.0, 3.5)), [(0, 0, -3.0)], (0, 0, 0)),
        ((0, 0, (-0.5, 0)), [(0, 0, PI)], (0, 0, PI - 0.5)),
        (((0, 1), (0, 1), 0), [(-0.2, -0.3, 0)], (0.2, 0.3, 0)),
    ],
)
def test_what_of_a_rotation_lies_outside(bounds, turns, error):
    goal = sy.RotationGoal("tip", np.eye(3), bounds=bounds)
    probe = Probe(sy.IK(BALL, goal, "lm"), turned(*turns).as_quat())
    np.testing.assert_allclose(probe.residual(), error, atol=1e-8)
    assert probe.jacobian()[1][0, 1] == pytest.approx(np.linalg.norm(error), abs=1e-8)


def test_tilts_are_about_axes_of_the_target_or_of_the_tool():
    """After a quarter turn about z, a tilt about the target's x axis is one about the tool's -y axis."""
    q = turned((0, 0, PI / 2), (0.3, 0, 0)).as_quat()
    for frame, error in (("target", (-0.3, 0, 0)), ("tool", (0, 0.3, 0))):
        goal = sy.RotationGoal("tip", np.eye(3), bounds=(0, 0, None), bounds_frame=frame)
        np.testing.assert_allclose(Probe(sy.IK(BALL, goal, "lm"), q).residual(), error, atol=1e-12)


def test_an_axis_against_its_target_still_has_a_finite_jacobian():
    for bounds in ((0, 0, 1.0), (0.1, 0.1, None), (None, None, 0.1)):
        goal = sy.RotationGoal("tip", np.eye(3), bounds=bounds)
        J, errors = Probe(sy.IK(BALL, goal, "lm"), turned((PI, 0, 0)).as_quat()).jacobian()
        assert np.isfinite(J).all()
        assert np.isfinite(errors).all()
    for q in ((0, 0, 0, 1), (1, 0, 0, 0)):  # on the axis of the cone, and opposite
        goal = sy.DirectionGoal("tip", direction=(0, 0, 1), cone=0.1)
        assert np.isfinite(Probe(sy.IK(BALL, goal, "lm"), np.array(q, float)).jacobian()[0]).all()


@pytest.mark.parametrize("frame", ["target", "tool"])
@settings(max_examples=6 if UNCOMPILED else 40)
@given(seed=st.integers(0, 2**31 - 1))
def test_jacobians_are_the_derivatives(frame, seed):
    """Of all kinds of joints, away from kinks of the error."""
    rng = np.random.default_rng(seed)
    body = random_tree(rng, joints=6, free=False, bounded=False)
    row, target = int(rng.integers(1, len(body))), random_frame(rng)
    entries = [0, None, float(rng.uniform(0, 0.5)), tuple(np.sort(rng.normal(size=2)))]
    bounds = [entries[k] for k in rng.permutation([0, 1, 1, 2, 2, 3])]
    direction, axis = rng.normal(size=(2, 3))
    for goal in (
        sy.PoseGoal(row, transform=target, offset=rng.normal(size=3), bounds=bounds, bounds_frame=frame),
        sy.DirectionGoal(row, axis, direction, cone=0.1),
        sy.AimGoal(row, 3 * direction, axis=axis, offset=rng.normal(size=3), cone=0.1),
    ):
        ik = sy.IK(body, goal, "lm")
        probe = Probe(ik, random_q(ik.skeleton, rng))
        turn = sy.Pose(body, probe.q).transform(row)[:3, :3]
        if probe.columns == 0 or np.diag(target[:3, :3].T @ turn).min() < -0.9:
            continue  # an axis against its target has no direction to go
        J, errors = probe.jacobian()
        slopes, _ = probe.differences()
        signs = {tuple(probe.residual(s * d) != 0) for s in (-2e-6, 2e-6) for d in np.eye(probe.columns)}
        if len(signs) > 1 or errors[0, 1] > 2.9:
            continue  # at a bound, or at half a turn
        np.testing.assert_allclose(J, slopes, atol=1e-5 * (1 + np.abs(J).max()))
