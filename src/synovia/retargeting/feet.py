"""Feet that stand where they were put: contacts of the source become points that the target's feet keep."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from synovia.geometry import Array
from synovia.retargeting.body import LEGS, Body

_SHARE = 30.0  # a foot stands while it is among its lowest and its slowest 30 % of frames
_GAP = 0.05  # seconds: shorter interruptions of a contact are noise
_SHORTEST = 0.05  # seconds: shorter contacts are a foot that swings low
Spans = list[tuple[int, int]]


def contacts(points: Array, up: Array, fps: float) -> Spans:
    """Return the frames (first, past the last) in which a foot stands.

    Args:
        points: (T, 3) world positions of the foot.
        up: (3,) direction away from the ground.
        fps: Frames per second.
    """
    if len(points) < 2:
        return []
    heights = points @ up
    speeds = np.linalg.norm(np.gradient(points, axis=0), axis=1)
    stands: NDArray[np.bool_] = (heights <= np.percentile(heights, _SHARE)) & (speeds <= np.percentile(speeds, _SHARE))
    spans: Spans = []
    for frame in np.flatnonzero(stands).tolist():
        if spans and frame - spans[-1][1] <= _GAP * fps:
            spans[-1] = (spans[-1][0], frame + 1)
        else:
            spans.append((frame, frame + 1))
    return [(a, b) for a, b in spans if b - a >= _SHORTEST * fps]


def planted(points: Array, spans: Spans) -> Array:
    """Return a path (T, 3) that stands still during contacts and follows the given one between them.

    During a contact the foot is where it is on average then. Between two contacts the difference eases from one to the
    next over the whole swing, before the first and after the last it stays: so nothing is bent that is seen to move.
    """
    shift = np.zeros_like(points)
    if not spans:
        return points.copy()
    for a, b in spans:
        shift[a:b] = points[a:b].mean(0) - points[a:b]
    shift[: spans[0][0]] = shift[spans[0][0]]
    shift[spans[-1][1] :] = shift[spans[-1][1] - 1]
    for (_, b), (a, _) in itertools.pairwise(spans):
        u = np.linspace(0.0, 1.0, a - b + 2)[1:-1, None]
        ease = u * u * u * (u * (6.0 * u - 15.0) + 10.0)  # no jump in speed or acceleration at its ends
        shift[b:a] = shift[b - 1] + ease * (shift[a] - shift[b - 1])
    return points + shift


def foot_paths(source: Body, target: Body, frames: Array, own: Array, fps: float) -> dict[str, tuple[Array, Spans]]:
    """Return, for each foot that both bodies have, where it should be (T, 3) and when it stands.

    Args:
        source: The body that moves.
        target: The body that follows.
        frames: (T, n, 12) world frames of the source.
        own: (T, m, 12) world frames of the target before its feet are put in place.
        fps: Frames per second.
    """
    out: dict[str, tuple[Array, Spans]] = {}
    for leg in LEGS:
        if leg[2] in source.roles and leg[2] in target.roles:
            spans = contacts(frames[:, source.roles[leg[2]], 9:], source.basis[:, 1], fps)
            out[leg[2]] = planted(own[:, target.roles[leg[2]], 9:], spans), spans
    return out
