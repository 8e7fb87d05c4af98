"""Conflicts of goals and limits, and the changes that resolve them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from synovia.model import Pose
from synovia.model.geometry import Array
from synovia.text import first_few, length_text

if TYPE_CHECKING:
    from synovia.ik.proofs.proof import Proof
    from synovia.ik.proofs.together import SharedProof


class Relaxation(NamedTuple):
    """A change of one target, of the tolerance, or of one limit with which the goals of a conflict can be met.

    Args:
        kind: ``"target"``, ``"tolerance"`` or ``"limit"``.
        name: Label of the goal, or name of the joint; empty for the tolerance.
        length: Size of the change, length units: of the move, or the tolerance that is needed. For the limit of a
            slide, positive if its upper limit has to rise, negative if its lower limit has to fall.
        angle: The same in radians; for the limit of a hinge, with a sign.
        pose: A pose that meets the goals of the conflict after the change.
        move: World vector (3,), length units, by which the target moves; None for a limit or a tolerance.
        turn: Rotation vector (3,), radians, by which the target rotates.

    Example:
        >>> import synovia as sy
        >>> goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.PositionGoal("joint6", (-0.4, 0.1, 0.5))]
        >>> change = sy.solve(sy.bundled("arm7"), goals, "full-body").conflict.relaxations[0]
        >>> change.kind, round(change.length, 2)
        ('target', 0.57)
    """

    kind: str
    name: str
    length: float
    angle: float
    pose: Pose
    move: Array | None = None
    turn: Array | None = None

    def text(self, meters_per_unit: float | None) -> str:
        """Return the change as a text with figures."""
        if self.kind == "limit":
            ends = "raise the upper" if self.length + self.angle > 0.0 else "lower the lower"
            size = [length_text(abs(self.length), meters_per_unit)] if self.length else []
            return f"{ends} limit of {self.name!r} by {_sizes([*size, *_degrees(abs(self.angle))])}"
        length = [length_text(self.length, meters_per_unit)] if self.length else []
        if self.kind == "tolerance":
            return f"allow a tolerance of {_sizes([*length, *_degrees(self.angle)])}"
        if self.move is not None and self.length:
            length[0] += f" ({', '.join(f'{round(x, 6) + 0.0:.4g}' for x in self.move)})"
        return f"move the target of {self.name!r} by {_sizes([*length, *_degrees(self.angle)])}"


class Conflict(NamedTuple):
    """A smallest set of goals and joint limits that cannot hold together, and the changes that resolve it.

    Args:
        goals: Labels of the goals.
        poses: For each goal, a pose that meets the other goals; empty if the set has one goal.
        proof: Proof that no pose meets all these goals; None if only attempts show this.
        limits: Joints whose limits take part: together they suffice for the conflict, and each of them is needed.
        limit_poses: For each of these joints, a pose that meets the goals within the limits of the other ones.
        limits_proof: Proof that uses only these limits; None if only attempts show that they are the cause.
        priority: The first priority that fails: the goals of higher priorities can be met together.
        relaxations: Changes that resolve the conflict, found by solving again; targets first, then the tolerance of
            all goals, then limits.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> goals = [sy.PositionGoal("tool", (0.4, 0.1, 0.5)), sy.PositionGoal("joint5", (0.0, 0.0, 0.3), priority=1)]
        >>> conflict = sy.solve(arm, goals, "full-body").find_conflict()
        >>> conflict.goals, conflict.priority
        (('joint5',), 1)
    """

    goals: tuple[str, ...]
    poses: dict[str, Pose]
    proof: Proof | SharedProof | None
    limits: tuple[str, ...]
    limit_poses: dict[str, Pose]
    limits_proof: Proof | SharedProof | None
    priority: int
    relaxations: tuple[Relaxation, ...]

    @property
    def claim(self) -> str:
        """The claim in sentences: what is proved, and which limits take part."""
        if self.proof is not None:
            return f"{self.proof.claim} {self._cause}"
        names = " and ".join(map(repr, self.goals))
        together = " together" * (len(self.goals) > 1)
        return f"No attempt found a pose that meets {names}{together}; it is not proved. {self._cause}"

    @property
    def _cause(self) -> str:
        """A sentence about the limits that take part."""
        sure = ", as far as attempts show" if self.limits_proof is None else ""
        if not self.limits:
            return f"Joint limits are not the cause{sure}."
        each = first_few([repr(name) for name in self.limits])
        which = f"limit of {each} is" if len(self.limits) == 1 else f"limits of {each} are"
        return f"The {which} the cause{sure}."

    def sentences(self, meters_per_unit: float | None, levels: int, stated: bool) -> list[str]:
        """Return sentences: the claim, the first of several priority levels that fails, and changes that help.

        Args:
            meters_per_unit: Metres per length unit; None if unknown.
            levels: Number of priority levels.
            stated: Whether the claim of the proof was stated before.
        """
        first = [f"Priority {self.priority} fails first."] if levels > 1 else []
        changes = [change.text(meters_per_unit) for change in self.relaxations]
        enough = [f"Each of these changes is enough, found by solving again: {'; '.join(changes)}."] if changes else []
        return [self._cause if stated else self.claim, *first, *enough]


def _degrees(angle: float) -> list[str]:
    """Return an angle as text, in a list; an empty list for zero."""
    return [f"{math.degrees(angle):.3g} deg"] if angle else []


def _sizes(parts: list[str]) -> str:
    """Return the sizes of a change as text."""
    return " and ".join(parts) or "0"


def norm(vector: Array | None) -> float:
    """Return the length of a vector; 0 for None."""
    return 0.0 if vector is None else float(np.linalg.norm(vector))
