"""An ``IK`` shows what users call, and holds the packed problem."""

import copy
import pickle

import numpy as np

import synovia as sy

TARGET = (0.4, 0.1, 0.5)


def test_the_names_of_an_ik_are_few() -> None:
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    names = [name for name in dir(ik) if not name.startswith("_")]
    assert len(names) <= 20, names


def test_copies_keep_what_was_set_on_the_problem() -> None:
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    bending = sy.IK.of(ik.problem.bending_from(np.array([0.5])))
    for other in (bending, copy.copy(bending), pickle.loads(pickle.dumps(bending))):
        assert other.problem.bent == 0.5
        assert repr(other) == repr(ik)
        assert other.solve(TARGET).reached
    assert ik.problem.bent != 0.5
