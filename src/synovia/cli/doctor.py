"""``synovia doctor``: what is installed, and where compiled code is kept."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from synovia.cli.output import emit_json, emit_rich
from synovia.cli.warm import compile_all

SCHEMA: Final = "synovia.doctor/1"
_CORE: Final = ("numpy", "scipy", "numba", "typer", "rich", "msgspec")
_EXTRAS: Final = {
    "view": ("viser",),
    "render": ("pillow",),
    "film": ("pillow", "imageio-ffmpeg"),
    "plot": ("matplotlib",),
    "mujoco": ("mujoco",),
}


def examine(*, as_json: bool, warm: bool) -> None:
    """Print the state of this installation, after compiling all solvers where asked to."""
    times = compile_all() if warm else {}
    state = _state()
    if warm:
        state["warmed"] = times
    if as_json:
        emit_json(state)
    else:
        emit_rich(*_text(state))


def _state() -> dict[str, Any]:
    """Return versions, extras, and the cache of compiled code."""
    extras: dict[str, Any] = {}
    for extra, names in _EXTRAS.items():
        packages = {name: _installed(name) for name in names}
        extras[extra] = {
            "installed": None not in packages.values(),
            "packages": packages,
            "install": f'pip install "synovia[{extra}]"',
        }
    return {
        "schema": SCHEMA,
        "synovia": version("synovia"),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: _imported(name) for name in _CORE},
        "extras": extras,
        "cache": _cache(),
    }


def _installed(package: str) -> str | None:
    """Return the version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _imported(package: str) -> dict[str, str | None]:
    """Return the version of a package, and what goes wrong when it is imported."""
    try:
        if package != "numba":  # imported with the kernels, below
            import_module(package)
    except Exception as error:  # noqa: BLE001 - broken binaries raise anything
        return {"version": _installed(package), "problem": f"{type(error).__name__}: {error}"}
    found = _installed(package)
    return {"version": found, "problem": None if found else "not installed"}


def _cache() -> dict[str, Any]:
    """Return where compiled code is kept, whether that works, and how much is there."""
    from synovia.kernels.compiler import jit as seam

    root = seam.cache_root()
    kernels = Path(seam.__file__).parents[1]
    current = {seam.cache_folder(path) for path in kernels.rglob("*.py")}
    here, older = [0, 0], [0, 0]
    with suppress(OSError):
        for path in root.rglob("*"):
            if path.suffix in (".nbi", ".nbc"):
                count = here if current.intersection(path.parents) else older
                count[0] += 1
                count[1] += path.stat().st_size
    off = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return {
        "folder": str(root),
        "writable": seam.WRITABLE or (off and os.access(_nearest(root), os.W_OK)),
        "compiling": not off and seam.numba is not None,
        "files": here[0],
        "bytes": here[1],
        "bytes_of_other_versions": older[1],
    }


def _nearest(folder: Path) -> Path:
    """Return the nearest folder that exists at or above a path."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _text(state: dict[str, Any]) -> list[Any]:
    """Return the tables for people."""
    from rich.table import Table
    from rich.text import Text

    def table() -> Table:
        rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
        for _ in range(3):
            rows.add_column(no_wrap=True)
        return rows

    good, bad = "green", "yellow"
    versions = table()
    versions.add_row("synovia", Text(state["synovia"]))
    versions.add_row("python", Text(state["python"]), Text(state["executable"], style="dim"))
    versions.add_row("platform", Text(state["platform"]))
    versions.add_row("cores", Text(str(state["cores"])))
    for name, found in state["packages"].items():
        broken = found["problem"]
        versions.add_row(name, Text(found["version"] or "missing", style=bad if broken else ""), Text(broken or ""))
    extras = table()
    for name, extra in state["extras"].items():
        listed = ", ".join(f"{package} {found or 'missing'}" for package, found in extra["packages"].items())
        there = extra["installed"]
        word = Text("installed", style=good) if there else Text("missing", style=bad)
        extras.add_row(f"[{name}]", word, Text(listed if there else f"{listed};  {extra['install']}"))
    kept = state["cache"]
    cache = table()
    cache.add_row("folder", Text(kept["folder"]))
    lacking = "no: what is not there yet, every process compiles anew; set SYNOVIA_CACHE_DIR"
    writable = "yes" if kept["writable"] else lacking
    cache.add_row("writable", Text(writable, style=good if kept["writable"] else bad))
    compiling = "yes" if kept["compiling"] else "no: kernels run as plain Python, correct and slow"
    cache.add_row("compiling", Text(compiling, style=good if kept["compiling"] else bad))
    size = f"{kept['files']} files, {kept['bytes'] / 1e6:.1f} MB"
    if kept["bytes_of_other_versions"]:
        size += f"; {kept['bytes_of_other_versions'] / 1e6:.1f} MB of other versions"
    if not kept["files"] and kept["compiling"]:
        size += "; 'synovia doctor --warm' compiles ahead"
    cache.add_row("compiled", Text(size))
    heads = (Text(title, style="bold") for title in ("versions", "extras", "cache of compiled code"))
    return [next(heads), versions, "", next(heads), extras, "", next(heads), cache]
