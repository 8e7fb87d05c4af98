"""The skin of an FBX character: as it is read, in pictures, and in a new glTF."""

import json
import struct
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import synovia as sy
from synovia.files.poses import write_pose
from synovia.io.fbx.document import block_of, read_document, set_property
from synovia.io.fbx.meshes import read_skin
from synovia.io.fbx.write import write_fbx
from synovia.io.gltf.skins import read_skin as read_gltf_skin
from synovia.io.nodes.skins import Material, Mesh, Skin
from synovia.io.save import write_motion
from synovia.surface import surface_of

pytest.importorskip("ufbx")
SQUARE = np.array([(-0.2, 0, 0), (0.2, 0, 0), (0.2, 1, 0), (-0.2, 1, 0), (0.2, 2, 0), (-0.2, 2, 0)], np.float64)
FACES = np.array([(0, 1, 2), (0, 2, 3), (3, 2, 4), (3, 4, 5)])


def png(colour=(255, 0, 0)):
    out = BytesIO()
    Image.new("RGB", (4, 4), colour).save(out, "PNG")
    return out.getvalue()


def body():
    """Return two bones, one above the other."""
    joints = [sy.Joint("low", kind=sy.Kind.FREE), sy.Joint("high", "low", sy.Kind.BALL, _at(0.0, 1.0, 0.0))]
    return sy.Skeleton(joints, name="bones", up="y", meters_per_unit=1.0)


def _at(*place):
    out = np.eye(4)
    out[:3, 3] = place
    return out


def clip(skeleton, frames=4):
    rng = np.random.default_rng(2)
    q = np.tile(skeleton.rest_q, (frames, 1))
    for row in range(len(skeleton)):
        at = skeleton.q_slice(row)
        quats = rng.normal(size=(frames, 4))
        q[:, at.stop - 4 : at.stop] = quats / np.linalg.norm(quats, axis=1, keepdims=True)
    q[:, :3] = rng.normal(size=(frames, 3))
    return sy.Motion(skeleton, q, 30.0, name="bends")


def skin_of(material, *, most=2):
    """Return a sheet along the bones; its middle hangs from both."""
    weights = np.array([(1.0, 0.0), (1.0, 0.0), (0.25, 0.75), (0.5, 0.5), (0.0, 1.0), (0.0, 1.0)])
    bones = np.tile((0, 1), (6, 1))
    if most > 2:  # the same bone several times
        bones, weights = np.tile(bones, (1, most // 2)), np.tile(weights, (1, most // 2)) * 2.0 / most
    mesh = Mesh(
        "sheet", SQUARE, FACES, [0, 1], np.array([np.eye(4), _at(0.0, -1.0, 0.0)]), bones, weights,
        np.tile((0.0, 0.0, 1.0), (6, 1)), SQUARE[:, :2] * 0.5 + (0.25, 0.0), None, [material, Material("plain")],
        np.array([0, 0, 0, 1]),
    )  # fmt: skip
    return Skin(("low", "high"), np.array([np.eye(4), _at(0.0, 1.0, 0.0)]), [mesh])


def hero(path, material=None, frames=4):
    """Write a character as FBX and return its motion."""
    motion = clip(body(), frames)
    write_fbx(motion, path, skin=skin_of(material or Material("red", (0.5, 0.1, 0.2, 0.5))))
    return motion


def content_of(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[20 : 20 + length])


def corners(surface, frames):
    """Return the places of the corners of all triangles, in any order."""
    places = [part.placed(frames)[part.faces].reshape(-1, 3) for part in surface.parts]
    every = np.concatenate(places)
    return every[np.lexsort((np.round(every, 3) + 0.0).T)]


def test_new_glb_wears_the_skin(tmp_path):
    hero(tmp_path / "hero.fbx")
    motion = sy.load_motion(tmp_path / "hero.fbx")
    assert write_motion(motion, tmp_path / "hero.glb", verify=True) == []
    back = sy.load_motion(tmp_path / "hero.glb")
    fbx, glb = (surface_of(tmp_path / f"hero.{end}", each.skeleton) for end, each in (("fbx", motion), ("glb", back)))
    assert not fbx.notes
    assert not glb.notes
    for own, seen in zip(motion.frames(), back.frames(), strict=True):
        assert np.abs(corners(fbx, own) - corners(glb, seen)).max() <= 3e-5


def test_materials_images_and_weights_go_along(tmp_path):
    hero(tmp_path / "hero.fbx", Material("paint", (1.0, 1.0, 1.0, 1.0), png(), "paint.png"))
    skin = read_skin(tmp_path / "hero.fbx")
    (mesh,) = skin.meshes
    assert mesh.materials[0].image == png()
    assert np.allclose(np.sort(mesh.corners, axis=0), np.sort(SQUARE[:, :2] * 0.5 + (0.25, 0.0), axis=0), atol=1e-6)
    sy.save_motion(sy.load_motion(tmp_path / "hero.fbx"), tmp_path / "hero.glb")
    again = read_gltf_skin(tmp_path / "hero.glb")
    (copy,) = again.meshes
    assert [(one.name, one.image, one.colour) for one in copy.materials] == [
        (one.name, one.image, one.colour) for one in mesh.materials
    ]
    content = content_of(tmp_path / "hero.glb")
    assert content["images"][0]["mimeType"] == "image/png"
    assert len(content["meshes"][0]["primitives"]) == 2
    order = [np.unique(np.round(each.vertices, 4) + 0.0, axis=0, return_index=True)[1] for each in (mesh, copy)]
    names = [
        [
            {
                each_skin.names[each.rows[b]]: round(float(w), 5)
                for b, w in zip(each.bones[k], each.weights[k], strict=True)
                if w
            }
            for k in way
        ]
        for each_skin, each, way in zip((skin, again), (mesh, copy), order, strict=True)
    ]
    assert names[0] == names[1]
    assert np.allclose(mesh.normals[order[0]], copy.normals[order[1]], atol=1e-6)
    assert np.allclose(mesh.corners[order[0]], copy.corners[order[1]], atol=1e-6)


def test_images_beside_the_file_are_found_and_missing_ones_are_told(tmp_path):
    hero(tmp_path / "hero.fbx", Material("paint", (1.0, 1.0, 1.0, 1.0), png(), "paint.png"))
    document = read_document(tmp_path / "hero.fbx")
    for _, record in document.of("Video"):
        record.below = [each for each in record.below if each.name != "Content"]
    (tmp_path / "hero.fbx").write_bytes(document.pack())
    motion = sy.load_motion(tmp_path / "hero.fbx")
    (said,) = write_motion(motion, tmp_path / "none.glb")
    assert said == "Skin: 1 mesh written without the image 'paint.png', which was not found."
    (tmp_path / "textures").mkdir()
    (tmp_path / "textures" / "paint.png").write_bytes(png((0, 255, 0)))
    assert write_motion(motion, tmp_path / "found.glb") == []
    assert read_gltf_skin(tmp_path / "found.glb").meshes[0].materials[0].image == png((0, 255, 0))
    (tmp_path / "textures" / "paint.png").write_bytes(b"BM no such kind")
    (said,) = write_motion(motion, tmp_path / "other.glb")
    assert said == "The image 'paint.png' is neither PNG nor JPEG: left out."


def test_many_weights_are_kept_in_further_sets(tmp_path):
    rng = np.random.default_rng(0)
    joints = [sy.Joint("b0", kind=sy.Kind.FREE)]
    joints += [sy.Joint(f"b{k}", f"b{k - 1}", sy.Kind.BALL, _at(0.0, 0.3, 0.0)) for k in range(1, 6)]
    skeleton = sy.Skeleton(joints, up="y", meters_per_unit=1.0)
    worlds = np.array([_at(0.0, 0.3 * k, 0.0) for k in range(6)])
    weights = rng.uniform(0.1, 1.0, (6, 6))
    mesh = Mesh("sheet", SQUARE, FACES, list(range(6)), np.linalg.inv(worlds), np.tile(np.arange(6), (6, 1)), weights,
                materials=[Material("plain")], material=np.zeros(4, np.int64))  # fmt: skip
    motion = sy.Motion(skeleton, [skeleton.rest_q], 30.0)
    write_fbx(motion, tmp_path / "many.fbx", skin=Skin(skeleton.joint_names, worlds, [mesh]))
    (said,) = write_motion(sy.load_motion(tmp_path / "many.fbx"), tmp_path / "many.glb")
    assert said == "Some vertices have more than 4 joints; some programs use only 4."
    (copy,) = read_gltf_skin(tmp_path / "many.glb").meshes
    assert (copy.weights > 0.0).sum(axis=1).tolist() == [6] * 6
    assert np.allclose(copy.weights.sum(axis=1), 1.0, atol=1e-6)


def test_blend_shapes_become_morph_targets(tmp_path):
    hero(tmp_path / "hero.fbx")
    document = read_document(tmp_path / "hero.fbx")
    (_, geometry), *_ = document.of("Geometry")
    blend = document.add("Deformer", "face", "Deformer", "BlendShape")
    document.link(blend, geometry)
    channel = document.add("Deformer", "smile", "SubDeformer", "BlendShapeChannel")
    channel.add("DeformPercent", 25.0)
    channel.add("FullWeights", np.array([100.0]))
    set_property(block_of(channel), "DeformPercent", "Number", 25.0)
    document.link(channel, blend)
    shape = document.add("Geometry", "smile", "Geometry", "Shape")
    shape.add("Version", 100)
    shape.add("Indexes", np.array([4, 5], np.int32))
    shape.add("Vertices", np.array([0.0, 50.0, 0.0, 0.0, 50.0, 0.0]))  # centimetres
    document.link(shape, channel)
    (tmp_path / "hero.fbx").write_bytes(document.pack())
    (morph,) = read_skin(tmp_path / "hero.fbx").meshes[0].morphs
    assert (morph.name, morph.weight) == ("smile", 0.25)
    motion = sy.load_motion(tmp_path / "hero.fbx")
    assert write_motion(motion, tmp_path / "hero.glb") == []
    content = content_of(tmp_path / "hero.glb")
    (mesh,) = content["meshes"]
    assert mesh["extras"] == {"targetNames": ["smile"]}
    assert mesh["weights"] == [0.25]
    target = content["accessors"][mesh["primitives"][0]["targets"][0]["POSITION"]]
    assert np.allclose(target["max"], (0.0, 0.5, 0.0), atol=1e-6)
    glb = sy.load_motion(tmp_path / "hero.glb")
    (said,) = write_motion(glb, tmp_path / "again.fbx")
    assert said == "Skin: 1 mesh written without morph targets."
    assert surface_of(tmp_path / "hero.fbx", motion.skeleton).notes == ("1 mesh shown without morph targets",)


def test_pose_and_model_at_rest_wear_the_skin(tmp_path, monkeypatch):
    from synovia.cli import main

    hero(tmp_path / "hero.fbx")
    skeleton = sy.load_skeleton(tmp_path / "hero.fbx")
    assert write_pose(skeleton.random_pose(1), tmp_path / "pose.glb", verify=True) == []
    assert read_gltf_skin(tmp_path / "pose.glb").meshes
    document = read_document(tmp_path / "hero.fbx")
    for number, record in document.of("AnimationStack"):
        document.objects.below.remove(record)
        document.by_id.pop(number)
    (tmp_path / "still.fbx").write_bytes(document.pack())
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "still.fbx", "-o", "still.glb", "--verify"]) == 0
    assert read_gltf_skin(tmp_path / "still.glb").meshes
