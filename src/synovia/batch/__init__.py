"""Many problems at once: blocks of rows on all cores, with the same bits as one by one."""

from synovia.batch.run import Progress, checked_threads, in_lanes, run_rows
from synovia.batch.watch import Watch, clear, deadline_of, has_ended, new_scratch, raise_signal, set_deadline

__all__ = [
    "Progress",
    "Watch",
    "checked_threads",
    "clear",
    "deadline_of",
    "has_ended",
    "in_lanes",
    "new_scratch",
    "raise_signal",
    "run_rows",
    "set_deadline",
]
