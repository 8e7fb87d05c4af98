"""The body of an edited clip: which joints belong to its trunk and limbs, which feet stand, and its limits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.bodies.limits import with_human_limits
from synovia.clips.loosened import widened
from synovia.errors import InputError, UnsupportedError
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.contacts import find_contacts
from synovia.model.anatomy.feet import feet_of
from synovia.model.anatomy.up import SHOWN, Up, find_up
from synovia.model.geometry import Array, axis_vector, unit
from synovia.model.limits import Limit, SwingTwist
from synovia.model.loops.tables import joints_of
from synovia.model.motion import Motion
from synovia.model.pose import clamped, world_frames
from synovia.model.root import free_root
from synovia.model.tree import ancestors

Bools = NDArray[np.bool_]
# fraction of the body's size: longer branches are limbs; joints where limbs meet, and their ancestors, are the trunk
_FORK: Final = 0.25
_STILL: Final = 1e-6  # radians or length units: a joint does not move if its values vary by less over the clip
_OUTSIDE: Final = 1e-9  # radians or length units: tolerance of limits
LIMB: Final = 0.02  # weight of a joint in a limb with a goal; joints of the trunk and of other limbs have weight 1
# factor by which the weight of a shoulder exceeds the other joints of its arm, so that these move first
_SHOULDER: Final = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class PlantedFoot:
    """A foot, and the frames in which it stands in the clip.

    Args:
        head: Row of the ankle joint.
        points: Rows of all joints of the foot, ankle included.
        stands: Mask of the frames in which the foot is planted, (T,).
    """

    head: int
    points: tuple[int, ...]
    stands: Bools


class Body:
    """The body of an edited clip.

    Args:
        motion: The clip.
        feet: The joint of each foot (the ankle); None to find them by roles and names, empty for none.
        up: As in ``foot_lock``.
        looks: Whether some layer of the edit aims the head or an eye at a point.

    Attributes:
        bounded: Human limits, by row, for joints of trunk, neck and eyes that have no limits in the file; empty unless
            ``looks`` is set.
        unbounded: Whether the head remains without limits: the file has none, and the rest pose does not determine
            human limits.
    """

    def __init__(
        self, motion: Motion, feet: Sequence[str | int] | None, up: str | None, *, looks: bool = False
    ) -> None:
        """Widen limits that the clip exceeds, and set human limits if a layer aims the head."""
        self.given, self.fps, self.name = motion.skeleton, motion.fps, motion.name
        self.outside = _outside(motion)
        self.skeleton = _with_wider_limits(motion, self.outside)
        self.bounded: dict[int, Limit] = _limits_of_looks(motion) if looks else {}
        head = self.skeleton.joints[motion.skeleton.role_rows["head"]] if looks else None
        free = head is not None and head.kind in (Kind.BALL, Kind.FREE) and head.limit is None
        self.unbounded = free and not self.bounded and find_up(motion.skeleton).certainty < SHOWN
        if self.bounded:
            joints = [replace(joint, limit=self.bounded.get(row, joint.limit)) for row, joint in
                      enumerate(self.skeleton.joints)]  # fmt: skip
            self.skeleton = self.skeleton.with_joints(joints)
        # row of the free joint at the root; None without one
        self.top = free_root(self.given.joints, self.given.parents)
        self._motion, self._names, self._up = motion, feet, up
        if self.top is not None and _turns_below(motion, self.top):
            joints = list(self.skeleton.joints)
            joints[self.top] = replace(joints[self.top], limit=SwingTwist((0.0, 0.0), (0.0, 0.0), (0.0, 0.0)))
            self.skeleton = self.skeleton.with_joints(joints)

    @cached_property
    def feet(self) -> tuple[PlantedFoot, ...]:
        """The feet, with the frames in which they are planted."""
        return _planted(self._motion, self._names, self._found, asked=self._up is not None)

    @cached_property
    def up(self) -> str | None:
        """The axis that points up in the clip; None if it is not certain."""
        return self._found.nearest if self._found.certainty >= SHOWN else None

    @cached_property
    def _found(self) -> Up:
        """The direction that points up."""
        return find_up(self.given, self._motion.q, self._up)

    @cached_property
    def upright(self) -> Skeleton:
        """The skeleton with the upward axis of the clip; goals may need it, and files such as BVH do not store it."""
        body = self.skeleton
        if body.up is not None or self.up is None:
            return body
        return Skeleton(body.joints, name=body.name, meters_per_unit=body.meters_per_unit, up=self.up)

    def gaze(self, row: int) -> tuple[Array, Array] | None:
        """Return a head's or an eye's forward and top directions in its own frame, (3,) each, measured in the clip.

        The forward direction is the mean forward direction of the hips over the clip; top is the mean of up. None for
        other joints. Also None if the rest pose stands or the file has a forward axis: the goal then finds both
        directions itself.
        """
        roles = self.given.role_rows
        looks = row in {roles.get(role) for role in ("head", "left_eye", "right_eye")}
        legs = [roles.get(f"{side}_upper_leg") for side in ("left", "right")]
        known = self.given.forward is not None or find_up(self.given).certainty >= SHOWN
        if not looks or known or self.up is None or None in legs:
            return None
        frames = world_frames(self.given, self._motion.q)
        up = axis_vector(self.up)
        ahead = np.cross(frames[:, legs[0], 9:] - frames[:, legs[1], 9:], up)
        inward = frames[:, row, :9].reshape(-1, 3, 3).swapaxes(1, 2)
        top, axis = (inward @ up).mean(axis=0), np.einsum("tij,tj->i", inward, ahead)
        axis = axis - (axis @ top) / (top @ top) * top
        return unit(axis), unit(top)

    @cached_property
    def trunk(self) -> frozenset[int]:
        """Rows of the joints at which two or more limbs meet, and of all their ancestors."""
        skeleton = self.given
        below = _ways_down(skeleton)
        least = _FORK * size_of(skeleton)
        out: set[int] = set()
        rods = _rods(skeleton)
        for row, children in enumerate(skeleton.children):
            long = [child for child in children if below[child] + skeleton.lengths[child] > least and child not in rods]
            if len(long) > 1:
                out.update(ancestors(skeleton.parents, row))
        return frozenset(out)

    @cached_property
    def still(self) -> frozenset[int]:
        """Rows of joints that the clip never moves, although it moves other joints of the same limb or of the trunk.

        Such joints, for example a hip, are in the file but were not recorded.
        """
        skeleton, groups = self.given, dict[int, list[int]]()
        for row, joint in enumerate(skeleton.joints):
            if joint.kind.v_size and row != self.top:
                limb = self.limb(row)
                groups.setdefault(limb[-1] if limb else -1, []).append(row)
        each = np.ptp(self._motion.q, axis=0)
        out: set[int] = set()
        for rows in groups.values():
            spans = {row: float(each[skeleton.q_slice(row)].max(initial=0.0)) for row in rows}
            if max(spans.values()) > _STILL:
                out.update(row for row, span in spans.items() if span <= _STILL)
        return frozenset(out)

    def limb(self, row: int) -> tuple[int, ...]:
        """Return the rows from a joint up to the trunk, the joint first; empty for a joint of the trunk."""
        rows: list[int] = []
        while row >= 0 and row not in self.trunk and row != self.top:
            rows.append(row)
            row = self.given.parents[row]
        return tuple(rows)

    def weights(self, rows: Sequence[int], limbs: frozenset[int]) -> dict[int, float]:
        """Return the weights, by row, of the terms that keep joints near the clip; the largest weight is 1.

        Args:
            rows: Rows of the joints.
            limbs: Rows of the joints in limbs with goals.
        """
        shoulders = {row for role, row in self.given.role_rows.items() if role.endswith("_shoulder")}
        out = dict.fromkeys(rows, 1.0)
        for row in limbs & out.keys():
            out[row] = LIMB * (_SHOULDER if row in shoulders else 1.0)
        return out


def _ways_down(skeleton: Skeleton) -> Array:
    """Return the length of the longest path from each joint along the bones below it to a tip, (n,), length units."""
    below = np.zeros(len(skeleton))
    for row in range(len(skeleton) - 1, 0, -1):
        above = skeleton.parents[row]
        if above >= 0:
            below[above] = max(below[above], below[row] + skeleton.lengths[row])
    return below


def _rods(skeleton: Skeleton) -> frozenset[int]:
    """Return the rows of joints, such as rods, that lead to a loop; they and all joints below them have no roles."""
    tied = {above for tie in skeleton.loops for row in joints_of(skeleton, tie)
            for above in ancestors(skeleton.parents, row)}  # fmt: skip
    parts = {above for row in skeleton.role_rows.values() for above in ancestors(skeleton.parents, row)}
    return frozenset(tied - parts)


def size_of(skeleton: Skeleton) -> float:
    """Return the length of the longest path along the bones of a body, length units.

    In some files an extra root joint lies far from the body; its distance to the body does not count.
    """
    top = free_root(skeleton.joints, skeleton.parents)
    first = 0 if top is None else top
    while top is not None and len(skeleton.children[first]) == 1:
        first = skeleton.children[first][0]
    return float(_ways_down(skeleton)[first]) or skeleton.size


def _turns_below(motion: Motion, top: int) -> bool:
    """Return whether the free joint at the root never rotates, while the joint below it does.

    Such a root only translates the body. For example, a loader may have added it above the root of the file.
    """
    skeleton, q = motion.skeleton, motion.q
    turn = q[:, skeleton.q_slice(top)][:, 3:]
    if np.abs(turn - (0.0, 0.0, 0.0, 1.0)).max(initial=0.0) > 0.0 or skeleton.joints[top].limit is not None:
        return False
    row = top
    while len(below := skeleton.children[row]) > 0:
        row = below[0]
        if skeleton.joints[row].kind is not Kind.FIXED or len(below) > 1:
            break
    turns = skeleton.joints[row].kind in (Kind.BALL, Kind.FREE)
    return turns and bool(np.ptp(q[:, skeleton.q_slice(row)][:, -4:], axis=0).max(initial=0.0) > _STILL)


def _planted(motion: Motion, names: Sequence[str | int] | None, up: Up, *, asked: bool) -> tuple[PlantedFoot, ...]:
    """Return the feet of a clip with masks of contact; none if the body has no feet or the upward axis is uncertain."""
    skeleton = motion.skeleton
    if len(motion) < 2 or (names is not None and not len(names)):
        return ()
    try:
        found = feet_of(skeleton, names)
        axis = axis_vector(up.certain(motion.name).nearest)
    except (UnsupportedError, InputError):
        if names is not None or asked:
            raise
        return ()
    places = motion.rigid().positions()
    out: list[PlantedFoot] = []
    for foot in found:
        line = ancestors(skeleton.parents, foot.joints[0])
        leg = float(skeleton.lengths[list(line[:2])].sum()) or None
        stands = find_contacts(places[:, list(foot.joints)], axis, motion.fps, leg).any
        out.append(PlantedFoot(foot.joints[0], foot.points, stands))
    return tuple(out)


def _outside(motion: Motion) -> dict[int, Bools]:
    """Return the joints that the clip moves outside their limits: by row, the mask of those frames, (T,)."""
    skeleton, q = motion.skeleton, motion.q
    inside = clamped(skeleton, np.array(q))
    off = np.abs(inside - q) > _OUTSIDE
    out: dict[int, Bools] = {}
    for row, joint in enumerate(skeleton.joints):
        frames: Bools = np.asarray(off[:, skeleton.q_slice(row)].any(axis=1))
        if joint.limit is not None and joint.mimic is None and frames.any():
            out[row] = frames
    return out


def _limits_of_looks(motion: Motion) -> dict[int, Limit]:
    """Return human limits, by row, for joints of trunk, neck and eyes that have no limits, widened to allow the clip.

    The dict is empty if the rest pose of the body does not determine these limits.
    """
    skeleton, roles = motion.skeleton, motion.skeleton.role_rows
    try:
        limited = with_human_limits(skeleton)
    except InputError:
        return {}
    out: dict[int, Limit] = {}
    trunk = itertools.takewhile(lambda row: row != roles["hips"], ancestors(skeleton.parents, roles["head"]))
    eyes = (roles[role] for role in ("left_eye", "right_eye") if role in roles)
    for row in (*trunk, *eyes):
        limit = limited.joints[row].limit
        if skeleton.joints[row].limit is None and limit is not None:
            at = skeleton.q_slice(row)
            wide, _ = widened(limit, motion.q[:, max(at.start, at.stop - 4) : at.stop])
            out |= {} if wide is None else {row: wide}
    return out


def _with_wider_limits(motion: Motion, outside: dict[int, Bools]) -> Skeleton:
    """Return the skeleton with limits that are wide enough for the clip."""
    if not outside:
        return motion.skeleton
    joints = list(motion.skeleton.joints)
    for row in outside:
        at = motion.skeleton.q_slice(row)
        values = motion.q[:, max(at.start, at.stop - 4) : at.stop]
        joints[row] = replace(joints[row], limit=widened(joints[row].limit, values)[0])
    return motion.skeleton.with_joints(joints)
