"""Joint values over time, each with the band that its limits leave."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.errors import InputError
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.plots.style import BAND, COLOURS, MISSED, check_plot, new_figure, save

_MOST: Final = 12  # panels, where no joints are named
_TOUCHES: Final = 1e-3  # of a band: so close to its edge a value counts as at the limit


def plot_joints(
    motion: Motion,
    path: str | os.PathLike[str],
    joints: Sequence[str | int] | None = None,
    *,
    force: bool = False,
) -> None:
    """Draw joint values over time, one panel a joint: hinges in degrees, slides in length units, balls as their turn.

    The band of a panel is what the limits allow; where a value lies at its edge, it is red.

    Args:
        motion: The motion.
        path: ``.png``, ``.svg`` or ``.pdf``.
        joints: Which joints; None for the twelve, at most, that move most.
        force: Whether an existing file may be replaced.

    Raises:
        UnknownNameError: If a joint does not exist.
        InputError: If nothing moves, or the extension is another.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    where = check_plot(path, force=force)
    skeleton = motion.skeleton
    rows = [skeleton.index(joint) for joint in joints] if joints else _liveliest(motion)
    columns = min(len(rows), 3)
    count = -(-len(rows) // columns)
    figure, flat = new_figure(3.6 * columns, 1.1 + 1.6 * count, count, columns, sharex=True)
    for panel, row in zip(flat, rows, strict=False):
        _draw(panel, motion, row)
    for panel in flat[len(rows) :]:
        panel.set_visible(False)
    for panel in flat[max(len(rows) - columns, 0) : len(rows)]:
        panel.set_xlabel("seconds", fontsize=9)
        panel.tick_params(labelbottom=True)
    figure.suptitle(f"{motion.name}: joint values and what the limits allow", x=0.01, ha="left", fontsize=11)
    save(figure, where, force=force)


def values_of(motion: Motion, row: int) -> tuple[Array, str]:
    """Return one number a frame for a joint, and its unit."""
    joint, place = motion.skeleton.joints[row], motion.skeleton.q_slice(row)
    q = motion.q[:, place]
    if joint.kind is Kind.HINGE:
        return np.degrees(q[:, 0]), "°"
    if joint.kind is Kind.SLIDE:
        return q[:, 0].copy(), ""
    return np.degrees(2.0 * np.arccos(np.clip(np.abs(q[:, -1]), 0.0, 1.0))), "°"


def _liveliest(motion: Motion) -> list[int]:
    """Return the joints whose values change most, in the order of the skeleton."""
    rows = [row for row, joint in enumerate(motion.skeleton.joints) if joint.kind not in (Kind.FIXED, Kind.FREE)]
    if not rows:
        raise InputError("no joint turns or slides", where=motion.skeleton.name)
    spread = {row: float(np.ptp(values_of(motion, row)[0])) for row in rows}
    return sorted(sorted(rows, key=lambda row: -spread[row])[:_MOST])


def _draw(panel: Any, motion: Motion, row: int) -> None:
    """Draw one joint."""
    values, unit = values_of(motion, row)
    band = _band(motion.skeleton, row)
    panel.set_title(motion.skeleton.joint_names[row], fontsize=9, loc="left")
    panel.plot(motion.times, values, color=COLOURS[0], linewidth=1.3)
    if band is not None:
        low, high = band
        panel.axhspan(low, high, color=BAND, alpha=0.07, linewidth=0)
        for edge in band:
            panel.axhline(edge, color=BAND, alpha=0.35, linewidth=0.8)
        at = (values - low < _TOUCHES * (high - low)) | (high - values < _TOUCHES * (high - low))
        panel.plot(motion.times[at], values[at], ".", color=MISSED, markersize=3)
        panel.set_ylim(min(low, values.min()) - 0.06 * (high - low), max(high, values.max()) + 0.06 * (high - low))
    panel.yaxis.set_major_formatter(f"{{x:g}}{unit}")


def _band(skeleton: Skeleton, row: int) -> tuple[float, float] | None:
    """Return the interval that a hinge or slide may use, in the units of the panel; None without one."""
    joint = skeleton.joints[row]
    if joint.kind not in (Kind.HINGE, Kind.SLIDE):
        return None
    lower, upper = skeleton.value_range(row)
    factor = float(np.degrees(1.0)) if joint.kind is Kind.HINGE else 1.0
    return (factor * lower, factor * upper) if np.isfinite([lower, upper]).all() else None
