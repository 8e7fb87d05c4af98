"""``edit``: change a part of a clip and keep the rest, then cut, loop, mirror, smooth or join the clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from synovia import options
from synovia.errors import InputError
from synovia.jobs.base import Host, Outcome, UsageError
from synovia.jobs.clearance import Clear
from synovia.jobs.clips import (
    NO_FILE,
    ClipJob,
    ClipReader,
    Roles,
    Saved,
    drawn,
    warm_clip,
    with_roles,
    written_clip,
    written_endings,
)
from synovia.jobs.job import Verb, clips_argument, format_option, output_option
from synovia.jobs.options import (
    NEVER,
    NUMBER,
    File,
    Number,
    Option,
    Parsed,
    described,
    is_changed,
    numbers_of,
    option,
    options_of,
)
from synovia.jobs.shared import ACCELERATION, DEADLINE, FOOT_LOCK, MOVING, TOLERANCE, velocities
from synovia.text import Report, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synovia.batch.inputs import Item
    from synovia.batch.work import Picture
    from synovia.clips import EditClearance, Edited, FootLocked
    from synovia.layers import Layer
    from synovia.model.finding import Finding
    from synovia.model.motion import Motion
    from synovia.retargeting import Judgement

SCHEMA: Final = "synovia.edited/1"
_SLICE: Final = "FIRST:END or FIRST:END:STEP, as in Python, such as 10:60"
_OWN: Final = (
    "hold_feet",
    "tolerance",
    "deadline",
    "blend",
    "seam",
    "align",
    "append_clip",
    "verify",
    "shapes",
)  # options that change nothing without another option
_FADES: Final = ("pin", "offset")

_Frames = tuple[int | None, int | None, int | None]


def _slice(text: str) -> _Frames:
    """Return the three numbers of a slice."""
    parts = [part.strip() for part in text.split(":")]
    if not 2 <= len(parts) <= 3 or not all(not part or NUMBER.fullmatch(part.removeprefix("-")) for part in parts):
        raise InputError("", value=text, expected=_SLICE)
    numbers = [int(part) if part else None for part in parts]
    first, end, step = (*numbers, None)[:3]
    if step is not None and step < 1:
        raise InputError("", value=text, expected=_SLICE, hint="--reverse reverses a clip")
    return first, end, step


def _pin(text: str) -> str:
    """Check the form of a pin, and return its text."""
    from synovia.files.layers import pin_layer

    pin_layer(text)
    return text


def _offset(text: str) -> str:
    """Check the form of an offset, and return its text."""
    from synovia.files.layers import offset_layer

    offset_layer(text)
    return text


def _place(text: str) -> tuple[float, ...]:
    """Return the three coordinates of a point."""
    return numbers_of(text, 3, 3)


class Made(NamedTuple):
    """An edited clip.

    Args:
        motion: The clip.
        edited: Result of the layers; None without layers.
        locked: Result of the foot lock; None without it.
        missed: Frames of the clip whose goals are missed.
        clearances: Result of each layer's clearance goal, by frame of the final clip.
    """

    motion: Motion
    edited: Edited | None
    locked: FootLocked | None
    missed: tuple[int, ...]
    clearances: tuple[EditClearance, ...]


@described
class Edit(Saved, Roles, Clear, ClipJob):
    """Change a part of clips and keep the rest; or cut, loop, mirror, smooth and join them.

    Layers are applied first, to the frames of the input: layers of the file, then pins, then offsets. Each layer keeps
    clear of obstacles and of the body as the options say; without layers, the whole clip does. The tools follow in the
    order of this list.

    >>> import synovia as sy
    >>> raised = sy.jobs.Edit(offset=["left_hand=0,0.1,0@30:60"], blend=10)
    >>> outcome = raised("walk.bvh", "raised.bvh")  # doctest: +SKIP
    >>> run = sy.jobs.Edit(loop=True, foot_lock=True).run("clips", "loops")  # doctest: +SKIP
    """

    layers: Path | None = option(
        default=None, help="File of layers, TOML or JSON; 'synovia schema edit' prints its schema.", kind=File(),
        names=("--layers", "-l"), metavar="LAYERS", rank=-1,
    )  # fmt: skip
    pin: Sequence[str] = option(
        default=(),
        help="Keep a joint where it is at frame A until frame B, both included; without frames, in the whole clip."
        " Repeat for more.",
        kind=Parsed(_pin), metavar="JOINT@A:B", repeats=True, completes="joints", rank=-1,
    )  # fmt: skip
    offset: Sequence[str] = option(
        default=(),
        help="Move a joint away from the clip along x, y and z of the world, in the unit of the file ('synovia inspect'"
        " shows it, and which axis is up); frames as for --pin. Repeat for more.",
        kind=Parsed(_offset), metavar="JOINT=X,Y,Z[@A:B]", repeats=True, completes="joints", rank=-1,
    )  # fmt: skip
    blend: int = option(
        default=0, help="Frames over which pins and offsets fade in, and out.", kind=Number(0, 10**6, whole=True),
        metavar="N", rank=-1,
    )  # fmt: skip
    hold_feet: bool = option(
        default=..., like=options.HOLD_FEET, help="Layers keep the feet that stand in the clip in place.", rank=-1
    )
    moving: Sequence[str] = option(
        default=(), like=MOVING, rank=-1,
        help="A joint that layers may move, by name or role; repeat for more. A layer of the file may have its own.",
    )  # fmt: skip
    tolerance: tuple[float, float] | None = option(default=..., like=TOLERANCE, rank=-1)
    deadline: float | None = option(default=..., like=DEADLINE, single="clip", recorded=NEVER, rank=-1)
    part: Any = option(
        default=None, help="Keep these frames, as a slice in Python: from A up to B, without B; every S-th.",
        kind=Parsed(_slice, list), names=("--slice",), metavar="A:B[:S]", shown="all",
    )  # fmt: skip
    reverse: bool = option(default=False, help="Reverse the clip in time.")
    speed: float | None = option(
        default=None, help="Play at this speed: 0.5 takes twice as long.", kind=Number(0, above=True), metavar="FACTOR"
    )
    velocity: Any = option(
        default=..., like=options.VELOCITY, kind=Parsed(velocities), metavar="V|A=V,B=V", unit="rad/s", shown="",
        help="Slow the clip down where joints are faster than this, radians or length units per second.",
    )  # fmt: skip
    acceleration: Any = option(
        default=..., like=ACCELERATION, unit="rad/s²", shown="",
        help="Slow the clip down where joints accelerate more than this.",
    )  # fmt: skip
    resample: float | None = option(
        default=None, help="Frame rate, at the same speed.", kind=Number(0, above=True), metavar="FPS", unit="1/s"
    )
    smooth: float | None = option(
        default=None, help="Remove motion above this frequency.", kind=Number(0, above=True),
        metavar="HZ", unit="Hz",
    )  # fmt: skip
    mirror: bool = option(default=False, help="Exchange left and right.")
    append: Sequence[Path] = option(
        default=(), help="Append another clip of this body. Repeat for more.", kind=File(), metavar="CLIP",
        repeats=True,
    )  # fmt: skip
    append_clip: str | int | None = option(
        default=None, help="Name or number of the clip in the files of --append.", metavar="NAME|N",
        shown="that of --clip",
    )  # fmt: skip
    align: bool = option(default=False, help="Appended clips begin where the clip before ends.")
    loop: bool = option(default=False, help="Make a loop: the last frame leads to the first.")
    seam: int | None = option(
        default=None, help="Number of frames to blend where clips join, or a loop closes.",
        kind=Number(0, 10**6, whole=True), metavar="N", shown="0 for --append; a third of a second for --loop",
    )  # fmt: skip
    origin: Any = option(
        default=None,
        help="Start with the hips above this point.",
        kind=Parsed(_place, list),
        metavar="X,Y,Z",
        shown="where it is",
    )
    heading: float | None = option(
        default=None, help="Facing direction in the first frame, an angle from the axis that the body faces at rest.",
        kind=Number(), metavar="DEGREES", unit="deg", shown="as it is",
    )  # fmt: skip
    foot_lock: bool = option(
        default=False, like=FOOT_LOCK, help="Keep standing feet in place, after the options above."
    )
    in_place: bool = option(default=False, help="Remove the motion over the ground, as the last step; feet then slide.")

    name: ClassVar[str] = "edit"
    doing: ClassVar[str] = "editing"
    how: ClassVar[Mapping[str, Option]] = {
        "output": output_option("Write the clip: .bvh, .fbx, .npz, .csv, or .glb (a copy of CLIP); or a folder."),
        "format": format_option(written_endings),
    }

    def _layers(self) -> list[Layer]:
        """Return the layers, in order.

        Raises:
            SynoviaError: If the file cannot be read.
        """
        from synovia.files.layers import offset_layer, pin_layer

        layers = [
            *self._of_file,
            *(pin_layer(text, blend=self.blend) for text in self.pin),
            *(offset_layer(text, blend=self.blend) for text in self.offset),
        ]
        return [layer.replace(moving=layer.moving or self.moving or None) for layer in layers]

    @cached_property
    def _of_file(self) -> list[Layer]:
        """The layers of the file."""
        from synovia.files.layers import read_layers

        return [] if self.layers is None else read_layers(self.layers, world=self.obstacles)

    def _check(self) -> None:
        """Check that the options change something, and that they fit together.

        Raises:
            UsageError: If the options change nothing, or do not fit together.
        """
        inherited = {name for base in (ClipJob, Roles, Saved) for name, _, _ in options_of(base)}
        given = {name for name, _, _ in options_of(self) if is_changed(self, name)}
        if not given - inherited - set(_OWN):
            raise UsageError("expected a change, such as --layers, --pin, --slice or --loop, got none.")
        if "shapes" in given and not (given & {"world", "clearance", "layers"}):
            raise UsageError("expected --clearance, --world or --layers with this option.", "--shapes")
        if "blend" in given and not given & set(_FADES):
            raise UsageError("expected --pin or --offset with this option: a file of layers has its own.", "--blend")
        if "moving" in given and not given & {"layers", *_FADES}:
            raise UsageError("expected --layers, --pin or --offset with this option.", "--moving")
        for name in {"align", "append_clip"} & given:
            if not self.append:
                raise UsageError("expected --append with this option.", f"--{name.replace('_', '-')}")
        if "seam" in given and not (self.append or self.loop):
            raise UsageError("expected --append or --loop with this option.", "--seam")
        if self.loop and self.seam == 0:
            raise UsageError("expected 1 or more frames with --loop, got 0.", "--seam")

    def prepare(self) -> None:
        """Load the model and the kernels."""
        from synovia.clips import edit, foot_lock
        from synovia.layers import Layer

        super().prepare()
        self._check()
        if self._layers() or self.clearance_goals():
            edit(warm_clip(), Layer({"left_hand": (0.0, 0.01, 0.0)}, relative=True))
        if self.foot_lock:
            foot_lock(warm_clip(), up="y", threads=1)

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Edit a clip, and return the outcome."""
        from synovia.batch.clips import judged
        from synovia.io.save import check_target
        from synovia.jobs.reports import warnings_of
        from synovia.retargeting import judge

        self._check()
        if output is not None:
            check_target(output, self.copied(item.path), force=host.force)
        motion, _ = self.read(item.path, host)
        made = self._made(motion.on(with_roles(motion.skeleton, self.roles)), host)
        host.note([note for note in made.motion.notes if note not in motion.notes], motion.name)
        check = None if output is None else self.save(made.motion, output, self.copied(item.path), host)
        judgement = judge(made.motion, missed=made.missed).with_findings(_doubts(made))
        before = None if judgement.verdict == "good" else judge(motion).verdict
        as_before = ", as it was before the edit" if before == judgement.verdict else ""
        figures = {"frames": len(made.motion), **_figures(made), **judged(judgement)}
        return Outcome(
            made.motion, figures, check=check, falls_short=self.falls_short(figures),
            files=[] if output is None else [output], warnings=warnings_of(judgement),
            reporter=lambda: _report(made, judgement, as_before),
            hint="" if output is not None else NO_FILE,
        )  # fmt: skip

    def _made(self, motion: Motion, host: Host) -> Made:
        """Return the edited clip with the results of all steps."""
        import numpy as np

        from synovia.clips import edit, foot_lock

        body, wanted = self.keep_layers_clear(motion.skeleton, self._layers(), host)
        motion, edited, marked = motion.on(body), None, np.zeros((1, len(motion)), bool)
        if wanted:
            with host.bar(self.doing, len(motion)) as progress:
                edited = edit(
                    motion, wanted, feet=None if self.hold_feet else (), tolerance=self.tolerance,
                    deadline=self.deadline, progress=progress,
                )  # fmt: skip
            motion, marked = edited.motion, _marked(edited)
        motion, marked = self._timed(motion, marked)
        motion = self._joined(motion, host)
        more = np.zeros((len(marked), len(motion)), bool)
        marked = np.concatenate([marked, more], axis=1)[:, : len(motion)]  # joining keeps the first frames
        if self.origin is not None or self.heading is not None:
            heading = None if self.heading is None else float(np.radians(self.heading))
            motion = motion.moved(origin=self.origin, heading=heading)
        locked = None
        if self.foot_lock and not self.loop:
            with host.bar("holding feet", len(motion)) as progress:
                locked = foot_lock(motion, threads=host.threads, progress=progress)
            motion = locked.motion
        if self.in_place:
            motion = motion.in_place()
        missed, kept = marked[0], () if edited is None else edited.clearances
        if edited is not None and motion is not edited.motion:
            held = [np.flatnonzero(row).tolist() for row in marked[1:]]
            kept = tuple(one.on(motion, frames) for one, frames in zip(kept, held, strict=True))
            for one in kept:
                missed[list(one.missed_frames)] = True
        return Made(motion, edited, locked, tuple(np.flatnonzero(missed).tolist()), kept)

    def _timed(self, motion: Motion, marked: NDArray[np.bool_]) -> tuple[Motion, NDArray[np.bool_]]:
        """Return the clip with cut or retimed frames, and the marks (n, T) resampled to the same frames."""
        import numpy as np

        if self.part is not None:
            frames = slice(*self.part)
            count = len(motion)
            motion, marked = motion[frames], marked[:, frames]
            if not len(motion):
                raise InputError(
                    "--slice", where=motion.name, value=self.part, expected=f"at least one of {count} frames"
                )
        if self.reverse:
            motion, marked = motion.reversed(), marked[:, ::-1]
        if self.speed is not None:
            motion = motion.retimed(self.speed)
        if self.velocity is not None or self.acceleration is not None:
            motion = motion.slowed(velocity=self.velocity, acceleration=self.acceleration)
        if self.resample is not None:
            motion = motion.resample(self.resample)
        if len(motion) != (count := len(marked[0])):
            marked = marked[:, np.linspace(0, count - 1, len(motion)).round().astype(int)]
        if self.smooth is not None:
            motion = motion.smoothed(self.smooth)
        return motion.mirrored() if self.mirror else motion, marked

    def _joined(self, motion: Motion, host: Host) -> Motion:
        """Return the clip with other clips appended, and closed to a loop if the option asks for a loop."""
        from synovia.model.clip_tools.concatenate import concatenate

        if self.append:
            clip = self.clip if self.append_clip is None else self.append_clip
            reader = ClipReader(clip=clip, model=self.model, trim=self.trim)
            others = [
                _at_rate(reader.read(path, host)[0].on(motion.skeleton), motion.fps, host) for path in self.append
            ]
            motion = concatenate([motion, *others], blend=self.seam or 0, align=self.align)
        if not self.loop:
            return motion
        with host.bar("closing the loop", len(motion)) as progress:
            return motion.looped(self.seam, lock_feet=self.foot_lock, progress=progress)

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output next to its input; None for a CSV, which holds no skeleton."""
        return None if output.suffix.lower() == ".csv" else drawn(written_clip(output), self.original(source))


def _doubts(made: Made) -> list[Finding]:
    """Return the findings about layers that the user should check; without frames if the tools changed the clip."""
    from synovia.model.finding import Finding

    edited = made.edited
    if edited is None:
        return []
    same = made.motion is edited.motion
    return [
        Finding(
            "body", "doubt", "look", one.frames if same else (), f"{one.layer}: {one.text}" if one.layer else one.text
        )
        for one in edited.findings
        if one.level == "look"
    ]


def _at_rate(motion: Motion, fps: float, host: Host) -> Motion:
    """Return a clip at the frame rate of another."""
    from synovia.model.clip_tools.additive import same_rate

    if same_rate(motion.fps, fps):
        return motion
    host.say(f"resampled from {motion.fps:g} to {fps:g} fps, the rate of the first clip", motion.name)
    return motion.resample(fps)


def _marked(edited: Edited) -> NDArray[np.bool_]:
    """Return marks of frames (n, T): row 0 for missed frames, then a row for the frames of each clearance goal."""
    import numpy as np

    frames = np.arange(len(edited.motion))
    return np.array([~edited.reached, *(np.isin(frames, one.frames) for one in edited.clearances)])


def _figures(made: Made) -> dict[str, Any]:
    """Return the numbers of missed frames and of frames that layers changed, and how fast feet slide."""
    out: dict[str, Any] = {"missed": len(made.missed)}
    if made.edited is not None:
        out["changed"] = int(made.edited.acts.sum())
    if made.locked is not None:
        out |= {"slide_before": float(made.locked.slide_before), "slide": float(made.locked.slide)}
    return out


def _report(made: Made, judgement: Judgement, as_before: str) -> Report:
    """Return the report on an edited clip."""
    from synovia.jobs.reports import clip_report

    found = clip_report(made.motion, None, None, made.locked)
    first, *others = found.splitlines()
    facts = {**found.facts, "schema": SCHEMA}
    lines = [first]
    if made.edited is not None:
        edited = made.edited.report()
        lines.append(edited)
        facts |= {"edit": edited.facts, "clearances": plain(made.clearances)}
    lines += [*others, *_after_tools(made), judgement.summary() + as_before]
    return Report(lines, {**facts, "judgement": judgement.report().facts})


def _after_tools(made: Made) -> list[str]:
    """Return lines on clearance goals whose result the tools changed, with the pairs that are too near afterwards."""
    from synovia.model.anatomy.feet import frames_text

    unit, out = made.motion.skeleton.meters_per_unit, list[str]()
    for before, after in zip(() if made.edited is None else made.edited.clearances, made.clearances, strict=True):
        if after is before or not (before.too_near or after.too_near):
            continue
        out.append(f"{after.layer}: {after.text(unit)}, after the tools")
        out += [f"{after.layer}: {near.text(unit)} ({frames_text(near.frames)})" for near in after.too_near]
    return out


VERB: Final = Verb(
    """Change a part of a clip and keep the rest; cut, loop, mirror, smooth or join clips.

    Layers come first: their frames are those of CLIP, from 0. They avoid --world, and self-collisions by
    --clearance; without layers, the whole clip does. The tools follow in the order of the options below. The exit code
    is 1 if a frame misses a goal of a layer, or is too near in the end.

    For example: synovia edit walk.bvh --offset left_hand=0,0.1,0@30:60 --blend 10 -o raised.bvh
    """,
    (Edit,),
    clips_argument("CLIP..."),
    prints_json=True,
)
