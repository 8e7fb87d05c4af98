"""The conditions that goals put on points and directions of a body, and the parts of a proof that they make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.goals import AimGoal, DirectionGoal
from synovia.goals.bounds import BoundedGoal
from synovia.ik.proofs.chain import Chain, chain_of
from synovia.ik.proofs.search import Part, Parts
from synovia.kernels.layout import GOAL_ROW, PARENT, PARTS, POSITION, ROTATION, TRANSLATION_COLUMN
from synovia.model.geometry import Array, align_z

LAST: Final = 1 << 20  # key of the joints at the end of a chain that model the freedom of a goal
_ROUNDING: Final = 1e-12  # radians: margin for rounding errors of angles
_TOUCHING: Final = 2e-6  # length scales; an axis aims at any point nearer than half of this, see kernels.goals.aim


class Condition(NamedTuple):
    """A condition of a goal: a part, and the joints that move it.

    Args:
        goal: Index of the goal.
        what: What must be at its target: "position", "bounds", "rotation", "direction", or "aim".
        chain: The joints.
        part: The part; its distance is the tolerance.
        miss: Distance of the part from its target in the best pose.
        slack: Part of the distance that another tolerance allows.
        other: Index of the goal of the other tolerance; -1 without one.
        exact: Whether the distance also depends on the goal's own tolerance; the condition then does not hold for
            larger misses.
    """

    goal: int
    what: str
    chain: Chain
    part: Part
    miss: float
    slack: float = 0.0
    other: int = -1
    exact: bool = False

    def follows(self, first: Condition) -> bool:
        """Return whether this follows from other goals only while ``first`` is missed by no more than its tolerance."""
        return self.exact or (self.other >= 0 and first.what != "position" and first.goal in (self.goal, self.other))


def root_of(solution: Any) -> tuple[Array | None, float]:
    """Return the target (3,) of a free root, and its tolerance; (None, 0) without one."""
    ik = solution.ik
    table, rows = ik.reduced.goals.table, ik.reduced.rows
    for g in range(len(table)):
        row = int(table[g, GOAL_ROW])
        at_origin = table[g, PARTS] & POSITION and not ik.reduced.goals.offsets[g, 9:].any()
        if at_origin and row >= 0 and rows[row, TRANSLATION_COLUMN] >= 0 and rows[row, PARENT] < 0:
            return solution.targets[g, :3, 3], ik.goals[g].own_tolerance or ik.tolerance[0]
    return None, 0.0


def conditions_of(solution: Any, g: int) -> list[Condition]:
    """Return the conditions of a goal that proofs support; missed ones come first.

    Args:
        solution: The solution.
        g: Index of the goal.
    """
    root, slack = root_of(solution)
    ik, q = solution.ik, np.asarray(solution.q)
    if ik.reduced.goals.table[g, GOAL_ROW] < 0:
        return []
    chain = chain_of(ik.reduced, ik.skeleton.joint_names, q, g, root=root, along=False)
    if chain is None:
        return []
    found = list(_conditions(solution, g, chain, slack if chain.keys and chain.names[0] in _free(ik) else 0.0))
    return sorted(found, key=lambda one: one.miss <= one.part.near)


def _free(ik: Any) -> set[str]:
    """Return the names of free roots that move."""
    rows = np.flatnonzero(ik.reduced.rows[:, TRANSLATION_COLUMN] >= 0)
    return {ik.skeleton.joint_names[int(ik.reduced.joints[row])] for row in rows}


def _conditions(solution: Any, g: int, chain: Chain, slack: float) -> Iterator[Condition]:
    """Yield the conditions of a goal; the root of its chain may be off by ``slack``."""
    ik, goal = solution.ik, solution.ik.goals[g]
    target, frame, parts = solution.targets[g], solution.frames[g], int(ik.reduced.goals.table[g, PARTS])
    near, angle = (goal.own_tolerance or ik.tolerance[0]) + slack, ik.tolerance[1]
    far = float(np.abs(chain.fixed[:, :, 3]).sum() + np.linalg.norm(target[:3, 3]))
    far += float(np.maximum(abs(chain.low), abs(chain.high))[chain.slides].sum())  # more than any distance of targets

    def direction(what: str, axis: Array, wanted: Array, most: float) -> Condition:
        fixed = chain.fixed.copy()
        fixed[:, :, 3] = 0.0
        fixed[-1, :, 3] = chain.fixed[-1, :, :3] @ axis
        chord = 2.0 * math.sin(0.5 * min(most + _ROUNDING, math.pi))
        away = float(np.linalg.norm(frame[:3, :3] @ axis - wanted))
        return Condition(g, what, chain, Part(fixed, np.where(chain.slides, -1.0, 0.0), wanted, chord), away)

    def point(what: str, links: Chain, wanted: Array, most: float, miss: float, slack: float = 0.0) -> Condition:
        return Condition(g, what, links, Part(links.fixed, links.kinds, wanted, most), miss, slack, g if slack else -1)

    if parts & POSITION:
        yield point("position", chain, target[:3, 3], near, solution.errors[g].position)
    if parts & ROTATION:
        for axis in _axes(frame[:3, :3].T @ target[:3, :3]).T:
            yield direction("rotation", axis, target[:3, :3] @ axis, angle)
    if parts & POSITION and parts & ROTATION and (at := chain.wrist()) is not None:
        turn, tip = chain.fixed[-1, :, :3], chain.fixed[-1, :, 3]
        local = turn.T @ (at - tip)
        away, links = angle * float(np.linalg.norm(local)), chain.to(at)
        miss = float(np.linalg.norm((frame - target)[:3, :3] @ local + (frame - target)[:3, 3]))
        yield point("position", links, target[:3, :3] @ local + target[:3, 3], near + away, miss, away)
    if isinstance(goal, DirectionGoal):
        wanted = target[:3, 3] / np.linalg.norm(target[:3, 3])
        yield direction("direction", np.array([0.0, 0.0, 1.0]), wanted, angle + (goal.cone or 0.0))
    if isinstance(goal, AimGoal) and angle + (goal.cone or 0.0) < 0.5 * math.pi:
        away = target[:3, 3] - frame[:3, 3]
        along = max(float(frame[:3, 2] @ away), 0.0)
        most = far * math.sin(angle + (goal.cone or 0.0) + _ROUNDING) + slack + _TOUCHING * ik.reach
        miss = float(np.linalg.norm(away - along * frame[:3, 2]))
        yield point("aim", _with_slides(chain, g, np.eye(3)[2:], [0.0], [far]), target[:3, 3], most, miss)
    if isinstance(goal, BoundedGoal) and goal.bounded_parts:
        yield from _within(solution, g, chain, (near, far), point, direction)


def _within(
    solution: Any, g: int, chain: Chain, reach: tuple[float, float], point: Any, direction: Any
) -> Iterator[Condition]:
    """Yield the conditions of a goal with bounds: slides stand for the free displacement, a cone for the rotation.

    ``reach`` has the tolerance of the place, and a distance larger than that of any target.
    """
    near, far = reach
    goal, target = solution.ik.goals[g], solution.targets[g]
    if goal.bounded_parts & POSITION:
        low, high = np.clip(goal.ranges[:3].T, -far, far)
        tool, free, wanted = goal.bounds_frame == "tool", np.flatnonzero(low < high), target[:3, 3]
        axes = np.eye(3) if tool else target[:3, :3].T
        fixed = np.where(low < high, 0.0, low)  # displacement of axes with one value
        if tool:
            fixed_chain = replace(chain, fixed=chain.fixed.copy())
            fixed_chain.fixed[-1, :, 3] -= chain.fixed[-1, :, :3] @ fixed
            links = _with_slides(fixed_chain, g, -axes[free], low[free].tolist(), high[free].tolist())
        else:
            wanted = wanted + target[:3, :3] @ fixed
            links = _with_slides(chain, g, -axes[free], low[free].tolist(), high[free].tolist(), first=True)
        yield point("bounds", links, wanted, near, solution.errors[g].position)
    if goal.bounded_parts & ROTATION:
        k = next(int(term.numbers[-1]) for term in goal.terms if term.angles)  # axis of the twist
        most = float(np.linalg.norm(np.delete(np.abs(goal.ranges[-3:]).max(axis=1), k)))
        if most < math.pi:
            axis = np.eye(3)[k]
            yield direction("direction", axis, target[:3, :3] @ axis, most + solution.ik.tolerance[1])


def _axes(missing: Array) -> Array:
    """Return axes as columns (3, 3); the first two are normal to the axis of a rotation."""
    axis = np.array([missing[2, 1] - missing[1, 2], missing[0, 2] - missing[2, 0], missing[1, 0] - missing[0, 1]])
    size = float(np.linalg.norm(axis))
    if size < 1e-9:  # no rotation, or half a turn
        axis, size = np.linalg.svd(missing + np.eye(3))[0][:, 0], 1.0
    return align_z(axis / size)


def _with_slides(
    chain: Chain,
    g: int,
    axes: Array,
    low: Sequence[float] | Array,
    high: Sequence[float] | Array,
    *,
    first: bool = False,
) -> Chain:
    """Return a chain with slides along axes (k, 3), at its tip or, with ``first``, before its first joint."""
    turns = [np.eye(3), *(align_z(axis) for axis in axes), np.eye(3)]
    steps = [np.column_stack([a.T @ b, np.zeros(3)]) for a, b in pairwise(turns)]
    k = len(axes)
    keys = tuple((-1 if first else LAST, 3 * g + i) for i in range(k))
    if first:
        head = np.column_stack([steps[-1][:, :3] @ chain.fixed[0][:, :3], steps[-1][:, :3] @ chain.fixed[0][:, 3]])
        fixed = [*steps[:-1], head, *chain.fixed[1:]]
    else:
        tip = np.column_stack([chain.fixed[-1][:, :3] @ steps[0][:, :3], chain.fixed[-1][:, 3]])
        fixed = [*chain.fixed[:-1], tip, *steps[1:]]

    def both(own: Any, added: Any) -> tuple[Any, ...]:
        return (*added, *own) if first else (*own, *added)

    return Chain(
        np.array(fixed), np.array(both(chain.slides, [True] * k), np.bool_), np.array(both(chain.low, low)),
        np.array(both(chain.high, high)), both(chain.names, [""] * k), both(chain.places, [-1] * k), chain.held,
        both(chain.keys, keys),
    )  # fmt: skip


def implied(solution: Any, conditions: Sequence[Condition]) -> list[Condition]:
    """Return the conditions that positions and directions of one joint imply together; they make proofs short.

    A position and a direction fix each point on the line through the position, such as the centre of a wrist, whose
    last joints do not move it. A position and an aim from there fix the direction.

    Args:
        solution: The solution.
        conditions: Conditions of its goals.
    """
    out: list[Condition] = []
    places = [one for one in conditions if one.what == "position" and one.slack == 0.0]
    for place, other in product(places, conditions):
        tip, turn, near = place.part.fixed[-1, :, 3], place.chain.fixed[-1, :, :3], place.part.near
        frame = solution.frames[place.goal]
        same = other.chain.keys[:-1] == place.chain.keys  # the last joint of an aim is a slide along its axis
        if other.what == "aim" and same and np.array_equal(other.chain.fixed[-2, :, 3], tip):
            away = other.part.target - place.part.target
            far, cone = float(np.linalg.norm(away)), solution.goals[other.goal].cone or 0.0
            if far > 2.0 * near:
                most = solution.ik.tolerance[1] + cone + math.asin(near / (far - near)) + _ROUNDING
                axis = other.chain.fixed[-2, :, 2]
                fixed = np.concatenate([place.chain.fixed[:-1], np.column_stack([turn, axis])[None]])
                fixed[:-1, :, 3] = 0.0
                wanted, chord = away / far, 2.0 * math.sin(0.5 * min(most, math.pi))
                miss = float(np.linalg.norm(frame[:3, :3] @ turn.T @ axis - wanted))
                part = Part(fixed, np.where(place.chain.slides, -1.0, 0.0), wanted, chord)
                toward = Condition(other.goal, "direction", place.chain, part, miss, exact=True)
                out += [toward, *implied(solution, [place, toward])]
        at = place.chain.wrist()
        if other.what == "direction" and at is not None and other.chain.keys == place.chain.keys:
            axis = other.part.fixed[-1, :, 3]
            along = float(axis @ (at - tip))
            wanted, slack = place.part.target + along * other.part.target, abs(along) * other.part.near
            links = place.chain.to(tip + along * axis)
            now = frame[:3, 3] + frame[:3, :3] @ turn.T @ (along * axis)
            part = Part(links.fixed, links.kinds, wanted, near + slack)
            miss = float(np.linalg.norm(now - wanted))
            out.append(Condition(place.goal, "position", links, part, miss, slack, other.goal, other.exact))
    return out


class Joined(NamedTuple):
    """Conditions with the joints that move any of them.

    Args:
        chain: The joints, without transforms, which differ by part.
        parts: The parts of the conditions.
    """

    chain: Chain
    parts: Parts


def join(conditions: Sequence[Condition]) -> Joined:
    """Return conditions with the joints that move any of them, parents first."""
    joints = {key: (one.chain, i) for one in conditions for i, key in enumerate(one.chain.keys)}
    keys = sorted(joints)
    low, high = (
        np.array([getattr(joints[key][0], end)[joints[key][1]] for key in keys], float) for end in ("low", "high")
    )
    parts: list[Part] = []
    for one in conditions:
        fixed, kinds = np.tile(np.eye(4)[:3], (len(keys) + 1, 1, 1)), np.full(len(keys), -1.0)
        at = [keys.index(key) for key in one.chain.keys]
        fixed[[*at, len(keys)]], kinds[at] = one.part.fixed, one.part.kinds
        parts.append(one.part._replace(fixed=fixed, kinds=kinds))
    held = tuple(dict.fromkeys(name for one in conditions for name in one.chain.held))
    names, places = (tuple(getattr(joints[k][0], one)[joints[k][1]] for k in keys) for one in ("names", "places"))
    chain = Chain(np.zeros((0, 3, 4)), np.zeros(0, np.bool_), low, high, names, places, held, tuple(keys))
    return Joined(chain, Parts(low, high, tuple(parts)))
