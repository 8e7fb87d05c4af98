"""Algorithms by name. Adding one = a kernel file, a settings file and a row here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, cast

from synovia.errors import InputError, UnknownNameError, UnsupportedError, did_you_mean
from synovia.problem import Reduced
from synovia.solver.aim import Aim
from synovia.solver.base import Kernel, Solver
from synovia.solver.ccd import Ccd
from synovia.solver.fabrik import Fabrik
from synovia.solver.full_body import FullBody
from synovia.solver.hinges import Hinges
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
from synovia.solver.segments import Segments
from synovia.solver.two_bone import TwoBone

_GENERAL = (
    Fabrik,
    Ccd,
    Particles,
    LevenbergMarquardt,
    DampedLeastSquares,
    JacobianTranspose,
    PseudoInverse,
    SelectivelyDamped,
    FullBody,
)
SolverName = Literal[
    "fabrik", "ccd", "particles", "lm", "dls", "transpose", "pinv", "sdls", "full-body", "aim", "hinges", "segments",
    "two-bone",
]  # fmt: skip
_CLOSED = (Aim, Hinges, Segments, TwoBone)  # made for a few joints each
_by_name = {cls.name: cls for cls in (*_GENERAL, *_CLOSED)}
solvers: Final = MappingProxyType(cast("Mapping[SolverName, type[Solver]]", _by_name))


def as_solver(solver: object) -> Solver:
    """Return settings from settings, a solver's name, or None for the default (Levenberg-Marquardt).

    Raises:
        UnknownNameError: If there is no solver of that name.
    """
    if solver is None:
        return LevenbergMarquardt()
    if isinstance(solver, str):
        if solver not in _by_name:
            raise UnknownNameError(
                f"no solver named {solver!r}",
                expected="one of " + ", ".join(solvers),
                hint=near if (near := did_you_mean(solver, solvers)).startswith("did") else None,
            )
        return _by_name[solver]()
    if isinstance(solver, Solver):
        return solver
    raise InputError("solver is no solver", value=solver, expected="settings such as sy.Fabrik(), or a name")


def lister_of(solver: Solver, reduced: Reduced) -> Kernel:
    """Return the compiled entry point that lists every branch of a problem.

    Raises:
        UnsupportedError: If the solver finds one pose alone.
    """
    branch_kernel = solver.branch_kernel(reduced)
    if branch_kernel is None:
        raise UnsupportedError(
            f"{solver.name} finds one pose and lists no branches",
            hint="solver='hinges' or 'segments' lists them, where a closed form exists",
        )
    return branch_kernel


__all__ = [
    "Aim",
    "Ccd",
    "DampedLeastSquares",
    "Fabrik",
    "FullBody",
    "Hinges",
    "JacobianMethod",
    "JacobianTranspose",
    "LevenbergMarquardt",
    "NullSpace",
    "Particles",
    "PseudoInverse",
    "Segments",
    "SelectivelyDamped",
    "Solver",
    "SolverName",
    "TwoBone",
    "as_solver",
    "lister_of",
    "solvers",
]
