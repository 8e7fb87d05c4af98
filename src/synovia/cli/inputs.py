"""Input of commands that no job describes: shared options, models and clips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from synovia.cli import completion
from synovia.cli.command import Argument, Decorator, bundle
from synovia.cli.declare import decorator_of
from synovia.cli.running import Terminal
from synovia.jobs.clips import ClipReader, Roles, body_of
from synovia.jobs.options import Option, options_of
from synovia.jobs.shared import ROOT, SOLVER, TOLERANCE

if TYPE_CHECKING:
    from synovia.model import Skeleton

_ROLES: Final = "synovia.roles"
_OF_CLIPS: Final = {name: said for name, said, _ in options_of(ClipReader)}

model_argument: Final = click.argument(
    "file",
    cls=Argument,
    shell_complete=completion.models,
    help="A URDF, MJCF, glTF/GLB, BVH or TOML file, or the name of a bundled model: humanoid, humanoid_hands, "
    "arm7, quadruped.",
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
force_option: Final = click.option("--force", is_flag=True, help="Replace files that exist.")
model_option: Final = decorator_of("model", _OF_CLIPS["model"])
trim_option: Final = decorator_of("trim", _OF_CLIPS["trim"], default=False)
clip_options: Final = bundle(
    "chosen", ClipReader, *(decorator_of(name, said, default) for name, said, default in options_of(ClipReader))
)
tolerance_option: Final = decorator_of("tolerance", TOLERANCE)
one_solver: Final = decorator_of("solver", SOLVER)


def _keep_roles(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Keep the role file of a command for ``load_body``."""
    ctx.meta[_ROLES] = path


_SAID_ROLES: Final = next(said for _, said, _ in options_of(Roles))
roles_option: Final = decorator_of("roles", _SAID_ROLES, expose_value=False, callback=_keep_roles)


def solver_option(text: str, default: str) -> Decorator:
    """Return an option ``--solver`` that may be repeated, with a help text and a default for it."""
    return decorator_of("solver", replace(SOLVER, help=text, shown=default, repeats=True))


def root_option(default: str | None = "fixed", shown: str = "") -> Decorator:
    """Return the option ``--root`` of a command.

    Args:
        default: Its default.
        shown: Default in the help text; "" for that of the option.
    """
    return decorator_of("root", replace(ROOT, shown=shown), default=default)


def joint_option(text: str, default: str) -> Decorator:
    """Return the option ``--joint`` of a command, which may be repeated.

    Args:
        text: Help text.
        default: Default in the help text.
    """
    said = Option(f"{text}; repeat for more.", metavar="JOINT", repeats=True, completes="joints", shown=default)
    return decorator_of("joint", said)


def load_body(name: str, *, roles: bool = True) -> Skeleton:
    """Return the skeleton of a file or of a bundled model; write its notes on ignored parts of the file to stderr.

    Args:
        name: The file or the bundled model.
        roles: Whether the joints get the roles of ``--roles``.

    Raises:
        SynoviaError: If a file cannot be read.
    """
    return body_of(name, Terminal(), role_file() if roles else None)


def with_roles(skeleton: Skeleton) -> Skeleton:
    """Return a skeleton with the roles of ``--roles``, if the command has that option and it was given.

    Raises:
        SynoviaError: If the file cannot be read, or does not fit the skeleton.
    """
    from synovia.jobs import clips

    return clips.with_roles(skeleton, role_file())


def role_file() -> Path | None:
    """Return the file of ``--roles``; None if the command has no such option, or it was not given."""
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_ROLES)
