"""A tab of the panel, and the interface of its page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from synovia.surface import Surface
from synovia.viewer.editing.engine import Frame
from synovia.viewer.page.control import Message, connect
from synovia.viewer.scene.scene import Scene
from synovia.viewer.serving.view import Host

if TYPE_CHECKING:
    from viser import ClientHandle


class Navigation(Protocol):
    """Navigation from the page of a body to other pages."""

    def open(self, model: str | Path) -> None:
        """Show another model."""

    def play(self, clip: str | Path) -> None:
        """Retarget a clip to the body and play it."""

    def map(self, clip: str | Path) -> None:
        """Show a clip next to its retargeted result on the body, to edit the map."""


class Desk(Protocol):
    """Interface of a page for tabs and keys: display and selection, but not the edited data.

    Attributes:
        client: The browser.
        host: Interface of the view that serves the page.
        navigation: Navigation to other pages.
        command: File or name of the model.
        surface: Surface of the body.
        scene: The scene.
        frame: The last frame; None before the first frame.
        message: The message that the page shows.
        joint_labels: Row of each joint of the given skeleton, by its label.
        unit: Name of the length unit; empty if it is unknown.
        selected: Key of the selected goal.
        joint: The selected joint, a row of the given skeleton.
        dark: Whether the page is dark.
        closed: Whether the browser has disconnected.
    """

    client: ClientHandle
    host: Host
    navigation: Navigation
    command: str
    surface: Surface
    scene: Scene
    frame: Frame | None
    message: Message
    joint_labels: dict[str, int]
    unit: str
    selected: int | None
    joint: int | None
    dark: bool
    closed: bool

    def select(self, key: int | None) -> None:
        """Select a goal, or none, and its joint."""

    def select_joint(self, row: int) -> None:
        """Select a joint, a row of the given skeleton, and its goal if it has one."""

    def find_joint(self) -> None:
        """Open the search in the tree of joints."""

    def refresh(self) -> None:
        """Update the tabs after a change that may have replaced the goals."""

    def redraw(self) -> None:
        """Update scene and text after a change that is no edit."""

    def set_dark(self, dark: bool) -> None:
        """Switch to the dark or the light theme."""

    def notify(self, text: str) -> None:
        """Show a message for a few seconds."""

    def wake(self, seconds: float) -> None:
        """Update the text now, and once more after some seconds."""


class Tab(ABC):
    """One tab of the panel; subclasses also get the data that they edit.

    Args:
        page: The page of the tab.
    """

    def __init__(self, page: Desk) -> None:
        """Store the page; ``build`` adds the controls."""
        self.page = page
        self.gui = page.client.gui

    @abstractmethod
    def build(self) -> None:
        """Add the controls to the tab."""

    @abstractmethod
    def show(self, frame: Frame) -> None:
        """Update the controls; called a few times a second."""

    def select(self, key: int | None) -> None:
        """React to the selection of a goal, None for no goal, and of the joint ``page.joint``."""
        del key

    def record(self, frame: Frame, now: float) -> None:
        """Record a frame; called with every frame.

        Args:
            frame: The frame.
            now: Time of a monotonic clock, seconds.
        """
        del frame, now

    def connect(
        self,
        handle: Any,
        action: Callable[[Any], None],
        *,
        click: bool = False,
        upload: bool = False,
        slow: bool = False,
    ) -> Any:
        """Call an action after each change of a control, as ``control.connect`` does; return the control."""
        on = "click" if click else "upload" if upload else "update"
        return connect(handle, action, self.page.message, on=on, slow=slow)
