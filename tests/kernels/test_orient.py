"""Joint values from wanted orientations: what a path of hinges can give, it gives."""

import numpy as np
import pytest

import synovia as sy
from synovia.kernels.tree.orient import orient
from synovia.model import Joint, Kind

AXES = ((0, 0, 1), (0, 1, 0), (1, 0, 0))


def oriented(skeleton, wanted, start):
    """Return the joint values that turn the last joint to an orientation, from where the hinges stand."""
    t = skeleton.tables
    which = np.full(len(skeleton), -1, np.int32)
    which[t.owner] = np.arange(len(t.owner))
    path = np.arange(len(skeleton), dtype=np.int32)
    goal = wanted @ t.unfold[-1].reshape(3, 3).T
    q = np.array([start])
    orient(
        t.ints, t.fixed, t.couple, t.variables, t.limits, which, path, np.array([[0, len(path)]], np.int32),
        goal.reshape(1, 1, 9), q, np.empty((len(path), 9)), np.empty((len(path), 3)),
    )  # fmt: skip
    return q[0]


@pytest.mark.parametrize("between", [None, 0, 1, 2])
def test_three_hinges_take_an_orientation_to_the_last_digits(between):
    """In the few steps that one frame may take, also where a joint of the path does not turn."""
    joints: list[Joint] = []
    for i, axis in enumerate(AXES):
        above = joints[-1].name if joints else None
        if i == between:
            joints.append(Joint("held", above))
            above = "held"
        joints.append(Joint(f"h{i}", above, Kind.HINGE, axis=axis))
    body = sy.Skeleton(joints)
    rng = np.random.default_rng(4)
    for _ in range(5):
        wanted = sy.Pose(body, rng.uniform(-0.7, 0.7, 3)).matrix("h2")[:3, :3]
        found = sy.Pose(body, oriented(body, wanted, rng.uniform(-0.1, 0.1, 3))).matrix("h2")[:3, :3]
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_hinge_at_its_limit_is_left_out_and_the_others_do_what_they_can():
    """One that would go further out takes no part; the orientation is the nearest that is left."""
    limits = (sy.Interval(-0.2, 0.2), None, None)
    body = sy.Skeleton([
        Joint(f"h{i}", f"h{i - 1}" if i else None, Kind.HINGE, axis=axis, **({"limit": limit} if limit else {}))
        for i, (axis, limit) in enumerate(zip(AXES, limits, strict=True))
    ])  # fmt: skip
    wanted = sy.Rotation.from_rotvec((0.1, 0.3, 0.9)).as_matrix()
    found = oriented(body, wanted, np.zeros(3))
    assert found[0] == 0.2

    def off(q):
        turn = sy.Pose(body, q).matrix("h2")[:3, :3].T @ wanted
        return np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))

    for step in ((0, 1e-3, 0), (0, -1e-3, 0), (0, 0, 1e-3), (0, 0, -1e-3)):
        assert off(found) < off(found + step)
