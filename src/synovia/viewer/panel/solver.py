"""The tab of the solver: which one, and every setting that it has."""

from __future__ import annotations

import dataclasses
from typing import Any

from synovia.solver import solvers
from synovia.viewer.engine import Frame
from synovia.viewer.panel.base import Tab, note, safe


class SolverTab(Tab):
    """Chooses and sets up the solver."""

    def build(self) -> None:
        """Make the controls."""
        gui = self.gui
        self._fields: list[Any] = []
        self._shown: Any = None
        self._pick = self.hear(
            gui.add_dropdown("Solver", tuple(solvers), initial_value=self.session.solver.name), self.session.set_solver
        )
        self._about = gui.add_html("")
        self._folder = gui.add_folder("Settings")
        self._fill()

    def _fill(self) -> None:
        """Make a control for each setting of the solver that is there."""
        settings = self.session.solver
        self._shown = settings
        for handle, _ in self._fields:
            handle.remove()
        self._fields = []
        doc = (type(settings).__doc__ or "").strip().split("\n\n")[0]
        self._about.content = note(safe(" ".join(doc.split())), "var(--mantine-color-dimmed)")
        with self._folder:
            for field in dataclasses.fields(settings):
                handle = self._control(field.name, getattr(settings, field.name))
                if handle is not None:
                    self._fields.append((handle, field.name))

    def _control(self, name: str, value: Any) -> Any:
        """Make the control of one setting, None for a setting that is no number and no switch."""
        title = name.replace("_", " ")
        if isinstance(value, bool):
            handle = self.gui.add_checkbox(title, value)
        elif isinstance(value, int):
            handle = self.gui.add_number(title, value, step=1)
        elif isinstance(value, float):
            handle = self.gui.add_number(title, value, step=1e-9 if abs(value) < 1e-3 else 1e-3)
        else:
            return None
        return self.hear(handle, lambda number: self._set(name, number))

    def _set(self, name: str, value: Any) -> None:
        self.session.set_solver(self.session.solver.replace(**{name: value}))
        self._shown = self.session.solver

    def show(self, frame: Frame) -> None:
        """Show the settings of another solver."""
        if self.session.solver is self._shown:
            return
        self._pick.value = self.session.solver.name
        if type(self.session.solver) is type(self._shown):
            for handle, name in self._fields:
                handle.value = getattr(self.session.solver, name)
            self._shown = self.session.solver
        else:
            self._fill()
