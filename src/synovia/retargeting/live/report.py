"""Statistics of live retargeting: counts, means and extremes, in constant memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from synovia.model.finding import LEVELS, Finding, verdict_of
from synovia.model.geometry import Array, Bools
from synovia.model.tables import Ints
from synovia.retargeting.body import NEXT
from synovia.retargeting.judging.findings import forced_by_loops, hurried_by_loops
from synovia.retargeting.pairing import Pairing
from synovia.retargeting.transfer import across
from synovia.text import Report, counted, listed, plain

_EACH: Final = 15.0  # comparisons of directions per second, approximately
_OFF: Final = (20.0, 57.3)  # degrees: mean angle of a limb, above which the verdict is "look", and "failed"
# thresholds above which the verdict is "look"
_LOST: Final = 0.1  # share of ticks without a source
_LIMITED: Final = 0.1  # share of ticks in which a limit holds a joint back
_SLIDE: Final = 0.05  # leg lengths per second: speed of planted feet
_NEAR: Final = 0.005  # share of ticks in which limbs are too near
_MISSED: Final = 0.05  # share of the ticks with planted feet in which a foot misses its place
_HIDDEN: Final = 0.05  # share of poses in which a part is hidden
_SHOWN: Final = 5  # largest number of joints that are listed
_PARTS: Final = ("upper_arm", "lower_arm", "upper_leg", "lower_leg")


def report_of(figures: Mapping[str, Any]) -> Report:
    """Return the report on live retargeting: verdict, findings and figures.

    Args:
        figures: The figures that ``LiveRetarget.report`` describes.
    """
    findings = sorted(_findings(figures), key=lambda one: -LEVELS.index(one.level))
    verdict, ticks, held = verdict_of(findings), figures["ticks"], figures["held"]
    if verdict == "good" and ticks <= figures["learning"] + held:
        verdict = "look"  # the body has followed nothing yet
    lines = [
        f"verdict: {verdict}",
        *(f"  {line}" for line in findings),
        f"{counted(ticks, 'tick')} in {figures['seconds']:.1f} s, {figures['behind'] * 1e3:.0f} ms behind",
        f"source lost {counted(figures['losses'], 'time')}, held for {counted(held, 'tick')}",
    ]
    if dropped := figures["samples_left_out"]:
        lines.append("samples left out: " + ", ".join(f"{n} {why}" for why, n in dropped.items()))
    if off := figures["off_deg"]:
        shares = (f"{limb.replace('_', ' ')} {angle:.1f}°" for limb, angle in off.items())
        lines.append("off the source: " + ", ".join(shares))
    if standing := figures["standing"]:
        lines.append(f"feet stand in {100.0 * standing:.0f} % of the ticks, slide {figures['slide']:.2g} legs/s")
    return Report(lines, {"verdict": verdict, "findings": plain(findings), **figures})


def _findings(figures: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield findings about everything that is notable."""

    def found(cause: str, text: str, limb: str = "body", level: str = "look") -> Finding:
        return Finding(limb, cause, level, (), text)

    def shares(of: Mapping[str, float], least: float, most: int | None = None) -> str:
        above = [f"{name} in {100.0 * share:.0f} %" for name, share in of.items() if share > least]
        return ", ".join(above[:most])

    for limb, angle in figures["off_deg"].items():
        if angle > _OFF[0]:
            yield found(
                "direction", f"{angle:.0f}° off its source on average", limb, "failed" if angle > _OFF[1] else "look"
            )
    if trouble := figures["trouble"]:
        yield found("calibration", f"the source could not be learned: {trouble}")
    if (held := figures["held"]) > _LOST * figures["ticks"]:
        yield found("lost", f"the source was lost in {100.0 * held / figures['ticks']:.0f} % of the time")
    if limited := shares(figures["limited"], _LIMITED, _SHOWN):
        yield found("limits", f"held back by limits: {limited} of the ticks")
    if (slide := figures["slide"]) > _SLIDE:
        yield found("slide", f"feet slide at {slide:.2g} legs a second while they stand")
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


class Meter:
    """Accumulates the statistics of live retargeting.

    Args:
        pairing: The two bodies.
        rate: Ticks per second.
    """

    def __init__(self, pairing: Pairing, rate: float) -> None:
        """Find the limbs that both bodies have, with their rows."""
        self._up, self._leg, self._rate = pairing.target.basis[:, 1], pairing.target.leg, rate
        self._each = max(1, round(rate / _EACH))
        bodies = pairing.source, pairing.target
        limbs = [
            (f"{side}_{part}", f"{side}_{NEXT[part]}")
            for side in ("left", "right")
            for part in _PARTS
            if all(
                f"{side}_{one}" in body.roles for one in (part, NEXT[part]) for body in (pairing.source, pairing.target)
            )
        ]
        limbs = [pair for pair in limbs if pair[0] in pairing.carried]
        if all(role in body.roles for role in ("hips", "neck") for body in bodies):
            limbs.append(("hips", "neck"))
        self._names = [a if a != "hips" else "trunk" for a, _ in limbs]
        self._limbs = [re.sub("_(upper|lower)_", "_", name) for name in self._names]
        self._rows = [
            np.array([[body.roles[a], body.roles[b]] for a, b in limbs], np.int64).reshape(-1, 2) for body in bodies
        ]
        self._across = across(pairing.source, pairing.target)
        self._clear()

    def _clear(self) -> None:
        """Reset all sums."""
        self._off, self._compared = np.zeros(len(self._names)), np.zeros(len(self._names))
        self._moved = self._stood = self._missed = 0
        self._way = 0.0
        self._limited: Counter[int] = Counter()
        self._feet: tuple[Array, Bools] | None = None

    def compare(self, tick: int, source: Array, target: Array, gone: Collection[str] = ()) -> None:
        """Compare the directions of limbs, about 15 times a second, for world frames (n, 12) of both bodies.

        Limbs in ``gone``, such as ``"left_leg"``, are left out.
        """
        if tick % self._each or not self._names:
            return
        a, b = (
            frames[rows[:, 1], 9:] - frames[rows[:, 0], 9:]
            for frames, rows in zip((source, target), self._rows, strict=True)
        )
        a = a @ self._across.T
        size = np.sqrt(np.sum(a * a, axis=1) * np.sum(b * b, axis=1))
        cosine = np.sum(a * b, axis=1) / np.maximum(size, 1e-12)
        fine = np.array([limb not in gone for limb in self._limbs])
        self._off += fine * np.arccos(np.clip(cosine, -1.0, 1.0))
        self._compared += fine

    def stand(self, ankles: Array, stands: Bools, *, missed: bool) -> None:
        """Add a tick: positions of ankles (feet, 3), mask of planted feet, and whether one of them misses its place."""
        if self._feet is not None:
            both = self._feet[1] & stands
            if both.any():
                way = (ankles - self._feet[0])[both]
                way = way - (way @ self._up)[:, None] * self._up
                self._way += float(np.sqrt(np.sum(way * way, axis=1)).sum())
                self._moved += int(both.sum())
        if stands.any():
            self._stood += 1
            self._missed += missed
        self._feet = ankles, stands

    def limit(self, reasons: Array) -> None:
        """Count the axes of the body that a limit holds back in a tick."""
        self._limited.update(np.flatnonzero(reasons).tolist())

    def pause(self) -> None:
        """Discard the last positions of the feet, because the body jumps or blends to another pose."""
        self._feet = None

    def figures(self, ticks: int, joints: Ints, names: Sequence[str]) -> dict[str, object]:
        """Return the figures for the report.

        Args:
            ticks: Number of ticks in which the body followed or held.
            joints: Row of the joint of each axis.
            names: Names of the joints.
        """
        shares: dict[str, float] = {}
        for axis, count in self._limited.items():
            name = names[int(joints[axis])]
            shares[name] = max(shares.get(name, 0.0), count / max(ticks, 1))
        off = np.degrees(self._off / np.maximum(self._compared, 1))
        return {
            "limited": dict(sorted(shares.items(), key=lambda item: -item[1])),
            "off_deg": dict(zip(self._names, off.tolist(), strict=True)),
            "slide": self._way * self._rate / self._moved / self._leg if self._moved else 0.0,
            "standing": self._stood / max(ticks, 1),
            "missed": self._missed / max(self._stood, 1),
        }
