"""Balance: bring the centre of mass to a position, or above a support polygon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, field
from typing import TYPE_CHECKING, Any

import numpy as np

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, Goal, Term, as_lengths, goal_class
from synovia.goals.describe import Sketch, View
from synovia.model.geometry import Array, align_z, as_direction

if TYPE_CHECKING:
    from synovia.model import Skeleton


@goal_class
class CenterOfMassGoal(Goal):
    """The centre of mass of the whole body should be at a position, or above a polygon.

    Residual with a position: target - centre (3 rows, length units). With a polygon: the horizontal vector to its
    convex hull, 0 above it (2 rows). All joints that move masses may move, not only those of other goals.

    Args:
        position: World position (3,), length units; None for the position in the start.
        polygon: World points (n, 3), such as the corners of the feet. Seen from above, their convex hull must contain
            the centre. Two points define a line, and one defines a point.
        up: Upward world direction for the polygon, (3,); None for that of the skeleton.

    Raises:
        InputError: If a value cannot be used, or both a position and a polygon are given; when an ``IK`` is built, if
            the model has no masses.

    Example:
        >>> import synovia as sy
        >>> soles = [(x, 0, z) for x in (-0.14, 0.14) for z in (-0.06, 0.14)]
        >>> goals = [sy.CenterOfMassGoal(polygon=soles), sy.ContactGoal("left_foot"), sy.ContactGoal("right_foot")]
        >>> sy.solve(sy.bundled("humanoid"), goals, root="free").reached
        True
    """

    kind = "center_of_mass"
    needs = "rows"
    summary = "The centre of mass should be at a position, or above a polygon."
    fields = (
        describe.position(),
        describe.attribute("polygon", "polygon", "World points; their convex hull counts."),
        describe.attribute("up", "direction", describe.DIRECTION),
    )
    on_joint = False
    moves_mass = True

    joint: None = field(default=None, init=False)
    position: InitVar[Any] = None
    _: KW_ONLY
    polygon: Any = None
    up: Any = None

    def __post_init__(self, position: Any) -> None:
        """Check the values."""
        super().__post_init__()
        if position is not None and self.polygon is not None:
            raise InputError("polygon", expected="either a position or a polygon")
        if self.up is not None and self.polygon is None:
            raise InputError("up", value=self.up, expected="polygon= too", hint="a position needs no direction")
        corners = None if self.polygon is None else as_lengths(self.polygon, (-1, 3), "polygon")
        if corners is not None and not len(corners):
            raise InputError("polygon", expected="at least one point (3,)", value=self.polygon)
        self._keep(polygon=corners, up=None if self.up is None else as_direction(self.up, "up"))
        self._aim_at(position)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual: a position, or a vector in the horizontal plane."""
        if self.polygon is None:
            return (Term(kind="centre", lengths=3, takes=POSITION),)
        up = np.array([0.0, 0.0, 1.0]) if self.up is None else self.up
        return (Term(kind="support", lengths=2, numbers=tuple(up.tolist()), points=hull(self.polygon, up)),)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with the upward direction set."""
        if not any(joint.mass > 0.0 for joint in skeleton.joints):
            raise InputError(
                skeleton.name,
                where="center_of_mass goal",
                expected="joints with masses: URDF inertial, MJCF bodies, mass in a TOML skeleton",
                hint="sy.with_body_masses(skeleton) gives a character the masses of an adult",
            )
        return self if self.polygon is None or self.up is not None else self._with(up=skeleton.up_vector("up="))

    @property
    def can_move(self) -> bool:
        """Whether the goal has a target position."""
        return self.polygon is None

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return the distance of the centre of mass from its target or support, as text."""
        if self.polygon is None:
            return super().describe_miss(length, angle, say)
        return f"is {say(length)} outside its support"

    def sketch(self, view: View) -> Sketch:
        """Return the target position, or the polygon on the floor and a vertical line to the floor."""
        if self.polygon is None or self.up is None:
            return super().sketch(view)
        corners, p = self.terms[0].points, view.at[:3, 3]
        floor = float((self.polygon @ self.up).mean()) * self.up
        ring = np.vstack([corners, corners[:1]]) + floor
        below = p - (p @ self.up) * self.up + floor
        return Sketch(paths=[ring, np.stack([p, below])], note="length", on_joint=False)


def hull(points: Array, up: Array) -> Array:
    """Return the convex hull of points seen along ``up``, counterclockwise and without height (Andrew 1979)."""
    frame = align_z(up)
    flat = sorted({(float(x), float(y)) for x, y in points @ frame[:, :2]})
    if len(flat) > 2:
        halves: list[list[tuple[float, float]]] = []
        for order in (flat, flat[::-1]):
            half: list[tuple[float, float]] = []
            for p in order:
                while len(half) > 1 and _turn(half[-2], half[-1], p) <= 0.0:
                    half.pop()
                half.append(p)
            halves.append(half[:-1])
        flat = halves[0] + halves[1]
    return np.array(flat) @ frame[:, :2].T


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Return twice the signed area of the triangle a, b, c, positive if it is counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
