"""FBX out: records, transforms of nodes, new files, and copies of files; read back by ufbx where it is installed."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import readback
import rigs
import synovia as sy
from synovia.errors import FileError, FormatError, InputError, UnsupportedError
from synovia.io.fbx.document import axes_for, block_of, own_properties, read_document, set_property
from synovia.io.fbx.nodes import Chain, Course, Node, read_nodes, turns
from synovia.io.fbx.records import Record, Tree, read_tree, write_tree
from synovia.io.fbx.takes import keyed_takes, read_written_take
from synovia.io.fbx.text import read_text_tree
from synovia.io.fbx.write import _solved, _Target, write_fbx
from synovia.model.anatomy.stature import stature_of

# --- records --------------------------------------------------------------------------------------------------------

_ARRAYS = [np.int32, np.int64, np.float32, np.float64, np.bool_, np.uint8]
_VALUES = st.one_of(
    st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1).map(np.int64), st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(np.float32), st.integers(-(2**15), 2**15 - 1).map(np.int16),
    st.integers(0, 255).map(np.uint8), st.text(max_size=8), st.binary(max_size=8),
    st.builds(lambda kind, n: np.arange(n).astype(kind), st.sampled_from(_ARRAYS), st.integers(0, 99)),
)  # fmt: skip
_NAMES = st.text("abcXYZ_|", min_size=1, max_size=6)
_RECORDS = st.recursive(
    st.builds(lambda name, values: Record(name, values), _NAMES, st.lists(_VALUES, max_size=3)),
    lambda inner: st.builds(
        lambda name, values, below: Record(name, values, below, block=True),
        _NAMES, st.lists(_VALUES, max_size=2), st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


def plain(records):
    """Return records as values that can be compared, with their types."""
    return [
        (
            record.name,
            [(type(v).__name__, v.dtype.str, v.tolist()) if isinstance(v, np.ndarray) else (type(v).__name__, v)
             for v in record.values],
            plain(record.below),
            record.block,
        )
        for record in records
    ]  # fmt: skip


@given(st.lists(_RECORDS, max_size=4), st.sampled_from([7400, 7500, 7700]))
def test_records_are_read_as_they_were_written(records, version):
    tree = read_tree(write_tree(Tree(version, records)), "here")
    assert tree.version == version
    assert plain(tree.below) == plain(records)


@given(st.lists(_RECORDS, min_size=1, max_size=3), st.data())
def test_damaged_records_are_refused_or_read(records, data):
    whole = bytearray(write_tree(Tree(7400, records)))
    for _ in range(3):
        whole[data.draw(st.integers(23, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    for damaged in (bytes(whole), cut):
        with suppress(FormatError):
            read_tree(damaged, "here")


def test_text_has_the_types_of_binary_files():
    text = """; FBX 7.5.0 project file
    Objects:  {
        Model: 12, "Model::a b", "LimbNode" {
            Version: 232
            Properties70:  {
                P: "Lcl Translation", "Lcl Translation", "", "A",1,2.5,3
                P: "RotationOrder", "enum", "", "",4
                P: "Start", "KTime", "Time", "",46186158000
            }
            Shading: T
            Culling: "CullingOff"
        }
        AnimationCurve: 13, "AnimCurve::", "" {
            Default: 0
            KeyTime: *2 {
                a: 0,1539538600
            }
            KeyValueFloat: *2 {
                a: 1,2
            }
        }
        Video: 14, "Video::v", "Clip" {
            Content: ,
            "AAEC"
        }
    }
    Connections:  {
        C: "OO",13,12
    }
    """
    tree = read_text_tree(text, "here")
    assert tree.version == 7500
    model, curve, video = next(record for record in tree.below if record.name == "Objects").below
    assert plain([model])[0][1] == [("int64", 12), ("str", "a b\0\1Model"), ("str", "LimbNode")]
    properties = own_properties(model)
    assert properties == {"Lcl Translation": [1.0, 2.5, 3.0], "RotationOrder": [4], "Start": [46186158000]}
    assert [type(value) for value in properties["Lcl Translation"]] == [float] * 3
    assert type(properties["Start"][0]) is np.int64
    assert curve.value("KeyTime").dtype == np.int64
    assert curve.value("KeyValueFloat").dtype == np.float32
    assert type(curve.value("Default")) is float
    assert video.value("Content") == b"\0\1\2"
    assert read_tree(write_tree(tree), "here").version == 7500


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Objects: {", "not closed"),
        ("Objects: }", "expected a record"),
        ("A: *3 { a: 1,2 }", "3 numbers"),
        ("A: *1 { a: x }", "than numbers"),
        ('A: "open', "cannot be read"),
        ("A: {" * 100, "within each other"),
        ("; nothing", "no records"),
    ],
)
def test_malformed_text_is_refused_with_its_line(text, said):
    with pytest.raises(FormatError, match=said) as caught:
        read_text_tree(text, "here")
    assert str(caught.value).startswith("here: line 1")


# --- transforms -----------------------------------------------------------------------------------------------------

_OFFSETS = st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3).map(np.array)
_ANGLES = st.lists(st.floats(-180.0, 180.0), min_size=3, max_size=3).map(np.array)
_SCALES = st.sampled_from([(1.0, 1.0, 1.0), (0.5, 0.5, 0.5), (2.0, 2.0, 2.0)]).map(np.array)


@st.composite
def _nodes(draw):
    """Return nodes with all that a transform can have; scales are uniform, so that rotations are those of matrices."""
    out = []
    for number in range(draw(st.integers(1, 4))):
        out.append(
            Node(
                f"n{number}", draw(st.integers(-1, number - 1)), number, draw(_OFFSETS), draw(_ANGLES), draw(_SCALES),
                draw(st.integers(0, 5)), turns(0, draw(_ANGLES))[0], turns(0, draw(_ANGLES))[0],
                draw(_OFFSETS), draw(_OFFSETS), draw(_OFFSETS), draw(_OFFSETS), draw(st.integers(0, 2)),
            )
        )  # fmt: skip
    return out


@given(_nodes(), st.integers(0, 2**32 - 1))
def test_curves_bring_nodes_to_their_places(nodes, seed):
    rng = np.random.default_rng(seed)
    wanted = {
        row: _Target(Rotation.random(3, random_state=rng).as_matrix(), rng.normal(size=(3, 3)), None)
        for row in range(len(nodes))
    }
    tracks = _solved(nodes, wanted, set(wanted), 0.0)
    chain = Chain(nodes)
    for row, node in enumerate(nodes):
        course = Course(tracks[row, "Lcl Translation"], tracks[row, "Lcl Rotation"], node.scaling[None])
        chain.set(row, Course(*(np.asarray(part, np.float64) for part in course)))
        far = float(np.abs(tracks[row, "Lcl Translation"]).max()) * np.abs(chain.frame(row)[0]).max()
        assert np.abs(chain.place[row] - wanted[row].place).max() <= 2e-7 * max(far, 1.0)
        assert np.abs(chain.turn[row] - wanted[row].turn).max() <= 2e-6


@pytest.mark.parametrize("order", range(6))
def test_rotation_orders_are_those_of_their_names(order):
    name = ["xyz", "xzy", "yzx", "yxz", "zxy", "zyx"][order]  # lower case: about fixed axes, the first one first
    angles = np.array([[10.0, -50.0, 130.0]])
    by_name = angles[0, ["xyz".index(axis) for axis in name]]
    assert np.allclose(turns(order, angles)[0], Rotation.from_euler(name, by_name, degrees=True).as_matrix())


# --- files ----------------------------------------------------------------------------------------------------------


def moving(body, frames=6, fps=30.0, seed=0, name="wave"):
    """Return a motion in which every joint and the whole body move."""
    free = body.with_root("free")
    rng = np.random.default_rng(seed)
    q = np.array([free.rest_pose().q] + [free.random_pose(seed + k).q for k in range(frames - 1)])
    at = free.q_slice(0).start
    if free.joints[0].kind is sy.Kind.FREE:
        q[:, at : at + 3] = rng.normal(size=(frames, 3)) * 0.2 * free.size
    return sy.Motion(free, q, fps, name=name)


def body_with(**options):
    """Return a small body with rest rotations, a fixed tip and a slide."""
    turned = np.eye(4)
    turned[:3, :3] = Rotation.from_euler("xyz", [0.3, -1.0, 2.0]).as_matrix()
    turned[:3, 3] = 1.0, 2.0, -0.5
    ahead = np.eye(4)
    ahead[:3, 3] = 0.0, 0.7, 0.0
    joints = [
        sy.Joint("hips", kind=sy.Kind.FREE),
        sy.Joint("chest", "hips", kind=sy.Kind.BALL, rest=turned),
        sy.Joint("slide", "chest", kind=sy.Kind.SLIDE, rest=ahead, axis=(0.0, 0.6, 0.8)),
        sy.Joint("knee", "slide", kind=sy.Kind.HINGE, rest=turned, axis=(1.0, 0.0, 0.0)),
        sy.Joint("tip", "knee", kind=sy.Kind.FIXED, rest=ahead, tip=True),
    ]
    return sy.Skeleton(joints, name="body", **{"meters_per_unit": 0.01, **options})


def assert_shown(motion, path, *, unit, axes=None):
    """Check that ufbx shows the places of a motion, after the unit and the axes of the file."""
    rate, takes, names, places = readback.by_ufbx(path)
    assert rate == pytest.approx(motion.fps, rel=1e-9)
    assert len(places) == len(motion)
    rows = [row for row, name in enumerate(motion.skeleton.joint_names) if name in names]
    assert set(motion.skeleton.joint_names) - set(names) <= {"root"}
    seen = places[:, [names.index(motion.skeleton.joint_names[row]) for row in rows]]
    own = motion.positions()[:, rows] * unit
    own = own if axes is None else own @ axes.T
    assert np.abs(seen - own).max() <= 1e-6 * motion.skeleton.size * unit
    return takes


@pytest.mark.parametrize("fps", [30.0, 24000.0 / 1001.0, 120.00480019, 12.5])
def test_new_file_has_places_names_and_rate(tmp_path, fps):
    motion = moving(body_with(), fps=fps)
    sy.save_motion(motion, tmp_path / "new.fbx")
    assert sy.formats.verify_file(motion, tmp_path / "new.fbx").holds
    assert assert_shown(motion, tmp_path / "new.fbx", unit=1.0) == ["wave"]
    document = read_document(tmp_path / "new.fbx")
    assert document.meters_per_unit == 0.01
    assert [node.name for node in read_nodes(document)] == list(motion.skeleton.joint_names)


@pytest.mark.parametrize("up", ["x", "-x", "y", "-y", "z", "-z"])
def test_new_file_keeps_axes_and_real_size(tmp_path, up):
    motion = moving(body_with(up=up, meters_per_unit=0.5))
    sy.save_motion(motion, tmp_path / "new.fbx")
    assert_shown(motion, tmp_path / "new.fbx", unit=50.0)  # centimetres
    document = read_document(tmp_path / "new.fbx")
    assert np.array_equal(document.axes, axes_for(up))
    assert np.linalg.det(document.axes) == pytest.approx(1.0)
    back = sy.load_motion(tmp_path / "new.fbx").positions()
    own = motion.positions() @ axes_for(up).T * 0.5  # metres, y up
    assert np.abs(back - own).max() <= 1e-6 * motion.skeleton.size


def test_new_file_has_one_root_rest_and_no_jumps(tmp_path):
    joints = [sy.Joint("a", kind=sy.Kind.BALL), sy.Joint("b", "a", kind=sy.Kind.BALL, rest=_at(0, 1, 0))]
    joints += [sy.Joint("root", kind=sy.Kind.BALL, rest=_at(3, 0, 0)), sy.Joint("c", "root", rest=_at(0, 1, 0))]
    body = sy.Skeleton(joints, name="two", meters_per_unit=0.01)
    turn = Rotation.from_euler("y", np.linspace(0, 400, 81)[:, None], degrees=True).as_quat()
    q = np.tile(body.rest_pose().q, (81, 1))
    q[:, body.q_slice("a")] = turn
    motion = sy.Motion(body, q, 30.0)
    sy.save_motion(motion, tmp_path / "new.fbx", verify=True)
    document = read_document(tmp_path / "new.fbx")
    nodes = read_nodes(document)
    assert [(node.name, node.parent) for node in nodes] == [
        ("root_", -1), ("a", 0), ("b", 1), ("root", 0), ("c", 3)
    ]  # fmt: skip
    assert all(np.all(node.rotation == 0.0) for node in nodes)
    take = read_written_take(document, nodes, keyed_takes(document, nodes))
    assert np.abs(np.diff(take.courses[1].rotation, axis=0)).max() < 10.0
    assert take.courses[1].rotation[-1, 1] == pytest.approx(400.0, rel=1e-6)
    assert len(document.of("Pose")) == 1


def _at(*place):
    out = np.eye(4)
    out[:3, 3] = place
    return out


def test_animated_scale_is_kept(tmp_path):
    body = body_with()
    motion = moving(body)
    stretch = np.ones((len(motion), len(motion.skeleton), 3))
    stretch[:, 1] = np.linspace(1.0, 1.5, len(motion))[:, None] * (1.0, 0.9, 1.1)
    motion = sy.Motion(motion.skeleton, motion.q, 30.0, stretch=stretch)
    sy.save_motion(motion, tmp_path / "new.fbx", verify=True)
    assert_shown(motion, tmp_path / "new.fbx", unit=1.0)


def test_one_frame_and_long_names(tmp_path):
    body = sy.Skeleton([sy.Joint("Hüfte|ns:root", kind=sy.Kind.FREE), sy.Joint("x" * 200, 0, rest=_at(0, 1, 0))])
    body = body.with_unit("cm")
    motion = sy.Motion(body, [body.rest_pose().q], 30.0, name="Ein Schritt/ä")
    sy.save_motion(motion, tmp_path / "one.fbx", verify=True)
    assert [node.name for node in read_nodes(read_document(tmp_path / "one.fbx"))] == list(body.joint_names)
    assert readback.by_ufbx(tmp_path / "one.fbx")[1] == ["Ein Schritt/ä"]


def test_body_that_does_not_move_has_a_take_too(tmp_path):
    body = sy.Skeleton([sy.Joint("post"), sy.Joint("top", "post", rest=_at(0, 1, 0))], meters_per_unit=1.0)
    motion = sy.Motion(body, np.zeros((4, 0)), 30.0)
    sy.save_motion(motion, tmp_path / "still.fbx", verify=True)
    assert sy.formats.verify_file(motion, tmp_path / "still.fbx").holds


def test_nothing_is_written_over_or_by_halves(tmp_path):
    motion = moving(body_with())
    (tmp_path / "there.fbx").write_bytes(b"mine")
    with pytest.raises(FileError, match="exists"):
        sy.save_motion(motion, tmp_path / "there.fbx")
    assert (tmp_path / "there.fbx").read_bytes() == b"mine"
    empty = sy.Motion(motion.skeleton, motion.q[:0], 30.0)
    with pytest.raises(InputError, match="no frames"):
        sy.save_motion(empty, tmp_path / "empty.fbx")
    assert [path.name for path in tmp_path.iterdir()] == ["there.fbx"]


@pytest.mark.parametrize("name", ["mixamo", "unreal"])
def test_known_rigs_keep_names_and_roles(tmp_path, name):
    pytest.importorskip("ufbx")
    body = rigs.skeleton_of(name).with_unit("cm")
    motion = moving(body)
    sy.save_motion(motion, tmp_path / "rig.fbx")
    back = sy.load_motion(tmp_path / "rig.fbx")
    assert sorted(back.skeleton.joint_names) == sorted(motion.skeleton.joint_names)
    assert back.skeleton.roles == motion.skeleton.roles


def _humanoid(scale):
    """Return the bundled humanoid in a file of a unit that it does not say."""
    body = sy.bundled("humanoid")
    joints = []
    for joint in body.joints:
        rest = joint.rest.copy()
        rest[:3, 3] *= scale
        joints.append(replace(joint, rest=rest))
    return sy.Skeleton(joints, name="unknown", up="y")


@pytest.mark.parametrize(
    ("scale", "named"),
    [(1.0, "m"), (95.0, "cm"), (1.0 / 0.0254, "in"), (0.45 / 0.0254, "5.64 cm"), (0.02, "")],
)
def test_humanoid_of_unknown_unit_becomes_as_tall_as_a_person(tmp_path, scale, named):
    motion = moving(_humanoid(scale), frames=2)
    for ending in (".fbx", ".glb"):
        path = tmp_path / f"new{ending}"
        with pytest.warns(UserWarning, match=f"assumed to be {named}.*so that the body is 1\\.[5-9]. m tall; unit="):
            sy.save_motion(motion, path)
        assert sy.formats.verify_file(motion, path).holds
    pytest.importorskip("ufbx")
    tall = [stature_of(sy.load_skeleton(tmp_path / name)) for name in ("new.fbx", "new.glb")]
    assert 1.5 < tall[0] < 2.0
    assert tall[0] == pytest.approx(tall[1], rel=1e-6)


def test_unit_can_be_given_and_other_bodies_keep_their_numbers(tmp_path):
    motion = moving(_humanoid(1.0), frames=2)
    sy.save_motion(motion, tmp_path / "given.fbx", unit="ft", verify=True)
    assert sy.formats.verify_file(motion, tmp_path / "given.fbx").holds
    height = [node.translation for node in read_nodes(read_document(tmp_path / "given.fbx")) if node.name == "head"]
    head = motion.skeleton.joints[motion.skeleton.index("head")].rest[:3, 3]
    assert np.allclose(height[0], 30.48 * head)
    body = sy.Skeleton([sy.Joint("post"), sy.Joint("top", "post", rest=_at(0, 1, 0))])
    with pytest.warns(UserWarning, match=r"assumed to be cm; unit= \(--unit\)"):
        sy.save_motion(sy.Motion(body, np.zeros((2, 0)), 30.0), tmp_path / "post.fbx")
    with pytest.raises(InputError, match=r"unit is not that of the skeleton: expected cm, got 'in'"):
        sy.save_motion(moving(body_with()), tmp_path / "no.fbx", unit="in")
    with pytest.raises(InputError, match="one of m, cm, mm, in, ft"):
        sy.save_motion(motion, tmp_path / "no.fbx", unit="yard")
    assert not (tmp_path / "no.fbx").exists()


# --- copies ---------------------------------------------------------------------------------------------------------


def source_file(path, *, inherit=1, up="y", centimetres=1.0, text=False):
    """Write a file as other programs do: pivots, orders of rotation, a take, a material and a property of the user."""
    body = body_with()
    write_fbx(moving(body, name="Take 001", fps=24.0), path)
    document = read_document(path)
    rng = np.random.default_rng(3)
    for number, (_, record) in enumerate(document.of("Model")):
        block = block_of(record)
        for name in ("PreRotation", "PostRotation"):
            set_property(block, name, "Vector3D", *(90.0 * rng.normal(size=3)).tolist())
        for name in ("RotationOffset", "RotationPivot", "ScalingOffset", "ScalingPivot"):
            set_property(block, name, "Vector3D", *(0.1 * rng.normal(size=3)).tolist())
        set_property(block, "RotationOrder", "enum", number)
        set_property(block, "InheritType", "enum", inherit)
        set_property(block, "Lcl Rotation", "Lcl Rotation", *(30.0 * rng.normal(size=3)).tolist())
        set_property(block, "mine", "User", f"kept {number}")
    document.add("Material", "skin", "Material")
    settings = block_of(document.section("GlobalSettings"))
    set_property(settings, "UnitScaleFactor", "double", centimetres)
    for name, row in (("Coord", 0), ("Up", 1), ("Front", 2)):
        axis = int(np.flatnonzero(axes_for(up)[row])[0])
        set_property(settings, f"{name}Axis", "int", axis)
        set_property(settings, f"{name}AxisSign", "int", int(axes_for(up)[row, axis]))
    for stack in document.of("AnimationStack"):  # as if another program had written it
        stack[1].below.clear()
    path.write_bytes(document.pack())


@pytest.mark.parametrize("inherit", [0, 1, 2])
@pytest.mark.parametrize(("up", "centimetres"), [("y", 1.0), ("z", 2.54)])
def test_copy_gets_the_motion_as_one_more_take(tmp_path, inherit, up, centimetres):
    pytest.importorskip("ufbx")
    source_file(tmp_path / "hero.fbx", inherit=inherit, up=up, centimetres=centimetres)
    body = sy.load_skeleton(tmp_path / "hero.fbx")
    motion = moving(body, fps=60.0)
    sy.save_motion(motion, tmp_path / "walk.fbx")
    assert sy.formats.verify_file(motion, tmp_path / "walk.fbx").holds
    takes = assert_shown(motion, tmp_path / "walk.fbx", unit=100.0 / centimetres, axes=axes_for(up).T)
    assert takes == ["wave", "Take 001"]
    before, after = read_document(tmp_path / "hero.fbx"), read_document(tmp_path / "walk.fbx")
    kept = {number: plain([record]) for number, record in before.by_id.items()}
    assert {number: plain([record]) for number, record in after.by_id.items() if number in kept} == kept
    assert after.links()[: len(before.links())] == before.links()
    assert after.axes.tolist() == before.axes.tolist()
    assert after.meters_per_unit == before.meters_per_unit
    current = next(record for record in after.tree.below if record.name == "Takes")
    assert current.value("Current") == "wave"
    sy.save_motion(motion, tmp_path / "walk2.fbx", into=tmp_path / "walk.fbx")
    assert readback.by_ufbx(tmp_path / "walk2.fbx")[1] == ["wave 2", "wave", "Take 001"]


def strip(path, keep):
    """Take the curves of all but some nodes out of the first take, as exporters leave out what is at rest."""
    document = read_document(path)
    nodes = read_nodes(document)
    left = set()
    for (row, _), curves in keyed_takes(document, nodes)[0].curves.items():
        if nodes[row].name not in keep:
            left |= {int(record.values[0]) for record in curves.values()}
    links = document.connections
    links.below = [record for record in links.below if int(record.values[1]) not in left]
    for _, record in document.of("AnimationStack"):
        record.below.clear()
    path.write_bytes(document.pack())


def places_after(path, name, before=None):
    """Return the places of all nodes in a take, where another one leaves what it does not key."""
    document = read_document(path)
    nodes = read_nodes(document)
    takes = {document.by_id[take.stack].values[0 + 1].partition("\0")[0]: take for take in keyed_takes(document, nodes)}

    def values(take):
        found = {}
        for key, curves in take.curves.items():
            parts = [np.asarray(curves[f"d|{axis}"].value("KeyValueFloat"), float) for axis in "XYZ"]
            found[key] = np.stack(parts, axis=1)
        return found

    left = {} if before is None else {key: all_[-1:] for key, all_ in values(takes[before]).items()}
    found = left | values(takes[name])
    chain = Chain(nodes)
    for row, node in enumerate(nodes):
        rest = {"Translation": node.translation, "Rotation": node.rotation, "Scaling": node.scaling}
        chain.set(row, Course(*(found.get((row, f"Lcl {what}"), value[None]) for what, value in rest.items())))
    frames = max(len(place) for place in chain.place.values())
    return np.stack([np.broadcast_to(chain.place[row], (frames, 3)) for row in range(len(nodes))], axis=1)


def test_every_take_shows_the_same_after_every_other_one(tmp_path):
    source_file(tmp_path / "a.fbx")
    strip(tmp_path / "a.fbx", ["chest"])
    names, alone = ["Take 001"], {"Take 001": places_after(tmp_path / "a.fbx", "Take 001")}
    body = body_with()
    for name, keep in (("walk", ["knee", "hips"]), ("nod", ["chest", "hips"])):
        motion = moving(body, fps=30.0, name=name)
        into, path = tmp_path / ("a.fbx" if name == "walk" else "walk.fbx"), tmp_path / f"{name}.fbx"
        sy.save_motion(motion, path, into=into, verify=True)
        names.append(name)
        if name == "walk":
            strip(path, keep)
        alone[name] = places_after(path, name)
    for name in names:
        for other in names:
            seen = places_after(tmp_path / "nod.fbx", name, other)
            np.testing.assert_allclose(seen, alone[name], atol=1e-4, err_msg=f"{name} after {other}")
    motion = moving(body, fps=30.0, name="nod")
    document = read_document(tmp_path / "nod.fbx")
    nodes = read_nodes(document)
    first = keyed_takes(document, nodes)[0]
    gone = int(next(iter(next(iter(first.curves.values())).values())).values[0])
    course = next(target for source, target, _ in document.links() if source == gone)
    links = document.connections
    links.below = [record for record in links.below if course not in map(int, record.values[1:3])]
    (tmp_path / "less.fbx").write_bytes(document.pack())
    assert "Take 'nod' has no keys of" in sy.formats.verify_file(motion, tmp_path / "less.fbx").report()


def test_copy_of_another_body_or_of_an_old_file_is_refused(tmp_path):
    source_file(tmp_path / "hero.fbx")
    motion = moving(sy.bundled("humanoid"))
    with pytest.raises(InputError, match="another skeleton"):
        sy.save_motion(motion, tmp_path / "out.fbx", into=tmp_path / "hero.fbx")
    document = read_document(tmp_path / "hero.fbx")
    document.tree.version = 6100
    (tmp_path / "old.fbx").write_bytes(document.pack())
    with pytest.raises(UnsupportedError, match=r"6\.1"):
        sy.save_motion(moving(body_with()), tmp_path / "out.fbx", into=tmp_path / "old.fbx")
    for name in ("none.fbx", "none.glb"):
        with pytest.raises(FileError, match="does not exist"):
            sy.save_motion(motion, tmp_path / "out.fbx", into=tmp_path / name)
    assert not (tmp_path / "out.fbx").exists()


def test_nodes_in_circles_and_with_the_number_of_the_scene_end(tmp_path):
    source_file(tmp_path / "hero.fbx")
    document = read_document(tmp_path / "hero.fbx")
    (first, record), *_ = document.of("Model")
    record.values[0] = np.int64(0)
    (tmp_path / "zero.fbx").write_bytes(document.pack())
    assert len(read_nodes(read_document(tmp_path / "zero.fbx"))) < len(document.of("Model"))
    record.values[0] = np.int64(first)
    document.connections.below = []
    document.link(first, document.of("Model")[1][0])
    document.link(document.of("Model")[1][0], first)
    (tmp_path / "circle.fbx").write_bytes(document.pack())
    with pytest.raises(UnsupportedError, match="its own ancestor"):
        read_nodes(read_document(tmp_path / "circle.fbx"))


def test_joint_that_hangs_elsewhere_is_refused(tmp_path):
    source_file(tmp_path / "hero.fbx")
    body = body_with()
    joints = [sy.Joint(j.name, {"knee": "chest"}.get(j.name, body.joint_names[p]) if p >= 0 else None, kind=j.kind,
                       rest=j.rest, axis=j.axis) for j, p in zip(body.joints, body.parents, strict=True)]  # fmt: skip
    with pytest.raises(InputError, match=r"'(slide|knee)' has another parent"):
        sy.save_motion(moving(sy.Skeleton(joints)), tmp_path / "out.fbx", into=tmp_path / "hero.fbx")


# --- skins ----------------------------------------------------------------------------------------------------------


def test_new_file_has_the_skin_of_a_character(tmp_path):
    from synovia.io.gltf.skins import read_skin

    body = sy.bundled("humanoid")
    motion = moving(body)
    sy.save_motion(motion, tmp_path / "person.fbx")
    document = read_document(tmp_path / "person.fbx")
    skin = read_skin(body.source.with_suffix(".glb"))
    (mesh,) = skin.meshes
    (geometry,) = [record for _, record in document.of("Geometry")]
    vertices = geometry.value("Vertices").reshape(-1, 3)
    assert len(vertices) == len(mesh.vertices)
    own = np.zeros((len(vertices), len(mesh.rows)))
    np.add.at(own, (np.arange(len(own))[:, None], mesh.bones), mesh.weights)
    names = {skin.names[row]: column for column, row in enumerate(mesh.rows)}
    seen, moved = np.zeros_like(own), np.zeros_like(vertices)
    nodes = read_nodes(document)
    chain = Chain(nodes)
    for row in range(len(nodes)):
        chain.set(row, read_written_take(document, nodes, keyed_takes(document, nodes)).courses[row])
    number_of = {node.name: row for row, node in enumerate(nodes)}
    frame = 3
    for _, record in document.of("Deformer"):
        if record.values[2] == "Cluster":
            name = str(record.values[1]).partition("\0")[0]
            at, weights = record.value("Indexes"), record.value("Weights")
            seen[at, names[name]] = weights
            link, inside = (record.value(key).reshape(4, 4).T for key in ("TransformLink", "Transform"))
            assert np.abs(link @ inside - np.eye(4)).max() <= 1e-9
            row = number_of[name]
            place, turn = chain.place[row], chain.turn[row]
            points = vertices[at] @ inside[:3, :3].T + inside[:3, 3]
            place, turn = place[min(frame, len(place) - 1)], turn[min(frame, len(turn) - 1)]
            moved[at] += weights[:, None] * (points @ turn.T + place)
    assert np.array_equal(seen, own)
    from synovia.surface import surface_of_skeleton

    surface = surface_of_skeleton(motion.skeleton)
    drawn = np.concatenate([part.placed(motion.frames()[frame]) for part in surface.parts]) * 100.0  # centimetres
    for corner in (np.min, np.max):
        assert np.abs(corner(moved, axis=0) - corner(drawn, axis=0)).max() <= 1e-3


def test_skin_of_another_body_is_left_out_with_a_note(tmp_path):
    motion = moving(body_with())
    with pytest.warns(UserWarning, match="was left out"):
        sy.save_motion(motion, tmp_path / "new.fbx", into=sy.bundled("humanoid").source.with_suffix(".glb"))
    assert not read_document(tmp_path / "new.fbx").of("Geometry")


# --- commands -------------------------------------------------------------------------------------------------------


@pytest.mark.compiled
def test_retarget_writes_into_the_character(tmp_path, monkeypatch):
    pytest.importorskip("ufbx")
    from synovia.cli import main

    monkeypatch.chdir(tmp_path)
    sy.save_motion(moving(rigs.skeleton_of("mixamo"), name="rest"), "hero.fbx", unit="cm")
    walk = sy.bundled("humanoid").with_root("free")
    q = np.tile(walk.rest_pose().q, (20, 1))
    q[:, 2] = np.linspace(0.0, 0.3, 20)
    sy.save_motion(sy.Motion(walk, q, 30.0, name="walk"), "walk.bvh")
    code = main(["retarget", "walk.bvh", "hero.fbx", "-o", "hero_walk.fbx", "--verify"])
    assert code in (0, 1)
    assert readback.by_ufbx(Path("hero_walk.fbx"))[1] == ["walk on hero.fbx", "rest"]
    assert main(["convert", "walk.bvh", "walk.fbx", "--verify"]) == 0
