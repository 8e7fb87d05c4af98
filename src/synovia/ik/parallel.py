"""Solve batches of problems in blocks on several threads; kernels release the interpreter lock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.arguments import Progress
from synovia.errors import InputError, UnsupportedError
from synovia.ik.interrupts import Watch, new_scratch
from synovia.ik.obstacles import Places
from synovia.kernels.layout import COLD, LEFT, MISSED, N_LEAVES, REFUSED, ROWS_AT, STATUS
from synovia.model.geometry import Array
from synovia.problem import Reduced
from synovia.solver import Solver
from synovia.solver.base import Kernel

_BLOCKS_PER_THREAD: Final = 8  # many small blocks, so that a slow core does not delay the end of the batch
_SMALLEST_BLOCK: Final = 16  # rows; for fewer rows, submitting a block would take a large share of the time
_SIMD_BLOCK: Final = 2048  # rows; large, since at the end of a block SIMD lanes are idle for the time of about 200 rows
_SIMD_LEAST: Final = 512  # rows: with SIMD, a further thread is used only if each thread gets this many
_LARGEST_BLOCK: Final = 8192  # rows; bounded, so that long runs report progress
_SECONDS: Final = 0.1  # seconds per block; progress is reported between blocks
_GROWTH: Final = 4  # a block is at most this factor larger than the block before
_LISTEN: Final = 0.1  # seconds between checks for Ctrl-C on Windows, where waiting cannot be interrupted
_AHEAD: Final = 2  # submitted blocks per thread: one that runs and one in the queue


class Packed(NamedTuple):
    """A packed problem with the kernel that solves it.

    Args:
        kernel: Entry point of a solver.
        ints: Integers of the problem.
        floats: Floats of the problem.
        simd: Whether the kernel solves several rows at once and needs large blocks.
        places: Obstacle places in each problem; None for the places in ``floats``.
    """

    kernel: Kernel
    ints: NDArray[np.int32]
    floats: Array
    simd: bool = False
    places: Places | None = None

    def of(self, some: Any) -> Packed:
        """Return the packed problem for selected rows of a batch, given by a slice or an array of indices."""
        return self if self.places is None else self._replace(places=self.places[some])


class Batch(NamedTuple):
    """A batch: rows with one problem each.

    Args:
        targets: (B, goals, 17).
        starts: (B, nq), or (1, nq) for one start for all.
        out: (B, m) rows of results; changed in place.
    """

    targets: Array
    starts: Array
    out: Array


class Workers(NamedTuple):
    """Threads that solve a batch.

    Args:
        threads: Number of threads.
        watch: Stops the kernels at its deadline, or if the calling thread is interrupted.
    """

    threads: int
    watch: Watch


class Pace:
    """Divides rows into blocks that take about a tenth of a second, by the measured time of earlier blocks."""

    def __init__(self, count: int, begin: int, least: int, most: int) -> None:
        """Begin at the first row.

        Args:
            count: Number of rows.
            begin: Number of rows of a block, until a time is measured.
            least: Number of rows of the smallest block.
            most: Number of rows of the largest block.
        """
        self._count, self._size, self._least, self._most = count, min(begin, most), least, most
        self._given = 0

    def next(self) -> tuple[int, int] | None:
        """Return (first row of the next block, row after its last row); None after the last block."""
        first = self._given
        if first >= self._count:
            return None
        self._given = min(first + self._size, self._count)
        return first, self._given

    def learn(self, rows: int, seconds: float) -> None:
        """Adapt the block size to the time that a block took."""
        fitting = int(_SECONDS * rows / max(seconds, 1e-9))
        self._size = min(max(fitting, self._least), _GROWTH * rows, self._most)

    def stop(self) -> None:
        """Return no further blocks."""
        self._given = self._count


def checked_threads(threads: int | None) -> int:
    """Return the number of threads; for None, the number of cores.

    Raises:
        InputError: If the number is not an integer of at least 1.
    """
    if threads is None:
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError("threads", value=threads, expected="a whole number from 1")
    return int(threads)


def simd_kernel(choice: Any, solver: Solver, reduced: Reduced, kernel: Kernel) -> Kernel:
    """Return a kernel that solves with SIMD. It passes rows that it cannot finish to the kernel without SIMD.

    Args:
        choice: True, or ``"single"`` for single precision; results are verified in double precision.
        solver: The settings.
        reduced: The problem.
        kernel: Entry point of the same method without SIMD.

    Raises:
        InputError: If the choice is another value.
        UnsupportedError: If the method has no SIMD kernel for the problem.
    """
    if choice is not True and choice != "single":
        raise InputError("simd", value=choice, expected="False, True (double precision) or 'single'")
    lanes = solver.simd_kernel(reduced)
    if lanes is None:
        raise UnsupportedError(
            f"{solver.name} has no SIMD kernel for this problem",
            hint="SIMD supports lm and dls with one goal on an arm of at most 16 joints, and fabrik with one position "
            "goal on a chain of three or more balls without limits",
        )
    from synovia.kernels.proposals.propose import first_proposals

    size = solver.simd_size(reduced)
    precision = np.float32 if choice == "single" else np.float64

    def solve(
        ints: NDArray[np.int32],
        floats: Array,
        targets: Array,
        starts: Array,
        out: Array,
        scratch: Array,
        warm: bool,
        first: int,
    ) -> int:
        """Solve a batch of problems; see ``kernels.search.multistart``."""
        if ints[N_LEAVES]:
            starts = np.repeat(starts, len(targets), axis=0) if len(starts) == 1 else starts.copy()
            first_proposals(ints, floats, targets, starts)
        left = lanes(ints, floats, targets, starts, out, scratch, np.empty(size, precision))
        if left == 0:
            return len(out) << ROWS_AT
        rows = np.flatnonzero(out[:, STATUS] == LEFT) if left > 0 else np.array([REFUSED - left])
        some = np.empty((len(rows), out.shape[1]))
        code = kernel(ints, floats, targets[rows], starts if len(starts) == 1 else starts[rows], some, scratch, COLD, 0)
        if left < 0:
            return code - targets.shape[1] * int(rows[0])
        out[rows] = some
        return len(out) << ROWS_AT | code & MISSED

    return solve


def run_rows(
    packed: Packed,
    batch: Batch,
    scratch_size: int,
    polish: Callable[[Array, Array, Array, bool, Array], None],
    workers: Workers,
    progress: Progress | None = None,
) -> int:
    """Solve a batch of problems, one in each row.

    Args:
        packed: The problem and its kernel.
        batch: The rows.
        scratch_size: Scratch memory of one thread, in float64.
        polish: Polishes and classifies missed rows, given their starts, the rows, scratch memory, whether to search
            globally, and the floats of the problem.
        workers: The threads.
        progress: Called in this thread with (rows done, number of rows).

    Returns:
        0, or the negative code of the first rejected target: REFUSED - (goal + goals * row).
    """
    kernel, ints, floats, simd, places = packed
    targets, starts, out = batch
    threads, watch = workers
    count = len(out)
    sizes = (_SIMD_BLOCK, _SIMD_LEAST) if simd else (_SMALLEST_BLOCK, _SMALLEST_BLOCK)
    block = _block_size(count, threads, *sizes)
    pace = Pace(count, block, _SIMD_LEAST, block) if simd else Pace(count, _SMALLEST_BLOCK, 1, block)

    def solve_block(first: int, last: int) -> tuple[int, int, float]:
        """Return 0 or the code of the first rejected target, the number of rows, and the time in seconds."""
        began = time.perf_counter()
        scratch = new_scratch(scratch_size)
        refused = 0
        watch.begin(scratch)
        try:
            for a, b, numbers in ((first, last, floats),) if places is None else places.each(floats, first, last):
                own_starts = starts if len(starts) == 1 else starts[a:b]
                code = kernel(ints, numbers, targets[a:b], own_starts, out[a:b], scratch, COLD, 0)
                if code < 0:
                    refused = code - targets.shape[1] * a
                    break
                if code & MISSED:
                    polish(own_starts, out[a:b], scratch, True, numbers)
        finally:
            watch.end(scratch)
        return refused, last - first, time.perf_counter() - began

    refused = done = 0
    with closing(_run_blocks(solve_block, pace, 1 if block >= count else threads, watch)) as ended:
        for code, rows, seconds in ended:
            if code < 0:  # no new blocks start, but running ones finish, so that the first rejected row is reported
                refused = max(code, refused) if refused else code
                pace.stop()
            pace.learn(rows, seconds)
            done += rows
            if progress is not None and not refused:
                progress(done, count)
    return refused


def _run_blocks(
    solve: Callable[[int, int], tuple[int, int, float]], pace: Pace, threads: int, watch: Watch
) -> Generator[tuple[int, int, float]]:
    """Yield the result of each block when it ends. Closing the generator, or Ctrl-C, stops all blocks."""
    if threads == 1:
        while (place := pace.next()) is not None:
            yield solve(*place)
        return
    pool = ThreadPoolExecutor(threads)
    running: set[Future[tuple[int, int, float]]] = set()
    try:
        while True:
            while len(running) < _AHEAD * threads and (place := pace.next()) is not None:
                running.add(pool.submit(solve, *place))
            if not running:
                return
            ended, running = wait(running, _LISTEN, return_when=FIRST_COMPLETED)
            for one in ended:
                yield one.result()
    except BaseException:
        watch.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _block_size(count: int, threads: int, smallest: int, least: int) -> int:
    """Return the number of rows of a block. If there are enough rows, all threads get the same number of blocks.

    Args:
        count: Number of rows.
        threads: Number of threads.
        smallest: Smallest number of rows of a block if each thread gets several blocks.
        least: Smallest number of rows of a block if each thread gets one block.
    """
    if count == 0:
        return 1
    blocks = max(1, min(_BLOCKS_PER_THREAD * threads, count // smallest), min(threads, count // least))
    blocks = max(blocks, -(-count // _LARGEST_BLOCK))
    if blocks > 1:
        blocks = -(-blocks // threads) * threads
    return -(-count // blocks)
