"""Many inputs: folders of clips and tables of targets, on one machine or on many.

``Solve``, ``Retarget`` and ``Fit`` are functions from a batch of rows to a batch of rows. They can be pickled, so every
engine for data sets can run them. ``run_folder`` processes many files and keeps a ledger.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synovia.batch.clip_functions import Fit, Retarget
    from synovia.batch.folder import run_folder
    from synovia.batch.functions import Solve

_HOMES = {"Fit": "clip_functions", "Retarget": "clip_functions", "Solve": "functions", "run_folder": "folder"}

__all__ = ["Fit", "Retarget", "Solve", "run_folder"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'synovia.batch' has no attribute {name!r}")
    return getattr(import_module(f"synovia.batch.{_HOMES[name]}"), name)
