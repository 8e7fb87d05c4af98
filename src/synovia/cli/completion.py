"""Words that the shell offers when Tab is pressed: models, joints, solvers, roots."""

from __future__ import annotations

from pathlib import Path

import typer

from synovia.errors import SynoviaError

_MOST = 200  # files that are offered


def models(incomplete: str) -> list[str]:
    """Return bundled models, and the files and folders (with a slash) that begin like this."""
    from synovia.io.bundled import bundled_names

    found = [name for name in bundled_names() if name.startswith(incomplete)]
    folder, slash, name = incomplete.rpartition("/")
    try:
        entries = sorted(Path(folder + slash or ".").iterdir())[:_MOST]
    except OSError:
        return found
    beside = [entry for entry in entries if entry.name.startswith(name) and (name or entry.name[0] != ".")]
    return found + [f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}" for entry in beside]


def joints(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the joints and roles of the model that stands on the command line."""
    from synovia.io.load import load_model

    file = ctx.params.get("file") or next(iter(ctx.args), "")  # it is not parsed yet where an option lacks its value
    try:
        skeleton = load_model(file)
    except SynoviaError:
        return []
    return [name for name in dict.fromkeys([*skeleton.roles, *skeleton.joint_names]) if name.startswith(incomplete)]


def targets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the joints, each with the equals sign that follows it."""
    return [f"{name}=" for name in joints(ctx, incomplete)]


def solvers(incomplete: str) -> list[str]:
    """Return the solvers."""
    from synovia.solver import solvers as known

    return [name for name in known if name.startswith(incomplete)]


def roots(incomplete: str) -> list[str]:
    """Return how a root may move."""
    return [word for word in ("fixed", "free", "x,y,yaw") if word.startswith(incomplete)]
