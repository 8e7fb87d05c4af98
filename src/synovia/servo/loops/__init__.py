"""Ticks of bodies with loops: all joints stop together, and each pose of a stop is closed and checked in advance."""
