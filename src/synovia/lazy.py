"""Packages whose names are imported when they are first used.

The stub of such a package, ``__init__.pyi``, is its only list of names. Both type checkers and Python read the stub, as
proposed in SPEC 1 of Scientific Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_NOW: Final = {
    "Command": "live.Tick", "HandPose": "live.Tick", "LivePose": "live.Tick", "LiveReport": "results.Report",
}  # names that have changed  # fmt: skip


def declared(stub: Path) -> dict[str, str]:
    """Return the names that a file imports from other modules, each with its module."""
    homes: dict[str, str] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            homes |= dict.fromkeys(import_module(node.module).__all__ if names == ["*"] else names, node.module)
    return homes


def importer(package: str, folder: Path, homes: dict[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package, which imports a name when it is first used.

    If a name is missing, the error names a module of the package that has it.

    Args:
        package: Name of the package.
        folder: Folder of the package.
        homes: Public names, each with the module to import it from; for modules of the package, the package itself.
    """

    def load(name: str) -> Any:
        if name not in homes:
            # an import of an unlisted module looks up its name here first, and needs no hint
            is_module = name.startswith("_") or any(folder.glob(f"{name}.py")) or (folder / name).is_dir()
            places = [] if is_module else [one for one in modules if name in set(_names(_source(folder, one)))]
            raise _missing(package, name, f"{places[0]}.{name}" if places else "")
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        vars(import_module(package))[name] = value
        return value

    modules = [name for name, home in homes.items() if home == package]
    return load


def renamed(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module in which names have changed."""

    def load(name: str) -> Any:
        raise _missing(module, name)

    return load


def _missing(module: str, name: str, place: str = "") -> AttributeError:
    """Return the error for a name that a module does not have, with its place in the package if it is known."""
    place = place or _NOW.get(name, "")
    hint = f"; use {module.partition('.')[0]}.{place}" if place else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def public_names(package: ModuleType) -> dict[str, Any]:
    """Return the public objects of a package and its public modules by name, such as ``plots.plot_feet``.

    The names of a module are those in ``__all__``, else all names without a leading underscore.
    """
    out: dict[str, Any] = {}
    for name in dir(package):
        thing = getattr(package, name)
        if isinstance(thing, ModuleType):
            listed = getattr(thing, "__all__", None) or [one for one in vars(thing) if not one.startswith("_")]
            out |= {f"{name}.{one}": getattr(thing, one) for one in listed}
        elif not name.startswith("_"):
            out[name] = thing
    return out


def _source(folder: Path, module: str) -> Path:
    """Return the file of a module, or the ``__init__.py`` of a package."""
    file = folder / f"{module}.py"
    return file if file.is_file() else folder / module / "__init__.py"


def _names(file: Path) -> Iterator[str]:
    """Yield the names that a file imports or defines, without importing it."""
    yield from declared(file)
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
