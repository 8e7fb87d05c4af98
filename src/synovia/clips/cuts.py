"""Cuts: where a clip jumps, such as from a calibration pose to the motion, and nothing may be smoothed across."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from synovia.model.geometry import Array

SUDDEN: Final = 5.0  # times as far as in the frames before and after
LEAST: Final = 0.03  # of the extent of the points: a shorter way is no cut


def pieces_of(places: Array) -> list[tuple[int, int]]:
    """Return (first, end) of the pieces between cuts.

    A cut is where the points go many times as far from one frame to the next as before and after it.

    Args:
        places: Points over time, (T, n, 3).
    """
    count = len(places)
    way = np.linalg.norm(np.diff(places, axis=0), axis=-1).mean(1) if count > 1 else np.zeros(0)
    extent = float(np.ptp(places, axis=1).max(1).mean()) if places.size else 0.0
    padded = np.concatenate([[0.0], way, [0.0]])
    around = np.maximum(padded[:-2], padded[2:])
    cuts = np.flatnonzero((way > SUDDEN * around) & (way > LEAST * extent)) + 1 if count > 3 else np.zeros(0, int)
    edges = [0, *cuts.tolist(), count]
    return list(pairwise(edges))
