"""Plot of the convergence of solvers."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from synovia.comparison import Comparison
from synovia.comparison.measure import Row
from synovia.model.geometry import Array
from synovia.plots.style import COLOURS, check_plot, new_figure, save

_BELOW: Final = 20.0  # ratio of the tolerance to the smallest error of the plot
_DASHES: Final = ("-", "--", ":")
_FLOOR: Final = 1e-9  # fraction of the length scale: smaller errors are rounding errors
_APART: Final = 0.26  # least distance between two names, decades


def plot_convergence(comparison: Comparison, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Plot the error of first attempts over steps for every solver.

    Args:
        comparison: The measurements.
        path: ``.png``, ``.svg`` or ``.pdf``.
        force: Whether an existing file may be replaced.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
        InputError: If the extension is not supported.

    Example:
        >>> import synovia as sy
        >>> problems = sy.comparison.make_problems(sy.bundled("arm7"))
        >>> comparison = sy.comparison.compare(problems, ["lm", "ccd"])  # doctest: +SKIP
        >>> sy.plots.plot_convergence(comparison, "convergence.png")  # doctest: +SKIP
    """
    where = check_plot(path, force=force)
    figure, (axes,) = new_figure(9.0, 5.2)
    rows = [row for row in comparison.rows if row.refused is None and row.curve.size]
    tolerance = comparison.tolerance[0] / comparison.reach
    ends = [_draw_solver(axes, row, number, tolerance / _BELOW) for number, row in enumerate(rows)]
    _name_lines(axes, ends)
    goals = comparison.problems.goals
    what = f"{len(goals)} goal{'s' if len(goals) > 1 else ''} on {comparison.problems.skeleton.name}"
    axes.set_title(f"{what}: error of the first attempt, median and quartiles", loc="left", fontsize=11)
    axes.set_xlabel("steps")
    axes.set_ylabel("largest position error / reach")
    axes.set_xscale("symlog", linthresh=10, linscale=1.2)
    axes.set_yscale("log")
    axes.set_xlim(0, max((row.curve_steps[-1] for row in rows), default=1) * 1.6)
    axes.set_xticks([0, 2, 5, 10, 20, 50, 100, 200], ["0", "2", "5", "10", "20", "50", "100", "200"])
    axes.axhline(tolerance, color="#888888", linewidth=0.8)
    axes.annotate("tolerance", (0, tolerance), xytext=(4, -10), textcoords="offset points", color="#666666", fontsize=9)
    axes.set_ylim(bottom=tolerance / _BELOW)
    save(figure, where, force=force)


def _draw_solver(axes: Any, row: Row, number: int, bottom: float) -> tuple[float, float, str, str]:
    """Plot one solver; return the visible end of its line, its colour and its name."""
    colour, dash = COLOURS[number % len(COLOURS)], _DASHES[number // len(COLOURS) % len(_DASHES)]
    low, middle, high = (np.maximum(band, _FLOOR) for band in np.percentile(row.curve, (25, 50, 75), axis=1))
    axes.fill_between(row.curve_steps, low, high, color=colour, alpha=0.10, linewidth=0)
    axes.plot(row.curve_steps, middle, dash, color=colour, linewidth=1.8)
    seen = int(np.flatnonzero(middle > bottom).max(initial=0))
    x, y = (float(row.curve_steps[seen]), float(middle[seen]))
    if seen + 1 < len(middle):  # the point where the line leaves the plot, whose ordinate is logarithmic
        share = np.log(y / bottom) / np.log(y / middle[seen + 1])
        x, y = x + float(share) * (float(row.curve_steps[seen + 1]) - x), 1.3 * bottom
    return x, y, colour, row.solver


def _name_lines(axes: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Write each solver's name next to the end of its line; separate the names of lines that end close together."""
    for place in sorted({round(np.log10(x + 1.0), 1) for x, *_ in ends}):
        group = sorted((end for end in ends if round(np.log10(end[0] + 1.0), 1) == place), key=lambda end: end[1])
        heights = spread(np.log10([y for _, y, _, _ in group]), _APART)
        for (x, y, colour, name), height in zip(group, heights.tolist(), strict=True):
            axes.annotate(
                name, (x, y), xytext=(x * 1.1 + 0.5, 10.0**height), color=colour, fontsize=9.5, va="center",
                annotation_clip=False, arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.7, "shrinkB": 0.0},
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
            )  # fmt: skip


def spread(heights: Array, apart: float) -> Array:
    """Return the nearest values (least squares) with a least distance between neighbours.

    Args:
        heights: The values, (n,), in ascending order.
        apart: Least distance from a value to the next.
    """
    from scipy.optimize import isotonic_regression

    steps = apart * np.arange(len(heights), dtype=np.float64)
    rising: Array = isotonic_regression(np.asarray(heights, np.float64) - steps).x
    return rising + steps
