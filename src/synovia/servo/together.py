"""Results of ticks of a servo whose body has independent parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from synovia.ik import GoalError, Solution, Status
from synovia.ik.compiled import CompiledProblem
from synovia.model.geometry import Array, Bools
from synovia.servo.probe import Probe
from synovia.servo.tick import ServoDetails

_WORST: Final = ("late", "missed", "lost", "holding", "waiting", "reached")  # states of a shared goal


@dataclass(eq=False)
class Together:
    """The values of a ``Tick`` of a body with independent parts.

    Args:
        problem: The whole problem.
        q: Joint values, (nq,).
        parts: The values of each part.
        goals: Goals of each part, indices.
        places: Which joint values each part has, (nq,) each.
    """

    problem: CompiledProblem
    q: Array
    parts: Sequence[ServoDetails]
    goals: Sequence[Sequence[int]]
    places: Sequence[Bools]

    @property
    def velocity(self) -> Array:
        """See ``Tick.velocity``."""
        return sum((part.velocity for part in self.parts[1:]), self.parts[0].velocity)

    @property
    def acceleration(self) -> Array:
        """See ``Tick.acceleration``."""
        return sum((part.acceleration for part in self.parts[1:]), self.parts[0].acceleration)

    @property
    def time(self) -> float:
        """See ``Tick.time``."""
        return self.parts[0].time

    @cached_property
    def errors(self) -> tuple[GoalError, ...]:
        """See ``Tick.errors``."""
        found: dict[int, GoalError] = {}
        for part, goals in zip(self.parts, self.goals, strict=True):
            found.update(zip(goals, part.errors, strict=True))
        return tuple(found[g] for g in range(len(self.problem.goals)))

    @property
    def states(self) -> dict[str, str]:
        """See ``Tick.states``; a goal that several parts share has the state of the worst one."""
        found: dict[str, str] = {}
        for part in self.parts:
            for key, state in part.states.items():
                found[key] = min(state, found.get(key, state), key=_WORST.index)
        labels = dict.fromkeys(goal.label for goal in self.problem.goals)
        return {key: found[key] for key in (*labels, *(key for key in found if key not in labels))}

    @cached_property
    def status(self) -> Status:
        """See ``Tick.status``: LATE if any part is late, else the first part that neither holds nor has reached."""
        found = [status for part in self.parts if (status := part.status) is not Status.HOLDING]
        if Status.LATE in found:
            return Status.LATE
        return next((one for one in found if one is not Status.REACHED), found[0] if found else Status.HOLDING)

    @property
    def reached(self) -> bool:
        """See ``Tick.reached``."""
        return all(part.reached for part in self.parts)

    @property
    def limited(self) -> dict[str, str]:
        """See ``Tick.limited``."""
        return {joint: limit for part in self.parts for joint, limit in part.limited.items()}

    @property
    def speeds(self) -> dict[str, float]:
        """See ``Tick.speeds``."""
        return {joint: share for part in self.parts for joint, share in part.speeds.items()}

    @property
    def stamps(self) -> dict[str, str]:
        """See ``Tick.stamps``."""
        return {goal: stamp for part in self.parts for goal, stamp in part.stamps.items()}

    @property
    def solution(self) -> Solution:
        """See ``Tick.solution``."""
        table, q = self.problem.writer.own.copy(), self.q.copy()
        for part, goals, places in zip(self.parts, self.goals, self.places, strict=True):
            table[0, goals] = part.table[0]
            q[places] = part.body[places]
        return Probe(self.problem).solution(q, table, self.status)

    def explain(self) -> tuple[list[str], list[str]]:
        """Return the sentences of ``Tick.explain`` before and after those about limits."""
        first: dict[str, Any] = {}
        further: dict[str, Any] = {}
        named = [part for part in self.parts if part.status is not Status.REACHED] or self.parts
        for part in sorted(named, key=lambda part: part.status is not self.status):
            lines, more = part.explain()
            first |= dict.fromkeys(lines)
            further |= dict.fromkeys(more)
        return list(first), list(further)
