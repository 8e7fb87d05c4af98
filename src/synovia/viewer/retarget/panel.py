"""The controls of the retarget page: playback, the list of parts with their joints, the rest pose, and downloads."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from synovia.errors import InputError, UnsupportedError
from synovia.files.poses import save_pose
from synovia.io.npz import write_npz
from synovia.model import Kind
from synovia.retargeting import NEEDED, Retargeted, write_map
from synovia.retargeting.judging.findings import degrees
from synovia.retargeting.judging.measure import Limb
from synovia.viewer.editing.clip.transport import Transport
from synovia.viewer.page.control import connect
from synovia.viewer.page.style import DIM, note, status_line, style
from synovia.viewer.retarget.page import quality_of
from synovia.viewer.scene.skin import SHOWN
from synovia.viewer.timeline.timeline import TimeLine, findings_of

if TYPE_CHECKING:
    from synovia.viewer.retarget.page import RetargetPage

_NONE: Final = "(none)"
_MIRRORS: Final = {"left": "right", "right": "left"}
_COLOURS: Final = {"bad": (201, 42, 53), "fair": (178, 95, 0), "gap": (110, 119, 132), "good": (74, 88, 104)}
_BALL: Final = ("Forward °", "Outward °", "Twist °")
_IN_LIST: Final = ".mantine-Paper-root .mantine-Paper-root:has(.synovia-parts) .mantine-Button"
_LIST: Final = (  # style of the list's buttons: text aligned to the left, wrapped if it is long
    f"<style>{_IN_LIST}-root{{height:auto!important;padding:.25em .6em}}"
    f"{_IN_LIST}-label{{white-space:normal;line-height:1.25;overflow-wrap:anywhere;text-align:left;font-size:.92em}}"
    f"{_IN_LIST}-inner{{justify-content:flex-start}}</style>"
    '<div class="synovia-parts"></div>'
)


class Panel:
    """The controls of one page.

    Args:
        page: The page.
    """

    def __init__(self, page: RetargetPage) -> None:
        """Add the controls."""
        self.page, self.transfer = page, page.transfer
        gui = self._gui = page.client.gui
        source, target = self.transfer.motion.skeleton, self.transfer.target
        gui.set_panel_label(f"Synovia: {self.transfer.motion.name} onto {target.name}"[:60])
        gui.add_html(style(f"{target.name} · Synovia"))
        self._status = gui.add_html("")
        self._joints = (_NONE, *source.frame_names), (_NONE, *target.frame_names)
        self._data: dict[str, Any] | None = None  # what the time line shows
        self._buttons: dict[str, Any] = {}
        self._labels: dict[str, tuple[str, str]] = {}
        self._sliders: list[tuple[int, int, Any]] = []
        self._add_playing()
        tabs = gui.add_tab_group()
        with tabs.add_tab("Map"):
            self._add_map()
        with tabs.add_tab("Rest pose"):
            self._add_rest()
        with tabs.add_tab("Save"):
            self._add_saving()
        self.choose(next(iter(self.transfer.parts), None))
        self.show()

    def _on(self, handle: Any, action: Callable[[Any], None], *, click: bool = False, slow: bool = False) -> Any:
        """Call an action after each change of a control; return the control."""
        return connect(handle, action, self.page.message, on="click" if click else "update", slow=slow)

    def _sets(self, handle: Any, owner: object, name: str) -> Any:
        """Set an attribute to the value of a control after each change; return the control."""
        return self._on(handle, lambda value: setattr(owner, name, value))

    # --- playing ---------------------------------------------------------------------------------------------------

    def _add_playing(self) -> None:
        """Add the time line and the controls of the display."""
        gui, page = self._gui, self.page
        transport = Transport(lambda: (page.play, self.transfer.motion), self._play, self._span)
        self._line = TimeLine(gui, page.message, transport.actions())
        hint = "Show the frame in which a limb is farthest off its source, and choose this limb."
        self._on(gui.add_button("Go to the worst frame", hint=hint), self._worst, click=True)
        with gui.add_folder("Show", expand_by_default=False):
            self._sets(gui.add_checkbox("In place", page.in_place, hint="Hold the hips still."), page, "in_place")
            overlaid = gui.add_checkbox("On top of each other", page.overlaid, hint="Instead of side by side.")
            self._sets(overlaid, page, "overlaid")
            self._on(gui.add_dropdown("Look", SHOWN, initial_value="both"), self._look)

    def _play(self, **values: Any) -> None:
        """Change the playback, and show the clip."""
        for name, value in values.items():
            setattr(self.page.play, name, value)
        if values.get("playing"):
            self.page.play.rewind()
        self._resting.value = self.page.at_rest = False

    def _span(self, first: int, last: int) -> None:
        """Set the frames that play.

        Raises:
            InputError: If the clip has no such frames.
        """
        count = len(self.transfer.motion)
        if not 0 <= first < last < count:
            raise InputError("frames that play", value=(first, last), expected=f"two frames of 0 to {count - 1}")
        self._play(first=first, last=last, time=min(max(self.page.frame, first), last) / self.transfer.motion.fps)

    def _worst(self, _: Any) -> None:
        """Show the worst frame of the worst limb, and choose this limb."""
        if (limb := self.transfer.outcome.worst) is None:
            raise UnsupportedError("no limb can be compared with its source")
        self.choose({"trunk": "hips", "head": "neck"}.get(limb.limb, limb.limb))
        self._play(time=limb.frame / self.transfer.motion.fps, playing=False)

    def _look(self, shown: str) -> None:
        for figure in self.page.figures:
            figure.look(shown)

    # --- the map ---------------------------------------------------------------------------------------------------

    def _add_map(self) -> None:
        """Add the editor for the chosen part, and the list of parts."""
        gui = self._gui
        self._on(gui.add_button_group("", ("Undo", "Automatic map")), self._map_button, click=True)
        self._title = gui.add_html("")
        self._pair = [
            self._on(gui.add_dropdown(label, options), lambda name, way=way: self._assign(way, name))
            for way, (label, options) in enumerate(zip(("Source", "Target"), self._joints, strict=True))
        ]
        picking = gui.add_checkbox("Pick in the scene", False, hint="Click a joint to assign it to the part.")
        self._sets(picking, self.page, "picking")
        self._new = gui.add_text("New part", "", hint="A name such as left_hand, or one of your own.")
        self._on(gui.add_button("Add part"), self._add_part, click=True)
        self._feet = self._on(
            gui.add_checkbox("Keep standing feet in place", self.transfer.feet),
            lambda on: self.transfer.set_feet(bool(on)),
        )
        self._list = gui.add_folder("Parts")
        with self._list:
            gui.add_html(_LIST)
        self._fill()

    def _map_button(self, name: str) -> None:
        if name == "Automatic map":
            self.transfer.automatic()
        elif not self.transfer.undo():
            self.page.message.show("No change to undo.")
        self._feet.value = self.transfer.feet
        self.refresh()
        self.choose(self.page.part if self.page.part in self.transfer.joints else next(iter(self.transfer.parts), None))

    def _assign(self, way: int, name: str) -> None:
        if self.page.part is None:
            return
        joint = "" if name == _NONE else name
        self.transfer.assign(self.page.part, **{("source", "target")[way]: joint})
        self.refresh()

    def _add_part(self, _: Any) -> None:
        name = "_".join(self._new.value.split()).lower()
        if not name:
            self.page.message.show("New part: expected a name, got none.")
            return
        self.transfer.assign(name)
        self._new.value = ""
        self.choose(name)
        self.refresh()

    def _fill(self) -> None:
        """Create a button for each part of the map."""
        for handle in self._buttons.values():
            handle.remove()
        self._buttons, self._labels = {}, {}
        with self._list:
            for part in self.transfer.parts:
                label, kind = self._label(part)
                button = self._gui.add_button(label, color=_COLOURS[kind])
                self._on(button, lambda _, part=part: self.choose(part), click=True)
                self._buttons[part], self._labels[part] = button, (label, kind)

    def _limb(self, part: str) -> Limb | None:
        """Return the limb that begins with a part; for the hips, the trunk, and for the neck, the head."""
        name = {"hips": "trunk", "neck": "head"}.get(part, part)
        return next((limb for limb in self.transfer.outcome.limbs if limb.limb == name), None)

    def _label(self, part: str) -> tuple[str, str]:
        """Return the text and the kind (key of ``_COLOURS``) of a part in the list."""
        source, target = self.transfer.joints[part]
        text = f"{part.replace('_', ' ')}: {source or '?'} → {target or '?'}"
        if not (source and target):
            return text, "bad" if part in NEEDED else "gap"
        limb = self._limb(part)
        return (text, "good") if limb is None else (f"{degrees(limb.mean)} {text}", quality_of(limb))

    def choose(self, part: str | None) -> None:
        """Select a part to edit."""
        self.page.part = part
        pair = self.transfer.joints.get(part or "", ("", ""))
        for handle, name in zip(self._pair, pair, strict=True):
            handle.value = name or _NONE
            handle.disabled = part is None
        self._rest_part.value = part or _NONE
        self._retitle()
        self._add_sliders()

    def _retitle(self) -> None:
        """Show the name of the chosen part and the error of its limb."""
        part = self.page.part
        if part is None:
            self._title.content = note("Choose a part from the list.")
            return
        text = f"<b>{part.replace('_', ' ')}</b>"
        if (limb := self._limb(part)) is not None:
            text += f": {degrees(limb.mean)} off on average, {degrees(limb.largest)} in frame {limb.frame}"
        self._title.content = note(text)

    def refresh(self) -> None:
        """Update the list and the chosen part after a change of the map or of the result."""
        if set(self._buttons) != set(self.transfer.parts):
            self._fill()
            self._rest_part.options = self.transfer.parts or (_NONE,)
            self._rest_part.value = self.page.part or _NONE
        for part, button in self._buttons.items():
            label, kind = self._label(part)
            if (label, kind) != self._labels[part]:
                self._labels[part] = label, kind
                button.label, button.color = label, _COLOURS[kind]
        pair = self.transfer.joints.get(self.page.part or "", ("", ""))
        for handle, name in zip(self._pair, pair, strict=True):
            handle.value = name or _NONE
        self._retitle()

    # --- the rest pose ---------------------------------------------------------------------------------------------

    def _add_rest(self) -> None:
        """Add the controls for the rest pose of the source."""
        gui = self._gui
        gui.add_html(
            note(
                "The pose in which the source stands. Limbs keep their directions; trunk, head, hands, feet and the"
                " twist of limbs are retargeted relative to it."
            )
        )
        self._rest_part = self._on(
            gui.add_dropdown("Part", self.transfer.parts or (_NONE,)),
            lambda part: self.choose(None if part == _NONE else part),
        )
        self._resting = self._sets(gui.add_checkbox("Show the rest poses", False), self.page, "at_rest")
        self._both = gui.add_checkbox("Both sides", True, hint="Turn the part of the other side as well.")
        self._turned = gui.add_html("")
        self._place = gui.add_folder(None)
        self._on(gui.add_button("Reset"), self._reset, click=True)

    def _reset(self, _: Any) -> None:
        self.transfer.straighten()
        self._add_sliders()

    def _add_sliders(self) -> None:
        """Replace the sliders by sliders for the chosen part."""
        for _, _, slider in self._sliders:
            slider.remove()
        self._sliders = []
        part, skeleton = self.page.part, self.transfer.motion.skeleton
        rows = [] if part is None else self.transfer.turning_rows(part)
        self._turned.content = "" if rows else note("No joint of the source turns this part.", DIM)
        with self._place:
            for row in rows:
                hinge = skeleton.joints[row].kind is Kind.HINGE
                titles = (f"{skeleton.joint_names[row]} °",) if hinge else _BALL
                now = self.transfer.angles.get(row, (0.0,) * len(titles))
                for k, title in enumerate(titles):
                    slider = self._gui.add_slider(title, -180.0, 180.0, 0.5, now[k])
                    self._on(slider, lambda _, row=row: self._turn(row))
                    self._sliders.append((row, k, slider))

    def _turn(self, row: int) -> None:
        """Rotate a joint of the rest pose, and optionally the joint on the other side."""
        values = tuple(float(slider.value) for at, _, slider in self._sliders if at == row)
        angles = {row: values}
        side, _, name = (self.page.part or "").partition("_")
        other = f"{_MIRRORS[side]}_{name}" if side in _MIRRORS else ""
        if self._both.value and len(values) > 1 and other:
            angles.update(dict.fromkeys(self.transfer.turning_rows(other), values))
        self._resting.value = self.page.at_rest = True
        self.transfer.turn(angles)

    # --- downloads -------------------------------------------------------------------------------------------------

    def _add_saving(self) -> None:
        """Add the downloads."""
        gui = self._gui
        animate = gui.add_button("Animate", hint="Play the result on the live page, where you can edit it.")
        self._on(animate, lambda _: self._animate(), click=True, slow=True)
        files = (
            ("map", "map.toml", self._map),
            ("rest pose", "rest.json", self._rest),
            ("clip", "clip.npz", self._clip),
        )
        for what, name, write in files:
            send = partial(self._send, name, write)
            self._on(gui.add_button(f"Save {what}"), send, click=True, slow=True)
        gui.add_html(note("<code>synovia retarget SRC DST --map map.toml</code> uses the map."))

    def _animate(self) -> None:
        """Show the result on the live page, paused at the frame at which this page is paused."""
        page = self.page
        page.animate(self._answer(), None if page.play.playing else page.frame)

    def _send(self, name: str, write: Callable[[Path], None], _: Any) -> None:
        """Send a file that a function writes; no copy stays on the server."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            write(path)
            self.page.client.send_file_download(name, path.read_bytes(), save_immediately=True)

    def _map(self, path: Path) -> None:
        write_map({part: pair for part, pair in self.transfer.joints.items() if any(pair)}, path)

    def _rest(self, path: Path) -> None:
        save_pose(self.transfer.rest_pose(), path)

    def _clip(self, path: Path) -> None:
        write_npz(self._answer().motion, path)

    def _answer(self) -> Retargeted:
        """Return the result, with the new clip.

        Raises:
            UnsupportedError: If there is no clip for the current settings.
        """
        outcome = self.transfer.outcome
        if outcome.version != self.transfer.version:
            raise UnsupportedError("the clip is still being retargeted", hint="try again in a moment")
        if outcome.answer is None:
            raise UnsupportedError(f"there is no new clip: {outcome.trouble}")
        return outcome.answer

    # --- several times a second ------------------------------------------------------------------------------------

    def show(self) -> None:
        """Update status and time line."""
        self._status.content = status_line(self.page.status())
        play, motion, outcome = self.page.play, self.transfer.motion, self.transfer.outcome
        answer = outcome.answer
        data = {
            "last": max(len(motion) - 1, 1), "fps": motion.fps, "first": play.first, "end": max(play.end, 1),
            "loop": play.loop, "speed": abs(play.shuttle),
            "findings": findings_of(() if answer is None else answer.findings),
        }  # fmt: skip
        if data != self._data:
            self._data = data
            self._line.show(data)
        self._line.at(play.time * motion.fps, playing=play.playing)
