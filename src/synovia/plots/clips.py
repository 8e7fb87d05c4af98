"""Plots of clips: joint values and their limits, the contacts of feet, the errors of goals, and judgements."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from synovia.arguments import check_kind
from synovia.errors import InputError
from synovia.ik.contacts import WatchedPairs
from synovia.model import Kind, Skeleton
from synovia.model.anatomy.contacts import find_contacts
from synovia.model.anatomy.feet import runs
from synovia.model.geometry import Array, is_number
from synovia.model.motion import Motion
from synovia.model.shapes.distances import Contact
from synovia.model.shapes.world import World
from synovia.plots.style import (
    BAND,
    COLOURS,
    MISSED,
    QUIET,
    add_colour_bar,
    add_legend,
    check_plot,
    new_figure,
    save,
)
from synovia.retargeting import Judgement
from synovia.retargeting.body import LEGS, Body
from synovia.tracking import Tracked

_REACH: Final = 4.0  # upper end of the axis, as a multiple of the median distance; hides outliers
_MOST: Final = 12  # largest number of panels if no joints are given
_USUAL: Final = 0.99  # fraction of foot speeds that must fit into the plot
_WORST_ANGLE: Final = 60.0  # degrees; larger angles of limbs have the same colour
_MOST_NAMED: Final = 5  # largest number of findings in the title of a judgement
_TOUCHES: Final = 1e-3  # fraction of the limit range: a value closer to a limit is shown as at the limit


def plot_joints(
    motion: Motion,
    path: str | os.PathLike[str],
    joints: Sequence[str | int] | None = None,
    *,
    force: bool = False,
) -> None:
    """Plot joint values over time, one panel per joint: hinges in degrees, slides in length units, balls by angle.

    The band of a panel shows the limits; a value at a limit is red.

    Args:
        motion: The motion.
        path: ``.png``, ``.svg`` or ``.pdf``.
        joints: The joints; None for the twelve joints that move most.
        force: Whether an existing file may be replaced.

    Raises:
        UnknownNameError: If a joint does not exist.
        InputError: If a joint does not move, the clip has no frames, or the extension is not supported.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> sy.plots.plot_joints(sy.load_motion("walk.bvh"), "joints.png", ["left_hip", "left_knee"])  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    where = check_plot(path, force=force)
    skeleton = motion.skeleton
    if not len(motion):
        raise InputError("the clip has no frames", where=motion.name, expected="at least one")
    rows = [skeleton.value_index(joint) for joint in joints] if joints else _most_moving(motion)
    for row in rows:
        if not skeleton.joints[row].kind.q_size:
            raise InputError("joint does not move", where=skeleton.name, value=skeleton.joint_names[row])
    columns = min(len(rows), 3)
    count = -(-len(rows) // columns)
    figure, flat = new_figure(3.6 * columns, 1.1 + 1.6 * count, count, columns, sharex=True)
    for panel, row in zip(flat, rows, strict=False):
        _draw_joint(panel, motion, row)
    for panel in flat[len(rows) :]:
        panel.set_visible(False)
    for panel in flat[max(len(rows) - columns, 0) : len(rows)]:
        panel.set_xlabel("seconds", fontsize=9)
        panel.tick_params(labelbottom=True)
    figure.suptitle(f"{motion.name}: joint values and limits", x=0.01, ha="left", fontsize=11)
    save(figure, where, force=force)


def values_of(motion: Motion, row: int) -> tuple[Array, str]:
    """Return one value per frame for a joint, and the unit as text."""
    joint, place = motion.skeleton.joints[row], motion.skeleton.q_slice(row)
    q = motion.q[:, place]
    if joint.kind is Kind.HINGE:
        return np.degrees(q[:, 0]), "°"
    if joint.kind is Kind.SLIDE:
        return q[:, 0].copy(), ""
    return np.degrees(2.0 * np.arccos(np.clip(np.abs(q[:, -1]), 0.0, 1.0))), "°"


def _most_moving(motion: Motion) -> list[int]:
    """Return the joints whose values change most, in the order of the skeleton."""
    rows = [row for row, joint in enumerate(motion.skeleton.joints) if joint.kind not in (Kind.FIXED, Kind.FREE)]
    if not rows:
        raise InputError("no joint turns or slides", where=motion.skeleton.name)
    spread = {row: float(np.ptp(values_of(motion, row)[0])) for row in rows}
    return sorted(sorted(rows, key=lambda row: -spread[row])[:_MOST])


def _draw_joint(panel: Any, motion: Motion, row: int) -> None:
    """Draw the panel of one joint."""
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
        margin = 0.06 * (high - low) or 1.0  # some joints are locked to one value
        panel.set_ylim(min(low, values.min()) - margin, max(high, values.max()) + margin)
    panel.yaxis.set_major_formatter(f"{{x:g}}{unit}")


def _band(skeleton: Skeleton, row: int) -> tuple[float, float] | None:
    """Return the limits of a hinge or slide, in the unit of the panel; None without limits."""
    joint = skeleton.joints[row]
    if joint.kind not in (Kind.HINGE, Kind.SLIDE):
        return None
    lower, upper = skeleton.value_range(row)
    factor = float(np.degrees(1.0)) if joint.kind is Kind.HINGE else 1.0
    return (factor * lower, factor * upper) if np.isfinite([lower, upper]).all() else None


def plot_feet(motion: Motion, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Plot the height and the speed of each foot over time, with its contacts shaded.

    Args:
        motion: The motion of a body with two legs.
        path: ``.png``, ``.svg`` or ``.pdf``.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the body has no feet, the clip is shorter than two frames, or the extension is not supported.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> sy.plots.plot_feet(sy.load_motion("walk.bvh"), "feet.png")  # doctest: +SKIP
    """
    check_kind("motion", motion, Motion, "sy.load_motion(path) reads one")
    where = check_plot(path, force=force)
    body = Body.of(motion.skeleton).required()
    feet = [leg[2] for leg in LEGS if leg[2] in body.roles]
    if not feet or len(motion) < 2:
        raise InputError("no feet to plot", where=motion.name, expected="two frames or more of a body with feet")
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
        for a, b in find_contacts(points[:, None], up, motion.fps, body.leg).spans[0]:
            for panel in (heights, speeds):
                panel.axvspan(motion.times[a], motion.times[b - 1], color=colour, alpha=0.12, linewidth=0)
    heights.set_ylabel(f"height ({unit})", fontsize=9)
    speeds.set_ylabel(f"speed ({unit}/s)", fontsize=9)
    speeds.set_ylim(0.0, 1.15 * scale * float(np.quantile(every, _USUAL)) or None)  # a jump must not flatten the rest
    speeds.set_xlabel("seconds", fontsize=9)
    add_legend(heights, 9)
    heights.set_title(f"{motion.name}: feet; contacts are shaded", loc="left", fontsize=11)
    save(figure, where, force=force)


def plot_errors(tracked: Tracked, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Plot the error of every goal in every frame, in tolerances; missed goals are red.

    Args:
        tracked: The result of ``IK.track``.
        path: ``.png``, ``.svg`` or ``.pdf``.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the extension is not supported.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> tracked = sy.IK(body, goals).track(targets)  # doctest: +SKIP
        >>> sy.plots.plot_errors(tracked, "errors.png")  # doctest: +SKIP
    """
    check_kind("tracked", tracked, Tracked, "ik.track(targets) returns one")
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
    powers = range(-3, 4)
    add_colour_bar(figure, image, axes, powers, [f"{10.0**power:g}" for power in powers])
    for frame in tracked.jumps:
        axes.axvline((frame + 0.5) / tracked.fps, color="#111827", linewidth=0.9, linestyle=":")
    save(figure, where, force=force)


def plot_judgement(judgement: Judgement, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Plot a judgement over time: angles of limbs to the source, heights and contacts of feet, and joint steps.

    Args:
        judgement: The result of ``judge``, or ``Retargeted.judgement``.
        path: ``.png``, ``.svg`` or ``.pdf``.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the extension is not supported.
        MissingExtraError: If matplotlib is not installed.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.

    Example:
        >>> import synovia as sy
        >>> answer = sy.retarget(sy.load_motion("walk.bvh"), sy.bundled("humanoid"))  # doctest: +SKIP
        >>> sy.plots.plot_judgement(answer.judgement, "judgement.png")  # doctest: +SKIP
    """
    where = check_plot(path, force=force)
    figures = judgement.figures
    limbs, feet = figures.limbs, figures.feet
    parts = [("limbs", 0.6 + 0.24 * len(limbs))] * bool(limbs) + [("feet", 1.5)] * bool(feet) + [("steps", 1.5)]
    figure, panels = new_figure(
        9.0, 0.9 + sum(height for _, height in parts), len(parts), 1, sharex=True,
        gridspec_kw={"height_ratios": [height for _, height in parts]},
    )  # fmt: skip
    times, fps = figures.motion.times, figures.motion.fps
    for panel, (part, _) in zip(panels, parts, strict=True):
        if part == "limbs":
            _draw_limbs(figure, panel, judgement)
        elif part == "feet":
            for colour, foot in zip(COLOURS, feet, strict=False):
                panel.plot(times, foot.height, color=colour, linewidth=1.3, label=foot.role.replace("_", " "))
                for flags, low, high in ((foot.contact, 0.0, 0.08), (foot.source_contact, 0.92, 1.0)):
                    for first, end in runs(flags):
                        panel.axvspan((first - 0.5) / fps, (end - 0.5) / fps, low, high, color=colour, alpha=0.35,
                                      linewidth=0)  # fmt: skip
            panel.set_ylabel("height (legs)", fontsize=9)
            add_legend(panel, 8)
            rows = "" if figures.origin is None else "; contacts at the bottom, those of the source at the top"
            panel.set_title(f"feet over the ground{rows}", loc="left", fontsize=9)
        else:
            _draw_steps(panel, judgement)
    panels[-1].set_xlabel("seconds", fontsize=9)
    warnings = [f"{one.limb.replace('_', ' ')}: {one.cause}" for one in judgement.warnings]
    text = "; ".join(dict.fromkeys(warnings[:_MOST_NAMED])) + (", ..." if len(warnings) > _MOST_NAMED else "")
    colour = {"good": "#111827", "look": "#B45309", "failed": MISSED}[judgement.verdict]
    what = f"{figures.motion.name}: {judgement.verdict}{': ' if text else ''}{text}"
    figure.suptitle(what, x=0.01, ha="left", fontsize=10, color=colour, wrap=True)
    save(figure, where, force=force)


def _draw_limbs(figure: Any, panel: Any, judgement: Judgement) -> None:
    """Draw the angle of each limb to the source in each frame as colours."""
    limbs, motion = judgement.figures.limbs, judgement.figures.motion
    panel.grid(False)
    image = panel.imshow(
        np.degrees(np.array([limb.angles for limb in limbs])), aspect="auto", interpolation="nearest", cmap="magma_r",
        vmin=0.0, vmax=_WORST_ANGLE, extent=(-0.5 / motion.fps, (len(motion) - 0.5) / motion.fps, len(limbs) - 0.5,
                                             -0.5),
    )  # fmt: skip
    panel.set_facecolor("#e4e7ec")
    names = [f"{limb.limb.replace('_', ' ')}  {np.degrees(limb.mean):.0f}°" for limb in limbs]
    panel.set_yticks(range(len(limbs)), names, fontsize=8)
    bad = {one.limb for one in judgement.warnings}
    for label, limb in zip(panel.get_yticklabels(), limbs, strict=True):
        label.set_color(MISSED if limb.limb in bad else "#111827")
    panel.set_title("angle to the source, with the mean of each limb", loc="left", fontsize=9)
    degrees = range(0, 61, 15)
    add_colour_bar(figure, image, panel, degrees, [f"{angle}°" for angle in degrees])


def _draw_steps(panel: Any, judgement: Judgement) -> None:
    """Draw the largest joint step of the result and of the source in each frame, and mark jumps."""
    figures = judgement.figures
    times = figures.motion.times[1:]
    if figures.steps and len(times):
        most = np.max([step.angles for step in figures.steps], axis=0)
        panel.plot(times, np.degrees(most), color=COLOURS[0], linewidth=1.1, label="result")
    sources = [step for step, _ in figures.source_steps.values()]
    if sources and len(times):
        panel.plot(times, np.degrees(np.max(sources, axis=0)), color=QUIET, linewidth=1.0, linestyle="--",
                   label="source")  # fmt: skip
    jumps = {frame for frames in figures.jumps.own.values() for frame in frames}
    for number, frame in enumerate(sorted(jumps)):
        label = "jump" if not number else None
        panel.axvline(frame / figures.motion.fps, color=MISSED, linewidth=0.9, linestyle=":", label=label)
    panel.set_ylabel("degrees", fontsize=9)
    panel.set_title("largest step of a joint from frame to frame", loc="left", fontsize=9)
    if panel.get_legend_handles_labels()[0]:
        add_legend(panel, 8)


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
