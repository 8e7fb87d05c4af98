"""Lines in one browser's scene that explain goals: lines of sight, areas of support, planes, pairs that are near.

Each kind of goal provides its own lines, for pictures and for the page. Points, and arcs of ranges, are drawn by other
modules.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from synovia.draw.marks import sketches_of
from synovia.draw.theme import Theme
from synovia.errors import SynoviaError
from synovia.goals import Goal
from synovia.goals.describe import View
from synovia.model.geometry import Array, rigid
from synovia.viewer.editing.editor import GoalEditor
from synovia.viewer.editing.editor_values import tip_of
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.goals import Goals
from synovia.viewer.scene.canvas import Canvas
from synovia.viewer.scene.lines import STATES, StateLines

_WIDTH: Final = 2.0  # width of the lines, pixels


class Sketches:
    """The lines of all goals, coloured by their state.

    Args:
        canvas: The browser, and the scale and colours of its scene.
        goals: The goals.
    """

    def __init__(self, canvas: Canvas, goals: Goals) -> None:
        """Make the nodes, which are never removed."""
        self.shown = True
        self._goals, self._scale, self._size = goals, canvas.scale, canvas.size / canvas.scale
        self._free: dict[int, Goal] = {}  # goals that are off until their target is moved, by the key of their editor
        self._version = -1  # version of the goals for which ``_free`` was made
        self._lines = StateLines(canvas.client, "/sketches", canvas.theme, _WIDTH)

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self._lines.set_theme(theme)

    def show(self, frame: Frame) -> None:
        """Show the lines of the goals in a frame."""
        if self._version != self._goals.version:
            self._version = self._goals.version
            self._free.clear()
        paths: dict[str, list[Array]] = {state: [] for state in STATES}
        if frame.solution is not None and self.shown and not frame.busy:
            for _, view, sketch in sketches_of(frame.solution, self._size):
                paths["reached" if view.reached else "quiet" if frame.late else "missed"] += sketch.paths
        for gap in frame.gaps if self.shown else ():
            paths["missed" if gap.is_near else "reached"].append(gap.points)
        for editor in frame.editors:
            if editor.free and editor.has_position and self.shown:
                paths["quiet"] += self._paths_of(frame, editor)
        self._lines.show({state: [path * self._scale for path in found] for state, found in paths.items()})

    def _paths_of(self, frame: Frame, editor: GoalEditor) -> list[Array]:
        """Return the lines of a goal that is off until its target is moved, as points in length units."""
        if editor.key not in self._free:
            with suppress(SynoviaError):
                self._free[editor.key] = editor.goal(self._goals.given.address)
        goal = self._free.get(editor.key)
        if goal is None:
            return []
        place, turn = tip_of(frame.pose, editor, frame.added)
        target = rigid(editor.eased_position, editor.eased_rotation)
        view = View(at=rigid(place, turn), target=target, others=(), size=self._size, reached=False, length=0.0)
        return list(goal.sketch(view).paths)
