"""``synovia render`` and ``synovia plot``: clips as films, numbers as plots."""

from __future__ import annotations

from pathlib import Path

from synovia.cli.clips import load_body, load_clip
from synovia.cli.output import talk
from synovia.cli.progress import Bar
from synovia.cli.run import REACHED
from synovia.errors import InputError


def render_clip(
    source: str,
    output: Path,
    *,
    clip: str | None,
    beside: str | None,
    titles: list[str],
    size: tuple[int, int],
    fps: float | None,
    view: str,
    theme: str,
    jobs: int | None,
    force: bool,
) -> int:
    """Write a clip as a film; return the exit code."""
    from synovia.draw import render
    from synovia.draw.film import check_film

    check_film(output, force=force)
    main = load_clip(source, clip)
    other = None if beside is None else load_clip(beside, None)
    with Bar("drawing") as bar:
        render(
            main, output, beside=other, titles=titles, size=size, fps=fps, view=parse_view(view), theme=theme,
            jobs=jobs, force=force, watch=bar,
        )  # fmt: skip
    talk(f"{output}: {main.name}")
    return REACHED


def plot_file(
    source: str,
    output: Path,
    *,
    joints: list[str],
    reach: str | None,
    feet: bool,
    clip: str | None,
    force: bool,
) -> int:
    """Draw what was asked for; return the exit code."""
    from synovia.plots import plot_feet, plot_joints, plot_reach
    from synovia.plots.style import check_plot

    check_plot(output, force=force)
    if reach is not None:
        plot_reach(load_body(source), reach, output, force=force)
    else:
        motion = load_clip(source, clip, instead="--reach JOINT draws where a model can reach; else give a clip")
        if feet:
            plot_feet(motion, output, force=force)
        else:
            plot_joints(motion, output, joints, force=force)
    talk(str(output))
    return REACHED


def parse_size(text: str) -> tuple[int, int]:
    """Return width and height of ``WIDTHxHEIGHT``."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
        raise InputError("--size has another form", value=text, expected="WIDTHxHEIGHT, for example 960x540")
    return int(parts[0]), int(parts[1])


def parse_view(text: str) -> str | tuple[float, float]:
    """Return a view by name, or azimuth and elevation of ``A,E`` in degrees."""
    if "," not in text:
        return text
    try:
        azimuth, elevation = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError("--view has another form", value=text, expected="a name, or AZIMUTH,ELEVATION") from error
    return azimuth, elevation
