"""Worlds: obstacles by name, their places, and how far a shape is from them."""

import copy
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from synovia.errors import InputError, UnknownNameError
from synovia.kernels import layout

TURN = Rotation.from_euler("xyz", (0.3, -0.7, 1.1))
RNG = np.random.default_rng(4)
EACH = (
    sy.HalfSpace(point=(0, 0, -2), normal=(0.1, 0.2, 1)),
    sy.Box(center=(1, 2, 3), size=(0.1, 0.2, 0.3), rotation=TURN),
    sy.Sphere(center=(-1, 0, 0), radius=0.1),
    sy.Capsule(a=(0, 0, 0), b=(0.1, 0.2, -0.3), radius=0.05),
    sy.Cylinder(radius=0.1, length=0.4, rotation=TURN),
    sy.ConvexHull(RNG.normal(size=(20, 3)) + 4.0),
    sy.PointCloud(RNG.normal(size=(30, 3)), radius=0.02),
    sy.ConvexHull(RNG.normal(size=(9, 3)) - 4.0),
)


def place(seed: int) -> np.ndarray:
    """Return a random transform."""
    rng = np.random.default_rng(seed)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(random_state=seed).as_matrix(), rng.normal(size=3)
    return T


def test_names_are_given_or_made():
    world = sy.World([EACH[1], sy.Obstacle(EACH[2], name="box 2"), EACH[1], EACH[0], EACH[6], sy.Obstacle(EACH[:2])])
    assert world.names == ("box", "box 2", "box 3", "half-space", "cloud", "obstacle")
    assert [each.name for each in world] == list(world.names)
    assert "box 2" in world
    assert "sphere" not in world
    assert len(world) == 6
    assert world["box 2"].shapes == (EACH[2],)
    assert repr(world["obstacle"]) == "Obstacle('obstacle': 1 half-space, 1 box)"


def test_a_mapping_names_obstacles_of_one_or_several_shapes():
    world = sy.World({"table": [EACH[1], EACH[4]], "ball": EACH[2], "cup": sy.Obstacle(EACH[3], transform=(1, 2, 3))})
    assert world.names == ("table", "ball", "cup")
    assert world["table"].shapes == (EACH[1], EACH[4])
    assert world["cup"].transform[:3, 3].tolist() == [1, 2, 3]


def test_an_unknown_name_says_what_is_near():
    world = sy.World({"table": EACH[1]})
    for call in (lambda: world["tabel"], lambda: world.moved({"tabel": (0, 0, 1)}), lambda: world.without("tabel")):
        with pytest.raises(UnknownNameError, match=r"no obstacle named 'tabel'. Did you mean 'table'\?"):
            call()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: sy.World(3), "obstacles: expected a list"),
        (lambda: sy.World("box"), "obstacles: expected a list"),
        (lambda: sy.World(["box"]), r"obstacles\[0\]: expected a shape or an Obstacle"),
        (lambda: sy.World([[EACH[1]]]), r"Obstacle\(\[...\]\)"),
        (lambda: sy.World({"table": []}), "obstacle 'table': shapes: expected at least one"),
        (lambda: sy.World({"table": [3]}), r"obstacle 'table': shapes\[0\]: expected a shape"),
        (lambda: sy.World({3: EACH[1]}), "name of an obstacle: expected text"),
        (lambda: sy.World({"": EACH[1]}), "name of an obstacle: expected text"),
        (lambda: sy.World([sy.Obstacle(EACH[1], name="a"), sy.Obstacle(EACH[1], name="a")]), "each name once, got 'a'"),
        (lambda: sy.World(up="w"), "World.up: expected one of"),
        (lambda: sy.World(meters_per_unit=0), "World.meters_per_unit"),
        (lambda: sy.World(meters_per_unit=float("nan")), "World.meters_per_unit"),
        (lambda: sy.Obstacle(EACH[1], transform=(0, 0, float("nan"))), "finite numbers"),
        (lambda: sy.Obstacle(EACH[1], transform=(0, 0, 1e200)), "transform: expected numbers of at most"),
        (lambda: sy.Obstacle(EACH[1], transform=2 * np.eye(4)), "orthonormal|0 0 0 1"),
        (lambda: sy.World({"a": EACH[1]}).moved({"a": (1, 2)}), "'a'"),
        (lambda: sy.World({"a": EACH[1]}).moved([(0, 0, 1)]), "transforms: expected a Mapping"),
        (lambda: sy.World([EACH[1]]).distances(EACH[0]), "expected a bounded shape, got HalfSpace"),
        (lambda: sy.World([EACH[1]]).distances("box"), "shape: expected a Solid"),
        (lambda: sy.PointCloud([], radius=1), "PointCloud.points"),
        (lambda: sy.PointCloud([(0, 0, float("inf"))], radius=1), "finite numbers"),
        (lambda: sy.PointCloud([(0, 0, 1)], radius=-1), "PointCloud.radius"),
        (lambda: sy.PointCloud([(0, 1e200, 1)], radius=1), "PointCloud.points"),
    ],
)
def test_what_cannot_be_used_is_refused(make, told):
    with pytest.raises(InputError, match=told):
        make()


def test_a_body_has_no_cloud():
    with pytest.raises(InputError, match="shapes"):
        sy.with_shapes(sy.bundled("arm7"), {"tool": [EACH[6]]})


def test_worlds_do_not_change():
    T = place(0)
    world = sy.World({"a": EACH[1], "b": sy.Obstacle(EACH[2:4], transform=T)})
    T[:3, 3] = 9.0
    assert world["b"].transform[0, 3] != 9.0
    others = [
        world.moved({"a": place(1)}),
        world.with_obstacles([EACH[4]]),
        world.without("a"),
        world.scaled(2.0),
        copy.copy(world),
        copy.deepcopy(world),
        pickle.loads(pickle.dumps(world)),
    ]
    for each in (world, *others):
        for array in (each.transforms, *each.packed.shapes, *(obstacle.transform for obstacle in each)):
            assert not array.flags.writeable
        for thing, name in ((each, "obstacles"), (each.obstacles[0], "shapes")):
            with pytest.raises(AttributeError):
                setattr(thing, name, ())
    assert world.names == ("a", "b")
    assert world["a"].transform.tolist() == np.eye(4).tolist()
    assert others[-3:] == 3 * [world]
    assert hash(others[-1]) == hash(world)
    assert all(other != world for other in others[:4])
    assert {world, *others[-3:]} == {world}


def test_equal_worlds_have_equal_obstacles_unit_and_axis():
    world = sy.World({"a": EACH[1], "b": EACH[6]}, meters_per_unit=1.0, up="z")
    assert world == sy.World({"a": EACH[1], "b": EACH[6]}, meters_per_unit=1.0, up="z", notes=["a note"])
    assert world != sy.World({"b": EACH[6], "a": EACH[1]}, meters_per_unit=1.0, up="z")
    assert world != sy.World({"a": EACH[1], "b": EACH[6]}, meters_per_unit=1.0)
    assert world != sy.World({"a": EACH[1], "b": EACH[6]}, up="z")
    assert world != 3
    assert sy.World() == sy.World([])


def test_moved_replaces_the_transform_and_takes_three_forms():
    world = sy.World({"a": sy.Obstacle(EACH[1], transform=place(0)), "b": EACH[2]})
    T = place(1)
    assert world.moved({"a": T}).moved({"a": T})["a"].transform.tolist() == T.tolist()
    assert world.moved({"a": (T[:3, 3], T[:3, :3])})["a"].transform.tolist() == T.tolist()
    lifted = world.moved({"b": [0, 0, 1]})
    assert lifted["b"].transform[:3].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]]
    assert lifted["a"] == world["a"]
    np.testing.assert_array_equal(lifted.transforms, [world["a"].transform, lifted["b"].transform])


def test_a_moved_world_shares_its_packed_shapes():
    world = sy.World(EACH)
    before = world.packed
    after = world.moved({"cloud": place(1)}).packed
    assert all(a is b for a, b in zip(before.shapes, after.shapes, strict=True))
    assert before.owners is after.owners
    assert not np.array_equal(before.transforms, after.transforms)


def test_with_obstacles_adds_and_replaces():
    world = sy.World([EACH[1], EACH[2]])
    more = world.with_obstacles([EACH[1], sy.Obstacle(EACH[3], name="sphere")])
    assert more.names == ("box", "sphere", "box 2")
    assert more["sphere"].shapes == (EACH[3],)
    assert more["box"] is world["box"]
    assert more.without("box", "box 2").names == ("sphere",)
    assert world.with_obstacles([]) == world


def test_packed_shapes_belong_to_their_obstacles():
    world = sy.World({"a": EACH[:3], "cloud": EACH[6], "b": [EACH[5], EACH[6], EACH[7]]})
    packed = world.packed
    assert packed.owners.tolist() == 3 * [0] + 30 * [1] + 32 * [2]
    assert len(packed.shapes.points) == sum(len(EACH[i].points) for i in (5, 7))
    assert sy.World().packed.transforms.shape == (0, 4, 4)
    kinds = packed.shapes.shapes[:, layout.SHAPE_KIND]
    assert kinds[:3].tolist() == [layout.HALF_SPACE, layout.BOX, layout.SPHERE]


@pytest.mark.parametrize("seed", range(4))
def test_distances_are_those_of_each_solid(seed):
    places = {f"{i}": place(10 * seed + i) for i in range(len(EACH))}
    world = sy.World({f"{i}": shape for i, shape in enumerate(EACH)} | {"both": [EACH[1], EACH[7]]}).moved(places)
    probe, T = sy.ConvexHull(np.random.default_rng(seed).normal(size=(8, 3))), place(99 + seed)
    found = world.distances(probe, transform=T)
    gaps = [contact.distance for contact in found.values()]
    assert sorted(found) == sorted(world.names)
    assert gaps == sorted(gaps)
    for obstacle in world:
        each = [sy.shapes.distance(probe, solid, transform_a=T) for solid in obstacle.solids()]
        nearest = min(each, key=lambda contact: contact.distance)
        assert found[obstacle.name].distance == pytest.approx(nearest.distance, abs=1e-12)
    assert sy.World().distances(probe) == {}


def test_scaled_worlds_have_scaled_distances():
    world = sy.World(EACH, meters_per_unit=1.0, up="z").moved({"box": place(1), "cloud": place(2)})
    probe = sy.Sphere(center=(0.3, 0.2, 0.1), radius=0.5)
    before, after = world.distances(probe), world.scaled(100.0).distances(probe.scaled(100.0))
    assert list(before) == list(after)
    for name, contact in before.items():
        assert after[name].distance == pytest.approx(100.0 * contact.distance, abs=1e-9)
    assert world.scaled(100.0).meters_per_unit == 0.01


@pytest.mark.parametrize(("up", "other"), [("z", "y"), ("y", "z"), ("x", "-y"), ("z", "-z"), ("-x", "x"), ("y", "y")])
def test_a_matched_world_has_unit_and_axis_of_the_skeleton(up, other):
    def axis(name):
        return np.roll((1, 0, 0), "xyz".index(name[-1])) * (-1 if name[0] == "-" else 1)

    body = sy.Skeleton(sy.bundled("arm7").joints, meters_per_unit=0.01, up=other)
    floor = sy.HalfSpace(point=0.5 * axis(up), normal=axis(up))
    world = sy.World({"floor": floor, "box": sy.Obstacle(EACH[1], transform=place(3))}, meters_per_unit=1.0, up=up)
    new = world.matched(body)
    assert (new.meters_per_unit, new.up) == (0.01, other)
    (plane,) = new["floor"].solids()
    np.testing.assert_allclose(plane.normal, axis(other), atol=1e-12)
    np.testing.assert_allclose(plane.point, 50.0 * axis(other), atol=1e-9)
    assert np.linalg.det(new["box"].transform[:3, :3]) == pytest.approx(1.0)
    assert new.matched(body) is new
    bare = sy.Skeleton(body.joints, meters_per_unit=0.01)
    assert world.matched(bare, up=other) == new
    assert world.matched(bare).up == up
    with pytest.raises(InputError, match="up: expected one of"):
        world.matched(body, up="north")
    assert sy.World(EACH).matched(body) == sy.World(EACH)


@pytest.mark.parametrize("shape", [*EACH[1:], sy.Capsule(a=(1, 2, 3), b=(1, 2, 3), radius=0.5)])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_touch_the_shape_on_all_sides(shape, seed):
    obstacle = sy.Obstacle([shape], transform=place(seed))
    lower, upper = obstacle.bounds
    for axis in range(3):
        for sign, end in ((1.0, upper), (-1.0, lower)):
            wall = sy.HalfSpace(point=end, normal=-sign * np.eye(3)[axis])
            gap = min(sy.shapes.distance(solid, wall).distance for solid in obstacle.solids())
            assert abs(gap) < 1e-12


def test_bounds_of_several_shapes_and_of_half_spaces():
    both = sy.Obstacle([sy.Sphere(radius=1), sy.Sphere(center=(3, 0, 0), radius=0.5)])
    assert both.bounds.tolist() == [[-1, -1, -1], [3.5, 1, 1]]
    floor = sy.Obstacle(sy.HalfSpace(point=(5, 6, 7), normal=(0, 0, 1)))
    assert floor.bounds.tolist() == [[-np.inf] * 3, [np.inf, np.inf, 7]]
    assert np.isinf(sy.Obstacle(EACH[0]).bounds).all()
