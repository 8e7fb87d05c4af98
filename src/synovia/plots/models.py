"""Plots of solvers: their convergence, and learned starts."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from synovia.arguments import check_kind, whole_number
from synovia.comparison import Comparison
from synovia.comparison.measure import Row
from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals.base import POSITION
from synovia.model.geometry import Array
from synovia.model.pose import random_values, world_frames
from synovia.plots.style import COLOURS, add_colour_bar, check_plot, new_figure, save

_TARGETS: Final = 4000
_BINS: Final = 28  # number of cells in each direction
_MOST: Final = 30  # steps; solves with more steps are counted in the last bin
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
    """Return the values nearest to ``heights`` (least squares) that keep a least distance between neighbours.

    Args:
        heights: The values, (n,), in ascending order.
        apart: Least distance from a value to the next.
    """
    from scipy.optimize import isotonic_regression

    steps = apart * np.arange(len(heights), dtype=np.float64)
    rising: Array = isotonic_regression(np.asarray(heights, np.float64) - steps).x
    return rising + steps


def plot_starts(ik: IK, path: str | os.PathLike[str], *, seed: int = 0, force: bool = False) -> None:
    """Plot the success and the steps of learned starts for random reachable targets.

    The left panel shows the fraction of targets that the first attempt reaches, by position. The right panel shows the
    number of steps of all solves with and without learned starts.

    Args:
        ik: A problem with ``starts``.
        path: ``.png``, ``.svg`` or ``.pdf``.
        seed: Seed of the targets.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the problem has no starts, or the extension is not supported.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> arm, goal = sy.bundled("arm7"), sy.PoseGoal("tool")
        >>> ik = sy.IK(arm, goal, starts=sy.learn_starts(arm, goal))  # doctest: +SKIP
        >>> sy.plots.plot_starts(ik, "starts.png")  # doctest: +SKIP
    """
    check_kind("ik", ik, IK, "sy.IK(skeleton, goals, starts=starts)")
    if ik.starts is None:
        raise InputError("the problem has no starts", value=ik, expected="sy.IK(skeleton, goals, starts=starts)")
    where = check_plot(path, force=force)
    targets, places = _targets(ik, whole_number("seed", seed, 0, 2**32 - 1))
    plain = IK(ik.given, ik.goals, ik.solver, tolerance=ik.tolerance)
    with_starts, without = ik.solve_many(targets), plain.solve_many(targets)
    figure, (left, right) = new_figure(9.6, 4.4, 1, 2)
    up = "xyz".index((ik.skeleton.up or "y")[-1])
    aside = np.linalg.norm(np.delete(places, up, axis=1), axis=1)
    first = with_starts.attempts == 1
    image = left.hexbin(
        aside, places[:, up], first & with_starts.reached, gridsize=_BINS, cmap="RdYlBu", vmin=0.5, vmax=1.0, mincnt=1
    )
    left.set_aspect("equal")
    unit = " (m)" if ik.skeleton.meters_per_unit == 1.0 else ""
    left.set_xlabel(f"distance from the vertical axis{unit}", fontsize=9)
    left.set_ylabel(f"height{unit}", fontsize=9)
    left.set_title(f"reached at the first attempt: {100.0 * float(first.mean()):.1f} %", loc="left", fontsize=9)
    add_colour_bar(figure, image, left, (0.5, 0.75, 1.0), ("50 %", "75 %", "100 %"))
    bins = np.arange(_MOST + 2) - 0.5
    for answers, colour, name in ((without, "#B0B0B0", "from rest"), (with_starts, "#0072B2", "with learned starts")):
        steps = np.minimum(answers.steps, _MOST)
        label = f"{name}: median {np.median(answers.steps):.0f}, 99 % {np.percentile(answers.steps, 99):.0f}"
        right.hist(steps, bins, weights=np.full(len(steps), 100.0 / len(steps)), color=colour, alpha=0.75, label=label)
    right.set_xlabel(f"steps of a solve ({_MOST}: or more)", fontsize=9)
    right.set_ylabel("share of targets (%)", fontsize=9)
    right.legend(frameon=False, fontsize=9)
    title = f"{ik.skeleton.name}: {ik.starts.poses} poses in {ik.starts.leaves} regions"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    save(figure, where, force=force)


def _targets(ik: IK, seed: int) -> tuple[dict[str, Array], Array]:
    """Return reachable targets of all goals, (N, 4, 4) or (N, 3), and the positions of the first goal, (N, 3)."""
    frames = world_frames(ik.skeleton, random_values(ik.skeleton, _TARGETS, seed))
    targets: dict[str, Array] = {}
    places = np.zeros((_TARGETS, 3))
    for g, (goal, row) in enumerate(zip(ik.goals, ik.problem.rows, strict=True)):
        whole = np.tile(np.eye(4), (_TARGETS, 1, 1))
        whole[:, :3, :3] = frames[:, row, :9].reshape(-1, 3, 3)
        whole[:, :3, 3] = frames[:, row, 9:]
        whole = whole @ goal.place(0)
        if g == 0:
            places = whole[:, :3, 3]
        targets[str(goal.label)] = whole[:, :3, 3].copy() if goal.takes == POSITION else whole
    return targets, places
