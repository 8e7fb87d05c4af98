"""The registry of solvers. A new solver needs a kernel, a settings class derived from ``base``, and a line here."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, cast

from synovia.errors import InputError, UnknownNameError, did_you_mean
from synovia.goals import Goal
from synovia.solver.aim import Aim
from synovia.solver.base import Solver, keeps_clear
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
from synovia.solver.six_joints import SixJoints
from synovia.solver.two_bone import TwoBone

SolverName = Literal[
    "fabrik", "ccd", "particles", "lm", "dls", "transpose", "pinv", "sdls", "full-body", "aim", "hinges", "segments",
    "two-bone",
]  # fmt: skip
_classes = (
    Fabrik, Ccd, Particles, LevenbergMarquardt, DampedLeastSquares, JacobianTranspose, PseudoInverse, SelectivelyDamped,
    FullBody, Aim, Hinges, Segments, TwoBone,
)  # fmt: skip
_by_name = {cls.name: cls for cls in _classes}
solvers: Final = MappingProxyType(cast("Mapping[SolverName, type[Solver]]", _by_name))


def as_solver(solver: object, goals: Sequence[Goal] = ()) -> Solver:
    """Return solver settings, given settings, a solver's name, or None for the default.

    The default is Levenberg-Marquardt, or full-body with a clearance goal.

    Raises:
        UnknownNameError: If there is no solver of that name.
    """
    if solver is None:
        return FullBody() if keeps_clear(goals) else LevenbergMarquardt()
    if isinstance(solver, str):
        if solver not in _by_name:
            raise UnknownNameError(
                f"no solver named {solver!r}",
                expected="one of " + ", ".join(solvers),
                hint=near if (near := did_you_mean(solver, solvers)).startswith("Did") else None,
            )
        return _by_name[solver]()
    if isinstance(solver, Solver):
        return solver
    raise InputError("expected settings such as sy.Fabrik(), or a name", where="solver", value=solver)


def method_of(solver: Solver, goals: Sequence[Goal], tied: bool = False) -> Solver:
    """Return the settings whose kernels solve the goals: those of the solver, or of full-body as a replacement.

    Args:
        solver: The solver.
        goals: The goals.
        tied: Whether the joints open or close loops.

    Raises:
        UnsupportedError: If ``tied`` is set, but the solver cannot keep loops closed.
    """
    settings = solver.in_levels(goals, tied)
    return solver if settings is None else FullBody(**settings)


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
    "SixJoints",
    "Solver",
    "SolverName",
    "TwoBone",
    "as_solver",
    "method_of",
    "solvers",
]
