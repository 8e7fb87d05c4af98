"""``render``: draw a clip as a film, or as a sheet of stills."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from synovia import options
from synovia.errors import InputError
from synovia.jobs.base import Host, Outcome, UsageError
from synovia.jobs.clearance import check_shapes, fitted
from synovia.jobs.clips import ClipJob
from synovia.jobs.job import Verb, clips_argument, format_option, output_option
from synovia.jobs.options import (
    ALWAYS,
    NEVER,
    File,
    Number,
    Option,
    Parsed,
    Word,
    described,
    names_of,
    numbers_of,
    option,
)  # fmt: skip
from synovia.jobs.shared import LOOK, WORLD

if TYPE_CHECKING:
    from synovia.batch.inputs import Item
    from synovia.batch.work import Picture
    from synovia.model.shapes.world import World

_VIEWS: Final = ("three-quarter", "front", "back", "left", "right", "top")


def _size(text: str) -> tuple[int, int]:
    """Return width and height of ``WIDTHxHEIGHT``."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})x([1-9][0-9]{0,8})", text.lower())
    if found is None:
        raise InputError("", value=text, expected="WIDTHxHEIGHT, for example 960x540")
    return int(found[1]), int(found[2])


def _view(text: str) -> str | tuple[float, float]:
    """Return a view by name, or azimuth and elevation of ``A,E`` in degrees."""
    if text in _VIEWS:
        return text
    with suppress(InputError):
        azimuth, elevation = numbers_of(text, 2, 2)
        if -90.0 <= elevation <= 90.0:
            return azimuth, elevation
    expected = f"one of {', '.join(_VIEWS)}, or AZIMUTH,ELEVATION in degrees, ELEVATION from -90 to 90"
    raise InputError("", value=text, expected=expected)


def _endings() -> Sequence[str]:
    """Return the endings of films."""
    from synovia.draw.film import SUFFIXES

    return SUFFIXES


@described
class Render(ClipJob):
    """Draw clips as films, or as sheets of stills.

    >>> import synovia as sy
    >>> render = sy.jobs.Render(size=(480, 270), look="bones")
    >>> render("walk.bvh", "walk.gif")  # doctest: +SKIP
    >>> render.run("clips", "sheets", format="png")  # doctest: +SKIP
    """

    next_to: str | None = option(
        default=None, help="Another clip, shown on the left.", kind=File(as_text=True), metavar="CLIP", single="clip",
        recorded=NEVER,
    )  # fmt: skip
    titles: Sequence[str] = option(
        default=(), help="Text at the top; repeat with --next-to, the left one first.", names=("--title",),
        metavar="TEXT", repeats=True, recorded=ALWAYS,
    )  # fmt: skip
    size: Any = option(
        default="960x540", help="Pixels.", kind=Parsed(_size), metavar="WxH", unit="pixels", recorded=ALWAYS
    )
    fps: float | None = option(
        default=None, help="Frames per second.", kind=Number(0.1), metavar="N", unit="1/s",
        shown="the clip's, at most 30", recorded=ALWAYS,
    )  # fmt: skip
    view: Any = option(
        default="three-quarter", help=f"{', '.join(_VIEWS)}, or angles in degrees.", kind=Parsed(_view),
        metavar="NAME|A,E", unit="degrees", recorded=ALWAYS,
    )  # fmt: skip
    theme: str = option(default=..., like=options.THEME, kind=Word(("light", "dark")), recorded=ALWAYS)
    look: str = option(default=..., like=LOOK, recorded=ALWAYS)
    angles: Sequence[str] = option(
        default=..., like=options.ANGLES, kind=Parsed(names_of, list), metavar="A,B", recorded=ALWAYS
    )
    shapes: bool = option(default=..., like=options.SHAPES)
    world: str | None = option(default=..., like=WORLD)
    clearance: float | None = option(
        default=..., like=options.NEAREST, kind=Number(), metavar="DISTANCE", unit="length units of the model"
    )
    captions: bool = option(default=True, help="Show the time and the number of the frame.", recorded=ALWAYS)

    name: ClassVar[str] = "render"
    doing: ClassVar[str] = "drawing"
    how: ClassVar[Mapping[str, Option]] = {
        "output": output_option("The file to write, or a folder.", required=True),
        "format": format_option(_endings, "gif|mp4|png", "gif"),
    }

    def prepare(self) -> None:
        """Load the model, and check that Pillow is installed."""
        from synovia.draw.raster import require_pillow

        require_pillow()
        super().prepare()

    def open(self, host: Host) -> None:
        """Load the models and the world, and report their notes."""
        super().open(host)
        if self._obstacles is not None:
            host.note_model(self._obstacles.notes)

    @cached_property
    def _obstacles(self) -> World | None:
        """The obstacles around the body."""
        from synovia.io.worlds import read_world

        return None if self.world is None else read_world(Path(self.world))

    def usual_ending(self) -> str | None:
        """Return the default ending of the output files in a folder."""
        return ".gif"

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Draw a clip, and return the outcome."""
        from synovia.draw import render
        from synovia.draw.film import check_film

        if output is None:
            raise UsageError("expected a file to write, got none.", "-o")
        check_film(output, force=host.force)
        other = None
        if self.next_to is None:
            motion, _ = self.read(item.path, host)
        else:
            motion, other = self.read_pair(item.path, self.next_to, host)
        if self._obstacles is not None:
            host.note_model(self._obstacles.notes)
        if self.clearance is not None and not self.shapes:
            check_shapes(motion.skeleton)
        if self.shapes:
            motion = motion.on(fitted(motion.skeleton, host))
        with host.bar(self.doing) as progress:
            render(
                motion, output, next_to=other, titles=list(self.titles), size=self.size, fps=self.fps, view=self.view,
                theme=self.theme, look=self.look, shapes=self.shapes, world=self._obstacles, clearance=self.clearance,
                captions=self.captions, angles=list(self.angles), threads=host.threads, force=host.force,
                progress=progress,
            )  # fmt: skip
        figures = {"frames": len(motion), "seconds": float(motion.duration)}
        return Outcome(motion, figures, files=[output], said=f"{output}: {motion.name}")

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return an output that is a sheet of stills, unchanged; None for a film."""
        from synovia.batch.work import Picture

        del source
        return Picture(output.read_bytes()) if output.suffix.lower() == ".png" else None


VERB: Final = Verb(
    """Draw a clip as a film, or as a sheet of stills.

    The file is a .gif, a .png for stills, or an .mp4. The command needs the extra [render], and for .mp4 [film].

    For example: synovia render solved.bvh --next-to walk.bvh -o compare.gif,
    or synovia render reach.npz --world kitchen.toml --shapes -o reach.gif
    """,
    (Render,),
    clips_argument("CLIP..."),
)
