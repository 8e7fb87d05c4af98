"""The control of a range: a slider with two handles, and the same two bounds as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synovia.model import Kind
from synovia.viewer.panel.field import Field, written
from synovia.viewer.wish import Wish, bounds_of, kind_of

if TYPE_CHECKING:
    from synovia.viewer.panel.base import Tab

_PARTS: Final = 1000  # steps of a slide's slider


class Span:
    """Two bounds of a joint's value, in degrees or in length units.

    Args:
        tab: The tab that it is made in.
        wish: The wish whose range it is.
        action: Called with lower and upper, radians or length units.
    """

    def __init__(self, tab: Tab, wish: Wish, action: Callable[[float, float], None]) -> None:
        """Make the controls."""
        self._action = action
        skeleton, row = tab.session.given, wish.row or 0
        slides = skeleton.joints[row].kind is Kind.SLIDE
        self.unit = tab.page.unit if slides else "°"
        self._per = 1.0 if slides else 180.0 / math.pi
        widest = kind_of(wish.kind).goal.first_values(skeleton, row, np.zeros(3))
        self._ends = float(widest["lower"]), float(widest["upper"])
        low, high = (self._per * end for end in self._ends)
        step = (high - low) / _PARTS if slides else 0.1
        if not slides:
            low, high = math.floor(10.0 * low + 1e-6) / 10.0, math.ceil(10.0 * high - 1e-6) / 10.0
        bounds = self._bounds(wish)
        self._low, self._high, self._step = low, max(high, low + step), step
        label = f"Range {self.unit}".strip()
        self.slider: Any = tab.gui.add_multi_slider(label, low, self._high, step, self._within(bounds))
        tab.hear(self.slider, self._slid)
        self.field = Field(tab, "Lower, upper", bounds, self._set, digits=3, hint="inf or -inf: no bound.")

    def _bounds(self, wish: Wish) -> tuple[float, float]:
        """Return the bounds of a wish as they are shown."""
        lower, upper = bounds_of(wish) or self._ends
        return self._per * lower, self._per * upper

    def _within(self, bounds: Sequence[float]) -> tuple[float, float]:
        """Return bounds as far as the slider goes."""
        lower, upper = (min(max(bound, self._low), self._high) for bound in bounds)
        return lower, upper

    def _slid(self, values: Sequence[float]) -> None:
        """Take the slider's bounds: its ends are rounded outwards, the joint's own count."""
        self._set(tuple(min(max(float(x), self._per * self._ends[0]), self._per * self._ends[1]) for x in values))

    def _set(self, values: Sequence[float]) -> None:
        lower, upper = (value / self._per for value in values)
        self._action(lower, upper)

    def show(self, wish: Wish) -> None:
        """Show the bounds of the wish."""
        bounds = self._bounds(wish)
        self.field.show(bounds)
        within = self._within(bounds)
        if max(abs(a - b) for a, b in zip(within, self.slider.value, strict=True)) > self._step:
            self.slider.value = within

    def now(self, value: float) -> str:
        """Return a value as people read it."""
        return f"{written((self._per * value,), 3)} {self.unit}".strip()

    def remove(self) -> None:
        """Take the controls away."""
        self.slider.remove()
        self.field.remove()
