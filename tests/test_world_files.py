"""Files of worlds: what each format gives, what is noted, and what is refused."""

import json
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from cli_runs import run
from synovia.errors import FileError, FormatError, UnsupportedError

TURN = Rotation.from_euler("xyz", (0.3, -0.7, 1.1))
CUBE = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)], np.float32)
PROBES = [sy.Sphere(center=c, radius=0.0) for c in np.random.default_rng(1).normal(size=(20, 3)) * 5]


def alike(a: sy.World, b: sy.World, size: float = 1e-9) -> bool:
    """Return whether probes are as far from all obstacles of two worlds, which have the same names."""
    return a.names == b.names and all(
        abs(one.distances(probe)[name].distance - other.distance) < size
        for probe in PROBES
        for one in (a,)
        for name, other in b.distances(probe).items()
    )


def quiet(path: Path) -> sy.World:
    """Return the world of a file without its warning, which has its notes."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        world = sy.load_world(path)
    assert bool(told) == bool(world.notes)
    assert world.source == path
    return world


def place(x: float, y: float, z: float, turn: Rotation = TURN) -> np.ndarray:
    """Return a transform."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = turn.as_matrix(), (x, y, z)
    return T


WORLD = sy.World(
    {
        "floor": sy.HalfSpace(point=(0, 0, -2), normal=(0.1, 0.2, 1)),
        'a "table"': sy.Obstacle(
            [sy.Box(size=(1, 2, 0.1), rotation=TURN), sy.Capsule(a=(0, 0, 0), b=(0, 1, 0), radius=0.1)],
            transform=place(1, 2, 3),
        ),
        "can": sy.Cylinder(center=(1, 0, 0), radius=0.1, length=0.3, rotation=TURN),
        "rock": sy.Obstacle(sy.ConvexHull(np.random.default_rng(0).normal(size=(20, 3))), transform=(0, 0, 5)),
        "scan": sy.PointCloud(np.random.default_rng(1).normal(size=(20, 3)), radius=0.05),
        "ball": sy.Sphere(center=(0.1, 0.2, 0.3), radius=0.4),
    },
    meters_per_unit=0.01,
    up="-y",
    notes=["A note."],
)


def test_toml_keeps_a_world(tmp_path):
    sy.save_world(WORLD, tmp_path / "world.toml")
    back = quiet(tmp_path / "world.toml")
    assert (back.meters_per_unit, back.up, back.notes) == (0.01, "-y", ("A note.",))
    assert [each.kinds for each in back] == [each.kinds for each in WORLD]
    np.testing.assert_allclose(back.transforms, WORLD.transforms, atol=1e-14)
    assert alike(back, WORLD)
    with pytest.raises(FileError, match="file exists"):
        sy.save_world(WORLD, tmp_path / "world.toml")
    sy.save_world(sy.World(), tmp_path / "world.toml", force=True)
    assert sy.load_world(tmp_path / "world.toml") == sy.World()
    with pytest.raises(UnsupportedError, match=r"ending \.toml"):
        sy.save_world(WORLD, tmp_path / "world.glb")


def test_toml_that_a_person_writes(tmp_path):
    (tmp_path / "kitchen.toml").write_text(
        """
schema = "synovia.world/1"
up = "z"

[[obstacle]]
shapes = [{ kind = "box", size = [1, 1, 1] }]

[[obstacle]]
position = [0, 0, 2]
rpy_deg = [90, 0, 0]
shapes = [{ kind = "box", size = [1, 2, 3], rpy_deg = [0, 0, 90] }]
"""
    )
    world = quiet(tmp_path / "kitchen.toml")
    assert world.names == ("box", "box 2")
    gap = world.distances(sy.Sphere(center=(0, 0, 10), radius=0))["box 2"].distance
    assert gap == pytest.approx(7.5)  # its x is 2 long after its own turn, and its y is up after that of its frame
    assert world.meters_per_unit is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('schema = "synovia.world/2"', 'expected schema = "synovia.world/1"'),
        ("[[obstacle]]", 'expected schema = "synovia.world/1"'),
        ('schema = "synovia.world/1"\nobstacles = []', "line 2: unknown key 'obstacles'. Did you mean 'obstacle'"),
        ('schema = "synovia.world/1"\nup = "w"', "line 2: up is not known"),
        ('schema = "synovia.world/1"\nobstacle = 3', "obstacle has the wrong form"),
        ('schema = "synovia.world/1"\n[[obstacle]]\nname = "a"', "line 2, obstacle 'a': obstacle has no shapes"),
        ('schema = "synovia.world/1"\n[[obstacle]]\nshapes = []', "line 2, obstacle 0: obstacle: shapes"),
        (
            'schema = "synovia.world/1"\n[[obstacle]]\nname = ""\nshapes = [{ kind = "half-space", normal = [0,0,1] }]',
            "name",
        ),
        (
            'schema = "synovia.world/1"\n[[obstacle]]\nshapes = [{ kind = "ball" }]',
            "line 3, obstacle 0: kind is not known",
        ),
        ('schema = "synovia.world/1"\n[[obstacle]]\nshapes = [{ kind = "half-space" }]', "half-space has no normal"),
        ('schema = "synovia.world/1"\n[[obstacle]]\nshapes = [{ kind = "sphere", radius = nan }]', "not finite"),
        (
            'schema = "synovia.world/1"\n[[obstacle]]\nshapes = [{ kind = "cloud", radius = 1, points = [[1, 2]] }]',
            "points",
        ),
        (
            'schema = "synovia.world/1"\n'
            + 2 * '[[obstacle]]\nname = "a"\nshapes = [{ kind = "sphere", radius = 1 }]\n',
            "line 6, obstacle 'a': name is used twice",
        ),
    ],
)
def test_toml_that_cannot_be_used_is_refused_with_its_line(text, told, tmp_path):
    (tmp_path / "world.toml").write_text(text)
    with pytest.raises(FormatError, match=told):
        sy.load_world(tmp_path / "world.toml")


def test_each_reader_names_the_other_one(tmp_path):
    sy.save_world(WORLD, tmp_path / "world.toml")
    with pytest.raises(FormatError, match="load_world reads"):
        sy.load_skeleton(tmp_path / "world.toml")
    body = sy.with_shapes(sy.bundled("arm7"))
    sy.formats.write_skeleton(body, tmp_path / "arm.toml")
    assert alike(quiet(tmp_path / "arm.toml"), sy.World.of(body.rest_pose()))
    (tmp_path / "walk.bvh").write_text("HIERARCHY\nROOT hips {}\n")
    with pytest.raises(FormatError, match="no known format"):
        sy.load_world(tmp_path / "walk.bvh")


def test_a_body_as_obstacles():
    body = sy.with_shapes(sy.bundled("humanoid"))
    pose = body.random_pose(3)
    world = sy.World.of(pose)
    assert set(world.names) == {str(name) for name in body.shapes}
    assert (world.up, world.meters_per_unit) == (body.up, body.meters_per_unit)
    for name, shapes in body.shapes.items():
        moved = [shape.moved(pose.transform(name)) for shape in shapes]
        for probe in PROBES[:3]:
            nearest = min(sy.shapes.distance(probe, shape).distance for shape in moved)
            assert world.distances(probe)[str(name)].distance == pytest.approx(nearest, abs=1e-9)


URDF = """<robot name="shelf">
  <link name="base"><collision><origin xyz="0 0 0.5" rpy="0 0 0.3"/>
    <geometry><box size="1 2 0.1"/></geometry></collision>
    <collision><geometry><mesh filename="{mesh}"/></geometry></collision></link>
  <link name="door"><collision><geometry><sphere radius="0.2"/></geometry></collision></link>
  <link name="bare"/>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="door"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="weld" type="fixed"><parent link="base"/><child link="bare"/></joint>
</robot>"""


def test_urdf(tmp_path):
    (tmp_path / "shelf.urdf").write_text(URDF.format(mesh="lost.stl"))
    world = quiet(tmp_path / "shelf.urdf")
    assert world.names == ("base", "door")
    assert world["door"].transform[:3, 3].tolist() == [1, 0, 0]
    assert (world.meters_per_unit, world.up) == (1.0, "z")
    assert any("not found" in note and "lost.stl" in note for note in world.notes)
    assert "Joints stay at rest: 'hinge'." in world.notes
    (tmp_path / "bad.stl").write_text("no mesh")
    (tmp_path / "shelf.urdf").write_text(URDF.format(mesh="bad.stl"))
    world = quiet(tmp_path / "shelf.urdf")  # this shows when the file is opened
    assert world["base"].kinds == "box"
    assert any("of obstacles 'base'" in note for note in world.notes)


MJCF = """<mujoco><compiler angle="radian"/>
<worldbody>
  <geom name="floor" type="plane" size="1 1 1" pos="0 0 -1"/>
  <geom name="seen" type="box" size="1 1 1" contype="0" conaffinity="0"/>
  <geom type="box" size="0.1 0.2 0.3" pos="1 0 0" quat="1 1 0 0"/>
  <body name="cart" pos="0 0 2" euler="0 0 0.5"><joint name="roll" type="hinge" axis="0 0 1" ref="0.3"/>
    <geom type="sphere" size="0.2" pos="0 1 0"/><geom type="capsule" size="0.1 0.4"/>
    <body name="lid" pos="0 0 1" euler="0.4 0 0"><geom type="cylinder" size="0.3 0.1"/>
      <geom type="ellipsoid" size="0.1 0.2 0.3"/></body></body>
  <geom type="hfield" hfield="hills" contype="1"/>
</worldbody>
<asset><hfield name="hills" nrow="3" ncol="3" size="1 1 1 1"/></asset></mujoco>"""


def test_mjcf(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "yard.xml").write_text(MJCF)
    world = quiet(tmp_path / "yard.xml")
    assert world.names == ("floor", "box", "cart", "lid")
    assert [each.kinds for each in world] == ["half-space", "box", "1 sphere, 1 capsule", "1 cylinder, 1 ellipsoid"]
    told = " ".join(world.notes)
    assert all(word in told for word in ("height fields", "'roll'"))
    assert "planes" not in told
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "yard.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for name in ("cart", "lid"):
        np.testing.assert_allclose(world[name].transform[:3, 3], data.body(name).xpos, atol=1e-12)
        np.testing.assert_allclose(world[name].transform[:3, :3], data.body(name).xmat.reshape(3, 3), atol=1e-12)
    assert world.distances(sy.Sphere(center=(0, 0, 5), radius=1))["floor"].distance == pytest.approx(5)


def gltf(nodes: list[dict], path: Path, **more) -> None:
    """Write a GLB with one mesh, a cube, for some nodes."""
    blob = CUBE.tobytes()
    content = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [i for i, node in enumerate(nodes) if not node.pop("below", False)]}],
        "nodes": nodes,
        "meshes": [{"name": "cube", "primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 8, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(blob)}],
        "buffers": [{"byteLength": len(blob)}],
        **more,
    }
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(blob), 0x004E4942) + blob
    path.write_bytes(b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body)


def test_glb(tmp_path):
    turn = TURN.as_quat().tolist()
    nodes = [
        {"name": "crate", "mesh": 0, "translation": [1, 2, 3], "rotation": turn, "scale": [1, 2, 0.5]},
        {"name": "group", "children": [2, 3], "scale": [2, 2, 2], "translation": [0, 1, 0]},
        {"name": "crate", "mesh": 0, "translation": [1, 0, 0], "below": True},
        {"mesh": 0, "translation": [5, 0, 0], "scale": [-1, 1, 1], "below": True},
        {"name": "skin", "mesh": 0, "skin": 0},
        {"name": "many", "mesh": 0, "extensions": {"EXT_mesh_gpu_instancing": {}}},
        {"name": "camera"},
    ]
    gltf(nodes, tmp_path / "room.glb", skins=[{"joints": [6]}])
    world = quiet(tmp_path / "room.glb")
    assert world.names == ("crate", "crate 2", "cube")
    assert (world.meters_per_unit, world.up) == (1.0, "y")
    np.testing.assert_allclose(world["crate"].transform, place(1, 2, 3), atol=1e-9)
    expected = sy.World(
        {
            "crate": sy.Obstacle(sy.Box(size=(2, 4, 1)), transform=place(1, 2, 3)),
            "crate 2": sy.Box(center=(2, 1, 0), size=(4, 4, 4)),
            "cube": sy.Box(center=(10, 1, 0), size=(4, 4, 4)),
        }
    )
    assert alike(world, expected, 1e-6)
    told = " ".join(world.notes)
    assert all(word in told for word in ("convex hull", "'skin'", "'many'"))


def test_glb_whose_mesh_is_broken_keeps_the_others(tmp_path):
    nodes = [{"name": "good", "mesh": 0}, {"name": "bad", "mesh": 1}, {"name": "packed", "mesh": 2}]
    packed = {"attributes": {"POSITION": 0}, "extensions": {"KHR_draco_mesh_compression": {}}}
    meshes = [
        {"primitives": [{"attributes": {"POSITION": 0}}]},
        {"primitives": [{"attributes": {}}]},
        {"primitives": [packed]},
    ]
    gltf(nodes, tmp_path / "room.glb", meshes=meshes)
    world = quiet(tmp_path / "room.glb")
    assert world.names == ("good",)
    assert any("'bad'" in note for note in world.notes)
    assert any("compressed" in note and "'packed'" in note for note in world.notes)


def test_glb_whose_mesh_is_in_no_finite_place_is_told(tmp_path):
    """Scales may be finite each, and their product not."""
    nodes = [
        {"name": "good", "mesh": 0},
        {"name": "vast", "children": [2], "scale": [1e200, 1e200, 1e200]},
        {"name": "far", "mesh": 0, "scale": [1e200, 1e200, 1e200], "below": True},
    ]
    gltf(nodes, tmp_path / "room.glb")
    world = quiet(tmp_path / "room.glb")
    assert world.names == ("good",)
    assert any("'far'" in note for note in world.notes)


NEW = """kitchen
* table top
0.5 0 0.4
0 0 0.7071067811865476 0.7071067811865476
2
box
0.6 1.2 0.05
0 0 0.1
0 0 0 1
0 0 0 0
sphere
0.3
0 0 1
0 0 0 1
1 0 0 1
1
handle
0 0 0
0 0 0 1
* cone
0 0 0
0 0 0 1
1
cone
0.2 0.6
0 0 0
0 0 0 1
0 0 0 0
0
* wall
0 0 0
0 0 0 1
1
plane
0 1 0 2
0 0 0
0 0 0 1
0 0 0 0
0
* tetra
0 0 0
0 0 0 1
1
mesh
4 4
0 0 0
1 0 0
0 1 0
0 0 1
0 1 2
0 1 3
0 2 3
1 2 3
2 0 0
0 0 0 1
0 0 0 0
0
.
"""
OLD = """(noname)+
* Box_0
1
box
0.2 0.4 0.6
1 2 3
0 0 0 1
0 0 0 0
* Box_0
1
cylinder
0.1 0.5
1 2 3
0 0.7071067811865476 0 0.7071067811865476
0 0 0 0
.
"""


def test_moveit_scenes(tmp_path):
    (tmp_path / "kitchen.scene").write_text(NEW)
    world = quiet(tmp_path / "kitchen.scene")
    assert world.names == ("table top", "cone", "wall", "tetra")
    quarter = place(0.5, 0, 0.4, Rotation.from_euler("z", 90, degrees=True))
    np.testing.assert_allclose(world["table top"].transform, quarter, atol=1e-12)
    expected = sy.World(
        {
            "table top": sy.Obstacle(
                [sy.Box(center=(0, 0, 0.1), size=(0.6, 1.2, 0.05)), sy.Sphere(center=(0, 0, 1), radius=0.3)],
                transform=quarter,
            ),
            "wall": sy.HalfSpace(point=(0, -2, 0), normal=(0, 1, 0)),
            "tetra": sy.ConvexHull([(2, 0, 0), (3, 0, 0), (2, 1, 0), (2, 0, 1)]),
        }
    )
    assert alike(world.without("cone"), expected)
    told = " ".join(world.notes)
    assert all(word in told for word in ("Cones", "Planes", "Subframes", "Meshes"))
    tip = world.distances(sy.Sphere(center=(0, 0, 1), radius=0))["cone"]
    side = world.distances(sy.Sphere(center=(1, 0, -0.3), radius=0))["cone"]
    assert tip.distance == pytest.approx(0.7)
    assert 0.79 < side.distance <= 0.8  # the hull contains the cone


def test_moveit_scenes_of_older_versions(tmp_path):
    (tmp_path / "old.scene").write_text(OLD)
    world = quiet(tmp_path / "old.scene")
    assert world.names == ("Box_0", "Box_0 2")
    assert world["Box_0"].shapes == (sy.Box(center=(1, 2, 3), size=(0.2, 0.4, 0.6)),)
    assert world.distances(sy.Sphere(center=(5, 2, 3), radius=0))["Box_0 2"].distance == pytest.approx(3.75)
    (tmp_path / "none.scene").write_text("empty\n.\n")
    assert len(sy.load_world(tmp_path / "none.scene")) == 0
    with pytest.raises(FormatError):
        sy.load_skeleton(tmp_path / "old.scene")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("\n.\n", "\n", "file ends: expected . or"),
        ("0.6 1.2 0.05", "0.6 x 0.05", "line 7: size: expected size, as numbers, got 'x'"),
        ("0.6 1.2 0.05", "0.6 nan 0.05", "line 7: .*finite"),
        ("0.6 1.2 0.05", "0.6 -1 0.05", "line 6, object 'table top': Box.size"),
        ("box\n", "torus\n", "line 6: kind of shape: expected .*cone"),
        ("0 0 0.7071067811865476 0.7071067811865476", "0 0 0 2", "unit quaternion"),
        ("* cone", "cone", r"line 20: expected \* before an object, or . at the end, got 'cone'"),
        ("\n4 4\n", "\n99999999 4\n", "number of corners"),
        ("\n4 4\n", "\n9999999 4\n", "corner|ends"),
        ("\n0 1 0 2\n", "\n0 0 0 2\n", "object 'wall'"),
    ],
)
def test_a_broken_scene_is_refused_with_its_line(old, new, told, tmp_path):
    assert old in NEW
    (tmp_path / "kitchen.scene").write_text(NEW.replace(old, new, 1))
    with pytest.raises(FormatError, match=told):
        sy.load_world(tmp_path / "kitchen.scene")


def test_files_that_do_not_exist(tmp_path):
    for name in ("world.toml", "room.glb", "kitchen.scene", "x.urdf"):
        with pytest.raises(FileError, match="file does not exist"):
            sy.load_world(tmp_path / name)


def test_inspect_shows_a_world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sy.save_world(WORLD, "world.toml")
    Path("kitchen.scene").write_text(NEW)
    told = run("inspect", "world.toml")
    assert told.code == 0
    assert "6 obstacles of 7 shapes, unit cm, up -y" in told.out
    assert "A note." in told.out
    assert "1 box, 1 capsule" in told.out
    found = json.loads(run("inspect", "kitchen.scene", "--json").out)
    assert found["schema"] == "synovia.inspect.world/1"
    assert [each["name"] for each in found["obstacles"]] == ["table top", "cone", "wall", "tetra"]
    assert found["obstacles"][2]["upper"] == [None, -2.0, None]
    np.testing.assert_allclose(found["obstacles"][3]["lower"], [2, 0, 0], atol=1e-12)
    assert run("inspect", "world.toml", "--roles", "roles.toml").code == 2
