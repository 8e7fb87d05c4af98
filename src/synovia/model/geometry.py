"""Check numbers, rotations and transforms from users, and convert them to arrays with NumPy only.

This code runs once per file, goal or call. Code for every step is in ``kernels``. Quaternions in arrays are xyzw. All
functions accept SciPy's ``Rotation``; none imports SciPy.
"""

from __future__ import annotations

import math
import sys
from types import NoneType
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synovia.errors import InputError

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
_LARGEST_FLOAT: Final = sys.float_info.max
LONGEST: Final = 1e15  # largest value of a joint or shape, in any unit; products of several such values cannot overflow
ORTHONORMAL: Final = 1e-5  # largest entry of RᵀR - 1 that counts as rounding (as in float32 files) and is removed
# largest entry of RᵀR - 1 of an exact rotation matrix; above the rounding error of the conversion from a quaternion
EXACT: Final = 16 * float(np.finfo(np.float64).eps)
ROUNDED: Final = 1e-3  # largest entry of RᵀR - 1 of rotations that users type: rounding to four decimals gives 2e-4
# largest deviation from length 1 of quaternions that users type: rounding to three decimals gives up to 1e-3
UNIT_SLACK: Final = 2e-3
_ROUNDS: Final = 3  # number of iterations of ``nearest_rotations``; each iteration squares the error
_FEW: Final = 16  # up to this size of an array, plain Python is faster than NumPy
_PLAIN: Final = frozenset({float, int, np.float64})
_NO_NUMBERS: Final = frozenset({bool, np.bool_, str, bytes})  # types that NumPy would silently convert to numbers
_PAIR: Final = 2
_WITH_QUATERNION: Final = (4, 7)  # number of values of a quaternion, and of a position with a quaternion
_DEEPEST: Final = 64  # largest number of axes of a NumPy array
_IDENTITY: Final = np.eye(3).tobytes()
_NO_MOTION: Final = np.eye(4)
_SMALL: Final = 1e-8  # radians: for smaller angles, quotients of sines are replaced by their limits


def as_numbers(value: ArrayLike, shape: tuple[int, ...], what: str, *, finite: bool = True) -> Array:
    """Return value as a new float64 array of a given shape (-1: any length).

    Raises:
        InputError: If the value is not numeric (text and booleans are refused), has masked entries or another shape, or
            contains NaN or infinity.
    """
    one: Any = value
    if type(one) is np.ndarray and one.dtype == np.float64:
        array = one.copy(order="C")
    else:
        array = _converted(one, shape, what)
    given = array.shape
    if given != shape and (
        len(given) != len(shape) or any(n >= 0 and n != m for n, m in zip(shape, given, strict=True))
    ):
        if not given:
            raise InputError(what, value=value, expected=f"numbers of shape {_shape(shape)}")
        raise InputError(f"shape of {what}", value=given, expected=_shape(shape))
    if finite and not all_finite(array):
        raise InputError(what, value=array.tolist(), expected="finite numbers")
    return array


def _converted(value: Any, shape: tuple[int, ...], what: str) -> Array:
    """Return a value as an array of float64, of any shape.

    Raises:
        InputError: If the value is not numeric or has masked entries.
    """
    one: Any = value
    parts: list[Any] = one if isinstance(value, tuple | list) else [one]
    kinds: set[type] = {*map(type, parts)}
    plain = kinds <= _PLAIN
    if not plain and _masked(parts, kinds):
        raise InputError(what, expected="numbers without masked entries", hint="array.filled(number) replaces them")
    expected = f"numbers of shape {_shape(shape)}" if shape else "a number"
    if NoneType in kinds:  # NumPy would convert None to NaN
        raise InputError(what, value=parts, expected=expected)
    try:
        return np.array(one if plain else _as_own_type(one), dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(what, value=one, expected=expected) from error


def _shape(shape: tuple[int, ...]) -> str:
    """Return a shape as text; n stands for any length."""
    return "(" + ", ".join("n" if n < 0 else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


def largest_number(array: Array) -> float:
    """Return the largest absolute value of an array; takes a microsecond for small arrays."""
    if array.size > _FEW:
        return float(np.abs(array).max())
    values: list[float] = array.ravel().tolist()
    return max(map(abs, values))


def all_finite(array: Array) -> bool:
    """Return whether no value of an array is NaN or infinite; takes a microsecond for small arrays."""
    if array.size > _FEW:
        return bool(np.isfinite(array).all())
    return all(map(math.isfinite, array.ravel().tolist()))


def as_direction(value: Any, what: str) -> Array:
    """Check a vector, and return it with length 1.

    Raises:
        InputError: If the value is not a vector (3,), or has length 0.
    """
    vector = as_numbers(value, (3,), what)
    largest = float(np.abs(vector).max())
    if largest == 0.0:
        raise InputError(what, value=vector.tolist(), expected="a vector longer than 0")
    if not 1e-100 < largest < 1e100:  # squares of such values would overflow or underflow
        vector = vector / largest
    return vector / float(np.linalg.norm(vector))


def _masked(parts: list[Any], kinds: set[type]) -> bool:
    """Return whether an array has masked entries, whose values are undefined."""
    if not any(hasattr(kind, "mask") for kind in kinds):
        return False
    masked: Any = np.ma.MaskedArray
    return any(isinstance(part, masked) and np.ma.is_masked(part) for part in parts)


def kinds_in(value: Any) -> set[type]:
    """Return the types of the elements of nested lists, without converting the lists to an array.

    In an array, each text would take the memory of the longest text.

    Raises:
        ValueError: If the lists are nested more deeply than any array.
    """
    kinds, level = set[type](), [value]
    for _ in range(_DEEPEST):
        here = set(map(type, level))
        nested: set[type] = {kind for kind in here if issubclass(kind, list | tuple)}
        kinds |= here - nested
        if not nested:
            return kinds
        level = [inner for outer in level if type(outer) in nested for inner in outer]
    raise ValueError("nested too deeply")


def _as_own_type(value: Any) -> NDArray[Any]:
    """Return a value as an array of its own type; a direct conversion to floats would accept text and booleans.

    Raises:
        TypeError: If it contains text, booleans, complex numbers or times.
        ValueError: If lists in it have different lengths.
    """
    kinds = kinds_in(value)
    if any(issubclass(kind, str | bytes) for kind in kinds):
        raise TypeError("text")
    array: NDArray[Any] = np.asarray(value)
    if array.dtype.kind == "O":
        kinds = kinds.union(map(type, array.flat))
    if array.dtype.kind not in "fiuO" or not kinds.isdisjoint(_NO_NUMBERS):
        raise TypeError("text, booleans, complex numbers or times")
    return array


def is_number(value: Any) -> bool:
    """Return whether a value is a real number of Python or NumPy, and not a boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Return whether a value is a real number within the range of float; Python integers are unbounded."""
    return is_number(value) and bool(abs(value) <= _LARGEST_FLOAT)


def dimensions(value: object) -> int:
    """Return the number of dimensions of a value; -1 for ragged lists and lists of texts."""
    try:
        if isinstance(value, list | tuple) and any(issubclass(kind, str | bytes) for kind in kinds_in(value)):
            return -1
        return int(np.ndim(value))  # type: ignore[arg-type]  # any value
    except ValueError:
        return -1


def quaternion_hint(value: Any) -> str | None:
    """Return a hint about quaternions if an unusable target seems to contain one; else None."""
    given = cast("tuple[Any, ...] | list[Any]", value)
    last: Any = given[1] if isinstance(value, tuple | list) and len(given) == _PAIR else given
    if dimensions(last) < 1 or np.shape(last)[-1] not in _WITH_QUATERNION:
        return None
    return "a quaternion (x, y, z, w) is a Rotation: (position, sy.Rotation.from_quat(quaternion))"


def as_matrix(value: Any, what: str = "rotation", *, rounded: float = ROUNDED) -> Array:
    """Return an exactly orthonormal rotation matrix from a ``Rotation`` or a matrix.

    A matrix that is already orthonormal is returned unchanged, a rounded one as the nearest rotation.

    Args:
        value: The rotation.
        what: Description of the value, for messages.
        rounded: Largest entry of RᵀR - 1 that is accepted as rounding.

    Raises:
        InputError: If the value is not a rotation. A list of four numbers is refused: its order is unknown.
    """
    if hasattr(value, "as_matrix"):
        value = value.as_matrix()
    elif dimensions(value) == 1 and len(value) == 4:
        raise InputError(
            what,
            value=value,
            expected="a Rotation or a matrix (3, 3)",
            hint="use quat_xyzw= or quat_wxyz= for a quaternion",
        )
    matrix = as_numbers(value, (3, 3), what)
    if matrix.tobytes() == _IDENTITY:
        return matrix
    error, determinant = _measured(*matrix.ravel().tolist())
    if determinant > 0.0:
        if error <= EXACT:
            return matrix
        if error <= ORTHONORMAL:
            return quat_to_matrix(matrix_to_quat(matrix))
        if error <= rounded:
            return nearest_rotations(matrix[None])[0]
    raise InputError(
        what,
        value=matrix.tolist(),
        expected="an orthonormal matrix of determinant 1",
        hint=_cure(error, determinant),
    )


def _cure(error: float, determinant: float) -> str:
    """Return a hint about why a matrix is not a rotation, and how to correct it."""
    if determinant < 0.0 and error <= ROUNDED:
        return "its determinant is -1: it mirrors"
    cure = "; sy.Rotation.from_matrix(matrix) is the nearest rotation" if determinant > 0.0 else ""
    return f"RᵀR differs from the identity by {error:.2g}{cure}"


def nearest_rotations(matrices: Array) -> Array:
    """Return the rotations nearest to matrices (n, 3, 3) that are nearly rotations, by Newton's method.

    R becomes R (3 - RᵀR) / 2, which squares the error of RᵀR = 1 (Björck & Bowie 1971) and converges to the nearest
    rotation in the sense of least squares.

    Args:
        matrices: The matrices R; entries of RᵀR - 1 are at most ``ROUNDED``.
    """
    out = matrices
    for _ in range(_ROUNDS):
        out = out @ (1.5 * np.eye(3) - 0.5 * np.swapaxes(out, -1, -2) @ out)
    return out


def with_exact_rotations(frames: Array) -> tuple[Array, Bools]:
    """Remove rounding errors from rotations in transforms (n, 4, 4); return them and a mask of rigid ones.

    Rotations that kernels accept, with an error of at most ``ORTHONORMAL``, stay unchanged.
    """
    out = frames.copy()
    R = frames[:, :3, :3]
    error = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max((1, 2), initial=0.0)
    last = np.abs(frames[:, 3] - (0.0, 0.0, 0.0, 1.0)).max(1, initial=0.0)
    rigid_ones = (error <= ROUNDED) & (np.linalg.det(np.where(error[:, None, None] <= ROUNDED, R, 0.0)) > 0.0)
    rigid_ones &= last <= ROUNDED
    rough = rigid_ones & ~(error < ORTHONORMAL)
    out[rough, :3, :3] = nearest_rotations(R[rough])
    out[rigid_ones, 3] = (0.0, 0.0, 0.0, 1.0)
    return out, rigid_ones


def _measured(*m: float) -> tuple[float, float]:
    """Return the largest entry of RᵀR - 1 (infinite beyond 1e154) and the determinant; faster than with arrays."""
    a, b, c, d, e, f, g, h, i = m
    entries = (
        a * a + d * d + g * g - 1.0,
        b * b + e * e + h * h - 1.0,
        c * c + f * f + i * i - 1.0,
        a * b + d * e + g * h,
        a * c + d * f + g * i,
        b * c + e * f + h * i,
    )
    return max(map(abs, entries)), a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def as_transform(value: Any, what: str = "transform", *, rounded: float = ROUNDED) -> Array:
    """Return a rigid 4x4 transform with an exactly orthonormal rotation.

    Args:
        value: The transform.
        what: Description of the value, for messages.
        rounded: As in ``as_matrix``; also for the last row.

    Raises:
        InputError: If the shape, the rotation or the last row is wrong.
    """
    matrix = as_numbers(value, (4, 4), what)
    x, y, z, one = matrix[3].tolist()
    if max(abs(x), abs(y), abs(z), abs(one - 1.0)) > max(rounded, ORTHONORMAL):
        raise InputError(f"last row of {what}", value=matrix[3].tolist(), expected="0 0 0 1")
    matrix[:3, :3] = as_matrix(matrix[:3, :3], f"rotation of {what}", rounded=rounded)
    matrix[3] = (0.0, 0.0, 0.0, 1.0)
    return matrix


def as_unit_quat(value: ArrayLike, what: str = "quaternion") -> Array:
    """Return a quaternion (xyzw) normalized to length 1.

    Raises:
        InputError: If its length differs from 1 by more than 2e-3.
    """
    quat = as_numbers(value, (4,), what)
    with np.errstate(over="ignore"):  # infinity is refused below
        length = float(np.linalg.norm(quat))
    if not abs(length - 1.0) <= UNIT_SLACK:
        hint = f"its length is {length:.4g}; divide it by that, or pass a Rotation: sy.Rotation.from_quat does so"
        raise InputError(what, value=quat.tolist(), expected="a unit quaternion", hint=hint)
    return quat / length


def quat_to_matrix(quat: Array) -> Array:
    """Return rotation matrices (..., 3, 3) of unit quaternions (..., 4) in xyzw."""
    x, y, z, w = np.moveaxis(quat, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def matrix_to_quat(matrix: Array) -> Array:
    """Return unit quaternions (..., 4) in xyzw, w >= 0, of rotation matrices (..., 3, 3).

    The diagonal gives the four squared components. Using the row of 4 q qᵀ with the largest component avoids
    cancellation (Shepperd 1978).
    """
    m = np.asarray(matrix, dtype=np.float64)
    diagonal = np.diagonal(m, axis1=-2, axis2=-1)
    trace = diagonal.sum(-1)
    outer = np.empty((*m.shape[:-2], 4, 4))  # 4 q qᵀ
    outer[..., :3, :3] = m + np.swapaxes(m, -1, -2)
    for i in range(3):
        outer[..., i, i] = 1.0 + 2.0 * diagonal[..., i] - trace
    outer[..., 3, 3] = 1.0 + trace
    skew = np.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], axis=-1)
    outer[..., 3, :3] = outer[..., :3, 3] = skew
    best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    quat = np.take_along_axis(outer, best[..., None, None], axis=-2)[..., 0, :]
    unit: Array = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    return np.where(unit[..., 3:] < 0.0, -unit, unit)


def fixed_xyz(roll: float, pitch: float, yaw: float) -> Array:
    """Return the rotation (3, 3) about the fixed x, then y, then z axis, radians: the ``rpy`` of URDF."""
    (a, b, c), (u, v, w) = ([f(angle) for angle in (roll, pitch, yaw)] for f in (math.cos, math.sin))
    return np.array(
        [
            [b * c, u * v * c - a * w, a * v * c + u * w],
            [b * w, u * v * w + a * c, a * v * w - u * c],
            [-v, u * b, a * b],
        ]
    )


def align_z(axis: Array) -> Array:
    """Return the smallest rotation A (3, 3) with A z = axis; for -z, a half turn about x.

    Args:
        axis: Unit vector.
    """
    x, y, z = (float(v) for v in axis)
    across = x * x + y * y
    if z < 0.0 and across < 1e-30:
        return np.diag([1.0, -1.0, -1.0])
    k = 1.0 / (1.0 + z) if z >= 0.0 else (1.0 - z) / across  # both forms are equal, but 1 + z would cancel near -z
    return np.array([[1.0 - k * x * x, -k * x * y, x], [-k * x * y, 1.0 - k * y * y, y], [-x, -y, z]])


def rigid(position: ArrayLike = (0.0, 0.0, 0.0), rotation: Array | None = None) -> Array:
    """Return the 4x4 transform of a position and a rotation matrix, unchecked."""
    out = _NO_MOTION.copy()
    out[:3, 3] = position
    if rotation is not None:
        out[:3, :3] = rotation
    return out


def frames_to_transforms(frames: Array) -> Array:
    """Return the transforms (..., 4, 4) of frames (..., 12): rotation row-major (9), then position (3)."""
    out = np.zeros((*frames.shape[:-1], 4, 4))
    out[..., :3, :3] = frames[..., :9].reshape(*frames.shape[:-1], 3, 3)
    out[..., :3, 3] = frames[..., 9:]
    out[..., 3, 3] = 1.0
    return out


AXES: Final = ("x", "y", "z", "-x", "-y", "-z")


def axis_vector(name: str) -> Array:
    """Return the unit vector (3,) of one of ``AXES``, such as ``"y"`` or ``"-z"``."""
    out = np.zeros(3)
    out["xyz".index(name[-1])] = -1.0 if name.startswith("-") else 1.0
    return out


def axis_turn(a: str, b: str) -> Array:
    """Return the rotation (3, 3) from one axis of ``AXES`` to another, a quarter or half turn."""
    start, end = axis_vector(a), axis_vector(b)
    if a == b:
        return np.eye(3)
    if a[-1] == b[-1]:  # for opposite axes, rotate about the next axis
        return np.diag(np.where(np.roll(np.abs(start), 1) > 0.0, 1.0, -1.0))
    about = cross(start, end)
    return np.outer(end, start) - np.outer(start, end) + np.outer(about, about)


def axis_name(direction: Array) -> str:
    """Return the axis nearest to a direction (3,), for example ``"-z"``."""
    axis = int(np.argmax(np.abs(direction)))
    return ("-" if direction[axis] < 0.0 else "") + "xyz"[axis]


def between(a: Array, b: Array) -> float:
    """Return the angle between two unit vectors (3,), degrees."""
    return math.degrees(math.acos(min(1.0, max(-1.0, float(a @ b)))))


def same_side(quats: Array) -> Array:
    """Return quaternions over time (T, 4), with signs for which each is nearest to the previous one.

    The values then have no jumps and can be interpolated.
    """
    flips = np.where(np.einsum("ij,ij->i", quats[1:], quats[:-1]) < 0.0, -1.0, 1.0)
    return quats * np.cumprod(np.concatenate([[1.0], flips]))[:, None]


def magnitude(v: Array) -> float:
    """Return the length of a vector (n,); faster than ``np.linalg.norm``."""
    return math.sqrt(float(v @ v))


def magnitudes(v: Array) -> Array:
    """Return the lengths (...) of vectors (..., 3); faster than ``np.linalg.norm``."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.sqrt(x * x + y * y + z * z)


def unit(v: Array) -> Array:
    """Return v / |v| along the last axis; vectors of length 0 stay 0."""
    if v.ndim == 1:
        size = magnitude(v)
        return v / size if size > 0.0 else v
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return v / np.where(length > 0.0, length, 1.0)


def between_directions(a: Array, b: Array, weight: Array) -> Array:
    """Return unit vectors (n, 3) on the shorter arc from a to b; weights (n,) are 0 at a and 1 at b."""
    sine, cosine = np.linalg.norm(cross(a, b), axis=1), np.sum(a * b, axis=1)
    angle = np.arctan2(sine, cosine)
    aside: Array = b - cosine[:, None] * a  # component of b normal to a
    back = sine < _SMALL
    if back.any():  # opposite vectors have no unique shortest arc; any arc is used
        least = np.eye(3)[np.argmin(np.abs(a), axis=1)]
        aside = np.where(back[:, None], least - np.sum(a * least, axis=1)[:, None] * a, aside)
    turn = (weight * angle)[:, None]
    return np.cos(turn) * a + np.sin(turn) * unit(aside)


def between_transforms(a: Array, b: Array, weight: Array) -> Array:
    """Return transforms (n, 4, 4) from a to b, on lines and shortest arcs; weights (n,) are 0 at a and 1 at b."""
    out = a.copy()
    if not np.array_equal(a[:, :3, :3], b[:, :3, :3]):
        start, end = (matrix_to_quat(frames[:, :3, :3]) for frames in (a, b))
        out[:, :3, :3] = quat_to_matrix(times_exp(start, weight[:, None] * rotation_between(start, end)))
    out[:, :3, 3] += weight[:, None] * (b[:, :3, 3] - a[:, :3, 3])
    return out


def cross(a: Array, b: Array) -> Array:
    """Return the cross products (..., 3); faster than ``np.cross``."""
    if a.ndim == b.ndim == 1:
        (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
        return np.array((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out


def times_exp(quat: Array, w: Array) -> Array:
    """Return quat · exp(w), normalized, for quaternions (..., 4) xyzw and rotation vectors (..., 3)."""
    angle = np.linalg.norm(w, axis=-1, keepdims=True)
    half = 0.5 * angle
    xyz = w * np.where(angle > _SMALL, np.sin(half) / np.maximum(angle, _SMALL), 0.5)
    out = quat_product(quat, np.concatenate([xyz, np.cos(half)], axis=-1))
    return out / np.linalg.norm(out, axis=-1, keepdims=True)


def exp_matrix(w: Array) -> Array:
    """Return the rotation matrix of a rotation vector (3,)."""
    angle = float(np.linalg.norm(w))
    K = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    return np.eye(3) + np.sinc(angle / np.pi) * K + 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2 * (K @ K)


def quat_product(a: Array, b: Array) -> Array:
    """Return the products a b of quaternions (..., 4) xyzw."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    return np.concatenate(
        [aw * bv + bw * av + cross(av, bv), aw * bw - np.sum(av * bv, axis=-1, keepdims=True)], axis=-1
    )


def rotation_between(a: Array, b: Array) -> Array:
    """Return the rotation vectors w (..., 3), at most a half turn, with a · exp(w) = b, for quaternions (..., 4)."""
    back = a * np.array([-1.0, -1.0, -1.0, 1.0])
    step = quat_product(back, b)
    step = np.where(step[..., 3:] < 0.0, -step, step)
    sine = np.linalg.norm(step[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, step[..., 3:])
    out: Array = step[..., :3] * np.where(sine > _SMALL, angle / np.maximum(sine, _SMALL), 2.0)
    return out
