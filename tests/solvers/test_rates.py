"""How many targets that a pose proves reachable are reached."""

import numpy as np
import pytest

import synovia as sy

pytestmark = pytest.mark.compiled
ENDS = ("left_hand", "right_hand", "left_foot", "right_foot", "head")


@pytest.mark.parametrize(("solver", "least"), [("lm", 100), ("fabrik", 98), ("ccd", 98), ("particles", 98)])
def test_five_ends_of_the_humanoid_with_limits_within_a_millimetre(solver, least):
    """Hands, feet and head where a random pose has them, all at once, of 100."""
    body = sy.bundled("humanoid")
    poses = [body.random_pose(1000 + i) for i in range(100)]
    targets = {end: np.array([pose.position(end) for pose in poses]) for end in ENDS}
    goals = [sy.PositionGoal(end) for end in ENDS]
    tolerance = 1e-3 / (body.meters_per_unit or 1.0)
    many = sy.IK(body, goals, sy.solvers[solver](), tolerance=(tolerance, 1e-3)).solve_many(targets)
    assert many.reached.sum() >= least


GENERAL = sorted(
    name for name, kind in sy.solvers.items() if kind.restrict is sy.Solver.restrict
)  # made for any joints


@pytest.mark.parametrize("solver", GENERAL)
@pytest.mark.parametrize("model", sy.skeletons.bundled_names())
def test_every_tip_of_every_bundled_model_is_reached(solver, model):
    """One position goal on each tip, 1e-3 of the reach, 20 poses."""
    body = sy.bundled(model)
    poses = [body.random_pose(3000 + i) for i in range(20)]
    tips = [i for i in range(len(body)) if i not in set(body.parents)]
    for tip in tips:
        goal = sy.PositionGoal(tip)
        ik = sy.IK(body, goal, sy.solvers[solver]())
        ik = sy.IK(body, goal, sy.solvers[solver](), tolerance=(1e-3 * ik.reach, 1e-3))
        assert ik.solve_many({tip: np.array([pose.position(tip) for pose in poses])}).reached.all()


@pytest.mark.parametrize("solver", ["lm", "fabrik", "particles"])
def test_a_chain_of_a_hundred_balls_of_five_degrees_each_is_reached(solver):
    """Targets from random poses within the limits, at 1e-3 of the reach; random starts would never be close."""
    limit = sy.SwingTwist.about((0.0, 0.0, 1.0), x=(np.radians(5.0),) * 2, y=(np.radians(5.0),) * 2)
    points = np.column_stack([np.zeros((101, 2)), np.linspace(0.0, 1.0, 101)])
    chain = sy.Skeleton.chain(points, limits=[limit] * 100)
    targets = np.array([chain.random_pose(5000 + i).positions[-1] for i in range(12)])
    ik = sy.IK(chain, sy.PositionGoal(100), sy.solvers[solver](), tolerance=(1e-3, 1e-3))
    assert ik.solve_many({100: targets}).reached.all()
