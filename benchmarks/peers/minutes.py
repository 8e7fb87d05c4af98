"""A user's first five minutes with each library: install, import, first answer for a Panda arm, first and next time.

    python benchmarks/peers/minutes.py                       # every library that iterates, each in an environment anew
    python benchmarks/peers/minutes.py --only synovia optik

Packages come from where pip is set to get them; the time to install depends on that and on pip's cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
from adapters import LIBRARIES, PINS, Library, Task  # noqa: E402  # the folders above come first
from panda import Arm, write_panda  # noqa: E402
from run import ROBOTS  # noqa: E402

REPO = Path(__file__).resolve().parents[2]
MODULES = {"optik": "optik", "roboplan": "roboplan.simple_ik", "ikpy": "ikpy.chain"}
MOST = 450.0  # MiB


def first_answer(name: str, urdf: str) -> None:
    """Be the process of a user who wants one answer; exit with 1 if there is none."""
    base, tip, neutral = ROBOTS["panda"]
    task = Task(urdf, base, tip, Arm(Path(urdf), base, tip), (1e-3, 1e-2))
    library = Library(*LIBRARIES[name][0](task, False))
    start = np.array(neutral)
    target = task.arm.forward(start[None] + 0.1)[0]
    answer = library.solve(library.prepare(target), library.begin(start))
    found = task.arm.forward(np.asarray(library.joints(answer), float)[None])[0]
    sys.exit(int(np.linalg.norm(found[:3, 3] - target[:3, 3]) > 2e-3))


def seconds(*command: str, **env: str) -> float:
    """Return how long a process takes; bytecode is kept, as usual."""
    around = {key: value for key, value in os.environ.items() if key not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    began = time.perf_counter()
    done = subprocess.run(command, env=around | env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-400:] or f"{command} failed")
    return time.perf_counter() - began


def mebibytes(folder: Path) -> float:
    """Return what the files below a folder take."""
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 2**20


def measure(name: str, urdf: str, rounds: int) -> dict[str, float]:
    """Return the figures of one library in an environment of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        seconds(sys.executable, "-m", "venv", str(folder / "env"))
        python = str(folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        empty = mebibytes(folder)
        what = [str(REPO) if name == "synovia" else LIBRARIES[name][1], *PINS.get(name, [])]
        installing = seconds(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)
        size = mebibytes(folder) - empty
        cache = {"SYNOVIA_CACHE_DIR": str(folder / "cache")}
        once = [python, __file__, "--answer", name, urdf]
        cold = seconds(*once, **cache)
        module = MODULES.get(name, name)
        return {
            "installing_s": installing,
            "size_mib": size,
            "import_s": min(seconds(python, "-c", f"import {module}") for _ in range(rounds)),
            "cold_s": cold,
            "warm_s": min(seconds(*once, **cache) for _ in range(rounds)),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [name for name, row in LIBRARIES.items() if row[3] == "iterates"]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        first_answer(*args.answer)
    from common import machine, save, table, verdicts

    where = machine()
    with tempfile.TemporaryDirectory() as place:
        urdf = str(Path(place) / "panda.urdf")
        write_panda(Path(urdf))
        found: dict[str, dict[str, float]] = {}
        for name in args.only:
            try:
                found[name] = measure(name, urdf, args.rounds)
            except RuntimeError as error:
                print(f"{name} left out: {error}", file=sys.stderr)
                continue
            print(name, found[name], file=sys.stderr, flush=True)
    head = ["seconds of whole processes", "install", "MiB", "import", "first answer", "next time"]
    rows: list[list[object]] = [
        [name, f"{r['installing_s']:.0f}", f"{r['size_mib']:.0f}"]
        + [f"{r[key]:.2f}" for key in ("import_s", "cold_s", "warm_s")]
        for name, r in found.items()
    ]
    bars = (
        [(f"synovia with all it needs is below {MOST:.0f} MiB", found["synovia"]["size_mib"] < MOST)]
        if "synovia" in found
        else []
    )
    lines, held = verdicts(bars)
    save("minutes", "The first five minutes", {"libraries": found}, f"{table(head, rows)}\n\n{lines}", where)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
