"""``animate``: make a clip that follows targets or points, or lock the feet of a clip: three jobs, one command."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from synovia import options
from synovia.errors import FormatError, InputError
from synovia.jobs.base import Host, Outcome, UsageError
from synovia.jobs.clearance import Clear
from synovia.jobs.clips import (
    INSTEAD,
    NO_FILE,
    ClipJob,
    ClipReader,
    Roles,
    Saved,
    drawn,
    file_of,
    motion_endings,
    needs_model,
    output_motion,
    usual_ending_of,
    warm_clip,
    with_roles,
    written_clip,
    written_endings,
)  # fmt: skip
from synovia.jobs.job import Job, Verb, clips_argument, format_option, output_option
from synovia.jobs.options import (
    ALWAYS,
    NEVER,
    File,
    Model,
    Number,
    Option,
    Parsed,
    Word,
    argument,
    described,
    flag_of,
    names_of,
    option,
    options_of,
    settings_of,
)  # fmt: skip
from synovia.jobs.shared import AXES, DEADLINE, FOOT_LOCK, GROUND, MOVING, ROOT, SOLVER, UNSEEN, RestPose, velocities
from synovia.options import OBSTACLE_FILES
from synovia.text import Report

if TYPE_CHECKING:
    from synovia.batch.inputs import Item
    from synovia.batch.work import Picture
    from synovia.clips import Fitted, FootLocked
    from synovia.clips.pointfile import PointFile
    from synovia.goals import Goal
    from synovia.model import Pose, Skeleton
    from synovia.model.finding import Finding
    from synovia.model.motion import Motion
    from synovia.model.root import Root
    from synovia.model.shapes.world import World
    from synovia.tracking import Tracked

_STOOD_ON: Final = replace(
    GROUND,
    help="With --goals or --follow: obstacles for the body to avoid, along with self-collisions. With a clip whose feet"
    f" are held: steps, ramps and stones on which they stand. Files: {OBSTACLE_FILES}.",
)
AUTO: Final = "auto"  # name of a body that is built with the proportions of the points
TRACK_ENDINGS: Final = (".toml", ".json")
BODY: Final = Option("The body.", Model(), metavar="FILE")
_LOCK: Final = ("feet", "up", "fade")  # options of a foot lock
_READER: Final = ("clip", "model", "trim")


def _pairs(text: str) -> dict[str, str]:
    """Return the joint of the other clip for each joint in ``A,B=C``."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        own, _, other = part.partition("=")
        if not own.strip() or own.strip() in pairs:
            raise InputError("", value=text, expected="A,B=C", hint="name each joint once")
        pairs[own.strip()] = other.strip() or own.strip()
    return pairs


_JOINTS: Final = Option(
    "Joints that follow; B=C: B follows C of the clip or the points.", Parsed(_pairs), metavar="A,B=C",
    shown="all tips; all points", recorded=ALWAYS,
)  # fmt: skip


class Made(NamedTuple):
    """A clip, the result of each step that made it (None for skipped steps), and the world on which its feet stand."""

    motion: Motion
    tracked: Tracked | None = None
    fitted: Fitted | None = None
    locked: FootLocked | None = None
    world: World | None = None

    @property
    def missed(self) -> tuple[int, ...]:
        """Frames in which goals are missed or feet do not reach their footholds."""
        steps = (self.tracked, self.locked)
        return tuple(sorted({frame for step in steps if step is not None for frame in step.missed_frames}))


@described
class _Animate(Saved, Roles, ClipJob):
    """Options and steps that the three jobs share."""

    feet: Sequence[str] | None = option(
        default=None, help="The ankles.", kind=Parsed(names_of, list), metavar="LEFT,RIGHT", shown="by role or name",
        needs="foot_lock", recorded=ALWAYS,
    )  # fmt: skip
    up: str | None = option(
        default=..., like=options.UP, kind=Word(AXES), help="Axis of the clip or the points that points up.",
        metavar="AXIS", recorded=ALWAYS,
    )  # fmt: skip
    fade: float = option(
        default=0.06, help="Fade-in and fade-out of a foot's correction.", kind=Number(0), metavar="SECONDS",
        unit="s", needs="foot_lock", recorded=ALWAYS,
    )  # fmt: skip

    name: ClassVar[str] = "animate"
    how: ClassVar[Mapping[str, Option]] = {
        "output": output_option("Write the clip: .bvh, .fbx, .npz, .csv, or .glb (a copy of FILE); or a folder."),
        "format": format_option(written_endings),
    }

    def _lock_settings(self, settings: dict[str, Any], *, locks: bool) -> dict[str, Any] | None:
        """Remove the foot lock's settings from a job's settings and return them; None without a foot lock."""
        own = {name: settings[name] for name in _READER} | {name: settings.pop(name) for name in _LOCK}
        return {"foot_lock": True, **own} if locks else None

    def _held(self, motion: Motion, up: str | None, host: Host, world: World | None = None) -> FootLocked:
        """Return a clip with locked feet."""
        from synovia.clips import foot_lock

        with host.bar("holding feet", len(motion)) as progress:
            return foot_lock(
                motion, feet=self.feet, up=up, fade=self.fade, world=world, threads=host.threads, progress=progress
            )

    def _written(self, made: Made, output: Path | None, into: str | Path | None, up: str | None, host: Host) -> Outcome:
        """Write a clip, judge it, and return the outcome with the figures of the judgement.

        Args:
            made: The clip and the results of its steps.
            output: The file to write; None for no file.
            into: The model file that the output format may copy.
            up: Axis that points up; None to find it.
            host: Threads, notes and progress of the job.
        """
        from synovia.batch.clips import judged
        from synovia.jobs.reports import clip_report, warnings_of
        from synovia.retargeting import judge

        motion, tracked, fitted, locked, world = made
        check = None if output is None else self.save(motion, output, into, host)
        judgement = judge(
            motion, up=up,
            flips=None if fitted is None else fitted.flips,
            errors=None if fitted is None else fitted.errors,
            missed=made.missed, world=world,
        ).with_findings(() if tracked is None else _doubts(tracked))  # fmt: skip
        figures = {"frames": len(motion), **self.figures(made), **judged(judgement)}
        return Outcome(
            motion, figures, check=check, falls_short=self.falls_short(figures),
            files=[] if output is None else [output], warnings=warnings_of(judgement),
            reporter=lambda: Report(
                [found := clip_report(motion, tracked, fitted, locked), judgement.summary()],
                {**found.facts, "judgement": judgement.report().facts},
            ),
            hint="" if output is not None else NO_FILE, notes=() if fitted is None else fitted.notes,
        )  # fmt: skip

    @abstractmethod
    def figures(self, made: Made) -> dict[str, Any]:
        """Return the figures of a clip in addition to those of its judgement."""

    def _check(self, output: Path | None, into: str | Path | None, host: Host) -> None:
        """Check, before any work, that the file can be written; ``into`` as in ``_written``."""
        from synovia.io.save import check_target

        if output is not None:
            check_target(output, into, force=host.force)


@described
class HoldFeet(_Animate):
    """Hold the standing feet of clips.

    >>> import synovia as sy
    >>> hold = sy.jobs.HoldFeet(fade=0.1)
    >>> hold("walk.bvh", "held.bvh")  # doctest: +SKIP
    """

    world: str | None = option(default=None, like=_STOOD_ON)

    doing: ClassVar[str] = "holding feet"

    def settings(self) -> dict[str, Any]:
        """Return the settings that, with the input, determine the output, as JSON values."""
        return {"foot_lock": True, **super().settings()}

    def prepare(self) -> None:
        """Load the model and the kernels."""
        from synovia.clips import foot_lock

        super().prepare()
        foot_lock(warm_clip(), up="z", threads=1)

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Hold the feet of a clip, and return the outcome."""
        self._check(output, self.copied(item.path), host)
        motion, _ = self.read(item.path, host, _MODEL_NEEDS)
        motion = motion.on(with_roles(motion.skeleton, self.roles))
        from synovia.io.worlds import read_world

        world = None if self.world is None else read_world(Path(self.world))
        if world is not None:
            host.note_model(world.notes)
        locked = self._held(motion, self.up, host, world)
        return self._written(
            Made(locked.motion, locked=locked, world=world), output, self.copied(item.path), self.up, host
        )

    def figures(self, made: Made) -> dict[str, Any]:
        """Return how fast feet slide and how deep they sink, before and after the foot lock."""
        names = ("slide_before", "slide", "depth_before", "depth")
        found = {name: float(getattr(made.locked, name)) for name in names}
        missed = {} if self.world is None or made.locked is None else {"missed": len(made.locked.missed_frames)}
        return {"worst": found["slide"], **missed, **found}

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output next to its input; None for a CSV, which holds no skeleton."""
        return None if output.suffix.lower() == ".csv" else drawn(written_clip(output), self.original(source))


_MODEL_NEEDS: Final = "--foot-lock alone needs a clip; a model needs --goals, --follow or --points"


class Targets(NamedTuple):
    """Targets that a model follows over time.

    Args:
        goals: The goals.
        values: Target values of each goal over time.
        fps: Frames per second.
        frames: Number of frames.
        start: Pose to start from; None for the rest pose.
    """

    goals: list[Goal]
    values: dict[str, Any]
    fps: float
    frames: int
    start: Pose | None = None


@described
class Follow(Clear, _Animate):
    """Make clips of a model that follow the joints of other clips, or keyframes.

    >>> import synovia as sy
    >>> follow = sy.jobs.Follow("arm7", tracks=True, root="fixed")
    >>> follow("track.toml", "clip.npz")  # doctest: +SKIP
    """

    body: str = argument(like=replace(BODY, help="The model that follows."), recorded=ALWAYS)
    joints: Mapping[str, str] | None = option(default=None, like=_JOINTS)
    solver: Any = option(default=..., like=SOLVER, recorded=ALWAYS)
    root: Any = option(default=None, like=ROOT, shown="fixed with --goals, else free", recorded=ALWAYS)
    moving: Sequence[str] = option(default=(), like=MOVING)
    candidates: int = option(
        default=1, help="Number of start poses to try; the best clip is kept.", kind=Number(1, whole=True), metavar="N",
        recorded=ALWAYS,
    )  # fmt: skip
    both_ways: bool = option(
        default=False, help="Track backwards as well, for the best path through both tracks.", recorded=ALWAYS
    )
    smoothness: float = option(
        default=0.0, help="Smooth out motion that is quicker than this.", kind=Number(0), names=("--smooth",),
        metavar="SECONDS", unit="s", recorded=ALWAYS,
    )  # fmt: skip
    velocity: Any = option(
        default=..., like=options.VELOCITY, kind=Parsed(velocities), metavar="V|A=V,B=V", unit="rad/s", shown="",
        help="Largest speed of a joint, radians or length units per second; a frame that is too late is a miss.",
        recorded=ALWAYS,
    )  # fmt: skip
    foot_lock: bool = option(default=False, like=FOOT_LOCK)
    deadline: float | None = option(default=..., like=DEADLINE, single="clip", recorded=NEVER)
    tracks: bool = option(
        default=False, help="Whether the inputs are keyframes instead of clips.", hidden=True, recorded=NEVER
    )

    doing: ClassVar[str] = "following"

    @cached_property
    def _moves(self) -> Root:
        """How the root may move; without the option, fixed for keyframes and free for clips."""
        return self.root or ("fixed" if self.tracks else "free")

    def settings(self) -> dict[str, Any]:
        """Return the settings that, with the input, determine the output, as JSON values."""
        from synovia.solver import as_solver

        own = super().settings()
        own.pop("foot_lock", None)
        lock = self._lock_settings(own, locks=self.foot_lock)
        reader = {name: own.pop(name) for name in _READER}
        if self.up is not None and lock is None:
            own["up"] = self.up
        own |= {"model": own.pop("body"), "follow": "tracks" if self.tracks else reader, "lock": lock}
        return own | {"solver": repr(as_solver(self.solver, self.clearance_goals())), "root": self._moves}

    def endings(self) -> Sequence[str]:
        """Return the endings of the files to read from folders."""
        return TRACK_ENDINGS if self.tracks else motion_endings(on_model=True)

    def usual_ending(self) -> str | None:
        """Return the default ending of the output files in a folder."""
        return usual_ending_of(self.body)

    @property
    def _loops_of_clip(self) -> None:
        """Return None: loops belong to the body that follows, not to the clip."""

    def open(self, host: Host) -> None:
        """Load the models; the first file loads the kernels, because its targets determine the goals."""
        super().open(host)
        _ = self.load_body(self.body, host)

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Make a clip, and return the outcome."""
        from synovia.facade import IK
        from synovia.model.motion import Motion
        from synovia.solver import as_solver

        self._check(output, file_of(self.body), host)
        skeleton = self.load_body(self.body, host)
        targets = keyframes(item.path) if self.tracks else self._followed(item.path, skeleton, host)
        skeleton, goals = self.keep_clear(skeleton, targets.goals, host)
        ik = IK(skeleton, goals, as_solver(self.solver, goals), root=self._moves, moving=self.moving or None)
        with host.bar(self.doing, targets.frames) as progress:
            tracked = ik.track(
                targets.values, targets.start, fps=targets.fps, candidates=self.candidates, both_ways=self.both_ways,
                smoothness=self.smoothness, velocity=self.velocity, threads=host.threads, progress=progress,
                deadline=self.deadline,
            )  # fmt: skip
        motion = Motion(tracked.motion.skeleton, tracked.q, tracked.fps, name=item.path.stem)
        locked = self._held(motion, self.up, host) if self.foot_lock else None
        made = Made(motion if locked is None else locked.motion, tracked, None, locked)
        return self._written(made, output, file_of(self.body), self.up, host)

    def _reader_of(self, path: Path) -> ClipReader:
        """Return the reader of a clip; a clip without a skeleton is read on the model that follows it."""
        if self.model is not None or not needs_model(path):
            return self
        return ClipReader(clip=self.clip, model=self.body, trim=self.trim)

    def _followed(self, path: Path, skeleton: Skeleton, host: Host) -> Targets:
        """Return the positions of a clip's joints as targets."""
        from synovia.goals import PositionGoal
        from synovia.ik.targets import targets_from

        source, _ = self._reader_of(path).read(path, host)
        tips = [skeleton.frame_names[row] for row in skeleton.tip_rows]
        values = targets_from(source, tips if self.joints is None else dict(self.joints))
        start = None
        with suppress(InputError):  # if the clip belongs to another body, it gives no start pose
            placed = source.on(skeleton)
            same = [(body.joint_names, body.nq) for body in (skeleton, skeleton.with_root(self._moves))]
            start = placed.pose(0) if (placed.skeleton.joint_names, placed.skeleton.nq) in same else None
        return Targets([PositionGoal(joint) for joint in values], values, source.fps, len(source), start)

    def figures(self, made: Made) -> dict[str, Any]:
        """Return the missed frames, the jumps, and the largest distance from a target."""
        import numpy as np

        from synovia.goals.base import POSITION

        if made.tracked is None:
            return {}
        tracked = made.tracked
        placed = [i for i, goal in enumerate(tracked.ik.goals) if goal.measures & POSITION]
        worst = float(np.max(tracked.errors[:, placed, 0])) if placed else None
        return {"missed": len(tracked.missed_frames), "jumps": len(tracked.jumps), "worst": worst}

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output, next to the clip that it follows."""
        source_clip = None
        if source is not None and source.is_file() and not self.tracks:
            source_clip = self._reader_of(source).read(source, Host())[0]
        return drawn(output_motion(self.load_body(self.body, Host()), output), source_clip)


def keyframes(path: Path) -> Targets:
    """Return the targets of a track file.

    Raises:
        FormatError: If no goal has keys, or the file is malformed.
    """
    from synovia.files.tracks import read_track

    track = read_track(path)
    if not track.targets:
        raise FormatError("no goal has keys", where=str(path), expected="keys for at least one goal")
    return Targets(list(track.goals), track.targets, track.fps, track.frames)


@described
class Fit(_Animate):
    """Fit a body to points over time.

    >>> import synovia as sy
    >>> fit = sy.jobs.Fit("humanoid", fps=60)
    >>> fit("markers.c3d", "clip.bvh")  # doctest: +SKIP
    """

    body: str | None = option(
        default=None, like=BODY, help="The body for --points; auto: a person with the proportions of the points.",
        metavar="auto|FILE", shown="FILE, else auto", recorded=ALWAYS, kw_only=False,
    )  # fmt: skip
    preset: str | None = option(
        default=None, help="Order of the points: mediapipe, coco, openpose, h36m, smpl, holistic or hand.",
        kind=Word(("mediapipe", "coco", "openpose", "h36m", "smpl", "holistic", "hand")), metavar="NAME",
        shown="by names or number",
        recorded=ALWAYS,
    )  # fmt: skip
    side: str | None = option(
        default=None, help="Which hand the points of --preset hand show.", kind=Word(("left", "right")),
        metavar="SIDE", shown="by how the fingers bend",
    )  # fmt: skip
    mirror: str | None = option(
        default=None, help="Undo a mirror image of the points: negate an axis, or exchange left and right.",
        kind=Word(("x", "y", "z", "names", "none")), shown="where the cause is clear", recorded=ALWAYS,
    )  # fmt: skip
    rest: Any = option(
        default=..., like=options.REST, help="What unseen arms and legs do: keep (stay where they were seen), rest, or"
        " a pose file.", kind=RestPose(UNSEEN), metavar="keep|rest|POSE", shown="keep",
    )  # fmt: skip
    fps: float | None = option(
        default=None, help="Frames per second of points.", kind=Number(1e-3), metavar="RATE", unit="1/s",
        shown="the file's, else 30", recorded=ALWAYS,
    )  # fmt: skip
    joints: Mapping[str, str] | None = option(default=None, like=_JOINTS)
    foot_lock: bool = option(default=False, like=FOOT_LOCK)

    doing: ClassVar[str] = "fitting"

    @property
    def _model(self) -> str | None:
        """The model; None for a body built to the proportions of the points."""
        return None if self.body == AUTO else self.body

    def settings(self) -> dict[str, Any]:
        """Return the settings that, with the input, determine the output, as JSON values."""
        from synovia.batch.content import model_settings

        own = super().settings()
        own.pop("foot_lock", None)
        lock = self._lock_settings(own, locks=self.foot_lock)
        reader = {name: own.pop(name) for name in _READER}
        if lock is None and reader != settings_of(ClipReader()):
            own["reader"] = reader
        own |= {"points": own.pop("joints"), "lock": lock, "up": self.up}
        own.pop("body")
        return own | {"model": None if self._model is None else model_settings(self._model)}

    def endings(self) -> Sequence[str]:
        """Return the endings of the files to read from folders: those of point files and of clips."""
        from synovia.clips.pointfile import POINT_ENDINGS

        return [*POINT_ENDINGS, *super().endings()]

    def usual_ending(self) -> str | None:
        """Return the default ending of the output files in a folder."""
        return ".bvh"

    @property
    def _loops_of_clip(self) -> None:
        """Return None: loops belong to the body that follows, not to the clip."""

    def open(self, host: Host) -> None:
        """Load the models; the first file loads the kernels, because its points determine which ones are needed."""
        super().open(host)
        _ = self._skeleton(host)

    def _skeleton(self, host: Host) -> Skeleton | None:
        """Return the skeleton of the model; None for a body built to the proportions of the points."""
        if self._model is not None:
            return self.load_body(self._model, host)
        if self.loops is not None:
            raise UsageError("expected a model with --points: only a model has loops.", "--loops")
        return None

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Fit a clip to points, and return the outcome."""
        from synovia.clips import Fitted, fit_keypoints

        self._check(output, file_of(self._model), host)
        skeleton = self._skeleton(host)
        points = self._points(item.path, skeleton, host)
        with host.bar(self.doing, len(points.positions)) as progress:
            fitted = fit_keypoints(
                points.positions, points.joints, body=skeleton, offsets=points.offsets, confidence=points.confidence,
                meters_per_unit=points.meters_per_unit, name=item.path.stem, preset=self.preset, side=self.side,
                mirror=self.mirror, rest=self.rest, up=self.up, fps=self.fps or points.fps or 30.0,
                threads=host.threads, progress=progress,
            )  # fmt: skip
        fitted = Fitted.made(fitted, fitted.errors, fitted.smoothness, points.notes, fitted.flips)
        locked = self._held(fitted, None, host) if self.foot_lock else None
        made = Made(fitted if locked is None else locked.motion, None, fitted, locked)
        return self._written(made, output, file_of(self._model), None, host)

    def _points(self, path: Path, skeleton: Skeleton | None, host: Host) -> PointFile:
        """Return the points of a point file, or the joints of a clip as points."""
        from synovia.clips.pointfile import holds_points, read_points

        if not holds_points(path):
            return self._joints_of_clip(path, skeleton, host)
        points = read_points(path).chosen(self.joints, path)
        host.note(points.notes)
        return points

    def _joints_of_clip(self, path: Path, skeleton: Skeleton | None, host: Host) -> PointFile:
        """Return the joints of a clip as points, named like the model's joints, or like landmarks without a model.

        Raises:
            InputError: If the model and the clip have no joint in common.
        """
        import numpy as np

        from synovia.clips.landmarks import OF_ROLES
        from synovia.clips.pointfile import PointFile
        from synovia.ik.targets import targets_from

        source, _ = self.read(path, host, INSTEAD)
        pairs = None if self.joints is None else dict(self.joints)
        if skeleton is None and pairs is None:
            names, rows = source.skeleton.frame_names, source.skeleton.role_rows
            pairs = {mark: names[rows[role]] for role, mark in OF_ROLES.items() if role in rows}
        elif skeleton is not None and pairs is None:
            there = dict(zip(source.skeleton.joint_names, source.skeleton.frame_names, strict=True))
            own = zip(skeleton.joint_names, skeleton.frame_names, strict=True)
            pairs = {frame: there[name] for name, frame in own if name in there}
        if not pairs:
            what, hint = "no joint of the clip has the name of a joint of the model", "pair joints: --joints A=B,..."
            raise InputError(what, where=str(path), hint=hint)
        places = targets_from(source, pairs)
        return PointFile(np.stack(list(places.values()), axis=1), list(places), fps=source.fps)

    def figures(self, made: Made) -> dict[str, Any]:
        """Return the distances of the points from the fitted body."""
        from synovia.batch.clips import point_errors

        errors = {} if made.fitted is None else point_errors(made.fitted)
        return {**errors, "worst": errors.get("p99_error")}

    def falls_short(self, figures: Mapping[str, Any]) -> bool:
        """Return whether points are flipped in so many frames that the verdict is "failed"."""
        flipped = "body: flip" in str(figures.get("findings")).split("; ")
        return flipped and figures.get("verdict") == "failed"

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output."""
        del source  # points have no skeleton to draw
        skeleton = self._skeleton(Host())
        return drawn(written_clip(output) if skeleton is None else output_motion(skeleton, output))


_INPUTS: Final = {
    "goals": Option(
        "Keyframes, TOML or JSON; 'synovia schema track' prints the schema. Or a folder or pattern of them.",
        File(as_text=True), ("--goals", "-g"), "TRACK",
    ),
    "follow": Option(
        "Follow joints of another clip, or of each in a folder or pattern.", File(as_text=True), metavar="CLIP"
    ),
    "points": Option(
        "Pass through points over time: .csv, .tsv, .npz, .npy, .trc, .c3d, or the joints of a clip.",
        File(as_text=True), metavar="POINTS",
    ),
}  # fmt: skip
_JOBS: Final[Mapping[str, type[Job]]] = {"goals": Follow, "follow": Follow, "points": Fit}


@dataclass(frozen=True)
class _Verb(Verb):
    """The command: its inputs determine the job."""

    def made(self, values: Mapping[str, Any], sources: Sequence[str], typed: Iterable[str]) -> tuple[Job, list[str]]:
        """Return the job of a command line, and its inputs."""
        left = dict(values)
        inputs = {name: str(left.pop(name)) for name in _INPUTS if name in left}
        locks = bool(left.pop("foot_lock", False))
        _check_inputs(inputs, locks=locks)
        wanted = next(iter(inputs), "")
        kind = _JOBS.get(wanted, HoldFeet)
        self._refuse(kind, wanted, typed)
        body, file = left.pop("body", None), next(iter(sources), None)
        if body is not None and file is not None:
            raise UsageError(f"expected one body, got {file!r} and {body!r}.", "--body")
        if file is None and wanted != "points":
            raise UsageError("expected a model, or --points, which can do without one.", "FILE")
        if inputs and len(sources) > 1:
            raise UsageError(f"expected one file, got {len(sources)}.", "FILE")
        own = {name for name, _, _ in options_of(kind)}
        chosen = {name: value for name, value in left.items() if name in own}
        if kind is Follow:
            chosen |= {"body": file, "foot_lock": locks, "tracks": wanted == "goals"}
        elif kind is Fit:
            chosen |= {"body": file or body, "foot_lock": locks}
        return kind(**chosen), list(inputs.values()) or list(sources)

    def _refuse(self, kind: type[Job], wanted: str, typed: Iterable[str]) -> None:
        """Refuse options that belong to other inputs.

        Raises:
            UsageError: If such an option is given.
        """
        fields = {name: {one: said for one, said, _ in options_of(job)} for name, job in _JOBS.items()}
        del fields["goals"]["joints"]  # the file of keyframes names the joints
        known = {one for one, _, _ in options_of(kind)}
        for name, said, _ in self.options():
            owners = [one for one, own in fields.items() if name in own and not own[name].positional]
            if name in typed and name != "foot_lock" and wanted not in owners and (wanted or name not in known):
                flags = " or ".join(f"--{one}" for one in owners)
                raise UsageError(f"expected {flags} with this option.", flag_of(name, said))


def _doubts(tracked: Tracked) -> list[Finding]:
    """Return jumps and overlaps that tracking reports as findings; misses are counted elsewhere."""
    from synovia.model.finding import Finding

    said = (
        (tracked.jumps, "jump", "the solver jumps to another pose"),
        (tracked.blocked, "overlap", "links come too near on the path to these frames"),
    )
    return [Finding("body", cause, "look", frames, text) for frames, cause, text in said if frames]


def _check_inputs(inputs: Mapping[str, str], *, locks: bool) -> None:
    """Check that there is one source of motion, or none if only ``--foot-lock`` is given.

    Raises:
        UsageError: If there are more or fewer values.
    """
    if len(inputs) > 1:
        raise UsageError("expected one of --goals, --follow and --points, got several.")
    if not inputs and not locks:
        raise UsageError(
            "expected targets (--goals), another clip (--follow) or points (--points) for a model, or a clip whose feet"
            " are held (--foot-lock), got none of them."
        )


VERB: Final = _Verb(
    """Make a clip that follows targets, or hold the feet of a clip.

    For example: synovia animate walk.bvh --foot-lock -o still_feet.bvh
    """,
    (Follow, Fit, HoldFeet),
    clips_argument(
        "[FILE...]",
        "A model; with only --foot-lock, one or many clips: files, folders, patterns. Not needed with --points.",
        required=False,
    ),
    inputs=_INPUTS,
    prints_json=True,
)
