"""The retarget page: a clip beside its retargeted copy on another body; the user edits the map and the rest pose."""
