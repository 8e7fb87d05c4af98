"""Folders of clips: good ones are done, bad ones are rows, and interruptions change nothing."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from deadly import Deadly
from synovia.batch import inputs
from synovia.batch.folder import run_folder
from synovia.batch.ledger import Ledger, Row
from synovia.batch.pool import Local
from synovia.batch.tasks import ConvertFile, RetargetFile, judged
from synovia.batch.work import CRASHED, Outcome, work_on

BODY = sy.bundled("humanoid").with_root("free")


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
    sy.write_bvh(sy.Motion(BODY, q, 30.0), path)


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


def convert(clips, out, engine=None, **options):
    items = inputs.collect([str(clips)], out, [".bvh"], ".csv")
    return run_folder(ConvertFile(), items, out, engine=engine or Inline(), **options)


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
    same = sy.read_csv(out / "b" / "one.csv", sy.load_skeleton(clips / "b" / "one.bvh"))
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
    assert third.done == ["a.bvh", "b/two.bvh", "c.bvh", "new.bvh"]
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
    run_folder(ConvertFile(), items, out, engine=Inline())
    assert len(table(out)) == 12
    engine = Inline()
    items = inputs.collect([str(clips)], out, [".bvh"], ".npz")
    run_folder(ConvertFile(clip="0"), items, out, engine=engine)
    assert len(engine.done) == 6


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
    with pytest.raises(sy.FileError, match=r"1 outputs exist .* a\.csv.*--force"):
        convert(clips, out)
    assert (out / "a.csv").read_text() == "mine"
    convert(clips, out, force=True)
    assert (out / "a.csv").read_text() != "mine"


def test_two_runs_in_one_folder(clips, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with Ledger(out), pytest.raises(sy.FileError, match="another run works in this folder"):
        convert(clips, out)
    with Ledger(out, inputs.Shard(1, 2)), Ledger(out, inputs.Shard(2, 2)):
        with pytest.raises(sy.FileError, match="another run"):
            convert(clips, out)
        with pytest.raises(sy.FileError, match="another run"):
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
    with pytest.raises(sy.FileError, match="No space left"):
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
    for source, message in (("z", "no inputs"), ("none", "does not exist"), ("*.glb", "no file has this pattern")):
        with pytest.raises(sy.FileError, match=message):
            names(source)
    with pytest.raises(sy.FileError, match="same name"):
        names("x/a.bvh", "y/a.bvh")
    for text in ("0/3", "4/3", "3", "a/b", "1/"):
        with pytest.raises(sy.InputError, match="--shard"):
            inputs.Shard.parse(text)


def test_processes_give_the_same_bytes_and_survive_a_killed_worker(clips, tmp_path):
    whole, pooled = tmp_path / "whole", tmp_path / "pooled"
    convert(clips, whole)
    killed = []

    def kill(event):
        if not killed:
            found = subprocess.run(
                ["pgrep", "-P", str(os.getpid()), "-f", "synovia.batch.pool"],
                capture_output=True,
                text=True,
                check=False,
            )
            for pid in found.stdout.split():
                os.kill(int(pid), signal.SIGKILL)
                killed.append(pid)

    convert(clips, pooled, Local(2), notice=kill)
    assert snapshot(pooled) == snapshot(whole)
    assert killed or sys.platform != "linux"


def test_an_input_that_kills_its_process_is_a_row(tmp_path, monkeypatch):
    tests = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]))
    for name in "abc":
        (tmp_path / "in" / f"{name}.txt").parent.mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.txt").write_text(name)
    items = inputs.collect([str(tmp_path / "in")], tmp_path / "out", [".txt"])
    result = run_folder(Deadly(), items, tmp_path / "out", engine=Local(1))
    assert (result.done, [row.status for row in result.failed]) == (2, [CRASHED])
    assert "died 3 times (exit code 3)" in result.failed[0].error
    events = [json.loads(line) for line in (tmp_path / "out" / "ledger.log").read_text().splitlines()]
    assert [event["attempts"] for event in events if event["event"] == CRASHED] == [3]


def test_the_judge_is_read_as_far_as_it_tells():
    def thing(**fields):
        return type("Thing", (), fields)()

    feet = (thing(slide=0.1, depth=np.float64(0.3)), thing(slide=0.25, depth=float("nan")))
    slides = thing(limb="left_leg", cause="slide", level="look")
    answer = thing(
        verdict="look",
        findings=(slides, slides, thing(limb="body", cause="short", level="note")),
        judgement=thing(figures=thing(feet=feet, limbs=(thing(mean=np.pi / 4),))),
    )
    figures = {"foot_slide": 0.25, "foot_depth": 0.3, "limb_deg": 45.0}
    assert judged(answer) == {"verdict": "look", "findings": "left_leg: slide", **figures}
    assert judged(object()) == {}


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
        ledger.record(row, (1, 2), {})
        ledger.write()
    (tmp_path / "ledger.log").unlink()
    with Ledger(tmp_path) as ledger:
        assert ledger.sorted_rows() == [row]
    assert Outcome(1, "done").attempts == 1
    assert RetargetFile("humanoid").settings()["target"] == {"name": "humanoid"}


def test_a_rest_pose_or_an_up_axis_of_the_clips_need_not_fit_the_clip_that_loads_the_kernels(tmp_path):
    clip(tmp_path / "clips" / "long.bvh", 0, frames=20)
    ran = run(
        "retarget", tmp_path / "clips", "humanoid", "-o", tmp_path / "out", "--rest", "15", "--up", "y", "-j", "1"
    )
    assert ran.code == 0, ran.err
    assert (tmp_path / "out" / "long.bvh").exists()
