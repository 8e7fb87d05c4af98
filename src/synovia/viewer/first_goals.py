"""The goals that a page begins with: those that are given, or hands and feet, or the ends of limbs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from synovia.goals import Goal
from synovia.model import Kind, Skeleton
from synovia.model.tree import ancestors
from synovia.viewer.begin import editor_from
from synovia.viewer.session import Session

_WORDS: Final = {"hand": ("hand", "wrist"), "foot": ("foot", "ankle_roll", "ankle")}


def add_goals(session: Session, goals: Iterable[Goal]) -> None:
    """Add goals as they come from Python or a file; those without a target stay where the body is.

    Raises:
        UnknownNameError: If a joint does not exist, or a goal is of a kind that no page can show.
    """
    for goal in goals:
        editor = session.add(goal.kind.replace("_", " "), goal.joint, label=goal.name)
        editor_from(editor, goal, session.given, session.to_current)
    session.touch(structure=True)


def ends_of(skeleton: Skeleton, word: str) -> list[int]:
    """Return the rows of the left and the right hand or foot; an empty list unless there are two.

    The file's own roles come first, then names, then the roles that names tell.

    Robots have wrists and ankles: ``left_ankle_roll_joint`` carries the foot.

    Args:
        skeleton: The skeleton.
        word: ``hand`` or ``foot``.
    """
    roles = [f"{side}_{word}" for side in ("left", "right")]
    own = {joint.role: row for row, joint in enumerate(skeleton.joints)}
    if all(role in own for role in roles):
        return [own[role] for role in roles]
    for said in _WORDS[word]:
        named = [said in joint.name.lower() for joint in skeleton.joints]
        rows = [row for row, is_named in enumerate(named) if is_named]
        top = [row for row in rows if not any(named[above] for above in ancestors(skeleton.parents, row)[1:])]
        if len(top) == 2:
            return top
    return [skeleton.index(role) for role in roles] if all(role in skeleton.roles for role in roles) else []


def first_goals(session: Session) -> None:
    """Add goals to begin with: hands that are free until they are dragged and feet that stay, or the ends of limbs."""
    skeleton = session.given
    feet = ends_of(skeleton, "foot")
    hands = ends_of(skeleton, "hand")
    for row in hands or _limbs(skeleton, feet):
        session.add("position", row)
    if feet:
        for editor in session.editors:
            editor.enabled, editor.idle = False, True
        for row in feet:
            session.add("pose", row)


def _limbs(skeleton: Skeleton, feet: Sequence[int]) -> list[int]:
    """Return up to two tips of limbs that have little in common, none of them a leg."""
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
