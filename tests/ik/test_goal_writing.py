"""Goal files hold every kind of goal: what is written comes back as the same goal."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia import goals as kinds
from synovia.files.goals import read_goals
from synovia.goals import Goal
from synovia.viewer.editing.first_goals import add_goals
from synovia.viewer.editing.session import Session

TURN = sy.Rotation.from_euler("xyz", [10, 20, 30], degrees=True)
FRAME = np.block([[TURN.as_matrix(), np.array([[0.1], [0.2], [0.3]])], [np.zeros((1, 3)), np.ones((1, 1))]])
TURNED = np.block([[TURN.as_matrix(), np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])  # a place counts not
PLACE = (0.1, 1.0 / 3.0, -2e-7)
BODY = sy.bundled("humanoid")
HAND, ELBOW, HEAD = "left_hand", "left_lower_arm", "head"

GOALS = [
    sy.PositionGoal(HAND, PLACE, weight=2.5, offset=(0.0, 0.0, 0.1), name='t"ö\\\x7f'),
    sy.PositionGoal(HAND),
    sy.PositionGoal(HAND, PLACE, ancestors=2),
    sy.RotationGoal(HEAD, TURN, offset=TURNED, priority=2),
    sy.PoseGoal(2, PLACE, TURN, offset=FRAME),
    sy.PoseGoal(2),
    sy.AimGoal(HEAD, PLACE, axis=(1.0, 2.0, -3.0), offset=(0.0, 0.1, 0.0)),
    sy.AimGoal(HEAD),
    sy.PoleGoal(ELBOW, PLACE),
    sy.PoleGoal(ELBOW, root=HEAD, tip=3),
    sy.DistanceGoal(HAND, HEAD, minimum=0.1, maximum=0.4, offset=PLACE, other_offset=(0.0, 0.0, 0.1)),
    sy.DistanceGoal(HAND, point=PLACE, minimum=0.25),
    sy.PlaneGoal(HAND),
    sy.PlaneGoal(HAND, PLACE, (1.0, 1.0, 0.0), offset=PLACE),
    sy.RangeGoal(ELBOW, 0.1, 1.0 / 3.0, weight=2.0),
    sy.RangeGoal(HEAD, upper=0.5, priority=1),
    sy.CenterOfMassGoal(PLACE, weight=0.5, priority=1),
    sy.CenterOfMassGoal(polygon=[(0, 0, 0), (1, 0, 0), (0, 0, 1)], up=(0.0, 1.0, 1.0), name="balance"),
    sy.RelativeGoal(HAND, HEAD, PLACE, TURN, offset=FRAME, other_offset=FRAME),
    sy.RelativeGoal(HAND, HEAD, PLACE, parts="pose"),
    sy.RelativeGoal(HAND, 0, parts="position"),
    sy.ContactGoal(HAND, PLACE, TURN, offset=FRAME),
    sy.ContactGoal(HAND),
    sy.ContactGoal(HAND, keep="point", offset=PLACE),
    sy.ContactGoal(HAND, PLACE, keep="normal", normal=(0.0, 1.0, 0.2), axis=(0.3, 1.0, 0.0)),
    sy.RestGoal(),
    sy.RestGoal(BODY.random_pose(1), weight=0.25),
    sy.RestGoal({ELBOW: BODY.random_pose(2)[ELBOW]}, joints=[ELBOW, 3]),
    sy.RestGoal(joints={ELBOW: 0.5, HEAD: 2.0}, name="calm"),
]
SAMPLES = {"joint": HAND, "point": PLACE, "direction": (1.0, 2.0, -3.0), "rotation": TURN, "number": 0.1, "length": 0.2}
# A kind that is not listed is tried with a value in every field.
GOALS += [
    kind(
        **{field.argument or field.name: SAMPLES[field.form] for field in kind.entry_fields() if field.form in SAMPLES}
    )
    for kind in kinds.kinds().values()
    if kind.fields and kind not in map(type, GOALS)
]


def _same(a: object, b: object) -> None:
    """What two goals come to on the body is the same."""
    if isinstance(a, np.ndarray):
        np.testing.assert_allclose(b, a, atol=1e-12)
    elif isinstance(a, Mapping):
        assert list(a) == list(b)
        for key in a:
            _same(a[key], b[key])
    elif isinstance(a, tuple) and isinstance(b, tuple):
        for one, other in zip(a, b, strict=True):
            _same(one, other)
    else:
        assert a == b


def _come_to(goal: Goal) -> dict[str, object]:
    """The slots of a goal on the body, where they count."""
    values = goal.resolved(BODY)._values()
    values.pop("pose", None)  # what a rest goal makes of it is its reference
    values["name"] = goal.label
    return values


def test_every_kind_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "goals.toml"
    sy.write_goals(GOALS, path)
    read = read_goals(path)
    assert len(read) == len(GOALS)
    for before, after in zip(GOALS, read, strict=True):
        assert type(after) is type(before)
        _same(_come_to(before), _come_to(after))
    with pytest.raises(sy.errors.FileError, match="exists"):
        sy.write_goals(GOALS, path)
    assert {type(goal) for goal in GOALS} == {*kinds.kinds().values()} - {sy.CustomGoal}


def test_a_page_keeps_every_kind_as_it_was() -> None:
    session = Session(BODY)
    add_goals(session.goals, GOALS)
    asked = [editor.goal(int) for editor in session.goals.editors]  # what the page solves
    assert [type(goal) for goal in asked] == [type(goal) for goal in GOALS]
    saved = [editor.goal(int, kept=True) for editor in session.goals.editors]
    for before, after in zip(GOALS, saved, strict=True):
        assert type(after) is type(before)
        _same(_by_row(before), _by_row(after))
        assert before.name == after.name
    session.goals.move(session.goals.editors[1].key, PLACE)
    moved = session.goals.editors[1].goal(int, kept=True)
    np.testing.assert_allclose(moved.target[:3, 3], PLACE)
    assert session.goals.editors[0].goal(int, kept=True).offset[2, 3] == 0.1


def _by_row(goal: Goal) -> dict[str, object]:
    """What a goal comes to, with its joints by row."""
    values = _come_to(goal)
    del values["name"]
    rows = {
        name: BODY.index(values[name])
        for name in ("joint", "other", "root", "tip")
        if isinstance(values.get(name), str | int)
    }
    return values | rows


@pytest.mark.parametrize(
    "goal",
    [
        sy.CustomGoal(lambda pose: pose.position(HAND)),
        sy.PlaneGoal(HAND, None),
        sy.RestGoal(BODY.rest_q),
        sy.RestGoal({3: 0.1}),
        sy.RestGoal(joints={3: 0.5}),
    ],
)
def test_what_a_file_cannot_say_is_refused_and_nothing_is_written(tmp_path: Path, goal: Goal) -> None:
    with pytest.raises(sy.errors.UnsupportedError, match="cannot store"):
        sy.write_goals([goal], tmp_path / "goals.toml")
    assert not list(tmp_path.iterdir())


def test_no_goals_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(sy.errors.UnsupportedError, match="at least one goal"):
        sy.write_goals([], tmp_path / "goals.toml")


def test_goals_are_read_for_a_skeleton(tmp_path: Path) -> None:
    sy.write_goals(GOALS, tmp_path / "goals.toml")
    back = sy.read_goals(tmp_path / "goals.toml", BODY)
    assert [type(goal) for goal in back] == [type(goal) for goal in GOALS]
    for nobody in (sy.PositionGoal("left_hnad"), sy.DistanceGoal(HAND, "haed", minimum=0.1), sy.RestGoal(joints=["x"])):
        sy.write_goals([sy.PositionGoal(HAND), nobody], tmp_path / "other.toml", force=True)
        assert len(sy.read_goals(tmp_path / "other.toml")) == 2
        with pytest.raises(sy.errors.FormatError, match=r"goals\[1\]"):
            sy.read_goals(tmp_path / "other.toml", BODY)
