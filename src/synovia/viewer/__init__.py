"""The live page: a body in the browser that follows dragged targets; and the page that edits a transfer of a clip."""

from synovia.viewer.live import View, view
from synovia.viewer.offline import write_page
from synovia.viewer.retarget import view_retarget

__all__ = ["View", "view", "view_retarget", "write_page"]
