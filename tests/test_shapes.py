"""Shapes of bodies: they travel with their joints, and files keep them."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from synovia.errors import FormatError, InputError, UnknownNameError

TURN = Rotation.from_euler("xyz", (0.3, -0.7, 1.1))
EACH = (
    sy.Sphere(radius=0.1),
    sy.Capsule(a=(0, 0, 0), b=(0.1, 0.2, -0.3), radius=0.05),
    sy.Box(center=(1, 2, 3), size=(0.1, 0.2, 0.3), rotation=TURN),
    sy.Cylinder(radius=0.1, length=0.4, rotation=TURN),
    sy.ConvexHull(np.random.default_rng(0).normal(size=(20, 3))),
)
CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def body(**options) -> sy.Skeleton:
    """Return an arm whose links have shapes."""
    lift = np.eye(4)
    lift[:3, 3] = (0, 0, 1)
    return sy.Skeleton(
        [
            sy.Joint("base", body="pedestal", shapes=EACH),
            sy.Joint("elbow", "base", sy.Kind.HINGE, lift, axis=(0, 1, 0), body="forearm", shapes=[EACH[1]]),
            sy.Joint("wrist", "elbow", sy.Kind.HINGE, lift, axis=(0, 1, 0), limit=sy.Interval(-1, 1)),
            sy.Joint("tool", "wrist", rest=lift, shapes=[EACH[0]]),
        ],
        **options,
    )


def alike(a, b) -> bool:
    """Return whether two shapes are the same to rounding: they are as far from probes, and along the same normals."""
    probes = [sy.Sphere(center=c, radius=0.0) for c in np.random.default_rng(1).normal(size=(20, 3)) * 5]
    return type(a) is type(b) and all(
        abs(sy.distance(a, probe).distance - sy.distance(b, probe).distance) < 1e-12 for probe in probes
    )


def test_shapes_by_link():
    found = body().shapes
    assert list(found) == ["pedestal", "forearm", "tool"]
    assert found["pedestal"] == EACH
    assert found["tool"] == (EACH[0],)


def test_shapes_travel_with_their_joints():
    arm = body(excluded_pairs=[("tool", "pedestal"), ("base", "tool")])
    assert arm.excluded_pairs == (("pedestal", "tool"),)
    changed = [
        arm.with_joints(arm.joints),
        arm.with_limits({"wrist": (-0.5, 0.5)}),
        arm.with_root("free"),
        arm.with_root("x,yaw"),
        arm.with_roles({"left_hand": "wrist"}),
        copy.copy(arm),
        copy.deepcopy(arm),
        pickle.loads(pickle.dumps(arm)),
    ]
    for other in changed:
        assert dict(other.shapes) == dict(arm.shapes)
        assert other.excluded_pairs == arm.excluded_pairs


def test_excluded_pairs_of_joints_that_are_gone():
    arm = body(excluded_pairs=[("tool", "pedestal"), ("forearm", "pedestal")])
    assert arm.with_joints(arm.joints[:2]).excluded_pairs == (("pedestal", "forearm"),)


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([("tool", "nothing")], UnknownNameError),
        ([("tool", "tool")], InputError),
        ([("pedestal", "base")], InputError),
        ([("tool",)], InputError),
        ([("tool", 0)], InputError),
        (["tool"], InputError),
    ],
)
def test_excluded_pairs_are_checked(pairs, error):
    with pytest.raises(error):
        body(excluded_pairs=pairs)


@pytest.mark.parametrize("shapes", [[sy.HalfSpace()], "box", 3, None, [0.1]])
def test_shapes_of_a_joint_are_checked(shapes):
    with pytest.raises(InputError, match="shapes"):
        sy.Joint("hand", shapes=shapes)


def test_toml_keeps_shapes(tmp_path):
    arm = body(excluded_pairs=[("tool", "pedestal")])
    sy.write_skeleton(arm, tmp_path / "arm.toml")
    back = sy.load_skeleton(tmp_path / "arm.toml")
    assert back.excluded_pairs == arm.excluded_pairs
    assert list(back.shapes) == list(arm.shapes)
    for name, shapes in arm.shapes.items():
        assert all(alike(a, b) for a, b in zip(shapes, back.shapes[name], strict=True))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('shapes = [{ kind = "ball", radius = 1 }]', "kind is not known"),
        ('shapes = [{ kind = "half-space" }]', "kind is not known"),
        ("shapes = [{ radius = 1 }]", "no kind"),
        ('shapes = [{ kind = "sphere" }]', "sphere has no radius"),
        ('shapes = [{ kind = "sphere", radius = -1 }]', "radius"),
        ('shapes = [{ kind = "sphere", radius = 1, rpy = [0, 0, 1] }]', "unknown key 'rpy'"),
        ('shapes = [{ kind = "hull", points = [[0, 0]] }]', "points has the wrong form"),
        ('shapes = [{ kind = "hull" }]', "points"),
        ("shapes = 3", "shapes has the wrong form"),
    ],
)
def test_toml_names_mistakes(tmp_path, text, told):
    (tmp_path / "arm.toml").write_text(
        f'schema = "synovia.skeleton/1"\n[[joint]]\nname = "a"\nkind = "fixed"\n{text}\n'
    )
    with pytest.raises(FormatError, match=told) as error:
        sy.load_skeleton(tmp_path / "arm.toml")
    assert "line 5" in str(error.value) or "line 2" in str(error.value)


def test_a_hull_is_read_at_its_first_use():
    """Moves, scales, copies and pickles of a hull that is not in memory do not read it, and give the same hull."""
    move = np.eye(4)
    move[:3, :3], move[:3, 3] = TURN.as_matrix(), (1, 2, 3)
    plain, later = sy.ConvexHull(CORNERS), sy.ConvexHull.later(partial(np.copy, CORNERS))
    for change in (
        lambda hull: hull,
        lambda hull: hull.moved(move).scaled(2.0),
        lambda hull: hull.scaled(0.5).moved(move),
        copy.deepcopy,
        lambda hull: pickle.loads(pickle.dumps(hull)),
    ):
        changed = change(later)
        assert not changed.read
        assert "copy" in repr(changed)
        assert not changed.read
        np.testing.assert_allclose(np.sort(changed.points, 0), np.sort(change(plain).points, 0), rtol=0, atol=1e-14)
        assert changed.read
        later = sy.ConvexHull.later(partial(np.copy, CORNERS))
    assert later == plain
    assert hash(later) == hash(plain)
    assert not later.points.flags.writeable
