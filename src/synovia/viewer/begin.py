"""How a wish begins: asking for what is, or for what a goal from Python or a file asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from synovia.draw.camera import direction
from synovia.draw.scene import up_of
from synovia.goals import Goal
from synovia.goals.base import POSITION, ROTATION
from synovia.skeleton import Kind, Pose, Skeleton
from synovia.viewer.wish import Wish, kind_of

if TYPE_CHECKING:
    from synovia.viewer.session import Session

_BEFORE = 0.3  # of the body's size: how far before a joint the point is that it looks at


def begin_values(wish: Wish, skeleton: Skeleton) -> None:
    """Give a wish the directions, numbers and second joint that its kind begins with."""
    kind = kind_of(wish.kind)
    values: dict[str, Any] = {}
    if "axis" in kind.vectors:
        values["axis"] = (0.0, 0.0, 1.0)
    if "normal" in kind.vectors:
        values["normal"] = tuple(direction(up_of(skeleton), "y").tolist())
    if "minimum" in kind.numbers:
        values["minimum"] = 0.0
    if "maximum" in kind.numbers:
        values["maximum"] = 0.1 * (skeleton.size or 1.0)
    if kind.other and wish.row is not None:
        values["other"] = max(skeleton.parents[wish.row], 0)
    wish.values = values


def place_at_current(wish: Wish, pose: Pose, added: int, reach: float) -> None:
    """Put a wish's target where its joint is now, or where it already looks or bends.

    Args:
        wish: The wish.
        pose: The body.
        added: Rows that the pose has before those of the skeleton that was given.
        reach: Size of the body, length units.
    """
    if wish.row is None:
        from synovia.viewer.engine import balance_of

        wish.place = balance_of(pose)
        wish.settle()
        return
    frame = pose.frames[wish.row + added]
    turn = frame[:9].reshape(3, 3)
    wish.place = frame[9:] + turn @ wish.offset[:3, 3]
    wish.turn = turn @ wish.offset[:3, :3]
    if wish.kind == "aim":
        axis = np.asarray(wish.values["axis"], float)
        wish.place = wish.place + _BEFORE * reach * (turn @ axis) / (np.linalg.norm(axis) or 1.0)
    elif wish.kind == "pole":
        row = wish.row + added
        ends = [
            pose.positions[row] for row in (pose.skeleton.parents[row], *pose.skeleton.children[row][:1]) if row >= 0
        ]
        bend = frame[9:] - np.mean(ends, axis=0) if ends else turn[:, 2]
        length = float(np.linalg.norm(bend))
        wish.place = wish.place + _BEFORE * reach * (bend / length if length > 1e-3 * reach else turn[:, 2])
    wish.settle()


def wish_from(wish: Wish, goal: Goal, index: Callable[[Any], int]) -> None:
    """Let a wish ask for what a goal asks for.

    Args:
        wish: A wish of the goal's kind, on its joint.
        goal: The goal.
        index: From what a goal calls a joint to its row.
    """
    kind = kind_of(wish.kind)
    wish.weight, wish.priority = goal.weight, goal.priority
    if wish.kind in ("position", "rotation", "pose"):
        before = wish.offset
        wish.offset = np.array(goal.offset)
        wish.place = wish.place + wish.turn @ before.T[:3, :3] @ wish.offset[:3, 3]
        wish.turn = wish.turn @ wish.offset[:3, :3]
    for name in kind.numbers:
        value = getattr(goal, name, None)
        wish.values[name] = value if value is not None and math.isfinite(value) else None
    if "axis" in kind.vectors:
        wish.values["axis"] = tuple(goal.offset[:3, 2].tolist())
    if "normal" in kind.vectors and goal.target is not None and goal.given & ROTATION:
        wish.values["normal"] = tuple(goal.target[:3, 2].tolist())
    other = getattr(goal, "other", None)
    if other is not None:
        wish.values["other"] = index(other)
    if goal.target is not None:
        if goal.given & POSITION:
            wish.place = np.array(goal.target[:3, 3])
        if goal.given & ROTATION and kind.turns:
            wish.turn = np.array(goal.target[:3, :3])
    wish.settle()


def add_goals(session: Session, goals: Iterable[Goal]) -> None:
    """Add goals as they come from Python or a file; those without a target stay where the body is.

    Raises:
        UnknownNameError: If a joint does not exist.
    """
    for goal in goals:
        wish = session.add(goal.kind.replace("_", " "), goal.joint, label=goal.name)
        wish_from(wish, goal, session.given.index)
    session.touch(structure=True)


def ends_of(skeleton: Skeleton, word: str) -> list[int]:
    """Return the left and the right hand or foot, by role or by name; none where there are not two.

    Args:
        skeleton: The skeleton.
        word: ``hand`` or ``foot``.
    """
    roles = [f"{side}_{word}" for side in ("left", "right")]
    if all(role in skeleton.roles for role in roles):
        return [skeleton.index(skeleton.roles[role]) for role in roles]
    named = [word in joint.name.lower() for joint in skeleton.joints]
    top = [row for row in range(len(skeleton)) if named[row] and not _below(skeleton, row, named)]
    return top if len(top) == 2 else []


def _below(skeleton: Skeleton, row: int, marked: list[bool]) -> bool:
    """Return whether a joint above is marked."""
    while (row := skeleton.parents[row]) >= 0:
        if marked[row]:
            return True
    return False


def first_goals(session: Session) -> None:
    """Add goals to begin with: hands to drag and feet that stay, or the ends of the longest limbs."""
    skeleton = session.given
    hands = ends_of(skeleton, "hand")
    for row in hands or _limbs(skeleton):
        session.add("position", row)
    if hands:
        for row in ends_of(skeleton, "foot"):
            session.add("pose", row)


def _limbs(skeleton: Skeleton) -> list[int]:
    """Return up to two tips of limbs that have little in common."""
    chains: list[list[int]] = []
    for row in range(len(skeleton)):
        if skeleton.children[row]:
            continue
        chain: list[int] = []
        at = row
        while at >= 0:
            chain.append(at)
            at = skeleton.parents[at]
        if any(skeleton.joints[at].kind not in (Kind.FIXED, Kind.FREE) for at in chain):
            chains.append(chain)
    chosen: list[list[int]] = []
    for chain in sorted(chains, key=len, reverse=True):
        if all(len(set(chain) & set(other)) <= 0.5 * len(chain) for other in chosen):
            chosen.append(chain)
    return [chain[0] for chain in chosen[:2]]
