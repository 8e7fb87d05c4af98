"""The time line of a page in its browser: ``timeline.js`` gets data from HTML elements, and sends actions back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Final

from synovia.errors import InputError
from synovia.model.anatomy.feet import runs
from synovia.model.finding import Finding
from synovia.model.geometry import Array, Bools
from synovia.viewer.page.control import Message, connect
from synovia.viewer.page.style import safe
from synovia.viewer.serving.kept import uuid_of

_LONGEST: Final = 400  # largest number of characters of an action
_NUMBERS: Final = count()  # a number for each time line, so that a browser notices another page
_MOST: Final = 200  # largest number of marks of one finding

Actions = Mapping[str, Callable[..., Any]]


class TimeLine:
    """The time line of one page.

    Args:
        gui: viser's controls of the browser.
        message: Line of the page that shows the errors of actions.
        quick: Functions to call, by the name of the action that the browser sends.
        slow: The same for actions that take long; meanwhile, the server handles other messages of the browser.
    """

    def __init__(self, gui: Any, message: Message, quick: Actions, slow: Actions | None = None) -> None:
        """Add the hidden elements."""
        self._number = next(_NUMBERS)
        uuids: list[str] = []
        for label, actions in (("Time line", quick), ("Layers of the time line", slow or {})):
            field = gui.add_text(label, "", visible=False)
            connect(field, lambda text, actions=actions: _act(actions, text), message, slow=actions is slow)
            uuids.append(uuid_of(field))
        self._fields, self._slow = " ".join(uuids), " ".join(slow or {})
        self._data: Any = gui.add_html("")
        self._now: Any = gui.add_html("")

    def show(self, data: Mapping[str, Any] | None) -> None:
        """Show a clip and its rows; None hides the time line."""
        text = safe(json.dumps(data, separators=(",", ":"), allow_nan=False))
        self._data.content = (
            f'<div hidden class="synovia-time" data-fields="{safe(self._fields)}" data-slow="{self._slow}"'
            f' data-content="{text}"></div>'
        )

    def at(self, frame: float, *, playing: bool, moved: Array | None = None) -> None:
        """Show the current frame, and move the camera to ``moved``, (3,), from its first position, scene units."""
        place = "" if moved is None else " ".join([str(self._number), *(f"{value:.4f}" for value in moved.tolist())])
        text = f'<div hidden class="synovia-now" data-now="{frame:.3f} {int(playing)}" data-at="{place}"></div>'
        if self._now.content != text:
            self._now.content = text


def _act(actions: Actions, text: str) -> None:
    """Call the action in a JSON list: a number that makes each text unique, the action's name, and its arguments.

    Raises:
        InputError: If the text is no action.
    """
    if not text:
        return
    try:
        given: list[Any] = json.loads(text) if len(text) <= _LONGEST else []
        action, arguments = actions[given[1]], given[2:]
        if not all(isinstance(one, int | float | str) for one in arguments):
            raise TypeError
    except (ValueError, TypeError, LookupError):
        raise InputError("action of the time line", value=text[:80], expected="a name and its arguments") from None
    action(*arguments)


def spans_of(flags: Bools) -> list[list[int]]:
    """Return the first and the last frame of each run of true flags."""
    return [[first, end - 1] for first, end in runs(flags)]


def findings_of(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the rows of findings that concern some frames."""
    out: list[dict[str, Any]] = []
    for one in findings:
        if one.frames:
            spans: list[list[int]] = []
            for frame in one.frames:
                if spans and spans[-1][1] == frame - 1:
                    spans[-1][1] = frame
                else:
                    spans.append([frame, frame])
            text = ": ".join(part for part in (one.layer, one.limb.replace("_", " "), one.text) if part)
            out.append({"text": text, "spans": spans[:_MOST], "level": one.level})
    return out
