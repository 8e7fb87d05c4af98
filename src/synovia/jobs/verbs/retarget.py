"""``retarget``: retarget a clip to another body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from synovia import options
from synovia.errors import InputError
from synovia.jobs.base import Host, Outcome, UsageError
from synovia.jobs.clips import (
    NO_FILE,
    ClipJob,
    Roles,
    Saved,
    drawn,
    file_of,
    output_motion,
    usual_ending_of,
    warm_clip,
    with_roles,
)  # fmt: skip
from synovia.jobs.hand import APART, SPEED, WRITTEN, RetargetHand, distance_of
from synovia.jobs.job import Job, Verb, clips_argument
from synovia.jobs.options import (
    ALWAYS,
    NEVER,
    File,
    Option,
    Word,
    argument,
    described,
    flag_of,
    option,
    options_of,
)
from synovia.jobs.shared import AXES, GROUND, LOOPS, RESTS, TARGET, RestPose
from synovia.text import Report

if TYPE_CHECKING:
    from synovia.batch.inputs import Item
    from synovia.batch.work import Picture
    from synovia.clips import Ends
    from synovia.model import Skeleton
    from synovia.model.motion import Motion
    from synovia.model.shapes.world import World
    from synovia.retargeting import Retargeted

SCHEMA: Final = "synovia.retarget/1"
_Map = Mapping[str, tuple[str | int, str | int]]


@described
class Retarget(Saved, Roles, ClipJob):
    """Retarget clips to another body, and judge the results.

    >>> import synovia as sy
    >>> retarget = sy.jobs.Retarget("humanoid", hold_feet=False)
    >>> outcome = retarget("walk.bvh", "walk.npz")  # doctest: +SKIP
    >>> print(outcome.report())  # doctest: +SKIP
    >>> run = retarget.run("clips", "out")  # doctest: +SKIP
    """

    target: str = argument(like=TARGET, recorded=ALWAYS)
    joint_map: Any = option(
        default=..., like=options.JOINT_MAP, kind=File(), names=("--map",), metavar="MAP.toml", recorded=ALWAYS
    )
    save_map: Path | None = option(
        default=None, help="Write the joint map that was used.", kind=File(), metavar="MAP.toml", single="clip",
        recorded=NEVER,
    )  # fmt: skip
    rest: Any = option(default=..., like=options.REST, kind=RestPose(RESTS), metavar="POSE", recorded=ALWAYS)
    up: str | None = option(default=..., like=options.UP, kind=Word(AXES), metavar="AXIS", recorded=ALWAYS)
    velocity: Any = option(default=..., like=SPEED)
    clearance: Any = option(default=..., like=options.LIMBS_APART, kind=APART, metavar="DISTANCE|none")
    shapes: bool = option(default=..., like=options.FITTED)
    world: str | None = option(default=None, like=GROUND)
    loops: Path | None = option(default=None, like=replace(LOOPS, help=LOOPS.help.replace("the model", "DST")))
    plot: Path | None = option(
        default=None, help="Plot the judgement: .png, .svg or .pdf. Needs the extra [plot].", kind=File(),
        metavar="OUT", single="clip", recorded=NEVER,
    )  # fmt: skip
    hold_feet: bool = option(default=..., like=options.HOLD_FEET, recorded=ALWAYS)
    idle_hands: Any = option(
        default=..., like=options.IDLE_HANDS, kind=Word(("rest", "relaxed")), metavar="rest|relaxed"
    )
    root_motion: Any = option(
        default=..., like=options.ROOT_MOTION, kind=Word(("root", "hips", "none")), metavar="root|hips|none"
    )

    name: ClassVar[str] = "retarget"
    doing: ClassVar[str] = "retargeting"
    how: ClassVar[Mapping[str, Option]] = WRITTEN

    @property
    def _loops_of_clip(self) -> None:
        """Return None: loops belong to DST, not to the clip."""

    @cached_property
    def _target(self) -> Skeleton | Motion:
        """Target of retargeting: the model, or a clip of the model if only the clip shows the rest pose."""
        from synovia.batch.clips import target_of
        from synovia.covers import with_shapes
        from synovia.model import Skeleton

        found = target_of(self.target, self.loops)
        body = found if isinstance(found, Skeleton) else found.skeleton
        if not self.shapes or (shaped := with_shapes(body)) is body:
            return found
        return shaped if isinstance(found, Skeleton) else found.on(shaped)

    @property
    def _skeleton(self) -> Skeleton:
        """The skeleton of the model, with the roles of the model file."""
        from synovia.model import Skeleton

        return self._target if isinstance(self._target, Skeleton) else self._target.skeleton

    @cached_property
    def _ground(self) -> World | None:
        """World on which the feet stand; None for a level floor."""
        from synovia.io.worlds import read_world

        return None if self.world is None else read_world(Path(self.world))

    def _body(self) -> Skeleton | Motion:
        """Return the model with the roles of the option."""
        from synovia.model import Skeleton

        body = with_roles(self._skeleton, self.roles)
        return body if isinstance(self._target, Skeleton) else self._target.on(body)

    @cached_property
    def _given(self) -> _Map | None:
        """Joint map of the option, read if it is a file; None without one."""
        from synovia.retargeting import read_map

        return read_map(self.joint_map) if isinstance(self.joint_map, Path) else self.joint_map

    def settings(self) -> dict[str, Any]:
        """Return the settings that, with the input, determine the output, as JSON values."""
        joints = None if self._given is None else {role: list(pair) for role, pair in self._given.items()}
        return {**super().settings(), "joint_map": joints}

    def open(self, host: Host) -> None:
        """Load the models, and report their notes."""
        super().open(host)
        host.note_model(self._skeleton.notes)
        if self._ground is not None:
            host.note_model(self._ground.notes)

    def prepare(self) -> None:
        """Load the models and the kernels."""
        from synovia.retargeting import retarget

        super().prepare()
        try:
            _ = retarget(warm_clip(), self._target, hold_feet=self.hold_feet, threads=1).judgement
        except InputError:
            if self._given is None:
                raise  # the model has no legs: every clip would fail

    def usual_ending(self) -> str | None:
        """Return the default ending of the output files in a folder."""
        return usual_ending_of(self.target)

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Retarget a clip, and return the outcome."""
        from synovia.batch.clips import judged, notes_of
        from synovia.jobs.reports import warnings_of
        from synovia.retargeting import write_map

        given = self._given
        self._check_files(output, host)
        motion, ends = self.read(item.path, host)
        answer = self._retargeted(motion, given, host)
        if self.save_map is not None:
            write_map(answer.joint_map(), self.save_map, force=host.force)
        check = None if output is None else self.save(answer.motion, output, file_of(self.target), host)
        if self.plot is not None:
            from synovia.plots import plot_judgement

            plot_judgement(answer.judgement, self.plot, force=host.force)
        figures = {
            "frames": len(answer.motion), "missed": len(answer.missed_frames), "worst": float(answer.worst),
            "scale": float(answer.scale), **judged(answer.judgement),
        }  # fmt: skip
        return Outcome(
            answer, figures, check=check, falls_short=self.falls_short(figures),
            files=[path for path in (output, self.save_map, self.plot) if path is not None],
            notes=notes_of(answer), warnings=warnings_of(answer.judgement), text_warns=True,
            reporter=lambda: _report(answer, ends, trim=self.trim),
            hint="" if output is not None else NO_FILE,
        )  # fmt: skip

    def _check_files(self, output: Path | None, host: Host) -> None:
        """Check, before any work, that the files can be written."""
        from synovia.io.base import check_writable
        from synovia.io.save import check_target

        if output is not None:
            check_target(output, file_of(self.target), force=host.force)
        if self.save_map is not None:
            check_writable(self.save_map, force=host.force)
        if self.plot is not None:
            from synovia.plots.style import check_plot

            check_plot(self.plot, force=host.force)

    def _retargeted(self, motion: Motion, given: _Map | None, host: Host) -> Retargeted:
        """Return the retargeted clip; if the joint map has gaps that make this fail, write a draft of the map."""
        from synovia.retargeting import draft_to_save, retarget

        host.note_model(self._skeleton.notes)
        body = self._body()
        joints = None if given is None else dict(given)
        try:
            with host.bar("retargeting", len(motion)) as progress:
                return retarget(
                    motion, body, joints, rest=self.rest, up=self.up, hold_feet=self.hold_feet, velocity=self.velocity,
                    clearance=distance_of(self.clearance), world=self._ground,
                    idle_hands=self.idle_hands, root_motion=self.root_motion,
                    threads=host.threads, progress=progress,
                )  # fmt: skip
        except InputError:
            if self.save_map is not None:
                skeleton = with_roles(self._skeleton, self.roles)
                _save_draft(self.save_map, draft_to_save(motion.skeleton, skeleton, joints), host)
            raise

    def falls_short(self, figures: Mapping[str, Any]) -> bool:
        """Return whether feet miss their targets, or the verdict is "failed"."""
        return super().falls_short(figures) or figures.get("verdict") == "failed"

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output next to its input."""
        return drawn(output_motion(self._skeleton, output), self.original(source))


def _save_draft(path: Path, joints: dict[str, tuple[str | int, str | int]], host: Host) -> None:
    """Write the joint map as a draft if it lacks parts that retargeting needs."""
    from synovia.retargeting import NEEDED, write_map
    from synovia.retargeting.body import ARMS

    gaps = [part for part in NEEDED if "" in joints[part]]
    if gaps:
        write_map(joints, path, force=host.force)
        fill = f"Fill in {', '.join(gaps)}"
        if len(gaps) == len(NEEDED):
            fill += f", or the parts that both have, such as {' and '.join(ARMS[:2])},"
        host.say(f"a draft of the joint map. {fill} and try again with --map {path}", str(path))


def _report(answer: Retargeted, ends: Ends, *, trim: bool) -> Report:
    """Return the report of the result, with the calibration frames of the clip."""
    found = answer.report()
    cut_off = [f"cut off: {note}" for note in ends.notes if trim]
    ended = {"calibration": list(ends.notes), "calibration_cut_off": trim and bool(ends.notes)}
    return Report([*cut_off, found], {"schema": SCHEMA, **found.facts, **ended})


class _Verb(Verb):
    """The command: ``RetargetHand`` for recordings of a hand, else ``Retarget``."""

    def made(self, values: Mapping[str, Any], sources: Sequence[str], typed: Iterable[str]) -> tuple[Job, list[str]]:
        """Return the job for the first of the inputs.

        Raises:
            UsageError: If an option does not fit the inputs.
        """
        job = RetargetHand if _is_hand(sources) else Retarget
        own, given = {name for name, _, _ in options_of(job)}, set(typed)
        for name, said, _ in self.options():
            if name in given and name not in own:
                what = "clips of a body" if job is RetargetHand else "recordings of a hand, 21 points over time"
                raise UsageError(f"expected {what} with this option.", flag_of(name, said))
        if job is RetargetHand:  # the options of RetargetHand may have other defaults
            own &= given | {
                name for name, _, _ in options_of(job) if name not in {one for one, _, _ in options_of(Retarget)}
            }
        return job(**{name: value for name, value in values.items() if name in own}), list(sources)


def _is_hand(sources: Sequence[str]) -> bool:
    """Return whether the inputs are recordings of a hand, judged by the first file."""
    from synovia.clips.handfile import HAND_ENDINGS, holds_hand

    for source in sources[:1]:
        path = Path(source)
        with suppress(OSError, ValueError):  # the name may be too long; reading the file reports this later
            files = [path]
            if path.is_dir():
                files = sorted(one for one in path.rglob("*") if one.suffix.lower() in HAND_ENDINGS)[:1]
            elif any(sign in source for sign in "*?["):
                files = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))[:1]
            return any(holds_hand(one) for one in files)
    return False


VERB: Final = _Verb(
    """Retarget a clip to another body, and judge the result.

    The body is a character or a robot, and the clip stays within its limits. The exit code is 1 if the verdict is
    "failed" or feet miss their targets, and 0 if it is "good" or "look at it". A recording of a hand, 21 points over
    time in an npz, npy or CSV file, is retargeted to the hand of a robot.

    For example: synovia retarget walk.bvh character.glb -o walking.glb
    """,
    (Retarget, RetargetHand),
    clips_argument("SRC..."),
    prints_json=True,
)
