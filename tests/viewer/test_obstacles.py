"""Obstacles on the live page: where their meshes are, and what opens a page with them."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy

pytest.importorskip("viser")

from synovia.draw.theme import THEMES
from synovia.errors import FileError, InputError
from synovia.viewer.live import Start, opening
from synovia.viewer.scene.obstacles import Obstacles
from synovia.viewer.scene.scene import Scene

LIGHT, DARK = THEMES["light"], THEMES["dark"]
UP = np.array((0.0, 0.0, 1.0))
TURN = Rotation.from_euler("xyz", (0.3, -0.7, 1.1))
WORLD = sy.World(
    {
        "floor": sy.HalfSpace(point=(0, 0, -0.3), normal=(0, 0, 1)),
        "wall": sy.HalfSpace(point=(1, 0, 0), normal=(-1, 0, 0)),
        "crate": sy.Obstacle(sy.Box(center=(0.1, 0, 0), size=(0.4, 0.6, 0.8)), transform=((1, 2, 3), TURN)),
        "scan": sy.PointCloud(np.random.default_rng(0).normal(size=(20, 3)), radius=0.02),
    }
)


def shown(world: sy.World, scale: float = 1.0) -> tuple[Obstacles, dict[str, SimpleNamespace]]:
    """Return obstacles, and the meshes that a browser was given, by name."""
    meshes: dict[str, SimpleNamespace] = {}

    def add(name: str, vertices: np.ndarray, faces: np.ndarray, **more) -> SimpleNamespace:
        meshes[name] = SimpleNamespace(vertices=vertices, faces=faces, **more)
        return meshes[name]

    client = SimpleNamespace(scene=SimpleNamespace(add_mesh_simple=add))
    return Obstacles(client, world, LIGHT, scale, UP), meshes  # type: ignore[arg-type]


def places(mesh: SimpleNamespace) -> np.ndarray:
    """Return the vertices of a mesh in the scene."""
    turn = Rotation.from_quat(np.roll(mesh.wxyz, -1))
    return turn.apply(mesh.vertices) + mesh.position


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_meshes_are_where_the_obstacles_are(scale):
    _, meshes = shown(WORLD, scale)
    found = [places(mesh) for mesh in meshes.values()]
    (crate,) = [points for points in found if len(points) < 100]
    (box,) = WORLD["crate"].solids()
    for point in crate / scale:
        assert abs(sy.shapes.distance(sy.Sphere(center=point, radius=0), box).distance) < 1e-5
    np.testing.assert_allclose(crate.min(0) / scale, WORLD["crate"].bounds[0], atol=1e-5)
    assert len(meshes) == 2


def test_floor_and_walls_stand_around_the_body_and_colours_follow_the_page():
    obstacles, meshes = shown(WORLD)
    assert obstacles.around(np.zeros(3), 1.0) == -0.3
    wall = meshes["/world/walls"]
    assert wall.opacity < 1.0
    np.testing.assert_allclose(wall.vertices[:, 0], 1.0, atol=1e-6)
    assert wall.vertices[:, 2].min() >= -0.3 - 1e-6
    before = {name: mesh.color for name, mesh in meshes.items()}
    obstacles.set_theme(DARK)
    assert all(meshes[name].color != colour for name, colour in before.items())
    assert shown(WORLD.without("floor", "wall"))[0].around(np.zeros(3), 1.0) is None


def test_many_obstacles_are_few_meshes():
    many = sy.World([sy.Obstacle(sy.Box(size=(0.1, 0.1, 0.1)), transform=(k, 0, 0)) for k in range(300)])
    _, meshes = shown(many)
    assert len(meshes) < 10
    points = np.concatenate([places(mesh) for mesh in meshes.values()])
    np.testing.assert_allclose((points.min(0), points.max(0)), ((-0.05, -0.05, -0.05), (299.05, 0.05, 0.05)), atol=1e-4)


def test_obstacles_follow_the_world_and_tell_drags():
    obstacles, meshes = shown(WORLD, 0.5)
    heard: list[str] = []
    listeners: list = []
    for mesh in meshes.values():
        mesh.on_drag, mesh.position = (lambda _: listeners.append), np.array(mesh.position)
    obstacles.on_drag(lambda name, _: heard.append(name))
    for listener in listeners:
        asyncio.run(listener(None))
    assert sorted(heard) == ["crate", "scan"]
    before = {name: np.array(mesh.position) for name, mesh in meshes.items()}
    obstacles.show(WORLD.moved({"crate": ((2, 2, 3), TURN)}))
    away = [np.subtract(mesh.position, before[name]) for name, mesh in meshes.items()]
    assert sorted(float(np.round(step[0], 9)) for step in away) == [0.0, 0.5]


@pytest.mark.compiled
def test_a_page_opens_with_a_world_or_its_file_and_says_what_was_not_kept(tmp_path):
    sy.save_world(sy.World(WORLD.obstacles, notes=["A note."]), tmp_path / "world.toml")
    assert "A note." in opening("arm7", Start(world=tmp_path / "world.toml")).notes
    assert "A note." not in opening("arm7", Start(world=WORLD)).notes
    with pytest.raises(FileError, match="file does not exist"):
        opening("arm7", Start(world="missing.toml"))
    with pytest.raises(InputError, match="world: expected a World"):
        opening("arm7", Start(world=[WORLD]))  # type: ignore[arg-type]


def test_shapes_of_a_body_are_made_once_and_follow_its_joints():
    arm = sy.bundled("arm7")
    bare = sy.with_shapes(arm, dict.fromkeys(arm.shapes, ()))
    body = sy.with_shapes(bare, {"tool": [sy.Sphere(radius=0.1)], "hand": [sy.Box(size=(0.1, 0.1, 0.1))]})
    meshes: dict[str, SimpleNamespace] = {}

    def add(name: str, vertices: np.ndarray, faces: np.ndarray, **more) -> SimpleNamespace:
        meshes[name] = SimpleNamespace(name=name, vertices=vertices, faces=faces, **more)
        return meshes[name]

    scene = object.__new__(Scene)
    client = SimpleNamespace(scene=SimpleNamespace(add_mesh_simple=add))
    parts = {"client": client, "scale": 1.0, "theme": LIGHT, "_cover": None, "_body": SimpleNamespace(given=body)}
    scene.__dict__.update(parts, _state=SimpleNamespace(touch=lambda: None))
    scene.show_shapes(False)
    assert not meshes
    scene.show_shapes(True)
    assert len(meshes) == 2
    assert all(mesh.visible and mesh.opacity < 1.0 for mesh in meshes.values())
    pose = body.random_pose(2)
    assert scene._cover is not None
    scene._cover.show(pose.frames)
    middles = [
        mesh.position + Rotation.from_quat(np.roll(mesh.wxyz, -1)).apply(mesh.vertices.mean(0))
        for mesh in meshes.values()
    ]
    for joint in ("tool", "hand"):
        assert min(np.abs(middle - pose.position(joint)).max() for middle in middles) < 1e-5
    scene.show_shapes(False)
    assert len(meshes) == 2
    assert not any(mesh.visible for mesh in meshes.values())
