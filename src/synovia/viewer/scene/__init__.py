"""The scene that a browser draws: the body, its surface, targets and limits."""
