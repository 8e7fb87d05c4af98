"""Where the texts of a picture go, so that none covers another and few cover what is drawn."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]  # left, top, right, bottom, pixels

# Right, left, above, below first: people read a label there without looking for it.
_ANGLES: Final = (0, 180, 90, -90, 30, -30, 150, -150, 60, -60, 120, -120)
_STEPS: Final = (0.0, 0.8, 1.8, 3.0, 4.6, 6.5)  # how far out, in heights of the text
_HIDES: Final = 7.0  # cost of a label that lies wholly on bones; 1 is one text height away


class Placer:
    """Finds room for one text after another.

    Args:
        size: Width and height of the picture, pixels.
        covered: How much of each pixel is drawn on, 0 to 1, (h, w).
        margin: Least distance from the picture's edge, pixels.
    """

    def __init__(self, size: tuple[int, int], covered: NDArray[np.float32], margin: float) -> None:
        """Sum up what is covered, so that any box costs the same to look up."""
        self._size, self._margin = size, margin
        self._taken: list[Box] = []
        self._sums = np.zeros((covered.shape[0] + 1, covered.shape[1] + 1))
        self._sums[1:, 1:] = covered.cumsum(0, dtype=np.float64).cumsum(1)

    def take(self, box: Box) -> None:
        """Keep texts out of a box."""
        self._taken.append(box)

    def place(self, anchor: tuple[float, float], size: tuple[float, float], gap: float, *, needed: bool) -> Box | None:
        """Return the best box for a text near a point, and keep later ones out of it.

        Args:
            anchor: The point that the text belongs to, pixels.
            size: Width and height of the text, pixels.
            gap: Distance from the point to leave free.
            needed: Whether to take the least bad box where none is free; else there is no text.
        """
        best: Box | None = None
        least = math.inf
        for order, (step, angle) in enumerate((s, a) for s in _STEPS for a in _ANGLES):
            box = self._inside(_beside(anchor, size, gap + step * size[1], math.radians(angle)))
            overlap = sum(_overlap(box, other) for other in self._taken)
            moved = math.hypot(
                max(box[0] - anchor[0], anchor[0] - box[2], 0.0), max(box[1] - anchor[1], anchor[1] - box[3], 0.0)
            )
            if overlap > 0.0 and not needed:
                continue
            cost = 100.0 * overlap / (size[0] * size[1]) + _HIDES * self._cover(box)
            cost += max(moved - gap, 0.0) / size[1] + 0.01 * order
            if overlap > 0.0:
                cost += 20.0
            if cost < least:
                best, least = box, cost
        if best is not None and (needed or least < _HIDES + _STEPS[-1]):
            self.take(best)
            return best
        return None

    def _inside(self, box: Box) -> Box:
        """Return the box moved into the picture."""
        width, height = box[2] - box[0], box[3] - box[1]
        left = min(max(box[0], self._margin), max(self._size[0] - self._margin - width, 0.0))
        top = min(max(box[1], self._margin), max(self._size[1] - self._margin - height, 0.0))
        return left, top, left + width, top + height

    def _cover(self, box: Box) -> float:
        """Return the part of a box that is drawn on, 0 to 1."""
        rows, columns = self._sums.shape
        x0, x1 = (min(max(int(v), 0), columns - 1) for v in (box[0], box[2]))
        y0, y1 = (min(max(int(v), 0), rows - 1) for v in (box[1], box[3]))
        if x1 <= x0 or y1 <= y0:
            return 0.0
        s = self._sums
        return float(s[y1, x1] - s[y0, x1] - s[y1, x0] + s[y0, x0]) / ((x1 - x0) * (y1 - y0))


def _beside(anchor: tuple[float, float], size: tuple[float, float], gap: float, angle: float) -> Box:
    """Return the box of a size whose nearest side is ``gap`` from a point, in a direction."""
    dx, dy = math.cos(angle), -math.sin(angle)
    x = anchor[0] + dx * gap + math.copysign(1.0, dx) * size[0] / 2.0 * min(1.0, 1.5 * abs(dx))
    y = anchor[1] + dy * gap + math.copysign(1.0, dy) * size[1] / 2.0 * min(1.0, 1.5 * abs(dy))
    return x - size[0] / 2.0, y - size[1] / 2.0, x + size[0] / 2.0, y + size[1] / 2.0


def _overlap(a: Box, b: Box) -> float:
    """Return the area that two boxes share, square pixels."""
    return max(min(a[2], b[2]) - max(a[0], b[0]), 0.0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0.0)
