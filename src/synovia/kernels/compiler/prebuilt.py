"""Kernels that came compiled with the package: which there are, whether they fit, and their functions.

A platform wheel holds an extension module for each level of the instruction set (``packaging/kernels.py`` writes them).
They are used if they were made from the very sources that lie beside them, so that an edited kernel is never passed
over. Nothing here imports numba.
"""

import json
import os
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from synovia.kernels.compiler import sources

LEVELS = "x86_64", "x86_64_v3", "x86_64_v4", "arm64"
FOLDER = Path(os.environ.get("SYNOVIA_PREBUILT", Path(__file__).parents[1] / "prebuilt"))


class Prebuilt(NamedTuple):
    """Compiled entry points of one level, or why there are none."""

    level: str  # of the instruction set, "" if none can be used
    entries: dict[str, Callable[..., Any]]  # by module and function
    reason: str  # in words, for people


def load(level: str = "") -> Prebuilt:
    """Return the compiled entry points for this processor.

    Args:
        level: The level to take; "" for the highest that both the processor and the package have.
    """
    if level and level not in LEVELS:
        return Prebuilt("", {}, f"expected jit, python, prebuilt, or a level among {', '.join(LEVELS)}")
    try:
        made = json.loads((FOLDER / "made.json").read_bytes())
    except FileNotFoundError:
        return Prebuilt("", {}, "this installation has no compiled kernels")
    except (OSError, ValueError) as error:
        return Prebuilt("", {}, f"{FOLDER / 'made.json'} cannot be read: {error}")
    if made["sources"] != sources.digest_of_all():
        return Prebuilt("", {}, "the compiled kernels were made from other sources")
    try:
        best = _extension("processor").level()
        levels = made["levels"]
        usable = levels[: levels.index(best) + 1] if best in levels else [one for one in levels if one < best]
        if level and level not in usable:
            return Prebuilt("", {}, f"expected a level among {', '.join(usable)}, got {level}")
        if not usable:
            return Prebuilt("", {}, f"the compiled kernels are for {', '.join(levels)}, the processor is {best}")
        chosen = level or usable[-1]
        module = _extension(chosen)
    except ImportError as error:  # another platform, or a library that is missing
        return Prebuilt("", {}, f"the compiled kernels cannot be loaded: {error}")
    entries = {name.replace("__", "."): one for name, one in vars(module).items() if callable(one)}
    return Prebuilt(chosen, entries, "")


def _extension(name: str) -> ModuleType:
    """Return an extension module of the folder."""
    file = FOLDER / f"{name}.abi3.so"
    spec = spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
    if spec is None or spec.loader is None:
        raise ImportError(f"no module {file}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
