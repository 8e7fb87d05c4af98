"""The tab of what can be taken away: goals, Python, pose, motion, a picture, and a page that plays offline."""

from __future__ import annotations

import re
import threading
from typing import Any, Final

import numpy as np

from synovia.geometry import Array
from synovia.viewer.engine import Frame
from synovia.viewer.offline import page_text
from synovia.viewer.panel.base import Tab, note, safe
from synovia.viewer.saving import command_line, goal_file, motion_file, pose_file, python_text, solved_clip
from synovia.viewer.wish import kind_of

_RATE: Final = 30.0  # recorded frames a second
_LONGEST: Final = 30 * 60 * 10  # recorded frames; ten minutes


class Keep(Tab):
    """Hands things out as downloads; nothing is written on the machine that serves the page."""

    def build(self) -> None:
        """Make the controls."""
        gui = self.gui
        self._rows: list[Array] = []
        self._shape = 0
        self._next = 0.0
        self._recorder = threading.Lock()
        self._modal: Any = None
        self.hear(gui.add_button("Save goals"), lambda _: self._send("goals.toml", goal_file(self.session)), click=True)
        self.hear(gui.add_button("Save pose"), lambda _: self._send("pose.json", pose_file(self.session)), click=True)
        self._record = self.hear(
            gui.add_checkbox("Record", False, hint="30 frames a second, at most ten minutes."), self._recording
        )
        self._count = gui.add_html(note("Without a recording, the clip with the goals on top is saved."))
        self.hear(gui.add_button("Save motion (BVH)"), self._motion, click=True, slow=True)
        self.hear(gui.add_button("Save page (HTML)"), self._page, click=True, slow=True)
        self.hear(gui.add_button("Save picture"), self._picture, click=True, slow=True)
        self.hear(gui.add_button("Copy as Python"), self._python, click=True)

    def _send(self, name: str, content: bytes) -> None:
        self.page.client.send_file_download(name, content, save_immediately=True)

    def _recording(self, on: Any) -> None:
        if on:
            with self._recorder:
                self._rows, self._next = [], 0.0

    def record(self, frame: Frame, now: float) -> None:
        """Keep a frame, where recording is on; called with every frame."""
        if not self._record.value or now < self._next or len(self._rows) >= _LONGEST:
            return
        with self._recorder:
            if self._rows and len(self._rows[0]) != len(frame.pose.q):  # another root: begin anew
                self._rows = []
            self._next = max(self._next + 1.0 / _RATE, now)
            self._rows.append(frame.pose.q.copy())

    def _motion(self, _: Any) -> None:
        self._send("motion.bvh", motion_file(solved_clip(self.session, self._kept())))

    def _page(self, _: Any) -> None:
        with self.session.lock:
            wishes = [wish for wish in self.session.wishes if wish.enabled and kind_of(wish.kind).places]
            targets = np.array([wish.place for wish in wishes]).reshape(-1, 3)
        text = page_text(solved_clip(self.session, self._kept()), targets)
        self._send(f"{_file_name(self.session.given.name)}.html", text.encode())

    def _kept(self) -> list[Array]:
        """Return what was recorded with the root that is there now."""
        with self._recorder:
            return [row for row in self._rows if len(row) == self.session.skeleton.nq]

    def _picture(self, _: Any) -> None:
        from synovia.viewer.saving import png

        camera = self.page.client.camera
        picture = self.page.client.get_render(
            camera.image_height, camera.image_width, transport_format="png", timeout=60.0
        )
        self._send(f"{_file_name(self.session.given.name)}.png", png(picture))

    def _python(self, _: Any) -> None:
        model = self.page.command
        text = python_text(self.session, model)
        command = safe(command_line(self.session, model))
        copy = (
            "navigator.clipboard.writeText(this.parentElement.querySelector('pre').innerText);this.innerText='Copied'"
        )
        if self._modal is not None:
            self._modal.close()
        with self.gui.add_modal("Python") as modal:
            self.gui.add_html(
                f'<div style="padding:.4em .8em"><button onclick="{copy}" style="float:right">Copy</button>'
                f'<pre style="overflow:auto;max-height:50vh;font-size:.84em">{safe(text)}</pre>'
                f"On the command line, with saved goals and pose:<br><code>{command}</code></div>"
            )
            self.hear(self.gui.add_button("Close"), self._close, click=True)
        self._modal = modal

    def _close(self, _: Any) -> None:
        """Close the window with the Python code."""
        if self._modal is not None:
            self._modal.close()
            self._modal = None

    def show(self, frame: Frame) -> None:
        """Show how much is recorded."""
        if self._record.value or self._rows:
            self._count.content = note(f"{len(self._rows)} frames recorded, {len(self._rows) / _RATE:.1f} s.")


def _file_name(name: str) -> str:
    """Return a name that is harmless as a file's."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:60] or "synovia"
