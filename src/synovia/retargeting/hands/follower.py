"""A hand that follows its aims frame by frame: the packed problem, and calls of its kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals import DirectionGoal, Goal, PositionGoal, RelativeGoal, RestGoal
from synovia.ik.interrupts import new_scratch
from synovia.kernels.layout import (
    BLOCK,
    BLOCK_Q,
    GIVEN,
    N_COLUMNS,
    N_GOALS,
    N_RESIDUALS,
    N_VARIABLES,
    POSITION,
    PURSUED,
    PURSUIT_DAMPING,
    PURSUIT_SETTINGS,
    PURSUIT_SETTLED,
    PURSUIT_STAY,
    PURSUIT_STEPS,
    SCALAR,
    TARGET_WIDTH,
    TRANSFORM_WIDTH,
    size_of_all,
)
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.hands.hand import Finger
from synovia.model.geometry import Array, is_number, unit
from synovia.model.pose import world_frames
from synovia.problem import Reduced, hold_all_but
from synovia.problem.pack import table_of
from synovia.solver import FullBody

VELOCITY: Final = 15.0  # radians per second: fast for a finger of a person
_ALONG: Final = 0.002  # weight of the direction of a last segment, relative to the place of a tip
_REST: Final = 3e-4  # pull to the rest pose
STEPS, _PINCH_STEPS, _FIRST_STEPS = 4, 12, 200  # most steps of a frame, of one that pinches, and of the first one
_SETTLED: Final = 1e-3  # radians
_STAY: Final = 0.01  # pull to the frame before
_DAMPING: Final = 0.02
_AS_FAR: Final = 0.999  # of its largest move: a joint is held back


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fingers(FullBody):
    """The settings of a problem in which only the joints of fingers move."""

    others: ClassVar[frozenset[str]] = frozenset({"largest_move", "rows"})

    rows: tuple[int, ...] = ()

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the problem with all other joints held."""
        moved = [row for row, joint in enumerate(reduced.joints.tolist()) if joint in self.rows]
        return hold_all_but(skeleton, reduced, moved)


class HandFollower:
    """A hand that follows aims frame by frame.

    Args:
        skeleton: The skeleton of the hand.
        fingers: The fingers that follow, thumb first.
        fps: Frames per second.
        velocity: As in ``retarget_hand``.
        wrist: Rows of the joints of the wrist, if it moves too.
        steps: Most steps of a frame without a pinch.

    Attributes:
        rows: Rows of the joints that move.
        tips: Row of each tip, (F,), and ``offsets``, the tip there, (F, 3).
    """

    def __init__(
        self,
        skeleton: Skeleton,
        fingers: Sequence[Finger],
        fps: float,
        velocity: Any,
        wrist: Sequence[int] = (),
        steps: int = STEPS,
    ) -> None:
        """Pack the problem and load its kernel."""
        from synovia.kernels.compiler.jit import ready
        from synovia.kernels.pursuit.follow import pursue

        self.skeleton = skeleton
        self.tips = np.array([skeleton.value_index(one.tip) for one in fingers])
        self.offsets = np.array([one.offset for one in fingers])
        moving = {skeleton.value_index(key) for one in fingers for key in one.joints} | set(wrist)
        self.rows = sorted(moving | {skeleton.leader_rows[row] for row in moving if row in skeleton.leader_rows})
        rest = skeleton.rest_pose()
        count = self.count = len(fingers)
        self._pinches = slice(2 * count, 3 * count - 1)
        goals: list[Goal] = [
            PositionGoal(row, offset=offset, priority=1, name=f"tip {k}")
            for k, (row, offset) in enumerate(zip(self.tips.tolist(), self.offsets, strict=True))
        ]
        goals += [
            DirectionGoal(row, axis, priority=1, weight=_ALONG, name=f"way {k}")
            for k, (row, axis) in enumerate(self._last_segments(fingers, np.array(rest.frames)))
        ]
        thumb, thumb_offset = int(self.tips[0]), self.offsets[0]
        pairs = list(zip(self.tips.tolist(), self.offsets, strict=True))[1:]
        goals += [
            RelativeGoal(
                row, thumb, (0, 0, 0), offset=offset, other_offset=thumb_offset, priority=0, name=f"pinch {k + 1}"
            )
            for k, (row, offset) in enumerate(pairs)
        ]
        goals.append(RestGoal(weight=_REST, joints=[skeleton.joint_keys[row] for row in self.rows]))
        moves = _moves(skeleton, self.rows, velocity, fps)
        self.ik = IK(skeleton, goals, _Fingers(attempts=1, largest_move=moves, rows=tuple(self.rows)))
        ints, floats = self.ik.ints, self.ik.floats
        self._floats = floats.copy()
        moved = cast("Array", self.ik.moves)  # of each variable, radians or length units
        numbers = (skeleton.tables.variables[:, BLOCK] == SCALAR) & np.isin(skeleton.tables.owner, self.rows)
        self._numbers, self._largest = skeleton.tables.variables[numbers, BLOCK_Q], moved[numbers]
        self._unbound = floats.copy()
        table_of(ints, self._unbound, "moves")[...] = math.inf
        sizes = {
            "residuals": int(ints[N_RESIDUALS]), "columns": int(ints[N_COLUMNS]), "variables": int(ints[N_VARIABLES]),
            "goals": int(ints[N_GOALS]),
        }  # fmt: skip
        self._memory = np.zeros(size_of_all(PURSUED, sizes))
        self._scratch = new_scratch(self.ik.scratch_size)
        self._settings, self._first, self._pinching = (np.zeros(PURSUIT_SETTINGS) for _ in range(3))
        for settings, most, settled, stay in (
            (self._settings, steps, _SETTLED, _STAY),
            (self._pinching, _PINCH_STEPS, _SETTLED, _STAY),
            (self._first, _FIRST_STEPS, 0.1 * _SETTLED, 1e-3 * _STAY),
        ):
            settings[PURSUIT_STEPS], settings[PURSUIT_SETTLED] = most, settled
            settings[PURSUIT_STAY], settings[PURSUIT_DAMPING] = stay, _DAMPING
        table, weights = self.table(np.zeros((0, count, 3)), np.zeros((0, count, 3)), np.zeros((0, count)))
        none = np.zeros((1, skeleton.nq))
        self._call = ready(pursue, ints, floats, table, weights, self._settings, self._memory, self._scratch, none)

    def _last_segments(self, fingers: Sequence[Finger], frames: Array) -> list[tuple[int, Array]]:
        """Return the last joint of each finger, and the direction from it to the tip in its frame."""
        out = list[tuple[int, Array]]()
        for k, finger in enumerate(fingers):
            row = self.skeleton.value_index(finger.joints[-1])
            R = frames[row, :9].reshape(3, 3)
            tip = frames[self.tips[k], :9].reshape(3, 3) @ self.offsets[k] + frames[self.tips[k], 9:]
            way = R.T @ (tip - frames[row, 9:])
            out.append((row, unit(way) if np.linalg.norm(way) > 0.0 else np.array([0.0, 0.0, 1.0])))
        return out

    def table(self, tips: Array, directions: Array, trust: Array) -> tuple[Array, Array]:
        """Return targets (T, goals, 17) and weights (T, goals) of aims; pinches are off."""
        count, F = len(tips), self.count
        goals = int(self.ik.ints[N_GOALS])
        table = np.zeros((count, goals, TARGET_WIDTH))
        _transforms(table)[...] = np.eye(4)
        table[:, :, GIVEN] = POSITION
        self.aim(table, tips, directions)
        weights = np.zeros((count, goals))
        weights[:, :F] = weights[:, F : 2 * F] = trust
        return table, weights

    def aim(self, table: Array, tips: Array, directions: Array) -> None:
        """Set where tips, (T, F, 3), and last segments, (T, F, 3), should be."""
        places, F = _transforms(table)[..., :3, 3], self.count
        places[:, :F], places[:, F : 2 * F] = tips, directions

    def pinch(self, table: Array, weights: Array, vectors: Array, on: Array) -> None:
        """Set pinches in the tables: vectors (T, F, 3) from the tip of the thumb, in its frame; and which are on."""
        _transforms(table)[:, self._pinches, :3, 3] = vectors[:, 1:]
        weights[:, self._pinches] = on[:, 1:]

    def first(self, table: Array, weights: Array, start: Array) -> Array:
        """Return the pose (nq,) of the first frame, from a start that may be far."""
        return self._run(self._unbound, self._first, table[:1], weights[:1], start)[0]

    def follow(self, table: Array, weights: Array, start: Array) -> Array:
        """Return the poses (T, nq) of frames in turn, from the pose (nq,) of the frame before them."""
        settings = self._pinching if weights[:, self._pinches].any() else self._settings
        return self._run(self._floats, settings, table, weights, start)

    def _run(self, floats: Array, settings: Array, table: Array, weights: Array, start: Array) -> Array:
        """Return what the kernel answers, (T, nq)."""
        out = np.zeros((len(table) + 1, self.skeleton.nq))
        out[0] = start
        self._call(self.ik.ints, floats, table, weights, settings, self._memory, self._scratch, out)
        return out[1:]

    def is_held_back(self, before: Array, after: Array) -> bool:
        """Return whether a hinge or slide goes as far between two poses (nq,) as it may in a frame."""
        return bool((np.abs(after - before)[self._numbers] >= _AS_FAR * self._largest).any())

    def tips_at(self, q: Array) -> tuple[Array, Array]:
        """Return the tips in the world, (T, F, 3), and the orientations of the thumb's tip, (T, 3, 3), at poses."""
        frames = world_frames(self.skeleton, q)
        R = frames[:, self.tips, :9].reshape(len(q), -1, 3, 3)
        return np.einsum("tkij,kj->tki", R, self.offsets) + frames[:, self.tips, 9:], R[:, 0]


def _transforms(table: Array) -> Array:
    """Return a view of the transforms (T, goals, 4, 4) of a table of targets."""
    return table[..., :TRANSFORM_WIDTH].reshape(*table.shape[:-1], 4, 4)


def _moves(skeleton: Skeleton, rows: Sequence[int], velocity: Any, fps: float) -> float | dict[str | int, float]:
    """Return the largest move in a frame: of all joints, or of each of the joints that move.

    Raises:
        InputError: If the velocity cannot be used.
        UnknownNameError: If a joint does not exist.
    """
    if velocity is None:
        return VELOCITY / fps
    if velocity == "file":
        given = {row: joint.velocity for row, joint in enumerate(skeleton.joints) if joint.velocity is not None}
    elif isinstance(velocity, Mapping):
        given = skeleton.by_row(cast("Mapping[Any, Any]", velocity), "velocity")
    else:
        return _speed(velocity, "velocity") / fps
    own: dict[str | int, float] = {
        row: _speed(value, f"velocity of {skeleton.joint_keys[row]!r}") / fps for row, value in given.items()
    }
    others = {row: VELOCITY / fps for row in rows if row not in own and skeleton.joints[row].kind is not Kind.SLIDE}
    return own | others


def _speed(value: Any, what: str) -> float:
    """Return a velocity.

    Raises:
        InputError: If it is none.
    """
    if not is_number(value) or not 0.0 < value < math.inf:
        raise InputError(what, value=value, expected="radians per second above 0, by joint, or 'file'")
    return float(value)
