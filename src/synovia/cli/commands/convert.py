"""``synovia convert``: write a model or a clip in another format."""

from __future__ import annotations

from pathlib import Path

import click

from synovia.cli.command import Command, refuse, wrong
from synovia.cli.inputs import ClipOptions, clip_options, clips_argument, load_body, output_option, roles_option
from synovia.cli.many import Options, format_option, json_lines, many_options, run_many
from synovia.cli.output import MISSED, REACHED, talk
from synovia.cli.saving import check_saved, save_clip, verify_option
from synovia.cli.values import FILE_NAME
from synovia.errors import FormatError
from synovia.text import counted


@click.command(cls=Command)
@clips_argument(
    "files",
    "IN... [OUT]",
    "A model or a clip, or many clips: files, folders, patterns. OUT for clips: .bvh, .glb, .npz, .csv, .isaac.npz,"
    " .mujoco.npz, .unitree.csv; for a skeleton: .toml.",
)
@output_option("The file, instead of OUT; or a folder.")
@format_option()
@clip_options
@roles_option
@click.option(
    "--into", metavar="GLB", type=FILE_NAME, help="The glTF whose copy gets the clip.", show_default="--model, else IN"
)
@verify_option
@many_options(json_lines)
def convert(files: tuple[str, ...], chosen: ClipOptions, into: str | None, verify: bool, options: Options) -> int:
    """Write a clip or a skeleton in another format, or a folder of clips.

    For example: synovia convert walk.bvh walk.csv
    """
    if options.output is None:
        if len(files) < 2:
            raise wrong("OUT", "expected IN and OUT, or -o OUT.")
        options, files = options._replace(output=files[-1]), files[:-1]
    if options.are_many(files, prints_json=False):
        from synovia.batch.tasks import ConvertFile, motion_endings

        options.folder()
        if options.file_format is None:
            raise wrong("--format", "expected the format of the outputs for a folder, got none.")
        endings = motion_endings(on_model=chosen.model is not None)
        return run_many(ConvertFile(chosen.reader(), into, verify), files, options, "converting", inputs=endings)
    source, output, force, model = files[0], Path(options.output or ""), options.force, chosen.model
    from synovia.io.load import endings, formats, is_bundled

    writers = [fmt for fmt in formats() if fmt.write]
    fmt = next((fmt for fmt in writers if fmt.names(output)), None)
    if fmt is None or fmt.write is None:
        what = "no format with this extension can be written"
        raise FormatError(what, where=str(output), value=output.suffix or None, expected=f"one of {endings(writers)}")
    if fmt.holds_motions:
        refuse("expected a .toml file as output with this option: it holds the roles.", "roles")
    else:
        body = load_body(source if model is None else model)
        fmt.write(body, output, force=force)
        talk(f"{output}: skeleton of {source}")
        return REACHED if not verify or check_saved(body, output) else MISSED
    if is_bundled(source):
        raise FormatError("a bundled model has no clip", where=source, expected="a .toml file to write its skeleton")
    copied = into or (source if model is None or is_bundled(model) else model)
    if fmt.copies and not fmt.names(Path(copied)):
        raise FormatError(
            f"a clip in {fmt.name} needs a file of this format to copy", where=str(output),
            value=copied,
            expected="--into with a .glb or .gltf file; 'synovia retarget' carries a clip over to another body",
        )  # fmt: skip
    motion = chosen.load(source)
    saved = save_clip(motion, output, copied if fmt.copies else None, force=force, verify=verify)
    talk(f"{output}: {motion.name}, {counted(len(motion), 'frame')} at {motion.fps:g} fps")
    return REACHED if saved else MISSED
