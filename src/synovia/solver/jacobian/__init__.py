"""The Jacobian family: thin settings over shared kernels."""

from synovia.solver.jacobian.base import JacobianMethod
from synovia.solver.jacobian.damped import DampedLeastSquares, LevenbergMarquardt
from synovia.solver.jacobian.null_space import NullSpace
from synovia.solver.jacobian.plain import JacobianTranspose, PseudoInverse, SelectivelyDamped

__all__ = [
    "DampedLeastSquares",
    "JacobianMethod",
    "JacobianTranspose",
    "LevenbergMarquardt",
    "NullSpace",
    "PseudoInverse",
    "SelectivelyDamped",
]
