"""Surfaces in pictures: what each sample sees against brute force, the bundled bodies, textures, and the looks."""

import json
import struct
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import synovia as sy
from cli_runs import run
from synovia.draw.camera import Camera, fit, look
from synovia.draw.picture import appearance
from synovia.draw.surfaces import Mesh, Shadow, normals_of
from synovia.draw.theme import THEMES
from synovia.draw.triangles import depths_of, hits_of
from synovia.errors import UnknownNameError
from synovia.model.angles import named_angles, value_text
from synovia.model.geometry import rigid
from synovia.surface import surface_of_skeleton

SMALL = (160, 120)
BUNDLED = ("arm7", "humanoid", "humanoid_hands", "quadruped")


def pixels(pose, **options) -> np.ndarray:
    return np.asarray(sy.picture(pose, size=SMALL, **options), int)


# --- triangles ------------------------------------------------------------------------------------------------------


def triangles_on_rays(vertices, faces, camera, size):
    """Number and depth of all triangles that each sample's ray goes through, by brute force."""
    found = {}
    for at in range(size[0] * size[1]):
        x, y = at % size[0] + 0.5, at // size[0] + 0.5
        near, far = (camera.points_at(np.array([x]), np.array([y]), np.array([d]))[0] for d in (1.0, 2.0))
        way = far - near
        found[at] = []
        for number, (a, b, c) in enumerate(vertices[faces]):
            system = np.column_stack([b - a, c - a, -way])
            if abs(np.linalg.det(system)) < 1e-12:
                continue
            u, v, t = np.linalg.solve(system, near - a)
            if min(u, v, 1.0 - u - v) >= 0.0 and 1.0 + t > 0.0:
                found[at].append((number, 1.0 + t))
    return found


def random_triangles(perspective):
    random = np.random.default_rng(5)
    vertices = random.normal(size=(60, 3))
    faces = random.integers(0, 60, (16, 3))
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
    return (
        vertices,
        faces,
        fit(look((30, 20), "y", "z"), vertices, np.zeros(60), (1, 1, 23, 17), perspective=perspective),
    )


@pytest.mark.parametrize("perspective", [True, False])
def test_each_sample_sees_the_nearest_triangle_of_a_ray(perspective: bool) -> None:
    vertices, faces, camera = random_triangles(perspective)
    hits = hits_of(vertices, faces, camera, (24, 18))
    seen = dict(zip(hits.at.tolist(), zip(hits.faces.tolist(), hits.depth.tolist(), strict=True), strict=True))
    agree = 0
    for at, some in triangles_on_rays(vertices, faces, camera, (24, 18)).items():
        best, found = min(some, key=lambda one: one[1], default=None), seen.get(at)
        if best is None or found is None:
            agree += best is None and found is None
        else:
            agree += found[0] == best[0] and abs(found[1] - best[1]) < 1e-6 * best[1]
    assert agree >= 24 * 18 - 2  # a ray through an edge may go either way


def test_depths_are_those_of_the_nearest_and_of_the_farthest_triangle_of_a_ray() -> None:
    vertices, faces, camera = random_triangles(perspective=False)
    nearest, farthest = (
        depths_of(vertices, faces, camera, (24, 18), farthest=far).reshape(-1) for far in (False, True)
    )
    agree = 0
    for at, some in triangles_on_rays(vertices, faces, camera, (24, 18)).items():
        depths = [depth for _, depth in some]
        expected = min(depths, default=np.inf), max(depths, default=-np.inf)
        agree += np.allclose((nearest[at], farthest[at]), expected, rtol=1e-5)
    assert agree >= 24 * 18 - 2
    assert np.all(depths_of(vertices, faces[:0], camera, (24, 18)) == np.inf)
    assert np.all(depths_of(vertices, faces[:0], camera, (24, 18), farthest=True) == -np.inf)


def test_triangles_that_share_edges_cover_each_sample_once() -> None:
    """A grid with level, upright and slanted edges, some of them through the middles of samples."""
    n = 9
    places = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), axis=-1).reshape(-1, 2) * 1.25
    vertices = np.column_stack([places, np.zeros(n * n)])
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).reshape(-1)
    faces = np.concatenate([np.stack([corner, corner + 1, corner + n], 1),
                            np.stack([corner + n + 1, corner + n, corner + 1], 1)])  # fmt: skip
    camera = Camera(np.array([0.0, 0.0, 5.0]), np.eye(3), 4.0, (0.0, 40.0), perspective=False, nearest=1e-9)
    whole = hits_of(vertices, faces, camera, (40, 40))
    assert len(whole.at) == 40 * 40
    alone = [hits_of(vertices, faces[k : k + 1], camera, (40, 40)).at for k in range(len(faces))]
    assert np.array_equal(np.sort(np.concatenate(alone)), np.arange(40 * 40))


def test_shares_are_the_place_on_the_triangle() -> None:
    vertices = np.array([(0.0, 0, 0), (2, 0, -3), (0, 2, 1)])
    camera = Camera(np.array([0.5, 0.5, 8.0]), np.eye(3), 100.0, (50.0, 50.0))
    hits = hits_of(vertices, np.array([(0, 1, 2)]), camera, (100, 100))
    places = hits.shares @ vertices
    at, depth, _ = camera.project(places)
    np.testing.assert_allclose(at, np.stack([hits.at % 100 + 0.5, hits.at // 100 + 0.5], 1), atol=1e-3)
    np.testing.assert_allclose(depth, hits.depth, rtol=1e-5)


def test_a_plate_throws_its_shadow_below_it_and_on_what_is_below() -> None:
    plate = np.array([(-1.0, 1, -1), (1, 1, -1), (1, 1, 1), (-1, 1, 1)])
    faces = np.array([(0, 2, 1), (0, 3, 2)])
    mesh = Mesh(plate, normals_of(plate, faces).astype(np.float32), faces, np.ones((4, 3), np.float32))
    shadow = Shadow(mesh, np.array([0.0, 1, 0]), np.array([0.0, 1, 0]), (400, 300))
    points = np.array([(0.0, 0, 0), (0.5, 0, -0.5), (3, 0, 0), (0, 1.2, 0)])
    np.testing.assert_allclose(shadow.lit(points), (0, 0, 1, 1))
    dark = shadow.on_floor(points[:3], 0.5, 0.02, 0.3)
    assert dark[0] > 0.9
    assert dark[1] > 0.9
    assert dark[2] < 0.01


# --- bundled bodies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_bodies_have_a_closed_surface_around_their_bones(name: str) -> None:
    skeleton = sy.bundled(name)
    surface = surface_of_skeleton(skeleton)
    assert surface.parts
    assert not surface.notes
    assert sum(len(part.faces) for part in surface.parts) < 30_000
    frames = skeleton.rest_pose().frames
    for part in surface.parts:
        edges = np.sort(part.faces[:, [(0, 1), (1, 2), (2, 0)]].reshape(-1, 2), axis=1)
        _, count = np.unique(edges, axis=0, return_counts=True)
        assert (count % 2 == 0).all()
        a, b, c = (part.vertices[part.faces[:, k]] for k in range(3))
        assert np.einsum("fi,fi->", a, np.cross(b, c)) > 0.0  # the volume is positive: triangles face outwards
        np.testing.assert_allclose(part.weights.sum(axis=1), 1.0, atol=1e-9)
    shown = np.concatenate([part.placed(frames) for part in surface.parts])
    size = np.ptp(skeleton.rest_pose().positions, axis=0).max()
    assert (shown.min(0) < skeleton.rest_pose().positions.min(0) + 0.02 * size).all()
    assert (shown.max(0) > skeleton.rest_pose().positions.max(0) - 0.02 * size).all()


@pytest.mark.parametrize("name", BUNDLED)
def test_the_file_of_a_surface_has_the_joints_of_its_model(name: str) -> None:
    model = sy.bundled(name)
    assert model.source is not None
    body = sy.load_skeleton(model.source.with_suffix(".glb"))
    rows = {joint: row for row, joint in enumerate(body.joint_names)}
    for row, joint in enumerate(model.joint_names):
        own = body.joints[rows[joint]]
        np.testing.assert_allclose(own.rest, model.joints[row].rest, atol=1e-6)
        above = model.parents[row]
        assert above < 0 or body.joint_names[body.parents[rows[joint]]] == model.joint_names[above]


def test_the_surface_follows_the_joints_of_a_skeleton_with_another_root() -> None:
    body = sy.bundled("humanoid")
    bent = body.rest_pose().with_values({"left_lower_arm": 2.0})
    moved = np.concatenate([part.placed(bent.frames) for part in surface_of_skeleton(body).parts])
    free = sy.bundled("arm7").with_root("free")
    assert len(free) > len(sy.bundled("arm7"))
    own = surface_of_skeleton(free)
    fixed = surface_of_skeleton(sy.bundled("arm7"))
    for one, other in zip(own.parts, fixed.parts, strict=True):
        placed = one.placed(free.rest_pose().frames)
        np.testing.assert_allclose(placed, other.placed(sy.bundled("arm7").rest_pose().frames), atol=1e-9)
    rest = np.concatenate([part.placed(body.rest_pose().frames) for part in surface_of_skeleton(body).parts])
    far = np.linalg.norm(moved - rest, axis=1)
    left_hand = rest[:, 0] > 0.75
    assert far[left_hand].min() > 0.2
    assert far[rest[:, 0] < 0.2].max() < 1e-9


def test_a_clip_of_a_bundled_body_in_another_format_has_its_surface(tmp_path) -> None:
    body = sy.bundled("humanoid")
    motion = sy.Motion(body, np.tile(body.rest_q, (2, 1)), 30.0)
    sy.save_motion(motion, tmp_path / "a.bvh")
    again = sy.load_motion(tmp_path / "a.bvh").skeleton
    assert surface_of_skeleton(again).parts
    chain = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    assert not surface_of_skeleton(chain).parts
    taller = body.with_joints(
        [replace(j, rest=rigid(1.1 * j.rest[:3, 3])) if j.name == "left_hand" else j for j in body.joints]
    )
    sy.save_motion(sy.Motion(taller, motion.q, 30.0), tmp_path / "b.bvh")
    assert not surface_of_skeleton(sy.load_motion(tmp_path / "b.bvh").skeleton).parts


@pytest.mark.parametrize("name", BUNDLED)
def test_a_clip_of_a_bundled_body_is_written_into_its_glb(name: str, tmp_path) -> None:
    body = sy.bundled(name)
    motion = sy.Motion(body, np.array([body.random_pose(k).q for k in range(4)]), 30.0, name="wild")
    sy.save_motion(motion, tmp_path / "wild.glb")
    again = sy.load_motion(tmp_path / "wild.glb")
    assert again.name == "wild"
    rows = [again.skeleton.joint_names.index(joint) for joint in body.joint_names]
    np.testing.assert_allclose(again.positions()[:, rows], motion.positions(), atol=1e-5)
    assert surface_of_skeleton(again.skeleton).parts


def test_a_clip_without_a_surface_wears_the_body_with_its_fingers(tmp_path) -> None:
    for name, fingers in (("humanoid", False), ("humanoid_hands", True)):
        body = sy.bundled(name)
        sy.save_motion(sy.Motion(body, np.array([body.rest_q] * 2), 30.0), tmp_path / f"{name}.bvh")
        skeleton = sy.load_motion(tmp_path / f"{name}.bvh").skeleton
        moved = {skeleton.joint_names[row] for part in surface_of_skeleton(skeleton).parts for row in part.rows}
        assert "left_hand" in moved
        assert ("left_index_2" in moved) is fingers


# --- looks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUNDLED)
def test_looks_differ_and_repeat(name: str) -> None:
    pose = sy.bundled(name).rest_pose()
    images = {shown: pixels(pose, look=shown) for shown in ("surface", "bones", "both")}
    assert (images["surface"] == pixels(pose)).all()
    for one, other in (("surface", "bones"), ("surface", "both"), ("bones", "both")):
        assert np.mean(np.abs(images[one] - images[other]).max(-1) > 24) > 0.005
    with pytest.raises(UnknownNameError, match="look"):
        pixels(pose, look="skin")


def test_a_body_without_a_surface_shows_its_bones_in_every_look() -> None:
    chain = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.5, 2, 0)])
    assert not appearance([chain], THEMES["light"], look="surface").skins
    assert (pixels(chain) == pixels(chain, look="bones")).all()


ROBOT = """<robot name="r"><link name="a"><visual><geometry><box size="0.2 0.2 0.2"/></geometry>
<material name="m"><color rgba="0.9 0.1 0.1 1"/></material></visual></link>
<link name="b"><visual><geometry>{shape}</geometry></visual></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def test_bones_show_where_meshes_are_missing(tmp_path) -> None:
    for name, shape in (("whole", '<sphere radius="0.1"/>'), ("part", '<mesh filename="gone.stl"/>')):
        (tmp_path / f"{name}.urdf").write_text(ROBOT.format(shape=shape))
    whole, part = (sy.load_skeleton(tmp_path / f"{name}.urdf") for name in ("whole", "part"))
    (skin,) = appearance([whole], THEMES["light"], look="surface").skins.values()
    assert skin.whole
    with pytest.warns(UserWarning, match=r"part\.urdf: some meshes are not shown: gone\.stl"):
        (skin,) = appearance([part], THEMES["light"], look="surface").skins.values()
    assert not skin.whole
    with pytest.warns(UserWarning, match=r"gone\.stl"):
        image = pixels(part, floor=False)
    red = (image[..., 0] > 110) & (image[..., 1] < 90)
    assert red.sum() > 50
    body = np.abs(image - image[:, :1]).max(-1) > 30  # not the background, which is the same in each row
    assert np.ptp(np.flatnonzero(body.any(1))) > 2 * np.ptp(np.flatnonzero(red.any(1)))


def textured(path, colours: bool) -> None:
    """Write a square plate: its left half red and its right half green, by a texture or by colours of vertices."""
    square = np.array([(-1, 0, 0), (0, 0, 0), (1, 0, 0), (-1, 2, 0), (0, 2, 0), (1, 2, 0)], "<f4")
    if colours:  # the middle twice, once in each colour
        square = square[[0, 1, 1, 2, 3, 4, 4, 5]]
        faces = np.array([0, 1, 5, 0, 5, 4, 2, 3, 7, 2, 7, 6], "<u2")
        paint = np.array([(1, 0, 0)] * 2 + [(0, 1, 0)] * 2 + [(1, 0, 0)] * 2 + [(0, 1, 0)] * 2, "<f4")
        image = b""
    else:
        faces = np.array([0, 1, 4, 0, 4, 3, 1, 2, 5, 1, 5, 4], "<u2")
        paint = np.stack([(square[:, 0] + 1) / 2, 1 - square[:, 1] / 2], axis=1).astype("<f4")
        out = BytesIO()
        Image.fromarray(np.array([[(255, 0, 0)] * 8 + [(0, 255, 0)] * 8] * 4, np.uint8)).save(out, "PNG")
        image = out.getvalue() + bytes(-len(out.getvalue()) % 4)
    parts = [square.tobytes(), faces.tobytes(), paint.tobytes(), image]
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    views = [{"buffer": 0, "byteOffset": s, "byteLength": len(p)} for s, p in zip(starts, parts, strict=False) if p]
    attributes = {"POSITION": 0, "COLOR_0" if colours else "TEXCOORD_0": 2}
    document = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": "plate", "mesh": 0}],
        "meshes": [{"primitives": [{"attributes": attributes, "indices": 1, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": {} if colours else {"baseColorTexture": {"index": 0}}}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": len(square), "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": len(faces), "type": "SCALAR"},
            {"bufferView": 2, "componentType": 5126, "count": len(square), "type": "VEC3" if colours else "VEC2"},
        ],
        "bufferViews": views,
        "buffers": [{"byteLength": starts[-1]}],
    }
    if image:
        document |= {"textures": [{"source": 0}], "images": [{"bufferView": 3, "mimeType": "image/png"}]}
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    body = b"".join(parts)
    head = struct.pack("<4sIIII", b"glTF", 2, 28 + len(text) + len(body), len(text), 0x4E4F534A)
    path.write_bytes(head + text + struct.pack("<II", len(body), 0x004E4942) + body)


@pytest.mark.parametrize("colours", [True, False])
def test_textures_and_colours_of_vertices_are_on_their_side(tmp_path, colours: bool) -> None:
    textured(tmp_path / "plate.glb", colours)
    image = pixels(sy.load_skeleton(tmp_path / "plate.glb"), view="front", floor=False)
    red = (image[..., 0] > 90) & (image[..., 1] < 90)
    green = (image[..., 1] > 90) & (image[..., 0] < 90)
    assert red.sum() > 1000
    assert green.sum() > 1000
    assert np.flatnonzero(red.any(0)).max() <= np.flatnonzero(green.any(0)).min() + 2


# --- captions -------------------------------------------------------------------------------------------------------


def test_angles_are_those_of_the_limits() -> None:
    body = sy.bundled("humanoid")
    row = body.index("left_upper_leg")
    limit = body.joints[row].limit
    frame = sy.Rotation.from_matrix(limit.frame)
    swing = sy.Rotation.from_rotvec((np.radians(-40.0), np.radians(12.0), 0.0))
    local = frame * swing * sy.Rotation.from_rotvec((0.0, 0.0, np.radians(9.0))) * frame.inv()
    pose = body.rest_pose().with_values({"left_upper_leg": local.as_quat(), "left_lower_leg": np.radians(30.0)})
    assert named_angles(pose, row) == pytest.approx({"swing x": -40.0, "swing y": 12.0, "twist": 9.0})
    assert value_text(pose, row) == "swing x -40.0°, swing y 12.0°, twist 9.0°"
    assert value_text(pose, body.index("left_lower_leg")) == "30.0°"
    turned = body.rest_pose().with_values({"hips": [0, 1, 0, *sy.Rotation.from_rotvec((0, 0, -0.5)).as_quat()]})
    assert named_angles(turned, 0) == pytest.approx({"x": 0.0, "y": 0.0, "z": np.degrees(-0.5)})
    assert "-0.0" not in value_text(body.rest_pose(), row)


def test_captions_and_angles_are_written(tmp_path) -> None:
    body = sy.bundled("arm7")
    motion = sy.Motion(body, np.tile(body.rest_q, (2, 1)), 30.0, name="still")
    for name, options in (
        ("plain", {"captions": False}),
        ("time", {}),
        ("angles", {"captions": False, "angles": ["joint2"]}),
    ):
        sy.render(motion, tmp_path / f"{name}.png", size=(200, 150), **options)
    plain, time, angles = (
        np.asarray(Image.open(tmp_path / f"{name}.png").convert("L"), int)[:, :200]
        for name in ("plain", "time", "angles")
    )
    rows, columns = np.nonzero(plain != time)
    assert rows.min() > 110
    assert columns.max() < 110
    rows, columns = np.nonzero(plain != angles)
    assert rows.max() < 50
    assert columns.min() > 60
    with pytest.raises(UnknownNameError, match="joint9"):
        sy.render(motion, tmp_path / "no.png", angles=["joint9"])


@pytest.mark.slow
def test_command_line_takes_a_look(tmp_path) -> None:
    target = ("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--picture")
    assert run(*target, tmp_path / "a.png").code == 0
    assert run(*target, tmp_path / "b.png", "--look", "bones").code == 0
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()
    assert run(*target, tmp_path / "c.png", "--look", "skin").code == 2
    assert "swing x" in run("solve", "humanoid", "-t", "left_hand=0.5,1.2,0.3").out


@pytest.mark.parametrize("kind", ["KHR_draco_mesh_compression", "EXT_meshopt_compression"])
def test_meshes_that_are_not_drawn_are_told(tmp_path, kind) -> None:
    """Compressed meshes, morph targets and instances: by the surface, which the page shows, and by each picture."""
    primitive = {"attributes": {"POSITION": 0, "JOINTS_0": 1, "WEIGHTS_0": 2}}
    view = {"buffer": 0, "byteLength": 100}
    if kind.startswith("KHR"):
        primitive["extensions"] = {kind: {"bufferView": 0, "attributes": {"POSITION": 0}}}
    else:
        view = {"buffer": 1, "byteLength": 100, "extensions": {kind: {"buffer": 0, "byteLength": 50}}}
    content = {
        "asset": {"version": "2.0"}, "extensionsRequired": [kind], "scenes": [{"nodes": [0]}],
        "nodes": [
            {"name": "a", "children": [1], "mesh": 0, "skin": 0, "extensions": {"EXT_mesh_gpu_instancing": {}}},
            {"name": "b", "translation": [0, 1, 0]},
        ],
        "skins": [{"joints": [0, 1]}], "meshes": [{"primitives": [primitive], "weights": [0.5]}],
        "accessors": [
            {"bufferView": 0, "componentType": component, "count": 3, "type": type_}
            for component, type_ in ((5126, "VEC3"), (5121, "VEC4"), (5126, "VEC4"))
        ],
        "bufferViews": [view],
        "buffers": [
            {"byteLength": 9, "uri": "data:;base64,AAAAAAAAAAAA"},
            {"byteLength": 100, "extensions": {kind: {"fallback": True}}},
        ],
    }  # fmt: skip
    (tmp_path / "packed.gltf").write_text(json.dumps(content), encoding="utf-8")
    body = sy.load_skeleton(tmp_path / "packed.gltf")
    with pytest.warns(UserWarning, match=r"packed\.gltf: ") as told:
        pixels(body)
    text = " ".join(str(one.message) for one in told)
    assert "compress" in text
    if kind.startswith("KHR"):
        assert "shown without morph targets" in text
        assert "shown once, without further instances" in text
