"""How far joint values are beyond their limits."""

import numpy as np

from synovia.kernels.tree.tables import excesses


def beyond_limits(tables, q):
    """Return the largest excess of a limit in rows of q: radians or length units, 0 if all values are inside.

    Args:
        tables: The tables of a skeleton, or a packed problem.
        q: Joint values, of one pose or of many.
    """
    rows = np.ascontiguousarray(np.atleast_2d(q), float)
    out = np.zeros((len(rows), len(tables.variables)))
    for row, beyond in zip(rows, out, strict=True):
        excesses(tables.variables, tables.limits, row, beyond)
    return float(out.max(initial=0.0))
