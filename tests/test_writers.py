"""Motions on their way out and in again: nothing lost that the format can hold, nothing half written."""

import contextlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synovia as sy
from cli_runs import run
from synovia.errors import FileError, FormatError, InputError
from synovia.io.load import load_motions
from synovia.io.toml import write_skeleton


def clip_of(skeleton, frames=7, fps=29.97, seed=3):
    return sy.Motion(skeleton, np.array([skeleton.random_pose(seed + t).q for t in range(frames)]), fps, name="some")


@settings(max_examples=25)
@given(st.sampled_from(["humanoid", "arm7", "quadruped"]), st.floats(1.0, 500.0), st.integers(0, 1000))
def test_archives_and_text_keep_every_bit(tmp_path, model, fps, seed):
    motion = clip_of(sy.bundled(model), fps=fps, seed=seed)
    sy.save_motion(motion, tmp_path / "a.npz", force=True)
    again = sy.load_motion(tmp_path / "a.npz")
    np.testing.assert_array_equal(again.q, motion.q)
    assert again.fps == pytest.approx(fps, rel=1e-12)  # a rate that is off by rounding is the usual one
    assert (again.name, again.skeleton.joint_names) == ("some", motion.skeleton.joint_names)
    sy.save_motion(motion, tmp_path / "a.csv", force=True)
    again = sy.formats.read_csv(tmp_path / "a.csv", motion.skeleton)
    np.testing.assert_array_equal(again.q, motion.q)
    assert again.fps == pytest.approx(fps, rel=1e-12)


def test_columns_may_stand_in_any_order_and_be_missing(tmp_path):
    arm = sy.bundled("arm7")
    path = tmp_path / "a.csv"
    path.write_text("time,joint3,joint1\n0,0.5,0.25\n0.1,0.6,0.35\n", encoding="utf-8")
    motion = sy.formats.read_csv(path, arm)
    assert motion.fps == pytest.approx(10.0)
    assert (motion.pose(1)["joint3"], motion.pose(1)["joint1"], motion.pose(1)["joint2"]) == (0.6, 0.35, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "first column is not time"),
        ("time,joint9\n0,1\n", "Did you mean"),
        ("time,joint1\n", "no frames"),
        ("time,joint1\n0,x\n", "line 2"),
        ("time,joint1\n0,1,2\n", "line 2"),
        ("time,joint1\n0,0\n0.1,nan\n", "line 3: cell cannot be used: expected finite numbers, got 'nan'"),
        ("time,joint1\n1,0\n0,0\n", "do not increase"),
        ("", "empty"),
    ],
)
def test_damaged_text(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((FormatError, FileError), match=message):
        sy.formats.read_csv(path, sy.bundled("arm7"))


def test_damaged_archives(tmp_path):
    path = tmp_path / "a.npz"
    sy.save_motion(clip_of(sy.bundled("arm7")), path)
    data = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        broken = bytearray(data)
        if rng.random() < 0.5:
            broken = broken[: rng.integers(1, len(broken))]
        else:
            for at in rng.integers(0, len(broken), 8):
                broken[at] = rng.integers(256)
        path.write_bytes(bytes(broken))
        with contextlib.suppress(sy.SynoviaError):
            sy.load_motion(path)
    np.savez(path, q=np.zeros((1, 7)))
    with pytest.raises(FormatError, match="archive holds no motion"):
        sy.load_motion(path)


def test_what_cannot_be_written(tmp_path):
    motion = clip_of(sy.bundled("arm7"))
    with pytest.raises(FormatError, match="extension"):
        sy.save_motion(motion, tmp_path / "a.dae")
    (tmp_path / "a.npz").write_text("mine", encoding="utf-8")
    with pytest.raises(FileError, match="exists"):
        sy.save_motion(motion, tmp_path / "a.npz")
    assert (tmp_path / "a.npz").read_text(encoding="utf-8") == "mine"


def gltf(tmp_path, scale=(1.0, 1.0, 1.0), matrix=False):
    """A glTF of three nodes, mirrored or scaled, with a clip and something that is not known here."""
    root = {"name": "root", "children": [1], "scale": list(scale)}
    if matrix:
        root = {"name": "root", "children": [1], "matrix": [2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 1, 2, 3, 1]}
    content = {
        "asset": {"version": "2.0", "extras": {"keep": [1, 2]}},
        "nodes": [
            root,
            {"name": "arm", "children": [2], "translation": [0, 1, 0], "rotation": [0.6, 0, 0, 0.8]},
            {"name": "tip", "translation": [0, 2, 0]},
        ],
        "scenes": [{"nodes": [0]}],
        "extensionsUsed": ["X_unknown"],
        "extensions": {"X_unknown": {"a": 1}},
    }
    path = tmp_path / "in.gltf"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("scale", [(1, 1, 1), (3, 3, 3), (-1, 1, 1), (-2, 2, -2)])
@pytest.mark.parametrize("ending", ["gltf", "glb"])
def test_gltf_round_trip(tmp_path, scale, ending):
    source = gltf(tmp_path, scale)
    skeleton = sy.load_skeleton(source)
    motion = clip_of(skeleton, fps=30.0)
    out = tmp_path / f"out.{ending}"
    sy.save_motion(motion, out, into=source)
    again = load_motions(out)[0]
    assert (again.name, len(again), again.fps) == ("some", len(motion), 30.0)
    np.testing.assert_allclose(again.positions(), motion.positions(), atol=1e-5)
    data = out.read_bytes()
    text = data if ending == "gltf" else data[20 : 20 + struct.unpack_from("<I", data, 12)[0]]
    content = json.loads(text)
    assert content["extensions"] == {"X_unknown": {"a": 1}}
    assert content["asset"]["extras"] == {"keep": [1, 2]}


def test_gltf_with_a_matrix_and_a_free_root(tmp_path):
    source = gltf(tmp_path, matrix=True)
    free = sy.IK(sy.load_skeleton(source), sy.PositionGoal("tip"), root="free").skeleton
    q = np.array([free.random_pose(t).q for t in range(4)])
    q[:, :3] = np.random.default_rng(2).normal(size=(4, 3))
    motion = sy.Motion(free, q, 30.0)
    sy.save_motion(motion, tmp_path / "out.glb", into=source)
    again = load_motions(tmp_path / "out.glb")[0]
    np.testing.assert_allclose(again.positions(), motion.positions()[:, 1:], atol=1e-5)
    rest = [sy.load_skeleton(path).rest_pose().positions for path in (source, tmp_path / "out.glb")]
    np.testing.assert_allclose(*rest, atol=1e-6)


def test_gltf_without_a_file_to_write_into(tmp_path):
    write_skeleton(sy.load_skeleton(gltf(tmp_path)), tmp_path / "body.toml")
    skeleton = sy.load_skeleton(tmp_path / "body.toml")
    sy.save_motion(clip_of(skeleton), tmp_path / "new.glb")
    assert sy.load_skeleton(tmp_path / "new.glb").joint_names == skeleton.joint_names
    (tmp_path / "body.gltf").write_bytes((tmp_path / "in.gltf").read_bytes())  # the body of the skeleton beside it
    sy.save_motion(clip_of(skeleton), tmp_path / "out.glb")
    assert load_motions(tmp_path / "out.glb")[0].name == "some"


def test_a_motion_without_frames_is_no_clip(tmp_path):
    source = gltf(tmp_path)
    body = sy.load_skeleton(source)
    with pytest.raises(InputError, match=r"out\.glb: motion has no frames: expected at least one"):
        sy.save_motion(sy.Motion(body, body.rest_q[None][:0], 30.0), tmp_path / "out.glb", into=source)


def test_clips_by_name_and_number(tmp_path):
    source = gltf(tmp_path)
    body = sy.load_skeleton(source)
    sy.save_motion(sy.Motion(body, body.rest_q[None], 30.0, name="stand"), tmp_path / "out.glb", into=source)
    for clip in ("stand", 0, np.int64(0)):
        assert sy.load_motion(tmp_path / "out.glb", clip).name == "stand"
    for clip, message in (("sit", "no clip named 'sit'"), (1, "no clip 1"), (0.0, "clip: expected the name or the nu")):
        with pytest.raises(InputError, match=message):
            sy.load_motion(tmp_path / "out.glb", clip)
    with pytest.raises(InputError, match="skeleton: expected a Skeleton, got int"):
        sy.load_motion(tmp_path / "out.glb", skeleton=3)


def test_a_model_where_a_motion_is_expected(tmp_path):
    write_skeleton(sy.bundled("arm7"), tmp_path / "arm.toml")
    with pytest.raises(sy.errors.UnsupportedError) as caught:
        sy.load_motion(tmp_path / "arm.toml")
    for ending in (".bvh", ".glb", ".npz", ".csv"):
        assert ending in str(caught.value)


def test_gltf_of_another_skeleton_is_refused(tmp_path):
    with pytest.raises(InputError, match="another skeleton"):
        sy.save_motion(clip_of(sy.bundled("arm7")), tmp_path / "out.glb", into=gltf(tmp_path))
    assert not (tmp_path / "out.glb").exists()


@pytest.mark.parametrize("name", ["mannequiny.glb", "greenman.glb", "SimpleSkin.gltf"])
def test_real_characters(shared_data, tmp_path, name):
    source = shared_data / "character" / name
    before = load_motions(source)
    sy.save_motion(before[0], tmp_path / "out.glb", into=source)
    after = load_motions(tmp_path / "out.glb")
    assert len(after) == len(before) + 1
    for a, b in zip(before, after[1:], strict=True):
        np.testing.assert_array_equal(a.q, b.q)
    np.testing.assert_allclose(after[0].positions(), before[0].positions(), atol=1e-6 * before[0].skeleton.size)
    if before[0].stretch is not None:
        np.testing.assert_allclose(after[0].stretch, before[0].stretch, atol=1e-6)


def test_convert(tmp_path):
    motion = clip_of(sy.bundled("humanoid"), fps=30.0)
    sy.save_motion(motion, tmp_path / "a.npz")
    assert run("convert", tmp_path / "a.npz", tmp_path / "a.bvh").code == 0
    assert len(sy.load_motion(tmp_path / "a.bvh")) == len(motion)
    assert run("convert", tmp_path / "a.npz", tmp_path / "a.toml").code == 0
    assert sy.load_skeleton(tmp_path / "a.toml").joint_names == motion.skeleton.joint_names
    assert run("convert", tmp_path / "a.npz", tmp_path / "a.xyz").code == 3
    assert run("convert", "humanoid", tmp_path / "b.bvh").code == 3


def test_a_format_is_one_module(tmp_path, monkeypatch):
    """Readers, writers, commands and messages know formats from their description alone."""
    import sys
    import types

    from synovia.io import load
    from synovia.io.base import Contents, Format

    arm = sy.bundled("arm7")

    def write(motion, path, *, force):
        rows = (" ".join(map(repr, row)) for row in motion.q.tolist())
        path.write_text("\n".join(["LINES", *rows]))

    module = types.ModuleType("synovia.io.lines")
    module.FORMAT = Format(
        name="Lines",
        extensions=(".lines",),
        looks_like=lambda head: head.startswith(b"LINES"),
        read=lambda path: Contents(arm, lambda: [sy.Motion(arm, np.loadtxt(path, skiprows=1), 30.0)]),
        write=write,
        holds_motions=True,
    )
    monkeypatch.setitem(sys.modules, "synovia.io.lines", module)
    monkeypatch.setattr(load, "_MODULES", (*load._MODULES, "lines"))
    motion = sy.Motion(arm, [arm.random_pose(k).q for k in range(3)], 30.0)
    sy.save_motion(motion, tmp_path / "a.lines")
    (tmp_path / "a.lines").rename(tmp_path / "unnamed")
    assert np.array_equal(sy.load_motion(tmp_path / "unnamed").q, motion.q)
    assert sy.load_skeleton(tmp_path / "unnamed") is arm
    with pytest.raises(FormatError, match=r"extension.*\.lines"):
        sy.save_motion(motion, tmp_path / "a.other")


def test_a_table_says_how_it_is_read(tmp_path):
    (tmp_path / "a.csv").write_text("time,joint1\n0,0\n")
    for read in (sy.load_skeleton, sy.load_motion):
        with pytest.raises(FormatError, match=r"a\.csv: a table contains no skeleton.*read_csv"):
            read(tmp_path / "a.csv")


def test_a_clip_has_a_key_in_each_frame_for_what_moves_alone(tmp_path):
    """Of one joint that turns, and where nothing does of one that says so; all else has one key, at rest."""
    source = gltf(tmp_path, (1, 1, 1))
    body = sy.load_skeleton(source)
    q = np.repeat(body.rest_q[None], 5, axis=0)
    place = body.q_slice("arm")
    for turning in (False, True):
        if turning:
            turns = sy.Rotation.from_rotvec(np.linspace(0, 0.5, 5)[:, None] * (0, 0, 1.0)).as_quat()
            q[:, place.stop - 4 : place.stop] = turns
        out = tmp_path / f"out {turning}.gltf"
        sy.save_motion(sy.Motion(body, q, 30.0), out, into=source)
        content = json.loads(out.read_text(encoding="utf-8"))
        clip = content["animations"][0]
        outputs = [clip["samplers"][channel["sampler"]]["output"] for channel in clip["channels"]]
        counts = [content["accessors"][number]["count"] for number in outputs]
        targets = [c["target"] for c, count in zip(clip["channels"], counts, strict=True) if count > 1]
        assert [target["path"] for target in targets] == ["rotation"]
        assert set(counts) == {1, 5}
        if turning:
            assert content["nodes"][targets[0]["node"]]["name"] == "arm"
        np.testing.assert_allclose(load_motions(out)[0].positions(), sy.Motion(body, q, 30.0).positions(), atol=1e-6)
