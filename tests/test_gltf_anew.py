"""New glTF files: any skeleton at rest, its clip and its shapes, in metres with y up."""

import json
import struct

import numpy as np
import pytest

import synovia as sy
from synovia.errors import FileError
from synovia.io.gltf.fresh import file_frame, with_normals
from synovia.io.load import load_motions
from synovia.io.save import write_motion
from synovia.model import Joint, Kind
from synovia.model.geometry import quat_to_matrix, rigid

AXES = {"x": (1.0, 0.0, 0.0), "z": (0.0, 0.0, 1.0)}


def body(up="z", *, unit=0.01, forward="x", shapes=True):
    """A trunk with every kind of joint, in centimetres, with z up."""
    shape = {
        "shapes": (
            sy.Box(size=(4.0, 6.0, 8.0), center=(0.0, 1.0, 2.0)),
            sy.Capsule(a=(0, 0, 0), b=(0, 0, 9), radius=2.0),
        )
    }
    turned = rigid((3.0, -2.0, 10.0), quat_to_matrix(np.array([0.1, -0.3, 0.2, 0.9]) / np.sqrt(0.95)))
    return sy.Skeleton(
        [
            Joint("root", None, Kind.FREE, rigid((0.0, 0.0, 90.0)), **(shape if shapes else {})),
            Joint("hinge", 0, Kind.HINGE, turned, np.array(AXES["x"]), **(shape if shapes else {})),
            Joint("slide", 1, Kind.SLIDE, turned, np.array(AXES["z"])),
            Joint("ball", 1, Kind.BALL, turned),
            Joint("tip", 3, Kind.FIXED, rigid((0.0, 5.0, 20.0))),
        ],
        name="body",
        meters_per_unit=unit,
        up=up,
        forward=forward,
    )


def clip(skeleton, frames=4):
    rng = np.random.default_rng(3)
    q = np.array([skeleton.random_pose(k).q for k in range(frames)])
    q[:, :3] = 20.0 * rng.normal(size=(frames, 3))
    return sy.Motion(skeleton, q, 30.0, name="moves")


def content_of(path):
    data = path.read_bytes()
    if path.suffix == ".gltf":
        return json.loads(data)
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[20 : 20 + length])


@pytest.mark.parametrize("ending", ["glb", "gltf"])
@pytest.mark.parametrize(
    ("up", "unit", "forward"), [("z", 0.01, "x"), ("z", 1.0, None), ("x", 1.0, None), ("y", None, "z")]
)
def test_any_body_is_written_in_metres_with_y_up(tmp_path, ending, up, unit, forward):
    skeleton = body(up, unit=unit, forward=forward)
    motion, path = clip(skeleton), tmp_path / f"new.{ending}"
    said = write_motion(motion, path, verify=True)
    assert said == (
        [] if unit else ["The length unit of the skeleton is unknown: assumed to be m; unit= (--unit) sets another."]
    )
    frame, _ = file_frame(skeleton)
    (again,) = load_motions(path)
    framed = not np.array_equal(frame, np.eye(4))
    names = (*(["frame"] if framed else []), *skeleton.joint_names)
    assert again.skeleton.joint_names == names
    assert (again.skeleton.up, again.skeleton.meters_per_unit, again.name, again.fps) == ("y", 1.0, "moves", 30.0)
    expected = motion.positions() @ frame[:3, :3].T
    np.testing.assert_allclose(again.positions()[:, framed:], expected, atol=2e-6 * np.abs(expected).max())


def test_upward_and_forward_axes_become_those_of_the_format():
    frame, _ = file_frame(body(forward="x"))
    np.testing.assert_allclose(frame[:3, :3] @ (0.0, 0.0, 100.0), (0.0, 1.0, 0.0))
    np.testing.assert_allclose(frame[:3, :3] @ (100.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    np.testing.assert_allclose(np.linalg.det(frame[:3, :3]), 1e-6)


def test_shapes_become_one_mesh_that_is_skinned_to_the_joints(tmp_path):
    skeleton = body()
    path = tmp_path / "new.glb"
    sy.save_motion(clip(skeleton), path)
    content = content_of(path)
    assert content["skins"][0]["joints"] == [0, 1, 2, 3, 4]
    (node,) = (node for node in content["nodes"] if "mesh" in node)
    assert node["skin"] == 0
    from synovia.surface import surface_of

    surface = surface_of(path, sy.load_skeleton(path))
    places = np.concatenate([part.vertices for part in surface.parts])
    own = []
    for row, joint in enumerate(skeleton.joints):
        rest = np.eye(4)
        for each in (*([0] if row else []), *([1] if row > 1 else []), row):
            rest = rest @ skeleton.joints[each].rest
        own += [v @ rest[:3, :3].T + rest[:3, 3] for shape in joint.shapes for v, _, _ in shape.triangles()]
    expected = np.concatenate(own) @ file_frame(skeleton)[0][:3, :3].T
    for found, there in ((places.min(0), expected.min(0)), (places.max(0), expected.max(0))):
        np.testing.assert_allclose(found, there, atol=1e-5)
    path = tmp_path / "bare.glb"
    sy.save_motion(clip(body(shapes=False)), path)
    assert "meshes" not in content_of(path)


def test_normals_point_outwards_and_triangles_run_counterclockwise():
    for shape in (
        sy.Box(size=(1.0, 2.0, 3.0)),
        sy.Sphere(radius=2.0),
        sy.Capsule(a=(0, 0, 0), b=(0, 0, 1), radius=0.5),
    ):
        for vertices, faces, flat in shape.triangles():
            places, normals, turned = with_normals(vertices, faces, flat=flat)
            np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0)
            middle = vertices.mean(0)
            assert (np.einsum("ij,ij->i", normals, places - middle) > 0.0).all()
            corners = places[turned]
            across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            assert (np.einsum("ij,ij->i", across, corners.mean(1) - middle) > 0.0).all()
    flat = np.zeros((3, 3))
    np.testing.assert_allclose(with_normals(flat, np.array([[0, 1, 2]]), flat=True)[1], [(0.0, 0.0, 1.0)] * 3)


def test_a_second_clip_and_a_pose_go_into_a_new_file(tmp_path):
    skeleton = body()
    first, second = clip(skeleton), sy.Motion(skeleton, clip(skeleton).q[::-1], 30.0, name="back")
    sy.save_motion(first, tmp_path / "one.glb")
    sy.save_motion(second, tmp_path / "two.glb", into=tmp_path / "one.glb", verify=True)
    assert [each.name for each in load_motions(tmp_path / "two.glb")] == ["back", "moves"]
    own = load_motions(tmp_path / "one.glb")[0]  # of the skeleton with the frame above it
    sy.save_motion(own, tmp_path / "three.glb", verify=True)
    pose = first[1]
    sy.save_pose(pose, tmp_path / "pose.glb", verify=True)
    again = sy.load_pose(tmp_path / "pose.glb", skeleton)
    np.testing.assert_allclose(again.positions, pose.positions, atol=1e-9 * 100)


def test_several_roots_get_one_node_above_them(tmp_path):
    joints = [Joint("left", None, Kind.FREE, rigid()), Joint("right", None, Kind.FREE, rigid((1.0, 0.0, 0.0)))]
    skeleton = sy.Skeleton(joints, name="pair", meters_per_unit=1.0, up="y")
    sy.save_motion(
        sy.Motion(skeleton, [skeleton.random_pose(k).q for k in range(2)], 30.0), tmp_path / "a.glb", verify=True
    )
    assert len(content_of(tmp_path / "a.glb")["scenes"][0]["nodes"]) == 1


def test_a_body_of_another_format_is_no_file_to_copy(tmp_path):
    robot = tmp_path / "robot.urdf"
    robot.write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/><origin xyz="0 0 1"/></joint></robot>'
    )
    skeleton = sy.load_skeleton(robot)
    motion = sy.Motion(skeleton, [skeleton.random_pose(k).q for k in range(3)], 30.0)
    sy.save_motion(motion, tmp_path / "a.glb", into=robot, verify=True)
    sy.save_motion(motion, tmp_path / "b.glb", verify=True)
    assert content_of(tmp_path / "a.glb")["nodes"] == content_of(tmp_path / "b.glb")["nodes"]
    with pytest.raises(FileError, match="does not exist"):
        sy.save_motion(motion, tmp_path / "c.glb", into=tmp_path / "none.urdf")
