"""Limits as a person gives them."""

import math
import pickle

import numpy as np
import pytest

from synovia.errors import InputError
from synovia.model.limits import Interval, SwingTwist

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    "ends", [(1, 0), (NAN, 1), (0, NAN), (INF, INF), (-INF, -INF), ("a", 1), (None, 1), ([1, 2], 3)]
)
def test_intervals_that_leave_nothing_are_refused(ends):
    with pytest.raises(InputError, match="limits"):
        Interval(*ends)


def test_interval():
    limit = Interval(-0.5, 2)
    assert limit.contains(2 + 1e-10)
    assert not limit.contains(2 + 1e-8)
    assert limit.contains(2.5, slack=1.0)
    assert not limit.contains(NAN)
    assert limit.describe() == "-0.5 to 2"
    np.testing.assert_array_equal(limit.row(), [-0.5, 2, *[0] * 9])
    assert Interval(3, 3).contains(3)
    assert Interval().contains(1e300)
    assert limit == Interval(-0.5, 2.0)
    assert hash(limit) == hash(Interval(-0.5, 2.0))


@pytest.mark.parametrize(
    "bad",
    [
        {"x": (-0.1, 1)},
        {"x": (0, 3.2)},
        {"y": (0, NAN)},
        {"y": 0.5},
        {"y": (1, 1, 1)},
        {"x": ("a", 1)},
        {"twist": (1, 0)},
        {"twist": (-4, 0)},
        {"twist": (0, NAN)},
        {"twist": None},
        {"frame": np.diag([1, 1, -1])},
        {"frame": 2 * np.eye(3)},
        {"frame": np.eye(4)},
        {"frame": [[1], [1, 2]]},
    ],
)
def test_swing_twists_that_mean_nothing_are_refused(bad):
    with pytest.raises(InputError, match="limit"):
        SwingTwist(**{"x": (1, 1), "y": (1, 1), **bad})


def test_arrays_make_the_same_limit_as_tuples():
    a = SwingTwist(x=(0.1, 0.2), y=(0.3, 0.4), twist=(-1, 1))
    b = SwingTwist(x=np.array([0.1, 0.2]), y=[0.3, 0.4], twist=[-1, 1], frame=np.eye(3))
    assert a == b
    assert hash(a) == hash(b)
    assert pickle.loads(pickle.dumps(b)) == a


def test_row_and_words():
    limit = SwingTwist(x=(0, 0.5), y=(1, math.pi), twist=(-1, 1))
    np.testing.assert_allclose(limit.row(), [0, 0, 0, 1, 1e-10, 0.5, 1, math.pi, -1, 1, 1])
    assert limit.describe() == "swing x -0/+28.6, y -57.3/+180, twist -57.3 to 57.3 deg"


@pytest.mark.parametrize("bone", [(0, 0, 1), (0, 0, -3), (1, 2, 3), (0, -1e-9, 0), (1e6, 0, 0)])
def test_about_puts_the_bone_on_the_twist_axis(bone):
    frame = np.array(SwingTwist.about(bone, x=(1, 1), y=(1, 1)).frame)
    np.testing.assert_allclose(frame[:, 2], np.array(bone) / np.linalg.norm(bone), atol=1e-15)
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) > 0


def test_about_takes_the_x_axis_it_is_given():
    frame = np.array(SwingTwist.about((0, 2, 0), x=(1, 1), y=(1, 1), x_axis=(5, 5, 0)).frame)
    np.testing.assert_allclose(frame[:, 0], (1, 0, 0), atol=1e-15)


@pytest.mark.parametrize("bone", [(0, 0, 0), (NAN, 0, 1), (1, 2), "abc", None, [[1], [2, 3]]])
def test_about_refuses_bones_without_direction(bone):
    with pytest.raises(InputError, match="bone"):
        SwingTwist.about(bone, x=(1, 1), y=(1, 1))


@pytest.mark.parametrize("x_axis", [(0, 1, 0), (0, 0, 0), (NAN, 0, 0), (1, 2), "x"])
def test_about_refuses_an_x_axis_along_the_bone(x_axis):
    with pytest.raises(InputError, match="x_axis"):
        SwingTwist.about((0, 2, 0), x=(1, 1), y=(1, 1), x_axis=x_axis)
