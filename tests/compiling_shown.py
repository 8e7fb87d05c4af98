"""What the tests wait for where numba compiles: kernels at work, on the terminal of the process that reports.

Each process compiles what its tests first need, and no two compile the same (``kernels.compiler.kept``). So all cores
compile, and nothing is compiled that the selected tests do not use. Processes note what they compile in one file, and
the one that reports reads it. At a terminal it shows a bar for each kernel, elsewhere a line.
"""

import json
import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

from synovia.kernels.compiler import compile_events

PATIENCE = 1.0  # seconds of compiling before it is shown
TICK = 0.25  # seconds between two looks
WIDTH = 10  # of a bar


def pytest_configure(config: pytest.Config) -> None:
    """Note what this process compiles; show it in the process that reports."""
    given = getattr(config, "workerinput", None)
    if given is not None:
        note_into(Path(given["compiling"]))
        return
    folder = tempfile.TemporaryDirectory(prefix="synovia-compiling-")
    config.add_cleanup(folder.cleanup)
    file = Path(folder.name, "events")
    file.touch()
    config.stash[FILE] = file
    note_into(file)


FILE = pytest.StashKey[Path]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Tell a worker where to note it."""
    node.workerinput["compiling"] = str(node.config.stash[FILE])


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to show it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if FILE in session.config.stash and reporter is not None:
        stopped = threading.Event()
        thread = threading.Thread(target=show, args=(session.config.stash[FILE], reporter, stopped), daemon=True)
        thread.start()

        def end() -> None:
            stopped.set()
            thread.join()

        session.config.add_cleanup(end)


def note_into(file: Path) -> None:
    """Append a line to a file when this process begins or ends to compile a kernel."""
    start, end = compile_events._report_start, compile_events._report_end

    def note(words: str, seconds: float | None) -> None:
        line = json.dumps({"process": os.getpid(), "words": words, "seconds": seconds, "time": time.time()})
        with file.open("a", encoding="utf-8") as out:
            out.write(line + "\n")

    def began(function):
        words, seconds = start(function)
        note(words, seconds or 0.0)
        return words, seconds

    def ended(function, seconds: float) -> None:
        note("", None)
        end(function, seconds)

    compile_events._report_start, compile_events._report_end = began, ended


def going(lines: list[str]) -> dict[int, dict]:
    """Return what each process compiles now, as its last line says."""
    last = {one["process"]: one for one in map(json.loads, lines)}
    return {process: one for process, one in last.items() if one["words"] and _runs(process)}


def bar(one: dict, now: float) -> str:
    """Return the kernel, how far it is, and the seconds to go."""
    spent, usual = now - one["time"], one["seconds"]
    share = min(spent / usual, 1.0) if usual else 0.0
    filled = round(share * WIDTH)
    left = f"{usual - spent:.0f} s to go" if spent < usual else f"{spent:.0f} s so far"
    return f"{one['words']} [{'#' * filled}{'-' * (WIDTH - filled)}] {left}"


def show(file: Path, reporter, stopped: threading.Event) -> None:
    """Show what is compiled until stopped."""
    terminal, shown = reporter.isatty, set()  # kernels that are shown, elsewhere those that were
    while not stopped.wait(TICK):
        now = time.time()
        at_work = {
            process: one
            for process, one in going(file.read_text(encoding="utf-8").splitlines()).items()
            if now - one["time"] > PATIENCE
        }
        if terminal:
            text = "compiling " + ", ".join(bar(one, now) for one in at_work.values()) if at_work else ""
            if text or shown:
                if not shown:
                    reporter.ensure_newline()
                reporter.write(f"\r\x1b[2K{text[: reporter._screen_width - 1]}", flush=True)
            shown = {*at_work}
            continue
        for one in at_work.values():
            if one["words"] not in shown:  # or another process waits for it
                shown.add(one["words"])
                about = f", about {one['seconds']:.0f} s" if one["seconds"] else ""
                reporter.ensure_newline()
                reporter.write_line(f"compiling {one['words']}, once for this version{about}")


def _runs(process: int) -> bool:
    """Return whether a process runs."""
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
