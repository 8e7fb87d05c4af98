"""Do the tests notice a mistake? Changes one token of the package at a time and counts how often a test fails.

    python benchmarks/mutants.py                          # 400 random mutants
    python benchmarks/mutants.py --count 60 --seed 3 --only 'kernels/*' --only 'io/bvh/*'
    python benchmarks/mutants.py --line kernels/math/spheres.py:40 --line io/npz.py:150-160   # all of these lines
    python benchmarks/mutants.py --list                   # which mutants a seed draws, without running them

A first run (again after a change of the package or of its tests) finds out which tests run which line. Mutants of
kernels run as plain Python (``NUMBA_DISABLE_JIT=1``), because compiling one takes a minute. Mutants of other files run
beside kernels that came compiled (``just kernels``), if there are any. A mutant then meets only the tests that run its
line, quick ones first. Results are kept in ``.mutants/``: a run that was cut off goes on where it
stopped, and survivors are tried again when tests have changed. Survivors that change nothing that is promised are
listed in ``mutants.toml``, each with its reason. The exit status is 1 if the share that was caught is below
``--bar``.

The changes themselves are those of cosmic-ray, by its API. Its own runner has no way to draw a sample, or to choose
the tests for a line; mutmut leaves out functions with decorators, which all kernels have.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import functools
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice, zip_longest
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
KEPT = REPO / ".mutants"
EQUIVALENT = Path(__file__).parent / "mutants.toml"
PACKAGE = "src/synovia/"
SOURCES = (
    "kernels/*", "io/*", "model/limits/*", "files/goals.py", "files/tracks.py", "tracking/track.py",
    "tracking/jumps.py", "clips/points.py", "clips/pointfile.py", "retargeting/joint_map.py",
)  # fmt: skip
# Lanes run compiled alone, and are held to their scalar kernels there; the compiler has tests of its own.
LEFT_OUT = ("kernels/simd/*", "kernels/compiler/*")
PREBUILT = Path(os.environ.get("SYNOVIA_PREBUILT") or REPO / PACKAGE / "kernels/prebuilt")
# Much for little: laws that the solvers' own tests hold too, and refusals before any kernel
NOT_RUN = ("tests/solvers/test_conformance.py", "tests/ik/test_ik_input.py", "tests/kernels/test_seam.py")
PASSES = {
    "kernels": [
        "tests/kernels", "tests/ik", "tests/solvers", "tests/clips", "tests/test_geometry.py",
        "tests/test_jacobian_of_pose.py",
    ],
    "files": [
        "tests/ik/test_goal_writing.py", "tests/ik/test_track.py", "tests/ik/test_jumps.py", "tests/clips",
        *(f"tests/test_{name}.py" for name in ("bvh", "gltf", "urdf", "toml", "mjcf", "writers", "models", "limits",
          "skeleton", "pose_motion", "cli_files", "cli_solve", "cli_animate", "cli_inspect", "retarget",
          "reader_bounds", "format_edges", "learners_files", "lerobot", "rest_pose", "fuzz")),
    ],
}  # fmt: skip

# One token each. Those that could only crash (a shift of floats) are left out: they would flatter the tests. So is a
# comparison that moves by its edge alone (< to <=) in kernels: floats meet the edge almost never.
_TURNED = (
    "Eq_NotEq", "NotEq_Eq", "Lt_Gt", "LtE_Gt", "Gt_Lt", "GtE_Lt", "Is_IsNot", "IsNot_Is",
)  # fmt: skip
_EDGES = ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")
_BINARY = (
    "Add_Sub", "Sub_Add", "Mul_Div", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul", "BitAnd_BitOr",
    "BitOr_BitAnd", "LShift_RShift", "RShift_LShift", "BitXor_BitAnd",
)  # fmt: skip
_OTHERS = (
    "ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "AddNot", "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "ZeroIterationForLoop",
)  # fmt: skip
OPERATORS = (
    *(f"ReplaceComparisonOperator_{one}" for one in (*_TURNED, *_EDGES)),
    *(f"ReplaceBinaryOperator_{one}" for one in _BINARY),
    *_OTHERS,
)
MEMORY = 6 << 30  # bytes of address space for one mutant's tests


# --- the plugin that pytest loads (``-p mutants``) ------------------------------------------------------------------


def pytest_configure() -> None:
    """Bound the memory of a mutant's tests."""
    if os.environ.get("MUTANTS_MEMORY"):
        import resource

        most = int(os.environ["MUTANTS_MEMORY"])
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Let coverage note which test runs a line."""
    import coverage

    if (running := coverage.Coverage.current()) is not None:
        running.switch_context(nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Note how long each test took, and whether it passed; or which one caught the mutant."""
    place = os.environ.get("MUTANTS_NOTES")
    if place and (report.when == "call" or report.failed):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(json.dumps([report.nodeid, report.outcome, report.duration]) + "\n")


# --- which tests run which line -------------------------------------------------------------------------------------


def tracked_files() -> list[str]:
    """Return the files that git knows or would take, relative to the repository."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    return subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def digest(files: list[str]) -> str:
    """Return a hash of files and what is in them."""
    total = hashlib.sha256()
    for name in sorted(files):
        path = REPO / name
        if path.is_file():
            total.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def environment(folder: Path, extra: dict[str, str], interpreted: bool = True) -> dict[str, str]:
    """Return the environment of tests on the package that lies in a folder, with kernels as plain Python or not."""
    paths = os.pathsep.join([str(folder / "src"), str(Path(__file__).parent)])
    data = os.environ.get("SYNOVIA_DATA") or str(REPO.parent / "shared" / "data")
    # Without bytecode each process would parse all libraries again
    left_out = ("COV_", "COVERAGE_", "PYTHONDONTWRITEBYTECODE", "NUMBA_DISABLE_JIT", "SYNOVIA_KERNELS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    # CI: hypothesis shows the same examples every time
    kernels = {"NUMBA_DISABLE_JIT": "1"} if interpreted else {"SYNOVIA_PREBUILT": str(PREBUILT)}
    return {**kept, "PYTHONPATH": paths, "CI": "true", "SYNOVIA_DATA": data, **kernels, **extra}


@functools.cache
def interprets(name: str) -> bool:
    """Return whether a pass runs kernels as plain Python: those of mutants, and all if none came compiled that fit."""
    if name == "kernels":
        return True
    ask = [sys.executable, "-c", "from synovia.kernels import compiler; print(compiler.mode)"]
    env = environment(REPO, {}, interpreted=False)
    return subprocess.run(ask, env=env, capture_output=True, text=True, check=False).stdout.strip() != "prebuilt"


def small(name: str) -> list[str]:
    """Return the arguments of pytest for the tests of a pass that are quick enough."""
    return ["-m", f"not slow and not shared_data{' and not compiled' if interprets(name) else ''}"]


def is_test(file: str) -> bool:
    """Return whether a file holds tests, and not what they share."""
    return bool(re.fullmatch(r"tests/(\w+/)*test_\w+\.py", file))


def in_pass(name: str, file: str) -> bool:
    """Return whether a pass runs a file of tests."""
    return file not in NOT_RUN and any(file == one or file.startswith(f"{one}/") for one in PASSES[name])


PYTEST = ["-n", "0", "-q", "-p", "mutants", "-p", "no:cacheprovider", "--no-header"]


class Lines:
    """Which tests run which line, and how long they take.

    Args:
        seconds: Of each test that passes.
        tests: By file (relative to the package), line and then the tests' names.
    """

    def __init__(self, seconds: dict[str, float], tests: dict[str, dict[int, list[str]]]) -> None:
        """Keep both."""
        self.seconds, self.tests = seconds, tests

    @classmethod
    def of(cls, name: str, files: list[str], keep: bool) -> Lines:
        """Return what one pass of the tests shows.

        What was found before comes from ``.mutants/``: only files of tests that changed since are run, and all of them
        if the package or what tests share has changed (``keep``: only new files of tests).
        """
        place = KEPT / f"{name}.json"
        shared = digest([file for file in files if not is_test(file)])
        known: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
        before = known.get("files", {}) if keep or known.get("shared") == shared else {}
        now = {file: digest([file]) for file in files if is_test(file) and in_pass(name, file)}
        found = {file: before[file] for file in now if file in before and (keep or before[file]["digest"] == now[file])}
        stale = [file for file in now if file not in found]
        if stale:
            print(
                f"finding out which tests run which line of the {name} ({len(stale)} files)",
                file=sys.stderr,
                flush=True,
            )
            seconds, tests = cls.make(name, stale)
            for file in stale:
                own = {test: took for test, took in seconds.items() if test.startswith(f"{file}::")}
                number = {test: i for i, test in enumerate(own)}
                lines = {
                    source: {
                        line: some for line, met in lines.items() if (some := [number[t] for t in met if t in own])
                    }
                    for source, lines in tests.items()
                }
                found[file] = {"digest": now[file], "seconds": own, "tests": lines}
            place.write_text(json.dumps({"shared": shared, "files": found}), encoding="utf-8")
        out = cls({}, {})
        for one in found.values():
            out.seconds.update(one["seconds"])
            names = list(one["seconds"])
            for source, lines in one["tests"].items():
                to = out.tests.setdefault(source, {})
                for line, some in lines.items():
                    to.setdefault(int(line), []).extend(names[i] for i in some)
        return out

    @classmethod
    def make(cls, name: str, files: list[str]) -> tuple[dict[str, float], dict[str, dict[int, list[str]]]]:
        """Run files of tests, and return how long each test took and which lines of the package it ran."""
        import coverage

        notes, data = KEPT / f"{name}.notes", KEPT / f"{name}.coverage"
        for old in (notes, data):
            old.unlink(missing_ok=True)
        notes.touch()
        env = environment(REPO, {"MUTANTS_NOTES": str(notes), "COVERAGE_FILE": str(data)}, interprets(name))
        cover = ["--cov", "--cov-context=test", "--cov-report="]
        subprocess.run(
            [sys.executable, "-m", "pytest", *PYTEST, *files, *small(name), *cover], cwd=REPO, env=env, check=False
        )
        kept = coverage.CoverageData(str(data))
        kept.read()
        return cls.read(notes, kept)

    @staticmethod
    def read(notes: Path, data: Any) -> tuple[dict[str, float], dict[str, dict[int, list[str]]]]:
        """Return seconds and lines from the plugin's notes and the data of coverage."""
        rows = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
        failed = {test for test, outcome, _ in rows if outcome == "failed"}
        if failed:
            print(f"left out, they fail as it is: {', '.join(sorted(failed))}", file=sys.stderr)
        seconds = {test: took for test, outcome, took in rows if outcome == "passed" and test not in failed}
        tests: dict[str, dict[int, list[str]]] = {}
        for file in data.measured_files():
            inside = file.replace("\\", "/").split(PACKAGE)[-1]
            lines = {
                line: sorted(set(contexts) & seconds.keys()) for line, contexts in data.contexts_by_lineno(file).items()
            }
            tests[inside] = {line: found for line, found in lines.items() if found}
        return seconds, tests

    def choose(self, found: set[str], budget: float) -> list[str]:
        """Return tests within a budget of seconds: the quickest example of every test first, then the next of each."""
        groups: dict[str, list[str]] = defaultdict(list)
        for test in sorted(found, key=lambda one: (self.seconds[one], one)):
            groups[test.split("[")[0]].append(test)
        rank = {test: i for group in groups.values() for i, test in enumerate(group)}
        out: list[str] = []
        for test in sorted(rank, key=lambda one: (rank[one], self.seconds[one], one)):
            if not out or self.seconds[test] <= budget:
                out.append(test)
                budget -= self.seconds[test]
        return out


# --- mutants --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """One change of one token."""

    file: str  # relative to the package
    line: int
    operator: str
    occurrence: int
    code: str  # the whole file, changed
    was: str  # the line before and after
    now: str
    key: str  # hash of file and change

    def __str__(self) -> str:
        """Return file, line and change."""
        return f"{self.file}:{self.line}: {self.was}  ->  {self.now}"


def skipped(tree: ast.AST) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the ranges of a file whose changes nobody can see: annotations, names for types, ``__all__``."""
    out = []
    for node in ast.walk(tree):
        found: list[ast.AST | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.returns, *node.decorator_list]
        if isinstance(node, ast.ClassDef):
            found += node.decorator_list
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwonlyargs and not node.args.vararg:
            first = node.args.kwonlyargs[0]  # before it stands the star alone, which is no product
            before = [*node.args.posonlyargs, *node.args.args, *node.args.defaults]
            begin = max(((one.end_lineno, one.end_col_offset) for one in before), default=(node.lineno, 0))
            out.append((begin, (first.lineno, first.col_offset)))
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: a check of what is so
            found.append(node.value)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found.append(node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript):
            words = ast.unparse(node.value)
            if re.fullmatch(r"[\w.\[\], |]*(NDArray|Callable|Sequence|Mapping|None)[\w.\[\], |]*", words):
                found.append(node)
        out += [
            ((at.lineno, at.col_offset), (at.end_lineno, at.end_col_offset)) for at in found if hasattr(at, "lineno")
        ]
    return out


def sites(file: str) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Return the places of a file that can be changed, and by which operator and occurrence of it."""
    import parso  # noqa: F401 - cosmic-ray 8.7 cannot be imported before it
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    source = (REPO / PACKAGE / file).read_text(encoding="utf-8")
    out_of_sight = skipped(ast.parse(source))
    nodes = list(ast_nodes(get_ast(source)))
    out: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for name in OPERATORS:
        if file.startswith("kernels/") and name.endswith(_EDGES):
            continue
        operator = get_operator(f"core/{name}")()
        k = -1
        for node in nodes:
            for position in operator.mutation_positions(node):
                k += 1
                begin = position[0]
                if not any(a <= begin < b for a, b in out_of_sight):
                    out[begin].append((name, k))
    return dict(out)


def make(file: str, operator: str, occurrence: int) -> Mutant | None:
    """Return one mutant, None if the change is none, or no longer Python."""
    import parso  # noqa: F401
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (REPO / PACKAGE / file).read_text(encoding="utf-8")
    try:
        code = mutate_code(source, get_operator(f"core/{operator}")(), occurrence)
    except AttributeError:  # cosmic-ray 8.7: an exception with a dot in its name
        return None
    if code is None or code == source:
        return None
    try:
        if ast.dump(ast.parse(code)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    old, new = source.split("\n"), code.split("\n")
    line = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    was, now = old[line].strip(), new[line].strip()
    key = hashlib.sha256(f"{file}\0{source}\0{code}".encode()).hexdigest()[:16]
    return Mutant(file, line + 1, operator, occurrence, code, was, now, key)


def draw(wanted: int, seed: int, only: list[str]) -> list[Mutant]:
    """Return random mutants, from kernels and from the other files in turn.

    Places are drawn first, so that one that can be changed in many ways counts once.
    """
    files = [str(path.relative_to(REPO / PACKAGE).as_posix()) for path in sorted((REPO / PACKAGE).rglob("*.py"))]
    files = [one for one in files if any(fnmatch.fnmatch(one, pattern) for pattern in SOURCES)]
    files = [one for one in files if not any(fnmatch.fnmatch(one, pattern) for pattern in LEFT_OUT)]
    if only:
        files = [one for one in files if any(fnmatch.fnmatch(one, pattern) for pattern in only)]
    rng = random.Random(seed)
    every = [(file, at, ways) for file in files for at, ways in sorted(sites(file).items())]
    rng.shuffle(every)

    def of_kind(kernels: bool) -> Iterator[Mutant]:
        places = ((file, ways) for file, _, ways in every if file.startswith("kernels/") is kernels)
        made = (make(file, *rng.choice(ways)) for file, ways in places)
        return (one for one in made if one is not None)

    pairs = zip_longest(of_kind(True), of_kind(False))
    return list(islice((one for pair in pairs for one in pair if one is not None), wanted))


def every(places: list[str]) -> list[Mutant]:
    """Return all mutants of lines of files, each given as FILE:LINE or FILE:FIRST-LAST."""
    out: list[Mutant] = []
    for place in places:
        file, _, lines = place.rpartition(":")
        first, _, last = lines.partition("-")
        for at, ways in sorted(sites(file).items()):
            if int(first) <= at[0] <= int(last or first):
                out += [made for way in ways if (made := make(file, *way)) is not None]
    return out


def tests_of(mutant: Mutant, lines: Lines) -> set[str]:
    """Return the tests that may notice a mutant: those that run its line, or use the name that the line defines."""
    source = (REPO / PACKAGE / mutant.file).read_text(encoding="utf-8")
    tree = ast.parse(source)
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.lineno <= mutant.line <= n.end_lineno]
    here = lines.tests.get(mutant.file, {})
    if inside:
        body = min(inside, key=lambda n: n.end_lineno - n.lineno)
        if mutant.line >= body.body[0].lineno:
            # coverage names one line of a statement, or of the head of one that holds others: not always its first
            statements = [
                n for n in ast.walk(body) if isinstance(n, ast.stmt) and n.lineno <= mutant.line <= n.end_lineno
            ]
            inner = max(statements, key=lambda n: (n.lineno, -n.end_lineno))
            held = getattr(inner, "body", None)
            last = max(inner.lineno, held[0].lineno - 1) if held else inner.end_lineno
            lines_of_it = {mutant.line, *range(inner.lineno, last + 1)}
            return {test for line in lines_of_it for test in here.get(line, [])}
        return {test for line in range(body.lineno, body.end_lineno + 1) for test in here.get(line, [])}
    top = next((n for n in tree.body if n.lineno <= mutant.line <= n.end_lineno), None)
    names = [n.id for n in ast.walk(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)] if top else []
    everywhere = {test for found in here.values() for test in found}
    if not everywhere:  # nothing but tables and classes: whoever imports it
        module = mutant.file.removesuffix(".py").replace("/", ".")
        for file, covered in lines.tests.items():
            path = REPO / PACKAGE / file
            if path.is_file() and f"from synovia.{module} import" in path.read_text(encoding="utf-8"):
                everywhere |= {test for found in covered.values() for test in found}
    if isinstance(top, ast.ClassDef) or not names:
        return everywhere
    used = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
    out: set[str] = set()
    for file, covered in lines.tests.items():
        path = REPO / PACKAGE / file
        text = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        for line, found in covered.items():
            if line <= len(text) and used.search(text[line - 1]):
                out.update(found)
    return out or everywhere


# --- running them ---------------------------------------------------------------------------------------------------


# Where the tests stand that need kernels compiled, by the room of the kernel; a mutant recompiles what imports it
ROOMS = {
    "hierarchy": ["solvers/test_full_body.py", "solvers/test_misses.py"],
    "heuristic": [
        "solvers/test_fabrik.py",
        "solvers/test_ccd.py",
        "solvers/test_particles.py",
        "solvers/test_poles.py",
    ],
    "jacobian": [
        "ik/test_lm.py",
        "solvers/test_jacobian.py",
        "solvers/test_secondary_objectives.py",
        "solvers/test_chain_newton.py",
    ],
    "closed_form": ["solvers/test_closed_forms.py", "solvers/test_two_bone.py", "solvers/test_aim.py"],
    "search": ["ik/test_lm.py", "solvers/test_misses.py", "ik/test_track.py"],
    "goals": ["ik/test_further_goals.py", "ik/test_lm.py", "solvers/test_poles.py"],
    "tree": ["ik/test_lm.py", "solvers/test_fabrik.py", "clips"],
    "math": ["ik/test_lm.py", "solvers/test_full_body.py"],
}
COMPILED_LIMIT = 420.0  # seconds, compiling with it


def compiled_tests(mutant: Mutant) -> list[str]:
    """Return the arguments of pytest for the compiled tests of a kernel's room; none for other files."""
    files = ROOMS.get(mutant.file.split("/")[1], []) if mutant.file.startswith("kernels/") else []
    return [*(f"tests/{file}" for file in files), "-m", "compiled and not slow and not shared_data"] if files else []


class Copy:
    """A copy of the repository in which one mutant at a time lives."""

    stamps = count(1_000_000_000)  # each state of a file has a time of its own, or old bytecode would be taken for it
    lock = threading.Lock()

    def __init__(self, files: list[str]) -> None:
        """Copy what git knows."""
        self.folder = Path(tempfile.mkdtemp(prefix="synovia-mutants-"))
        for name in files:
            if (REPO / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPO / name, self.folder / name)

    def write(self, file: str, code: str) -> None:
        """Write a file of the package."""
        path = self.folder / PACKAGE / file
        path.write_text(code, encoding="utf-8")
        with self.lock:
            stamp = next(self.stamps)
        os.utime(path, (stamp, stamp))

    def run(self, mutant: Mutant, tests: list[str], limit: float, compiled: bool = False) -> tuple[str, str]:
        """Return (caught, slow or survived; the test that caught it) of a mutant, with kernels compiled or not."""
        notes = self.folder / "notes"
        notes.unlink(missing_ok=True)
        self.write(mutant.file, mutant.code)
        interpreted = interprets("kernels" if mutant.file.startswith("kernels/") else "files")
        env = environment(self.folder, {"MUTANTS_NOTES": str(notes), "MUTANTS_MEMORY": str(MEMORY)}, interpreted)
        if compiled:
            env |= {"NUMBA_DISABLE_JIT": "0", "SYNOVIA_CACHE_DIR": str(KEPT / "cache")}
        going = subprocess.Popen(
            [sys.executable, "-m", "pytest", *PYTEST, "-x", "--tb=no", *tests], cwd=self.folder, env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = going.wait(limit)
        except subprocess.TimeoutExpired:
            return ("survived" if compiled else "slow"), f"longer than {limit:.0f} s"  # compiling takes long as well
        finally:
            if going.poll() is None:
                os.killpg(going.pid, signal.SIGKILL)
                going.wait()
            self.write(mutant.file, (REPO / PACKAGE / mutant.file).read_text(encoding="utf-8"))
        if code in (0, 5):  # 5: no test fits
            return "survived", ""
        rows = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()] if notes.exists() else []
        by = next((test for test, outcome, _ in rows if outcome == "failed"), "")
        return "caught", by or "cannot be imported, or crashes"


def equivalents() -> list[dict[str, str]]:
    """Return the committed survivors that are equivalent: file, line before and after, reason."""
    return tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]


def named_equivalent(mutant: Mutant, known: list[dict[str, str]]) -> str | None:
    """Return the reason why nobody can see a mutant, None if it is not in the list."""
    for one in known:
        if one["file"] == mutant.file and one["was"] == mutant.was and one["now"] == mutant.now:
            return one["reason"]
    return None


def kept_results() -> dict[str, dict[str, Any]]:
    """Return what earlier runs found, by the mutant's key."""
    place = KEPT / "results.jsonl"
    rows = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()] if place.exists() else []
    return {row["key"]: row for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", action="append", default=[], help="files of the package, such as 'io/*' (again for more)"
    )
    parser.add_argument("--line", action="append", default=[], help="every mutant of FILE:LINE, or of FILE:FIRST-LAST")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--budget", type=float, default=60.0, help="seconds of tests for one mutant, as they took before"
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a mutant counts as caught")
    parser.add_argument(
        "--compiled", action="store_true", help="survivors among kernels meet the compiled tests too (minutes each)"
    )
    parser.add_argument("--keep-map", action="store_true", help="believe which tests run a line, though files changed")
    parser.add_argument("--also", action="append", default=[], help="a test that every mutant meets (again for more)")
    parser.add_argument("--bar", type=float, default=0.85, help="share that is to be caught, equivalents apart")
    parser.add_argument("--list", action="store_true", help="show the mutants and end")
    parser.add_argument("--json", type=Path, help="also write the results there")
    args = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    drawn = every(args.line) if args.line else draw(args.count, args.seed, args.only)
    if args.list:
        print("\n".join(map(str, drawn)))
        return 0
    files = tracked_files()
    sources = [name for name in files if name.startswith(("src/", "tests/"))]
    key = digest(sources)
    known, before = equivalents(), kept_results()
    passes = {"kernels": [m for m in drawn if m.file.startswith("kernels/")]}
    passes["files"] = [m for m in drawn if m not in passes["kernels"]]
    lines = {name: Lines.of(name, sources, args.keep_map) for name, some in passes.items() if some}
    rows: list[dict[str, Any]] = []
    todo: list[tuple[Mutant, str]] = []
    for name, some in passes.items():
        for mutant in some:
            old = before.get(mutant.key)
            tried = old and old["tests"] == key and (old.get("compiled", False) or not args.compiled)
            if old and (old["end"] in ("caught", "slow") or tried):
                rows.append(old)
            else:
                todo.append((mutant, name))
    print(f"{len(drawn)} mutants, {len(rows)} known from before", file=sys.stderr, flush=True)
    idle = [Copy(files) for _ in range(min(args.jobs, len(todo)))]
    copies = list(idle)
    lock = threading.Lock()

    def one(task: tuple[Mutant, str]) -> None:
        mutant, name = task
        began = time.perf_counter()
        chosen = [*args.also, *lines[name].choose(tests_of(mutant, lines[name]), args.budget)]
        with lock:
            copy = idle.pop()
        try:
            end, by = copy.run(mutant, chosen, args.limit) if chosen else ("unseen", "")
            if args.compiled and end in ("survived", "unseen") and (rooms := compiled_tests(mutant)):
                caught, by = copy.run(mutant, rooms, COMPILED_LIMIT, compiled=True)
                end = caught if caught == "caught" else end
        finally:
            with lock:
                idle.append(copy)
        row = {
            "key": mutant.key, "end": end, "by": by, "file": mutant.file, "line": mutant.line,
            "operator": mutant.operator, "was": mutant.was, "now": mutant.now, "tests": key, "met": len(chosen),
            "seconds": round(time.perf_counter() - began, 1), "compiled": args.compiled,
        }  # fmt: skip
        with lock:
            rows.append(row)
            with (KEPT / "results.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{len(rows):4d} {end:8s} {row['seconds']:6.1f} s  {mutant}", file=sys.stderr, flush=True)

    try:
        with ThreadPoolExecutor(max(args.jobs, 1)) as pool:
            list(pool.map(one, todo))
    finally:
        for copy in copies:
            shutil.rmtree(copy.folder, ignore_errors=True)
    return report(rows, drawn, known, args.bar, args.json)


def report(
    rows: list[dict[str, Any]], drawn: list[Mutant], known: list[dict[str, str]], bar: float, place: Path | None
) -> int:
    """Print what was caught and what was not; return 1 below the bar."""
    by_key = {mutant.key: mutant for mutant in drawn}
    counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(("caught", "equivalent", "survived"), 0))
    alive = []
    for row in sorted(rows, key=lambda row: (row["file"], row["line"])):
        part = row["file"].split("/")[0]
        if row["end"] in ("caught", "slow"):
            counts[part]["caught"] += 1
        elif reason := named_equivalent(by_key[row["key"]], known):
            counts[part]["equivalent"] += 1
            row["equivalent"] = reason
        else:
            counts[part]["survived"] += 1
            alive.append(row)
    for row in alive:
        no_test = "" if row["end"] == "survived" else ", no quick test runs it"
        print(f"{row['file']}:{row['line']} ({row['operator']}{no_test})\n  - {row['was']}\n  + {row['now']}")
    caught, same, left = (sum(c[what] for c in counts.values()) for what in ("caught", "equivalent", "survived"))
    print(f"\n{'part':12s} caught  equivalent  survived")
    for part, c in sorted(counts.items()):
        print(f"{part:12s} {c['caught']:6d} {c['equivalent']:11d} {c['survived']:9d}")
    share = caught / max(caught + left, 1)
    print(f"\n{caught} of {caught + left} caught: {share:.1%} (bar {bar:.0%}); {same} equivalent")
    if place:
        place.write_text(json.dumps({"share": share, "mutants": rows}, indent=1) + "\n", encoding="utf-8")
    return 0 if share >= bar else 1


if __name__ == "__main__":
    sys.exit(main())
