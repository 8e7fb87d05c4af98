"""The live page: a body in the browser that follows dragged targets; and the page that edits a transfer of a clip."""

from synovia.viewer.follow.open import PageSink
from synovia.viewer.live import view, view_retarget
from synovia.viewer.offline import write_page
from synovia.viewer.serving.view import View

__all__ = ["PageSink", "View", "view", "view_retarget", "write_page"]
