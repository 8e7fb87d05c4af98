"""Clips open again: what is written, every verb reads, also with a root that the model has not."""

import json
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.clips import find_ends, find_shared_ends
from synovia.io.load import load_clips

pytest.importorskip("matplotlib")  # `synovia plot` is one of the verbs
pytestmark = pytest.mark.compiled

WALK = "examples/walk.bvh"
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def robot_urdf():
    """A made-up robot with legs and arms of hinges, and no free joint."""
    links, joints = ["pelvis"], []

    def joint(name, parent, place, axis):
        child = name.removesuffix("_joint") + "_link"
        links.append(child)
        joints.append(
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{place}"/><axis xyz="{AXES[axis]}"/>'
            '<limit lower="-2.6" upper="2.6" effort="1" velocity="9"/></joint>'
        )
        return child

    chest = joint("waist_yaw_joint", "pelvis", "0 0 0.1", "z")
    joint("head_yaw_joint", chest, "0 0 0.4", "z")
    for side, sign in (("left", 1), ("right", -1)):
        at = "pelvis"
        for part, place, axis in (
            ("hip_pitch", f"0 {sign * 0.1} 0", "y"), ("hip_roll", "0 0 0", "x"), ("hip_yaw", "0 0 0", "z"),
            ("knee", "0 0 -0.35", "y"), ("ankle_pitch", "0 0 -0.35", "y"), ("ankle_roll", "0 0 0", "x"),
        ):  # fmt: skip
            at = joint(f"{side}_{part}_joint", at, place, axis)
        at = chest
        for part, place, axis in (
            ("shoulder_pitch", f"0 {sign * 0.18} 0.3", "y"), ("shoulder_roll", "0 0 0", "x"),
            ("shoulder_yaw", "0 0 0", "z"), ("elbow", "0 0 -0.25", "y"), ("wrist_roll", "0 0 -0.22", "x"),
        ):  # fmt: skip
            at = joint(f"{side}_{part}_joint", at, place, axis)
    return "\n".join(['<robot name="made">', *(f'<link name="{link}"/>' for link in links), *joints, "</robot>"])


def body_gltf():
    """The bundled humanoid as nodes of a glTF, with a clip of its own."""
    import base64

    body = sy.bundled("humanoid")
    nodes = []
    for row, joint in enumerate(body.joints):
        turn = sy.Rotation.from_matrix(joint.rest[:3, :3]).as_quat()
        node = {"name": joint.name, "translation": joint.rest[:3, 3].tolist(), "rotation": turn.tolist()}
        children = [child for child in range(len(body)) if body.parents[child] == row]
        nodes.append(node | ({"children": children} if children else {}))
    data = np.array([0.0, 0.5], "<f4").tobytes() + np.array([[0, 0, 0, 1], [0, 0.1, 0, 0.995]], "<f4").tobytes()
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    return {
        "asset": {"version": "2.0"},
        "nodes": nodes,
        "scenes": [{"nodes": [0]}],
        "buffers": [{"byteLength": len(data), "uri": uri}],
        "bufferViews": [{"buffer": 0, "byteLength": 8}, {"buffer": 0, "byteOffset": 8, "byteLength": 32}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 2, "type": "SCALAR", "min": [0.0], "max": [0.5]},
            {"bufferView": 1, "componentType": 5126, "count": 2, "type": "VEC4"},
        ],
        "animations": [
            {
                "name": "nod",
                "samplers": [{"input": 0, "output": 1}],
                "channels": [{"sampler": 0, "target": {"node": 1, "path": "rotation"}}],
            }
        ],
    }


class Written:
    """A retargeted clip, and its files by format."""

    def __init__(self, folder, model):
        self.model = model
        self.skeleton = sy.bundled(model) if model == "humanoid" else sy.load_skeleton(model)
        walk = sy.load_motion(WALK)
        walk = sy.Motion(walk.skeleton, walk.q[:30], walk.fps, name="walk")
        self.motion = sy.retarget(walk, self.skeleton).motion
        self.files = {}
        for ending in ("bvh", "npz", "csv", *(("glb",) if str(model).endswith(".gltf") else ())):
            self.files[ending] = folder / f"clip.{ending}"
            sy.save_motion(self.motion, self.files[ending], into=model if ending == "glb" else None)

    def named(self, ending):
        """The arguments that name the clip; a CSV does not hold its skeleton."""
        return [self.files[ending], *(["--model", self.model] if ending == "csv" else [])]


@pytest.fixture(scope="module", params=["humanoid", "robot", "gltf"])
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    model = request.param
    if model == "robot":
        model = folder / "made.urdf"
        model.write_text(robot_urdf(), encoding="utf-8")
    elif model == "gltf":
        model = folder / "body.gltf"
        model.write_text(json.dumps(body_gltf()), encoding="utf-8")
    return Written(folder, model)


ENDINGS = ("bvh", "npz", "csv", "glb")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_verb_reads_what_is_written(written, ending, tmp_path):
    if ending not in written.files:
        pytest.skip("only a glTF can be copied")
    clip = written.named(ending)
    wanted = written.motion.positions()[:, -len(written.skeleton) :]
    size = written.skeleton.size

    ran = run("convert", *clip, tmp_path / "a.npz")
    assert ran.code == 0, ran.err
    again = sy.load_motion(tmp_path / "a.npz")
    names = again.skeleton.joint_names
    rows = [names.index(name) for name in written.skeleton.joint_names if name in names]
    own = [row for row, name in enumerate(written.skeleton.joint_names) if name in names]
    assert len(own) >= 16  # the ends of a BVH have other names
    np.testing.assert_allclose(again.positions()[:, rows], wanted[:, own], atol=2e-6 * size)

    for verb, options in (
        ("render", ["-o", tmp_path / "a.png", "--size", "96x54"]),
        ("animate", ["--foot-lock", "-o", tmp_path / "b.npz"]),
        ("inspect", ["--json"]),
        ("plot", ["-o", tmp_path / "p.png", "--joint", "head", "--joint", "left_foot"]),
    ):
        ran = run(verb, *clip, *options)
        assert ran.code == 0, (verb, ran.err)
    ran = run("retarget", clip[0], "humanoid", *clip[1:], "-o", tmp_path / "r.npz")
    assert ran.code == 0, ran.err
    ran = run("animate", written.model, "--follow", clip[0], "--joints", "left_foot", "-o", tmp_path / "f.npz")
    assert "Traceback" not in ran.err
    assert ran.code in (0, 1), ran.err


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_page_plays_what_is_written(written, ending):
    pytest.importorskip("viser")
    from synovia.viewer import view

    if ending not in written.files:
        pytest.skip("only a glTF can be copied")
    wanted = written.motion.positions()[-1]
    pages = [(written.model, written.files[ending])] if ending != "bvh" else []
    pages += [(written.files[ending], None)] if ending != "csv" else []
    for model, clip in pages:
        with view(model, clip=clip, port=0) as page:
            session = page._opening.make()
            assert session.animation.play.playing
            np.testing.assert_allclose(
                session.animation.start(session.animation.play.motion.duration).position("head"),
                wanted[_row(written, "head")],
                atol=1e-5,
            )


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("model", ["g1_29dof.urdf", "g1_menagerie_nomesh.xml"])
def test_a_real_robot_opens_again(shared_data, model, tmp_path):
    if model.endswith(".xml"):
        pytest.importorskip("mujoco")
    robot = shared_data / "robot" / model
    walk = sy.load_motion(shared_data / "motion" / "cmu_07_01_walk.bvh")
    sy.save_motion(sy.Motion(walk.skeleton, walk.q[:60], walk.fps), tmp_path / "walk.bvh")
    ran = run("retarget", tmp_path / "walk.bvh", robot, "--trim-tpose", "-o", tmp_path / "a.npz")
    assert "frame 0 is the T-pose" in ran.err
    motion = sy.load_motion(tmp_path / "a.npz")
    for ending in ("csv", "bvh"):
        assert run("convert", tmp_path / "a.npz", tmp_path / f"a.{ending}").code == 0
    again = sy.formats.read_csv(tmp_path / "a.csv", sy.load_skeleton(robot))
    np.testing.assert_array_equal(again.q, motion.q)
    again = sy.load_motion(tmp_path / "a.npz", skeleton=sy.load_skeleton(robot))
    np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-9)
    for clip in (["a.npz"], ["a.bvh"], ["a.csv", "--model", robot]):
        ran = run("render", tmp_path / clip[0], *clip[1:], "-o", tmp_path / "a.png", "--size", "80x60", "--force")
        assert ran.code == 0, ran.err


def _row(written, role):
    skeleton = written.motion.skeleton
    return skeleton.index(skeleton.roles[role])


def test_a_table_and_an_archive_go_onto_the_model(written):
    for ending in ("csv", "npz"):
        again = sy.load_motion(written.files[ending], skeleton=written.skeleton)
        np.testing.assert_array_equal(again.q, written.motion.q)
        assert again.skeleton.joint_names == written.motion.skeleton.joint_names
    np.testing.assert_array_equal(sy.formats.read_csv(written.files["csv"], written.skeleton).q, written.motion.q)


@pytest.mark.parametrize("root", ["x,yaw", "free", "x,y,z,roll"])
def test_a_table_tells_how_the_root_moves(root, tmp_path):
    arm = sy.bundled("arm7")
    moving = arm.with_root(root)
    motion = sy.Motion(moving, [moving.random_pose(seed).q for seed in range(3)], 30.0)
    sy.save_motion(motion, tmp_path / "a.csv")
    again = sy.formats.read_csv(tmp_path / "a.csv", arm)
    assert again.skeleton.joint_names == moving.joint_names
    np.testing.assert_array_equal(again.q, motion.q)


def test_a_table_needs_its_model(written, tmp_path):
    for verb in ("render", "plot", "convert"):
        out = [tmp_path / "a.npz"] if verb == "convert" else ["-o", tmp_path / "a.png"]
        assert_refused(run(verb, written.files["csv"], *out), "--model")


def test_a_clip_of_another_body_is_refused(written, tmp_path):
    ran = run("convert", written.files["npz"], tmp_path / "a.npz", "--model", "arm7")
    assert_refused(ran, "another skeleton")
    turned = sy.Skeleton.chain([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    motion = sy.Motion(turned, [turned.rest_q], 30.0)
    larger = sy.Skeleton.chain([(0, 0, 0), (100, 0, 0), (200, 0, 0)])
    with pytest.raises(sy.InputError, match="another skeleton"):
        motion.on(larger)


def test_the_clip_that_was_written_last_is_shown(tmp_path):
    model = tmp_path / "body.gltf"
    model.write_text(json.dumps(body_gltf()), encoding="utf-8")
    assert load_clips(model).shown is None
    assert sy.load_motion(model).name == "nod"
    body = sy.load_skeleton(model)
    for name in ("one", "two"):
        q = np.array([body.rest_q, body.rest_q])
        sy.save_motion(sy.Motion(body, q, 30.0, name=name), tmp_path / f"{name}.glb", into=model)
        model = tmp_path / f"{name}.glb"
        assert sy.load_motion(model).name == name
    assert [motion.name for motion in load_clips(model).motions] == ["two", "one", "nod"]
    assert sy.load_motion(model, 2).name == "nod"
    assert sy.load_motion(model, "one").name == "one"
    ran = run("render", model, "-o", tmp_path / "a.png", "--size", "80x60")
    assert "two" in ran.err
    clips = run("inspect", model, "--json").data["clips"]
    assert [clip["default"] for clip in clips] == [True, False, False]


def with_t_pose(before, after, *, far=0.5):
    """The walk with frames of a T-pose before and after it, the first of them away from the walk."""
    walk = sy.load_motion(WALK)
    body = walk.skeleton
    pose = np.array(body.rest_q)
    place = body.q_slice(0)
    pose[place.start : place.start + 3] = walk.q[0, place.start : place.start + 3] + (far, 0.0, 0.0)
    q = np.concatenate([np.tile(pose, (before, 1)), walk.q, np.tile(pose, (after, 1))])
    return sy.Motion(body, q, walk.fps, name="walk")


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 0), (0, 3), (5, 1)])
def test_calibration_frames_are_named_and_cut_off(before, after, tmp_path):
    motion = with_t_pose(before, after)
    ends = find_ends(motion)
    assert (ends.first, ends.end) == (before, len(motion) - after)
    assert len(ends.notes) == bool(before) + bool(after)
    np.testing.assert_array_equal(ends.of(motion).q, motion.q[before : len(motion) - after])
    sy.save_motion(motion, tmp_path / "a.npz")
    plain = run("convert", tmp_path / "a.npz", tmp_path / "b.npz")
    assert ("--trim-tpose" in plain.err) == bool(before + after)
    assert run("convert", tmp_path / "a.npz", tmp_path / "c.npz", "--trim-tpose").code == 0
    assert len(sy.load_motion(tmp_path / "c.npz")) == len(motion) - before - after


def test_two_clips_side_by_side_begin_at_the_same_frame(tmp_path):
    """Whichever of them has lost its calibration frames already, and also if only one of them shows the T-pose."""
    source, walk = with_t_pose(1, 2), sy.load_motion(WALK)
    whole = len(source)
    for one, other in ((source, walk), (walk, source)):
        ends = find_shared_ends(one, other, trim=False)
        np.testing.assert_array_equal(ends[0].of(one).q, walk.q)
        np.testing.assert_array_equal(ends[1].of(other).q, walk.q)
    still = sy.Motion(walk.skeleton, np.tile(walk.q[:1], (whole, 1)), walk.fps)
    assert [(ends.first, ends.end) for ends in find_shared_ends(source, still, trim=True)] == [(1, whole - 2)] * 2
    assert [(ends.first, ends.end) for ends in find_shared_ends(source, still, trim=False)] == [(0, whole)] * 2
    sy.save_motion(source, tmp_path / "source.npz")
    sy.save_motion(still, tmp_path / "still.npz")
    files = tmp_path / "still.npz", "--next-to", tmp_path / "source.npz"
    ran = run("render", *files, "--trim-tpose", "-o", tmp_path / "a.png", "--size", "80x60")
    assert ran.code == 0
    assert f"only frames 1 to {whole - 3} are used" in ran.err


def test_the_report_names_calibration_frames(tmp_path):
    answer = sy.retarget(with_t_pose(2, 0), sy.bundled("humanoid"))
    assert "calibration: frames 0 to 1 are the T-pose" in answer.report()
    sy.save_motion(with_t_pose(2, 0), tmp_path / "a.npz")
    ran = run("retarget", tmp_path / "a.npz", "humanoid", "--json").data
    assert ran["calibration"] == list(answer.calibration)
    assert not ran["calibration_cut_off"]
    cut = run("retarget", tmp_path / "a.npz", "humanoid", "--json", "--trim-tpose").data
    assert cut["calibration"] == ran["calibration"]
    assert cut["calibration_cut_off"]
    assert cut["frames"] == ran["frames"] - 2
    assert "cut off: frames 0 to 1" in run("retarget", tmp_path / "a.npz", "humanoid", "--trim-tpose").out


def test_a_clip_that_begins_at_rest_is_whole():
    """A body that starts to move out of the rest pose without a jump has no calibration frames."""
    body = sy.bundled("humanoid")
    q = np.tile(body.rest_q, (40, 1))
    row = body.q_slice("left_upper_arm")
    for frame in range(40):
        q[frame, row] = sy.Rotation.from_euler("x", 0.02 * max(frame - 10, 0)).as_quat()
    ends = find_ends(sy.Motion(body, q, 30.0))
    assert (ends.first, ends.end, ends.notes) == (0, 40, ())


def test_a_held_t_pose_without_a_jump_is_named(tmp_path):
    body = sy.bundled("humanoid")
    raised = np.array(body.rest_q)
    q = np.tile(raised, (90, 1))
    q = sy.Motion(body, q, 30.0).q.copy()
    arms = [body.q_slice(f"{side}_upper_arm") for side in ("left", "right")]
    pose = body.rest_pose()
    across = pose.position("left_lower_arm") - pose.position("left_upper_arm")
    down = abs(across[1]) > abs(across[0])
    for frame in range(90):
        share = np.clip((frame - 30) / 30.0, 0.0, 1.0)
        angle = (1.0 - share) * np.pi / 2.0 if down else share * np.pi / 3.0
        for place, sign in zip(arms, (1.0, -1.0), strict=True):
            q[frame, place] = sy.Rotation.from_euler("z", sign * angle if down else -sign * angle).as_quat()
    ends = find_ends(sy.Motion(body, q, 30.0))
    assert 30 <= ends.first <= 45
    assert "T-pose" in ends.notes[0]


def test_the_error_names_the_joints_that_differ():
    body = sy.bundled("humanoid")
    clip = sy.Motion(body, [body.rest_q], 30.0)
    longer = body.with_joints([*body.joints, sy.Joint("tail", "hips")])
    renamed = body.with_joints([*body.joints[:-1], replace(body.joints[-1], name="fin")])
    for motion, other, text in (
        (clip, longer, "The clip lacks 'tail'"),
        (sy.Motion(longer, [longer.rest_q], 30.0), body, "Only the clip has 'tail'"),
        (clip, renamed, rf"Only the clip has '{body.joint_names[-1]}' and it lacks 'fin'"),
    ):
        with pytest.raises(sy.InputError, match=text):
            motion.on(other)
