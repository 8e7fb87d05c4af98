"""Ticks of bodies with loops: all joints stop together, and each pose on the way is closed and judged before."""
