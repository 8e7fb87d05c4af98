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
from synovia.tensors import Joints, Kinematics, Solves, batch_shape, described

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise MissingExtraError("synovia.torch needs PyTorch", hint=f"run {install_command('torch')}") from error
Tensor = Any  # a ``torch.Tensor``
_in_transforms: Any = getattr(import_module("torch._C"), "_are_functorch_transforms_active", lambda: True)


_NO_SECOND = "second derivatives of {} are not supported"


@described("a tensor")
def solve(ik: IK, targets: Any, starts: Any = None, *, parameters: Any = None, threads: int | None = None) -> Tensor:
    """Solve a batch of problems; return the joint values (..., nq), differentiable by targets and parameters."""
    solves = Solves(ik, targets, parameters)
    given = [_given(value) for value in solves.targets]
    lead = batch_shape([tuple(value.shape) for value in given], solves)
    dtype = given[0].dtype if given[0].dtype == torch.float32 else torch.float64
    pairs = zip(given, solves.shapes, strict=True)
    flat = [value.to(dtype).reshape(-1, *shape) for value, shape in pairs]
    first = None if starts is None else _given(starts).to(torch.float64).detach()
    if first is not None and first.dim() > 1:
        first = first.reshape(-1, solves.nq)
    values = [_given(value) for value in solves.parameters]
    q, _ = _Solve.apply(solves, threads, first, *flat, *values)
    return q.reshape(*lead, solves.nq)


@described("a tensor")
def forward(skeleton: Skeleton, q: Any, joints: Sequence[str | int] | None = None, *, offsets: Any = None) -> Tensor:
    """Return the world transforms of joints (..., joints, 4, 4), differentiable by joint values and offsets."""
    kinematics = Kinematics(skeleton, joints)
    values = torch.as_tensor(q)
    dtype = values.dtype if values.dtype == torch.float32 else torch.float64
    lead = kinematics.batch_shape(tuple(values.shape), None if offsets is None else tuple(offsets.shape))
    flat = _unit(values.to(dtype).reshape(-1, kinematics.joints.nq), kinematics.joints)
    moved = None if offsets is None else torch.as_tensor(offsets)
    T = _Forward.apply(kinematics, flat, moved)
    return T.reshape(*lead, *T.shape[1:])


def _given(value: Any) -> Tensor:
    """Return a value as a tensor. Arrays are copied, because PyTorch warns of read-only arrays, such as answers."""
    return value if torch.is_tensor(value) else torch.as_tensor(np.array(value))


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


def _is_traced() -> bool:
    """Return whether a backward pass is itself being differentiated, or runs inside of ``torch.func``."""
    return torch.is_grad_enabled() or _in_transforms()


def _refuse_mapped(dims: Sequence[int | None], what: str, function: str) -> None:
    """Refuse values that differ between the batches of a ``vmap``.

    Raises:
        UnsupportedError: If an axis is mapped.
    """
    if any(dim is not None for dim in dims):
        raise UnsupportedError(f"{what} cannot be mapped", where=f"synovia.torch.{function}", expected="one for all")


def _unfolded(info: Any, one: Tensor) -> Tensor:
    """Return a tensor with its mapped axis, (N, B, ...)."""
    return one.reshape(info.batch_size, -1, *one.shape[1:])


class _Solve(torch.autograd.Function):
    """A batch of solves: joint values (B, nq) and rows of results. The tensors are targets, then parameters."""

    @staticmethod
    def forward(solves: Solves, threads: int | None, starts: Tensor | None, *tensors: Tensor) -> Any:
        """Solve."""
        values = [_array(one) for one in tensors]
        count = len(solves.shapes)
        rows = solves.rows(values[:count], None if starts is None else _array(starts), values[count:], threads)
        return _tensor(solves.q(rows), tensors[0]), torch.from_numpy(rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the rows of results, and the parameters."""
        ctx.solves, ctx.threads = inputs[:2]
        ctx.save_for_backward(output[1], *inputs[3 + len(ctx.solves.shapes) :])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Any:
        """Return the gradients by the targets and the parameters."""
        rows, *values = ctx.saved_tensors
        function = _SolveBack.apply if _is_traced() else _SolveBack.forward
        return None, None, None, *function(ctx.solves, ctx.threads, None, rows, gradient, *values)

    @staticmethod
    def vmap(info: Any, in_dims: Any, solves: Solves, threads: int | None, starts: Any, *tensors: Tensor) -> Any:
        """Solve a batch of batches."""
        count = len(solves.shapes)
        _refuse_mapped(in_dims[3 + count :], "parameters", "solve")
        folded = _folded(info, tensors[:count], in_dims[3 : 3 + count])
        first = starts
        if starts is not None and (in_dims[2] is not None or starts.dim() > 1):
            if starts.dim() - (in_dims[2] is not None) == 1:  # one start for each batch
                many = len(folded[0]) // info.batch_size
                first = starts.movedim(in_dims[2], 0).repeat_interleave(many, 0)
            else:
                first = _folded(info, [starts], in_dims[2:3])[0]
        q, rows = _Solve.apply(solves, threads, first, *folded, *tensors[count:])
        return (_unfolded(info, q), _unfolded(info, rows)), (0, 0)


class _SolveBack(torch.autograd.Function):
    """The gradients of a batch of solves by the targets, and by the parameters: sums over the batch, or over groups."""

    @staticmethod
    def forward(
        solves: Solves, threads: int | None, groups: int | None, rows: Tensor, gradient: Tensor, *values: Tensor
    ) -> Any:
        """Return the gradients."""
        found = solves.gradients(_array(rows), _array(gradient), [_array(value) for value in values], threads)
        count = len(solves.shapes)
        by_targets = [_tensor(one, gradient) for one in found[:count]]
        sums = [one.reshape(groups or 1, -1, *one.shape[1:]).sum(1) for one in found[count:]]
        pairs = zip(sums, values, strict=True)
        return (*by_targets, *(_tensor(one if groups else one[0], value) for one, value in pairs))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """Refuse second derivatives."""
        raise UnsupportedError(_NO_SECOND.format("answers"), where="synovia.torch.solve")

    @staticmethod
    def vmap(info: Any, in_dims: Any, solves: Solves, threads: int | None, groups: int | None, *tensors: Any) -> Any:
        """Return the gradients of a batch of batches; each batch is a group of the sums."""
        _refuse_mapped(in_dims[5:], "parameters", "solve")
        folded = _folded(info, tensors[:2], in_dims[3:5])
        out = _SolveBack.apply(solves, threads, info.batch_size * (groups or 1), *folded, *tensors[2:])
        count = len(solves.shapes)
        sums = [one if groups is None else _unfolded(info, one) for one in out[count:]]
        return (*(_unfolded(info, one) for one in out[:count]), *sums), (0,) * len(out)


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
        function = _ForwardBack.apply if _is_traced() else _ForwardBack.forward
        out = function(ctx.kinematics, q, offsets, gradient)
        return (None, out[0], None if offsets is None else out[1])

    @staticmethod
    def vmap(info: Any, in_dims: Any, kinematics: Kinematics, q: Tensor, offsets: Tensor | None) -> Any:
        """Return the transforms of a batch of batches."""
        _refuse_mapped(in_dims[2:], "offsets", "forward")
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
        """Return the gradients of a batch of batches; gradients by the offsets are not mapped."""
        if offsets is not None:
            raise UnsupportedError("offsets cannot be mapped", where="synovia.torch.forward", expected="one for all")
        folded = _folded(info, [q, gradient], (in_dims[1], in_dims[3]))
        by_q, none = _ForwardBack.apply(kinematics, folded[0], None, folded[1])
        return (_unfolded(info, by_q), none), (0, None)
