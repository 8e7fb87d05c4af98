"""Shell completion of models, joints, solvers and root modes."""

from __future__ import annotations

from pathlib import Path

import typer

from synovia.errors import SynoviaError

_MOST = 200  # files to offer


def models(incomplete: str) -> list[str]:
    """Return the bundled models, files and folders (with a slash) that begin with a text."""
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
    """Return the joints and roles of the model on the command line."""
    from synovia.io.load import load_model

    file = ctx.params.get("file") or next(iter(ctx.args), "")  # FILE is not parsed yet if an option has no value
    try:
        skeleton = load_model(file)
    except SynoviaError:
        return []
    return [name for name in dict.fromkeys([*skeleton.roles, *skeleton.joint_names]) if name.startswith(incomplete)]


def targets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the joints and roles, each with an equals sign."""
    return [f"{name}=" for name in joints(ctx, incomplete)]


def solvers(incomplete: str) -> list[str]:
    """Return the solvers."""
    from synovia.solver import solvers as known

    return [name for name in known if name.startswith(incomplete)]


def roots(incomplete: str) -> list[str]:
    """Return common root modes."""
    return [word for word in ("fixed", "free", "x,y,yaw") if word.startswith(incomplete)]
