"""The first goals of a page: the given goals, or default goals on hands and feet or on the tips of limbs."""

from __future__ import annotations

from collections.abc import Iterable

from synovia.bodies.standing import long_limbs, support
from synovia.errors import InputError
from synovia.goals import Goal
from synovia.model import Skeleton
from synovia.model.anatomy.up import find_up
from synovia.viewer.editing.goals import Goals

_BALANCE, _DRAGGED = 1, 2  # priorities; the feet have 0


def add_goals(goals: Goals, given: Iterable[Goal]) -> None:
    """Add goals. A goal without a target gets its target from the current pose.

    Raises:
        UnknownNameError: If a joint does not exist, or the page does not support a kind of goal.
        InputError: If a value is not a goal.
    """
    for number, goal in enumerate(given):
        if not isinstance(goal, Goal):
            raise InputError(f"goals[{number}]", value=type(goal), expected="a Goal")
        goals.adopt(goal)


def pair_of(skeleton: Skeleton, part: str) -> list[int]:
    """Return the rows of the left and right ``hand`` or ``foot``; an empty list if one side has no such role."""
    roles = (f"left_{part}", f"right_{part}")
    return [skeleton.role_rows[role] for role in roles] if all(role in skeleton.role_rows for role in roles) else []


def stands(skeleton: Skeleton) -> bool:
    """Return whether a body has a left and a right foot to stand on."""
    return len(pair_of(skeleton, "foot")) == 2


def first_goals(goals: Goals) -> None:
    """Add default goals.

    A body with two feet gets goals that keep it standing on them. Its hands and its head follow once the user drags
    them. If the solver supports priorities, the feet come first, then balance, then dragged parts, then the rest pose.
    Other bodies get position goals on the tips of two limbs.
    """
    skeleton = goals.given
    feet, hands = pair_of(skeleton, "foot"), pair_of(skeleton, "hand")
    dragged = [goals.add("position", row) for row in hands or long_limbs(skeleton, feet)]
    if not feet:
        return
    levels = goals.levels
    if levels and skeleton.face is not None:
        dragged.append(goals.add("aim", skeleton.role_rows["head"], label="gaze"))
    for editor in dragged:
        editor.enabled, editor.idle, editor.priority = False, True, _DRAGGED if levels else 0
    for row in feet:
        goals.add("pose", row)
    if levels:
        if any(joint.mass > 0.0 for joint in skeleton.joints):
            balance = goals.add("center of mass", None, label="balance")
            up = find_up(skeleton).vector
            balance.values["polygon"], balance.priority = support(skeleton, feet, up), _BALANCE
        goals.add("rest", None, label="posture")
