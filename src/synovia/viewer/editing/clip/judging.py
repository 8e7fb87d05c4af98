"""Findings about a retargeted clip, which is judged again after each edit, so that what is mended is not reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from synovia.model.finding import Finding
from synovia.model.motion import Motion
from synovia.model.rooted import without_root_values
from synovia.retargeting import Retargeted
from synovia.viewer.editing.clip.curves import edited_values
from synovia.viewer.editing.state import State


class Judging:
    """The findings about the clip of a page.

    Args:
        state: The state of the page.

    Attributes:
        answers: How clips were retargeted, by the number of the clip.
    """

    def __init__(self, state: State) -> None:
        """Start without findings."""
        self.answers: Mapping[int, Retargeted] = {}
        self._state = state
        self._judged: tuple[tuple[object, ...], Sequence[Finding]] = (), ()

    def _answer(self) -> Retargeted | None:
        """Return how the clip that plays was retargeted; None if it was not."""
        number = next((k for k, one in enumerate(self._state.clips) if one is self._state.play.motion), -1)
        return self.answers.get(number)

    @property
    def _edits(self) -> tuple[object, ...]:
        """The clip, its layers and its keys, on which the findings depend."""
        play = self._state.play
        return play.motion, play.edited, play.layer if play.keys else None

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings about the clip, which are those before the last edit until ``judge`` was called."""
        answer, (edits, found) = self._answer(), self._judged
        if answer is None:
            return ()
        return found if edits and edits[0] is self._state.play.motion else answer.findings

    @property
    def due(self) -> bool:
        """Whether an edit has changed the clip since it was judged."""
        motion = self._state.play.motion
        judged = self._judged[0] if self._judged[0][:1] == (motion,) else (motion, None, None)
        changed = any(a is not b for a, b in zip(judged, self._edits, strict=True))
        return changed and self._state.play.drag is None and self._answer() is not None

    def judge(self) -> None:
        """Judge the clip with its layers and keys, which takes a moment."""
        with self._state.lock:
            answer, edits, motion = self._answer(), self._edits, self._state.play.motion
            if answer is None or motion is None:
                return
            values = edited_values(self._state, np.arange(len(motion)))
        own = Motion(motion.skeleton, without_root_values(values, motion.skeleton), motion.fps)
        self._judged = edits, replace(answer, motion=own.on(answer.motion.skeleton)).findings
