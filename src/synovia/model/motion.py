"""A motion: joint values of a skeleton over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Pose, Skeleton
from synovia.model.geometry import Array, as_numbers, dimensions
from synovia.model.joint import Joint
from synovia.model.pose import checked_q, world_frames
from synovia.model.root import root_of
from synovia.text import counted

_LOOSE: Final = (Kind.FIXED, Kind.BALL, Kind.FREE)  # glTF files of one body differ in these: what their clips move
_ALIKE: Final = 0.01  # difference of two rest rotations, or axes, that counts as rounding
_SIZES: Final = 1.5  # ratio of the sizes of two skeletons that still are of one body in one unit


class Motion:
    """Joint values over time at a constant rate. Immutable.

    Args:
        skeleton: The skeleton.
        q: Joint values, (T, nq): radians and length units; balls as unit quaternions xyzw; free joints as position and
            quaternion relative to their rest place (``from_qpos`` converts those of MuJoCo and Pinocchio).
        fps: Frames per second.
        name: Name of the clip.
        stretch: Animated scale of each joint along its own axes, (T, n, 3), which rigid joints cannot represent; None
            without one. ``positions`` and ``frames`` include it, and poses do not.
        notes: Sentences about what of its file, or of the clip that it was made from, was not kept.

    Raises:
        InputError: If a shape or a value cannot be used.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> motion = sy.Motion(arm, np.linspace(arm.rest_pose().q, arm.random_pose(1).q, 60), fps=30)
        >>> motion.positions().shape
        (60, 11, 3)
    """

    __slots__ = ("_q", "fps", "name", "notes", "skeleton", "stretch")

    def __init__(
        self,
        skeleton: Skeleton,
        q: Any,
        fps: float,
        *,
        name: str = "motion",
        stretch: Array | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """Check and copy the values."""
        if dimensions(q) != 2:
            as_numbers(q, (-1, skeleton.nq), "q")
        rate = float(as_numbers(fps, (), "fps", finite=False))
        if not 0.0 < rate < math.inf:
            raise InputError("fps", where=name, value=fps, expected="frames per second above 0")
        self.skeleton = skeleton
        self._q = checked_q(skeleton, q)
        self._q.setflags(write=False)
        self.fps = rate
        self.name = name
        if stretch is not None:
            stretch = as_numbers(stretch, (len(self._q), len(skeleton), 3), "stretch")
            stretch.setflags(write=False)
        self.stretch = stretch
        self.notes: tuple[str, ...] = tuple(notes)

    @property
    def q(self) -> Array:
        """Joint values, (T, nq), read-only."""
        return self._q

    @property
    def duration(self) -> float:
        """Seconds from the first to the last frame."""
        return max(len(self._q) - 1, 0) / self.fps

    @property
    def times(self) -> Array:
        """Time of each frame, (T,), seconds."""
        return np.arange(len(self._q)) / self.fps

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._q)

    def __iter__(self) -> Iterator[Pose]:
        """Yield the pose of each frame."""
        return (self.pose(frame) for frame in range(len(self)))

    def pose(self, frame: int) -> Pose:
        """Return the pose of one frame; negative frames count from the end.

        A pose has rigid bones. If the clip has animated scale (``stretch``), it is without it, unlike ``positions``.
        """
        if not isinstance(frame, int | np.integer) or isinstance(frame, bool) or not -len(self) <= frame < len(self):
            expected = f"0 to {len(self) - 1}" if len(self) else "a clip with frames"
            raise InputError("frame", where=self.name, value=frame, expected=expected)
        return Pose.trusted(self.skeleton, self._q[frame].copy())

    def on(self, skeleton: Skeleton) -> Motion:
        """Return this motion on another skeleton with the same joints, such as the one of the file that has the meshes.

        The joints of a moving root that this motion has more stand before those of ``skeleton``; a root that it lacks
        is at rest. Joints that are fixed or balls there become free where this motion moves them so.

        Args:
            skeleton: A skeleton of the same body: joints of the same names and axes, in the same order.

        Raises:
            InputError: If the joints differ.
        """
        own = self.skeleton
        if own is skeleton:
            return self
        root = root_of(own.joint_names[: max(len(own) - len(skeleton), 0)])
        rooted = skeleton if root is None else skeleton.with_root(root)
        before = len(rooted) - len(own)  # joints of a root that this motion lacks
        others = before < 0 or rooted.joint_names[before:] != own.joint_names
        if others or (before and root_of(rooted.joint_names[:before]) is None):
            raise self._foreign(skeleton)
        joints, shared = list(rooted.joints), min(len(own), len(skeleton)) - 1  # the first joint has no bone of its own
        for row, here in enumerate(own.joints):
            there = joints[row + before]
            loose = there.kind in _LOOSE and here.kind in _LOOSE
            if (there.kind is not here.kind and not loose) or not _same_axes(there, here):
                raise self._foreign(skeleton, own.joint_names[row])
            if here.kind > there.kind:
                joints[row + before] = replace(there, kind=here.kind, limit=None, preferred=None, channels=None)
        sizes = [float(body.lengths[len(body) - shared :].sum()) for body in (own, rooted)]
        if max(sizes) > _SIZES * min(sizes):
            raise self._foreign(skeleton)
        to = rooted if all(a is b for a, b in zip(joints, rooted.joints, strict=True)) else rooted.with_joints(joints)
        q = np.repeat(to.rest_q[None], len(self), axis=0)
        for row, joint in enumerate(own.joints):
            at, size = to.q_slice(row + before), joint.kind.q_size
            q[:, at.stop - size : at.stop] = self._q[:, own.q_slice(row)]
        stretch = self.stretch
        if stretch is not None and before:
            stretch = np.concatenate([np.ones((len(self), before, 3)), stretch], axis=1)
        return Motion(to, q, self.fps, name=self.name, stretch=stretch, notes=self.notes)

    def rigid(self) -> Motion:
        """Return this motion without animated scale; itself if it has none."""
        if self.stretch is None:
            return self
        return Motion(self.skeleton, self._q, self.fps, name=self.name, notes=self.notes)

    def noted(self, notes: Iterable[str]) -> Motion:
        """Return this motion with more notes, each of them once."""
        every = tuple(dict.fromkeys((*self.notes, *notes)))
        return Motion(self.skeleton, self._q, self.fps, name=self.name, stretch=self.stretch, notes=every)

    def _foreign(self, skeleton: Skeleton, joint: str | None = None) -> InputError:
        """Return the error for a skeleton of another body."""
        return InputError(
            "clip belongs to another skeleton" if joint is None else f"clip has another joint {joint!r}",
            where=self.name,
            value=self.skeleton.name,
            expected=f"the joints of {skeleton.name}",
            hint="view the clip's own file, or retarget the clip first",
        )

    def frames(self) -> Array:
        """Return the world frames of all joints over time, (T, n, 12): rotation (9), position (3).

        Positions include animated scale (``stretch``), as in the file. Rotations are those of the rigid joints.
        """
        frames = world_frames(self.skeleton, np.array(self._q))
        if self.stretch is not None:
            _stretch(frames, self.skeleton.parents, self.stretch)
        return frames

    def positions(self) -> Array:
        """Return the world positions of all joints over time, (T, n, 3), length units of the file.

        They include animated scale (``stretch``), so they are the places that the file shows.
        """
        return self.frames()[..., 9:].copy()

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Restore a copied or unpickled motion and make its arrays read-only."""
        self.notes = ()
        for name, value in state[1].items():
            setattr(self, name, value)
        for array in (self._q, self.stretch):
            if array is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        """Return name, frames and rate."""
        frames = f"{counted(len(self), 'frame')} at {self.fps:g} fps"
        return f"{type(self).__name__}({self.name!r}, {frames}, {self.skeleton.name!r})"


def _same_axes(a: Joint, b: Joint) -> bool:
    """Return whether two joints have the same orientation at rest and the same axis."""
    turned = np.abs(a.rest[:3, :3] - b.rest[:3, :3]).max() > _ALIKE
    return not turned and (a.kind is not b.kind or np.abs(a.axis - b.axis).max() <= _ALIKE)


def _stretch(frames: Array, parents: Sequence[int], stretch: Array) -> None:
    """Move the positions of rigid world frames (T, n, 12) to where animated scale (T, n, 3) puts them, in place.

    Let R be the rotation of a joint and S its scale. The linear map G of everything below the joint, from the rigid
    world to the scaled one, is that of its parent times R S Rᵀ. A joint stands at its parent's place plus the G of its
    parent times the rigid difference between both.
    """
    maps: dict[int, Array] = {}  # G by row; rows without one have the identity
    rigid = frames[..., 9:].copy()
    for row, parent in enumerate(parents):
        above = maps.get(parent)
        if parent >= 0:
            step = rigid[:, row] - rigid[:, parent]
            moved = step if above is None else (above @ step[..., None])[..., 0]
            frames[:, row, 9:] = frames[:, parent, 9:] + moved
        own = above
        if np.any(stretch[:, row] != 1.0):
            turn = frames[:, row, :9].reshape(-1, 3, 3)
            own = (turn * stretch[:, row, None, :]) @ np.swapaxes(turn, 1, 2)
            own = own if above is None else above @ own
        if own is not None:
            maps[row] = own
