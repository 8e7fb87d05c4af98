"""Kernels that came compiled with the package: find them, check whether they fit, and load their functions.

A platform wheel holds an extension module for each level of the instruction set (``packaging/kernels.py`` writes them).
The modules are used if they are complete and were made from exactly the sources next to them, so that an edit of a
kernel always has an effect. Otherwise modules from the cache folder are used, which the script has compiled for this
processor from the same sources. Nothing here imports numba.
"""

import functools
import hashlib
import json
import os
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from synovia.kernels.compiler import kept, sources

LEVELS = "x86_64", "x86_64_v3", "x86_64_v4", "arm64"
_CHOSEN = os.environ.get("SYNOVIA_PREBUILT")
FOLDER = Path(_CHOSEN or Path(__file__).parents[1] / "prebuilt")


class Prebuilt(NamedTuple):
    """Compiled entry points of one level, or why there are none."""

    level: str  # level of the instruction set, "" if none can be used
    entries: dict[str, Callable[..., Any]]  # functions by module and function name
    reason: str  # why no level, or a lower level, is used; shown to users


class _Made(NamedTuple):
    """The description that ``packaging/kernels.py`` writes next to the modules."""

    sources: dict[str, str]  # hashes of the kernels' files
    levels: list[str]  # instruction sets, the lowest first
    bytes: dict[str, int]  # size of each module: loading a truncated module can end the process


def load(level: str = "") -> Prebuilt:
    """Return the compiled entry points for this processor.

    If a level cannot be loaded, the next lower level is used, and the reason is returned.

    Args:
        level: The level to use; "" for the highest that both the processor and the package have.
    """
    if level and level not in LEVELS:
        return Prebuilt("", {}, f"expected jit, python, prebuilt, or a level among {', '.join(LEVELS)}")
    found = _load(FOLDER, level)
    if found.level or _CHOSEN is not None:
        return found
    with suppress(ImportError, OSError, RuntimeError):  # RuntimeError: no home folder
        for highest in LEVELS if (kept.cache_root() / "modules").is_dir() else ():
            folder = kept_folder(highest)
            if folder.is_dir() and _extension(folder, "processor", _description(folder)).level() == highest:
                kept.note_use(folder)  # a folder for a lower level is not used: numba would compile better code
                return _load(folder, level)
    return found


def kept_folder(level: str) -> Path:
    """Return the folder in the cache for modules of these sources up to a level; it may not exist."""
    return kept.cache_root() / "modules" / f"{level}-{_key()}"


@functools.cache
def _key() -> str:
    """Return a hash of all sources and of the platform."""
    return hashlib.sha256(repr((sysconfig.get_platform(), sources.digests_of_all())).encode()).hexdigest()[:16]


def _load(folder: Path, level: str) -> Prebuilt:
    """Return the compiled entry points of a folder."""
    try:
        made = _description(folder)
        other = sources.changed_since(made.sources)
        if other:
            return Prebuilt("", {}, f"the compiled kernels were made from another {other}")
        best = _extension(folder, "processor", made).level()
    except FileNotFoundError:
        return Prebuilt("", {}, "this installation has no compiled kernels")
    except OSError as error:
        return Prebuilt("", {}, f"the compiled kernels cannot be read: {error}")
    except ImportError as error:  # another platform, or a damaged file
        return Prebuilt("", {}, f"the compiled kernels cannot be loaded: {error}")
    levels = made.levels
    usable = levels[: levels.index(best) + 1] if best in levels else [one for one in levels if one < best]
    if level and level not in usable:
        return Prebuilt("", {}, f"expected a level among {', '.join(usable)}, got {level}")
    if not usable:
        return Prebuilt("", {}, f"the compiled kernels are for {', '.join(levels)}, the processor is {best}")
    reason = ""
    for chosen in [level] if level else reversed(usable):
        try:
            module = _extension(folder, chosen, made)
        except (ImportError, OSError) as error:
            reason = reason or f"the compiled kernels cannot be loaded: {error}"
        else:
            entries = {name.replace("__", "."): one for name, one in vars(module).items() if callable(one)}
            return Prebuilt(chosen, entries, reason)
    return Prebuilt("", {}, reason)


def _description(folder: Path) -> _Made:
    """Return the description of the modules in a folder.

    Raises:
        OSError: If the description does not exist or cannot be read.
        ImportError: If the description is damaged.
    """
    file = folder / "made.json"
    try:
        found = json.loads(file.read_bytes())
        made = _Made(dict(found["sources"]), [*found["levels"]], dict(found["bytes"]))
        whole = made.levels and all(f"{level}.abi3.so" in made.bytes for level in [*made.levels, "processor"])
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise ImportError(f"{file} is damaged")
    return made


def _extension(folder: Path, name: str, made: _Made) -> ModuleType:
    """Return an extension module of a folder.

    Raises:
        ImportError: If the module is damaged or is for another platform.
    """
    file = folder / f"{name}.abi3.so"
    size, whole = file.stat().st_size, made.bytes[file.name]
    if size != whole:
        raise ImportError(f"{file} is damaged: expected {whole} bytes, got {size}")
    spec = spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
    if spec is None or spec.loader is None:
        raise ImportError(f"no module {file}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
