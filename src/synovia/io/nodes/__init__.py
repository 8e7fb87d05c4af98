"""Trees of nodes with clips, shared by the readers of glTF and FBX."""
