"""FABRIK, CCD and particles on joints that share a variable, such as the joints of a finger with one motor."""

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.compiler import compiled

FIRST, COUNT = (0, 30) if compiled() else (2, 4)  # number 1 takes ten thousand steps: a minute of plain Python
MOST = max(1, COUNT // 10)


def at(x, y, z):
    rest = np.eye(4)
    rest[:3, 3] = x, y, z
    return rest


def finger(kind=sy.Kind.HINGE):
    """A base that turns and a finger of four joints, of which the last three close together."""

    def joint(name, parent, offset, axis, lower, upper, **more):
        return sy.Joint(name, parent, kind, at(*offset), axis=axis, limit=sy.Interval(lower, upper), **more)

    return sy.Skeleton(
        [
            sy.Joint("base", None, sy.Kind.HINGE, at(0, 0, 0), axis=(0, 0, 1), limit=sy.Interval(-1.0, 1.0)),
            joint("spread", "base", (0.1, 0, 0.3), (0, 0, 1), -0.4, 0.4),
            joint("near", "spread", (0, 0.02, 0.1), (1, 0, 0), -0.2, 1.4),
            joint("middle", "near", (0, 0, 0.4), (1, 0, 0), -9.0, 9.0, mimic=sy.Mimic("near", 1.1, 0.1)),
            joint("far", "middle", (0, 0, 0.3), (1, 0, 0), -9.0, 9.0, mimic=sy.Mimic("near", 0.6)),
            sy.Joint("tip", "far", sy.Kind.FIXED, at(0, 0, 0.2)),
        ]
    )


def spreader():
    """A turning arm of two slides that one motor drives, one of them the other way."""
    return sy.Skeleton(
        [
            sy.Joint("turn", None, sy.Kind.HINGE, axis=(0, 0, 1), limit=sy.Interval(-2.0, 2.0)),
            sy.Joint("out", "turn", sy.Kind.SLIDE, at(0.2, 0, 0), axis=(1, 0, 0), limit=sy.Interval(0.0, 0.5)),
            sy.Joint("lift", "out", sy.Kind.SLIDE, axis=(0, 0, 1), mimic=sy.Mimic("out", -1.5, 0.2)),
            sy.Joint("tip", "lift", sy.Kind.FIXED, at(0.1, 0, 0)),
        ]
    )


def unmet(body, goal, solver, targets):
    """Return which of the targets are missed from a random pose each."""
    ik = sy.IK(body, goal, solver)
    return [k for k, target in enumerate(targets) if not ik.solve(target, body.random_pose(1000 + k)).reached]


@pytest.mark.parametrize("solver", ["fabrik", "ccd", "particles"])
@pytest.mark.parametrize("body", [finger(), spreader()], ids=["finger", "slides"])
def test_what_coupled_joints_reach_is_reached(solver, body):
    """Turns of single joints reached none of these."""
    targets = [body.random_pose(k).position("tip") for k in range(FIRST, FIRST + COUNT)]
    assert len(unmet(body, sy.PositionGoal("tip"), solver, targets)) <= MOST


@pytest.mark.parametrize("solver", ["fabrik", "ccd", "particles", sy.Ccd(stiffness=4.0)])
def test_rotations_of_coupled_joints(solver):
    body = finger()
    targets = [body.random_pose(k).transform("tip")[:3, :3] for k in range(COUNT)]
    assert len(unmet(body, sy.RotationGoal("tip"), solver, targets)) <= MOST


@pytest.mark.parametrize("solver", ["fabrik", "ccd", "particles"])
@pytest.mark.parametrize("body", [finger(), spreader()], ids=["finger", "slides"])
def test_a_miss_of_coupled_joints_is_nearly_always_as_near_as_newtons(solver, body):
    ik, newton = sy.IK(body, sy.PositionGoal("tip"), solver), sy.IK(body, sy.PositionGoal("tip"), "lm")
    rng = np.random.default_rng(3)
    worse = 0
    for k in range(COUNT):
        way = rng.normal(size=3)
        target = body.rest_pose().position("tip") + 1.5 * ik.reach * way / np.linalg.norm(way)
        start = body.random_pose(k)
        solution, best = ik.solve(target, start), newton.solve(target, start)
        assert not solution.reached
        worse += solution.errors[0].position > best.errors[0].position + 0.01 * ik.reach
    assert worse <= COUNT // 6
