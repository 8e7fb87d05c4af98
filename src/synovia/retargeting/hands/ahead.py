"""Live hands with look-ahead: the program for recordings runs over windows of the last frames of points."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from synovia.model import Skeleton
from synovia.model.geometry import Array, Bools
from synovia.model.motion import Motion
from synovia.retargeting.hands.judge import OFF, TOUCH
from synovia.retargeting.hands.retarget_hand import RetargetedHand, retarget_hand
from synovia.retargeting.live.ahead import Windows


class HandFrame(NamedTuple):
    """A frame of a hand that was followed with knowledge of later ones.

    Args:
        fingers: Names of the fingers.
        errors: Distance of each tip from its target, (F,).
        seen: Mask of the seen fingers, (F,).
        missed: Mask of the seen fingers that are far from their targets or leave a pinch open, (F,).
        pinching: Fingers whose pinch is closed in the recording.
        side: Side of the tracked hand.
    """

    fingers: tuple[str, ...]
    errors: Array
    seen: Bools
    missed: Bools
    pinching: tuple[str, ...]
    side: str


class HandAhead(Windows[tuple[Array, Array], HandFrame]):
    """Follows frames of points, (21, 3), and their confidences, (21,), with the program of ``retarget_hand``.

    Side and scale of the tracked hand are those of the first window.

    Args:
        skeleton: The skeleton of the hand.
        rate: Frames per second.
        seconds: The look-ahead, seconds; infinite to wait for the end.
        options: Options of ``retarget_hand``.
    """

    def __init__(self, skeleton: Skeleton, rate: float, seconds: float, options: Mapping[str, Any]) -> None:
        """Start without frames."""
        self._skeleton, self._options = skeleton, dict(options)
        self.answer: RetargetedHand | None = None
        super().__init__(rate, seconds)

    def reset(self) -> None:
        """Discard all frames, and what is known of the side and the scale of the tracked hand."""
        super().reset()
        self.answer = None

    def _followed(self, heard: Sequence[tuple[Array, Array]]) -> Generator[None, None, tuple[Motion, list[HandFrame]]]:
        """Retarget the frames of a window."""
        points, trust = (np.array(values) for values in zip(*heard, strict=True))
        known = self.answer
        options: dict[str, Any] = self._options
        if known is not None:
            options = options | {"source_side": known.source_side, "scale": known.scale}
        self.answer = made = retarget_hand(points, self._skeleton, fps=self._rate, confidence=trust, **options)
        yield
        touch = TOUCH / (self._skeleton.meters_per_unit or 1.0)
        pinched = np.zeros(made.errors.shape, bool)
        open_ = np.zeros(made.errors.shape, bool)
        for one in made.pinches:
            k = made.fingers.index(one.finger)
            pinched[one.first : one.end, k] = True
            open_[one.first : one.end, k] = one.distance > touch
        seen = made.trust > 0.0
        missed = seen & ((made.errors > OFF[1] * made.reach) | open_)
        return made.motion, [
            HandFrame(
                made.fingers, made.errors[t], seen[t], missed[t],
                tuple(np.array(made.fingers)[pinched[t]].tolist()), made.source_side,
            )
            for t in range(len(heard))
        ]  # fmt: skip
