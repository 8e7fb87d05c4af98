"""``main``: runs a command and turns every way in which it can end into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Final

from synovia.errors import MissingExtraError, SynoviaError

REACHED: Final = 0
MISSED: Final = 1
BAD_INPUT: Final = 3
NO_EXTRA: Final = 4
BUG: Final = 70
INTERRUPTED: Final = 130
_REPORT_BUG: Final = (
    "This is a bug in Synovia. Please report it with the lines above and the output of 'synovia doctor'."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: What follows the program's name on the command line; None for those of this process.

    Returns:
        The exit code.
    """
    from synovia.cli.app import app
    from synovia.cli.output import talk
    from synovia.cli.progress import Patience

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name in a file may hold signs that the terminal has not
            stream.reconfigure(errors="backslashreplace")
    try:
        with Patience():
            app(args=None if arguments is None else list(arguments), prog_name="synovia")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else REACHED
    except MissingExtraError as error:
        talk(f"synovia: {error}")
        return NO_EXTRA
    except SynoviaError as error:
        talk(f"synovia: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the last door: whatever comes here is a bug, and is shown as one
        import traceback

        talk(traceback.format_exc() + _REPORT_BUG)
        return BUG
    return REACHED
