"""A plot of clearance: how near the links of a body come to each other and to obstacles over a clip."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.ik.contacts import WatchedPairs
from synovia.model.geometry import Array, is_number
from synovia.model.motion import Motion
from synovia.model.shapes.distances import Contact
from synovia.model.shapes.world import World
from synovia.plots.style import COLOURS, MISSED, check_plot, new_figure, save

_REACH: Final = 4.0  # upper end of the axis, as a multiple of the median distance; hides outliers


def plot_clearance(
    motion: Motion,
    path: str | os.PathLike[str],
    distance: float = 0.0,
    *,
    world: World | None = None,
    force: bool = False,
) -> None:
    """Plot the distance between the nearest links, and between the nearest link and obstacle, in every frame.

    The pairs are those of a ``ClearanceGoal``. Frames in which a pair is nearer than ``distance`` are red. The legend
    names the nearest pair of the clip.

    Args:
        motion: The motion; its skeleton has shapes.
        path: ``.png``, ``.svg`` or ``.pdf``.
        distance: The required distance, length units.
        world: Obstacles; None without any.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the body has no shapes, the clip has no frames, a value cannot be used, or the extension is not
            supported.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> clip = ik.track(targets)  # doctest: +SKIP
        >>> sy.plots.plot_clearance(clip.motion, "clearance.png", 0.02, world=world)  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    if world is not None:
        check_kind("world", world, World, "sy.load_world(path) reads one")
    if not is_number(distance):
        raise InputError("distance", value=distance, expected="a number")
    where = check_plot(path, force=force)
    if not len(motion):
        raise InputError("the clip has no frames", where=motion.name, expected="at least one")
    lines = [("links", WatchedPairs.of(motion.skeleton, None)[0])]
    if world is not None:
        lines.append(("obstacles", WatchedPairs.of(motion.skeleton, world, pairs="world")[0]))
    unit = motion.skeleton.meters_per_unit
    scale, named = (1.0, "length units") if unit is None else (100.0 * unit, "cm")
    figure, (axes,) = new_figure(9.0, 3.4)
    highest = scale * distance
    for colour, (what, pairs) in zip(COLOURS, lines, strict=False):
        nearest = [pairs.at(motion.pose(k), 1) for k in range(len(motion))]
        if not all(nearest):
            continue  # there are no pairs
        gaps = scale * np.array([contacts[0].distance for contacts in nearest])
        worst = nearest[int(np.argmin(gaps))][0]
        label = f"{what}; nearest: {_names(worst)}, {gaps.min():.3g} {named}"
        axes.plot(motion.times, gaps, color=colour, linewidth=1.4, label=label)
        _mark_near(axes, motion.times, gaps, scale * distance)
        highest = max(highest, min(float(gaps.max()), _REACH * float(np.median(np.abs(gaps)))))
    low = min(0.0, *axes.get_ylim())
    axes.axhspan(low, scale * distance, color=MISSED, alpha=0.07, linewidth=0)
    axes.axhline(scale * distance, color=MISSED, alpha=0.5, linewidth=0.9)
    axes.set_ylim(low, 1.08 * highest if highest > 0.0 else None)
    axes.set_ylabel(f"distance ({named})", fontsize=9)
    axes.set_xlabel("seconds", fontsize=9)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)  # next to the title
    axes.set_title(f"{motion.name}: distance of the nearest pairs", loc="left", fontsize=11)
    save(figure, where, force=force)


def _mark_near(axes: Any, times: Array, gaps: Array, least: float) -> None:
    """Mark the frames in which a pair is too near in red."""
    near = gaps < least
    axes.plot(times[near], gaps[near], ".", color=MISSED, markersize=4)


def _names(contact: Contact) -> str:
    """Return the names of a pair with spaces instead of underscores."""
    first, second = (str(name).replace("_", " ") for name in contact.pair or ("", ""))
    return f"{first} and {second}"
