"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from synovia.cli.completion import models, roots

Model = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        autocompletion=models,
        help="A URDF, MJCF, glTF/GLB, BVH or TOML file, or the name of a bundled model: humanoid, arm7, quadruped.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Deadline = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        min=0.0,
        metavar="SECONDS",
        help="Stop solving after so long, with the best so far.",
        show_default="never",
    ),
]


def _parse_root(text: str | None) -> str | None:
    """Return how the root moves, None where it is left open, or a usage error."""
    if text is None:
        return None
    from synovia.errors import InputError
    from synovia.model.root import as_root

    try:
        return as_root(text)
    except InputError as error:
        raise typer.BadParameter(f"{error.value!r} is not {error.expected}") from error


_ROOT = "Whether the root of the model may move; axes of x, y, z, roll, pitch, yaw, such as 'x,y,yaw'."
Root = Annotated[
    str, typer.Option("--root", metavar="fixed|free|AXES", help=_ROOT, callback=_parse_root, autocompletion=roots)
]
RootOfClip = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="fixed|free|AXES",
        autocompletion=roots,
        help=_ROOT,
        callback=_parse_root,
        show_default="fixed with --goals, else free",
    ),
]
