"""Pinches of a recorded hand: when thumb and finger touch, and how far a pinch is closed in each frame."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array

CLOSED: Final = 0.02  # metres between the recorded tips below which they touch
OPEN: Final = 0.025  # metres from which they are apart again
AWAY: Final = 0.04  # metres from which tips of the hand that nearly touch would be a false pinch
CLEAR: Final = 0.012  # metres that the tips of the hand then keep
ONSET: Final = 0.15  # seconds in which a pinch closes or opens


def closed_frames(apart: Array) -> NDArray[np.bool_]:
    """Return when recorded tips touch, (T, F), with hysteresis, for their distances (T, F) in metres."""
    out = np.zeros(apart.shape, bool)
    for f in range(apart.shape[1]):
        low, high = apart[:, f] < CLOSED, apart[:, f] >= OPEN
        for first, end in runs(~high):
            begun = np.flatnonzero(low[first:end])
            if len(begun):
                out[first + int(begun[0]) : end, f] = True
    return out


def closing_shares(closed: NDArray[np.bool_], fps: float) -> Array:
    """Return how far each pinch is closed, (T, F) from 0 to 1: it closes and opens smoothly, before and after."""
    width = max(1.0, ONSET * fps)
    out = np.zeros(closed.shape)
    for f in range(closed.shape[1]):
        for first, end in runs(closed[:, f]):
            part = slice(max(first - math.ceil(width), 0), end + math.ceil(width))
            times = np.arange(len(closed))[part]
            off = np.maximum(np.maximum(first - times, times - (end - 1)), 0) / width
            u = np.clip(1.0 - off, 0.0, 1.0)
            out[part, f] = np.maximum(out[part, f], u * u * (3.0 - 2.0 * u))
    return out
