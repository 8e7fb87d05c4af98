"""The tab of the solver: which one, and every setting that it has."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from synovia.errors import InputError
from synovia.solver import solvers
from synovia.viewer.engine import Frame
from synovia.viewer.panel.base import Tab, note, safe

_MOST: Final = {"max_steps": 10_000, "attempts": 1000, "rounds": 100}  # a solve cannot be called back


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
        elif isinstance(value, float):  # as text: a damping of 1e-9 and a turn of 3.14 both have to be read
            handle = self.gui.add_text(title, f"{value:.6g}")
            return self.hear(handle, lambda text: self._typed(name, text))
        else:
            return None
        return self.hear(handle, lambda number: self._set(name, number))

    def _typed(self, name: str, text: str) -> None:
        """Take a number as it is typed, sign by sign."""
        try:
            self._set(name, float(text))
        except ValueError:
            raise InputError(f"{name.replace('_', ' ')} is no number", value=text) from None
        self.page.tell("")

    def _set(self, name: str, value: Any) -> None:
        most = _MOST.get(name)
        if most is not None and value > most:
            raise InputError(f"{name} is too large for a page that moves", value=value, expected=f"at most {most}")
        self.session.set_solver(self.session.solver.replace(**{name: value}))
        self._shown = self.session.solver

    def show(self, frame: Frame) -> None:
        """Show the settings of another solver."""
        if self.session.solver is self._shown:
            return
        self._pick.value = self.session.solver.name
        if type(self.session.solver) is type(self._shown):
            for handle, name in self._fields:
                value = getattr(self.session.solver, name)
                handle.value = f"{value:.6g}" if isinstance(value, float) else value
            self._shown = self.session.solver
        else:
            self._fill()
