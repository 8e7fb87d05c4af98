"""Inverse and forward kinematics as differentiable functions of JAX arrays (``pip install "synovia[jax]"``).

Both work under ``jit``, ``vmap`` and ``grad``, with any leading axes. They call Python on the CPU and compute in
float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from synovia.errors import MissingExtraError, UnsupportedError, install_command
from synovia.facade import IK
from synovia.model import Skeleton
from synovia.tensors import Kinematics, Solves, batch_shape, described, distinct

try:
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")
except ImportError as error:
    raise MissingExtraError("synovia.jax needs JAX", hint=f"run {install_command('jax')}") from error
Array = Any  # a ``jax.Array``


@described("an array")
def solve(ik: IK, targets: Any, starts: Any = None, *, parameters: Any = None, threads: int | None = None) -> Array:
    """Solve a batch of problems; return the joint values (..., nq), differentiable by targets and parameters."""
    solves = Solves(ik, targets, parameters)
    given = tuple(_floating(value) for value in solves.targets)
    lead = batch_shape([value.shape for value in given], solves)
    first = jnp.broadcast_to(_floating(ik.problem.rest[0] if starts is None else starts), (*lead, solves.nq))
    values = tuple(_floating(value) for value in solves.parameters)
    return _solve(solves, threads, jax.lax.stop_gradient(first), given, values)


@described("an array")
def forward(skeleton: Skeleton, q: Any, joints: Sequence[str | int] | None = None, *, offsets: Any = None) -> Array:
    """Return the world transforms of joints (..., joints, 4, 4), differentiable by joint values and offsets."""
    kinematics = Kinematics(skeleton, joints)
    values = _floating(q)
    moved = None if offsets is None else _floating(offsets)
    kinematics.batch_shape(values.shape, None if moved is None else moved.shape)
    for at, _ in kinematics.joints.quats:
        quat = values[..., at : at + 4]
        values = values.at[..., at : at + 4].set(quat / jnp.linalg.norm(quat, axis=-1, keepdims=True))
    offset = jnp.zeros((len(skeleton), 6), values.dtype) if moved is None else moved
    return _forward(kinematics, values, offset)


def _floating(value: Any) -> Array:
    """Return an array of floating numbers."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))


def _bits(rows: Any) -> Any:
    """Return float64 values as pairs of 32 bits, which pass through JAX unchanged without its 64-bit mode."""
    return np.ascontiguousarray(rows).view(np.uint32)


def _call(function: Any, shapes: Any, *arrays: Array) -> Any:
    """Call a Python function with arrays that have the leading axes of the call, also under ``vmap``.

    Raises:
        UnsupportedError: If the call is differentiated, as for a second derivative.
    """

    def call(*given: Array) -> Any:
        """Call Python."""
        return jax.pure_callback(function, shapes, *given, vmap_method="broadcast_all")

    def refuse(*_: Any) -> Any:
        """Raise the error for second and forward-mode derivatives."""
        raise UnsupportedError("second and forward-mode derivatives are not supported", where="synovia.jax")

    called = jax.custom_jvp(call)
    called.defjvp(refuse)
    return called(*arrays)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _solve(
    solves: Solves, threads: int | None, starts: Array, targets: tuple[Array, ...], values: tuple[Array, ...]
) -> Array:
    """Solve; see ``solve``."""
    return _solve_ahead(solves, threads, starts, targets, values)[0]


def _solve_ahead(
    solves: Solves, threads: int | None, starts: Array, targets: tuple[Array, ...], values: tuple[Array, ...]
) -> Any:
    """Solve, and keep the rows of results, and the parameters."""
    lead, width, dtype = starts.shape[:-1], 2 * solves.ik.problem.row_shape[1], targets[0].dtype
    count = len(targets)

    def run(first: Any, *given: Any) -> Any:
        """Solve a batch."""
        axes = first.shape[:-1]
        flat = [_flat(one, len(s)) for one, s in zip(given, solves.shapes, strict=False)]
        begin = _flat(first, 1)
        rows = np.empty((len(begin), width // 2))
        for shared, at in distinct([_flat(one, value.ndim) for one, value in zip(given[count:], values, strict=True)]):
            some = slice(None) if len(at) == len(rows) or not values else at
            rows[some] = solves.rows([one[some] for one in flat], begin[some], shared, threads)
        return solves.q(rows).reshape(*axes, solves.nq).astype(dtype), _bits(rows).reshape(*axes, width)

    shapes = jax.ShapeDtypeStruct((*lead, solves.nq), dtype), jax.ShapeDtypeStruct((*lead, width), np.uint32)
    q, bits = _call(run, shapes, starts, *targets, *(_spread(value, starts) for value in values))
    return q, (bits, values)


def _solve_back(solves: Solves, threads: int | None, kept: Any, gradient: Array) -> Any:
    """Return the gradients by the starts, which are zero, by the targets, and by the parameters."""
    bits, values = kept
    lead, dtype = bits.shape[:-1], gradient.dtype
    forms = [*solves.shapes, *(value.shape for value in values)]

    def run(kept: Any, wanted: Any, *given: Any) -> Any:
        """Differentiate a batch."""
        axes = kept.shape[:-1]
        table, by = np.ascontiguousarray(kept).reshape(-1, kept.shape[-1]).view(np.float64), _flat(wanted, 1)
        out = [np.empty((len(table), *form)) for form in forms]
        for shared, at in distinct([_flat(one, value.ndim) for one, value in zip(given, values, strict=True)]):
            some = slice(None) if len(at) == len(table) or not values else at
            for whole, one in zip(out, solves.gradients(table[some], by[some], shared, threads), strict=True):
                whole[some] = one
        return tuple(one.reshape(*axes, *form).astype(dtype) for one, form in zip(out, forms, strict=True))

    shapes = tuple(jax.ShapeDtypeStruct((*lead, *form), dtype) for form in forms)
    found = _call(run, shapes, bits, gradient, *(_spread(value, gradient) for value in values))
    count = len(solves.shapes)
    sums = (one.reshape(-1, *value.shape).sum(0) for one, value in zip(found[count:], values, strict=True))
    by_values = tuple(one.astype(value.dtype) for one, value in zip(sums, values, strict=True))
    return jnp.zeros((*lead, solves.nq), dtype), tuple(found[:count]), by_values


_solve.defvjp(_solve_ahead, _solve_back)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _forward(kinematics: Kinematics, q: Array, offsets: Array) -> Array:
    """Return transforms; see ``forward``."""
    return _forward_ahead(kinematics, q, offsets)[0]


def _forward_ahead(kinematics: Kinematics, q: Array, offsets: Array) -> Any:
    """Return transforms, and keep the arguments."""
    shape = (*q.shape[:-1], kinematics.count, 4, 4)

    def run(values: Any, moved: Any) -> Any:
        """Compute a batch."""
        flat = _flat(values, 1)
        T = np.empty((len(flat), *shape[-3:]))
        for (one,), at in distinct([_flat(moved, 2)]):
            T[at] = kinematics.transforms(kinematics.frames(flat[at], one))
        return T.reshape(*values.shape[:-1], *shape[-3:]).astype(q.dtype)

    T = _call(run, jax.ShapeDtypeStruct(shape, q.dtype), q, _spread(offsets, q))
    return T, (q, offsets)


def _spread(value: Array, like: Array) -> Array:
    """Repeat a value that all problems share along the leading axes of an array, so that ``vmap`` maps both alike."""
    return jnp.broadcast_to(value, (*like.shape[:-1], *value.shape))


def _flat(values: Any, axes: int) -> Any:
    """Return an array in double precision; merge all axes but the last ``axes`` into one."""
    array = np.asarray(values, np.float64)
    kept = array.shape[array.ndim - axes :]
    return array.reshape(int(np.prod(array.shape[: array.ndim - axes])), *kept)


def _forward_back(kinematics: Kinematics, kept: Any, gradient: Array) -> Any:
    """Return the gradients by joint values and offsets."""
    q, offsets = kept
    shapes = jax.ShapeDtypeStruct(q.shape, q.dtype), jax.ShapeDtypeStruct((*q.shape[:-1], *offsets.shape), q.dtype)

    def run(values: Any, moved: Any, wanted: Any) -> Any:
        """Differentiate a batch."""
        flat, by = _flat(values, 1), _flat(wanted, 3)
        by_q, by_offsets = np.empty(flat.shape), np.empty((len(flat), *offsets.shape))
        for (one,), at in distinct([_flat(moved, 2)]):
            frames = kinematics.frames(flat[at], one)
            by_q[at], by_offsets[at] = kinematics.gradients(flat[at], frames, by[at], one, each=True)
        axes = values.shape[:-1]
        out: Any = by_q.reshape(values.shape), by_offsets.reshape(*axes, *offsets.shape)
        return tuple(one.astype(q.dtype) for one in out)

    by_q, by_offsets = _call(run, shapes, q, _spread(offsets, q), gradient)
    return by_q, by_offsets.reshape(-1, *offsets.shape).sum(0).astype(offsets.dtype)


_forward.defvjp(_forward_ahead, _forward_back)
