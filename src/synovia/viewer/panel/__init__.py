"""The controls beside the scene: one tab a subject."""
