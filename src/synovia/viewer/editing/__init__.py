"""What a person edits: a body with goals, a clip and undo, and the engine that solves it. No browser."""
