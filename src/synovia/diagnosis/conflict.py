"""Find a smallest set of goals that cannot be met together, by leaving out one goal after the other.

A goal stays in the set if a pose meets all others without it. So each goal of the set is needed, and a pose shows it.
That the whole set cannot be met is proved if proofs know its goals, see ``ik.proofs``; else no attempt found a pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from synovia.diagnosis.trials import Variation, solve_variation
from synovia.goals import ClearanceGoal
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.decide import decide
from synovia.ik.proofs.proof import Proof
from synovia.ik.proofs.together import SharedProof, aims_of, exclude_together
from synovia.ik.solution import Conflict, Solution
from synovia.model import Pose

_ATTEMPTS: Final = 40  # attempts to meet the goals without one of them


def find_conflict(solution: Solution, watch: Watch) -> Conflict | None:
    """Return a smallest set of goals that cannot be met together; None if all goals can be met after all.

    Args:
        solution: The miss.
        watch: The deadline.
    """
    ik = solution.ik
    places = [i for i, goal in enumerate(ik.goals) if goal.rows or isinstance(goal, ClearanceGoal)]
    if _met(solution, places, watch) is not None:
        return None
    poses: dict[str, Pose] = {}
    for i in sorted(places, key=lambda i: i in solution.missed):  # first those that are met
        rest = [k for k in places if k != i]
        pose = _met(solution, rest, watch) if rest else None
        if pose is not None:
            poses[ik.goals[i].label] = pose
        elif rest:
            places = rest
    return Conflict(tuple(ik.goals[i].label for i in places), poses, _proof(solution, places, watch))


def _met(solution: Solution, places: Sequence[int], watch: Watch) -> Pose | None:
    """Return a pose that meets some of the goals; None if no attempt found one."""
    found = solve_variation(solution, Variation(places), watch, attempts=_ATTEMPTS)
    return found.pose if found.reached else None


def _proof(solution: Solution, places: Sequence[int], watch: Watch) -> Proof | SharedProof | None:
    """Return a proof that some goals cannot be met together; None without one."""
    if len(places) == 1:
        alone = solve_variation(solution, Variation(places), watch, attempts=_ATTEMPTS)
        return solution.known_proof or decide(alone, watch).proof
    return exclude_together(aims_of(solution, places), watch)
