"""Input of commands: shared options, models, clips and lists of numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from synovia.cli.completion import joints, models, roots, solvers
from synovia.cli.output import printable, talk

if TYPE_CHECKING:
    from synovia.model import Skeleton
    from synovia.model.motion import Motion

_INSTEAD: Final = "'synovia animate FILE --goals TRACK -o OUT' makes a clip of a model"
_DEFAULT_ANGLE: Final = 1e-3  # rad, the default of the library, for --tol without an angle

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
Clip = Annotated[
    str | None,
    typer.Option(
        "--clip",
        metavar="NAME|N",
        help="Name or number of the clip in the file.",
        show_default="the one written last, else the first",
    ),
]
ClipModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="FILE",
        autocompletion=models,
        help="Model of the clip; a CSV needs it, because it holds only joint values.",
        show_default=False,
    ),
]
Trim = Annotated[
    bool,
    typer.Option("--trim-tpose", help="Cut off the frames of a T-pose, or of the file's rest pose, at the ends."),
]
Solver = Annotated[
    str | None,
    typer.Option(
        "--solver",
        metavar="NAME",
        autocompletion=solvers,
        help="Algorithm, for example lm, dls, fabrik or ccd.",
        show_default="lm",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Number of threads; results are identical for any number.",
        show_default="all cores",
    ),
]
Tolerance = Annotated[
    str | None,
    typer.Option(
        "--tol",
        metavar="POS[,DEG]",
        help="When a goal counts as reached: a length in the file's unit, and an angle in degrees.",
        show_default="1e-4 of the reach, 1e-3 rad",
    ),
]
Deadline = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        min=0.0,
        metavar="SECONDS",
        help="Stop solving after this time, with the best pose so far.",
        show_default="never",
    ),
]


def _parse_root(text: str | None) -> str | None:
    """Return the root mode of ``--root``, None without the option."""
    if text is None:
        return None
    from synovia.errors import InputError
    from synovia.model.root import as_root

    try:
        return as_root(text)
    except InputError as error:
        raise typer.BadParameter(f"expected {error.expected}, got {error.value!r}") from error


def root_option(default: str | None) -> typer.models.OptionInfo:
    """Return the option ``--root`` of a command.

    Args:
        default: Default in the help text; None for that of the argument.
    """
    return typer.Option(
        "--root",
        metavar="fixed|free|AXES",
        autocompletion=roots,
        help="How the root of the model may move; axes of x, y, z, roll, pitch, yaw, such as 'x,y,yaw'.",
        callback=_parse_root,
        show_default=default or True,
    )


Root = Annotated[str, root_option(None)]


def joints_option(text: str, default: str) -> typer.models.OptionInfo:
    """Return the option ``--joint`` of a command, which may be repeated.

    Args:
        text: Help text.
        default: Default in the help text.
    """
    return typer.Option(
        "--joint", metavar="JOINT", autocompletion=joints, help=f"{text}; repeat for more.", show_default=default
    )


Look = Annotated[
    str,
    typer.Option("--look", metavar="LOOK", help="surface, bones or both; a body without a surface shows its bones."),
]


def output_option(metavar: str, text: str) -> typer.models.OptionInfo:
    """Return the option ``--output`` of a command.

    Args:
        metavar: Placeholder of the file in the help text.
        text: Help text.
    """
    return typer.Option("--output", "-o", metavar=metavar, help=text, show_default=False)


def load_body(name: str, clip: str | None = None) -> Skeleton:
    """Return the skeleton of a file or of a bundled model; write its notes on ignored parts of the file to stderr.

    Args:
        name: The file or the bundled model.
        clip: File of the motion that it is loaded for, whose body's shape an SMPL model takes.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    from synovia.io.load import load_model

    skeleton = load_model(name, clip)
    for note in skeleton.notes:
        talk(f"synovia: {printable(note)}")
    return skeleton


def load_clip(
    path: str, clip: str | None = None, *, model: str | None = None, trim: bool = False, instead: str = _INSTEAD
) -> Motion:
    """Return a clip of a file; name the calibration frames at its ends on stderr.

    Args:
        path: The file.
        clip: Name or number of the clip; None for the one that Synovia wrote last, else the first one.
        model: File or name of the model that the clip is put on; None for the clip's own skeleton.
        trim: Whether to cut off calibration frames.
        instead: Hint of the error message for a file without motion.

    Raises:
        SynoviaError: If the file cannot be read, has no motion, or has no clip of this name or number.
    """
    from synovia.clips import find_ends
    from synovia.errors import UnsupportedError
    from synovia.io.load import format_of, is_bundled, load_motion

    if is_bundled(path):
        raise UnsupportedError("a bundled model has no motion", where=path, hint=instead)
    skeleton = None if model is None else load_body(model, path)
    try:
        motion = load_motion(path, int(clip) if clip and clip.isdigit() else clip, skeleton=skeleton)
    except UnsupportedError as error:
        if format_of(Path(path)).holds_motions:
            raise
        raise UnsupportedError(error.what, where=error.where, expected=error.expected, hint=instead) from error
    ends = find_ends(motion)
    what = "cut off" if trim else "--trim-tpose cuts this off"
    for note in ends.notes:
        talk(f"{printable(motion.name)}: {note} ({what})")
    return ends.of(motion) if trim else motion


def needs_model(path: str) -> bool:
    """Return whether a clip does not hold its skeleton, so that it takes the one of ``--model``."""
    from synovia.io.load import format_of

    return format_of(Path(path)).read_onto is not None


def numbers(text: str, option: str, least: int, most: int, whole: str) -> tuple[float, ...]:
    """Return the numbers of a list with commas.

    Args:
        text: The list.
        option: The option, for the message.
        least: Least count of numbers.
        most: Largest count of numbers.
        whole: The whole value of the option, for the message.

    Raises:
        typer.BadParameter: If the text is not a list of numbers, or their count is wrong.
    """
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not least <= len(values) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise typer.BadParameter(
            f"expected {count} numbers separated by commas, got {whole!r}", param_hint=f"'{option}'"
        )
    return values


def parse_tolerance(text: str | None) -> tuple[float, float] | None:
    """Return length and angle (radians) of ``POS[,DEG]``."""
    if text is None:
        return None
    values = numbers(text, "--tol", 1, 2, text)
    return values[0], math.radians(values[1]) if len(values) > 1 else _DEFAULT_ANGLE
