"""The list of models that were opened last, kept in the user's cache folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from synovia.io.load import is_bundled
from synovia.kernels.compiler.kept import cache_root

_MOST: Final = 12
_NAME: Final = "recent-models.txt"


def recent() -> list[Path]:
    """Return the files that were opened last and still exist, newest first."""
    with suppress(OSError, RuntimeError):  # RuntimeError: no home folder
        lines = os.fsdecode((cache_root() / _NAME).read_bytes()).split("\n")
        return [Path(line) for line in lines if os.path.isfile(line)][:_MOST]  # noqa: PTH113 - no error if unreadable
    return []


def note_recent(model: str | Path) -> None:
    """Put a file at the top of the list; do nothing for a bundled model, or if the list cannot be written."""
    if is_bundled(str(model)):
        return
    with suppress(OSError, RuntimeError):
        path = Path(model).resolve()
        folder = cache_root()
        folder.mkdir(parents=True, exist_ok=True)
        others = [other for other in recent() if other != path]
        whole = folder / f"{_NAME}.new"
        whole.write_bytes(b"\n".join(map(os.fsencode, [path, *others][:_MOST])))
        whole.replace(folder / _NAME)
