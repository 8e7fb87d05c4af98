"""``convert``: write a clip or a skeleton in another format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from synovia.errors import FormatError
from synovia.jobs.base import Host, Outcome, UsageError
from synovia.jobs.clips import INSTEAD, ClipJob, Roles, Saved, warm_clip, written_endings
from synovia.jobs.job import CLIP_FORMATS, Verb, clips_argument, format_option, output_option
from synovia.jobs.options import ALWAYS, Model, Option, described, option
from synovia.text import counted

if TYPE_CHECKING:
    from synovia.batch.inputs import Item
    from synovia.io.base import Format

_COPIED: Final = ".vrm"  # ending of files that can only be written as copies of a VRM file


def _endings() -> list[str]:
    """Return the endings of clip files and of skeleton files."""
    return [*written_endings(), ".toml"]


def _still(writers: Iterable[Format]) -> str:
    """Return the text for error messages that lists the formats a model without a clip can be written to."""
    known = [fmt for fmt in writers if not fmt.holds_motions or fmt.write_pose is not None]
    some = [ending for fmt in known for ending in fmt.extensions if ending != _COPIED]
    return f"a file that holds its skeleton: {', '.join(some)}"


@described
class Convert(Saved, Roles, ClipJob):
    """Write clips or skeletons in another format.

    >>> import synovia as sy
    >>> convert = sy.jobs.Convert(trim=True)
    >>> convert("walk.bvh", "walk.npz")  # doctest: +SKIP
    >>> convert.run("clips", "out", format="npz")  # doctest: +SKIP
    """

    into: str | None = option(
        default=None, help="The glTF or FBX file to copy; the copy gets the clip.", kind=Model(), metavar="FILE",
        shown="--model, else IN", recorded=ALWAYS,
    )  # fmt: skip

    name: ClassVar[str] = "convert"
    doing: ClassVar[str] = "converting"
    how: ClassVar[Mapping[str, Option]] = {
        "output": output_option("The file, instead of OUT; or a folder."),
        "format": format_option(_endings, f"{CLIP_FORMATS}|toml"),
    }

    def prepare(self) -> None:
        """Load the model and the kernels: positions need forward kinematics."""
        super().prepare()
        warm_clip().positions()

    def usual_ending(self) -> str | None:
        """Refuse to choose a default format.

        Raises:
            UsageError: Always.
        """
        raise UsageError("expected the format of the outputs for a folder, got none.", "--format")

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Write a clip or a skeleton, and return the outcome."""
        from synovia.io.load import NO_MOTION, endings, format_of, formats, is_bundled

        source = item.path
        if output is None:
            raise UsageError("expected IN and OUT, or -o OUT.", "OUT")
        writers = [fmt for fmt in formats() if fmt.write]
        fmt = next((fmt for fmt in writers if fmt.names(output)), None)
        if fmt is None or fmt.write is None:
            what = "no format with this extension can be written"
            expected = f"one of {endings(writers)}"
            raise FormatError(what, where=str(output), value=output.suffix or None, expected=expected)
        if not fmt.holds_motions:
            return self._skeleton(str(source), output, fmt.write, host)
        if self.roles is not None:
            raise UsageError("expected a .toml file as output with this option: it holds the roles.", "--roles")
        alone = is_bundled(str(source))
        if fmt.write_pose is not None and (alone or not format_of(source).holds_motions):
            return self._resting(str(source), output, host)
        if alone:
            raise FormatError("a bundled model has no clip", where=str(source), expected=_still(writers), hint=INSTEAD)
        if not format_of(source).holds_motions:
            what = f"{format_of(source).name} files hold no motion, which {fmt.name} needs"
            raise FormatError(what, where=str(source), expected=_still(writers), hint=INSTEAD)
        copied = self.into or self.copied(source)
        if fmt.copies and not fmt.makes_new and not fmt.names(Path(copied)):
            raise FormatError(
                f"a clip in {fmt.name} is added to a copy of a file of this format", where=str(output),
                value=str(copied),
                expected="--into with a .glb or .gltf file",
                hint="'synovia retarget' moves a clip to another body",
            )  # fmt: skip
        try:
            motion, _ = self.read(source, host)
        except FormatError as error:
            if fmt.write_pose is None or error.what != NO_MOTION:
                raise
            return self._resting(str(source), output, host)
        check = self.save(motion, output, copied if fmt.copies else None, host)
        said = f"{output}: {motion.name}, {counted(len(motion), 'frame')} at {motion.fps:g} fps"
        figures = {"frames": len(motion), "fps": float(motion.fps), "seconds": float(motion.duration)}
        return Outcome(motion, figures, check=check, files=[output], said=said)

    def _resting(self, source: str, output: Path, host: Host) -> Outcome:
        """Write the rest pose of a model without a clip, in a format that stores poses."""
        from synovia.files.poses import verify_pose, write_pose

        pose = self.load_body(self.model or source, host).rest_pose()
        host.wrote(output, write_pose(pose, output, into=self.into, force=host.force))
        check = self.compare(verify_pose, pose, output, host)
        figures = {"joints": len(pose.skeleton.joints)}
        return Outcome(
            pose.skeleton, figures, check=check, files=[output], said=f"{output}: skeleton of {source}, at rest"
        )

    def _skeleton(self, source: str, output: Path, write: Any, host: Host) -> Outcome:
        """Write the skeleton of a model or of a clip."""
        from synovia.io.verify import check_skeleton

        body = self.load_body(self.model or source, host)
        write(body, output, force=host.force)
        check = self.compare(check_skeleton, body, output, host)
        return Outcome(
            body, {"joints": len(body.joints)}, check=check, files=[output], said=f"{output}: skeleton of {source}"
        )


VERB: Final = Verb(
    """Write a clip or a skeleton in another format, or a folder of clips.

    For example: synovia convert walk.bvh walk.csv
    """,
    (Convert,),
    clips_argument(
        "IN... [OUT]",
        "A model or a clip, or many clips: files, folders, patterns. OUT for clips: .bvh, .glb, .vrma, .fbx, .npz,"
        " .csv, .rates.csv, .isaac.npz, .mujoco.npz, .unitree.csv, .trajectory.yaml, .trajectory.json; for a skeleton:"
        " .toml, .glb.",
    ),
    takes_output=True,
)
