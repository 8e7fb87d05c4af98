"""Edits: goals and keys that change a part of a clip and keep the rest of it."""

from synovia.clips.editing.edit import Edited, EditFinding, edit

__all__ = ["EditFinding", "Edited", "edit"]
