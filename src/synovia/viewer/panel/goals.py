"""The tab of goals: which there are, how far they are missed, and everything about the selected one."""

from __future__ import annotations

from typing import Any

import numpy as np

from synovia.viewer.engine import Frame, miss_text, tip_of
from synovia.viewer.panel.base import Tab, note, safe
from synovia.viewer.wish import Wish, kind_of, kinds

_NOBODY = "(none)"
_POINT = "(the point)"
_CUT = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


class Goals(Tab):
    """Adds, removes, enables, weighs and moves goals."""

    def build(self) -> None:
        """Make the controls."""
        gui = self.gui
        self._list = gui.add_html("")
        self._shown = ""
        self._filling = False
        names = self.page.joint_labels
        self._pick = self.hear(gui.add_dropdown("Selected", (_NOBODY,)), self._picked)
        with gui.add_folder("Selected goal", expand_by_default=True) as self._folder:
            self._enabled = self.hear(gui.add_checkbox("Enabled", True), lambda on: self._change(enabled=on))
            self._kind = self.hear(gui.add_dropdown("Kind", tuple(kinds())), self._change_kind)
            self._weight = self.hear(
                gui.add_number(
                    "Weight", 1.0, min=0.001, max=1000.0, step=0.1, hint="Beside goals of the same priority."
                ),
                lambda weight: self._change(weight=float(weight)),
            )
            self._priority = self.hear(
                gui.add_number(
                    "Priority", 0, min=0, max=9, step=1, hint="0 is the highest; needs a solver that has priorities."
                ),
                lambda level: self._change(priority=int(level)),
            )
            self._target = self.hear(gui.add_vector3("Target", (0.0, 0.0, 0.0), step=0.001), self._moved)
            self._angles = self.hear(
                gui.add_vector3("Turn °", (0.0, 0.0, 0.0), step=0.5, hint="Euler angles about the fixed axes x, y, z."),
                self._turned,
            )
            self._extras: list[Any] = []
            self._extras_of: tuple[int, str] | None = None
            self._now = gui.add_html("")
            buttons = gui.add_button_group("", ("Gizmo", "To the body", "Remove"))
            self.hear(buttons, self._pressed, click=True)
        with gui.add_folder("Add a goal", expand_by_default=True):
            self._new_kind = gui.add_dropdown("Kind", tuple(kinds()), initial_value="position")
            self._new_joint = gui.add_dropdown("Joint", tuple(names))
            self.hear(gui.add_button("Add goal"), self._add, click=True)
        self.select(self.page.selected)

    def _selected(self) -> Wish | None:
        return next((wish for wish in self.session.wishes if wish.key == self.page.selected), None)

    def _key(self) -> int:
        return -1 if self.page.selected is None else self.page.selected

    def _picked(self, label: str) -> None:
        wish = next((wish for wish in self.session.wishes if wish.label == label), None)
        self.page.select(None if wish is None else wish.key)

    def _add(self, _: Any) -> None:
        row = self.page.joint_labels[self._new_joint.value]
        self.page.select(self.session.add(self._new_kind.value, row).key)

    def _change(self, **values: Any) -> None:
        self.session.change(self._key(), **values)

    def _change_kind(self, kind: str) -> None:
        try:
            self._change(kind=kind)
        finally:
            self.select(self.page.selected)

    def _moved(self, place: Any) -> None:
        self.session.remember()
        self.session.move(self._key(), place=place)

    def _turned(self, angles: Any) -> None:
        from scipy.spatial.transform import Rotation

        self.session.remember()
        self.session.move(self._key(), turn=Rotation.from_euler("xyz", angles, degrees=True).as_matrix())

    def _pressed(self, button: str) -> None:
        if button == "Gizmo":
            self.page.scene.targets.gizmo = not self.page.scene.targets.gizmo
            self.session.touch()
        elif button == "Remove":
            self.session.remove(self._key())
            self.page.select(self.session.wishes[-1].key if self.session.wishes else None)
        else:
            with self.session.lock:
                self.session.remember()
                self.session.to_current(self.session.wish(self._key()))

    def select(self, key: int | None) -> None:
        """Show the controls of another goal."""
        wish = self._selected()
        self._folder.visible = wish is not None
        labels = (*(wish.label for wish in self.session.wishes), _NOBODY)
        if self._pick.options != labels:
            self._pick.options = labels
        self._pick.value = _NOBODY if wish is None else wish.label
        if wish is None:
            return
        kind = kind_of(wish.kind)
        self._enabled.value, self._kind.value = wish.enabled, wish.kind
        self._weight.value, self._priority.value = wish.weight, wish.priority
        self._target.visible, self._angles.visible = kind.places, kind.turns
        self._priority.visible = kind.levels
        self._make_extras(wish)
        self._fill(wish)

    def _make_extras(self, wish: Wish) -> None:
        """Make the controls that only some kinds have: directions, bounds, a second joint."""
        if self._extras_of == (wish.key, wish.kind):
            return
        self._extras_of = wish.key, wish.kind
        for handle in self._extras:
            handle.remove()
        self._extras = []
        kind = kind_of(wish.kind)
        with self._folder:
            for name in kind.vectors:
                handle = self.gui.add_vector3(name.capitalize(), wish.values.get(name) or (0.0, 0.0, 0.0), step=0.01)
                self._extras.append(self.hear(handle, lambda value, name=name: self._set(name, value)))
            for name in kind.numbers:
                handle = self.gui.add_number(name.capitalize(), float(wish.values.get(name) or 0.0), step=0.001)
                self._extras.append(self.hear(handle, lambda value, name=name: self._set(name, float(value))))
            if kind.other is not False:
                names = self.page.joint_labels
                options = tuple(names) if kind.other else (_POINT, *names)
                rows = {row: label for label, row in names.items()}
                initial = rows.get(wish.values.get("other", -1), options[0])
                handle = self.gui.add_dropdown("Other joint", options, initial_value=initial)
                self._extras.append(self.hear(handle, lambda label: self._set("other", names.get(label))))

    def _set(self, name: str, value: Any) -> None:
        wish = self.session.wish(self._key())
        self._change(values={**wish.values, name: value})

    def _fill(self, wish: Wish) -> None:
        """Show a goal's target."""
        kind = kind_of(wish.kind)
        if kind.places:
            self._target.value = tuple(np.round(wish.place, 5).tolist())
        if kind.turns:
            from scipy.spatial.transform import Rotation

            angles = Rotation.from_matrix(wish.turn).as_euler("xyz", degrees=True)
            self._angles.value = tuple(np.round(angles, 2).tolist())

    def show(self, frame: Frame) -> None:
        """Show how far each goal is missed, and where the selected one is."""
        text = _list_of(frame, self.page.selected, self.session.given.meters_per_unit)
        if text != self._shown:
            self._list.content = self._shown = text
        labels = (*(wish.label for wish in frame.wishes), _NOBODY)
        if self._pick.options != labels:
            self.select(self.page.selected)
        wish = self._selected()
        self._folder.visible = wish is not None
        if wish is None:
            return
        self._fill(wish)
        kind = kind_of(wish.kind)
        if (self._enabled.value, self._kind.value, self._priority.value) != (wish.enabled, wish.kind, wish.priority):
            self.select(wish.key)
        place, turn = tip_of(frame, wish, len(frame.pose.skeleton) - len(self.session.given))
        parts: list[str] = []
        if kind.places:
            parts.append("now at&nbsp; " + "&nbsp; ".join(f"{round(value, 5) + 0.0:.4g}" for value in place))
        if kind.turns:
            from scipy.spatial.transform import Rotation

            angles = Rotation.from_matrix(turn).as_euler("xyz", degrees=True)
            parts.append("now turned&nbsp; " + "&nbsp; ".join(f"{value:.1f}°" for value in angles))
        self._now.content = note("<br>".join(parts), "var(--mantine-color-dimmed)")


def _list_of(frame: Frame, selected: int | None, unit: float | None) -> str:
    """Return the list of goals as HTML."""
    if not frame.wishes:
        return note("No goals. Drag any joint, or add one below.")
    rows: list[str] = []
    for wish in frame.wishes:
        error = frame.errors.get(wish.key)
        if not wish.enabled:
            colour, state = "#868e96", "off"
        elif error is None:
            colour, state = "#868e96", "…"
        else:
            colour = "#dd3942" if wish.key in frame.missed else "#009e88"
            state = miss_text(error, unit) if wish.key in frame.missed else "reached"
        strong = "font-weight:700" if wish.key == selected else ""
        rows.append(
            f'<tr style="{strong}"><td style="color:{colour};padding-right:.5em">●</td>'
            f'<td style="max-width:11em;{_CUT}">{safe(wish.label)}</td>'
            f'<td style="padding:0 .6em;opacity:.65">{safe(wish.kind)}</td>'
            f'<td style="text-align:right;white-space:nowrap">{safe(state)}</td></tr>'
        )
    return f'<table style="width:100%;padding:.2em .6em;font-size:.86em;border-spacing:0">{"".join(rows)}</table>'
