"""Errors: one tree, one form of message, and hints that name what exists."""

import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest

import synovia as sy
from synovia import errors
from synovia.io.base import optional_package

TREE = [
    (errors.InputError, ValueError),
    (errors.UnknownNameError, LookupError),
    (errors.FileError, OSError),
    (errors.FormatError, ValueError),
    (errors.UnsupportedError, TypeError),
    (errors.MissingExtraError, ImportError),
    (errors.UnsolvedError, RuntimeError),
]


@pytest.mark.parametrize(("mine", "builtin"), TREE)
def test_every_error_is_also_the_fitting_builtin(mine, builtin):
    error = mine("limit", where="man.bvh:3", value=[1, 2], expected="a pair", hint="swap them")
    assert isinstance(error, errors.SynoviaError)
    assert isinstance(error, builtin)
    assert str(error) == "man.bvh:3: limit: expected a pair, got [1, 2]. Swap them."
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.value) == (mine, str(error), [1, 2])


def test_the_whole_tree_is_listed_here():
    listed = {mine for mine, _ in TREE}
    assert listed == set(errors.SynoviaError.__subclasses__())


def test_parts_are_left_out_when_they_are_not_given():
    assert str(errors.InputError("is empty")) == "is empty"
    assert str(errors.InputError("is empty", value=0)) == "is empty, got 0"
    assert str(errors.InputError("is empty", where="q")) == "q: is empty"
    assert str(errors.InputError("is low", value=np.float64(-1.0))) == "is low, got -1.0"
    assert str(errors.InputError("is low", value=np.zeros(2, np.float32))) == "is low, got [0.0, 0.0]"


def test_long_values_stay_on_one_short_line():
    text = str(errors.InputError("odd", value=list(range(1000))))
    assert len(text) < 140
    assert text.endswith("...")
    assert "\n" not in str(errors.InputError("odd", value="a\nb"))


@pytest.mark.parametrize(
    ("asked", "known", "wanted"),
    [
        ("handl", ["hand.L", "hand.R", "foot"], "Did you mean 'hand.L', 'hand.R'?"),
        ("HIPS", ["hips", "spine"], "Did you mean 'hips'?"),
        ("zzz", ["hips", "spine"], "There are 'hips', 'spine'"),
        ("zzz", [f"j{i}" for i in range(9)], "There are 'j0', 'j1', 'j2', 'j3', 'j4', 'j5' and 3 more"),
        ("arm", ["left_upper_arm_twist_7"], "Did you mean 'left_upper_arm_twist_7'?"),
        ("", ["a"], "There are 'a'"),
        ("a", [], "There are none"),
    ],
)
def test_hints_name_what_is_near(asked, known, wanted):
    assert errors.did_you_mean(asked, known) == wanted


def test_hints_stay_fast_with_many_names():
    assert errors.did_you_mean("joint77", [f"joint{i}" for i in range(6000)]).startswith("Did you mean 'joint")


def test_unknown_name_reads_as_promised():
    text = str(errors.unknown_name("joint", "handl", ["hand.L", "hand.R"], "man.glb"))
    assert text == "no joint named 'handl' in man.glb. Did you mean 'hand.L', 'hand.R'?"


def test_objects_of_another_kind_are_refused_by_name(tmp_path):
    body = sy.bundled("humanoid")
    still = sy.Motion(body, [body.rest_q] * 6, 30.0)
    for call, name in (
        (lambda: sy.retarget(still, "character.glb"), "skeleton: expected a Skeleton, got str"),
        (lambda: sy.retarget(body, still), "motion: expected a Motion, got Skeleton"),
        (lambda: sy.foot_lock("walk.bvh"), "motion: expected a Motion, got str"),
        (lambda: sy.judge(body), "motion: expected a Motion, got Skeleton"),
        (lambda: sy.save_motion(body, tmp_path / "a.bvh"), "motion: expected a Motion, got Skeleton"),
        (lambda: sy.save_pose(body, tmp_path / "a.json"), "pose: expected a Pose, got Skeleton"),
    ):
        with pytest.raises(errors.InputError, match=name):
            call()


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (None, 'pip install "synovia[data]"'),
        ('{"url": "file:///a%20b/clone", "dir_info": {"editable": true}}', 'pip install -e "/a b/clone[data]"'),
        ('{"url": "file:///a/clone", "dir_info": {}}', 'pip install "/a/clone[data]"'),
        (
            '{"url": "file:///a/s.whl", "archive_info": {}}',
            'pip install "synovia[data] @ file:///a/s.whl"',
        ),
        (
            '{"url": "https://a.example/s", "vcs_info": {"vcs": "git", "commit_id": "1f"}}',
            'pip install "synovia[data] @ git+https://a.example/s@1f"',
        ),
        ("not JSON", 'pip install "synovia[data]"'),
    ],
    ids=["index", "editable", "folder", "wheel", "repository", "damaged"],
)
def test_the_command_for_an_extra_installs_from_where_the_package_came(source, command, monkeypatch):
    found = SimpleNamespace(read_text=lambda _: source)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: found)
    assert errors.install_command("data") == command


def test_a_package_that_is_missing_and_one_that_is_broken_give_their_own_reasons(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "old_arrow.py").write_text('raise ImportError("numpy.core.multiarray failed to import")\n')
    (tmp_path / "half_arrow.py").write_text("import no_such_part_of_it\n")
    with pytest.raises(errors.MissingExtraError, match=r"^tables need arrow\. Run pip install "):
        optional_package("no_such_arrow", "tables need arrow", "data")
    broken = r"installed but cannot be imported \(ImportError: numpy.core.multiarray failed.*--upgrade"
    with pytest.raises(errors.MissingExtraError, match=broken):
        optional_package("old_arrow", "tables need arrow", "data")
    with pytest.raises(errors.MissingExtraError, match="ModuleNotFoundError: No module named 'no_such_part_of_it'"):
        optional_package("half_arrow", "tables need arrow", "data")


def test_scalars_of_numpy_are_shown_as_plain_values():
    arm = sy.bundled("arm7")
    with pytest.raises(sy.errors.UnknownNameError, match=r"^no joint named 'tol' in arm7"):
        arm.index(np.str_("tol"))
    said = str(sy.errors.InputError("a", value=[np.float32(0.5), np.str_("b"), np.int64(3)], expected="numbers"))
    assert said == "a: expected numbers, got [0.5, 'b', 3]"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, None),
        (3.0, "expected numbers of shape (3,), got 3.0"),
        ([None, 1, 2], "got [None, 1, 2]"),
        ((1, 2), "got (2,)"),
    ],
)
def test_values_that_are_no_vectors_are_shown_as_given(value, says):
    if says is None:
        with pytest.raises(sy.errors.InputError, match=r"numbers of shape .*got \[None\]"):
            sy.bundled("arm7").rest_pose().with_values({"joint1": value})
        return
    with pytest.raises(sy.errors.InputError, match=re.escape(says)):
        sy.PositionGoal("tool", value)


def test_a_goal_on_a_joint_that_root_adds_says_what_to_pass():
    goals = [sy.PositionGoal("tool", (3, 1, 0.5)), sy.RangeGoal("root_x", 2, 4)]
    with pytest.raises(sy.errors.UnknownNameError, match=r"pass skeleton.with_root\('x,y,yaw'\) in place of root="):
        sy.IK(sy.bundled("arm7"), goals, root="x,y,yaw")
    assert sy.IK(sy.bundled("arm7").with_root("x,y,yaw"), goals).solve().reached
