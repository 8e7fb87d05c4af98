"""Maps of what the last joints of a chain reach, and proofs by them; see ``kernels.proofs.maps``."""

from __future__ import annotations

import contextlib
import io
import math
import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synovia.errors import SynoviaError
from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import PARALLEL, Chain, inwards
from synovia.ik.proofs.search import Memory, levels
from synovia.io.base import write_bytes
from synovia.io.npz import read_arrays, texts_of
from synovia.model.geometry import Array

_VERSION: Final = 2  # version of map files
_CELLS: Final = 180  # cells from the point of the axis to the largest distance
_COLUMNS: Final = 8 * round(math.pi * _CELLS / 8)  # cells of half a turn
_THROUGH: Final = 1e-6  # fraction of the scale: axes that miss the point by less pass through it; as in ``check``
_TAIL: Final = 3  # number of joints after the axis that move the tip; more would take minutes to paint
_HEAD: Final = 3  # largest number of joints before the axis; the search halves all of them
_ON_AXIS: Final = 1e-5  # fraction of the scale: a tip nearer to the last axis counts as on it
_SAMPLES: Final = 400_000
_MAPS: Final[dict[bytes, ReachMap]] = {}
_KEPT: Final = 16  # largest number of maps that are kept
MOST_PAINTED: Final = 25_000_000  # boxes for the maps of one call: four to five seconds
_PORTION: Final = 50_000  # boxes between two readings of the clock: about ten milliseconds
MOST_BY_MAP: Final = 20_000  # most tokens of a proof by a map


class ReachMap:
    """The cells that the tip may touch while the joints after the axis k move.

    Attributes:
        chain: The chain.
        axis: The hinge k.
        cell: Size of a cell in distance, length units.
        height: Height of the point P on the axis of k, length units; where the axis before it passes.
        cells: (rows, columns / 8) uint8, a bit for each cell, 1 if painted (the tip may touch it); row by distance
            from P, column by angle from the axis.
        whole: Whether all cells that the tip may touch are painted, now or by an earlier process, which kept its map.
        spent: Number of boxes that were searched for painting.
    """

    def __init__(self, chain: Chain, axis: int) -> None:
        """Begin without painted cells."""
        self.chain, self.axis = chain, axis
        self._back = inwards(chain, axis)
        self.height = _height(self._back.fixed[0])
        links = chain.fixed[axis + 1 :, :, 3].copy()
        links[0, 2] -= self.height
        slides = chain.slides[axis + 1 :]
        radius = float(np.linalg.norm(links, axis=1).sum())
        radius += float(np.maximum(abs(chain.low), abs(chain.high))[axis + 1 :][slides].sum())
        self.cell = radius / _CELLS
        self._margin = 1e-9 * chain.scale
        self._cells = np.zeros((_CELLS + 2, _COLUMNS), np.int32)
        self._memory = Memory([(chain.fixed, chain.kinds)], _from(chain.low, axis), _from(chain.high, axis))
        self._sums = np.zeros((self._cells.shape[0] + 1, self._cells.shape[1] + 1), np.int32)
        self.whole, self.spent = False, 0
        self._lock = threading.Lock()  # threads share the boxes that are left to paint
        self._rests, self._error = _around(self._back, self.height, _THROUGH * chain.scale)
        self._file = folder() / f"{chain_key(chain).hex()}.npz"
        self._read()

    @cached_property
    def cells(self) -> NDArray[np.uint8]:
        """The painted cells, once all are painted."""
        return np.packbits(self._cells.astype(np.bool_), axis=1)

    def paint(self, watch: Watch, most: int = MOST_PAINTED) -> bool:
        """Begin or continue to paint, until the deadline or ``most`` boxes in total; return whether all is painted."""
        from synovia.kernels.proofs import boxes, maps

        m, plane = self._memory, self._plane(self._margin, _PORTION, self.axis + 1.0)
        while not self.whole and self.spent < most and not watch.passed:
            with self._lock:
                if self.whole:
                    break
                if not self._sums.any():
                    self._sample()
                code = maps.paint(m.fixed, m.kinds, plane, m.stack, m.memory, self._cells, self._sums, m.state)
                self._sums[1:, 1:] = self._cells.cumsum(0).cumsum(1)
                self.spent += _PORTION
                self.whole = code == boxes.PROVED
                if self.whole:
                    self._keep()
        return self.whole

    def _read(self) -> None:
        """Read the map from its file, if the file exists and is complete and undamaged."""
        try:
            found = read_arrays(self._file, ("cells", "spent", "digest"), "a map of what a chain reaches")
            cells, spent = found["cells"], found["spent"]
            known = texts_of(found["digest"]) == [_digest(cells, spent)]
            bits = np.unpackbits(cells, axis=1)
            known &= bits.shape == self._cells.shape
            boxes = int(spent)
        except (SynoviaError, OSError, KeyError, ValueError, TypeError):
            return
        if known and boxes > 0:
            self._cells[...], self.spent, self.whole = bits, boxes, True
            self._sums[1:, 1:] = self._cells.cumsum(0).cumsum(1)

    def _keep(self) -> None:
        """Write the map to its file, if the folder can be written."""
        cells, spent, data = self.cells, np.array(self.spent), io.BytesIO()
        np.savez(data, cells=cells, spent=spent, digest=np.array(_digest(cells, spent)))
        with contextlib.suppress(OSError, SynoviaError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self._file, data.getvalue(), force=True)

    def _sample(self) -> None:
        """Paint cells that random poses touch, so that large boxes need no halving."""
        chain, rng = self.chain, np.random.default_rng(0)
        p = np.tile(chain.fixed[-1, :, 3], (_SAMPLES, 1))
        for i in range(len(chain.slides) - 1, self.axis, -1):
            q = rng.uniform(chain.low[i], chain.high[i], _SAMPLES)
            if chain.slides[i]:
                p[:, 2] += q
            else:
                c, s = np.cos(q), np.sin(q)
                p[:, 0], p[:, 1] = c * p[:, 0] - s * p[:, 1], s * p[:, 0] + c * p[:, 1]
            p = p @ chain.fixed[i, :, :3].T + chain.fixed[i, :, 3]
        p[:, 2] -= self.height
        row, angle = np.linalg.norm(p, axis=1) / self.cell, np.arctan2(np.hypot(p[:, 0], p[:, 1]), p[:, 2])
        column = np.minimum((angle * (_COLUMNS / math.pi)).astype(np.int64), _COLUMNS - 1)
        self._cells[row.astype(np.int64), column] = 1
        self._sums[1:, 1:] = self._cells.cumsum(0).cumsum(1)

    def _plane(self, *rest: float) -> Array:
        """Return the plane of the kernels, see ``kernels.proofs.maps``."""
        return np.array([self.cell, _COLUMNS / math.pi, self.height, *rest])

    def excludes(
        self, target: Array, near: float, most: int = MOST_BY_MAP, more: Sequence[float] = (), short: int = 0
    ) -> tuple[float, NDArray[np.int32]] | None:
        """Return a distance from a target at which the tip stays, and the tokens of a proof; None without one.

        Args:
            target: The target (3,).
            near: The least distance.
            most: Largest number of tokens for this distance.
            more: Larger distances, increasing; the largest of them that has a short proof is returned.
            short: Largest number of tokens for these.
        """
        from synovia.kernels.proofs import boxes, maps

        if not self.whole:
            return None
        back = self._back
        fixed = back.fixed.copy()
        fixed[-1, :, 3] += fixed[-1, :, :3] @ target
        m = Memory([(fixed, back.kinds), (fixed, self._rests)], back.low, back.high)
        box, empty = m.stack[0].copy(), m.state.copy()

        def proved(distance: float, most: int) -> NDArray[np.int32] | None:
            m.stack[0], m.state[:] = box, empty
            plane = self._plane(distance + self._margin + self._error, most)
            tokens = np.empty((most, 2), np.int32)
            code = maps.search_map(m.fixed, m.kinds, plane, self._sums, m.stack, m.memory, tokens, m.state)
            return tokens[: int(m.state[boxes.TOKENS])] if code == boxes.PROVED else None

        tokens = proved(near, most)
        if tokens is None:
            return None
        first, last = 0, len(more) if len(tokens) < short else 0
        while first < last:
            middle = (first + last) // 2
            found = proved(more[middle], short)
            if found is None:
                last = middle
            else:
                near, tokens, first = more[middle], found, middle + 1
        return near, levels(tokens)


@lru_cache(_KEPT)
def map_of(chain: Chain) -> ReachMap | None:
    """Return the map of a chain, painted or not; maps of the last chains are kept. None if a map gains nothing."""
    axis = axis_of(chain)
    if axis is None:
        return None
    key = chain_key(chain)
    if key not in _MAPS:
        if len(_MAPS) >= _KEPT:
            _MAPS.pop(next(iter(_MAPS)))
        _MAPS[key] = ReachMap(chain, axis)
    return _MAPS[key]


def folder() -> Path:
    """Return the folder of the files of maps: in the cache folder of Synovia."""
    from synovia.kernels.compiler.kept import cache_root

    return cache_root() / "maps"


def chain_key(chain: Chain) -> bytes:
    """Return the hash of all that the map of a chain depends on."""
    parts = (np.array([_VERSION, _CELLS, _TAIL]), chain.fixed, chain.slides, chain.low, chain.high)
    return blake2b(b"".join(one.tobytes() for one in parts), digest_size=16).digest()


def _digest(cells: NDArray[Any], spent: NDArray[Any]) -> str:
    """Return the hash of the content of a file."""
    return blake2b(cells.tobytes() + spent.tobytes(), digest_size=16).hexdigest()


def _height(frame: Array) -> float:
    """Return the height on a z axis of the point that is nearest to the z axis of a frame (3, 4)."""
    d, o = frame[:, 2], frame[:, 3]
    across = float(d[0] * d[0] + d[1] * d[1])
    return 0.0 if across < PARALLEL else float(o[2] - d[2] * (o[0] * d[0] + o[1] * d[1]) / across)


def _around(back: Chain, height: float, most: float) -> tuple[Array, float]:
    """Return the kinds of joints in which the first hinges rest, as long as their axes pass through the point P.

    Also return a bound of the error in distances from P, because axes may miss it by ``most``.
    """
    point, error, kinds = np.array([0.0, 0.0, height]), 0.0, back.kinds
    for i, frame in enumerate(back.fixed[:-1]):
        point = frame[:, :3].T @ (point - frame[:, 3])
        away = math.hypot(point[0], point[1])
        if back.slides[i] or away > most:
            break
        kinds[i], error = -1.0, error + 2.0 * away
    return kinds, error


def axis_of(chain: Chain) -> int | None:
    """Return the hinge for a map: three joints that move the tip come after it; None if there is none near the root."""
    n = len(chain.slides)
    if not n:
        return None
    last = n  # skip hinges whose axes pass through the tip: they do not move it
    if not chain.slides[-1] and math.hypot(*chain.fixed[n, :2, 3]) < _ON_AXIS * chain.scale:
        last -= 1
    axis = last - 1 - _TAIL
    return axis if 0 <= axis <= _HEAD and not chain.slides[axis] else None


def _from(limits: Array, axis: int) -> Array:
    """Return limits of the joints after an axis; the others are at 0."""
    return np.where(np.arange(len(limits)) > axis, limits, 0.0)
