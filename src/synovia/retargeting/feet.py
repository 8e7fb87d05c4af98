"""Feet that are planted, on a floor or a world: their paths, soles above the floor, and poses in which feet follow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from synovia.arguments import Progress
from synovia.bodies.crossing import Steps, crossing, moved_by
from synovia.bodies.footing import Foothold
from synovia.clips.onfeet import HEEL_SHARE, FootPoint, on_feet
from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.model import Kind
from synovia.model.anatomy.contacts import Spans
from synovia.model.anatomy.feet import feet_of, runs
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.planting import ease, eased, raising_angles
from synovia.model.geometry import Array, Bools, quat_product
from synovia.model.pose import clamped, world_frames
from synovia.model.shapes.world import World
from synovia.model.tree import ancestors
from synovia.retargeting.body import LEGS, Body, point_at
from synovia.retargeting.limbs import ARMS, TRUNK, Follower, keep_velocity, smooth_steps
from synovia.solver import FullBody

_APART: Final = 1e-3  # fraction of the skeleton's size: shorter bones have no direction
EXACT: Final = 1e-5  # leg lengths: tolerance of a foot's position, visible as a slide of this size in each frame
TURNED: Final = 1e-3  # radians: tolerance of rotations; no effect, because no goal is a rotation
BENT: Final = np.array([0.1])  # sine: a limb that bends less in a frame may keep the side that the clip has
MISSED: Final = 1e-3  # leg lengths: a foot that is farther from its target misses it
_SIDE: Final = 0.1  # leg lengths from the ankle to a point that shows the orientation of a foot without toes
_ROLLS: Final = (
    0.004,
    0.015,
)  # leg lengths off its position: an ankle starts to rise at the first, and rises fully from the second
_BELOW: Final = 0.002  # leg lengths: accepted depth of a sole below the floor
_EASE: Final = 0.06  # seconds before and after in which a foot begins and ends to turn or rise, twice
_HIGHEST: Final = 0.3  # leg lengths: largest rise of a body whose soles are below the floor in many frames
_USUALLY: Final = 0.9  # the rise ``_HIGHEST`` at most lifts the soles above the floor in this fraction of the frames
_RISES: Final = 0.03  # leg lengths: largest further rise for rarer frames
_MOSTLY: Final = 0.98  # the further rise lifts the soles above the floor in this fraction of the frames
_FOOT: Final = 0.8  # radians: largest rotation of a foot towards level
_TOES: Final = 1.2  # radians: largest rotation by which toes bend up
_QUICK: Final = 0.2  # radians: rotations up to this angle may have any speed, as steps of a walk require
_FASTEST: Final = 3.0  # radians per second: speed of larger rotations, as of feet of a body that gets up
_NONE: Final = 1e-6  # radians; smaller angles of a live foot count as zero
_ACROSS: Final = 0.7  # cosine: a hinge raises toes or heel if its axis is this close to the line across the body


@dataclass(frozen=True, eq=False)
class FootPath:
    """The target path of a foot, with its contacts.

    Args:
        ankle: Positions of the ankle, (T, 3).
        spans: Contacts of the ankle, each as (first frame, end).
        toe_row: Row of the target's toe joint; None if it has none.
        toe: Positions of the toe, (T, 3).
        toe_spans: Contacts of the toe, each as (first frame, end).
        turned: Points that define the orientation of a foot on a world, to the left of the ankle and ahead of it: for
            each point its position in the frame of the ankle, (3,), and its path, (T, 3).
    """

    ankle: Array
    spans: Spans
    toe_row: int | None
    toe: Array
    toe_spans: Spans
    turned: tuple[tuple[Array, Array], ...] = ()

    def along(self, frames: Array, row: int) -> FootPath:
        """Return this with the positions that the foot has in world frames (T, n, 12); ``row`` is its ankle."""
        ankle = frames[:, row, 9:]
        return replace(self, ankle=ankle, toe=ankle if self.toe_row is None else frames[:, self.toe_row, 9:])

    @property
    def stands(self) -> NDArray[np.bool_]:
        """Mask of the frames in which the foot is planted, on its ankle or its toe, (T,)."""
        out = np.zeros(len(self.ankle), bool)
        for first, end in (*self.spans, *self.toe_spans):
            out[first:end] = True
        return out


def over_world(
    world: World, target: Body, paths: Mapping[str, FootPath], own: Array, fps: float
) -> tuple[dict[str, FootPath], Array, dict[str, tuple[Foothold, ...]]]:
    """Return the paths of feet placed on a world, the rise of the body, (T,), and the footholds of each foot.

    Args:
        world: The world, in the target's unit and with its upward axis.
        target: The body that follows.
        paths: Paths of the feet on a level floor, by role.
        own: World frames of the target before its feet are corrected, (T, m, 12).
        fps: Frames per second.
    """
    up, steps, tips = target.basis[:, 1], list[Steps](), dict[str, Array]()
    for role, path in paths.items():
        side, row = role.split("_", 1)[0], target.roles[role]
        hip = target.position(f"{side}_upper_leg", own)
        ends = feet_of(target.skeleton, [row])[0].points
        end = max(ends, key=lambda one: float(np.linalg.norm(target.rest[one, 9:] - target.rest[row, 9:])))
        tips[role] = path.ankle + own[:, end, 9:] - own[:, row, 9:]
        if path.toe_row is not None:
            tips[role] = path.toe + own[:, end, 9:] - own[:, path.toe_row, 9:]
        steps.append(Steps(path.ankle, tips[role], hip, runs(path.stands), target.leg))
    found = crossing(world, steps, up, 0.0, fps)
    if found is None:
        return dict(paths), np.zeros(len(own)), {}
    out: dict[str, FootPath] = {}
    for (role, path), moves in zip(paths.items(), found.moves, strict=True):
        row = target.roles[role]
        rest, left, ahead = target.rest[row, :9].reshape(3, 3), target.basis[:, 0], target.basis[:, 2]
        ways = [left] if path.toe_row is not None else [left, ahead]
        size = 0.5 * float(np.linalg.norm(tips[role] - path.ankle, axis=1).max(initial=0.0)) or _SIDE * target.leg
        turned: list[tuple[Array, Array]] = []
        for way in ways:
            local = size * (rest.T @ way)
            turned.append((local, moved_by(moves, path.ankle + own[:, row, :9].reshape(-1, 3, 3) @ local)))
        out[role] = replace(
            path, ankle=moved_by(moves, path.ankle), toe=moved_by(moves, path.toe), turned=tuple(turned)
        )
    return out, found.rise, dict(zip(paths, found.holds, strict=True))


@lru_cache(maxsize=8)
def foot_problem(
    target: Body,
    ankles: tuple[int, ...],
    below: tuple[int, ...],
    turned: tuple[tuple[int, tuple[float, ...]], ...],
) -> IK:
    """Return the problem of a frame, with goals for joints and for points on them; the last problems are cached."""
    goals = [PositionGoal(row) for row in ankles] + [PositionGoal(row, priority=1) for row in below]
    goals += [PositionGoal(row, offset=at, priority=1, name=_turn(k)) for k, (row, at) in enumerate(turned)]
    tolerance, root = (EXACT * target.leg, TURNED), "fixed" if turned else "free"
    ik = IK(target.skeleton, goals, FullBody(attempts=1), tolerance=tolerance, root=root)
    return IK.of(ik.problem.bending_from(BENT))


def on_world(
    target: Body, q: Array, paths: Mapping[str, FootPath], fps: float, threads: int | None
) -> tuple[Array, dict[str, FootPath]]:
    """Return joint values with the feet on a world, and paths of ankles, toes and further points that legs can follow.

    The displacement to a world may be large. Legs and root share it, and all frames are solved together, so that paths
    stay smooth. If an ankle cannot bend as far as the foot requires, a foot with toes lifts its heel and stays on the
    toes. A foot without toes keeps the orientation that it can reach.
    """
    points: list[FootPoint] = []
    for role, path in paths.items():
        row, share = target.roles[role], 1.0 if path.toe_row is None else HEEL_SHARE
        points.append(FootPoint(row, np.zeros(3), path.ankle, path.stands, swings=True, share=share))
        if path.toe_row is not None:
            points.append(FootPoint(path.toe_row, np.zeros(3), path.toe, path.stands))
        points += [FootPoint(row, local, at, path.stands, share=share) for local, at in path.turned]
    q = on_feet(target.skeleton, q, fps, points, threads)
    frames, out = world_frames(target.skeleton, q), dict[str, FootPath]()
    for role, path in paths.items():
        row, spans, stands = target.roles[role], runs(path.stands), path.stands[:, None]
        own, toe, ankle = frames[:, row, 9:], path.toe, path.ankle
        if path.toe_row is not None:
            tip = frames[:, path.toe_row, 9:]
            rise = own + path.toe - tip - path.ankle  # displacement of the ankle if the toes are in place
            off = np.linalg.norm(rise, axis=1, keepdims=True) / target.leg
            ankle = path.ankle + ease(np.clip((off - _ROLLS[0]) / (_ROLLS[1] - _ROLLS[0]), 0.0, 1.0)) * rise
            toe = tip + eased(np.where(stands, path.toe - tip, 0.0), spans, fps)
        moved = eased(np.where(stands, ankle - own, 0.0), spans, fps)
        ankle = own + moved
        turned = tuple((local, point_at(frames, row, local) + moved) for local, _ in path.turned)
        out[role] = replace(path, ankle=ankle, toe=toe, turned=turned)
    return q, out


def _turn(number: int) -> str:
    """Return the name of the goal for a point that defines the orientation of a foot."""
    return f"turn {number}"


def toe_row(body: Body, side: str) -> int | None:
    """Return a toe's row: of the toes' joint, else of the foot's lowest child that is not too near; None if none."""
    if f"{side}_toes" in body.roles:
        return body.roles[f"{side}_toes"]
    foot = body.roles[f"{side}_foot"]
    below = [k for k in body.skeleton.children[foot] if body.skeleton.lengths[k] > _APART * body.skeleton.size]
    return min(below, key=lambda k: float(body.rest[k, 9:] @ body.basis[:, 1]), default=None)


def solve_feet(
    follower: Follower,
    q: Array,
    own: Array,
    paths: Mapping[str, FootPath],
    threads: int | None,
    progress: Progress | None,
) -> tuple[Array, Array]:
    """Solve the poses of a clip so that feet follow their paths.

    Ankles have the highest priority. Toes then follow, and hands keep their positions, as far as the ankles permit. The
    rest of the pose changes as little as possible. Limbs of hinges whose steps exceed the bound are solved again.

    Args:
        follower: The body, and how it follows.
        q: Joint values before the correction, (T, nq).
        own: World frames of the body at ``q``, (T, m, 12).
        paths: Target path of each foot, by role.
        threads: Number of threads; None for all cores.
        progress: Called with (frames done, number of frames).

    Returns:
        Joint values (T, nq), and the distance of each foot from its path, (T, feet).
    """
    target, skeleton = follower.body, follower.body.skeleton
    hands = [target.roles[f"{side}_hand"] for side in SIDES if f"{side}_hand" in target.roles]
    places = {target.roles[role]: path.ankle for role, path in paths.items()}
    below = {path.toe_row: path.toe for path in paths.values() if path.toe_row is not None}
    points = [(target.roles[role], *point) for role, path in paths.items() for point in path.turned]
    if not points:  # on a world, the root is fixed, so hands keep their positions without goals
        below |= {row: own[:, row, 9:] for row in hands}
    turned = tuple((row, tuple(local.tolist())) for row, local, _ in points)
    ik = foot_problem(target, tuple(places), tuple(below), turned)
    wanted: dict[str | int, Array] = {**places, **below, **{_turn(k): at for k, (_, _, at) in enumerate(points)}}
    answer = ik.solve_many(wanted, q, threads=threads, progress=progress)
    out = answer.q
    frames = world_frames(skeleton, out)
    turns = np.stack([frames[:, part.target, :9].reshape(-1, 3, 3) for part in follower.parts], axis=1)
    smooth_steps((*TRUNK, *ARMS, *LEGS), follower, turns, out, {role: path.ankle for role, path in paths.items()})
    out = keep_velocity(target, out, follower.bounds)
    return out, distances_off(target, out, paths)


def distances_off(target: Body, q: Array, paths: Mapping[str, FootPath]) -> Array:
    """Return the distance of each ankle from its target path, (T, feet), for joint values (T, nq)."""
    frames = world_frames(target.skeleton, q)
    off = [np.linalg.norm(frames[:, target.roles[role], 9:] - path.ankle, axis=1) for role, path in paths.items()]
    return np.stack(off, axis=1) if off else np.zeros((len(q), 0))


def stand_frames(paths: Mapping[str, FootPath], count: int) -> NDArray[np.bool_]:
    """Return masks of the frames in which each foot is planted, (T, feet)."""
    return np.array([path.stands for path in paths.values()], bool).reshape(len(paths), count).T


def rise_of(target: Body, roles: Collection[str], frames: Array) -> float:
    """Return the height, length units, by which a body must rise so that its soles are rarely below the floor.

    Args:
        target: The body.
        roles: Roles of the feet.
        frames: World frames of the body, (T, m, 12).
    """
    lowest = [sole.lowest(frames, target.basis[:, 1]) for role, sole in target.soles.items() if role in roles]
    if not lowest or target.carrier is None:
        return 0.0
    most, usual = -np.quantile(np.min(lowest, axis=0), (1.0 - _MOSTLY, 1.0 - _USUALLY)) / target.leg - _BELOW
    usual = np.clip(usual, 0.0, _HIGHEST)
    return target.leg * float(usual + np.clip(most - usual, 0.0, _RISES))


def soles_raised(target: Body, roles: Collection[str], q: Array, fps: float) -> tuple[Array, Array]:
    """Rotate the feet of a body at the ankles, and bend its toes up, in frames in which they are below the floor.

    Feet rotate only towards level.

    Args:
        target: The body.
        roles: Roles of the feet.
        q: Joint values, (T, nq); returned unchanged if no foot rotates.
        fps: Frames per second.

    Returns:
        Joint values (T, nq), and the world frames of the body, (T, m, 12).
    """
    return _turned(target, _levers(target, roles), q, world_frames(target.skeleton, q), partial(_smoothed, fps=fps))


class LiveSoles:
    """Rotates the feet of a live body, and bends its toes up, tick by tick, while they are below the floor.

    The angles are those of ``soles_raised``, but a rotation begins only when a sole is below the floor, and fades out
    over some ticks, at no more than 3 rad/s.

    Args:
        target: The body.
        roles: Roles of the feet.
        rate: Ticks per second.

    Attributes:
        moves_ankles: Whether rotating a foot moves its ankle; the foot then rotates before it is placed.
    """

    def __init__(self, target: Body, roles: Collection[str], rate: float) -> None:
        """Find the joints that rotate feet and toes."""
        self._target, self._levers = target, _levers(target, roles)
        every = [one for part in self._levers for one in part]
        needs = np.zeros((len(every), 4))
        self._each, self._needs = [(one, needs[k : k + 1]) for k, one in enumerate(every)], needs[:, :2]
        self.moves_ankles = any(one.row != target.roles[one.role] for one in self._levers[0])
        self._step, self._left = _FASTEST / rate, float(np.exp(-1.0 / (_EASE * rate)))
        self.reset()

    def reset(self) -> None:
        """Start with no rotation of the feet."""
        self._angles: dict[_Lever, Array] = {}
        self._quick = np.inf  # in the first tick, a foot may rotate by any angle

    def raised(self, q: Array, frames: Array) -> tuple[Array, Array]:
        """Return joint values (nq,) and world frames (m, 12) in which feet and toes that are too low are rotated up."""
        if not self._angles:
            for lever, out in self._each:
                lever.write_needs(frames[None], out)
            if not self._needs.any():
                self._quick = _QUICK
                return q, frames
        out, turned = _turned(self._target, self._levers, q[None], frames[None], self._next)
        self._quick = _QUICK
        return out[0], turned[0]

    def _next(self, lever: _Lever, needs: Array, rooms: Array) -> Array | None:
        """Return the angle of a lever in this tick, (1,); None for 0."""
        before = self._angles.get(lever)
        if before is None:
            if not needs.any():
                return None
            before = np.zeros((2, 1))
        quick = np.minimum(needs, np.maximum(self._quick, before + self._step))
        faded = np.maximum(self._left * before, before - self._step)
        angles = np.minimum(np.maximum(quick, faded), rooms)
        if angles.max() < _NONE:
            self._angles.pop(lever, None)
            return None
        self._angles[lever] = angles
        return angles[0] - angles[1]


def _levers(target: Body, roles: Collection[str]) -> tuple[list[_Lever], list[_Lever]]:
    """Return the joints that rotate the feet of a body, and the joints that bend its toes up."""
    heels: list[_Lever] = []
    toes: list[_Lever] = []
    for side in SIDES:
        role = f"{side}_foot"
        if role in roles:
            row = toe_row(target, side)
            ahead = None if row is None else _turning(target, row)
            of_toes = np.isin(target.soles[role].rows, [] if ahead is None else _below(target, ahead))
            ankle = _turning(target, target.roles[role], target.first_row(role))
            heels += [] if ankle is None else [_Lever(target, role, ankle, ~of_toes, _FOOT)]
            toes += [] if ahead is None else [_Lever(target, role, ahead, of_toes, _TOES)]
    return heels, toes


def _turned(
    target: Body,
    levers: tuple[list[_Lever], list[_Lever]],
    q: Array,
    frames: Array,
    chosen: Callable[[_Lever, Array, Array], Array | None],
) -> tuple[Array, Array]:
    """Return joint values (T, nq) and world frames; ``chosen`` returns the angles (T,) that rotate each lever."""
    for part in levers:
        before, out = q, q
        for lever in part:
            angle = chosen(lever, *lever.needs(frames))
            if angle is not None:
                out = lever.turned(frames, out, angle)
        if out is not before:
            q = target.skeleton.follow(out)
            frames = world_frames(target.skeleton, q)
    return q, frames


def _smoothed(lever: _Lever, needs: Array, rooms: Array, fps: float) -> Array | None:
    """Return the angles (T,) of a lever in a clip, which begin before they are needed and end later; None for 0."""
    del lever
    if not needs.any():
        return None
    out = np.zeros(needs.shape[1])
    for sign, need, room in zip((1.0, -1.0), needs, rooms, strict=True):
        if need.any():
            most = _inside(room)
            need = np.minimum(_inside(need), most)
            need = np.minimum(need, _QUICK + _slower(np.maximum(need - _QUICK, 0.0), _FASTEST / fps))
            out += sign * np.minimum(_spread(need, fps), most)
    return out


def _below(target: Body, top: int) -> list[int]:
    """Return the rows of a joint and of all joints below it."""
    parents = target.skeleton.parents
    return [row for row in range(top, len(parents)) if top in ancestors(parents, row)]


class _Lever:
    """A joint that raises points of a sole when it rotates.

    Args:
        target: The body.
        role: Role of the foot.
        row: Row of the joint.
        points: Mask of the points of the sole that the joint raises.
        most: Largest angle of the rotation, radians.

    Attributes:
        role: The argument of this name.
        row: The argument of this name.
        write_needs: A function that writes the angles of ``needs`` for world frames to an array, (T, 4).
    """

    def __init__(self, target: Body, role: str, row: int, points: Bools, most: float) -> None:
        """Fill the tables of the kernel."""
        self.role, self.row, self._target, self._axis = role, row, target, _axis(target, row)
        ahead, bounds = target.rest[row, :9].reshape(3, 3).T @ target.basis[:, 2], (-_BELOW * target.leg, most, 0.0)
        numbers, sole = np.array([self._axis, ahead, target.basis[:, 1], bounds]), target.soles[role]
        rows = sole.rows[points].astype(np.int32)
        self.write_needs = raising_angles(row, rows, sole.points[points], numbers)

    def turned(self, frames: Array, q: Array, angle: Array) -> Array:
        """Return joint values (T, nq) with the joint rotated by angles (T,); ``frames`` are world frames (T, m, 12)."""
        skeleton, row, local = self._target.skeleton, self.row, self._axis
        joint, at = skeleton.joints[row], skeleton.q_slice(row)
        out = q.copy()
        if joint.kind is Kind.BALL:
            base = frames[:, skeleton.parents[row], :9].reshape(-1, 3, 3) @ joint.rest[:3, :3]
            axis = frames[:, row, :9].reshape(-1, 3, 3) @ local
            half = np.einsum("tji,tj->ti", base, axis) * np.sin(0.5 * angle)[:, None]
            out[:, at] = quat_product(np.concatenate([half, np.cos(0.5 * angle)[:, None]], axis=1), q[:, at])
        else:
            out[:, at.start] += np.sign(joint.axis @ local) * angle
        turned = np.flatnonzero(angle)
        out[turned, at] = clamped(skeleton, out[turned])[:, at]
        return out

    def needs(self, frames: Array) -> tuple[Array, Array]:
        """Return the angles by which the joint must raise toes and heel, and the largest possible ones, (2, T) each."""
        out = np.empty((len(frames), 4))
        self.write_needs(frames, out)
        return out[:, :2].T, out[:, 2:].T


def _axis(target: Body, row: int) -> Array:
    """Return the axis in a joint's frame, (3,), about which the joint raises what is ahead; a hinge has its own."""
    right = -(target.rest[row, :9].reshape(3, 3).T @ target.basis[:, 0])
    joint = target.skeleton.joints[row]
    return right if joint.kind is Kind.BALL else np.copysign(1.0, joint.axis @ right) * joint.axis


def _turning(target: Body, row: int, first: int | None = None) -> int | None:
    """Return the row of the joint between ``first`` and ``row`` that raises what is ahead of it; None without one."""
    skeleton, right = target.skeleton, -target.basis[:, 0]
    if skeleton.joints[row].kind is Kind.BALL and skeleton.parents[row] >= 0:
        return row
    line = ancestors(skeleton.parents, row)
    line = line[: line.index(row if first is None else first) + 1]
    hinges = [k for k in line if skeleton.joints[k].kind is Kind.HINGE and skeleton.joints[k].mimic is None]
    across = {k: float(target.rest[k, :9].reshape(3, 3) @ _axis(target, k) @ right) for k in hinges}
    best = max(hinges, key=lambda k: across[k], default=None)
    return None if best is None or across[best] < _ACROSS else best


def _slower(values: Array, step: float) -> Array:
    """Return the largest values (T,) that do not exceed given ones and change by at most ``step`` per frame."""
    ramp = step * np.arange(len(values))
    rising = np.minimum.accumulate(values - ramp) + ramp
    return np.asarray(np.minimum.accumulate((rising + ramp)[::-1])[::-1] - ramp, np.float64)


def _spread(values: Array, fps: float) -> Array:
    """Return values (T,) that are nowhere smaller than given ones (at least 0), and begin earlier and end later."""
    half = max(1, round(_EASE * fps))
    window = np.hanning(2 * half + 3)[1:-1]
    largest = sliding_window_view(np.pad(values, 2 * half, mode="edge"), 2 * half + 1).max(-1)
    return np.asarray(np.convolve(largest, window / window.sum(), mode="valid"), np.float64)


def _inside(values: Array) -> Array:
    """Return values (T,) whose first and last equal their neighbours, because clips often begin with a T-pose."""
    return np.pad(values[1:-1], 1, mode="edge") if len(values) > 2 else values
