"""Problems for a user's own model: reachable targets, and a smooth path of targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.goals import Goal, PoseGoal, PositionGoal
from synovia.ik.targets import targets_from
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.hands.find import hands_of
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.pose import inside_limits
from synovia.model.tree import ancestors
from synovia.tracking.trajectory import all_variables

_ROLES: Final = ("left_hand", "right_hand", "left_foot", "right_foot", "head")
_MOST_GOALS: Final = 5
_JAWS: Final = 3  # largest number of fingers of a gripper
_STOPS: Final = 5  # number of random poses along the path
# factor of the distance of random poses from rest, because people rarely move up to their limits
_AMPLITUDE: Final = 0.5


@dataclass(frozen=True, eq=False)
class Problems:
    """Problems for one set of goals.

    Args:
        skeleton: The model.
        goals: The goals, without targets.
        targets: World transforms of each goal's joint at random poses within the limits, (B, 4, 4) by joint.
        path: World transforms of each goal's joint along a smooth motion, (T, 4, 4) by joint.

    Example:
        >>> import synovia as sy
        >>> problems = sy.comparison.make_problems(sy.bundled("arm7"), count=5, frames=5)
        >>> problems.skeleton.name, len(problems.goals)
        ('arm7', 1)
    """

    skeleton: Skeleton
    goals: tuple[Goal, ...]
    targets: dict[str, Array]
    path: dict[str, Array]

    def __repr__(self) -> str:
        """Return the skeleton, the joints with a goal, and the numbers of problems and frames."""
        joints = ", ".join(self.targets)
        counts = [len(next(iter(table.values()), ())) for table in (self.targets, self.path)]
        return f"Problems({self.skeleton.name!r}, {joints}; {counts[0]} problems, {counts[1]} frames)"

    def of_kind(self, transforms: dict[str, Array]) -> dict[str, Array]:
        """Convert transforms to targets of the goals: positions (B, 3), or the transforms themselves."""
        return {
            goal.label: transforms[goal.label] if isinstance(goal, PoseGoal) else transforms[goal.label][:, :3, 3]
            for goal in self.goals
        }


def make_problems(
    skeleton: Skeleton,
    joints: Sequence[str] | None = None,
    *,
    pose: bool = False,
    count: int = 200,
    frames: int = 120,
    seed: int = 0,
) -> Problems:
    """Return solvable problems: the targets are the transforms of joints in random poses within the limits.

    Args:
        skeleton: The model.
        joints: Joints that get a goal each; None for hands, feet and head of a body, else the tips, or the tool for a
            gripper on an arm.
        pose: Whether the goals also have orientations.
        count: Number of separate problems.
        frames: Number of frames of the path through five random poses, each at half its distance from rest.
        seed: Seed of the poses.

    Raises:
        InputError: If a number is out of range, or no joint of the model moves.
        UnknownNameError: If a joint does not exist.

    Example:
        >>> import synovia as sy
        >>> body, hands = sy.bundled("humanoid"), ["left_hand", "right_hand"]
        >>> problems = sy.comparison.make_problems(body, hands, count=10, frames=5)
        >>> len(problems.goals)
        2
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    for name, value, least in (("count", count, 1), ("frames", frames, 3), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{name} is out of range", value=value, expected=f"a whole number from {least}")
    if joints is not None and (isinstance(joints, str) or not isinstance(joints, Sequence)):
        raise InputError("joints", value=joints, expected="names of joints, such as ['left_hand']")
    names = tuple(joints) if joints else default_joints(skeleton)
    for name in names:
        skeleton.locate(name)
    kind = PoseGoal if pose else PositionGoal
    q = np.array([skeleton.random_pose(seed + k).q for k in range(count)])
    path = _smooth(skeleton, np.array([skeleton.random_pose(seed + count + k).q for k in range(_STOPS)]), frames)
    return Problems(
        skeleton,
        tuple(kind(name) for name in names),
        _transforms(skeleton, q, names),
        _transforms(skeleton, path, names),
    )


def default_joints(skeleton: Skeleton, most: int = _MOST_GOALS) -> tuple[str, ...]:
    """Return the joints that get a goal: hands, feet and head of a body, else the tips furthest from the root.

    A gripper on an arm gets one goal, at its tool.

    Args:
        skeleton: The model.
        most: Largest number of joints; later ones in this order are left out.
    """
    parts = [skeleton.role_rows[role] for role in _ROLES if role in skeleton.role_rows]
    if len(parts) >= 3:
        return tuple(skeleton.frame_names[row] for row in parts[:most])
    moving = [row for row, joint in enumerate(skeleton.joints) if joint.kind is not Kind.FIXED]
    if not moving:
        raise InputError("the model has no joint that moves", where=skeleton.name)
    far = np.zeros(len(skeleton))
    for row, parent in enumerate(skeleton.parents):
        far[row] = far[parent] + skeleton.lengths[row] if parent >= 0 else 0.0
    tools = _tools(skeleton)
    ends = dict.fromkeys(tools.get(row, row) for row in skeleton.tip_rows)
    tips = sorted(ends, key=lambda row: -far[row])
    chosen = [row for row in tips if far[row] > 0.5 * far.max()][:most]
    return tuple(skeleton.frame_names[row] for row in sorted(chosen))


def _tools(skeleton: Skeleton) -> dict[int, int]:
    """Return the tool row for each joint below a gripper's palm: a frame fixed to the palm, else the palm."""
    out: dict[int, int] = {}
    kinds = [joint.kind for joint in skeleton.joints]
    for hand in hands_of(skeleton):
        palm = skeleton.locate(hand.palm)[0]
        line = ancestors(skeleton.parents, palm)
        if len(hand.fingers) > _JAWS or all(kinds[row] in (Kind.FIXED, Kind.FREE) for row in line):
            continue
        tool, reach, ahead = palm, 0.0, (skeleton.rest_pose().transform(hand.palm) @ hand.frame)[:3, 1]
        places, below = skeleton.rest_pose().positions, list[int]()
        for row in range(palm + 1, len(skeleton)):
            above = ancestors(skeleton.parents, row)
            if palm not in above:
                continue
            below.append(row)
            fixed = all(kinds[one] is Kind.FIXED for one in above[: above.index(palm)])
            if fixed and (along := float((places[row] - places[palm]) @ ahead)) > reach:
                tool, reach = row, along
        out |= dict.fromkeys(below, tool)
    return out


def _transforms(skeleton: Skeleton, q: Array, names: Sequence[str]) -> dict[str, Array]:
    """Return the world transforms of joints at joint values, (T, 4, 4) by joint."""
    return targets_from(Motion(skeleton, q, 1.0), names, rotations=True)


def _smooth(skeleton: Skeleton, stops: Array, frames: int) -> Array:
    """Return joint values (T, nq) of a smooth motion from one pose to the next, within the limits."""
    rest = skeleton.rest_q
    u = np.linspace(0.0, len(stops) - 1.0, frames)
    first = np.minimum(u.astype(np.int64), len(stops) - 2)
    s = u - first
    s = s * s * (3.0 - 2.0 * s)
    ends = rest + _AMPLITUDE * (_nearest_sign(skeleton, stops, rest) - rest)
    q = ends[first] + s[:, None] * (ends[first + 1] - ends[first])
    for at in all_variables(skeleton).turn_at.tolist():
        q[:, at : at + 4] /= np.linalg.norm(q[:, at : at + 4], axis=1, keepdims=True)
    return skeleton.follow(inside_limits(skeleton, np.ascontiguousarray(q)))


def _nearest_sign(skeleton: Skeleton, q: Array, rest: Array) -> Array:
    """Flip quaternions in joint values to the sign that is nearest to the rest pose."""
    q = q.copy()
    for at in all_variables(skeleton).turn_at.tolist():
        other = (q[:, at : at + 4] @ rest[at : at + 4]) < 0.0
        q[other, at : at + 4] *= -1.0
    return q
