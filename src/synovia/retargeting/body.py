"""A body for retargeting: its parts by role, its axes and proportions, and the joints that rotate each part."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from synovia.bodies.soles import Sole, sole_of
from synovia.clips.onfeet import raised
from synovia.errors import InputError
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.axes import body_axes, of_joint
from synovia.model.anatomy.feet import feet_of
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.up import Lines
from synovia.model.geometry import Array, axis_vector, unit
from synovia.model.tree import ancestors

# for each limb part, the part at the end of its bone
NEXT: Final[Mapping[str, str]] = {
    "upper_leg": "lower_leg", "lower_leg": "foot", "foot": "toes", "upper_arm": "lower_arm", "lower_arm": "hand",
}  # fmt: skip
LEGS = tuple((f"{side}_upper_leg", f"{side}_lower_leg", f"{side}_foot") for side in SIDES)
NEEDED = ("hips", *(part for leg in LEGS for part in leg[:2]))  # required parts
_APART = ("hips", *(part for leg in LEGS for part in leg), *(f"{side}_hand" for side in SIDES))  # have different joints
ARMS = tuple(f"{side}_{part}" for side in SIDES for part in ("upper_arm", "lower_arm"))
_MAP = "name them in a joint map: `synovia retarget SRC DST --save-map map.toml`, edit, `--map map.toml`"
PART_MAP = f"{_MAP}; a map of some parts is enough, such as {ARMS[0]} and {ARMS[1]} for a single arm"
_NO_LENGTH: Final = 1e-9  # fraction of the skeleton's size: shorter legs have length zero
_POINT: Final = 0.01  # fraction of the skeleton's size: a bone must be longer to have an end
_NEAR_FIRST = 1e-6  # weight of the position of the first hinge; the axes of all hinges have weight 1


@dataclass(frozen=True, eq=False)
class Body:
    """A skeleton with the parts of its body, found by role.

    Args:
        skeleton: The skeleton.
        roles: Row of the joint of each part, by role.
        standing: World frames of the rest pose, (n, 12); None for the rest pose of the file.
        vertical: Upward direction, (3,); None for the axis of the file, or else that of the rest pose.
        axes: Rotation from the body's axes to the world, (3, 3), see ``basis``; None to find it from the rest pose.

    Raises:
        InputError: If two parts have the same joint.
    """

    skeleton: Skeleton
    roles: dict[str, int]
    standing: Array | None = None
    vertical: Array | None = None
    axes: Array | None = None

    def __post_init__(self) -> None:
        """Check that different parts have different joints."""
        for one, other in itertools.combinations([role for role in _APART if role in self.roles], 2):
            if self.roles[one] == self.roles[other]:
                raise InputError(
                    f"{one} and {other} of {self.skeleton.name} are the same joint",
                    value=self.skeleton.joint_names[self.roles[one]],
                    expected="a joint for each part, all of one body",
                    hint=_MAP,
                )

    @classmethod
    def of(cls, skeleton: Skeleton, roles: dict[str, int] | None = None) -> Body:
        """Return the body of a skeleton, with given parts, or with parts found by role, name and shape.

        Recent bodies are cached, with all data derived from them.

        Raises:
            InputError: If there are several people.
        """
        return _body_of(skeleton, None if roles is None else tuple(roles.items()))

    @property
    def missing(self) -> list[str]:
        """The roles that a body needs to walk and lacks, of hips, thighs and shins."""
        return [role for role in NEEDED if role not in self.roles]

    @property
    def whole(self) -> bool:
        """Whether the body has hips and two legs."""
        return not self.missing

    def required(self) -> Body:
        """Return this body if it has hips and two legs.

        Raises:
            InputError: If hips or a leg are missing.
        """
        if self.missing:
            raise InputError(
                f"{self.skeleton.name} has no joint for {', '.join(self.missing)}",
                expected="hips and two legs",
                hint=_MAP,
            )
        return self

    def recognised(self) -> Body:
        """Return this body if at least one of its parts is known.

        Raises:
            InputError: If no part is known.
        """
        if not self.roles:
            what = f"no part of {self.skeleton.name} is recognised by name or shape"
            raise InputError(what, expected="known names, or two legs and two arms", hint=PART_MAP)
        return self

    @cached_property
    def rest(self) -> Array:
        """World frames at rest, (n, 12)."""
        return np.array(self.skeleton.rest_pose().frames) if self.standing is None else self.standing

    def rest_position(self, role: str) -> Array:
        """Return the rest position of a part, (3,): the centre of the joint that rotates it."""
        return self.position(role, self.rest)

    def position(self, role: str, frames: Array) -> Array:
        """Return the centre of the joint that rotates a part, (..., 3), for world frames (..., n, 12)."""
        row, local = self.roles[role], self.centres[role]
        return frames[..., row, 9:] if local is None else point_at(frames, row, local)

    @cached_property
    def part_of(self) -> dict[int, str]:
        """The role of each row that has one; the first if it has several."""
        return {row: role for role, row in reversed(self.roles.items())}

    def end_rows(self, role: str) -> tuple[int, ...]:
        """Return the rows at the end of a part's bone; empty if the bone has no end.

        The end is the next part of the limb. If that is missing, it is the nearest points below: fingers, or a tip.
        """
        side, _, part = role.partition("_")
        after = f"{side}_{NEXT.get(part, '')}"
        if after in self.roles:
            return (self.roles[after],)
        places, begin, least = self.rest[:, 9:], self.rest_position(role), _POINT * self.skeleton.size
        rows = list(self.skeleton.children[self.roles[role]])
        while rows:
            apart = [row for row in rows if np.linalg.norm(places[row] - begin) > least]
            if apart:
                return tuple(apart)
            rows = [child for row in rows for child in self.skeleton.children[row]]
        return ()

    def end(self, role: str, frames: Array) -> Array | None:
        """Return the end of a part's bone, (..., 3), for world frames (..., n, 12); None if the bone has no end."""
        rows = self.end_rows(role)
        if len(rows) == 1 and rows[0] in self.part_of:
            return self.position(self.part_of[rows[0]], frames)
        return frames[..., list(rows), 9:].mean(-2) if rows else None

    def ankle_position(self, side: str, frames: Array) -> Array:
        """Return the ankle, (..., 3), for world frames (..., n, 12): the end of the shin, or the knee without one."""
        end = self.end(f"{side}_lower_leg", frames)
        return self.position(f"{side}_lower_leg", frames) if end is None else end

    @cached_property
    def centres(self) -> dict[str, Array | None]:
        """The centre of the joint that rotates each part, (3,), in the part's frame; None for the origin of the frame.

        Robots have groups of hinges in place of a ball joint. Their centre is the point nearest to all axes at rest, by
        least squares. If several points are equally near, it is the one nearest to the first hinge.
        """
        out: dict[str, Array | None] = {}
        for role, row in self.roles.items():
            first = self.joint_row(role)
            if first == row:
                out[role] = None
                continue
            group = ancestors(self.skeleton.parents, row)
            group = group[: group.index(first) + 1]
            normal, right = _NEAR_FIRST * np.eye(3), _NEAR_FIRST * self.rest[first, 9:]  # normal equations
            for hinge in group:
                axis = self.rest[hinge, :9].reshape(3, 3) @ self.skeleton.joints[hinge].axis
                across = np.eye(3) - np.outer(axis, axis)
                normal, right = normal + across, right + across @ self.rest[hinge, 9:]
            at = np.linalg.solve(normal, right)
            out[role] = self.rest[row, :9].reshape(3, 3).T @ (at - self.rest[row, 9:])
        return out

    def first_row(self, role: str) -> int:
        """Return the first joint that rotates a part: its own joint, or the first of a group of hinges."""
        row = self.roles[role]
        others = set(self.roles.values()) - {row}
        group = row
        for above in ancestors(self.skeleton.parents, row)[1:]:
            if above in others or self.skeleton.joints[above].kind is not Kind.HINGE:
                break
            group = above
        return group if self.skeleton.joints[row].kind is Kind.HINGE else row

    def joint_row(self, role: str) -> int:
        """Return the first joint at the part's own position: ``first_row`` without hinges that move the position."""
        row, first = self.roles[role], self.first_row(role)
        if first == row:
            return row
        line = ancestors(self.skeleton.parents, row)
        group = line[: line.index(first) + 1][::-1]
        axes = np.array([self.skeleton.joints[k].axis for k in group])
        return group[of_joint(self.rest[group], axes, self.skeleton.size)]

    def can_turn(self, role: str) -> bool:
        """Return whether a joint rotates a part relative to the part above it; True for the hips."""
        others = set(self.roles.values()) - {self.roles[role]}
        for row in ancestors(self.skeleton.parents, self.roles[role]):
            if row in others:
                return False
            if self.skeleton.joints[row].kind in (Kind.HINGE, Kind.BALL, Kind.FREE):
                return True
        return role == "hips"

    @cached_property
    def lines(self) -> Lines:
        """The joints whose positions show the posture of the body."""
        return Lines.of(self.skeleton, self.roles)

    @cached_property
    def basis(self) -> Array:
        """Rotation from the body's axes (x left, y up, z forward) to the world of its file, at rest.

        Raises:
            InputError: If left and right cannot be distinguished.
        """
        if self.axes is not None:
            return self.axes
        places = {role: self.rest_position(role) for role in self.roles}
        up = self.skeleton.up if self.vertical is None else self.vertical
        ahead = (
            None
            if self.whole
            else usual_forward(self.skeleton, axis_vector(up or "y") if not isinstance(up, np.ndarray) else up)
        )
        return body_axes(places, self.skeleton.size, up, self.skeleton.name, ahead)

    @cached_property
    def leg(self) -> float:
        """Mean length of the legs, from hip to ankle (to the knee for legs without shins), length units.

        For bodies without two legs: the mean length of the arms, or else the size of the skeleton.

        Raises:
            InputError: If the length is 0.
        """
        return above_zero(self._leg if self.whole else self._arm or self.skeleton.size, self.skeleton)

    @property
    def _leg(self) -> float:
        """Mean length of the legs, length units."""
        joints = [
            [*map(self.rest_position, leg[:2]), self.ankle_position(side, self.rest)]
            for side, leg in zip(SIDES, LEGS, strict=True)
        ]
        return float(np.linalg.norm(np.diff(joints, axis=1), axis=2).sum(axis=1).mean())

    @property
    def _arm(self) -> float:
        """Mean length of the arms from shoulder to wrist, length units; 0 without arms."""
        out: list[float] = []
        for side in SIDES:
            upper, lower = (f"{side}_{part}_arm" for part in ("upper", "lower"))
            if upper in self.roles and lower in self.roles:
                ends = [self.rest_position(upper), self.rest_position(lower), self.end(lower, self.rest)]
                out.append(
                    float(sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(e for e in ends if e is not None)))
                )
        return float(np.mean(out)) if out else 0.0

    @cached_property
    def soles(self) -> dict[str, Sole]:
        """The sole of each foot, by role of the foot."""
        feet = {leg[2]: self.roles[leg[2]] for leg in LEGS if leg[2] in self.roles}
        found = feet_of(self.skeleton, list(feet.values())) if feet else []
        up = self.basis[:, 1]
        return {role: sole_of(self.skeleton, foot, up, self.standing) for role, foot in zip(feet, found, strict=True)}

    def lowest(self, frames: Array) -> float:
        """Return the height of the lowest sole, for world frames (n, 12); without feet, that of the lower ankle."""
        up = self.basis[:, 1]
        soles = [float(sole.lowest(frames, up)) for sole in self.soles.values()]
        return min(soles or [float(self.ankle_position(side, frames) @ up) for side in SIDES])

    @cached_property
    def carrier(self) -> int | None:
        """Row of the free joint that carries the hips; None if there is none."""
        free = (
            row
            for row in ancestors(self.skeleton.parents, self.roles["hips"])
            if self.skeleton.joints[row].kind is Kind.FREE
        )
        return next(free, None)

    def raised(self, q: Array, rise: Array) -> Array:
        """Return joint values (T, nq) in which the joint that carries the hips is raised by lengths (T,)."""
        return q if self.carrier is None else raised(self.skeleton, q, self.carrier, rise, self.basis[:, 1])


def point_at(frames: Array, row: int, offset: Array) -> Array:
    """Return the world position (..., 3) of a point in a joint's frame, for world frames (..., n, 12)."""
    return frames[..., row, 9:] + frames[..., row, :9].reshape(*frames.shape[:-2], 3, 3) @ offset


def usual_forward(skeleton: Skeleton, up: Array) -> Array:
    """Return the horizontal direction a body faces, (3,): the file's, or +z if y is up, -y if z is up, else +z."""
    ways = [axis_vector(skeleton.forward)] if skeleton.forward else []
    flat = (way - (way @ up) * up for way in (*ways, axis_vector("z"), axis_vector("-y")))
    return unit(next(way for way in flat if np.linalg.norm(way) > 0.5))  # z or y is far from vertical


def above_zero(length: float, skeleton: Skeleton) -> float:
    """Return the length of a body's legs after checking that it is above 0.

    Raises:
        InputError: If the length is 0, as in files that store only rotations.
    """
    if not length > _NO_LENGTH * skeleton.size:
        raise InputError(
            "length of the legs", where=skeleton.name, value=length, expected="a number above 0",
            hint="its bones have no lengths: their offsets are 0",
        )  # fmt: skip
    return length


@lru_cache(maxsize=32)
def _body_of(skeleton: Skeleton, roles: tuple[tuple[str, int], ...] | None) -> Body:
    """Return the body of a skeleton; see ``Body.of``."""
    if roles is not None:
        return Body(skeleton, dict(roles))
    if len(people := skeleton.people) > 1:
        names = ", ".join(repr(skeleton.path(row)) for row in people[:3])
        raise InputError(
            f"{skeleton.name} has {len(people)} people", value=names, expected="one person",
            hint=f"choose one: {_MAP}",
        )  # fmt: skip
    return Body(skeleton, dict(skeleton.role_rows))
