"""Numbers that are typed as text: every key is heard, and what is typed stays until it has been typed to its end.

A browser's number field loses the sign of ``-0.25`` on the way (it becomes ``-0``, then ``0``), and says nothing when
it is emptied; a line of text does neither.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import InputError

if TYPE_CHECKING:
    from synovia.viewer.panel.base import Tab

PAUSE: Final = 2.0  # seconds after the last key before a field shows again what the model has


def written(values: Sequence[float], digits: int | None) -> str:
    """Return numbers as text, with so many digits after the point, or six in all; there is no negative zero."""
    if digits is None:
        return ", ".join(f"{float(value) + 0.0:.6g}" for value in values)
    return ", ".join(f"{round(float(value), digits) + 0.0:.10g}" for value in values)


def whole(what: str, value: float) -> int:
    """Return a whole number.

    Raises:
        InputError: If it is none.
    """
    if not float(value).is_integer():
        raise InputError(f"{what} is no whole number", value=value)
    return int(value)


def numbers(text: str, count: int) -> tuple[float, ...] | None:
    """Return the numbers of a text, between commas, semicolons or blanks; None where it is not so many."""
    words = [word for word in re.split(r"[\s,;]+", text.strip()) if word]
    try:
        values = tuple(float(word) for word in words)
    except ValueError:
        return None
    return values if len(values) == count else None


class Field:
    """A line of text that stands for numbers.

    Args:
        tab: The tab that it is made in.
        label: Its label.
        values: Numbers that it shows at first.
        action: Called with the numbers when others are typed.
        digits: How many digits after the point are shown; None for six in all.
        hint: What a pointer that rests on it tells.
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
        """Make the control."""
        self._page, self._label, self._action, self._digits = tab.page, label, action, digits
        self._count = len(values)
        self._last = -PAUSE
        self.handle: Any = tab.gui.add_text(label, written(values, digits), hint=hint)
        tab.hear(self.handle, self._typed)

    def _typed(self, text: str) -> None:
        """Take what is typed, as soon as it is as many numbers as there should be."""
        self._last = time.monotonic()
        self._page.wake(PAUSE)
        values = numbers(text, self._count)
        if values is not None:
            self._action(values)

    def show(self, values: Sequence[float]) -> None:
        """Show numbers, unless what stands there means the same or is being typed."""
        text, typed = written(values, self._digits), numbers(self.handle.value, self._count)
        if typed is not None and written(typed, self._digits) == text:
            return
        if time.monotonic() - self._last < PAUSE:
            return
        if typed is None:
            asked = "a number" if self._count == 1 else f"{self._count} numbers"
            self._page.tell(f"{self._label} takes {asked}; it is {text} as before.")
        self.handle.value = text

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return bool(self.handle.visible)

    @visible.setter
    def visible(self, on: bool) -> None:
        self.handle.visible = on

    def remove(self) -> None:
        """Take it away."""
        self.handle.remove()
