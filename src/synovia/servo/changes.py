"""Change goals while a body moves, and match the new goals with the old ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from synovia.arguments import check_kind
from synovia.errors import InputError, unknown_name
from synovia.goals import Goal
from synovia.model.shapes.world import World


def changed_goals(
    before: Sequence[Goal],
    goals: Goal | Iterable[Goal] | None,
    weights: Mapping[str, float],
    priorities: Mapping[str, int | None],
    world: World | None,
) -> tuple[Goal, ...]:
    """Return the goals after a change, see ``Servo.change``.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If no goal has a given name.
    """
    found = list(before) if goals is None else [goals] if isinstance(goals, Goal) else list(goals)
    for one in found:
        check_kind("goals", one, Goal, "such as sy.PoseGoal('tool')")
    if not found:
        raise InputError("goals", value=[], expected="one Goal or several", hint="hold() lets the body rest")
    for argument, values in (("weight", weights), ("priority", priorities)):
        for name, value in values.items():
            if argument == "priority" and not found[_place(found, name)].has_priority:
                raise InputError(f"priority of {name!r}", value=value, expected="none: it comes after all others")
            found[_place(found, name)] = found[_place(found, name)].changed(**{argument: value})
    if world is not None:
        check_kind("world", world, World, "sy.load_world(path) reads one")
        if not any(goal.takes_world for goal in found):
            raise InputError("world", value=world, expected="a servo with a ClearanceGoal")
        found = [goal.changed(world=world) if goal.takes_world else goal for goal in found]
    return tuple(found)


def _place(goals: Sequence[Goal], name: Any) -> int:
    """Return the index of a goal.

    Raises:
        InputError: If several goals have this name.
        UnknownNameError: If no goal has it.
    """
    places = [k for k, goal in enumerate(goals) if goal.label == name]
    if not places:
        raise unknown_name("goal", name, [goal.label for goal in goals])
    if len(places) > 1:
        raise InputError("goal", value=name, expected="a name of one goal", hint="name= gives each its own")
    return places[0]


def same_goals(before: Sequence[Goal], after: Sequence[Goal]) -> list[tuple[int, int]]:
    """Return pairs of indices, after a change and before it, of goals with the same name and kind."""
    left = {(goal.label, goal.kind, goal.takes): k for k, goal in reversed(list(enumerate(before)))}
    pairs: list[tuple[int, int]] = []
    for new, goal in enumerate(after):
        old = left.pop((goal.label, goal.kind, goal.takes), None)
        if old is not None:
            pairs.append((new, old))
    return pairs
