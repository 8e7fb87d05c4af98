"""Entry points by name: the list of them is whole, and what is compiled ahead is what a solve asks for."""

import ast
import io
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace

import pytest

from browsing import until
from synovia import compiling
from synovia.compiling import CompilerProcess, Compilers
from synovia.errors import SynoviaError
from synovia.kernels.compiler import compile_events, compiled, entries, mode, sources

REPO = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(not compiled(), reason="kernels are interpreted"),
]


def test_every_entry_point_is_listed() -> None:
    found = set()
    for name, path in sources.modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(getattr(d, "id", "") == "entry" for d in node.decorator_list):
                found.add(f"{name}.{node.name}")
    assert found == {*entries.ENTRIES, "hierarchy.levels.solve_hierarchy"}  # that one is for tests


ASKED = """
import numpy as np
import synovia as sy
from synovia.kernels.compiler import entries

arm, chain = sy.bundled("arm7"), sy.Skeleton.chain(np.cumsum(np.ones((6, 3)), axis=0))
target = arm.random_pose(1).transform("tool")
ik = sy.IK(arm, sy.PoseGoal("tool", transform=target))
ik.solve(start=arm.random_pose(2))
ik.precompile()
ik.solve_many({"tool": target[None]}, simd="single")
sy.IK(chain, sy.PositionGoal(chain.joint_names[-1], (1.0, 1.0, 1.0)), "fabrik").solve()
for name in entries.ENTRIES:
    module, _, function = name.rpartition(".")
    kernel = getattr(__import__(f"synovia.kernels.{module}", fromlist=[function]), function)
    listed = entries.signatures(name)
    for signature in kernel.signatures:
        print(name, signature in listed)
"""


@pytest.mark.jit
def test_what_is_compiled_ahead_is_what_a_solve_asks_for() -> None:
    """Every entry point that some solves compile, in a process of their own, is one that is compiled ahead."""
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    asked = [line.split() for line in done.stdout.splitlines()]
    assert len(asked) >= 6
    assert all(listed == "True" for _, listed in asked), asked


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(
        compile_events, "sys", SimpleNamespace(stderr=stream, modules={})
    )  # pytest sets sys.stderr anew
    monkeypatch.setattr(compile_events, "PATIENCE", 0.05)
    # as in a script that has not set up logging: pytest listens to all there is
    monkeypatch.setattr(compile_events.logger, "hasHandlers", lambda: False)
    return stream


class Dispatcher:
    """Stands for one of numba's: an entry point of ours."""

    def __init__(self, name: str) -> None:
        module, _, function = name.rpartition(".")
        self.py_func = lambda: None
        self.py_func.__module__, self.py_func.__name__ = f"synovia.kernels.{module}", function


def heard(name: str, wait: object) -> None:
    """Let the listener hear of a compilation that takes as long as ``wait``."""
    teller = compile_events._Listener()
    teller.on_start(SimpleNamespace(data={"dispatcher": Dispatcher(name)}))
    wait()
    teller.on_end(SimpleNamespace(data={"dispatcher": Dispatcher(name)}))


def test_a_person_in_python_is_told_what_is_compiled_and_how_long_it_takes(terminal: io.StringIO) -> None:
    heard("heuristic.fabrik.fabrik", lambda: until(terminal.getvalue))
    about = entries.ENTRIES["heuristic.fabrik.fabrik"].seconds
    assert terminal.getvalue() == f"synovia: compiling fabrik (about {about:.0f} s), once for this version\n"


def test_what_is_compiled_quickly_is_not_told(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_events, "PATIENCE", 60.0)
    before = threading.active_count()
    heard("heuristic.fabrik.fabrik", lambda: None)
    until(lambda: threading.active_count() <= before, why="the clock still runs")
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
def test_who_listens_or_has_silenced_the_logger_gets_no_notice(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    monkeypatch.setattr(compile_events.logger, "hasHandlers", lambda: True)
    before = compile_events.logger.level
    compile_events.logger.setLevel(level)
    try:
        heard("heuristic.fabrik.fabrik", lambda: threading.Event().wait(0.2))
    finally:
        compile_events.logger.setLevel(before)
    assert terminal.getvalue() == ""


def test_short_compilations_are_told_once_they_add_up(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(compile_events.time, "perf_counter", lambda: now)
    monkeypatch.setattr(compile_events, "PATIENCE", 60.0)
    teller = compile_events._Listener()
    teller.on_start(SimpleNamespace(data={"dispatcher": Dispatcher("tree.tables.validate")}))
    now = 61.0
    teller.on_end(SimpleNamespace(data={"dispatcher": Dispatcher("tree.tables.validate")}))
    assert terminal.getvalue() == ""
    teller.on_start(SimpleNamespace(data={"dispatcher": Dispatcher("tree.orient.orient")}))
    until(terminal.getvalue)
    teller.on_end(SimpleNamespace(data={"dispatcher": Dispatcher("tree.orient.orient")}))
    assert "compiling retargeting" in terminal.getvalue()


DELEGATED = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
from numba.core import event
from synovia.compiling import CompilerProcess
from synovia.kernels.compiler.compile_events import delegated
import synovia as sy

here = []


class Heard(event.Listener):
    def on_start(self, one):
        here.append(one.data["dispatcher"].py_func.__name__)

    def on_end(self, one):
        pass


event.register("numba:compile", Heard())
process = CompilerProcess()
if "stopped" in sys.argv:
    process.stop()
with delegated(process.compile):
    try:
        pose = sy.bundled("arm7").rest_pose().positions
    except sy.SynoviaError as error:
        print("error:", error)
process.stop()
print("compiled here:", "forward_many" in here)
"""


@pytest.mark.jit
def test_another_process_compiles_what_a_thread_needs(tmp_path) -> None:
    def told(*words: str) -> str:
        env = {**os.environ, "SYNOVIA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", DELEGATED, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    refused = told("stopped")
    assert "error: " in refused
    assert "its process was stopped" in refused
    assert not list(tmp_path.rglob("*.nbc"))
    first = told()
    assert "compiling poses" in first
    assert "compiled poses in " in first
    assert "compiled here: False" in first
    assert list(tmp_path.rglob("*forward_many*.nbc"))
    again = told()
    assert "compiling" not in again
    assert "compiled here: False" in again


@pytest.fixture
def compiler(tmp_path, monkeypatch) -> Generator[CompilerProcess]:
    """A process that compiles into an empty cache."""
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("SYNOVIA_KERNELS", "jit")
    process = CompilerProcess()
    yield process
    process.stop()


@pytest.mark.jit
def test_a_compiler_that_was_killed_is_started_again(compiler: CompilerProcess) -> None:
    def kill() -> None:
        until(lambda: compiler._process)
        os.kill(compiler._process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    assert compiler.compile("tree.tables.clamp_rows") > 0.0
    thread.join()


@pytest.mark.jit
def test_the_failure_of_a_compiler_says_why(compiler: CompilerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SynoviaError, match=r"No module named 'synovia\.kernels\.nowhere'"):
        compiler.compile("nowhere.nothing")
    assert compiler.compile("tree.tables.clamp_rows") > 0.0
    compiler._process.kill()
    compiler._process.wait()
    assert compiler.compile("tree.tables.clamp_rows") > 0.0
    monkeypatch.setattr(sys, "executable", os.devnull)
    compiler._process.kill()
    with pytest.raises(SynoviaError, match="poses within their limits"):
        compiler.compile("tree.tables.clamp_rows")
    compiler.stop()
    with pytest.raises(SynoviaError, match="was stopped"):
        compiler.compile("tree.tables.clamp_rows")


@pytest.mark.jit
def test_code_that_cannot_be_stored_is_not_called_compiled(compiler: CompilerProcess, monkeypatch) -> None:
    monkeypatch.setenv("SYNOVIA_CACHE_DIR", f"{os.devnull}/kernels")
    with pytest.raises(SynoviaError, match="cannot cache compiled kernels"):
        compiler.compile("tree.tables.clamp_rows")


class Slow:
    """Stands for a process that compiles: it notes what it is asked for, and waits until it may end."""

    asked: list[str]
    go: threading.Semaphore

    def compile(self, name: str, *, wait: bool = True) -> float:
        self.asked.append(name)
        assert self.go.acquire(timeout=60.0)
        if name.startswith("bad"):
            raise SynoviaError("no compiler")
        return 1.0

    def stop(self) -> None:
        self.asked.append("stop")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> type[Slow]:
    Slow.asked, Slow.go = [], threading.Semaphore(0)
    monkeypatch.setattr("synovia.compiling.CompilerProcess", Slow)
    return Slow


def test_several_processes_compile_in_order_and_what_is_asked_for_comes_next(slow: type[Slow]) -> None:
    compilers = Compilers(2)
    results = compilers.start(["a", "b", "c", "d"])
    until(lambda: len(slow.asked) == 2, why="two processes work")
    assert {*slow.asked} == {"a", "b"}
    asking = threading.Thread(target=compilers.compile, args=("d",))
    asking.start()
    until(lambda: compilers._waiting[0] == "d")
    slow.go.release()
    until(lambda: len(slow.asked) == 3)
    assert slow.asked[2] == "d"
    slow.go.release(3)
    asking.join()
    assert [result.result(timeout=60.0) for result in results.values()] == [1.0] * 4
    assert compilers.compile("a") == 1.0, "it is compiled already"
    assert sorted(slow.asked) == ["a", "b", "c", "d"]
    compilers.stop()


def test_what_has_failed_is_tried_again(slow: type[Slow]) -> None:
    compilers = Compilers(1)
    slow.go.release(2)
    for _ in range(2):
        with pytest.raises(SynoviaError, match="no compiler"):
            compilers.compile("bad")
    assert slow.asked == ["bad", "bad"]


def test_who_asks_again_meanwhile_gets_no_further_processes(slow: type[Slow], monkeypatch) -> None:
    """A loop over poses asks for the same kernels many times a second until all are compiled."""
    names = ["tree.tables.validate", "tree.bends.bend_straight", "tree.tables.clamp_rows"]
    monkeypatch.setattr("synovia.kernels.compiler.mode", "jit")
    monkeypatch.setattr("synovia.compiling.cores", lambda: 2)
    monkeypatch.setattr("synovia.compiling.missing", lambda wanted: [*wanted])
    monkeypatch.setattr("synovia.kernels.compiler.compile_events.while_waiting", [])
    for _ in range(20):
        compiling.compile_soon(*names)
    until(lambda: len(slow.asked) == 1, why="the only other core works")
    slow.go.release(2)
    until(lambda: slow.asked[-1] == "stop", why="the process ends")
    assert len(slow.asked) == len(names), "two are compiled, once each"
    compiling.compile_soon(*names)
    until(lambda: len(slow.asked) == len(names) + 1, why="a new process works")
    slow.go.release(2)
    until(lambda: slow.asked[-1] == "stop")


SOON = """
import sys, time
from numba.core import event
from synovia import compiling
from synovia.kernels.compiler import ahead, entries, kept
from synovia.kernels.compiler.compile_events import missing_code, while_waiting

compiling.cores = lambda: 2
here = []


class Heard(event.Listener):
    def on_start(self, one):
        here.append(one.data["dispatcher"].py_func.__name__)

    def on_end(self, one):
        pass


event.register("numba:compile", Heard())
first, second, third = sys.argv[1:]
compiling.compile_soon(first, second, third)  # another process begins with the second one, which takes longest
kernel = entries.kernel_of(second)
name = missing_code(kernel, entries.signatures(second)[0])
while name and kept.lock(name):
    kept.unlock(name)
    name = missing_code(kernel, entries.signatures(second)[0])
    time.sleep(0.01)
for one in (second, first, third):
    ahead.compile_entry(one)
print(*here, sep="\\n")
print("missing:", *compiling.missing(sys.argv[1:]))
"""


@pytest.mark.jit
@pytest.mark.skipif(os.name != "posix", reason="needs locks of POSIX")
def test_what_is_needed_soon_is_compiled_once_by_two_processes(tmp_path) -> None:
    """This one comes to what the other one compiles, and compiles the rest meanwhile."""
    names = "tree.tables.validate", "tree.bends.bend_straight", "tree.tables.clamp_rows"
    env = {**os.environ, "SYNOVIA_CACHE_DIR": str(tmp_path), "SYNOVIA_KERNELS": "jit"}
    done = subprocess.run([sys.executable, "-c", SOON, *names], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    *here, missing = done.stdout.splitlines()
    assert missing.strip() == "missing:"
    assert "bend_straight" not in here, "both have compiled it"
    assert "clamp_rows" in here
    assert "compiling 3 kernels on all cores" in done.stderr


USED = """
import sys
from synovia.kernels import compiler

used = set()


def noted(name, kernel):
    def call(*arguments):
        used.add(name)
        return kernel(*arguments)

    return call


for name, kernel in compiler.prebuilt.entries.items():
    compiler.prebuilt.entries[name] = noted(name, kernel)

import synovia as sy
from synovia.retargeting.retarget import _KERNELS as RETARGET
from synovia.servo.servo import KERNELS as SERVO

arm = sy.bundled("arm7")
sy.Servo(arm, sy.PoseGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
print("servo", *(set(SERVO) - used))
used.clear()
walk = sy.load_motion("examples/walk.bvh")
sy.retarget(walk[:20], sy.load_skeleton("examples/character.glb"))
print("retarget", *(set(RETARGET) - used))
"""


@pytest.mark.skipif(mode != "prebuilt", reason="counts calls of kernels that came compiled")
def test_what_a_servo_and_a_retargeting_have_compiled_is_what_they_need() -> None:
    done = subprocess.run([sys.executable, "-c", USED], capture_output=True, text=True, check=False, cwd=REPO)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["servo", "retarget"]


CHECKED = """
from synovia.kernels.compiler.compile_events import delegated
import synovia as sy

def check():
    raise sy.SynoviaError("the page has stopped")

arm = sy.bundled("arm7")
with delegated(lambda name: None, check):
    try:
        print(arm.rest_pose().positions.shape)
    except sy.SynoviaError as error:
        print(error)
print(arm.rest_pose().positions.shape)
"""


@pytest.mark.jit
def test_what_a_thread_compiles_itself_ends_between_two_functions(tmp_path) -> None:
    env = {**os.environ, "SYNOVIA_CACHE_DIR": str(tmp_path), "SYNOVIA_KERNELS": "jit"}
    done = subprocess.run([sys.executable, "-c", CHECKED], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["the page has stopped", "(11, 3)"]


ORPHAN = """
import signal, threading
from synovia.compiling import CompilerProcess
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)  # what runs the tests may ignore them
process = CompilerProcess()
threading.Thread(target=process.compile, args=("hierarchy.full_body.full_body",), daemon=True).start()
while process._process is None:
    pass
print(process._process.pid, flush=True)
threading.Event().wait()
"""


@pytest.mark.jit
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL", "SIGHUP"])
def test_a_compiler_ends_with_its_parent(number: str, tmp_path) -> None:
    env = {**os.environ, "SYNOVIA_CACHE_DIR": str(tmp_path), "SYNOVIA_KERNELS": "jit"}
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True, env=env) as parent:
        compiler = int(parent.stdout.readline())
        parent.send_signal(getattr(signal, number))
    until(lambda: not _runs(compiler), seconds=60.0)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
