"""Pack the tables of a problem into the two flat arrays that a kernel reads, in the order of ``layout``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.kernels import layout

_TABLES: Final = {table.name: table for table in layout.PROBLEM}
_INTS, _FLOATS, _WORK = 0, 1, 2  # the arrays that hold tables


def _place(table: layout.Table, array: int) -> tuple[str, int, int, int, tuple[int, ...]]:
    """Return a table's name, array, index of its start in the head, fixed size, and indices of its variable sizes."""
    counted = tuple(layout.COUNTS[size] for size in table.shape if isinstance(size, str))
    fixed = math.prod(size for size in table.shape if not isinstance(size, str))
    return table.name, array, layout.STARTS[table.name], fixed, counted


_PLACES: Final = (
    *(_place(table, _INTS if table.integers else _FLOATS) for table in layout.PROBLEM),
    *(_place(table, _WORK) for table in layout.WORK),
)


def packed(
    numbers: Mapping[int, int], reals: Mapping[int, float], tables: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return a problem as two arrays: a head, the starts of all tables, then the tables.

    Args:
        numbers: Integers of the head, by their indices; missing ones are 0.
        reals: Float values of the head of the other array, by their indices.
        tables: Tables by their names in ``layout``; those without rows may be left out.
    """
    head = [0] * layout.INT_TABLES
    for place, value in numbers.items():
        head[place] = value
    ends = [layout.INT_TABLES, layout.FLOAT_HEAD, 0]
    filled: list[tuple[int, int, int, NDArray[Any]]] = []
    for name, array, start, size, counted in _PLACES:
        head[start] = ends[array]
        for place in counted:
            size *= head[place]
        if size and name in tables:
            filled.append((array, ends[array], ends[array] + size, tables[name]))
        ends[array] += size
    head[layout.WORK_SIZE] = ends[_WORK]
    ints, floats = np.empty(ends[_INTS], np.int32), np.empty(ends[_FLOATS])
    ints[: layout.INT_TABLES] = head
    for place, value in reals.items():
        floats[place] = value
    both = ints, floats
    for array, first, end, values in filled:
        both[array][first:end] = values.ravel()
    return both


def table_of(ints: NDArray[np.int32], floats: NDArray[np.float64], name: str) -> NDArray[Any]:
    """Return the view of a table of a packed problem, by its name in ``layout``."""
    table = _TABLES[name]
    start = int(ints[layout.STARTS[name]])
    shape = [int(ints[layout.COUNTS[size]]) if isinstance(size, str) else size for size in table.shape]
    return (ints if table.integers else floats)[start : start + math.prod(shape)].reshape(shape)
