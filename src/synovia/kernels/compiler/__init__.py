"""How kernels are compiled: the decorators, the cache of compiled code, and the boundary to Python."""
