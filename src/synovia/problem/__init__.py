"""The problem: from skeleton, goals and settings to the two flat arrays that a kernel reads."""

from synovia.problem.pack import pack
from synovia.problem.reduced import Reduced, reduce

__all__ = ["Reduced", "pack", "reduce"]
