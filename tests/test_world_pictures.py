"""Pictures of worlds and of the shapes of bodies: what hides what, what is cut off, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import synovia as sy
from synovia.draw import Camera, picture
from synovia.draw.camera import fit, look
from synovia.draw.gaps import Gaps
from synovia.draw.obstacles import Surroundings, cut
from synovia.draw.picture import Paper
from synovia.draw.render import _Content
from synovia.draw.scene import Appearance, build_scene
from synovia.draw.surfaces import Mesh
from synovia.draw.theme import THEMES
from synovia.errors import InputError
from synovia.model.shapes.triangles import hull_faces

pytest.importorskip("PIL")
SMALL = (240, 180)
LIGHT = THEMES["light"]
TURN = Rotation.from_euler("xyz", (0.3, -0.7, 1.1))
EACH = (
    sy.Sphere(center=(1, 2, 3), radius=0.4),
    sy.Capsule(a=(0, 0, 0), b=(1, 2, -3), radius=0.5),
    sy.Box(center=(1, 2, 3), size=(1, 2, 3), rotation=TURN),
    sy.Cylinder(center=(1, 2, 3), radius=0.4, length=2, rotation=TURN),
    sy.ConvexHull(np.random.default_rng(0).normal(size=(40, 3))),
)


def arm() -> sy.Pose:
    """Return an upright chain of a metre whose y points up."""
    skeleton = sy.Skeleton.chain([(0, 0, 0), (0, 0.5, 0), (0, 1, 0)], name="arm", meters_per_unit=1.0)
    return sy.Skeleton(skeleton.joints, name="arm", meters_per_unit=1.0, up="y").rest_pose()


def pixels(pose, **options) -> np.ndarray:
    """Return a picture from the front that does not depend on its content."""
    corners = np.array([(-1, -0.2, 0), (1, 1.2, 0)], float)
    camera = fit(look("front", "y", "z"), corners, np.full(2, 0.1), (10, 10, 230, 170))
    options = {"floor": False, "view": camera, **options}
    return np.asarray(picture(pose, size=SMALL, **options), int)


def differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return which pixels differ visibly."""
    return np.abs(a - b).max(-1) > 12


def test_obstacles_hide_what_is_behind_them_and_only_that():
    pose, box = arm(), sy.Box(size=(0.4, 0.4, 0.2))
    body = differ(pixels(pose), pixels(pose, view=Camera(np.full(3, 9e9), np.eye(3), 1.0, (1e6, 1e6))))
    world = sy.World({"box": box})
    alone = pixels(pose, world=sy.World({"box": sy.Sphere(center=(0, 0, -3), radius=1e-4)}))  # drawn likewise
    front, back, aside = (
        pixels(pose, world=world.moved({"box": p})) for p in ((0, 0.5, 1), (0, 0.5, -1), (0.6, 0.5, 0))
    )
    assert (differ(front, alone) & body).sum() > 20
    assert (differ(back, alone) & body).sum() < 0.2 * (differ(front, alone) & body).sum()  # its edges, and its shade
    assert (differ(back, alone) & ~body).sum() > 100
    assert not (differ(aside, alone) & body).any()


def test_shapes_are_transparent_and_hidden_by_obstacles():
    pose = arm()
    dressed = sy.Pose(sy.with_shapes(pose.skeleton, {"joint0": [sy.Sphere(center=(0, 0.25, 0), radius=0.2)]}), pose.q)
    plain, shown = pixels(pose), pixels(dressed, shapes=True)
    assert differ(plain, shown).sum() > 500
    assert (pixels(dressed) == plain).all()
    screen = sy.World([sy.Box(center=(0, 0.3, 1), size=(3, 1.2, 0.1))])
    assert not differ(pixels(dressed, world=screen, shapes=True), pixels(pose, world=screen)).any()
    with pytest.raises(InputError, match="a body with shapes"):
        picture(pose, shapes=True)


def test_a_wall_is_transparent_and_a_floor_is_the_floor():
    pose = arm()
    wall = sy.World([sy.HalfSpace(point=(0.3, 0, 0), normal=(-1, 0, 0.5))])
    scene = build_scene([pose], [], LIGHT, shown=_around(wall))
    assert scene.around is not None
    assert scene.around.walls is not None
    assert differ(pixels(pose, world=wall), pixels(pose)).sum() > 500
    far = sy.World(
        [sy.HalfSpace(point=(30, 0, 0), normal=(-1, 0, 0)), sy.HalfSpace(point=(0, 90, 0), normal=(0, -1, 0))]
    )
    assert (pixels(pose, world=far) == pixels(pose)).all()
    for height in (-0.4, 0.2):
        floor = sy.World([sy.HalfSpace(point=(0, y, 0), normal=(0, 1, 0)) for y in (height, -3)])
        scene = build_scene([pose], [], LIGHT, shown=_around(floor))
        assert scene.ground == pytest.approx(height)


def test_a_world_has_the_unit_and_the_axis_of_the_body():
    pose = arm()
    world = sy.World(
        {"box": sy.Obstacle(sy.Box(size=(0.4, 0.2, 0.6)), transform=(0.6, 0.5, 0))}, meters_per_unit=1, up="y"
    )
    turned = sy.World(
        {"box": sy.Obstacle(sy.Box(size=(40, 60, 20)), transform=(60, 0, 50))}, meters_per_unit=0.01, up="z"
    )
    assert not differ(pixels(pose, world=world), pixels(pose, world=turned)).any()


def test_a_picture_shows_what_is_near_and_survives_what_is_huge():
    pose = arm()
    near = sy.World([sy.Box(center=(1, 0.5, 0), size=(0.4, 0.4, 0.4))])

    def content(world):
        scene = build_scene([pose], [], LIGHT, shown=_around(world))
        return scene.content[0]

    assert content(near)[:, 0].max() == pytest.approx(0.9, abs=0.31)
    assert content(near)[:, 0].max() > 0.7
    far = sy.World([sy.Box(center=(30, 0.5, 0), size=(0.4, 0.4, 0.4))])
    assert content(far)[:, 0].max() < 0.3
    huge = sy.World([sy.Box(center=(0, -51, 0), size=(200, 100, 200)), sy.Sphere(center=(0, 0, 300), radius=250)])
    image = np.asarray(picture(pose, world=huge, size=SMALL), int)
    assert image.shape == (180, 240, 3)
    assert np.abs(content(huge)).max() < 3.0


def test_ghosts_marks_looks_and_clouds_are_drawn_with_a_world():
    body = sy.bundled("arm7")
    poses = [body.rest_pose(), body.random_pose(1)]
    cloud = sy.PointCloud(np.random.default_rng(0).normal(size=(300, 3)), radius=0.02)
    world = sy.World([cloud, sy.Box(center=(0.4, 0, 0.1), size=(0.2, 0.2, 0.2)), sy.HalfSpace(point=(0, 0, -1))])
    images = [
        np.asarray(picture(poses, world=world, size=SMALL, look=look, theme=theme), int)
        for look in ("surface", "bones", "both")
        for theme in THEMES
    ]
    assert all(differ(a, b).any() for i, a in enumerate(images) for b in images[:i])
    with pytest.raises(InputError, match="world: expected a World"):
        picture(poses, world=[sy.Sphere(radius=1)])  # type: ignore[arg-type]


def test_films_and_sheets_show_shapes_and_worlds(tmp_path: Path):
    body = sy.with_shapes(sy.bundled("arm7"))
    q = np.linspace(body.rest_q, body.random_pose(1).q, 5)
    swing = sy.Motion(body, q, 10.0)
    world = sy.World([sy.Box(center=(0.4, 0, 0.1), size=(0.2, 0.2, 0.2)), sy.HalfSpace(point=(0, 0, 0))])
    small = {"size": (160, 120), "look": "bones"}
    sy.render(swing, tmp_path / "plain.png", **small)
    sy.render(swing, tmp_path / "world.png", world=world, **small)
    sy.render(swing, tmp_path / "both.png", world=world, shapes=True, next_to=swing, **small)
    data = [(tmp_path / f"{name}.png").read_bytes() for name in ("plain", "world", "both")]
    assert len({*data}) == 3


@pytest.mark.parametrize("shape", EACH, ids=lambda shape: shape.word)
def test_triangles_lie_on_the_surface_of_a_solid_and_fill_it(shape):
    parts = list(shape.triangles())
    points = np.concatenate([vertices for vertices, _, _ in parts])
    for point in points[:: max(len(points) // 60, 1)]:
        gap = sy.shapes.distance(sy.Sphere(center=point, radius=0), shape).distance
        assert -0.03 < gap < 1e-7  # the middle of a cylinder's end is on it as well
    hull = ConvexHull(points).volume
    edges = [vertices[faces] for vertices, faces, _ in parts]
    a, b, c = np.moveaxis(np.concatenate(edges), 1, 0) - points.mean(0)
    flux = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    assert np.abs(flux).sum() == pytest.approx(hull, rel=1e-6)  # closed around the middle
    probes = np.random.default_rng(1).normal(size=(50, 3)) + points.mean(0)
    inside = [sy.shapes.distance(sy.Sphere(center=p, radius=0), shape).distance < -0.05 for p in probes]
    equations = ConvexHull(points).equations
    assert all(
        (equations[:, :3] @ p + equations[:, 3] < 0).all() for p, deep in zip(probes, inside, strict=True) if deep
    )


def test_flat_hulls_have_triangles_and_lines_have_none():
    square = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0.5, 0.5, 0)], float) @ TURN.as_matrix().T
    a, b, c = (square[hull_faces(square)[:, k]] for k in range(3))
    assert 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() == pytest.approx(1.0)
    assert not len(hull_faces(square[:1]))
    assert not len(hull_faces(np.outer([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])))
    assert not list(sy.HalfSpace().triangles())


@given(st.integers(0, 10_000))
def test_both_sides_of_a_cut_make_up_the_whole(seed: int):
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(20, 3))
    faces = rng.permuted(np.tile(np.arange(20), (10, 1)), axis=1)[:, :3]
    mesh = Mesh(vertices, rng.normal(size=(20, 3)).astype(np.float32), faces, rng.random((20, 3)).astype(np.float32))
    point, normal = rng.normal(size=3), rng.normal(size=3)

    def area(part):
        if part is None:
            return 0.0
        a, b, c = (part.vertices[part.faces[:, k]] for k in range(3))
        return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()

    below, above = cut(mesh, point, normal), cut(mesh, point, -normal)
    assert area(below) + area(above) == pytest.approx(area(mesh))
    if below is not None:
        assert ((below.vertices - point) @ normal).max() < 1e-9
        assert below.colours.shape == below.vertices.shape == below.normals.shape


def test_a_surface_is_transparent_around_the_shapes_of_its_body():
    body = sy.with_shapes(sy.bundled("arm7"))
    plain, shown = (np.asarray(picture(body, size=SMALL, shapes=shapes), int) for shapes in (False, True))
    orange = (shown[..., 0] - shown[..., 2] > 40).sum()
    assert orange > 200
    assert not (plain[..., 0] - plain[..., 2] > 40).any()


def test_films_keep_floor_and_grid_of_a_world_still(tmp_path: Path):
    body = sy.bundled("humanoid")
    root = body.with_root("free")
    walk = sy.Motion(root, [sy.Pose(root, root.rest_q).q for _ in range(3)], 10.0)
    q = np.array(walk.q)
    q[:, 2] = (0.0, 1.5, 3.0)  # away from the crate
    walk = sy.Motion(root, q, 10.0)
    world = sy.World([sy.Box(center=(0, 0.5, -1), size=(0.5, 1, 0.5)), sy.HalfSpace(normal=(0, 1, 0))])
    content = _Content.of(walk, [0.0, 0.1, 0.2], LIGHT, _around(world))
    shots = content.shots(Paper(SMALL, LIGHT), "front", None, [content])
    assert len({round(scene.spread, 9) for scene, _ in shots}) == 1
    assert {scene.ground for scene, _ in shots} == {0.0}


WALL = sy.World({"wall": sy.Box(center=(0.45, 0, 0.4), size=(0.02, 0.3, 0.8))})


def test_pictures_of_a_solution_show_what_is_near():
    """The obstacles of its goal without being asked, and the nearest pairs: red if they are too near."""
    body, inside = sy.bundled("arm7"), sy.PositionGoal("tool", (0.45, 0, 0.4))
    clear = sy.solve(body, [sy.PositionGoal("tool", (0.6, 0.1, 0.4)), sy.ClearanceGoal(0.01, world=WALL)])
    blocked = sy.solve(body, [inside, sy.ClearanceGoal(0.01, world=WALL, priority=1)], "full-body")
    assert (clear.reached, blocked.reached) == (True, False)
    for solution in (clear, blocked):
        gaps = Gaps.of_goals(solution.ik)
        assert gaps.world == WALL
        near = gaps.at(solution.pose)
        assert [gap.is_near for gap in near] == [gap.distance < 0.01 for gap in near]
        assert any(gap.is_near for gap in near) != solution.reached
        assert all(np.isclose(np.linalg.norm(np.subtract(*gap.points)), abs(gap.distance)) for gap in near)
    pose, image = blocked.pose, np.asarray(picture(blocked, size=SMALL))
    np.testing.assert_array_equal(image, np.asarray(picture(blocked, size=SMALL, world=WALL)))
    lines, plain = (np.asarray(picture(pose, size=SMALL, world=WALL, clearance=c), int) for c in (0.01, None))
    red = (lines[..., 0] - lines[..., 1] > 90) & (lines[..., 0] - lines[..., 2] > 90)
    assert red.any()
    assert not ((plain[..., 0] - plain[..., 1] > 90) & (plain[..., 0] - plain[..., 2] > 90)).any()
    with pytest.raises(InputError, match="with_shapes"):
        picture(arm(), clearance=0.0)
    with pytest.raises(InputError, match="clearance"):
        picture(body, clearance=float("nan"))


def test_worlds_of_several_goals_are_drawn_together():
    """Also if their obstacles have the same names."""
    other = sy.World({"wall": sy.Sphere(center=(0, 0.5, 0), radius=0.1)})
    goals = [sy.ClearanceGoal(world=world) for world in (WALL, WALL, other)]
    assert len(Gaps.of_goals(sy.IK(sy.bundled("arm7"), goals).problem).world) == 2


def _around(world: sy.World) -> Appearance:
    """What a picture shows of a body in a world."""
    return Appearance(surroundings=Surroundings(world, LIGHT, np.eye(3)[1]))
