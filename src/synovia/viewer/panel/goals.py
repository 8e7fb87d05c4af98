"""The tab of goals: which there are, how far they are missed, and everything about the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synovia.draw.arcs import value_of
from synovia.model.geometry import Array
from synovia.viewer.begin import values_now
from synovia.viewer.engine import Frame, miss_text, tip_of
from synovia.viewer.panel.angles import angles_of, turn_of
from synovia.viewer.panel.base import Tab, note, safe
from synovia.viewer.panel.field import Field, whole, written
from synovia.viewer.panel.span import Span
from synovia.viewer.panel.style import BAD, DIM, GOOD
from synovia.viewer.wish import JOINTS, Wish, address, bounds_of, kind_of, kinds

_NOBODY = "(none)"
_POINT = "(the point)"
_NEXT, _EVERY, _SOME = "(the next one)", "(all)", "(several)"
_NEAR = ("the rest pose", "where it is now")
_LIMB = {"root": "Limb begins", "tip": "Limb ends"}
_CHOICES = {"keep": ("pose", "normal", "point"), "parts": ("pose", "position", "rotation")}
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
            self._weight = Field(
                self,
                "Weight",
                (1.0,),
                lambda values: self._change(weight=values[0]),
                hint="Beside goals of the same priority.",
            )
            self._priority = Field(
                self,
                "Priority",
                (0.0,),
                lambda values: self._change(priority=whole("priority", values[0])),
                hint="0 is the highest; needs a solver that has priorities.",
            )
            unit = self.page.unit
            self._target = Field(self, f"Target {unit}".strip(), (0.0, 0.0, 0.0), self._moved, hint="x, y, z")
            self._angles = Field(
                self,
                "Turn °",
                (0.0, 0.0, 0.0),
                self._turned,
                digits=2,
                hint="Euler angles about the fixed axes x, y, z.",
            )
            self._typed: tuple[Array, tuple[float, ...]] | None = None  # a rotation, and the angles typed for it
            self._extras: list[Any] = []
            self._more: dict[str, Field] = {}  # those of them that are typed
            self._span: Span | None = None
            self._extras_of: tuple[Any, ...] | None = None
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

    def _moved(self, place: tuple[float, ...]) -> None:
        self.session.remember(("target", self._key()))
        self.session.move(self._key(), place=place)

    def _turned(self, angles: tuple[float, ...]) -> None:
        turn = turn_of(angles)
        self.session.remember(("turn", self._key()))
        self.session.move(self._key(), turn=turn)
        self._typed = turn, angles

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
        self._target.visible, self._angles.visible = wish.places, wish.turns
        self._priority.visible = kind.levels
        self._make_extras(wish)
        self._fill(wish)

    def _make_extras(self, wish: Wish) -> None:
        """Make the controls that only some kinds have: directions, bounds, a second joint."""
        chosen = [str(wish.values.get(name)) for name in (*JOINTS, *_CHOICES, "joints")]
        shape = (wish.key, wish.kind, *chosen, wish.values.get("pose") is None)
        if self._extras_of == shape:
            return
        self._extras_of = shape
        for handle in self._extras:
            handle.remove()
        self._extras, self._more, self._span = [], {}, None
        kind = kind_of(wish.kind)
        rows = {row: label for label, row in self.page.joint_labels.items()}
        with self._folder:
            for name in kind.vectors:
                self._add_field(name, wish.values.get(name) or (0.0, 0.0, 0.0), "")
            for name in kind.numbers:
                self._add_field(name, (float(wish.values.get(name) or 0.0),), self.page.unit)
            if kind.other is not False:
                names = self.page.joint_labels
                options = tuple(names) if kind.other else (_POINT, *names)
                initial = rows.get(wish.values.get("other", -1), options[0])
                handle = self.gui.add_dropdown("Other joint", options, initial_value=initial)
                self._extras.append(self.hear(handle, lambda label: self._set("other", names.get(label))))
            for name, options in _CHOICES.items():
                if name in kind.further:
                    handle = self.gui.add_dropdown(name.capitalize(), options, initial_value=wish.values[name])
                    self._extras.append(self.hear(handle, lambda value, name=name: self._set(name, value)))
            for name in ("root", "tip"):
                if name in kind.further:
                    initial = rows.get(wish.values.get(name, -1), _NEXT)
                    options = (_NEXT, *self.page.joint_labels)
                    handle = self.gui.add_dropdown(_LIMB[name], options, initial_value=initial)
                    self._extras.append(self.hear(handle, lambda label, name=name: self._set(name, self._row(label))))
            if "joints" in kind.further:
                self._make_rest(wish)
            if kind.goal.bounds_value:
                self._span = Span(self, wish, self._bound)
                self._extras.append(self._span)

    def _make_rest(self, wish: Wish) -> None:
        """Make the controls of a rest goal: for which joints it is, and near what."""
        names, parts = self.page.joint_labels, wish.values.get("joints")
        rows = [self.session.given.index(joint) for joint in parts or ()]
        labels = {row: label for label, row in names.items()}
        initial = _EVERY if parts is None else labels[rows[0]] if len(rows) == 1 else _SOME
        options = (_EVERY, *((_SOME,) if initial == _SOME else ()), *names)
        handle = self.gui.add_dropdown("Joints", options, initial_value=initial)
        self._extras.append(self.hear(handle, self._choose_joints))
        near = "a pose" if wish.values.get("pose") is not None else _NEAR[0]
        options = (*_NEAR, *(() if near in _NEAR else (near,)))
        handle = self.gui.add_dropdown("Near", options, initial_value=near)
        self._extras.append(self.hear(handle, self._choose_near))

    def _row(self, label: str) -> int | None:
        """Return the row of a joint, None where none is chosen."""
        return self.page.joint_labels.get(label)

    def _choose_joints(self, label: str) -> None:
        if label != _SOME:
            self._set("joints", self._only(label))

    def _choose_near(self, word: str) -> None:
        if word in _NEAR:
            self._set("pose", None if word == _NEAR[0] else values_now(self.session))

    def _only(self, label: str) -> dict[str | int, float] | None:
        """Return the one joint that a rest goal is for, None for all."""
        return None if label == _EVERY else {address(self.session.given, self.page.joint_labels[label]): 1.0}

    def _add_field(self, name: str, values: Sequence[float], unit: str) -> None:
        """Make the control of numbers that only some kinds have."""
        label = f"{name.capitalize()} {unit}".strip()
        field = Field(
            self, label, values, lambda typed: self._set(name, typed if len(values) > 1 else next(iter(typed)))
        )
        self._extras.append(field)
        self._more[name] = field

    def _bound(self, lower: float, upper: float) -> None:
        wish = self.session.wish(self._key())
        self._change(values={**wish.values, "lower": lower, "upper": upper})

    def _set(self, name: str, value: Any) -> None:
        wish = self.session.wish(self._key())
        self._change(values={**wish.values, name: value})
        self._target.visible, self._angles.visible = wish.places, wish.turns

    def _fill(self, wish: Wish) -> None:
        """Show a goal's numbers."""
        self._weight.show((wish.weight,))
        self._priority.show((wish.priority,))
        for name, field in self._more.items():
            values = wish.values.get(name)
            if values is not None:
                field.show(np.atleast_1d(values).tolist())
        if self._span is not None and bounds_of(wish) is not None:
            self._span.show(wish)
        if wish.places:
            self._target.show(wish.place.tolist())
        if wish.turns:
            if self._typed is not None and not np.array_equal(wish.turn, self._typed[0]):
                self._typed = None  # turned by something else
            self._angles.show(angles_of(wish.turn) if self._typed is None else self._typed[1])

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
        if (self._enabled.value, self._kind.value) != (wish.enabled, wish.kind):
            self.select(wish.key)
        added = len(frame.pose.skeleton) - len(self.session.given)
        place, turn = tip_of(frame, wish, added)
        parts: list[str] = []
        if self._span is not None and wish.row is not None and bounds_of(wish) is not None:
            parts.append(f"now {self._span.now(value_of(frame.pose, wish.row + added))}")
        if wish.places:
            parts.append(f"now at {written(place.tolist(), 4)} {self.page.unit}")
        if wish.turns:
            parts.append(f"now turned {written(angles_of(turn), 1)} °")
        self._now.content = note("<br>".join(parts), DIM)


def _list_of(frame: Frame, selected: int | None, unit: float | None) -> str:
    """Return the list of goals as HTML."""
    if not frame.wishes:
        return note("No goals. Drag any joint, or add one below.")
    rows: list[str] = []
    for wish in frame.wishes:
        error = frame.errors.get(wish.key)
        if not wish.enabled:
            colour, state = DIM, "free" if wish.idle else "off"
        elif error is None:
            colour, state = DIM, "…"
        else:
            colour = BAD if wish.key in frame.missed else GOOD
            state = miss_text(error, unit) if wish.key in frame.missed else "reached"
        strong = "font-weight:700" if wish.key == selected else ""
        rows.append(
            f'<tr style="{strong}"><td style="color:{colour};padding-right:.5em">●</td>'
            f'<td style="max-width:11em;{_CUT}">{safe(wish.label)}</td>'
            f'<td style="padding:0 .6em;color:{DIM}">{safe(wish.kind)}</td>'
            f'<td style="text-align:right;white-space:nowrap">{safe(state)}</td></tr>'
        )
    return f'<table style="width:100%;padding:.2em .6em;font-size:.86em;border-spacing:0">{"".join(rows)}</table>'
