"""What the tests show while they wait for the compiler."""

import json
import os
import subprocess
import sys

import compiling_shown


def _line(process: int, words: str, seconds: float | None = None) -> str:
    return json.dumps({"process": process, "words": words, "seconds": seconds, "time": 100.0})


def test_the_last_line_of_each_process_that_runs_counts():
    with subprocess.Popen([sys.executable, "-c", "pass"]) as other:
        pass
    lines = [_line(os.getpid(), "lm", 10.0), _line(os.getppid(), "ccd", 14.0), _line(other.pid, "aim", 10.0)]
    assert {one["words"] for one in compiling_shown.going(lines).values()} == {"lm", "ccd"}
    assert [*compiling_shown.going([*lines, _line(os.getpid(), "")])] == [os.getppid()]


def test_a_bar_has_the_kernel_and_the_seconds_to_go():
    one = json.loads(_line(1, "full-body", 20.0))
    assert compiling_shown.bar(one, 105.0) == "full-body [##--------] 15 s to go"
    assert compiling_shown.bar(one, 150.0) == "full-body [##########] 50 s so far"
