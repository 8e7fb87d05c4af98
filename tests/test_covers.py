"""Capsules around surfaces contain them, stand out little, and say by how much."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import mechanisms
import synovia as sy
from cli_runs import run
from synovia.covers.fit import fit_capsules, smallest_pill
from synovia.covers.measure import measured
from synovia.covers.points import area_of, distances_to, points_on
from synovia.covers.skin import skin_of
from synovia.errors import InputError
from synovia.surface import Part, Surface, surface_of_skeleton

TURN = Rotation.from_euler("xyz", (0.3, -0.7, 1.1))
SHAPES = [
    sy.Sphere(center=(1, 2, 3), radius=0.5),
    sy.Capsule(a=(0, 1, 0), b=(1, 2, -1), radius=0.3),
    sy.Box(center=(1, 0, 0), size=(1, 2, 0.5), rotation=TURN),
    sy.Cylinder(center=(0, 1, 0), radius=0.4, length=1.5, rotation=TURN),
    sy.Ellipsoid(center=(0, 1, 0), radii=(0.3, 0.6, 1.0), rotation=TURN),
    sy.ConvexHull(np.random.default_rng(0).normal(size=(20, 3))),
    sy.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0)]),
    sy.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0.5, 1.5, 0)]),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.word}{len(shape.corners())}")
def test_points_beside_a_shape(shape):
    rng = np.random.default_rng(1)
    on = points_on(shape, 200, rng)
    assert np.abs(distances_to(shape, on)).max() < 1e-6
    probes = rng.normal(size=(100, 3)) * 2
    theirs = [sy.shapes.distance(shape, sy.Sphere(center=p, radius=0.0)).distance for p in probes]
    np.testing.assert_allclose(distances_to(shape, probes), theirs, rtol=0, atol=1e-6)


def test_areas_of_shapes():
    sphere, capsule, box, cylinder, _, hull = SHAPES[:6]
    assert area_of(sphere) == pytest.approx(math.pi, rel=0.02)
    assert area_of(capsule) == pytest.approx(2 * math.pi * 0.3 * math.sqrt(3) + 4 * math.pi * 0.09, rel=0.02)
    assert area_of(box) == pytest.approx(2 * (2 + 1 + 0.5))
    assert area_of(cylinder) == pytest.approx(2 * math.pi * 0.4 * 1.5 + 2 * math.pi * 0.16, rel=0.02)
    assert area_of(sy.ConvexHull([(x, y, z) for x in (0, 2) for y in (0, 1) for z in (0, 1)])) == pytest.approx(10)
    assert 0 < area_of(hull) < 4 * math.pi * np.square(hull.points).sum(axis=1).max()


def test_points_of_a_shape_are_spread_by_area():
    """Of a capsule, the ends have their share; of a box, each face has its own."""
    rng = np.random.default_rng(2)
    capsule, box = sy.Capsule(a=(0, 0, 0), b=(0, 0, 2), radius=0.5), sy.Box(size=(1, 2, 4))
    z = points_on(capsule, 20_000, rng)[:, 2]
    assert np.mean((z < 0) | (z > 2)) == pytest.approx(1 / 3, abs=0.02)
    on = np.abs(points_on(box, 20_000, rng)) - 0.5 * box.size
    shares = np.bincount(on.argmax(axis=1), minlength=3) / len(on)
    np.testing.assert_allclose(shares, np.array((8, 4, 2)) / 14, atol=0.02)


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0.0, 5.0),
    st.floats(0.05, 2.0),
    st.integers(0, 10**6),
)
def test_least_capsule(length, radius, seed):
    """Points of a capsule have a capsule around them that is hardly larger; it contains all of them."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=3)
    b = length * way / np.linalg.norm(way)
    points = points_on(sy.Capsule(a=(0, 0, 0), b=b, radius=radius), 600, rng) + rng.normal(size=3)
    pill = smallest_pill(points)
    assert pill.distances(points).max() <= 0.0
    # nearly spherical ones are the worst: at most 1.074 in 1,500 random capsules
    assert pill.volume <= 1.1 * math.pi * radius**2 * (length + 4 / 3 * radius)


@pytest.mark.parametrize("points", [[(1, 2, 3)], [(0, 0, 0), (1, 0, 0)], [(0, 0, 0), (1, 0, 0), (0, 1, 0)]])
def test_capsules_around_few_points(points):
    points = np.array(points, float)
    pill = smallest_pill(points)
    assert pill.distances(points).max() <= 1e-12
    assert pill.volume < 2.0


def tube(joints: int, sides: int, rings: int, seed: int) -> tuple[sy.Skeleton, Surface]:
    """Return a chain along x and a tube around it, with random radii and weights; triangles join neighbours."""
    rng = np.random.default_rng(seed)
    body = sy.Skeleton.chain([(k, 0, 0) for k in range(joints + 1)])
    x = np.linspace(0, joints, rings)
    angle = np.linspace(0, 2 * math.pi, sides, endpoint=False)
    radii = rng.uniform(0.2, 0.6, (rings, sides))
    vertices = np.stack(
        [np.repeat(x[:, None], sides, 1), radii * np.cos(angle), radii * np.sin(angle)], axis=-1
    ).reshape(-1, 3)
    at = sides * np.arange(rings - 1)[:, None] + np.arange(sides)
    beside = sides * np.arange(rings - 1)[:, None] + np.roll(np.arange(sides), -1)
    faces = np.concatenate(
        [
            np.stack([at, beside, at + sides], -1).reshape(-1, 3),
            np.stack([beside, beside + sides, at + sides], -1).reshape(-1, 3),
        ]
    )
    first = np.clip(np.floor(vertices[:, 0]), 0, joints - 1).astype(int)
    bones = np.stack([first, np.minimum(first + 1, joints - 1), np.zeros_like(first), np.zeros_like(first)], 1)
    share = rng.random(len(vertices))
    weights = np.stack([share, 1 - share, 0 * share, 0 * share], 1)
    frames = np.tile(np.eye(4), (joints, 1, 1))
    frames[:, 0, 3] = np.arange(joints)
    return body, Surface((Part(vertices, faces, np.arange(joints), frames, bones, weights),))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_triangles_between_bones_are_covered(seed):
    """Points of few large triangles that span several bones are inside, also far from all corners."""
    body, surface = tube(3, 5, 4 + seed, seed)
    skin = skin_of(surface, body)
    found = fit_capsules(skin, 0.15)
    (part,) = surface.parts
    rng = np.random.default_rng(seed)
    share = rng.dirichlet((1, 1, 1), (len(part.faces), 50))
    points = np.einsum("fsk,fki->fsi", share, part.vertices[part.faces]).reshape(-1, 3)
    shapes = [shape.moved(skin.frames[row]) for row, shapes in found.items() for shape in shapes]
    assert np.min([distances_to(shape, points) for shape in shapes], axis=0).max() <= 1e-9
    assert max(map(len, found.values())) <= 4


@pytest.mark.slow
def test_fit_of_known_shapes():
    """Gap and overhang of a ball around a cube, of one inside of it, and of a ball far away."""
    body = sy.Skeleton([sy.Joint("cube"), sy.Joint("arm", "cube")])
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    quads = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    weights = np.tile((1.0, 0, 0, 0), (8, 1))
    part = Part(corners, faces, np.array([0]), np.eye(4)[None], np.zeros((8, 4), int), weights)
    skin = skin_of(Surface((part,)), body)

    def fit(**shapes):
        return measured(skin, sy.with_shapes(body, shapes), 20_000, 0)

    around = fit(cube=[sy.Sphere(radius=2)])
    assert around.gap == 0.0
    assert around.overhang == pytest.approx(1.0, abs=0.02)
    inside = fit(cube=[sy.Sphere(radius=0.5)])
    assert inside.gap == pytest.approx(math.sqrt(3) - 0.5, abs=0.05)
    assert inside.overhang == 0.0
    away = fit(cube=[sy.Box(size=(2, 2, 2))], arm=[sy.Sphere(center=(5, 0, 0), radius=1)])
    assert away.links["cube"].overhang < 0.1
    assert away.links["arm"].overhang == pytest.approx(5.0, abs=0.05)
    assert away.links["arm"].gap == away.links["cube"].gap == 0.0
    hidden = fit(cube=[sy.Box(size=(2, 2, 2)), sy.Sphere(radius=0.9)])
    assert hidden.overhang < 0.1  # what is inside other shapes does not stand out
    assert "largest gap 0" in hidden.report()


def contains_all(body: sy.Skeleton) -> bool:
    """Return whether the shapes of a body contain all vertices of its surface."""
    surface = surface_of_skeleton(body)
    skin = skin_of(surface, body)
    shapes = [s.moved(skin.frames[row]) for row, joint in enumerate(body.joints) for s in joint.shapes]
    places = np.concatenate([part.vertices for part in surface.parts])
    return np.min([distances_to(shape, places) for shape in shapes], axis=0).max() <= 1e-9


@pytest.mark.parametrize("name", sy.skeletons.bundled_names())
def test_shapes_of_bundled_bodies_contain_them(name):
    body = sy.bundled(name)
    fit = sy.shapes.shape_fit(body, points=20_000)
    assert fit.gap == 0.0
    assert fit.overhang < 0.06
    assert contains_all(body)
    assert all(1 <= len(shapes) <= 4 for shapes in body.shapes.values())


def test_bundled_bodies_have_two_equal_sides():
    body = sy.bundled("humanoid")
    for name, shapes in body.shapes.items():
        other = body.shapes[name.replace("left_", "right_")]
        assert [s.radius for s in shapes] == pytest.approx([s.radius for s in other], abs=1.5e-4)


@pytest.mark.slow
def test_capsules_contain_a_body():
    body = sy.with_shapes(sy.bundled("humanoid_hands"), "surface")
    fit = sy.shapes.shape_fit(body, points=20_000)
    assert fit.gap == 0.0
    assert fit.overhang < 0.06
    assert contains_all(body)
    assert all(1 <= len(shapes) <= 4 for shapes in body.shapes.values())


def test_a_wrist_left_bare_is_found():
    bare = sy.shapes.shape_fit(sy.with_shapes(sy.bundled("humanoid"), {"left_hand": []}), points=20_000)
    assert bare.gap > 0.1
    assert bare.links["left_hand"].gap == bare.gap
    assert bare.links["left_hand"].shapes == 0
    assert bare.links["right_hand"].gap == 0.0


@pytest.mark.slow
def test_less_overhang_takes_more_capsules():
    body = sy.bundled("quadruped")
    few, many = (sy.with_shapes(body, "surface", overhang=length) for length in (0.2, 0.02))
    assert sum(map(len, few.shapes.values())) == len(few.shapes)
    assert sum(map(len, many.shapes.values())) > len(many.shapes)
    assert sy.shapes.shape_fit(many, points=10_000).overhang < sy.shapes.shape_fit(few, points=10_000).overhang


@pytest.mark.slow
def test_covers_of_a_body_with_longer_bones():
    """A body whose bones are longer than those of its file is covered as its surface is drawn: stretched at rest."""
    body = sy.bundled("arm7")
    joints = []
    for row, joint in enumerate(body.joints):
        rest = joint.rest.copy()
        rest[:3, 3] *= 1.3
        parent = body.parents[row]
        joints.append(
            sy.Joint(
                joint.name,
                body.joint_names[parent] if parent >= 0 else None,
                joint.kind,
                rest,
                axis=joint.axis,
                body=joint.body,
            )
        )
    tall = sy.with_shapes(body.with_joints(joints), "surface")
    assert sy.shapes.shape_fit(tall, points=10_000).gap == 0.0
    assert sy.shapes.shape_fit(tall, points=10_000, pose=tall.rest_pose()).gap == 0.0


VISUAL = """<robot name="r"><link name="base"><visual><geometry><box size="0.4 0.1 0.1"/></geometry></visual></link>
  <link name="arm"><visual><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.05" length="1"/></geometry></visual>
  </link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""


def test_robots_without_collision_shapes_get_capsules_around_their_meshes(tmp_path):
    (tmp_path / "r.urdf").write_text(VISUAL)
    arm = sy.load_skeleton(tmp_path / "r.urdf")
    assert not arm.shapes
    covered = sy.with_shapes(arm)
    assert list(covered.shapes) == ["base", "arm"]
    fit = sy.shapes.shape_fit(covered, points=10_000)
    assert fit.gap == 0.0
    assert fit.overhang < 0.06
    (tmp_path / "r.urdf").unlink()
    bones = sy.with_shapes(arm)
    assert list(bones.shapes) == ["base"] or not bones.shapes  # there is no surface any more


@pytest.mark.slow
def test_inspect_tells_the_fit(tmp_path):
    (tmp_path / "r.urdf").write_text(VISUAL)
    found = run("inspect", tmp_path / "r.urdf", "--shapes", "--json").data
    assert found["shape_fit"]["gap"] == 0.0
    assert {link["link"] for link in found["shape_fit"]["links"]} == {"base", "arm"}
    assert found["shapes"]["count"] == sum(link["shapes"] for link in found["shape_fit"]["links"])
    out = run("inspect", tmp_path / "r.urdf", "--shapes").out
    assert "largest gap 0, largest overhang" in out
    assert run("inspect", tmp_path / "r.urdf", "--json").data["shape_fit"] is None


def test_bodies_without_a_surface():
    chain = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])
    with pytest.raises(InputError, match="surface"):
        sy.with_shapes(chain, "surface")
    assert sy.shapes.shape_fit(sy.with_shapes(chain)) is None
    with pytest.raises(InputError, match="shapes"):
        sy.shapes.shape_fit(chain)


@pytest.mark.parametrize("overhang", [0, -1, float("nan"), "wide"])
def test_overhang_is_checked(overhang):
    with pytest.raises(InputError, match="overhang"):
        sy.with_shapes(sy.bundled("arm7"), "surface", overhang=overhang)


@pytest.mark.parametrize(("name", "value"), [("points", 0), ("points", 1.5), ("seed", -1), ("pose", 3)])
def test_arguments_of_a_fit_are_checked(name, value):
    with pytest.raises(InputError, match=name):
        sy.shapes.shape_fit(sy.with_shapes(sy.bundled("arm7"), "bones"), **{name: value})


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "share"), [("mannequiny.glb", 0.03), ("greenman.glb", 0.12), ("SimpleSkin.gltf", 0.3)]
)
def test_capsules_contain_real_characters(shared_data, name, share):
    """By 10^5 points of the surface, and within a share of the extent of the surface."""
    body = sy.with_shapes(sy.load_skeleton(shared_data / "character" / name))
    fit = sy.shapes.shape_fit(body)
    assert fit.points == 100_000
    assert fit.gap == 0.0
    assert fit.overhang < share * skin_of(surface_of_skeleton(body), body).extent


LOST = '<collision><geometry><mesh filename="absent.stl"/></geometry></collision>'
READ = '<collision><geometry><sphere radius="0.05"/></geometry></collision>'


def robot(tmp_path, *links):
    """Return a robot of links in a row, one unit apart, each with what its element holds."""
    text = "".join(f'<link name="l{k}">{inner}</link>' for k, inner in enumerate(links)) + "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/><axis xyz="0 0 1"/>'
        '<origin xyz="1 0 0"/></joint>'
        for k in range(1, len(links))
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{text}</robot>')
    return sy.load_skeleton(tmp_path / "r.urdf")


def test_bones_lead_to_the_points_where_loops_close():
    bars = mechanisms.four_bar(crank=1.0, coupler=3.0, rocker=2.0)
    shapes = sy.with_shapes(bars).shapes
    assert {name: float(np.linalg.norm(shapes[name][0].b)) for name in shapes} == {
        "crank": 1.0, "coupler": 3.0, "rocker": 2.0,
    }  # fmt: skip


def test_links_whose_shapes_are_missing_are_covered_and_the_others_stay(tmp_path):
    """A link of which only some could be read keeps these, and gets a capsule too; one without any is a frame."""
    body = robot(tmp_path, LOST, READ, READ + LOST, "", LOST, READ)
    assert [joint.shapes_lost for joint in body.joints] == [True, False, True, False, True, False]
    full = sy.with_shapes(body)
    assert list(full.shapes) == ["l0", "l1", "l2", "l4", "l5"]
    assert all(full.shapes[link][: len(shapes)] == shapes for link, shapes in body.shapes.items())
    assert [len(full.shapes[link]) for link in ("l1", "l2", "l5")] == [1, 2, 1]
    assert not any(joint.shapes_lost for joint in full.joints)
    (capsule,) = full.shapes["l0"]
    np.testing.assert_allclose((capsule.a, capsule.b), ((0, 0, 0), (1, 0, 0)))
    note = "Shapes that could not be read are replaced by capsules, on links: 'l0', 'l2', 'l4'."
    assert full.notes == (*body.notes, note)
    assert sy.with_shapes(full) is full
    bare = sy.with_shapes(body, {"l0": [], "l2": [], "l4": []})  # by hand: on purpose
    assert sy.with_shapes(bare) is bare


def test_a_link_without_a_bone_has_a_capsule_around_its_centre_of_mass(tmp_path):
    """Without one, it has a sphere as thick as the bone that leads to it."""
    weight = '<inertial><origin xyz="0 0 0.1"/><mass value="1"/></inertial>'
    ends = sy.with_shapes(robot(tmp_path, READ, weight + LOST))
    (capsule,) = ends.shapes["l1"]
    np.testing.assert_allclose((capsule.a, capsule.b), ((0, 0, 0), (0, 0, 0.2)))
    assert capsule.radius == pytest.approx(0.03)
    unknown = sy.with_shapes(robot(tmp_path, READ, LOST))
    (ball,) = unknown.shapes["l1"]
    assert (ball.center.tolist(), ball.radius) == ([0, 0, 0], pytest.approx(0.15))
    assert unknown.notes[-1].endswith("on links: 'l1'.")
    assert sy.with_shapes(unknown) is unknown


def test_files_keep_which_shapes_are_missing(tmp_path):
    """TOML, npz, copies and other roots; a mesh that is there is not missing."""
    body = robot(tmp_path, LOST, READ)
    sy.formats.write_skeleton(body, tmp_path / "r.toml")
    sy.save_motion(sy.Motion(body, body.rest_q[None], 30.0), tmp_path / "r.npz")
    for again in (
        sy.load_skeleton(tmp_path / "r.toml"),
        sy.load_skeleton(tmp_path / "r.npz"),
        pickle.loads(pickle.dumps(body)),
        body.with_root("free"),
    ):
        assert "l0" in sy.with_shapes(again).shapes


def test_commands_fit_missing_shapes_if_they_may(tmp_path):
    """They say it, and keep clear with the links that are covered; else they name the option."""
    robot(tmp_path, LOST, READ, "", READ)
    ask = ("solve", tmp_path / "r.urdf", "-t", "l3=1,2,0", "--clearance", 0.01, "--json")
    ran = run(*ask, "--shapes")
    assert "l0" in {name for contact in ran.data["contacts"] for name in contact["pair"]}
    assert "capsules on 1 link are used" in ran.err
    refused = run(*ask)
    assert (refused.code, refused.out) == (3, "")
    assert "could not be read" in refused.err
    assert "--shapes" in refused.err


@pytest.mark.shared_data
def test_missing_shapes_of_a_real_arm(shared_data):
    """A Panda without its meshes: its fingers keep their boxes, and its frames stay bare."""
    arm = sy.load_skeleton(shared_data / "robot" / "panda.urdf")
    full = sy.with_shapes(arm)
    assert set(full.shapes) - set(arm.shapes) == {*(f"panda_link{k}" for k in range(8)), "panda_hand"}
    assert all(full.shapes[link] == shapes for link, shapes in arm.shapes.items())
    assert any("'panda_link0'" in note for note in full.notes[-1:])


def test_bodies_of_mjcf_whose_meshes_are_missing_are_covered(tmp_path):
    """Bodies without geoms stay bare; those of which all that is seen is missing do not."""
    pytest.importorskip("mujoco")
    (tmp_path / "m.xml").write_text(
        '<mujoco><asset><mesh name="absent" file="absent.stl"/></asset><worldbody><geom type="mesh" mesh="absent"/>'
        '<body name="a"><joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        '<geom type="mesh" mesh="absent"/>'
        '<body name="b" pos="1 0 0"><joint axis="0 0 1"/><geom type="sphere" size="0.05"/>'
        '<body name="c" pos="1 0 0"><joint axis="0 0 1"/><inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>'
        '<body name="d" pos="1 0 0"><joint axis="0 0 1"/><inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>'
        '<geom type="mesh" mesh="absent" contype="0" conaffinity="0"/>'
        "</body></body></body></body></worldbody></mujoco>"
    )
    with pytest.warns(UserWarning, match="absent.stl"):
        body = sy.load_skeleton(tmp_path / "m.xml")
    full = sy.with_shapes(body)
    assert (set(body.shapes), set(full.shapes)) == ({"b"}, {"a", "b", "d"})
    assert full.shapes["b"] == body.shapes["b"]
    assert full.notes[-1].endswith("on links: 'a', 'd'.")
