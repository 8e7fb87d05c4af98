"""``synovia convert``: write a model or a clip in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synovia.cli.inputs import Clip, ClipModel, Force, Jobs, Trim, load_body, load_clip, output_option
from synovia.cli.many import (
    Address,
    EngineName,
    EngineOption,
    FailFast,
    Format,
    JsonLines,
    Options,
    RetryFailed,
    ShardOption,
    run_many,
)
from synovia.cli.output import talk
from synovia.errors import FormatError


def convert(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... [OUT]",
            help="A model or a clip, or many clips: files, folders, patterns. OUT for clips: .bvh, .glb, .npz, .csv,"
            " .isaac.npz, .mujoco.npz, .unitree.csv; for a skeleton: .toml.",
            show_default=False,
        ),
    ],
    output: Annotated[Path | None, output_option("OUT", "The file, instead of OUT; or a folder.")] = None,
    file_format: Format = None,
    clip: Clip = None,
    model: ClipModel = None,
    trim: Trim = False,
    into: Annotated[
        str | None,
        typer.Option(
            "--into", metavar="GLB", help="The glTF whose copy gets the clip.", show_default="--model, else IN"
        ),
    ] = None,
    jobs: Jobs = None,
    engine: EngineOption = EngineName.LOCAL,
    address: Address = None,
    shard: ShardOption = None,
    retry_failed: RetryFailed = False,
    fail_fast: FailFast = False,
    force: Force = False,
    as_json: JsonLines = False,
) -> None:
    """Write a clip or a skeleton in another format, or a folder of clips.

    For example: synovia convert walk.bvh walk.csv
    """
    from synovia.batch.inputs import is_many

    if output is None:
        if len(files) < 2:
            raise typer.BadParameter("expected IN and OUT, or -o OUT", param_hint="'OUT'")
        files, output = files[:-1], Path(files[-1])
    options = Options(output, file_format, engine, address, shard, retry_failed, fail_fast, force, jobs, as_json)
    if is_many(files, output):
        from synovia.batch.tasks import ConvertFile

        if file_format is None:
            raise typer.BadParameter("expected the format of the outputs for a folder", param_hint="'--format'")
        run_many(ConvertFile(clip, into), files, options, "converting")
    options.refuse_single(prints_json=False)
    source = files[0]
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
