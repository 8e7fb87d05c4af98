"""The sheet of keys: a row for each part of the body, with a mark for each key that can be dragged with the mouse.

The sheet is HTML. ``page/browser.js`` moves the mark that is dragged, and then writes the result of the drag into a
hidden text field of viser. Buttons below the sheet do the same without a mouse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synovia.layers import Key
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.page.style import safe
from synovia.viewer.page.tab import Tab
from synovia.viewer.panel.controls import hidden_field

Part = frozenset[int] | None  # rows of the joints of a part of the body; None for the whole body


class Sheet:
    """The sheet of keys of one tab.

    Args:
        tab: The tab.
        animation: The clip.
    """

    def __init__(self, tab: Tab, animation: Animation) -> None:
        """Add the sheet."""
        self._animation = animation
        self._parts: list[Part] = []
        self._uuid = hidden_field(tab, "Key of the sheet", self._used)
        self._html = tab.gui.add_html("")

    def show(self, keys: Sequence[Key], parts: Mapping[str, Part], last: int) -> None:
        """Show keys.

        Args:
            keys: The keys.
            parts: Parts of the body by label.
            last: Last frame of the clip.
        """
        self._parts = list(parts.values())
        frames = {
            label: [key.frame for key in keys if key.frame is not None and self._animation.keyed(key, part)]
            for label, part in parts.items()
        }
        self._html.content = sheet_html(frames, last, self._uuid)

    def _used(self, numbers: list[int]) -> None:
        """Move or copy a key, or go to a frame.

        Args:
            numbers: Row of the sheet, frame of the key, frame at which the key was dropped, 1 for a copy, and a number
                that makes the text of each drag or click differ from the last one. After a click, both frames are
                equal.
        """
        motion = self._animation.play.motion
        if len(numbers) != 5 or numbers[0] >= len(self._parts) or motion is None:
            return
        row, frame, to, copy, _ = numbers
        if frame == to:
            self._animation.set_play(time=min(to, len(motion) - 1) / motion.fps, playing=False)
        else:
            self._animation.move_key(frame, to, copy=copy == 1, part=self._parts[row])


def sheet_html(keyed: Mapping[str, Sequence[int]], last: int, uuid: str) -> str:
    """Return the sheet of keys as HTML.

    Args:
        keyed: Frames of the keys of each part of the body, by its label.
        last: Last frame of the clip.
        uuid: Identifier of the text field that receives the result of a drag or click.
    """
    rows: list[str] = []
    for label, frames in keyed.items():
        marks = "".join(
            f'<i data-frame="{frame}" title="Frame {frame}" style="left:{100.0 * frame / last:.2f}%"></i>'
            for frame in frames
        )
        spoken = f"frames {', '.join(map(str, frames))}" if frames else "no key"
        bar = f'<span role="img" aria-label="{safe(label)}: {spoken}">{marks}</span>'
        rows.append(f"<div><b>{safe(label)}</b>{bar}</div>")
    return f'<div class="synovia-sheet" data-uuid="{safe(uuid)}" data-last="{last}">{"".join(rows)}</div>'
