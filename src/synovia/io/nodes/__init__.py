"""Trees of nodes with clips: what the readers of glTF and FBX share."""
