"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A URDF, MJCF, glTF/GLB, BVH or TOML file, or the name of a bundled model: humanoid, arm7, quadruped.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


def _parse_root(text: str) -> str:
    """Return how the root moves, or a usage error."""
    from synovia.errors import InputError
    from synovia.ik.root import as_root

    try:
        return as_root(text)
    except InputError as error:
        raise typer.BadParameter(f"{error.value!r} is not {error.expected}") from error


Root = Annotated[
    str,
    typer.Option(
        "--root",
        metavar="fixed|free|AXES",
        help="Whether the root of the model may move; axes of x, y, z, roll, pitch, yaw, such as 'x,y,yaw'.",
        callback=_parse_root,
    ),
]
