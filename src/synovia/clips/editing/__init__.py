"""Edits: goals and keys that change a part of a clip and keep the rest of it."""

from synovia.clips.editing.clear import EditClearance
from synovia.clips.editing.edit import EditChange, Edited, EditStack, edit

__all__ = ["EditChange", "EditClearance", "EditStack", "Edited", "edit"]
