"""Shell completion of models, joints, solvers and root modes, and its installation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from synovia.cli.output import emit, talk
from synovia.errors import FileError, SynoviaError

NAME: Final = "synovia"
_VARIABLE: Final = "_SYNOVIA_COMPLETE"  # environment variable that the shell sets to ask for completions
_MOST: Final = 200  # largest number of files to offer as completions
# Settings file of each shell, and the line to add; the line loads click's script at each start.
_SETTINGS: Final = {
    "bash": (".bashrc", f'eval "$({_VARIABLE}=bash_source {NAME})"'),
    "zsh": (".zshrc", f'autoload -Uz compinit && compinit; eval "$({_VARIABLE}=zsh_source {NAME})"'),
    "fish": (f".config/fish/completions/{NAME}.fish", f"{_VARIABLE}=fish_source {NAME} | source"),
}


def models(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the bundled models, files and folders (with a slash) that begin with a text."""
    from synovia.io.bundled import bundled_names

    found = [name for name in bundled_names() if name.startswith(incomplete)]
    folder, slash, name = incomplete.rpartition("/")
    try:
        entries = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return found
    matching = [entry for entry in entries if entry.name.startswith(name) and (name or entry.name[0] != ".")]
    return found + [f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}" for entry in matching[:_MOST]]


def joints(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the joints and roles of the model on the command line."""
    from synovia.io.load import load_model

    given = ctx.params.get("file") or ctx.params.get("sources")
    file = given or next(iter(ctx.args), "")  # FILE is not parsed yet if an option has no value
    try:
        skeleton = load_model(file)
    except SynoviaError:
        return []
    return [
        name
        for name in dict.fromkeys([*skeleton.roles, *skeleton.frame_names, *skeleton.site_names])
        if name.startswith(incomplete)
    ]


def targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the joints and roles, each with an equals sign."""
    return [f"{name}=" for name in joints(ctx, param, incomplete)]


def solvers(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the solvers."""
    from synovia.solver import solvers as known

    return [name for name in known if name.startswith(incomplete)]


def roots(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return common root modes."""
    return [word for word in ("fixed", "free", "x,y,yaw") if word.startswith(incomplete)]


def answer_shell(command: click.Command) -> int | None:
    """Print the completions that a shell asks for.

    Args:
        command: The application.

    Returns:
        The exit code; None if no shell asks for completions.
    """
    asked = os.environ.get(_VARIABLE)
    if not asked:
        return None
    from click.shell_completion import shell_complete

    return shell_complete(command, {}, NAME, _VARIABLE, asked)


def show(ctx: click.Context) -> None:
    """Print the completion script for the user's shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(_shell())
    if kind is None:
        raise click.UsageError(f"expected a shell with completion (bash, zsh, fish), got {_shell()!r}.")
    emit(kind(ctx.command, {}, NAME, _VARIABLE).source())


def install(_ctx: click.Context) -> None:
    """Add completion to the settings of the user's shell, unless the settings already have it.

    Raises:
        FileError: If the settings cannot be written.
    """
    if _shell() not in _SETTINGS:
        raise click.UsageError(f"expected one of the shells {', '.join(_SETTINGS)} in SHELL, got {_shell()!r}.")
    name, lines = _SETTINGS[_shell()]
    path = Path.home() / name
    try:
        kept = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if lines not in kept:
            path.parent.mkdir(parents=True, exist_ok=True)
            gap = "" if not kept or kept.endswith("\n") else "\n"
            with path.open("a", encoding="utf-8") as file:  # appends, because the file may be a link
                file.write(f"{gap}{lines}\n")
    except OSError as error:
        raise FileError(f"completion cannot be installed ({error.strerror})", where=str(path)) from error
    talk(f"{path}: completion is installed; start a new {_shell()} to use it")


def _shell() -> str:
    """Return the name of the user's shell."""
    return Path(os.environ.get("SHELL") or ("powershell" if os.name == "nt" else "")).stem
