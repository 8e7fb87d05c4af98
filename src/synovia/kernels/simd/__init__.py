"""Kernels that solve a batch of problems in lockstep, one per lane of the vector registers (SIMD)."""
