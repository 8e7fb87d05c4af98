"""One layer on a clip: keys move joints, then goals are solved frame by frame around the clip.

In a fade, goals move on straight lines and shortest arcs between the clip's own places and their targets. Where joints
would jerk on the way, as a limb that was straight does, or cannot follow it, the change at the nearest frame of the
layer is faded instead, joint by joint, and only feet are solved. Goals whose fade has no targets between, such as
bounds, fade so as well.

References:
    Lee & Shin (1999), *A hierarchical approach to interactive motion editing for human-like figures*; Witkin & Popović
    (1995), *Motion warping*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.clips.editing.body import Body, PlantedFoot
from synovia.clips.editing.clear import NearPair, limbs_of, links_of, near_in
from synovia.clips.editing.keys import KeyCurves, changed_rows, with_changes
from synovia.clips.editing.problems import Asked, Options, Problems, Stage, errors_of
from synovia.clips.editing.smoothness import Moved, without_fast_parts
from synovia.errors import InputError
from synovia.goals import AimGoal, ClearanceGoal, Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.layers import Layer, LayerTarget
from synovia.model import Skeleton
from synovia.model.anatomy.feet import runs
from synovia.model.change import blend, change_between, changed, no_change, smooth
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.pose import world_frames
from synovia.model.tree import ancestors
from synovia.problem.structure import allowed_rows
from synovia.text import counted

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_UPRIGHT: Final = 0.5  # cosine between the top of a head and up below which it lies
_TIPS: Final = float(np.radians(20.0))  # radians by which hips may turn so that they come to a place
_LEAD: Final = 8  # steps from the clip to targets that the first frame has at once
_JERK: Final = 1.8  # times the acceleration of a smooth fade, or of the clip, from which joints jerk
_WINDOWS: Final = (0.05, 0.1, 0.15)  # seconds over which changes that jerk are smoothed, one after the other
_UNEVEN: Final = 1.2  # the same from which frames are smoothed with those that jerk
_SMOOTHER: Final = 0.97  # part of its jerk after a pass from which another pass does not pay
_STILL_MET: Final = 2.0  # tolerances from its target within which a goal of a layer below is still met
_ROUNDING: Final = 1e-7  # radians or length units: less than a joint moves
_SHORTEST: Final = 0.2  # seconds of a fade with which changes are compared in a layer without one


@dataclass(frozen=True, slots=True, eq=False)
class LayerResult:
    """What one layer has changed.

    Args:
        q: Joint values of the whole clip, (T, nq).
        frames: Frames in which the layer acts, (n,).
        asked: Its goals, with their targets in these frames.
        missed: Which of these frames miss a goal, (n,).
        aimed: Which of these frames have targets, (n,); in the others the change of the joints is faded.
        feet: Feet that kept their places.
        cut: Joints whose keys were outside limits.
        cleared: Joints of links that were too near for a clearance goal.
        acts: In which of these frames it acts, (n,): one that only keeps clear leaves frames that are clear.
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


class LayerOnClip:
    """A layer that is applied to a clip.

    Args:
        body: The body of the clip.
        q: The clip below the layer, (T, nq).
        layer: The layer.
        earlier: Results of the layers below. Their goals stay met where those of this layer allow it.
        options: When to stop, and the tolerance.

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
        """Find the frames in which it acts, and move joints by its keys."""
        self._body, self._q, self._layer, self._options = body, q, layer, options
        self._earlier = earlier
        self._skeleton, self._fps = body.skeleton, body.fps
        self._allowed = None if layer.moving is None else allowed_rows(body.skeleton, body.given, layer.moving)
        self._first, self._last = layer.bounds(len(q))
        if self._last >= len(q):
            hint = f"the clip is {body.name!r}, with {counted(len(q), 'frame')}"
            expected = f"frames of 0 to {len(q) - 1}"
            raise InputError("frames", value=(self._first, self._last), expected=expected, hint=hint)
        low, high = layer.span(len(q))
        self._frames: Ints = np.arange(low, high + 1)
        self._inner = np.flatnonzero((self._frames >= self._first) & (self._frames <= self._last))
        away = np.maximum(np.maximum(self._first - self._frames, self._frames - self._last), 0)
        self._shares = np.asarray(smooth(1.0 - away / max(layer.blend, 1)), np.float64)  # of a smooth step, (n,)
        self._below = q[self._frames]
        self._keyed, self._cut = self._moved_by_keys()

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
            if len(goals) > len(every) or not self._tips(solved[0], preferred):
                self._restore(asked, solved[0], near)
                return self._result(q, asked, solved, stage.feet, links)
        raise AssertionError  # the last stage always has an answer

    def _within(self, stage: Stage) -> Stage | None:
        """Return a stage in which only joints move that may; None if that leaves nothing to try before the last one."""
        some = [rows for rows in (self._allowed, stage.only) if rows is not None]
        only = frozenset[int].intersection(*some) if some else None
        if only is None or any(self._skeleton.joints[row].kind.v_size for row in only):
            return replace(stage, only=only)
        return replace(stage, only=self._allowed) if stage.last else None

    def _restore(self, asked: Sequence[Asked], poses: Array, near: Sequence[NearPair]) -> None:
        """Put the clip back into poses (n, nq) that differ from it by rounding, if the layer only keeps clear.

        Args:
            asked: The goals of the layer.
            poses: The poses.
            near: Pairs that are too near in the clip.
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
        """Return what the layer has changed, from its poses and what they miss; put them into the clip (T, nq)."""
        poses, missed, aimed = solved
        if self._skeleton.mechanism is not None:  # fades blend closed poses
            poses = self._closed(poses)
        if self._allowed is not None:  # the others differ by the rounding of changes that are none
            held = np.ones(poses.shape[1], bool)
            for row in self._allowed:
                held[self._skeleton.q_slice(row)] = False
            poses[:, held] = self._keyed[:, held]
        q[self._frames] = poses
        acts = (q[self._frames] != self._below).any(axis=1)
        if self._layer.keys or not all(one.clears for one in asked):
            acts[:] = True
        return LayerResult(q, self._frames, tuple(asked), missed, aimed, feet, self._cut, tuple(cleared), acts)

    def _closed(self, poses: Array) -> Array:
        """Return poses of the layer (n, nq) with closed loops; those of the clip below keep every bit."""
        mechanism, changes = self._skeleton.mechanism, (poses != self._below).any(axis=1)
        if mechanism is None or not changes.any():
            return poses
        closed_from = np.concatenate([self._below[:1], poses])  # the first pose is reached from that of the clip
        return np.where(changes[:, None], mechanism.shut_clip(closed_from)[1:], poses)

    def _preferred(self, asked: Sequence[Asked]) -> list[Asked]:
        """Return goals that keep the other part of a pose: hips that are moved stay upright, hands that turn in place.

        The hips turn only if the legs do not reach otherwise, and a hand or foot leaves its place only if it has to.
        """
        roles = self._skeleton.role_rows
        hips = ancestors(self._skeleton.parents, roles["hips"]) if "hips" in roles else ()
        ends = {row for role, row in roles.items() if role.endswith(("_hand", "_foot"))}
        parts: dict[int, list[int]] = {}
        for one in asked:
            parts.setdefault(one.end, []).append(-1 if one.goal.terms else one.goal.constrained_parts)
        frames, out = world_frames(self._skeleton, self._keyed), list[Asked]()
        priority = max(one.goal.rank for one in asked)
        for end, found in sorted(parts.items()):
            if end in hips and set(found) == {POSITION}:
                goal, rows = RotationGoal(end, priority=priority).located(self._skeleton)
            elif end in ends and set(found) == {ROTATION}:
                goal, rows = PositionGoal(end, priority=priority).located(self._skeleton)
            else:
                continue
            places = frames_to_transforms(frames[:, end])
            out.append(Asked(goal, rows, places, places[:1].repeat(len(asked[0].lead), axis=0), True, True))
        return out

    def _tips(self, poses: Array, preferred: Sequence[Asked]) -> bool:
        """Return whether poses (n, nq) turn the hips far, to bring them to a place that legs do not reach."""
        upright = [one for one in preferred if one.goal.constrained_parts == ROTATION]
        if not upright:
            return False
        frames = world_frames(self._skeleton, poses)
        for one in upright:
            turned = frames_to_transforms(frames[:, one.end])[:, :3, :3]
            traces = np.einsum("nij,nij->n", turned, one.wanted[:, :3, :3])  # 1 + 2 cos of the angle
            if (traces < 1.0 + 2.0 * np.cos(_TIPS)).any():
                return True
        return False

    def _moved_by_keys(self) -> tuple[Array, tuple[int, ...]]:
        """Return the clip with the keys of the layer, (n, nq), and the joints that these move outside their limits."""
        if not self._layer.keys:
            return self._below, ()
        skeleton = self._skeleton
        change = KeyCurves(skeleton, self._layer, self._q).at(self._frames.astype(np.float64), self._below)
        return with_changes(skeleton, self._below, change, changed_rows(skeleton, change))

    # --- goals --------------------------------------------------------------------------------------------------------

    def _asked(self) -> list[Asked]:
        """Return the goals of the layer with their targets; the ends of limbs that poles turn keep their places."""
        if not (self._layer.goals or self._layer.targets):
            return []
        frames = world_frames(self._skeleton, self._keyed)
        asked = [self._asked_of(goal, target, frames) for goal, target in self._layer.all_goals()]
        ends = {one.end for one in asked if one.goal.turns_limb}
        for end in sorted(ends - {one.end for one in asked if not one.goal.turns_limb}):
            places = frames_to_transforms(frames[:, end])
            goal, rows = PoseGoal(end, priority=max(one.goal.rank for one in asked) + 1).located(self._skeleton)
            asked.append(Asked(goal, rows, places, places[:1].repeat(len(asked[0].lead), axis=0), True, True))
        return asked

    def _asked_of(self, goal: Goal, target: LayerTarget | None, frames: Array) -> Asked:
        """Return a goal with its targets.

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
        if goal.needs == "aim" and goal.given & ~asked.given & ROTATION:  # a head that is level by itself
            self._keep_lying(wanted, goal.met_at(now, others))
        weights: Array = self._layer.weight * self._shares
        steps = round(_LEAD * float(weights[0]))
        lead: Array | None = None
        faded: Array | None = None
        if goal.takes:
            faded = goal.part_way(now, others, wanted, weights)
            share = weights[0] * np.arange(1, steps + 1) / (steps + 1)
            still = [one[:1].repeat(steps, axis=0) for one in (now, *others, wanted)]
            lead = goal.part_way(still[0], still[1:-1], still[-1], share)
        if goal.needs == "clearance":
            return Asked(goal, rows, wanted, wanted[:1].repeat(steps, axis=0), True, True)
        if faded is None and self._layer.weight < 1.0:
            expected = f"1 with a goal that has no targets between ({goal.label})"
            raise InputError("weight", value=self._layer.weight, expected=expected)
        full = weights == 1.0
        if faded is not None:
            wanted = np.where(full[:, None, None], wanted, faded)
        lead = wanted[:1].repeat(steps, axis=0) if lead is None else lead
        return Asked(goal, rows, wanted, lead, faded is not None or bool(full.all()))

    def _keep_lying(self, wanted: Array, own: Array | None) -> None:
        """Take the clip's own up for the targets (n, 4, 4) of a head that is far from upright in most frames."""
        if own is not None and float(np.median(np.sum(wanted[:, :3, 2] * own[:, :3, 2], axis=1))) < _UPRIGHT:
            wanted[:, :3, :3] = own[:, :3, :3]

    def _frames_of(self, goal: Goal, rows: Sequence[int], frames: Array) -> tuple[Array, list[Array]]:
        """Return a goal's frame in the world and those of its other joints, each (n, 4, 4)."""
        if not rows:
            now = np.tile(np.eye(4), (len(frames), 1, 1))
            if goal.moves_mass:
                now[:, :3, 3] = _centers_of_mass(self._skeleton, frames)
            return now, []
        now = frames_to_transforms(frames[:, rows[0]]) @ goal.frame
        return now, [frames_to_transforms(frames[:, row]) @ goal.place(k) for k, row in enumerate(rows[1:], 1)]

    def _full_targets(self, goal: Goal, target: LayerTarget | None, now: Array, others: list[Array]) -> Array:
        """Return the targets of a goal at full weight, (n, 4, 4): those of the layer, its own, or the clip's places."""
        own = goal.met_at(now, others)
        if own is None:
            if target is not None:
                raise InputError(f"target of {goal.label!r}", expected=f"no target, which {goal!r} does not take")
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
        """Check that a target fits its goal and the frames.

        Raises:
            InputError: If it does not.
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
        """Return goals that keep what layers below have placed, after the goals of this layer."""
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
                    out.append(Asked(goal, one.rows, own, own[:1].repeat(len(asked[0].lead), axis=0), True, True))
        return out

    def _still_clear(self, one: Asked, result: LayerResult, steps: int) -> Asked:
        """Return a clearance of a layer below, in the frames in which that layer acts."""
        none = np.tile(np.eye(4), (len(self._frames), 1, 1))
        return replace(
            one, wanted=none, lead=none[:1].repeat(steps, axis=0), holds=np.isin(self._frames, result.frames)
        )

    def _aim(self, own: Array, one: Asked, result: LayerResult) -> None:
        """Replace places (n, 4, 4) of a goal by its targets where it still meets them, so that errors do not add up."""
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
        """Yield the stages of a solve, of which the first that reaches all goals is the answer.

        First, limbs with goals move alone. Then the whole body moves, with feet where the clip has them. If goals of
        the trunk are missed so, they may lift feet that do not stand. Joints that the clip never moves come last, but
        those that a goal turns. If goals of layers below are missed so, a layer that only keeps clear gives them up.

        Args:
            asked: The goals of the layer.
            every: These and goals that are kept.
            preferred: Number of goals after these, see ``_preferred``. Each stage comes with them first, and they end
                in the last one of all, which has an answer where the hips would tip over without them.
            near: Links that are too near in the clip; their limbs move like those with goals.
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
        """Return the feet that keep their places: those that the goals may move, and that no goal is about."""
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
        """Return the poses of a stage (n, nq), which of them miss a goal, and which have targets.

        None if the stage does not reach all goals, and is not the last.
        """
        keyed, inner, every = self._keyed, self._inner, np.arange(len(self._frames))
        between = all(one.between for one in asked)
        places = every if between else inner
        done = self._around_itself(problems, places, len(asked), lead=between)
        if done is None:
            return None
        out, missed, aimed = keyed.copy(), np.zeros(len(keyed), bool), np.zeros(len(keyed), bool)
        out[places], missed[places], aimed[places] = *done, True
        for side, edge in ((every[: inner[0]][::-1], inner[0]), (every[inner[-1] + 1 :], inner[-1])):
            if not len(side) or (between and not missed[side].any() and self._jerk(out, side) <= _JERK):
                continue
            change = change_between(self._skeleton, keyed[edge], out[edge])
            still = np.broadcast_to(no_change(self._skeleton), (len(side), len(change)))
            displaced = changed(
                self._skeleton, keyed[side], blend(self._skeleton, still, change, self._shares[side], follow=False)
            )
            kept = [k for k, one in enumerate(asked) if one.stays or (one.between and not between)]
            strict = np.ones(len(side), bool)
            full = (out[edge], out[edge])  # the displaced clip next to the first frame of the side, and its answer
            done = problems.follow(side, displaced, full, kept=kept, must=problems.needed(strict))
            if done is None:
                return None
            trial = out.copy()
            trial[side] = done[0]
            jerks = self._jerk(trial, side), self._jerk(out, side)
            if not between or jerks[0] < jerks[1] or (missed[side].any() and jerks[0] <= _JERK):
                out, missed[side], aimed[side] = trial, done[1], False
        return out, missed, aimed

    def _around_itself(self, problems: Problems, places: Ints, count: int, *, lead: bool) -> tuple[Array, Bools] | None:
        """Return poses (n, nq) around the clip; where joints jerk, around the clip displaced by their smooth change.

        The goals leave some motion of the joints free. Frame by frame, it is the one nearest to the clip, which may
        turn quickly, as the side to which a nearly straight limb bends. Around a clip that is displaced smoothly, it
        stays smooth, and the goals still hold.

        Args:
            problems: The problems.
            places: Places of the frames.
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
        """Return jerks of poses (n, nq) at places, (m,), and in which of these each is, (m,).

        Jumps where a layer without fades begins and ends do not count.
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
        """Return the largest jerk in some frames of the clip with the layer (n, nq), and in the adjacent ones."""
        return float(self._jerks(out, side)[0].max(initial=0.0))

    def _jerks(self, out: Array, side: Ints) -> tuple[Array, Ints]:
        """Return the jerks of some frames of the clip with the layer (n, nq), and of the adjacent ones.

        Args:
            out: The clip with the layer.
            side: Places of the frames.

        Returns:
            The jerks, (m,), and the place of each or the nearest one, (m,).
        """
        before, after = self._q[: self._frames[0]][-2:], self._q[self._frames[-1] + 1 :][:2]
        first = max(int(side.min()) + len(before) - 2, 0)
        window = slice(first, int(side.max()) + len(before) + 3)
        own, new = (np.concatenate([before, values, after])[window] for values in (self._keyed, out))
        found = Moved(self._skeleton, self._keyed, out).jerks(own, new, max(self._layer.blend, 1))
        at = np.arange(len(found)) + first + 1 - len(before)
        return found.max(axis=1, initial=0.0), np.clip(at, 0, len(out) - 1)


def _shares_near(places: Ints, count: int, width: int) -> Array:
    """Return how far each of some frames takes part in smoothing, (count,): wholly near places, not at all far away."""
    away = np.abs(np.arange(count)[:, None] - places).min(axis=1) - width
    return np.asarray(smooth(np.clip(1.0 - away / (2 * width + 1), 0.0, 1.0)), np.float64)


def _centers_of_mass(skeleton: Skeleton, frames: Array) -> Array:
    """Return the centre of mass over frames (n, joints, 12), (n, 3)."""
    masses = np.array([joint.mass for joint in skeleton.joints])
    local = np.array([joint.com for joint in skeleton.joints])
    rotations = frames[..., :9].reshape(*frames.shape[:2], 3, 3)
    points = frames[..., 9:] + (rotations @ local[None, :, :, None])[..., 0]
    centers: Array = np.einsum("j,njk->nk", masses, points) / masses.sum()
    return centers
