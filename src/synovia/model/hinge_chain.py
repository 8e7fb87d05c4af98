"""Calls of the kernels for serial chains of hinges over whole clips (``kernels.tree.hinges``)."""

from __future__ import annotations

import numpy as np

from synovia.kernels.layout import size_of_all
from synovia.model.geometry import Array


class HingeClip:
    """A chain of hinges with targets in each frame of a clip.

    Args:
        base: World frames of the joint above the chain, (T, 12).
        joints: Joints of the chain, (m, 16), see ``kernels.tree.hinges``.
        terms: Terms of the cost, (K, 7), see ``kernels.tree.hinges``.
        wanted: Targets of the terms, (K, T, 9).
        settings: Weight of squared steps, length of the chain, then lower and upper limits of the hinges.
    """

    def __init__(self, base: Array, joints: Array, terms: Array, wanted: Array, settings: Array) -> None:
        """Allocate the memory of the kernels."""
        from synovia.kernels.tree import hinges

        self._args, self._settings = (base, joints, terms, wanted), settings
        m, n, count, rows = len(joints), len(settings) // 2 - 1, len(base), 3 * len(terms)
        sizes: dict[str, int] = dict(zip(hinges.SIZES, (m, n, rows, count, n * n, count * n, n + 1), strict=True))
        self._memory, self._rows = np.zeros(size_of_all(hinges.TABLES, sizes)), rows

    def errors(self, x: Array) -> tuple[Array, Array]:
        """Return residuals (T, rows) at angles (T, n), and the derivatives of the terms' values, (T, rows, n)."""
        from synovia.kernels.tree.hinges import hinge_terms

        count, n = x.shape
        out = np.empty((count, self._rows * (1 + n)))
        hinge_terms(*self._args, self._settings, self._memory, np.ascontiguousarray(x), out)
        return out[:, : self._rows], out[:, self._rows :].reshape(count, self._rows, n)

    def follow(self, x: Array, bounds: Array) -> tuple[Array, float]:
        """Return the angles (T, n) of least cost from a start within the limits, and their cost.

        Args:
            x: The start, (T, n).
            bounds: Largest steps, (T - 1, n), radians.
        """
        from synovia.kernels.tree.hinges import follow_hinges

        out = np.array(x, order="C")
        follow_hinges(*self._args, np.ascontiguousarray(bounds), self._settings, self._memory, out)
        return out, float(self._memory[0])
