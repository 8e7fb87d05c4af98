"""One layer on a clip: keys move joints, then goals are solved frame by frame around the clip.

In a fade, goals move on straight lines and shortest arcs between the clip's own places and their targets. The reference
of the joints there is a displaced clip: the change at the nearest frame of the layer, faded by the same share. Where
joints would jerk on the way, as a limb that was straight does, the displaced clip itself is the fade, and only feet that
stand are solved.

References:
    Lee & Shin (1999), *A hierarchical approach to interactive motion editing for human-like figures*; Witkin & Popović
    (1995), *Motion warping*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.editing.body import Body, PlantedFoot
from synovia.clips.editing.limbs import EditSolver
from synovia.errors import InputError
from synovia.goals import Goal, PoseGoal, RestGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik.compiled import CompiledProblem
from synovia.ik.interrupts import Watch
from synovia.kernels.layout import GIVEN, TARGET_WIDTH, TRANSFORM_WIDTH
from synovia.layers import Key, Layer, LayerTarget
from synovia.model import Skeleton
from synovia.model.change import blend, change_between, changed, no_change, smooth, turns
from synovia.model.geometry import Array, frames_to_transforms, rotation_between
from synovia.model.pose import inside_limits, world_frames
from synovia.model.tree import ancestors
from synovia.tracking.around import Around

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_REST_STEP: Final = 3e-4  # radians: the last step towards the clip, whose rounding the eye must not see
_JERK: Final = 1.6  # times the acceleration of a smooth fade, or of the clip, from which joints jerk
_STANDING, _FOLLOWING = 0, 1  # priority of feet that stand, and of goals of the layer before their own priority


@dataclass(slots=True)
class LayerResult:
    """What one layer has changed.

    Args:
        q: Joint values of the whole clip, (T, nq).
        acts: Frames in which the layer acts, (T,).
        goals: Its goals with the row of each, and their targets in these frames.
    """

    q: Array
    frames: Ints
    goals: list[Asked] = field(default_factory=list)
    missed: Bools = field(default_factory=lambda: np.zeros(0, bool))
    notes: list[tuple[str, str, Ints]] = field(default_factory=list)  # cause, sentence, frames


@dataclass(slots=True, eq=False)
class Asked:
    """A goal of a layer, resolved, with its targets.

    Args:
        goal: The goal.
        rows: Rows of its joints, its own first.
        wanted: Targets in the frames of the layer and its fades, (n, 4, 4).
        given: Parts that are given: POSITION, ROTATION or both.
        between: Whether a fade has targets between; else the displaced clip is its fade.
    """

    goal: Goal
    rows: tuple[int, ...]
    wanted: Array
    between: bool = True


def apply_layer(body: Body, q: Array, layer: Layer, watch: Watch, tolerance: tuple[float, float] | None) -> LayerResult:
    """Return a clip with a layer.

    Args:
        body: The body of the clip.
        q: The clip below the layer, (T, nq).
        layer: The layer.
        watch: When to stop.
        tolerance: As in ``IK``; None for the default.

    Raises:
        InputError: If the layer does not fit the clip.
        UnknownNameError: If a joint does not exist.
    """
    return _Application(body, q, layer, watch, tolerance).run()


class _Application:
    """A layer that is being applied to a clip."""

    def __init__(self, body: Body, q: Array, layer: Layer, watch: Watch, tolerance: tuple[float, float] | None) -> None:
        """Find the frames in which it acts."""
        self.body, self.q, self.layer, self.watch, self.tolerance = body, q, layer, watch, tolerance
        self.skeleton = body.skeleton
        count = len(q)
        self.first, self.last = layer.bounds(count)
        if self.last >= count:
            expected = f"frames of 0 to {count - 1}"
            raise InputError("frames", value=(self.first, self.last), expected=expected)
        low, high = layer.span(count)
        self.frames: Ints = np.arange(low, high + 1)
        self.weights = self._weights()
        self.result = LayerResult(q.copy(), self.frames)

    def _weights(self) -> Array:
        """Return the share of each frame in which the layer acts, (n,): 1 inside, a smooth step in the fades."""
        if not self.layer.blend:
            return np.ones(len(self.frames))
        away = np.maximum(np.maximum(self.first - self.frames, self.frames - self.last), 0)
        return np.asarray(smooth(1.0 - away / self.layer.blend), np.float64)

    def run(self) -> LayerResult:
        """Apply the layer."""
        below = self.q[self.frames]
        keyed = self._keyed(below)
        if self.layer.goals or self.layer.targets:
            asked = self._asked(below)
            self._solve(keyed, asked)
        else:
            self.result.q[self.frames] = keyed
        return self.result

    # --- keys ---------------------------------------------------------------------------------------------------------

    def _keyed(self, below: Array) -> Array:
        """Return the clip with the keys of the layer, (n, nq)."""
        if not self.layer.keys:
            return below.copy()
        change = key_changes(self.skeleton, self.layer, self.q, self.frames.astype(np.float64), below)
        wanted = changed(self.skeleton, below, change)
        moved = _moved_rows(self.skeleton, change)
        inside = inside_limits(self.skeleton, wanted)
        out = np.where((inside != wanted) & _columns(self.skeleton, moved), inside, wanted)
        cut = [row for row in moved if np.abs(out - wanted)[:, self.skeleton.q_slice(row)].max(initial=0.0) > 1e-6]
        if cut:
            names = ", ".join(self.skeleton.joint_names[row] for row in cut[:4])
            text = f"the keys move {names} outside their limits; they stay at the limits"
            self.result.notes.append(("limits", text, self.frames))
        return out

    # --- goals --------------------------------------------------------------------------------------------------------

    def _asked(self, below: Array) -> list[Asked]:
        """Return the goals of the layer with their targets."""
        frames = world_frames(self.skeleton, below)
        inner = (self.frames >= self.first) & (self.frames <= self.last)
        at_first = world_frames(self.skeleton, self.q[self.first : self.first + 1])
        asked: list[Asked] = []
        for goal, target in self.layer.all_goals():
            goal, rows = goal.resolved(self.skeleton).located(self.skeleton)
            now, others = self._frames_of(goal, rows, frames, below)
            held = goal.met_at(*self._frames_of(goal, rows, at_first, self.q[self.first : self.first + 1]))
            wanted = self._wanted(goal, target, now, others, held)
            between = goal.takes != 0
            if not inner.all():
                faded = goal.part_way(now, others, wanted, self.layer.weight * self.weights) if between else None
                between = faded is not None
                full = inner & (self.layer.weight == 1.0)
                wanted = wanted if faded is None else np.where(full[:, None, None], wanted, faded)
            elif self.layer.weight < 1.0 and between:
                faded = goal.part_way(now, others, wanted, self.layer.weight * self.weights)
                wanted = wanted if faded is None else faded
            asked.append(Asked(goal, rows, wanted, between))
        return asked

    def _frames_of(self, goal: Goal, rows: Sequence[int], frames: Array, q: Array) -> tuple[Array, list[Array]]:
        """Return a goal's frame in the world and those of its other joints, each (n, 4, 4)."""
        if not rows:
            now = np.tile(np.eye(4), (len(q), 1, 1))
            if goal.moves_mass:
                now[:, :3, 3] = centers_of_mass(self.skeleton, frames)
            return now, []
        now = frames_to_transforms(frames[:, rows[0]]) @ goal.frame
        return now, [frames_to_transforms(frames[:, row]) @ goal.place(k) for k, row in enumerate(rows[1:], 1)]

    def _wanted(
        self, goal: Goal, target: LayerTarget | None, now: Array, others: list[Array], held: Array | None
    ) -> Array:
        """Return the full targets of a goal, (n, 4, 4): those of the layer, of the goal, or where the clip has it."""
        count, own = len(now), goal.met_at(now, others)
        out = np.tile(np.eye(4), (count, 1, 1))
        if own is None or held is None or not goal.takes:
            return out
        relative = self.layer.relative
        out[:] = own if relative else held
        if goal.target is not None:
            if goal.given & POSITION:
                out[:, :3, 3] = goal.target[:3, 3]
            if goal.given & ROTATION:
                out[:, :3, :3] = goal.target[:3, :3]
        if target is None:
            return out
        what = f"target of {goal.label!r}"
        if target.parts & ~goal.takes and target.parts != POSITION | ROTATION:
            raise InputError(what, expected=f"a target that fits {goal!r}")
        total, inner = len(self.q), self.last - self.first + 1
        for values in (target.position, target.rotation):
            if values is not None and len(values) not in (1, inner, total):
                expected = f"1, {inner} (one for each frame of the layer) or {total} (of the clip)"
                raise InputError(f"frames of {what}", value=len(values), expected=expected)
        values = target.at(self.frames, self.first, self.last)
        if target.parts & POSITION:
            out[:, :3, 3] = own[:, :3, 3] + values[:, :3, 3] if relative else values[:, :3, 3]
        if target.parts & ROTATION:
            out[:, :3, :3] = values[:, :3, :3] @ own[:, :3, :3] if relative else values[:, :3, :3]
        return out

    # --- solving ------------------------------------------------------------------------------------------------------

    def _solve(self, keyed: Array, asked: list[Asked]) -> None:
        """Solve the goals: with limbs alone if these reach, else with the whole body."""
        result = self.result
        limbs = self._limbs(asked)
        if limbs is not None:
            solved = self._solved(keyed, asked, [], frozenset(limbs), give_up=True)
            if solved is not None:
                result.q[self.frames], result.missed, result.goals = solved[0], solved[1], asked
                return
        feet = self._feet(asked)
        parts: frozenset[int] = frozenset(
            row for one in asked for row in (one.rows[:1] and self.body.limb(one.rows[0]))
        )
        solved = self._solved(keyed, asked, feet, None, limbs=parts)
        if solved is not None:
            result.q[self.frames], result.missed, result.goals = solved[0], solved[1], asked

    def _limbs(self, asked: Sequence[Asked]) -> set[int] | None:
        """Return the rows of the limbs of all goals; None if a goal concerns the trunk."""
        out: set[int] = set()
        for one in asked:
            end = one.rows[-1] if one.goal.turns_limb and len(one.rows) > 2 else one.rows[0] if one.rows else -1
            limb = self.body.limb(end) if end >= 0 else ()
            if not limb:
                return None
            out.update(limb)
        return out

    def _feet(self, asked: Sequence[Asked]) -> list[PlantedFoot]:
        """Return the feet that keep their places: those that no goal addresses."""
        addressed = {one.rows[0] for one in asked if one.rows and not one.goal.turns_limb}
        moving = {above for one in asked for row in one.rows for above in ancestors(self.skeleton.parents, row)}
        moving |= set(range(len(self.skeleton))) if any(not one.rows for one in asked) else set()
        return [
            foot
            for foot in self.body.feet
            if addressed.isdisjoint(foot.points)
            and not moving.isdisjoint(row for row in ancestors(self.skeleton.parents, foot.head))
        ]

    def _solved(
        self,
        keyed: Array,
        asked: Sequence[Asked],
        feet: Sequence[PlantedFoot],
        only: frozenset[int] | None,
        *,
        limbs: frozenset[int] = frozenset(),
        give_up: bool = False,
    ) -> tuple[Array, Bools] | None:
        """Return the poses (n, nq) and which of them miss a goal; None if joints of ``only`` do not reach all goals."""
        problems = _Problems(self, asked, feet, only, limbs)
        inner = (self.frames >= self.first) & (self.frames <= self.last)
        out, missed = keyed.copy(), np.zeros(len(keyed), bool)
        places = np.flatnonzero(inner)
        done = problems.follow(places, keyed[places], None, give_up=give_up, faded=False)
        if done is None:
            return None
        out[places], missed[places] = done
        for side, edge in (
            (np.arange(places[0])[::-1], places[0]),
            (np.arange(places[-1] + 1, len(keyed)), places[-1]),
        ):
            if not len(side):
                continue
            change = change_between(self.skeleton, keyed[edge], out[edge])
            share = self.weights[side]
            displaced = changed(self.skeleton, keyed[side], blend(
                self.skeleton, no_change(self.skeleton), change, share, follow=False))  # fmt: skip
            before = (keyed[edge], out[edge])
            straight = keyed[side] if all(one.between for one in asked) else displaced
            done = problems.follow(side, straight, before, give_up=give_up, faded=True)
            if done is None:
                return None
            poses, off = done
            around = np.append(edge, side)
            if self._jerks(keyed, np.concatenate([out[edge][None], poses]), around, change):
                done = problems.follow(side, displaced, before, give_up=False, faded=True, free=True)
                if done is not None:
                    poses, off = done
            out[side], missed[side] = poses, off
        return out, missed

    def _jerks(self, keyed: Array, poses: Array, at: Ints, change: Array) -> bool:
        """Return whether joints accelerate far more in a fade than in a smooth one, and than the clip does.

        Args:
            keyed: The clip below, (n, nq).
            poses: Poses from the edge of the layer through the fade, (m, nq).
            at: Their places in ``keyed``, (m,).
            change: The change at the edge, (nq,).
        """
        order = np.argsort(at)
        own = keyed[at[order]]
        most = 6.0 / max(self.layer.blend, 1) ** 2
        size = _sizes(self.skeleton, change)
        before, after = (_accelerations(self.skeleton, part) for part in (own, poses[order]))
        limit = np.maximum(before.max(axis=0, initial=0.0), most * size)
        return bool((after.max(axis=0, initial=0.0) > _JERK * limit + 1e-9).any())


class _Problems:
    """The packed problems of a layer: one for each set of feet that stand, and one of these for fades by displacement."""

    def __init__(
        self,
        owner: _Application,
        asked: Sequence[Asked],
        feet: Sequence[PlantedFoot],
        only: frozenset[int] | None,
        limbs: frozenset[int],
    ) -> None:
        """Find where the feet are, and which joints stay near the clip."""
        self._owner, self._asked, self._feet, self._only, self._limbs = owner, asked, feet, only, limbs
        frames = world_frames(owner.skeleton, owner.q[owner.frames])
        self._places = [frames_to_transforms(frames[:, foot.head]) for foot in feet]
        # A limb must not pull the body out of its steps, so its goals come after both feet in every frame. Goals of the
        # trunk move the body: feet that are in the air come after them.
        self._trunk = any(not one.rows or not owner.body.limb(one.rows[0]) for one in asked)
        self._cache: dict[tuple[tuple[bool, ...], bool], tuple[Around, list[int]] | None] = {}

    def follow(
        self,
        places: Ints,
        reference: Array,
        before: tuple[Array, Array] | None,
        *,
        give_up: bool,
        faded: bool,
        free: bool = False,
    ) -> tuple[Array, Bools] | None:
        """Return poses (n, nq) at places among the frames of the layer, in order, and which of them miss a goal.

        Args:
            places: Places of the frames.
            reference: Poses that the joints stay near, (n, nq).
            before: Reference and pose of the frame before the first one, (nq,) each; None for the clip itself.
            give_up: Whether to return None at the first miss.
            faded: Whether goals without targets between are left out.
            free: Whether all goals but those of feet are left out.
        """
        if not len(places):
            return reference.copy(), np.zeros(0, bool)
        owner = self._owner
        stands = [tuple(bool(foot.stands[owner.frames[k]]) or not self._trunk for foot in self._feet) for k in places]
        out, missed = reference.copy(), np.zeros(len(places), bool)
        first = 0
        while first < len(places):
            end = first + 1
            while end < len(places) and stands[end] == stands[first]:
                end += 1
            part = slice(first, end)
            problem = self._problem(stands[first], faded=faded, free=free)
            if problem is None:  # no goal is left
                first = end
                before = (reference[end - 1], reference[end - 1])
                continue
            around, kept = problem
            rows = around.solve(reference[part], self._table(kept, places[part]), owner.watch, before, give_up=give_up)
            if rows is None:
                return None
            out[part] = rows[:, around.ik.places]
            missed[part] = around.missed(rows)
            before = (reference[end - 1], out[end - 1])
            first = end
        return out, missed

    def _problem(self, stands: tuple[bool, ...], *, faded: bool, free: bool) -> tuple[Around, list[int]] | None:
        """Return the problem of frames in which some feet stand, and the numbers of its goals: feet below 0."""
        kept = [k for k, one in enumerate(self._asked) if not free and (one.between or not faded)]
        key = (stands, len(kept) == len(self._asked))
        if key not in self._cache:
            self._cache[key] = self._built(stands, kept)
        return self._cache[key]

    def _built(self, stands: tuple[bool, ...], kept: list[int]) -> tuple[Around, list[int]] | None:
        """Return a packed problem, as in ``_problem``."""
        owner, skeleton = self._owner, self._owner.skeleton
        goals: list[Goal] = []
        numbers: list[int] = []
        lowest = max((self._asked[k].goal.priority for k in kept), default=0) + _FOLLOWING + 1
        for k, (foot, stand) in enumerate(zip(self._feet, stands, strict=True)):
            goals.append(PoseGoal(foot.head, priority=_STANDING if stand else lowest, name=f"foot {k}"))
            numbers.append(-1 - k)
        for k in kept:
            goal = self._asked[k].goal
            goals.append(goal.at_priority(goal.priority + (_FOLLOWING if self._feet else 0)))
            numbers.append(k)
        if not goals:
            return None
        rows = sorted(
            {
                above
                for goal in goals
                for row in goal.located(skeleton)[1]
                for above in ancestors(skeleton.parents, row)
                if self._only is None or above in self._only
            }
        )
        if any(not goal.located(skeleton)[1] for goal in goals):
            rows = list(range(len(skeleton)))
        moving = [row for row in rows if skeleton.joints[row].kind.v_size]
        legs = {row for foot in self._feet for row in owner.body.limb(foot.head)}
        weights = owner.body.weights(moving, self._limbs | legs if self._only is None else self._only)
        rest = RestGoal(owner.q[0], joints=weights)
        solver = EditSolver(attempts=1, rest_step=_REST_STEP, only=self._only)
        root = "free" if owner.body.top is not None and self._only is None else "fixed"
        ik = CompiledProblem(skeleton, [*goals, rest], solver, tolerance=owner.tolerance, root=root)
        return Around(ik), numbers

    def _table(self, kept: Sequence[int], places: Ints) -> Array:
        """Return the table of targets, (n, goals, 17), the rest goal included."""
        out = np.zeros((len(places), len(kept) + 1, TARGET_WIDTH))
        out[:, :, :TRANSFORM_WIDTH] = np.eye(4).ravel()
        for i, k in enumerate(kept):
            frames = self._places[-1 - k][places] if k < 0 else self._asked[k].wanted[places]
            out[:, i, :TRANSFORM_WIDTH] = frames.reshape(-1, TRANSFORM_WIDTH)
            out[:, i, GIVEN] = float(POSITION | ROTATION if k < 0 else self._asked[k].goal.takes)
        return out


def key_changes(skeleton: Skeleton, layer: Layer, q: Array, frames: Array, below: Array) -> Array:
    """Return what the keys of a layer change, (n, nq), at frames of a clip, which may lie between whole ones.

    Args:
        skeleton: The skeleton.
        layer: The layer.
        q: Joint values of the clip, (T, nq).
        frames: The frames, (n,).
        below: Joint values of the clip there, (n, nq).
    """
    out = np.tile(no_change(skeleton), (len(frames), 1))
    still = no_change(skeleton)
    for rows, keys in _groups(skeleton, layer.keys).items():
        if keys[0].frame is None:
            part = _held(skeleton, layer, keys[0], rows, below)
            first, last = layer.bounds(len(q))
        else:
            at = np.array([key.frame for key in keys], np.float64)
            changes = np.array([_change_at(skeleton, layer, key, rows, q) for key in keys])
            first, last = layer.frames or (int(at[0]), int(at[-1]))
            after = np.clip(np.searchsorted(at, frames, side="right"), 1, max(len(at) - 1, 1))
            if len(at) == 1:
                part = np.repeat(changes, len(frames), axis=0)
            else:
                share = np.clip((frames - at[after - 1]) / (at[after] - at[after - 1]), 0.0, 1.0)
                part = blend(skeleton, changes[after - 1], changes[after], np.asarray(smooth(share)), follow=False)
        away = np.maximum(np.maximum(first - frames, frames - last), 0.0)
        fade = np.where(away > 0.0, 0.0, 1.0)
        if layer.blend:
            fade = np.asarray(smooth(np.clip(1.0 - away / layer.blend, 0.0, 1.0)), np.float64)
        part = blend(skeleton, np.broadcast_to(still, part.shape), part, layer.weight * fade, follow=False)
        columns = _columns(skeleton, rows)
        out[:, columns] = part[:, columns]
    return out


def _groups(skeleton: Skeleton, keys: Sequence[Key]) -> dict[tuple[int, ...], list[Key]]:
    """Return the keys of joints, by rows of joints that have the same keys."""
    by_row: dict[int, list[int]] = {}
    for k, key in enumerate(keys):
        for row in skeleton.by_row(key.values, "pose"):
            by_row.setdefault(row, []).append(k)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, own in by_row.items():
        groups.setdefault(tuple(own), []).append(row)
    return {tuple(rows): [keys[k] for k in own] for own, rows in groups.items()}


def _change_at(skeleton: Skeleton, layer: Layer, key: Key, rows: Sequence[int], q: Array) -> Array:
    """Return the change of some joints at a key, (nq,)."""
    own = q[key.frame if key.frame is not None else 0]
    values = _with_values(skeleton, no_change(skeleton) if layer.relative else own, key, rows)
    return values if layer.relative else change_between(skeleton, own, values)


def _held(skeleton: Skeleton, layer: Layer, key: Key, rows: Sequence[int], below: Array) -> Array:
    """Return the change that holds values of some joints in all frames, (n, nq)."""
    if layer.relative:
        return np.tile(_with_values(skeleton, no_change(skeleton), key, rows), (len(below), 1))
    columns = _columns(skeleton, rows)
    values = below.copy()
    values[:, columns] = _with_values(skeleton, below[0], key, rows)[columns]
    return change_between(skeleton, below, values)


def _with_values(skeleton: Skeleton, q: Array, key: Key, rows: Sequence[int]) -> Array:
    """Return joint values with those of a key for some joints.

    Raises:
        InputError: If a value has another size than its joint's, or a quaternion has no direction.
    """
    out = q.copy()
    for row, value in skeleton.by_row(key.values, "pose").items():
        if row not in rows:
            continue
        at = skeleton.q_slice(row)
        if at.stop - at.start != len(value):
            name = skeleton.joint_keys[row]
            expected = f"{at.stop - at.start} numbers"
            raise InputError(f"value of joint {name!r}", value=value.tolist(), expected=expected)
        out[at] = value
        if len(value) >= 4:
            length = float(np.linalg.norm(value[-4:]))
            if not abs(length - 1.0) < 2e-3:
                name = skeleton.joint_keys[row]
                raise InputError(f"value of joint {name!r}", value=value[-4:].tolist(), expected="a unit quaternion")
            if abs(length - 1.0) > 1e-15:
                out[at.stop - 4 : at.stop] = value[-4:] / length
    return out


def _columns(skeleton: Skeleton, rows: Sequence[int]) -> Bools:
    """Return which joint values belong to some joints, (nq,)."""
    out = np.zeros(skeleton.nq, bool)
    for row in rows:
        out[skeleton.q_slice(row)] = True
    return out


def _moved_rows(skeleton: Skeleton, change: Array) -> list[int]:
    """Return the joints that changes (n, nq) move."""
    off = (change != no_change(skeleton)).any(axis=0)
    return [row for row in range(len(skeleton)) if off[skeleton.q_slice(row)].any()]


def _sizes(skeleton: Skeleton, change: Array) -> Array:
    """Return the size of a change (nq,): of numbers and of rotations, as ``_accelerations`` orders them."""
    at = turns(skeleton)
    numbers = np.ones(skeleton.nq, bool)
    numbers[at.ravel()] = False
    identity = np.broadcast_to((0.0, 0.0, 0.0, 1.0), (len(at), 4))
    return np.concatenate([np.abs(change[numbers]), np.linalg.norm(rotation_between(identity, change[at]), axis=1)])


def _accelerations(skeleton: Skeleton, q: Array) -> Array:
    """Return the second differences of joint values over time, (n - 2, values): numbers, then rotations."""
    at = turns(skeleton)
    numbers = np.ones(skeleton.nq, bool)
    numbers[at.ravel()] = False
    steps = rotation_between(q[:-1][:, at], q[1:][:, at])
    turned = np.linalg.norm(np.diff(steps, axis=0), axis=2)
    return np.concatenate([np.abs(np.diff(q[:, numbers], 2, axis=0)), turned], axis=1)


def centers_of_mass(skeleton: Skeleton, frames: Array) -> Array:
    """Return the centre of mass over frames (n, joints, 12), (n, 3)."""
    masses = np.array([joint.mass for joint in skeleton.joints])
    local = np.array([joint.com for joint in skeleton.joints])
    rotations = frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    points = frames[..., 9:] + (rotations @ local[None, :, :, None])[..., 0]
    return np.einsum("j,njk->nk", masses, points) / masses.sum()
