"""Damaged files of every format through the fuzzer: a short run, and that it sees what it is made to see."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

FOLDER = Path(__file__).parent
SEED, CASES = 3, 176  # eight for each reader; .ci/run reads these and many more, so that each meets all kinds of damage

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are those of Linux")

FAULTY = """
import os, sys
sys.path[:0] = [{folder!r}]
from fuzzing import run, worker

def hang(path, rng):
    while True:
        pass

def hoard(path, rng):
    bytearray(2**30)

def crash(path, rng):
    os.abort()

def leak(path, rng):
    raise KeyError("no error of ours")

def told(path, rng):
    try:
        hoard(path, rng)
    except MemoryError as error:
        raise worker.sy.SynoviaError("too large") from error

def swell(path, rng):
    bytearray(100 * 2**20)

def refuse(path, rng):
    raise worker.sy.InputError("an input of a live door")

for name, fault in {{"toml file": swell, "osc": refuse}}.items():
    def take(path, rng, fault=fault, whole=worker.DOORS[name]):
        (fault if path.name.startswith("case") else whole)(path, rng)
    worker.DOORS[name] = take

for name, fault in dict(map=hang, pose=hoard, goals=crash, points=leak, csv=told).items():
    def read(path, rng, fault=fault, whole=worker.READERS[name]):
        (fault if path.name.startswith("case") else whole)(path, rng)
    worker.READERS[name] = read
run.__file__ = __file__
raise SystemExit(run.main())
"""


def fuzz(script, *arguments):
    """Run it in a process of its own, without real files, so that cases are the same everywhere."""
    return subprocess.run(
        [sys.executable, str(script), "--data", "", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=1800, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # what a file has and the model has not
def test_what_is_damaged_was_whole(tmp_path):
    from fuzzing import seeds, worker

    always = Random(0)
    always.random = lambda: 1.0
    found = seeds.made()
    assert {seed.reader for seed in found} == set(worker.READERS)
    for seed in found:
        path = tmp_path / f"a{seed.ending}"
        assert worker.judged(seed, seed.data, always, path) == ("read", ""), seed.name


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::UserWarning")  # what a file has and the model has not
def test_inputs_of_doors_were_whole(tmp_path):
    from fuzzing import doors, worker

    found = doors.door_seeds()
    assert {seed.reader for seed in found} == set(doors.DOORS)
    for seed in found:
        path = tmp_path / f"a{seed.ending}"
        for draw in (0.1, 0.9):
            fixed = Random(0)
            fixed.random = lambda draw=draw: draw
            outcome, wrong = worker.judged(seed, seed.data, fixed, path)
            assert not wrong, (seed.name, wrong)
            assert outcome in ("read", "FormatError"), (
                seed.name
            )  # a table of points has no joint values, and vice versa


def test_a_case_comes_back_from_its_number():
    from fuzzing import seeds, worker

    found, again = seeds.made(), seeds.made()
    for case in range(60):
        one, other = (worker.case_of(files, 1, case) for files in (found, again))
        assert one[:2] == other[:2]
    cases = [worker.case_of(found, seed, 0)[1] for seed in range(20)]
    assert len(set(cases)) > 15


@pytest.mark.slow
@pytest.mark.compiled
def test_it_sees_faults(tmp_path):
    script = tmp_path / "faulty.py"
    script.write_text(FAULTY.format(folder=str(FOLDER)), encoding="utf-8")
    readers = "csv,goals,ledger,map,points,pose"  # few: the next process reads all their files again
    ran = fuzz(script, "--cases", 6, "--jobs", 1, "--readers", readers, "--keep", tmp_path / "kept")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    for word in ("over a second", "aborted", "KeyError", "MemoryError"):
        assert word in ran.stdout, word
    assert "6 cases of seed 0, 5 failed" in ran.stdout
    assert sorted(path.stem.split("-")[2] for path in (tmp_path / "kept").iterdir()) == sorted(
        ["csv", "goals", "map", "points", "pose"]
    )


@pytest.mark.slow
@pytest.mark.compiled
def test_it_sees_faults_of_doors(tmp_path):
    script = tmp_path / "faulty.py"
    script.write_text(FAULTY.format(folder=str(FOLDER)), encoding="utf-8")
    readers = "osc,toml file"
    ran = fuzz(script, "--doors", "--cases", 2, "--jobs", 1, "--readers", readers, "--keep", tmp_path / "kept")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    for word in ("MiB more than at rest", "an input ends the loop", "2 cases of seed 0, 2 failed"):
        assert word in ran.stdout, word


@pytest.mark.slow
@pytest.mark.compiled
def test_doors_take_or_refuse_what_is_damaged(tmp_path):
    script, cases = FOLDER / "fuzzing" / "run.py", 80
    ran = fuzz(script, "--doors", "--seed", SEED, "--cases", cases, "--jobs", 1, "--keep", tmp_path / "kept")
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-4000:]
    assert f"{cases} cases of seed {SEED}, 0 failed" in ran.stdout


@pytest.mark.slow
@pytest.mark.compiled
def test_damaged_files_are_read_or_refused(tmp_path):
    ran = fuzz(
        FOLDER / "fuzzing" / "run.py", "--seed", SEED, "--cases", CASES, "--jobs", 1, "--keep", tmp_path / "kept"
    )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-4000:]
    assert f"{CASES} cases of seed {SEED}, 0 failed" in ran.stdout
