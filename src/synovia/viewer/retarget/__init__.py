"""The retarget page: a clip and its transfer to another body side by side, with a map and a rest pose to edit."""

from synovia.viewer.retarget.open import view_retarget

__all__ = ["view_retarget"]
