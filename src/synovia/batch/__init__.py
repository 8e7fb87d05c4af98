"""Many problems at once: blocks of rows on all cores, with the same bits as one by one."""

from synovia.batch.run import run_rows

__all__ = ["run_rows"]
