"""Close pinches that stay open although the hand can close them: find other poses, and join them to the clip.

Each frame is solved from the pose of the previous frame, so the hand may reach a pinch in a pose from which no small
step closes it. Then the pinch is solved again from the rest pose and from random poses. A pose that closes it is
followed backwards and forwards in time until it meets the clip, with the same largest moves per frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.ik.targets import transforms
from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array, magnitudes
from synovia.model.pose import random_values
from synovia.retargeting.hands.follower import HandFollower
from synovia.retargeting.hands.judge import TOUCH, false_pinches

SAME: Final = 1e-3  # radians or length units: poses that differ by at most this are equal
STARTS: Final = 8  # number of start poses for a pinch: the rest pose and random ones
_TRIED: Final = 3  # largest number of poses that close a pinch and are tried in the clip
_FARTHER: Final = 0.03  # fraction of the length scale by which the mean error of tips may increase
_BETTER: Final = 0.5  # fraction of the previous gap: a pinch that stays open is better if its gap is smaller
_CHUNK: Final = 8  # number of frames that are followed before they are compared with the clip
_LONGEST: Final = 1.0  # seconds for which a pose follows its targets back to the clip; after that, it is interpolated


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A clip of a hand that follows a recording, with targets and weights.

    Attributes:
        follower: The hand.
        table: Targets, (T, goals, 17).
        weights: Weights of the goals, (T, goals); 0 for pinches that give way to others.
        closed: Masks of the frames in which the recorded tips touch, (T, F).
        partial: Masks of the frames in which a pinch is only partly closed, (T, F); it gives way to closed ones.
        apart: Distances of the recorded tips from the thumb's tip, (T, F), metres.
        metre: Length units per metre.
        fps: Frames per second.
    """

    follower: HandFollower
    table: Array
    weights: Array
    closed: NDArray[np.bool_]
    partial: NDArray[np.bool_]
    apart: Array
    metre: float
    fps: float

    def tips(self, q: Array) -> Array:
        """Return the positions of the tips, (t, F, 3), at poses (t, nq)."""
        return self.follower.tips_at(q)[0]

    def error(self, tips: Array, frames: slice) -> float:
        """Return the mean distance of tips, (t, F, 3), from their targets in given frames."""
        aims = transforms(self.table[frames])[:, : self.follower.count, :3, 3]
        return float(magnitudes(tips - aims).mean())


def close_open(clip: Clip, q: Array, rest: Array) -> tuple[Array, frozenset[tuple[int, int]]]:
    """Return poses (T, nq) in which pinches that stayed open are closed, if the hand can close them.

    Args:
        clip: The clip.
        q: Poses of the clip, (T, nq).
        rest: The rest pose, (nq,).

    Returns:
        The poses; and (finger, first frame) of each pinch that stays open although some pose closes it.
    """
    touch, held = TOUCH * clip.metre, set[tuple[int, int]]()
    tips = clip.tips(q)
    gaps = _gaps(tips)
    pinches = [(first, end, k) for k in range(1, clip.follower.count) for first, end in runs(clip.closed[:, k])]
    starts = list[Array]()
    for first, end, k in sorted(pinches):
        worst = float(gaps[first:end, k].max())
        if worst <= touch:
            continue
        closes, starts = False, starts or _starts(clip.follower, rest)
        for at, pose, weights, gap in _poses(clip, gaps, (first, end), k, starts):
            found = _joined(clip, q, at, pose, weights)
            closes |= gap <= touch
            if found is None:
                continue
            part = _changed(q, found)
            after = clip.tips(found[part])
            if _may_go(clip.follower, found[part]) and _is_better(clip, part, tips[part], after, (first, end), k):
                q, tips[part], gaps[part] = found, after, _gaps(after)
                clip.weights[...] = weights
                break
        if closes and float(gaps[first:end, k].max()) > touch:
            held.add((k, first))
    return q, frozenset(held)


def _gaps(tips: Array) -> Array:
    """Return the distances of tips (t, F, 3) from the tip of the thumb, (t, F)."""
    return magnitudes(tips - tips[:, :1])


def _starts(follower: HandFollower, rest: Array) -> list[Array]:
    """Return start poses (nq,) of a pinch: the rest pose and random ones."""
    skeleton = follower.skeleton
    moving = np.zeros(skeleton.nq, bool)
    for row in follower.rows:
        moving[skeleton.q_slice(row)] = True
    return [rest, *(np.where(moving, random_values(skeleton, 1, seed)[0], rest) for seed in range(1, STARTS))]


class _Sought:
    """Poses that are searched for from several starts when they are needed, a few at a time.

    Args:
        clip: The clip.
        at: The frame.
        weights: Weights, (T, goals).
        starts: Start poses, (nq,) each.
    """

    def __init__(self, clip: Clip, at: int, weights: Array, starts: Sequence[Array]) -> None:
        """Store the arguments; the search is made later."""
        self.weights = weights
        self._clip, self._at, self._starts = clip, at, starts
        self._found = dict[int, tuple[Array, float]]()

    def __getitem__(self, k: int) -> tuple[Array, float]:
        """Return the pose (nq,) found from start k, and its largest gap of the pinches that are closed in the frame."""
        if k not in self._found:
            clip, at = self._clip, self._at
            some = range(k, min(k + _TRIED, len(self._starts)))
            poses = [clip.follower.sought(clip.table[at:], self.weights[at:], self._starts[j]) for j in some]
            gaps = _gaps(clip.tips(np.array(poses)))[:, clip.closed[at]].max(1).tolist()
            self._found.update(zip(some, zip(poses, gaps, strict=True), strict=True))
        return self._found[k]


def _poses(
    clip: Clip, gaps: Array, pinch: tuple[int, int], k: int, starts: Sequence[Array]
) -> Iterator[tuple[int, Array, Array, float]]:
    """Yield poses that close a finger's pinch better: frame, pose (nq,), weights (T, goals) and gap.

    The frame is that with the largest gap of the pinch. Poses that close the pinch come first, then those with smaller
    errors of the tips. If this helps, pinches of other fingers that are only partly closed in the frame are left out.
    """
    first, end = pinch
    at = first + int(np.argmax(gaps[first:end, k]))
    follower, touch = clip.follower, TOUCH * clip.metre
    both = clip.closed[at]
    worst = float(gaps[at, both].max())
    choices = [clip.weights]
    if clip.partial[first:end].any():
        alone = clip.weights.copy()
        follower.unpinch(alone[first:end], clip.partial[first:end])
        choices.insert(0, alone)
    sought = [_Sought(clip, at, weights, starts) for weights in choices]
    found = list[tuple[tuple[bool, float], Array, Array, float]]()
    for start in range(len(starts)):
        for one in sought:
            (pose, gap), weights = one[start], one.weights
            if gap > max(2.0 * touch, _BETTER * worst):
                continue
            pose = follower.first(clip.table[at:], weights[at:], pose)
            tips = clip.tips(pose[None])
            gap = float(_gaps(tips)[0, both].max())
            known = (weights is own and np.abs(pose - other).max() <= SAME for _, other, own, _ in found)
            if gap <= max(touch, _BETTER * worst) and not any(known):
                found.append(((gap > touch, clip.error(tips, slice(at, at + 1))), pose, weights, gap))
                if gap <= touch:
                    break
        if len(found) >= _TRIED:
            break
    for _, pose, weights, gap in sorted(found, key=lambda one: one[0])[:_TRIED]:
        yield at, pose, weights, gap


def _joined(clip: Clip, q: Array, at: int, pose: Array, weights: Array) -> Array | None:
    """Return the clip (T, nq) with a pose (nq,) in frame ``at``, joined to the other poses; None if that fails."""
    out = q.copy()
    out[at] = pose
    back = _followed(clip, out[at::-1], weights[at::-1], clip.table[at::-1])
    on = _followed(clip, out[at:], weights[at:], clip.table[at:])
    return out if back and on else None


def _followed(clip: Clip, q: Array, weights: Array, table: Array) -> bool:
    """Follow the first pose of a clip (T, nq), overwriting the clip until both meet; return whether they do."""
    follower, most = clip.follower, max(_CHUNK, round(_LONGEST * clip.fps))
    own, begin = q.copy(), 1
    while begin < min(len(q), most):
        until = min(begin + _CHUNK, len(q))
        part = slice(begin, until)
        q[part] = follower.follow(np.ascontiguousarray(table[part]), weights[part].copy(), q[begin - 1].copy())
        near = np.abs(q[part] - own[part]).max(1) <= SAME
        for t in (begin + np.flatnonzero(near)).tolist():
            if t + 1 < len(q) and follower.may_go(q[t], own[t + 1]):
                q[t + 1 :] = own[t + 1 :]
                return True
        begin = until
    return begin >= len(q) or _returned(follower, q, own, begin)


def _returned(follower: HandFollower, q: Array, own: Array, begin: int) -> bool:
    """Interpolate joint values back to a clip with the largest moves; return False for hands with ball joints."""
    if not follower.only_numbers:
        return False
    for t in range(begin, len(q)):
        q[t] = q[t - 1] + follower.share(q[t - 1], own[t]) * (own[t] - q[t - 1])
        if np.array_equal(q[t], own[t]):
            return True
    return True


def _changed(before: Array, after: Array) -> slice:
    """Return the frames in which two clips (T, nq) differ, and one frame on each side."""
    changed = np.flatnonzero((before != after).any(1))
    return slice(max(int(changed[0]) - 1, 0), min(int(changed[-1]) + 2, len(before)))


def _may_go(follower: HandFollower, q: Array) -> bool:
    """Return whether consecutive poses (t, nq) respect the largest moves."""
    return all(follower.may_go(q[t], q[t + 1]) for t in range(len(q) - 1))


def _is_better(clip: Clip, frames: slice, before: Array, after: Array, pinch: tuple[int, int], k: int) -> bool:
    """Return whether tips ``after``, (t, F, 3), close a pinch better than tips ``before``, and nothing gets worse."""
    touch, was, now = TOUCH * clip.metre, _gaps(before), _gaps(after)
    false = [int(false_pinches(gaps, clip.apart[frames], clip.metre)[:, 1:].sum()) for gaps in (was, now)]
    if false[1] > false[0]:
        return False
    if clip.error(after, frames) > clip.error(before, frames) + _FARTHER * clip.follower.ik.reach:
        return False
    for f in range(1, clip.follower.count):
        for first, end in runs(clip.closed[frames, f]):
            old, new = float(was[first:end, f].max()), float(now[first:end, f].max())
            mine = f == k and frames.start + first < pinch[1] and pinch[0] < frames.start + end
            if new > (max(touch, _BETTER * old) if mine else max(touch, old)):
                return False
    return True
