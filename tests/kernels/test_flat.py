"""Further points of flat contacts: on both shapes, along the normal, never nearer than the nearest pair."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from synovia.kernels.collision.flat import FOUND, flat_points
from synovia.kernels.compiler.jit import entry
from synovia.kernels.layout import CORNER, CORNER_WIDTH, FLAT_GAP, MOST_CORNERS
from synovia.kernels.math.vectors import load
from synovia.model.shapes.distances import pack_shapes

pytestmark = pytest.mark.jit  # it calls parts of kernels, compiled for it alone

ROUND = ("cylinder", "capsule")
SLACK = 1e-9


@entry
def points_of(shapes, vertices, contact, corners, out):
    """Write the number of points, the side that carries them, and how far its shape goes beyond them."""
    points = load(contact, 1, 0), load(contact, 2, 0)
    count, side, beyond = flat_points((shapes, vertices), 0, 1, load(contact, 0, 0), points, contact[3, 0], corners)
    out[0], out[1], out[2] = count, side, beyond


def lying(word, rng):
    """Return a shape with flat sides that is turned by a multiple of 90 degrees, about z by any angle, and a little."""
    x, y, z = rng.uniform(0.05, 0.2, 3)
    shape = {
        "box": lambda: sy.Box(size=(2 * x, 2 * y, 2 * z)),
        "cylinder": lambda: sy.Cylinder(radius=x, length=2 * z),
        "capsule": lambda: sy.Capsule(a=(0, 0, -z), b=(0, 0, z), radius=x),
        "hull": lambda: sy.ConvexHull([(a * x, b * y, c * z) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]),
        "half-space": lambda: sy.HalfSpace(),
    }[word]()
    T = np.eye(4)
    turn = Rotation.from_euler("xyz", [90 * rng.integers(2), 0, rng.uniform(0, 360)], degrees=True)
    turn = Rotation.from_rotvec(rng.choice([0.0, 1e-5, 0.02]) * rng.normal(size=3)) * turn
    T[:3, :3], T[:2, 3] = turn.as_matrix(), rng.uniform(-0.1, 0.1, 2)
    return shape if word == "half-space" else shape.moved(T)


@pytest.mark.parametrize("first", ["box", "cylinder", "capsule", "hull"])
@pytest.mark.parametrize("second", ["box", "cylinder", "hull", "half-space"])
def test_points_are_on_both_shapes_and_no_nearer_than_the_pair(first, second):
    rng = np.random.default_rng(0)
    corners, out, found = np.zeros((MOST_CORNERS, CORNER_WIDTH)), np.zeros(3), 0
    for _ in range(40):
        a, b = lying(first, rng), lying(second, rng)
        near, T = sy.shapes.distance(a, b), np.eye(4)
        T[:3, 3] = (rng.uniform(-0.004, 0.02) - near.distance) * near.normal
        a = a.moved(T)
        near = sy.shapes.distance(a, b)
        packed = pack_shapes([a, b])
        contact = np.array([near.normal, *near.points, [near.distance + 0.05, 0.0, 0.0]])
        points_of(packed.shapes, packed.points, contact, corners, out)
        count, side, beyond = int(out[0]), int(out[1]), out[2]
        found += count
        carrier, owner = (a, b) if side == 0 else (b, a)
        up = near.normal if side == 0 else -near.normal
        for row in corners[FOUND : FOUND + count]:
            gap, p = row[FLAT_GAP], row[CORNER : CORNER + 3] - beyond * up
            assert gap >= near.distance - SLACK
            assert sy.shapes.distance(sy.Sphere(center=p, radius=0.0), carrier).distance <= SLACK
            assert sy.shapes.distance(sy.Sphere(center=p - gap * up, radius=0.0), owner).distance <= SLACK
    assert found > 0 or {first, second} <= {*ROUND}


def test_a_face_on_a_face_has_the_corners_of_what_they_share():
    corners, out = np.zeros((MOST_CORNERS, CORNER_WIDTH)), np.zeros(3)
    upper, lower = sy.Box(center=(0.2, 0.1, 1.01), size=(1, 1, 1)), sy.Box(size=(1, 1, 1))
    near = sy.shapes.distance(upper, lower)
    packed = pack_shapes([upper, lower])
    contact = np.array([near.normal, *near.points, [0.1, 0.0, 0.0]])
    points_of(packed.shapes, packed.points, contact, corners, out)
    shared = {(x, y) for x in (-0.3, 0.5) for y in (-0.4, 0.5)}
    own = {tuple(np.round(row[CORNER : CORNER + 2], 9)) for row in corners[FOUND : FOUND + int(out[0])]}
    assert own | {tuple(np.round(near.points[0][:2], 9))} >= shared
    np.testing.assert_allclose(corners[FOUND : FOUND + int(out[0]), FLAT_GAP], 0.01, atol=1e-12)
