"""``sy.edit``: apply layers to a clip, each to the result of the previous one; frames without layers keep every bit."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress, check_kind
from synovia.clips.editing.body import Body, size_of
from synovia.clips.editing.clear import EditClearance, clearances, near_pairs
from synovia.clips.editing.layered import LayerOnClip, LayerResult
from synovia.clips.editing.problems import Meter, Options, errors_of, legs_at_limits
from synovia.clips.editing.smoothness import Moved
from synovia.clips.loosened import at_limit
from synovia.errors import InputError, SynoviaError, restated
from synovia.goals import AimGoal, Goal
from synovia.ik.interrupts import Watch, deadline_of
from synovia.ik.solution import length_text, unchecked_shapes
from synovia.layers import Layer
from synovia.model import Skeleton
from synovia.model.anatomy.feet import frames_text
from synovia.model.finding import Finding
from synovia.model.geometry import Array, matrix_to_quat, rotation_between
from synovia.model.motion import Motion
from synovia.model.pose import inside_limits, world_frames
from synovia.model.tree import ancestors
from synovia.text import Report, counted, first_few, plain, unit_name

Bools = NDArray[np.bool_]
_MOVED: Final = 1e-3  # fraction of the body's size: joints that move less count as keeping their place
_ADULT: Final = 1.3  # metres: length of an adult, measured with ``size_of``
_PERSON: Final = {"hips", "head", "left_hand", "right_hand", "left_foot", "right_foot"}
_SHOWN: Final = 3  # if a layer changes more joints than this, only the largest displacement is reported
_FADES: Final = 4  # frames: in fades that are shorter, jerks are not reported
# a joint whose acceleration exceeds that of the clip and of a smooth fade by this factor is reported as a jerk
_SUDDEN: Final = 2.0
_HELPERS: Final = 2  # number of joints outside the limb that a note lists as moving too
_NOTHING: Final = 1e-9  # radians, or fraction of the body's size: smaller changes count as no change
# radians: if a joint moves and rotates by less than this, only its displacement is reported
_TURNED: Final = float(np.radians(1.0))
_TINY: Final = 1e-3  # fraction of the body's size: the user may have given shorter offsets in the wrong unit of length


@dataclass(frozen=True, slots=True)
class EditChange:
    """Largest displacement and rotation of one joint by a layer.

    Args:
        layer: Label of the layer.
        joint: Name of the joint.
        length: Largest distance between the joint's positions before and after the layer in one frame, length units.
        angle: Largest angle between its world rotations before and after the layer in one frame, radians.
        frame: The frame with the largest distance, or with the largest angle if the joint does not move.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 9, 30.0)
        >>> change = sy.edit(still, sy.Layer({"left_hand": (0.0, 0.1, 0.0)}, relative=True)).changes[0]
        >>> change.joint, round(change.length, 3)
        ('left_hand', 0.1)
    """

    layer: str
    joint: str
    length: float
    angle: float
    frame: int


@dataclass(frozen=True, slots=True, eq=False)
class Edited:
    """A clip after layers were applied to it.

    Args:
        motion: The edited clip, on the skeleton of the given clip.
        reached: Mask of frames, (T,): whether all goals of the layers in a frame are met; True in frames without
            layers.
        acts: Mask of frames in which a layer acts, (T,). All other frames equal those of the given clip, bit for bit.
        findings: What a user should know about the edit.
        changes: Largest displacement and rotation of each joint that has a goal or a key, for each layer.
        up: The axis that points up in the clip, such as ``"y"``; None if it is unknown.
        clearances: Result of each clearance goal in the clip.

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
    findings: tuple[Finding, ...]
    changes: tuple[EditChange, ...] = ()
    up: str | None = None
    clearances: tuple[EditClearance, ...] = ()

    @property
    def missed_frames(self) -> tuple[int, ...]:
        """Frames in which a goal is missed."""
        return tuple(np.flatnonzero(~self.reached).tolist())

    def report(self) -> Report:
        """Return the changes of the edit, the axis that points up, and the findings."""
        total, acting = len(self.motion), int(self.acts.sum())
        lines = [
            f"{counted(acting, 'frame')} of {total} changed; {counted(total - acting, 'frame')} as before, bit for bit"
        ]
        missed = len(self.missed_frames)
        verb = "misses" if missed == 1 else "miss"
        lines.append(f"{counted(missed, 'frame')} {verb} a goal" if missed else "all goals are met")
        lines += self.moved()
        lines += [f"{one.layer}: {one.text(self.motion.skeleton.meters_per_unit)}" for one in self.clearances]
        if self.clearances:
            lines += unchecked_shapes(self.motion.skeleton, [one.goal for one in self.clearances])
        for finding in self.findings:
            place = f"{finding.layer}: " if finding.layer else ""
            lines.append(f"{place}{finding.text} ({frames_text(finding.frames)})")
        return Report(lines, {
            "changed": acting, "up": self.up, "missed": list(self.missed_frames), "moved": plain(self.changes),
            "findings": [{**one.to_object(), "layer": one.layer} for one in self.findings],
        })  # fmt: skip

    def moved(self, layer: str | None = None) -> list[str]:
        """Return a line for each layer about the displacements of its joints, in the unit of the file.

        Args:
            layer: Label of one layer; None for all layers.
        """
        skeleton, lines = self.motion.skeleton, list[str]()
        for label in dict.fromkeys(change.layer for change in self.changes if layer in (None, change.layer)):
            own = [change for change in self.changes if change.layer == label]
            shown = own if len(own) <= _SHOWN else [max(own, key=lambda change: change.length)]
            text = ", ".join(_change_text(change, skeleton) for change in shown)
            text += f", the farthest of {len(own)} joints" if len(own) > len(shown) else ""
            lines.append(text if [change.joint for change in own] == [label] else f"{label}: {text}")
        if lines and self.up is not None:
            lines[-1] += f"; up is {self.up}"
        return lines

    def __repr__(self) -> str:
        """Return a text with the number of frames, of changed frames and of frames that miss a goal."""
        total, acting, missed = len(self.motion), int(self.acts.sum()), len(self.missed_frames)
        return f"<Edited: {acting} of {total} frames changed, {missed} missed>"


def edit(
    motion: Motion,
    layers: Layer | Iterable[Layer],
    *,
    feet: Sequence[str | int] | None = None,
    up: str | None = None,
    tolerance: tuple[float, float] | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> Edited:
    """Change a part of a clip and keep the rest of it.

    Layers are applied in order, each to the result of the layers before. Frames in which no layer acts keep their joint
    values bit for bit. In the other frames, joints stay as near to the clip as the goals allow. First, only limbs with
    goals move. If they cannot reach, the whole body moves. Feet without goals keep their places, so that planted feet
    do not slide.

    Joint values of the clip that are outside limits are kept, and a finding reports them.

    Args:
        motion: The clip.
        layers: One layer or several.
        feet: The joint of each foot (the ankle); None to find them by roles and names, ``()`` for feet that may move.
        up: The axis that points up, for example ``"y"`` or ``"-z"``; it helps to detect planted feet. None to find it
            in the file and the clip.
        tolerance: As in ``IK``.
        deadline: Time limit in seconds: the remaining frames then stay unchanged and count as missed.
        progress: Called with (frames done, number of frames), counted over all layers.

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
    return EditStack(motion, feet, up, tolerance).edited(_as_layers(layers), deadline=deadline, progress=progress)


class _Applied(NamedTuple):
    """A layer, with the result of applying it to a clip.

    Args:
        layer: The layer.
        result: Its result.
        changes: Largest displacements and rotations of the joints that have goals or keys.
        findings: Findings from comparing the clips before and after the layer.
    """

    layer: Layer
    result: LayerResult
    changes: list[EditChange]
    findings: list[Finding]


class EditStack:
    """A clip under layers that change repeatedly; a layer is solved again only if it or a layer below has changed.

    Args:
        motion: The clip.
        feet: As in ``edit``.
        up: As in ``edit``.
        tolerance: As in ``IK``.
    """

    def __init__(
        self,
        motion: Motion,
        feet: Sequence[str | int] | None = None,
        up: str | None = None,
        tolerance: tuple[float, float] | None = None,
    ) -> None:
        """Start without layers."""
        self._motion, self._feet, self._up, self._tolerance = motion, feet, up, tolerance
        self._body: Body | None = None
        self._looks = False
        self._applied: list[_Applied] = []
        self._lock = threading.RLock()

    def edited(
        self, layers: Sequence[Layer], *, deadline: float | None = None, progress: Progress | None = None
    ) -> Edited:
        """Return the result of ``edit`` for these layers."""
        motion, count, watch = self._motion, len(self._motion), Watch(deadline_of(deadline))
        with self._lock:
            applied = self._apply(layers, watch, progress)
            if not applied:
                return Edited(motion, np.ones(count, bool), np.zeros(count, bool), ())
            body, q = self._body_of(looks=self._looks), applied[-1].result.q
            if deadline is not None:  # the deadline may have left frames unsolved: later calls solve them again
                self._applied = []
        acts, reached = np.zeros(count, bool), np.ones(count, bool)
        findings, kept = list[Finding](), list[EditClearance]()
        for layer, result, _, found in applied:
            acts[result.frames[result.acts]] = True
            later = (result.q[result.frames] != q[result.frames]).any()
            if later or result.missed.any():
                findings += _misses(body, q, layer, result, self._tolerance, reached)
            for one in _clearances(body, q, layer, result):
                kept.append(one)
                reached[list(one.missed_frames)] = False
                findings += [
                    Finding("body", "missed", "failed", near.frames, near.text(body.given.meters_per_unit), one.layer)
                    for near in one.too_near
                ]
            findings += [*found, *_findings(body, motion, layer, result)]
        findings += _about_the_clip(motion, body, q, acts)
        changes = tuple(change for one in applied for change in one.changes)
        edited = Motion(motion.skeleton, q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)
        return Edited(edited, reached, acts, tuple(findings), changes, body.up, tuple(kept))

    def values(self, layers: Sequence[Layer]) -> Array:
        """Return the joint values of the clip with layers, (T, nq); callers must not change them."""
        with self._lock:
            applied = self._apply(layers, Watch(), None)
            return applied[-1].result.q if applied else self._motion.q

    def on_top(self, below: Sequence[Layer], layer: Layer) -> LayerOnClip:
        """Return a layer of one frame, applied on top of other layers, to solve its frame again for moving targets.

        Args:
            below: The other layers.
            layer: The layer.
        """
        with self._lock:
            applied = self._apply(below, Watch(), None, also=layer)
            q = applied[-1].result.q if applied else self._motion.q
            body, options = self._body_of(looks=self._looks), Options(Watch(), Meter(None, []), self._tolerance)
            return LayerOnClip(body, q, layer, [one.result for one in applied], options)

    @property
    def body(self) -> Body:
        """The body of the clip."""
        with self._lock:
            return self._body_of(looks=self._looks)

    def _body_of(self, *, looks: bool) -> Body:
        """Return the body of the clip; ``looks`` is the argument of ``Body``."""
        if self._body is None or looks != self._looks:
            self._body, self._looks = Body(self._motion, self._feet, self._up, looks=looks), looks
            self._applied.clear()
        return self._body

    def _apply(
        self, layers: Sequence[Layer], watch: Watch, progress: Progress | None, *, also: Layer | None = None
    ) -> list[_Applied]:
        """Apply layers in order, and return those that have an effect.

        Args:
            layers: The layers.
            watch: Stops the solves.
            progress: As in ``edit``.
            also: A layer that the caller applies on top; only the choice of human limits takes it into account.
        """
        count = len(self._motion)
        acting = [(i, layer) for i, layer in enumerate(layers) if not layer.empty]
        spans = [layer.span(count) for _, layer in acting]
        if not count:
            for i, layer in acting:
                raise InputError("the clip has no frames", where=_place(i, layer))
        every = [layer for _, layer in acting] + ([] if also is None else [also])
        if not every or not count:
            return []
        body = self._body_of(
            looks=any(_looks(self._motion.skeleton, goal) for layer in every for goal, _ in layer.all_goals())
        )
        same = 0
        while same < min(len(acting), len(self._applied)) and self._applied[same].layer is acting[same][1]:
            same += 1
        if same == len(acting):  # nothing to solve; the results of layers above stay cached
            return self._applied[:same]
        done = self._applied[:same]
        meter = Meter(progress, [max(last - first + 1, 0) for first, last in spans[same:]])
        options = Options(watch, meter, self._tolerance)
        q = done[-1].result.q if done else self._motion.q.copy()
        for i, layer in acting[same:]:
            meter.begin_layer()
            try:
                result = LayerOnClip(body, q, layer, [one.result for one in done], options).apply()
            except SynoviaError as error:
                where = ": ".join(filter(None, (_place(i, layer), error.where)))
                raise restated(error, type(error), where) from error
            before, after = (world_frames(body.skeleton, values[result.frames]) for values in (q, result.q))
            found = [*_helping(body, before, after, layer, result), *_jerking(body, q, layer, result)]
            done.append(_Applied(layer, result, _changes(body, before, after, layer, result), found))
            q = result.q
        meter.end()
        self._applied = done
        return list(done)


def _as_layers(layers: Any) -> tuple[Layer, ...]:
    """Return layers as a tuple.

    Raises:
        InputError: If an item is not a layer.
    """
    if isinstance(layers, Layer):
        return (layers,)
    given: Any = layers
    if isinstance(layers, str | dict) or not isinstance(layers, Iterable):
        expected = "layers, such as [Layer({'left_hand': place}, frames=(3, 9))]"
        raise InputError("layers", value=given, expected=expected)
    out = tuple(given)
    for i, layer in enumerate(out):
        check_kind(f"layers[{i}]", layer, Layer, "sy.Layer({joint: place}, frames=(first, last)) makes one")
    return out


def _looks(skeleton: Skeleton, goal: Goal) -> bool:
    """Return whether a goal aims the head or an eye at a point, on a body with hips."""
    if not isinstance(goal, AimGoal) or "head" not in skeleton.role_rows or "hips" not in skeleton.role_rows:
        return False
    rows = [skeleton.role_rows.get(role) for role in ("head", "left_eye", "right_eye")]
    return goal.located(skeleton)[1][0] in rows


def _place(i: int, layer: Layer) -> str:
    """Return a name for layer i in error messages."""
    return f"layers[{i}]" if layer.name is None else f"layers[{i}] ({layer.name})"


def _changes(body: Body, before: Array, after: Array, layer: Layer, result: LayerResult) -> list[EditChange]:
    """Return the displacements and rotations that a layer causes in the joints of its goals and keys.

    Args:
        body: The body of the clip.
        before: World frames of all joints before the layer, in the frames of the layer, (n, joints, 12).
        after: The same after the layer.
        layer: The layer.
        result: The result of the layer.
    """
    skeleton = body.given
    rows = [one.end for one in result.asked if one.end >= 0 and not one.stays]
    rows += [row for key in layer.keys for row in skeleton.by_row(key.values, "pose")]
    moves = (before[:, list(result.cleared)] != after[:, list(result.cleared)]).any(axis=(0, 2))
    rows += [row for row, is_moved in zip(result.cleared, moves, strict=True) if is_moved]
    out: list[EditChange] = []
    for row in dict.fromkeys(rows):
        ways = np.linalg.norm(after[:, row, 9:] - before[:, row, 9:], axis=1)
        a, b = (matrix_to_quat(frames[:, row, :9].reshape(-1, 3, 3)) for frames in (before, after))
        turns = np.linalg.norm(rotation_between(a, b), axis=1)
        worst = int(np.argmax(ways if ways.max() > 0.0 else turns))
        name = skeleton.joint_names[row]
        out.append(EditChange(layer.label, name, float(ways.max()), float(turns.max()), int(result.frames[worst])))
    return out


def _helping(body: Body, before: Array, after: Array, layer: Layer, result: LayerResult) -> list[Finding]:
    """Return a finding if a layer that has goals only for limbs also moves the rest; arguments as in ``_changes``."""
    skeleton = body.given
    tops = [body.limb(one.end)[-1:] if one.end >= 0 else () for one in result.asked if not one.stays]
    if not tops or not all(tops):
        return []
    own = {row for top in tops for row in top} | {row for end in result.cleared for row in body.limb(end)[-1:]}
    own |= {row for key in layer.keys for row in skeleton.by_row(key.values, "pose")}
    others = [row for row in range(len(skeleton)) if own.isdisjoint(ancestors(skeleton.parents, row))]
    ways = np.linalg.norm(after[:, others, 9:] - before[:, others, 9:], axis=2)
    moved = ways.max(axis=1, initial=0.0) > _MOVED * skeleton.size
    if not moved.any():
        return []
    names = _by_themselves(body, before, after, others)
    text = f"the rest of the body moves too, as the limb does not reach far enough: {' and '.join(names)}"
    return [Finding("body", "body", "note", tuple(result.frames[moved].tolist()), text, layer.label)]


def _by_themselves(body: Body, before: Array, after: Array, rows: list[int]) -> list[str]:
    """Return texts about joints that change most relative to their parents; if possible, only joints with roles."""
    skeleton, changes = body.given, dict[int, tuple[float, str]]()
    for row in rows:
        (a, place), (b, moved) = (_relative(frames, row, skeleton.parents[row]) for frames in (before, after))
        angle = float(np.linalg.norm(rotation_between(a, b), axis=1).max())
        length = float(np.linalg.norm(moved - place, axis=1).max())
        name, share = skeleton.joint_names[row], length / skeleton.size
        if share > _MOVED:
            changes[row] = share + angle, f"{name} moves by up to {length_text(length, skeleton.meters_per_unit)}"
        else:
            changes[row] = angle, f"{name} turns by up to {np.degrees(angle):.3g} deg"
    shown = changes.keys() & set(skeleton.role_rows.values()) or changes.keys()
    first, *more = sorted((changes[row] for row in shown), reverse=True)[:_HELPERS]
    return [first[1], *(text for change, text in more if change > _TURNED)]


def _relative(frames: Array, row: int, parent: int) -> tuple[Array, Array]:
    """Return a joint's quaternions, (n, 4), and positions, (n, 3), in its parent's frame, given world frames."""
    turn, place = frames[:, row, :9].reshape(-1, 3, 3), frames[:, row, 9:]
    if parent < 0:
        return matrix_to_quat(turn), place
    inverse = frames[:, parent, :9].reshape(-1, 3, 3).swapaxes(1, 2)
    return matrix_to_quat(inverse @ turn), (inverse @ (place - frames[:, parent, 9:])[:, :, None])[:, :, 0]


def _jerking(body: Body, below: Array, layer: Layer, result: LayerResult) -> list[Finding]:
    """Return a finding if a joint accelerates more in a fade than both the clip and a smooth fade do.

    Args:
        body: The body of the clip.
        below: Joint values of the clip below the layer, (T, nq).
        layer: The layer.
        result: The result of the layer.
    """
    first, last = layer.bounds(len(below))
    fades = [*range(first - layer.blend, first + 1), *range(last, last + layer.blend + 1)]
    inner = np.array([frame for frame in fades if 0 < frame < len(below) - 1], np.int64)
    if not result.asked or layer.blend < _FADES or not len(inner):
        return []
    moved = Moved(body.skeleton, below, result.q)
    jerks = moved.jerks(below, result.q, layer.blend)[inner - 1]
    if jerks.max(initial=0.0) <= _SUDDEN:
        return []
    name = body.given.joint_names[int(moved.rows[int(np.argmax(jerks.max(axis=0)))])]
    text = (
        f"{name} jerks in the fade: its acceleration is {jerks.max():.3g} times that of a smooth fade and of the clip;"
        " use a longer blend, or a clip that does not jump there"
    )
    return [Finding(name, "jerk", "look", tuple(inner[(jerks > _SUDDEN).any(axis=1)].tolist()), text, layer.label)]


def _change_text(change: EditChange, skeleton: Skeleton) -> str:
    """Return a text with a joint's displacement, in the unit of the file and in metres, and with its rotation."""
    angle = f"turned by at most {_degrees_text(change.angle)}"
    if change.length <= _NOTHING * skeleton.size:
        return f"{change.joint} {angle}" if change.angle > _NOTHING else f"{change.joint} stays as it is"
    also = f", {angle}" if change.angle >= _TURNED else ""
    return f"{change.joint} moved by at most {_in_file_units(change.length, skeleton)}{also}"


def _degrees_text(angle: float) -> str:
    """Return an angle in degrees as text. Angles below 10 degrees have two significant digits."""
    degrees = float(np.degrees(angle))
    return f"{degrees:.0f} deg" if degrees >= 10.0 else f"{degrees:.2g} deg"


def _in_file_units(length: float, skeleton: Skeleton) -> str:
    """Return a length in the file's unit and in metres; if the unit is unknown, with its size on an adult or body."""
    unit, size = skeleton.meters_per_unit, size_of(skeleton)
    if unit is None:
        own, share = length_text(length, None), length / size if size > 0.0 else 0.0
        if skeleton.role_rows.keys() >= _PERSON:
            return f"{own} (about {length_text(float(f'{_ADULT * share:.2g}'), 1.0)} on an adult)"
        return f"{own} ({100.0 * share:.2g} % of the body's size)"
    own, metric = f"{length:.3g} {unit_name(unit)}", length_text(length, unit)
    return own if own == metric or unit == 1.0 else f"{own} ({metric})"


def _in_another_unit(skeleton: Skeleton, layer: Layer) -> list[tuple[str, str]]:
    """Return joints of a relative layer whose offsets are so small that their unit may be wrong, each with a text."""
    size, unit = size_of(skeleton), skeleton.meters_per_unit
    out: list[tuple[str, str]] = []
    for joint, target in layer.targets.items() if layer.relative else ():
        way = 0.0 if target.position is None else float(np.linalg.norm(target.position, axis=1).max(initial=0.0))
        if 0.0 < way < _TINY * size:
            whole = f"{size:.4g} {unit_name(unit)}{'s' if unit is None else ''}"
            text = (
                f"the offset of {joint}, {way:.3g}, is less than a thousandth of the body's size, {whole}: is it in the"
                " unit of the file?"
            )
            out.append((str(joint), text))
    return out


def _misses(
    body: Body,
    q: Array,
    layer: Layer,
    result: LayerResult,
    tolerance: tuple[float, float] | None,
    reached: Bools,
) -> list[Finding]:
    """Return a finding for each goal of a layer that the edited clip misses, and clear ``reached`` at these frames."""
    asked, out = [one for one in result.asked if not one.clears], list[Finding]()
    if not asked:
        return out
    errors, most = errors_of(body, q[result.frames], asked, tolerance)
    for k, one in enumerate(asked):
        off = (errors[:, k] > most[k]).any(axis=1) & result.aimed
        if not off.any():
            continue
        reached[result.frames[off]] = False
        worst = int(np.argmax((errors[:, k] / most[k]).max(axis=1) * off))
        length, angle = np.where(errors[worst, k] > most[k], errors[worst, k], 0.0).tolist()
        say = partial(length_text, meters_per_unit=body.given.meters_per_unit)
        text = f"{one.goal.label} {one.goal.describe_miss(length, angle, say)} in frame {result.frames[worst]}"
        if held := legs_at_limits(body, q[result.frames[worst]], result.feet):
            text += f"; at a limit there: {first_few([body.given.joint_names[row] for row in held])}"
        limb = body.given.joint_names[one.end] if one.end >= 0 else "body"
        out.append(Finding(limb, "missed", "failed", tuple(result.frames[off].tolist()), text, layer.label))
    return out


def _clearances(body: Body, q: Array, layer: Layer, result: LayerResult) -> list[EditClearance]:
    """Return the results of a layer's clearance goals in the edited clip (T, nq)."""
    frames: list[int] = result.frames.tolist()
    return [
        EditClearance(
            layer.label, goal, tuple(frames), tuple(near_pairs(body.skeleton, q[result.frames], frames, goal))
        )
        for goal, _ in clearances(result.asked)
    ]


def _findings(body: Body, motion: Motion, layer: Layer, result: LayerResult) -> list[Finding]:
    """Return findings of a layer: keys outside limits, moved feet, units of offsets, fades beyond the clip's ends."""
    out: list[Finding] = []
    frames = tuple(result.frames.tolist())
    if result.cut:
        names = first_few([body.given.joint_names[row] for row in result.cut])
        text = f"keys of {names} are outside limits and were clamped to them"
        if body.given.loops:
            text = f"keys of {names} are outside limits or open loops, and were replaced by the nearest valid values"
        out.append(Finding("body", "limits", "look", frames, text, layer.label))
    for foot in result.feet:
        places, before = (
            world_frames(body.skeleton, values[result.frames])[:, foot.head, 9:] for values in (result.q, motion.q)
        )
        away = np.linalg.norm(places - before, axis=1) * foot.stands[result.frames]
        off = away > _MOVED * body.given.size
        if off.any():
            far = length_text(float(away.max()), body.given.meters_per_unit)
            name = body.given.joint_names[foot.head]
            text = f"{name} stands in the clip, but the edit moves it by up to {far}"
            out.append(Finding(name, "feet", "look", tuple(result.frames[off].tolist()), text, layer.label))
    out += [
        Finding(joint, "unit", "look", frames, text, layer.label) for joint, text in _in_another_unit(body.given, layer)
    ]
    first, last = layer.bounds(len(motion))
    short = [frame for frame, room in ((0, first), (len(motion) - 1, len(motion) - 1 - last)) if 0 < room < layer.blend]
    if short:
        text = f"a fade of {layer.blend} frames does not fit: it begins or ends outside the clip"
        out.append(Finding("body", "room", "look", tuple(short), text, layer.label))
    return out


def _about_the_clip(motion: Motion, body: Body, q: Array, acts: Bools) -> list[Finding]:
    """Return findings about the edited clip (T, nq): values outside limits, limits of head and eyes, animated scale."""
    out: list[Finding] = []
    if body.outside:
        names = first_few([body.given.joint_names[row] for row in body.outside])
        frames: Bools = np.any(list(body.outside.values()), axis=0)
        text = f"the clip is outside the limits of {names}; the edit does not correct this"
        out.append(Finding("body", "limits", "look", tuple(np.flatnonzero(frames).tolist()), text))
    if body.bounded:
        edited = Motion(body.skeleton, inside_limits(body.skeleton, q), motion.fps)
        held = {row: at_limit(edited, row) & acts for row in body.bounded}
        if rows := [row for row, frames in held.items() if frames.any()]:
            names = first_few([body.given.joint_names[row] for row in rows])
            text = f"the file has no limits for {names}: while looking, they keep to the limits of people"
            frames = np.any([held[row] for row in rows], axis=0)
            out.append(Finding("body", "limits", "look", tuple(np.flatnonzero(frames).tolist()), text))
    if body.unbounded:
        text = (
            "the rest pose does not stand, so the head has no limits: check whether it turns too far;"
            " for a clip of sy.skeletons.stand_at_rest(motion), limits of people are used"
        )
        out.append(Finding("head", "limits", "look", tuple(np.flatnonzero(acts).tolist()), text))
    if motion.stretch is not None:
        text = "goals were met on rigid bones: animated scale may move them"
        out.append(Finding("body", "stretch", "look", tuple(np.flatnonzero(acts).tolist()), text))
    return out
