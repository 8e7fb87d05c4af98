"""The tab *Why*: explain a miss, plot the error by iteration, and compare the solvers on the same targets."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.comparison.race import Run, race, trace
from synovia.draw.causes import Cause, causes_of
from synovia.errors import SynoviaError
from synovia.model.geometry import Array
from synovia.solver import as_solver, solvers
from synovia.viewer.editing.clip.layers import ClipLayers
from synovia.viewer.editing.engine import Frame
from synovia.viewer.editing.solving import Solving
from synovia.viewer.page.style import DIM, PRIMARY, note, safe
from synovia.viewer.page.tab import Desk, Tab

_NO_GOAL: Final = "No goal is enabled."
_COLOURS: Final = ("#009e88", "#d9730d", "#4263eb", "#c2255c", "#5c940d", "#7048e8", "#0b7285", "#a61e4d",
            "#868e96", "#f06595", "#e0a800", "#2f9e44", "#495057")  # fmt: skip
_RANGE: Final = (-13.0, 1.0)  # log10 of the plotted errors: from rounding to ten times the body's size
_LEAST: Final = 1.0  # smallest range of the error axis, decades
_SPECIAL: Final = ("two-bone", "aim", "hinges", "segments")  # closed forms, which support few problems
_RACE: Final = "Each solver starts from the rest pose; its answer is shown as a ghost."
_POINTS: Final = 48  # points of a curve


class Why(Tab):
    """Explains the status, plots the error, and runs a race of solvers on the same targets.

    Args:
        page: The page.
        solving: The solver of the page, and its problem.
        layers: The layers on the clip.
    """

    def __init__(self, page: Desk, solving: Solving, layers: ClipLayers) -> None:
        """Store the arguments."""
        super().__init__(page)
        self._solving, self._layers = solving, layers

    def build(self) -> None:
        """Add the controls."""
        gui = self.gui
        self._text = gui.add_html("")
        hint = "Limits, lengths, other goals and proofs that stand against a missed goal."
        self._marks: Any = gui.add_checkbox("Causes in the scene", True, hint=hint)
        self.connect(self._marks, lambda _: self._mark())
        self._busy, self._racing = threading.Lock(), threading.Lock()
        self._explained: Any = None  # problem and pose of the last explanation, shown or in progress
        self._due: Frame | None = None  # the next frame to explain
        self._raced: Any = None  # problem of the shown race
        self._causes: list[Cause] = []
        gui.add_html(note("<b>Error by iteration</b>, from the rest pose, in one attempt"))
        self._plot: Any = None
        self._place = gui.add_folder(None)  # placeholder for the plot, which other threads replace
        self._draw([])
        with gui.add_folder("Who races", expand_by_default=False):
            self._racers = {name: gui.add_checkbox(name, name not in _SPECIAL) for name in solvers}
        self.connect(gui.add_button("Race", color=PRIMARY), lambda _: self._start(), click=True)
        self.connect(gui.add_button("Clear the ghosts"), lambda _: self._clear(), click=True)
        self._legend = gui.add_html(note(_RACE))

    def show(self, frame: Frame) -> None:
        """Show the status; at rest, start the explanation and the plot, which take many solves."""
        problem = _problem_key(self._solving, frame)
        if self._raced is not None and problem != self._raced:
            self._raced = None
            self._clear()
        number = self._layers.missed() if self._solving.on_clip else None
        if frame.solution is None and number is None:
            self._explained = None
            self._mark([])
            idle = "No layer misses a goal at this frame." if self._solving.on_clip else _NO_GOAL
            waits = "The solver is not ready yet." if frame.busy else idle
            self._show_lines([frame.trouble or waits])
            return
        now = (problem, number, frame.pose.q.tobytes())
        if now == self._explained:
            return
        self._explained = None
        self._mark([])
        self._show_lines([self._meaning(frame, number)])
        if frame.still:
            self._explained, self._due = now, frame
            self.page.host.background.start("synovia-trace", self._explain)

    def _meaning(self, frame: Frame, number: int | None) -> str:
        """Return the status in words: of the solution, or of the layer that misses a goal."""
        if number is not None:
            return f"The layer {self._layers.all[number].label} misses its goal at this frame."
        return "" if frame.solution is None else frame.solution.status.meaning

    def _clear(self) -> None:
        """Remove the ghosts and the table of a race."""
        self.page.scene.show_runners([])
        self._legend.content = note(_RACE)

    def _explain(self) -> None:
        """Explain due frames and plot the error of the page's solver in a background thread, until no frame is due."""
        while self._due is not None and not self.page.closed and self._busy.acquire(blocking=False):
            frame, self._due = self._due, None
            try:
                solution, number = frame.solution, self._layers.missed() if self._solving.on_clip else None
                if number is not None:
                    solution = self._layers.solution(number)
                if solution is not None and not frame.late:
                    causes = causes_of(solution, frame.pose.skeleton.size)  # before the words, which use its proof
                    lines = solution.explain()
                    if frame is self.page.frame:  # the frame is still current
                        self._show_lines(lines)
                        self._mark(causes)
                solving = self._solving
                if number is None and (goals := solving.goals()) and self._raced is None:
                    self._draw([trace(solving.problem, solving.solver, goals, solving.rest())])
                self.page.client.flush()
            except (SynoviaError, RuntimeError):  # the session has changed, or the page is closed
                return
            finally:
                self._busy.release()

    def _mark(self, causes: list[Cause] | None = None) -> None:
        """Show causes in the scene, if the checkbox is set; None for the present ones."""
        self._causes = self._causes if causes is None else causes
        self.page.scene.causes.show(self._causes if self._marks.value else [])

    def _show_lines(self, lines: Sequence[str]) -> None:
        """Show sentences."""
        self._text.content = note("<br>".join(safe(line) for line in lines))

    def _start(self) -> None:
        """Start a race, unless a race is running."""
        if self._racing.acquire(blocking=False):
            self.page.host.background.start("synovia-race", self._run_race)

    def _run_race(self) -> None:
        """Run the race in a background thread; a first use compiles a solver."""
        try:
            with self._busy:
                solving, own = self._solving, self._solving.solver
                names = [name for name, box in self._racers.items() if box.value]
                racers = [own if own.name == name else as_solver(name) for name in names]
                begun = self.page.frame
                problem = None if begun is None else _problem_key(self._solving, begun)
                runs: list[Run] = []
                for run in race(solving.problem, solving.goals(), racers, solving.rest()):
                    if self.page.closed:
                        return
                    runs.append(run)
                    self._show_progress(f"{len(runs)} of {len(names)} solvers have run …")
                if self.page.frame is None or _problem_key(self._solving, self.page.frame) != problem:
                    self._show_progress("The targets have moved. Start the race again.")
                    return
                self._draw(runs)
                self.page.scene.show_runners([(run.pose, _colour(i)) for i, run in enumerate(runs) if run.pose])
                self._legend.content = _legend(runs)
                self._raced = problem
                self.page.client.flush()
        except (SynoviaError, RuntimeError) as error:
            self._show_progress(str(error))
        finally:
            self._racing.release()
            self._explain()  # frames that became due during the race

    def _show_progress(self, text: str) -> None:
        self._legend.content = note(safe(text))
        self.page.client.flush()

    def _draw(self, runs: Sequence[Run]) -> None:
        """Plot errors over iterations, both on logarithmic axes."""
        drawn = [(run, _colour(i)) for i, run in enumerate(runs) if len(run.steps)]
        last = max((float(run.steps[-1]) for run, _ in drawn), default=10.0)
        x = np.unique(np.round(np.geomspace(1.0, max(last, 10.0), _POINTS)))
        data = [x]
        for run, _ in drawn:
            y = np.clip(np.interp(x, run.steps, np.log10(run.errors)), *_RANGE)
            data.append(np.where(x <= run.steps[-1], y, np.nan))
        span = _span(data[1:])
        series: list[Any] = [{"label": "iteration"}]
        series += [{"label": run.name, "stroke": colour, "width": 2} for run, colour in drawn]
        if not drawn:
            data.append(np.full(len(x), np.nan))
            series.append({"label": "error", "stroke": _COLOURS[0], "width": 2})
        scales: Any = {"x": {"time": False, "distr": 3}, "y": {"auto": False, "range": span}}
        if self._plot is not None and len(self._plot.series) == len(series):
            self._plot.series = tuple(series)
            self._plot.data = tuple(data)
            self._plot.scales = scales
            return
        if self._plot is not None:
            self._plot.remove()
        with self._place:
            self._plot = self.gui.add_uplot(
                tuple(data),
                tuple(series),
                scales=scales,
                axes=(
                    {"stroke": "#868e96", "label": "iteration", "labelSize": 18, "size": 34},
                    {"stroke": "#868e96", "label": "log10 of the error", "labelSize": 18, "size": 44},
                ),
                legend={"show": False},
                height=210,
            )


def _problem_key(solving: Solving, frame: Frame) -> tuple[Any, ...]:
    """Return a key that changes with the goals and the targets."""
    targets = [
        (editor.key, editor.position.tobytes(), editor.rotation.tobytes()) for editor in frame.editors if editor.enabled
    ]
    return (solving.version, *targets)


def _colour(number: int) -> str:
    """Return the colour of a solver by its number in the race."""
    return _COLOURS[number % len(_COLOURS)]


def _span(lines: Sequence[Array]) -> tuple[float, float]:
    """Return the ends of the error axis, log10, with a margin around the curves."""
    values = np.concatenate([*lines, np.zeros(0)])
    values = values[np.isfinite(values)]
    if not len(values):
        return -3.0, 0.0
    low, high = float(values.min()), float(values.max())
    more = max(0.08 * (high - low), 0.5 * (_LEAST - (high - low)))
    return low - more, high + more


def _legend(runs: Sequence[Run]) -> str:
    """Return an HTML table of the solvers, their colours and their results."""
    rows: list[str] = []
    for i, run in enumerate(runs):
        if run.trouble:
            mark, result = f'<span style="color:{DIM}">–</span>', f"not supported: {safe(run.trouble)}"
        else:
            mark = f'<span style="color:{_colour(i)}">■</span>'
            steps = f"{int(run.steps[-1])} step{'' if run.steps[-1] == 1 else 's'}"
            result = f"{safe(run.status)}, {steps}, 10<sup>{math.log10(run.errors[-1]):.1f}</sup>"
            if run.without:
                result += f'<br><span style="color:{DIM}">without {safe(", ".join(run.without))}</span>'
        rows.append(
            f'<tr style="vertical-align:top"><td style="padding-right:.5em">{mark}</td>'
            f'<td style="padding-right:.6em;white-space:nowrap">{safe(run.name)}</td><td>{result}</td></tr>'
        )
    return f'<table style="padding:.2em .6em;font-size:.84em">{"".join(rows)}</table>'
