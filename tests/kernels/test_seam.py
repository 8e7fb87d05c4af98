"""The compiler: where kernels are cached, when the cache is stale, what an import pulls in, and plain numba instead."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import synovia.kernels
from synovia.kernels.compiler import kept, link

USE = """
from pathlib import Path
import numpy as np
from synovia.kernels.tree import tables
from synovia.kernels.compiler import cache
q = np.array([[5.0]])
tables.clamp_rows(np.zeros((1, 3), np.int32), np.array([[-1.0, 2.0] + [0.0] * 9]), q)
print(q[0, 0], cache.cache_folder(Path(tables.__file__)))
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
@pytest.mark.jit
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
    old = "q[at] = min(max(q[at], limit[k, LOWER]), limit[k, UPPER])"
    text = helper.read_text(encoding="utf-8")
    assert old in text
    helper.write_text(text.replace(old, "q[at] = 42.0"), encoding="utf-8")
    assert run(USE, copied.parent, SYNOVIA_CACHE_DIR=str(cache))[0] == "42.0"
    assert len(list(cache.glob("*-*"))) == 2
    helper.write_text(text, encoding="utf-8")
    assert run(USE, copied.parent, SYNOVIA_CACHE_DIR=str(cache))[0] == "2.0"
    assert len(list(cache.glob("*-*"))) == 2


def test_an_edit_touches_only_the_kernels_that_import_the_file(copied, tmp_path):
    ask = "from synovia.kernels.compiler import cache, sources\n"
    names = ("heuristic.ccd", "heuristic.fabrik", "tree.tables")
    ask += f"print(*[cache.source_hash(sources.modules()[name]) for name in {names}])"
    before = run(ask, copied.parent, SYNOVIA_CACHE_DIR=str(tmp_path), SYNOVIA_KERNELS="python")
    with (copied / "kernels" / "heuristic" / "ccd.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    after = run(ask, copied.parent, SYNOVIA_CACHE_DIR=str(tmp_path), SYNOVIA_KERNELS="python")
    assert before[0] != after[0]
    assert before[1:] == after[1:]
    with (copied / "kernels" / "math" / "vectors.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    last = run(ask, copied.parent, SYNOVIA_CACHE_DIR=str(tmp_path), SYNOVIA_KERNELS="python")
    assert not set(after) & set(last)


@pytest.mark.compiled
@pytest.mark.jit
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
    assert kept.cache_root() == tmp_path / "mine"
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert kept.cache_root() == tmp_path / "xdg" / "synovia" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert kept.cache_root() == Path.home() / ".cache" / "synovia" / "kernels"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert kept.cache_root().parts[-4:] == ("Library", "Caches", "synovia", "kernels")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert kept.cache_root() == tmp_path / "local" / "synovia" / "kernels"


@pytest.mark.parametrize(
    "module", ["synovia", "synovia.errors", "synovia.model", "synovia.model.motion", "synovia.model.limits"]
)
def test_imports_stay_light(module):
    code = f"import sys, {module}; print(*sorted({{'numba', 'llvmlite', 'scipy'}} & set(sys.modules)))"
    assert run(code) == []


ODD = """
import gc, math, sys
import numpy as np
from synovia.kernels.compiler import compiled, jit
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

odd.__module__ = "synovia.kernels.odd"  # compilations of our own are told
A, numbers, out = np.arange(9.0) + 0.5, np.array([2.5, -7.9, 1e3]), np.zeros((3, 7))
kernel = jit._decorator(cached=True, **jit._ENTRY)(odd)
held = [sys.getrefcount(a) for a in (A, numbers, out)]
for _ in range(100):
    kernel(A, numbers, out)
gc.collect()  # a first compilation leaves tracebacks
assert held == [sys.getrefcount(a) for a in (A, numbers, out)], "references leak"
numbers[:] = math.nan
tail = np.zeros((3, 7))
if compiled():
    kernel(A, numbers, tail)
    assert math.isnan(tail[0, 5]) and tail[0, 6] == A[0], "as in Python, the first one stays when a NaN is compared"
print(*out.ravel())
"""

# Each breaks what ``link`` needs of numba, another part of it: on import, when a compilation begins, in a helper, when
# code is linked, at its end, and where a library is asked for its code.
BREAK = {
    "import": "import numba.core.codegen; del numba.core.codegen.JITCodeLibrary",
    "base class": "import numba.core.codegen as c; c.JITCodeLibrary = None",
    "begin": "link._Helper.__init__ = fail",
    "entry": "link._Entry.enable_object_caching = fail",
    "front end": "link._Helper._optimize_functions = fail",
    "helper": "link._Helper.finalize = fail",
    "link": "link._Entry._link_into = fail",
    "pointer": "link._Helper.get_pointer_to_function = fail",
    "end": "link._Entry.finalize = fail",
    "unlinked": "link._Entry._link_into = lambda library, module: None",
}
FAIL = """
def fail(*arguments, **options):
    raise SystemError("this numba is built differently")
"""
HEAR = """
import logging
class Keep(logging.Handler):
    def emit(self, record):
        if "numba's own" in record.getMessage(): told.append(record.getMessage())
told = []
logging.getLogger("synovia.kernels").addHandler(Keep())
logging.getLogger("synovia.kernels").setLevel(logging.INFO)
"""


def odd(tmp_path, before, **env):
    script = tmp_path / "odd.py"  # the compiler wants its source
    script.write_text(HEAR + before + ODD + "print(len(told), *told)", encoding="utf-8")
    said = run(f"import runpy; runpy.run_path({str(script)!r})", SYNOVIA_CACHE_DIR=str(tmp_path), **env)
    return [float(n) for n in said[:21]], int(said[21]), " ".join(said[22:])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The numbers of plain Python."""
    numbers, told, _ = odd(tmp_path_factory.mktemp("plain"), "", NUMBA_DISABLE_JIT="1")
    assert told == 0
    return numbers


@pytest.mark.compiled
@pytest.mark.jit
@pytest.mark.skipif(link.helper_pipeline is None, reason="this numba lacks what linking needs")
def test_linked_helpers_compute_what_plain_python_does(tmp_path, plain):
    assert odd(tmp_path, "") == (plain, 0, "")


@pytest.mark.compiled
@pytest.mark.jit
def test_a_function_of_numbas_shares_helpers_with_an_entry_point_of_the_same_process(tmp_path):
    """The entry point's copy of a large helper may have lost arguments: nobody else may call it."""
    script = tmp_path / "shared.py"
    script.write_text(
        """
import math, numba, numpy as np
from synovia.kernels.compiler import jit
@jit.apart
def large(unused, values, k):
    return math.sin(values[k]) + k
def total(values, out):
    out[0] = large(values[0], values, 1) + large(values[1], values, 2)
values = np.arange(3.0)
for decorate in (jit.entry, numba.njit):
    out = np.zeros(1)
    decorate(total)(values, out)
    print(out[0])
""",
        encoding="utf-8",
    )
    said = run(f"import runpy; runpy.run_path({str(script)!r})", SYNOVIA_CACHE_DIR=str(tmp_path / "cache"))
    np.testing.assert_allclose([float(x) for x in said], np.sin(1.0) + np.sin(2.0) + 3.0)


@pytest.mark.compiled
@pytest.mark.jit
@pytest.mark.parametrize("place", BREAK)
def test_whatever_breaks_plain_numba_compiles_and_that_is_told_once(tmp_path, plain, place):
    before = BREAK[place] if "core" in BREAK[place] else f"from synovia.kernels.compiler import link\n{BREAK[place]}"
    numbers, told, said = odd(tmp_path, f"{FAIL}{before}\n")
    assert numbers == plain
    assert told == 1, said


@pytest.mark.compiled
@pytest.mark.jit
def test_a_kernel_that_does_not_compile_says_so_and_leaves_linking_on(tmp_path):
    wrong = """
from synovia.kernels.compiler import compile_events, jit
@jit.device
def helper(x):
    return x + "text"
@jit.entry
def wrong(x):
    return helper(x)
@jit.entry
def right(x):
    return x + x
for _ in range(2):
    try:
        wrong(1.0)
    except Exception as error:
        print(type(error).__name__)
print(right(1.0), compile_events.linking.active, len(told))
"""
    script = tmp_path / "wrong.py"
    script.write_text(HEAR + wrong, encoding="utf-8")
    said = run(f"import runpy; runpy.run_path({str(script)!r})", SYNOVIA_CACHE_DIR=str(tmp_path))
    assert said == ["TypingError", "TypingError", "2.0", "True", "0"]
