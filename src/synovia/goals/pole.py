"""Pole: make the bending plane of a limb contain a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar
from typing import TYPE_CHECKING, Any

import numpy as np

from synovia.errors import InputError
from synovia.goals import describe
from synovia.goals.base import POSITION, Goal, Term, goal_class
from synovia.goals.describe import Place, Sketch, View
from synovia.model.geometry import Array, between_directions, rigid, unit

if TYPE_CHECKING:
    from synovia.model import Skeleton

_NEXT: dict[str, Any] = {"control": True, "absent": "(the next one)"}


@goal_class
class PoleGoal(Goal):
    """A limb should bend towards a point: elbow out, knee forward.

    Residual: the angle φ about the line from root to tip, from the middle joint to the pole (1 row, radians):
    φ = atan2(a·(u × v), u·v), with a along the line and u, v the components of middle joint and pole normal to it. If
    the limb is straight or the pole is on the line (within a thousandth of the limb's length), the plane is undefined:
    there, the residual fades to 0 smoothly.

    Args:
        joint: Name of the joint, link or site in the middle (elbow, knee), else a role, or a row.
        point: World point (3,), length units; None to keep the bending plane of the start.
        root: Joint at the limb's beginning; None for the nearest joint above at another position.
        tip: Joint at the limb's end; None for the nearest joint below at another position.

    Raises:
        InputError: If a value cannot be used.

    Example:
        >>> import synovia as sy
        >>> goals = [sy.PositionGoal("left_hand", (0.35, 1.3, 0.3)), sy.PoleGoal("left_lower_arm", (1.2, 1.6, 0.0))]
        >>> sy.solve(sy.bundled("humanoid"), goals).reached
        True
    """

    kind = "pole"
    summary = "A limb should bend towards a point; joint is the one in its middle."
    fields = (
        describe.position("point"),
        describe.attribute(
            "root",
            "joint",
            "Joint at the limb's beginning.",
            control=True,
            label="Limb begins",
            absent="(the next one)",
        ),
        describe.attribute("tip", "joint", "Joint at the limb's end.", label="Limb ends", **_NEXT),
    )
    needs = "limb"
    turns_limb = True

    point: InitVar[Any] = None
    _: KW_ONLY
    root: str | int | None = None
    tip: str | int | None = None

    def __post_init__(self, point: Any) -> None:
        """Check the values."""
        super().__post_init__()
        self._aim_at(point)

    @property
    def joints(self) -> tuple[str | int, ...]:
        """The middle joint, then root and tip if they are known."""
        return (*super().joints, *(joint for joint in (self.root, self.tip) if joint is not None))

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further residual: one angle."""
        return (Term(kind="pole", angles=1, takes=POSITION, frames=(rigid(), rigid())),)

    def resolved(self, skeleton: Skeleton) -> Goal:
        """Return the goal with its root and tip joints."""
        middle, _ = skeleton.locate(self.joints[0])
        root, tip = self.root, self.tip
        if root is None:
            row = middle
            while row >= 0 and (row == middle or not _apart(skeleton, row, middle)):
                row = skeleton.parents[row]
            if row < 0:
                raise InputError(
                    "root", expected="a joint above it at another position", where=f"pole goal on {self.joint!r}"
                )
            root = row
        if tip is None:
            below = [middle]
            while below and not _apart(skeleton, below[0], middle):
                below = [child for row in below for child in skeleton.children[row]]
                below = [row for row in below if _apart(skeleton, row, middle)] or below
            if len(below) != 1:
                raise InputError(
                    "tip",
                    where=f"pole goal on {self.joint!r}",
                    value=[skeleton.joint_names[row] for row in below] or None,
                    hint="name it: tip=" if below else None,
                )
            tip = below[0]
        return self._with(root=root, tip=tip)

    def met_at(self, now: Array, others: Sequence[Array]) -> Array | None:
        """Return points in the bending direction, one length unit away; on the joint's z axis for a straight limb."""
        out, bend = now.copy(), _bend(now, others)
        out[:, :3, 3] += np.where(bend.any(axis=1, keepdims=True), bend, now[:, :3, 2])
        return out

    def part_way(self, now: Array, others: Sequence[Array], target: Array, weight: Array) -> Array | None:
        """Interpolate directions between the current bend and the target, at the target's distance."""
        out, way = target.copy(), target[:, :3, 3] - now[:, :3, 3]
        far, bend = np.linalg.norm(way, axis=1, keepdims=True), _bend(now, others)
        straight = ~bend.any(axis=1, keepdims=True)
        between = between_directions(np.where(straight, unit(way), bend), unit(way), weight)
        out[:, :3, 3] = now[:, :3, 3] + far * between
        return out

    def describe_miss(self, length: float, angle: float, say: Callable[[float], str]) -> str:
        """Return a text with the angle by which the limb bends away from its pole."""
        return f"bends {describe.degrees(angle)} away from its pole"

    def sketch(self, view: View) -> Sketch:
        """Return a line from the middle joint to the pole."""
        p, t = view.at[:3, 3], view.target[:3, 3]
        return Sketch(target=t, paths=[np.stack([p, t])], note="angle", on_joint=False)

    @classmethod
    def first_target(cls, place: Place, values: dict[str, Any]) -> Array:
        """Return a target in the bending direction; on the joint's z axis for a straight limb."""
        root, tip = values.get("root"), values.get("tip")
        above = place.parents[place.row] if root is None else root
        children = (row for row, parent in enumerate(place.parents) if parent == place.row)
        below = next(children, -1) if tip is None else tip
        target = place.at.copy()
        ends = [place.frames(row)[:3, 3] for row in (above, below) if row >= 0]
        bend = target[:3, 3] - np.mean(ends, axis=0) if ends else np.zeros(3)
        if not float(np.linalg.norm(bend)) > 1e-3 * place.size:
            bend = place.frames(place.row)[:3, 2]
        target[:3, 3] = describe.ray(target[:3, 3], bend, describe.AHEAD * place.size)[1]
        return target


def _bend(now: Array, others: Sequence[Array]) -> Array:
    """Return unit vectors (n, 3) from the line between root and tip to the middle joint; 0 for straight limbs."""
    root, tip = (other[:, :3, 3] for other in others)
    line = unit(tip - root)
    away = now[:, :3, 3] - root
    across = away - np.sum(away * line, axis=1, keepdims=True) * line
    bent = np.linalg.norm(across, axis=1, keepdims=True) > 1e-6 * np.linalg.norm(away, axis=1, keepdims=True)
    return np.where(bent, unit(across), 0.0)


def _apart(skeleton: Skeleton, a: int, b: int) -> bool:
    """Return whether two joints have different positions at rest."""
    positions = skeleton.rest_pose().positions
    return float(abs(positions[a] - positions[b]).max()) > 1e-9 * skeleton.size
