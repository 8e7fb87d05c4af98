"""Find clips whose world is tilted: the body is straight and leans the same way in all frames.

Nobody can stand or walk so without falling, so gravity does not point along the axis of the file. Bodies that lie, sit
or bow are not straight, or lean farther. Runners lean, too, and so do people who walk with a stoop; but their feet come
down to one level along the axis.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model.geometry import Array, unit
from synovia.retargeting.bones import angle, between

LEAST: Final = 17.0  # degrees; a smaller lean may be one of the body: who leans farther falls
MOST: Final = 65.0  # degrees; a body that leans farther lies
_STRAIGHT: Final = 30.0  # degrees between legs and trunk, in most frames
_STEADY: Final = 0.95  # smallest length of the mean of directions that are nearly constant
_LEVEL: Final = 0.5  # a body keeps level along the axis if it rises less by this factor: then it runs, and leans
_ALWAYS: Final = 0.1  # share of the frames that may be nearer to the axis


def tilted_up(legs: Array, trunk: Array, axis: Array, places: Array) -> Array | None:
    """Return the direction (3,) along which a body stands in a tilted world; None if the world is not tilted.

    Args:
        legs: Unit vectors from the feet to the hips, (T, 3).
        trunk: Unit vectors from the hips to the shoulders, (T, 3).
        axis: The axis of the file that would point up, (3,).
        places: Positions of all joints, (T, n, 3).
    """
    body = unit(legs + trunk)
    mean = body.mean(0)
    length = float(np.linalg.norm(mean))
    if length < _STEADY or float(np.median(np.sum(legs * trunk, axis=1))) < np.cos(np.radians(_STRAIGHT)):
        return None
    if np.quantile(angle(body, axis), _ALWAYS) < LEAST or between(mean / length, axis) > MOST:
        return None
    up = mean / length
    return None if _rises(places, axis) < _LEVEL * _rises(places, up) else up


def _rises(places: Array, up: Array) -> float:
    """Return how far the lowest joint of a body rises and sinks over time."""
    return float(np.diff(np.quantile((places @ up).min(1), (0.1, 0.9)))[0])
