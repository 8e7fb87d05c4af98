"""The style of all plots, and functions to check and write plot files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from synovia.errors import InputError
from synovia.io.base import as_path, check_writable, optional_package, write_bytes

# Colours that are distinct for any colour vision (Okabe & Ito 2008)
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B")
MISSED: Final = "#D7373F"
BAND: Final = "#0072B2"
QUIET: Final = "#6B7280"
_FORMATS: Final = ("png", "svg", "pdf")


def check_plot(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Return the path of a plot, after checking that it can be written.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        InputError: If the extension is not .png, .svg or .pdf.
        FileError: If the path is a folder, the file exists and ``force`` is not set, or its folder does not exist.
    """
    optional_package("matplotlib", "plots need matplotlib", "plot")
    where = as_path(path)
    if where.suffix.lower().removeprefix(".") not in _FORMATS:
        raise InputError(
            "no plot can be written with this extension", value=where.suffix or None, expected=".png, .svg or .pdf"
        )
    check_writable(where, force=force)
    return where


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, row by row; sizes in inches.

    The figure needs no display, because it is created without pyplot.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width, height), dpi=150, layout="constrained")
    axes: list[Any] = list(figure.subplots(rows, columns, squeeze=False, **options).ravel())
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(True, which="major", color="#e4e7ec", linewidth=0.7)
        one.set_axisbelow(True)
        one.tick_params(labelsize=9)
    return figure, axes


def add_colour_bar(figure: Any, image: Any, axes: Any, ticks: Sequence[float], labels: Sequence[str]) -> None:
    """Add a colour bar for an image next to its axes."""
    bar = figure.colorbar(image, ax=axes, pad=0.01, ticks=ticks)
    bar.ax.set_yticklabels(labels, fontsize=8)
    bar.outline.set_visible(False)


def add_legend(axes: Any, size: float) -> None:
    """Add a legend above the right end of axes, next to their title."""
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=size, frameon=False, ncols=3)


def save(figure: Any, path: Path, *, force: bool) -> None:
    """Write a figure atomically."""
    data = BytesIO()
    figure.savefig(data, format=path.suffix.lower().removeprefix("."))
    write_bytes(path, data.getvalue(), force=force)
