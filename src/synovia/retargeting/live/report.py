"""Statistics of live retargeting: counts, means and extremes, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from synovia.model.finding import LEVELS, Finding, verdict_of
from synovia.model.geometry import Array, Bools
from synovia.model.tables import Ints
from synovia.retargeting.body import NEXT
from synovia.retargeting.judging.findings import forced_by_loops, hurried_by_loops
from synovia.retargeting.pairing import Pairing
from synovia.retargeting.transfer import across
from synovia.text import counted, listed

_EACH: Final = 15.0  # comparisons of directions per second, about
_OFF: Final = (0.35, 1.0)  # radians: mean angle of a limb above which the verdict is "look", and "failed"
# Thresholds above which the verdict is "look"
_LOST: Final = 0.1  # share of ticks without a source
_LIMITED: Final = 0.1  # share of ticks in which a limit holds a joint back
_SLIDE: Final = 0.05  # leg lengths per second: speed of feet that stand
_NEAR: Final = 0.005  # share of the ticks with limbs that are too near from which it is reported
_MISSED: Final = 0.05  # share of ticks with a standing foot in which a foot misses its place
_HIDDEN: Final = 0.05  # share of the poses in which a part is not seen
_SHOWN: Final = 5  # largest number of joints that are named
_PARTS: Final = ("upper_arm", "lower_arm", "upper_leg", "lower_leg")


@dataclass(frozen=True)
class LiveReport:
    """Statistics of a ``LiveRetarget`` since its last reset.

    Args:
        ticks: Number of ticks, including those of learning.
        seconds: Duration of these ticks, seconds.
        learning: Ticks in which the source was learned.
        held: Ticks in which the body held its pose because its source was lost.
        samples: Samples of the source that were accepted.
        dropped: Samples that were left out, by the reason: "doubled", "out of order", "too many", "not finite".
        losses: How often the source was lost.
        limited: Share of the ticks in which a limit held a joint back, by joint, the largest first.
        off: Mean angle between the directions of a limb in source and target, radians, by limb.
        slide: Mean speed of the target's feet over the ground while they stand, legs per second.
        standing: Share of the ticks in which a foot stands.
        missed: Share of these in which a foot misses its place.
        behind: Mean time from the newest sample to the one that was played, seconds; 0 without time stamps.
        trouble: Why the source could not be learned so far; empty if it was learned, or learning has not failed.
        near: Share of the ticks that follow in which limbs were nearer to each other than ``clearance``.
        forced: Largest angle by which loops turned a part so that they close, radians.
        too_fast: Joints that loops moved faster than their velocity limits, and by up to how many times.
        unchecked: Links that are not kept apart although there is a ``clearance``, because their shapes are unknown.
        unseen: Share of the poses in which landmarks of a part were not seen, by the part.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> live = sy.LiveRetarget(body, sy.bundled("humanoid"), rate=30, learn=0)
        >>> pose = live.step(body.rest_pose())
        >>> live.report().verdict
        'good'
    """

    ticks: int
    seconds: float
    learning: int
    held: int
    samples: int
    dropped: Mapping[str, int]
    losses: int
    limited: Mapping[str, float]
    off: Mapping[str, float]
    slide: float
    standing: float
    missed: float
    behind: float
    trouble: str = ""
    near: float = 0.0
    forced: float = 0.0
    too_fast: Mapping[str, float] = field(default_factory=dict[str, float])
    unseen: Mapping[str, float] = field(default_factory=dict[str, float])
    unchecked: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is notable, the worst first."""
        out: list[Finding] = []

        def add(cause: str, text: str, limb: str = "body", level: str = "look") -> None:
            out.append(Finding(limb, cause, level, (), text))

        for limb, angle in self.off.items():
            if angle > _OFF[0]:
                text = f"{np.degrees(angle):.0f}° off its source on average"
                add("direction", text, limb, "failed" if angle > _OFF[1] else "look")
        if self.trouble:
            add("calibration", f"the source could not be learned: {self.trouble}")
        if self.held > _LOST * self.ticks:
            add("lost", f"the source was lost in {100.0 * self.held / self.ticks:.0f} % of the time")
        if worst := [name for name, share in self.limited.items() if share > _LIMITED][:_SHOWN]:
            shares = ", ".join(f"{name} in {100.0 * self.limited[name]:.0f} %" for name in worst)
            add("limits", f"held back by limits: {shares} of the ticks")
        if self.slide > _SLIDE:
            add("slide", f"feet slide at {self.slide:.2g} legs a second while they stand")
        if worst := [part for part, share in self.unseen.items() if share > _HIDDEN]:
            shares = ", ".join(f"{part} in {100.0 * self.unseen[part]:.0f} %" for part in worst)
            add("unseen", f"not seen, so held or at rest: {shares} of the poses")
        loops = forced_by_loops(np.array([self.forced]))
        loops += hurried_by_loops({name: np.array([ratio]) for name, ratio in self.too_fast.items()})
        out += [replace(one, frames=()) for one in loops]
        if self.near > _NEAR:
            add("overlap", f"limbs could not be kept apart in {100.0 * self.near:.0f} % of the ticks")
        if self.unchecked:
            add("overlap", f"links without known shapes are not kept apart: {listed(self.unchecked)}", level="note")
        if self.missed > _MISSED:
            add("missed", f"feet miss their contacts in {100.0 * self.missed:.0f} % of the time they stand")
        return tuple(sorted(out, key=lambda one: -LEVELS.index(one.level)))

    @property
    def verdict(self) -> str:
        """``"good"``, ``"look"`` (look at it before you use it) or ``"failed"``; "look" before anything has passed."""
        found = verdict_of(self.findings)
        return "look" if found == "good" and self.ticks <= self.learning + self.held else found

    def __str__(self) -> str:
        """Return verdict, findings and figures as text."""
        lines = [f"verdict: {self.verdict}", *(f"  {line}" for line in self.findings)]
        lines.append(f"{counted(self.ticks, 'tick')} in {self.seconds:.1f} s, {self.behind * 1e3:.0f} ms behind")
        lines.append(f"source lost {counted(self.losses, 'time')}, held for {counted(self.held, 'tick')}")
        if self.dropped:
            lines.append("samples left out: " + ", ".join(f"{n} {why}" for why, n in self.dropped.items()))
        if self.off:
            lines.append("off the source: " + ", ".join(
                f"{limb.replace('_', ' ')} {np.degrees(angle):.1f}°" for limb, angle in self.off.items()
            ))  # fmt: skip
        if self.standing:
            lines.append(f"feet stand in {100.0 * self.standing:.0f} % of the ticks, slide {self.slide:.2g} legs/s")
        return "\n".join(lines)


class Meter:
    """Accumulates the statistics of live retargeting.

    Args:
        pairing: The two bodies.
        rate: Ticks per second.
    """

    def __init__(self, pairing: Pairing, rate: float) -> None:
        """Find the limbs that both bodies have."""
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
        self._rows = [
            np.array([[body.roles[a], body.roles[b]] for a, b in limbs], np.int64).reshape(-1, 2) for body in bodies
        ]
        self._across = across(pairing.source, pairing.target)
        self._clear()

    def _clear(self) -> None:
        """Reset all sums."""
        self._off = np.zeros(len(self._names))
        self._compared = self._moved = self._stood = self._missed = 0
        self._way = 0.0
        self._limited: Counter[int] = Counter()
        self._feet: tuple[Array, Bools] | None = None

    def compare(self, tick: int, source: Array, target: Array) -> None:
        """Compare the directions of limbs in world frames (n, 12) of both bodies, about 15 times a second."""
        if tick % self._each or not self._names:
            return
        a, b = (
            frames[rows[:, 1], 9:] - frames[rows[:, 0], 9:]
            for frames, rows in zip((source, target), self._rows, strict=True)
        )
        a = a @ self._across.T
        size = np.sqrt(np.sum(a * a, axis=1) * np.sum(b * b, axis=1))
        cosine = np.sum(a * b, axis=1) / np.maximum(size, 1e-12)
        self._off += np.arccos(np.clip(cosine, -1.0, 1.0))
        self._compared += 1

    def stand(self, ankles: Array, stands: Bools, *, missed: bool) -> None:
        """Add the positions of ankles (feet, 3), which of them stand, and whether one misses its place."""
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
        """Count the axes that a limit holds back."""
        self._limited.update(np.flatnonzero(reasons).tolist())

    def pause(self) -> None:
        """Discard the last positions of the feet, because the body jumps."""
        self._feet = None

    def figures(self, ticks: int, joints: Ints, names: Sequence[str]) -> dict[str, object]:
        """Return the figures of a report.

        Args:
            ticks: Number of ticks in which the body followed or held.
            joints: Joint of each axis, rows of the skeleton.
            names: Names of the joints.
        """
        shares: dict[str, float] = {}
        for axis, count in self._limited.items():
            name = names[int(joints[axis])]
            shares[name] = max(shares.get(name, 0.0), count / max(ticks, 1))
        return {
            "limited": dict(sorted(shares.items(), key=lambda item: -item[1])),
            "off": dict(zip(self._names, (self._off / max(self._compared, 1)).tolist(), strict=True)),
            "slide": self._way * self._rate / self._moved / self._leg if self._moved else 0.0,
            "standing": self._stood / max(ticks, 1),
            "missed": self._missed / max(self._stood, 1),
        }
