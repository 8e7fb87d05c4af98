"""Functions of batches: what goes in comes out with a status, in every form that engines for data sets have."""

import io
import pickle
import sys
import zipfile

import numpy as np
import pytest

import synovia as sy
from archives import read_archive
from cli_runs import assert_refused, run
from synovia.batch import tables
from synovia.batch.columns import TargetColumns
from synovia.batch.folder import run_folder
from synovia.batch.inputs import Item
from synovia.batch.solving import ahead, collect_tables
from synovia.batch.work import work_on
from synovia.jobs import Solve

ARM = sy.bundled("arm7")
FRAMES = np.stack([ARM.random_pose(k).transform("tool") for k in range(24)])
QUATS = sy.Rotation.from_matrix(FRAMES[:, :3, :3]).as_quat()
JOINTS = [name for name in ARM.joint_names if ARM.joints[ARM.index(name)].kind.q_size]


def targets(frames=FRAMES, quats=QUATS):
    parts = zip(("x", "y", "z", "qx", "qy", "qz", "qw"), (*frames[:, :3, 3].T, *quats.T), strict=True)
    return {"id": np.arange(len(frames))} | {f"tool.{word}": column for word, column in parts}


def joint_values(answer):
    return np.stack([np.asarray(answer[name], float) for name in JOINTS], axis=1)


def assert_reached(answer, frames=FRAMES):
    """Every row says that it is reached, and forward kinematics of its joint values agrees."""
    assert list(answer["status"]) == ["REACHED"] * len(frames)
    length, angle = sy.IK(ARM, sy.PoseGoal("tool")).tolerance
    for q, frame in zip(joint_values(answer), frames, strict=True):
        made = sy.Pose(ARM, dict(zip(JOINTS, q.tolist(), strict=True))).transform("tool")
        assert np.linalg.norm(made[:3, 3] - frame[:3, 3]) <= length * 1.001
        turn = sy.Rotation.from_matrix(made[:3, :3].T @ frame[:3, :3]).magnitude()
        assert turn <= angle * 1.001


def test_a_dict_of_columns_is_solved_as_solve_many_does():
    answer = sy.batch.Solve(ARM, simd=False)(targets())
    assert_reached(answer)
    assert answer["id"].tolist() == list(range(24))
    many = sy.IK(ARM, sy.PoseGoal("tool")).solve_many({"tool": FRAMES})
    assert np.abs(joint_values(answer) - many.q).max() < 1e-6  # the quaternions are rounded
    assert (answer["tool.position_error"] <= many.ik.tolerance[0]).all()
    assert sy.batch.Solve(ARM).answer_columns(list(targets())) == list(answer)


@pytest.mark.parametrize(
    "columns",
    [
        {"tool.transform": list(FRAMES)},
        {"tool.transform": FRAMES.reshape(24, 16).tolist()},
        {"tool.position": FRAMES[:, :3, 3], "tool.quat_xyzw": QUATS},
        {"position": FRAMES[:, :3, 3].tolist(), "quat_wxyz": QUATS[:, [3, 0, 1, 2]].tolist()},
    ],
)
def test_every_form_of_targets(columns):
    assert_reached(sy.batch.Solve(ARM, sy.PoseGoal("tool"))(columns))


def test_a_row_that_cannot_be_used_does_not_stop_the_others():
    columns = targets()
    for name, row, value in (("x", 1, np.nan), ("y", 2, np.inf), ("qw", 3, 5.0), ("z", 4, 1e300), ("z", 5, 40.0)):
        columns[f"tool.{name}"] = columns[f"tool.{name}"].copy()
        columns[f"tool.{name}"][row] = value
    answer = sy.batch.Solve(ARM)(columns)
    assert answer["status"][:6].tolist() == ["REACHED", "INVALID", "INVALID", "INVALID", "INVALID", "UNREACHABLE"]
    assert set(answer["status"][6:]) == {"REACHED"}
    assert "finite" in answer["error"][1]
    assert "length 1" in answer["error"][3]
    assert "1e+15" in answer["error"][4]
    assert np.isnan(joint_values(answer)[1:5]).all()
    assert np.isfinite(joint_values(answer)[5:]).all()
    flat = {"tool.transform": [np.diag([1.0, 1.0, -1.0, 1.0]), np.ones((4, 4)), np.eye(4)]}
    answer = sy.batch.Solve(ARM)(flat)
    assert answer["status"][:2].tolist() == ["INVALID", "INVALID"]
    assert "0 0 0 1" in answer["error"][1]


def test_no_rows_and_only_bad_rows():
    none = sy.batch.Solve(ARM)({name: column[:0] for name, column in targets().items()})
    assert all(len(column) == 0 for column in none.values())
    bad = sy.batch.Solve(ARM)({name: np.full(2, np.nan) for name in targets()})
    assert bad["status"].tolist() == ["INVALID"] * 2


def test_columns_that_give_no_target_are_told():
    for columns, words in (
        ({"id": [1]}, "columns of targets"),
        ({"tool.x": [1.0], "tool.y": [1.0]}, "all of x, y, z"),
        ({"tool.x": [1.0], "tool.y": [1.0], "tool.z": [1.0], "tool.position": [[1, 2, 3]]}, "one of these"),
        ({"tool.position": [[1.0, 2.0]]}, "lists of 3 numbers"),
        ({"tool.x": ["far"], "tool.y": [1.0], "tool.z": [1.0]}, "numbers"),
        ({"tool.position": [[1.0, 2.0, 3.0]], "status": ["mine"]}, "'status'"),
        ({"tool.position": [[1.0, 2.0, 3.0]], "id": []}, "the same for all"),
        ([1, 2], "a dict of columns"),
        ({"tool.position": np.ones((2, 3), complex)}, "real numbers, got 'complex128'"),
        ({f"tool.{axis}": np.ones(2, "M8[s]") for axis in "xyz"}, "real numbers"),
    ):
        with pytest.raises(sy.InputError, match=words):
            sy.batch.Solve(ARM)(columns)
    assert not TargetColumns.find(["x", "y", "z"], None).parts


def test_functions_can_be_pickled_and_copies_answer_the_same():
    solve = sy.batch.Solve(ARM, sy.PoseGoal("tool"), "lm", threads=2)
    before = solve(targets())
    after = pickle.loads(pickle.dumps(solve))(targets())
    assert all(np.array_equal(before[name], after[name]) for name in before)


def walk(path, frames=8):
    body = sy.bundled("humanoid").with_root("free")
    q = np.tile(body.rest_pose().q, (frames, 1))
    q[:, 0] += np.linspace(0.0, 0.2, frames)
    sy.formats.write_bvh(sy.Motion(body, q, 30.0), path)
    return path


def test_retarget_and_fit_row_by_row(tmp_path):
    path = walk(tmp_path / "walk.bvh")
    answer = pickle.loads(pickle.dumps(sy.batch.Retarget("humanoid")))(
        {"path": [str(path), str(tmp_path / "none.bvh")], "id": [7, 8]}
    )
    assert answer["status"] == ["done", "failed"]
    assert "does not exist" in answer["error"][1]
    alone = sy.retarget(sy.load_motion(path), sy.bundled("humanoid"))
    assert np.array_equal(answer["q"][0], alone.motion.q)
    assert answer["id"] == [7, 8]
    options = {"velocity": 1.0, "hold_feet": False, "idle_hands": "relaxed", "root_motion": "none"}
    other = sy.batch.Retarget("humanoid", **options)({"path": [str(path)]})
    assert np.array_equal(other["q"][0], sy.retarget(sy.load_motion(path), sy.bundled("humanoid"), **options).motion.q)
    assert not np.array_equal(other["q"][0], answer["q"][0])
    with pytest.raises(sy.errors.UnknownNameError, match=r"no argument 'hold_foot'. Did you mean 'hold_feet'"):
        sy.batch.Retarget("humanoid", hold_foot=False)
    places = alone.motion.positions()[:, -len(sy.bundled("humanoid")) :]
    fitted = sy.batch.Fit("humanoid")({"positions": [places, places[:, :2]], "fps": [30.0, 30.0]})
    assert fitted["status"] == ["done", "failed"]
    assert fitted["median_error"][0] < 1e-3
    for function in (sy.batch.Retarget("humanoid"), sy.batch.Fit("humanoid")):
        with pytest.raises(sy.InputError, match="a column"):
            function({"id": [1]})


def write_csv(path, columns):
    lines = [",".join(columns)]
    lines += [",".join(str(value) for value in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")


def read_csv(path):
    head, *lines = path.read_text().splitlines()
    cells = list(zip(*(line.split(",") for line in lines), strict=True))
    return dict(zip(head.split(","), cells, strict=True))


def test_tables_on_the_command_line(tmp_path):
    columns = targets()
    columns["id"] = np.array([2**60 + k for k in range(24)])  # more digits than a float has
    np.savez(tmp_path / "in.npz", **columns)
    write_csv(tmp_path / "in.csv", columns)
    for ending in ("npz", "csv"):
        ran = run("solve", "arm7", "--targets", tmp_path / f"in.{ending}", "-o", tmp_path / f"out.{ending}", "-j", 1)
        assert ran.code == 0, ran
        assert "reached in 24 of 24 rows" in ran.out
    content = read_archive(tmp_path / "out.npz")
    assert content["id"].tolist() == columns["id"].tolist()
    assert_reached(content)
    text = read_csv(tmp_path / "out.csv")
    assert text["id"] == tuple(str(value) for value in columns["id"])
    assert_reached(text)
    again = run("solve", "arm7", "--targets", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert (again.code, "file exists" in again.err) == (3, True)


def test_bad_tables_leave_nothing_behind(tmp_path):
    bad = {
        "empty.csv": b"",
        "short.csv": b"tool.x,tool.y,tool.z\n1,2\n",
        "words.csv": b"tool.x,tool.y,tool.z\n1,2,far\n",
        "none.csv": b"a,b\n1,2\n",
        "noise.npz": b"PK\x03\x04 noise",
        "table.txt": b"tool.x\n",
    }
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
        ran = run("solve", "arm7", "--targets", tmp_path / name, "-o", tmp_path / "out.npz")
        assert ran.code == 3, (name, ran)
        assert name in ran.err
        assert not list(tmp_path.glob("*out.npz*"))
    np.savez(tmp_path / "objects.npz", a=np.array([{}], object))
    np.savez(tmp_path / "bytes.npz", a=np.zeros(3, "V8"))
    np.savez(tmp_path / "wide.npz", a=np.zeros((3, 10_000)))
    with zipfile.ZipFile(tmp_path / "cut.npz", "w") as archive:  # a header that promises a gigabyte
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**8,)})
        archive.writestr("a.npy", head.getvalue() + bytes(16))
    for name, words in {
        "objects": "numbers or texts",
        "bytes": "numbers or texts",
        "wide": "8192",
        "cut": "16",
    }.items():
        path = tmp_path / f"{name}.npz"
        assert_refused(run("solve", "arm7", "--targets", path, "-o", tmp_path / "out.npz"), path.name, words)


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_texts_that_are_no_unicode_are_refused(ending, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    offsets, broken = arrow.py_buffer(np.array([0, 2], np.int32).tobytes()), arrow.py_buffer(b"\x80a")
    text = arrow.Array.from_buffers(arrow.string(), 1, [None, offsets, broken])
    table = arrow.table({"id": text, **{f"tool.{axis}": [0.3] for axis in "xyz"}})
    path = tmp_path / f"in.{ending}"
    if ending == "parquet":
        import pyarrow.parquet as parquet

        parquet.write_table(table, path)
    else:
        with arrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    assert_refused(run("solve", "arm7", "--targets", path, "-o", tmp_path / "out.csv"), path.name)
    assert not (tmp_path / "out.csv").exists()


class Inline:
    def run(self, task, jobs):
        for job in jobs:
            yield work_on(task, job)


def test_large_tables_are_divided_at_fixed_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 4)
    monkeypatch.setattr("synovia.batch.solving.PART", 8)
    (tmp_path / "in").mkdir()
    np.savez(tmp_path / "in" / "t.npz", **targets())
    (tmp_path / "in" / "broken.npz").write_bytes(b"PK\x03\x04")
    out = tmp_path / "out"
    items = collect_tables([str(tmp_path / "in")], out, None)
    assert [item.output for item in items] == ["broken.npz", "t-00000.npz", "t-00001.npz", "t-00002.npz"]
    task = Solve("arm7", simd=False)
    result = run_folder(task, items, out, engine=Inline())
    assert (result.done, [row.input for row in result.failed]) == (3, ["broken.npz"])
    parts = [read_archive(out / f"t-0000{k}.npz") for k in range(3)]
    whole = task.function()(targets())
    for name in ("id", *JOINTS):
        assert np.array_equal(np.concatenate([part[name] for part in parts]), whole[name])


def test_blocks_do_not_depend_on_how_a_file_is_stored(tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(tables, "BLOCK", 10)
    table = arrow.table(targets())
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    with arrow.ipc.new_file(str(tmp_path / "b.arrow"), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=3):
            writer.write_batch(batch)
    for name in ("a.parquet", "b.arrow"):
        with tables.Source(tmp_path / name) as source:
            assert (source.count, source.names) == (24, table.schema.names)
            assert [block.num_rows for block in source.blocks()] == [10, 10, 4]
            assert arrow.concat_tables(source.blocks((10, 24))).equals(table.slice(10).combine_chunks())
    for name in ("a.parquet", "b.arrow"):
        task = Solve("arm7")
        item = Item(name, tmp_path / name, "out.parquet")
        assert task.work(item, tmp_path / f"{name}.out.parquet")["reached"] == 24
        answer = parquet.read_table(tmp_path / f"{name}.out.parquet")
        assert answer.schema.field("status").type == arrow.string()
        assert answer["error"].null_count == 24
        assert_reached({column: answer[column].to_pylist() for column in answer.column_names})
    (tmp_path / "c.parquet").write_bytes(b"PAR1 noise PAR1")
    with pytest.raises(sy.errors.FormatError, match="is damaged"):
        tables.Source(tmp_path / "c.parquet")


def test_arrow_and_pandas_batches():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(targets())
    solve = sy.batch.Solve(ARM)
    assert_reached(solve(table).to_pydict())
    (batch,) = table.to_batches()
    answer = solve(batch)
    assert isinstance(answer, arrow.RecordBatch)
    lists = arrow.table({"tool.transform": arrow.FixedSizeListArray.from_arrays(FRAMES.ravel(), 16)})
    assert_reached(solve(lists).to_pydict())
    pandas = pytest.importorskip("pandas")
    frame = solve(pandas.DataFrame(targets()))
    assert_reached(frame)
    assert frame["id"].tolist() == list(range(24))


@pytest.mark.filterwarnings("default")
def test_hugging_face_datasets():
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict(targets())
    done = rows.map(sy.batch.Solve(ARM), batched=True, batch_size=10, remove_columns=rows.column_names)
    assert_reached(done.to_dict())


@pytest.mark.filterwarnings("default")
def test_dask():
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    solve = sy.batch.Solve(ARM)
    given = pandas.DataFrame(targets())
    done = frames.from_pandas(given, npartitions=3).map_partitions(solve, meta=solve(given[:0]))
    assert_reached(done.compute(scheduler="sync"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_ray_data_and_the_ray_engine(tmp_path):
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    ray.init(num_cpus=1, log_to_driver=False, include_dashboard=False)
    try:
        rows = ray.data.from_items([{name: column[k] for name, column in targets().items()} for k in range(24)])
        done = rows.map_batches(sy.batch.Solve, fn_constructor_args=(ARM,), batch_size=10, concurrency=1)
        answer = sorted(done.take_all(), key=lambda row: row["id"])
        assert_reached({name: [row[name] for row in answer] for name in answer[0]})
        for name in ("one", "two"):
            (tmp_path / "in" / name).mkdir(parents=True)
            walk(tmp_path / "in" / name / "walk.bvh")
        (tmp_path / "in" / "bad.bvh").write_text("")
        for engine in ("ray", "local"):
            out = tmp_path / engine
            ran = run("convert", tmp_path / "in", "-o", out, "--format", "csv", "--engine", engine, "-j", 1)
            assert "3 inputs: 2 done, 1 failed" in ran.err
        found = {
            path.name: path.read_bytes()
            for path in (tmp_path / "ray").iterdir()
            if path.name != "ledger.log" and path.is_file()
        }
        assert all((tmp_path / "local" / name).read_bytes() == data for name, data in found.items())
    finally:
        ray.shutdown()


def test_values_made_ahead_end_with_their_error_and_their_thread():
    def values():
        yield 1
        raise ValueError("two")

    made = ahead(values())
    assert next(made) == 1
    with pytest.raises(ValueError, match="two"):
        next(made)
    endless = ahead(zero for zero in iter(int, 1))
    assert next(endless) == 0
    endless.close()


def test_nothing_heavy_is_imported_unless_used():
    import subprocess
    import sys

    code = "import synovia, sys; synovia.batch; print({'pyarrow', 'ray', 'numpy', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "ray", "scipy"} & set(eval(done.stdout))


def test_a_cell_that_is_no_number_spoils_its_row_alone() -> None:
    rows = {f"tool.{axis}": ["0.4", "abc", ""] if axis == "x" else ["0.1", "0.2", "0.3"] for axis in "xyz"}
    answer = sy.batch.Solve("arm7")(rows)
    assert list(answer["status"]) == ["REACHED", "INVALID", "INVALID"]


def test_the_columns_of_clips_do_not_depend_on_what_the_rows_hold(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    path = str(walk(tmp_path / "walk.bvh"))
    body = sy.bundled("humanoid")
    points = np.tile(body.rest_pose().positions, (4, 1, 1)).tolist()
    for function, good, bad in (
        (sy.batch.Retarget("humanoid"), {"path": path}, {"path": None}),
        (sy.batch.Fit("humanoid"), {"positions": points}, {"positions": None}),
    ):
        whole = arrow.Table.from_pylist([good, bad])
        schemas = {str(function(part).schema) for part in (whole, whole[:1], whole[1:], whole[:0])}
        assert len(schemas) == 1
        assert function(whole).column_names == function.answer_columns(whole.column_names)


def test_answer_columns_of_functions_of_clips(tmp_path):
    rows = {"id": [1], "path": [str(walk(tmp_path / "walk.bvh"))]}
    retarget = sy.batch.Retarget("humanoid")
    answer = retarget(rows)
    assert list(answer) == retarget.answer_columns(list(rows))
    assert list(answer) == list(retarget({"id": [1], "path": ["none.bvh"]}))
    assert list(answer) == list(retarget({"id": [], "path": []}))
    assert answer["verdict"][0] in ("good", "look", "failed")
    fit = sy.batch.Fit("humanoid")
    assert list(fit({"positions": [None]})) == fit.answer_columns(["positions"])
    with pytest.raises(sy.InputError, match="a column 'path'"):
        retarget.answer_columns(["id"])
    with pytest.raises(sy.InputError, match="'status'"):
        retarget.answer_columns(["path", "status"])


@pytest.mark.parametrize("function", [sy.batch.Solve("arm7"), sy.batch.Retarget("humanoid")])
@pytest.mark.parametrize("value", ["a.bvh", b"a.bvh", 0.4, {"a": 1}])
def test_a_single_value_is_no_column(function, value):
    name = "path" if isinstance(function, sy.batch.Retarget) else "tool.x"
    with pytest.raises(sy.InputError, match=rf"column '{name}': expected a list with a value for each row"):
        function({name: value})


def test_missing_values_fail_their_rows_with_a_reason(tmp_path):
    path = str(walk(tmp_path / "walk.bvh"))
    answer = sy.batch.Retarget("humanoid")({"path": [None, path, float("nan"), 7, ""]})
    assert answer["status"] == ["failed", "done", "failed", "failed", "failed"]
    assert all("expected the path of a clip file" in answer["error"][k] for k in (0, 2, 3, 4))
    assert "NoneType" not in "".join(answer["error"])
    places = np.tile(sy.bundled("humanoid").rest_pose().positions, (4, 1, 1))
    gaps = [[None if k == 3 else point.tolist() for k, point in enumerate(frame)] for frame in places]
    given = {"positions": [None, gaps, [[[1.0, 2.0]]], "points"], "fps": [30.0, None, 30.0, 30.0]}
    fitted = sy.batch.Fit("humanoid", fps=25.0)(given)
    assert fitted["status"] == ["failed", "done", "failed", "failed"]
    assert "positions are missing" in fitted["error"][0]
    assert fitted["fps"][1] == 25.0
    assert "NoneType" not in "".join(fitted["error"])
    targets = {f"tool.{axis}": [0.4, None, 0.2] for axis in "xyz"}
    assert sy.batch.Solve("arm7")(targets)["status"].tolist()[1] == "INVALID"
    lists = {"tool.position": [[0.4, 0.1, 0.5], None, [0.4, 0.1], [0.4, None, 0.1], "abc"]}
    solved = sy.batch.Solve("arm7")(lists)
    assert solved["status"].tolist() == ["REACHED", *["INVALID"] * 4]
    assert all("3 finite numbers" in reason for reason in solved["error"][1:])


def test_missing_values_of_arrow_and_pandas_are_invalid_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({f"tool.{axis}": pandas.array([0.4, None], "Float64") for axis in "xyz"})
    assert sy.batch.Solve("arm7")(frame)["status"].tolist()[1] == "INVALID"
    retargeted = sy.batch.Retarget("humanoid")(pandas.DataFrame({"path": [None, pandas.NA]}))
    assert retargeted["status"].tolist() == ["failed", "failed"]
    arrow = pytest.importorskip("pyarrow")
    uneven = arrow.table({"tool.position": [[0.4, 0.1], [0.5, 0.4, 0.1, 0.5], [0.4, 0.1, 0.5]]})
    assert sy.batch.Solve("arm7")(uneven)["status"].to_pylist()[:2] == ["INVALID", "INVALID"]


def test_wrong_settings_are_told_when_a_function_is_made():
    fit, retarget = sy.batch.Fit, sy.batch.Retarget
    for make, error, words in (
        (lambda: fit("humanoid", ["left_hnad"]), sy.errors.UnknownNameError, "left_hnad"),
        (lambda: fit("humanoid", "left_hand"), sy.InputError, "a list of joints"),
        (lambda: fit("humanoid", fps=0.0), sy.InputError, "fps"),
        (lambda: fit("humanoid", smoothness=-1.0), sy.InputError, "smoothness"),
        (lambda: retarget("arm7"), sy.InputError, "no part of arm7"),
        (lambda: retarget("humanoid", {"hips": ("a", "hisp")}), sy.errors.UnknownNameError, "hisp"),
        (lambda: fit("none.glb"), sy.errors.FileError, "none.glb"),
    ):
        with pytest.raises(error, match=words):
            make()


def test_each_row_starts_from_its_own_pose():
    rows = targets()
    poses = np.stack([ARM.random_pose(k).q for k in range(24)])
    starts = {f"start.{name}": poses[:, ARM.q_slice(name).start] for name in JOINTS}
    solve = sy.batch.Solve(ARM, simd=False)
    answer = solve(rows | starts)
    assert_reached(answer)
    assert np.abs(joint_values(answer) - np.stack([list(column) for column in starts.values()], axis=1)).max() < 1e-3
    assert not [name for name in answer if name.startswith("start.")]
    assert list(answer) == solve.answer_columns(list(rows | starts))
    one = sy.IK(ARM, sy.PoseGoal("tool")).solve(FRAMES[3], start={"joint2": 0.3})
    some = sy.batch.Solve(ARM, sy.PoseGoal("tool"), simd=False)({"tool.transform": [FRAMES[3]], "start.joint2": [0.3]})
    assert np.array_equal(joint_values(some)[0], [one.pose[name] for name in JOINTS])


def test_a_start_that_cannot_be_used_is_an_invalid_row():
    rows = {name: column[:3] for name, column in targets().items()}
    answer = sy.batch.Solve(ARM)(rows | {"start.joint1": [0.1, None, float("inf")]})
    assert answer["status"].tolist() == ["REACHED", "INVALID", "INVALID"]
    assert "start" in answer["error"][1]
    with pytest.raises(sy.errors.UnknownNameError, match=r"start\.jiont1.*start\.joint1"):
        sy.batch.Solve(ARM)(rows | {"start.jiont1": [0.1, 0.2, 0.3]})
    body = sy.bundled("humanoid")
    hand = {f"left_hand.{axis}": [0.4, 0.4] for axis in "xyz"}
    turn = {
        f"start.{next(name for name in body.joint_names if 'spine' in name)}.{word}": [0.0, 0.0]
        for word in ("qx", "qy", "qz")
    }
    name = next(iter(turn)).rpartition(".")[0]
    answer = sy.batch.Solve(body)(hand | turn | {f"{name}.qw": [1.0, 3.0]})
    assert answer["status"].tolist()[1] == "INVALID"
    assert answer["status"].tolist()[0] != "INVALID"
    assert "unit quaternion" in answer["error"][1]


def test_start_poses_in_a_table_on_the_command_line(tmp_path):
    poses = np.stack([ARM.random_pose(k).q for k in range(24)])
    write_csv(tmp_path / "in.csv", targets() | {f"start.{name}": poses[:, ARM.q_slice(name).start] for name in JOINTS})
    ran = run("solve", "arm7", "--targets", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "-j", 1)
    assert ran.code == 0, ran.err
    answer = read_csv(tmp_path / "out.csv")
    assert_reached(answer)
    assert max(map(float, answer["steps"])) <= 2


def test_an_archive_with_other_files_is_no_table(tmp_path):
    np.savez(tmp_path / "a.npz", **targets())
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("notes.txt", "hello")
    with pytest.raises(sy.errors.FormatError, match=r"notes\.txt"):
        tables.Source(tmp_path / "a.npz")


def test_simd_is_chosen_for_each_problem():
    solve = sy.batch.Solve(ARM)
    assert_reached(solve(targets()))
    both = solve({"tool.position": FRAMES[:2, :3, 3], "joint4.position": FRAMES[:2, :3, 3]})
    assert "INVALID" not in both["status"]


def test_columns_of_no_joint_are_kept_whatever_their_last_word():
    answer = sy.batch.Solve(ARM)(targets() | {"camera.x": np.arange(24), "mouse.qw": np.zeros(24), 5: np.ones(24)})
    assert_reached(answer)
    assert answer["camera.x"].tolist() == list(range(24))
    assert {"mouse.qw", "5"} <= set(answer)
    with pytest.raises(sy.InputError, match=r"keep: expected a list of columns, got 'id'. Write \['id'\]"):
        sy.batch.Solve(ARM, keep="id")


def test_times_are_no_targets():
    arrow = pytest.importorskip("pyarrow")
    with pytest.raises(sy.InputError, match="real numbers, got 'datetime64"):
        sy.batch.Solve(ARM)(arrow.table({f"tool.{axis}": arrow.array([1], arrow.timestamp("s")) for axis in "xyz"}))


def solved(folder, name, columns, output):
    """Solve a table that is written to a file; return the path of the answers."""
    path = folder / name
    if path.suffix == ".npz":
        np.savez(path, **columns)
    elif path.suffix == ".csv":
        write_csv(path, columns)
    else:
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    Solve("arm7").work(Item(name, path, output), folder / output)
    return folder / output


PLACES = FRAMES[:3, :3, 3].tolist()


def test_columns_that_are_kept_stay_as_they_are(tmp_path):
    text = solved(tmp_path, "a.npz", {"tool.position": PLACES, "id": np.array([b"a", b"bc", b""])}, "a.csv")
    assert read_csv(text)["id"] == ("a", "bc", "")
    text = solved(tmp_path, "b.npz", {"tool.position": PLACES, "t": np.arange(3).astype("M8[ns]")}, "b.csv")
    assert read_csv(text)["t"][1] == "1970-01-01T00:00:00.000000001"
    parquet = pytest.importorskip("pyarrow.parquet")
    path = solved(tmp_path, "c.npz", {"tool.position": PLACES, "more": np.eye(3)}, "c.parquet")
    assert parquet.read_table(path)["more"].to_pylist() == np.eye(3).tolist()
    whole = {"tool.position": PLACES, "id": [2**60 + 1, None, 3], "tags": [["a"], [], ["b", "c"]]}
    assert f"\n{2**60 + 1},['a']," in solved(tmp_path, "d.parquet", whole, "d.csv").read_text()
    with pytest.raises(sy.errors.FormatError, match=r"column 'tags': expected lists of the same length in all rows"):
        solved(tmp_path, "e.parquet", whole, "e.npz")
    path = solved(tmp_path, "f.npz", {"tool.position": PLACES, "no": np.zeros(3, complex)}, "f.csv")
    assert read_csv(path)["no"][0] == "0j"
    with pytest.raises(sy.errors.FormatError, match="a column cannot be stored"):
        solved(tmp_path, "g.npz", {"tool.position": PLACES, "no": np.zeros(3, complex)}, "g.parquet")


def test_blocks_of_another_type_are_not_mixed_in_an_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 1)
    with pytest.raises(sy.errors.FormatError, match="column 'id' changes its type from block to block"):
        solved(tmp_path, "a.parquet", {"tool.position": PLACES, "id": [1, None, 3]}, "a.npz")
    path = solved(tmp_path, "b.parquet", {"tool.position": PLACES, "id": ["a", None, "bcd"]}, "b.npz")
    assert read_archive(path)["id"].tolist() == ["a", "", "bcd"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_columns_of_one_name_are_refused(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        path.write_text("tool.x,tool.y,tool.z,tool.x\n0.4,0.1,0.5,9\n")
    else:
        arrow = pytest.importorskip("pyarrow")
        names = ["tool.x", "tool.y", "tool.z", "tool.x"]
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table([[0.4], [0.1], [0.5], [9.0]], names=names), path)
    with pytest.raises(sy.errors.FormatError, match=r"names of columns: expected each name once, got \['tool.x'\]"):
        tables.Source(path)


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet"])
def test_an_answer_that_is_interrupted_leaves_nothing(ending, tmp_path):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    writing = tables.open_sink(tmp_path / f"a.{ending}")
    writing.__enter__().write({"id": np.arange(3), "text": np.array(["a", "b", None], object)})
    assert writing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None) is False
    assert not list(tmp_path.iterdir())


def test_without_pyarrow_the_error_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "a.parquet"
    with pytest.raises(sy.errors.MissingExtraError) as raised, tables.open_sink(path):
        pass
    assert str(raised.value).startswith(f"{path}: .parquet files need pyarrow.")
    assert not list(tmp_path.iterdir())


def test_a_table_that_cannot_be_read_is_a_row(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "gone.npz").symlink_to(tmp_path / "nowhere.npz")
    np.savez(tmp_path / "in" / "good.npz", **targets())
    items = collect_tables([str(tmp_path / "in")], tmp_path / "out", None)
    result = run_folder(Solve("arm7"), items, tmp_path / "out", engine=Inline())
    assert (result.done, [row.error for row in result.failed]) == (1, ["gone.npz: file does not exist"])


def test_a_goal_file_that_cannot_be_read_is_told(tmp_path):
    np.savez(tmp_path / "a.npz", **targets())
    (tmp_path / "bad.toml").write_bytes(b"# caf\xe9\n")
    for name in ("bad.toml", "none.toml"):
        ran = run(
            "solve", "arm7", "--goals", tmp_path / name, "--targets", tmp_path / "a.npz", "-o", f"{tmp_path}/out/"
        )
        assert ran.code in (2, 3), ran
        assert name in ran.err
        assert "Traceback" not in ran.err
