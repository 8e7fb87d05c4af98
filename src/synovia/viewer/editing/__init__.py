"""The edited data (a body with goals, a clip and undo) and the engine that solves it, independent of any browser."""
