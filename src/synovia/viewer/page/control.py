"""Controls of a page: each event of a control calls an action, and the page shows the errors of the action."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from synovia.errors import SynoviaError
from synovia.viewer.page.style import reading_time

Event = Literal["update", "click", "upload", "trigger"]


class Message:
    """The message of a page, which disappears after a few seconds or when a later action succeeds.

    Attributes:
        queue: Runs the slow actions of the page, one after another.

    Args:
        wake: Updates the text of the page now, and again after the given number of seconds.
        folder: Folder of the files that a browser has sent; messages show only the names of these files.
    """

    def __init__(self, wake: Callable[[float], None], folder: Path) -> None:
        """Start without a message."""
        self._kept = re.compile(re.escape(f"{folder}{os.sep}") + r"(?:[^/\\\s]+[/\\])?")
        self._now = ("", 0.0)  # the text, and the time at which it was shown
        self._wake = wake
        self.queue = ThreadPoolExecutor(1, "synovia actions")

    @property
    def text(self) -> str:
        """The text; empty after its display time."""
        text, when = self._now
        return text if time.monotonic() - when < reading_time(text) else ""

    @property
    def mark(self) -> tuple[str, float]:
        """The current message, for ``withdraw``."""
        return self._now

    def show(self, text: str) -> None:
        """Show a text."""
        text = self._kept.sub("", text)
        self._now = (text, time.monotonic())
        self._wake(reading_time(text))

    def withdraw(self, mark: tuple[str, float]) -> None:
        """Remove the marked message, unless another message has replaced it."""
        if self._now == mark and mark[0]:
            self._now = ("", 0.0)
            self._wake(0.0)


def connect(
    handle: Any,
    action: Callable[[Any], None],
    message: Message,
    *,
    on: Event = "update",
    slow: bool = False,
) -> Any:
    """Call an action with the value of a control after each event, and return the control.

    Args:
        handle: The control.
        action: The function to call.
        message: Message that shows the errors of the action.
        on: The event: ``"update"`` of a value, ``"click"`` of a button or a group of buttons, ``"upload"`` of a file by
            a button, or ``"trigger"`` of a command with a key, which has no value.
        slow: Whether the action is slow. The slow actions of a page run one after another in the order of their events,
            while other messages are processed: what is saved has all changes made before. A click on a button is
            refused as long as an earlier click waits.
    """
    last: Future[None] | None = None

    def act(value: Any) -> None:
        before = message.mark
        try:
            action(value)
        except (SynoviaError, ValueError, TypeError, ArithmeticError, LookupError, OSError) as error:
            message.show(str(error))
        else:
            message.withdraw(before)

    async def heard(event: Any) -> Future[None] | None:
        nonlocal last
        if event.client is None:  # the page itself, not the user, has set the value
            return None
        value = None if on == "trigger" else handle.value
        if not slow:
            act(value)
        elif on == "click" and last is not None and not (last.running() or last.done()):
            message.show("The last request is still being processed.")
        else:
            last = message.queue.submit(act, value)
            last.add_done_callback(lambda done: done.result())  # an unexpected error is logged
            return last
        return None

    getattr(handle, f"on_{on}")(heard)
    return handle
