"""Small valid files of data sets, which the fuzzer changes: motions for learners, points and markers, tables, ledgers.

Arrow, Parquet and C3D are made only where pyarrow and ezc3d are installed.
"""

from __future__ import annotations

import io
import json
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import synovia as sy
from synovia.batch.inputs import Item
from synovia.batch.ledger import Ledger, Row
from synovia.io.smpl.model import NAMES


def data_files() -> list[tuple[str, str, str, bytes]]:
    """Return name, reader, extension and content of each file."""
    out: list[tuple[str, str, str, bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        out += [*_robot_motions(at), *_smpl(), *_points(), *_tables(at), *_ledger(at), *_lerobot(at)]
        if find_spec("ezc3d"):
            out.append(("c3d", "markers", ".c3d", _c3d(at / "a.c3d")))
    return out


def _archive(**arrays: np.ndarray) -> bytes:
    """Return arrays as an archive."""
    data = io.BytesIO()
    np.savez(data, **arrays)
    return data.getvalue()


def _robot_motions(at: Path) -> list[tuple[str, str, str, bytes]]:
    """Return a motion of the arm as trackers and Unitree's programs read it."""
    arm = sy.bundled("arm7").with_root("free")
    motion = sy.Motion(arm, np.array([arm.random_pose(t).q for t in range(3)]), 30.0)
    out: list[tuple[str, str, str, bytes]] = []
    for ending in (".isaac.npz", ".mujoco.npz", ".unitree.csv"):
        sy.save_motion(motion, at / f"a{ending}")
        kind = "unitree" if ending == ".unitree.csv" else "tracker"
        out.append((f"arm7 {ending[1:]}", kind, ending, (at / f"a{ending}").read_bytes()))
    with np.load(at / "a.isaac.npz") as arrays:
        bare = {name: arrays[name] for name in arrays.files if not name.endswith("names")}
    pairs = {"joint_pos": "dof_positions", "body_pos_w": "body_positions", "body_quat_w": "body_rotations"}
    out.append(("tracker without names", "tracker", ".isaac.npz", _archive(**bare)))
    amp = {pairs.get(name, name): array for name, array in bare.items()}
    out.append(("tracker of AMP", "tracker", ".isaac.npz", _archive(**amp)))
    return out


def smpl_arrays(count: int = 24) -> dict[str, np.ndarray]:
    """Return the arrays of a synthetic model in the form of SMPL."""
    rng = np.random.default_rng(1)
    parents = np.array([-1 % 2**32, *(max(0, k - 1 - k % 3) for k in range(1, count))])
    return {
        "v_template": rng.normal(size=(count, 3)).round(3),
        "shapedirs": 0.01 * rng.normal(size=(count, 3, 4)).round(3),
        "J_regressor": np.eye(count),
        "kintree_table": np.stack([parents, np.arange(count)]).astype(np.int64),
    }


def _smpl() -> list[tuple[str, str, str, bytes]]:
    """Return models in the form of SMPL and SMPL-H, and clips of AMASS."""
    out: list[tuple[str, str, str, bytes]] = []
    for count in sorted(NAMES)[:2]:
        rng = np.random.default_rng(count)
        rate = "mocap_framerate" if count == 24 else "mocap_frame_rate"
        clip = {
            "poses": 0.3 * rng.normal(size=(3, 3 * count)).round(3),
            "trans": rng.normal(size=(3, 3)).round(3),
            rate: np.array(60.0),
            "betas": np.zeros(4),
            "gender": np.array("neutral"),
        }
        out.append((f"smpl {count}", "smpl", ".npz", _archive(**smpl_arrays(count))))
        out.append((f"amass {count}", "amass", ".npz", _archive(**clip)))
    return out


def _points() -> list[tuple[str, str, str, bytes]]:
    """Return tables of points in all forms, and markers as TRC."""
    rng = np.random.default_rng(3)
    places = rng.normal(size=(3, 2, 3)).round(3)
    long = ["frame,time,landmark,x,y,z,visibility"]
    long += [
        f"{t},{t / 30:.4f},{name},{','.join(map(str, places[t, k]))},0.9"
        for t in range(3)
        for k, name in enumerate(("left_hip", "right_hip"))
    ]
    after = ["time;hip_x;hip_y;hip_z", *(f"{t};{';'.join(map(str, places[t, 0]))}" for t in range(3))]
    numbered = ["frame\tx0\ty0\tz0\tx1\ty1\tz1"]
    numbered += ["\t".join(map(str, [t, *places[t].ravel()])) for t in range(3)]
    head = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    head += ["100\t100\t3\t2\tmm", "Frame#\tTime\thip\t\t\tknee\t\t", "\t\tX1\tY1\tZ1\tX2\tY2\tZ2"]
    trc = [*head, *("\t".join(map(str, [t + 1, t / 100, *places[t].ravel()])) for t in range(3))]
    texts = {
        "long points": ("points", ".csv", long), "points after": ("points", ".csv", after),
        "numbered points": ("points", ".tsv", numbered), "trc": ("markers", ".trc", trc),
    }  # fmt: skip
    return [(name, kind, ending, ("\n".join(rows) + "\n").encode()) for name, (kind, ending, rows) in texts.items()]


def _c3d(path: Path) -> bytes:
    """Return a C3D file with two markers."""
    import ezc3d

    content = ezc3d.c3d()
    content["parameters"]["POINT"]["RATE"]["value"] = [100]
    content["parameters"]["POINT"]["LABELS"]["value"] = ("hip", "knee")
    points = np.ones((4, 2, 3))
    points[:3] = np.random.default_rng(5).normal(size=(3, 2, 3))
    content["data"]["points"] = points
    content.write(str(path))
    return path.read_bytes()


def targets() -> dict[str, np.ndarray]:
    """Return columns of targets for the arm, some with starts."""
    arm = sy.bundled("arm7")
    frames = np.stack([arm.random_pose(k).transform("tool") for k in range(4)])
    columns = {f"tool.{axis}": frames[:, k, 3] for k, axis in enumerate("xyz")}
    quats = sy.Rotation.from_matrix(frames[:, :3, :3]).as_quat()
    columns |= {f"tool.{word}": quats[:, k] for k, word in enumerate(("qx", "qy", "qz", "qw"))}
    return {"id": np.arange(4), **columns, "start.joint1": np.full(4, 0.1)}


def _tables(at: Path) -> list[tuple[str, str, str, bytes]]:
    """Return tables of targets."""
    columns = targets()
    rows = [
        ",".join(columns),
        *(",".join(map(repr, row)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)),
    ]
    out = [("targets csv", "table", ".csv", ("\n".join(rows) + "\n").encode())]
    out.append(("targets npz", "table", ".npz", _archive(**columns)))
    frames = np.tile(np.eye(4), (3, 1, 1))
    frames[:, :3, 3] = 0.3
    out.append(("lists npz", "table", ".npz", _archive(**{"tool.transform": frames})))
    if find_spec("pyarrow"):
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet

        lists = {
            "tool.position": frames[:, :3, 3].tolist(),
            "tool.quat_wxyz": [[1.0, 0, 0, 0]] * 3,
            "id": ["a", "", "c"],
        }
        for name, table in (("targets", pa.table(columns)), ("lists", pa.table(lists))):
            pyarrow.parquet.write_table(table, at / "t.parquet")
            out.append((f"{name} parquet", "table", ".parquet", (at / "t.parquet").read_bytes()))
            with pyarrow.ipc.new_file(str(at / "t.arrow"), table.schema) as writer:
                writer.write_table(table)
            out.append((f"{name} arrow", "table", ".arrow", (at / "t.arrow").read_bytes()))
    return out


def _ledger(at: Path) -> list[tuple[str, str, str, bytes]]:
    """Return a ledger and its log."""
    folder = at / "out"
    folder.mkdir()
    figures = {"verdict": "look", "findings": "left foot: slide", "notes": "a, b", "worst": "0.25", "frames": "12"}
    rows = [
        Row("a.bvh", "a.csv", "done", "00ff", "12ab", "", figures),
        Row("b/ö.bvh", "b/ö.csv", "failed", "", "12ab", 'a "quoted"\nreason, with a comma'),
    ]
    with Ledger(folder) as ledger:
        ledger.claim(Item(row.input, at / row.input, row.output) for row in rows)
        for row in rows:
            ledger.record(row, at / row.input, {"/clips/a.bvh": (1, 2, 10, 20, 30)}, {"seconds": 0.1})
        ledger.write()
    events = [json.loads(line) for line in (folder / "ledger.log").read_text(encoding="utf-8").splitlines()]
    always = {"time": 12.5, "path": "/clips/a.bvh"}  # the same in every run
    events = [event | ({"path": always["path"]} if event["event"] == "claim" else always) for event in events]
    log = "".join(json.dumps(event) + "\n" for event in events).encode()
    return [("ledger", "ledger", ".csv", (folder / "ledger.csv").read_bytes()), ("log", "ledger", ".log", log)]


def lerobot_info() -> dict[str, object]:
    """Return the description of a data set of LeRobot with two episodes of the arm."""
    names = [f"joint{k}.pos" for k in range(1, 8)]
    number = {"dtype": "int64", "shape": [1], "names": None}
    return {
        "codebase_version": "v3.0", "robot_type": "arm7", "total_episodes": 2, "total_frames": 6, "total_tasks": 1,
        "chunks_size": 1000, "fps": 30, "splits": {"train": "0:2"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "features": {
            "observation.state": {"dtype": "float32", "shape": [7], "names": names},
            "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            **dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), number),
        },
    }  # fmt: skip


def write_lerobot(root: Path) -> None:
    """Write the data set of ``lerobot_info``; the frames only with pyarrow."""
    stats = {"observation.state": {name: [0.0] * 7 for name in ("min", "max", "mean", "std")} | {"count": [6]}}
    (root / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
    (root / "data" / "chunk-000").mkdir(parents=True)
    (root / "meta" / "info.json").write_text(json.dumps(lerobot_info(), indent=1), encoding="utf-8")
    (root / "meta" / "stats.json").write_text(json.dumps(stats, indent=1), encoding="utf-8")
    if not find_spec("pyarrow"):
        return
    import pyarrow as pa
    import pyarrow.parquet

    arm = sy.bundled("arm7")
    state = pa.FixedSizeListArray.from_arrays(
        pa.array(np.concatenate([arm.random_pose(k).q for k in range(6)]).astype(np.float32)), 7
    )
    episode, frame = np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
    columns = {"observation.state": state, "timestamp": (frame / 30).astype(np.float32), "frame_index": frame}
    table = pa.table(columns | {"episode_index": episode, "index": np.arange(6), "task_index": np.zeros(6, int)})
    pyarrow.parquet.write_table(table, root / "data" / "chunk-000" / "file-000.parquet")
    episodes = pa.table({"episode_index": [0, 1], "length": [3, 3], "data/chunk_index": [0, 0]})
    pyarrow.parquet.write_table(episodes, root / "meta" / "episodes" / "chunk-000" / "file-000.parquet")


LEROBOT = {
    ".info.json": "meta/info.json",
    ".stats.json": "meta/stats.json",
    ".frames.parquet": "data/chunk-000/file-000.parquet",
    ".episodes.parquet": "meta/episodes/chunk-000/file-000.parquet",
}
"""Files of a data set that are changed, by the extension of the seed."""


def _lerobot(at: Path) -> list[tuple[str, str, str, bytes]]:
    """Return the files of a data set of LeRobot."""
    write_lerobot(at / "set")
    there = {ending: at / "set" / name for ending, name in LEROBOT.items()}
    return [
        (f"lerobot{ending}", "lerobot", ending, path.read_bytes()) for ending, path in there.items() if path.exists()
    ]
