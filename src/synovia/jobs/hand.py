"""``retarget`` for recordings of a hand: retarget 21 points to a hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from synovia import options
from synovia.errors import InputError
from synovia.jobs.base import Host, Outcome
from synovia.jobs.clips import NO_FILE, Roles, Saved, body_of, drawn, file_of, output_motion, written_endings
from synovia.jobs.job import Job, format_option, output_option
from synovia.jobs.options import ALWAYS, Number, Option, Parsed, Word, argument, described, option, shared
from synovia.jobs.shared import TARGET, velocities
from synovia.text import Report

if TYPE_CHECKING:
    from synovia.batch.inputs import Item
    from synovia.batch.work import Picture
    from synovia.model import Skeleton
    from synovia.retargeting.hands import RetargetedHand

SCHEMA: Final = "synovia.hand/1"
_SIDES: Final = ("left", "right")
_NO_CLEARANCE: Final = "none"


WRITTEN: Final[Mapping[str, Option]] = {
    "output": output_option("Write .bvh, .fbx, .npz, .csv, or .glb (a copy of DST with one more clip); or a folder."),
    "format": format_option(written_endings),
}
SPEED: Final = shared(
    options.VELOCITY, Parsed(partial(velocities, shares=True)), metavar="V|A=V,B=V|N%|file", recorded=ALWAYS,
    help="Largest speed of DST's hinges, for all or by joint; N%: share of the limits in its file; file: these limits.",
    unit="rad/s", shown="those of DST's file; 15 for a recorded hand",
)  # fmt: skip


def _clearance(text: str) -> float | str:
    """Parse a distance, or the word ``none``."""
    if text == _NO_CLEARANCE:
        return text
    try:
        return Number().of(text)
    except InputError as error:
        raise InputError("", value=text, expected=f"{error.expected}, or {_NO_CLEARANCE}") from error


APART: Final = Parsed(_clearance)


def distance_of(clearance: Any) -> float | None:
    """Return the distance of the option ``clearance``; None for the word ``none``."""
    return None if clearance == _NO_CLEARANCE else clearance


@described
class RetargetHand(Saved, Roles, Job):
    """Retarget recordings of a hand, 21 points over time, to any hand, and judge the results.

    >>> import synovia as sy
    >>> carry = sy.jobs.RetargetHand("allegro.urdf")
    >>> carry("hand.npz", "hand.csv")  # doctest: +SKIP
    """

    target: str = argument(like=TARGET, recorded=ALWAYS)
    side: str | None = option(default=..., like=options.SIDE, kind=Word(_SIDES), metavar="SIDE", recorded=ALWAYS)
    source_side: str | None = option(
        default=..., like=options.SOURCE_SIDE, kind=Word(_SIDES), metavar="SIDE", recorded=ALWAYS
    )
    scale: float | None = option(
        default=..., like=options.SCALE, kind=Number(0, above=True), metavar="FACTOR", recorded=ALWAYS
    )
    origin: str | None = option(default=..., like=options.ORIGIN, metavar="JOINT", completes="joints", recorded=ALWAYS)
    fps: float | None = option(
        default=None, help="With recordings of a hand: frames per second, instead of those of the file.",
        kind=Number(0, above=True), metavar="N", shown="those of the file, else 30", recorded=ALWAYS,
    )  # fmt: skip
    velocity: Any = option(default=..., like=SPEED)
    clearance: Any = option(default=..., like=options.FINGERS_APART, kind=APART, metavar="DISTANCE|none")
    shapes: bool = option(default=..., like=options.FITTED)

    name: ClassVar[str] = "retarget"
    doing: ClassVar[str] = "retargeting"
    how: ClassVar[Mapping[str, Option]] = WRITTEN

    @cached_property
    def _skeleton(self) -> Skeleton:
        """Skeleton of the model, with shapes if the option asks for them."""
        from synovia.covers import with_shapes

        body = body_of(self.target, Host(), self.roles, self.loops)
        return with_shapes(body) if self.shapes else body

    def open(self, host: Host) -> None:
        """Load the model, and report its notes."""
        host.note_model(self._skeleton.notes)

    def endings(self) -> Sequence[str]:
        """Return the endings of the files to read from folders."""
        from synovia.clips.handfile import HAND_ENDINGS

        return HAND_ENDINGS

    def usual_ending(self) -> str | None:
        """Return the default ending of the output files in a folder."""
        return ".npz"

    def do(self, item: Item, output: Path | None, host: Host) -> Outcome:
        """Retarget a recording, and return the outcome."""
        from synovia.clips.handfile import FPS, read_hand
        from synovia.io.save import check_target
        from synovia.retargeting.hands import retarget_hand

        if output is not None:
            check_target(output, file_of(self.target), force=host.force)
        self.open(host)
        found = read_hand(Path(item.path))
        host.note(found.notes)
        fps = self.fps or found.fps
        if fps is None:
            host.say(
                f"the file has no frame rate: {FPS:g} frames per second are assumed; --fps sets it", str(item.path)
            )
        answer = retarget_hand(
            found.points, self._skeleton, fps=fps or FPS, side=self.side, source_side=self.source_side or found.side,
            scale=self.scale, frame="palm" if self.origin is None else "given", origin=self.origin,
            confidence=found.confidence,
            velocity=self.velocity,
            clearance=distance_of(self.clearance), name=Path(item.path).stem,
        )  # fmt: skip
        check = None if output is None else self.save(answer.motion, output, file_of(self.target), host)
        figures = _figures(answer)
        return Outcome(
            answer, figures, check=check, falls_short=self.falls_short(figures),
            files=[] if output is None else [output], notes=answer.notes,
            warnings=[str(one) for one in answer.findings if one.level != "note"], text_warns=True,
            reporter=lambda: Report([found := answer.report()], {"schema": SCHEMA, **found.facts}),
            hint="" if output is not None else NO_FILE,
        )  # fmt: skip

    def falls_short(self, figures: Mapping[str, Any]) -> bool:
        """Return whether the verdict is "failed"."""
        return figures.get("verdict") == "failed"

    def picture(self, output: Path, source: Path | None) -> Picture | None:
        """Return a picture of an output."""
        del source
        return drawn(output_motion(self._skeleton, output), None)


def _figures(answer: RetargetedHand) -> dict[str, Any]:
    """Return the figures of a result, as in a row of the ledger."""
    warnings = [one for one in answer.findings if one.level != "note"]
    return {
        "frames": len(answer.motion), "worst": float(answer.errors.max()), "scale": float(answer.scale),
        "verdict": answer.verdict, "findings": "; ".join(f"{one.limb}: {one.cause}" for one in warnings),
        "bad_frames": len({frame for one in warnings for frame in one.frames}),
    }  # fmt: skip
