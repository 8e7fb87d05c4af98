"""Layer files: what is written comes back, and what a file gets wrong is named."""

import json
from importlib.resources import files

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from synovia.files.layers import json_schema, offset_layer, pin_layer

BODY = sy.bundled("humanoid")
TURN = sy.Rotation.from_euler("xyz", (10, 20, 30), degrees=True)


def every_kind():
    """Layers that use each field."""
    rng = np.random.default_rng(3)
    pose = BODY.random_pose(5)
    return [
        sy.Layer({"left_hand": (0.1, 0.2, 0.3)}, frames=(3, 9), blend=4, relative=True, name='wave "high"'),
        sy.Layer({"left_hand": rng.normal(size=(7, 3)), "head": TURN}, frames=(3, 9), weight=0.5),
        sy.Layer({"left_hand": ((0.0, 1.0, 0.0), TURN)}, muted=True),
        sy.Layer(
            {"look": (1.0, 1.5, 2.0)},
            [
                sy.AimGoal("head", axis=(0, 0, 1), name="look"),
                sy.PoleGoal("left_lower_arm", (1, 0, 0)),
                sy.PlaneGoal("left_hand", (0, 1, 0), (0, 1, 0), priority=1),
            ],
            frames=(0, 0),
        ),
        sy.Layer(pose=pose, joints=["left_upper_arm", "left_lower_arm"], frames=(2, 4)),
        sy.Layer(pose={4: pose, 9: {"left_lower_arm": 0.3}}, relative=False, blend=3),
    ]


def test_layers_come_back_from_their_file(tmp_path):
    layers, path = every_kind(), tmp_path / "edit.toml"
    sy.formats.write_layers(layers, path)
    back = sy.formats.read_layers(path, BODY)
    for one, other in zip(layers, back, strict=True):
        for name in ("frames", "blend", "relative", "weight", "name", "muted"):
            assert getattr(one, name) == getattr(other, name)
        assert [repr(goal) for goal in one.goals] == [repr(goal) for goal in other.goals]
        assert one.targets.keys() == other.targets.keys()
        for key, target in one.targets.items():
            for part in ("position", "rotation"):
                given, read = getattr(target, part), getattr(other.targets[key], part)
                assert (given is None) == (read is None)
                assert given is None or read == pytest.approx(given, abs=1e-15)
        assert [key.frame for key in one.keys] == [key.frame for key in other.keys]
        for key, read in zip(one.keys, other.keys, strict=True):
            assert key.values.keys() == read.values.keys()
            assert all(np.array_equal(value, read.values[joint]) for joint, value in key.values.items())
    with pytest.raises(sy.errors.FileError):
        sy.formats.write_layers(layers, path)
    sy.formats.write_layers(layers[0], path, force=True)
    assert len(sy.formats.read_layers(path)) == 1


def test_a_file_makes_the_same_clip(tmp_path):
    q = np.repeat(BODY.random_pose(1).q[None], 30, axis=0)
    clip = sy.Motion(BODY, q, 30.0)
    layers = [
        sy.Layer({"left_hand": (0.05, 0.1, 0.05)}, frames=(10, 15), blend=5, relative=True),
        sy.Layer(pose={12: BODY.random_pose(2)}, joints=["right_lower_arm"], blend=4),
    ]
    sy.formats.write_layers(layers, tmp_path / "edit.toml")
    read = sy.formats.read_layers(tmp_path / "edit.toml")
    assert np.array_equal(sy.edit(clip, layers).motion.q, sy.edit(clip, read).motion.q)


def test_the_schema_in_the_package_is_that_of_the_code():
    text = files("synovia").joinpath("files", "schemas", "edit-1.json").read_text(encoding="utf-8")
    assert json.loads(text) == json_schema()
    assert run("schema", "edit") == (0, text, "")


HEAD = 'schema = "synovia.edit/1"\n[[layers]]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('schema = "synovia.goals/1"', "synovia.edit/1"),
        ("[[layers]]", "schema"),
        (HEAD + "frame = [1, 2]", r"layers\[0\].*unknown field 'frame'.*frames"),
        (HEAD + "frames = [9, 2]", r"layers\[0\].*first and the last"),
        (HEAD + "frames = [-1, 2]", r"layers\[0\].frames"),
        (HEAD + "weight = 2.0", r"layers\[0\].weight"),
        (HEAD + '[[layers.targets]]\njoint = "head"', r"layers\[0\].*position, positions"),
        (HEAD + '[[layers.targets]]\njoint = "head"\nposition = [0, 1, nan]', "NaN|finite"),
        (HEAD + '[[layers.targets]]\njoint = "head"\nplace = [0, 1, 1]', "unknown field 'place'"),
        (HEAD + '[[layers.targets]]\njoint = "head"\nposition = [0, 1, 1]\npositions = [[0, 1, 1]]', "or positions"),
        (HEAD + '[[layers.targets]]\njoint = "hed"\nposition = [0, 1, 1]', r"layers\[0\].*hed"),
        (HEAD + '[[layers.goals]]\nkind = "look"', "aim"),
        (HEAD + '[[layers.goals]]\nkind = "aim"\njoint = "head"\npoints = [0, 0, 0]', "unknown field 'points'"),
        (HEAD + '[[layers.goals]]\nkind = "rest"', "rest goal"),
        (HEAD + "[[layers.keys]]\nframe = 2", "values"),
        (HEAD + "[[layers.keys]]\nframe = 2\nvalues = { hed = 1.0 }", "hed"),
        (HEAD + "[[layers.keys]]\nframe = 2\nvalues = { head = [1.0, 0.0] }", r"layers\[0\].*4 \(xyzw\)"),
    ],
)  # fmt: skip
def test_what_a_file_gets_wrong_is_named(tmp_path, text, message):
    path = tmp_path / "edit.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(sy.errors.FormatError, match=message):
        sy.formats.read_layers(path, BODY)


def test_an_empty_file_has_no_layers(tmp_path):
    sy.formats.write_layers([], tmp_path / "edit.toml")
    assert sy.formats.read_layers(tmp_path / "edit.toml") == []


def test_values_by_row_cannot_be_stored(tmp_path):
    with pytest.raises(sy.errors.UnsupportedError, match="by row"):
        sy.formats.write_layers(sy.Layer(pose={3: 0.2}), tmp_path / "edit.toml")


@pytest.mark.parametrize(
    ("text", "joint", "frames"),
    [
        ("left_hand@30:60", "left_hand", (30, 60)),
        ("left_hand@30", "left_hand", (30, 30)),
        ("left_hand", "left_hand", None),
        ("mixamorig:Hand@3:4", "mixamorig:Hand", (3, 4)),
        ("hand@left", "hand@left", None),
        ("hand@left@0:1", "hand@left", (0, 1)),
    ],
)
def test_a_pin_in_short(text, joint, frames):
    layer = pin_layer(text, blend=7)
    assert [goal.joint for goal in layer.goals] == [joint]
    assert (layer.frames, layer.blend, layer.relative) == (frames, 7, False)


@pytest.mark.parametrize(
    ("text", "joint", "way", "frames"),
    [
        ("hips=0,-0.08,0", "hips", (0, -0.08, 0), None),
        ("hips=1e-1, 2,3@30:60", "hips", (0.1, 2, 3), (30, 60)),
        ("a=b=0,1,2", "a=b", (0, 1, 2), None),
    ],
)
def test_an_offset_in_short(text, joint, way, frames):
    layer = offset_layer(text)
    assert list(layer.targets) == [joint]
    assert np.array_equal(layer.targets[joint].position, [way])
    assert (layer.frames, layer.relative) == (frames, True)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (pin_layer, ""),
        (pin_layer, "left_hand@60:30"),
        (offset_layer, "hips"),
        (offset_layer, "hips=1,2"),
        (offset_layer, "hips=1,2,3,4"),
        (offset_layer, "hips=1,2,nan"),
        (offset_layer, "=1,2,3"),
        (offset_layer, "hips=a,b,c@3:4"),
        (offset_layer, "hips=1,2,3@x"),
    ],
)
def test_short_forms_that_are_none_are_refused(make, text):
    with pytest.raises(sy.InputError, match="such as"):
        make(text)


def test_a_pin_in_short_is_the_goal_in_a_layer():
    q = np.stack([BODY.rest_pose().with_values({"left_lower_arm": 0.6 + 0.02 * k}).q for k in range(20)])
    clip = sy.Motion(BODY, q, 30.0)
    short = sy.edit(clip, pin_layer("left_hand@5:12", blend=3))
    long = sy.edit(clip, sy.Layer(goals=[sy.PoseGoal("left_hand")], frames=(5, 12), blend=3))
    assert np.array_equal(short.motion.q, long.motion.q)
    assert short.reached.all()


@pytest.mark.parametrize("frames", ["-10:-1", "30-60", "3.5:9", "30:", ""])
def test_frames_of_another_form_are_not_part_of_a_name(frames):
    for make, text in ((pin_layer, f"left_hand@{frames}"), (offset_layer, f"left_hand=0,1,0@{frames}")):
        with pytest.raises(sy.InputError, match="expected the first and the last frame, counted from 0"):
            make(text)
    assert pin_layer("hand@left").goals[0].joint == "hand@left"
