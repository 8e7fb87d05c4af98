"""Models that come with Synovia."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable

from synovia.errors import unknown_name
from synovia.model import Skeleton


def bundled_names() -> tuple[str, ...]:
    """Return the names of the bundled models, sorted."""
    return tuple(sorted(_models()))


def bundled(name: str) -> Skeleton:
    """Return a model that comes with Synovia.

    Args:
        name: ``humanoid`` (a person of 1.75 m and 75 kg with named roles), ``arm7`` (a 7-joint arm with the kinematics
            of the Franka Emika Panda) or ``quadruped`` (a dog of 30 kg).

    Raises:
        UnknownNameError: If there is no such model; the message lists the names.

    Example:
        >>> bundled("arm7").nq
        7
    """
    known = _models()
    if name not in known:
        raise unknown_name("bundled model", name, sorted(known))
    with as_file(known[name]) as path:
        skeleton = import_module("synovia.io.toml").FORMAT.read(path).skeleton
        skeleton.source = path
        return skeleton


def _models() -> dict[str, Traversable]:
    """Return the files of the bundled models, by name."""
    entries = files("synovia").joinpath("models").iterdir()
    return {entry.name.removesuffix(".toml"): entry for entry in entries if entry.name.endswith(".toml")}
