"""A body as retargeting sees it: its parts, its own axes, its proportions, and the joints that turn each part."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array, axis_vector
from synovia.model.names import SIDES
from synovia.model.tree import ancestors
from synovia.retargeting.shape import find_roles

LEGS = tuple((f"{side}_upper_leg", f"{side}_lower_leg", f"{side}_foot") for side in SIDES)
NEEDED = ("hips", *(part for leg in LEGS for part in leg[:2]))  # parts that carry all others
_APART = ("hips", *(part for leg in LEGS for part in leg), *(f"{side}_hand" for side in SIDES))  # no two in one joint
_MAP = "name them in a joint map: `synovia retarget SRC DST --save-map map.toml`, edit, `--map map.toml`"
_NO_WIDTH = 1e-6  # of the skeleton's size: what is nearer together is in one place
_NEARLY = np.cos(np.radians(30.0))  # an axis of the file is up if the body stands this straight along it


@dataclass(frozen=True, eq=False)
class Body:
    """A skeleton with the parts of its body.

    Args:
        skeleton: The skeleton.
        roles: Row of each part, by role.

    Raises:
        InputError: If a part that carries all others is missing.
    """

    skeleton: Skeleton
    roles: dict[str, int]

    def __post_init__(self) -> None:
        """Refuse what is no body with two legs."""
        missing = [role for role in NEEDED if role not in self.roles]
        if missing:
            raise InputError(
                f"{self.skeleton.name} has no joint for {', '.join(missing)}",
                expected="hips and two legs",
                hint=_MAP,
            )
        for one, other in itertools.combinations([role for role in _APART if role in self.roles], 2):
            if self.roles[one] == self.roles[other]:
                raise InputError(
                    f"{one} and {other} of {self.skeleton.name} are one joint",
                    value=self.skeleton.joint_names[self.roles[one]],
                    expected="a joint for each; where a file has several bodies, those of one",
                    hint=_MAP,
                )

    @classmethod
    def of(cls, skeleton: Skeleton, roles: dict[str, int] | None = None) -> Body:
        """Return the body of a skeleton, its parts found by role, name and shape, or as given."""
        return cls(skeleton, find_roles(skeleton) if roles is None else roles)

    @cached_property
    def rest(self) -> Array:
        """World frames at rest, (n, 12)."""
        return np.array(self.skeleton.rest_pose().frames)

    def place(self, role: str) -> Array:
        """Return where a part begins at rest, (3,): at the first of the hinges that turn it."""
        return self.rest[self.start(role), 9:]

    def start(self, role: str) -> int:
        """Return the first joint of the group that turns a part: its own joint, or the first hinge of several."""
        row = self.roles[role]
        others = set(self.roles.values()) - {row}
        group = row
        for above in ancestors(self.skeleton.parents, row)[1:]:
            if above in others or self.skeleton.joints[above].kind is not Kind.HINGE:
                break
            group = above
        return group if self.skeleton.joints[row].kind is Kind.HINGE else row

    def turns(self, role: str) -> bool:
        """Return whether a joint turns this part against the part above it; the hips always may."""
        others = set(self.roles.values()) - {self.roles[role]}
        for row in ancestors(self.skeleton.parents, self.roles[role]):
            if row in others:
                return False
            if self.skeleton.joints[row].kind in (Kind.HINGE, Kind.BALL, Kind.FREE):
                return True
        return role == "hips"

    @cached_property
    def basis(self) -> Array:
        """Rotation from the body's axes (x left, y up, z forward) to the world of its file, at rest.

        Raises:
            InputError: If left and right cannot be told apart.
        """
        feet = [role if (role := f"{side}_foot") in self.roles else f"{side}_lower_leg" for side in SIDES]
        hips = np.mean([self.place(leg[0]) for leg in LEGS], axis=0)
        up = hips - np.mean([self.place(foot) for foot in feet], axis=0)
        up = up / np.linalg.norm(up)
        axis = int(np.argmax(np.abs(up)))
        if self.skeleton.up:
            up = axis_vector(self.skeleton.up)
        elif abs(up[axis]) > _NEARLY:  # files rarely say which of their axes is up, but bodies stand along it
            up = np.sign(up[axis]) * np.eye(3)[axis]
        left = np.zeros(3)
        for parts in (("upper_leg", "upper_arm", "shoulder"), ("lower_leg", "foot", "lower_arm", "hand")):
            pairs = [(f"left_{part}", f"right_{part}") for part in parts]
            both = [self.place(a) - self.place(b) for a, b in pairs if a in self.roles and b in self.roles]
            left = np.sum(both, axis=0) if both else left
            left = left - np.dot(left, up) * up
            if np.linalg.norm(left) > _NO_WIDTH * self.skeleton.size:
                break  # limbs may begin in one place: then their ends are apart
        else:
            raise InputError(
                f"{self.skeleton.name} has its left where its right is", expected="limbs that are apart at rest"
            )
        left = left / np.linalg.norm(left)
        return np.array([left, up, np.cross(left, up)], np.float64).T.copy()

    @cached_property
    def leg(self) -> float:
        """Length of a leg from hip to ankle (to the knee where there are no feet), mean of both, length units."""
        total = 0.0
        for leg in LEGS:
            places = [self.place(role) for role in leg if role in self.roles]
            total += float(sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(places)))
        return total / 2.0

    @cached_property
    def ankle(self) -> float:
        """Height of the ankles above the soles at rest: above the lowest point that hangs on a foot, length units."""
        heights = self.rest[:, 9:] @ self.basis[:, 1]
        out: list[float] = []
        for leg in LEGS:
            foot = self.roles.get(leg[2])
            if foot is not None:
                own = [row for row in range(foot, len(self.skeleton)) if foot in ancestors(self.skeleton.parents, row)]
                out.append(float(heights[foot] - heights[own].min()))
        return float(np.mean(out)) if out else 0.0

    @cached_property
    def mover(self) -> int | None:
        """Row of the free joint that carries the hips, None where the file has none."""
        free = (
            row
            for row in ancestors(self.skeleton.parents, self.roles["hips"])
            if self.skeleton.joints[row].kind is Kind.FREE
        )
        return next(free, None)
