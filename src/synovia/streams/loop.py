"""The loop of live retargeting: samples in, ticks at a steady rate, poses out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from synovia.model import Skeleton
from synovia.retargeting import LiveReport, LiveRetarget
from synovia.streams.base import Sink, Source

_WAIT: Final = 0.005  # seconds between two looks for a source
_SWITCH: Final = 5e-4  # seconds after which other threads, such as those of a page, let the loop in
_BEHIND: Final = 0.25  # seconds: a loop that is later restarts instead of hurrying


@dataclass(frozen=True)
class Run:
    """What a loop did.

    Args:
        report: What has passed through the body; None if the source never showed one.
        ticks: Number of ticks.
        late: How many of them came later than a tick.
        dropped: What the source left out, by the reason.
        interrupted: What ended it before its time, such as Ctrl+C; None if nothing did.
    """

    report: LiveReport | None
    ticks: int
    late: int
    dropped: dict[str, int]
    interrupted: KeyboardInterrupt | None = None


def play(
    source: Source,
    make: Callable[[Skeleton], LiveRetarget],
    sinks: Callable[[Skeleton], Sequence[Sink]],
    *,
    seconds: float | None = None,
    paced: bool = True,
) -> Run:
    """Retarget what a source sends, until it ends, or a sink has no reader; Ctrl+C ends it too, as the answer says.

    Args:
        source: The source; it is closed at the end.
        make: Returns the body that follows, for the skeleton of the source.
        sinks: Returns the sinks for the skeleton that follows; they are closed at the end.
        seconds: Seconds after which it ends; None for no end.
        paced: Whether ticks come at their rate; if not, there is one for each sample, as fast as they go.

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
    switch = sys.getswitchinterval()
    sys.setswitchinterval(min(switch, _SWITCH))
    try:
        while not source.ended and (seconds is None or time.monotonic() - began < seconds):
            samples = source.poll()
            if live is None:
                if source.skeleton is None:
                    time.sleep(_WAIT)
                    continue
                live = make(source.skeleton)
                due = time.monotonic()
            if not paced and not samples:
                if not source.ended:
                    time.sleep(_WAIT)
                continue
            if paced:
                for sample in samples:
                    live.receive(sample.pose, sample.time)
            for sample in [None] if paced else samples:
                pose = live.step(None if sample is None else sample.pose)
                ticks += 1
                if pose.skeleton is not opened:
                    for sink in open_sinks:
                        sink.close()
                    opened, open_sinks = pose.skeleton, sinks(pose.skeleton)
                for sink in open_sinks:
                    sink.send(pose, ticks / live.rate)
            if paced:
                due += 1.0 / live.rate
                wait = due - time.monotonic()
                if wait > 0.0:
                    time.sleep(wait)
                else:
                    late += 1
                    if wait < -_BEHIND:
                        due = time.monotonic()
    except KeyboardInterrupt as stop:
        interrupted = stop
    except BrokenPipeError:
        pass  # as `synovia live ... --to - | head` does
    finally:
        sys.setswitchinterval(switch)
        source.close()
        for sink in open_sinks:
            sink.close()
    report = None if live is None else live.report()
    if report is not None:
        report = replace(report, unseen=report.unseen or getattr(source, "unseen", {}))
    return Run(report, ticks, late, dict(source.dropped), interrupted)
