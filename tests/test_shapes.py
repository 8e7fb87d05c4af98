"""Shapes of bodies: they travel with their joints, and files keep them."""

import ast
import copy
import pickle
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import synovia as sy
from cli_runs import run
from synovia.cli.model_report import model_report
from synovia.errors import FormatError, InputError, UnknownNameError
from synovia.io.load import Clips, companions_of
from synovia.model.shapes.solids import OF_BODIES

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
        abs(sy.shapes.distance(a, probe).distance - sy.shapes.distance(b, probe).distance) < 1e-12 for probe in probes
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
    sy.formats.write_skeleton(arm, tmp_path / "arm.toml")
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


URDF = """<robot name="r">
  <link name="base">
    <collision><origin xyz="1 2 3" rpy="0.3 -0.7 1.1"/><geometry><box size="0.1 0.2 0.3"/></geometry></collision>
    <collision><geometry><sphere radius="0.1"/></geometry></collision>
    <visual><geometry><sphere radius="5"/></geometry></visual>
  </link>
  <link name="arm">
    <collision><origin rpy="0.3 -0.7 1.1"/><geometry><cylinder radius="0.1" length="0.4"/></geometry></collision>
    <collision><origin xyz="1 2 3" rpy="0.3 -0.7 1.1"/>
      <geometry><capsule radius="0.1" length="0.4"/></geometry></collision>
    <collision><origin xyz="1 2 3" rpy="0.3 -0.7 1.1"/>
      <geometry><mesh filename="package://robot/meshes/part.obj" scale="0.1 0.2 -0.3"/></geometry></collision>
    {extra}
  </link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint>
</robot>"""
OBJ = """v 0 0 0
v 1 0 0
v 0 1 0
v 0 0 1
v 0.1 0.1 0.1
f 1 3 2
f 1 2 4
f 1 4 3
f 5 2 3
"""


def robot(tmp_path, extra="", mesh=True):
    """Return the robot of ``URDF``."""
    home = tmp_path / "robot"
    (home / "urdf").mkdir(parents=True)
    (home / "meshes").mkdir()
    if mesh:
        (home / "meshes" / "part.obj").write_text(OBJ)
    (home / "urdf" / "r.urdf").write_text(URDF.replace("{extra}", extra))
    return sy.load_skeleton(home / "urdf" / "r.urdf")


def test_urdf_collision_shapes(tmp_path):
    pytest.importorskip("trimesh")
    found = robot(tmp_path)
    assert found.notes == ()
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = TURN.as_matrix(), (1, 2, 3)
    base = (sy.Box(center=(1, 2, 3), size=(0.1, 0.2, 0.3), rotation=TURN), EACH[0])
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]) * (0.1, 0.2, -0.3)
    arm = (
        EACH[3],
        sy.Capsule(a=(0, 0, -0.2), b=(0, 0, 0.2), radius=0.1).moved(place),
        sy.ConvexHull(corners).moved(place),
    )
    assert list(found.shapes) == ["base", "arm"]
    assert all(map(alike, found.shapes["base"], base))
    assert not found.shapes["arm"][2].read  # no file was opened yet
    assert all(map(alike, found.shapes["arm"], arm))


BROKEN = """<collision><geometry><sphere radius="-1"/></geometry></collision>
  <collision><geometry><cylinder radius="1"/></geometry></collision>
  <collision><geometry><torus/></geometry></collision>
  <collision><origin xyz="0 0"/><geometry><sphere radius="1"/></geometry></collision><collision/>
  <collision><geometry><mesh filename="a.blend"/></geometry></collision>
  <collision><geometry><mesh/></geometry></collision>"""


def test_urdf_shapes_that_cannot_be_read_are_notes(tmp_path):
    found = robot(tmp_path, BROKEN, mesh=False)
    assert [len(shapes) for shapes in found.shapes.values()] == [2, 2]
    text = " ".join(found.notes)
    for told in ("'part.obj'", "not found", "radius", "length", "torus", "xyz of <origin>", "'a.blend'"):
        assert told in text


def test_urdf_without_trimesh(tmp_path, monkeypatch):
    monkeypatch.setattr("synovia.io.meshes._has", lambda package: False)
    found = robot(tmp_path)
    assert len(found.shapes["arm"]) == 2
    told = " ".join(found.notes)
    assert "needs trimesh: pip install" in told
    assert "[meshes]" in told
    assert "'part.obj'" in told


def test_urdf_shapes_as_pinocchio_has_them(tmp_path):
    pinocchio = pytest.importorskip("pinocchio")
    coal = pytest.importorskip("coal")
    pytest.importorskip("trimesh")
    found = robot(tmp_path)
    text = found.source.read_text()
    begin, end = text.index('<collision><origin xyz="1 2 3" rpy="0.3 -0.7 1.1"/>\n'), text.index("<capsule")
    end = text.index("</collision>", end) + len("</collision>")
    found.source.write_text(text[:begin] + text[end:])  # not all versions of its parser know capsules
    found = sy.load_skeleton(found.source)
    path = str(found.source)
    model = pinocchio.buildModelFromUrdf(path)
    theirs = pinocchio.buildGeomFromUrdf(model, path, pinocchio.GeometryType.COLLISION, package_dirs=[str(tmp_path)])
    shapes = [shape for link in ("base", "arm") for shape in found.shapes[link]]
    assert len(theirs.geometryObjects) == len(shapes)
    probe = coal.Sphere(0.01)
    for place in np.random.default_rng(3).normal(size=(20, 3)) * 6:
        spot = coal.Transform3s(np.eye(3), place)
        ours = sorted(sy.shapes.distance(shape, sy.Sphere(center=place, radius=0.01)).distance for shape in shapes)
        other = []
        for thing in theirs.geometryObjects:
            geometry = thing.geometry
            if hasattr(geometry, "buildConvexRepresentation"):
                geometry.buildConvexRepresentation(False)
                geometry = geometry.convex
            frame = coal.Transform3s(thing.placement.rotation, thing.placement.translation)
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            other.append(coal.distance(geometry, frame, probe, spot, request, result))
        np.testing.assert_allclose(ours, sorted(other), rtol=0, atol=1e-5)


MJCF = """<mujoco><compiler angle="radian"/>
  <default><default class="seen"><geom contype="0" conaffinity="0"/></default>
    <default class="ground"><geom contype="0" conaffinity="1"/></default></default>
  <asset><mesh name="part" scale="1 2 -3" vertex="0 0 0  0.1 0 0  0 0.1 0  0 0 0.1  0.01 0.01 0.01"/></asset>
  <worldbody><geom type="plane" size="1 1 1"/>
    <body name="a" pos="0 0 1"><freejoint/>
      <geom size="0.1" pos="1 2 3"/><geom class="seen" size="5"/>
      <geom type="capsule" size="0.1 0.2" pos="0.1 0.2 0.3" euler="0.3 -0.7 1.1"/>
      <geom type="cylinder" size="0.1 0.2" pos="0.1 0.2 0.3" euler="0.3 -0.7 1.1"/>
      <body name="b" pos="0 0 1"><joint name="j"/>
        <geom class="ground" type="box" size="0.1 0.2 0.3" pos="0.1 0.2 0.3" euler="0.3 -0.7 1.1"/></body>
      <body name="c" pos="0 0 2"><joint name="k" pos="0.1 0 0"/>
        <geom class="ground" type="ellipsoid" size="0.1 0.2 0.3" pos="0.1 0.2 0.3" euler="0.3 -0.7 1.1"/></body>
      <body name="d" pos="0 0 3"><joint name="l"/><geom type="mesh" mesh="part" euler="0.3 -0.7 1.1"/></body>
    </body></worldbody>
  <contact><exclude body1="a" body2="d"/></contact></mujoco>"""


def test_inspect_counts_shapes():
    arm = body(excluded_pairs=[("tool", "pedestal")])
    told = "shapes 7 on 3 links: 2 spheres, 2 capsules, 1 box, 1 cylinder, 1 hull, 1 excluded pair"
    assert told in model_report(arm, Clips([])).splitlines()
    found = model_report(arm, Clips([])).to_object()
    assert found["shapes"] == {"count": 7, "kinds": {"sphere": 2, "capsule": 2, "box": 1, "cylinder": 1, "hull": 1}}
    assert found["excluded_pairs"] == [["pedestal", "tool"]]


def test_mjcf_geoms(tmp_path):
    """Shapes are where MuJoCo has its geoms: as far from probes by its own distances."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text(MJCF)
    found = sy.load_skeleton(path)
    assert {name: [type(shape).__name__ for shape in shapes] for name, shapes in found.shapes.items()} == {
        "a": ["Sphere", "Capsule", "Cylinder"],
        "b": ["Box"],
        "c": ["Ellipsoid"],
        "d": ["ConvexHull"],
    }
    assert found.excluded_pairs == (("link:a", "link:d"), ("link:b", "link:c"))
    told = " ".join(found.notes)
    assert "planes" in told

    probes = np.random.default_rng(5).normal(size=(10, 3)) * 3
    for number, place in enumerate(probes):
        pose = found.random_pose(number)
        probe = f'<body><geom size="0.05" pos="{place[0]} {place[1]} {place[2]}"/></body></worldbody>'
        model = mujoco.MjModel.from_xml_string(MJCF.replace("</worldbody>", probe))
        data = mujoco.MjData(model)
        data.qpos[:] = sy.to_qpos(pose, model)
        mujoco.mj_forward(model, data)
        ball = sy.Sphere(center=place, radius=0.05)
        for name, shapes in found.shapes.items():
            body_id = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, str(name))
            geoms = [
                g
                for g in range(model.ngeom)
                if model.geom_bodyid[g] == body_id and model.geom_contype[g] | model.geom_conaffinity[g]
            ]
            for geom, shape in zip(geoms, shapes, strict=True):
                theirs = mujoco.mj_geomDistance(model, data, geom, model.ngeom - 1, 1e3, None)
                ours = sy.shapes.distance(shape, ball, transform_a=pose.transform(name)).distance
                assert ours == pytest.approx(theirs, abs=2e-5), (name, ours, theirs)


def test_mjcf_pairs_and_missing_meshes(tmp_path):
    pytest.importorskip("mujoco")
    text = MJCF.replace('vertex="0 0 0  0.1 0 0  0 0.1 0  0 0 0.1  0.01 0.01 0.01"', 'file="none.stl"')
    text = text.replace('class="seen" size="5"', 'class="seen" size="5" name="s"').replace(
        'type="box"', 'type="box" name="t"'
    )
    text = text.replace("<contact>", '<contact><pair geom1="s" geom2="t"/>')
    (tmp_path / "model.xml").write_text(text)
    with pytest.warns(UserWarning, match="none.stl"):
        found = sy.load_skeleton(tmp_path / "model.xml")
    assert "d" not in found.shapes
    assert len(found.shapes["a"]) == 4
    assert "mesh files are missing) of bodies 'd'" in " ".join(found.notes)


@pytest.mark.parametrize("name", sy.skeletons.bundled_names())
def test_capsules_contain_their_bones(name):
    found = sy.with_shapes(sy.bundled(name), "bones")
    for row, parent in enumerate(found.parents):
        end = found.joints[row].rest[:3, 3]
        if parent >= 0 and np.linalg.norm(end) > 2e-3 * found.size:
            for share in (0.0, 0.5, 1.0):
                point = sy.Sphere(center=share * end, radius=0.0)
                assert min(sy.shapes.distance(point, shape).distance for shape in found.joints[parent].shapes) < 0.0
    assert sy.with_shapes(found) is found


def test_capsules_grow_with_the_body():
    body = sy.bundled("humanoid")
    joints = []
    for joint, parent in zip(body.joints, body.parents, strict=True):
        rest = joint.rest.copy()
        rest[:3, 3] *= 3.0
        joints.append(replace(joint, parent=parent if parent >= 0 else None, rest=rest, com=3.0 * joint.com, shapes=()))
    large_body = body.with_joints(joints)
    small, large = sy.with_shapes(body, "bones").shapes, sy.with_shapes(large_body, "bones").shapes
    assert list(small) == list(large)
    for name, shapes in small.items():
        for a, b in zip(shapes, large[name], strict=True):
            assert b.radius == pytest.approx(3.0 * a.radius, rel=1e-12)


def test_bones_are_as_thick_as_those_of_an_adult():
    """The bundled person is 1.75 m tall: radii are those of the survey's circumferences, which the test repeats."""
    body = sy.with_shapes(sy.bundled("humanoid"), "bones")
    stature = 1.756  # men of the survey, metres
    circumferences = {"left_upper_arm": 0.358, "right_lower_arm": 0.310, "left_lower_leg": 0.392, "neck": 0.398}
    for name, around in circumferences.items():
        for shape in body.shapes[name]:
            assert shape.radius == pytest.approx(around / (2 * np.pi) / stature * 1.75, rel=0.15), name


def test_last_parts_without_ends_have_capsules():
    """A head and a hand that end a limb, without joints beyond and without masses, are neither missing nor balls."""
    body = sy.bundled("humanoid")
    ends = {"head": body.index("head"), "left_hand": body.index("left_hand")}
    below = {row for row, parent in enumerate(body.parents) if parent in ends.values()}
    joints = [
        replace(
            joint,
            com=np.zeros(3),
            mass=0.0,
            shapes=(),
            parent=None if body.parents[row] < 0 else body.joint_names[body.parents[row]],
        )
        for row, joint in enumerate(body.joints)
        if row not in below
    ]
    found = sy.with_shapes(body.with_joints(joints), "bones")
    place = found.rest_pose()
    head, hand = (found.shapes[name][0].moved(place.transform(name)) for name in ends)
    assert max(head.a[1], head.b[1]) > place.position("head")[1]  # upwards
    assert max(hand.a[0], hand.b[0]) > place.position("left_hand")[0] + 0.1  # outwards


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"nothing": []}, UnknownNameError),
        ({"tool": [sy.HalfSpace()]}, InputError),
        ({"tool": 3}, InputError),
        ({"base": [], "pedestal": []}, InputError),
        ([], InputError),
        ("skin", InputError),
        ("surface", InputError),
    ],
)
def test_shapes_set_by_hand_are_checked(given, error):
    with pytest.raises(error):
        sy.with_shapes(body(), given)


def test_shapes_set_by_hand():
    arm = sy.with_shapes(body(), {"forearm": EACH[0], "tool": [], "wrist": EACH[:2]})
    assert dict(arm.shapes) == {"pedestal": EACH, "forearm": EACH[:1], "wrist": EACH[:2]}


SRDF = """<?xml version="1.0"?><robot name="r">
  <group name="all"><chain base_link="base" tip_link="tip"/></group><group_state name="home" group="all"/>
  <end_effector name="e" parent_link="tip" group="all"/>
  <disable_collisions link1="fore" link2="base" reason="Adjacent"/>
  <disable_collisions link1="base" link2="fore" reason="Adjacent"/>
  <disable_collisions link1="base" link2="tip" reason="Never"/>
  <disable_collisions link1="base" link2="gone" reason="Never"/></robot>"""
LINKS = """<robot name="r"><link name="base"/><link name="fore"/><link name="tip"/>
  <joint name="a" type="continuous"><parent link="base"/><child link="fore"/></joint>
  <joint name="fore" type="continuous"><parent link="fore"/><child link="tip"/></joint></robot>"""


def excluded(skeleton) -> set[frozenset[int]]:
    """Return the excluded pairs as rows."""
    return {frozenset(map(skeleton.index, pair)) for pair in skeleton.excluded_pairs}


def test_srdf_beside_a_urdf(tmp_path):
    """Pairs of the file of the same name are excluded, by link where a joint has the same name; the rest is noted."""
    (tmp_path / "r.urdf").write_text(LINKS)
    assert sy.load_skeleton(tmp_path / "r.urdf").excluded_pairs == ()
    (tmp_path / "r.srdf").write_text(SRDF)
    with pytest.warns(UserWarning, match="'gone'"):
        arm = sy.load_skeleton(tmp_path / "r.urdf")
    base, fore, tip = (arm.index(f"link:{name}") for name in ("base", "fore", "tip"))
    assert excluded(arm) == {frozenset((base, fore)), frozenset((base, tip))}
    told = " ".join(arm.notes)
    assert "ignored: 1 group, 1 group state, 1 end effector" in told
    assert "'gone'" in told
    assert tmp_path / "r.srdf" in companions_of(tmp_path / "r.urdf")


def test_srdf_that_is_given(tmp_path):
    """It counts in place of the one beside the robot, and may disable links by default."""
    (tmp_path / "r.urdf").write_text(LINKS)
    (tmp_path / "r.srdf").write_text(SRDF)
    other = tmp_path / "other.srdf"
    other.write_text(
        '<robot name="r"><disable_default_collisions link="tip"/><disable_collisions link1="base" link2="fore"/>'
        '<enable_collisions link1="tip" link2="base"/></robot>'
    )
    arm = sy.load_skeleton(tmp_path / "r.urdf", srdf=other)
    base, fore, tip = (arm.index(f"link:{name}") for name in ("base", "fore", "tip"))
    assert excluded(arm) == {frozenset((fore, tip)), frozenset((base, fore))}
    assert not arm.notes
    found = run("inspect", tmp_path / "r.urdf", "--srdf", other, "--json").data["excluded_pairs"]
    assert {frozenset(pair) for pair in found} == {frozenset(pair) for pair in arm.excluded_pairs}
    with pytest.raises(sy.errors.FileError, match=r"none\.srdf"):
        sy.load_skeleton(tmp_path / "r.urdf", srdf=tmp_path / "none.srdf")
    sy.formats.write_skeleton(arm, tmp_path / "arm.toml")
    with pytest.raises(sy.errors.UnsupportedError, match="SRDF"):
        sy.load_skeleton(tmp_path / "arm.toml", srdf=other)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<robot", "no element|XML|unclosed|not well"),
        ("<srdf/>", "robot"),
        ('<robot><disable_collisions link1="base"/></robot>', "link2"),
    ],
)
def test_a_broken_srdf_beside_a_urdf_is_a_note(tmp_path, text, told):
    (tmp_path / "r.urdf").write_text(LINKS)
    (tmp_path / "r.srdf").write_text(text)
    with pytest.warns(UserWarning, match=told):
        arm = sy.load_skeleton(tmp_path / "r.urdf")
    assert arm.excluded_pairs == ()
    assert re.search(told, " ".join(arm.notes))
    with pytest.raises(FormatError, match=r"r\.srdf"):
        sy.load_skeleton(tmp_path / "r.urdf", srdf=tmp_path / "r.srdf")


def test_only_its_own_file_and_the_public_face_know_a_plain_kind_of_shape():
    """Readers, pictures, ground and covers ask the class, so that a new kind needs no branch of theirs."""
    package = Path(sy.__file__).parent
    plain = {kind.__name__ for kind in OF_BODIES.values() if kind.lengths()} - {
        "Sphere",
        "Capsule",
    }  # covers make these
    assert {"Box", "Cylinder"} <= plain
    found = {}
    for file in (*package.rglob("*.py"), package / "__init__.pyi"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("synovia.model.shapes.solids"):
                for name in plain & {each.name for each in node.names}:
                    found.setdefault(file.relative_to(package).as_posix(), []).append(name)
    assert list(found) == ["__init__.pyi"]


@pytest.mark.parametrize("kind", [kind for kind in OF_BODIES.values() if kind.lengths()])
def test_farthest_points_bound_a_shape_in_every_direction(kind):
    rng = np.random.default_rng(5)
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = Rotation.random(random_state=3).as_matrix(), (0.4, -1.0, 2.0)
    solid = kind.at(place, rng.uniform(0.2, 0.6, sum(kind.lengths().values())))
    directions = np.vstack([rng.normal(size=(200, 3)), np.eye(3), place[:3, :3].T])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    farthest = (solid.farthest(directions) @ directions.T).max(0)
    surface = np.vstack([vertices for vertices, _, _ in solid.triangles()])
    reach = (surface @ directions.T).max(0)
    assert (farthest >= reach - 1e-12).all(), "triangles are inside a round shape"
    assert (farthest <= reach + 0.03).all()
