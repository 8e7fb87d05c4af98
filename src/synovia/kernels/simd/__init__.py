"""Kernels that solve a batch of problems in lockstep, one in each lane of the vector registers (SIMD)."""
