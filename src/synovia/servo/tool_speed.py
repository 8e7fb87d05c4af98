"""Speed limits of end effectors, linear and angular; ticks keep them, see ``kernels.servo.tools``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from synovia.errors import InputError
from synovia.model.geometry import Array, as_numbers, is_number
from synovia.servo.limits import Axes

_MOST: Final = 1e12  # largest limit
_SLACK: Final = 1e-9  # fraction of a limit: a smaller excess is a rounding error
_TOLD: Final = 0.9  # fraction of a limit: higher speeds are reported


class ToolSpeed:
    """Speed limits of end effectors.

    Args:
        axes: The axes of the body.
        limits: By joint, link or site: a linear limit, length units/s, or a pair: linear and angular, rad/s.

    Raises:
        InputError: If a limit cannot be used.
        UnknownNameError: If there is no such end effector.

    Attributes:
        limits: Linear and angular limits, by end effector.
        told: By end effector, "tool speed" if its limit slowed the last tick, "recovering" if it was too fast.
    """

    def __init__(self, axes: Axes, limits: Any) -> None:
        """Find the end effectors."""
        self.limits = _checked(limits)
        for name in self.limits:
            axes.skeleton.locate(name)  # refuses unknown names
        self.told: dict[str, str] = {}

    def note_shares(self, shares: Array, slows: Array, *, leads: bool) -> None:
        """Record in ``told`` which end effectors slowed the last tick, or were too fast.

        Args:
            shares: Fraction of its speed limit that each end effector used, (tools,); above 1 is too fast.
            slows: Nonzero for each end effector that slows the body down, (tools,).
            leads: Whether the body follows a path on which it keeps these limits. Then an end effector near its limit
                counts as slowing, too.
        """
        self.told = {}
        for name, share, slow in zip(self.limits, shares.tolist(), slows.tolist(), strict=True):
            if share > 1.0 + _SLACK:
                self.told[name] = "recovering"
            elif slow or (leads and share > _TOLD):
                self.told[name] = "tool speed"


def _checked(limits: Any) -> dict[str, tuple[float, float]]:
    """Return linear and angular limits by end effector.

    Raises:
        InputError: If they cannot be used.
    """
    if not isinstance(limits, Mapping) or not len(cast("Mapping[Any, Any]", limits)):
        raise InputError(
            "tool_speed", value=cast("Any", limits), expected="limits by joint, such as {'tool': (0.25, 1.0)}"
        )
    out: dict[str, tuple[float, float]] = {}
    for name, value in cast("Mapping[Any, Any]", limits).items():
        where = f"tool_speed of {name!r}"
        pair = [value, None] if is_number(value) else value
        if not isinstance(pair, list | tuple) or len(cast("list[Any]", pair)) != 2:
            raise InputError(where, value=value, expected="a linear limit, or a pair: linear and angular")
        found = as_numbers([_MOST if one is None else one for one in cast("list[Any]", pair)], (2,), where)
        if not ((found > 0.0) & (found <= _MOST)).all():
            raise InputError(where, value=value, expected=f"above 0 and at most {_MOST:g}, per s")
        out[name] = (float(found[0]), float(found[1]))
    return out
