"""Load the models that are included in Synovia."""

from __future__ import annotations

from copy import copy
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

from synovia.errors import unknown_name
from synovia.model import Skeleton

_FOLDER: Final = Path(__file__).parents[1] / "models"  # importlib.resources would take longer than the model


def bundled_names() -> tuple[str, ...]:
    """Return the names of the bundled models, sorted.

    Example:
        >>> bundled_names()
        ('arm7', 'humanoid', 'humanoid_hands', 'quadruped')
    """
    return tuple(sorted(_models()))


def bundled(name: str) -> Skeleton:
    """Return a model that is included in Synovia.

    Args:
        name: ``humanoid`` (a person of 1.75 m and 75 kg with named roles), ``humanoid_hands`` (the same person, with
            joints of the fingers after the others), ``arm7`` (a 7-joint arm with the kinematics of the Franka Emika
            Panda) or ``quadruped`` (a dog of 30 kg).

    Raises:
        UnknownNameError: If there is no such model; the message lists the names.

    Example:
        >>> bundled("arm7").nq
        7
    """
    known = _models()
    if name not in known:
        raise unknown_name("bundled model", name, sorted(known))
    return copy(_read(known[name]))  # a copy has its own cached values


@cache
def _read(path: Path) -> Skeleton:
    """Read the model of a file, once per process, because reading takes 10 milliseconds."""
    return import_module("synovia.io.toml").FORMAT.read(path).skeleton


def _models() -> dict[str, Path]:
    """Return the files of the bundled models, by name."""
    return {path.stem: path for path in _FOLDER.glob("*.toml")}
