"""Input of commands: shared options, models and clips."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from synovia.cli import completion
from synovia.cli.command import Argument, Decorator, bundle
from synovia.cli.output import printable, talk
from synovia.cli.saving import tell_notes
from synovia.cli.values import FILE, FILE_NAME, typed
from synovia.errors import InputError
from synovia.jobs.options import NUMBER, Number, Parsed, Word, numbers_of

if TYPE_CHECKING:
    from synovia.batch.tasks import ClipReader
    from synovia.clips import Ends
    from synovia.model import Skeleton
    from synovia.model.motion import Motion

AXES: Final = ("x", "y", "z", "-x", "-y", "-z")
_INSTEAD: Final = "'synovia animate FILE --goals TRACK -o OUT' makes a clip of a model"
_ROLES: Final = "synovia.roles"
_DEFAULT_ANGLE: Final = 1e-3  # rad, the default of the library, for --tol without an angle
_CLIPS: Final = "The clip: a BVH, glTF/GLB, npz or CSV file. Or many: files, folders, patterns."


class ClipOptions(NamedTuple):
    """Which clip of a file is taken, and how.

    Args:
        clip: Name or number of the clip; None for the one that Synovia wrote last, else the first one.
        model: File or name of the model that the clip is put on; None for the clip's own skeleton.
        trim: Whether to cut off calibration frames.
    """

    clip: str | None = None
    model: str | None = None
    trim: bool = False

    def load(self, path: str, instead: str = _INSTEAD) -> Motion:
        """Return the clip of a file; name the calibration frames at its ends on stderr.

        Args:
            path: The file.
            instead: Hint of the error message for a file without motion.

        Raises:
            SynoviaError: If the file cannot be read, has no motion, or has no clip of this name or number.
        """
        return self.load_with_ends(path, instead)[0]

    def load_with_ends(self, path: str, instead: str = _INSTEAD) -> tuple[Motion, Ends]:
        """Return the clip of a file and the calibration frames at its ends, cut off or not; see ``load``."""
        from synovia.clips import find_ends

        motion = self._read(path, instead)
        ends = find_ends(motion)
        for note in ends.notes:
            _tell_end(motion, note, cut=self.trim)
        return (ends.of(motion) if self.trim else motion), ends

    def load_pair(self, path: str, beside: str) -> tuple[Motion, Motion]:
        """Return the clip of a file and the one shown beside it, both from the same frame on; see ``load``."""
        from synovia.clips import find_shared_ends

        other = ClipOptions(None, self.model if needs_model(beside) else None)
        pair = self._read(path, _INSTEAD), other._read(beside, _INSTEAD)
        first, second = find_shared_ends(*pair, trim=self.trim)
        for motion, own in zip(pair, (first, second), strict=True):
            cut = own.end - own.first < len(motion)
            for note in own.notes:
                _tell_end(motion, note, cut=cut)
            if cut and not own.notes:
                taken = f"frames {own.first} to {own.end - 1} are taken, as of the clip beside it"
                talk(f"{printable(motion.name)}: {taken}")
        return first.of(pair[0]), second.of(pair[1])

    def _read(self, path: str, instead: str) -> Motion:
        """Return the clip of a file, with its calibration frames."""
        from synovia.errors import UnsupportedError
        from synovia.io.load import format_of, is_bundled, load_motion

        if is_bundled(path):
            raise UnsupportedError("a bundled model has no motion", where=path, hint=instead)
        skeleton = None if self.model is None else load_body(self.model, path, roles=False)
        try:
            motion = load_motion(path, self.number, skeleton=skeleton)
        except UnsupportedError as error:
            if format_of(Path(path)).holds_motions:
                raise
            raise UnsupportedError(error.what, where=error.where, expected=error.expected, hint=instead) from error
        tell_notes(motion.skeleton.notes)
        tell_notes(motion.notes, motion.name)
        return motion

    def reader(self) -> ClipReader:
        """Return the reader of many clips, after telling the notes of their model."""
        from synovia.batch.tasks import ClipReader
        from synovia.io.load import has_shapes

        if self.model is not None and not has_shapes(self.model):
            load_body(self.model, roles=False)
        return ClipReader(*self)

    @property
    def number(self) -> str | int | None:
        """The clip, as a number if it is one."""
        return int(self.clip) if self.clip and NUMBER.fullmatch(self.clip) else self.clip


def _root(text: str) -> str:
    """Return how the root moves."""
    from synovia.model.root import as_root

    return as_root(text)


def _solver(text: str) -> str:
    """Return the name of a solver that exists."""
    from synovia.solver import as_solver

    return as_solver(text).name


def _tolerance(text: str) -> tuple[float, float]:
    """Return length and angle (radians) of ``POS[,DEG]``."""
    values = numbers_of(text, 1, 2)
    if min(values) <= 0.0:
        raise InputError("", value=text, expected="POS or POS,DEG, both above 0")
    return values[0], math.radians(values[1]) if len(values) > 1 else _DEFAULT_ANGLE


model_argument: Final = click.argument(
    "file",
    cls=Argument,
    shell_complete=completion.models,
    help="A URDF, MJCF, glTF/GLB, BVH or TOML file, or the name of a bundled model: humanoid, humanoid_hands, "
    "arm7, quadruped.",
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
force_option: Final = click.option("--force", is_flag=True, help="Replace files that exist.")
model_option: Final = click.option(
    "--model",
    metavar="FILE",
    shell_complete=completion.models,
    help="Model of the clip; a CSV needs it, because it holds only joint values.",
)
trim_option: Final = click.option(
    "--trim-tpose",
    "trim",
    is_flag=True,
    help="Cut off the frames of a T-pose, or of the file's rest pose, at the ends.",
)


def _keep_roles(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Keep the role file of a command for ``load_body``."""
    ctx.meta[_ROLES] = path


roles_option: Final = click.option(
    "--roles",
    metavar="FILE",
    type=FILE,
    expose_value=False,
    callback=_keep_roles,
    help='Parts of the body, TOML or JSON: lines such as left_hand = "Wrist.L".',
    show_default="found",
)
clip_options: Final = bundle(
    "chosen",
    ClipOptions,
    click.option(
        "--clip",
        metavar="NAME|N",
        help="Name or number of the clip in the file.",
        show_default="the one written last, else the first",
    ),
    model_option,
    trim_option,
)
jobs_option: Final = click.option(
    "--jobs",
    "-j",
    metavar="N",
    type=typed(Number(1, whole=True)),
    help="Number of threads; results are identical for any number.",
    show_default="all cores",
)
tolerance_option: Final = click.option(
    "--tol",
    "tolerance",
    metavar="POS[,DEG]",
    type=typed(Parsed(_tolerance)),
    help="When a goal counts as reached: a length in the file's unit, and an angle in degrees.",
    show_default="1e-4 of the reach, 1e-3 rad",
)
deadline_option: Final = click.option(
    "--deadline",
    metavar="SECONDS",
    type=typed(Number(0)),
    help="Stop solving after this time, with the best pose so far.",
    show_default="never",
)
look_option: Final = click.option(
    "--look",
    type=typed(Word(("surface", "bones", "both"))),
    default="surface",
    help="What is drawn; a body without a surface shows its bones.",
)


def clips_argument(name: str, metavar: str, text: str = _CLIPS, *, required: bool = True) -> Decorator:
    """Return the argument of a command that takes many clips.

    Args:
        name: Its name in the function of the command.
        metavar: Its placeholder in the help.
        text: Help text.
        required: Whether there must be one.
    """
    return click.argument(
        name, cls=Argument, nargs=-1, required=required, metavar=metavar, shell_complete=completion.models, help=text
    )


def solver_option(text: str, default: str, *, multiple: bool = False) -> Decorator:
    """Return the option ``--solver`` of a command; the other arguments are those of ``click.option``.

    Args:
        text: Help text.
        default: Default in the help text.
        multiple: Whether it may be repeated.
    """
    return click.option(
        "--solver",
        metavar="NAME",
        type=typed(Parsed(_solver)),
        multiple=multiple,
        shell_complete=completion.solvers,
        help=text,
        show_default=default,
    )


one_solver: Final = solver_option("Algorithm, for example lm, dls, fabrik or ccd.", "lm")


def root_option(default: str | None = "fixed", shown: str | bool = True) -> Decorator:
    """Return the option ``--root`` of a command.

    Args:
        default: Its default.
        shown: Default in the help text; True for that of the option.
    """
    return click.option(
        "--root",
        metavar="fixed|free|AXES",
        type=typed(Parsed(_root)),
        default=default,
        shell_complete=completion.roots,
        help="How the root of the model may move; axes of x, y, z, roll, pitch, yaw, such as 'x,y,yaw'.",
        show_default=shown,
    )


def joint_option(text: str, default: str) -> Decorator:
    """Return the option ``--joint`` of a command, which may be repeated.

    Args:
        text: Help text.
        default: Default in the help text.
    """
    return click.option(
        "--joint",
        metavar="JOINT",
        multiple=True,
        shell_complete=completion.joints,
        help=f"{text}; repeat for more.",
        show_default=default,
    )


def up_option(text: str) -> Decorator:
    """Return the option ``--up`` of a command, with a help text."""
    return click.option("--up", type=typed(Word(AXES)), metavar="AXIS", help=text, show_default="found")


def velocity_option(text: str, share_of: str | None = None) -> Decorator:
    """Return the option ``--velocity`` of a command.

    Args:
        text: Help text.
        share_of: The default, of which ``N%`` takes a share; None if there is none.
    """
    positive = Number(0, above=True)

    def velocities(value: str) -> float | dict[str, float] | str:
        if share_of is not None and value.endswith("%"):
            positive.of(value[:-1])
            return value
        if "," not in value and "=" not in value:
            return positive.of(value)
        parts = [part.rpartition("=") for part in value.split(",")]
        found = {joint.strip(): positive.of(speed) for joint, _, speed in parts}
        if "" in found or len(found) < len(parts):
            raise InputError("", value=value, expected="one speed, or JOINT=SPEED once for each joint")
        return found

    metavar = "V|A=V,B=V" if share_of is None else "V|A=V,B=V|N%"
    return click.option("--velocity", metavar=metavar, type=typed(Parsed(velocities)), help=text, show_default=share_of)


def output_option(text: str, *, required: bool = False) -> Decorator:
    """Return the option ``--output`` of a command that takes many inputs.

    Args:
        text: Help text.
        required: Whether it must be given.
    """
    return click.option("--output", "-o", metavar="OUT", type=FILE_NAME, required=required, help=text)


def _tell_end(motion: Motion, note: str, *, cut: bool) -> None:
    """Write a sentence about calibration frames to stderr."""
    talk(f"{printable(motion.name)}: {note} ({'cut off' if cut else '--trim-tpose cuts this off'})")


def load_body(name: str, clip: str | None = None, *, roles: bool = True) -> Skeleton:
    """Return the skeleton of a file or of a bundled model; write its notes on ignored parts of the file to stderr.

    Args:
        name: The file or the bundled model.
        clip: File of the motion that it is loaded for, whose body's shape an SMPL model takes.
        roles: Whether the joints get the roles of ``--roles``.

    Raises:
        SynoviaError: If a file cannot be read.
    """
    from synovia.io.load import load_model

    skeleton = load_model(name, clip)
    tell_notes(skeleton.notes)
    return with_roles(skeleton) if roles else skeleton


def with_roles(skeleton: Skeleton) -> Skeleton:
    """Return a skeleton with the roles of ``--roles``, if the command has that option and it was given.

    Raises:
        SynoviaError: If the file cannot be read, or does not fit the skeleton.
    """
    path = role_file()
    if path is None:
        return skeleton
    from synovia.files.roles import with_roles_of

    return with_roles_of(skeleton, path)


def role_file() -> Path | None:
    """Return the file of ``--roles``; None if the command has no such option, or it was not given."""
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_ROLES)


def needs_model(path: str) -> bool:
    """Return whether a clip does not hold its skeleton, so that it takes the one of ``--model``."""
    from synovia.io.load import format_of

    return format_of(Path(path)).read_onto is not None
