"""Kernels that solve many problems side by side in the lanes of vector registers."""
