"""How long a new process takes to import, to show help, and to its first answers, with a warm and a cold compile cache.

python benchmarks/startup.py
python benchmarks/startup.py --only servo drag --cold 1    # these, from a cold cache

Where kernels came compiled, the cold cache makes no difference: SYNOVIA_KERNELS=jit measures what a clone waits for.
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

REPO = Path(__file__).resolve().parents[1]

IMPORT = "import synovia"
SOLVE = """
import sys, synovia as sy
solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)), "lm")
if not solution.reached: sys.exit(str(solution))
if "scipy" in sys.modules: sys.exit("SciPy was imported")
"""
SERVO = """
import synovia as sy
arm = sy.bundled("arm7")
servo = sy.Servo(arm, sy.PoseGoal("tool"), rate=100, velocity=1.0, acceleration=5.0)
servo.reset()
servo.step()
"""
DRAG = """
import threading
import synovia as sy
from synovia.viewer.editing.first_goals import first_goals
from synovia.viewer.editing.session import Session
from synovia.viewer.editing.state import DRAGGED
from synovia.viewer.editing.worker import Background, Worker
session, solved = Session(sy.bundled("humanoid"), (), DRAGGED, "free"), threading.Event()
first_goals(session.goals)
hand = session.goals.editors[0]
session.goals.move(hand.key, hand.position + 0.1)
background = Background()
worker = Worker(session.state, lambda frame: frame.solution and solved.set(), background)
solved.wait()
worker.stop()
background.stop()
"""
RETARGET = """
import synovia as sy
answer = sy.retarget(sy.load_motion("examples/walk.bvh"), sy.load_skeleton("examples/character.glb"))
if answer.verdict != "good": raise SystemExit(answer.verdict)
"""
FIRST = {"servo": ("first tick of a Servo", SERVO), "drag": ("first drag on the page", DRAG)}
FIRST |= {"retarget": ("first retarget", RETARGET)}
PICTURE = ["solve", "humanoid", "--goals", "examples/reach.toml", "--root", "free", "--force", "--picture"]
BYTECODE = tempfile.TemporaryDirectory()


def timed(command: list[str], cache: str | None = None) -> float:
    """Return the seconds of one process, from start to end; bytecode is kept, as an installed package has it."""
    env = os.environ | ({} if cache is None else {"SYNOVIA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": BYTECODE.name})
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    done = subprocess.run(command, env=env, cwd=REPO, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{command} failed with {done.returncode}: {done.stderr}")
    return took


def first_use(what: str, shell: list[str]) -> float:
    """Return the seconds of a first picture, drag, tick or retargeting from an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        picture = [*shell, *PICTURE, str(Path(folder, "reach.png"))]
        return timed(picture if what == "picture" else [sys.executable, "-c", FIRST[what][1]], folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cold", type=int, default=3, help="rounds of the cold start")
    parser.add_argument("--only", nargs="+", choices=["picture", *FIRST], help="only these, from a cold cache")
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
    if args.only:
        for one in args.only:
            seconds = [first_use(one, shell) for _ in range(args.cold)]
            print(f"{one}: best {min(seconds):.1f} s of {args.cold}, from a cold cache")
        return 0
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
    for one in ("picture", *FIRST):
        name = "first picture, cold cache" if one == "picture" else f"{FIRST[one][0]}, cold cache"
        bars[name], times[name] = float("inf"), [first_use(one, shell) for _ in range(args.cold)]
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
