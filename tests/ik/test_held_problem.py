"""An ``IK`` shows what users call, and holds the packed problem."""

import synovia as sy


def test_the_names_of_an_ik_are_few() -> None:
    ik = sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"))
    names = [name for name in dir(ik) if not name.startswith("_")]
    assert len(names) <= 20, names
