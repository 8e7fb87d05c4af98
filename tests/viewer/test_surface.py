"""What a body looks like: skins against sums of matrices written out here, robots against MuJoCo, files that lie."""

import base64
import html
import importlib.util
import json
import re
import struct
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import synovia as sy

pytest.importorskip("trimesh")

from synovia.surface import Surface, surface_of

CUBE = np.array([(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
TRIANGLES = np.array([(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)])


def together(surface: Surface, pose: sy.Pose) -> np.ndarray:
    """All vertices of a surface, where a pose puts them."""
    return np.concatenate([part.placed(pose.frames) for part in surface.parts])


def assert_same_points(found: np.ndarray, wanted: np.ndarray, size: float) -> None:
    """Both sets of points cover each other, in any order and however often."""
    assert cKDTree(found).query(wanted)[0].max() < 1e-5 * size
    assert cKDTree(wanted).query(found)[0].max() < 1e-5 * size


# --- glTF -----------------------------------------------------------------------------------------------------------

TYPES = {5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}


class Straight:
    """A file's vertices by the sum of the specification, Σ w M B v, with no shared code."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.chunk = b""
        if data[:4] == b"glTF":
            (size,) = struct.unpack_from("<I", data, 12)
            self.json, self.chunk = json.loads(data[20 : 20 + size]), data[28 + size :]
        else:
            self.json = json.loads(data)
        self.above = {child: i for i, node in enumerate(self.json["nodes"]) for child in node.get("children", [])}

    def read(self, number: int) -> np.ndarray:
        accessor = self.json["accessors"][number]
        view = self.json["bufferViews"][accessor["bufferView"]]
        uri = self.json["buffers"][view["buffer"]].get("uri")
        data = base64.b64decode(uri.split(",")[1]) if uri else self.chunk
        dtype, width = np.dtype(TYPES[accessor["componentType"]]), WIDTHS[accessor["type"]]
        at = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        stride = view.get("byteStride", dtype.itemsize * width)
        raw = np.ndarray((accessor["count"], width), dtype, data, at, (stride, dtype.itemsize)).astype(float)
        return raw / np.iinfo(dtype).max if accessor.get("normalized") else raw

    def vertices(self, pose: sy.Pose) -> np.ndarray:
        moved = {name: row for row, name in enumerate(pose.skeleton.joint_names)}
        worlds: dict[int, np.ndarray] = {}

        def world(i: int) -> np.ndarray:
            if i not in worlds:
                node = self.json["nodes"][i]
                m = np.array(node.get("matrix", np.eye(4).ravel())).reshape(4, 4).T
                if "matrix" not in node:
                    turn = Rotation.from_quat(node.get("rotation", [0, 0, 0, 1]))
                    row = moved.get(node.get("name", f"node{i}"), -1)
                    if row >= 0 and pose.skeleton.joints[row].kind.q_size in (4, 7):
                        turn = turn * Rotation.from_quat(pose.q[pose.skeleton.q_slice(row)][-4:])
                    m[:3, :3] = turn.as_matrix() * node.get("scale", [1, 1, 1])
                    m[:3, 3] = node.get("translation", [0, 0, 0])
                worlds[i] = world(self.above[i]) @ m if i in self.above else m
            return worlds[i]

        out = []
        for i, node in enumerate(self.json["nodes"]):
            for primitive in self.json["meshes"][node["mesh"]]["primitives"] if "mesh" in node else []:
                had = primitive["attributes"]
                v = np.hstack([self.read(had["POSITION"]), np.ones((len(self.read(had["POSITION"])), 1))])
                if "skin" not in node:
                    out.append((v @ world(i).T)[:, :3])
                    continue
                skin = self.json["skins"][node["skin"]]
                binds = self.read(skin["inverseBindMatrices"]).reshape(-1, 4, 4).swapaxes(1, 2)
                each = np.array([world(joint) for joint in skin["joints"]]) @ binds
                bones, weights = self.read(had["JOINTS_0"]).astype(int), self.read(had["WEIGHTS_0"])
                weights = weights / weights.sum(axis=1, keepdims=True)
                used = np.unique(self.read(primitive["indices"]).astype(int))
                out.append(np.einsum("vb,vbij,vj->vi", weights, each[bones], v)[used, :3])
        return np.concatenate(out)


@pytest.mark.parametrize("name", ["mannequiny.glb", "greenman.glb", "SimpleSkin.gltf"])
def test_the_skin_of_a_real_character_follows_its_joints(shared_data: Path, name: str) -> None:
    path = shared_data / "character" / name
    skeleton = sy.load_skeleton(path)
    surface = surface_of(path, skeleton)
    assert surface.parts
    assert not surface.notes
    for pose in (skeleton.rest_pose(), skeleton.random_pose(1), skeleton.random_pose(2)):
        wanted = Straight(path).vertices(pose)
        found = np.concatenate([part.placed(pose.frames)[np.unique(part.faces)] for part in surface.parts])
        assert cKDTree(wanted).query(found)[0].max() < 1e-4 * skeleton.size
        if name != "SimpleSkin.gltf":
            assert cKDTree(found).query(wanted)[0].max() < 1e-4 * skeleton.size


def skinned(path: Path, *, scale: float, bend: float, mirror: bool = False) -> Path:
    """Write a cube on two joints below a node with a scale, bound in another pose than the file's own."""
    sign = -1.0 if mirror else 1.0
    place = [np.eye(4), np.eye(4)]
    place[1][:3, 3] = (0.0, 0.5, 0.0)
    above = np.diag([sign * scale, scale, scale, 1.0])
    binds = [np.linalg.inv(above @ place[0]), np.linalg.inv(above @ place[0] @ place[1])]
    turn = Rotation.from_rotvec([0.0, 0.0, bend]).as_quat().tolist()
    bones = np.tile(np.array([0, 1, 0, 0], "<u2"), (8, 1))
    weights = np.array([(1 - y, y, 0, 0) for y in CUBE[:, 1]], "<f4")
    arrays = [
        (CUBE.astype("<f4"), "VEC3", 5126),
        (TRIANGLES.astype("<u2").reshape(-1, 1), "SCALAR", 5123),
        (bones, "VEC4", 5123),
        (weights, "VEC4", 5126),
        (np.array([bind.T.ravel() for bind in binds], "<f4"), "MAT4", 5126),
    ]
    data, views, accessors = b"", [], []
    for i, (array, kind, component) in enumerate(arrays):
        views.append({"buffer": 0, "byteOffset": len(data), "byteLength": array.nbytes})
        accessors.append({"bufferView": i, "componentType": component, "count": len(array), "type": kind})
        data += array.tobytes()
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    content = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0, 3]}],
        "nodes": [
            {"name": "above", "scale": [sign * scale, scale, scale], "children": [1]},
            {"name": "lower", "children": [2]},
            {"name": "upper", "translation": [0.0, 0.5, 0.0], "rotation": turn},
            {"name": "cube", "mesh": 0, "skin": 0},
        ],
        "meshes": [
            {
                "primitives": [
                    {"attributes": {"POSITION": 0, "JOINTS_0": 2, "WEIGHTS_0": 3}, "indices": 1, "material": 0}
                ]
            }
        ],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": [1.0, 0.0, 0.0, 1.0]}}],
        "skins": [{"joints": [1, 2], "inverseBindMatrices": 4}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(data), "uri": uri}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(("scale", "mirror"), [(1.0, False), (0.01, False), (3.0, True)])
def test_a_skin_bound_elsewhere_and_below_a_scale_is_exact(tmp_path: Path, scale: float, mirror: bool) -> None:
    path = skinned(tmp_path / "cube.gltf", scale=scale, bend=0.7, mirror=mirror)
    skeleton = sy.load_skeleton(path)
    surface = surface_of(path, skeleton)
    assert [part.colour for part in surface.parts] == [(255, 0, 0)]
    rest = skeleton.rest_pose()
    assert_same_points(together(surface, rest), Straight(path).vertices(rest), skeleton.size)
    if not mirror:
        pose = skeleton.random_pose(3)
        assert_same_points(together(surface, pose), Straight(path).vertices(pose), skeleton.size)


def test_a_mesh_that_cannot_be_read_is_said_and_the_joints_stay(tmp_path: Path) -> None:
    path = skinned(tmp_path / "cube.gltf", scale=1.0, bend=0.0)
    whole = json.loads(path.read_text())
    for spoil, word in (
        (lambda c: c["accessors"][0].update(count=9000), "count"),
        (lambda c: c["accessors"][2].update(count=3), "vertices"),
        (lambda c: c["meshes"][0]["primitives"][0].update(indices=99), "indices cannot be used"),
        (lambda c: c["skins"][0].update(joints=[1]), "joint"),
        (lambda c: c["meshes"][0]["primitives"][0].update(mode=1), "lines"),
        (lambda c: c["meshes"][0]["primitives"][0].update(extensions={"KHR_draco_mesh_compression": {}}), "compress"),
    ):
        content = json.loads(json.dumps(whole))
        spoil(content)
        path.write_text(json.dumps(content))
        surface = surface_of(path, sy.load_skeleton(path))
        assert not surface.parts
        assert word in " ".join(surface.notes)


# --- robots ---------------------------------------------------------------------------------------------------------


def stl(path: Path, vertices: np.ndarray = CUBE) -> None:
    """Write a cube as a binary STL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facets = b"".join(struct.pack("<12fH", 0, 0, 0, *vertices[face].ravel(), 0) for face in TRIANGLES)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(TRIANGLES)) + facets)


def robot(path: Path, *shapes: str) -> Path:
    """Write a robot of two links: the second one, which turns, looks like this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    visual = "".join(f'<visual><origin xyz="0 0 0.5"/><geometry>{shape}</geometry></visual>' for shape in shapes)
    path.write_text(
        '<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material><link name="base"/>'
        '<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><origin xyz="0 0 1"/>'
        f'<axis xyz="0 1 0"/></joint><link name="arm">{visual}</link></robot>'
    )
    return path


def test_shapes_of_a_robot_turn_with_their_link(tmp_path: Path) -> None:
    stl(tmp_path / "meshes" / "cube.stl")
    path = robot(tmp_path / "r.urdf", '<mesh filename="meshes/cube.stl" scale="2 1 1"/>')
    skeleton = sy.load_skeleton(path)
    surface = surface_of(path, skeleton)
    pose = skeleton.rest_pose().with_values({"turn": 0.5})
    turned = Rotation.from_rotvec([0.0, 0.5, 0.0]).apply(CUBE * (2, 1, 1) + np.array((0, 0, 0.5)))
    turned[:, 2] += 1.0
    assert_same_points(together(surface, pose), turned, 1.0)
    plain = (
        '<box size="1 2 3"/>',
        '<sphere radius="2"/>',
        '<cylinder radius="1" length="4"/>',
        '<capsule radius="1" length="2"/>',
    )
    for shape, high in zip(plain, (1.5, 2.0, 2.0, 2.0), strict=True):
        found = together(surface_of(robot(tmp_path / "s.urdf", shape), skeleton), skeleton.rest_pose())
        np.testing.assert_allclose([found[:, 2].min(), found[:, 2].max()], [1.5 - high, 1.5 + high], atol=0.01)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.stl",
        "meshes/../../secret.stl",
        "file:///{outside}",
        "{outside}",
        "package://elsewhere/../../secret.stl",
        "meshes/link.stl",
        "http://example.org/a.stl",
        "meshes\\..\\..\\secret.stl",
    ],
)
def test_files_outside_the_robots_folder_are_not_read(tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret.stl"
    stl(secret)
    (tmp_path / "robot1" / "meshes").mkdir(parents=True)
    (tmp_path / "robot1" / "meshes" / "link.stl").symlink_to(secret)
    path = robot(tmp_path / "robot1" / "r.urdf", f'<mesh filename="{name.format(outside=secret)}"/>')
    surface = surface_of(path, sy.load_skeleton(path))
    assert not surface.parts
    assert "no mesh is shown" in surface.notes[0]


def test_meshes_are_found_where_robots_keep_them_and_missing_ones_are_said(tmp_path: Path) -> None:
    stl(tmp_path / "my_robot" / "meshes" / "cube.stl")
    for name in ("package://my_robot/meshes/cube.stl", "../meshes/cube.stl", "package://other/meshes/cube.stl"):
        path = robot(
            tmp_path / "my_robot" / "urdf" / "r.urdf", f'<mesh filename="{name}"/>', '<mesh filename="no.stl"/>'
        )
        surface = surface_of(path, sy.load_skeleton(path))
        assert len(surface.parts) == 1
        assert surface.notes == ("some meshes are not shown: no.stl (not found)",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("noise.stl", b"\x93" * 500),
        ("noise.obj", b"f 1 2 3\nv x y z"),
        ("noise.ply", b"ply\nformat ascii 1.0\nelement vertex 99999999999\nend_header\n"),
        ("bomb.dae", b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><COLLADA>&x;</COLLADA>'),
        ("other.xyz", b"1 2 3"),
        ("empty.stl", b""),
    ],
)
def test_spoilt_meshes_are_said(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    path = robot(tmp_path / "r.urdf", f'<mesh filename="{name}"/>', '<box size="1 1 1"/>')
    surface = surface_of(path, sy.load_skeleton(path))
    assert len(surface.parts) == 1
    assert name in surface.notes[0]


def test_collada_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its reader is missing: one sentence for all files, and no error."""
    find = importlib.util.find_spec
    monkeypatch.setattr("synovia.io.meshes.find_spec", lambda name: None if name == "collada" else find(name))
    for name in "abcdef":
        (tmp_path / f"{name}.dae").write_bytes(b"<COLLADA/>")
    path = robot(tmp_path / "r.urdf", *(f'<mesh filename="{name}.dae"/>' for name in "abcdef"))
    (note,) = surface_of(path, sy.load_skeleton(path)).notes
    assert note == (
        "no mesh is shown, only the bones: a.dae, b.dae, c.dae, d.dae and 2 more (needs pycollada: pip install"
        " pycollada)"
    )


def test_an_obj_file_opens_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "secret.mtl").write_text("newmtl red\nKd 1 0 0\n")
    lines = ["mtllib secret.mtl", "usemtl red"] + [f"v {x} {y} {z}" for x, y, z in CUBE]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in TRIANGLES]
    (tmp_path / "cube.obj").write_text("\n".join(lines))
    path = robot(tmp_path / "r.urdf", '<mesh filename="cube.obj"/>')
    surface = surface_of(path, sy.load_skeleton(path))
    assert len(surface.parts[0].vertices) == 8
    assert surface.parts[0].colour != (255, 0, 0)


def test_shapes_of_an_mjcf_model_are_where_mujoco_has_them(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    stl(tmp_path / "cube.stl", CUBE - (0.0, 0.0, 0.5))
    path = tmp_path / "m.xml"
    path.write_text(
        '<mujoco><asset><mesh name="cube" file="cube.stl" scale="1 1 2"/></asset><worldbody>'
        '<geom type="plane" size="1 1 1"/>'
        '<body name="a" pos="0 0 1"><joint name="one" axis="0 1 0" pos="0.1 0 0"/>'
        '<geom type="mesh" mesh="cube" pos="0.2 0 0" euler="20 0 40" rgba="0 1 0 1"/>'
        '<geom type="sphere" size="9" group="3"/>'
        '<body name="b" pos="0 0 1"><joint name="two" type="ball"/><geom type="capsule" size="0.2 0.5"/></body>'
        "</body></worldbody></mujoco>"
    )
    skeleton = sy.load_skeleton(path)
    surface = surface_of(path, skeleton)
    pose = skeleton.random_pose(5)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[0] = pose["one"]
    data.qpos[1:] = np.roll(pose["two"], 1)
    mujoco.mj_kinematics(model, data)
    green = next(part for part in surface.parts if part.colour == (0, 255, 0))
    geom = 1
    wanted = np.array(model.mesh_vert) @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    assert_same_points(green.placed(pose.frames), wanted, 1.0)
    assert together(surface, pose).max() < 5.0
    other = next(part for part in surface.parts if part is not green).placed(pose.frames)
    assert np.linalg.norm(other - data.geom_xpos[3], axis=1).max() == pytest.approx(0.7, abs=0.02)


def test_bones_are_sent_past_the_setters_or_through_them() -> None:
    pytest.importorskip("viser")
    from synovia.viewer.scene.skin import bone_setters

    sent: list = []
    api = SimpleNamespace(_queue_scene_message=sent.append)
    place, turn = bone_setters(SimpleNamespace(name="/skin", _impl=SimpleNamespace(api=api)))
    place(3, np.array([1.0, 2.0, 3.0]))
    turn(4, np.array([1.0, 0.0, 0.0, 0.0]))
    assert [message.bone_index for message in sent] == [3, 4]
    assert sent[0].as_serializable_dict()["position"] == (1.0, 2.0, 3.0)
    assert sent[1].as_serializable_dict()["wxyz"] == (1.0, 0.0, 0.0, 0.0)
    other = SimpleNamespace(name="/skin", bones=[SimpleNamespace()])
    place, turn = bone_setters(other)
    place(0, np.ones(3))
    turn(0, np.ones(4))
    assert other.bones[0].position.tolist() == [1.0] * 3
    assert other.bones[0].wxyz.tolist() == [1.0] * 4


def test_what_was_not_kept_of_the_file_is_told_beside_what_is_not_shown() -> None:
    from synovia.viewer.live import surface_with

    skeleton = sy.Skeleton([sy.Joint("a")], notes=["The weld was not kept."])
    assert surface_with(skeleton).notes == ("The weld was not kept.",)


def test_a_mesh_is_sent_with_its_texture_or_the_colours_of_its_vertices() -> None:
    pytest.importorskip("viser")
    image_module = pytest.importorskip("PIL.Image")
    from synovia.surface.base import rigid_part
    from synovia.viewer.scene.paint import Paint

    def sent(element: str) -> tuple[dict, bytes, bytes]:
        found = re.search('data-mesh="(.*?)" data-values="(.*?)" data-image="(.*?)"', element)
        return json.loads(html.unescape(found[1])), base64.b64decode(found[2]), base64.b64decode(found[3])

    rng = np.random.default_rng(0)
    plain = rigid_part(rng.random((5, 3)), np.array([[0, 1, 2], [2, 3, 4]]), 0, np.eye(4))
    assert Paint().element("/a", plain) == ""
    mesh, values, _ = sent(Paint().element("/a", replace(plain, colours=np.full((5, 3), 0.2))))
    assert (mesh, values) == ({"node": "/a", "vertices": 5, "faces": 2}, bytes([51] * 15))
    corners = rng.uniform(-3.0, 3.0, (2, 3, 2))
    image = np.tile(np.array([200, 40, 10], np.uint8), (8, 8, 1))
    paint, textured = Paint(), replace(plain, corners=corners, texture=image, tint=(0.5, 1.0, 1.0))
    mesh, values, data = sent(paint.element("/a", textured))
    steps = np.frombuffer(values, "<u4").reshape(2, 3, 2) / mesh["steps"]
    np.testing.assert_allclose(np.diff(steps, axis=1), np.diff(corners, axis=1), atol=1e-4)
    np.testing.assert_allclose(np.cos(2 * np.pi * steps), np.cos(2 * np.pi * corners), atol=1e-3)
    assert mesh["tint"] == [0.5, 1.0, 1.0]
    assert np.abs(np.asarray(image_module.open(BytesIO(data)), int) - image).max() < 8
    again, _, data = sent(paint.element("/b", textured))
    assert (again["image"], data) == (mesh["image"], b"")  # sent once
