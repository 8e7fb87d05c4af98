"""Judge a retargeted hand by thresholds on its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.ik.solution import length_text
from synovia.model.anatomy.feet import frames_text
from synovia.model.anatomy.hands.hand import Hand
from synovia.model.anatomy.names import SIDES
from synovia.model.finding import LEVELS, Finding
from synovia.model.geometry import Array
from synovia.model.limits.interval import Interval
from synovia.model.motion import Motion
from synovia.retargeting.hands.recording import AWAY

OFF: Final = (0.1, 0.3)  # hand lengths: mean distance of tips from their targets, for "look" and "failed"
_FINGER_OFF: Final = 0.15  # hand lengths: mean distance of one finger's tip from its target, for "look"
TOUCH: Final = 0.002  # metres: tips that are nearer touch
DEEP: Final = 1e-3  # metres: smaller overlaps of surfaces are not reported
_NEARLY: Final = 0.01  # metres: tips that are nearer seem to pinch
_AT_LIMIT: Final = 0.5  # fraction of frames at a limit above which a note is given
_NEAR_LIMIT: Final = 1e-4  # radians: a joint that is nearer to a limit is at the limit
_NAMED: Final = 3  # largest number of joints that a note lists
_FASTER: Final = 1.001  # a joint is reported above this factor of the file's velocity limit


@dataclass(frozen=True, slots=True, eq=False)
class HandFigures:
    """The figures by which a retargeted hand is judged.

    Attributes:
        motion: The motion.
        hand: The hand.
        fingers: Names of the fingers that follow, (F).
        errors: Distances of the tips from their targets, (T, F), length units.
        trust: Weight of each finger, (T, F); 0 where it is not seen.
        reach: Length of the hand, length units.
        gaps: Distances of the tips from the thumb's tip, (T, F), length units.
        apart: Distances of the recorded tips from the thumb's tip, (T, F), metres.
        pinches: For each pinch: finger, first frame, frame after the last, largest distance of the tips, and whether a
            pose that closes it is known (None if no other pose was tried).
        others: The side of the recorded hand, and the frames whose points look like the other side.
        near: Pairs of links that are too near, nearest first: the pair, distance minus required distance (negative),
            and the frames.
    """

    motion: Motion
    hand: Hand
    fingers: Sequence[str]
    errors: Array
    trust: Array
    reach: float
    gaps: Array
    apart: Array
    pinches: Sequence[tuple[str, int, int, float, bool | None]]
    others: tuple[str, tuple[int, ...]]
    near: Sequence[tuple[tuple[str | int, str | int], float, tuple[int, ...]]] = ()


def findings_of(figures: HandFigures) -> tuple[Finding, ...]:
    """Return the findings about a hand, the worst first."""
    found = [
        *_tips(figures), *_pinches(figures), *_false_pinches(figures), *_sides(figures), *_unseen(figures),
        *_limits(figures), *_followers(figures), *_velocities(figures), *_overlaps(figures),
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: -LEVELS.index(one.level)))


def _unit(figures: HandFigures) -> float | None:
    """Return the length unit of the skeleton in metres; None if unknown."""
    return figures.motion.skeleton.meters_per_unit


def _tips(figures: HandFigures) -> list[Finding]:
    """Return findings about tips that are far from their targets."""
    seen = figures.trust > 0.0
    mean = float(figures.errors[seen].mean()) if seen.any() else 0.0
    level = "failed" if mean > OFF[1] * figures.reach else "look" if mean > OFF[0] * figures.reach else ""
    if level:
        share = 100.0 * mean / figures.reach
        text = f"tips are {length_text(mean, _unit(figures))} from their targets on average, {share:.0f} % of the hand"
        return [Finding("body", "tips", level, (), text)]
    out = list[Finding]()
    for k, name in enumerate(figures.fingers):
        own = figures.errors[seen[:, k], k]
        if len(own) and float(own.mean()) > _FINGER_OFF * figures.reach:
            text = f"its tip is {length_text(float(own.mean()), _unit(figures))} from its target on average"
            out.append(Finding(name, "tips", "look", (), text))
    return out


def _pinches(figures: HandFigures) -> list[Finding]:
    """Return a finding for each finger that has pinches which the hand does not close."""
    out, metre = list[Finding](), 1.0 / (_unit(figures) or 1.0)
    for name in figures.fingers[1:]:
        mine = [one for one in figures.pinches if one[0] == name]
        missed = [one for one in mine if one[3] > TOUCH * metre]
        if missed:
            frames = tuple(k for one in missed for k in range(one[1], one[2]))
            far = length_text(max(one[3] for one in missed), _unit(figures))
            text = f"{len(missed)} of {len(mine)} pinches with the thumb did not close: tips stay up to {far} apart"
            if any(one[4] for one in missed):
                text += "; poses that close them exist, but do not fit the frames around them"
            elif all(one[4] is None for one in missed):
                text += "; other poses were not tried"
            else:
                text += "; no other pose that closes them was found"
            out.append(Finding(name, "pinch", "look", frames, text))
    return out


def false_pinches(gaps: Array, apart: Array, metre: float) -> NDArray[np.bool_]:
    """Return a mask of where tips seem to touch although the recorded tips are apart, (T, F).

    Args:
        gaps: Distances of the tips from the thumb's tip, (T, F), length units.
        apart: Distances of the recorded tips from the thumb's tip, (T, F), metres.
        metre: Length units per metre.
    """
    return (gaps < _NEARLY * metre) & (apart > AWAY)


def _false_pinches(figures: HandFigures) -> list[Finding]:
    """Return a finding for each finger that touches the thumb while the recorded finger is away."""
    out, wrongs = list[Finding](), false_pinches(figures.gaps, figures.apart, 1.0 / (_unit(figures) or 1.0))
    for k, name in enumerate(figures.fingers):
        wrong = np.flatnonzero(wrongs[:, k])
        if k > 0 and len(wrong):
            text = "its tip touches the thumb while the recorded one is away"
            out.append(Finding(name, "false pinch", "look", tuple(wrong.tolist()), text))
    return out


def _sides(figures: HandFigures) -> list[Finding]:
    """Return a finding about frames whose points look like a hand of the other side."""
    side, frames = figures.others
    if not frames:
        return []
    other = SIDES[0] if side != SIDES[0] else SIDES[1]
    text = (
        f"the fingers bend as those of a {other} hand, so the points may be mirrored: the hand follows them as they are"
    )
    return [Finding("body", "side", "look", frames, text)]


def _unseen(figures: HandFigures) -> list[Finding]:
    """Return a finding about frames in which fingers were not seen, so that their positions are guesses."""
    frames = np.flatnonzero((figures.trust <= 0.0).any(1))
    if not len(frames):
        return []
    share = len(frames) / len(figures.trust)
    level = "look" if share > 0.1 else "note"
    text = f"fingers not seen in {100.0 * share:.0f} % of the frames, where they are interpolated"
    return [Finding("body", "gap", level, tuple(frames.tolist()), text)]


def _limits(figures: HandFigures) -> list[Finding]:
    """Return notes on joints that are often at a limit."""
    skeleton, q, out = figures.motion.skeleton, figures.motion.q, list[Finding]()
    for name in figures.fingers:
        finger = figures.hand.finger(name)
        for key in finger.joints if finger is not None else ():
            row = skeleton.value_index(key)
            limit = skeleton.joints[row].limit
            if isinstance(limit, Interval) and key not in figures.hand.coupled:
                values = q[:, skeleton.q_slice(row).start]
                share = float(((values <= limit.lower + _NEAR_LIMIT) | (values >= limit.upper - _NEAR_LIMIT)).mean())
                if share >= _AT_LIMIT:
                    text = f"{key} is at a limit in {100.0 * share:.0f} % of the frames"
                    out.append(Finding(name, "limits", "note", (), text))
    return out


def _followers(figures: HandFigures) -> list[Finding]:
    """Return a note on mimic joints that exceed their own limits, which are not enforced."""
    skeleton, q = figures.motion.skeleton, figures.motion.q
    beyond, frames = list[tuple[float, str, str]](), set[int]()
    for row in skeleton.leader_rows:
        limit = skeleton.joints[row].limit
        if isinstance(limit, Interval):
            values = q[:, skeleton.q_slice(row).start]
            over = np.maximum(values - limit.upper, limit.lower - values)
            if float(over.max()) > _NEAR_LIMIT:
                worst, key = float(values[int(np.argmax(over))]), str(skeleton.joint_keys[row])
                beyond.append(
                    (float(over.max()), key, f"{key} at {worst:.4g}, limits {limit.lower:g} to {limit.upper:g}")
                )
                frames |= set(np.flatnonzero(over > _NEAR_LIMIT).tolist())
    if not beyond:
        return []
    beyond.sort(reverse=True)
    names = "; ".join(one[2] for one in beyond[:_NAMED]) + (" and others" if len(beyond) > _NAMED else "")
    text = (
        f"mimic joints leave the limits of their own, which are not enforced: {names};"
        f" skeleton.with_limits({{{beyond[0][1]!r}: (low, high)}}) enforces them"
    )
    return [Finding("body", "limits", "note", tuple(sorted(frames)), text)]


def _overlaps(figures: HandFigures) -> list[Finding]:
    """Return a finding about surfaces that could not be kept apart."""
    deep = [one for one in figures.near if -one[1] > DEEP / (_unit(figures) or 1.0)]
    if not deep:
        return []
    (a, b), gap, _ = deep[0]
    frames = tuple(sorted({frame for one in deep for frame in one[2]}))
    text = f"{a} and {b} could not be kept apart: they are {length_text(-gap, _unit(figures))} too near"
    if len(deep) > 1:
        text += f", and {len(deep) - 1} other pairs less"
    return [Finding("body", "overlap", "look", frames, text)]


def _velocities(figures: HandFigures) -> list[Finding]:
    """Return a note on joints that exceed the velocity limits of their file."""
    skeleton = figures.motion.skeleton
    fast, frames = list[str](), set[int]()
    for row, joint in enumerate(skeleton.joints):
        if joint.velocity is None or joint.kind.q_size != 1:
            continue
        speeds = np.abs(np.diff(figures.motion.q[:, skeleton.q_slice(row).start])) * figures.motion.fps
        over = np.flatnonzero(speeds > _FASTER * joint.velocity)
        if len(over):
            fast.append(str(skeleton.joint_keys[row]))
            frames |= {int(k) + 1 for k in over}
    if not fast:
        return []
    text = (
        f"{', '.join(fast[:4])}{' and others' if len(fast) > 4 else ''} turn faster than their file allows in"
        f" {frames_text(sorted(frames))}; velocity='file' keeps these limits"
    )
    return [Finding("body", "velocity", "note", (), text)]
