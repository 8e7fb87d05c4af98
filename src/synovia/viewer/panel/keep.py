"""The tab *Keep*: download goals, pose, layer, motion, a picture and an offline page, and copy Python code."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from synovia.draw.film import check_film
from synovia.draw.picture import png
from synovia.errors import UnsupportedError
from synovia.model.geometry import Array
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.engine import Frame
from synovia.viewer.offline import page_text
from synovia.viewer.page.saving import (
    Files,
    Recording,
    film_file,
    motion_file,
)
from synovia.viewer.page.style import DIM, PRIMARY, WARN, note, safe
from synovia.viewer.page.tab import Desk, Tab


class Keep(Tab):
    """Controls for downloads. The server itself writes no file.

    Args:
        page: The page.
        files: Exports of the page.
        body: The body.
    """

    def __init__(self, page: Desk, files: Files, body: Body) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._files, self._body = files, body

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self._recording = Recording()
        self._modal: Any = None
        files = self._files
        for title, name, content in (
            ("Save goals", "goals.toml", files.goal_file),
            ("Save pose", "pose.json", files.pose_file),
            ("Save layers", "edit.toml", files.layer_file),
        ):
            self.connect(
                gui.add_button(title),
                lambda _, name=name, content=content: self._send(name, content()),
                click=True,
            )
        self.connect(gui.add_checkbox("Record", False, hint="30 frames per second, at most ten minutes."), self._switch)
        self._count = gui.add_html(
            note("Without a recording, the clip is saved with its layers. MP4 needs the extra [film].")
        )
        self._endings = files.endings()
        first = next(label for label, ending in self._endings.items() if ending == ".glb")
        self._format: Any = gui.add_dropdown("Motion as", tuple(self._endings), initial_value=first)
        self.connect(self._format, lambda _: self.page.redraw())
        self._losses: Any = gui.add_html("")
        self._shown: tuple[Any, ...] = ()  # format and clip whose losses are shown
        self.connect(gui.add_button("Save motion", color=PRIMARY), self._motion, click=True, slow=True)
        self.connect(gui.add_button("Save page (HTML)"), self._page, click=True, slow=True)
        self.connect(gui.add_button("Save picture"), self._picture, click=True, slow=True)
        self.connect(gui.add_button("Copy as Python"), self._python, click=True)

    def _send(self, name: str, content: bytes) -> None:
        self.page.client.send_file_download(name, content, save_immediately=True)

    def _switch(self, on: Any) -> None:
        if on:
            self._recording.start(self._body.pose, time.monotonic())
        else:
            self._recording.stop(time.monotonic())
        self.page.redraw()

    def record(self, frame: Frame, now: float) -> None:
        """Record a frame if the recording is on."""
        self._recording.take(frame.pose, now)

    def _motion(self, _: Any) -> None:
        """Send the motion in the chosen format, and say what the file does not keep."""
        ending = self._endings[self._format.value]
        motion = self._files.solved_clip(self._kept())
        name = f"{_file_name(self._body.given.name if self._files.clip is None else motion.name)}{ending}"
        if ending == ".mp4":
            check_film(Path(name), force=True)  # reports a missing package before the work begins
            self.page.notify("Drawing the film. This takes a moment.")
            self._send(name, film_file(motion, self.page.scene.look, dark=self.page.dark))
            return
        content, said = motion_file(motion, ending)
        self._send(name, content)
        if said:
            self.page.notify(" ".join(said))

    def _page(self, _: Any) -> None:
        targets = self._files.targets()
        text = page_text(self._files.solved_clip(self._kept()), targets)
        self._send(f"{_file_name(self._body.given.name)}.html", text.encode())

    def _kept(self) -> list[Array]:
        """Return the recorded joint values; an empty list if the root mode has changed since."""
        rows = self._recording.rows(time.monotonic())
        return [row for row in rows if len(row) == self._body.skeleton.nq]

    def _picture(self, _: Any) -> None:
        from PIL import Image

        camera = self.page.client.camera
        try:
            picture = self.page.client.get_render(
                camera.image_height, camera.image_width, transport_format="png", timeout=60.0
            )
        except RuntimeError:  # the browser has disconnected
            raise UnsupportedError("the browser sent no picture") from None
        self._send(f"{_file_name(self._body.given.name)}.png", png(Image.fromarray(picture)))

    def _python(self, _: Any) -> None:
        text = self._files.python_text()
        command = safe(self._files.command_line())
        copy = (
            "navigator.clipboard.writeText(this.parentElement.querySelector('pre').innerText);this.innerText='Copied'"
        )
        self._close()
        with self.gui.add_modal("Python") as self._modal:
            self.gui.add_html(
                f'<div style="padding:.4em .8em"><button onclick="{copy}" style="float:right">Copy</button>'
                f'<pre class="synovia-code">{safe(text)}</pre>'
                "On the command line, with the saved goals and pose:<br>"
                f"<code style='white-space:pre-wrap'>{command}</code></div>"
            )
            self.connect(self.gui.add_button("Close"), self._close, click=True)

    def _close(self, _: Any = None) -> None:
        """Close the dialog with the Python code."""
        if self._modal is not None:
            self._modal.close()
            self._modal = None

    def show(self, frame: Frame) -> None:
        """Show what the chosen format does not keep, and the length of the recording."""
        if (state := (self._format.value, self._files.clip)) != self._shown:
            self._shown, (lost, text) = state, self._files.losses(self._endings[state[0]])
            self._losses.content = note(safe(text), WARN if lost else DIM)
        seconds = self._recording.seconds
        if self._recording.on:  # the page shows no frames at rest, so no length is shown here
            self._count.content = note("Recording, also at rest.")
        elif seconds:
            self._count.content = note(f"{seconds:.1f} s recorded.")


def _file_name(name: str) -> str:
    """Return a name without characters that file names cannot contain."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:60] or "synovia"
