"""The tab of the body: how its root moves, every joint's sliders within its limits, undo and reset."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from synovia.model import Kind
from synovia.model.geometry import Array, matrix_to_quat, quat_to_matrix
from synovia.model.limits import Interval, SwingTwist
from synovia.viewer.engine import Frame
from synovia.viewer.page import Tab
from synovia.viewer.root import ROOTS
from synovia.viewer.skin import SHOWN
from synovia.viewer.style import WARN, note, safe

_HELD: Final = (
    "Goals move these joints as well, and may bring them back. To hold one, disable the goals or add a rest goal for "
    "this joint, near where it is now."
)
_FEW: Final = 16  # hinges and slides that are all shown at once; a body with more shows one joint at a time


class Body(Tab):
    """Moves joints by hand."""

    def build(self) -> None:
        """Make the controls."""
        gui = self.gui
        self.connect(gui.add_button_group("", ("Undo", "Reset", "Rest pose")), self._pressed, click=True)
        self._root = self.connect(
            gui.add_dropdown(
                "Root",
                tuple(dict.fromkeys((*ROOTS, self.session.mode))),
                initial_value=self.session.mode,
                hint="Held, free, or sliding along axes.",
            ),
            self.session.set_root,
        )
        self.connect(
            gui.add_dropdown("Limits", ("selected", "all", "off"), hint="Which joints' limits are drawn as arcs."),
            self._draw_arcs,
        )
        if self.page.surface.parts:
            look = gui.add_dropdown("Look", SHOWN, hint="The body's surface over its bones, alone, or the bones.")
            self.connect(look, self.page.scene.choose_look)
        for line in self.page.surface.notes:
            gui.add_html(note(safe(line), WARN))
        self._dark = self.connect(gui.add_checkbox("Dark", self.page.dark), self.page.set_dark)
        skeleton = self.session.given
        self._rows = [row for row, joint in enumerate(skeleton.joints) if joint.kind.q_size]
        simple = [row for row in self._rows if joint_is_simple(skeleton.joints[row].kind)]
        self._many = len(self._rows) > _FEW or len(simple) < len(self._rows)
        self._sliders: list[tuple[int, int, Any]] = []
        self._held = gui.add_html(note(_HELD, WARN), visible=False)
        if not self._rows:
            gui.add_html(note("No joint of this body moves."))
            return
        if self._many:
            names = {label: row for label, row in self.page.joint_labels.items() if row in set(self._rows)}
            self.connect(gui.add_dropdown("Joint", tuple(names)), lambda name: self._choose(names[name]))
            self._folder = gui.add_folder(None)
            self._choose(next(iter(names.values())))
        else:
            for row in self._rows:
                self._add_sliders(row)

    def _pressed(self, button: str) -> None:
        if button == "Undo":
            if not self.session.undo():
                self.page.notify("There is nothing to undo.")
        elif button == "Reset":
            self.session.reset()
        else:
            self.session.rest()
        self.page.refresh()

    def _draw_arcs(self, which: str) -> None:
        self.page.scene.arcs = which
        self.session.touch()

    def _choose(self, row: int) -> None:
        """Show the sliders of one joint."""
        for _, _, slider in self._sliders:
            slider.remove()
        self._sliders = []
        with self._folder:
            self._add_sliders(row)

    def _add_sliders(self, row: int) -> None:
        """Make the sliders of a joint, as wide as its limits."""
        gui, given = self.gui, self.session.given
        joint = given.joints[row]
        limit = Interval(*given.value_range(row)) if joint_is_simple(joint.kind) else joint.limit
        for part, (name, low, high, step) in enumerate(ranges(joint.kind, limit, self.session.reach)):
            title = name if self._many else f"{safe_label(joint.name)} {name.removeprefix('angle ')}".strip()
            if not name.endswith("°"):
                title = f"{title} {self.page.unit}".strip()
            value = float(np.clip(self._values(row)[part], low, high))
            slider = gui.add_slider(title or safe_label(joint.name), low, high, step, value)
            self.connect(slider, lambda number, row=row, part=part: self._slide(row, part, float(number)))
            self._sliders.append((row, part, slider))

    def _values(self, row: int) -> Array:
        """Return a joint's values as its sliders show them: degrees, length units."""
        joint = self.session.given.joints[row]
        with self.session.lock:  # another root changes pose and rows together
            value = self.session.pose[row + self.session.rooted.added]
        return to_sliders(joint.kind, joint.limit, np.atleast_1d(value))

    def _slide(self, row: int, part: int, number: float) -> None:
        joint = self.session.given.joints[row]
        with self.session.lock:
            values = self._values(row)
            values[part] = number
            self.session.set_joint(row + self.session.rooted.added, from_sliders(joint.kind, joint.limit, values))

    def show(self, frame: Frame) -> None:
        """Let the sliders follow the body."""
        self._root.value = self.session.mode
        held = any(row in frame.moved for row, _, _ in self._sliders)
        if self._held.visible != held:
            self._held.visible = held
        shown: dict[int, Array] = {}
        for row, part, slider in self._sliders:
            if row not in shown:
                shown[row] = self._values(row)
            value = float(np.clip(round(shown[row][part], 3), slider.min, slider.max))
            if abs(value - slider.value) > slider.step:
                slider.value = value


def joint_is_simple(kind: Kind) -> bool:
    """Return whether a joint has one number."""
    return kind in (Kind.HINGE, Kind.SLIDE)


def safe_label(name: str) -> str:
    """Return a joint's name short enough for the left of a slider."""
    return name if len(name) <= 18 else name[:8] + "…" + name[-9:]


def ranges(kind: Kind, limit: Any, reach: float) -> list[tuple[str, float, float, float]]:
    """Return name, lower end, upper end and step of each slider of a joint: degrees, length units."""
    if joint_is_simple(kind):
        far = math.pi if kind is Kind.HINGE else reach
        ends = (limit.lower, limit.upper) if isinstance(limit, Interval) else (-math.inf, math.inf)
        low, high = (end if math.isfinite(end) else math.copysign(far, end) for end in ends)
        if kind is Kind.HINGE:
            return [("angle °", *_degrees(low, high), 0.1)]
        return [("", *_open(low, high, 1e-3 * reach), 1e-3 * reach)]
    x = y = twist = (-math.pi, math.pi)
    if isinstance(limit, SwingTwist):
        x, y, twist = (-limit.x[0], limit.x[1]), (-limit.y[0], limit.y[1]), limit.twist
    turns = [(name, *_degrees(*ends), 0.1) for name, ends in (("swing x °", x), ("swing y °", y), ("twist °", twist))]
    if kind is not Kind.FREE:
        return turns
    far = float(f"{3.0 * reach:.1g}")  # its ends are printed under the slider
    return [(axis, -far, far, 1e-3 * reach) for axis in "xyz"] + turns


def _degrees(low: float, high: float) -> tuple[float, float]:
    """Return the ends of a slider of radians, in degrees, outwards to tenths: they are printed under it."""
    low, high = math.degrees(low), math.degrees(high)
    return _open(math.floor(10.0 * low + 1e-6) / 10.0, math.ceil(10.0 * high - 1e-6) / 10.0, 0.1)


def _open(low: float, high: float, step: float) -> tuple[float, float]:
    """Return the ends of a slider, apart by a step at least."""
    return (low, high) if high - low >= step else (low - step, high + step)


def to_sliders(kind: Kind, limit: Any, values: Array) -> Array:
    """Return a joint's values as sliders show them: degrees; balls as swing x, swing y and twist about the bone."""
    if joint_is_simple(kind):
        return np.degrees(values) if kind is Kind.HINGE else values.copy()
    from scipy.spatial.transform import Rotation

    frame = _bone_frame(limit)
    turn = Rotation.from_matrix(frame.T @ quat_to_matrix(values[-4:]) @ frame)
    _, _, z, w = turn.as_quat()
    twist = (2.0 * math.atan2(z, w) + math.pi) % (2.0 * math.pi) - math.pi
    swing = (turn * Rotation.from_rotvec([0.0, 0.0, -twist])).as_rotvec()  # lies across the bone
    return np.concatenate([values[:-4], np.degrees([swing[0], swing[1], twist])])


def from_sliders(kind: Kind, limit: Any, values: Array) -> Array:
    """Return a joint's values from what its sliders show."""
    if joint_is_simple(kind):
        return np.radians(values) if kind is Kind.HINGE else values.copy()
    from scipy.spatial.transform import Rotation

    frame = _bone_frame(limit)
    x, y, twist = np.radians(values[-3:])
    turn = Rotation.from_rotvec([x, y, 0.0]) * Rotation.from_rotvec([0.0, 0.0, twist])
    return np.concatenate([values[:-3], matrix_to_quat(frame @ turn.as_matrix() @ frame.T)])


def _bone_frame(limit: Any) -> Array:
    """Return the frame whose z axis is a joint's bone, as its limit has it, (3, 3)."""
    return np.asarray(limit.frame) if isinstance(limit, SwingTwist) else np.eye(3)
