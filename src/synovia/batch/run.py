"""Rows of problems in blocks over a pool of threads: the kernels hold no lock, so threads run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synovia.geometry import Array

_BLOCKS_PER_THREAD: Final = 8  # small enough that a busy core does not hold up the end
_SMALLEST_BLOCK: Final = 16  # rows; handing a block over costs as much as a few solves


def run_rows(
    kernel: Callable[..., int],
    ints: NDArray[np.int32],
    floats: Array,
    targets: Array,
    starts: Array,
    out: Array,
    scratch_size: int,
    judge: Callable[[Array, Array], None],
    threads: int | None,
) -> int:
    """Solve one problem a row, each from its own start.

    Args:
        kernel: Entry point of a solver.
        ints: Packed problem.
        floats: Packed problem.
        targets: (B, goals, 17).
        starts: (B, nq), or (1, nq) for one start for all.
        out: (B, m) rows of the answer.
        scratch_size: Scratch memory of one thread, in float64.
        judge: Settles rows of the answer that missed and tells why, with scratch memory.
        threads: Number of threads, None for all cores.

    Returns:
        0, or the negative code of the first refused target: -1 - (goal + goals * row).
    """
    count = len(out)
    if count == 0:
        return 0
    workers = threads if threads is not None else (os.cpu_count() or 1)
    block = max(_SMALLEST_BLOCK, -(-count // (workers * _BLOCKS_PER_THREAD)))
    places = range(0, count, block)

    def solve_block(first: int) -> int:
        last = min(first + block, count)
        own_starts = starts if len(starts) == 1 else starts[first:last]
        scratch = np.empty(scratch_size)
        code = kernel(ints, floats, targets[first:last], own_starts, out[first:last], scratch, False, 0)
        if code > 0 and code % 2:
            judge(out[first:last], scratch)
        return code - targets.shape[1] * first if code < 0 else 0

    if workers == 1 or len(places) == 1:
        codes = [solve_block(first) for first in places]
    else:
        with ThreadPoolExecutor(min(workers, len(places))) as pool:
            codes = list(pool.map(solve_block, places))
    return max((code for code in codes if code < 0), default=0)
