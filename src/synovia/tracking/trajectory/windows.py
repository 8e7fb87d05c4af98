"""Long trajectories in windows, so that memory does not grow with the length of a clip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from synovia.model.geometry import Array
from synovia.tracking.trajectory.model import Model
from synovia.tracking.trajectory.solve import Terms, solve_trajectory

WINDOW: Final = 600  # frames that are solved at once
LEAD: Final = 120  # of them, those that the next window solves again, knowing what follows
Progress = Callable[[float], None]


def solve_in_windows(
    model: Model,
    terms: Terms,
    q: Array,
    *,
    shares: Sequence[float] = (1.0,),
    steps: int,
    enough: float,
    progress: Progress | None = None,
) -> Array:
    """Return joint values (T, nq) of least cost near q; each window begins with what the one before has solved.

    Args:
        model: The problem of each frame.
        terms: What is asked for.
        q: Where to start, (T, nq), inside the limits.
        shares: Shares of the weights of the goals, one after the other: hard terms that come in at once are a wall.
        steps: Most steps of one window and share.
        enough: Fraction of the cost that a step must gain for another to follow.
        progress: Called with the share of the work that is done.
    """
    q = q.copy()
    count = len(q)
    first = 0
    while True:
        last = min(first + WINDOW, count)
        part = terms.window(first, last, fixed=0 if first == 0 else 2)
        new = first if first == 0 else first + LEAD  # what comes before was told of already
        for k, share in enumerate(shares):
            low, high = (new + (last - new) * (k + i) / len(shares) for i in (0, 1))
            report = None if progress is None else part_of(progress, low / count, high / count)
            q[first:last] = solve_trajectory(
                model, part.scaled(share), q[first:last], steps=steps, enough=enough, progress=report
            )
        if last == count:
            return q
        first = last - LEAD


def part_of(progress: Progress, low: float, high: float) -> Progress:
    """Return the report of a part of some work, from one share of the whole to another."""
    return lambda done: progress(low + done * (high - low))
