"""Loops of a mechanism: constraints between frames or joint values, and poses that satisfy them."""
