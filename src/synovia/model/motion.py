"""A motion: joint values of a skeleton over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from synovia.arguments import Progress, check_kind
from synovia.errors import InputError
from synovia.model import Kind, Pose, Skeleton
from synovia.model.anatomy.up import find_up
from synovia.model.clip_tools.additive import Additive, check_alike, same_rate
from synovia.model.clip_tools.bounds import held, kept_limits
from synovia.model.clip_tools.chart import Chart
from synovia.model.clip_tools.loop import cut_for_loop, looped, looped_scale
from synovia.model.clip_tools.lowpass import low_pass_of, smoothed
from synovia.model.clip_tools.mirror import Mirror
from synovia.model.clip_tools.path import Ground, free_roots, ground_of, inverse
from synovia.model.clip_tools.slowed import Limits, slowed_times
from synovia.model.clip_tools.splines import interpolated, positive
from synovia.model.geometry import Array, Bools, as_direction, as_numbers, dimensions, is_number
from synovia.model.joint import Joint
from synovia.model.motion_limits import by_joint
from synovia.model.pose import checked_q, world_frames
from synovia.model.rates import RATES, is_rate
from synovia.model.root import root_of
from synovia.planting import with_planted_feet
from synovia.text import counted, listed

# kinds of joints that may differ between glTF files of one body, because they depend on what their clips move
_LOOSE: Final = (Kind.FIXED, Kind.BALL, Kind.FREE)
_ALIKE: Final = 0.01  # radians or components: smaller differences of rest rotations or axes are rounding errors
_EPS: Final = 1e-9  # tolerance of rounding: seconds, or fraction of a time
# frames: a duration this far below a whole number of frames counts as whole, since files round 120 fps to 120.005
_ROUNDED: Final = 0.05
_LONGEST: Final = 100_000_000  # largest number of joint values; more do not fit in the memory of most machines
_UPWARD: Final = 1e-6  # sine of the angle from the vertical: directions at a smaller angle have no heading
_OBLIQUE: Final = "Animated scale was mirrored approximately: axes of the left and the right side differ."
_SIZES: Final = 1.5  # largest ratio of the sizes of two skeletons that count as one body in one unit


class Motion:
    """Joint values over time at a constant rate. Immutable.

    ``motion[k]`` is the pose of a frame, and ``motion[10:60]`` a part of the clip, as in Python. Tools such as
    ``looped`` and ``mirrored`` return new motions. They keep the limits that the clip keeps; ``notes`` report changes
    for that purpose.

    Args:
        skeleton: The skeleton.
        q: Joint values, (T, nq): radians and length units; balls as unit quaternions xyzw; free joints as position and
            quaternion relative to their rest place (``from_qpos`` converts those of MuJoCo and Pinocchio).
        fps: Frames per second.
        name: Name of the clip.
        stretch: Animated scale of each joint along its own axes, (T, n, 3), which rigid joints cannot represent; None
            without animated scale. ``positions`` and ``frames`` include it, poses do not.
        notes: Sentences about losses when reading the file or changing the clip. A note that begins with
            ``Look at it:`` states a doubt, and prevents the verdict "good".

    Raises:
        InputError: If a shape or a value cannot be used.

    Example:
        >>> import numpy as np
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> motion = sy.Motion(arm, np.linspace(arm.rest_pose().q, arm.random_pose(1).q, 60), fps=30)
        >>> motion.positions().shape
        (60, 11, 3)
        >>> motion[10:20], motion[-1].q.shape
        (Motion('motion', 10 frames at 30 fps, 'arm7'), (7,))
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
        if not is_rate(rate):
            raise InputError("fps", where=name, value=fps, expected=RATES)
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

    @overload
    def __getitem__(self, frames: int) -> Pose: ...

    @overload
    def __getitem__(self, frames: slice) -> Self: ...

    def __getitem__(self, frames: int | slice) -> Pose | Self:
        """Return the pose of one frame, or a part of the clip.

        Args:
            frames: A frame; or a slice, as in Python. Its step divides the frame rate, so that the speed stays. A
                negative step reverses the clip.

        Raises:
            InputError: If there is no such frame, or ``frames`` is neither a whole number nor a slice of whole numbers.
        """
        if not isinstance(frames, slice):
            return self.pose(frames)
        try:
            kept = range(len(self))[frames]
        except (TypeError, ValueError) as error:
            expected = "whole numbers, the step not 0"
            raise InputError("slice", where=self.name, value=frames, expected=expected) from error
        return self._part(frames, self.fps / abs(kept.step))

    def _part(self, frames: slice, fps: float) -> Self:
        """Return a part of the clip; subclasses also select their own data for its frames."""
        stretch = None if self.stretch is None else self.stretch[frames]
        out = type(self).__new__(type(self))
        Motion.__init__(out, self.skeleton, self._q[frames], fps, name=self.name, stretch=stretch, notes=self.notes)
        return out

    def __iter__(self) -> Iterator[Pose]:
        """Yield the pose of each frame."""
        return (self.pose(frame) for frame in range(len(self)))

    def pose(self, frame: int) -> Pose:
        """Return the pose of one frame; negative frames count from the end.

        A pose has rigid bones, so it does not include animated scale (``stretch``), unlike ``positions``.
        """
        if not isinstance(frame, int | np.integer) or isinstance(frame, bool) or not -len(self) <= frame < len(self):
            expected = f"0 to {len(self) - 1}" if len(self) else "a clip with frames"
            raise InputError("frame", where=self.name, value=frame, expected=expected)
        return Pose.trusted(self.skeleton, self._q[frame].copy())

    def on(self, skeleton: Skeleton) -> Motion:
        """Return this motion on another skeleton with the same joints, such as the one of the file that has the meshes.

        Joints of a moving root that only this motion has are added in front of ``skeleton``; a root that it lacks is at
        rest. Fixed joints or balls of ``skeleton`` become balls or free joints if this motion moves them so.

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
        before = len(rooted) - len(own)  # number of root joints that this motion does not have
        others = before < 0 or rooted.joint_names[before:] != own.joint_names
        if others or (before and root_of(rooted.joint_names[:before]) is None):
            raise self._foreign(skeleton)
        joints, shared = list(rooted.joints), min(len(own), len(skeleton)) - 1  # the first joint has no bone above it
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
        """Return this motion without animated scale, or itself if it has none."""
        if self.stretch is None:
            return self
        return Motion(self.skeleton, self._q, self.fps, name=self.name, notes=self.notes)

    def noted(self, notes: Iterable[str]) -> Motion:
        """Return this motion with further notes, without duplicates."""
        every = tuple(dict.fromkeys((*self.notes, *notes)))
        return Motion(self.skeleton, self._q, self.fps, name=self.name, stretch=self.stretch, notes=every)

    @overload
    def at(self, times: float) -> Pose: ...

    @overload
    def at(self, times: ArrayLike) -> Pose | list[Pose]: ...

    def at(self, times: float | ArrayLike) -> Pose | list[Pose]:
        """Return the poses at some times, interpolated as in ``resample``.

        Args:
            times: A time, for one pose; or times (n,), for a list. Seconds, 0 to ``duration``.

        Raises:
            InputError: If a time is outside the clip.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> arm = sy.bundled("arm7")
            >>> clip = sy.Motion(arm, np.linspace(arm.rest_q, arm.random_pose(1).q, 31), fps=30)
            >>> [round(pose["joint2"], 3) for pose in clip.at([0.0, 0.51, 1.0])]
            [0.0, -0.02, -0.04]
        """
        one = dimensions(times) == 0
        moments = as_numbers([times] if one else times, (-1,), "times")  # pyright: ignore[reportArgumentType]
        q = self._between(moments, "times")
        poses = [Pose.trusted(self.skeleton, row.copy()) for row in q]
        return poses[0] if one else poses

    def resample(self, fps: float) -> Motion:
        """Return the clip with another frame rate, at the same speed.

        Cubic splines interpolate the frames: spherical splines with continuous angular acceleration for rotations; for
        other values, splines that stay within limits between frames. Frames at the same time keep their values. The
        last frame is the last one within the clip.

        Args:
            fps: Frames per second.

        Raises:
            InputError: If the rate is not above 0.

        Example:
            >>> import synovia as sy
            >>> still = sy.Motion(sy.bundled("arm7"), [sy.bundled("arm7").rest_q] * 121, fps=120)
            >>> still.resample(30)
            Motion('motion', 31 frames at 30 fps, 'arm7')
        """
        rate = self._above_zero(fps, "fps")
        if abs(self.duration * rate - max(len(self) - 1, 0)) < _ROUNDED:
            return self._with(self._q, self.stretch, fps=rate)
        count = self._as_count(self.duration * rate, "fps", fps)
        times = np.minimum(np.arange(count) / rate, self.duration)
        return self._retimed(times, rate)

    def _as_count(self, steps: float, what: str, value: Any) -> int:
        """Return the number of frames that a clip with ``steps`` steps between frames has.

        Raises:
            InputError: If a clip cannot have so many frames.
        """
        most = _LONGEST // max(self.skeleton.nq, 1)
        if not steps < most:
            expected = f"a clip of fewer than {most:,} frames"
            raise InputError(what, where=self.name, value=value, expected=expected)
        return math.floor(steps + _ROUNDED) + 1

    def retimed(self, curve: float | ArrayLike, *, lock_feet: bool = False) -> Motion:
        """Return the clip at another speed, constant or changing, at the same frame rate.

        Args:
            curve: A factor of the speed: 2 is twice as fast. Or keys (n, 2): a time of the new clip and the
                corresponding time of this clip, seconds. The first key is at 0, and the last one ends the new clip. A
                monotone cubic interpolates the keys, so the clip never runs backwards between increasing keys.
            lock_feet: Whether ``foot_lock`` then holds the planted feet.

        Raises:
            InputError: If the speed is not above 0, the new times do not increase from 0, or a time is outside the
                clip.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> arm = sy.bundled("arm7")
            >>> clip = sy.Motion(arm, np.linspace(arm.rest_q, arm.random_pose(1).q, 61), fps=30)
            >>> slow_end = clip.retimed([(0, 0), (1, 1), (3, 2)])  # the second half takes twice as long
            >>> slow_end.duration, clip.retimed(2).duration
            (3.0, 1.0)
        """
        if is_number(curve):
            speed = self._above_zero(curve, "curve")
            keys = np.array([[0.0, 0.0], [self.duration / speed, self.duration]])
        else:
            keys = as_numbers(curve, (-1, 2), "curve")  # pyright: ignore[reportArgumentType]
            if len(keys) < 2 or keys[0, 0] != 0.0 or bool((keys[1:, 0] <= keys[:-1, 0]).any()):
                expected = "a speed, or two or more keys (new time, old time) whose new times increase from 0"
                raise InputError("curve", where=self.name, value=keys.tolist(), expected=expected)
        count = self._as_count(keys[-1, 0] * self.fps, "curve", curve)
        times = np.arange(count, dtype=np.float64) / self.fps
        times[-1] = min(float(times[-1]), float(keys[-1, 0]))
        self._check_times(keys[:, 1], "old times of curve")
        old = positive(keys[:, 1], keys[:, 0], times) if keys[-1, 0] > 0.0 else np.zeros(count)
        return self._finished(self._retimed(old, self.fps), lock_feet)

    def slowed(self, *, velocity: Any = None, acceleration: Any = None) -> Motion:
        """Return the clip slowed down where joints would be too fast, at the same frame rate.

        Joints pass through the same poses, so hands and feet stay on their paths. Only the timing changes: as fast as
        the limits of all joints allow, and never faster than in this clip. A clip within the limits is returned
        unchanged. Finite differences of the new clip's joint values keep the limits.

        Args:
            velocity: Highest velocity, rad/s (slides and free joints: length units/s): one value for all joints, values
                by joint, ``"file"`` for those of the file, or a share of these, such as ``"50%"``. For balls it limits
                the norm of the angular velocity. None: no limit.
            acceleration: Highest acceleration, per s²: one value, or values by joint.

        Raises:
            InputError: If a limit is not above 0.
            UnknownNameError: If a joint does not exist.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> arm = sy.bundled("arm7")
            >>> clip = sy.Motion(arm, np.linspace(arm.rest_q, arm.random_pose(1).q, 31), fps=30)
            >>> slow = clip.slowed(velocity=0.5)
            >>> bool(np.abs(np.diff(slow.q, axis=0)).max() * 30 <= 0.5), bool(slow.duration > clip.duration)
            (True, True)
        """
        most = [
            np.full(len(self.skeleton), np.inf) if given is None else by_joint(self.skeleton, given, what)
            for what, given in (("velocity", velocity), ("acceleration", acceleration))
        ]
        if len(self) < 2:
            return self
        chart, limits = Chart.of(self.skeleton), Limits.of(self.skeleton, most[0], most[1])

        times = slowed_times(
            lambda moments: self._between(moments, "times"),
            len(self), self.fps, chart, limits,
            check=lambda steps: self._as_count(steps, "velocity, acceleration", (velocity, acceleration)),
        )  # fmt: skip
        return self if times is None else self._retimed(times, self.fps)

    def reversed(self) -> Motion:
        """Return the clip from its end to its beginning.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> arm = sy.bundled("arm7")
            >>> clip = sy.Motion(arm, np.linspace(arm.rest_q, arm.random_pose(1).q, 10), fps=30)
            >>> bool((clip.reversed().q[0] == clip.q[-1]).all())
            True
        """
        return self._with(self._q[::-1], None if self.stretch is None else self.stretch[::-1])

    def smoothed(self, cutoff: float, *, lock_feet: bool = False) -> Motion:
        """Return the clip without fast motion, such as the jitter of motion capture.

        The filter has zero phase, like a second-order Butterworth filter applied forwards and backwards. Rotations are
        smoothed as rotations: the result does not depend on axes or signs.

        Args:
            cutoff: Frequency that keeps 71 % of its amplitude, Hz; slower motion keeps more, faster motion less. 6 Hz
                is usual for a walk, and 10 to 20 Hz for a hit or a jump.
            lock_feet: Whether ``foot_lock`` then holds the planted feet.

        Raises:
            InputError: If the cutoff is not between 0 and half of the frame rate.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> arm = sy.bundled("arm7")
            >>> noise = 0.01 * np.random.default_rng(0).normal(size=(100, 7))
            >>> shaky = sy.Motion(arm, np.linspace(arm.rest_q, arm.random_pose(1).q, 100) + noise, fps=100)
            >>> bool(np.abs(np.diff(shaky.smoothed(5).q, 2, axis=0)).max() < 0.002)
            True
        """
        frequency = self._above_zero(cutoff, "cutoff")
        if frequency >= 0.5 * self.fps:
            expected = f"below {0.5 * self.fps:g} Hz, half of the frame rate"
            raise InputError("cutoff", where=self.name, value=cutoff, expected=expected)
        q, stretch = smoothed(self.skeleton, self._q, self.fps, frequency), self.stretch
        if stretch is not None and len(self) > 2:
            low_pass = low_pass_of(len(self), self.fps, frequency)
            stretch = np.exp(low_pass(np.log(np.maximum(stretch, _EPS)).reshape(len(self), -1)).reshape(stretch.shape))
        return self._finished(self._held(q, stretch), lock_feet)

    def mirrored(self) -> Motion:
        """Return the mirror image of the clip: the left hand does what the right one did.

        The mirror is the upright plane through the origin of the world that divides the body at rest into left and
        right (x = 0 for a body that faces z). Left and right are found by roles, names and rest positions. If the rest
        poses of the two sides differ, bones are mirrored, not joint values. If all bones of the rest pose lie along one
        axis, rotations of joints about their bones are inferred from the clip. Joints on only one side keep their
        values.

        Raises:
            UnsupportedError: If no part of the body is recognised on both sides.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> body = sy.bundled("humanoid")
            >>> clip = sy.Motion(body, [body.random_pose(k).q for k in range(2)], 30.0)
            >>> left, right = clip.mirrored()[0].position("left_hand"), clip[0].position("right_hand")
            >>> np.allclose(left, right * (-1, 1, 1))
            True
        """
        up = find_up(self.skeleton, self._q).likely if free_roots(self.skeleton) and len(self) else None
        mirror = Mirror.of(self.skeleton, up, self._q)
        kept = kept_limits(self.skeleton, self._q)
        rows = np.array(mirror.pairs)[self.skeleton.tables.owner]
        every = np.array([kept[self.skeleton.tables.owner == row].all() for row in range(len(self.skeleton))])
        both = kept & (every[np.maximum(rows, 0)] | (rows < 0))
        stretch = None if self.stretch is None else mirror.stretched(self.stretch)
        out = self._held(mirror.applied(self._q), stretch, both)
        return out if self.stretch is None or mirror.is_exact_for(self.stretch) else out.noted([_OBLIQUE])

    def looped(
        self,
        blend: int | None = None,
        *,
        cut: bool = True,
        lock_feet: bool = False,
        progress: Progress | None = None,
    ) -> Motion:
        """Return the clip as a loop: its last frame continues in its first frame.

        The differences of pose and velocity between end and beginning are divided between both, and fade out over
        ``blend`` frames on each side. Poses are not blended. Place and heading are excluded: a walk continues from its
        end. Repeat the loop with ``concatenate([loop] * 3, align=True)``, or make it walk in place with
        ``loop.in_place()``. Drift of less than 10 degrees, or 3 % of the body's size, each second is removed evenly.

        Args:
            blend: Frames on each side, 1 to half of the clip; None for a third of a second.
            cut: Whether the end of the clip may be cut off to keep whole strides, so that the feet are in the same
                phase as at the beginning. At least half of the clip is kept. Clips of bodies without feet are not cut.
                ``notes`` of the result report the kept part, or that no frame fits.
            lock_feet: Whether ``foot_lock`` then holds the planted feet, also across the seam.
            progress: Called with (steps done, number of steps).

        Raises:
            InputError: If the clip has fewer than 4 frames, or ``blend`` is out of range.

        Example:
            >>> import synovia as sy
            >>> loop = sy.load_motion("walk.bvh").looped(blend=10)  # doctest: +SKIP
            >>> sy.concatenate([loop] * 3, align=True)  # doctest: +SKIP
        """
        if len(self) < 4:
            raise InputError("number of frames", where=self.name, value=len(self), expected="at least 4 for a loop")
        count, notes = cut_for_loop(self.skeleton, self._q, self.fps) if cut else (len(self), ())
        clip = self[:count].noted(notes)
        size = max(1, round(self.fps / 3.0)) if blend is None else frames_of(blend, "blend", least=1)
        if blend is not None and size > count // 2:
            expected = f"1 to {count // 2} frames, half of the loop"
            raise InputError("blend", where=self.name, value=blend, expected=expected)
        size = min(size, count // 2)
        stretch = None if clip.stretch is None else looped_scale(clip.stretch, size)
        out = Motion._held(clip, looped(self.skeleton, clip.q, self.fps, size), stretch)
        if not lock_feet:
            return out
        ground = ground_of(self.skeleton, out.q, self.name)
        path = ground.path(out.q)
        # transform of the world from one cycle to the next
        once = path[-1] @ inverse(path[-2]) @ path[-1] @ inverse(path[0])
        around = [ground.carried(out.q, inverse(once)), out.q, ground.carried(out.q, once)]
        three = None if out.stretch is None else np.concatenate([out.stretch] * 3)
        long = with_planted_feet(self._with(np.concatenate(around), three), progress)
        again = looped(
            self.skeleton, long.q[count : 2 * count], self.fps, size
        )  # the cycles before and after may have different transforms
        return Motion._held(out, again, out.stretch).noted(long.notes)

    def moved(self, *, origin: ArrayLike | None = None, heading: float | ArrayLike | None = None) -> Motion:
        """Move the clip to another place on the ground, or to another heading.

        Args:
            origin: Start of the clip, (3,), length units: the hips of the first frame are above this point. Its height
                is added to all heights. None to keep the place.
            heading: Facing direction in the first frame: an angle about the upward axis, radians, from the axis that
                the body faces at rest; or a direction (3,). None to keep the heading.

        Raises:
            InputError: If the root of the body does not move freely, or a value cannot be used.

        Example:
            >>> import synovia as sy
            >>> body = sy.bundled("humanoid").with_root("free")
            >>> still = sy.Motion(body, [body.rest_q] * 3, 30.0)
            >>> still.moved(origin=(2, 0, 1)).positions()[0, body.index("hips")].round(2)
            array([2.  , 0.96, 1.  ])
        """
        ground = ground_of(self.skeleton, self._q, self.name)
        (place, *_), (angle, *_) = ground.measured(self._q)
        rise = np.zeros(3)
        faced = angle
        if heading is not None:
            if is_number(heading):
                faced = float(as_numbers(heading, (), "heading"))
            else:
                ahead = as_direction(heading, "heading")
                if np.linalg.norm(np.cross(ahead, ground.up)) < _UPWARD:
                    raise InputError("heading", where=self.name, value=heading, expected="a direction over the ground")
                faced = ground.facing(ahead)
        at = place
        if origin is not None:
            point = as_numbers(origin, (3,), "origin")
            rise = (point @ ground.up) * ground.up
            at = point
        start = ground.steps(np.array([place]), np.array([angle]))[0]
        there = ground.steps(np.array([at]), np.array([faced]))[0]
        there[:3, 3] += rise
        return self._carried(ground, there @ inverse(start))

    def in_place(self, *, heading: bool = False) -> InPlace:
        """Return the clip without its motion over the ground, which the result stores as ``root_motion``.

        The hips stay above their place in the first frame. Heights and leaning stay, and without ``heading`` also
        turns.

        Args:
            heading: Whether to remove rotations about the upward axis as well.

        Raises:
            InputError: If the root of the body does not move freely, or the clip has no frames.

        Example:
            >>> import synovia as sy
            >>> walk = sy.load_motion("walk.bvh").in_place()  # doctest: +SKIP
            >>> walk.root_motion.shape, walk.with_root_motion()  # doctest: +SKIP
        """
        ground = ground_of(self.skeleton, self._q, self.name)
        places, headings = ground.measured(self._q)
        path = ground.steps(places, headings if heading else np.full(len(self), headings[0]))
        way = path @ inverse(path[0])
        return InPlace.made(self._carried(ground, inverse(way)), way)

    def additive(self, base: Motion | Pose) -> Additive:
        """Return the difference of the clip from a base, which ``with_added`` adds to other clips.

        Args:
            base: A pose, such as ``motion[0]`` or ``skeleton.rest_pose()``; or a clip of as many frames.

        Raises:
            InputError: If the base has other joints, another number of frames, or another rate.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> body = sy.bundled("humanoid")
            >>> nod = sy.Motion(body, [body.rest_pose().with_values({"head": (x, 0, 0, 1)}).q for x in (0, 0.01)], 30.0)
            >>> other = sy.Motion(body, [body.random_pose(1).q] * 2, 30.0)
            >>> other.with_added(nod.additive(nod[0]))
            Motion('motion', 2 frames at 30 fps, 'humanoid')
        """
        check_kind("base", base, (Motion, Pose), "motion[0] is the pose of the first frame")
        rows = base.q[None] if isinstance(base, Pose) else base.q
        check_alike("base", base.skeleton, len(rows), self)
        if isinstance(base, Motion) and len(rows) > 1 and not same_rate(base.fps, self.fps):
            raise InputError("fps of base", where=self.name, value=base.fps, expected=f"{self.fps:g}, as the clip")
        return Additive(self.skeleton, Chart.of(self.skeleton).course(rows, self._q), self.fps, self.name)

    def with_added(self, additive: Additive, weight: float | ArrayLike = 1.0, *, lock_feet: bool = False) -> Motion:
        """Return the clip with an additive motion (the difference of another clip from its base) added to it.

        Args:
            additive: The difference, of as many frames, or of one; ``Motion.additive`` makes it.
            weight: Factor of the difference, or a factor for each frame, (T,), to fade it in and out.
            lock_feet: Whether ``foot_lock`` then holds the planted feet.

        Raises:
            InputError: If the difference is of another body, length or rate.

        Example:
            >>> import numpy as np
            >>> import synovia as sy
            >>> body = sy.bundled("humanoid")
            >>> clip = sy.Motion(body, [body.random_pose(k).q for k in range(2)], 30.0)
            >>> same = sy.Motion(body, [clip.q[0]] * 2, 30.0).with_added(clip.additive(clip[0]))
            >>> np.allclose(same.positions(), clip.positions())
            True
        """
        check_kind("additive", additive, Additive, "motion.additive(motion[0]) makes one")
        check_alike("additive", additive.skeleton, len(additive), self)
        if len(additive) > 1 and not same_rate(additive.fps, self.fps):
            expected = f"{self.fps:g}, as the clip"
            raise InputError("fps of additive", where=self.name, value=additive.fps, expected=expected)
        factor = as_numbers(weight, (len(self),) if dimensions(weight) else (), "weight").reshape(-1, 1)
        steps = np.broadcast_to(factor * additive.steps, (len(self), additive.steps.shape[1]))
        q = self.skeleton.follow(Chart.of(self.skeleton).stepped(self._q, steps))
        return self._finished(self._held(q, self.stretch), lock_feet)

    def _with(self, q: Array, stretch: Array | None, *, fps: float | None = None) -> Motion:
        """Return a motion with other values, and with the name and the notes of this motion."""
        rate = self.fps if fps is None else fps
        return Motion(self.skeleton, q, rate, name=self.name, stretch=stretch, notes=self.notes)

    def _held(
        self,
        q: Array,
        stretch: Array | None,
        kept: Bools | None = None,
        *,
        fps: float | None = None,
        anchors: Array | None = None,
    ) -> Motion:
        """Return a motion with other values, clamped to the limits that this motion keeps; notes report changes."""
        q, notes = held(self.skeleton, q, kept_limits(self.skeleton, self._q) if kept is None else kept, anchors)
        return self._with(q, stretch, fps=fps).noted(notes)

    def _carried(self, ground: Ground, transforms: Array) -> Motion:
        """Return the motion moved over the ground by transforms (T, 4, 4); a note reports violated limits of roots."""
        q = ground.carried(self._q, transforms)
        if bool((kept_limits(self.skeleton, self._q) & ~kept_limits(self.skeleton, q)).any()):
            names = ", ".join(self.skeleton.joint_names[row] for row in ground.roots)
            return self._with(q, self.stretch).noted([f"Moved beyond the limit of {names}."])
        return self._with(q, self.stretch)

    def _finished(self, motion: Motion, lock_feet: bool) -> Motion:
        """Return a motion; with ``lock_feet``, its planted feet do not slide."""
        return with_planted_feet(motion) if lock_feet else motion

    def _between(self, times: Array, what: str) -> Array:
        """Return joint values (n, nq) at times (n,); values stay within limits that the clip keeps."""
        self._check_times(times, what)
        q = interpolated(self.skeleton, self._q, self.times, np.clip(times, 0.0, self.duration))
        return held(self.skeleton, q, kept_limits(self.skeleton, self._q), self._frame_before(times))[0]

    def _retimed(self, times: Array, fps: float) -> Motion:
        """Return a motion whose frames are those of the clip at times (n,)."""
        self._check_times(times, "times")
        q = interpolated(self.skeleton, self._q, self.times, times)
        stretch = None if self.stretch is None else positive(self.stretch, self.times, times)
        return self._held(q, stretch, fps=fps, anchors=self._frame_before(times))

    def _frame_before(self, times: Array) -> Array | None:
        """Return joint values of the last frame up to each time, (n, nq), for skeletons with loops; else None."""
        if self.skeleton.mechanism is None:
            return None
        return self._q[np.clip(np.floor(times * self.fps).astype(np.int64), 0, len(self) - 1)]

    def _check_times(self, times: Array, what: str) -> None:
        """Raise an error for times (n,) outside the clip."""
        outside = (times < -_EPS) | (times > self.duration * (1.0 + _EPS) + _EPS)
        if not len(self) or outside.any():
            expected = f"seconds from 0 to {self.duration:g}" if len(self) else "a clip with frames"
            raise InputError(what, where=self.name, value=times[outside][:4].tolist(), expected=expected)

    def _above_zero(self, value: Any, what: str) -> float:
        """Return a value as a number above 0, or raise an error."""
        number = float(as_numbers(value, (), what))
        if number <= 0.0:
            raise InputError(what, where=self.name, value=value, expected="a number above 0")
        return number

    def _foreign(self, skeleton: Skeleton, joint: str | None = None) -> InputError:
        """Return the error for a skeleton of another body, which has other joints, one other joint, or other sizes."""
        own, other = self.skeleton.joint_names, skeleton.joint_names
        more, less = [name for name in own if name not in other], [name for name in other if name not in own]
        found = [
            f"{text} {listed(names)}"
            for text, names in (("only the clip has", more), ("it lacks" if more else "the clip lacks", less))
            if names
        ]
        if not found and len(own) == len(other) and own != other:
            row = next(k for k, names in enumerate(zip(own, other, strict=True)) if names[0] != names[1])
            found = [f"joint {row} is {own[row]!r} in the clip and {other[row]!r} in the skeleton"]
        elif not found and joint is None and own == other:
            found = ["bones of the same names differ in length, as with another length unit"]
        differ = f"{' and '.join(found)}: " if found and joint is None else ""
        return InputError(
            "clip belongs to another skeleton" if joint is None else f"clip has another joint {joint!r}",
            where=self.name,
            value=self.skeleton.name,
            expected=f"the joints of {skeleton.name}",
            hint=f"{differ}view the clip's own file, or retarget the clip first",
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

        They include animated scale (``stretch``), as in the file.
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


class InPlace(Motion):
    """A motion without its motion over the ground; ``in_place`` and ``retarget(root_motion="none")`` create it.

    Attributes:
        root_motion: The removed motion, as transforms of the world, (T, 4, 4). With ``in_place``, the first
            transform is the identity.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> start = body.rest_pose()
        >>> clip = sy.Motion(body, [start.with_values({"hips": (0, 0, z, 0, 0, 0, 1)}).q for z in (0, 1, 2)], 30.0)
        >>> clip.in_place().root_motion[:, 2, 3]
        array([0., 1., 2.])
    """

    __slots__ = ("root_motion",)

    root_motion: Array

    @classmethod
    def made(cls, motion: Motion, root_motion: Array) -> InPlace:
        """Return a clip without root motion, together with the root motion that was removed from it."""
        out = cls(motion.skeleton, motion.q, motion.fps, name=motion.name, stretch=motion.stretch, notes=motion.notes)
        root_motion.setflags(write=False)
        out.root_motion = root_motion
        return out

    def _part(self, frames: slice, fps: float) -> Self:
        """Return a part of the clip, with the root motion of this part."""
        out = super()._part(frames, fps)
        out.root_motion = self.root_motion[frames]
        return out

    def with_root_motion(self) -> Motion:
        """Return the motion with its motion over the ground restored."""
        ground = ground_of(self.skeleton, self.q, self.name)
        return self._carried(ground, self.root_motion)


def frames_of(value: Any, what: str, *, least: int) -> int:
    """Check and return a number of frames.

    Raises:
        InputError: If the value is not a whole number, or below ``least``.
    """
    if not is_number(value) or not float(value).is_integer() or value < least:
        raise InputError(what, value=value, expected=f"a whole number of frames, at least {least}")
    return int(value)


def _same_axes(a: Joint, b: Joint) -> bool:
    """Return whether two joints have the same orientation at rest and the same axis."""
    turned = np.abs(a.rest[:3, :3] - b.rest[:3, :3]).max() > _ALIKE
    return not turned and (a.kind is not b.kind or np.abs(a.axis - b.axis).max() <= _ALIKE)


def _stretch(frames: Array, parents: Sequence[int], stretch: Array) -> None:
    """Apply animated scale (T, n, 3) to the positions of rigid world frames (T, n, 12), in place.

    Let R be the rotation of a joint and S its scale. The linear map G of everything below the joint, from the rigid
    world to the scaled world, is the map of its parent times R S Rᵀ. A joint is at its parent's position plus the G of
    its parent times the rigid difference of both positions.
    """
    maps: dict[int, Array] = {}  # the map G of each joint, by row; the identity for rows that are not in the dict
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
