"""Controls for numbers: text fields, the bounds of a range, and rotations as angles.

Numbers are entered in text fields, because a browser's number field loses the sign of ``-0.25`` while it is typed
(``-0`` becomes ``0``) and sends no event when it is emptied. A text field keeps the text until it is complete.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, as_numbers, fixed_xyz
from synovia.viewer.editing.editor import GoalEditor, bounds_of, kind_of
from synovia.viewer.page.tab import Tab
from synovia.viewer.serving.kept import uuid_of

PAUSE: Final = 5.0  # seconds after the last key stroke before a field shows the value of the model again
_PARTS: Final = 1000  # steps of the slider of a slide joint
_DIGITS: Final = 16  # numbers from the browser must have fewer digits than this


def hidden_field(tab: Tab, label: str, action: Callable[[list[int]], Any], *, slow: bool = False) -> str:
    """Add a hidden text field for ``page/browser.js`` to write numbers to, and return its identifier.

    Args:
        tab: The tab of the field.
        label: Label.
        action: Called with the whole numbers. Other text is ignored.
        slow: Whether the action is slow.
    """

    def read(text: str) -> None:
        words = text.split()
        if all(word.isdecimal() and len(word) < _DIGITS for word in words):
            action([int(word) for word in words])

    field: Any = tab.gui.add_text(label, "", visible=False)
    tab.connect(field, read, slow=slow)
    return uuid_of(field)


def written(values: Sequence[float], digits: int | None) -> str:
    """Return numbers as text with ``digits`` decimals, or six significant digits for None; never a negative zero."""
    if digits is None:
        return ", ".join(f"{float(value) + 0.0:.6g}" for value in values)
    return ", ".join(f"{round(float(value), digits) + 0.0:.10g}" for value in values)


def whole(what: str, value: float) -> int:
    """Return a number as an integer.

    Raises:
        InputError: If the number is not whole.
    """
    if not float(value).is_integer():
        raise InputError("expected a whole number", where=what, value=value)
    return int(value)


def above_zero(what: str, value: float) -> float:
    """Return a finite number above 0.

    Raises:
        InputError: If the number is not finite or not above 0.
    """
    if not (math.isfinite(value) and value > 0.0):
        raise InputError("expected a finite number above 0", where=what, value=value)
    return value


def numbers(text: str, count: int) -> tuple[float, ...] | None:
    """Return ``count`` numbers of a text, separated by commas, semicolons or blanks; None for any other text."""
    words = [word for word in re.split(r"[\s,;]+", text.strip()) if word]
    try:
        values = tuple(float(word) for word in words)
    except ValueError:
        return None
    return values if len(values) == count else None


class Field:
    """A text field for numbers.

    Args:
        tab: The tab of the field.
        label: Label.
        values: First values.
        action: Called with the typed numbers.
        digits: Decimals; None for six significant digits.
        hint: Tooltip.
    """

    def __init__(
        self,
        tab: Tab,
        label: str,
        values: Sequence[float],
        action: Callable[[tuple[float, ...]], Any],
        *,
        digits: int | None = 5,
        hint: str | None = None,
    ) -> None:
        """Add the field."""
        self._page, self._label, self._action, self._digits = tab.page, label, action, digits
        self._count = len(values)
        self._last = -PAUSE
        self.handle: Any = tab.gui.add_text(label, written(values, digits), hint=hint)
        tab.connect(self.handle, self._typed)

    def _typed(self, text: str) -> None:
        """Call the action with the typed numbers if their count is right."""
        self._last = time.monotonic()
        self._page.wake(PAUSE)
        values = numbers(text, self._count)
        if values is not None:
            self._action(values)

    def show(self, values: Sequence[float]) -> None:
        """Show numbers, unless the text already shows them or the user is typing."""
        text, typed = written(values, self._digits), numbers(self.handle.value, self._count)
        if typed is not None and written(typed, self._digits) == text:
            return
        if time.monotonic() - self._last < PAUSE:
            return
        if typed is None:
            expected = "a number" if self._count == 1 else f"{self._count} numbers"
            self._page.notify(f"{self._label}: expected {expected}. The value is still {text}.")
        self.handle.value = text

    @property
    def visible(self) -> bool:
        """Whether the field is shown."""
        return bool(self.handle.visible)

    @visible.setter
    def visible(self, on: bool) -> None:
        self.handle.visible = on

    def remove(self) -> None:
        """Remove the field."""
        self.handle.remove()


class Span:
    """Controls of the bounds of a range goal, in degrees or length units.

    Args:
        tab: The tab of the controls.
        skeleton: The given skeleton.
        editor: Editor of the range goal.
        action: Called with the lower and the upper bound, radians or length units.
    """

    def __init__(
        self, tab: Tab, skeleton: Skeleton, editor: GoalEditor, action: Callable[[float, float], None]
    ) -> None:
        """Add the controls."""
        self._action = action
        row = editor.row or 0
        slides = skeleton.joints[row].kind is Kind.SLIDE
        self.unit = tab.page.unit if slides else "°"
        self._per = 1.0 if slides else 180.0 / math.pi
        widest = kind_of(editor.kind).goal.first_values(skeleton, row, np.zeros(3))
        self._ends = float(widest["lower"]), float(widest["upper"])
        low, high = self._ends
        self._step = (high - low) / _PARTS if slides else 0.1
        self._low, self._high = widened(low, high, self._step) if slides else in_degrees(low, high)
        bounds, label = self._bounds(editor), f"Range {self.unit}".strip()
        self.slider: Any = tab.gui.add_multi_slider(label, self._low, self._high, self._step, self._within(bounds))
        tab.connect(self.slider, self._slid)
        self.field = Field(tab, "Lower, upper", bounds, self._set, digits=3, hint="inf or -inf: no bound.")

    def _bounds(self, editor: GoalEditor) -> tuple[float, float]:
        """Return the bounds of an editor in the unit of the controls."""
        lower, upper = bounds_of(editor) or self._ends
        return self._per * lower, self._per * upper

    def _within(self, bounds: Sequence[float]) -> tuple[float, float]:
        """Return bounds clamped to the ends of the slider."""
        lower, upper = (min(max(bound, self._low), self._high) for bound in bounds)
        return lower, upper

    def _slid(self, values: Sequence[float]) -> None:
        """Set the bounds from the slider, clamped to the joint's bounds; the slider's ends are rounded outwards."""
        self._set(tuple(min(max(float(x), self._per * self._ends[0]), self._per * self._ends[1]) for x in values))

    def _set(self, values: Sequence[float]) -> None:
        lower, upper = (value / self._per for value in values)
        self._action(lower, upper)

    def show(self, editor: GoalEditor) -> None:
        """Show the bounds of the editor."""
        bounds = self._bounds(editor)
        self.field.show(bounds)
        within = self._within(bounds)
        if max(abs(a - b) for a, b in zip(within, self.slider.value, strict=True)) > self._step:
            self.slider.value = within

    def now(self, value: float) -> str:
        """Return a value as text with its unit."""
        return f"{written((self._per * value,), 3)} {self.unit}".strip()

    def remove(self) -> None:
        """Remove the controls."""
        self.slider.remove()
        self.field.remove()


def in_degrees(low: float, high: float) -> tuple[float, float]:
    """Convert the ends of a slider from radians to degrees, rounded outwards to tenths because the page shows them."""
    low, high = math.degrees(low), math.degrees(high)
    return widened(math.floor(10.0 * low + 1e-6) / 10.0, math.ceil(10.0 * high - 1e-6) / 10.0, 0.1)


def widened(low: float, high: float, step: float) -> tuple[float, float]:
    """Return the ends of a slider, widened if they are less than a step apart."""
    return (low, high) if high - low >= step else (low - step, high + step)


def turn_of(angles: Sequence[float]) -> Array:
    """Return the rotation matrix of Euler angles about the fixed axes x, y and z, in this order, degrees.

    Raises:
        InputError: If an angle is not finite.
    """
    return fixed_xyz(*np.radians(as_numbers(angles, (3,), "turn")).tolist())


def angles_of(turn: Array) -> list[float]:
    """Return the angles of a rotation matrix, the inverse of ``turn_of``; in gimbal lock the third is 0."""
    cosine = math.hypot(turn[0, 0], turn[1, 0])
    b = math.atan2(-turn[2, 0], cosine)
    if cosine > 1e-6:
        a, c = math.atan2(turn[2, 1], turn[2, 2]), math.atan2(turn[1, 0], turn[0, 0])
    else:
        a, c = math.atan2(-turn[1, 2], turn[1, 1]), 0.0
    return [math.degrees(angle) for angle in (a, b, c)]
