"""What a browser draws: the body, its surface, targets and limits."""
