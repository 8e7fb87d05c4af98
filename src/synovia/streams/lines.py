"""Poses as lines of JSON: over UDP, one line per datagram, or over standard streams.

    {"t": 1.25, "q": [0.1, ...]}             joint values in the order of q
    {"t": 1.25, "points": [[x, y, z], ...]}  places of all joints, or of 33 landmarks of MediaPipe,
                                             or of these and 21 of each hand, each with its visibility or not

``t`` is the time stamp in seconds; a line without it applies at once. Written lines have ``q``, and ``status`` if the
pose has one. The first written line also has ``columns``, the names of the values in ``q``.
"""

from __future__ import annotations

import json
import os
import selectors
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

import numpy as np

from synovia.io.csvfile import columns
from synovia.model import Pose, Skeleton
from synovia.model.geometry import LONGEST, Array, kinds_in
from synovia.retargeting.live.landmarks import COUNT, WITH_HANDS
from synovia.streams.base import LARGEST, Datagrams, Sample, Sender

_LINES: Final = 256  # if this many samples wait, standard input is not read further
_OFF: Final = 5.0  # seconds: a time stamp that differs by more from the expected time is from another clock


class JsonSource:
    """Receive poses as lines of JSON.

    Args:
        skeleton: The body that moves; None for landmarks: 33 of the body, or 33 and 21 of each hand.
        host: The address to listen on; None for standard input.
        port: The port; 0 for any free port, see ``address``.
        remote: Whether the address may be reachable from other machines.
        clock: Returns the time in seconds. Samples from standard input wait until their time stamps, so that a piped
            recording plays at its own rate; None to deliver them as they arrive.

    Raises:
        InputError: If the address is reachable from other machines, and ``remote`` is not set.
        FileError: If the port cannot be used.

    Example:
        >>> import synovia as sy
        >>> source = sy.streams.JsonSource(sy.bundled("humanoid"), port=0)
        >>> source.poll()
        []
        >>> source.close()
    """

    def __init__(
        self,
        skeleton: Skeleton | None = None,
        host: str | None = "127.0.0.1",
        port: int = 39540,
        *,
        remote: bool = False,
        clock: Callable[[], float] | None = time.monotonic,
    ) -> None:
        """Open the socket, or standard input."""
        self._socket = None if host is None else Datagrams(host, port, remote=remote)
        self.address = None if self._socket is None else self._socket.address
        self.skeleton = skeleton
        self._size: int | None = None  # number of landmarks in a pose
        self.ended = False
        self.dropped: Counter[str] = Counter()
        self._rest, self._closed = b"", False  # incomplete last line of standard input, and whether the input has ended
        self._clock = clock
        self._waiting: deque[Sample] = deque()
        self._start: float | None = None  # clock time at which the time stamps are 0

    def poll(self) -> list[Sample]:
        """Return the samples that have arrived."""
        if self._socket is not None:
            found = [self.take(line) for line in self._socket.read()]
            return [one for one in found if one is not None]
        waiting = self._waiting
        if not self._closed and len(waiting) < _LINES:
            found = [self.take(line) for line in self._read()]
            waiting.extend(one for one in found if one is not None)
        out: list[Sample] = []
        while waiting and self._is_due(waiting[0]):
            out.append(waiting.popleft())
        self.ended = self._closed and not waiting
        return out

    def _is_due(self, sample: Sample) -> bool:
        """Return whether the time of a sample has come."""
        if self._clock is None or sample.time is None:
            return True
        now = self._clock()
        if self._start is None or abs(now - self._start - sample.time) > _OFF:  # another clock: synchronize again
            self._start = now - sample.time
        return now - self._start >= sample.time

    def _read(self) -> list[bytes]:
        """Read the complete lines that standard input holds, without waiting."""
        stream = sys.stdin.fileno()
        with selectors.DefaultSelector() as ready:
            try:
                ready.register(stream, selectors.EVENT_READ)
                waits = not ready.select(0.0)
            except PermissionError:  # a file is always ready
                waits = False
        if waits:
            return []
        data = os.read(stream, LARGEST)
        if not data:
            self._closed = True
            return [self._rest]
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LARGEST:
            self.dropped["too long"] += 1
            self._rest = b""
        return lines

    def take(self, line: bytes) -> Sample | None:
        """Return the sample in a line. Count a line that is not usable, and return None."""
        if not line.strip():
            return None
        try:
            content: object = json.loads(line)
        except (ValueError, RecursionError):
            self.dropped["not readable"] += 1
            return None
        given = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        when = given.get("t")
        fine = when is None or (type(when) in (int, float) and abs(when) < 1e15)
        values = _array(given.get("q", given.get("points")))
        if not fine or values is None:
            self.dropped["not readable"] += 1
            return None
        return self._sample(values, None if when is None else float(when))

    def _sample(self, values: Array, time: float | None) -> Sample | None:
        """Return an array of numbers as a sample; None if the array fits neither the body nor landmarks."""
        if self.skeleton is None and len(values) in (COUNT, WITH_HANDS) and values.shape[1:] in ((3,), (4,)):
            self._size = self._size or len(values)
            if self._size == len(values):
                return Sample(values, time)
        if self.skeleton is None or values.shape not in ((self.skeleton.nq,), (len(self.skeleton), 3)):
            self.dropped["of another size"] += 1
            return None
        if values.ndim == 1 and not self._unit(values):
            self.dropped["no rotation"] += 1
            return None
        return Sample(values, time)

    def _unit(self, q: Array) -> bool:
        """Return whether joint values are valid. Values that are not finite are valid: they mean a missing sample."""
        body = self.skeleton
        return body is None or not np.isfinite(q).all() or body.validate(q, np.empty(body.nq)) >= 0

    def close(self) -> None:
        """Close the socket."""
        self.ended = True
        if self._socket is not None:
            self._socket.close()


def _array(values: object) -> Array | None:
    """Return JSON numbers as an array; None for other content. NaN and infinity are kept, and mean a missing sample."""
    try:
        if not kinds_in(values) <= {float, int}:
            return None
        out = np.array(values, np.float64)
    except (ValueError, OverflowError):
        return None
    sizes = np.abs(out[np.isfinite(out)])
    return out if out.ndim in (1, 2) and out.size and not (sizes > LONGEST).any() else None


class JsonSink:
    """Write poses as lines of JSON.

    Args:
        skeleton: The body to write.
        host: The address; None for standard output.
        port: The port.
        remote: Whether the address may be that of another machine.
        write: Called with each line instead of sending it; None to send lines.

    Raises:
        InputError: If the address is that of another machine, and ``remote`` is not set.

    Example:
        >>> import synovia as sy
        >>> body = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)])
        >>> lines = []
        >>> sy.streams.JsonSink(body, write=lines.append).send(body.rest_pose(), 0.5)
        >>> lines[0].startswith('{"t": 0.5, "q": [')
        True
    """

    def __init__(
        self,
        skeleton: Skeleton,
        host: str | None = "127.0.0.1",
        port: int = 39540,
        *,
        remote: bool = False,
        write: Callable[[str], object] | None = None,
    ) -> None:
        """Open the socket."""
        self._columns: list[str] | None = columns(skeleton)
        self._sender = Sender(host, port, remote=remote) if write is None and host is not None else None
        self._write = write

    def send(self, pose: Pose, time: float) -> None:
        """Write the line of a pose.

        Raises:
            BrokenPipeError: If the program that reads standard output has closed it.
        """
        content: dict[str, Any] = {"t": time, "q": pose.q.tolist()}
        if (status := getattr(pose, "status", None)) is not None:
            content["status"] = status.name
        if self._columns is not None:
            content["columns"], self._columns = self._columns, None
        line = json.dumps(content)
        if self._write is not None:
            self._write(line)
        elif self._sender is not None:
            self._sender.send(line.encode())
        else:
            try:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                with suppress(OSError, ValueError):  # ValueError: stdout is not a real file
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes again when it exits
                raise

    def close(self) -> None:
        """Close the socket."""
        if self._sender is not None:
            self._sender.close()
