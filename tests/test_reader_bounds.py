"""Small files that ask for much: time and memory stay in proportion to the file, and every refusal is ours."""

import io
import json
import pickle
import time
import tracemalloc
import zipfile
from base64 import b64encode
from contextlib import suppress

import numpy as np
import pytest

import synovia as sy
from synovia.clips.pointfile import holds_points, read_points
from synovia.errors import FileError, FormatError, InputError, did_you_mean
from synovia.files.goals import read_goals
from synovia.files.poses import load_pose
from synovia.files.tracks import read_track
from synovia.io.base import FREE_NUMBERS, NUMBERS_A_BYTE, most_numbers
from synovia.io.bvh import write_bvh
from synovia.io.toml import write_skeleton
from synovia.model import LONGEST_COUPLING, Joint, Kind, Mimic, Skeleton
from synovia.model.geometry import as_unit_quat
from synovia.model.shapes.triangles import ball
from synovia.retargeting.joint_map import read_map, write_map
from synovia.surface import surface_of
from synovia.surface.base import MOST_FACES
from synovia.text import parse_json, parse_toml

HANG = 10.0  # seconds of the processor; each of these files once took minutes, or more memory than there is


@pytest.fixture(autouse=True)
def in_proportion():
    """Fail what hangs."""
    start = time.process_time()
    yield
    assert time.process_time() - start < HANG


def saved(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


# Sizes


@pytest.mark.parametrize(
    ("read", "name", "mebibytes"),
    [
        pytest.param(sy.load_skeleton, "a.urdf", 128, id="urdf"),
        pytest.param(sy.load_skeleton, "a.xml", 128, id="mjcf"),
        pytest.param(sy.load_skeleton, "a.toml", 32, id="skeleton"),
        pytest.param(lambda path: load_pose(path, sy.bundled("arm7")), "a.json", 64, id="pose"),
        pytest.param(read_track, "a.json", 64, id="track"),
        pytest.param(read_goals, "a.json", 16, id="goals"),
        pytest.param(read_map, "a.toml", 16, id="map"),
    ],
)
def test_files_are_looked_at_up_to_the_size_that_is_documented(tmp_path, read, name, mebibytes):
    path = tmp_path / name
    head = {"a.urdf": b"<robot", "a.xml": b"<mujoco", "a.toml": b'schema = "synovia.skeleton/1"\n'}.get(name, b"{")
    path.write_bytes(head)
    for size, refused in ((mebibytes << 20, False), ((mebibytes << 20) + 1, True)):
        with path.open("r+b") as file:
            file.truncate(size)  # what follows is nothing but zeros
        with pytest.raises(sy.SynoviaError) as caught:
            read(path)
        assert ("too large" in str(caught.value)) is refused, caught.value


# JSON and TOML


def test_many_names_in_an_object_and_one_twice():
    names = ", ".join(f'"{k}": 0' for k in range(50_000))
    with pytest.raises(FormatError, match="'49999': expected each name once"):
        parse_json(f'{{{names}, "49999": 1}}', "a.json")


@pytest.mark.parametrize("text", ['{"\\ud800": 1}', '["a\\uDFFFb"]'])
def test_half_of_a_character(text):
    with pytest.raises(FormatError, match=r"Unicode, got .*\\\\ud[8f]"):
        parse_json(text, "a.json")


def test_a_character_in_two_halves_is_whole():
    assert parse_json('["\\ud83d\\ude00"]', "a.json") == ["\U0001f600"]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{'.'.join(f'k{k}x{j}' for j in range(900))} = 1\n" for k in range(100)),
        "a." * 100_000 + "a = 1",
        "a . " * 100_000 + "a = 1",
        "x = { y = 'x', " + "'.'." * 500 + "a = 1 }",
        "\n\n[" + ".".join("a" * 100) + "]",
        "[[" + ' . "b c" . '.join("a" * 100) + "]]",
    ],
    ids=range(6),
)
def test_keys_of_many_parts(text):
    with pytest.raises(FormatError, match=r"line [13]: dotted key: expected at most"):
        parse_toml(text, "a.toml")


@pytest.mark.parametrize("piece", ["a", '"', "'", '\\"', "a ", ' "', " '", ' "\\', "a..", '"a b" ', ",'", '{"\\'])
def test_looking_for_such_keys_is_quick(piece):
    with pytest.raises(FormatError):
        parse_toml(piece * 100_000, "a.toml")


def test_dots_in_names_and_numbers_are_no_keys():
    dots = ".".join("abcdefghijklmnopqrstuvwxyz")
    assert parse_toml(f'x = ["{dots}", {"1.5, " * 3000}]', "a.toml")["x"][0] == dots


def test_a_number_of_thousands_of_digits():
    text = f'schema = "synovia.skeleton/1"\n[[joint]]\nname = "a"\nkind = "fixed"\nparent = 0x{"f" * 9000}\n'
    with pytest.raises(FormatError, match="too many digits"):
        sy.io.toml.parse_skeleton(text.encode(), sy.io.base.as_path("a.toml"))
    assert "a number of 36000 bits" in str(InputError("x", value=int("f" * 9000, 16)))


@pytest.mark.parametrize(("begin", "digits"), [("0.", "1"), ("-", "1"), ("0x", "f"), ("1e", "1_")])
@pytest.mark.parametrize("before", ["x = ", "x=", "x = [1,", "x = {a = "])
def test_a_number_of_a_million_digits_is_refused_before_it_is_read(begin, digits, before):
    """The pattern of numbers would take 140 bytes a digit."""
    number = begin + digits * 10**6
    with pytest.raises(FormatError, match="line 2: a number has too many digits"):
        parse_toml(f"a = 1\n{before}{number}", "a.toml")
    assert parse_toml(f'x = "{number}"', "a.toml") == {"x": number}


@pytest.mark.parametrize("begin", ["a", "", "(noname)+"])
@pytest.mark.parametrize("blank", ["\n", " \n", "\r\n", "\t \n"])
def test_files_of_blank_lines_are_no_scenes(tmp_path, begin, blank):
    path = saved(tmp_path, begin + "\n" + blank * 200_000 + "x", "a.toml")
    with pytest.raises(FormatError):
        sy.load_world(path)
    saved(tmp_path, f"scene\n{blank}{blank}* ball\n1\nsphere\n0.1\n0 0 0\n0 0 0 1\n0 0 0 0\n.\n", "a.scene")
    assert sy.load_world(tmp_path / "a.scene").names == ("ball",)


# Couplings


def hinge(name, parent=None, leader=None):
    return Joint(name, parent, Kind.HINGE, axis=(0, 0, 1), mimic=Mimic(leader) if leader else None)


def test_long_chains_of_couplings(tmp_path):
    def chain(count):
        return [hinge("j0"), *(hinge(f"j{k}", k - 1, f"j{k - 1}") for k in range(1, count))]

    body = Skeleton(chain(LONGEST_COUPLING + 1))
    assert len(body.tables.followers) == LONGEST_COUPLING
    with pytest.raises(InputError, match="chain of more than 100 joints"):
        Skeleton(chain(LONGEST_COUPLING + 2))
    lines = ['schema = "synovia.skeleton/1"', '[[joint]]\nname = "j0"\nkind = "hinge"\naxis = [0, 0, 1]']
    for k in range(1, 2000):  # more than functions of Python may be nested
        lines.append(f'[[joint]]\nname = "j{k}"\nparent = "j0"\nkind = "hinge"\naxis = [0, 0, 1]')
        lines.append(f'mimic = {{ leader = "j{k - 1}" }}')
    with pytest.raises(FormatError, match="chain of more than 100 joints"):
        sy.load_skeleton(saved(tmp_path, "\n".join(lines), "a.toml"))


# BVH

HEAD = "HIERARCHY\nROOT A\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n}\nMOTION\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "Frames" + " " * 100_000 + "\n",
        HEAD + "Frames" + " " * 100_000 + ":" + " " * 100_000,
        HEAD + "Frames: 1 Frame" + " " * 100_000 + "Time" + " " * 100_000,
        HEAD + " " * 100_000,
        HEAD + "Frames: 1 Frame Time: 1 " + "1" * 100_000 + "x",
        HEAD + "Frames: 1 Frame Time: " + "1" * 100_000 + "x",
        HEAD.replace("0 0 0", "1" * 100_000 + "x 0 0"),
    ],
    ids=range(7),
)
def test_long_runs_in_bvh(tmp_path, text):
    with pytest.raises(FormatError, match="line"):
        sy.load_motion(saved(tmp_path, text, "a.bvh"))


def test_what_a_bvh_file_looks_like_line_by_line(tmp_path):
    at = np.eye(4)
    at[:3, 3] = 0.5, -0.0, 2
    joints = [
        Joint("hip bone", kind=Kind.FREE),
        Joint("knee", 0, Kind.HINGE, at, axis=(1, 0, 0)),
        Joint("tip", 1, rest=at, tip=True),
        Joint("other", 0, Kind.BALL, at),
    ]
    body = Skeleton(joints)
    q = np.tile(body.rest_q, (2, 1))
    q[1, :3], q[1, 7] = (1, 2, 3), np.pi / 6
    write_bvh(sy.Motion(body, q, 25.0), tmp_path / "a.bvh")
    expected = """HIERARCHY
ROOT hip bone
{
\tOFFSET 0 0 0
\tCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
\tJOINT knee
\t{
\t\tOFFSET 0.5 0 2
\t\tCHANNELS 3 Zrotation Xrotation Yrotation
\t\tEnd Site
\t\t{
\t\t\tOFFSET 0.5 0 2
\t\t}
\t}
\tJOINT other
\t{
\t\tOFFSET 0.5 0 2
\t\tCHANNELS 3 Zrotation Xrotation Yrotation
\t}
}
MOTION
Frames: 2
Frame Time: 0.040000000000000001
0 0 0 0 0 0 0 0 0 0 0 0
1 2 3 0 0 0 0 30 0 0 0 0
"""
    assert (tmp_path / "a.bvh").read_text(encoding="utf-8") == expected
    again = sy.load_motion(tmp_path / "a.bvh")
    np.testing.assert_allclose(again.positions(), sy.Motion(body, q, 25.0).positions(), atol=1e-12)


# CSV


def table(tmp_path, text):
    return saved(tmp_path, text, "a.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,joint1\n0,1_0\n", "line 2: cell is not a number: expected for example -0.5 or 1e-3, got '1_0'"),
        ("time,joint1\n0,\u0661\u0662\n", "line 2: cell is not a number"),
        ("time,joint1\n\uff11,0\n", "line 2: cell is not a number"),
        ("time,joint1\n\n\n0,1\n\n\n1,x\n", "line 7: cell is not a number"),
        ("\n\ntime,joint1\n0,x\n", "line 4: cell is not a number"),
        ("\n\nzeit,joint1\n", "line 3: first column is not time"),
        ("time,joint1\n0,1\n\n1\n", "line 4: row has 1 cell:"),
        ('time,joint1\n0,"1\n"\n\n1,x\n', "line 5: cell is not a number"),
        ("time,joint1,joint2,joint1\n0,1,2,3\n", "line 1: column 'joint1' is repeated"),
        ("time,joint1,time\n0,1,2\n", "line 1: column 'time' is repeated"),
        ("time,joint1\n0,0\n0,0\n", "times do not increase"),
        ("time,joint1\n0,0\n1,0\n1,0\n2,0\n", "times do not increase"),
        ("time,joint1\ninf,0\ninf,0\n", "times do not increase"),
        ("time,joint1\nnan,0\n", "times do not increase"),
        ("time,joint1\n-1e308,0\n1e308,0\n", "times do not increase"),
        ("time,joint1\n0," + "1" * 200_000 + "\n", "line 2: is not comma-separated text"),
        ("time," + ",".join(f"x{k}" for k in range(100_000)) + "\n" + "0\n" * 100_000, "belongs to no joint"),
    ],
    ids=range(17),
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        sy.formats.read_csv(table(tmp_path, text), sy.bundled("arm7"))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system(tmp_path, end):
    motion = sy.formats.read_csv(table(tmp_path, f"time,joint1{end}0,0.5{end}{end}0.1,0.25{end}"), sy.bundled("arm7"))
    assert [pose["joint1"] for pose in motion] == [0.5, 0.25]


def test_a_table_of_many_columns_takes_memory_for_its_cells_alone(tmp_path):
    head = "time," + ",".join(f"p{k}.{axis}" for k in range(5000) for axis in "xyz")
    path = saved(tmp_path, head + "\n" + "0\n" * 15_000, "points.csv")  # a table of all would take 1.8 GB
    tracemalloc.start()
    with pytest.raises(FormatError, match="line 2: row has 1 cell:"):
        read_points(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200 * path.stat().st_size


# NumPy archives


def motion_archive(tmp_path):
    arm = sy.bundled("arm7")
    path = tmp_path / "a.npz"
    sy.save_motion(sy.Motion(arm, np.array([arm.random_pose(k).q for k in range(3)]), 30.0), path)
    with np.load(path) as arrays:
        return path, dict(arrays)


class Trap:
    """Something that must never be unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was read",)


@pytest.mark.parametrize("name", ["q", "name", "skeleton", "stretch"])
def test_pickles_are_refused(tmp_path, name):
    path, content = motion_archive(tmp_path)
    trap = np.empty(1, object)
    trap[0] = Trap()
    np.savez(path, **{**content, name: trap})
    for read in (sy.load_motion, sy.load_skeleton):
        with pytest.raises(FormatError, match="Pickled objects are never read"):
            read(path)


@pytest.mark.parametrize("name", ["positions", "joints", "offsets"])
@pytest.mark.parametrize("ending", ["npz", "npy"])
def test_pickled_points_are_refused(tmp_path, name, ending):
    path = tmp_path / f"a.{ending}"
    trap = np.empty((1, 1, 3), object)
    trap[:] = Trap()
    if ending == "npz":
        np.savez(path, **{"positions": np.zeros((1, 1, 3)), name: trap})
    else:
        np.save(path, trap, allow_pickle=True)
    with pytest.raises(FormatError, match="Pickled objects are never read"):
        read_points(path)


def test_a_bare_pickle_is_refused(tmp_path):
    with pytest.raises(FormatError):
        read_points(saved(tmp_path, pickle.dumps(Trap()), "a.npy"))


def npy(shape, kind="<f8", body=b""):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + body


def repacked(path, content, way=zipfile.ZIP_DEFLATED, **members):
    """Write arrays, and members as they are, into an archive."""
    with zipfile.ZipFile(path, "w", way) as packed:
        for name, array in content.items():
            data = io.BytesIO()
            np.save(data, array)
            packed.writestr(f"{name}.npy", data.getvalue())
        for name, data in members.items():
            packed.writestr(name, data)


@pytest.mark.parametrize(
    "shape", ["(300000000,)", "(3, 100000000)", "(-1,)", "(0, 10000000000000)", "(1,)", "(2.5,)", "x"]
)
def test_the_head_of_an_array_is_checked_before_memory_is_taken(tmp_path, shape):
    path, content = motion_archive(tmp_path)
    assert len(sy.load_motion(path)) == 3  # what it imports is not counted
    del content["q"]
    repacked(path, content, **{"q.npy": npy(shape)})
    tracemalloc.start()
    with pytest.raises(FormatError):
        sy.load_motion(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**23


def test_arrays_that_nobody_needs_are_not_unpacked(tmp_path):
    path, content = motion_archive(tmp_path)
    size = 2**25  # twice the memory that may be taken
    repacked(path, content, **{"unused.npy": npy(f"({size},)", "|u1", bytes(size)), "a": b"no array"})
    assert path.stat().st_size < 2**19
    tracemalloc.start()
    assert len(sy.load_motion(path)) == 3
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**24


def test_small_archives_of_large_arrays_are_refused(tmp_path):
    path, content = motion_archive(tmp_path)
    frames = FREE_NUMBERS // 7 + 40_000
    repacked(path, {**content, "q": np.zeros((frames, 7))})
    with pytest.raises(FormatError, match="too large"):
        sy.load_motion(path)
    assert most_numbers(path.stat().st_size) < 7 * frames < FREE_NUMBERS + NUMBERS_A_BYTE * 2**20


@pytest.mark.parametrize(
    ("offset", "value"),
    [(4, 99), (6, 1), (8, 12), (8, 99), (6, 0x20), (6, 0x40)],
    ids=["version", "encrypted", "bzip2", "unknown", "patch", "strong encryption"],
)
def test_archives_packed_in_unusual_ways(tmp_path, offset, value):
    path, _ = motion_archive(tmp_path)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + offset + 2 : at + offset + 4] = value.to_bytes(2, "little")
    at = data.index(b"PK\x03\x04")
    data[at + offset : at + offset + 2] = value.to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(FormatError):
        sy.load_motion(path)
    assert holds_points(path) is False


@pytest.mark.parametrize("way", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packers_are_refused(tmp_path, way):
    path, content = motion_archive(tmp_path)
    repacked(path, content, way)
    with pytest.raises(FormatError, match="unsupported compression"):
        sy.load_motion(path)


def test_a_motion_without_frames_comes_back(tmp_path):
    arm = sy.bundled("arm7")
    sy.save_motion(sy.Motion(arm, np.empty((0, 7)), 30.0), tmp_path / "a.npz")
    assert len(sy.load_motion(tmp_path / "a.npz")) == 0


@pytest.mark.parametrize("code", [0xD7FF, 0xE000, 0x10FFFF])
@pytest.mark.parametrize("order", ["little", "big"])
def test_characters_at_the_edges_of_what_is_text(tmp_path, code, order):
    path, content = motion_archive(tmp_path)
    content.pop("name")
    kind = "<U1" if order == "little" else ">U1"
    repacked(path, content, **{"name.npy": npy("()", kind, code.to_bytes(4, order))})
    assert sy.load_motion(path).name == chr(code)


@pytest.mark.parametrize("code", [0xD800, 0xDFFF, 0x110000])
def test_texts_that_are_none(tmp_path, code):
    path, content = motion_archive(tmp_path)
    content["name"] = np.frombuffer(code.to_bytes(4, "little"), "<U1")[0:1].reshape(())
    body = code.to_bytes(4, "little")
    content.pop("name")
    repacked(path, content, **{"name.npy": npy("()", "<U1", body)})
    with pytest.raises(FormatError, match="name a text"):
        sy.load_motion(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("positions", np.zeros((4, 3))),
        ("positions", np.zeros((4, 2, 2))),
        ("positions", np.full((1, 2, 3), "x")),
        ("joints", np.array(["a"])),
        ("joints", np.zeros(2)),
        ("joints", np.array([b"a", b"b"])),
        ("offsets", np.zeros((1, 3))),
        ("confidence", np.zeros(3)),
        ("confidence", np.zeros((9, 2))),
        ("fps", np.zeros(1)),
        ("fps", np.array(True)),
    ],
)
def test_points_that_do_not_belong_together(tmp_path, name, array):
    content = {"positions": np.zeros((4, 2, 3)), "joints": np.array(["a", "b"]), "confidence": np.ones((4, 2))}
    path = tmp_path / "a.npz"
    np.savez(path, **content)
    read_points(path).chosen({"x": "b"}, path)
    np.savez(path, **{**content, name: array})
    with pytest.raises(FormatError, match=name):
        read_points(path)


# glTF


def two_nodes(**more):
    return {"asset": {"version": "2.0"}, "nodes": [{"name": "a", "children": [1]}, {"name": "b"}], **more}


@pytest.mark.parametrize("uri", ["\ud800.bin", "data:,\ud800", "data:;base64,\ud800"])
def test_half_of_a_character_in_the_address_of_a_buffer(tmp_path, uri):
    content = two_nodes(
        buffers=[{"byteLength": 4, "uri": uri}],
        bufferViews=[{"buffer": 0, "byteLength": 4}],
        accessors=[{"bufferView": 0, "componentType": 5126, "count": 1, "type": "SCALAR"}],
        animations=[
            {
                "samplers": [{"input": 0, "output": 0}],
                "channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}],
            }
        ],
    )
    with pytest.raises(sy.SynoviaError, match=r"buffers\[0\]"):
        sy.load_skeleton(saved(tmp_path, json.dumps(content), "a.gltf"))


def test_half_of_a_character_in_a_name(tmp_path):
    content = two_nodes()
    content["nodes"][1]["name"] = "\udc80"
    with pytest.raises(FormatError, match=r"nodes\[1\]\.name: name is not valid Unicode"):
        sy.load_skeleton(saved(tmp_path, json.dumps(content), "a.gltf"))


def test_many_channels_of_one_array_count_each(tmp_path):
    keys = 20_000
    content = two_nodes(
        accessors=[
            {"componentType": 5126, "count": keys, "type": "SCALAR"},
            {"componentType": 5126, "count": keys, "type": "VEC3"},
        ]
    )
    content["nodes"] = [{} for _ in range(500)]
    channels = [{"sampler": 0, "target": {"node": k, "path": "translation"}} for k in range(500)]
    content["animations"] = [{"samplers": [{"input": 0, "output": 1}], "channels": channels}]
    with pytest.raises(FormatError, match="needs too much memory"):
        sy.load_skeleton(saved(tmp_path, json.dumps(content), "a.gltf"))


# Surfaces


def mesh(tmp_path, primitives, **more):
    """A glTF of one triangle that many primitives show."""
    corners = np.eye(3, dtype="<f4").tobytes()
    data = corners + np.zeros((3, 2), "<f4").tobytes() + bytes(12) + np.eye(3, 4, dtype="<f4").tobytes()
    data += more.pop("data", b"")
    places = [(0, 36), (36, 24), (60, 12), (72, 48), (120, len(data) - 120)]
    kinds = [(5126, "VEC3"), (5126, "VEC2"), (5121, "VEC4"), (5126, "VEC4")]
    content = two_nodes(
        meshes=[{"primitives": primitives}],
        accessors=[
            {"bufferView": k, "componentType": kind, "type": form, "count": 3} for k, (kind, form) in enumerate(kinds)
        ],
        bufferViews=[{"buffer": 0, "byteOffset": at, "byteLength": size} for at, size in places if size],
        buffers=[{"byteLength": len(data), "uri": "data:;base64," + b64encode(data).decode()}],
        **more,
    )
    content["nodes"][0]["mesh"] = 0
    content["nodes"][0] |= {"skin": 0} if "skins" in more else {}
    return saved(tmp_path, json.dumps(content), "a.gltf")


def test_the_joints_of_a_skin_count_for_each_primitive(tmp_path):
    parts = [{"attributes": {"POSITION": 0, "JOINTS_0": 2, "WEIGHTS_0": 3}}] * 300
    path = mesh(tmp_path, parts, skins=[{"joints": [1] * 20_000}])
    skeleton = sy.load_skeleton(path)
    assert "skins[0]: needs too much memory" in surface_of(path, skeleton).notes[0]
    path = mesh(tmp_path, parts[:3], skins=[{"joints": [1] * 20_000}])
    assert surface_of(path, skeleton).parts


def test_a_primitive_with_less_than_a_triangle_is_not_shown(tmp_path):
    image = pytest.importorskip("PIL.Image")
    packed = io.BytesIO()
    image.new("RGB", (4, 4)).save(packed, "PNG")
    whole, part = (
        {"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "material": 0} | more for more in ({}, {"indices": 4})
    )
    paint = {
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        "textures": [{"source": 0}], "images": [{"bufferView": 4}], "data": packed.getvalue(),
    }  # fmt: skip
    path = mesh(tmp_path, [part, whole], **paint)
    content = json.loads(path.read_text())
    content["accessors"].append({"componentType": 5121, "type": "SCALAR", "count": 2})
    path.write_text(json.dumps(content))
    (shown,) = surface_of(path, sy.load_skeleton(path)).parts
    assert len(shown.faces) == 1


@pytest.mark.parametrize("skin", [True, False])
def test_meshes_that_overflow_are_refused(tmp_path, skin):
    attributes = {"POSITION": 0} | ({"JOINTS_0": 2, "WEIGHTS_0": 3} if skin else {})
    binds = {"inverseBindMatrices": 4} if skin else {}
    path = mesh(tmp_path, [{"attributes": attributes}], skins=[{"joints": [1]} | binds], data=b"\xff\xff\x7f\x7f" * 16)
    content = json.loads(path.read_text())
    content["accessors"].append({"bufferView": 4, "componentType": 5126, "type": "MAT4", "count": 1})
    content["nodes"] = [{"children": [1, 2]}, {"scale": [1e290] * 3}, {"scale": [1e290] * 3, "children": [3]}]
    content["nodes"].append({"mesh": 0, "scale": [1e290] * 3} | ({"skin": 0} if skin else {}))
    path.write_text(json.dumps(content))
    surface = surface_of(path, sy.load_skeleton(path))
    assert surface.parts == ()
    assert ("too large" if skin else "not finite") in surface.notes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, None),
        ({"accessors": [{"componentType": 5126, "type": "VEC3", "count": 30_000_000}]}, "needs too much memory"),
        ({"nodes": [{"children": [k + 1, k + 1]} for k in range(40)] + [{"mesh": 0}]}, "two parents"),
        ({"nodes": [{"mesh": 0}] * 100_000}, "needs too much memory"),
    ],
    ids=["whole", "accessor", "nodes", "meshes"],
)
def test_meshes_of_a_robot_that_unpack_to_much(tmp_path, change, message):
    pytest.importorskip("trimesh")
    content = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}] * (40 if message else 1)}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36}],
    }  # fmt: skip
    text = json.dumps(content | change).encode()
    text += b" " * (-len(text) % 4)
    corners = np.eye(3, dtype="<f4").tobytes()
    body = len(text).to_bytes(4, "little") + b"JSON" + text + (36).to_bytes(4, "little") + b"BIN\0" + corners
    saved(tmp_path, b"glTF\2\0\0\0" + (12 + len(body)).to_bytes(4, "little") + body, "m.glb")
    shape = "<visual><geometry><mesh filename='m.glb'/></geometry></visual>"
    path = saved(tmp_path, f"<robot name='r'><link name='a'>{shape}</link></robot>", "a.urdf")
    surface = surface_of(path, sy.load_skeleton(path))
    assert len(surface.parts) == (message is None)
    assert message is None or message in surface.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "few", "many", "free"),
    [(8192, 1, 2, 2**21), (1024, 15, 200, FREE_NUMBERS)],  # the largest image takes half a second
)
def test_large_images_of_a_few_bytes(tmp_path, monkeypatch, side, few, many, free):
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setattr("synovia.io.base.FREE_NUMBERS", free)
    packed = io.BytesIO()
    image.new("1", (side, side), 1).save(packed, "PNG")
    for count, shown in ((few, True), (many, False)):
        path = mesh(
            tmp_path,
            [{"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "material": k} for k in range(count)],
            materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": k}}} for k in range(count)],
            textures=[{"source": k} for k in range(count)],
            images=[{"bufferView": 4}] * count,
            data=packed.getvalue(),
        )
        surface = surface_of(path, sy.load_skeleton(path))
        assert all(part.texture is not None for part in surface.parts)
        assert len(surface.parts) == (count if shown else 0)
        assert shown or "needs too much memory" in surface.notes[0]


def test_shapes_beyond_the_most_triangles_are_not_made(tmp_path, monkeypatch):
    count, made = 5000, []

    def counted(radii):
        made.append(ball(radii))
        return made[-1]

    monkeypatch.setattr("synovia.model.shapes.triangles.ball", counted)
    sphere = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    path = saved(tmp_path, f"<robot name='r'><link name='a'>{sphere * count}</link></robot>", "a.urdf")
    surface = surface_of(path, sy.load_skeleton(path))
    assert len(made) == MOST_FACES // len(made[0][1]) + 1 < count
    assert surface.parts == ()
    assert "more than 2000000 triangles" in surface.notes[0]


@pytest.mark.parametrize(
    "more",
    [
        {"bufferViews": [{}]}, {"bufferViews": 3}, {"buffers": [3]}, {"buffers": {}}, {"images": [None]},
        {"animations": [{}], "accessors": [7]}, {"buffers": [{"byteLength": 4.0}]}, {"buffers": [{}]}, {"buffers": []},
        {"buffers": [{"byteLength": 1, "uri": "data:,x"}]}, {"buffers": [{"byteLength": "4"}]},
    ],
    ids=range(11),
)  # fmt: skip
@pytest.mark.parametrize("binary", [b"", b"abcd"])
def test_what_no_joint_needs_may_be_damaged_where_a_clip_is_written(tmp_path, more, binary):
    text = json.dumps(two_nodes(**more)).encode()
    text += b" " * (-len(text) % 4)
    chunks = len(text).to_bytes(4, "little") + b"JSON" + text
    chunks += len(binary).to_bytes(4, "little") + b"BIN\0" + binary if binary else b""
    path = saved(tmp_path, b"glTF\2\0\0\0" + (12 + len(chunks)).to_bytes(4, "little") + chunks, "a.glb")
    body = sy.load_skeleton(path)
    motion = sy.Motion(body, np.array([body.random_pose(k).q for k in range(3)]), 30.0)
    for ending in ("gltf", "glb"):
        with suppress(FormatError):
            sy.save_motion(motion, tmp_path / f"out.{ending}", into=path)
            again = sy.load_motion(tmp_path / f"out.{ending}", "motion")
            np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-6)


# Goals, tracks, poses, maps, names and paths


def test_positions_alone_run_from_key_to_key(tmp_path):
    keys = [{"time": 0, "position": [0, 0, 0]}, {"time": 1, "position": [1, 0, 0]}]
    content = {"schema": "synovia.track/1", "fps": 2, "goals": [{"joint": "a", "keys": keys}]}
    spoilt = np.full(9 * 3, np.nan)  # memory that may be given out again, uninitialised
    del spoilt
    track = read_track(saved(tmp_path, json.dumps(content), "a.json"))
    np.testing.assert_allclose(track.targets["a"], [[0, 0, 0], [0.5, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    "keys",
    [
        [(0, 1e200), (1e-300, -1e200), (2e-300, 1e200)],
        [(0, 0), (5e-324, 1), (1, 0)],
        [(0, 1e308), (1, -1e308), (2, 1e308), (3, -1e308)],
    ],
)
def test_keys_without_a_curve(tmp_path, keys):
    content = {
        "schema": "synovia.track/1",
        "interpolation": "cubic",
        "goals": [{"joint": "a", "keys": [{"time": t, "position": [x, 0, 0]} for t, x in keys]}],
    }
    with suppress(FormatError):
        assert np.isfinite(read_track(saved(tmp_path, json.dumps(content), "a.json")).targets["a"]).all()


def test_targets_of_many_goals_are_counted_before_they_are_made(tmp_path):
    goals = [
        {"joint": k, "keys": [{"time": 0, "position": [0, 0, 0]}, {"time": 30_000, "position": [1, 0, 0]}]}
        for k in range(50)
    ]
    with pytest.raises(FormatError, match="targets: expected at most"):
        read_track(saved(tmp_path, json.dumps({"schema": "synovia.track/1", "goals": goals}), "a.json"))


def test_a_follower_of_a_huge_value(tmp_path):
    body = Skeleton([hinge("a"), Joint("b", 0, Kind.SLIDE, axis=(0, 0, 1), mimic=Mimic("a", 10.0))])
    text = '{"schema": "synovia.pose/1", "q": {"a": 1e308}}'
    with pytest.raises(FormatError):
        load_pose(saved(tmp_path, text, "a.json"), body)
    q = np.array([[1e308, 0.0]])
    with pytest.raises(InputError, match=r"at most 1e\+15"):
        sy.Motion(body, q, 30.0)


@pytest.mark.parametrize("value", [1e160, 1e308])
def test_a_quaternion_whose_length_overflows(value):
    body = Skeleton([Joint("a", kind=Kind.BALL)])
    with pytest.raises(InputError, match=r"at most 1e\+15"):
        sy.Motion(body, [[value, 0, 0, 1]], 30.0)
    with pytest.raises(InputError, match="expected a unit quaternion"):
        as_unit_quat((value, 0, 0, 1))


@pytest.mark.parametrize("path", ["\ud800.x", "a\0b.x"])
def test_paths_that_no_system_has(tmp_path, path):
    arm = sy.bundled("arm7")
    motion = sy.Motion(arm, arm.rest_q[None], 30.0)
    at = tmp_path / path
    for ending, read in {
        ".bvh": sy.load_motion, ".toml": sy.load_skeleton, ".csv": lambda p: sy.formats.read_csv(p, arm),
        ".npz": read_points,
        ".json": lambda p: load_pose(p, arm), ".glb": sy.load_skeleton, ".xml": sy.load_skeleton,
    }.items():  # fmt: skip
        with pytest.raises(sy.SynoviaError):
            read(at.with_suffix(ending))
        assert not holds_points(at.with_suffix(".npz"))
    for read in (read_goals, read_track, read_map):
        with pytest.raises(FileError):
            read(at.with_suffix(".toml"))
    for ending in (".bvh", ".npz", ".csv"):
        with pytest.raises(FileError, match="no file can have this name"):
            sy.save_motion(motion, at.with_suffix(ending), force=True)
    assert list(tmp_path.iterdir()) == []


def test_names_that_cannot_be_written_as_text(tmp_path):
    body = Skeleton([Joint("a\ud800", kind=Kind.HINGE, axis=(0, 0, 1))])
    motion = sy.Motion(body, body.rest_q[None], 30.0)
    for write in (
        lambda: write_skeleton(body, tmp_path / "a.toml"),
        lambda: sy.save_motion(motion, tmp_path / "a.csv"),
        lambda: sy.save_motion(motion, tmp_path / "a.npz"),
        lambda: write_map({"hips": ("\ud800", "a")}, tmp_path / "b.toml"),
    ):
        with pytest.raises(InputError, match="cannot be written as UTF-8"):
            write()
    assert list(tmp_path.iterdir()) == []


def test_names_of_clips_that_cannot_be_written_as_text(tmp_path):
    path = saved(tmp_path, json.dumps(two_nodes()), "a.gltf")
    body = sy.load_skeleton(path)
    motion = sy.Motion(body, body.rest_q[None], 30.0, name="a\ud800")
    for ending in ("npz", "glb", "gltf"):
        with pytest.raises(InputError, match="cannot be written as UTF-8"):
            sy.save_motion(motion, tmp_path / f"out.{ending}", into=path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gltf"]


def test_file_names_as_long_as_the_system_allows(tmp_path):
    arm = sy.bundled("arm7")
    path = tmp_path / ("x" * 251 + ".npz")
    sy.save_motion(sy.Motion(arm, arm.rest_q[None], 30.0), path)
    assert list(tmp_path.iterdir()) == [path]


def test_messages_stay_on_a_screen():
    long = "x" * 100_000
    error = FormatError(long, where=long, value=long, expected=long, hint=long)
    assert len(str(error)) < 5000
    assert len(did_you_mean(long, [long + "y"] * 3)) < 10 * len(long)
    assert did_you_mean("hnad", ["hand", long]).startswith("Did you mean 'hand'")
