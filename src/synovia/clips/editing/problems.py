"""The compiled problems of a layer: goals, feet that keep their places, and a term that holds joints near the clip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress
from synovia.clips.editing.body import Body, PlantedFoot
from synovia.facade import IK
from synovia.goals import ClearanceGoal, Goal, PoseGoal, RestGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.ik import Solution
from synovia.ik.compiled import CompiledProblem
from synovia.ik.frame import FrameSolver
from synovia.ik.interrupts import Watch
from synovia.ik.targets import table_of, transforms
from synovia.model import Pose
from synovia.model.geometry import Array, frames_to_transforms
from synovia.model.pose import inside_limits, world_frames
from synovia.model.tree import ancestors
from synovia.problem.structure import with_tied
from synovia.solver import FullBody
from synovia.tracking.around import Around

_SHARE: Final = 0.7  # fraction of the layer's remaining progress that a pass takes; further passes are rare
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_REST_STEP: Final = 1e-3  # radians: the solve of a frame ends after a smaller step; the remaining error is invisible
_USUAL: Final = 30.0  # frames per second; at higher rates, ``_REST_STEP`` is divided by (fps / _USUAL)²
_FOLLOWING: Final = 1  # goals are lowered by this number of priorities, so that feet have precedence


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Settings of the solves of an edit.

    Args:
        watch: Stops the solves.
        meter: Receives the progress.
        tolerance: As in ``IK``; None for the default.
    """

    watch: Watch
    meter: Meter
    tolerance: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A goal of a layer, with its joints and targets.

    Args:
        goal: The goal, resolved for the body.
        rows: Rows of the goal's joints, its own joint first.
        wanted: Targets, (n, 4, 4), in the frames of the layer and of its fades.
        lead: Targets, (k, 4, 4), on a path from the goal's pose in the clip to its target in the first solved frame.
        between: Whether the goal has interpolated targets in fades; otherwise joint changes are faded.
        stays: Whether the goal keeps its pose in the clip in every frame, or is a clearance goal.
        holds: Mask of the frames in which the goal applies, (n,); None for all frames.
    """

    goal: Goal
    rows: tuple[int, ...]
    wanted: Array
    lead: Array
    between: bool
    stays: bool = False
    holds: Bools | None = None

    @property
    def clears(self) -> bool:
        """Whether the goal is a clearance goal. Such goals have no target, and also apply in fades."""
        return isinstance(self.goal, ClearanceGoal)

    @property
    def idle(self) -> bool:
        """Whether the goal's own joint cannot move the goal: the goal is for the position of the joint's origin."""
        goal = self.goal
        return goal.constrained_parts == POSITION and not goal.terms and not goal.frame[:3, 3].any()

    @property
    def end(self) -> int:
        """Row of the joint at the end of the limb that the goal moves; -1 for the whole body."""
        if not self.rows:
            return -1
        return self.rows[-1] if self.goal.turns_limb else self.rows[0]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One stage of a layer's solve: the joints that it moves, and the goals and feet that it keeps.

    Args:
        goals: Indices of the goals that the stage solves.
        feet: Feet that keep their places.
        only: Joints that may move; None for all.
        limbs: Joints of limbs with goals; they have smaller weights, and so move first.
        lifts: Whether goals may lift feet that are not planted; these feet then have a lower priority than the goals.
        last: Whether a miss is accepted; otherwise the stage ends at a miss.
    """

    goals: tuple[int, ...]
    feet: tuple[PlantedFoot, ...] = ()
    only: frozenset[int] | None = None
    limbs: frozenset[int] = frozenset()
    lifts: bool = False
    last: bool = False


class Problems:
    """The compiled problems of one stage: one problem for each combination of planted feet and active goals.

    Args:
        body: The body of the clip.
        below: Joint values of the clip below the layer, (n, nq), in the frames of the layer.
        frames: Numbers of these frames in the clip, (n,).
        asked: The goals.
        stage: The joints that move, and the goals and feet that the stage keeps.
        options: Settings of the solves.
    """

    def __init__(
        self, body: Body, below: Array, frames: Ints, asked: Sequence[Asked], stage: Stage, options: Options
    ) -> None:
        """Find the poses of the feet in the clip."""
        if stage.only is not None:
            stage = replace(stage, only=with_tied(body.given, stage.only))
        self._body, self._frames, self._asked, self._stage = body, frames, asked, stage
        self._watch, self._meter, self._tolerance = options.watch, options.meter, options.tolerance
        self._rest, self._below = below[0], below
        worlds = world_frames(body.skeleton, below) if stage.feet else np.empty((0, 0, 12))
        self._places = [frames_to_transforms(worlds[:, foot.head]) for foot in stage.feet]
        self._cache: dict[tuple[tuple[bool, ...], tuple[int, ...]], tuple[Around, list[int]] | None] = {}
        self._searches: dict[Around, CompiledProblem] = {}

    def retargeted(self, asked: Sequence[Asked]) -> Problems:
        """Replace the goals by the same goals with other targets, and return these problems."""
        self._asked = asked
        return self

    def needed(self, frames: Bools) -> Bools | None:
        """Return a mask of the frames that must reach their goals; None in the last stage, which accepts misses."""
        return None if self._stage.last else frames

    def follow(
        self,
        places: Ints,
        reference: Array,
        before: tuple[Array, Array] | None = None,
        *,
        kept: Sequence[int],
        must: Bools | None,
        lead: bool = False,
    ) -> tuple[Array, Bools] | None:
        """Return poses (n, nq) of consecutive frames, and a mask of missed frames; None if a frame in ``must`` misses.

        Args:
            places: Indices of the frames to solve, within the frames of the layer, (n,).
            reference: Poses near which the joints stay, (n, nq).
            before: Reference and result in the frame before the first one, (nq,) each; None to start at the clip
                itself.
            kept: Indices of the goals to solve.
            must: Mask of the frames that must reach their goals, (n,); see ``needed``. None to accept all misses and to
                improve them as far as possible.
            lead: Whether to approach the targets of the first frame step by step from the goals' poses in the clip.
        """
        stage = self._stage
        stands = [tuple(bool(foot.stands[self._frames[k]]) or not stage.lifts for foot in stage.feet) for k in places]
        held = [tuple(i for i in kept if (on := self._asked[i].holds) is None or on[k]) for k in places]
        out, missed = reference.copy(), np.zeros(len(places), bool)
        self._meter.begin_pass(len(places))
        first = 0
        while first < len(places):
            end = first + 1
            while end < len(places) and (stands[end], held[end]) == (stands[first], held[first]):
                end += 1
            part = slice(first, end)
            problem = self._problem(stands[first], held[first])
            if problem is not None:
                around, numbers = problem
                if lead and first == 0 and (steps := len(self._asked[0].lead)):
                    still = np.repeat(reference[:1], steps, axis=0)
                    led = around.solve(still, self._lead(numbers, steps), self._watch, must=np.zeros(steps, bool))
                    before = None if led is None else (reference[0], led[-1, around.ik.places])
                table = self._table(numbers, places[part])
                strict = None if must is None else must[part]
                rows = around.solve(
                    reference[part], table, self._watch, before, must=strict, progress=self._meter.frames
                )
                if rows is None:
                    return None
                if lead and must is None and first == 0 and self._body.top is None and around.missed(rows)[0]:
                    rows = self._elsewhere(around, reference[part], table, rows)
                out[part] = rows[:, around.ik.places]
                missed[part] = around.missed(rows)
            before = (reference[end - 1], out[end - 1])
            first = end
        return out, missed

    def _elsewhere(self, around: Around, reference: Array, table: Array, rows: Array) -> Array:
        """Return rows of results that begin in another branch, if a search finds one that reaches; else ``rows``.

        A body with a moving root has no branches that one would want: it steps or leans.

        Args:
            around: The problem.
            reference: Poses near which the joints stay, (n, nq).
            table: Targets, (n, goals, 17).
            rows: Results near the clip, whose first one misses.
        """
        ik = around.ik
        found = FrameSolver(self._search(around)).solve(table[:1], inside_limits(ik.skeleton, reference[:1]))
        if around.missed(found)[0]:
            return rows
        again = around.solve(reference, table, self._watch, (reference[0], found[0, ik.places]))
        return rows if again is None or around.missed(again).sum() >= around.missed(rows).sum() else again

    def _search(self, around: Around) -> CompiledProblem:
        """Return the same problem with attempts from other poses."""
        if around not in self._searches:
            self._searches[around] = CompiledProblem(
                around.ik.skeleton, around.ik.goals, FullBody(), tolerance=self._tolerance, root="fixed",
                moving=self._stage.only,
            )  # fmt: skip
        return self._searches[around]

    def solution(self, place: int) -> Solution | None:
        """Return the solution of one frame alone, which says why goals are missed; None without goals.

        Args:
            place: Index of the frame, within the frames of the layer.
        """
        frame = self._frames[place]
        stands = tuple(bool(foot.stands[frame]) or not self._stage.lifts for foot in self._stage.feet)
        kept = tuple(k for k, one in enumerate(self._asked) if one.holds is None or one.holds[place])
        if (found := self._problem(stands, kept)) is None:
            return None
        around, numbers = found
        ik, targets = IK.of(around.ik), dict[str | int, Array]()
        for goal, k in zip(ik.goals, numbers, strict=False):  # the rest goal is last, and has no target
            if goal.takes:
                targets[goal.label] = (self._places[-1 - k] if k < 0 else self._asked[k].wanted)[place]
        pose = Pose(self._body.skeleton, self._below[place])
        near = ik.solve(targets, pose)
        if near.reached or self._body.top is not None:
            return near
        other = IK.of(self._search(around)).solve(targets, pose)  # as in ``_elsewhere``
        return other if other.reached else near

    def _problem(self, stands: tuple[bool, ...], kept: tuple[int, ...]) -> tuple[Around, list[int]] | None:
        """Return a problem for planted feet and goals, and the index of each of its goals; -1 - k is foot k."""
        key = (stands, kept)
        if key not in self._cache:
            self._cache[key] = self._built(stands, kept)
        return self._cache[key]

    def _built(self, stands: tuple[bool, ...], kept: tuple[int, ...]) -> tuple[Around, list[int]] | None:
        """Build the problem that ``_problem`` returns; None without goals.

        Planted feet have the first priority. Then follow goals, feet that goals may lift, and the distance to the clip.
        """
        stage, skeleton = self._stage, self._body.skeleton
        goals: list[Goal] = []
        numbers: list[int] = []
        moving: set[int] = set()
        lowest = max((self._asked[k].goal.rank for k in kept), default=0) + _FOLLOWING + 1
        for k, (foot, stand) in enumerate(zip(stage.feet, stands, strict=True)):
            name = f"{skeleton.joint_names[foot.head]} in place"
            goals.append(PoseGoal(foot.head, priority=0 if stand else lowest, name=name))
            numbers.append(-1 - k)
            moving.update(ancestors(skeleton.parents, foot.head))
        for k in kept:
            one = self._asked[k]
            goals.append(one.goal.lowered(_FOLLOWING if stage.feet else 0))
            numbers.append(k)
            for row in one.rows:
                moving.update(list(ancestors(skeleton.parents, row))[one.idle :])
            moving.update(() if one.rows else range(len(skeleton)))
        if not goals:
            return None
        if stage.only is not None:
            moving &= stage.only
        legs = {row for foot in stage.feet for row in self._body.limb(foot.head)}
        light = with_tied(self._body.given, stage.limbs | legs)
        rows = sorted(row for row in moving if skeleton.joints[row].kind.v_size)
        rest = RestGoal(self._rest, joints=self._body.weights(rows, light))
        finest = _REST_STEP * min(_USUAL / self._body.fps, 1.0) ** 2
        solver = FullBody(attempts=1, rest_step=finest)
        free = self._body.top is not None and (stage.only is None or self._body.top in stage.only)
        root = "free" if free else "fixed"
        ik = CompiledProblem(
            skeleton, [*goals, rest], solver, tolerance=self._tolerance, root=root, moving=stage.only
        )  # fmt: skip
        return Around(ik), numbers

    def _lead(self, numbers: Sequence[int], steps: int) -> Array:
        """Return the table of targets that lead from the clip to the targets of the first frame."""
        out = self._table(numbers, np.zeros(steps, np.int64))
        for i, k in enumerate(numbers):
            if k >= 0:
                transforms(out)[:, i] = self._asked[k].lead
        return out

    def _table(self, numbers: Sequence[int], places: Ints) -> Array:
        """Return the table of targets, (n, goals, 17), with a row for the rest goal."""
        wanted = [self._places[-1 - k] if k < 0 else self._asked[k].wanted for k in numbers]
        takes = [POSITION | ROTATION if k < 0 else self._asked[k].goal.takes for k in numbers]
        return table_of([frames[places] for frames in wanted], takes, rest=1)


def legs_at_limits(body: Body, q: Array, feet: Sequence[PlantedFoot]) -> list[int]:
    """Return the joints at a limit in a pose, among the joints of legs whose feet keep their places.

    Args:
        body: The body of the clip.
        q: Joint values of the pose, (nq,).
        feet: The feet.
    """
    legs = {row for foot in feet for row in body.limb(foot.head)}
    ik = CompiledProblem(body.skeleton, [RestGoal(q)], FullBody(attempts=1))
    return [row for row in ik.rows_at_limits(Pose(body.skeleton, q)) if row in legs]


class Errors:
    """Measures the errors of goals at poses.

    Args:
        body: The body of the clip.
        asked: The goals.
        tolerance: As in ``IK``.

    Attributes:
        most: Tolerances of the goals, (goals, 2): lengths and angles.
    """

    def __init__(self, body: Body, asked: Sequence[Asked], tolerance: tuple[float, float] | None) -> None:
        """Compile a problem with these goals."""
        root = "free" if body.top is not None else "fixed"
        self._ik = CompiledProblem(
            body.skeleton, [one.goal for one in asked], FullBody(attempts=1), tolerance=tolerance, root=root
        )
        self._frame = FrameSolver(self._ik, steps=0)
        most, angle = self._ik.tolerance
        self.most = np.array([(goal.own_tolerance or most, angle) for goal in self._ik.goals])

    def at(self, q: Array, wanted: Sequence[Array]) -> Array:
        """Return errors, (n, goals, 2), at poses (n, nq) of the body; ``wanted``: targets (n, 4, 4) of each goal."""
        table = table_of(wanted, [goal.takes for goal in self._ik.goals])
        return self._ik.errors_in(self._frame.each(table, inside_limits(self._ik.skeleton, q)))


def errors_of(
    body: Body, q: Array, asked: Sequence[Asked], tolerance: tuple[float, float] | None
) -> tuple[Array, Array]:
    """Return goals' errors, (n, goals, 2), at poses q, (n, nq), and tolerances, (goals, 2); see ``Errors``."""
    errors = Errors(body, asked, tolerance)
    return errors.at(q, [one.wanted for one in asked]), errors.most


class Meter:
    """Reports the progress of an edit, which never decreases.

    Args:
        progress: Called with (frames done, number of frames); None for no reports.
        frames: Number of frames of each layer.
    """

    def __init__(self, progress: Progress | None, frames: list[int]) -> None:
        """Start with no frames done."""
        self._progress, self._left, self._all = progress, frames[::-1], sum(frames)
        self._before, self._own, self._done, self._step = 0, 0, 0.0, 0.0

    def begin_layer(self) -> None:
        """Mark all frames of the previous layer as done, and start the next layer."""
        self._before, self._own, self._done = self._before + self._own, self._left.pop(), 0.0
        self._report()

    def begin_pass(self, count: int) -> None:
        """Start a pass over ``count`` frames of the current layer."""
        self._step = _SHARE * (self._own - self._done) / max(count, 1)

    def frames(self, count: int) -> None:
        """Mark ``count`` more frames of the current pass as done."""
        self._done += count * self._step
        self._report()

    def end(self) -> None:
        """Report that all frames are done."""
        self._before, self._own, self._done = self._all, 0, 0.0
        self._report()

    def _report(self) -> None:
        """Report the progress."""
        if self._progress is not None:
            self._progress(min(self._before + round(self._done), self._all), self._all)
