"""The ground under points: every kind of shape against meshes and the signs of distances."""

import math

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError

UPS = {"z": (0.0, 0.0, 1.0), "-y": (0.0, -1.0, 0.0), "leaning": (0.3, -0.2, 0.9)}


def shape_of(kind, rng):
    """Return a random shape near the origin."""
    center, turn = rng.uniform(-0.3, 0.3, 3), sy.Rotation.random(random_state=int(rng.integers(1 << 31)))
    size = rng.uniform(0.1, 0.8, 3)
    return {
        "sphere": lambda: sy.Sphere(center=center, radius=size[0]),
        "capsule": lambda: sy.Capsule(a=center, b=center + rng.normal(size=3) * 0.5, radius=size[0]),
        "box": lambda: sy.Box(center=center, size=size, rotation=turn),
        "cylinder": lambda: sy.Cylinder(center=center, radius=size[0], length=size[1], rotation=turn),
        "ellipsoid": lambda: sy.Ellipsoid(center=center, radii=size, rotation=turn),
        "hull": lambda: sy.ConvexHull(center + rng.normal(size=(12, 3)) * 0.4),
        "half-space": lambda: sy.HalfSpace(point=center, normal=rng.normal(size=3)),
        "plate": lambda: sy.ConvexHull(center + turn.apply(rng.normal(size=(7, 3)) * (0.5, 0.5, 0.0))),
        "cloud": lambda: sy.PointCloud(rng.normal(size=(40, 3)) * 0.3, radius=0.2),
    }[kind]()


def is_inside(shape, point):
    """Return whether a point is inside a shape, by the library's distances."""
    solids = [sy.World([shape])["cloud"].shapes[0]] if isinstance(shape, sy.PointCloud) else [shape]
    if isinstance(shape, sy.PointCloud):
        return bool((np.linalg.norm(solids[0].points - point, axis=1) < shape.radius).any())
    return sy.shapes.distance(sy.Sphere(center=point, radius=0.0), shape).distance < 0.0


@pytest.mark.parametrize("up", UPS)
@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "ellipsoid", "hull", "half-space", "cloud"])
def test_the_surface_is_where_distances_change_sign(kind, up):
    rng = np.random.default_rng(5)
    way = np.array(UPS[up]) / np.linalg.norm(UPS[up])
    found = 0
    for _ in range(20):
        shape = shape_of(kind, rng)
        points = rng.uniform(-0.5, 0.5, (6, 3)) + 3.0 * way
        ground = sy.World([shape]).ground(points, way)
        for point, height, normal in zip(points, ground.heights, ground.normals, strict=True):
            flat = point - (point @ way) * way
            if kind == "half-space" and (not math.isfinite(height) or normal @ way < 0.05):
                continue  # below a ceiling, or beside a steep wall
            if not math.isfinite(height):
                assert not any(is_inside(shape, flat + h * way) for h in np.linspace(-3, 3, 41))
                continue
            found += 1
            assert not is_inside(shape, flat + (height + 1e-7) * way)
            depth = 1e-7 if kind != "cloud" else 1e-6
            assert is_inside(shape, flat + (height - depth) * way) or height - depth < -2.5
            assert math.isclose(np.linalg.norm(normal), 1.0, rel_tol=1e-9)
            assert normal @ way > -1e-9
    assert found > 20


@pytest.mark.parametrize("kind", ["box", "hull"])
def test_heights_and_normals_equal_those_of_the_triangles_of_a_mesh(kind):
    trimesh = pytest.importorskip("trimesh")
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(30):
        shape = shape_of(kind, rng)
        corners = shape.points if kind == "hull" else _corners(shape)
        mesh = trimesh.convex.convex_hull(corners)
        points = np.column_stack([rng.uniform(-0.6, 0.6, (20, 2)), np.full(20, 5.0)])
        ground = sy.World([shape]).ground(points, "z")
        for k in range(20):
            hit = _first_hit(mesh.triangles, points[k, :2])
            assert (hit is not None) == math.isfinite(ground.heights[k])
            if hit is not None:
                hits += 1
                assert ground.heights[k] == pytest.approx(hit[0], abs=1e-9)
                assert np.allclose(ground.normals[k], mesh.face_normals[hit[1]], atol=1e-6)
    assert hits > 50


def _first_hit(triangles, at):
    """Return the height at which a ray from above first meets a triangle, and its row; None beside all of them."""
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    edges = np.stack([b - a, c - a], axis=2)[:, :2]
    flat = np.abs(np.linalg.det(edges)) < 1e-12
    edges[flat] = np.eye(2)
    u, v = np.linalg.solve(edges, (at - a[:, :2])[:, :, None])[:, :, 0].T
    inside = ~flat & (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0)
    heights = np.where(inside, a[:, 2] + u * (b - a)[:, 2] + v * (c - a)[:, 2], -np.inf)
    row = int(np.argmax(heights))
    return (heights[row], row) if inside.any() else None


def _corners(box):
    """Return the corners of a box."""
    signs = np.array(np.meshgrid(*[(-0.5, 0.5)] * 3)).reshape(3, -1).T
    return box.center + (signs * box.size) @ box.rotation.T


def test_a_plate_holds_and_a_plate_on_its_edge_does_not():
    flat = sy.World([sy.ConvexHull([(0, 0, 1), (1, 0, 1.5), (0, 1, 1), (1, 1, 1.5)])])
    ground = flat.ground([(0.5, 0.5, 3), (1.5, 0.5, 3)], "z")
    assert ground.heights.tolist() == [1.25, -math.inf]
    assert np.allclose(ground.normals[0], np.array((-0.5, 0.0, 1.0)) / math.sqrt(1.25))
    disc = sy.World([sy.Ellipsoid(center=(0, 0, 1), radii=(1, 2, 0))])
    assert disc.ground([(0.9, 0, 3), (0.9, 1.9, 3)], "z").heights == pytest.approx([1.0, -math.inf])
    edge = sy.World([sy.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1)])])
    assert edge.ground([(0.5, 0, 3)], "z").obstacles == (None,)


def test_pieces_that_touch_are_one_and_what_is_above_does_not_count():
    world = sy.World(
        {
            "floor": sy.HalfSpace(),
            "lower": sy.Box(center=(0, 0, 0.1), size=(1, 1, 0.2)),
            "upper": sy.Box(center=(0, 0, 0.3), size=(1, 1, 0.2)),
            "table": sy.Box(center=(0, 0, 1.0), size=(1, 1, 0.1)),
        }
    )
    ground = world.ground([(0, 0, 0.05), (0, 0, 0.7), (0, 0, 1.0), (0, 0, 2), (3, 0, 0.7)], "z")
    assert ground.heights == pytest.approx([0.4, 0.4, 1.05, 1.05, 0.0])
    assert ground.obstacles == ("upper", "upper", "table", "table", "floor")


def test_obstacles_are_taken_where_they_are():
    world = sy.World({"ramp": sy.Box(size=(2, 1, 0.2))}, up="z").moved(
        {"ramp": ((1, 0, 0.5), sy.Rotation.from_euler("y", -20, degrees=True))}
    )
    ground = world.ground([(1, 0, 4)])
    assert ground.heights[0] == pytest.approx(0.5 + 0.1 / math.cos(math.radians(20)))
    assert np.degrees(np.arccos(ground.normals[0] @ (0, 0, 1))) == pytest.approx(20.0)


def test_the_direction_has_to_be_known():
    with pytest.raises(InputError, match="up"):
        sy.World([sy.HalfSpace()]).ground([(0, 0, 1)])
    assert sy.World().ground([(0, 0, 1)], "z").obstacles == (None,)


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "hull", "half-space"])
def test_all_in_front_of_a_plane_is_outside_of_the_shape(kind):
    rng = np.random.default_rng(2)
    for _ in range(10):
        shape = shape_of(kind, rng)
        world = sy.World({"one": shape})
        for plane in world.planes(rng.uniform(-1.0, 1.0, (5, 3))):
            places = plane[:3, 3] + rng.uniform(-1.0, 1.0, (20, 3))
            front = places[(places - plane[:3, 3]) @ plane[:3, 2] > 1e-6]
            assert not any(is_inside(shape, place) for place in front)


def test_a_point_stays_out_of_an_obstacle_frame_by_frame():
    arm = sy.bundled("arm7")
    wall = sy.World({"wall": sy.Box(center=(0.55, 0, 0.4), size=(0.2, 0.4, 0.8))})
    start = arm.rest_pose()
    goals = [sy.RestGoal(start), sy.PlaneGoal.on("tool", wall, start)]
    solution = sy.solve(arm, [*goals, sy.PositionGoal("tool", (0.5, 0.0, 0.5), priority=1, name="inside")], "full-body")
    assert not solution.reached  # the target is in the wall
    assert not is_inside(wall["wall"].shapes[0], solution.pose.position("tool") + 1e-3 * goals[1].target[:3, 2])
    path = np.array([(0.3, y, 0.5) for y in np.linspace(-0.3, 0.3, 9)])
    ik = sy.IK(arm, [sy.PositionGoal("tool", name="path"), sy.PlaneGoal("tool", name="wall")])
    clip = ik.track({"path": path, "wall": wall.planes(path, "wall")})
    assert clip.reached.all()


def test_planes_need_an_obstacle_of_that_name():
    with pytest.raises(InputError, match="at least one obstacle"):
        sy.World().planes([(0, 0, 0)])
    with pytest.raises(sy.errors.UnknownNameError, match="wall"):
        sy.World({"box": sy.Sphere(radius=1)}).planes([(0, 0, 0)], "wall")
