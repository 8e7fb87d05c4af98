"""Files of goals, tracks and poses, which people and other programs write."""
