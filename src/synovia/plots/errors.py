"""Which goals of a clip were missed, when and by how much: a map of goals by frames."""

from __future__ import annotations

import os

import numpy as np

from synovia.plots.style import check_plot, new_figure, save
from synovia.tracking import Tracked


def plot_errors(tracked: Tracked, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Draw the error of every goal in every frame, in tolerances: what is not red was reached.

    Args:
        tracked: The answer of ``IK.track``.
        path: ``.png``, ``.svg`` or ``.pdf``.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the extension is another.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    where = check_plot(path, force=force)
    from matplotlib.colors import TwoSlopeNorm

    goals = tracked.ik.goals
    errors = (tracked.errors / np.array(tracked.ik.tolerance)).max(2).T
    figure, (axes,) = new_figure(9.0, 1.5 + 0.38 * len(goals))
    axes.grid(False)
    seconds = len(tracked) / tracked.fps
    image = axes.imshow(
        np.log10(np.maximum(errors, 1e-3)), aspect="auto", interpolation="nearest", cmap="RdBu_r",
        norm=TwoSlopeNorm(0.0, -3.0, 3.0), extent=(0.0, seconds, len(goals) - 0.5, -0.5),
    )  # fmt: skip
    axes.set_yticks(range(len(goals)), [goal.label for goal in goals])
    axes.set_xlabel("seconds", fontsize=9)
    axes.set_title(
        f"{int(tracked.reached.sum())} of {len(tracked)} frames reached: error of each goal, in tolerances",
        loc="left", fontsize=11,
    )  # fmt: skip
    bar = figure.colorbar(image, ax=axes, pad=0.01, ticks=[-3, -2, -1, 0, 1, 2, 3])
    bar.ax.set_yticklabels(["0.001", "0.01", "0.1", "1", "10", "100", "1000"], fontsize=8)
    bar.outline.set_visible(False)
    for frame in tracked.jumps:
        axes.axvline((frame + 0.5) / tracked.fps, color="#111827", linewidth=0.9, linestyle=":")
    save(figure, where, force=force)
