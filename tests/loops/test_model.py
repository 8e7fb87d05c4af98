"""Skeletons with loops: refusals, the nearest closed pose, degrees of freedom, and what changes of a skeleton keep."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import synovia as sy
from mechanisms import (
    MECHANISMS,
    NAMES,
    at,
    delta_robot,
    five_bar,
    four_bar,
    hinge,
    mechanism_of,
    slide,
    slider_crank,
    stewart_platform,
)

FREEDOM = {"four-bar": (1, 1), "slider-crank": (1, 1), "five-bar": (2, 1), "stewart": (6, 0), "delta": (3, 0)}


@pytest.mark.parametrize("name", NAMES)
def test_mobility(name: str) -> None:
    """Degrees of freedom that are left, and conditions that depend on others: a plane point loop has one."""
    mobility = mechanism_of(MECHANISMS[name][0]()).mobility
    assert (mobility.freedom, mobility.redundant) == FREEDOM[name]


def test_four_bar_in_closed_form() -> None:
    """Poses of a four-bar are those of Freudenstein's equation, in the branch of the rest pose."""
    body = four_bar()
    for seed in range(50):
        pose = body.random_pose(seed)
        crank = pose["crank"]
        elbow = np.array([np.cos(crank), np.sin(crank)])
        between = np.array([3.0, 0.0]) - elbow
        far = np.linalg.norm(between)
        angle = np.arccos((4.0 + far**2 - 9.0) / (4.0 * far))
        direction = np.arctan2(-between[1], -between[0])
        branch = direction + np.array([-angle, angle])
        off = np.abs(np.angle(np.exp(1j * (pose["rocker"] - branch))))
        rest = body.rest_pose()
        assert off.min() < 1e-9
        assert np.sign(_side(pose)) == np.sign(_side(rest))


def _side(pose: sy.Pose) -> float:
    """Return on which side of the line between its ends the joint of coupler and rocker is."""
    elbow, base = pose.position("coupler"), pose.position("rocker")
    tip = (pose.transform("rocker") @ (2.0, 0.0, 0.0, 1.0))[:3]
    return float(np.cross(tip - elbow, tip - base)[2])


def test_slider_crank_in_closed_form() -> None:
    """The slide of a slider-crank is at cos θ + sqrt(rod² - sin² θ)."""
    body = slider_crank()
    for seed in range(20):
        pose = body.random_pose(seed)
        theta = pose["crank"]
        both = np.cos(theta) + np.array([1, -1]) * np.sqrt(2.5**2 - np.sin(theta) ** 2)
        assert np.abs(2.0 + pose["slide"] - both).min() < 1e-9


@pytest.mark.compiled
def test_stewart_legs_have_their_lengths() -> None:
    """Each leg of a platform is as long as the distance of its ends."""
    body = stewart_platform()
    for seed in range(4):
        pose = body.random_pose(seed)
        for loop in body.loops:
            assert isinstance(loop, sy.Loop)
            head = (pose.transform("platform") @ np.append(loop.other_offset[:3, 3], 1.0))[:3]
            foot = pose.position(loop.first.replace("leg", "x"))
            assert np.linalg.norm(head - foot) == pytest.approx(1.1 + pose[loop.first], abs=1e-9)


def test_open_poses_are_refused() -> None:
    """A pose whose loop is open is refused, with the loop and its gap; the nearest closed one is taken."""
    body = four_bar()
    with pytest.raises(sy.InputError, match=r"loop 'four-bar' has a gap of 1\.\d+ length units.*close_loops"):
        sy.Pose(body, (0.5, 0.0, 0.5))
    closed = sy.close_loops(body, (0.5, 0.0, 0.5))
    assert mechanism_of(body).lacks(closed.q[None]).max() < 1e-9
    assert sy.Pose(body, closed.q).q.tolist() == closed.q.tolist()
    again = sy.close_loops(body, closed.q + 1e-4)
    assert np.abs(again.q - closed.q).max() < 1e-3


def test_nearest_closed_pose_by_brute_force() -> None:
    """The closed pose beside a pose that is a little open is the nearest of all, to first order."""
    body = five_bar()
    generator = np.random.default_rng(2)
    for seed in range(5):
        open_pose = body.random_pose(seed).q + generator.normal(0, 0.01, 4)
        closed = sy.close_loops(body, open_pose).q
        _, J = mechanism_of(body).rows(closed[None])
        motions = np.linalg.svd(J[0])[2][3 - 1 :]
        along = motions @ (open_pose - closed)
        assert np.abs(along).max() < 0.05 * np.linalg.norm(open_pose - closed)


def test_cannot_be_closed() -> None:
    """Bars that are too short are refused, with the loop."""
    with pytest.raises(sy.InputError, match="loop 'four-bar' cannot be closed near this pose"):
        four_bar(ground=9.0)


def test_limits_hold_in_closed_poses() -> None:
    """Closing stays within the limits; what cannot be closed within them is refused."""
    body = four_bar().with_limits({"rocker": (1.2, 1.5)})
    for seed in range(10):
        assert 1.2 - 1e-12 <= body.random_pose(seed)["rocker"] <= 1.5 + 1e-12
    with pytest.raises(sy.InputError, match="cannot be closed"):
        four_bar().with_limits({"rocker": (-0.1, 0.1), "coupler": (-0.1, 0.1)}).rest_pose()


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (lambda: sy.Loop("crank", "cranc"), "cranc"),
        (lambda: sy.Loop("crank", "rocker", "pint"), "point"),
        (lambda: sy.Loop("crank", "rocker", distance=1.0), "only the kind 'distance'"),
        (lambda: sy.Loop("crank", "rocker", "distance"), "a number above 0"),
        (lambda: sy.Loop("crank", "crank"), "frames that joints move relative to each other"),
        (lambda: sy.Loop("crank", "rocker", offset=(1, 2)), "offset"),
        (lambda: sy.Coupling({"crank": (0.0, 0.0)}), "not all of them 0"),
        (lambda: sy.Coupling({"crank": 1.0, "tip": 1.0}), "tip"),
        (lambda: sy.Coupling({}), "factors by joint"),
        (lambda: sy.Coupling({"crank": 1.0}, float("nan")), "a finite number"),
    ],
)
def test_errors(loop: Callable[[], sy.Loop | sy.Coupling], message: str) -> None:
    """Wrong loops are refused with what was expected."""
    with pytest.raises(sy.SynoviaError, match=message):
        four_bar().with_loops([loop()])


def test_changes_keep_loops() -> None:
    """Limits, roots and copies keep the loops; without their joints, a note tells that they are gone."""
    body = delta_robot()
    for other in (body.with_limits({"arm0": (-0.5, 0.5)}), body.with_root("xy"), pickle.loads(pickle.dumps(body))):
        assert [tie.label for tie in other.loops] == [tie.label for tie in body.loops]
        assert mechanism_of(other).lacks(other.rest_pose().q[None]).max() < 1e-9
        assert not any(tie.offset.flags.writeable for tie in other.loops if isinstance(tie, sy.Loop))
    assert body.with_loops([]).loops == ()
    less = body.with_joints(joint for joint in body.joints if joint.name != "arm2")
    assert len(less.loops) == 4
    assert sum("was left out" in note for note in less.notes) == 2


def test_coupled_joints() -> None:
    """A polynomial coupling holds in random poses and after ``close_loops``."""
    limit = sy.Interval(-1.0, 1.0)
    hand = sy.Skeleton([hinge("a", None, at(0), limit=limit), hinge("b", "a", at(1), limit=limit)])
    hand = hand.with_loops([sy.Coupling({"a": 1, "b": (-1, 0.5)}, name="tendon")])
    for seed in range(5):
        a, b = hand.random_pose(seed).q
        assert abs(a - b + 0.5 * b * b) < 1e-9
    with pytest.raises(sy.InputError, match=r"loop 'tendon' has a gap of 0\.5 rad"):
        sy.Pose(hand, (0.5, 0.0))


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e9])
@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_neither_the_scale_of_a_coupling_nor_the_unit_of_lengths_matters(factor: float, unit: float) -> None:
    """An equation ties the same joint values, as tightly, if it is multiplied by a number, or lengths are in mm."""
    joints = [hinge("screw", None, at(0)), slide("nut", None, at(0.5 * unit), (1, 0, 0), sy.Interval(-unit, unit))]
    tie = sy.Coupling({"screw": 0.1 * unit * factor, "nut": -factor}, 0.01 * unit * factor)
    body = sy.Skeleton(joints).with_loops([tie])
    assert mechanism_of(body).mobility[:2] == (1, 0)
    for seed in range(5):
        screw, nut = body.random_pose(seed).q
        assert 0.1 * screw - nut / unit == pytest.approx(0.01, abs=1e-9)
    with pytest.raises(sy.InputError, match="has a gap of"):
        sy.Pose(body, (0.5, 0.0))


def test_closing_one_loop_leaves_other_joints_where_they_are() -> None:
    """A straight linkage is closed from a little aside; joints that its loop does not tie do not move."""
    bars = [hinge("arm", None, at(5.0)), hinge("crank", None, at(0)), hinge("rod", "crank", at(1.0))]
    body = sy.Skeleton(bars).with_loops([sy.Loop("rod", None, offset=(1.0, 0, 0))])
    assert abs(abs(body.rest_pose()["rod"]) - np.pi) < 1e-6
    assert body.rest_pose()["arm"] == 0.0


def test_a_joint_at_a_dead_centre_is_not_locked() -> None:
    """The slide of a slider-crank stands still for an instant at rest, where the rod is straight, but it moves."""
    assert not mechanism_of(slider_crank()).mobility.still.any()
    cubic = sy.Skeleton([hinge("a", None, at(0)), hinge("b", "a", at(1))])
    cubic = cubic.with_loops([sy.Coupling({"a": 1, "b": (0, 0, -1)})])
    assert not mechanism_of(cubic).mobility.still.any()
    assert len(sy.skeletons.assemblies(cubic, leading=["b"])) == 1
