"""``view``: a live page in the browser for any skeleton."""

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

from synovia.errors import InputError
from synovia.goals import Goal
from synovia.io.base import optional_package
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.solver import Solver, as_solver
from synovia.surface import Surface, surface_of_skeleton
from synovia.viewer.first_goals import add_goals, first_goals, pair_of
from synovia.viewer.root import with_root_values
from synovia.viewer.server import Rules, guarded_server, is_local
from synovia.viewer.session import Session
from synovia.viewer.worker import SESSION, Background

if TYPE_CHECKING:
    from synovia.viewer.page import Page

_PANEL: Final = 384  # width of the controls, pixels


class View:
    """A running page. A notebook shows it; ``wait()`` keeps a script alive.

    Args:
        make: Function that makes the session of a browser.
        surface: The surface of the body.
        rules: Rules of access.
        port: Port to try first, 0 for any.
        command: File or name of the model, for the Python code and the command that pages show.
        dark: Whether pages start dark.
        shadows: Whether bodies cast a shadow.
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

        self._make, self._command, self._dark, self._shadows = make, command, dark, shadows
        self._surface = surface
        self.rules = rules
        self.pages: dict[int, Page] = {}
        self._here: set[int] = set()  # connected browsers, with or without a page
        self._lock = threading.Lock()  # held to change ``pages`` or ``_here``
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()  # browsers without a page; None ends the thread
        self._stopped = threading.Event()
        self._background = Background()
        rules.sessions = partial(self._background.running, SESSION)
        self.server = guarded_server(rules, port)
        self.server.gui.main_panel.dock_right()  # beside the scene, where it hides no target
        self.server.gui.main_panel.set_width(_PANEL)
        atexit.register(self.stop)
        aim_camera(self.server, make())
        self._background.start("synovia-pages", self._make_pages)
        self.server.on_client_connect(self._connected)
        self.server.on_client_disconnect(self._gone)

    @property
    def url(self) -> str:
        """Address of the page, with its token if it needs one."""
        host = self.rules.host
        if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            host = "127.0.0.1"
        host = f"[{host}]" if ":" in host else host
        token = f"/?token={self.rules.token}" if self.rules.token else "/"
        return f"http://{host}:{self.rules.port}{token}"

    async def _connected(self, client: Any) -> None:
        """Queue a browser that needs a page.

        viser awaits this and ``_gone`` in order on its own thread, so both must be quick.
        """
        with self._lock:
            self._here.add(client.client_id)
        self._waiting.put(client)

    async def _gone(self, client: Any) -> None:
        """Close the page of a browser that has gone; ``_give_page`` closes a page that is not finished."""
        with self._lock:
            self._here.discard(client.client_id)
            page = self.pages.pop(client.client_id, None)
        if page is not None:
            page.close()

    def _make_pages(self) -> None:
        """Make the pages of the queued browsers that are still connected, one after the other."""
        while (client := self._waiting.get()) is not None:
            if client.client_id in self._here:
                try:
                    self._give_page(client)
                except Exception:  # go on with the next browser
                    logging.getLogger("synovia.view").exception("cannot make a page")

    def _give_page(self, client: Any) -> None:
        """Make the page of a browser."""
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
        """Sentences about ignored parts of the model's file and missing parts of the surface."""
        return self._surface.notes

    def stop(self) -> None:
        """Stop serving. If a solver is being compiled, wait for the compiler, which cannot be interrupted."""
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

    def __enter__(self) -> View:
        """Return the view."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.stop()

    def _repr_html_(self) -> str:
        """Show the page inside a notebook."""
        return f'<iframe src="{self.url}" width="100%" height="640" style="border:1px solid #8884"></iframe>'

    def __repr__(self) -> str:
        """Return the address."""
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
    """Open a live page: you drag targets, and the body follows.

    Args:
        model: A file, the name of a bundled model, a ``Skeleton``, a ``Pose`` to start from, or a ``Motion``.
        goals: Goals to start with; None for goals on hands and feet, or on the tips.
        clip: Clip to play under the goals: a ``Motion``, a file, or the name or number of a clip in the model's file.
        solver: Settings or name of the solver.
        root: ``"fixed"``, ``"free"``, or axes along and about which the root moves, such as ``"xz"``; None: free for a
            body with two feet, fixed for others.
        tolerance: As in ``IK``.
        host: Address to serve on. Addresses that other machines can reach need a token.
        port: Port to try first, 0 for any.
        token: Secret that browsers must send; None: a random one if the address needs it.
        dark: Whether the page starts dark.
        shadows: Whether the body casts a shadow. Without shadows the page is faster on machines without a GPU.
        browser: Whether to open a browser.

    Returns:
        The running page: ``print(view.url)``, ``view.wait()``, ``view.stop()``.

    Raises:
        MissingExtraError: If viser is not installed.
        SynoviaError: If a file, goal or setting cannot be used.
    """
    optional_package("viser", "the live page needs viser", "view")
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
    mode = root if root is not None else ("free" if len(pair_of(skeleton, "foot")) == 2 else "fixed")

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

    make()  # raises errors of the arguments now, not in the browser
    if token is None and not is_local(host):
        token = secrets.token_urlsafe(24)
    out = View(make, _surface(skeleton), Rules(host=host, token=token), port, name, dark=dark, shadows=shadows)
    if browser:
        webbrowser.open(out.url)
    return out


def _opened(model: Any) -> tuple[Skeleton, Pose | None, list[Motion], str]:
    """Return skeleton, start pose, clips and name of a model."""
    if isinstance(model, str | Path):
        from synovia.io.load import is_bundled, load_model, load_motions

        name = str(model)
        return load_model(name), None, [] if is_bundled(name) else load_motions(name), name
    if isinstance(model, Skeleton):
        return model, None, [], model.name
    if isinstance(model, Motion):
        return model.skeleton, None, [model], model.skeleton.name
    pose = getattr(model, "pose", model)  # a solution has a pose
    if not isinstance(pose, Pose):
        raise InputError("cannot view this object", value=model, expected="a file, a Skeleton, a Pose or a Motion")
    return pose.skeleton, pose, [], pose.skeleton.name


def _surface(skeleton: Skeleton) -> Surface:
    """Return the surface of a skeleton's file, empty without a file, and the notes of skeleton and surface."""
    found = surface_of_skeleton(skeleton)
    return Surface(found.parts, (*skeleton.notes, *found.notes), found.partial)


def _with_clip(clips: Sequence[Motion], clip: Any, skeleton: Skeleton) -> tuple[list[Motion], int]:
    """Return the clips, the requested one included, and its number."""
    from synovia.io.load import clip_number, load_motion

    if not isinstance(clip, int | Motion):
        clip = str(clip)
        if clip not in [motion.name for motion in clips] and (Path(clip).exists() or not clips):
            clip = load_motion(clip)
    if isinstance(clip, Motion):
        return [*clips, clip], len(clips)
    return list(clips), clip_number(clips, clip, skeleton.name)
