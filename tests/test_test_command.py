"""The test command of the README: what it runs, and what it does when a worker crashes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def pytest_in_a_process(*arguments):
    """Run pytest as its command does, in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def collected(*arguments):
    """Return the files of the tests that a command selects, one for each test."""
    done = pytest_in_a_process("--collect-only", "-q", "-n", "0", *arguments)
    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
    return [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_the_plain_command_runs_most_tests_and_some_of_every_folder():
    plain, everything = collected(), collected("-m", "")
    assert 0.5 * len(everything) < len(plain) < len(everything)
    assert {Path(file).parent for file in plain} == {Path(file).parent for file in everything}


def test_a_file_that_is_named_is_run_whole():
    file = "tests/servo/test_loops.py"  # most of it is slow
    assert len(collected(file)) == len(collected(file, "-m", "")) > 10


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signals here")
def test_a_killed_worker_ends_the_run_with_the_name_of_its_test():
    """The other worker is in a test of ten minutes: nobody waits for it."""
    done = pytest_in_a_process("-n", "2", str(TESTS / "crashing.py"))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "crashed while running 'tests/crashing.py::test_that_is_killed" in done.stdout
    assert "FAILED tests/crashing.py::test_that_is_killed" in done.stdout
    assert "test_after" not in done.stdout
