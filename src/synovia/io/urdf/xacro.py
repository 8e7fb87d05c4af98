"""Expand a xacro source, the macro language of ROS for robots, by the program ``xacro``.

The program runs expressions and opens files that the source names, so it is used only for sources: files whose names
end in ``.xacro``, and robots that are incomplete without their macros. Without the program, the error says which
command to run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from synovia.errors import FormatError

ENDING: Final = ".xacro"
_MOST_SECONDS: Final = 60.0
_LINES: Final = 3  # of the program's last words in a message


def hint(file: str) -> str:
    """Return how to expand a source."""
    name = Path(file).name
    stem = name.removesuffix(ENDING).removesuffix(".urdf")
    target = f"{stem}.urdf" if name.endswith(ENDING) else f"{stem}.expanded.urdf"
    return f"this is a xacro source; run `xacro {name} > {target}` first (`pip install xacro`, or that of ROS)"


def program() -> list[str] | None:
    """Return the command that expands a source; None if it is not installed."""
    if (found := shutil.which("xacro")) is not None:
        return [found]
    return [sys.executable, "-P", "-c", "import xacro; xacro.main()"] if find_spec("xacro") is not None else None


def expanded(path: Path, command: list[str], *, most: int) -> bytes:
    """Return the URDF that a source makes, with the defaults of its arguments.

    Args:
        path: The source.
        command: The program, of ``program``.
        most: Largest number of bytes.

    Raises:
        FormatError: If the program fails, takes longer than a minute or makes more.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(  # noqa: S603  the user's own program, without a shell
                [*command, str(path.resolve())], stdin=subprocess.DEVNULL, stdout=out, stderr=said, check=False,
                timeout=_MOST_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise FormatError(
                "xacro does not come to an end", where=str(path), expected=f"at most {_MOST_SECONDS:g} s"
            ) from error
        except OSError as error:
            raise FormatError(f"xacro cannot be run ({error})", where=str(path), hint=hint(str(path))) from error
        size = out.tell()
        if done.returncode:
            said.seek(0)
            lines = said.read(2**16).decode(errors="replace").strip().splitlines()
            why = " ".join(" ".join(lines[-_LINES:]).split())
            raise FormatError(
                f"xacro cannot expand it: {why or f'exit code {done.returncode}'}", where=str(path),
                hint="packages that it names ($(find ...)) must be installed, as in a workspace of ROS",
            )  # fmt: skip
        if size > most:
            raise FormatError("xacro makes too large a file", where=str(path), value=size, expected=f"at most {most}")
        out.seek(0)
        return out.read()
