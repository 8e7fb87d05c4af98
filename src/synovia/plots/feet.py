"""What feet do in a clip: their height and speed, and when they stand."""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from synovia.clips.feet import stays
from synovia.errors import InputError
from synovia.model.motion import Motion
from synovia.plots.style import COLOURS, check_plot, new_figure, save
from synovia.retargeting.body import LEGS, Body

_USUAL: Final = 0.99  # of the speeds are drawn whole


def plot_feet(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Draw the height and the speed of each foot over time; where it stands, the ground is shaded.

    Args:
        motion: The motion of a body with two legs.
        path: ``.png``, ``.svg`` or ``.pdf``.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the body has no feet, the clip is shorter than two frames, or the extension is another.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    where = check_plot(path, force=force)
    body = Body.of(motion.skeleton)
    feet = [leg[2] for leg in LEGS if leg[2] in body.roles]
    if not feet or len(motion) < 2:
        raise InputError("there are no feet to follow", where=motion.name, expected="a clip of a body with feet")
    up = body.basis[:, 1]
    positions = motion.positions()
    figure, (heights, speeds) = new_figure(9.0, 4.6, 2, 1, sharex=True)
    scale, unit = (motion.skeleton.meters_per_unit, "m") if motion.skeleton.meters_per_unit else (1.0, "units")
    every: list[float] = []
    for colour, role in zip(COLOURS, feet, strict=False):
        points = positions[:, body.roles[role]]
        speed = np.linalg.norm(np.gradient(points, 1.0 / motion.fps, axis=0), axis=1)
        every += speed.tolist()
        heights.plot(motion.times, scale * (points @ up), color=colour, linewidth=1.4, label=role.replace("_", " "))
        speeds.plot(motion.times, scale * speed, color=colour, linewidth=1.4)
        for a, b in stays(points, up, motion.fps):
            for panel in (heights, speeds):
                panel.axvspan(motion.times[a], motion.times[b - 1], color=colour, alpha=0.12, linewidth=0)
    heights.set_ylabel(f"height ({unit})", fontsize=9)
    speeds.set_ylabel(f"speed ({unit}/s)", fontsize=9)
    speeds.set_ylim(0.0, 1.15 * scale * float(np.quantile(every, _USUAL)) or None)  # a jump may not flatten all else
    speeds.set_xlabel("seconds", fontsize=9)
    heights.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False, ncols=2)
    heights.set_title(f"{motion.name}: feet; shaded where they stand", loc="left", fontsize=11)
    save(figure, where, force=force)
