"""``synovia convert``: write a model or a clip in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.inputs import Clip, ClipModel, Force, Trim, load_body, load_clip
from synovia.cli.output import talk
from synovia.errors import FormatError


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A model or a clip.", show_default=False)],
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Clip: .bvh, .glb, .npz, .csv, .isaac.npz, .mujoco.npz, .unitree.csv; skeleton: .toml.",
            show_default=False,
        ),
    ],
    clip: Clip = None,
    model: ClipModel = None,
    trim: Trim = False,
    into: Annotated[
        str | None,
        typer.Option(
            "--into", metavar="GLB", help="The glTF whose copy gets the clip.", show_default="--model, else IN"
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a clip or a skeleton in another format.

    For example: synovia convert walk.bvh walk.csv
    """
    from synovia.io.load import endings, formats, is_bundled
    from synovia.io.save import save_motion

    writers = [fmt for fmt in formats() if fmt.write]
    fmt = next((fmt for fmt in writers if fmt.names(output)), None)
    if fmt is None or fmt.write is None:
        what = "no format with this extension can be written"
        raise FormatError(what, where=str(output), value=output.suffix or None, expected=f"one of {endings(writers)}")
    if not fmt.holds_motions:
        fmt.write(load_body(source if model is None else model), output, force=force)
        talk(f"{output}: skeleton of {source}")
        return
    if is_bundled(source):
        raise FormatError("a bundled model has no clip", where=source, expected="a .toml file to write its skeleton")
    copied = into or (source if model is None or is_bundled(model) else model)
    if fmt.copies and not fmt.names(Path(copied)):
        raise FormatError(
            f"a clip in {fmt.name} needs a file of this format to copy", where=str(output),
            value=copied,
            expected="--into with a .glb or .gltf file; 'synovia retarget' carries a clip over to another body",
        )  # fmt: skip
    motion = load_clip(source, clip, model=model, trim=trim)
    save_motion(motion, output, into=copied, force=force)
    talk(f"{output}: {motion.name}, {len(motion)} frames at {motion.fps:g} fps")
