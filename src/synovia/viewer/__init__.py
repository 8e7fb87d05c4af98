"""The live page, on which a body follows dragged targets, and the page that edits how a clip is retargeted."""

from synovia.viewer.follow.open import PageSink
from synovia.viewer.live import view, view_retarget
from synovia.viewer.offline import write_page
from synovia.viewer.serving.view import View

__all__ = ["PageSink", "View", "view", "view_retarget", "write_page"]
