"""Data sets of LeRobot: poses beside joints and joints from poses, episode by episode, with their statistics."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import synovia as sy
from synovia.errors import FileError, FormatError, InputError
from synovia.model.pose import world_frames

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from synovia.lerobot import Arm, add_joints, add_poses  # noqa: E402
from synovia.lerobot.convert import _turns  # noqa: E402

LENGTHS = (30, 45, 20)


def six_axes():
    """Return an arm of six hinges without redundancy, with a gripper of its own."""
    axes = ((0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0))
    places = ((0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.4), (0.2, 0, 0.05), (0.2, 0, 0), (0.1, 0, 0))
    joints = [sy.Joint("base", None, sy.Kind.FIXED)]
    for at, (axis, place) in enumerate(zip(axes, places, strict=True)):
        rest = np.eye(4)
        rest[:3, 3] = place
        limit = sy.Interval(-3.0, 3.0)
        joints.append(sy.Joint(f"motor{at}", joints[-1].name, sy.Kind.HINGE, rest, np.array(axis, float), limit))
    end = np.eye(4)
    end[:3, 3] = (0.08, 0, 0)
    joints.append(sy.Joint("tool", "motor5", sy.Kind.FIXED, end))
    joints.append(sy.Joint("jaw", "motor5", sy.Kind.HINGE, end, np.array([0.0, 0, 1]), sy.Interval(0, 1)))
    return sy.Skeleton(joints, name="six")


MIDDLE = (0.2, 0.6, 0.5, 0.3, 0.8, -0.2, 0.4)


def recording(root, names, *, degrees=False, fixed=True, angle=0.6, middle=MIDDLE):
    """Write a data set in LeRobot's layout, episodes in two files; return the joint values of each episode, radians."""
    rng = np.random.default_rng(0)
    episodes = []
    for length in LENGTHS:
        t = np.linspace(0, 1, length)[:, None]
        wave = np.sin(2 * np.pi * t * rng.uniform(0.3, 0.8, len(names)) + rng.uniform(0, 6, len(names)))
        episodes.append(middle + angle * 0.5 * wave)
    count = len(names)
    info = {
        "codebase_version": "v3.0",
        "robot_type": "six",
        "total_episodes": len(LENGTHS),
        "total_frames": sum(LENGTHS),
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": 30,
        "splits": {"train": f"0:{len(LENGTHS)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
        "features": {
            "observation.state": {"dtype": "float32", "shape": [count], "names": list(names)},
            "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            "frame_index": {"dtype": "int64", "shape": [1], "names": None},
            "episode_index": {"dtype": "int64", "shape": [1], "names": None},
            "index": {"dtype": "int64", "shape": [1], "names": None},
            "task_index": {"dtype": "int64", "shape": [1], "names": None},
        },
    }
    (root / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
    (root / "data" / "chunk-000").mkdir(parents=True)
    (root / "videos").mkdir()
    (root / "videos" / "film.mp4").write_bytes(b"film")
    (root / "meta" / "info.json").write_text(json.dumps(info), encoding="utf-8")
    (root / "meta" / "stats.json").write_text(json.dumps({"timestamp": {"min": [0.0]}}), encoding="utf-8")
    start = 0
    for file, numbers in enumerate(((0, 1), (2,))):
        rows = {name: [] for name in info["features"]}
        for episode in numbers:
            q, length = episodes[episode], LENGTHS[episode]
            rows["observation.state"].append(np.degrees(q) if degrees else q)
            rows["timestamp"].append(np.arange(length) / 30)
            rows["frame_index"].append(np.arange(length))
            rows["episode_index"].append(np.full(length, episode))
            rows["index"].append(start + np.arange(length))
            rows["task_index"].append(np.zeros(length))
            start += length
        flat = pa.array(np.concatenate(rows.pop("observation.state")).astype(np.float32).reshape(-1))
        offsets = pa.array(np.arange(0, len(flat) + 1, count, dtype=np.int32))
        states = pa.FixedSizeListArray.from_arrays(flat, count) if fixed else pa.ListArray.from_arrays(offsets, flat)
        columns = {"observation.state": states}
        for name, parts in rows.items():
            columns[name] = pa.array(np.concatenate(parts).astype(info["features"][name]["dtype"]))
        pq.write_table(pa.table(columns), root / "data" / "chunk-000" / f"file-{file:03d}.parquet")
    table = {"episode_index": [0, 1, 2], "length": list(LENGTHS), "tasks": [["a"]] * 3, "data/chunk_index": [0] * 3}
    table |= {"data/file_index": [0, 0, 1], "stats/timestamp/min": [[0.0]] * 3}
    pq.write_table(pa.table(table), root / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
    return episodes


NAMES = (*(f"motor{n}.pos" for n in range(6)), "jaw.pos")


@pytest.fixture
def six():
    return six_axes()


def frames_of(root, name):
    files = sorted((root / "data").glob("*/*.parquet"))
    return np.array([row for file in files for row in pq.read_table(file)[name].to_pylist()])


@pytest.mark.parametrize(("degrees", "fixed"), [(True, True), (False, False)])
def test_joints_become_poses_and_come_back(tmp_path, six, degrees, fixed):
    source, there, back = tmp_path / "pick", tmp_path / "ee", tmp_path / "joints"
    episodes = recording(source, NAMES, degrees=degrees, fixed=fixed)
    arm = Arm(six, "tool", degrees=degrees)
    done = add_poses(source, there, arm)
    assert done.frames == sum(LENGTHS)
    info = json.loads((there / "meta" / "info.json").read_text(encoding="utf-8"))
    ee = [f"ee.{part}" for part in ("x", "y", "z", "wx", "wy", "wz", "jaw_pos")]
    assert info["features"]["observation.ee"] == {"dtype": "float32", "shape": [7], "names": ee}
    values = frames_of(there, "observation.ee")
    q = np.concatenate(episodes)
    frames = world_frames(six, np.ascontiguousarray(q))[:, six.index("tool")]
    np.testing.assert_allclose(values[:, :3], frames[:, 9:], atol=1e-6)
    turns = sy.Rotation.from_rotvec(values[:, 3:6]).as_matrix()
    np.testing.assert_allclose(turns.reshape(-1, 9), frames[:, :9], atol=1e-5)

    done = add_joints(there, back, arm, into="again", start="observation.state")
    assert (done.statuses, done.jumps) == ({"REACHED": sum(LENGTHS)}, ())
    again = frames_of(back, "again")
    scale = np.degrees(1.0) if degrees else 1.0
    np.testing.assert_allclose(again[:, :6] / scale, q[:, :6], atol=1e-4)
    np.testing.assert_allclose(again[:, 6], frames_of(there, "observation.state")[:, 6], atol=1e-4)
    assert (frames_of(back, "again.status") == 0).all()
    for name in ("timestamp", "episode_index", "index", "observation.state"):
        np.testing.assert_array_equal(frames_of(back, name), frames_of(source, name))
    assert (back / "videos" / "film.mp4").read_bytes() == b"film"


def test_statistics_are_those_of_the_columns(tmp_path, six):
    recording(tmp_path / "pick", NAMES)
    add_poses(tmp_path / "pick", tmp_path / "ee", Arm(six, "tool"))
    values = frames_of(tmp_path / "ee", "observation.ee")
    stats = json.loads((tmp_path / "ee" / "meta" / "stats.json").read_text(encoding="utf-8"))
    assert stats["timestamp"] == {"min": [0.0]}
    found = stats["observation.ee"]
    for key, wanted in (
        ("min", values.min(0)),
        ("max", values.max(0)),
        ("mean", values.mean(0)),
        ("std", values.std(0)),
    ):
        np.testing.assert_allclose(found[key], wanted, atol=1e-6)
    assert found["count"] == [sum(LENGTHS)]
    table = pq.read_table(tmp_path / "ee" / "meta" / "episodes" / "chunk-000" / "file-000.parquet").to_pydict()
    assert table["stats/timestamp/min"] == [[0.0]] * 3
    first = values[: LENGTHS[0]]
    np.testing.assert_allclose(table["stats/observation.ee/mean"][0], first.mean(0), atol=1e-6)
    np.testing.assert_allclose(table["stats/observation.ee/q10"][0], np.quantile(first, 0.1, axis=0), atol=1e-6)
    file = pq.ParquetFile(tmp_path / "ee" / "data" / "chunk-000" / "file-000.parquet")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == list(LENGTHS[:2])


def test_a_frame_out_of_reach_has_its_status(tmp_path, six):
    recording(tmp_path / "pick", NAMES)
    arm = Arm(six, "tool")
    add_poses(tmp_path / "pick", tmp_path / "ee", arm)
    file = tmp_path / "ee" / "data" / "chunk-000" / "file-001.parquet"
    table = pq.read_table(file)
    poses = np.array(table["observation.ee"].to_pylist(), np.float32)
    poses[5, :3] = (9, 9, 9)
    column = pa.FixedSizeListArray.from_arrays(pa.array(poses.reshape(-1)), 7)
    pq.write_table(table.set_column(table.column_names.index("observation.ee"), "observation.ee", column), file)
    done = add_joints(tmp_path / "ee", tmp_path / "back", arm, into="again", start="observation.state")
    assert done.statuses == {"REACHED": sum(LENGTHS) - 1, "UNREACHABLE": 1}
    status = frames_of(tmp_path / "back", "again.status")
    assert np.flatnonzero(status).tolist() == [LENGTHS[0] + LENGTHS[1] + 5]


def test_rotations_pass_half_a_turn_without_a_jump(tmp_path, six):
    recording(tmp_path / "pick", NAMES, angle=0.4, middle=(0.05, 0.1, 0.05, 1.6, 0.1, 1.55, 0.4))
    add_poses(tmp_path / "pick", tmp_path / "ee", Arm(six, "tool"))
    values, episode = frames_of(tmp_path / "ee", "observation.ee"), frames_of(tmp_path / "ee", "episode_index")
    turns = sy.Rotation.from_rotvec(values[:, 3:6])
    plain = turns.as_rotvec()
    inside = np.diff(episode) == 0
    assert np.linalg.norm(np.diff(plain, axis=0), axis=1)[inside].max() > 3.0  # the shortest form does jump
    assert np.linalg.norm(np.diff(values[:, 3:6], axis=0), axis=1)[inside].max() < 0.2


def test_rotations_go_on_through_many_turns():
    angles = np.concatenate([np.linspace(0.0, 8.0 * np.pi, 65), np.linspace(8.0 * np.pi, -3.0 * np.pi, 89)])
    axis = np.array([0.6, 0.0, 0.8])
    turns = sy.Rotation.from_rotvec(angles[:, None] * axis).as_matrix()
    turns[[16, 32, 48]] = np.eye(3)  # full turns, exactly
    np.testing.assert_allclose(_turns(turns), angles[:, None] * axis, atol=1e-6)


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_copy_in_place_of_a_link_leaves_nothing_beside(tmp_path, six):
    recording(tmp_path / "pick", NAMES)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "kept").write_text("")
    (tmp_path / "ee").symlink_to(tmp_path / "old", target_is_directory=True)
    add_poses(tmp_path / "pick", tmp_path / "ee", Arm(six, "tool"), force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ee", "old", "pick"]
    assert (tmp_path / "old" / "kept").exists()
    assert not (tmp_path / "ee").is_symlink()


def test_columns_get_names_without_a_start_and_replace_others(tmp_path, six):
    recording(tmp_path / "pick", NAMES)
    arm = Arm(six, "tool", joints={f"motor{n}.pos": f"motor{n}" for n in range(6)})
    add_poses(tmp_path / "pick", tmp_path / "ee", arm)
    with pytest.raises(InputError, match="already"):
        add_joints(tmp_path / "ee", tmp_path / "back", arm)
    done = add_joints(tmp_path / "ee", tmp_path / "back", arm, replace=True)
    assert done.frames == sum(LENGTHS)
    info = json.loads((tmp_path / "back" / "meta" / "info.json").read_text(encoding="utf-8"))
    assert info["features"]["observation.state"]["names"] == list(NAMES)
    q = np.tile(six.rest_q, (sum(LENGTHS), 1))
    q[:, :6] = frames_of(tmp_path / "back", "observation.state")[:, :6]
    frames = world_frames(six, q)[:, six.index("tool")]
    there = frames_of(tmp_path / "back", "observation.state.status") == 0
    assert there.sum() > 0.9 * sum(LENGTHS)
    want = frames_of(tmp_path / "ee", "observation.ee")[:, :3]
    np.testing.assert_allclose(frames[there, 9:], want[there], atol=1e-5)


def test_mistakes_are_named_and_leave_nothing_behind(tmp_path, six):
    source = tmp_path / "pick"
    recording(source, NAMES)
    arm = Arm(six, "tool")
    with pytest.raises(InputError, match="no column 'actoin'"):
        add_poses(source, tmp_path / "ee", arm, column="actoin")
    with pytest.raises(InputError, match="no names for its numbers"):
        add_poses(source, tmp_path / "ee", arm, column="timestamp")
    with pytest.raises(InputError, match="no number named 'motor9'"):
        add_poses(source, tmp_path / "ee", Arm(six, "tool", joints={"motor9": "motor0"}))
    with pytest.raises(InputError, match="no number for joint 'motor1'"):
        add_poses(source, tmp_path / "ee", Arm(six, "tool", joints={"motor0.pos": "motor0"}))
    coupled = [replace(joint, mimic=sy.Mimic("motor4")) if joint.name == "motor5" else joint for joint in six.joints]
    with pytest.raises(InputError, match="no number for joint 'motor1'"):  # a follower needs none
        add_poses(source, tmp_path / "ee", Arm(sy.Skeleton(coupled), "tool", joints={"motor0.pos": "motor0"}))
    with pytest.raises(InputError, match="expected a hinge or slide"):
        Arm(six, "tool", joints={"motor0.pos": "base"})
    with pytest.raises(InputError, match=r"no number 'ee\.x'"):
        add_joints(source, tmp_path / "ee", arm, column="observation.state", into="x")
    with pytest.raises(FileError, match="folder exists"):
        add_poses(source, source, arm)
    with pytest.raises(FileError, match="inside it"):
        add_poses(source, source / "ee", arm)
    with pytest.raises(FileError, match="does not exist"):
        add_poses(tmp_path / "none", tmp_path / "ee", arm)
    (source / "data" / "chunk-000" / "file-001.parquet").write_bytes(b"PAR1 not at all PAR1")
    with pytest.raises(FormatError, match="Parquet"):
        add_poses(source, tmp_path / "ee", arm)
    info = json.loads((source / "meta" / "info.json").read_text(encoding="utf-8"))
    for change, word in (
        ({"codebase_version": "v2.1"}, "another layout"),
        ({"fps": 10**400}, "fps are missing"),
        ({"robot_type": "\ud800"}, "surrogate"),
    ):
        (source / "meta" / "info.json").write_text(json.dumps(info | change), encoding="utf-8")
        with pytest.raises(FormatError, match=word):
            add_poses(source, tmp_path / "ee", arm)
    nested = "[" * 60 + "]" * 60  # a small file, which would be large with LeRobot's indents
    (source / "meta" / "info.json").write_text(json.dumps(info)[:-1] + f', "notes": {nested}}}', encoding="utf-8")
    with pytest.raises(FormatError, match="nested too deeply: expected at most 50 levels, got 61"):
        add_poses(source, tmp_path / "ee", arm)
    assert [path.name for path in tmp_path.iterdir()] == ["pick"]


def test_so100_and_panda(tmp_path, shared_data):
    so100 = sy.load_skeleton(shared_data / "robot" / "so100.urdf")
    panda = sy.load_skeleton(shared_data / "robot" / "panda.urdf")
    motors = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
    for name, body, motor_names, tip, degrees in (
        ("so100", so100, [f"{motor}.pos" for motor in motors], 4, True),
        ("panda", panda, [f"panda_joint{n}.pos" for n in range(1, 8)] + ["hand.pos"], 6, False),
    ):
        chain = [row for row, joint in enumerate(body.joints) if joint.kind is sy.Kind.HINGE][: tip + 1]
        middle = [float(np.mean(body.value_range(row))) for row in chain] + [0.1]
        joints = dict(zip(motor_names, [body.joints[row].name for row in chain], strict=False))
        arm = Arm(body, body.joints[chain[-1]].name, None if name == "so100" else joints, degrees=degrees)
        recording(tmp_path / name, motor_names, degrees=degrees, angle=0.4, middle=middle)
        add_poses(tmp_path / name, tmp_path / f"{name}_ee", arm)
        done = add_joints(tmp_path / f"{name}_ee", tmp_path / f"{name}_q", arm, into="again", start="observation.state")
        assert done.statuses == {"REACHED": sum(LENGTHS)}
        assert not done.jumps
        again, before = (frames_of(tmp_path / f"{name}_q", column) for column in ("again", "observation.state"))
        if name == "so100":  # a Panda has a joint to spare
            np.testing.assert_allclose(again, before, atol=np.degrees(1e-4))
        np.testing.assert_allclose(again[:, -1], before[:, -1], atol=1e-6)
