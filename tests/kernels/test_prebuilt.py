"""Kernels compiled ahead: how they are built, when they are used, and what happens where there are none."""

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = REPO / "packaging" / "kernels.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.compiled,
    pytest.mark.xdist_group("compiled ahead"),  # one worker compiles
    pytest.mark.skipif(not BUILD.exists() or shutil.which("cc") is None, reason="needs a C compiler"),
]
LEVEL = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}.get(os.uname().machine if os.name == "posix" else "")

SMALL = "tree.tables.clamp_rows", "tree.tables.random_rows"

CLAMP = """
import sys
import numpy as np
from synovia.kernels import compiler
from synovia.kernels.tree import tables
q = np.array([[5.0], [0.5]])
variables, limits = np.zeros((1, 3), np.int32), np.array([[-1.0, 2.0] + [0.0] * 9])
"""
TELL = 'tables.clamp_rows(variables, limits, q); print(compiler.mode, q[0, 0], q[1, 0], "numba" in sys.modules)'
MODE = "from synovia.kernels import compiler; print(compiler.mode)"  # how kernels would run; none is called
SOLVE = 'import synovia as sy; print(sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.0, 0.5))))'
NO_NUMBA = 'import sys; sys.modules["numba"] = None\n'


@pytest.fixture(scope="module")
def prebuilt(tmp_path_factory):
    """A folder with the smallest kernels, compiled for the lowest level."""
    pytest.importorskip("numba")
    if LEVEL is None:
        pytest.skip("no level for this machine")
    folder = tmp_path_factory.mktemp("made") / "prebuilt"
    subprocess.run(
        [sys.executable, BUILD, "--folder", folder, "--levels", LEVEL, "--modules", *SMALL, "--jobs", "1"],
        check=True,
        env=os.environ | {"SYNOVIA_CACHE_DIR": str(folder.parent / "cache")},
        capture_output=True,
    )
    return folder


def said(code, prebuilt, *arguments, **env):
    kept = {name: value for name, value in os.environ.items() if name not in ("SYNOVIA_KERNELS", "NUMBA_DISABLE_JIT")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=kept | {"SYNOVIA_PREBUILT": str(prebuilt), "PYTHONPATH": str(REPO / "src"), **env},
    )


def test_compiled_kernels_are_used_and_numba_is_not_imported(prebuilt):
    assert said(NO_NUMBA + CLAMP + TELL, prebuilt).stdout.split()[:3] == ["prebuilt", "2.0", "0.5"]
    assert said(CLAMP + TELL, prebuilt).stdout.split() == ["prebuilt", "2.0", "0.5", "False"]


def test_without_them_numba_compiles(tmp_path):
    assert said(CLAMP + TELL, tmp_path).stdout.split() == ["jit", "2.0", "0.5", "True"]


def test_without_both_python_warns_once_what_to_install_and_an_error_says_it_where_that_is_wanted(tmp_path):
    told = said(NO_NUMBA + CLAMP + CLAMP + TELL, tmp_path)
    assert told.stdout.split()[:3] == ["python", "2.0", "0.5"]
    assert told.stderr.count("solving uncompiled") == 1
    assert "numba is not installed" in told.stderr
    assert "[jit]" in told.stderr
    refused = said(NO_NUMBA + CLAMP + TELL, tmp_path, SYNOVIA_KERNELS="compiled")
    assert refused.returncode == 1
    assert "numba is not installed" in refused.stderr.splitlines()[-1]
    assert "[jit]" in refused.stderr.splitlines()[-1]
    shown = said(NO_NUMBA + SOLVE, tmp_path)
    assert "reached" in shown.stdout
    assert shown.stderr.count("solving uncompiled") == 1


@pytest.mark.parametrize(
    ("choice", "code", "told"),
    [
        ("jit", MODE, ["jit"]),
        ("python", CLAMP + TELL, ["python", "2.0", "0.5", "False"]),
        ("prebuilt", CLAMP + TELL, ["prebuilt", "2.0", "0.5", "False"]),
    ],
    ids=["jit", "python", "prebuilt"],
)
def test_the_way_can_be_chosen(prebuilt, choice, code, told):
    assert said(code, prebuilt, SYNOVIA_KERNELS=choice).stdout.split() == told


def test_a_level_that_does_not_exist_is_refused(prebuilt):
    assert "or a level among x86_64" in said(CLAMP + TELL, prebuilt, SYNOVIA_KERNELS="x86_64_v9").stderr


def test_kernels_of_other_sources_are_not_used(prebuilt, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(prebuilt, other)
    made = json.loads((other / "made.json").read_text())
    (other / "made.json").write_text(json.dumps(made | {"sources": made["sources"] | {"tree.tables": "0" * 16}}))
    instead = {"SYNOVIA_KERNELS": "uncompiled"}  # rather than import numba
    assert said(MODE, prebuilt, **instead).stdout.split() == ["prebuilt"]
    assert said(MODE, other, **instead).stdout.split() == ["python"]


@pytest.fixture
def load(prebuilt, tmp_path, monkeypatch):
    """A function that loads a copy of the folder, with another content of some files."""
    loader = import_module("synovia.kernels.compiler.prebuilt")
    copies = count()

    def loaded(**files):
        folder = tmp_path / str(next(copies))
        shutil.copytree(prebuilt, folder)
        for name, content in files.items():
            (folder / name.replace("__", ".")).write_bytes(content)
        monkeypatch.setattr(loader, "FOLDER", folder)
        monkeypatch.setattr(loader, "_CHOSEN", str(folder))  # those that the cache keeps are not looked for
        return loader.load()

    return loaded


def test_a_damaged_description_is_a_reason(load, prebuilt):
    made = json.loads((prebuilt / "made.json").read_text())
    assert load().level == LEVEL
    without = [{**made, name: None} for name in ("sources", "levels", "bytes")]
    empty = [made | {"levels": []}, made | {"levels": [3]}, made | {"bytes": {}}]
    for wrong in ({}, [], None, 3, "x", *without, *empty):
        found = load(made__json=json.dumps(wrong).encode())
        assert (found.level, found.reason.endswith("made.json is damaged")) == ("", True), wrong
    assert load(made__json=b"{").reason.endswith("is damaged")


def test_a_part_of_a_module_is_not_loaded_and_leaves_the_next_lower_level(load, prebuilt):
    """Loading a part can end the process."""
    name = f"{LEVEL}.abi3.so"
    whole = (prebuilt / name).read_bytes()
    part = {name.replace(".", "__"): whole[: len(whole) // 2]}
    assert f"{name} is damaged: expected {len(whole)} bytes, got {len(whole) // 2}" in load(**part).reason
    higher = "x86_64_v2"  # between the lowest and any that a processor of today has
    if LEVEL != "x86_64":
        return
    made = json.loads((prebuilt / "made.json").read_text())
    made |= {"levels": [LEVEL, higher], "bytes": made["bytes"] | {f"{higher}.abi3.so": 10}}
    found = load(made__json=json.dumps(made).encode(), **{f"{higher}__abi3__so": b"nothing"})
    assert (found.level, f"{higher}.abi3.so is damaged: expected 10 bytes, got 7" in found.reason) == (LEVEL, True)


REFUSED = {
    "tables.clamp_rows(variables, limits)": "expected 3 arguments, got 2",
    "tables.clamp_rows(variables, limits, q[0])": "argument 2: expected a C-contiguous array of float64",
    "tables.clamp_rows(variables, limits, q.astype(np.float32))": "argument 2",
    "tables.clamp_rows(variables, limits, np.zeros((2, 4))[:, ::2])": "argument 2",
    "tables.clamp_rows(variables, limits, [[1.0]])": "argument 2",
    "tables.clamp_rows(q, limits, q)": "argument 0: expected a C-contiguous array of int32",
    "tables.random_rows(variables, limits, q, 0.5, np.zeros(1, np.uint64))": "integer",
}
TRY = """
for call in sys.argv[1:]:
    try:
        eval(call)
        print("nothing raised")
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_other_arguments_are_refused(prebuilt):
    told = said(CLAMP + TRY, prebuilt, *REFUSED).stdout.splitlines()
    for call, error, line in zip(REFUSED, REFUSED.values(), told, strict=True):
        assert line.startswith("TypeError"), call
        assert error in line, call


def objects(cache):
    """The object files in a cache folder, by name."""
    return {file.name: file.read_bytes() for file in (cache / "objects").glob("*/*.o")}


def test_the_same_sources_give_the_same_bytes_whatever_a_process_has_compiled_before(prebuilt, tmp_path):
    others = "tree.bends.bend_shares", "tree.bends.bend_straight"  # take longer, so one process compiles them first
    subprocess.run(
        [
            sys.executable,
            BUILD,
            "--folder",
            tmp_path / "a",
            "--levels",
            LEVEL,
            "--jobs",
            "1",
            "--modules",
            *SMALL,
            *others,
        ],
        check=True,
        env=os.environ | {"SYNOVIA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
    )
    before, after = objects(prebuilt.parent / "cache"), objects(tmp_path / "cache")
    assert len(before) == len(SMALL)
    assert len(after) == len(SMALL) + len(others)
    assert before == {name: after[name] for name in before}


def test_objects_are_found_by_other_runs_and_are_whole(prebuilt, tmp_path):
    again = tmp_path / "again"
    made = subprocess.run(
        [sys.executable, BUILD, "--folder", again, "--levels", LEVEL, "--modules", *SMALL, "--jobs", "2"],
        check=True,
        env=os.environ
        | {"SYNOVIA_CACHE_DIR": str(prebuilt.parent / "cache"), "NUMBA_DISABLE_JIT": "1"},  # compiling fails
        capture_output=True,
        text=True,
    )
    assert "random poses" in made.stdout
    for file in prebuilt.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes(), file.name
    assert not list((prebuilt.parent / "cache" / "objects").glob("tmp*")), "half a folder is left"


def test_objects_stay_those_of_a_source_whose_comments_and_docstrings_change():
    packaging = module_from_spec(spec_from_file_location("packaging_kernels", BUILD))
    packaging.__loader__.exec_module(packaging)
    code = packaging._code_of
    assert code(b'"""A."""\ndef f(x):\n    """B."""\n    return x\n') == code(
        b'"""C."""\n# D\n\ndef f(x):\n    "E"\n    return x'
    )
    assert code(b"def f(x):\n    return x") != code(b"def f(x):\n    return -x")
    assert code(b'NAME = "a"') != code(b'NAME = "b"')


def test_modules_in_the_cache_serve_clones_on_processors_of_their_level(prebuilt, tmp_path, monkeypatch):
    loader = import_module("synovia.kernels.compiler.prebuilt")
    packaging = module_from_spec(spec_from_file_location("packaging_kernels", BUILD))
    packaging.__loader__.exec_module(packaging)
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(loader, "FOLDER", tmp_path / "nothing")
    monkeypatch.setattr(loader, "_CHOSEN", None)
    extension, best = loader._extension, [LEVEL]

    def found(folder, name, made):
        return SimpleNamespace(level=lambda: best[0]) if name == "processor" else extension(folder, name, made)

    monkeypatch.setattr(loader, "_extension", found)
    assert loader.load().reason == "this installation has no compiled kernels"
    for _ in range(2):
        packaging.keep(prebuilt, LEVEL)
    assert [folder.name for folder in (tmp_path / "cache" / "modules").iterdir()] == [loader.kept_folder(LEVEL).name]
    assert loader.load().level == LEVEL
    best[0] = "x86_64_v4" if LEVEL == "x86_64" else "another"
    assert loader.load().reason == "this installation has no compiled kernels"
    best[0] = LEVEL
    monkeypatch.setattr(loader, "_CHOSEN", "a folder")
    assert loader.load().level == "", "a folder that is named is the only one"
