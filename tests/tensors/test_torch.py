"""Answers and forward kinematics as differentiable functions of PyTorch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError, UnknownNameError, UnsupportedError

torch: Any = pytest.importorskip("torch")
st: Any = pytest.importorskip("synovia.torch")
TIGHT = (1e-12, 1e-12)
ARM, MAN = sy.bundled("arm7"), sy.bundled("humanoid")


def problems(count: int, limit: float = 8.0) -> tuple[sy.IK, np.ndarray, np.ndarray]:
    """Return an IK, targets and answers whose derivatives have no kink and are not large."""
    ik = sy.IK(ARM, sy.PoseGoal("tool"), tolerance=TIGHT)
    T = np.array([ARM.random_pose(seed).transform("tool") for seed in range(4 * count)])
    many = ik.solve_many(T, np.array([ARM.random_pose(100 + seed).q for seed in range(4 * count)]))
    found = many.derivative()
    good = np.flatnonzero(~found.kink & (np.abs(found).max((1, 2)) < limit) & many.reached)[:count]
    return ik, T[good], many.q[good]


def test_gradients_of_answers_and_of_misses() -> None:
    ik, T, q = problems(4)
    X = torch.tensor(T, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: st.solve(ik, X, q), (X,), eps=1e-6, atol=1e-5, rtol=1e-4)
    far = T.copy()
    far[:, :3, 3] *= 2.5
    many = ik.solve_many(far, q)
    found = many.derivative()  # this was compared with answers solved again
    X = torch.tensor(far, requires_grad=True)
    st.solve(ik, X, q).sum().backward()
    assert X.grad[:, :3, 3].numpy() == pytest.approx(np.asarray(found)[..., :3].sum(1), rel=1e-5, abs=1e-5)


def test_gradients_of_forward_kinematics() -> None:
    offsets = 0.01 * np.random.default_rng(0).normal(size=(len(ARM), 6))
    q = torch.tensor(np.array([ARM.random_pose(seed).q for seed in range(2)]), requires_grad=True)
    moved = torch.tensor(offsets, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q, o: st.forward(ARM, q, ["tool", "joint4"], offsets=o), (q, moved))
    q = torch.tensor(np.array([MAN.random_pose(seed).q for seed in range(2)]), requires_grad=True)
    assert torch.autograd.gradcheck(lambda q: st.forward(MAN, q, ["left_hand", "head"]), (q,))
    wanted = MAN.random_pose(1).transform("left_hand")
    assert st.forward(MAN, q, ["left_hand"])[1, 0].detach().numpy() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("count", [0, 1, 3, 200])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_batches_of_any_size(count: int, kind: str) -> None:
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    p = np.array([ARM.random_pose(seed).position("tool") for seed in range(count)]).reshape(-1, 3)
    X = torch.tensor(p, dtype=getattr(torch, kind), requires_grad=True)
    q = st.solve(ik, X)
    q.sum().backward()
    assert q.shape == (count, 7)
    assert q.dtype == X.grad.dtype == X.dtype
    many = ik.solve_many(X.detach().numpy().astype(float))
    assert q.detach().numpy() == pytest.approx(many.q, abs=1e-6)
    wanted, _ = many.pull_back(np.ones((count, 7)))
    assert X.grad.numpy() == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_several_goals_and_leading_axes() -> None:
    ik = sy.IK(MAN, [sy.PositionGoal("left_hand"), sy.PoseGoal("right_hand")])
    poses = [MAN.random_pose(seed) for seed in range(6)]
    hands = {
        "right_hand": torch.tensor(np.array([p.transform("right_hand") for p in poses]).reshape(2, 3, 4, 4)),
        "left_hand": torch.tensor(
            np.array([p.position("left_hand") for p in poses]).reshape(2, 3, 3), requires_grad=True
        ),
    }
    q = st.solve(ik, hands)
    q.sum().backward()
    assert q.shape == (2, 3, MAN.nq)
    assert hands["left_hand"].grad.shape == (2, 3, 3)


def test_transforms_of_functions() -> None:
    ik, T, q = problems(3)
    X = torch.tensor(T)

    def total(X: Any, start: Any) -> Any:
        return st.solve(ik, X, start).sum()

    each = torch.func.vmap(torch.func.grad(total))(X, torch.tensor(q))
    whole = torch.func.grad(lambda X: st.solve(ik, X, q).sum())(X)
    assert each.numpy() == pytest.approx(whole.numpy(), abs=1e-9)
    assert torch.func.jacrev(lambda X: st.solve(ik, X, q[0]))(X[0]).shape == (7, 4, 4)
    assert torch.func.vmap(lambda q: st.forward(ARM, q, ["tool"]))(torch.tensor(q)).shape == (3, 1, 4, 4)


def test_second_derivatives_are_refused_by_name() -> None:
    ik, T, q = problems(1)
    X = torch.tensor(T, requires_grad=True)
    (first,) = torch.autograd.grad(st.solve(ik, X, q).pow(2).sum(), X, create_graph=True)
    with pytest.raises(UnsupportedError, match="second derivatives of answers"):
        first.sum().backward()


def test_wrong_input_is_refused() -> None:
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    with pytest.raises(InputError, match=r"shape of the target of 'tool'"):
        st.solve(ik, torch.zeros(2, 3))
    with pytest.raises(UnknownNameError, match="no goal 'hand'"):
        st.solve(ik, {"hand": torch.zeros(2, 3)})
    with pytest.raises(InputError, match="shape of q"):
        st.forward(ARM, torch.zeros(6))
    with pytest.raises(InputError, match="shape of offsets"):
        st.forward(ARM, torch.zeros(7), offsets=torch.zeros(3))


def test_parameters_of_the_problem() -> None:
    ik, T, q = problems(2)
    rng = np.random.default_rng(0)
    values = {
        "offsets": torch.tensor(1e-3 * rng.normal(size=(len(ARM), 6)), requires_grad=True),
        "tools": torch.tensor(1e-3 * rng.normal(size=(1, 6)), requires_grad=True),
    }

    def solved(offsets: Any, tools: Any) -> Any:
        return st.solve(ik, torch.tensor(T), starts, parameters={"offsets": offsets, "tools": tools})

    arguments = (values["offsets"], values["tools"])
    starts = torch.tensor(q)
    starts = solved(*arguments).detach()  # the derivative is that of a solve from the answer
    assert torch.autograd.gradcheck(solved, arguments, eps=1e-6, atol=1e-4, rtol=1e-4)
    each = torch.func.vmap(torch.func.grad(lambda X, o: solve_sum(ik, X, q[0], o), 1), (0, None))(
        torch.tensor(T), values["offsets"].detach()
    )
    assert each.shape == (2, len(ARM), 6)
    (whole,) = torch.autograd.grad(solve_sum(ik, torch.tensor(T), q[0], values["offsets"]), values["offsets"])
    assert each.sum(0).numpy() == pytest.approx(whole.numpy(), abs=1e-9)


def solve_sum(ik: sy.IK, X: Any, start: Any, offsets: Any) -> Any:
    """Return the sum of the joint values."""
    return st.solve(ik, X, start, parameters={"offsets": offsets}).sum()


def test_weights_and_a_posture() -> None:
    goals = [sy.PositionGoal("tool", (0.9, 0.2, 0.9)), sy.PositionGoal("joint4", (-0.3, 0.1, 0.5))]
    ik = sy.IK(ARM, goals, "lm", tolerance=TIGHT)
    start = ik.solve(start=ARM.random_pose(1)).q
    target = {"tool": np.array([[0.9, 0.2, 0.9]]), "joint4": np.array([[-0.3, 0.1, 0.5]])}
    weights = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    q = st.solve(ik, target, start, parameters={"weights": weights})
    v = torch.arange(7.0, dtype=torch.float64)
    (found,) = torch.autograd.grad((q @ v).sum(), weights)
    ahead, behind = (st.solve(ik, target, start, parameters={"weights": [1.0, 1.0 + s * 1e-4]}) for s in (1.0, -1.0))
    assert float(found[1]) == pytest.approx(float(((ahead - behind) @ v)[0]) / 2e-4, rel=1e-2, abs=1e-3)
    with pytest.raises(UnsupportedError, match="RestGoal"):
        st.solve(ik, target, parameters={"posture": torch.zeros(7)})
    with pytest.raises(InputError, match="shape of weights"):
        st.solve(ik, target, parameters={"weights": torch.ones(3)})
    with pytest.raises(InputError, match="'offsets'"):
        st.solve(ik, target, parameters={"links": torch.ones(3)})
    tool, rest = sy.PositionGoal("tool"), ARM.rest_pose().q + 0.2
    posed = sy.IK(ARM, [tool, sy.RestGoal(rest)], sy.FullBody(rest_step=1e-6), tolerance=(1e-6, 1e-6))
    reference = torch.tensor(rest.copy(), requires_grad=True)
    place = torch.tensor(ARM.random_pose(0).position("tool").copy())[None]
    q = st.solve(posed, place, parameters={"posture": reference})
    (found,) = torch.autograd.grad((q @ v).sum(), reference)
    wanted = v.numpy() @ np.asarray(posed.solve(place[0].numpy()).derivative("posture"))
    assert found.numpy() == pytest.approx(wanted, abs=1e-6)


def test_parameters_cannot_be_mapped() -> None:
    ik, T, _ = problems(1)
    with pytest.raises(UnsupportedError, match="cannot be mapped"):
        torch.func.vmap(lambda o: st.solve(ik, torch.tensor(T), parameters={"offsets": o}))(torch.zeros(3, len(ARM), 6))
