"""``synovia doctor --warm``: compile all solvers in advance, in one process per core."""

from __future__ import annotations

import queue
import threading
import time
from itertools import groupby
from typing import NamedTuple

from synovia.cli.output import talk
from synovia.cli.progress import Bar
from synovia.compiling import CompilerProcess
from synovia.errors import FileError, MissingExtraError
from synovia.ik.parallel import checked_threads

_LOOK = 0.25  # seconds between two updates of the bar


class _Done(NamedTuple):
    """An entry point that a process has compiled."""

    entry: str
    seconds: float


def compile_all() -> dict[str, float]:
    """Compile the entry points of all solvers, the most used first; return the seconds of each, by its purpose.

    One process compiles one function at a time, so this uses several. Ctrl-C kills them, since the compiler ignores it.

    Raises:
        FileError: If compiled code cannot be stored.
        MissingExtraError: If there is no compiler.
        SynoviaError: If a process ends too early.
    """
    from synovia.kernels.compiler import advice, cache, mode, prebuilt
    from synovia.kernels.compiler.entries import ENTRIES

    if mode == "none":
        raise MissingExtraError(f"the solvers cannot be compiled: {prebuilt.reason}", hint=advice)
    if mode != "jit":
        talk("the kernels came compiled" if mode == "prebuilt" else "kernels run as plain Python by choice")
        return {}
    if not cache.WRITABLE:
        raise FileError(
            "compiled kernels cannot be stored",
            where=str(cache.cache_root()),
            expected="a folder that can be written",
            hint="set SYNOVIA_CACHE_DIR",
        )
    # the functions of one file share helpers, so one process compiles them all
    groups: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    sizes = [list(group) for _, group in groupby(ENTRIES, lambda name: name.rpartition(".")[0])]
    for group in sizes:
        groups.put(group)
    done: queue.SimpleQueue[_Done | Exception] = queue.SimpleQueue()
    total, begun, ready = sum(entry.seconds for entry in ENTRIES.values()), time.monotonic(), 0.0
    times: dict[str, float] = {}
    going: list[tuple[CompilerProcess, threading.Thread]] = []
    try:
        for _ in range(min(checked_threads(None), len(sizes))):
            process = CompilerProcess()
            feeder = threading.Thread(target=_feed, args=(process, groups, done), daemon=True)
            going.append((process, feeder))
            feeder.start()
        with Bar("compiling", unit="") as bar:
            while len(times) < len(ENTRIES):
                bar(
                    ready,
                    total,
                    text=f"compiling, {len(times)} of {len(ENTRIES)} ({time.monotonic() - begun:.0f} s so far)",
                )
                try:
                    one = done.get(timeout=_LOOK)
                except queue.Empty:
                    continue
                if isinstance(one, Exception):
                    raise one
                words = ENTRIES[one.entry].words
                times[words] = one.seconds
                ready += ENTRIES[one.entry].seconds
                talk(f"{words}: ready after {one.seconds:.1f} s")
    finally:
        for process, _ in going:
            process.stop()
        for _, feeder in going:
            feeder.join()
    return times


def _feed(
    process: CompilerProcess, groups: queue.SimpleQueue[list[str]], done: queue.SimpleQueue[_Done | Exception]
) -> None:
    """Have a process compile one group after the other, and pass on what it says."""
    try:
        while True:
            for name in groups.get_nowait():
                done.put(_Done(name, process.compile(name)))
    except queue.Empty:
        return
    except Exception as error:  # noqa: BLE001 - raised by the thread that waits
        done.put(error)
