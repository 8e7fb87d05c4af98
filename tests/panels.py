"""Controls without a browser: what a page would send, typed into stand-ins for viser's."""

import asyncio
import html
import json
import re
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from synovia.surface import Surface
from synovia.viewer.editing.engine import Engine
from synovia.viewer.editing.worker import Background
from synovia.viewer.page.keys import Keys
from synovia.viewer.page.page import Model, Page
from synovia.viewer.panel import tabs
from synovia.viewer.scene.handles import Handles
from synovia.viewer.serving.view import Host


class Control:
    """A control; ``type`` is what a person does, setting ``value`` what the page does."""

    def __init__(self, value=None, **props):
        self.value, self.visible, self.content, self.options = value, True, value, props.pop("options", ())
        self.disabled = False
        self.__dict__.update(props)
        self.heard = []

    def on_update(self, action):
        self.heard.append(action)

    on_click = on_trigger = on_upload = on_update

    def type(self, value):
        self.value = value
        for action in self.heard:
            done = action(SimpleNamespace(client=self, target=self))
            if done is not None and (slow := asyncio.run(done)) is not None:
                slow.result()

    def remove(self):
        self.heard = []

    close = remove

    def add_tab(self, _title):
        return nullcontext()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Gui:
    """Stands for ``client.gui``; controls by their label."""

    def __init__(self):
        self.by_label = {}

    def __getattr__(self, name):
        def add(label=None, value=None, *more, initial_value=None, **props):
            if name == "add_dropdown":
                control = Control(value[0] if initial_value is None else initial_value, options=value)
            elif name == "add_html":
                control = Control(label)
            elif name in ("add_slider", "add_multi_slider"):
                control = Control(more[-1], min=value, max=more[0], step=more[1])
            elif name == "add_uplot":
                control = Control(data=label, series=value, scales=props.get("scales"))
            else:
                control = Control(value)
            if isinstance(label, str):
                self.by_label.setdefault(label, control)
            return control

        return add


def make_host():
    """Return what a page needs of the view that serves it."""
    folder = Path(tempfile.gettempdir())
    return Host(Background(), dark=False, shadows=True, folder=folder, show=lambda opening: None)


def keys_of(page):
    """Return the keys of a page."""
    session = page.session
    return Keys(page, page.actions, session.goals, session.body, session.hand)


def make_page(session, monkeypatch):
    """Return a page without scene and thread, its controls by label, and what shows a step of its engine."""
    targets = SimpleNamespace(selected=None, gizmo="")
    scene = SimpleNamespace(
        targets=targets,
        joint=None,
        handles=Handles(0.05),
        rings=SimpleNamespace(toggle=lambda row: None),
        show_runners=lambda runners: None,
        show=lambda frame: None,
        show_shapes=lambda shown: None,
        frame_body=lambda side=None: None,
        path=SimpleNamespace(shown=False, contacts=False),
        leash=SimpleNamespace(on=True, moved=np.zeros(3)),
        balls=[],
        original=SimpleNamespace(shown=False),
        onion=SimpleNamespace(mode="off", every=5),
        sketches=SimpleNamespace(shown=True),
        causes=SimpleNamespace(show=lambda causes: None),
        view_axes=lambda: tuple(np.eye(3)),
    )
    monkeypatch.setattr("synovia.viewer.page.page.Scene", lambda *_, **__: scene)
    monkeypatch.setattr("synovia.viewer.page.page.Worker", lambda *_: None)
    gui = Gui()
    client = SimpleNamespace(gui=gui, flush=lambda: None)
    page = Page(client, session, Model("arm7", Surface(), SimpleNamespace()), make_host(), tabs, keys_of)
    engine = Engine(session.state)

    def step():
        frame, _ = engine.step(0.1)
        page._show_text(frame)
        return frame

    return page, gui.by_label, step


class Line:
    """The time line of a page: what its browser is told, and what a person does there."""

    def __init__(self, page, at):
        self._bar = next(tab for tab in page._tabs if hasattr(tab, "_line"))._line if hasattr(page, "_tabs") else page
        self._at, self._count = at, 0

    @property
    def data(self):
        """What the browser shows."""
        return json.loads(html.unescape(re.search('data-content="(.*?)"', self._bar._data.content)[1]))

    @property
    def now(self):
        """The frame that the browser shows, and whether the clip plays."""
        frame, playing = re.search('data-now="(.*?) (.)"', self._bar._now.content).groups()
        return float(frame), playing == "1"

    def act(self, name, *given):
        """Do what a person does in the browser."""
        self._count += 1
        slow = name in re.search('data-slow="(.*?)"', self._bar._data.content)[1].split()
        field = "Layers of the time line" if slow else "Time line"
        self._at[field].type(json.dumps([self._count, name, *given]))


def settled(session):
    """Return the frame in which the body of a session has come to rest."""
    engine = Engine(session.state)
    for _ in range(300):
        frame, moving = engine.step(1.0 / 60.0)
        if not moving:
            return frame
    raise AssertionError("it never came to rest")
