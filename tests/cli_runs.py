"""Running the command line in tests: in this process for speed, in one of its own for what only a process has."""

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

from synovia.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one JSON object on stdout; NaN and Infinity, which JSON does not have, fail."""

        def refuse(word: str) -> float:
            raise AssertionError(f"{word} in JSON")

        value = json.loads(self.out, parse_constant=refuse)
        assert isinstance(value, dict)
        return value


def run(*arguments: object) -> Ran:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Ran(code, out.getvalue(), _but_compiling(err.getvalue()))


def run_apart(*arguments: object, **options: Any) -> Ran:
    """Run a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "synovia", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        **options,
    )
    return Ran(done.returncode, done.stdout, _but_compiling(done.stderr))


def _but_compiling(text: str) -> str:
    """Return what was said, but that it is compiling, which depends on what ran before."""
    return re.sub(r"^Compiling .*\.\n", "", text, flags=re.MULTILINE)


def assert_refused(ran: Ran, *words: str, code: int = 3) -> None:
    """The command ended as bad input should: one line on stderr with these words, nothing on stdout, no traceback."""
    assert ran.code == code, ran
    assert ran.out == ""
    assert "Traceback" not in ran.err
    lines = ran.err.strip().splitlines()
    if code == 3:
        assert len(lines) == 1, ran.err
        assert lines[0].startswith("synovia: ")
    for word in words:
        assert word in ran.err, ran.err
