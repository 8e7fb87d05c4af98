"""The time line of a clip's layers: a bar with fades for each layer, which the mouse can move and stretch.

The time line is HTML. ``page/browser.js`` moves the dragged element, then writes the action into a hidden text field of
viser. Fields below the time line offer the same actions for the keyboard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from synovia.layers import Layer
from synovia.viewer.page.style import safe
from synovia.viewer.page.tab import Tab
from synovia.viewer.panel.controls import hidden_field

_GO, _CHANGE, _MUTE = range(3)  # codes of user actions: go to a frame, change a layer, mute a layer
_PARTS: Final = (  # draggable parts of a bar, in drawing order
    ("fade", "in"), ("fade", "out"), ("edge", "first"), ("edge", "last"), ("bar", "move"),
)  # fmt: skip


class Row(NamedTuple):
    """A row of the time line.

    Args:
        label: Name of the layer.
        first: First frame of the layer.
        last: Last frame of the layer.
        blend: Number of frames of each fade.
        muted: Whether the layer has no effect.
        missed: Whether the layer misses a goal.
    """

    label: str
    first: int
    last: int
    blend: int
    muted: bool
    missed: bool = False


class Done(NamedTuple):
    """Callbacks for user actions on the time line.

    Args:
        go: Called with a frame.
        select: Called with the row of a layer.
        change: Called with the row of a layer, its new first and last frame and the frames of its fades.
        mute: Called with the row of a layer.
    """

    go: Callable[[int], Any]
    select: Callable[[int], Any]
    change: Callable[[int, int, int, int], Any]
    mute: Callable[[int], Any]


class TimeLine:
    """The time line of one tab.

    Args:
        tab: The tab.
        done: Callbacks for user actions.
    """

    def __init__(self, tab: Tab, done: Done) -> None:
        """Add the time line."""
        self._done, self._rows, self._last = done, (), 1
        self._uuid = hidden_field(tab, "Layer of the time line", self._used, slow=True)
        self._html = tab.gui.add_html("")

    @property
    def visible(self) -> bool:
        """Whether the time line is shown."""
        return bool(self._html.visible)

    @visible.setter
    def visible(self, on: bool) -> None:
        self._html.visible = on

    def show(self, rows: Sequence[Row], chosen: int, last: int) -> None:
        """Show layers.

        Args:
            rows: The layers.
            chosen: Index of the selected layer.
            last: Last frame of the clip.
        """
        self._rows, self._last = tuple(rows), last
        self._html.content = timeline_html(rows, chosen, last, self._uuid)

    def _used(self, numbers: list[int]) -> None:
        """Handle a user action with the mouse.

        Args:
            numbers: Code of the action, the row, the first and the last frame, the frames of the fades, and a number
                that makes each message unique. To go to a frame, the frame is the first frame.
        """
        if len(numbers) != 6:
            return
        what, row, first, last, blend, _ = numbers
        if what == _GO:
            self._done.go(min(first, self._last))
            return
        if row >= len(self._rows):
            return
        self._done.select(row)
        if what == _MUTE:
            self._done.mute(row)
        elif what == _CHANGE and self._rows[row][1:4] != (first, last, blend):
            self._done.change(row, first, min(last, self._last), blend)


def timeline_of(layers: Sequence[Layer], count: int, missed: Sequence[str]) -> list[Row]:
    """Return the rows of layers on a clip of ``count`` frames; ``missed`` are labels of layers that miss goals."""
    return [Row(one.label, *one.bounds(count), one.blend, one.muted, one.label in missed) for one in layers]


def timeline_html(rows: Sequence[Row], chosen: int, last: int, uuid: str) -> str:
    """Return the time line as HTML.

    Args:
        rows: The layers.
        chosen: Index of the selected layer.
        last: Last frame of the clip.
        uuid: Identifier of the text field for user actions.
    """
    out: list[str] = []
    for number, row in enumerate(rows):
        state = " ".join(
            word for word, on in (("chosen", number == chosen), ("muted", row.muted), ("missed", row.missed)) if on
        )
        spoken = f"frames {row.first} to {row.last}, fades of {row.blend} frames{', muted' if row.muted else ''}"
        ends = f'data-first="{row.first}" data-last="{row.last}" data-blend="{row.blend}"'
        parts = "".join(f'<i class="{kind}" data-part="{part}"></i>' for kind, part in _PARTS)
        out.append(
            f'<div class="{state}"><button aria-pressed="{str(row.muted).lower()}" title="Mute">'
            f'{"◌" if row.muted else "●"}</button><b title="{safe(row.label)}">{safe(row.label)}</b>'
            f'<span role="img" aria-label="{safe(row.label)}: {spoken}" title="{safe(spoken.capitalize())}" {ends}'
            f' style="{places(row, last)}">{parts}</span></div>'
        )
    return f'<div class="synovia-line" data-uuid="{safe(uuid)}" data-last="{last}">{"".join(out)}</div>'


def places(row: Row, last: int) -> str:
    """Return the positions of the parts of a bar as CSS variables; ``page/browser.js`` computes the same values."""
    ends = {"a": row.first, "b": row.last, "l": max(row.first - row.blend, 0), "r": min(row.last + row.blend, last)}
    return ";".join(f"--{name}:{100.0 * frame / last:.3f}%" for name, frame in ends.items())
