"""Answers and forward kinematics as differentiable functions of JAX arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import synovia as sy
from synovia.errors import UnsupportedError

jax: Any = pytest.importorskip("jax")
sj: Any = pytest.importorskip("synovia.jax")
ARM, MAN = sy.bundled("arm7"), sy.bundled("humanoid")


def problems() -> tuple[sy.IK, np.ndarray, np.ndarray, np.ndarray]:
    """Return an IK, targets, starts, and the gradients of a weighted sum of the joint values by the targets."""
    ik = sy.IK(ARM, sy.PositionGoal("tool"), tolerance=(1e-12, 1e-12))
    p = np.array([ARM.random_pose(seed).position("tool") for seed in range(20)])
    many = ik.solve_many(p, np.array([ARM.random_pose(100 + seed).q for seed in range(20)]))
    found, kinks = many.pull_back(np.tile(np.arange(7.0), (20, 1)))
    good = np.flatnonzero(~kinks & (np.abs(found).max(1) < 50.0))[:6]
    return ik, p[good], many.q[good], found[good]


def total(ik: sy.IK, p: Any, starts: Any) -> Any:
    """Return a weighted sum of the joint values."""
    return (sj.solve(ik, p, starts) @ np.arange(7.0)).sum()


def test_gradients_under_jit_and_vmap() -> None:
    ik, p, starts, wanted = problems()
    plain = jax.grad(lambda x, s: total(ik, x, s))
    for found in (plain(p, starts), jax.jit(plain)(p, starts), jax.vmap(plain)(p, starts)):
        assert np.asarray(found) == pytest.approx(wanted, rel=1e-3, abs=1e-2)
    assert sj.solve(ik, np.zeros((0, 3))).shape == (0, 7)
    assert jax.grad(lambda x: sj.solve(ik, x).sum())(np.zeros((0, 3))).shape == (0, 3)


def test_forward_kinematics() -> None:
    q = np.array([MAN.random_pose(seed).q for seed in range(3)])
    wanted = np.array([MAN.random_pose(seed).transform("left_hand") for seed in range(3)])
    assert np.asarray(sj.forward(MAN, q, ["left_hand"]))[:, 0] == pytest.approx(wanted, abs=1e-5)
    offsets = 0.01 * np.random.default_rng(1).normal(size=(len(ARM), 6))
    q = np.array([ARM.random_pose(seed).q for seed in range(3)])

    def height(q: Any, offsets: Any) -> Any:
        return sj.forward(ARM, q, ["tool"], offsets=offsets)[:, 0, 2, 3].sum()

    by_q, by_offsets = jax.jit(jax.grad(height, (0, 1)))(q, offsets)
    jacobian = ARM.random_pose(1).jacobian("tool")[2]
    straight = jax.grad(height)(q, 0.0 * offsets)
    assert np.asarray(straight)[1] == pytest.approx(jacobian, abs=1e-5)
    step = np.random.default_rng(2).normal(size=offsets.shape)
    ahead, behind = (float(height(q, offsets + s * 1e-2 * step)) for s in (1.0, -1.0))
    assert float((by_offsets * step).sum()) == pytest.approx((ahead - behind) / 2e-2, rel=1e-2)
    assert by_q.shape == q.shape


def test_second_derivatives_are_refused_by_name() -> None:
    ik, p, starts, _ = problems()
    with pytest.raises(UnsupportedError, match="second"):
        jax.grad(lambda x: jax.grad(lambda y: total(ik, y, starts))(x).sum())(p)


def test_parameters_of_the_problem() -> None:
    ik, p, starts, _ = problems()
    offsets = 1e-3 * np.random.default_rng(0).normal(size=(3, len(ARM), 6))

    def one(offset: Any) -> Any:
        return (sj.solve(ik, p, starts, parameters={"offsets": offset}) @ np.arange(7.0)).sum()

    found = jax.vmap(jax.grad(one))(offsets)
    for k in range(3):
        many = sy.IK(ARM.with_offsets(offsets[k]), ik.goals, tolerance=(1e-12, 1e-12)).solve_many(p, starts)
        wanted, _ = many.pull_back(np.tile(np.arange(7.0), (len(p), 1)), "offsets")
        moving = [row for row, joint in enumerate(ARM.joints) if joint.kind is not sy.Kind.FIXED]
        got = np.asarray(found)[k, moving]
        assert got[:, :3] == pytest.approx(wanted.sum(0).reshape(-1, 6)[:, :3], rel=1e-2, abs=1e-2)


def test_mapped_offsets_of_forward_kinematics() -> None:
    q = ARM.random_pose(0).q
    offsets = 0.01 * np.random.default_rng(1).normal(size=(3, len(ARM), 6))
    T = jax.vmap(lambda o: sj.forward(ARM, q, ["tool"], offsets=o)[0])(offsets)
    for k in range(3):
        wanted = sy.Pose(ARM.with_offsets(offsets[k]), q).transform("tool")
        assert np.asarray(T)[k] == pytest.approx(wanted, abs=1e-5)
