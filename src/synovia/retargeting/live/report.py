"""The judge of live bodies: frames are judged as clips are, and sessions by what happened to their ticks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from synovia.model.finding import Finding, verdict_of
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.shapes.world import World
from synovia.retargeting.judging import Judgement
from synovia.retargeting.judging.findings import find, forced_by_loops, hurried_by_loops, uncertain_rests
from synovia.retargeting.judging.measure import Figures, Live
from synovia.retargeting.pairing import Pairing
from synovia.text import Report, counted, listed, plain

_BLOCK: Final = 4.0  # seconds of a block of frames
_BLOCKS: Final = 16  # largest number of blocks
# thresholds above which the verdict is "look"
_LOST: Final = 0.1  # share of ticks without a source
_LIMITED: Final = 0.1  # share of ticks in which a limit holds a joint back
_NEAR: Final = 0.005  # share of ticks in which limbs are too near
_MISSED: Final = 0.05  # share of the ticks with planted feet in which a foot misses its place
_HIDDEN: Final = 0.05  # share of poses in which a part is hidden
_SHOWN: Final = 5  # largest number of joints that are listed


def report_of(figures: Mapping[str, Any], judgement: Judgement | None) -> Report:
    """Return the report on live retargeting: verdict, findings and figures.

    Args:
        figures: The figures that ``LiveRetarget.report`` describes.
        judgement: The judgement of the frames; None if the body has followed nothing.
    """
    found, ticks, held = list(_findings(figures)), figures["ticks"], figures["held"]
    if judgement is None:
        found.append(Finding("body", "lost", "look", (), "the body has followed no pose"))
        judged = Report(
            [f"verdict: {verdict_of(found)}", *(f"  {one}" for one in found)],
            {"verdict": verdict_of(found), "findings": plain(found)},
        )
    else:
        judged = judgement.with_findings(found).report()
    lines = [
        judged,
        f"{counted(ticks, 'tick')} in {figures['seconds']:.1f} s, {figures['behind'] * 1e3:.0f} ms behind",
        f"source lost {counted(figures['losses'], 'time')}, held for {counted(held, 'tick')}",
    ]
    if dropped := figures["samples_left_out"]:
        lines.append("samples left out: " + ", ".join(f"{n} {why}" for why, n in dropped.items()))
    if standing := figures["standing"]:
        lines.append(f"feet stand in {100.0 * standing:.0f} % of the ticks")
    return Report(lines, {**figures, **judged.facts})


def _findings(figures: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield findings about everything that is notable."""

    def found(cause: str, text: str, level: str = "look") -> Finding:
        return Finding("body", cause, level, (), text)

    def shares(of: Mapping[str, float], least: float, most: int | None = None) -> str:
        above = [f"{name} in {100.0 * share:.0f} %" for name, share in of.items() if share > least]
        return ", ".join(above[:most])

    if trouble := figures["trouble"]:
        yield found("calibration", f"the source could not be learned: {trouble}")
    if (held := figures["held"]) > _LOST * figures["ticks"]:
        yield found("lost", f"the source was lost in {100.0 * held / figures['ticks']:.0f} % of the time")
    if limited := shares(figures["limited"], _LIMITED, _SHOWN):
        yield found("limits", f"held back by limits: {limited} of the ticks")
    if unseen := shares(figures["unseen"], _HIDDEN):
        yield found("unseen", f"not seen, so held or at rest: {unseen} of the poses")
    loops = forced_by_loops(np.array([figures["turned_by_loops"]]))
    loops += hurried_by_loops({name: np.array([ratio]) for name, ratio in figures["too_fast"].items()})
    yield from (replace(one, frames=()) for one in loops)
    if (near := figures["near"]) > _NEAR:
        yield found("overlap", f"limbs could not be kept apart in {100.0 * near:.0f} % of the ticks")
    if unchecked := figures["unchecked"]:
        yield found("overlap", f"links without known shapes are not kept apart: {listed(unchecked)}", level="note")
    if (missed := figures["missed"]) > _MISSED:
        yield found("missed", f"feet miss their contacts in {100.0 * missed:.0f} % of the time they stand")


@dataclass(slots=True)
class _Block:
    """Consecutive frames of a live body: number of the block, joint values of source and body, ticks, unseen limbs."""

    index: int
    goes_on: bool  # whether its first frame continues the last frame of the block before it
    values: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]])
    ticks: list[int] = field(default_factory=list[int])
    unseen: list[frozenset[str]] = field(default_factory=list[frozenset[str]])


class Judge:
    """Judges the frames of a live body as they pass; the judgement at the end is that of ``judge``.

    The first minute is judged whole. After it, blocks of 4 seconds are kept, at most 16, that are spread evenly over
    the session, so that memory and the time of a judgement are bounded.

    Args:
        pairing: The two bodies.
        rate: Frames per second.
        world: What the feet stand on; None for a level floor.
    """

    def __init__(self, pairing: Pairing, rate: float, world: World | None) -> None:
        """Start without frames."""
        self._pairing, self._rate, self._world = pairing, rate, world
        self._size, self._apart = max(2, round(_BLOCK * rate)), 1
        self._blocks, self._next = list[_Block](), _Block(0, goes_on=False)
        self._found: tuple[int, Judgement] | None = None

    def feed(self, tick: int, source: Array, q: Array, unseen: frozenset[str]) -> None:
        """Add a frame: its tick, joint values of the source and of the body, and limbs that are not seen."""
        block = self._next
        if len(block.ticks) == self._size:
            block = self._begin(goes_on=True)
        block.values.append((source, q))
        block.ticks.append(tick)
        block.unseen.append(unseen)

    def pause(self) -> None:
        """Let the next frame begin a new piece, because the body jumps or moves to another pose."""
        if self._next.ticks:
            self._begin(goes_on=False)
        self._next.goes_on = False

    def _begin(self, *, goes_on: bool) -> _Block:
        """Keep the last block, if it is one of those that are kept, and begin the next one."""
        last = self._next
        if last.index % self._apart == 0:
            self._blocks = [*self._blocks, last]
        if len(self._blocks) > _BLOCKS:
            self._apart *= 2
            self._blocks = [block for block in self._blocks if block.index % self._apart == 0]
        self._next = _Block(last.index + 1, goes_on)
        return self._next

    def sum(self) -> Judgement | None:
        """Return the judgement of the frames that are kept; None without any. Frames are named by their ticks."""
        blocks = [(block, len(block.unseen)) for block in (*self._blocks, self._next) if block.unseen]
        if not blocks:
            return None
        ticks = np.array([tick for block, count in blocks for tick in block.ticks[:count]])
        if self._found is not None and self._found[0] == ticks[-1]:
            return self._found[1]
        source, target = self._pairing.source, self._pairing.target
        values = [pair for block, count in blocks for pair in block.values[:count]]
        clips = [
            Motion(body.skeleton, np.array(q), self._rate, name=body.skeleton.name)
            for body, q in zip((source, target), zip(*values, strict=True), strict=True)
        ]
        shared = {
            role: (row, target.roles[role]) for role, row in source.roles.items() if role in self._pairing.carried
        }
        unseen = [limbs for block, count in blocks for limbs in block.unseen[:count]]
        ends = np.cumsum([count for _, count in blocks]).tolist()
        breaks = [
            end
            for end, (one, _), (two, _) in zip(ends, blocks, blocks[1:], strict=False)
            if not two.goes_on or two.index != one.index + 1
        ]
        hidden = {limb: np.array([limb in one for one in unseen]) for limb in frozenset[str]().union(*set(unseen))}
        ups = source.basis[:, 1], target.basis[:, 1]
        figures = Figures(clips[1], clips[0], shared, ups, self._world, Live(breaks, ticks, hidden))
        found = [replace(one, frames=tuple(ticks[list(one.frames)].tolist())) for one in find(figures)]
        pair = self._pairing
        found += uncertain_rests(found, pair.stance.rest, pair.target_rest if pair.moves else None)
        self._found = int(ticks[-1]), Judgement(figures, ()).with_findings(found)
        return self._found[1]
