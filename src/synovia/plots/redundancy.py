"""A plot of the branches of a chain of seven joints over one of them."""

from __future__ import annotations

import math
import os
from typing import Final

import numpy as np

from synovia.facade import IK
from synovia.ik import Redundancy
from synovia.ik.targets import Targets
from synovia.plots.style import COLOURS, QUIET, check_plot, new_figure, save

_STEPS: Final = 400  # values of the joint at which branches are listed


def plot_redundancy(
    ik: IK,
    targets: Targets | None,
    path: str | os.PathLike[str],
    *,
    joint: str | int | None = None,
    prove: bool = False,
    force: bool = False,
) -> Redundancy:
    """Plot the number of branches over a redundant joint, and the values of the other joints in each branch.

    Args:
        ik: The goal, on a chain of seven joints.
        targets: As in ``IK.solve``.
        path: The image: .png, .svg or .pdf.
        joint: As in ``IK.redundancy``.
        prove: As in ``IK.redundancy``; parts that are not proved are hatched.
        force: Whether to replace an existing file.

    Returns:
        The intervals.

    Raises:
        UnsupportedError: If not exactly seven joints can move the goal.
        InputError: If a value or the extension cannot be used.
        FileError: If the file cannot be written.

    Example:
        >>> import synovia as sy
        >>> arm = sy.bundled("arm7")
        >>> target = arm.random_pose(1).transform("tool")
        >>> sy.plots.plot_redundancy(sy.IK(arm, sy.PoseGoal("tool")), target, "branches.png")  # doctest: +SKIP
    """
    where = check_plot(path, force=force)
    found = ik.redundancy(targets, joint=joint, prove=prove)
    values = np.linspace(found.low, found.high, _STEPS).tolist()
    listed = [ik.branches(targets, redundancy={found.joint: value}) for value in values]
    q = np.concatenate([one.q for one in listed])
    own = ik.skeleton.q_slice(found.joint).start
    moving = [k for k in range(q.shape[1]) if k != own and np.ptp(q[:, k]) > 0.0] if len(q) else []
    names = {ik.skeleton.q_slice(name).start: name for name in ik.skeleton.joint_names}
    figure, axes = new_figure(8.0, 1.6 + 1.15 * len(moving), 1 + len(moving), 1, sharex=True)
    for one in found.intervals:
        sure = one.proved > 0.0 or not prove
        axes[0].fill_between(
            [one.low, one.high], one.branches, color=COLOURS[0], alpha=0.35 if sure else 0.15, linewidth=0,
            hatch=None if sure else "///",
        )  # fmt: skip
        axes[0].plot([one.low, one.high], [one.branches] * 2, color=COLOURS[0], linewidth=1.6)
    axes[0].set_ylabel("branches", fontsize=9)
    axes[0].set_ylim(bottom=0)
    axes[0].yaxis.get_major_locator().set_params(integer=True)
    axes[0].set_xlim(found.low, found.high)
    title = f"Branches over {found.joint}"
    if prove:
        title += f", proved for {math.floor(1000 * found.proved) / 10:g} % of its range"
    axes[0].set_title(title, fontsize=11, loc="left")
    for axis, k, colour in zip(axes[1:], moving, COLOURS * len(moving), strict=False):
        axis.scatter(q[:, own], q[:, k], s=2.0, color=colour, linewidths=0)
        axis.set_ylabel(names[k], fontsize=9)
    axes[-1].set_xlabel(found.joint, fontsize=9, color=QUIET)
    figure.align_ylabels(axes)
    save(figure, where, force=force)
    return found
