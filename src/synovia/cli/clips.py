"""The clip or the model that a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from synovia.cli.output import printable, talk
from synovia.errors import UnsupportedError
from synovia.io.load import format_of, is_bundled, load_model, load_motion

if TYPE_CHECKING:
    from synovia.model import Skeleton
    from synovia.model.motion import Motion

_INSTEAD: Final = "'synovia animate FILE --goals TRACK -o OUT' makes a clip of a model"


def load_body(name: str) -> Skeleton:
    """Return the skeleton of a file or of a bundled model, and tell on stderr what of the file was not kept.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    skeleton = load_model(name)
    for note in skeleton.notes:
        talk(f"synovia: {printable(note)}")
    return skeleton


def load_clip(path: str, clip: str | None = None, *, instead: str = _INSTEAD) -> Motion:
    """Return a clip of a file.

    Args:
        path: The file.
        clip: Name or number of the clip; None for the first one.
        instead: What to do with a file that holds no motion, for the message.

    Raises:
        SynoviaError: If the file cannot be read, holds no motion, or has no such clip.
    """
    if is_bundled(path):
        raise UnsupportedError("a bundled model has no motion", where=path, hint=instead)
    chosen = clip or "0"
    try:
        return load_motion(path, int(chosen) if chosen.isdigit() else chosen)
    except UnsupportedError as error:
        if format_of(Path(path)).read_motions is not None:
            raise
        raise UnsupportedError(error.what, where=error.where, expected=error.expected, hint=instead) from error
