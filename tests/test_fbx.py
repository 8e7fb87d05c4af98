"""FBX files: nodes with any transform, takes, layers, skins, units and axes; what is damaged or foreign is refused."""

import builtins
import re
import struct
import sys
import warnings

import numpy as np
import pytest

import fbx_made
import synovia as sy
from cli_runs import run
from fbx_made import Record, ascii_of, binary_of, file_of, prop, worlds
from rigs import roles_of, skeleton_of
from synovia.errors import FileError, FormatError, MissingExtraError
from synovia.io.fbx import read, unpack
from synovia.io.load import load_clips, load_motions
from synovia.io.nodes.tree import relative_binds
from synovia.model import Kind
from synovia.surface import surface_of

pytest.importorskip("ufbx")

TURN = {"y": np.eye(3), "z": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])}  # to y up


def written(tmp_path, records, version=7400, *, binary=False, name="made.fbx"):
    path = tmp_path / name
    path.write_bytes(binary_of(records, version) if binary else ascii_of(records, version))
    return path


def far(skeleton, expected):
    """Return how far the joints at rest are from their places, as a part of the size; helpers are with these."""
    places = skeleton.rest_pose().positions
    other = np.array([expected[name.removesuffix(" scale")] for name in skeleton.joint_names])
    return np.abs(places - other).max() / max(np.abs(other).max(), 1e-3)


def some_nodes(seed, *, kinds=(0, 1, 2), uneven=True):
    """Return a tree of nodes with everything that a transform can have."""
    rng = np.random.default_rng(seed)

    def numbers(size):
        return tuple(rng.uniform(-size, size, 3).tolist())

    def scale():
        return tuple((rng.uniform(0.5, 2.0, 3) if uneven else np.full(3, rng.uniform(0.5, 2.0))).tolist())

    nodes = {}
    for row in range(7):
        nodes[f"n{row}"] = {
            "Lcl Translation": numbers(3.0), "Lcl Rotation": numbers(120.0), "Lcl Scaling": scale(),
            "PreRotation": numbers(90.0), "PostRotation": numbers(90.0), "RotationOrder": int(rng.integers(6)),
            "RotationPivot": numbers(1.0), "RotationOffset": numbers(1.0), "ScalingPivot": numbers(1.0),
            "ScalingOffset": numbers(1.0), "InheritType": int(rng.choice(kinds)),
        }  # fmt: skip
        if row:
            nodes[f"n{row}"]["parent"] = f"n{int(rng.integers(max(0, row - 2), row))}"
    return nodes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("kinds", "uneven"), [((1,), False), ((1,), True), ((0,), True), ((2,), True), ((0, 1, 2), True)]
)
def test_nodes_are_where_the_documentation_of_the_format_puts_them(tmp_path, seed, kinds, uneven):
    nodes = some_nodes(seed, kinds=kinds, uneven=uneven)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        skeleton = sy.load_skeleton(written(tmp_path, file_of(nodes)))
    assert far(skeleton, worlds(nodes)) < 1e-9


@pytest.mark.parametrize(("version", "binary"), [(7400, True), (7500, True), (7500, False)])
def test_binary_and_text_hold_the_same(tmp_path, version, binary):
    nodes, takes, mesh = fbx_made.sample()
    path = written(tmp_path, file_of(nodes, takes, mesh=mesh, version=version), version, binary=binary)
    text = written(tmp_path, file_of(nodes, takes, mesh=mesh), name="text.fbx")
    for own, other in zip(load_motions(path), load_motions(text), strict=True):
        assert (own.name, own.fps, own.skeleton.joint_names) == (other.name, other.fps, other.skeleton.joint_names)
        np.testing.assert_allclose(own.positions(), other.positions(), atol=1e-12)


@pytest.mark.parametrize("up", ["y", "z"])
@pytest.mark.parametrize("centimetres", [1.0, 100.0, 2.54])
def test_lengths_are_metres_and_y_is_up(tmp_path, up, centimetres):
    nodes = some_nodes(5, kinds=(1,), uneven=False)
    skeleton = sy.load_skeleton(written(tmp_path, file_of(nodes, up=up, centimetres=centimetres)))
    expected = {name: centimetres / 100.0 * TURN[up] @ place for name, place in worlds(nodes).items()}
    assert far(skeleton, expected) < 1e-9
    assert (skeleton.up, skeleton.meters_per_unit) == ("y", 1.0)


def test_takes_have_their_names_rates_and_layers(tmp_path):
    nodes, takes, _ = fbx_made.sample()
    path = written(tmp_path, file_of(nodes, takes, mode=11))
    swing, both = load_motions(path)
    assert (swing.name, both.name) == ("swing", "both")
    assert (swing.fps, len(swing)) == (24.0, 25)
    for frame in (0, 7, 12, 19, 24):
        t = frame / 24.0
        turned = np.interp(t, (0.0, 0.5, 1.0), (0.0, 80.0, -20.0))
        posed = {**nodes, "upper": {**nodes["upper"], "Lcl Rotation": (0.0, 0.0, turned)}}
        expected = worlds(posed)
        np.testing.assert_allclose(swing.positions()[frame], [expected[name] for name in nodes], atol=1e-6)
        lower = {**nodes["lower"], "Lcl Rotation": (5.0, -40.0 + 90.0 * t, 20.0)}
        root = {**nodes["root"], "Lcl Translation": (2.0 * t + 1.0 - t, 1.0, 0.0)}
        expected = worlds({**nodes, "root": root, "lower": lower})
        np.testing.assert_allclose(both.positions()[frame], [expected[name] for name in nodes], atol=1e-6)
    assert both.skeleton.joints[0].kind is Kind.FREE


def test_a_take_may_begin_anywhere(tmp_path):
    nodes, _, _ = fbx_made.sample()
    keys = {("upper", "Lcl Rotation", "X"): ((2.0, 3.0), (10.0, 40.0))}
    motion = sy.load_motion(written(tmp_path, file_of(nodes, {"late": [keys]}, span=(2.0, 3.0))))
    assert len(motion) == 31
    posed = {**nodes, "upper": {**nodes["upper"], "Lcl Rotation": (40.0, 0.0, 0.0)}}
    np.testing.assert_allclose(motion.positions()[-1], [worlds(posed)[name] for name in nodes], atol=1e-6)


def test_without_a_span_a_take_has_that_of_its_keys(tmp_path):
    nodes, _, _ = fbx_made.sample()
    keys = {("upper", "Lcl Rotation", "X"): ((1.0, 1.5), (0.0, 40.0))}
    assert len(sy.load_motion(written(tmp_path, file_of(nodes, {"keys": [keys]}, span=(0.0, 0.0))))) == 16


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_animated_scale(tmp_path, kind):
    nodes = {
        "root": {}, "a": {"parent": "root", "Lcl Translation": (0.0, 1.0, 0.0)},
        "b": {"parent": "a", "Lcl Translation": (0.0, 1.0, 0.5), "InheritType": kind, "Lcl Rotation": (30.0, 0.0, 0.0)},
        "c": {"parent": "b", "Lcl Translation": (0.0, 1.0, 0.0), "InheritType": kind},
    }  # fmt: skip
    keys = {("a", "Lcl Scaling", axis): ((0.0, 1.0), (1.0, 3.0)) for axis in "XYZ"}
    motion = sy.load_motion(written(tmp_path, file_of(nodes, {"grow": [keys]})))
    for frame in (0, 10, 30):
        posed = {**nodes, "a": {**nodes["a"], "Lcl Scaling": (1.0 + 2.0 * frame / 30.0,) * 3}}
        np.testing.assert_allclose(motion.positions()[frame], [worlds(posed)[name] for name in nodes], atol=1e-5)


def test_a_skin_moves_with_its_bones(tmp_path):
    nodes, takes, mesh = fbx_made.sample()
    path = written(tmp_path, file_of(nodes, takes, mesh=mesh))
    skeleton = sy.load_skeleton(path)
    surface = surface_of(path, skeleton)
    (part,) = surface.parts
    assert not surface.notes
    pose = sy.load_motion(path)[12]

    def expected(frames):
        """Vertices by their definition; Synovia's frames are those of the nodes, as nothing is scaled here."""
        out = np.zeros((3, 3))
        for bone, (matrix, at, weights) in mesh["bones"].items():
            frame = np.eye(4)
            frame[:3] = frames[skeleton.index(bone)].reshape(3, 4)
            move = frame @ np.linalg.inv(matrix)
            for vertex, weight in zip(at, weights, strict=True):
                out[vertex] += weight * (move[:3, :3] @ mesh["vertices"][vertex] + move[:3, 3])
        return out

    from synovia.model.geometry import frames_to_transforms

    for one in (skeleton.rest_pose(), pose):
        frames = frames_to_transforms(one.frames)[:, :3].reshape(len(skeleton), 12)
        own = part.placed(one.frames)
        want = expected(frames)
        off = np.linalg.norm(own[:, None] - want[None], axis=-1)
        assert np.sort(off.argmin(axis=1)).tolist() == [0, 1, 2]
        assert off.min(axis=1).max() < 1e-6


@pytest.mark.parametrize("worst", [np.inf, -np.inf, np.nan, 1e300])
def test_bind_matrices_that_are_not_finite_count_as_unknown(worst):
    matrices = {row: np.eye(3) for row in range(3)}
    matrices[1] = np.full((3, 3), worst)
    bind = relative_binds([matrices], [-1, 0, 0])
    assert np.isnan(bind[:2]).all()
    np.testing.assert_allclose(bind[2], np.eye(3))


@pytest.mark.parametrize("name", ["mixamo", "unreal"])
def test_parts_are_found_by_the_names_of_common_rigs(tmp_path, name):
    body = skeleton_of(name)
    nodes = {}
    for row, joint in enumerate(body.joints):
        nodes[joint.name] = {"Lcl Translation": tuple(100.0 * joint.rest[:3, 3])}
        if body.parents[row] >= 0:
            nodes[joint.name]["parent"] = body.joint_names[body.parents[row]]
    skeleton = sy.load_skeleton(written(tmp_path, file_of(nodes, centimetres=1.0)))
    assert set(skeleton.joint_names) == set(body.joint_names)
    assert skeleton.roles.items() >= roles_of(name).items()


def test_what_is_left_out_is_said(tmp_path):
    nodes, takes, _ = fbx_made.sample()
    nodes |= {"lamp": {"kind": "Null", "Lcl Translation": (1.0, 0.0, 0.0)}}
    takes = {"swing": [{**takes["swing"][0], ("lamp", "Lcl Translation", "X"): ((0.0, 1.0), (0.0, 1.0))}]}
    held = Record("Constraint", 9001, "Constraint::aim", "Single Aim", inner=[])
    with pytest.warns(UserWarning, match="aim"):
        skeleton = sy.load_skeleton(written(tmp_path, file_of(nodes, takes, more=[held])))
    assert "lamp" not in skeleton.joint_names
    assert any("lamp" in note for note in sy.load_motion(skeleton.source).notes)


def test_a_mesh_that_an_animated_joint_carries_has_no_animation_of_its_own(tmp_path):
    nodes, takes, _ = fbx_made.sample()
    nodes |= {"hide": {"kind": "Mesh", "parent": "upper", "InheritType": 2}}
    assert not sy.load_motion(written(tmp_path, file_of(nodes, takes))).notes


def test_the_first_take_is_what_a_file_is_about(tmp_path):
    nodes, takes, _ = fbx_made.sample()
    assert load_clips(written(tmp_path, file_of(nodes, takes))).shown == 0
    assert load_clips(written(tmp_path, file_of(nodes))).shown is None


def test_a_model_without_takes_is_converted_at_rest(tmp_path):
    nodes, _, _ = fbx_made.sample()
    path = written(tmp_path, file_of(nodes))
    ran = run("convert", path, tmp_path / "out.glb")
    assert ran.code == 0, ran.err
    skeleton, copy = sy.load_skeleton(path), sy.load_skeleton(tmp_path / "out.glb")
    rows = [copy.index(name) for name in skeleton.joint_names]
    np.testing.assert_allclose(copy.rest_pose().positions[rows], skeleton.rest_pose().positions, atol=1e-6)
    assert "no motion" in run("convert", path, tmp_path / "out.bvh").err


def test_without_bones_all_nodes_are_joints(tmp_path):
    nodes = {"base": {"kind": "Null"}, "box": {"kind": "Mesh", "parent": "base", "Lcl Translation": (1.0, 2.0, 3.0)}}
    keys = {("box", "Lcl Rotation", "Y"): ((0.0, 1.0), (0.0, 90.0))}
    skeleton = sy.load_skeleton(written(tmp_path, file_of(nodes, {"turn": [keys]})))
    assert [(joint.name, joint.kind) for joint in skeleton.joints] == [("base", Kind.BALL), ("box", Kind.BALL)]


def test_a_take_that_would_fill_the_memory_is_left_out(tmp_path):
    nodes, _, _ = fbx_made.sample()
    keys = {("upper", "Lcl Rotation", "X"): ((0.0, 1e6), (0.0, 1.0))}
    path = written(tmp_path, file_of(nodes, {"long": [keys]}, span=(0.0, 1e6)))
    with pytest.warns(UserWarning, match="'long' lasts 1,000,000 s"):
        sy.load_skeleton(path)
    with pytest.raises(FormatError, match="'long' lasts"):
        sy.load_motion(path)


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (b"", FileError, "empty"),
        (b"v 0 0 0\nf 1 1 1\n", FormatError, "is not an FBX file"),
        (b"Kaydara FBX Binary  \0\x1a\0", FormatError, "Truncated file"),
        (b"; FBX 7.4.0 project file\nObjects: {\n", FormatError, "."),
        (ascii_of(file_of({})), FormatError, "no nodes"),
    ],
)
def test_foreign_and_empty_files_are_refused(tmp_path, data, error, said):
    path = tmp_path / "odd.fbx"
    path.write_bytes(data)
    with pytest.raises(error, match=said) as caught:
        sy.load_skeleton(path)
    assert "odd.fbx" in str(caught.value)


def test_cut_files_are_refused_or_read(tmp_path):
    nodes, takes, mesh = fbx_made.sample()
    data = binary_of(file_of(nodes, takes, mesh=mesh))
    path = tmp_path / "cut.fbx"
    for length in (30, len(data) // 3, len(data) // 2, len(data) - 400):
        path.write_bytes(data[:length])
        with pytest.raises(FormatError, match="cannot be read"):
            sy.load_skeleton(path)


def test_packed_arrays_are_measured_before_they_are_unpacked(tmp_path):
    data = bytearray(binary_of(file_of({"a": {}}, more=[Record("Bomb", [0] * 50)])))
    at = bytes(data).index(b"Bomb") + 5
    data[at : at + 4] = struct.pack("<I", 2**31)
    path = tmp_path / "bomb.fbx"
    path.write_bytes(bytes(data))
    with pytest.raises(FormatError, match="packed arrays hold"):
        sy.load_skeleton(path)


@pytest.mark.parametrize(
    "program", ["import os, signal; os.abort()", "raise SystemExit(3)", "print(end='')", "while True: pass"]
)
def test_a_crash_of_the_library_is_an_error(tmp_path, monkeypatch, program):
    path = written(tmp_path, file_of({"a": {}}))
    script = tmp_path / "crash.py"
    script.write_text(program, encoding="utf-8")
    monkeypatch.setattr(unpack, "__file__", str(script))
    monkeypatch.setattr(read, "_LONGEST", 1.5)
    with pytest.raises(FormatError, match=re.escape("made.fbx: is not a readable FBX file")):
        sy.load_skeleton(path)


def test_without_ufbx_the_command_that_installs_it_is_said(tmp_path, monkeypatch):
    path = written(tmp_path, file_of({"a": {}}))
    found = builtins.__import__

    def without(name, *more):
        if name == "ufbx":
            raise ModuleNotFoundError("No module named 'ufbx'", name="ufbx")
        return found(name, *more)

    monkeypatch.setitem(sys.modules, "ufbx", None)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[fbx\]"):
        sy.load_skeleton(path)


def test_commands_take_the_file(tmp_path):
    nodes, takes, mesh = fbx_made.sample()
    path = written(tmp_path, file_of(nodes, takes, mesh=mesh))
    data = run("inspect", path, "--json").data
    assert [clip["name"] for clip in data["clips"]] == ["swing", "both"]
    out = tmp_path / "out.bvh"
    assert run("convert", path, "-o", out, "--clip", "both").code == 0
    clip = sy.load_motion(path, "both")
    np.testing.assert_allclose(sy.load_motion(out).positions()[:, 0], clip.positions()[:, 0], atol=1e-5)


def test_nothing_that_is_read_depends_on_properties_of_the_header(tmp_path):
    nodes, takes, _ = fbx_made.sample()
    records = file_of(nodes, takes)
    bare = [record for record in records if record.name != "FBXHeaderExtension"]
    assert len(load_motions(written(tmp_path, bare))) == 2
    assert prop("a", "b").name == "P"
