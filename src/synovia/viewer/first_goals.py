"""The first goals of a page: the given ones, or default goals on hands and feet or on the tips of limbs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from synovia.goals import Goal
from synovia.model import Kind, Skeleton
from synovia.model.tree import ancestors
from synovia.viewer.editor_values import editor_from
from synovia.viewer.session import Session


def add_goals(session: Session, goals: Iterable[Goal]) -> None:
    """Add goals. A goal without a target gets its target from the present pose.

    Raises:
        UnknownNameError: If a joint does not exist, or the page does not support a kind of goal.
    """
    for goal in goals:
        editor = session.add(goal.kind.replace("_", " "), goal.joint, label=goal.name)
        editor_from(editor, goal, session.given, session.to_current)
    session.touch(structure=True)


def pair_of(skeleton: Skeleton, part: str) -> list[int]:
    """Return the rows of the left and right ``hand`` or ``foot``, an empty list if one of them has no role."""
    roles = (f"left_{part}", f"right_{part}")
    return [skeleton.index(role) for role in roles] if all(role in skeleton.roles for role in roles) else []


def first_goals(session: Session) -> None:
    """Add default goals: feet that stay and hands that are free until dragged, or the tips of two limbs."""
    skeleton = session.given
    feet, hands = pair_of(skeleton, "foot"), pair_of(skeleton, "hand")
    for row in hands or _limbs(skeleton, feet):
        session.add("position", row)
    if feet:
        for editor in session.editors:
            editor.enabled, editor.idle = False, True
        for row in feet:
            session.add("pose", row)


def _limbs(skeleton: Skeleton, feet: Sequence[int]) -> list[int]:
    """Return the tips of up to two long limbs that share at most half of their joints and contain no foot."""
    chains: list[list[int]] = []
    for row in range(len(skeleton)):
        if skeleton.children[row]:
            continue
        chain = ancestors(skeleton.parents, row)
        moves = any(skeleton.joints[at].kind not in (Kind.FIXED, Kind.FREE) for at in chain)
        if moves and not set(chain) & set(feet):
            chains.append(chain)
    chosen: list[list[int]] = []
    for chain in sorted(chains, key=len, reverse=True):
        if all(len(set(chain) & set(other)) <= 0.5 * len(chain) for other in chosen):
            chosen.append(chain)
    return [chain[0] for chain in chosen[:2]]
