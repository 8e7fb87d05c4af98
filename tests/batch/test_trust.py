"""Data sets can be trusted: nothing stale counts as done, nothing of others is overwritten, memory is bounded."""

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run, run_apart
from synovia.batch import inputs
from synovia.batch.folder import run_folder
from synovia.batch.ledger import Ledger
from synovia.batch.work import work_on

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and names of POSIX")


class Inline:
    """An engine without processes."""

    def __init__(self):
        self.done = []

    def run(self, task, jobs):
        task.prepare()
        for job in list(jobs):
            self.done.append(job.item.name)
            yield work_on(task, job)


class Copy:
    """A task that copies texts; ``broken`` says what goes wrong instead."""

    name = "copy"

    def __init__(self, tag="", broken=None):
        self.tag, self.broken = tag, broken

    def settings(self):
        return {"tag": self.tag}

    def prepare(self):
        pass

    def work(self, item, output):
        if self.broken is not None:
            self.broken(item, output)
        output.write_text(item.path.read_text() + self.tag)
        return {}

    def picture(self, output, source):
        return None


def copy(source, out, task=None, **options):
    """Copy a folder of texts; return the run, and the names of the inputs that were worked on."""
    engine = Inline()
    items = inputs.collect([str(source)], out, [".txt"])
    return run_folder(task or Copy(), items, out, engine=engine, **options), engine.done


def table(folder):
    with (folder / "ledger.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def texts(folder, **contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def rewritten(path, data):
    """Replace the content of a file; size and time stay."""
    before = path.stat()
    assert len(data) == before.st_size
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# --- nothing stale ---------------------------------------------------------------------------------------------------


def test_content_decides_where_size_and_time_are_equal(tmp_path):
    source, out = texts(tmp_path / "in", a="one", b="two"), tmp_path / "out"
    copy(source, out)
    rewritten(source / "a.txt", b"six")
    result, done = copy(source, out)
    assert (done, result.done, result.same) == (["a.txt"], 1, 1)
    assert (out / "a.txt").read_text() == "six"
    for path in source.iterdir():
        os.utime(path)  # touched, but the same
    assert copy(source, out)[1] == []
    shutil.copytree(source, tmp_path / "moved")
    assert copy(tmp_path / "moved", out)[1] == [], "the same data set at another place"


ARM = """<mujoco><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" range="-1 1" limited="true"/><geom size="0.1"/>
    <body name="hand" pos="0 0 {length}"><joint name="elbow" axis="0 1 0"/><geom size="0.1"/></body></body>
</worldbody></mujoco>"""


def test_files_that_a_model_includes_are_part_of_it(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "parts").mkdir()
    nested = tmp_path / "parts" / "arm.xml"
    nested.write_text(ARM.format(length=1.0))
    (tmp_path / "robot.xml").write_text('<mujoco><include file="middle.xml"/></mujoco>')
    (tmp_path / "middle.xml").write_text('<mujoco><include file="parts/arm.xml"/></mujoco>')
    np.savez(tmp_path / "t.npz", **{"hand.x": [0.0], "hand.y": [0.0], "hand.z": [0.8]})
    arguments = ("solve", tmp_path / "robot.xml", "--targets", tmp_path / "t.npz", "-o", f"{tmp_path}/out/")
    assert "1 done" in run(*arguments).err
    assert "0 done, 1 done before" in run(*arguments).err
    before = (tmp_path / "out" / "t.npz").read_bytes()
    rewritten(nested, ARM.format(length=2.0).encode())
    assert "1 done," in run(*arguments).err
    assert (tmp_path / "out" / "t.npz").read_bytes() != before


def split_gltf(folder):
    """Write a clip of a body as glTF whose buffer is a file beside it."""
    body = sy.bundled("humanoid").with_root("free")
    q = np.tile(body.rest_pose().q, (4, 1))
    q[:, 0] = np.linspace(0.0, 1.0, 4)
    folder.mkdir(parents=True, exist_ok=True)
    whole = folder / "whole.glb"
    sy.save_motion(sy.Motion(body, q, 30.0), whole)
    data = whole.read_bytes()
    whole.unlink()
    size = int.from_bytes(data[12:16], "little")
    document = json.loads(data[20 : 20 + size])
    document["buffers"][0]["uri"] = "walk%20data.bin"
    (folder / "walk.gltf").write_text(json.dumps(document))
    (folder / "walk data.bin").write_bytes(data[28 + size :])
    return folder


def test_buffers_of_a_clip_are_part_of_it(tmp_path):
    source = split_gltf(tmp_path / "in")
    arguments = ("convert", source, "-o", tmp_path / "out", "--format", "npz", "-j", 1)
    assert "1 done, 0 failed" in run(*arguments).err
    assert "0 done, 1 done before" in run(*arguments).err
    buffer = source / "walk data.bin"
    data = buffer.read_bytes()
    place = np.float32(2.0 / 3.0).tobytes()  # of the root
    assert place in data
    rewritten(buffer, data.replace(place, np.float32(0.5).tobytes()))
    before = (tmp_path / "out" / "walk.npz").read_bytes()
    assert "1 done, 0 failed" in run(*arguments).err
    assert (tmp_path / "out" / "walk.npz").read_bytes() != before
    buffer.rename(tmp_path / "away.bin")
    assert "0 done, 1 failed" in run(*arguments).err
    (tmp_path / "away.bin").rename(buffer)
    assert "1 done, 0 failed" in run(*arguments).err, "the buffer is back"


def test_files_of_a_model_by_format(tmp_path):
    from synovia.io.load import companions_of

    source = split_gltf(tmp_path / "gltf")
    assert companions_of(source / "walk.gltf") == (source.resolve() / "walk data.bin",)
    robot = tmp_path / "urdf" / "robot.urdf"
    (robot.parent / "meshes").mkdir(parents=True)
    mesh = robot.parent / "meshes" / "a.stl"
    mesh.write_bytes(b"solid a\nendsolid a\n")
    uris = ("package://robot/meshes/a.stl", "meshes/gone.stl")
    shapes = "".join(f"<visual><geometry><mesh filename='{uri}'/></geometry></visual>" for uri in uris)
    robot.write_text(f"<robot name='r'><link name='base'>{shapes}</link></robot>")
    found = companions_of(robot)
    assert mesh.resolve() in [path.resolve() for path in found]
    assert any(path.name == "gone.stl" for path in found), "a file that appears later counts, too"
    lone = tmp_path / "walk.bvh"
    lone.write_text("HIERARCHY")
    assert companions_of(lone) == ()
    assert [path.name for path in companions_of(tmp_path / "none.urdf")] == ["none.loops.toml", "none.srdf"]


@pytest.mark.parametrize("damage", [b"", b"on", b"ONE"])
def test_an_output_that_was_changed_is_made_again(tmp_path, damage):
    source, out = texts(tmp_path / "in", a="one", b="two"), tmp_path / "out"
    copy(source, out)
    (out / "a.txt").write_bytes(damage)
    result, done = copy(source, out)
    assert (done, result.done) == (["a.txt"], 1)
    assert (out / "a.txt").read_text() == "one"
    rewritten(out / "b.txt", b"TWO")
    assert copy(source, out)[1] == ["b.txt"]
    for path in out.glob("*.txt"):
        os.utime(path)
    assert copy(source, out)[1] == []
    (out / "ledger.log").unlink()
    (out / "a.txt").write_bytes(damage)
    assert copy(source, out)[1] == ["a.txt"], "the ledger knows its outputs without the log, too"


def test_an_error_of_the_surroundings_is_tried_again(tmp_path):
    source, out = texts(tmp_path / "in", a="one"), tmp_path / "out"

    def unmounted(item, output):
        raise FileNotFoundError(2, "No such file or directory", str(tmp_path / "scratch"))

    def told(item, output):
        try:
            unmounted(item, output)
        except OSError as error:
            raise sy.errors.FileError("cannot be read (Stale file handle)", where="mesh.stl") from error

    def missing(item, output):
        raise sy.errors.MissingExtraError("needs a package")

    def memory(item, output):
        raise MemoryError

    def wrong(item, output):
        raise sy.errors.FormatError("joint 'hips' is not closed", where=str(item.path))

    for broken in (unmounted, told, missing, memory):
        result, done = copy(source, out, Copy(broken=broken))
        assert (done, len(result.failed)) == (["a.txt"], 1)
    result, done = copy(source, out)
    assert (done, result.failed) == (["a.txt"], [])
    os.utime(source / "a.txt")
    (out / "a.txt").unlink()
    for expected in (["a.txt"], []):
        assert copy(source, out, Copy(broken=wrong))[1] == expected, "the input is the reason: the same happens again"


def test_a_work_folder_that_vanishes_is_no_failure_of_an_input(tmp_path):
    source, out = texts(tmp_path / "in", a="one", b="two", c="three"), tmp_path / "out"

    def cleaned(item, output):
        if item.name == "a.txt":
            shutil.rmtree(output.parent)

    result, _ = copy(source, out, Copy(broken=cleaned))
    assert [row.input for row in result.failed] in ([], ["a.txt"])
    assert (out / "b.txt").read_text() == "two"
    result, done = copy(source, out)
    assert result.failed == []
    assert set(done) <= {"a.txt"}


def test_an_output_folder_that_vanishes_ends_the_run(tmp_path):
    source, out = texts(tmp_path / "in", a="one", b="two"), tmp_path / "out"

    def gone(item, output):
        if item.name == "a.txt":
            shutil.rmtree(out)

    with pytest.raises(sy.errors.FileError, match="out"):
        copy(source, out, Copy(broken=gone))
    result, done = copy(source, out)
    assert (done, result.failed) == (["a.txt", "b.txt"], [])


# --- nothing overwritten ---------------------------------------------------------------------------------------------


def test_a_second_input_of_the_same_name_is_refused(tmp_path):
    first, second, out = texts(tmp_path / "A", walk="one"), texts(tmp_path / "B", walk="two"), tmp_path / "out"
    copy(first, out)
    ledger = (out / "ledger.csv").read_bytes()
    with pytest.raises(sy.errors.FileError, match=r"walk\.txt.*another folder.*--force"):
        copy(second, out)
    assert (out / "walk.txt").read_text() == "one"
    assert (out / "ledger.csv").read_bytes() == ledger
    (first / "walk.txt").write_text("three")
    assert copy(first, out)[1] == ["walk.txt"], "the same input, changed"
    (tmp_path / "link").symlink_to(first)
    (first / "walk.txt").write_text("four")
    assert copy(tmp_path / "link", out)[1] == ["walk.txt"], "the same input by another way"
    assert copy(second, out, force=True)[1] == ["walk.txt"]
    assert (out / "walk.txt").read_text() == "two"


@pytest.mark.parametrize("command", ["convert", "solve"])
def test_a_second_input_of_the_same_name_on_the_command_line(tmp_path, command):
    out = tmp_path / "out"
    for k, name in enumerate("AB"):
        (tmp_path / name).mkdir()
        if command == "solve":
            np.savez(tmp_path / name / "t.npz", **{"tool.x": [0.1 * k], "tool.y": [0.1], "tool.z": [0.5]})
        else:
            body = sy.bundled("arm7")
            q = np.linspace(body.rest_pose().q, body.random_pose(k).q, 5)
            sy.save_motion(sy.Motion(body, q, 30.0), tmp_path / name / "t.npz")
    if command == "solve":
        given = [("solve", "arm7", "--targets", tmp_path / name / "t.npz", "-o", f"{out}/") for name in "AB"]
    else:
        given = [
            ("convert", tmp_path / name / "t.npz", "-o", f"{out}/", "--format", "csv", "--model", "arm7")
            for name in "AB"
        ]
    assert "1 done" in run(*given[0]).err
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert_refused(run(*given[1]), "--force", "A")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert "1 done" in run(*given[1], "--force").err


def test_inputs_that_differ_in_case_or_ending_are_kept_apart(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name in ("Walk.txt", "walk.txt", "walk.TXT"):
        (folder / name).write_text(name)
    different = len(list(folder.iterdir()))
    result, _ = copy(folder, out)
    assert result.done == different
    assert len([path for path in out.iterdir() if path.suffix.lower() == ".txt"]) == different
    items = [inputs.Item(output, folder / "walk.txt", output) for output in ("a.txt", "a.txt/b.txt")]
    with pytest.raises(sy.errors.FileError, match="same output"):  # a folder and a file of one name
        run_folder(Copy(), items, tmp_path / "other", engine=Inline())
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "walk.txt").write_text("1")
    (tmp_path / "one" / "walk.md").write_text("2")
    for ending in (".txt", ".md"):
        items = inputs.collect([str(tmp_path / "one" / f"walk{ending}")], tmp_path / "both", [ending], ".json")
        if ending == ".txt":
            run_folder(Copy(), items, tmp_path / "both", engine=Inline())
        else:
            with pytest.raises(sy.errors.FileError, match=r"walk\.json"):
                run_folder(Copy(), items, tmp_path / "both", engine=Inline())
    assert (tmp_path / "both" / "walk.json").read_text() == "1"


def test_where_the_disk_takes_names_of_different_case_for_one_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("synovia.batch.folder._folds_case", lambda folder: True)
    items = [inputs.Item(name, tmp_path / name, name) for name in ("Walk.txt", "walk.txt")]
    with pytest.raises(sy.errors.FileError, match=r"same output.*walk\.txt"):
        run_folder(Copy(), items, tmp_path / "out", engine=Inline())


@pytest.mark.parametrize("name", ["summary.html", "ledger.csv", "ledger.parquet", "ledger.log", ".unfinished"])
def test_files_and_folders_of_a_user_with_names_of_the_ledger(tmp_path, name):
    source, out = texts(tmp_path / "in", a="one"), tmp_path / "out"
    if name == "ledger.parquet":
        pytest.importorskip("pyarrow")
    out.mkdir()
    if name != ".unfinished":
        for content in ("mine", "name,value\n", ""):
            if not content and name == "ledger.log":  # that of a run that was killed before its first result
                continue
            (out / name).write_text(content)
            with pytest.raises(sy.SynoviaError, match=f"{name}.*--force"):
                copy(source, out)
            assert [path.name for path in out.iterdir()] == [name]
            assert (out / name).read_text() == content
        assert copy(source, out, force=True)[1] == ["a.txt"]
        assert copy(source, out)[1] == []
        shutil.rmtree(out)
        out.mkdir()
    (out / name).mkdir()
    (out / name / "mine").write_text("mine")
    for options in ({}, {"force": True}):
        with pytest.raises(sy.errors.FileError, match=f"{name}.*folder"):
            copy(source, out, **options)
        assert (out / name / "mine").read_text() == "mine"


def test_folders_of_inputs_with_names_of_the_ledger(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    names = ("summary.html", "ledger.csv", "Ledger.CSV", "ledger.parquet", "ledger.log", "ledger.1-of-2.csv")
    for name in names:
        texts(source / name, a=name)
    texts(source, **{"ledger.1-of-3": "three"})
    result, _ = copy(source, out)
    assert (result.failed, result.done) == ([], len({path.name for path in source.iterdir()}))
    assert copy(source, out)[1] == []
    assert {row["input"] for row in table(out)} >= {"summary.html/a.txt", "ledger.1-of-3.txt"}


def test_a_run_that_cannot_begin_leaves_nothing(tmp_path):
    source, out = texts(tmp_path / "in", a="one"), tmp_path / "out"

    class Wrong(Copy):
        def prepare(self):
            raise sy.InputError("model", expected="a body with legs")

    with pytest.raises(sy.InputError):
        copy(source, out, Wrong())
    assert not out.exists()
    copy(source, out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.name != "ledger.log"}
    texts(source, b="two")
    with pytest.raises(sy.InputError):
        copy(source, out, Wrong("other"))
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.name != "ledger.log"} == before
    assert copy(source, out)[1] == ["b.txt"]


# --- names -----------------------------------------------------------------------------------------------------------

NAMES = [
    "a\rb", "a\nb", "a\r\nb", "a\tb", "a\x1b[31mb", 'a"b', "a'b,c", "a\\b", "a\\x0db", "a\u2028b", "a\x85b", " a ",
    "=1+1", "é", "e\u0301", "日本", "\u200fa", "😀", "a&b<c>", "%41", "#", "\\", "a\\nb",
]  # fmt: skip


@posix
def test_any_name_is_a_row_that_can_be_read_back(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    names = list(NAMES)
    if sys.platform == "linux":
        names.append(os.fsdecode(b"caf\xe9"))
    for k, name in enumerate(names):
        (source / f"{name}.txt").write_text(str(k))
    (source / f"{names[0]} wrong.txt").write_bytes(b"\xff")
    count = len(names) + 1
    result, _ = copy(source, out)
    assert (len(result.rows), result.done) == (count, len(names))
    lines = (out / "ledger.csv").read_bytes().decode()
    assert len(lines.splitlines()) == count + 1, "a row is a line"
    assert len({row["input"] for row in table(out)}) == count
    assert copy(source, out)[1] == []
    (out / "ledger.log").unlink()
    result, done = copy(source, out)
    assert (done, len(result.rows)) == ([], count), "the table alone has the names, too"
    with Ledger(out) as ledger:
        assert {row.input for row in ledger.sorted_rows()} == {path.name for path in source.iterdir()}
    assert "summary" in (out / "summary.html").read_text() or (out / "summary.html").exists()


# --- signals ---------------------------------------------------------------------------------------------------------


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def slow_run(tmp_path):
    """Start a batch of two processes whose second input never ends; return it and the processes."""
    source, out, marks = texts(tmp_path / "in", a="one", b="busy", c="busy"), tmp_path / "out", tmp_path / "marks"
    marks.mkdir()
    code = (
        "import sys; from dataclasses import replace; from deadly import Busy\n"
        "from synovia.cli.app import main; from synovia.jobs.verbs import convert\n"
        "convert.VERB = replace(convert.VERB, jobs=(Busy,))\n"
        "sys.exit(main())"
    )
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path, "SYNOVIA_MARKS": str(marks)}
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
        [sys.executable, "-c", code, "convert", str(source), "-o", str(out), "--format", "csv", "-j", "2"],
        env=env, stderr=said, start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: len(list(marks.glob("busy-*"))) == 2 or process.poll() is not None)
    assert process.poll() is None, (tmp_path / "said").read_text()
    return process, [int(path.name.partition("-")[2]) for path in marks.glob("busy-*")], source, out


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGKILL, -signal.SIGKILL)],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_signal_ends_the_run_and_its_processes(tmp_path, how, code):
    process, workers, source, out = slow_run(tmp_path)
    wait_for(lambda: b'"done"' in (out / "ledger.log").read_bytes())
    process.send_signal(how)
    assert process.wait(30) == code
    said = (tmp_path / "said").read_text()
    wait_for(lambda: not any(map(alive, workers)), 10)
    if how is not signal.SIGKILL:
        assert "run the same command again" in said
        assert "Traceback" not in said
        assert [row["status"] for row in table(out)] == ["done"]
        assert not list(out.glob(".unfinished*"))
    for name in "bc":
        (source / f"{name}.txt").write_text("end")
    with Ledger(out) as ledger:
        assert [row.input for row in ledger.sorted_rows()] == ["a.txt"]


ENDED = """
import os, signal, sys, time
import synovia.io.load as load
from synovia.cli.app import main
def stop(path):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)
load.format_of = stop
sys.exit(main())
"""


@posix
def test_sigterm_ends_other_commands_as_ctrl_c_does(tmp_path):
    (tmp_path / "a.bvh").write_text("HIERARCHY")
    command = [sys.executable, "-c", ENDED, "inspect", str(tmp_path / "a.bvh")]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode, b"Traceback" in done.stderr) == (143, False), done.stderr


# --- memory ----------------------------------------------------------------------------------------------------------

MEASURED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (7 * 2**30, 7 * 2**30))  # the machine has more to do
try:
    from synovia.cli import main
    code = main(sys.argv[1:])
finally:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:  # a child inherits the peak of the process that started it
        lines = dict(line.split(":") for line in open("/proc/self/status"))
        peak = int(lines["VmHWM"].split()[0])
    except OSError:
        pass
    print("peak", peak // 1024)
sys.exit(code)
"""


def measured(*arguments):
    """Run a command in a process of its own; return its exit code, what it wrote, and its peak memory in MB."""
    command = [sys.executable, "-c", MEASURED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
    return done.returncode, done.stderr, int(done.stdout.rpartition("peak ")[2])


XYZ = ("tool.x", "tool.y", "tool.z")


def places(count):
    return np.random.default_rng(0).uniform(-0.4, 0.4, (count, 3))


def long_cell(folder):
    path = folder / "t.csv"
    with path.open("w") as file:
        file.write(",".join(XYZ) + ",note\n")
        for k, row in enumerate(places(100_000).round(3).tolist()):
            file.write(f"{row[0]},{row[1]},{row[2]},{'x' * 20_000 if k == 70_000 else 'ok'}\n")
    return path


def wide_csv(folder, columns=5000, rows=1000):
    path = folder / "t.csv"
    line = "0.1,0.2,0.3," + ",".join(["1"] * columns) + "\n"
    path.write_text(",".join((*XYZ, *(f"c{k}" for k in range(columns)))) + "\n" + line * rows)
    return path


def very_wide_csv(folder):
    return wide_csv(folder, 400_000, 2)


def commas(folder):
    path = folder / "t.csv"
    path.write_text(",".join(XYZ) + "\n0.1,0.2,0.3\n" + "," * 50_000_000 + "\n")
    return path


def quoted_commas(folder):
    path = folder / "t.csv"
    path.write_text(",".join(XYZ) + "\n0.1,0.2,0.3\n" + (("," * 1_000_000 + '"\n"') * 30) + "\n")
    return path


def tall_csv(folder):
    path = folder / "t.csv"
    rows = places(300_000).round(4)
    np.savetxt(path, rows, delimiter=",", header=",".join(XYZ), comments="", fmt="%.4f")
    return path


def arrow_table(rows, **columns):
    arrow = pytest.importorskip("pyarrow")
    return arrow.table({**dict(zip(XYZ, places(rows).T, strict=True)), **columns})


def repeated(rows, value):
    """A column of one value, whose dictionary has it once."""
    arrow = pytest.importorskip("pyarrow")
    return arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(rows, np.int32)), arrow.array([value]))


def dictionary_parquet(folder):
    parquet, path = pytest.importorskip("pyarrow.parquet"), folder / "t.parquet"
    arrow = pytest.importorskip("pyarrow")
    rows = 100_000
    flat = {name: repeated(rows, 0.1) for name in XYZ}
    schema = arrow.schema([*((name, arrow.float64()) for name in XYZ), ("note", arrow.string())])
    with parquet.ParquetWriter(path, schema) as file:
        block = arrow.table({**flat, "note": repeated(rows, "x" * 20_000)}).slice(0, 5000)
        block = block.cast(schema)
        for _ in range(rows // 5000):
            file.write_table(block, row_group_size=rows)
    return path


def plain_parquet(folder):
    parquet, path = pytest.importorskip("pyarrow.parquet"), folder / "t.parquet"
    content = arrow_table(20_000, note=["x" * 20_000] * 20_000)
    parquet.write_table(content, path, use_dictionary=False, compression="zstd", row_group_size=20_000)
    return path


def lists_parquet(folder):
    arrow = pytest.importorskip("pyarrow")
    parquet, path = pytest.importorskip("pyarrow.parquet"), folder / "t.parquet"
    zeros = np.zeros(40_000_000)
    lists = arrow.ListArray.from_arrays(arrow.array(np.linspace(0, len(zeros), 2001).astype(np.int32)), zeros)
    parquet.write_table(arrow_table(2000, more=lists), path, compression="zstd")
    return path


def packed_arrow(folder):
    arrow = pytest.importorskip("pyarrow")
    path = folder / "t.arrow"
    content = arrow_table(20_000, note=["x" * 20_000] * 20_000)
    with arrow.ipc.new_file(path, content.schema, options=arrow.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(content)
    return path


def large_parquet(folder):
    parquet, path = pytest.importorskip("pyarrow.parquet"), folder / "t.parquet"
    parquet.write_table(arrow_table(600_000), path)
    return path


def one_group_parquet(folder):
    """Many rows of one value in one group."""
    parquet, path = pytest.importorskip("pyarrow.parquet"), folder / "t.parquet"
    arrow = pytest.importorskip("pyarrow")
    rows = 300_000
    columns = {name: np.full(rows, 0.2) for name in XYZ} | {f"c{k}": np.zeros(rows) for k in range(60)}
    parquet.write_table(arrow.table(columns), path, compression="zstd", row_group_size=rows)
    return path


def texts_npz(folder):
    path = folder / "t.npz"
    notes = np.zeros(60_000, "U2000")  # 480 MB
    notes[0] = "x" * 2000
    columns = dict(zip(XYZ, places(len(notes)).T, strict=True))
    np.savez_compressed(path, note=notes, **columns)
    return path


def many_npz(folder):
    path = folder / "t.npz"
    columns = dict(zip(XYZ, places(2).T, strict=True))
    np.savez_compressed(path, **columns, **{f"c{k}": np.zeros(2) for k in range(5000)})
    return path


TABLES = {  # what makes a table, and the endings of the answers
    long_cell: ("npz", "csv", "parquet"),
    wide_csv: ("npz", "csv"),
    very_wide_csv: ("csv",),
    commas: ("csv",),
    quoted_commas: ("csv",),
    tall_csv: ("npz", "csv"),
    dictionary_parquet: ("parquet", "npz"),
    plain_parquet: ("parquet",),
    lists_parquet: ("parquet",),
    packed_arrow: ("arrow",),
    large_parquet: ("parquet", "npz"),
    one_group_parquet: ("parquet",),
    texts_npz: ("npz", "csv"),
    many_npz: ("npz",),
}
REFUSED = {
    (long_cell, "npz"),
    (dictionary_parquet, "npz"),
    (commas, "csv"),
    (quoted_commas, "csv"),
    (packed_arrow, "arrow"),
}


@cache
def peak_of_a_small_table():
    """The peak memory of a table of a hundred rows, some out of reach, in MB, once what solves it is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.npz")
        np.savez(path, **dict(zip(XYZ, np.vstack([places(99), (9.0, 9.0, 9.0)]).T, strict=True)))
        solve = partial(measured, "solve", "arm7", "--targets", path, "-o")
        solve(Path(folder, "first.csv"))
        return solve(Path(folder, "second.csv"))[2]


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_the_memory_of_a_table_is_bounded(tmp_path, make):
    path = make(tmp_path)
    size = path.stat().st_size / 2**20
    loaded = max(0, peak_of_a_small_table() - 60)  # what is no part of a table, such as a compiler
    for ending in TABLES[make]:
        code, said, peak = measured("solve", "arm7", "--targets", path, "-o", tmp_path / f"answers.{ending}")
        peak -= loaded
        print(f"{make.__name__} -> {ending}: {size:.2f} MB, peak {peak} MB, exit code {code}")
        assert code in (0, 1, 3), said
        assert "Traceback" not in said
        assert peak <= 200 + 5 * size, (ending, peak, size, said)
        if (make, ending) in REFUSED:
            assert code == 3
            assert "expected" in said
        if make in (tall_csv, large_parquet, wide_csv, one_group_parquet, texts_npz) or (make, ending) == (
            long_cell,
            "csv",
        ):
            assert code != 3, (ending, said)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_what_a_file_unpacks_to_is_read_as_pyarrow_does(tmp_path, compression):
    from synovia.batch.unpacking import Chunk, arrow_batches, parquet_groups

    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "a": np.zeros(1000),
        "b": [["x"] * (k % 20) for k in range(1000)],
        "c": [f"{k % 7}" for k in range(1000)],
    }
    content = arrow.table(columns).append_column("d", repeated(1000, "y" * 50))
    parquet.write_table(content, tmp_path / "t.parquet", row_group_size=300, compression=compression or "none")
    told = parquet.ParquetFile(tmp_path / "t.parquet").metadata
    for number, group in enumerate(parquet_groups(tmp_path / "t.parquet")):
        expected = told.row_group(number)
        chunks = [expected.column(k) for k in range(expected.num_columns)]
        assert group.rows == expected.num_rows
        assert group.chunks == tuple(Chunk(chunk.num_values, chunk.total_uncompressed_size) for chunk in chunks)
    options = arrow.ipc.IpcWriteOptions(compression=compression)
    with arrow.ipc.new_file(tmp_path / "t.arrow", content.schema, options=options) as file:
        for batch in content.to_batches(max_chunksize=400):
            file.write_batch(batch)
    with arrow.memory_map(str(tmp_path / "t.arrow")) as mapped:
        mapped.seek(8)
        found = list(arrow_batches(arrow.ipc.MessageReader.open_stream(mapped)))
    assert [rows for rows, _ in found if rows] == [400, 400, 200]
    sizes = [unpacked for rows, unpacked in found if rows]
    assert sizes == [0, 0, 0] if compression is None else min(sizes) >= 8 * 200


# --- values ----------------------------------------------------------------------------------------------------------

HUGE = 10**400


@pytest.mark.parametrize(
    "columns",
    [
        {"tool.x": [0.4, HUGE], "tool.y": [0.1, 0.1], "tool.z": [0.5, 0.5]},
        {"tool.position": [[0.4, 0.1, 0.5], [0.4, HUGE, 0.5]]},
        {"tool.position": [[0.4, 0.1, 0.5], [0.4, -HUGE, 0.5]], "start.joint1": [0.0, 0.0]},
        {"tool.position": [[0.4, 0.1, 0.5], [0.4, 0.1, 0.5]], "start.joint1": [0.0, HUGE]},
        {"tool.transform": [np.eye(4).tolist(), [HUGE] * 16]},
    ],
)
def test_whole_numbers_beyond_floats_are_invalid_rows(columns):
    answer = sy.batch.Solve("arm7")(columns)
    assert [status == "INVALID" for status in answer["status"]] == [False, True]
    assert answer["error"][1]


def test_whole_numbers_beyond_floats_fail_their_clip_alone():
    body = sy.bundled("humanoid")
    points = body.rest_pose().positions[None].tolist()
    bad = json.loads(json.dumps(points))
    bad[0][0][0] = HUGE
    answer = sy.batch.Fit("humanoid")({"positions": [points * 4, bad * 4], "fps": [30, 30]})
    assert list(answer["status"]) == ["done", "failed"]
    assert "positions" in answer["error"][1]
    answer = sy.batch.Fit("humanoid")({"positions": [points * 4, points * 4], "fps": [HUGE, 30]})
    assert list(answer["status"]) == ["failed", "done"]
    assert "OverflowError" not in answer["error"][0]


def test_an_absent_ray_cluster_is_told_soon(tmp_path):
    pytest.importorskip("ray")
    source = split_gltf(tmp_path / "in")
    begun = time.monotonic()
    ran = run_apart(
        "convert", source, "-o", tmp_path / "out", "--format", "csv", "--engine", "ray", "--address", "127.0.0.1:1"
    )
    assert (ran.code, "127.0.0.1:1" in ran.err) == (3, True), ran
    assert time.monotonic() - begun < 20.0 + 10.0  # and what it takes to import Ray


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4\0\0\0\0\0"])
def test_an_address_at_which_no_cluster_answers_is_told_before_ray_waits_for_it(answer, monkeypatch):
    from synovia.batch import cluster

    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if answer is None:
            with pytest.raises(ConnectionError):
                cluster._check_answers(address)
        server.listen(1)

        def reply():
            line = server.accept()[0]
            with line:
                if answer:
                    line.sendall(answer)
                line.recv(100)
                if not answer:
                    time.sleep(1.0)

        thread = threading.Thread(target=reply)
        thread.start()
        if answer and answer[3] == 4:
            cluster._check_answers(f"ray://{address}")
        else:
            with pytest.raises(OSError, match=r"timed out|not a gRPC server"):
                cluster._check_answers(address)
        thread.join()
    cluster._check_answers("auto")
