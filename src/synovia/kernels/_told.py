"""Tells when kernels are compiled, which takes seconds: records at level INFO of the logger ``synovia.kernels``.

Each has an attribute ``compiling``: True before, False after.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("synovia.kernels")


def _nothing() -> None:
    """Listen to nothing: a numba without events."""


listen: Callable[[], None] = _nothing

try:
    from numba.core import event as events

    class _Teller(events.Listener):
        """Hears of every compilation, also of helpers inside that of an entry point and of users' own functions."""

        def __init__(self) -> None:
            self._inside: list[tuple[Any, float]] = []

        def on_start(self, event: Any) -> None:
            """Tell of the outermost one, if it is ours."""
            function = event.data["dispatcher"].py_func
            self._inside.append((function, time.perf_counter()))
            if len(self._inside) == 1 and _is_ours(function):
                logger.info("compiling %s, once for this version", function.__name__, extra={"compiling": True})

        def on_end(self, event: Any) -> None:
            """Tell how long it took."""
            del event
            function, begun = self._inside.pop()
            if not self._inside and _is_ours(function):
                seconds = time.perf_counter() - begun
                logger.info("compiled %s in %.1f s", function.__name__, seconds, extra={"compiling": False})

    def _listen() -> None:
        """Hear of compilations from now on."""
        events.register("numba:compile", _Teller())

    listen = _listen
except (ImportError, AttributeError):  # pragma: no cover - a numba without such events, or none
    pass


def _is_ours(function: Any) -> bool:
    """Return whether a function is one of our kernels."""
    return (function.__module__ or "").startswith("synovia.kernels.")  # one made by exec may have none
