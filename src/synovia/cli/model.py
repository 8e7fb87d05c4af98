"""What a command's FILE means: a file, or a bundled model where no such file exists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from synovia.errors import FileError, UnsupportedError
from synovia.skeleton import Skeleton

if TYPE_CHECKING:
    from synovia.motion import Motion

_INSTEAD: Final = "'synovia animate FILE --goals TRACK -o OUT' makes a clip of a model"


def load(name: str) -> Skeleton:
    """Return the skeleton of a file, or of a bundled model by its name.

    Raises:
        FileError: If there is neither.
    """
    from synovia.io import load_skeleton
    from synovia.io.bundled import bundled, bundled_names

    if is_bundled(name):
        return bundled(name)
    try:
        return load_skeleton(name)
    except FileError as error:
        if error.hint is not None or "does not exist" not in error.what:
            raise
        known = ", ".join(bundled_names())
        raise FileError(error.what, where=error.where, hint=f"bundled models are {known}") from error


def load_clip(path: str, clip: str | None = None, *, instead: str = _INSTEAD) -> Motion:
    """Return a clip of a file, by its name or number, the first one without.

    Args:
        path: The file.
        clip: Name or number of the clip.
        instead: What to do with a file that holds no motion.

    Raises:
        SynoviaError: If the file cannot be read, holds no motion, or has no such clip.
    """
    from synovia.io import load_motion
    from synovia.io.load import format_of

    if is_bundled(path):
        raise UnsupportedError("a bundled model has no motion", where=path, hint=instead)
    chosen = clip or "0"
    try:
        return load_motion(path, int(chosen) if chosen.isdigit() else chosen)
    except UnsupportedError as error:
        if format_of(Path(path)).read_motions is not None:
            raise
        raise UnsupportedError(error.what, where=error.where, expected=error.expected, hint=instead) from error


def is_bundled(name: str) -> bool:
    """Return whether a name means a bundled model: a file of that name goes first."""
    from synovia.io.bundled import bundled_names

    return name in bundled_names() and not Path(name).exists()
