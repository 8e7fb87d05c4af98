"""Folders of clips: good ones are done, bad ones are rows, and interruptions change nothing."""

import csv
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from browsing import browser_path, chromium
from cli_runs import run
from deadly import ConvertKilledOnce, Deadly, KilledAtFirst
from synovia.batch import inputs
from synovia.batch.clips import judged
from synovia.batch.folder import run_folder
from synovia.batch.ledger import Ledger, Row
from synovia.batch.pool import Local
from synovia.batch.summary import worst_first
from synovia.batch.work import CRASHED, Result, work_on
from synovia.jobs import ClipReader, Convert, Host, Retarget

BODY = sy.bundled("humanoid").with_root("free")


@pytest.fixture(autouse=True)
def one_still(monkeypatch):
    """Pictures of results show one moment instead of four: tests here ask whether they are there."""
    monkeypatch.setattr("synovia.jobs.clips._STILLS", 1)


class Inline:
    """An engine without processes that can end early, in any order."""

    def __init__(self, stop=None, backwards=False):
        self.stop, self.backwards, self.done = stop, backwards, []

    def run(self, task, jobs):
        task.prepare()
        for k, job in enumerate(list(jobs)[:: -1 if self.backwards else 1]):
            if k == self.stop:
                raise KeyboardInterrupt
            self.done.append(job.item.name)
            yield work_on(task, job)


def clip(path, seed, frames=6):
    rng = np.random.default_rng(seed)
    q = np.tile(BODY.rest_pose().q, (frames, 1))
    q[:, :3] += np.cumsum(rng.normal(0.0, 0.01, (frames, 3)), axis=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    sy.formats.write_bvh(sy.Motion(BODY, q, 30.0), path)


@pytest.fixture
def clips(tmp_path):
    folder = tmp_path / "clips"
    for k, name in enumerate(("b/two.bvh", "a.bvh", "b/one.bvh", "c.bvh")):
        clip(folder / name, k)
    (folder / "b" / "bad.bvh").write_text("HIERARCHY\nROOT")
    (folder / "empty.bvh").write_text("")
    (folder / "notes.txt").write_text("no clip")
    return folder


def snapshot(folder):
    """The content of a folder, without the log and what is not a result."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "ledger.log"
    }


def table(folder):
    with (folder / "ledger.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def convert(clips, out, engine=None, task=None, **options):
    items = inputs.collect([str(clips)], out, [".bvh"], ".csv")
    return run_folder(task or Convert(), items, out, engine=engine or Inline(), **options)


def test_a_folder_is_mirrored_and_bad_inputs_are_rows(clips, tmp_path):
    out = tmp_path / "out"
    result = convert(clips, out)
    assert (result.inputs, result.done, len(result.failed)) == (6, 4, 2)
    rows = table(out)
    assert [row["input"] for row in rows] == ["a.bvh", "b/bad.bvh", "b/one.bvh", "b/two.bvh", "c.bvh", "empty.bvh"]
    by_name = {row["input"]: row for row in rows}
    assert by_name["empty.bvh"]["error"] == "empty.bvh: file is empty"
    assert "b/bad.bvh, line" in by_name["b/bad.bvh"]["error"]
    assert by_name["b/one.bvh"]["output"] == "b/one.csv"
    assert (out / "b" / "one.csv").exists()
    assert not (out / "b" / "bad.csv").exists()
    same = sy.formats.read_csv(out / "b" / "one.csv", sy.load_skeleton(clips / "b" / "one.bvh"))
    assert np.array_equal(same.q, sy.load_motion(clips / "b" / "one.bvh").q)
    assert "empty.bvh" in (out / "summary.html").read_text()
    assert not list(out.glob(".unfinished*"))


def test_a_second_run_does_only_what_is_missing_or_changed(clips, tmp_path):
    out = tmp_path / "out"
    convert(clips, out)
    before = snapshot(out)
    again = Inline()
    assert convert(clips, out, again).same == 6
    assert again.done == []
    (out / "a.csv").unlink()
    clip(clips / "new.bvh", 9)
    os.utime(clips / "c.bvh")  # touched, but the same
    (clips / "b" / "two.bvh").write_bytes((clips / "b" / "one.bvh").read_bytes())
    third = Inline()
    result = convert(clips, out, third)
    assert third.done == ["a.bvh", "b/two.bvh", "new.bvh"]
    assert (result.done, result.same) == (3, 4)
    after = snapshot(out)
    assert after["a.csv"] == before["a.csv"]
    assert after["b/two.csv"] == before["b/one.csv"]


def test_failed_inputs_are_tried_again_when_asked_or_when_they_change(clips, tmp_path):
    out = tmp_path / "out"
    convert(clips, out)
    engine = Inline()
    convert(clips, out, engine, retry_failed=True)
    assert engine.done == ["b/bad.bvh", "empty.bvh"]
    (clips / "empty.bvh").write_bytes((clips / "a.bvh").read_bytes())
    assert len(convert(clips, out).failed) == 1
    (clips / "a.bvh").write_text("")
    convert(clips, out)
    assert not (out / "a.csv").exists(), "the output of content that is gone"


def test_other_settings_are_done_again_and_another_format_lies_beside(clips, tmp_path):
    out = tmp_path / "out"
    convert(clips, out)
    items = inputs.collect([str(clips)], out, [".bvh"], ".npz")
    run_folder(Convert(), items, out, engine=Inline())
    assert len(table(out)) == 12
    engine = Inline()
    items = inputs.collect([str(clips)], out, [".bvh"], ".npz")
    run_folder(Convert(clip="0"), items, out, engine=engine)
    assert len(engine.done) == 6


def test_outputs_of_another_command_are_kept_unless_forced(clips, tmp_path):
    out = tmp_path / "out"
    convert(clips, out)
    before = snapshot(out)
    with pytest.raises(sy.SynoviaError, match=r"made by 'convert', not by 'retarget'.*--force"):
        convert(clips, out, task=Retarget("humanoid"))
    after = snapshot(out)
    assert {name: after[name] for name in before if "ledger" not in name} == {
        name: data for name, data in before.items() if "ledger" not in name
    }
    assert not convert(clips, out, task=Retarget("humanoid"), force=True).same


@pytest.mark.parametrize("stop", [0, 1, 3, 5])
def test_an_interrupted_run_ends_with_the_same_bytes(clips, tmp_path, stop):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    convert(clips, whole)
    with pytest.raises(KeyboardInterrupt):
        convert(clips, cut, Inline(stop, backwards=True))
    engine = Inline()
    convert(clips, cut, engine)
    assert len(engine.done) == 6 - stop
    assert snapshot(cut) == snapshot(whole)


def test_a_run_that_was_killed_is_rebuilt_from_its_log(clips, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    convert(clips, whole)
    convert(clips, cut)
    (cut / "ledger.csv").unlink()  # never written
    (cut / ".unfinished").mkdir()
    (cut / ".unfinished" / "half").write_text("half")
    log = (cut / "ledger.log").read_bytes()
    end = log.rstrip(b"\n").rfind(b"\n")
    (cut / "ledger.log").write_bytes(log[: end + 20])  # killed within the last line
    engine = Inline()
    convert(clips, cut, engine)
    assert len(engine.done) == 1
    assert snapshot(cut) == snapshot(whole)


def test_shards_unite_to_the_same_folder(clips, tmp_path):
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    convert(clips, whole)
    done = []
    for text in ("2/3", "1/3", "3/3"):
        engine = Inline()
        convert(clips, shared, engine, shard=inputs.Shard.parse(text))
        done += engine.done
    assert sorted(done) == sorted(row["input"] for row in table(whole))
    last = Inline()
    assert convert(clips, shared, last).same == 6
    assert last.done == []
    assert snapshot(shared) == snapshot(whole)
    again = Inline()
    convert(clips, shared, again, shard=inputs.Shard(1, 2))
    assert again.done == [], "a shard sees what the whole has done"


def test_files_of_others_are_not_replaced(clips, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.csv").write_text("mine")
    with pytest.raises(sy.errors.FileError, match=r"1 output exists .* a\.csv.*--force"):
        convert(clips, out)
    assert (out / "a.csv").read_text() == "mine"
    convert(clips, out, force=True)
    assert (out / "a.csv").read_text() != "mine"


def test_two_runs_in_one_folder(clips, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with Ledger(out), pytest.raises(sy.errors.FileError, match="another run is using this folder"):
        convert(clips, out)
    with Ledger(out, inputs.Shard(1, 2)), Ledger(out, inputs.Shard(2, 2)):
        with pytest.raises(sy.errors.FileError, match="another run"):
            convert(clips, out)
        with pytest.raises(sy.errors.FileError, match="another run"):
            Ledger(out, inputs.Shard(2, 2))


def test_fail_fast_ends_at_the_first_failure_and_keeps_the_rest(clips, tmp_path):
    with pytest.raises(sy.SynoviaError, match=r"b/bad\.bvh"):
        convert(clips, tmp_path / "out", fail_fast=True)
    assert len(table(tmp_path / "out")) == 2


def test_a_full_disk_ends_the_run_and_the_next_one_completes_it(clips, tmp_path, monkeypatch):
    whole, out = tmp_path / "whole", tmp_path / "out"
    convert(clips, whole)
    import synovia.io.base as base

    real, calls = os.write, []

    def full(handle, data):
        calls.append(1)
        if 12 < len(calls) < 60:
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(base.os, "write", full)
    with pytest.raises(sy.errors.FileError, match="No space left"):
        convert(clips, out)
    monkeypatch.undo()
    convert(clips, out)
    assert snapshot(out) == snapshot(whole)


def test_inputs_that_differ_in_their_ending_keep_it(tmp_path):
    for name in ("walk.bvh", "walk.glb", "run.bvh", "ledger.bvh"):
        (tmp_path / name).write_text("")
    found = inputs.collect([str(tmp_path)], tmp_path / "out", [".bvh", ".glb"], ".csv")
    assert [item.output for item in found] == ["ledger.bvh.csv", "run.csv", "walk.bvh.csv", "walk.glb.csv"]


def test_patterns_and_lists_of_files_and_folders(tmp_path):
    for name in ("x/a.bvh", "x/deep/b.bvh", "y/a.bvh", "y/.hidden.bvh", "z/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    def names(*sources):
        given = [str(tmp_path / source) for source in sources]
        return [item.name for item in inputs.collect(given, tmp_path / "x" / "out", [".bvh"])]

    assert names("x") == ["a.bvh", "deep/b.bvh"]
    assert names("x", "y") == ["x/a.bvh", "x/deep/b.bvh", "y/a.bvh"]
    assert names("*/a.bvh") == ["x/a.bvh", "y/a.bvh"]
    assert names("x/**/*.bvh") == ["a.bvh", "deep/b.bvh"]
    for source, message in (("z", "no inputs"), ("none", "does not exist"), ("*.glb", "no file matches this pattern")):
        with pytest.raises(sy.errors.FileError, match=message):
            names(source)
    with pytest.raises(sy.errors.FileError, match="same name"):
        names("x/a.bvh", "y/a.bvh")
    for text in ("0/3", "4/3", "3", "a/b", "1/"):
        with pytest.raises(sy.InputError, match="--shard"):
            inputs.Shard.parse(text)


@pytest.mark.usefixtures("tests_in_processes")
def test_processes_give_the_same_bytes_and_survive_a_killed_worker(clips, tmp_path, monkeypatch):
    whole, pooled, left = tmp_path / "whole", tmp_path / "pooled", tmp_path / "left"
    convert(clips, whole)
    left.touch()
    monkeypatch.setenv("SYNOVIA_LEFT", str(left))
    convert(clips, pooled, Local(2), task=ConvertKilledOnce())
    assert snapshot(pooled) == snapshot(whole)
    assert not left.exists()
    events = [json.loads(line) for line in (pooled / "ledger.log").read_text().splitlines()]
    assert max(event.get("attempts", 1) for event in events) == 2


@pytest.fixture
def tests_in_processes(monkeypatch):
    """Processes of a pool find the tasks of ``deadly``."""
    tests = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def letters(tmp_path, tests_in_processes):
    """The inputs a.txt, b.txt and c.txt; processes of a pool find the tasks of ``deadly``."""
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.txt").write_text(name)
    return inputs.collect([str(tmp_path / "in")], tmp_path / "out", [".txt"])


@pytest.mark.skipif(sys.platform == "win32", reason="processes end by exit codes there")
def test_a_process_that_is_killed_before_it_is_ready_is_started_again(letters, tmp_path):
    left = tmp_path / "left"
    left.mkdir()
    for number in range(5):
        (left / str(number)).touch()
    result = run_folder(KilledAtFirst(left), letters[:1], tmp_path / "out", engine=Local(1))
    assert (result.done, result.failed) == (1, [])
    for number in range(5):
        (left / str(number)).touch()
    with pytest.raises(sy.SynoviaError, match="exit code 3"):
        run_folder(KilledAtFirst(left, 3), letters[:1], tmp_path / "out", engine=Local(1), force=True)


def test_an_input_that_kills_its_process_is_a_row(letters, tmp_path):
    result = run_folder(Deadly(), letters, tmp_path / "out", engine=Local(1))
    assert (result.done, [row.status for row in result.failed]) == (2, [CRASHED])
    assert "crashed 3 times (exit code 3)" in result.failed[0].error
    events = [json.loads(line) for line in (tmp_path / "out" / "ledger.log").read_text().splitlines()]
    assert [event["attempts"] for event in events if event["event"] == CRASHED] == [3]


def test_the_judge_is_read_as_far_as_it_tells():
    def thing(**fields):
        return type("Thing", (), fields)()

    feet = (thing(slide=0.1, depth=np.float64(0.3)), thing(slide=0.25, depth=float("nan")))
    slides = thing(limb="left_leg", cause="slide", level="look", frames=(1, 2))
    figures = thing(feet=feet, limbs=(thing(mean=np.pi / 4),), motion=range(20))
    answer = judged(thing(verdict="look", warnings=(slides, slides), figures=figures))
    told = {"verdict": "look", "findings": "left leg: slide", "bad_frames": 2}
    assert answer == {**told, "foot_slide": 0.25, "foot_depth": 0.3, "limb_deg": 45.0}
    crossed = thing(limb="left_leg", cause="crossed", level="failed", frames=())
    assert judged(thing(verdict="failed", warnings=(crossed, slides), figures=figures))["bad_frames"] == 20
    good = judged(thing(verdict="good", warnings=(), figures=thing(feet=(), limbs=(), motion=range(20))))
    assert good == {"verdict": "good", "findings": "", "bad_frames": 0}


def test_retarget_a_folder_on_the_command_line(clips, tmp_path):
    out = tmp_path / "out"
    ran = run("retarget", clips, "humanoid", "-o", out, "--json", "-j", 1)
    assert ran.code == 1
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert len(lines) == 6
    assert {line["schema"] for line in lines} == {"synovia.batch/1"}
    assert sorted(line["input"] for line in lines if line["status"] == "failed") == ["b/bad.bvh", "empty.bvh"]
    assert "6 inputs: 4 done, 2 failed" in ran.err
    alone = tmp_path / "alone.bvh"
    run("retarget", clips / "b" / "one.bvh", "humanoid", "-o", alone)
    assert (out / "b" / "one.bvh").read_bytes() == alone.read_bytes()


def test_wrong_usage_is_told_before_any_work(clips, tmp_path):
    for arguments, words in (
        (("retarget", clips, "humanoid"), "output folder"),
        (("retarget", clips / "a.bvh", "humanoid", "--shard", "1/2"), "--shard"),
        (("convert", clips, "-o", tmp_path / "o"), "--format"),
        (("convert", clips, "-o", tmp_path / "o", "--format", "mp3"), "--format"),
        (("retarget", clips, "humanoid", "-o", clips / "a.bvh"), "expected a folder"),
        (("retarget", clips, "humanoid", "-o", tmp_path / "o", "--address", "x"), "--engine ray"),
    ):
        ran = run(*arguments)
        assert ran.code == 2, ran
        assert words in ran.err
    assert run("retarget", clips, "arm7", "-o", tmp_path / "o").code == 3
    assert not (tmp_path / "o" / "a.bvh").exists()


def test_rows_are_read_back_as_they_were(tmp_path):
    row = Row("a,b.bvh", "a,b.csv", "failed", "00", "11", 'a "quoted"\nerror', {"verdict": "look", "worst": "0.1"})
    with Ledger(tmp_path) as ledger:
        ledger.record(row, tmp_path / "a,b.bvh", {}, {})
        ledger.write()
    (tmp_path / "ledger.log").unlink()
    with Ledger(tmp_path) as ledger:
        assert ledger.sorted_rows() == [row]
    assert Result(1, "done").attempts == 1
    assert Retarget("humanoid").settings()["target"] == {"name": "humanoid"}


def test_a_rest_pose_or_an_up_axis_of_the_clips_need_not_fit_the_clip_that_loads_the_kernels(tmp_path):
    clip(tmp_path / "clips" / "long.bvh", 0, frames=20)
    ran = run(
        "retarget", tmp_path / "clips", "humanoid", "-o", tmp_path / "out", "--rest", "15", "--up", "y", "-j", "1"
    )
    assert ran.code == 0, ran.err
    assert (tmp_path / "out" / "long.bvh").exists()


def test_what_a_single_run_tells_is_in_the_ledger_of_a_folder(tmp_path):
    held = np.tile(BODY.rest_pose().q, (30, 1))
    held[5:, :3] += 0.5 + np.cumsum(np.full((25, 3), 0.02), axis=0)  # the rest pose of the file, then a jump
    (tmp_path / "clips").mkdir()
    sy.formats.write_bvh(sy.Motion(BODY, held, 30.0), tmp_path / "clips" / "held.bvh")
    single = run("convert", tmp_path / "clips" / "held.bvh", tmp_path / "held.csv")
    assert "--trim-tpose" in single.err
    out = tmp_path / "out"
    ran = run("convert", tmp_path / "clips", "-o", out, "--format", "csv", "-j", 1)
    (row,) = table(out)
    assert row["notes"]
    assert row["notes"] in single.err
    assert "notes on 1 input\n" in ran.err
    trimmed = run("convert", tmp_path / "clips", "-o", out, "--format", "csv", "-j", 1, "--trim-tpose")
    assert trimmed.code == 0, trimmed.err
    assert int(table(out)[0]["frames"]) < 30
    assert "cut off" in table(out)[0]["notes"]


def test_warnings_of_readers_are_notes(clips, tmp_path):
    class Warns(Convert):
        def work(self, item, output):
            import warnings

            warnings.warn(f"{item.path}: something was left out", UserWarning, stacklevel=1)
            return super().work(item, output)

    items = inputs.collect([str(clips / "a.bvh")], tmp_path / "out", [".bvh"], ".csv")
    run_folder(Warns(), items, tmp_path / "out", engine=Inline())
    assert table(tmp_path / "out")[0]["notes"] == "a.bvh: something was left out"


def test_rows_of_deleted_inputs_are_marked_until_their_output_is_removed(clips, tmp_path):
    out = tmp_path / "out"
    convert(clips, out)
    before = snapshot(out)
    content = (clips / "a.bvh").read_bytes()
    (clips / "a.bvh").unlink()
    (clips / "empty.bvh").unlink()
    result = convert(clips, out)
    status = {row["input"]: row["status"] for row in table(out)}
    assert status == {"a.bvh": "gone", "b/bad.bvh": "failed"} | dict.fromkeys(
        ("b/one.bvh", "b/two.bvh", "c.bvh"), "done"
    )
    assert [row.input for row in result.gone] == ["a.bvh"]
    assert (
        "the input was deleted" in (out / "summary.html").read_text()
        or "(deleted)" in (out / "summary.html").read_text()
    )
    assert (out / "a.csv").exists()
    (clips / "a.bvh").write_bytes(content)
    (clips / "empty.bvh").write_text("")
    engine = Inline()
    convert(clips, out, engine)
    assert "a.bvh" not in engine.done or snapshot(out)["a.csv"] == before["a.csv"]
    assert snapshot(out)["ledger.csv"] == before["ledger.csv"]
    (clips / "a.bvh").unlink()
    convert(clips, out)
    (out / "a.csv").unlink()
    convert(clips, out)
    assert "a.bvh" not in {row["input"] for row in table(out)}


def test_rows_of_another_command_stay(clips, tmp_path):
    out = tmp_path / "out"
    convert(clips, out)
    items = inputs.collect([str(clips / "b" / "one.bvh")], out, [".bvh"], ".npz")
    run_folder(Convert(), items, out, engine=Inline())
    assert {row["status"] for row in table(out)} == {"done", "failed"}
    assert len(table(out)) == 7


def test_a_folder_that_cannot_be_opened_is_a_row(clips, tmp_path, monkeypatch):
    real = os.scandir

    def refuse(path="."):
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    out = tmp_path / "out"
    (out / "b").mkdir(parents=True)  # an output of an earlier run may be there
    convert(clips, out)
    rows = {row["input"]: row for row in table(out)}
    assert rows["b/"]["error"] == "b/: folder cannot be opened (Permission denied)"
    assert rows["a.bvh"]["status"] == "done"
    found = inputs.collect([str(clips / "**" / "*.bvh")], out, [".bvh"], ".csv")
    assert "b/" in [item.name for item in found]
    with pytest.raises(sy.errors.FileError, match="Permission denied"):
        inputs.collect([str(clips / "b")], out, [".bvh"], ".csv")
    monkeypatch.undo()
    convert(clips, out)
    assert "b/" not in {row["input"] for row in table(out)}


def test_links_to_folders_are_followed_once(clips, tmp_path):
    (clips / "again").symlink_to(clips / "b")
    (clips / "b" / "up").symlink_to(clips)
    other = tmp_path / "other"
    clip(other / "far.bvh", 1)
    (clips / "link").symlink_to(other)
    names = [item.name for item in inputs.collect([str(clips)], tmp_path / "out", [".bvh"])]
    assert "link/far.bvh" in names
    assert len(names) == 7


def test_a_model_follows_each_clip_and_each_track_of_a_folder(tmp_path):
    body = sy.bundled("arm7")
    for k in range(2):
        q = np.linspace(body.rest_pose().q, body.random_pose(k).q, 8)
        (tmp_path / "clips").mkdir(exist_ok=True)
        sy.save_motion(sy.Motion(body, q, 30.0), tmp_path / "clips" / f"c{k}.npz")
    (tmp_path / "clips" / "bad.npz").write_bytes(b"PK")
    ran = run("animate", "arm7", "--follow", tmp_path / "clips", "--root", "fixed", "-o", tmp_path / "out", "-j", 1)
    assert ran.code == 1, ran.err
    assert "3 inputs: 2 done, 1 failed" in ran.err
    rows = {row["input"]: row for row in table(tmp_path / "out")}
    assert rows["c0.npz"]["missed"] == "0"
    assert rows["c0.npz"]["output"] == "c0.npz"  # z is up, which BVH cannot say
    single = tmp_path / "single.npz"
    run("animate", "arm7", "--follow", tmp_path / "clips" / "c0.npz", "--root", "fixed", "-o", single)
    assert np.array_equal(sy.load_motion(single).q, sy.load_motion(tmp_path / "out" / "c0.npz").q)
    track = (
        'schema = "synovia.track/1"\nfps = 10\n[[goals]]\njoint = "tool"\nkeys = ['
        + ", ".join(f"{{ time = {t}, position = [0.4, {0.1 * t}, 0.5] }}" for t in range(2))
        + "]\n"
    )
    (tmp_path / "tracks").mkdir()
    (tmp_path / "tracks" / "one.toml").write_text(track)
    (tmp_path / "tracks" / "none.toml").write_text("schema = 3")
    ran = run("animate", "arm7", "--goals", tmp_path / "tracks", "-o", tmp_path / "made", "-j", 1)
    assert "2 inputs: 1 done, 1 failed" in ran.err
    made = sy.load_motion(tmp_path / "made" / "one.npz")
    assert len(made) == 11
    assert np.allclose(made.pose(10).position("tool"), (0.4, 0.1, 0.5), atol=1e-3)


def test_the_worst_come_first_by_verdict_then_by_the_frames_that_are_wrong():
    def row(name, verdict, bad, missed="0", **figures):
        given = {"verdict": verdict, "frames": "100", "bad_frames": str(bad), "missed": missed} | figures
        return Row(name, name, "done", "", "", "", given)

    rows = [
        row("good", "good", 0, missed="90", worst="9.0"),
        row("short", "look", 5, findings="a: slide; b: slide; c: slide"),
        row("long", "look", 60, findings="a: slide"),
        row("failed", "failed", 1),
        row("worse", "failed", 2),
    ]
    assert [one.input for one in worst_first(rows)] == ["worse", "failed", "long", "short", "good"]


@pytest.mark.skipif(browser_path() is None, reason="needs a browser")
def test_the_page_of_a_run_is_filtered_without_a_network(clips, tmp_path):
    pytest.importorskip("PIL")
    pytest.importorskip("playwright")
    out = tmp_path / "out"
    run("retarget", clips, "humanoid", "-o", out, "-j", 1)
    text = (out / "summary.html").read_text()
    assert "http:" not in text
    assert "https:" not in text
    assert text.count("<article") == 4
    command = re.search(r"<code>synovia view (\S+)</code>", text)
    assert command is not None
    assert (out / command[1]).is_file()
    assert "the source on the left" in text
    assert re.search(r"class='name'>empty\.bvh<td class='failed'>file is empty", text)
    count = "[...document.querySelectorAll('[data-kind]')].filter(one => one.offsetParent).length"
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"file://{out / 'summary.html'}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(count) == 10  # four pictures, four rows, two failures
        page.locator("nav label", has_text="not done").click()
        assert page.evaluate(count) == 2
        page.locator("nav input[type=search]").fill("empty")
        assert page.evaluate(count) == 1
        page.locator("nav label", has_text="all").click()
        page.locator("nav input[type=search]").fill("")
        page.locator("th button", has_text="frames").first.click()
        assert page.evaluate(count) == 10


def test_a_damaged_ledger_is_told_and_damaged_lines_of_its_log_are_left_out(tmp_path):
    row = Row("a.bvh", "a.csv", "done", "00", "11", "", {"worst": "0.1"})
    with Ledger(tmp_path) as ledger:
        ledger.record(row, tmp_path / "a.bvh", {}, {})
        ledger.write()
    with (tmp_path / "ledger.log").open("a") as log:
        log.write('{"event": "claim"}\n{"event": "done", "row": 3}\n' + "[" * 100_000 + "\n")
        log.write('{"event": "done", "row": {}, "size": 1e999, "modified": 0, "time": "x"}\n')
        other = {"input": "b.bvh", "output": "b.csv", "status": "done", "sha256": "00", "settings": "11", "error": ""}
        event = {"event": "done", "row": other, "size": 1, "modified": 2, "time": 3.0, "path": 0.5}
        log.write(json.dumps(event) + "\n")
    with Ledger(tmp_path) as ledger:
        assert [one.output for one in ledger.sorted_rows()] == ["a.csv", "b.csv"]
        assert ledger.rows["a.csv"] == row
        ledger.part_with(["a.csv", "b.csv"])
        assert not ledger.rows
    with (tmp_path / "ledger.csv").open("a") as table:
        table.write('"' + "x" * 200_000)
    with pytest.raises(sy.errors.FormatError, match=r"ledger\.csv: is not a ledger"):
        Ledger(tmp_path)


class Copy:
    """A task that copies texts; it fails at empty ones."""

    name = "copy"

    def __init__(self, tag=""):
        self.tag = tag

    def settings(self):
        return {"tag": self.tag}

    def prepare(self):
        pass

    def work(self, item, output):
        text = item.path.read_text()
        if not text:
            raise sy.errors.FormatError("file is empty", where=str(item.path))
        if text == "bug":
            raise ValueError(f"{output}\nand {output.name}")
        if text == "name":
            raise sy.InputError("name cannot be written", where=str(output))
        output.write_text(text + self.tag)
        return {}

    def picture(self, output, source):
        return None


def copy(folder, tag="", **options):
    out = folder.parent / "out"
    return run_folder(Copy(tag), inputs.collect([str(folder)], out, [".txt"]), out, engine=Inline(), **options)


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    return folder


@pytest.mark.parametrize("cut", ["before", "after"])
def test_an_output_never_stands_beside_the_row_of_another_one(texts, monkeypatch, cut):
    """The process ends before or after the new output is at its place; then the old settings come back."""
    copy(texts, "1")
    real = Path.replace

    def killed(path, target):
        if Path(target).suffix == ".txt":
            if cut == "after":
                real(path, target)
            raise KeyboardInterrupt
        return real(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        copy(texts, "2")
    monkeypatch.undo()
    copy(texts, "1")
    assert (texts.parent / "out" / "a.txt").read_text() == "a1"
    assert copy(texts, "1").same == 1


def test_a_full_log_leaves_the_output_that_its_row_tells_of(texts, monkeypatch):
    copy(texts, "1")
    real = Ledger.write_log

    def full(ledger, events):
        events = list(events)
        if any(event["event"] == "replaced" for event in events):
            raise sy.errors.FileError("cannot be written (No space left on device)")
        real(ledger, events)

    monkeypatch.setattr(Ledger, "write_log", full)
    with pytest.raises(sy.errors.FileError, match="No space"):
        copy(texts, "2")
    monkeypatch.undo()
    assert (texts.parent / "out" / "a.txt").read_text() == "a1"
    assert copy(texts, "1").same == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode there")
def test_names_that_are_no_unicode(texts):
    for name, text in ((b"caf\xe9.txt", "c"), (b"bad\xe9.txt", "")):
        (texts / os.fsdecode(name)).write_text(text)
    for _ in range(2):
        assert [len(copy(texts).rows), len(copy(texts).failed)] == [3, 1]
    out = texts.parent / "out"
    assert [row["input"] for row in table(out)] == ["a.txt", r"bad\udce9.txt", r"caf\udce9.txt"]
    assert "href='caf%E9.txt'" in (out / "summary.html").read_text()


def test_two_inputs_for_one_output_are_refused(tmp_path):
    for name in ("walk.bvh", "walk.glb", "walk.bvh.glb"):
        (tmp_path / name).write_text("")
    items = inputs.collect([str(tmp_path)], tmp_path / "out", [".bvh", ".glb"], ".csv")
    with pytest.raises(sy.errors.FileError, match=r"same output.*walk\.bvh\.csv"):
        run_folder(Copy(), items, tmp_path / "out", engine=Inline())


def test_errors_are_one_line_and_the_same_in_every_run(texts):
    (texts / "bug.txt").write_text("bug")
    (texts / "name.txt").write_text("name")
    result = copy(texts)
    assert result.done == 1, "an error of one input does not end the run"
    errors = [row.error for row in result.failed]
    assert errors == ["bug.txt: ValueError: bug.txt and bug.txt", "name.txt: name cannot be written"]


def test_a_name_that_is_too_long_is_told(texts):
    for ending in ("txt", "csv"):
        (texts / f"{'x' * 250}.{ending}").write_text("x")
    out = texts.parent / "out"
    items = inputs.collect([str(texts)], out, [".txt", ".csv"], ".json")
    with pytest.raises(sy.errors.FileError, match=r"cannot be written \(File name too long\)"):
        run_folder(Copy(), items, out, engine=Inline())


def test_what_a_shard_that_was_killed_leaves_is_removed(texts):
    (texts.parent / "out" / ".unfinished.2-of-3").mkdir(parents=True)
    copy(texts)
    assert not list((texts.parent / "out").glob(".unfinished*"))


def test_a_clip_is_chosen_by_number_or_name(clips):
    motion, _ = ClipReader(clip=0).read(clips / "a.bvh", Host())
    assert len(motion) == len(ClipReader(clip="0").read(clips / "a.bvh", Host())[0])
    with pytest.raises(sy.SynoviaError, match="²"):
        ClipReader(clip="²").read(clips / "a.bvh", Host())


def test_a_disk_without_locks_is_not_taken_for_another_run(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(sy.errors.FileError, match=r"ledger\.log: cannot be written \(No locks available\)"):
        Ledger(tmp_path)
