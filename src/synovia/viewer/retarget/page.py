"""The retarget page of one browser: the clip and its retargeted result side by side, and the thread that moves them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from synovia.draw.rods import extent
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.pose import world_frames
from synovia.retargeting import Retargeted
from synovia.retargeting.judging.findings import degrees
from synovia.retargeting.judging.measure import Limb
from synovia.surface import Surface
from synovia.text import counted
from synovia.viewer.editing.clip.play import Play, sample
from synovia.viewer.page.stage import TALL, Controls, Stage, aim_from
from synovia.viewer.page.style import BAD as RED
from synovia.viewer.page.style import GOOD, WARN, note, safe
from synovia.viewer.retarget.figure import Figure
from synovia.viewer.retarget.transfer import Outcome, Transfer
from synovia.viewer.scene.skin import Look
from synovia.viewer.serving.view import Aim, Host

if TYPE_CHECKING:
    from viser import ClientHandle

_TEXT: Final = 0.15  # seconds between two updates of the text
_QUIET: Final = 0.15  # seconds without a change after which the clip is retargeted again
_APART: Final = 1.5  # distance of the two bodies, scene units


class MapControls(Controls, Protocol):
    """The controls of the map."""

    def refresh(self) -> None:
        """Update the list of parts after a change of the map or of the result."""


class RetargetPage(Stage):
    """The page of one browser.

    Args:
        client: The browser.
        transfer: The transfer of this page.
        host: Interface of the view that serves the page.
        surfaces: Surfaces of source and target.
        controls: Creates the controls.
        animate: Shows the live page of the target with the result, paused at a frame or playing.
    """

    panel: MapControls

    def __init__(
        self,
        client: ClientHandle,
        transfer: Transfer,
        host: Host,
        surfaces: tuple[Surface, Surface],
        controls: Callable[[RetargetPage], MapControls],
        animate: Callable[[Retargeted, int | None], None],
    ) -> None:
        """Add the scene and the controls, and start to play."""
        super().__init__(client, host, 14.0)
        self.transfer, self.animate = transfer, animate
        self.play = Play(transfer.motion, playing=True)
        self.in_place, self.overlaid, self.at_rest, self.picking = True, False, False, False
        self.part: str | None = None
        self.computing = False
        self.period, self._last, self._quiet_after = _TEXT, 0.0, 0.0
        scale, first = TALL / extent(transfer.target), transfer.outcome.answer
        other = TALL / extent(transfer.motion.skeleton) if first is None else scale * first.scale  # equal leg lengths
        scales = other, scale
        bodies = transfer.motion.skeleton, transfer.target
        looks = [Look(surface, host.dark, host.shadows) for surface in surfaces]
        self.figures = [
            Figure(client, f"/{name}", body, look, scale, lambda row, way=way: self._pick(way, row))
            for way, (name, body, look, scale) in enumerate(
                zip(("source", "target"), bodies, looks, scales, strict=True)
            )
        ]  # fmt: skip
        self._labels = [
            client.scene.add_label(f"/label/{way}", text, position=(0.0, 0.0, 0.0), anchor="top-center")
            for way, text in enumerate((transfer.motion.name, transfer.target.name))
        ]
        self.panel = controls(self)
        self.begin()

    def _pick(self, way: int, row: int) -> None:
        """Assign a clicked joint to the chosen part, if picking is enabled."""
        if not self.picking or self.part is None:
            return
        name = self.figures[way].skeleton.frame_names[row]
        self.transfer.assign(self.part, **{("source", "target")[way]: name})
        self.panel.refresh()

    def prepare(self) -> None:
        """Retarget the clip after a change, and advance the time."""
        now = time.perf_counter()
        if self.transfer.changed.is_set():
            self.transfer.changed.clear()
            self._quiet_after = now + _QUIET
        if self.transfer.outcome.version != self.transfer.version and now >= self._quiet_after:
            self._compute()
            self._last = now = time.perf_counter()
        self.play.advance(min(now - self._last, 0.1))
        self._last = now

    def _compute(self) -> None:
        """Retarget the clip, and update the list of parts."""
        self.computing = True
        with suppress(RuntimeError):
            self.panel.show()
            self.client.flush()
        try:
            self.transfer.compute()
        finally:
            self.computing = False
        with suppress(RuntimeError):
            self.panel.refresh()
        self._due = 0.0

    @property
    def frame(self) -> int:
        """Number of the frame that is shown."""
        motion = self.transfer.motion
        return min(round(self.play.time * motion.fps), len(motion) - 1)

    def show(self) -> None:
        """Show both bodies at the current time, or in their rest poses."""
        transfer, outcome = self.transfer, self.transfer.outcome
        answer, axes = outcome.answer, transfer.axes()
        if answer is None or self.at_rest:
            source, target = (np.array(pose.frames) for pose in (transfer.rest_pose(), transfer.target.rest_pose()))
            feet = [_below(frames, basis) for frames, basis in zip((source, target), axes, strict=True)]
        else:
            source, target = (_frames(motion, self.play.time) for motion in (transfer.motion, answer.motion))
            feet = [
                _at_height(frames[body.roles["hips"], 9:] if self.in_place else np.zeros(3), basis, floor)
                for frames, body, basis, floor in zip(
                    (source, target), (answer.source, answer.target), axes, (outcome.floor, 0.0), strict=True
                )
            ]
            target = target[len(target) - len(transfer.target) :]  # without the root that retargeting has added
        aside = 0.0 if self.overlaid else 0.5 * _APART
        with self.client.atomic():
            self.figures[0].show(source, axes[0], feet[0], -aside)
            self.figures[1].show(target, axes[1], feet[1], aside)
            chosen = self._chosen()
            self.figures[0].colour({}, chosen[0])
            self.figures[1].colour({} if self.at_rest else self._shares(outcome), chosen[1])
            for way, label in enumerate(self._labels):
                label.position = ((2 * way - 1) * aside, -0.06 if not self.overlaid else -0.06 - 0.12 * way, 0.35)

    def _shares(self, outcome: Outcome) -> dict[int, float]:
        """Return the current error of the target's bones, from 0 (fair) to 1 (bad), by the row at a bone's end."""
        added = 0 if outcome.answer is None else len(outcome.answer.motion.skeleton) - len(self.transfer.target)
        out: dict[int, float] = {}
        bones = {} if outcome.answer is None else outcome.answer.judgement.figures.bones
        for limb in outcome.limbs:
            (fair, bad), angle = limb.thresholds, np.nan_to_num(limb.angles[self.frame])
            share = float(np.clip((angle - fair) / (bad - fair), 0.0, 1.0))
            for row in bones[limb.limb]:
                out[row - added] = max(out.get(row - added, 0.0), share)
        return out

    def _chosen(self) -> tuple[set[int], set[int]]:
        """Return the rows of the chosen part in both bodies."""
        pair = self.transfer.joints.get(self.part or "", ("", ""))
        rows = [
            {figure.skeleton.index(name)} if name else set[int]()
            for figure, name in zip(self.figures, pair, strict=True)
        ]
        return rows[0], rows[1]

    def status(self) -> str:
        """Return the status line as HTML."""
        outcome = self.transfer.outcome
        if text := self.message.text:
            return note(safe(text), WARN)
        if self.computing or outcome.version != self.transfer.version:
            return note("Retargeting the clip.", WARN)
        if outcome.answer is None:
            return note(safe(outcome.trouble), RED)
        limbs = outcome.limbs
        worst = max(limbs, key=lambda limb: limb.mean / limb.thresholds[0], default=None)
        missed = len(outcome.answer.missed_frames)
        text = f"{counted(len(outcome.answer.parts), 'part')}, {counted(len(outcome.answer.motion), 'frame')}"
        if worst is not None:
            mean = sum(limb.mean for limb in limbs) / len(limbs)
            text += f"; limbs <b>{degrees(mean)}</b> off, most {words(worst.limb)}: {degrees(worst.mean)}"
        text += f"; {counted(missed, 'frame')} missed" if missed else ""
        return note(text, colour_of(worst))


def colour_of(limb: Limb | None) -> str:
    """Return the text colour for the error of a limb."""
    return "inherit" if limb is None else {"good": GOOD, "fair": WARN, "bad": RED}[quality_of(limb)]


def quality_of(limb: Limb) -> str:
    """Return the quality of a limb: "good", "fair" or "bad"."""
    return ("good", "fair", "bad")[int(np.searchsorted(limb.thresholds, limb.mean))]


def words(part: str) -> str:
    """Return the name of a part as words."""
    return part.replace("_", " ")


def first_aim(transfer: Transfer) -> Aim:
    """Return a camera in front of the bodies that looks at the middle between them."""
    del transfer
    return aim_from((0.7, 1.3, 3.7))


def _frames(motion: Motion, seconds: float) -> Array:
    """Return the world frames of a clip at a time, (n, 12)."""
    return world_frames(motion.skeleton, sample(motion, seconds)[None])[0]


def _below(frames: Array, basis: Array) -> Array:
    """Return the point, (3,), below the middle of joints with frames (n, 12), at the height of the lowest joint."""
    return _at_height(frames[:, 9:].mean(axis=0), basis, float((frames[:, 9:] @ basis[:, 1]).min()))


def _at_height(point: Array, basis: Array, height: float) -> Array:
    """Return a point, (3,), moved along the up axis of a body to a height."""
    return point + (height - point @ basis[:, 1]) * basis[:, 1]
