"""The problem: from skeleton, goals and settings to the two flat arrays that a kernel reads."""

from synovia.problem.pack import pack
from synovia.problem.reduced import Reduced, reduce
from synovia.problem.structure import hold_all_but

__all__ = ["Reduced", "hold_all_but", "pack", "reduce"]
