"""Maps of what a joint reaches agree with what is known of planar arms."""

import json

import numpy as np
import pytest

import synovia as sy
from cli_runs import run

pytestmark = pytest.mark.compiled


def planar(*lengths, limit=None):
    """Return an arm of hinges about z that lies in the plane z = 0."""
    joints, above, x = [], None, 0.0
    for k, length in enumerate(lengths):
        rest = np.eye(4)
        rest[0, 3] = x
        joints.append(sy.Joint(f"j{k}", above, sy.Kind.HINGE, rest, axis=(0, 0, 1), limit=limit if k else None))
        above, x = f"j{k}", length
    rest = np.eye(4)
    rest[0, 3] = x
    return sy.Skeleton([*joints, sy.Joint("tip", above, rest=rest)], meters_per_unit=1.0, up="z")


def distances(section, size):
    """Return the distance of each cell's centre from the origin of the plane."""
    rows, columns = section.cells.shape
    x = section.low[0] + size * (np.arange(columns) + 0.5)
    y = section.low[1] + size * (np.arange(rows)[:, None] + 0.5)
    return np.hypot(x, y)


@pytest.mark.parametrize("limit", [None, sy.Interval(-1.0, 1.0)])
def test_the_map_of_a_planar_arm_is_its_ring(limit):
    """Two links of 0.5 and 0.2 reach distances from 0.3 to 0.7; limits of the elbow raise the smallest."""
    reach = sy.plots.map_reach(planar(0.5, 0.2, limit=limit), "tip", cells=24)
    level = reach.sections[1]
    nearest = 0.3 if limit is None else float(np.hypot(0.5 + 0.2 * np.cos(1.0), 0.2 * np.sin(1.0)))
    away, near = distances(level, reach.size), reach.size * np.sqrt(0.5)
    inside = (away >= nearest - near) & (away <= 0.7 + near)
    assert not (level.cells[inside] == 2).any()
    assert not (level.cells[~inside] == 1).any()
    assert level.holes == 1
    assert (level.cells == 0).mean() < 0.02


def test_inspect_shows_what_a_joint_reaches(tmp_path):
    out = run("inspect", "arm7", "--reach", "joint4", "--json")
    shown = json.loads(out.out)
    assert shown["schema"] == "synovia.reach/1"
    cells = np.array(shown["sections"][1]["cells"])
    assert set(np.unique(cells)) <= {0, 1, 2}
    assert cells[0, 0] == 2  # the corner is out of reach
    assert cells[len(cells) // 2].max() >= 1
