"""Shapes of real robots against MuJoCo and Pinocchio with coal: the same distances in random poses."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.errors import FormatError
from synovia.io.meshes import read_mesh

POSES = 6
PAIRS = 60  # of shapes in each pose
pytestmark = pytest.mark.shared_data


def pairs_of(count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return random pairs of different shapes, all of them if there are few."""
    every = [*itertools.combinations(range(count), 2)]
    chosen = rng.permutation(len(every))[:PAIRS]
    return [every[k] for k in chosen]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["g1_menagerie_nomesh.xml", "ur5e_nomesh.xml"])
def test_distances_of_geoms_are_those_of_mujoco(shared_data, name):
    mujoco = pytest.importorskip("mujoco")
    path = shared_data / "robot" / name
    body, model = sy.load_skeleton(path), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    shapes, geoms = [], []
    for link, own in body.shapes.items():
        at = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, str(link).removeprefix("link:"))
        theirs = [g for g in range(model.ngeom) if model.geom_bodyid[g] == at and collides(model, g)]
        assert len(theirs) == len(own)
        shapes += [(link, shape) for shape in own]
        geoms += theirs
    rng, apart = np.random.default_rng(0), 0
    for seed in range(POSES):
        pose = body.random_pose(seed)
        data.qpos[:] = sy.to_qpos(pose, model)
        mujoco.mj_forward(model, data)
        for i, j in pairs_of(len(shapes), rng):
            ours = between(pose, shapes[i], shapes[j])
            theirs = mujoco.mj_geomDistance(model, data, geoms[i], geoms[j], 1e3, np.zeros(6))
            check(ours, theirs)
            apart += ours > 0.0
    assert apart > 100


def collides(model, geom: int) -> bool:
    """Return whether MuJoCo checks the collisions of a geom."""
    return bool(model.geom_contype[geom] | model.geom_conaffinity[geom])


def check(ours: float, theirs: float) -> None:
    """Check a distance; where shapes overlap, the others give the depth of one way out, not always the shortest."""
    if ours > 0.0:
        assert ours == pytest.approx(theirs, abs=1e-5)
    else:
        assert theirs <= ours + 1e-5


def between(pose: sy.Pose, first: tuple[str, sy.shapes.Solid], second: tuple[str, sy.shapes.Solid]) -> float:
    """Return the distance of two shapes with their links."""
    places = [pose.transform(link) for link, _ in (first, second)]
    return sy.shapes.distance(first[1], second[1], transform_a=places[0], transform_b=places[1]).distance


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name",
    [
        "robot/frankie.urdf",
        "robot/schunk_svh_hand_left.urdf",
        "hands/shadow_hand_right.urdf",
        "hands/leap_hand_right.urdf",
    ],
)
def test_distances_of_collision_shapes_are_those_of_coal(shared_data, name, tmp_path):
    pin, coal = pytest.importorskip("pinocchio"), pytest.importorskip("coal")
    path = without_meshes(shared_data / name, tmp_path)
    body, model = sy.load_skeleton(path), pin.buildModelFromUrdf(str(path))
    geometry = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION)
    data, placed = model.createData(), geometry.createData()
    numbers: dict[str, list[int]] = {}
    for number, thing in enumerate(geometry.geometryObjects):
        numbers.setdefault(model.frames[thing.parentFrame].name, []).append(number)
    shapes, order = [], []
    for link, own in body.shapes.items():
        theirs = numbers[str(link).removeprefix("link:")]
        assert len(theirs) == len(own)
        shapes += [(link, shape) for shape in own]
        order += theirs
    rng = np.random.default_rng(0)
    for seed in range(POSES):
        pose = body.random_pose(seed)
        pin.forwardKinematics(model, data, sy.to_qpos(pose, model))
        pin.updateGeometryPlacements(model, data, geometry, placed)
        for i, j in pairs_of(len(shapes), rng):
            things = [geometry.geometryObjects[order[k]].geometry for k in (i, j)]
            places = [coal.Transform3s(placed.oMg[order[k]].rotation, placed.oMg[order[k]].translation) for k in (i, j)]
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            theirs = coal.distance(things[0], places[0], things[1], places[1], request, result)
            ours = between(pose, shapes[i], shapes[j])
            check(ours, theirs)


def without_meshes(path: Path, folder: Path) -> Path:
    """Return a copy of a URDF file without shapes that are in files, which do not come with it."""
    text = path.read_text(encoding="utf-8")
    for tag in ("visual", "collision"):
        parts = re.split(rf"(<{tag}\b.*?</{tag}>)", text, flags=re.DOTALL)
        text = "".join(part for part in parts if not (part.startswith(f"<{tag}") and "<mesh" in part))
    copy = folder / path.name
    copy.write_text(text, encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    ("change", "colour"),
    [
        (("", ""), (1.0, 0.0, 0.0, 1.0)),
        (("<diffuse>.*?</diffuse>", "<diffuse><float>0.5</float></diffuse>"), None),
        (("<emission>.*?</emission>", "<emission><float>0.5</float></emission>"), None),
        (("<library_effects>.*?</library_effects>", ""), None),
    ],
)
def test_a_mesh_is_read_whatever_its_materials_are(tmp_path, change, colour):
    pytest.importorskip("collada")
    trimesh = pytest.importorskip("trimesh")
    box = trimesh.creation.box()
    box.visual.face_colors = [255, 0, 0, 255]
    text = re.sub(*change, trimesh.exchange.dae.export_collada(box).decode(), flags=re.DOTALL)
    (tmp_path / "box.dae").write_text(text)
    vertices, faces, found = read_mesh(tmp_path / "box.dae")
    assert (vertices.shape, faces.shape) == ((8, 3), (12, 3))
    assert found == colour
    (tmp_path / "cut.dae").write_text(text[: len(text) // 2])
    with pytest.raises(FormatError, match=r"mesh cannot be read \(.*\): expected a mesh as \.dae. Save it again"):
        read_mesh(tmp_path / "cut.dae")
    (tmp_path / "none.dae").write_text(re.sub("<scene>.*?</scene>", "", text, flags=re.DOTALL))
    with pytest.raises(FormatError, match=r"mesh cannot be read: expected a mesh as \.dae"):
        read_mesh(tmp_path / "none.dae")
