"""Loops: clips whose end continues in their beginning."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.errors import UnsupportedError
from synovia.model import Skeleton
from synovia.model.anatomy.contacts import find_contacts
from synovia.model.anatomy.feet import feet_of
from synovia.model.clip_tools.chart import Chart
from synovia.model.clip_tools.path import Ground, inverse
from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.text import DOUBT

_PACE: Final = 0.1  # seconds: factor of velocity differences, which are added to pose differences
# a clip is cut if the distance from a pose to the first pose is below this factor of the distance at the end
_BETTER: Final = 0.7
_PHASE: Final = 0.05  # seconds: precision of the times of contacts
# fraction of the body's size: poses that are farther from the first pose are in another phase of the motion
_NEAR: Final = 0.12
_SEEN: Final = 0.05  # fraction of the body's size: the blend of larger differences is visible
# cuts are equally good if their distance is within this factor of the smallest; the latest of them is used
_ALMOST: Final = 1.2
_PART: Final = 0.2  # fraction of a clip: shortest part that a note suggests
_MOST: Final = 1000  # largest number of frames that are compared with each other
_TURNING: Final = float(np.radians(10.0))  # radians per second: slower rotation over the whole clip is drift
_WALKING: Final = 0.03  # body sizes per second: slower displacement over the whole clip is drift
_FASTEST: Final = 1.5  # largest step over the seam, in usual steps of the clip
_REPEATED: Final = 0.05  # usual steps: a last frame that is nearer to the first frame repeats it
_LEAST: Final = 1e-9  # smallest scale, because the logarithm of 0 is infinite
_SHORTEST: Final = 0.5  # shortest part of a clip that is kept: this fraction, and this time in seconds


def cut_for_loop(skeleton: Skeleton, q: Array, fps: float) -> tuple[int, tuple[str, ...]]:
    """Return the best length of a clip, in frames, for a loop that continues with its first frame, and notes.

    At the cut, the same feet touch the ground as in the first frame, and pose and velocity are near to those of the
    first frame; place and heading do not count. The clip is not cut if the feet are unknown, or no frame is clearly
    nearer than its end. But a last frame that repeats the first one is always cut off.

    Args:
        skeleton: The skeleton.
        q: Joint values, (T, nq).
        fps: Frames per second.
    """
    count, ground = len(q), Ground.of(skeleton, q)
    flat = q if ground is None else ground.carried(q, inverse(ground.path(q)))
    if count > 4 and _usual(skeleton, flat[[0, -1]]) < _REPEATED * _usual(skeleton, flat):
        return count - 1, ()
    places = world_frames(skeleton, flat)[..., 9:]
    off = _differences(places, fps) / (skeleton.size or 1.0)
    best = _best_cut(skeleton, q, fps, off, ground)
    notes: list[str] = []
    if best < count:
        notes.append(f"loop: frames 0 to {best - 1} of {count} are kept, as the feet are in the same phase there")
    if off[best - 1] > max(_SEEN, _between_frames(places, fps) / (skeleton.size or 1.0)):
        much = f"{100.0 * off[best - 1]:.0f} % of the body's size"
        first, end, least = _best_part(places, fps, skeleton.size or 1.0)
        advice = "No other part of the clip is much better."
        if least < _BETTER * off[best - 1]:
            advice = f"The part [{first}:{end}] of these {count} frames is better: {100.0 * least:.0f} %."
        notes.append(
            f"{DOUBT}in the loop, the blend shows, because the clip does not end as it begins: the difference is"
            f" {much}, as the root mean square over joints and their motion in a tenth of a second. {advice}"
        )
    return best, tuple(notes)


def _between_frames(places: Array, fps: float) -> float:
    """Return the median of ``_differences`` between consecutive frames, which is the precision of a phase."""
    steps = np.diff(places, axis=0)
    return float(np.median(_size(steps[1:]) + _PACE * fps * _size(np.diff(steps, axis=0))))


def _best_part(places: Array, fps: float, size: float) -> tuple[int, int, float]:
    """Return (first frame, end, distance) of the part of a clip that makes the best loop.

    The distance is that from the frame after the part to the first frame of the part, in body sizes.

    Args:
        places: Positions of all joints (T, n, 3), without motion over the ground.
        fps: Frames per second.
        size: Size of the body, the unit of the distance.
    """
    steps, part = np.diff(places, axis=0), slice(None, None, -(-len(places) // _MOST))
    # distances to the pose after the end, which is extrapolated
    ways = _distances(places[:-1][part], (places[1:] + steps)[part])
    off = (ways + _PACE * fps * _distances(steps[part], steps[part])) / size
    firsts = np.arange(len(steps))[part]
    length = (firsts[None, :] + 2) - firsts[:, None]
    off[length < max(_SHORTEST * fps, _PART * len(places), 4.0)] = np.inf
    first, end = np.unravel_index(int(np.argmin(off)), off.shape)
    return int(firsts[first]), int(firsts[end]) + 2, float(off[first, end])


def _distances(a: Array, b: Array) -> Array:
    """Return the root mean square distance of joints between frames a (T, n, 3) and b (U, n, 3), as (T, U)."""
    one, other = a.reshape(len(a), -1), b.reshape(len(b), -1)
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None, :] - 2.0 * one @ other.T
    return np.sqrt(np.maximum(squares, 0.0) / a.shape[1])


def _differences(places: Array, fps: float) -> Array:
    """Return the distance between each frame's next frame and the first frame, (T,), from positions and velocities.

    Args:
        places: Positions of all joints (T, n, 3), without motion over the ground.
        fps: Frames per second.
    """
    count, steps = len(places), np.diff(places, axis=0)
    after = np.concatenate([places, places[-1:] + steps[-1:]])  # includes the extrapolated frame after the end
    faster = steps[np.minimum(np.arange(1, count + 1), count - 2)] - steps[0]
    return _size(after[1:] - places[0]) + _PACE * fps * _size(faster)


def _best_cut(skeleton: Skeleton, q: Array, fps: float, off: Array, ground: Ground | None) -> int:
    """Return the best length of a clip in frames; see ``cut_for_loop``.

    Args:
        skeleton: The skeleton.
        q: Joint values, (T, nq).
        fps: Frames per second.
        off: (T,) distance, in body sizes, of each frame's next frame from the first frame.
        ground: The ground; None if the body does not move freely.
    """
    count = len(q)
    least = max(round(_SHORTEST * count), round(_SHORTEST * fps), 2)
    if ground is None or least >= count:
        return count
    try:
        feet = feet_of(skeleton)
    except UnsupportedError:
        return count
    places = world_frames(skeleton, q)[..., 9:]
    joints = [row for foot in feet for row in foot.joints]
    standing = find_contacts(places[:, joints], ground.up, fps).of([len(foot.joints) for foot in feet])
    same, around = (standing == standing[0]).all(1), max(1, round(_PHASE * fps))
    same = np.array([same[max(0, k - around) : k + around + 1].any() for k in range(count)])
    most = min(_BETTER * float(off[-1]), _NEAR)
    cuts = [k for k in range(least, count) if same[k] and off[k - 1] < most]
    if not cuts:
        return count
    nearest = min(off[k - 1] for k in cuts)
    return max(k for k in cuts if off[k - 1] <= _ALMOST * nearest)


def looped(skeleton: Skeleton, q: Array, fps: float, blend: int) -> Array:
    """Return joint values (T, nq) whose last frame continues in the first frame.

    Extrapolated to the seam, the two sides differ in values and velocities. Over ``blend`` frames on each side, a cubic
    adds half of the difference to the end and subtracts half from the beginning. So poses are not blended, and a motion
    that is already cyclic does not change. Place and heading on the ground are kept, without drift.

    Args:
        skeleton: The skeleton.
        q: Joint values, T at least 4.
        fps: Frames per second.
        blend: Frames on each side, 1 to T / 2.
    """
    chart, ground = Chart.of(skeleton), Ground.of(skeleton, q)
    flat = q if ground is None else ground.carried(q, inverse(ground.path(q)))
    first, last = (chart.between(part[:-1], part[1:]) for part in (flat[:3], flat[-3:]))
    # value of each side one step beyond the seam, extrapolated
    before, after = 2.0 * last[1] - last[0], 2.0 * first[0] - first[1]
    before, after = (_limited(skeleton, flat, one) for one in (before, after))
    step = 0.5 * (before + after)
    ending, beginning = _shares(chart.between(chart.stepped(flat[-1], step), flat[0]), after - before, blend)
    out = flat.copy()
    out[:blend] = chart.stepped(flat[:blend], beginning)
    out[-blend:] = chart.stepped(flat[-blend:], ending)
    out = skeleton.follow(out)
    return out if ground is None else ground.placed(out, _without_drift(ground, q, fps))


def _without_drift(ground: Ground, q: Array, fps: float) -> Array:
    """Return the motion over the ground (T, 4, 4) of a loop, without drift.

    A body that stands, or walks straight, hardly ever ends a recording exactly at its first place or heading. A slow
    difference is removed evenly over the whole loop, which moves planted feet too little to be seen.
    """
    count, (places, headings) = len(q), ground.measured(q)
    # steps in the frame of the body's heading
    steps = np.einsum("tji,tj->ti", ground.turn(headings[:-1]), np.diff(places, axis=0))
    turns = np.diff(headings)
    seam, turn = 0.5 * (steps[0] + steps[-1]), 0.5 * float(turns[0] + turns[-1])
    share = np.arange(count) / count
    turned = float(headings[-1] - headings[0]) + turn
    if abs(turned) * fps / count < _TURNING:
        headings = headings - turned * share
        moved = np.einsum("tij,tj->ti", ground.turn(headings[:-1]), steps)
        places = places[0] + np.concatenate([np.zeros((1, 3)), np.cumsum(moved, axis=0)])
    way = places[-1] + ground.turn(float(headings[-1])) @ seam - places[0]
    if np.linalg.norm(way) * fps / count < _WALKING * ground.skeleton.size:
        places = places - share[:, None] * way
    return ground.steps(places, headings)


def looped_scale(stretch: Array, blend: int) -> Array:
    """Return animated scale (T, ...) whose last frame continues in the first frame; see ``looped``."""
    x = np.log(np.maximum(stretch, _LEAST)).reshape(len(stretch), -1)
    last, first = np.diff(x[-3:], axis=0), np.diff(x[:3], axis=0)
    before, after = 2.0 * last[1] - last[0], 2.0 * first[0] - first[1]
    ending, beginning = _shares(x[0] - x[-1] - 0.5 * (before + after), after - before, blend)
    x[:blend] += beginning
    x[-blend:] += ending
    return np.exp(x).reshape(stretch.shape)


def _shares(gap: Array, faster: Array, blend: int) -> tuple[Array, Array]:
    """Return the offsets of the last and of the first frames of a loop, (blend, n) each.

    Args:
        gap: Difference from the extrapolated end to the beginning, (n,).
        faster: Velocity of the beginning minus velocity of the end, (n,), per frame.
        blend: Frames on each side.
    """
    s = (np.arange(blend) / blend)[:, None]  # fraction of the blend; 0 at the frames next to the seam
    value, slope = 0.5 * (1.0 + 2.0 * s) * (1.0 - s) ** 2, 0.5 * blend * s * (1.0 - s) ** 2
    return (value * gap - slope * faster)[::-1], -value * gap - slope * faster


def _limited(skeleton: Skeleton, q: Array, step: Array) -> Array:
    """Return a step (n,), shortened if it is much longer than the usual step of joint values (T, nq)."""
    here = max(_usual(skeleton, np.stack([one, Chart.of(skeleton).stepped(one, step)])) for one in (q[0], q[-1]))
    return step * min(1.0, _FASTEST * _usual(skeleton, q) / max(here, 1e-300))


def _usual(skeleton: Skeleton, q: Array) -> float:
    """Return the median over steps of the largest displacement of a joint, length units."""
    places = world_frames(skeleton, q)[..., 9:]
    return float(np.median(np.linalg.norm(np.diff(places, axis=0), axis=-1).max(1)))


def _size(ways: Array) -> Array:
    """Return the root mean square length, (T,), of the n vectors of each frame, (T, n, 3)."""
    return np.sqrt((ways**2).sum(-1).mean(-1))
