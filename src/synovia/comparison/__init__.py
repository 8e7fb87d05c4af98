"""Which solver suits a model: all of them on the same problems, side by side."""

from synovia.comparison.measure import Comparison, Row, compare
from synovia.comparison.problems import Problems, make_problems

__all__ = ["Comparison", "Problems", "Row", "compare", "make_problems"]
