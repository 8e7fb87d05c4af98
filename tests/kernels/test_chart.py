"""The coordinates in which a limited ball moves: what a unit of each turns, and how far it may go."""

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.compiler.jit import entry
from synovia.kernels.tree.chart import write_ball_bounds, move_ball

LIMIT = sy.SwingTwist.about((1, 2, -1), x=(0.7, 1.3), y=(0.4, 1.8), twist=(-0.6, 1.1))


@entry
def bound(limit, q, box):
    """Write the box of one ball at rotation q."""
    write_ball_bounds(limit, 0, 0, (q[0], q[1], q[2], q[3]), box)


@entry
def moved(limit, q, step, out):
    """Write where a step takes q."""
    out[0], out[1], out[2], out[3] = move_ball(limit, 0, (q[0], q[1], q[2], q[3]), (step[0], step[1], step[2]))


def box_at(q):
    """Return the three rows of a ball."""
    box = np.full((3, 7), np.nan)
    bound(LIMIT.row()[None], q, box)
    return box


def after(q, step):
    """Return q after a step."""
    out = np.empty(4)
    moved(LIMIT.row()[None], q, np.asarray(step, float), out)
    return sy.Rotation.from_quat(out)


def rotation(x, y, twist):
    """Return the rotation that is swung and twisted so far."""
    frame = np.asarray(LIMIT.frame)
    turned = sy.Rotation.from_rotvec(frame @ (x, y, 0.0)) * sy.Rotation.from_rotvec(frame @ (0.0, 0.0, twist))
    return turned.as_quat()


@pytest.mark.parametrize(
    ("x", "y", "twist"), [(0.3, 0.4, 0.2), (-0.4, 0.1, -0.5), (0.1, -0.3, 1.0), (-0.2, 1.2, 0.0), (1e-5, 0, 0.3)]
)
def test_a_unit_of_each_direction_turns_as_the_box_says(x, y, twist):
    """By differences of the moved ball; inside its limits it may go both ways, and twist as far as they say."""
    q = rotation(x, y, twist)
    box = box_at(q)
    for c in range(3):
        small = 1e-6 * np.eye(3)[c]
        turn = (after(q, -small).inv() * after(q, small)).as_rotvec() / 2e-6
        np.testing.assert_allclose(box[c, 4:7], turn, atol=1e-6)
        assert box[c, 0] < 0.0 < box[c, 1]
    np.testing.assert_allclose(box[2, :2], [LIMIT.twist[0] - twist, LIMIT.twist[1] - twist], atol=1e-12)
