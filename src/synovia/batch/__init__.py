"""Many problems at once: blocks of rows on all cores, with the same bits as one by one."""

from synovia.batch.run import Progress, checked_threads, in_lanes, run_rows

__all__ = ["Progress", "checked_threads", "in_lanes", "run_rows"]
