"""The goals with which a body stands: planted feet, balance, a gaze, and a posture to which it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.arguments import check_kind
from synovia.bodies.footing import Foothold
from synovia.bodies.support import footholds, soles, standing_feet, up_of
from synovia.errors import InputError
from synovia.goals import AimGoal, CenterOfMassGoal, ContactGoal, Goal, RestGoal
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.root import free_root
from synovia.model.shapes.world import World
from synovia.model.tree import ancestors

LOWEST: Final = 1000  # priority of the gaze: below whatever a user asks for
_INNER: Final = 0.95  # part of the soles that balance may use, so that the body never stands on their very edge
_TRUNK: Final = 20.0  # factor of the joints of the trunk in the posture: limbs give way first
_ROOT: Final = 20.0  # and of the root, which tilts and shifts the whole body
_AHEAD: Final = 2.0  # sizes of the body: where the eyes look if nothing is given


def standing_goals(
    skeleton: Skeleton,
    *,
    pose: Pose | None = None,
    look_at: Any = None,
    balance: bool = True,
    world: World | None = None,
) -> tuple[Goal, ...]:
    """Return the goals with which a body stands while it does something else.

    At priority 0, both feet (or all four) stay where ``pose`` has them, and the centre of mass stays above them. Below
    everything else, the head looks at a point, and all joints and the root stay near ``pose``; those of the trunk more
    than those of the limbs. Priorities from 1 are for your own goals. Solve them by ``"full-body"``, with
    ``root="free"``.

    Goals of your own may make the trunk lean. If it leans by 25 degrees or more, ``Solution.explain`` says by how much.

    With a world, each foot stands on what is below it: its sole lies on a step or a ramp, as far up or down as it has
    to go, and the balance is above these places. A foot of which less than 60 % would be on a step moves to where it
    is, by the shortest way, of at most half its length. A surface that is higher above a sole than a quarter of the
    body's size is no step. Where nothing is below a foot, it stays where ``pose`` has it. A body with a free root
    (``skeleton.with_root("free")``) is also upright above these places; the root that a solve adds stays low.

    The goals are named after the joints of the feet, ``"balance"``, ``"gaze"`` and ``"posture"``, so ``targets=`` can
    move them.

    Args:
        skeleton: The body. Its feet and its head are known by role, name or shape.
        pose: The pose in which it stands; the rest pose by default.
        look_at: World point (3,) to look at; None for straight ahead, as in ``pose``.
        balance: Whether the centre of mass stays above the feet. This needs masses.
        world: What the feet stand on; None for where ``pose`` has them.

    Raises:
        InputError: If the feet are not known, the body does not stand on them, or it has no masses. The message says
            what is missing.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> goals = [*sy.standing_goals(body), sy.PositionGoal("left_hand", (0.3, 1.1, 0.5), priority=1)]
        >>> sy.solve(body, goals, "full-body", root="free").reached
        True
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    if pose is not None:
        check_kind("pose", pose, Pose, "skeleton.rest_pose() is one")
        if pose.skeleton.joint_names != skeleton.joint_names:
            raise InputError("skeleton of the pose", value=pose.skeleton, expected=repr(skeleton))
    feet = standing_feet(skeleton)
    stance = pose or skeleton.rest_pose()
    up = up_of(skeleton, stance)
    holds: list[Foothold] = []
    if world is not None:
        check_kind("world", world, World, "sy.World({...}) is one")
        holds = footholds(skeleton, feet, up, stance, world.matched(skeleton))
    moves = [hold.motion for hold in holds] or [np.eye(4)] * len(feet)
    at = [stance.position(row) for row in feet]
    rise = np.mean([(move[:3, :3] @ p + move[:3, 3] - p) @ up for p, move in zip(at, moves, strict=True)]) * up
    free = free_root(skeleton.joints, skeleton.parents)
    if free is not None and rise.any():
        pose = _raised(stance, free, rise)
    goals: list[Goal] = [
        ContactGoal(skeleton.address(row), transform=move @ stance.transform(row), priority=0)
        for row, move in zip(feet, moves, strict=True)
    ]
    if balance:
        if not any(joint.mass > 0.0 for joint in skeleton.joints):
            raise InputError(
                "a body that stands", where=skeleton.name, value="no masses", expected="joints with masses",
                hint="sy.with_body_masses(skeleton) gives it those of an adult; balance=False does without",
            )  # fmt: skip
        goals.append(
            CenterOfMassGoal(polygon=support(skeleton, feet, up, stance, holds), up=up, priority=0, name="balance")
        )
    head, face = skeleton.role_rows.get("head"), skeleton.face
    if head is not None and face is not None:
        ahead = rise + stance.position(head) + _AHEAD * skeleton.size * (stance.matrix(head) @ face)
        point = ahead if look_at is None else look_at
        goals.append(AimGoal(skeleton.address(head), point, priority=LOWEST, name="gaze", roll="free"))
    elif look_at is not None:
        raise InputError(
            "look_at", where=skeleton.name, value="no head whose face is known", expected="a joint for head",
            hint="skeleton.with_roles({'head': JOINT}) says which it is",
        )  # fmt: skip
    goals.append(
        RestGoal(
            pose,
            joints=posture_of(skeleton),
            root=_ROOT,
            name="posture",
        )
    )
    return tuple(goals)


def _raised(pose: Pose, free: int, rise: Array) -> Pose:
    """Return a pose whose free root is moved by a way in the world."""
    skeleton, q = pose.skeleton, pose.q.copy()
    joint, parent = skeleton.joints[free], skeleton.parents[free]
    turn = (np.eye(3) if parent < 0 else pose.matrix(parent)) @ joint.rest[:3, :3]
    first = skeleton.q_slice(free).start
    q[first : first + 3] += turn.T @ rise
    return Pose(skeleton, q)


def support(
    skeleton: Skeleton, feet: list[int], up: Array, pose: Pose | None = None, holds: Sequence[Foothold] = ()
) -> Array:
    """Return the polygon above which the centre of mass stays: the corners of the soles, a little inwards, (n, 3)."""
    corners = soles(skeleton, feet, up, pose, holds)
    middle = corners.mean(axis=0)
    return middle + _INNER * (corners - middle)


def posture_of(skeleton: Skeleton) -> dict[str | int, float]:
    """Return the factor of each joint that turns in the posture of a standing body."""
    found = skeleton.role_rows
    tops = [found[role] for role in ("chest", "upper_chest", "neck") if role in found]
    trunk = {row for top in tops for row in ancestors(skeleton.parents, top)}
    trunk -= {found[role] for role in ("neck",) if role in found}
    out: dict[str | int, float] = {}
    for row, joint in enumerate(skeleton.joints):
        if joint.kind not in (Kind.FIXED, Kind.FREE):
            out[row] = _TRUNK if row in trunk else 1.0
    return out


def lean_of(pose: Pose, reference: Pose) -> float | None:
    """Return the angle between the trunk of a body in two poses, radians; None if it has no feet and no trunk.

    The trunk is the line from the hips to the neck. On a body without a neck, it is the line from what carries its top
    to this top.

    Args:
        pose: A pose.
        reference: The posture with which it is compared; its skeleton may have no root that moves.
    """
    lines = [_trunk(pose), _trunk(reference)]
    if lines[0] is None or lines[1] is None:
        return None
    one, other = lines[0], lines[1]
    return float(np.arctan2(np.linalg.norm(np.cross(one, other)), one @ other))


def _trunk(pose: Pose) -> Array | None:
    """Return the line along the trunk, (3,); None if it is not known."""
    skeleton = pose.skeleton
    found, places = skeleton.role_rows, skeleton.rest_pose().positions
    hips, neck = found.get("hips"), found.get("neck")
    if hips is None:
        return None
    if neck is not None:
        return pose.position(neck) - pose.position(hips)
    try:
        up = up_of(skeleton)
    except InputError:
        return None
    line = ancestors(skeleton.parents, int(np.argmax(places @ up)))
    if hips not in line[2:]:
        return None
    return pose.position(line[0]) - pose.position(line[line.index(hips) - 1])
