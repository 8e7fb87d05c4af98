"""The live page: a body in the browser that follows dragged targets."""

from synovia.viewer.live import View, view
from synovia.viewer.offline import write_page

__all__ = ["View", "view", "write_page"]
