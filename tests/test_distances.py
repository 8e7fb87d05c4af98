"""Signed distances between shapes: an edge table, formulas in long double, and laws of random pairs."""

import copy
import pickle
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import synovia as sy

WORDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "hull", "half-space")
PAIRS = [pair for pair in combinations_with_replacement(WORDS, 2) if pair != ("half-space", "half-space")]
CUBE = sy.Box(size=(2, 2, 2))
CORNERS = sy.ConvexHull([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
ROD = sy.Cylinder(radius=1, length=2)
EGG = sy.Ellipsoid(radii=(1, 2, 3))
LIMB = sy.Capsule(a=(0, 0, 0), b=(1, 0, 0), radius=0.5)
ACROSS = sy.Capsule(a=(-1, 0, 0), b=(1, 0, 0), radius=0.1)
TURNED = Rotation.from_euler("z", 45, degrees=True)


def some(word, rng, size=1.0):
    """Return a random shape of a kind, about as large as it is far from the origin."""
    c, s = size * rng.normal(size=3), size * rng.uniform(0.1, 1.0, 3)
    turn = Rotation.from_quat(rng.normal(size=4))
    return {
        "sphere": lambda: sy.Sphere(center=c, radius=s[0]),
        "capsule": lambda: sy.Capsule(a=c, b=c + size * rng.normal(size=3), radius=s[0]),
        "box": lambda: sy.Box(center=c, size=2 * s, rotation=turn),
        "cylinder": lambda: sy.Cylinder(center=c, radius=s[0], length=2 * s[1], rotation=turn),
        "ellipsoid": lambda: sy.Ellipsoid(center=c, radii=s, rotation=turn),
        "hull": lambda: sy.ConvexHull(c + 0.6 * size * rng.normal(size=(12, 3))),
        "half-space": lambda: sy.HalfSpace(point=c, normal=rng.normal(size=3)),
    }[word]()


def along(way):
    """Return the transform of a translation."""
    T = np.eye(4)
    T[:3, 3] = way
    return T


@pytest.mark.parametrize(
    ("a", "b", "distance", "normal"),
    [
        (sy.Sphere(center=(3, 0, 0), radius=1), sy.Sphere(radius=1), 1, (1, 0, 0)),
        (sy.Sphere(radius=1), sy.Sphere(radius=2), -3, None),  # one centre
        (sy.Sphere(center=(0, 0, 1), radius=0), CUBE, 0, (0, 0, 1)),  # a point on a face
        (sy.Sphere(center=(0.5, 0, 0), radius=0.25), CUBE, -0.75, (1, 0, 0)),
        (sy.Sphere(radius=1), ROD, -2, None),  # on the axis
        (sy.Sphere(center=(0, 0, 3), radius=1), ROD, 1, (0, 0, 1)),
        (sy.Sphere(center=(4, 0, 5), radius=0), ROD, 5, (0.6, 0, 0.8)),
        (LIMB, sy.Capsule(a=(0, 2, 0), b=(1, 2, 0), radius=0.5), 1, (0, -1, 0)),
        (LIMB, sy.Capsule(a=(3, 0, 0), b=(4, 0, 0), radius=0.5), 1, (-1, 0, 0)),
        (ACROSS, sy.Capsule(a=(0, -1, 0), b=(0, 1, 0), radius=0.1), -0.2, None),
        (sy.Capsule(a=(0, 0, 0), b=(0, 0, 0), radius=1), sy.Sphere(center=(0, 4, 0), radius=1), 2, (0, -1, 0)),
        (CUBE, sy.Box(center=(3, 0, 0), size=(2, 2, 2)), 1, (-1, 0, 0)),
        (CUBE, sy.Box(center=(2, 0, 0), size=(2, 2, 2)), 0, (-1, 0, 0)),  # two faces touch
        (CUBE, sy.Box(center=(1.5, 0.2, 0), size=(2, 2, 2)), -0.5, (-1, 0, 0)),
        (CUBE, CUBE, -2, None),
        (CUBE, CORNERS, -2, None),
        (CORNERS, sy.ConvexHull([(0, 0, 4)]), 3, (0, 0, -1)),
        (sy.Box(size=(2, 2, 2), rotation=TURNED), sy.Box(center=(3, 0, 0), size=(2, 2, 2)), 2 - 2**0.5, (-1, 0, 0)),
        (sy.Box(size=(2, 2, 0)), sy.Box(center=(0, 0, 1), size=(2, 2, 0)), 1, (0, 0, -1)),  # plates
        (sy.Box(size=(2, 2, 0)), sy.Capsule(a=(-1, 0, 0), b=(1, 0, 0), radius=0.5), -0.5, None),  # flat together
        (sy.Box(size=(2, 2, 0)), sy.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0)]), 0, None),
        (sy.Capsule(a=(0, 0, 5), b=(9, 0, 5), radius=1), CUBE, 3, (0, 0, 1)),  # parallel to a face
        (sy.Capsule(a=(-9, 0, 0), b=(9, 0, 0), radius=1), CUBE, -2, None),  # through the middle
        (ROD, sy.Cylinder(center=(0, 0, 5), radius=3, length=2), 3, (0, 0, -1)),
        (ROD, sy.Cylinder(center=(5, 0, 0), radius=1, length=9), 3, (-1, 0, 0)),
        (ROD, sy.Box(center=(0, 0, 2.5), size=(9, 9, 1)), 1, (0, 0, -1)),
        (ROD, ROD, -2, None),
        (ROD, sy.Cylinder(center=(0.5, 0, 0), radius=1, length=9), -1.5, (-1, 0, 0)),
        (ROD, sy.Cylinder(center=(1, 0, 1.5), radius=1, length=2), -0.5, (0, 0, -1)),
        (ROD, sy.Cylinder(center=(5, 0, 6), radius=1, length=2), 5, (-0.6, 0, -0.8)),
        (EGG, sy.Ellipsoid(center=(6, 0, 0), radii=(2, 1, 1)), 3, (-1, 0, 0)),
        (EGG, sy.Ellipsoid(center=(0, 4.5, 0), radii=(1, 2, 3)), 0.5, (0, -1, 0)),
        (EGG, EGG, -2, None),
        (EGG, sy.Sphere(center=(0, 0, 7), radius=1), 3, (0, 0, -1)),
        (EGG, sy.HalfSpace(point=(0, 0, -3), normal=(0, 0, 1)), 0, (0, 0, 1)),
        (EGG, sy.Box(center=(0, 5, 0), size=(9, 2, 9)), 2, (0, -1, 0)),
        (sy.Ellipsoid(radii=(1, 1, 0)), sy.Sphere(center=(0, 0, 2), radius=0.5), 1.5, (0, 0, -1)),  # a disc
        (CUBE, sy.HalfSpace(point=(0, 0, -3)), 2, (0, 0, 1)),
        (CORNERS, sy.HalfSpace(point=(0, 0, 3)), -4, (0, 0, 1)),
        (sy.Sphere(center=(1e9, 0, 0), radius=1), CUBE, 1e9 - 2, (1, 0, 0)),
        (sy.Box(size=(2e-9, 2e-9, 2e-9)), sy.Box(center=(3e-9, 0, 0), size=(2e-9, 2e-9, 2e-9)), 1e-9, (-1, 0, 0)),
        (sy.Box(size=(2e9, 2e9, 2e9)), sy.Box(center=(0, 1.5e9, 0), size=(2e9, 2e9, 2e9)), -0.5e9, (0, -1, 0)),
        (CUBE, sy.Box(center=(1 + 5e-7, 0, 0), size=(1e-6, 1e-6, 1e-6)), 0, (-1, 0, 0)),  # small on large
    ],
)  # fmt: skip
def test_edges(a, b, distance, normal):
    for first, second, side in ((a, b, 1.0), (b, a, -1.0)):
        contact = sy.shapes.distance(first, second)
        size = max(abs(distance), 1e-9)
        assert contact.distance == pytest.approx(distance, rel=1e-12, abs=1e-12 * min(1.0, size) + 1e-15)
        assert np.linalg.norm(contact.normal) == pytest.approx(1.0, abs=1e-12)
        if normal is not None:
            np.testing.assert_allclose(side * contact.normal, normal, atol=1e-9)
        out = contact.points[0] - contact.points[1]
        np.testing.assert_allclose(out, contact.distance * contact.normal, atol=1e-12 * max(size, 1.0))


@pytest.mark.parametrize(("a", "b"), PAIRS)
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1e-6, 1.0, 1e6]))
def test_laws(a, b, seed, size):
    """Symmetry, rigid motions, and moving apart along the normal."""
    rng = np.random.default_rng(seed)
    first, second = some(a, rng, size), some(b, rng, size)
    contact = sy.shapes.distance(first, second)
    slack = 1e-9 * size
    assert sy.shapes.distance(second, first).distance == pytest.approx(contact.distance, abs=slack)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_quat(rng.normal(size=4)).as_matrix(), size * rng.normal(size=3)
    moved = sy.shapes.distance(first, second, transform_a=T, transform_b=T)
    assert moved.distance == pytest.approx(contact.distance, abs=slack)
    t = size * rng.uniform(0.1, 1.0) + max(0.0, -contact.distance)
    away = sy.shapes.distance(first, second, transform_a=along(t * contact.normal))
    assert away.distance == pytest.approx(contact.distance + t, abs=slack)
    out = contact.points[0] - contact.points[1]
    np.testing.assert_allclose(out, contact.distance * contact.normal, atol=slack)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_normal_is_the_derivative_by_any_motion(a, b):
    """The law of the gradient, away from kinks: central differences in three directions."""
    rng = np.random.default_rng(7)
    apart = 0
    while apart < 5:
        first, second = some(a, rng), some(b, rng)
        contact = sy.shapes.distance(first, second)
        if contact.distance < 0.05:  # the way out may change sides
            continue
        apart += 1
        h = 1e-4
        ways = np.eye(3)
        differences = [
            sy.shapes.distance(first, second, transform_a=along(h * way)).distance
            - sy.shapes.distance(first, second, transform_a=along(-h * way)).distance
            for way in ways
        ]
        np.testing.assert_allclose(np.array(differences) / (2 * h), contact.normal, atol=5e-3)


def exact_of_segments(a, b, c, d):
    """Return the distance of two segments in long double: the best of the inner solution and the ends."""
    a, b, c, d = (np.asarray(p, np.longdouble) for p in (a, b, c, d))

    def of_point(p, q, r):
        w = r - q
        t = min(max(((p - q) @ w) / (w @ w), np.longdouble(0)), np.longdouble(1))
        return np.sqrt(((p - q - t * w) ** 2).sum())

    found = [of_point(a, c, d), of_point(b, c, d), of_point(c, a, b), of_point(d, a, b)]
    u, v, w = b - a, d - c, a - c
    n = np.cross(u, v)
    if n @ n > 0:
        s, t = np.cross(v, w) @ n / (n @ n), np.cross(u, w) @ n / (n @ n)
        if 0 <= s <= 1 and 0 <= t <= 1:
            found.append(abs(w @ n) / np.sqrt(n @ n))
    return float(min(found))


def test_capsules_against_long_double():
    rng = np.random.default_rng(3)
    for k in range(300):
        a, b, c, d = rng.normal(size=(4, 3))
        if k % 3 == 0:
            d = c + (b - a) * rng.normal() + 10.0 ** -rng.uniform(4, 14) * rng.normal(size=3)  # nearly parallel
        contact = sy.shapes.distance(sy.Capsule(a=a, b=b, radius=0.1), sy.Capsule(a=c, b=d, radius=0.2))
        assert contact.distance == pytest.approx(exact_of_segments(a, b, c, d) - 0.3, abs=1e-9)


def test_boxes_and_their_corners_are_the_same():
    rng = np.random.default_rng(5)
    for _ in range(50):
        box = some("box", rng)
        corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * box.size
        hull = sy.ConvexHull(corners @ box.rotation.T + box.center)
        for word in WORDS:
            other = some(word, rng)
            assert sy.shapes.distance(hull, other).distance == pytest.approx(
                sy.shapes.distance(box, other).distance, abs=1e-9
            )


def test_shapes_are_values():
    rng = np.random.default_rng(1)
    for word in WORDS:
        shape = some(word, rng)
        assert shape == shape.moved(np.eye(4)) or word in ("half-space", "box", "cylinder", "ellipsoid")
        for again in (copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
            assert again == shape
            assert hash(again) == hash(shape)
        with pytest.raises(AttributeError):
            shape.radius = 3.0
        other = some("sphere", rng)
        apart = sy.shapes.distance(shape, other).distance
        assert sy.shapes.distance(shape.scaled(3.0), other.scaled(3.0)).distance == pytest.approx(3.0 * apart, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sy.Sphere(radius=-1), "Sphere.radius"),
        (lambda: sy.Sphere(radius=float("nan")), "Sphere.radius"),
        (lambda: sy.Sphere(radius=1, centre=(0, 0, 0)), "no argument 'centre'"),
        (lambda: sy.Capsule(a=(0, 0), b=(0, 0, 1), radius=1), "Capsule.a"),
        (lambda: sy.Box(size=(1, -1, 1)), "Box.size"),
        (lambda: sy.Box(size=(1, 1, 1), rotation=2 * np.eye(3)), "Box.rotation"),
        (lambda: sy.Ellipsoid(radii=(1, -1, 1)), "Ellipsoid.radii"),
        (lambda: sy.Ellipsoid(radii=1), "Ellipsoid.radii"),
        (lambda: sy.ConvexHull(np.zeros((0, 3))), "ConvexHull.points"),
        (lambda: sy.ConvexHull([(0, 0, np.inf)]), "ConvexHull.points"),
        (lambda: sy.HalfSpace(normal=(0, 0, 0)), "HalfSpace.normal"),
        (lambda: sy.shapes.distance(sy.HalfSpace(), sy.HalfSpace()), "half-space"),
        (lambda: sy.shapes.distance(sy.Sphere(radius=1), "table"), "b: expected a Solid"),
    ],
)
def test_what_cannot_be_used_is_refused(make, says):
    with pytest.raises(sy.SynoviaError, match=says):
        make()


@pytest.mark.parametrize("word", WORDS)
def test_a_cylinder_is_between_its_prisms(word):
    """The distance from the prism inside is no smaller, and from the prism around it no larger."""
    rng = np.random.default_rng(9)
    turns = np.linspace(0.0, 2.0 * np.pi, 64, endpoint=False)
    ring = np.stack([np.cos(turns), np.sin(turns)], 1)
    for _ in range(60):
        can, other = some("cylinder", rng), some(word, rng)
        found = sy.shapes.distance(can, other).distance
        bounds = []
        for radius in (can.radius / np.cos(np.pi / 64), can.radius):
            ends = [np.column_stack([radius * ring, np.full(64, z)]) for z in (-0.5 * can.length, 0.5 * can.length)]
            prism = sy.ConvexHull(np.concatenate(ends) @ can.rotation.T + can.center)
            bounds.append(sy.shapes.distance(prism, other).distance)
        assert bounds[0] - 1e-9 <= found <= bounds[1] + 1e-9
        assert bounds[1] - bounds[0] < 0.02


def support(shape, n):
    """Return how far a shape goes along unit vectors (k, 3) from the origin."""
    d, sizes = n @ shape.place()[:3, :3], np.array(shape.sizes()[:3])
    if shape.word == "ellipsoid":
        along = np.linalg.norm(d * sizes, axis=1)
    elif shape.word == "hull":
        along = (d @ shape.corners().T).max(axis=1)
    else:
        along = np.abs(d) @ sizes
    return (
        along + shape.sizes()[3] * (np.hypot(*d.T[:2]) if shape.word == "cylinder" else 1.0) + n @ shape.place()[:3, 3]
    )


@pytest.mark.parametrize("word", WORDS[:-1])
def test_the_distance_of_an_ellipsoid_is_the_largest_gap_along_all_directions(word):
    """The gap along the normal is the distance, no direction has a larger one, and the nearest points are on both."""
    rng = np.random.default_rng(13)
    n = rng.normal(size=(4000, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    for _ in range(40):
        egg, other = some("ellipsoid", rng, 0.7), some(word, rng, 0.7)
        contact = sy.shapes.distance(egg, other)
        nearby = contact.normal + np.geomspace(1e-8, 0.3, 4000)[:, None] * rng.normal(size=(4000, 3))
        nearby /= np.linalg.norm(nearby, axis=1)[:, None]
        tried = np.concatenate([contact.normal[None], nearby, n])
        gaps = -support(egg, -tried) - support(other, tried)
        ends = np.concatenate([egg.bounds, other.bounds])
        rounding = 2e-9 * float(np.linalg.norm(ends.max(axis=0) - ends.min(axis=0)))  # of the size of both
        assert gaps[0] == pytest.approx(contact.distance, abs=rounding)
        assert gaps.max() <= contact.distance + rounding
        for point, shape in zip(contact.points, (egg, other), strict=True):
            assert abs(sy.shapes.distance(sy.Sphere(center=point, radius=0.0), shape).distance) <= 1e-7


def axis_and_sizes(shape):
    """Return axis, half length, radius of the core, and radius around it, of a cylinder or a capsule."""
    x, _, half, radius = shape.sizes()
    return (
        (shape.place()[:3, 2], half, radius, 0.0)
        if shape.word == "cylinder"
        else (shape.place()[:3, 2], half, x, radius)
    )


def extent_along(shape, n):
    """Return how far a cylinder or a capsule goes along unit vectors (k, 3) from its middle."""
    axis, half, core, around = axis_and_sizes(shape)
    along = n @ axis
    return half * np.abs(along) + core * np.linalg.norm(n - along[:, None] * axis, axis=1) + around


def depths(a, b, n):
    """Return how far the first shape has to move against unit vectors (k, 3) to leave the second one."""
    return extent_along(a, n) + extent_along(b, n) + n @ (a.place()[:3, 3] - b.place()[:3, 3])


def least_depth(a, b):
    """Return the least depth over 20,000 directions and rings about both axes, the lowest of them refined."""
    k = np.arange(20_000) + 0.5
    z, turn = 1.0 - k / 10_000, np.pi * (1.0 + 5.0**0.5) * k
    n = [np.column_stack([np.sqrt(1.0 - z * z) * np.cos(turn), np.sqrt(1.0 - z * z) * np.sin(turn), z])]
    ring = np.linspace(0.0, 2.0 * np.pi, 2000)
    circle = np.column_stack([np.cos(ring), np.sin(ring), np.zeros(2000)])
    n += [circle @ shape.place()[:3, :3].T for shape in (a, b)]
    n += [sign * np.stack([a.place()[:3, 2], b.place()[:3, 2]]) for sign in (1, -1)]
    n = np.concatenate(n)
    n = n[np.argsort(depths(a, b, n))[:50]]
    rng = np.random.default_rng(0)
    for width in 0.05 * 0.7 ** np.arange(50):
        tried = np.concatenate([n, n + width * rng.normal(size=n.shape), n + width * rng.normal(size=n.shape)])
        tried /= np.linalg.norm(tried, axis=1)[:, None]
        n = tried[np.argsort(depths(a, b, tried))[:50]]
    return depths(a, b, n).min()


@pytest.mark.parametrize("word", ["cylinder", "capsule"])
@pytest.mark.parametrize("off", [1e-3, 1e-6, 1.0])
def test_the_depth_of_cylinders_is_the_least_of_all_directions(word, off):
    """Within ``off`` of coaxial, or anywhere: the normal has the depth of the formula, and no direction has less."""
    rng = np.random.default_rng(11)
    overlapping = 0
    while overlapping < 25:
        turn, (r, t), (h, k) = (
            Rotation.from_quat(rng.normal(size=4)),
            rng.uniform(0.1, 1.0, 2),
            rng.uniform(0.1, 1.0, 2),
        )
        tilt = Rotation.from_rotvec(off * rng.normal(size=3)) * turn
        z, other = (one.apply([0.0, 0.0, 1.0]) for one in (turn, tilt))
        c = rng.normal(size=3)
        d = c + off * 0.4 * rng.normal(size=3) + 0.3 * rng.normal() * z
        can = sy.Cylinder(center=c, radius=r, length=2 * h, rotation=turn)
        second = (
            sy.Cylinder(center=d, radius=t, length=2 * k, rotation=tilt)
            if word == "cylinder"
            else sy.Capsule(a=d - k * other, b=d + k * other, radius=0.2 * t)
        )
        contact = sy.shapes.distance(second, can)
        if contact.distance > -0.2 * t:
            continue  # the cores do not overlap
        overlapping += 1
        assert depths(second, can, -contact.normal[None])[0] == pytest.approx(-contact.distance, abs=1e-9)
        assert -contact.distance <= least_depth(second, can) + 1e-8
        for point, shape in zip(contact.points, (second, can), strict=True):
            assert sy.shapes.distance(sy.Sphere(center=point, radius=0.0), shape).distance <= 1e-8
