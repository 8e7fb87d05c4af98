"""Find the rest pose of the body in a clip: it stands, with the arms at the sides or stretched out.

The stored pose of a file is not always a rest pose. In some files, all bones lie along one axis if all rotations are
zero; in others, the nodes hold one moment of a clip. So several poses are candidates. Each is examined by itself and
together with the clip, and gets a certainty.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, cast

import numpy as np

from synovia.arguments import check_kind
from synovia.clips.resting import Rest
from synovia.errors import InputError
from synovia.files.poses import load_pose
from synovia.model import Joint, Kind, Pose, Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.up import Up, find_up, given_up
from synovia.model.geometry import (
    Array,
    axis_name,
    axis_vector,
    between,
    cross,
    frames_to_transforms,
    matrix_to_quat,
    quat_to_matrix,
    same_side,
    unit,
)
from synovia.model.motion import Motion
from synovia.model.pose import bind_frames, world_frames
from synovia.model.tree import ancestors
from synovia.retargeting.body import Body, usual_forward
from synovia.retargeting.bones import (
    LEG_BONES,
    bone,
    leftward,
    smallest_rotation,
    triad,
    trunk,
)
from synovia.retargeting.standing import Standing
from synovia.retargeting.straight import straightened

CERTAIN: Final = 0.8  # a pose of the file with at least this certainty is used without other candidates
DOUBTFUL: Final = 0.5  # a pose with less certainty is a guess
_EXPECTED: Final = '"file", "bind", "first", "tpose", the number of a frame, a Pose or a pose file'
_SAMPLE: Final = 300  # largest number of frames that are examined, spread evenly over the clip
_STEPS: Final = 300  # number of frames at the beginning of the clip in which steps are measured
_OF_CLIP: Final = 0.6  # factor for the certainty of a clip's first frame, which was not made as a rest pose
_GUESSED: Final = 35.0  # degrees: assumed twist error of limbs in a pose that is computed from bone directions
_UNSEEN: Final = 30.0  # degrees: assumed error of legs without bones
_BACKWARDS: Final = 120.0  # degrees from the expected direction: above this, knees or toes point to the other side
_T_POSE: Final = 20.0  # degrees: in a T-pose, limbs differ by at most this from their straight directions
NEAR_AXIS: Final = 30.0  # degrees: a body whose direction is this near to an axis stands along the axis
_FOLDED: Final = 0.5  # leg lengths: legs are folded if their ends are nearer to the hips
_LEGS: Final = ("upper_leg", "lower_leg", "foot")
_ARMS: Final = ("upper_arm", "shoulder", "lower_arm")
# for each check: the angle (degrees) at which a pose is as likely wrong as right, and a text about it
_CHECKS: Final[Mapping[str, tuple[float, str]]] = {
    "legs": (40.0, "a bone of a leg is {:.0f}° from vertical"),
    "no legs": (40.0, "no bone shows where its legs point"),
    "trunk": (35.0, "the trunk is {:.0f}° from vertical"),
    "arms": (60.0, "an upper arm is {:.0f}° from both hanging and stretched out"),
    "arms alike": (60.0, "the upper arms differ by {:.0f}°"),
    "sides": (45.0, "the shoulders are turned by {:.0f}° from the hips"),
    "toes": (70.0, "the toes point {:.0f}° away from ahead"),
    "knees": (70.0, "the knees bend {:.0f}° away from backwards"),
    "clip": (50.0, "the trunk is {:.0f}° from where the clip has it when it stands"),
    "bones": (40.0, "the twist of limbs about their bones is a guess"),
    "posture": (30.0, "the clip comes only within {:.0f}° of standing"),
}
_TURNED: Final = 1e-9  # smallest change of a rotation matrix that is more than rounding


@dataclass(frozen=True, eq=False)
class RestPose:
    """A candidate for the rest pose, with its certainty.

    Args:
        name: ``"file"``, ``"bind"``, ``"first"``, ``"frame 12"``, ``"tpose"``, or the name of a pose file.
        frames: World frames of all joints in the pose, (n, 12), upright in the world of the clip.
        certainty: From 0 (certainly not a rest pose) to 1.
        checks: Deviations from a rest pose, degrees, by name of the check.
    """

    name: str
    frames: Array
    certainty: float
    checks: Mapping[str, float]

    @property
    def doubt(self) -> str:
        """A phrase about the check with the worst result."""
        if not self.checks:
            return "left and right limbs coincide"
        worst = max(self.checks, key=lambda name: self.checks[name] / _CHECKS[name][0])
        return _CHECKS[worst][1].format(self.checks[worst])

    def described(self) -> str:
        """Return a text with the pose, its certainty and the worst check."""
        return f"{self.name!r} is used (certainty {100.0 * self.certainty:.0f} %: {self.doubt})"


def own_up(body: Body, frames: Array) -> Array:
    """Return the direction from the ankles to the hips of a pose, (3,), or the axis near which it is.

    If the legs are folded or spread, the direction of the trunk also counts.
    """
    places = frames[:, 9:]
    legs = body.lines.legs(places)
    up = unit(legs) if np.linalg.norm(legs) > _FOLDED * body.lines.leg else body.lines.upright(places)
    axis = axis_vector(axis_name(up))
    return axis if up @ axis > np.cos(np.radians(NEAR_AXIS)) else up


def turned(frames: Array, rotation: Array) -> Array:
    """Return world frames, (n, 12), rotated about the origin."""
    out = np.empty_like(frames)
    out[:, :9] = (rotation @ frames[:, :9].reshape(-1, 3, 3)).reshape(-1, 9)
    out[:, 9:] = frames[:, 9:] @ rotation.T
    return out


def raised(body: Body, frames: Array, up: Array) -> Array:
    """Return a pose, (n, 12), rotated so that it stands along ``up``, as axes of rest pose and clip may differ."""
    return turned(frames, smallest_rotation(own_up(body, frames), up))


def facing(body: Body, frames: Array, up: Array, forward: Array) -> Array:
    """Return a pose, (n, 12), rotated about ``up`` so that the body faces ``forward``."""
    left = unit(leftward(body, frames, up, ("upper_leg", *_ARMS)))
    return turned(frames, triad(up, forward) @ triad(up, cross(left, up)).T)


def examined(body: Body, name: str, frames: Array, up: Array, clip: Standing | None = None) -> RestPose:
    """Return a pose with its checks and certainty.

    Args:
        body: The body.
        name: Name of the pose.
        frames: World frames of the pose, (n, 12).
        up: Upward direction in the pose, (3,).
        clip: How the body stands in the clip; None for a body without a clip.
    """
    left = leftward(body, frames, up, ("upper_leg",))
    if np.linalg.norm(left) < 1e-6 * body.skeleton.size:
        left = leftward(body, frames, up, (*_LEGS, *_ARMS))
    if np.linalg.norm(left) < 1e-6 * body.skeleton.size:
        return RestPose(name, frames, 0.0, {})
    left = unit(left)
    axes = np.array([left, up, cross(left, up)]).T
    checks = _posture_checks(body, frames, axes)
    if clip is not None:
        checks |= clip.checks(frames, axes)
    return RestPose(name, frames, certainty_of(checks), checks)


def certainty_of(checks: Mapping[str, float]) -> float:
    """Return the certainty, 0 to 1, that the worst check gives; an angle at its limit gives one half."""
    return min((1.0 / (1.0 + (value / _CHECKS[name][0]) ** 4) for name, value in checks.items()), default=0.0)


def _posture_checks(body: Body, frames: Array, axes: Array) -> dict[str, float]:
    """Return deviations of a pose (n, 12) from standing, degrees, by check; columns of ``axes``: left, up, ahead."""
    left, up, ahead = axes.T
    found = {role: bone(body, role, frames) for role in LEG_BONES if role in body.roles}
    known = [between(line, -up) for line in found.values() if line is not None]
    checks = {"legs": max(known)} if known else {"no legs": _UNSEEN} if body.whole else {}
    back = trunk(body, frames)
    if back is not None:
        checks["trunk"] = between(back, up)
    arms: list[Array] = []
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        role = f"{side}_upper_arm"
        line = bone(body, role, frames) if role in body.roles else None
        if line is not None:
            arms.append((line @ axes) * (sign, 1.0, 1.0))
    for line in arms:
        near = np.array([max(line[0], 0.0), min(line[1], 0.0), 0.0])  # within the quarter from sideways to down
        off = between(line, unit(near)) if near.any() else 90.0
        checks["arms"] = max(checks.get("arms", 0.0), off)
    if len(arms) == 2:
        checks["arms alike"] = between(arms[0], arms[1])
    across = leftward(body, frames, up, _ARMS)
    if np.linalg.norm(across) > 1e-6 * body.skeleton.size:
        checks["sides"] = between(unit(across), left)
    for side in SIDES:
        toes = bone(body, f"{side}_foot", frames) if f"{side}_foot" in body.roles else None
        if toes is not None:
            flat = toes - (toes @ up) * up
            off = between(unit(flat), ahead) if np.linalg.norm(flat) > 0.2 else 0.0
            checks["toes"] = max(checks.get("toes", 0.0), off)
    return checks


@dataclass(frozen=True, eq=False)
class Stance:
    """How a body stands in the world of a clip: rest pose and axes.

    Args:
        rest: The rest pose that was chosen.
        considered: All candidates that were examined, including the chosen pose.
        up: The upward direction.
        forward: The axis nearest to the direction that the body faces in the rest pose, for example ``"z"``.
        path_scale: Factor that fits the path of the hips to the steps of the legs: 1 if both have one unit in the file;
            None if the clip does not show it.
        tried: Names of the candidates whose results were compared, because none was certain; empty if one was.
    """

    rest: RestPose
    considered: tuple[RestPose, ...]
    up: Up
    forward: str
    path_scale: float | None = None
    tried: tuple[str, ...] = ()

    def with_rest(self, body: Body, rest: RestPose, tried: Sequence[str] = ()) -> Stance:
        """Return this stance with another candidate as the rest pose.

        Args:
            body: The body.
            rest: The rest pose.
            tried: Names of the candidates whose results were compared.
        """
        standing = Body(body.skeleton, body.roles, rest.frames, self.up.vector)
        return replace(self, rest=rest, forward=axis_name(standing.basis[:, 2]), tried=tuple(tried))

    @property
    def exchanged(self) -> bool:
        """Whether left and right seem to be exchanged: the knees bend forwards, and the toes point backwards."""
        found = [self.rest.checks[name] > _BACKWARDS for name in ("knees", "toes") if name in self.rest.checks]
        return bool(found) and all(found)

    def report(self) -> list[str]:
        """Return lines: rest pose with certainty, its up and forward axes, and the notes."""
        rest = self.rest
        line = f"rest pose: {rest.name} (certainty {100.0 * rest.certainty:.0f} %"
        line += f": {rest.doubt})" if rest.certainty < CERTAIN else ")"
        line += f"; the best result of {', '.join(self.tried)}" if self.tried else ""
        stored = [pose for pose in self.considered if pose.name in ("file", "bind") and pose is not rest]
        line += "".join(f"; not {pose.name}: {pose.doubt}" for pose in stored if pose.certainty < CERTAIN)
        return [line, f"{self.up.report()}; the rest pose faces {self.forward}", *self.notes]

    @property
    def notes(self) -> list[str]:
        """Sentences about likely errors of the clip: exchanged sides, or the unit of its path."""
        notes: list[str] = []
        if self.exchanged:
            notes.append("left and right seem to be exchanged: knees bend forwards, or toes point backwards")
        if self.path_scale is not None and not 0.5 < self.path_scale < 2.0:
            notes.append(f"the path fits the steps of the legs if it is multiplied by {self.path_scale:.3g}")
        return notes


def find_stance(motion: Motion, body: Body, rest: Rest | None = None, up: str | None = None) -> Stance:
    """Return how the body stands in a clip: its rest pose and its upward direction.

    The first of these poses that stands is chosen: the pose of the file, the bind pose of the skin, a T-pose in the
    first frame. If none stands, the most certain one is chosen; a T-pose that is computed from the clip is then a
    candidate too.

    Args:
        motion: The clip.
        body: The body of the clip, with the rest pose of the file.
        rest: The pose to use: ``"file"``, ``"bind"``, ``"first"`` (frame), ``"tpose"`` (computed from the clip), the
            number of a frame, a ``Pose``, or the path of a pose file; None to find it.
        up: The axis that points up, for example ``"z"``; None to find it.

    Raises:
        InputError: If there is no such pose, or the body is upside down in most frames.
    """
    if not body.whole:
        return _stance_of_part(motion, body, rest, up)
    sample = np.unique(np.linspace(0, len(motion) - 1, min(len(motion), _SAMPLE)).round().astype(int))
    frames = world_frames(motion.skeleton, motion.q[sample])
    stored = _stored(body)
    found_up = find_up(motion.skeleton, motion.q, up, body.roles)
    _refuse_inverted(motion, found_up)
    vertical = found_up.vector
    clip = Standing(body, frames, vertical)
    forward = usual_forward(motion.skeleton, vertical)

    def candidate(name: str, pose: Array, *, of_clip: bool = False) -> RestPose:
        placed = facing(body, pose, vertical, forward) if of_clip else raised(body, pose, vertical)
        return examined(body, name, placed, vertical, clip)

    def from_clip() -> RestPose:
        checks = clip.own_checks()
        return RestPose("tpose", clip.built(forward), certainty_of(checks), checks)

    poses = {name: candidate(name, pose) for name, pose in stored.items()}
    taken = next((pose for pose in poses.values() if pose.certainty >= CERTAIN), None) if rest is None else None
    if rest == "tpose":
        taken = poses["tpose"] = from_clip()
    elif isinstance(rest, str) and rest in poses:
        taken = poses[rest]
    elif rest is not None:
        name, pose, of_clip = _given(motion, rest)
        taken = poses[name] = candidate(name, pose, of_clip=of_clip)
    elif taken is None:
        first = candidate("first", frames[0], of_clip=True)
        poses |= {"first": first, "tpose": from_clip()}
        if first.certainty >= CERTAIN and _is_t_pose(body, first.frames, vertical):
            taken = first
        else:
            taken = max(poses.values(), key=lambda pose: pose.certainty * (_OF_CLIP if pose is first else 1.0))
    steps = body.lines.path_scale(world_frames(motion.skeleton, motion.q[:_STEPS])[..., 9:], vertical)
    return Stance(taken, tuple(poses.values()), found_up, "", steps).with_rest(body, taken)


def _refuse_inverted(motion: Motion, up: Up) -> None:
    """Raise an error for an upside-down body: the file's axis may point down, or the body may stand on its hands.

    Raises:
        InputError: If the body is upside down in most frames.
    """
    axis = up.nearest.removeprefix("-")
    if up.inverted > 0.5:
        raise InputError(
            f"{motion.skeleton.name}: the head is below the feet along {axis} in {100.0 * up.inverted:.0f} % of the"
            " frames",
            expected="a body that stands on its feet",
            hint=f'pass up="{axis}" (--up={axis}) to keep the clip as it is, if the body stands on its hands or lies;'
            f' up="-{axis}" (--up=-{axis}) if {axis} points down in the file',
        )


def _stance_of_part(motion: Motion, body: Body, rest: Rest | None, up: str | None) -> Stance:
    """Return the stance of a body without two legs, such as an arm, with the given rest pose or that of the file."""
    given = None if up is None else given_up(up)
    vertical = body.basis[:, 1] if given is None else given.vector
    stored = _stored(body)
    if rest == "tpose":
        raise InputError("rest", value=rest, expected=_EXPECTED, hint=f"{body.skeleton.name} has no legs that stand")
    name, pose = next(iter(stored.items()))
    if isinstance(rest, str) and rest in stored:
        name, pose = rest, stored[rest]
    elif rest is not None:
        name, pose, _ = _given(motion, rest)
    basis = Body(body.skeleton, body.roles, pose, vertical).basis
    taken = _pose_of_part(body, name, pose, basis)
    known, source = (DOUBTFUL, "nothing") if body.skeleton.up is None else (1.0, "file")
    found = given or Up(axis_name(vertical), vertical, known, source)
    return Stance(taken, (taken,), found, axis_name(basis[:, 2]))


def _pose_of_part(body: Body, name: str, frames: Array, axes: Array) -> RestPose:
    """Return a pose (n, 12) of a body without two legs, with its certainty; columns of ``axes``: left, up, ahead."""
    checks = _posture_checks(body, frames, axes)
    return RestPose(name, frames, certainty_of(checks) if checks else 1.0, checks)


def stands(skeleton: Skeleton) -> bool:
    """Return whether a stored pose of a body is certainly a rest pose; always True for a body without two legs."""
    body = Body.of(skeleton)
    return not body.whole or any(
        examined(body, name, pose, own_up(body, pose)).certainty >= CERTAIN for name, pose in _stored(body).items()
    )


def standing_target(body: Body, clip: Motion | None = None) -> tuple[Body, RestPose]:
    """Return a target body with its rest pose set, and this pose.

    It is a stored pose if one stands, else a T-pose computed from a clip of the body, else a T-pose from its bones. If
    the stored pose certainly stands along another axis than the file states, that other axis is used.

    Args:
        body: The body, with a free root if its base moves.
        clip: A clip of the body; None without a clip.

    Without a clip, the last results are cached.
    """
    return _standing(body) if clip is None else _standing_target(body, clip)


@lru_cache(maxsize=32)
def _standing(body: Body) -> tuple[Body, RestPose]:
    """Return a target body with its rest pose, from its file or its bones; the last results are cached."""
    return _standing_target(body, None)


def _standing_target(body: Body, clip: Motion | None) -> tuple[Body, RestPose]:
    """Return a target body and its rest pose; see ``standing_target``."""
    stored = _stored(body)
    if not body.whole:
        return body, _pose_of_part(body, "file", body.rest, body.basis)
    poses = [examined(body, name, pose, own_up(body, pose)) for name, pose in stored.items()]
    best = poses[0] if poses[0].certainty >= CERTAIN else max(poses, key=lambda pose: pose.certainty)
    stated = None if body.skeleton.up is None else axis_vector(body.skeleton.up)
    if best.certainty < CERTAIN and clip is not None:
        added = len(body.skeleton) - len(clip.skeleton)  # added root joints
        own = Body(clip.skeleton, {role: row - added for role, row in body.roles.items()})
        stance = find_stance(clip, own)
        root = np.tile(np.append(np.eye(3).ravel(), np.zeros(3)), (added, 1))
        best = replace(stance.rest, frames=np.concatenate([root, stance.rest.frames]))
        stated = stance.up.vector
    elif best.certainty < DOUBTFUL:
        axis = axis_vector(body.skeleton.up or "y")
        straight = straightened(body, axis, usual_forward(body.skeleton, axis))
        checks = {**examined(body, "tpose", straight, axis).checks, "bones": _GUESSED}
        best = max(best, RestPose("tpose", straight, certainty_of(checks), checks), key=lambda pose: pose.certainty)
    up = own_up(body, best.frames)
    vertical = up if best.certainty >= CERTAIN and stated is not None and up @ stated < 0.5 else stated
    if best is poses[0]:
        return Body(body.skeleton, body.roles, None, vertical), best
    frames = best.frames.copy()
    hips, stays = body.roles["hips"], body.rest[:, :9].reshape(-1, 3, 3)
    for row in ancestors(body.skeleton.parents, hips)[1:]:  # joints above the hips stay as in the file
        frames[row, :9] = (frames[hips, :9].reshape(3, 3) @ stays[hips].T @ stays[row]).ravel()
    return Body(body.skeleton, body.roles, frames, vertical), best


def _stored(body: Body) -> dict[str, Array]:
    """Return the poses that a body's file stores, world frames (n, 12), by name."""
    poses = {"file": body.rest}
    if any(joint.bind is not None for joint in body.skeleton.joints):
        poses["bind"] = bind_frames(body.skeleton.joints, body.skeleton.parents)
    return poses


def check_rest(source: Skeleton, rest: Rest | None) -> None:
    """Check a rest pose before there is a clip of the source; whether a numbered frame exists is checked later.

    Raises:
        InputError: If no clip of the source can have it.
    """
    numbered = isinstance(rest, int | np.integer) or (isinstance(rest, str) and rest.removeprefix("-").isdecimal())
    found = isinstance(rest, str) and rest in {"tpose", *_stored(Body.of(source))}
    if rest is not None and not numbered and not found:
        _given(Motion(source, source.rest_pose().q[None], 1.0), rest)


def _given(motion: Motion, rest: object) -> tuple[str, Array, bool]:
    """Return the name of a pose that the user gave, its world frames (n, 12), and whether it is a frame of the clip."""
    if isinstance(rest, Pose):
        if rest.skeleton.joint_names != motion.skeleton.joint_names:
            raise InputError("rest", value=rest.skeleton.name, expected=f"a pose of {motion.skeleton.name}")
        return "pose", np.array(rest.frames), False
    text = isinstance(rest, str) and rest.removeprefix("-").isdecimal()
    if text or isinstance(rest, int | np.integer):
        frame = int(cast("int | str", rest))
        return f"frame {frame}", np.array(motion.pose(frame).frames), True
    if rest == "first":
        return "first", np.array(motion.pose(0).frames), True
    if rest == "bind":
        raise InputError("rest", value=rest, expected=_EXPECTED, hint=f"{motion.skeleton.name} has no skin")
    if not isinstance(rest, str | os.PathLike) or (isinstance(rest, str) and not Path(rest).suffix):
        raise InputError("rest", value=rest, expected=_EXPECTED)
    path = os.fspath(cast("str | os.PathLike[str]", rest))
    return Path(path).name, np.array(load_pose(path, motion.skeleton).frames), False


def _is_t_pose(body: Body, frames: Array, up: Array) -> bool:
    """Return whether both arms are stretched out and both legs straight, as often at the ends of recordings."""
    left = unit(leftward(body, frames, up, ("upper_leg",)))
    ways = {"upper_arm": left, "lower_arm": left, "upper_leg": -up, "lower_leg": -up}
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        for part, way in ways.items():
            role = f"{side}_{part}"
            line = bone(body, role, frames) if role in body.roles else None
            if line is not None and between(line, way * (sign if "arm" in part else 1.0)) > _T_POSE:
                return False
    return True


def stand_at_rest(motion: Motion) -> Motion:
    """Return a clip on a skeleton that stands at rest; every joint keeps its position in every frame.

    In some BVH files, all bones lie along one axis at rest, so that only the clip shows how the body stands. The new
    rest pose is the one that ``retarget`` finds: a pose of the file, or a T-pose computed from the clip. Joint values
    become relative to the new rest pose. Limits of ball joints are left out, because they refer to the old one.

    Args:
        motion: The clip of a body with legs.

    Raises:
        InputError: If the body has no legs, or its rest pose cannot be changed because it has joints with one axis.

    Example:
        >>> import synovia as sy
        >>> walk = sy.load_motion("lafan1.bvh")  # doctest: +SKIP
        >>> sy.save_motion(sy.skeletons.stand_at_rest(walk), "walk.vrma")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    skeleton = motion.skeleton
    body = Body.of(skeleton)
    if not body.whole:
        what = "a rest pose that stands needs a body with hips and legs"
        raise InputError(what, where=skeleton.name, value=body.missing)
    stance = find_stance(motion, body)
    frames = frames_to_transforms(stance.rest.frames)
    joints: list[Joint] = []
    q = np.array(motion.q)
    for row, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        rest = frames[row].copy()
        if parent >= 0:
            rest[:3, :3] = frames[parent, :3, :3].T @ frames[row, :3, :3]
            rest[:3, 3] = joint.rest[:3, 3]
        u, _, vt = np.linalg.svd(rest[:3, :3])
        rest[:3, :3] = u @ vt
        at = skeleton.q_slice(row)
        if joint.kind in (Kind.BALL, Kind.FREE):
            turned = rest[:3, :3].T @ joint.rest[:3, :3] @ quat_to_matrix(q[:, at.stop - 4 : at.stop])
            q[:, at.stop - 4 : at.stop] = same_side(matrix_to_quat(turned))
        elif np.abs(rest[:3, :3] - joint.rest[:3, :3]).max() > _TURNED:
            what = f"joint {joint.name!r} cannot take another rest pose"
            raise InputError(what, where=skeleton.name, value=joint.kind.name, expected="a ball or a free joint")
        else:
            rest = joint.rest
        if joint.kind is Kind.FREE:
            place = joint.rest[:3, 3] + q[:, at.start : at.start + 3] @ joint.rest[:3, :3].T
            q[:, at.start : at.start + 3] = (place - rest[:3, 3]) @ rest[:3, :3]
        elif parent < 0:
            rest[:3, 3] = joint.rest[:3, 3]
        kept = joint if rest is joint.rest else replace(joint, rest=rest, limit=None, preferred=None, bind=None)
        joints.append(kept)
    up = skeleton.up or (stance.up.name if stance.up.name in ("x", "y", "z", "-x", "-y", "-z") else None)
    standing = Skeleton(
        joints, name=skeleton.name, meters_per_unit=skeleton.meters_per_unit, up=up, forward=stance.forward,
        notes=skeleton.notes, source=skeleton.source, loops=skeleton.loops,
    )  # fmt: skip
    return Motion(standing, q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)
