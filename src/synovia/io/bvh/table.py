"""Read the motion part of a BVH file as a table of numbers; a frame may take several lines."""

from __future__ import annotations

import re
import warnings
from typing import Final

import numpy as np

from synovia.io.bvh.text import LARGEST, NUMBER, Source
from synovia.model.geometry import Array

_MOST_STILL: Final = 1_000_000  # largest number of frames without channels; such frames take no bytes in the file
_FRAMES: Final = re.compile(r"\s*+frames\s*+:?\s*+([^\s:]+)", re.ASCII | re.IGNORECASE)
_COUNT: Final = re.compile(r"-?\d{1,15}", re.ASCII)  # some recorders write -1 for an unknown count
_FRAME_TIME: Final = re.compile(r"\s*+frame\s*+time\s*+:?\s*+([^\s:]+)", re.ASCII | re.IGNORECASE)


def read_table(source: Source, width: int) -> tuple[Array, str, tuple[str, ...]]:
    """Read the values of all frames, (T, width), the frame time in seconds as text, and notes.

    If there are more or fewer complete frames than announced, all existing frames are read, as in Blender, with a note.

    Args:
        source: The file, read up to MOTION.
        width: Number of channels of the hierarchy.

    Raises:
        FormatError: If a header line is missing, a frame is incomplete, or a value is not finite.
    """
    match = _FRAMES.match(source.text, source.at)
    count = match.group(1) if match else ""
    source.word()
    if match is None or not _COUNT.fullmatch(count):
        at = match.start(1) if match else None
        source.fail(
            "number of frames is missing or cannot be used", at=at, value=count or None, expected="Frames: a count"
        )
    frames = int(count)
    source.at = match.end()
    match = _FRAME_TIME.match(source.text, source.at)
    if match is None:
        source.word()
        source.fail("frame time is missing", expected="Frame Time: seconds")
    source.at = match.start(1)
    word = match.group(1)
    if not NUMBER.fullmatch(word):
        source.fail("Frame Time is not a number", at=source.at, value=word, expected="seconds")
    source.begin, source.at = match.span(1)
    if width == 0 and frames > _MOST_STILL:
        source.fail("too many frames without channels", value=frames, expected=f"at most {_MOST_STILL}")
    table = _numbers(source, max(frames, 0), width)
    cut = ", so it may be cut off" if len(table) < frames else ""
    note = f"The file announces {frames} frames and has {len(table)}{cut}; these were read."
    return table, word, () if len(table) == frames else (note,)


def _numbers(source: Source, frames: int, width: int) -> Array:
    """Parse the rest of the file as values (T, width)."""
    begin = source.at
    body = source.text[begin:]
    values = _parsed(source, body, begin)
    if values.size != frames * width and (not values.size or not width or values.size % width):
        extra = values.size > frames * width
        at = _token(body, frames * width) if extra else len(body.rstrip())
        whole, rest = divmod(values.size, width) if width else (0, values.size)
        found = f"{whole} frames" + (f" and {rest} numbers" if rest else "") if width else f"{rest} numbers"
        source.fail(
            f"the motion has {'more' if extra else 'fewer'} numbers than announced: {values.size} ({found})",
            at=begin + at,
            expected=f"{frames * width} ({frames} frames of {width} channels)",
        )
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        k = int(np.argmax(bad))
        source.fail(
            f"value of channel {k % width + 1} in frame {k // width + 1} is not finite or too large",
            at=begin + _token(body, k),
            value=float(values[k]),
            expected="a finite number",
        )
    return values.reshape(-1 if width else frames, width)


def _parsed(source: Source, body: str, begin: int) -> Array:
    """Parse all numbers of a text with one fast call; if this fails, search for the wrong word."""
    if not body or body.isspace():
        return np.zeros(0)  # np.fromstring reads white space as a single number
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # NumPy before 2.3 reports invalid words in this way
            return np.fromstring(body, sep=" ")
    except (ValueError, DeprecationWarning):
        pass
    for match in re.finditer(r"\S+", body, re.ASCII):
        if not NUMBER.fullmatch(match.group()):
            source.fail(
                "unexpected word in the motion", at=begin + match.start(), value=match.group(), expected="a number"
            )
    return np.array([float(word) for word in re.findall(r"\S+", body, re.ASCII)])


def _token(body: str, k: int) -> int:
    """Return the position of word k in a text."""
    for i, match in enumerate(re.finditer(r"\S+", body, re.ASCII)):
        if i == k:
            return match.start()
    return len(body)
