"""The live page: drag a hand and the body follows, in any browser."""

from synovia.viewer.live import View, view
from synovia.viewer.offline import write_page

__all__ = ["View", "view", "write_page"]
