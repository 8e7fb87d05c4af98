"""An ``IK`` shows what users call, and holds the packed problem."""

import pytest

import synovia as sy


def test_the_names_of_an_ik_are_few() -> None:
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    names = [name for name in dir(ik) if not name.startswith("_")]
    assert len(names) <= 20, names


def test_only_a_packed_problem_becomes_an_ik() -> None:
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    assert sy.IK.of(ik.problem).solve((0.4, 0.1, 0.5)).reached
    for odd in (ik, None, ik.skeleton):
        with pytest.raises(sy.InputError, match=r"ik\.problem is one|pass its \.problem"):
            sy.IK.of(odd)  # pyright: ignore[reportArgumentType]
