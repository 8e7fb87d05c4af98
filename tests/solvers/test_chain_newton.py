"""Long chains of balls: the nearest pose by Newton's method on three multipliers, against a general optimiser."""

import numpy as np
import pytest

import synovia as sy
from conftest import UNCOMPILED


def arc(n):
    """Return a chain of n bones, total length 1, on a gentle arc."""
    a, b = np.linspace(0.0, 0.6, n), np.linspace(0.0, 0.3, n)
    ways = np.column_stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)])
    return sy.Skeleton.chain(np.vstack([np.zeros(3), np.cumsum(ways / n, axis=0)]))


def bones(pose):
    """Return the unit vectors along the bones."""
    d = np.diff(pose.positions, axis=0)
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def test_no_other_pose_that_reaches_keeps_the_bones_nearer_to_where_they_pointed():
    """Random poses that reach the same target, moved onto it by the same method, turn their bones more."""
    chain = arc(12)
    ik = sy.IK(chain, sy.PositionGoal(12), tolerance=(1e-9, 1e-3))
    for seed in range(4 if UNCOMPILED else 6):
        start = chain.random_pose(seed)
        target = chain.random_pose(seed + 40).positions[-1]
        found = ik.solve({12: target}, start)
        assert found.reached
        kept = (bones(found.pose) * bones(start)).sum()
        if found.attempt > 0:
            continue  # the nearest pose would have a bone vanish
        assert not np.allclose(bones(found.pose), bones(start))
        for other in range(3 if UNCOMPILED else 10):
            rival = ik.solve({12: target}, chain.random_pose(100 + other)).pose
            q = (found.pose.q + 0.02 * (rival.q - found.pose.q)).reshape(-1, 4)
            near = ik.solve({12: target}, (q / np.linalg.norm(q, axis=1, keepdims=True)).ravel()).pose
            slack = 1e-7  # what may be gained by missing the target within the tolerance
            assert (bones(near) * bones(start)).sum() <= kept + slack
            assert (bones(rival) * bones(start)).sum() <= kept + slack


@pytest.mark.parametrize("n", [8, *(pytest.param(n, marks=pytest.mark.compiled) for n in (100, 1000))])
def test_steps_do_not_grow_with_the_chain_and_every_target_is_reached(n):
    """All directions, 0.1 to 0.95 of the length, to a millionth of it."""
    chain = arc(n)
    rng = np.random.default_rng(6)
    count = 20 if UNCOMPILED else 40
    ways = rng.normal(size=(count, 3))
    targets = ways / np.linalg.norm(ways, axis=1, keepdims=True) * rng.uniform(0.1, 0.95, (count, 1))
    many = sy.IK(chain, sy.PositionGoal(n), tolerance=(1e-6, 1e-3)).solve_many({n: targets})
    assert many.reached.all()
    assert np.median(many.steps) <= 12


@pytest.mark.parametrize("target", [(0, 0, 0.3), (0, 0, 0), (0, 0, -1.0), (0, 0, 1.0), (0, 0.6, 0.8), (1e-9, 0, 0.5)])
def test_straight_chains_bend_fold_and_turn_round(target):
    """Start and target on one line, the root, the whole length ahead, aside and behind."""
    chain = sy.Skeleton.chain(np.column_stack([np.zeros((21, 2)), np.linspace(0, 1, 21)]))
    first = sy.solve(chain, sy.PositionGoal(20, target))
    assert first.reached
    np.testing.assert_array_equal(first.pose.q, sy.solve(chain, sy.PositionGoal(20, target)).pose.q)


def test_bones_of_no_length_and_targets_out_of_reach():
    """Zero-length bones keep their turn; beyond reach the chain lies straight, at once."""
    points = np.column_stack([np.zeros((13, 2)), np.repeat(np.arange(7.0), 2)[:13]])
    chain = sy.Skeleton.chain(points)
    for seed in range(4):
        solution = sy.solve(
            chain, sy.PositionGoal(12, chain.random_pose(seed).positions[-1]), start=chain.random_pose(9)
        )
        assert solution.reached
        assert np.isfinite(solution.pose.q).all()
    away = sy.solve(chain, sy.PositionGoal(12, (0.0, 6.0, 8.0)))
    assert away.status is sy.Status.UNREACHABLE
    assert away.errors[0].position == pytest.approx(4.0, abs=1e-9)
