"""How long a new process takes to import, to show help, and to its first solve, with a warm and a cold compile cache.

python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from common import machine, save, table, verdicts

IMPORT = "import synovia"
SOLVE = """
import sys, synovia as sy
solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)), "lm")
if not solution.reached: sys.exit(str(solution))
if "scipy" in sys.modules: sys.exit("SciPy was imported")
"""
BYTECODE = tempfile.TemporaryDirectory()


def timed(command: list[str], cache: str | None = None) -> float:
    """Return the seconds of one process, from start to end; bytecode is kept, as an installed package has it."""
    env = os.environ | ({} if cache is None else {"SYNOVIA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": BYTECODE.name})
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{command} failed with {done.returncode}: {done.stderr}")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cold", type=int, default=3, help="rounds of the cold start")
    args = parser.parse_args()
    where = machine()
    script = Path(sysconfig.get_path("scripts")) / ("synovia.exe" if sys.platform == "win32" else "synovia")
    shell = [str(script)] if script.exists() else [sys.executable, "-m", "synovia"]
    what: list[tuple[str, list[str], float]] = [
        ("python, nothing else", [sys.executable, "-c", "pass"], float("inf")),
        ("import synovia", [sys.executable, "-c", IMPORT], 0.2),
        ("synovia --help", [*shell, "--help"], 0.3),
        ("first solve, warm cache", [sys.executable, "-c", SOLVE], 0.8),
    ]
    times: dict[str, list[float]] = {name: [] for name, _, _ in what}
    with tempfile.TemporaryDirectory() as warm:
        timed([sys.executable, "-c", SOLVE], warm)
        for _ in range(args.rounds):
            for name, command, _ in what:
                times[name].append(timed(command, warm))
    bars = {name: bar for name, _, bar in what}
    for solver in ("lm", "fabrik", "ccd"):
        name = f"first solve, cold cache, {solver}"
        bars[name] = 8.0 if solver == "lm" else float("inf")
        times[name] = []
        for _ in range(args.cold):
            with tempfile.TemporaryDirectory() as cold:
                times[name].append(timed([sys.executable, "-c", SOLVE.replace("lm", solver)], cold))
    rows: list[list[object]] = [
        [name, f"{min(t):.3f}", f"{statistics.median(t):.3f}", "" if bars[name] == float("inf") else f"{bars[name]:g}"]
        for name, t in times.items()
    ]
    lines, held = verdicts(
        [(f"{name} below {bars[name]:g} s", min(t) < bars[name]) for name, t in times.items() if bars[name] < 1e9]
    )
    result = {name: {"best_s": min(t), "median_s": statistics.median(t), "runs": len(t)} for name, t in times.items()}
    text = table(["whole process, seconds", "best", "median", "bar"], rows) + f"\n\n{lines}"
    save("startup", "Starting", {"seconds": result, "holds": held}, text, where)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
