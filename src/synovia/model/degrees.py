"""Warn if joint values seem to be in degrees instead of radians, without changing values."""

from __future__ import annotations

import math
from typing import Any, Final, Protocol

import numpy as np

from synovia.arguments import warn
from synovia.kernels.layout import BLOCK, BLOCK_Q, IS_ANGLE, LOWER, SCALAR, UPPER
from synovia.model.tables import Tables

FAR: Final = 4.0 * math.pi  # radians beyond a limit, two turns: larger values are probably in degrees
_MOST: Final = 720.0  # degrees, two turns: larger values are not angles in degrees
_SHOWN: Final = 4  # largest number of names in one warning


class Bounded(Protocol):
    """The parts of a skeleton that hold the limits of its joints."""

    joint_names: tuple[str, ...]
    tables: Tables


def warn_of_degrees(skeleton: Bounded, q: Any, what: str = "q") -> None:
    """Warn if hinges have values far outside their limits, as angles in degrees would be.

    Hinges without limits, and mimic joints, never cause a warning.

    Args:
        skeleton: The skeleton.
        q: Joint values, (..., nq).
        what: Name of the values, for the message.
    """
    t = skeleton.tables
    hinges = np.flatnonzero((t.variables[:, BLOCK] == SCALAR) & (t.limits[:, IS_ANGLE] != 0.0))
    values = q.reshape(-1, q.shape[-1])[:, t.variables[hinges, BLOCK_Q]]
    low, high = t.limits[hinges, LOWER], t.limits[hinges, UPPER]
    far = ((values < low - FAR) | (values > high + FAR)) & (np.abs(values) <= _MOST)
    columns = np.flatnonzero(far.any(0)).tolist()
    if not columns:
        return
    names = [skeleton.joint_names[t.owner[hinges[k]]] for k in columns]
    k = columns[0]
    value = float(values[np.argmax(far[:, k]), k])
    others = ", ".join(repr(name) for name in names[1:_SHOWN]) + (" and others" if len(names) > _SHOWN else "")
    warn(
        f"{what} of joint {names[0]!r}: {value:g} is far outside its limits, {low[k]:g} to {high[k]:g} radians."
        + (f" So are values of {others}." if others else "")
        + f" Values are in radians. Did you mean {value:g} degrees, {math.radians(value):.4g}?"
    )


def warn_of_limit_in_degrees(name: str, limit: tuple[float, float], before: tuple[float, float]) -> None:
    """Warn if a new limit of a hinge is far wider than the one before, as angles in degrees would be.

    Args:
        name: The hinge.
        limit: New limit of the hinge, radians.
        before: Previous limit of the hinge.
    """
    (lower, upper), (low, high) = limit, before
    if -_MOST <= lower < low - FAR or high + FAR < upper <= _MOST:
        warn(
            f"limit of joint {name!r}: ({lower:g}, {upper:g}) is far wider than before, {low:g} to {high:g} radians. "
            f"Limits are in radians. Did you mean degrees, ({math.radians(lower):.4g}, {math.radians(upper):.4g})?"
        )
