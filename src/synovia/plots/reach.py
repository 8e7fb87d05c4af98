"""Maps of what a joint reaches: each cell of a plane is reached by a pose, proved to be out of reach, or undecided."""

from __future__ import annotations

import math
import os
import time
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import check_kind, whole_number
from synovia.facade import IK
from synovia.goals import PositionGoal
from synovia.ik.status import Status
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.model.tree import ancestors
from synovia.plots.style import MISSED, QUIET, check_plot, new_figure, save
from synovia.solver import LevenbergMarquardt
from synovia.text import Report, counted, length_text, unit_name

UNDECIDED, REACHED, PROVED = 0, 1, 2
SCHEMA: Final = "synovia.reach/1"
_COLOURS: Final = ("#F0C14B", "#7FB2DB", "#F3F4F6")  # undecided, reached, proved
_SIGNS: Final = ("?", "█", "·")
_NAMES: Final = ("undecided", "reached by a pose", "proved out of reach")
_ATTEMPTS: Final = 30
_MARGIN: Final = 1.15  # half the width of the map, as a multiple of the largest distance that a random pose reaches
_RANDOM: Final = 500  # number of random poses that determine the middle and the width of the map


class Section(NamedTuple):
    """A map in one plane.

    Args:
        title: Where the plane lies.
        axes: The world axes that the columns and rows run along, from 0 to 2.
        low: (2,) coordinates of the first cell's corner, length units.
        cells: (rows, columns) 0 if undecided, 1 if a pose reaches the cell, 2 if it is proved that no pose does.
    """

    title: str
    axes: tuple[int, int]
    low: Array
    cells: NDArray[np.int8]

    @property
    def holes(self) -> int:
        """Number of areas that are enclosed by reached cells and have a cell that is proved to be out of reach."""
        from scipy.ndimage import label

        areas, _ = label(self.cells != REACHED)
        edge = np.concatenate([areas[0], areas[-1], areas[:, 0], areas[:, -1]])
        return len({*areas[self.cells == PROVED].tolist()} - {*edge.tolist()})


class Reach(NamedTuple):
    """Maps of what a joint reaches, in two planes.

    A cell is a square. It counts as reached if a pose brings the joint nearer to its centre than the corners are, and
    as out of reach if it is proved that no pose does.

    Args:
        joint: The joint.
        skeleton: The model.
        size: Size of a cell, length units.
        sections: The maps.
    """

    joint: str
    skeleton: Skeleton
    size: float
    sections: tuple[Section, ...]

    def report(self) -> Report:
        """Return the maps as text, and as plain values."""
        unit = self.skeleton.meters_per_unit
        size = length_text(self.size, unit)
        lines = [f"What {self.joint!r} of {self.skeleton.name} reaches, in cells of {size}:"]
        for section in self.sections:
            holes = counted(section.holes, "hole")
            lines += ["", f"{section.title}: {', '.join(_shares(section))}; {holes}"]
            rows: list[list[int]] = section.cells[::-1].tolist()
            lines += ["  " + "".join(2 * _SIGNS[cell] for cell in row) for row in rows]
        legend = "; ".join(f"{sign} {name}" for sign, name in zip(_SIGNS, _NAMES, strict=True))
        facts = {
            "schema": SCHEMA, "model": self.skeleton.name, "joint": self.joint, "unit": unit_name(unit),
            "cell": self.size,
            "sections": [
                {
                    "title": one.title, "axes": ["xyz"[axis] for axis in one.axes], "low": one.low.tolist(),
                    "holes": one.holes, "cells": one.cells.tolist(),
                }
                for one in self.sections
            ],
        }  # fmt: skip
        return Report([*lines, "", legend], facts)


def map_reach(skeleton: Skeleton, joint: str | int, *, cells: int = 40, seconds: float = 30.0) -> Reach:
    """Return maps of the positions that a joint reaches within the limits, in an upright and in a level plane.

    The upright plane goes through the first moving joint, the level plane through the middle of the reached positions.
    The root stays at rest.

    Args:
        skeleton: The model.
        joint: The joint.
        cells: Number of cells in each direction.
        seconds: Time for proofs that need a search; the remaining cells are undecided.

    Raises:
        UnknownNameError: If the joint does not exist.
        InputError: If ``cells`` is out of range.

    Example:
        >>> import synovia as sy
        >>> reach = sy.plots.map_reach(sy.bundled("arm7"), "tool", cells=8)
        >>> [section.cells.shape for section in reach.sections]
        [(8, 8), (8, 8)]
    """
    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    count = whole_number("cells", cells, 4, 400)
    row, _ = skeleton.locate(joint)
    points = np.array([skeleton.random_pose(seed).position(joint) for seed in range(_RANDOM)])
    chain = [above for above in ancestors(skeleton.parents, row) if skeleton.joints[above].kind is not Kind.FIXED]
    origin = skeleton.rest_pose().positions[chain[-1] if chain else row]
    radius = _MARGIN * float(np.linalg.norm(points - origin, axis=1).max()) + 1e-9
    size = 2.0 * radius / count
    near = size * math.sqrt(0.5)  # distance from the centre of a cell to its corners
    ik = IK(skeleton, PositionGoal(joint), LevenbergMarquardt(attempts=_ATTEMPTS), tolerance=(near, 1e-3))
    up = "xyz".index((skeleton.up or "y")[-1])
    ahead, aside = (axis for axis in (0, 1, 2) if axis != up)
    middle = origin.copy()
    middle[up] = 0.5 * (points[:, up].min() + points[:, up].max())
    end = time.monotonic() + seconds
    views = ((ahead, up, aside, origin, "upright"), (ahead, aside, up, middle, "level"))
    sections: list[Section] = []
    for x, y, across, at, name in views:
        low = origin[[x, y]] - radius
        places = np.tile(at, (count, count, 1))
        places[:, :, x] = low[0] + size * (np.arange(count) + 0.5)
        places[:, :, y] = low[1] + size * (np.arange(count)[:, None] + 0.5)
        title = f"{name} plane, {'xyz'[across]} = {at[across] + 0.0:.3g}"
        states = _cells(ik, places.reshape(-1, 3), end).reshape(count, count)
        sections.append(Section(title, (x, y), low, states))
    name = joint if isinstance(joint, str) else skeleton.joint_names[row]
    return Reach(name, skeleton, size, tuple(sections))


def _cells(ik: IK, places: Array, end: float) -> NDArray[np.int8]:
    """Return the states of cells with centres ``places``, (N, 3); do not search for proofs after the time ``end``."""
    answers = ik.solve_many(places)
    states = np.full(len(places), UNDECIDED, np.int8)
    states[answers.status == Status.UNREACHABLE] = PROVED
    states[answers.reached] = REACHED
    left_out = np.flatnonzero(states == UNDECIDED)
    for k in left_out[np.argsort(-answers.errors[left_out, 0, 0], kind="stable")]:  # large misses are proved easily
        left = end - time.monotonic()
        if left <= 0.0:
            break
        if answers[int(k)].prove(deadline=left) is not None:
            states[k] = PROVED
    return states


def _shares(section: Section) -> list[str]:
    """Return the fraction of the cells in each state, as texts."""
    share = np.bincount(section.cells.ravel(), minlength=3) / section.cells.size
    return [f"{100.0 * float(share[state]):.1f} % {_NAMES[state]}" for state in (REACHED, PROVED, UNDECIDED)]


def plot_reach(
    skeleton: Skeleton, joint: str | int, path: str | os.PathLike[str], *, cells: int = 60, force: bool = False
) -> None:
    """Plot maps of what a joint reaches, see ``map_reach``.

    Args:
        skeleton: The model; its root stays at rest.
        joint: The joint.
        path: ``.png``, ``.svg`` or ``.pdf``.
        cells: Number of cells in each direction.
        force: Whether an existing file may be replaced.

    Raises:
        UnknownNameError: If the joint does not exist.
        InputError: If the extension is not supported, or ``cells`` is out of range.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> sy.plots.plot_reach(sy.bundled("arm7"), "tool", "reach.png")  # doctest: +SKIP
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    check_kind("skeleton", skeleton, Skeleton, "sy.load_skeleton(path) reads one")
    where = check_plot(path, force=force)
    reach = map_reach(skeleton, joint, cells=cells)
    figure, panels = new_figure(9.0, 5.0, 1, 2)
    rest, start = skeleton.rest_pose().positions, skeleton.rest_pose().position(joint)
    unit = " (m)" if skeleton.meters_per_unit == 1.0 else ""
    for panel, section in zip(panels, reach.sections, strict=True):
        (x, y), (rows, columns) = section.axes, section.cells.shape
        left, bottom = section.low.tolist()
        panel.imshow(
            section.cells, origin="lower", cmap=ListedColormap(_COLOURS), vmin=0, vmax=2, interpolation="nearest",
            extent=(left, left + columns * reach.size, bottom, bottom + rows * reach.size),
        )  # fmt: skip
        for row, parent in enumerate(skeleton.parents):
            if parent >= 0:
                panel.plot(rest[[parent, row], x], rest[[parent, row], y], color=QUIET, linewidth=1.4)
        panel.plot(start[x], start[y], "o", color=MISSED, markersize=5)
        panel.grid(False)
        panel.set_xlabel("xyz"[x] + unit, fontsize=9)
        panel.set_ylabel("xyz"[y] + unit, fontsize=9)
        panel.set_title(section.title, loc="left", fontsize=9)
    patches = [Patch(facecolor=_COLOURS[k], edgecolor="#c9ced6", label=_NAMES[k]) for k in (REACHED, PROVED, UNDECIDED)]
    figure.legend(handles=patches, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.suptitle(f"{skeleton.name}: what {reach.joint} reaches (at rest: red)", x=0.01, ha="left", fontsize=11)
    save(figure, where, force=force)
