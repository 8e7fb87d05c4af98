"""Compiled mathematics on flat arrays and scalars. Kernels allocate no memory and do not validate their arguments.

Only this package imports the compiler (numba), and it imports nothing else of Synovia.
"""
