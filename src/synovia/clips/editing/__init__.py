"""Edits: goals and keys that change a part of a clip and keep the rest of it."""

from synovia.clips.editing.clear import EditClearance
from synovia.clips.editing.edit import EditChange, Edited, edit

__all__ = ["EditChange", "EditClearance", "Edited", "edit"]
