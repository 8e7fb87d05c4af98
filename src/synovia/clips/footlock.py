"""Foot lock: feet that slide while they stand are held, and no foot goes through the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synovia.arguments import as_call
from synovia.clips.feet import Bools, Foot, contacts, feet_of, up_axis
from synovia.clips.points import pieces_of
from synovia.errors import InputError, UnsupportedError
from synovia.goals import PositionGoal
from synovia.model.geometry import Array, as_numbers
from synovia.model.motion import Motion
from synovia.tracking.trajectory import Model, Progress, Terms, solve_in_windows

STILL: Final = 2e4  # weight of a way of a standing foot beside the change of the joints' accelerations
FLOOR: Final = 1e3
PELVIS: Final = 100.0  # weight of the root's change beside that of a joint of a leg
CLEAR: Final = 2e-4  # of the reach: how far above the floor a foot is kept, so that rounding does not sink it
ROUNDS: Final = (1e-2, 1.0)  # shares of STILL and FLOOR, one after the other
STEPS: Final = 20  # of one round, at most
ENOUGH: Final = 1e-3  # of the cost: a step that gains less is the last of its round


@dataclass(frozen=True, slots=True, eq=False)
class FootLocked:
    """A clip with its feet held.

    Args:
        motion: The clip.
        feet: Rows of the joints that can stand.
        contact: When they stand, (T, feet).
        floor: Height of the floor, length units.
        up: The axis that points up, ``"x"``, ``"y"`` or ``"z"``.
        slide_before: Mean speed of standing joints in the given clip, length units per second.
        slide: Mean speed of standing joints now.
        depth_before: How deep a foot was below the floor, length units.
        depth: How deep one is now.
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

    def __repr__(self) -> str:
        """Return the call that makes it, without defaults."""
        return as_call(self)


def foot_lock(
    motion: Motion,
    *,
    feet: Sequence[str | int] | None = None,
    up: str | None = None,
    floor: float | None = None,
    blend: float = 0.06,
    threads: int | None = None,
    progress: Progress | None = None,
) -> FootLocked:
    """Return a clip whose feet stay where they stand and above the floor, changed as little and as smoothly as can be.

    A joint of a foot stands where it is low among its own heights and slow among its own speeds. All frames are solved
    at once: the way of standing joints is held at nothing, points of the feet are kept above the floor, and the change
    of the root and the legs, and above all its acceleration, is kept small. Legs and pelvis share the work, changes
    come and go gently, and a leg that is too short gives way instead of snapping straight.

    Args:
        motion: The clip.
        feet: The joint of each foot (the ankle); None: found by roles and names.
        up: The axis that points up, ``"x"``, ``"y"`` or ``"z"``; None: as the file says, or the clip shows.
        floor: Height of the floor, length units; None for the median height of the lowest points of standing feet.
        blend: Seconds that a change takes to come or go.
        threads: Number of threads; None for all cores. The bits are the same.
        progress: Called with the share of the work that is done.

    Raises:
        InputError: If an argument cannot be used.
        UnsupportedError: If no joint is known as a foot, or the clip is too short.
    """
    skeleton = motion.skeleton
    if len(motion) < 5:
        raise UnsupportedError("clip is too short", where=motion.name, value=len(motion), expected="at least 5 frames")
    seconds = float(as_numbers(blend, (), "blend"))
    if not 0.0 < seconds <= 10.0:
        raise InputError("blend is out of range", value=blend, expected="seconds above 0, at most 10")
    found = feet_of(skeleton, feet)
    axis = up_axis(motion, found, up)
    places = motion.positions()
    joints = [row for foot in found for row in foot.joints]
    points = [row for foot in found for row in foot.points]
    contact = contacts(places[:, joints], np.eye(3)[axis], motion.fps)
    ground = float(as_numbers(floor, (), "floor")) if floor is not None else _floor(places, found, contact, axis)
    goals = [PositionGoal(row) for row in points]
    model = Model(skeleton, goals, [(row,) for row in points], free_root=True, threads=threads)
    terms = _terms(model, motion, points, _columns_of(contact, joints, points), axis, ground, seconds)
    q = solve_in_windows(model, terms, motion.q.copy(), shares=ROUNDS, steps=STEPS, enough=ENOUGH, progress=progress)
    locked = Motion(skeleton, q, motion.fps, name=motion.name, stretch=motion.stretch)
    moved = locked.positions()
    return FootLocked(
        locked, tuple(joints), contact, ground, "xyz"[axis],
        _slide(places[:, joints], contact, motion.fps), _slide(moved[:, joints], contact, motion.fps),
        max(0.0, ground - float(places[:, points, axis].min())),
        max(0.0, ground - float(moved[:, points, axis].min())),
    )  # fmt: skip


def _floor(places: Array, feet: Sequence[Foot], contact: Bools, axis: int) -> float:
    """Return the median height of the lowest points of standing feet."""
    lowest: list[Array] = []
    first = 0
    for foot in feet:
        stands = contact[:, first : first + len(foot.joints)].any(1)
        first += len(foot.joints)
        lowest.append(places[stands][:, foot.points, axis].min(1))
    every = np.concatenate(lowest)
    return float(np.median(every)) if len(every) else float(places[..., axis].min())


def _columns_of(contact: Bools, joints: Sequence[int], points: Sequence[int]) -> Bools:
    """Return contact (T, joints) as (T, points)."""
    out = np.zeros((len(contact), len(points)), bool)
    out[:, [points.index(row) for row in joints]] = contact
    return out


def _terms(
    model: Model, motion: Motion, points: Sequence[int], contact: Bools, axis: int, ground: float, blend: float
) -> Terms:
    """Return what the trajectory is asked for.

    The change of a column decays over (smooth / pull)^¼ frames, which is the blend.
    """
    count = len(motion)
    targets = np.tile(np.eye(4), (count, len(points), 1, 1))
    targets[:, :, axis, 3] = ground + CLEAR * model.reach
    weights = np.zeros((count, len(points), 3))
    side = np.zeros((len(points), 3))
    smooth = (blend * motion.fps) ** 4
    weights[:, :, axis] = FLOOR * smooth
    side[:, axis] = 1.0
    weight = np.ones(model.columns)
    weight[: 6 if model.is_length[:3].all() else 0] = PELVIS
    both = contact[1:] & contact[:-1]
    both[[begin - 1 for begin, _ in pieces_of(motion.positions())[1:]]] = False  # nothing stands across a cut
    still = np.repeat(np.where(both, STILL * smooth, 0.0), 3, axis=1)
    return Terms(
        targets=targets.reshape(count, len(points), 16),
        weights=weights.reshape(count, -1),
        side=side.ravel(),
        reference=motion.q.copy(),
        pull=weight,
        smooth=smooth * weight,
        relative=True,
        still=still,
    )


def _slide(places: Array, contact: Bools, fps: float) -> float:
    """Return the mean speed of standing points between frames in which they stand."""
    way = np.linalg.norm(np.diff(places, axis=0), axis=-1) * fps
    both = contact[1:] & contact[:-1]
    return float(way[both].mean()) if both.any() else 0.0
