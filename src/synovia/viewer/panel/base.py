"""What the tabs share: the page they belong to, callbacks that report mistakes, and text that cannot carry markup."""

from __future__ import annotations

import html
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from synovia.errors import SynoviaError
from synovia.viewer.engine import Frame

if TYPE_CHECKING:
    from synovia.viewer.page import Page


class Tab(ABC):
    """One tab of the panel.

    Args:
        page: The page that it belongs to.
    """

    def __init__(self, page: Page) -> None:
        """Keep the page; ``build`` makes the controls."""
        self.page = page
        self.session = page.session
        self.gui = page.client.gui

    @abstractmethod
    def build(self) -> None:
        """Make the controls, inside the tab."""

    @abstractmethod
    def show(self, frame: Frame) -> None:
        """Bring what the controls show up to date; called a few times a second."""

    def record(self, frame: Frame, now: float) -> None:
        """Take note of a frame; called with every one.

        Args:
            frame: The frame.
            now: Seconds of a clock that only goes forward.
        """
        del frame, now

    def hear(self, handle: Any, action: Callable[[Any], None], *, click: bool = False, slow: bool = False) -> Any:
        """Let an action follow a control, with its new value; mistakes are shown on the page.

        Args:
            handle: The control.
            action: What to do.
            click: Whether the control is a button or a group of them.
            slow: Whether the action takes long, and must not hold up other messages.
        """
        at_work = threading.Lock()

        def act(event: Any) -> None:
            if event.client is None:  # set by the page itself
                return
            if slow and not at_work.acquire(blocking=False):
                self.page.tell("That is still being made.")
                return
            told = self.page.told
            try:
                action(handle.value)
            except (SynoviaError, ValueError, TypeError, ArithmeticError, LookupError) as error:
                self.page.tell(str(error))
            else:
                self.page.mended(told)
            finally:
                if slow:
                    at_work.release()

        async def soon(event: Any) -> None:
            act(event)

        register = handle.on_click if click else handle.on_update
        register(act if slow else soon)
        return handle


def safe(text: object) -> str:
    """Return text from a file or a person as HTML that shows it and does nothing else."""
    return html.escape(str(text), quote=True)


def note(text: str, colour: str = "inherit") -> str:
    """Return a small paragraph of HTML (already safe)."""
    return (
        f'<div style="padding:0.15em 0.6em 0.45em 0.6em;font-size:0.86em;line-height:1.45;color:{colour}">{text}</div>'
    )
