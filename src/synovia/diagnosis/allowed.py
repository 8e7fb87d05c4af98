"""Sentences about misses of a problem in which only some joints may move (``moving=``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.diagnosis.trials import Variation, solve_variation
from synovia.ik.interrupts import Watch
from synovia.ik.solution import Solution
from synovia.problem.structure import with_followers
from synovia.text import first_few

_ATTEMPTS: Final = 5
_MOVES: Final = 1e-3  # smallest change of the value of a joint that counts as moved


def rows_at_limits(solution: Solution) -> tuple[int, ...]:
    """Return the rows, in the solved skeleton, of joints at a limit that may move."""
    ik = solution.ik
    rows = ik.rows_at_limits(solution.pose)
    if ik.allowed is None:
        return rows
    free = with_followers(ik.skeleton, ik.moving)
    return tuple(row for row in rows if row in free)


def allowed_sentences(solution: Solution) -> list[str]:
    """Return sentences about the joints that may move, and whether other joints would help; empty if all may move.

    The goals are solved again with all joints: from the pose of the miss, and from random poses.
    """
    ik = solution.ik
    if ik.allowed is None or solution.reached or solution.interrupted:
        return []
    names = ik.skeleton.joint_names
    line = f"Only {first_few([repr(names[row]) for row in sorted(ik.moving)]) or 'joints that move no goal'} may move."
    every = Variation(range(len(ik.goals)), all_move=True)
    free = solve_variation(solution, every, Watch(), attempts=_ATTEMPTS)
    if not free.reached:
        return [f"{line} With all joints, the goals are missed too."]
    changes = np.abs(free.pose.q - solution.pose.q)
    others = {
        row: float(changes[ik.skeleton.q_slice(row)].max(initial=0.0)) for row in free.ik.moving if row not in ik.moving
    }
    moved = sorted((row for row, change in others.items() if change > _MOVES), key=lambda row: -others[row])
    which = f"; {first_few([repr(names[row]) for row in moved])} would move most" if moved else ""
    return [f"{line} With all joints, the goals are met{which}."]
