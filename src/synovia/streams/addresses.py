"""Open sources and sinks by name: ``walk.bvh``, ``vmc://127.0.0.1:39539``, ``udp://127.0.0.1:39540``, ``-``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from synovia.errors import InputError
from synovia.model import Skeleton
from synovia.streams.base import Sink, Source
from synovia.streams.clip import ClipSource, CsvSink
from synovia.streams.lines import JsonSink, JsonSource
from synovia.streams.vmc import PORT, VmcSink, VmcSource

_ADDRESS: Final = re.compile(r"(?P<scheme>[a-z]+)://(?P<host>\[[0-9a-f:.]+\]|[^/:\s]*)(?::(?P<port>[0-9]{1,5}))?/?")
_PORTS: Final = {"vmc": PORT, "udp": 39540}
_EXPECTED: Final = "vmc://HOST:PORT, udp://HOST:PORT (lines of JSON), - (standard streams) or a file"


def _parsed(text: str, what: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an address; None for a file.

    Raises:
        InputError: If the text is an address with an unknown form or scheme.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None:
        if "://" in text:
            raise InputError(what, value=text, expected=_EXPECTED)
        return None
    scheme = found["scheme"]
    if scheme not in _PORTS:
        raise InputError(what, value=text, expected=_EXPECTED)
    return scheme, found["host"].strip("[]") or "127.0.0.1", int(found["port"] or _PORTS[scheme])


def open_source(
    text: str, skeleton: Skeleton | None = None, *, remote: bool = False, paced: bool = True, repeat: bool = False
) -> Source:
    """Return the source of an address or a file.

    Args:
        text: ``vmc://HOST:PORT``, ``udp://HOST:PORT`` or ``-`` for lines of JSON, or the file of a clip.
        skeleton: The body that lines of JSON describe with joint values or positions; None for landmarks of MediaPipe.
        remote: Whether the source may listen on an address that is reachable from other machines.
        paced: Whether a clip or standard input plays at its own rate; otherwise samples come as fast as they are read.
        repeat: Whether a clip starts again at its end.

    Raises:
        InputError: If the text is no source.
        FileError: If a file cannot be read.
    """
    if text == "-":
        return JsonSource(skeleton, None) if paced else JsonSource(skeleton, None, clock=None)
    address = _parsed(text, "source")
    if address is None:
        from synovia.io import load_motion

        motion = load_motion(text) if skeleton is None else load_motion(text, skeleton=skeleton)
        return ClipSource(motion, repeat=repeat) if paced else ClipSource(motion, None, repeat=repeat)
    scheme, host, port = address
    if scheme == "vmc":
        return VmcSource(host, port, remote=remote)
    return JsonSource(skeleton, host, port, remote=remote)


def open_sink(text: str, skeleton: Skeleton, *, remote: bool = False, force: bool = False) -> Sink:
    """Return the sink of an address or a file.

    Args:
        text: ``vmc://HOST:PORT``, ``udp://HOST:PORT`` or ``-`` for lines of JSON, or a CSV file.
        skeleton: The body to send.
        remote: Whether the sink may send to other machines.
        force: Whether an existing file may be replaced.

    Raises:
        InputError: If the text is no sink, or the address is that of another machine and ``remote`` is not set.
        FileError: If the file exists and ``force`` is not set, or it cannot be written.
    """
    if text == "-":
        return JsonSink(skeleton, None)
    address = _parsed(text, "sink")
    if address is None:
        if Path(text).suffix.lower() != ".csv":
            raise InputError(
                "sink", value=text, expected=f"{_EXPECTED} that ends in .csv",
                hint="the live page is --to page, in Python synovia.viewer.PageSink",
            )  # fmt: skip
        return CsvSink(skeleton, text, force=force)
    scheme, host, port = address
    if scheme == "vmc":
        return VmcSink(skeleton, host, port, remote=remote)
    return JsonSink(skeleton, host, port, remote=remote)
