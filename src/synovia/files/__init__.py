"""Read and write files of goals, tracks and poses, which people and other programs also write."""
