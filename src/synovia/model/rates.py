"""Find the usual frame rate that a file has rounded, from a frame time or from times of frames.

If a file writes 30 frames per second as a frame time of 0.0333333 s, its rate is 30.00003, and keys at that rate lie
between the frames of other programs. A usual rate is used if it agrees with all values of the file, up to rounding.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.model.geometry import Array

_USUAL: Final = (
    10.0, 12.0, 12.5, 15.0, 20.0, 24.0, 25.0, 30.0, 40.0, 48.0, 50.0, 60.0, 72.0, 75.0, 80.0, 90.0, 96.0, 100.0, 120.0,
    144.0, 150.0, 160.0, 180.0, 200.0, 240.0, 250.0, 300.0, 360.0, 400.0, 480.0, 500.0, 600.0, 960.0, 1000.0,
)  # fmt: skip
_NTSC: Final = tuple(rate / 1.001 for rate in (24.0, 30.0, 48.0, 60.0, 120.0))
# NTSC rates rounded to three decimals, as in many files; these are kept
_PLAIN: Final = tuple(round(rate, 3) for rate in _NTSC)
_COARSE: Final = 0.02  # largest relative rounding of a frame time that determines a rate
_PERIOD: Final = 0.002  # relative rounding: a frame time with few digits and coarser rounding counts as exact
_NARROW: Final = 0.005  # frames per second: an integer rate within a narrower interval is not a coincidence
_DIGITS: Final = 9  # number of digits; frame times with more digits count as exact
_EXACT: Final = 1e-12  # relative rounding of double precision, with a margin
# largest rounding of float64, in units of the last digit, with which digits can be counted
_NOISE: Final = 0.01
_FLOAT32: Final = 2.0**-23  # relative rounding of single precision
_SAME: Final = 1e-8  # smaller relative differences of rates are not reported
_NUMBER: Final = re.compile(r"[-+]?(\d*)\.?(\d*)(?:[eE]([-+]?\d+))?", re.ASCII)


_SLOWEST, _FASTEST = 1e-6, 1e6  # frames per second: a frame in eleven days, and in a microsecond
RATES: Final = f"{_SLOWEST:g} to {_FASTEST:g} frames per second"


def is_rate(fps: float) -> bool:
    """Return whether a value is a plausible frame rate. Other values result from wrong units or damaged files."""
    return _SLOWEST <= fps <= _FASTEST


class Rate(NamedTuple):
    """The frame rate of a file.

    Args:
        fps: Frames per second.
        notes: A sentence if the file rounded a usual rate.
    """

    fps: float
    notes: tuple[str, ...] = ()


def rate_of_step(text: str) -> Rate:
    """Return the rate of a frame time (seconds, above 0) as written in a file."""
    step = float(text)
    match = _NUMBER.fullmatch(text)
    own = Rate(1.0 / step)
    if match is None:
        return own
    whole, part, power = match.groups()
    digits = len((whole + part).lstrip("0"))
    unit = 10.0 ** (int(power or 0) - len(part)) if digits <= _DIGITS else _EXACT * step
    return own if unit > 2.0 * _COARSE * step else _rounded(own.fps, unit) or own


def usual_rate(fps: float, slack: float | None = None) -> Rate:
    """Return the usual rate, such as 30, if ``fps`` or its frame time is a rounding of it; else ``fps``.

    Args:
        fps: Frames per second; an implausible value is returned unchanged.
        slack: Relative rounding of the rate; None for that of its own precision, float32 or float64.
    """
    if not 0.0 < fps < np.inf:
        return Rate(fps)
    if slack is None:
        slack = _FLOAT32 if float(np.float32(min(fps, 1e30))) == fps else _EXACT
    step = 1.0 / fps
    if near := _rounded(fps, slack * step):
        return Rate(near.fps)
    if any(abs(plain / fps - 1.0) <= slack for plain in (*_PLAIN, float(f"{fps:.4g}"))):
        return Rate(fps)
    for digits in range(3, _DIGITS):
        short = f"{step:.{digits - 1}e}"
        if abs(float(short) - step) <= slack * step:
            unit = 10.0 ** (int(short.partition("e")[2]) - digits + 1)
            return (_rounded(fps, unit) if unit <= 2.0 * _PERIOD * step else None) or Rate(fps)
    return Rate(fps)


def rate_of_times(times: Array, frames: NDArray[np.intp] | None = None) -> Rate:
    """Return the mean rate of increasing times, or the usual rate that agrees with all of them.

    Args:
        times: Times of at least two frames, (T,), seconds.
        frames: Indices of the frames, (T,); None for 0, 1, 2, ...
    """
    numbers = np.arange(len(times)) if frames is None else frames - frames[0]
    passed = times - times[0]
    length, largest = float(passed[-1]), float(np.abs(times).max())
    own = float(numbers[-1]) / length
    unit, decimal = _unit_of(times)
    if unit <= _COARSE * length:
        for rate in (*_USUAL, *_NTSC):
            if abs(rate / own - 1.0) <= _COARSE and np.abs(passed - numbers / rate).max() <= unit:
                return _taken(rate, own) if decimal else Rate(rate)
    return usual_rate(own, max(_EXACT, 2.0**-51 * largest / length))


def _unit_of(times: Array) -> tuple[float, bool]:
    """Return the rounding of times, and whether it is that of decimal digits, not that of float32 or float64."""
    largest = float(np.abs(times).max())
    passed = times - times[0]
    for digits in range(_DIGITS):
        noise = 2.0**-50 * largest * 10.0**digits
        if noise <= _NOISE and np.abs(passed * 10.0**digits - np.rint(passed * 10.0**digits)).max() <= noise:
            return 10.0**-digits, True
    return (_FLOAT32 if np.array_equal(times, times.astype(np.float32)) else 2.0**-51) * largest, False


def _rounded(own: float, unit: float) -> Rate | None:
    """Return the usual rate whose frame time, rounded or truncated to a unit, equals that of ``own``; else None."""
    step = 1.0 / own
    least, most = 1.0 / (step + unit), 1.0 / (step - 0.5 * unit)
    whole = (float(round(own)),) if most - least <= _NARROW and own >= 1.0 else ()
    for rates in (_USUAL, whole, _NTSC):
        if fitting := [rate for rate in rates if least < rate <= most]:
            return _taken(min(fitting, key=lambda rate: abs(1.0 / rate - step)), own)
    return None


def _taken(rate: float, own: float) -> Rate:
    """Return a usual rate with a note if it differs from ``own``, the rate of the file."""
    if abs(rate / own - 1.0) <= _SAME:
        return Rate(rate)
    return Rate(rate, (f"Frames are {1.0 / own:.9g} s apart in the file: rounded to {rate:.5g} per second.",))
