"""Compare solvers on the same problems, to find the best solver for a model."""

from synovia.comparison.measure import Comparison, compare
from synovia.comparison.problems import Problems, make_problems

__all__ = ["Comparison", "Problems", "compare", "make_problems"]
