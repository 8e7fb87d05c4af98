"""Random problems are what they should be: every kind of goal, and poses that meet the goals drawn for them."""

import numpy as np
import pytest

import oracle
import random_problems
import synovia as sy
from synovia.goals import kinds


def test_wide_problems_draw_every_kind_of_goal_for_solvers_that_take_all():
    for name in ("lm", "full-body"):
        assert {*random_problems.honoured(sy.solvers[name])} == {*kinds()} - {"rest", "custom", "clearance"}
    assert {*random_problems.honoured(sy.solvers["aim"])} == {"aim", "direction"}
    assert {*random_problems.honoured(sy.solvers["fabrik"])} == {"position", "rotation", "pose", "pole"}


@pytest.mark.parametrize("model", ["humanoid", "arm7"])
def test_poses_meet_the_goals_that_were_drawn_for_them_and_other_poses_do_not(model):
    """By the oracle, which shares no arithmetic with the package."""
    rng = np.random.default_rng(4)
    body = random_problems.changed(sy.bundled(model), 1.0, None)
    poses = random_problems.Poses(body, "fixed", rng)
    truth, other = poses("random", 6), poses("random", 6)
    for kind in random_problems.WIDE:
        for _ in range(3):
            goal, T = random_problems.wide_goal(kind, body, truth, oracle.frames(body, truth), "g", rng)
            if goal is None:
                continue
            ik = sy.IK(body, [goal, sy.PositionGoal(0, name="still")])
            lengths, angles, beyond = [], [], []
            for q in (truth, other):
                errors = oracle.errors(ik, oracle.frames(ik.skeleton, q), {"g": T, "still": T})
                lengths.append(errors[0][:, 0].max())
                angles.append(errors[1][:, 0].max())
                beyond.append(oracle.range_errors(ik, q)[:, 0].max())
            assert lengths[0] <= 1e-9 * (1 + np.abs(T).max()), kind
            assert angles[0] <= 1e-6, kind
            assert beyond[0] == 0.0
            if kind in ("position", "pose", "aim", "direction", "center_of_mass") and goal.joint != body.joint_names[0]:
                assert max(lengths[1], angles[1]) > 0.0
