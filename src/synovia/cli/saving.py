"""Write clips and poses for commands: notes on stderr, and ``--verify``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from synovia.cli.output import printable, talk

if TYPE_CHECKING:
    from synovia.io.verify import FileCheck
    from synovia.model import Pose, Skeleton
    from synovia.model.motion import Motion

verify_option: Final = click.option(
    "--verify", is_flag=True, help="Read the file back, and exit with 1 if joints are elsewhere than in memory."
)


def save_clip(motion: Motion, path: Path, into: str | Path | None, *, force: bool, verify: bool) -> bool:
    """Write a clip, write to stderr what the file does not show, and return whether ``--verify`` allows it."""
    from synovia.io.save import verify_motion, write_motion

    _tell(path, write_motion(motion, path, into=into, force=force))
    return not verify or tell_check(verify_motion(motion, path))


def save_one_pose(pose: Pose, path: Path, *, force: bool, verify: bool) -> bool:
    """Write a pose as ``save_clip`` writes a clip; a glTF is a copy of the file of its skeleton."""
    from synovia.files.poses import verify_pose, write_pose

    _tell(path, write_pose(pose, path, force=force))
    return not verify or tell_check(verify_pose(pose, path))


def check_saved(skeleton: Skeleton, path: Path) -> bool:
    """Return whether a file shows a skeleton that was written to it; write the difference to stderr."""
    from synovia.io.verify import check_skeleton

    return tell_check(check_skeleton(skeleton, path))


def tell_check(check: FileCheck) -> bool:
    """Write how a file differs from what is in memory to stderr; return whether it shows it."""
    talk(f"{check.path}: {printable(check.report())}")
    return check.holds


def tell_notes(notes: Iterable[str], about: str = "") -> None:
    """Write notes about what of a file was not kept to stderr, each once in a command; ``about`` names the clip."""
    new = untold(notes)
    for note in untold(f"{about}: {note}" for note in new) if about else new:
        talk(f"synovia: {printable(note)}")


def untold(notes: Iterable[str]) -> list[str]:
    """Return the notes that this command has not told yet, each once; they count as told from now on."""
    told: set[str] = click.get_current_context().meta.setdefault(f"{__name__}.told", set())
    new = [note for note in dict.fromkeys(notes) if note not in told]
    told.update(new)
    return new


def _tell(path: Path, notes: list[str]) -> None:
    for note in notes:
        talk(f"synovia: {path}: {printable(note)}")
