"""Read users' limits of velocity and acceleration: one value, values by joint, or a share of the file's limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import numpy as np

from synovia.errors import InputError
from synovia.model.geometry import Array, as_numbers
from synovia.model.skeleton import Skeleton

FILE: Final = "file"
_SHARE: Final = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*")


def by_joint(skeleton: Skeleton, given: Any, what: str) -> Array:
    """Return the limit of each joint, (n,); infinite without a limit.

    Args:
        skeleton: The skeleton.
        given: One value, or values by joint, in radians or length units per second (or per s²); ``"file"`` for the
            velocities of the file, or a share of them, such as ``"50%"``.
        what: Quantity, for messages, such as ``"velocity"``.

    Raises:
        InputError: If a limit is not positive, a joint is named twice, or the file has no such limits.
        UnknownNameError: If a joint does not exist.
    """
    most = np.full(len(skeleton), np.inf)
    if isinstance(given, str):
        share = share_of(what, given)
        own = {row: joint.velocity for row, joint in enumerate(skeleton.joints) if joint.velocity is not None}
        if not own and given != FILE:
            expected = f"a number, or numbers by joint: {skeleton.name} has no velocity limits"
            raise InputError(what, value=given, expected=expected)
        most[list(own)] = share * np.array(list(own.values()), dtype=np.float64)
    elif isinstance(given, Mapping):
        for row, value in skeleton.by_row(cast("Mapping[Any, Any]", given), what).items():
            most[row] = _above_zero(value, f"{what} of {skeleton.joint_names[row]!r}")
    else:
        most[:] = _above_zero(given, what)
    return most


def share_of(what: str, given: str) -> float:
    """Return a share of the limits of the file: 1 for ``"file"``, 0.3 for ``"30%"``.

    Raises:
        InputError: If ``given`` is not a share, or ``what`` is not the velocity, since files have no other limits of
            motion.
    """
    if what != "velocity":
        raise InputError(
            what, value=given, expected="a number, or numbers by joint", hint="files have limits of velocities only"
        )
    match = _SHARE.fullmatch("100%" if given == FILE else given)
    if match is None or not 0.0 < float(match[1]) <= 100.0:
        expected = "a number, numbers by joint, 'file', or a share of the file's, such as '50%'"
        raise InputError(what, value=given, expected=expected)
    return float(match[1]) / 100.0


def _above_zero(value: Any, what: str) -> float:
    """Check and return a number above 0.

    Raises:
        InputError: If the value is not a number above 0.
    """
    number = float(as_numbers(value, (), what))
    if number <= 0.0:
        raise InputError(what, value=number, expected="radians or length units per second above 0")
    return number
