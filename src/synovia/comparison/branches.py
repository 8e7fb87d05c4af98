"""Measure the lists of branches of arms: how many there are, how many are missing, how exact and how fast they are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from synovia.comparison.arms import ARMS, Arm, arm_skeleton, random_screws
from synovia.comparison.problems import default_joints
from synovia.errors import UnsupportedError
from synovia.facade import IK
from synovia.goals import PoseGoal
from synovia.ik.branches import Branches
from synovia.ik.completeness import Limits
from synovia.ik.redundancy import held_of
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array
from synovia.solver import LevenbergMarquardt

STARTS: Final = 400  # random starts of a solver that searches for further branches of each target
_EXACT: Final = 1e-9  # length scales, radians: tolerance of these searches
_SAME: Final = 1e-4  # radians, length scales: poses nearer than this are the same branch
_CALLS: Final = 3  # calls for each target, of which the median time counts
_RANDOM: Final = "random chains"


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRow:
    """The branches of one arm, for targets that random poses within the limits reach.

    Args:
        arm: Name of the arm.
        refused: Reason why there are no lists of branches; the other values are then 0.
        held: Name of the redundant joint of seven, which has the value of the random pose; empty for six joints.
        targets: Number of targets.
        branches: Number of branches of all targets that are listed.
        missing: Number of branches that a solver found from random starts and that are not listed.
        complete: Number of targets whose list is proved to be complete.
        short: Number of these lists that lack a branch; 0 unless a proof is wrong.
        error: Largest error of a branch by forward kinematics: length scales, or entries of a rotation matrix.
        median_us: Median time of a call, microseconds.
        p99_us: 99th percentile of the time of a call, microseconds.
        first_ms: Median time of the first call, which prepares the others, milliseconds.
    """

    arm: str
    refused: str | None = None
    held: str = ""
    targets: int = 0
    branches: int = 0
    missing: int = 0
    complete: int = 0
    short: int = 0
    error: float = 0.0
    median_us: float = 0.0
    p99_us: float = 0.0
    first_ms: float = 0.0


class _Kind(NamedTuple):
    """A kind of arm.

    Args:
        name: Its name.
        joint: The joint with the goal.
        make: Returns an arm.
        each: Number of targets after which another arm is made.
    """

    name: str
    joint: str
    make: Callable[[np.random.Generator], Skeleton]
    each: float = math.inf


def measure_branches(
    skeleton: Skeleton | None = None,
    joints: Sequence[str] = (),
    *,
    count: int = 200,
    seed: int = 0,
    watch: Callable[[str, float], object] | None = None,
) -> Iterator[BranchRow]:
    """Yield a row for each joint of a model, or for each named arm without a model.

    Args:
        skeleton: The model.
        joints: The joints; empty for those of ``make_problems``.
        count: Number of targets of each row.
        seed: Seed of the arms, targets and starts.
        watch: Called with the name of the arm and the fraction of its targets that is done.
    """
    if skeleton is None:
        arms = {_RANDOM: Arm(random_screws), **ARMS}
        kinds = [_Kind(name, "tool", partial(_made, arm, name), arm.each) for name, arm in arms.items()]
    else:
        kinds = [_Kind(joint, joint, partial(_given, skeleton)) for joint in joints or default_joints(skeleton)]
    for kind in kinds:
        yield _row_of(kind, count, seed, watch or (lambda _, __: None))


def _given(skeleton: Skeleton, _: np.random.Generator) -> Skeleton:
    """Return the model."""
    return skeleton


def _made(arm: Arm, name: str, rng: np.random.Generator) -> Skeleton:
    """Return an arm of a kind."""
    return arm_skeleton(arm.make(rng), arm.slides, name)


class _Studied:
    """An arm with the solvers that list its branches and search for others.

    Args:
        skeleton: The arm.
        joint: The joint with the goal.
    """

    def __init__(self, skeleton: Skeleton, joint: str) -> None:
        """Build the solvers, and list the branches of a first target.

        Raises:
            UnsupportedError: If there are no lists of branches.
        """
        self.skeleton, self.joint, self.held, moving = skeleton, joint, "", None
        self.ik = IK(skeleton, PoseGoal(joint))
        begun = time.perf_counter()
        with suppress(UnsupportedError):  # not seven joints
            row = held_of(self.ik.problem, None).row
            self.held = skeleton.joint_names[row]
            moving = [skeleton.joint_names[int(other)] for other in self.ik.problem.reduced.owner if other != row]
        problem = self.list_branches(skeleton.rest_pose())[0].ik
        if any(skeleton.joints[int(row)].kind.v_size != 1 for row in problem.reduced.owner):
            raise UnsupportedError("the chain has balls", where=joint, expected="hinges and slides")
        self.first = time.perf_counter() - begun
        self._search = IK(
            skeleton, PoseGoal(joint), LevenbergMarquardt(attempts=1), moving=moving,
            tolerance=(_EXACT * self.ik.reach, _EXACT),
        )  # fmt: skip

    def list_branches(self, pose: Pose) -> tuple[Branches, float]:
        """Return the branches of the target that a pose reaches, and the median time of a few calls, seconds."""
        target, times = pose.transform(self.joint), list[float]()
        value: dict[str | int, float] | None = {self.held: float(pose[self.held])} if self.held else None
        while True:
            begun = time.perf_counter()
            found = self.ik.branches(target, redundancy=value)
            times.append(time.perf_counter() - begun)
            if len(times) == _CALLS:
                return found, sorted(times)[_CALLS // 2]

    def search(self, pose: Pose, limits: Limits, rng: np.random.Generator) -> Array:
        """Return poses (n, nq) that reach the target of a pose, from random starts; many of them are the same."""
        low, high = (
            np.where(np.isfinite(end), end, pi) for end, pi in ((limits.low, -math.pi), (limits.high, math.pi))
        )
        starts = np.tile(pose.q, (STARTS, 1))
        starts[:, limits.at] = rng.uniform(low, high, (STARTS, len(limits.at)))
        targets = np.tile(pose.transform(self.joint), (STARTS, 1, 1))
        found = self._search.solve_many(targets, self.skeleton.follow(starts))
        return found.q[found.reached]

    def error(self, pose: Pose, answers: Array) -> float:
        """Return the largest error of branches (b, nq) by forward kinematics."""
        target, most = pose.transform(self.joint), 0.0
        for q in answers:
            away = np.abs(Pose(self.skeleton, q).transform(self.joint) - target)[:3]
            most = max(most, float(away[:, 3].max()) / self.ik.reach, float(away[:, :3].max()))
        return most


def _row_of(kind: _Kind, count: int, seed: int, watch: Callable[[str, float], object]) -> BranchRow:
    """Return the row of one kind of arm; see ``measure_branches``."""
    rng = np.random.default_rng(seed)
    made, times, sums, error = list[_Studied](), list[float](), np.zeros(4, np.int64), 0.0
    for k in range(count):
        if k >= kind.each * len(made) or not made:
            try:
                made.append(_Studied(kind.make(rng), kind.joint))
            except UnsupportedError as refusal:
                return BranchRow(arm=kind.name, refused=str(refusal))
        arm = made[-1]
        pose = arm.skeleton.random_pose(seed + k)
        found, took = arm.list_branches(pose)
        times.append(took)
        limits, others = found.ik.listing, np.zeros((0, arm.skeleton.nq))
        for q in arm.search(pose, limits, rng):
            if limits.away(np.concatenate([found.q, others]), q).min(initial=math.inf) > _SAME:
                others = np.concatenate([others, q[None]])
        sums += len(found), len(others), found.complete, found.complete and len(others) > 0
        error = max(error, arm.error(pose, found.q))
        watch(kind.name, (k + 1) / count)
    p50, p99 = (1e6 * np.percentile(times, [50, 99])).tolist()
    branches, missing, complete, short = sums.tolist()
    return BranchRow(
        arm=kind.name, held=made[0].held, targets=count, branches=branches, missing=missing, complete=complete,
        short=short, error=error, median_us=p50, p99_us=p99,
        first_ms=1e3 * float(np.median([arm.first for arm in made])),
    )  # fmt: skip
