"""The tables and the plot of *Choose a solver*: what ``synovia bench`` measures, on four kinds of models.

    python benchmarks/choose.py

writes results/choose.json, results/choose.md, the tables in docs/solvers/choose.md, and docs/pictures/convergence.png.
"""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path

import numpy as np
from common import machine, save, table

import synovia as sy
from synovia.comparison import Comparison

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "solvers" / "choose.md"
HEAD = ["solver", "reached", "steps", "attempts", "median", "99 %", "from rest", "tracked", "largest step", "roughness"]
ON_PAGE = [0, 1, 3, 4, 5, 7, 8]  # the columns that the page shows
MARK = re.compile(r"<!-- table (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def chain(bones: int) -> sy.Skeleton:
    """Return a chain of balls of length 1, a little bent."""
    points = np.zeros((bones + 1, 3))
    angle = np.cumsum(np.full(bones, math.radians(3.0)))
    points[1:] = np.cumsum(np.stack([np.sin(angle), np.cos(angle), 0 * angle], 1) / bones, axis=0)
    return sy.Skeleton.chain(points, name=f"chain of {bones} balls")


def cases(count: int) -> dict[str, tuple[sy.comparison.Problems, dict[str, object]]]:
    """Return the problems by name, and what else their comparison needs."""
    return {
        "humanoid": (sy.comparison.make_problems(sy.bundled("humanoid"), count=count), {}),
        "arm": (sy.comparison.make_problems(sy.bundled("arm7"), count=count), {}),
        "arm_pose": (
            sy.comparison.make_problems(sy.bundled("arm7"), count=count, pose=True),
            {"tolerance": (1e-4, 1e-3)},
        ),
        "chain": (sy.comparison.make_problems(chain(10), count=count), {"tolerance": (1e-2, 1e-2)}),
    }


def rows(result: Comparison) -> list[list[object]]:
    """Return the rows of a table, the surest and fastest first; what a solver refuses or cannot do is left out."""
    taken = [row for row in result.rows if row.refused is None and (row.reached > 0.0 or _moves_all(row.solver))]
    most = max(row.count for row in taken)
    out: list[list[object]] = []
    for row in sorted(taken, key=lambda row: (-round(row.reached, 2), row.median_us)):
        few = f" of {row.count}" if row.count < most else ""
        rest = "-" if math.isnan(row.from_rest_deg) else f"{row.from_rest_deg:.0f}°"
        out.append(
            [
                f"`{row.solver}`",
                f"{100 * row.reached:.1f} %{few}",
                f"{row.steps:.0f}",
                f"{row.tries:.1f}",
                clock(row.median_us),
                clock(row.p99_us),
                rest,
                f"{100 * row.track_reached:.0f} %",
                f"{row.largest_step_deg:.1f}°",
                f"{row.roughness_deg:.2f}°",
            ]
        )
    return out


def _moves_all(name: str) -> bool:
    """Return whether a solver is made for any joints, and not for the last few alone."""
    return sy.solvers[name].restrict is sy.Solver.restrict


def clock(us: float) -> str:
    """Return microseconds as people read them."""
    return f"{us:.1f} µs" if us < 100 else f"{us:.0f} µs" if us < 1000 else f"{us / 1000:.1f} ms"


def main() -> None:
    """Compare, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of one solver")
    arguments = parser.parse_args()
    where = machine()
    tables: dict[str, str] = {}
    shown: dict[str, str] = {}
    record: dict[str, object] = {}
    for name, (problems, options) in cases(arguments.problems).items():
        result = sy.comparison.compare(problems, budget=arguments.budget, **options)
        found = rows(result)
        tables[name] = table(HEAD, found)
        shown[name] = table([HEAD[k] for k in ON_PAGE], [[row[k] for k in ON_PAGE] for row in found])
        record[name] = [
            {"solver": row.solver, "refused": row.refused}
            if row.refused is not None
            else {
                "solver": row.solver,
                "reached": row.reached,
                "problems": row.count,
                "steps": row.steps,
                "attempts": row.tries,
                "median_us": row.median_us,
                "p99_us": row.p99_us,
                "from_rest_deg": row.from_rest_deg,
                "tracked": row.track_reached,
                "largest_step_deg": row.largest_step_deg,
                "roughness_deg": row.roughness_deg,
            }
            for row in result.rows
        ]
        if name == "humanoid":
            sy.plots.plot_convergence(result, ROOT / "docs" / "pictures" / "convergence.png", force=True)
    text = "\n\n".join(f"{name}\n\n{one}" for name, one in tables.items())
    save("choose", "every solver side by side", {"cases": record}, text, where)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        MARK.sub(lambda found: f"<!-- table {found[1]} -->\n{shown[found[1]]}\n<!-- end -->", page), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
