"""Reports of ``inspect`` on a world: as a list of obstacles, and as a JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from click import style

from synovia.jobs.words import number, table
from synovia.model.geometry import Array
from synovia.model.shapes.world import World
from synovia.text import Report, counted, printable, unit_name

SCHEMA: Final = "synovia.inspect.world/1"


def world_report(world: World) -> Report:
    """Return the report on a world: heading, facts, notes and obstacles."""
    return Report(_lines(world), _facts(world))


def _facts(world: World) -> dict[str, Any]:
    """Return the world as plain values in length units of the file; None for infinite bounds."""
    return {
        "schema": SCHEMA,
        "world": _name(world),
        "unit": unit_name(world.meters_per_unit),
        "meters_per_unit": world.meters_per_unit,
        "up": world.up,
        "notes": list(world.notes),
        "obstacles": [
            {
                "name": obstacle.name,
                "shapes": [shape.word for shape in obstacle.shapes],
                "transform": obstacle.transform.tolist(),
                "lower": _finite(obstacle.bounds[0]),
                "upper": _finite(obstacle.bounds[1]),
            }
            for obstacle in world
        ],
    }


def _lines(world: World) -> list[str]:
    """Return the lines to print."""
    unit = unit_name(world.meters_per_unit)
    known = unit if world.meters_per_unit is not None else "that of the body"
    up = world.up or "that of the body"
    shapes = sum(len(obstacle.shapes) for obstacle in world)
    lines = [
        style(printable(_name(world)), bold=True),
        f"{counted(len(world), 'obstacle')} of {counted(shapes, 'shape')}, unit {known}, up {up}",
        *(style(printable(note), fg="yellow") for note in world.notes),
    ]
    if not len(world):
        return lines
    rows = [
        [printable(str(obstacle.name)), obstacle.kinds, *(_range(obstacle.bounds[:, axis]) for axis in range(3))]
        for obstacle in world
    ]
    head = ["obstacle", "shapes", *(f"{axis} ({unit})" for axis in "xyz")]
    return [*lines, "", *(line.rstrip() for line in table(rows, head))]


def _name(world: World) -> str:
    """Return the name of the world's file, or "world"."""
    return "world" if world.source is None else Path(world.source).name


def _range(ends: Array) -> str:
    """Return the range of a coordinate as text."""
    low, high = (float(end) for end in ends)
    if not np.isfinite(ends).any():
        return "all"
    if not np.isfinite(low):
        return f"up to {number(round(high, 6))}"
    if not np.isfinite(high):
        return f"from {number(round(low, 6))}"
    return f"{number(round(low, 6))} to {number(round(high, 6))}"


def _finite(ends: Array) -> list[float | None]:
    """Return coordinates, with None in place of infinite ones."""
    return [end if np.isfinite(end) else None for end in ends.tolist()]
