"""Create the goals of a standing body: planted feet, balance, gaze, and a posture to which the body returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.arguments import check_kind
from synovia.bodies.footing import Foothold
from synovia.bodies.support import footholds, soles, standing_feet, up_of
from synovia.errors import InputError
from synovia.goals import AimGoal, CenterOfMassGoal, ContactGoal, Goal, RestGoal
from synovia.goals.center import hull
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array
from synovia.model.root import free_root
from synovia.model.shapes.world import World
from synovia.model.tree import ancestors

LOWEST: Final = 1000  # priority of the gaze: below all goals of users
_INNER: Final = 0.95  # scale of the support polygon; keeps the centre of mass away from the edges of the soles
_TRUNK: Final = 20.0  # factor of trunk joints in the posture, so that limbs give way first
_ROOT: Final = 20.0  # factor of the root, which tilts and shifts the whole body
_AHEAD: Final = 2.0  # body sizes: distance of the default point to look at


def standing_goals(
    skeleton: Skeleton,
    *,
    pose: Pose | None = None,
    look_at: Any = None,
    balance: bool = True,
    world: World | None = None,
) -> tuple[Goal, ...]:
    """Create goals that keep a body standing while it does something else.

    At priority 0, both feet (or all four) stay where they are in ``pose``, and the centre of mass stays above them. At
    the lowest priority, the head looks at a point, and all joints and the root stay near ``pose``, trunk joints more
    than limb joints. Priorities from 1 are for your own goals. Solve them with ``"full-body"`` and ``root="free"``.

    Your own goals may make the trunk lean. If it leans by 25 degrees or more, ``Solution.explain`` reports the angle.

    With a world, each foot stands on the surface below it, such as a step or a ramp, higher or lower than in ``pose``,
    and the body balances above these places. If less than 60 % of a sole would be on a surface, the foot moves
    horizontally by the shortest displacement that puts it there, at most half its length. Surfaces that are higher
    above a sole than a quarter of the body's size do not count as steps. If nothing is below a foot, it stays where it
    is in ``pose``. A body with a free root (``skeleton.with_root("free")``) is also raised with its feet; a root that
    the solver adds is not.

    The goals are named after the joints of the feet, and ``"balance"``, ``"gaze"`` and ``"posture"``, so ``targets=``
    can move them.

    Args:
        skeleton: The body. Feet and head are recognised by role, name or shape.
        pose: The pose in which the body stands; the rest pose by default.
        look_at: World point (3,) to look at; None for straight ahead, as in ``pose``.
        balance: Whether the centre of mass stays above the feet. This needs masses.
        world: The obstacles on which the feet stand; None to keep the feet where they are in ``pose``.

    Raises:
        InputError: If the feet are unknown, the body does not stand on them, or it has no masses. The message says what
            is missing.

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
                "a body that stands", where=skeleton.name, expected="joints with masses",
                hint="sy.with_body_masses(skeleton) gives it those of an adult; balance=False needs none",
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
            "look_at", where=skeleton.name, expected="a head whose face is known",
            hint="skeleton.with_roles({'head': JOINT}) assigns it",
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
    """Return a pose whose free root is displaced by a world vector."""
    skeleton, q = pose.skeleton, pose.q.copy()
    joint, parent = skeleton.joints[free], skeleton.parents[free]
    turn = (np.eye(3) if parent < 0 else pose.matrix(parent)) @ joint.rest[:3, :3]
    first = skeleton.q_slice(free).start
    q[first : first + 3] += turn.T @ rise
    return Pose(skeleton, q)


def support(
    skeleton: Skeleton, feet: list[int], up: Array, pose: Pose | None = None, holds: Sequence[Foothold] = ()
) -> Array:
    """Return the support polygon of the centre of mass: the outline of the soles, slightly shrunk, (n, 3)."""
    points = soles(skeleton, feet, up, pose, holds)
    corners = hull(points, up) + float((points @ up).mean()) * up
    middle = corners.mean(axis=0)
    return middle + _INNER * (corners - middle)


def posture_of(skeleton: Skeleton) -> dict[str | int, float]:
    """Return the weight factor of each movable joint in the posture goal of a standing body."""
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
    """Return the angle between the trunks of a body in two poses, radians; None if the trunk is unknown.

    The trunk is the line from the hips to the neck. Without a neck, it is the line to the highest joint from the child
    of the hips that leads to it.

    Args:
        pose: A pose.
        reference: The posture for comparison; its skeleton may have no moving root.
    """
    lines = [_trunk(pose), _trunk(reference)]
    if lines[0] is None or lines[1] is None:
        return None
    one, other = lines[0], lines[1]
    return float(np.arctan2(np.linalg.norm(np.cross(one, other)), one @ other))


def _trunk(pose: Pose) -> Array | None:
    """Return the vector along the trunk, (3,); None if it is unknown."""
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


def long_limbs(skeleton: Skeleton, feet: Sequence[int]) -> list[int]:
    """Return the tips of up to two long limbs that contain no foot and have at most half of their joints in common."""
    chains: list[list[int]] = []
    for row in range(len(skeleton)):
        if skeleton.children[row]:
            continue
        chain = ancestors(skeleton.parents, row)
        moves = any(skeleton.joints[at].kind not in (Kind.FIXED, Kind.FREE) for at in chain)
        if moves and not set(chain) & set(feet):
            chains.append(chain)
    chosen: list[list[int]] = []
    for chain in sorted(chains, key=len, reverse=True):
        if all(len(set(chain) & set(other)) <= 0.5 * len(chain) for other in chosen):
            chosen.append(chain)
    return [chain[0] for chain in chosen[:2]]
