"""What the benchmarks share: the machine they ran on, tables, results on disk."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from synovia.kernels import compiler

RESULTS = Path(os.environ.get("SYNOVIA_RESULTS") or Path(__file__).parent / "results")


def data_folder() -> Path:
    """Return the folder of real models: SYNOVIA_DATA, else ../shared/data beside the repository."""
    return Path(os.environ.get("SYNOVIA_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def needed_data() -> Path:
    """Return the folder of real models; end the script, and say what to do, where there is none."""
    folder = data_folder()
    if not folder.is_dir():
        sys.exit(f"this script measures on real models: no folder {folder}; set SYNOVIA_DATA to one that has them")
    return folder


def machine() -> dict[str, object]:
    """Return where and when this ran, and how busy the machine was."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_before": None if load is None else round(load, 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "synovia")},
        "numba": version("numba") if find_spec("numba") else "none",
        "kernels": f"{compiler.mode} {compiler.prebuilt.level}".strip(),
    }


def table(head: list[str], rows: list[list[object]]) -> str:
    """Return a Markdown table: the first column to the left, numbers to the right."""
    text = [[str(cell) for cell in row] for row in [head, *rows]]
    wide = [max(len(row[i]) for row in text) for i in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, wide, strict=True)))
        for row in text
    ]
    rule = "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(wide))
    return (
        "\n".join(f"{line} |" for line in [lines[0]]) + f"\n|{rule}|\n" + "\n".join(f"{line} |" for line in lines[1:])
    )


def save(name: str, what: str, result: dict[str, object], text: str, where: dict[str, object]) -> None:
    """Print a result, and write it as results/NAME.json and results/NAME.md."""
    print(text)
    RESULTS.mkdir(parents=True, exist_ok=True)
    script = Path(sys.argv[0])
    nested = (Path(__file__).parent / script.parent.name / script.name).exists()
    shown = f"{script.parent.name}/{script.name}" if nested else script.name
    command = " ".join(["python", f"benchmarks/{shown}", *map(_elsewhere, sys.argv[1:])])
    record = {"benchmark": name, "command": command, "machine": where, **result}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    ran = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in where.items())
    (RESULTS / f"{name}.md").write_text(f"# {what}\n\n`{command}`\n\n{text}\n\nRan on: {ran}.\n", encoding="utf-8")


def _elsewhere(argument: str) -> str:
    """Return an argument as it may be published: of a path on this machine only its last part."""
    return f".../{Path(argument).name}" if Path(argument).is_absolute() else argument


def verdicts(bars: list[tuple[str, bool]]) -> tuple[str, bool]:
    """Return the bars as lines of text, and whether all hold."""
    return "\n".join(f"- {'holds' if held else 'MISSED'}: {bar}" for bar, held in bars), all(held for _, held in bars)
