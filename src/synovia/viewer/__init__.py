"""The live page: drag a hand and the body follows, in any browser."""

from synovia.viewer.live import View, view

__all__ = ["View", "view"]
