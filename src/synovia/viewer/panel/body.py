"""The tab *Body*: root mode, look, a slider for each joint within its limits, undo and reset."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.files.poses import poses_text
from synovia.model import Kind
from synovia.model.angles import from_swing_twist, swing_twist
from synovia.model.geometry import Array
from synovia.model.limits import Interval, SwingTwist
from synovia.model.rooted import ROOTS
from synovia.viewer.editing.body import Body
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.hand import Hand
from synovia.viewer.editing.poses import Poses
from synovia.viewer.page.actions import Actions
from synovia.viewer.page.style import DIM, WARN, note, safe
from synovia.viewer.page.tab import Desk, Tab
from synovia.viewer.panel.controls import in_degrees, widened
from synovia.viewer.panel.tree import add_tree
from synovia.viewer.scene.skin import SHOWN

_HELD: Final = "Targets below a joint move with it. Other goals, such as balance, may move it a little."
_NO_POSE: Final = "(none)"
_FEW: Final = 16  # with more hinges and slides than this, only the selected joint has sliders


class BodyTab(Tab):
    """Controls to move single joints.

    Args:
        page: The page.
        actions: Actions that also have a key.
        body: The body.
        poses: Operations on whole poses.
        hand: Manual edits.
    """

    def __init__(self, page: Desk, actions: Actions, body: Body, poses: Poses, hand: Hand) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._actions, self._body, self._poses, self._hand = actions, body, poses, hand

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self.connect(gui.add_button_group("", ("Undo", "Redo", "Reset")), self._pressed, click=True)
        self.connect(gui.add_button_group("", ("Rest pose", "Rest joint", "Mirror")), self._pressed, click=True)
        self.connect(gui.add_button_group("", ("Copy", "Paste", "Paste mirrored")), self._pressed, click=True)
        self._root = self.connect(
            gui.add_dropdown(
                "Root",
                tuple(dict.fromkeys((*ROOTS, self._body.mode))),
                initial_value=self._body.mode,
                hint="Fixed, free, or moving along and about axes.",
            ),
            self._body.set_root,
        )
        self.connect(
            gui.add_dropdown("Limits", ("selected", "all", "off"), hint="Joints whose limits are drawn as arcs."),
            self._draw_arcs,
        )
        lines = gui.add_checkbox(
            "Goal lines",
            True,
            hint="Lines of sight, areas of support, planes, distances and near pairs of the goals.",
        )
        self.connect(lines, self._draw_sketches)
        if self.page.surface.parts:
            look = gui.add_dropdown(
                "Look", SHOWN, initial_value=self.page.scene.look, hint="Show the surface, the bones, or both."
            )
            self.connect(look, self.page.scene.choose_look)
        if self._body.given.shapes:
            shapes = gui.add_checkbox("Shapes", False, hint="Show the shapes of the body, which are transparent.")
            self.connect(shapes, self.page.scene.show_shapes)
        for line in self.page.surface.notes:
            gui.add_html(note(safe(line), WARN))
        self._dark = self.connect(gui.add_checkbox("Dark", self.page.dark), self.page.set_dark)
        skeleton = self._body.given
        self._rows = [row for row, joint in enumerate(skeleton.joints) if joint.kind.q_size]
        simple = [row for row in self._rows if joint_is_simple(skeleton.joints[row].kind)]
        self._many = len(self._rows) > _FEW or len(simple) < len(self._rows)
        self._sliders: list[tuple[int, int, Any]] = []
        self._labels: dict[int, str] = {}
        self._held = gui.add_html(note(_HELD, DIM), visible=False)
        if not self._rows:
            gui.add_html(note("This body has no joint that moves."))
            return
        if self._many:
            moving = set(self._rows)
            names = {label: row for label, row in self.page.joint_labels.items() if row in moving}
            self._labels = {row: label for label, row in names.items()}
            self._joint = gui.add_dropdown("Joint", tuple(names))
            self.connect(self._joint, lambda name: self.page.select_joint(names[name]))
            self._folder = gui.add_folder(None)
            self._choose(next(iter(names.values())))
            self.select(None)
        else:
            for row in self._rows:
                self._add_sliders(row)
        add_tree(self, self._body.given)
        with gui.add_folder("Poses", expand_by_default=False):
            self._library()

    def _library(self) -> None:
        """Add the controls of the library of poses."""
        gui = self.gui
        self._name = gui.add_text("Name", "", hint="Name under which the current pose is kept.")
        self.connect(gui.add_button("Keep this pose"), lambda _: self._poses.keep(str(self._name.value)), click=True)
        self._kept: Any = gui.add_dropdown("Kept", (_NO_POSE,), hint="Applied on a clip, a pose becomes a key.")
        self._use = gui.add_button_group("", ("Apply", "Mirrored", "Delete"))
        self.connect(self._use, self._use_pose, click=True)
        self.connect(gui.add_button("Save poses"), self._save_poses, click=True)
        gui.add_html(note("A file of poses, or a saved pose, that you drop on the page is added."))

    def _use_pose(self, button: str) -> None:
        name = str(self._kept.value)
        if name == _NO_POSE and name not in self._poses.library:
            raise InputError("no pose was kept", hint="type a name, then press 'Keep this pose'")
        if button == "Delete":
            self._poses.drop(name)
        else:
            self._poses.apply(name, mirror=button == "Mirrored")
            self.page.refresh()

    def _save_poses(self, _: Any) -> None:
        if not self._poses.library:
            raise InputError("no pose was kept", hint="type a name, then press 'Keep this pose'")
        self.page.client.send_file_download(
            "poses.json", poses_text(self._poses.library).encode(), save_immediately=True
        )

    def _pressed(self, button: str) -> None:
        actions = self._actions
        does: dict[str, Callable[[], object]] = {
            "Undo": actions.undo,
            "Redo": actions.redo,
            "Reset": actions.reset,
            "Rest pose": self._body.rest,
            "Rest joint": actions.clear_joint,
            "Mirror": actions.mirror,
            "Copy": actions.copy_pose,
            "Paste": actions.paste_pose,
            "Paste mirrored": partial(actions.paste_pose, mirror=True),
        }
        does[button]()
        self.page.refresh()

    def _draw_arcs(self, which: str) -> None:
        self.page.scene.arcs = which
        self.page.redraw()

    def _draw_sketches(self, on: bool) -> None:
        self.page.scene.sketches.shown = bool(on)
        self.page.redraw()

    def select(self, key: int | None) -> None:
        """Show the sliders of the selected joint."""
        del key
        row = self.page.joint
        if self._many and row in self._labels:
            self._joint.value = self._labels[row]
            if row not in {shown for shown, _, _ in self._sliders}:
                self._choose(row)

    def _choose(self, row: int) -> None:
        """Show the sliders of one joint."""
        for _, _, slider in self._sliders:
            slider.remove()
        self._sliders = []
        with self._folder:
            self._add_sliders(row)

    def _add_sliders(self, row: int) -> None:
        """Add the sliders of a joint, with the range of its limits."""
        gui, given = self.gui, self._body.given
        joint = given.joints[row]
        limit = Interval(*given.value_range(row)) if joint_is_simple(joint.kind) else joint.limit
        for part, (name, low, high, step) in enumerate(ranges(joint.kind, limit, self._body.size)):
            title = name if self._many else f"{short_label(joint.name)} {name.removeprefix('angle ')}".strip()
            if not name.endswith("°"):
                title = f"{title} {self.page.unit}".strip()
            value = float(np.clip(round(self._values(row)[part], 3) + 0.0, low, high))
            slider = gui.add_slider(title or short_label(joint.name), low, high, step, value)
            self.connect(slider, lambda number, row=row, part=part: self._slide(row, part, float(number)))
            self._sliders.append((row, part, slider))

    def _values(self, row: int) -> Array:
        """Return the slider values of a joint, in degrees or length units."""
        joint = self._body.given.joints[row]
        with self._body.lock:  # a change of the root mode changes the pose and its rows together
            value = self._body.pose[row + self._body.rooted.added]
        return to_sliders(joint.kind, joint.limit, np.atleast_1d(value))

    def _slide(self, row: int, part: int, number: float) -> None:
        joint = self._body.given.joints[row]
        with self._body.lock:
            values = self._values(row)
            values[part] = number
            self._body.set_joint(row + self._body.rooted.added, from_sliders(joint.kind, joint.limit, values))
        self._hand.end()

    def show(self, frame: Frame) -> None:
        """Update the sliders from the pose."""
        if self._rows and self._kept.options != (names := tuple(self._poses.library) or (_NO_POSE,)):
            chosen = self._kept.value
            self._kept.options = names
            added = [name for name in names if name == str(self._name.value).strip()]
            self._kept.value = added[0] if added else chosen if chosen in names else names[0]
        self._root.value = self._body.mode
        self._held.visible = any(row in frame.moved for row, _, _ in self._sliders)
        shown: dict[int, Array] = {}
        for row, part, slider in self._sliders:
            if row not in shown:
                shown[row] = self._values(row)
            value = float(np.clip(round(shown[row][part], 3), slider.min, slider.max))
            if abs(value - slider.value) > slider.step:
                slider.value = value


def joint_is_simple(kind: Kind) -> bool:
    """Return whether a joint has one value."""
    return kind in (Kind.HINGE, Kind.SLIDE)


def short_label(name: str) -> str:
    """Return a joint's name, shortened to fit next to a slider."""
    return name if len(name) <= 18 else name[:8] + "…" + name[-9:]


def ranges(kind: Kind, limit: Any, reach: float) -> list[tuple[str, float, float, float]]:
    """Return name, minimum, maximum and step of each slider of a joint, in degrees or length units."""
    if joint_is_simple(kind):
        far = math.pi if kind is Kind.HINGE else reach
        ends = (limit.lower, limit.upper) if isinstance(limit, Interval) else (-math.inf, math.inf)
        low, high = (end if math.isfinite(end) else math.copysign(far, end) for end in ends)
        if kind is Kind.HINGE:
            return [("angle °", *in_degrees(low, high), 0.1)]
        return [("", *widened(low, high, 1e-3 * reach), 1e-3 * reach)]
    x = y = twist = (-math.pi, math.pi)
    if isinstance(limit, SwingTwist):
        x, y, twist = (-limit.x[0], limit.x[1]), (-limit.y[0], limit.y[1]), limit.twist
    turns = [(name, *in_degrees(*ends), 0.1) for name, ends in (("swing x °", x), ("swing y °", y), ("twist °", twist))]
    if kind is not Kind.FREE:
        return turns
    far = float(f"{3.0 * reach:.1g}")  # rounded, because the page shows the ends
    return [(axis, -far, far, 1e-3 * reach) for axis in "xyz"] + turns


def to_sliders(kind: Kind, limit: Any, values: Array) -> Array:
    """Return the slider values of a joint, in degrees or length units; a ball has swing x, swing y and twist."""
    if joint_is_simple(kind):
        return np.degrees(values) if kind is Kind.HINGE else values.copy()
    return np.concatenate([values[:-4], np.degrees(swing_twist(values[-4:], limit))])


def from_sliders(kind: Kind, limit: Any, values: Array) -> Array:
    """Return a joint's values from its slider values."""
    if joint_is_simple(kind):
        return np.radians(values) if kind is Kind.HINGE else values.copy()
    return np.concatenate([values[:-3], from_swing_twist(np.radians(values[-3:]), limit)])
