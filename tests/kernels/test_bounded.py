"""A quadratic within bounds: the answer meets the conditions of a minimum, whichever bounds were guessed to hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synovia.kernels import layout
from synovia.kernels.compiler.jit import entry
from synovia.kernels.math.bounded import bounded_step, free_and_held_gradient, mark_held

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

SLACK = 1e-12


@entry
def stepped(H, damping, g, box, K, y, slack, out):
    """Write y and whether it is a minimum."""
    out[0] = 1.0 if bounded_step(H, damping, g, box, K, y, slack) else 0.0


@entry
def guessed(box, g, near, slack):
    """Mark what is guessed to hold."""
    mark_held(box, g, near, slack)


@entry
def shared(box, g, near, slack, out):
    """Write the largest parts that are free and held."""
    out[0], out[1] = free_and_held_gradient(box, g, near, slack)


def box_of(lower, upper):
    """Return rows with nothing marked."""
    box = np.zeros((len(lower), 7))
    box[:, layout.BOX_LOWER], box[:, layout.BOX_UPPER] = lower, upper
    return box


def problem(rng, n):
    """Return (H, g, lower, upper), some bounds at zero, some without end, some that leave nothing."""
    A = rng.normal(size=(n, n))
    lower, upper = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
    lower[rng.random(n) < 0.3] = 0.0
    upper[rng.random(n) < 0.2] = 0.0
    lower[rng.random(n) < 0.2] = -np.inf
    upper[rng.random(n) < 0.2] = np.inf
    return A @ A.T + 0.05 * np.eye(n), 3 * rng.normal(size=n), lower, upper


@pytest.mark.parametrize("marks", ["guessed", "none", "any"])
@given(seed=st.integers(0, 2**31 - 1), n=st.integers(1, 9))
def test_the_step_is_the_minimum_within_the_bounds(marks, seed, n):
    """Inside, free numbers without a gradient, held ones pushed outward: a convex problem has one such answer."""
    rng = np.random.default_rng(seed)
    H, g, lower, upper = problem(rng, n)
    damping = float(rng.choice([0.0, 0.3]))
    box = box_of(lower, upper)
    if marks == "guessed":
        guessed(box, g, 0.1, SLACK)
    elif marks == "any":
        sides = rng.choice([-1.0, 0.0, 1.0], n)
        sides[(sides < 0) & np.isinf(lower)] = 0.0
        sides[(sides > 0) & np.isinf(upper)] = 0.0
        box[:, layout.HELD] = sides
    y, out = np.empty(n), np.empty(1)
    stepped(H, damping, g, box, np.empty((n, n)), y, SLACK, out)
    assert out[0] == 1.0
    assert (y >= lower - 1e-12).all()
    assert (y <= upper + 1e-12).all()
    push = g - (H + damping * np.eye(n)) @ y
    scale = 1e-8 * (1 + np.abs(H).max() * (1 + np.abs(y).max()))
    for i in range(n):
        if y[i] < upper[i] - 1e-9:
            assert push[i] <= scale
        if y[i] > lower[i] + 1e-9:
            assert push[i] >= -scale


def test_a_quadratic_that_bends_down_is_told():
    """Unless what bends down is held at its bound."""
    H, out, y = np.diag([1.0, -1.0]), np.empty(1), np.empty(2)
    stepped(H, 0.0, np.array([0.1, 0.1]), box_of([-1.0, -1.0], [1.0, 1.0]), np.empty((2, 2)), y, SLACK, out)
    assert out[0] == 0.0
    stepped(H, 2.0, np.array([0.1, 0.1]), box_of([-1.0, -1.0], [1.0, 1.0]), np.empty((2, 2)), y, SLACK, out)
    assert out[0] == 1.0
    box = box_of([-1.0, -1.0], [1.0, 0.5])
    box[1, layout.HELD] = 1.0
    stepped(H, 0.0, np.array([0.1, 0.1]), box, np.empty((2, 2)), y, SLACK, out)
    assert out[0] == 1.0
    np.testing.assert_allclose(y, [0.1, 0.5])


@pytest.mark.parametrize(
    ("lower", "upper", "g", "held", "left", "push"),
    [
        pytest.param(-1, 1, 0.5, 0, 0.5, 0.0, id="inside"),
        pytest.param(-1, 1, 4.0, 0, 1.0, 3.0, id="farther than the bound lets it"),
        pytest.param(0, 1, -0.5, -1, 0.0, 0.5, id="at the lower bound, pushed out"),
        pytest.param(0, 1, 0.5, 0, 0.5, 0.0, id="at the lower bound, pulled in"),
        pytest.param(0, 1, 0.0, 0, 0.0, 0.0, id="at the lower bound, at rest"),
        pytest.param(0, 1, -0.05, 0, 0.0, 0.05, id="at the lower bound, pushed by rounding"),
        pytest.param(0, 1, 0.05, 0, 0.05, 0.0, id="at the lower bound, pulled by rounding"),
        pytest.param(-1, 0, 0.5, 1, 0.0, 0.5, id="at the upper bound, pushed out"),
        pytest.param(-1, 0, -0.5, 0, 0.5, 0.0, id="at the upper bound, pulled in"),
        pytest.param(-1, 0, 0.05, 0, 0.0, 0.05, id="at the upper bound, pushed by rounding"),
        pytest.param(-0.005, 1, -0.5, -1, 0.005, 0.495, id="near the lower bound"),
        pytest.param(-0.02, 1, -0.5, 0, 0.02, 0.48, id="not so near"),
        pytest.param(0, 0, 0.5, 1, 0.0, 0.5, id="between two bounds that leave nothing, up"),
        pytest.param(0, 0, -0.5, -1, 0.0, 0.5, id="and down"),
    ],
)
def test_what_touches_a_bound_and_is_pushed_against_it_holds(lower, upper, g, held, left, push):
    box, out = box_of([lower], [upper]), np.empty(2)
    box[0, layout.HELD] = 5.0
    shared(box, np.array([g], float), 0.01, 0.1, out)
    assert box[0, layout.HELD] == held
    np.testing.assert_allclose(out, [left, push], atol=1e-15)
