"""The controls of the page of a live body: a meter, display options, and a recording."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from synovia.ik import Status
from synovia.text import counted
from synovia.viewer.follow.feed import Figures
from synovia.viewer.page.control import connect
from synovia.viewer.page.saving import motion_file
from synovia.viewer.page.style import BAD, DIM, GOOD, PRIMARY, WARN, bars, note, safe, status_line, style
from synovia.viewer.scene.skin import SHOWN

if TYPE_CHECKING:
    from synovia.viewer.follow.page import FollowPage

_FILES: Final = (("GLB", ".glb"), ("BVH", ".bvh"), ("npz", ".npz"))
_FULL: Final = 0.1  # seconds of delay that fill the bar
_MOST: Final = 8  # largest number of joints with a bar
_SLOW: Final = 0.9  # fraction of the rate below which ticks are late
_LINE: Final = '<div style="height:3.1em">{}</div>'  # same height as a line with a message


class Panel:
    """The controls of one page.

    Args:
        page: The page.
        title: Title of the page.
    """

    def __init__(self, page: FollowPage, title: str) -> None:
        """Add the controls."""
        self._page, self._feed = page, page.feed
        gui = page.client.gui
        gui.set_panel_label(f"Synovia: {title}"[:60])
        gui.add_html(style(f"{title} · Synovia"))
        self._status = gui.add_html("")
        self._meter = gui.add_html("")
        self._limits = gui.add_html("")
        self._on(gui.add_checkbox("In place", page.in_place, hint="Hold the hips still."), self._set_in_place)
        self._on(gui.add_dropdown("Look", SHOWN, initial_value="both"), page.figure.look)
        self._record = self._on(
            gui.add_checkbox("Record", self._feed.recording, hint="Every tick, at most ten minutes."), self._switch
        )
        self._length = gui.add_html("")
        for number, (name, ending) in enumerate(_FILES):
            button = gui.add_button(f"Save clip ({name})", color=None if number else PRIMARY)
            self._on(button, partial(self._save, ending), click=True, slow=True)
        self._passed = gui.add_html("")
        self.show()

    def _on(self, handle: Any, action: Any, *, click: bool = False, slow: bool = False) -> Any:
        """Call an action after each change of a control; return the control."""
        return connect(handle, action, self._page.message, on="click" if click else "update", slow=slow)

    def _set_in_place(self, on: Any) -> None:
        self._page.in_place = bool(on)

    def _switch(self, on: Any) -> None:
        self._feed.record(on=bool(on))

    def _save(self, ending: str, _: Any) -> None:
        """Send the recording to the browser; the server keeps no file."""
        self._page.client.send_file_download(
            f"live{ending}", motion_file(self._feed.clip(), ending)[0], save_immediately=True
        )

    def show(self) -> None:
        """Show the current figures; send only changes."""
        found, text = self._feed.figures(), self._page.message.text
        for handle, content in (
            (self._status, status_line(note(safe(text), WARN)) if text else _LINE.format(_status(found))),
            (self._meter, _meter(found, self._feed.rate)),
            (self._limits, _limits(found)),
            (self._length, note(f"{found.recorded:.1f} s recorded.") if found.recorded else ""),
            (self._passed, _passed(found)),
        ):
            if handle.content != content:
                handle.content = content
        if self._record.value != self._feed.recording:
            self._record.value = self._feed.recording


def _status(found: Figures) -> str:
    """Return the current state of the body as HTML."""
    if found.ended:
        return note("The source has ended.", DIM)
    if found.status is None:
        return note("Waiting for the source.", WARN)
    if found.status is Status.HOLDING:
        return note("Learning the source." if found.learning else "No source: the body holds.", WARN)
    if found.status is Status.STALLED:
        return note("A foot misses its target.", BAD)
    if found.limited:
        return note(f"Limits hold {counted(len(found.limited), 'joint')} back.", WARN)
    if found.status is Status.LATE:
        return note("Moving to the pose of the source.", WARN)
    return note("Following.", GOOD)


def _meter(found: Figures, rate: float) -> str:
    """Return rates and delay as bars, as HTML."""
    rows = [("Ticks", f"{found.ticks:.0f}/s", found.ticks / rate, found.ticks < _SLOW * rate)]
    if found.source is not None:
        rows.insert(0, ("Source", f"{found.source:.0f}/s", found.source / rate, False))
    if found.delay is not None:
        rows.append(("Delay", f"{1e3 * found.delay:.0f} ms", found.delay / _FULL, found.delay > _FULL))
    return bars([(name, text, share, "late" if bad else "") for name, text, share, bad in rows])


def _limits(found: Figures) -> str:
    """Return the joints that a limit restricts, the fastest first, as HTML."""
    if not found.limited:
        return ""
    joints = sorted(found.limited, key=lambda name: -found.speeds.get(name, 0.0))
    rows = [(name, found.limited[name], found.speeds.get(name, 1.0), found.limited[name]) for name in joints[:_MOST]]
    more = len(joints) - len(rows)
    return note("Held back by limits:") + bars(rows) + (note(f"and {more} more.", DIM) if more else "")


def _passed(found: Figures) -> str:
    """Return the report since the start as HTML."""
    if found.report is None:
        return ""
    facts = found.report.facts
    lines = [f"Since the beginning: {counted(facts['ticks'], 'tick')}, source lost {counted(facts['losses'], 'time')}."]
    if dropped := facts["samples_left_out"]:
        lines.append("Dropped: " + ", ".join(f"{n} {why}" for why, n in dropped.items()) + ".")
    sentences = [f"{one['limb'].replace('_', ' ')}: {one['text']}" for one in facts["findings"]]
    lines += [f"{line[0].upper()}{line[1:]}." for line in sentences]
    return "".join(note(safe(line), DIM) for line in lines)
