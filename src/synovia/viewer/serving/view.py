"""``View``: a running page; and the interfaces between pages and the view that serves them."""

from __future__ import annotations

import atexit
import logging
import queue
import secrets
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Final, Protocol, TypedDict
from urllib.parse import quote

import numpy as np

from synovia.model.geometry import Array
from synovia.viewer.editing.worker import SESSION, Background
from synovia.viewer.serving.kept import Kept, Visitor
from synovia.viewer.serving.lights import add_lights, add_shadows, add_sky
from synovia.viewer.serving.server import Rules, check_address, guarded_server, is_local

_FINISH: Final = 2.0  # seconds to wait for the thread of a page that is replaced
_PANEL: Final = 384  # width of the controls, pixels


class PageOptions(TypedDict, total=False):
    """Options of every page.

    Args:
        host: Address to serve on (``"127.0.0.1"``). Addresses that other machines can reach need a token.
        port: Port to try first (8080); 0 for any free port.
        token: Secret that browsers must send; None for a random token if the address needs one.
        dark: Whether the page starts dark (False).
        shadows: Whether bodies cast a shadow (True). Without it, the page is faster on machines without a GPU.
        browser: Whether to open a browser (False).
    """

    host: str
    port: int
    token: str | None
    dark: bool
    shadows: bool
    browser: bool


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The values of ``PageOptions``, with their defaults."""

    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    dark: bool = False
    shadows: bool = True
    browser: bool = False


class AnyPage(Protocol):
    """The page of one browser."""

    def close(self) -> None:
        """Stop all work after the browser has disconnected."""

    def finish(self, seconds: float) -> None:
        """Wait, at most some seconds, until the page no longer changes any control."""


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """Position and view of a camera.

    Args:
        up: Upward direction, (3,).
        position: Position, (3,), scene units.
        look_at: Point in the middle of the picture, (3,), scene units.
        fov: Vertical field of view, radians.
        near: Nearest distance that is drawn, scene units.
        far: Farthest distance that is drawn, scene units.
    """

    up: Array
    position: Array
    look_at: Array
    fov: float
    near: float
    far: float


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """Functions that create the pages of a model.

    Args:
        make: Creates the session of a browser.
        give: Creates the page of a browser from its client, session and host.
        aim: Returns the initial camera of a session.
        notes: Sentences about ignored parts of the model's file, missing parts of the surface, and the clip's ends.
        dark: Whether the pages start dark; None for the setting of the view.
    """

    make: Callable[[], Any]
    give: Callable[[Any, Any, Host], AnyPage]
    aim: Callable[[Any], Aim]
    notes: tuple[str, ...] = ()
    dark: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """Interface of the view that serves a page, for the page of one browser.

    Args:
        background: Runner of the page's threads.
        dark: Whether the page starts dark.
        shadows: Whether bodies cast a shadow.
        folder: Folder for files that the browser sends; removed when the view stops.
        show: Replaces this browser's page.
    """

    background: Background
    dark: bool
    shadows: bool
    folder: Path
    show: Callable[[Opening], None]


class View:
    """A running page. A notebook shows it; ``wait()`` keeps a script alive.

    Args:
        opening: Creates the first page of each browser.
        rules: Rules of access.
        port: Port to try first; 0 for any free port.
        dark: Whether pages start dark.
        shadows: Whether bodies cast a shadow.

    Example:
        >>> import synovia as sy
        >>> with sy.view("humanoid", browser=True) as page:  # doctest: +SKIP
        ...     page.wait()
    """

    def __init__(self, opening: Opening, rules: Rules, port: int, *, dark: bool, shadows: bool) -> None:
        """Start the server."""
        self._opening, self._dark, self._shadows = opening, dark, shadows
        self.notes = opening.notes
        self.rules = rules
        self.pages: dict[int, Any] = {}
        self._here: dict[int, Visitor] = {}  # connected browsers, with or without a page
        self._lock = threading.Lock()  # held to change ``pages`` or ``_here``
        self._work: dict[int, Opening] = {}  # for each connected browser, functions that create its page again
        self._kept = Kept[Opening]()  # the same for disconnected browsers
        # browsers, and their openings or None for the first page; None ends the thread
        self._waiting: queue.SimpleQueue[tuple[Any, Opening | None] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._background = Background()
        self._folder = tempfile.TemporaryDirectory(prefix="synovia-view-", ignore_cleanup_errors=True)
        rules.sessions = partial(self._background.running, SESSION)
        self.server = guarded_server(rules, port)
        self.server.gui.main_panel.dock_right()  # dock the panel next to the scene, so that the panel hides no target
        self.server.gui.main_panel.set_width(_PANEL)
        atexit.register(self.stop)
        aim = opening.aim(opening.make())
        self.server.scene.set_up_direction(aim.up)
        add_lights(self.server.scene, aim.up)
        first = self.server.initial_camera
        first.up, first.position, first.look_at = aim.up, aim.position, aim.look_at
        first.fov, first.near, first.far = aim.fov, aim.near, aim.far
        self._background.start("synovia-pages", self._make_pages)
        self.server.on_client_connect(self._connected)
        self.server.on_client_disconnect(self._gone)

    @property
    def url(self) -> str:
        """Address of the page, with its token if it needs one."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.rules.host, self.rules.host)  # noqa: S104 - not bound
        host = f"[{host}]" if ":" in host else host
        token = f"?token={quote(self.rules.token, safe='')}" if self.rules.token else ""
        return f"http://{host}:{self.rules.port}/{token}"

    async def _connected(self, client: Any) -> None:
        """Queue a browser that needs a page.

        viser awaits this and ``_gone`` in order on its own thread, so both must be quick.
        """
        with self._lock:
            self._here[client.client_id] = Visitor(client, partial(self._resume, client))
        if self._shadows:
            add_shadows(client)
        self._waiting.put((client, None))

    def _resume(self, client: Any, name: str) -> None:
        """Show the work of a tab, whose browser has reported its name after it got a page."""
        if (work := self._kept.take(name)) is not None:
            self._waiting.put((client, work))

    async def _gone(self, client: Any) -> None:
        """Close the page of a disconnected browser, and keep its work in case the browser only loads the page again.

        ``_give_page`` closes a page that is not finished.
        """
        with self._lock:
            visitor = self._here.pop(client.client_id, None)
            page, work = self.pages.pop(client.client_id, None), self._work.pop(client.client_id, None)
        if page is not None:
            page.close()
            if work is not None and visitor is not None:
                self._kept.put(visitor.name, replace(work, dark=getattr(page, "dark", work.dark)))

    def _make_pages(self) -> None:
        """Create the pages of queued browsers that are still connected, one after the other."""
        while (waiting := self._waiting.get()) is not None:
            client, opening = waiting
            if (visitor := self._here.get(client.client_id)) is not None:
                try:
                    self._give_page(client, opening or self._kept.returned(visitor) or self._opening)
                except Exception:  # continue with the next browser
                    logging.getLogger("synovia.view").exception("cannot make a page")

    def _give_page(self, client: Any, opening: Opening) -> None:
        """Create the page of a browser, and replace an existing page."""
        with self._lock:
            old = self.pages.pop(client.client_id, None)
        if old is not None:
            old.close()
            old.finish(_FINISH)  # updating a removed control is an error in the browser
            client.gui.reset()
            client.scene.reset()
        session = opening.make()
        if old is not None:
            aim, camera = opening.aim(session), client.camera
            add_sky(client.scene, aim.up)  # the reset has removed the previous sky
            with client.atomic():
                camera.fov, camera.near, camera.far = aim.fov, aim.near, aim.far
                first = _first_camera(client)
                first.up, first.position, first.look_at = aim.up, aim.position, aim.look_at
                same = np.allclose(camera.up_direction, aim.up, atol=1e-3)
                client.scene.set_up_direction(aim.up)  # if it changes, viser moves the browser to its first camera
                if same:
                    camera.position, camera.look_at = aim.position, aim.look_at
        host = Host(
            self._background,
            self._dark if opening.dark is None else opening.dark,
            self._shadows,
            Path(self._folder.name),
            lambda other: self._waiting.put((client, other)),
        )
        page = opening.give(client, session, host)
        with self._lock:
            here = client.client_id in self._here
            if here:
                self.pages[client.client_id] = page
                self._work[client.client_id] = replace(opening, make=lambda: session)
        if not here:
            page.close()

    def wait(self) -> None:
        """Serve until interrupted or stopped."""
        while not self._stopped.wait(3600.0):
            pass

    def stop(self) -> None:
        """Stop serving, and stop the process that compiles solvers."""
        atexit.unregister(self.stop)
        self._stopped.set()
        with self._lock:
            pages = list(self.pages.values())
            self._here.clear()  # ``_give_page`` closes a page that is not finished
            self.pages.clear()
        for page in pages:
            page.close()
        self._waiting.put(None)
        self._background.stop()
        with redirect_stdout(StringIO()):  # viser prints to stdout, which is for data
            self.server.stop()
        self._folder.cleanup()

    def __enter__(self) -> View:
        """Return the view."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.stop()

    def _repr_html_(self) -> str:
        """Return HTML that shows the page inside a notebook."""
        return f'<iframe src="{self.url}" width="100%" height="640" style="border:1px solid #8884"></iframe>'

    def __repr__(self) -> str:
        """Return the address."""
        return f"<View {self.url}>"


def _first_camera(client: Any) -> Any:
    """Return the initial camera of one browser, used by *Reset view*; viser only offers one for all browsers."""
    from viser._viser import InitialCameraConfig

    return InitialCameraConfig(client._websock_connection.queue_message)  # noqa: SLF001


def serve(opening: Opening, settings: PageSettings) -> View:
    """Start and return a view, with a random token if its address needs one.

    Args:
        opening: Creates the first page of each browser.
        settings: Options of the page.

    Raises:
        InputError: If the host is not an address of this machine, or there is no such port.
    """
    host, token = settings.host, settings.token
    check_address(host, settings.port)
    if not token:  # an empty token protects nothing
        token = None if is_local(host) else secrets.token_urlsafe(24)
    rules = Rules(host=host, token=token)
    out = View(opening, rules, int(settings.port), dark=settings.dark, shadows=settings.shadows)
    if settings.browser:
        webbrowser.open(out.url)
    return out
