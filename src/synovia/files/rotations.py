"""Rotation specifications in files: a quaternion, a matrix, or Euler angles with their axes."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Annotated, Final

import numpy as np
from msgspec import Meta, Struct

from synovia.errors import InputError
from synovia.model.geometry import Array, as_matrix, as_unit_quat, fixed_xyz, quat_to_matrix

_Three = tuple[float, float, float]
_Four = tuple[float, float, float, float]


class RotationSpec(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A rotation in exactly one form: quat_xyzw, quat_wxyz, matrix, or euler with degrees."""

    quat_xyzw: Annotated[_Four, Meta(description="Unit quaternion, the real part last.")] | None = None
    quat_wxyz: Annotated[_Four, Meta(description="Unit quaternion, the real part first.")] | None = None
    matrix: Annotated[tuple[_Three, _Three, _Three], Meta(description="Rows of a rotation matrix.")] | None = None
    euler: (
        Annotated[
            str,
            Meta(
                pattern="^([xyz]{1,3}|[XYZ]{1,3})$",
                description="Axes in the order of the rotations: xyz about fixed axes, XYZ about rotated axes.",
            ),
        ]
        | None
    ) = None
    degrees: Annotated[list[float], Meta(description="One angle for each axis of euler, degrees.")] | None = None


ROTATION_FORMS: Final = {  # descriptions of the forms of rotations, for messages
    "rotation": '{ quat_xyzw = [x, y, z, w] }, quat_wxyz, matrix (3 rows), or { euler = "xyz", degrees = [x, y, z] }'
}


def to_matrix(spec: RotationSpec, what: str = "rotation") -> Array:
    """Convert a rotation specification to a matrix.

    Raises:
        InputError: If the specification has no form or several forms, or its values are not a rotation.
    """
    ways = [way for way in ("quat_xyzw", "quat_wxyz", "matrix", "euler") if getattr(spec, way) is not None]
    if len(ways) != 1 or (spec.degrees is not None) != (spec.euler is not None):
        given = [*ways, *(["degrees"] if spec.degrees is not None else [])]
        raise InputError(
            what,
            value=given,
            expected="one of quat_xyzw, quat_wxyz, matrix, or euler with degrees",
        )
    if spec.quat_xyzw is not None:
        return quat_to_matrix(as_unit_quat(spec.quat_xyzw, f"quat_xyzw of {what}"))
    if spec.quat_wxyz is not None:
        w, x, y, z = spec.quat_wxyz
        return quat_to_matrix(as_unit_quat((x, y, z, w), f"quat_wxyz of {what}"))
    if spec.matrix is not None:
        return as_matrix(np.array(spec.matrix), what)
    return _euler_matrix(spec.euler or "", spec.degrees or [], what)


def _euler_matrix(order: str, degrees: list[float], what: str) -> Array:
    """Return the matrix of Euler angles; lower case means fixed axes, and upper case means rotated axes."""
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", order) or any(a == b for a, b in pairwise(order)):
        raise InputError(
            f"order of Euler angles of {what}",
            value=order,
            expected="up to three of xyz (fixed axes) or XYZ (rotated axes), none twice in a row",
        )
    if len(degrees) != len(order) or not all(math.isfinite(angle) for angle in degrees):
        raise InputError(f"Euler angles of {what}", value=degrees, expected=f"{len(order)} finite angles in degrees")
    out = np.eye(3)
    for axis, angle in zip(order, degrees, strict=True):
        one = fixed_xyz(*(math.radians(angle) if axis.lower() == other else 0.0 for other in "xyz"))
        out = one @ out if order.islower() else out @ one
    return out
