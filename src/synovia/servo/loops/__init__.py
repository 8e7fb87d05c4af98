"""Bodies with loops: closed poses, and solutions in their assembly branch."""
