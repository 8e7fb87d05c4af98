"""Playback of a clip: play and pause, steps, backwards and faster, and the frames that play."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from synovia.model.motion import Motion
from synovia.viewer.editing.clip.play import Play

_FASTEST: Final = 4.0  # largest factor of the speed of playback


class Transport:
    """Plays a clip.

    Args:
        required: Returns the playback state and the clip; raises an error if no clip is chosen.
        change: Changes attributes of the playback state.
        span: Sets the first and the last frame that play.
    """

    def __init__(
        self,
        required: Callable[[], tuple[Play, Motion]],
        change: Callable[..., Any],
        span: Callable[[int, int], Any],
    ) -> None:
        """Store the arguments."""
        self._required, self._change, self._span = required, change, span

    def actions(self) -> dict[str, Callable[..., Any]]:
        """Return the actions of the time line by name."""
        return {
            "go": self.go, "step": self.step, "mark": self.mark, "play": self.play, "stop": self.stop,
            "loop": self.loop, "speed": self.speed, "shuttle": self.shuttle, "range": self._span,
        }  # fmt: skip

    def go(self, frame: int) -> None:
        """Pause at a frame."""
        _, motion = self._required()
        self._change(time=min(max(int(frame), 0), len(motion) - 1) / motion.fps, playing=False)

    def step(self, frames: int) -> None:
        """Go some frames ahead, or back if negative, but not beyond the frames that play; pause the clip."""
        play, _ = self._required()
        self.go(min(max(play.frame + int(frames), play.first), play.end))

    def play(self, on: int | None = None) -> None:
        """Play forwards (1) or pause (0); None to switch between both."""
        play, _ = self._required()
        self._change(playing=not play.playing if on is None else bool(on), shuttle=abs(play.shuttle))

    def stop(self) -> None:
        """Pause at the first frame that plays."""
        self.go(self._required()[0].first)

    def loop(self, on: int) -> None:
        """Set whether the clip begins again after its end."""
        self._change(loop=bool(on))

    def speed(self, factor: float) -> None:
        """Set the speed of playback, which does not change what is saved."""
        self._change(shuttle=float(factor))

    def shuttle(self, way: int) -> None:
        """Play forwards (1) or backwards (-1), twice as fast if the clip does so already; 0 pauses."""
        play, _ = self._required()
        pace = abs(play.shuttle)
        same = play.playing and way * play.shuttle > 0.0
        factor = way * min(2.0 * pace if same else pace, _FASTEST) if way else min(pace, 1.0)
        self._change(shuttle=factor, playing=way != 0)

    def mark(self, last: int) -> None:
        """Make the current frame the first frame that plays (0), or the last (1)."""
        play, motion = self._required()
        if last:
            self._span(min(play.first, max(play.frame - 1, 0)), max(play.frame, 1))
        else:
            at = min(play.frame, len(motion) - 2)
            self._span(at, max(play.end, at + 1))
