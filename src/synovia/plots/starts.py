"""Plot of learned starts: where they help, and how many steps they save."""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from synovia.arguments import check_kind, whole_number
from synovia.errors import InputError
from synovia.facade import IK
from synovia.goals.base import POSITION
from synovia.model.geometry import Array
from synovia.model.pose import random_values, world_frames
from synovia.plots.style import add_colour_bar, check_plot, new_figure, save

_TARGETS: Final = 4000
_CELLS: Final = 28  # number of cells in each direction
_MOST: Final = 30  # steps; solves with more steps are counted in the last bin


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
        aside, places[:, up], first & with_starts.reached, gridsize=_CELLS, cmap="RdYlBu", vmin=0.5, vmax=1.0, mincnt=1
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
