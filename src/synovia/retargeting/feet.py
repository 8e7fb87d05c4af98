"""Paths of feet that are planted, on a floor or a world, and the poses of clips in which feet follow them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress
from synovia.bodies.crossing import Steps, crossing, moved_by
from synovia.bodies.footing import Foothold
from synovia.clips.onfeet import HEEL_SHARE, FootPoint, on_feet
from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.model.anatomy.contacts import Spans
from synovia.model.anatomy.feet import feet_of, runs
from synovia.model.anatomy.names import SIDES
from synovia.model.anatomy.planting import ease, eased
from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.model.shapes.world import World
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
