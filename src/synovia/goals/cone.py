"""Cones: the tolerance of goals for directions."""

from __future__ import annotations

import math
from typing import Any, Final

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, Term
from synovia.model.geometry import is_number

CONE: Final = describe.attribute("cone", "length", "Half-angle in radians by which the axis may deviate.")


def cone_values(cone: Any) -> dict[str, Any]:
    """Return the attributes of a goal with a cone, None for none.

    Raises:
        InputError: If the value cannot be used.
    """
    if cone is None:
        return {}
    if not is_number(cone) or not 0.0 <= cone < math.pi:
        raise InputError("cone", value=cone, expected="an angle in radians, from 0 to less than pi")
    return {"cone": float(cone), **({"needs": "rows"} if cone else {})}


def cone_term(cone: float, *, aims: bool) -> Term:
    """Return the term of a cone about a direction, or with ``aims`` about the direction of a point."""
    return Term(kind="cone", angles=1, takes=POSITION, numbers=(cone, float(aims)))
