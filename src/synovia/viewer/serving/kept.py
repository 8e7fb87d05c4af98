"""The work of tabs whose browser has left: a tab that is loaded again continues where it was."""

from __future__ import annotations

import html
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

_MOST: Final = 6  # largest number of tabs whose work is kept
_LONGEST: Final = 80  # largest number of characters of the name of a tab
_PATIENCE: Final = 2.0  # seconds to wait for the name of a tab, if the kept work may belong to it
_UUID: Final = attrgetter("_impl.uuid")

Work = TypeVar("Work")


def uuid_of(control: Any) -> str:
    """Return the identifier of a control, for which viser has no public name; empty if there is none."""
    with suppress(AttributeError):
        return str(_UUID(control))
    return ""


class Visitor:
    """A connected browser, which reports the name of its tab. The name stays the same if the tab is loaded again.

    Args:
        client: The browser.
        late: Called with the name if it comes after ``wait`` has ended.
    """

    def __init__(self, client: Any, late: Callable[[str], None]) -> None:
        """Ask the browser for the name of its tab."""
        self.name = ""
        self._late = late
        self._known, self._waited, self._lock = threading.Event(), False, threading.Lock()
        field = client.gui.add_text("Tab of the browser", "", visible=False)

        async def tell(event: Any) -> None:
            with self._lock:
                self.name = str(event.target.value)[:_LONGEST]
                self._known.set()
            if self._waited:
                self._late(self.name)

        field.on_update(tell)
        code = files("synovia.viewer").joinpath("serving/tab.js").read_text(encoding="utf-8")
        script = html.escape(f"window.synoviaTab={json.dumps(uuid_of(field))};{code}", quote=True)
        client.gui.add_html(f'<style onload="{script}"></style>')

    def wait(self, seconds: float) -> str:
        """Wait for the name, at most some seconds, and return it; empty if it is unknown."""
        self._known.wait(seconds)
        with self._lock:
            self._waited = not self.name
            return self.name


class Kept(Generic[Work]):
    """The work of closed tabs, by the name of the tab; beyond ``_MOST`` tabs, the oldest work is dropped."""

    def __init__(self) -> None:
        """Start empty."""
        self._work: OrderedDict[str, Work] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, work: Work) -> None:
        """Keep the work of a tab; do nothing for a tab without a name."""
        with self._lock:
            if name:
                self._work[name] = work
                self._work.move_to_end(name)
            while len(self._work) > _MOST:
                self._work.popitem(last=False)

    def take(self, name: str) -> Work | None:
        """Return the work of a tab and forget it; None if there is none."""
        with self._lock:
            return self._work.pop(name, None)

    def returned(self, visitor: Visitor) -> Work | None:
        """Wait for the name of a browser's tab, and return the tab's work; None if there is none."""
        return self.take(visitor.wait(_PATIENCE if self._work else 0.0))
