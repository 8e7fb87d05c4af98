"""Clips as sources, played at their frame rate; and CSV files as sinks."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from synovia.io.base import check_writable
from synovia.io.csvfile import columns
from synovia.model import Pose, Skeleton
from synovia.model.motion import Motion
from synovia.streams.base import Sample

_AT_ONCE: Final = 256


class ClipSource:
    """A source that plays a clip.

    Args:
        motion: The clip.
        clock: Returns the time in seconds; None to deliver one frame per call, independent of time.
        repeat: Whether the clip repeats at its end.

    Attributes:
        rate: Frames per second.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> clip = sy.Motion(body, [body.rest_q] * 2, 30.0)
        >>> source = sy.streams.ClipSource(clip, clock=None)
        >>> [len(source.poll()) for _ in range(3)], source.ended
        ([1, 1, 0], True)
    """

    def __init__(
        self, motion: Motion, clock: Callable[[], float] | None = time.monotonic, *, repeat: bool = False
    ) -> None:
        """Start before the first frame."""
        self.skeleton: Skeleton | None = motion.skeleton
        self.rate = motion.fps
        self.ended = False
        self.dropped: Counter[str] = Counter()
        self._motion, self._clock, self._repeat = motion, clock, repeat
        self._frame, self._began = 0, None

    def poll(self) -> list[Sample]:
        """Return the frames whose time has come since the last call."""
        motion, fps = self._motion, self._motion.fps
        if self._clock is None:
            last = self._frame
        else:
            now = self._clock()
            began: float = now if self._began is None else self._began
            self._began = began
            last = int((now - began) * fps + 1e-9)
        out: list[Sample] = []
        while self._frame <= last and len(out) < _AT_ONCE:
            k = self._frame % len(motion) if self._repeat else self._frame
            if k >= len(motion):
                self.ended = True
                break
            out.append(Sample(np.array(motion.q[k]), self._frame / fps))
            self._frame += 1
        return out

    def close(self) -> None:
        """Mark the clip as ended."""
        self.ended = True


class CsvSink:
    """Write joint values to a CSV file, which ``sy.formats.read_csv`` reads; each line is written at once.

    Args:
        skeleton: The body to write.
        path: The file.
        force: Whether an existing file may be replaced.

    Raises:
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """

    def __init__(self, skeleton: Skeleton, path: str | Path, *, force: bool = False) -> None:
        """Open the file and write the names of its columns."""
        check_writable(Path(path), force=force)
        self._file = Path(path).open("w", newline="", encoding="utf-8", buffering=1)  # noqa: SIM115 - open until close
        self._rows = csv.writer(self._file)
        self._rows.writerow(["time", *columns(skeleton)])

    def send(self, pose: Pose, time: float) -> None:
        """Write a line with the time and the joint values."""
        self._rows.writerow([time, *pose.q.tolist()])

    def close(self) -> None:
        """Close the file."""
        self._file.close()
