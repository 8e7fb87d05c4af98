"""Every written file shows what is in memory, by readers that share no code; damaged writers and readers are caught."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import readback
import synovia as sy
from cli_runs import run
from synovia.errors import FormatError, InputError
from synovia.io import gltf
from synovia.io.base import write_bytes
from synovia.io.load import formats, load_motions
from synovia.io.nodes import tree
from synovia.io.save import write_motion

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_every_writer_has_a_reader_here():
    endings = {ending for fmt in formats() if fmt.write is not None and fmt.holds_motions for ending in fmt.extensions}
    assert endings - {".vrm", ".vrma"} == set(readback.READERS)  # a .vrma shows the bones of VRM, see test_vrma


@pytest.mark.parametrize("case", range(12))
def test_clips_poses_and_skeletons_of_any_body(tmp_path, case):
    rng = np.random.default_rng(case)
    body = readback.random_body(rng, case)
    clip = readback.random_clip(
        body, rng, fps=float(rng.uniform(10, 120)), stretched=case % 6 == 5, far=100.0 * (case % 3)
    )
    for ending in (".bvh", ".npz", ".csv"):
        path = tmp_path / f"a{ending}"
        notes = write_motion(clip, path)
        assert bool(notes) == (ending == ".csv" and clip.stretch is not None)
        shown = readback.differs(clip, path) <= 1.0
        assert shown or notes  # never silent
        assert sy.formats.verify_file(clip, path).holds == shown
    pose = body.random_pose(case)
    sy.formats.write_skeleton(body, tmp_path / "a.toml")
    sy.save_pose(pose, tmp_path / "a.json", verify=True)
    assert sy.formats.verify_file(body, tmp_path / "a.toml").holds
    for read, memory in ((readback.read_toml, body.rest_pose()), (readback.read_pose, pose)):
        path = tmp_path / ("a.toml" if read is readback.read_toml else "a.json")
        off = np.abs(read(path, body)[1][0] - memory.positions).max()
        assert off <= readback.allowed(body, memory.positions)


def robot(rng, count=6):
    """Hinges and a slide on a base that moves."""
    joints = [sy.Joint("base", None, sy.Kind.FREE, readback.random_tree(rng, 1).joints[0].rest)]
    for i in range(count):
        rest = np.eye(4)
        rest[:3, 3] = rng.normal(size=3)
        kind = sy.Kind.SLIDE if i == 2 else sy.Kind.HINGE
        joints.append(sy.Joint(f"j{i}", joints[-1].name, kind, rest, axis=rng.normal(size=3)))
    return sy.Skeleton(joints)


@pytest.mark.parametrize("ending", [".unitree.csv", ".isaac.npz", ".mujoco.npz"])
def test_clips_of_robots(tmp_path, ending):
    rng = np.random.default_rng(4)
    clip = readback.random_clip(robot(rng), rng, fps=30.0, far=20.0)
    sy.save_motion(clip, tmp_path / f"a{ending}", verify=True)
    assert readback.differs(clip, tmp_path / f"a{ending}") <= 1.0


def test_a_rate_that_a_file_cannot_hold_is_told(tmp_path):
    rng = np.random.default_rng(4)
    clip = readback.random_clip(robot(rng), rng, fps=50.0)
    with pytest.warns(UserWarning, match="rate of 50 frames per second: readers assume 30"):
        sy.save_motion(clip, tmp_path / "a.unitree.csv")
    with pytest.raises(FormatError, match="was written, but differs"):
        sy.save_motion(clip, tmp_path / "a.unitree.csv", force=True, verify=True)
    assert not sy.formats.verify_file(clip, tmp_path / "a.unitree.csv").holds


def exact(motion, path, number):
    """Largest difference between a clip in memory and in a glTF, in units of what is allowed."""
    file = readback.Gltf(path)
    keys = np.unique(np.concatenate([times for _, _, times, _, _ in file.clip(number)]))
    times = keys[0] + motion.times
    nearest = np.abs(keys[None] - times[:, None]).argmin(1)
    near = np.abs(keys[nearest] - times) < 0.01 / motion.fps
    rows = [file.names.index(name) for name in motion.skeleton.joint_names]
    shown = file.places(number, np.where(near, keys[nearest], times))[0][:, rows]
    off = np.linalg.norm(motion.positions() - shown, axis=-1).max()
    return off / readback.allowed(motion.skeleton, shown)


@pytest.mark.parametrize("case", range(24))
def test_gltf_files_of_any_scale(tmp_path, case):
    """Scale of armatures and bones, at rest or keyed, mirrored, uneven above turned joints, far away."""
    rng = np.random.default_rng(case)
    path = readback.random_gltf(tmp_path / "in.gltf", rng, case)
    body = sy.load_skeleton(path)
    file = readback.Gltf(path)
    rest = file.places()[0][0][[file.names.index(name) for name in body.joint_names]]
    assert np.abs(rest - body.rest_pose().positions).max() <= readback.allowed(body, rest)
    for number, motion in enumerate(load_motions(path)):
        assert exact(motion, path, number) <= 1.0 or any("differ" in note for note in motion.notes)
        sy.save_motion(motion, tmp_path / "out.glb", into=path, force=True, verify=True)
        assert readback.differs(motion, tmp_path / "out.glb") <= 1.0
    for free in (False, True):
        rooted = body.with_root("free") if free else body
        clip = readback.random_clip(rooted, rng, stretched=case % 4 == 1, far=10.0 * free)
        for ending in (".glb", ".gltf", ".bvh", ".npz"):
            out = tmp_path / f"new{ending}"
            sy.save_motion(clip, out, into=path, force=True, verify=True)
            assert readback.differs(clip, out) <= 1.0
        pose = clip.pose(0)
        for ending in (".glb", ".gltf"):
            out = tmp_path / f"pose{ending}"
            sy.save_pose(pose, out, into=path, force=True, verify=True)
            still = sy.Motion(rooted, pose.q[None], 30.0)
            assert readback.differs(still, out, readback.read_posed) <= 1.0
            again = sy.load_pose(out, rooted).positions[free:]
            assert np.abs(again - pose.positions[free:]).max() <= readback.allowed(body, again)


def chain(tmp_path, *scales, name="in.gltf", keyed=None):
    """A chain of four nodes with scales; ``keyed`` animates the scale of nodes in a clip of its own."""
    nodes = [
        {"name": f"n{i}", "translation": [0.3 * i, 1.0, 0.1], "rotation": [0.6, 0, 0, 0.8], "scale": list(scale)}
        for i, scale in enumerate(scales)
    ]
    for i in range(len(nodes) - 1):
        nodes[i]["children"] = [i + 1]
    content = {"asset": {"version": "2.0"}, "nodes": nodes, "scenes": [{"nodes": [0]}]}
    if keyed is not None:
        data = np.array([0, 1, 1, 1, 1, 2, 0.5, 1.5], "<f4").tobytes()
        content["buffers"] = [{"byteLength": 32, "uri": "data:;base64," + readback.base64.b64encode(data).decode()}]
        content["bufferViews"] = [{"buffer": 0, "byteLength": 8}, {"buffer": 0, "byteOffset": 8, "byteLength": 24}]
        content["accessors"] = [
            {"bufferView": 0, "componentType": 5126, "count": 2, "type": "SCALAR"},
            {"bufferView": 1, "componentType": 5126, "count": 2, "type": "VEC3"},
        ]
        targets = [{"sampler": 0, "target": {"node": node, "path": "scale"}} for node in keyed]
        content["animations"] = [{"name": "grow", "channels": targets, "samplers": [{"input": 0, "output": 1}]}]
    path = tmp_path / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


ONE = (1, 1, 1)


def test_uneven_scale_above_joints_that_turn_is_noted(tmp_path):
    uneven = sy.load_skeleton(chain(tmp_path, (1, 1.15, 1), ONE, ONE, ONE))
    assert len(uneven.notes) == 1
    assert re.search(r"'n0' is not uniform.*2 affected joints", uneven.notes[0])
    for scales in ([(2, 2, 2), ONE, ONE, ONE], [(-1, 1, 1), ONE, ONE, ONE], [ONE, ONE, ONE, (1, 3, 1)]):
        assert sy.load_skeleton(chain(tmp_path, *scales)).notes == ()  # nothing differs: nothing is said


@pytest.mark.parametrize("keyed", [[0], [2], [1, 2]])
@pytest.mark.parametrize("armature", [ONE, (2, 2, 2), (-1, 1, 1), (1, 1.5, 1)])
def test_scale_that_only_another_clip_keys(tmp_path, keyed, armature):
    """The scale of one clip is not that of another; a clip with scale keeps it."""
    path = chain(tmp_path, armature, ONE, ONE, ONE, keyed=keyed)
    (grow,) = load_motions(path)
    assert exact(grow, path, 0) <= 1.0
    assert any("scale" in note for note in grow.notes)
    body = sy.load_skeleton(path)
    clip = readback.random_clip(body, np.random.default_rng(1))
    for motion in (grow, clip):
        for ending in (".glb", ".bvh", ".npz"):
            sy.save_motion(motion, tmp_path / f"out{ending}", into=path, force=True, verify=True)
            assert readback.differs(motion, tmp_path / f"out{ending}") <= 1.0


def test_into_a_file_with_other_scales(tmp_path):
    """Joints stand where they are in memory, whatever the scale of the file that gets the clip."""
    own = chain(tmp_path, ONE, ONE, ONE, ONE)
    clip = readback.random_clip(sy.load_skeleton(own), np.random.default_rng(2))
    for k, armature in enumerate([(0.01, 0.01, 0.01), (-2, 2, 2), (1, 1.5, 0.5)]):
        other = chain(tmp_path, armature, ONE, (1, 2, 1), ONE, name="other.gltf")
        sy.save_motion(clip, tmp_path / f"{k}.glb", into=other)
        assert readback.differs(clip, tmp_path / f"{k}.glb") <= 1.0
        sy.save_pose(clip.pose(1), tmp_path / f"pose{k}.glb", into=other)
        assert sy.formats.verify_file(clip.pose(1), tmp_path / f"pose{k}.glb").holds


def test_a_flat_scale_cannot_hold_every_place_and_says_so(tmp_path):
    path = chain(tmp_path, ONE, (1, 0, 1), ONE, ONE)
    body = sy.load_skeleton(path)
    clip = readback.random_clip(body, np.random.default_rng(3))
    with pytest.warns(UserWarning, match=r"joint 'n3' is [0-9.]+ from its position in memory in frame"):
        sy.save_motion(clip, tmp_path / "out.glb", into=path)
    assert readback.differs(clip, tmp_path / "out.glb") > 1.0
    with pytest.raises(FormatError, match="n3"):
        sy.save_motion(clip, tmp_path / "out.glb", into=path, force=True, verify=True)
    with pytest.warns(UserWarning, match="from its position in memory"):
        sy.save_pose(clip.pose(0), tmp_path / "pose.glb", into=path)


def test_a_joint_that_hangs_elsewhere_is_another_skeleton(tmp_path):
    body = sy.load_skeleton(chain(tmp_path, ONE, ONE, ONE, ONE))
    joints = [sy.Joint(j.name, "n0" if i == 3 else j.parent, j.kind, j.rest) for i, j in enumerate(body.joints)]
    clip = readback.random_clip(body.with_joints(joints), np.random.default_rng(3))
    with pytest.raises(InputError, match="'n3' has another parent"):
        sy.save_motion(clip, tmp_path / "out.glb", into=tmp_path / "in.gltf")


# --- poses in glTF ----------------------------------------------------------------------------------------------------


def test_a_pose_keeps_the_file_and_unknown_endings_are_refused(tmp_path):
    path = chain(tmp_path, (2, 2, 2), ONE, ONE, ONE, keyed=[1])
    body = sy.load_skeleton(path)
    pose = body.random_pose(3)
    sy.save_pose(pose, tmp_path / "pose.glb")  # into the file of the skeleton
    again = sy.load_pose(tmp_path / "pose.glb", body)
    np.testing.assert_allclose(again.frames, pose.frames, atol=1e-9)
    assert [clip.name for clip in load_motions(tmp_path / "pose.glb")] == ["grow"]
    assert (tmp_path / "pose.glb").read_bytes()[:4] == b"glTF"
    for name in ("pose.bvh", "pose.txt", "pose"):
        with pytest.raises(FormatError, match=r"holds a pose: expected one of \.json, \.gltf, \.glb"):
            sy.save_pose(pose, tmp_path / name)
        with pytest.raises(FormatError, match=r"holds a pose: expected one of \.json, \.gltf, \.glb"):
            sy.load_pose(tmp_path / name, body)
    with pytest.raises(InputError, match="pose belongs to another skeleton"):
        sy.save_pose(sy.bundled("arm7").rest_pose(), tmp_path / "other.glb", into=path)
    with pytest.raises(InputError, match="pose belongs to another skeleton"):
        sy.load_pose(path, sy.bundled("arm7"))
    with pytest.raises(InputError, match=r"pose: expected a Pose, got Solution\. Pass its \.pose"):
        sy.save_pose(sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5))), tmp_path / "s.json")
    assert not (tmp_path / "other.glb").exists()


def test_a_pose_that_a_skeleton_cannot_take_is_told(tmp_path):
    body = sy.load_skeleton(chain(tmp_path, ONE, ONE, ONE, ONE))
    content = json.loads((tmp_path / "in.gltf").read_text(encoding="utf-8"))
    content["nodes"][3]["translation"] = [0.3, 2.0, 0.1]
    (tmp_path / "long.gltf").write_text(json.dumps(content), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"cannot take this pose: joint 'n3' is"):
        sy.load_pose(tmp_path / "long.gltf", body)


# --- damaged on purpose -----------------------------------------------------------------------------------------------


def tracks(change):
    """Damage of the values of the nodes of a glTF."""

    def damage(monkeypatch):
        own = gltf.write.node_tracks

        def changed(motion, scene):
            return {key: change(key[1], values) for key, values in own(motion, scene).items()}

        monkeypatch.setattr(gltf.write, "node_tracks", changed)

    return damage


def rest(**values):
    """Damage of what the writer of glTF knows about scales."""

    def damage(monkeypatch):
        class Damaged(tree.Rest):
            def __init__(self, scene):
                super().__init__(scene)
                for name, value in values.items():
                    getattr(self, name)[:] = value

        monkeypatch.setattr(gltf.write, "Rest", Damaged)

    return damage


def slow(monkeypatch):
    class Slow(gltf.write.NewClip):
        def __init__(self, content, name, times, *more):
            super().__init__(content, name, times * 1.01, *more)

    monkeypatch.setattr(gltf.write, "NewClip", Slow)


def text(old, new, module="synovia.io.bvh.write.write_bytes"):
    """Damage of the text of a file."""

    def damage(monkeypatch):
        def changed(path, data, **options):
            assert re.search(old, data.decode()), "nothing to damage"
            write_bytes(path, re.sub(old, new, data.decode()).encode(), **options)

        monkeypatch.setattr(module, changed)

    return damage


def table(change):
    """Damage of the numbers of a text of numbers, without its first column for a table with names."""

    def damage(monkeypatch):
        def changed(path, data, **options):
            lines = data.decode().split()
            head = [lines.pop(0)] if "time" in lines[0] else []
            rows = change(np.array([line.split(",") for line in lines], float))
            text = "\n".join([*head, *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n"
            write_bytes(path, text.encode(), **options)

        monkeypatch.setattr("synovia.io.base.write_bytes", changed)

    return damage


def archive(change, module="synovia.io.npz.write_archive"):
    """Damage of the arrays of an archive."""

    def damage(monkeypatch):
        from synovia.io.npz import write_archive

        monkeypatch.setattr(
            module, lambda path, arrays, **options: write_archive(path, change(dict(arrays)), **options)
        )

    return damage


def degrees(rows):
    rows[:, 1:] = np.degrees(rows[:, 1:])
    return rows


def first_as_scalar(rows):
    rows[:, 3:7] = np.roll(rows[:, 3:7], 1, axis=1)
    return rows


PLAIN, MIRRORED, UNEVEN = (ONE,) * 4, ((-1, 1, 1), ONE, ONE, ONE), ((1, 1.5, 1), ONE, ONE, ONE)
WRITERS = {
    "gltf 1 % larger": (".glb", PLAIN, tracks(lambda what, v: v * 1.01 if what == "translation" else v)),
    "gltf scalar first": (".glb", PLAIN, tracks(lambda what, v: np.roll(v, 1, 1) if what == "rotation" else v)),
    "gltf inverse rotations": (".glb", PLAIN, tracks(lambda what, v: v * [-1, -1, -1, 1] if what == "rotation" else v)),
    "gltf a frame late": (".glb", PLAIN, tracks(lambda what, v: np.roll(v, 1, 0))),
    "gltf without scale": (".glb", PLAIN, tracks(lambda what, v: np.ones_like(v) if what == "scale" else v)),
    "gltf slower": (".glb", PLAIN, slow),
    "gltf uneven scale ignored": (".glb", UNEVEN, rest(sheared=False)),
    "gltf mirror ignored": (".glb", MIRRORED, rest(signs=1.0)),
    "gltf offsets ignored": (".glb", PLAIN, rest(offset=0.0)),
    "bvh swapped axes": (".bvh", PLAIN, text("Yposition Zposition", "Zposition Yposition")),
    "bvh order of angles": (".bvh", PLAIN, text("Zrotation Xrotation", "Xrotation Zrotation")),
    "bvh slower": (".bvh", PLAIN, text("Frame Time: 0.03", "Frame Time: 0.04")),
    "bvh without a site": (".bvh", PLAIN, text(r"\t+(End Site|JOINT n3)\n\t+\{\n[^{}]*\}\n", "")),
    "bvh a frame less": (".bvh", PLAIN, text(r"Frames: 5\n([^\n]*)\n[^\n]*\n", r"Frames: 4\n\1\n")),
    "bvh few digits": (".bvh", PLAIN, text(r"(\.\d\d)\d+", r"\1")),
    "csv degrees": (".csv", PLAIN, table(degrees)),
    "csv a frame late": (".csv", PLAIN, table(lambda rows: np.hstack([rows[:, :1], np.roll(rows[:, 1:], 1, 0)]))),
    "unitree scalar first": (".unitree.csv", None, table(first_as_scalar)),
    "npz half precision": (".npz", PLAIN, archive(lambda a: a | {"q": a["q"].astype(np.float16).astype(float)})),
    "npz without scale": (".npz", PLAIN, archive(lambda a: {k: v for k, v in a.items() if k != "stretch"})),
    "npz rate": (".npz", PLAIN, archive(lambda a: a | {"fps": np.array(31.0)})),
    "tracker swapped axes": (
        ".isaac.npz", None,
        archive(lambda a: a | {"body_pos_w": a["body_pos_w"][..., [0, 2, 1]]}, "synovia.io.tracker.write_archive"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_writer_is_caught(tmp_path, monkeypatch, name):
    """By the independent reader, and by the program itself."""
    ending, scales, damage = WRITERS[name]
    rng = np.random.default_rng(7)
    path = chain(tmp_path, *(scales or PLAIN))
    body = robot(rng) if scales is None else sy.load_skeleton(path).with_root("free")
    scaled = ending != ".csv" and scales is not None and scales is not UNEVEN
    clip = readback.random_clip(body, rng, fps=30.0, stretched=scaled)
    if scaled:  # of one joint, so that the other joints differ in what moves them
        scale = np.ones(clip.stretch.shape)
        scale[:, 2] = rng.uniform(0.5, 1.5, (len(clip), 3))
        clip = sy.Motion(body, clip.q, 30.0, stretch=scale)
    good, bad = tmp_path / f"good{ending}", tmp_path / f"bad{ending}"
    sy.save_motion(clip, good, into=path, verify=True)
    assert readback.differs(clip, good) <= 1.0
    damage(monkeypatch)
    write_motion(clip, bad, into=path)
    with np.errstate(all="ignore"):
        assert not readback.differs(clip, bad) <= 1.0
        assert not sy.formats.verify_file(clip, bad).holds
    with pytest.raises(FormatError, match="was written, but"):
        sy.save_motion(clip, bad, into=path, force=True, verify=True)


def patched(target, wrap):
    """Damage of one function of a reader."""

    def damage(monkeypatch):
        module, _, name = target.rpartition(".")
        parts = module.split(":")
        home = __import__(parts[0], fromlist=["_"])
        for part in parts[1:]:
            home = getattr(home, part)
        monkeypatch.setattr(home, name, wrap(getattr(home, name)))

    return damage


class _Flat(tree.Rest):
    """Scale is ignored."""

    def __init__(self, scene):
        super().__init__(scene)
        self.offset[:] = scene.translation


def backwards(moves):
    return {row: values[:, ::-1] for row, values in moves.items()}


def larger(read):
    return lambda *a, **k: read(*a, **k) * (1.001 if a[3] == 3 else 1.0)


CLIPS = "synovia.io.nodes.clips"
READERS = {
    "gltf times": (".glb", patched(f"{CLIPS}._times", lambda f: lambda *a: f(*a) + 1 / 30)),
    "gltf rest scale": (".glb", patched(f"{CLIPS}.Rest", lambda f: _Flat)),
    "gltf rotations": (".glb", patched(f"{CLIPS}._relative", lambda f: lambda a, b: f(a, b) * [-1, -1, -1, 1])),
    "gltf translations": (".glb", patched(f"{CLIPS}:Clips._moves", lambda f: lambda *a: backwards(f(*a)))),
    "gltf keyed scale": (".glb", patched(f"{CLIPS}:Clips._stretch", lambda f: lambda *a: None)),
    "gltf numbers": (".glb", patched("synovia.io.gltf.animation.read_accessor", larger)),
    "bvh order of angles": (".bvh", patched("synovia.io.bvh.read.to_quat", lambda f: lambda o, a: f(o[::-1], a))),
    "bvh offsets": (".bvh", patched("synovia.io.bvh.read.rigid", lambda f: lambda offset: f(offset[::-1]))),
    "bvh axes": (".bvh", patched("synovia.io.bvh.read.AXES", lambda f: "XZY")),
    "csv columns": (".csv", patched("synovia.io.csvfile.columns", lambda f: lambda s: f(s)[::-1])),
    "csv rate": (".csv", patched("synovia.io.csvfile.frame_rate", lambda f: lambda *a: (1.01 * f(*a)[0], []))),
    "npz scale": (".npz", patched("synovia.io.npz.read_arrays", lambda f: lambda p, w, e: f(p, w[:-2], e))),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_reader_is_caught(tmp_path, monkeypatch, name):
    ending, damage = READERS[name]
    rng = np.random.default_rng(5)
    path = chain(tmp_path, (2, 2, 2), ONE, ONE, ONE)
    body = sy.load_skeleton(path).with_root("free")
    clip = readback.random_clip(body, rng, fps=30.0, stretched=ending in (".glb", ".npz"))
    out = tmp_path / f"out{ending}"
    sy.save_motion(clip, out, into=path, verify=True)
    skeleton = body if ending == ".csv" else None
    assert readback.differs(sy.load_motion(out, skeleton=skeleton), out) <= 1.0
    damage(monkeypatch)
    try:
        read = sy.load_motion(out, skeleton=skeleton)
    except sy.SynoviaError:
        return  # noticed by the reader itself
    assert not readback.differs(read, out) <= 1.0


@pytest.mark.slow
def test_verify_on_the_command_line(tmp_path, monkeypatch):
    path = chain(tmp_path, ONE, ONE, ONE, ONE)
    clip = readback.random_clip(sy.load_skeleton(path), np.random.default_rng(1))
    sy.save_motion(clip, tmp_path / "a.glb", into=path)
    done = run("convert", tmp_path / "a.glb", tmp_path / "a.bvh", "--verify")
    assert done.code == 0
    assert "matches the data in memory: joints differ by at most" in done.err
    assert run("convert", tmp_path / "a.glb", tmp_path / "a.toml", "--verify").code == 0
    place = ",".join(map(str, sy.load_skeleton(path).random_pose(1).position("n3")))
    solved = run("solve", path, "-t", f"n3={place}", "-o", tmp_path / "pose.glb", "--verify")
    assert (solved.code, "matches the data in memory" in solved.err) == (0, True)
    assert run("solve", path, "-t", f"n3={place}", "-o", tmp_path / "pose.txt").code == 3
    text("Frame Time: 0.03", "Frame Time: 0.04")(monkeypatch)
    done = run("convert", tmp_path / "a.glb", tmp_path / "b.bvh", "--verify")
    assert (done.code, "frames per second instead of 30" in done.err) == (1, True)
    assert Path(tmp_path / "b.bvh").exists()
    scaled = chain(tmp_path, ONE, ONE, ONE, ONE, keyed=[2], name="scaled.gltf")
    many = ("convert", scaled, tmp_path / "a.glb", "-o", tmp_path / "many", "--format", "csv", "-j", 1)
    assert run(*many, "--verify").code == 1
    assert run(*many, "--force").code == 0


def test_notes_are_told_by_every_verb(tmp_path):
    path = chain(tmp_path, ONE, (1, 1.5, 1), ONE, ONE, keyed=[2])
    told = run("convert", path, tmp_path / "a.csv")
    shown = run("inspect", path)
    for text in (told.err, shown.out):
        assert re.search("'n1' is not uniform.*animated scale of 'n2'", text, re.DOTALL)
    (clip,) = json.loads(run("inspect", path, "--json").out)["clips"]
    assert len(clip["notes"]) == 1
    stretched = chain(tmp_path, ONE, ONE, ONE, ONE, keyed=[2], name="plain.gltf")
    told = run("convert", stretched, tmp_path / "b.csv")
    assert re.search(r"cannot hold animated scale.*joint 'n3' is \d", told.err, re.DOTALL)


def test_notes_of_motions_are_kept_and_merged(tmp_path):
    import copy
    import pickle

    path = chain(tmp_path, ONE, ONE, ONE, ONE, keyed=[2])
    clip = sy.load_motion(path)
    assert len(clip.notes) == 1
    for again in (
        copy.deepcopy(clip),
        pickle.loads(pickle.dumps(clip)),
        clip.on(sy.load_skeleton(path).with_root("free")),
    ):
        assert again.notes == clip.notes
    sy.save_motion(clip, tmp_path / "a.npz")
    assert sy.load_motion(tmp_path / "a.npz").notes == clip.notes
    assert clip.rigid().stretch is None
    assert np.abs(clip.rigid().positions() - clip.positions()).max() > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sy.Motion(clip.skeleton, clip.q, 30.0, notes=["a"]).noted(["b", "a"]).notes == ("a", "b")


def test_rotations_of_frames_are_those_of_rigid_joints():
    body = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0)])
    q = np.array([body.random_pose(1).q])
    scale = np.ones((1, 3, 3))
    scale[0, 0] = (1, 2, 0.5)
    frames, rigid = (sy.Motion(body, q, 30.0, stretch=s).frames() for s in (scale, None))
    np.testing.assert_array_equal(frames[..., :9], rigid[..., :9])
    first = Rotation.from_quat(q[0, :4]).as_matrix()
    np.testing.assert_allclose(frames[0, 1, 9:], first @ (0, 2, 0), atol=1e-12)
