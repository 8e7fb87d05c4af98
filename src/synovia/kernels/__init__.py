"""Compiled mathematics: flat arrays and scalars in, flat arrays and scalars out; nothing allocates, nothing validates.

The only package that imports the compiler, and it imports nothing else of Synovia.
"""
