"""``view``: a live page in the browser for any skeleton."""

from __future__ import annotations

import atexit
import logging
import queue
import secrets
import threading
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from synovia.clips import find_ends
from synovia.errors import InputError
from synovia.goals import Goal
from synovia.io.base import optional_package
from synovia.io.load import Clips
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.solver import FullBody, Solver, as_solver
from synovia.surface import Surface, surface_of_skeleton
from synovia.viewer.clip import together
from synovia.viewer.first_goals import add_goals, first_goals, stands
from synovia.viewer.root import with_root_values
from synovia.viewer.server import Rules, guarded_server, is_local
from synovia.viewer.session import Session
from synovia.viewer.worker import SESSION, Background

if TYPE_CHECKING:
    from viser import ViserServer

_PANEL: Final = 384  # width of the controls, pixels
_LARGEST_MOVE: Final = 0.12  # radians in a frame, 7 a second: limbs that no goal holds swing no faster


class AnyPage(Protocol):
    """The page of one browser."""

    def close(self) -> None:
        """Stop working after the browser has gone."""


class View:
    """A running page. A notebook shows it; ``wait()`` keeps a script alive.

    Args:
        make: Function that makes the session of a browser.
        give: Function that makes the page of a browser: ``give(client, session, background)``.
        aim: Function that aims the camera of every browser: ``aim(server, session)``.
        rules: Rules of access.
        port: Port to try first, 0 for any.
        notes: Sentences about ignored parts of the model's file, missing parts of the surface, and the clip's ends.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        give: Callable[[Any, Any, Background], AnyPage],
        aim: Callable[[ViserServer, Any], None],
        rules: Rules,
        port: int,
        notes: Sequence[str] = (),
    ) -> None:
        """Start the server."""
        self._make, self._give = make, give
        self.notes = tuple(notes)
        self.rules = rules
        self.pages: dict[int, Any] = {}
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
        aim(self.server, make())
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
        page = self._give(client, self._make(), self._background)
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
        model: A file, the name of a bundled model, a ``Skeleton``, a ``Pose`` to start from, or a ``Motion``. The clip
            that a BVH or npz holds, or that Synovia wrote last into a glTF, plays.
        goals: Goals to start with; None for goals on hands and feet, or on the tips.
        clip: Clip to play under the goals: a ``Motion``, a file, or the name or number of a clip in the model's file.
        solver: Settings or name of the solver; None: ``full-body`` for the default goals of a body with two feet, which
            have priorities, else the default.
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
    from synovia.viewer.page import Page
    from synovia.viewer.panel import TABS
    from synovia.viewer.scene import aim_camera

    own, start, (clips, playing), name = _opened(model)
    if clip is not None:
        clips, playing = _with_clip(clips, clip, own)
    skeleton, clips = together(own, clips)
    wanted = None if goals is None else ([goals] if isinstance(goals, Goal) else list(goals))
    if solver is None and wanted is None and playing is None and stands(skeleton):
        solver = FullBody(attempts=1, largest_move=_LARGEST_MOVE)
    settings = as_solver(solver)
    if not isinstance(solver, Solver):
        settings = settings.without_restarts()
    mode = root if root is not None else ("free" if stands(skeleton) else "fixed")

    def make() -> Session:
        session = Session(skeleton, clips, settings, mode, tolerance)
        if start is not None:
            session.put(with_root_values(start.q, session.rooted))
        if wanted is None:
            first_goals(session)
        if playing is not None:
            session.set_clip(playing)  # after the first goals, which then follow the clip
            session.set_play(playing=True)
        if wanted is not None:
            add_goals(session, wanted)
        session.mark_first()
        return session

    make()  # raises errors of the arguments now, not in the browser
    surface = surface_with(skeleton)
    if playing is not None:
        ends = (f"{clips[playing].name}: {note}" for note in find_ends(clips[playing]).notes)
        surface = replace(surface, notes=(*surface.notes, *ends))

    def give(client: Any, session: Session, background: Background) -> Page:
        return Page(client, session, name, background, surface, TABS, dark=dark, shadows=shadows)

    return serve(make, give, aim_camera, surface.notes, host=host, port=port, token=token, browser=browser)


def serve(
    make: Callable[[], Any],
    give: Callable[[Any, Any, Background], AnyPage],
    aim: Callable[[ViserServer, Any], None],
    notes: Sequence[str],
    *,
    host: str,
    port: int,
    token: str | None,
    browser: bool,
) -> View:
    """Start a view, with a random token if its address needs one.

    Args:
        make: As in ``View``, also ``give``, ``aim`` and ``notes``.
        give: Function that makes the page of a browser.
        aim: Function that aims the camera.
        notes: Sentences for the terminal.
        host: As in ``view``, also ``port``, ``token`` and ``browser``.
        port: Port to try first.
        token: Secret that browsers must send.
        browser: Whether to open a browser.
    """
    if token is None and not is_local(host):
        token = secrets.token_urlsafe(24)
    out = View(make, give, aim, Rules(host=host, token=token), port, notes)
    if browser:
        webbrowser.open(out.url)
    return out


def _opened(model: Any) -> tuple[Skeleton, Pose | None, Clips, str]:
    """Return skeleton, start pose, clips and name of a model."""
    if isinstance(model, str | Path):
        from synovia.io.load import is_bundled, load_clips, load_model

        name = str(model)
        return load_model(name), None, Clips([]) if is_bundled(name) else load_clips(name), name
    if isinstance(model, Skeleton):
        return model, None, Clips([]), model.name
    if isinstance(model, Motion):
        return model.skeleton, None, Clips([model], 0), model.skeleton.name
    pose = getattr(model, "pose", model)  # a solution has a pose
    if not isinstance(pose, Pose):
        raise InputError("cannot view this object", value=model, expected="a file, a Skeleton, a Pose or a Motion")
    return pose.skeleton, pose, Clips([]), pose.skeleton.name


def surface_with(skeleton: Skeleton) -> Surface:
    """Return the surface of a skeleton's file, empty without a file, and the notes of skeleton and surface."""
    found = surface_of_skeleton(skeleton)
    return Surface(found.parts, (*skeleton.notes, *found.notes), found.partial)


def _with_clip(clips: Sequence[Motion], clip: Any, skeleton: Skeleton) -> Clips:
    """Return the clips, the requested one included, and its number."""
    from synovia.io.load import clip_number, load_motion

    if not isinstance(clip, int | Motion):
        clip = str(clip)
        if clip not in [motion.name for motion in clips] and (Path(clip).exists() or not clips):
            clip = load_motion(clip, skeleton=skeleton)
    if isinstance(clip, Motion):
        return Clips([*clips, clip], len(clips))
    return Clips(list(clips), clip_number(clips, clip, skeleton.name))
