"""``synovia convert``: a model or a clip in another format."""

from __future__ import annotations

from pathlib import Path

from synovia.cli.clips import load_body, load_clip
from synovia.cli.output import talk
from synovia.cli.run import REACHED
from synovia.errors import FormatError
from synovia.io.load import is_bundled

_GLTF = (".glb", ".gltf")


def convert(source: str, output: Path, *, clip: str | None, into: str | None, force: bool) -> int:
    """Write a clip as BVH, glTF, npz or CSV, or a skeleton as TOML, by the extension of the output.

    Raises:
        SynoviaError: If a file cannot be read or written.
    """
    from synovia.io.save import save_motion, suffixes
    from synovia.io.toml import write_skeleton

    if output.suffix.lower() == ".toml":
        write_skeleton(load_body(source), output, force=force)
        talk(f"{output}: skeleton of {source}")
        return REACHED
    if output.suffix.lower() not in suffixes():
        raise FormatError(
            "nothing can be written with this extension", where=str(output), value=output.suffix or None,
            expected=f"{', '.join(suffixes())} for clips, .toml for skeletons",
        )  # fmt: skip
    if is_bundled(source):
        raise FormatError("a bundled model has no clip", where=source, expected="a .toml file to write it as skeleton")
    if output.suffix.lower() in _GLTF and Path(into or source).suffix.lower() not in _GLTF:
        raise FormatError(
            "a glTF is written as a copy of the one that the clip belongs to", where=str(output), value=into or source,
            expected="--into with a .glb or .gltf file; 'synovia retarget' brings a clip onto another body",
        )  # fmt: skip
    motion = load_clip(source, clip)
    save_motion(motion, output, into=into or source, force=force)
    talk(f"{output}: {motion.name}, {len(motion)} frames at {motion.fps:g} fps")
    return REACHED
