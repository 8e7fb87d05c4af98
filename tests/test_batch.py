"""Rows in blocks: blocks fit the time that rows take, and of all refused rows the first is told."""

import threading

import numpy as np
import pytest

from synovia.ik.interrupts import Watch
from synovia.ik.parallel import Batch, Pace, Packed, Workers, run_rows


def solve(count, threads, kernel, progress=None):
    """Solve rows by a kernel made of Python: ``kernel(numbers of the rows)``; return code and answers."""
    out = np.zeros((count, 1))
    targets = np.arange(float(count))[:, None] * np.ones((1, 3))

    def entry(ints, floats, targets, starts, out, scratch, warm, first):
        out[:, 0] = targets[:, 0] + 1
        return kernel(targets[:, 0])

    none = np.zeros(0)
    batch = Batch(targets, none[None], out)
    packed = Packed(entry, np.zeros(0, np.int32), none)
    code = run_rows(packed, batch, 8, lambda *_: None, Workers(threads, Watch()), progress)
    return code, out[:, 0]


def test_blocks_are_as_long_as_rows_take():
    pace = Pace(10_000, 16, 1, 4000)
    first, last = pace.next()
    assert (first, last) == (0, 16)
    pace.learn(16, 1e-5)
    assert pace.next() == (16, 80), "fast rows: larger, in steps"
    pace.learn(64, 6.4)
    assert pace.next() == (80, 81), "a tenth of a second a row: one by one"
    pace.learn(1, 50.0)
    assert pace.next() == (81, 82)
    for _ in range(9):
        pace.learn(pace._size, 1e-6)
    assert pace.next() == (82, 4082), "no larger than the largest"
    pace.stop()
    assert pace.next() is None
    assert Pace(0, 16, 1, 1).next() is None


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 17, 3000])
def test_every_row_is_solved_once_and_told(threads, count):
    told = []
    code, out = solve(count, threads, lambda rows: 0, lambda *done: told.append(done))
    assert code == 0
    assert (out == np.arange(count) + 1).all()
    done = [one for one, _ in told]
    assert done == sorted(set(done))
    assert not told or told[-1] == (count, count)


@pytest.mark.parametrize("threads", [1, 4])
def test_of_refused_rows_the_first_is_told(threads):
    bad = (700, 731, 1900)

    def kernel(rows):
        inside = [int(row - rows[0]) for row in bad if rows[0] <= row <= rows[-1]]
        return -1 - 3 * inside[0] if inside else 0

    code, out = solve(3000, threads, kernel)
    assert code == -1 - 3 * 700
    assert (out[:700] > 0).all()


def test_what_waits_is_dropped_when_the_caller_stops():
    begun = []

    def stop(done, of):
        raise KeyboardInterrupt

    def kernel(rows):
        begun.append(len(rows))
        return 0

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        solve(100_000, 2, kernel, stop)
    assert sum(begun) < 10_000
    assert threading.active_count() == before
