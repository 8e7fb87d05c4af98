"""Edges of formats, by files written by hand: the last value that is taken, the first that is not, what is written."""

import base64
import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.clips.pointfile import holds_points, read_points
from synovia.errors import FormatError
from synovia.files.goals import entry_of
from synovia.files.tracks import interpolate_positions, interpolate_rotations
from synovia.io.bvh.text import Source, read_hierarchy
from synovia.io.mjcf.files import Budget
from synovia.io.npz import read_array, texts_of
from synovia.io.xmltree import parse

# --- arrays of NumPy ------------------------------------------------------------------------------------------------


def array_file(values, version=(1, 0)):
    """Return the bytes of an array file."""
    out = io.BytesIO()
    np.lib.format.write_array(out, values, version=version)
    return out.getvalue()


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize(
    "values",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(4, dtype=">i4"),
        np.arange(3, dtype=np.uint8),
        np.array([True, False]),
        np.array(["é", "ab"]),
        np.array([b"xy"]),
        np.array(7.5),
        np.zeros((0, 3)),
    ],
)
def test_arrays_come_back(values, version):
    """Of every kind, in either order of axes and bytes; exactly as large as allowed, and not a number more."""
    data = array_file(values, version)
    most = max(values.size, -(-values.nbytes // 8), *values.shape, 1)  # numbers of 8 bytes
    found = read_array(io.BytesIO(data), "x", most)
    np.testing.assert_array_equal(found, values)
    assert found.shape == values.shape
    assert found.dtype == values.dtype
    if values.nbytes:
        with pytest.raises(FormatError, match="too large"):
            read_array(io.BytesIO(data), "x", most - 1)
        with pytest.raises(FormatError, match="cut off"):
            read_array(io.BytesIO(data[:-1]), "x", most)


@pytest.mark.parametrize(
    "values",
    [np.array([1j]), np.array([np.datetime64("2020-01-01")]), np.zeros(2, [("a", "f4")]), np.array([None], object)],
)
def test_what_is_neither_number_nor_text_is_refused(values):
    """Complex numbers, dates, records, and above all pickled objects."""
    with pytest.raises(FormatError, match="neither numbers nor text"):
        read_array(io.BytesIO(array_file(values)), "x", 10**6)


@pytest.mark.parametrize("shape", ["(-1,)", "(-2, -3)", "(0, 100000000)", "(99999999999, 0)"])
def test_shapes_that_no_array_has(shape):
    """Negative, or with an axis that is longer than the file could be."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
    with pytest.raises((FormatError, ValueError)):
        read_array(io.BytesIO(data), "x", 1000)


@pytest.mark.parametrize(
    ("code", "text"), [(0xD7FF, True), (0xD800, False), (0xDFFF, False), (0xE000, True), (0x10FFFF, True)]
)
def test_halves_of_characters_are_no_text(code, text):
    """From the first half to the last; the characters around them are text."""
    values = np.frombuffer(np.array([65, code], np.uint32).tobytes(), "<U2")
    assert (texts_of(values) == ["A" + chr(code)]) == text
    assert text or texts_of(values) is None
    assert texts_of(np.array([1.0])) is None


# --- glTF -----------------------------------------------------------------------------------------------------------


def gltf(views, accessors, **more):
    """Return a file with two nodes, and a clip that moves the root by accessors 0 (times) and 1."""
    data = b"".join(views)
    begins = np.cumsum([0, *map(len, views)])
    return {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": "a", "children": [1]}, {"name": "b", "translation": [0, 1, 0]}],
        "animations": [
            {"samplers": [{"input": 0, "output": 1}],
             "channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}]}
        ],
        "buffers": [{"byteLength": len(data), "uri": "data:;base64," + base64.b64encode(data).decode()}],
        "bufferViews": [
            {"buffer": 0, "byteOffset": int(at), "byteLength": len(view)}
            for at, view in zip(begins, views, strict=False)
        ],
        "accessors": accessors,
        **more,
    }  # fmt: skip


TIMES = np.array([0.0, 0.5, 1.0], "<f4")
PLACES = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10]], "<f4")
FLOATS = {"componentType": 5126, "count": 3}


def sparse_file(tmp_path, rows, values=((9, 9, 9),)):
    """Write a clip whose places are replaced in some rows."""
    views = [TIMES.tobytes(), PLACES.tobytes(), np.array(rows, "<u4").tobytes(), np.array(values, "<f4").tobytes()]
    sparse = {
        "count": len(rows),
        "indices": {"bufferView": 2, "componentType": 5125},
        "values": {"bufferView": 3},
    }
    accessors = [{"bufferView": 0, "type": "SCALAR", **FLOATS},
                 {"bufferView": 1, "type": "VEC3", **FLOATS, "sparse": sparse}]  # fmt: skip
    path = tmp_path / "sparse.gltf"
    path.write_text(json.dumps(gltf(views, accessors)))
    return path


@pytest.mark.parametrize(("rows", "good"), [([2], True), ([3], False), ([0, 2], True), ([0, 3], False), ([1, 1], False),
                                            ([2, 1], False), ([0, 1, 2], True)])  # fmt: skip
def test_rows_of_sparse_accessors(tmp_path, rows, good):
    """They increase and stay below the count, the last one too."""
    values = 20.0 + np.arange(3 * len(rows)).reshape(-1, 3)
    path = sparse_file(tmp_path, rows, values)
    if good:
        expected = PLACES.copy()
        expected[rows] = values
        np.testing.assert_allclose(sy.load_motion(path).positions()[[0, 15, 30], 0], expected, atol=1e-5)
    else:
        with pytest.raises(FormatError, match="out of order or out of range"):
            sy.load_motion(path)


@pytest.mark.parametrize("change", [-1, 0, 1])
def test_an_accessor_ends_where_its_view_ends(tmp_path, change):
    """One byte less is refused, in the view and in the buffer."""
    accessors = [{"bufferView": 0, "type": "SCALAR", **FLOATS}, {"bufferView": 1, "type": "VEC3", **FLOATS}]
    made = gltf([TIMES.tobytes(), PLACES.tobytes()], accessors)
    made["bufferViews"][1]["byteLength"] += change
    path = tmp_path / "a.gltf"
    path.write_text(json.dumps(made))
    if change == 0:
        np.testing.assert_allclose(sy.load_motion(path).positions()[[0, 15, 30], 0], PLACES, atol=1e-6)
    else:
        with pytest.raises(FormatError, match="ends outside its buffer" if change > 0 else "ends outside"):
            sy.load_motion(path)


@pytest.mark.parametrize(("stride", "good"), [(12, True), (252, True), (8, False), (253, False), (256, False)])
def test_strides_of_a_view(tmp_path, stride, good):
    """From the size of an element to 252 bytes, as the format says."""
    spread = np.zeros((3, 256), np.uint8)
    spread[:, :12] = PLACES.view(np.uint8).reshape(3, 12)
    view = spread[:, :stride].tobytes() if stride >= 12 else PLACES.tobytes()
    accessors = [{"bufferView": 0, "type": "SCALAR", **FLOATS}, {"bufferView": 1, "type": "VEC3", **FLOATS}]
    made = gltf([TIMES.tobytes(), view], accessors)
    made["bufferViews"][1]["byteStride"] = stride
    path = tmp_path / "a.gltf"
    path.write_text(json.dumps(made))
    if good:
        np.testing.assert_allclose(sy.load_motion(path).positions()[[0, 15, 30], 0], PLACES, atol=1e-6)
    else:
        with pytest.raises(FormatError, match=r"byteStride|stride"):
            sy.load_motion(path)


def written(tmp_path, name):
    """Write a clip onto a file of this kind, and return its JSON and the numbers of each accessor."""
    source = tmp_path / "source.gltf"
    accessors = [{"bufferView": 0, "type": "SCALAR", **FLOATS}, {"bufferView": 1, "type": "VEC3", **FLOATS}]
    source.write_text(json.dumps(gltf([TIMES.tobytes(), PLACES.tobytes()], accessors)))
    out = tmp_path / name
    sy.save_motion(sy.load_motion(source), out, into=source)
    if name.endswith(".glb"):
        data = out.read_bytes()
        magic, version, length = struct.unpack_from("<4sII", data)
        assert (magic, version, length) == (b"glTF", 2, len(data))
        size, kind = struct.unpack_from("<I4s", data, 12)
        assert kind == b"JSON"
        content = json.loads(data[20 : 20 + size])
        buffers = []
        assert size % 4 == 0
        if 20 + size < len(data):
            chunk, kind = struct.unpack_from("<I4s", data, 20 + size)
            assert kind == b"BIN\0"
            assert 28 + size + chunk == len(data)
            assert chunk % 4 == 0
            buffers = [data[28 + size :]]
    else:
        content = json.loads(out.read_text())
        buffers = []
    for buffer in content["buffers"][len(buffers) :]:
        buffers.append(base64.b64decode(buffer["uri"].partition(",")[2]))
    numbers = []
    for accessor in content["accessors"]:
        view = content["bufferViews"][accessor["bufferView"]]
        at = view.get("byteOffset", 0)
        raw = buffers[view["buffer"]][at : at + view["byteLength"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        numbers.append(np.frombuffer(raw, "<f4").reshape(-1, width)[: accessor["count"]])
    return content, numbers


@pytest.mark.parametrize("name", ["out.gltf", "out.glb"])
def test_written_clips_tell_the_range_of_their_times(tmp_path, name):
    """The format asks for the least and the largest time; every view lies in its buffer, and the times increase."""
    content, numbers = written(tmp_path, name)
    clip = content["animations"][0]
    inputs = {sampler["input"] for sampler in clip["samplers"]}
    assert inputs
    for at in inputs:
        accessor = content["accessors"][at]
        assert accessor["type"] == "SCALAR"
        assert accessor["min"] == pytest.approx([numbers[at].min()])
        assert accessor["max"] == pytest.approx([numbers[at].max()])
        assert len(accessor["min"]) == len(accessor["max"]) == 1
        assert (np.diff(numbers[at][:, 0]) > 0).all()
    for channel in clip["channels"]:
        sampler = clip["samplers"][channel["sampler"]]
        assert len(numbers[sampler["input"]]) == len(numbers[sampler["output"]])
        if channel["target"] == {"node": 0, "path": "translation"}:
            np.testing.assert_allclose(numbers[sampler["output"]][[0, 15, 30]], PLACES, atol=1e-5)
    for view in content["bufferViews"]:
        most = content["buffers"][view["buffer"]]["byteLength"]
        assert view.get("byteOffset", 0) + view["byteLength"] <= most


def test_the_chunk_of_a_binary_file_becomes_its_first_buffer(tmp_path):
    """Written as text, the chunk goes into the address of buffer 0; other buffers keep theirs."""
    second = base64.b64encode(PLACES.tobytes()).decode()
    accessors = [{"bufferView": 0, "type": "SCALAR", **FLOATS}, {"bufferView": 1, "type": "VEC3", **FLOATS}]
    made = gltf([TIMES.tobytes(), PLACES.tobytes()], accessors)
    made["buffers"] = [{"byteLength": 12}, {"byteLength": 36, "uri": "data:;base64," + second}]
    made["bufferViews"][1] = {"buffer": 1, "byteOffset": 0, "byteLength": 36}
    text = json.dumps(made).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", 12, b"BIN\0") + TIMES.tobytes()
    source, out = tmp_path / "two.glb", tmp_path / "out.gltf"
    source.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body)
    motion = sy.load_motion(source)
    np.testing.assert_allclose(motion.positions()[[0, 15, 30], 0], PLACES, atol=1e-5)
    sy.save_motion(motion, out, into=source)
    buffers = json.loads(out.read_text())["buffers"]
    assert base64.b64decode(buffers[0]["uri"].partition(",")[2])[:12] == TIMES.tobytes()
    assert buffers[1]["uri"].endswith(second)
    again = sy.load_motion(out)
    np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-6)


# --- goals ----------------------------------------------------------------------------------------------------------


def test_entries_hold_no_defaults():
    """A goal file has what differs from the default, and nothing else."""
    assert entry_of(sy.PositionGoal("hand")) == {"kind": "position", "joint": "hand"}
    assert entry_of(sy.PositionGoal("hand", (1, 2, 3), weight=1.0, priority=0)) == {
        "kind": "position", "joint": "hand", "position": [1.0, 2.0, 3.0],
    }  # fmt: skip
    entry = entry_of(sy.PositionGoal("hand", (1, 2, 3), weight=0.5, priority=2, offset=(0, 0, 1)))
    assert entry["weight"] == 0.5
    assert entry["priority"] == 2
    assert set(entry) == {"kind", "joint", "position", "weight", "priority", "offset"}


# --- BVH ------------------------------------------------------------------------------------------------------------


def source_of(tmp_path, text):
    """Return an opened source."""
    path = tmp_path / "a.bvh"
    path.write_bytes(text.encode())
    return Source(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_places_in_texts_of_every_system(tmp_path, end):
    """Lines count from one, by each system's ends of lines."""
    source = source_of(tmp_path, f"one{end}two{end}{end}four")
    places = []
    while source.word():
        places.append(source.place(source.begin).rpartition(" ")[2])
    assert places == ["1", "2", "4"]


@pytest.mark.parametrize(
    ("word", "value"),
    [("1e15", 1e15), ("-1e15", -1e15), (".5", 0.5), ("5.", 5.0), ("+2E-3", 2e-3), ("1.0001e15", None), ("nan", None),
     ("-inf", None), ("1_0", None), ("0x10", None), ("1e", None), (".", None), ("", None), ("1,5", None),
     ("٣", None)],
)  # fmt: skip
def test_numbers_of_a_bvh_file(tmp_path, word, value):
    """As printed by any program; finite, at most 10^15, and in the digits of ASCII."""
    source = source_of(tmp_path, f"  {word} ")
    if value is None:
        with pytest.raises(FormatError, match="line 1"):
            source.number("x")
    else:
        assert source.number("x") == value


@pytest.mark.parametrize(
    ("channels", "says"),
    [
        ("CHANNELS 0", None),
        ("CHANNELS 3 Zrotation Xrotation Yrotation", None),
        ("CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation", None),
        ("CHANNELS 7 Xposition", "cannot be used"),
        ("CHANNELS x", "cannot be used"),
        ("CHANNELS 06 Xposition", "cannot be used"),
        ("CHANNELS 2 Xposition", "announces 2"),
        ("CHANNELS 1 Xposition Yposition", "announces 1"),
        ("CHANNELS 2 Xposition Xposition", "repeated"),
        ("CHANNELS 1 Wrotation", "unknown channel"),
        ("CHANNELS 1 Wposition", "unknown channel"),
        ("CHANNELS 0 CHANNELS 0", "two lists"),
        ("OFFSET 1 2 3", "two OFFSETs"),
        ("what", "unexpected word"),
        ("JOINT x", "has no opening brace"),
        ("End Sight { }", "End without Site"),
        ("End Site { OFFSET 0 0 0 CHANNELS 1 Xposition }", "cannot have channels"),
        ("End Site { OFFSET 0 0 0 JOINT b { OFFSET 0 0 0 } }", "cannot have children"),
        ("End Site { }", "has no OFFSET"),
        ("JOINT {", "joint has no name"),
    ],
)
def test_words_of_a_hierarchy(tmp_path, channels, says):
    """What is taken, and what the message says of what is not."""
    source = source_of(tmp_path, f"HIERARCHY\nROOT a b\n{{\nOFFSET 1 -2 .5\n{channels}\n}}\nMOTION")
    if says is None:
        nodes, motion = read_hierarchy(source)
        assert motion
        assert (nodes[0].name, nodes[0].offset, nodes[0].parent, nodes[0].end) == ("a b", (1.0, -2.0, 0.5), -1, False)
        assert nodes[0].channels == tuple(channels.split()[2:])
    else:
        with pytest.raises(FormatError, match=says) as caught:
            read_hierarchy(source)
        assert any(f"line {n}" in str(caught.value) for n in (3, 5, 6))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hierarchies", "line 1.*HIERARCHY"),
        ("HIERARCHY", "no joint"),
        ("HIERARCHY MOTION", "no joint"),
        ("HIERARCHY JOINT a", "outside of a joint"),
        ("HIERARCHY ROOT a {\n OFFSET 0 0 0\n", "begun on line 1, is not closed"),
        ("HIERARCHY\nROOT a {\n OFFSET 0 0 0\nMOTION", "begun on line 2, is not closed"),
        ("HIERARCHY ROOT a { OFFSET 0 0", "not a number.*end of the file"),
    ],
)
def test_hierarchies_that_end_too_early(tmp_path, text, says):
    """The message names what is not closed, and where it began."""
    with pytest.raises(FormatError, match=f"(?s){says}"):
        read_hierarchy(source_of(tmp_path, text))


def test_a_hierarchy_without_motion_and_with_several_roots(tmp_path):
    """Nodes are numbered in the order of the file; a file may end after its hierarchy."""
    text = (
        "hierarchy root a { offset 0 0 0 joint b { offset 1 0 0 end site c { offset 0 1 0 } } } Root d { OFFSET 0 0 9 }"
    )
    nodes, motion = read_hierarchy(source_of(tmp_path, text))
    assert not motion
    assert [(n.name, n.parent, n.end) for n in nodes] == [
        ("a", -1, False), ("b", 0, False), ("c", 1, True), ("d", -1, False),
    ]  # fmt: skip
    assert [n.channels for n in nodes] == [None] * 4


# --- tables of numbers ----------------------------------------------------------------------------------------------

ARM = sy.Skeleton(
    [
        sy.Joint("a", None, sy.Kind.HINGE, axis=(0, 0, 1), preferred=0.25),
        sy.Joint("b", "a", sy.Kind.BALL),
        sy.Joint("c", "b", sy.Kind.SLIDE, axis=(1, 0, 0), limit=sy.Interval(-5, 5)),
    ]
)


def csv_of(tmp_path, text):
    """Read a table."""
    path = tmp_path / "clip.csv"
    path.write_text(text, encoding="utf-8")
    return sy.formats.read_csv(path, ARM)


def test_columns_of_a_table_in_any_order(tmp_path):
    """Joints without a column stay at rest; the rate is that of the times, and 30 for a single frame."""
    motion = csv_of(tmp_path, "time, c ,a\n\n0,1.5,-0.5\n0.25,-2,1e-1\n0.5,0,0\n")
    np.testing.assert_array_equal(motion.q[:, 0], [-0.5, 0.1, 0.0])
    np.testing.assert_array_equal(motion.q[:, 5], [1.5, -2.0, 0.0])
    np.testing.assert_array_equal(motion.q[:, 1:5], np.tile(ARM.rest_q[1:5], (3, 1)))
    assert motion.fps == 4.0
    assert motion.name == "clip"
    assert csv_of(tmp_path, "time,a\n7,0\n").fps == 30.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,time\n", "line 1.*not time"),
        ("time,a,a\n", "line 1.*repeated"),
        ("time,x\n", "line 1.*belongs to no joint"),
        ("time,a\n", "no frames"),
        ("time,a\n0\n", "line 2.*1 cell:"),
        ("time,a\n0,1\n\n0.1,1,2\n", "line 4.*3 cells"),
        ("time,a\n0,1_0\n", "line 2.*not a number"),
        ("time,a\n0,\n", "line 2.*not a number"),
        ("time,a\n0,٣\n", "line 2.*not a number"),
        ('time,a\n"0","\n1"\nx,1\n', "line 4.*not a number"),
        ("time,a\n0,1\n0,2\n", "do not increase"),
        ("time,a\n1,1\n0,2\n", "do not increase"),
        ("time,a\n0,1\nnan,2\n", "do not increase"),
        ("time,a\n0,1\ninf,2\n", "do not increase"),
        ("time,a\n0,nan\n", "finite"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, says):
    """The message names the line, blank lines and cells of several lines counted."""
    with pytest.raises(FormatError, match=f"(?s){says}"):
        csv_of(tmp_path, text)


# --- Synovia's own text ---------------------------------------------------------------------------------------------

HEAD = 'schema = "synovia.skeleton/1"\n'


def toml_of(tmp_path, text):
    """Read a skeleton."""
    path = tmp_path / "body.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    return sy.load_skeleton(path)


EVERY_KEY = """
name = "x"
up = "z"
forward = "-y"
meters_per_unit = 0.01
notes = ["one", "two"]
[[joint]]
name = "a"
kind = "hinge"
position = [1, 2, 3]
rpy_deg = [90, 0, 0]
axis = [0, 0, 2]
limit_deg = [-90, 180]
preferred_deg = 30
stiffness = 2
velocity = 1.5
mass = 4
com = [0, 0, 0.5]
body = "link"
role = "hips"
[[joint]]
name = "b"
kind = "ball"
parent = 0
rotation_xyzw = [0, 0, 0.6, 0.8]
bone = [0, 0, 2]
swing_x_deg = [-10, 20]
swing_y = [-0.3, 0.4]
twist_deg = [-30, 40]
tip = true
[[joint]]
name = "c"
kind = "hinge"
parent = "b"
axis = [1, 0, 0]
limit = [-inf, 2]
mimic = { leader = "a", ratio = -0.5, offset = 0.1, binds = true }
"""


def test_every_key_of_a_joint(tmp_path):
    """Numbers as they stand, angles in degrees and radians, frames in either form."""
    with pytest.warns(UserWarning, match="one"):
        body = toml_of(tmp_path, EVERY_KEY)
    a, b, c = body.joints
    assert (body.name, body.up, body.forward, body.meters_per_unit) == ("x", "z", "-y", 0.01)
    assert tuple(body.notes)[:2] == ("one", "two")
    np.testing.assert_allclose(a.rest, [[1, 0, 0, 1], [0, 0, -1, 2], [0, 1, 0, 3], [0, 0, 0, 1]], atol=1e-12)
    np.testing.assert_allclose(a.axis, [0, 0, 1])
    assert (a.limit.lower, a.limit.upper) == pytest.approx((-np.pi / 2, np.pi))
    assert (a.preferred, a.stiffness, a.velocity, a.mass) == (pytest.approx(np.pi / 6), 2.0, 1.5, 4.0)
    np.testing.assert_array_equal(a.com, [0, 0, 0.5])
    assert (a.body, a.role, a.tip) == ("link", "hips", False)
    np.testing.assert_allclose(b.rest[:3, :3], [[0.28, -0.96, 0], [0.96, 0.28, 0], [0, 0, 1]], atol=1e-12)
    assert body.parents[1] == 0
    assert b.tip
    np.testing.assert_allclose(b.limit.x, np.radians([10, 20]))
    np.testing.assert_allclose(b.limit.y, [0.3, 0.4])
    np.testing.assert_allclose(b.limit.twist, np.radians([-30, 40]))
    assert (c.limit.lower, c.limit.upper) == (-np.inf, 2.0)
    assert (c.mimic.leader, c.mimic.ratio, c.mimic.offset, c.mimic.binds) == ("a", -0.5, 0.1, True)


JOINT = '[[joint]]\nname = "a"\nkind = "{}"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (JOINT.format("hinge") + "axis = [0, 0, 1]\nlimit = [1, nan]\n", "line 6.*limit.*not finite"),
        (JOINT.format("hinge") + "axis = [0, 0, 1]\nmass = inf\n", "line 6.*mass.*not finite"),
        (JOINT.format("hinge") + "axis = [0, 0, 1]\nmass = true\n", "line 6.*mass.*not a number"),
        (JOINT.format("hinge") + "axis = [0, 0]\n", "line 5.*axis"),
        (JOINT.format("hinge") + "axis = 3\n", "line 5.*axis"),
        (JOINT.format("slide") + "axis = [0, 0, 1]\nlimit_deg = [0, 1]\n", "line 6.*slide joint cannot have limit_deg"),
        (JOINT.format("hinge") + "axis = [0, 0, 1]\nswing_x = [0, 1]\n", "line 6.*cannot have swing_x"),
        (JOINT.format("ball") + "bone = [0, 0, 1]\nswing_x = [0.1, 1]\n", "line 6.*swing_x is out of range"),
        (JOINT.format("ball") + "bone = [0, 0, 1]\nswing_y = [-0.1, 3.15]\n", "line 6.*swing_y is out of range"),
        (JOINT.format("ball") + "twist = [-1, 1]\n", "one frame"),
        (JOINT.format("ball") + "x_axis = [1, 0, 0]\ntwist = [-1, 1]\nframe = [1,0,0,0,1,0,0,0,1]\n", "one frame"),
        (JOINT.format("ball") + "bone = [0, 0, 1]\ntwist = [-1, 1]\nframe = [1,0,0,0,1,0,0,0,1]\n", "one frame"),
        (JOINT.format("ball") + "rpy = [0, 0, 0]\nrpy_deg = [0, 0, 0]\n", "both"),
        (JOINT.format("ball") + "rpy = [0, 0, 0]\nrotation_xyzw = [0, 0, 0, 1]\n", "both"),
        (JOINT.format("ball") + "parent = true\n", "line 5.*parent is not a joint"),
        (JOINT.format("ball") + "parent = 1.5\n", "line 5.*parent is not a joint"),
        (JOINT.format("ball") + 'parent = "x"\n', "line 5.*parent 'x' of joint .* does not exist"),
        (JOINT.format("ball") + "tip = 1\n", "line 5.*tip is not a boolean"),
        (JOINT.format("ball") + "body = 1\n", "line 5.*body is not text"),
        (JOINT.format("ball") + "channels = [1]\n", "line 5.*channels is not a list of texts"),
        (JOINT.format("ball") + "colour = 1\n", "line 5.*unknown key"),
        (JOINT.format("spring"), "line 4.*kind is not known"),
        ('[[joint]]\nname = "a"\n', "line 2.*no kind"),
        ('[[joint]]\nkind = "ball"\n', "line 2.*no name"),
        (JOINT.format("hinge") + "axis = [0, 0, 1]\nmimic = 3\n", "line 6.*mimic has the wrong form"),
        (JOINT.format("hinge") + "axis = [0, 0, 1]\nmimic = { ratio = 1 }\n", "line 6.*no leader"),
        (JOINT.format("hinge") + 'axis = [0, 0, 1]\nmimic = { leader = "a", x = 1 }\n', "line 6.*unknown key"),
        ('up = "w"\n' + JOINT.format("ball"), "line 2.*up is not known"),
        ("joint = 3\n", "no joints"),
        ("joint = [3]\n", "no joints"),
        ("colour = 3\n" + JOINT.format("ball"), "line 2.*unknown key"),
    ],
)
def test_mistakes_in_a_skeleton_are_told_with_their_line(tmp_path, text, says):
    """Where the key stands, and what was expected."""
    with pytest.raises(FormatError, match=f"(?s){says}"):
        toml_of(tmp_path, text)


@pytest.mark.parametrize("low", [-np.pi, 0.0])
@pytest.mark.parametrize("high", [np.pi, 0.0])
def test_swings_up_to_their_ends(tmp_path, low, high):
    """From half a turn to rest, both ends counted; the angles of the file are those of the limit."""
    text = JOINT.format("ball") + f"bone = [0, 1, 0]\nswing_x = [{low!r}, {high!r}]\n"
    limit = toml_of(tmp_path, text.replace("np.float64(", "").replace(")", "")).joints[0].limit
    np.testing.assert_allclose(limit.x, [-low, high])
    np.testing.assert_allclose(limit.y, [np.pi, np.pi])
    np.testing.assert_allclose(limit.twist, [-np.pi, np.pi])


MUSCLE = "<actuator><muscle lengthrange='1 0'/></actuator>"  # whose range has to be found


# --- sizes of MuJoCo models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "over"),
    [
        ('<replicate count="2500"><body/></replicate>', '<replicate count="2501"><body/></replicate>'),
        ('<replicate count="50 1"><replicate count="50"><body/></replicate></replicate>',
         '<replicate count="50 1"><replicate count="51"><body/></replicate></replicate>'),
        ('<composite count="10 10 10"/>', '<composite count="10 10 11"/>'),
        ('<flexcomp count="1 1 1" point="1 2 3"/><composite count="998"/>',
         '<flexcomp count="1 1 1" point="1 2 3"/><composite count="999"/>'),
        ('<hfield nrow="4095" ncol="4096"/>', '<hfield nrow="4096" ncol="4097"/>'),
        ('<texture type="2d" width="4096" height="4095"/>', '<texture type="2d" width="4096" height="4097"/>'),
        ('<texture type="cube" width="1600" height="1700"/>', '<texture type="cube" width="1700" height="1700"/>'),
        ('<texture width="1600" height="1700"/>', '<texture width="1700" height="1700"/>'),
        ('<mesh builtin="sphere" params="223"/>', '<mesh builtin="sphere" params="224"/>'),
        ('<mesh builtin="a"/>' * 50, '<mesh builtin="a"/>' * 51),
        ('<mesh/>' * 60, '<mesh builtin="a" params="1"/>' * 51),
        (f'{MUSCLE}<lengthrange inttotal="50" timestep="0.005"/>',
         f'{MUSCLE}<lengthrange inttotal="51" timestep="0.005"/>'),
        (f'{MUSCLE}<lengthrange inttotal="100"/>', f'<lengthrange inttotal="101"/>{MUSCLE}'),
        ('<lengthrange inttotal="1e9"/><actuator><motor/></actuator>',
         '<lengthrange inttotal="1e9" mode="all"/><actuator><motor/></actuator>'),
        ('<lengthrange inttotal="1e9"/><actuator><muscle lengthrange="0 1"/></actuator>',
         '<lengthrange inttotal="1e9" useexisting="false"/><actuator><muscle lengthrange="0 1"/></actuator>'),
        (f'{MUSCLE}<lengthrange inttotal="1e9" mode="none"/>', f'{MUSCLE}<lengthrange inttotal="1e9"/>'),
        ('<size nuser_body="100"/>', '<size nuser_body="101"/>'),
        ('<size nstack="100000000"/>', '<size nstack="100000001"/>'),
        ('<size njmax="1000000"/>', '<size njmax="1000001"/>'),
        ('<size nconmax="1000000"/>', '<size nconmax="1000001"/>'),
        ('<size nkey="10000"/>', '<size nkey="10001"/>'),
        ('<user dim="10000"/>', '<user dim="10001"/>'),
        ('<x num="10000"/>', '<x num="10001"/>'),
        ('<numeric size="10000"/>', '<numeric size="10001"/>'),
        ('<other size="10001"/>', '<numeric size="9999x10001"/>'),
        ('<replicate count="14997"><geom/></replicate>', '<replicate count="15000"><geom/></replicate>'),
    ],
)  # fmt: skip
def test_how_large_a_model_may_be(most, over):
    """The largest that the compiler is given, and the first that is refused; copies count."""
    Budget().count(parse(f"<mujoco>{most}</mujoco>".encode(), "a.xml", root="mujoco", most={}))
    with pytest.raises(FormatError, match=r"too many|too large"):
        Budget().count(parse(f"<mujoco>{over}</mujoco>".encode(), "a.xml", root="mujoco", most={}))


# --- keyframes ------------------------------------------------------------------------------------------------------


def test_keys_are_held_before_the_first_and_after_the_last():
    """Between keys on lines, curves and shortest turns; outside, the nearest key."""
    at, times = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0])
    turns = [sy.Rotation.from_rotvec([0, 0, angle]) for angle in (0.2, 1.0, -0.6)]
    found = interpolate_rotations([turn.as_matrix() for turn in turns], at, times)
    angles = sy.Rotation.from_matrix(found).as_rotvec()[:, 2]
    np.testing.assert_allclose(angles, [0.2, 0.2, 0.6, 1.0, 0.2, -0.6, -0.6], atol=1e-12)
    points = np.array([[0, 0, 0], [2, 4, -2], [4, 0, 6]], float)
    lines = interpolate_positions(points, at, times, "linear")
    np.testing.assert_allclose(lines, [points[0], points[0], [1, 2, -1], points[1], [3, 2, 2], points[2], points[2]])
    curve = interpolate_positions(points, at, times, "cubic")
    np.testing.assert_allclose(curve[[0, 1, 3, 5, 6]], points[[0, 0, 1, 2, 2]], atol=1e-12)
    assert curve[2, 1] > lines[2, 1]  # it bends over its middle key
    np.testing.assert_allclose(interpolate_positions(points[:2], at[:2], times, "cubic")[2], [1, 2, -1])
    still = interpolate_rotations([turns[1].as_matrix()], at[:1], times)
    np.testing.assert_allclose(still, np.tile(turns[1].as_matrix(), (7, 1, 1)))


def test_parents_are_written_by_name_where_a_name_is_one_joints_own(tmp_path):
    """People read the file: a number stands only where two joints share a name."""
    joints = [sy.Joint("a", None, sy.Kind.BALL), sy.Joint("b", "a", sy.Kind.BALL), sy.Joint("c", "b", sy.Kind.BALL)]
    sy.formats.write_skeleton(sy.Skeleton(joints), tmp_path / "one.toml")
    lines = (tmp_path / "one.toml").read_text().splitlines()
    assert [line for line in lines if line.startswith("parent")] == ['parent = "a"', 'parent = "b"']
    twins = [sy.Joint("a", None, sy.Kind.BALL), sy.Joint("a", 0, sy.Kind.BALL), sy.Joint("c", 1, sy.Kind.BALL)]
    sy.formats.write_skeleton(sy.Skeleton(twins), tmp_path / "two.toml")
    lines = (tmp_path / "two.toml").read_text().splitlines()
    assert [line for line in lines if line.startswith("parent")] == ["parent = 0", "parent = 1"]
    assert sy.load_skeleton(tmp_path / "two.toml").parents == (-1, 0, 1)


TEXTS = {
    "XML": ["<robot name='a'><link name='b'/></robot>", '<?xml version="1.0"?>\n<mujoco model="m"/>\n', b"<robot/>"],
    "JSON": ['{"asset": {"version": "2.0"}}', '[{"joint": "tool"}]', "{}\n"],
    "BVH": ["HIERARCHY\nROOT hips\n{\n OFFSET 0 0 0\n}"],
    "TOML": ['schema = "synovia.skeleton/1"\n', "[[joint]]\nname = 'a'\n", "# a\n[[goal]]\njoint = 'tool'\n"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in TEXTS.items() for text in texts])
def test_the_text_of_a_file_is_no_path(kind, text):
    arm = sy.bundled("arm7")
    for read in (
        sy.load_skeleton,
        sy.load_motion,
        sy.io.load.load_model,
        lambda path: sy.load_pose(path, arm),
        lambda path: sy.read_goals(path, arm),
    ):
        with pytest.raises(sy.InputError, match=rf"path: .*text of a file \({kind}\); write it to a file"):
            read(text)


@pytest.mark.parametrize("name", ["{arm}.toml", "[1]", "<arm>.toml", "a\nb.toml", "[[a]].toml", "schema = 1.toml"])
def test_names_of_files_may_look_strange(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sy.io.base.as_path(name) == Path(name)
    Path("<a>").write_text("<robot name='a'><link name='b'/></robot>", encoding="utf-8")
    assert sy.load_skeleton("<a>").joint_names == ("b",)


@pytest.mark.parametrize(("name", "shape"), [("joints", (5, 63)), ("landmarks", (5, 21, 3)), ("joints", (5, 22, 3))])
def test_archives_of_points_are_told_from_motions(tmp_path, name, shape):
    path = tmp_path / "hand.npz"
    np.savez(path, **{name: np.zeros(shape), "fps": 30})
    for read in (sy.load_motion, sy.load_skeleton):
        with pytest.raises(sy.errors.FormatError, match="holds no motion: expected arrays schema, q, ") as caught:
            read(path)
        assert f"'{name} {shape}, fps ()'" in str(caught.value)
        assert "'joints' (T, 21, 3)" in str(caught.value)


@pytest.mark.parametrize("name", ["hand.npy", "hand.trc", "hand.c3d", "hand.tsv"])
def test_files_of_points_alone_are_told(tmp_path, name):
    (tmp_path / name).write_bytes(b"points")
    with pytest.raises(sy.errors.FormatError, match="synovia animate --points"):
        sy.load_motion(tmp_path / name)


def test_a_table_without_times_is_told_with_and_without_a_model(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("joint1,joint2\n0,0\n", encoding="utf-8")
    for more in ({}, {"skeleton": sy.bundled("arm7")}):
        with pytest.raises(
            sy.errors.FormatError, match="line 1: first column is not time: expected a column 'time' in seconds"
        ):
            sy.load_motion(path, **more)
    path.write_text("time,joint1\n0,0\n", encoding="utf-8")
    with pytest.raises(sy.errors.FormatError, match="Name its model"):
        sy.load_motion(path)


def test_joints_of_an_archive_may_be_the_points(tmp_path):
    path = tmp_path / "hand.npz"
    np.savez(path, joints=np.ones((5, 21, 3)), fps=30)
    assert holds_points(path)
    found = read_points(path)
    assert (found.positions.shape, found.joints, found.fps, found.notes) == ((5, 21, 3), None, 30.0, ())
    np.savez(path, joints=np.ones((5, 63)))
    with pytest.raises(sy.errors.FormatError, match=r"expected \(T, K, 3\): frames, points, x y z, got \(5, 63\)"):
        read_points(path)
