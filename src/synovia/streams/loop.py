"""The loop of live retargeting: it reads samples, advances in ticks at a steady rate, and sends poses."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from synovia.model import Skeleton
from synovia.retargeting import LiveRetarget
from synovia.servo.tick import Tick
from synovia.streams.base import Sink, Source
from synovia.text import Report

_WAIT: Final = 0.005  # seconds between two polls of the source
_SWITCH: Final = 5e-4  # seconds; thread switch interval, so that other threads do not delay the loop
_BEHIND: Final = 0.25  # seconds: a loop that is late by more restarts its schedule instead of catching up


@dataclass(frozen=True)
class Run:
    """Result of a loop.

    Args:
        report: Report of the live retargeting; None if the source sent no poses.
        ticks: Number of ticks.
        late: Number of ticks that took longer than one period.
        dropped: Number of messages that the source dropped, by reason.
        interrupted: The exception of Ctrl+C if it ended the loop; else None.
    """

    report: Report | None
    ticks: int
    late: int
    dropped: dict[str, int]
    interrupted: KeyboardInterrupt | None = None


def play(
    source: Source,
    make: Callable[[Skeleton | None], LiveRetarget],
    sinks: Callable[[Skeleton], Sequence[Sink]],
    *,
    seconds: float | None = None,
    paced: bool = True,
) -> Run:
    """Retarget the poses of a source until the source ends, a sink has no reader, or Ctrl+C is pressed.

    Args:
        source: The source; closed at the end.
        make: Returns the live retargeting for the skeleton of the source; it is called with None for landmarks.
        sinks: Returns the sinks for the target skeleton; they are closed at the end.
        seconds: Seconds after which the loop ends; None for no limit.
        paced: Whether ticks run at their rate; otherwise there is one tick per sample, without waiting.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid").with_root("free")
        >>> source = sy.streams.ClipSource(sy.Motion(body, [body.rest_q] * 5, 30.0), clock=None)
        >>> make = lambda skeleton: sy.LiveRetarget(skeleton, sy.bundled("humanoid"), rate=30, learn=0)
        >>> sy.streams.play(source, make, lambda skeleton: [], paced=False).ticks
        5
    """
    began = time.monotonic()
    live: LiveRetarget | None = None
    open_sinks: Sequence[Sink] = ()
    opened: Skeleton | None = None
    ticks = late = 0
    due = began
    interrupted: KeyboardInterrupt | None = None

    def send(pose: Tick) -> None:
        """Send the pose of a tick to the sinks; if its skeleton has changed, open new sinks first."""
        nonlocal ticks, opened, open_sinks
        ticks += 1
        if pose.skeleton is not opened:
            for sink in open_sinks:
                sink.close()
            opened, open_sinks = pose.skeleton, sinks(pose.skeleton)
        for sink in open_sinks:
            sink.send(pose, ticks / rate)

    rate = 1.0
    switch = sys.getswitchinterval()
    sys.setswitchinterval(min(switch, _SWITCH))
    try:
        while not source.ended and (seconds is None or time.monotonic() - began < seconds):
            samples = source.poll()
            if live is None:
                if source.skeleton is None and not samples:
                    time.sleep(_WAIT)
                    continue
                live = make(source.skeleton)
                rate = live.rate
                due = time.monotonic()
            if not paced and not samples:
                if not source.ended:
                    time.sleep(_WAIT)
                continue
            if paced:
                for sample in samples:
                    live.receive(sample.pose, sample.time)
            for sample in [None] if paced else samples:
                send(live.step(None if sample is None else sample.pose))
            if paced:
                due += 1.0 / live.rate
                wait = due - time.monotonic()
                if wait > 0.0:
                    time.sleep(wait)
                else:
                    late += 1
                    if wait < -_BEHIND:
                        due = time.monotonic()
        for pose in [] if live is None else live.finish():
            send(pose)
    except KeyboardInterrupt as stop:
        interrupted = stop
    except BrokenPipeError:
        pass  # the reader has ended, as in `synovia live ... --to - | head`
    finally:
        sys.setswitchinterval(switch)
        source.close()
        for sink in open_sinks:
            sink.close()
    report = None if live is None else live.report()
    return Run(report, ticks, late, dict(source.dropped), interrupted)
