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
from synovia.tensors import Kinematics, Solves, batch_shape, by_goal

try:
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")
except ImportError as error:
    raise MissingExtraError("synovia.jax needs JAX", hint=f"run {install_command('jax')}") from error
Array = Any  # a ``jax.Array``


def solve(ik: IK, targets: Any, starts: Any = None, *, threads: int | None = None) -> Array:
    """Solve a batch of problems; return the joint values (..., nq), differentiable by the targets.

    The derivative is that of ``Solution.derivative``; at a kink it is that of one side. Second derivatives are refused.

    Args:
        ik: The problem. A small ``tolerance`` gives exact derivatives.
        targets: An array (..., 3) for a position, (..., 3, 3) for a rotation, (..., 4, 4) for both; if several goals
            take targets, a dict of them by goal.
        starts: Joint values (nq,) or (..., nq); the rest pose by default. Not differentiated.
        threads: Number of threads; all cores by default.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a target belongs to no goal.
        UnsupportedError: If the answers have no derivative.
    """
    names, values = by_goal(targets)
    solves = Solves(ik, names)
    given = tuple(_floating(value) for value in values)
    lead = batch_shape([value.shape for value in given], solves)
    first = jnp.broadcast_to(_floating(ik.problem.rest[0] if starts is None else starts), (*lead, solves.nq))
    return _solve(solves, threads, jax.lax.stop_gradient(first), *given)


def forward(skeleton: Skeleton, q: Any, joints: Sequence[str | int] | None = None, *, offsets: Any = None) -> Array:
    """Return the world transforms of joints (..., joints, 4, 4), differentiable by joint values and offsets.

    Args:
        skeleton: The skeleton.
        q: Joint values (..., nq). Quaternions are normalised.
        joints: Names, roles or rows of joints, links or sites; None for all joints.
        offsets: Changes of the joints' places (n, 6), for calibration: a translation (length units) and a rotation
            vector, both in the axes of the parent, that are applied to ``rest`` of each joint.

    Raises:
        InputError: If a value cannot be used.
        UnknownNameError: If a joint does not exist.
    """
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
    """Call Python with arrays whose leading axes are those of the call, also under ``vmap``; refuse to differentiate.

    Raises:
        UnsupportedError: If the call is differentiated, as for a second derivative.
    """

    def call(*given: Array) -> Any:
        """Call Python."""
        return jax.pure_callback(function, shapes, *given, vmap_method="broadcast_all")

    def refuse(*_: Any) -> Any:
        """Refuse."""
        raise UnsupportedError("second and forward-mode derivatives are not supported", where="synovia.jax")

    called = jax.custom_jvp(call)
    called.defjvp(refuse)
    return called(*arrays)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _solve(solves: Solves, threads: int | None, starts: Array, *targets: Array) -> Array:
    """Solve; see ``solve``."""
    return _solve_ahead(solves, threads, starts, *targets)[0]


def _solve_ahead(solves: Solves, threads: int | None, starts: Array, *targets: Array) -> Any:
    """Solve, and keep the rows of results."""
    lead, width, dtype = starts.shape[:-1], 2 * solves.ik.problem.row_shape[1], targets[0].dtype

    def run(first: Any, *given: Any) -> Any:
        """Solve a batch."""
        axes = first.shape[:-1]
        flat = [np.asarray(one, np.float64).reshape(-1, *s) for one, s in zip(given, solves.shapes, strict=True)]
        rows = solves.rows(flat, np.asarray(first, np.float64).reshape(-1, solves.nq), threads)
        return solves.q(rows).reshape(*axes, solves.nq).astype(dtype), _bits(rows).reshape(*axes, width)

    shapes = jax.ShapeDtypeStruct((*lead, solves.nq), dtype), jax.ShapeDtypeStruct((*lead, width), np.uint32)
    q, bits = _call(run, shapes, starts, *targets)
    return q, bits


def _solve_back(solves: Solves, threads: int | None, bits: Array, gradient: Array) -> Any:
    """Return the gradients by the starts, which are zero, and by the targets."""
    lead = bits.shape[:-1]

    def run(rows: Any, wanted: Any) -> Any:
        """Differentiate a batch."""
        axes = rows.shape[:-1]
        table = np.ascontiguousarray(rows).reshape(-1, rows.shape[-1]).view(np.float64)
        found, _ = solves.gradients(table, np.asarray(wanted, np.float64).reshape(-1, solves.nq), threads)
        pairs = zip(found, solves.shapes, strict=True)
        return tuple(one.reshape(*axes, *shape).astype(gradient.dtype) for one, shape in pairs)

    shapes = tuple(jax.ShapeDtypeStruct((*lead, *shape), gradient.dtype) for shape in solves.shapes)
    return jnp.zeros((*lead, solves.nq), gradient.dtype), *_call(run, shapes, bits, gradient)


_solve.defvjp(_solve_ahead, _solve_back)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _forward(kinematics: Kinematics, q: Array, offsets: Array) -> Array:
    """Return transforms; see ``forward``."""
    return _forward_ahead(kinematics, q, offsets)[0]


def _forward_ahead(kinematics: Kinematics, q: Array, offsets: Array) -> Any:
    """Return transforms, and keep the arguments."""
    shape = (*q.shape[:-1], kinematics.count, 4, 4)

    def run(values: Any, moved: Any) -> Any:
        """Compute a batch, whose offsets are equal."""
        flat, one = np.asarray(values, np.float64).reshape(-1, values.shape[-1]), _one(moved)
        return (
            kinematics.transforms(kinematics.frames(flat, one)).reshape(*values.shape[:-1], *shape[-3:]).astype(q.dtype)
        )

    T = _call(run, jax.ShapeDtypeStruct(shape, q.dtype), q, _spread(offsets, q))
    return T, (q, offsets)


def _spread(offsets: Array, q: Array) -> Array:
    """Return offsets with the leading axes of q, so that ``vmap`` adds the same axes to both."""
    return jnp.broadcast_to(offsets, (*q.shape[:-1], *offsets.shape))


def _one(moved: Any) -> Any:
    """Return the offsets that all problems of a batch share."""
    every = np.asarray(moved, np.float64)
    flat = every.reshape(-1, *every.shape[-2:])
    return flat[0] if len(flat) else np.zeros(every.shape[-2:])


def _forward_back(kinematics: Kinematics, kept: Any, gradient: Array) -> Any:
    """Return the gradients by joint values and offsets."""
    q, offsets = kept
    nq = q.shape[-1]
    shapes = jax.ShapeDtypeStruct(q.shape, q.dtype), jax.ShapeDtypeStruct((*q.shape[:-1], *offsets.shape), q.dtype)

    def run(values: Any, moved: Any, wanted: Any) -> Any:
        """Differentiate a batch."""
        flat, one = np.asarray(values, np.float64).reshape(-1, nq), _one(moved)
        by = np.asarray(wanted, np.float64).reshape(-1, *wanted.shape[-3:])
        by_q, by_offsets = kinematics.gradients(flat, kinematics.frames(flat, one), by, one, each=True)
        axes = values.shape[:-1]
        return by_q.reshape(values.shape).astype(q.dtype), np.reshape(
            np.asarray(by_offsets), (*axes, *one.shape)
        ).astype(q.dtype)

    by_q, by_offsets = _call(run, shapes, q, _spread(offsets, q), gradient)
    return by_q, by_offsets.reshape(-1, *offsets.shape).sum(0).astype(offsets.dtype)


_forward.defvjp(_forward_ahead, _forward_back)
