"""Rows of answers: of problems that know nothing of each other, and of frames that each start from the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synovia.ik.interrupts import Watch, new_scratch
from synovia.ik.parallel import Progress, run_rows
from synovia.ik.solution import mark_cut, rows_of
from synovia.model.geometry import Array
from synovia.tracking.frames import Ints, follow_frames

if TYPE_CHECKING:
    from synovia.facade import IK
    from synovia.ik.target_writer import Targets


def kept_targets(ik: IK, rows: Array) -> Array:
    """Return the targets that rows of answers (T, ...) hold for each goal, (T, goals, 16)."""
    return rows[:, ik.places.stop + 2 * len(ik.goals) :].reshape(len(rows), len(ik.goals), 16)


def rows_apart(
    ik: IK,
    table: Array,
    first: Array,
    progress: Progress | None,
    *,
    targets: Targets,
    threads: int,
    watch: Watch,
    kernel: Any = None,
    lanes: bool = False,
) -> Array:
    """Return the answers of problems one by one, on several threads.

    Args:
        ik: The problem.
        table: Targets, (B, goals, 17).
        first: Starts, (B, nq) or (1, nq).
        progress: Called with (problems done, all).
        targets: What the table was made from, for the message of a refusal.
        threads: Number of threads.
        watch: When to stop.
        kernel: Another kernel than that of the problem.
        lanes: Whether it solves many rows at once.
    """
    inner: Any = ik  # of its own family
    out = rows_of(ik, len(table))
    problem = (kernel or inner._kernel, inner._ints, inner._floats, table, first, out, inner._scratch_size)
    code = run_rows(*problem, inner._conclude, threads, lanes=lanes, progress=progress, watch=watch)
    if code < 0:
        inner._door.refuse(code, targets)
    return out


def rows_in_turn(ik: IK, table: Array, first: Array, progress: Progress, *, targets: Targets, watch: Watch) -> Array:
    """Return the answers of frames, each started from the one before; see ``rows_apart``."""
    inner: Any = ik
    out = rows_of(ik, len(table))
    scratch = new_scratch(inner._scratch_size)

    def run(ints: Ints, known: int, frame: int, last: int) -> tuple[int, bool]:
        """Solve frames; see ``frames.Run``."""
        part = slice(known, last)
        code = inner._kernel(ints, inner._floats, table[part], first, out[part], scratch, True, frame - known)
        if code < 0:
            inner._door.refuse(code - len(ik.goals) * known, targets)
        return known + (code >> 1), bool(code & 1)

    def conclude(frame: int) -> None:
        """Settle a miss."""
        start = out[frame - 1 : frame, ik.places].copy() if frame else first
        inner._conclude(start, out[frame : frame + 1], scratch, frame == 0)

    with watch.over(scratch):
        follow_frames(out, run, conclude, inner._ints, not ik.solver.ranks, progress)
    mark_cut(out)
    return out
