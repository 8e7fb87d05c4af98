"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
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


class Root(StrEnum):
    """Whether the root may move."""

    FIXED = "fixed"
    FREE = "free"
