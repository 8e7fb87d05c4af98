"""Algorithms by name. Adding one = a kernel file, a settings file and a row here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from synovia.errors import InputError, unknown_name
from synovia.solver.base import Solver
from synovia.solver.ccd import Ccd
from synovia.solver.fabrik import Fabrik
from synovia.solver.jacobian import (
    DampedLeastSquares,
    JacobianMethod,
    JacobianTranspose,
    LevenbergMarquardt,
    NullSpace,
    PseudoInverse,
    SelectivelyDamped,
)
from synovia.solver.particles import Particles

solvers: Final[Mapping[str, type[Solver]]] = MappingProxyType(
    {
        cls.name: cls
        for cls in (
            Fabrik,
            Ccd,
            Particles,
            LevenbergMarquardt,
            DampedLeastSquares,
            JacobianTranspose,
            PseudoInverse,
            SelectivelyDamped,
        )
    }
)


def as_solver(solver: object) -> Solver:
    """Return settings from settings, a solver's name, or None for the default (Levenberg-Marquardt).

    Raises:
        UnknownNameError: If there is no solver of that name.
    """
    if solver is None:
        return LevenbergMarquardt()
    if isinstance(solver, str):
        if solver not in solvers:
            raise unknown_name("solver", solver, solvers)
        return solvers[solver]()
    if isinstance(solver, Solver):
        return solver
    raise InputError("solver is no solver", value=solver, expected="settings such as sy.Fabrik(), or a name")


__all__ = [
    "Ccd",
    "DampedLeastSquares",
    "Fabrik",
    "JacobianMethod",
    "JacobianTranspose",
    "LevenbergMarquardt",
    "NullSpace",
    "Particles",
    "PseudoInverse",
    "SelectivelyDamped",
    "Solver",
    "as_solver",
    "solvers",
]
