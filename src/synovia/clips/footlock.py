"""Foot lock: hold feet still that slide during a contact, and keep all feet above the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from synovia.arguments import Progress, as_call, check_kind
from synovia.bodies.crossing import Steps, crossing, moved_by
from synovia.bodies.footing import Foothold
from synovia.bodies.soles import soles_in
from synovia.clips.onfeet import HEEL_SHARE, FootPoint, on_feet, point_of, raised
from synovia.clips.points import pieces_of
from synovia.errors import InputError, UnsupportedError
from synovia.goals import PositionGoal
from synovia.model import Skeleton
from synovia.model.anatomy.contacts import find_contacts
from synovia.model.anatomy.feet import Foot, feet_of, runs
from synovia.model.anatomy.up import find_up
from synovia.model.geometry import Array, Bools, as_numbers, axis_vector
from synovia.model.motion import Motion
from synovia.model.root import free_root
from synovia.model.shapes.world import World
from synovia.model.tree import ancestors
from synovia.tracking.trajectory import Effort, Model, Terms, solve_in_windows

STILL: Final = 2e4  # weight of the slide of a foot in contact; the accelerations of the joints' changes have weight 1
FLOOR: Final = 1e3  # weight of the depth of a foot below the floor, on the same scale as ``STILL``
PELVIS: Final = 100.0  # weight of the root's change; the change of a leg joint has weight 1
CLEAR: Final = 2e-4  # fraction of the length scale: clearance between feet and floor, larger than rounding errors
ROUNDS: Final = (1e-2, 1.0)  # factors of STILL and FLOOR, one for each round
_MISSED: Final = 0.01  # leg lengths: a planted foot misses its foothold if it is farther away
STEPS: Final = 20  # largest number of steps of one round
_STRETCHED: Final = "Feet were held on rigid bones: animated scale may still move them."
ENOUGH: Final = 1e-3  # fraction of the cost: a round ends if a step reduces the cost by less than this


@dataclass(frozen=True, slots=True, eq=False)
class FootLocked:
    """A clip in which feet in contact do not slide.

    Args:
        motion: The clip.
        feet: Rows of the joints that can touch the ground.
        contact: Mask of the frames in which each of these joints is in contact, (T, feet).
        floor: Height of the floor along ``up``, length units.
        up: The axis that points up, for example ``"y"`` or ``"-z"``.
        slide_before: Mean speed of joints in contact in the original clip, length units per second.
        slide: Mean speed of joints in contact in this clip, length units per second.
        depth_before: Largest depth of a foot below the floor in the original clip, length units.
        depth: Largest depth of a foot below the floor in this clip, length units.
        footholds: Footholds of each foot on a world, one for each contact; empty if no world was given.
        missed_frames: Frames in which a planted foot does not reach its foothold on a world.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> still = sy.Motion(body, [body.rest_q] * 30, 30.0)
        >>> locked = sy.foot_lock(still)
        >>> len(locked.motion) == len(still)
        True
    """

    motion: Motion
    feet: tuple[int, ...]
    contact: Bools
    floor: float
    up: str
    slide_before: float
    slide: float
    depth_before: float
    depth: float
    footholds: tuple[tuple[Foothold, ...], ...] = ()
    missed_frames: tuple[int, ...] = ()

    def __getitem__(self, frames: slice) -> FootLocked:
        """Return a part of the clip with its contacts. Speeds, depths and footholds still describe the whole clip.

        Args:
            frames: A slice, as for ``motion``.
        """
        kept, missed = range(len(self.motion))[frames], frozenset(self.missed_frames)
        lost = tuple(k for k, frame in enumerate(kept) if frame in missed)
        return replace(self, motion=self.motion[frames], contact=self.contact[frames], missed_frames=lost)

    def __repr__(self) -> str:
        """Return the call that creates the result, without default values."""
        return as_call(self)


def foot_lock(
    motion: Motion,
    *,
    feet: Sequence[str | int] | None = None,
    up: str | None = None,
    floor: float | None = None,
    fade: float = 0.06,
    world: World | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> FootLocked:
    """Remove foot sliding from a clip and keep the feet above the floor, with the smallest and smoothest change.

    A joint of a foot is in contact while it is low and slow compared with its other frames. Least squares solves all
    frames together. Its terms hold joints in contact still, and keep the soles of the feet above the floor. Further
    terms keep the change of root and legs small, above all the acceleration of the change. So legs and pelvis share the
    correction, and it begins and ends smoothly. A leg that is too short misses its foothold slightly instead of
    snapping straight. At the end, joints that the legs leave free, such as rods, close the loops. If they cannot close
    a loop, feet move; ``slide`` includes this motion.

    With a ``world``, the feet are then placed on the ground below them: on steps, ramps and stones, or on the floor.
    The root rises and sinks with the feet. Footholds are chosen as in ``retarget``, whose documentation describes how.

    Args:
        motion: The clip.
        feet: The joint of each foot (the ankle); None to find them by roles and names.
        up: The axis that points up, for example ``"y"`` or ``"-z"``; None to find it in the file and the clip.
        floor: Height of the floor along ``up``, length units; None for the median height of the soles of feet in
            contact.
        fade: Seconds in which a correction begins or ends.
        world: Steps, ramps and stones in the world of the clip, on which the feet stand; None for a level floor.
            A world needs a free root.
        threads: Number of threads; None for all cores. Results are identical for any number.
        progress: Called with (steps done, number of steps).

    Raises:
        InputError: If an argument cannot be used.
        UnsupportedError: If no joint is recognised as a foot, or the clip is too short.

    Example:
        >>> import synovia as sy
        >>> locked = sy.foot_lock(sy.load_motion("walk.bvh"))  # doctest: +SKIP
        >>> locked.slide_before, locked.slide  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    skeleton = motion.skeleton
    if len(motion) < 5:
        raise UnsupportedError("clip is too short", where=motion.name, value=len(motion), expected="at least 5 frames")
    seconds = float(as_numbers(fade, (), "fade"))
    if not 0.0 < seconds <= 10.0:
        raise InputError("fade is out of range", value=fade, expected="seconds above 0, at most 10")
    found = feet_of(skeleton, feet)
    axis = find_up(skeleton, motion.q, up).certain(motion.name).nearest
    vertical = axis_vector(axis)
    bones = motion.rigid()  # the correction assumes legs of constant length
    places = bones.positions()
    joints = [row for foot in found for row in foot.joints]
    points = [row for foot in found for row in foot.points]
    contacts = find_contacts(places[:, joints], vertical, motion.fps)
    contact, stands = contacts.stands, contacts.of([len(foot.joints) for foot in found])
    soles = soles_in(skeleton, found, bones.frames(), stands, vertical)
    # distance of the soles below each joint and tip of the feet
    below = np.concatenate([one.below * one.surface for one in soles])
    heights = places[:, points] @ vertical - below
    ground = float(as_numbers(floor, (), "floor")) if floor is not None else _floor(heights, found, stands)
    goals = [PositionGoal(row) for row in points]
    model = Model(skeleton, goals, [(row,) for row in points], free_root=True, threads=threads)
    standing = np.zeros((len(motion), len(points)), bool)  # mask of contact for all points of the feet
    standing[:, [points.index(row) for row in joints]] = contact
    terms = _terms(model, bones, standing, vertical, ground + below, seconds)
    q = solve_in_windows(model, terms, motion.q.copy(), Effort(STEPS, ENOUGH), shares=ROUNDS, progress=progress)
    if skeleton.mechanism is not None:
        q = skeleton.mechanism.shut_clip(q, model.moving, motion.q)
    put = None
    if world is not None:
        check_kind("world", world, World, "sy.World({...}) is one")
        world = world.matched(skeleton, up=axis)
        feet_of_clip = list(zip(found, stands.T, strict=True))
        put = _put_on(world, Motion(skeleton, q, motion.fps), feet_of_clip, vertical, ground, threads)
        q = q if put is None else put.q
    locked = Motion(skeleton, q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)
    if motion.stretch is not None:
        locked = locked.noted([_STRETCHED])
        places = motion.positions()
    moved = locked.positions()
    return FootLocked(
        locked, tuple(joints), contact, ground, axis,
        _slide(places[:, joints], contact, motion.fps), _slide(moved[:, joints], contact, motion.fps),
        _depth(places[:, points], below, vertical, ground, None),
        _depth(moved[:, points], below, vertical, ground, world),
        () if put is None else put.footholds, () if put is None else put.missed,
    )  # fmt: skip


class _Put(NamedTuple):
    """A clip with its feet on a world: joint values (T, nq), footholds of each foot, frames that miss a foothold."""

    q: Array
    footholds: tuple[tuple[Foothold, ...], ...]
    missed: tuple[int, ...]


def _put_on(
    world: World, motion: Motion, feet: Sequence[tuple[Foot, Bools]], up: Array, floor: float, threads: int | None
) -> _Put | None:
    """Place the planted feet of a clip on a world; return None if the ground below them is level.

    Raises:
        UnsupportedError: If no free joint can raise the root.
    """
    skeleton, frames = motion.skeleton, motion.frames()
    free = free_root(skeleton.joints, skeleton.parents)
    if free is None:
        raise UnsupportedError(
            "feet on a world", where=motion.name, value="a root that is fixed", expected="a free root"
        )
    steps: list[Steps] = []
    for foot, stand in feet:
        line = ancestors(skeleton.parents, foot.points[0])[:3]
        leg = sum(float(skeleton.lengths[row]) for row in line[:-1])
        ankle, toe, hip = (frames[:, row, 9:] for row in (line[0], _toe(skeleton, foot), line[-1]))
        steps.append(Steps(ankle, toe, hip, runs(stand), leg))
    way = crossing(world, steps, up, floor, motion.fps)
    if way is None:
        return None
    points: list[FootPoint] = []
    for (foot, stand), moves in zip(feet, way.moves, strict=True):
        ankle, toe = foot.points[0], _toe(skeleton, foot)
        # upward direction in the frame of the ankle; the path of this point sets the orientation of the foot
        local = skeleton.rest_pose().matrix(ankle).T @ np.roll(up, 1)
        local *= 0.1 * steps[0].leg
        aside = point_of(frames[:, ankle], local)
        share = 1.0 if toe == ankle else HEEL_SHARE
        points.append(FootPoint(ankle, np.zeros(3), moved_by(moves, frames[:, ankle, 9:]), stand, True, share))
        points.append(FootPoint(ankle, local, moved_by(moves, aside), stand, share=share))
        if toe != ankle:
            points.append(FootPoint(toe, np.zeros(3), moved_by(moves, frames[:, toe, 9:]), stand))
    q = on_feet(skeleton, raised(skeleton, motion.q, free, way.rise, up), motion.fps, points, threads)
    after = Motion(skeleton, q, motion.fps).frames()
    off = np.zeros(len(q), bool)
    legs = {_toe(skeleton, foot): step.leg for (foot, _), step in zip(feet, steps, strict=True)}
    for point in points:
        if point.row in legs:
            away = np.linalg.norm(point_of(after[:, point.row], point.local) - point.path, axis=1)
            off |= point.stands & (away > _MISSED * legs[point.row])
    return _Put(q, way.holds, tuple(np.flatnonzero(off).tolist()))


def _toe(skeleton: Skeleton, foot: Foot) -> int:
    """Return the row of a foot's point that is farthest from the ankle at rest; the ankle if it is the only point."""
    places = skeleton.rest_pose().positions
    return max(foot.points, key=lambda row: float(np.linalg.norm(places[row] - places[foot.points[0]])))


def _depth(points: Array, below: Array, up: Array, floor: float, world: World | None) -> float:
    """Return the largest depth of soles below the ground; ``below`` is their distance below the points, (T, n, 3)."""
    heights = np.full(points.shape[:2], floor)
    if world is not None:
        found = world.ground(points.reshape(-1, 3), up).heights.reshape(heights.shape)
        heights = np.where(np.isfinite(found), found, floor)
    return max(0.0, float((heights + below - points @ up).max()))


def _floor(heights: Array, feet: Sequence[Foot], stands: Bools) -> float:
    """Return the height of the floor: the median height of the lowest points of planted feet.

    Args:
        heights: Heights of the soles below all points of the feet, (T, n).
        feet: The feet.
        stands: Mask of the frames in which each foot is planted, (T, feet).
    """
    firsts = np.cumsum([0, *(len(foot.points) for foot in feet)])[:-1]
    lowest = np.minimum.reduceat(heights, firsts, axis=1)
    return float(np.median(lowest[stands]) if stands.any() else heights.min())


def _terms(model: Model, motion: Motion, standing: Bools, up: Array, ground: Array, fade: float) -> Terms:
    """Return the terms of the least-squares problem.

    A change of a column decays within (smooth / pull)^¼ frames; the weights make this equal to the fade.

    Args:
        model: The problem of each frame.
        motion: The clip.
        standing: Mask of contact of the points, (T, points).
        up: Upward direction, (3,).
        ground: Lowest allowed height of each point, (points,).
        fade: Seconds in which a correction begins or ends.
    """
    count, points = standing.shape
    axis = int(np.argmax(np.abs(up)))
    targets = np.tile(np.eye(4), (count, points, 1, 1))
    targets[:, :, axis, 3] = up[axis] * (ground + CLEAR * model.reach)
    weights = np.zeros((count, points, 3))
    side = np.zeros((points, 3))
    smooth = (fade * motion.fps) ** 4
    weights[:, :, axis] = FLOOR * smooth
    side[:, axis] = up[axis]
    weight = np.ones(model.columns)
    weight[: 6 if model.is_length[:3].all() else 0] = PELVIS
    both = standing[1:] & standing[:-1]
    both[[begin - 1 for begin, _ in pieces_of(motion.positions())[1:]]] = False  # a contact ends at a cut
    still = np.repeat(np.where(both, STILL * smooth, 0.0), 3, axis=1)
    return Terms(
        targets=targets.reshape(count, points, 16),
        weights=weights.reshape(count, -1),
        side=side.ravel(),
        reference=motion.q.copy(),
        pull=weight,
        smooth=smooth * weight,
        relative=True,
        still=still,
    )


def _slide(places: Array, contact: Bools, fps: float) -> float:
    """Return the mean speed of points from frame to frame, over pairs of adjacent frames that both have contact."""
    way = np.linalg.norm(np.diff(places, axis=0), axis=-1) * fps
    both = contact[1:] & contact[:-1]
    return float(way[both].mean()) if both.any() else 0.0
