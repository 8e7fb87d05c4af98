"""Settings shared by all tests: the folder of real data, the hypothesis profiles, and what runs uncompiled."""

import gc
import os
import signal
import sys
from collections import Counter
from pathlib import Path

# Workers take all cores already. The threads of BLAS beside them mostly wait, and wait by spinning: fits of whole clips
# took three times the processor time. It is read when NumPy is loaded; the workers inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if sys.dont_write_bytecode and sys.pycache_prefix is None:
    # Where Python may keep no bytecode beside the sources, workers and the processes of tests would parse all libraries
    # and tests anew, for a minute in sum. So it lies apart.
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(
        Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    )
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background of a shell; some tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import pytest
from hypothesis import HealthCheck, settings

import compiling_shown
from shared_files import shared_data_folder
from synovia.kernels import compiler

REPO = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
UNCOMPILED = compiler.mode == "python"

# The first call of a kernel compiles it, so that no deadline would be fair.
_SLOW_START = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("local", max_examples=60, deadline=None, suppress_health_check=_SLOW_START)
# In CI the examples are the same every time: new ones come from local runs.
settings.register_profile(
    "ci", settings.get_profile("local"), max_examples=40, derandomize=True, database=None, print_blob=True
)
settings.register_profile("uncompiled", settings.get_profile("ci"), max_examples=8)
settings.load_profile("uncompiled" if UNCOMPILED else "ci" if IN_CI else "local")


def _compile_untraced() -> None:
    """Stop coverage's tracing while numba compiles: it sees nothing of ours there, and costs two thirds more time."""
    from numba.core.dispatcher import Dispatcher

    compile_one = Dispatcher.compile

    def untraced(self, signature):
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return compile_one(self, signature)
        finally:
            sys.settrace(tracer)

    Dispatcher.compile = untraced


if compiler.mode == "jit":
    _compile_untraced()


def _why_no_shared_data() -> str | None:
    folder = shared_data_folder()
    return None if folder.is_dir() else f"no shared data at {folder} (set SYNOVIA_DATA)"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real models and motions; the test is skipped, with the reason, where it is absent."""
    why_not = _why_no_shared_data()
    if why_not:
        pytest.skip(why_not)
    return shared_data_folder()


@pytest.fixture
def short_films(monkeypatch: pytest.MonkeyPatch) -> None:
    """Films of a few frames from the whole clip, where a test asks whether a film is made, not what it shows."""
    from importlib import import_module

    from synovia.draw.film import film_frames

    def few(count: int, rate: float, fps: float | None, most: int | None = None) -> tuple[list[int], float]:
        return film_frames(count, rate, fps, 6 if most is None else min(most, 6))

    monkeypatch.setattr(import_module("synovia.draw.render"), "film_frames", few)  # the package has a function "render"


SMALLER = 6  # times, in each direction: a picture of the usual size is 1.5 seconds of drawing


@pytest.fixture
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures and films of fewer pixels, where a test asks whether one is made, not what it shows."""
    from importlib import import_module

    from synovia.draw.picture import checked_size

    def small(size: object) -> tuple[int, int]:
        width, height = checked_size(size)
        return checked_size((max(width // SMALLER, 32), max(height // SMALLER, 32)))

    for module in ("picture", "render"):
        monkeypatch.setattr(import_module(f"synovia.draw.{module}"), "checked_size", small)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a SYNOVIA_DATA that leads nowhere, and take slow tests whose file is named.

    A typing error must not turn into skipped tests.
    """
    named = any(one.partition("::")[0].endswith(".py") for one in config.args)
    if named and "-m" not in config.invocation_params.args:
        config.option.markexpr = ""
    if compiler.mode == "jit":
        config.pluginmanager.register(compiling_shown)
    # The garbage collector would walk all modules, tests and compiled kernels again and again. It is not told to leave
    # them out (gc.freeze): then gc.get_referrers misses them, and hypothesis takes its generators for garbage.
    gc.set_threshold(50_000, 20, 100)
    if os.environ.get("SYNOVIA_DATA") and _why_no_shared_data():
        raise pytest.UsageError(f"SYNOVIA_DATA={os.environ['SYNOVIA_DATA']} is not a folder")


def pytest_report_header() -> list[str]:
    """Say what this run can see."""
    data = _why_no_shared_data() or f"shared data at {shared_data_folder()}"
    return [f"synovia: {data}; kernels: {compiler.mode} {compiler.prebuilt.level}"]


def _group(item: pytest.Item) -> str:
    """Return what tests share a worker where numba compiles: those of one solver, else of one file.

    Nothing is compiled twice so. Without a compiler the tests are dealt out one by one, and all workers end together.
    """
    from synovia.solver import solvers

    values = getattr(getattr(item, "callspec", None), "params", {})
    solver = values.get("name", values.get("solver"))
    return f"{item.path.name} {solver}" if isinstance(solver, str) and solver in solvers else item.path.name


def _why_not(item: pytest.Item, no_data: str | None) -> str | None:
    """Return why this run cannot do a test, None if it can."""
    if no_data and item.get_closest_marker("shared_data"):
        return no_data
    if UNCOMPILED and item.get_closest_marker("compiled"):
        return "needs compiled kernels; they run as plain Python here"
    if compiler.mode == "prebuilt" and item.get_closest_marker("jit"):
        return "needs numba as the compiler: SYNOVIA_KERNELS=jit"
    return None


@pytest.hookimpl(tryfirst=True)  # before -m deselects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark users of the data folder, skip what this run cannot do, and let the longest groups begin first.

    One test of a file stands for all of it that are skipped for one reason: each would take the time of a short test.
    """
    no_data = _why_no_shared_data()
    # the long ones first, or one worker would end long after the other
    if compiler.mode == "jit":
        sizes = Counter(map(_group, items))
        items.sort(key=lambda item: -sizes[_group(item)])
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    skipped: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if compiler.mode == "jit":
            item.add_marker(pytest.mark.xdist_group(_group(item)))
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.shared_data)
        if reason := _why_not(item, no_data):
            skipped.setdefault((item.path, reason), []).append(item)
    others: set[pytest.Item] = set()
    for (_, reason), (first, *more) in skipped.items():
        first.add_marker(pytest.mark.skip(reason=f"{1 + len(more)} tests: {reason}" if more else reason))
        others.update(more)
    if others:
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]


_crashed: list[str] = []  # workers that ended before their time


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """Note a worker that crashed, also one that did so outside of a test."""
    if error and error != "keyboard-interrupt":
        _crashed.append(str(node))


@pytest.hookimpl(trylast=True)  # once the report is shown and counted
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """End the run when a worker has crashed in a test.

    pytest-xdist would give its groups to another worker, the tests that were done among them, and wait for these for
    ever. The other workers would go on to the end of their groups.
    """
    if _crashed and report.when == "???":  # only reports of crashes have this
        pytest.exit(str(report.longrepr), returncode=pytest.ExitCode.TESTS_FAILED)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a worker crashed, and collect once what the tests have left.

    pytest collects five times, with all modules and libraries.
    """
    if _crashed and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    gc.collect()
    gc.freeze()
