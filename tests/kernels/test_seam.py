"""The seam: where compiled kernels are cached, when the cache is stale, and what an import pulls in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import synovia.kernels
from synovia.kernels.compiler import jit

USE = """
from pathlib import Path
import numpy as np
from synovia.kernels.tree import tables
from synovia.kernels.compiler import jit
q = np.array([[5.0]])
tables.clamp_rows(np.zeros((1, 3), np.int32), np.array([[-1.0, 2.0] + [0.0] * 9]), q)
print(q[0, 0], jit.cache_folder(Path(tables.__file__)))
"""
TELL = "print(sum(tables.clamp_rows.stats.cache_hits.values()), *told)"
LISTEN = """
import logging
told = []
class Keep(logging.Handler):
    def emit(self, record): told.append(record.compiling)
logging.getLogger("synovia.kernels").addHandler(Keep())
logging.getLogger("synovia.kernels").setLevel(logging.INFO)
"""


def run(code, package=None, **env):
    env = {**os.environ, **env}
    if package is not None:
        env["PYTHONPATH"] = str(package)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def copied(tmp_path):
    """A package of kernels only, free to be edited."""
    package = tmp_path / "edited" / "synovia"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copytree(
        Path(synovia.kernels.__file__).parent, package / "kernels", ignore=shutil.ignore_patterns("__pycache__")
    )
    return package


@pytest.mark.compiled
@pytest.mark.slow
def test_cache_goes_where_it_is_told_and_an_edited_helper_is_seen(copied, tmp_path):
    cache = tmp_path / "cache"
    value, folder, hits, *told = run(LISTEN + USE + TELL, copied.parent, SYNOVIA_CACHE_DIR=str(cache))
    assert (value, Path(folder).parent) == ("2.0", cache)
    assert (hits, told) == ("0", ["True", "False"])
    assert list(Path(folder).rglob("*.nbc")), "nothing was cached"
    # another installation of the same, at another place and time, finds what this one compiled
    other = tmp_path / "other" / "synovia"
    shutil.copytree(copied, other, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy)
    assert run(LISTEN + USE + TELL, other.parent, SYNOVIA_CACHE_DIR=str(cache))[1:] == [folder, "1"]
    helper = copied / "kernels" / "tree" / "variables.py"
    old = "q[at] = min(max(q[at], limit[k, 0]), limit[k, 1])"
    text = helper.read_text(encoding="utf-8")
    assert old in text
    helper.write_text(text.replace(old, "q[at] = 42.0"), encoding="utf-8")
    assert run(USE, copied.parent, SYNOVIA_CACHE_DIR=str(cache))[0] == "42.0"
    assert len(list(cache.iterdir())) == 2
    helper.write_text(text, encoding="utf-8")
    assert run(USE, copied.parent, SYNOVIA_CACHE_DIR=str(cache))[0] == "2.0"
    assert len(list(cache.iterdir())) == 2


def test_an_edit_touches_only_the_kernels_that_import_the_file(copied, tmp_path):
    ask = "from synovia.kernels.compiler import jit, sources\n"
    names = ("heuristic.ccd", "heuristic.fabrik", "tree.tables")
    ask += f"print(*[jit.source_hash(sources.modules()[name]) for name in {names}])"
    before = run(ask, copied.parent, SYNOVIA_CACHE_DIR=str(tmp_path))
    with (copied / "kernels" / "heuristic" / "ccd.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    after = run(ask, copied.parent, SYNOVIA_CACHE_DIR=str(tmp_path))
    assert before[0] != after[0]
    assert before[1:] == after[1:]
    with (copied / "kernels" / "math" / "vectors.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    last = run(ask, copied.parent, SYNOVIA_CACHE_DIR=str(tmp_path))
    assert not set(after) & set(last)


@pytest.mark.compiled
@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_done_without(copied, tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    cache = blocked / "cache"
    value, folder = run(USE, copied.parent, SYNOVIA_CACHE_DIR=str(cache))
    assert (value, Path(folder).parent) == ("2.0", cache)


def test_uncompiled_kernels_give_the_same_and_cache_nothing(copied, tmp_path):
    cache = tmp_path / "cache"
    assert run(USE, copied.parent, SYNOVIA_CACHE_DIR=str(cache), NUMBA_DISABLE_JIT="1") == ["2.0", "None"]
    assert not cache.exists()


def test_a_kernel_typed_at_a_prompt_has_no_file_and_is_not_cached(tmp_path):
    typed = "from synovia.kernels.compiler.jit import entry\n@entry\ndef twice(x):\n    return 2 * x\nprint(twice(4))"
    assert run(typed, SYNOVIA_CACHE_DIR=str(tmp_path)) == ["8"]
    assert list(tmp_path.iterdir()) == []


def test_cache_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", str(tmp_path / "mine"))
    assert jit.cache_root() == tmp_path / "mine"
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jit.cache_root() == tmp_path / "xdg" / "synovia" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jit.cache_root() == Path.home() / ".cache" / "synovia" / "kernels"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert jit.cache_root().parts[-4:] == ("Library", "Caches", "synovia", "kernels")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert jit.cache_root() == tmp_path / "local" / "synovia" / "kernels"


@pytest.mark.parametrize(
    "module", ["synovia", "synovia.errors", "synovia.model", "synovia.model.motion", "synovia.model.limits"]
)
def test_imports_stay_light(module):
    code = f"import sys, {module}; print(*sorted({{'numba', 'llvmlite', 'scipy'}} & set(sys.modules)))"
    assert run(code) == []


ODD = """
import math, sys
import numpy as np
from synovia.kernels.compiler import jit
from synovia.kernels.math.rotations import column

@jit.device
def pick(A, k, x, n):
    return column(A, k)[0] + column(A, 2)[2], min(x, n, 3), max(n, 2, x), int(x) + int(n)

def odd(A, numbers, out):
    for i in range(numbers.shape[0]):
        row = out[i]
        x, n = numbers[i], np.int64(i) - 1
        row[0], row[1], row[2], row[3] = pick((A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8]), i, x, n)
        row[4] = min(n, 0) + max(n, 1)
        row[5] = max(x, A[0])
        row[6] = max(A[0], x)

A, numbers, out = np.arange(9.0) + 0.5, np.array([2.5, -7.9, 1e3]), np.zeros((3, 7))
kernel = jit._compiler(**jit._ENTRY)(odd)
held = [sys.getrefcount(a) for a in (A, numbers, out)]
for _ in range(100):
    kernel(A, numbers, out)
assert held == [sys.getrefcount(a) for a in (A, numbers, out)], "references leak"
numbers[:] = math.nan
tail = np.zeros((3, 7))
if jit.compiled():
    kernel(A, numbers, tail)
    assert math.isnan(tail[0, 5]) and tail[0, 6] == A[0], "as in Python, the first one stays when a NaN is compared"
print(*out.ravel(), "quick" if "pipeline_class" in jit._ENTRY else "ordinary")
"""


@pytest.mark.compiled
@pytest.mark.slow
def test_the_short_way_through_the_compiler_the_ordinary_one_and_python_agree(tmp_path):
    def told(before, **env):
        script = tmp_path / "odd.py"  # the compiler wants its source
        script.write_text(before + ODD, encoding="utf-8")
        *numbers, way = run(f"import runpy; runpy.run_path({str(script)!r})", SYNOVIA_CACHE_DIR=str(tmp_path), **env)
        return [float(n) for n in numbers], way

    quick = told("")
    ordinary = told("import sys; sys.modules['synovia.kernels.compiler.frontend'] = None")
    plain = told("", NUMBA_DISABLE_JIT="1")
    assert quick[0] == ordinary[0] == plain[0]
    assert (quick[1], ordinary[1]) == ("quick", "ordinary")
