"""``synovia convert``: a model or a clip in another format."""

from __future__ import annotations

from pathlib import Path

from synovia.cli.clips import load_body, load_clip
from synovia.cli.output import talk
from synovia.cli.run import REACHED
from synovia.errors import FormatError
from synovia.io.load import is_bundled


def convert(source: str, output: Path, *, clip: str | None, into: str | None, force: bool) -> int:
    """Write a clip as BVH, glTF, npz or CSV, or a skeleton as TOML, by the extension of the output.

    Raises:
        SynoviaError: If a file cannot be read or written.
    """
    from synovia.io.load import endings, formats
    from synovia.io.save import save_motion

    writers = [fmt for fmt in formats() if fmt.write_motion or fmt.write_skeleton]
    fmt = next((fmt for fmt in writers if output.suffix.lower() in fmt.extensions), None)
    if fmt is None:
        what = "nothing can be written with this extension"
        raise FormatError(what, where=str(output), value=output.suffix or None, expected=f"one of {endings(writers)}")
    if fmt.write_skeleton is not None:
        fmt.write_skeleton(load_body(source), output, force=force)
        talk(f"{output}: skeleton of {source}")
        return REACHED
    if is_bundled(source):
        raise FormatError("a bundled model has no clip", where=source, expected="a .toml file to write it as skeleton")
    if fmt.copies and Path(into or source).suffix.lower() not in fmt.extensions:
        raise FormatError(
            f"a {fmt.name} is written as a copy of the one that the clip belongs to", where=str(output),
            value=into or source,
            expected="--into with a .glb or .gltf file; 'synovia retarget' brings a clip onto another body",
        )  # fmt: skip
    motion = load_clip(source, clip)
    save_motion(motion, output, into=into or source, force=force)
    talk(f"{output}: {motion.name}, {len(motion)} frames at {motion.fps:g} fps")
    return REACHED
