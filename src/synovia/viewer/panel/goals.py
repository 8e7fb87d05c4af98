"""The tab *Goals*: the list of goals with their errors, and the controls of the selected goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from synovia.draw.arcs import value_of
from synovia.ik.solution import length_text, miss_text
from synovia.model.geometry import Array
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.editor import GoalEditor, bounds_of, kind_of, kinds
from synovia.viewer.editing.editor_values import tip_of
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.goals import Goals
from synovia.viewer.editing.hand import Hand
from synovia.viewer.page.style import BAD, DIM, GOOD, PRIMARY, WARN, note, safe
from synovia.viewer.page.tab import Desk, Tab
from synovia.viewer.panel.controls import Field, Span, above_zero, angles_of, turn_of, whole, written

_NOBODY = "(none)"
_EVERY, _SOME = "(all)", "(several)"
_NEAR = ("the rest pose", "where it is now")
_AXES = ("joint", "world")
_WIDE = 0.1  # fraction of the body's size: largest length of a slider
_CUT = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


class GoalsTab(Tab):
    """Adds, removes and edits goals.

    Args:
        page: The page.
        goals: The goals.
        body: The body.
        hand: Manual edits.
    """

    def __init__(self, page: Desk, goals: Goals, body: Body, hand: Hand) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._goals, self._body, self._hand = goals, body, hand

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self._list = gui.add_html("")
        names = self.page.joint_labels
        self._pick = self.connect(gui.add_dropdown("Selected", (_NOBODY,)), self._picked)
        with gui.add_folder("Selected goal", expand_by_default=True) as self._folder:
            self._enabled = self.connect(gui.add_checkbox("Enabled", True), lambda on: self._change(enabled=on))
            self._kind = self.connect(gui.add_dropdown("Kind", tuple(kinds())), self._change_kind)
            self._weight = Field(
                self,
                "Weight",
                (1.0,),
                lambda values: self._change(weight=values[0]),
                hint="Weight among goals of the same priority.",
            )
            self._priority = Field(
                self,
                "Priority",
                (0.0,),
                lambda values: self._change(priority=whole("priority", values[0])),
                hint="0 is the highest. Only some solvers support priorities.",
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
            self._typed: tuple[Array, tuple[float, ...]] | None = None  # a rotation and its typed angles
            self._extras: list[Any] = []
            self._more: dict[str, Field] = {}  # text fields of the kind, by name
            self._sliders: dict[str, Any] = {}  # sliders of the kind, by name
            self._span: Span | None = None
            self._extras_of: tuple[Any, ...] | None = None
            self._now = gui.add_html("")
            buttons = gui.add_button_group("", ("Gizmo", "To the body", "Remove"))
            self.connect(buttons, self._pressed, click=True)
        with gui.add_folder("Add a goal", expand_by_default=True):
            self._new_kind = gui.add_dropdown("Kind", tuple(kinds()), initial_value="position")
            self._new_joint = gui.add_dropdown("Joint", tuple(names))
            self.connect(gui.add_button("Add goal", color=PRIMARY), self._add, click=True)
        with gui.add_folder("Handles", expand_by_default=False):
            self._handles()
        self.select(self.page.selected)

    def _handles(self) -> None:
        """Add controls for the drag handles."""
        gui, handles = self.gui, self.page.scene.handles
        self._axes = gui.add_dropdown("Axes", _AXES, hint="Axes of arrows and rings: of the joint or of the world (X).")
        self.connect(self._axes, self._set_axes)
        self._snap = gui.add_checkbox("Snap", False, hint="Move and turn in steps (N); Ctrl snaps while you drag.")
        self.connect(self._snap, self._set_snap)
        unit = self.page.unit
        step = f"Step {unit}".strip()
        self._length = Field(self, step, (handles.length,), self._set_length, digits=None, hint="Step of moves.")
        angle = (math.degrees(handles.angle),)
        self._angle = Field(self, "Step °", angle, self._set_angle, digits=2, hint="Step of turns.")

    def _set_axes(self, word: str) -> None:
        self.page.scene.handles.local = word == _AXES[0]
        self.page.redraw()

    def _set_snap(self, on: bool) -> None:
        self.page.scene.handles.snap = bool(on)

    def _set_length(self, values: tuple[float, ...]) -> None:
        self.page.scene.handles.length = above_zero("step", values[0])

    def _set_angle(self, values: tuple[float, ...]) -> None:
        self.page.scene.handles.angle = math.radians(above_zero("step", values[0]))

    def _selected(self) -> GoalEditor | None:
        return self._goals.find(self.page.selected)

    def _picked(self, label: str) -> None:
        editor = next((editor for editor in self._goals.editors if editor.label == label), None)
        self.page.select(None if editor is None else editor.key)

    def _add(self, _: Any) -> None:
        row = self.page.joint_labels[self._new_joint.value]
        self.page.select(self._goals.add(self._new_kind.value, row).key)

    def _change(self, **values: Any) -> None:
        self._goals.change(self.page.selected, **values)

    def _change_kind(self, kind: str) -> None:
        try:
            self._change(kind=kind)
        finally:
            self.select(self.page.selected)

    def _moved(self, place: tuple[float, ...]) -> None:
        self._hand.begin(("target", self.page.selected))
        self._goals.move(self.page.selected, place=place)
        self._hand.end()

    def _turned(self, angles: tuple[float, ...]) -> None:
        turn = turn_of(angles)
        self._hand.begin(("turn", self.page.selected))
        self._goals.move(self.page.selected, turn=turn)
        self._hand.end()
        self._typed = turn, angles

    def _pressed(self, button: str) -> None:
        if button == "Gizmo":
            self.page.scene.targets.gizmo = "" if self.page.scene.targets.gizmo else "both"
            self.page.redraw()
        elif button == "Remove":
            self._goals.remove(self.page.selected)
            self.page.select(self._goals.editors[-1].key if self._goals.editors else None)
        else:
            self._goals.to_current(self.page.selected)

    def select(self, key: int | None) -> None:
        """Show the controls of the selected goal."""
        editor = self._selected()
        self._folder.visible = editor is not None
        labels = _labels(self._goals.editors)
        if self._pick.options != labels:
            self._pick.options = labels
        self._pick.value = _NOBODY if editor is None else editor.label
        if editor is None:
            return
        kind = kind_of(editor.kind)
        self._enabled.value, self._kind.value = editor.enabled, editor.kind
        self._target.visible, self._angles.visible = editor.has_position, editor.has_rotation
        self._priority.visible = kind.goal.has_priority and editor.priority is not None
        self._make_extras(editor)
        self._fill(editor)

    def _make_extras(self, editor: GoalEditor) -> None:
        """Add the controls of the goal's kind: directions, lengths, choices, other joints, bounds."""
        kind = kind_of(editor.kind)
        choices = (field.name for field in kind.controls if field.form in ("joint", "choice"))
        chosen = [str(editor.values.get(name)) for name in (*choices, "joints")]
        shape = (editor.key, editor.kind, *chosen, editor.values.get("pose") is None)
        if self._extras_of == shape:
            return
        self._extras_of = shape
        for handle in self._extras:
            handle.remove()
        self._extras, self._more, self._sliders, self._span = [], {}, {}, None
        names = self.page.joint_labels
        rows = {row: label for label, row in names.items()}
        with self._folder:
            for field in kind.controls:
                value: Any = editor.values.get(field.name)
                if field.form == "direction":
                    self._add_field(field.name, value or (0.0, 0.0, 0.0), "")
                elif field.form == "number":
                    self._add_slider(field.name, float(value or 0.0))
                elif field.form == "length":
                    self._add_field(field.name, (float(value or 0.0),), self.page.unit)
                elif field.form == "choice":
                    self._add_choice(
                        field.name.capitalize(),
                        field.choices,
                        value,
                        lambda to, name=field.name: self._set(**{name: to}),
                    )
                else:
                    options = (*((field.absent,) if field.absent else ()), *names)
                    self._add_choice(
                        field.label,
                        options,
                        rows.get(value, options[0]),
                        lambda label, name=field.name: self._set(**{name: names.get(label)}),
                    )
            if "joints" in kind.further:
                self._make_rest(editor)
            if kind.goal.bounds_value:
                self._span = Span(
                    self, self._body.given, editor, lambda lower, upper: self._set(lower=lower, upper=upper)
                )
                self._extras.append(self._span)

    def _make_rest(self, editor: GoalEditor) -> None:
        """Add the controls of a rest goal: its joints and its pose."""
        names, parts = self.page.joint_labels, editor.values.get("joints")
        rows = [self._body.given.value_index(joint) for joint in parts or ()]
        labels = {row: label for label, row in names.items()}
        initial = _EVERY if parts is None else labels[rows[0]] if len(rows) == 1 else _SOME
        options = (_EVERY, *((_SOME,) if initial == _SOME else ()), *names)
        self._add_choice("Joints", options, initial, self._choose_joints)
        near = "a pose" if editor.values.get("pose") is not None else _NEAR[0]
        options = (*_NEAR, *(() if near in _NEAR else (near,)))
        self._add_choice("Near", options, near, self._choose_near)

    def _choose_joints(self, label: str) -> None:
        if label != _SOME:
            row = self.page.joint_labels.get(label)
            self._set(joints=None if row is None else {self._body.given.address(row): 1.0})

    def _choose_near(self, word: str) -> None:
        if word in _NEAR:
            self._set(pose=None if word == _NEAR[0] else self._body.joint_values())

    def _add_choice(self, label: str, options: Sequence[str], initial: str, action: Callable[[Any], None]) -> None:
        """Add a dropdown for the selected kind."""
        handle = self.gui.add_dropdown(label, tuple(options), initial_value=initial)
        self._extras.append(self.connect(handle, action))

    def _add_field(self, name: str, values: Sequence[float], unit: str) -> None:
        """Add a text field for the selected kind."""
        label = f"{name.capitalize()} {unit}".strip()
        field = Field(self, label, values, lambda typed: self._set(**{name: typed if len(values) > 1 else typed[0]}))
        self._extras.append(field)
        self._more[name] = field

    def _add_slider(self, name: str, value: float) -> None:
        """Add a slider for a length of the selected kind, from 0 to a fraction of the body's size."""
        size = self._body.size
        most = max(float(f"{_WIDE * size:.1g}"), value)
        slider = self.gui.add_slider(
            f"{name.capitalize()} {self.page.unit}".strip(), min(0.0, value), most, most / 200.0, value
        )
        self._extras.append(self.connect(slider, lambda number: self._set(**{name: float(number)})))
        self._sliders[name] = slider

    def _set(self, **values: Any) -> None:
        """Change arguments of the selected goal."""
        editor = self._goals.editor(self.page.selected)
        self._change(values={**editor.values, **values})
        self._target.visible, self._angles.visible = editor.has_position, editor.has_rotation

    def _fill(self, editor: GoalEditor) -> None:
        """Show the values of a goal."""
        self._weight.show((editor.weight,))
        self._priority.show((editor.priority or 0,))
        for name, slider in self._sliders.items():
            slider.value = min(max(float(editor.values.get(name) or 0.0), slider.min), slider.max)
        for name, field in self._more.items():
            values = editor.values.get(name)
            if values is not None:
                field.show(np.atleast_1d(values).tolist())
        if self._span is not None and bounds_of(editor) is not None:
            self._span.show(editor)
        if editor.has_position:
            self._target.show(editor.position.tolist())
        if editor.has_rotation:
            if self._typed is not None and not np.array_equal(editor.rotation, self._typed[0]):
                self._typed = None  # another control has changed the rotation
            self._angles.show(angles_of(editor.rotation) if self._typed is None else self._typed[1])

    def show(self, frame: Frame) -> None:
        """Show the errors of all goals and the current state of the selected goal."""
        handles = self.page.scene.handles
        self._axes.value, self._snap.value = _AXES[not handles.local], handles.snap
        self._length.show((handles.length,))
        self._angle.show((math.degrees(handles.angle),))
        self._list.content = _list_of(frame, self.page.selected, self._body.given.meters_per_unit)
        if self._pick.options != _labels(frame.editors):
            self.select(self.page.selected)
        editor = self._selected()
        self._folder.visible = editor is not None
        if editor is None:
            return
        self._fill(editor)
        if (self._enabled.value, self._kind.value) != (editor.enabled, editor.kind):
            self.select(editor.key)
        place, turn = tip_of(frame.pose, editor, frame.added)
        parts: list[str] = []
        if self._span is not None and editor.row is not None and bounds_of(editor) is not None:
            parts.append(f"now {self._span.now(value_of(frame.pose, editor.row + frame.added))}")
        if kind_of(editor.kind).goal.takes_world and frame.gaps:
            say = partial(length_text, meters_per_unit=self._body.given.meters_per_unit)
            parts.append(safe(f"nearest: {frame.gaps[0].text(say)}"))
        if editor.has_position:
            parts.append(f"now at {written(place.tolist(), 4)} {self.page.unit}")
        if editor.has_rotation:
            parts.append(f"now turned {written(angles_of(turn), 1)} °")
        self._now.content = note("<br>".join(parts), DIM)


def _labels(editors: Sequence[GoalEditor]) -> tuple[str, ...]:
    """Return the options of the list from which the user selects a goal."""
    return (*(editor.label for editor in editors), _NOBODY)


def _list_of(frame: Frame, selected: int | None, unit: float | None) -> str:
    """Return the list of goals as HTML."""
    if not frame.editors:
        return note("No goals. Drag any joint, or add one below.")
    rows: list[str] = []
    for editor in frame.editors:
        error = frame.errors.get(editor.key)
        if not editor.enabled:
            colour, state = DIM, "free" if editor.idle else "off"
        elif editor.follows:
            colour, state = DIM, "as in the clip"
        elif error is None:
            colour, state = DIM, "…"
        else:
            colour = GOOD if editor.key not in frame.missed else WARN if frame.late else BAD
            state = miss_text(error, unit) if editor.key in frame.missed else "reached"
        strong = "font-weight:700" if editor.key == selected else ""
        rows.append(
            f'<tr style="{strong}"><td style="color:{colour};padding-right:.5em">●</td>'
            f'<td style="max-width:11em;{_CUT}">{safe(editor.label)}</td>'
            f'<td style="padding:0 .6em;color:{DIM}">{safe(editor.kind)}</td>'
            f'<td style="text-align:right;white-space:nowrap">{safe(state)}</td></tr>'
        )
    return f'<table style="width:100%;padding:.2em .6em;font-size:.86em;border-spacing:0">{"".join(rows)}</table>'
