"""The tab *Solver*: the solver, its settings, and the speed limits within which the body follows the solution."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.solver import solvers
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.solving import Solving
from synovia.viewer.page.style import DIM, note, safe
from synovia.viewer.page.tab import Desk, Tab
from synovia.viewer.panel.controls import Field, whole
from synovia.viewer.panel.speed import Speed

_MOST: Final = {"max_steps": 10_000, "attempts": 1000, "rounds": 100}  # a solve cannot be interrupted


class SolverTab(Tab):
    """Tab in which the user chooses the solver and changes its settings.

    Args:
        page: The page.
        solving: The solver of the page.
        skeleton: The given skeleton.
    """

    def __init__(self, page: Desk, solving: Solving, skeleton: Skeleton) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._solving, self._skeleton = solving, skeleton

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self._fields: list[Any] = []
        self._shown: Any = None
        self._pick = self.connect(
            gui.add_dropdown("Solver", tuple(solvers), initial_value=self._solving.solver.name),
            self._solving.set_solver,
        )
        self._about = gui.add_html("")
        self._speed = Speed(self, self._solving, self._skeleton)
        self._folder = gui.add_folder("Settings")
        self._fill()

    def _fill(self) -> None:
        """Add a control for each setting of the current solver."""
        settings = self._solving.solver
        self._shown = settings
        for handle, _ in self._fields:
            handle.remove()
        self._fields = []
        doc = (type(settings).__doc__ or "").strip().split("\n\n")[0]
        self._about.content = note(safe(" ".join(doc.split())), DIM)
        with self._folder:
            for field in dataclasses.fields(settings):
                handle = self._control(field.name, getattr(settings, field.name))
                if handle is not None:
                    self._fields.append((handle, field.name))

    def _control(self, name: str, value: Any) -> Any:
        """Add the control of a setting and return it; None if the setting is neither a number nor a switch."""
        title = name.replace("_", " ")
        if isinstance(value, bool):
            return self.connect(self.gui.add_checkbox(title, value), lambda on: self._set(name, on))
        if isinstance(value, int):
            return Field(self, title, (value,), lambda typed: self._set(name, whole(title, typed[0])), digits=0)
        if isinstance(value, float):
            return Field(self, title, (value,), lambda typed: self._set(name, typed[0]), digits=None)
        return None

    def _set(self, name: str, value: Any) -> None:
        most = _MOST.get(name)
        if most is not None and value > most:
            raise InputError("too large for a live page", where=name, value=value, expected=f"at most {most}")
        self._solving.set_solver(self._solving.solver.replace(**{name: value}))

    def show(self, frame: Frame) -> None:
        """Show the solver and its settings."""
        self._speed.show(frame)
        settings = self._solving.solver
        self._pick.value = settings.name
        if type(settings) is not type(self._shown):
            self._fill()
        self._shown = settings
        for control, name in self._fields:
            value = getattr(settings, name)
            if isinstance(control, Field):
                control.show((value,))
            else:
                control.value = value
