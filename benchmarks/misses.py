"""How good are the poses of misses? Each beside the best of 25 random starts, by levels, highest first.

    python benchmarks/misses.py                         # 300 misses a solver, of bundled and of shared bodies
    python benchmarks/misses.py --count 1000 --solver lm
    python benchmarks/misses.py --solver lm --seed 37   # brings one problem back, and says what it is

The problems and their references are those of ``tests/miss_problems.py``.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from common import data_folder, machine, save, table

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from miss_problems import ALLOWED, BUNDLED, KINDS, judged

SOLVERS = ("lm", "full-body", "fabrik", "ccd")


def main() -> None:
    """Judge misses and print how many are as good as they should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, help="one problem alone")
    parser.add_argument("--solver", nargs="+", choices=SOLVERS, default=SOLVERS)
    parser.add_argument("--bundled", action="store_true", help="bundled bodies alone")
    given = parser.parse_args()
    where = machine()
    bodies = BUNDLED if given.bundled or not data_folder().is_dir() else None
    rows, worst = [], []
    for solver in given.solver:
        seeds = iter([given.seed]) if given.seed is not None else iter(range(100 * given.count))
        found = judged(solver, seeds, given.count, bodies)
        if not found:
            print(f"{solver}: no miss")
            continue
        good = np.array([one.loss <= ALLOWED for one in found])
        time_ms = 1e3 * np.array([one.seconds for one in found])
        by_kind = [
            f"{np.mean([g for g, one in zip(good, found, strict=True) if one.miss.kind == kind] or [np.nan]):.1%}"
            for kind in KINDS
        ]
        rows.append(
            [
                solver,
                len(found),
                f"{good.mean():.2%}",
                f"{np.mean([one.loss_of_any <= ALLOWED for one in found]):.2%}",
                *by_kind,
                f"{np.median(time_ms):.2f}",
                f"{np.quantile(time_ms, 0.99):.1f}",
                f"{time_ms.max():.1f}",
            ]
        )
        worst += [
            f"- {solver}, seed {one.miss.seed}, {one.miss.kind}: {one.loss:.1%} of the reach worse, "
            f"{one.attempts} attempts, {one.steps} steps\n  `{one.miss.text(solver)}`"
            for one in sorted(found, key=lambda one: -one.loss)[:10]
            if one.loss > ALLOWED or given.seed is not None
        ]
    head = ["solver", "misses", "within 1 %", "of any", *KINDS, "median ms", "99 % ms", "most ms"]
    text = table(head, rows) + "\n" + "\n".join(["", "Worst:", "", *worst] if worst else [])
    save("misses", "Misses beside the best of 25 random starts", {"rows": rows, "head": head}, text, where)


if __name__ == "__main__":
    main()
