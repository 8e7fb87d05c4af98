"""``view``: the live page in a browser, for any skeleton."""

from __future__ import annotations

import atexit
import logging
import queue
import secrets
import threading
import webbrowser
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import InputError, MissingExtraError, did_you_mean
from synovia.goals import Goal
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.solver import Solver, as_solver
from synovia.viewer.first_goals import add_goals, ends_of, first_goals
from synovia.viewer.root import with_root_values
from synovia.viewer.server import Rules, is_local
from synovia.viewer.session import Session
from synovia.viewer.surface import Surface
from synovia.viewer.worker import SESSION, Background

if TYPE_CHECKING:
    from synovia.viewer.page import Page

_PANEL: Final = 384  # width of the controls, pixels


class View:
    """A running page. In a notebook it shows itself; ``wait()`` keeps a script alive.

    Args:
        make: Makes a session for each browser.
        surface: What the body looks like.
        rules: Who may connect.
        port: Port to try first, 0 for any.
        command: How the page was started.
        dark: Whether pages start dark.
        shadows: Whether bodies throw a shadow.
    """

    def __init__(
        self,
        make: Any,
        surface: Surface,
        rules: Rules,
        port: int,
        command: str,
        *,
        dark: bool = False,
        shadows: bool = True,
    ) -> None:
        """Start the server."""
        from synovia.viewer.scene import aim_camera
        from synovia.viewer.server import guarded_server

        self._make, self._command, self._dark, self._shadows = make, command, dark, shadows
        self._surface = surface
        self.rules = rules
        self.pages: dict[int, Page] = {}
        self._here: set[int] = set()  # browsers that are connected, with or without a page yet
        self._lock = threading.Lock()  # held to change either
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()  # browsers that want a page; None ends the thread
        self._stopped = threading.Event()
        self._background = Background()
        rules.sessions = partial(self._background.running, SESSION)
        self.server = guarded_server(rules, port)
        self.server.gui.main_panel.dock_right()  # beside the scene: over it, it would hide what is dragged
        self.server.gui.main_panel.set_width(_PANEL)
        atexit.register(self.stop)
        aim_camera(self.server, make())
        self._background.start("synovia-pages", self._make_pages)
        self.server.on_client_connect(self._connected)
        self.server.on_client_disconnect(self._gone)

    @property
    def url(self) -> str:
        """Address of the page, with its token where it needs one."""
        host = self.rules.host
        if host in ("0.0.0.0", "::"):  # noqa: S104 - only shown; that every address is served was asked for
            host = "127.0.0.1"
        host = f"[{host}]" if ":" in host else host
        token = f"/?token={self.rules.token}" if self.rules.token else "/"
        return f"http://{host}:{self.rules.port}{token}"

    async def _connected(self, client: Any) -> None:
        """Queue a browser that needs a page.

        viser awaits this on its own thread, and ``_gone`` too: so they come in order, and nothing else waits for them.
        """
        with self._lock:
            self._here.add(client.client_id)
        self._waiting.put(client)

    async def _gone(self, client: Any) -> None:
        """Close the page of a browser that has gone; a page that is still being made is closed by its maker."""
        with self._lock:
            self._here.discard(client.client_id)
            page = self.pages.pop(client.client_id, None)
        if page is not None:
            page.close()

    def _make_pages(self) -> None:
        """Make pages for the queued browsers, one after the other, unless they have gone."""
        while (client := self._waiting.get()) is not None:
            if client.client_id in self._here:
                try:
                    self._give_page(client)
                except Exception:  # the next browser may have more luck
                    logging.getLogger("synovia.view").exception("a page could not be made")

    def _give_page(self, client: Any) -> None:
        """Give a browser its page."""
        from synovia.viewer.page import Page
        from synovia.viewer.panel import TABS

        page = Page(
            client,
            self._make(),
            self._command,
            self._background,
            self._surface,
            TABS,
            dark=self._dark,
            shadows=self._shadows,
        )
        with self._lock:
            here = client.client_id in self._here
            if here:
                self.pages[client.client_id] = page
        if not here:
            page.close()

    def wait(self) -> None:
        """Serve until interrupted or stopped."""
        while not self._stopped.wait(3600.0):
            pass

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what of the body's file was not kept and which parts of its surface are missing."""
        return self._surface.notes

    def stop(self) -> None:
        """Stop serving. Where a solver is being compiled, wait until that has ended: it cannot be interrupted."""
        atexit.unregister(self.stop)
        self._stopped.set()
        with self._lock:
            pages = list(self.pages.values())
            self._here.clear()  # what is being made now is closed by its maker
            self.pages.clear()
        for page in pages:
            page.close()
        self._waiting.put(None)
        self._background.stop()
        with redirect_stdout(StringIO()):  # viser says goodbye, where only data belongs
            self.server.stop()

    def __enter__(self) -> View:
        """Serve within a ``with``."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.stop()

    def _repr_html_(self) -> str:
        """Show the page inside a notebook."""
        return f'<iframe src="{self.url}" width="100%" height="640" style="border:1px solid #8884"></iframe>'

    def __repr__(self) -> str:
        """Return where the page is."""
        return f"<View {self.url}>"


def view(
    model: Any,
    goals: Goal | Iterable[Goal] | None = None,
    *,
    clip: Any = None,
    solver: Solver | str | None = None,
    root: str | None = None,
    tolerance: tuple[float, float] | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: str | None = None,
    dark: bool = False,
    shadows: bool = True,
    browser: bool = False,
) -> View:
    """Open a live page: drag targets, and the body follows.

    Args:
        model: A file, the name of a bundled model, a ``Skeleton``, a ``Pose`` to start from, or a ``Motion``.
        goals: Goals to begin with; None for hands and feet, or the tips.
        clip: A ``Motion``, a file, or the name or number of a clip in the model's file, to play underneath.
        solver: Settings or name of the solver.
        root: ``"fixed"``, ``"free"``, or axes along and about which it moves such as ``"xz"``; None: bodies with two
            feet are free and others fixed.
        tolerance: As in ``IK``.
        host: Address to serve on. Any but this machine's own needs a token.
        port: Port to try first, 0 for any.
        token: Secret that pages must bring; made up where the address needs one and none is given.
        dark: Whether the page starts dark.
        shadows: Whether the body throws a shadow; off is kinder to machines without graphics hardware.
        browser: Whether to open a browser.

    Returns:
        The running page: ``print(view.url)``, ``view.wait()``, ``view.stop()``.

    Raises:
        MissingExtraError: If viser is not installed.
        SynoviaError: If a file, goal or setting cannot be used.
    """
    try:
        import viser  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise MissingExtraError("the live page needs viser", hint='pip install "synovia[view]"') from error
    skeleton, start, clips, name = _opened(model)
    playing = None
    if clip is not None:
        clips, playing = _with_clip(clips, clip, skeleton)
    elif isinstance(model, Motion) or (clips and Path(model).suffix.lower() == ".bvh"):
        playing = 0
    settings = as_solver(solver)
    if not isinstance(solver, Solver):
        settings = settings.without_restarts()
    wanted = None if goals is None else ([goals] if isinstance(goals, Goal) else list(goals))
    mode = root if root is not None else ("free" if len(ends_of(skeleton, "foot")) == 2 else "fixed")

    def make() -> Session:
        session = Session(skeleton, clips, settings, mode, tolerance)
        if start is not None:
            session.put(with_root_values(start.q, session.rooted))
        if playing is not None:
            session.set_clip(playing)
            session.set_play(playing=True)
        if wanted is not None:
            add_goals(session, wanted)
        elif playing is None:
            first_goals(session)
        session.mark_first()
        return session

    make()  # refuses what no page could show, before any is open
    if token is None and not is_local(host):
        token = secrets.token_urlsafe(24)
    out = View(make, _surface(model, skeleton), Rules(host=host, token=token), port, name, dark=dark, shadows=shadows)
    if browser:
        webbrowser.open(out.url)
    return out


def _opened(model: Any) -> tuple[Skeleton, Pose | None, list[Motion], str]:
    """Return skeleton, start, clips and name of what is to be viewed."""
    if isinstance(model, str | Path):
        from synovia.io.load import is_bundled, load_model, load_motions

        name = str(model)
        return load_model(name), None, [] if is_bundled(name) else load_motions(name), name
    if isinstance(model, Skeleton):
        return model, None, [], model.name
    if isinstance(model, Motion):
        return model.skeleton, None, [model], model.skeleton.name
    pose = getattr(model, "pose", model)  # that of a solution
    if not isinstance(pose, Pose):
        raise InputError("cannot view this", value=model, expected="a file, a Skeleton, a Pose or a Motion")
    return pose.skeleton, pose, [], pose.skeleton.name


def _surface(model: Any, skeleton: Skeleton) -> Surface:
    """Return the surface of a model's file, empty if there is no file, with notes on what was not kept."""
    from synovia.viewer.surface import surface_of

    path = Path(model) if isinstance(model, str | Path) else None
    found = Surface() if path is None or not path.is_file() else surface_of(path, skeleton)
    return Surface(found.parts, (*skeleton.notes, *found.notes))


def _with_clip(clips: Sequence[Motion], clip: Any, skeleton: Skeleton) -> tuple[list[Motion], int]:
    """Return the clips with the requested one, and its number."""
    out = list(clips)
    if isinstance(clip, Motion):
        return [*out, clip], len(out)
    if isinstance(clip, int):
        if not 0 <= clip < len(out):
            raise InputError("there is no such clip", value=clip, where=skeleton.name, expected=f"0 to {len(out) - 1}")
        return out, clip
    names = [motion.name for motion in out]
    if str(clip) in names:
        return out, names.index(str(clip))
    if not Path(clip).exists() and names:
        raise InputError(
            "there is no such clip", value=str(clip), where=skeleton.name, hint=did_you_mean(str(clip), names)
        )
    from synovia.io.load import load_motion

    return [*out, load_motion(clip)], len(out)
