"""``sy.edit``: a clip with layers. Each layer sees the result of those before it; frames of no layer keep every bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import as_call, check_kind
from synovia.clips.editing.body import Body
from synovia.clips.editing.layered import LayerResult, apply_layer
from synovia.clips.feet import frames_text
from synovia.errors import InputError, SynoviaError, restated
from synovia.ik.interrupts import Watch, deadline_of
from synovia.layers import Layer
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.text import counted

Bools = NDArray[np.bool_]
CAUSES: Final = ("missed", "limits", "feet", "stretch", "room")


@dataclass(frozen=True, slots=True)
class EditFinding:
    """One thing about an edit that a user should know.

    Args:
        layer: Label of the layer, empty for the whole clip.
        cause: ``"missed"`` (a goal), ``"limits"``, ``"feet"`` (one that stands has moved), ``"stretch"`` (animated
            scale), or ``"room"`` (a fade is longer than the clip).
        frames: The frames in which it shows.
        text: A sentence with the figures.
    """

    layer: str
    cause: str
    frames: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Edited:
    """A clip with layers.

    Args:
        motion: The edited clip, on the skeleton of the given one.
        reached: Whether every goal of the layers that act in a frame is met, (T,); True where no layer acts.
        acts: Whether a layer acts in a frame, (T,). All other frames are those of the given clip, bit for bit.
        findings: What a user should know.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 90, 30.0)
        >>> edited = sy.edit(still, sy.Layer({"left_hand": (0, 0.1, 0)}, frames=(30, 60), blend=10, relative=True))
        >>> edited.reached.all().item(), edited.acts.sum().item()
        (True, 49)
    """

    motion: Motion
    reached: Bools
    acts: Bools
    findings: tuple[EditFinding, ...]

    @property
    def missed_frames(self) -> tuple[int, ...]:
        """Frames in which a goal is missed."""
        return tuple(np.flatnonzero(~self.reached).tolist())

    def report(self) -> str:
        """Return what the edit has changed, and the findings, as text."""
        total, acting = len(self.motion), int(self.acts.sum())
        lines = [
            f"{counted(acting, 'frame')} of {total} changed; {counted(total - acting, 'frame')} as before, bit for bit"
        ]
        lines.append(
            "all goals are met" if self.reached.all() else f"{counted(len(self.missed_frames), 'frame')} miss a goal"
        )
        for finding in self.findings:
            place = f"{finding.layer}: " if finding.layer else ""
            lines.append(f"{place}{finding.text} (frames {frames_text(finding.frames)})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return the call that makes it, without defaults."""
        return as_call(self, {"motion": self.motion, "reached": self.reached, "findings": self.findings})


def edit(
    motion: Motion,
    layers: Layer | Iterable[Layer],
    *,
    feet: Sequence[str | int] | None = None,
    up: str | None = None,
    tolerance: tuple[float, float] | None = None,
    deadline: float | None = None,
) -> Edited:
    """Change a part of a clip and keep the rest.

    Layers are applied in order; each sees the result of those before it. Frames in which no layer acts keep their joint
    values bit for bit. In the other frames, joints stay as near to the clip as the goals allow: first only the limbs
    with goals move, and the whole body if these do not reach. Feet that no goal addresses keep their places, so that
    feet that stand do not slide.

    Values of a clip outside the limits of its joints stay so, and a finding says it.

    Args:
        motion: The clip.
        layers: One layer or several.
        feet: The joint of each foot (the ankle); None to find them by roles and names, ``()`` to let feet go.
        up: The axis that points up, ``"x"``, ``"y"`` or ``"z"``, to find feet that stand; None for that of the file, or
            else that of the clip.
        tolerance: As in ``IK``.
        deadline: Seconds after which frames that are left stay as they are, and count as missed.

    Raises:
        InputError: If a layer does not fit the clip; the message names it.
        UnknownNameError: If a joint does not exist.

    References:
        Lee & Shin (1999), *A hierarchical approach to interactive motion editing for human-like figures*.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("walk.bvh")  # doctest: +SKIP
        >>> wave = sy.Layer({"left_hand": (0.3, 1.6, 0.2)}, frames=(30, 60), blend=10)  # doctest: +SKIP
        >>> sy.save_motion(sy.edit(walk, wave).motion, "waving.bvh")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    wanted = _as_layers(layers)
    watch = Watch(deadline_of(deadline))
    acting = [(i, layer) for i, layer in enumerate(wanted) if not layer.empty]
    count = len(motion)
    if not acting or not count:
        for i, layer in acting:
            raise InputError("the clip has no frames", where=_place(i, layer))
        return Edited(motion, np.ones(count, bool), np.zeros(count, bool), ())
    body = Body(motion, feet, up)
    q, results = motion.q.copy(), list[tuple[Layer, LayerResult]]()
    for i, layer in acting:
        try:
            result = apply_layer(body, q, layer, watch, tolerance)
        except SynoviaError as error:
            raise restated(error, type(error), ": ".join(filter(None, (_place(i, layer), error.where)))) from error
        q = result.q
        results.append((layer, result))
    acts, reached = np.zeros(count, bool), np.ones(count, bool)
    findings: list[EditFinding] = []
    for layer, result in results:
        acts[result.frames] = True
        if result.missed.any():
            reached[result.frames[result.missed]] = False
            findings.append(_missed(layer, result))
        findings += [EditFinding(layer.label, cause, tuple(at.tolist()), text) for cause, text, at in result.notes]
    findings += _outside(body, acts)
    if motion.stretch is not None:
        text = "goals were met on rigid bones: animated scale may move them"
        findings.append(EditFinding("", "stretch", tuple(np.flatnonzero(acts).tolist()), text))
    edited = Motion(motion.skeleton, q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)
    return Edited(edited, reached, acts, tuple(findings))


def _as_layers(layers: Any) -> tuple[Layer, ...]:
    """Return layers as a tuple.

    Raises:
        InputError: If one is no layer.
    """
    if isinstance(layers, Layer):
        return (layers,)
    if not isinstance(layers, Iterable) or isinstance(layers, str | dict):
        raise InputError(
            "layers", value=layers, expected="layers, such as [Layer({'left_hand': place}, frames=(3, 9))]"
        )
    out = tuple(cast("Iterable[Any]", layers))
    for i, layer in enumerate(out):
        check_kind(f"layers[{i}]", layer, Layer, "sy.Layer({joint: place}, frames=(first, last)) makes one")
    return out


def _place(i: int, layer: Layer) -> str:
    """Return which layer an error concerns."""
    return f"layers[{i}]" if layer.name is None else f"layers[{i}] ({layer.name})"


def _missed(layer: Layer, result: LayerResult) -> EditFinding:
    """Return the finding about frames of a layer that miss a goal."""
    at = result.frames[result.missed]
    return EditFinding(layer.label, "missed", tuple(at.tolist()), f"{counted(len(at), 'frame')} miss a goal")


def _outside(body: Body, acts: Bools) -> list[EditFinding]:
    """Return the finding about values of the clip outside limits."""
    if not body.outside:
        return []
    names = [body.given.joint_names[row] for row in body.outside]
    frames: Array = np.any(list(body.outside.values()), axis=0)
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    text = f"the clip is outside the limits of {shown}, and stays so"
    return [EditFinding("", "limits", tuple(np.flatnonzero(frames).tolist()), text)]
