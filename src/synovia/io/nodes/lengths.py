"""Choose the length unit of a body whose file has none, for formats that require a unit."""

from __future__ import annotations

from typing import Final, NamedTuple

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.model.anatomy.stature import human_unit, stature_of
from synovia.text import UNITS, unit_name

_UNKNOWN: Final = "The length unit of the skeleton is unknown: "
_CURE: Final = "; unit= (--unit) sets another."


class Unit(NamedTuple):
    """The length unit of a body.

    Args:
        meters: Length of the unit, metres.
        notes: A sentence if the unit was unknown.
    """

    meters: float
    notes: tuple[str, ...] = ()


def unit_of(skeleton: Skeleton, usual: float) -> Unit:
    """Return the unit of a body; without a known unit, choose a unit in which a humanoid is as tall as a person.

    Args:
        skeleton: The body.
        usual: Unit of other bodies with unknown unit, metres.
    """
    known = skeleton.meters_per_unit
    if known is not None:
        return Unit(known)
    meters = human_unit(skeleton)
    if meters is None:
        return Unit(usual, (f"{_UNKNOWN}assumed to be {_named(usual)}{_CURE}",))
    tall = stature_of(skeleton) * meters
    return Unit(meters, (f"{_UNKNOWN}assumed to be {_named(meters)}, so that the body is {tall:.2f} m tall{_CURE}",))


def in_unit(skeleton: Skeleton, unit: str | float) -> Skeleton:
    """Return a body with a unit that its file does not give.

    Args:
        skeleton: The body.
        unit: Name of the unit, or its length in metres.

    Raises:
        InputError: If ``unit`` is not a unit, or the body already has another unit.
    """
    known, out = skeleton.meters_per_unit, skeleton.with_unit(unit)
    if known in (None, out.meters_per_unit):
        return out
    what = "unit is not that of the skeleton"
    raise InputError(what, where=skeleton.name, value=unit_name(out.meters_per_unit), expected=unit_name(known))


def _named(meters: float) -> str:
    """Return the name of a unit."""
    short = unit_name(meters)
    return short if short in UNITS else f"{100.0 * meters:.3g} cm"
