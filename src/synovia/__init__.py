"""Synovia: inverse kinematics for anything with joints.

Describe goals once, and solve them for any skeleton with any algorithm:

    import synovia as sy

    arm = sy.bundled("arm7")
    solution = sy.solve(arm, sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
    print(solution)

Names are imported when they are first used, so that ``import synovia`` is fast. ``__init__.pyi`` lists all names. Less
common names are in modules such as ``sy.plots``, ``sy.results`` and ``sy.errors``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from synovia import lazy, notebook, planting

_homes = lazy.declared(Path(__file__).with_suffix(".pyi"))
_load = lazy.importer(__name__, Path(__file__).parent, _homes)
__all__ = [name for name, home in _homes.items() if home != __name__]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("synovia")
    return _load(name)


def __dir__() -> list[str]:
    """Return the public names."""
    return [*_homes, "__version__"]


notebook.draw_with(lambda subject, size: _load("picture")(subject, size=size))  # imported at the first picture
planting.plant_with(lambda motion, progress: _load("foot_lock")(motion, progress=progress).motion)  # in a higher layer
