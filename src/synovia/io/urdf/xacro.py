"""Expand xacro sources, ROS's macro language for robots, with the program ``xacro``.

The program runs expressions and opens files that the source names, so it is used only for sources: files whose names
end in ``.xacro``, and robots that are incomplete without their macros. If the program is not installed, the error
message gives the command to run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from synovia.errors import FormatError

ENDING: Final = ".xacro"
_MOST_SECONDS: Final = 20.0
_LINES: Final = 2  # number of lines of the output to show, from the error on; later lines hold the program's call stack
_LONGEST: Final = 240  # largest number of characters of the output to show
_ERROR: Final = re.compile(r"(\w+ )*error\b", re.IGNORECASE)
_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")
_OF_PACKAGES: Final = re.compile(
    r"package|\bfind\b|ament|rospkg|rospack|substitution args not supported", re.IGNORECASE
)


def hint(file: str) -> str:
    """Return a hint how to expand a source."""
    name = Path(file).name
    stem = name.removesuffix(ENDING).removesuffix(".urdf")
    target = f"{stem}.urdf" if name.endswith(ENDING) else f"{stem}.expanded.urdf"
    return f"this is a xacro source; run `xacro {name} > {target}` first (`pip install xacro`, or the xacro of ROS)"


def program() -> list[str] | None:
    """Return the command that expands a source; None if ``xacro`` is not installed."""
    if (found := shutil.which("xacro")) is not None:
        return [found]
    return [sys.executable, "-P", "-c", "import xacro; xacro.main()"] if find_spec("xacro") is not None else None


def expanded(path: Path, command: list[str], *, most: int) -> bytes:
    """Return a source expanded to URDF, with the default values of its arguments.

    Args:
        path: The source.
        command: The command from ``program``.
        most: Largest size of the URDF, bytes.

    Raises:
        FormatError: If the program fails, takes longer than 20 seconds, or makes a larger file.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(  # noqa: S603  the user's own program, without a shell
                [*command, str(path.resolve())], stdin=subprocess.DEVNULL, stdout=out, stderr=said, check=False,
                timeout=_MOST_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise FormatError(
                "xacro does not finish", where=str(path), expected=f"at most {_MOST_SECONDS:g} s",
                hint="an expression or a macro may be endless; if it only takes long, run xacro yourself first",
            ) from error  # fmt: skip
        except OSError as error:
            raise FormatError(f"xacro cannot be run ({error})", where=str(path), hint=hint(str(path))) from error
        size = out.tell()
        if done.returncode:
            said.seek(0)
            why = _reason(said.read(2**16).decode(errors="replace")) or f"exit code {done.returncode}"
            packages = "install the packages that $(find ...) names, for example in a ROS workspace"
            raise FormatError(
                f"xacro cannot expand it: {why}", where=str(path), hint=packages if _OF_PACKAGES.search(why) else None
            )
        if size > most:
            raise FormatError(
                "the output of xacro is too large", where=str(path), value=size, expected=f"at most {most}"
            )
        out.seek(0)
        return out.read()


def _reason(text: str) -> str:
    """Return why the program failed: its first error with the location, or its last lines if it reports no error."""
    lines = [" ".join(line.split()) for line in _STYLES.sub("", text).splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if _ERROR.match(line)), max(len(lines) - _LINES, 0))
    why = ", ".join(line.removeprefix("error: ") for line in lines[first : first + _LINES])
    return why if len(why) <= _LONGEST else f"{why[:_LONGEST]}..."
