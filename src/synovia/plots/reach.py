"""Where a joint can go: how often random poses within the limits bring it to each place, from the side and above."""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.pose import world_frames
from synovia.plots.style import QUIET, check_plot, new_figure, save

_SAMPLES: Final = 40_000
_CELLS: Final = 90  # each way


def plot_reach(
    skeleton: Skeleton, joint: str | int, path: str | os.PathLike[str], *, seed: int = 0, force: bool = False
) -> None:
    """Draw the reach map of a joint: two views of the places that 40,000 random poses within the limits bring it to.

    Args:
        skeleton: The model; its root stays at rest.
        joint: The joint.
        path: ``.png``, ``.svg`` or ``.pdf``.
        seed: Seed of the poses.
        force: Whether an existing file may be replaced.

    Raises:
        UnknownNameError: If the joint does not exist.
        InputError: If the extension is another.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    where = check_plot(path, force=force)
    row = skeleton.index(joint)
    points = _places(skeleton, row, seed)
    up = "xyz".index((skeleton.up or "y")[-1])
    ahead, aside = (axis for axis in (0, 1, 2) if axis != up)
    figure, panels = new_figure(9.0, 4.6, 1, 2)
    rest = skeleton.rest_pose().positions
    unit = " (m)" if skeleton.meters_per_unit == 1.0 else ""
    views = ((ahead, up, "from the side"), (ahead, aside, "from above"))
    for panel, (x, y, name) in zip(panels, views, strict=True):
        panel.hist2d(points[:, x], points[:, y], bins=_CELLS, cmap="Blues", cmin=1)
        for joint_row, parent in enumerate(skeleton.parents):
            if parent >= 0:
                panel.plot(rest[[parent, joint_row], x], rest[[parent, joint_row], y], color=QUIET, linewidth=1.4)
        panel.plot(rest[row, x], rest[row, y], "o", color="#D55E00", markersize=5)
        panel.set_aspect("equal")
        panel.set_xlabel("xyz"[x] + unit, fontsize=9)
        panel.set_ylabel("xyz"[y] + unit, fontsize=9)
        panel.set_title(name, loc="left", fontsize=9)
    figure.suptitle(
        f"{skeleton.name}: where {skeleton.joint_names[row]} can go (at rest: orange)", x=0.01, ha="left", fontsize=11
    )
    save(figure, where, force=force)


def _places(skeleton: Skeleton, row: int, seed: int) -> Array:
    """Return the places of a joint at random poses within the limits, (N, 3)."""
    from synovia.kernels.tree.tables import random_rows
    from synovia.model import Kind

    t = skeleton.tables
    moving = np.array([skeleton.joints[int(owner)].kind is not Kind.FREE for owner in t.owner], bool)
    q = np.tile(skeleton.rest_q, (_SAMPLES, 1))
    variables, limits = (np.ascontiguousarray(part[moving]) for part in (t.variables, t.limits))
    random_rows(variables, limits, q, seed, np.empty(1, np.uint64))
    skeleton.follow(q)
    return np.concatenate(
        [world_frames(skeleton, np.ascontiguousarray(part))[:, row, 9:] for part in np.array_split(q, 8)]
    )
