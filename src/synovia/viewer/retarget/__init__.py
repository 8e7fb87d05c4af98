"""The retarget page: a clip next to its retargeted copy on another body; the user edits the map and the rest pose."""
