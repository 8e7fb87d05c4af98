"""Estimate the stature of a body, and the length unit in which it is as tall as a person.

A body has the stature of an adult whose legs have the same length: the distance from hip (trochanterion) to ankle
(lateral malleolus) is 0.476 of the stature, a mean over men and women.

References:
    C. Gordon et al., *2012 Anthropometric Survey of U.S. Army Personnel: Methods and Summary Statistics*, Natick
    TR-15/007, 2014: 4,082 men and 1,986 women.
    Carnegie Mellon University, *Graphics Lab Motion Capture Database*: a length of 0.45 is an inch.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model.anatomy.names import SIDES
from synovia.model.skeleton import Skeleton
from synovia.text import UNITS

ADULT: Final = 1.75  # metres: stature of an adult, a mean over both sexes
_LEG: Final = 0.476  # fraction of the stature: leg length from hip to ankle
_PERSON: Final = (1.0, 2.2)  # metres: range of statures of recorded people
_CANDIDATES: Final = (*UNITS.values(), UNITS["in"] / 0.45)


def stature_of(skeleton: Skeleton) -> float:
    """Return the stature of an adult with legs as long as those of a body at rest; 0 for a body without legs."""
    rows, lengths = skeleton.role_rows, list[float]()
    places = skeleton.rest_pose().positions
    for side in SIDES:
        parts = [f"{side}_{part}" for part in ("upper_leg", "lower_leg", "foot")]
        if all(part in rows for part in parts):
            hip, knee, ankle = (places[rows[part]] for part in parts)
            lengths.append(float(np.linalg.norm(knee - hip) + np.linalg.norm(ankle - knee)))
    return sum(lengths) / len(lengths) / _LEG if lengths else 0.0


def human_unit(skeleton: Skeleton) -> float | None:
    """Return the length unit, metres, in which a body is as tall as a person; None for a body without legs.

    Of the usual units that give a person's stature, the result is the one that is nearest to an adult. If no usual unit
    does, it is the unit in which the body is an adult.
    """
    stature = stature_of(skeleton)
    if not (np.isfinite(stature) and stature > 0.0):
        return None
    fitting = [unit for unit in _CANDIDATES if _PERSON[0] <= stature * unit <= _PERSON[1]]
    return min(fitting, key=lambda unit: abs(np.log(stature * unit / ADULT)), default=ADULT / stature)
