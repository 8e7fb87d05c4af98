"""A worker that crashes ends the run of the tests, with the name of its test."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signals here")
def test_a_killed_worker_ends_the_run_with_the_name_of_its_test():
    """The other worker is in a test of ten minutes: nobody waits for it."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", str(TESTS / "crashing.py")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "crashed while running 'tests/crashing.py::test_that_is_killed" in done.stdout
    assert "FAILED tests/crashing.py::test_that_is_killed" in done.stdout
    assert "test_after" not in done.stdout
