"""Loops: constraints that tie frames of the body to each other, and the solver that closes a pose."""
