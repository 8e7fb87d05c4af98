"""glTF and GLB: against node matrices evaluated straight from the JSON, and against everything a file can get wrong."""

import base64
import json
import struct
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from synovia.errors import FileError, FormatError, SynoviaError, UnsupportedError
from synovia.io.gltf import FORMAT
from synovia.io.load import load_motion, load_skeleton
from synovia.io.nodes.clips import TRANSLATES
from synovia.model import MAX_JOINTS, Kind

HANG = 10.0  # seconds: no measurement, only far from hanging, also on a busy machine

CHARACTERS = ["mannequiny.glb", "greenman.glb", "SimpleSkin.gltf"]
TURN = Rotation.from_rotvec([0.3, -0.9, 0.4])


# --- an evaluation of its own: 4x4 matrices of the JSON, one node and one time at a time ----------------------------


class Reference:
    """Node matrices at a time, with no shared code."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.chunk = b""
        if data[:4] == b"glTF":
            (size,) = struct.unpack_from("<I", data, 12)
            self.json = json.loads(data[20 : 20 + size])
            self.chunk = data[28 + size :]
        else:
            self.json = json.loads(data)
        self.above = {child: i for i, node in enumerate(self.json["nodes"]) for child in node.get("children", [])}

    @cache  # noqa: B019 - lives for one test
    def accessor(self, number):
        accessor = self.json["accessors"][number]
        view = self.json["bufferViews"][accessor["bufferView"]]
        uri = self.json["buffers"][view["buffer"]].get("uri")
        data = base64.b64decode(uri.split(",")[1]) if uri else self.chunk
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        at = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        assert accessor["componentType"] == 5126
        flat = struct.unpack_from(f"<{accessor['count'] * width}f", data, at)
        return np.array(flat).reshape(-1, width)

    @cache  # noqa: B019
    def turns(self, when, what):
        keys, turns = self.accessor(when)[:, 0], Rotation.from_quat(self.accessor(what))
        return Slerp(keys, turns) if len(keys) > 1 else turns

    def start(self, clip):
        return min(self.accessor(s["input"])[0, 0] for s in self.json["animations"][clip]["samplers"])

    def local(self, clip, when):
        """Translation, rotation, scale by node; at rest without a clip."""
        out = {}
        for i, node in enumerate(self.json["nodes"]):
            m = np.array(node.get("matrix", np.eye(4).T.ravel())).reshape(4, 4).T
            out[i] = [
                np.array(node.get("translation", m[:3, 3])),
                Rotation.from_quat(node["rotation"]).as_matrix() if "rotation" in node else m[:3, :3],
                np.array(node.get("scale", [1, 1, 1])),
            ]
        if clip is None:
            return out
        animation = self.json["animations"][clip]
        for channel in animation["channels"]:
            node, path = channel["target"]["node"], channel["target"]["path"]
            sampler = animation["samplers"][channel["sampler"]]
            keys, values = self.accessor(sampler["input"])[:, 0], self.accessor(sampler["output"])
            way = sampler.get("interpolation", "LINEAR")
            assert way == "LINEAR"
            when_in = min(max(when, keys[0]), keys[-1])
            if path == "rotation":
                way_round = self.turns(sampler["input"], sampler["output"])
                out[node][1] = (way_round(when_in) if len(keys) > 1 else way_round[0]).as_matrix()
            else:
                out[node][["translation", "rotation", "scale"].index(path)] = np.array(
                    [np.interp(when_in, keys, column) for column in values.T]
                )
        return out

    def positions(self, names, local):
        """World positions of the named nodes."""
        matrices = {}

        def world(i):
            if i not in matrices:
                t, r, s = local[i]
                m = np.eye(4)
                m[:3, :3], m[:3, 3] = r * s, t
                matrices[i] = world(self.above[i]) @ m if i in self.above else m
            return matrices[i]

        rows = {node.get("name", f"node{i}"): i for i, node in enumerate(self.json["nodes"])}
        return np.array([world(rows[name])[:3, 3] for name in names])


def stretched(motion, frame):
    """Positions of a frame with the animated scale: G = G_parent X diag(stretch), as FORMAT's reader documents it."""
    pose, skeleton = motion.pose(frame), motion.skeleton
    frames = [pose.transform(row) for row in range(len(skeleton))]
    full = []
    for row, parent in enumerate(skeleton.parents):
        local = np.linalg.inv(frames[parent]) @ frames[row] if parent >= 0 else frames[row]
        scale = np.ones(3) if motion.stretch is None else motion.stretch[frame, row]
        full.append((full[parent] if parent >= 0 else np.eye(4)) @ local @ np.diag([*scale, 1.0]))
    return np.array(full)[:, :3, 3]


@pytest.mark.parametrize("name", CHARACTERS)
def test_rest_is_that_of_the_node_matrices(shared_data, name) -> None:
    reference = Reference(shared_data / "character" / name)
    skeleton = load_skeleton(shared_data / "character" / name)
    expected = reference.positions(skeleton.joint_names, reference.local(None, 0.0))
    np.testing.assert_allclose(skeleton.rest_pose().positions, expected, atol=1e-12 * skeleton.size, rtol=0)


SPANS = 3  # of a clip, at whose ends it is compared: the reference walks all nodes for each time


@pytest.mark.parametrize("name", CHARACTERS)
def test_frames_of_every_clip_are_those_of_the_node_matrices(shared_data, name) -> None:
    path = shared_data / "character" / name
    reference, motions = Reference(path), FORMAT.read(path).motions()
    rest = reference.local(None, 0.0)
    assert len(motions) == len(reference.json["animations"])
    for clip, motion in enumerate(motions):
        skeleton = motion.skeleton
        rows = {node.get("name", f"node{i}"): i for i, node in enumerate(reference.json["nodes"])}
        rigid = {rows[joint.name] for joint in skeleton.joints if joint.kind is not Kind.FREE}
        start = reference.start(clip)
        for frame in range(0, len(motion), max(len(motion) // SPANS, 1)):
            when = start + frame / motion.fps
            local = reference.local(clip, when)
            whole = reference.positions(skeleton.joint_names, local)
            unmoved = {i: [rest[i][0] if i in rigid else place, *others] for i, (place, *others) in local.items()}
            kept = reference.positions(skeleton.joint_names, unmoved)
            got = stretched(motion, frame)
            # float32 key times and scales that are 1 but for rounding
            assert np.abs(got - kept).max() <= 2e-6 * skeleton.size, (motion.name, frame)
            assert np.abs(got - whole).max() <= TRANSLATES * skeleton.size, (motion.name, frame)


def test_only_joints_that_truly_translate_are_free(shared_data) -> None:
    skeleton = load_skeleton(shared_data / "character" / "mannequiny.glb")
    assert len(skeleton) == 47
    assert [j.name for j in skeleton.joints if j.kind is Kind.FREE] == ["pelvis", "ball.l", "ball.r"]
    assert [j.name for j in skeleton.joints if j.kind is Kind.FIXED] == ["root", "root.001"]
    assert skeleton.path("hand.l") == ("root/root.001/pelvis/spine_01/spine_02/clavicle.l/upperarm.l/lowerarm.l/hand.l")
    assert (skeleton.up, skeleton.forward, skeleton.meters_per_unit) == ("y", "z", 1.0)
    green = load_skeleton(shared_data / "character" / "greenman.glb")
    assert {j.name for j in green.joints if j.kind is Kind.FREE} == {
        "root", "hand_L", "hand_R", "socket_hand_L", "socket_hand_R",
    }  # fmt: skip


def test_animated_scale_is_kept_beside_the_motion(shared_data) -> None:
    jump = load_motion(shared_data / "character" / "mannequiny.glb", "air_jump_root.001")
    assert jump.stretch is not None
    assert jump.fps == 24.0
    assert np.abs(jump.stretch - 1.0).max() == pytest.approx(0.3156, abs=1e-3)
    assert load_motion(shared_data / "character" / "greenman.glb", "1_idle").stretch is None


# --- files made here -------------------------------------------------------------------------------------------------


class Maker:
    """A small glTF: nodes, and animation channels with their accessors."""

    def __init__(self, nodes, joints=None) -> None:
        self.json = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes}
        if joints is not None:
            self.json["skins"] = [{"joints": joints}]
        self.data = bytearray()
        self.json["bufferViews"], self.json["accessors"] = [], []

    def view(self, data, **extra):
        self.json["bufferViews"].append({"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data), **extra})
        self.data += data + b"\0" * (-len(data) % 4)
        return len(self.json["bufferViews"]) - 1

    def accessor(self, values, dtype="<f4", component=5126, **extra):
        values = np.asarray(values, dtype)
        kind = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}[1 if values.ndim == 1 else values.shape[1]]
        self.json["accessors"].append(
            {"bufferView": self.view(values.tobytes()), "componentType": component, "count": len(values), "type": kind}
            | extra
        )
        return len(self.json["accessors"]) - 1

    def channel(self, node, path, times, values, way=None, **extra):
        clips = self.json.setdefault("animations", [{"name": "clip", "channels": [], "samplers": []}])
        output = values if isinstance(values, int) else self.accessor(values, **extra)
        sampler = {"input": self.accessor(times), "output": output}
        clips[0]["samplers"].append(sampler | ({"interpolation": way} if way else {}))
        clips[0]["channels"].append({"sampler": len(clips[0]["samplers"]) - 1, "target": {"node": node, "path": path}})
        return self

    def write(self, folder, name="made.gltf", uri="data"):
        if self.data:
            self.json["buffers"] = [{"byteLength": len(self.data)}]
        path = folder / name
        if name.endswith(".glb"):
            path.write_bytes(glb(json.dumps(self.json).encode(), bytes(self.data)))
            return path
        if self.data and uri == "data":
            packed = base64.b64encode(bytes(self.data)).decode()
            self.json["buffers"][0]["uri"] = "data:application/octet-stream;base64," + packed
        elif self.data:
            self.json["buffers"][0]["uri"] = uri
            (folder / uri.replace("%20", " ")).write_bytes(bytes(self.data))
        path.write_text(json.dumps(self.json))
        return path


def glb(text, chunk=b"", version=2):
    text += b" " * (-len(text) % 4)
    body = struct.pack("<I4s", len(text), b"JSON") + text
    if chunk:
        chunk += b"\0" * (-len(chunk) % 4)
        body += struct.pack("<I4s", len(chunk), b"BIN\0") + chunk
    return struct.pack("<4sII", b"glTF", version, 12 + len(body)) + body


def chain(*steps, **root):
    """Nodes in a chain."""
    return [
        {"name": f"n{i}", "translation": list(step)} | ({"children": [i + 1]} if i + 1 < len(steps) else {}) | (
            root if i == 0 else {}
        )
        for i, step in enumerate(steps)
    ]  # fmt: skip


def two():
    return chain((0, 1, 0), (0, 1, 0))


QUATS = Rotation.from_rotvec([[0.1, 0, 0], [0.4, 0.7, -0.2], [1.5, -0.3, 0.2]]).as_quat()


def angles(motion, joint="n0"):
    place = motion.skeleton.q_slice(joint)
    return Rotation.from_quat(motion.q[:, place.stop - 4 : place.stop])


@pytest.mark.parametrize("way", ["STEP", "LINEAR", None])
def test_rotations_between_keys(tmp_path, way) -> None:
    signed = QUATS * [[1], [-1], [1]]  # the same rotations: the shorter arc is taken all the same
    motion = load_motion(Maker(two()).channel(0, "rotation", [0, 0.5, 1], signed, way).write(tmp_path))
    assert (len(motion), motion.fps, motion.name) == (31, 30.0, "clip")
    times = np.arange(31) / 30
    if way == "STEP":
        expected = Rotation.from_quat(QUATS[np.searchsorted([0.5, 1.0], times, side="right")])
    else:
        expected = Slerp([0, 0.5, 1], Rotation.from_quat(QUATS))(times)
    assert np.abs((angles(motion).inv() * expected).magnitude()).max() < 1e-7
    assert np.einsum("ij,ij->i", motion.q[1:], motion.q[:-1]).min() > (-1.0 if way == "STEP" else 0.9)


@pytest.mark.parametrize("path", ["rotation", "translation"])
def test_cubic_splines_use_tangents_per_second_and_unit_quaternions(tmp_path, path) -> None:
    from scipy.interpolate import CubicHermiteSpline

    rng = np.random.default_rng(3)
    times = np.array([0.0, 0.5, 2.0])
    values = np.float32(QUATS if path == "rotation" else rng.normal(size=(3, 3)))
    tangent = np.float32(0.3 * rng.normal(size=values.shape))  # in = out, so that SciPy's spline is the same
    triples = np.stack([tangent, values, tangent], axis=1).reshape(9, -1)
    motion = load_motion(Maker(two()).channel(0, path, times, triples, "CUBICSPLINE").write(tmp_path))
    expected = CubicHermiteSpline(times, values, tangent)(motion.times)
    if path == "rotation":
        assert np.abs((angles(motion).inv() * Rotation.from_quat(expected)).magnitude()).max() < 1e-7
        np.testing.assert_allclose(np.linalg.norm(motion.q, axis=1), 1.0, atol=1e-12)
    else:
        np.testing.assert_allclose(motion.positions()[:, 0], expected, atol=1e-6)


def test_in_and_out_tangents_differ(tmp_path) -> None:
    triples = [[9, 9, 9], [0, 0, 0], [4, 0, 0], [0, 2, 0], [1, 0, 0], [9, 9, 9]]
    maker = Maker(two()).channel(0, "translation", [0, 2], triples, "CUBICSPLINE")
    middle = load_motion(maker.write(tmp_path)).positions()[30, 0]
    np.testing.assert_allclose(middle, [0.5 + 2 * 4 / 8, -2 * 2 / 8, 0.0], atol=1e-12)


def test_outside_its_keys_a_track_keeps_its_ends(tmp_path) -> None:
    maker = Maker(chain((0, 1, 0), (0, 1, 0), (0, 1, 0)))
    maker.channel(0, "rotation", [1, 3], QUATS[:2]).channel(1, "rotation", [1.5, 2], QUATS[1:])
    motion = load_motion(maker.write(tmp_path))
    assert len(motion) == 61  # from the first key of all to the last
    inner = angles(motion, "n1").as_quat()
    np.testing.assert_allclose(np.abs(inner[:16] @ QUATS[1]), 1.0, atol=1e-7)
    np.testing.assert_allclose(np.abs(inner[30:] @ QUATS[2]), 1.0, atol=1e-7)


@pytest.mark.parametrize(
    ("times", "fps", "frames"),
    [
        ([0, 1], 30.0, 31),
        (np.arange(25) / 24, 24.0, 25),
        (0.5 + np.arange(11) / 120, 120.0, 11),
        (np.arange(1000) / 29.97, 29.97, 1000),
        ([0, 0.0101, 0.0433, 0.77], 30.0 * 24 / 23.1, 25),  # on no grid: 30, raised so that the last key is on a frame
        (np.arange(101) / 1000, 30.0, 4),
        (np.arange(8) / 7, 30.0, 31),  # a rate of the keys' own is taken from 10 to 250 a second
        (np.arange(12) / 11, 11.0, 12),
        (np.arange(251) / 250, 250.0, 251),
        (np.arange(264) / 263, 30.0, 31),
        ([2.5], 30.0, 1),
    ],
)
def test_rate_follows_the_keys(tmp_path, times, fps, frames) -> None:
    values = np.random.default_rng(0).normal(size=(len(times), 3))
    motion = load_motion(Maker(two()).channel(0, "translation", times, values).write(tmp_path))
    assert motion.fps == pytest.approx(fps, rel=1e-5)
    assert len(motion) == frames
    at = motion.positions()[[0, -1], 0]
    np.testing.assert_allclose(at, np.float32(values[[0, -1]]), atol=1e-12)


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2"])
def test_normalised_integers(tmp_path, kind) -> None:
    most = np.iinfo(kind).max
    quats = QUATS if kind[0] == "i" else np.abs(QUATS)
    component = {"i1": 5120, "u1": 5121, "i2": 5122, "u2": 5123}[kind]
    maker = Maker(two())
    maker.channel(
        0, "rotation", [0, 0.5, 1], np.round(quats * most), dtype="<" + kind, component=component, normalized=True
    )
    motion = load_motion(maker.write(tmp_path))
    away = (angles(motion)[[0, 15, 30]].inv() * Rotation.from_quat(quats)).magnitude()
    assert away.max() < 3.0 / most
    del maker.json["accessors"][0]["normalized"]
    with pytest.raises(FormatError, match="normalized"):
        load_motion(maker.write(tmp_path))


def test_sparse_strided_and_empty_accessors(tmp_path) -> None:
    values = np.float32(np.random.default_rng(1).normal(size=(3, 3)))
    maker = Maker(two())
    strided = np.zeros((3, 5), "<f4")
    strided[:, 1:4] = values
    view = maker.view(strided.tobytes(), byteStride=20)
    maker.json["accessors"].append(
        {"bufferView": view, "byteOffset": 4, "componentType": 5126, "count": 3, "type": "VEC3"}
    )
    motion = load_motion(maker.channel(0, "translation", [0, 0.5, 1], 0).write(tmp_path))
    np.testing.assert_allclose(motion.positions()[[0, 15, 30], 0], values, atol=1e-12)
    for base in ({}, {"bufferView": view, "byteOffset": 4}):
        sparse = {
            "count": 2,
            "indices": {"bufferView": maker.view(np.array([0, 2], "<u2").tobytes()), "componentType": 5123},
            "values": {"bufferView": maker.view(np.float32([[7, 8, 9], [1, 2, 3]]).tobytes())},
        }
        maker.json["accessors"][0] = {"componentType": 5126, "count": 3, "type": "VEC3", "sparse": sparse} | base
        got = load_motion(maker.write(tmp_path)).positions()[[0, 15, 30], 0]
        np.testing.assert_allclose(got, [[7, 8, 9], values[1] if base else [0, 0, 0], [1, 2, 3]], atol=1e-12)


@pytest.mark.parametrize("rows", [[0, 2, 1], [1, 1], [0, 3]])
def test_sparse_indices_out_of_order_or_out_of_range(tmp_path, rows) -> None:
    maker = Maker(two()).channel(0, "translation", [0, 0.5, 1], np.zeros((3, 3)))
    maker.json["accessors"][0]["sparse"] = {
        "count": len(rows),
        "indices": {"bufferView": maker.view(np.array(rows, "<u2").tobytes()), "componentType": 5123},
        "values": {"bufferView": maker.view(np.ones((len(rows), 3), "<f4").tobytes())},
    }
    refused(maker.write(tmp_path), "out of order or out of range")


def test_either_sign_of_the_rest_rotation_is_no_movement(tmp_path) -> None:
    nodes = two()
    nodes[0]["rotation"] = [0.6, 0.0, 0.0, 0.8]
    maker = Maker(nodes, joints=[1]).channel(0, "rotation", [0, 1], [[-0.6, 0, 0, -0.8]] * 2)
    assert load_skeleton(maker.write(tmp_path)).joints[0].kind is Kind.FIXED


@pytest.mark.parametrize(("name", "uri"), [("a.glb", ""), ("a.gltf", "my%20keys.bin"), ("a.gltf", "data")])
def test_every_place_of_a_buffer(tmp_path, name, uri) -> None:
    maker = Maker(two()).channel(0, "translation", [0, 1], [[1, 2, 3], [4, 5, 6]])
    motion = load_motion(maker.write(tmp_path, name, uri))
    np.testing.assert_allclose(motion.positions()[[0, -1], 0], [[1, 2, 3], [4, 5, 6]])


def test_percent_encoded_data(tmp_path) -> None:
    maker = Maker(two()).channel(0, "translation", [0, 1], [[1, 2, 3], [4, 5, 6]])
    path = maker.write(tmp_path)
    maker.json["buffers"][0]["uri"] = "data:application/octet-stream," + "".join(f"%{b:02x}" for b in maker.data)
    path.write_text(json.dumps(maker.json))
    assert load_motion(path).positions()[-1, 0] == pytest.approx([4, 5, 6])


# --- what becomes a joint, and of which kind -----------------------------------------------------------------------


def test_kinds_without_a_skin(tmp_path) -> None:
    nodes = [
        {"children": [1, 2]},
        {"name": "same"},
        {"name": "same", "children": [3]},
        {"name": "tip", "mesh": 7},
        {"name": "elsewhere"},
    ]
    skeleton = load_skeleton(Maker(nodes).write(tmp_path))
    assert skeleton.joint_names == ("node0", "same", "same", "tip")
    assert [j.kind for j in skeleton.joints] == [Kind.BALL, Kind.FIXED, Kind.BALL, Kind.FIXED]


def test_constraints_of_extensions_are_told(tmp_path) -> None:
    nodes = two()
    nodes[0]["extensions"] = {"KHR_physics_rigid_bodies": {"motion": {}}, "VRMC_node_constraint": 3}
    assert load_skeleton(Maker(nodes).write(tmp_path)).notes == ()
    nodes[1]["extensions"] = {
        "VRMC_node_constraint": {"specVersion": "1.0", "constraint": {"roll": {"source": 0, "rollAxis": "Y"}}},
        "KHR_physics_rigid_bodies": {"joint": {"connectedNode": 0, "joint": 0}},
    }
    with pytest.warns(UserWarning, match="Constraints of joints 'n1' were not kept"):
        skeleton = load_skeleton(Maker(nodes).write(tmp_path))
    assert [note.partition(" were ")[0] for note in skeleton.notes] == [
        "Constraints of joints 'n1'",
        "Physical bounds of joints 'n1'",
    ]


def test_several_skins_make_one_skeleton_with_their_ancestors(tmp_path) -> None:
    nodes = [{"children": [1, 2, 5]}, {"children": [3]}, {"children": [4]}, {}, {}, {"mesh": 0}]
    maker = Maker(nodes)
    maker.json["skins"] = [{"joints": [3]}, {"joints": [4, 2]}]
    maker.channel(1, "rotation", [0, 1], QUATS[:2])
    skeleton = load_skeleton(maker.write(tmp_path))
    assert skeleton.joint_names == ("node0", "node1", "node3", "node2", "node4")
    kinds = {j.name: j.kind.name for j in skeleton.joints}
    assert kinds == {"node0": "FIXED", "node1": "BALL", "node3": "BALL", "node2": "BALL", "node4": "BALL"}


def test_a_clip_without_channels_of_the_skeleton_is_its_rest(tmp_path) -> None:
    maker = Maker([*two(), {}], joints=[1]).channel(2, "translation", [0, 1], [[0, 0, 0], [9, 9, 9]])
    maker.json["animations"].append({"channels": [], "samplers": []})
    motions = FORMAT.read(maker.write(tmp_path)).motions()
    assert [(m.name, len(m)) for m in motions] == [("clip", 1), ("animation1", 1)]


SCALES = {
    "none": [(1, 1, 1)] * 4,
    "uniform": [(2, 2, 2), (0.5, 0.5, 0.5), (3, 3, 3), (1, 2, 3)],
    "mirrored": [(-2, 2, 2), (1, -1, -1), (-0.5, -0.5, -0.5), (1, 1, 1)],
    "uneven": [(1, 2, 0.5), (-1, 1, 3), (1, 1, 1), (1, 1, 1)],
    "flat": [(1, 1, 1), (1, 0, 1), (1, 1, 1), (1, 1, 1)],
}


@pytest.mark.parametrize("scaled", [False, True], ids=["rigid", "stretching"])
@pytest.mark.parametrize("matrices", [False, True], ids=["trs", "matrix"])
@pytest.mark.parametrize("case", SCALES)
def test_scaled_and_mirrored_trees_are_exact(tmp_path, case, matrices, scaled) -> None:
    rng = np.random.default_rng(8)
    nodes = chain(*rng.normal(size=(4, 3)).tolist())
    for node, scale, turn in zip(nodes, SCALES[case], Rotation.random(4, random_state=2), strict=True):
        node["rotation"], node["scale"] = turn.as_quat().tolist(), list(scale)
    if matrices and case == "flat":
        pytest.skip("a flat matrix cannot be decomposed")
    maker = Maker(nodes)
    for i in range(3):
        maker.channel(i, "rotation", [0, 0.5, 1], Rotation.random(3, random_state=10 + i).as_quat())
    maker.channel(1, "translation", [0, 1], rng.normal(size=(2, 3)))
    if scaled:
        maker.channel(2, "scale", [0, 0.5, 1], rng.uniform(0.5, 2, size=(3, 3)))
        maker.channel(1, "scale", [0, 0.5, 1], rng.uniform(0.5, 2, size=(3, 3)))
    path = maker.write(tmp_path)
    reference = Reference(path)
    if matrices:  # the last node only: animated nodes may not have one
        node = nodes[3]
        m = np.eye(4)
        m[:3, :3] = Rotation.from_quat(node.pop("rotation")).as_matrix() * node.pop("scale")
        m[:3, 3] = node.pop("translation")
        node["matrix"] = m.T.ravel().tolist()
        path = maker.write(tmp_path)
    motion = load_motion(path)
    skeleton = motion.skeleton
    expected = reference.positions(skeleton.joint_names, reference.local(None, 0))
    np.testing.assert_allclose(skeleton.rest_pose().positions, expected, atol=1e-12 * skeleton.size)
    for frame in range(0, 31, 5):
        expected = reference.positions(skeleton.joint_names, reference.local(0, frame / 30))
        np.testing.assert_allclose(stretched(motion, frame), expected, atol=1e-9 * skeleton.size)
        if not scaled:
            np.testing.assert_allclose(motion.positions()[frame], expected, atol=1e-9 * skeleton.size)
    free = {j.name for j in skeleton.joints if j.kind is Kind.FREE}
    if case in ("none", "uniform", "mirrored"):
        assert free == {"n1"}
        assert (motion.stretch is not None) == scaled
    else:
        assert free > {"n1"}
        assert motion.stretch is None


@pytest.mark.parametrize("mirror", [1.0, -1.0])
def test_node_matrices_are_decomposed(tmp_path, mirror) -> None:
    m = np.eye(4)
    m[:3, :3] = TURN.as_matrix() * [2 * mirror, 2, 2]
    m[:3, 3] = 1, 2, 3
    nodes = [{"matrix": m.T.ravel().tolist(), "children": [1]}, {"translation": [1, 1, 0]}]
    pose = load_skeleton(Maker(nodes).write(tmp_path)).rest_pose()
    np.testing.assert_allclose(pose.positions[1], (m @ [1, 1, 0, 1])[:3], atol=1e-12)
    assert np.linalg.det(pose.matrix(0)) == pytest.approx(1.0)


# --- bad input ---------------------------------------------------------------------------------------------------


def refused(path, *words):
    """Both readers refuse the file with a typed error that names file and place, fast."""
    for read in (load_skeleton, load_motion):
        start = time.process_time()
        with pytest.raises((FormatError, FileError, UnsupportedError)) as caught:
            read(path)
        assert time.process_time() - start < HANG
        text = str(caught.value)
        assert path.name in text
        for word in words:
            assert word in text, text


def animated():
    maker = Maker(chain((0, 1, 0), (0, 1, 0), (0, 1, 0)), joints=[0, 1])
    maker.channel(0, "rotation", [0, 0.5, 1], QUATS)
    return maker.channel(1, "translation", [0, 1], [[1, 2, 3], [4, 5, 6]])


NUMBERS = [-1, 3, 2**31, 2**63, 2**64, 1e300, 0.5, True, "1", None, [], {}]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize(
    "place",
    [
        ("nodes", 0, "children", 0),
        ("skins", 0, "joints", 1),
        ("animations", 0, "channels", 0, "target", "node"),
        ("animations", 0, "channels", 0, "sampler"),
        ("animations", 0, "samplers", 0, "input"),
        ("animations", 0, "samplers", 1, "output"),
        ("accessors", 0, "bufferView"),
        ("accessors", 0, "componentType"),
        ("accessors", 0, "count"),
        ("accessors", 0, "byteOffset"),
        ("bufferViews", 0, "buffer"),
        ("bufferViews", 0, "byteLength"),
        ("bufferViews", 0, "byteOffset"),
        ("bufferViews", 0, "byteStride"),
        ("buffers", 0, "byteLength"),
    ],
    ids=lambda place: ".".join(map(str, place)),
)
def test_numbers_that_cannot_be(tmp_path, place, value) -> None:
    path = animated().write(tmp_path)
    data = json.loads(path.read_text())
    at = data
    for key in place[:-1]:
        at = at[key]
    if value == 3 and place[-1] in {"bufferView", "count", "byteOffset", "output"} and value is not True:
        value = 99  # 3 exists
    at[place[-1]] = value
    path.write_text(json.dumps(data))
    refused(path, place[0] if value != 3 else "")  # lengths of 3 are missed by what needs more


def broken(key, value, **more):
    def change(data):
        data["nodes"][1][key] = value
        data["nodes"][1].update(more)

    return change


BAD_NODES = {
    "zero rotation": (broken("rotation", [0, 0, 0, 0]), "nodes[1].rotation"),
    "long rotation": (broken("rotation", [0, 0, 0, 2]), "nodes[1].rotation"),
    "three numbers": (broken("rotation", [0, 0, 1]), "nodes[1].rotation"),
    "text": (broken("translation", ["1", 0, 0]), "nodes[1].translation"),
    "bool": (broken("scale", [True, 1, 1]), "nodes[1].scale"),
    "infinite": (broken("translation", [float("1e400"), 0, 0]), "JSON"),
    "huge": (broken("translation", [1e299, 0, 10**400]), "nodes[1].translation"),
    "no list": (broken("translation", 3), "nodes[1].translation"),
    "NaN": (broken("matrix", [float("nan")] * 16), "JSON"),
    "short matrix": (broken("matrix", [1] * 15, translation=None), "nodes[1]"),
    "no node": (lambda d: d["nodes"].__setitem__(1, 5), "nodes[1]"),
    "nodes no list": (lambda d: d.__setitem__("nodes", {}), "nodes"),
    "no nodes": (lambda d: d.pop("nodes"), "no nodes"),
    "name": (broken("name", 5), "nodes[1].name"),
    "self": (broken("children", [1]), "nodes"),
    "cycle": (lambda d: d["nodes"][2].__setitem__("children", [0]), "its own ancestor"),
    "two parents": (lambda d: d["nodes"][0].__setitem__("children", [1, 2]), "two parents"),
    "twice": (lambda d: d["nodes"][0].__setitem__("children", [1, 1]), "two parents"),
    "version": (lambda d: d["asset"].__setitem__("version", "1.0"), "asset.version"),
    "no asset": (lambda d: d.pop("asset"), "asset.version"),
    "animations": (lambda d: d.__setitem__("animations", 3), "animations"),
    "target": (lambda d: d["animations"][0]["channels"][0].pop("target"), "channels[0]"),
    "interpolation": (lambda d: d["animations"][0]["samplers"][0].update(interpolation="CUBIC"), "samplers[0]"),
    "spline": (lambda d: d["animations"][0]["samplers"][0].update(interpolation="CUBICSPLINE"), "samplers[0]"),
    "twice animated": (lambda d: d["animations"][0]["channels"].append(d["animations"][0]["channels"][0]), "second"),
    "type": (lambda d: d["accessors"][0].update(type="VEC3"), "accessors[0].type"),
    "wrong count": (lambda d: d["accessors"][0].update(count=2), "samplers[0].output"),
    "view that is not there": (
        lambda d: d["accessors"][0].update(bufferView=len(d["bufferViews"])),
        "accessors[0].bufferView",
    ),
    "sparse without values": (
        lambda d: d["accessors"][0].update(sparse={"count": 1, "indices": {"bufferView": 0, "componentType": 5121}}),
        "lacks indices or values",
    ),
    "no memory": (
        lambda d: (d["accessors"][0].pop("bufferView"), d["accessors"][0].update(count=2**40)),
        "accessors[0]",
    ),
    "one sparse": (
        lambda d: d["accessors"][0].update(sparse={"count": 2**40, "indices": {}, "values": {}}),
        "accessors[0].sparse",
    ),
    "base64": (lambda d: d["buffers"][0].update(uri="data:;base64,???"), "buffers[0].uri"),
    "no comma": (lambda d: d["buffers"][0].update(uri="data:;base64"), "buffers[0].uri"),
    "no bytes": (lambda d: d["buffers"][0].pop("uri"), "buffers[0]"),
    "extension": (lambda d: d.update(extensionsRequired=["EXT_new_nodes"]), "extensionsRequired[0]"),
    "meshopt": (
        lambda d: (
            d.update(extensionsRequired=["EXT_meshopt_compression"]),
            d["buffers"][0].pop("uri"),
            d["buffers"][0].update(extensions={"EXT_meshopt_compression": {"fallback": True}}),
        ),
        "compressed",
    ),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_broken_files(tmp_path, case) -> None:
    path = animated().write(tmp_path)
    data = json.loads(path.read_text())
    change, word = BAD_NODES[case]
    change(data)
    path.write_text(json.dumps(data))
    refused(path, word)


def test_shear_is_named(tmp_path) -> None:
    matrix = [1, 0, 0, 0, 0.5, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    refused(Maker([{"matrix": matrix}]).write(tmp_path), "nodes[0].matrix", "shear")
    refused(Maker([{"matrix": [0] * 15 + [1]}]).write(tmp_path), "nodes[0].matrix")
    refused(Maker([{"matrix": [1e200] * 16}]).write(tmp_path), "nodes[0].matrix")


@pytest.mark.parametrize(
    ("path", "times", "values", "word"),
    [
        ("translation", [0, 1], [[np.nan, 0, 0], [0, 0, 0]], "not finite"),
        ("rotation", [0, 1], [[0, 0, 0, 0], [0, 0, 0, 1]], "unit quaternion"),
        ("rotation", [0, np.inf], QUATS[:2], "not finite"),
        ("rotation", [1, 0], QUATS[:2], "backwards"),
        ("rotation", [-1, 0], QUATS[:2], "negative"),
        ("rotation", [0, 1, 2], QUATS[:2], "output"),
    ],
)
def test_bad_keys(tmp_path, path, times, values, word) -> None:
    refused(Maker(two()).channel(0, path, times, values).write(tmp_path), word)


def test_a_clip_of_years_is_refused(tmp_path) -> None:
    path = Maker(two()).channel(0, "rotation", [0, 1e30], QUATS[:2]).write(tmp_path)
    start = time.process_time()
    with pytest.raises(FormatError, match="memory"):
        load_motion(path)
    assert time.process_time() - start < HANG


def test_a_spline_through_zero_is_refused(tmp_path) -> None:
    q = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, -1], [0, 0, 0, 0]]
    path = Maker(two()).channel(0, "rotation", [0, 1], q, "CUBICSPLINE").write(tmp_path)
    with pytest.raises(FormatError, match="through zero"):
        load_motion(path)


def test_numbers_that_overflow_are_refused(tmp_path) -> None:
    nodes = chain(*[(1e200, 0, 0)] * 3)
    for node in nodes:
        node["scale"] = [1e200] * 3
    maker = Maker(nodes).channel(0, "translation", [0, 1], [[0, 0, 0], [1, 0, 0]])
    refused(maker.write(tmp_path), "rest position: expected numbers of at most")


@pytest.mark.parametrize("joints", [None, [MAX_JOINTS]])
def test_more_joints_deep_than_there_may_be(tmp_path, joints) -> None:
    nodes = [{"children": [i + 1]} for i in range(MAX_JOINTS)] + [{}]
    refused(Maker(nodes, joints).write(tmp_path), "too many joints")


@pytest.mark.parametrize(
    "uri",
    [
        "/etc/passwd", "../secret.bin", "a/../../secret.bin", "%2e%2e/secret.bin", "..\\secret.bin", "C:/secret.bin",
        "http://example.com/a.bin", "file:///etc/passwd", "//host/a.bin", "link.bin", "folder/secret.bin", "loop.bin",
        "a%00b", "", "missing.bin", "x" * 5000, ".",
    ],
)  # fmt: skip
def test_buffers_stay_in_the_folder(tmp_path, uri) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 1000)
    (home / "link.bin").symlink_to(tmp_path / "secret.bin")
    (home / "loop.bin").symlink_to(home / "loop.bin")
    (home / "folder").symlink_to(tmp_path)
    path = animated().write(home)
    data = json.loads(path.read_text())
    data["buffers"][0]["uri"] = uri
    path.write_text(json.dumps(data))
    refused(path, "buffers[0].uri")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"3", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"glTF", b"\x00\xff" * 50, b"HIERARCHY",
        b'{"asset": {"version": "2.0"}, "nodes": [' + b"9" * 5000 + b"]}", b"\xff\xfe{}",
    ],
    ids=range(12),
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.gltf", "a.glb"])
def test_no_gltf_at_all(tmp_path, name, content) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises((FormatError, FileError)) as caught:
        FORMAT.read(path)
    assert name in str(caught.value)


def test_the_content_decides_not_the_extension(tmp_path) -> None:
    path = animated().write(tmp_path, "a.glb")
    path.rename(tmp_path / "a.gltf")
    assert len(load_skeleton(tmp_path / "a.gltf")) == 2
    animated().write(tmp_path, "b.gltf").rename(tmp_path / "b.glb")
    assert len(load_skeleton(tmp_path / "b.glb")) == 2


@pytest.mark.parametrize("name", ["a.glb", "a.gltf"])
def test_cut_off_anywhere(tmp_path, name) -> None:
    whole = animated().write(tmp_path, name).read_bytes()
    path = tmp_path / ("cut_" + name)
    for size in np.unique(np.linspace(0, len(whole) - 1, 200).astype(int)):
        path.write_bytes(whole[:size])
        with pytest.raises((FormatError, FileError)):
            FORMAT.read(path)


@pytest.mark.parametrize("at", [4, 8, 12, 16])
@pytest.mark.parametrize("value", [0, 1, 7, 2**31, 2**32 - 1])
def test_wrong_headers_of_a_glb(tmp_path, at, value) -> None:
    path = animated().write(tmp_path, "a.glb")
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, at, value)
    path.write_bytes(data)
    refused(path)


def test_any_byte_may_be_wrong(tmp_path) -> None:
    whole = animated().write(tmp_path, "a.glb").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "b.glb"
    for _ in range(300):
        data = bytearray(whole)
        for at in rng.integers(12, len(data), 3):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        try:
            motions = FORMAT.read(path).motions()
        except SynoviaError:
            continue
        assert all(np.isfinite(m.q).all() for m in motions)


def test_nodes_that_give_only_a_place_stay_as_they_are(tmp_path: Path) -> None:
    """No rotation is none, and no scale is 1 along each axis."""
    nodes = [{"translation": [1, 2, 3], "children": [1]}, {"translation": [4, 5, 6], "children": [2]}, {}]
    document = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes}
    path = tmp_path / "plain.gltf"
    path.write_text(json.dumps(document))
    frames = [load_skeleton(path).rest_pose().transform(row) for row in range(3)]
    np.testing.assert_array_equal([T[:3, 3] for T in frames], [[1, 2, 3], [5, 7, 9], [5, 7, 9]])
    np.testing.assert_array_equal([T[:3, :3] for T in frames], [np.eye(3)] * 3)


@pytest.mark.parametrize(("kind", "component"), [("<u1", 5121), ("<u2", 5123), ("<u4", 5125)])
def test_indices_of_sparse_accessors_have_every_unsigned_type(tmp_path: Path, kind: str, component: int) -> None:
    maker = Maker(two())
    sparse = {
        "count": 2,
        "indices": {"bufferView": maker.view(np.array([0, 2], kind).tobytes()), "componentType": component},
        "values": {"bufferView": maker.view(np.float32([[7, 8, 9], [1, 2, 3]]).tobytes())},
    }
    maker.json["accessors"].append({"componentType": 5126, "count": 3, "type": "VEC3", "sparse": sparse})
    maker.channel(0, "translation", [0, 0.5, 1], 0)
    got = load_motion(maker.write(tmp_path)).positions()[[0, 15, 30], 0]
    np.testing.assert_allclose(got, [[7, 8, 9], [0, 0, 0], [1, 2, 3]], atol=1e-12)
    sparse["indices"]["componentType"] = {5121: 5120, 5123: 5122, 5125: 5126}[component]
    with pytest.raises(FormatError, match="componentType"):
        load_motion(maker.write(tmp_path))


def test_channels_of_nodes_that_are_no_joints_leave_the_others(tmp_path: Path) -> None:
    """Of a camera beside the skeleton, of a path that no joint has, and of no node at all."""
    nodes = [*two(), {"name": "camera", "camera": 0}]
    maker = Maker(nodes, joints=[0, 1])
    maker.json["scenes"][0]["nodes"] = [0, 2]
    maker.channel(2, "rotation", [0, 1], QUATS[:2]).channel(0, "weights", [0, 1], [0.0, 1.0])
    maker.channel(0, "rotation", [0, 1], QUATS[:2])
    maker.json["animations"][0]["channels"].insert(0, {"sampler": 0, "target": {"path": "rotation"}})
    motion = load_motion(maker.write(tmp_path))
    assert motion.skeleton.joint_names == ("n0", "n1")
    turned = angles(motion)[-1] * angles(motion)[0].inv()
    wanted = Rotation.from_quat(QUATS[1]) * Rotation.from_quat(QUATS[0]).inv()
    assert (turned.inv() * wanted).magnitude() < 1e-6
    assert wanted.magnitude() > 0.1


def test_frames_of_many_joints_count_each_joint(tmp_path: Path) -> None:
    """Where one joint turns and many stand still, it is what all of them take that is bounded."""
    small = Maker(chain(*[(0, 1, 0)] * 3)).channel(1, "rotation", [0, 300], QUATS[:2])
    assert len(load_motion(small.write(tmp_path))) == 9001
    large = Maker(chain(*[(0, 1, 0)] * 90)).channel(1, "rotation", [0, 300], QUATS[:2])
    with pytest.raises(FormatError, match="memory"):
        load_motion(large.write(tmp_path, "large.gltf"))


def test_json_that_is_no_gltf_is_not_taken_for_one() -> None:
    assert not FORMAT.looks_like(b'{"schema": "synovia.goals/1", "goals": []}')
    assert not FORMAT.looks_like(b'say "asset" and "version" and "nodes"')
    assert FORMAT.looks_like(b'\xef\xbb\xbf \n{"asset": {"version": "2.0"}, "nodes": []}')


def test_a_wrong_first_chunk_is_told_with_its_place(tmp_path: Path) -> None:
    data = bytearray(animated().write(tmp_path, "a.glb").read_bytes())
    longer = data.copy()
    struct.pack_into("<I", longer, 12, 10**6)
    (tmp_path / "longer.glb").write_bytes(longer)
    refused(tmp_path / "longer.glb", "byte 12", f"at most {len(data) - 20}")
    struct.pack_into("<I", data, 16, 7)
    (tmp_path / "a.glb").write_bytes(data)
    refused(tmp_path / "a.glb", "byte 16")
