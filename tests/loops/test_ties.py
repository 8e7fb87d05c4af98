"""Rows of loops: against their definition, their derivative by differences, and poses that close them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from mechanisms import MECHANISMS, NAMES, at, hinge, slide
from synovia.model.loops.loop import KINDS
from synovia.model.loops.mechanism import Mechanism

TURNED = np.eye(4)
TURNED[:3, :3] = Rotation.from_rotvec((0.3, -0.5, 0.4)).as_matrix()
TURNED[:3, 3] = 0.2, -0.1, 0.3


def two_arms(kind: str) -> sy.Skeleton:
    """Return two arms of a ball, a hinge, a slide and a mimic hinge each, whose tips a loop ties."""
    joints: list[sy.Joint] = [sy.Joint("base", None, kind=sy.Kind.FREE)]
    for side, x in (("left", -0.5), ("right", 0.5)):
        joints += [
            sy.Joint(f"{side}_ball", "base", kind=sy.Kind.BALL, rest=at(x)),
            hinge(f"{side}_hinge", f"{side}_ball", TURNED, (1, 2, 3)),
            sy.Joint(
                f"{side}_slide", f"{side}_hinge", kind=sy.Kind.SLIDE, rest=at(0, 0, 0.4), axis=np.array((0.0, 1, 1))
            ),
            sy.Joint(
                f"{side}_tip",
                f"{side}_slide",
                kind=sy.Kind.HINGE,
                rest=at(0.1, 0.2, 0),
                axis=np.array((0, 0, 1.0)),
                mimic=sy.Mimic(f"{side}_hinge", 0.5, 0.1),
            ),
        ]
    distance = 0.7 if kind == "distance" else None
    loop = sy.Loop("left_tip", "right_tip", kind, offset=TURNED, other_offset=(0.1, 0.0, -0.2), distance=distance)
    return sy.Skeleton(joints, name=kind, loops=[loop])


def values_of(kind: str, pose: sy.Pose) -> np.ndarray[Any, Any]:
    """Return what the loop of ``two_arms`` ties, by its definition: rows that are zero when it is closed."""
    (loop,) = pose.skeleton.loops
    assert isinstance(loop, sy.Loop)
    first, second = pose.transform("left_tip") @ loop.offset, pose.transform("right_tip") @ loop.other_offset
    apart = first[:3, :3].T @ (second[:3, 3] - first[:3, 3])
    turn = first[:3, :3].T @ second[:3, :3]
    turned = first[:3, :3] @ Rotation.from_matrix(turn).as_rotvec()
    rows = {
        "point": apart,
        "weld": [*apart, *turned],
        "hinge": [*apart, turn[0, 2], turn[1, 2]],
        "universal": [*apart, turn[2, 2]],
        "slide": [*apart[:2], *turned],
        "cylindrical": [*apart[:2], turn[0, 2], turn[1, 2]],
        "distance": [np.linalg.norm(apart) - 0.7],
    }[kind]
    return np.array(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_definition(kind: str) -> None:
    """What the loop lacks is minus the tied values, lengths in reaches."""
    body = two_arms(kind)
    mechanism = Mechanism(body)
    generator = np.random.default_rng(3)
    for _ in range(5):
        q = some_pose(body, generator)
        lack, _ = mechanism.rows(q[None])
        values = values_of(kind, sy.Pose.trusted(body, q))
        place = {"distance": 1, "slide": 2, "cylindrical": 2}.get(kind, 3)
        values[:place] /= mechanism.reach
        np.testing.assert_allclose(lack[0], -values, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_derivative_by_differences(kind: str) -> None:
    """The Jacobian rows are the derivative of the tied values, at poses that are nearly closed where they turn."""
    body = two_arms(kind)
    mechanism = Mechanism(body)
    q, lacks = mechanism.run(some_pose(body, np.random.default_rng(4))[None])
    assert lacks.max() < 1e-9
    _, J = mechanism.rows(q)
    step = 1e-6
    for k, (block, first, column) in enumerate(mechanism.variables.tolist()):
        for c in range(3 if block else 1):
            ends: list[np.ndarray[Any, Any]] = []
            for sign in (step, -step):
                moved = q[0].copy()
                if block:
                    turn = np.zeros(3)
                    turn[c] = sign
                    moved[first : first + 4] = (
                        Rotation.from_quat(moved[first : first + 4]) * Rotation.from_rotvec(turn)
                    ).as_quat()
                else:
                    angle = body.tables.limits[k, 10] != 0.0
                    moved[first] += sign * (1.0 if angle else mechanism.reach)
                ends.append(mechanism.rows(body.follow(moved)[None])[0][0])
            slope = -(ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(J[0][:, column + c], slope, atol=1e-7)


def test_coupling_rows() -> None:
    """A coupling lacks its constant less the polynomials, in its largest term; its derivative is theirs."""
    body = sy.Skeleton(
        [hinge("a", None, at(0)), slide("b", "a", at(0), (0, 0, 1)), hinge("c", "b", at(2))],
        loops=[sy.Coupling({"a": (1.0, 0.5, 0.0, -0.2), "b": -2.0, "c": (0.0, 0.3)}, 0.1)],
    )
    mechanism = Mechanism(body)
    q = np.array([[0.4, -0.3, 1.2]])
    lack, J = mechanism.rows(q)
    a, b, c = q[0]
    largest = 2.0 * mechanism.reach
    assert lack[0, 0] == pytest.approx((0.1 - (a + 0.5 * a**2 - 0.2 * a**4 - 2 * b + 0.3 * c**2)) / largest)
    wanted = np.array((1 + a - 0.8 * a**3, -2.0 * mechanism.reach, 0.6 * c)) / largest
    np.testing.assert_allclose(J[0, 0], wanted, atol=1e-12)


def test_opposite_axes_are_open() -> None:
    """A hinge whose axes point opposite ways is not closed, though their cross product is zero."""
    turned = at(0)
    turned[:3, :3] = np.diag((1.0, -1.0, -1.0))
    bars = [hinge("a", None, at(0)), hinge("b", None, at(0), (1, 0, 0))]
    body = sy.Skeleton(bars, loops=[sy.Loop("a", "b", "hinge", other_offset=turned)])
    assert Mechanism(body).lacks(np.zeros((1, 2))).max() >= 1.0


@pytest.mark.parametrize("name", NAMES)
def test_random_poses_close(name: str) -> None:
    """Random poses are closed, within the limits, the same for a seed, and not the rest pose."""
    body = MECHANISMS[name][0]()
    mechanism = Mechanism(body)
    for seed in range(4):
        pose = body.random_pose(seed)
        assert mechanism.lacks(pose.q[None]).max() <= 1e-9
        assert np.array_equal(pose.q, body.random_pose(seed).q)
        assert np.array_equal(pose.inside[0], pose.q)
        assert np.abs(pose.q - body.rest_q).max() > 1e-3


def some_pose(body: sy.Skeleton, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return joint values in general position; loops are open there."""
    q = np.zeros(body.nq)
    for row, joint in enumerate(body.joints):
        part = body.q_slice(row)
        values: Any = generator.uniform(-0.8, 0.8, part.stop - part.start)
        if joint.kind in (sy.Kind.BALL, sy.Kind.FREE):
            values[-4:] = Rotation.from_rotvec(generator.uniform(-0.6, 0.6, 3)).as_quat()
        q[part] = values
    return body.follow(q)


@pytest.mark.parametrize("kinds", [(sy.Kind.HINGE, sy.Kind.SLIDE), (sy.Kind.SLIDE, sy.Kind.HINGE)])
def test_joint_that_follows_one_of_the_other_kind(kinds: tuple[sy.Kind, sy.Kind]) -> None:
    """The derivative of a slide that follows a hinge, and of a hinge that follows a slide, is by the leader's unit."""
    lead, follow = kinds
    leader = sy.Joint("leader", None, kind=lead, axis=np.array((0, 0, 1.0)))
    follower = sy.Joint(
        "follower", "leader", kind=follow, rest=at(0.4), axis=np.array((0, 1.0, 1.0)), mimic=sy.Mimic("leader", 0.7)
    )
    tip = sy.Joint("tip", "follower", rest=at(0.1, 0.2))
    ties = [sy.Loop("tip", None, other_offset=(0.5, 0.4, 0.1)), sy.Coupling({"follower": (1.0, 0.5)})]
    body = sy.Skeleton([leader, follower, tip], loops=ties)
    mechanism = Mechanism(body)
    q = body.follow(np.array([[0.3, 0.0]]))
    _, J = mechanism.rows(q)
    step = 1e-6 if lead is sy.Kind.HINGE else 1e-6 * mechanism.reach
    ends = [mechanism.rows(body.follow(q + np.array((sign * step, 0.0))))[0][0] for sign in (1.0, -1.0)]
    np.testing.assert_allclose(J[0, :, 0], -(ends[0] - ends[1]) / 2e-6, atol=1e-8)
