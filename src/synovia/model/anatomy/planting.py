"""Planted feet: places of the points of feet in frames with contact, and angles that raise soles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from synovia.model.anatomy.contacts import Spans
from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array, Bools
from synovia.model.tables import Ints

# seconds in which a foot leaves its path before the first contact, and returns after the last; in which it returns if
# later contacts are not known; in which it rotates from its own direction to that of its contact, and back, likewise
SWING: Final = 0.5
_SWING_NOW: Final = 0.2
_TURN: Final = 0.1
_TURN_NOW: Final = 0.07
_LEVELING: Final = 0.15  # seconds: time constant with which a foot returns to its own height if its place is not known
_NONE: Final = 1e-5  # leg lengths: smaller displacements count as zero


class FootPlaces:
    """Places of ankles and toes that do not move during contacts, in a clip or frame by frame.

    In a clip, a planted point is at the mean of its positions during the contact, and the displacement of a foot
    changes smoothly from one contact to the next. Without later frames, a point stays where its contact begins, and the
    displacement fades after the contact.

    Args:
        up: Upward direction, (3,).
        leg: Length of a leg, length units.
        mates: For each point, the index of the other point of the same foot, ankles before toes; None without one.
        rate: Frames per second.
        causal: Whether frames come one by one.

    Attributes:
        active: Whether a point is planted or displaced in the last frames.
    """

    def __init__(self, up: Array, leg: float, mates: Sequence[int | None], rate: float, *, causal: bool) -> None:
        """Fill the tables of the kernel."""
        from synovia.kernels.pursuit import feet

        self._plant, self._rate, self._causal = feet.plant_feet, rate, causal
        self._mates = np.array([-1 if mate is None else mate for mate in mates], np.int32)
        swing, turn = (_SWING_NOW, _TURN_NOW) if causal else (SWING, _TURN)
        leveling = 1.0 - float(np.exp(-1.0 / (_LEVELING * rate)))
        self._settings = np.array([swing * rate, turn * rate, leveling, _NONE * leg, *up])
        self._start = np.zeros((len(mates), feet.PLANT_STATE))
        self._start[:, [feet.SINCE, feet.AGO]] = 1e9  # long ago
        self.reset()

    def reset(self) -> None:
        """Forget the frames so far."""
        self._state, self.active = self._start.copy(), False

    def follow(self, own: Array, stands: Bools) -> Array:
        """Return where points should be in the next frames, all frames of the clip unless ``causal``, (T, points, 3).

        Args:
            own: Positions of the points without contacts, (T, points, 3).
            stands: Mask of the planted points, (T, points).
        """
        if not self._causal:
            self.reset()
        own, places = np.ascontiguousarray(own), np.empty(own.shape)
        holds = np.full(own.shape, np.nan) if self._causal else self._known_places(own, stands)
        self.active = bool(
            self._plant(own, stands.astype(np.float64), self._mates, self._settings, self._state, holds, places)
        )
        if not self._causal:
            for k, mate in enumerate(self._mates.tolist()):
                if not 0 <= mate < k:
                    foot = [k] if mate < 0 else [k, mate]
                    shift, spans = places[:, k] - own[:, k], runs(np.asarray(stands[:, foot].any(axis=1)))
                    places[:, foot] += (eased(shift, spans, self._rate) - shift)[:, None]
        return places

    def _known_places(self, own: Array, stands: Bools) -> Array:
        """Return the places of planted points in a clip, (T, points, 3), NaN without contact."""
        out = np.full(own.shape, np.nan)
        mates: list[int] = self._mates.tolist()
        for k, mate in reversed([*enumerate(mates)]):  # toes come first
            for a, b in runs(stands[:, k]):
                out[a:b, k] = place = own[a:b, k].mean(0)
                if mate > k and stands[a:b, mate].any():  # the foot is rigid
                    both = np.flatnonzero(stands[a:b, mate]) + a
                    toe, length = out[both, mate].mean(0), np.linalg.norm(own[:, mate] - own[:, k], axis=1).mean()
                    line = toe - place
                    line *= length / max(float(np.linalg.norm(line)), 1e-12)
                    out[a:b, k], out[both, mate] = toe - line, toe
        return out


def eased(shift: Array, spans: Spans, fps: float) -> Array:
    """Fill the shift (T, 3) of a path outside its spans: it changes smoothly from one span to the next."""
    shift = shift.copy()
    if not spans:
        return shift
    first, last = spans[0][0], spans[-1][1]
    before, after = np.arange(first, 0, -1), np.arange(1, len(shift) - last + 1)
    for part, end, frames in ((slice(0, first), first, before), (slice(last, None), last - 1, after)):
        shift[part] = (1.0 - ease(np.minimum(frames / (SWING * fps), 1.0)))[:, None] * shift[end]
    for (_, b), (a, _) in itertools.pairwise(spans):
        u = np.linspace(0.0, 1.0, a - b + 2)[1:-1, None]
        shift[b:a] = shift[b - 1] + ease(u) * (shift[a] - shift[b - 1])
    return shift


def ease(u: Array) -> Array:
    """Return a step from 0 to 1 whose speed and acceleration are 0 at both ends."""
    return u * u * u * (u * (6.0 * u - 15.0) + 10.0)


def raising_angles(joint: int, rows: Ints, points: Array, numbers: Array) -> Callable[[Array, Array], None]:
    """Return a function that finds how far a joint of a foot must turn, so that toes and heel are not below the floor.

    It takes world frames of the body, (T, n, 12), and writes to its second argument, (T, 4), radians: the angles by
    which toes and heel must rise, then the angles by which toes and heel can rise until the foot is horizontal.

    Args:
        joint: Row of the joint.
        rows: Row of the joint that carries each point of the sole, (k,).
        points: The points in the frames of these joints, (k, 3).
        numbers: (4, 3): the joint's axis and the direction ahead, both in its frame; the upward direction of the world;
            bounds, see ``kernels.tree.soles``.
    """
    from synovia.kernels.tree.soles import sole_needs

    def write(frames: Array, out: Array) -> None:
        sole_needs(frames, joint, rows, points, numbers, out)

    return write
