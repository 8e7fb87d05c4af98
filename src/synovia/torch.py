"""Inverse and forward kinematics as differentiable functions of PyTorch tensors (``pip install "synovia[torch]"``).

Both take any leading axes, float32 or float64, and tensors of any device; they compute on the CPU in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from synovia.errors import MissingExtraError, UnsupportedError, install_command
from synovia.facade import IK
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.tensors import Joints, Kinematics, Solves, batch_shape, by_goal

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise MissingExtraError("synovia.torch needs PyTorch", hint=f"run {install_command('torch')}") from error
Tensor = Any  # a ``torch.Tensor``


_NO_SECOND = "second derivatives of {} are not supported"


def solve(ik: IK, targets: Any, starts: Any = None, *, threads: int | None = None) -> Tensor:
    """Solve a batch of problems; return the joint values (..., nq), differentiable by the targets.

    The derivative is that of ``Solution.derivative``; at a kink it is that of one side. Second derivatives are refused.

    Args:
        ik: The problem. A small ``tolerance`` gives exact derivatives.
        targets: A tensor (..., 3) for a position, (..., 3, 3) for a rotation, (..., 4, 4) for both; if several goals
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
    given = [torch.as_tensor(value) for value in values]
    lead = batch_shape([tuple(value.shape) for value in given], solves)
    dtype = given[0].dtype if given[0].dtype == torch.float32 else torch.float64
    pairs = zip(given, solves.shapes, strict=True)
    flat = [value.to(dtype).reshape(-1, *shape) for value, shape in pairs]
    first = None if starts is None else torch.as_tensor(starts, dtype=torch.float64).detach()
    if first is not None and first.dim() > 1:
        first = first.reshape(-1, solves.nq)
    q, _ = _Solve.apply(solves, threads, first, *flat)
    return q.reshape(*lead, solves.nq)


def forward(skeleton: Skeleton, q: Any, joints: Sequence[str | int] | None = None, *, offsets: Any = None) -> Tensor:
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
    values = torch.as_tensor(q)
    dtype = values.dtype if values.dtype == torch.float32 else torch.float64
    lead = kinematics.batch_shape(tuple(values.shape), None if offsets is None else tuple(offsets.shape))
    flat = _unit(values.to(dtype).reshape(-1, kinematics.joints.nq), kinematics.joints)
    moved = None if offsets is None else torch.as_tensor(offsets)
    T = _Forward.apply(kinematics, flat, moved)
    return T.reshape(*lead, *T.shape[1:])


def _array(tensor: Tensor) -> Array:
    """Return a tensor as an array in double precision."""
    return tensor.detach().to("cpu", torch.float64).numpy()


def _tensor(values: Array, like: Tensor) -> Tensor:
    """Return an array as a tensor of the type and on the device of another."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device, like.dtype)


def _unit(q: Tensor, joints: Joints) -> Tensor:
    """Return joint values with quaternions of length 1."""
    parts: list[Tensor] = []
    at = 0
    for first, _ in joints.quats:
        quat = q[:, first : first + 4]
        parts += [q[:, at:first], quat / quat.norm(dim=-1, keepdim=True)]
        at = first + 4
    return torch.cat([*parts, q[:, at:]], -1) if parts else q


def _folded(info: Any, tensors: Sequence[Tensor | None], dims: Sequence[int | None]) -> list[Tensor]:
    """Return tensors whose mapped axis is merged with their first axis, (N * B, ...)."""
    out: list[Tensor] = []
    for one, dim in zip(tensors, dims, strict=True):
        if one is None:
            out.append(None)
            continue
        moved = one.movedim(dim, 0) if dim is not None else one.expand(info.batch_size, *one.shape)
        out.append(moved.reshape(-1, *moved.shape[2:]))
    return out


def _unfolded(info: Any, one: Tensor) -> Tensor:
    """Return a tensor with its mapped axis, (N, B, ...)."""
    return one.reshape(info.batch_size, -1, *one.shape[1:])


class _Solve(torch.autograd.Function):
    """A batch of solves: joint values (B, nq) and rows of results."""

    @staticmethod
    def forward(solves: Solves, threads: int | None, starts: Tensor | None, *targets: Tensor) -> Any:
        """Solve."""
        rows = solves.rows([_array(one) for one in targets], None if starts is None else _array(starts), threads)
        return _tensor(solves.q(rows), targets[0]), torch.from_numpy(rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the rows of results."""
        ctx.solves, ctx.threads = inputs[:2]
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Any:
        """Return the gradients by the targets."""
        return None, None, None, *_SolveBack.apply(ctx.solves, ctx.threads, ctx.saved_tensors[0], gradient)

    @staticmethod
    def vmap(info: Any, in_dims: Any, solves: Solves, threads: int | None, starts: Any, *targets: Tensor) -> Any:
        """Solve a batch of batches."""
        folded = _folded(info, targets, in_dims[3:])
        first = starts
        if starts is not None and (in_dims[2] is not None or starts.dim() > 1):
            if starts.dim() - (in_dims[2] is not None) == 1:  # one start for each batch
                many = len(folded[0]) // info.batch_size
                first = starts.movedim(in_dims[2], 0).repeat_interleave(many, 0)
            else:
                first = _folded(info, [starts], in_dims[2:3])[0]
        q, rows = _Solve.apply(solves, threads, first, *folded)
        return (_unfolded(info, q), _unfolded(info, rows)), (0, 0)


class _SolveBack(torch.autograd.Function):
    """The gradients by the targets of a batch of solves."""

    @staticmethod
    def forward(solves: Solves, threads: int | None, rows: Tensor, gradient: Tensor) -> Any:
        """Return the gradients."""
        found, _ = solves.gradients(_array(rows), _array(gradient), threads)
        return tuple(_tensor(one, gradient) for one in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """Refuse second derivatives."""
        raise UnsupportedError(_NO_SECOND.format("answers"), where="synovia.torch.solve")

    @staticmethod
    def vmap(info: Any, in_dims: Any, solves: Solves, threads: int | None, *tensors: Tensor) -> Any:
        """Return the gradients of a batch of batches."""
        out = _SolveBack.apply(solves, threads, *_folded(info, tensors, in_dims[2:]))
        return tuple(_unfolded(info, one) for one in out), (0,) * len(out)


class _Forward(torch.autograd.Function):
    """Forward kinematics of a batch."""

    @staticmethod
    def forward(kinematics: Kinematics, q: Tensor, offsets: Tensor | None) -> Tensor:
        """Return the transforms."""
        frames = kinematics.frames(_array(q), None if offsets is None else _array(offsets))
        return _tensor(kinematics.transforms(frames), q)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the arguments."""
        ctx.kinematics = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Return the gradients by joint values and offsets."""
        q, offsets = ctx.saved_tensors
        out = _ForwardBack.apply(ctx.kinematics, q, offsets, gradient)
        return (None, out[0], None if offsets is None else out[1])

    @staticmethod
    def vmap(info: Any, in_dims: Any, kinematics: Kinematics, q: Tensor, offsets: Tensor | None) -> Any:
        """Return the transforms of a batch of batches."""
        if in_dims[2] is not None:
            raise UnsupportedError("offsets cannot be mapped", where="synovia.torch.forward", expected="one for all")
        return _unfolded(info, _Forward.apply(kinematics, _folded(info, [q], in_dims[1:2])[0], offsets)), 0


class _ForwardBack(torch.autograd.Function):
    """The gradients of forward kinematics."""

    @staticmethod
    def forward(kinematics: Kinematics, q: Tensor, offsets: Tensor | None, gradient: Tensor) -> Any:
        """Return the gradients by joint values and offsets."""
        values, moved = _array(q), None if offsets is None else _array(offsets)
        by_q, by_offsets = kinematics.gradients(values, kinematics.frames(values, moved), _array(gradient), moved)
        return _tensor(by_q, q), q.new_zeros(()) if offsets is None else _tensor(np.asarray(by_offsets), offsets)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """Refuse second derivatives."""
        raise UnsupportedError(_NO_SECOND.format("transforms"), where="synovia.torch.forward")

    @staticmethod
    def vmap(info: Any, in_dims: Any, kinematics: Kinematics, q: Any, offsets: Any, gradient: Any) -> Any:
        """Return the gradients of a batch of batches; those by the offsets are not mapped."""
        if offsets is not None:
            raise UnsupportedError("offsets cannot be mapped", where="synovia.torch.forward", expected="one for all")
        folded = _folded(info, [q, gradient], (in_dims[1], in_dims[3]))
        by_q, none = _ForwardBack.apply(kinematics, folded[0], None, folded[1])
        return (_unfolded(info, by_q), none), (0, None)
