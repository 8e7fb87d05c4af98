"""Apply one layer to a clip: its keys move joints, then its goals are solved frame by frame near the clip.

In a fade, targets of goals move on straight lines and shortest arcs between the clip and the targets of the layer. If
joints cannot follow this path, or would jerk on it (a limb that was straight may), the fade instead interpolates the
joint changes of the nearest frame of the layer, and only feet are solved. Goals without intermediate targets, such as
bounds, always fade in this second way.

If a layer has one frame, this frame is solved first, and the fades start from its pose. So the pose does not depend on
the fades, and ``LayerOnClip.pose`` can solve the frame alone, for targets that move.

References:
    Lee & Shin (1999), *A hierarchical approach to interactive motion editing for human-like figures*; Witkin & Popović
    (1995), *Motion warping*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.clips.editing.body import Body, PlantedFoot
from synovia.clips.editing.clear import limbs_of, links_of, near_in
from synovia.clips.editing.keys import KeyCurves, changed_rows, columns_of, with_changes
from synovia.clips.editing.problems import Asked, Errors, Options, Problems, Stage, errors_of
from synovia.clips.editing.smoothness import Moved, without_fast_parts
from synovia.errors import InputError
from synovia.goals import AimGoal, ClearanceGoal, Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik import Solution
from synovia.layers import Layer, LayerTarget
from synovia.model import Skeleton
from synovia.model.anatomy.feet import runs
from synovia.model.change import blend, change_between, changed, no_change, smooth
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.pose import world_frames
from synovia.model.shapes.over_time import TooNear
from synovia.model.tree import ancestors
from synovia.problem.structure import allowed_rows
from synovia.text import counted

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
# cosine between the top direction of a head and up: if it is smaller, the head is lying
_UPRIGHT: Final = 0.5
_TIPS: Final = float(np.radians(20.0))  # radians: largest rotation of the hips by a goal for their position
_LEAD: Final = 8  # number of steps from the clip to the first frame's targets; fewer for a weight below 1
_JERK: Final = 1.8  # a joint jerks if its acceleration exceeds that of the clip and of a smooth fade by this factor
_WINDOWS: Final = (0.05, 0.1, 0.15)  # seconds: half widths of the moving averages that smooth jerks, one for each pass
_UNEVEN: Final = 1.2  # factor as in ``_JERK``: where a pass smooths jerks, it also smooths frames above this factor
# if a pass leaves more than this fraction of the jerk, no further pass is made
_SMOOTHER: Final = 0.97
_STILL_MET: Final = 2.0  # a goal of a layer below counts as met within this number of tolerances
_ROUNDING: Final = 1e-7  # radians or length units; smaller changes are rounding errors
_SHORTEST: Final = 0.2  # seconds: layers without fades are compared with a smooth fade of at least this length


@dataclass(frozen=True, slots=True, eq=False)
class LayerResult:
    """Result of one layer.

    Args:
        q: Joint values of the whole clip, (T, nq).
        frames: Frames of the layer and its fades, (n,).
        asked: Goals of the layer with their targets in ``frames``.
        missed: Mask of ``frames`` that miss a goal, (n,).
        aimed: Mask of ``frames`` in which the goals were solved, (n,); in the others, joint changes are faded.
        feet: Feet that kept their places.
        cut: Rows of joints whose keys were outside limits.
        cleared: Rows of the links that were too close for a clearance goal.
        acts: Mask of ``frames`` that the layer changes, (n,). A layer with only clearance goals changes only frames in
            which links are too close.
    """

    q: Array
    frames: Ints
    asked: tuple[Asked, ...]
    missed: Bools
    aimed: Bools
    feet: tuple[PlantedFoot, ...]
    cut: tuple[int, ...]
    cleared: tuple[int, ...]
    acts: Bools


class PoseOnClip(NamedTuple):
    """The pose of a layer that has one frame.

    Args:
        q: Joint values, (nq,).
        missed: Whether a goal of the layer is missed.
        errors: Errors of the goals, (goals, 2): a length and an angle.
    """

    q: Array
    missed: bool
    errors: Array


class _Fixed(NamedTuple):
    """What stays the same in a layer while its targets move.

    Args:
        kept: Goals that keep what layers below have reached.
        preferred: Preferred goals, see ``LayerOnClip._preferred``.
        stages: The stages of a solve, in order.
        errors: Measures the errors of the layer's goals.
    """

    kept: list[Asked]
    preferred: list[Asked]
    stages: list[Stage]
    errors: Errors


class LayerOnClip:
    """A layer together with the clip to which it is applied.

    Args:
        body: The body of the clip.
        q: The clip below the layer, (T, nq).
        layer: The layer.
        earlier: Results of the layers below. Their goals stay met as far as the goals of this layer allow.
        options: Stop condition, progress and tolerance of the solves.

    Raises:
        InputError: If the layer does not fit the clip.
        UnknownNameError: If a joint does not exist.
    """

    def __init__(
        self,
        body: Body,
        q: Array,
        layer: Layer,
        earlier: Sequence[LayerResult],
        options: Options,
    ) -> None:
        """Find the frames of the layer, and apply its keys."""
        self._body, self._q, self._layer, self._options = body, q, layer, options
        self._earlier = earlier
        self._skeleton, self._fps = body.skeleton, body.fps
        self._allowed = None if layer.moving is None else allowed_rows(body.skeleton, body.given, layer.moving)
        self._first, self._last = layer.bounds(len(q))
        if self._last >= len(q):
            hint = f"the clip is {body.name!r}, with {counted(len(q), 'frame')}"
            expected = f"frames from 0 to {len(q) - 1}"
            raise InputError("frames", value=(self._first, self._last), expected=expected, hint=hint)
        low, high = layer.span(len(q))
        self._frames: Ints = np.arange(low, high + 1)
        self._inner = np.flatnonzero((self._frames >= self._first) & (self._frames <= self._last))
        away = np.maximum(np.maximum(self._first - self._frames, self._frames - self._last), 0)
        # weight of the fade in each frame, (n,), from 0 to 1
        self._shares = np.asarray(smooth(1.0 - away / max(layer.blend, 1)), np.float64)
        self._below = q[self._frames]
        self._keyed, self._cut = self._moved_by_keys()
        clears = [isinstance(goal, ClearanceGoal) for goal, _ in layer.all_goals()]
        clears += [one.clears for result in earlier for one in result.asked]
        # whether the layer has one frame, which is solved before the fades
        self._single = len(self._inner) == 1 and not any(clears) and self._skeleton.mechanism is None
        self._fixed: _Fixed | None = None  # set by ``pose``
        self._problems: dict[int, Problems] = {}

    @property
    def single(self) -> bool:
        """Whether the layer has one frame that ``pose`` can solve."""
        return self._single

    def pose(self, layer: Layer) -> PoseOnClip:
        """Return the pose in the only frame of a layer, as ``apply`` would compute it.

        Args:
            layer: The layer of this object, or the same layer with other targets.
        """
        self._layer, at = layer, int(self._inner[0])
        asked = self._asked()
        if not asked:
            return PoseOnClip(self._keyed[at].copy(), False, np.zeros((0, 2)))
        if self._fixed is None:
            more = self._kept(asked), self._preferred(asked)
            stages = map(self._within, self._stages(asked, [*asked, *more[0]], len(more[1]), ()))
            errors = Errors(self._body, asked, self._options.tolerance)
            self._fixed = _Fixed(*more, [stage for stage in stages if stage is not None], errors)
        fixed = self._fixed
        every = [*asked, *fixed.kept, *fixed.preferred]
        for k, stage in enumerate(fixed.stages):
            goals = [every[i] for i in stage.goals]
            if k not in self._problems:
                self._problems[k] = Problems(self._body, self._below, self._frames, goals, stage, self._options)
            lead, must = all(one.between for one in goals), None if stage.last else np.ones(1, bool)
            done = (
                self._problems[k]
                .retargeted(goals)
                .follow(self._inner, self._keyed[at : at + 1], kept=range(len(goals)), must=must, lead=lead)
            )
            full = len(goals) > len(every) - len(fixed.preferred)
            if done is not None and (full or not self._tips(done[0], fixed.preferred, self._inner)):
                poses = self._with_held(done[0], self._keyed[at : at + 1])
                errors = fixed.errors.at(poses, [one.wanted[at : at + 1] for one in asked])[0]
                return PoseOnClip(poses[0], bool(done[1][0] and (errors > fixed.errors.most).any()), errors)
        raise AssertionError  # unreachable: the last stage always has a result

    def solution(self, frame: int) -> Solution | None:
        """Return the solution of the last stage in one frame, which says why goals are missed; None without goals.

        Args:
            frame: A frame of the layer or of its fades.
        """
        asked, place = self._asked(), frame - int(self._frames[0])
        if not asked or not 0 <= place < len(self._frames):
            return None
        every = [*asked, *self._kept(asked)]
        stage = self._within([*self._stages(asked, every, 0, ())][-1])
        if stage is None:
            return None
        goals = [every[k] for k in stage.goals]
        return Problems(self._body, self._keyed, self._frames, goals, stage, self._options).solution(place)

    def apply(self) -> LayerResult:
        """Return the clip with the layer."""
        q, asked = self._q.copy(), self._asked()
        if not asked:
            q[self._frames] = self._keyed
            none = np.zeros(len(self._frames), bool)
            return LayerResult(q, self._frames, (), none, none, (), self._cut, (), ~none)
        every, preferred = [*asked, *self._kept(asked)], self._preferred(asked)
        near = near_in(self._body, self._keyed, every)
        if not near and all(one.clears for one in asked):
            none = np.zeros(len(self._frames), bool)
            return self._result(q, asked, (self._keyed, none, ~none), (), ())
        links = links_of(self._body, near)
        for stage in map(self._within, self._stages(asked, every, len(preferred), links)):
            if stage is None:
                continue
            goals = [[*every, *preferred][k] for k in stage.goals]
            problems = Problems(self._body, self._below, self._frames, goals, stage, self._options)
            solved = self._solved(problems, goals)
            if solved is None or (not stage.last and near_in(self._body, solved[0], every)):
                continue
            seen = self._inner if self._single else np.arange(len(self._frames))
            if len(goals) > len(every) or not self._tips(solved[0][seen], preferred, seen):
                self._restore(asked, solved[0], near)
                return self._result(q, asked, solved, stage.feet, links)
        raise AssertionError  # unreachable: the last stage always has a result

    def _within(self, stage: Stage) -> Stage | None:
        """Restrict a stage to joints that the layer may move. None if none remain and the stage is not the last one."""
        some = [rows for rows in (self._allowed, stage.only) if rows is not None]
        only = frozenset[int].intersection(*some) if some else None
        if only is None or any(self._skeleton.joints[row].kind.v_size for row in only):
            return replace(stage, only=only)
        return replace(stage, only=self._allowed) if stage.last else None

    def _restore(self, asked: Sequence[Asked], poses: Array, near: Sequence[TooNear]) -> None:
        """If the layer has only clearance goals, undo changes of poses (n, nq) that are only rounding errors.

        Args:
            asked: The goals of the layer.
            poses: Joint values of the frames, (n, nq); changed in place.
            near: Pairs of links that are too close in the clip.
        """
        if all(one.clears for one in asked):
            same: Bools = np.asarray((np.abs(poses - self._keyed) < _ROUNDING).all(axis=1))
            same[[frame for pair in near for frame in pair.frames]] = False
            poses[same] = self._keyed[same]

    def _result(
        self,
        q: Array,
        asked: Sequence[Asked],
        solved: tuple[Array, Bools, Bools],
        feet: tuple[PlantedFoot, ...],
        cleared: Sequence[int],
    ) -> LayerResult:
        """Write the solved poses of the layer into the clip (T, nq), and return the result of the layer."""
        poses, missed, aimed = solved
        # loops are closed here, because the fades interpolate between poses with closed loops
        if self._skeleton.mechanism is not None:
            poses = self._closed(poses)
        q[self._frames] = poses = self._with_held(poses, self._keyed)
        acts = (q[self._frames] != self._below).any(axis=1)
        if self._layer.keys or not all(one.clears for one in asked):
            acts[:] = True
        return LayerResult(q, self._frames, tuple(asked), missed, aimed, feet, self._cut, tuple(cleared), acts)

    def _with_held(self, poses: Array, keyed: Array) -> Array:
        """Return poses, (n, nq), in which joints that may not move have the values of the clip with keys, ``keyed``."""
        if self._allowed is None:
            return poses
        moves = columns_of(self._skeleton, tuple(self._allowed))
        return np.where(moves, poses, keyed)

    def _closed(self, poses: Array) -> Array:
        """Return poses (n, nq) of the layer with closed loops. Poses that equal the clip below keep every bit."""
        mechanism, changes = self._skeleton.mechanism, (poses != self._below).any(axis=1)
        if mechanism is None or not changes.any():
            return poses
        closed_from = np.concatenate([self._below[:1], poses])  # the first pose is closed starting from the clip's pose
        return np.where(changes[:, None], mechanism.shut_clip(closed_from)[1:], poses)

    def _preferred(self, asked: Sequence[Asked]) -> list[Asked]:
        """Return preferred goals: moved hips keep their rotation; rotated hands and feet keep their positions.

        Hips then rotate only if the legs cannot reach otherwise, and hands and feet move only if necessary.
        """
        roles = self._skeleton.role_rows
        hips = ancestors(self._skeleton.parents, roles["hips"]) if "hips" in roles else ()
        ends = {row for role, row in roles.items() if role.endswith(("_hand", "_foot"))}
        parts: dict[int, list[int]] = {}
        for one in asked:
            parts.setdefault(one.end, []).append(-1 if one.goal.terms else one.goal.constrained_parts)
        frames, out = self._worlds, list[Asked]()
        priority = max(one.goal.rank for one in asked)
        for end, found in sorted(parts.items()):
            if end in hips and set(found) == {POSITION}:
                goal, rows = RotationGoal(end, priority=priority).located(self._skeleton)
            elif end in ends and set(found) == {ROTATION}:
                goal, rows = PositionGoal(end, priority=priority).located(self._skeleton)
            else:
                continue
            out.append(self._staying(goal, rows, frames_to_transforms(frames[:, end]), len(asked[0].lead)))
        return out

    def _staying(self, goal: Goal, rows: tuple[int, ...], places: Array, steps: int) -> Asked:
        """Return a goal whose targets, (n, 4, 4), are its poses in the clip."""
        at = self._lead_from
        return Asked(goal, rows, places, places[at : at + 1].repeat(steps, axis=0), True, True)

    @property
    def _lead_from(self) -> int:
        """Index, among the frames of the layer, of the frame that is solved first."""
        return int(self._inner[0]) if self._single else 0

    def _tips(self, poses: Array, preferred: Sequence[Asked], places: Ints) -> bool:
        """Return whether poses (n, nq) rotate the hips far because the legs cannot reach a goal for the hips' position.

        Args:
            poses: The poses.
            preferred: The preferred goals.
            places: Indices of these poses among the frames of the layer, (n,).
        """
        upright = [one for one in preferred if one.goal.constrained_parts == ROTATION]
        if not upright:
            return False
        frames = world_frames(self._skeleton, poses)
        for one in upright:
            turned = frames_to_transforms(frames[:, one.end])[:, :3, :3]
            traces = np.einsum("nij,nij->n", turned, one.wanted[places, :3, :3])  # 1 + 2 cos of the angle
            if (traces < 1.0 + 2.0 * np.cos(_TIPS)).any():
                return True
        return False

    def _moved_by_keys(self) -> tuple[Array, tuple[int, ...]]:
        """Return the clip after the keys of the layer, (n, nq), and the joints whose keys are outside their limits."""
        if not self._layer.keys:
            return self._below, ()
        skeleton = self._skeleton
        change = KeyCurves(skeleton, self._layer, self._q).at(self._frames.astype(np.float64), self._below)
        return with_changes(skeleton, self._below, change, changed_rows(skeleton, change))

    # --- goals --------------------------------------------------------------------------------------------------------

    @cached_property
    def _worlds(self) -> Array:
        """World frames of all joints in the clip with the layer's keys, (n, joints, 12)."""
        return world_frames(self._skeleton, self._keyed)

    def _asked(self) -> list[Asked]:
        """Return the layer's goals with their targets, and goals that hold the ends of limbs with pole goals."""
        if not (self._layer.goals or self._layer.targets):
            return []
        frames = self._worlds
        asked = [self._asked_of(goal, target, frames) for goal, target in self._layer.all_goals()]
        ends = {one.end for one in asked if one.goal.turns_limb}
        for end in sorted(ends - {one.end for one in asked if not one.goal.turns_limb}):
            places = frames_to_transforms(frames[:, end])
            goal, rows = PoseGoal(end, priority=max(one.goal.rank for one in asked) + 1).located(self._skeleton)
            asked.append(self._staying(goal, rows, places, len(asked[0].lead)))
        return asked

    def _asked_of(self, goal: Goal, target: LayerTarget | None, frames: Array) -> Asked:
        """Return a goal together with its targets.

        Args:
            goal: The goal.
            target: Its target in the layer, if any.
            frames: World frames of all joints in the frames of the layer, (n, joints, 12).
        """
        if isinstance(goal, ClearanceGoal):
            goal = goal.on_rows(self._body.given)
        if isinstance(goal, AimGoal) and (axes := self._body.gaze(goal.located(self._skeleton)[1][0])) is not None:
            goal = goal.facing(*axes)
        asked, (goal, rows) = goal, goal.resolved(self._body.upright).located(self._skeleton)
        now, others = self._frames_of(goal, rows, frames)
        wanted = self._full_targets(goal, target, now, others)
        # by default, goals for heads have level targets
        if goal.needs == "aim" and goal.given & ~asked.given & ROTATION:
            self._keep_lying(wanted, goal.met_at(now, others))
        weights: Array = self._layer.weight * self._shares
        at, full = self._lead_from, weights == 1.0
        steps = round(_LEAD * float(weights[at]))
        lead: Array | None = None
        faded: Array | None = None
        if goal.takes:
            share = weights[at] * np.arange(1, steps + 1) / (steps + 1)
            still = [one[at : at + 1].repeat(steps, axis=0) for one in (now, *others, wanted)]
            lead = goal.part_way(still[0], still[1:-1], still[-1], share)
            # ``pose`` needs no intermediate targets in fades; if ``lead`` is set, the goal has intermediate targets
            faded = (
                wanted if self._fixed and full[at] and lead is not None else goal.part_way(now, others, wanted, weights)
            )
        if goal.needs == "clearance":
            return Asked(goal, rows, wanted, wanted[:1].repeat(steps, axis=0), True, True)
        if faded is None and self._layer.weight < 1.0:
            expected = f"1, because the goal {goal.label!r} has no intermediate targets"
            raise InputError("weight", value=self._layer.weight, expected=expected)
        if faded is not None:
            wanted = np.where(full[:, None, None], wanted, faded)
        lead = wanted[at : at + 1].repeat(steps, axis=0) if lead is None else lead
        return Asked(goal, rows, wanted, lead, faded is not None or bool(full.all()))

    def _keep_lying(self, wanted: Array, own: Array | None) -> None:
        """If a head lies in most frames, replace the rotations in its targets (n, 4, 4) by those in the clip."""
        if own is not None and float(np.median(np.sum(wanted[:, :3, 2] * own[:, :3, 2], axis=1))) < _UPRIGHT:
            wanted[:, :3, :3] = own[:, :3, :3]

    def _frames_of(self, goal: Goal, rows: Sequence[int], frames: Array) -> tuple[Array, list[Array]]:
        """Return the world frames of a goal, (n, 4, 4), and a list with those of its other joints, (n, 4, 4) each."""
        if not rows:
            now = np.tile(np.eye(4), (len(frames), 1, 1))
            if goal.moves_mass:
                now[:, :3, 3] = _centers_of_mass(self._skeleton, frames)
            return now, []
        now = frames_to_transforms(frames[:, rows[0]]) @ goal.frame
        return now, [frames_to_transforms(frames[:, row]) @ goal.place(k) for k, row in enumerate(rows[1:], 1)]

    def _full_targets(self, goal: Goal, target: LayerTarget | None, now: Array, others: list[Array]) -> Array:
        """Return a goal's targets at weight 1, (n, 4, 4): the layer's, else the goal's own, else the clip's pose."""
        own = goal.met_at(now, others)
        if own is None:
            if target is not None:
                raise InputError(f"target of {goal.label!r}", expected=f"no target, because {goal!r} accepts none")
            return np.tile(np.eye(4), (len(now), 1, 1))
        relative = self._layer.relative
        out = own.copy() if relative else np.repeat(own[self._inner[:1]], len(own), axis=0)
        if goal.target is not None:
            for bit, part in ((POSITION, np.s_[:3, 3]), (ROTATION, np.s_[:3, :3])):
                if goal.given & bit:
                    out[(slice(None), *part)] = goal.target[part]
        if target is None:
            return out
        self._check_target(goal, target)
        values = target.at(self._frames, self._first, self._last)
        if target.parts & POSITION:
            out[:, :3, 3] = own[:, :3, 3] + values[:, :3, 3] if relative else values[:, :3, 3]
        if target.parts & ROTATION:
            out[:, :3, :3] = values[:, :3, :3] @ own[:, :3, :3] if relative else values[:, :3, :3]
        return out

    def _check_target(self, goal: Goal, target: LayerTarget) -> None:
        """Check that a target has the quantities that its goal needs, and values for the frames of the layer.

        Raises:
            InputError: If the target does not fit.
        """
        what = f"target of {goal.label!r}"
        if not target.parts & goal.takes or (target.parts & ~goal.takes and target.parts != POSITION | ROTATION):
            raise InputError(what, expected=f"a target that fits {goal!r}")
        inner, total = self._last - self._first + 1, len(self._q)
        for values in (target.position, target.rotation):
            if values is not None and len(values) not in (1, inner, total):
                expected = f"1, {inner} (one for each frame of the layer) or {total} (one for each of the clip)"
                raise InputError(f"frames of the {what}", value=len(values), expected=expected)

    # --- solving ------------------------------------------------------------------------------------------------------

    def _kept(self, asked: Sequence[Asked]) -> list[Asked]:
        """Return goals that keep what layers below have reached, with priorities below those of this layer's goals."""
        about, out = {one.end for one in asked if not one.clears}, list[Asked]()
        frames = world_frames(self._skeleton, self._below)
        lowest = max(one.goal.rank for one in asked) + 1
        for result in reversed(self._earlier):
            if np.intersect1d(result.frames, self._frames).size == 0:
                continue
            for one in result.asked:
                if one.clears:
                    out.append(self._still_clear(one, result, len(asked[0].lead)))
                    continue
                own = one.goal.met_at(*self._frames_of(one.goal, one.rows, frames)) if one.between else None
                if own is not None and one.end not in about:
                    about.add(one.end)
                    self._aim(own, one, result)
                    goal = one.goal.lowered(lowest)
                    out.append(self._staying(goal, one.rows, own, len(asked[0].lead)))
        return out

    def _still_clear(self, one: Asked, result: LayerResult, steps: int) -> Asked:
        """Return a clearance goal of a layer below, restricted to the frames of that layer."""
        none = np.tile(np.eye(4), (len(self._frames), 1, 1))
        return replace(
            one, wanted=none, lead=none[:1].repeat(steps, axis=0), holds=np.isin(self._frames, result.frames)
        )

    def _aim(self, own: Array, one: Asked, result: LayerResult) -> None:
        """Replace a goal's poses ``own`` (n, 4, 4) by its targets where it meets them, so that errors do not add up."""
        met = result.aimed & ~result.missed
        _, here, there = np.intersect1d(self._frames, result.frames[met], return_indices=True)
        if not len(here):
            return
        wanted = one.wanted[met][there]
        given = [replace(one, wanted=wanted)]
        errors, most = errors_of(self._body, self._below[here], given, self._options.tolerance)
        still = (errors[:, 0] <= _STILL_MET * most[0]).all(axis=1)
        own[here[still]] = wanted[still]

    def _stages(
        self, asked: Sequence[Asked], every: Sequence[Asked], preferred: int, near: Sequence[int]
    ) -> Iterator[Stage]:
        """Yield the stages of a solve, in order. The first stage that reaches all goals gives the result.

        In the first stage, only limbs with goals move. Then the whole body moves, and feet keep their places. If goals
        of the trunk are missed, another stage may lift feet that are not planted. Joints that the clip never moves and
        no goal rotates move only in the last stages. In a layer with only clearance goals, a late stage drops the goals
        of layers below if they are missed.

        Args:
            asked: The goals of the layer.
            every: The goals of the layer, then the goals of layers below.
            preferred: Number of preferred goals, which follow the goals in ``every``; see ``_preferred``. Each stage is
                tried with them first. The last stage has them too: its result is used if the hips rotate too far
                without them.
            near: Links that are too close in the clip; their limbs move like limbs with goals.
        """
        parents = self._skeleton.parents
        turned = {one.end for one in asked if one.goal.terms or one.goal.constrained_parts & ROTATION}
        still = self._body.still - turned
        more = tuple(range(len(every) + preferred))
        limbs = [self._body.limb(one.end)[one.idle :] if one.end >= 0 else () for one in asked if not one.clears]
        feet = self._feet_kept(every)
        away, stand = limbs_of(self._body, near, feet)
        parts = frozenset(row for limb in limbs for row in limb) | away
        if all(limbs) and parts - still:
            moved = tuple(
                k for k, one in enumerate(every) if one.clears or not parts.isdisjoint(ancestors(parents, one.end))
            )
            alone = Stage(moved, tuple(stand), limbs=parts, only=parts - still)
            if preferred:
                yield replace(alone, goals=(*moved, *more[len(every) :]))
            yield alone
        parts |= {row for one in every if one.end >= 0 for row in self._body.limb(one.end)}
        body = [Stage(tuple(range(len(every))), feet, limbs=parts)]
        if feet and not all(limbs):
            body.append(replace(body[0], lifts=True))
        if still:
            most = frozenset(range(len(parents))) - still
            body = [*(replace(stage, only=most) for stage in body), body[-1]]
        if not preferred:
            yield from body[:-1]
            if away - still and any(not one.clears for one in every) and all(one.clears for one in asked):
                yield body[-1]
                clear = tuple(k for k, one in enumerate(every) if one.clears)
                yield Stage(clear, tuple(stand), limbs=away, only=away - still)
            yield replace(body[-1], last=True)
            return
        for stage in body:
            yield replace(stage, goals=more)
            yield replace(stage, last=stage is body[-1])
        yield replace(body[-1], goals=more, last=True)

    def _feet_kept(self, asked: Sequence[Asked]) -> tuple[PlantedFoot, ...]:
        """Return the feet that keep their places: feet without goals that a goal of the layer might move."""
        parents = self._skeleton.parents
        about = {one.end for one in asked}
        moving = {above for one in asked for row in one.rows for above in ancestors(parents, row)}
        every = any(not one.rows for one in asked)
        return tuple(
            foot
            for foot in self._body.feet
            if about.isdisjoint(foot.points) and (every or not moving.isdisjoint(ancestors(parents, foot.head)))
        )

    def _solved(self, problems: Problems, asked: Sequence[Asked]) -> tuple[Array, Bools, Bools] | None:
        """Return the poses (n, nq) of a stage, a mask of missed frames, and a mask of frames whose goals were solved.

        None if the stage misses a goal and is not the last stage.
        """
        keyed, inner, every = self._keyed, self._inner, np.arange(len(self._frames))
        paths = between = all(one.between for one in asked)
        places = every if between and not self._single else inner
        done = self._around_itself(problems, places, len(asked), lead=between)
        if done is None:
            return None
        if len(places) > len(inner) and problems.needed(np.ones(len(every), bool)) is None and done[1][inner].any():
            direct = self._around_itself(problems, inner, len(asked), lead=True)
            if direct is not None and direct[1].sum() < done[1][inner].sum():  # in another branch, which no path enters
                places, paths, done = inner, False, direct
        out, missed, aimed = keyed.copy(), np.zeros(len(keyed), bool), np.zeros(len(keyed), bool)
        out[places], missed[places], aimed[places] = *done, True
        sides = (every[: inner[0]][::-1], inner[0]), (every[inner[-1] + 1 :], inner[-1])
        for side, edge in sides if between and self._single else ():
            if len(side):  # a fade cannot reject the pose of the layer's only frame
                led = problems.follow(side, keyed[side], (keyed[edge], out[edge]), kept=range(len(asked)), must=None)
                out[side], missed[side], aimed[side] = *(led or (keyed[side], True)), True
        for side, edge in sides:
            if not len(side) or (paths and not missed[side].any() and self._jerk(out, side) <= _JERK):
                continue
            change = change_between(self._skeleton, keyed[edge], out[edge])
            still = np.broadcast_to(no_change(self._skeleton), (len(side), len(change)))
            displaced = changed(
                self._skeleton, keyed[side], blend(self._skeleton, still, change, self._shares[side], follow=False)
            )
            kept = [k for k, one in enumerate(asked) if one.stays or (one.between and not between)]
            strict = np.ones(len(side), bool)
            # reference and result in the frame next to this side; both equal the solved pose
            full = (out[edge], out[edge])
            must = None if self._single else problems.needed(strict)
            done = problems.follow(side, displaced, full, kept=kept, must=must)
            if done is None:
                return None
            trial = out.copy()
            trial[side] = done[0]
            jerks = self._jerk(trial, side), self._jerk(out, side)
            if not paths or jerks[0] < jerks[1] or (missed[side].any() and jerks[0] <= _JERK):
                out, missed[side], aimed[side] = trial, done[1], False
        return out, missed, aimed

    def _around_itself(self, problems: Problems, places: Ints, count: int, *, lead: bool) -> tuple[Array, Bools] | None:
        """Return poses (n, nq) near the clip; where joints jerk, poses near the clip plus a smoothed change.

        Goals leave some motion of the joints undetermined. If each frame is solved nearest to the clip, this motion may
        change quickly: for example, a nearly straight limb may bend to another side. Solving near a smoothly displaced
        clip keeps the motion smooth and still meets the goals.

        Args:
            problems: The compiled problems of the stage.
            places: Indices of the frames to solve, within the frames of the layer.
            count: Number of goals.
            lead: As in ``Problems.follow``.
        """
        keyed = self._keyed[places]
        must = np.isin(places, self._inner)
        best = problems.follow(places, keyed, kept=range(count), must=problems.needed(must), lead=lead)
        if best is None:
            return None
        holds = self._layer.blend < 2
        jerks, at = self._jerks_of(best[0], places)
        for seconds in _WINDOWS:
            found = jerks.max(initial=0.0)
            if found <= _JERK:
                break
            width = max(round(seconds * self._fps), 1)
            change = change_between(self._skeleton, keyed, best[0])
            slow = without_fast_parts(self._skeleton, change, width, (holds or not lead, holds or not lead))
            shares = _shares_near(at[jerks > _UNEVEN], len(places), width)
            around = changed(self._skeleton, keyed, blend(self._skeleton, change, slow, shares, follow=False))
            trial = best[0].copy(), best[1].copy()
            for first, end in runs(shares > 0.0):
                part = slice(first, end)
                before = (around[first - 1], best[0][first - 1]) if first else None
                strict = problems.needed(must[part]) if best[1].any() else must[part]
                done = problems.follow(places[part], around[part], before, kept=range(count), must=strict)
                if done is None:
                    return best
                trial[0][part], trial[1][part] = done
            now, _ = again = self._jerks_of(trial[0], places)
            if trial[1].sum() > best[1].sum() or now.max() >= found:
                break
            best, (jerks, at) = trial, again
            if now.max() > _SMOOTHER * found:
                break
        return best

    def _jerks_of(self, poses: Array, places: Ints) -> tuple[Array, Ints]:
        """Return the jerk at each of the frames ``places``, except ends, (m,), and its index in ``places``, (m,).

        Jumps at the first and last frame of a layer without fades do not count.
        """
        out = self._keyed.copy()
        out[places] = poses
        if self._layer.blend > 1 and len(places) == len(out):
            return self._jerks(out, places)
        if len(places) < 3:
            return np.zeros(1), np.zeros(1, np.int64)
        blend = max(self._layer.blend, round(_SHORTEST * self._fps), 2)
        found = Moved(self._skeleton, self._keyed, out).jerks(self._keyed[places], out[places], blend)
        return found.max(axis=1, initial=0.0), np.arange(1, len(places) - 1)

    def _jerk(self, out: Array, side: Ints) -> float:
        """Return the largest jerk of the edited clip in the frames ``side`` and in adjacent frames."""
        return float(self._jerks(out, side)[0].max(initial=0.0))

    def _jerks(self, out: Array, side: Ints) -> tuple[Array, Ints]:
        """Return the jerks of the edited clip in the frames ``side`` and in adjacent frames.

        Args:
            out: Joint values in the frames of the layer after the edit, (n, nq).
            side: Indices of the frames, within the frames of the layer.

        Returns:
            The jerks, (m,), and the index of the frame of each, clipped to the frames of the layer, (m,).
        """
        before, after = self._q[: self._frames[0]][-2:], self._q[self._frames[-1] + 1 :][:2]
        first = max(int(side.min()) + len(before) - 2, 0)
        window = slice(first, int(side.max()) + len(before) + 3)
        own, new = (np.concatenate([before, values, after])[window] for values in (self._keyed, out))
        found = Moved(self._skeleton, self._keyed, out).jerks(own, new, max(self._layer.blend, 1))
        at = np.arange(len(found)) + first + 1 - len(before)
        return found.max(axis=1, initial=0.0), np.clip(at, 0, len(out) - 1)


def _shares_near(places: Ints, count: int, width: int) -> Array:
    """Return smoothing weights of ``count`` frames: 1 within ``width`` frames of ``places``, falling smoothly to 0."""
    away = np.abs(np.arange(count)[:, None] - places).min(axis=1) - width
    return np.asarray(smooth(np.clip(1.0 - away / (2 * width + 1), 0.0, 1.0)), np.float64)


def _centers_of_mass(skeleton: Skeleton, frames: Array) -> Array:
    """Return the centres of mass, (n, 3), of poses with the world frames ``frames``, (n, joints, 12)."""
    masses = np.array([joint.mass for joint in skeleton.joints])
    local = np.array([joint.com for joint in skeleton.joints])
    rotations = frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    points = frames[..., 9:] + (rotations @ local[None, :, :, None])[..., 0]
    centers: Array = np.einsum("j,njk->nk", masses, points) / masses.sum()
    return centers
