"""The installation, for ``doctor``: report versions, extras and the cache of compiled code; compile all solvers."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from click import style

from synovia.cli.output import talk
from synovia.cli.progress import Bar
from synovia.cli.uncompiled import is_chosen
from synovia.compiling import Compilers, cores
from synovia.errors import FileError, MissingExtraError, install_command
from synovia.jobs.words import table
from synovia.text import Report

SCHEMA: Final = "synovia.doctor/1"
_CORE: Final = ("numpy", "scipy", "click", "rich", "msgspec")
_MODES: Final = {
    "prebuilt": "prebuilt, for {level}",
    "jit": "compiled by numba when they are first used",
    "python": "plain Python, correct and slow",
    "none": "none: {advice}",
    "small": "none; only 'synovia solve' works, for small problems, in plain Python; {advice}",
}
_LOOK: Final = 0.25  # seconds between two updates of the progress bar
_GOOD: Final = "green"
_BAD: Final = "yellow"
_EXTRAS: Final = {
    "jit": ("numba",),
    "meshes": ("trimesh",),
    "view": ("viser",),
    "render": ("pillow",),
    "film": ("pillow", "imageio-ffmpeg"),
    "plot": ("matplotlib",),
    "mujoco": ("mujoco",),
    "c3d": ("ezc3d",),
    "fbx": ("ufbx",),
    "data": ("pyarrow",),
    "ray": ("ray",),
    "torch": ("torch",),
    "jax": ("jax",),
}


def installation_report(warmed: Mapping[str, Any] | None = None) -> Report:
    """Return the report on versions, extras, and the cache of compiled code.

    Args:
        warmed: Compile times of solvers that were compiled for the report; None if none were.
    """
    state = _facts() | ({} if warmed is None else {"warmed": warmed})
    return Report(installation_text(state), state)


def _facts() -> dict[str, Any]:
    """Return versions, extras, and the cache as plain values."""
    extras: dict[str, Any] = {}
    for extra, names in _EXTRAS.items():
        packages = {name: _installed(name) for name in names}
        installed = None not in packages.values()
        extras[extra] = {
            "installed": installed,
            "packages": packages,
            # only numba is tried: other packages take long to import, and only their own commands need them
            "problem": _imported("numba")["problem"] if installed and extra == "jit" else None,
            "install": install_command(extra),
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
        "kernels": _kernels(),
        "cache": _cache(),
    }


def _installed(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _imported(package: str) -> dict[str, str | None]:
    """Import a package; return its version, and the error if the import fails."""
    try:
        import_module(package)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - broken binaries raise any exception, and some exit
        return {"version": _installed(package), "problem": f"{type(error).__name__}: {error}"}
    found = _installed(package)
    return {"version": found, "problem": None if found else "not installed"}


def _kernels() -> dict[str, Any]:
    """Return the mode of the kernels, the processor level of prebuilt kernels, and why no faster mode is used."""
    from synovia.kernels import compiler

    found = compiler.prebuilt
    return {"mode": compiler.mode, "level": found.level, "reason": found.reason, "advice": compiler.advice}


def _cache() -> dict[str, Any]:
    """Return the state of the cache: its folder, whether it is writable, and its size."""
    from synovia.kernels.compiler import cache, kept, numba, sources

    root = kept.cache_root()
    current = {cache.cache_folder(path) for path in sources.modules().values()}
    here, older = [0, 0], [0, 0]
    with suppress(OSError):
        for path in root.rglob("*"):
            if path.suffix in (".nbi", ".nbc", ".o", ".so"):
                count = here if current.intersection(path.parents) else older
                count[0] += 1
                count[1] += path.stat().st_size
    return {
        "folder": str(root),
        "writable": cache.WRITABLE or (numba is None and os.access(_nearest(root), os.W_OK)),
        "files": here[0],
        "bytes": here[1],
        "bytes_of_other_versions": older[1],
        "days": kept.DAYS,
    }


def _nearest(folder: Path) -> Path:
    """Return the nearest existing folder at or above a path."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def installation_text(state: Mapping[str, Any]) -> list[str]:
    """Return the lines to print."""
    kept, packages, found, run = state["cache"], state["packages"], state["extras"], state["kernels"]
    versions = [
        ("synovia", state["synovia"]),
        ("python", state["python"], style(state["executable"], dim=True)),
        ("platform", state["platform"]),
        ("cores", str(state["cores"])),
        *(
            (name, style(one["version"] or "missing", fg=_BAD if one["problem"] else None), one["problem"] or "")
            for name, one in packages.items()
        ),
    ]
    extras: list[tuple[str, ...]] = []
    for name, extra in found.items():
        listed = ", ".join(f"{package} {version or 'missing'}" for package, version in extra["packages"].items())
        if not extra["installed"]:
            colour = None if name == "jit" and run["mode"] == "prebuilt" else _BAD  # prebuilt kernels do not need numba
            extras.append((f"[{name}]", style("missing", fg=colour), f"{listed};  {extra['install']}"))
        elif extra["problem"]:
            extras.append((f"[{name}]", style("broken", fg=_BAD), f"{listed};  {extra['problem']}"))
        else:
            extras.append((f"[{name}]", style("installed", fg=_GOOD), listed))
    compiles = run["mode"] == "jit"
    writable = "yes" if kept["writable"] else "no"
    if compiles and not kept["writable"]:
        writable += ": every process compiles again; set SYNOVIA_CACHE_DIR"
    size = f"{kept['files']} files, {kept['bytes'] / 1e6:.1f} MB"
    if kept["bytes_of_other_versions"]:
        size += f"; {kept['bytes_of_other_versions'] / 1e6:.1f} MB of other versions, removed after {kept['days']} days"
    if not kept["files"] and kept["writable"] and compiles:
        size += "; 'synovia doctor --warm' compiles ahead"
    cache = [
        ("folder", kept["folder"]),
        ("writable", style(writable, fg=_GOOD if kept["writable"] else _BAD if compiles else None)),
        ("compiled", size),
    ]
    words = _MODES["small" if run["mode"] == "none" and not is_chosen() else run["mode"]]
    mode = style(words.format(**run), fg=_GOOD if run["mode"] in ("prebuilt", "jit") else _BAD)
    kernels = [("in use", mode), *([("why", run["reason"])] if run["reason"] else [])]
    tables = {"versions": versions, "extras": extras, "kernels": kernels, "cache of compiled code": cache}
    lines = [line for title, rows in tables.items() for line in (style(title, bold=True), *table(rows), "")]
    return lines[:-1]


def compile_all() -> dict[str, float]:
    """Compile the entry points of all solvers, the most used first; return the seconds of each by its description.

    A process can only compile one function at a time, so several processes are used. Ctrl-C kills these processes,
    because the compiler ignores it.

    Raises:
        FileError: If compiled code cannot be stored.
        MissingExtraError: If there is no compiler.
        SynoviaError: If a process ends before its function is compiled.
    """
    from synovia.kernels.compiler import advice, cache, mode, prebuilt
    from synovia.kernels.compiler.entries import ENTRIES
    from synovia.kernels.compiler.kept import cache_root

    if mode == "none":
        raise MissingExtraError(f"the solvers cannot be compiled: {prebuilt.reason}", hint=advice)
    if mode != "jit":
        talk(
            "the kernels are prebuilt; there is nothing to compile"
            if mode == "prebuilt"
            else "kernels run as plain Python, as configured; there is nothing to compile"
        )
        return {}
    if not cache.WRITABLE:
        raise FileError(
            "compiled kernels cannot be stored",
            where=str(cache_root()),
            expected="a folder that can be written",
            hint="set SYNOVIA_CACHE_DIR",
        )
    times: dict[str, float] = {}
    compilers = Compilers(min(cores(), len(ENTRIES)))
    total, begun = sum(entry.seconds for entry in ENTRIES.values()), time.monotonic()
    with Bar("compiling", unit="") as bar:
        try:
            waiting = {result: name for name, result in compilers.start(ENTRIES).items()}
            while waiting:
                ready = sum(entry.seconds for entry in ENTRIES.values() if entry.words in times)
                so_far = f"{len(times)} of {len(ENTRIES)} ({time.monotonic() - begun:.0f} s so far)"
                bar(ready, total, text=f"compiling, {so_far}")
                for one in wait(waiting, _LOOK, FIRST_COMPLETED).done:
                    words = ENTRIES[waiting.pop(one)].words
                    times[words] = one.result()
                    talk(f"{words}: ready after {times[words]:.1f} s")
        finally:
            compilers.stop()
    return times
