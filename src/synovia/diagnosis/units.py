"""Find targets that seem to be in another unit than the model."""

from __future__ import annotations

from typing import Final

from synovia.diagnosis.trials import Variation, solve_variation
from synovia.goals.base import POSITION
from synovia.ik.interrupts import Watch
from synovia.ik.solution import Solution

# metres per unit, by name of the unit, the largest unit first
_UNITS: Final = {"centimetres": 0.01, "millimetres": 0.001}
_FAR: Final = 20.0  # length scales: targets of larger misses may be in another unit
_ATTEMPTS: Final = 8


def unit_hint(solution: Solution) -> str | None:
    """Return a question if targets seem to be in centimetres or millimetres and the model in metres; else None.

    Such a target is missed by many length scales. The problem is solved again with the targets converted to metres, and
    the question names the first unit for which all goals are then met.
    """
    ik = solution.ik
    known = ik.skeleton.meters_per_unit
    if known not in (None, 1.0):
        return None
    errors = solution.errors
    far = [
        i
        for i in solution.missed
        if solution.goals[i].constrained_parts & POSITION and errors[i].position > _FAR * ik.reach
    ]
    if not far:
        return None
    for unit, factor in _UNITS.items():
        targets = solution.targets.copy()
        targets[far, :3, 3] *= factor
        variation = Variation(range(len(ik.goals)), targets=targets)
        if solve_variation(solution, variation, Watch(), attempts=_ATTEMPTS).missed:
            continue
        label = repr(solution.goals[far[0]].label)
        place = ", ".join(f"{x + 0.0:.6g}" for x in targets[far[0], :3, 3])
        if known is None:
            return f"Is the target of {label} in {unit}? The model may be in metres: did you mean ({place})?"
        return f"Did you mean metres, as in the model? {label} can reach ({place}), its target in {unit}."
    return None
