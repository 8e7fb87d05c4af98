"""Compare solvers on the same problems, to find the one that suits a model."""

from synovia.comparison.measure import Comparison, Row, compare
from synovia.comparison.problems import Problems, make_problems
from synovia.comparison.ticks import TickTimes, tick_times

__all__ = ["Comparison", "Problems", "Row", "TickTimes", "compare", "make_problems", "tick_times"]
