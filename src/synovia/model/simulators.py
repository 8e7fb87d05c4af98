"""Joint values in the layouts of MuJoCo and Pinocchio, of policies and controllers, and of robots in files.

``q`` of a free joint is relative to its rest place; MuJoCo's ``qpos`` has the pose of the body in the world, and the
free-flyer at the root of a Pinocchio model has the pose of the first link. Quaternions are wxyz in MuJoCo, and xyzw in
Pinocchio and ``q``. Pinocchio stores the cosine and the sine of a continuous joint, and of the angle of a planar joint.
MuJoCo has the order of the file; Pinocchio sorts children by the names of their joints.

References:
    https://mujoco.readthedocs.io/en/stable/modeling.html (coordinate frames, ``qpos``)
    https://gepettoweb.laas.fr/doc/stack-of-tasks/pinocchio/master/doxygen-html (joint models)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, cast, overload

import numpy as np

from synovia.arguments import ChecksArguments, check_kind, warn
from synovia.errors import InputError, UnsupportedError, did_you_mean
from synovia.model import Kind, Pose, Skeleton
from synovia.model.anatomy.names import words_of
from synovia.model.geometry import (
    Array,
    as_numbers,
    dimensions,
    frames_to_transforms,
    matrix_to_quat,
    quat_to_matrix,
    rigid,
    rotation_between,
    same_side,
)
from synovia.model.motion import Motion
from synovia.model.pose import world_frames
from synovia.model.root import free_root, root_of
from synovia.model.tree import ancestors, unused_name
from synovia.text import counted, listed

Layout = Literal["mujoco", "pinocchio"]
_WXYZ: Final = [3, 0, 1, 2]  # indices of w, x, y, z in a quaternion xyzw
_XYZW: Final = [1, 2, 3, 0]
_SLACK: Final = 1e-2  # largest deviation of a quaternion from length 1, because simulators and single precision round
_STILL: Final = 1e-9  # radians or length units: largest deviation of a joint or body at rest
_OFF: Final = 1e-6  # radians or length units: smaller differences of a mimic joint from its leader are not reported
_MUJOCO_KINDS: Final = (Kind.FREE, Kind.BALL, Kind.SLIDE, Kind.HINGE)  # kinds in the order of MuJoCo's mjtJoint
_NUMBERS: Final = {"value": 1, "angle": 2, "planar": 4, "ball": 4, "free": 7, "body": 7}


class _Part(NamedTuple):
    """The position of one joint's values in a layout.

    Args:
        kind: ``"value"`` of a hinge or slide; ``"angle"`` as cosine and sine; ``"planar"`` two slides, cosine and sine;
            ``"ball"`` a quaternion; ``"free"`` position and quaternion relative to rest; ``"body"`` position and
            quaternion of a body.
        at: Index of the first value in the layout.
        rows: Rows of the joint; for ``"body"``, the row of the body.
        origin: Frame (4, 4) relative to which the pose of a body is given.
    """

    kind: str
    at: int
    rows: tuple[int, ...]
    origin: Array | None = None


class _Parts(NamedTuple):
    """A layout: number of values, parts, and whether quaternions are wxyz."""

    size: int
    joints: list[_Part]
    wxyz: bool


def to_qpos(content: Pose | Motion, model: Any) -> Array:
    """Convert a pose or a motion to joint values of MuJoCo (``qpos``) or Pinocchio (``q``).

    Joints are matched by name, and assumed to have the same zeros, as in models of one file. A free joint of the model
    gets the pose of its body in the world.

    Args:
        content: The pose or the motion.
        model: A ``mujoco.MjModel`` or a ``pinocchio.Model``. Or, without the package, the layout of a model of the
            skeleton's own file: ``"mujoco"``, or ``"pinocchio"`` for a URDF (hinges without limits are continuous, and
            mimic joints have values, as they have by default).

    Returns:
        Joint values, (nq,) for a pose, (T, nq) for a motion.

    Raises:
        InputError: If a joint of the model is not in the skeleton, or a joint of the skeleton that the model lacks is
            not at rest.
        UnsupportedError: If a joint of the model has a kind that skeletons do not support.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("quadruped").with_root("free")
        >>> sy.to_qpos(body.rest_pose(), "mujoco")[3:7].tolist()  # the rotation of the base, w x y z
        [1.0, 0.0, 0.0, 0.0]
    """
    check_kind("content", content, (Pose, Motion), "sy.Pose(skeleton, q) and sy.Motion(skeleton, q, fps) take arrays")
    if isinstance(content, Pose):
        content.check_finite()
    skeleton, values = content.skeleton, np.atleast_2d(content.q)
    parts = _parts(skeleton, model)
    _check_rest(skeleton, values, parts)
    frames: Array | None = None
    out = np.zeros((len(values), parts.size))
    for part in parts.joints:
        columns = slice(part.at, part.at + _NUMBERS[part.kind])
        if part.origin is not None:
            frames = world_frames(skeleton, np.array(values)) if frames is None else frames
            pose = np.linalg.inv(part.origin) @ frames_to_transforms(frames[:, part.rows[0]])
            quats = same_side(matrix_to_quat(pose[:, :3, :3]))
            out[:, columns] = np.concatenate([pose[:, :3, 3], quats], axis=1)
        else:
            own = np.concatenate([values[:, skeleton.q_slice(row)] for row in part.rows], axis=1)
            turned = [np.cos(own[:, -1:]), np.sin(own[:, -1:])]
            out[:, columns] = (
                np.concatenate([own[:, :-1], *turned], axis=1) if part.kind in ("angle", "planar") else own
            )
        if parts.wxyz and part.kind in ("ball", "free", "body"):
            last = slice(columns.stop - 4, columns.stop)
            out[:, last] = out[:, last][:, _WXYZ]
    return out if isinstance(content, Motion) else out[0]


@overload
def from_qpos(skeleton: Skeleton, qpos: Any, model: Any) -> Pose: ...
@overload
def from_qpos(skeleton: Skeleton, qpos: Any, model: Any, *, fps: float, name: str = ...) -> Motion: ...
def from_qpos(
    skeleton: Skeleton, qpos: Any, model: Any, *, fps: float | None = None, name: str = "motion"
) -> Pose | Motion:
    """Convert joint values of MuJoCo (``qpos``) or Pinocchio (``q``) to a pose or a motion.

    Args:
        skeleton: The skeleton. If it has no free root and the values move the base, it gets one. Joints that the model
            lacks are at rest; mimic joints follow their leaders.
        qpos: Joint values, (nq,) for a pose, (T, nq) for a motion.
        model: As in ``to_qpos``.
        fps: Frames per second of a motion.
        name: Name of a motion.

    Returns:
        A pose without ``fps``, else a motion. If values of mimic joints differ by more than 1e-6 from those that follow
        from their leaders, a ``UserWarning`` for a pose and the notes of a motion report the difference.

    Raises:
        InputError: If a joint of the model is not in the skeleton, or the values have the wrong shape or quaternions
            that are not of unit length.
        UnsupportedError: If a joint of the model has a kind that skeletons do not support.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("quadruped")
        >>> pose = body.random_pose(1)
        >>> again = sy.from_qpos(body, sy.to_qpos(pose, "pinocchio"), "pinocchio")
        >>> bool(abs(again.positions - pose.positions).max() < 1e-12)
        True
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    rooted = _rooted(skeleton, model)
    parts = _parts(rooted, model)
    moves = fps is not None
    if dimensions(qpos) != 1 + moves:
        expected = f"shape (T, {parts.size}) and fps, or shape ({parts.size},) without fps"
        raise InputError("qpos", value=np.shape(qpos), expected=expected)
    values = np.atleast_2d(as_numbers(qpos, (-1, parts.size) if moves else (parts.size,), "qpos"))
    q = np.tile(rooted.rest_q, (len(values), 1))
    for part in parts.joints:
        own = values[:, part.at : part.at + _NUMBERS[part.kind]].copy()
        if part.kind in ("ball", "free", "body"):
            own[:, -4:] = _units(own[:, -4:][:, _XYZW] if parts.wxyz else own[:, -4:], rooted, part.rows[-1])
        if part.kind in ("angle", "planar"):
            angles = np.arctan2(own[:, -1], own[:, -2])
            own = np.concatenate([own[:, :-2], (np.unwrap(angles) if moves else angles)[:, None]], axis=1)
        rows = part.rows
        if part.origin is not None:
            body, poses = part.rows[0], part.origin @ _poses(own)
            free = _free_above(rooted, body, poses)
            if free is None:
                continue
            rows, own = (free,), floating(rooted, body, poses, free)
            own[:, 3:] = same_side(own[:, 3:])
        at = 0
        for row in rows:
            place = rooted.q_slice(row)
            q[:, place] = own[:, at : at + place.stop - place.start]
            at += place.stop - place.start
    notes = _follow(rooted, q, [row for part in parts.joints for row in part.rows if part.origin is None])
    body, q = mounted(skeleton, rooted, q, _STILL)
    if fps is not None:
        return Motion(body, q, fps, name=name, notes=notes)
    for note in notes:  # a warning, because a pose has no notes
        warn(note)
    return Pose(body, q[0])


def mujoco_names(model: Any) -> tuple[list[str], list[str]]:
    """Return the names of the bodies and joints of a MuJoCo model, with generated names for unnamed ones."""
    bodies: list[str] = [model.body(b).name for b in range(model.nbody)]
    joints: list[str] = [model.joint(j).name for j in range(model.njnt)]
    taken = {name for name in (*joints, *bodies) if name}
    bodies = [name or unused_name(f"body{b}", taken) for b, name in enumerate(bodies)]
    return bodies, [
        name or unused_name(f"{bodies[int(model.jnt_bodyid[j])]}_joint", taken) for j, name in enumerate(joints)
    ]


def _parts(skeleton: Skeleton, model: Any) -> _Parts:
    """Return the layout of a model, mapped to the rows of a skeleton."""
    if isinstance(model, str):
        if model not in ("mujoco", "pinocchio"):
            raise InputError("model", value=model, expected="a MjModel, a pinocchio.Model, 'mujoco' or 'pinocchio'")
        return _own_parts(skeleton, model)
    if hasattr(model, "jnt_qposadr"):
        return _mujoco_parts(skeleton, model)
    if hasattr(model, "jointPlacements"):
        return _pinocchio_parts(skeleton, model)
    kind: type[object] = type(model)  # pyright: ignore[reportUnknownVariableType]  # it may be anything
    raise InputError("model", value=kind, expected="a MjModel, a pinocchio.Model, 'mujoco' or 'pinocchio'")


def _own_parts(skeleton: Skeleton, layout: Layout) -> _Parts:
    """Return the layout of a model of the skeleton's own file; for Pinocchio, this file is a URDF."""
    mujoco = layout == "mujoco"
    rows = range(len(skeleton)) if mujoco else _by_name(skeleton)
    joints: list[_Part] = []
    at = 0
    planar = {} if mujoco else _planar(skeleton)
    inner = {row for three in planar.values() for row in three[:2]}
    for row in rows:
        kind = skeleton.joints[row].kind
        if kind is Kind.FIXED or row in inner:
            continue
        if row in planar:
            part = _planar_part(skeleton, at, planar[row])
        elif kind is Kind.FREE:
            above = [up for up in ancestors(skeleton.parents, row)[1:] if skeleton.joints[up].kind is not Kind.FIXED]
            if mujoco and above:
                raise UnsupportedError("MuJoCo has no free joint below another", where=skeleton.joint_names[row])
            moved = row if skeleton.joints[row].body is not None else base_of(skeleton)
            part = _Part("body", at, (moved,), np.eye(4)) if mujoco else _Part("free", at, (row,))
        elif kind is Kind.HINGE and not mujoco and skeleton.joints[row].limit is None:
            part = _Part("angle", at, (row,))
        else:
            part = _Part("ball" if kind is Kind.BALL else "value", at, (row,))
        joints.append(part)
        at += _NUMBERS[part.kind]
    return _Parts(at, joints, wxyz=mujoco)


def _by_name(skeleton: Skeleton) -> list[int]:
    """Return the rows in depth-first order, with children sorted by the names of their joints."""
    planar = {row: three[2] for three in _planar(skeleton).values() for row in three}
    rows: list[int] = []
    waiting = [row for row in reversed(range(len(skeleton))) if skeleton.parents[row] < 0]
    while waiting:
        rows.append(row := waiting.pop())
        below = sorted(skeleton.children[row], key=lambda child: skeleton.joint_names[planar.get(child, child)])
        waiting += reversed(below)
    return rows


def _planar(skeleton: Skeleton) -> dict[int, tuple[int, int, int]]:
    """Return the three rows of each planar joint of a URDF; the key is the last row."""
    rows = _by_joint(skeleton)
    found: dict[int, tuple[int, int, int]] = {}
    for last, joint in enumerate(skeleton.joints):
        y = skeleton.parents[last]
        x = skeleton.parents[y] if y >= 0 else -1
        three = (Kind.SLIDE, Kind.SLIDE, Kind.HINGE)
        if x >= 0 and tuple(skeleton.joints[row].kind for row in (x, y, last)) == three:
            names = (f"{joint.name}_x", f"{joint.name}_y")
            bare = skeleton.joints[x].body is None and skeleton.joints[y].body is None
            if bare and (rows.get(names[0]), rows.get(names[1])) == (x, y):
                found[last] = (x, y, last)
    return found


def _mujoco_parts(skeleton: Skeleton, model: Any) -> _Parts:
    """Return the layout of a MuJoCo model."""
    bodies, names = mujoco_names(model)
    joints: list[_Part] = []
    for j, name in enumerate(names):
        kind, at = _MUJOCO_KINDS[int(model.jnt_type[j])], int(model.jnt_qposadr[j])
        if kind is Kind.FREE:
            joints.append(_Part("body", at, (_body(skeleton, bodies[int(model.jnt_bodyid[j])], name),), np.eye(4)))
        else:
            row = _row(skeleton, name, (kind,))
            joints.append(_Part("ball" if kind is Kind.BALL else "value", at, (row,)))
    return _Parts(int(model.nq), joints, wxyz=True)


def _pinocchio_parts(skeleton: Skeleton, model: Any) -> _Parts:
    """Return the layout of a Pinocchio model."""
    joints: list[_Part] = []
    planar = _planar(skeleton)
    for number, name in enumerate(model.names):
        if number == 0:  # joint 0 of Pinocchio is the universe
            continue
        joint = model.joints[number]
        kind = str(joint.shortname()).removeprefix("JointModel")
        at, size = int(joint.idx_q), int(joint.nq)
        if kind == "Mimic" or size == 0:
            continue
        if kind == "FreeFlyer":
            joints.append(_free_flyer(skeleton, model, number, at))
        elif kind == "Planar":
            joints.append(_planar_part(skeleton, at, planar.get(_row(skeleton, name, (Kind.HINGE,)))))
        elif kind == "Spherical":
            joints.append(_Part("ball", at, (_row(skeleton, name, (Kind.BALL,)),)))
        elif size == 2 and int(joint.nv) == 1:
            joints.append(_Part("angle", at, (_row(skeleton, name, (Kind.HINGE,)),)))
        elif size == 1:
            joints.append(_Part("value", at, (_row(skeleton, name, (Kind.HINGE, Kind.SLIDE)),)))
        else:
            raise UnsupportedError(
                f"joint {name!r} of the model is a {kind}",
                where=skeleton.name,
                expected="revolute, prismatic, planar, spherical or free-flyer joints",
            )
    return _Parts(int(model.nq), joints, wxyz=False)


def _free_flyer(skeleton: Skeleton, model: Any, number: int, at: int) -> _Part:
    """Return the part of a Pinocchio free-flyer: of kind "body" if it is at the root, else of kind "free"."""
    name = model.names[number]
    if int(model.parents[number]) > 0:
        return _Part("free", at, (_row(skeleton, name, (Kind.FREE,)),))
    rows = _by_body(skeleton)
    links = [frame for frame in model.frames if int(frame.parentJoint) == number and "BODY" in str(frame.type)]
    own = [frame.name for frame in links if np.array_equal(frame.placement.homogeneous, np.eye(4))]
    carried = next((rows[link] for link in own if link in rows), None)
    origin = np.array(model.jointPlacements[number].homogeneous)
    return _Part("body", at, (base_of(skeleton) if carried is None else carried,), origin)


def _planar_part(skeleton: Skeleton, at: int, rows: tuple[int, int, int] | None) -> _Part:
    """Return the part of a planar joint; in Pinocchio, it moves in the xy plane."""
    if rows is None or not np.array_equal(skeleton.joints[rows[2]].axis, (0.0, 0.0, 1.0)):
        name = "a planar joint" if rows is None else f"joint {skeleton.joint_names[rows[2]]!r}"
        raise UnsupportedError(f"{name} does not move in the xy plane", where=skeleton.name, expected="the axis 0 0 1")
    return _Part("planar", at, rows)


def _by_joint(skeleton: Skeleton) -> dict[str, int]:
    """Return the row of each joint by its own name."""
    return {name: row for row, name in enumerate(skeleton.joint_names)}


def _by_body(skeleton: Skeleton) -> dict[str, int]:
    """Return the row of the frame of each body."""
    return {joint.body: row for row, joint in enumerate(skeleton.joints) if joint.body is not None}


def _row(skeleton: Skeleton, name: str, kinds: Sequence[Kind]) -> int:
    """Return the row of a joint of the model in the skeleton.

    Raises:
        InputError: If the skeleton has no such joint, or the joint has another kind.
    """
    rows = _by_joint(skeleton)
    if name not in rows:
        raise InputError(
            f"joint {name!r} of the model is not in the skeleton",
            where=skeleton.name,
            hint=f"load the skeleton from the file of the model. {did_you_mean(name, rows)}",
        )
    kind = skeleton.joints[rows[name]].kind
    if kind not in kinds:
        expected = " or ".join(each.name for each in kinds)
        raise InputError(
            f"joint {name!r}", where=skeleton.name, value=kind.name, expected=f"{expected} as in the model"
        )
    return rows[name]


def _body(skeleton: Skeleton, body: str, joint: str) -> int:
    """Return the row of a body that a free joint of the model carries."""
    rows = _by_body(skeleton)
    if body not in rows:
        raise InputError(
            f"body {body!r} of the model's free joint {joint!r} is not in the skeleton",
            where=skeleton.name,
            hint=f"load the skeleton from the file of the model. {did_you_mean(body, rows)}",
        )
    return rows[body]


def _free_above(skeleton: Skeleton, row: int, poses: Array) -> int | None:
    """Return the row of the free joint that moves a body to poses (T, 4, 4); None if these are the body's rest pose.

    Raises:
        InputError: If another joint moves the body, or no free joint does.
    """
    moving = [up for up in ancestors(skeleton.parents, row) if skeleton.joints[up].kind is not Kind.FIXED]
    if len(moving) == 1 and skeleton.joints[moving[0]].kind is Kind.FREE:
        return moving[0]
    if not moving and np.abs(poses - skeleton.rest_pose().transform(row)).max() <= _STILL * max(1.0, skeleton.size):
        return None
    raise InputError(
        f"body of joint {skeleton.joint_names[row]!r} is free in the model",
        where=skeleton.name,
        value=[skeleton.joint_names[up] for up in moving],
        expected="one free joint that moves it",
        hint="skeleton.with_root('free') adds one to a skeleton with a fixed base",
    )


def _poses(values: Array) -> Array:
    """Return the transforms (T, 4, 4) of positions and quaternions xyzw, (T, 7)."""
    poses = np.tile(np.eye(4), (len(values), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = quat_to_matrix(values[:, 3:]), values[:, :3]
    return poses


def _rooted(skeleton: Skeleton, model: Any) -> Skeleton:
    """Return the skeleton with a free root, if the first joint of the model is free and the skeleton is fixed."""
    if isinstance(model, str) or any(joint.kind is Kind.FREE for joint in skeleton.joints):
        return skeleton
    if hasattr(model, "jnt_type"):
        free = 0 in np.asarray(model.jnt_type)
    else:
        free = any("FreeFlyer" in joint.shortname() for joint in getattr(model, "joints", ()))
    return skeleton.with_root("free") if free else skeleton


def _check_rest(skeleton: Skeleton, values: Array, parts: _Parts) -> None:
    """Raise an error if joints that the model lacks are neither at rest nor mimic joints."""
    covered: set[int] = {row for row, joint in enumerate(skeleton.joints) if joint.mimic is not None}
    for part in parts.joints:
        covered.update(part.rows if part.origin is None else ancestors(skeleton.parents, part.rows[0]))
    for row in range(len(skeleton)):
        place = skeleton.q_slice(row)
        off = np.abs(values[:, place] - skeleton.rest_q[place]).max(initial=0.0)
        if row not in covered and off > _STILL:
            root = "; model and skeleton need the same root" if root_of([skeleton.joint_names[row]]) else ""
            raise InputError(
                f"joint {skeleton.joint_names[row]!r} moves, and the model has no such joint{root}",
                where=skeleton.name,
                expected="a joint at rest",
            )


def _units(quats: Array, skeleton: Skeleton, row: int) -> Array:
    """Normalize quaternions (T, 4), and raise an error if a length is far from 1."""
    lengths = np.linalg.norm(quats, axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) < _SLACK))
    if len(wrong):
        raise InputError(
            f"qpos of joint {skeleton.joint_names[row]!r}",
            value=quats[wrong[0]].tolist(),
            expected="a unit quaternion",
        )
    return quats / lengths[:, None]


def _follow(skeleton: Skeleton, q: Array, given: Iterable[int]) -> Iterable[str]:
    """Compute mimic joints of q in place; return a note if the values of given joints (rows) differed."""
    before = q.copy()
    skeleton.follow(q)
    off = np.abs(q - before).max(0, initial=0.0)
    moved = {skeleton.joint_names[row]: float(off[skeleton.q_slice(row)].max(initial=0.0)) for row in given}
    lost = {name: most for name, most in moved.items() if most > _OFF}
    if not lost:
        return ()
    most = max(lost.values())
    return (
        f"Mimic joints follow their leaders; values of {listed(list(lost))}, up to {most:.2g} away, were not kept.",
    )


Named = Literal["mujoco", "unitree", "isaac", "lerobot"]
_NAMED: Final = ("mujoco", "unitree", "isaac", "lerobot")
_SCALAR: Final = (Kind.HINGE, Kind.SLIDE)
_JOINT, _IN_PARENT, _TENDON = 0, 1, 3  # values of MuJoCo's mjtTrn for transmissions
_AFFINE: Final = 1  # value of MuJoCo's mjtBias for position actuators
_OF_JOINT: Final = 1  # value of MuJoCo's mjtWrap for a fixed tendon


class JointOrder(ChecksArguments):
    """The order and units of joint values in a simulator, a policy or a controller.

    Args:
        skeleton: The robot.
        order: ``"isaac"`` (Isaac Lab: the joints nearest to the base first), ``"mujoco"`` or ``"unitree"`` (limb by
            limb, as in the file), ``"lerobot"`` (the same in degrees, without mimic joints; joints named "gripper" from
            0 to 100 between their limits, as motors with the norm mode ``RANGE_0_100``), the names of the joints in any
            other order, or a ``mujoco.MjModel``, for its controls (``data.ctrl``).
        degrees: Whether hinges have degrees; None for radians, and degrees with ``"lerobot"``.

    Attributes:
        skeleton: The robot.
        names: Name of the joint or actuator of each value.

    Raises:
        InputError: If there is no such order, a name is repeated, or a joint of the model is not in the skeleton.
        UnknownNameError: If a joint does not exist.
        UnsupportedError: If a joint has several values, or an actuator does not hold a position.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> order = sy.skeletons.JointOrder(arm, ["joint7", "joint1"], degrees=True)
        >>> order.values(sy.Pose(arm, {"joint1": 0.5})).round(3)
        array([ 0.   , 28.648])
    """

    def __init__(self, skeleton: Skeleton, order: Named | Sequence[str] | Any, *, degrees: bool | None = None) -> None:
        """Find the joints of the order."""
        self.skeleton = skeleton
        controls = hasattr(order, "actuator_trntype")
        if controls:
            names, rows = _controls(skeleton, order)
        else:
            names, rows = _joints(skeleton, order)
        self.names: tuple[str, ...] = tuple(names)
        in_degrees = order == "lerobot" if degrees is None and isinstance(order, str) else bool(degrees)
        if controls and in_degrees:
            raise InputError("degrees", value=degrees, expected="None for a MjModel, whose actuators have units")
        self._matrix, self._offset = np.zeros((skeleton.nq, len(rows))), np.zeros(len(rows))
        for k, (parts, offset) in enumerate(rows):
            self._offset[k] = offset
            for row, factor in parts:
                percent = order == "lerobot" and _is_gripper(skeleton, row)
                turns = in_degrees and not percent and skeleton.joints[row].kind is Kind.HINGE
                self._matrix[skeleton.q_slice(row).start, k] += factor * (float(np.degrees(1.0)) if turns else 1.0)
        self._alone = [parts[0][0] if len(parts) == 1 else None for parts, _ in rows]

    def __repr__(self) -> str:
        """Return the robot and the number of values."""
        return f"JointOrder({self.skeleton.name!r}, {counted(len(self.names), 'value')})"

    def values(self, content: Pose | Motion | Any) -> Array:
        """Return joint values in this order: (n,) for a pose or q (nq,), (T, n) for a motion or q (T, nq).

        Raises:
            InputError: If the pose belongs to another skeleton, or q has another shape.
        """
        if isinstance(content, Pose | Motion):
            if content.skeleton.joint_names != self.skeleton.joint_names:
                raise InputError("pose", value=content.skeleton.name, expected=f"a pose of {self.skeleton.name!r}")
            q = content.q
        else:
            shape = (-1, self.skeleton.nq) if dimensions(content) == 2 else (self.skeleton.nq,)
            q = as_numbers(content, shape, "q")
        out: Array = q @ self._matrix + self._offset
        return out

    def pose(self, values: Any, start: Pose | None = None) -> Pose:
        """Convert values in this order to a pose.

        Args:
            values: The values, (n,).
            start: Pose that gives the values of other joints; None for the rest pose. Mimic joints follow.

        Raises:
            InputError: If the number of values differs.
            UnsupportedError: If a value belongs to several joints, such as that of an actuator with a tendon.
        """
        given = as_numbers(values, (len(self.names),), "values")
        if None in self._alone:
            several = [name for name, row in zip(self.names, self._alone, strict=True) if row is None]
            raise UnsupportedError(f"{listed(several)} moves several joints", where=self.skeleton.name)
        q = (self.skeleton.rest_q if start is None else start.q).copy()
        for k, row in enumerate(cast("list[int]", self._alone)):
            at = self.skeleton.q_slice(row).start
            q[at] = (given[k] - self._offset[k]) / self._matrix[at, k]
        return Pose(self.skeleton, self.skeleton.follow(q))


_Row = tuple[list[tuple[int, float]], float]  # joints with their factors, and a constant, of a linear function


def _joints(skeleton: Skeleton, order: Any) -> tuple[list[str], list[_Row]]:
    """Return the names of the values of an order, and each value as a linear function of joint values."""
    where = skeleton.name
    if isinstance(order, str):
        if order not in _NAMED:
            raise InputError("order", value=order, expected=f"{listed(_NAMED)}, names of joints, or a MjModel")
        rows = robot_of(skeleton, "breadth" if order == "isaac" else "depth", where).joints
        if order == "lerobot":
            rows = [row for row in rows if skeleton.joints[row].mimic is None]
        percent = {row: _percent(skeleton, row) for row in rows if order == "lerobot" and _is_gripper(skeleton, row)}
        scaled = [percent.get(row, (1.0, 0.0)) for row in rows]
        found = [([(row, factor)], offset) for row, (factor, offset) in zip(rows, scaled, strict=True)]
        return [skeleton.joint_keys[row] for row in rows], found
    if not isinstance(order, Sequence) or not all(isinstance(name, str) for name in cast("Sequence[object]", order)):
        kind = type(cast("object", order))
        raise InputError("order", value=kind, expected=f"{listed(_NAMED)}, names of joints, or a MjModel")
    names = list(cast("Sequence[str]", order))
    rows = list(skeleton.by_row([(name, name) for name in names], "values"))
    wrong = [name for name, row in zip(names, rows, strict=True) if skeleton.joints[row].kind not in _SCALAR]
    if wrong:
        raise UnsupportedError(f"{listed(wrong)} has several values or none", where=where, expected="hinges and slides")
    return names, [([(row, 1.0)], 0.0) for row in rows]


def _is_gripper(skeleton: Skeleton, row: int) -> bool:
    """Return whether a joint opens a gripper: it has "gripper" in its name, and two limits."""
    at = skeleton.q_slice(row).start
    lower, upper = (float(limit[at]) for limit in skeleton.limits)
    return "gripper" in words_of(skeleton.joint_names[row]) and 0.0 < upper - lower < np.inf


def _percent(skeleton: Skeleton, row: int) -> tuple[float, float]:
    """Return factor and offset that map the lower limit of a joint to 0 and the upper limit to 100."""
    lower, upper = (float(limit[skeleton.q_slice(row).start]) for limit in skeleton.limits)
    factor = 100.0 / (upper - lower)
    return factor, -factor * lower


def _controls(skeleton: Skeleton, model: Any) -> tuple[list[str], list[_Row]]:
    """Return the controls of a MuJoCo model that hold joints in place, as linear functions of joint values.

    The force of an actuator is ``gain ctrl + b0 + b1 length + b2 velocity``; at rest without load it is zero.
    """
    _, joints = mujoco_names(model)
    names: list[str] = []
    rows: list[_Row] = []
    for k in range(int(model.nu)):
        name = model.actuator(k).name or f"actuator{k}"
        gain, bias = float(model.actuator_gainprm[k, 0]), [float(b) for b in model.actuator_biasprm[k, :3]]
        if int(model.actuator_biastype[k]) != _AFFINE or gain == 0.0 or bias[1] == 0.0:
            raise UnsupportedError(f"actuator {name!r} is not a position actuator", where=skeleton.name)
        lengths = _lengths(model, k, name, lambda j: _scalar(skeleton, joints[j]))
        names.append(name)
        rows.append(([(row, -bias[1] * factor / gain) for row, factor in lengths], -bias[0] / gain))
    return names, rows


def _lengths(model: Any, k: int, name: str, row_of: Callable[[int], int]) -> list[tuple[int, float]]:
    """Return the joints and factors whose weighted sum is the length of an actuator."""
    kind, target, gear = (
        int(model.actuator_trntype[k]),
        int(model.actuator_trnid[k, 0]),
        float(model.actuator_gear[k, 0]),
    )
    if kind in (_JOINT, _IN_PARENT):
        return [(row_of(target), gear)]
    first = int(model.tendon_adr[target]) if kind == _TENDON else 0
    wraps = range(first, first + int(model.tendon_num[target])) if kind == _TENDON else range(0)
    if not wraps or any(int(model.wrap_type[w]) != _OF_JOINT for w in wraps):
        raise UnsupportedError(f"actuator {name!r} moves neither joints nor a fixed tendon")
    return [(row_of(int(model.wrap_objid[w])), gear * float(model.wrap_prm[w])) for w in wraps]


def _scalar(skeleton: Skeleton, name: str) -> int:
    """Return the row of a hinge or slide of the model."""
    row = skeleton.value_index(f"joint:{name}")
    if skeleton.joints[row].kind not in _SCALAR:
        raise UnsupportedError(f"joint {name!r} has several values", where=skeleton.name, expected="a hinge or slide")
    return row


Order = Literal["breadth", "depth"]
STILL: Final = 1e-5  # radians, and fraction of the robot's size; large because files have single precision
_AXES: Final = 6  # largest number of slides and hinges of a root


class Robot(NamedTuple):
    """The parts of a skeleton that files of learning frameworks name.

    Args:
        base: Row of the body whose pose represents the whole robot (URDF's first link, G1's pelvis).
        joints: Rows of the hinges and slides.
        bodies: Rows of the bodies: the base, then bodies that a joint moves. Bodies fixed to another body are part of
            it, as when Isaac Lab and MuJoCo read a URDF.
    """

    base: int
    joints: list[int]
    bodies: list[int]


def robot_of(skeleton: Skeleton, order: Order, where: str) -> Robot:
    """Return the parts of a skeleton that files of learning frameworks name.

    Args:
        skeleton: The skeleton.
        order: Order of joints and bodies: ``"breadth"`` (all bodies nearest to the base first, as in Isaac Lab) or
            ``"depth"`` (limb by limb, as in MuJoCo and in the model's file).
        where: The file, for messages.

    Raises:
        UnsupportedError: If a joint has more than one degree of freedom.
    """
    base = base_of(skeleton)
    moving = [row for row in range(base + 1, len(skeleton)) if skeleton.joints[row].kind is not Kind.FIXED]
    for row in moving:
        joint = skeleton.joints[row]
        if joint.kind not in _SCALAR:
            raise UnsupportedError(
                f"joint {joint.name!r} is a {joint.kind.name.lower()}",
                where=where,
                expected="a robot whose joints are hinges and slides",
                hint="retarget the clip to a robot first",
            )
    if order == "breadth":
        moving = _by_breadth(skeleton, base, moving)
    with_body = [row for row in moving if skeleton.joints[row].body is not None]
    return Robot(base, moving, [base, *(with_body or moving)])


def body_name(skeleton: Skeleton, row: int) -> str:
    """Return the name of the body of a row, else of its joint."""
    joint = skeleton.joints[row]
    return joint.body or joint.name


def floating(skeleton: Skeleton, base: int, poses: Array, free: int | None = None) -> Array:
    """Return the values of a free root (T, 7) that move the base to given poses.

    Args:
        skeleton: A skeleton with a free root.
        base: Row of the base; no joint between the free joint and the base moves.
        poses: World transforms of the base, (T, 4, 4).
        free: Row of the free joint that carries the base, with no moving joint above it; None for the free root.
    """
    free = (free_root(skeleton.joints, skeleton.parents) or 0) if free is None else free
    rest = frames_to_transforms(world_frames(skeleton, skeleton.rest_q[None]))[0]
    parent = skeleton.parents[free]
    own = skeleton.joints[free].rest
    moved: Array = _back(own if parent < 0 else rest[parent] @ own) @ poses @ _back(rest[base]) @ rest[free]
    return np.concatenate([moved[:, :3, 3], matrix_to_quat(moved[:, :3, :3])], axis=1)


def free_slice(skeleton: Skeleton) -> slice:
    """Return the slice of q that holds the values of the free root."""
    return skeleton.q_slice(free_root(skeleton.joints, skeleton.parents) or 0)


def mounted(skeleton: Skeleton, rooted: Skeleton, q: Array, still: float = STILL) -> tuple[Skeleton, Array]:
    """Return a robot and its joint values (T, nq); an added free root is removed if it stays at rest.

    Args:
        skeleton: The original robot.
        rooted: The robot with a free root.
        q: Joint values of ``rooted``.
        still: Largest motion of a root at rest, radians, and as a fraction of the robot's size.
    """
    if rooted is skeleton:
        return rooted, q
    base, rest = q[:, free_slice(rooted)], rooted.rest_q[free_slice(rooted)]
    turns = rotation_between(np.broadcast_to(rest[3:], (len(q), 4)), base[:, 3:])
    rests = np.abs(base[:, :3] - rest[:3]).max() <= still * rooted.size and np.abs(turns).max() <= still
    return (skeleton, np.delete(q, free_slice(rooted), axis=1)) if rests else (rooted, q)


def _back(transform: Array) -> Array:
    """Return the inverse of a rigid transform (4, 4)."""
    back = transform[:3, :3].T
    return rigid(-back @ transform[:3, 3], back)


def base_of(skeleton: Skeleton) -> int:
    """Return the row of the first body at or below the root."""
    start = free_root(skeleton.joints, skeleton.parents)
    if start is None:
        sizes = range(min(_AXES, len(skeleton) - 1), 0, -1)
        start = next((size for size in sizes if root_of(skeleton.joint_names[:size]) is not None), 0)
    row = start
    while skeleton.joints[row].body is None:
        row += 1
        if row == len(skeleton) or skeleton.joints[row].kind is not Kind.FIXED:
            return start
    return row


def _by_breadth(skeleton: Skeleton, base: int, moving: list[int]) -> list[int]:
    """Return the rows of moving joints, sorted by the number of moving joints between them and the base."""
    wanted = set(moving)
    above: dict[int, tuple[int, ...]] = {}  # moving joints from the base to each row, by row
    for row in range(base + 1, len(skeleton)):
        path = above.get(skeleton.parents[row], ())
        above[row] = (*path, row) if row in wanted else path
    return sorted(moving, key=lambda row: (len(above[row]), above[row]))
