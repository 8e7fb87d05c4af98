"""A session: one body with goal editors, as one person edits it. Every change holds its lock; no browser, no thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from synovia.errors import InputError, UnsupportedError, unknown_name
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import checked_tolerance
from synovia.io.load import clip_number
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, as_numbers
from synovia.model.motion import Motion
from synovia.model.pose import inside_limits
from synovia.model.tree import ancestors
from synovia.solver import Solver, as_solver
from synovia.viewer.editing.clip import Key, Play, blend, change_between, changed, sample, still_clip, together
from synovia.viewer.editing.editor import GoalEditor, kind_of
from synovia.viewer.editing.editor_values import (
    edited,
    free_label,
    holds,
    place_at_current,
    set_defaults,
    with_reference,
)
from synovia.viewer.editing.mirror import counterparts, mirrored
from synovia.viewer.editing.root import Rooted, changed_root, rooted, with_root_values, without_root_values
from synovia.viewer.editing.standin import limb_of
from synovia.viewer.editing.undo import Undo

_MOST_EDITORS: Final = 64
_MOST_POSES: Final = 1000  # of the library
_LONGEST_NAME: Final = 60  # characters
_FAR: Final = 1e4  # largest distance of a target, body sizes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of the session that undo restores."""

    editors: tuple[GoalEditor, ...]
    root: Rooted
    q: Array
    base: Array  # joint values underneath the clip
    solver: Solver
    play: Play
    library: Mapping[str, Pose]


@dataclass(slots=True, eq=False)
class Session:
    """A skeleton with goal editors, a solver, a root mode and a clip.

    Args:
        given: The given skeleton; the root of a clip that moves stands before its joints.
        clips: Clips to choose from.
        solver: Settings of the solver. The default makes one attempt, so that the body moves without jumps.
        mode: How the root moves, see ``rooted``.
        tolerance: As in ``IK``.
    """

    given: Skeleton
    clips: Sequence[Motion] = ()
    solver: Solver = field(default_factory=lambda: as_solver(None).without_restarts())
    mode: str = "fixed"
    tolerance: tuple[float, float] | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    changed: threading.Event = field(default_factory=threading.Event)
    editors: list[GoalEditor] = field(default_factory=list[GoalEditor])
    play: Play = field(default_factory=Play)
    library: Mapping[str, Pose] = field(default_factory=dict[str, Pose])  # poses of the given skeleton by name
    auto_key: bool = False  # whether an edit by hand becomes a key once the body rests
    version: int = 0
    rooted: Rooted = field(init=False)
    pose: Pose = field(init=False)
    _base: Array = field(init=False)
    _undo: Undo[Snapshot] = field(default_factory=Undo[Snapshot])
    _within: bool = False  # within ``one_step``
    _copied: tuple[str, Array] | None = None  # root mode and joint values, (nq,), of the pose that was copied
    _key_due: bool = False
    _next_key: int = 1
    size: float = field(init=False)

    def __post_init__(self) -> None:
        """Check the arguments, and set the rest pose."""
        self.given, self.clips = together(self.given, self.clips)
        self.size = self.given.size or 1.0  # size of the body, length units
        if self.tolerance is not None:
            self.tolerance = checked_tolerance(self.tolerance, self.size)
        self.rooted = rooted(self.given, self.mode)
        self.mode = self.rooted.mode
        self.pose = Pose(self.skeleton, with_root_values(self.given.rest_q, self.rooted))
        self._base = self.pose.q.copy()

    @property
    def skeleton(self) -> Skeleton:
        """The solved skeleton: the given one, after the joints of a root that moves."""
        return self.rooted.skeleton

    def find(self, key: int | None) -> GoalEditor | None:
        """Return an editor by its key, None if there is none."""
        return next((editor for editor in self.editors if editor.key == key), None)

    def editor(self, key: int | None) -> GoalEditor:
        """Return an editor by its key.

        Raises:
            InputError: If the goal was removed.
        """
        if (editor := self.find(key)) is None:
            raise InputError("the goal was removed, or none is selected", value=key)
        return editor

    def add(self, kind: str, joint: str | int | None, *, label: str | None = None) -> GoalEditor:
        """Add an editor whose target is the present pose of the joint.

        Raises:
            UnknownNameError: If the joint or the kind is unknown.
            InputError: If the page has too many goals.
        """
        with self.lock:
            goal, row = kind_of(kind).goal, None
            if goal.on_joint:
                named = 0 if joint is None else joint
                row = self.given.value_index(named) if goal.bounds_value else self.given.locate(named)[0]
            called = label or (kind if row is None else self.given.joint_names[row])
            if len(self.editors) >= _MOST_EDITORS:
                raise InputError("too many goals", value=len(self.editors) + 1, expected=f"at most {_MOST_EDITORS}")
            editor = GoalEditor(self._next_key, kind, row, free_label(called, (one.label for one in self.editors)))
            set_defaults(editor, self.given)
            self.to_current(editor)
            self.remember()
            self._next_key += 1
            self.editors.append(editor)
            self.touch(structure=True)
            return editor

    def remove(self, key: int | None) -> None:
        """Remove an editor."""
        with self.lock:
            editor = self.editor(key)
            self.remember()
            self.editors.remove(editor)
            self.touch(structure=True)

    def change(self, key: int | None, **values: Any) -> None:
        """Change ``enabled``, ``weight``, ``priority``, ``kind`` or ``values`` of an editor.

        Raises:
            InputError: If a value cannot be used.
        """
        with self.lock:
            editor = self.editor(key)
            tried = edited(editor, values, self.given, self.to_current)
            self.remember((key, *values) if set(values) <= {"weight", "values"} else None)
            editor.become(tried)
            self.touch(structure=True)

    def move(self, key: int | None, place: Any = None, turn: Any = None) -> None:
        """Move an editor's target; the eased target follows.

        Args:
            key: Key of the editor.
            place: World position, (3,), length units.
            turn: World rotation, (3, 3).

        Raises:
            InputError: If a value is not finite or the target is too far away.
        """
        with self.lock:
            editor = self.editor(key)
            if place is not None:
                place = as_numbers(place, (3,), "target")
                if np.abs(place - self.pose.frames[0, 9:]).max() > _FAR * self.size:
                    raise InputError(
                        "target is too far away", value=place.tolist(), expected=f"at most {_FAR:g} body sizes"
                    )
                editor.position, editor.given = place, editor.given | POSITION
            if turn is not None:
                editor.rotation, editor.given = as_numbers(turn, (3, 3), "rotation"), editor.given | ROTATION
            self.touch(structure=editor.free)
            editor.enabled, editor.idle, editor.follows = editor.enabled or editor.idle, False, False

    def to_current(self, editor: GoalEditor) -> None:
        """Set an editor's target to the present pose of its joint."""
        place_at_current(editor, self.pose, self.rooted.added, self.size)
        editor.given = POSITION | ROTATION
        self.touch()

    def joint_values(self) -> dict[str | int, Any]:
        """Return the values of all joints that move, except free joints, by the key of the joint."""
        rows = [row for row, joint in enumerate(self.given.joints) if joint.kind.q_size and joint.kind is not Kind.FREE]
        return {self.given.address(row): self.pose[row + self.rooted.added] for row in rows}

    def set_joint(self, row: int, values: Any, *, step: bool = True) -> None:
        """Set a joint's value, clamped to its limits. The joint keeps it, and the targets that it moves go with it.

        On a clip, the change stays on top of the clip until it is keyed. Rest goals take the value as their reference.

        Args:
            row: Row of the solved skeleton.
            values: As in ``Pose.with_values``.
            step: Whether the change is a step of undo; quick changes of one joint are one step.
        """
        with self.lock:
            place = self.skeleton.q_slice(row)
            value = as_numbers(values, (place.stop - place.start,), f"value of {self.skeleton.joint_names[row]!r}")
            if step:
                self.remember(("joint", row))
            to = _with_value(self.skeleton, self.start().q, place, value)
            if self.play.motion is None:
                self.put(to)
            else:
                self.play.loose = None
                self.play.loose = change_between(self.skeleton, self.start().q, to)
                self.pose = Pose(self.skeleton, _with_value(self.skeleton, self.pose.q, place, value))
            self._let_goals_keep(row)

    def clear_joint(self, row: int) -> None:
        """Set a joint of the given skeleton to its rest value."""
        self.set_joint(row + self.rooted.added, self.given.rest_q[self.given.q_slice(row)])

    def _let_goals_keep(self, row: int) -> None:
        """Let goals keep the present value of a joint: targets that it moves go with it, rest goals hold the value.

        Args:
            row: Row of the solved skeleton.
        """
        structure, added = False, self.rooted.added
        for editor in (one for one in self.editors if one.enabled):
            if editor.row is not None:
                follows = editor.follows and self.play.motion is not None
                moves = row in ancestors(self.skeleton.parents, editor.row + added)
                if moves and editor.has_target and not follows:
                    place_at_current(editor, self.pose, added, self.size)
            elif row >= added and holds(editor, self.given, row - added):
                structure = True
                editor.values["pose"] = with_reference(editor, self.given, row - added, self.pose[row])
        self.touch(structure=structure)

    def put(self, q: Array) -> None:
        """Set the pose by joint values of the solved skeleton, (nq,), clamped to its limits."""
        with self.lock:
            inside = inside_limits(self.skeleton, np.array(q).reshape(1, -1))[0]
            self._base = np.array(inside)
            self.pose = Pose(self.skeleton, inside)
            self.touch()

    def set_root(self, mode: str) -> None:
        """Change how the root moves; the body stays where it is."""
        with self.lock:
            if self.play.keys:
                raise UnsupportedError(
                    "the root cannot move another way while the clip has keys", hint="delete the keys first"
                )
            to, q = changed_root(self.pose.q, self.rooted, self.given, mode)
            self.remember()
            if self.play.loose is not None:
                self.play.loose = with_root_values(without_root_values(self.play.loose, self.given), to)
            self._root(to, q)

    def rest(self) -> None:
        """Set the rest pose, with the root where the file has it, and move every target to the body."""
        with self.lock:
            self.remember()
            to = rooted(self.given, self.mode)
            self._root(to, to.skeleton.rest_q)
            for editor in self.editors:
                self.to_current(editor)

    def mirror(self) -> None:
        """Exchange the left and the right of the pose; the goals of the two sides change places, and hold there.

        On a clip, the mirrored pose becomes a key.
        """
        with self.lock:
            if self.play.motion is not None:
                self.key(mirrored(self.pose))
                return
            self.remember()
            pairs = counterparts(self.given)
            states = {(editor.row, editor.kind): (editor.enabled, editor.idle) for editor in self.editors}
            self.put(mirrored(self.pose))
            for editor in self.editors:
                if editor.row is not None:
                    other = (pairs[editor.row], editor.kind)
                    editor.enabled, editor.idle = states.get(other, (editor.enabled, editor.idle))
                if editor.has_target:
                    self.to_current(editor)
            self.touch(structure=True)

    def copy_pose(self) -> None:
        """Copy the present pose, so that ``paste_pose`` can set it again."""
        with self.lock:
            self._copied = self.mode, self.pose.q.copy()

    def paste_pose(self, *, mirror: bool = False) -> None:
        """Set the pose that was copied last, and move every target to the body; on a clip, the pose becomes a key.

        The root goes where it was, unless it moves in another way now.

        Args:
            mirror: Whether to paste the mirror image.

        Raises:
            InputError: If no pose was copied.
        """
        with self.lock:
            if self._copied is None:
                raise InputError("no pose was copied", hint="C copies the present pose")
            mode, copied = self._copied
            own = without_root_values(copied, self.given)
            self._apply(copied if mode == self.mode else self._with_present_root(own), mirror=mirror)

    def _with_present_root(self, own: Array) -> Array:
        """Return joint values of the given skeleton, (nq,), after those of the root that the page has added."""
        return np.concatenate([self.pose.q[: -self.given.nq or None], own])

    def _apply(self, q: Array, *, mirror: bool) -> None:
        """Set a pose or its mirror image, and move every target to the body; on a clip, the pose becomes a key."""
        if mirror:
            q = mirrored(Pose(self.skeleton, q))
        if self.play.motion is not None:
            self.key(q)
            return
        self.remember()
        self.put(q)
        for editor in self.editors:
            self.to_current(editor)
        self.touch(structure=True)

    def keep_pose(self, name: str) -> None:
        """Keep the present pose in the library, in place of one that has the name.

        Raises:
            InputError: If the name is empty or too long, or the library is full.
        """
        with self.lock:
            own = Pose(self.given, without_root_values(self.pose.q, self.given))
            self.add_poses({name.strip(): own})

    def add_poses(self, poses: Mapping[str, Pose]) -> None:
        """Add poses of the given skeleton to the library.

        Raises:
            InputError: If a name is empty or too long, or the library is full.
        """
        with self.lock:
            for name in poses:
                if not 0 < len(name) <= _LONGEST_NAME:
                    raise InputError("name of a pose", value=name, expected=f"1 to {_LONGEST_NAME} characters")
            library = {**self.library, **poses}
            if len(library) > _MOST_POSES:
                raise InputError("too many poses", value=len(library), expected=f"at most {_MOST_POSES}")
            self.remember()
            self.library = library
            self.touch()

    def apply_pose(self, name: str, *, mirror: bool = False) -> None:
        """Set a pose of the library, and move every target to the body; on a clip, the pose becomes a key.

        A root that the page has added stays where it is.

        Args:
            name: Name of the pose.
            mirror: Whether to set its mirror image.

        Raises:
            UnknownNameError: If the library has no such pose.
        """
        with self.lock:
            if name not in self.library:
                raise unknown_name("pose", name, self.library)
            self._apply(self._with_present_root(self.library[name].q), mirror=mirror)

    def drop_pose(self, name: str) -> None:
        """Remove a pose from the library."""
        with self.lock:
            self.remember()
            self.library = {other: pose for other, pose in self.library.items() if other != name}
            self.touch()

    def pin(self, key: int | None) -> bool:
        """Hold the joint of a goal where it is, or let it go if it is held; return whether it is held now.

        A goal without a target of its own (a range) gets a position goal beside it.
        """
        with self.lock:
            editor = self.editor(key)
            if not editor.has_target:
                if editor.row is None:
                    raise InputError("a goal of the whole body has no joint to pin", value=editor.label)
                self.add("position", editor.row)
                return True
            self.remember()
            held = not editor.enabled or editor.follows
            self.to_current(editor)
            editor.enabled, editor.idle, editor.follows = held, not held, False
            self.touch(structure=True)
            return held

    def _root(self, to: Rooted, q: Array) -> None:
        """Change to another root."""
        self.rooted, self.mode = to, to.mode
        self.put(q)
        self.touch(structure=True)

    def set_solver(self, solver: Solver | str) -> None:
        """Change the settings, or change to another solver with its default settings and one attempt."""
        with self.lock:
            named, settings = isinstance(solver, str), as_solver(solver)
            self.remember(None if named else "solver")
            self.solver = settings.without_restarts() if named else settings
            self.touch(structure=True)

    def set_clip(self, number: int | None) -> None:
        """Play another clip, or none.

        No goal that was there before pins the clip: targets follow it until they are moved, and goals of the whole body
        are off until there is no clip again.
        """
        with self.lock:
            motion = None if number is None else self.clips[clip_number(self.clips, number, self.given.name)]
            if motion is not None and not len(motion):
                raise InputError("the clip has no frames", where=motion.name, expected="at least one")
            self.remember()
            self._key_due = False
            paused = self.play.paused
            for editor in self.editors:
                if editor.has_target:
                    if editor.follows and motion is None:
                        self.to_current(editor)
                    editor.follows = editor.enabled and motion is not None
                elif motion is not None and editor.enabled:
                    editor.enabled, paused = False, paused | {editor.key}
                elif motion is None and editor.key in paused:
                    editor.enabled = True
            self.play = Play(motion, paused=frozenset() if motion is None else paused)
            self.touch(structure=True)

    def new_clip(self, seconds: float) -> None:
        """Begin a clip of the present pose, which is its first key; more keys make it move.

        Args:
            seconds: Length of the clip.

        Raises:
            InputError: If the length cannot be used.
        """
        with self.lock:
            q = self.pose.q.copy()
            names = [motion.name for motion in self.clips]
            clip = still_clip(self.given, without_root_values(q, self.given), seconds, names)
            self.clips = [*self.clips, clip]
            with self.one_step():
                self.set_clip(len(self.clips) - 1)
                self.play.holds = True
                self.key(q)

    def set_span(self, first: int | None = None, last: int | None = None) -> None:
        """Set the first or the last frame of the clip that plays.

        Raises:
            InputError: If the clip has no such frames.
        """
        with self.lock:
            play, motion = self._clip()
            first, last = play.first if first is None else first, play.end if last is None else last
            if not 0 <= first < last < len(motion):
                expected = f"two frames of 0 to {len(motion) - 1}"
                raise InputError("frames that play", value=(first, last), expected=expected)
            self.remember("span")
            play.first, play.last = first, last
            play.time = float(np.clip(play.time, *play.span))
            self.touch()

    def finish_edit(self) -> None:
        """Note the end of an edit by hand, such as a drag: with ``auto_key``, the pose of a clip will be keyed."""
        with self.lock:
            if self.auto_key and self.play.motion is not None:
                self.play.playing = False
                self._key_due = True
                self.touch()

    def key_if_due(self) -> Key | None:
        """Key the pose if ``finish_edit`` has asked for it, in the same step of undo; return the key."""
        with self.lock:
            return self.key(step=False) if self._key_due and self.play.motion is not None else None

    def key(self, q: Array | None = None, *, step: bool = True) -> Key:
        """Keep a pose at the present frame as a key on top of the clip, and let the goals follow again.

        Args:
            q: Joint values of the pose, (nq,) of the solved skeleton, clamped to their limits; None: the present pose.
            step: Whether the key is a step of undo.

        Raises:
            InputError: If no clip is chosen.
        """
        with self.lock:
            play, motion = self._clip()
            if step:
                self.remember()
            self._key_due = False
            to: Array = self.pose.q if q is None else inside_limits(self.skeleton, q[None])[0]
            play.playing = False
            play.time = play.frame / motion.fps
            key = Key(play.frame, change_between(self.skeleton, self._clip_values(play.time), to))
            self._put_keys(key.frame, key)
            play.loose = None
            for editor in self.editors:
                editor.follows = editor.enabled and editor.has_target
            self.touch()
            return key

    def part_of(self, key: int | None) -> frozenset[int]:
        """Return the part of the body that belongs to a goal: its limb, and all below its joint.

        The part is a set of rows of the solved skeleton.

        Raises:
            InputError: If the goal was removed, or has no joint.
        """
        editor = self.editor(key)
        if editor.row is None:
            raise InputError("a goal of the whole body has no joint", value=editor.label)
        at, parents = editor.row + self.rooted.added, self.skeleton.parents
        below = (row for row in range(at, len(parents)) if at in ancestors(parents, row))
        return frozenset((*limb_of(self.skeleton, at), *below))

    def move_key(
        self, frame: int, to: int | None = None, *, copy: bool = False, part: frozenset[int] | None = None
    ) -> None:
        """Move or copy a key to another frame, in place of what is keyed there.

        Args:
            frame: Frame of the key.
            to: The other frame; None: the present one.
            copy: Whether the key also stays where it is.
            part: Part of the body whose key it is, see ``part_of``; None for the whole body.

        Raises:
            InputError: If there is no such key or no such frame.
        """
        with self.lock:
            play, motion = self._clip()
            to = play.frame if to is None else to
            key = self._key_at(frame, part)
            if not 0 <= to < len(motion):
                raise InputError("frame of the key", value=to, expected=f"0 to {len(motion) - 1}")
            if to == frame:
                raise InputError("the key is at this frame", value=to, hint="go to the frame where it should be")
            self.remember()
            new = replace(key, frame=to, joints=key.of(part))
            there = play.key_at(to)
            if there is not None and new.joints is not None:
                change = there.change.copy()
                for place in map(self.skeleton.q_slice, new.joints):
                    change[place] = new.change[place]
                joints = None if there.joints is None else there.joints | new.joints
                new = Key(to, change, joints)
            self._put_keys(to, new)
            if not copy:
                self._put_keys(frame, self._without(key, part))

    def unkey(self, frame: int, part: frozenset[int] | None = None) -> None:
        """Remove the key at a frame, or what it keys of a part of the body (see ``part_of``)."""
        with self.lock:
            key = self._key_at(frame, part)
            self.remember()
            self._put_keys(frame, self._without(key, part))

    def _key_at(self, frame: int, part: frozenset[int] | None) -> Key:
        """Return the key of a part of the body at a frame.

        Raises:
            InputError: If there is none.
        """
        key = self.play.key_at(frame)
        if key is None or key.of(part) == frozenset[int]():
            raise InputError("there is no key", value=frame, expected="the frame of a key")
        return key

    def _without(self, key: Key, part: frozenset[int] | None) -> Key | None:
        """Return a key without a part of the body, None if nothing is left."""
        if part is None:
            return None
        rows = (row for row, joint in enumerate(self.skeleton.joints) if joint.kind.q_size)
        left = (frozenset(rows) if key.joints is None else key.joints) - part
        return replace(key, joints=left) if left else None

    def _put_keys(self, frame: int, key: Key | None) -> None:
        """Replace what is keyed at a frame; None: nothing."""
        keys = [other for other in self.play.keys if other.frame != frame]
        if key is not None:
            keys.append(key)
        self.play.keys = tuple(sorted(keys, key=lambda one: one.frame))
        self.touch()

    def _clip(self) -> tuple[Play, Motion]:
        """Return the state of the clip, and the clip.

        Raises:
            InputError: If no clip is chosen.
        """
        if self.play.motion is None:
            raise InputError("no clip is chosen", hint="the tab Animation has the clips of the model, and begins one")
        return self.play, self.play.motion

    def set_play(self, **values: Any) -> None:
        """Change ``time``, ``playing``, ``speed`` or ``weight`` of the clip."""
        with self.lock:
            for name, value in values.items():
                if name != "playing" and not math.isfinite(value):
                    raise InputError(f"{name} is not finite", value=value)
            if "time" in values:
                self.key_if_due()  # at the frame where the edit was made
            if {"speed", "weight"} & set(values):
                self.remember(("clip", *values))
            for name, value in values.items():
                setattr(self.play, name, value)
            self.play.playing = self.play.playing and self.play.motion is not None
            self.touch()

    def start(self, seconds: float | None = None) -> Pose:
        """Return the pose to solve from: that of the clip, blended by its weight, or the present pose without a clip.

        Args:
            seconds: Time of the clip; None for the present one.
        """
        if self.play.motion is None:
            return self.pose
        time = self.play.time if seconds is None else seconds
        q = self._clip_values(time)
        for change in (self.play.layer(self.skeleton, time), self.play.loose):
            q = q if change is None else changed(self.skeleton, q, change)
        return Pose.trusted(self.skeleton, q)

    def _clip_values(self, seconds: float) -> Array:
        """Return the joint values of the clip, blended by its weight, without its keys, (nq,)."""
        if self.play.motion is None:
            return self._base
        clip = with_root_values(sample(self.play.motion, seconds), self.rooted)
        return blend(self.skeleton, self._base, clip, self.play.weight)

    def place(self, editors: Iterable[GoalEditor], start: Pose) -> None:
        """Move the targets that follow: those of free goals to the body, others to the clip's pose ``start``."""
        for editor in editors:
            if editor.free or (editor.follows and self.play.motion is not None):
                pose = self.pose if editor.free else start
                place_at_current(editor, pose, self.rooted.added, self.size)

    def touch(self, *, structure: bool = False) -> None:
        """Signal a change; with ``structure``, the problem must be packed again."""
        self.version += structure
        self.changed.set()

    def remember(self, what: Hashable = None) -> None:
        """Keep the present state for undo; quick edits of the same thing (``what``) are one step."""
        with self.lock:
            if not self._within:
                self._undo.keep(self._snapshot(), what)

    @contextmanager
    def one_step(self) -> Generator[None]:
        """Make all changes in the context one step of undo."""
        with self.lock:
            self.remember()
            self._within = True
            try:
                yield
            finally:
                self._within = False

    def mark_first(self) -> None:
        """Keep the present state for ``reset``."""
        with self.lock:
            self._undo.begin(self._snapshot())

    @property
    def edited(self) -> bool:
        """Whether there is a change to undo."""
        return not self._undo.empty

    def undo(self) -> bool:
        """Restore the state before the last change; return whether there was one."""
        with self.lock:
            return self._restore(self._undo.undo(self._snapshot()))

    def redo(self) -> bool:
        """Restore the state that the last undo left; return whether there was one."""
        with self.lock:
            return self._restore(self._undo.redo(self._snapshot()))

    def reset(self) -> None:
        """Restore the first state, but for the library of poses."""
        with self.lock:
            if (first := self._undo.first) is not None:
                self.remember()
                self.play = replace(first.play)
                self._restore(replace(first, library=self.library))

    def _snapshot(self) -> Snapshot:
        editors = tuple(editor.copy() for editor in self.editors)
        play = replace(self.play)
        return Snapshot(editors, self.rooted, self.pose.q.copy(), self._base, self.solver, play, self.library)

    def _restore(self, snapshot: Snapshot | None) -> bool:
        """Restore a state; return whether there is one."""
        if snapshot is None:
            return False
        self._key_due, self.library = False, snapshot.library
        self.editors = [editor.copy() for editor in snapshot.editors]
        for editor in self.editors:
            editor.snap()
        self.solver, clip = snapshot.solver, snapshot.play
        same = self.play.motion is clip.motion  # a clip that was not changed keeps its time
        self.play = replace(clip, time=self.play.time, playing=self.play.playing) if same else replace(clip)
        self._root(snapshot.root, snapshot.q)
        self._base = snapshot.base
        return True


def _with_value(skeleton: Skeleton, q: Array, place: slice, value: Array) -> Array:
    """Return joint values, (nq,), with the values of one joint, clamped to its limits."""
    out = q.copy()
    out[place] = value
    out[place] = inside_limits(skeleton, out[None])[0][place]
    return skeleton.follow(out)
