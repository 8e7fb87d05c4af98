"""Pinches of a recorded hand: frames in which thumb and finger touch, and how far a pinch is closed."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array

CLOSED: Final = 0.02  # metres: recorded tips touch below this distance
OPEN: Final = 0.025  # metres: touching tips are apart again from this distance on
AWAY: Final = 0.04  # metres: if recorded tips are farther apart, tips of the hand that nearly touch are a false pinch
CLEAR: Final = 0.012  # metres: distance that tips of the hand keep to avoid a false pinch
ONSET: Final = 0.15  # seconds in which a pinch closes or opens


def closed_frames(apart: Array) -> NDArray[np.bool_]:
    """Return a mask of where recorded tips touch, (T, F), with hysteresis; ``apart``: distances (T, F), metres."""
    out = np.zeros(apart.shape, bool)
    for f in range(apart.shape[1]):
        low, high = apart[:, f] < CLOSED, apart[:, f] >= OPEN
        for first, end in runs(~high):
            begun = np.flatnonzero(low[first:end])
            if len(begun):
                out[first + int(begun[0]) : end, f] = True
    return out


def closing_shares(closed: NDArray[np.bool_], fps: float) -> Array:
    """Return how far each pinch is closed, (T, F), from 0 to 1; it closes smoothly before contact, and opens after."""
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
