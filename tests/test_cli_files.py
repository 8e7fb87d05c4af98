"""Goal files, pose files and the published schema."""

import json
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synovia as sy
from cli_runs import assert_refused, run
from synovia.files.goals import RotationSpec, json_schema, read_goals, to_matrix
from synovia.files.poses import load_pose, save_pose, values_of

HEAD = 'schema = "synovia.goals/1"\n'


def _json(tmp_path: Path, *goals: dict[str, Any], **fields: Any) -> Path:
    path = tmp_path / "goals.json"
    path.write_text(json.dumps({"schema": "synovia.goals/1", "goals": list(goals), **fields}))
    return path


def test_the_published_schema_is_the_generated_one() -> None:
    text = files("synovia").joinpath("files", "schemas", "goals-1.json").read_text(encoding="utf-8")
    assert json.loads(text) == json_schema()
    assert run("schema", "goals") == (0, text, "")


def test_every_field(tmp_path: Path) -> None:
    (tmp_path / "goals.toml").write_text(
        HEAD
        + """
        [[goals]]
        kind = "position"
        joint = "hand"
        position = [1, 2, 3.5]
        offset = [0, 0, 0.1]
        weight = 2
        priority = 1
        name = "grasp"
        ancestors = 3
        [[goals]]
        kind = "rotation"
        joint = 4
        rotation = { quat_wxyz = [0, 1, 0, 0] }
        offset_rotation = { euler = "z", degrees = [90] }
        [[goals]]
        kind = "pose"
        joint = "foot"
        position = [0, 1, 0]
        offset = [1, 0, 0]
        rotation = { matrix = [[0, -1, 0], [1, 0, 0], [0, 0, 1]] }
        [[goals]]
        kind = "pose"
        joint = "head"
        """
    )
    place, turn, pose, stay = read_goals(tmp_path / "goals.toml")
    assert isinstance(place, sy.PositionGoal)
    assert (place.joint, place.weight, place.priority, place.name) == ("hand", 2.0, 1, "grasp")
    assert place.ancestors == 3
    assert place.target is not None
    assert place.target[:3, 3].tolist() == [1.0, 2.0, 3.5]
    assert place.offset[:3, 3].tolist() == [0.0, 0.0, 0.1]
    assert isinstance(turn, sy.RotationGoal)
    assert turn.joint == 4
    assert turn.target is not None
    np.testing.assert_allclose(turn.target[:3, :3], np.diag([1, -1, -1]), atol=1e-15)
    np.testing.assert_allclose(turn.offset[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    assert isinstance(pose, sy.PoseGoal)
    assert pose.target is not None
    np.testing.assert_allclose(pose.target[:3], [[0, -1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]], atol=1e-15)
    assert pose.offset[:3, 3].tolist() == [1.0, 0.0, 0.0]
    assert stay.target is None


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    path = _json(
        tmp_path, {"kind": "pose", "joint": "hand", "position": [1, 2, 3], "rotation": {"quat_xyzw": [0, 0, 1, 0]}}
    )
    (one,) = read_goals(path)
    (tmp_path / "goals.toml").write_text(
        HEAD + "[[goals]]\nkind='pose'\njoint='hand'\nposition=[1,2,3]\nrotation={quat_xyzw=[0,0,1,0]}"
    )
    (other,) = read_goals(tmp_path / "goals.toml")
    np.testing.assert_array_equal(one.target, other.target)


@given(st.lists(st.sampled_from("xyz"), min_size=1, max_size=3), st.booleans(), st.data())
def test_euler_angles_are_those_of_scipy(axes: list[str], upper: bool, data: st.DataObject) -> None:
    order = "".join(axes)
    order = order.upper() if upper else order
    angles = [data.draw(st.floats(-400, 400)) for _ in axes]
    turn = RotationSpec(euler=order, degrees=angles)
    if any(a == b for a, b in pairwise(order)):
        with pytest.raises(sy.InputError, match="none twice in a row"):
            to_matrix(turn)
        return
    expected = sy.Rotation.from_euler(order, angles if len(angles) > 1 else angles[0], degrees=True).as_matrix()
    np.testing.assert_allclose(to_matrix(turn), expected.reshape(3, 3), atol=1e-12)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"kind": "positon", "joint": "hand"}, ["goals[1].kind", "'positon'", "Did you mean 'position'?"]),
        ({"joint": "hand"}, ["goals[1]", "'kind' is missing", "position, rotation, pose"]),
        ({"kind": "position"}, ["goals[1]", "'joint' is missing"]),
        ({"kind": "position", "joint": "hand", "positon": [1, 2, 3]}, ["goals[1]", "'positon'", "mean 'position'?"]),
        ({"kind": "position", "joint": "hand", "rotation": {}}, ["unknown field 'rotation'"]),
        ({"kind": "position", "joint": "hand", "position": [1, 2]}, ["goals[1].position", "length 3", "[1, 2]"]),
        ({"kind": "position", "joint": "hand", "position": [1, 2, "x"]}, ["goals[1].position[2]", "'x'", "float"]),
        ({"kind": "position", "joint": "hand", "position": 3}, ["goals[1].position", "3"]),
        ({"kind": "position", "joint": "hand", "position": [1, 2, 10**400]}, ["goals[1].position[2]"]),
        ({"kind": "position", "joint": "hand", "weight": 0}, ["goals[1].weight", "0.0"]),
        ({"kind": "position", "joint": "hand", "weight": "2"}, ["goals[1].weight", "'2'"]),
        ({"kind": "position", "joint": "hand", "priority": -1}, ["goals[1].priority", "-1"]),
        ({"kind": "position", "joint": "hand", "priority": 0.5}, ["goals[1].priority", "0.5"]),
        ({"kind": "position", "joint": True}, ["goals[1].joint", "True"]),
        ({"kind": "position", "joint": None}, ["goals[1].joint"]),
        ({"kind": "position", "joint": "hand", "name": ""}, ["goals[1].name"]),
        (
            {"kind": "contact", "joint": "hand", "keep": "nrmal"},
            ["goals[1].keep", "'nrmal'", "normal, point, pose", "mean 'normal'?"],
        ),
        ({"kind": "rotation", "joint": "hand", "rotation": [0, 0, 0, 1]}, ["goals[1].rotation"]),
        ({"kind": "rotation", "joint": "hand", "rotation": {}}, ["goals[1]", "rotation: expected one of", "quat_xyzw"]),
        ({"kind": "rotation", "joint": "h", "rotation": {"quat": [1]}}, ["goals[1].rotation", "mean 'quat_"]),
        (
            {"kind": "rotation", "joint": "h", "rotation": {"quat_xyzw": [0, 0, 0, 1], "euler": "x", "degrees": [1]}},
            ["goals[1]", "rotation: expected one of"],
        ),
        ({"kind": "rotation", "joint": "h", "rotation": {"euler": "xyz"}}, ["goals[1]", "degrees"]),
        ({"kind": "rotation", "joint": "h", "rotation": {"degrees": [1]}}, ["goals[1]", "rotation: expected one of"]),
        ({"kind": "rotation", "joint": "h", "rotation": {"euler": "xyw", "degrees": [1, 2, 3]}}, ["goals[1].rotation"]),
        ({"kind": "rotation", "joint": "h", "rotation": {"euler": "xyz", "degrees": [1]}}, ["goals[1]", "3 finite"]),
        ({"kind": "rotation", "joint": "h", "rotation": {"quat_xyzw": [0, 0, 0, 0]}}, ["goals[1]", "unit quaternion"]),
        (
            {"kind": "rotation", "joint": "h", "rotation": {"matrix": [[1, 0, 0], [0, 1, 0], [0, 0, -1]]}},
            ["goals[1]", "it mirrors"],
        ),
        (
            {"kind": "pose", "joint": "hand", "position": [1, 2, 3]},
            ["goals[1]", "position and rotation together", "PositionGoal"],
        ),
        (3, ["goals[1]", "object"]),
        (None, ["goals[1]", "object"]),
    ],
)
def test_mistakes_in_a_goal(goal: Any, words: list[str], tmp_path: Path) -> None:
    path = _json(tmp_path, {"kind": "position", "joint": "tool", "position": [0.4, 0.1, 0.5]}, goal)
    assert_refused(run("solve", "arm7", "-g", path), str(path), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("{", ["line 1, column 2"]),
        ("[]", ["object"]),
        ("null", ["object"]),
        ('{"schema": "synovia.goals/1"}', ["'goals' is missing"]),
        ('{"goals": [{"kind": "pose", "joint": "tool"}]}', ["'schema' is missing", "synovia.goals/1"]),
        ('{"schema": "synovia.goals/2", "goals": []}', ["'synovia.goals/2'", "'synovia.goals/1'"]),
        ('{"schema": "synovia.goals/1", "goals": []}', ["goals", "length >= 1"]),
        ('{"schema": "synovia.goals/1", "goal": []}', ["unknown field 'goal'", "Did you mean 'goals'?"]),
        (
            '{"schema": "synovia.goals/1", "schema": "synovia.goals/1", "goals": []}',
            ["'schema': expected each name once"],
        ),
        ('{"schema": "synovia.goals/1", "goals": [NaN]}', ["NaN"]),
        ('{"schema": "synovia.goals/1", "goals": [-Infinity]}', ["Infinity"]),
        ("[" * 100_000, ["nested too deeply"]),
        ("9" * 10_000, ["too many digits"]),
    ],
)
def test_mistakes_in_json(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "goals.json").write_text(text)
    assert_refused(run("solve", "arm7", "-g", tmp_path / "goals.json"), "goals.json", *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema = ", ["is not TOML"]),
        (HEAD + "[[goals]]\nkind = 'position'\nkind = 'pose'", ["is not TOML", "overwrite"]),
        (HEAD + "a b = 3", ["line 2"]),
        (HEAD + "[[goals]]\nkind='position'\njoint='tool'\nposition=[nan,0,0]", ["goals[0]", "finite numbers"]),
        (HEAD + "[[goals]]\nkind='position'\njoint='tool'\nposition=[0,inf,0]", ["goals[0]", "finite numbers"]),
        (HEAD + "[[goals]]\nkind='position'\njoint='tool'\nweight=nan", ["goals[0]", "weight"]),
        (HEAD + "[[goals]]\nkind='position'\njoint='tool'\nweight=inf", ["goals[0]", "weight"]),
        ("a = " + "[" * 100_000, ["nested too deeply"]),
        ("a = " + "9" * 10_000, ["too many digits"]),
    ],
)
def test_mistakes_in_toml(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "goals.toml").write_text(text)
    assert_refused(run("solve", "arm7", "-g", tmp_path / "goals.toml"), "goals.toml", *words)


def test_other_files_are_no_goal_files(tmp_path: Path) -> None:
    (tmp_path / "goals.yaml").write_text("a: 1")
    assert_refused(run("solve", "arm7", "-g", tmp_path / "goals.yaml"), "goals.yaml", ".toml or .json")
    assert_refused(run("solve", "arm7", "-g", tmp_path), "is a folder")


def test_an_unknown_joint_in_a_goal_file(tmp_path: Path) -> None:
    path = _json(tmp_path, {"kind": "position", "joint": "tol", "position": [0.4, 0.1, 0.5]})
    assert_refused(run("solve", "arm7", "-g", path), "no joint named 'tol'", "'tool'")


@given(st.integers(0, 2**32 - 1))
def test_a_pose_comes_back(seed: int) -> None:
    import tempfile

    body = sy.bundled("humanoid")
    pose = body.random_pose(seed)
    with tempfile.TemporaryDirectory() as folder:
        save_pose(pose, Path(folder, "a.json"))
        np.testing.assert_allclose(load_pose(Path(folder, "a.json"), body).q, pose.q, atol=1e-15)


def test_joints_that_share_a_name_are_told_apart(tmp_path: Path) -> None:
    eye = np.eye(4)
    joints = [sy.Joint("hip", kind=sy.Kind.BALL, rest=eye)]
    joints += [sy.Joint("knee", 0, sy.Kind.HINGE, axis=np.array((1.0, 0.0, 0.0))) for _ in range(2)]
    twins = sy.Skeleton(joints)
    assert twins.joint_keys == ("hip", "knee (joint 1)", "knee (joint 2)")
    pose = sy.Pose(twins, [0.0, 0.6, 0.0, 0.8, 0.25, -0.5])
    assert values_of(pose) == {"hip": [0.0, 0.6, 0.0, 0.8], "knee (joint 1)": 0.25, "knee (joint 2)": -0.5}
    save_pose(pose, tmp_path / "a.json")
    np.testing.assert_array_equal(load_pose(tmp_path / "a.json", twins).q, pose.q)


def test_joints_that_a_pose_file_does_not_name_are_at_rest(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": "synovia.pose/1", "q": {"joint2": 0.5}}')
    arm = sy.bundled("arm7")
    np.testing.assert_array_equal(load_pose(tmp_path / "a.json", arm).q, arm.rest_pose().with_values({"joint2": 0.5}).q)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("{", ["line 1"]),
        ("[]", ["expected an object with", "synovia.pose/1"]),
        ('{"schema": "synovia.goals/1", "q": {}}', ["expected an object with"]),
        ('{"schema": "synovia.pose/1"}', ["expected joint values"]),
        ('{"schema": "synovia.pose/1", "q": []}', ["expected joint values"]),
        ('{"schema": "synovia.pose/1", "q": {}, "Q": {}}', ["unknown field 'Q'"]),
        ('{"schema": "synovia.pose/1", "q": {"jiont1": 1}}', ["no joint named 'jiont1'", "'joint1'"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": "1"}}', ["joint 'joint1'", "a finite number"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": [1]}}', ["joint 'joint1'", "a finite number"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": true}}', ["joint 'joint1'", "a finite number"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": null}}', ["joint 'joint1'", "a finite number"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": NaN}}', ["NaN"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": 1e999}}', ["joint 'joint1'", "finite"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": 1' + "0" * 400 + "}}", ["joint 'joint1'", "finite"]),
        ('{"schema": "synovia.pose/1", "q": {"joint1": 1, "joint1": 2}}', ["'joint1': expected each name once"]),
        ('{"schema": "synovia.pose/1", "q": {"base": 1}}', ["joint 'base'", "fixed"]),
    ],
)
def test_mistakes_in_a_pose_file(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    command = ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--start", tmp_path / "a.json"]
    assert_refused(run(*command), "a.json", *words)


@pytest.mark.parametrize("value", ["[0, 0, 0, 0]", "[0, 0, 1]", "1", "[0, 0, 0, 2]", '[0, 0, 0, "1"]'])
def test_a_ball_needs_a_unit_quaternion(value: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": "synovia.pose/1", "q": {"spine": ' + value + "}}")
    assert_refused(run("solve", "humanoid", "-t", "head=0,1.6,0", "--start", tmp_path / "a.json"), "a.json", "spine")


def test_a_start_outside_the_limits_is_brought_inside_and_told(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": "synovia.pose/1", "q": {"joint4": 1.5}}')
    ran = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--start", tmp_path / "a.json", "--json")
    assert ran.code == 0
    assert ran.data["start_clamped"] == ["joint4"]
    ran = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--start", tmp_path / "a.json")
    assert "outside the limits of 'joint4'" in ran.out


def test_every_kind_of_goal(tmp_path: Path) -> None:
    """Entries become the goals of the classes of their kinds, with all their fields."""
    path = _json(
        tmp_path,
        {"kind": "aim", "joint": "head", "point": [0, 1, 2], "axis": [0, 0, 2], "offset": [0, 0.1, 0]},
        {"kind": "direction", "joint": "left_hand", "axis": [0, 3, 0], "direction": [0, -2, 0]},
        {"kind": "pole", "joint": "left_lower_arm", "root": "left_upper_arm", "tip": "left_hand", "name": "elbow"},
        {"kind": "distance", "joint": "left_hand", "other": "head", "minimum": 0.2, "maximum": 0.4},
        {"kind": "plane", "joint": "left_hand", "normal": [0, 2, 0], "priority": 1},
        {"kind": "range", "joint": "left_lower_leg", "lower": 0.2, "priority": 1},
        {"kind": "center_of_mass", "polygon": [[0, 0, 0], [1, 0, 0], [0, 0, 1]], "weight": 2},
        {"kind": "relative", "joint": "left_hand", "other": "hips", "rotation": {"euler": "z", "degrees": [90]}},
        {"kind": "contact", "joint": "left_foot", "normal": [0, 1, 0]},
        {"kind": "rest", "values": {"left_lower_leg": 0.3}, "joints": {"left_lower_leg": 2}},
    )
    goals = read_goals(path)
    assert [goal.kind for goal in goals] == [
        "aim", "direction", "pole", "distance", "plane", "range", "center_of_mass", "relative", "contact", "rest",
    ]  # fmt: skip
    aim, direction, pole, distance, plane, within, center, relative, contact, rest = goals
    np.testing.assert_allclose(aim.offset, [[1, 0, 0, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(direction.offset[:3, 2], (0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(direction.target[:3, 3], (0, -1, 0))
    assert pole.joints == ("left_lower_arm", "left_upper_arm", "left_hand")
    assert (distance.joints, plane.priority, center.weight) == (("left_hand", "head"), 1, 2)
    assert (within.lower, within.upper, within.priority) == (0.2, np.inf, 1)
    assert (relative.takes, contact.takes, contact.given) == (2, 3, 2)
    body = sy.bundled("humanoid")
    assert rest.resolved(body).preference[1][body.q_slice("left_lower_leg")] == 0.3
    assert_refused(
        run("solve", "humanoid", "-g", _json(tmp_path, {"kind": "aim", "joint": "head", "points": [0, 0, 1]})),
        "Did you mean 'point'",
    )


@pytest.mark.parametrize("source", ["robot.urdf", "arm7"])
def test_a_model_becomes_a_gltf_at_rest(tmp_path: Path, source: str) -> None:
    robot = tmp_path / "robot.urdf"
    robot.write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/><origin xyz="0 0 1"/></joint></robot>'
    )
    given = robot if source.endswith(".urdf") else source
    out = tmp_path / "model.glb"
    assert run("convert", given, out, "--verify").code == 0
    assert sy.load_skeleton(out).joint_names[-1] == ("j" if source.endswith(".urdf") else "tool")
    for name in ("a.bvh", "a.fbx"):
        ran = run("convert", robot, tmp_path / name)
        assert_refused(ran, "URDF files hold no motion", "its skeleton: .gltf, .glb, .toml", "synovia animate")
