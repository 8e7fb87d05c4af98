"""The tab *Open*: open another model, or retarget a clip to the body; files can also be dropped on the page."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from synovia.errors import UnsupportedError
from synovia.files.layers import is_layer_file, read_layers
from synovia.files.poses import load_poses
from synovia.io.bundled import bundled_names
from synovia.io.load import format_of, formats, load_clips
from synovia.text import counted
from synovia.viewer.editing.clip.animation import Animation
from synovia.viewer.editing.clip.layers import ClipLayers
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.poses import Poses
from synovia.viewer.page.style import LARGEST_FILE, PRIMARY, note, safe
from synovia.viewer.page.tab import Desk, Tab
from synovia.viewer.serving.recent import recent

_HELP: Final = (
    "Drop a file anywhere on the page, or choose one: GLB, FBX, URDF, BVH and the other formats that Synovia reads. A"
    " clip can play on this body, or show its own."
)
_FORBIDDEN: Final = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]+')  # characters that some systems do not allow in names
_LENGTH: Final = 60  # largest number of characters of a file's name, so that it has less than 255 bytes
_EITHER: Final = ("FBX",)  # names of formats whose files may be clips or characters


class Open(Tab):
    """Opens models, and clips, poses and layers for the body of the page.

    Args:
        page: The page.
        poses: Operations on whole poses of the body.
        layers: The layers on the clip.
        animation: The clip.
    """

    def __init__(self, page: Desk, poses: Poses, layers: ClipLayers, animation: Animation) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._poses, self._layers, self._animation = poses, layers, animation

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self._modal: Any = None
        kinds = ",".join(sorted({ending for fmt in formats() for ending in fmt.extensions} | {".json"}))
        button = gui.add_upload_button("Open a file", mime_type=kinds, color=PRIMARY)
        self.connect(button, self._received, upload=True, slow=True)
        gui.add_html(note(_HELP))
        self._models: dict[str, str | Path] = {name: name for name in bundled_names()}
        for path in recent():
            self._models.setdefault(f"{path.name} ({path.parent.name})", path)
        self._choice = gui.add_dropdown("Model", tuple(self._models), hint="Bundled models, and those opened last.")
        if self.page.command in self._models:
            self._choice.value = self.page.command
        self.connect(gui.add_button("Open this model"), lambda _: self._open(), click=True, slow=True)

    def _open(self) -> None:
        """Open the chosen model."""
        self.page.navigation.open(self._models[self._choice.value])

    def _received(self, file: Any) -> None:
        """Store a file that the browser has sent, and open it; for a clip, ask how to open it.

        Raises:
            SynoviaError: If the file cannot be read.
        """
        if len(file.content) > LARGEST_FILE:
            raise UnsupportedError("the file is too large", value=f"{len(file.content) >> 20} MiB", expected="256 MiB")
        name = _FORBIDDEN.sub("_", Path(file.name.encode("utf-8", "replace").decode()).name).strip(". ")[-_LENGTH:]
        name = name.strip(". ") or "file"
        folder = tempfile.mkdtemp(dir=self.page.host.folder)  # another page may have sent a file with the same name
        path = Path(folder) / name
        path.write_bytes(file.content)
        if path.suffix.lower() in (".toml", ".json") and is_layer_file(path):
            layers = read_layers(path, self._animation.rooted.skeleton)
            self._layers.open(layers)
            self.page.notify(f"Put {counted(len(layers), 'layer')} of {path.name} on the clip.")
            return
        if path.suffix.lower() == ".json":
            poses = load_poses(path, self._poses.given)
            self._poses.add(poses)
            self.page.notify(f"Added to the poses, under Pose: {', '.join(poses)[:200] or 'none'}.")
            return
        kind = format_of(path)
        if kind.name in _EITHER:
            clip = bool(load_clips(path).motions)
        else:
            clip = kind.holds_motions and not kind.copies  # a glTF is a character, with or without clips
        if clip:
            self._ask(path)
        else:
            self._show(lambda: self.page.navigation.open(path))

    def _ask(self, path: Path) -> None:
        """Ask how to open a clip."""
        name = self._poses.given.name
        self._close()
        choices: tuple[tuple[str, Callable[[], None]], ...] = (
            (f"Play it on {name}", lambda: self.page.navigation.play(path)),
            (f"Map it to {name}", lambda: self.page.navigation.map(path)),
            ("Open its own body", lambda: self.page.navigation.open(path)),
        )
        with self.gui.add_modal(path.name) as self._modal:
            self.gui.add_html(note(f"{safe(path.name)} is a clip. What should happen with it?"))
            for number, (label, action) in enumerate(choices):
                button = self.gui.add_button(label[:60], color=None if number else PRIMARY)
                self.connect(button, lambda _, action=action: self._show(action), click=True, slow=True)
            self.connect(self.gui.add_button("Cancel"), self._close, click=True)

    def _show(self, action: Callable[[], None]) -> None:
        """Close the question, show that the file is being read, and call ``action``, which opens, plays or maps it."""
        self._close()
        self.page.notify("Reading the file.")
        self.page.client.flush()
        action()

    def _close(self, _: Any = None) -> None:
        """Close the question."""
        if self._modal is not None:
            self._modal.close()
            self._modal = None

    def show(self, frame: Frame) -> None:
        """Do nothing: the tab does not depend on the pose."""
        del frame
