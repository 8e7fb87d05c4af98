"""The obstacles of a page, which the user can move."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.model.geometry import Array, as_numbers, rigid
from synovia.viewer.editing.history import History
from synovia.viewer.editing.state import State

_FAR: Final = 1e4  # body sizes; largest distance of an obstacle from the origin along each axis


class MovedObstacles:
    """Moves the obstacles of a page.

    Args:
        state: The state of the page.
        history: The history of the page.
    """

    def __init__(self, state: State, history: History) -> None:
        """Store state and history."""
        self._state, self._history = state, history

    def place(self, name: str) -> Array:
        """Return the position of an obstacle, (3,), length units; the origin if no obstacle has this name."""
        world = self._state.world
        return np.zeros(3) if world is None or name not in world else world[name].transform[:3, 3].copy()

    def move(self, name: str, place: Array) -> None:
        """Move an obstacle; clearance goals then keep clear of its new position.

        Args:
            name: Name of the obstacle.
            place: New position, (3,), length units.

        Raises:
            InputError: If the position is not finite.
        """
        state = self._state
        place = np.clip(as_numbers(place, (3,), "position of an obstacle"), -_FAR * state.size, _FAR * state.size)
        with state.lock:
            world = state.world
            if world is None or name not in world:
                return
            self._history.remember(("obstacle", name))
            state.world = moved = world.moved({name: rigid(place, world[name].transform[:3, :3])})
            for editor in state.editors:
                own = editor.values.get("world")
                if own is not None and set(own.names) == set(moved.names):
                    editor.values = {**editor.values, "world": moved}
            state.touch(structure=True)
