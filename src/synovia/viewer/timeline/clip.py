"""The time line of the live page: the clip with its layers, keys, contacts of feet, findings and curves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import numpy as np

from synovia.errors import InputError, SynoviaError
from synovia.text import short_names
from synovia.viewer.editing.clip.curves import Curve, Curves
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.session import Session
from synovia.viewer.page.actions import Actions
from synovia.viewer.page.tab import Desk, Tab
from synovia.viewer.timeline.timeline import TimeLine, findings_of, spans_of

Part = frozenset[int] | None  # rows of the joints of a part of the body; None for the whole body

_BODY: Final = "whole body"
_LEAST: Final = {"°": 10.0, "": 1e-3}  # smallest range of the axis of curves, by unit


class ClipTimeLine(Tab):
    """The time line of the live page.

    Args:
        page: The page.
        actions: Actions that also have a key.
        session: The session.
    """

    def __init__(self, page: Desk, actions: Actions, session: Session) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._actions, self._session = actions, session
        self._animation, self._layers, self._goals = session.animation, session.layers, session.goals
        self._parts: dict[str, Part] = {}
        self._curving, self._busy = False, threading.Lock()
        self._moves: dict[tuple[object, int, int], int] = {}  # where keys went, by clip, row and frame
        self._kept: tuple[int, ...] = ()  # joints whose curves stay when another joint is selected
        self._state: tuple[Any, ...] | None = None  # state that is shown

    def build(self) -> None:
        """Add the time line."""
        animation, layers = self._animation, self._layers
        quick = {
            **animation.transport.actions(), "select": self._select, "keep": self._keep, "curves": self._show_curves,
            "key": self._move_key, "unkey": self._unkey,
        }  # fmt: skip
        slow: dict[str, Callable[..., Any]] = {
            "layer": layers.trim, "mute": layers.mute, "solo": layers.solo, "order": layers.move,
            "rename": layers.rename, "remove": layers.remove,
        }  # fmt: skip
        again = {name: self._again(action) for name, action in slow.items()}
        self._line = TimeLine(self.gui, self.page.message, quick, again)

    def _again(self, action: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that selects a layer and calls the action; even on errors, the time line is shown again."""

        def act(number: int, *others: Any) -> None:
            self._state = None
            self._select(number)
            action(number, *others)

        return act

    def _select(self, number: int) -> None:
        """Select the layer of a number."""
        self._layers.chosen = int(number)
        self.page.redraw()

    def _keep(self, row: int) -> None:
        """Keep showing the curves of the joint ``row`` when another joint is selected, or stop doing so."""
        self._kept = tuple(one for one in self._kept if one != row) if row in self._kept else (*self._kept, int(row))
        self.page.redraw()

    def _show_curves(self, on: int) -> None:
        """Show or hide the curves of the selected joint."""
        self._curving = bool(on)
        if on and self.page.joint is None:
            self.page.notify("Select a joint that moves: click it in the scene, or find it with T.")
        self.page.redraw()

    def _part(self, row: int) -> Part:
        """Return the part of the body whose keys are in a row of the time line.

        Raises:
            InputError: If there is no such row.
        """
        parts = list(self._parts.values())
        if not 0 <= row < len(parts):
            raise InputError("there is no such row of keys", value=row, expected=f"one of {len(parts)}")
        return parts[int(row)]

    def _move_key(self, row: int, frame: int, to: int, copy: int) -> None:
        """Move the key of a row at ``frame`` to the frame ``to``, or copy it there."""
        self._state = None
        motion, at = self._animation.required()[1], self._present(row, frame)
        there = min(max(at + int(to) - int(frame), 0), len(motion) - 1)
        if there != at:
            self._animation.move_key(at, there, copy=bool(copy), part=self._part(row))
            if not copy:
                self._moves[motion, row, at] = there

    def _present(self, row: int, frame: int) -> int:
        """Return the frame of a key now: a slow browser may still show it where it was before its last moves."""
        part, (play, motion), at = self._part(row), self._animation.required(), int(frame)
        frames = {key.frame for key in play.keys if self._animation.keyed(key, part)}
        for _ in self._moves:
            if at in frames:
                break
            at = self._moves.get((motion, row, at), at)
        return at

    def _unkey(self, row: int, frame: int) -> None:
        """Remove the key of a row at ``frame``."""
        self._animation.unkey(self._present(row, frame), self._part(row))

    def record(self, frame: Frame, now: float) -> None:
        """Show the current frame."""
        del now
        play = self._animation.play
        if play.motion is not None:
            self._line.at(frame.time * play.motion.fps, playing=play.playing, moved=self.page.scene.leash.moved)

    def show(self, frame: Frame) -> None:
        """Show the clip and its rows, if they have changed."""
        play, layers, page = self._animation.play, self._layers, self.page
        joints = tuple(dict.fromkeys((*self._kept, *(() if page.joint is None else (page.joint,)))))
        joints = joints if self._curving else self._kept
        state = (
            play.motion, play.layers, play.above, play.edited, play.layer, play.drag, play.first, play.end, play.loop,
            play.shuttle, layers.chosen, page.selected, joints,
            tuple(self._session.judging.findings), self._kept, self._curving, self._animation.rooted,
        )  # fmt: skip
        if state != self._state:
            self._state = state
            self._line.show(self._data(joints))
        self.record(frame, 0.0)
        if frame.still and self._session.judging.due and self._busy.acquire(blocking=False):
            page.host.background.start("synovia-judge", self._judge)

    def _judge(self) -> None:
        """Judge the edited clip in a background thread, and show the findings."""
        try:
            with suppress(SynoviaError):  # the clip has changed in the meantime
                self._session.judging.judge()
            self.page.redraw()
        finally:
            self._busy.release()

    def _data(self, joints: tuple[int, ...]) -> dict[str, Any] | None:
        """Return what ``timeline.js`` shows; None without a clip."""
        play, layers = self._animation.play, self._layers
        motion, edited = play.motion, play.edited
        if motion is None:
            return None
        found = [*self._session.judging.findings, *(() if edited is None else edited.findings)]
        missed = {one.layer for one in found if one.cause == "missed"}
        ends = [(one, *one.bounds(len(motion))) for one in layers.all]
        names = short_names(self._animation.given.joint_names)
        return {
            "last": max(len(motion) - 1, 1), "fps": motion.fps, "first": play.first, "end": max(play.end, 1),
            "loop": play.loop, "speed": abs(play.shuttle), "chosen": layers.chosen, "solo": layers.soloed,
            "below": len(layers.all) - len(play.above),
            "layers": [
                {"name": one.label, "first": first, "last": last, "blend": one.blend, "muted": one.muted,
                 "missed": one.label in missed}
                for one, first, last in ends
            ],
            "keys": self._keys(),
            "feet": [
                {"name": names[foot.head], "spans": spans_of(foot.stands)} for foot in play.solver().body.feet
            ],
            "findings": findings_of(found),
            "curving": self._curving,
            "curves": [
                curves_data(names[row], row, curves, kept=row in self._kept)
                for row in joints
                if (curves := self._animation.curves(row)) is not None
            ],
        }  # fmt: skip

    def _keys(self) -> list[dict[str, Any]]:
        """Return rows of keys: of the whole body, of the selected limb, and of limbs with separate keys."""
        keys = self._animation.play.keys
        parts: dict[str, Part] = {_BODY: None} if keys else {}
        frames: dict[str, list[int]] = {}
        for editor in self._goals.editors if keys else ():
            if editor.row is not None:
                parts.setdefault(editor.label, self._goals.part_of(editor.key))
        for label, part in parts.items():
            frames[label] = [one.frame for one in keys if one.frame is not None and self._animation.keyed(one, part)]
        chosen = self._goals.find(self.page.selected)
        shown = {
            label: part
            for label, part in parts.items()
            if part is None or (chosen is not None and label == chosen.label) or frames[label] != frames[_BODY]
        }
        self._parts = shown
        return [{"name": label, "frames": frames[label]} for label in shown]


def curves_data(name: str, row: int, curves: Curves, *, kept: bool) -> dict[str, Any]:
    """Return the curves of the joint ``row`` for ``timeline.js``; ``kept`` as in ``ClipTimeLine._keep``."""
    low, high = _range(curves)
    digits = 1 if curves.unit else 4
    lines = [
        {
            "name": one.name, "text": _words(one, curves.unit), "frames": curves.frames.astype(int).tolist(),
            "values": one.values.round(digits).tolist(), "limits": [one.low, one.high],
            "clip": one.clip.round(digits).tolist() if np.abs(one.values - one.clip).max(initial=0.0) > 0.0 else None,
        }
        for one in curves.curves
    ]  # fmt: skip
    return {"name": name, "row": row, "unit": curves.unit, "low": low, "high": high, "kept": kept, "lines": lines}


def _words(curve: Curve, unit: str) -> str:
    """Return the name of a curve, its range, and its limits as one text."""
    low, high = float(curve.values.min()), float(curve.values.max())
    ends = f"{low:.0f} to {high:.0f}{unit}" if unit else f"{low:.3f} to {high:.3f}"
    limits = ["none" if limit is None else f"{limit:.4g}" for limit in (curve.low, curve.high)]
    limited = "" if curve.low is None and curve.high is None else f" (limits {limits[0]}, {limits[1]})"
    return f"{curve.name} {ends}{limited}".strip()


def _range(curves: Curves) -> tuple[float, float]:
    """Return the ends of the vertical axis: it covers all values of the curves, and the limits near these values."""
    values = np.concatenate([part for curve in curves.curves for part in (curve.values, curve.clip)])
    low, high = float(values.min()), float(values.max())
    wide, middle = max(high - low, _LEAST[curves.unit]), 0.5 * (low + high)
    low, high = min(low, middle - 0.5 * wide), max(high, middle + 0.5 * wide)
    limits = [limit for curve in curves.curves for limit in (curve.low, curve.high) if limit is not None]
    near = [limit for limit in limits if low - 0.5 * wide <= limit <= high + 0.5 * wide]
    return min([low, *near]), max([high, *near])
