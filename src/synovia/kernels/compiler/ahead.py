"""Compile entry points ahead of use; as a program, compile the entry points that another process requests."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from synovia.kernels.compiler.compile_events import is_being_compiled
from synovia.kernels.compiler.entries import kernel_of, signatures


def compile_entry(name: str, *, wait: bool = True) -> float:
    """Load or compile all signatures of an entry point and return the seconds it took.

    Args:
        name: The entry point.
        wait: Whether to wait while another process compiles the same code; otherwise skip this code.
    """
    begun = time.perf_counter()
    kernel = kernel_of(name)
    for types in signatures(name):
        if wait or not is_being_compiled(kernel, types):
            kernel.compile(types)
    return time.perf_counter() - begun


def serve(names: TextIO, answers: TextIO) -> None:
    """Read entry points as JSON, one per line, compile each, and write the seconds taken as JSON, until the input ends.

    A line has the name of an entry point, and whether to ``wait`` for other processes. An answer also has the warnings
    so far, such as a warning that code cannot be stored.

    When the input ends, the process ends at once, even while it compiles, because its parent has ended or no longer
    needs it. The process ignores Ctrl-C, which is for the parent.
    """
    import gc
    import json
    import logging
    import os
    import queue
    import signal
    import threading
    import traceback

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # see ``jit.ready``
    wanted: queue.SimpleQueue[str] = queue.SimpleQueue()
    warnings: list[str] = []  # reasons why code is not stored
    heard = logging.Handler(logging.WARNING)
    heard.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("synovia.kernels").addHandler(heard)

    def read() -> None:
        for line in names:
            wanted.put(line.strip())
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            asked = json.loads(wanted.get())
            seconds = compile_entry(asked["entry"], wait=asked["wait"])
            answers.write(json.dumps({"entry": asked["entry"], "seconds": seconds, "warnings": warnings}) + "\n")
            answers.flush()
            gc.collect()  # otherwise garbage of the compiler grows to gigabytes
    except BaseException:  # noqa: BLE001 - the ordinary end of a process would wait for the thread that reads
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    found, sys.stdout = sys.stdout, sys.stderr  # other output must not mix with the answers
    serve(sys.stdin, found)
