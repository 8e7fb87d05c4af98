"""Assemblies of mechanisms: all of them, closed, with the values of the leading joints."""

from __future__ import annotations

import math

import numpy as np
import pytest

import synovia as sy
from mechanisms import at, delta_robot, five_bar, four_bar, hinge, mechanism_of, stewart_platform


def test_a_four_bar_closes_on_both_sides_of_its_crank() -> None:
    """Both assemblies are those of the closed form: circles of the coupler and the rocker meet in two points."""
    body = four_bar()
    pose = body.random_pose(3)
    crank = float(pose.q[0])
    pin = np.array([math.cos(crank), math.sin(crank)])
    across = np.array([3.0, 0.0]) - pin
    far = float(np.linalg.norm(across))
    along = (3.0**2 - 2.0**2 + far**2) / (2 * far)
    aside = math.sqrt(3.0**2 - along**2)
    along_axis, aside_axis = across / far, np.array([-across[1], across[0]]) / far
    expected = [pin + along * along_axis + side * aside * aside_axis for side in (1.0, -1.0)]

    found = sy.skeletons.assemblies(body, pose)
    assert len(found) == 2
    np.testing.assert_array_equal(found[0].q, pose.q)
    for other in found:
        assert other["crank"] == pytest.approx(crank, abs=1e-9)
        tip = (other.transform("coupler") @ (3.0, 0.0, 0.0, 1.0))[:2]
        assert min(np.abs(tip - each).max() for each in expected) < 1e-8
    assert sy.IK(body, sy.PositionGoal("coupler", offset=(1.5, 0.5, 0.0))).solve(
        (found[1].transform("coupler") @ (1.5, 0.5, 0.0, 1.0))[:3], start=found[1]
    ).pose.q == pytest.approx(found[1].q, abs=1e-4)


def test_a_parallelogram_has_its_twin() -> None:
    """A parallelogram closes also as an antiparallelogram."""
    bars = four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    pose = sy.close_loops(bars, (0.9, -0.9, 0.9))
    found = sy.skeletons.assemblies(bars, pose)
    assert len(found) == 2
    assert found[0]["rocker"] == pytest.approx(0.9, abs=1e-6)
    assert abs(float(found[1]["rocker"]) - 0.9) > 0.1


@pytest.mark.slow
@pytest.mark.compiled
def test_assemblies_by_the_motors() -> None:
    """Leading joints keep their values; every pose is closed, and no two are the same."""
    for body, motors, least in (
        (five_bar(), ["left", "right"], 2),
        (delta_robot(), ["arm0", "arm1", "arm2"], 2),
        (stewart_platform(), [f"leg{k}" for k in range(6)], 1),
    ):
        pose = body.random_pose(3)
        found = sy.skeletons.assemblies(body, pose, motors)
        assert len(found) >= least
        lacks = mechanism_of(body).lacks(np.array([each.q for each in found]))
        assert lacks.max() <= 1e-9
        for k, one in enumerate(found):
            for motor in motors:
                assert one[motor] == pytest.approx(pose[motor], abs=1e-9)
            assert all(np.abs(other.frames - one.frames).max() > 1e-6 for other in found[:k])


def test_assemblies_refuse_what_they_cannot_use() -> None:
    """Errors name the argument."""
    body = four_bar()
    with pytest.raises(sy.InputError, match="expected a skeleton with loops"):
        sy.skeletons.assemblies(body.with_loops([]))
    with pytest.raises(sy.InputError, match="gap"):
        sy.skeletons.assemblies(body, (0.5, 0.0, 0.5))
    with pytest.raises(sy.InputError, match="tries"):
        sy.skeletons.assemblies(body, tries=0)
    with pytest.raises(sy.InputError, match=r"leading.*1 degrees of freedom"):
        sy.skeletons.assemblies(body, leading=[])
    follower = sy.Joint("c", "b", kind=sy.Kind.HINGE, axis=np.array((0.0, 0.0, 1.0)), mimic=sy.Mimic("b"))
    twin = sy.Skeleton([hinge("a", None, at(0)), hinge("b", "a", at(1)), follower])
    assert len(sy.skeletons.assemblies(twin.with_loops([sy.Coupling({"a": 1, "b": -1})]), leading=["c"])) == 1
